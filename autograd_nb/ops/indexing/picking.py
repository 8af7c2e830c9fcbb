"""Elements picked by one integer tensor over some dims taken together, and written there: the kernels of all indexing."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ... import dtypes, launch, strides
from ...codegen import threads
from ...graph.node import tensor_lines
from ...launch import Kernel
from ...overriding import overridable, whole
from ...shapes import Layout, coalesce, contiguous_strides, is_expanded, layout_of, numel, view_strides
from ...tensor import Tensor, make
from ..core.call_path import planned, shortcut
from ..core.memo import Memo, sought
from ..core.numbers import SINGLE, number_as, plain_number
from ..core.registry import OPS
from ..core.structured import Structured, structured
from ..creation.cast import cast, clone, copied, dense, relaid
from ..creation.create import new_empty, new_full
from ..shape.shape import expand, reshape
from .along_index import NARROW

_bounds = Kernel("indexing.index", "bounds")
_wrap = Kernel("indexing.index", "wrap")
_combine = Kernel("indexing.index", "combine")
_place = Kernel("indexing.index", "place")
_pick = Kernel("indexing.index", "pick")
_pick_within = Kernel("indexing.index", "pick_within")
_fill_within = Kernel("indexing.index", "fill_within")
_put = Kernel("indexing.index", "put")

_INT = np.dtype(np.int64)
SET, ADD, MUL = 0, 1, 2


# ---------------------------------------------------------------------------------------------------- integers


def check_bounds(index: Tensor, n: int, refusal: Callable[[int, int], Exception]) -> None:
    """Raise ``refusal(least, greatest)`` where an element of an int64 tensor with elements is not in [0, n)."""
    span = np.empty(2, _INT)
    _bounds(0, dense(index), span)

    def inside(span):
        low, high = span.tolist()
        if low < 0 or high >= n:
            raise refusal(low, high)

    launch.check(inside, span, passes=((0, 0, 0, n - 1), (0, 1, 0, n - 1)))


@overridable
def checked_index(
    index: Tensor, n: int, dim: int, negative: bool = True, error: type[Exception] = IndexError, idle: bool = False
) -> Tensor:
    """Return ``index`` as int64 with every element in [0, n), counted from the front.

    Errors: ``error`` for an element out of range; ``negative`` allows counting from the end. ``idle``: no element will be read or
    written, so that PyTorch looks at the size only.
    """
    index = cast(index, dtypes.int64)
    layout = index._layout
    if not layout.size or (idle and n):
        return index
    flat = dense(_once(index) if 0 in layout.strides else index)
    span = np.empty(2, _INT)
    _bounds(0, flat, span)
    least = -n if negative else 0

    def inside(span, flat):
        lo, hi = span.tolist()
        if hi >= n or lo < least:
            bad = next(v for v in flat.tolist() if v >= n or v < least)
            if not n:
                raise error(f"index is out of bounds for dimension with size 0 (index {bad} at dimension {dim})")
            raise error(f"index {bad} is out of bounds for dimension {dim} with size {n}")

    launch.check(inside, span, flat, passes=((0, 0, least, n), (0, 1, least, n - 1)))
    if not negative or launch.holds(span, 0, 0, n - 1):
        return index
    out = new_empty(layout.shape, dtypes.int64)
    _wrap(0, dense(index), n, out._data)
    return out


def _once(x: Tensor) -> Tensor:
    """Return what an expanded tensor is made of."""
    return make(x._data, once(x._layout), x._version_)


def once(layout: Layout) -> Layout:
    """Return the layout of what an expanded tensor is made of."""
    shape = tuple([n if step else 1 for n, step in zip(layout.shape, layout.strides, strict=True)])
    return layout_of(shape, layout.strides, layout.dtype)


def checked_rows(index: Tensor, x: Tensor, d: int, name: str, negative: bool = False) -> Tensor:
    """Return indices of whole slices of ``x`` along ``d``, counted from the front; ``negative``: they may be given counted from the end.

    Errors: IndexError for one out of range, or RuntimeError, as the kernels of PyTorch's op called ``name`` have it.
    """
    n = x._layout.sizes[d] if x._layout.ndim else 1
    try:
        return checked_index(index, n, d, negative)
    except IndexError as e:
        kind, text = _outside(x, d, n, name.rstrip("_"))
        raise kind(f"{text} ({name}(): {e})") from None


def _outside(x: Tensor, d: int, n: int, name: str) -> tuple[type[Exception], str]:
    """Return what an index out of range is refused with: (type, PyTorch's key phrase)."""
    usual = IndexError, "index out of range in self"
    if name in ("index_fill", "index_copy") and not n:
        return RuntimeError, "setStorage: out of bounds for storage of size 0"
    if name == "index_add" and x._layout.ndim > 1 and d in (0, x._layout.ndim - 1):  # which PyTorch does by scatter_add
        return RuntimeError, f"index out of bounds for dimension {d} with size {n}"
    if name not in ("index_select", "embedding") or x._layout.ndim < 2:
        return usual
    if not n:
        return RuntimeError, "index_select(): self indexing axis dim should be positive"
    if d == 1 or not x._layout.size:
        return RuntimeError, f"INDICES element is out of DATA bounds, axis_dim={n}"
    return usual


def filling(value: Any, d: dtypes.dtype, name: str) -> Any:
    """Return what is written over elements of a tensor: a number as ``d`` keeps it, or a 0-d tensor of a dtype that ``d`` can hold.

    Errors: TypeError for what is neither, and those of `number_as`, also for what a tensor of a wider dtype holds.
    """
    if isinstance(value, Tensor):
        if value.ndim:
            raise RuntimeError(
                f"{name} only supports a 0-dimensional value tensor, but got tensor with {value.ndim} dimension(s)."
            )
        kind = value.dtype
        narrower = kind.category > d.category or (kind.category == d.category == 1 and kind is not d)
        if d is not dtypes.bool_ and narrower:
            return number_as(value.item(), d, name)
        return cast(value, d)
    number = plain_number(value)
    if number is None:
        raise TypeError(f"{name}(): argument 'value' must be Tensor or a number, not {type(value).__name__}")
    return number_as(number, d, name)


# -------------------------------------------------------------------------------------------- reading and writing


APART = 4  #: dims that lie apart in memory and are indexed together without a copy


class Places:
    """The way in which a tensor of one layout is read as (B0, B1, K, A0, A1): the loops of the kernels in `kernels.indexing.index`.

    ``order``: the dims of the tensor as before, indexed, after. ``loops``: the nine numbers of ``dims``. ``apart``: sizes and strides
    of indexed dims that are no single dim in memory, by which an index becomes one of elements. Where neither can be, the memory must
    be copied first (in that order, and then ``copied`` says how to read the copy).
    """

    apart: tuple[int, ...] | None

    kept: list[Any]

    count: int
    order: tuple[int, ...]
    size: int

    __slots__ = ("apart", "copied", "count", "kept", "loops", "order", "size")

    def __init__(self, layout: Layout, dims: tuple[int, ...], pos: int):
        sizes = layout.sizes
        self.copied: Any = None
        self.apart = None
        self.loops: tuple[Any, ...] | None
        if len(dims) == 1 and dims[0] == pos and layout.usual and layout.size:  # the commonest
            before, n, behind = sizes[:pos], sizes[pos], sizes[pos + 1 :]
            self.order, self.kept, self.count = tuple(range(len(sizes))), [*before, *behind], n
            outer, inner = math.prod(before), math.prod(behind)
            self.size = outer * inner
            self.loops = (1, outer, 1, inner, 0, n * inner if outer > 1 else 0, inner, 0, 1)
            return
        rest = [d for d in range(layout.ndim) if d not in dims]
        self.order = (*rest[:pos], *dims, *rest[pos:])
        self.kept = [sizes[d] for d in rest]
        self.count = numel(sizes[d] for d in dims)
        self.size = numel(self.kept)
        self.loops = None
        if all(s >= 0 for s in layout.strides):
            self.loops = _loops(sizes, layout.strides, rest[:pos], dims, rest[pos:], layout.dtype)
            if self.loops is None and len(dims) <= APART:
                self.loops = _loops(sizes, layout.strides, rest[:pos], (), rest[pos:], layout.dtype)
                more = APART - len(dims)
                self.apart = (*[1] * more, *[sizes[d] for d in dims], *[0] * more, *[layout.strides[d] for d in dims])
        if self.loops is None:
            shape = [layout.shape[d] for d in self.order]
            strides = contiguous_strides(shape)
            n = len(dims)
            ordered = range(len(shape))
            self.copied = layout_of(shape, None, layout.dtype)
            self.loops = _loops(shape, strides, ordered[:pos], ordered[pos : pos + n], ordered[pos + n :], layout.dtype)

    @property
    def direct(self) -> bool:
        """Return whether a kernel takes the tensor's memory and a combined index as they are."""
        return self.apart is None and self.copied is None


def _loops(shape: Sequence[int], strides: Sequence[int], first: Any, dims: Any, last: Any, d: Any) -> tuple[Any, ...] | None:
    if not dims:
        step = 1
    elif len(dims) == 1:
        step = strides[dims[0]]
    else:
        inner = layout_of([shape[k] for k in dims], [strides[k] for k in dims], d)
        merged = view_strides(inner, (inner.size,))
        if merged is None:
            return None
        (step,) = merged
    b, (bs,) = coalesce([shape[k] for k in first], [[strides[k] for k in first]])
    a, (as_,) = coalesce([shape[k] for k in last], [[strides[k] for k in last]])
    if len(b) > 2 or len(a) > 2:
        return None
    pad_b, pad_a = 2 - len(b), 2 - len(a)
    # the innermost stride of a loop of one step does not matter; 1 keeps to the short branch
    tail = [0] * pad_a + as_ if as_ else [0, 1]
    return (*[1] * pad_b, *b, *[1] * pad_a, *a, *[0] * pad_b, *bs, step, *tail)


@planned
def places(layout: Layout, dims: tuple[int, ...], pos: int) -> Places:
    """Return how a tensor of this layout is read along ``dims``, whose index stands at ``pos`` of the others."""
    return Places(layout, dims, pos)


@planned
def _reading(layout: Layout, index: Layout, dims: tuple[int, ...], pos: int) -> tuple[Places, Layout]:
    """Return how a pick reads, and the layout of what it gives."""
    p = places(layout, dims, pos)
    return p, layout_of([*p.kept[:pos], *index.shape, *p.kept[pos:]], None, layout.dtype)


def _pointing(index: Tensor, p: Places) -> np.ndarray:
    """Return the combined index as the kernels read it: counting the elements between places where its dims lie apart."""
    if p.apart is None or p.copied is not None:
        return dense(index)
    found = new_empty(index._layout.shape, dtypes.int64)
    _place(0, dense(index), p.apart, found._data)
    return found._data


def _readable(x: Tensor, p: Places) -> np.ndarray:
    return x._data if p.copied is None else clone(OPS["permute"].call(x, p.order))._data


@structured(
    x=lambda g, x_shape, index, dims, pos: index_backward(g, index, tuple(x_shape), dims, pos), node="IndexBackward0",
    linear="no",
    samples="x(3, 4)[index(3, 5)]",
)
def pick(x, index, dims, pos):
    """Return the slices of ``x`` at the combined ``index`` of ``dims``, the index's dims standing at place ``pos`` of the others.

    The dims of ``x`` that are not indexed keep their order in memory, and so do those of the index.
    """
    y = picked(x, index, dims, pos)
    layout = x._layout
    if ((layout.usual or layout.ndim - len(dims) < 2) and index._layout.usual) or not y._layout.size:
        return y
    rest = [d for d in range(layout.ndim) if d not in dims]
    steps, at = [layout.strides[d] for d in rest], index._layout
    source = layout_of(y.shape, [*steps[:pos], *[0] * at.ndim, *steps[pos:]], layout.dtype)
    around = (*[1] * pos, *at.shape, *[1] * (len(rest) - pos))  # in which the index is read
    spread = layout_of(around, view_strides(at, around), layout.dtype)
    wanted = strides.combined(y.shape, [source, spread], layout.dtype)
    return y if wanted is y._layout else relaid.forward(y, wanted)


def picked(x: Tensor, index: Tensor, dims: tuple[int, ...], pos: int) -> Tensor:
    """Return what `pick` gives, in C order."""
    p, layout = _reading(x._layout, index._layout, dims, pos)
    data = launch.empty(layout.size, layout.dtype.carrier)
    if layout.size:
        args = (p.loops, _readable(x, p), _pointing(index, p), data)
        if threads.alone(threads.PICKED * layout.size):
            _pick(layout.dtype.carrier, *args)
        else:
            _pick.split(layout.dtype.carrier, args, _pick_parts)
    return make(data, layout, [0, 0])


# An index counts in C order through the dims that it indexes. Where each sample has its own, the batch is one more of them.


def index_of_batch(index: Tensor, x_shape: Any, dims: tuple[int, ...], size: int) -> Tensor:
    """Return the indices [B, …] of samples into their own x, as indices into the samples' x behind one another."""
    count = numel(x_shape[d] for d in dims)
    return index + (OPS["arange"].call(size) * count).reshape(size, *[1] * (index.ndim - 1))


def _later(dims: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(d + 1 for d in dims)


@pick.batched
def _pick_of_batch(op, args, batch):
    x, index, dims, pos = args
    (xv, in_x), (iv, in_i) = batch.of(x), batch.of(index)
    if not in_i:
        return op(xv, iv, _later(dims), pos + 1)
    if not in_x:
        return op(xv, iv, dims, pos).movedim(pos, 0)
    return op(xv, index_of_batch(iv, x.shape, dims, batch.size), (0, *_later(dims)), pos).movedim(pos, 0)


_picks, _fills = Memo(), Memo()


class _PickedWithin(threads.Split):
    """A pick that looks whether the indices are in range, in pieces."""

    __slots__ = ()

    def parts(self, args: tuple[Any, ...]) -> list[tuple[Any, ...]]:
        dims, n, *arrays = args
        return [(dims, n, *arrays) for dims, *arrays in _pick_parts((dims, *arrays))]


def _plan_pick(x: Tensor, index: Tensor, d: int) -> tuple[Any, ...] | None:
    """Return (entry point, the kernel's dims and n, the result's layout) of `memoized_pick`."""
    key = (x._layout, index._layout, d)
    if (plan := _pick_plan(*key)) is None:
        return None
    (p, layout), n = plan, x._layout.shape[d]
    entry: Any = _pick_within.entry(layout.dtype.carrier, p.loops, n, x._data, index._data, x._data)
    if not threads.alone(threads.PICKED * layout.size):
        entry = _PickedWithin(entry)
    return _picks.keep(key, (entry, p.loops, n, layout))  # type: ignore[no-any-return]


#: the flat memory of an index, which may go on behind it
_AT = ["at = index._data", "if at.size != index._layout.size:", "    at = at[: index._layout.size]"]

#: memoized_pick(op, args, d): ``op(*args)`` of an op that picks slices of args[0] along dim ``d`` at args[1], checked and read by one kernel;
#: None where there is more to it: large tensors, other dtypes, indices that are not in [0, n)
memoized_pick: Callable[[Structured, tuple[Any, ...], int], Tensor | None] = shortcut(
    "op, args, d", "x._layout, index._layout, d",
    [
        "entry, loops, n, layout = plan",
        "data = _allocate(layout.size, layout.dtype.carrier)",
        *_AT,
        "try:",
        "    entry(loops, n, x._data, at, data)",
        "except IndexError:",
        "    return None",
        *tensor_lines("layout"),
        "if _state.grad:",
        "    op.record(args, t)",
        "elif _state.inference:",
        "    _mark_inference(t)",
        "return t",
    ],
    ["plan = _plan(x, index, d)", "if plan is None:", "    return None"],
    memo=_picks, first=["x, index = args[0], args[1]"], _plan=_plan_pick,
)  # fmt: skip


def _pick_plan(layout: Layout, index: Layout, d: int) -> tuple[Places, Layout] | None:
    if layout.__class__ is not Layout or index.__class__ is not Layout:  # of transforms, which are seen further in
        return None
    if not layout.contiguous and layout.ndim > 2:  # the result may not be in C order
        return None
    if launch.observing() or index.dtype is not dtypes.int64 or not (index.ndim and index.contiguous and index.size):
        return None
    p = places(layout, (d,), d)
    out = layout_of([*p.kept[:d], *index.shape, *p.kept[d:]], None, layout.dtype)
    return (p, out) if p.direct and out.size else None


def _plan_fill(x: Tensor, index: Tensor, kind: type) -> tuple[Any, ...] | None:
    """Return (entry point, the kernel's dims and n) of `fill_at`."""
    kept = x._layout.dtype
    suits = kept.carrier is kept.np and (kept.category == 2 or (kept is dtypes.int64 and kind is int))
    plan = _pick_plan(x._layout, index._layout, 0) if suits and x._layout.ndim else None
    if plan is None or not threads.alone(threads.PICKED * plan[1].size):
        return None
    loops, n = plan[0].loops, x._layout.shape[0]
    entry = _fill_within.entry((kept.carrier, kind), loops, n, kind(), index._data, x._data)
    return _fills.keep((x._layout, index._layout, kind), (entry, loops, n))  # type: ignore[no-any-return]


#: fill_at(x, index, number): x[index] = number, where nothing is recorded and one kernel does it; whether that was all, else nothing has
#: happened
fill_at: Callable[[Tensor, Tensor, Any], bool] = whole(shortcut(
    "x, index, number", "x._layout, index._layout, kind",
    [
        "if not plan:",
        "    return False",
        "entry, loops, n = plan",
        *_AT,
        "try:",
        "    entry(loops, n, number, at, x._data)",
        "except (IndexError, OverflowError):",
        "    return False",
        "version[0] += 1",
        "return True",
    ],
    ["plan = _sought(_memo, (x._layout, index._layout, kind), _plan(x, index, kind))", "if plan is None:", "    return False"],
    memo=_fills,
    first=[
        "version, kind = x._version_, number.__class__",
        "if version[0] < 0 or version is index._version_ or (_state.grad and (x._rg or x._view is not None)):",
        "    return False",
        "if not -_SINGLE <= number <= _SINGLE:",
        "    return False",
    ],
    _plan=_plan_fill, _SINGLE=SINGLE, _sought=sought, _memo=_fills,
))  # fmt: skip


def _pick_parts(args: tuple[Any, ...]) -> list[tuple[Any, ...]]:
    """Return the pieces of a pick: of the outermost dim before the indexed one, or of the indices."""
    dims, x, index, out = args
    n0, n1, m0, m1, s0, s1 = dims[:6]
    one, work = m0 * m1, threads.PICKED * out.size
    whole = index.size * one
    if n0 * n1 == 1:
        return [(dims, x, index[i:j], out[i * one : j * one]) for i, j in threads.pieces(index.size, work)]
    if n0 == 1:
        return [((1, j - i, *dims[2:]), x[i * s1 :], index, out[i * whole : j * whole]) for i, j in threads.pieces(n1, work)]
    whole *= n1
    return [((j - i, *dims[1:]), x[i * s0 :], index, out[i * whole : j * whole]) for i, j in threads.pieces(n0, work)]


@structured(x=lambda g, index, dims, pos: pick(g, index, dims, pos), linear="no")
def index_backward(x, index, shape, dims, pos):
    """Return zeros of ``shape`` with ``x`` added at the indexed places; places named twice collect both."""
    z = new_full(shape, 0, x.dtype)
    add_at(z, x, index, dims, pos)
    return z


@index_backward.batched
def _index_backward_of_batch(op, args, batch):
    g, index, shape, dims, pos = args
    (iv, in_i), whole = batch.of(index), batch.whole(g)
    if not in_i:
        return op(whole, iv, (batch.size, *shape), _later(dims), pos + 1)
    index = index_of_batch(iv, shape, dims, batch.size)
    return op(whole.movedim(0, pos), index, (batch.size, *shape), (0, *_later(dims)), pos)


def add_at(z: Tensor, value: Tensor, index: Tensor, dims: tuple[int, ...], pos: int) -> None:
    write_at(z, value, index, dims, pos, ADD)


def write_at(x: Tensor, value: Tensor, index: Tensor, dims: tuple[int, ...], pos: int, mode: int) -> None:
    """x[index] (op)= value in memory, without history; ``value`` broadcasts to the shape of the pick."""
    p = places(x._layout, dims, pos)
    layout, d = index._layout, x._layout.dtype
    shape = (*p.kept[:pos], *layout.sizes, *p.kept[pos:])
    size = p.size * layout.size
    if not size:
        return
    if d.carrier is not d.np and mode != SET:
        kind = dtypes.BY_NAME[d.compute]
        wide = cast(x, kind)
        write_at(wide, cast(value, kind), index, dims, pos, mode)
        x.copy_(wide)
        return
    if p.copied is not None and is_expanded(x._layout):  # what stands for several elements cannot be copied back
        layout = x._layout
        numbers = OPS["arange"].call(layout.extent)
        at = picked(make(numbers._data, layout_of(layout.shape, layout.strides, dtypes.int64), [0, 0]), index, dims, pos)
        memory = make(x._data, layout_of((layout.extent,), None, layout.dtype), [0, 0])
        value = value if value._layout.size == 1 else reshape(expand(value, shape), -1)
        write_at(memory, value, reshape(at, -1), (0,), 0, mode)
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
        if value._layout.sizes != shape:
            value = expand(value, shape)
        data = dense(value)
        _, n1, m0, m1 = p.loops[:4]
        row = m0 * m1
        strides = (layout.size * row * n1, layout.size * row, row, m1, 1)
    args = ((*p.loops, *strides, 0, 1), mode, data, _pointing(index, p), x._data)
    if threads.alone(threads.PICKED * size) or not threads.writes_apart([x._layout]):
        _put(d.carrier, *args)
    else:
        _put.split(d.carrier, args, _put_parts)


def _put_parts(args: tuple[Any, ...]) -> list[tuple[Any, ...]]:
    """Return the pieces of a put: of the outermost dim before the indexed one, or of the places, so that what meets in one meets in the same order."""
    dims, mode, value, index, out = args
    n0, n1, m0, m1, s0, s1 = dims[:6]
    v0, v1 = dims[9:11]
    count = threads.settings.threads
    if n0 >= 2 * count:
        return [((j - i, *dims[1:]), mode, value[i * v0 :], index, out[i * s0 :]) for i, j in threads.cut(n0, count)]
    if n0 == 1 and n1 >= 2 * count:
        return [((1, j - i, *dims[2:]), mode, value[i * v1 :], index, out[i * s1 :]) for i, j in threads.cut(n1, count)]
    if m0 * m1 < NARROW:
        return [args]
    return [((*dims[:14], turn, count), *args[1:]) for turn in range(count)]


def _fitted(g: Tensor, shape: Sequence[int]) -> Tensor:
    return g if tuple(g.shape) == tuple(shape) else g.sum_to_size(shape)


@structured(
    x=lambda g, index, dims, pos, accumulate: g if accumulate else zero_at(g, index, dims, pos),
    value=lambda g, index, dims, pos, value_shape: _fitted(pick(g, index, dims, pos), value_shape),
    node="IndexPutBackward0",
    linear="no",
    samples="x(3, 4).index_put((index(3, 2),), x(2, 4), accumulate=True)",
)
def index_put_op(x, index, value, dims, pos, accumulate):
    y = copied(x)
    write_at(y, value, index, dims, pos, ADD if accumulate else SET)
    return y


@index_put_op.batched
def _index_put_of_batch(op, args, batch):
    x, index, value, dims, pos, accumulate = args
    (iv, in_i), (v, in_v), whole = batch.of(index), batch.of(value), batch.whole(x)
    rest = [n for d, n in enumerate(x.shape) if d not in dims]
    wanted = [*rest[:pos], *index.shape, *rest[pos:]]
    if in_v:
        v = v.reshape(batch.size, *[1] * (len(wanted) - value.ndim), *value.shape)
    v = v.expand(batch.size, *wanted)
    if not in_i:
        return op(whole, iv, v, _later(dims), pos + 1, accumulate)
    index = index_of_batch(iv, x.shape, dims, batch.size)
    return op(whole, index, v.movedim(0, pos), (0, *_later(dims)), pos, accumulate)


def _write_put(x: Tensor, index: Tensor, value: Tensor, dims: tuple[int, ...], pos: int, accumulate: bool) -> None:
    write_at(x, value, index, dims, pos, ADD if accumulate else SET)


@structured(x=lambda g, index, dims, pos: zero_at(g, index, dims, pos), linear="no")
def zero_at(x, index, dims, pos):
    """Return a copy of ``x`` with zeros at the indexed places."""
    y = clone(x)
    write_at(y, new_full((), 0, x.dtype), index, dims, pos, SET)
    return y


@zero_at.batched
def _zero_at_of_batch(op, args, batch):
    x, index, dims, pos = args
    (iv, in_i), whole = batch.of(index), batch.whole(x)
    if not in_i:
        return op(whole, iv, _later(dims), pos + 1)
    return op(whole, index_of_batch(iv, x.shape, dims, batch.size), (0, *_later(dims)), pos)
