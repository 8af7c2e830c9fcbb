"""Activation functions: formulas, offered by nn.functional (and by torch where PyTorch has them there)."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from typing import Any

from ...codegen.formula.namespace import m
from ...dtypes import float32, float64, int64, uint8
from ...errors import refuse_keywords, shorten
from ...shapes import wrap_dim
from ...tensor import Tensor
from ..core import recording
from ..core.numbers import SINGLE, float_argument, limits, number_argument, number_as, real_argument, real_beside
from ..core.pointwise import pointwise
from ..core.recording import as_kept, need_floats, need_numbers, no_complex_derivative, not_for_barebone, not_for_complex, store
from ..core.registry import OPS, register
from ..core.structured import tensor_argument
from ..creation.create import new_empty
from .unary import relu as _relu
from .unary import sigmoid as _sigmoid
from .unary import tanh as _tanh

_FUNCTIONAL = "nn.functional"


def functional(*also: str, name: str = "") -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Decorator: offer a function as ``nn.functional.<name>``, and under the same name in the namespaces ``also``."""

    def enter(function: Callable[..., Any]) -> Callable[..., Any]:
        own = name or function.__name__
        call = register(f"{_FUNCTIONAL}.{own}", function, method=False, namespaces=(_FUNCTIONAL,))
        if also:
            register(own, call, method=False, namespaces=also)
        return function

    return enter


def formula(*rules: Callable[..., Any] | None, **options: Any) -> Callable[[Callable[..., Any]], Any]:
    """Declare as `pointwise` does, without offering the function."""
    return pointwise(*rules, public=False, **options)


def _described(call: Any, inner: Any, name: str, defaults: dict[str, float], doc: str, shown: str) -> None:
    """Give a function and its in-place version their names, texts and signatures; ``shown``: its values at −1, 0.5 and 8."""
    call.__name__ = call.__qualname__ = name
    inner.__name__ = inner.__qualname__ = name + "_"
    call.__doc__ = (
        f"Return {doc}\n\n    Any shape, floats; ``inplace`` writes x itself. Errors: NotImplementedError for bools.\n"
        f"    Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.{name}.html\n\n"
        f"    >>> torch.nn.functional.{name}(torch.tensor([-1.0, 0.5, 8.0]))\n    tensor([{shown}])\n    "
    )
    inner.__doc__ = f"Compute `{name}` in place and return the tensor."
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    parameters = [inspect.Parameter("input", kind), *[inspect.Parameter(k, kind, default=v) for k, v in defaults.items()]]
    inner.__signature__ = inspect.Signature(parameters)
    switch = inspect.Parameter("inplace", kind, default=False)
    call.__signature__ = inspect.Signature([*parameters, switch])


def _switchable(
    name: str, op: Any, defaults: dict[str, float], *, torch: bool = False, torch_inplace: bool = False, integers: bool = False,
    keeps: bool = False, doc: str = "", shown: str = "",
) -> Callable[..., Any]:  # fmt: skip
    """Return ``f(input, <numbers with defaults>, inplace=False)`` from a formula over x and numbers; and ``f_`` for nn.functional.

    integers: integer tensors are taken too, with the numbers as integers. keeps: see `as_kept`, for the in-place form.
    """
    names = list(defaults)
    values = tuple(float(v) for v in defaults.values())
    count = len(names)

    def numbers(args: tuple[Any, ...], kw: dict[Any, Any]) -> tuple[tuple[Any, ...], bool]:
        inplace = kw.pop("inplace", False)
        if len(args) > count:
            if len(args) > count + 1:
                raise TypeError(f"{name}() takes at most {count + 2} arguments ({len(args) + 1} given)")
            inplace, args = args[count], args[:count]
        found = list(args) + list(values[len(args) :])
        refuse_keywords(name, kw, (*names, "inplace"))
        for k, v in kw.items():
            found[names.index(k)] = v
        return tuple([real_argument(v, name, n) for n, v in zip(names, found, strict=True)]), inplace

    def fitted(x: Any, found: tuple[Any, ...], called: str) -> tuple[Any, ...]:
        if integers and tensor_argument(x, called).dtype.category == 1:
            return tuple([int(v) for v in found])
        _floating(tensor_argument(x, called), name)
        if name == "celu" and not found[0]:
            raise RuntimeError("ZeroDivisionError: alpha cannot be 0 for CELU")
        for v in found:
            if not -SINGLE <= v <= SINGLE and x.dtype is not float64:
                number_as(v, float32, name)
        return found

    def call(input, *args, **kw):
        if not args and not kw:
            return op(input, *fitted(input, values, name))
        found, inplace = numbers(args, kw)
        return inner(input, *found) if inplace else op(input, *fitted(input, found, name))

    def inner(input, *args, **kw):
        found, _ = numbers(args, kw)
        y = op.inplace(input, *fitted(input, found, name + "_"))
        return as_kept(y, name, *found) if keeps else y

    _described(call, inner, name, defaults, doc, shown)
    functional(*(("torch",) if torch else ()), name=name)(call)
    if defaults or torch_inplace:  # the others are offered by their switch only, as in PyTorch
        functional(*(("torch",) if torch_inplace else ()), name=name + "_")(inner)
    return call


def _floating(x: Tensor, name: str) -> None:
    if x.dtype.category < 2:
        raise NotImplementedError(f'"{name}" not implemented for {x.dtype}: it takes floating point tensors (use x.float())')
    if name == "silu":  # the only one that PyTorch computes of complex numbers
        no_complex_derivative(name, x)


# ---------------------------------------------------------------------------------------- one line each


@functional(name="relu")
def _functional_relu(input, inplace=False):
    """Return max(x, 0), as `torch.relu`; ``inplace`` writes x itself; relu([-1., 2.]) = [0., 2.]."""
    return _relu.inplace(input) if inplace else _relu(input)


@functional(name="relu_")
def _functional_relu_(input):
    """Compute `relu` in place and return the tensor."""
    return _relu.inplace(input)


@functional(name="sigmoid")
def _functional_sigmoid(input):
    """Return σ(x) = 1/(1 + e⁻ˣ), as `torch.sigmoid`."""
    return _sigmoid(input)


@functional(name="tanh")
def _functional_tanh(input):
    """Return the hyperbolic tangent, as `torch.tanh`."""
    return _tanh(input)


@formula(lambda g, x: m.where((x <= 0) | (x >= 6), 0.0, g), name="relu6", node="HardtanhBackward0")
def _relu6(x):
    return m.where(x < 0, 0, m.where(x > 6, 6, x))


relu6: Callable[..., Any] = _switchable(
    "relu6", _relu6, {}, integers=True, doc="min(max(x, 0), 6); dy/dx = 1 for 0 < x < 6, else 0.", shown="0.0000, 0.5000, 6.0000"
)


@formula(lambda g, x, slope: m.where(x > 0, g, g * slope), None, name="leaky_relu", exact=("slope",))
def _leaky_relu(x, slope):
    return m.where(x > 0, x, x * slope)


leaky_relu: Callable[..., Any] = _switchable(
    "leaky_relu", _leaky_relu, {"negative_slope": 0.01}, keeps=True, doc="x for x > 0, else negative_slope·x; dy/dx = 1, or negative_slope.",
    shown="-0.0100,  0.5000,  8.0000",
)


# at 0 their derivative is the limit from the left, and the derivative of that is 0, as in PyTorch
@formula(lambda g, x, alpha: m.where(x < 0, g * (alpha * m.exp(x)), m.where(x == 0, g * alpha, g)), None, name="elu", exact=("alpha",))
def _elu(x, alpha):
    return m.where(x < 0, alpha * m.expm1(x), x)


elu: Callable[..., Any] = _switchable(
    "elu", _elu, {"alpha": 1.0}, keeps=True, doc="x for x > 0, else alpha·(eˣ − 1); dy/dx = 1, or alpha·eˣ.", shown="-0.6321,  0.5000,  8.0000"
)

_SELU_ALPHA, _SELU_SCALE = 1.6732632423543772848170429916717, 1.0507009873554804934193349852946


@formula(
    lambda g, x: m.where(x < 0, g * ((_SELU_ALPHA * _SELU_SCALE) * m.exp(x)), m.where(x == 0, g * (_SELU_ALPHA * _SELU_SCALE), g * _SELU_SCALE)),
    name="selu",
    node="EluBackward0",
)
def _selu(x):
    return m.where(x > 0, _SELU_SCALE * x, (_SELU_ALPHA * _SELU_SCALE) * m.expm1(x))


selu: Callable[..., Any] = _switchable(
    "selu", _selu, {}, torch=True, torch_inplace=True, keeps=True, shown="-1.1113,  0.5254,  8.4056",
    doc="s·(max(0, x) + min(0, α·(eˣ − 1))), s ≈ 1.0507 and α ≈ 1.6733; dy/dx = s for x > 0, else s·α·eˣ.",
)


@formula(lambda g, x, alpha: m.where(x < 0, g * m.exp(x / alpha), g), None, name="celu", node="EluBackward0", exact=("alpha",))
def _celu(x, alpha):
    return m.where(x < 0, alpha * m.expm1(x / alpha), x)


celu: Callable[..., Any] = _switchable(
    "celu", _celu, {"alpha": 1.0}, torch=True, torch_inplace=True, keeps=True, shown="-0.6321,  0.5000,  8.0000",
    doc="max(0, x) + min(0, alpha·(e^(x/alpha) − 1)); dy/dx = 1 for x > 0, else e^(x/alpha).",
)

_TANH_SCALE = math.sqrt(2 / math.pi)


@formula(lambda x: m.normal_pdf(x), name="normal_cdf", inplace=False)
def _normal_cdf(x):
    return m.normal_cdf(x)


@formula(lambda x: -x * m.normal_pdf(x), name="normal_pdf", inplace=False)
def _normal_pdf(x):
    return m.normal_pdf(x)


for _function in (_normal_cdf, _normal_pdf):  # for the derivative's formula on tensors
    register(_function.op.name, _function, "internal", method=False, namespaces=(), rule=_function.op)


@formula(lambda x: m.normal_cdf(x) + x * m.normal_pdf(x), name="gelu")
def _gelu(x):
    return x * m.normal_cdf(x)


def _gelu_tanh_slope(x):
    t = m.tanh(_TANH_SCALE * (x + 0.044715 * (x * x * x)))
    return 0.5 * (1 + t) + (0.5 * x) * (1 - t * t) * (_TANH_SCALE * (1 + (3 * 0.044715) * (x * x)))


@formula(_gelu_tanh_slope, name="gelu_tanh", node="GeluBackward0")
def _gelu_tanh(x):
    return (0.5 * x) * (1 + m.tanh(_TANH_SCALE * (x + 0.044715 * (x * x * x))))


@functional()
def gelu(input, approximate="none", *, out=None):
    """Return x·Φ(x), Φ the normal distribution function; dy/dx = Φ(x) + x·φ(x). ``approximate="tanh"`` takes the formula with tanh.

    Any shape, floats. Errors: RuntimeError for another ``approximate``, NotImplementedError for integers.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.gelu.html

    >>> torch.nn.functional.gelu(torch.tensor([-1.0, 0.0, 2.0]))
    tensor([-0.1587,  0.0000,  1.9545])
    """
    _floating(tensor_argument(input, "gelu"), "gelu")
    if not isinstance(approximate, str):
        raise TypeError(f"gelu(): argument 'approximate' must be str, not {type(approximate).__name__} (approximate={shorten(approximate)})")
    if approximate not in ("none", "tanh"):
        raise RuntimeError(f"approximate argument must be either none or tanh (approximate={approximate!r})")
    if input.dtype.is_complex:
        raise not_for_complex("gelu")
    y = (_gelu if approximate == "none" else _gelu_tanh)(input)
    return y if out is None else store(out, y, "gelu", (), (input,))


def _silu_slope(x):
    s = m.sigmoid(x)
    return s * (1 + x * (1 - s))


@formula(_silu_slope, name="silu")
def _silu(x):
    return x * m.sigmoid(x)


silu: Callable[..., Any] = _switchable("silu", _silu, {}, doc="x·σ(x), also called swish; dy/dx = σ(x)·(1 + x·(1 − σ(x))).", shown="-0.2689,  0.3112,  7.9973")


def _mish_parts(x):
    """Return (e, w) of e = eˣ and w = (1 + e)² − 1: the hyperbolic tangent of softplus is w/(w + 2)."""
    e = m.exp(m.where(x > 20, 20.0, x))
    return e, e * e + (e + e)


def _mish_slope(x):
    e, w = _mish_parts(x)
    return (w + x * m.where(x > 20, 0.0, 4 * e * (e + 1) / (w + 2))) / (w + 2)


@formula(_mish_slope, name="mish")
def _mish(x):
    _, w = _mish_parts(x)
    return x * (w / (w + 2))


mish: Callable[..., Any] = _switchable("mish", _mish, {}, doc="x·t, t = tanh(softplus(x)); dy/dx = t + x·σ(x)·(1 − t²).", shown="-0.3034,  0.3752,  8.0000")


@formula(lambda g, x, beta, threshold: m.where(x * beta > threshold, g, g * m.sigmoid(x * beta)), None, None, name="softplus")
def _softplus(x, beta, threshold):
    return m.where(x * beta > threshold, x, m.log1p(m.exp(x * beta)) / beta)


@functional()
def softplus(input, beta=1.0, threshold=20.0, *, out=None):
    """Return ln(1 + e^(βx))/β, x itself where βx is above ``threshold``.

    dy/dx = σ(βx), 1 above the threshold. Any shape, floats. Errors: NotImplementedError for integers.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.softplus.html

    >>> torch.nn.functional.softplus(torch.tensor([-1.0, 0.0, 30.0]))
    tensor([ 0.3133,  0.6931, 30.0000])
    """
    _floating(tensor_argument(input, "softplus"), "softplus")
    beta, threshold = (real_beside(input, v, "softplus", n, float32) for v, n in ((beta, "beta"), (threshold, "threshold")))
    y = _softplus(input, beta, threshold)
    return y if out is None else store(out, y, "softplus", (), (input,))


@formula(lambda x: 1 / ((1 + m.abs(x)) * (1 + m.abs(x))) - 0 * x, name="softsign", result="float")
def _softsign(x):
    return x / (1 + m.abs(x))


@functional()
def softsign(input):
    """Return x/(1 + |x|); dy/dx = 1/(1 + |x|)².

    Any shape; integers give floats. Errors: RuntimeError or NotImplementedError for bools.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.softsign.html

    >>> torch.nn.functional.softsign(torch.tensor([-1.0, 0.0, 3.0]))
    tensor([-0.5000,  0.0000,  0.7500])
    """
    need_numbers("abs_cpu", (tensor_argument(input, "softsign"),))
    not_for_barebone("abs_cpu", input.dtype)
    return input / (1 + input.abs()) if input.dtype.is_complex else _softsign(input)


@functional()
def tanhshrink(input):
    """Return x − tanh x; dy/dx = tanh² x.

    Any shape, floats. Errors: TypeError for what is no tensor.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.tanhshrink.html

    >>> torch.nn.functional.tanhshrink(torch.tensor([-1.0, 0.0, 1.0]))
    tensor([-0.2384,  0.0000,  0.2384])
    """
    return input - _tanh(input)


@formula(lambda g, x, low, high: m.where((x <= low) | (x >= high), 0.0, g), None, None, name="hardtanh")
def _hardtanh(x, low, high):
    return m.where(x < low, low, m.where(x > high, high, x))


_hardtanh_call = _switchable("hardtanh", _hardtanh, {"min_val": -1.0, "max_val": 1.0}, integers=True, shown="-1.0000, 0.5000, 1.0000")


@functional()
def hardtanh(input, min_val=-1.0, max_val=1.0, inplace=False):
    """Return x kept within [min_val, max_val]; dy/dx = 1 within, 0 at and beyond the edges.

    Any shape, floats and integers; ``inplace`` writes x itself. Errors: ValueError where min_val > max_val.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.hardtanh.html

    >>> torch.nn.functional.hardtanh(torch.tensor([-2.0, 0.5, 2.0]))
    tensor([-1.0000,  0.5000,  1.0000])
    """
    low, high = float_argument(min_val, "hardtanh", "min_val"), float_argument(max_val, "hardtanh", "max_val")
    if low > high:
        raise ValueError(f"min_val cannot be greater than max_val (min_val={min_val}, max_val={max_val})")
    if isinstance(input, Tensor) and input.dtype.category == 1:
        whole = [number_as(v, int64, "hardtanh") for v in (min_val, max_val)]
        if input.dtype is uint8 and min(whole) < 0:
            raise RuntimeError(f"cannot do hardtanh on an unsigned type with negative limits (min_val={min_val})")
        bounds = [number_as(v, input.dtype, "hardtanh") for v in whole]
        return OPS["clamp_" if inplace else "clamp"].call(input, *bounds)  # (whole numbers have more digits than the formula's)
    if isinstance(input, Tensor) and input.dtype.category == 2:
        low, high = (real_beside(input, v, "hardtanh", n, input.dtype) for v, n in ((low, "min_val"), (high, "max_val")))
    if min_val == min_val and max_val == max_val:
        return _hardtanh_call(input, min_val, max_val, inplace)
    y = _hardtanh_call(input, min_val, max_val, False) + math.nan  # of one bound that is nan nothing is left
    return input.copy_(y) if inplace else y


@formula(lambda g, x: m.where((x > -3) & (x < 3), g * (1 / 6), 0.0), name="hardsigmoid")
def _hardsigmoid(x):
    return m.where(x <= -3, 0.0, m.where(x >= 3, 1.0, x * (1 / 6) + 0.5))


hardsigmoid: Callable[..., Any] = _switchable(
    "hardsigmoid", _hardsigmoid, {}, doc="0 below −3, 1 above 3, x/6 + 1/2 between; dy/dx = 1/6 there, else 0.", shown="0.3333, 0.5833, 1.0000"
)


@formula(lambda g, x: m.where(x <= -3, 0.0, m.where(x < 3, g * (x * (1 / 3) + 0.5), g)), name="hardswish")
def _hardswish(x):
    return m.where(x >= 3, x, x * (m.where(x < -3, 0.0, x + 3) * (1 / 6)))


hardswish: Callable[..., Any] = _switchable(
    "hardswish", _hardswish, {}, doc="x·hardsigmoid(x); dy/dx = 0 below −3, 1 above 3, x/3 + 1/2 between.", shown="-0.3333,  0.2917,  8.0000"
)


@formula(lambda g, x, lambd: m.where((x >= -lambd) & (x <= lambd), 0.0, g), None, name="hardshrink", node="HardshrinkBackward0")
def _hardshrink(x, lambd):
    return m.where((x >= -lambd) & (x <= lambd), 0.0, x)


# (the derivative's ``bound`` is lambd in x's precision, as in PyTorch: a half that lies between the two has a value and no gradient)
@formula(
    lambda g, x, bound: m.where((x >= -bound) & (x <= bound), 0.0, g), None, None, name="softshrink", node="SoftshrinkBackward0", exact=("lambd",),
)  # fmt: skip
def _softshrink(x, lambd, bound):
    return m.where(x > lambd, x - lambd, m.where(x < -lambd, x + lambd, x * 0.0))


@functional("torch")
def hardshrink(input, lambd=0.5, *, out=None):
    """Return x where |x| > lambd, else 0; dy/dx = 1 there, else 0.

    Any shape, floats. Errors: NotImplementedError for integers.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.hardshrink.html

    >>> torch.nn.functional.hardshrink(torch.tensor([-1.0, 0.2, 2.0]))
    tensor([-1.,  0.,  2.])
    """
    _floating(tensor_argument(input, "hardshrink"), "hardshrink")
    y = _hardshrink(input, real_beside(input, lambd, "hardshrink", "lambd", input.dtype))
    return y if out is None else store(out, y, "hardshrink", (), (input,))


Tensor.hardshrink = OPS["hardshrink"].call  # type: ignore[attr-defined]


@functional()
def softshrink(input, lambd=0.5, *, out=None):
    """Return x moved by ``lambd`` towards 0, and 0 for |x| ≤ lambd; dy/dx = 1 beyond, else 0.

    Any shape, floats. Errors: RuntimeError for a negative ``lambd``, NotImplementedError for integers.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.softshrink.html

    >>> torch.nn.functional.softshrink(torch.tensor([-1.0, 0.2, 2.0]))
    tensor([-0.5000,  0.0000,  1.5000])
    """
    _floating(tensor_argument(input, "softshrink"), "softshrink")
    lambd = real_argument(lambd, "softshrink", "lambd")
    most = limits(input.dtype)[1]
    if not 0 <= lambd <= most:
        raise RuntimeError(f"lambda must be in range [0, {most:g}], greater or equal to 0, for input dtype {input.dtype}, but found {lambd}.")
    y = _softshrink(input, lambd, lambd)
    return y if out is None else store(out, y, "softshrink", (), (input,))


@formula(lambda g, x, threshold: m.where(x <= threshold, 0.0, g), None, None, name="threshold", repeats=True)
def _threshold(x, threshold, value):
    return m.where(x <= threshold, value, x)


@functional("torch")
def threshold(input, threshold: float, value: float, inplace=False):
    """Return x where x > threshold, else ``value``; dy/dx = 1 there, else 0.

    Any shape, floats and integers; ``inplace`` writes x itself. Errors: NotImplementedError for bools.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.threshold.html

    >>> torch.nn.functional.threshold(torch.tensor([-1.0, 0.2, 2.0]), 0.5, 20.0)
    tensor([20., 20.,  2.])
    """
    need_numbers("threshold_cpu", (tensor_argument(input, "threshold"),))
    threshold, value = (number_argument(v, "threshold", n) for v, n in ((threshold, "threshold"), (value, "value")))
    value = number_as(value, input.dtype, "threshold")
    threshold = number_as(threshold, float32 if input.dtype.is_half else input.dtype, "threshold")
    args = (threshold, value) if input.dtype.category < 2 else (float(threshold), float(value))
    return _threshold.inplace(input, *args) if inplace else _threshold(input, *args)


@functional("torch", name="threshold_")
def threshold_(input, threshold: float, value: float):
    """Compute `threshold` in place and return the tensor."""
    return OPS["nn.functional.threshold"].call(input, threshold, value, True)


@formula(lambda x: m.sigmoid(-x), name="log_sigmoid")
def _logsigmoid(x):
    return m.where(x < 0, x, 0.0) - m.log1p(m.exp(-m.abs(x)))


@functional()
def logsigmoid(input, *, out=None):
    """Return ln σ(x), without overflow; dy/dx = σ(−x).

    Any shape, floats. Errors: NotImplementedError for integers.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.logsigmoid.html

    >>> torch.nn.functional.logsigmoid(torch.tensor([-1.0, 0.0, 3.0]))
    tensor([-1.3133, -0.6931, -0.0486])
    """
    _floating(tensor_argument(input, "logsigmoid"), "logsigmoid")
    # in C order whatever the operand's, as in PyTorch
    y = _logsigmoid(input) if input._layout.contiguous else recording.guarded(_logsigmoid(OPS["contiguous"].call(input)), input)
    return y if out is None else store(out, y, "logsigmoid")


@formula(
    lambda g, x, w: m.where(x > 0, g, g * w), lambda g, x, w: m.where(x > 0, 0.0, g * x), name="prelu", node="PreluKernelBackward0"
)
def _prelu(x, w):
    return m.where(x > 0, x, w * x)


@functional("torch")
def prelu(input, weight):
    """Return x for x > 0, else weight·x; ``weight`` has one element, or one a channel (dim 1).

    Derivative: dx = g for x > 0, else weight·g; dweight = the sum of g·x over x ≤ 0, for each of its elements.
    Errors: RuntimeError when ``weight`` has another number of elements.

    >>> torch.nn.functional.prelu(torch.tensor([-2., 3.]), torch.tensor([0.25]))
    tensor([-0.5000,  3.0000])
    """
    x, w = tensor_argument(input, "prelu"), tensor_argument(weight, "prelu", "weight")
    if x.dtype is not w.dtype:
        raise RuntimeError(f"prelu: Type promoting not supported. Got {x.dtype} and {w.dtype}")
    if w.numel() != 1:
        if x.ndim == 0:
            raise RuntimeError("Not allow zero-dim input tensor.")
        channels = x.shape[1] if x.ndim > 1 else 1
        if channels != w.numel():
            raise RuntimeError(
                f"Mismatch of parameter numbers and input channel size. Found parameter numbers = {w.numel()} and "
                f"channel size = {channels}."
            )
    if w.ndim > 1:
        raise RuntimeError(f"prelu: Expected `weight` to be a scalar or 1D tensor, but got: ndim = {w.ndim}")
    need_floats("prelu_cpu", (x,))
    if w.ndim == 1:
        w = w.reshape([1, -1] + [1] * (x.ndim - 2)) if x.ndim >= 2 else w.reshape([1] * x.ndim)
    return _prelu(x, w)


Tensor.prelu = OPS["prelu"].call  # type: ignore[attr-defined]


def _rrelu(input, lower, upper, training, inplace):
    x = tensor_argument(input, "rrelu")
    _floating(x, "rrelu")
    lower, upper = real_argument(lower, "rrelu", "lower"), real_argument(upper, "rrelu", "upper")
    for bound, name in ((lower, "lower"), (upper, "upper")):
        if not math.isfinite(bound):
            raise RuntimeError(f"rrelu: {name} bound must be finite, got {bound}")
    if lower > upper:
        raise RuntimeError(f"Lower bound should be less than or equal to the upper bound (lower={lower}, upper={upper})")
    if not training:
        slope = real_beside(x, (lower + upper) / 2, "rrelu", "lower", x.dtype)
        return as_kept(_leaky_relu.inplace(x, slope), "leaky_relu", slope) if inplace else _leaky_relu(x.contiguous(), slope)
    if "uniform_" not in OPS:
        raise NotImplementedError("rrelu(): training=True needs random numbers, which this build does not have")
    slopes = OPS["uniform_"].call(new_empty(x.shape, x.dtype), lower, upper)
    return as_kept(_prelu.inplace(x, slopes)) if inplace else _prelu(x.contiguous(), slopes)


@functional("torch")
def rrelu(input, lower=1.0 / 8, upper=1.0 / 3, training=False, inplace=False):
    """Return x for x > 0, else a·x, where a is drawn from [lower, upper] in training and their mean otherwise; rrelu([-1., 2.]) = [-0.2292, 2.0000]."""
    return _rrelu(input, lower, upper, training, inplace)


@functional("torch", name="rrelu_")
def rrelu_(input, lower=1.0 / 8, upper=1.0 / 3, training=False):
    """Compute `rrelu` in place and return the tensor."""
    return _rrelu(input, lower, upper, training, True)


@formula(lambda b: m.sigmoid(b), lambda g, a, b: g * (a * (m.sigmoid(b) * (1 - m.sigmoid(b)))), name="glu")
def _glu(a, b):
    return a * m.sigmoid(b)


@functional()
def glu(input, dim=-1):
    """Return a·σ(b), a and b the halves of the input along ``dim``: its size n becomes n/2.

    da = g·σ(b), db = g·a·σ(b)·σ(−b). Errors: RuntimeError when that dim's size is odd.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.glu.html

    >>> torch.nn.functional.glu(torch.tensor([1.0, 2.0, 0.0, 100.0]))
    tensor([0.5000, 2.0000])
    """
    x = tensor_argument(input, "glu")
    if x.ndim == 0:
        raise RuntimeError("glu does not support scalars because halving size must be even (a 0-dimensional tensor was given)")
    d = wrap_dim(dim, x.ndim)
    n = x.shape[d]
    if n % 2:
        raise RuntimeError(f"Halving dimension must be even, but dimension {d} is size {n}")
    if x.dtype.is_complex:
        raise not_for_complex("glu_cpu")
    need_floats("glu_cpu", (x,))
    return _glu(x.narrow(d, 0, n // 2), x.narrow(d, n // 2, n // 2))
