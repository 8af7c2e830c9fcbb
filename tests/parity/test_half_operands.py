"""Half precision beside numbers, 0-d tensors and whole numbers: PyTorch rounds these before it computes, but for factors."""

from __future__ import annotations

import warnings
from collections.abc import Iterator

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import autograd_nb as ag  # noqa: E402
from autograd_nb.ops.core.registry import OPS  # noqa: E402

from ..ops.test_observed import POINTWISE  # noqa: E402
from .snippets import check  # noqa: E402

#: what PyTorch rounds between its steps besides, and what has operands of another meaning
KNOWN = {"xlogy", "xlog1py", "ldexp", "polar", "complex", "where", "glu", "prelu"}
BINARY = [name for name in POINTWISE if len(OPS[name].rule.params) == 2 and name not in KNOWN]
NUMBERS = (1.0001, 0.3333333, 1.23456789, 2.7181, 0.11111, -0.7)
OTHERS = {
    "number": lambda library, v: v,
    "0-d float64": lambda library, v: library.tensor(v, dtype=library.float64),
    "0-d float32": lambda library, v: library.tensor(v, dtype=library.float32),
    "whole": lambda library, v: library.full((60,), int(v * 1000)),
}


def both(name: str, given: np.ndarray, d: str, other: str, v: float) -> Iterator[np.ndarray]:
    """What this library, and what PyTorch computes."""
    for library in (ag, torch):
        x = library.tensor(given).to(getattr(library, d))
        function = getattr(library, name, None) or getattr(library.special, name)
        yield np.atleast_1d(function(x, OTHERS[other](library, v)).double().numpy())


@pytest.mark.parity
@pytest.mark.parametrize("d", ["float16", "bfloat16"])
@pytest.mark.parametrize("name", BINARY)
def test_what_stands_beside_half_precision_is_rounded(name, d):
    given = np.random.default_rng(0).uniform(0.1, 3, 60)
    compared = 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for other in OTHERS:
            for v in NUMBERS:
                values = np.append(given[:-1], v)
                try:
                    mine, theirs = both(name, values, d, other, v)
                except (
                    RuntimeError,
                    TypeError,
                    NotImplementedError,
                    AttributeError,
                ):  # PyTorch has none of halves, or of numbers
                    continue
                compared += 1
                np.testing.assert_array_equal(mine, theirs, f"{name} of {d} and a {other} {v}")
    if not compared:
        pytest.skip("PyTorch has none")


CALLS = {
    "x == 0.1": "r = (t.tensor([0.1, 0.2], dtype=d) == 0.1)",
    "clamp": "y = x.clamp(0.1, 0.7); r = y.float(), g(y)",
    "clamp_min": "y = x.clamp(min=0.1); r = y.float(), g(y)",
    "clamp_max": "y = x.clamp(max=0.7); r = y.float(), g(y)",
    "clamp by a 0-d": "y = x.clamp(min=t.tensor(0.1)); r = y.float(), g(y)",
    "hardshrink": "y = F.hardshrink(x, 0.1); r = y.float(), g(y)",
    "threshold": "y = F.threshold(x, 0.1, 0.7); r = y.float(), g(y)",
    "add, alpha": "y = x.add(0.1, alpha=0.3); r = y.float(), g(y)",
    "add_": "y = (x * 1).add_(0.1); r = y.float(), g(y)",
    "number - x": "y = 0.1 - x; r = y.float(), g(y)",
    "number * x": "y = 0.1 * x; r = y.float(), g(y)",
    "complex number / x": "y = 2j / (x.detach() + 2); r = y.cfloat(), str(y.dtype)[-9:]",
    "number / x": "y = 0.1 / (x + 2); r = y.float(), g(y)",
    "x / number": "y = x / 0.1; r = y.float(), g(y)",
    "mask": "r = x.detach()[x.detach() >= 0.7].float()",
    "number ** x": "y = 0.1 ** x; r = y.float(), g(y)",
    "maximum": "y = t.maximum(x, t.tensor(0.1)); r = y.float(), g(y)",
    "normalize of zeros": "y = F.normalize(x * 0, dim=0); r = y.float()",
    "0-d leaf": "w = t.tensor(0.1, requires_grad=True); y = x + w; r = y.float(), t.autograd.grad(y.sum(), w)[0]",
    "0-d leaf, mul": "w = t.tensor(0.1, requires_grad=True); y = x * w; r = y.float(), t.autograd.grad(y.sum(), w)[0]",
}


@pytest.mark.parity
@pytest.mark.parametrize("d", ["float16", "bfloat16"])
def test_masks_and_gradients_see_rounded_numbers(d):
    before = (
        f"d = t.{d}; x = t.tensor([0.1, 0.7, -0.1, 0.5, 1.3], dtype=d, requires_grad=True)\n"
        "g = lambda y: t.autograd.grad(y.sum(), x)[0].float()"
    )
    check(CALLS, before, 5e-3)  # (sums of gradients are rounded once here)


HISTOGRAMS = {
    f"{call}, {shape}": f"x = t.linspace(-1, 3, {n}).to(d).reshape({shape}); e = t.tensor([-1., 0.5, 1.5, 3.]).to(d); r = {call}"
    for shape, n in (((), 1), ((1,), 1), ((7,), 7), ((0,), 0), ((3, 4), 12))
    for call in ("t.histogram(x, e)", "t.histogram(x, e, weight=x)", "t.histogram(x, e, density=True)", "t.histogram(x, 3)", "t.histogram(x, 3, range=(0, 2))")
} | {
    f"{call}, {n}": f"x = t.linspace(-1, 3, 2 * {n}).to(d).reshape({n}, 2); e = t.tensor([-1., 0.5, 1.5, 3.]).to(d); r = {call}"
    for n in (0, 1, 5) for call in ("t.histogramdd(x, [e, e])", "t.histogramdd(x, [e, e[:3]], weight=x[:, 0])", "t.histogramdd(x, [2, 2])",
                               "t.histogramdd(x, 2)",
                               "t.histogramdd(x, 2, range=(0., 1., 0., 2.))")
}  # fmt: skip


@pytest.mark.parity
@pytest.mark.parametrize("d", ["float16", "bfloat16"])
def test_histograms(d):
    """Where edges are given; what they are is worked out in wider dtypes only."""
    check(HISTOGRAMS, f"d = t.{d}", 5e-3)
