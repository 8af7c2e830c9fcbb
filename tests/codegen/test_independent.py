"""Loops whose rounds are independent: the values of plain loops, by less code."""

from __future__ import annotations

import os

import numpy as np
import pytest

from autograd_nb.codegen.build import compilation

pytestmark = pytest.mark.skipif(bool(compilation.numba().config.DISABLE_JIT), reason="nothing is compiled")

TEXT = """
from autograd_nb.codegen.runtime import row
from autograd_nb.codegen.vectors import independent, masked

def f(n, a, b, out):
    x, y, z = row(a, 0, n, 1), row(b, 0, n, 1), row(out, 0, n, 1)
    for i in range(n):
        MARK
        t = x[i] * y[i] + z[i]
        z[i] = t
        x[i] = t if t > y[i] else y[i]
"""
TYPES = ("int64", "float32[:]", "float32[:]", "float32[:]")
MARKS = ("pass", "independent()", "masked()")


def text(mark: str) -> str:
    return TEXT.replace("MARK", mark)


@pytest.mark.parametrize("mark", MARKS)
def test_values(mark):
    f = compilation.build(text(mark), "f", TYPES)
    for n in (0, 1, 7, 16, 17, 33, 64, 100):
        a, b, out = (np.random.default_rng(k).standard_normal(n + 3).astype(np.float32) for k in range(3))
        total = np.float64(a) * b + out
        wanted_out = np.where(np.arange(n + 3) < n, total, out)
        wanted_a = np.where(np.arange(n + 3) < n, np.maximum(total, b), a)
        f(n, a, b, out)
        np.testing.assert_allclose(out, wanted_out, rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(a, wanted_a, rtol=1e-5, atol=1e-6)


def code(mark: str) -> str:
    """The code of the kernel after LLVM's passes."""
    function = compilation.defined((mark,), text(mark), "f")
    library = compilation._compile(function, TYPES, os.urandom(32).hex()).library
    return str(library._final_module)


def test_code():
    from autograd_nb.codegen.vectors import BYTES

    plain, independent, masked = map(code, MARKS)
    assert "vector.memcheck" in plain
    for marked in (independent, masked):
        assert "vector.body" in marked
        assert "memcheck" not in marked
        assert len(marked) < 0.8 * len(plain)
    assert ("masked.store" in masked) == (BYTES >= 32)
    assert "masked.store" not in independent
