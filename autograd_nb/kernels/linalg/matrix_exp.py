"""The exponential of matrices, by scaling and squaring."""

from __future__ import annotations

import numpy as np

from ...codegen.jit import helper
from ...codegen.runtime import copy
from ..products.matmul import gemm

#: Taylor's series of degree 16 is exact to rounding for 1-norms below these (float32 and complex64, else), see
#: Higham and Al-Mohy, "Computing the action of the matrix exponential", table 3.1
LIMIT_SINGLE, LIMIT = 2.0, 0.7
SMALL = 8  #: rows up to which loops beat a call into BLAS


@helper
def multiply(n, a, b, c):
    """c = a·b."""
    if n > SMALL:
        gemm(a, False, n, b, False, n, c, n, n, n, n, c.dtype.type(1), c.dtype.type(0))
        return
    for i in range(n):
        row = c[i * n : i * n + n]
        row[:] = c.dtype.type(0)
        for k in range(n):
            x = a[i * n + k]
            other = b[k * n : k * n + n]
            for j in range(row.size):
                row[j] += x * other[j]


@helper
def norm1(n, a):
    """Return the largest column sum of absolute values."""
    most = 0.0
    for c in range(n):
        total = 0.0
        for r in range(n):
            total += abs(a[r * n + c])
        if not total <= most:
            most = total
    return most


def matrix_exp(batch, n, a, out):
    """out[i] = Σ a[i]ᵏ/k!, of a[i]/2ˢ, squared s times."""
    size = n * n
    single = a.itemsize == (8 if np.iscomplexobj(a) else 4)
    limit = LIMIT_SINGLE if single else LIMIT
    powers = np.empty(4 * size, a.dtype)
    left = np.empty(size, a.dtype)
    right = np.empty(size, a.dtype)
    factor = np.empty(17, np.float64)
    factor[0] = 1.0
    for k in range(1, 17):
        factor[k] = factor[k - 1] / k
    for i in range(batch):
        source = a[i * size : (i + 1) * size]
        mine = out[i * size : (i + 1) * size]
        norm = norm1(n, source)
        if not norm < np.inf:
            mine[:] = a.dtype.type(np.nan)
            continue
        squarings = 0
        scale = 1.0
        while norm * scale > limit:
            squarings += 1
            scale *= 0.5
        one, two, three, four = powers[:size], powers[size : 2 * size], powers[2 * size : 3 * size], powers[3 * size :]
        s = a.dtype.type(scale)
        for j in range(size):
            one[j] = source[j] * s
        multiply(n, one, one, two)
        multiply(n, two, one, three)
        multiply(n, two, two, four)
        c = a.dtype.type(factor[16])
        for j in range(size):
            left[j] = c * four[j]
        for step in range(4):  # Horner's rule in the fourth power
            k = 12 - 4 * step
            if step:
                multiply(n, left, four, right)
                copy(left, right, size)
            c1, c2, c3 = a.dtype.type(factor[k + 1]), a.dtype.type(factor[k + 2]), a.dtype.type(factor[k + 3])
            for j in range(size):
                left[j] += c1 * one[j] + (c2 * two[j] + c3 * three[j])
            c0 = a.dtype.type(factor[k])
            for j in range(n):
                left[j * n + j] += c0
        for _ in range(squarings):
            multiply(n, left, left, right)
            copy(left, right, size)
        copy(mine, left, size)
