"""Products of matrices of floats, in blocks that stay in registers; matrices and vectors."""

from __future__ import annotations

import numpy as np

from ..codegen.jit import FREE, helper
from ..codegen.tiles import HALF, ROWS, copy_rows, multiply, multiply_whole, prefetch, turn_rows
from ..codegen.vectors import BYTES

DEEP = 512  #: terms of a product before they are added to the output
HIGH = 512  #: rows of a block: so much of a stays in the second cache
NEAR = 512  #: elements between rows of b up to which they are read where they are
FEW = 64  #: rows of a which do not pay for copying b


def matmul(batch, m, n, k, sa, a_row, a_col, sb, b_row, b_col, sc, c_row, rows, columns, add, a, b, c):
    """c[i] (m × n, rows of unit stride) = a[i] · b[i] (+ c[i] if ``add``) for i < batch; k > 0.

    ``sa``: elements from one a to the next, ``a_row``, ``a_col`` its row and column strides, and so for b, one stride of which
    is 1. ``rows`` and ``columns`` are for kernels that compute block by block.

    Every element is the sum, over blocks of `DEEP` terms, of a sum in order: the same wherever it stands.
    """
    if m == 0 or n == 0:
        return
    one = BYTES // c.itemsize
    wide = 2 * one
    direct = b_col == 1 and (b_row <= NEAR or m <= FEW)
    panel = np.empty(0 if direct else min(DEEP, k) * wide, c.dtype)
    right = b if direct else panel
    step = b_row if direct else wide
    for i in range(batch):
        for p in range(0, k, DEEP):
            deep = min(DEEP, k - p)
            more = add or p > 0
            lines, length, apart = (deep, wide, b_row) if b_col == 1 else (wide, deep, b_col)
            for r in range(0, m, HIGH):
                bottom = min(m, r + HIGH)
                share = -(-lines // -(-(bottom - r) // ROWS))
                for j in range(0, n, wide):
                    width = min(wide, n - j)
                    start = i * sb + p * b_row + j * b_col
                    ahead = start + wide * b_col
                    if not direct:
                        if b_col == 1:
                            copy_rows(deep, width, b, start, b_row, panel, 0, wide)
                        else:
                            turn_rows(width, deep, b, start, b_col, panel, 0, wide)
                        start = 0
                    for y in range(r, bottom, ROWS):
                        if j + wide < n:  # the columns of b that come next arrive while these are multiplied
                            prefetch(share, length, b, ahead, apart)
                            ahead += share * apart
                        high = min(bottom - y, ROWS)
                        x = i * sa + y * a_row + p * a_col
                        z = i * sc + y * c_row + j
                        if high == ROWS and width == wide:
                            multiply_whole(ROWS, 2, deep, a, x, a_row, a_col, right, start, step, c, z, c_row, more)
                            continue
                        for v in range(0, width, one):
                            place, last = start + v, width - v
                            if high <= HALF:
                                multiply(
                                    HALF, 1, high, last, deep, a, x, a_row, a_col, right, place, step, c, z + v, c_row, more
                                )
                            else:
                                multiply(
                                    ROWS, 1, high, last, deep, a, x, a_row, a_col, right, place, step, c, z + v, c_row, more
                                )


@helper(fastmath=FREE)
def dot(a, b):
    total = a.dtype.type(0)
    for i in range(a.size):
        total += a[i] * b[i]
    return total


@helper(fastmath=FREE)
def dots(a, step, b, out):
    """Four inner products at a time, to wait for four rows of memory at once."""
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
    """Four multiples of rows are added to ``out``."""
    n = out.size
    first, second, third, fourth = a[:n], a[step : step + n], a[2 * step : 2 * step + n], a[3 * step : 3 * step + n]
    w, x, y, z = b[0], b[1], b[2], b[3]
    for j in range(out.size):
        out[j] += w * first[j] + x * second[j] + y * third[j] + z * fourth[j]


def vector(batch, m, n, k, sa, a_row, a_col, sb, b_row, b_col, sc, c_row, rows, columns, add, a, b, c):
    """`matmul` of a matrix and a column, or of a row and a matrix; of any numbers."""
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
