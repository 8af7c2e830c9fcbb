"""`bench.distributed`: the model that is fitted, the lines that say whether an aim is met, and the page that they are written to."""

from __future__ import annotations

import math

import pytest

from bench import distributed as bench


def test_the_model_is_fitted_to_what_it_says_itself():
    alpha, beta = 3e-6, 2e-10
    points = [(p, n, 2 * math.log2(p) * alpha + 2 * (p - 1) / p * n * beta) for p in (2, 3, 4) for n in bench.SIZES]
    assert bench.fitted(points) == pytest.approx((alpha, beta))


@pytest.mark.parametrize(
    ("line", "met"),
    [
        (bench.Line("a", 2, 1e-6, 2e-6, "MPI", "≤ 0.6", 0.6), "yes"),
        (bench.Line("a", 2, 1.3e-6, 2e-6, "MPI", "≤ 0.6", 0.6), "no"),
        (bench.Line("a", 2, 61e-6, 2e-6, "MPI", "≤ 60 µs", slowest=60e-6), "no"),
        (bench.Line("a", 2, 59e-6, None, "MPI", "≤ 60 µs", slowest=60e-6), "yes"),
        (bench.Line("a", 2, 1e-6, None, "gloo", "< 1", 1.0), ""),
        (bench.Line("a", 2, 1e-6, 2e-6, "MPI"), ""),
    ],
)
def test_a_line_says_whether_its_aim_is_met(line, met):
    assert str(line).endswith(f"| {met} |")


def test_a_page_gets_its_lines_between_its_marks(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("a\n<!-- model -->\nold\n<!-- end of model -->\nz\n")
    for lines in (["one", "two"], ["three"]):
        bench.write(page, "model", lines)
        assert page.read_text() == "\n".join(["a", "<!-- model -->", "", *lines, "", "<!-- end of model -->", "z", ""])
    with pytest.raises(ValueError, match="has no marks <!-- measured -->"):
        bench.write(page, "measured", [])
