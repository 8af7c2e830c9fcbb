"""``x[i, j, …] = value`` by integer tensors of one shape, where nothing is recorded: one kernel that checks the indices, then writes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ... import dtypes
from ...codegen import threads
from ...graph.modes import state
from ...launch import Kernel
from ...overriding import whole
from ...tensor import Tensor
from ..core.call_path import shortcut
from ..core.marked import MARKED
from ..core.memo import Memo, ordinary
from ..core.numbers import SINGLE

_assign_within = Kernel("indexing.index", "assign_within")
_assignments = Memo()

MOST = 4  #: indices


def _plan(x: Tensor, index: tuple[Tensor, ...], value: Any) -> tuple[Any, ...] | None:
    """Return (entry point, its numbers, the first of the indices once more for each that lacks, the dtype of numbers), or None where there is
    more to it: other dtypes or orders in memory, indices or values that are expanded, transforms, observers, threads."""
    layout, first, count = x._layout, index[0]._layout, len(index)
    kind, other = layout.dtype, getattr(value, "_layout", None)
    if not ordinary(layout, first) or not layout.contiguous or not 0 < count <= min(MOST, layout.ndim) or not layout.size or not first.size:
        return None
    if first.dtype is not dtypes.int64 or not first.ndim or not first.contiguous or any(t._layout is not first for t in index):
        return None
    whole_row = layout.size
    steps = [whole_row := whole_row // n for n in layout.sizes[:count]]
    if other is None:
        if not (kind in (dtypes.float32, dtypes.float64) or (kind is dtypes.int64 and value.__class__ is int)):
            return None
    elif not ordinary(other) or other.dtype is not kind or (other.size != 1 and not (other.contiguous and other.sizes == (*first.sizes, *layout.sizes[count:]))):
        return None
    if not threads.alone(threads.PICKED * first.size * whole_row):
        return None
    numbers = (count, (*layout.sizes[:count], *[1] * (MOST - count)), (*steps, *[0] * (MOST - count)), whole_row, other is None or other.size == 1)
    entry: Any = _assign_within.entry(kind.carrier, *numbers, *[index[0]._data] * MOST, x._data, x._data)
    return _assignments.keep(_key(x, index, value), (entry, numbers, (index[0],) * (MOST - count), kind.carrier))  # type: ignore[no-any-return]


def _key(x: Tensor, index: tuple[Tensor, ...], value: Any) -> tuple[Any, ...]:
    return (x._layout, getattr(value, "_layout", value.__class__), *[t._layout for t in index])


#: assign_at(x, index, value): x[index] = value, where nothing is recorded and one kernel does it; whether that was all, else nothing has happened
assign_at: Callable[[Tensor, tuple[Tensor, ...], Any], bool] = whole(shortcut(
    "x, index, value", "key",
    [
        "entry, numbers, more, kind = plan",
        "a, b, c, d = (*index, *more)",
        "try:",
        "    entry(*numbers, a._data, b._data, c._data, d._data, _array([value], kind) if number else value._data, x._data)",
        "except (IndexError, OverflowError):",
        "    return False",
        "version[0] += 1",
        "return True",
    ],
    ["plan = _plan(x, index, value)", "if plan is None:", "    return False"],
    memo=_assignments,
    first=[
        "version, number = x._version_, value.__class__ is float or value.__class__ is int",
        "if version[0] < 0 or x.__class__ in _MARKED or (_state.grad and (x._rg or x._view is not None)):",
        "    return False",
        "if number:",
        "    if not -_SINGLE <= value <= _SINGLE:",
        "        return False",
        "elif not isinstance(value, Tensor) or value.__class__ in _MARKED or value._version_ is version or (_state.grad and value._rg):",
        "    return False",
        "for t in index:",
        "    if t.__class__ is not Tensor or t._version_ is version:",
        "        return False",
    ],
    before=["key = _key(x, index, value)"],
    _plan=_plan, _key=_key, _SINGLE=SINGLE, _MARKED=MARKED, _array=np.array, Tensor=Tensor,
))  # fmt: skip
