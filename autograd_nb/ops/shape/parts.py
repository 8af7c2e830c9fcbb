"""Parts of a tensor: slices and diagonals, the tensor split or taken apart; views all."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from ... import dtypes
from ...errors import refuse_keywords
from ...shapes import as_int, as_shape, layout_of, wrap_dim
from ...tensor import Tensor, make
from ..core.recording import scalar_type
from ..core.registry import OPS, public
from ..core.structured import structured, tensor_argument
from ..core.views import geometry, memoized_view
from .shape import _alias, _zeros


@structured(
    x=lambda g, x_shape, d, index: _select_backward(g, x_shape, d, index), view=True, node="SelectBackward0",
    linear="jointly", batch="shift",
    samples="x(3, 4).select(1, 2)",
)
@geometry
def _select(layout, d, index):
    strides = layout.strides
    return [*layout.sizes[:d], *layout.sizes[d + 1 :]], [*strides[:d], *strides[d + 1 :]], index * strides[d]


@structured(x=lambda g, d, index: _select(g, d, index), linear="jointly", batch="shift")
def _select_backward(x, shape, d, index):
    z = _zeros(shape, x.dtype)
    _select(z, d, index).copy_(x)
    return z


@public()
@memoized_view
def select(input, dim, index: int):
    """Return the slice at ``index`` of ``dim``, a view with that dim removed. IndexError when out of range; select([[1, 2], [3, 4]], 0, 1) = [3, 4]."""
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
    linear="jointly", batch="shift",
    samples="x(3, 4).narrow(1, 1, 2)",
)
@geometry
def _slice(layout, d, start, count, step):
    shape, strides = list(layout.shape), list(layout.strides)
    shape[d] = count
    offset = start * strides[d] if count and layout.size else 0
    strides[d] *= step
    return shape, strides, offset


@structured(x=lambda g, d, start, count, step: _slice(g, d, start, count, step), linear="jointly", batch="shift")
def _slice_backward(x, shape, d, start, count, step):
    z = _zeros(shape, x.dtype)
    _slice(z, d, start, count, step).copy_(x)
    return z


def slice_dim(x: Tensor, d: int, start: int | None, stop: int | None, step: int | None) -> Tensor:
    """Return ``x[start:stop:step]`` along ``d``. ValueError for a step below 1."""
    step = 1 if step is None else as_int(step, "step")
    if step < 1:
        raise ValueError(f"step must be greater than zero (step={step}); use flip() to reverse")
    op, *arguments = _slice_of(x._layout.shape[d], d, start, stop, step)
    return op(x, *arguments)  # type: ignore[no-any-return]


def _slice_of(size: int, d: int, start: int | None, stop: int | None, step: int) -> tuple[Any, ...]:
    """Return the view op and its arguments that make ``[start:stop:step]`` along ``d``."""
    start, stop, _ = slice(start, stop, step).indices(size)
    count = max(0, -(-(stop - start) // step))
    return (_alias,) if count == size and step == 1 else (_slice, d, start, count, step)


@public()
@memoized_view
def narrow(input, dim, start: int | Tensor, length):
    """Return the view of ``length`` elements from ``start`` along ``dim``. RuntimeError when it does not fit; narrow([1, 2, 3], 0, 1, 2) = [2, 3]."""
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


@structured(
    x=lambda g, x_shape, d, sizes: _join_parts(g, x_shape, d, sizes), view=True, node="SplitBackward0",
    linear="jointly", batch="shift",
    samples="x(3, 4).split(3, 1)",
)
def _split(x, d, sizes):
    out, start = [], 0
    for n in sizes:
        out.append(_slice(x, d, start, n, 1))
        start += n
    return out


def _join_parts(grads: list[Any], shape: Sequence[int], d: int, sizes: Sequence[int]) -> Tensor:
    there = [k for k, g in enumerate(grads) if g is not None]
    first = grads[there[0]]
    if len(there) == 1 < len(grads):
        return _slice_backward(first, shape, d, sum(sizes[: there[0]]), first.shape[d], 1)
    parts = [
        g if g is not None else _zeros([*shape[:d], n, *shape[d + 1 :]], first.dtype) for g, n in zip(grads, sizes, strict=True)
    ]
    return OPS["cat"].call(parts, d)


def _parts_of(n: int, size: int) -> tuple[int, ...]:
    return tuple(min(size, n - i) for i in range(0, n, size)) if n else (0,)


@public()
@memoized_view
def split(tensor, split_size_or_sections: int | Sequence[int] | None = None, dim=0, **kw):
    """Return views of parts along ``dim``: of one size (the last may be smaller), or of the listed sizes.

    Derivative: the gradient of each part stands in its place; parts that are not used give zeros.
    Errors: RuntimeError when the sizes do not add up.

    >>> [part.tolist() for part in torch.arange(5).split(2)]
    [[0, 1], [2, 3], [4]]
    """
    x = tensor_argument(tensor, "split")
    if kw:
        refuse_keywords("split", kw, ("split_size", "split_size_or_sections", "dim"))
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
def split_with_sizes(input, split_sizes, dim=0) -> tuple[Tensor, ...]:
    """Return `split` by a list of sizes; split_with_sizes([1, 2, 3], (1, 2)) = ([1], [2, 3])."""
    if not isinstance(split_sizes, (tuple, list)):
        raise TypeError(
            f"split_with_sizes(): argument 'split_sizes' (position 2) must be tuple of ints, not {type(split_sizes).__name__} "
            f"(split_sizes={split_sizes!r})"
        )
    return split(input, list(split_sizes), dim)


@public()
@memoized_view
def chunk(input, chunks, dim=0):
    """Return at most ``chunks`` views of equal size (the last may be smaller) along ``dim``; chunk([1, 2, 3], 2) = ([1, 2], [3])."""
    x = tensor_argument(input, "chunk")
    if x.ndim == 0:
        raise RuntimeError("chunk expects at least a 1-dimensional tensor")
    n = as_int(chunks, "chunks")
    if n < 1:
        raise RuntimeError(f"chunk expects `chunks` to be greater than 0, got: {n}")
    d = wrap_dim(dim, x.ndim)
    if not x.shape[d]:
        return _split, d, (0,) * n
    return _split, d, _parts_of(x.shape[d], -(-x.shape[d] // n))


@public()
@memoized_view
def tensor_split(
    input, indices_or_sections: int | Sequence[int] | Tensor | None = None, dim=0, *, indices: Sequence[int] | None = None,
    sections: int | None = None, tensor_indices_or_sections: Tensor | None = None,
) -> tuple[Tensor, ...]:  # fmt: skip
    """Return views of nearly equal parts, or of the parts between given indices; tensor_split([1, 2, 3, 4, 5], 2) = ([1, 2, 3], [4, 5]).

    How to split may be said by name, too: ``indices``, ``sections``, or ``tensor_indices_or_sections``.
    """
    x = tensor_argument(input, "tensor_split")
    given = [v for v in (indices_or_sections, indices, sections, tensor_indices_or_sections) if v is not None]
    if len(given) != 1:
        raise TypeError(f"tensor_split() takes one of indices, sections and tensor_indices_or_sections, got {len(given)}")
    if x.ndim == 0:
        raise RuntimeError("tensor_split expected at least a 1-dimensional tensor, but got a tensor with 0 dims")
    if isinstance(given[0], Tensor):  # numbers are looked up
        return tensor_split(x, _in_python(given[0]), dim)  # type: ignore[no-any-return]
    return slices(x, wrap_dim(dim, x.ndim), given[0])  # type: ignore[return-value]


def _in_python(how: Tensor) -> int | tuple[int, ...]:
    """Return what a tensor says of how to split; RuntimeError where it is of other dtypes or of more dims."""
    if how.dtype is not dtypes.int64:
        raise RuntimeError(f"tensor_split expected tensor_indices_or_sections to have dtype of long, but got {scalar_type(how.dtype)}")
    if how.ndim > 1:
        raise RuntimeError(
            "tensor_split expected tensor_indices_or_sections to be a zero-dimensional or one-dimensional tensor, but got a tensor with "
            f"{how.ndim} dims"
        )
    found = how.tolist()
    return tuple(found) if how.ndim else found  # type: ignore[return-value]


def slices(x: Tensor, d: int, how: Any) -> list[tuple[Any, ...]]:
    """Return the view op and its arguments for each part of ``x`` that `tensor_split` makes."""
    if isinstance(how, Tensor):
        how = _in_python(how)
    n = x.shape[d]
    if isinstance(how, int):
        if how <= 0:
            raise RuntimeError(f"number of sections must be larger than 0, got {how}")
        base, more = divmod(n, how)
        sizes = [base + (i < more) for i in range(how)]
        bounds = [sum(sizes[:i]) for i in range(how + 1)]
    else:
        bounds = [0, *how, n]
    return [_slice_of(n, d, a, b, 1) for a, b in pairwise(bounds)]


@structured(
    x=lambda g, x_shape, d: _stack_parts(g, x_shape, d), view=True, node="UnbindBackward0",
    linear="jointly", batch="shift",
    samples="x(3, 4).unbind(1)",
)
def _unbind(x, d):
    layout, step = x._layout, x._layout.strides[d]
    shape, strides, _ = _select.geometry(layout, d, 0)
    part = layout_of(shape, strides, layout.dtype)
    return [make(x._data[step * i :] if i else x._data, part, x._version_) for i in range(x.shape[d])]


def _stack_parts(grads: list[Any], shape: Sequence[int], d: int) -> Tensor:
    there = [k for k, g in enumerate(grads) if g is not None]
    first = grads[there[0]]
    if len(there) == 1 < len(grads):
        return _select_backward(first, shape, d, there[0])
    rest = [*shape[:d], *shape[d + 1 :]]
    return OPS["stack"].call([g if g is not None else _zeros(rest, first.dtype) for g in grads], d)


@public()
@memoized_view
def unbind(input, dim=0):
    """Return a tuple of the slices along ``dim``, views; unbind([[1, 2], [3, 4]]) = ([1, 2], [3, 4]).

    Derivative: the gradient of each slice stands in its place; slices that are not used give zeros.
    """
    x = tensor_argument(input, "unbind")
    if x.ndim == 0:
        raise IndexError("Dimension specified as 0 but tensor has no dimensions")
    d = wrap_dim(dim, x.ndim)
    return (_unbind, d) if x.shape[d] else ()


@structured(
    x=lambda g, x_shape, offset, a, b: _diagonal_backward(g, x_shape, offset, a, b), view=True, node="DiagonalBackward0",
    linear="jointly", batch="shift",
    samples="x(3, 4).diagonal(1)",
)
@geometry
def _diagonal(layout, offset, a, b):
    n, m = layout.shape[a], layout.shape[b]
    count = max(0, min(n, m - offset) if offset >= 0 else min(n + offset, m))
    start = (offset * layout.strides[b] if offset >= 0 else -offset * layout.strides[a]) if count else 0
    rest = [d for d in range(layout.ndim) if d not in (a, b)]
    strides = [*[layout.strides[d] for d in rest], layout.strides[a] + layout.strides[b]]
    return [*[layout.shape[d] for d in rest], count], strides, start


@structured(x=lambda g, offset, a, b: _diagonal(g, offset, a, b), linear="jointly", batch="shift")
def _diagonal_backward(x, shape, offset, a, b):
    z = _zeros(shape, x.dtype)
    _diagonal(z, offset, a, b).copy_(x)
    return z


@public()
@memoized_view
def diagonal(input, offset=0, dim1=0, dim2=1):
    """Return the diagonal of each matrix in dims ``dim1``, ``dim2`` as a view, in a new last dim; diagonal([[1, 2], [3, 4]]) = [1, 4].

    Derivative: the gradient on that diagonal, zeros elsewhere.
    """
    x = tensor_argument(input, "diagonal")
    a, b = wrap_dim(dim1, x.ndim, "dim1"), wrap_dim(dim2, x.ndim, "dim2")
    if a == b:
        raise RuntimeError(f"diagonal dimensions cannot be identical {dim1}, {dim2}")
    return _diagonal, as_int(offset, "offset"), a, b
