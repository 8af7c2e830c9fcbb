"""``x[…] = value`` by tensors, where nothing is recorded and there is little: one kernel that checks the indices, then writes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ... import dtypes
from ...launch import Kernel
from ...overriding import whole
from ...shapes import numel
from ...tensor import Tensor, offset_in
from ..core.call_path import shortcut
from ..core.marked import MARKED
from ..core.memo import Memo, ordinary, sought
from ..core.numbers import SINGLE
from .indexing import _FAR, split_index
from .picking import _loops

_assign_within = Kernel("indexing.index", "assign_within")
_assign_by_mask = Kernel("indexing.index", "assign_by_mask")
_assignments, _masked = Memo(), Memo()

MOST = 4  #: indices
LITTLE = 1 << 14  #: elements; more of them are combined into one index first


def _kept_as_it_is(value: Any, kind: dtypes.dtype) -> bool:
    """Return whether an array of ``kind`` takes a number, or the elements of a tensor, without another thought."""
    layout = getattr(value, "_layout", None)
    if layout is None:
        return kind in (dtypes.float32, dtypes.float64) or (kind is dtypes.int64 and value.__class__ is int)
    return ordinary(layout) and layout.dtype is kind and (layout.size == 1 or layout.contiguous)


def _flat(t: Tensor) -> np.ndarray:
    """Return the elements of a contiguous tensor; its memory may go on behind them."""
    data, n = t._data, t._layout.size
    return data if data.size == n else data[:n]


def _key(x: Tensor, index: tuple[Any, ...], value: Any) -> tuple[Any, ...]:
    """Return what tells an assignment from others; TypeError where there is more to an index than numbers, slices and tensors."""
    key = [x._layout, getattr(value, "_layout", value.__class__)]
    for item in index:
        kind = item.__class__
        if kind is Tensor:
            key.append(item._layout)
        elif kind is slice:
            key.append(item.indices(_FAR))
        elif kind is int or item is None or item is Ellipsis:
            key.append(item)
        else:
            raise TypeError("no key")
    return tuple(key)


def _plan(x: Tensor, index: tuple[Any, ...], value: Any, key: tuple[Any, ...]) -> tuple[Any, ...] | None:
    """Return (entry point, its numbers, where the view begins, where in the index the tensors stand, once more for those that lack, the dtype), or None
    where there is more to it: other dtypes or orders in memory, indices that are expanded or masks, transforms, observers, many elements."""
    layout, given = x._layout, [t for t in index if t.__class__ is Tensor]
    if not given or not ordinary(layout, *[t._layout for t in given]) or not layout.contiguous or not layout.size or not _kept_as_it_is(value, layout.dtype):
        return None
    first = given[0]._layout
    if first.dtype is not dtypes.int64 or not first.ndim or not first.size or not first.contiguous or any(t._layout is not first for t in given):
        return None
    try:
        view, tensors = split_index(x, index)
    except (IndexError, TypeError, ValueError, RuntimeError):  # which is told of elsewhere
        return None
    dims = [d for d, t in enumerate(tensors or ()) if t is not None]
    if len(dims) != len(given) or len(dims) > MOST:
        return None
    shown, pos = view._layout, dims[0] if dims[-1] - dims[0] == len(dims) - 1 else 0
    rest = [d for d in range(shown.ndim) if d not in dims]
    kept = [shown.sizes[d] for d in rest]
    loops = _loops(shown.sizes, shown.strides, rest[:pos], (), rest[pos:], shown.dtype)
    steps = None if loops is None else _steps_of(value, (*kept[:pos], *first.sizes, *kept[pos:]), loops, first.size)
    if loops is None or steps is None or not 0 < numel(kept) * first.size <= LITTLE:
        return None
    n0, n1, m0, m1, s0, s1, _, t0, t1 = loops
    lacking = MOST - len(dims)
    sizes, strides = (*[shown.sizes[d] for d in dims], *[1] * lacking), (*[shown.strides[d] for d in dims], *[0] * lacking)
    numbers = ((n0, n1, m0, m1, s0, s1, t0, t1, *steps), len(dims), sizes, strides)
    entry: Any = _assign_within.entry(layout.dtype.carrier, *numbers, *[given[0]._data] * MOST, x._data, x._data)
    where = [k for k, t in enumerate(index) if t.__class__ is Tensor]
    return _assignments.keep(key, (entry, numbers, offset_in(view, x), (*where, *[where[0]] * lacking), layout.dtype.carrier))  # type: ignore[no-any-return]


def _steps_of(value: Any, shape: tuple[int, ...], loops: tuple[int, ...], count: int) -> tuple[int, ...] | None:
    """Return the strides of what is assigned in the loops around the index, of the index, and within; None where it is expanded to the shape."""
    layout = getattr(value, "_layout", None)
    if layout is None or layout.size == 1:
        return (0,) * 5
    if layout.sizes != shape:
        return None
    _, n1, m0, m1 = loops[:4]
    return (count * m0 * m1 * n1, count * m0 * m1, m0 * m1, m1, 1)


#: what both ask first: nothing is recorded, and nothing is read of what is written
READY = [
    "version, number = x._version_, value.__class__ is float or value.__class__ is int",
    "if version[0] < 0 or x.__class__ in _MARKED or (_state.grad and (x._rg or (x._view is not None and x._view._rg))):",
    "    return False",
    "if number:",
    "    if not -_SINGLE <= value <= _SINGLE:",
    "        return False",
    "elif value.__class__ is not Tensor or value._version_ is version:",
    "    return False",
    "elif _state.grad and (value._rg or (value._view is not None and value._view._rg)):",
    "    return False",
]
WRITTEN = ["except (IndexError, OverflowError):", "    return False", "version[0] += 1", "return True"]
NAMES: dict[str, Any] = {"_flat": _flat, "_SINGLE": SINGLE, "_MARKED": MARKED, "_array": np.array, "Tensor": Tensor, "_sought": sought}

#: assign_at(x, index, value): x[index] = value, where nothing is recorded and one kernel does it; whether that was all, else nothing has happened
assign_at: Callable[[Tensor, tuple[Any, ...], Any], bool] = whole(shortcut(
    "x, index, value", "key",
    [
        "if not plan:",
        "    return False",
        "entry, numbers, begin, where, kind = plan",
        "given = [_flat(index[i]) for i in where]",
        "try:",
        "    entry(*numbers, *given, _array([value], kind) if number else value._data, x._data[begin:] if begin else x._data)",
        *WRITTEN,
    ],
    ["plan = None if key is None else _sought(_memo, key, _plan(x, index, value, key))", "if plan is None:", "    return False"],
    memo=_assignments,
    first=[
        *READY,
        "for t in index:",
        "    if t.__class__ is Tensor and t._version_ is version:",
        "        return False",
    ],
    before=["key = _key(x, index, value)"],
    _plan=_plan, _key=_key, _memo=_assignments, **NAMES,
))  # fmt: skip


def _plan_masked(x: Tensor, mask: Tensor, value: Any) -> tuple[Any, ...] | None:
    """Return (entry point, its numbers, the dtype) of `assign_where`, or None where there is more to it."""
    layout, over = x._layout, mask._layout
    if not ordinary(layout, over) or over.dtype is not dtypes.bool_ or not over.ndim or not over.contiguous or over.shape != layout.shape[: over.ndim]:
        return None
    if not layout.contiguous or not 0 < layout.size <= LITTLE or not _kept_as_it_is(value, layout.dtype):
        return None
    width, other = layout.size // over.size, getattr(value, "_layout", None)
    step, along = width, 1
    if other is None or other.size == 1:
        step = along = 0
    elif other.sizes == layout.sizes[over.ndim :]:
        step = 0
    elif other.ndim != 1 + layout.ndim - over.ndim or other.sizes[1:] != layout.sizes[over.ndim :]:
        return None
    entry: Any = _assign_by_mask.entry(layout.dtype.carrier, width, step, along, mask._data, x._data, x._data)
    return _masked.keep((layout, over, other or value.__class__), (entry, (width, step, along), layout.dtype.carrier))  # type: ignore[no-any-return]


#: assign_where(x, mask, value): x[mask] = value of a mask over the first dims, as `assign_at`
assign_where: Callable[[Tensor, Tensor, Any], bool] = whole(shortcut(
    "x, mask, value", "x._layout, mask._layout, of",
    [
        "if not plan:",
        "    return False",
        "entry, numbers, kind = plan",
        "try:",
        "    entry(*numbers, _flat(mask), _array([value], kind) if number else _flat(value), x._data)",
        *WRITTEN,
    ],
    ["plan = _sought(_memo, (x._layout, mask._layout, of), _plan(x, mask, value))", "if plan is None:", "    return False"],
    memo=_masked, first=[*READY, "if mask._version_ is version:", "    return False", "of = value.__class__ if number else value._layout"],
    _plan=_plan_masked, _memo=_masked, **NAMES,
))  # fmt: skip
