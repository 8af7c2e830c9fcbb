"""Products of matrices of floats, in blocks that stay in registers; matrices and vectors."""

from __future__ import annotations

import numpy as np

from ...codegen.jit import FREE, helper
from ...codegen.processor import Sized
from ...codegen.tiles import BESIDE, HALF, ROWS, WIDE, copy_rows, multiply, multiply_whole, prefetch, turn_rows
from ...codegen.vectors import BYTES, REGISTERS

#: terms of a product before they are added to the output, whose columns of b stay in the first cache; rows of a block, all of whose a stays in the second
DEEP, HIGH = (Sized(n, __name__, REGISTERS) for n in ((256, 512) if REGISTERS == 32 else (256, 240)))
#: elements between rows of b up to which they are read where they are; rows of a which do not pay for copying b
NEAR, FEW = (Sized(n, __name__, REGISTERS) for n in ((128, 64) if REGISTERS == 32 else (32, 16)))
GROUP = Sized(16 if REGISTERS == 32 else ROWS, __name__, ROWS)  #: rows of a that are laid side by side before they are multiplied, if they are
SOME = Sized(4 * ROWS, __name__, ROWS)  #: rows of a during whose products memory is worth asking for


@helper(inline="always")  # a call would cost more than a small strip
def strip(m, width, k, a, at, a_row, a_col, group, b, bt, b_row, c, ct, c_row, add, after, ahead, share, length, apart):
    """Some columns of a product, up to `WIDE` vectors of them: c (m × width) = a · b (+ c if ``add``), from positions on.

    ``group``: elements from `GROUP` rows of a to the next ones.
    Meanwhile what is read ``after`` it arrives, from ``ahead`` on: for each block ``share`` lines of ``length`` elements which
    stand ``apart``.
    """
    one = BYTES // c.itemsize
    for y in range(0, m, ROWS):
        if share:
            prefetch(share, length, after, ahead, apart)
            ahead += share * apart
        high = min(m - y, ROWS)
        x, z = at + y // GROUP * group + y % GROUP * a_row, ct + y * c_row
        if high == ROWS and width == WIDE * one:
            multiply_whole(ROWS, WIDE, k, a, x, a_row, a_col, b, bt, b_row, c, z, c_row, add)
        elif high <= HALF:
            for v in range(0, width, BESIDE * one):
                multiply(HALF, BESIDE, high, min(width - v, BESIDE * one), k, a, x, a_row, a_col, b, bt + v, b_row, c, z + v, c_row, add)
        else:
            for v in range(0, width, one):
                multiply(ROWS, 1, high, min(width - v, one), k, a, x, a_row, a_col, b, bt + v, b_row, c, z + v, c_row, add)


@helper
def lay(k, width, b, at, b_row, b_col, panel, pt, wide):
    """Lay k × width elements of b in rows of a panel which stand ``wide`` apart."""
    if b_col == 1:
        copy_rows(k, width, b, at, b_row, panel, pt, wide)
    else:
        turn_rows(width, k, b, at, b_col, panel, pt, wide)


@helper
def beside(m, k, a, at, a_row, a_col, out):
    """Lay m × k elements of a in groups of `GROUP` rows, term by term the elements of a group side by side."""
    for y in range(0, m, GROUP):
        if a_col == 1:
            turn_rows(min(GROUP, m - y), k, a, at + y * a_row, a_row, out, y * k, GROUP)
        else:
            copy_rows(k, min(GROUP, m - y), a, at + y * a_row, a_col, out, y * k, GROUP)


@helper(inline="always")
def tiles(batch, m, n, k, sa, a_row, a_col, group, sb, b_row, b_col, sc, c_row, add, a, b, c):
    """Do `matmul`; ``group``: elements from `GROUP` rows of a to the next ones."""
    if m == 0 or n == 0:
        return
    wide = WIDE * BYTES // c.itemsize
    direct = b_col == 1 and (b_row <= NEAR or m <= FEW)
    panel = np.empty(0 if direct else min(DEEP, k) * wide, c.dtype)
    right, step = (b, b_row) if direct else (panel, wide)
    for i in range(batch):
        for p in range(0, k, DEEP):
            deep = min(DEEP, k - p)
            more = add or p > 0
            lines, length, apart = (deep, wide, b_row) if b_col == 1 else (wide, deep, b_col)
            for r in range(0, m, HIGH):
                high = min(HIGH, m - r)
                share = -(-lines // -(-high // ROWS)) if high >= SOME else 0
                x, z = i * sa + r // GROUP * group + p * a_col, i * sc + r * c_row
                for j in range(0, n, wide):
                    width = min(wide, n - j)
                    start = i * sb + p * b_row + j * b_col
                    ahead = start + wide * b_col
                    part = share if j + wide < n else 0
                    if not direct:
                        lay(deep, width, b, start, b_row, b_col, panel, 0, wide)
                        start = 0
                    strip(
                        high, width, deep, a, x, a_row, a_col, group, right, start, step, c, z + j, c_row, more, b, ahead, part, length, apart
                    )  # fmt: skip


def matmul(batch, m, n, k, sa, a_row, a_col, sb, b_row, b_col, sc, c_row, rows, columns, add, a, b, c):
    """c[i] (m × n, rows of unit stride) = a[i] · b[i] (+ c[i] if ``add``) for i < batch; k > 0.

    ``sa``: elements from one a to the next, ``a_row``, ``a_col`` its row and column strides, and so for b, one stride of which
    is 1. ``rows`` and ``columns`` are for kernels that compute block by block.

    Every element is the sum, over blocks of `DEEP` terms, of a sum in order: the same wherever it stands.
    """
    tiles(batch, m, n, k, sa, a_row, a_col, GROUP * a_row, sb, b_row, b_col, sc, c_row, add, a, b, c)


def matmul_large(batch, m, n, k, sa, a_row, a_col, sb, b_row, b_col, sc, c_row, rows, columns, add, a, b, c):
    """Do `matmul`, bit by bit, of matrices that are worth laying rows of a side by side."""
    left = np.empty(-(-min(HIGH, m) // GROUP) * GROUP * k, c.dtype)
    for i in range(batch):
        for r in range(0, m, HIGH):
            high = min(HIGH, m - r)
            beside(high, k, a, i * sa + r * a_row, a_row, a_col, left)
            tiles(1, high, n, k, 0, 1, GROUP, GROUP * k, 0, b_row, b_col, 0, c_row, add, left, b[i * sb :], c[i * sc + r * c_row :])


if REGISTERS == 16:  # rows of a are read quickly enough once b is laid out
    matmul_large = matmul


@helper
def panels(k, n, b, transposed):
    """Lay out a matrix (k × n, or n × k if ``transposed``) for `times_panels`: worth it where several products have it as factor."""
    wide = WIDE * BYTES // b.itemsize
    out = np.empty(-(-n // wide) * wide * k, b.dtype)
    b_row, b_col = (1, k) if transposed else (n, 1)
    for j in range(0, n, wide):
        lay(k, min(wide, n - j), b, j * b_col, b_row, b_col, out, j * k, wide)
    return out


@helper
def times_panels(m, n, k, a, b, c, add):
    """c (m × n) = a · b (+ c if ``add``) of the `panels` of b."""
    wide = WIDE * BYTES // c.itemsize
    for j in range(0, n, wide):
        strip(m, min(wide, n - j), k, a, 0, k, 1, GROUP * k, b, j * k, wide, c, j, n, add, b, 0, 0, 0, 0)


@helper(fastmath=FREE)
def dot(a, b):
    total = a.dtype.type(0)
    for i in range(a.size):
        total += a[i] * b[i]
    return total


@helper(fastmath=FREE)
def dots(a, step, b, out):
    """Compute four inner products at a time, to wait for four rows of memory at once."""
    w = x = y = z = b.dtype.type(0)
    first, second, third, fourth = (
        a[: b.size],
        a[step : step + b.size],
        a[2 * step : 2 * step + b.size],
        a[3 * step : 3 * step + b.size],
    )
    for i in range(b.size):
        w += first[i] * b[i]
        x += second[i] * b[i]
        y += third[i] * b[i]
        z += fourth[i] * b[i]
    out[0] += w
    out[1] += x
    out[2] += y
    out[3] += z


@helper
def add_rows(a, step, b, out):
    """Add four multiples of rows to ``out``."""
    n = out.size
    first, second, third, fourth = a[:n], a[step : step + n], a[2 * step : 2 * step + n], a[3 * step : 3 * step + n]
    w, x, y, z = b[0], b[1], b[2], b[3]
    for j in range(out.size):
        out[j] += w * first[j] + x * second[j] + y * third[j] + z * fourth[j]


def vector(batch, m, n, k, sa, a_row, a_col, sb, b_row, b_col, sc, c_row, rows, columns, add, a, b, c):
    """Do `matmul` of a matrix and a column, or of a row and a matrix; of any numbers."""
    if m == 0 or n == 0:
        return
    if n != 1:  # y = x·b is yᵀ = bᵀ·xᵀ
        sa, sb, a, b = sb, sa, b, a
        m, a_row, a_col, b_row = n, b_col, b_row, a_col
    own = np.empty(k if b_row != 1 else 0, b.dtype)
    for i in range(batch):
        out = c[i * sc : i * sc + m]
        if not add:
            for j in range(out.size):
                out[j] = c.dtype.type(0)
        x = own
        if b_row == 1:
            x = b[i * sb : i * sb + k]
        else:
            for p in range(own.size):
                own[p] = b[np.uintp(i * sb + p * b_row)]
        start = i * sa
        if a_col == 1:
            for r in range(0, m - 3, 4):
                dots(a[start + r * a_row :], a_row, x, out[r : r + 4])
            for r in range(m // 4 * 4, m):
                out[r] += dot(a[start + r * a_row : start + r * a_row + k], x)
        else:
            for p in range(0, k - 3, 4):
                add_rows(a[start + p * a_col :], a_col, x[p : p + 4], out)
            for p in range(k // 4 * 4, k):
                row = a[start + p * a_col : start + p * a_col + m]
                for j in range(out.size):
                    out[j] += x[p] * row[j]
