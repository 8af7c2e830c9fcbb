"""What the benches of small calls share: each case is a step here and one of PyTorch's, timed in turn on one thread each."""

from __future__ import annotations

import argparse
import math
import time
import warnings
from collections.abc import Callable, Iterable
from typing import Any

import torch

import autograd_nb as ours
from bench.cliffs.__main__ import measured
from bench.run import confine

WORST = 1.2
SETTLED, SETTLING = 100, 0.1  #: calls before the first that counts, of short steps; seconds that they take of long ones

Step = Callable[[], Any]
Case = tuple[str, str, list[Step]]  #: name, kind, steps


def main(text: str | None, cases: Callable[[list[str]], Iterable[Case]], passes_over: tuple[type[Exception], ...] = ()) -> None:
    """Run the bench that ``text`` describes, of the cases that its words choose: both libraries on one thread, and nobody warns."""
    parser = argparse.ArgumentParser(description=(text or "").partition("\n")[0])
    parser.add_argument("words", nargs="*", help="which cases")
    parser.add_argument("--all", action="store_true", help="print every case")
    options = parser.parse_args()
    confine(1)
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    ours.set_num_threads(1)
    report(cases(options.words), options.all, passes_over)


def settle(steps: list[Step]) -> None:
    """Call the steps until plans are made."""
    end = time.perf_counter() + SETTLING
    for number in range(SETTLED):
        for step in steps:
            step()
        if number > 2 and time.perf_counter() > end:
            return


def report(cases: Iterable[Case], every: bool, passes_over: tuple[type[Exception], ...]) -> None:
    """Print the cases (name, kind, steps) that take more than `WORST` of PyTorch's time, or ``every`` one, and the geometric means by kind.

    passes_over: errors of a step that only one of the libraries raises, whose case does not count.
    """
    ratios: dict[str, list[float]] = {}
    print(f"{'µs':<90} {'here':>9} {'PyTorch':>9} {'ratio':>7}")
    for name, kind, steps in cases:
        try:
            settle(steps)
            mine, theirs = measured(steps, 0.0)
        except passes_over:
            continue
        ratios.setdefault(kind, []).append(mine / theirs)
        if every or mine / theirs > WORST:
            print(f"{name + ', ' + kind:<90} {mine * 1e6:9.1f} {theirs * 1e6:9.1f} {mine / theirs:7.2f}", flush=True)
    for kind, found in ratios.items():
        mean = math.exp(sum(map(math.log, found)) / len(found))
        print(f"{kind}: {len(found)} cases, geometric mean {mean:.2f}, {sum(r > WORST for r in found)} above {WORST}, {sum(r > 2 for r in found)} above 2")
