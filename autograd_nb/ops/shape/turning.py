"""Elements in another order along dims: flip, roll, quarter turns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ...codegen import threads
from ...launch import Kernel, empty
from ...shapes import Layout, as_int, as_shape, layout_of, numel, wrap_dim, wrap_dims
from ...tensor import Tensor, make
from ..core.call_path import planned
from ..core.numbers import several_argument
from ..core.registry import public
from ..core.structured import structured, tensor_argument
from ..creation.cast import clone, copied, dense, images, in_memory_order, in_order_again
from .shape import _transpose, reshape

_flip_kernel = Kernel("indexing.index", "flip")
_roll_kernel = Kernel("indexing.index", "roll")


@planned
def _sizes(layout: Layout, d: int, end: int) -> tuple[tuple[int, int, int], Layout]:
    """Return what lies before, along and behind the dims from ``d`` to ``end``, and the layout of the result."""
    shape = layout.shape
    return (numel(shape[:d]), numel(shape[d:end]), numel(shape[end:])), layout_of(shape, None, layout.dtype)


def _along(kernel: Kernel, parts: Callable[..., Any], x: Tensor, d: int, end: int, *more: Any) -> Tensor:
    sizes, layout = _sizes(x._layout, d, end)
    carrier = layout.dtype.carrier
    data = empty(layout.size, carrier)
    if layout.size:
        if threads.alone(threads.COPIED * layout.size):
            kernel(carrier, *sizes, *more, dense(x), data)
        else:
            kernel.split(carrier, (*sizes, *more, dense(x), data), parts)
    return make(data, layout, [0, 0])


def _flip_parts(args: tuple[Any, ...]) -> list[tuple[Any, ...]]:
    outer, n, inner, x, out = args
    work = threads.COPIED * out.size
    if outer > 1:
        return threads.rows(args, (0, 0, n * inner, n * inner), work)
    return [(1, e - b, inner, x[b * inner : e * inner], out[(n - e) * inner : (n - b) * inner]) for b, e in threads.pieces(n, work)]


def _roll_parts(args: tuple[Any, ...]) -> list[tuple[Any, ...]]:
    outer, n, inner, shift, x, out = args
    work = threads.COPIED * out.size
    if outer > 1:
        return threads.rows(args, (0, 0, 0, n * inner, n * inner), work)
    # where what comes first is cut, so that each piece stays in one
    found = [(b, e) for begin, end in threads.pieces(n, work) for b, e in ((begin, min(end, n - shift)), (max(begin, n - shift), end)) if b < e]
    places = [(b, e, b + shift - (n if b >= n - shift else 0)) for b, e in found]
    return [(1, e - b, inner, 0, x[b * inner : e * inner], out[to * inner : (to + e - b) * inner]) for b, e, to in places]


@structured(x=lambda g, dims: _flip(g, dims), node="FlipBackward0", linear="jointly", batch="shift", samples="x(3, 4).flip(1)")
def _flip(x, dims):
    y, order = in_memory_order(x)
    places = sorted(d if order is None else order.index(d) for d in dims)
    while places:  # neighbours are reversed as one
        d = end = places.pop(0)
        while places and places[0] == end + 1:
            end = places.pop(0)
        y = _along(_flip_kernel, _flip_parts, y, d, end + 1)
    return in_order_again(y, order) if dims else copied(x)


@public()
def flip(input, *axes, dims: int | Sequence[int] | None = None):
    """Return the elements in reverse order along each of ``dims``, copied. RuntimeError for a dim named twice; flip([1, 2, 3], (0,)) = [3, 2, 1].

    Derivative: the gradient, reversed along the same dims.
    """
    x = tensor_argument(input, "flip")
    if not axes and dims is None:
        raise TypeError("flip() missing 1 required positional arguments: \"dims\"")
    return _flip(x, wrap_dims(as_shape(axes if dims is None else (dims,), "dims"), x.ndim, "dims"))


@public()
def fliplr(input):
    """Return `flip` of dim 1. RuntimeError for fewer than 2 dims; fliplr([[1, 2], [3, 4]]) = [[2, 1], [4, 3]]."""
    if tensor_argument(input, "fliplr").ndim < 2:
        raise RuntimeError(f"Input must be >= 2-d. (input.shape={list(input.shape)})")
    return flip(input, 1)


@public()
def flipud(input):
    """Return `flip` of dim 0. RuntimeError for 0-d tensors; flipud([[1, 2], [3, 4]]) = [[3, 4], [1, 2]]."""
    if tensor_argument(input, "flipud").ndim < 1:
        raise RuntimeError("Input must be >= 1-d. (input is 0-d)")
    return flip(input, 0)


@structured(
    x=lambda g, shifts, dims: _roll(g, tuple(-s for s in shifts), dims), node="RollBackward0",
    linear="jointly", batch="shift",
    samples="x(3, 4).roll((1, 2), (0, 1))",
)
def _roll(x, shifts, dims):
    # (PyTorch joins two parts for each dim: where all is one part the other is empty, and the result in C order)
    whole = any(s % x.shape[d] == 0 for s, d in zip(shifts, dims, strict=True))
    return (_rolled if whole else _rolled_images)(x, shifts, dims)


def _rolled(x: Tensor, shifts: tuple[int, ...], dims: tuple[int, ...]) -> Tensor:
    for s, d in zip(shifts, dims, strict=True):
        x = _along(_roll_kernel, _roll_parts, x, d, d + 1, s % x.shape[d] if x.shape[d] else 0)
    return x


_rolled_images = images(4, 5)(_rolled)


@structured(
    x=lambda g, shift: _roll_flat(g, -shift), node="RollBackward0", linear="jointly", batch="samples", samples="x(3, 4).roll(5)",
)
def _roll_flat(x, shift):
    """Return all elements in C order, moved (no view of a flat result, as it would be by `reshape`)."""
    flat = _along(_roll_kernel, _roll_parts, reshape(x, -1), 0, 1, shift % x._layout.size if x._layout.size else 0)
    return make(dense(flat), layout_of(x.shape, None, x.dtype), [0, 0])


@public()
def roll(input, shifts: int | Sequence[int], dims: int | Sequence[int] | None = None):
    """Return the elements moved by ``shifts`` along ``dims``, those pushed out at the end coming in at the front.

    Derivative: the gradient, moved back.

    Without ``dims`` on the flattened tensor. RuntimeError when their numbers differ.

    >>> torch.roll(torch.tensor([1, 2, 3]), 1)
    tensor([3, 1, 2])
    """
    x = tensor_argument(input, "roll")
    amounts = as_shape((shifts,), "shifts")
    if not amounts:
        raise RuntimeError("`shifts` required")
    if not all(-(1 << 63) <= amount < 1 << 63 for amount in amounts):
        raise ValueError(f"roll(): Overflow when unpacking long long (shifts={shifts})")
    where = () if dims is None else as_shape((dims,), "dims")
    if not all(-(1 << 63) <= d < 1 << 63 for d in where):
        raise ValueError(f"roll(): Overflow when unpacking long long (dims={dims})")
    if not where and len(amounts) == 1:
        return _roll_flat(x, amounts[0])
    if len(where) != len(amounts):
        raise RuntimeError(f"shifts and dimensions must align. shifts: {len(amounts)}, dims:{len(where)}")
    if not x.ndim:
        raise IndexError(f"Dimension specified as {where[0]} but tensor has no dimensions")
    if not x._layout.size:  # where PyTorch does not look at the dims
        return x.clone()
    return _roll(x, amounts, tuple(wrap_dim(d, x.ndim, "dims") for d in where))


@public()
def rot90(input, k=1, dims=(0, 1)):
    """Return the tensor turned ``k`` times by 90° in the plane of two dims, from the first towards the second; rot90([[1, 2], [3, 4]]) = [[2, 4], [1, 3]]."""
    x, dims = tensor_argument(input, "rot90"), several_argument(dims, "rot90", "dims")
    if len(dims) != 2:
        raise RuntimeError(f"expected total rotation dims == 2, but got dims = {len(dims)}")
    if x.ndim < 2:
        raise RuntimeError(f"expected total dims >= 2, but got total dims = {x.ndim}")
    if dims[0] == dims[1] or abs(dims[0] - dims[1]) == x.ndim:
        raise RuntimeError(f"expected rotation dims to be different, but got dim0 = {dims[0]} and dim1 = {dims[1]}")
    a, b = (wrap_dim(d, x.ndim, "dims") for d in dims)
    k = as_int(k, "k") % 4
    if k == 1:
        return copied(_transpose(flip(x, b), a, b))
    if k == 2:
        return flip(x, a, b)
    if k == 3:
        return copied(_transpose(flip(x, a), a, b))
    return clone(x)
