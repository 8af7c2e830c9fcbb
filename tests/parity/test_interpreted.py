"""Without a compiler (``NUMBA_DISABLE_JIT=1``, the debugger's mode) every op of PyTorch's database gives what PyTorch gives.

The first sample of each op in each dtype: values, gradients, second derivatives, other spellings; see `opdb`.
"""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

pytest.importorskip("torch")

PARTS = 4
WALK = """
import sys
from tests.parity import opdb
from tests.parity.test_op_db import KNOWN
failed = walked = 0
for op in [op for op in opdb.op_db if not opdb.outside(opdb.title(op))][int(sys.argv[1])::int(sys.argv[2])]:
    row = opdb.check(op, 1, errors=False)
    walked += row.passed
    if row.state == "failed" and row.name not in KNOWN:
        failed += 1
        print(row.name, row.reasons)
print(walked)
sys.exit(failed > 0)
"""


@pytest.mark.parity
@pytest.mark.parametrize("part", range(PARTS))
def test_the_first_sample_of_each_op(part):
    command = [sys.executable, "-c", WALK, str(part), str(PARTS)]
    run = subprocess.run(command, env={**os.environ, "NUMBA_DISABLE_JIT": "1"}, capture_output=True, text=True, timeout=1500)
    assert run.returncode == 0, run.stdout[-4000:] + run.stderr[-2000:]
    assert int(run.stdout.rsplit(None, 1)[-1]) > 200


@pytest.mark.parity
def test_overflow_and_division_by_zero():
    command = [sys.executable, "-m", "tests.parity.extremes"]
    run = subprocess.run(command, env={**os.environ, "NUMBA_DISABLE_JIT": "1"}, capture_output=True, text=True, timeout=1500)
    assert run.returncode == 0, run.stdout[-4000:] + run.stderr[-2000:]
    assert int(run.stdout.splitlines()[-1].split()[0]) > 1000
