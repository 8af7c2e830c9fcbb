"""What the families share: polynomials, bit patterns, checks of dtypes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, TypeAlias

from ..symbols import FLOATS, Sym, SymbolError, primitive, unify, where

INF, NAN = math.inf, math.nan

#: float dtype -> the coefficients of a polynomial, the lowest power first
Coefficients: TypeAlias = dict[str, tuple[float, ...]]

#: float dtype -> (unsigned and signed integer of its width, mantissa bits, exponent bias)
LAYOUT = {"float32": ("uint32", "int32", 23, 127), "float64": ("uint64", "int64", 52, 1023)}


def floating(x: Sym) -> Sym:
    if x.dtype not in FLOATS:
        raise SymbolError(f"this function takes a float operand, not {x.dtype}")
    return x


def pair(a: Any, b: Any) -> tuple[Sym, Sym]:
    """Return two operands (one of them may be a Python number) as symbols of one dtype."""
    if not isinstance(a, Sym):
        a = b.trace.as_sym(a, b.dtype)
    return unify(a, a.trace.as_sym(b, a.dtype))


def float_pair(a: Sym | float, b: Sym | float) -> tuple[Sym, Sym]:
    a, b = pair(a, b)
    floating(a)
    return a, b


def horner(x: Sym, coefficients: Sequence[float]) -> Sym | float:
    """Return ``c[0] + c[1] x + c[2] x² + …``"""
    p: Sym | float = coefficients[-1]
    for c in reversed(coefficients[:-1]):
        p = p * x + c
    return p


def const(x: Sym, value: float) -> Sym:
    """Return a literal of x's dtype."""
    return x.trace.constant(value, x.dtype)


def rint(x: Sym) -> Sym:
    return primitive("rint", x)


def trunc(x: Sym) -> Sym:
    return primitive("trunc", x)


def floor(x: Sym) -> Sym:
    return primitive("floor", x)


def sqrt(x: Sym) -> Sym:
    return primitive("sqrt", x)


def copysign(x: Sym, y: Sym) -> Sym:
    return primitive("copysign", x, y)


def isnan(x: Sym) -> Sym:
    return primitive("isnan", x)


def at_most(x: Sym, bound: float) -> Sym:
    """Return min(x, bound) that lets NaN through (the order of operands is that of the vminps instruction)."""
    return where(x > bound, bound, x)


def at_least(x: Sym, bound: float) -> Sym:
    return where(x < bound, bound, x)
