"""Whole programs on 1, 2 and 4 ranks."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest

from .jobs import job, needs_mpi, started


@needs_mpi
def test_the_curve_is_the_same_on_any_number_of_ranks(tmp_path):
    pytest.importorskip("sklearn")
    losses = {}
    for ranks in (1, 2, 4):
        words = ["-n", str(ranks), "examples/ddp_digits.py", "--epochs", "1", "--out", str(tmp_path / str(ranks))]
        ended = started([sys.executable, "-m", "autograd_nb", "run", *words], 400)
        assert ended.code == 0, ended.out
        losses[ranks] = json.loads((tmp_path / str(ranks)).read_text())
    assert losses[1][0] < 0.68  # less than by guessing
    assert losses[2] == pytest.approx(losses[1], rel=1e-9)
    assert losses[4] == pytest.approx(losses[1], rel=1e-9)


@needs_mpi
@pytest.mark.slow
def test_calls_of_more_bytes_than_an_int_counts():
    free = int(re.search(r"MemAvailable:\s+(\d+)", Path("/proc/meminfo").read_text())[1]) if Path("/proc/meminfo").exists() else 0
    if free < 18e6:
        pytest.skip("needs 18 GB of memory")
    ended = job(2, "-m", "tests.distributed.layouts", "LARGE")
    assert ended.code == 0, ended.out
    assert ended.out.count("ok") == 2
