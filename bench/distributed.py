"""What several processes cost: ``python -m bench.distributed [--quick] [--torch PYTHON] [--model] [--page docs/distributed.md]``.

Collectives and training steps of this library beside bare MPI and, where an interpreter with PyTorch is named, beside gloo: the same program
(`bench.ranks.program`). Run it by an interpreter that has the extra ``mpi``, alone on the machine. Every time is a median; each rank has one thread.
Each line that has an aim says whether it is met. ``--model``: only all-reductions of many sizes, beside what the model of their cost says; a page gets both.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.optimize import nnls

from autograd_nb.distributed.launcher import find_mpiexec, is_open_mpi, near

from .ranks import link

ROOT = Path(__file__).parents[1]
PROGRAM = ROOT / "bench" / "ranks" / "program.py"
PATIENCE = 100  #: seconds for one job


def _environment(**more: str) -> dict[str, str]:
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("PMI", "MPI", "OMPI", "RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_"))}
    return {**kept, "PYTHONPATH": str(ROOT), "AUTOGRAD_NB_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", **more}


def _result(out: str) -> dict[str, float]:
    found = [line.partition("RESULT ")[2] for line in out.splitlines() if "RESULT " in line]
    return json.loads(found[-1]) if found else {}


def here(ranks: int, cases: str, rounds: int) -> dict[str, float]:
    """Return the seconds of some cases on this library."""
    mpiexec = find_mpiexec()
    command = [mpiexec, "-n", str(ranks), *near(is_open_mpi(mpiexec)), sys.executable, str(PROGRAM), "autograd_nb", cases, str(rounds)]
    try:
        ended = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, env=_environment(), check=False)
    except subprocess.TimeoutExpired:
        print(f"{ranks} ranks: {cases} took longer than {PATIENCE} s", file=sys.stderr)
        return {}
    if ended.returncode:
        print(ended.stderr[-2000:], file=sys.stderr)
    return _result(ended.stdout)


def there(python: str, ranks: int, cases: str, rounds: int, port: int) -> dict[str, float]:
    """Return the seconds of some cases on PyTorch with gloo."""
    words = {"WORLD_SIZE": str(ranks), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    command = [python, str(PROGRAM), "torch", cases, str(rounds)]
    jobs = [
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=_environment(RANK=str(r), **words))
        for r in range(ranks)
    ]
    try:
        return _result("".join([job.communicate(timeout=PATIENCE)[0] for job in jobs]))
    finally:
        for job in jobs:
            job.kill()


@dataclass
class Line:
    """A time of this library beside another one, in seconds, and what it is to be: ``aim`` says it, ``met`` whether it is so."""

    name: str
    ranks: int
    ours: float | None
    other: float | None
    beside: str
    aim: str = ""
    most: float | None = None  #: of the ratio
    slowest: float | None = None  #: of the time itself

    @property
    def met(self) -> str:
        if not self.aim or self.ours is None or (self.most is not None and not self.other):
            return ""
        ratio = self.ours / self.other if self.other else 0.0
        good = (self.most is None or ratio <= self.most) and (self.slowest is None or self.ours <= self.slowest)
        return "yes" if good else "no"

    def __str__(self) -> str:
        def said(seconds: float | None) -> str:
            return "–" if seconds is None else f"{seconds * 1e6:,.0f}"

        ratio = f"{self.ours / self.other:.2f}" if self.ours and self.other else "–"
        return f"| {self.name} | {self.ranks} | {said(self.ours)} | {self.beside} {said(self.other)} | {ratio} | {self.aim} | {self.met} |"


def table(python: str | None, quick: bool) -> list[str]:
    """Run everything; the lines of the table."""
    rounds, port = (100 if quick else 300), 29611
    lines = ["| what | ranks | µs here | µs beside | ratio | aim | met |", "|---|---|---|---|---|---|---|"]
    collectives, steps = "all-reduce 1 KB,all-reduce 4 MB", "mlp,branches"
    found = here(2, f"{collectives},bare 1 KB,bare 4 MB,hidden", rounds)
    small, large = (found.get(case) for case in collectives.split(","))
    rows = [
        Line("all-reduce 1 KB", 2, small, found.get("bare 1 KB"), "MPI", "≤ 60 µs", slowest=60e-6),
        Line("all-reduce 4 MB", 2, large, found.get("bare 4 MB"), "MPI", "≤ 1.2", 1.2),
    ]
    if python:
        gloo = there(python, 2, collectives, rounds, port)
        rows += [
            Line("all-reduce 1 KB", 2, small, gloo.get("all-reduce 1 KB"), "gloo"),
            Line("all-reduce 4 MB", 2, large, gloo.get("all-reduce 4 MB"), "gloo", "≤ 0.6", 0.6),
        ]
    for ranks in (1, 2, 3):
        ours = here(ranks, f"{steps},mlp alone,mlp compiled", rounds)
        gloo = there(python, ranks, steps, rounds, port + ranks) if python else {}
        rows += [Line(f"step of DDP, {case}", ranks, ours.get(case), gloo.get(case), "gloo", "< 1", 1.0) for case in steps.split(",") if python]
        if ranks == 1:
            rows.append(Line("step of DDP, mlp", 1, ours.get("mlp"), ours.get("mlp alone"), "without DDP", "≤ 1.05", 1.05))
        rows.append(Line("compiled step of DDP, mlp", ranks, ours.get("mlp compiled"), ours.get("mlp"), "eager", "≤ 0.5", 0.5))
    wide, cases = "step of DDP, 24 MB of gradients", "wide,wide compiled,wide alone"
    places = [("", here(2, cases, rounds))] + ([] if link.missing() else [(" over a link of 1 Gbit/s", over_a_link("1gbit", cases, min(rounds, 100)))])
    for where, took in places:  # eager steps send buckets meanwhile, compiled ones wait for each
        rows.append(Line(f"{wide}{where}", 2, took.get("wide"), took.get("wide alone"), "without DDP"))
        rows.append(Line(f"compiled {wide}{where}", 2, took.get("wide compiled"), took.get("wide"), "eager"))
    first = None
    for ranks in (1, 2, 3, 4):
        took = here(ranks, "mlp large", max(rounds // 5, 20)).get("mlp large")
        first = first or took
        rows.append(Line("weak scaling: 1,024 examples a rank", ranks, took, first, "one rank"))
    lines += map(str, rows)
    share = found.get("hidden")
    if share is not None:
        met = "met" if share >= 0.5 else "not met"
        lines += ["", f"Of an artificial delay of 4 ms for each bucket the backward pass hides {share:.0%} (aim: at least half, {met})."]
    return lines


SIZES = [1 << k for k in range(10, 25, 2)]  #: bytes of the all-reductions that the model is fitted to


def fitted(points: list[tuple[int, int, float]]) -> tuple[float, float]:
    """Return α and β of T = 2·log₂P·α + 2(P−1)/P·n·β for points (P, n, T), by least squares of what they miss as shares of T."""
    a = np.array([[2 * math.log2(p) / t, 2 * (p - 1) / p * n / t] for p, n, t in points])
    alpha, beta = nnls(a, np.ones(len(points)))[0]
    return float(alpha), float(beta)


def over_a_link(rate: str, cases: str, rounds: int, port: int = 29650) -> dict[str, float]:
    """Return the seconds of some cases on two hosts with a link of this rate between them: see `bench.ranks.link`."""
    command = [sys.executable, str(PROGRAM), "autograd_nb", cases, str(rounds)]
    with link.two_hosts(rate) as hosts:
        jobs = link.ranks(hosts, command, _environment(), port)
        return _result("".join([job.communicate(timeout=PATIENCE)[0] for job in jobs]))


def _beside_the_model(points: list[tuple[int, int, float]], fit: list[tuple[int, int, float]], where: str) -> list[str]:
    alpha, beta = fitted(fit)
    lines = [f"{where}: α = {alpha * 1e6:.1f} µs a message, β = {beta * 1e9:.3f} ns a byte ({1 / beta / 1e9:.2f} GB/s).", ""]
    lines += ["| ranks | bytes | µs measured | µs by the model |", "|---|---|---|---|"]
    for p, n, t in points:
        said = 2 * math.log2(p) * alpha + 2 * (p - 1) / p * n * beta
        lines.append(f"| {p} | {n:,} | {t * 1e6:,.0f} | {said * 1e6:,.0f} |")
    return lines


def model(quick: bool, rate: str) -> list[str]:
    """Measure all-reductions of many sizes, here and over a link; the tables of the points beside the model of what they cost."""
    cases, rounds = [f"reduce {n}" for n in SIZES], 30 if quick else 200
    points = []
    for ranks in (2, 3, 4):
        found = here(ranks, ",".join(cases), rounds)
        points += [(ranks, n, found[case]) for n, case in zip(SIZES, cases, strict=True) if case in found]
    own = [p for p in points if p[0] <= (os.cpu_count() or 1)] or points  # more ranks than cores wait for their turn, which the model knows not
    lines = _beside_the_model(points, own, "One machine, fitted to the points with no more ranks than cores")
    reason = link.missing()
    if reason:
        return [*lines, "", f"Two hosts were not measured: {reason}."]
    found = over_a_link(rate, ",".join(cases), max(rounds // 10, 5))
    points = [(2, n, found[case]) for n, case in zip(SIZES, cases, strict=True) if case in found]
    paced = [p for p in points if not 4096 < p[1] < 1 << 20]
    where = f"Two hosts (network namespaces) with a link of {rate} between them, fitted without the sizes that it lets through at once ({link.BURST})"
    return [*lines, "", *_beside_the_model(points, paced, where)]


def write(page: Path, name: str, lines: list[str]) -> None:
    """Put lines between a page's two marks of this name. ValueError where it has none."""
    begin, end, text = f"<!-- {name} -->", f"<!-- end of {name} -->", page.read_text()
    if begin not in text or end not in text:
        raise ValueError(f"{page}: has no marks {begin} … {end}")
    before, _, rest = text.partition(begin)
    page.write_text(before + "\n".join([begin, "", *lines, "", end]) + rest.partition(end)[2])


def main() -> None:
    """Print the table, and write it to a page where one is named."""
    words = argparse.ArgumentParser(prog="python -m bench.distributed", description=(__doc__ or "").split("\n")[0])
    words.add_argument("--quick", action="store_true", help="a third of the rounds")
    words.add_argument("--torch", help="an interpreter that has PyTorch, to compare with gloo")
    words.add_argument("--model", action="store_true", help="measure only what all-reductions cost by ranks and bytes, beside the model")
    words.add_argument("--link", default="1gbit", help="for the model: the rate of the link between two hosts, as `tc` writes it (needs root)")
    words.add_argument("--page", type=Path, help="a page that gets both tables between its marks: docs/distributed.md")
    given = words.parse_args()
    parts = {} if given.model else {"measured": table(given.torch, given.quick)}
    if given.model or given.page:
        parts["model"] = model(given.quick, given.link)
    for name, lines in parts.items():
        print("\n".join(lines))
        if given.page:
            write(given.page, name, lines)


if __name__ == "__main__":
    main()
