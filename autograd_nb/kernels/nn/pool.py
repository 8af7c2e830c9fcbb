"""Pooling over up to three dims. ``geometry``: input sizes, output sizes, windows, strides, paddings, dilations (18 ints)."""

from __future__ import annotations

import numpy as np

from ...codegen.jit import helper
from ...codegen.vectors import independent, rolled

NARROW = 12  #: rows of fewer windows are not worth a loop for each element of a window
FEW = 8  #: elements of a window for which a branch that is guessed wrong costs more than it saves
BLOCK = 32  #: elements that are looked at together for a new maximum


@helper
def keep_larger(source, step, start, best, places):
    """Take one more element of each of a row's windows: it is kept where it is larger, or nan, or the first."""
    if step == 1:
        for i in range(best.size):
            v, found, w = source[i], best[i], places[i]
            more = (w < 0) | (v > found) | (v != v)
            best[i] = v if more else found
            places[i] = start + i if more else w
    elif step == 2:  # a constant, which is what the vectoriser knows how to load
        for i in range(best.size):
            v, found, w = source[np.uintp(2 * i)], best[i], places[i]
            more = (w < 0) | (v > found) | (v != v)
            best[i] = v if more else found
            places[i] = start + 2 * i if more else w
    else:
        for i in range(best.size):
            v, found, w = source[np.uintp(step * i)], best[i], places[i]
            more = (w < 0) | (v > found) | (v != v)
            best[i] = v if more else found
            places[i] = start + step * i if more else w


@helper
def windows(n_in, n_out, k, s, p, dilation, begins, counts):
    """Write where the windows of a dim begin, at their first element that is not padding, and how many such elements they have."""
    for o in range(n_out):
        first = o * s - p
        begins[o] = first if first >= 0 else first + -(first // dilation) * dilation
        last = min(first + (k - 1) * dilation, n_in - 1)
        counts[o] = (last - begins[o]) // dilation + 1 if last >= begins[o] else 0


@helper
def parts(n_in, n_out, begins, counts):
    """Do as `windows` for nearly equal parts."""
    for o in range(n_out):
        begins[o] = o * n_in // n_out
        counts[o] = ((o + 1) * n_in + n_out - 1) // n_out - begins[o]


@helper
def scanned(plane, at, step, size, found):
    """Return the place of the largest of some elements and the one at ``found``. Few are larger than all before them: so by a branch."""
    best = plane[np.uintp(found)]
    for _i in range(size):
        v = plane[np.uintp(at)]
        if not v <= best:
            rolled()
            if v > best or v != v:
                best = v
                found = at
        at += step
    return found


@helper
def scanned_blocks(plane, at, size, found):
    """Do as `scanned` for many neighbours: what is not larger is passed over, a block at a time."""
    for first in range(at, at + size, BLOCK):
        count = min(BLOCK, at + size - first)
        more = 1
        if count == BLOCK:
            more, best = 0, plane[np.uintp(found)]
            for i in range(BLOCK):
                more |= 0 if plane[np.uintp(first + i)] <= best else 1
        if more:
            found = scanned(plane, first, 1, count, found)
    return found


@helper
def largest(plane, sizes, steps, begins, counts, lowest, y, index):
    """Write the largest element of each window of a plane, and its place, a window after the other; ``steps``: dilations."""
    _, hi, wi, do, ho, wo = sizes
    ld, lh, lw = steps
    position = 0
    for a in range(do):
        for b in range(ho):
            front = (begins[a] * hi + begins[do + b]) * wi
            for c in range(wo):
                slices, rows, columns = counts[a], counts[do + b], counts[do + ho + c]
                found = front + begins[do + ho + c]
                empty = slices * rows * columns == 0
                if columns == wi and lh == 1 and lw == 1:  # whole rows are one
                    columns, rows = wi * rows, min(rows, 1)
                slab = found
                for _z in range(slices if not empty else 0):
                    start = slab
                    for _r in range(rows):
                        if columns < BLOCK or lw > 1:
                            found = scanned(plane, start, lw, columns, found)
                        else:
                            found = scanned_blocks(plane, start, columns, found)
                        start += lh * wi
                    slab += ld * hi * wi
                y[np.uintp(position)] = y.dtype.type(lowest) if empty else plane[np.uintp(found)]
                index[np.uintp(position)] = found
                position += 1


def max_forward(planes, geometry, lowest, x, y, index):
    """y = the largest of each window (the first of equals; nan wins, the last), ``index`` its place in the input plane. A window that
    lies in the padding as a whole has ``lowest``, and the place that PyTorch's says, which may lie behind the plane."""
    di, hi, wi, do, ho, wo, kd, kh, kw, sd, sh, sw, pd, ph, pw, ld, lh, lw = geometry
    n_in, n_out = di * hi * wi, do * ho * wo
    begins, counts = np.empty(do + ho + wo, np.int64), np.empty(do + ho + wo, np.int64)
    windows(di, do, kd, sd, pd, ld, begins, counts)
    windows(hi, ho, kh, sh, ph, lh, begins[do:], counts[do:])
    windows(wi, wo, kw, sw, pw, lw, begins[do + ho :], counts[do + ho :])
    position = 0
    for p in range(planes):
        plane = x[p * n_in : p * n_in + n_in]
        if wo < NARROW or (sw > 2 and kd * kh * kw > FEW):
            tops, places = y[p * n_out : p * n_out + n_out], index[p * n_out : p * n_out + n_out]
            largest(plane, (di, hi, wi, do, ho, wo), (ld, lh, lw), begins, counts, lowest, tops, places)
            continue
        for od in range(do):
            for oh in range(ho):
                best, places = y[position : position + wo], index[position : position + wo]
                position += wo
                for i in range(best.size):
                    best[i] = plane[0]
                for i in range(places.size):
                    places[i] = -1
                for a in range(counts[od]):
                    z = begins[od] + a * ld
                    for b in range(counts[do + oh]):
                        r = begins[do + oh] + b * lh
                        for c in range(kw):
                            q = c * lw - pw
                            first = max(0, -(q // sw))
                            last = min(wo, (wi - 1 - q) // sw + 1)
                            if first < last:
                                start = (z * hi + r) * wi + q + first * sw
                                keep_larger(plane[start:], sw, start, best[first:last], places[first:last])
                front = (begins[od] * hi + begins[do + oh]) * wi
                for i in range(places.size):
                    if places[i] < 0:
                        places[i] = front + begins[do + ho + i]
                        best[i] = lowest


def max_forward_pairs(planes, height, width, x, y, index):
    """Do `max_forward` for 2 × 2 windows at stride 2 without padding: the commonest."""
    ho, wo = height // 2, width // 2
    for p in range(planes):
        for oh in range(ho):
            start = (p * height + 2 * oh) * width
            upper = x[start : start + 2 * wo]
            lower = x[start + width : start + width + 2 * wo]
            target = y[(p * ho + oh) * wo : (p * ho + oh) * wo + wo]
            where = index[(p * ho + oh) * wo : (p * ho + oh) * wo + wo]
            base = 2 * oh * width
            for i in range(target.size):
                a, b, c, d = (
                    upper[np.uintp(2 * i)],
                    upper[np.uintp(2 * i + 1)],
                    lower[np.uintp(2 * i)],
                    lower[np.uintp(2 * i + 1)],
                )
                # without a branch: which of four is the largest is anybody's guess
                second = (b > a) | (b != b)
                top = b if second else a
                fourth = (d > c) | (d != d)
                low = d if fourth else c
                down = (low > top) | (low != low)
                target[i] = low if down else top
                where[i] = base + 2 * i + (width + np.int64(fourth) if down else np.int64(second))


def scatter(planes, n_in, n_out, g, index, out):
    """out[p, index[p, i]] += g[p, i], the rest 0; places behind the plane are passed over."""
    for i in range(out.size):
        out[i] = 0
    for p in range(planes):
        plane = out[p * n_in : p * n_in + n_in]
        source = g[p * n_out : p * n_out + n_out]
        where = index[p * n_out : p * n_out + n_out]
        for i in range(source.size):
            rolled()
            if where[i] < n_in:
                plane[np.uintp(where[i])] += source[i]


def gather(planes, n_in, n_out, x, index, out):
    """out[p, i] = x[p, index[p, i]], 0 for a place behind the plane."""
    for p in range(planes):
        plane = x[p * n_in : p * n_in + n_in]
        target = out[p * n_out : p * n_out + n_out]
        where = index[p * n_out : p * n_out + n_out]
        for i in range(target.size):
            if where[i] < n_in:
                target[i] = plane[np.uintp(where[i])]
            else:
                target[i] = 0


def place(planes, n_in, n_out, x, index, out):
    """out[p, index[p, i]] = x[p, i], the rest 0 (unpooling)."""
    for i in range(out.size):
        out[i] = 0
    for p in range(planes):
        for i in range(n_in):
            rolled()
            out[np.uintp(p * n_out + index[p * n_in + i])] = x[p * n_in + i]


@helper
def add(source, sums):
    """Add a row to another."""
    for i in range(sums.size):
        independent()
        sums[i] += source[i]


@helper
def add_strided(source, step, sums):
    """Add one more element of each of a row's windows."""
    if step == 1:
        for i in range(sums.size):
            sums[i] += source[i]
    elif step == 2:  # a constant, which is what the vectoriser knows how to load
        for i in range(sums.size):
            sums[i] += source[np.uintp(2 * i)]
    else:
        for i in range(sums.size):
            sums[i] += source[np.uintp(step * i)]


@helper
def window_sizes(n_in, n_out, k, s, p, include_pad, begins, counts, extents):
    """Do `windows`, and write how many elements each has, with those of the padding if ``include_pad``."""
    windows(n_in, n_out, k, s, p, 1, begins, counts)
    for o in range(n_out):
        first = o * s - p
        extents[o] = min(first + k, n_in + p) - first if include_pad else counts[o]


@helper
def average_windows(geometry, include_pad, begins, counts, extents):
    """Fill the tables of the three dims, joined."""
    di, hi, wi, do, ho, wo, kd, kh, kw, sd, sh, sw, pd, ph, pw, _ld, _lh, _lw = geometry
    window_sizes(di, do, kd, sd, pd, include_pad, begins, counts, extents)
    window_sizes(hi, ho, kh, sh, ph, include_pad, begins[do:], counts[do:], extents[do:])
    window_sizes(wi, wo, kw, sw, pw, include_pad, begins[do + ho :], counts[do + ho :], extents[do + ho :])


@helper
def average_parts(sizes, begins, counts, extents):
    """Do as `average_windows` for nearly equal parts."""
    di, hi, wi, do, ho, wo = sizes
    parts(di, do, begins, counts)
    parts(hi, ho, begins[do:], counts[do:])
    parts(wi, wo, begins[do + ho :], counts[do + ho :])
    for o in range(counts.size):
        extents[o] = counts[o]


@helper
def means(planes, sizes, taps, begins, counts, extents, divisor, x, y):
    """y = the means of windows: slices of a plane are added up first, then their rows, then elements of the one row that is left.

    ``taps``: (window, stride, padding) of the last dim where windows are at regular places, else 0; ``divisor`` 0: the window's size.
    """
    di, hi, wi, do, ho, wo = sizes
    kw, sw, pw = taps
    deep = di > 1
    slab = np.empty(hi * wi if deep else 0, np.float64)
    row, sums = np.empty(wi, np.float64), np.empty(wo, np.float64)
    position = 0
    for p in range(planes):
        for od in range(do):
            below = (p * di + begins[od]) * hi * wi
            for i in range(slab.size):
                slab[i] = 0
            if deep:
                for z in range(counts[od]):
                    add(x[below + z * hi * wi :], slab)
            for oh in range(ho):
                for i in range(row.size):
                    row[i] = 0
                for r in range(begins[do + oh], begins[do + oh] + counts[do + oh]):
                    if deep:
                        add(slab[r * wi :], row)
                    else:
                        add(x[below + r * wi :], row)
                if kw > 0 and wo >= NARROW:
                    for i in range(sums.size):
                        sums[i] = 0
                    for c in range(kw):
                        q = c - pw
                        first = max(0, -(q // sw))
                        last = min(wo, (wi - 1 - q) // sw + 1)
                        if first < last:
                            add_strided(row[q + first * sw :], sw, sums[first:last])
                else:
                    for i in range(sums.size):
                        total = np.float64(0)
                        for q in range(begins[do + ho + i], begins[do + ho + i] + counts[do + ho + i]):
                            rolled()
                            total += row[np.uintp(q)]
                        sums[i] = total
                extent = extents[od] * extents[do + oh]
                out = y[position : position + wo]
                position += wo
                for i in range(out.size):
                    out[i] = sums[i] / (divisor if divisor != 0 else extent * extents[do + ho + i])


@helper
def spread(planes, sizes, begins, counts, extents, divisor, g, out):
    """Do the transpose of `means`: each window's share goes to its columns, to its rows, to its slices."""
    di, hi, wi, do, ho, wo = sizes
    deep = di > 1
    slab, row = np.empty(hi * wi if deep else 0, out.dtype), np.empty(wi, out.dtype)
    for i in range(out.size):
        out[i] = 0
    position = 0
    for p in range(planes):
        for od in range(do):
            below = (p * di + begins[od]) * hi * wi
            for i in range(slab.size):
                slab[i] = 0
            for oh in range(ho):
                for i in range(row.size):
                    row[i] = 0
                extent = extents[od] * extents[do + oh]
                for ow in range(wo):
                    size = divisor if divisor != 0 else extent * extents[do + ho + ow]
                    share = g[np.uintp(position)] / out.dtype.type(size)
                    for q in range(begins[do + ho + ow], begins[do + ho + ow] + counts[do + ho + ow]):
                        rolled()
                        row[np.uintp(q)] += share
                    position += 1
                for r in range(begins[do + oh], begins[do + oh] + counts[do + oh]):
                    add(row, slab[r * wi : r * wi + wi] if deep else out[below + r * wi : below + r * wi + wi])
            if deep:
                for z in range(counts[od]):
                    add(slab, out[below + z * hi * wi : below + (z + 1) * hi * wi])


def average_forward(planes, geometry, include_pad, divisor, x, y):
    """y = the mean of each window; ``divisor`` 0: the window's size, counting padding if ``include_pad``."""
    di, hi, wi, do, ho, wo, _kd, _kh, kw, _sd, _sh, sw, _pd, _ph, pw, _ld, _lh, _lw = geometry
    n = do + ho + wo
    begins, counts, extents = np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n, np.int64)
    average_windows(geometry, include_pad, begins, counts, extents)
    means(planes, (di, hi, wi, do, ho, wo), (kw, sw, pw), begins, counts, extents, divisor, x, y)


def average_backward(planes, geometry, include_pad, divisor, g, out):
    """Do the transpose of `average_forward`."""
    di, hi, wi, do, ho, wo, _kd, _kh, _kw, _sd, _sh, _sw, _pd, _ph, _pw, _ld, _lh, _lw = geometry
    n = do + ho + wo
    begins, counts, extents = np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n, np.int64)
    average_windows(geometry, include_pad, begins, counts, extents)
    spread(planes, (di, hi, wi, do, ho, wo), begins, counts, extents, divisor, g, out)


def adaptive_forward(planes, sizes, x, y):
    """Write the mean of each of the nearly equal parts that an input is cut into; ``sizes``: three of the input, three of the output."""
    n = sizes[3] + sizes[4] + sizes[5]
    begins, counts, extents = np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n, np.int64)
    average_parts(sizes, begins, counts, extents)
    means(planes, sizes, (0, 1, 0), begins, counts, extents, 0, x, y)


def adaptive_backward(planes, sizes, g, out):
    """Do the transpose of `adaptive_forward`."""
    n = sizes[3] + sizes[4] + sizes[5]
    begins, counts, extents = np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n, np.int64)
    average_parts(sizes, begins, counts, extents)
    spread(planes, sizes, begins, counts, extents, 0, g, out)


def adaptive_max(planes, sizes, x, y, index):
    """Write the largest of each part, and its place in the input plane."""
    di, hi, wi, do, ho, wo = sizes
    n_in, n_out = di * hi * wi, do * ho * wo
    begins, counts = np.empty(do + ho + wo, np.int64), np.empty(do + ho + wo, np.int64)
    parts(di, do, begins, counts)
    parts(hi, ho, begins[do:], counts[do:])
    parts(wi, wo, begins[do + ho :], counts[do + ho :])
    for p in range(planes):
        tops, places = y[p * n_out : p * n_out + n_out], index[p * n_out : p * n_out + n_out]
        largest(x[p * n_in : p * n_in + n_in], sizes, (1, 1, 1), begins, counts, 0, tops, places)


def fractional(planes, n, sizes, samples, x, y, index):
    """Do `max_forward` over windows that begin at places drawn by ``samples`` (planes, n numbers in [0, 1)), one sequence a dim.

    ``sizes``: three of the input, the output and the window; the first 3 − n dims are of size 1. In two dims, PyTorch's first
    sample is of the width.
    """
    di, hi, wi, do, ho, wo, _kd, _kh, _kw = sizes
    starts, counts = np.empty(do + ho + wo, np.int64), np.empty(do + ho + wo, np.int64)
    n_in, n_out = di * hi * wi, do * ho * wo
    for p in range(planes):
        at = 0
        for d in range(3):
            inputs, outputs, window = sizes[d], sizes[3 + d], sizes[6 + d]
            k = d - 3 + n
            u = samples[p * n + (1 - k if n == 2 else k)] if k >= 0 else samples[p * n] * 0
            step = samples.dtype.type(inputs - window) / samples.dtype.type(outputs - 1) if outputs > 1 else u * 0
            for i in range(outputs - 1):
                starts[at + i] = int((samples.dtype.type(i) + u) * step) - int(u * step)
            starts[at + outputs - 1] = inputs - window
            for i in range(at, at + outputs):
                counts[i] = window
            at += outputs
        tops, places = y[p * n_out : p * n_out + n_out], index[p * n_out : p * n_out + n_out]
        largest(x[p * n_in : p * n_in + n_in], (di, hi, wi, do, ho, wo), (1, 1, 1), starts, counts, 0, tops, places)
