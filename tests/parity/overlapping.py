"""In-place ops on memory that elements share: PyTorch's answer and ours, for every in-place op of its database.

``python -m tests.parity.overlapping [--part K N] [name…]`` calls each with an operand that is expanded or a window into memory
(`unfold`, `as_strided`), and compares whether it is refused (then nothing may have changed), the values of the memory, the shape and
strides of the tensor, and by how much its version moved.
"""

from __future__ import annotations

import builtins
import contextlib
import sys
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch

import autograd_nb as ag

from .opdb import RANDOM, Unsupported, leaves, ours, plain, samples_of, title
from .saved import Table, report

MOST = 2  #: samples of an op in a dtype
SIZE = 150  #: elements of a sample at most (kernels run as Python)
DTYPES = (torch.float64, torch.int64, torch.complex128)
_READ_FIRST = "PyTorch reads elements that the same call has written, in whatever order it goes; here all are read first"
_WINDOWS = ("*, windows by 1: values *", "*, windows by 2: values *", "*, windows, transposed: values *")
#: entries of which something is known to differ: why, and what (as patterns, each of which has to be found)
KNOWN: dict[str, tuple[str, tuple[str, ...]]] = {
    **dict.fromkeys(
        (
            "addr", "cumsum", "cumprod", "index_reduce (mean)", "renorm", "scatter_reduce (mean)",
        ),
        (_READ_FIRST, _WINDOWS),
    ),
    **dict.fromkeys(("addmm", "addmm (decomposed)"), (_READ_FIRST, _WINDOWS[:1])),
    "tril": (_READ_FIRST, _WINDOWS[:2]),
    "triu": (_READ_FIRST, _WINDOWS[2:]),
}  # fmt: skip


class Changed(Exception):
    """A call was refused after it had changed something."""


def windows(x: torch.Tensor) -> Iterator[tuple[str, torch.Tensor, tuple[int, ...]]]:
    """(what, memory, strides) of operands of the shape of ``x`` whose elements share memory."""
    shape = x.shape
    wide = [d for d, n in enumerate(shape) if n > 1]
    flat = torch.cat([x.detach().reshape(-1)] * 2)
    yield "plain", flat, x.contiguous().stride()
    for d in {wide[0], wide[-1]} if wide else ():
        yield f"dim {d} expanded", flat, tuple(0 if i == d else s for i, s in enumerate(x.contiguous().stride()))
    if len(wide) > 1:
        for step in (1, 2):
            yield f"windows by {step}", flat, tuple(step if i == wide[0] else s for i, s in enumerate(x.contiguous().stride()))
        turned = dict(zip((wide[0], wide[-1]), (1, 2), strict=True))
        yield "windows, transposed", flat, tuple(turned.get(i, s) for i, s in enumerate(x.contiguous().stride()))


def apply(call: Callable, memory: Any, shape: tuple, strides: tuple, args: Any, kwargs: Any) -> tuple[str, Any]:
    """("refused", None) or ("done", (memory, shape, strides, versions))."""
    memory = memory.clone()
    x = memory.as_strided(shape, strides)
    before, version = plain(memory).copy(), x._version
    try:
        call(x, *args, **kwargs)
    except builtins.Exception as error:
        text = f"{type(error).__name__}: {' '.join(str(error).split())[:100]}"
        if isinstance(memory, ag.Tensor) and not np.array_equal(plain(memory), before, equal_nan=memory.dtype.category >= 2):
            raise Changed(text) from None
        return "refused", text
    return "done", (plain(memory).copy(), tuple(x.shape), tuple(x.stride()), x._version - version)


def difference(theirs: tuple[str, Any], mine: tuple[str, Any], values: bool) -> str | None:
    if theirs[0] != mine[0]:
        return f"refused ({mine[1]})" if mine[0] == "refused" else f"done, not refused ({theirs[1]})"
    if mine[0] == "refused":
        return None
    (a, *rest), (b, *expected) = mine[1], theirs[1]
    if rest != expected:
        return f"shape, strides, version {rest} instead of {expected}"
    if values and not np.allclose(a, b, rtol=1e-6, atol=1e-8, equal_nan=True):
        return f"values {np.round(a, 3).tolist()} instead of {np.round(b, 3).tolist()}"
    return None


def check(op: Any) -> Table:
    table = Table(title(op))
    theirs = op.inplace_variant
    if theirs is None:
        return table
    mine = getattr(ag.Tensor, getattr(theirs, "__name__", "<lambda>"), None)
    if mine is None:
        return table
    for dtype in DTYPES:
        if dtype not in op.supported_dtypes("cpu"):
            continue
        found = samples_of(op, dtype, False)
        found = [s for s in found if isinstance(s.input, torch.Tensor) and sum(t.numel() for t in leaves((s.input, s.args, s.kwargs))) <= SIZE]
        found.sort(key=lambda s: s.input.ndim < 2)
        for k, sample in enumerate(found[:MOST]):
            with warnings.catch_warnings(), contextlib.suppress(Unsupported), np.errstate(all="ignore"):
                warnings.simplefilter("ignore")
                args, kwargs = ours((sample.args, sample.kwargs))
                for what, memory, strides in windows(sample.input):
                    shape = tuple(sample.input.shape)
                    table.pairs += 1
                    expected = apply(theirs, memory, shape, strides, sample.args, sample.kwargs)
                    try:
                        got = apply(mine, ours(memory), shape, strides, args, kwargs)
                    except Changed as error:
                        table.failures.append(f"{str(dtype)[6:]} #{k}, {what}: changed, then refused: {error}")
                        continue
                    text = difference(expected, got, not any(r in op.name for r in RANDOM))
                    if text:
                        table.differences.append(f"{str(dtype)[6:]} #{k}, {what}: {text}")
    return table


def main(arguments: list[str]) -> int:
    return report(arguments, check, KNOWN, "calls")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
