"""No kernel of the nine programs of `bench.cold` has more code than is recorded: `tests/compile_budget.py` tells how to record anew."""

from __future__ import annotations

import pytest

from bench.cold.programs import PROGRAMS
from tests import compile_budget as budget

ANEW = "If that is meant: python -m tests.compile_budget writes the table anew; say why in the commit."

on_level = pytest.mark.skipif(not budget.fits(), reason=f"kernels of {budget.LEVEL} do not run on this processor")


def test_the_table_is_as_it_is_written():
    recorded, total = budget.read(budget.TABLE.read_text())
    assert total == budget.sums(recorded), "the sums do not fit the lines: " + ANEW
    assert budget.written(recorded) == budget.TABLE.read_text()


def test_what_grew_is_found():
    small, large, many = {"add(float32[:])": [(395, 25)]}, {"add(float32[:])": [(600, 25)]}, {"add(float32[:])": [(395, 40)]}
    assert not budget.grown(small, small) and not budget.grown(small, {"another(int64)": [(9999, 99)]})
    assert len(budget.grown(small, large)) == len(budget.grown(small, many)) == 1 and "600" in budget.grown(small, large)[0]
    assert budget.changes(small, large) == ["add(float32[:]): 395/25 → 600/25"] and not budget.changes(small, small)


@on_level
def test_kernels_of_a_first_gradient_stay_within_their_bounds():
    recorded, _ = budget.read(budget.TABLE.read_text())
    sizes = budget.measured(["first gradient"])
    assert set(sizes) <= set(recorded), ANEW
    assert not budget.grown(recorded, sizes), ANEW


@pytest.mark.slow
@on_level
def test_all_kernels_stay_within_their_bounds():
    """Those that are not in the table count in the sums, which are bounded too."""
    recorded, total = budget.read(budget.TABLE.read_text())
    sizes = budget.measured(list(PROGRAMS))
    assert not budget.grown(recorded, sizes), ANEW
    now = budget.sums(sizes)
    assert all(n <= most * budget.TOTAL_SLACK for n, most in zip(now, total, strict=True)), (
        f"instructions, blocks, kernels: {now}, where {total} are recorded.\n" + "\n".join(budget.changes(recorded, sizes)) + "\n" + ANEW
    )
