"""Products of matrices of floats, in blocks that stay in registers; matrices and vectors."""

from __future__ import annotations

import numpy as np

from ..codegen.jit import FREE, helper
from ..codegen.tiles import HALF, ROWS, copy_rows, fetch, multiply, multiply_whole, turn_rows
from ..codegen.vectors import BYTES

DEEP = 256  #: terms of a product before they are added to the output: a panel of so many rows stays in the first cache
NEAR = 512  #: elements between rows of b up to which they are read where they are
HIGH = 256  #: rows of a block: so much of a stays in the second cache
FAR = 1 << 20  #: multiplications from which it pays to read operands beforehand
FEW = 64  #: rows of a which do not pay for copying b


def matmul(batch, m, n, k, sa, a_row, a_col, sb, b_row, b_col, sc, c_row, rows, columns, add, a, b, c):
    """c[i] (m × n, rows of unit stride) = a[i] · b[i] (+ c[i] if ``add``) for i < batch; k > 0.

    ``sa``: elements from one a to the next, ``a_row``, ``a_col`` its row and column strides, and so for b, one stride of which
    is 1. Blocks of c of up to ``rows`` × ``columns`` are computed one after the other.

    Every element is the sum, over blocks of `DEEP` terms, of a sum in order: the same wherever it stands.
    """
    if m == 0 or n == 0:
        return
    one = BYTES // c.itemsize
    wide = 2 * one
    direct = b_col == 1 and (b_row <= NEAR or m <= FEW)
    panel = np.empty(0 if direct else DEEP * wide, c.dtype)
    right = b if direct else panel
    step = b_row if direct else wide
    rows = min(rows, HIGH)
    far = m * n * k >= FAR
    for i in range(batch):
        for s in range(0, n, columns):
            for p in range(0, k, DEEP):
                deep = min(DEEP, k - p)
                if far:
                    broad = min(columns, n - s)
                    start = i * sb + p * b_row + s * b_col
                    fetch(
                        deep if b_col == 1 else broad, broad if b_col == 1 else deep, b, start, b_row if b_col == 1 else b_col
                    )
                for r in range(0, m, rows):
                    bottom = min(m, r + rows)
                    if far:
                        high = bottom - r
                        start = i * sa + r * a_row + p * a_col
                        if a_col != 1:
                            fetch(deep, high, a, start, a_col)
                        elif a_row == deep:  # (parts of rows come by themselves)
                            fetch(1, high * deep, a, start, 0)
                    for j in range(s, min(n, s + columns), wide):
                        width = min(wide, n - j, s + columns - j)
                        start = i * sb + p * b_row + j * b_col
                        if not direct:
                            if b_col == 1:
                                copy_rows(deep, width, b, start, b_row, panel, 0, wide)
                            else:
                                turn_rows(width, deep, b, start, b_col, panel, 0, wide)
                            start = 0
                        y = r
                        while y < bottom:
                            x = i * sa + y * a_row + p * a_col
                            z = i * sc + y * c_row + j
                            high = bottom - y
                            if high >= ROWS and width == wide:
                                high = ROWS
                                multiply_whole(ROWS, 2, deep, a, x, a_row, a_col, right, start, step, c, z, c_row, add or p > 0)
                            else:
                                high = min(high, ROWS)
                                for v in range(0, width, one):
                                    place, last = start + v, width - v
                                    if high <= HALF:
                                        multiply(
                                            HALF, 1, high, last, deep, a, x, a_row, a_col, right, place, step, c, z + v, c_row, add or p > 0
                                        )  # fmt: skip
                                    else:
                                        multiply(
                                            ROWS, 1, high, last, deep, a, x, a_row, a_col, right, place, step, c, z + v, c_row, add or p > 0
                                        )  # fmt: skip
                            y += high


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
