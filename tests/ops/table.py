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

#: op -> NumPy/SciPy function of the same operands; for others the op's formula on floats
REFERENCES = {
    "exp": np.exp, "exp2": np.exp2, "expm1": np.expm1, "log": np.log, "log2": np.log2, "log10": np.log10, "log1p": np.log1p,
    "sin": np.sin, "cos": np.cos, "tan": np.tan, "asin": np.arcsin, "acos": np.arccos, "atan": np.arctan, "sinh": np.sinh,
    "cosh": np.cosh, "tanh": np.tanh, "asinh": np.arcsinh, "acosh": np.arccosh, "atanh": np.arctanh, "sinc": np.sinc,
    "deg2rad": np.deg2rad, "rad2deg": np.rad2deg, "sigmoid": special.expit, "erf": special.erf, "erfc": special.erfc,
    "erfinv": special.erfinv, "lgamma": special.gammaln, "digamma": special.digamma, "trigamma": lambda x: special.polygamma(1, x),
    "floor": np.floor, "ceil": np.ceil, "trunc": np.trunc, "frac": lambda x: x - np.trunc(x), "sign": np.sign,
    "signbit": np.signbit, "relu": lambda x: np.maximum(x, 0), "mul": np.multiply, "square": np.square, "neg": np.negative,
    "abs": np.abs, "reciprocal": np.reciprocal, "sqrt": np.sqrt, "rsqrt": lambda x: 1 / np.sqrt(x), "maximum": np.maximum,
    "minimum": np.minimum, "eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater,
    "ge": np.greater_equal, "isnan": np.isnan, "isfinite": np.isfinite, "isinf": np.isinf, "logical_and": np.logical_and,
    "logical_or": np.logical_or, "logical_xor": np.logical_xor, "logical_not": np.logical_not, "atan2": np.arctan2,
    "hypot": np.hypot, "copysign": np.copysign, "xlogy": special.xlogy, "special.xlog1py": special.xlog1py,
    "logaddexp": np.logaddexp, "logaddexp2": np.logaddexp2, "fmax": np.fmax, "fmin": np.fmin, "nextafter": np.nextafter,
    "gcd": np.gcd, "lcm": np.lcm, "bitwise_left_shift": np.left_shift, "bitwise_right_shift": np.right_shift,
    "bitwise_and": np.bitwise_and, "bitwise_or": np.bitwise_or, "bitwise_xor": np.bitwise_xor, "isneginf": np.isneginf,
    "isposinf": np.isposinf, "isreal": np.isreal, "addcmul": lambda a, b, c, v: a + v * b * c,
    "addcdiv": lambda a, b, c, v: a + v * b / c, "add": np.add, "sub": np.subtract, "div": np.divide, "pow": np.power,
    "bessel_j0": special.j0, "bessel_j1": special.j1, "bessel_y0": special.y0, "bessel_y1": special.y1,
    "spherical_bessel_j0": lambda x: special.spherical_jn(0, x), "i0": special.i0, "i1": special.i1, "i0e": special.i0e,
    "i1e": special.i1e, "modified_bessel_k0": special.k0, "modified_bessel_k1": special.k1, "airy_ai": lambda x: special.airy(x)[0],
    "scaled_modified_bessel_k0": special.k0e, "scaled_modified_bessel_k1": special.k1e, "erfcx": special.erfcx,
    "ndtr": special.ndtr, "log_ndtr": special.log_ndtr, "ndtri": special.ndtri, "entr": special.entr,
    "remainder": np.mod, "fmod": np.fmod, "special.xlogy": special.xlogy,
}  # fmt: skip


def reference(name: str) -> Callable[..., np.ndarray]:
    """What an op computes, as a function of arrays that is not ours where there is one."""
    return REFERENCES.get(name) or np.vectorize(OPS[name].rule.formula)


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
