"""Least squares: QR where the matrix is surely of full rank, else LAPACK's singular values."""

from __future__ import annotations

import numpy as np
from numba.np.linalg import F_INT_nptype

from ...codegen.jit import FLOAT, LETTER, POINTER, SIZE, external, helper
from ...codegen.runtime import copy
from ..products.matmul import gemm
from .lapack import _geqrf, _orgqr, finite, kind_of, solve_triangle, transpose

_gelsd = external(  # m, n, nrhs, a, lda, b, ldb, s, rcond, rank
    "numba_ez_gelsd", LETTER, SIZE, SIZE, SIZE, POINTER, SIZE, POINTER, SIZE, POINTER, FLOAT, POINTER
)


@helper
def squares(a):
    total = 0.0
    for i in range(a.size):
        total += abs(a[i]) ** 2
    return total


@helper
def basis(m, n, rcond, a, tau, r, inverse):
    """Make of the reflections of a matrix (m × n by columns, m ≥ n), in ``a``, R in ``r``, by rows, and Q in their place.

    False, with the reflections as they were, when the matrix may be of lower rank: σₙ/σ₁ ≥ 1/(|R|·|R⁻¹|) must be greater than ``rcond``.
    """
    zero, one = a.dtype.type(0), a.dtype.type(1)
    for i in range(n):
        for j in range(n):
            r[i * n + j] = a[j * m + i] if j >= i else zero
            inverse[i * n + j] = one if i == j else zero
    solve_triangle(n, n, r, n, True, False, False, inverse)
    if not np.sqrt(squares(r) * squares(inverse)) * rcond < 0.5:
        return False
    _orgqr(kind_of(a), m, n, n, a.ctypes, m, tau.ctypes)
    return True


@helper
def qr_solve(m, n, k, rcond, a, tau, r, inverse, b, x):
    """x (n × k) = the least squares solution for b (m × k), from the reflections of a (m × n by columns, m ≥ n).

    False, with x as it was, when a may be of lower rank (see `basis`).
    """
    if not basis(m, n, rcond, a, tau, r, inverse):
        return False
    if np.iscomplexobj(a):
        for i in range(a.size):
            a[i] = a[i].conjugate()
    gemm(a, False, m, b, False, k, x, k, n, k, m, a.dtype.type(1), a.dtype.type(0))
    solve_triangle(n, k, r, n, True, False, False, x)
    return True


@helper
def short_solve(m, n, k, rcond, a, tau, r, inverse, b, y, x):
    """x (n × k) = the shortest solution for b (m × k), from the reflections of aᴴ (n × m by columns, m ≤ n): x = Q·R⁻ᴴ·b.

    False, with x as it was, when a may be of lower rank (see `basis`); ``y``: room for R⁻ᴴ·b.
    """
    if not basis(n, m, rcond, a, tau, r, inverse):
        return False
    if np.iscomplexobj(a):
        for i in range(r.size):
            r[i] = r[i].conjugate()
    copy(y, b, m * k)
    solve_triangle(m, k, r, m, True, True, False, y)
    gemm(a, True, n, y, False, k, x, k, n, k, m, a.dtype.type(1), a.dtype.type(0))
    return True


def least_squares(batch, m, n, k, rcond, values, a, b, x, s, rank):
    """x[i] (max(m, n) × k, by columns) = the shortest x that minimises |a[i]·x − b[i]|; singular values ≤ rcond·s₀ are taken as 0.

    They are found, and put into ``s``, if ``values``; else they are only looked for where a[i] may not be of full rank.
    """
    r, rows = min(m, n), max(m, n)
    scratch = np.empty(m * n, a.dtype)
    right = np.zeros(rows * k, a.dtype)
    answer = np.empty(n * k, a.dtype)
    count = np.empty(1, F_INT_nptype)
    size = 0 if values else r * r
    triangle = np.empty(size, a.dtype)
    inverse = np.empty(size, a.dtype)
    between = np.empty(m * k if m < n and not values else 0, a.dtype)
    tau = np.empty(r, a.dtype)
    for i in range(batch):
        matrix = a[i * m * n:(i + 1) * m * n]
        given = b[i * m * k:(i + 1) * m * k]
        mine = x[i * rows * k:(i + 1) * rows * k]
        if not values:
            if m < n:
                copy(scratch, matrix, m * n)
                if np.iscomplexobj(a):
                    for j in range(m * n):
                        scratch[j] = scratch[j].conjugate()
                _geqrf(kind_of(a), n, m, scratch.ctypes, n, tau.ctypes)
                found = short_solve(m, n, k, rcond, scratch, tau, triangle, inverse, given, between, answer)
            else:
                transpose(m, n, matrix, scratch)
                _geqrf(kind_of(a), m, n, scratch.ctypes, m, tau.ctypes)
                found = qr_solve(m, n, k, rcond, scratch, tau, triangle, inverse, given, answer)
            if found:
                for c in range(k):
                    for q in range(n):
                        mine[c * rows + q] = answer[q * k + c]
                rank[i] = r
                continue
        transpose(m, n, matrix, scratch)
        if not finite(scratch):
            mine[:] = a.dtype.type(np.nan)
            rank[i] = 0
            continue
        for q in range(m):
            for c in range(k):
                right[c * rows + q] = given[q * k + c]
        _gelsd(kind_of(a), m, n, k, scratch.ctypes, m, right.ctypes, rows, s[i * r:].ctypes, rcond, count.ctypes)
        copy(mine, right, mine.size)
        rank[i] = count[0]
