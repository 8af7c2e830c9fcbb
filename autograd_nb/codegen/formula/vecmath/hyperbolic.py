"""Hyperbolic functions and their inverses."""

from __future__ import annotations

from ..namespace import formula
from ..symbols import Sym, where
from .common import INF, LAYOUT, NAN, Coefficients, at_most, copysign, floating, horner, sqrt
from .exponential import exp_mid, exp_parts, scale
from .logarithm import log1p_inner, log_normal_short

# (tanh(x) - x) / x^3 in x^2: float32 on |x| <= 0.625, relative error 4.2e-9; float64 on |x| <= 0.6, 1e-17
TANH: Coefficients = {
    "float32": (-0.3333328366279602, 0.1333148330450058, -0.053742773830890656, 0.020648060366511345, -0.005714057944715023),
    "float64": (
        -0.33333333333333126, 0.13333333333299643, -0.053968253949287885, 0.021869488002398265, -0.008863226775439909,
        0.0035920373639999618, -0.0014552152870778102, 0.0005871881632954428, -0.00023039632752021639, 7.93134023419673e-05,
        -1.717845557226092e-05,
    ),
}  # fmt: skip
# (sinh(x) - x) / x^3 in x^2 on |x| <= 1; relative errors 3e-10 and 1e-18
SINH: Coefficients = {
    "float32": (0.1666666716337204, 0.00833331048488617, 0.00019842895562760532, 2.7822131869470468e-06),
    "float64": (1 / 6, 1 / 120, 1 / 5040, 1 / 362880, 1 / 39916800, 1 / 6227020800, 1 / 1307674368000, 1 / 355687428096000),
}


@formula
def tanh(x: Sym) -> Sym:
    """Return the hyperbolic tangent: a polynomial up to 0.6, beyond it 1 - 2 / (e^2x + 1).

    The maximum error is 1.3 ulp (float32), 1.8 ulp (float64); -0 stays -0.
    """
    a = abs(floating(x))
    edge, end = (0.625, 9.1) if x.dtype == "float32" else (0.6, 20.0)
    e = exp_mid(at_most(a, end) * 2.0)
    z = a * a
    return copysign(where(a < edge, a * z * horner(z, TANH[x.dtype]) + a, 1.0 - 2.0 / (e + 1.0)), x)


def _half_exp(a: Sym) -> Sym:
    """Return e^a / 2 for a >= 0, which overflows only where sinh and cosh do."""
    _, bits, em = exp_parts(at_most(a, 90.0 if a.dtype == "float32" else 711.0), 2 * LAYOUT[a.dtype][3])
    return scale(em + 1.0, bits - 1)


@formula
def sinh(x: Sym) -> Sym:
    """Return the hyperbolic sine: a polynomial up to 1, beyond it E - 1 / (4 E) with E = e^|x| / 2. The maximum error is 1.7 ulp."""
    a = abs(floating(x))
    e = _half_exp(a)
    z = a * a
    return copysign(where(a < 1.0, a * z * horner(z, SINH[x.dtype]) + a, e - 0.25 / e), x)


@formula
def cosh(x: Sym) -> Sym:
    """Return the hyperbolic cosine: E + 1 / (4 E) with E = e^|x| / 2. The maximum error is 1.4 ulp."""
    e = _half_exp(abs(floating(x)))
    return e + 0.25 / e


@formula
def asinh(x: Sym) -> Sym:
    """Return the inverse hyperbolic sine. float32: a series below 2^-6, beyond it log(a + sqrt(a^2 + 1)) in float64; float64: by log1p.

    The maximum error is 0.6 ulp (float32), 1.8 ulp (float64).
    """
    a = abs(floating(x))
    if x.dtype == "float32":
        w = a.cast("float64")
        y = log_normal_short(w + sqrt(w * w + 1.0)).cast("float32")
        y = where(a < 0.015625, a - a * (a * a) * (1 / 6), y)
    else:
        big = a > 2.0**30
        square = a * a
        y = log1p_inner(where(big, a - 1.0, a + square / (sqrt(square + 1.0) + 1.0)))
        y = where(big, y + 0.6931471805599453, y)
    return copysign(where(a < INF, y, a), x)


@formula
def acosh(x: Sym) -> Sym:
    """Return the inverse hyperbolic cosine: log(x + sqrt(x^2 - 1)), by log1p in float64; NaN below 1.

    The maximum error is 0.5 ulp (float32), 2.2 ulp (float64).
    """
    if floating(x).dtype == "float32":
        w = x.cast("float64")
        y = log_normal_short(w + sqrt(w * w - 1.0)).cast("float32")
    else:
        big = x > 2.0**30
        t = x - 1.0
        y = log1p_inner(where(big, x - 1.0, t + sqrt(t * 2.0 + t * t)))
        y = where(big, y + 0.6931471805599453, y)
    return where(x < INF, where(x < 1.0, NAN, y), x)


@formula
def atanh(x: Sym) -> Sym:
    """Return the inverse hyperbolic tangent: log((1 + a) / (1 - a)) / 2, by log1p in float64; 1: inf; beyond: NaN.

    The maximum error is 0.5 ulp (float32), 2.1 ulp (float64).
    """
    a = abs(floating(x))
    if x.dtype == "float32":
        w = a.cast("float64")
        y = (0.5 * log_normal_short((w + 1.0) / (1.0 - w))).cast("float32")
        z = a * a
        y = where(a < 0.03125, a + a * z * (z * 0.2 + 1 / 3), y)
    else:
        y = 0.5 * log1p_inner(2.0 * a / (1.0 - a))
    return copysign(where(a < 1.0, y, where(a == 1.0, INF, NAN)), x)
