"""Scaled dot-product attention, some queries of one head at a time, so that scores stay in cache between products and softmax."""

from __future__ import annotations

import numpy as np

from ..codegen.elementary import exp
from ..codegen.jit import FREE, helper
from ..codegen.tiles import HALF, ROWS, multiply, turn_rows
from ..codegen.vectors import BYTES

DEEP = 256  #: terms of a product before they are added to the output: a panel of so many rows stays in the first cache
ALL, RESULT, FIRST_TERMS, LAST_TERMS = range(4)  # what of a product counts, see `product`
NONE, ADDED, ALLOWED = range(3)  # kinds of mask: none, floats that are added to scores, bools that say what may be seen


@helper(fastmath={"contract", "nnan", "nsz"})
def greatest(row):
    """The largest element; of no use when there is a nan."""
    top = row[0]
    for j in range(row.size):
        top = max(top, row[j])
    return top


@helper(fastmath=FREE)
def raise_row(row, top):
    """row = e^(row − top); returns the sum."""
    total = row.dtype.type(0)
    for j in range(row.size):
        e = exp(row[j] - top)
        row[j] = e
        total += e
    return total


@helper
def softmax_row(row, seen, blank):
    """Softmax in place; a row of which all is masked (−inf) becomes ``blank`` in its first ``seen``, zero beyond."""
    top = greatest(row)
    if not top > -np.inf:
        for j in range(row.size):
            other = row.dtype.type(blank if j < seen else 0.0)
            row[j] = other if row[j] == row[j] else row[j]  # nan stays
        return
    inverse = row.dtype.type(1) / raise_row(row, top)
    for j in range(row.size):
        row[j] *= inverse


@helper(fastmath=FREE)
def dot(a, b):
    total = a.dtype.type(0)
    for j in range(a.size):
        total += a[j] * b[j]
    return total


@helper
def masked(row, kind, mask, start, step):
    """Add the mask to a row of scores, or lower to −∞ what it does not allow."""
    lowest = row.dtype.type(-np.inf)
    if step == 1:
        given = mask[start:start + row.size]
        if kind == ADDED:
            for j in range(row.size):
                row[j] += given[j]
        else:
            for j in range(row.size):
                row[j] = row[j] if given[j] else lowest
    else:
        for j in range(row.size):
            value = mask[start + j * step]
            if kind == ADDED:
                row[j] += value
            elif not value:
                row[j] = lowest


@helper
def product(counts, shift, m, n, k, a, at, a_row, a_col, b, bt, b_row, c, ct, c_row, add):
    """c (m × n) = a (m × k) · b (k × n), or added to c, operands as those of `multiply`; k > 0.

    Where one of the matrices is that of a causal mask, what it leaves out is mostly not computed: of row i counts what is not
    beyond column i + ``shift`` of c (``RESULT``), not beyond that column of a (``FIRST_TERMS``, zero beyond), or not before
    column i − ``shift`` of a (``LAST_TERMS``, zero before; with ``add``).
    """
    one = BYTES // c.itemsize
    wide = 2 * one
    for p in range(0, k, DEEP):
        for j in range(0, n, wide):
            width = min(wide, n - j)
            for y in range(0, m, ROWS):
                if counts == RESULT and j >= y + shift + ROWS:
                    continue
                begin = max(p, y - shift) if counts == LAST_TERMS else p
                end = min(k, p + DEEP, y + shift + ROWS) if counts == FIRST_TERMS else min(k, p + DEEP)
                if begin >= end:
                    continue
                high, deep = min(ROWS, m - y), end - begin
                x, w, z = at + y * a_row + begin * a_col, bt + begin * b_row + j, ct + y * c_row + j
                more = add or p > 0
                if high <= HALF:
                    for v in range(0, width, one):
                        multiply(HALF, 1, high, width - v, deep, a, x, a_row, a_col, b, w + v, b_row, c, z + v, c_row, more)
                elif width > one:
                    multiply(ROWS, 2, high, width, deep, a, x, a_row, a_col, b, w, b_row, c, z, c_row, more)
                else:
                    multiply(ROWS, 1, high, width, deep, a, x, a_row, a_col, b, w, b_row, c, z, c_row, more)


@helper
def reach(i, source):
    """Where the tile of row i of causal scores ends: what is beyond is read by no product."""
    return min(source, (i // ROWS + 1) * ROWS)


def forward(batches, heads, length, source, width, value_width, scale, causal, kind, strides, blank, keep, block, q, k, v, mask, p, y):
    """p = softmax(scale · q kᵀ + mask), y = p v for each of ``batches`` matrices, ``block`` rows of q at a time.

    ``strides``: elements of ``mask`` from one batch, head, row and column to the next, heads being the innermost of the batches.
    ``blank``: the weights of a row of which all is masked. Without ``keep``, p is room for one block. y may be empty: not wanted.
    """
    zero = y.dtype.type(0)
    lowest = y.dtype.type(-np.inf)
    factor = y.dtype.type(scale)
    keys = np.empty(width * source, y.dtype)
    for b in range(batches):
        turn_rows(source, width, k, b * source * width, width, keys, 0, source)
        for i in range(keys.size):
            keys[i] *= factor
        base = (b // heads) * strides[0] + (b % heads) * strides[1]
        for first in range(0, length, block):
            rows = min(block, length - first)
            at = b * length + first
            scores = p[at * source:(at + rows) * source] if keep else p[0:rows * source]
            if width:
                counts = RESULT if causal else ALL
                product(counts, first, rows, source, width, q, at * width, width, 1, keys, 0, source, scores, 0, source, False)
            else:
                for i in range(scores.size):
                    scores[i] = zero
            for i in range(rows):
                row = scores[i * source:(i + 1) * source]
                seen = min(source, first + i + 1) if causal else source
                if kind != NONE:
                    masked(row[:seen], kind, mask, base + (first + i) * strides[2], strides[3])
                if seen < source:
                    end = reach(first + i, source)
                    future, never = row[seen:end], row[end:]
                    for j in range(future.size):
                        future[j] = lowest
                    for j in range(never.size):
                        never[j] = zero
                    row = row[:end]
                softmax_row(row, seen, blank)
            if y.size:
                counts = FIRST_TERMS if causal else ALL
                product(
                    counts, first, rows, value_width, source, scores, 0, source, 1,
                    v, b * source * value_width, value_width, y, at * value_width, value_width, False,
                )  # fmt: skip


def backward(batches, length, source, width, value_width, scale, causal, block, q, k, v, p, g, dq, dk, dv):
    """Gradients of `forward` to q, k and v, given that of y."""
    zero = g.dtype.type(0)
    factor = g.dtype.type(scale)
    slopes = np.empty(min(block, length) * source, g.dtype)
    values = np.empty(value_width * source, g.dtype)
    result, early, late = (RESULT, FIRST_TERMS, LAST_TERMS) if causal else (ALL, ALL, ALL)
    for i in range(dk.size):
        dk[i] = zero
    for i in range(dv.size):
        dv[i] = zero
    for b in range(batches):
        key, value = b * source * width, b * source * value_width  # where they begin
        turn_rows(source, value_width, v, value, value_width, values, 0, source)
        for first in range(0, length, block):
            rows = min(block, length - first)
            at = b * length + first
            query, grad, weight = at * width, at * value_width, at * source
            product(result, first, rows, source, value_width, g, grad, value_width, 1, values, 0, source, slopes, 0, source, False)
            for i in range(rows):
                end = reach(first + i, source) if causal else source
                seen = min(end, first + i + 1) if causal else source
                s = slopes[i * source:i * source + seen]
                w = p[weight + i * source:weight + i * source + seen]
                mean = dot(s, w)
                for j in range(s.size):
                    s[j] = w[j] * (s[j] - mean) * factor
                future = slopes[i * source + seen:i * source + end]
                for j in range(future.size):
                    future[j] = zero
            product(early, first, rows, width, source, slopes, 0, source, 1, k, key, width, dq, query, width, False)
            product(late, first, source, width, rows, slopes, 0, 1, source, q, query, width, dk, key, width, True)
            product(
                late, first, source, value_width, rows, p, weight, 1, source, g, grad, value_width, dv, value, value_width, True
            )
