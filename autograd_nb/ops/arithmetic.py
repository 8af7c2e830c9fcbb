"""Arithmetic, comparison and logic, one formula an op. See `autograd_nb.ops.pointwise` for how they are read."""

from __future__ import annotations

from collections.abc import Sequence
from sys import getrefcount
from typing import Any

from .. import dtypes, launch
from ..codegen.loops import Input
from ..codegen.maths import m
from ..graph import engine
from ..graph.modes import state
from ..shapes import Layout
from ..tensor import Tensor, make
from .cast import cast
from .plans import pointwise_entry
from .pointwise import acceptable, only_tensors, operator_of, pointwise
from .recording import store
from .registry import OPS, public, register
from .structured import tensor_argument

# ------------------------------------------------------------------------------------------ + - * / and powers


def _check_alpha(keys: Sequence[Any]) -> None:
    if keys[2] is float and not any(isinstance(k, Layout) and k.dtype.category > 1 for k in keys[:2]):
        raise RuntimeError("For integral input tensors, argument alpha must not be a floating point number.")
    if keys[2] is complex and not any(k is complex or (isinstance(k, Layout) and k.dtype.is_complex) for k in keys[:2]):
        raise RuntimeError("For non-complex input tensors, argument alpha must not be a complex number.")


def _check_sub(keys: Sequence[Any]) -> None:
    flags = [k is bool or (isinstance(k, Layout) and k.dtype is dtypes.bool_) for k in keys[:2]]
    if all(flags):
        raise RuntimeError(
            "Subtraction, the `-` operator, with two bool tensors is not supported. Use the `^` or `logical_xor()` operator instead."
        )
    if any(flags):
        raise RuntimeError(
            "Subtraction, the `-` operator, with a bool tensor is not supported. If you are trying to invert a mask, use the `~` or "
            "`logical_not()` operator instead."
        )


def _check_sub_alpha(keys: Sequence[Any]) -> None:
    _check_sub(keys)
    _check_alpha(keys)


@pointwise(lambda: 1, lambda alpha: alpha, public=False, name="add_scaled", node="AddBackward0", check=_check_alpha)
def _add_scaled(a, b, alpha):
    return a + b * alpha


@pointwise(lambda: 1, lambda alpha: -alpha, public=False, name="sub_scaled", node="SubBackward0", check=_check_sub_alpha)
def _sub_scaled(a, b, alpha):
    return a - b * alpha


@pointwise(lambda: 1, lambda: 1, scaled=_add_scaled)
def add(a, b):
    """Sum: y = a + alpha·b, dy/da = 1, dy/db = alpha."""
    return a + b


@pointwise(lambda: 1, lambda: -1, scaled=_sub_scaled, check=_check_sub, aliases=("subtract",))
def sub(a, b):
    """Difference: y = a − alpha·b, dy/da = 1, dy/db = −alpha. RuntimeError for booleans."""
    return a - b


@pointwise(lambda: -1, lambda: 1, name="rsub", public=False, node="RsubBackward1", check=_check_sub)
def _rsub(a, b):
    return b - a


@pointwise(lambda b: b, lambda a: a, aliases=("multiply",))
def mul(a, b):
    """Product: y = a·b, dy/da = b, dy/db = a."""
    return a * b


@pointwise(lambda a, y: -y / a, lambda a: 1 / a, result="float", name="rdiv", public=False, node="DivBackward0")
def _rdiv(a, b):
    return b / a


@pointwise(lambda b: 1 / b, lambda b, y: -y / b, result="float", name="div", public=False)
def _div(a, b):
    return a / b


@public()
def rsub(input, other, *, alpha=1):
    """y = b − alpha·a."""
    only_tensors("rsub", input, other, "second")
    if alpha.__class__ is int and alpha == 1:
        return _rsub(input, other)
    return sub(other if isinstance(other, Tensor) else input.new_full((), other), input, alpha=alpha)


@pointwise(None, None, name="floor_div", public=False)
def _floor_divide(a, b):
    return m.floor_divide(a, b)


@pointwise(lambda: 0, lambda: 0, name="div", public=False, node="DivBackward1")
def _div_floor(a, b):
    return m.floor_divide(a, b)


@pointwise(lambda: 0, lambda: 0, name="trunc_div", public=False, node="DivBackward1")
def _trunc_div(a, b):
    return m.trunc_divide(a, b)


def _no_integer_zero(a: Any, b: Any, name: str) -> None:
    integers = all((x.dtype.category < 2) if isinstance(x, Tensor) else isinstance(x, int) for x in (a, b))
    if integers and (bool((b == 0).any()) if isinstance(b, Tensor) else b == 0):
        raise RuntimeError(f"ZeroDivisionError: {name}() of integers by zero")


@public("divide", "true_divide")
def div(input, other, *, rounding_mode=None, out=None):
    """Quotient: y = a/b, dy/da = 1/b, dy/db = −y/b; integers give floats. ``rounding_mode`` "trunc" or "floor" rounds."""
    if rounding_mode is None:
        y = _div(input, other)
    elif rounding_mode == "floor":
        _no_integer_zero(input, other, "div")
        y = _div_floor(input, other)
    elif rounding_mode == "trunc":
        _no_integer_zero(input, other, "div")
        y = _trunc_div(input, other)
    else:
        raise RuntimeError(f"div expected rounding_mode to be one of None, 'trunc', or 'floor' but found '{rounding_mode}'")
    return y if out is None else store(out, y, "div")


@public("divide_", "true_divide_", kind="inplace")
def div_(input, other, *, rounding_mode=None):
    """In-place version of `div`."""
    if rounding_mode is None:
        return _div.inplace(input, other)
    if rounding_mode not in ("floor", "trunc"):
        raise RuntimeError(f"div expected rounding_mode to be one of None, 'trunc', or 'floor' but found '{rounding_mode}'")
    _no_integer_zero(input, other, "div_")
    return (_div_floor if rounding_mode == "floor" else _trunc_div).inplace(input, other)


@public()
def floor_divide(input, other, *, out=None):
    """y = ⌊a/b⌋; no gradient. RuntimeError for integers by zero."""
    _no_integer_zero(input, other, "floor_divide")
    y = _floor_divide(input, other)
    return y if out is None else store(out, y, "floor_divide")


@public(kind="inplace")
def floor_divide_(input, other):
    """In-place version of `floor_divide`."""
    _no_integer_zero(input, other, "floor_divide_")
    return _floor_divide.inplace(input, other)


@pointwise(lambda: 1, lambda a, b: -m.floor(a / b), name="remainder", public=False)
def _remainder(a, b):
    return m.remainder(a, b)


@pointwise(lambda: 1, lambda a, b: -m.trunc(a / b), name="fmod", public=False)
def _fmod(a, b):
    return m.fmod(a, b)


@public()
def remainder(input, other, *, out=None):
    """Remainder with the sign of the divisor: y = a − b·⌊a/b⌋."""
    only_tensors("remainder", input, other, "either")
    _no_integer_zero(input, other, "remainder")
    y = _remainder(input, other)
    return y if out is None else store(out, y, "remainder")


@public()
def fmod(input, other, *, out=None):
    """Remainder with the sign of the dividend: y = a − b·trunc(a/b)."""
    only_tensors("fmod", input, other, "second")
    _no_integer_zero(input, other, "fmod")
    y = _fmod(input, other)
    return y if out is None else store(out, y, "fmod")


for _name, _op in (("remainder_", _remainder), ("fmod_", _fmod)):
    register(_name, _op.inplace, "inplace")


@pointwise(
    lambda g, a, b: m.where(b == 0, m.zero_like(g), g * (b * m.pow(a, b - 1))),
    lambda g, a, b, y: m.where((a == 0) & (m.real(b) >= 0), m.zero_like(g), g * (y * m.log(a))),
    name="pow",
    public=False,
)
def _pow(a, b):
    return m.pow(a, b)


@pointwise(lambda x: 2 * x, node="PowBackward0", result="number")
def square(x):
    """y = x², dy/dx = 2x."""
    return x * x


@pointwise(lambda x: 3 * (x * x), public=False, node="PowBackward0")
def cube(x):
    return x * x * x


@public()
def pow(input, exponent, *, out=None):
    """Power: y = aᵇ, dy/da = b·aᵇ⁻¹, dy/db = y·ln a (0 where a is 0 and b ≥ 0).

    Errors: RuntimeError for a negative integer exponent of integers.
    """
    if exponent.__class__ is int or exponent.__class__ is float:
        if isinstance(input, Tensor):
            integral = input.dtype.category < 2
            if integral and exponent.__class__ is int and exponent < 0:
                raise RuntimeError(f"Integers to negative integer powers are not allowed. (exponent={exponent})")
            if not integral:
                quick = _POWERS.get(exponent)
                if quick is not None:
                    y = quick(input)
                    return y if out is None else store(out, y, "pow")
        else:
            only_tensors("pow", input, exponent, "second")
    elif exponent.__class__ is complex and not exponent.imag and isinstance(input, Tensor) and input.dtype.is_complex:
        return pow(input, exponent.real, out=out)
    else:
        only_tensors("pow", input, exponent, "either", "exponent")
    y = _pow(input, exponent)
    return y if out is None else store(out, y, "pow")


register("pow_", _pow.inplace, "inplace")


@public()
def float_power(input, exponent, *, out=None):
    """`pow` in float64, or complex128 where an operand is complex."""
    only_tensors("float_power", input, exponent, "either", "exponent")
    kinds = [x.dtype.is_complex if isinstance(x, Tensor) else isinstance(x, complex) for x in (input, exponent)]
    d, number = (dtypes.complex128, complex) if any(kinds) else (dtypes.float64, float)
    a, b = (cast(x, d) if isinstance(x, Tensor) else number(x) for x in (input, exponent))
    return pow(a, b, out=out)


def _check_neg(keys: Sequence[Any]) -> None:
    if keys[0].dtype is dtypes.bool_:
        raise RuntimeError(
            "Negation, the `-` operator, on a bool tensor is not supported. If you are trying to invert a mask, use the `~` or "
            "`logical_not()` operator instead."
        )


@pointwise(lambda: -1, aliases=("negative",), check=_check_neg)
def neg(x):
    """y = −x, dy/dx = −1."""
    return -x


@public("__pos__")
def positive(input):
    """The tensor itself. RuntimeError for booleans."""
    if input.dtype is dtypes.bool_:
        raise RuntimeError("The `+` operator, on a bool tensor is not supported.")
    return input


@pointwise(lambda x: m.sgn(x), aliases=("absolute",), name="abs", result="real")
def _abs(x):
    """y = |x|, dy/dx = sgn x (0 at 0); complex numbers give real ones."""
    return m.abs(x)


@pointwise(lambda y: -(y * y), result="float")
def reciprocal(x):
    """y = 1/x, dy/dx = −y²."""
    return 1 / x


@pointwise(lambda y: 1 / (2 * y), result="float")
def sqrt(x):
    """y = √x, dy/dx = 1/(2y)."""
    return m.sqrt(x)


@pointwise(lambda y: -0.5 * (y * y * y), result="float")
def rsqrt(x):
    """y = 1/√x, dy/dx = −y³/2."""
    return m.rsqrt(x)


_POWERS = {2: square, 3: cube, 1: lambda x: x.clone(), 0.5: sqrt, -1: reciprocal, -0.5: rsqrt}


# the ties of maximum and minimum share the gradient
@pointwise(
    lambda g, a, b: m.where(a == b, g * 0.5, m.where((a > b) | m.isnan(a), g, m.zero_like(g))),
    lambda g, a, b: m.where(a == b, g * 0.5, m.where((b > a) | (m.isnan(b) & (a == a)), g, m.zero_like(g))),
    numbers="none",
)
def maximum(a, b):
    """y = max(a, b); nan wins; ties share the gradient."""
    return m.maximum(a, b)


@pointwise(
    lambda g, a, b: m.where(a == b, g * 0.5, m.where((a < b) | m.isnan(a), g, m.zero_like(g))),
    lambda g, a, b: m.where(a == b, g * 0.5, m.where((b < a) | (m.isnan(b) & (a == a)), g, m.zero_like(g))),
    numbers="none",
)
def minimum(a, b):
    """y = min(a, b); nan wins; ties share the gradient."""
    return m.minimum(a, b)


# ---------------------------------------------------------------------------------------- where and clamping


@pointwise(
    None,
    lambda g, condition: m.where(condition, g, m.zero_like(g)),
    lambda g, condition: m.where(condition, m.zero_like(g), g),
    conditions=("condition",),
    name="where",
    public=False,
    inplace=False,
)
def _where(condition, a, b):
    return m.where(condition, a, b)


@public()
def where(condition, input=None, other=None, *, out=None):
    """a where the condition holds, else b; each gets the gradient where it was chosen. With one argument: `nonzero`.

    Errors: RuntimeError when the condition is not boolean.
    """
    if input is None and other is None:
        return OPS["nonzero"].call(condition, as_tuple=True)
    tensor_argument(condition, "where", "condition")
    kind = condition._layout.dtype
    if kind is not dtypes.bool_ and kind is not dtypes.uint8:
        raise RuntimeError(f"where expected condition to be a boolean tensor, but got a tensor with dtype {kind}")
    if isinstance(input, Tensor) and isinstance(other, Tensor):
        y = _where.op.run((condition, input, other))  # nothing to convert
    else:
        y = _where(condition, input, other)
    return y if out is None else store(out, y, "where")


def _where_method(self, condition, other):
    return where(condition, self, other)


Tensor.where = _where_method  # type: ignore[attr-defined]


@pointwise(
    lambda g, x, low, high: m.where((x >= low) & (x <= high), g, m.zero_like(g)),
    lambda g, x, low, high: m.where((x < low) & (low < high), g, m.zero_like(g)),
    lambda g, x, low, high: m.where((x > high) | (low >= high), g, m.zero_like(g)),
    name="clamp", public=False, node="ClampBackward1",
)  # fmt: skip
def _clamp(x, low, high):
    return m.minimum(m.maximum(x, low), high)


@pointwise(
    lambda g, x, low: m.where(x >= low, g, m.zero_like(g)), lambda g, x, low: m.where(x < low, g, m.zero_like(g)),
    name="clamp_min", public=False,
)  # fmt: skip
def _clamp_min(x, low):
    return m.maximum(x, low)


@pointwise(
    lambda g, x, high: m.where(x <= high, g, m.zero_like(g)), lambda g, x, high: m.where(x > high, g, m.zero_like(g)),
    name="clamp_max", public=False,
)  # fmt: skip
def _clamp_max(x, high):
    return m.minimum(x, high)


def _clamped(input: Any, low: Any, high: Any, inplace: bool) -> Tensor:
    x = tensor_argument(input, "clamp")
    if low is None and high is None:
        raise RuntimeError("torch.clamp: At least one of 'min' or 'max' must not be None")
    op, args = (_clamp_max, (x, high)) if low is None else (_clamp_min, (x, low)) if high is None else (_clamp, (x, low, high))
    return op.inplace(*args) if inplace else op(*args)


@public("clip")
def clamp(input, min=None, max=None, *, out=None):
    """x kept within [min, max] (numbers or tensors); dy/dx = 1 inside and at the edges, else 0."""
    y = _clamped(input, min, max, False)
    return y if out is None else store(out, y, "clamp")


@public("clip_", kind="inplace")
def clamp_(input, min=None, max=None):
    """In-place version of `clamp`."""
    return _clamped(input, min, max, True)


@public()
def clamp_min(input, min, *, out=None):
    """x kept at or above ``min``."""
    return clamp(input, min=min, out=out)


@public()
def clamp_max(input, max, *, out=None):
    """x kept at or below ``max``."""
    return clamp(input, max=max, out=out)


@public(kind="inplace")
def clamp_min_(input, min):
    """In-place version of `clamp_min`."""
    return clamp_(input, min=min)


@public(kind="inplace")
def clamp_max_(input, max):
    """In-place version of `clamp_max`."""
    return clamp_(input, max=max)


# ----------------------------------------------------------------------------------------- comparison, logic


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


# -------------------------------------------------------------------------------------------------- operators


def _wrapped(function: Any) -> Any:
    """A function as an operator method: NotImplemented for operands that are not ours."""

    def method(self, other):
        tensor_argument(self, function.__name__)
        return function(self, other) if acceptable(other) else NotImplemented

    return method


def _swapped(function: Any) -> Any:
    def method(self, other):
        tensor_argument(self, function.__name__)
        return function(other, self) if acceptable(other) else NotImplemented

    return method


def _power(self: Tensor, other: Any) -> Any:
    if other.__class__ is int or other.__class__ is float:
        quick = _POWERS.get(other)
        if quick is not None and self._layout.dtype.category == 2:
            return quick(self)
    return pow(self, other) if acceptable(other) else NotImplemented


def _install() -> None:
    hot = {"add": add, "radd": add, "sub": sub, "rsub": _rsub, "mul": mul, "rmul": mul, "truediv": _div, "rtruediv": _rdiv, "div": _div, "rdiv": _rdiv,
           "lt": lt, "le": le, "gt": gt, "ge": ge, "eq": eq, "ne": ne}  # fmt: skip
    for name, function in hot.items():
        setattr(Tensor, f"__{name}__", operator_of(function))
    for name, function in {
        "floordiv": floor_divide,
        "mod": remainder,
        "and": bitwise_and,
        "or": bitwise_or,
        "xor": bitwise_xor,
    }.items():
        setattr(Tensor, f"__{name}__", _wrapped(function))
        setattr(Tensor, f"__r{name}__", _swapped(function))
    Tensor.__pow__, Tensor.__rpow__ = _power, _swapped(pow)  # type: ignore[attr-defined,method-assign]
    inplace = {"add": add.inplace, "sub": sub.inplace, "mul": mul.inplace, "truediv": div_, "floordiv": floor_divide_, "mod": _remainder.inplace,
               "pow": _pow.inplace, "and": OPS["bitwise_and_"].call, "or": OPS["bitwise_or_"].call, "xor": OPS["bitwise_xor_"].call}  # fmt: skip
    for name, function in inplace.items():
        setattr(Tensor, f"__i{name}__", function)
    Tensor.__neg__ = neg  # type: ignore[attr-defined,method-assign]
    Tensor.__abs__ = _abs  # type: ignore[attr-defined]
    Tensor.__invert__ = bitwise_not  # type: ignore[attr-defined,method-assign]


_install()


# ---------------------------------------------------------------------------------- what the engine needs


_sums: dict = launch.plan_table()


def _engine_add_in_place(target: Tensor, g: Tensor) -> None:
    """target += g without a history: gradients meeting in a buffer that is the engine's or a leaf's."""
    plan = _sums.get((target._layout, g._layout))
    if plan is None:
        if len(_sums) > 5_000:
            _sums.clear()
        name = target.dtype.name
        plan = _sums[target._layout, g._layout] = pointwise_entry(
            "add_", lambda a, b: (a + b,), [Input(name), Input(g.dtype.name)], target.dtype.compute, [name],
            [target._layout, g._layout], [target._layout],
        )  # fmt: skip
    entry, dims = plan
    if dims is None:
        n = target._layout.size  # a flat loop runs over all that it is given, and memory may go on behind the tensor
        entry(target._data, g._data, target._data[:n])
    else:
        entry(dims, target._data, g._data, target._data)
    target._version_[0] += 1


def _engine_own(g: Tensor) -> Tensor:
    """A gradient as a leaf may keep it: its own dense memory, shared with nobody who might change it."""
    # 2 references to the tensor are ours (argument and caller), and its memory must have no other owner
    if g._layout.contiguous and g._view is None and getrefcount(g) <= 4 and getrefcount(g._data) <= 2 and g.__class__ is Tensor:
        return g if not g._rg else make(g._data, g._layout, g._version_)
    return g.detach().clone() if state.grad else g.clone()


engine.add = add
engine.add_in_place = _engine_add_in_place
engine.own = _engine_own


_overlapping: dict[tuple, Any] = {}


def add_overlapping(target: Tensor, source: Tensor) -> None:
    """target += source one element after the other, where the target's elements may share memory (no history)."""
    key = (target._layout, source._layout)
    plan = _overlapping.get(key)
    if plan is None:
        name = target.dtype.name
        plan = _overlapping[key] = pointwise_entry(
            "add_overlapping", lambda a, b: (a + b,), [Input(name), Input(name)], target.dtype.compute, [name],
            [target._layout, source._layout], [target._layout],
        )  # fmt: skip
    entry, dims = plan
    if dims is None:
        n = target._layout.size  # a flat loop runs over all that it is given, and memory may go on behind the tensor
        entry(target._data, source._data, target._data[:n])
    else:
        entry(dims, target._data, source._data, target._data)
