"""Convolutions whose groups have one input channel: a plane at a time, every tap of the filter as one pass over it.

A plane is laid out so that what a tap reads for all outputs is one run of memory: padded, and for strides taken apart into
*phases*, each of which holds the elements a stride apart. Outputs stand in rows of the same length, with a few places between
them that belong to none.

``geometry`` is that of `conv`: sizes of input, output and filter, stride, padding and dilation, each in three dims.
"""

from __future__ import annotations

import numpy as np

from ...codegen.jit import FREE, helper
from ...codegen.lanes import SHIFTED, add_taps
from ...codegen.tiles import copy_rows
from ...codegen.vectors import BYTES, rolled


@helper
def extents_of(geometry):
    """Return how long a phase is in each of the three dims."""
    _, _, _, do, ho, wo, kd, kh, kw, sd, sh, sw, _, _, _, dd, dh, dw = geometry
    extents = np.empty(3, np.int64)
    extents[0] = do + dd * (kd - 1) // sd
    extents[1] = ho + dh * (kh - 1) // sh
    extents[2] = wo + dw * (kw - 1) // sw
    return extents


@helper
def places(geometry, extents, taps):
    """Return for each tap its number in the filter; then for each its phase; then where it begins to read, in the memory of all phases.

    They are ordered by phase.
    """
    _, _, _, _, _, _, kd, kh, kw, sd, sh, sw, _, _, _, dd, dh, dw = geometry
    depth, height, width = extents[0], extents[1], extents[2]
    table = np.empty(3 * taps, np.int64)
    count = 0
    for phase in range(sd * sh * sw):
        for a in range(kd):
            for b in range(kh):
                for c in range(kw):
                    rolled()
                    z, r, q = a * dd // sd, b * dh // sh, c * dw // sw
                    if ((a * dd - z * sd) * sh + b * dh - r * sh) * sw + c * dw - q * sw == phase:
                        table[np.uintp(count)] = (a * kh + b) * kw + c
                        table[np.uintp(taps + count)] = phase
                        table[np.uintp(2 * taps + count)] = ((phase * depth + z) * height + r) * width + q
                        count += 1
    return table


@helper
def fill(array, value):
    for i in range(array.size):
        array[i] = value


@helper
def weights_of(k, taps, table, w, own):
    """Write the weights of a filter in the order of the table."""
    for t in range(taps):
        rolled()
        own[t] = w[np.uintp(k * taps + table[t])]


@helper
def bounds(geometry, d, phase, extent):
    """Return the first and last steps of a phase that lie in the input, along one dim."""
    shift = geometry[12 + d] - phase
    step = geometry[9 + d]
    first = max(0, -(-shift // step))
    return first, max(first, min(extent, (geometry[d] + shift - 1) // step + 1))


@helper
def move(geometry, extents, x, phases, back):
    """Copy the elements of an input to their places in the phases, or ``back``."""
    sd, sh, sw = geometry[9], geometry[10], geometry[11]
    _, height, width = extents
    start = 0
    for pd in range(sd):
        d0, d1 = bounds(geometry, 0, pd, extents[0])
        for ph in range(sh):
            r0, r1 = bounds(geometry, 1, ph, height)
            for pw in range(sw):
                c0, c1 = bounds(geometry, 2, pw, width)
                rows, n = r1 - r0, c1 - c0
                for d in range(d0, d1):
                    line = ((d * sd + pd - geometry[12]) * geometry[1] + r0 * sh + ph - geometry[13]) * geometry[2]
                    line += c0 * sw + pw - geometry[14]
                    there = start + (d * height + r0) * width + c0
                    if sw == 1 and back:
                        copy_rows(rows, n, phases, there, width, x, line, sh * geometry[2])
                    elif sw == 1:
                        copy_rows(rows, n, x, line, sh * geometry[2], phases, there, width)
                    else:
                        for r in range(rows):
                            mine = phases[there + r * width:there + r * width + n]
                            at = line + r * sh * geometry[2]
                            if back:
                                for c in range(mine.size):
                                    x[np.uintp(at + c * sw)] = mine[c]
                            else:
                                for c in range(mine.size):
                                    mine[c] = x[np.uintp(at + c * sw)]
                start += extents[0] * height * width


@helper
def spread(geometry, extents, y, places, start, back):
    """Move the rows of an output as far apart as those of a phase, or ``back``."""
    rows, n = geometry[4], geometry[5]
    for d in range(geometry[3]):
        line = d * rows * n
        there = start + d * extents[1] * extents[2]
        if back:
            copy_rows(rows, n, places, there, extents[2], y, line, n)
        else:
            copy_rows(rows, n, y, line, n, places, there, extents[2])


@helper
def beyond(x):
    """Return how many elements beyond a run `add_taps` may read."""
    return SHIFTED * BYTES // x.itemsize


@helper
def run_length(geometry, extents):
    """Return the length from the first output to the last, in rows as far apart as those of a phase."""
    return ((geometry[3] - 1) * extents[1] + geometry[4] - 1) * extents[2] + geometry[5]


def forward(images, groups, inputs, outputs, geometry, x, w, bias, y):
    """Write ``outputs`` for each of the ``groups``, which have one of ``inputs``; ``bias`` may be empty."""
    extents, taps = extents_of(geometry), geometry[6] * geometry[7] * geometry[8]
    table = places(geometry, extents, taps)
    starts = table[2 * taps :]
    n_x, n_y = geometry[0] * geometry[1] * geometry[2], geometry[3] * geometry[4] * geometry[5]
    phases = np.empty(extents[0] * extents[1] * extents[2] * geometry[9] * geometry[10] * geometry[11] + beyond(x), x.dtype)
    out = np.empty(run_length(geometry, extents), x.dtype)
    own = np.empty(taps, x.dtype)
    fill(phases, x.dtype.type(0))
    for i in range(images * groups):
        move(geometry, extents, x[i * n_x : (i + 1) * n_x], phases, False)
        for o in range(outputs):
            k = i % groups * outputs + o
            weights_of(k, taps, table, w, own)
            fill(out, bias[k] if bias.size else x.dtype.type(0))
            add_taps(own, starts, phases, out, taps, out.size)
            start = (i * outputs + o) * n_y
            spread(geometry, extents, y[start : start + n_y], out, 0, True)


def by_input(images, groups, inputs, outputs, geometry, y, w, x):
    """Write the gradient of `forward` by its input, given that by its output."""
    extents, taps = extents_of(geometry), geometry[6] * geometry[7] * geometry[8]
    table = places(geometry, extents, taps)
    plane = extents[0] * extents[1] * extents[2]
    n_x, n_y = geometry[0] * geometry[1] * geometry[2], geometry[3] * geometry[4] * geometry[5]
    starts = table[2 * taps :]
    last = 0
    for t in range(taps):
        starts[t] -= table[taps + t] * plane  # where in its phase
        last = max(last, starts[t])
    for t in range(taps):
        starts[t] = last - starts[t]
    phases = np.empty(plane * geometry[9] * geometry[10] * geometry[11], x.dtype)
    source = np.empty(last + plane + beyond(x), x.dtype)
    own = np.empty(taps, x.dtype)
    fill(source, x.dtype.type(0))
    fill(x, x.dtype.type(0))
    for i in range(images * groups):
        fill(phases, x.dtype.type(0))
        for o in range(outputs):
            weights_of(i % groups * outputs + o, taps, table, w, own)
            start = (i * outputs + o) * n_y
            spread(geometry, extents, y[start : start + n_y], source, last, False)
            first = 0
            while first < taps:
                phase = table[taps + first]
                end = first
                while end < taps and table[taps + end] == phase:
                    end += 1
                add_taps(own[first:], starts[first:], source, phases[phase * plane :], end - first, plane)
                first = end
        move(geometry, extents, x[i * n_x : (i + 1) * n_x], phases, True)


@helper(fastmath=FREE)
def add_products(starts, source, g, sums):
    """sums[t] += Σ g[i]·source[starts[t] + i]."""
    n = g.size
    for t in range(0, sums.size - 2, 3):
        a, b, c = source[starts[t]:starts[t] + n], source[starts[t + 1]:starts[t + 1] + n], source[starts[t + 2]:starts[t + 2] + n]
        x = y = z = g.dtype.type(0)
        for i in range(g.size):
            x += g[i] * a[i]
            y += g[i] * b[i]
            z += g[i] * c[i]
        sums[t] += x
        sums[t + 1] += y
        sums[t + 2] += z
    for t in range(sums.size // 3 * 3, sums.size):
        a = source[starts[t]:starts[t] + n]
        x = g.dtype.type(0)
        for i in range(g.size):
            x += g[i] * a[i]
        sums[t] += x


def by_weight(images, groups, inputs, outputs, geometry, y, x, w):
    """Write the gradient of `forward` by its weight, given that by its output."""
    extents, taps = extents_of(geometry), geometry[6] * geometry[7] * geometry[8]
    table = places(geometry, extents, taps)
    starts = table[2 * taps :]
    n_x, n_y = geometry[0] * geometry[1] * geometry[2], geometry[3] * geometry[4] * geometry[5]
    phases = np.empty(extents[0] * extents[1] * extents[2] * geometry[9] * geometry[10] * geometry[11], x.dtype)
    g = np.empty(run_length(geometry, extents), x.dtype)
    own = np.empty(taps, x.dtype)
    zero = x.dtype.type(0)
    fill(phases, zero)
    fill(g, zero)
    fill(w, zero)
    for i in range(images * groups):
        move(geometry, extents, x[i * n_x : (i + 1) * n_x], phases, False)
        for o in range(outputs):
            k = i % groups * outputs + o
            start = (i * outputs + o) * n_y
            spread(geometry, extents, y[start : start + n_y], g, 0, False)
            fill(own, zero)
            add_products(starts, phases, g, own)
            for t in range(taps):
                rolled()
                w[np.uintp(k * taps + table[t])] += own[t]
