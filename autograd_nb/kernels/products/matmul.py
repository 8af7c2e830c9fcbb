"""BLAS through Numba's own binding, and matrix products of complex numbers (by BLAS) and of integers (by loops)."""

from __future__ import annotations

import numpy as np

from ...codegen.jit import LETTER, POINTER, SIZE, external, helper
from . import blas

# int numba_xxgemm(kind, transa, transb, m, n, k, alpha*, a*, lda, b*, ldb, beta*, c*, ldc): column-major GEMM of SciPy's BLAS
_xxgemm = external(
    "numba_xxgemm", LETTER, LETTER, LETTER, SIZE, SIZE, SIZE, POINTER, POINTER, SIZE, POINTER, SIZE, POINTER, POINTER, SIZE
)


blas.ready()

N, T, S, D, C, Z = 78, 84, 115, 100, 99, 122  # 'N', 'T', 's', 'd', 'c', 'z'
SMALL = 2048  #: multiplications below which the call into BLAS costs more than the loops


@helper
def need(array, rows, columns, ld, itemsize):
    """Raise IndexError unless ``array`` has so many rows, which stand ``ld`` apart, of elements of this size: BLAS would not notice."""
    last = (np.float64(rows) - 1.0) * np.float64(ld) + np.float64(columns)
    if rows > 0 and columns > 0 and (ld < columns or last > np.float64(array.size) or array.itemsize != itemsize):
        raise IndexError("a matrix reaches beyond its memory")


@helper
def called(failed):
    """Raise RuntimeError where BLAS could not be called."""
    if failed != 0:
        raise RuntimeError("BLAS could not be called for a matrix product")


@helper
def gemm(a, ta, lda, b, tb, ldb, c, ldc, m, n, k, alpha, beta):
    """Row-major c (m × n) = alpha · op(a) · op(b) + beta · c; ``ta`` says that a is stored transposed. m, n, k > 0."""
    need(a, k if ta else m, m if ta else k, lda, c.itemsize)
    need(b, n if tb else k, k if tb else n, ldb, c.itemsize)
    need(c, m, n, ldc, c.itemsize)
    kind = (C if c.itemsize == 8 else Z) if np.iscomplexobj(c) else S if c.itemsize == 4 else D
    scales = np.empty(2, dtype=c.dtype)
    scales[0] = alpha
    scales[1] = beta
    # a row-major matrix is its transpose in column-major order: c' = b' a'
    called(_xxgemm(
        np.uint8(kind), np.uint8(T if tb else N), np.uint8(T if ta else N), n, m, k,
        scales.ctypes, b.ctypes, ldb, a.ctypes, lda, scales[1:].ctypes, c.ctypes, ldc,
    ))  # fmt: skip


def matmul(batch, m, n, k, sa, a_row, a_col, sb, b_row, b_col, sc, c_row, rows, columns, add, a, b, c):
    """Do `tiled.matmul` for what it does not know: complex numbers, integers, and sums of no terms."""
    if m == 0 or n == 0:
        return
    one = c.dtype.type(1)
    zero = c.dtype.type(0)
    if np.iscomplexobj(c) and m * n * k >= SMALL:
        ta, tb = a_col != 1, b_col != 1
        # a matrix of one row or column has any leading dimension; BLAS wants one that fits
        lda = max(a_row, k) if not ta else max(a_col, m)
        ldb = max(b_row, n) if not tb else max(b_col, k)
        beta = one if add else zero
        for i in range(batch):
            for r in range(0, m, rows):
                for s in range(0, n, columns):
                    gemm(
                        a[i * sa + r * a_row:], ta, lda, b[i * sb + s * b_col:], tb, ldb, c[i * sc + r * c_row + s:], c_row,
                        min(rows, m - r), min(columns, n - s), k, one, beta,
                    )  # fmt: skip
        return
    for i in range(batch):
        for r in range(m):
            row = c[i * sc + r * c_row:i * sc + r * c_row + n]
            if not add:
                for j in range(row.size):
                    row[j] = zero
            for p in range(k):
                x = a[i * sa + r * a_row + p * a_col]
                start = i * sb + p * b_row
                if b_col == 1:
                    other = b[start:start + n]
                    for j in range(row.size):
                        row[j] += x * other[j]
                else:
                    for j in range(row.size):
                        row[j] += x * b[np.uintp(start + j * b_col)]


def fill_rows(rows, bias, out):
    """Make every row of ``out`` ``bias`` (whose array may be longer)."""
    n = out.size // max(rows, 1)
    for r in range(rows):
        row = out[r * n:r * n + n]
        for j in range(row.size):
            row[j] = bias[j]
