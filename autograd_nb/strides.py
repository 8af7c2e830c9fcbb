"""Which strides a fresh result gets, by PyTorch's rules: pure integer work on layouts.

A result keeps the order in which its operands' dims lie in memory. `combined` is the rule of pointwise ops (PyTorch's
TensorIterator), `like` that of copies and of ``memory_format=preserve_format``.
"""

from __future__ import annotations

from collections.abc import Sequence

from .dtypes import dtype
from .shapes import Layout, broadcast_strides, layout_of

#: the dims of a tensor in channels-last order, outermost first, by the number of dims
CHANNELS_LAST: dict[int, tuple[int, ...]] = {3: (0, 2, 1), 4: (0, 2, 3, 1), 5: (0, 2, 3, 4, 1)}


def packed(layout: Layout) -> bool:
    """Return whether the elements fill their memory without gaps and overlaps, in whatever order of dims."""
    if layout.contiguous:
        return True
    return _steps_through(layout, sorted(range(layout.ndim), key=lambda d: (layout.sizes[d] < 2, layout.strides[d])))


def _steps_through(layout: Layout, inside_out: Sequence[int]) -> bool:
    """Return whether the dims, innermost first, lie one in the other without gaps."""
    expected = 1
    for d in inside_out:
        n = layout.shape[d]
        if n != 1:
            if layout.strides[d] != expected:
                return False
            expected *= n
    return True


def is_channels_last(layout: Layout, ndim: int = 4) -> bool:
    """Return whether a tensor of this many dims lies in memory with its channels innermost."""
    return layout.ndim == ndim and _steps_through(layout, CHANNELS_LAST[ndim][::-1])


def looks_channels_last(layout: Layout) -> bool:
    """Return whether strides of 3 to 5 dims look like channels last rather than C order, as PyTorch judges it: gaps are allowed."""
    if layout.ndim not in CHANNELS_LAST or layout.strides[1] == 0:
        return False
    least = 0
    for d in reversed(CHANNELS_LAST[layout.ndim]):
        n, s = layout.shape[d], layout.strides[d]
        if n == 0 or s < least:
            return False
        if d == 0 and least == layout.strides[1]:  # N111: as well C order
            return False
        least = s * n if n > 1 else s
    return True


def ordered(shape: Sequence[int], order: Sequence[int], d: dtype) -> Layout:
    """Return the layout without gaps whose dims lie in memory in this order, outermost first."""
    strides, step = [0] * len(shape), 1
    for dim in reversed(order):
        strides[dim] = step
        step *= max(shape[dim], 1)
    return layout_of(shape, strides, d)


def channels_last(shape: Sequence[int], d: dtype) -> Layout:
    """Return the channels-last layout of a shape of 3 to 5 dims."""
    return ordered(shape, CHANNELS_LAST[len(shape)], d)


def order_in_memory(layout: Layout) -> list[int]:
    """Return the dims as `like` lays them, outermost first."""
    kept = like(layout)
    return sorted(range(layout.ndim), key=lambda d: (-kept.strides[d], -kept.shape[d], d))


def permuted(layout: Layout, order: Sequence[int]) -> Layout:
    """Return the layout read with its dims in another order."""
    return layout_of([layout.shape[d] for d in order], [layout.strides[d] for d in order], layout.dtype)


#: the names of memory formats
FORMATS = ("preserve_format", "contiguous_format", "channels_last", "channels_last_3d")


def formatted(layout: Layout, memory_format: str, d: dtype | None = None) -> Layout:
    """Return the layout of a copy in a memory format. RuntimeError for one of another number of dims."""
    d = d or layout.dtype
    if memory_format == "preserve_format":
        return like(layout, d)
    if memory_format == "contiguous_format":
        return layout_of(layout.shape, None, d)
    rank = 4 if memory_format == "channels_last" else 5
    if layout.ndim != rank:
        raise RuntimeError(f"required rank {rank} tensor to use {memory_format} format (this one has {layout.ndim} dims)")
    return channels_last(layout.shape, d)


def is_in(layout: Layout, memory_format: str) -> bool:
    """Return whether the elements lie as a memory format says, without gaps."""
    if memory_format in ("preserve_format", "contiguous_format"):
        return layout.contiguous
    return is_channels_last(layout, 4 if memory_format == "channels_last" else 5)


def suggested(layout: Layout) -> str:
    """Return the name of the memory format that strides look like."""
    if layout.ndim > 3 and looks_channels_last(layout):
        return "channels_last" if layout.ndim == 4 else "channels_last_3d"
    return "contiguous_format"


def like(layout: Layout, d: dtype | None = None) -> Layout:
    """Return the layout of a copy: the same strides where there are no gaps and overlaps, else the same order of dims without them."""
    d = d or layout.dtype
    if packed(layout):
        return layout if d is layout.dtype else layout_of(layout.shape, layout.strides, d)
    if layout.ndim == 1:
        return layout_of(layout.shape, None, d)
    return ordered(layout.shape, walked(layout.shape, [layout.strides]), d)


def obeys(g: Layout, leaf: Layout) -> bool:
    """Return whether a gradient of this layout may become a leaf's as it is: it lies as the leaf does, or in C order if that has gaps."""
    if not packed(leaf):
        return g.contiguous
    alike = zip(g.shape, g.strides, leaf.strides, strict=False)  # a leaf whose .data was exchanged may have other dims
    return g.ndim <= leaf.ndim and all(s == own if n != 1 else s != 0 for n, s, own in alike)


def kept_by(leaf: Layout, g: Layout) -> Layout:
    """Return the layout of a leaf's own copy of a gradient, which has the leaf's shape, or the gradient's where the leaf has gaps."""
    return layout_of(leaf.shape, leaf.strides, g.dtype) if packed(leaf) else layout_of(g.shape, None, g.dtype)


def combined(shape: Sequence[int], operands: Sequence[Layout], d: dtype, apart: bool = False) -> Layout:
    """Return the layout of a pointwise result of this (broadcast) shape.

    ``apart``: one more operand is a number, and so of another shape. Operands of one shape that lie alike in memory hand their
    strides on; else the dims are ordered by the strides of the first operand that tells them apart.
    """
    for layout in operands:
        if not layout.usual and any(layout.strides):  # one element everywhere tells nothing
            break
    else:
        return layout_of(shape, None, d)
    if not apart and all(layout.shape == shape for layout in operands):
        if all(layout.contiguous for layout in operands):
            return layout_of(shape, None, d)
        first = operands[0]
        if len(shape) == 4 and all(is_channels_last(layout) for layout in operands):
            return channels_last(shape, d)
        if all(layout.strides == first.strides for layout in operands) and packed(first):
            return layout_of(shape, first.strides, d)
    order = walked(shape, [broadcast_strides(layout, shape) for layout in operands])
    if order == list(range(len(shape))):
        return layout_of(shape, None, d)
    strides, step = [0] * len(shape), 1
    for dim in reversed(order):
        strides[dim] = step
        step *= shape[dim]
    return layout_of(shape, strides, d)


def walked(shape: Sequence[int], strides: Sequence[Sequence[int]]) -> list[int]:
    """Return the dims, outermost first, in the order in which PyTorch walks operands: the first one tells two of them apart that can.

    An insertion sort that leaves in place what no operand decides; strides of 0 decide nothing.
    """
    found = list(range(len(shape)))[::-1]  # innermost first
    for i in range(1, len(found)):
        here = i
        for before in range(i - 1, -1, -1):
            turn = _compared(found[before], found[here], shape, strides)
            if turn > 0:
                found[before], found[here] = found[here], found[before]
                here = before
            elif turn < 0:
                break
    return found[::-1]


def _compared(a: int, b: int, shape: Sequence[int], strides: Sequence[Sequence[int]]) -> int:
    """Return 1 when dim ``a`` must lie outside of ``b``, -1 when inside, 0 when nothing tells."""
    for steps in strides:
        if steps[a] == 0 or steps[b] == 0:
            continue
        if steps[a] != steps[b]:
            return 1 if steps[a] > steps[b] else -1
        if shape[a] > shape[b]:
            return 1
    return 0
