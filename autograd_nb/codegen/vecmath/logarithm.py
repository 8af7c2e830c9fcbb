"""log and its family."""

from __future__ import annotations

from ..maths import formula
from ..symbols import Sym, where
from .common import INF, LAYOUT, NAN, floating, horner
from .exponential import LN2

# float32: (log(1+f) - f + f^2/2) / f^3 on [sqrt(1/2) - 1, sqrt(2) - 1], relative error of the log 1.6e-9.
LOG32 = (
    0.3333331346511841, -0.2500016689300537, 0.20002223551273346, -0.16659358143806458, 0.14209556579589844,
    -0.12549960613250732, 0.12109282612800598, -0.10914607346057892, 0.05335298553109169,
)  # fmt: skip
# float64: (2 atanh(s) - 2 s) / s^3 in z = s^2, s = f / (2 + f); relative error of the log 3.7e-18
LOG64 = (
    0.6666666666666734, 0.3999999999941468, 0.28571428742387095, 0.22222198573209567, 0.18183564325812251, 0.1531405053881141,
    0.14795950026743848,
)  # fmt: skip

_ROOT_HALF = {"float32": 0x3F3504F3, "float64": 0x3FE6A09E667F3BCD}
_TINY = {"float32": 2.0**-126, "float64": 2.0**-1022}


def decompose(x: Sym, denormals: bool = True) -> tuple[Sym, Sym]:
    """``(e, m)``: x = m * 2^e, m within [sqrt(1/2), sqrt(2)); both as floats. Garbage for x <= 0, infinite or NaN."""
    _, signed, mantissa, _ = LAYOUT[x.dtype]
    tiny = x < _TINY[x.dtype]
    if denormals:
        x = where(tiny, x * 2.0**mantissa, x)
    base = _ROOT_HALF[x.dtype]
    bits = x.bitcast(signed) - base
    m = ((bits & ((1 << mantissa) - 1)) + base).bitcast(x.dtype)
    e = (bits >> mantissa).cast(x.dtype)
    if denormals:
        e = e - where(tiny, float(mantissa), x.trace.constant(0.0, x.dtype))
    return e, m


def log1p_reduced(f: Sym, e: Sym) -> Sym:
    """log(1 + f) + e ln2 for f within [sqrt(1/2) - 1, sqrt(2) - 1]."""
    high, low = LN2[f.dtype]
    if f.dtype == "float32":
        square = f * f
        tail = f * square * horner(f, LOG32) + e * low
        return e * high + (f + (tail - 0.5 * square))
    s = f / (f + 2.0)
    z = s * s
    half = 0.5 * f * f
    return e * high - ((half - (s * (half + z * horner(z, LOG64)) + e * low)) - f)


def log_special(x: Sym, y: Sym) -> Sym:
    """y, the logarithm of x, put right where x is 0, negative, infinite or NaN."""
    y = where(x < INF, y, x)
    return where(x > 0.0, y, where(x == 0.0, -INF, where(x < 0.0, NAN, y)))


@formula
def log(x: Sym) -> Sym:
    e, m = decompose(floating(x))
    return log_special(x, log1p_reduced(m - 1.0, e))


@formula
def log2(x: Sym) -> Sym:
    return log(x) * 1.4426950408889634


@formula
def log10(x: Sym) -> Sym:
    return log(x) * 0.4342944819032518


@formula
def log1p(x: Sym) -> Sym:
    u = floating(x) + 1.0
    big = u - x
    lost = (x - (u - big)) + (1.0 - big)
    e, m = decompose(u, denormals=False)
    _, signed, mantissa, bias = LAYOUT[x.dtype]
    inverse = ((x.trace.constant(bias, signed) - e.cast(signed)) << mantissa).bitcast(x.dtype)
    y = log1p_reduced((m - 1.0) + lost * inverse, e)
    y = where(u < INF, y, u)
    y = where(u > 0.0, y, where(u == 0.0, -INF, where(u < 0.0, NAN, y)))
    return where(x == 0.0, x, y)
