"""PyTorch's op database: every op of `op_db_passed.txt` must go on passing (`python -m tests.parity.opdb` runs all of it)."""

from __future__ import annotations

from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from torch.testing._internal.common_methods_invocations import op_db  # noqa: E402

from .opdb import check  # noqa: E402

NAMES = set(Path(__file__).with_name("op_db_passed.txt").read_text().splitlines())
MOST = 10  #: samples of each dtype here; the program runs all


def title(op) -> str:
    return f"{op.name} ({op.variant_test_name})" if op.variant_test_name else op.name


@pytest.mark.parity
@pytest.mark.parametrize("op", [op for op in op_db if title(op) in NAMES], ids=title)
def test_op(op):
    outcome = check(op, MOST, (torch.float64, torch.int64))
    assert outcome.state == "passed", "\n".join(outcome.reasons)


def test_all_names_are_in_the_database():
    assert {title(op) for op in op_db} >= NAMES
