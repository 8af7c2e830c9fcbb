"""Factorisations and solvers on batches of dense row-major matrices: LAPACK through Numba's own binding, loops for what is small.

LAPACK reads columns where these matrices have rows: it sees their transposes. Where that is as good (symmetric matrices; the
singular value decomposition, whose factors swap places) nothing is copied, elsewhere a matrix is transposed before. What a kernel's
text calls "by columns" is a result whose matrices stand in memory as LAPACK, and PyTorch, leave them: columns one after the other.

Every kernel loops over the batch; ``info`` receives per matrix what LAPACK reports: 0, or where it failed.
"""

from __future__ import annotations

import numpy as np
from numba.np.linalg import F_INT_nptype

from ...codegen.jit import LETTER, NO, POINTER, SIZE, YES, external, helper
from ...codegen.runtime import copy
from ...codegen.vectors import independent, one_copy, rolled
from ..products import blas
from ..products.matmul import C, D, N, S, Z, gemm

blas.lapack_ready()  # Numba's binding would import it in the midst of a kernel

# each takes the kind of numbers first
_getrf = external("numba_xxgetrf", LETTER, SIZE, SIZE, POINTER, SIZE, POINTER)  # m, n, a, lda, ipiv
_potrf = external("numba_xxpotrf", LETTER, LETTER, SIZE, POINTER, SIZE)  # uplo, n, a, lda
_geqrf = external("numba_ez_geqrf", LETTER, SIZE, SIZE, POINTER, SIZE, POINTER)  # m, n, a, lda, tau
_orgqr = external("numba_ez_xxgqr", LETTER, SIZE, SIZE, SIZE, POINTER, SIZE, POINTER)  # m, n, k, a, lda, tau
_gesdd = external(  # jobz, m, n, a, lda, s, u, ldu, vt, ldvt
    "numba_ez_gesdd", LETTER, LETTER, SIZE, SIZE, POINTER, SIZE, POINTER, POINTER, SIZE, POINTER, SIZE
)
_evd = external("numba_ez_xxxevd", LETTER, LETTER, LETTER, SIZE, POINTER, SIZE, POINTER)  # jobz, uplo, n, a, lda, w
_rgeev = external(  # jobvl, jobvr, n, a, lda, wr, wi, vl, ldvl, vr, ldvr
    "numba_ez_rgeev", LETTER, LETTER, LETTER, SIZE, POINTER, SIZE, POINTER, POINTER, POINTER, SIZE, POINTER, SIZE
)
_cgeev = external(  # as rgeev, one w
    "numba_ez_cgeev", LETTER, LETTER, LETTER, SIZE, POINTER, SIZE, POINTER, POINTER, SIZE, POINTER, SIZE
)

A, L, U, V = 65, 76, 85, 86  # 'A', 'L', 'U', 'V'
SMALL = 24  #: rows or columns up to which plain loops beat a call into LAPACK
BLOCK = 48  #: rows solved by loops before a product takes them out of the rest


@helper
def kind_of(a):
    """Return the letter by which LAPACK's binding knows the type of numbers."""
    if np.iscomplexobj(a):
        return np.uint8(C if a.itemsize == 8 else Z)
    return np.uint8(S if a.itemsize == 4 else D)


@helper
def transpose(m, n, a, out):
    """out (n × m) = aᵀ, in tiles that stay in cache."""
    for r0 in range(0, m, 32):
        r1 = min(m, r0 + 32)
        for c0 in range(0, n, 32):
            for c in range(c0, min(n, c0 + 32)):
                for r in range(r0, r1):
                    out[np.uintp(c * m + r)] = a[np.uintp(r * n + c)]


@helper
def finite(a):
    """Return whether no element is nan or infinite."""
    count = 0
    for i in range(a.size):
        count += abs(a[i]) < np.inf
    return count == a.size


# -------------------------------------------------------------------------------------------------- triangles


@helper
def divisor(a, at):
    """Return a[at], by which something is divided; of complex numbers nan for 0, which Numba refuses to divide by."""
    d = a[at]
    return a.dtype.type(np.nan) if np.iscomplexobj(d) and d == 0 else d


@helper
def solve_block(first, last, k, t, row, col, forward, unit, b):
    """Rows ``first`` to ``last`` of op(t)·x = b, which no longer depend on other rows; b becomes x."""
    one_copy()
    for step in range(last - first):
        i = first + step if forward else last - 1 - step
        mine = b[i * k:i * k + k]
        for j in range(first if forward else i + 1, i if forward else last):
            x = t[np.uintp(i * row + j * col)]
            other = b[j * k:j * k + k]
            for c in range(mine.size):
                independent()
                mine[c] -= x * other[c]
        if not unit:
            d = divisor(t, np.uintp(i * row + i * col))
            for c in range(mine.size):
                independent()
                mine[c] /= d


@helper
def solve_vector(n, t, ld, trans, forward, unit, b):
    """op(t)·x = b for one column, reading t along its rows."""
    for step in range(n):
        i = step if forward else n - 1 - step
        if trans:
            if not unit:
                b[i] /= divisor(t, np.uintp(i * ld + i))
            x = b[i]
            start, stop = (i + 1, n) if forward else (0, i)
            row = t[i * ld + start:i * ld + stop]
            rest = b[start:stop]
            for j in range(row.size):
                independent()
                rest[j] -= row[j] * x
        else:
            start, stop = (0, i) if forward else (i + 1, n)
            row = t[i * ld + start:i * ld + stop]
            done = b[start:stop]
            total = b[i]
            for j in range(row.size):
                rolled()
                total -= row[j] * done[j]
            b[i] = total if unit else total / divisor(t, np.uintp(i * ld + i))


@helper
def solve_triangle(n, k, t, ld, upper, trans, unit, b):
    """Make b (n × k) op(t)⁻¹·b, where t is a triangle (rows ``ld`` apart) and op transposes if ``trans``."""
    forward = upper == trans
    if k == 1:
        solve_vector(n, t, ld, trans, forward, unit, b)
        return
    row, col = (1, ld) if trans else (ld, 1)
    one = b.dtype.type(1)
    for start in range(0, n, BLOCK):
        if forward:
            first, last = start, min(n, start + BLOCK)
            solve_block(first, last, k, t, row, col, forward, unit, b)
            if last < n and k:
                gemm(t[last * row + first * col:], trans, ld, b[first * k:], NO, k, b[last * k:], k, n - last, k, last - first, -one, one)
        else:
            first, last = max(0, n - start - BLOCK), n - start
            solve_block(first, last, k, t, row, col, forward, unit, b)
            if first > 0 and k:
                gemm(t[first * col:], trans, ld, b[first * k:], NO, k, b, k, first, k, last - first, -one, one)


def solve_triangular(batch, n, k, upper, trans, unit, st, sb, t, b, x):
    """x[i] = op(t[i])⁻¹·b[i]; ``st``, ``sb``: elements from one t or b to the next."""
    for i in range(batch):
        mine = x[i * n * k:(i + 1) * n * k]
        copy(mine, b[i * sb:], mine.size)
        solve_triangle(n, k, t[i * st:i * st + n * n], n, upper, trans, unit, mine)


# --------------------------------------------------------------------------------------------------------- LU


@helper
def magnitude(x):
    """Return by what LAPACK chooses a row: of complex numbers the sum of both parts."""
    return abs(x.real) + abs(x.imag) if np.iscomplexobj(x) else abs(x)


@helper
def lu_loops(m, n, a, pivots):
    """Compute LU of a row-major matrix in place, with row exchanges; return the first zero on the diagonal (from 1), or 0."""
    info = 0
    for j in range(min(m, n)):
        best = j
        most = magnitude(a[j * n + j])
        for i in range(j + 1, m):
            rolled()
            x = magnitude(a[np.uintp(i * n + j)])
            if x > most:
                best, most = i, x
        pivots[j] = best + 1
        if best != j:
            swap_rows(a[j * n:j * n + n], a[best * n:best * n + n])
        d = a[np.uintp(j * n + j)]
        if d == 0:
            if info == 0:
                info = j + 1
            continue
        top = a[j * n + j + 1:j * n + n]
        for i in range(j + 1, m):
            x = a[np.uintp(i * n + j)] / d
            a[np.uintp(i * n + j)] = x
            row = a[i * n + j + 1:i * n + n]
            for c in range(row.size):
                independent()
                row[c] -= x * top[c]
    return info


@helper
def swap_rows(a, b):
    for c in range(a.size):
        rolled()
        x = a[c]
        a[c] = b[c]
        b[c] = x


@helper
def lu_one(m, n, a, lu, pivots, scratch, places):
    """Do one matrix of `lu_factor`; ``scratch`` and ``places`` hold m·n and min(m, n) elements if that is more than `SMALL`."""
    r = min(m, n)
    if r <= SMALL:
        copy(lu, a, lu.size)
        return lu_loops(m, n, lu, pivots)
    transpose(m, n, a, scratch)
    info = _getrf(kind_of(a), m, n, scratch.ctypes, m, places.ctypes)
    transpose(n, m, scratch, lu)
    for j in range(r):
        pivots[j] = places[j]
    return info


def lu_factor(batch, m, n, a, lu, pivots, info):
    """lu[i] = L and U of P·a[i] = L·U in one matrix; ``pivots`` (from 1): the row that each row was exchanged with, in turn."""
    r = min(m, n)
    scratch = np.empty(m * n if r > SMALL else 0, a.dtype)
    places = np.empty(r, F_INT_nptype)
    for i in range(batch):
        part = slice(i * m * n, (i + 1) * m * n)
        info[i] = lu_one(m, n, a[part], lu[part], pivots[i * r:i * r + r], scratch, places)


@helper
def exchange(n, k, backward, pivots, x):
    """Do the row exchanges of LU on x (n × k), from the first to the last or ``backward``."""
    for step in range(n):
        rolled()
        j = n - 1 - step if backward else step
        other = pivots[j] - 1
        if other != j:
            swap_rows(x[j * k:j * k + k], x[other * k:other * k + k])


@helper
def lu_solve_one(n, k, trans, lu, pivots, x):
    """Make x (n × k) op(a)⁻¹·x."""
    if not trans:
        exchange(n, k, trans, pivots, x)
    for part in range(2):
        lower = (part == 0) != trans
        solve_triangle(n, k, lu, n, not lower, trans, lower, x)
    if trans:
        exchange(n, k, trans, pivots, x)


def inverse(batch, n, a, out, info):
    """out[i] = a[i]⁻¹ by columns, which is the inverse of the transpose by rows."""
    lu = np.empty(n * n, a.dtype)
    scratch = np.empty(n * n if n > SMALL else 0, a.dtype)
    pivots = np.empty(n, np.int32)
    places = np.empty(n, F_INT_nptype)
    for i in range(batch):
        mine = out[i * n * n:(i + 1) * n * n]
        info[i] = lu_one(n, n, a[i * n * n:(i + 1) * n * n], lu, pivots, scratch, places)
        mine[:] = a.dtype.type(0)
        for j in range(n):
            mine[j * n + j] = a.dtype.type(1)
        lu_solve_one(n, n, YES, lu, pivots, mine)


def lu_solve(batch, n, k, trans, sl, sp, sb, lu, pivots, b, x):
    """x[i] = op(a[i])⁻¹·b[i], by columns, for the a whose factors are given; ``sl``, ``sp``, ``sb``: from one to the next of each."""
    scratch = np.empty(n * k if k > 1 else 0, x.dtype)
    for i in range(batch):
        mine = x[i * n * k:(i + 1) * n * k]
        rows = scratch if k > 1 else mine
        copy(rows, b[i * sb:], rows.size)
        lu_solve_one(n, k, trans, lu[i * sl:i * sl + n * n], pivots[i * sp:i * sp + n], rows)
        if k > 1:
            transpose(n, k, scratch, mine)


def by_columns(batch, m, n, a, out):
    """out[i] = a[i], by columns."""
    for i in range(batch):
        transpose(m, n, a[i * m * n:(i + 1) * m * n], out[i * m * n:(i + 1) * m * n])


def determinant(batch, n, lu, pivots, det):
    """Write the determinant from LU factors."""
    for i in range(batch):
        y = det.dtype.type(1)
        for j in range(n):
            d = lu[i * n * n + j * n + j]
            y *= d if pivots[i * n + j] == j + 1 else -d
        det[i] = y


def sign_and_log(batch, n, lu, pivots, sign, log):
    """det = sign·e^log from LU factors; sign 0 and log −∞ for a singular matrix."""
    for i in range(batch):
        s = sign.dtype.type(1)
        total = log.dtype.type(0)
        for j in range(n):
            d = lu[i * n * n + j * n + j]
            size = abs(d)
            total += np.log(size)
            if d != 0:
                d = d / size
            s *= d if pivots[i * n + j] == j + 1 else -d
        sign[i] = s
        log[i] = total


def permutation(batch, m, r, pivots, p):
    """p[i] (m × m) with p·l·u = a, from ``r`` row exchanges."""
    order = np.empty(m, np.int64)
    p[:] = p.dtype.type(0)
    for i in range(batch):
        for j in range(m):
            order[j] = j
        for j in range(r):
            other = pivots[i * r + j] - 1
            x = order[j]
            order[j] = order[other]
            order[other] = x
        for j in range(m):
            p[i * m * m + order[j] * m + j] = p.dtype.type(1)


# --------------------------------------------------------------------------------------------------- Cholesky


@helper
def cholesky_loops(n, a):
    """Compute the lower factor in place, row by row; return the order of the first minor that is not positive (from 1), or 0."""
    for i in range(n):
        for j in range(i + 1):
            total = a[np.uintp(i * n + j)]
            for c in range(j):
                rolled()
                total -= a[np.uintp(i * n + c)] * a[np.uintp(j * n + c)].conjugate()
            if i == j:
                d = total.real
                if not d > 0:
                    return i + 1
                a[np.uintp(i * n + i)] = np.sqrt(d)
            else:
                a[np.uintp(i * n + j)] = total / a[np.uintp(j * n + j)]
    return 0


def cholesky(batch, n, upper, a, out, info):
    """out[i] = the lower (upper) factor of a[i] by columns, of which that triangle is read; the other is set to 0."""
    zero = a.dtype.type(0)
    kind = kind_of(a)
    loops = n <= SMALL
    for i in range(batch):
        mine = out[i * n * n:(i + 1) * n * n]
        source = a[i * n * n:(i + 1) * n * n]
        if not loops:
            for c in range(n):
                for r in range(n):
                    rolled()
                    mine[c * n + r] = source[r * n + c] if (c >= r if upper else c <= r) else zero
            info[i] = _potrf(kind, np.uint8(U if upper else L), n, mine.ctypes, n)
            continue
        for r in range(n):  # the loops make a lower factor by rows
            for c in range(r + 1):
                rolled()
                mine[r * n + c] = source[c * n + r].conjugate() if upper else source[r * n + c]
        info[i] = cholesky_loops(n, mine)
        for r in range(n):
            for c in range(r):
                rolled()
                if upper:  # by columns, it is the conjugate of an upper one
                    mine[r * n + c] = mine[r * n + c].conjugate()
                    mine[c * n + r] = zero
                else:
                    mine[c * n + r] = mine[r * n + c]
                    mine[r * n + c] = zero


# ------------------------------------------------------------------------------------------------- reflections


def geqrf(batch, m, n, a, out, tau):
    """out[i] = R above, and the vectors of the reflections below the diagonal, that make a[i] triangular; by columns."""
    r = min(m, n)
    for i in range(batch):
        mine = out[i * m * n:(i + 1) * m * n]
        transpose(m, n, a[i * m * n:(i + 1) * m * n], mine)
        _geqrf(kind_of(a), m, n, mine.ctypes, m, tau[i * r:].ctypes)


@helper
def qr_of(begin, end, m, n, columns, rows, a, q, r):
    """Do `qr` of the matrices from ``begin`` to ``end``, for ``rows`` of r."""
    k = min(m, n)
    scratch = np.zeros(m * max(n, columns), a.dtype)
    tau = np.empty(k, a.dtype)
    zero = a.dtype.type(0)
    for i in range(begin, end):
        transpose(m, n, a[i * m * n:(i + 1) * m * n], scratch)
        _geqrf(kind_of(a), m, n, scratch.ctypes, m, tau.ctypes)
        for c in range(n):
            for row in range(rows):
                r[(i * n + c) * rows + row] = scratch[c * m + row] if row <= c else zero
        if columns:
            _orgqr(kind_of(a), m, columns, k, scratch.ctypes, m, tau.ctypes)
            copy(q[i * m * columns:], scratch, m * columns)


def qr(batch, m, n, columns, a, q, r):
    """a[i] = q[i]·r[i], by columns: the first ``columns`` of q, at most m, and as many rows of r; no q where ``columns`` is 0."""
    qr_of(0, batch, m, n, columns, r.size // (batch * n), a, q, r)


# ------------------------------------------------------------------------------------ eigen- and singular values


def svd(batch, m, n, job, a, u, s, vt, info):
    """a[i] = u[i]·diag(s[i])·vt[i], u and vt by columns; ``job``: "N" only s, "S" the first min(m, n) vectors, "A" all. info −1: not finite."""
    r = min(m, n)
    scratch = np.empty(m * n, a.dtype)
    columns = m if job == A else r  # of u
    rows = n if job == A else r  # of vt
    kind = kind_of(a)
    for i in range(batch):
        transpose(m, n, a[i * m * n:(i + 1) * m * n], scratch)
        if not finite(scratch):
            info[i] = -1
            continue
        start_u, start_v = (0, 0) if job == N else (i * m * columns, i * rows * n)
        info[i] = _gesdd(
            kind, np.uint8(job), m, n, scratch.ctypes, m, s[i * r:].ctypes, u[start_u:].ctypes, m, vt[start_v:].ctypes, max(rows, 1),
        )  # fmt: skip


def eigh(batch, n, vectors, upper, a, w, v, info):
    """a[i] = v[i]·diag(w[i])·v[i]ᴴ, w ascending, v by columns, for matrices given by one triangle."""
    kind = kind_of(a)
    for i in range(batch):
        mine = v[i * n * n:(i + 1) * n * n]
        copy(mine, a[i * n * n:], mine.size)
        bad = False
        for r in range(n):
            row = mine[r * n + r:r * n + n] if upper else mine[r * n:r * n + r + 1]
            bad = bad or not finite(row)
        if bad:
            info[i] = -1
            continue
        info[i] = _evd(kind, np.uint8(V if vectors else N), np.uint8(L if upper else U), n, mine.ctypes, n, w[i * n:].ctypes)
        if vectors and np.iscomplexobj(a):  # they are those of the transpose, the conjugate matrix
            for c in range(mine.size):
                mine[c] = mine[c].conjugate()


def eig(batch, n, vectors, a, w, v, info):
    """a[i]·v[i] = v[i]·diag(w[i]) for a real matrix; w and v are complex, the vectors of length 1, by columns."""
    scratch = np.empty(n * n, a.dtype)
    right = np.empty(n * n if vectors else 1, a.dtype)
    left = np.empty(1, a.dtype)
    re = np.empty(n, a.dtype)
    im = np.empty(n, a.dtype)
    job = np.uint8(V if vectors else N)
    for i in range(batch):
        transpose(n, n, a[i * n * n:(i + 1) * n * n], scratch)
        if not finite(scratch):
            info[i] = -1
            continue
        info[i] = _rgeev(
            kind_of(a), np.uint8(N), job, n, scratch.ctypes, n, re.ctypes, im.ctypes, left.ctypes, 1, right.ctypes, n if vectors else 1
        )
        for j in range(n):
            w[i * n + j] = w.dtype.type(complex(re[j], im[j]))
        if vectors:
            j = 0
            while j < n:
                pair = im[j] != 0 and j + 1 < n  # a conjugate pair's real and imaginary parts stand in two columns
                for r in range(n):
                    x = right[j * n + r]
                    y = right[(j + 1) * n + r] if pair else x * 0
                    v[(i * n + j) * n + r] = v.dtype.type(complex(x, y))
                    if pair:
                        v[(i * n + j + 1) * n + r] = v.dtype.type(complex(x, -y))
                j += 2 if pair else 1


def eig_complex(batch, n, vectors, a, w, v, info):
    """Do what `eig` does, for a complex matrix."""
    scratch = np.empty(n * n, a.dtype)
    right = np.empty(n * n if vectors else 1, a.dtype)
    left = np.empty(1, a.dtype)
    job = np.uint8(V if vectors else N)
    for i in range(batch):
        transpose(n, n, a[i * n * n:(i + 1) * n * n], scratch)
        if not finite(scratch):
            info[i] = -1
            continue
        info[i] = _cgeev(
            kind_of(a), np.uint8(N), job, n, scratch.ctypes, n, w[i * n:].ctypes, left.ctypes, 1, right.ctypes, n if vectors else 1
        )
        if vectors:
            copy(v[i * n * n:], right, n * n)
