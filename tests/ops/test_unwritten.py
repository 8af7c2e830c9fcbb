"""What ops give and keep is never memory that nobody has written: their compiled kernels, on the samples that they are declared with.

`tests.parity.unwritten` walks over PyTorch's database, where kernels run as Python and their own arrays are filled too.
"""

from __future__ import annotations

import numpy as np
import pytest

import autograd_nb as torch

from ..unwritten import BYTES, differing, filled, outcome
from .samples import SAMPLES


def leaves(sample):
    return [torch.from_numpy(a.copy()).requires_grad_() for a in sample.operands()]


@pytest.mark.parametrize("text", SAMPLES)
@pytest.mark.filterwarnings("ignore")
def test_op(text):
    _, sample = SAMPLES[text]
    assert differing(*[outcome(sample, leaves(sample), {}, byte) for byte in BYTES]) == []


def test_the_walk_sees_what_nobody_has_written():
    """What is read of it, what is kept of it, and what has it in its gradient."""

    class Kept(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(torch.empty_like(x))
            return x * 1

        @staticmethod
        def backward(ctx, g):
            return g + ctx.saved_tensors[0]

    x = torch.ones(3, dtype=torch.float64).requires_grad_()
    found = differing(*[outcome(Kept.apply, [x], {}, byte) for byte in BYTES])
    assert [text.split()[0] for text in found] == ["KeptBackward.saved", "gradient", "recorded"]
    for empty in (torch.empty, np.empty):
        for size in (2, 100_000):
            with filled(255):
                assert np.isnan(np.asarray(empty(size))).all() and not torch.zeros(size).any()
