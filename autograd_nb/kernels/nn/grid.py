"""Sampling of images at given places: x at a weighted sum of nearby pixels, its derivatives, and theirs.

A place sees ``taps`` pixels. For a chunk of places, a table holds for each tap the pixel's index in a plane (−1: outside, which
counts as 0) and its weight, with the weight's first and second derivatives by the place's coordinates.
"""

from __future__ import annotations

import numpy as np

from ...codegen.jit import helper
from ...codegen.vectors import independent

CHUNK = 128  #: places whose table is made at a time
ROOM = 4 * CHUNK  #: of a dim's taps
BILINEAR, NEAREST, BICUBIC = range(3)
ZEROS, BORDER, REFLECTION = range(3)


@helper
def clear(array):
    """Write zeros."""
    for i in range(array.size):
        array[i] = array.dtype.type(0)


@helper
def padded(padding, aligned, u, n):
    """Return (coordinate inside by the padding mode, its slope by the coordinate given), in float64."""
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
        flips = np.floor(u / span)
        extra = u - flips * span
        if np.floor(flips * 0.5) * 2 == flips:  # even; a remainder would be a call
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
def dim_table(mode, padding, aligned, coordinates, d, n, grid, count, index, w, s, t):
    """Write the taps along dim ``d``, of size n, of ``count`` places: pixels, weights, their first and second derivatives by the coordinate."""
    one = w.dtype.type(1)
    zero = w.dtype.type(0)
    half = w.dtype.type(0.5)
    size = w.dtype.type(n)
    a = w.dtype.type(-0.75)
    for p in range(count):
        c = grid[np.uintp(p * coordinates + d)]
        m = (size - one) * half if aligned else size * half
        u = (c + one) * m if aligned else ((c + one) * size - one) * half
        if mode != BICUBIC and padding != ZEROS:
            v, slope = padded(padding, aligned, float(u), n)
            u = w.dtype.type(v)
            m = m * w.dtype.type(slope)
        inside = -1e9 < u < 1e9  # what no index could be counts as outside; of nan and infinities weights are nan
        if mode == NEAREST:
            i = int(np.rint(u)) if inside else -1  # halves go to even numbers
            index[p] = i if 0 <= i < n else -1
            w[p] = one
            s[p] = zero
            t[p] = zero
            continue
        below = np.floor(u)
        f = u - below
        if mode == BILINEAR:
            low = int(below) if inside else -10
            index[p] = low if 0 <= low < n else -1
            index[p + CHUNK] = low + 1 if -1 <= low < n - 1 else -1
            w[p] = one - f
            w[p + CHUNK] = f
            s[p] = -m
            s[p + CHUNK] = m
            t[p] = zero
            t[p + CHUNK] = zero
            continue
        for k in range(4):
            at = p + k * CHUNK
            v, _ = padded(padding, aligned, float(below) + (k - 1), n)
            index[at] = int(v) if 0 <= v < n else -1
            # distance to the tap, on which the weight depends with slope ±m
            x = abs(f - w.dtype.type(k - 1))
            sign = m if f >= w.dtype.type(k - 1) else -m
            if k == 1 or k == 2:
                w[at] = ((a + 2) * x - (a + 3)) * x * x + 1
                s[at] = (3 * (a + 2) * x - 2 * (a + 3)) * x * sign
                t[at] = (6 * (a + 2) * x - 2 * (a + 3)) * m * m
            else:
                w[at] = ((a * x - 5 * a) * x + 8 * a) * x - 4 * a
                s[at] = ((3 * a * x - 10 * a) * x + 8 * a) * sign
                t[at] = (6 * a * x - 10 * a) * m * m


@helper
def taps_of(n, mode):
    taps = 2 if mode == BILINEAR else 1 if mode == NEAREST else 4
    return taps * taps * taps if n == 3 else taps * taps  # (Numba takes 0.2 s to compile a power)


@helper
def dim_tables(like):
    """Return room for `dim_table` of three dims: (pixels, weights and their derivatives, one after the other)."""
    # a dim that is not there has one tap: pixel 0, weight 1, no slope
    pixels, w = np.empty(3 * ROOM, np.int64), np.empty(9 * ROOM, like.dtype)
    pixels[:] = 0
    w[:3 * ROOM] = 1
    w[3 * ROOM:] = 0
    return pixels, w


@helper
def fill(n, mode, padding, aligned, sizes, grid, count, pixels, parts, index, weight):
    """Write the table of ``count`` places: indices and weights; what `slopes` needs is left in ``parts``."""
    for d in range(n):
        at = d * ROOM
        dim_table(
            mode, padding, aligned, n, d, sizes[2 - d], grid, count, pixels[at:], parts[at:], parts[3 * ROOM + at:], parts[6 * ROOM + at:]
        )
    taps = 2 if mode == BILINEAR else 1 if mode == NEAREST else 4
    at = 0
    for c in range(taps if n == 3 else 1):
        for b in range(taps):
            for a in range(taps):
                x, y, z = a * CHUNK, ROOM + b * CHUNK, 2 * ROOM + c * CHUNK
                ix, iy, iz = pixels[x:x + count], pixels[y:y + count], pixels[z:z + count]
                wx, wy, wz = parts[x:x + count], parts[y:y + count], parts[z:z + count]
                where, w = index[at:at + count], weight[at:at + count]
                for p in range(where.size):
                    inside = (ix[p] >= 0) & (iy[p] >= 0) & (iz[p] >= 0)
                    where[p] = (iz[p] * sizes[1] + iy[p]) * sizes[2] + ix[p] if inside else -1
                    w[p] = wx[p] * wy[p] * wz[p]
                at += CHUNK


@helper
def product(n, mode, count, x, y, z, parts, out):
    """out[tap, p] = the product of three dims' numbers, which begin at x, y and z in ``parts``."""
    taps = 2 if mode == BILINEAR else 1 if mode == NEAREST else 4
    at = 0
    for c in range(taps if n == 3 else 1):
        for b in range(taps):
            for a in range(taps):
                u, v, w = x + a * CHUNK, y + b * CHUNK, z + c * CHUNK
                for p in range(count):
                    out[np.uintp(at + p)] = parts[np.uintp(u + p)] * parts[np.uintp(v + p)] * parts[np.uintp(w + p)]
                at += CHUNK


@helper
def part(k, d, e):
    """Return where dim k's numbers begin: weights, derived once by dim d and once by dim e where those are k."""
    return (k + 3 * (int(k == d) + int(k == e))) * ROOM


@helper
def slopes(n, mode, count, parts, first):
    """Write the weights' derivatives by each coordinate: a block of taps × CHUNK each."""
    block = taps_of(n, mode) * CHUNK
    for d in range(n):
        product(n, mode, count, part(0, d, -1), part(1, d, -1), part(2, d, -1), parts, first[d * block:])


@helper
def curvatures(n, mode, count, parts, second):
    """Write the weights' second derivatives: xx, xy, yy, xz, yz, zz."""
    block = taps_of(n, mode) * CHUNK
    at = 0
    for e in range(n):
        for d in range(e + 1):
            product(n, mode, count, part(0, d, e), part(1, d, e), part(2, d, e), parts, second[at * block:])
            at += 1


@helper
def pixel(plane, i):
    """Return pixel i, or 0 outside: read either way, so that there is no branch to mispredict."""
    v = plane[np.uintp(max(i, 0))]
    return v if i >= 0 else plane.dtype.type(0)


@helper
def gather(index, weight, taps, plane, out):
    """out[p] += the weighted taps of p."""
    if taps == 4:
        n = out.size
        ia, ib, ic, id_ = index[:n], index[CHUNK:CHUNK + n], index[2 * CHUNK:2 * CHUNK + n], index[3 * CHUNK:3 * CHUNK + n]
        wa, wb, wc, wd = weight[:n], weight[CHUNK:CHUNK + n], weight[2 * CHUNK:2 * CHUNK + n], weight[3 * CHUNK:3 * CHUNK + n]
        for p in range(n):
            independent()
            out[p] += (wa[p] * pixel(plane, ia[p]) + wb[p] * pixel(plane, ib[p])) + (
                wc[p] * pixel(plane, ic[p]) + wd[p] * pixel(plane, id_[p])
            )
        return
    for k in range(taps):
        where = index[k * CHUNK:k * CHUNK + out.size]
        w = weight[k * CHUNK:k * CHUNK + out.size]
        for p in range(out.size):
            independent()
            out[p] += w[p] * pixel(plane, where[p])


@helper
def scatter(index, weight, taps, g, plane):
    """Do the transpose of `gather`."""
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
            independent()
            s[p] += g[p] * pixel(plane, where[p])


def forward(images, channels, n, mode, padding, aligned, sizes, places, x, grid, y):
    """y (images, channels, places) = x (images, channels, sizes) at grid (images, places, n), last dim's coordinate first."""
    plane = sizes[0] * sizes[1] * sizes[2]
    taps = taps_of(n, mode)
    index = np.empty(taps * CHUNK, np.int64)
    weight = np.empty(taps * CHUNK, y.dtype)
    pixels, parts = dim_tables(y)
    zero = y.dtype.type(0)
    for b in range(images):
        for start in range(0, places, CHUNK):
            count = min(CHUNK, places - start)
            fill(n, mode, padding, aligned, sizes, grid[(b * places + start) * n:], count, pixels, parts, index, weight)
            for c in range(b * channels, (b + 1) * channels):
                out = y[c * places + start:c * places + start + count]
                for p in range(out.size):
                    out[p] = zero
                gather(index, weight, taps, x[c * plane:(c + 1) * plane], out)


def backward(images, channels, n, mode, padding, aligned, sizes, places, want_x, want_grid, x, grid, g, out_x, out_grid):
    """Write gradients of `forward` to x and to grid."""
    plane = sizes[0] * sizes[1] * sizes[2]
    taps = taps_of(n, mode)
    block = taps * CHUNK
    index = np.empty(block, np.int64)
    weight = np.empty(block, g.dtype)
    pixels, parts = dim_tables(g)
    first = np.empty(n * block, g.dtype)
    sums = np.empty(block, g.dtype)
    zero = g.dtype.type(0)
    clear(out_x)
    slope = want_grid and mode != NEAREST  # else there is none
    if want_grid and not slope:
        clear(out_grid)
    for b in range(images):
        for start in range(0, places, CHUNK):
            count = min(CHUNK, places - start)
            fill(n, mode, padding, aligned, sizes, grid[(b * places + start) * n:], count, pixels, parts, index, weight)
            if slope:
                slopes(n, mode, count, parts, first)
                clear(sums)
            for c in range(b * channels, (b + 1) * channels):
                source = g[c * places + start:c * places + start + count]
                if want_x:
                    scatter(index, weight, taps, source, out_x[c * plane:(c + 1) * plane])
                if slope:
                    correlate(index, taps, source, x[c * plane:(c + 1) * plane], sums)
            if slope:
                out = out_grid[(b * places + start) * n:(b * places + start + count) * n]
                for p in range(count):
                    for d in range(n):
                        total = zero
                        for k in range(p, block, CHUNK):
                            total += first[d * block + k] * sums[k]
                        out[p * n + d] = total


def backward2(images, channels, n, mode, padding, aligned, sizes, places, with_x, with_grid, x, grid, g, hx, hg, out_g, out_x, out_grid):
    """Write gradients of `backward` to g, x and grid, given those of its results: ``hx`` and ``hg`` (empty unless ``with_…``)."""
    plane = sizes[0] * sizes[1] * sizes[2]
    taps = taps_of(n, mode)
    block = taps * CHUNK
    index = np.empty(block, np.int64)
    weight = np.empty(block, g.dtype)
    pixels, parts = dim_tables(g)
    first = np.empty(n * block, g.dtype)
    second = np.empty(n * (n + 1) // 2 * block, g.dtype)
    along = np.empty(block, g.dtype)  # the weights' derivatives along hg
    sums_h = np.empty(block, g.dtype)
    sums_x = np.empty(block, g.dtype)
    zero = g.dtype.type(0)
    clear(out_x)
    clear(out_g)
    clear(out_grid)
    for b in range(images):
        for start in range(0, places, CHUNK):
            count = min(CHUNK, places - start)
            at = (b * places + start) * n
            fill(n, mode, padding, aligned, sizes, grid[at:], count, pixels, parts, index, weight)
            slopes(n, mode, count, parts, first)
            curvatures(n, mode, count, parts, second)
            clear(along)
            clear(sums_h)
            clear(sums_x)
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
                                pair = (0, 1, 3, 1, 2, 4, 3, 4, 5)[3 * d + e]
                                total += hg[at + p * n + d] * second[pair * block + k] * sums_x[k]
                    out_grid[at + p * n + e] = total
