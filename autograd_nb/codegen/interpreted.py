"""Kernels as Python runs them (``NUMBA_DISABLE_JIT=1``), with the numbers that a compiled one has.

Python's own floats raise where one is divided by zero or grows too large, and NumPy's arrays of integers refuse numbers that are too
large for them. Machine code goes on with infinity, nan, and the last bits of the number.
"""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any

import numpy as np

#: the types of arguments that are numbers
NUMBERS: dict[type, Callable[..., Any]] = {int: np.int64, float: np.float64, complex: np.complex128}


class Integers(np.ndarray):
    """An array of integers that keeps the last bits of what is stored in it."""

    def __setitem__(self, key: Any, value: Any) -> None:
        if value.__class__ is not self.dtype.type:
            value = last_bits(value, self.dtype)
        super().__setitem__(key, value)


def last_bits(value: Any, dtype: np.dtype) -> Any:
    """Return a number or an array in a type of integers, as machine code converts it."""
    if isinstance(value, int):  # one that may have outgrown all types
        value = np.uint64(value & 0xFFFFFFFFFFFFFFFF)
    elif isinstance(value, (float, complex)) and not isinstance(value, np.generic):
        value = np.asarray(value)
    return value.astype(dtype)


def plainly(function: Callable) -> Callable:
    """Return the function, from now on with numbers of the types that its literals have in a compiled one."""
    function.__code__ = _typed(function.__code__)  # type: ignore[attr-defined]
    return function


def _typed(value: Any) -> Any:
    if isinstance(value, types.CodeType):
        return value.replace(co_consts=tuple(map(_typed, value.co_consts)))
    if isinstance(value, tuple):
        return tuple(map(_typed, value))
    return NUMBERS[type(value)](value) if type(value) in (float, complex) else value


def argument(value: Any) -> Any:
    """Return what a kernel gets for an argument of its entry point."""
    if isinstance(value, np.ndarray):
        return value.view(Integers) if value.dtype.kind in "iu" else value
    if isinstance(value, list):
        return [argument(v) for v in value]
    make = NUMBERS.get(type(value))
    if make is None and isinstance(value, int) and value.__class__ is not bool:  # (what marks the seed of a pass that is repeated)
        make = np.int64
    return value if make is None else make(value)
