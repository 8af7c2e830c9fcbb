"""exp and its family: exp, exp2, expm1, sigmoid.

All use ``x = n ln2 + r`` with |r| <= ln2 / 2, a polynomial for e^r - 1, and a power of two put together from n's bits.
"""

from __future__ import annotations

from ..namespace import formula
from ..symbols import Sym, where
from .common import LAYOUT, Coefficients, at_least, at_most, floating, horner

LOG2E = 1.4426950408889634

# ln 2 in two parts; the first is short enough that its product with any exponent is exact
LN2 = {
    "float32": (0.693145751953125, 1.4286068203094173e-06),
    "float64": (0.6931471803691238, 1.9082149292705877e-10),
}

# (e^r - 1 - r) / r^2 on |r| <= ln2 / 2; relative error of e^r - 1: 1.5e-8 and 8.8e-19
EXP: Coefficients = {
    "float32": (0.4999999701976776, 0.16666539013385773, 0.041667383164167404, 0.008367090485990047, 0.0013883368810638785),
    "float64": (
        0.5, 0.16666666666666677, 0.04166666666666651, 0.008333333333321681, 0.0013888888888962392, 0.00019841269885994384,
        2.4801587172543096e-05, 2.755724434253399e-06, 2.7557402603873753e-07, 2.5108990863140765e-08, 2.0875352170081024e-09,
    ),
}  # fmt: skip

# (2^r - 1) / r on |r| <= 1/2; relative error of 2^r: 5.3e-9 and 1.9e-17
EXP2: Coefficients = {
    "float32": (0.6931472420692444, 0.24022655189037323, 0.05550272762775421, 0.009617066010832787, 0.0013417887967079878,
                0.0001581928227096796),
    "float64": (
        0.6931471805599453, 0.24022650695910072, 0.055504108664821736, 0.009618129107628562, 0.0013333558146381738,
        0.00015403530393171772, 1.525273386484514e-05, 1.321548700346574e-06, 1.0178047531088385e-07, 7.054814812286398e-09,
        4.457239337253229e-10, 2.585527622998203e-11,
    ),
}  # fmt: skip

# the same in float64 for functions whose result is rounded to float32; relative error 2e-9
EXP2_SHORT = (0.6931472028560178, 0.24022647913746617, 0.05550332469945558, 0.009618437351659388, 0.0013398874780125047,
              0.000153533627372306)  # fmt: skip

# beyond these the result is 0 or infinity whatever the argument
RANGE = {"float32": (-104.0, 89.0), "float64": (-745.2, 709.8)}
RANGE2 = {"float32": (-151.0, 128.0), "float64": (-1076.0, 1024.0)}


def round_bits(x: Sym, factor: float, bias: int) -> tuple[Sym, Sym]:
    """Return ``n``, the integer nearest to ``x * factor``, as a float and as the low bits of an unsigned integer plus ``bias``.

    Adding 1.5 * 2^mantissa leaves the integer in the low bits of the sum: no cast, so NaN does no harm.
    """
    unsigned, _, mantissa, _ = LAYOUT[x.dtype]
    magic = 1.5 * 2.0**mantissa + bias
    t = x + magic if factor == 1.0 else x * factor + magic
    return t - magic, t.bitcast(unsigned)


def scale(p: Sym, bits: Sym) -> Sym:
    """Return ``p * 2^n`` where ``bits`` ends in ``n + 2 bias``: two factors, so that denormal and huge results come out right."""
    _, _, mantissa, _ = LAYOUT[p.dtype]
    half = bits >> 1
    return p * (half << mantissa).bitcast(p.dtype) * ((bits - half) << mantissa).bitcast(p.dtype)


def power_of_two(bits: Sym, dtype: str) -> Sym:
    """Return ``2^n`` where ``bits`` ends in ``n + bias``; n within the normal range."""
    return (bits << LAYOUT[dtype][2]).bitcast(dtype)


def exp_parts(x: Sym, bias: int) -> tuple[Sym, Sym, Sym]:
    """Return ``(n, n's bits, e^r - 1)``."""
    high, low = LN2[x.dtype]
    n, bits = round_bits(x, LOG2E, bias)
    r = x - n * high - n * low
    return n, bits, r * r * horner(r, EXP[x.dtype]) + r


def exp_any(x: Sym) -> Sym:
    """Return e^x for any x."""
    low, high = RANGE[x.dtype]
    x = at_most(at_least(x, low), high)
    _, bits, em = exp_parts(x, 2 * LAYOUT[x.dtype][3])
    return scale(em + 1.0, bits)


def exp_mid(x: Sym) -> Sym:
    """Return e^x for arguments whose result is known to be a normal number."""
    _, bits, em = exp_parts(x, LAYOUT[x.dtype][3])
    return (em + 1.0) * power_of_two(bits, x.dtype)


def exp2_short(t: Sym) -> Sym:
    """Return 2^t as float64 with a relative error of 2e-9 (for a result that becomes float32); |t| <= 1000."""
    n, bits = round_bits(t, 1.0, LAYOUT["float64"][3])
    r = t - n
    return (r * horner(r, EXP2_SHORT) + 1.0) * power_of_two(bits, "float64")


@formula
def exp(x: Sym) -> Sym:
    """Return e^x. The maximum error is 1.0 ulp (float32), 0.9 ulp (float64); denormal results right."""
    return exp_any(floating(x))


@formula
def exp_below(x: Sym) -> Sym:
    """Return e^x for x <= 0, to be added to 1: for results that are no normal numbers the smallest of those. The maximum error is 1.0 ulp."""
    return exp_mid(at_least(floating(x), -87.3 if x.dtype == "float32" else -708.3))


@formula
def exp2(x: Sym) -> Sym:
    """Return 2^x, exact for integers: n = rint(x) is split off without any rounding. The maximum error is 0.9 ulp, both dtypes."""
    low, high = RANGE2[floating(x).dtype]
    x = at_most(at_least(x, low), high)
    n, bits = round_bits(x, 1.0, 2 * LAYOUT[x.dtype][3])
    r = x - n
    return scale(r * horner(r, EXP2[x.dtype]) + 1.0, bits)


@formula
def expm1(x: Sym) -> Sym:
    """Return e^x - 1 = 2^n ((1 - 2^-n) + (e^r - 1)); the sum in brackets is exact enough as r's rounding error is carried.

    The maximum error is 1.3 ulp, both dtypes; -0 stays -0.
    """
    x = floating(x)
    _, _, mantissa, bias = LAYOUT[x.dtype]
    clamped = at_most(at_least(x, -40.0), RANGE[x.dtype][1])
    high, low = LN2[x.dtype]
    n, bits = round_bits(clamped, LOG2E, 2 * bias)
    whole = clamped - n * high
    r = whole - n * low
    lost = (whole - r) - n * low
    # 2^-n is not wanted where it is far below an ulp of 1, and is no normal number for the largest n
    inverse = where(n > 64.0, 0.0, ((3 * bias - bits) << mantissa).bitcast(x.dtype))
    tail = r * r * horner(r, EXP[x.dtype]) + lost
    y = scale((1.0 - inverse) + r + tail, bits)
    return where(x == 0.0, x, y)


@formula
def sigmoid(x: Sym) -> Sym:
    """Return 1 / (1 + e^-x) = 1 / (1 + 2^n (1 + m)), e^-x = 2^n (1 + m), with 2^n in halves, which neither overflow nor become denormal.

    The maximum error is 2.5 ulp, both dtypes (PyTorch: 2.5 in normal numbers); denormal results right.
    """
    low, high = (-100.0, 104.0) if floating(x).dtype == "float32" else (-700.0, 745.2)
    _, _, mantissa, bias = LAYOUT[x.dtype]
    _, bits, em = exp_parts(at_most(at_least(-x, low), high), 2 * bias)
    half = bits >> 1
    up = (half << mantissa).bitcast(x.dtype)
    down = ((half - bits + 2 * bias) << mantissa).bitcast(x.dtype)
    return down / ((up + down) + up * em)
