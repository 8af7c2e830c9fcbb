"""Padding of planes with what they hold: reflected at the edge, the edge repeated, or from the other side; and its transpose."""

import numpy as np

from ...codegen.jit import helper
from ...codegen.runtime import copy, row
from ...codegen.vectors import independent, rolled

REFLECT, REPLICATE, CIRCULAR = range(3)
NARROW = 16  #: columns from which rows are copied as pieces of memory


@helper
def _source(i, n, mode):
    """Return which of ``n`` places stands at ``i``, which may be below 0 or from ``n`` on."""
    if mode == REPLICATE:
        return min(max(i, 0), n - 1)
    if mode == CIRCULAR:
        return i % n
    i = abs(i)
    return (n - 1) - abs((n - 1) - i)


@helper
def _sources(h, w, top, rows, left, columns, mode):
    """Return which element of a plane stands at each place of a padded one, whose rows are not worth a loop each."""
    table = np.empty(rows * columns, np.int64)
    for r in range(rows):
        for c in range(columns):
            table[np.uintp(r * columns + c)] = _source(r - top, h, mode) * w + _source(c - left, w, mode)
    return table


def pad_edges(planes, h, w, top, rows, left, columns, mode, x, out):
    """Write planes of ``rows`` × ``columns`` made of those of h × w, which begin ``top`` and ``left`` further in (below 0: further out)."""
    first = min(max(left, 0), columns)
    last = max(min(left + w, columns), first)
    size = rows * columns
    table = _sources(h, w, top, rows if columns < NARROW else 0, left, columns, mode)
    for p in range(planes):
        for i in range(table.size):
            rolled()
            out[np.uintp(p * size + i)] = x[np.uintp(p * h * w + table[i])]
        for r in range(rows if columns >= NARROW else 0):
            at = (p * h + _source(r - top, h, mode)) * w
            line, written = row(x, at, w, 1), row(out, p * size + r * columns, columns, 1)
            copy(
                row(out, p * size + r * columns + first, last - first, 1),
                row(x, at + first - left, last - first, 1),
                last - first,
            )
            for c in range(first):
                rolled()
                written[c] = line[_source(c - left, w, mode)]
            for c in range(last, columns):
                rolled()
                written[c] = line[_source(c - left, w, mode)]


def fold_edges(planes, h, w, top, rows, left, columns, mode, g, out):
    """Add what `pad_edges` has written to where it was read from: ``g`` has the larger planes."""
    for i in range(out.size):
        out[i] = 0
    first = min(max(left, 0), columns)
    last = max(min(left + w, columns), first)
    size = rows * columns
    table = _sources(h, w, top, rows if columns < NARROW else 0, left, columns, mode)
    for p in range(planes):
        for i in range(table.size):
            rolled()
            out[np.uintp(p * h * w + table[i])] += g[np.uintp(p * size + i)]
        for r in range(rows if columns >= NARROW else 0):
            at = (p * h + _source(r - top, h, mode)) * w
            line, read = row(out, at, w, 1), row(g, p * size + r * columns, columns, 1)
            inside = row(out, at + first - left, last - first, 1)
            for c in range(last - first):
                independent()
                inside[c] += read[first + c]
            for c in range(first):
                rolled()
                place = _source(c - left, w, mode)
                line[place] += read[c]
            for c in range(last, columns):
                rolled()
                place = _source(c - left, w, mode)
                line[place] += read[c]
