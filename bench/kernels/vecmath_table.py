"""A table of the elementary functions: errors in ulp, and time per float32 element against NumPy and PyTorch on one thread.

    python bench/kernels/vecmath_table.py

Times are the best of many rounds over 65,536 elements that stay in the L2 cache; run it while the machine is idle.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from time import perf_counter

import numpy as np
from scipy import special

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from autograd_nb.codegen.build.compilation import build
from autograd_nb.codegen.formula.namespace import m
from autograd_nb.codegen.templates import loops

try:
    import torch

    torch.set_num_threads(1)
except ImportError:
    torch = None

SIZE = 1 << 16
ROUNDS = 200


def expit(x: np.ndarray) -> np.ndarray:
    e = np.exp(-np.abs(x))
    return np.where(x < 0, e, 1) / (1 + e)


# name: (reference, lowest and highest argument for timing, does the reference take long double)
UNARY: dict[str, tuple[Callable, float, float, bool]] = {
    "exp": (np.exp, -10, 10, True), "exp2": (np.exp2, -10, 10, True), "expm1": (np.expm1, -10, 10, True),
    "sigmoid": (expit, -10, 10, True), "log": (np.log, 0.01, 100, True), "log2": (np.log2, 0.01, 100, True),
    "log10": (np.log10, 0.01, 100, True), "log1p": (np.log1p, -0.9, 100, True), "tanh": (np.tanh, -5, 5, True),
    "sinh": (np.sinh, -5, 5, True), "cosh": (np.cosh, -5, 5, True), "asinh": (np.arcsinh, -50, 50, True),
    "acosh": (np.arccosh, 1, 50, True), "atanh": (np.arctanh, -0.99, 0.99, True), "sin": (np.sin, -10, 10, True),
    "cos": (np.cos, -10, 10, True), "tan": (np.tan, -10, 10, True), "asin": (np.arcsin, -1, 1, True),
    "acos": (np.arccos, -1, 1, True), "atan": (np.arctan, -10, 10, True), "rsqrt": (lambda x: 1 / np.sqrt(x), 0.01, 100, True),
    "erf": (special.erf, -3, 3, False), "erfc": (special.erfc, -3, 5, False), "erfinv": (special.erfinv, -1, 1, False),
    "lgamma": (special.gammaln, 0.01, 30, False), "digamma": (special.digamma, 0.01, 30, False),
}  # fmt: skip
BINARY: dict[str, Callable] = {"pow": np.power, "atan2": np.arctan2, "hypot": np.hypot, "fmod": np.fmod}


def compiled(name: str, dtype: str, operands: int) -> Callable:
    body = loops.trace_body(lambda *x: (getattr(m, name)(*x),), [loops.Input(dtype)] * operands, dtype, [dtype])
    return build(loops.pointwise_flat(body), "kernel", (f"{dtype}[:]",) * (operands + 1))


def nanoseconds(function: Callable, *operands: object) -> float:
    best = float("inf")
    for _ in range(ROUNDS):
        start = perf_counter()
        function(*operands)
        best = min(best, perf_counter() - start)
    return best / SIZE * 1e9


def worst(kernel: Callable, reference: Callable, operands: tuple[np.ndarray, ...], wide: type) -> float:
    """The largest error in ulp where the result is finite (what is not is the tests' business)."""
    got = np.empty_like(operands[0])
    kernel(*operands, got)
    expected = np.asarray(reference(*(x.astype(wide) for x in operands)))
    unit = np.spacing(np.abs(expected.astype(got.dtype))).astype(wide)
    error = np.abs(got.astype(wide) - expected) / unit
    return float(error[np.isfinite(got) & np.isfinite(unit)].max())


def peer(name: str, operands: list[np.ndarray]) -> float:
    """Time of PyTorch's function of that name."""
    function = getattr(torch, name, None) if torch else None
    if function is None:
        return float("nan")
    tensors = [torch.from_numpy(x) for x in operands]
    out = torch.empty_like(tensors[0])
    return nanoseconds(lambda: function(*tensors, out=out))


def main() -> None:
    rng = np.random.default_rng(0)
    np.seterr(all="ignore")
    print("| function | ulp float32 | ulp float64 | ns here | ns float64 here | ns NumPy / SciPy | ns PyTorch |")
    print("|---|---|---|---|---|---|---|")
    patterns = np.arange(0, 2**32, 1499, dtype=np.uint64).astype(np.uint32).view(np.float32)
    n = 100_000
    doubles = np.concatenate(
        [rng.normal(0, 1, n), rng.uniform(-30, 30, n), rng.uniform(-700, 700, n), 10 ** rng.uniform(-300, 3, n)]
    )
    for name, (reference, low, high, extended) in UNARY.items():
        x = rng.uniform(low, high, SIZE).astype(np.float32)
        single, double = compiled(name, "float32", 1), compiled(name, "float64", 1)
        error32 = worst(single, reference, (patterns,), np.float64)
        error64 = f"{worst(double, reference, (doubles,), np.longdouble):.2f}" if extended else ""
        y, y64 = np.empty_like(x), np.empty(SIZE)
        own, own64 = nanoseconds(single, x, y), nanoseconds(double, x.astype(np.float64), y64)
        numpy, other = nanoseconds(reference, x), peer(name, [x])
        print(f"| {name} | {error32:.2f} | {error64} | {own:.2f} | {own64:.2f} | {numpy:.2f} | {other:.2f} |", flush=True)
    for name, reference in BINARY.items():
        a, b = (rng.uniform(0.1, 4, SIZE).astype(np.float32) for _ in range(2))
        single, double = compiled(name, "float32", 2), compiled(name, "float64", 2)
        pair = (rng.permutation(patterns), rng.permutation(patterns))
        error32 = max(worst(single, reference, v, np.float64) for v in (pair, (a, b)))
        error64 = worst(double, reference, (doubles, rng.permutation(doubles)), np.longdouble)
        own = nanoseconds(single, a, b, np.empty_like(a))
        own64 = nanoseconds(double, a.astype(np.float64), b.astype(np.float64), np.empty(SIZE))
        numpy, other = nanoseconds(reference, a, b), peer(name, [a, b])
        print(f"| {name} | {error32:.2f} | {error64:.2f} | {own:.2f} | {own64:.2f} | {numpy:.2f} | {other:.2f} |", flush=True)


if __name__ == "__main__":
    main()
