"""``x[...]`` and ``x[...] = value``.

Ints, slices, None and Ellipsis make a view. What is left, integer and boolean tensors (lists and arrays become tensors), is
turned into one integer tensor over the indexed dims taken together, so that one gather kernel reads, and one scatter kernel
writes and accumulates, whatever the expression was.

Source: https://docs.pytorch.org/docs/stable/tensor_view.html, https://numpy.org/doc/stable/user/basics.indexing.html
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from .. import dtypes, launch, threads
from ..graph.modes import state
from ..launch import Kernel
from ..shapes import Layout, Size, broadcast_shapes, coalesce, contiguous_strides, layout, numel, view_strides
from ..tensor import Tensor, make, offset_in, rewrite_part
from .cast import cast, clone, copying, dense
from .create import from_numpy, new_empty, new_full, tensor
from .inplace import write_inplace
from .parts import _select
from .plans import InplacePlan
from .recording import mark_inference
from .recording import tensor_type as _tensor_type
from .registry import OPS, public
from .shape import _alias, _with, expand, reshape
from .structured import Structured, structured, tensor_argument
from .views import keep, known, look

_bounds = Kernel("index", "bounds")
_wrap = Kernel("index", "wrap")
_combine = Kernel("index", "combine")
_pick = Kernel("index", "pick")
_pick_within = Kernel("index", "pick_within")
_fill_within = Kernel("index", "fill_within")
_put = Kernel("index", "put")
_count_true = Kernel("index", "count_true")
_true_places = Kernel("index", "true_places")
_unravel = Kernel("index", "unravel")

_INT = np.dtype(np.int64)
SET, ADD, MUL = 0, 1, 2


# ------------------------------------------------------------------------------------------ integers and masks


def checked_index(index: Tensor, n: int, dim: int, negative: bool = True, error: type[Exception] = IndexError) -> Tensor:
    """``index`` as int64 with every element in [0, n), counted from the front.

    Errors: ``error`` for an element out of range; ``negative`` allows counting from the end.
    """
    index = cast(index, dtypes.int64)
    lay = index._layout
    if not lay.size:
        return index
    flat = dense(index)
    span = np.empty(2, _INT)
    _bounds(0, flat, span)
    least = -n if negative else 0

    def inside(span, flat):
        lo, hi = span.tolist()
        if hi >= n or lo < least:
            bad = next(v for v in flat.tolist() if v >= n or v < least)
            raise error(f"index {bad} is out of bounds for dimension {dim} with size {n}")

    launch.check(inside, span, flat, passes=((0, 0, least, n), (0, 1, least, n - 1)))
    if not negative or (launch.observer() is None and span[0] >= 0):
        return index
    out = new_empty(lay.shape, dtypes.int64)
    _wrap(0, flat, n, out._data)
    return out


def true_indices(mask: Tensor) -> Tensor:
    """The flat indices (C order) of the true elements, a 1-d int64 tensor."""
    flat = dense(mask)
    found = np.empty(1, _INT)
    _count_true(0, flat, found)
    launch.escapes("nonzero() or a boolean mask, whose size depends on them")
    out = new_empty((int(found[0]),), dtypes.int64)
    if out._layout.size:
        _true_places(0, flat, out._data)
    return out


@structured()
def _nonzero(x):
    flat = true_indices(OPS["ne"].call(x, 0) if x.dtype is not dtypes.bool_ else x)
    out = new_empty((flat._layout.size, x.ndim), dtypes.int64)
    if out._layout.size:
        _unravel(0, flat._data, np.array(x.shape, _INT), out._data)
    return out


@public()
def nonzero(input, *, out=None, as_tuple=False):
    """The indices of the elements that are not zero: one row each, or with ``as_tuple`` one 1-d tensor per dim.

    Source: https://docs.pytorch.org/docs/stable/generated/torch.nonzero.html
    """
    x = tensor_argument(input, "nonzero")
    if as_tuple:
        return tuple(c.clone() for c in OPS["unbind"].call(_nonzero(x if x.ndim else reshape(x, 1)), 1))
    y = _nonzero(x)
    if out is None:
        return y
    from .recording import store

    return store(out, y, "nonzero")


@public()
def argwhere(input):
    """`nonzero`, one row per element that is not zero."""
    return _nonzero(tensor_argument(input, "argwhere"))


# ------------------------------------------------------------------------------- the gather and scatter of K


class Places:
    """How a tensor of one layout is read as (B0, B1, K, A0, A1): the loops of the kernels in `kernels.index`.

    ``order``: the dims of the tensor as before, indexed, after. ``loops``: the nine numbers of ``dims``, or None where the
    memory must be copied first (in that order, and then ``dense`` says how to read the copy).
    """

    __slots__ = ("copied", "count", "kept", "loops", "order", "size")

    def __init__(self, lay: Layout, dims: tuple[int, ...], pos: int):
        rest = [d for d in range(lay.ndim) if d not in dims]
        self.order = (*rest[:pos], *dims, *rest[pos:])
        self.kept = [lay.shape[d] for d in rest]
        self.count = numel(lay.shape[d] for d in dims)
        self.size = numel(self.kept)
        self.loops = None
        if all(s >= 0 for s in lay.strides):
            self.loops = _loops(lay.shape, lay.strides, rest[:pos], dims, rest[pos:], lay.dtype)
        self.copied: Any = None
        if self.loops is None:
            shape = [lay.shape[d] for d in self.order]
            strides = contiguous_strides(shape)
            n = len(dims)
            ordered = range(len(shape))
            self.copied = layout(shape, None, lay.dtype)
            self.loops = _loops(shape, strides, ordered[:pos], ordered[pos : pos + n], ordered[pos + n :], lay.dtype)


def _loops(shape: Sequence[int], strides: Sequence[int], first: Any, dims: Any, last: Any, d: Any) -> tuple | None:
    if len(dims) == 1:
        step = strides[dims[0]]
    else:
        inner = layout([shape[k] for k in dims], [strides[k] for k in dims], d)
        merged = view_strides(inner, (inner.size,))
        if merged is None:
            return None
        (step,) = merged
    b, (bs,) = coalesce([shape[k] for k in first], [[strides[k] for k in first]])
    a, (as_,) = coalesce([shape[k] for k in last], [[strides[k] for k in last]])
    if len(b) > 2 or len(a) > 2:
        return None
    pad_b, pad_a = 2 - len(b), 2 - len(a)
    # the innermost stride of a loop of one step does not matter; 1 keeps to the quick branch
    tail = [0] * pad_a + as_ if as_ else [0, 1]
    return (*[1] * pad_b, *b, *[1] * pad_a, *a, *[0] * pad_b, *bs, step, *tail)


_places: dict[tuple, Places] = {}
_picked: dict[tuple, tuple[Places, Layout]] = {}  # how a pick reads, and the layout of what it gives


def places(lay: Layout, dims: tuple[int, ...], pos: int) -> Places:
    key = (lay, dims, pos)
    found = _places.get(key)
    if found is None:
        if len(_places) > 5_000:
            _places.clear()
        found = _places[key] = Places(lay, dims, pos)
    return found


def _readable(x: Tensor, p: Places) -> np.ndarray:
    return x._data if p.copied is None else clone(OPS["permute"].call(x, p.order))._data


@structured(x=lambda g, x_shape, index, dims, pos: index_backward(g, index, tuple(x_shape), dims, pos), node="IndexBackward0")
def pick(x, index, dims, pos):
    """The slices of ``x`` at the combined ``index`` of ``dims``, the index's dims standing at place ``pos`` of the others."""
    key = (x._layout, index._layout, dims, pos)
    found = _picked.get(key)
    if found is None:
        if len(_picked) > 5_000:
            _picked.clear()
        p = places(x._layout, dims, pos)
        found = _picked[key] = p, layout([*p.kept[:pos], *index._layout.shape, *p.kept[pos:]], None, x._layout.dtype)
    p, lay = found
    data = launch.empty(lay.size, lay.dtype.carrier)
    if lay.size:
        args = (p.loops, _readable(x, p), dense(index), data)
        if MOVE * lay.size < threads.WORTH:
            _pick(lay.dtype.carrier, *args)
        else:
            _pick.split(lay.dtype.carrier, args, _pick_parts)
    return make(data, lay, [0, 0])


_quick_picks = launch.plan_table()  # (entry point, the kernel's dims and n, the result's layout) of `quick_pick`
_quick_fills = launch.plan_table()  # (entry point, the kernel's dims and n) of `_fill_at`


def quick_pick(op: Structured, args: tuple, d: int) -> Tensor | None:
    """``op(*args)`` of an op that picks slices of args[0] along dim ``d`` at args[1], checked and read by one kernel.

    None where there is more to it: large tensors, other dtypes, indices that are not in [0, n).
    """
    x, index = args[:2]
    key = (x._layout, index._layout, d)
    found = _quick_picks.get(key)
    if found is None:
        if (plan := _quick_plan(*key)) is None:
            return None
        p, lay = plan
        found = None, p.loops, key[0].shape[d], lay
    entry, loops, n, lay = found
    data = launch.empty(lay.size, lay.dtype.carrier)
    try:
        if entry is None:
            _pick_within(lay.dtype.carrier, loops, n, x._data, index._data[: index._layout.size], data)
            keep(_quick_picks, key, (_pick_within.entry(lay.dtype.carrier), loops, n, lay))
        else:
            whole = index._data
            entry(loops, n, x._data, whole if whole.size == index._layout.size else whole[: index._layout.size], data)
    except IndexError:
        return None
    out = make(data, lay, [0, 0])
    if state.grad:
        op.record(args, out)
    elif state.inference:
        mark_inference(out)
    return out


def _quick_plan(lay: Layout, index: Layout, d: int) -> tuple[Places, Layout] | None:
    if lay.__class__ is not Layout or index.__class__ is not Layout:  # of transforms, whose doors stand further in
        return None
    if launch.observing() or index.dtype is not dtypes.int64 or not (index.ndim and index.contiguous and index.size):
        return None
    p = places(lay, (d,), d)
    out = layout([*p.kept[:d], *index.shape, *p.kept[d:]], None, lay.dtype)
    return (p, out) if p.copied is None and out.size and MOVE * out.size < threads.WORTH else None


def _fill_at(x: Tensor, index: Tensor, number: Any) -> bool:
    """x[index] = number, where nothing is recorded and one kernel does it; whether that was all, else nothing has happened."""
    version = x._version_
    if version[0] < 0 or version is index._version_ or (state.grad and (x._rg or x._view is not None)):
        return False
    kind = type(number)
    key = (x._layout, index._layout, kind)
    found = _quick_fills.get(key)
    carrier = x._layout.dtype.carrier
    if found is None:
        kept = x._layout.dtype
        suits = carrier is kept.np and (kept.category == 2 or (kept is dtypes.int64 and kind is int))
        plan = _quick_plan(x._layout, index._layout, 0) if suits and x._layout.ndim else None
        if plan is None:
            return False
        found = None, plan[0].loops, key[0].shape[0]
    entry, loops, n = found
    at = index._data
    if at.size != index._layout.size:
        at = at[: index._layout.size]
    try:
        if entry is None:
            _fill_within((carrier, kind), loops, n, number, at, x._data)
            keep(_quick_fills, key, (_fill_within.entry((carrier, kind)), loops, n))
        else:
            entry(loops, n, number, at, x._data)
    except (IndexError, OverflowError):
        return False
    version[0] += 1
    return True


def _pick_parts(args: tuple) -> list[tuple]:
    """Pieces of a pick: of the outermost dim before the indexed one, or of the indices."""
    dims, x, index, out = args
    n0, n1, m0, m1, s0, s1 = dims[:6]
    one, work = m0 * m1, MOVE * out.size
    whole = index.size * one
    if n0 * n1 == 1:
        return [(dims, x, index[i:j], out[i * one : j * one]) for i, j in threads.pieces(index.size, work)]
    if n0 == 1:
        return [((1, j - i, *dims[2:]), x[i * s1 :], index, out[i * whole : j * whole]) for i, j in threads.pieces(n1, work)]
    whole *= n1
    return [((j - i, *dims[1:]), x[i * s0 :], index, out[i * whole : j * whole]) for i, j in threads.pieces(n0, work)]


@structured(x=lambda g, index, dims, pos: pick(g, index, dims, pos))
def index_backward(x, index, shape, dims, pos):
    """Zeros of ``shape`` with ``x`` added at the indexed places; places named twice collect both."""
    z = new_full(shape, 0, x.dtype)
    add_at(z, x, index, dims, pos)
    return z


def add_at(z: Tensor, value: Tensor, index: Tensor, dims: tuple[int, ...], pos: int) -> None:
    write_at(z, value, index, dims, pos, ADD)


def write_at(x: Tensor, value: Tensor, index: Tensor, dims: tuple[int, ...], pos: int, mode: int) -> None:
    """x[index] (op)= value in memory, without history; ``value`` broadcasts to the shape of the pick."""
    p = places(x._layout, dims, pos)
    shape = [*p.kept[:pos], *index._layout.shape, *p.kept[pos:]]
    if not numel(shape):
        return
    if x.dtype is dtypes.float16 and mode != SET:
        wide = cast(x, dtypes.float32)
        write_at(wide, cast(value, dtypes.float32), index, dims, pos, mode)
        x.copy_(wide)
        return
    if p.copied is not None:
        inverse = [0] * x.ndim
        for i, d in enumerate(p.order):
            inverse[d] = i
        moved = clone(OPS["permute"].call(x, p.order))
        write_at(moved, value, index, tuple(range(pos, pos + len(dims))), pos, mode)
        x.copy_(OPS["permute"].call(moved, inverse))
        return
    if value._layout.size == 1:
        strides = (0, 0, 0, 0, 0)
        data = value._data
    else:
        if tuple(value._layout.shape) != tuple(shape):
            value = expand(value, shape)
        data = dense(value)
        _, n1, m0, m1 = p.loops[:4]
        row = m0 * m1
        strides = (index._layout.size * row * n1, index._layout.size * row, row, m1, 1)
    args = (p.loops + strides, mode, data, dense(index), x._data)
    if MOVE * numel(shape) < threads.WORTH:
        _put(x.dtype.carrier, *args)
    else:
        _put.split(x.dtype.carrier, args, _put_parts)


def _put_parts(args: tuple) -> list[tuple]:
    """Pieces of a put: of the innermost dim behind the indexed one, so that what meets in a place meets in the same order."""
    dims, mode, value, index, out = args
    m1, t1, w1 = dims[3], dims[8], dims[13]
    if m1 < 4 * COLUMNS:
        return [args]
    cuts = threads.cut(m1, threads.settings.threads, COLUMNS)
    return [((*dims[:3], j - i, *dims[4:]), mode, value[i * w1 :], index, out[i * t1 :]) for i, j in cuts]


MOVE = 8  #: what an element that is found by an index costs, see `threads.WORTH`
COLUMNS = 16  #: what is cut in pieces of a put: elements of a cache line


def _fitted(g: Tensor, shape: Sequence[int]) -> Tensor:
    return g if tuple(g.shape) == tuple(shape) else g.sum_to_size(shape)


@structured(
    x=lambda g, index, dims, pos, accumulate: g if accumulate else zero_at(g, index, dims, pos),
    value=lambda g, index, dims, pos, value_shape: _fitted(pick(g, index, dims, pos), value_shape),
    node="IndexPutBackward0",
)
def index_put_op(x, index, value, dims, pos, accumulate):
    y = clone(x)
    write_at(y, value, index, dims, pos, ADD if accumulate else SET)
    return y


def _write_put(x: Tensor, index: Tensor, value: Tensor, dims: tuple[int, ...], pos: int, accumulate: bool) -> None:
    write_at(x, value, index, dims, pos, ADD if accumulate else SET)


@structured(x=lambda g, index, dims, pos: zero_at(g, index, dims, pos))
def zero_at(x, index, dims, pos):
    """A copy of ``x`` with zeros at the indexed places."""
    y = clone(x)
    write_at(y, new_full((), 0, x.dtype), index, dims, pos, SET)
    return y


# ----------------------------------------------------------------------------------- reading index expressions


def _as_index(value: Any) -> Any:
    """A list, array or other sequence of an index expression as a tensor."""
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
    """Whether a list stands for a tuple of indices, as in PyTorch: it holds a slice, None or Ellipsis."""
    return len(value) < 32 and any(v is None or v is Ellipsis or isinstance(v, slice) for v in value)


def split_index(x: Tensor, index: Any) -> tuple[Tensor, list | None]:
    """(the view that the basic part of ``index`` makes, the tensor index of each of its dims or None)."""
    view, tensors = read_index(x, index)
    return (view[0](x, *view[1:]) if view else x), tensors


def read_index(x: Tensor, index: Any) -> tuple[tuple, list | None]:
    """((the op that makes the view of the basic part of ``index``, its arguments) or (), the tensor index of each dim or None)."""
    if index.__class__ is not tuple:
        index = tuple(index) if isinstance(index, tuple) or (isinstance(index, list) and _is_tuple(index)) else (index,)
    ndim = x._layout.ndim
    taken = 0  # dims of x that the expression names
    items: list = []
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
        elif isinstance(item, (np.bool_, np.integer)):
            item = item.item()
            taken += item.__class__ is int
        elif isinstance(item, (list, tuple, range, np.ndarray)):
            item = _as_index(item)
            taken += item.ndim if item.dtype in (dtypes.bool_, dtypes.uint8) and item.ndim else 1
        elif hasattr(item, "__index__") and not isinstance(item, (float, str)):
            item = operator.index(item)
            taken += 1
        elif hasattr(item, "__array__"):
            item = _as_index(np.asarray(item))
            taken += item.ndim if item.dtype is dtypes.bool_ else 1
        else:
            _as_index(item)
        items.append(item)
    if taken > ndim:
        if not ndim and len(items) == 1:
            if isinstance(items[0], slice):
                raise IndexError("slice() cannot be applied to a 0-dim tensor.")
            if isinstance(items[0], int):
                raise IndexError(
                    "invalid index of a 0-dim tensor. Use `tensor.item()` in Python or `tensor.item<T>()` in C++ to convert a "
                    "0-dim tensor to a number"
                )
        raise IndexError(f"too many indices for tensor of dimension {ndim} (the index names {taken} dims)")
    # the view as a recipe: for each dim an int (select), (start, count, step), or None (a new dim)
    lay = x._layout
    recipe: list = []
    tensors: list = []  # for each dim of the view
    dim = 0
    last = ""
    seen = False
    for item in items:
        kind = item.__class__
        if kind is int:
            recipe.append(_select_number(item, lay.shape, dim))
            dim += 1
            last = "select"
        elif kind is slice:
            n = lay.shape[dim]
            part = _slice_part(item, n)
            recipe.append(part)
            tensors.append(None)
            if part[1] != n or part[2] != 1:
                last = "slice"
            dim += 1
        elif item is Ellipsis:
            more = 0 if seen else ndim - taken
            seen = True
            recipe.extend([(0, n, 1) for n in lay.shape[dim : dim + more]])
            tensors.extend([None] * more)
            dim += more
        elif item is None:
            recipe.append(None)
            tensors.append(None)
            last = "unsqueeze"
        elif kind is bool:
            recipe.append(None)
            tensors.append(new_full((1,) if item else (0,), 0, dtypes.int64))
            last = last or "unsqueeze"
        else:
            d = item._layout.dtype
            if d.category > 1 or d is dtypes.int16 or d is dtypes.int8:
                raise IndexError(_KINDS + f" (got {d.name})")
            k = item._layout.ndim
            if d is not dtypes.bool_ and d is not dtypes.uint8:
                if k == 0:
                    launch.escapes("a tensor as an index; a 1-d one, or index_select(), need not be read")
                    recipe.append(_select_number(int(item._data[0]), lay.shape, dim))
                    last = "select"
                else:
                    recipe.append((0, lay.shape[dim], 1))
                    tensors.append(item)
                dim += 1
            elif k == 0:
                launch.escapes("a boolean tensor as an index")
                recipe.append(None)
                tensors.append(new_full((1,) if item._data[0] else (0,), 0, dtypes.int64))
                last = last or "unsqueeze"
            else:
                for i in range(k):
                    if item._layout.shape[i] != lay.shape[dim + i]:
                        raise IndexError(
                            f"The shape of the mask {list(item._layout.shape)} at index {i} does not match the shape of the "
                            f"indexed tensor {list(lay.shape)} at index {dim + i}"
                        )
                recipe.extend([(0, n, 1) for n in item._layout.shape])
                tensors.append(item if d is dtypes.bool_ else OPS["ne"].call(item, 0))
                tensors.extend([_COVERED] * (k - 1))
                dim += k
    recipe.extend([(0, n, 1) for n in lay.shape[dim:]])
    tensors.extend([None] * (ndim - dim))
    advanced = any(t is not None for t in tensors)
    if last:
        return (_VIEWS[last], tuple(recipe)), tensors if advanced else None
    return ((), tensors) if advanced else ((_alias,), None)


_COVERED = object()  #: a further dim of a mask of several dims


def _select_number(i: int, shape: Sequence[int], dim: int) -> int:
    n = shape[dim]
    if not -n <= i < n:
        raise IndexError(f"index {i} is out of bounds for dimension {dim} with size {n}")
    return i + n if i < 0 else i


def _slice_part(s: slice, n: int) -> tuple[int, int, int]:
    """(start, how many, step) of a slice of n elements."""
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


def _follow(x: Tensor, recipe: tuple) -> Tensor:
    lay = x._layout
    shape: list[int] = []
    strides: list[int] = []
    offset = dim = 0
    for part in recipe:
        if part.__class__ is int:
            offset += part * lay.strides[dim]
            dim += 1
        elif part is None:
            shape.append(1)
            strides.append(lay.shape[dim] * lay.strides[dim] if dim < lay.ndim else 1)
        else:
            start, count, step = part
            if count:
                offset += start * lay.strides[dim]
            shape.append(count)
            strides.append(lay.strides[dim] * step)
            dim += 1
    if offset and 0 in shape:
        offset = 0
    return _with(x, shape, strides, offset)


@structured(x=lambda g, recipe: _VIEWS["slice"](g, recipe))
def _basic_backward(x, shape, recipe):
    z = new_full(shape, 0, x.dtype)
    _follow(z, recipe).copy_(x)
    return z


def _basic(name: str) -> Any:
    def forward(x, recipe):
        return _follow(x, recipe)

    forward.__name__ = "basic_" + name
    rule = {"x": lambda g, x_shape, recipe: _basic_backward(g, tuple(x_shape), recipe)}
    return structured(view=True, node=name.capitalize() + "Backward0", **rule)(forward)  # type: ignore[arg-type]


_VIEWS = {name: _basic(name) for name in ("select", "slice", "unsqueeze")}


def advanced_index(view: Tensor, tensors: list) -> tuple[Tensor, tuple[int, ...], int]:
    """(the combined index, the dims it indexes, where its dims go) of the tensor indices of a view's dims."""
    shape = view._layout.shape
    dims = tuple([d for d, t in enumerate(tensors) if t is not None])
    adjacent = dims[-1] - dims[0] == len(dims) - 1
    first = tensors[dims[0]]
    if len(dims) == 1:
        if first._layout.dtype is dtypes.bool_:
            return true_indices(first), dims, dims[0]
        return checked_index(first, shape[dims[0]], dims[0]), dims, dims[0]
    if first._layout.dtype is dtypes.bool_ and first._layout.ndim == len(dims):
        return true_indices(first), dims, dims[0]
    # (index, number of elements it counts in) of each run of dims
    parts: list[tuple[Tensor, int]] = []
    for d in dims:
        t = tensors[d]
        if t is _COVERED:
            continue
        if t._layout.dtype is dtypes.bool_:
            parts.append((true_indices(t), t._layout.size))
        else:
            parts.append((checked_index(t, shape[d], d), shape[d]))
    try:
        wanted = broadcast_shapes(*[t._layout.shape for t, _ in parts])
    except RuntimeError:
        raise IndexError(
            "shape mismatch: indexing tensors could not be broadcast together with shapes "
            + ", ".join(str(list(t._layout.shape)) for t, _ in parts)
        ) from None
    spread = [dense(t if t._layout.shape == wanted else expand(t, wanted)) for t, _ in parts]
    total = new_empty(wanted, dtypes.int64)
    if total._layout.size:
        _combine(0, spread[0], spread[1], parts[1][1], total._data)
        for flat, (_, n) in zip(spread[2:], parts[2:], strict=True):
            _combine(0, total._data, flat, n, total._data)
    return total, dims, dims[0] if adjacent else 0


# ------------------------------------------------------------------------------------------------- the methods


_recipes = launch.plan_table()
_FAR = 1 << 62


def _key_of(lay: Layout, index: tuple) -> tuple | None:
    """What tells the view of a tuple of ints, slices, None and Ellipsis from others; None where there is more to an index."""
    key: list = [lay]
    for item in index:
        kind = type(item)
        if kind is slice:
            key.append(item.indices(_FAR))  # ends counted from the end stay apart from all others
        elif kind is int or item is None or item is Ellipsis:
            key.append(item)
        else:
            return None
    return tuple(key)


def _getitem(self: Tensor, index: Any) -> Tensor:
    kind = type(index)
    lay = self._layout
    key: Any = None
    if kind is int:
        key = (lay, index)
    elif kind is Tensor:
        if lay.ndim and index._layout.ndim and index._layout.dtype is dtypes.int64:
            y = quick_pick(pick, (self, index, (0,), 0), 0)
            return pick(self, checked_index(index, lay.shape[0], 0), (0,), 0) if y is None else y
    else:
        try:
            if kind is slice:
                key = (lay, index.indices(_FAR))
            elif kind is tuple:
                key = _key_of(lay, index)
        except (TypeError, ValueError):
            pass  # no index; what reads it will say why
    recipe = _recipes.get(key)
    if recipe is not None:
        return look(self, recipe)
    if kind is int and lay.ndim:
        view, tensors = (_select, 0, _select_number(index, lay.shape, 0)), None
    else:
        view, tensors = read_index(self, index)
    out = view[0](self, *view[1:]) if view else self
    if tensors is not None:
        return pick(out, *advanced_index(out, tensors))
    if key is not None and not launch.observing():
        keep(_recipes, key, known(view[0], lay, view[1:]))
    return out


def _plain_number(value: Any) -> Any:
    """A Python number for what stands for one, else None."""
    if isinstance(value, (bool, int, float, complex)):
        return value
    if isinstance(value, np.generic) or (isinstance(value, np.ndarray) and value.ndim == 0 and value.dtype.kind in "biuf"):
        return value.item()
    return None


def _value_tensor(self: Tensor, value: Any) -> Tensor:
    """What is assigned as a tensor; a number takes the target's dtype."""
    if isinstance(value, Tensor):
        return value
    number = _plain_number(value)
    if number is None:
        kind = ("numpy." if isinstance(value, np.ndarray) else "") + type(value).__name__
        raise TypeError(f"can't assign a {kind} to a torch.{_tensor_type(self.dtype)} (make it a tensor first)")
    return new_full((), number, self.dtype)


_assignments = launch.plan_table()


def _setitem(self: Tensor, index: Any, value: Any) -> None:
    kind = type(index)
    key: Any = None
    if kind is int or kind is slice or kind is tuple:
        of: Any = type(value)
        if of is not int and of is not float:
            of = value._layout if isinstance(value, Tensor) else None
        if kind is int:
            key = (self._layout, index, of)
        else:
            try:
                view_key = _key_of(self._layout, index if kind is tuple else (index,))
                key = None if view_key is None else (view_key, of)
            except (TypeError, ValueError):
                pass  # no index; what reads it will say why
        found = _assignments.get(key)
        if found is not None and _assign(self, value, found):
            return
    elif (
        kind is Tensor
        and index._layout.dtype is dtypes.int64
        and (type(value) is float or type(value) is int)
        and _fill_at(self, index, value)
    ):
        return
    number = None if isinstance(value, Tensor) else _plain_number(value)
    if number is None:
        value = _value_tensor(self, value)
    elif index.__class__ is Tensor and index._layout.dtype is dtypes.bool_ and index._layout.shape == self._layout.shape:
        OPS["masked_fill_"].call(self, index, int(number) if self._layout.dtype.category < 2 else number)
        return
    view, tensors = split_index(self, index)
    if tensors is None:
        if number is not None:
            view.fill_(number)
        else:
            view.copy_(_stripped(value, view._layout.shape))
        if key is not None and not launch.observing():
            _remember(key, self, view, value)
        return
    if number is not None:
        value = new_full((), number, self.dtype)
    elif value.dtype is not self.dtype:
        if value._layout.ndim:
            raise RuntimeError(
                f"Index put requires the source and destination dtypes match, got {_kind(self.dtype)} for the destination and "
                f"{_kind(value.dtype)} for the source."
            )
        value = cast(value, self.dtype)
    place = advanced_index(view, tensors)
    put_in_place(view, *place, value, False)


def _remember(key: tuple, x: Tensor, view: Tensor, value: Any) -> None:
    """Keep what an assignment of such a value to such a view takes: (slice of the memory, plan, the view's layout, offset)."""
    lay, offset = view._layout, offset_in(view, x)
    plan = copying.inplace_plans.get((lay, key[-1]))
    if plan is None and isinstance(value, Tensor) and value._layout.ndim <= lay.ndim:  # it was expanded
        plan = copying.inplace_plans[lay, key[-1]] = InplacePlan(copying, (lay, key[-1]))
    if plan is not None and offset >= 0:
        keep(_assignments, key, (slice(offset, offset + (lay.size if lay.contiguous else lay.extent)), plan, lay, offset))


def _assign(x: Tensor, value: Any, found: tuple) -> bool:
    """x[…] = value without a view; whether that was all, else nothing has happened."""
    cut, plan, part, offset = found
    version = x._version_
    if version[0] < 0:
        return False
    number = type(value) is int or type(value) is float
    if not number and value._version_ is version:
        return False
    node: Any = False
    if (
        (x._rg or x._view is not None or not (number or (not value._rg and value._view is None)))
        and state.grad
        and (x._rg or (x._view is not None and x._view._rg) or not (number or not value.requires_grad))
    ):
        if x._view is not None or (x._rg and x._edge is None):
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
        rewrite_part(x, node, part, offset)
    return True


def _kind(d: Any) -> str:
    return _tensor_type(d).removesuffix("Tensor")


def _stripped(value: Tensor, shape: Size) -> Tensor:
    """``value`` without leading dims of size 1 that ``shape`` lacks, expanded to it."""
    lay = value._layout
    extra = lay.ndim - len(shape)
    if extra > 0 and all(n == 1 for n in lay.shape[:extra]):
        value = reshape(value, lay.shape[extra:])
    if value._layout.shape != shape:
        value = expand(value, shape)
    return value


def _mismatch(value: Tensor, wanted: Sequence[int]) -> RuntimeError:
    return RuntimeError(
        f"shape mismatch: value tensor of shape {list(value.shape)} cannot be broadcast to indexing result of shape "
        f"{list(wanted)}"
    )


def put_in_place(view: Tensor, index: Tensor, dims: tuple[int, ...], pos: int, value: Tensor, accumulate: bool) -> Tensor:
    """view[index] = value (or += value), recorded; ``value`` broadcasts to the indexed shape."""
    shape = view._layout.shape
    rest = [shape[d] for d in range(len(shape)) if d not in dims]
    wanted = Size([*rest[:pos], *index._layout.shape, *rest[pos:]])
    try:
        # only what matters for the loops: the kernel itself broadcasts a single element
        if value._layout.size != 1 or value._layout.ndim > len(wanted):
            value = _stripped(value, wanted)
    except RuntimeError:
        raise _mismatch(value, wanted) from None
    return write_inplace(index_put_op, _write_put, view, index, value, dims, pos, accumulate)


Tensor.__getitem__ = _getitem  # type: ignore[method-assign]
Tensor.__setitem__ = _setitem  # type: ignore[method-assign]


def _indices_argument(x: Tensor, indices: Any, name: str) -> tuple[Tensor, tuple[Tensor, tuple[int, ...], int]]:
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


def _put_value(x: Tensor, values: Any) -> Tensor:
    tensor_argument(values, "index_put", "values")
    if values.dtype is not x.dtype:
        raise RuntimeError(
            f"Index put requires the source and destination dtypes match, got {_kind(x.dtype)} for the destination and "
            f"{_kind(values.dtype)} for the source."
        )
    return values


@public(kind="inplace")
def index_put_(input, indices, values, accumulate=False):
    """``input[indices] = values`` for a tuple of index tensors; with ``accumulate`` they are added, duplicates too."""
    x = tensor_argument(input, "index_put_")
    values = _put_value(x, values)
    view, place = _indices_argument(x, indices, "index_put_")
    put_in_place(view, *place, values, bool(accumulate))
    return x


@public()
def index_put(input, indices, values, accumulate=False):
    """Out-of-place version of `index_put_`: y = x with y[indices] = values; d/dvalues gathers, d/dx is 0 where overwritten."""
    x = tensor_argument(input, "index_put")
    values = _put_value(x, values)
    view, (index, dims, pos) = _indices_argument(x, indices, "index_put")
    p = places(view._layout, dims, pos)
    wanted = [*p.kept[:pos], *index.shape, *p.kept[pos:]]
    try:
        values = _stripped(values, Size(wanted))
    except RuntimeError:
        raise _mismatch(values, wanted) from None
    return reshape(index_put_op(view, index, values, dims, pos, bool(accumulate)), x.shape)
