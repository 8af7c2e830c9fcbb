"""Comparisons and logic: pointwise ops with no gradient, and the tests of whole tensors."""

from __future__ import annotations

from typing import Any

import numpy as np

from ... import dtypes
from ...codegen import threads
from ...codegen.formula.namespace import m
from ...graph.modes import unrecorded
from ...launch import Kernel
from ..core.call_path import known
from ..core.calls import only_tensors
from ..core.memo import ordinary
from ..core.numbers import float_argument, number_argument
from ..core.pointwise import pointwise
from ..core.registry import public
from ..creation.cast import cast
from .arithmetic import _abs, add, mul, sub


@pointwise(result="bool", name="eq", numbers="second")
def eq(a, b):
    """Return whether a = b, element by element; eq([1, 2], [1, 3]) = [ True, False]."""
    return a == b


@pointwise(result="bool", aliases=("not_equal",), numbers="second")
def ne(a, b):
    """Return whether a ≠ b, element by element; ne([1, 2], [1, 3]) = [False, True]."""
    return a != b


@pointwise(result="bool", aliases=("less",), numbers="second")
def lt(a, b):
    """Return whether a < b, element by element; lt([1, 2], [2, 2]) = [ True, False]."""
    return a < b


@pointwise(result="bool", aliases=("less_equal",), numbers="second")
def le(a, b):
    """Return whether a ≤ b, element by element; le([1, 3], [1, 2]) = [ True, False]."""
    return a <= b


@pointwise(result="bool", aliases=("greater",), numbers="second")
def gt(a, b):
    """Return whether a > b, element by element; gt([1, 3], [1, 2]) = [False, True]."""
    return a > b


@pointwise(result="bool", aliases=("greater_equal",), numbers="second")
def ge(a, b):
    """Return whether a ≥ b, element by element; ge([1, 1], [1, 2]) = [ True, False]."""
    return a >= b


@pointwise(result="bool")
def isnan(x):
    """Return whether x is nan; isnan([1., float("nan")]) = [False, True]."""
    return m.isnan(x)


@pointwise(result="bool")
def isfinite(x):
    """Return whether x is neither infinite nor nan; isfinite([1., float("inf")]) = [ True, False]."""
    return m.isfinite(x)


@pointwise(result="bool")
def isinf(x):
    """Return whether x is infinite; isinf([1., float("inf")]) = [False, True]."""
    return m.isinf(x)


@pointwise(result="bool", numbers="none")
def logical_and(a, b):
    """Return whether a ≠ 0 and b ≠ 0; logical_and([0, 1, 1], [1, 0, 1]) = [False, False, True]."""
    return (a != 0) & (b != 0)


@pointwise(result="bool", numbers="none")
def logical_or(a, b):
    """Return whether a ≠ 0 or b ≠ 0; logical_or([0, 0, 1], [0, 1, 1]) = [False, True, True]."""
    return (a != 0) | (b != 0)


@pointwise(result="bool", numbers="none")
def logical_xor(a, b):
    """Return whether exactly one of a ≠ 0, b ≠ 0 holds; logical_xor([0, 1, 1], [1, 0, 1]) = [ True, True, False]."""
    return (a != 0) ^ (b != 0)


@pointwise(result="bool")
def logical_not(x):
    """x = 0; logical_not([0, 2]) = [ True, False]."""
    return x == 0


_same = Kernel("reduce.compare", "same")
_BOOL = np.dtype(np.bool_)


def _plan_equal(checked: bool, input: Any, other: Any) -> tuple[Any, int] | None:
    """Return the kernel that compares memory, and how many elements; None where there is more to it: other orders, threads, observers."""
    layout = input._layout
    if not checked or other._layout is not layout or not layout.contiguous or layout.dtype.is_half or not threads.alone(layout.size):
        return None
    if not ordinary(layout):
        return None
    return _same.entry(layout.dtype.carrier, input._data, other._data, np.empty(1, _BOOL)), layout.size


def _equal_memory(plan: tuple[Any, int], input: Any, other: Any) -> bool:
    same, size = plan
    a, b = input._data, other._data
    if not a.size == b.size == size:
        a, b = a[:size], b[:size]
    found = np.empty(1, _BOOL)
    same(a, b, found)
    return found.item()


@public()
@known("input._layout, other._layout", _plan_equal, _equal_memory)
def equal(input, other) -> bool:
    """Return whether two tensors have the same shape and elements; equal([1, 2], [1, 2]) = True."""
    only_tensors("equal", input, other)
    plan = _plan_equal(True, input, other)
    if plan is not None:
        return _equal_memory(plan, input, other)
    return input.shape == other.shape and bool(eq(input, other).all())


@public()
def isclose(input, other, rtol=1e-05, atol=1e-08, equal_nan=False):
    """Return whether |a − b| ≤ atol + rtol·|b|, element by element; isclose([1., 2.], [1.000001, 2.1]) = [ True, False]."""
    only_tensors("isclose", input, other)
    rtol, atol = number_argument(rtol, "isclose", "rtol"), number_argument(atol, "isclose", "atol")
    if input.dtype is not other.dtype:
        raise RuntimeError(f"{input.dtype} did not match {other.dtype}")
    for name, bound in (("rtol", rtol), ("atol", atol)):
        if not bound >= 0:
            raise RuntimeError(f"{name} must be greater than or equal to zero, but got {bound}")
    with unrecorded():
        close = eq(input, other)
        if equal_nan:
            close = logical_or(close, logical_and(isnan(input), isnan(other)))
        if input.dtype.category < 2:
            input, other = cast(input, dtypes.float64), cast(other, dtypes.float64)
        gap = _abs(sub(input, other))
        return logical_or(close, logical_and(le(gap, add(mul(_abs(other), rtol), atol)), isfinite(gap)))


@public()
def allclose(input, other, rtol=1e-05, atol=1e-08, equal_nan=False) -> bool:
    """Return whether `isclose` holds everywhere; allclose([1., 2.], [1.000001, 2.]) = True."""
    rtol, atol = float_argument(rtol, "allclose", "rtol"), float_argument(atol, "allclose", "atol")
    return bool(isclose(input, other, rtol, atol, equal_nan).all())
