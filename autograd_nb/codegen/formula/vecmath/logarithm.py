"""log and its family: log, log2, log10, log1p, logaddexp, logaddexp2, xlogy.

All use ``x = m 2^e`` with m within [sqrt(1/2), sqrt(2)), so that log x = e ln2 + log(1 + f), f = m - 1, which is exact.
"""

from __future__ import annotations

from ..namespace import formula
from ..symbols import Sym, where
from .common import INF, LAYOUT, NAN, at_most, const, float_pair, floating, horner, isnan
from .exponential import LN2, LOG2E, exp, exp2

# float32: (log(1+f) - f + f^2/2) / f^3 on [sqrt(1/2) - 1, sqrt(2) - 1]; relative error of the log 1.6e-9
LOG = (
    0.3333331346511841, -0.2500016689300537, 0.20002223551273346, -0.16659358143806458, 0.14209556579589844,
    -0.12549960613250732, 0.12109282612800598, -0.10914607346057892, 0.05335298553109169,
)  # fmt: skip
# float64: (2 atanh(s) - 2 s) / s^3 in z = s^2, s = f / (2 + f); relative error of the log 3.7e-18
LOG_S = (
    0.6666666666666734, 0.3999999999941468, 0.28571428742387095, 0.22222198573209567, 0.18183564325812251, 0.1531405053881141,
    0.14795950026743848,
)  # fmt: skip
# the same, shorter, in float64 for functions whose result is rounded to float32; relative error 9.6e-12
LOG_S_SHORT = (0.6666666564616025, 0.40000335098460077, 0.28537311399642096, 0.2358213482756587)

# float32: (log2(1+f) - f log2(e)) / f^2 and (log10(1+f) - f log10(e)) / f^2 on the same interval; 8.6e-10 and 1.5e-9
LOG2 = (
    -0.7213475108146667, 0.48089799284935, -0.360675185918808, 0.28857341408729553, -0.24042078852653503, 0.2050420343875885,
    -0.17962925136089325, 0.17279767990112305, -0.16541123390197754, 0.09119632840156555,
)  # fmt: skip
LOG10 = (
    -0.21714724600315094, 0.14476466178894043, -0.1085725799202919, 0.08687262237071991, -0.07243979722261429,
    0.06170358136296272, -0.05300747603178024, 0.05116570368409157, -0.05549126863479614, 0.0359831228852272,
)  # fmt: skip
# log2(e) and log10(e): nearest float32 and the rest; float64: 32 bits and the rest
LOG2E_PARTS = {"float32": (1.4426950216293335, 1.9259629911266175e-08), "float64": (1.4426950407214463, 1.6751713164886512e-10)}
LOG10E_PARTS = {
    "float32": (0.4342944920063019, -1.0103050052231683e-08),
    "float64": (0.43429448176175356, 1.414982685385801e-10),
}
# log10(2), the first part short enough to be multiplied with any exponent
LOG10_2 = {"float32": (0.301025390625, 4.605038981195214e-06), "float64": (0.3010299955494702, 1.1451100898021838e-10)}

_ROOT_HALF = {"float32": 0x3F3504F3, "float64": 0x3FE6A09E667F3BCD}
_TINY = {"float32": 2.0**-126, "float64": 2.0**-1022}


def decompose(x: Sym, denormals: bool = True, base: int = 0) -> tuple[Sym, Sym]:
    """Return ``(e, m)`` as floats. Garbage, but no trap, for x <= 0, infinite or NaN (and for denormals unless asked for).

    ``base``: the bits of the least m, if it is not the square root of a half.
    """
    unsigned, signed, mantissa, bias = LAYOUT[x.dtype]
    base = base or _ROOT_HALF[x.dtype]
    given = x
    if denormals:
        x = where(x < _TINY[x.dtype], x * 2.0**mantissa, x)
    if x.dtype == "float32":
        bits = x.bitcast(signed) - base
        m = ((bits & 0x7FFFFF) + base).bitcast(x.dtype)
        e = (bits >> mantissa).cast(x.dtype)
    else:
        # AVX2 has neither arithmetic shifts nor conversions of 64-bit integers: shift an exponent made positive,
        # and set it into the bits of 2^52
        bits = x.bitcast(unsigned) + ((bias << mantissa) - base)
        m = ((bits & ((1 << mantissa) - 1)) + base).bitcast(x.dtype)
        e = ((bits >> mantissa) | ((bias + mantissa) << mantissa)).bitcast(x.dtype) - (2.0**mantissa + bias)
    if denormals:
        e = where(given < _TINY[x.dtype], e - float(mantissa), e)
    return e, m


def log1p_reduced(f: Sym, e: Sym) -> Sym:
    """Return log(1 + f) + e ln2 for f within [sqrt(1/2) - 1, sqrt(2) - 1]."""
    high, low = LN2[f.dtype]
    if f.dtype == "float32":
        square = f * f
        tail = f * square * horner(f, LOG) + e * low
        return e * high + (f + (tail - 0.5 * square))
    s, half, rest = _log_tail(f)
    return e * high - ((half - (s * (half + rest) + e * low)) - f)


def _log_tail(f: Sym) -> tuple[Sym, Sym, Sym]:
    """Return, for float64, (s, f^2 / 2, r) with log(1 + f) = f - (f^2 / 2 - s (f^2 / 2 + r))."""
    s = f / (f + 2.0)
    z = s * s
    return s, 0.5 * f * f, z * horner(z, LOG_S)


def log_short(x: Sym) -> tuple[Sym, Sym]:
    """Return (e, log m) of a normal, positive float64, the log with a relative error of 1e-11 (for a result that becomes float32)."""
    e, m = decompose(x, denormals=False)
    f = m - 1.0
    s = f / (f + 2.0)
    z = s * s
    # f - s f is 2 s, and keeps f's exactness near 1
    return e, f - s * (f - z * horner(z, LOG_S_SHORT))


def log_normal_short(x: Sym) -> Sym:
    """Return `log_short` put together: the natural logarithm."""
    e, y = log_short(x)
    return e * 0.6931471805599453 + y


def log_special(x: Sym, y: Sym) -> Sym:
    """Return y, the logarithm of x, put right where x is 0, negative, infinite or NaN."""
    y = where(x < INF, y, x)
    return where(x > 0.0, y, where(x == 0.0, -INF, NAN))


def _log_base(x: Sym, factor: tuple[float, ...], exponent: tuple[float, ...], coefficients: tuple[float, ...]) -> Sym:
    """Return e * exponent + log(1 + f) * factor, constants in two parts."""
    e, m = decompose(floating(x))
    f = m - 1.0
    if x.dtype == "float32":
        tail = f * f * horner(f, coefficients) + (f * factor[1] + e * exponent[1])
        return log_special(x, e * exponent[0] + (f * factor[0] + tail))
    s, half, rest = _log_tail(f)
    # the leading 32 bits of f - f^2 / 2 times those of the factor are exact
    high = ((f - half).bitcast("uint64") & 0xFFFFFFFF00000000).bitcast("float64")
    low = ((f - high) - half) + s * (half + rest)
    first = high * factor[0]
    tail = (low + high) * factor[1] + low * factor[0] + e * exponent[1]
    whole = e * exponent[0]
    total = whole + first
    return log_special(x, total + (((whole - total) + first) + tail))


@formula
def log(x: Sym) -> Sym:
    """Return the natural logarithm. The maximum error is 0.8 ulp, both dtypes. 0: -inf; negative: NaN."""
    e, m = decompose(floating(x))
    return log_special(x, log1p_reduced(m - 1.0, e))


@formula
def log2(x: Sym) -> Sym:
    """Return the logarithm to base 2, exact for powers of 2. The maximum error is 0.9 ulp (float32), 0.7 ulp (float64)."""
    return _log_base(x, LOG2E_PARTS[floating(x).dtype], (1.0, 0.0), LOG2)


@formula
def log10(x: Sym) -> Sym:
    """Return the logarithm to base 10. The maximum error is 0.9 ulp (float32), 0.7 ulp (float64)."""
    return _log_base(x, LOG10E_PARTS[floating(x).dtype], LOG10_2[x.dtype], LOG10)


def log1p_inner(x: Sym) -> Sym:
    """Return log(1 + x) for finite x > -1; what rounding 1 + x loses is added to f, scaled."""
    _, signed, mantissa, bias = LAYOUT[x.dtype]
    u = x + 1.0
    back = u - x
    lost = (x - (u - back)) + (1.0 - back)
    e, m = decompose(u, denormals=False)
    # 2^-e, not needed where e is so large that nothing was lost that counts
    if x.dtype == "float32":
        power = bias - at_most(e, 64.0).cast(signed)
    else:
        power = ((bias + 1.5 * 2.0**mantissa) - at_most(e, 128.0)).bitcast(signed)
    return log1p_reduced((m - 1.0) + lost * (power << mantissa).bitcast(x.dtype), e)


@formula
def log1p(x: Sym) -> Sym:
    """Return log(1 + x). The maximum error is 1.4 ulp, both dtypes. -1: -inf; less: NaN; -0 stays -0."""
    y = where(floating(x) < INF, log1p_inner(x), x)
    y = where(x > -1.0, y, where(x == -1.0, -INF, NAN))
    return where(x == 0.0, x, y)


def _log_add(a: Sym, b: Sym, power, factor: float) -> Sym:
    big = where(a > b, a, b)
    gap = -abs(a - b)
    # equal infinities: no gap, rather than inf - inf
    gap = where(a == b, const(a, 0.0), gap)
    y = log1p_inner(power(gap))
    return where(isnan(a), a, big + (y if factor == 1.0 else y * factor))


@formula
def logaddexp(a: Sym | float, b: Sym | float) -> Sym:
    """Return log(e^a + e^b) without overflow: the larger plus log1p(e^-|a - b|)."""
    return _log_add(*float_pair(a, b), exp, 1.0)


@formula
def logaddexp2(a: Sym | float, b: Sym | float) -> Sym:
    """Return log2(2^a + 2^b) without overflow."""
    return _log_add(*float_pair(a, b), exp2, LOG2E)


@formula
def xlogy(x: Sym | float, y: Sym | float) -> Sym:
    """Return x log(y); 0 where x is 0, unless y is NaN."""
    x, y = float_pair(x, y)
    return where(isnan(y), y, where(x == 0.0, 0.0, x * log(y)))


@formula
def xlog1py(x: Sym | float, y: Sym | float) -> Sym:
    """Return x log1p(y); 0 where x is 0, unless y is NaN."""
    x, y = float_pair(x, y)
    return where(isnan(y), y, where(x == 0.0, 0.0, x * log1p(y)))
