"""Compiled functions beside what they are made of: ``python -m bench.cliffs [word …]`` prints where one is slower than eager.

Each case runs eager and compiled in turn, in this process; its figure is the fastest of many runs. A compiled function shall take at
most `RULE` of eager's time. ``--all`` prints every case.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from typing import Any

import autograd_nb as torch

RULE = 1.05  #: of eager's time
ROUNDS, RUNS = 5, 15

Step = Callable[[], Any]


def parameters(count: int = 200, *shape: int) -> list[Any]:
    found = [torch.randn(*shape or (10, 10)).requires_grad_() for _ in range(count)]
    for p in found:
        p.grad = torch.randn_like(p)
    return found


def optimizers() -> Iterator[tuple[str, Step]]:
    options: dict[str, dict[str, float]] = {"SGD": {}, "SGD momentum": {"momentum": 0.9}, "Adam": {}, "AdamW": {}, "RMSprop": {}, "Adagrad": {}}
    for name, given in options.items():
        optimizer = getattr(torch.optim, name.split()[0])(parameters(), lr=1e-3, **given)
        yield f"{name}, 200 tensors of 10×10", lambda optimizer=optimizer: optimizer.step()
    clipped = parameters()
    yield "clip_grad_norm_, 200 tensors of 10×10", lambda: torch.nn.utils.clip_grad_norm_(clipped, 1.0)


def accumulation() -> Iterator[tuple[str, Step]]:
    losses: dict[str, Callable[[Any], Any]] = {"tanh": lambda x: x.tanh().sum(), "σ·tanh + exp": lambda x: (x.sigmoid() * x.tanh() + x.exp()).sum()}
    for size in (1000, 100_000, 1_000_000):
        for name, loss in losses.items():
            x = torch.randn(size).requires_grad_()
            yield f"{name} of {size:,}, added to a gradient", lambda x=x, loss=loss: loss(x).backward()
    for name, shape, rows in (("bias", (1000,), (100, 1000)), ("column", (100, 1), (100, 1000)), ("number", (), (100, 1000))):
        x, ones = torch.randn(shape).requires_grad_(), torch.ones(rows)
        yield f"{name}, added to a gradient", lambda x=x, ones=ones: (ones * x).tanh().sum().backward()


def results() -> Iterator[tuple[str, Step]]:
    for size in (100, 10_000, 100_000, 1_000_000):
        a, b = torch.randn(size), torch.randn(size)
        yield f"a + b of {size:,}", lambda a=a, b=b: a + b
    for size in (2, 32):
        a, b = torch.randn(size, size), torch.randn(size, size)
        yield f"product {size}×{size}", lambda a=a, b=b: a @ b
    yield "rand(100)", lambda: torch.rand(100)


def fastest(step: Step) -> float:
    best = float("inf")
    for _ in range(RUNS):
        begin = time.perf_counter()
        step()
        best = min(best, time.perf_counter() - begin)
    return best


def measured(step: Step) -> tuple[float, float]:
    """Return seconds, eager and compiled."""
    compiled = torch.compile(step)
    for _ in range(5):  # what is captured anew, and settles
        step(), compiled()
    pairs = [(fastest(step), fastest(compiled)) for _ in range(ROUNDS)]
    return min(e for e, _ in pairs), min(c for _, c in pairs)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.cliffs", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("words", nargs="*", help="cases whose names have one of these (all)")
    parser.add_argument("--all", action="store_true", help="print every case")
    options = parser.parse_args()
    torch.set_num_threads(1)
    cases = [c for family in (optimizers, accumulation, results) for c in family()]
    if options.words:
        cases = [(name, step) for name, step in cases if any(word in name for word in options.words)]
    broken = 0
    print(f"{'case':44s} eager µs  compiled µs  compiled/eager")
    for name, step in cases:
        eager, compiled = measured(step)
        broken += compiled > RULE * eager
        if options.all or compiled > RULE * eager:
            print(f"{name:44s} {eager * 1e6:8.1f}  {compiled * 1e6:11.1f}  {compiled / eager:14.2f}")
    print(f"{broken} of {len(cases)} cases above {RULE}")


if __name__ == "__main__":
    main()
