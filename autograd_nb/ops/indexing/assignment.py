"""``x[…] = value`` and `index_put`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from ... import dtypes
from ...graph.modes import state
from ...graph.versions import same_storage
from ...overriding import whole
from ...shapes import Layout, Size, is_expanded
from ...tensor import Tensor, offset_in
from ..core.call_path import shortcut
from ..core.history import check_inplace, hooked, rewrite_history, rewrite_part
from ..core.inplace import write_inplace
from ..core.marked import MARKED
from ..core.memo import Memo
from ..core.numbers import SINGLE, limits, number_as, plain_number
from ..core.recording import fresh, guarded, not_for_barebone, refuse_overlap, warn_of_expanded
from ..core.recording import tensor_type as _tensor_type
from ..core.registry import OPS, public
from ..core.repeated import repeated
from ..core.structured import tensor_argument
from ..creation.cast import cast, copying
from ..creation.create import new_full
from ..shape.shape import expand, reshape
from .indexing import VIEW_NAMES, advanced_index, index_lines, items_of, split_index
from .picking import _write_put, fill_at, index_put_op, places
from .several import assign_at, assign_where


def _value_tensor(self: Tensor, value: Any) -> Tensor:
    """Return what is assigned as a tensor; a number takes the target's dtype."""
    if isinstance(value, Tensor):
        return value
    number = plain_number(value)
    if number is None:
        kind = ("numpy." if isinstance(value, np.ndarray) else "") + type(value).__name__
        raise TypeError(f"can't assign a {kind} to a torch.{_tensor_type(self.dtype)} (make it a tensor first)")
    return new_full((), _assigned(number, self.dtype), self.dtype)


def _assigned(number: Any, d: dtypes.dtype) -> Any:
    """Return a Python number as `number_as`, one beyond half precision as infinite; ValueError for integers beyond int64."""
    if isinstance(number, int) and not -(1 << 63) <= number < 1 << 63:
        raise ValueError(f"Overflow when unpacking long long ({number})")
    if d.is_half and not isinstance(number, complex):
        return number if limits(d)[0] <= number <= limits(d)[1] else math.copysign(math.inf, number) if number == number else number
    return number_as(number, d, "__setitem__")


_assignments = Memo()
_NONE: Any = object()  #: stands for the plan of what has none, and is repeated as other functions are


def _write(self: Tensor, index: Any, value: Any, key: Any) -> None:
    """self[index] = value, whose like was not seen."""
    kind, rank = (index._layout.dtype.category, index._layout.ndim) if type(index) is Tensor else (2, 0)
    if (kind == 0 and rank > self._layout.ndim) or (kind == 1 and rank == 0):
        split_index(self, index)  # which refuses it, before it is asked whether this may be written to
    if index is not False and self._rg and state.grad and ((type(index) is Tensor and self._layout.ndim) or (self.is_leaf and self._view is not None)):
        check_inplace(self)  # a part of it is a view of another tensor, whose own check would not know
    number = None if isinstance(value, Tensor) else plain_number(value)
    if number is None:
        value = _value_tensor(self, value)
    if (
        index.__class__ is Tensor
        and index._layout.dtype is dtypes.bool_
        and index._layout.shape == self._layout.shape
        and (number is not None or value._layout.size == 1)
    ):
        OPS["masked_fill_"].call(self, index, reshape(value, ()) if number is None else _assigned(number, self._layout.dtype))
        return
    if index is False:  # selects nothing, and PyTorch does not count it as a change
        return
    view, tensors = split_index(self, None if index is True else index)  # (True is all of it, and as a slice converts the value)
    if tensors is None:
        if number is not None and not is_expanded(view._layout):
            view.fill_(_assigned(number, self._layout.dtype))
        elif number is not None:
            view.copy_(_value_tensor(self, number))  # which refuses
        else:
            view.copy_(_stripped(value, view._layout.shape))
        if key is not None and self.__class__ not in MARKED and not is_expanded(view._layout):
            _remember(key, self, view, value)
        return
    check_inplace(view)
    if number is not None:
        value = new_full((), _assigned(number, self.dtype), self.dtype)
    elif value._layout.size == 1 and value._layout.dtype is not self._layout.dtype:
        mask = _only_mask(view, tensors)
        if mask is not None:
            OPS["masked_fill_"].call(view, mask, reshape(value, ()))
            return

    def fits(index: Sequence[int], dims: tuple[int, ...], pos: int) -> None:
        if 0 not in index and any(not view._layout.shape[d] for d in dims):  # which PyTorch sees first
            raise IndexError(f"index is out of bounds for dimension with size 0 (the tensor has shape {list(view.shape)})")
        _spread(value, _indexed_shape(view, index, dims, pos))
        _put_value(self, (), value, False)

    place = advanced_index(view, tensors, fits)
    put_in_place(view, *place, value, False, tensors)


def _only_mask(view: Tensor, tensors: list[Any]) -> Tensor | None:
    """Return the one mask of an index as it broadcasts to the view: what is assigned to it may have another dtype. None without one."""
    shape, dims = view._layout.shape, [d for d, t in enumerate(tensors) if t is not None]
    mask, behind = tensors[dims[0]], len(shape) - dims[-1] - 1
    if mask._layout.dtype is not dtypes.bool_ or mask._layout.shape != shape[dims[0] : dims[-1] + 1] or mask._layout.ndim != len(dims):
        return None
    return reshape(mask, (*mask._layout.shape, *(1,) * behind))  # type: ignore[no-any-return]


def _remember(key: tuple[Any, ...], x: Tensor, view: Tensor, value: Any) -> None:
    """Keep what an assignment of such a value to such a view takes: (slice of the memory, plan, the view's layout, offset)."""
    layout, offset = view._layout, offset_in(view, x)
    plan = copying.inplace_memo.plans.get((layout, key[-1]))
    if plan is None:
        # a tensor was expanded; a number is only kept as it is by these dtypes
        d = layout.dtype
        expanded = isinstance(value, Tensor) and value._layout.ndim <= layout.ndim
        kept = key[-1] is int if d is dtypes.int64 else key[-1] in (int, float) and d in (dtypes.float32, dtypes.float64)
        if expanded or kept:
            plan = copying.inplace_plan((layout, key[-1]))
    if plan is None or offset < 0:
        _assignments.remember(key, _NONE)
    else:
        extent = layout.size if layout.contiguous else layout.extent
        _assignments.remember(key, (slice(offset, offset + extent), plan, layout, offset))


def _stands_there(x: Tensor, value: Tensor, part: Layout, away: int) -> bool:
    """Return whether ``x[…] = value`` writes what stands there, as the end of ``x[…] += y`` does, and leaves histories as they are.

    away: how far what is written lies before what is read. A view's history is a part of its base's; only hooks that it has tell whether its
    gradient went by it.
    """
    if value._layout is not part or away:
        return False
    if not state.grad or not (x._rg or x._view is not None or value._rg):
        return True
    return x._view is None and x._edge is not None and value._view is x and not value._view_kind and not hooked(value._edge, x._edge)


def _beside(x: Tensor, value: Tensor, part: Layout, away: int) -> bool:
    """Return whether ``value`` lies before, behind or between the elements that ``x[…] = value`` writes, as one row or column does beside another."""
    of = value._layout
    if of.dtype is not part.dtype or x._data.dtype != value._data.dtype:
        return False
    if away >= part.extent or -away >= of.extent:
        return True
    steps = [s for lies in (of, part) for n, s in zip(lies.sizes, lies.strides, strict=True) if n > 1]
    return bool(away % (math.gcd(*steps) or 1))


@whole
def _assign(x: Tensor, value: Any, found: tuple[Any, ...]) -> bool:
    """x[…] = value without a view; whether that was all, else nothing has happened."""
    cut, plan, part, offset = found
    version = x._version_
    if version[0] < 0:
        return False
    number = type(value) is int or type(value) is float
    if number and not -SINGLE <= value <= SINGLE:
        return False
    if not number and same_storage(value._version_, version):
        away = offset_in(value, x) - offset
        if _stands_there(x, value, part, away):
            version[0] += 1
            return True
        if (state.grad and (x.requires_grad or value.requires_grad)) or not _beside(x, value, part, away):
            return False
    node: Any = False
    if (
        (x._rg or x._view is not None or not (number or (not value._rg and value._view is None)))
        and state.grad
        and (x._rg or (x._view is not None and x._view._rg) or not (number or not value.requires_grad))
    ):
        if x._view is not None or (x._rg and (x._edge is None or part is x._layout)):
            return False
        node = copying.record_in_place(plan, (x, value))
    data = x._data[cut]
    try:
        if plan.size < 0:
            plan.write(data, value if number else value._data)
        else:
            plan.entry(value if number else value._data, data)
    except OverflowError:
        return False
    version[0] += 1
    if node is not False:
        if part is x._layout:
            rewrite_history(x, node)
        else:
            rewrite_part(x, node, part, offset)
    return True


@partial(repeated, kinds=items_of)
def _put(self: Tensor, index: Any, value: Any) -> Tensor:
    """Return a tensor after an assignment for which there is no plan."""
    _write(self, index, value, None)
    return self


_setitem = shortcut(
    "self, index, value", "key",
    ["if plan is _NONE:", "    _put(self, index, value)", "elif not _assign(self, value, plan):", "    _write(self, index, value, key)"],
    ["if key is None:", "    _put(self, index, value)", "else:", "    _write(self, index, value, key)", "return"],
    memo=_assignments, name="__setitem__",
    first=[
        "kind, key = index.__class__, None",
        "if kind is Tensor:",
        "    number, integers = value.__class__, index._layout.dtype is _int64",
        "    if integers and (_fill_at(self, index, value) if number is float or number is int else _assign_at(self, (index,), value)):",
        "        return",
        "    if integers or not _assign_where(self, index, value):",
        "        _put(self, index, value)",
        "    return",
        "if kind is tuple and Tensor in [item.__class__ for item in index]:",
        "    if not _assign_at(self, index, value):",
        "        _put(self, index, value)",
        "    return",
    ],
    before=[
        "of = value.__class__",
        "if of is not int and of is not float:",
        "    of = value._layout",
        *index_lines(", of"),
    ],
    **VIEW_NAMES, Tensor=Tensor, _assign=_assign, _write=_write, _put=_put, _NONE=_NONE, _int64=dtypes.int64, _fill_at=fill_at,
    _assign_at=assign_at, _assign_where=assign_where,
)  # fmt: skip


def _kind(d: Any) -> str:
    return _tensor_type(d).removesuffix("Tensor")


def _stripped(value: Tensor, shape: Size) -> Tensor:
    """Return ``value`` without leading dims of size 1 that ``shape`` lacks, expanded to it."""
    layout = value._layout
    extra = layout.ndim - len(shape)
    if extra > 0 and all(n == 1 for n in layout.shape[:extra]):
        value = reshape(value, layout.shape[extra:])
    if value._layout.shape != shape:
        value = expand(value, shape)
    return value


def _mismatch(value: Tensor, wanted: Sequence[int]) -> RuntimeError:
    return RuntimeError(
        f"shape mismatch: value tensor of shape {list(value.shape)} cannot be broadcast to indexing result of shape "
        f"{list(wanted)}"
    )


def _indexed_shape(view: Tensor, index: Sequence[int], dims: tuple[int, ...], pos: int) -> Size:
    """Return the shape of what ``view`` has at an index of this shape."""
    rest = [n for d, n in enumerate(view._layout.shape) if d not in dims]
    return Size([*rest[:pos], *index, *rest[pos:]])


def _spread(value: Tensor, wanted: Size) -> Tensor:
    """Return ``value`` broadcast to the indexed shape, but for one element, which the kernel itself broadcasts."""
    if value._layout.size == 1 and value._layout.ndim <= len(wanted):
        return value
    try:
        return _stripped(value, wanted)
    except RuntimeError:
        raise _mismatch(value, wanted) from None


def _fills(value: Tensor, accumulate: bool, indices: Sequence[Any]) -> bool:
    """Return whether one element goes where one mask says, which is the same as filling by it: its shape and place do not matter."""
    return not accumulate and value._layout.size == 1 and [t.dtype.category for t in indices if isinstance(t, Tensor)] == [0]


def put_in_place(
    view: Tensor, index: Tensor, dims: tuple[int, ...], pos: int, value: Tensor, accumulate: bool, kept: Sequence[Any]
) -> Tensor:
    """view[index] = value (or += value), recorded; ``value`` broadcasts to the indexed shape. kept: see `write_inplace`."""
    not_for_barebone("index_put", view._layout.dtype)
    warn_of_expanded(view, "index_put_")
    if _fills(value, accumulate, kept):
        value = reshape(value, ())
    else:
        refuse_overlap(view, (value, *kept), True)
    value = _spread(value, _indexed_shape(view, index._layout.shape, dims, pos))
    return write_inplace(index_put_op, _write_put, view, index, value, dims, pos, accumulate, repeats=True, kept=kept)


_put.public = _setitem  # type: ignore[attr-defined]
_setitem.__annotations__ = {"index": "Any", "value": "Any", "return": "None"}
Tensor.__setitem__ = _setitem  # type: ignore[assignment]


def _delitem(self: Tensor, index: Any) -> None:
    raise TypeError("Tensor does not support deleting items")


Tensor.__delitem__ = _delitem  # type: ignore[assignment]


def _indices_argument(x: Tensor, indices: Any, name: str) -> tuple[Tensor, tuple[Tensor, tuple[int, ...], int]]:
    if name[-1] == "_":
        check_inplace(x)
    if not isinstance(indices, (tuple, list)):
        raise TypeError(f"{name}(): argument 'indices' must be tuple of Tensors, not {type(indices).__name__}")
    for i, t in enumerate(indices):
        if t is not None and not isinstance(t, Tensor):
            raise TypeError(f"{name}(): argument 'indices' (position {i}) must be Tensor, not {type(t).__name__}")
    # here 0-d tensors are indices too, not selections
    view, tensors = split_index(
        x, tuple(slice(None) if t is None else reshape(t, 1) if not t.ndim and t.dtype.category else t for t in indices)
    )
    if tensors is None:
        raise RuntimeError(f"{name}(): at least one index tensor is needed (indices={indices!r})")
    index, dims, pos = advanced_index(view, tensors)
    if all(t is None or t.ndim == 0 for t in indices):
        index = reshape(index, ())
    return view, (index, dims, pos)


def _check_rank(values: Tensor, wanted: Sequence[int]) -> None:
    """Raise RuntimeError for values of too many dims: `index_put` broadcasts them, but unlike an assignment drops no dims of them."""
    if values.ndim > len(wanted):
        raise _mismatch(values, wanted)


def _as_number(value: Tensor, d: dtypes.dtype) -> Tensor:
    """Return one element as a tensor of ``d`` keeps a number: where one mask says what is filled, PyTorch does not ask for its dtype."""
    if value.dtype.is_complex and not d.is_complex and d.category:
        raise RuntimeError(f"value cannot be converted to type {d.name} without overflow (index_put: {value.dtype} into {d})")
    return cast(reshape(value, ()), d)


def _check_nothing(x: Tensor, indices: Any) -> None:
    """Raise IndexError for an index into a dim without elements, which PyTorch sees before the dtype of the values."""
    for n, index in zip(x.shape, indices, strict=False):
        if not n and isinstance(index, Tensor) and index.dtype.category == 1 and index._layout.size:
            raise IndexError(f"index is out of bounds for dimension with size 0 (the tensor has shape {list(x.shape)})")


def _put_value(x: Tensor, indices: Any, values: Any, accumulate: bool) -> Tensor:
    tensor_argument(values, "index_put", "values")
    if isinstance(indices, (tuple, list)) and len(indices) > x.ndim:
        raise IndexError(f"too many indices for tensor of dimension {x.ndim} (got {len(indices)})")
    if values.dtype is not x.dtype:
        if isinstance(indices, (tuple, list)) and indices and _fills(values, accumulate, indices):
            return _as_number(values, x.dtype)
        _check_nothing(x, indices)
        raise RuntimeError(
            f"Index put requires the source and destination dtypes match, got {_kind(x.dtype)} for the destination and "
            f"{_kind(values.dtype)} for the source."
        )
    return values


@public(kind="inplace")
def index_put_(input, indices: Sequence[Tensor | None], values, accumulate=False):
    """Do ``input[indices] = values`` for a tuple of index tensors; with ``accumulate`` they are added, duplicates too."""
    x = tensor_argument(input, "index_put_")
    given = tuple(indices) if accumulate is False and indices.__class__ in (tuple, list) and values.__class__ is Tensor else ()
    if given and all(t.__class__ is Tensor for t in given) and values._layout.ndim <= given[0]._layout.ndim and assign_at(x, given, values):
        return x
    check_inplace(x, values)
    values = _put_value(x, indices, values, bool(accumulate))
    view, place = _indices_argument(x, indices, "index_put_")
    index, dims, _ = place
    if _fills(values, bool(accumulate), indices):
        values = reshape(values, ())
    _check_rank(values, (0,) * (view.ndim - len(dims) + index.ndim))
    put_in_place(view, *place, values, bool(accumulate), indices)
    return x


@public()
def index_put(input, indices: Sequence[Tensor | None], values, accumulate=False):
    """Out-of-place version of `index_put_`: y = x with y[indices] = values; d/dvalues gathers, d/dx is 0 where overwritten.

    >>> torch.index_put(torch.tensor([1, 2, 3]), (torch.tensor([0]),), torch.tensor([9]))
    tensor([9, 2, 3])
    """
    x = tensor_argument(input, "index_put")
    values = _put_value(x, indices, values, bool(accumulate))
    view, (index, dims, pos) = _indices_argument(x, indices, "index_put")
    p = places(view._layout, dims, pos)
    wanted = [*p.kept[:pos], *index.shape, *p.kept[pos:]]
    if _fills(values, bool(accumulate), indices):
        values = reshape(values, ())
    _check_rank(values, wanted)
    try:
        values = _stripped(values, Size(wanted))
    except RuntimeError:
        raise _mismatch(values, wanted) from None
    return fresh(reshape(guarded(index_put_op(view, index, values, dims, pos, bool(accumulate)), *indices), x.shape))
