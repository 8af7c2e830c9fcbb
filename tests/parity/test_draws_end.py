"""Draws with parameters of every size come to an end: rejection in loops, of numbers that must not go round or be none."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

torch = pytest.importorskip("torch")

NUMBERS = (0.0, 1e-320, 1e-300, 1e-30, 1e-17, 1e-3, 0.5, 1.0, 2.5, 19.9, 20.0, 1e3, 1e9, 1e18, 1e30, 1e300, float("inf"))
CHANCES = (0.0, 1e-320, 1e-300, 1e-30, 1e-17, 1e-3, 0.5, 0.99, 1 - 1e-16, 1.0)
#: what is drawn of two grids of numbers: as many trials, with such chances
DRAWN = {
    "binomial": "t.binomial(*t.cartesian_prod(NUMBERS, CHANCES).unbind(-1))",
    "gamma": "t._standard_gamma(NUMBERS)",
    "poisson": "t.poisson(NUMBERS[:13])",
    "dirichlet": "t._sample_dirichlet(t.stack([NUMBERS[1:-1], CHANCES.new_ones(15)], -1))",
    "geometric": "t.stack([NUMBERS.new_empty(()).geometric_(p) for p in CHANCES[2:-1].tolist()])",
}
PROGRAM = "import autograd_nb as t, json, sys; NUMBERS, CHANCES = (t.tensor(v, dtype=t.float64) for v in {}); print(json.dumps(({}).tolist()))"


@pytest.mark.parametrize("name", DRAWN)
def test_a_draw_ends(name):
    """In a process of its own, because a kernel that does not end cannot be interrupted."""
    text = PROGRAM.format([list(NUMBERS), list(CHANCES)], DRAWN[name]).replace("inf", "float('inf')")
    told = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, timeout=120, check=True).stdout
    mine = torch.tensor(json.loads(told), dtype=torch.float64)
    numbers, chances = (torch.tensor(v, dtype=torch.float64) for v in (NUMBERS, CHANCES))
    theirs = eval(DRAWN[name], {"t": torch, "NUMBERS": numbers, "CHANCES": chances})
    known = ~(mine.isnan() | theirs.isnan())  # (of infinitely many trials PyTorch's count is none now and then)
    assert (
        known.sum() >= len(CHANCES) - 3
        and not mine[numbers.isfinite().repeat_interleave(len(CHANCES)) if name == "binomial" else ...].isnan().any()
    )
    if name in ("binomial", "poisson"):  # compared with the mean: PyTorch's own draws of 10¹⁸ trials and more stray
        mean = numbers[:13] if name == "poisson" else numbers.outer(chances).flatten()
        near = ((mine - mean).abs() <= 40 * (1 + mean.sqrt()) + 1e-15 * mean) | (mine == mean) | mean.isnan()  # (∞ trials of chance 0)
        assert near[known].all(), (mine, mean)
    assert (mine.isinf() == theirs.isinf())[known].all()
