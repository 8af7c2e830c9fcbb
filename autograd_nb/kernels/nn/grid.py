"""Sampling of images at given places: x at a weighted sum of nearby pixels, its derivatives, and theirs.

A place sees ``taps`` pixels. For a chunk of places, a table holds for each tap the pixel's index in a plane (−1: outside, which
counts as 0) and its weight, with the weight's first and second derivatives by the place's coordinates.
"""

from __future__ import annotations

import numpy as np

from ...codegen.jit import NO, YES, helper
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


@helper(shared=True)
def bring_inside(padding, aligned, n, u, m):
    """Do as `padded` with each coordinate, in place; ``m`` is multiplied by its slope."""
    one = u.dtype.type(1)
    zero = u.dtype.type(0)
    last = u.dtype.type(n - 1)
    if padding == BORDER:
        for p in range(u.size):
            independent()
            v = u[p]
            m[p] *= one if (v > zero) & (v < last) else zero
            v = v if v > zero else zero  # nan goes to 0
            u[p] = v if v < last else last
    if padding == REFLECTION:
        for p in range(u.size):
            v, slope = padded(padding, aligned, float(u[p]), n)
            u[p] = u.dtype.type(v)
            m[p] *= u.dtype.type(slope)


@helper(shared=True)
def pixels_of(u, n, index):
    """Write the pixels at whole coordinates of a dim of size n, −1 for what lies outside."""
    zero = u.dtype.type(0)
    size = u.dtype.type(n)
    for p in range(u.size):
        independent()
        v = u[p]
        index[p] = np.int32(v) if (v >= zero) & (v < size) else np.int32(-1)


@helper
def locate(aligned, coordinates, d, n, grid, u, m):
    """Write the coordinates in pixels of ``u.size`` places along dim ``d``, of size n, and how fast those are by what the grid holds."""
    one = u.dtype.type(1)
    half = u.dtype.type(0.5)
    size = u.dtype.type(n)
    scale = (size - one) * half if aligned else size * half
    along = grid[d:]
    if coordinates == 2:  # a known step, so that vectors are read and picked from
        for p in range(u.size):
            independent()
            u[p] = along[np.uintp(2 * p)]
    else:
        for p in range(u.size):
            independent()
            u[p] = along[np.uintp(3 * p)]
    for p in range(u.size):
        independent()
        c = u[p] + one
        u[p] = c * scale if aligned else (c * size - one) * half
        m[p] = scale


@helper
def cubic_taps(padding, aligned, n, index, w, s, t, u, m, v):
    """Do as `dim_table` with bicubic weights, at the coordinates ``u``."""
    a = w.dtype.type(-0.75)
    scale = m[0]
    for k in range(4):
        at = k * CHUNK
        step = w.dtype.type(k - 1)
        for p in range(u.size):
            independent()
            below = np.floor(u[p])
            v[p] = below + step
            f = u[p] - below
            # distance to the tap, on which the weight depends with slope ±scale
            x = abs(f - step)
            sign = scale if f >= step else -scale
            if k == 1 or k == 2:
                w[at + p] = ((a + 2) * x - (a + 3)) * x * x + 1
                s[at + p] = (3 * (a + 2) * x - 2 * (a + 3)) * x * sign
                t[at + p] = (6 * (a + 2) * x - 2 * (a + 3)) * scale * scale
            else:
                w[at + p] = ((a * x - 5 * a) * x + 8 * a) * x - 4 * a
                s[at + p] = ((3 * a * x - 10 * a) * x + 8 * a) * sign
                t[at + p] = (6 * a * x - 10 * a) * scale * scale
        bring_inside(padding, aligned, n, v, m)
        pixels_of(v, n, index[at:])


@helper
def dim_table(mode, padding, aligned, derive, coordinates, d, n, grid, index, w, s, t, u, m, v):
    """Write the taps along dim ``d``, of size n, of ``u.size`` places: pixels, weights, their first and second derivatives by the coordinate.

    derive: whether to write the derivatives.
    u, m, v: room for the places' coordinates in pixels, how fast those are by what the grid holds, and the coordinates of a tap.
    """
    one = w.dtype.type(1)
    zero = w.dtype.type(0)
    locate(aligned, coordinates, d, n, grid, u, m)
    if mode == BICUBIC:
        cubic_taps(padding, aligned, n, index, w, s, t, u, m, v)
        return
    bring_inside(padding, aligned, n, u, m)
    if mode == NEAREST:
        for p in range(u.size):
            independent()
            u[p] = np.rint(u[p])  # halves go to even numbers
            w[p] = one
            if derive:
                s[p] = zero
                t[p] = zero
        pixels_of(u, n, index)
        return
    for p in range(u.size):
        independent()
        below = np.floor(u[p])
        f = u[p] - below
        u[p] = below
        v[p] = below + one
        w[p] = one - f
        w[p + CHUNK] = f
    if derive:
        for p in range(u.size):
            independent()
            s[p] = -m[p]
            s[p + CHUNK] = m[p]
            t[p] = zero
            t[p + CHUNK] = zero
    pixels_of(u, n, index)
    pixels_of(v, n, index[CHUNK:])


@helper
def taps_of(n, mode):
    taps = 2 if mode == BILINEAR else 1 if mode == NEAREST else 4
    return taps * taps * taps if n == 3 else taps * taps  # (Numba takes 0.2 s to compile a power)


@helper
def dim_tables(like):
    """Return room for `dim_table` of three dims: (pixels, weights and their derivatives, one after the other, and what it needs itself)."""
    pixels, w = np.empty(3 * ROOM, np.int32), np.empty(9 * ROOM + 3 * CHUNK, like.dtype)
    for p in range(2 * ROOM, 2 * ROOM + CHUNK):  # a dim that is not there has one tap, of weight 1 and no slope
        w[p] = 1
        w[p + 3 * ROOM] = 0
        w[p + 6 * ROOM] = 0
    return pixels, w


@helper
def fill(n, mode, padding, aligned, derive, sizes, grid, count, pixels, parts, index, weight):
    """Write the table of ``count`` places: indices and weights; if ``derive``, what `slopes` needs is left in ``parts``."""
    u = 9 * ROOM
    for d in range(n):
        at = d * ROOM
        dim_table(
            mode, padding, aligned, derive, n, d, sizes[2 - d], grid, pixels[at:], parts[at:], parts[3 * ROOM + at:], parts[6 * ROOM + at:],
            parts[u:u + count], parts[u + CHUNK:u + CHUNK + count], parts[u + 2 * CHUNK:u + 2 * CHUNK + count],
        )  # fmt: skip
    taps = 2 if mode == BILINEAR else 1 if mode == NEAREST else 4
    at = 0
    for c in range(taps if n == 3 else 1):
        for b in range(taps):
            for a in range(taps):
                x, y, z = a * CHUNK, ROOM + b * CHUNK, 2 * ROOM + c * CHUNK
                ix, iy, iz = pixels[x:x + count], pixels[y:y + count], pixels[z:z + count]
                wx, wy, wz = parts[x:x + count], parts[y:y + count], parts[z:z + count]
                where, w = index[at:at + count], weight[at:at + count]
                for p in range(where.size if n == 2 else 0):
                    independent()
                    where[p] = iy[p] * sizes[2] + ix[p] if (ix[p] | iy[p]) >= 0 else -1  # none is −1
                    w[p] = wx[p] * wy[p]
                for p in range(where.size if n == 3 else 0):
                    independent()
                    where[p] = (iz[p] * sizes[1] + iy[p]) * sizes[2] + ix[p] if (ix[p] | iy[p] | iz[p]) >= 0 else -1
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
def gather(index, weight, taps, plane, out, add):
    """out[p] = the weighted taps of p, or the same added to it."""
    n = out.size
    if taps == 1:
        for p in range(n):
            independent()
            v = weight[p] * pixel(plane, index[p])
            out[p] = out[p] + v if add else v
        return
    for at in range(0, taps * CHUNK, 4 * CHUNK):  # four taps at a time
        b, c, d = at + CHUNK, at + 2 * CHUNK, at + 3 * CHUNK
        ia, ib, ic, id_ = index[at:at + n], index[b:b + n], index[c:c + n], index[d:d + n]
        wa, wb, wc, wd = weight[at:at + n], weight[b:b + n], weight[c:c + n], weight[d:d + n]
        for p in range(n):
            independent()
            v = (wa[p] * pixel(plane, ia[p]) + wb[p] * pixel(plane, ib[p])) + (wc[p] * pixel(plane, ic[p]) + wd[p] * pixel(plane, id_[p]))
            out[p] = out[p] + v if add else v
        add = YES


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
    for b in range(images):
        for start in range(0, places, CHUNK):
            count = min(CHUNK, places - start)
            fill(n, mode, padding, aligned, NO, sizes, grid[(b * places + start) * n:], count, pixels, parts, index, weight)
            for c in range(b * channels, (b + 1) * channels):
                out = y[c * places + start:c * places + start + count]
                gather(index, weight, taps, x[c * plane:(c + 1) * plane], out, NO)


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
            fill(n, mode, padding, aligned, slope, sizes, grid[(b * places + start) * n:], count, pixels, parts, index, weight)
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
            fill(n, mode, padding, aligned, YES, sizes, grid[at:], count, pixels, parts, index, weight)
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
                    gather(index, weight, taps, hx[c * plane:(c + 1) * plane], out, YES)
                    correlate(index, taps, source, hx[c * plane:(c + 1) * plane], sums_h)
                if with_grid:
                    gather(index, along, taps, x[c * plane:(c + 1) * plane], out, YES)
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
