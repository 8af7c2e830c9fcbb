"""Scaled dot-product attention, some queries of one head at a time, so that scores stay in cache between products and softmax."""

from __future__ import annotations

import numpy as np

from ..codegen.elementary import exp
from ..codegen.jit import FREE, helper
from .matmul import gemm

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
def softmax_row(row, blank):
    """Softmax in place; a row of which all is masked (−inf) becomes ``blank``."""
    top = greatest(row)
    if not top > -np.inf:
        for j in range(row.size):
            row[j] = row.dtype.type(blank) if row[j] == row[j] else row[j]  # nan stays
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


def forward(batches, heads, length, source, width, value_width, scale, causal, kind, strides, blank, keep, block, q, k, v, mask, p, y):
    """p = softmax(scale · q kᵀ + mask), y = p v for each of ``batches`` matrices, ``block`` rows of q at a time.

    ``strides``: elements of ``mask`` from one batch, head, row and column to the next, heads being the innermost of the batches.
    ``blank``: the weights of a row of which all is masked. Without ``keep``, p is room for one block. y may be empty: not wanted.
    """
    zero = y.dtype.type(0)
    one = y.dtype.type(1)
    factor = y.dtype.type(scale)
    for b in range(batches):
        keys = k[b * source * width:]
        base = (b // heads) * strides[0] + (b % heads) * strides[1]
        for first in range(0, length, block):
            rows = min(block, length - first)
            at = b * length + first
            scores = p[at * source:(at + rows) * source] if keep else p[0:rows * source]
            seen = min(source, first + rows) if causal else source  # keys that some row of the block may see
            if width:
                gemm(q[at * width:], False, width, keys, True, width, scores, source, rows, seen, width, factor, zero)
            else:
                for i in range(scores.size):
                    scores[i] = zero
            for i in range(rows):
                row = scores[i * source:(i + 1) * source]
                if causal and first + i + 1 < source:
                    rest = row[first + i + 1:]
                    for j in range(rest.size):
                        rest[j] = zero
                    row = row[:first + i + 1]
                if kind != NONE:
                    masked(row, kind, mask, base + (first + i) * strides[2], strides[3])
                softmax_row(row, blank)
            if y.size:
                gemm(
                    scores, False, source, v[b * source * value_width:], False, value_width, y[at * value_width:], value_width,
                    rows, value_width, seen, one, zero,
                )  # fmt: skip


def backward(batches, length, source, width, value_width, scale, causal, block, q, k, v, p, g, dq, dk, dv):
    """Gradients of `forward` to q, k and v, given that of y."""
    zero = g.dtype.type(0)
    one = g.dtype.type(1)
    factor = g.dtype.type(scale)
    slopes = np.empty(min(block, length) * source, g.dtype)
    for i in range(dk.size):
        dk[i] = zero
    for i in range(dv.size):
        dv[i] = zero
    for b in range(batches):
        keys, values = k[b * source * width:], v[b * source * value_width:]
        for first in range(0, length, block):
            rows = min(block, length - first)
            at = b * length + first
            seen = min(source, first + rows) if causal else source
            weights = p[at * source:(at + rows) * source]
            grad = g[at * value_width:(at + rows) * value_width]
            gemm(grad, False, value_width, values, True, value_width, slopes, source, rows, seen, value_width, one, zero)
            for i in range(rows):
                s = slopes[i * source:i * source + seen]
                w = weights[i * source:i * source + seen]
                mean = dot(s, w)
                for j in range(s.size):
                    s[j] = w[j] * (s[j] - mean)
            gemm(slopes, False, source, keys, False, width, dq[at * width:], width, rows, width, seen, factor, zero)
            gemm(slopes, True, source, q[at * width:], False, width, dk[b * source * width:], width, seen, width, rows, factor, one)
            gemm(
                weights, True, source, grad, False, value_width, dv[b * source * value_width:], value_width, seen, value_width, rows, one, one
            )
