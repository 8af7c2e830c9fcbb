"""Reductions that a fold cannot express: where the extreme is, and moving values along a dim by index.

Arrays are (outer, n, inner) in C order; an index array is (outer, k, inner) and its values are in range.
"""

import numpy as np

from ...codegen.vectors import independent, rolled

SIDE = 64  #: short rows that are looked through side by side


def find_first(outer, n, inner, x, best, index):
    """index = the first place along n where x equals ``best`` (or is nan)."""
    if inner == 1:
        for r in range(outer):
            row = x[r * n : (r + 1) * n]
            b = best[r]
            at = n
            for c in range(0, n, 64):
                part = row[c : c + 64]
                hit = False
                for i in range(part.size):
                    hit |= (part[i] == b) | (part[i] != part[i])
                if hit:
                    for i in range(part.size):
                        if part[i] == b or part[i] != part[i]:
                            at = c + i
                            break
                    break
            index[r] = at
        return
    for r in range(outer):
        wanted = best[r * inner : (r + 1) * inner]
        found = index[r * inner : (r + 1) * inner]
        for j in range(n - 1, -1, -1):
            row = x[(r * n + j) * inner : (r * n + j + 1) * inner]
            for i in range(row.size):
                v = row[i]
                found[i] = j if (v == wanted[i]) | (v != v) else found[i]


def short_extremes(outer, n, least, x, best, index):
    """Write the extreme (the ``least`` or the largest, or nan) of each short row, and its first place; many rows side by side."""
    for first in range(0, outer, SIDE):
        rows = min(SIDE, outer - first)
        b = best[first : first + rows]
        at = index[first : first + rows]
        for r in range(rows):
            independent()
            b[r] = x[(first + r) * n]
            at[r] = 0
        for i in range(1, n):
            for r in range(rows):
                independent()
                v = x[(first + r) * n + i]
                m = b[r]
                better = (((v < m) if least else (v > m)) | (v != v)) & (m == m)
                b[r] = v if better else m
                at[r] = i if better else at[r]


def take_along(outer, n, inner, k, x, index, out):
    """out[r, j, i] = x[r, index[r, j, i], i]."""
    if inner == 1:
        for r in range(outer):
            source = x[r * n : (r + 1) * n]
            for j in range(r * k, (r + 1) * k):
                rolled()
                out[np.uintp(j)] = source[np.uintp(index[np.uintp(j)])]
        return
    for r in range(outer):
        source = x[r * n * inner : (r + 1) * n * inner]
        for j in range(k):
            at = (r * k + j) * inner
            line = index[at : at + inner]
            row = out[at : at + inner]
            for i in range(row.size):
                rolled()
                row[i] = source[np.uintp(line[i] * inner + i)]


def put_along(outer, n, inner, k, g, index, out):
    """out = 0, then out[r, index[r, j, i], i] += g[r, j, i]."""
    for i in range(out.size):
        out[i] = 0
    if inner == 1:
        for r in range(outer):
            target = out[r * n : (r + 1) * n]
            for j in range(r * k, (r + 1) * k):
                target[np.uintp(index[np.uintp(j)])] += g[np.uintp(j)]
        return
    for r in range(outer):
        target = out[r * n * inner : (r + 1) * n * inner]
        for j in range(k):
            at = (r * k + j) * inner
            line = index[at : at + inner]
            row = g[at : at + inner]
            for i in range(row.size):
                target[np.uintp(line[i] * inner + i)] += row[i]


def first_outside(n, ignore, index, out):
    """out[0] = where the first index outside [0, n) is (``ignore`` is allowed), -1 for none;
    out[1] = how many are ``ignore``."""
    out[0] = -1
    out[1] = 0
    for i in range(index.size):
        v = index[i]
        if v == ignore:
            out[1] += 1
        elif v < 0 or v >= n:
            out[0] = i
            return
