"""What a new shape costs: ``python -m bench.new_shapes [name …] [--count 400] [--profile]``.

Each row runs one step on ever new sizes, after a few of its kind, and then again on one size: µs a step, ours and PyTorch's, the
least of several blocks of the thread's own time. The last columns are the ratio to PyTorch's step on new sizes, and what a step leaves to
Python's collector of cycles, which is off meanwhile: 0. A size is new to the op once; tables of plans forget the oldest.

``--memory 10000`` runs that many steps on ever new sizes instead, the collector off, and shows after each quarter how many bytes Python has
allocated since the first: what the tables hold until they are full, and nothing more behind that.
"""

from __future__ import annotations

import argparse
import cProfile
import gc
import importlib
import pstats
import time
import tracemalloc
from collections.abc import Callable
from typing import Any

from autograd_nb import launch
from autograd_nb.launch import memory

FIRST, BLOCKS = 3, 20  #: the smallest size; blocks that the sizes of a row are timed in
BOUND = 10  #: times PyTorch's step


def pointwise(lib: Any) -> dict[str, Callable]:
    """Ops of one formula, and what is recorded of them."""
    x, row = lib.ones(1 << 18), lib.ones(16).requires_grad_()

    def big(n: int, needs: bool = False) -> Any:
        """Numbers of n rows, without a kernel that would be counted along."""
        rows = x[: 16 * n].view(n, 16)
        return rows.detach().requires_grad_() if needs else rows

    return {
        "view": lambda n: big(n),
        "tanh": lambda n: big(n).tanh(),
        "add": lambda n: big(n) + big(n),
        "add a row": lambda n: big(n) + row.detach(),
        "transposed": lambda n: big(n).t() * 2.0,
        "in place": lambda n: big(n).add_(1.0),
        "tanh, backward": lambda n: big(n, True).tanh().sum().backward(),
        "mul, sum, backward": lambda n: (big(n, True) * big(n)).sum().backward(),
        "add a row, backward": lambda n: (big(n) + row).sum().backward(),
    }


def structured(lib: Any) -> dict[str, Callable]:
    """Ops with kernels of their own."""
    x, F = lib.ones(1 << 18), lib.nn.functional
    long = lib.zeros(1 << 14, dtype=lib.int64)

    def rows(n: int) -> Any:
        return x[: 16 * n].view(n, 16)

    return {
        "sum": lambda n: rows(n).sum(),
        "sum(0)": lambda n: rows(n).sum(0),
        "amax(1)": lambda n: rows(n).amax(1),
        "x[:n]": lambda n: x[:n],
        "x[index]": lambda n: x[long[:n]],
        "ones": lambda n: lib.ones(n, 3),
        "cat": lambda n: lib.cat([rows(n), rows(2)]),
        "pad": lambda n: F.pad(rows(n), (1, 2)),
        "matmul": lambda n: rows(n) @ rows(16),
        "softmax": lambda n: F.softmax(rows(n), -1),
        "layer_norm": lambda n: F.layer_norm(rows(n), (16,)),
        "cross_entropy": lambda n: F.cross_entropy(rows(n), long[:n]),
        "dropout": lambda n: F.dropout(rows(n), 0.5),
        "cumsum": lambda n: rows(n).cumsum(0),
        "sort": lambda n: rows(n).sort(),
        "clone": lambda n: rows(n).clone(),
        "to": lambda n: rows(n).to(lib.float64),
    }


def steps(lib: Any) -> dict[str, Callable]:
    """Training steps whose batches or lengths vary."""
    nn = lib.nn
    F = nn.functional
    linear, rnn, conv = nn.Linear(16, 8), nn.RNN(4, 8, batch_first=True), nn.Conv2d(2, 3, 3, padding=1)
    mlp = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 10))
    optimizer = lib.optim.SGD(mlp.parameters(), lr=0.01)
    x, y = lib.ones(1 << 18), lib.zeros(1 << 14, dtype=lib.int64)

    def train(n: int) -> None:
        optimizer.zero_grad()
        F.cross_entropy(mlp(x[: 16 * n].view(n, 16)), y[:n]).backward()
        optimizer.step()

    return {
        "linear": lambda n: linear(x[: 16 * n].view(n, 16)).sum().backward(),
        "MLP": train,
        "RNN, length n": lambda n: rnn(x[: 8 * n].view(2, n, 4))[0].sum().backward(),
        "conv, image of n": lambda n: conv(x[: 8 * n].view(1, 2, n, 4)).sum().backward(),
    }


def rows_of(lib: Any) -> dict[str, Callable]:
    return {**pointwise(lib), **structured(lib), **steps(lib)}


def timed(step: Callable, sizes: list[int]) -> float:
    """µs a step, of the best of several blocks."""
    each = max(len(sizes) // BLOCKS, 1)
    found = []
    for k in range(0, len(sizes) - each + 1, each):
        begin = time.thread_time()
        for n in sizes[k : k + each]:
            step(n)
        found.append((time.thread_time() - begin) / each)
    return min(found) * 1e6


def grown(step: Callable, steps: int) -> list[int]:
    """Bytes that Python has allocated after each quarter of so many steps on new sizes, more than after the first few."""
    for n in range(FIRST, FIRST + 40):
        step(n)
    gc.collect()
    tracemalloc.start()
    found = []
    try:
        for k in range(1, steps + 1):
            step(FIRST + 100 + k)
            if k % (steps // 4) == 0:
                memory.release_memory()  # blocks that are kept for the next tensor of their size
                found.append(tracemalloc.get_traced_memory()[0])
    finally:
        tracemalloc.stop()
    return found


def show_memory(rows: dict[str, Callable], steps: int) -> None:
    print(f"{'KB after':20} {''.join(f'{steps * q // 4:10,}' for q in range(1, 5))} steps {'cycles':>10}")
    gc.disable()
    for name, step in rows.items():
        found = grown(step, steps)
        print(f"{name:20} {''.join(f'{b / 1024:10,.0f}' for b in found)}       {gc.collect():10,}", flush=True)
    gc.enable()


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.new_shapes", description=__doc__)
    parser.add_argument("names", nargs="*", help="rows whose name contains one of these")
    parser.add_argument("--count", type=int, default=400, help="new sizes of each row")
    parser.add_argument("--profile", action="store_true", help="where the time of new sizes goes")
    parser.add_argument("--memory", type=int, default=0, metavar="STEPS", help="what so many steps leave in memory")
    options = parser.parse_args()
    ours = rows_of(importlib.import_module("autograd_nb"))
    if options.memory:
        show_memory({name: step for name, step in ours.items() if not options.names or any(n in name for n in options.names)}, options.memory)
        return
    torch = None
    try:
        torch = importlib.import_module("torch")
        torch.set_num_threads(1)
    except ImportError:
        print("PyTorch is not installed: our own figures only")
    theirs = rows_of(torch) if torch is not None else {}
    print(f"{'µs a step':20} {'new':>8} {'PyTorch':>8} {'ratio':>6} {'warm':>8} {'PyTorch':>8} {'garbage':>8}")
    gc.disable()
    for name, step in ours.items():
        if options.names and not any(n in name for n in options.names):
            continue
        few, new = list(range(FIRST, FIRST + 40)), list(range(FIRST + 100, FIRST + 100 + options.count))
        timed(step, few)
        gc.collect()
        launch.forget()  # what other rows have left of the same sizes
        timed(step, few)
        if options.profile:
            profile = cProfile.Profile()
            profile.runcall(timed, step, new)
            pstats.Stats(profile).sort_stats("tottime").print_stats(30)
            continue
        found = timed(step, new)
        garbage = gc.collect() / len(new)
        line = f"{name:20} {found:8.1f}"
        if name in theirs:
            timed(theirs[name], few)
            other = timed(theirs[name], new)
            warm, others = (timed(f, [few[0]] * len(new)) for f in (step, theirs[name]))
            line += f" {other:8.1f} {found / other:6.1f} {warm:8.1f} {others:8.1f}"
        else:
            line += f" {'':8} {'':6} {timed(step, [few[0]] * len(new)):8.1f} {'':8}"
        print(f"{line} {garbage:8.1f}", flush=True)
    gc.enable()


if __name__ == "__main__":
    main()
