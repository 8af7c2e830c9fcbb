"""Whole programs on 1, 2 and 4 ranks."""

from __future__ import annotations

import json
import sys

import pytest

from .jobs import needs_mpi, started


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
