"""The samples of structured ops' declarations, run as the same text in PyTorch: values, gradients, and which dtypes are taken."""

from __future__ import annotations

import ast
from operator import attrgetter

import numpy as np
import pytest

pytest.importorskip("torch")
import torch

import autograd_nb as ag

from ..ops.samples import KINDS, SAMPLES, tensors
from ..ops.test_samples import UNDERIVED

pytestmark = pytest.mark.filterwarnings("ignore:torch.triangular_solve is deprecated")

#: what is drawn follows other streams
DRAWN = {t for t, (op, _) in SAMPLES.items() if op.forward.__module__.endswith(("random.sampling", "nn.dropout", "fractional_pool"))}


def in_pytorch(text: str) -> bool:
    """Whether PyTorch has all functions and methods that a sample calls: an op may be this library's own."""
    calls = [node.func for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)]
    return all(_has(call) for call in calls)


def _has(call: ast.Attribute) -> bool:
    path = ast.unparse(call)
    if "(" in path or not path.startswith(("torch.", "F.")):
        of_operand = isinstance(call.value, ast.Call) and ast.unparse(call.value.func) in ("x", "pos", "spd", "index", "mask")
        return not of_operand or hasattr(torch.Tensor, call.attr)
    try:
        attrgetter(path.replace("F.", "nn.functional.", 1).removeprefix("torch."))(torch)
    except AttributeError:
        return False
    return True


THERE = sorted(text for text in set(SAMPLES) - DRAWN if in_pytorch(text))


def test_what_is_compared():
    """Nearly all: what is not found in PyTorch is compared with nothing."""
    assert len(THERE) > 0.9 * len(set(SAMPLES) - DRAWN)
    assert not in_pytorch("torch.no_such_op(x(3))") and not in_pytorch("x(3).no_such_method()") and not in_pytorch("F.no_such_op(x(3))")


def results(library, text: str, dtype: str = "float64") -> list[np.ndarray]:
    """Values, and the gradients of the sum of their squares."""
    _, sample = SAMPLES[text]
    operands = [library.from_numpy(a.copy()).requires_grad_(a.dtype.kind in "fc") for a in sample.operands(dtype)]
    found = tensors(sample(*operands, torch=library))
    real = [library.view_as_real(t) if t.is_complex() else t for t in found if t.requires_grad]
    if real and SAMPLES[text][0].name not in UNDERIVED:
        gradients = library.autograd.grad(sum((t * t).sum() for t in real), operands, allow_unused=True)
        found += [library.zeros_like(t) if g is None else g for g, t in zip(gradients, operands, strict=True)]
    return [t.detach().resolve_conj().numpy() for t in found]


#: PyTorch 2.13's own gradcheck refuses the gradient that it gives here for the first operand
WRONG_THERE = {"torch.as_strided_scatter(x(3, 4), x(3, 2), (3, 2), (4, 1))"}


@pytest.mark.filterwarnings("ignore:The reduce argument of torch.scatter")
@pytest.mark.parametrize("text", [text for text in THERE if text not in WRONG_THERE])
def test_values_and_gradients(text):
    found, expected = results(ag, text), results(torch, text)
    assert len(found) == len(expected)
    for a, b in zip(found, expected, strict=True):
        assert a.shape == b.shape and a.dtype == b.dtype
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-11)


#: op -> kinds that PyTorch takes and this library does not: complex numbers of two halves are outside of it (NumPy has none)
NOT_HERE = {"view_as_complex": {"half"}, "exp": {"half"}, "recurrent": {"complex"}}


@pytest.mark.parametrize("text", THERE)
def test_what_pytorch_takes_is_taken(text):
    """What a declaration leaves out PyTorch has no kernel for either."""
    op, sample = SAMPLES[text]
    for kind in set(KINDS) - set(op.dtypes.split()) - NOT_HERE.get(op.name, set()):
        with pytest.raises((RuntimeError, TypeError, NotImplementedError, ValueError)):
            sample(*[torch.from_numpy(a) for a in sample.operands(KINDS[kind])], torch=torch)
