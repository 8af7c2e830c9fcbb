"""Comparisons, logic and operations on bits: pointwise ops with no gradient, and the tests of whole tensors."""

from __future__ import annotations

from typing import Any

from .. import dtypes
from ..codegen.maths import m
from ..tensor import Tensor
from .arithmetic import _abs, add, mul, sub
from .calls import only_tensors
from .cast import cast
from .pointwise import pointwise
from .recording import store
from .registry import public, register
from .structured import tensor_argument


@pointwise(result="bool", name="eq", numbers="second")
def eq(a, b):
    """Whether a = b, element by element."""
    return a == b


@pointwise(result="bool", aliases=("not_equal",), numbers="second")
def ne(a, b):
    """Whether a ≠ b, element by element."""
    return a != b


@pointwise(result="bool", aliases=("less",), numbers="second")
def lt(a, b):
    """Whether a < b, element by element."""
    return a < b


@pointwise(result="bool", aliases=("less_equal",), numbers="second")
def le(a, b):
    """Whether a ≤ b, element by element."""
    return a <= b


@pointwise(result="bool", aliases=("greater",), numbers="second")
def gt(a, b):
    """Whether a > b, element by element."""
    return a > b


@pointwise(result="bool", aliases=("greater_equal",), numbers="second")
def ge(a, b):
    """Whether a ≥ b, element by element."""
    return a >= b


@pointwise(result="bool")
def isnan(x):
    """Whether x is nan."""
    return m.isnan(x)


@pointwise(result="bool")
def isfinite(x):
    """Whether x is neither infinite nor nan."""
    return m.isfinite(x)


@pointwise(result="bool")
def isinf(x):
    """Whether x is infinite."""
    return m.isinf(x)


@pointwise(result="bool", numbers="none")
def logical_and(a, b):
    """a ≠ 0 and b ≠ 0."""
    return (a != 0) & (b != 0)


@pointwise(result="bool", numbers="none")
def logical_or(a, b):
    """a ≠ 0 or b ≠ 0."""
    return (a != 0) | (b != 0)


@pointwise(result="bool", numbers="none")
def logical_xor(a, b):
    """Exactly one of a ≠ 0, b ≠ 0."""
    return (a != 0) ^ (b != 0)


@pointwise(result="bool")
def logical_not(x):
    """x = 0."""
    return x == 0


@pointwise(name="bitwise_and", public=False)
def _bitwise_and(a, b):
    return a & b


@pointwise(name="bitwise_or", public=False)
def _bitwise_or(a, b):
    return a | b


@pointwise(name="bitwise_xor", public=False)
def _bitwise_xor(a, b):
    return a ^ b


def _bitwise(name: str, op: Any) -> Any:
    def check(*args: Any) -> None:
        for a in args:
            if (isinstance(a, Tensor) and a.dtype.category > 1) or isinstance(a, float):
                raise RuntimeError(
                    f'"{name}" is not implemented for floating-point operands; use logical_* or cast to integers'
                )

    def call(input, other, *, out=None):
        only_tensors(name, input, other, "either")
        check(input, other)
        y = op(input, other)
        return y if out is None else store(out, y, name)

    def inner(input, other):
        check(input, other)
        return op.inplace(input, other)

    call.__name__, inner.__name__ = name, name + "_"
    call.__doc__ = f"{name.replace('_', ' ')} of integers or booleans. RuntimeError for floats."
    inner.__doc__ = f"In-place version of `{name}`."
    register(name, call, "pointwise", differentiable=False, rule=op.op)
    register(name + "_", inner, "inplace")
    return call


bitwise_and = _bitwise("bitwise_and", _bitwise_and)
bitwise_or = _bitwise("bitwise_or", _bitwise_or)
bitwise_xor = _bitwise("bitwise_xor", _bitwise_xor)


@pointwise(name="bitwise_not", public=False)
def _bitwise_not(x):
    return ~x


@public()
def bitwise_not(input, *, out=None):
    """Every bit inverted; ``not`` for booleans. RuntimeError for floats."""
    x = tensor_argument(input, "bitwise_not")
    if x.dtype.category > 1:
        raise RuntimeError(f"~ (operator.invert) is only implemented on integer and Boolean-type tensors, not {x.dtype}")
    y = logical_not(x) if x.dtype is dtypes.bool_ else _bitwise_not(x)
    return y if out is None else store(out, y, "bitwise_not")


@public()
def equal(input, other):
    """Whether two tensors have the same shape and elements."""
    return input.shape == other.shape and bool(eq(input, other).all())


@public()
def isclose(input, other, rtol=1e-05, atol=1e-08, equal_nan=False):
    """|a − b| ≤ atol + rtol·|b|, element by element."""
    from ..graph.modes import no_grad

    only_tensors("isclose", input, other)
    if input.dtype is not other.dtype:
        raise RuntimeError(f"{input.dtype} did not match {other.dtype}")
    for name, bound in (("rtol", rtol), ("atol", atol)):
        if not bound >= 0:
            raise RuntimeError(f"{name} must be greater than or equal to zero, but got {bound}")
    with no_grad():
        close = eq(input, other)
        if equal_nan:
            close = logical_or(close, logical_and(isnan(input), isnan(other)))
        if input.dtype.category < 2:
            input, other = cast(input, dtypes.float64), cast(other, dtypes.float64)
        gap = _abs(sub(input, other))
        return logical_or(close, logical_and(le(gap, add(mul(_abs(other), rtol), atol)), isfinite(gap)))


@public()
def allclose(input, other, rtol=1e-05, atol=1e-08, equal_nan=False):
    """Whether `isclose` holds everywhere."""
    return bool(isclose(input, other, rtol, atol, equal_nan).all())
