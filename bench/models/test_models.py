"""pytest-benchmark over the cases of `bench.cases.MODELS`: this library and, where installed, PyTorch."""

from __future__ import annotations

import importlib

import numpy as np
import pytest

from bench.cases import MODELS


@pytest.mark.parametrize("library", ["autograd_nb", "torch"])
@pytest.mark.parametrize("case", [c for c, _ in MODELS], ids=lambda c: c.__name__)
def test_case(benchmark, case, library):
    lib = pytest.importorskip(library)
    if library == "torch":
        lib.set_num_threads(1)
    run = case(lib)
    expected = case(importlib.import_module("autograd_nb"))()
    np.testing.assert_allclose(run(), expected, rtol=2e-4, atol=2e-5)
    benchmark.group = case.__name__
    benchmark(run)
