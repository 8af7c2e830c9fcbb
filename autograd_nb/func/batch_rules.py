"""What structured ops make of a batch: what their declarations say, and for the rest one sample after the other.

The questions that a declaration answers are told in `ops.structured`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..ops.registry import OPS
from ..ops.structured import SHIFTED, Structured
from ..tensor import Tensor
from .batched import batch, materialize, value_of

__all__ = ["Batch", "structured"]


class Batch:
    """A batch of ``size`` samples, as rules ask for it; ``level`` is that of its vmap."""

    __slots__ = ("level", "size")

    def __init__(self, level: int, size: int):
        self.level, self.size = level, size

    def of(self, x: Any) -> tuple[Any, bool]:
        """(what an argument holds, whether its dim 0 is the batch)."""
        return value_of(x, self.level)

    def whole(self, x: Tensor) -> Tensor:
        """What a tensor holds, stretched along the batch where it is the same for all samples."""
        return materialize(x, self.level, self.size)


def structured(op: Structured, args: tuple, level: int) -> Any:
    """A structured op on batches of ``level``."""
    of = Batch(level, _size(args, level))
    out = None
    if op.batch == "shift":
        out = _shift(op, args, of)
    elif callable(op.batch):
        out = op.batch(op, args, of)
    if out is None:
        out = _one_by_one(op, args, of)
    if isinstance(out, (tuple, list)):
        return type(out)([batch(o, level) if isinstance(o, Tensor) else o for o in out])
    return batch(out, level)


def _size(args: Any, level: int) -> int:
    for a in args:
        if isinstance(a, (tuple, list)):
            n = _size(a, level)
            if n >= 0:
                return n
        elif isinstance(a, Tensor):
            value, batched = value_of(a, level)
            if batched:
                return value.shape[0]
    return -1


def _shift(op: Structured, args: tuple, of: Batch) -> Any:
    if isinstance(args[0], Tensor) and not args[0].ndim:
        named = dict(zip(op.params, args, strict=True))
        if any(name in named for name in ("d", "a", "b")) or any(named.get(name) for name in ("dims", "wdims")):
            return None  # a number has no dims, but answers to dim 0
    shifted: list = []
    for name, a in zip(op.params, args, strict=True):
        if isinstance(a, Tensor):
            shifted.append(of.whole(a))
        elif isinstance(a, (tuple, list)) and a and isinstance(a[0], Tensor):
            shifted.append(tuple(of.whole(t) for t in a))
        else:
            shift = SHIFTED.get(name)
            shifted.append(a if shift is None else shift(a, of.size))
    return op(*shifted)


def _one_by_one(op: Callable, args: tuple, of: Batch) -> Any:
    """The op on each sample, and the results stacked."""
    found = [op(*[_sample(a, of, i) for a in args]) for i in range(of.size)]
    first = found[0]
    if isinstance(first, (tuple, list)):
        parts = [OPS["stack"].call([f[k] for f in found]) if isinstance(t, Tensor) else t for k, t in enumerate(first)]
        return type(first)(parts) if type(first) in (tuple, list) else tuple(parts)
    return OPS["stack"].call(found)


def _sample(a: Any, of: Batch, i: int) -> Any:
    if isinstance(a, (tuple, list)) and a and isinstance(a[0], Tensor):
        return type(a)([_sample(t, of, i) for t in a])
    value, batched = of.of(a)
    return value.select(0, i) if batched else a
