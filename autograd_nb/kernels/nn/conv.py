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
from ...codegen.lanes import BROAD, LEFT, NARROW, RIGHT, ROWS, copy_lines, dot_tile, multiply_tile, turn_lines
from ...codegen.processor import Sized
from ...codegen.tiles import ROWS as HIGH
from ...codegen.tiles import WIDE as ACROSS
from ...codegen.vectors import BYTES, REGISTERS, rolled
from ..products.tiled import DEEP, strip

WIDE = 3 << 18  #: bytes of ``wide``, which stay in the second-level cache
SIDE = 256  #: output positions of images side by side
NEAR = Sized(128 if REGISTERS == 16 else 1 << 20, __name__, REGISTERS)  #: terms at a time: the positions of a tile in so many rows stay in the first cache
WORTH = 256  #: what copying a line costs, in multiplications of which a vector does one
POSITIONS = 1024  #: output positions from which the sum of a weight's gradient pays for being added up


@helper
def block_of(geometry, channels, size):
    """Return (output lines of a block, input lines of a plane of ``wide``, planes); ``size``: elements that ``wide`` may have."""
    ho, wo, kd, kh, kw, sh, dh = geometry[4], geometry[5], geometry[6], geometry[7], geometry[8], geometry[10], geometry[16]
    reach = (kh - 1) * dh
    remainders = min(sh, reach + 1)
    planes = channels * kd * kw
    lines = max(1, min(ho, size // max(1, planes * wo) // remainders - reach // sh))
    return lines, remainders * (lines + reach // sh), planes


@helper(shared=True)
def lay_lines(stride, x, source, step, out, target, pitch, width, low, high, begin, end, lines, count, far, apart):
    """Do `copy_lines` at any stride, which several places share."""
    if stride == 1:
        copy_lines(1, x, out, source, step, target, pitch, width, low, high, begin, end, lines, count, far, apart)
    elif stride == 2:
        copy_lines(2, x, out, source, step, target, pitch, width, low, high, begin, end, lines, count, far, apart)
    else:
        for k in range(count):
            for i in range(lines):
                line, first, last = target + k * apart + i * pitch, width, width
                if begin <= i < end and low < high:
                    first, last = low, high
                for j in range(first):
                    rolled()
                    out[np.uintp(line + j)] = 0
                start = source + k * far + (i - begin) * step
                for j in range(first, last):
                    rolled()
                    out[np.uintp(line + j)] = x[np.uintp(start + j * stride)]
                for j in range(last, width):
                    rolled()
                    out[np.uintp(line + j)] = 0


@helper
def place_weights(geometry, channels, tall, pitch, step, offsets):
    """offsets[step·row] = where in ``wide`` the weight of that row begins; ``pitch``: elements from line to line."""
    kd, kh, kw, sh, dh = geometry[6], geometry[7], geometry[8], geometry[10], geometry[16]
    per = tall // min(sh, (kh - 1) * dh + 1)
    row = 0
    for c in range(channels * kd):
        for b in range(kh):
            down = b * dh // sh
            line = (b * dh - down * sh) * per + down
            for e in range(kw):
                rolled()
                offsets[np.uintp(row * step)] = ((c * kw + e) * tall + line) * pitch
                row += 1
    for i in range(row * step, offsets.size):
        rolled()
        offsets[np.uintp(i)] = offsets[np.uintp(row - 1)]


@helper
def widen(x, at, geometry, channels, z, first, tall, wide, target, pitch):
    """Write ``wide`` from ``target`` on, of the image at ``at``, for the output lines from ``first`` on at output depth ``z``."""
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
                source = at + (deep * hi + (first + begin) * sh - top) * wi + shift
                into = target + ((a * kw + e) * remainders + remainder) * per * pitch
                size, apart = di * hi * wi, kd * kw * tall * pitch
                if wi == 1 and pitch == 1:  # a signal: its column is a line
                    lay_lines(sh, x, source - begin * sh, ONE, wide, into, per, per, begin, last, ZERO, ONE, ONE, channels, size, apart)
                else:
                    lay_lines(sw, x, source, sh * wi, wide, into, pitch, wo, low, high, begin, last, per, channels, size, apart)


@helper
def images_together(images, positions, line, rows, size, room):
    """Return how many images are laid side by side, line by line: more than one where a tile of vectors would be too empty on one image.

    ``positions`` of an output, of which a ``line`` has so many; ``rows`` of weights; ``size``: the elements of ``wide`` that an
    image needs, and how many it may have (``room``).
    """
    tile = NARROW * BYTES // 4
    empty = (positions + BYTES // 4 - 1) // (BYTES // 4) * (BYTES // 4) - positions if positions > tile else tile - positions
    if empty * rows * line < WORTH * positions:  # less than it takes to copy the lines to where they belong
        return 1
    most = max(1, min(images, room // max(1, size), (SIDE + positions - 1) // positions))
    turns = (images + most - 1) // most
    return (images + turns - 1) // turns  # as many each time


@helper
def find_weights(inputs, outputs, taps, flipped, terms):
    """terms[2·row + 1] = how far from an output's first weight that of the row is.

    ``flipped``: w is (inputs, outputs, taps), and the taps are taken from last to first.
    """
    row = 0
    for c in range(inputs):
        for t in range(taps):
            rolled()
            terms[np.uintp(2 * row + 1)] = c * outputs * taps + taps - 1 - t if flipped else row
            row += 1


@helper
def multiply(memory, weights, bias, terms, w, apart, b, rows, outputs, written, out, to, count, room, ld):
    """out[to + k·ld + q] = the sums of output k at position q, for k < outputs and q < count.

    ``memory`` begins with room for a tile, then comes ``wide``. The weights of the first output are found from ``w`` on, those of the next
    ``apart`` from them, biases from ``b`` on (negative: none). Positions from ``count`` up to ``room`` and outputs up to ``written`` are
    scratch. Of ``wide`` up to a tile more than the positions is read.
    """
    lanes = BYTES // out.itemsize
    q = 0
    while q < count:
        vectors = (count - q + lanes - 1) // lanes
        broad = vectors == BROAD or vectors > BROAD + 1
        width = lanes * (BROAD if broad else NARROW)
        for first in range(0, max(rows, 1), NEAR):
            for k in range(0, outputs, ROWS):
                rolled()
                whole = q + width <= room and k + ROWS <= written
                if first > 0 and not whole:
                    continue
                own, last, biases = w + k * apart, outputs - 1 - k, b + k if b >= 0 else b
                some = min(NEAR, rows - first) if whole else rows
                target = out if whole else memory
                into, step = (to + k * ld + q, ld) if whole else (0, width)
                start = ROWS * BROAD * lanes + q
                if broad:
                    multiply_tile(
                        BROAD, weights, bias, memory, terms, target, own, apart, last, biases, first, some, rows, start, into, step
                    )  # fmt: skip
                else:
                    multiply_tile(
                        NARROW, weights, bias, memory, terms, target, own, apart, last, biases, first, some, rows, start, into, step
                    )  # fmt: skip
                if not whole:
                    n, there = min(width, count - q), min(ROWS, outputs - k)
                    copy_lines(1, memory, out, 0, width, to + k * ld + q, ld, n, 0, n, 0, there, there, 1, 0, 0)
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
    # one piece of memory: a tile, widened images, and the outputs of images side by side
    wide = ROWS * BROAD * lanes
    side = wide + planes * tall * pitch + BROAD * lanes
    ld = lines * pitch + BROAD * lanes
    memory = np.empty(side + (blocks * ROWS * ld if together > 1 else 0), dtype=y.dtype)
    terms = np.empty(2 * rows, dtype=np.int64)
    place_weights(geometry, inputs, tall, pitch, 2, terms)
    find_weights(inputs, outputs, taps, flipped, terms)
    apart = taps if flipped else rows
    for g in range(groups):
        first_weight, first_bias = g * outputs * rows + begin * apart, g * outputs + begin if bias.size else -1
        for i in range(0, images, together):
            own = ((i * groups + g) * outputs + begin) * n_out
            some = min(together, images - i)
            for z in range(depths):
                for first in range(0, ho, lines):
                    for j in range(some):
                        rolled()
                        widen(x, ((i + j) * groups + g) * inputs * n_in, geometry, inputs, z, first, tall, memory, wide + j * wo, pitch)
                    place = own + (z * ho + first) * wo
                    if together == 1:
                        count = min(lines, ho - first) * wo
                        multiply(memory, w, bias, terms, first_weight, apart, first_bias, rows, here, here, y, place, count, count, n_out)
                        continue
                    multiply(
                        memory, w, bias, terms, first_weight, apart, first_bias, rows, here, blocks * ROWS, memory, side, lines * pitch, ld, ld
                    )  # fmt: skip
                    for j in range(some):
                        rolled()
                        lay_lines(ONE, memory, side + j * wo, pitch, y, place, wo, wo, ZERO, wo, ZERO, ho, ho, here, ld, n_out)
                        place += groups * outputs * n_out


@helper
def channels_together(geometry, images, inputs, room):
    """Return as many channels at a time as leave room for enough positions: (channels, lines of the output, lines and elements of a widened
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
    """Write the gradient by the weights of outputs from ``begin`` to ``end`` of each group, summed in an order that the sizes decide."""
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
                place_weights(geometry, channels, tall, pitch, 1, rights)
                for z in range(depths):
                    for first in range(0, ho, lines):
                        for j in range(here):
                            rolled()
                            image = (((i + j) * groups + k) * inputs + c) * n_in
                            widen(x, image, geometry, some, z, first, tall, wide, j * wo if beside else j * size, pitch)
                        start = ((i * groups + k) * outputs + begin) * n_out + (z * ho + first) * wo
                        if not beside:
                            n = min(lines, ho - first) * wo
                            dots = own[c * taps :]
                            add_dots(g, wide, lefts, rights, sums, dots, kept, some * taps, per, start, n, step, size, here)
                            continue
                        for j in range(here):
                            rolled()
                            place = start + j * step
                            lay_lines(ONE, g, place, wo, side, j * wo, pitch, wo, ZERO, wo, ZERO, ho, ho, kept, n_out, ld)
                        n = lines * pitch
                        add_dots(
                            side, wide, lefts, rights, sums, own[c * taps :], kept, some * taps, per, ZERO, n, ZERO, ZERO, ONE
                        )


def by_weight_few(images, groups, inputs, outputs, begin, end, geometry, g, x, out):
    """Do `by_weight` where all images have few output positions together, one or more, at one depth: as a product, whose terms these are.

    Sums over them in vectors, as there, would take as long to be added up over the lanes.
    """
    n_in, n_out = geometry[0] * geometry[1] * geometry[2], geometry[4] * geometry[5]
    ho, wo, taps = geometry[4], geometry[5], geometry[6] * geometry[7] * geometry[8]
    per, kept, pitch = inputs * taps, end - begin, images * wo
    count = ho * pitch
    lanes = BYTES // out.itemsize
    across = ACROSS * lanes
    _, tall, planes = block_of(geometry, 1, 1 << 60)
    size = planes * tall * pitch
    channels = max(1, min(inputs, WIDE // out.itemsize // size))
    wide = np.empty(channels * size + lanes, dtype=out.dtype)
    side = np.empty(kept * count, dtype=out.dtype)
    panel = np.empty((count + lanes) * across, dtype=out.dtype)
    rights = np.empty((channels * taps + across - 1) // across * across, dtype=np.int64)
    place_weights(geometry, channels, tall, pitch, 1, rights)
    for k in range(groups):
        for j in range(images):
            rolled()
            start = ((j * groups + k) * outputs + begin) * n_out
            lay_lines(ONE, g, start, wo, side, j * wo, pitch, wo, ZERO, wo, ZERO, ho, ho, kept, n_out, count)
        for c in range(0, inputs, channels):
            some = min(channels, inputs - c)
            for j in range(images):
                rolled()
                widen(x, ((j * groups + k) * inputs + c) * n_in, geometry, some, 0, 0, tall, wide, j * wo, pitch)
            for r in range(0, some * taps, across):
                for v in range(0, across, lanes):
                    rolled()
                    turn_lines(wide, rights, panel, r + v, count, v, across)
                place = (k * outputs + begin) * per + c * taps + r
                width = min(across, some * taps - r)
                for p in range(0, count, DEEP):
                    terms, start = min(DEEP, count - p), p * across
                    strip(kept, width, terms, side, p, count, 1, HIGH * count, panel, start, across, out, place, per, p > 0)
