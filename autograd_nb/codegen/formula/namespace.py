"""``m``: the mathematics that a formula may use, on whatever it is run.

On symbols (`Sym`) a function expands to vectorisable primitives (`autograd_nb.codegen.formula.vecmath`); on Tensors it is the
op of the same name, so that a derivative's formula can itself be differentiated; on Python numbers it is `math`. An operand that
is no number says itself what a function does with it, by its method ``__pointwise__(name, args, options)``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

#: name -> formula over symbols; filled by `primitives`, `complexes` and `vecmath`
FORMULAS: dict[str, Callable[..., Any]] = {}
#: name -> formula over symbols of which one is complex; filled by `complexes`
COMPLEX: dict[str, Callable[..., Any]] = {}


def formula(function: Callable[..., Any]) -> Callable[..., Any]:
    """Register a function over symbols under its name (a trailing underscore is dropped) as ``m.<name>``."""
    FORMULAS[function.__name__.rstrip("_")] = function
    return function


def on_complex(function: Callable[..., Any]) -> Callable[..., Any]:
    """Register a function as ``m.<name>`` of complex symbols (a trailing underscore is dropped)."""
    COMPLEX[function.__name__.rstrip("_")] = function
    return function


#: what `math` lacks
_ON_NUMBERS: dict[str, Callable] = {
    "maximum": max, "minimum": min, "abs": abs, "round": round, "isnan": math.isnan, "rsqrt": lambda x: 1 / math.sqrt(x),
    "sigmoid": lambda x: 1 / (1 + math.exp(-x)), "sign": lambda x: (x > 0) - (x < 0), "zero_like": lambda x: type(x)(0),
    "real": lambda x: x.real, "imag": lambda x: x.imag, "conj": lambda x: x.conjugate(), "complex": complex,
}  # fmt: skip


class _Mathematics:
    """The namespace ``m``: ``m.exp(x)``, ``m.where(c, a, b)``, …; see `FORMULAS` for the names."""

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name.startswith("__"):
            raise AttributeError(name)
        if name not in FORMULAS and not hasattr(math, name):
            raise AttributeError(f"m has no function {name!r}; it has: {', '.join(sorted(FORMULAS))}")

        def call(*args: Any, **options: Any) -> Any:
            acting = [a for a in args if hasattr(a, "__pointwise__")]
            if acting:  # a pair of values comes before a plain one
                return max(acting, key=lambda a: getattr(a, "pointwise_rank", 0)).__pointwise__(name, args, options)
            if name == "where":
                return args[1] if args[0] else args[2]
            return _ON_NUMBERS.get(name, getattr(math, name, None))(*args)  # type: ignore[misc]

        call.__name__ = name
        setattr(self, name, call)
        return call


m: _Mathematics = _Mathematics()
