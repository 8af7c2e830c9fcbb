"""Direct convolution in up to three dims: tiles of sums that stay in registers, over images widened by their columns.

An image is (channels, D, H, W), flat; a 1-D or 2-D convolution has D = H = 1 or D = 1. ``geometry`` holds, for the three dims,
input sizes, output sizes, kernel sizes, strides, paddings, dilations (18 ints).

A block of output lines sees its inputs as ``wide``: for each channel, depth and column of the kernel a plane of lines as long as
an output line, in which that column of the kernel meets output position q at element q. So a line of the kernel is a shift by
whole lines, nothing need be known of borders, and every run of output positions is a run of each plane. With strides the lines
of a plane are ordered by their remainder. ``offsets`` says where each weight of a kernel finds its plane: the rows of im2col,
with neighbours down a column sharing their memory.
"""

from __future__ import annotations

import numpy as np

from ..codegen.jit import helper
from ..codegen.lanes import BROAD, BYTES, LEFT, NARROW, RIGHT, ROWS, dot_tile, multiply_tile

WIDE = 3 << 18  #: bytes of ``wide``, which stay in the second-level cache
POSITIONS = 1024  #: output positions from which the sum of a weight's gradient pays for being added up


@helper
def lines_of(geometry, channels, size):
    """(output lines of a block, lines of one plane of ``wide``, elements of ``wide``); ``size``: elements that it may have."""
    ho, wo, kd, kh, kw, sh, dh = geometry[4], geometry[5], geometry[6], geometry[7], geometry[8], geometry[10], geometry[16]
    reach = (kh - 1) * dh
    remainders = min(sh, reach + 1)
    planes = max(1, channels * kd * kw * wo)
    lines = max(1, min(ho, size // planes // remainders - reach // sh))
    own = remainders * (lines + reach // sh)
    return lines, own, planes * own


@helper
def place_weights(geometry, channels, own, offsets):
    """offsets[row] = where in ``wide`` the weight of that row begins."""
    wo, kd, kh, kw, sh, dh = geometry[5], geometry[6], geometry[7], geometry[8], geometry[10], geometry[16]
    per = own // min(sh, (kh - 1) * dh + 1)
    row = 0
    for c in range(channels * kd):
        for b in range(kh):
            line = (b * dh) % sh * per + (b * dh) // sh
            for e in range(kw):
                offsets[np.uintp(row)] = ((c * kw + e) * own + line) * wo
                row += 1
    for i in range(row, offsets.size):
        offsets[np.uintp(i)] = offsets[np.uintp(row - 1)]


@helper
def widen(x, geometry, channels, z, first, own, wide):
    """``wide`` for the output lines from ``first`` on at output depth ``z``."""
    di, hi, wi, _, _, wo, kd, kh, kw, sd, sh, sw, pd, ph, pw, dd, dh, dw = geometry
    zero = wide.dtype.type(0)
    remainders = min(sh, (kh - 1) * dh + 1)
    per = own // remainders
    start = 0
    for c in range(channels):
        for a in range(kd):
            deep = z * sd + a * dd - pd
            plane = (c * di + deep) * hi * wi
            for e in range(kw):
                shift = e * dw - pw
                # output columns whose input column is inside the image
                low = min(wo, 0 if shift >= 0 else (-shift + sw - 1) // sw)
                high = max(low, min(wo, (wi - shift + sw - 1) // sw))
                for remainder in range(remainders):
                    top = ph - remainder
                    begin = min(per, max(0, (top + sh - 1) // sh - first))
                    end = min(per, max(begin, (hi + top + sh - 1) // sh - first))
                    if deep < 0 or deep >= di or low == high:
                        end = begin
                    whole = wide[start : start + per * wo]
                    start += per * wo
                    for i in range(begin * wo):
                        whole[np.uintp(i)] = zero
                    for i in range(end * wo, whole.size):
                        whole[np.uintp(i)] = zero
                    if end == begin:
                        continue
                    source = plane + ((first + begin) * sh - top) * wi + shift
                    if sw == 1 and sh == 1 and wo == wi:
                        # lines follow on one another in both: one run, whose ends outside the line are 0 afterwards
                        length = (end - begin) * wo - low - (wo - high)
                        target = whole[begin * wo + low : begin * wo + low + length]
                        run = x[source + low : source + low + length]
                        for i in range(target.size):
                            target[i] = run[i]
                        for line in range(begin, end):
                            for i in range(line * wo, line * wo + low):
                                whole[np.uintp(i)] = zero
                            for i in range(line * wo + high, line * wo + wo):
                                whole[np.uintp(i)] = zero
                        continue
                    for line in range(begin, end):
                        for i in range(line * wo, line * wo + low):
                            whole[np.uintp(i)] = zero
                        for i in range(line * wo + high, line * wo + wo):
                            whole[np.uintp(i)] = zero
                        target = whole[line * wo + low : line * wo + high]
                        if sw == 1:
                            run = x[source + low : source + high]
                            for i in range(target.size):
                                target[i] = run[i]
                        elif sw == 2:
                            run = x[source + 2 * low : source + 2 * high - 1]
                            for i in range(target.size):
                                target[i] = run[2 * i]
                        else:
                            for i in range(target.size):
                                target[i] = x[np.uintp(source + (low + i) * sw)]
                        source += sh * wi


@helper
def pack(w, taps, inputs, outputs, flipped, bias, packed):
    """ROWS outputs side by side, row after row of weights, then their biases; zeros where there is no output any more.

    ``flipped``: w is (inputs, outputs, taps), and the taps are taken from last to first.
    """
    zero = packed.dtype.type(0)
    rows = inputs * taps
    for first in range(0, outputs, ROWS):
        block = packed[first * (rows + 1) : (first + ROWS) * (rows + 1)]
        count = min(ROWS, outputs - first)
        if count < ROWS:
            for i in range(block.size):
                block[i] = zero
        for k in range(count):
            if flipped:
                for c in range(inputs):
                    source = w[(c * outputs + first + k) * taps : (c * outputs + first + k + 1) * taps]
                    for t in range(source.size):
                        block[np.uintp((c * taps + taps - 1 - t) * ROWS + k)] = source[t]
            else:
                source = w[(first + k) * rows : (first + k + 1) * rows]
                for t in range(source.size):
                    block[np.uintp(t * ROWS + k)] = source[t]
            block[np.uintp(rows * ROWS + k)] = bias[first + k] if bias.size else zero


def correlate(images, groups, inputs, outputs, geometry, flipped, x, w, bias, y):
    """y = conv(x, w) + bias (of size 0: none). ``inputs`` and ``outputs``: channels of one group.

    ``flipped``: of w with inputs and outputs exchanged and every kernel turned around, as in the gradient by an input.
    """
    if y.size == 0:
        return
    n_in = geometry[0] * geometry[1] * geometry[2]
    depths, ho, wo = geometry[3], geometry[4], geometry[5]
    n_out = depths * ho * wo
    taps = geometry[6] * geometry[7] * geometry[8]
    rows = inputs * taps
    lanes = BYTES // y.itemsize
    blocks = (outputs + ROWS - 1) // ROWS
    lines, own, size = lines_of(geometry, inputs, WIDE // y.itemsize)
    wide = np.empty(size + 3 * lanes, dtype=y.dtype)
    offsets = np.empty(rows, dtype=np.int64)
    place_weights(geometry, inputs, own, offsets)
    packed = np.empty(blocks * (rows + 1) * ROWS, dtype=y.dtype)
    spare = np.empty(ROWS * 3 * lanes, dtype=y.dtype)
    for g in range(groups):
        pack(
            w[g * outputs * rows :],
            taps,
            inputs,
            outputs,
            flipped,
            bias[g * outputs : (g + 1) * outputs] if bias.size else bias,
            packed,
        )
        for i in range(images):
            for z in range(depths):
                for first in range(0, ho, lines):
                    widen(x[(i * groups + g) * inputs * n_in :], geometry, inputs, z, first, own, wide)
                    out = y[(i * groups + g) * outputs * n_out + (z * ho + first) * wo :]
                    count = min(lines, ho - first) * wo
                    q = 0
                    while q < count:
                        vectors = (count - q + lanes - 1) // lanes
                        broad = vectors == BROAD or vectors > BROAD + 1
                        width = lanes * (BROAD if broad else NARROW)
                        for k in range(blocks):
                            own_weights = k * (rows + 1) * ROWS
                            place = k * ROWS * n_out + q
                            whole = q + width <= count and (k + 1) * ROWS <= outputs
                            target = out if whole else spare
                            into, ld = (place, n_out) if whole else (0, width)
                            if broad:
                                multiply_tile(BROAD, packed, wide, offsets, target, own_weights, rows, q, into, ld)
                            else:
                                multiply_tile(NARROW, packed, wide, offsets, target, own_weights, rows, q, into, ld)
                            if not whole:
                                for r in range(min(ROWS, outputs - k * ROWS)):
                                    length = min(width, count - q)
                                    line = out[place + r * n_out : place + r * n_out + length]
                                    source = spare[r * width : r * width + length]
                                    for j in range(line.size):
                                        line[j] = source[j]
                        q += width


def by_weight(images, groups, inputs, outputs, geometry, g, x, out):
    """The gradient by the weight, summed over images and positions in a fixed order."""
    n_in = geometry[0] * geometry[1] * geometry[2]
    depths, ho, wo = geometry[3], geometry[4], geometry[5]
    n_out = depths * ho * wo
    taps = geometry[6] * geometry[7] * geometry[8]
    for i in range(out.size):
        out[i] = 0
    if out.size == 0 or g.size == 0:
        return
    # as many channels at a time as leave room for enough positions
    channels = inputs
    while True:
        lines, own, size = lines_of(geometry, channels, WIDE // out.itemsize)
        together = max(1, min(images, WIDE // out.itemsize // size, POSITIONS // (lines * wo)))
        if channels <= 8 or together * lines * wo >= min(POSITIONS // 2, images * ho * wo):
            break
        channels = (channels + 1) // 2
    rows = channels * taps
    wide = np.empty(size * together, dtype=out.dtype)
    rights = np.empty((rows + RIGHT - 1) // RIGHT * RIGHT, dtype=np.int64)
    place_weights(geometry, channels, own, rights)
    lefts = np.empty((outputs + LEFT - 1) // LEFT * LEFT, dtype=np.int64)
    for k in range(lefts.size):
        lefts[k] = min(k, outputs - 1) * n_out
    sums = np.empty(2 * LEFT * RIGHT, dtype=out.dtype)
    for k in range(groups):
        own_out = out[k * outputs * inputs * taps :]
        for c in range(0, inputs, channels):
            some = min(channels, inputs - c)
            for i in range(0, images, together):
                count = min(together, images - i)
                for z in range(depths):
                    for first in range(0, ho, lines):
                        for j in range(count):
                            place = ((i + j) * groups + k) * inputs + c
                            widen(x[place * n_in :], geometry, some, z, first, own, wide[j * size :])
                        start = (i * groups + k) * outputs * n_out + (z * ho + first) * wo
                        n = min(lines, ho - first) * wo
                        for r in range(0, some * taps, RIGHT):
                            for o in range(0, outputs, LEFT):
                                dot_tile(g, wide, lefts, rights, sums, o, r, start, n, groups * outputs * n_out, size, count)
                                for p in range(min(LEFT, outputs - o)):
                                    place = ((o + p) * inputs + c) * taps + r
                                    line = own_out[place : place + min(RIGHT, some * taps - r)]
                                    for q in range(line.size):
                                        line[q] += sums[np.uintp(p * RIGHT + q)]
