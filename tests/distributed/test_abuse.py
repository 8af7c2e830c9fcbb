"""Cases of `abuse`, others every day, as many as 8 seconds allow."""

from __future__ import annotations

import sys
from datetime import date

import pytest

from .jobs import needs_mpi, open_mpi, started


@needs_mpi
def test_whatever_a_rank_does_all_end_with_a_named_error():
    if open_mpi():
        pytest.skip("ranks that nobody started together meet by MPICH's protocol")
    ended = started([sys.executable, "-m", "tests.distributed.abuse", "8", str(date.today().toordinal())])
    assert ended.code == 0, ended.out
