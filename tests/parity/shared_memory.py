"""Operands that lie in the memory which an op writes to: PyTorch's answer and ours, for every op in place and with ``out=``.

``python -m tests.parity.shared_memory [--part K N] [name…]`` puts each tensor operand of the target's dtype into one memory with the target
(shifted by an element, transposed, with gaps, elsewhere …), and compares whether the call is refused (then nothing may have changed)
and the tensor's shape and strides. Values are compared where no element is shared: PyTorch reads what the same call has written, in
an order that follows the width of its vectors (and indices too, which then may be none).
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

from .opdb import RANDOM, Unsupported, find, leaves, ours, plain, samples_of, title
from .saved import Table, report

MOST = 2  #: samples of an op in a dtype
SIZE = 100  #: elements of a sample at most (kernels run as Python)
DTYPES = (torch.float64, torch.int64)
#: entries of which something is known to differ: why, and what (as patterns, each of which has to be found)
KNOWN: dict[str, tuple[str, tuple[str, ...]]] = {
    "linalg.solve_triangular": (
        "PyTorch copies B into out= first, and refuses that copy in some orders of dims; here the solution is computed apart",
        ("*out, operand 1 from the same element on: done, not refused *", "*out, operand 1 transposed: done, not refused *"),
    ),
    "nn.functional.avg_pool3d": ("PyTorch writes into an out= with gaps as if it had none", ("*out, operand 0 between: values *",)),
}


class Here:
    """Stands for the operand that lies in the target's memory."""


def replaced(tree: Any, change: Callable[[Any], Any]) -> Any:
    """The tree with its leaves changed."""
    if isinstance(tree, (list, tuple)) and type(tree) in (list, tuple):
        return type(tree)(replaced(v, change) for v in tree)
    if isinstance(tree, dict):
        return {k: replaced(v, change) for k, v in tree.items()}
    return change(tree)


def places(x: torch.Tensor, y: torch.Tensor) -> Iterator[tuple[str, tuple, tuple]]:
    """(what, strides and offset of the target ``x``, of the operand ``y``) in one memory."""
    a, b = x.contiguous().stride(), y.contiguous().stride()
    yield "from the same element on", (a, 0), (b, 0)
    yield "one later", (a, 0), (b, 1)
    yield "one later, of .data", (a, 0), (b, 1)
    yield "one earlier", (a, 1), (b, 0)
    yield "apart", (a, 0), (b, x.numel())
    if y.ndim > 1:
        yield "transposed", (a, 0), (y.mT.contiguous().mT.stride(), 0)
    if y.ndim:
        yield "expanded", (a, 0), ((0, *b[1:]), 0)
        yield "with gaps", (a, 0), (tuple(2 * s for s in b), 0)
    if x.ndim:
        yield "between", (tuple(2 * s for s in a), 0), (tuple(2 * s for s in b), 1)


def apply(call: Callable, memory: Any, target: tuple, operand: tuple, given: Any, data: bool) -> tuple[str, Any]:
    """("refused", error) or ("done", (memory, shape, strides)); "changed" where a refused call had changed something.

    data: the operand is one of the memory's `.data`, which counts for itself.
    """
    memory = memory.clone()
    x, y = memory.as_strided(*target), (memory.data if data else memory).as_strided(*operand)
    before = plain(memory).copy()
    args, kwargs = replaced(given, lambda v: y if v is Here else v)
    try:
        call(x, *args, **kwargs)
    except builtins.Exception as error:
        same = np.array_equal(plain(memory), before, equal_nan=memory.dtype.is_floating_point)
        return "refused" if same else "changed", f"{type(error).__name__}: {' '.join(str(error).split())[:80]}"
    return "done", (plain(memory).copy(), tuple(x.shape), tuple(x.stride()) if x.numel() else ())


def difference(theirs: tuple[str, Any], mine: tuple[str, Any], values: bool) -> str | None:
    if mine[0] == "changed":
        return f"changed, then refused ({mine[1]})"
    if mine[0] == "done" and theirs[0] != "done" and "unsupported operation" not in theirs[1]:
        return None
    if (theirs[0] == "done") != (mine[0] == "done"):
        return f"refused ({mine[1]})" if mine[0] == "refused" else f"done, not refused ({theirs[1]})"
    if mine[0] == "refused":
        return None
    if mine[1][1:] != theirs[1][1:]:
        return f"shape, strides {mine[1][1:]} instead of {theirs[1][1:]}"
    if values and not np.allclose(mine[1][0].astype(complex), theirs[1][0].astype(complex), rtol=1e-6, atol=1e-8, equal_nan=True):
        return f"values {np.round(mine[1][0] * 1, 3).tolist()} instead of {np.round(theirs[1][0] * 1, 3).tolist()}"
    return None


def kinds(op: Any, sample: Any, out: bool) -> Iterator[tuple[str, Callable, Callable, torch.Tensor, tuple]]:
    """(what, PyTorch's call of the target and the operands, ours, a tensor like the target, the operands) of a sample."""
    theirs = op.inplace_variant
    mine = theirs and getattr(ag.Tensor, getattr(theirs, "__name__", "<lambda>"), None)
    if mine:
        yield "in place", theirs, mine, sample.input, (sample.args, sample.kwargs)
    function = find(op)
    if out and op.supports_out and function is not None:
        with contextlib.suppress(builtins.Exception):
            like = op(sample.input, *sample.args, **sample.kwargs)
            if isinstance(like, torch.Tensor):
                given = ((sample.input, *sample.args), sample.kwargs)
                yield "out", lambda x, *a, **k: op(*a, **k, out=x), lambda x, *a, **k: function(*a, **k, out=x), like, given


def compare(table: Table, what: str, theirs: Callable, mine: Callable, like: torch.Tensor, given: tuple, values: bool) -> None:
    """Compare a call with each of its operands in the target's memory."""
    for i, y in enumerate(leaves(given)):
        if y.dtype != like.dtype or not like.numel() or y.numel() < 2:  # (strides of one element tell nothing)
            continue
        count = iter(range(1000))
        shared = replaced(given, lambda v, i=i, count=count: Here if isinstance(v, torch.Tensor) and next(count) == i else v)
        own = replaced(shared, lambda v: v if v is Here else ours(v))
        memory = torch.cat([y.reshape(-1), like.reshape(-1)] * 3 + [y.reshape(-1), y.new_zeros(3)])
        for where, target, operand in places(like, y):
            table.pairs += 1
            at = (tuple(like.shape), *target), (tuple(y.shape), *operand)
            with contextlib.suppress(RuntimeError):  # (into what is expanded)
                memory.as_strided(*at[1]).copy_(y)
            data = where.endswith(".data")
            text = difference(
                apply(theirs, memory, *at, shared, data), apply(mine, ours(memory), *at, own, data),
                values and where in ("apart", "between"),
            )  # fmt: skip
            if text:
                table.differences.append(f"{what}, operand {i} {where}: {text}")


def check(op: Any) -> Table:
    table = Table(title(op))
    for dtype in DTYPES:
        if dtype not in op.supported_dtypes("cpu"):
            continue
        found = [s for s in samples_of(op, dtype, False) if isinstance(s.input, torch.Tensor)]
        found = [s for s in found if sum(t.numel() for t in leaves((s.input, s.args, s.kwargs))) <= SIZE]
        found.sort(key=lambda s: s.input.ndim < 2)
        for k, sample in enumerate(found[:MOST]):
            with warnings.catch_warnings(), contextlib.suppress(Unsupported), np.errstate(all="ignore"):
                warnings.simplefilter("ignore")
                for what, *rest in kinds(op, sample, not k):
                    compare(table, f"{str(dtype)[6:]} #{k} {what}", *rest, not any(r in op.name for r in RANDOM))
    return table


def main(arguments: list[str]) -> int:
    return report(arguments, check, KNOWN, "calls")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
