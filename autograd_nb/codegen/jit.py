"""How kernels are compiled: the options, and the decorator of the functions that kernels call.

It imports Numba, so only modules that are imported lazily (`autograd_nb.kernels.*`, `runtime`) may import it.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from numba import _helperlib, config, njit, types

from . import plain_math
from .interpreted import plainly
from .library import Helper, SharedHelper

#: what kernels import in place of the module itself
math: Any = plain_math if config.DISABLE_JIT else sys.modules["math"]

#: a kernel checks no zero division (NumPy's error model), runs without the interpreter's lock, and may fuse a·b + c
OPTIONS: dict[str, Any] = {"error_model": "numpy", "nogil": True, "fastmath": {"contract"}}

#: constants for arguments of helpers: Python's own are part of their types, and a helper is compiled anew for each of those
YES, NO, ZERO, ONE = np.bool_(True), np.bool_(False), np.int64(0), np.int64(1)

#: for sums and products whose order is free: LLVM may reassociate them, and so vectorise
FREE = frozenset({"contract", "nsz", "reassoc"})


#: those of a function that kernels call
HELPER: dict[str, Any] = {**OPTIONS, "no_cpython_wrapper": True, "no_cfunc_wrapper": True, "pipeline_class": Helper}


def helper(
    function: Callable | None = None, *, fastmath: Iterable[str] | None = None, inline: str = "never", shared: bool = False
) -> Any:
    """Decorate a function that kernels call; it cannot be called from Python (but under ``NUMBA_DISABLE_JIT=1``).

    ``shared``: LLVM leaves it one function, which is for what is called in several places and does much at each call.

    Example:
        >>> @helper
        ... def square(x):
        ...     return x * x
        >>> @helper(fastmath=FREE)
        ... def dot2(a, b, c, d):
        ...     return a * b + c * d
    """
    if config.DISABLE_JIT:
        return plainly if function is None else plainly(function)
    options = {**HELPER, "inline": inline}
    if shared:
        options["pipeline_class"] = SharedHelper
    if fastmath is not None:
        options["fastmath"] = set(fastmath)
    return njit(**options) if function is None else njit(**options)(function)


#: types of arguments of `external`
POINTER: Any
SIZE: Any
LETTER: Any
FLOAT: Any
POINTER, SIZE, LETTER, FLOAT = types.voidptr, types.intp, types.char, types.float64
_CTYPES = {POINTER: ctypes.c_void_p, SIZE: ctypes.c_ssize_t, LETTER: ctypes.c_char, FLOAT: ctypes.c_double}


def external(name: str, *arguments: Any) -> Any:
    """Return a C function that returns an int, of those that Numba brings along, for kernels to call; arrays go as ``array.ctypes``.

    It is named as an external symbol, not by its address, so that compiled kernels can be kept on disk.
    """
    if not config.DISABLE_JIT:
        return types.ExternalFunction(name, types.intc(*arguments))
    address = getattr(_helperlib, "c_helpers")[name.removeprefix("numba_")]  # noqa: B009
    function = ctypes.CFUNCTYPE(ctypes.c_int, *(_CTYPES[a] for a in arguments))(address)
    return lambda *given: function(*(a.item() if isinstance(a, np.generic) else a for a in given))
