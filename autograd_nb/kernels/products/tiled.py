"""Products of matrices of floats, in blocks that stay in registers; matrices and vectors."""

from __future__ import annotations

import numpy as np

from ...codegen.jit import FREE, helper
from ...codegen.lanes import LEFT, RIGHT, dot_tile
from ...codegen.processor import Sized
from ...codegen.tiles import BESIDE, HALF, ROWS, WIDE, copy_rows, multiply, multiply_whole, spread_rows, turn_rows
from ...codegen.vectors import BYTES, REGISTERS, rolled

#: terms of a product before they are added to the output, whose columns of b stay in the first cache; rows of a block, all of whose a stays in the second
DEEP, HIGH = (Sized(n, __name__, REGISTERS) for n in ((256, 512) if REGISTERS == 32 else (256, 240)))
#: elements between rows of b up to which they are read where they are; rows of a which do not pay for copying b
NEAR, FEW = (Sized(n, __name__, REGISTERS) for n in ((128, 8) if REGISTERS == 32 else (32, 16)))
BROAD = 8  #: panels of `DEEP` terms that are laid at a time, as rows of b are read best as they lie; of fewer terms there are more
#: terms up to which c is written row by row, as all of b is near; not where its strips are narrow
SHALLOW = Sized(32 if REGISTERS == 32 else 0, __name__, REGISTERS)


@helper(inline="always")  # a call would cost more than a small strip
def strip(m, width, k, a, at, a_row, a_col, group, b, bt, b_row, c, ct, c_row, add):
    """Some columns of a product, up to `WIDE` vectors of them: c (m × width) = a · b (+ c if ``add``), from positions on.

    ``group``: elements from `ROWS` rows of a to the next ones.
    """
    one = BYTES // c.itemsize
    for y in range(0, m, ROWS):
        high = min(m - y, ROWS)
        x, z = at + y // ROWS * group, ct + y * c_row
        if high == ROWS and width == WIDE * one:
            multiply_whole(ROWS, WIDE, k, a, x, a_row, a_col, b, bt, b_row, c, z, c_row, add)
        elif high <= HALF:
            for v in range(0, width, BESIDE * one):
                multiply(HALF, BESIDE, high, min(width - v, BESIDE * one), k, a, x, a_row, a_col, b, bt + v, b_row, c, z + v, c_row, add)
        else:
            for v in range(0, width, one):
                multiply(ROWS, 1, high, min(width - v, one), k, a, x, a_row, a_col, b, bt + v, b_row, c, z + v, c_row, add)


@helper
def lay(k, width, b, at, b_row, b_col, out):
    """Lay k × width elements of b in panels of `WIDE` vectors of columns, one panel behind another."""
    wide = WIDE * BYTES // b.itemsize
    if b_col == 1:
        whole = width // wide * wide
        spread_rows(k, width // wide, b, at, b_row, out, 0, wide * k)
        copy_rows(k, width - whole, b, at + whole, b_row, out, whole * k, wide)
    else:
        for j in range(0, width, wide):
            turn_rows(min(wide, width - j), k, b, at + j * b_col, b_col, out, j * k, wide)


@helper
def beside(m, k, a, at, a_row, a_col, out):
    """Lay m × k elements of a in groups of `ROWS` rows, term by term the elements of a group side by side."""
    for y in range(0, m, ROWS):
        if a_col == 1:
            turn_rows(min(ROWS, m - y), k, a, at + y * a_row, a_row, out, y * k, ROWS)
        else:
            copy_rows(k, min(ROWS, m - y), a, at + y * a_row, a_col, out, y * k, ROWS)


@helper(inline="always")
def tiles(batch, m, n, k, sa, a_row, a_col, group, sb, b_row, b_col, sc, c_row, add, a, b, c):
    """Do `matmul`; ``group``: elements from `ROWS` rows of a to the next ones."""
    if m == 0 or n == 0:
        return
    wide = WIDE * BYTES // c.itemsize
    direct = b_col == 1 and (b_row <= NEAR or m <= FEW)
    broad = n if direct else min(BROAD * DEEP // min(k, DEEP), -(-n // wide)) * wide
    laid = np.empty(0 if direct else min(DEEP, k) * broad, c.dtype)
    right, step = (b, b_row) if direct else (laid, wide)
    for i in range(batch):
        for p in range(0, k, DEEP):
            deep = min(DEEP, k - p)
            span = ROWS if deep <= SHALLOW else HIGH
            for q in range(0, n, broad):
                start, columns = i * sb + p * b_row + q * b_col, min(broad, n - q)
                if not direct:
                    lay(deep, columns, b, start, b_row, b_col, laid)
                    start = 0
                for r in range(0, m, span):
                    high = min(span, m - r)
                    x, z = i * sa + r // ROWS * group + p * a_col, i * sc + r * c_row + q
                    for j in range(0, columns, wide):
                        at = start + (j if direct else j * deep)
                        strip(high, min(wide, columns - j), deep, a, x, a_row, a_col, group, right, at, step, c, z + j, c_row, add or p > 0)


def matmul(batch, m, n, k, sa, a_row, a_col, sb, b_row, b_col, sc, c_row, rows, columns, add, a, b, c):
    """c[i] (m × n, rows of unit stride) = a[i] · b[i] (+ c[i] if ``add``) for i < batch; k > 0.

    ``sa``: elements from one a to the next, ``a_row``, ``a_col`` its row and column strides, and so for b, one stride of which
    is 1. ``rows`` and ``columns`` are for kernels that compute block by block.

    Every element is the sum, over blocks of `DEEP` terms, of a sum in order: the same wherever it stands.
    """
    tiles(batch, m, n, k, sa, a_row, a_col, ROWS * a_row, sb, b_row, b_col, sc, c_row, add, a, b, c)


def matmul_large(batch, m, n, k, sa, a_row, a_col, sb, b_row, b_col, sc, c_row, rows, columns, add, a, b, c):
    """Do `matmul`, bit by bit, of matrices that are worth laying rows of a side by side."""
    left = np.empty(-(-min(HIGH, m) // ROWS) * ROWS * min(DEEP, k), c.dtype)
    for i in range(batch):
        for r in range(0, m, HIGH):
            for p in range(0, k, DEEP):
                high, deep = min(HIGH, m - r), min(DEEP, k - p)
                beside(high, deep, a, i * sa + r * a_row + p * a_col, a_row, a_col, left)
                right, out = b[i * sb + p * b_row :], c[i * sc + r * c_row :]
                tiles(1, high, n, deep, 0, 1, ROWS, ROWS * deep, 0, b_row, b_col, 0, c_row, add or p > 0, left, right, out)


def matmul_few(batch, m, n, k, sa, a_row, a_col, sb, b_row, b_col, sc, c_row, rows, columns, add, a, b, c):
    """Do `matmul` of few rows of a, whose terms lie side by side as those of b's columns do: each element is the dot product of two of them."""
    lefts, rights = np.empty(-(-m // LEFT) * LEFT, np.int64), np.empty(RIGHT, np.int64)
    sums = np.empty(LEFT * RIGHT + BYTES // c.itemsize, c.dtype)
    for i in range(batch):
        for r in range(lefts.size):
            lefts[r] = min(r, m - 1) * a_row
        for j in range(0, n, RIGHT):
            width = min(RIGHT, n - j)
            for q in range(RIGHT):
                rights[q] = i * sb + (j + min(q, width - 1)) * b_col
            for r in range(0, m, LEFT):
                dot_tile(a, b, lefts, rights, sums, r, 0, i * sa, k, 0, 0, 1)
                for p in range(min(LEFT, m - r)):
                    start = i * sc + (r + p) * c_row + j
                    line, own = c[start : start + width], sums[p * RIGHT : p * RIGHT + width]
                    for q in range(line.size):
                        rolled()
                        line[q] = own[q] + (line[q] if add else 0)


if REGISTERS == 16:  # rows of a are read quickly enough once b is laid out
    matmul_large = matmul


@helper
def panels(k, n, b, transposed):
    """Lay out a matrix (k × n, or n × k if ``transposed``) for `times_panels`: worth it where several products have it as factor."""
    wide = WIDE * BYTES // b.itemsize
    out = np.empty(-(-n // wide) * wide * k, b.dtype)
    b_row, b_col = (1, k) if transposed else (n, 1)
    lay(k, n, b, 0, b_row, b_col, out)
    return out


@helper
def times_panels(m, n, k, a, b, c, add):
    """c (m × n) = a · b (+ c if ``add``) of the `panels` of b."""
    wide = WIDE * BYTES // c.itemsize
    for j in range(0, n, wide):
        strip(m, min(wide, n - j), k, a, 0, k, 1, ROWS * k, b, j * k, wide, c, j, n, add)


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
