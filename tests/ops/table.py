"""Operands for the generated op tests, as declarations describe them, and better references than an op's own formula.

A new op needs no line here: its formula on Python floats is the reference, ``samples=`` of its declaration the domain
of its operands, ``dtypes=`` the kinds of numbers that they are.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import scipy.special as special

from autograd_nb.ops.core.registry import OPS, OpInfo

#: op -> the function of the same operands in NumPy or SciPy, where that has another name there, or none
REFERENCES = {
    "sigmoid": special.expit, "lgamma": special.gammaln, "trigamma": lambda x: special.polygamma(1, x), "frac": lambda x: x - np.trunc(x),
    "relu": lambda x: np.maximum(x, 0), "mul": np.multiply, "sub": np.subtract, "div": np.divide, "neg": np.negative,
    "rsqrt": lambda x: 1 / np.sqrt(x), "eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater,
    "ge": np.greater_equal, "addcmul": lambda a, b, c, v: a + v * b * c, "addcdiv": lambda a, b, c, v: a + v * b / c,
    "i0": special.i0,  # NumPy's is less exact
    "bessel_j0": special.j0, "bessel_j1": special.j1, "bessel_y0": special.y0, "bessel_y1": special.y1,
    "spherical_bessel_j0": lambda x: special.spherical_jn(0, x), "modified_bessel_k0": special.k0, "modified_bessel_k1": special.k1,
    "scaled_modified_bessel_k0": special.k0e, "scaled_modified_bessel_k1": special.k1e, "airy_ai": lambda x: special.airy(x)[0],
}  # fmt: skip


def reference(name: str) -> Callable[..., np.ndarray]:
    """What an op computes, as a function of arrays that is not ours where there is one: of its name, or in the table above."""
    short = name.rpartition(".")[2]
    of_others = REFERENCES.get(name) or getattr(np, short, None) or getattr(special, short, None)
    return of_others or np.vectorize(OPS[name].rule.formula)


def dtype_of(name: str) -> str:
    """The widest dtype of an op's operands that is not complex."""
    return "float64" if "float" in OPS[name].dtypes else "int64"


def domain(name: str, operand: int) -> tuple[float, float]:
    """The range of the values that an operand has in tests, as the op's declaration says it; what is no op has the usual one."""
    found = OPS[name].samples if name in OPS else OpInfo.samples
    return found[operand] if isinstance(found[0], tuple) else found


def sample(name: str, operand: int, shape: tuple[int, ...], dtype: str, seed: int = 0) -> np.ndarray:
    """Values inside an operand's domain, away from each other so that ties and kinks are not hit by chance."""
    low, high = domain(name, operand)
    rng = np.random.default_rng([seed, operand, *map(ord, name)])
    n = math.prod(shape)
    values = low + (high - low) * (rng.permutation(n) + rng.uniform(0.25, 0.75, n)) / max(n, 1)
    if np.dtype(dtype).kind in "iu":
        values = np.round(values)
    return values.reshape(shape).astype(dtype)
