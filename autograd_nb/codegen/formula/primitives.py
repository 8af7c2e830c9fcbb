"""The functions of ``m`` that are one instruction, or a few, of any processor."""

from __future__ import annotations

from .namespace import formula
from .symbols import FLOATS, Sym, SymbolError, libm, primitive, where


@formula
def where_(condition, a, b):
    condition = condition if isinstance(condition, Sym) else next(v for v in (a, b) if isinstance(v, Sym)).trace.as_sym(condition)
    return where(condition, a, b)


@formula
def sqrt(x): return primitive("sqrt", _float(x))


@formula
def abs_(x): return abs(x)


@formula
def floor(x): return primitive("floor", x) if x.dtype in FLOATS else x


@formula
def ceil(x): return primitive("ceil", x) if x.dtype in FLOATS else x


@formula
def trunc(x): return primitive("trunc", x) if x.dtype in FLOATS else x


@formula
def round_(x): return primitive("rint", x) if x.dtype in FLOATS else x


@formula
def copysign(x, y):
    if not isinstance(x, Sym):
        x = y.trace.as_sym(x, y.dtype)
    return primitive("copysign", x, y)


@formula
def isnan(x):
    return primitive("isnan", x) if x.dtype in FLOATS else x.trace.constant(False, "bool")


@formula
def isfinite(x):
    return x - x == x - x if x.dtype in FLOATS else x.trace.constant(True, "bool")


@formula
def isinf(x):
    return (x == x) & (x - x != x - x) if x.dtype in FLOATS else x.trace.constant(False, "bool")


@formula
def zero_like(x): return x.trace.constant(0, x.dtype)


@formula
def lgamma(x): return libm("math.lgamma", x)


def _float(x: Sym) -> Sym:
    if x.dtype not in FLOATS:
        raise SymbolError(f"this function takes a float operand, not {x.dtype}")
    return x
