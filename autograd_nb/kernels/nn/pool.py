"""Pooling over up to three dims. ``geometry``: input sizes, output sizes, windows, strides, paddings, dilations (18 ints)."""

from __future__ import annotations

import numpy as np

from ...codegen.jit import helper
from ...codegen.vectors import rolled


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
def begin(first, step):
    """Return where a window begins: at its first element that is not in the padding in front."""
    return first if first >= 0 else first + -(first // step) * step


def max_forward(planes, geometry, lowest, x, y, index):
    """y = the largest of each window (the first of equals; nan wins, the last), ``index`` its place in the input plane. A window that
    lies in the padding as a whole has ``lowest``, and the place that PyTorch's says, which may lie behind the plane."""
    di, hi, wi, do, ho, wo, kd, kh, kw, sd, sh, sw, pd, ph, pw, ld, lh, lw = geometry
    n_in = di * hi * wi
    position = 0
    for p in range(planes):
        plane = x[p * n_in : p * n_in + n_in]
        for od in range(do):
            for oh in range(ho):
                best, places = y[position : position + wo], index[position : position + wo]
                position += wo
                for i in range(best.size):
                    best[i] = plane[0]
                for i in range(places.size):
                    places[i] = -1
                for a in range(kd):
                    z = od * sd - pd + a * ld
                    if z < 0 or z >= di:
                        continue
                    for b in range(kh):
                        r = oh * sh - ph + b * lh
                        if r < 0 or r >= hi:
                            continue
                        for c in range(kw):
                            q = c * lw - pw
                            first = max(0, -(q // sw))
                            last = min(wo, (wi - 1 - q) // sw + 1)
                            if first < last:
                                start = (z * hi + r) * wi + q + first * sw
                                keep_larger(plane[start:], sw, start, best[first:last], places[first:last])
                front = (begin(od * sd - pd, ld) * hi + begin(oh * sh - ph, lh)) * wi
                for i in range(places.size):
                    if places[i] < 0:
                        places[i] = front + begin(i * sw - pw, lw)
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


def average_forward(planes, geometry, include_pad, divisor, x, y):
    """y = the mean of each window; ``divisor`` 0: the window's size, counting padding if ``include_pad``."""
    di, hi, wi, do, ho, wo, kd, kh, kw, sd, sh, sw, pd, ph, pw, _ld, _lh, _lw = geometry
    n_in = di * hi * wi
    position = 0
    sums = np.empty(wo, np.float64)
    widths = np.empty(wo, np.float64)  # of windows
    for ow in range(wo):
        xa = ow * sw - pw
        xe = min(xa + kw, wi + pw)
        widths[ow] = xe - xa if include_pad else max(min(xe, wi) - max(xa, 0), 0)
    for p in range(planes):
        plane = x[p * n_in : p * n_in + n_in]
        for od in range(do):
            for oh in range(ho):
                za, ya = od * sd - pd, oh * sh - ph
                ze, ye = min(za + kd, di + pd), min(ya + kh, hi + ph)
                size = (ze - za) * (ye - ya)
                za, ya = max(za, 0), max(ya, 0)
                ze, ye = min(ze, di), min(ye, hi)
                if not include_pad:
                    size = max(ze - za, 0) * max(ye - ya, 0)
                for i in range(sums.size):
                    sums[i] = 0
                for z in range(za, ze):
                    for r in range(ya, ye):
                        for c in range(kw):
                            q = c - pw
                            first = max(0, -(q // sw))
                            last = min(wo, (wi - 1 - q) // sw + 1)
                            if first < last:
                                add_strided(plane[(z * hi + r) * wi + q + first * sw :], sw, sums[first:last])
                means = y[position : position + wo]
                for i in range(means.size):
                    means[i] = sums[i] / (divisor if divisor != 0 else size * widths[i])
                position += wo


def average_backward(planes, geometry, include_pad, divisor, g, out):
    """Do the transpose of `average_forward`."""
    di, hi, wi, do, ho, wo, kd, kh, kw, sd, sh, sw, pd, ph, pw, _ld, _lh, _lw = geometry
    n_in = di * hi * wi
    for i in range(out.size):
        out[i] = 0
    position = 0
    for p in range(planes):
        plane = out[p * n_in : p * n_in + n_in]
        for od in range(do):
            for oh in range(ho):
                for ow in range(wo):
                    za, ya, xa = od * sd - pd, oh * sh - ph, ow * sw - pw
                    ze, ye, xe = min(za + kd, di + pd), min(ya + kh, hi + ph), min(xa + kw, wi + pw)
                    size = (ze - za) * (ye - ya) * (xe - xa)
                    za, ya, xa = max(za, 0), max(ya, 0), max(xa, 0)
                    ze, ye, xe = min(ze, di), min(ye, hi), min(xe, wi)
                    if not include_pad:
                        size = max(ze - za, 0) * max(ye - ya, 0) * max(xe - xa, 0)
                    if divisor != 0:
                        size = divisor
                    share = g[np.uintp(position)] / out.dtype.type(size)
                    for z in range(za, ze):
                        for r in range(ya, ye):
                            for q in range(xa, xe):
                                plane[np.uintp((z * hi + r) * wi + q)] += share
                    position += 1


def adaptive_forward(planes, geometry, x, y):
    """Write the mean of each of the nearly equal parts that an input is cut into."""
    di, hi, wi, do, ho, wo = geometry
    n_in = di * hi * wi
    position = 0
    for p in range(planes):
        plane = x[p * n_in : p * n_in + n_in]
        for od in range(do):
            za, ze = od * di // do, ((od + 1) * di + do - 1) // do
            for oh in range(ho):
                ya, ye = oh * hi // ho, ((oh + 1) * hi + ho - 1) // ho
                for ow in range(wo):
                    xa, xe = ow * wi // wo, ((ow + 1) * wi + wo - 1) // wo
                    total = np.float64(0)
                    for z in range(za, ze):
                        for r in range(ya, ye):
                            for q in range(xa, xe):
                                total += plane[np.uintp((z * hi + r) * wi + q)]
                    y[np.uintp(position)] = total / ((ze - za) * (ye - ya) * (xe - xa))
                    position += 1


def adaptive_backward(planes, geometry, g, out):
    """Do the transpose of `adaptive_forward`."""
    di, hi, wi, do, ho, wo = geometry
    n_in = di * hi * wi
    for i in range(out.size):
        out[i] = 0
    position = 0
    for p in range(planes):
        plane = out[p * n_in : p * n_in + n_in]
        for od in range(do):
            za, ze = od * di // do, ((od + 1) * di + do - 1) // do
            for oh in range(ho):
                ya, ye = oh * hi // ho, ((oh + 1) * hi + ho - 1) // ho
                for ow in range(wo):
                    xa, xe = ow * wi // wo, ((ow + 1) * wi + wo - 1) // wo
                    share = g[np.uintp(position)] / out.dtype.type((ze - za) * (ye - ya) * (xe - xa))
                    for z in range(za, ze):
                        for r in range(ya, ye):
                            for q in range(xa, xe):
                                plane[np.uintp((z * hi + r) * wi + q)] += share
                    position += 1


def adaptive_max(planes, geometry, x, y, index):
    """Write the largest of each part, and its place in the input plane."""
    di, hi, wi, do, ho, wo = geometry
    n_in = di * hi * wi
    position = 0
    for p in range(planes):
        plane = x[p * n_in : p * n_in + n_in]
        for od in range(do):
            za, ze = od * di // do, ((od + 1) * di + do - 1) // do
            for oh in range(ho):
                ya, ye = oh * hi // ho, ((oh + 1) * hi + ho - 1) // ho
                for ow in range(wo):
                    xa, xe = ow * wi // wo, ((ow + 1) * wi + wo - 1) // wo
                    found = (za * hi + ya) * wi + xa
                    best = plane[np.uintp(found)]
                    for z in range(za, ze):
                        for r in range(ya, ye):
                            for q in range(xa, xe):
                                at = (z * hi + r) * wi + q
                                v = plane[np.uintp(at)]
                                if v > best or v != v:
                                    best = v
                                    found = at
                    y[np.uintp(position)] = best
                    index[np.uintp(position)] = found
                    position += 1


def fractional(planes, n, sizes, samples, x, y, index):
    """Do `max_forward` over windows that begin at places drawn by ``samples`` (planes, n numbers in [0, 1)), one sequence a dim.

    ``sizes``: three of the input, the output and the window; the first 3 − n dims are of size 1. In two dims, PyTorch's first
    sample is of the width.
    """
    di, hi, wi, do, ho, wo, kd, kh, kw = sizes
    starts = np.empty(do + ho + wo, np.int64)
    n_in = di * hi * wi
    position = 0
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
            at += outputs
        plane = x[p * n_in : p * n_in + n_in]
        for a in range(do):
            for b in range(ho):
                for c in range(wo):
                    found = (starts[a] * hi + starts[do + b]) * wi + starts[do + ho + c]
                    best = plane[found]
                    for z in range(starts[a], starts[a] + kd):
                        for r in range(starts[do + b], starts[do + b] + kh):
                            for q in range(starts[do + ho + c], starts[do + ho + c] + kw):
                                place = (z * hi + r) * wi + q
                                v = plane[np.uintp(place)]
                                if v > best or v != v:
                                    best = v
                                    found = place
                    y[np.uintp(position)] = best
                    index[np.uintp(position)] = found
                    position += 1
