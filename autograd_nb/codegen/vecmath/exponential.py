"""exp and its family: exp, exp2, expm1, sigmoid."""

from __future__ import annotations

from ..maths import formula
from ..symbols import Sym, where
from .common import LAYOUT, at_least, at_most, floating, horner

LOG2E = 1.4426950408889634

# ln 2 in two parts; the first is short enough that its product with any exponent is exact
LN2 = {
    "float32": (0.693145751953125, 1.428606765330187e-06),
    "float64": (0.6931471803691238, 1.9082149292705877e-10),
}

# (e^r - 1 - r) / r^2 on |r| <= ln2 / 2; relative error of e^r 3.2e-9 and 7.1e-19
EXP = {
    "float32": (0.4999999403953552, 0.16666516661643982, 0.041668105870485306, 0.008369137533009052, 0.0013837090227752924),
    "float64": (
        0.5, 0.16666666666666682, 0.041666666666666095, 0.008333333333317023, 0.0013888888889115908, 0.00019841269896412526,
        2.48015869262684e-05, 2.7557234830983946e-06, 2.755758203549066e-07, 2.511204824055484e-08, 2.0826600513893925e-09,
    ),
}  # fmt: skip

# (2^r - 1) / r on |r| <= 1/2; relative error of 2^r 5.3e-9 and 1.9e-17
EXP2 = {
    "float32": (0.6931472420692444, 0.24022655189037323, 0.05550272762775421, 0.009617066010832787, 0.0013417887967079878,
                0.0001581928227096796),
    "float64": (
        0.6931471805599453, 0.24022650695910072, 0.055504108664821736, 0.009618129107628562, 0.0013333558146381738,
        0.00015403530393171772, 1.525273386484514e-05, 1.321548700346574e-06, 1.0178047531088385e-07, 7.054814812286398e-09,
        4.457239337253229e-10, 2.585527622998203e-11,
    ),
}  # fmt: skip

# beyond these the result is 0 or infinity whatever the argument
RANGE = {"float32": (-104.0, 89.0), "float64": (-745.2, 709.8)}
RANGE2 = {"float32": (-151.0, 128.0), "float64": (-1076.0, 1024.0)}


def round_bits(x: Sym, factor: float, bias: int) -> tuple[Sym, Sym]:
    """``n``, the integer nearest to ``x * factor``, as a float and as the low bits of an unsigned integer plus ``bias``.

    Adding 1.5 * 2^mantissa leaves the integer in the low bits of the sum: no cast, so NaN does no harm.
    """
    unsigned, _, mantissa, _ = LAYOUT[x.dtype]
    magic = 1.5 * 2.0**mantissa + bias
    t = x + magic if factor == 1.0 else x * factor + magic
    return t - magic, t.bitcast(unsigned)


def scale(p: Sym, bits: Sym) -> Sym:
    """``p * 2^n`` where ``bits`` ends in ``n + 2 bias``: two factors, so that denormal and huge results come out right."""
    _, _, mantissa, _ = LAYOUT[p.dtype]
    half = bits >> 1
    return p * (half << mantissa).bitcast(p.dtype) * ((bits - half) << mantissa).bitcast(p.dtype)


def power_of_two(bits: Sym, dtype: str) -> Sym:
    """``2^n`` where ``bits`` ends in ``n + bias``; n within the normal range."""
    return (bits << LAYOUT[dtype][2]).bitcast(dtype)


def exp_parts(x: Sym, bias: int) -> tuple[Sym, Sym, Sym]:
    """``(n, bits, e^r - 1)`` with ``x = n ln2 + r``."""
    high, low = LN2[x.dtype]
    n, bits = round_bits(x, LOG2E, bias)
    r = x - n * high - n * low
    return n, bits, r * r * horner(r, EXP[x.dtype]) + r


def exp_any(x: Sym, upper: bool = True) -> Sym:
    """e^x; without ``upper`` for arguments known not to overflow."""
    low, high = RANGE[x.dtype]
    x = at_least(x, low)
    if upper:
        x = at_most(x, high)
    _, bits, em = exp_parts(x, 2 * LAYOUT[x.dtype][3])
    return scale(em + 1.0, bits)


def exp_mid(x: Sym) -> Sym:
    """e^x for arguments whose result is known to be a normal number."""
    _, bits, em = exp_parts(x, LAYOUT[x.dtype][3])
    return (em + 1.0) * power_of_two(bits, x.dtype)


@formula
def exp(x: Sym) -> Sym:
    return exp_any(floating(x))


@formula
def exp2(x: Sym) -> Sym:
    low, high = RANGE2[floating(x).dtype]
    x = at_most(at_least(x, low), high)
    n, bits = round_bits(x, 1.0, 2 * LAYOUT[x.dtype][3])
    r = x - n
    return scale(r * horner(r, EXP2[x.dtype]) + 1.0, bits)


@formula
def expm1(x: Sym) -> Sym:
    x = floating(x)
    clamped = at_most(at_least(x, -40.0), RANGE[x.dtype][1])
    _, bits, em = exp_parts(clamped, 2 * LAYOUT[x.dtype][3])
    _, _, mantissa, bias = LAYOUT[x.dtype]
    # 2^-n; below the normal range of float it may be anything small
    inverse = ((3 * bias - bits) << mantissa).bitcast(x.dtype)
    y = scale(em + (1.0 - inverse), bits)
    return where(x == 0.0, x, y)


@formula
def sigmoid(x: Sym) -> Sym:
    e = exp_any(-abs(floating(x)), upper=False)
    return where(x < 0.0, e, 1.0) / (e + 1.0)
