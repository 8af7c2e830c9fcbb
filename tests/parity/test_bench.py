"""The quick benchmarks at their smallest size, once: values, gradients and the effect of updates are those of PyTorch.

``python -m bench.run --blocks 0`` compares all of them, at all sizes and with every peer, and times nothing.
"""

from __future__ import annotations

import pytest

from bench.case import COMPILED, OURS, TORCH, compare, observe, peers_of, ready
from bench.cases import CASES

pytest.importorskip("torch")


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("case", [c for c in CASES if c.smallest and c.quick], ids=str)
def test_libraries_agree(case):
    expected = observe(case, ready(case, TORCH))
    for peer in peers_of(case, [OURS, COMPILED, "NumPy"]):
        compare(case, observe(case, ready(case, peer)), expected, f"{peer} and {TORCH}")
