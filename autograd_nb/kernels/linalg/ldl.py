"""Factors of symmetric matrices that need not be definite, by SciPy's LAPACK (Numba's binding has none for them)."""

from __future__ import annotations

import numpy as np
from scipy.linalg import lapack

from ...codegen.build.compilation import foreign


def _routine(kind: str, name: str, hermitian: bool):
    return getattr(lapack, {"f4": "s", "f8": "d", "c8": "c", "c16": "z"}[kind] + ("he" if hermitian else "sy") + name)


@foreign
def factor(batch, n, hermitian, a, ld, pivots, info):
    """Write ld[i] (by columns) and pivots[i]: LAPACK's packed L and D of the lower triangle of a[i]."""
    routine = _routine(a.dtype.str[1:], "trf", hermitian)
    source, out, order = a.reshape(batch, n, n), ld.reshape(batch, n, n).transpose(0, 2, 1), pivots.reshape(batch, n)
    for i in range(batch):
        packed, order[i], info[i] = routine(source[i], lower=1)
        out[i] = np.tril(packed)


@foreign
def solve(batch, n, k, hermitian, ld, pivots, b, x):
    """x[i], by columns, with A·x = b[i] for the matrix whose factors are given."""
    routine = _routine(ld.dtype.str[1:], "trs", hermitian)
    factors, order = ld.reshape(batch, n, n), pivots.reshape(batch, n)
    right, out = b.reshape(batch, n, k), x.reshape(batch, k, n).transpose(0, 2, 1)
    for i in range(batch):
        out[i] = routine(np.asfortranarray(factors[i]), order[i], np.asfortranarray(right[i]), lower=1)[0]
