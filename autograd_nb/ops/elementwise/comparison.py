"""Comparisons and logic: pointwise ops with no gradient, and the tests of whole tensors."""

from __future__ import annotations

from ... import dtypes
from ...codegen.formula.namespace import m
from ...graph.modes import unrecorded
from ..core.calls import only_tensors
from ..core.pointwise import pointwise
from ..core.registry import public
from ..creation.cast import cast
from .arithmetic import _abs, add, mul, sub


@pointwise(result="bool", name="eq", numbers="second")
def eq(a, b):
    """Return whether a = b, element by element."""
    return a == b


@pointwise(result="bool", aliases=("not_equal",), numbers="second")
def ne(a, b):
    """Return whether a ≠ b, element by element."""
    return a != b


@pointwise(result="bool", aliases=("less",), numbers="second")
def lt(a, b):
    """Return whether a < b, element by element."""
    return a < b


@pointwise(result="bool", aliases=("less_equal",), numbers="second")
def le(a, b):
    """Return whether a ≤ b, element by element."""
    return a <= b


@pointwise(result="bool", aliases=("greater",), numbers="second")
def gt(a, b):
    """Return whether a > b, element by element."""
    return a > b


@pointwise(result="bool", aliases=("greater_equal",), numbers="second")
def ge(a, b):
    """Return whether a ≥ b, element by element."""
    return a >= b


@pointwise(result="bool")
def isnan(x):
    """Return whether x is nan."""
    return m.isnan(x)


@pointwise(result="bool")
def isfinite(x):
    """Return whether x is neither infinite nor nan."""
    return m.isfinite(x)


@pointwise(result="bool")
def isinf(x):
    """Return whether x is infinite."""
    return m.isinf(x)


@pointwise(result="bool", numbers="none")
def logical_and(a, b):
    """Return whether a ≠ 0 and b ≠ 0."""
    return (a != 0) & (b != 0)


@pointwise(result="bool", numbers="none")
def logical_or(a, b):
    """Return whether a ≠ 0 or b ≠ 0."""
    return (a != 0) | (b != 0)


@pointwise(result="bool", numbers="none")
def logical_xor(a, b):
    """Return whether exactly one of a ≠ 0, b ≠ 0 holds."""
    return (a != 0) ^ (b != 0)


@pointwise(result="bool")
def logical_not(x):
    """x = 0."""
    return x == 0


@public()
def equal(input, other) -> bool:
    """Return whether two tensors have the same shape and elements."""
    return input.shape == other.shape and bool(eq(input, other).all())


@public()
def isclose(input, other, rtol=1e-05, atol=1e-08, equal_nan=False):
    """Return whether |a − b| ≤ atol + rtol·|b|, element by element."""
    only_tensors("isclose", input, other)
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
    """Return whether `isclose` holds everywhere."""
    return bool(isclose(input, other, rtol, atol, equal_nan).all())
