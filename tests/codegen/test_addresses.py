"""The bits of a result do not depend on where its arrays lie: tests of overlap would send near ones through a loop that adds in another order."""

from __future__ import annotations

import importlib
import pkgutil

import numpy as np
import pytest

import autograd_nb.ops
from autograd_nb.ops.core.row_kernel import RowKernel


def row_kernels() -> dict[str, RowKernel]:
    """All row kernels of full operands and row values that stand at the top of a module."""
    found = {}
    for module in pkgutil.walk_packages(autograd_nb.ops.__path__, "autograd_nb.ops."):
        for name, value in vars(importlib.import_module(module.name)).items():
            if isinstance(value, RowKernel) and {*value.operands.values(), *value.outputs.values()} <= {"full", "row", "col"}:
                found[f"{module.name.rpartition('.')[2]}.{name}"] = value
    return found


KERNELS = row_kernels()


def results(kernel: RowKernel, sizes: tuple[int, int, int], dtype: str, gap: int) -> list[bytes]:
    outer, n, inner = sizes
    count = {"full": outer * n * inner, "row": outer * inner, "col": n}
    kinds = [*kernel.operands.values(), *kernel.outputs.values()]
    memory = np.full(sum(count[k] + gap for k in kinds), 0.5, dtype)
    rng, at, arrays = np.random.default_rng(0), 0, []
    for k in kinds:
        arrays.append(memory[at : at + count[k]])
        at += count[k] + gap
    for a in arrays[: len(kernel.operands)]:
        a[:] = rng.uniform(0.1, 0.9, a.size)
    split = len(kernel.operands)
    kernel(dtype, sizes, arrays[:split], arrays[split:])
    return [a.tobytes() for a in arrays[split:]]


def test_there_are_kernels():
    assert len(KERNELS) > 3


@pytest.mark.parametrize("name", KERNELS)
def test_bits_do_not_depend_on_where_arrays_lie(name):
    for dtype in ("float32", "float64"):
        for sizes in ((3, 4, 1), (2, 9, 1), (2, 5, 3)):
            far = results(KERNELS[name], sizes, dtype, 1000)
            for gap in (0, 1, 4, 16):
                assert results(KERNELS[name], sizes, dtype, gap) == far, (dtype, sizes, gap)
