"""Time everything and print one table: ``make bench``, or ``python -m bench.run [word…] [--quick] [--threads N]``.

A word selects the cases whose suite, group or name contains it. A ratio is this library's time divided by a peer's, the median
over interleaved blocks in one process; "limit" is the share of the measured copy bandwidth or BLAS peak. A row's second line is
the same step under `compile()`. Peers that are not installed are listed and left out. What was measured is written to
bench/results/latest.json; --write makes docs/benchmarks.md of it, with plots.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path
from typing import Any

HERE = Path(__file__).absolute().parent
LATEST = HERE / "results" / "latest.json"


def arguments(given: list[str] | None = None) -> argparse.Namespace:
    p = argparse.ArgumentParser(prog="bench", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("words", nargs="*", help="only cases whose suite, group or name contains one of these; 'startup' for start-up")
    p.add_argument("--quick", action="store_true", help="fewer sizes, fewer and shorter blocks, no start-up, one thread only")
    p.add_argument("--threads", type=int, default=1, help="for every library (default 1)")
    p.add_argument("--threaded", action="store_true", help="only the cases of the section on several threads")
    p.add_argument("--peers", help="a comma-separated choice of compiled, PyTorch, torch.compile, JAX, autograd, MyGrad, NumPy")
    p.add_argument("--blocks", type=int, help="blocks of each peer (default 15, quick 5); 0 only compares results")
    p.add_argument("--seconds", type=float, help="length of a block (default 0.05, quick 0.01)")
    p.add_argument("--json", type=Path, help=f"where to write (default bench/results/{LATEST.name})")
    p.add_argument("--compare", type=Path, metavar="FILE", help="show what changed against an earlier JSON file")
    p.add_argument("--memory", action="store_true", help="peak memory of the models' steps too, in processes of their own")
    p.add_argument("--write", action="store_true", help="write docs/benchmarks.md and its plots")
    p.add_argument("--list", action="store_true", help="name the cases and stop")
    a = p.parse_args(given)
    a.blocks = a.blocks if a.blocks is not None else 5 if a.quick else 15
    a.seconds = a.seconds or (0.01 if a.quick else 0.05)
    return a


def confine(threads: int) -> None:
    """Keep the process, and every library's pool, to so many processors; before NumPy is imported."""
    if hasattr(os, "sched_setaffinity"):
        known = os.environ.setdefault("BENCH_CPUS", ",".join(map(str, sorted(os.sched_getaffinity(0)))))
        os.sched_setaffinity(0, [int(cpu) for cpu in known.split(",")][-threads:])
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "AUTOGRAD_NB_NUM_THREADS"):
        os.environ[name] = str(threads)
    os.environ.setdefault("JAX_PLATFORMS", "cpu")


def machine() -> dict[str, Any]:
    from importlib import metadata

    def version(package: str) -> str:
        try:
            return metadata.version(package)
        except metadata.PackageNotFoundError:
            return ""

    model = platform.processor() or platform.machine()
    if Path("/proc/cpuinfo").exists():
        lines = [s for s in Path("/proc/cpuinfo").read_text().splitlines() if s.startswith("model name")]
        model = lines[0].partition(":")[2].strip() if lines else model
    names = ("numba", "numpy", "scipy", "torch", "jax", "autograd", "mygrad")
    return {
        "processor": model, "processors": len(os.environ.get("BENCH_CPUS", "0").split(",")), "python": platform.python_version(),
        "versions": {n: v for n in names if (v := version(n))},
    }  # fmt: skip


def chosen(words: list[str], quick: bool, threaded: bool) -> list[Any]:
    """The cases that are asked for, each group together."""
    from bench.cases import CASES

    order = list(dict.fromkeys((c.suite, c.group) for c in CASES))
    found = [
        c for c in CASES
        if (not quick or c.quick) and (not threaded or c.threaded)
        and (not words or any(w.lower() in f"{c.suite} / {c.group} / {c.name}".lower() for w in words))
    ]  # fmt: skip
    return sorted(found, key=lambda c: order.index((c.suite, c.group)))


def measure_all(a: argparse.Namespace, peers: list[str], quiet: bool = False) -> dict[str, Any]:
    """The whole result, as it is written to JSON."""
    import autograd_nb
    from bench import measure, report
    from bench.case import COMPILED, OURS, TORCH, missing

    autograd_nb.set_num_threads(a.threads)
    if TORCH in peers and not missing(TORCH):
        import torch

        torch.set_num_threads(a.threads)
    result: dict[str, Any] = {"machine": machine(), "threads": a.threads, "quick": a.quick, "rows": [], "startup": [], "memory": []}
    result["limits"] = limit = measure.limits(a.threads) if a.blocks else {"bytes": 1.0, "flops": 1.0}
    table = report.Table([p for p in peers if p not in (OURS, COMPILED) and not missing(p)], limit)
    if not quiet:
        absent = {p: missing(p) for p in peers if p not in (OURS, COMPILED) and missing(p)}
        print(report.heading(result, absent))
        table.head()
    for case in chosen(a.words, a.quick, a.threaded):
        row = measure.measure(case, peers, a.blocks, a.seconds)
        result["rows"].append(row)
        if not quiet:
            table.row(row)
    if a.memory:
        kinds = [p for p in peers if p in (OURS, COMPILED, TORCH) and not (p == TORCH and missing(p))]
        result["memory"] = [measure.memory(c, kinds, a.threads) for c in chosen(a.words, a.quick, False) if c.suite == "models"]
    alone = not a.words and not a.quick and not a.threaded and a.blocks
    if alone or "startup" in a.words:
        result["startup"] = measure.startup()
    if alone and a.threads == 1 and result["machine"]["processors"] > 1:
        result["two threads"] = in_two_threads(a)
    return result


def in_two_threads(a: argparse.Namespace) -> list[dict[str, Any]]:
    """The cases marked as threaded once more, by a process of its own that every library may give two threads."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "two.json")
        command = [
            sys.executable, "-m", "bench.run", "--threads", "2", "--threaded", "--blocks", str(a.blocks), "--seconds", str(a.seconds),
            "--json", str(path), "--peers", "PyTorch",
        ]  # fmt: skip
        environment = {**os.environ, "PYTHONPATH": str(HERE.parent)}
        done = subprocess.run(command, env=environment, stdout=subprocess.DEVNULL, check=False)
        return json.loads(path.read_text())["rows"] if done.returncode in (0, 1) and path.exists() else []


def main(given: list[str] | None = None) -> int:
    a = arguments(given)
    confine(a.threads)
    from bench import report
    from bench.case import COMPILED, OURS, PEERS

    peers = [OURS, COMPILED, *(p for p in PEERS if not (a.quick and p == "torch.compile"))]
    if a.peers is not None:
        names = a.peers.split(",")
        if unknown := [n for n in names if n and n not in (*peers, *PEERS)]:
            sys.exit(f"--peers: there is no {unknown[0]!r}; choose from {', '.join([COMPILED, *PEERS])}")
        peers = [OURS, *(p for p in (COMPILED, *PEERS) if p in names)]
    if a.list:
        print("\n".join(f"{c.suite} / {c.group} / {c.name}" for c in chosen(a.words, a.quick, a.threaded)))
        return 0
    warnings.filterwarnings("ignore", module="jax|torch|mygrad|autograd")
    result = measure_all(a, peers)
    path = a.json or LATEST
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(result, indent=1) + "\n")
    print(report.summary(result))
    if a.compare:
        print(report.changes(json.loads(a.compare.read_text()), result))
    if a.write:
        from bench import page

        print("wrote", *page.write(result, HERE.parent / "docs"))
    return 1 if any(row["problems"] for row in result["rows"]) else 0


if __name__ == "__main__":
    sys.exit(main())
