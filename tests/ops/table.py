"""What the generated op tests know beyond the op table itself: domains of operands, and better references than an op's own formula.

A new op needs no line here: its formula on Python floats is the reference, and ``samples=`` of its declaration the domain.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import scipy.special as special

from autograd_nb.ops.core.registry import OPS

#: op -> (low, high) for every operand, or a tuple of such pairs; the default is (-2, 2)
DOMAINS = {
    "log": (0.1, 3), "log2": (0.1, 3), "log10": (0.1, 3), "sqrt": (0.1, 3), "rsqrt": (0.1, 3), "log1p": (-0.8, 3),
    "reciprocal": (0.3, 3), "asin": (-0.9, 0.9), "acos": (-0.9, 0.9), "atanh": (-0.9, 0.9), "erfinv": (-0.9, 0.9),
    "acosh": (1.2, 3), "lgamma": (0.3, 4), "digamma": (0.3, 4), "trigamma": (0.3, 4), "tan": (-1.2, 1.2), "pow": ((0.3, 2), (-2, 2)),
    "div": ((-2, 2), (0.4, 2)), "remainder": ((-5, 5), (0.6, 2)), "fmod": ((-5, 5), (0.6, 2)), "floor_div": ((-5, 5), (0.6, 2)),
    "trunc_div": ((-5, 5), (0.6, 2)), "xlogy": ((0.2, 2), (0.3, 2)), "special.xlog1py": ((0.2, 2), (-0.6, 2)),
    "sinc": (0.2, 1.8), "special.xlogy": ((0.2, 2), (0.3, 2)), "gcd": (1, 20), "lcm": (1, 20), "bitwise_left_shift": (0, 5), "bitwise_right_shift": (0, 5),
    "addcdiv": ((-2, 2), (-2, 2), (0.4, 2), (0.5, 1.5)), "abs": (0.2, 2), "sign": (0.2, 2), "relu": (0.1, 2),
    "frac": (0.1, 0.9), "floor": (0.1, 0.9), "ceil": (0.1, 0.9), "trunc": (0.1, 0.9), "copysign": ((0.2, 2), (0.2, 2)),
    "bessel_y0": (0.3, 9), "bessel_y1": (0.3, 9), "modified_bessel_k0": (0.3, 4), "modified_bessel_k1": (0.3, 4),
    "scaled_modified_bessel_k0": (0.3, 4), "scaled_modified_bessel_k1": (0.3, 4), "ndtri": (0.05, 0.95), "entr": (0.2, 2),
    "bessel_j0": (-9, 9), "bessel_j1": (-9, 9), "airy_ai": (-8, 4), "log_ndtr": (-4, 3),
    "hypot": ((0.2, 2), (0.2, 2)), "where": ((0, 1), (-2, 2), (-2, 2)),
}  # fmt: skip

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


INTEGER_ONLY = {"gcd", "lcm", "bitwise_left_shift", "bitwise_right_shift", "bitwise_and", "bitwise_or", "bitwise_xor"}


def domain(name: str, operand: int) -> tuple[float, float]:
    found = DOMAINS.get(name) or (OPS[name].samples if name in OPS else None) or (-2, 2)
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
