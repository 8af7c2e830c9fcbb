"""Print how long this library takes relative to PyTorch: ``python bench/ratios.py [name…]``.

Both run in one process on one thread, in turn, block by block; a row gives the median of the blocks' ratios and the median
time of a round. Before anything is timed the results are compared. Then the times of starting up, each in processes of
their own. Without PyTorch only this library's times are printed.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import autograd_nb
from bench.cases import KERNELS, MODELS, OVERHEAD

try:
    import torch
except ImportError:
    torch = None


def rounds_for(run: Any, seconds: float) -> int:
    start = time.perf_counter()
    run()
    once = time.perf_counter() - start
    return max(1, int(seconds / max(once, 1e-7)))


def block(run: Any, rounds: int) -> float:
    start = time.perf_counter()
    for _ in range(rounds):
        run()
    return (time.perf_counter() - start) / rounds


def compare(case: Any, blocks: int = 15, seconds: float = 0.08) -> tuple[float, float | None, float | None]:
    """(our seconds, PyTorch's, the median ratio)."""
    ours = case(autograd_nb)
    mine = ours().copy()
    if torch is None:
        n = rounds_for(ours, seconds)
        return statistics.median(block(ours, n) for _ in range(blocks)), None, None
    theirs = case(torch)
    np.testing.assert_allclose(mine, theirs(), rtol=2e-4, atol=2e-5)
    n, k = rounds_for(ours, seconds), rounds_for(theirs, seconds)
    times = []
    for _ in range(blocks):
        a = block(ours, n)
        times.append((a, block(theirs, k)))
    return (
        statistics.median(a for a, _ in times),
        statistics.median(b for _, b in times),
        statistics.median(a / b for a, b in times),
    )


def process(code: str, cache: str) -> float:
    """Seconds that a fresh interpreter needs for ``code``, less what an empty one needs."""
    environment = {**os.environ, "AUTOGRAD_NB_CACHE_DIR": cache}

    def once(text: str) -> float:
        start = time.perf_counter()
        subprocess.run([sys.executable, "-c", text], check=True, env=environment, cwd=Path(__file__).resolve().parent.parent)
        return time.perf_counter() - start

    empty = min(once("pass") for _ in range(3))
    return once(code) - empty


GRADIENT = "import autograd_nb as ag; x = ag.tensor([1.0, 2.0], requires_grad=True); (x * x).sum().backward(); x.grad.tolist()"
FIRST_STEP = "import autograd_nb as ag; from bench.cases import two_branch_step; two_branch_step(ag)()"


def startup() -> None:
    print("\n| start-up | seconds | bound |\n|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        cold, warm, steps = (str(Path(folder, n)) for n in ("cold", "warm", "steps"))
        imports = statistics.median(process("import autograd_nb", warm) for _ in range(5))
        print(f"| import autograd_nb | {imports:.2f} | 0.25 |")
        print(f"| import and first gradient, cold kernel cache | {process(GRADIENT, cold):.2f} | 4 |")
        process(GRADIENT, warm)
        again = statistics.median(process(GRADIENT, warm) for _ in range(5))
        print(f"| import and first gradient, warm kernel cache | {again:.2f} | 1.2 |")
        print(f"| two-branch net: import and first step, cold | {process(FIRST_STEP, steps):.2f} | 15 |")
        print(f"| two-branch net: import and first step, warm | {process(FIRST_STEP, steps):.2f} | |")


def main(names: list[str]) -> int:
    if torch is not None:
        torch.set_num_threads(1)
    print("| case | ours | PyTorch | ratio | bound |\n|---|---|---|---|---|")
    missed = 0
    for case, bound in [*OVERHEAD, *KERNELS, *MODELS]:
        if names and not any(n in case.__name__ for n in names):
            continue
        ours, theirs, ratio = compare(case)
        text = f"{theirs * 1e6:,.1f} µs | {ratio:.2f}" if ratio is not None and theirs is not None else "not installed | "
        over = ratio is not None and bound is not None and ratio > bound
        missed += over
        print(f"| {case.__name__} | {ours * 1e6:,.1f} µs | {text} | {bound or ''}{' missed' if over else ''} |", flush=True)
    if not names or "startup" in names:
        startup()
    return missed


if __name__ == "__main__":
    sys.exit(1 if main(sys.argv[1:]) else 0)
