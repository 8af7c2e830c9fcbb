"""Convolutions whose groups have one input channel: a plane at a time, every tap of the filter as one pass over it.

A plane is laid out so that what a tap reads for all outputs is one run of memory: padded, and for strides taken apart into
*phases*, each of which holds the elements a stride apart. Outputs stand in rows of the same length, with a few places between
them that belong to none.

``geometry`` is that of `conv`: sizes of input, output and filter, stride, padding and dilation, each in three dims.
"""

from __future__ import annotations

import numpy as np

from ...codegen.jit import FREE, helper
from ...codegen.tiles import copy_rows


@helper
def places(geometry):
    """(extents of a phase, per tap: its number in the filter, its phase, where it reads there), ordered by phase."""
    taps = geometry[6] * geometry[7] * geometry[8]
    extents = np.empty(3, np.int64)
    for d in range(3):
        extents[d] = geometry[3 + d] + geometry[15 + d] * (geometry[6 + d] - 1) // geometry[9 + d]
    table = np.empty((3, taps), np.int64)
    count = 0
    for phase in range(geometry[9] * geometry[10] * geometry[11]):
        for t in range(taps):
            own = start = 0
            rest = t
            size = 1
            width = 1
            for d in range(2, -1, -1):
                at = rest % geometry[6 + d] * geometry[15 + d]
                rest //= geometry[6 + d]
                own += at % geometry[9 + d] * size
                start += at // geometry[9 + d] * width
                size *= geometry[9 + d]
                width *= extents[d]
            if own == phase:
                table[0, count] = t
                table[1, count] = phase
                table[2, count] = start
                count += 1
    return extents, table


@helper
def bounds(geometry, d, phase, extent):
    """The first and last steps of a phase that lie in the input, along one dim."""
    shift = geometry[12 + d] - phase
    step = geometry[9 + d]
    first = max(0, -(-shift // step))
    return first, max(first, min(extent, (geometry[d] + shift - 1) // step + 1))


@helper
def move(geometry, extents, x, phases, back):
    """The elements of an input come to their places in the phases, or ``back``."""
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
    """The rows of an output come to stand as far apart as those of a phase, or ``back``."""
    rows, n = geometry[4], geometry[5]
    for d in range(geometry[3]):
        line = d * rows * n
        there = start + d * extents[1] * extents[2]
        if back:
            copy_rows(rows, n, places, there, extents[2], y, line, n)
        else:
            copy_rows(rows, n, y, line, n, places, there, extents[2])


@helper
def add_shifted(w, starts, source, out):
    """out[i] += Σ w[t]·source[starts[t] + i]."""
    n = out.size
    for t in range(0, w.size - 2, 3):
        a, b, c = source[starts[t]:starts[t] + n], source[starts[t + 1]:starts[t + 1] + n], source[starts[t + 2]:starts[t + 2] + n]
        x, y, z = w[t], w[t + 1], w[t + 2]
        for i in range(out.size):
            out[i] += x * a[i] + y * b[i] + z * c[i]
    for t in range(w.size // 3 * 3, w.size):
        a = source[starts[t]:starts[t] + n]
        for i in range(out.size):
            out[i] += w[t] * a[i]


@helper
def run_length(geometry, extents):
    """From the first output to the last, in rows as far apart as those of a phase."""
    return ((geometry[3] - 1) * extents[1] + geometry[4] - 1) * extents[2] + geometry[5]


def forward(images, groups, inputs, outputs, geometry, x, w, bias, y):
    """``outputs`` for each of the ``groups``, which have one of ``inputs``; ``bias`` may be empty."""
    extents, table = places(geometry)
    taps = table.shape[1]
    plane = extents[0] * extents[1] * extents[2]
    starts = table[1] * plane + table[2]
    n = run_length(geometry, extents)
    n_x, n_y = geometry[0] * geometry[1] * geometry[2], geometry[3] * geometry[4] * geometry[5]
    phases = np.zeros(plane * geometry[9] * geometry[10] * geometry[11], x.dtype)
    out = np.empty(n, x.dtype)
    own = np.empty(taps, x.dtype)
    for i in range(images * groups):
        move(geometry, extents, x[i * n_x:(i + 1) * n_x], phases, False)
        for o in range(outputs):
            k = i % groups * outputs + o
            for t in range(taps):
                own[t] = w[k * taps + table[0, t]]
            first = bias[k] if bias.size else x.dtype.type(0)
            for j in range(out.size):
                out[j] = first
            add_shifted(own, starts, phases, out)
            start = (i * outputs + o) * n_y
            spread(geometry, extents, y[start:start + n_y], out, 0, True)


def by_input(images, groups, inputs, outputs, geometry, y, w, x):
    """The gradient of `forward` by its input, given that by its output."""
    extents, table = places(geometry)
    taps = table.shape[1]
    plane = extents[0] * extents[1] * extents[2]
    n_x, n_y = geometry[0] * geometry[1] * geometry[2], geometry[3] * geometry[4] * geometry[5]
    last = table[2].max()
    starts = last - table[2]
    phases = np.empty(plane * geometry[9] * geometry[10] * geometry[11], x.dtype)
    source = np.zeros(last + plane, x.dtype)
    own = np.empty(taps, x.dtype)
    x[:] = x.dtype.type(0)
    for i in range(images * groups):
        phases[:] = x.dtype.type(0)
        for o in range(outputs):
            k = i % groups * outputs + o
            for t in range(taps):
                own[t] = w[k * taps + table[0, t]]
            start = (i * outputs + o) * n_y
            spread(geometry, extents, y[start:start + n_y], source, last, False)
            first = 0
            while first < taps:
                phase = table[1, first]
                end = first
                while end < taps and table[1, end] == phase:
                    end += 1
                add_shifted(own[first:end], starts[first:end], source, phases[phase * plane:(phase + 1) * plane])
                first = end
        move(geometry, extents, x[i * n_x:(i + 1) * n_x], phases, True)


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
    """The gradient of `forward` by its weight, given that by its output."""
    extents, table = places(geometry)
    taps = table.shape[1]
    plane = extents[0] * extents[1] * extents[2]
    starts = table[1] * plane + table[2]
    n_x, n_y = geometry[0] * geometry[1] * geometry[2], geometry[3] * geometry[4] * geometry[5]
    phases = np.zeros(plane * geometry[9] * geometry[10] * geometry[11], x.dtype)
    g = np.zeros(run_length(geometry, extents), x.dtype)
    own = np.empty(taps, x.dtype)
    w[:] = x.dtype.type(0)
    for i in range(images * groups):
        move(geometry, extents, x[i * n_x:(i + 1) * n_x], phases, False)
        for o in range(outputs):
            k = i % groups * outputs + o
            start = (i * outputs + o) * n_y
            spread(geometry, extents, y[start:start + n_y], g, 0, False)
            own[:] = x.dtype.type(0)
            add_products(starts, phases, g, own)
            for t in range(taps):
                w[k * taps + table[0, t]] += own[t]
