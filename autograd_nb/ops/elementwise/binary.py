"""Functions of two and three operands beyond arithmetic, one formula an op."""

from __future__ import annotations

import math
from typing import Any

from ... import dtypes
from ...codegen.formula.namespace import m
from ...errors import shorten
from ...tensor import Tensor
from ..core.calls import only_tensors
from ..core.numbers import number_argument, number_as, plain_number, scalar_tensor
from ..core.pointwise import pointwise
from ..core.recording import kind_among, need_floats, need_numbers, real_operands, scalar_type, store
from ..core.registry import OPS, public, register
from ..core.repeated import repeated
from ..core.scalars_first import legacy_options, scalars_first
from ..core.structured import tensor_argument
from ..creation.cast import cast
from ..creation.create import new_full
from ..creation.queries import result_type
from .arithmetic import underivable


def _per_square(a, b):
    return m.where(a * a + b * b == 0, 0.0, 1 / (a * a + b * b))  # (squares of tiny numbers are 0 too)


@pointwise(
    lambda g, a, b: g * b * _per_square(a, b),
    lambda g, a, b: g * -a * _per_square(a, b),
    result="float", aliases=("arctan2",), methods=("atan2_", "arctan2_"), numbers="none",
)  # fmt: skip
def atan2(a, b):
    """Return the angle of the point (b, a): dy/da = b/(a² + b²), dy/db = −a/(a² + b²); atan2([1., 1.], [0., 1.]) = [1.5708, 0.7854]."""
    return m.atan2(a, b)


@pointwise(
    lambda a, y: a / y, lambda b, y: b / y, numbers="none", samples=(0.2, 2), check=lambda avals: need_floats("hypot_cpu", avals), methods=("hypot_",)
)
def hypot(a, b):
    """y = √(a² + b²) without overflow in between; dy/da = a/y, dy/db = b/y; hypot([3., 5.], [4., 12.]) = [ 5., 13.]."""
    return m.hypot(a, b)


@pointwise(lambda g, a, y: m.where(a == 0, 0.0, g * (y / a)), lambda y: 0, result="float", numbers="second", methods=("copysign_",), samples=(0.2, 2))
def copysign(a, b):
    """Return |a| with the sign of b; copysign([1., 2.], [-1., 1.]) = [-1., 2.]."""
    return m.copysign(a, b)


def _xlogy(x, y):
    return m.where(y != y, math.nan, m.where(x == 0, 0.0, x * m.log(y)))


def _xlog1py(x, y):
    return m.where(y != y, math.nan, m.where(x == 0, 0.0, x * m.log1p(y)))


@pointwise(
    lambda g, x, y: m.where((x == 0) & (y <= 0), 0.0, m.where(g == 0, 0.0, g * m.log(y))),
    lambda g, x, y: g * (x / y),
    result="float",
    numbers="either",
    check=real_operands('"xlogy" not implemented for complex tensors (ComplexFloat, ComplexDouble)'),
    samples=((0.2, 2), (0.3, 2)),
)
def xlogy(x, y):
    """Return x·ln y, 0 where x is 0 (unless y is nan); xlogy([0., 2.], [0., 3.]) = [0.0000, 2.1972]."""
    return _xlogy(x, y)


@pointwise(
    lambda g, x, y: m.where((x == 0) & (y <= -1), 0.0, m.where(g == 0, 0.0, g * m.log1p(y))),
    lambda g, x, y: g * (x / (y + 1)),
    result="float", method=False, inplace=False, public=False, name="xlog1py", numbers="either",
    check=real_operands('"xlog1py_cpu" not implemented for complex tensors (ComplexFloat, ComplexDouble)'),
)  # fmt: skip
def xlog1py(x, y):
    """Return x·ln(1 + y), 0 where x is 0 (unless y is nan); xlog1py([0., 2.], [-1., 3.]) = [0.0000, 2.7726]."""
    return _xlog1py(x, y)


for _function, _samples in ((xlog1py, ((0.2, 2), (-0.6, 2))), (xlogy, OPS["xlogy"].samples)):
    _name = f"special.{_function.__name__}"
    register(_name, _function, "pointwise", method=False, namespaces=("special",), rule=_function.op, samples=_samples)


@pointwise(
    lambda g, a, b: g / (1 + m.exp(b - a)), lambda g, a, b: g / (1 + m.exp(a - b)),
    result="float", inplace=False, numbers="none", check=lambda avals: need_floats("logaddexp_cpu", avals),
)  # fmt: skip
def logaddexp(a, b):
    """y = ln(eᵃ + eᵇ) without overflow; logaddexp([0., 1.], [0., 2.]) = [0.6931, 2.3133]."""
    return m.logaddexp(a, b)


@pointwise(
    lambda g, a, b: g / (1 + m.exp2(b - a)), lambda g, a, b: g / (1 + m.exp2(a - b)),
    result="float", inplace=False, numbers="none", check=lambda avals: need_floats("logaddexp2_cpu", avals),
)  # fmt: skip
def logaddexp2(a, b):
    """y = log₂(2ᵃ + 2ᵇ) without overflow; logaddexp2([0., 1.], [0., 2.]) = [1.0000, 2.5850]."""
    return m.logaddexp2(a, b)


@pointwise(
    lambda g, a, b: m.where((a >= b) | (b != b), g, 0.0), lambda g, a, b: m.where((a >= b) | (b != b), 0.0, g),
    inplace=False, numbers="none",
)  # fmt: skip
def fmax(a, b):
    """Return max(a, b), the other one where one is nan; fmax([1., float("nan")], [0., 2.]) = [1., 2.]."""
    return m.where((a >= b) | (b != b), a, b)


@pointwise(
    lambda g, a, b: m.where((a <= b) | (b != b), g, 0.0), lambda g, a, b: m.where((a <= b) | (b != b), 0.0, g),
    inplace=False, numbers="none",
)  # fmt: skip
def fmin(a, b):
    """Return min(a, b), the other one where one is nan; fmin([1., float("nan")], [0., 2.]) = [0., 2.]."""
    return m.where((a <= b) | (b != b), a, b)


@pointwise(underivable("heaviside"), underivable("heaviside"), name="heaviside", public=False, node="NotImplemented")
def _heaviside(x, values):
    return m.where(x == 0, values, m.where(x > 0, 1, 0).cast(x.dtype))


@public()
def heaviside(input, values, *, out=None):
    """Return 0 for x < 0, ``values`` at 0, 1 for x > 0; no gradient. RuntimeError when the dtypes differ.

    >>> torch.heaviside(torch.tensor([-1., 0., 2.]), torch.tensor([0.5]))
    tensor([0.0000, 0.5000, 1.0000])
    """
    _same_dtype(input, values, out)
    y = _heaviside(input, values)
    return y if out is None else store(out, y, "heaviside", (), (input, values))


@public(kind="inplace", namespaces=())
def heaviside_(input, values):
    """Compute `heaviside` in place and return the tensor."""
    _same_dtype(input, values)
    return _heaviside.inplace(input, values)


def _same_dtype(a: Any, b: Any, out: Any = None) -> None:
    d, e = tensor_argument(a, "heaviside").dtype, tensor_argument(b, "heaviside", "values").dtype
    if d.is_complex or e.is_complex or (isinstance(out, Tensor) and out.dtype.is_complex):
        raise RuntimeError(f"heaviside is not yet implemented for complex tensors. (input {d}, values {e}: take their real parts)")
    if d is not e:
        raise RuntimeError(
            f"heaviside is not yet implemented for tensors with different dtypes (input {d}, values {e})"
        )


def _declared_nextafter(of: dtypes.dtype | None = None) -> Any:
    """Return the op of `nextafter` for numbers of the dtype they are computed in, or ``of`` a half precision."""

    def formula(a: Any, b: Any) -> Any:
        y = m.nextafter(a, b)
        if of is None:
            return y
        info, single = dtypes.finfo(of), dtypes.finfo(dtypes.float32)
        # the step of float32 is as many times smaller as it has more digits, down to where the half precision has its smallest step
        step = m.maximum(abs(y - a) * (info.eps / single.eps), info.smallest_normal * info.eps)
        near = m.where(abs(a) > info.max, m.where(a < 0, -info.max, info.max), a + m.where(b > a, step, -step))
        return m.where(a == b, b, m.where((a != a) | (b != b), y, near))

    return pointwise(
        lambda g, a, b: m.where(a == b, 0.0, g), lambda: 0,
        numbers="none", check=lambda avals: need_floats("nextafter_cpu", avals), name="nextafter", public=False,
    )(formula)  # fmt: skip


_nextafter = _declared_nextafter()
_nextafter_of = {half: _declared_nextafter(half) for half in (dtypes.float16, dtypes.bfloat16)}


def _next(input: Any, other: Any) -> Any:
    a, b = tensor_argument(input, "nextafter"), tensor_argument(other, "nextafter", "other")
    return _nextafter_of.get(result_type(a, b), _nextafter)


@public()
def nextafter(input, other, *, out=None):
    """Return the next number after a towards b; dy/da = 1 where they differ, dy/db = 0; nextafter([1.], [2.]) = [1.0000]."""
    y = _next(input, other)(input, other)
    return y if out is None else store(out, y, "nextafter", (), (input, other))


@public(kind="inplace", namespaces=())
def nextafter_(input, other):
    """Compute `nextafter` in place and return the tensor."""
    return _next(input, other).inplace(input, other)


@pointwise(lambda b, y: m.exp2(b), lambda y: y * math.log(2.0), name="ldexp", public=False, result="float", exact=("b",))
def _ldexp(a, b):
    return a * m.exp2(b)


@public()
def ldexp(input, other, *, out=None):
    """x·2ᵉ, dy/dx = 2ᵉ; ldexp([1., 3.], [2, 3]) = [ 4., 24.]."""
    only_tensors("ldexp", input, other)
    if isinstance(input, Tensor) and input.dtype.category == 2:
        need_numbers("ldexp_cpu_exp", (other,))
    y = _ldexp(input, other)
    return y if out is None else store(out, y, "ldexp", (), (input,))


@public(kind="inplace")
def ldexp_(input, other):
    """Compute `ldexp` in place and return the tensor."""
    only_tensors("ldexp_", input, other)
    if isinstance(input, Tensor) and input.dtype.category == 2:
        need_numbers("ldexp_cpu_exp", (other,))
    return _ldexp.inplace(input, other)


# ------------------------------------------------------------------------------------- lerp, addcmul, addcdiv


@pointwise(
    lambda w: 1 - w, lambda w: w, lambda a, b, w: b - a, name="lerp", public=False,
)  # fmt: skip
def _lerp(a, b, w):
    return m.where(m.abs(w) < 0.5, a + w * (b - a), b - (b - a) * (1 - w))


def _check_lerp(input: Any, end: Any, weight: Any) -> None:
    a, b = tensor_argument(input, "lerp"), tensor_argument(end, "lerp", "end")
    if a.dtype is not b.dtype:
        raise RuntimeError(f"expected dtype {a.dtype} for `end` but got dtype {b.dtype}")
    if isinstance(weight, Tensor) and weight.dtype is not a.dtype and (weight.ndim or not a.ndim):
        raise RuntimeError(f"expected dtype {a.dtype} for `weight` but got dtype {weight.dtype}")
    if kind_among((a, b, weight) if isinstance(weight, Tensor) else (a, b)).category < 2:
        raise NotImplementedError(f'"lerp" not implemented for {a.dtype}; use floating point tensors')
    if not isinstance(weight, Tensor):
        number_argument(weight, "lerp", "weight")
        number_as(weight, dtypes.float32 if a.dtype.is_half else a.dtype, "lerp")  # (half precision computes in float32)


@public()
def lerp(input, end: Tensor, weight: Tensor | float, *, out=None):
    """Return a + w·(b − a), w a number or a tensor; lerp([0., 1.], [10., 3.], 0.5) = [5., 2.]."""
    if not _plain(weight, input, end):
        _check_lerp(input, end, weight)
    y = _lerp(input, end, weight)
    return y if out is None else store(out, y, "lerp", (), (input, end, weight))


@public(kind="inplace", namespaces=())
def lerp_(input, end: Tensor, weight: Tensor | float):
    """Compute `lerp` in place and return the tensor."""
    if not _plain(weight, input, end):
        _check_lerp(input, end, weight)
    return _lerp.inplace(input, end, weight)


@pointwise(lambda: 1, lambda b, value: b * value, lambda a, value: a * value, None, name="addcmul", public=False)
def _addcmul(x, a, b, value):
    return x + (value * a) * b


@pointwise(
    lambda b: 1,
    lambda b, value: value / b,
    lambda a, b, value: -value * (a / (b * b)), None,
    name="addcdiv",
    public=False,
    result="float",
)
def _addcdiv(x, a, b, value):
    return x + value * (a / b)


def _plain(number: Any, *operands: Any) -> bool:
    """Return whether operands are tensors of one dtype of floats, and the number small, so that there is nothing to refuse."""
    if not ((number.__class__ is float or number.__class__ is int) and -100 <= number <= 100):
        return False
    kinds = {t._layout.dtype if t.__class__ is Tensor else None for t in operands}
    return len(kinds) == 1 and getattr(kinds.pop(), "category", 0) == 2


def _addc(name: str, op: Any, **info: Any) -> None:
    def check(input: Any, tensor1: Any, tensor2: Any, value: Any) -> Any:
        tensors = [tensor_argument(t, name, n) for t, n in ((input, "input"), (tensor1, "tensor1"), (tensor2, "tensor2"))]
        if name == "addcdiv" and all(t.dtype.category < 2 for t in tensors[1:]):
            raise RuntimeError(
                "Integer division with addcdiv is no longer supported, and in a future release addcdiv will perform a true "
                "division of tensor1 and tensor2. Cast them to a floating dtype."
            )
        kind = dtypes.result_of([(t.dtype, 2 if t.ndim else 1) for t in tensors])
        if kind.is_half:
            kind = dtypes.float32  # which is what halves are computed in
        large = value.__class__ in (int, float) and not -100 <= value <= 100 and kind.category > 1
        if kind.category == 1 or large or (value.__class__ is complex and kind.category == 2):
            value = number_as(value, kind, name)
        return value

    def call(input, tensor1, tensor2, *legacy, value=1, out=None):
        if not legacy and out is None and _plain(value, input, tensor1, tensor2):
            return op(input, tensor1, tensor2, value)
        return whole(input, tensor1, tensor2, *legacy, value=value, out=out)

    @repeated
    def whole(input, tensor1, tensor2, *legacy, value=1, out=None):
        if legacy:
            return scalars_first(name, (input, tensor1, tensor2, *legacy), legacy_options(value=value, out=out))
        value = number_argument(value, name, "value")
        value = check(input, tensor1, tensor2, value)
        need_numbers(name + "_cpu_out", (input, tensor1, tensor2))
        y = op(input, tensor1, tensor2, value)
        return y if out is None else store(out, y, name, (), (input, tensor1, tensor2))

    def inner(input, tensor1, tensor2, *legacy, value=1):
        if not legacy and _plain(value, input, tensor1, tensor2):
            return op.inplace(input, tensor1, tensor2, value)
        if legacy:
            return scalars_first(name + "_", (input, tensor1, tensor2, *legacy), legacy_options(value=value))
        value = number_argument(value, name + "_", "value")
        value = check(input, tensor1, tensor2, value)
        need_numbers(name + "_cpu_out", (input, tensor1, tensor2))
        return op.inplace(input, tensor1, tensor2, value)

    call.__name__, inner.__name__ = name, name + "_"
    shown = "[ 5., 18.]" if name == "addcmul" else "[2., 3.]"
    example = f"{name}([1., 2.], [1., 2.], [2., 4.], value=2) = {shown}"
    call.__doc__ = f"Return x + value·(tensor1 {'·' if name == 'addcmul' else '/'} tensor2), ``value`` a number; {example}."
    inner.__doc__ = f"Compute `{name}` in place and return the tensor."
    whole.public = call  # type: ignore[attr-defined]
    register(name, call, "pointwise", rule=op.op, **info)
    register(name + "_", inner, "inplace", namespaces=())


_addc("addcmul", _addcmul)
_addc("addcdiv", _addcdiv, samples=((-2, 2), (-2, 2), (0.4, 2), (0.5, 1.5)))


@public(method=False)
def isin(elements: Tensor | float, test_elements: Tensor | float, *, assume_unique=False, invert=False, out=None):
    """Return whether each element is among ``test_elements``; isin([1, 2, 3], [2, 3]) = [False, True, True]."""
    if not isinstance(elements, Tensor) and not isinstance(test_elements, Tensor):
        raise TypeError("isin(): argument 'elements' or 'test_elements' must be a Tensor")
    for name, value in (("elements", elements), ("test_elements", test_elements)):
        if not isinstance(value, Tensor) and plain_number(value) is None:
            raise TypeError(f"isin(): argument '{name}' must be Tensor, not {type(value).__name__} (got {shorten(value)})")
    x = elements if isinstance(elements, Tensor) else scalar_tensor(elements)
    tests = test_elements if isinstance(test_elements, Tensor) else scalar_tensor(test_elements)
    for t in (x, tests):
        if t.dtype is dtypes.bool_ or t.dtype.is_complex:
            raise RuntimeError(f"Unsupported input type encountered for isin(): {scalar_type(t.dtype)}")
    y = _among(x.detach(), tests.detach())
    y = y.logical_not() if invert else y
    return y if out is None else store(out, y, "isin", (), (elements, test_elements))


def _among(x: Tensor, tests: Tensor) -> Tensor:
    """Return whether each element is among ``tests``."""
    if x.dtype is not tests.dtype and (x.dtype.is_barebone or tests.dtype.is_barebone):  # what asks for no common dtype is answered, as in PyTorch
        if not x._layout.size:
            return new_full(x.shape, False, dtypes.bool_)
        if not tests.ndim:
            return x == tests.item()
        if not x.ndim:
            return (tests == x.item()).any()
    tests = tests.reshape(-1)
    d = dtypes.promote_types(x.dtype, tests.dtype)
    x, tests = cast(x, d), cast(tests, d)
    if d.is_barebone:  # alike are those whose bits are
        bits = dtypes.BY_NAME[d.name[1:]]
        x, tests = x.view(bits), tests.view(bits)
    if tests._layout.size > 16:  # searching what is sorted beats comparing with each
        tests = OPS["sort"].call(tests).values
        at = OPS["searchsorted"].call(tests, x).clamp(max=tests._layout.size - 1)
        return OPS["take"].call(tests, at) == x
    return (x.unsqueeze(-1) == tests).any(-1)
