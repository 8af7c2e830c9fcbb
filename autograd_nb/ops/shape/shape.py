"""Other shapes: reshape, permute, expand, squeeze; views where possible, one copying kernel where not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ... import dtypes, launch
from ...errors import warn_user
from ...shapes import (
    as_ints,
    as_shape,
    broadcast_shapes,
    expanded_strides,
    infer_shape,
    layout_of,
    numel,
    view_strides,
    wrap_dim,
    wrap_dims,
)
from ...tensor import Tensor, _storage, make
from ..core.marked import MARKED
from ..core.numbers import several_argument
from ..core.registry import public
from ..core.structured import none_given, structured, tensor_argument, tensors_argument
from ..core.views import geometry, memoized_view
from ..creation.cast import clone, contiguous


def _zeros(shape: Sequence[int], d: dtypes.dtype) -> Tensor:
    layout = layout_of(shape, None, d)
    data = launch.zeros(layout.size, d.carrier)
    if data is not None:
        return make(data, layout, [0, 0])
    t = make(launch.empty(layout.size, d.carrier), layout, [0, 0])
    t.zero_()
    return t


def _with(x: Tensor, shape: Sequence[int], strides: Sequence[int], offset: int = 0) -> Tensor:
    """Return ``x``'s memory from element ``offset`` on under another shape and strides."""
    data = x._data[offset:] if offset else x._data
    return make(data, layout_of(shape, strides, x._layout.dtype), x._version_)


@structured(
    x=lambda g, x_shape: reshape(g, x_shape), view=True, node="ViewBackward0", linear="jointly", batch="shift",
    samples="x(3, 4).view(2, 6)",
)
@geometry
def _view(layout, shape):
    return shape, view_strides(layout, shape), 0


@structured(
    x=lambda g, x_shape: reshape(g, x_shape), node="UnsafeViewBackward0", linear="jointly", batch="shift",
    samples="x(3, 4).t().reshape(2, 6)",
)
def _copied_view(x, shape):
    y = clone(x)
    return make(y._data, layout_of(shape, None, y._layout.dtype), y._version_)


@public(namespaces=())
@memoized_view
def view(input, *shape, dtype=None, size=None):
    """Return the same memory under another shape (one size may be -1), or read as another dtype of the same width.

    Errors: RuntimeError where the strides do not allow it (then `reshape` copies).
    Source: https://docs.pytorch.org/docs/stable/generated/torch.Tensor.view.html

    >>> torch.tensor([1, 2, 3, 4]).view(2, 2)
    tensor([[1, 2],
            [3, 4]])
    """
    x = tensor_argument(input, "view")
    if dtype is None and len(shape) == 1 and isinstance(shape[0], (dtypes.dtype, type)):
        dtype = shape[0]
    if dtype is not None:
        if x.__class__ in MARKED:
            which = "conjugate view tensors" if x.mark == "conj" else "tensors with negative bit set"
            raise RuntimeError(
                f"torch.Tensor.view is not supported for {which} when converting to a different dtype ({x.dtype} to {dtype}; use "
                "x.resolve_conj().resolve_neg(), a copy)"
            )
        return _view_dtype(x, dtypes.as_dtype(dtype))
    sizes = infer_shape(as_shape(shape if size is None else (size,), op="view"), x._layout.size)
    if not x._layout.contiguous and view_strides(x._layout, sizes) is None:
        raise RuntimeError(
            "view size is not compatible with input tensor's size and stride (at least one dimension spans across two contiguous "
            f"subspaces). Use .reshape(...) instead. (size {list(x.shape)}, stride {x._layout.strides}, asked for {list(sizes)})"
        )
    return _view, sizes


def _view_dtype(x: Tensor, d: dtypes.dtype) -> Tensor:
    layout = x._layout
    a, b = layout.dtype.itemsize, d.itemsize
    shape, strides = list(layout.shape), list(layout.strides)
    if a != b:
        if not layout.ndim:
            raise RuntimeError(f"self.dim() cannot be 0 to view {layout.dtype} as {d} (different element sizes)")
        if strides[-1] != 1:
            raise RuntimeError(
                f"self.stride(-1) must be 1 to view {layout.dtype} as {d} (different element sizes), but got {strides[-1]}"
            )
        if a > b:
            k = a // b
            shape[-1] *= k
            strides = [s * k for s in strides[:-1]] + [1]
        else:
            k = b // a
            lengths = {"size(-1)": shape[-1], "storage_offset()": _storage(x)[1], **{f"stride({i})": s for i, s in enumerate(strides[:-1])}}
            for length, n in lengths.items():
                if n % k:
                    raise RuntimeError(
                        f"self.{length} must be divisible by {k} to view {layout.dtype} as {d} (different element sizes), but got {n}"
                    )
            shape[-1] //= k
            strides = [s // k for s in strides[:-1]] + [1]
    data = x._data[: layout.extent].view(d.carrier)
    return make(data, layout_of(shape, strides, d), x._version_)


@structured(x=lambda g: g, view=True, linear="jointly", batch="shift", samples="x(3, 4).view_as(x(3, 4))")
@geometry
def _alias(layout):
    return layout.shape, layout.strides, 0


def alias_view(x: Tensor) -> Tensor:
    """Return a view of all of ``x``."""
    return _alias(x)


@public()
@memoized_view
def reshape(input, *sizes, shape=None):
    """Return the elements in C order under another shape (one size may be -1): a view where possible, else a copy; dy/dx = 1.

    Errors: RuntimeError when the sizes do not fit. Source: https://docs.pytorch.org/docs/stable/generated/torch.reshape.html

    >>> torch.reshape(torch.arange(4), (2, -1))
    tensor([[0, 1],
            [2, 3]])
    """
    x = tensor_argument(input, "reshape")
    shape = infer_shape(as_shape(sizes if shape is None else (shape,), "shape", "reshape"), x._layout.size)
    return _reshape(x, shape)


def _reshape(x: Tensor, shape: Sequence[int]) -> tuple[Any, ...]:
    return (_view if x._layout.contiguous or view_strides(x._layout, shape) is not None else _copied_view), shape


@public(namespaces=())
def view_as(input, other):
    """Return ``view`` with the shape of ``other``; [1, 2].view_as([[3, 4]]) = [[1, 2]]."""
    return view(input, tensor_argument(other, "view_as", "other")._layout.shape)


@public(namespaces=())
def reshape_as(input, other):
    """Return ``reshape`` with the shape of ``other``; [1, 2].reshape_as([[3, 4]]) = [[1, 2]]."""
    return reshape(input, tensor_argument(other, "reshape_as", "other").shape)


@public()
@memoized_view
def flatten(input, start_dim=0, end_dim=-1):
    """Merge the dims from ``start_dim`` to ``end_dim`` into one; flatten([[1, 2], [3, 4]]) = [1, 2, 3, 4]."""
    x = tensor_argument(input, "flatten")
    a, b = wrap_dim(start_dim, max(x.ndim, 1), "start_dim"), wrap_dim(end_dim, max(x.ndim, 1), "end_dim")
    if x.ndim == 0:
        return _view, (1,)
    if a > b:
        raise RuntimeError(
            f"flatten() has invalid args: start_dim cannot come after end_dim (start_dim={start_dim}, end_dim={end_dim})"
        )
    if a == b:
        return x
    return _reshape(x, (*x.shape[:a], numel(x.shape[a : b + 1]), *x.shape[b + 1 :]))


@public()
def ravel(input):
    """Return all elements in one dim, in C order: a view of a contiguous tensor, else a copy; ravel([[1, 2], [3, 4]]) = [1, 2, 3, 4]."""
    return reshape(contiguous(tensor_argument(input, "ravel")), -1)


@public()
@memoized_view
def unflatten(input, dim: int, sizes):
    """Split one dim into ``sizes`` (one may be -1); unflatten([1, 2, 3, 4], 0, (2, 2)) = [[1, 2], [3, 4]]."""
    x = tensor_argument(input, "unflatten")
    if not x.ndim:
        wrap_dim(dim, 1)
        raise RuntimeError(f"unflatten got an unexpected error: Dimension specified as {dim} but tensor has no dimensions")
    d = wrap_dim(dim, x.ndim)
    if not hasattr(sizes, "__iter__"):
        raise TypeError(f"unflatten(): argument 'sizes' (position 3) must be tuple of ints, not {type(sizes).__name__} (sizes={sizes!r})")
    if not len(sizes):
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


@structured(
    x=lambda g, order: _permute(g, _inverse(order)), view=True, node="PermuteBackward0",
    linear="jointly", batch="shift",
    samples="x(2, 3, 4).permute(2, 0, 1)",
)
@geometry
def _permute(layout, order):
    return [layout.sizes[d] for d in order], [layout.strides[d] for d in order], 0


@structured(
    x=lambda g, a, b: _transpose(g, a, b), view=True, node="TransposeBackward0", linear="jointly", batch="shift",
    samples="x(2, 3, 4).transpose(0, 2)",
)
@geometry
def _transpose(layout, a, b):
    shape, strides = list(layout.shape), list(layout.strides)
    shape[a], shape[b] = shape[b], shape[a]
    strides[a], strides[b] = strides[b], strides[a]
    return shape, strides, 0


@structured(x=lambda g: _t(g), view=True, node="TBackward0", linear="jointly", samples="x(3, 4).t()")
@geometry
def _t(layout):
    return layout.sizes[::-1], layout.strides[::-1], 0


@_t.batched
def _t_of_batch(op, args, batch):
    x = batch.whole(args[0])
    return x.transpose(1, 2) if x.ndim == 3 else x.view(x.shape)


@public()
@memoized_view
def permute(input, *axes, dims: int | Sequence[int] | None = None):
    """Return the dims in another order, a view. RuntimeError unless ``dims`` names each dim once; permute([[1, 2, 3]], (1, 0)) = [[1], [2], [3]].

    Derivative: the gradient with the dims in their first order.
    """
    x = tensor_argument(input, "permute")
    if not axes and dims is None:
        raise TypeError('permute() missing 1 required positional arguments: "dims"')
    order = as_shape(axes if dims is None else (dims,), "dims")
    if len(order) != x.ndim:
        raise RuntimeError(
            f"permute(sparse_coo): number of dimensions in the tensor input does not match the length of the desired ordering of "
            f"dimensions i.e. input.dim() = {x.ndim} is not equal to len(dims) = {len(order)}"
        )
    if x.ndim == 0:
        return (_alias,)
    return _permute, wrap_dims(order, x.ndim, "dims")


def _swapped(x, first, second):
    a, b = wrap_dim(first, x.ndim, "dim0"), wrap_dim(second, x.ndim, "dim1")
    return (_transpose, a, b) if x.ndim else (_alias,)


@public()
@memoized_view
def swapaxes(input, axis0, axis1):
    """Swap two axes, a view, as `transpose` does; swapaxes([[1, 2, 3]], 0, 1) = [[1], [2], [3]].

    Derivative: the gradient with the two swapped back.
    """
    return _swapped(tensor_argument(input, "swapaxes"), axis0, axis1)


@public("swapdims")
@memoized_view
def transpose(input, dim0, dim1):
    """Swap two dims, a view; transpose([[1, 2, 3]], 0, 1) = [[1], [2], [3]].

    Derivative: the gradient with the two dims swapped back.
    """
    return _swapped(tensor_argument(input, "transpose"), dim0, dim1)


@public()
@memoized_view
def t(input):
    """Return the transpose of a matrix (tensors of fewer dims as they are). RuntimeError for more than 2 dims; t([[1, 2], [3, 4]]) = [[1, 3], [2, 4]]."""
    x = tensor_argument(input, "t")
    if x.ndim > 2:
        raise RuntimeError(f"t() expects a tensor with <= 2 dimensions, but self is {x.ndim}D")
    return (_t,) if x.ndim == 2 else (_alias,)


@public("moveaxis")
@memoized_view
def movedim(input, source: int | Sequence[int], destination: int | Sequence[int]):
    """Move dims to other places, the rest keeping their order; movedim([[1, 2, 3]], 0, 1) = [[1], [2], [3]]."""
    x = tensor_argument(input, "movedim")
    if isinstance(source, (tuple, list)) is not isinstance(destination, (tuple, list)):
        raise TypeError(
            f"movedim() received an invalid combination of arguments: source ({source!r}) and destination ({destination!r}) must be two ints or "
            "two tuples of ints"
        )
    source, destination = (
        as_ints(several_argument(v, "movedim", n), n, "movedim") for v, n in ((source, "source"), (destination, "destination"))
    )
    if len(source) != len(destination):
        raise RuntimeError(
            f"movedim: Invalid source or destination dims: source ({list(source)} dims) should contain the same number of dims as "
            f"destination ({list(destination)} dims)"
        )
    for name, given in (("source", source), ("destination", destination)):
        if len({wrap_dim(d, x.ndim) for d in given}) < len(given):
            raise RuntimeError(f"movedim: repeated dim in `{name}` ({list(given)})")
    src, dst = wrap_dims(source, x.ndim, "source"), wrap_dims(destination, x.ndim, "destination")
    if not x.ndim:
        return (_alias,)
    order: list[int | None] = [None] * x.ndim
    for s, d in zip(src, dst, strict=True):
        order[d] = s
    rest = iter(d for d in range(x.ndim) if d not in src)
    return _permute, tuple(next(rest) if o is None else o for o in order)


@structured(
    x=lambda g, x_shape: g.sum_to_size(x_shape), view=True, node="ExpandBackward0", linear="jointly",
    samples="x(3, 1).expand(2, 3, 4)",
)
@geometry
def _expand(layout, shape):
    return shape, expanded_strides(layout, shape), 0


@_expand.batched
def _expand_of_batch(op, args, batch):
    x, shape = args
    value = batch.whole(x)
    for _ in range(len(shape) - x.ndim):
        value = value.unsqueeze(1)
    return op(value, (batch.size, *shape))


@public(namespaces=())
@memoized_view
def expand(input, *sizes, size=None, implicit=False):
    """Return a view in which dims of size 1 are stretched to ``size`` (-1 keeps a dim); new dims may be added in front.

    Errors: RuntimeError where a size does not match.

    >>> torch.tensor([1, 2]).expand(2, 2)
    tensor([[1, 2],
            [1, 2]])
    """
    x = tensor_argument(input, "expand")
    sizes = list(as_shape(sizes if size is None else (size,), op="expand"))
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


@public(namespaces=())
def expand_as(input, other):
    """Return ``expand`` to the shape of ``other``; [1, 2].expand_as([[3, 4], [5, 6]]) = [[1, 2], [1, 2]]."""
    return expand(input, tensor_argument(other, "expand_as", "other").shape)


@public()
def broadcast_to(input, size):
    """Return ``expand`` under its NumPy name; broadcast_to([1, 2], (2, 2)) = [[1, 2], [1, 2]]."""
    return expand(input, size)


@public(method=False)
def broadcast_tensors(*tensors) -> tuple[Tensor, ...]:
    """Return the tensors expanded to their common shape; broadcast_tensors([1, 2], [[3], [4]]) = ([[1, 2], [1, 2]], [[3, 3], [4, 4]])."""
    if none_given(tensors):
        return ()
    ts = tensors_argument(
        tensors[0] if len(tensors) == 1 and not isinstance(tensors[0], Tensor) else tensors, "broadcast_tensors"
    )
    shape = broadcast_shapes(*[x.shape for x in ts])
    return tuple(x if x.shape == shape else expand(x, shape) for x in ts)


@structured(
    x=lambda g, x_shape: reshape(g, x_shape), view=True, node="SqueezeBackward0", linear="jointly", batch="shift",
    samples="x(3, 1, 4).squeeze(1)",
)
@geometry
def _squeeze(layout, dims):
    keep = [d for d in range(layout.ndim) if d not in dims or layout.sizes[d] != 1]
    return [layout.sizes[d] for d in keep], [layout.strides[d] for d in keep], 0


@public()
@memoized_view
def squeeze(input, dim: int | Sequence[int] | None = None):
    """Drop the dims of size 1 (all, or those in ``dim``), a view; squeeze([[1, 2]]) = [1, 2]."""
    x = tensor_argument(input, "squeeze")
    return _squeeze, tuple(range(x.ndim)) if dim is None else wrap_dims(dim, x.ndim)


@structured(
    x=lambda g, x_shape: reshape(g, x_shape), view=True, node="UnsqueezeBackward0", linear="jointly", batch="shift",
    samples="x(3, 4).unsqueeze(1)",
)
@geometry
def _unsqueeze(layout, d):
    step = layout.strides[d] * layout.sizes[d] if d < layout.ndim else 1
    return [*layout.sizes[:d], 1, *layout.sizes[d:]], [*layout.strides[:d], step, *layout.strides[d:]], 0


@public()
@memoized_view
def unsqueeze(input, dim):
    """Return a view with a new dim of size 1 at ``dim``; unsqueeze([1, 2], 1) = [[1], [2]]."""
    x = tensor_argument(input, "unsqueeze")
    return _unsqueeze, wrap_dim(dim, x.ndim + 1)


def _warn_of_rank(name: str, x: Tensor, remedy: str) -> None:
    warn_user(
        f"The use of Tensor.{name} on tensors of {x.ndim} dimensions is deprecated and will throw an error in a future release of "
        f"PyTorch. {remedy}",
    )


@memoized_view
def _transposed(x):
    if x.ndim != 2:
        _warn_of_rank("T", x, "Use x.mT for batches of matrices, or x.permute(*range(x.ndim - 1, -1, -1)) for all dims in reverse order.")
    return (_permute, tuple(range(x.ndim))[::-1]) if x.ndim else (_alias,)


Tensor.T = property(_transposed, doc="The dims in reverse order, a view.")  # type: ignore[assignment]


@memoized_view
def _matrix_transposed(x):
    if not x.ndim:
        _warn_of_rank("mT", x, "The result is the tensor itself.")
        return x
    if x.ndim < 2:
        raise RuntimeError(f"tensor.mT is only supported on matrices or batches of matrices. Got {x.ndim}-D tensor.")
    return _transpose, x.ndim - 2, x.ndim - 1


Tensor.mT = property(_matrix_transposed, doc="The last two dims swapped, a view.")  # type: ignore[assignment]
