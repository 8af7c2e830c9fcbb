"""Scaled dot-product attention, one head at a time, so that a head's scores stay in cache between products and softmax."""

from __future__ import annotations

import numpy as np

from ..codegen.jit import FREE, helper
from ..codegen.elementary import exp
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


def forward(batches, heads, length, source, width, value_width, scale, causal, kind, strides, blank, keep, q, k, v, mask, p, y):
    """p = softmax(scale · q kᵀ + mask), y = p v for each of ``batches`` matrices.

    ``strides``: elements of ``mask`` from one batch, head, row and column to the next, heads being the innermost of the batches.
    ``blank``: the weights of a row of which all is masked. Without ``keep``, p is room for one head. y may be empty: not wanted.
    """
    zero = y.dtype.type(0)
    one = y.dtype.type(1)
    lowest = y.dtype.type(-np.inf)
    factor = y.dtype.type(scale)
    block = length * source
    for b in range(batches):
        scores = p[b * block:(b + 1) * block] if keep else p[0:block]
        if width:
            gemm(
                q[b * length * width:], False, width, k[b * source * width:], True, width, scores, source, length, source, width, factor, zero
            )
        else:
            for i in range(scores.size):
                scores[i] = zero
        base = (b // heads) * strides[0] + (b % heads) * strides[1]
        for i in range(length):
            row = scores[i * source:(i + 1) * source]
            if causal and i + 1 < source:
                for j in range(i + 1, source):
                    row[j] = zero
                row = row[:i + 1]
            if kind != NONE:
                start = base + i * strides[2]
                if strides[3] == 1:
                    given = mask[start:start + row.size]
                    if kind == ADDED:
                        for j in range(row.size):
                            row[j] += given[j]
                    else:
                        for j in range(row.size):
                            row[j] = row[j] if given[j] else lowest
                else:
                    for j in range(row.size):
                        value = mask[start + j * strides[3]]
                        if kind == ADDED:
                            row[j] += value
                        elif not value:
                            row[j] = lowest
            softmax_row(row, blank)
        if not y.size:
            continue
        gemm(
            scores, False, source, v[b * source * value_width:], False, value_width, y[b * length * value_width:], value_width,
            length, value_width, source, one, zero,
        )  # fmt: skip


def backward(batches, length, source, width, value_width, scale, q, k, v, p, g, dq, dk, dv):
    """Gradients of `forward` to q, k and v, given that of y."""
    zero = g.dtype.type(0)
    one = g.dtype.type(1)
    factor = g.dtype.type(scale)
    block = length * source
    slopes = np.empty(block, g.dtype)
    for b in range(batches):
        weights = p[b * block:(b + 1) * block]
        grad = g[b * length * value_width:(b + 1) * length * value_width]
        gemm(grad, False, value_width, v[b * source * value_width:], True, value_width, slopes, source, length, source, value_width, one, zero)
        for i in range(length):
            s = slopes[i * source:(i + 1) * source]
            w = weights[i * source:(i + 1) * source]
            mean = dot(s, w)
            for j in range(s.size):
                s[j] = w[j] * (s[j] - mean)
        gemm(slopes, False, source, k[b * source * width:], False, width, dq[b * length * width:], width, length, width, source, factor, zero)
        gemm(slopes, True, source, q[b * length * width:], False, width, dk[b * source * width:], width, source, width, length, factor, zero)
        gemm(
            weights, True, source, grad, False, value_width, dv[b * source * value_width:], value_width, source, value_width, length, one, zero
        )
