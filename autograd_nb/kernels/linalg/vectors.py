"""Products of vectors."""

from __future__ import annotations

from ...codegen.jit import helper


@helper
def _into(a, b, c, d, out):
    """Write out = a·b − c·d, element by element."""
    for i in range(out.size):
        out[i] = a[i] * b[i] - c[i] * d[i]


def cross(outer, inner, x, y, out):
    """Write the cross products of x and y, (outer, 3, inner)."""
    if inner == 1:
        for i in range(outer):
            a, b, c = x[3 * i], x[3 * i + 1], x[3 * i + 2]
            d, e, f = y[3 * i], y[3 * i + 1], y[3 * i + 2]
            out[3 * i] = b * f - c * e
            out[3 * i + 1] = c * d - a * f
            out[3 * i + 2] = a * e - b * d
        return
    for k in range(outer):
        i = k * 3 * inner
        a, b, c = x[i : i + inner], x[i + inner : i + 2 * inner], x[i + 2 * inner : i + 3 * inner]
        d, e, f = y[i : i + inner], y[i + inner : i + 2 * inner], y[i + 2 * inner : i + 3 * inner]
        _into(b, f, c, e, out[i : i + inner])
        _into(c, d, a, f, out[i + inner : i + 2 * inner])
        _into(a, e, b, d, out[i + 2 * inner : i + 3 * inner])
