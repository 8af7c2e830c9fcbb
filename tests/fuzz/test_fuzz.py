"""Programs that once differed from PyTorch's, every op with operands of several kinds, drawn programs, and a few compiled functions.

All but the last run without a compiler, in a process of their own. ``make fuzz SECONDS=600 SEED=…`` draws others, and shrinks what
differs to a few lines.
"""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

pytest.importorskip("torch")

from .corpus import SHRUNK

PROGRAMS, FUNCTIONS, REPLAYED = 150, 25, 60
#: drawn programs that differ, and why
KNOWN: dict[int, str] = {}


def run(*options: str, **environment: str) -> str:
    command = [sys.executable, "-W", "ignore", "-m", *options]
    return subprocess.run(command, env={**os.environ, **environment}, capture_output=True, text=True).stdout


def drawn(*options: str, **environment: str) -> str:
    return run("tests.fuzz", "--seconds", "600", "--seed", "corpus", *options, **environment)


@pytest.mark.parity
def test_programs_that_were_found():
    found = run("tests.fuzz", "--corpus", NUMBA_DISABLE_JIT="1")
    assert " programs, 0 differ" in found, found


@pytest.mark.parity
def test_every_op():
    """A leaf, a turned operand and an inference tensor: what PyTorch refuses, what requires grad, values, strides, gradients, shared memory."""
    found = run("tests.fuzz.sweep", "--most", "1", "--kinds", "leaf", "turned", "inference", NUMBA_DISABLE_JIT="1")
    assert "{'programs': " in found and found.count(" after step ") == 0, found


@pytest.mark.parity
def test_operands_of_every_kind():
    """Each 17th program of the sweep: of integers, complex numbers, other ranks, expanded memory, nothing at all."""
    found = run("tests.fuzz.sweep", "--every", "17", NUMBA_DISABLE_JIT="1")
    assert "{'programs': " in found and found.count(" after step ") == 0 and "died" not in found, found


@pytest.mark.parity
def test_gradients_have_the_memory_that_they_seem_to_have():
    found = run("tests.fuzz.memory", NUMBA_DISABLE_JIT="1")
    assert " programs, 0 differ" in found, found


@pytest.mark.parity
def test_programs():
    found = drawn("--programs", str(PROGRAMS), "--skip", ",".join(map(str, KNOWN)), NUMBA_DISABLE_JIT="1")
    assert f"{PROGRAMS} programs, 0 differ" in found, found


@pytest.mark.parity
def test_programs_that_are_replayed():
    """As without, after programs that are nearly the same have been noted."""
    found = drawn("--replays", "--programs", str(REPLAYED), NUMBA_DISABLE_JIT="1")
    assert f"{REPLAYED} programs, 0 differ" in found and " 0 passes" not in found and " 0 calls" not in found, found


@pytest.mark.parity
def test_ops_that_are_replayed():
    """Each 29th op, with operands of all kinds in turn."""
    found = run("tests.fuzz.replays", "--every", "29", NUMBA_DISABLE_JIT="1")
    assert found.startswith("0 differ; ") and " 0 passes" not in found and " 0 calls" not in found, found


@pytest.mark.parity
def test_compiled_functions():
    found = drawn("--programs", str(FUNCTIONS), "--compiled", NUMBA_DISABLE_JIT="0", NUMBA_BOUNDSCHECK="0")
    assert f"{FUNCTIONS} programs, 0 differ" in found, found


@pytest.mark.parity
@pytest.mark.parametrize("name", SHRUNK)
def test_functions_that_once_differed(name):
    from .check import difference

    found = difference(SHRUNK[name])
    assert found is None, found
