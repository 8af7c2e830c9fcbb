"""Powers: pow, square, rsqrt, reciprocal."""

from __future__ import annotations

from ..namespace import formula
from ..symbols import FLOATS, Sym, SymbolError, libm, usually, where
from .common import INF, NAN, at_least, at_most, const, copysign, horner, isnan, pair, sqrt, trunc
from .exponential import EXP, LOG2E, exp2_short, round_bits, scale
from .logarithm import decompose, log_short

# (3/2) (log(1+s) - log(1-s) - 2 s - 2/3 s^3) / s^5 in s^2 (FreeBSD's msun), s <= 0.102
LOG_POW = (
    0.5999999999999946, 0.4285714285785502, 0.33333332981837743, 0.272728123808534, 0.23066074577556175, 0.20697501780033842,
)  # fmt: skip
# 2 / (3 ln2), log2(3/2) and ln2 in 21 bits and the rest
SCALE_POW, THREE_HALVES, LN2_SHORT = (
    (0.9617967009544373, -7.028461650952758e-09), (0.5849624872207642, 1.350039202129749e-08), (0.6931471824645996, -1.904654299957768e-09),
)  # fmt: skip


def _known(y: Sym | float) -> float | int | None:
    """Return the exponent's value if it is known while the kernel is written."""
    if not isinstance(y, Sym):
        return y
    return y.args[1] if y.op == "constant" else None


@formula
def pow_(x: Sym | float, y: Sym | float) -> Sym:
    """Return x^y with C's special values. Small constant exponents (0 to 4, -1, -2, +-1/2) become products, quotients and roots.

    2^(y log2 x): float32 in float64, float64 in two parts. The maximum error is 0.6 ulp, both dtypes; 0.8 ulp where the result is denormal.
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
    if x.dtype == "float32":
        return _special(x, y, _pow32(abs(x), y))
    plain = (x >= 2.0**-1022) & (x < INF) & (abs(y) < 2.0**60)
    r = _pow64(usually(plain, x, abs(x)), y, plain)
    return usually(plain, r, _special(x, y, r))


def _special(x: Sym, y: Sym, r: Sym) -> Sym:
    """Return r, the power y of |x|, put right where x is negative, and where either is 0, infinite or NaN."""
    a, up = abs(x), y > 0.0
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


def _pow32(a: Sym, y: Sym) -> Sym:
    """Return a^y of positive, finite float32."""
    e, log = log_short(a.cast("float64"))
    t = (e + log * LOG2E) * y.cast("float64")
    # beyond this the result is 0 or infinity in float32
    return exp2_short(at_most(at_least(t, -300.0), 300.0)).cast("float32")


def _short(x: Sym) -> Sym:
    """Return the leading 21 bits of x: the product of two such is exact."""
    return (x.bitcast("uint64") & 0xFFFFFFFF00000000).bitcast("float64")


def _log2_parts(a: Sym, normal: Sym) -> tuple[Sym, Sym]:
    """Return log2 a as a number of 21 bits and the rest, with an error of 2^-67: the series of the artanh of (m - c) / (m + c), c = 1 or 3/2."""
    small = a < 2.0**-1022
    e, m = decompose(usually(normal, a, where(small, a * 2.0**52, a)), denormals=False, base=0x3FEBB67AE8584CAA)  # sqrt(3) / 2
    e = usually(normal, e, where(small, e - 52.0, e))
    upper = m >= 1.224744871391589
    c, whole, rest = (where(upper, const(a, v), const(a, w)) for v, w in zip((1.5, *THREE_HALVES), (1.0, 0.0, 0.0), strict=True))
    u, below = m - c, m + c
    v = 1.0 / below
    s = u * v
    high = _short(s)
    t = _short(below)
    low = v * ((u - high * t) - high * (m - (t - c)))
    z = s * s
    r = z * z * horner(z, LOG_POW) + low * (high + s)
    z = high * high
    t = _short(z + 3.0 + r)
    p = high * t
    q = low * t + (r - ((t - 3.0) - z)) * s
    short = _short(p + q)
    high = short * SCALE_POW[0]
    low = short * SCALE_POW[1] + (q - (short - p)) * (SCALE_POW[0] + SCALE_POW[1]) + rest
    first = _short(((high + low) + whole) + e)
    return first, low - (((first - e) - whole) - high)


def _pow64(a: Sym, y: Sym, plain: Sym) -> Sym:
    """Return a^y of positive, finite float64; ``plain``: where a is a normal number, and y no huge one."""
    first, second = _log2_parts(a, plain)
    y = usually(plain, y, at_most(at_least(y, -(2.0**66)), 2.0**66))
    high = _short(y)
    rest = (y - high) * first + y * second
    power = high * first
    t = power + rest
    # beyond this the result is 0 or infinity
    rest = where(abs(t) < 1100.0, rest, 0.0)
    power = at_most(at_least(power, -1100.0), 1100.0)
    n, bits = round_bits(at_most(at_least(t, -1100.0), 1100.0), 1.0, 2046)
    power = power - n
    short = _short(power + rest)
    p = short * LN2_SHORT[0]
    q = (rest - (short - power)) * 0.6931471805599453 + short * LN2_SHORT[1]
    z = p + q
    lost = q - (z - p)
    above = 1.0 + z
    return scale(above + (((1.0 - above) + z) + (z * z * horner(z, EXP["float64"]) + (lost + z * lost))), bits)


@formula
def norm_power(x: Sym, y: Sym) -> Sym:
    """Return x^y as float64, x >= 0: for sums that end in x's dtype. A float32 has its precision (2e-9), and float64's range."""
    if x.dtype == "float64":
        return pow_(x, y)
    a = x.cast("float64")
    e, log = log_short(a)
    t = (e + log * LOG2E) * at_most(at_least(y, -(2.0**66)), 2.0**66)
    r = exp2_short(at_most(at_least(t, -1000.0), 1000.0))
    r = where(t < -1000.0, 0.0, where(t > 1000.0, INF, r))
    r = where((a > 0.0) & (a < INF), r, where(y > 0.0, a, 1.0 / a))
    return where(y == 0.0, 1.0, r)


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
