"""Trigonometric functions and their inverses.

Arguments are first reduced: those of tan, and of sin and cos in float64, to ``x = (n + r) pi/2``, |r| <= 1/2; those of sin in float32 to
``x = (n + r) pi``. Nearly all are so small that n times the first half of pi's bits is exact; how large ones are reduced takes most of the
time where both ways are computed (`usually`).
"""

from __future__ import annotations

import math
from typing import Any

from ..namespace import formula
from ..symbols import Sym, usually, where
from .common import INF, NAN, Coefficients, const, copysign, float_pair, floating, horner, isnan, rint, sqrt

HALF_PI = 1.5707963267948966

# (sin r - r) / r^3 in r^2 on |r| <= pi/2 for float32, pi/4 for float64; relative errors 8.8e-9, 7e-18
SIN: Coefficients = {
    "float32": (-0.16666659712791443, 0.00833306647837162, -0.0001980959059437737, 2.605750751172309e-06),
    "float64": (-0.16666666666666632, 0.00833333333332237, -0.0001984126982977138, 2.7557313678731877e-06,
                -2.5050755970367276e-08, 1.5896666948688288e-10),
}  # fmt: skip
# (cos r - 1 + r^2/2) / r^4 in r^2 on |r| <= pi/4; relative error 1e-18
COS = (0.0416666666666666, -0.0013888888888874064, 2.480158728944348e-05, -2.7557314340654267e-07, 2.087572162147219e-09, -1.1359559245589404e-11)
# (tan r - r) / r^3 in r^2 on |r| <= pi/4, in float64 for a result that becomes float32; relative error 1.3e-9
TAN = (0.33333349891604436, 0.13332658442237333, 0.05406049167207683, 0.0212791177050223, 0.010844015587948458,
       7.883951607788844e-05, 0.004381692911756473)  # fmt: skip

# Windows of the bits of 1 / (2 pi): 27 bits, the next 26, the next 53. A float32 x is a 24-bit integer times a power of
# two, so its products with the first two are exact in float64, and bits of such weight that they only add whole turns
# are left out. One row serves 28 exponents of x.
TURNS = (
    (0.15915494225919247, 8.327028511168066e-10, 1.791623727803767e-17),  # |x| < 2^53
    (8.327028649945944e-10, 4.038449399282663e-18, 7.094055044466316e-26),  # < 2^81
    (5.690024990278369e-19, 1.9241761925798768e-26, 2.343001636102442e-34),  # < 2^109
    (6.3170650472507054e-27, 4.170716806635159e-35, 1.1051690039850298e-42),
)
ROUND = 1.5 * 2.0**52  # added and taken away again, rounds to an integer and leaves it in the low bits

# the first 1,200 bits of 1 / (2 pi), for float64 too large for the parts of pi/2 below
INVERSE_TURN = int(
    "28be60db9391054a7f09d5f47d4d377036d8a5664f10e4107f9458eaf7aef1586dc91b8e909374b801924bba827464873f87"
    "7ac72c4a69cfba208d7d4baed1213a671c09ad17df904e64758e60d4ce7d272117e2ef7e4a0ec7fe25fff7816603fbcbc462"
    "d6829b47db4d9fb3c9f2c26dd3d18fd9a797fa8b5d49eeb1faf97c5ecf41ce7de294a4ba9afed7ec47e357421580cc11bf1e",
    16,
)
HUGE, ROW, SCALE = 45, 16, 256  # from 2^45 on, a row of windows for 16 exponents, kept in range by a power of two


def _window(top: int, bits: int) -> float:
    """Return the bits of 1 / (2 pi) of weights below 2^top, ``bits`` of them, times 2^SCALE."""
    found = (INVERSE_TURN >> (1200 + top - bits)) & ((1 << bits) - 1)
    return math.ldexp(found, top - bits + SCALE)


# like TURNS, but tables: three times 26 bits, and 53; the first row matters to the lower half of x's 53 bits only
WINDOWS = tuple(
    tuple(_window(52 - exponent - skip, bits) for exponent in range(HUGE, 1024, ROW))
    for skip, bits in ((0, 26), (26, 26), (52, 26), (78, 53))
)

INVERSE_TURN_53 = 0.15915494309189535
# pi/2 in parts of 27 and 53 bits
QUARTER_TURN = (1.570796325802803, 9.920935796805404e-10)

# pi/2 in parts of 27, 27, 27 and 53 bits
HALF_PI_PARTS = (1.570796325802803, 9.920935184482005e-10, 6.123233932053594e-17, 6.36831716351095e-25)


def _reduce32(x: Sym, parts: int, ahead: float = 0.0) -> tuple[Sym, Sym]:
    """Return (r as an angle in float64, n's low bits as uint32) of a float32 of any size: x + ahead * turn/parts = r + n * turn/parts."""
    wide = x.cast("float64")
    few = abs(x) < 2.0**25  # n has 26 bits at most, a half counted
    first, second = (part * 4 / parts for part in QUARTER_TURN)
    t = wide * (INVERSE_TURN_53 * parts)
    t = (t + ahead if ahead else t) + ROUND
    n = t - ROUND
    n = n - ahead if ahead else n
    r = (wide - n * first) - n * second
    every, steps = _reduce_any32(x, wide, parts, ahead)
    return usually(few, r, every), usually(few, t.bitcast("uint64").cast("uint32"), steps)


def _reduce_any32(x: Sym, wide: Sym, parts: int, ahead: float) -> tuple[Sym, Sym]:
    a = abs(x)

    def window(k: int) -> Sym:
        c = [const(wide, row[k]) for row in TURNS]
        # nested so that the masks are shared between the three windows
        return where(a < 2.0**53, c[0], where(a < 2.0**81, c[1], where(a < 2.0**109, c[2], c[3])))

    p, q = wide * window(0), wide * window(1)
    f = (p - rint(p)) + (q - rint(q))  # exact, in turns
    f, rest = f * parts + ahead, wide * window(2) * parts
    t = (f + rest) + ROUND
    r = (f - (t - ROUND)) + rest
    return r * (2 * math.pi / parts), t.bitcast("uint64").cast("uint32")


def _fraction_huge(x: Sym, bits: Sym) -> Sym:
    """Return x modulo a turn, as an angle, for |x| >= 2^45; the error is below 1e-15 absolute."""
    row = ((bits >> 52) & 0x7FF) - (1023 + HUGE)
    row = where(row < 1024, row, 0) >> 4  # unsigned: what is not huge wraps around
    w0, w1, w2, w3 = (row.gather(table, "float64") for table in WINDOWS)
    x = x * 2.0**-SCALE
    top = (x.bitcast("uint64") & 0xFFFFFFFFFC000000).bitcast("float64")
    low = x - top
    f = x * 0.0
    for product in (low * w0, low * w1, top * w1, top * w2):  # exact, and so are their sums without the whole turns
        f = f + (product - rint(product))
    f = (f - rint(f)) + (top * w3 + (low * w2 + low * w3))
    return f * 6.283185307179586


def _reduce64(x: Sym) -> tuple[Sym, Sym, Sym]:
    """Return (r in radians, what its rounding lost, n's low bits as uint64) of a float64 of any size.

    The products of n with the parts are exact up to |x| = 1e8, and good to 1e12 where multiplications are fused; from 2^45
    on x is first reduced by whole turns.
    """
    p1, p2, p3, p4 = HALF_PI_PARTS
    bits = x.bitcast("uint64")
    x = usually(abs(x) < 2.0**HUGE, x, _fraction_huge(x, bits))
    t = x * 0.6366197723675814 + ROUND
    n = t - ROUND
    a = x - n * p1 - n * p2  # exact
    r = a - n * p3
    lost = ((a - r) - n * p3) - n * p4
    return r + lost, (r - (r + lost)) + lost, t.bitcast("uint64")


def _sine(x: Sym, shift: int) -> Sym:
    """Return sin(x + shift * pi/2), shift 0 or 1."""
    if floating(x).dtype == "float32":
        r, n = _reduce32(x, 2, shift / 2)
        r = r.cast("float32")
        z = r * r
        return _negated(r * (z * horner(z, SIN[x.dtype])) + r, n & 1, 31)
    r, lost, n = _reduce64(x)
    n = n + shift
    z = r * r
    sine = r + (r * (z * horner(z, SIN[x.dtype])) + lost)
    half = 0.5 * z
    first = 1.0 - half
    cosine = first + (((1.0 - first) - half) + (z * z * horner(z, COS) - r * lost))
    return _negated(where((n & 1) == 0, sine, cosine), n & 2, 62)  # bit 1 of the quadrant is the sign


def _negated(y: Sym, sign: Sym, left: int) -> Sym:
    """Return -y where the one bit of ``sign``, ``left`` places below y's sign, is set."""
    return (y.bitcast(sign.dtype) ^ (sign << left)).bitcast(y.dtype)


@formula
def sin(x: Sym) -> Sym:
    """Return the sine. The maximum error is 1.9 ulp (float32, any argument), 0.9 ulp (float64 up to 1e12; 1e-15 absolute beyond)."""
    return where(x == 0.0, x, _sine(x, 0))  # the reduction loses the sign of -0


@formula
def cos(x: Sym) -> Sym:
    """Return the cosine. The maximum error is 1.9 ulp (float32, any argument), 0.9 ulp (float64 up to 1e12; 1e-15 absolute beyond)."""
    return _sine(x, 1)


@formula
def tan(x: Sym) -> Sym:
    """Return the tangent: float32 by a polynomial in float64, float64 as sine over cosine.

    The maximum error is 1.5 ulp (float32, any argument), 2.2 ulp (float64 up to 1e5).
    """
    if floating(x).dtype == "float32":
        r, n = _reduce32(x, 4)
        z = r * r
        y = (r * z * horner(z, TAN) + r).cast("float32")
        return where(x == 0.0, x, where((n & 1) == 0, y, -1.0 / y))
    r, lost, n = _reduce64(x)
    z = r * r
    sine = r + (r * z * horner(z, SIN[x.dtype]) + lost)
    half = 0.5 * z
    first = 1.0 - half
    cosine = first + (((1.0 - first) - half) + (z * z * horner(z, COS) - r * lost))
    even = (n & 1) == 0
    y = where(even, sine, -cosine) / where(even, cosine, sine)
    return where(x == 0.0, x, y)


# (asin a - a) / a^3 in a^2 on a <= 1/2; relative errors 5e-9 and 1.7e-17
ASIN: Coefficients = {
    "float32": (0.16666753590106964, 0.07495252043008804, 0.045476049184799194, 0.024152006953954697, 0.04221203178167343),
    "float64": (
        0.16666666666665383, 0.07500000000343049, 0.04464285682347627, 0.030381959331567426, 0.022371753515282103,
        0.017359771228209232, 0.013884597288814702, 0.012173286966898945, 0.006510820722966214, 0.01957399353585233,
        -0.01629420683318577, 0.031959053773536285,
    ),
}  # fmt: skip
# (atan a - a) / a^3 in a^2, a <= 1 for float32 and <= tan(pi/8) for float64; relative errors 1.7e-8 and 1.9e-18
ATAN: Coefficients = {
    "float32": (-0.33333152532577515, 0.19993767142295837, -0.14211000992225647, 0.10665769875049591, -0.07551664113998413,
                0.043204788118600845, -0.016363218426704407, 0.002919422462582588),
    "float64": (
        -0.333333333333332, 0.19999999999953677, -0.14285714280205228, 0.11111110783866307, -0.09090897768362552,
        0.07692060381525945, -0.0666310565063133, 0.05847898629341924, -0.05039335702349809, 0.03806506326938124,
        -0.017907447595454602,
    ),
}  # fmt: skip
# pi/2, pi/4 and pi: nearest float and the rest
PI_2 = {"float32": (1.5707963705062866, -4.3711390001862426e-08), "float64": (HALF_PI, 6.123233995736766e-17)}
PI_4 = {"float32": (0.7853981852531433, -2.1855695000931213e-08), "float64": (0.7853981633974483, 3.061616997868383e-17)}
PI = {"float32": (3.1415927410125732, -8.742278000372485e-08), "float64": (3.141592653589793, 1.2246467991473532e-16)}


@formula
def asin(x: Sym) -> Sym:
    """Return the arc sine: a polynomial up to 1/2, beyond it pi/2 - 2 asin(sqrt((1 - a) / 2)); NaN beyond 1.

    The maximum error is 1.7 ulp, both dtypes.
    """
    a = abs(floating(x))
    large = a > 0.5
    z = where(large, 0.5 - 0.5 * a, a * a)
    s = where(large, sqrt(z), a)
    tail = s * z * horner(z, ASIN[x.dtype])
    high, low = PI_2[x.dtype]
    return copysign(where(large, high - (2.0 * s - (low - 2.0 * tail)), s + tail), x)


@formula
def acos(x: Sym) -> Sym:
    """Return the arc cosine, from the same pieces as asin; NaN beyond 1. The maximum error is 1.1 ulp (float32), 1.2 ulp (float64)."""
    a = abs(floating(x))
    large = a > 0.5
    z = where(large, 0.5 - 0.5 * a, a * a)
    s = where(large, sqrt(z), a)
    tail = s * z * horner(z, ASIN[x.dtype])
    high, low = PI_2[x.dtype]
    top, rest = PI[x.dtype]
    # large positive 2 p, large negative pi - 2 p, else pi/2 - p with p of x's sign
    signed, signed_tail = copysign(s, x), copysign(tail, x)
    small = high - (signed - (low - signed_tail))
    double = 2.0 * s + 2.0 * tail
    return where(large, where(x > 0.0, double, top - (2.0 * s - (rest - 2.0 * tail))), small)


def _atan_ratio(top: Sym, bottom: Sym) -> Sym:
    """Return atan(top / bottom) for top, bottom >= 0, not both 0."""
    swap = top > bottom
    num, den = where(swap, bottom, top), where(swap, top, bottom)
    high, low = PI_2[top.dtype]
    if top.dtype == "float32":
        t = num / den
        z = t * t
        p = t * z * horner(z, ATAN["float32"])
        return where(swap, high - (t - (low - p)), t + p)
    # num / den <= 1; above tan(pi/8) turn by pi/4
    turn = num > den * 0.41421356237309503
    t = where(turn, num - den, num) / where(turn, num + den, den)
    z = t * t
    p = t * z * horner(z, ATAN["float64"])
    base: Any
    rest: Any
    base, rest = PI_4[top.dtype]
    base = where(turn, const(top, base), 0.0)
    rest = where(turn, const(top, rest), 0.0)
    # swap: pi/2 - (base + t + p)
    base = where(swap, high - base, base)
    rest = where(swap, low - rest, rest)
    t, p = where(swap, -t, t), where(swap, -p, p)
    return base + (t + (p + rest))


@formula
def atan(x: Sym) -> Sym:
    """Return the arc tangent: a polynomial for the smaller of |x| and 1 / |x|. The maximum error is 1.5 ulp (float32), 1.8 ulp (float64)."""
    a = abs(floating(x))
    return copysign(_atan_ratio(a, const(x, 1.0)), x)


@formula
def atan2(y: Sym | float, x: Sym | float) -> Sym:
    """Return the angle of the point (x, y), with C's conventions for zeros and infinities.

    The maximum error is 1.7 ulp (float32), 1.9 ulp (float64).
    """
    y, x = float_pair(y, x)
    a, b = abs(y), abs(x)
    both = (a == INF) & (b == INF)
    top, bottom = where(both, 1.0, a), where(both, 1.0, b)
    bottom = where((a == 0.0) & (b == 0.0), 1.0, bottom)
    angle = _atan_ratio(top, bottom)
    # the sign bit of x counts, also of -0
    high, low = PI[x.dtype]
    angle = where(copysign(const(x, 1.0), x) < 0.0, high - (angle - low), angle)
    # max and swap above drop a NaN in one operand
    return where(isnan(x) | isnan(y), NAN, copysign(angle, y))
