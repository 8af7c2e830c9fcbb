"""The module ``math`` as kernels know it when Python runs them (``NUMBA_DISABLE_JIT=1``).

Python's own raises where a compiled kernel goes on with nan or infinity, and makes doubles of everything.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

pi: float = math.pi
e: float = math.e
inf: float = math.inf
nan: float = math.nan
sqrt: np.ufunc = np.sqrt
exp: np.ufunc = np.exp
expm1: np.ufunc = np.expm1
log: np.ufunc = np.log
log1p: np.ufunc = np.log1p
log2: np.ufunc = np.log2
log10: np.ufunc = np.log10
sin: np.ufunc = np.sin
cos: np.ufunc = np.cos
tan: np.ufunc = np.tan
asin: np.ufunc = np.arcsin
acos: np.ufunc = np.arccos
atan: np.ufunc = np.arctan
atan2: np.ufunc = np.arctan2
sinh: np.ufunc = np.sinh
cosh: np.ufunc = np.cosh
tanh: np.ufunc = np.tanh
asinh: np.ufunc = np.arcsinh
acosh: np.ufunc = np.arccosh
atanh: np.ufunc = np.arctanh
pow: np.ufunc = np.power
hypot: np.ufunc = np.hypot
copysign: np.ufunc = np.copysign
fabs: np.ufunc = np.fabs
fmod: np.ufunc = np.fmod
ldexp: np.ufunc = np.ldexp
frexp: np.ufunc = np.frexp
isnan: np.ufunc = np.isnan
isinf: np.ufunc = np.isinf
isfinite: np.ufunc = np.isfinite


def _whole(function: Callable[[Any], Any]) -> Callable[[Any], int]:
    """Return an integer of what is rounded, the least one for nan and infinity."""
    return lambda x: int(function(x)) if np.isfinite(x) else -(1 << 63)


def _quiet(function: Callable[[Any], float], wrong: float) -> Callable[[Any], Any]:
    """Return a function that gives ``wrong`` where Python's raises, in the type of its argument."""

    def call(x: Any) -> Any:
        try:
            value = function(x)
        except OverflowError:
            value = inf
        except ValueError:
            value = nan if np.isnan(x) else wrong
        return type(x)(value)

    return call


floor: Callable[[Any], int] = _whole(np.floor)
ceil: Callable[[Any], int] = _whole(np.ceil)
trunc: Callable[[Any], int] = _whole(np.trunc)
erf: Callable[[Any], Any] = _quiet(math.erf, nan)
erfc: Callable[[Any], Any] = _quiet(math.erfc, nan)
gamma: Callable[[Any], Any] = _quiet(math.gamma, nan)
lgamma: Callable[[Any], Any] = _quiet(math.lgamma, inf)
