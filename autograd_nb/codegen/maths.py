"""``m``: the mathematics that a formula may use, on whatever it is run.

On symbols (`Sym`) a function expands to vectorisable primitives (`autograd_nb.codegen.vecmath`); on Tensors it is the
op of the same name, so that a derivative's formula can itself be differentiated; on Python numbers it is `math`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from .symbols import COMPONENT, FLOATS, Sym, SymbolError, libm, primitive, unify, where

#: name -> formula over symbols; filled by vecmath and by the primitives below
FORMULAS: dict[str, Callable[..., Sym]] = {}


def formula(function: Callable[..., Sym]) -> Callable[..., Sym]:
    """Register a function over symbols under its name (a trailing underscore is dropped) as ``m.<name>``."""
    FORMULAS[function.__name__.rstrip("_")] = function
    return function


#: what `math` lacks
_ON_NUMBERS: dict[str, Callable] = {
    "maximum": max, "minimum": min, "abs": abs, "round": round, "isnan": math.isnan, "rsqrt": lambda x: 1 / math.sqrt(x),
    "sigmoid": lambda x: 1 / (1 + math.exp(-x)), "sign": lambda x: (x > 0) - (x < 0), "zero_like": lambda x: type(x)(0),
    "real": lambda x: x.real, "imag": lambda x: x.imag, "conj": lambda x: x.conjugate(), "complex": complex,
}  # fmt: skip

_LOADED = False


def _load() -> None:
    global _LOADED
    if not _LOADED:
        _LOADED = True
        from . import complexes, vecmath  # noqa: F401  (they register their formulas)


class _Mathematics:
    """The namespace ``m``: ``m.exp(x)``, ``m.where(c, a, b)``, …; see `FORMULAS` for the names."""

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name.startswith("__"):
            raise AttributeError(name)
        _load()
        expand = FORMULAS.get(name)
        if expand is None and not hasattr(math, name):
            raise AttributeError(f"m has no function {name!r}; it has: {', '.join(sorted(FORMULAS))}")

        def call(*args: Any, **options: Any) -> Any:
            acting = [a for a in args if hasattr(a, "__pointwise__")]  # a tensor, or a pair of values, which comes before
            if acting:
                return max(acting, key=lambda a: getattr(a, "pointwise_rank", 0)).__pointwise__(name, args, options)
            for a in args:
                if isinstance(a, Sym):
                    if any(isinstance(b, Sym) and b.dtype in COMPONENT for b in args):
                        from .complexes import expand as expand_complex

                        return expand_complex(name, args, options)
                    return expand(*args, **options) if expand is not None else libm(f"math.{name}", *args)
            if name == "where":
                return args[1] if args[0] else args[2]
            return _ON_NUMBERS.get(name, getattr(math, name, None))(*args)  # type: ignore[misc]

        call.__name__ = name
        setattr(self, name, call)
        return call


m = _Mathematics()


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
def trunc_divide(a, b):
    if not isinstance(a, Sym):
        a = b.trace.as_sym(a, b.dtype)
    b = a.trace.as_sym(b, a.dtype)
    a, b = unify(a, b)
    if a.dtype in FLOATS:
        return primitive("trunc", a / b)
    # C's truncation from Python's floor
    q = a // b
    return where((q * b != a) & ((a < 0) != (b < 0)), q + 1, q)


@formula
def lgamma(x): return libm("math.lgamma", x)


def _float(x: Sym) -> Sym:
    if x.dtype not in FLOATS:
        raise SymbolError(f"this function takes a float operand, not {x.dtype}")
    return x
