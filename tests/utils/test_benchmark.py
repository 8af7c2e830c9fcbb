"""Times of code: how often it is run, what is told of the times, and the tables."""

import pytest

import autograd_nb as torch
from autograd_nb.utils import benchmark
from autograd_nb.utils.benchmark import Compare, Measurement, TaskSpec, Timer


class Clock:
    """Goes on by a millisecond whenever the code runs."""

    now = 0.0

    def __call__(self):
        return self.now

    def run(self):
        self.now += 1e-3


def timed(**options):
    clock = Clock()
    return clock, Timer("clock.run()", timer=clock, globals={"clock": clock}, **options)


def measured(times, label="f", row="x", column=None, runs=1, n=1):
    return Measurement(runs, times, TaskSpec("f(x)", "pass", label=label, sub_label=row, description=column, num_threads=n))


def test_a_number_of_runs_is_timed_once():
    clock, timer = timed()
    found = timer.timeit(200)
    assert (found.number_per_run, len(found.raw_times)) == (200, 1)
    assert found.median == pytest.approx(1e-3)
    assert clock.now == pytest.approx(0.202)  # two runs before, which are not counted


def test_as_long_as_it_takes():
    seen = []
    found = timed()[1].blocked_autorange(lambda runs, t: seen.append((runs, t)), min_run_time=0.05)
    assert sum(found.raw_times) >= 0.05 > sum(found.raw_times[:-1])
    assert seen == [(found.number_per_run, t) for t in found.raw_times]
    steady = timed()[1].adaptive_autorange()
    assert len(steady.raw_times) == 10  # as they take a hundredth of a second
    assert steady.meets_confidence(1e-6)


def test_threads_are_those_asked_for():
    before, seen = torch.get_num_threads(), []
    Timer("seen.append(torch.get_num_threads())", globals={"seen": seen}, num_threads=1).timeit(1)
    assert set(seen) == {1}
    assert torch.get_num_threads() == before


def test_what_is_told_of_times():
    m = measured([4e-6, 2e-6, 6e-6, 8e-6, 10e-6], runs=2, column="new")
    assert (m.median, m.mean, m.iqr) == pytest.approx((3e-6, 3e-6, 2e-6))
    assert m.has_warnings
    assert (m.title, m.as_row_name, m.sub_label, m.env) == ("f: x", "x", "x", "Unspecified env")
    text = repr(m).splitlines()[1:]
    assert text[:4] == ["f: x", "new", "  Median: 3.00 us", "  IQR:    2.00 us (2.00 to 4.00)"]
    assert text[4] == "  5 measurements, 2 runs per measurement, 1 thread"
    assert measured([1.0] * 4).significant_figures == 5
    assert Measurement.merge([m, measured([1.0]), m])[0].times == m.times * 2
    with pytest.raises(ValueError, match="no data"):
        _ = measured([]).median
    with pytest.raises(AttributeError):
        _ = m.colour


def test_tables():
    found = [measured([t], row=r, column=c, n=n) for r, c, n, t in (("x", "a", 1, 2e-6), ("x", "b", 1, 1e-6), ("y", "a", 1, 30e-6), ("x", "a", 2, 3e-6))]
    lines = str(Compare(found)).splitlines()
    assert [word.strip() for word in lines[1].split("|")] == ["", "a", "b"]
    assert lines[2].startswith("1 threads: ---")
    assert [[word.strip() for word in line.split("|")] for line in (lines[3], lines[4], lines[6])] == [
        ["x", "2.0", "1.0"], ["y", "30.0", ""], ["x", "3.0", ""],
    ]  # fmt: skip
    assert lines[5].startswith("2 threads: ---")
    assert lines[-1] == "Times are in microseconds (us)."
    assert len({len(line) for line in lines[:7]}) == 1
    with pytest.raises(ValueError, match="Expected an instance of `Measurement`"):
        Compare([1])


def test_units_and_figures():
    assert [benchmark.select_unit(t)[0] for t in (3e-12, 3e-9, 3e-5, 0.2, 20.0)] == ["ns", "ns", "us", "ms", "s"]
    assert [benchmark.trim_sigfig(x, 2) for x in (1234.5, 0.0123, 0.0)] == [1200.0, 0.012, 0.0]
    assert benchmark.unit_to_english("ms") == "millisecond"
    assert benchmark.ordered_unique([2, 1, 2]) == [2, 1]


def test_what_is_refused():
    with pytest.raises(NotImplementedError, match="C\\+\\+"):
        Timer("f();", language="c++")
    with pytest.raises(ValueError, match="Currently only a `str` stmt"):
        Timer(lambda: None)
