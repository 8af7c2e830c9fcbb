"""Convolution of one group in up to three dims: tiles of im2col that stay in cache, multiplied by BLAS.

An image is (channels, D, H, W), flat; a 1-D or 2-D convolution has D = H = 1 or D = 1. ``geometry`` holds, for the three dims,
input sizes, output sizes, kernel sizes, strides, paddings, dilations (18 ints).
"""

from __future__ import annotations

import numpy as np

from ..codegen.jit import helper
from .matmul import gemm

TILE = 1 << 15  #: elements of the im2col tile


@helper
def columns(x, geometry, channels, first, count, col):
    """col (channels·kernel × count) = the inputs that output positions first … first + count see; rows of whole output lines.

    Positions are counted along the flattened output; ``first`` and ``count`` are multiples of the output's width.
    """
    di, hi, wi, do, ho, wo, kd, kh, kw, sd, sh, sw, pd, ph, pw, ld, lh, lw = geometry
    zero = col.dtype.type(0)
    lines = count // wo
    row = 0
    for c in range(channels):
        plane = c * di * hi * wi
        for a in range(kd):
            for b in range(kh):
                for e in range(kw):
                    shift = e * lw - pw
                    # output columns whose input column is inside the image
                    low = 0 if shift >= 0 else (-shift + sw - 1) // sw
                    high = min(wo, (wi - shift + sw - 1) // sw) if wi > shift else 0
                    if high < low:
                        high = low
                    low = min(low, high)
                    for line in range(lines):
                        position = first // wo + line
                        z = (position // ho) * sd + a * ld - pd
                        y = (position % ho) * sh + b * lh - ph
                        out = col[row * count + line * wo:row * count + line * wo + wo]
                        if z < 0 or z >= di or y < 0 or y >= hi:
                            for i in range(out.size):
                                out[i] = zero
                            continue
                        start = plane + (z * hi + y) * wi + shift
                        for i in range(low):
                            out[i] = zero
                        if sw == 1:
                            inside = out[low:high]
                            source = x[start + low:start + high]
                            for i in range(inside.size):
                                inside[i] = source[i]
                        else:
                            for i in range(low, high):
                                out[np.uintp(i)] = x[np.uintp(start + i * sw)]
                        for i in range(high, wo):
                            out[np.uintp(i)] = zero
                    row += 1


@helper
def add_columns(col, geometry, channels, first, count, x):
    """The transpose of `columns`: every element of ``col`` is added to the input it came from."""
    di, hi, wi, do, ho, wo, kd, kh, kw, sd, sh, sw, pd, ph, pw, ld, lh, lw = geometry
    lines = count // wo
    row = 0
    for c in range(channels):
        plane = c * di * hi * wi
        for a in range(kd):
            for b in range(kh):
                for e in range(kw):
                    shift = e * lw - pw
                    low = 0 if shift >= 0 else (-shift + sw - 1) // sw
                    high = min(wo, (wi - shift + sw - 1) // sw) if wi > shift else 0
                    if high < low:
                        high = low
                    low = min(low, high)
                    for line in range(lines):
                        position = first // wo + line
                        z = (position // ho) * sd + a * ld - pd
                        y = (position % ho) * sh + b * lh - ph
                        if z < 0 or z >= di or y < 0 or y >= hi:
                            continue
                        source = col[row * count + line * wo:row * count + line * wo + wo]
                        start = plane + (z * hi + y) * wi + shift
                        if sw == 1:
                            target = x[start + low:start + high]
                            inside = source[low:high]
                            for i in range(target.size):
                                target[i] += inside[i]
                        else:
                            for i in range(low, high):
                                x[np.uintp(start + i * sw)] += source[np.uintp(i)]
                    row += 1


@helper
def tile_of(geometry, rows):
    """How many output positions a tile takes: whole lines, so that rows × positions stay about TILE elements."""
    do, ho, wo = geometry[3], geometry[4], geometry[5]
    lines = max(1, TILE // max(1, rows * wo))
    return min(lines, do * ho) * wo


@helper
def is_pointwise(geometry):
    """A 1 × 1 kernel at stride 1 without padding: the image is its own im2col."""
    for d in range(3):
        if geometry[6 + d] != 1 or geometry[9 + d] != 1 or geometry[12 + d] != 0:
            return False
    return True


def forward(images, groups, inputs, outputs, geometry, has_bias, x, w, bias, y):
    """y = conv(x, w) (+ bias). ``inputs`` and ``outputs``: channels of one group."""
    n_in = geometry[0] * geometry[1] * geometry[2]
    n_out = geometry[3] * geometry[4] * geometry[5]
    rows = inputs * geometry[6] * geometry[7] * geometry[8]
    one, zero = y.dtype.type(1), y.dtype.type(0)
    if n_out == 0 or outputs == 0:
        return
    if rows == 0:
        for i in range(y.size):
            y[i] = bias[(i // n_out) % (groups * outputs)] if has_bias else zero
        return
    if has_bias:
        for i in range(images):
            for o in range(groups * outputs):
                line = y[(i * groups * outputs + o) * n_out:(i * groups * outputs + o) * n_out + n_out]
                for j in range(line.size):
                    line[j] = bias[o]
    beta = one if has_bias else zero
    direct = is_pointwise(geometry)
    tile = n_out if direct else tile_of(geometry, rows)
    col = np.empty(1 if direct else rows * tile, dtype=y.dtype)
    for i in range(images):
        for g in range(groups):
            image = x[(i * groups + g) * inputs * n_in:]
            weight = w[g * outputs * rows:]
            target = y[(i * groups + g) * outputs * n_out:]
            if direct:
                gemm(weight, False, rows, image, False, n_out, target, n_out, outputs, n_out, rows, one, beta)
                continue
            for first in range(0, n_out, tile):
                count = min(tile, n_out - first)
                columns(image, geometry, inputs, first, count, col)
                gemm(weight, False, rows, col, False, count, target[first:], n_out, outputs, count, rows, one, beta)


def by_input(images, groups, inputs, outputs, geometry, g, w, out):
    """The gradient by the input: out = convᵀ(g, w)."""
    n_in = geometry[0] * geometry[1] * geometry[2]
    n_out = geometry[3] * geometry[4] * geometry[5]
    rows = inputs * geometry[6] * geometry[7] * geometry[8]
    one, zero = out.dtype.type(1), out.dtype.type(0)
    direct = is_pointwise(geometry)
    if not direct or n_out == 0 or outputs == 0:
        for i in range(out.size):
            out[i] = zero
    if n_out == 0 or rows == 0 or outputs == 0:
        return
    tile = n_out if direct else tile_of(geometry, rows)
    col = np.empty(1 if direct else rows * tile, dtype=out.dtype)
    for i in range(images):
        for k in range(groups):
            image = out[(i * groups + k) * inputs * n_in:]
            weight = w[k * outputs * rows:]
            source = g[(i * groups + k) * outputs * n_out:]
            if direct:
                gemm(weight, True, rows, source, False, n_out, image, n_out, rows, n_out, outputs, one, zero)
                continue
            for first in range(0, n_out, tile):
                count = min(tile, n_out - first)
                gemm(weight, True, rows, source[first:], False, n_out, col, count, rows, count, outputs, one, zero)
                add_columns(col, geometry, inputs, first, count, image)


def by_weight(images, groups, inputs, outputs, geometry, g, x, out):
    """The gradient by the weight, summed over images and positions in a fixed order."""
    n_in = geometry[0] * geometry[1] * geometry[2]
    n_out = geometry[3] * geometry[4] * geometry[5]
    rows = inputs * geometry[6] * geometry[7] * geometry[8]
    one, zero = out.dtype.type(1), out.dtype.type(0)
    for i in range(out.size):
        out[i] = zero
    if n_out == 0 or rows == 0 or outputs == 0:
        return
    direct = is_pointwise(geometry)
    tile = n_out if direct else tile_of(geometry, rows)
    col = np.empty(1 if direct else rows * tile, dtype=out.dtype)
    for i in range(images):
        for k in range(groups):
            image = x[(i * groups + k) * inputs * n_in:]
            weight = out[k * outputs * rows:]
            source = g[(i * groups + k) * outputs * n_out:]
            if direct:
                gemm(source, False, n_out, image, True, n_out, weight, rows, outputs, rows, n_out, one, one)
                continue
            for first in range(0, n_out, tile):
                count = min(tile, n_out - first)
                columns(image, geometry, inputs, first, count, col)
                gemm(source[first:], False, n_out, col, True, count, weight, rows, outputs, rows, count, one, one)
