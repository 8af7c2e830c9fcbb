"""The ways of computing convolutions and their two gradients, and which of them suits which sizes.

Tiles over widened images are the usual one. Channels by themselves have kernels of their own; images of pixels that are mixed, and no
more, are products; and gradients by the input of large strides are added up window by window.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from math import gcd
from typing import Any

from ... import dtypes, launch
from ...codegen import threads
from ...shapes import layout_of, numel
from ...tensor import Tensor, make
from ..core.call_path import planned
from ..core.registry import OPS
from ..creation.cast import dense
from ..creation.create import new_empty
from ..products.gemm import product
from ..reduce.sums import sum as sum_

_CORRELATE = launch.Kernel("nn.conv", "correlate")
_BY_WEIGHT = launch.Kernel("nn.conv", "by_weight")
_BY_WEIGHT_FEW = launch.Kernel("nn.conv", "by_weight_few")
FOLD = launch.Kernel("nn.fold", "fold")
_PLANES = launch.Kernel("nn.depthwise", "forward")
_PLANES_BY_INPUT = launch.Kernel("nn.depthwise", "by_input")
_PLANES_BY_WEIGHT = launch.Kernel("nn.depthwise", "by_weight")


@planned
def _geometry(x_shape: Sequence[int], w_shape: Sequence[int], y_shape: Sequence[int], how: tuple[Any, ...]) -> tuple[int, ...]:
    """Return the 18 ints of the kernels, with the dims that a 1-D or 2-D convolution lacks filled in front."""
    stride, padding, dilation, _ = how
    lead = 5 - len(x_shape)

    def three(values: Sequence[int], fill: int) -> tuple[int, ...]:
        return (fill,) * lead + tuple(values)

    return (
        *three(x_shape[2:], 1), *three(y_shape[2:], 1), *three(w_shape[2:], 1),
        *three(stride, 1), *three(padding, 0), *three(dilation, 1),
    )  # fmt: skip


@planned
def _upright(x_shape: Sequence[int], w_shape: Sequence[int], y_shape: Sequence[int], how: tuple[Any, ...]) -> tuple[int, ...]:
    """Return the geometry for kernels to which columns are shifts: a long signal is an image of one column there."""
    found = _geometry(x_shape, w_shape, y_shape, how)
    if len(x_shape) > 3 or y_shape[2] < LENGTHY:
        return found
    return tuple(v for k in range(0, 18, 3) for v in (found[k], found[k + 2], found[k + 1]))


LENGTHY = 64  #: outputs of a signal that are no longer laid beside those of other signals
LARGE = 1 << 21  #: multiplications from which a convolution pays for being shared by threads
FEW, STEPS, COLUMNS = 8, 32, 1 << 24  #: channels; steps of strides; and values of all windows, up to which those are added up
SPREAD = 8  #: inputs for each output from which most of what tiles would multiply is outside
MANY = 1024  #: output positions from which part of a weight's gradient pays for being summed by itself


def _by_images(
    kernel: launch.Kernel, images: int, sizes: tuple[Any, ...], arrays: tuple[Any, ...], steps: tuple[Any, ...], work: int, out_shape: Any, d: dtypes.dtype
) -> Tensor:
    """Return the output of ``kernel(images, *sizes, *arrays, out)``, images shared by threads; ``steps``: elements of an image in each array."""
    layout = layout_of(out_shape, None, d)
    out = make(launch.empty(layout.size, d.carrier), layout, [0, 0])
    args = (images, *sizes, *arrays, out._data)
    if work < LARGE or images < 2:
        kernel(d, *args)
    else:
        strides = (*(0,) * len(sizes), *steps, numel(out_shape[1:]))
        kernel.split(d, args, lambda args: threads.rows(args, strides, threads.MANY))
    return out


def _by_outputs(args: tuple[Any, ...]) -> list[tuple[Any, ...]]:
    """Return the launches of a kernel that takes (images, groups, inputs, outputs, first output, last, …): for some outputs each."""
    return [(*args[:4], begin, end, *args[6:]) for begin, end in threads.pieces(args[3], 0, 8)]


def _correlate(x: Tensor, w: Tensor, bias: Tensor | None, groups: int, geometry: tuple[Any, ...], flipped: bool, y_shape: Any) -> Tensor:
    """Return the convolution of ``geometry``; ``flipped``: with w's inputs and outputs exchanged and its kernels turned around."""
    images, outputs, size = x.shape[0], y_shape[1] // groups, numel(w.shape)
    layout = layout_of(y_shape, None, x.dtype)
    y = make(launch.empty(layout.size, x.dtype.carrier), layout, [0, 0])
    sizes = (images, groups, x.shape[1] // groups, outputs, 0, outputs, geometry, flipped)
    args = (*sizes, dense(x), dense(w), dense(w)[:0] if bias is None else dense(bias), y._data)
    work = size * images * numel(y_shape[2:])
    if work < LARGE:
        _CORRELATE(x.dtype, *args)
    elif images == 1 or size > numel(x.shape):  # every launch lays out its weights anew
        _CORRELATE.split(x.dtype, args, _by_outputs)
    else:
        strides = (0,) * (len(sizes) - 1) + (numel(x.shape[1:]), 0, 0, numel(y_shape[1:]))
        _CORRELATE.split(x.dtype, args, lambda args: threads.rows(args, strides, work // 4))
    return y


def _by_pixels(w_shape: Any, places: int, how: tuple[Any, ...]) -> bool:
    """Return whether a convolution is a product for each image, of its pixels and the weights, with enough pixels for that."""
    stride, padding, _, groups = how
    return groups == 1 and places >= LENGTHY and numel(w_shape[2:]) == 1 and max(stride) == 1 and not any(padding)


def _pixels(x: Tensor) -> Tensor:
    """Return images as matrices: (N, C, …) → N × C × pixels."""
    return x.reshape(*x.shape[:2], numel(x.shape[2:]))


def _shaped(y: Tensor, shape: Sequence[int]) -> Tensor:
    """Return the elements of a product in another shape."""
    return make(y._data, layout_of(shape, None, y.dtype), [0, 0])


def _mixed(w: Tensor, x: Tensor, shape: tuple[Any, ...]) -> Tensor:
    """Return the products of a matrix and the pixels of each image, as images of this shape."""
    return _shaped(product(w.expand(x.shape[0], *w.shape), _pixels(x)), shape)


def _matrix_by_pixels(y: Tensor, x: Tensor, w_shape: tuple[Any, ...]) -> Tensor:
    """Return the gradient by the weights of a convolution that is a product for each image."""
    a, b = _pixels(y), _pixels(x).transpose(1, 2)
    if x.shape[0] * numel(w_shape) < COLUMNS >> 6:
        found = sum_(product(a, b), 0)
    else:
        found = product(a[:1], b[:1])
        for k in range(1, x.shape[0]):
            product(a[k : k + 1], b[k : k + 1], found)
    return _shaped(found, w_shape)


def _as_rows(x: Tensor) -> Tensor:
    """Return images or kernels as the rows of one matrix."""
    return x.reshape(1, x.shape[0], numel(x.shape[1:]))


def _whole(x_shape: Sequence[int], w_shape: Sequence[int], how: tuple[Any, ...]) -> bool:
    """Return whether kernels are as large as the images, and each pair of them gives one number: a product of two matrices."""
    return how[3] == 1 and tuple(x_shape[2:]) == tuple(w_shape[2:]) and not any(how[1])


def _by_planes(w_shape: Any, groups: int) -> bool:
    """Return whether each group, or the only one, has one input channel and so few outputs that each is best made from its plane."""
    return w_shape[1] == 1 and w_shape[0] <= 4 * groups


def _steps(n: int, m: int, k: int, s: int, p: int, d: int) -> list[tuple[Any, ...]]:
    """Return how the gradient by ``n`` inputs along a dim comes from that of ``m`` outputs: for every s-th input by a stride of 1.

    Each is (the first input of those, how many, the taps that reach them, their padding and dilation).
    """
    q = gcd(s, d)
    found = []
    for first in range(min(s, n)):
        taps = range(next((b for b in range(min(k, s // q)) if (first + p - b * d) % s == 0), k), k, s // q)
        dilation = d // q
        # the output that tap taps[j] of input ``first`` saw is start − j·dilation
        start = (first + p - taps.start * d) // s
        found.append((first, len(range(first, n, s)), taps, (len(taps) - 1) * dilation - start, dilation))
    return found


@planned
def _plan(x_shape: tuple[Any, ...], y_shape: tuple[Any, ...], w_shape: tuple[Any, ...], how: tuple[Any, ...]) -> tuple[bool, list[tuple[Any, ...]]]:
    """Return whether inputs are left over that no tap reaches, and for each step (its weights, its inputs, their shape, the geometry)."""
    stride, padding, dilation, groups = how
    dims = zip(x_shape[2:], y_shape[2:], w_shape[2:], stride, padding, dilation, strict=True)
    steps, found = list(itertools.product(*(_steps(*dim) for dim in dims))), []
    for step in steps:
        firsts, sizes, taps, paddings, dilations = zip(*step, strict=True)
        if all(taps):
            weights = (..., *(slice(t.start, t.stop, t.step) for t in taps))
            inputs = (..., *(slice(f, None, s) for f, s in zip(firsts, stride, strict=True)))
            shape, own = (*x_shape[:2], *sizes), (*w_shape[:2], *map(len, taps))
            geometry = _upright(y_shape, own, shape, ((1,) * len(taps), paddings, dilations, groups))
            found.append((weights, inputs, shape, geometry))
    return len(found) < len(steps), found


def _by_columns(y: Tensor, w: Tensor, x_shape: tuple[Any, ...], how: tuple[Any, ...]) -> Tensor:
    """Return the gradient by the input: what the window of each output gets of it, which is a product with the weights, added up."""
    images, groups, per = x_shape[0], how[3], numel(w.shape[1:])
    most = max(1, COLUMNS // max(1, groups * per * numel(y.shape[2:])))
    if images > most:
        parts = [(y[i : i + most], min(most, images - i)) for i in range(0, images, most)]
        return OPS["cat"].call([_by_columns(part, w, (count, *x_shape[1:]), how) for part, count in parts])
    taps = w.reshape(groups, w.shape[0] // groups, per).transpose(1, 2)
    taps = taps.expand(images, *taps.shape[1:]) if groups == 1 else taps.repeat(images, 1, 1)
    columns = product(taps, y.reshape(images * groups, w.shape[0] // groups, numel(y.shape[2:])))
    sizes, each = (x_shape[1], _geometry(x_shape, w.shape, y.shape, how)), groups * numel(columns.shape[1:])
    return _by_images(FOLD, images, sizes, (dense(columns),), (each,), images * each, x_shape, y.dtype)


def _by_steps(y: Tensor, w: Tensor, x_shape: tuple[Any, ...], how: tuple[Any, ...]) -> Tensor:
    """Return the gradient by the input: convolutions at stride 1 with the weights turned around, one for each step of the strides.

    Tiles of few channels would be too empty for that, and many steps too short.
    """
    rest, steps = _plan(tuple(x_shape), tuple(y.shape), tuple(w.shape), how)
    places, columns = numel(y.shape[2:]), x_shape[0] * how[3] * numel(w.shape[1:]) * numel(y.shape[2:])
    spread = numel(x_shape[2:]) > SPREAD * len(steps) * places
    if columns > 0 and (spread or (columns < COLUMNS and len(steps) > 1 and (w.shape[1] < FEW or len(steps) > STEPS))):
        return _by_columns(y, w, tuple(x_shape), how)
    if all(s == 1 for s in how[0]) and steps:
        return _correlate(y, w, None, how[3], steps[0][3], True, x_shape)
    out = new_empty(x_shape, y.dtype)
    if rest:
        out.fill_(0)
    for weights, inputs, shape, geometry in steps:
        out[inputs].copy_(_correlate(y, w[weights], None, how[3], geometry, True, shape))
    out._version_[0] = 0
    return out


def forward(x: Tensor, w: Tensor, bias: Tensor | None, how: tuple[Any, ...], spatial: tuple[int, ...]) -> Tensor:
    """Return the convolution with outputs of the sizes ``spatial``."""
    y_shape, groups = (x.shape[0], w.shape[0], *spatial), how[3]
    whole = _whole(x.shape, w.shape, how)
    if whole or (_by_pixels(w.shape, numel(spatial), how) and (bias is None or w.shape[1] >= FEW)):
        if whole:
            y = _shaped(product(_as_rows(x), _as_rows(w).transpose(1, 2)), y_shape)
        else:
            y = _mixed(w.reshape(w.shape[:2]), x, y_shape)
        if bias is not None:
            y.add_(bias.reshape(-1, *[1] * len(spatial)))
            y._version_[0] = 0
        return y
    if not _by_planes(w.shape, groups):
        return _correlate(x, w, bias, groups, _upright(x.shape, w.shape, y_shape, how), False, y_shape)
    sizes = (groups, 1, w.shape[0] // groups, _geometry(x.shape, w.shape, y_shape, how))
    arrays = (dense(x), dense(w), dense(w)[:0] if bias is None else dense(bias))
    work = numel(w.shape) * x.shape[0] * numel(spatial)
    return _by_images(_PLANES, x.shape[0], sizes, arrays, (numel(x.shape[1:]), 0, 0), work, y_shape, x.dtype)


def by_input(y: Tensor, w: Tensor, x_shape: tuple[int, ...], how: tuple[Any, ...]) -> Tensor:
    """Return the gradient by an input of this shape of a convolution whose outputs have the gradient ``y``."""
    groups = how[3]
    if _whole(x_shape, w.shape, how):
        return _shaped(product(_as_rows(y), _as_rows(w)), x_shape)
    if _by_pixels(w.shape, numel(y.shape[2:]), how):
        return _mixed(w.reshape(w.shape[:2]).t(), y, x_shape)
    if not _by_planes(w.shape, groups):
        return _by_steps(y, w, x_shape, how)
    sizes = (groups, 1, w.shape[0] // groups, _geometry(x_shape, w.shape, y.shape, how))
    work = numel(w.shape) * x_shape[0] * numel(y.shape[2:])
    return _by_images(_PLANES_BY_INPUT, x_shape[0], sizes, (dense(y), dense(w)), (numel(y.shape[1:]), 0), work, x_shape, y.dtype)


def by_weight(y: Tensor, x: Tensor, w_shape: tuple[int, ...], how: tuple[Any, ...]) -> Tensor:
    """Return the gradient by weights of this shape of a convolution of ``x`` whose outputs have the gradient ``y``."""
    images, places = x.shape[0], numel(y.shape[2:])
    if _whole(x.shape, w_shape, how) and images:
        return _shaped(product(_as_rows(y).transpose(1, 2), _as_rows(x)), w_shape)
    if _by_pixels(w_shape, places, how) and images:
        return _matrix_by_pixels(y, x, w_shape)
    if _by_planes(w_shape, how[3]):
        return _planes_by_weight(y, x, w_shape, how)
    outputs, geometry = w_shape[0] // how[3], _upright(x.shape, w_shape, y.shape, how)
    layout = layout_of(w_shape, None, y.dtype)
    out = make(launch.empty(layout.size, y.dtype.carrier), layout, [0, 0])
    args = (images, how[3], w_shape[1], outputs, 0, outputs, geometry, dense(y), dense(x), out._data)
    few = 0 < images * places <= min(MANY, 8 * outputs) and geometry[3] == 1
    kernel = _BY_WEIGHT_FEW if few else _BY_WEIGHT
    if images * places * layout.size < LARGE:
        kernel(y.dtype, *args)
    else:
        kernel.split(y.dtype, args, _by_outputs)
    return out


def _planes_by_weight(y: Tensor, x: Tensor, w_shape: tuple[int, ...], how: tuple[Any, ...]) -> Tensor:
    """Do `by_weight` where each channel is convolved by itself: sums over blocks of images, which depend on the sizes only, not on the threads."""
    d, images, places, size = y.dtype, x.shape[0], numel(y.shape[2:]), numel(w_shape)
    sizes = (how[3], 1, w_shape[0] // how[3], _geometry(x.shape, w_shape, y.shape, how))
    gs, xs = dense(y), dense(x)
    count = min(8, images, images * places // MANY) if images * places * size >= LARGE else 1
    step = -(-images // max(1, count))
    begins = range(0, images, max(1, step))
    if len(begins) < 2:
        layout = layout_of(w_shape, None, d)
        out = make(launch.empty(layout.size, d.carrier), layout, [0, 0])
        _PLANES_BY_WEIGHT(d, images, *sizes, gs, xs, out._data)
        return out
    sums = launch.empty(len(begins) * size, d.carrier)
    g_size, x_size = numel(y.shape[1:]), numel(x.shape[1:])
    parts = []
    for k, i in enumerate(begins):
        end = min(i + step, images)
        parts.append(
            (end - i, *sizes, gs[i * g_size : end * g_size], xs[i * x_size : end * x_size], sums[k * size : (k + 1) * size])
        )
    _PLANES_BY_WEIGHT.each(d, parts)
    return sum_(make(sums, layout_of((len(begins), *w_shape), None, d), [0, 0]), 0)
