"""Look for cliffs: ``python -m bench.cliffs [word …]`` prints the cases that break a rule.

Each case runs in PyTorch, eager and compiled in turn, in this process; its figure is the fastest of many runs. The rules: eager at most
`EAGER` of PyTorch's time, compiled at most `COMPILED` of eager's. ``--all`` prints every case, ``--threads 2`` gives each library two,
``--sample N`` takes N cases at random (``--seed``), so that many rounds cover all.
"""

from __future__ import annotations

import argparse
import gc
import math
import random
import time
from collections.abc import Callable
from typing import Any

from bench.run import confine

EAGER, COMPILED = 1.2, 1.05
ROUNDS = 5
RUNS, BLOCK = 15, 0.004  #: of a round: at most so many runs, and about so many seconds
AWAKE = 0.02  #: seconds for which threads that have nothing to do may keep a core: those of libgomp spin for some 10 ms

Step = Callable[[], Any]


def fastest(step: Step, awake: float) -> float:
    """Return the least of some times of a step, which has run for ``awake`` seconds before: then its library's threads are no longer
    asleep, and those of the others are."""
    end = time.perf_counter() + awake
    while time.perf_counter() < end:
        step()
    best, end = float("inf"), time.perf_counter() + BLOCK
    for _ in range(RUNS):
        begin = time.perf_counter()
        step()
        now = time.perf_counter()
        best = min(best, now - begin)
        if now > end:
            break
    return best


def measured(steps: list[Step], awake: float) -> list[float]:
    """Return the seconds of each."""
    for _ in range(5):  # what is captured anew, and settles
        for step in steps:
            step()
    found = [[fastest(step, awake) for step in steps] for _ in range(ROUNDS)]
    return [min(times) for times in zip(*found, strict=True)]


def all_cases(torch: Any, peer: Any) -> list[tuple[str, Callable[[], list[Step]]]]:
    """Return the name of each case and what makes its steps: eager, compiled and, where it is installed, PyTorch's."""
    from bench.cliffs import ops, steps

    def grid_case(make: Callable[[Any], Step]) -> list[Step]:
        return [make(torch), torch.compile(make(torch)), *([make(peer)] if peer else [])]

    found = [(name, lambda make=make: grid_case(make)) for name, make in ops.cases(torch)]
    names = [name for family in steps.FAMILIES for name, _ in family(torch)]

    def step_case(number: int) -> list[Step]:
        both = [[step for _, step in steps.steps(lib)][number] for lib in (torch, torch, peer) if lib]
        return [both[0], torch.compile(both[1]), *both[2:]]

    return found + [(name, lambda number=k: step_case(number)) for k, name in enumerate(names)]


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.cliffs", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("words", nargs="*", help="cases whose names have all of these")
    parser.add_argument("--all", action="store_true", help="print every case")
    parser.add_argument("--threads", type=int, default=1, help="for each library (1)")
    parser.add_argument("--sample", type=int, help="so many cases at random")
    parser.add_argument("--seed", type=int, default=0, help="of the choice (0)")
    return parser.parse_args()


def installed() -> Any:
    try:
        import torch
    except ImportError:
        return None
    return torch


def broken(row: list[float]) -> bool:
    eager, compiled, *peers = row
    return compiled > COMPILED * eager or any(eager > EAGER * peer for peer in peers)


def line(name: str, row: list[float]) -> str:
    eager, compiled, *peers = row
    beside = "".join(f"{peer * 1e6:10.1f}{eager / peer:8.2f}" for peer in peers)
    return f"{name:52s}{eager * 1e6:10.1f}{compiled * 1e6:10.1f}{compiled / eager:8.2f}{beside}"


def summary(rows: list[list[float]]) -> str:
    def mean(values: list[float]) -> str:
        return f"geometric mean {math.exp(sum(map(math.log, values)) / len(values)):.2f}, worst {max(values):.2f}"

    found = [f"{len(rows)} cases, {sum(map(broken, rows))} break a rule", "compiled to eager: " + mean([c / e for e, c, *_ in rows])]
    found[1] += f", {sum(c > COMPILED * e for e, c, *_ in rows)} above {COMPILED}"
    beside = [(e / p, c / p) for e, c, *peers in rows for p in peers]
    if beside:
        found.append("eager to PyTorch: " + mean([e for e, _ in beside]) + f", {sum(e > EAGER for e, _ in beside)} above {EAGER}")
        found.append("compiled to PyTorch: " + mean([c for _, c in beside]))
    return "\n".join(found)


def main() -> None:
    options = arguments()
    confine(options.threads)
    import autograd_nb as torch

    peer = installed()
    for lib in (torch, peer):
        if lib:
            lib.set_num_threads(options.threads)
    cases = [c for c in all_cases(torch, peer) if all(word in c[0] for word in options.words)]
    if options.sample:
        cases = random.Random(options.seed).sample(cases, min(options.sample, len(cases)))
    beside = "   PyTorch eager/PyTorch" if peer else ""
    print(f"{'µs':52s}{'eager':>10s}{'compiled':>10s}  /eager{beside}")
    rows = []
    for name, make in cases:
        rows.append(measured(make(), AWAKE if options.threads > 1 else 0.0))
        if options.all or broken(rows[-1]):
            print(line(name, rows[-1]), flush=True)
        gc.collect()
    if rows:
        print(summary(rows))


if __name__ == "__main__":
    main()
