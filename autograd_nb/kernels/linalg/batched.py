"""Factorisations of many small real matrices at once: as many as a vector has lanes, one in each.

The matrices of a group stand element by element next to one another, so that each step is one on vectors; where the matrices
differ in what they do (rows exchanged), a step selects. The steps of each are those of the loops in `lapack`.
"""

from __future__ import annotations

import numpy as np

from ...codegen.jit import helper
from ...codegen.tiles import turn_rows
from ...codegen.vectors import BYTES, independent, rolled
from .lapack import qr_of as by_lapack


@helper
def gather(matrices, size, a, start, step, group):
    """Copy ``matrices`` of ``size`` elements, ``step`` apart, into the lanes of a group; lanes that are left hold the first once more."""
    lanes = BYTES // a.itemsize
    if step == size or (step == 0 and matrices == 1):
        turn_rows(matrices, size, a, start, size, group, 0, lanes)
        rest = matrices
    else:
        rest = 1
        turn_rows(1, size, a, start, size, group, 0, lanes)
    for e in range(size):
        own = group[e * lanes : e * lanes + lanes]
        for k in range(rest, lanes):
            own[k] = own[0]


@helper
def exchange(n, who, row, x, y, lanes):
    """Swap rows x and y, of n elements, in the lanes whose ``who`` is ``row``."""
    hits = 0
    for k in range(who.size):
        hits += who[k] == row
    if not hits:
        return
    for c in range(n):
        p = x[c * lanes : c * lanes + who.size]
        q = y[c * lanes : c * lanes + who.size]
        for k in range(who.size):
            here, there = p[k], q[k]
            swap = who[k] == row
            p[k] = there if swap else here
            q[k] = here if swap else there


@helper
def subtract(x, y, z):
    """x -= y·z"""
    for k in range(x.size):
        x[k] -= y[k] * z[k]


@helper
def lu_group(n, a, pivots, info, who, best):
    """Compute LU of a group's n × n matrices in place; ``pivots`` (n × lanes) from 0, ``info`` as LAPACK's."""
    lanes = info.size
    row = n * lanes
    for k in range(info.size):
        info[k] = 0
    for j in range(n):
        top = a[j * row : j * row + row]
        d = top[j * lanes : j * lanes + lanes]
        for k in range(who.size):
            best[k] = abs(d[k])
            who[k] = j
        for i in range(j + 1, n):
            start = i * row + j * lanes
            x = a[start : start + lanes]
            for k in range(who.size):
                size = abs(x[k])
                more = size > best[k]
                best[k] = size if more else best[k]
                who[k] = i if more else who[k]
        mine = pivots[j * lanes : j * lanes + lanes]
        for k in range(who.size):
            mine[k] = who[k]
        for i in range(j + 1, n):
            exchange(n, who, i, top, a[i * row :], lanes)
        for k in range(who.size):
            info[k] = j + 1 if d[k] == 0 and info[k] == 0 else info[k]
        for i in range(j + 1, n):
            own = a[i * row : i * row + row]
            x = own[j * lanes : j * lanes + lanes]
            for k in range(who.size):
                x[k] = x[k] / d[k] if d[k] != 0 else x[k]
            for c in range(j + 1, n):
                y = own[c * lanes : c * lanes + lanes]
                z = top[c * lanes : c * lanes + lanes]
                for k in range(y.size):
                    y[k] = y[k] - x[k] * z[k] if d[k] != 0 else y[k]


@helper
def solve_group(n, columns, trans, lu, pivots, x, lanes):
    """Make x (n × columns in each lane) op(a)⁻¹·x, from the factors of a."""
    row, line = n * lanes, columns * lanes
    if not trans:
        for j in range(n):
            for i in range(j + 1, n):
                exchange(columns, pivots[j * lanes : j * lanes + lanes], i, x[j * line :], x[i * line :], lanes)
    for forward in (True, False):
        for step in range(n):
            i = step if forward else n - 1 - step
            for j in range(i) if forward else range(i + 1, n):
                place = j * row + i * lanes if trans else i * row + j * lanes
                t = lu[place : place + lanes]
                for c in range(columns):
                    mine = i * line + c * lanes
                    other = j * line + c * lanes
                    subtract(x[mine : mine + lanes], t, x[other : other + lanes])
            if forward == trans:
                d = lu[i * row + i * lanes : i * row + i * lanes + lanes]
                for c in range(columns):
                    mine = x[i * line + c * lanes : i * line + c * lanes + lanes]
                    for k in range(mine.size):
                        mine[k] /= d[k]
    if trans:
        for step in range(n):
            j = n - 1 - step
            for i in range(j + 1, n):
                exchange(columns, pivots[j * lanes : j * lanes + lanes], i, x[j * line :], x[i * line :], lanes)


def lu_factor(batch, m, n, a, lu, pivots, info):
    """Do what `lapack.lu_factor` does, of square matrices."""
    lanes = BYTES // a.itemsize
    group = np.empty(n * n * lanes, a.dtype)
    places = np.empty(n * lanes, np.int32)
    bad, who, best = np.empty(lanes, np.int32), np.empty(lanes, np.int32), np.empty(lanes, a.dtype)
    for i in range(0, batch, lanes):
        count = min(lanes, batch - i)
        gather(count, n * n, a, i * n * n, n * n, group)
        lu_group(n, group, places, bad, who, best)
        turn_rows(n * n, count, group, 0, lanes, lu, i * n * n, n * n)
        for k in range(count):
            info[i + k] = bad[k]
            for j in range(n):
                pivots[(i + k) * n + j] = places[j * lanes + k] + 1


def lu_solve(batch, n, columns, trans, sl, sp, sb, lu, pivots, b, x):
    """Do what `lapack.lu_solve` does."""
    lanes = BYTES // b.itemsize
    group, right = np.empty(n * n * lanes, b.dtype), np.empty(n * columns * lanes, b.dtype)
    turned = np.empty(n * columns * lanes, b.dtype)
    places = np.empty(n * lanes, np.int32)
    for i in range(0, batch, lanes):
        count = min(lanes, batch - i)
        if sl or i == 0:
            gather(count, n * n, lu, i * sl, sl, group)
        for k in range(lanes):
            start = (i + min(k, count - 1)) * sp
            for j in range(n):
                places[j * lanes + k] = pivots[start + j] - 1
        gather(count, n * columns, b, i * sb, sb, right)
        solve_group(n, columns, trans, group, places, right, lanes)
        for r in range(n):
            for c in range(columns):
                to, come = (c * n + r) * lanes, (r * columns + c) * lanes
                turned[to : to + lanes] = right[come : come + lanes]
        turn_rows(n * columns, count, turned, 0, lanes, x, i * n * columns, n * columns)


def inverse(batch, n, a, out, info):
    """Do what `lapack.inverse` does."""
    lanes = BYTES // a.itemsize
    group, right = np.empty(n * n * lanes, a.dtype), np.empty(n * n * lanes, a.dtype)
    places = np.empty(n * lanes, np.int32)
    bad, who, best = np.empty(lanes, np.int32), np.empty(lanes, np.int32), np.empty(lanes, a.dtype)
    for i in range(0, batch, lanes):
        count = min(lanes, batch - i)
        gather(count, n * n, a, i * n * n, n * n, group)
        lu_group(n, group, places, bad, who, best)
        right[:] = a.dtype.type(0)
        for j in range(n):
            one = right[(j * n + j) * lanes : (j * n + j + 1) * lanes]
            for k in range(one.size):
                one[k] = a.dtype.type(1)
        solve_group(n, n, True, group, places, right, lanes)
        turn_rows(n * n, count, right, 0, lanes, out, i * n * n, n * n)
        for k in range(count):
            info[i + k] = bad[k]


# ------------------------------------------------------------------------------------------------- reflections


@helper(shared=True)
def reflect(m, j, n, w, tau, x, width, begin, d):
    """x[j:, c] -= tau·v·(vᵀ·x[j:, c]) for begin ≤ c < width: v is column j of w (m × n) below the diagonal, and 1 on it."""
    lanes = BYTES // d.itemsize
    for c in range(begin, width):
        top = np.uintp((j * width + c) * lanes)
        for k in range(lanes):
            independent()
            d[k] = x[top + np.uintp(k)]
        for i in range(j + 1, m):
            v, y = np.uintp((i * n + j) * lanes), np.uintp((i * width + c) * lanes)
            for k in range(lanes):
                independent()
                d[k] += w[v + np.uintp(k)] * x[y + np.uintp(k)]
        for k in range(lanes):
            independent()
            d[k] *= tau[np.uintp(j * lanes + k)]
            x[top + np.uintp(k)] -= d[k]
        for i in range(j + 1, m):
            v, y = np.uintp((i * n + j) * lanes), np.uintp((i * width + c) * lanes)
            for k in range(lanes):
                independent()
                x[y + np.uintp(k)] -= d[k] * w[v + np.uintp(k)]


@helper
def reflections(m, n, w, tau, d, squares, sizes, failed):
    """Make the matrices of a group triangular, LAPACK's way; failed[lane]: sums of squares left float64's range."""
    lanes, one = BYTES // d.itemsize, w.dtype.type(1)
    for k in range(lanes):
        rolled()
        failed[k] = False
    for j in range(min(m, n)):
        for k in range(lanes):
            rolled()
            squares[k], sizes[k] = 0, 0
        for i in range(j + 1, m):
            for k in range(lanes):
                independent()
                x = np.float64(w[np.uintp((i * n + j) * lanes + k)])
                squares[k] += x * x
                sizes[k] += abs(x)
        for k in range(lanes):
            independent()
            at = np.uintp((j * n + j) * lanes + k)
            alpha = np.float64(w[at])
            total = squares[k] + alpha * alpha
            flat = sizes[k] == 0
            failed[k] |= not (flat or 1e-280 < total < 1e280) or alpha != alpha
            size = np.sqrt(total)
            beta = alpha if flat else size if alpha < 0 else -size
            tau[np.uintp(j * lanes + k)] = 0 if flat else (beta - alpha) / beta
            w[at] = beta
            d[k] = one if flat else one / (alpha - beta)
        for i in range(j + 1, m):
            for k in range(lanes):
                independent()
                w[np.uintp((i * n + j) * lanes + k)] *= d[k]
        reflect(m, j, n, w, tau, w, n, j + 1, d)


def qr(batch, m, n, columns, a, q, r):
    """Do `lapack.qr` of real matrices."""
    lanes = BYTES // a.itemsize
    reflected, rows = min(m, n), r.size // (batch * n)
    w, x = np.empty(m * n * lanes, a.dtype), np.empty(m * columns * lanes, a.dtype)
    tau, d = np.empty(reflected * lanes, a.dtype), np.empty(lanes, a.dtype)
    squares, sizes, failed = np.empty(lanes, np.float64), np.empty(lanes, np.float64), np.empty(lanes, np.bool_)
    zero = a.dtype.type(0)
    for first in range(0, batch, lanes):
        some = min(lanes, batch - first)
        for e in range(m * n):
            for k in range(lanes):  # not `gather`, half of whose kernel it would be
                rolled()
                w[np.uintp(e * lanes + k)] = a[np.uintp((first + min(k, some - 1)) * m * n + e)]
        reflections(m, n, w, tau, d, squares, sizes, failed)
        for k in range(some):
            for c in range(n):
                for row in range(rows):
                    rolled()
                    r[np.uintp(((first + k) * n + c) * rows + row)] = w[np.uintp((row * n + c) * lanes + k)] if row <= c else zero
        if columns:
            for e in range(m * columns):
                for k in range(lanes):
                    independent()
                    x[np.uintp(e * lanes + k)] = a.dtype.type(e // columns == e % columns)
            for j in range(reflected - 1, -1, -1):
                reflect(m, j, n, w, tau, x, columns, j, d)
            for k in range(some):
                for c in range(columns):
                    for row in range(m):
                        rolled()
                        q[np.uintp(((first + k) * columns + c) * m + row)] = x[np.uintp((row * columns + c) * lanes + k)]
        for k in range(some):
            rolled()
            if failed[k]:
                i = first + k
                by_lapack(i, i + 1, m, n, columns, rows, a, q, r)
