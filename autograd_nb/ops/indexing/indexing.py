"""``x[…]``: ints, slices, None and Ellipsis make a view.

What is left, integer and boolean tensors (lists and arrays become tensors), is turned into one integer tensor over the indexed
dims taken together, which `picking` reads and writes by, whatever the expression was.

Source: https://docs.pytorch.org/docs/stable/tensor_view.html, https://numpy.org/doc/stable/user/basics.indexing.html
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from ... import dtypes, launch, strides
from ...errors import warn_user
from ...shapes import Layout, broadcast_shapes
from ...tensor import Tensor
from ..core.call_path import shortcut
from ..core.memo import Memo, ordinary
from ..core.recording import guarded
from ..core.registry import OPS
from ..core.repeated import repeated
from ..core.structured import structured
from ..core.views import geometry, look, recipe_from
from ..creation.cast import cast, dense, relaid
from ..creation.create import new_empty, new_full
from ..creation.data import from_numpy, tensor
from ..shape.parts import _select
from ..shape.shape import _alias, _with, expand
from .by_mask import picked_by_mask, true_indices
from .picking import _combine, checked_index, memoized_pick, pick


def _as_index(value: Any) -> Any:
    """Return a list, array or other sequence of an index expression as a tensor."""
    if isinstance(value, np.ndarray):
        if value.dtype.kind not in "bui":
            raise IndexError(_KINDS + f" (got an array of {value.dtype})")
        return from_numpy(np.ascontiguousarray(value).reshape(value.shape))
    if isinstance(value, (list, tuple, range)):
        t = tensor(list(value))
        if not t._layout.size and t.dtype.category > 1:
            return cast(t, dtypes.int64)
        return t
    raise (TypeError if isinstance(value, str) else IndexError)(
        "only integers, slices (`:`), ellipsis (`...`), None and long or byte Variables are valid indices "
        f"(got {type(value).__name__})"
    )


_KINDS = "tensors used as indices must be long, int, byte or bool tensors"


def _is_tuple(value: Any) -> bool:
    """Return whether a list (or another sequence) stands for a tuple of indices, as in PyTorch: something in it is no number and no bool."""
    if isinstance(value, (Tensor, np.ndarray, str)) or not hasattr(value, "__getitem__") or not hasattr(value, "__len__"):
        return False
    if len(value) >= 32 or not any(v is None or v is Ellipsis or isinstance(v, slice) or _is_sequence(v) for v in value):
        return False
    warn_user(
        "Using a non-tuple sequence for multidimensional indexing is deprecated; use x[tuple(seq)] instead of x[seq], or "
        "x[torch.tensor(seq)] where a tensor is meant",
    )
    return True


def _is_sequence(value: Any) -> bool:
    return isinstance(value, (list, tuple, range, Tensor, np.ndarray)) or (hasattr(value, "__getitem__") and hasattr(value, "__len__"))


def split_index(x: Tensor, index: Any) -> tuple[Tensor, list[Any] | None]:
    """Return (the view that the basic part of ``index`` makes, the tensor index of each of its dims or None); ``x`` itself where that is all of it."""
    view, tensors = read_index(x, index)
    return (view[0](x, *view[1:]) if view and view[0] is not _alias else x), tensors


def _converted(item: Any) -> tuple[Any, int]:
    """Return what stands in an index and is neither a number, a slice, None, ... nor a tensor, as one of these; how many dims it names."""
    if isinstance(item, (np.bool_, np.integer)):
        item = item.item()
        return item, int(item.__class__ is int)
    if isinstance(item, (list, tuple, range, np.ndarray)):
        item = _as_index(item)
        return item, item.ndim if item.dtype in (dtypes.bool_, dtypes.uint8) and item.ndim else 1
    if hasattr(item, "__index__") and not isinstance(item, (float, str)):
        return operator.index(item), 1
    if hasattr(item, "__array__"):
        item = _as_index(np.asarray(item))
        return item, item.ndim if item.dtype is dtypes.bool_ else 1
    _as_index(item)
    return item, 0


def _too_many(ndim: int, items: list[Any], taken: int) -> None:
    if not ndim and len(items) == 1:
        if isinstance(items[0], slice):
            raise IndexError("slice() cannot be applied to a 0-dim tensor.")
        if isinstance(items[0], int):
            raise IndexError(
                "invalid index of a 0-dim tensor. Use `tensor.item()` in Python or `tensor.item<T>()` in C++ to convert a "
                "0-dim tensor to a number"
            )
    raise IndexError(f"too many indices for tensor of dimension {ndim} (the index names {taken} dims)")


def _read_tensor(item: Any, layout: Layout, dim: int, recipe: list[Any], tensors: list[Any]) -> tuple[int, str]:
    """Read a tensor or a bool of an index at ``dim`` into `read_index`'s lists; (how many dims it takes, the view that it makes or "")."""
    if item.__class__ is bool:
        recipe.append(None)
        tensors.append(new_full((1,) if item else (0,), 0, dtypes.int64))
        return 0, "unsqueeze"
    d = item._layout.dtype
    k = item._layout.ndim
    if d.category > 1 or (k and (d is dtypes.int16 or d is dtypes.int8 or d.is_barebone)):  # (one integer is a number, of whatever dtype)
        raise IndexError(_KINDS + f" (got {d.name})")
    if d is dtypes.uint8:
        warn_user("indexing with dtype torch.uint8 is now deprecated, please use a dtype torch.bool instead.")
    if d is not dtypes.bool_ and d is not dtypes.uint8:
        if k == 0:
            launch.escapes("a tensor as an index; a 1-d one, or index_select(), need not be read")
            recipe.append(_select_number(int(item._data[0]), layout.shape, dim))
            return 1, "select"
        recipe.append((0, layout.shape[dim], 1))
        tensors.append(item)
        return 1, ""
    if k == 0:
        launch.escapes("a boolean tensor as an index")
        recipe.append(None)
        tensors.append(new_full((1,) if item._data[0] else (0,), 0, dtypes.int64))
        return 0, "unsqueeze"
    for i in range(k):
        if item._layout.shape[i] != layout.shape[dim + i]:
            raise IndexError(
                f"The shape of the mask {list(item._layout.shape)} at index {i} does not match the shape of the "
                f"indexed tensor {list(layout.shape)} at index {dim + i}"
            )
    recipe.extend([(0, n, 1) for n in item._layout.shape])
    tensors.append(item if d is dtypes.bool_ else OPS["ne"].call(item, 0))
    tensors.extend([_COVERED] * (k - 1))
    return k, ""


def _read_items(index: Any, ndim: int) -> tuple[list[Any], int]:
    """Return (the items of an index, of which lists and arrays have become tensors, how many dims they name)."""
    if index.__class__ is slice:
        index = (index,)
    elif index.__class__ is not tuple:
        index = tuple(index) if isinstance(index, tuple) or _is_tuple(index) else (index,)
    taken = 0  # dims of x that the expression names
    items: list[Any] = []
    for item in index:
        kind = item.__class__
        if kind is int or kind is slice:
            taken += 1
        elif item is None or item is Ellipsis or kind is bool:
            pass
        elif isinstance(item, Tensor):
            d = item._layout.dtype
            if d is dtypes.bool_ or d is dtypes.uint8:
                taken += item._layout.ndim
            else:
                taken += 1
        else:
            item, more = _converted(item)
            taken += more
        items.append(item)
    if taken > ndim:
        _too_many(ndim, items, taken)
    return items, taken


def read_index(x: Tensor, index: Any) -> tuple[tuple[Any, ...], list[Any] | None]:
    """Return ((the op that makes the view of the basic part of ``index``, its arguments) or (), the tensor index of each dim or None)."""
    items, taken = _read_items(index, x._layout.ndim)
    ndim = x._layout.ndim
    # the view as a recipe: for each dim an int (select), (start, count, step), or None (a new dim)
    layout = x._layout
    recipe: list[Any] = []
    tensors: list[Any] = []  # for each dim of the view
    dim = 0
    last = ""
    seen = indexed = False
    for item in items:
        kind = item.__class__
        if kind is int:
            recipe.append(_select_number(item, layout.sizes, dim))
            dim += 1
            last = "select"
        elif kind is slice:
            n = layout.sizes[dim]
            part = _slice_part(item, n)
            recipe.append(part)
            tensors.append(None)
            if part[1] != n or part[2] != 1:
                last = "slice"
            dim += 1
        elif item is Ellipsis:
            more = 0 if seen else ndim - taken
            seen = True
            recipe.extend([(0, n, 1) for n in layout.shape[dim : dim + more]])
            tensors.extend([None] * more)
            dim += more
        elif item is None:
            recipe.append(None)
            tensors.append(None)
            last = "unsqueeze"
        else:
            more, view = _read_tensor(item, layout, dim, recipe, tensors)
            indexed = True
            dim += more
            last = view if view == "select" else last or view
    if dim < ndim:
        recipe.extend([(0, n, 1) for n in layout.sizes[dim:]])
        tensors.extend([None] * (ndim - dim))
    found = tensors if indexed and any(t is not None for t in tensors) else None
    return ((_VIEWS[last], tuple(recipe)) if last else (_alias,) if found is None else ()), found


_COVERED = object()  #: a further dim of a mask of several dims


def _select_number(i: int, shape: Sequence[int], dim: int) -> int:
    n = shape[dim]
    if not -n <= i < n:
        raise IndexError(f"index {i} is out of bounds for dimension {dim} with size {n}")
    return i + n if i < 0 else i


def _slice_part(s: slice, n: int) -> tuple[int, int, int]:
    """Return (start, how many, step) of a slice of n elements."""
    start, stop, step = s.start, s.stop, s.step
    if not (start is None or start.__class__ is int) or not (stop is None or stop.__class__ is int):
        start = None if start is None else _slice_number(start)
        stop = None if stop is None else _slice_number(stop)
    if step is None:
        step = 1
    else:
        step = _slice_number(step)
        if step < 1:
            raise ValueError(f"step must be greater than zero (step={step}); use flip() to reverse")
    start, stop, _ = slice(start, stop, step).indices(n)
    return start, max(0, -(-(stop - start) // step)), step


def _slice_number(value: Any) -> int:
    if isinstance(value, Tensor) and value._layout.size == 1 and value.dtype.category < 2:
        return int(value.item())
    try:
        return operator.index(value)
    except TypeError:
        raise TypeError(
            f"slice indices must be integers or None or have an __index__ method (got {type(value).__name__} {value!r})"
        ) from None


def _followed(layout: Layout, recipe: tuple[Any, ...]) -> tuple[list[int], list[int], int]:
    """Return shape, strides and offset of the view that a recipe tells of."""
    shape: list[int] = []
    strides: list[int] = []
    steps = layout.strides
    offset = dim = 0
    for part in recipe:
        if part.__class__ is int:
            offset += part * steps[dim]
            dim += 1
        elif part is None:
            shape.append(1)
            strides.append(layout.sizes[dim] * steps[dim] if dim < layout.ndim else 1)
        else:
            start, count, step = part
            if count:
                offset += start * steps[dim]
            shape.append(count)
            strides.append(steps[dim] * step)
            dim += 1
    if offset and 0 in shape:
        offset = 0
    return shape, strides, offset


@structured(x=lambda g, recipe: _VIEWS["slice"](g, recipe), linear="jointly", batch="shift")
def _basic_backward(x, shape, recipe):
    z = new_full(shape, 0, x.dtype)
    _with(z, *_followed(z._layout, recipe)).copy_(x)
    return z


def _basic(name: str, sample: str) -> Any:
    def followed(layout, recipe):
        return _followed(layout, recipe)

    followed.__name__ = "basic_" + name
    rule = {"x": lambda g, x_shape, recipe: _basic_backward(g, tuple(x_shape), recipe)}
    node = name.capitalize() + "Backward0"
    return structured(view=True, node=node, linear="jointly", batch="shift", samples=sample, **rule)(geometry(followed))  # type: ignore[arg-type]


_VIEWS = {
    "select": _basic("select", "x(3, 4)[1:, 2]"),
    "slice": _basic("slice", "x(3, 4)[:, 1:]"),
    "unsqueeze": _basic("unsqueeze", "x(3, 4)[None]"),
}


def advanced_index(
    view: Tensor, tensors: list[Any], fits: Callable[[Sequence[int], tuple[int, ...], int], Any] | None = None
) -> tuple[Tensor, tuple[int, ...], int]:
    """Return (the combined index, the dims it indexes, where its dims go) of the tensor indices of a view's dims.

    ``fits`` is called with the index's shape, the dims and the place between the test of the indices' shapes and that of their
    values, to raise what comes there.
    """
    shape = view._layout.shape
    dims = tuple([d for d, t in enumerate(tensors) if t is not None])
    adjacent = dims[-1] - dims[0] == len(dims) - 1
    first = tensors[dims[0]]
    pos = dims[0] if adjacent else 0
    if first._layout.dtype is dtypes.bool_ and first._layout.ndim == len(dims):
        found = true_indices(first)
        if fits is not None:
            fits(found._layout.shape, dims, pos)
        return found, dims, pos
    if len(dims) == 1:
        if fits is not None:
            fits(first._layout.shape, dims, pos)
        return checked_index(first, shape[pos], pos, idle=not view._layout.size), dims, pos
    # (index, number of elements it counts in, its dim) of each run of dims
    parts: list[tuple[Tensor, int, int]] = []
    for d in dims:
        t = tensors[d]
        if t is _COVERED:
            continue
        if t._layout.dtype is dtypes.bool_:
            parts.append((true_indices(t), t._layout.size, -1))
        else:
            parts.append((t, shape[d], d))
    try:
        wanted = broadcast_shapes(*[t._layout.shape for t, _, _ in parts])
    except RuntimeError:
        raise IndexError(
            "shape mismatch: indexing tensors could not be broadcast together with shapes "
            + ", ".join(str(list(t._layout.shape)) for t, _, _ in parts)
        ) from None
    if fits is not None:
        fits(wanted, dims, pos)
    idle, nowhere = not view._layout.size, 0 in wanted
    whole = [t if d < 0 else cast(t, dtypes.int64) if nowhere else checked_index(t, n, d, idle=idle) for t, n, d in parts]
    wide = [t if t._layout.shape == wanted else expand(t, wanted) for t in whole]
    spread = [dense(t) for t in wide]
    total = new_empty(wanted, dtypes.int64)
    if total._layout.size:
        _combine(0, spread[0], spread[1], parts[1][1], total._data)
        for flat, (_, n, _) in zip(spread[2:], parts[2:], strict=True):
            _combine(0, total._data, flat, n, total._data)
    return total if all(t._layout.usual for t in whole) else _laid_as(total, wide), dims, pos


def _laid_as(index: Tensor, parts: list[Tensor]) -> Tensor:
    """Return the index in the order in memory that its parts have, which is that of what is picked."""
    wanted = strides.combined(index.shape, [t._layout for t in parts], dtypes.int64)
    return index if wanted is index._layout else relaid.forward(index, wanted)


_FAR = 1 << 62

_views = Memo()


def _key_of(layout: Layout, index: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return what tells the view of a tuple of ints, slices, None and Ellipsis from others; TypeError where there is more to an index."""
    key: list[Any] = [layout]
    for item in index:
        kind = type(item)
        if kind is slice:
            key.append(item.indices(_FAR))  # ends counted from the end stay apart from all others
        elif kind is int or item is None or item is Ellipsis:
            key.append(item)
        else:
            raise TypeError("no key")
    return tuple(key)


def index_lines(more: str = "") -> list[str]:
    """Return ``key``: what an index without tensors, whose class is ``kind``, and ``more`` are known by."""
    return [
        "if kind is int:",
        f"    key = self._layout, index{more}",
        "elif kind is slice:",
        f"    key = self._layout, index.indices(_FAR){more}",
        "elif kind is tuple:",
        f"    key = _key_of(self._layout, index){more}",
        "elif index is None or index is Ellipsis:",
        f"    key = self._layout, index{more}",
        "else:",
        "    raise TypeError",  # (what reads it will say why)
    ]


VIEW_NAMES: dict[str, Any] = {"_FAR": _FAR, "_key_of": _key_of}


def _read(self: Tensor, index: Any, key: Any) -> Any:
    """Return self[index], whose like was not seen."""
    layout = self._layout
    if index.__class__ is int and layout.ndim:
        view, tensors = (_select, 0, _select_number(index, layout.shape, 0)), None
    else:
        view, tensors = read_index(self, index)
    if tensors is None and key is not None and ordinary(layout):
        return look(self, _views.keep(key, recipe_from(view[0], layout, view[1:])))
    out = view[0](self, *view[1:]) if view else self
    if tensors is not None:
        return guarded(pick(out, *advanced_index(out, tensors)), *tensors)
    return out


def _read_by_mask(self: Tensor, mask: Tensor) -> Any:
    """Return self[mask], or self at other single tensors."""
    y = picked_by_mask(pick, self, mask, (mask,))
    return _read(self, mask, None) if y is None else y


_ALL = slice(None)


def _read_others(self: Tensor, index: Any) -> Any:
    """Return self[index] of an index in which there may be tensors."""
    if index.__class__ is tuple and index and index[-1].__class__ is Tensor and index[-1]._layout.dtype is dtypes.int64:
        d = len(index) - 1
        if (
            d < self._layout.ndim
            and (not d or index[0].__class__ is slice)  # else there is nothing to look for
            and all(item.__class__ is slice and item == _ALL for item in index[:d])
        ):
            y = memoized_pick(pick, (self, index[d], (d,), d), d)
            if y is not None:
                return y
    return _read_by_several(self, index)


def items_of(args: tuple[Any, ...]) -> Any:
    """Return the classes of what stands in an index, the second argument: programs index a tensor in many ways."""
    index = args[1]
    return tuple(map(type, index)) if index.__class__ is tuple else index.__class__


@partial(repeated, kinds=items_of)
def _read_by_several(self: Tensor, index: Any) -> Any:
    """Return self[index] of a tuple or list in which there are tensors."""
    return _read(self, index, None)


def _read_by_tensor(self: Tensor, index: Tensor) -> Tensor:
    """Return self[index] of integers, some of which are counted from the end or out of range."""
    layout = self._layout
    return guarded(pick(self, checked_index(index, layout.shape[0], 0, idle=not layout.size), (0,), 0), index)


_getitem = shortcut(
    "self, index", "key", ["return _look(self, plan)"],
    ["if key is None:", "    return _read_others(self, index)", "return _read(self, index, key)"],
    memo=_views, name="__getitem__",
    first=[
        "kind, key = index.__class__, None",
        "if kind is Tensor:",
        "    if self._layout.ndim and index._layout.ndim and index._layout.dtype is _int64:",
        "        y = _memoized_pick(_pick, (self, index, (0,), 0), 0)",
        "        return _read_by_tensor(self, index) if y is None else y",
        "    return _read_by_mask(self, index)",
        "if kind is tuple and index and index[-1].__class__ is Tensor:",
        "    return _read_others(self, index)",
    ],
    before=index_lines(),
    **VIEW_NAMES, Tensor=Tensor, _look=look, _read=_read, _int64=dtypes.int64, _memoized_pick=memoized_pick, _pick=pick,
    _read_by_tensor=_read_by_tensor, _read_by_mask=_read_by_mask, _read_others=_read_others,
)  # fmt: skip
_getitem.__annotations__ = {"index": "Any", "return": "Tensor"}
_read_by_several.public = _getitem  # type: ignore[attr-defined]
Tensor.__getitem__ = _getitem  # type: ignore[assignment]
