"""Bags of table rows. Sample i takes row ``index[i]`` of w into bag ``bag[i]`` with factor coef[i] · s[i] (s may be empty: ones).

The three products are the partial derivatives of one form, Σᵢ coefᵢ · sᵢ · ⟨w[indexᵢ], g[bagᵢ]⟩.
"""

from __future__ import annotations

import numpy as np

from ...codegen.jit import helper
from ...codegen.runtime import copy, row
from ...codegen.vectors import independent


def prepare(rows, padding, mean, by_frequency, index, offsets, bag, coef, slope):
    """Write each sample's bag and factor (0 for the padding row); ``slope``: the factor in the gradient of the table."""
    count = offsets.size
    uses = np.zeros(rows if by_frequency else 0, np.int64)
    if by_frequency:
        for i in range(index.size):
            uses[index[i]] += 1
    for b in range(count):
        end = offsets[b + 1] if b + 1 < count else index.size
        if padding < 0 and not by_frequency:
            bag[offsets[b]:end] = b
            coef[offsets[b]:end] = 1.0 / (end - offsets[b]) if mean and end > offsets[b] else 1.0
            slope[offsets[b]:end] = coef[offsets[b]:end]
            continue
        used = 0
        for i in range(offsets[b], end):
            bag[i] = b
            used += index[i] != padding
        for i in range(offsets[b], end):
            c = 0.0 if index[i] == padding else 1.0 / used if mean else 1.0
            coef[i] = c
            slope[i] = c / uses[index[i]] if by_frequency else c


@helper
def _together(i, bag, coef):
    """Return whether this sample and the three after it are of one bag, none of them of padding."""
    same = (bag[i] == bag[i + 1]) & (bag[i] == bag[i + 2]) & (bag[i] == bag[i + 3])
    return same and (coef[i] != 0) & (coef[i + 1] != 0) & (coef[i + 2] != 0) & (coef[i + 3] != 0)


def gather(width, index, bag, coef, s, w, out):
    """out[bag[i]] += coef[i] · s[i] · w[index[i]], one after the other; four are added at a time, as what was just written is slow to read."""
    for i in range(out.size):
        out[i] = 0
    i = 0
    while i < index.size:
        target = row(out, bag[i] * width, width, 1)
        f = coef[i] * s[i] if s.size else coef[i]
        a = row(w, index[i] * width, width, 1)
        if i + 3 < index.size and _together(i, bag, coef):
            f1 = coef[i + 1] * s[i + 1] if s.size else coef[i + 1]
            f2 = coef[i + 2] * s[i + 2] if s.size else coef[i + 2]
            f3 = coef[i + 3] * s[i + 3] if s.size else coef[i + 3]
            b, c, d = row(w, index[i + 1] * width, width, 1), row(w, index[i + 2] * width, width, 1), row(w, index[i + 3] * width, width, 1)
            for j in range(width):
                independent()
                target[j] = target[j] + f * a[j] + f1 * b[j] + f2 * c[j] + f3 * d[j]
            i += 4
            continue
        if coef[i] != 0:
            for j in range(width):
                independent()
                target[j] += f * a[j]
        i += 1


def dots(width, index, bag, coef, w, g, out):
    """out[i] = coef[i] · ⟨w[index[i]], g[bag[i]]⟩."""
    for i in range(index.size):
        row = w[index[i] * width:(index[i] + 1) * width]
        other = g[bag[i] * width:(bag[i] + 1) * width]
        total = coef[i] * 0
        for j in range(row.size):
            total += row[j] * other[j]
        out[i] = coef[i] * total


def greatest(width, padding, index, offsets, w, rows):
    """rows[b, j] = which row of w has the largest element j of bag b (−1: the bag is empty)."""
    count = offsets.size
    for i in range(rows.size):
        rows[i] = -1
    best = np.empty(width, w.dtype)
    for b in range(count):
        end = offsets[b + 1] if b + 1 < count else index.size
        found = row(rows, b * width, width, 1)
        empty = True
        for i in range(offsets[b], end):
            at = index[i]
            if at == padding:
                continue
            source = row(w, at * width, width, 1)
            if empty:
                copy(best, source, width)
                for j in range(width):
                    found[j] = at
                empty = False
                continue
            for j in range(width):
                independent()
                v, high = source[j], best[j]
                best[j] = v if v > high else high
                found[j] = at if v > high else found[j]
