"""The vectorisable formulas of `vecmath` as scalar functions, for kernels that are written by hand.

A loop that calls `tanh(x)` of this module is inlined and vectorised by LLVM, which one that calls ``math.tanh`` is not. Each
function takes float32 or float64 and returns the same type.
"""

from __future__ import annotations

import linecache
from typing import Any

import numpy as np
from numba import config
from numba.extending import overload

from .formula.namespace import FORMULAS, m
from .formula.symbols import FLOATS, Trace
from .jit import HELPER, math
from .templates.loops import HEADER

IN_PLACE = "from autograd_nb.codegen.vectors import in_place\n"


def _text(name: str, dtype: str) -> str:
    """Return the formula ``name`` as the text of a function ``f(x)``, or ``f(x, y)``."""
    _ = getattr(m, name)  # loads the formulas
    trace, names = Trace(dtype), ("x", "y")[: FUNCTIONS[name]]
    y = FORMULAS[name](*[trace.input(operand, kind) for operand, kind in zip(names, (dtype, "float64"), strict=False)])
    before, body = trace.lines([y])
    lines = (*["in_place()"][: len(names) - 1], *body, f"return {y.name}")
    return HEADER + IN_PLACE + before + f"def f({', '.join(names)}):\n" + "".join(f"    {line}\n" for line in lines)


FUNCTIONS = {"exp": 1, "log": 1, "tanh": 1, "sigmoid": 1, "norm_power": 2}  #: and how many operands they have
#: (name, dtype) -> text; the functions below refer to it, so that it is part of the key of every kernel that calls them
TEXTS = {(name, dtype): _text(name, dtype) for name in FUNCTIONS for dtype in FLOATS}


def _defined(name: str, dtype: str) -> Any:
    space: dict[str, Any] = {"__name__": __name__}
    text, filename = TEXTS[name, dtype], f"<autograd_nb:{name}_{dtype}>"
    linecache.cache[filename] = (len(text), None, text.splitlines(keepends=True), filename)
    exec(compile(text, filename, "exec"), space)
    return space["f"]


def exp(x: Any) -> Any:
    """y = e^x."""
    assert TEXTS
    return type(x)(math.exp(x))


def log(x: Any) -> Any:
    """Return the natural logarithm."""
    assert TEXTS
    return type(x)(math.log(x) if x > 0 else -math.inf if x == 0 else math.nan)


def tanh(x: Any) -> Any:
    """Return the hyperbolic tangent."""
    assert TEXTS
    return type(x)(math.tanh(x))


def sigmoid(x: Any) -> Any:
    """y = 1 / (1 + e^−x)."""
    assert TEXTS
    return type(x)(0.5 + 0.5 * math.tanh(0.5 * x))


def norm_power(x: Any, y: float) -> float:
    """y = x^y, x >= 0, as float64: a float32's in its own precision."""
    assert TEXTS
    return np.float64(math.pow(np.float64(x), y))


def _offer(name: str, function: Any) -> None:
    functions = {dtype: _defined(name, dtype) for dtype in FLOATS}

    def choose(x):
        return functions[x.name]

    def choose_for_two(x, y):
        return functions[x.name]

    overload(function, jit_options=HELPER, inline="never")(choose if FUNCTIONS[name] == 1 else choose_for_two)


if not config.DISABLE_JIT:
    for _name, _function in zip(FUNCTIONS, (exp, log, tanh, sigmoid, norm_power), strict=True):
        _offer(_name, _function)
