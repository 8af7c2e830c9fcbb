"""Arithmetic and powers, one formula an op. See `autograd_nb.ops.core.pointwise` for how they are read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ... import dtypes
from ...codegen.formula.namespace import m
from ...graph.modes import state
from ...shapes import Layout
from ...tensor import Tensor
from ..core.calls import acceptable, only_tensors, operator_of
from ..core.numbers import number_argument, number_as, text_argument
from ..core.pointwise import pointwise
from ..core.recording import guarded, kind_among, need_numbers, scalar_type, store
from ..core.registry import OPS, public
from ..core.structured import tensor_argument
from ..creation.cast import cast

# ------------------------------------------------------------------------------------------ + - * / and powers


def _check_alpha(avals: Sequence[Any]) -> None:
    if avals[2] is bool and not all(k is bool or (isinstance(k, Layout) and k.dtype is dtypes.bool_) for k in avals[:2]):
        raise RuntimeError("Boolean alpha only supported for Boolean results.")
    if avals[2] is float and not any(isinstance(k, Layout) and k.dtype.category > 1 for k in avals[:2]):
        raise RuntimeError("For integral input tensors, argument alpha must not be a floating point number.")
    if avals[2] is complex and not any(k is complex or (isinstance(k, Layout) and k.dtype.is_complex) for k in avals[:2]):
        raise RuntimeError("For non-complex input tensors, argument alpha must not be a complex number.")


def _check_sub(avals: Sequence[Any]) -> None:
    flags = [k is bool or (isinstance(k, Layout) and k.dtype is dtypes.bool_) for k in avals[:2]]
    if all(flags):
        raise RuntimeError(
            "Subtraction, the `-` operator, with two bool tensors is not supported. Use the `^` or `logical_xor()` operator instead."
        )
    if any(flags):
        raise RuntimeError(
            "Subtraction, the `-` operator, with a bool tensor is not supported. If you are trying to invert a mask, use the `~` or "
            "`logical_not()` operator instead."
        )


def _check_sub_alpha(avals: Sequence[Any]) -> None:
    _check_sub(avals)
    _check_alpha(avals)


@pointwise(lambda: 1, lambda alpha: alpha, None, public=False, name="add_scaled", node="AddBackward0", check=_check_alpha, exact=("alpha",))
def _add_scaled(a, b, alpha):
    return a + b * alpha


@pointwise(lambda: 1, lambda alpha: -alpha, None, public=False, name="sub_scaled", node="SubBackward0", check=_check_sub_alpha, exact=("alpha",))
def _sub_scaled(a, b, alpha):
    return a - b * alpha


@pointwise(lambda: 1, lambda: 1, scaled=_add_scaled, methods=("add_",))
def add(a, b):
    """Sum: y = a + alpha·b, dy/da = 1, dy/db = alpha; add([1., 2.], [3., 4.], alpha=2) = [ 7., 10.]."""
    return a + b


@pointwise(lambda: 1, lambda: -1, scaled=_sub_scaled, check=_check_sub, aliases=("subtract",), methods=("sub_", "subtract_"))
def sub(a, b):
    """Difference: y = a − alpha·b, dy/da = 1, dy/db = −alpha. RuntimeError for booleans; sub([1., 2.], [3., 4.]) = [-2., -2.]."""
    return a - b


@pointwise(lambda: -1, lambda: 1, name="rsub", public=False, node="RsubBackward1", check=_check_sub)
def _rsub(a, b):
    return b - a


@pointwise(lambda b: b, lambda a: a, aliases=("multiply",), methods=("mul_", "multiply_"), exact=("b",))
def mul(a, b):
    """Product: y = a·b, dy/da = b, dy/db = a; mul([1., 2.], [3., 4.]) = [3., 8.]."""
    return a * b


@pointwise(lambda b: 1 / b, lambda a, b: -((a / b) / b), result="float", name="div", public=False, exact=("b",))
def _div(a, b):
    return a / b


@public(method=False)
def rsub(input, other, *, alpha=1):
    """y = b − alpha·a; rsub([1., 2.], 3) = [2., 1.].

    Derivative: da = −alpha·g, db = g.
    """
    only_tensors("rsub", input, other, "second")
    if input.dtype is dtypes.bool_ and not isinstance(other, (bool, Tensor)):
        _check_sub((other, input._layout))  # (the text that names one)
    if alpha.__class__ is int and alpha == 1:
        return _rsub(input, other)
    if not isinstance(other, Tensor):
        other = input.new_full((), other, dtype=kind_among((input, other)))
    return sub(other, input, alpha=alpha)


@pointwise(None, None, result="float", name="rdiv", public=False, inplace=False, exact=("b",))
def _rdiv(a, b):
    return (1 / a) * b


_unrecorded_rdiv = operator_of(_rdiv)


def reversed_div(input, other):
    """Return ``other / input``. Recorded it is two ops, as in PyTorch: what the derivative keeps is then nobody's to change."""
    if (
        input.__class__ is Tensor and not isinstance(other, (Tensor, np.ndarray)) and not (state.grad and input.requires_grad)
        and not (other.__class__ is complex and input.dtype.is_half)  # the product is of complex numbers of half precision, and the reciprocal real
    ):  # fmt: skip
        return _unrecorded_rdiv(input, other)
    if not acceptable(other):
        return reciprocal(input) * other if isinstance(other, np.ndarray) else NotImplemented
    only_tensors("__rdiv__", input, other, "second")
    return mul(reciprocal(input), other)


def underivable(name: str) -> Callable[..., Any]:
    """Return the rule of an operand by which PyTorch has no derivative either."""

    def rule(g):
        raise NotImplementedError(f"the derivative for '{name}' is not implemented.")

    return rule


@pointwise(
    underivable("floor_divide"), underivable("floor_divide"),
    name="floor_div", public=False, node="NotImplemented", check=lambda avals: need_numbers("div_floor_cpu", avals),
    exact=("b",),
)  # fmt: skip
def _floor_divide(a, b):
    return m.floor_divide(a, b)


@pointwise(
    lambda b: 0, lambda a, b: 0, name="div", public=False, node="DivBackward1", check=lambda avals: need_numbers("div_floor_cpu", avals), exact=("b",),
)  # fmt: skip
def _div_floor(a, b):
    return m.floor_divide(a, b)


@pointwise(lambda b: 0, lambda a, b: 0, name="trunc_div", public=False, node="DivBackward1", exact=("b",))
def _trunc_div(a, b):
    return m.trunc_divide(a, b)


def _no_integer_zero(a: Any, b: Any, name: str, kernel: str) -> None:
    if b.__class__ is int and b and a.__class__ is Tensor and a._layout.dtype.category == 1:
        return  # the usual case
    for x in (a, b):
        if isinstance(x, Tensor):
            if x._layout.dtype.category >= 2:
                return
        elif not isinstance(x, int):
            return
    need_numbers(kernel, (a, b))
    if isinstance(a, Tensor) and not a._layout.size:
        return  # nothing is divided
    if bool((b == 0).any()) if isinstance(b, Tensor) else b == 0:
        raise RuntimeError(f"ZeroDivisionError: {name}() of integers by zero")


@public("divide", "true_divide", samples=((-2, 2), (0.4, 2)))
def div(input, other, *, rounding_mode=None, out=None):
    """Quotient: y = a/b, dy/da = 1/b, dy/db = −a/b²; integers give floats. ``rounding_mode`` "trunc" or "floor" rounds.

    >>> torch.div(torch.tensor([7., 8.]), torch.tensor([2., 4.]))
    tensor([3.5000, 2.0000])
    """
    if rounding_mode is None:
        return _div(input, other, out=out)
    if text_argument(rounding_mode, "div", "rounding_mode") == "floor":
        _no_integer_zero(input, other, "div", "div_floor_cpu")
        return _div_floor(input, other, out=out)
    if rounding_mode == "trunc":
        _no_integer_zero(input, other, "div", "div_trunc_cpu")
        y = _trunc_div(input, other)
        return y if out is None else store(out, y, "div", (), (input, other))
    raise RuntimeError(f"div expected rounding_mode to be one of None, 'trunc', or 'floor' but found '{rounding_mode}'")


@public("divide_", "true_divide_", kind="inplace", namespaces=())
def div_(input, other, *, rounding_mode=None):
    """Compute `div` in place and return the tensor."""
    if text_argument(rounding_mode, "div", "rounding_mode") is None:
        return _div.inplace(input, other)
    if rounding_mode not in ("floor", "trunc"):
        raise RuntimeError(f"div expected rounding_mode to be one of None, 'trunc', or 'floor' but found '{rounding_mode}'")
    _no_integer_zero(input, other, "div_", f"div_{rounding_mode}_cpu")
    return (_div_floor if rounding_mode == "floor" else _trunc_div).inplace(input, other)


@public()
def floor_divide(input, other, *, out=None):
    """y = ⌊a/b⌋; no gradient. RuntimeError for integers by zero; floor_divide([7, -7], 2) = [ 3, -4]."""
    _no_integer_zero(input, other, "floor_divide", "div_floor_cpu")
    y = _floor_divide(input, other)
    return y if out is None else store(out, y, "floor_divide", (), (input, other))


@public(kind="inplace", namespaces=())
def floor_divide_(input, other):
    """Compute `floor_divide` in place and return the tensor."""
    _no_integer_zero(input, other, "floor_divide_", "div_floor_cpu")
    return _floor_divide.inplace(input, other)


@pointwise(  # the quotient is that which the remainder belongs to: ⌊a/b⌋ may be rounded up to the next
    lambda: 1, lambda a, b: -m.round((a - m.remainder(a, b)) / b),
    name="remainder", public=False, check=lambda avals: need_numbers("remainder_cpu", avals),
)  # fmt: skip
def _remainder(a, b):
    return m.remainder(a, b)


@pointwise(lambda: 1, lambda a, b: -m.trunc(a / b), name="fmod", public=False, check=lambda avals: need_numbers("fmod_cpu", avals))
def _fmod(a, b):
    return m.fmod(a, b)


@public(samples=((-5, 5), (0.6, 2)))
def remainder(input, other, *, out=None):
    """Remainder with the sign of the divisor: y = a − b·⌊a/b⌋; remainder([7, -7], 3) = [1, 2].

    Derivative: da = g, db = −g·⌊a/b⌋.
    """
    only_tensors("remainder", input, other, "either")
    _no_integer_zero(input, other, "remainder", "remainder_cpu")
    y = _remainder(input, other)
    return y if out is None else store(out, y, "remainder", (), (input, other))


@public(samples=((-5, 5), (0.6, 2)))
def fmod(input, other, *, out=None):
    """Remainder with the sign of the dividend: y = a − b·trunc(a/b); fmod([7, -7], 3) = [ 1, -1].

    Derivative: da = g, db = −g·trunc(a/b).
    """
    only_tensors("fmod", input, other, "second")
    _no_integer_zero(input, other, "fmod", "fmod_cpu")
    y = _fmod(input, other)
    return y if out is None else store(out, y, "fmod", (), (input, other))


@public(kind="inplace", namespaces=())
def remainder_(input, other):
    """Compute `remainder` in place and return the tensor."""
    _no_integer_zero(input, other, "remainder_", "remainder_cpu")
    return _remainder.inplace(input, other)


@public(kind="inplace", namespaces=())
def fmod_(input, other):
    """Compute `fmod` in place and return the tensor."""
    _no_integer_zero(input, other, "fmod_", "fmod_cpu")
    return _fmod.inplace(input, other)


def _base_rule(g, a, b):
    return m.where(b == 0, m.zero_like(g), g * (b * m.pow(a, b - 1)))


@pointwise(_base_rule, None, name="pow", public=False)
def _pow_number(a, b):
    return m.pow(a, b)


@pointwise(
    lambda g, a, b, y: _base_rule(g, a, b),
    lambda g, a, b, y: m.where((a == 0) & (m.real(b) >= 0), m.zero_like(g), g * (y * m.log(a))),
    name="pow",
    public=False,
    check=lambda avals: need_numbers("pow", avals),
)
def _pow(a, b):
    return m.pow(a, b)


@pointwise(lambda x: 2 * x, node="PowBackward0", result="number")
def square(x):
    """y = x², dy/dx = 2x; square([-2., 3.]) = [4., 9.]."""
    return x * x


@pointwise(lambda x: 3 * (x * x), public=False, node="PowBackward0")
def cube(x):
    return x * x * x


@public(samples=((0.3, 2), (-2, 2)))
def pow(input: Tensor | float, exponent, *, out=None):
    """Power: y = aᵇ, dy/da = b·aᵇ⁻¹, dy/db = y·ln a (0 where a is 0 and b ≥ 0).

    Errors: RuntimeError for a negative integer exponent of integers.

    >>> torch.pow(torch.tensor([2., 3.]), 2)
    tensor([4., 9.])
    """
    if exponent.__class__ is int or exponent.__class__ is float:
        if isinstance(input, Tensor):
            integral = input.dtype.category < 2
            if integral and exponent.__class__ is int and exponent < 0:
                raise RuntimeError(f"Integers to negative integer powers are not allowed. (exponent={exponent})")
            if not integral:
                if not -100 <= exponent <= 100 and input.dtype.is_half:
                    number_as(exponent, input.dtype, "pow")
                power = _POWERS.get(exponent)
                if power is not None:
                    y = power(input)
                    return y if out is None else store(out, y, "pow", (), (input, exponent))
        else:
            only_tensors("pow", input, exponent, "second")
    elif not isinstance(input, Tensor) and isinstance(exponent, Tensor) and not exponent._layout.contiguous:
        # powers of a number are in C order whatever the exponent's, as in PyTorch
        return guarded(pow(input, OPS["contiguous"].call(exponent), out=out), exponent)
    elif exponent.__class__ is complex and not exponent.imag and isinstance(input, Tensor) and input.dtype.is_complex:
        return pow(input, exponent.real, out=out)
    else:
        only_tensors("pow", input, exponent, "either", "exponent")
    y = (_pow if isinstance(exponent, Tensor) else _pow_number)(input, exponent)
    return y if out is None else store(out, y, "pow", (), (input, exponent))


@public(kind="inplace", namespaces=())
def pow_(input, exponent):
    """Compute `pow` in place and return the tensor."""
    if exponent.__class__ is int and exponent < 0 and isinstance(input, Tensor) and input._layout.dtype.category < 2:
        raise RuntimeError(f"Integers to negative integer powers are not allowed. (exponent={exponent})")
    return (_pow if isinstance(exponent, Tensor) else _pow_number).inplace(input, exponent)


@public()
def float_power(input: Tensor | float, exponent, *, out=None):
    """Return `pow` in float64, or complex128 where an operand is complex.

    >>> torch.float_power(torch.tensor([2, 3]), 2)
    tensor([4., 9.], dtype=torch.float64)
    """
    only_tensors("float_power", input, exponent, "either", "exponent")
    kinds = [x.dtype.is_complex if isinstance(x, Tensor) else isinstance(x, complex) for x in (input, exponent)]
    d, number = (dtypes.complex128, complex) if any(kinds) else (dtypes.float64, float)
    if isinstance(out, Tensor) and out.dtype is not d:
        names = scalar_type(out.dtype), scalar_type(d)
        raise RuntimeError("the output given to float_power has dtype {} but the operation's result requires dtype {}".format(*names))
    given = ((input, "input"), (exponent, "exponent"))
    a, b = (cast(x, d) if isinstance(x, Tensor) else number(number_argument(x, "float_power", n)) for x, n in given)
    return pow(a, b, out=out)


@public(kind="inplace", namespaces=())
def float_power_(input, exponent):
    """Compute `float_power` in place, of float64, and of complex128 where an operand is complex, and return the tensor."""
    x = tensor_argument(input, "float_power_")
    power = exponent.dtype.is_complex if isinstance(exponent, Tensor) else isinstance(exponent, complex)
    d = dtypes.complex128 if power or x.dtype.is_complex else dtypes.float64
    if x.dtype is not d:
        names = scalar_type(x.dtype), scalar_type(d)
        raise RuntimeError("the base given to float_power_ has dtype {} but the operation's result requires dtype {}".format(*names))
    return OPS["pow_"].call(x, cast(exponent, d) if isinstance(exponent, Tensor) else exponent)


def _check_neg(avals: Sequence[Any]) -> None:
    if avals[0].dtype is dtypes.bool_:
        raise RuntimeError(
            "Negation, the `-` operator, on a bool tensor is not supported. If you are trying to invert a mask, use the `~` or "
            "`logical_not()` operator instead."
        )


@pointwise(lambda: -1, aliases=("negative",), check=_check_neg)
def neg(x):
    """y = −x, dy/dx = −1; neg([1., -2.]) = [-1., 2.]."""
    return -x


@public("__pos__")
def positive(input):
    """Return the tensor itself. RuntimeError for booleans; positive([1., -2.]) = [ 1., -2.]."""
    if tensor_argument(input, "positive").dtype is dtypes.bool_:
        raise RuntimeError("The `+` operator, on a bool tensor is not supported.")
    return input


@pointwise(
    lambda x: m.sgn(x), aliases=("absolute",), methods=("absolute_",), name="abs", result="real", samples=(0.2, 2),
    check=lambda avals: need_numbers("abs_cpu", avals),
)  # fmt: skip
def _abs(x):
    """y = |x|, dy/dx = sgn x (0 at 0); complex numbers give real ones; abs([-1., 2.]) = [1., 2.]."""
    return m.abs(x)


@pointwise(lambda y: -(y * y), result="float", samples=(0.3, 3))
def reciprocal(x):
    """y = 1/x, dy/dx = −y²; reciprocal([2., 4.]) = [0.5000, 0.2500]."""
    return 1 / x


@pointwise(lambda y: 1 / (2 * y), result="float", samples=(0.1, 3))
def sqrt(x):
    """y = √x, dy/dx = 1/(2y); sqrt([4., 9.]) = [2., 3.]."""
    return m.sqrt(x)


@pointwise(lambda y: -0.5 * (y * y * y), result="float", samples=(0.1, 3))
def rsqrt(x):
    """y = 1/√x, dy/dx = −y³/2; rsqrt([4., 16.]) = [0.5000, 0.2500]."""
    return m.rsqrt(x)


# powers keep their operand, where `sqrt`, `reciprocal` and `rsqrt` keep their result
@pointwise(lambda x: 1, public=False, inplace=False, name="pow_1", node="PowBackward0")
def _first_power(x):
    return x


@pointwise(lambda x: 0.5 * m.rsqrt(x), public=False, inplace=False, name="pow_half", node="PowBackward0")
def _root(x):
    return m.sqrt(x)


@pointwise(lambda x: -1 / (x * x), public=False, inplace=False, name="pow_minus_1", node="PowBackward0")
def _inverse(x):
    return 1 / x


@pointwise(lambda x: -0.5 * (m.rsqrt(x) / x), public=False, inplace=False, name="pow_minus_half", node="PowBackward0")
def _inverse_root(x):
    return m.rsqrt(x)


_POWERS = {2: square, 3: cube, 1: _first_power, 0.5: _root, -1: _inverse, -0.5: _inverse_root}


# the ties of maximum and minimum share the gradient; where one is nan both have it, as in PyTorch
@pointwise(
    lambda g, a, b: m.where(a == b, g * 0.5, m.where(a < b, m.zero_like(g), g)),
    lambda g, a, b: m.where(a == b, g * 0.5, m.where(a > b, m.zero_like(g), g)),
    numbers="none", inplace=False,
)  # fmt: skip
def maximum(a, b):
    """y = max(a, b); nan wins; ties share the gradient; maximum([1., 4.], [3., 2.]) = [3., 4.]."""
    return m.maximum(a, b)


@pointwise(
    lambda g, a, b: m.where(a == b, g * 0.5, m.where(a > b, m.zero_like(g), g)),
    lambda g, a, b: m.where(a == b, g * 0.5, m.where(a < b, m.zero_like(g), g)),
    numbers="none", inplace=False,
)  # fmt: skip
def minimum(a, b):
    """y = min(a, b); nan wins; ties share the gradient; minimum([1., 4.], [3., 2.]) = [1., 2.]."""
    return m.minimum(a, b)
