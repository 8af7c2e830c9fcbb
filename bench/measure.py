"""Times in interleaved blocks, the machine's limits, start-up in processes of their own, peak memory."""

from __future__ import annotations

import gc
import json
import os
import statistics
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from bench.case import COMPILED, OURS, PEERS, TORCH, Case, Disagreement, compare, missing, observe, peers_of, ready

#: the interpreter finds both packages from here; with `bench.compare` the two are of different revisions
ROOT = Path(__file__).absolute().parent.parent


LONG = 20.0  #: seconds that one case may take


def block(step: Callable[[], Any], rounds: range) -> float:
    start = perf_counter()
    for _ in rounds:
        step()
    return (perf_counter() - start) / len(rounds)


def once(step: Callable[[], Any]) -> float:
    """Seconds of a round, to plan with."""
    first = block(step, range(1))
    return first if first > 0.1 else min(first, *(block(step, range(1)) for _ in range(2)))


def interleaved(steps: dict[str, Callable[[], Any]], blocks: int, seconds: float) -> dict[str, list[float]]:
    """Seconds per round of each step, block by block, all in turn: what disturbs the machine disturbs all alike.

    A block takes about ``seconds``, or one round; there are fewer, but 3, where all would take more than `LONG`.
    """
    expected = {name: once(step) for name, step in steps.items()}
    rounds = {name: range(max(1, min(int(seconds / max(t, 1e-7)), 100_000))) for name, t in expected.items()}
    turn = sum(t * len(rounds[name]) for name, t in expected.items())
    blocks = max(min(blocks, 3), min(blocks, int(LONG / turn)))
    times: dict[str, list[float]] = {name: [] for name in steps}
    for i in range(blocks):
        order = list(steps) if i % 2 == 0 else list(reversed(steps))
        for name in order:
            times[name].append(block(steps[name], rounds[name]))
        gc.collect(0)
    return times


def ratio(ours: Sequence[float], theirs: Sequence[float]) -> tuple[float, float]:
    """(median of the blocks' ratios, half the distance between their quartiles relative to it)."""
    all_ratios = [a / b for a, b in zip(ours, theirs, strict=True)]
    middle = statistics.median(all_ratios)
    low, high = np.percentile(all_ratios, [25, 75])
    return middle, float(high - low) / 2 / middle


def measure(case: Case, wanted: Sequence[str], blocks: int, seconds: float, check: bool = True) -> dict[str, Any]:
    """One row of the JSON file: seconds and ratios by peer, after all were found to agree with the first of them.

    Peers that cannot run are in ``skipped`` with the reason, what disagrees in ``problems``.
    """
    row: dict[str, Any] = {
        "name": case.name, "suite": case.suite, "group": case.group, "per": case.per, "size": case.size, "bytes": case.bytes,
        "flops": case.flops, "bounds": case.bounds, "seconds": {}, "ratios": {}, "spread": {}, "skipped": {}, "problems": [],
    }  # fmt: skip
    steps: dict[str, Callable[[], Any]] = {}
    reference: list[np.ndarray] | None = None
    for peer in peers_of(case, wanted):
        if peer in PEERS and (reason := missing(peer)):
            row["skipped"][peer] = reason
            continue
        try:
            with warnings.catch_warnings(record=True) as heard:
                warnings.simplefilter("always")
                program = ready(case, peer)
                start = perf_counter()
                seen = observe(case, program)
                if peer == COMPILED:
                    row["first"] = perf_counter() - start  # captures included
            row["problems"] += [f"{peer}: {w.message}" for w in heard if peer == COMPILED and "runs eagerly" in str(w.message)]
            if reference is None:
                reference = seen
            elif check:
                compare(case, reference, seen, f"{OURS} and {peer}")
        except Disagreement as error:
            row["problems"].append(str(error))
            continue
        except Exception as error:  # whatever a peer does not know how to do
            text = f"{type(error).__name__}: {error}".splitlines()[0][:200]
            row["problems" if peer in (OURS, COMPILED) else "skipped"] = (
                [*row["problems"], f"{peer}: {text}"] if peer in (OURS, COMPILED) else {**row["skipped"], peer: text}
            )
            continue
        steps[peer] = program.step
    reference = None
    if steps and blocks:
        times = interleaved(steps, blocks, seconds)
        for peer, t in times.items():
            row["seconds"][peer] = statistics.median(t) / case.per
        for subject in (OURS, COMPILED):
            for peer in times:
                if subject in times and peer not in (subject, COMPILED):
                    row["ratios"].setdefault(subject, {})[peer], spread = ratio(times[subject], times[peer])
                    row["spread"].setdefault(subject, {})[peer] = spread
    steps.clear()
    gc.collect()
    return row


# ------------------------------------------------------------------------------------------------------- limits


def limits(threads: int = 1) -> dict[str, float]:
    """What the machine gives: bytes per second of a compiled copy of 64 MB, FLOP/s of BLAS in float32."""
    import numba
    from scipy.linalg import blas

    @numba.njit(nogil=True)
    def copy(a: np.ndarray, b: np.ndarray) -> None:
        for i in range(a.size):
            b[i] = a[i]

    source, target = np.ones(1 << 24, np.float32), np.zeros(1 << 24, np.float32)
    copy(source, target)
    bandwidth = 2 * source.nbytes / min(block(lambda: copy(source, target), range(1)) for _ in range(15))
    a, b = (np.asfortranarray(np.random.default_rng(i).standard_normal((1024, 1024), np.float32)) for i in range(2))
    c = np.zeros((1024, 1024), np.float32, order="F")

    def product() -> Any:
        return blas.sgemm(1.0, a, b, 0.0, c, overwrite_c=1)

    product()
    return {"bytes": bandwidth, "flops": 2 * 1024**3 / min(block(product, range(1)) for _ in range(9)), "threads": threads}


def share(row: dict[str, Any], limit: dict[str, float]) -> float | None:
    """The part of the limit that this library reaches; None where the row has none."""
    seconds = row["seconds"].get(OURS)
    if not seconds:
        return None
    if row["flops"]:
        return row["flops"] / seconds / limit["flops"]
    return row["bytes"] / seconds / limit["bytes"] if row["bytes"] else None


# ------------------------------------------------------------------------------------------- in other processes


def run(code: str, **environment: str) -> str:
    """What a fresh interpreter prints."""
    given = {**os.environ, "PYTHONPATH": str(ROOT), **environment}
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", code], env=given, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(done.stderr.strip().splitlines()[-1] if done.stderr.strip() else f"exit status {done.returncode}")
    return done.stdout


def process(code: str, cache: str) -> float:
    """Seconds of a fresh interpreter."""
    start = perf_counter()
    run(code, AUTOGRAD_NB_CACHE_DIR=cache)
    return perf_counter() - start


GRADIENT = "import {0} as t; x = t.tensor([1.0, 2.0], requires_grad=True); (x * x).sum().backward(); x.grad.tolist()"
FIRST_STEP = "import {0} as t; from bench.cases.models import two_branch; two_branch(t).step()"
FIRST_COMPILED = (
    "import autograd_nb as t; from bench.cases import CASES; from bench.case import *; "
    "c = next(c for c in CASES if WHICH in c.name); s = ready(c, COMPILED).step; [s() for _ in range(3)]"
)


def startup(repetitions: int = 5) -> list[dict[str, Any]]:
    """Import, first gradient and first step, cold and warm: seconds beyond those of an empty interpreter."""
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as folder:

        def seconds(code: str, cache: str, times: int) -> float | None:
            path = str(Path(folder, cache))
            try:
                return statistics.median(process(code, path) - process("pass", path) for _ in range(times))
            except RuntimeError as error:
                rows[-1]["problem"] = str(error)
                return None

        def row(name: str, code: str, bound: float | None, cache: str, cold: bool = False, peer: bool = True) -> None:
            rows.append({"name": f"{name}, {'cold' if cold else 'warm'} cache" if cache else name, "bound": bound, TORCH: None})
            times = 1 if cold else repetitions
            rows[-1]["ours"] = seconds(code.format("autograd_nb"), cache, times)
            if peer and not cold and not missing(TORCH):
                rows[-1][TORCH] = seconds(code.format("torch"), cache, times)

        run("import autograd_nb", AUTOGRAD_NB_CACHE_DIR=folder)  # the files are in the system's memory from now on
        row("import", "import {0}", 0.25, "")
        row("import and first gradient", GRADIENT, 4, "gradient", cold=True)
        row("import and first gradient", GRADIENT, 1.2, "gradient")
        row("first step of the two-branch net", FIRST_STEP, 15, "step", cold=True)
        row("first step of the two-branch net", FIRST_STEP, None, "step")
        for i, (case, cold, warm) in enumerate((("MLP 8-16-2", 3, 1), ("two-branch net", 15, 1), ("transformer 4×128", 25, 1))):
            code = FIRST_COMPILED.replace("WHICH", repr(case))
            row(f"compile() of {case}", code, cold, f"compiled {i}", cold=True, peer=False)
            row(f"compile() of {case}", code, warm, f"compiled {i}", peer=False)
    return rows


#: the child's peak: Linux counts it anew after a write to clear_refs, so that compiling and warming up do not count
MEMORY = """
import json, gc
from bench.case import *
from bench.cases import CASES
case = next(c for c in CASES if c.name == {name!r})
def kilobytes(what):
    return next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith(what))
lib = __import__("autograd_nb" if {peer!r} in (OURS, COMPILED) else "torch")
lib.set_num_threads({threads})
x = lib.ones(4, requires_grad=True); (x * x).sum().backward(); del x
start = kilobytes("VmRSS")
program = ready(case, {peer!r})
for _ in range(3): program.step()
gc.collect()
open("/proc/self/clear_refs", "w").write("5")
for _ in range(5): program.step()
print(json.dumps({{"start": start, "peak": kilobytes("VmHWM")}}))
"""


def memory(case: Case, peers: Sequence[str], threads: int = 1) -> dict[str, Any]:
    """Peak resident MB of five training steps, of the process and beyond what it had after import and a first gradient."""
    row: dict[str, Any] = {"name": case.name, "peak": {}, "beyond": {}}
    for peer in peers:
        code = MEMORY.format(name=case.name, peer=peer, threads=threads)
        if peer in (OURS, COMPILED):
            run(code)  # kernels are compiled here, and only loaded below
        found = json.loads(run(code).splitlines()[-1])
        row["peak"][peer] = found["peak"] / 1024
        row["beyond"][peer] = max(found["peak"] - found["start"], 0) / 1024
    return row
