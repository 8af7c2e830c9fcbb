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
def columns(x, geometry, channels, first, count, col, ld):
    """col (channels·kernel × count) = the inputs that output positions first … first + count see; rows of whole output lines.

    Positions are counted along the flattened output; ``first`` and ``count`` are multiples of the output's width. ``ld``:
    elements from one row of ``col`` to the next.
    """
    di, hi, wi, _, ho, wo, kd, kh, kw, sd, sh, sw, pd, ph, pw, dd, dh, dw = geometry
    zero = col.dtype.type(0)
    lines = count // wo
    row = 0
    for c in range(channels):
        plane = c * di * hi * wi
        for a in range(kd):
            for b in range(kh):
                for e in range(kw):
                    shift = e * dw - pw
                    # output columns whose input column is inside the image
                    low = 0 if shift >= 0 else (-shift + sw - 1) // sw
                    high = min(wo, (wi - shift + sw - 1) // sw) if wi > shift else 0
                    if high < low:
                        high = low
                    low = min(low, high)
                    z = (first // wo // ho) * sd + a * dd - pd
                    oh = (first // wo) % ho - 1
                    for line in range(lines):
                        oh += 1
                        if oh == ho:
                            oh = 0
                            z += sd
                        y = oh * sh + b * dh - ph
                        out = col[row * ld + line * wo:row * ld + line * wo + wo]
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
def add_columns(col, ld, geometry, channels, first, count, x):
    """The transpose of `columns`: every element of ``col`` is added to the input it came from."""
    di, hi, wi, _, ho, wo, kd, kh, kw, sd, sh, sw, pd, ph, pw, dd, dh, dw = geometry
    lines = count // wo
    row = 0
    for c in range(channels):
        plane = c * di * hi * wi
        for a in range(kd):
            for b in range(kh):
                for e in range(kw):
                    shift = e * dw - pw
                    low = 0 if shift >= 0 else (-shift + sw - 1) // sw
                    high = min(wo, (wi - shift + sw - 1) // sw) if wi > shift else 0
                    if high < low:
                        high = low
                    low = min(low, high)
                    z = (first // wo // ho) * sd + a * dd - pd
                    oh = (first // wo) % ho - 1
                    for line in range(lines):
                        oh += 1
                        if oh == ho:
                            oh = 0
                            z += sd
                        y = oh * sh + b * dh - ph
                        if z < 0 or z >= di or y < 0 or y >= hi:
                            continue
                        source = col[row * ld + line * wo:row * ld + line * wo + wo]
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


@helper
def images_of(geometry, rows, images):
    """How many small images share one product: so many that rows × positions stay about TILE elements."""
    n_out = geometry[3] * geometry[4] * geometry[5]
    return max(1, min(images, TILE // max(1, rows * n_out)))


@helper
def gather_channels(x, step, channels, size, count, out):
    """out (channels × count·size) = ``count`` images of ``channels`` × ``size``, ``step`` apart, side by side."""
    for i in range(count):
        for c in range(channels):
            source = x[i * step + c * size:i * step + c * size + size]
            target = out[(c * count + i) * size:(c * count + i) * size + size]
            for j in range(target.size):
                target[j] = source[j]


@helper
def is_strip(geometry):
    """Two dims at stride 1: on a padded image every tap of the kernel is one shift of the whole plane."""
    return geometry[0] == 1 and geometry[6] == 1 and geometry[9] == 1 and geometry[10] == 1 and geometry[11] == 1 and geometry[12] == 0


@helper
def strip_size(geometry):
    """Positions of an image in a strip: output lines as wide as the padded input (what is past the output is not used)."""
    return geometry[4] * (geometry[2] + 2 * geometry[14])


@helper
def pad_image(x, geometry, channels, pad):
    """Copy an image into ``pad``, whose borders are 0 already."""
    hi, wi, ph, pw = geometry[1], geometry[2], geometry[13], geometry[14]
    wp = wi + 2 * pw
    plane = (hi + 2 * ph) * wp
    for c in range(channels):
        for r in range(hi):
            target = pad[c * plane + (r + ph) * wp + pw:c * plane + (r + ph) * wp + pw + wi]
            source = x[(c * hi + r) * wi:(c * hi + r) * wi + wi]
            for i in range(target.size):
                target[i] = source[i]


@helper
def strip_columns(pad, geometry, channels, col, ld):
    """The rows of im2col as whole shifted planes."""
    hi, wi, ho, wo, kh, kw = geometry[1], geometry[2], geometry[4], geometry[5], geometry[7], geometry[8]
    ph, pw, dh, dw = geometry[13], geometry[14], geometry[16], geometry[17]
    wp = wi + 2 * pw
    plane = (hi + 2 * ph) * wp
    length = ho * wp - (wp - wo)
    row = 0
    for c in range(channels):
        for b in range(kh):
            for e in range(kw):
                start = c * plane + b * dh * wp + e * dw
                source = pad[start:start + length]
                target = col[row * ld:row * ld + length]
                for i in range(target.size):
                    target[i] = source[i]
                for i in range(length, ho * wp):
                    col[np.uintp(row * ld + i)] = 0
                row += 1


@helper
def strip_side(g, geometry, channels, side, ld):
    """Outputs (channels × positions) with every line widened by zeros to the padded input's width."""
    ho, wo = geometry[4], geometry[5]
    wp = geometry[2] + 2 * geometry[14]
    for c in range(channels):
        for r in range(ho):
            start = c * ld + r * wp
            source = g[(c * ho + r) * wo:(c * ho + r) * wo + wo]
            target = side[start:start + wo]
            for i in range(target.size):
                target[i] = source[i]
            for i in range(wo, wp):
                side[np.uintp(start + i)] = 0


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
    fold = images_of(geometry, rows, images)
    if fold > 1 and is_strip(geometry):
        size = strip_size(geometry)
        ho, wo, wp = geometry[4], geometry[5], geometry[2] + 2 * geometry[14]
        pad = np.zeros(inputs * (geometry[1] + 2 * geometry[13]) * wp, dtype=y.dtype)
        col = np.empty(rows * size * fold, dtype=y.dtype)
        products = np.empty(outputs * size * fold, dtype=y.dtype)
        for i in range(0, images, fold):
            together = min(fold, images - i)
            ld = together * size
            for g in range(groups):
                for k in range(together):
                    pad_image(x[((i + k) * groups + g) * inputs * n_in:], geometry, inputs, pad)
                    strip_columns(pad, geometry, inputs, col[k * size:], ld)
                gemm(w[g * outputs * rows:], False, rows, col, False, ld, products, ld, outputs, ld, rows, one, zero)
                for o in range(outputs):
                    shift = bias[g * outputs + o] if has_bias else zero
                    for k in range(together):
                        for r in range(ho):
                            start = ((((i + k) * groups + g) * outputs + o) * ho + r) * wo
                            target = y[start:start + wo]
                            begin = o * ld + k * size + r * wp
                            source = products[begin:begin + wo]
                            for j in range(target.size):
                                target[j] = source[j] + shift
        return
    if fold > 1:
        col = np.empty(rows * n_out * fold, dtype=y.dtype)
        products = np.empty(outputs * n_out * fold, dtype=y.dtype)
        for i in range(0, images, fold):
            together = min(fold, images - i)
            ld = together * n_out
            for g in range(groups):
                for k in range(together):
                    columns(x[((i + k) * groups + g) * inputs * n_in:], geometry, inputs, 0, n_out, col[k * n_out:], ld)
                gemm(w[g * outputs * rows:], False, rows, col, False, ld, products, ld, outputs, ld, rows, one, zero)
                for o in range(outputs):
                    shift = bias[g * outputs + o] if has_bias else zero
                    for k in range(together):
                        start = (((i + k) * groups + g) * outputs + o) * n_out
                        target = y[start:start + n_out]
                        source = products[o * ld + k * n_out:o * ld + k * n_out + n_out]
                        for j in range(target.size):
                            target[j] = source[j] + shift
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
                columns(image, geometry, inputs, first, count, col, count)
                gemm(weight, False, rows, col, False, count, target[first:], n_out, outputs, count, rows, one, beta)


def by_input(images, groups, inputs, outputs, geometry, g, w, out):
    """The gradient by the input: out = convᵀ(g, w)."""
    n_in = geometry[0] * geometry[1] * geometry[2]
    n_out = geometry[3] * geometry[4] * geometry[5]
    rows = inputs * geometry[6] * geometry[7] * geometry[8]
    one, zero = out.dtype.type(1), out.dtype.type(0)
    direct = is_pointwise(geometry)
    fold = images_of(geometry, rows, images)
    if not direct or fold > 1 or n_out == 0 or outputs == 0:
        for i in range(out.size):
            out[i] = zero
    if n_out == 0 or rows == 0 or outputs == 0:
        return
    if fold > 1 and is_strip(geometry):
        size = strip_size(geometry)
        hi, wi, ho, wo, ph, pw = geometry[1], geometry[2], geometry[4], geometry[5], geometry[13], geometry[14]
        wp = wi + 2 * pw
        plane = (hi + 2 * ph) * wp
        length = ho * wp - (wp - wo)
        pad = np.empty(inputs * plane, dtype=out.dtype)
        col = np.empty(rows * size * fold, dtype=out.dtype)
        side = np.empty(outputs * size * fold, dtype=out.dtype)
        for i in range(0, images, fold):
            together = min(fold, images - i)
            ld = together * size
            for k in range(groups):
                for j in range(together):
                    strip_side(g[((i + j) * groups + k) * outputs * n_out:], geometry, outputs, side[j * size:], ld)
                gemm(w[k * outputs * rows:], True, rows, side, False, ld, col, ld, rows, ld, outputs, one, zero)
                for j in range(together):
                    for t in range(pad.size):
                        pad[t] = zero
                    row = 0
                    for c in range(inputs):
                        for b in range(geometry[7]):
                            for e in range(geometry[8]):
                                start = c * plane + b * geometry[16] * wp + e * geometry[17]
                                target = pad[start:start + length]
                                source = col[row * ld + j * size:row * ld + j * size + length]
                                for t in range(target.size):
                                    target[t] += source[t]
                                row += 1
                    for c in range(inputs):
                        for r in range(hi):
                            start = ((((i + j) * groups + k) * inputs + c) * hi + r) * wi
                            target = out[start:start + wi]
                            source = pad[c * plane + (r + ph) * wp + pw:c * plane + (r + ph) * wp + pw + wi]
                            for t in range(target.size):
                                target[t] = source[t]
        return
    if fold > 1:
        col = np.empty(rows * n_out * fold, dtype=out.dtype)
        side = np.empty(outputs * n_out * fold, dtype=out.dtype)
        for i in range(0, images, fold):
            together = min(fold, images - i)
            ld = together * n_out
            for k in range(groups):
                step = groups * outputs * n_out
                gather_channels(g[i * step + k * outputs * n_out:], step, outputs, n_out, together, side)
                gemm(w[k * outputs * rows:], True, rows, side, False, ld, col, ld, rows, ld, outputs, one, zero)
                for j in range(together):
                    add_columns(col[j * n_out:], ld, geometry, inputs, 0, n_out, out[((i + j) * groups + k) * inputs * n_in:])
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
                add_columns(col, count, geometry, inputs, first, count, image)


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
    fold = images_of(geometry, rows, images)
    if fold > 1 and is_strip(geometry):
        size = strip_size(geometry)
        wp = geometry[2] + 2 * geometry[14]
        pad = np.zeros(inputs * (geometry[1] + 2 * geometry[13]) * wp, dtype=out.dtype)
        col = np.empty(rows * size * fold, dtype=out.dtype)
        side = np.empty(outputs * size * fold, dtype=out.dtype)
        for i in range(0, images, fold):
            together = min(fold, images - i)
            ld = together * size
            for k in range(groups):
                for j in range(together):
                    place = (i + j) * groups + k
                    strip_side(g[place * outputs * n_out:], geometry, outputs, side[j * size:], ld)
                    pad_image(x[place * inputs * n_in:], geometry, inputs, pad)
                    strip_columns(pad, geometry, inputs, col[j * size:], ld)
                gemm(side, False, ld, col, True, ld, out[k * outputs * rows:], rows, outputs, rows, ld, one, one)
        return
    if fold > 1:
        col = np.empty(rows * n_out * fold, dtype=out.dtype)
        side = np.empty(outputs * n_out * fold, dtype=out.dtype)
        for i in range(0, images, fold):
            together = min(fold, images - i)
            ld = together * n_out
            for k in range(groups):
                step = groups * outputs * n_out
                gather_channels(g[i * step + k * outputs * n_out:], step, outputs, n_out, together, side)
                for j in range(together):
                    columns(x[((i + j) * groups + k) * inputs * n_in:], geometry, inputs, 0, n_out, col[j * n_out:], ld)
                gemm(side, False, ld, col, True, ld, out[k * outputs * rows:], rows, outputs, rows, ld, one, one)
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
                columns(image, geometry, inputs, first, count, col, count)
                gemm(source[first:], False, n_out, col, True, count, weight, rows, outputs, rows, count, one, one)
