"""Complex values in formulas: pairs of real symbols.

Arithmetic and functions of a complex symbol expand to real arithmetic on its two parts, so that the vectorisable functions
of `autograd_nb.codegen.formula.vecmath` serve both, and only loads and stores see a complex number. A real operand beside a complex
one stays real: it has no imaginary part to multiply with.

Inverse functions after W. Kahan, "Branch cuts for complex elementary functions", 1987, with C's conventions at the cuts, and of infinities and nan
(C17, Annex G.6).
"""

from __future__ import annotations

import math
from typing import Any

from .namespace import COMPLEX, FORMULAS, formula, m, on_complex
from .symbols import BOOL, COMPONENT, ComplexError, Sym, primitive, where

_OF_PARTS = {"float32": "complex64", "float64": "complex128"}


def pair(re: Any, im: Any) -> Sym:
    """Return the complex value of two real ones."""
    if not isinstance(re, Sym):
        re = im.trace.as_sym(re, im.dtype)
    im = re.trace.as_sym(im, re.dtype)
    if re.dtype != im.dtype or re.dtype not in _OF_PARTS:
        wide = "float64" if "float64" in (re.dtype, im.dtype) else "float32"
        re, im = re.cast(wide), im.cast(wide)
    return re.trace._emit("complex", (re, im), _OF_PARTS[re.dtype])


def _is(x: Any) -> bool:
    return x.dtype in COMPONENT


@on_complex
def arithmetic(op: str, a: Any, b: Any) -> Sym:
    """Return ``a op b`` where at least one is complex."""
    trace = (a if isinstance(a, Sym) else b).trace
    component = "float64" if any(isinstance(x, Sym) and x.dtype in ("complex128", "float64") for x in (a, b)) else "float32"
    a, b = (x if isinstance(x, Sym) else trace.as_sym(x, component) for x in (a, b))
    a, b = (x.cast(_OF_PARTS[component] if _is(x) else component) for x in (a, b))
    if op in ("add", "sub"):
        re = a.real + b.real if op == "add" else a.real - b.real
        if _is(a) and _is(b):
            return pair(re, a.imag + b.imag if op == "add" else a.imag - b.imag)
        return pair(re, a.imag if _is(a) else b.imag if op == "add" else -b.imag)
    if op == "mul":
        if not _is(a):
            a, b = b, a
        if not _is(b):
            return pair(a.real * b, a.imag * b)
        return pair(a.real * b.real - a.imag * b.imag, a.real * b.imag + a.imag * b.real)
    if op == "div":
        return _divide(a, b)
    if op in ("eq", "ne"):
        im, zero = (b.imag, a.imag) if _is(a) and _is(b) else ((a if _is(a) else b).imag, 0.0)
        return (a.real == b.real) & (im == zero) if op == "eq" else (a.real != b.real) | (im != zero)
    raise ComplexError(f"complex values have no {op}")


def _divide(a: Sym, b: Sym) -> Sym:
    if not _is(b):
        return pair(a.real / b, a.imag / b)
    # scaled by the larger part of the divisor, so that squares do not overflow (R. L. Smith, 1962)
    c, d = b.real, b.imag
    wide = abs(c) >= abs(d)
    top, low = where(wide, c, d), where(wide, d, c)
    r = where(top == 0, top, low / top)
    scale = top + low * r
    x, y = a.real, a.imag if _is(a) else a.trace.constant(0.0, a.dtype)
    re = where(wide, x + y * r, x * r + y)
    im = where(wide, y - x * r, y * r - x)
    return pair(re / scale, im / scale)


# ------------------------------------------------------------------------------------------- on any symbol


@formula
def real(x): return x.real


@formula
def imag(x): return x.imag


@formula
def conj(x): return x.conj


@formula
def complex_(re, im): return pair(re, im)


@formula
def sgn(x): return m.sign(x)


@formula
def angle(x):
    """Return π for negative numbers, 0 for others and nan for nan."""
    return where(x != x, x, where(x < 0, x.trace.constant(math.pi, x.dtype), x.trace.constant(0.0, x.dtype)))


# ------------------------------------------------------------------------------------------------- parts


on_complex(real)
on_complex(imag)
on_complex(conj)


@on_complex
def abs_(z): return m.hypot(z.real, z.imag)


@on_complex
def zero_like(z): return z.trace.as_sym(0.0, z.dtype).cast(z.dtype)


@on_complex
def sgn_(z):
    r = abs_(z)
    zero = r == 0
    return pair(where(zero, 0.0, z.real / r), where(zero, 0.0, z.imag / r))


@on_complex
def angle_(z): return m.atan2(z.imag, z.real)


@on_complex
def isnan(z): return m.isnan(z.real) | m.isnan(z.imag)


@on_complex
def isinf(z): return m.isinf(z.real) | m.isinf(z.imag)


@on_complex
def isfinite(z): return m.isfinite(z.real) & m.isfinite(z.imag)


@on_complex
def where_(condition, a, b):
    if not isinstance(condition, Sym):
        condition = next(v for v in (a, b) if isinstance(v, Sym)).trace.as_sym(condition)
    if _is(condition):
        condition = condition.cast(BOOL)
    return where(condition, a, b)


# --------------------------------------------------------------------------------- exponentials, logarithms, powers


def _i(z: Sym) -> Sym:
    """Return i · z."""
    return pair(-z.imag, z.real)


def _minus_i(z: Sym) -> Sym:
    return pair(z.imag, -z.real)


@on_complex
def exp(z):
    x, y, e = z.real, z.imag, m.exp(z.real)
    real_, lost = y == 0, m.isinf(x) & (y - y != 0)  # e^∞ · sin 0 is 0; e^-∞ is 0 in no direction
    return pair(where(real_ | lost, e, e * m.cos(y)), where(real_, y, where(lost & (x < 0), 0.0, e * m.sin(y))))


@on_complex
def exp2(z): return exp(z * math.log(2.0))


@on_complex
def expm1(z):
    half = m.sin(z.imag * 0.5)
    return pair(m.expm1(z.real) * m.cos(z.imag) - 2.0 * half * half, m.exp(z.real) * m.sin(z.imag))


@on_complex
def log(z): return pair(m.log(abs_(z)), angle_(z))


@on_complex
def log2(z): return log(z) * (1 / math.log(2.0))


@on_complex
def log10(z): return log(z) * (1 / math.log(10.0))


@on_complex
def log1p(z):
    x, y = z.real, z.imag
    near = 0.5 * m.log1p(x * (2.0 + x) + y * y)
    far = m.log(m.hypot(1.0 + x, y))
    return pair(where((abs(x) < 0.5) & (abs(y) < 0.5), near, far), m.atan2(y, 1.0 + x))


@on_complex
def sqrt(z):
    x, y = z.real, z.imag
    t = primitive("sqrt", 0.5 * (m.hypot(x, y) + abs(x)))
    other = where(t == 0, y, y / (2.0 * t))
    high = m.isinf(y)  # whatever x is
    return pair(where(high, abs(y), where(x >= 0, t, abs(other))), where(high, y, where(x >= 0, other, m.copysign(t, y))))


@on_complex
def rsqrt(z): return 1.0 / sqrt(z)


@on_complex
def square(z): return z * z


@on_complex
def reciprocal(z): return 1.0 / z


@on_complex
def pow_(z, w):
    z, w = (v if isinstance(v, Sym) else (z if isinstance(z, Sym) else w).trace.as_sym(v) for v in (z, w))
    zero = (z.real == 0) & (z.imag == 0)
    power = exp(w * (log(z) if _is(z) else m.log(z))) if _is(z) else exp(w * log(pair(z, 0.0)))
    return where(zero, where((w.real == 0) & (w.imag == 0), 1.0, 0.0), power)


@on_complex
def logaddexp(a, b):
    first = a.real >= b.real
    top, low = where(first, a, b), where(first, b, a)
    endless = (a.real == b.real) & m.isinf(a.real)  # both sums of parts or none: nothing can be taken out of them
    y = where(endless, where(a.real < 0, b, log(exp(a) + exp(b))), top + log1p(exp(low - top)))
    undefined = a.trace.constant(math.nan, a.real.dtype)
    return where(isnan(a) | isnan(b), pair(undefined, undefined), y)


@on_complex
def sigmoid(z): return 1.0 / (1.0 + exp(-z))


# ------------------------------------------------------------------------------------------------ trigonometry


@on_complex
def sin(z): return _minus_i(sinh(_i(z)))


@on_complex
def cos(z): return cosh(_i(z))


@on_complex
def sinh(z):
    x, y, wild = z.real, z.imag, z.imag - z.imag != 0
    return pair(where(wild & ((x == 0) | m.isinf(x)), x, m.sinh(x) * m.cos(y)), where(y == 0, y, m.cosh(x) * m.sin(y)))


@on_complex
def cosh(z):
    x, y, wild = z.real, z.imag, z.imag - z.imag != 0
    im = where(wild & (x == 0), x, m.sinh(x) * m.sin(y))
    return pair(where(wild & m.isinf(x), abs(x), m.cosh(x) * m.cos(y)), where(y == 0, y * m.copysign(1.0, x), im))


@on_complex
def tanh(z):
    x, y, wild = z.real, z.imag, z.imag - z.imag != 0
    t, s = m.tan(y), m.sinh(x)
    beta = 1.0 + t * t
    below = 1.0 + beta * s * s
    far = abs(x) > 20.0  # there sinh² is beyond what 1 changes, and later beyond all numbers
    edge = where(wild & m.isinf(x), 0.0, 4.0 * m.sin(y) * m.cos(y) * m.exp(-2.0 * abs(x)))
    one = where(wild & ~m.isinf(x), y - y, m.copysign(1.0, x))
    re = where(far, one, where(wild & (x == 0), x, beta * primitive("sqrt", 1.0 + s * s) * s / below))
    return pair(re, where(y == 0, y, where(far, edge, t / below)))


@on_complex
def tan(z): return _minus_i(tanh(_i(z)))


def _ends(z: Sym) -> tuple[Sym, Sym]:
    """Return (whether a part is infinite, that infinity)."""
    x, y = m.isinf(z.real), m.isinf(z.imag)
    return x | y, where(x, abs(z.real), abs(z.imag))


@on_complex
def asin(z): return _minus_i(asinh(_i(z)))


@on_complex
def acos(z):
    low, high = sqrt(1.0 - z), sqrt(1.0 + z)
    (end, infinity), x, y = _ends(z), z.real, z.imag
    re = where((x == 0) & (y != y), math.pi / 2, 2.0 * m.atan2(low.real, high.real))
    im = m.asinh(high.real * low.imag - high.imag * low.real)
    return pair(where(end, m.atan2(abs(y), x), re), where(end, -m.copysign(infinity, y), im))


@on_complex
def atan(z): return _minus_i(atanh(_i(z)))


@on_complex
def asinh(z):
    w = _i(z)
    low, high = sqrt(1.0 - w), sqrt(1.0 + w)
    (end, infinity), x, y = _ends(z), z.real, z.imag
    re = m.asinh(low.real * high.imag - low.imag * high.real)
    im = where(y == 0, y, -m.atan2(w.real, low.real * high.real - low.imag * high.imag))
    return pair(where(end, m.copysign(infinity, x), re), where(end, m.atan2(y, abs(x)), im))


@on_complex
def acosh(z):
    low, high = sqrt(z - 1.0), sqrt(z + 1.0)
    (end, infinity), x, y = _ends(z), z.real, z.imag
    im = where((x == 0) & (y != y), math.pi / 2, 2.0 * m.atan2(low.imag, high.real))
    return pair(where(end, infinity, m.asinh(low.real * high.real + low.imag * high.imag)), where(end, m.atan2(y, x), im))


@on_complex
def atanh(z):
    x, y = z.real, z.imag
    end, _ = _ends(z)
    far, near = abs(x), 1.0 - abs(x)  # (a quotient near −1 would have few digits left beside 1)
    re = m.copysign(0.25 * m.log1p(4.0 * far / (near * near + y * y)), x)
    im = 0.5 * m.atan2(2.0 * y, (1.0 - x) * (1.0 + x) - y * y)
    return pair(
        where(end | ((x == 0) & (y != y)), m.copysign(0.0, x), re), where(end & (y == y), m.copysign(math.pi / 2, y), im)
    )


# both come as functions of real symbols too
COMPLEX["complex"] = FORMULAS["complex"]
