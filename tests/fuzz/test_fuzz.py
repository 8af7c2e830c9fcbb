"""A fixed corpus of drawn programs: eager ones without a compiler, in a process of their own, and a few compiled functions.

``make fuzz SECONDS=600 SEED=…`` draws others, and shrinks what differs to a few lines.
"""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

pytest.importorskip("torch")

from .corpus import SHRUNK

PROGRAMS, FUNCTIONS = 260, 25
#: programs of the corpus that differ, and why
KNOWN = {
    61: "mv of operands of the wrong dims is an IndexError in PyTorch where one has none, here a RuntimeError",
    62: "cdist takes operands of two dtypes",
    97: "gradients of what a pass lays out by columns in linear algebra are laid out by rows",
    214: "einsum without a product of matrices takes two dtypes in PyTorch",
}


def run(*options: str, **environment: str) -> str:
    command = [sys.executable, "-m", "tests.fuzz", "--seconds", "600", "--seed", "corpus", *options]
    return subprocess.run(command, env={**os.environ, **environment}, capture_output=True, text=True).stdout


@pytest.mark.parity
def test_programs():
    found = run("--programs", str(PROGRAMS), "--skip", ",".join(map(str, KNOWN)), NUMBA_DISABLE_JIT="1")
    assert f"{PROGRAMS} programs, 0 differ" in found, found


@pytest.mark.parity
def test_compiled_functions():
    found = run("--programs", str(FUNCTIONS), "--compiled", NUMBA_DISABLE_JIT="0", NUMBA_BOUNDSCHECK="0")
    assert f"{FUNCTIONS} programs, 0 differ" in found, found


@pytest.mark.parity
@pytest.mark.parametrize("name", SHRUNK)
def test_functions_that_once_differed(name):
    from .check import difference

    found = difference(SHRUNK[name])
    assert found is None, found
