"""Where the time of compiled training steps goes: ``python -m bench.programs WORD…`` times each record of the cases' programs.

``--step`` times whole steps, the fastest of many, ``--pythons`` so by several interpreters in turn: what disturbs the machine disturbs all alike.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
from collections.abc import Callable, Iterator
from typing import Any

from bench.case import Case
from bench.cases import CASES
from bench.measure import ROOT, block

TURNS, BLOCKS, CALLS = 5, 30, 200


def cases(words: list[str]) -> Iterator[Case]:
    return (c for c in CASES if c.compiled and any(w.lower() in c.name.lower() for w in words))


def captured(case: Case) -> Any:
    """The compiled step of a case, after some calls; one thread."""
    import autograd_nb as ag

    ag.set_num_threads(1)
    step = ag.compile(case.build(ag).step)
    for _ in range(4):
        step()
    return step


def fastest(step: Callable[[], Any]) -> float:
    """Seconds of a call: the least of many blocks."""
    return min(block(step, range(CALLS)) for _ in range(BLOCKS))


def by(python: str, words: list[str]) -> dict[str, float]:
    """Seconds of the cases' steps by an interpreter, in a process of its own, and its version."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [python, "-m", "bench.programs", "--step", "--json", *words]
    done = subprocess.run(command, cwd=ROOT, env=environment, check=True, capture_output=True, text=True)
    return json.loads(done.stdout.splitlines()[-1])  # type: ignore[no-any-return]


def compared(pythons: list[str], words: list[str]) -> None:
    """Print the steps' times by several interpreters."""
    turns = [{p: by(p, words) for p in pythons} for _ in range(TURNS)]
    for name in turns[0][pythons[0]]:
        print(f"{name:28s}" + "".join(f"  {p} {min(t[p][name] for t in turns) * 1e6:.1f} µs" for p in pythons))


def steps(words: list[str], as_json: bool) -> None:
    """Print the time of each case's whole step."""
    found = {c.name: fastest(captured(c)) for c in cases(words)}
    print(json.dumps(found) if as_json else "\n".join(f"{name:28s} {seconds * 1e6:8.1f} µs" for name, seconds in found.items()))


def profiles(words: list[str], calls: int, kernels: bool) -> None:
    """Print the time of each record of the cases' programs."""
    from autograd_nb.compiler.run.profile import profile

    for case in cases(words):
        step = captured(case)
        if not step.programs:
            print(f"{case.name}: not captured")
            continue
        program = step.programs[0].program
        found = profile(step, step.programs[0], calls)
        print(f"-- {case.name}: memory {program.arena_bytes:,} of {program.unshared_bytes:,} bytes")
        print("\n".join(str(found).splitlines()[len(found.times) + 1 :]) if kernels else found)


def main(given: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="bench.programs", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("words", nargs="+", help="cases whose name contains one of them")
    parser.add_argument("--calls", type=int, default=20)
    parser.add_argument("--kernels", action="store_true", help="only the sums by kernel")
    parser.add_argument("--step", action="store_true", help="only the time of a whole step")
    parser.add_argument("--json", action="store_true", help="these times, in seconds, as JSON")
    parser.add_argument("--pythons", nargs="+", default=[], metavar="PYTHON", help="these times by each of these interpreters")
    options = parser.parse_args(given)
    if options.pythons:
        compared(options.pythons, options.words)
    elif options.step or options.json:
        steps(options.words, options.json)
    else:
        profiles(options.words, options.calls, options.kernels)


if __name__ == "__main__":
    main()
