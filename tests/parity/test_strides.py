"""Strides of results and gradients of operands that are not in C order are PyTorch's: see `strides`.

The kernels run as Python in processes of their own: compiling those of every kind of loop would take much longer.
"""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

PARTS = 4


@pytest.mark.parametrize("part", range(PARTS))
def test_every_op_of_the_database(part):
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1"}
    command = [sys.executable, "-m", "tests.parity.strides", "--quick", f"--part={part}/{PARTS}"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-3000:]
