"""Times of small pieces of code: `Timer` runs one again and again, `Measurement` is what it found, `Compare` a table of several.

    >>> from autograd_nb.utils.benchmark import Timer
    >>> found = Timer("x + 1", globals={"x": torch.ones(3)}).timeit(10)
    >>> found.number_per_run, found.median > 0
    (10, True)

The first run of an op may compile its kernel: a timer runs the code before it takes the time. Source:
https://docs.pytorch.org/docs/stable/benchmark_utils.html
"""

from __future__ import annotations

import inspect
import math
import statistics
import sys
import textwrap
import time
import timeit
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property
from typing import Any

from .. import config

timer: Callable[[], float] = time.perf_counter
_UNITS = {"ns": ("nanosecond", 1e-9), "us": ("microsecond", 1e-6), "ms": ("millisecond", 1e-3), "s": ("second", 1.0)}


class Language(Enum):
    """Languages of timed code, of which Python is here.

    >>> torch.utils.benchmark.Language.PYTHON.name
    'PYTHON'
    """

    PYTHON = 0
    CPP = 1


@contextmanager
def set_torch_threads(n: int) -> Iterator[None]:
    """Compute on ``n`` threads within the block."""
    before = config.get_num_threads()
    config.set_num_threads(n)
    try:
        yield
    finally:
        config.set_num_threads(before)


def select_unit(t: float) -> tuple[str, float]:
    """Return the unit in which ``t`` seconds are told, and its length; select_unit(3e-5) is ("us", 1e-06)."""
    unit = list(_UNITS)[min(max(math.floor(math.log10(t)) // 3 + 3, 0), 3)] if t > 0 and math.isfinite(t) else "s"
    return unit, _UNITS[unit][1]


def unit_to_english(u: str) -> str:
    """Return the word for a unit: "us" is "microsecond"."""
    return _UNITS[u][0]


def trim_sigfig(x: float, n: int) -> float:
    """Return ``x`` rounded to ``n`` significant figures; trim_sigfig(1234.5, 2) is 1200.0."""
    if not x or not math.isfinite(x):
        return x
    return float(round(x, n - math.ceil(math.log10(abs(x)))))


def ordered_unique(elements: Iterable[Any]) -> list[Any]:
    """Return the distinct elements in the order of their first occurrence."""
    return list(dict.fromkeys(elements))


@dataclass(init=True, repr=False, eq=True, frozen=True)
class TaskSpec:
    """A piece of code that is timed, and the names under which it is told."""

    stmt: str
    setup: str
    global_setup: str = ""
    label: str | None = None
    sub_label: str | None = None
    description: str | None = None
    env: str | None = None
    num_threads: int = 1

    @property
    def title(self) -> str:
        """Return the label and what is added to it, or else the code."""
        if self.label is not None:
            return self.label + (f": {self.sub_label}" if self.sub_label else "")
        if "\n" not in self.stmt:
            return self.stmt + (f": {self.sub_label}" if self.sub_label else "")
        return f"stmt:{f' ({self.sub_label})' if self.sub_label else ''}\n{textwrap.indent(self.stmt, '  ')}"

    def setup_str(self) -> str:
        """Return the text about the setup, empty for none."""
        if self.setup in ("", "pass"):
            return ""
        return f"setup:\n{textwrap.indent(self.setup, '  ')}" if "\n" in self.setup else f"setup: {self.setup}"

    def summarize(self) -> str:
        """Return title, description and setup as text."""
        return "\n".join(part for part in (self.title, self.description or "", self.setup_str()) if part)


def _quantile(values: list[float], q: float) -> float:
    at = (len(values) - 1) * q
    low = math.floor(at)
    return values[low] + (values[min(low + 1, len(values) - 1)] - values[low]) * (at - low)


@dataclass(init=True, repr=False)
class Measurement:
    """Times that were taken of one task: ``raw_times`` in seconds, each of ``number_per_run`` runs."""

    number_per_run: int
    raw_times: list[float]
    task_spec: TaskSpec
    metadata: dict[Any, Any] | None = field(default=None)

    @property
    def times(self) -> list[float]:
        """Return the seconds of a single run, by each measurement."""
        return [t / self.number_per_run for t in self.raw_times]

    @cached_property
    def _sorted(self) -> list[float]:
        if not self.raw_times:
            raise ValueError("Measurement has no data (raw_times=[])")
        return sorted(self.times)

    @property
    def median(self) -> float:
        """Return the median of the times of a run."""
        return statistics.median(self._sorted)

    @property
    def mean(self) -> float:
        """Return the mean of the times of a run."""
        return statistics.fmean(self._sorted)

    @property
    def iqr(self) -> float:
        """Return the distance between the first and the third quartile."""
        return _quantile(self._sorted, 0.75) - _quantile(self._sorted, 0.25)

    @property
    def significant_figures(self) -> int:
        """Return how many figures of the median are certain, by the spread of the middle half; between 1 and 5."""
        middle = [t for t in self._sorted if _quantile(self._sorted, 0.25) <= t <= _quantile(self._sorted, 0.75)]
        spread = 1.645 * self.iqr / 1.349 / math.sqrt(len(middle) or 1)
        return int(min(max(math.floor(math.log10(self.median / max(spread, 1e-12 * self.median))), 1), 5))

    def meets_confidence(self, threshold: float = 0.1) -> bool:
        """Return whether the middle half of the times differs by less than this share of the median."""
        return self.iqr / self.median < threshold

    @property
    def has_warnings(self) -> bool:
        """Return whether the times differ so much that they tell little."""
        return not self.meets_confidence()

    @property
    def title(self) -> str:
        """Return the task's title."""
        return self.task_spec.title

    @property
    def env(self) -> str:
        """Return the name of the environment, "Unspecified env" for none."""
        return self.task_spec.env or "Unspecified env"

    @property
    def as_row_name(self) -> str:
        """Return the name of this task's row in a table."""
        return self.task_spec.sub_label or self.task_spec.stmt or "[Unknown]"

    def __getattr__(self, name: str) -> Any:
        if name in TaskSpec.__dataclass_fields__:
            return getattr(self.task_spec, name)
        raise AttributeError(name)

    def __repr__(self) -> str:
        """Return title, times and how many there are, as text."""
        unit, scale = select_unit(self.median)
        lines = [f"{object.__repr__(self)[:-1]}>", self.task_spec.summarize()]
        n, runs = len(self.raw_times), self.number_per_run
        if n > 1:
            lines.append(f"  Median: {self.median / scale:.2f} {unit}")
            low, high = _quantile(self._sorted, 0.25) / scale, _quantile(self._sorted, 0.75) / scale
            lines.append(f"  IQR:    {self.iqr / scale:.2f} {unit} ({low:.2f} to {high:.2f})")
        else:
            lines.append(f"  {self.median / scale:.2f} {unit}")
        count = self.task_spec.num_threads
        measured, times, thread = ("s" if k > 1 else "" for k in (n, runs, count))
        lines.append(f"  {n} measurement{measured}, {runs} run{times} {'per measurement' if n > 1 else ''}, {count} thread{thread}")
        if self.has_warnings:
            lines += [f"  WARNING: Interquartile range is {self.iqr / self.median * 100:.1f}% of the median measurement.",
                      "           This suggests significant environmental influence."]  # fmt: skip
        return "\n".join(lines)

    @staticmethod
    def merge(measurements: Iterable[Measurement]) -> list[Measurement]:
        """Return a measurement for each task, with the times of all that are of it."""
        by_task: dict[TaskSpec, list[Measurement]] = {}
        for m in measurements:
            by_task.setdefault(m.task_spec, []).append(m)
        return [Measurement(1, [t for m in group for t in m.times], task) for task, group in by_task.items()]


class Timer:
    """Times ``stmt``, after ``setup``, with the names of ``globals``; on ``num_threads`` threads, as a machine's number would add its own noise.

    ``label``, ``sub_label``, ``description`` and ``env`` name it in tables (`Compare`). Errors: NotImplementedError for C++.

    >>> timer = torch.utils.benchmark.Timer("y.sum()", "y = torch.ones(4)", globals={"torch": torch})
    >>> timer.timeit(5).task_spec.setup
    'y = torch.ones(4)'
    """

    def __init__(
        self, stmt: str = "pass", setup: str = "pass", global_setup: str = "", timer: Callable[[], float] = timer,
        globals: dict[str, Any] | None = None, label: str | None = None, sub_label: str | None = None, description: str | None = None,
        env: str | None = None, num_threads: int = 1, language: Language | str = Language.PYTHON,
    ) -> None:  # fmt: skip
        if not isinstance(stmt, str):
            raise ValueError("Currently only a `str` stmt is supported.")
        if language not in (Language.PYTHON, "py", "python") or global_setup:
            raise NotImplementedError(f"Timer(language={language!r}): code in C++ is not timed here; time Python's (language='python', no global_setup)")
        stmt, setup = (inspect.cleandoc("\n" + text) if text else "pass" for text in (stmt, setup))
        self._task_spec = TaskSpec(stmt, setup, global_setup, label, sub_label, description, env, num_threads)
        names = dict(globals or {})
        names.setdefault("torch", sys.modules[__name__.partition(".")[0]])
        self._timer = timeit.Timer(stmt, setup, timer, names)

    def _timeit(self, number: int) -> float:
        return max(self._timer.timeit(number), 1e-9)

    def timeit(self, number: int = 1000000) -> Measurement:
        """Return the time of ``number`` runs, taken once, after a few that are not counted."""
        with set_torch_threads(self._task_spec.num_threads):
            self._timeit(max(int(number // 100), 2))
            return Measurement(number, [self._timeit(number)], self._task_spec)

    def _block(self, min_run_time: float) -> int:
        """Return how many runs one measurement has, so that taking the time adds little to them."""
        self._timeit(2)  # kernels are compiled in the first run
        over = statistics.median(self._timeit(0) for _ in range(5))
        number = 1
        while True:
            taken = self._timeit(number)
            if (over / taken <= 1e-4 and taken >= min_run_time / 1000) or taken >= min_run_time:
                return number
            number *= 10

    def blocked_autorange(self, callback: Callable[[int, float], Any] | None = None, min_run_time: float = 0.2) -> Measurement:
        """Return measurements of as many runs each as is sensible, for ``min_run_time`` seconds at least; ``callback(runs, seconds)`` sees each."""
        with set_torch_threads(self._task_spec.num_threads):
            number = self._block(min_run_time)
            return self._measured(number, lambda times: sum(times) >= min_run_time, callback)

    def adaptive_autorange(
        self, threshold: float = 0.1, *, min_run_time: float = 0.01, max_run_time: float = 10.0, callback: Callable[[int, float], Any] | None = None
    ) -> Measurement:
        """Return measurements until their middle half differs by less than ``threshold`` of the median, or for ``max_run_time`` seconds."""

        def enough(times: list[float]) -> bool:
            if sum(times) >= max_run_time:
                return True
            return len(times) > 3 and sum(times) >= min_run_time and Measurement(1, times, self._task_spec).meets_confidence(threshold)

        with set_torch_threads(self._task_spec.num_threads):
            return self._measured(self._block(0.05), enough, callback)

    def _measured(self, number: int, enough: Callable[[list[float]], bool], callback: Callable[[int, float], Any] | None) -> Measurement:
        times: list[float] = []
        while not times or not enough(times):
            times.append(self._timeit(number))
            if callback is not None:
                callback(number, times[-1])
        return Measurement(number, times, self._task_spec)


class Compare:
    """A table of measurements: a row for each ``sub_label``, a column for each ``description``, a part for each number of threads.

    >>> B = torch.utils.benchmark
    >>> runs = [B.Measurement(1, [t], B.TaskSpec("f(x)", "", label="f", sub_label="small", description=d)) for d, t in (("old", 2e-6), ("new", 1e-6))]
    >>> [line.split("|")[1:] for line in str(B.Compare(runs)).splitlines()[1:4:2]]
    [['  old  ', '  new  '], ['  2.0  ', '  1.0  ']]
    """

    def __init__(self, results: list[Measurement]):
        self._results: list[Measurement] = []
        self.extend_results(results)
        self._trim, self._highlight = False, False

    def extend_results(self, results: Iterable[Measurement]) -> None:
        """Add measurements. ValueError for what is none."""
        for r in results:
            if not isinstance(r, Measurement):
                raise ValueError(f"Expected an instance of `Measurement`, got {type(r)} instead.")
        self._results.extend(results)

    def trim_significant_figures(self) -> None:
        """Let the tables show no more figures than are certain."""
        self._trim = True

    def colorize(self, rowwise: bool = False) -> None:
        """Do nothing: tables have no colours here."""

    def highlight_warnings(self) -> None:
        """Mark times that differ so much that they tell little, by an exclamation mark."""
        self._highlight = True

    def print(self) -> None:
        """Write the tables of all measurements so far to the standard output."""
        print(str(self))

    def __str__(self) -> str:
        """Return the tables, one for each label."""
        found = Measurement.merge(self._results)
        return "\n".join(self._table(label, [m for m in found if m.task_spec.label == label]) for label in ordered_unique(m.task_spec.label for m in found))

    def _cell(self, m: Measurement | None, scale: float) -> str:
        if m is None:
            return ""
        figures = m.significant_figures
        value = trim_sigfig(m.median, figures) / scale if self._trim else m.median / scale
        digits = 1 if not self._trim else max(figures - math.ceil(math.log10(max(value, 1e-9))), 0)
        return f"{'(! XX%) ' if self._highlight and m.has_warnings else ''}{value:.{digits}f}".replace("XX", f"{m.iqr / m.median * 100:.0f}")

    def _table(self, label: str | None, found: list[Measurement]) -> str:
        unit, scale = select_unit(min(m.median for m in found))
        columns = ordered_unique(m.task_spec.description for m in found)
        rows = ordered_unique((m.task_spec.num_threads, m.env, m.as_row_name) for m in found)
        at = {(m.task_spec.num_threads, m.env, m.as_row_name, m.task_spec.description): m for m in found}
        several = len({row[1] for row in rows}) > 1
        names = [f"      {f'({env})  ' if several else ''}{name}" for _, env, name in rows]
        cells = [[self._cell(at.get((*row, d)), scale) for d in columns] for row in rows]
        widths = [max(len(c) for c in [str(d or ""), *(line[k] for line in cells)]) + 4 for k, d in enumerate(columns)]
        left = max(map(len, names)) + 2
        total = left + sum(w + 1 for w in widths)
        lines = [f"[{f' {label or found[0].task_spec.stmt} ':-^{max(total - 2, 0)}}]",
                 " " * left + "".join("|" + str(d or "").center(w) for d, w in zip(columns, widths, strict=True))]  # fmt: skip
        before = None
        for (n, _, _), name, line in zip(rows, names, cells, strict=True):
            if n != before:
                lines.append(f"{n} threads: ".ljust(total, "-"))
                before = n
            lines.append(name.ljust(left) + "".join("|" + c.rjust(w - 2) + "  " for c, w in zip(line, widths, strict=True)))
        return "\n".join([*lines, "", f"Times are in {unit_to_english(unit)}s ({unit}).", ""])
