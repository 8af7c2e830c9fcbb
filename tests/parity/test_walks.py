"""Walks over PyTorch's op database and over all losses, each in a process of its own that compiles nothing.

Most calls of a walk would need a kernel of their own; run as Python they take seconds. The walks print what differs.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")

WALKS = [
    "compiled_modules EmbeddingBag GaussianNLLLoss GRU MaxUnpool2d", "equal_keys --part 0/40",
    "equal_operands std var std_mean norm linalg.norm linalg.vector_norm dist sqrt abs", "loss_arguments", "norm_shapes",
    "number_arguments", "recorded --part 0 2", "recorded --part 1 2",
    "refused modules --every 30", "refused optimizers --every 10", "second_pass", "second_pass compiled",
    "unwritten nn.functional.ctc_loss linalg.lstsq nn.functional.embedding_bag max_pool2d_with_indices CTCLoss BatchNorm2d", "views --part 0 2",
    "views --part 1 2",
]  # fmt: skip
#: those of half a minute and more on a slow machine, which has no time for them
LONG = [
    "argument_dtypes", "argument_kinds --every 10", "argument_things --every 3", "compiled_modules", "equal_operands",
    "mutants outs", "mutants wanted --every 12",
    "mutants mixed --every 25", "mutants shapes --every 60", "mutants overlapping --every 6",
    (
        "mutants numbers add sub clamp masked_fill tril triu addcmul addcdiv linalg.vector_norm "
        "polygamma dist renorm roll nn.functional.leaky_relu nn.functional.elu"
    ),
    "overlapping", "shared_memory", *[f"stored_graphs --part {k} 4" for k in range(4)], *[f"unwritten --part {k} 6" for k in range(6)], "used_again",
]  # fmt: skip


@pytest.mark.parity
@pytest.mark.parametrize("walk", [*WALKS, *[pytest.param(walk, marks=pytest.mark.slow) for walk in LONG]])
def test_walk(walk):
    run = subprocess.run(
        [sys.executable, "-m", *f"tests.parity.{walk}".split()],
        env={**os.environ, "NUMBA_DISABLE_JIT": "1", "OMP_NUM_THREADS": "1"},
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stdout[-5000:] + run.stderr[-2000:]
