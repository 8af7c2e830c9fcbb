"""What several processes cost: ``python -m bench.distributed [--quick] [--torch PYTHON] [--out FILE]``.

Collectives and training steps of this library beside bare MPI and, where an interpreter with PyTorch is named, beside gloo: the same program
(`bench.ranks.program`). Run it by an interpreter that has the extra ``mpi``, alone on the machine. Every time is a median; each rank has one thread.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

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
    beside = Path(sys.prefix) / "bin" / "mpiexec"
    mpiexec = str(beside) if beside.exists() else str(shutil.which("mpiexec"))
    command = [mpiexec, "-n", str(ranks), sys.executable, str(PROGRAM), "autograd_nb", cases, str(rounds)]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, env=_environment(), check=False)
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


def _line(name: str, ranks: int, ours: float | None, other: float | None, beside: str) -> str:
    def said(seconds: float | None) -> str:
        return "–" if seconds is None else f"{seconds * 1e6:,.0f}"

    ratio = f"{ours / other:.2f}" if ours and other else "–"
    return f"| {name} | {ranks} | {said(ours)} | {beside} {said(other)} | {ratio} |"


def table(python: str | None, quick: bool) -> list[str]:
    """Run everything; the lines of the table."""
    rounds, port = (100 if quick else 1000), 29611
    lines = ["| what | ranks | µs here | µs beside | ratio |", "|---|---|---|---|---|"]
    collectives, steps = "all-reduce 1 KB,all-reduce 4 MB", "mlp,branches"
    found = here(2, f"{collectives},bare 1 KB,bare 4 MB,hidden", rounds)
    lines += [_line(f"all-reduce {size}", 2, found.get(f"all-reduce {size}"), found.get(f"bare {size}"), "MPI") for size in ("1 KB", "4 MB")]
    if python:
        gloo = there(python, 2, collectives, rounds, port)
        lines += [_line(case, 2, found.get(case), gloo.get(case), "gloo") for case in collectives.split(",")]
    for ranks in (1, 2, 3):
        ours = here(ranks, f"{steps},mlp alone,mlp compiled", rounds)
        gloo = there(python, ranks, steps, rounds, port + ranks) if python else {}
        lines += [_line(f"step of DDP, {case}", ranks, ours.get(case), gloo.get(case), "gloo") for case in steps.split(",") if python]
        if ranks == 1:
            lines.append(_line("step of DDP, mlp", 1, ours.get("mlp"), ours.get("mlp alone"), "without DDP"))
        lines.append(_line("compiled step of DDP, mlp", ranks, ours.get("mlp compiled"), ours.get("mlp"), "eager"))
    first = None
    for ranks in (1, 2, 3, 4):
        took = here(ranks, "mlp large", max(rounds // 5, 20)).get("mlp large")
        first = first or took
        lines.append(_line("weak scaling: 1,024 examples a rank", ranks, took, first, "one rank"))
    share = found.get("hidden")
    if share is not None:
        lines += ["", f"Of 4 ms of delay per bucket the backward pass hides {share:.0%}."]
    return lines


def main() -> None:
    """Print the table, and write it to a file where one is named."""
    words = argparse.ArgumentParser(prog="python -m bench.distributed", description=(__doc__ or "").split("\n")[0])
    words.add_argument("--quick", action="store_true", help="a tenth of the rounds")
    words.add_argument("--torch", help="an interpreter that has PyTorch, to compare with gloo")
    words.add_argument("--out", help="where the table goes besides the screen")
    given = words.parse_args()
    text = "\n".join(table(given.torch, given.quick))
    print(text)
    if given.out:
        Path(given.out).write_text(text + "\n")


if __name__ == "__main__":
    main()
