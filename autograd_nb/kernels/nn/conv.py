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

from ...codegen.jit import ONE, ZERO, helper
from ...codegen.lanes import BROAD, LEFT, NARROW, RIGHT, ROWS, copy_lines, dot_tile, multiply_tile
from ...codegen.vectors import BYTES, rolled

WIDE = 3 << 18  #: bytes of ``wide``, which stay in the second-level cache
SIDE = 256  #: output positions of images side by side
WORTH = 256  #: what copying a line costs, in multiplications of which a vector does one
POSITIONS = 1024  #: output positions from which the sum of a weight's gradient pays for being added up


@helper
def block_of(geometry, channels, size):
    """(output lines of a block, input lines of a plane of ``wide``, planes); ``size``: elements that ``wide`` may have."""
    ho, wo, kd, kh, kw, sh, dh = geometry[4], geometry[5], geometry[6], geometry[7], geometry[8], geometry[10], geometry[16]
    reach = (kh - 1) * dh
    remainders = min(sh, reach + 1)
    planes = channels * kd * kw
    lines = max(1, min(ho, size // max(1, planes * wo) // remainders - reach // sh))
    return lines, remainders * (lines + reach // sh), planes


@helper
def place_weights(geometry, channels, tall, pitch, offsets):
    """offsets[row] = where in ``wide`` the weight of that row begins; ``pitch``: elements from line to line."""
    kd, kh, kw, sh, dh = geometry[6], geometry[7], geometry[8], geometry[10], geometry[16]
    per = tall // min(sh, (kh - 1) * dh + 1)
    row = 0
    for c in range(channels * kd):
        for b in range(kh):
            line = (b * dh) % sh * per + (b * dh) // sh
            for e in range(kw):
                rolled()
                offsets[np.uintp(row)] = ((c * kw + e) * tall + line) * pitch
                row += 1
    for i in range(row, offsets.size):
        rolled()
        offsets[np.uintp(i)] = offsets[np.uintp(row - 1)]


@helper
def widen(x, geometry, channels, z, first, tall, wide, target, pitch):
    """``wide`` from ``target`` on, for the output lines from ``first`` on at output depth ``z``."""
    di, hi, wi, _, _, wo, kd, kh, kw, sd, sh, sw, pd, ph, pw, dd, dh, dw = geometry
    remainders = min(sh, (kh - 1) * dh + 1)
    per = tall // remainders
    for e in range(kw):
        shift = e * dw - pw
        # output columns whose input column is inside the image, and lines whose input line is
        low = min(wo, 0 if shift >= 0 else (-shift + sw - 1) // sw)
        high = max(low, min(wo, (wi - shift + sw - 1) // sw))
        for remainder in range(remainders):
            top = ph - remainder
            begin = min(per, max(0, (top + sh - 1) // sh - first))
            end = min(per, max(begin, (hi + top + sh - 1) // sh - first))
            for a in range(kd):
                deep = z * sd + a * dd - pd
                last = end if 0 <= deep < di and low < high else begin
                source = (deep * hi + (first + begin) * sh - top) * wi + shift
                into = target + ((a * kw + e) * remainders + remainder) * per * pitch
                size, apart = di * hi * wi, kd * kw * tall * pitch
                if sw == 1:
                    copy_lines(1, x, wide, source, sh * wi, into, pitch, wo, low, high, begin, last, per, channels, size, apart)
                    continue
                if sw == 2:
                    copy_lines(2, x, wide, source, sh * wi, into, pitch, wo, low, high, begin, last, per, channels, size, apart)
                    continue
                for c in range(channels):
                    for line in range(per):
                        here = source + c * size + (line - begin) * sh * wi
                        for i in range(wo):
                            rolled()
                            value = wide.dtype.type(0)
                            if begin <= line < last and low <= i < high:
                                value = x[np.uintp(here + i * sw)]
                            wide[np.uintp(into + c * apart + line * pitch + i)] = value


@helper
def images_together(images, positions, line, rows, size, room):
    """How many images are laid side by side, line by line: more than one where a tile of vectors would be too empty on one image.

    ``positions`` of an output, of which a ``line`` has so many; ``rows`` of weights; ``size``: the elements of ``wide`` that an
    image needs, and how many it may have (``room``).
    """
    tile = NARROW * BYTES // 4
    empty = (positions + BYTES // 4 - 1) // (BYTES // 4) * (BYTES // 4) - positions if positions > tile else tile - positions
    if empty * rows * line < WORTH * positions:  # less than it takes to copy the lines to where they belong
        return 1
    return max(1, min(images, room // max(1, size), (SIDE + positions - 1) // positions))


@helper
def pack(w, taps, inputs, outputs, begin, end, flipped, bias, packed):
    """ROWS outputs side by side, row after row of weights, then their biases, for outputs from ``begin`` to ``end``, then zeros.

    ``flipped``: w is (inputs, outputs, taps), and the taps are taken from last to first.
    """
    zero = packed.dtype.type(0)
    rows = inputs * taps
    step = taps if flipped else rows  # from one output's weights to the next's
    for first in range(begin, end, ROWS):
        block = packed[(first - begin) * (rows + 1) : (first - begin + ROWS) * (rows + 1)]
        count = min(ROWS, end - first)
        if count < ROWS:
            for i in range(block.size):
                rolled()
                block[i] = zero
        for k in range(count):
            rolled()
            block[np.uintp(rows * ROWS + k)] = bias[first + k] if bias.size else zero
        j = 0
        for c in range(inputs):
            for t in range(taps):
                start = c * outputs * taps + taps - 1 - t if flipped else c * taps + t
                start += first * step
                for k in range(count):
                    rolled()
                    block[np.uintp(j + k)] = w[np.uintp(start + k * step)]
                j += ROWS


@helper
def multiply(packed, wide, offsets, rows, outputs, out, count, room, ld, spare):
    """out[k·ld + q] = the sums of output k at position q, for k < outputs and q < count; ``spare`` has room for a tile.

    Positions from ``count`` up to ``room`` are scratch. Of ``wide`` up to a tile more than the positions is read.
    """
    lanes = BYTES // out.itemsize
    q = 0
    while q < count:
        vectors = (count - q + lanes - 1) // lanes
        broad = vectors == BROAD or vectors > BROAD + 1
        width = lanes * (BROAD if broad else NARROW)
        for k in range(0, outputs, ROWS):
            rolled()
            weights = k * (rows + 1)
            whole = q + width <= room and k + ROWS <= outputs
            target = out if whole else spare
            into, step = (k * ld + q, ld) if whole else (0, width)
            if broad:
                multiply_tile(BROAD, packed, wide, offsets, target, weights, rows, q, into, step)
            else:
                multiply_tile(NARROW, packed, wide, offsets, target, weights, rows, q, into, step)
            if not whole:
                n, there = min(width, count - q), min(ROWS, outputs - k)
                copy_lines(1, spare, out, 0, width, k * ld + q, ld, n, 0, n, 0, there, there, 1, 0, 0)
        q += width


@helper
def add_dots(a, b, lefts, rights, sums, out, outputs, rows, ld, start, size, a_step, b_step, count):
    """out[k·ld + r] += the dots (see `dot_tile`) of left k and right r, for k < outputs and r < rows."""
    for r in range(0, rows, RIGHT):
        for k in range(0, outputs, LEFT):
            dot_tile(a, b, lefts, rights, sums, k, r, start, size, a_step, b_step, count)
            for p in range(min(LEFT, outputs - k)):
                line = out[(k + p) * ld + r : (k + p) * ld + min(r + RIGHT, rows)]
                for q in range(line.size):
                    rolled()
                    line[q] += sums[np.uintp(p * RIGHT + q)]


def correlate(images, groups, inputs, outputs, begin, end, geometry, flipped, x, w, bias, y):
    """y = conv(x, w) + bias (of size 0: none), for outputs from ``begin`` to ``end`` of the ``outputs`` of each group.

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
    here = end - begin
    blocks = (here + ROWS - 1) // ROWS
    room = WIDE // y.itemsize
    lines, tall, planes = block_of(geometry, inputs, room)
    together = images_together(images, n_out, wo, rows, planes * tall * wo, room) if lines == ho else 1
    pitch = together * wo
    wide = np.empty(planes * tall * pitch + BROAD * lanes, dtype=y.dtype)
    offsets = np.empty(rows, dtype=np.int64)
    place_weights(geometry, inputs, tall, pitch, offsets)
    packed = np.empty(blocks * (rows + 1) * ROWS, dtype=y.dtype)
    spare = np.empty(ROWS * BROAD * lanes, dtype=y.dtype)
    side = np.empty(blocks * ROWS * (lines * pitch + BROAD * lanes) if together > 1 else 0, dtype=y.dtype)
    for g in range(groups):
        shifts = bias[g * outputs : (g + 1) * outputs] if bias.size else bias
        pack(w[g * outputs * rows :], taps, inputs, outputs, begin, end, flipped, shifts, packed)
        for i in range(0, images, together):
            own = y[((i * groups + g) * outputs + begin) * n_out :]
            for z in range(depths):
                for first in range(0, ho, lines):
                    for j in range(min(together, images - i)):
                        rolled()
                        image = x[((i + j) * groups + g) * inputs * n_in :]
                        widen(image, geometry, inputs, z, first, tall, wide, j * wo, pitch)
                    count = min(lines, ho - first) * wo
                    if together == 1:
                        target = own[(z * ho + first) * wo :]
                        multiply(packed, wide, offsets, rows, here, target, count, count, n_out, spare)
                        continue
                    ld = side.size // (blocks * ROWS)
                    multiply(packed, wide, offsets, rows, blocks * ROWS, side, lines * pitch, ld, ld, spare)
                    for j in range(min(together, images - i)):
                        rolled()
                        place = j * groups * outputs * n_out + z * ho * wo
                        copy_lines(1, side, own, j * wo, pitch, place, wo, wo, 0, wo, 0, ho, ho, here, ld, n_out)


@helper
def channels_together(geometry, images, inputs, room):
    """As many channels at a time as leave room for enough positions: (channels, lines of the output, lines and elements of a widened
    image, images)."""
    ho, wo = geometry[4], geometry[5]
    channels = inputs
    while True:
        lines, tall, planes = block_of(geometry, channels, room)
        size = planes * tall * wo
        count = max(1, min(images, room // size, POSITIONS // (lines * wo)))
        if channels <= 8 or count * lines * wo >= min(POSITIONS // 2, images * ho * wo):
            return channels, lines, tall, size, count
        channels = (channels + 1) // 2


def by_weight(images, groups, inputs, outputs, begin, end, geometry, g, x, out):
    """The gradient by the weights of outputs from ``begin`` to ``end`` of each group, summed in an order that the sizes decide."""
    n_in = geometry[0] * geometry[1] * geometry[2]
    depths, ho, wo = geometry[3], geometry[4], geometry[5]
    n_out = depths * ho * wo
    taps = geometry[6] * geometry[7] * geometry[8]
    per = inputs * taps
    for k in range(groups):
        own = out[(k * outputs + begin) * per : (k * outputs + end) * per]
        for i in range(own.size):
            rolled()
            own[i] = 0
    if out.size == 0 or g.size == 0:
        return
    room = WIDE // out.itemsize
    channels, lines, tall, size, count = channels_together(geometry, images, inputs, room)
    rows, kept = channels * taps, end - begin
    beside = images_together(images, n_out, wo, rows, size, room) > 1 and lines == ho
    ld = lines * count * wo if beside else n_out
    wide = np.empty(size * count, dtype=out.dtype)
    side = np.empty(kept * ld if beside else 0, dtype=out.dtype)
    rights = np.empty((rows + RIGHT - 1) // RIGHT * RIGHT, dtype=np.int64)
    lefts = np.empty((kept + LEFT - 1) // LEFT * LEFT, dtype=np.int64)
    for k in range(lefts.size):
        rolled()
        lefts[k] = min(k, kept - 1) * ld
    sums = np.empty(LEFT * RIGHT + BYTES // out.itemsize, dtype=out.dtype)
    step = groups * outputs * n_out
    for k in range(groups):
        own = out[(k * outputs + begin) * per :]
        for c in range(0, inputs, channels):
            some = min(channels, inputs - c)
            for i in range(0, images, count):
                here = min(count, images - i)
                pitch = here * wo if beside else wo
                place_weights(geometry, channels, tall, pitch, rights)
                for z in range(depths):
                    for first in range(0, ho, lines):
                        for j in range(here):
                            rolled()
                            image = x[(((i + j) * groups + k) * inputs + c) * n_in :]
                            widen(image, geometry, some, z, first, tall, wide, j * wo if beside else j * size, pitch)
                        start = ((i * groups + k) * outputs + begin) * n_out + (z * ho + first) * wo
                        if not beside:
                            n = min(lines, ho - first) * wo
                            dots = own[c * taps :]
                            add_dots(g, wide, lefts, rights, sums, dots, kept, some * taps, per, start, n, step, size, here)
                            continue
                        for j in range(here):
                            rolled()
                            place = start + j * step
                            copy_lines(1, g, side, place, wo, j * wo, pitch, wo, 0, wo, 0, ho, ho, kept, n_out, ld)
                        n = lines * pitch
                        add_dots(
                            side, wide, lefts, rights, sums, own[c * taps :], kept, some * taps, per, ZERO, n, ZERO, ZERO, ONE
                        )
