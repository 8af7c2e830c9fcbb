"""Whether a gradient that a program left can be filled again: only where surely nobody else has it, or looks at its memory.

That is told by reference counts, which differ between interpreters. So what a count is where nobody else has the object is not
written down: it is measured, by the function that uses it, when this module is imported, and each way to hold a gradient must be
seen to raise it. Where it is not, programs leave a new gradient each time.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, cast

import numpy as np

from ... import launch
from ...dtypes import float32
from ...shapes import layout_of
from ...tensor import Tensor, make

_counts: list[tuple[int, int] | None] = [None, None]  # (of the tensor, of its memory), if it is not the leaf's gradient, or is


class KeptGradient:
    """A gradient that a program leaves: its leaf, the tensor and memory of the last run, and what both are made of.

    ``buffer``: the number of the buffer that it is; None where the leaf's gradient becomes None.
    """

    __slots__ = ("buffer", "carrier", "layout", "leaf", "memory", "size", "tensor", "version")
    leaf: Any
    carrier: Any
    layout: Any  # a Layout, where there is a buffer
    buffer: int | None
    size: int
    version: int

    def __init__(
        self, leaf: Any, buffer: int | None = None, layout: Any = None, size: int = 0, carrier: Any = None, version: int = 0
    ):
        self.leaf, self.buffer, self.layout, self.size, self.carrier, self.version = leaf, buffer, layout, size, carrier, version
        self.tensor: Tensor | None = None
        self.memory: np.ndarray | None = None


def counted(gradient: KeptGradient) -> tuple[int, int]:
    """Return the reference counts of a gradient's tensor and of its memory. Neither may have a name here: names are counted differently."""
    return sys.getrefcount(gradient.tensor), sys.getrefcount(gradient.memory)


def alone(gradient: KeptGradient, there: bool) -> bool:
    """Return whether nobody but this record, and the leaf if its gradient is ``there``, has the tensor, and only those two its memory."""
    return counted(gradient) == _counts[there]


def counting() -> bool:
    """Return whether counts tell who has an object in this interpreter."""
    return _counts[0] is not None


class _Leaf:
    _grad: Any = None


def _ways(t: Tensor) -> list[Callable[[], Any]]:
    """Return the ways in which somebody may have a tensor or its memory."""
    return [
        lambda: t, lambda: [t], lambda: {"t": t}, lambda: (lambda: t), t.detach, lambda: t._data, lambda: t._data[1:], lambda: memoryview(cast(Any, t._data)),
    ]  # fmt: skip


def _measure(there: bool, size: int) -> tuple[int, int] | None:
    """Return the counts of a gradient of so many elements that nobody else has, or None where they do not tell."""
    leaf = _Leaf()
    entry = KeptGradient(leaf)

    def left() -> tuple[int, int]:
        entry.memory = launch.empty(size, np.dtype(np.float32))
        entry.tensor = make(entry.memory, layout_of((size,), None, float32), [0, 0])
        leaf._grad = entry.tensor if there else None
        return counted(entry)

    def held(way: int) -> bool:
        before = left()
        somebody = _ways(cast(Tensor, entry.tensor))[way]()
        more = counted(entry)
        del somebody
        return more > before and min(b - a for a, b in zip(before, more, strict=True)) >= 0 and counted(entry) == before == first

    first = left()
    for _ in range(20):  # the interpreter comes to specialise what runs often
        if left() != first:
            return None
    return first if all(held(way) for way in range(len(_ways(cast(Tensor, entry.tensor))))) else None


def _settle() -> None:
    if sys.implementation.name == "cpython" and getattr(sys, "_is_gil_enabled", lambda: True)():
        small = [_measure(there, 4) for there in (False, True)]
        big = [_measure(there, launch.BIG // 4) for there in (False, True)]  # memory of a pool: its arrays own none
        if small == big and None not in small:
            _counts[:] = small


_settle()
