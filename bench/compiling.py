"""What compiling one kernel costs: ``python -m bench.compiling``.

Processor time of the thread that compiles, the least of five (other programs of the machine add to it), and the calls that
Numba's front end makes meanwhile, which are the same on every machine. What kernels call is compiled before. At last, what that is beside
an empty function of one array, compiled by Numba's own ``njit``.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Callable

import numpy as np


def main() -> None:
    os.environ["AUTOGRAD_NB_CACHE_DIR"] = tempfile.mkdtemp()
    os.environ["AUTOGRAD_NB_COMPILE_WORKERS"] = "0"  # what a worker compiled would not be counted
    from autograd_nb.codegen.build import compilation

    made: list[tuple] = []
    compile_ = compilation._compile
    compilation._compile = lambda *args: made.append(args) or compile_(*args)
    import autograd_nb as ag

    def f32(*shape: int) -> ag.Tensor:
        return ag.ones(*shape, requires_grad=True)

    cases = {
        "add": lambda: f32(8) + f32(8),
        "add, broadcast": lambda: f32(4, 8) + f32(8),
        "tanh": lambda: f32(8).tanh(),
        "gelu, transposed": lambda: ag.nn.functional.gelu(f32(4, 8).t()),
        "sum": lambda: f32(8).sum(),
        "sum of columns": lambda: f32(4, 8).sum(0),
        "var": lambda: f32(4, 8).var(1),
        "softmax": lambda: f32(4, 8).softmax(1),
        "matmul": lambda: f32(4, 8) @ f32(8, 4),
        "flip": lambda: f32(4, 8).flip(0),
        "cumsum": lambda: f32(4, 8).cumsum(1),
        "conv2d": lambda: ag.nn.functional.conv2d(f32(1, 2, 8, 8), f32(2, 2, 3, 3)),
        "cross entropy": lambda: ag.nn.functional.cross_entropy(f32(4, 8), ag.zeros(4, dtype=ag.int64)),
        "attention": lambda: ag.nn.functional.scaled_dot_product_attention(*[f32(1, 2, 8, 4) for _ in range(3)]),
        "LSTM": lambda: ag.nn.LSTM(4, 8)(f32(3, 2, 4)),
    }
    total, kernels, largest = np.zeros(2), 0, 0.0
    for name, case in cases.items():
        made.clear()
        case()
        costs = [_cost(lambda args=args: compile_(args[0], args[1], os.urandom(32).hex(), *args[3:])) for args in made]
        spent = np.sum(costs, axis=0)
        total, kernels, largest = total + spent, kernels + len(costs), max(largest, *(seconds for seconds, _ in costs))
        print(f"{name:20s} {len(made)} kernels {1e3 * spent[0]:7.0f} ms {spent[1]:9.0f} calls")
    print(f"{'all':20s} {1e3 * total[0]:17.0f} ms {total[1]:9.0f} calls")
    empty = _cost(_empty)[0]
    print(f"an empty function, by njit: {1e3 * empty:.0f} ms; to it, the mean kernel {total[0] / kernels / empty:.1f}, the largest {largest / empty:.1f}")


def _empty() -> None:
    """Compile an empty function as Numba does it by itself."""
    import numba

    numba.njit("void(float32[::1])")(lambda x: None)


def _cost(compiling: Callable[[], object]) -> np.ndarray:
    """(seconds, calls) of compiling something another time."""
    least, calls = float("inf"), [0]

    def count(frame: object, event: str, argument: object) -> None:
        calls[0] += event in ("call", "c_call")

    def once() -> float:
        begin = time.thread_time()
        compiling()
        return time.thread_time() - begin

    for _ in range(5):
        least = min(least, once())
    sys.setprofile(count)
    try:
        once()
    finally:
        sys.setprofile(None)
    return np.array([least, calls[0]])


if __name__ == "__main__":
    main()
