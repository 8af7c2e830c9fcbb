"""Distances between rows, and their gradients. ``mode``: 0 counts what differs, 1 sums |δ|, 2 is Euclidean, 3 takes the greatest
|δ|, 4 is any other p, 5 takes the greatest |δ| of those that are not nan."""

import numpy as np

from ...codegen.elementary import norm_power
from ...codegen.jit import helper, math
from ...codegen.runtime import independent, radd
from ...codegen.vectors import one_copy


@helper
def _distance(a, b, mode, p):
    """Return the p-norm of a − b."""
    zero = a.dtype.type(0)
    total = zero
    if mode == 2:
        for k in range(a.size):
            d = a[k] - b[k]
            total = radd(total, d * d)
        return a.dtype.type(math.sqrt(total))
    if mode == 1:
        for k in range(a.size):
            total = radd(total, abs(a[k] - b[k]))
        return total
    if mode == 0:
        for k in range(a.size):
            d = a[k] - b[k]
            total = radd(total, d if d != d else a.dtype.type(d != zero))
        return total
    if mode == 3 or mode == 5:
        nan = zero
        for k in range(a.size):
            d = abs(a[k] - b[k])
            total = d if d > total else total
            nan = radd(nan, zero if d == d else d)
        return total if nan == zero or mode == 5 else total + nan
    wide = 0.0
    for k in range(a.size):
        wide = radd(wide, norm_power(abs(a[k] - b[k]), p))
    return a.dtype.type(wide ** (1.0 / p))


@helper
def _add_gradient(a, b, g, y, mode, p, out):
    """out += g · d(‖a − b‖)/da, ``y`` the norm; 0 where the norm has no derivative."""
    one_copy()
    zero = a.dtype.type(0)
    if mode == 0:
        return
    if mode == 2:
        scale = g / y if y != zero else zero
        for k in range(out.size):
            out[k] += scale * (a[k] - b[k])
        return
    if mode == 1:
        for k in range(out.size):
            independent()
            d = a[k] - b[k]
            up = g if d > zero else g * d
            out[k] += -g if d < zero else up
        return
    if mode == 3 or mode == 5:
        for k in range(out.size):
            independent()
            d = a[k] - b[k]
            less = abs(d) - y
            up = g if d > zero else g * d
            slope = -g if d < zero else up
            rest = zero if less == less else less
            out[k] += slope if less == zero else rest
        return
    if y == zero:
        return
    factor = np.float64(g) / norm_power(abs(y), p - 1.0)
    for k in range(out.size):
        independent()
        d = a[k] - b[k]
        rise = norm_power(abs(d), p - 1.0) * factor
        # (where the norm is nan, 0 is no slope)
        rise = rise if d != zero or p > 1.0 else 0.0
        out[k] += a.dtype.type(rise if d > zero else -rise)


def between(batch, n, m, width, mode, p, a, b, out):
    """out[i, r, s] = the distance of row r of a[i] (n × width) and row s of b[i] (m × width)."""
    for i in range(batch):
        for r in range(n):
            row = a[(i * n + r) * width : (i * n + r + 1) * width]
            place = out[(i * n + r) * m : (i * n + r + 1) * m]
            for s in range(m):
                place[s] = _distance(row, b[(i * m + s) * width : (i * m + s + 1) * width], mode, p)


def between_backward(batch, n, m, width, mode, p, g_r, g_s, a, b, g, y, out):
    """Write the gradient of a in `between`; ``g_r``, ``g_s`` are the steps of rows and columns in g and y."""
    for k in range(out.size):
        out[k] = a.dtype.type(0)
    for i in range(batch):
        for r in range(n):
            start = (i * n + r) * width
            for s in range(m):
                at = i * n * m + r * g_r + s * g_s
                other = (i * m + s) * width
                _add_gradient(
                    a[start : start + width], b[other : other + width], g[at], y[at], mode, p, out[start : start + width]
                )


_BLOCK = 4096  #: numbers of narrow rows that are compared together, which stay in the first cache


@helper
def _turn(rows, count, width, columns):
    """Write ``count`` rows as columns: columns[k · count + s] = rows[s, k]."""
    for k in range(width):
        for s in range(count):
            columns[k * count + s] = rows[s * width + k]


@helper
def _join(total, x, z, mode):
    """Return the sum of squares (mode 2), of sizes (mode 1) or the greatest size, with that of x − z; without branches."""
    d = x - z
    size = abs(d)
    odd = total if mode == 3 else size  # where that is nan it stays, or is passed over
    greatest = total if (size <= total) | (odd != odd) else size
    return greatest if mode > 2 else total + (d * d if mode == 2 else size)


@helper
def _join_columns(row, columns, pitch, begin, mode, sums):
    """sums[s] = the distance of a row and column ``begin`` + s, of which the numbers are ``pitch`` apart."""
    zero = sums.dtype.type(0)
    count, width = sums.size, row.size
    xs = columns[begin : begin + count]
    for s in range(count):
        sums[s] = _join(zero, row[0], xs[s], mode)
    for k in range(1, width - 1, 2):  # two at a time, as the sums are read and written each time
        x, z, xs, zs = row[k], row[k + 1], columns[k * pitch + begin :], columns[(k + 1) * pitch + begin :]
        for s in range(count):
            sums[s] = _join(_join(sums[s], x, xs[s], mode), z, zs[s], mode)
    if width % 2 == 0:
        x, xs = row[width - 1], columns[(width - 1) * pitch + begin :]
        for s in range(count):
            sums[s] = _join(sums[s], x, xs[s], mode)
    if mode == 2:
        for s in range(count):
            sums[s] = math.sqrt(sums[s])


def between_narrow(batch, n, m, width, mode, step_r, step_s, a, b, out):
    """Do what `between` does in modes 1, 2 and 5, for rows so short that vectors are better filled with several of b than with one's numbers.

    ``step_r``, ``step_s``: the steps of rows of a and of b in ``out``.
    """
    together = min(m, max(16, _BLOCK // width))
    columns, sums = np.empty(together * width, b.dtype), np.empty(together, b.dtype)
    for i in range(batch):
        for first in range(0, m, together):
            count = min(together, m - first)
            _turn(b[(i * m + first) * width :], count, width, columns)
            for r in range(n):
                row = a[(i * n + r) * width : (i * n + r + 1) * width]
                place = out[i * n * m + r * step_r + first * step_s :]
                if step_s == 1:
                    _join_columns(row, columns, count, 0, mode, place[:count])
                else:
                    _join_columns(row, columns, count, 0, mode, sums[:count])
                    for s in range(count):
                        place[s * step_s] = sums[s]


def between_narrow_backward(batch, n, m, width, mode, g_r, g_s, a, b, g, y, out):
    """Do what `between_backward` does in modes 1 and 2, as `between_narrow`."""
    together = max(1, min(m, max(16, _BLOCK // width)))
    columns, weight, norm = np.empty(together * width, b.dtype), np.empty(together, b.dtype), np.empty(together, b.dtype)
    zero = b.dtype.type(0)
    for k in range(out.size):
        out[k] = zero
    for i in range(batch):
        for first in range(0, m, together):
            count = min(together, m - first)
            _turn(b[(i * m + first) * width :], count, width, columns)
            for r in range(n):
                at = (i * n * m) + r * g_r + first * g_s
                for s in range(count):
                    weight[s], norm[s] = g[at + s * g_s], y[at + s * g_s]
                if mode == 2:
                    for s in range(count):
                        weight[s] = weight[s] / norm[s] if norm[s] != zero else zero
                for k in range((i * n + r) * width, (i * n + r + 1) * width):
                    column = columns[(k % width) * count :]
                    total = zero
                    if mode == 2:
                        for s in range(count):
                            total = radd(total, weight[s] * (a[k] - column[s]))
                    else:
                        for s in range(count):
                            w, d = weight[s], a[k] - column[s]
                            up = w if d > zero else w * d
                            total = radd(total, -w if d < zero else up)
                    out[k] += total


def within(n, width, mode, p, a, out):
    """Write the distances of all pairs of rows of a, in the order (0, 1), (0, 2), …, (1, 2), …"""
    at = 0
    for r in range(n):
        row = a[r * width : (r + 1) * width]
        for s in range(r + 1, n):
            out[at] = _distance(row, a[s * width : (s + 1) * width], mode, p)
            at += 1


def within_narrow(n, width, mode, p, a, out):
    """Do what `within` does in modes 1, 2 and 3, as `between_narrow`."""
    together = min(n, max(16, _BLOCK // width))
    columns = np.empty(together * width, a.dtype)
    for first in range(0, n, together):
        count = min(together, n - first)
        _turn(a[first * width :], count, width, columns)
        for r in range(first + count - 1):
            begin = max(r + 1 - first, 0)
            at = r * n - r * (r + 1) // 2 + first + begin - r - 1
            _join_columns(a[r * width : (r + 1) * width], columns, count, begin, mode, out[at : at + count - begin])


def within_backward(n, width, mode, p, a, g, y, out):
    """Write the gradient of `within`."""
    for k in range(out.size):
        out[k] = a.dtype.type(0)
    at = 0
    for r in range(n):
        row = a[r * width : (r + 1) * width]
        own = out[r * width : (r + 1) * width]
        for s in range(r + 1, n):
            other = a[s * width : (s + 1) * width]
            _add_gradient(row, other, g[at], y[at], mode, p, own)
            _add_gradient(other, row, g[at], y[at], mode, p, out[s * width : (s + 1) * width])
            at += 1
