"""The quick benchmarks at their smallest size, once: values, gradients and the effect of updates are those of PyTorch.

``python -m bench.run --blocks 0`` compares all of them, at all sizes and with every peer, and times nothing.
"""

from __future__ import annotations

import numpy as np
import pytest

import autograd_nb as ag
from bench.case import COMPILED, OURS, TORCH, compare, observe, peers_of, ready
from bench.cases import CASES
from bench.cliffs import ops as cliffs
from bench.cold.programs import PROGRAMS

pytest.importorskip("torch")


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("case", [c for c in CASES if c.smallest and c.quick], ids=str)
def test_libraries_agree(case):
    expected = observe(case, ready(case, TORCH))
    for peer in peers_of(case, [OURS, COMPILED, "NumPy"]):
        compare(case, observe(case, ready(case, peer)), expected, f"{peer} and {TORCH}")


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_from_cold_agree(name):
    """The nine of `bench.cold`, from the same parameters and data, eager and compiled."""
    import torch

    step, tensors = PROGRAMS[name](torch)
    start = [t.detach().numpy().copy() for t in tensors]
    losses = [step().item() for _ in range(3)]
    for how in (lambda f: f, ag.compile):
        mine, held = PROGRAMS[name](ag)
        with ag.no_grad():
            for t, values in zip(held, start, strict=True):
                t.copy_(ag.from_numpy(values))
        mine = how(mine)
        np.testing.assert_allclose([mine().item() for _ in range(3)], losses, rtol=1e-4)


#: function -> its smallest case
FUNCTIONS = {f: (name, shapes, dtype) for name, f, shapes, dtype, layout, _ in reversed(list(cliffs.grid())) if layout == "contiguous"}


@pytest.mark.parametrize("function", FUNCTIONS, ids=[name for name, *_ in FUNCTIONS.values()])
def test_cliffs_are_the_same_computations(function):
    import torch

    _, shapes, dtype = FUNCTIONS[function]
    theirs = cliffs.operands(torch, shapes, dtype, "contiguous")
    mine = [ag.from_numpy(t.numpy().copy()) for t in theirs]
    results = []
    for lib, given in ((ag, mine), (torch, theirs)):
        cliffs.step(lib, function, given, "added gradient")()
        results.append([function(lib, *given).detach().numpy(), *[t.grad.numpy() for t in given if t.grad is not None]])
    for a, b in zip(*results, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-3 * abs(b).max())
