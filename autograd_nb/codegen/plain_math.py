"""The module ``math`` as kernels know it when Python runs them (``NUMBA_DISABLE_JIT=1``).

Python's own raises where a compiled kernel goes on with nan or infinity, and makes doubles of everything.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

pi, e, inf, nan = math.pi, math.e, math.inf, math.nan
sqrt, exp, expm1, log, log1p, log2, log10 = np.sqrt, np.exp, np.expm1, np.log, np.log1p, np.log2, np.log10
sin, cos, tan, asin, acos, atan, atan2 = np.sin, np.cos, np.tan, np.arcsin, np.arccos, np.arctan, np.arctan2
sinh, cosh, tanh, asinh, acosh, atanh = np.sinh, np.cosh, np.tanh, np.arcsinh, np.arccosh, np.arctanh
pow, hypot, copysign, fabs, fmod, ldexp, frexp = np.power, np.hypot, np.copysign, np.fabs, np.fmod, np.ldexp, np.frexp
isnan, isinf, isfinite = np.isnan, np.isinf, np.isfinite


def _whole(function: Callable) -> Callable:
    """Return an integer of what is rounded, the least one for nan and infinity."""
    return lambda x: int(function(x)) if np.isfinite(x) else -(1 << 63)


def _quiet(function: Callable, wrong: float) -> Callable:
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


floor, ceil, trunc = _whole(np.floor), _whole(np.ceil), _whole(np.trunc)
erf, erfc = _quiet(math.erf, nan), _quiet(math.erfc, nan)
gamma, lgamma = _quiet(math.gamma, nan), _quiet(math.lgamma, inf)
