"""Powers: pow, square, rsqrt, reciprocal."""

from __future__ import annotations

from ..namespace import formula
from ..symbols import FLOATS, Sym, SymbolError, libm, where
from .common import INF, NAN, at_least, at_most, const, copysign, isnan, pair, sqrt, trunc
from .exponential import LOG2E, exp2_short
from .logarithm import log_short


def _known(y: Sym | float) -> float | int | None:
    """Return the exponent's value if it is known while the kernel is written."""
    if not isinstance(y, Sym):
        return y
    return y.args[1] if y.op == "constant" else None


@formula
def pow_(x: Sym | float, y: Sym | float) -> Sym:
    """Return x^y with C's special values. Small constant exponents (0 to 4, -1, -2, +-1/2) become products, quotients and roots.

    float32: 2^(y log2 x) in float64, maximum error 0.6 ulp. float64 is the C library's, one element at a time (1 ulp).
    Integers: wrapping; to a negative power 0, but for bases 1 and -1.
    """
    known = _known(y)
    if known is not None and isinstance(x, Sym) and (x.dtype in FLOATS or known == int(known)):
        if isinstance(y, Sym):
            x, _ = pair(x, y)
        if known == 0:
            return const(x, 1)
        if known in (1, 2, 3, 4):
            square_ = x * x
            return {1: x, 2: square_, 3: square_ * x, 4: square_ * square_}[int(known)]
        if x.dtype in FLOATS and known in (-1, -2, 0.5, -0.5):
            if known in (-1, -2):
                inverse = 1.0 / x
                return inverse if known == -1 else inverse * inverse
            return sqrt(x) if known == 0.5 else 1.0 / sqrt(x)
    x, y = pair(x, y)
    if x.dtype not in FLOATS:
        if x.dtype == "bool":
            raise SymbolError("pow of booleans; cast them to an integer first")
        whole = libm("pow", x, where(y < 0, 0, y))
        one = where(x == 1, 1, where(x == -1, 1 - 2 * (y & 1), const(x, 0))) if not x.dtype.startswith("u") else None
        return whole if one is None else where(y < 0, one, whole)
    return _pow32(x, y) if x.dtype == "float32" else libm("math.pow", x, y)


def _pow32(x: Sym, y: Sym) -> Sym:
    a = abs(x)
    e, log = log_short(a.cast("float64"))
    t = (e + log * LOG2E) * y.cast("float64")
    # beyond this the result is 0 or infinity in float32
    r = exp2_short(at_most(at_least(t, -300.0), 300.0)).cast("float32")
    up = y > 0.0
    r = where(a == INF, where(up, INF, const(x, 0.0)), r)
    r = where(a == 0.0, where(up, const(x, 0.0), INF), r)
    r = where(isnan(x) | isnan(y), NAN, r)
    whole = trunc(y) == y
    odd = whole & (trunc(y * 0.5) * 2.0 != y)
    r = where((x < 0.0) & (a < INF) & ~whole, NAN, r)
    r = where(odd, copysign(r, x), r)
    # 1 to any power and anything to the power 0 are 1, NaN included; so is (-1)^(+-inf)
    one = (x == 1.0) | (y == 0.0) | ((x == -1.0) & (abs(y) == INF))
    return where(one, 1.0, r)


@formula
def square(x: Sym) -> Sym:
    return x * x


@formula
def reciprocal(x: Sym) -> Sym:
    return 1.0 / x


@formula
def rsqrt(x: Sym) -> Sym:
    """Return 1 / sqrt(x). The maximum error is 1.5 ulp: two roundings."""
    return 1.0 / sqrt(x)
