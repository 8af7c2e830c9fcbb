"""An optimizer written in Numba calls functions and gradients that were written with tensors.

`autograd_nb.numba_callable` makes of a function of one tensor a Numba function f(x, g), which returns the value at the array x and
writes the gradient into the array g. The optimizer below, a limited-memory BFGS, is plain Numba code: its loop runs without any
Python. It minimises Rosenbrock's function and fits a logistic regression, beside scipy's L-BFGS-B on the same functions.

    python examples/njit_optimizer.py --out out
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

try:
    import matplotlib
    from sklearn.datasets import load_breast_cancer
    from tqdm import tqdm
except ModuleNotFoundError as missing:
    sys.exit(f"This example needs the package {missing.name!r}: pip install 'autograd_nb[examples]'")

import numpy as np
from numba import njit
from scipy.optimize import minimize

import autograd_nb as torch
import autograd_nb.nn.functional as F

matplotlib.use("Agg")  # pictures go to files; no display is needed
from matplotlib import pyplot as plt


@njit(nogil=True)
def lbfgs(f, x, most, tolerance, memory, values):
    """Minimise f from x on, in place; (evaluations, final value). ``values`` gets the value of each evaluation."""
    n = x.size
    s, y, rho = np.zeros((memory, n)), np.zeros((memory, n)), np.zeros(memory)
    a = np.zeros(memory)
    g, g_new, x_new = np.empty(n), np.empty(n), np.empty(n)
    value = f(x, g)
    values[0] = value
    count, stored = 1, 0
    while count < most and np.abs(g).max() > tolerance:
        d = -g  # the direction: two loops over the last steps
        first = max(0, stored - memory)
        for k in range(stored - 1, first - 1, -1):
            a[k % memory] = rho[k % memory] * np.dot(s[k % memory], d)
            d -= a[k % memory] * y[k % memory]
        if stored:
            last = (stored - 1) % memory
            d *= np.dot(s[last], y[last]) / np.dot(y[last], y[last])
        else:
            d /= max(1.0, np.sqrt(np.dot(d, d)))
        for k in range(first, stored):
            d += s[k % memory] * (a[k % memory] - rho[k % memory] * np.dot(y[k % memory], d))
        slope = np.dot(g, d)
        if slope >= 0:  # no descent: begin anew along the gradient
            stored = 0
            d[:] = -g
            slope = -np.dot(g, g)

        low, high, step = 0.0, np.inf, 1.0  # a step that satisfies the weak Wolfe conditions, by bisection
        found = False
        while count < most and not found:
            x_new[:] = x + step * d
            new = f(x_new, g_new)
            values[count] = new
            count += 1
            if not new <= value + 1e-4 * step * slope:
                high = step
            elif np.dot(g_new, d) < 0.9 * slope:
                low = step
            else:
                found = True
            if not found:
                step = (low + high) / 2 if high < np.inf else 2 * low
                if step < 1e-16:
                    return count, value
        if not found:
            break
        at = stored % memory
        s[at] = x_new - x
        y[at] = g_new - g
        curvature = np.dot(s[at], y[at])
        if curvature > 0:
            rho[at] = 1 / curvature
            stored += 1
        x[:] = x_new
        g[:] = g_new
        value = new
    return count, value


# ------------------------------------------------------------------------------------------------------ two problems


def rosenbrock(x):
    """Σ 100 (x₍ᵢ₊₁₎ − xᵢ²)² + (1 − xᵢ)²: a bent valley with its bottom at (1, …, 1)."""
    return (100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum()


def logistic(weight_decay: float):
    """(loss of a logistic regression on the breast cancer data, its number of weights, accuracy of weights)."""
    data = load_breast_cancer()
    features = (data.data - data.data.mean(0)) / data.data.std(0)
    inputs = torch.from_numpy(np.c_[features, np.ones(len(features))])
    answers = torch.from_numpy(data.target.astype(float))

    def loss(w):
        return F.binary_cross_entropy_with_logits(inputs @ w, answers) + weight_decay * w.square().sum()

    def accuracy(w: np.ndarray) -> float:
        return ((inputs @ torch.from_numpy(w) > 0).double() == answers).double().mean().item()

    return loss, inputs.shape[1], accuracy


def race(function, start: np.ndarray, most: int, repeats: int) -> dict:
    """Both optimizers on a function of a tensor: values, evaluations and milliseconds of each."""
    began = time.perf_counter()
    f = torch.numba_callable(function, start)
    values = np.full(most, np.nan)
    lbfgs(f, start.copy(), 2, 1e-8, 10, values)
    compiling = time.perf_counter() - began

    def ours():
        x = start.copy()
        count, value = lbfgs(f, x, most, 1e-8, 10, values)
        return x, count, value

    def theirs():
        g = np.empty_like(start)
        found = minimize(lambda x: (f(x, g), g.copy()), start, jac=True, method="L-BFGS-B",
                         options={"maxfun": most, "maxiter": most, "maxcor": 10, "gtol": 1e-8, "ftol": 0.0})  # fmt: skip
        return found.x, found.nfev, float(found.fun)

    result = {"compiling": compiling}
    for name, run in (("numba", ours), ("scipy", theirs)):
        times = []
        for _ in range(repeats):
            began = time.perf_counter()
            x, count, value = run()
            times.append(time.perf_counter() - began)
        result[name] = {"x": x, "count": count, "value": value, "ms": 1e3 * min(times)}
    result["values"] = values[: result["numba"]["count"]].copy()
    return result


def draw(path: Path, results: dict[str, dict]) -> None:
    figure, axes = plt.subplots(1, len(results), figsize=(5 * len(results), 3.8), layout="constrained")
    for one, (name, result) in zip(axes, results.items(), strict=True):
        values = result["values"]
        one.semilogy(np.maximum(values - values.min(), 1e-16), ".-", markersize=3, linewidth=0.8)
        one.set(title=name, xlabel="evaluation", ylabel="value above the smallest")
    figure.savefig(path, dpi=110)
    plt.close(figure)


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--dims", type=int, default=50, metavar="N", help="of Rosenbrock's function (50)")
    add("--evaluations", type=int, default=2000, metavar="N", help="at most (2000)")
    add("--repeats", type=int, default=5, metavar="N", help="runs of each, the fastest counts (5)")
    add("--out", type=Path, default=Path("out"), metavar="DIR", help="where the picture is written (out)")
    args = parser.parse_args(argv)
    if args.dims < 2:
        parser.error(f"--dims must be at least 2, got {args.dims}")
    args.out.mkdir(parents=True, exist_ok=True)
    began = time.perf_counter()

    loss, weights, accuracy = logistic(1e-3)
    problems = {
        f"Rosenbrock in {args.dims} dims": (rosenbrock, np.resize([-1.2, 1.0], args.dims).astype(float)),
        f"logistic regression, {weights} weights": (loss, np.zeros(weights)),
    }
    results = {}
    for name, (function, start) in tqdm(problems.items(), unit="problem", disable=None):
        results[name] = race(function, start, args.evaluations, args.repeats)
    for name, result in results.items():
        print(f"{name} (compiled in {result['compiling']:.1f} s)")
        for who in ("numba", "scipy"):
            r = result[who]
            per = 1e3 * r["ms"] / r["count"]
            print(f"  {who}: {r['value']:.10f} after {r['count']:4} evaluations, {r['ms']:7.2f} ms ({per:.1f} µs each)")
    print(f"accuracy of the regression: {accuracy(list(results.values())[1]['numba']['x']):.1%}")
    draw(args.out / "njit_optimizer.png", results)
    print(f"{args.out / 'njit_optimizer.png'}; {time.perf_counter() - began:.1f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
