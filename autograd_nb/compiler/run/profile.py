"""Where a compiled program's time goes: each of its records timed by itself, in ordinary calls."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from statistics import median
from time import perf_counter_ns
from typing import Any

from ...graph import markup
from ..ir import show, written_at
from ..lower.executable import Executable


class Profile:
    """Times of a program's steps, in µs: ``times`` by the step, the median of all calls."""

    _program: Executable
    times: dict[int, float]

    def __init__(self, program: Executable, times: dict[int, float]):
        self._program, self.times = program, times

    @property
    def total(self) -> float:
        """Return the sum over all steps."""
        return sum(self.times.values())

    def by_name(self) -> list[tuple[str, int, float]]:
        """Return (kernel, how many steps, µs of all of them), the longest first."""
        found: dict[str, list[float]] = {}
        for i, t in self.times.items():
            found.setdefault(self._program.steps[i].name, []).append(t)
        return sorted(((n, len(t), sum(t)) for n, t in found.items()), key=lambda row: -row[2])

    def __str__(self) -> str:
        lines = [f"{i:4d} {t:9.2f} µs  {show(self._program.steps[i])}" for i, t in sorted(self.times.items())]
        lines += ["", *(f"{t:9.1f} µs {t / self.total:5.1%} {count:4d} × {name}" for name, count, t in self.by_name())]
        return "\n".join([*lines, f"{self.total:9.1f} µs in {len(self.times)} steps"])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        """Return what notebooks show: the kernels, the longest first, each unfolding to its steps and the lines that they came from."""
        kernels = [(name, count, f"{t:,.1f}", f"{t / self.total:.1%}") for name, count, t in self.by_name()]
        kernels.append((f"{len(kernels)} kernels", len(self.times), f"{self.total:,.1f}", "100.0%"))
        steps = [(i, self._program.steps[i].name, f"{t:,.2f}", written_at(self._program.steps[i])) for i, t in sorted(self.times.items())]
        return markup.page(
            markup.table(("kernel", "steps", "µs", "share"), kernels, words=(0,)),
            markup.fold("Each step in turn", markup.table(("step", "kernel", "µs", "line"), steps, words=(1, 3))),
        )


@contextmanager
def _timed(variant: Any) -> Iterator[dict[int, int]]:
    """Let a captured call's steps be timed while the context is open: step -> nanoseconds, which the reader clears."""
    program: Executable = variant.program
    table = program.table
    record = {place: k for k, place in enumerate(table.places)}
    state = variant.state
    fast_path, quick, state.fast_path, state.call = state.fast_path, state.call, None, None
    spent: dict[int, int] = {}

    def drive(start: int, words: int) -> None:
        at = start
        while at < start + words:
            k, length = record[at], int(program.records[at + 2])
            before = perf_counter_ns()
            Executable.drive(program, at, length)
            spent[table.steps[k]] = spent.get(table.steps[k], 0) + perf_counter_ns() - before
            at += length

    program.drive = drive  # type: ignore[method-assign]
    try:
        yield spent
    finally:
        del program.drive
        state.fast_path, state.call = fast_path, quick


def profile(call: Callable[[], Any], *variants: Any, calls: int = 20) -> Profile:
    """Return the times of a captured call's steps while ``call()`` runs it ``calls`` times, for real: what it updates is updated.

    Of several ``variants`` it is the first that runs. RuntimeError where none does.
    """
    with ExitStack() as stack:
        watched = [(variant, stack.enter_context(_timed(variant))) for variant in variants]
        seen: dict[Any, dict[int, list[int]]] = {variant: {} for variant in variants}
        for _ in range(calls):
            for _, spent in watched:
                spent.clear()
            call()
            for variant, spent in watched:
                for i, t in spent.items():
                    seen[variant].setdefault(i, []).append(t)
    ran = next((variant for variant in variants if seen[variant]), None)
    if ran is None:
        raise RuntimeError("this call runs no program: it runs eagerly, and print(step) says why; torch.profiler.profile() times what runs eagerly")
    return Profile(ran.program, {i: median(t) / 1000 for i, t in sorted(seen[ran].items())})
