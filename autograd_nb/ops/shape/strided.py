"""Strided geometry: `as_strided`, `unfold` of a dim, and the gradients of views of any strides."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from ... import launch
from ...dtypes import int64
from ...overriding import overridable
from ...shapes import Layout, as_int, as_shape, is_expanded, layout_of, numel, overlaps_itself, wrap_dim
from ...tensor import Tensor, _storage, above, make
from ..core.marked import resolved
from ..core.recording import not_for_lost
from ..core.registry import OPS, public
from ..core.structured import structured, tensor_argument
from ..core.views import geometry, memoized_view
from ..creation.cast import cast, clone, contiguous
from ..creation.create import new_full
from ..elementwise.operators import add_overlapping
from .shape import _with, _zeros, reshape


def _strided_buffer(g: Tensor, base: Layout) -> Tensor:
    """Return ``g`` (of the base's shape) laid out in memory as the base is; elements that share memory give their mean."""
    if base.contiguous:
        return contiguous(g)
    z = _zeros((base.extent,), g.dtype)
    buffer = make(z._data, layout_of(base.shape, base.strides, g.dtype), z._version_)
    if overlaps_itself(base):
        _add_repeated(z, g, base.shape, base.strides)
        _divide_by_count(z, base)
    else:
        buffer.copy_(g)
    return buffer


def _add_repeated(z: Tensor, x: Tensor, shape: Sequence[int], strides: Sequence[int], offset: int = 0) -> None:
    """Add ``x`` to the memory ``z`` seen through a geometry in which elements may share memory."""
    # an element seen along a stretched dim collects the sum over it
    stretched = tuple(d for d, (n, s) in enumerate(zip(shape, strides, strict=True)) if s == 0 and n > 1)
    if stretched:
        x = x.sum(stretched, keepdim=True)
    add_overlapping(_with(z, x.shape, strides, offset), x)


def _divide_by_count(z: Tensor, base: Layout) -> None:
    """Divide each place of the memory ``z`` by the number of elements of ``base`` that share it (as PyTorch does)."""
    count = _zeros((base.extent,), z.dtype.to_real())
    _add_repeated(count, new_full(base.shape, 1, count.dtype), base.shape, base.strides)
    z.div_(OPS["maximum"].call(count, new_full((), 1, count.dtype)))


def _beyond(base: Layout, view: Layout, offset: int) -> bool:
    """Return whether a view reaches past its base: that has less memory than it had, by ``.data = …``."""
    return bool(view.size) and (offset < 0 or offset + view.extent > base.extent)


def _in_more(function: Any, g: Tensor, base: Layout, view: Layout, offset: int) -> Tensor:
    """Return ``function(g, base, view, offset)`` of memory that has room for both, as far as the base sees it."""
    lead = max(0, -offset)
    room = lead + max(base.extent, offset + view.extent)
    flat = function(g, (room,), (1,), tuple(view.shape), view.strides, offset + lead)
    return clone(OPS["as_strided"].call(flat, base.shape, base.strides, lead))


def _check_within(base: Layout, view: Layout, offset: int) -> None:
    if _beyond(base, view, offset):
        raise RuntimeError(
            f"setStorage: sizes {list(view.shape)}, strides {list(view.strides)}, storage offset {offset}: a view that was changed in place reaches "
            f"out of bounds of what its base was given by .data = …, which has {base.extent} elements"
        )


def embed_view(g: Tensor, base: Layout, view_layout: Layout, offset: int) -> Tensor:
    """Return a gradient of a view as the gradient of its base: zero outside the view; elements seen twice add up."""
    if base.dtype.is_complex is not view_layout.dtype.is_complex:
        return _through_parts(embed_view, g, base, view_layout, offset, base)
    if _beyond(base, view_layout, offset):
        return _in_more(_embed, g, base, view_layout, offset)
    return _embed(g, tuple(base.shape), base.strides, tuple(view_layout.shape), view_layout.strides, offset)


@structured(
    x=lambda g, base_shape, base_strides, shape, strides, offset: _read(g, base_shape, base_strides, shape, strides, offset),
    linear="no", batch="samples",
)
def _embed(x, base_shape, base_strides, shape, strides, offset):
    base = layout_of(base_shape, base_strides, x.dtype)
    z = _zeros((base.extent,), x.dtype)
    _add_repeated(z, x, shape, strides, offset)
    if overlaps_itself(base):
        _divide_by_count(z, base)
    buffer = make(z._data, base, z._version_)
    return buffer if base.contiguous else clone(buffer)


def write_view(g: Tensor, base: Layout, view_layout: Layout, offset: int) -> Tensor:
    """Return `embed_view`, but of elements seen twice the last: they were written one after the other."""
    if _beyond(base, view_layout, offset):
        return _in_more(_written, g, base, view_layout, offset)
    return _written(g, tuple(base.shape), base.strides, tuple(view_layout.shape), view_layout.strides, offset)


def _kept(g: Tensor, *place: Any) -> Tensor:
    """Return the gradient of what `_written` writes: that of an element over which no other was written."""
    shape = place[2]
    numbers = reshape(OPS["arange"].call(numel(shape), dtype=int64), shape)
    return OPS["where"].call(_read(_written(numbers, *place), *place) == numbers, _read(g, *place), new_full((), 0, g.dtype))


@structured(
    x=lambda g, base_shape, base_strides, shape, strides, offset: _kept(g, base_shape, base_strides, shape, strides, offset),
    linear="no", batch="samples", dtypes="half float complex integer", samples="x(5).clone().unfold(0, 3, 2).mul_(1)",
)
def _written(x, base_shape, base_strides, shape, strides, offset):
    base = layout_of(base_shape, base_strides, x.dtype)
    z = _zeros((base.extent,), x.dtype)
    _with(z, shape, strides, offset).copy_(x)
    buffer = make(z._data, base, z._version_)
    return buffer if base.contiguous else clone(buffer)


@structured(
    x=lambda g, base_shape, base_strides, shape, strides, offset: _embed(g, base_shape, base_strides, shape, strides, offset),
    linear="no", batch="samples",
)
def _read(x, base_shape, base_strides, shape, strides, offset):
    buffer = _strided_buffer(x, layout_of(base_shape, base_strides, x.dtype))
    return clone(_with(buffer, shape, strides, offset))


def _parts(layout: Layout) -> Layout:
    """Return a complex layout as that of its real and imaginary parts, a last dim of 2."""
    if not layout.dtype.is_complex:
        return layout
    return layout_of((*layout.shape, 2), (*(2 * s for s in layout.strides), 1), layout.dtype.to_real())


def _through_parts(function: Any, g: Tensor, base: Layout, view_layout: Layout, offset: int, result: Layout) -> Tensor:
    """Return ``function(g, base, view, offset)`` for a real view of complex memory or a complex view of real memory: all as reals."""
    parts = OPS["view_as_real"].call(resolved(g)) if g.dtype.is_complex else g
    out = function(parts, _parts(base), _parts(view_layout), offset * 2 if view_layout.dtype.is_complex else offset)
    return OPS["view_as_complex"].call(out.contiguous()) if result.dtype.is_complex else out


def read_view(g: Tensor, view_layout: Layout, offset: int, base: Layout | None = None) -> Tensor:
    """Return the part of a base's gradient that a view sees."""
    base = base or g._layout.dense
    if base.dtype.is_complex is not view_layout.dtype.is_complex:
        return _through_parts(lambda g, b, v, o: read_view(g, v, o, b), g, base, view_layout, offset, view_layout)
    _check_within(base, view_layout, offset)
    return _read(g, tuple(base.shape), base.strides, tuple(view_layout.shape), view_layout.strides, offset)


def without_view(g: Tensor, view_layout: Layout, offset: int, base: Layout | None = None) -> Tensor:
    """Return a base's gradient with zeros where a view looks."""
    base = base or g._layout.dense
    if base.dtype.is_complex is not view_layout.dtype.is_complex:
        return _through_parts(lambda g, b, v, o: without_view(g, v, o, b), g, base, view_layout, offset, base)
    _check_within(base, view_layout, offset)
    return _without(g, tuple(base.shape), base.strides, tuple(view_layout.shape), view_layout.strides, offset)


@structured(
    x=lambda g, base_shape, base_strides, shape, strides, offset: _without(g, base_shape, base_strides, shape, strides, offset),
    linear="no", batch="samples",
)
def _without(x, base_shape, base_strides, shape, strides, offset):
    base = layout_of(base_shape, base_strides, x.dtype)
    buffer = _strided_buffer(x, base)
    if buffer._data is x._data:
        buffer = clone(x)
    _with(buffer, shape, strides, offset).zero_()
    return buffer if base.contiguous else clone(buffer)


@structured(
    x=lambda g, base_shape, base_strides, shape, strides, offset: _embed(g, base_shape, base_strides, shape, strides, offset),
    view=True,
    node="AsStridedBackward0",
    linear="lying",
    samples="x(3, 4).as_strided((3, 3), (2, 1))",
)
@geometry
def _as_strided(layout, base_shape, base_strides, shape, strides, offset):
    return shape, strides, offset


@_as_strided.batched
def _as_strided_of_batch(op, args, batch):
    x, _, _, shape, strides, offset = args
    if offset:
        return None
    whole = batch.whole(x)
    return whole.as_strided((batch.size, *shape), (whole._layout.strides[0], *strides))


def _part_within(
    g: Tensor, own: int, x_shape: Any, x_strides: Any, shape: Sequence[int], strides: Sequence[int], offset: int
) -> Tensor:
    """Return the part of a storage's gradient that a tensor sees, whose first element is at ``own``; the rest leads nowhere."""
    start = min(own, offset)
    end = max(own + layout_of(x_shape, x_strides, g.dtype).extent, offset + layout_of(shape, strides, g.dtype).extent)
    flat = _embed(g, (end - start,), (1,), shape, strides, offset - start)
    return _read(flat, (end - start,), (1,), x_shape, x_strides, own - start)


@structured(
    x=_part_within, view=True, node="AsStridedBackward0", linear="no", batch="samples",
    samples="x(3, 4)[1:].as_strided((3, 3), (2, 1), 0)",
)
def _as_strided_beyond(x, own, x_shape, x_strides, shape, strides, offset):
    """Return `as_strided` that reaches outside the tensor into its storage."""
    return make(_storage(x)[0][offset:], layout_of(shape, strides, x.dtype), x._version_)


@public()
@partial(memoized_view, whole=True)
def as_strided(input, size, stride, storage_offset=None):
    """Return the tensor's memory under any shape and strides (in elements), a view; elements seen twice collect both gradients.

    ``storage_offset`` counts from the beginning of the storage (default: the tensor's own). Errors: RuntimeError when it would
    reach outside the storage. What it sees of the storage outside this tensor has no gradient.

    >>> torch.arange(4).as_strided((3, 2), (1, 1))
    tensor([[0, 1],
            [1, 2],
            [2, 3]])
    """
    x = tensor_argument(input, "as_strided")
    shape, strides = as_shape((size,)), as_shape((stride,), "stride")
    if len(shape) != len(strides):
        raise RuntimeError(f"mismatch in length of strides and shape (size={list(shape)}, stride={list(strides)})")
    return (_place if x._layout.__class__ is Layout else look_strided)(x, shape, strides, storage_offset)


@overridable
def look_strided(x: Tensor, shape: tuple[int, ...], strides: tuple[int, ...], storage_offset: Any) -> Any:
    """Return `as_strided`, its arguments being in order but for where they lead."""
    op, *where = _place(x, shape, strides, storage_offset)
    return op(x, *where)


def _place(x: Tensor, shape: tuple[int, ...], strides: tuple[int, ...], storage_offset: Any) -> tuple[Any, ...]:
    """Return (view op, *arguments) of `as_strided`; errors are its own."""
    base, own = _storage(x)
    if own or base.size != x._layout.extent:
        launch.escapes("as_strided() of a part, which may look at the memory around it")
    offset = own if storage_offset is None else as_int(storage_offset, "storage_offset")
    if any(s < 0 for s in strides):
        raise RuntimeError(f"as_strided: Negative strides are not supported at the moment, got strides: {list(strides)} (use flip())")
    if offset < 0 or any(n < 0 for n in shape):
        raise RuntimeError(
            f"as_strided: negative sizes and offsets are not supported (size={list(shape)}, storage_offset={offset})"
        )
    extent = layout_of(shape, strides, x.dtype).extent + offset if numel(shape) else 0
    if extent > base.size:
        raise RuntimeError(
            f"setStorage: sizes {list(shape)}, strides {list(strides)}, storage offset {offset} need {extent} elements, but the "
            f"storage has {base.size}"
        )
    if own <= offset and extent <= own + x._layout.extent:
        return _as_strided, tuple(x.shape), x._layout.strides, shape, strides, offset - own
    return _as_strided_beyond, own, tuple(x.shape), x._layout.strides, shape, strides, offset


def _windows(layout: Layout, d: int, size: int, step: int) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """Return shape and strides of the windows of ``size`` elements every ``step`` along dim ``d``, in a new last dim."""
    shape = (*layout.shape[:d], (layout.shape[d] - size) // step + 1, *layout.shape[d + 1 :], size)
    return shape, (*layout.strides[:d], layout.strides[d] * step, *layout.strides[d + 1 :], layout.strides[d])


def _unfolded_gradient(g: Tensor, x_shape: Sequence[int], d: int, size: int, step: int) -> Tensor:
    # of each element for itself, also where the tensor's elements share memory
    base = layout_of(tuple(x_shape), None, g.dtype)
    return embed_view(g, base, layout_of(*_windows(base, d, size, step), g.dtype), 0)


@structured(x=_unfolded_gradient, view=True, node="UnfoldBackward0", linear="jointly", samples="x(3, 7).unfold(1, 3, 2)")
@geometry
def _unfold(layout, d, size, step):
    return *_windows(layout, d, size, step), 0


@_unfold.batched
def _unfold_of_batch(op, args, batch):
    x, d, size, step = args
    return op(batch.whole(x), d + 1, size, step)


def _span(g: Tensor, own: int, x_shape: Any, x_strides: Any, shape: Any, strides: Any, offset: int, total: int) -> tuple[Any, ...]:
    """Return (gradient, its shape and strides, where ``own`` and ``offset`` are in it): the tensor's if that holds the part, else the storage's."""
    x, part = layout_of(x_shape, x_strides, g.dtype), layout_of(shape, strides, g.dtype)
    if own <= offset and (offset + part.extent <= own + x.extent or not part.size):
        return g, tuple(x_shape), x_strides, 0, offset - own
    return _embed(g, (total,), (1,), tuple(x_shape), x_strides, own), (total,), (1,), own, offset


def _not_overwritten(g: Tensor, own: int, x_shape: Any, x_strides: Any, shape: Any, strides: Any, offset: int, total: int) -> Tensor:
    span, base_shape, base_strides, start, at = _span(g, own, x_shape, x_strides, shape, strides, offset, total)
    kept = _without(span, base_shape, base_strides, shape, strides, at)
    return kept if span is g else _read(kept, base_shape, base_strides, tuple(x_shape), x_strides, start)


def _overwritten(g: Tensor, own: int, x_shape: Any, x_strides: Any, shape: Any, strides: Any, offset: int, total: int) -> Tensor:
    span, base_shape, base_strides, _, at = _span(g, own, x_shape, x_strides, shape, strides, offset, total)
    return _read(span, base_shape, base_strides, shape, strides, at)


def _memory(x: Tensor, total: int) -> Tensor:
    """Return a copy of the storage of ``x``, of ``total`` elements."""
    whole = x._data if total == x._layout.extent else _storage(x)[0]
    return clone(make(whole, layout_of((total,), None, x.dtype), x._version_))


def copied_with_gaps(x: Tensor) -> Tensor:
    """Return ``x`` in a copy of its whole storage, with the strides and the place that it has there."""
    storage, own = _storage(x)
    return _with(_memory(x, storage.size), tuple(x.shape), x._layout.strides, own)


@structured(
    x=_not_overwritten, src=_overwritten, node="AsStridedScatterBackward0", linear="no", batch="samples",
    samples="torch.as_strided_scatter(x(3, 4), x(3, 2), (3, 2), (4, 1))",
)
def _write_strided(x, src, own, x_strides, shape, strides, offset, total):
    """Return a copy of the storage of ``x``, of ``total`` elements, ``src`` written over a part of it, read as ``x`` is."""
    memory = _memory(x, total)
    _with(memory, shape, strides, offset).copy_(src)
    return _with(memory, tuple(x.shape), x_strides, own)


@public()
def as_strided_scatter(input, src, size, stride, storage_offset=None):
    """Return a copy of ``input`` with ``src`` in place of ``as_strided(size, stride, storage_offset)``; it keeps the strides.

    Derivative: dsrc = the elements of g that were overwritten; dinput = g with zeros there.

    ``storage_offset`` counts from the beginning of the storage (default: the tensor's own), all of which is copied.

    >>> torch.as_strided_scatter(torch.tensor([1, 2, 3]), torch.tensor([8, 9]), (2,), (2,))
    tensor([8, 2, 9])
    """
    x = tensor_argument(input, "as_strided_scatter")
    tensor_argument(src, "as_strided_scatter", "src")
    if is_expanded(x._layout):
        x = clone(x)
    shape, strides = as_shape((size,)), as_shape((stride,), "stride")
    part = as_strided(x.detach(), shape, strides, storage_offset)  # its checks
    if src.shape != part.shape:
        raise RuntimeError(
            f"expected src to have a size equal to the slice of self. src size = {list(src.shape)}, slice size = {list(part.shape)} "
            "(as_strided_scatter)"
        )
    not_for_lost("as_strided_scatter", x, src)
    return scatter_strided(x, src, shape, strides, storage_offset)


@overridable
def scatter_strided(x: Tensor, src: Tensor, shape: tuple[int, ...], strides: tuple[int, ...], storage_offset: Any) -> Any:
    """Return `as_strided_scatter` of arguments that have been checked."""
    memory, own = _storage(x)
    offset = own if storage_offset is None else as_int(storage_offset, "storage_offset")
    return _write_strided(x, cast(src, x.dtype), own, x._layout.strides, shape, strides, offset, memory.size)


@public(namespaces=())
@memoized_view
def unfold(input, dimension, size, step):
    """Return views of windows of ``size`` every ``step`` elements along a dim, in a new last dim; [1, 2, 3].unfold(0, 2, 1) = [[1, 2], [2, 3]]."""
    x = tensor_argument(input, "unfold")
    d = wrap_dim(dimension, x.ndim, "dimension")
    n = x.shape[d] if x.ndim else 1
    size, step = as_int(size, "size"), as_int(step, "step")
    if not 0 <= size <= n:
        raise RuntimeError(f"maximum size for tensor at dimension {d} is {n} but size is {size}")
    if step < 1:
        raise RuntimeError(f"step is {step} but must be > 0")
    if not x.ndim:
        return reshape(x, 1)[:size]
    return _unfold, d, size, step


above.embed_view, above.read_view, above.without_view, above.write_view = embed_view, read_view, without_view, write_view
