"""Comparisons, signs and divisions with PyTorch's conventions, and integer keys in the order of floats."""

from __future__ import annotations

from collections.abc import Callable

from ..namespace import formula
from ..symbols import FLOATS, Sym, libm, usually, where
from .common import INF, LAYOUT, NAN, const, copysign, float_pair, floating, floor, isnan, pair, sqrt, trunc


@formula
def maximum(a: Sym | float, b: Sym | float) -> Sym:
    """Return the larger of two values; NaN if either is NaN."""
    a, b = pair(a, b)
    larger = where(a > b, a, b)
    return where(isnan(a), a, larger) if a.dtype in FLOATS else larger


@formula
def minimum(a: Sym | float, b: Sym | float) -> Sym:
    """Return the smaller of two values; NaN if either is NaN."""
    a, b = pair(a, b)
    smaller = where(a < b, a, b)
    return where(isnan(a), a, smaller) if a.dtype in FLOATS else smaller


@formula
def sign(x: Sym) -> Sym:
    """Return -1, 0 or 1; 0 for NaN, as in PyTorch."""
    zero = const(x, 0)
    positive = where(x > 0, const(x, 1), zero)
    return positive if x.dtype.startswith("u") else where(x < 0, -1, positive)


def _split(x: Sym) -> tuple[Sym, Sym, Sym]:
    """Return (x with denormals scaled up, its biased exponent as an integer, whether it was scaled)."""
    unsigned, _, mantissa, bias = LAYOUT[x.dtype]
    small = abs(x) < 2.0 ** (1 - bias)
    scaled = where(small, x * 2.0**mantissa, x)
    return scaled, (scaled.bitcast(unsigned) >> mantissa) & (2 * bias + 1), small


def _plain(x: Sym) -> Sym:
    """Return whether x is neither 0, infinite nor NaN."""
    return (x - x == 0.0) & (x != 0.0)


@formula
def exponent(x: Sym) -> Sym:
    """Return the e of x = mantissa 2^e, 1/2 <= |mantissa| < 1, as a float; 0 for 0, infinities and NaN."""
    _, _, mantissa, bias = LAYOUT[floating(x).dtype]
    _, biased, small = _split(x)
    return where(_plain(x), biased.cast(x.dtype) - where(small, float(bias - 1 + mantissa), float(bias - 1)), 0.0)


@formula
def mantissa(x: Sym) -> Sym:
    """Return x / 2^exponent(x)."""
    unsigned, _, bits, bias = LAYOUT[floating(x).dtype]
    scaled, _, _ = _split(x)
    keep = ((1 << bits) - 1) | (1 << (bits + (8 if x.dtype == "float32" else 11)))
    return where(_plain(x), ((scaled.bitcast(unsigned) & keep) | ((bias - 1) << bits)).bitcast(x.dtype), x)


def _ordered(x: Sym, nan: int) -> Sym:
    _, signed, _, _ = LAYOUT[x.dtype]
    width = 32 if x.dtype == "float32" else 64
    bits = x.bitcast(signed)
    return where(isnan(x), nan, bits ^ ((bits >> (width - 1)) & (2 ** (width - 1) - 1)))


@formula
def order_key(x: Sym) -> Sym:
    """Return a signed integer of x's width that sorts as x does (-0 before 0), with NaN the largest of all."""
    return _ordered(x, 2**31 - 1 if x.dtype == "float32" else 2**63 - 1)


@formula
def order_key_min(x: Sym) -> Sym:
    """Return `order_key` with NaN the smallest of all."""
    return _ordered(x, -(2**31) if x.dtype == "float32" else -(2**63))


@formula
def from_order_key(key: Sym) -> Sym:
    """Return the float whose `order_key` or `order_key_min` this is."""
    dtype, width = ("float32", 32) if key.dtype == "int32" else ("float64", 64)
    return (key ^ ((key >> (width - 1)) & (2 ** (width - 1) - 1))).bitcast(dtype)


@formula
def nextafter(a: Sym | float, b: Sym | float) -> Sym:
    """Return the next number after a towards b: the next integer of a's bits, up where b lies farther from 0."""
    a, b = float_pair(a, b)
    unsigned = LAYOUT[a.dtype][0]
    bits = a.bitcast(unsigned)
    step = where((a < b) ^ (a > 0.0), bits - 1, bits + 1).bitcast(a.dtype)
    first = copysign(bits.trace.constant(1, unsigned).bitcast(a.dtype), b)
    y = where(a == b, b, where(a == 0.0, first, step))
    return where(isnan(a) | isnan(b), a + b, y)


def _by_floats(a: Sym, b: Sym, divided: Callable[[Sym, Sym], Sym], exact: Sym) -> Sym:
    """Return what a division by vectors of float64 makes of two integers, ``exact`` of those that 51 bits do not hold.

    The quotient of integers of so few bits is farther from the next integer than it is rounded.
    """
    if a.dtype in ("uint64", "bool"):
        return exact
    round_ = 1.5 * 2.0**52  # an integer added to its bits is added to the number
    bits = b.trace.constant(0x4338000000000000, "uint64")
    wide = a.dtype == "int64"
    x, y = ((v.cast("uint64") + bits).bitcast("float64") - round_ if wide else v.cast("float64") for v in (a, b))
    quick = ((divided(x, y) + round_).bitcast("uint64") - bits).cast(a.dtype)
    if not wide:
        return quick
    few = ((a + 2**50).cast("uint64") < 2**51) & ((b + 2**50).cast("uint64") < 2**51)
    return usually(few, quick, exact)


def _quick_fmod(a: Sym, b: Sym) -> tuple[Sym, Sym]:
    """Return (whether the quotient is small enough, the exact remainder if it is) of two float32 or two float64."""
    x, y = abs(a), abs(b)
    if a.dtype == "float32":
        # 28 bits and the 24 of a float32 differ from an integer by more than a float64's rounding
        wide, by = x.cast("float64"), y.cast("float64")
        rest = wide - trunc(wide / by) * by
        return (x < y * 2.0**28) & (y < INF), copysign(rest.cast("float32"), a)
    # 26 bits of the quotient times 27, then 26 of the divisor; rounding may have made the quotient one too large
    high = (y.bitcast("uint64") & 0xFFFFFFFFFC000000).bitcast("float64")
    q = trunc(x / y)
    rest = (x - q * high) - q * (y - high)
    return (x < y * 2.0**26) & (y < INF), copysign(where(rest < 0.0, rest + y, rest), a)


@formula
def fmod(a: Sym | float, b: Sym | float) -> Sym:
    """Return the remainder of truncated division: the sign of ``a``; exact. The C library finds it where the quotient is huge."""
    a, b = pair(a, b)
    if a.dtype in FLOATS:
        few, rest = _quick_fmod(a, b)
        return usually(few, rest, libm("np.fmod", a, b))
    r = a % b
    r = where((r != 0) & ((a < 0) != (b < 0)), r - b, r) if not a.dtype.startswith("u") else r
    return _by_floats(a, b, lambda x, y: x - trunc(x / y) * y, r)


@formula
def remainder(a: Sym | float, b: Sym | float) -> Sym:
    """Return the remainder of floored division: the sign of ``b``, as ``%`` in Python; exact."""
    a, b = pair(a, b)
    if a.dtype not in FLOATS:
        return _by_floats(a, b, lambda x, y: x - floor(x / y) * y, a % b)
    r = fmod(a, b)
    return where((r != 0) & ((r < 0) != (b < 0)), r + b, r)


@formula
def trunc_divide(a: Sym | float, b: Sym | float) -> Sym:
    """Return the quotient rounded towards 0."""
    a, b = pair(a, b)
    if a.dtype in FLOATS:
        return trunc(a / b)
    q = a // b
    # C's truncation from Python's floor
    q = where((q * b != a) & ((a < 0) != (b < 0)), q + 1, q) if not a.dtype.startswith("u") else q
    return _by_floats(a, b, lambda x, y: trunc(x / y), q)


@formula
def hypot(a: Sym | float, b: Sym | float) -> Sym:
    """Return sqrt(a^2 + b^2) without overflow: float32 by way of float64, float64 scaled by a power of two; inf beats NaN."""
    a, b = float_pair(a, b)
    if a.dtype == "float32":
        x, y = a.cast("float64"), b.cast("float64")
        r = sqrt(x * x + y * y).cast("float32")
    else:
        x, y = abs(a), abs(b)
        big = where(x > y, x, y)
        up, down = big < 2.0**-500, big > 2.0**500
        factor = where(up, 2.0**600, where(down, 2.0**-600, const(a, 1.0)))
        back = where(up, 2.0**-600, where(down, 2.0**600, const(a, 1.0)))
        x, y = x * factor, y * factor
        r = sqrt(x * x + y * y) * back
    return where((abs(a) == INF) | (abs(b) == INF), INF, r)


@formula
def floor_divide(a: Sym | float, b: Sym | float) -> Sym:
    """Return the quotient of floored division as in PyTorch: a / b where b is 0."""
    a, b = pair(a, b)
    if a.dtype not in FLOATS:
        return _by_floats(a, b, lambda x, y: floor(x / y), a // b)
    q = a / b
    if a.dtype == "float32":
        # in float64 the quotient of two float32 is never rounded across an integer that a float32 result could tell from it
        down = floor(a.cast("float64") / b.cast("float64")).cast("float32")
        down = where((abs(b) == INF) & (a * b < 0), -1.0, down)
        return where(b == 0, q, where(abs(a) == INF, NAN, down))
    r = fmod(a, b)
    whole = (a - r) / b
    whole = where((r != 0) & ((b < 0) != (r < 0)), whole - 1, whole)
    down = floor(whole)
    down = where(whole - down > 0.5, down + 1, down)
    down = where(whole == 0, copysign(const(a, 0), q), down)
    return where(b == 0, q, down)
