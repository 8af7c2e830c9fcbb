"""Padding of planes with what they hold: reflected at the edge, the edge repeated, or from the other side; and its transpose."""

from ...codegen.jit import helper
from ...codegen.runtime import copy, row
from ...codegen.vectors import independent, rolled

REFLECT, REPLICATE, CIRCULAR = range(3)


@helper
def _source(i, n, mode):
    """Return which of ``n`` places stands at ``i``, which may be below 0 or from ``n`` on."""
    if mode == REPLICATE:
        return min(max(i, 0), n - 1)
    if mode == CIRCULAR:
        return (i % n + n) % n
    i = abs(i)
    return (n - 1) - abs((n - 1) - i)


def pad_edges(planes, h, w, top, rows, left, columns, mode, x, out):
    """Write planes of ``rows`` × ``columns`` made of those of h × w, which begin ``top`` and ``left`` further in (below 0: further out)."""
    first = min(max(left, 0), columns)
    last = max(min(left + w, columns), first)
    for p in range(planes):
        for r in range(rows):
            at = (p * h + _source(r - top, h, mode)) * w
            line, written = row(x, at, w, 1), row(out, (p * rows + r) * columns, columns, 1)
            copy(row(out, (p * rows + r) * columns + first, last - first, 1), row(x, at + first - left, last - first, 1), last - first)
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
    for p in range(planes):
        for r in range(rows):
            at = (p * h + _source(r - top, h, mode)) * w
            line, read = row(out, at, w, 1), row(g, (p * rows + r) * columns, columns, 1)
            inside = row(out, at + first - left, last - first, 1)
            for c in range(last - first):
                independent()
                inside[c] += read[first + c]
            for c in range(first):
                rolled()
                line[_source(c - left, w, mode)] += read[c]
            for c in range(last, columns):
                rolled()
                line[_source(c - left, w, mode)] += read[c]
