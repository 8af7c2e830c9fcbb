"""Look for cliffs among all ops at middling sizes: ``python -m bench.cliffs.grown [op …]`` times grown samples of PyTorch's op database.

`bench.cliffs.database` measures what a call costs; here it is the kernels. A tensor of a sample is repeated `TIMES` times along each
dimension that is longer than 1, as far as it keeps below `MOST` elements, so that most samples still fit together: windows, channels,
rows, batches and indices grow alike. Of each op some samples run (`SAMPLES`), forward and with `autograd.grad`; what PyTorch refuses at
that size, or takes longer than `LONG` for, is left out.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import torch
from torch.testing._internal.common_methods_invocations import op_db

from bench.cliffs.beside import Case, main
from bench.cliffs.database import mapped, steps_of
from tests.parity import opdb

TIMES, MOST, SAMPLES = 16, 1 << 18, 6
FIRST = 40  #: samples that those are chosen from
LONG = 0.05  #: seconds


def grown(value: Any) -> Any:
    """Return a tensor repeated along its dimensions, its numbers a little apart; anything else as it is."""
    if not isinstance(value, torch.Tensor) or value.layout != torch.strided or not value.numel():
        return value
    size, times = value.numel(), []
    for n in value.shape:
        times.append(min(TIMES, max(1, MOST // size)) if n > 1 else 1)
        size *= times[-1]
    wide = value.detach().repeat(times) if times else value.detach()
    if wide.dtype.is_floating_point and wide.ndim > 1:
        wide += 0.01 * torch.randn(wide.shape, dtype=wide.dtype)
    return wide.requires_grad_(value.requires_grad)


def seconds(op: Any, sample: Any) -> float:
    """Return what PyTorch's first call takes."""
    begin = time.perf_counter()
    op.op(sample.input, *sample.args, **sample.kwargs)
    return time.perf_counter() - begin


def cases(names: list[str]) -> Iterator[Case]:
    """Yield the name, the kind and the steps of each case that both libraries know."""
    for op in op_db:
        if (names and op.name not in names) or opdb.outside(opdb.title(op)) or torch.float32 not in op.dtypes or opdb.find(op) is None:
            continue
        torch.manual_seed(0)
        first = list(itertools.islice(op.sample_inputs("cpu", torch.float32, requires_grad=op.supports_autograd), FIRST))
        for number in range(0, len(first), -(-len(first) // SAMPLES)):
            small = first[number]
            sample = SimpleNamespace(input=mapped(small.input, grown), args=mapped(small.args, grown), kwargs=mapped(small.kwargs, grown))
            try:
                if seconds(op, sample) < LONG:
                    for kind, steps in steps_of(op, sample, strided=False):
                        yield f"{opdb.title(op)}, sample {number}", kind, steps
            except (*opdb.ERRORS, opdb.Unsupported, AttributeError, AssertionError):  # not of this size, or not here
                continue


if __name__ == "__main__":
    main(__doc__, cases, opdb.ERRORS)
