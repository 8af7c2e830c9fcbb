"""PyTorch's op database: every op for dense tensors, but for the few of `KNOWN`, agrees with PyTorch on its samples.

``python -m tests.parity.opdb`` runs all samples; here a dtype has at most `MOST` of them (OPDB_SAMPLES sets another number), so
that a run from a cold kernel cache stays short.
"""

from __future__ import annotations

import os

import pytest

torch = pytest.importorskip("torch")

from torch.testing._internal.common_methods_invocations import op_db  # noqa: E402

from .opdb import check, outside, title  # noqa: E402

MOST = int(os.environ.get("OPDB_SAMPLES", "12"))
#: entries that do not pass whole, and why
KNOWN: dict[str, str] = {
    "linalg.norm (subgradients_at_zero)": "the second derivative of a norm at 0 is 0 here, nan in PyTorch",
}
#: error inputs that are not refused: (op, how many)
LENIENT: dict[str, int] = {"cat": 1}  # an out= that PyTorch has resized into an overlap by then


@pytest.mark.parity
@pytest.mark.parametrize("op", [op for op in op_db if not outside(title(op))], ids=title)
def test_op(op):
    outcome = check(op, MOST, (torch.float64, torch.float32, torch.int64, torch.bool))
    if title(op) in KNOWN:
        pytest.xfail(KNOWN[title(op)])
    assert outcome.state == "passed", "\n".join(outcome.reasons)
    assert outcome.second_passed >= outcome.second - (title(op) == "cov"), "\n".join(outcome.reasons)  # 0 beside 3e-5, in float32
    assert outcome.errors - outcome.refused <= LENIENT.get(title(op), 0), "\n".join(outcome.reasons)


@pytest.mark.parity
def test_all_names_are_in_the_database():
    assert {title(op) for op in op_db} >= set(KNOWN) | set(LENIENT)
