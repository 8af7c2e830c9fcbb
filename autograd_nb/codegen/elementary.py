"""The vectorisable formulas of `vecmath` as scalar functions, for kernels that are written by hand.

A loop that calls `tanh(x)` of this module is inlined and vectorised by LLVM, which one that calls ``math.tanh`` is not. Each
function takes float32 or float64 and returns the same type.
"""

from __future__ import annotations

import linecache
from typing import Any

from numba import config
from numba.extending import overload

from .formula.namespace import FORMULAS, m
from .formula.symbols import FLOATS, Trace
from .jit import HELPER, math
from .templates.loops import HEADER


def _text(name: str, dtype: str) -> str:
    """Return the formula ``name`` as the text of a function ``f(x)``."""
    _ = getattr(m, name)  # loads the formulas
    trace = Trace(dtype)
    y = FORMULAS[name](trace.input("x", dtype))
    before, body = trace.lines([y])
    return HEADER + before + "def f(x):\n" + "".join(f"    {line}\n" for line in (*body, f"return {y.name}"))


#: (name, dtype) -> text; the functions below refer to it, so that it is part of the key of every kernel that calls them
TEXTS = {(name, dtype): _text(name, dtype) for name in ("exp", "tanh", "sigmoid") for dtype in FLOATS}


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


def tanh(x: Any) -> Any:
    """Return the hyperbolic tangent."""
    assert TEXTS
    return type(x)(math.tanh(x))


def sigmoid(x: Any) -> Any:
    """y = 1 / (1 + e^−x)."""
    assert TEXTS
    return type(x)(0.5 + 0.5 * math.tanh(0.5 * x))


def _offer(function: Any) -> None:
    functions = {dtype: _defined(function.__name__, dtype) for dtype in FLOATS}

    def choose(x):
        return functions[x.name]

    overload(function, jit_options=HELPER, inline="never")(choose)


if not config.DISABLE_JIT:
    for _function in (exp, tanh, sigmoid):
        _offer(_function)
