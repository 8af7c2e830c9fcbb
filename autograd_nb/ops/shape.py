"""Views and rearrangements: new layouts over the same memory where possible, one copying kernel where not."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from .. import dtypes, launch
from ..shapes import (
    Layout,
    Size,
    as_int,
    as_shape,
    infer_shape,
    layout,
    numel,
    view_strides,
    wrap_dim,
    wrap_dims,
)
from ..tensor import Tensor, _storage, make
from .cast import clone, contiguous
from .joining import Joins, join
from .registry import OPS, public
from .structured import structured, tensor_argument, tensors_argument
from .views import quick


def _zeros(shape: Sequence[int], d: dtypes.dtype) -> Tensor:
    lay = layout(shape, None, d)
    data = launch.zeros(lay.size, d.carrier)
    if data is not None:
        return make(data, lay, [0, 0])
    t = make(launch.empty(lay.size, d.carrier), lay, [0, 0])
    t.zero_()
    return t


def _with(x: Tensor, shape: Sequence[int], strides: Sequence[int], offset: int = 0) -> Tensor:
    """``x``'s memory from element ``offset`` on under another shape and strides."""
    data = x._data[offset:] if offset else x._data
    return make(data, layout(shape, strides, x._layout.dtype), x._version_)


# ----------------------------------------------------------------------------------- reshape, permute, expand


@structured(x=lambda g, x_shape: reshape(g, x_shape), view=True, node="ViewBackward0")
def _view(x, shape):
    return make(x._data, layout(shape, view_strides(x._layout, shape), x._layout.dtype), x._version_)


@structured(x=lambda g, x_shape: reshape(g, x_shape), node="UnsafeViewBackward0")
def _copied_view(x, shape):
    y = clone(x)
    return make(y._data, layout(shape, None, y._layout.dtype), y._version_)


@public()
@quick
def view(input, *shape, dtype=None, size=None):
    """The same memory under another shape (one size may be -1), or read as another dtype of the same width.

    Errors: RuntimeError where the strides do not allow it (then `reshape` copies).
    Source: https://docs.pytorch.org/docs/stable/generated/torch.Tensor.view.html
    """
    x = tensor_argument(input, "view")
    if dtype is None and len(shape) == 1 and isinstance(shape[0], dtypes.dtype):
        dtype = shape[0]
    if dtype is not None:
        return _view_dtype(x, dtype)
    sizes = infer_shape(as_shape(shape if size is None else (size,)), x._layout.size)
    if view_strides(x._layout, sizes) is None:
        raise RuntimeError(
            "view size is not compatible with input tensor's size and stride (at least one dimension spans across two contiguous "
            f"subspaces). Use .reshape(...) instead. (size {list(x.shape)}, stride {x._layout.strides}, asked for {list(sizes)})"
        )
    return _view, sizes


def _view_dtype(x: Tensor, d: dtypes.dtype) -> Tensor:
    lay = x._layout
    if d is lay.dtype:
        return alias_view(x)
    a, b = lay.dtype.itemsize, d.itemsize
    shape, strides = list(lay.shape), list(lay.strides)
    if a != b:
        if not lay.ndim:
            raise RuntimeError(f"self.dim() cannot be 0 to view {lay.dtype} as {d} (different element sizes)")
        if strides[-1] != 1:
            raise RuntimeError(
                f"self.stride(-1) must be 1 to view {lay.dtype} as {d} (different element sizes), but got {strides[-1]}"
            )
        if a > b:
            k = a // b
            shape[-1] *= k
            strides = [s * k for s in strides[:-1]] + [1]
        else:
            k = b // a
            if shape[-1] % k or any(s % k for s in strides[:-1]):
                raise RuntimeError(
                    f"self.size(-1) must be divisible by {k} to view {lay.dtype} as {d} (different element sizes), but got {shape[-1]}"
                )
            shape[-1] //= k
            strides = [s // k for s in strides[:-1]] + [1]
    data = x._data[: lay.extent].view(d.carrier)
    return make(data, layout(shape, strides, d), x._version_)


@structured(x=lambda g: g, view=True)
def _alias(x):
    return make(x._data, x._layout, x._version_)


def alias_view(x: Tensor) -> Tensor:
    """A view of all of ``x``."""
    return _alias(x)


@public()
@quick
def reshape(input, *sizes, shape=None):
    """The elements in C order under another shape (one size may be -1): a view where possible, else a copy; dy/dx = 1.

    Errors: RuntimeError when the sizes do not fit. Source: https://docs.pytorch.org/docs/stable/generated/torch.reshape.html
    """
    x = tensor_argument(input, "reshape")
    shape = infer_shape(as_shape(sizes if shape is None else (shape,)), x._layout.size)
    return _reshape(x, shape)


def _reshape(x: Tensor, shape: Sequence[int]) -> tuple:
    return (_copied_view if view_strides(x._layout, shape) is None else _view), shape


@public()
def view_as(input, other):
    """``view`` with the shape of ``other``."""
    return view(input, other._layout.shape)


@public()
def reshape_as(input, other):
    """``reshape`` with the shape of ``other``."""
    return reshape(input, other.shape)


@public()
@quick
def flatten(input, start_dim=0, end_dim=-1):
    """Merge the dims from ``start_dim`` to ``end_dim`` into one."""
    x = tensor_argument(input, "flatten")
    if x.ndim == 0:
        return _view, (1,)
    a, b = wrap_dim(start_dim, x.ndim, "start_dim"), wrap_dim(end_dim, x.ndim, "end_dim")
    if a > b:
        raise RuntimeError(
            f"flatten() has invalid args: start_dim cannot come after end_dim (start_dim={start_dim}, end_dim={end_dim})"
        )
    if a == b:
        return x
    return _reshape(x, (*x.shape[:a], numel(x.shape[a : b + 1]), *x.shape[b + 1 :]))


@public()
def ravel(input):
    """All elements in one dim."""
    return reshape(input, -1)


@public()
@quick
def unflatten(input, dim, sizes):
    """Split one dim into ``sizes`` (one may be -1)."""
    x = tensor_argument(input, "unflatten")
    d = wrap_dim(dim, x.ndim)
    if not sizes:
        raise RuntimeError(f"unflatten: sizes must be non-empty (sizes={sizes!r})")
    try:
        inner = infer_shape(as_shape((sizes,)), x.shape[d])
    except RuntimeError:
        raise RuntimeError(
            f"unflatten: Provided sizes {list(sizes)} don't multiply up to the size of dim {d} ({x.shape[d]}) in the input tensor"
        ) from None
    return _reshape(x, (*x.shape[:d], *inner, *x.shape[d + 1 :]))


def _inverse(order: Sequence[int]) -> tuple[int, ...]:
    out = [0] * len(order)
    for i, d in enumerate(order):
        out[d] = i
    return tuple(out)


@structured(x=lambda g, order: _permute(g, _inverse(order)), view=True, node="PermuteBackward0")
def _permute(x, order):
    lay = x._layout
    return _with(x, [lay.shape[d] for d in order], [lay.strides[d] for d in order])


@structured(x=lambda g, a, b: _transpose(g, a, b), view=True, node="TransposeBackward0")
def _transpose(x, a, b):
    lay = x._layout
    shape, strides = list(lay.shape), list(lay.strides)
    shape[a], shape[b] = shape[b], shape[a]
    strides[a], strides[b] = strides[b], strides[a]
    return _with(x, shape, strides)


@structured(x=lambda g: _t(g), view=True, node="TBackward0")
def _t(x):
    lay = x._layout
    return _with(x, lay.shape[::-1], lay.strides[::-1])


@public()
@quick
def permute(input, *axes, dims=None):
    """The dims in another order, a view. RuntimeError unless ``dims`` names each dim once."""
    x = tensor_argument(input, "permute")
    order = as_shape(axes if dims is None else (dims,), "dims")
    if len(order) != x.ndim:
        raise RuntimeError(
            f"permute(sparse_coo): number of dimensions in the tensor input does not match the length of the desired ordering of "
            f"dimensions i.e. input.dim() = {x.ndim} is not equal to len(dims) = {len(order)}"
        )
    if x.ndim == 0:
        return (_alias,)
    return _permute, wrap_dims(order, x.ndim, "dims")


@public("swapaxes", "swapdims")
@quick
def transpose(input, dim0, dim1):
    """Swap two dims, a view."""
    x = tensor_argument(input, "transpose")
    a, b = wrap_dim(dim0, x.ndim, "dim0"), wrap_dim(dim1, x.ndim, "dim1")
    return (_transpose, a, b) if x.ndim else (_alias,)


@public()
@quick
def t(input):
    """The transpose of a matrix (tensors of fewer dims as they are). RuntimeError for more than 2 dims."""
    x = tensor_argument(input, "t")
    if x.ndim > 2:
        raise RuntimeError(f"t() expects a tensor with <= 2 dimensions, but self is {x.ndim}D")
    return (_t,) if x.ndim == 2 else (_alias,)


@public("moveaxis")
@quick
def movedim(input, source, destination):
    """Move dims to other places, the rest keeping their order."""
    x = tensor_argument(input, "movedim")
    if isinstance(source, int):
        source, destination = (source,), (destination,)
    if len(source) != len(destination):
        raise RuntimeError(
            f"movedim: Invalid source or destination dims: source ({list(source)} dims) should contain the same number of dims as "
            f"destination ({list(destination)} dims)"
        )
    src, dst = wrap_dims(tuple(source), x.ndim, "source"), wrap_dims(tuple(destination), x.ndim, "destination")
    if not x.ndim:
        return (_alias,)
    order: list[int | None] = [None] * x.ndim
    for s, d in zip(src, dst, strict=True):
        order[d] = s
    rest = iter(d for d in range(x.ndim) if d not in src)
    return _permute, tuple(next(rest) if o is None else o for o in order)


@structured(x=lambda g, x_shape: g.sum_to_size(x_shape), view=True, node="ExpandBackward0")
def _expand(x, shape):
    lay = x._layout
    lead = len(shape) - lay.ndim
    strides = [0] * lead + [
        0 if n == 1 and shape[lead + i] != 1 else s for i, (n, s) in enumerate(zip(lay.shape, lay.strides, strict=True))
    ]
    return _with(x, shape, strides)


@public()
@quick
def expand(input, *sizes, size=None, implicit=False):
    """A view in which dims of size 1 are stretched to ``size`` (-1 keeps a dim); new dims may be added in front.

    Errors: RuntimeError where a size does not match.
    """
    x = tensor_argument(input, "expand")
    sizes = list(as_shape(sizes if size is None else (size,)))
    lead = len(sizes) - x.ndim
    if lead < 0:
        raise RuntimeError(
            f"expand({list(x.shape)}, size={sizes}): the number of sizes provided ({len(sizes)}) must be greater or equal to the "
            f"number of dimensions in the tensor ({x.ndim})"
        )
    for i, n in enumerate(sizes):
        have = x.shape[i - lead] if i >= lead else None
        if n == -1:
            if have is None:
                raise RuntimeError(
                    f"The expanded size of the tensor ({n}) isn't allowed in a leading, non-existing dimension {i}"
                )
            sizes[i] = have
        elif n < 0:
            raise RuntimeError(f"expand: size must be >= 0 or -1, got {n} at dimension {i}")
        elif have is not None and have != n and have != 1:
            raise RuntimeError(
                f"The expanded size of the tensor ({n}) must match the existing size ({have}) at non-singleton dimension {i}.  "
                f"Target sizes: {sizes}.  Tensor sizes: {list(x.shape)}"
            )
    return _expand, tuple(sizes)


@public()
def expand_as(input, other):
    """``expand`` to the shape of ``other``."""
    return expand(input, other.shape)


@public()
def broadcast_to(input, size):
    """``expand`` under its NumPy name."""
    return expand(input, size)


@public(method=False)
def broadcast_tensors(*tensors):
    """The tensors expanded to their common shape."""
    from ..shapes import broadcast_shapes

    ts = tensors_argument(
        tensors[0] if len(tensors) == 1 and not isinstance(tensors[0], Tensor) else tensors, "broadcast_tensors"
    )
    shape = broadcast_shapes(*[x.shape for x in ts])
    return tuple(expand(x, shape) for x in ts)


@structured(x=lambda g, x_shape: reshape(g, x_shape), view=True, node="SqueezeBackward0")
def _squeeze(x, dims):
    lay = x._layout
    keep = [d for d in range(lay.ndim) if d not in dims or lay.shape[d] != 1]
    return _with(x, [lay.shape[d] for d in keep], [lay.strides[d] for d in keep])


@public()
@quick
def squeeze(input, dim=None):
    """Drop the dims of size 1 (all, or those in ``dim``), a view."""
    x = tensor_argument(input, "squeeze")
    return _squeeze, tuple(range(x.ndim)) if dim is None else wrap_dims(dim, x.ndim)


@structured(x=lambda g, x_shape: reshape(g, x_shape), view=True, node="UnsqueezeBackward0")
def _unsqueeze(x, d):
    lay = x._layout
    step = lay.strides[d] * lay.shape[d] if d < lay.ndim else 1
    return _with(x, [*lay.shape[:d], 1, *lay.shape[d:]], [*lay.strides[:d], step, *lay.strides[d:]])


@public()
@quick
def unsqueeze(input, dim):
    """A view with a new dim of size 1 at ``dim``."""
    x = tensor_argument(input, "unsqueeze")
    return _unsqueeze, wrap_dim(dim, x.ndim + 1)


# ----------------------------------------------------------------------------------------- parts of a tensor


@structured(x=lambda g, x_shape, d, index: _select_backward(g, x_shape, d, index), view=True, node="SelectBackward0")
def _select(x, d, index):
    lay = x._layout
    return _with(x, [*lay.shape[:d], *lay.shape[d + 1 :]], [*lay.strides[:d], *lay.strides[d + 1 :]], index * lay.strides[d])


@structured(x=lambda g, d, index: _select(g, d, index))
def _select_backward(x, shape, d, index):
    z = _zeros(shape, x.dtype)
    _select(z, d, index).copy_(x)
    return z


@public()
@quick
def select(input, dim, index):
    """The slice at ``index`` of ``dim``, a view with that dim removed. IndexError when out of range."""
    x = tensor_argument(input, "select")
    if x.ndim == 0:
        raise IndexError("select() cannot be applied to a 0-dim tensor.")
    d = wrap_dim(dim, x.ndim)
    n, i = x.shape[d], as_int(index, "index")
    if not -n <= i < n:
        raise IndexError(f"select(): index {i} out of range for tensor of size {list(x.shape)} at dimension {d}")
    return _select, d, i + n if i < 0 else i


@structured(
    x=lambda g, x_shape, d, start, count, step: _slice_backward(g, x_shape, d, start, count, step),
    view=True,
    node="SliceBackward0",
)
def _slice(x, d, start, count, step):
    lay = x._layout
    shape, strides = list(lay.shape), list(lay.strides)
    shape[d] = count
    offset = start * strides[d] if count and lay.size else 0
    strides[d] *= step
    return _with(x, shape, strides, offset)


@structured(x=lambda g, d, start, count, step: _slice(g, d, start, count, step))
def _slice_backward(x, shape, d, start, count, step):
    z = _zeros(shape, x.dtype)
    _slice(z, d, start, count, step).copy_(x)
    return z


def slice_dim(x: Tensor, d: int, start: int | None, stop: int | None, step: int | None) -> Tensor:
    """``x[start:stop:step]`` along ``d``. ValueError for a step below 1."""
    step = 1 if step is None else as_int(step, "step")
    if step < 1:
        raise ValueError(f"step must be greater than zero (step={step}); use flip() to reverse")
    start, stop, _ = slice(start, stop, step).indices(x.shape[d])
    count = max(0, -(-(stop - start) // step))
    if count == x.shape[d] and step == 1:
        return alias_view(x)
    return _slice(x, d, start, count, step)


@public()
@quick
def narrow(input, dim, start, length):
    """The view of ``length`` elements from ``start`` along ``dim``. RuntimeError when it does not fit."""
    x = tensor_argument(input, "narrow")
    if x.ndim == 0:
        raise RuntimeError("narrow() cannot be applied to a 0-dim tensor.")
    d = wrap_dim(dim, x.ndim)
    n = x.shape[d]
    if isinstance(start, Tensor) and (start.ndim or start.dtype.category != 1):
        raise RuntimeError(f"start must be an 0-dim integral Tensor. (start is {start.dtype} of shape {list(start.shape)})")
    start, length = int(as_int(start, "start")), as_int(length, "length")
    if length < 0:
        raise RuntimeError(f"narrow(): length must be non-negative. (length={length})")
    if not -n <= start <= n:
        raise IndexError(f"start out of range (expected to be in range of [-{n}, {n}], but got {start})")
    start = start + n if start < 0 else start
    if start + length > n:
        raise RuntimeError(f"start ({start}) + length ({length}) exceeds dimension size ({n}).")
    return _slice, d, start, length, 1


@structured(x=lambda g, x_shape, d, sizes: _join_parts(g, x_shape, d, sizes), view=True, node="SplitBackward0")
def _split(x, d, sizes):
    out, start = [], 0
    for n in sizes:
        out.append(_slice(x, d, start, n, 1))
        start += n
    return out


def _join_parts(grads: list, shape: Sequence[int], d: int, sizes: Sequence[int]) -> Tensor:
    there = [k for k, g in enumerate(grads) if g is not None]
    first = grads[there[0]]
    if len(there) == 1 < len(grads):
        return _slice_backward(first, shape, d, sum(sizes[: there[0]]), first.shape[d], 1)
    parts = [
        g if g is not None else _zeros([*shape[:d], n, *shape[d + 1 :]], first.dtype) for g, n in zip(grads, sizes, strict=True)
    ]
    return cat(parts, d)


def _parts_of(n: int, size: int) -> tuple[int, ...]:
    return tuple(min(size, n - i) for i in range(0, n, size)) if n else (0,)


@public()
@quick
def split(tensor, split_size_or_sections=None, dim=0, **kw):
    """Views of parts along ``dim``: of one size (the last may be smaller), or of the listed sizes.

    Errors: RuntimeError when the sizes do not add up.
    """
    x = tensor_argument(tensor, "split")
    size = split_size_or_sections if split_size_or_sections is not None else kw.get("split_size")
    if x.ndim == 0:
        raise RuntimeError("split expects at least a 1-dimensional tensor")
    d = wrap_dim(dim, x.ndim)
    n = x.shape[d]
    if isinstance(size, (list, tuple)):
        sizes = as_shape((size,), "split_sizes")
        if sum(sizes) != n or any(s < 0 for s in sizes):
            raise RuntimeError(
                f"split_with_sizes expects split_sizes to sum exactly to {n} (input tensor's size at dimension {d}), but got "
                f"split_sizes={list(sizes)}"
            )
    else:
        size = as_int(size, "split_size")
        if size < 0 or (size == 0 and n):
            raise RuntimeError(f"split expects split_size be non-negative, but got split_size={size}")
        sizes = _parts_of(n, size)
    return _split, d, sizes


@public(method=True)
def split_with_sizes(input, split_sizes, dim=0):
    """`split` by a list of sizes."""
    return split(input, list(split_sizes), dim)


@public()
@quick
def chunk(input, chunks, dim=0):
    """At most ``chunks`` views of equal size (the last may be smaller) along ``dim``."""
    x = tensor_argument(input, "chunk")
    if x.ndim == 0:
        raise RuntimeError("chunk expects at least a 1-dimensional tensor")
    n = as_int(chunks, "chunks")
    if n < 1:
        raise RuntimeError(f"chunk expects `chunks` to be greater than 0, got: {n}")
    d = wrap_dim(dim, x.ndim)
    return _split, d, _parts_of(x.shape[d], max(-(-x.shape[d] // n), 1))


@public()
def tensor_split(input, indices_or_sections, dim=0):
    """Views of nearly equal parts, or of the parts between given indices."""
    x = tensor_argument(input, "tensor_split")
    if x.ndim == 0:
        raise RuntimeError("tensor_split expected at least a 1-dimensional tensor, but got a tensor with 0 dims")
    d = wrap_dim(dim, x.ndim)
    n = x.shape[d]
    sections = indices_or_sections.tolist() if isinstance(indices_or_sections, Tensor) else indices_or_sections
    if isinstance(sections, int):
        if sections <= 0:
            raise RuntimeError(f"number of sections must be larger than 0, got {sections}")
        base, more = divmod(n, sections)
        sizes = [base + (i < more) for i in range(sections)]
        bounds = [sum(sizes[:i]) for i in range(sections + 1)]
    else:
        bounds = [0, *sections, n]
    return tuple(slice_dim(x, d, a, b, 1) for a, b in pairwise(bounds))


@structured(x=lambda g, x_shape, d: _stack_parts(g, x_shape, d), view=True, node="UnbindBackward0")
def _unbind(x, d):
    return [_select(x, d, i) for i in range(x.shape[d])]


def _stack_parts(grads: list, shape: Sequence[int], d: int) -> Tensor:
    there = [k for k, g in enumerate(grads) if g is not None]
    first = grads[there[0]]
    if len(there) == 1 < len(grads):
        return _select_backward(first, shape, d, there[0])
    rest = [*shape[:d], *shape[d + 1 :]]
    return stack([g if g is not None else _zeros(rest, first.dtype) for g in grads], d)


@public()
@quick
def unbind(input, dim=0):
    """A tuple of the slices along ``dim``, views."""
    x = tensor_argument(input, "unbind")
    if x.ndim == 0:
        raise RuntimeError("Dimension specified as 0 but tensor has no dimensions")
    d = wrap_dim(dim, x.ndim)
    return (_unbind, d) if x.shape[d] else ()


@structured(
    x=lambda g, x_shape, offset, a, b: _diagonal_backward(g, x_shape, offset, a, b), view=True, node="DiagonalBackward0"
)
def _diagonal(x, offset, a, b):
    lay = x._layout
    n, m = lay.shape[a], lay.shape[b]
    count = max(0, min(n, m - offset) if offset >= 0 else min(n + offset, m))
    start = (offset * lay.strides[b] if offset >= 0 else -offset * lay.strides[a]) if count else 0
    rest = [d for d in range(lay.ndim) if d not in (a, b)]
    return _with(
        x, [*[lay.shape[d] for d in rest], count], [*[lay.strides[d] for d in rest], lay.strides[a] + lay.strides[b]], start
    )


@structured(x=lambda g, offset, a, b: _diagonal(g, offset, a, b))
def _diagonal_backward(x, shape, offset, a, b):
    z = _zeros(shape, x.dtype)
    _diagonal(z, offset, a, b).copy_(x)
    return z


@public()
@quick
def diagonal(input, offset=0, dim1=0, dim2=1):
    """The diagonal of each matrix in dims ``dim1``, ``dim2`` as a view, in a new last dim."""
    x = tensor_argument(input, "diagonal")
    a, b = wrap_dim(dim1, x.ndim, "dim1"), wrap_dim(dim2, x.ndim, "dim2")
    if a == b:
        raise RuntimeError(f"diagonal dimensions cannot be identical {dim1}, {dim2}")
    return _diagonal, as_int(offset, "offset"), a, b


# --------------------------------------------------------------------------------------- strided geometry


def _strided_buffer(g: Tensor, base: Layout) -> Tensor:
    """``g`` (of the base's shape) laid out in memory as the base is."""
    if base.contiguous:
        return contiguous(g)
    z = _zeros((base.extent,), g.dtype)
    buffer = make(z._data, layout(base.shape, base.strides, g.dtype), z._version_)
    buffer.copy_(g)
    return buffer


def embed_view(g: Tensor, base: Layout, view_layout: Layout, offset: int) -> Tensor:
    """A gradient of a view as the gradient of its base: zero outside the view; elements seen twice add up."""
    if base.dtype.is_complex is not view_layout.dtype.is_complex:
        return _through_parts(embed_view, g, base, view_layout, offset, base)
    return _embed(g, tuple(base.shape), base.strides, tuple(view_layout.shape), view_layout.strides, offset)


@structured(
    x=lambda g, base_shape, base_strides, shape, strides, offset: _read(g, base_shape, base_strides, shape, strides, offset)
)
def _embed(x, base_shape, base_strides, shape, strides, offset):
    from .arithmetic import add_overlapping

    # an element seen along a stretched dim collects the sum over it
    stretched = tuple(d for d, (n, s) in enumerate(zip(shape, strides, strict=True)) if s == 0 and n > 1)
    if stretched:
        x = x.sum(stretched, keepdim=True)
        shape = x.shape
    base = layout(base_shape, base_strides, x.dtype)
    z = _zeros((base.extent,), x.dtype)
    add_overlapping(_with(z, shape, strides, offset), x)
    buffer = make(z._data, base, z._version_)
    return buffer if base.contiguous else clone(buffer)


@structured(
    x=lambda g, base_shape, base_strides, shape, strides, offset: _embed(g, base_shape, base_strides, shape, strides, offset)
)
def _read(x, base_shape, base_strides, shape, strides, offset):
    buffer = _strided_buffer(x, layout(base_shape, base_strides, x.dtype))
    return clone(_with(buffer, shape, strides, offset))


def _parts(lay: Layout) -> Layout:
    """A complex layout as that of its real and imaginary parts, a last dim of 2."""
    if not lay.dtype.is_complex:
        return lay
    return layout((*lay.shape, 2), (*(2 * s for s in lay.strides), 1), lay.dtype.to_real())


def _through_parts(function: Any, g: Tensor, base: Layout, view_layout: Layout, offset: int, result: Layout) -> Tensor:
    """``function(g, base, view, offset)`` for a real view of complex memory or a complex view of real memory: all as reals."""
    parts = OPS["view_as_real"].call(g) if g.dtype.is_complex else g
    out = function(parts, _parts(base), _parts(view_layout), offset * 2 if view_layout.dtype.is_complex else offset)
    return OPS["view_as_complex"].call(out.contiguous()) if result.dtype.is_complex else out


def read_view(g: Tensor, view_layout: Layout, offset: int, base: Layout | None = None) -> Tensor:
    """The part of a base's gradient that a view sees."""
    base = base or g._layout.dense
    if base.dtype.is_complex is not view_layout.dtype.is_complex:
        return _through_parts(lambda g, b, v, o: read_view(g, v, o, b), g, base, view_layout, offset, view_layout)
    return _read(g, tuple(base.shape), base.strides, tuple(view_layout.shape), view_layout.strides, offset)


def without_view(g: Tensor, view_layout: Layout, offset: int, base: Layout | None = None) -> Tensor:
    """A base's gradient with zeros where a view looks."""
    base = base or g._layout.dense
    if base.dtype.is_complex is not view_layout.dtype.is_complex:
        return _through_parts(lambda g, b, v, o: without_view(g, v, o, b), g, base, view_layout, offset, base)
    return _without(g, tuple(base.shape), base.strides, tuple(view_layout.shape), view_layout.strides, offset)


@structured(
    x=lambda g, base_shape, base_strides, shape, strides, offset: _without(g, base_shape, base_strides, shape, strides, offset)
)
def _without(x, base_shape, base_strides, shape, strides, offset):
    base = layout(base_shape, base_strides, x.dtype)
    buffer = _strided_buffer(x, base)
    if buffer._data is x._data:
        buffer = clone(x)
    _with(buffer, shape, strides, offset).zero_()
    return buffer if base.contiguous else clone(buffer)


@structured(
    x=lambda g, base_shape, base_strides, shape, strides, offset: _embed(g, base_shape, base_strides, shape, strides, offset),
    view=True,
    node="AsStridedBackward0",
)
def _as_strided(x, base_shape, base_strides, shape, strides, offset):
    return _with(x, shape, strides, offset)


def _part_within(
    g: Tensor, own: int, x_shape: Any, x_strides: Any, shape: Sequence[int], strides: Sequence[int], offset: int
) -> Tensor:
    """The part of a storage's gradient that a tensor sees, whose first element is at ``own``; the rest leads nowhere."""
    start = min(own, offset)
    end = max(own + layout(x_shape, x_strides, g.dtype).extent, offset + layout(shape, strides, g.dtype).extent)
    flat = _embed(g, (end - start,), (1,), shape, strides, offset - start)
    return _read(flat, (end - start,), (1,), x_shape, x_strides, own - start)


@structured(x=_part_within, view=True, node="AsStridedBackward0")
def _as_strided_beyond(x, own, x_shape, x_strides, shape, strides, offset):
    """`as_strided` that reaches outside the tensor into its storage."""
    return make(_storage(x)[0][offset:], layout(shape, strides, x.dtype), x._version_)


@public()
def as_strided(input, size, stride, storage_offset=None):
    """The tensor's memory under any shape and strides (in elements), a view; elements seen twice collect both gradients.

    ``storage_offset`` counts from the beginning of the storage (default: the tensor's own). Errors: RuntimeError when it would
    reach outside the storage. What it sees of the storage outside this tensor has no gradient.
    """
    x = tensor_argument(input, "as_strided")
    shape, strides = as_shape((size,)), as_shape((stride,), "stride")
    if len(shape) != len(strides):
        raise RuntimeError(f"mismatch in length of strides and shape (size={list(shape)}, stride={list(strides)})")
    base, own = _storage(x)
    if own or base.size != x._layout.extent:
        launch.escapes("as_strided() of a part, which may look at the memory around it")
    offset = own if storage_offset is None else as_int(storage_offset, "storage_offset")
    if offset < 0 or any(s < 0 for s in strides) or any(n < 0 for n in shape):
        raise RuntimeError(
            f"as_strided: negative sizes, strides and offsets are not supported (size={list(shape)}, stride={list(strides)})"
        )
    extent = layout(shape, strides, x.dtype).extent + offset if numel(shape) else 0
    if extent > base.size:
        raise RuntimeError(
            f"setStorage: sizes {list(shape)}, strides {list(strides)}, storage offset {offset} need {extent} elements, but the "
            f"storage has {base.size}"
        )
    if own <= offset and extent <= own + x._layout.extent:
        return _as_strided(x, tuple(x.shape), x._layout.strides, shape, strides, offset - own)
    return _as_strided_beyond(x, own, tuple(x.shape), x._layout.strides, shape, strides, offset)


@public()
def unfold(input, dimension, size, step):
    """Views of windows of ``size`` every ``step`` elements along a dim, in a new last dim."""
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
    lay = x._layout
    shape = [*lay.shape[:d], (n - size) // step + 1, *lay.shape[d + 1 :], size]
    strides = [*lay.strides[:d], lay.strides[d] * step, *lay.strides[d + 1 :], lay.strides[d]]
    return _as_strided(x, tuple(x.shape), lay.strides, tuple(shape), tuple(strides), 0)


# ------------------------------------------------------------------------------------------------ joining


def _cat_rule(g: Tensor, tensors_shape: Sequence[Size], d: int) -> tuple:
    out, start = [], 0
    for shape in tensors_shape:
        n = shape[d]
        out.append(_slice(g, d, start, n, 1))
        start += n
    return tuple(out)


@structured(tensors=_cat_rule, node="CatBackward0")
def _cat(tensors, d):
    first = tensors[0]
    shape = list(first.shape)
    shape[d] = sum(t.shape[d] for t in tensors)
    lay = layout(shape, None, first.dtype)
    y = make(launch.empty(lay.size, lay.dtype.carrier), lay, [0, 0])
    start = 0
    for t in tensors:
        n = t.shape[d]
        if t._layout.size:
            _slice(y, d, start, n, 1).copy_(t)
        start += n
    y._version_[0] = 0
    return y


_cats = Joins(_cat)


@public("concat", "concatenate", method=False)
def cat(tensors, dim=0, *, axis=None, out=None):
    """Join tensors along ``dim``; other sizes must be equal. dtypes are promoted.

    Errors: RuntimeError for an empty list or sizes that differ. Source: https://docs.pytorch.org/docs/stable/generated/torch.cat.html
    """
    if out is None and axis is None:
        y = _cats.find(dim, tensors)
        if y is not None:
            return y
    ts = tensors_argument(tensors, "cat")
    # PyTorch lets old-style empty tensors of shape (0,) join anything
    kept = [t for t in ts if tuple(t.shape) != (0,)] or [ts[0]]
    first = kept[0]
    if any(t.ndim == 0 for t in ts):
        raise RuntimeError("zero-dimensional tensor (at position 0) cannot be concatenated")
    d = wrap_dim(dim if axis is None else axis, first.ndim)
    kind = ts[0].dtype
    for t in ts[1:]:
        kind = dtypes.promote_types(kind, t.dtype)
    for i, t in enumerate(kept):
        if t.ndim != first.ndim:
            raise RuntimeError(f"Tensors must have same number of dimensions: got {first.ndim} and {t.ndim}")
        for k, (a, b) in enumerate(zip(first.shape, t.shape, strict=True)):
            if k != d and a != b:
                raise RuntimeError(
                    f"Sizes of tensors must match except in dimension {d}. Expected size {a} but got size {b} for tensor number {i} in "
                    "the list."
                )
    if len(kept) == len(ts):
        _cats.keep(dim, ts, join(ts, d, [*first.shape[:d], sum(t.shape[d] for t in ts), *first.shape[d + 1 :]]))
    y = _cat(tuple(t.to(kind) for t in kept), d)
    if out is None:
        return y
    from .recording import store

    return store(out, y, "cat", ts)


@structured(
    tensors=lambda g, tensors_shape, d: tuple([_select(g, d, i) for i in range(len(tensors_shape))]), node="StackBackward0"
)
def _stack(tensors, d):
    return _cat.forward([_unsqueeze(t, d) for t in tensors], d)


_stacks = Joins(_stack)


@public(method=False)
def stack(tensors, dim=0, *, axis=None, out=None):
    """Join tensors of one shape along a new dim. RuntimeError when shapes differ."""
    dim = dim if axis is None else axis
    if out is None:
        y = _stacks.find(dim, tensors)
        if y is not None:
            return y
    ts = tensors_argument(tensors, "stack")
    d = wrap_dim(dim, ts[0].ndim + 1)
    for i, t in enumerate(ts):
        if t.shape != ts[0].shape:
            raise RuntimeError(
                f"stack expects each tensor to be equal size, but got {list(ts[0].shape)} at entry 0 and {list(t.shape)} at entry {i}"
            )
    kind = ts[0].dtype
    for t in ts[1:]:
        kind = dtypes.promote_types(kind, t.dtype)
    _stacks.keep(dim, ts, join(ts, d, [*ts[0].shape[:d], len(ts), *ts[0].shape[d:]]))
    y = _stack(tuple(t.to(kind) for t in ts), d)
    if out is None:
        return y
    from .recording import store

    return store(out, y, "stack")


@public()
def tile(input, *counts, dims=None):
    """Repeat the tensor ``dims`` times along each dim (missing dims count as 1)."""
    x = tensor_argument(input, "tile")
    reps = as_shape(counts if dims is None else (dims,), "dims")
    return repeat(x, *((1,) * (x.ndim - len(reps)) + tuple(reps)))


@public()
def repeat(input, *counts, repeats=None):
    """Repeat the tensor along each dim; needs at least as many numbers as dims."""
    x = tensor_argument(input, "repeat")
    reps = as_shape(counts if repeats is None else (repeats,), "repeats")
    if len(reps) < x.ndim:
        raise RuntimeError(
            f"Number of dimensions of repeat dims can not be smaller than number of dimensions of tensor (repeats={list(reps)}, "
            f"tensor has {x.ndim})"
        )
    if any(n < 0 for n in reps):
        raise RuntimeError(f"Trying to create tensor with negative dimension {min(reps)}: {list(reps)}")
    shape = (1,) * (len(reps) - x.ndim) + tuple(x.shape)
    y = reshape(x, *[k for n in shape for k in (1, n)])
    y = expand(y, *[k for r, n in zip(reps, shape, strict=True) for k in (r, n)])
    return reshape(clone(y), *[r * n for r, n in zip(reps, shape, strict=True)])


@quick
def _transposed(x):
    return (_permute, tuple(range(x.ndim))[::-1]) if x.ndim else (_alias,)


Tensor.T = property(_transposed, doc="The dims in reverse order, a view.")  # type: ignore[attr-defined]


@quick
def _matrix_transposed(x):
    if x.ndim < 2:
        raise RuntimeError(f"tensor.mT is only supported on matrices or batches of matrices. Got {x.ndim}-D tensor.")
    return _transpose, x.ndim - 2, x.ndim - 1


Tensor.mT = property(_matrix_transposed, doc="The last two dims swapped, a view.")  # type: ignore[attr-defined]
