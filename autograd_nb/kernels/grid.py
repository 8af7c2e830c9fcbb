"""Sampling of images at given places: x at a weighted sum of nearby pixels, its derivatives, and theirs.

A place sees ``taps`` pixels. For a chunk of places, a table holds for each tap the pixel's index in a plane (−1: outside, which
counts as 0) and its weight, with the weight's first and second derivatives by the place's coordinates.
"""

from __future__ import annotations

import math

import numpy as np

from ..codegen.jit import helper

CHUNK = 128  #: places whose table is made at a time
BILINEAR, NEAREST, BICUBIC = range(3)
ZEROS, BORDER, REFLECTION = range(3)


@helper
def padded(padding, aligned, u, n):
    """(coordinate inside by the padding mode, its slope by the coordinate given), in float64."""
    if padding == ZEROS:
        return u, 1.0
    m = 1.0
    if padding == REFLECTION:
        low = 0.0 if aligned else -0.5
        span = float(n - 1 if aligned else n)
        if span <= 0:
            return 0.0, 0.0
        u = u - low
        if u < 0:
            m = -m
            u = -u
        flips = math.floor(u / span)
        extra = u - flips * span
        if flips % 2 == 0:
            u = extra + low
        else:
            m = -m
            u = span - extra + low
    if not u > 0:  # nan goes to 0
        return 0.0, 0.0
    if u >= n - 1:
        return float(n - 1), 0.0
    return u, m


@helper
def dim_taps(mode, padding, aligned, c, n, index, w, s, t):
    """The taps along one dim of size n at coordinate c in [−1, 1]: pixels, weights, first and second derivatives by c."""
    one = w.dtype.type(1)
    half = w.dtype.type(0.5)
    size = w.dtype.type(n)
    m = (size - one) * half if aligned else size * half
    u = (c + one) * m if aligned else ((c + one) * size - one) * half
    if mode != BICUBIC:
        v, slope = padded(padding, aligned, float(u), n)
        u = w.dtype.type(v)
        m = m * w.dtype.type(slope)
    inside = -1e9 < u < 1e9
    if mode == NEAREST:
        # round half to even
        i = int(np.rint(u)) if inside else -1
        index[0] = i if 0 <= i < n else -1
        w[0] = one
        s[0] = one - one
        t[0] = one - one
        return
    low = int(math.floor(u)) if inside else -10
    f = u - w.dtype.type(low) if inside else one - one
    if mode == BILINEAR:
        index[0] = low if 0 <= low < n else -1
        index[1] = low + 1 if -1 <= low < n - 1 else -1
        w[0] = one - f
        w[1] = f
        s[0] = -m
        s[1] = m
        t[0] = one - one
        t[1] = one - one
        return
    a = w.dtype.type(-0.75)
    for k in range(4):
        v, _ = padded(padding, aligned, float(low - 1 + k), n)
        i = int(v) if inside else -1
        index[k] = i if 0 <= i < n else -1
        # distance to the tap, on which the weight depends with slope ±m
        d = abs(f - w.dtype.type(k - 1))
        sign = m if f >= w.dtype.type(k - 1) else -m
        if k == 1 or k == 2:
            w[k] = ((a + 2) * d - (a + 3)) * d * d + 1
            s[k] = (3 * (a + 2) * d - 2 * (a + 3)) * d * sign
            t[k] = (6 * (a + 2) * d - 2 * (a + 3)) * m * m
        else:
            w[k] = ((a * d - 5 * a) * d + 8 * a) * d - 4 * a
            s[k] = ((3 * a * d - 10 * a) * d + 8 * a) * sign
            t[k] = (6 * a * d - 10 * a) * m * m


@helper
def fill(n, mode, padding, aligned, order, sizes, grid, count, index, weight, first, second):
    """The table of ``count`` places; first: a block of taps × CHUNK a coordinate, second: one a pair of coordinates."""
    taps = 2 if mode == BILINEAR else 1 if mode == NEAREST else 4
    block = taps**n * CHUNK
    i1 = np.zeros(12, np.int64)
    w1 = np.ones(12, weight.dtype)
    s1 = np.zeros(12, weight.dtype)
    t1 = np.zeros(12, weight.dtype)
    tz = taps if n == 3 else 1
    for p in range(count):
        for d in range(n):
            dim_taps(
                mode, padding, aligned, grid[p * n + d], sizes[2 - d],
                i1[4 * d:4 * d + 4], w1[4 * d:4 * d + 4], s1[4 * d:4 * d + 4], t1[4 * d:4 * d + 4],
            )  # fmt: skip
        at = p
        for c in range(tz):
            for b in range(taps):
                for a in range(taps):
                    x, y, z = a, 4 + b, 8 + c
                    inside = i1[x] >= 0 and i1[y] >= 0 and i1[z] >= 0
                    index[at] = (i1[z] * sizes[1] + i1[y]) * sizes[2] + i1[x] if inside else -1
                    weight[at] = w1[x] * w1[y] * w1[z]
                    if order >= 1:
                        first[at] = s1[x] * w1[y] * w1[z]
                        first[block + at] = w1[x] * s1[y] * w1[z]
                        if n == 3:
                            first[2 * block + at] = w1[x] * w1[y] * s1[z]
                    if order >= 2:
                        second[at] = t1[x] * w1[y] * w1[z]
                        second[block + at] = w1[x] * t1[y] * w1[z]
                        second[2 * block + at] = s1[x] * s1[y] * w1[z]
                        if n == 3:
                            second[3 * block + at] = w1[x] * w1[y] * t1[z]
                            second[4 * block + at] = s1[x] * w1[y] * s1[z]
                            second[5 * block + at] = w1[x] * s1[y] * s1[z]
                    at += CHUNK


@helper
def taps_of(n, mode):
    return (2 if mode == BILINEAR else 1 if mode == NEAREST else 4) ** n


@helper
def gather(index, weight, taps, plane, out):
    """out[p] += the weighted taps of p."""
    for k in range(taps):
        where = index[k * CHUNK:k * CHUNK + out.size]
        w = weight[k * CHUNK:k * CHUNK + out.size]
        for p in range(out.size):
            if where[p] >= 0:
                out[p] += w[p] * plane[np.uintp(where[p])]


@helper
def scatter(index, weight, taps, g, plane):
    """The transpose of `gather`."""
    for k in range(taps):
        where = index[k * CHUNK:k * CHUNK + g.size]
        w = weight[k * CHUNK:k * CHUNK + g.size]
        for p in range(g.size):
            if where[p] >= 0:
                plane[np.uintp(where[p])] += w[p] * g[p]


@helper
def correlate(index, taps, g, plane, sums):
    """sums[k, p] += g[p] · (tap k of p)."""
    for k in range(taps):
        where = index[k * CHUNK:k * CHUNK + g.size]
        s = sums[k * CHUNK:k * CHUNK + g.size]
        for p in range(g.size):
            if where[p] >= 0:
                s[p] += g[p] * plane[np.uintp(where[p])]


def forward(images, channels, n, mode, padding, aligned, sizes, places, x, grid, y):
    """y (images, channels, places) = x (images, channels, sizes) at grid (images, places, n), last dim's coordinate first."""
    plane = sizes[0] * sizes[1] * sizes[2]
    taps = taps_of(n, mode)
    index = np.empty(taps * CHUNK, np.int64)
    weight = np.empty(taps * CHUNK, y.dtype)
    zero = y.dtype.type(0)
    for b in range(images):
        for start in range(0, places, CHUNK):
            count = min(CHUNK, places - start)
            fill(n, mode, padding, aligned, 0, sizes, grid[(b * places + start) * n:], count, index, weight, weight, weight)
            for c in range(b * channels, (b + 1) * channels):
                out = y[c * places + start:c * places + start + count]
                for p in range(out.size):
                    out[p] = zero
                gather(index, weight, taps, x[c * plane:(c + 1) * plane], out)


def backward(images, channels, n, mode, padding, aligned, sizes, places, want_x, want_grid, x, grid, g, out_x, out_grid):
    """Gradients of `forward` to x and to grid."""
    plane = sizes[0] * sizes[1] * sizes[2]
    taps = taps_of(n, mode)
    block = taps * CHUNK
    index = np.empty(block, np.int64)
    weight = np.empty(block, g.dtype)
    first = np.empty(n * block, g.dtype)
    sums = np.empty(block, g.dtype)
    zero = g.dtype.type(0)
    for i in range(out_x.size):
        out_x[i] = zero
    for b in range(images):
        for start in range(0, places, CHUNK):
            count = min(CHUNK, places - start)
            fill(n, mode, padding, aligned, 1, sizes, grid[(b * places + start) * n:], count, index, weight, first, first)
            for i in range(block):
                sums[i] = zero
            for c in range(b * channels, (b + 1) * channels):
                source = g[c * places + start:c * places + start + count]
                if want_x:
                    scatter(index, weight, taps, source, out_x[c * plane:(c + 1) * plane])
                if want_grid:
                    correlate(index, taps, source, x[c * plane:(c + 1) * plane], sums)
            if want_grid:
                out = out_grid[(b * places + start) * n:(b * places + start + count) * n]
                for p in range(count):
                    for d in range(n):
                        total = zero
                        for k in range(p, block, CHUNK):
                            total += first[d * block + k] * sums[k]
                        out[p * n + d] = total


def backward2(images, channels, n, mode, padding, aligned, sizes, places, with_x, with_grid, x, grid, g, hx, hg, out_g, out_x, out_grid):
    """Gradients of `backward` to g, x and grid, given those of its results: ``hx`` and ``hg`` (empty unless ``with_…``)."""
    plane = sizes[0] * sizes[1] * sizes[2]
    taps = taps_of(n, mode)
    block = taps * CHUNK
    index = np.empty(block, np.int64)
    weight = np.empty(block, g.dtype)
    first = np.empty(n * block, g.dtype)
    second = np.empty(n * (n + 1) // 2 * block, g.dtype)
    along = np.empty(block, g.dtype)  # the weights' derivatives along hg
    sums_h = np.empty(block, g.dtype)
    sums_x = np.empty(block, g.dtype)
    zero = g.dtype.type(0)
    for i in range(out_x.size):
        out_x[i] = zero
    for i in range(out_g.size):
        out_g[i] = zero
    for i in range(out_grid.size):
        out_grid[i] = zero
    for b in range(images):
        for start in range(0, places, CHUNK):
            count = min(CHUNK, places - start)
            at = (b * places + start) * n
            fill(n, mode, padding, aligned, 2, sizes, grid[at:], count, index, weight, first, second)
            for i in range(block):
                along[i] = zero
                sums_h[i] = zero
                sums_x[i] = zero
            if with_grid:
                for p in range(count):
                    for d in range(n):
                        v = hg[at + p * n + d]
                        for k in range(p, block, CHUNK):
                            along[k] += v * first[d * block + k]
            for c in range(b * channels, (b + 1) * channels):
                source = g[c * places + start:c * places + start + count]
                out = out_g[c * places + start:c * places + start + count]
                if with_x:
                    gather(index, weight, taps, hx[c * plane:(c + 1) * plane], out)
                    correlate(index, taps, source, hx[c * plane:(c + 1) * plane], sums_h)
                if with_grid:
                    gather(index, along, taps, x[c * plane:(c + 1) * plane], out)
                    correlate(index, taps, source, x[c * plane:(c + 1) * plane], sums_x)
                    scatter(index, along, taps, source, out_x[c * plane:(c + 1) * plane])
            for p in range(count):
                for e in range(n):
                    total = zero
                    for k in range(p, block, CHUNK):
                        total += first[e * block + k] * sums_h[k]
                        if with_grid:
                            for d in range(n):
                                # xx, yy, xy, zz, xz, yz
                                pair = (0, 2, 4, 2, 1, 5, 4, 5, 3)[3 * d + e]
                                total += hg[at + p * n + d] * second[pair * block + k] * sums_x[k]
                    out_grid[at + p * n + e] = total
