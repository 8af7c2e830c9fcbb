"""Time training steps of many kinds: ``python -m bench.workloads [word …] [--threads N]``, eager and compiled, beside PyTorch.

No kernel was tuned for them. Each runs in turn in one process; its figure is the median of several blocks of calls. Where they begin they
draw different numbers: only times are compared here (`tests/parity` compares values).
"""

from __future__ import annotations

import argparse
import inspect
import math
import statistics
import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any

from bench.run import confine
from bench.workloads import layers, learning, ragged, science, sequences, serving, simulation, tables, vision
from bench.workloads.common import Step

ROOMS = (vision, sequences, learning, science, layers, tables, simulation, serving, ragged)
SETTLED = 12  #: calls before the first that counts
BLOCKS, SECONDS = 9, 0.03  #: of PyTorch's time


def workloads(words: list[str]) -> Iterator[tuple[str, Callable[[Any], Step]]]:
    """Yield the names and functions of the steps whose names have one of the words."""
    for room in ROOMS:
        for name, function in vars(room).items():
            if inspect.isfunction(function) and [*inspect.signature(function).parameters] == ["lib"] and (not words or any(w in name for w in words)):
                yield name, function


def block(step: Step, calls: int) -> float:
    """Return the seconds of a call."""
    begin = time.perf_counter()
    for _ in range(calls):
        step()
    return (time.perf_counter() - begin) / calls


def measured(steps: list[Step]) -> list[float]:
    """Return the seconds of each step."""
    for step in steps:
        block(step, SETTLED)
    calls = max(1, int(SECONDS / block(steps[-1], 3)))
    return [statistics.median(times) for times in zip(*[[block(step, calls) for step in steps] for _ in range(BLOCKS)], strict=True)]


def mean(values: list[float]) -> str:
    return f"{math.exp(sum(map(math.log, values)) / len(values)):.2f}, worst {max(values):.2f}"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.workloads", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("words", nargs="*", help="which: parts of their names")
    parser.add_argument("--threads", type=int, default=1, help="for each library (1)")
    options = parser.parse_args()
    confine(options.threads)
    warnings.simplefilter("ignore")
    import torch

    import autograd_nb as ours

    rows = []
    print(f"{'µs':<24} {'eager':>9} {'compiled':>9} {'PyTorch':>9} {'eager /':>8} {'compiled /':>10} {'compiled / eager':>16}")
    for lib in (ours, torch):
        lib.set_num_threads(options.threads)
    for name, make in workloads(options.words):
        for lib in (ours, torch):
            lib.manual_seed(0)
        e, c, p = measured([make(ours), ours.compile(make(ours)), make(torch)])
        rows.append((e / p, c / p, c / e))
        print(f"{name:<24} {1e6 * e:9.1f} {1e6 * c:9.1f} {1e6 * p:9.1f} {e / p:8.2f} {c / p:10.2f} {c / e:16.2f}", flush=True)
    each = [mean([r[k] for r in rows]) for k in range(3)]
    print(f"{len(rows)} steps, to PyTorch: eager {each[0]}; compiled {each[1]}; compiled to eager {each[2]}")


if __name__ == "__main__":
    main()
