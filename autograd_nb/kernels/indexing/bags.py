"""Bags of table rows. Sample i takes row ``index[i]`` of w into bag ``bag[i]`` with factor coef[i] · s[i] (s may be empty: ones).

The three products are the partial derivatives of one form, Σᵢ coefᵢ · sᵢ · ⟨w[indexᵢ], g[bagᵢ]⟩.
"""

from __future__ import annotations

import numpy as np


def prepare(rows, padding, mean, by_frequency, index, offsets, bag, coef, slope):
    """Write each sample's bag and factor (0 for the padding row); ``slope``: the factor in the gradient of the table."""
    count = offsets.size
    uses = np.zeros(rows if by_frequency else 0, np.int64)
    if by_frequency:
        for i in range(index.size):
            uses[index[i]] += 1
    for b in range(count):
        end = offsets[b + 1] if b + 1 < count else index.size
        used = 0
        for i in range(offsets[b], end):
            bag[i] = b
            used += index[i] != padding
        for i in range(offsets[b], end):
            c = 0.0 if index[i] == padding else 1.0 / used if mean else 1.0
            coef[i] = c
            slope[i] = c / uses[index[i]] if by_frequency else c


def gather(width, index, bag, coef, s, w, out):
    """out[bag[i]] += coef[i] · s[i] · w[index[i]]."""
    for i in range(out.size):
        out[i] = 0
    for i in range(index.size):
        f = coef[i] * s[i] if s.size else coef[i]
        row = w[index[i] * width:(index[i] + 1) * width]
        target = out[bag[i] * width:(bag[i] + 1) * width]
        if coef[i] != 0:
            for j in range(target.size):
                target[j] += f * row[j]


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
    for b in range(count):
        end = offsets[b + 1] if b + 1 < count else index.size
        found = rows[b * width:(b + 1) * width]
        for i in range(offsets[b], end):
            if index[i] == padding:
                continue
            for j in range(found.size):
                if found[j] < 0 or w[index[i] * width + j] > w[found[j] * width + j]:
                    found[j] = index[i]
