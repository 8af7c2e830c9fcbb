"""Eigenvalues and singular values of many small real matrices by Jacobi's rotations, one matrix in each lane of a vector.

A rotation makes one pair of a matrix's rows and columns (for singular values: of its columns) orthogonal; sweeps over all pairs
end when nothing is left to be rotated, in any lane. Matrices are scaled by powers of two, so that no square overflows.
"""

from __future__ import annotations

import numpy as np

from ...codegen.jit import helper, math
from ...codegen.vectors import BYTES
from .batched import gather

SWEEPS = 40  #: more than ever needed: convergence is quadratic


@helper
def scale(group, lanes, scales, info):
    """Scale each lane's largest element to between a half and 1, times ``scales``; info −1 for lanes that are not finite."""
    for k in range(lanes):
        most = group.dtype.type(0)
        finite = True
        for e in range(k, group.size, lanes):
            size = abs(group[e])
            finite = finite and size < np.inf
            most = max(most, size)
        info[k] = 0 if finite else -1
        if not finite:
            most = group.dtype.type(0)
        _, exponent = math.frexp(most)
        exponent = max(exponent, -100)  # its inverse is a number of any type
        factor = group.dtype.type(math.ldexp(1.0, -exponent))
        scales[k] = group.dtype.type(math.ldexp(1.0, exponent))
        for e in range(k, group.size, lanes):
            group[e] = group[e] * factor if finite else group.dtype.type(0)


@helper
def angles(x, y, z, least, ts, cs, ss):
    """Compute the rotations that annul z between x and y; return how many lanes need one: where |z| is greater than ``least``."""
    count = 0
    one, two = z.dtype.type(1), z.dtype.type(2)
    for k in range(z.size):
        turns = abs(z[k]) > least[k]
        d = y[k] - x[k]
        w = two * z[k] if turns else one
        ratio = d / w
        t = one / (abs(ratio) + np.sqrt(one + ratio * ratio))
        t = (-t if ratio < 0 else t) if turns else z.dtype.type(0)
        c = one / np.sqrt(one + t * t)
        ts[k], cs[k], ss[k] = t, c, t * c
        count += turns
    return count


@helper
def rotate(x, y, c, s):
    for k in range(x.size):
        p, q = x[k], y[k]
        x[k] = c[k] * p - s[k] * q
        y[k] = s[k] * p + c[k] * q


@helper
def store_sorted(values, first, step, count, factor, out, descending):
    """Write ``count`` values, ``step`` apart, times ``factor`` and in order."""
    for j in range(count):
        x = values[first + j * step] * factor
        i = j
        while i > 0 and (out[i - 1] < x if descending else out[i - 1] > x):
            out[i] = out[i - 1]
            i -= 1
        out[i] = x


@helper
def lower_triangle(group, n, upper, lanes):
    """Make n × n matrices, given by one triangle, lower triangles, which is what is read, with zeros above."""
    row = n * lanes
    for r in range(n):
        for q in range(r):
            low = group[r * row + q * lanes : r * row + q * lanes + lanes]
            high = group[q * row + r * lanes : q * row + r * lanes + lanes]
            for k in range(low.size):
                if upper:
                    low[k] = high[k]
                high[k] = group.dtype.type(0)


def eigenvalues(batch, n, upper, a, w, info):
    """Write w[i], ascending, of symmetric matrices given by one triangle."""
    lanes = BYTES // a.itemsize
    group = np.empty(n * n * lanes, a.dtype)
    t, c, s, least, scales = (np.empty(lanes, a.dtype), np.empty(lanes, a.dtype), np.empty(lanes, a.dtype), np.empty(lanes, a.dtype),
                              np.empty(lanes, a.dtype))  # fmt: skip
    bad = np.empty(lanes, np.int32)
    eps = np.finfo(a.dtype).eps * a.dtype.type(0.0625)
    row = n * lanes
    for i in range(0, batch, lanes):
        matrices = min(lanes, batch - i)
        gather(matrices, n * n, a, i * n * n, n * n, group)
        lower_triangle(group, n, upper, lanes)
        scale(group, lanes, scales, bad)
        for _ in range(SWEEPS):
            count = 0
            for k in range(least.size):
                least[k] = a.dtype.type(0)
            for e in range(0, group.size, lanes):
                x = group[e : e + lanes]
                for k in range(least.size):
                    least[k] = max(least[k], abs(x[k]) * eps)
            for p in range(n):
                for q in range(p + 1, n):
                    x, y = (
                        group[p * row + p * lanes : p * row + p * lanes + lanes],
                        group[q * row + q * lanes : q * row + q * lanes + lanes],
                    )
                    z = group[q * row + p * lanes : q * row + p * lanes + lanes]
                    turning = angles(x, y, z, least, t, c, s)
                    if not turning:
                        continue
                    count += turning
                    for k in range(z.size):
                        d = t[k] * z[k]
                        x[k] -= d
                        y[k] += d
                        z[k] = a.dtype.type(0) if t[k] != 0 else z[k]
                    for r in range(n):
                        if r != p and r != q:
                            one = max(r, p) * row + min(r, p) * lanes
                            other = max(r, q) * row + min(r, q) * lanes
                            rotate(group[one : one + lanes], group[other : other + lanes], c, s)
            if not count:
                break
        for k in range(matrices):
            info[i + k] = bad[k]
            store_sorted(group, k, row + lanes, n, scales[k], w[(i + k) * n : (i + k + 1) * n], False)


def singular_values(batch, m, n, a, s, info):
    """Write s[i], descending, of m × n matrices."""
    lanes = BYTES // a.itemsize
    group = np.empty(m * n * lanes, a.dtype)
    t, c, u, least, scales = (np.empty(lanes, a.dtype), np.empty(lanes, a.dtype), np.empty(lanes, a.dtype), np.empty(lanes, a.dtype),
                              np.empty(lanes, a.dtype))  # fmt: skip
    bad = np.empty(lanes, np.int32)
    eps = np.finfo(a.dtype).eps * a.dtype.type(max(m, n))
    least_product = eps * eps * a.dtype.type(0.01)
    count, size = (n, m) if m >= n else (m, n)  # rotated are columns, or rows where they are fewer
    step, inner = (lanes, n * lanes) if m >= n else (n * lanes, lanes)
    sums = np.empty(3 * lanes, a.dtype)
    x, y, z = sums[:lanes], sums[lanes : 2 * lanes], sums[2 * lanes :]
    norms = np.empty(count * lanes, a.dtype)
    for i in range(0, batch, lanes):
        matrices = min(lanes, batch - i)
        gather(matrices, m * n, a, i * m * n, m * n, group)
        scale(group, lanes, scales, bad)
        for _ in range(SWEEPS):
            turned = 0
            for p in range(count):
                for q in range(p + 1, count):
                    sums[:] = a.dtype.type(0)
                    for e in range(size):
                        left, right = (
                            group[p * step + e * inner : p * step + e * inner + lanes],
                            group[q * step + e * inner : q * step + e * inner + lanes],
                        )
                        for k in range(x.size):
                            x[k] += left[k] * left[k]
                            y[k] += right[k] * right[k]
                            z[k] += left[k] * right[k]
                    for k in range(least.size):
                        least[k] = max(eps * np.sqrt(x[k] * y[k]), least_product)
                    turning = angles(x, y, z, least, t, c, u)
                    turned += turning
                    if turning:
                        for e in range(size):
                            left, right = p * step + e * inner, q * step + e * inner
                            rotate(group[left : left + lanes], group[right : right + lanes], c, u)
            if not turned:
                break
        norms[:] = a.dtype.type(0)
        for p in range(count):
            total = norms[p * lanes : p * lanes + lanes]
            for e in range(size):
                left = group[p * step + e * inner : p * step + e * inner + lanes]
                for k in range(total.size):
                    total[k] += left[k] * left[k]
            for k in range(total.size):
                total[k] = np.sqrt(total[k])
        for k in range(matrices):
            info[i + k] = bad[k]
            store_sorted(norms, k, lanes, count, scales[k], s[(i + k) * count : (i + k + 1) * count], True)
