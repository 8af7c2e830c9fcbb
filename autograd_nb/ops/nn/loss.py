"""Losses from formulas: one pointwise declaration each gives the loss of every element and its mean or sum in one kernel."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from ... import dtypes, launch, strides
from ...codegen.formula.namespace import m
from ...codegen.templates import loops
from ...errors import warn_user
from ...graph.modes import state
from ...shapes import broadcast_shapes
from ...tensor import Tensor
from ..core.derive import Pair
from ..core.numbers import bool_argument, float_argument, plain_number, real_beside
from ..core.pointwise import pointwise
from ..core.recording import can_cast, constant, kind_among, need_floats, not_for_complex, scalar_type
from ..core.reduction import Reduction
from ..core.registry import OPS
from ..core.structured import tensor_argument
from ..creation.cast import cast, relaid
from ..creation.create import new_full
from ..elementwise.activation import functional
from ..reduce.fused_reduction import Reduced, reduced
from .cross_entropy import check_reduction, legacy_reduction

NOTHING_IN_FLOAT32 = 2.0**-150  #: numbers below round to 0


class Loss:
    """A loss of elements and its reductions."""

    elements: Callable[..., Any]
    reduced: Reduced

    def __init__(self, rules: Sequence[Callable[..., Any] | None], formula: Callable[..., Any], name: str, node: str = ""):
        camel = "".join(w.capitalize() for w in name.split("_"))
        self.elements = pointwise(
            *rules, name=name, public=False, inplace=False, result="float", node=node or f"{camel}Backward0"
        )(formula)
        self.reduced = reduced(self.elements, node or f"{camel}Backward0")

    def __call__(self, args: Sequence[Any], reduction: str) -> Tensor:
        if reduction == "none":
            return self.elements(*args)
        return self.reduced(args, mean=reduction == "mean")


def loss(*rules: Callable[..., Any] | None, node: str = "") -> Callable[[Callable[..., Any]], Loss]:
    """Declare a `Loss` from the formula of one element and those of its derivatives (see `pointwise`)."""

    def declare(formula: Callable[..., Any]) -> Loss:
        return Loss(rules, formula, formula.__name__.strip("_"), node)

    return declare


def _total(value: Tensor, reduction: str) -> Tensor:
    return value.mean() if reduction == "mean" else value.sum() if reduction == "sum" else value


def _settled(size_average: Any, reduce: Any, reduction: Any, also: tuple[str, ...] = ()) -> str:
    reduction = legacy_reduction(size_average, reduce, reduction)
    check_reduction(reduction, also)
    return reduction


def _target(value: Any, x: Tensor, name: str) -> Tensor:
    """Return the target of a loss of which PyTorch computes with a number as well."""
    number = plain_number(value)
    return tensor_argument(value, name, "target") if number is None else new_full((), number, x.dtype)


def _pair(input: Any, target: Any, name: str, warn: bool = True) -> tuple[Tensor, Tensor]:
    a, b = tensor_argument(input, name), tensor_argument(target, name, "target")
    if (a.dtype.is_complex or b.dtype.is_complex) and name not in ("l1_loss", "poisson_nll_loss"):
        raise not_for_complex(name)
    if warn and a.shape != b.shape:
        warn_user(
            f"Using a target size ({b.shape}) that is different to the input size ({a.shape}). This will likely lead to "
            f"incorrect results due to broadcasting. Please ensure they have the same size. ({name})",
        )
    if warn and a.dtype is not b.dtype and a.ndim != b.ndim and not (a.ndim and b.ndim):
        kind = dtypes.promote_types(a.dtype, b.dtype)  # broadcast first, a 0-d operand has its say about the dtype
        return _kept_as(a, kind), _kept_as(b, kind)
    return a, b


def _kept_as(t: Tensor, kind: dtypes.dtype) -> Tensor:
    """Return an operand in another dtype. A pass is refused after a change of the operand itself, which PyTorch's nodes keep."""
    y = cast(t, kind)
    if y is not t and y.__class__ is Tensor:
        y._version_ = t._version_
    return y


def _held_as(y: Tensor, kind: dtypes.dtype, name: str) -> Tensor:
    """Return a loss in the dtype of the memory in which PyTorch computes it, an argument's. RuntimeError where that cannot hold it."""
    if y.dtype is kind:
        return y
    if not can_cast(y.dtype, kind):
        cannot = f"result type {scalar_type(y.dtype)} can't be cast to the desired output type {scalar_type(kind)}"
        raise RuntimeError(f"{name}(): {cannot} (an argument is of {kind}: use .float())")
    return cast(y, kind)


def _in_memory_of(t: Tensor, y: Tensor) -> Tensor:
    """Return losses of elements in the order of the argument in whose memory PyTorch computes them; a sum or a mean as it is."""
    if y._layout.shape != t._layout.shape or y._layout.strides == t._layout.strides:
        return y
    wanted = strides.like(t._layout, y.dtype)
    return y if wanted.strides == y._layout.strides else relaid(y, wanted)


def _no_bool(*tensors: Any) -> None:
    if any(isinstance(t, Tensor) and t.dtype is dtypes.bool_ for t in tensors):
        raise RuntimeError(
            "Subtraction, the `-` operator, with a bool tensor is not supported. If you are trying to invert a mask, use the `~` or "
            "`logical_not()` operator instead."
        )


def _fits_into(shape: Any, x: Tensor) -> None:
    if broadcast_shapes(shape, x.shape) != x.shape:
        raise RuntimeError(f"output with shape {list(x.shape)} doesn't match the broadcast shape {list(broadcast_shapes(shape, x.shape))}")


def _check_weight(weight: Any, a: Tensor) -> None:
    if tensor_argument(weight, "loss", "weight").shape != a.shape:
        raise ValueError(f"Weights and input must have the same size. (weight {list(weight.shape)}, input {list(a.shape)})")


def _weighted(values: Tensor, weight: Any, a: Tensor, reduction: str) -> Tensor:
    """Return the reduced losses of elements with a weight each; the mean is over the weights."""
    _check_weight(weight, a)
    values = values * weight
    return values.sum() / weight.sum() if reduction == "mean" else _total(values, reduction)


# ------------------------------------------------------------------------------------------ of two tensors


@loss(lambda a, b: 2 * (a - b), lambda a, b: 2 * (b - a))
def _mse_loss(a, b):
    return (a - b) * (a - b)


@loss(lambda d: m.sign(d), node="AbsBackward0")
def _l1_loss(d):
    return m.abs(d)


def _smooth_slope(g, a, b, beta):
    d = a - b
    return m.where(d <= -beta, -g, m.where(d >= beta, g, m.where(d == d, g * (d / beta), g * math.nan)))  # (at nan its own slope is 0)


@loss(_smooth_slope, lambda g, a, b, beta: _smooth_slope(g, b, a, beta), None)
def _smooth_l1_loss(a, b, beta):
    z = m.abs(a - b)
    return m.where(z < beta, 0.5 * (z * z) / beta, z - 0.5 * beta)


def _huber_slope(g, a, b, delta):
    d = a - b
    return m.where(d <= -delta, -(g * delta), m.where(d >= delta, g * delta, m.where(d == d, g * d, g * math.nan)))


@loss(_huber_slope, lambda g, a, b, delta: _huber_slope(g, b, a, delta), None)
def _huber_loss(a, b, delta):
    z = m.abs(a - b)
    return m.where(z <= delta, 0.5 * (z * z), delta * (z - 0.5 * delta))


@functional()
def mse_loss(input, target, size_average=None, reduce=None, reduction="mean", weight=None):
    """Return (a − b)², reduced by ``reduction`` ("none", "mean", "sum"); dL/da = 2(a − b)/n.

    Warns when the shapes differ, as broadcasting is rarely meant. weight: one factor an element.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.mse_loss.html

    >>> torch.nn.functional.mse_loss(torch.tensor([1.0, 2.0, 4.0]), torch.tensor([1.0, 3.0, 6.0]))
    tensor(1.6667)
    """
    reduction = _settled(size_average, reduce, reduction)
    a, b = _pair(input, target, "mse_loss")
    if weight is not None:
        _check_weight(weight, a)
        _no_bool(input, target)
        return _weighted(_mse_loss((a, b), "none") if kind_among((a, b)).category > 1 else (a - b) ** 2, weight, a, reduction)
    need_floats("mse_cpu", (a, b))
    return _mse_loss((a, b), reduction)


@functional()
def l1_loss(input, target, size_average=None, reduce=None, reduction="mean", weight=None):
    """Return |a − b|; dL/da = sign(a − b), 0 at 0.

    Shapes broadcast, with a warning; ``reduction`` "none", "mean" or "sum". Errors: ValueError for another ``reduction``.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.l1_loss.html

    >>> torch.nn.functional.l1_loss(torch.tensor([1.0, 2.0, 4.0]), torch.tensor([1.0, 3.0, 6.0]))
    tensor(1.)
    """
    reduction = _settled(size_average, reduce, reduction)
    a, b = _pair(input, target, "l1_loss")
    _no_bool(input, target)
    d = a - b  # an op of its own: what the derivative keeps is nobody's to change
    if d.dtype.category == 1:
        return _total(d.abs(), reduction) if weight is None else _weighted(d.abs(), weight, a, reduction)
    if d.dtype.is_complex:
        d = d.abs()
    elif d.dtype.category < 2 and weight is None:
        return _total(d.abs(), reduction)
    return _l1_loss((d,), reduction) if weight is None else _weighted(_l1_loss((d,), "none"), weight, a, reduction)


@functional()
def smooth_l1_loss(input, target, size_average=None, reduce=None, reduction="mean", beta=1.0):
    """Return (a − b)²/(2·beta) where |a − b| < beta, else |a − b| − beta/2; dL/da = (a − b)/beta, kept within [−1, 1].

    Shapes broadcast, with a warning; ``reduction`` "none", "mean" or "sum". Errors: RuntimeError for a negative ``beta``.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.smooth_l1_loss.html

    >>> torch.nn.functional.smooth_l1_loss(torch.tensor([1.0, 2.0]), torch.tensor([1.5, 5.0]), reduction="none")
    tensor([0.1250, 2.5000])
    """
    reduction = _settled(size_average, reduce, reduction)
    beta = float_argument(beta, "smooth_l1_loss", "beta")
    a, b = _pair(input, target, "l1_loss" if beta == 0 else "smooth_l1_loss")
    if not beta >= 0:
        raise RuntimeError(f"smooth_l1_loss does not support negative values for beta (beta={beta})")
    if beta == 0:
        return l1_loss(input, target, reduction=reduction)
    need_floats("smooth_l1_cpu", (a, b))
    if beta < NOTHING_IN_FLOAT32 and dtypes.float64 not in (a.dtype, b.dtype):  # as a float32 it is 0, and the slope at 0 still 0
        return l1_loss(a, b, reduction=reduction)
    return _smooth_l1_loss((a, b, beta), reduction)


@functional()
def huber_loss(input, target, reduction="mean", delta=1.0, weight=None):
    """Return (a − b)²/2 where |a − b| ≤ delta, else delta·(|a − b| − delta/2); dL/da = a − b, kept within [−delta, delta].

    Shapes broadcast, with a warning; ``reduction`` "none", "mean" or "sum". Errors: RuntimeError unless ``delta`` > 0.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.huber_loss.html

    >>> torch.nn.functional.huber_loss(torch.tensor([1.0, 2.0]), torch.tensor([1.5, 5.0]), reduction="none", delta=2.0)
    tensor([0.1250, 4.0000])
    """
    check_reduction(reduction)
    a, b = _pair(input, target, "huber_loss")
    delta = float_argument(delta, "huber_loss", "delta")
    if not delta > 0:
        raise RuntimeError(f"huber_loss does not support non-positive values for delta. (delta={delta})")
    need_floats("huber_cpu", (a, b))
    args = (a, b, delta)
    if weight is None:
        return _in_memory_of(a, _held_as(_huber_loss(args, reduction), input.dtype, "huber_loss"))
    values = _held_as(_huber_loss(args, "none"), input.dtype, "huber_loss")
    return _total(_weighted(values, weight, a, "none"), reduction)


# -------------------------------------------------------------------------------------------- of probabilities


@loss(
    lambda g, x, t, w: g * w * (x - t) / m.maximum(x * (1 - x), 1e-12), lambda g, x, t, w: g * w * (m.log1p(-x) - m.log(x)),
    lambda g, x, t: g * ((t - 1) * m.maximum(m.log1p(-x), -100.0) - t * m.maximum(m.log(x), -100.0)),
)  # fmt: skip
def _binary_cross_entropy(x, t, w):
    return ((t - 1) * m.maximum(m.log1p(-x), -100.0) - t * m.maximum(m.log(x), -100.0)) * w


def _target_inside_unit(outside: Any) -> None:
    if outside[0]:
        raise RuntimeError("all elements of target should be between 0 and 1 (target of binary_cross_entropy)")


_OUTSIDE_UNIT = Reduction("outside_unit", loops.ANY, lambda x: (x < 0) | (x > 1) | (x != x))


_NEGATIVE = Reduction("negative", loops.ANY, lambda x: x < 0)


def _not_negative(negative: Any) -> None:
    if negative[0]:
        raise ValueError("var has negative entry/entries")


def _inside_unit(outside: Any) -> None:
    if outside[0]:
        raise RuntimeError(
            "all elements of input should be between 0 and 1 (input of binary_cross_entropy; apply sigmoid first)"
        )


@functional()
def binary_cross_entropy(input, target, weight=None, size_average=None, reduce=None, reduction="mean"):
    """Return −t·ln x − (1 − t)·ln(1 − x), logarithms kept above −100; dL/dx = (x − t)/(x(1 − x)).

    Errors: ValueError when the shapes differ; RuntimeError for an input outside [0, 1], or nan.

    >>> torch.nn.functional.binary_cross_entropy(torch.tensor([0.8, 0.3]), torch.tensor([1., 0.]))
    tensor(0.2899)
    """
    reduction = _settled(size_average, reduce, reduction)
    x, t = _pair(input, target, "binary_cross_entropy", False)
    if x.shape != t.shape:
        raise ValueError(
            f"Using a target size ({t.shape}) that is different to the input size ({x.shape}) is deprecated. Please ensure "
            "they have the same size."
        )
    if x.dtype is not t.dtype:
        raise RuntimeError(f"Found dtype {t.dtype} but expected {x.dtype} (target of binary_cross_entropy)")
    if weight is not None and broadcast_shapes(weight.shape, x.shape) != x.shape:
        raise RuntimeError(f"weight of shape {list(weight.shape)} does not broadcast to the input's shape {list(x.shape)}")
    weight = constant("binary_cross_entropy", "weight", weight)
    if x._layout.size:
        for look, of in ((_inside_unit, x), (_target_inside_unit, t)):
            launch.check(look, _OUTSIDE_UNIT((of,), tuple(range(of.ndim)), False, dtypes.bool_, of.dtype.compute)._data)
    w = 1.0 if weight is None else weight
    return _in_memory_of(x, _held_as(_binary_cross_entropy((x, t, w), reduction), x.dtype, "binary_cross_entropy"))


def _log_sigmoid(x):
    return m.where(x < 0, x, 0.0) - m.log1p(m.exp(-m.abs(x)))


@loss(lambda x, t: m.sigmoid(x) - t, lambda x, t: -x, node="BinaryCrossEntropyWithLogitsBackward0")
def _bce_with_logits(x, t):
    return (1 - t) * x - _log_sigmoid(x)


def _bce_full(x, t, w, p):
    return w * ((1 - t) * x - (1 + (p - 1) * t) * _log_sigmoid(x))


@loss(
    lambda g, x, t, w, p: g * w * ((p * t + 1 - t) * m.sigmoid(x) - p * t),
    lambda g, x, t, w, p: g * w * (_log_sigmoid(x) - x - p * _log_sigmoid(x)),
    lambda g, x, t, p: g * ((1 - t) * x - (1 + (p - 1) * t) * _log_sigmoid(x)),
    lambda g, x, t, w: -(g * w * t * _log_sigmoid(x)),
    node="BinaryCrossEntropyWithLogitsBackward0",
)  # fmt: skip
def _bce_with_logits_full(x, t, w, p):
    return _bce_full(x, t, w, p)


@functional()
def binary_cross_entropy_with_logits(
    input, target, weight=None, size_average=None, reduce=None, reduction="mean", pos_weight=None
):
    """Return −t·ln σ(x)·pos_weight − (1 − t)·ln(1 − σ(x)), without overflow; dL/dx = σ(x) − t.

    weight, pos_weight: tensors that broadcast to the input. Errors: ValueError when input and target differ in shape.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.binary_cross_entropy_with_logits.html

    >>> torch.nn.functional.binary_cross_entropy_with_logits(torch.tensor([0.0, 2.0]), torch.tensor([1.0, 1.0]))
    tensor(0.4100)
    """
    reduction = _settled(size_average, reduce, reduction)
    if isinstance(input, Tensor) and isinstance(target, Tensor) and input.shape != target.shape:
        remedy = " (use target.view_as(input))" if input.numel() == target.numel() else ""
        raise ValueError(f"Target size ({target.shape}) must be the same as input size ({input.shape}){remedy}")
    x, t = _pair(input, target, "binary_cross_entropy_with_logits", False)
    if x.dtype.category < 2 or t.dtype is not x.dtype:  # (PyTorch computes in the memory of 1 - t)
        if x.dtype.category < 2:
            raise NotImplementedError(f"\"log_sigmoid_cpu\" not implemented for '{scalar_type(x.dtype)}' (binary_cross_entropy_with_logits)")
        _no_bool(t)
    if weight is None and pos_weight is None:
        return _in_memory_of(t, _held_as(_bce_with_logits((x, t), reduction), t.dtype, "binary_cross_entropy_with_logits"))
    for argument, w in (("weight", weight), ("pos_weight", pos_weight)):
        if w is not None:
            constant("binary_cross_entropy_with_logits", argument, tensor_argument(w, "binary_cross_entropy_with_logits", argument))
            _fits_into(w.shape, x)
    _no_bool(pos_weight)
    values = (x, t, 1.0 if weight is None else weight, 1.0 if pos_weight is None else pos_weight)
    return _in_memory_of(t, _held_as(_bce_with_logits_full(values, reduction), t.dtype, "binary_cross_entropy_with_logits"))


# t / t: the derivative by a target of 0 or less is NaN where one is asked for, as PyTorch's
@loss(lambda t: -t, lambda g, x, t: m.where(g == 0, 0.0, g * m.log(t)) + g * (t / t - x))
def _kl_div(x, t):
    return m.where(t > 0, t * m.log(t), m.where(t == 0, 0.0, math.nan)) - t * x


@functional()
def kl_div(input, target, size_average=None, reduce=None, reduction="mean", log_target=False):
    """Return t·(ln t − x), x a log-probability; with ``log_target`` the target is one too. dL/dx = −t.

    ``reduction`` "batchmean" divides by the batch size, "mean" by the number of elements.
    Errors: ValueError for another ``reduction``.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.kl_div.html

    >>> torch.nn.functional.kl_div(torch.tensor([[0.5, 0.5]]).log(), torch.tensor([[0.25, 0.75]]), reduction="batchmean")
    tensor(0.1308)
    """
    if size_average is None and reduce is None and reduction == "mean":
        warn_user(
            "reduction: 'mean' divides the total loss by both the batch size and the support size. 'batchmean' divides only by the "
            "batch size, and aligns with the KL div math definition. 'mean' will be changed to behave the same as 'batchmean' in the "
            "next major release.",
        )
    reduction = _settled(size_average, reduce, reduction, ("batchmean",))
    x, t = _pair(input, target, "kl_div", False)
    log_target = bool_argument(log_target, "kl_div", "log_target")
    if x.dtype.category < 2 or t.dtype.category < 2:
        raise RuntimeError(f"kl_div: Integral inputs not supported. (input {x.dtype}, target {t.dtype})")
    kind = "sum" if reduction == "batchmean" else reduction
    # (ops one by one where PyTorch has them so: what they keep is nobody's to change)
    y = _total(t.exp() * (t - x), kind) if log_target else _in_memory_of(t, _kl_div((x, t), kind))
    return y / x.shape[0] if reduction == "batchmean" and x.ndim else y


@functional("torch")
def poisson_nll_loss(input, target, log_input=True, full=False, size_average=None, eps=1e-8, reduce=None, reduction="mean"):
    """Return eˣ − t·x (``log_input``; dL/dx = eˣ − t) or x − t·ln(x + eps); ``full`` adds Stirling's approximation of ln t! where t > 1.

    Shapes broadcast; ``reduction`` "none", "mean" or "sum". Errors: ValueError for another ``reduction``.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.poisson_nll_loss.html

    >>> torch.nn.functional.poisson_nll_loss(torch.tensor([0.0, 1.0]), torch.tensor([1.0, 2.0]), reduction="none")
    tensor([1.0000, 0.7183])
    """
    reduction = _settled(size_average, reduce, reduction)
    x, t = _pair(input, target, "poisson_nll_loss", False)
    log_input, full = (bool_argument(v, "poisson_nll_loss", n) for v, n in ((log_input, "log_input"), (full, "full")))
    eps = float_argument(eps, "poisson_nll_loss", "eps")
    value = x.exp() - t * x if log_input else x - t * (x + eps).log()
    if full:
        stirling = t * t.log() - t + 0.5 * (t * (2 * math.pi)).log()
        value = _held_as(value + stirling.masked_fill(t <= 1, 0.0), value.dtype, "poisson_nll_loss")
    return _total(value, reduction)


def _held(v, eps):
    """Return max(v, eps); the clamp is not seen by derivatives."""
    if isinstance(v, Pair):
        return Pair(_held(v.value, eps), v.tangent)
    if isinstance(v, Tensor):
        return v + (m.maximum(v, eps) - v).detach()
    return m.maximum(v, eps)


@loss(
    lambda d, v, eps: d / _held(v, eps),
    lambda g, d, v, eps: g * _gaussian_slope(d, v, eps), None, None,
)  # fmt: skip
def _gaussian_nll_loss(d, v, eps, extra):
    s = m.maximum(v, eps)
    return 0.5 * (m.log(s) + d * d / s) + extra


def _gaussian_slope(d, v, eps):
    s = _held(v, eps)
    return 0.5 * (1 / s - (d * d) / (s * s))


@functional()
def gaussian_nll_loss(input, target, var, full=False, eps=1e-6, reduction="mean"):
    """Return (ln v + (x − t)²/v)/2, v the variance kept above ``eps``; ``full`` adds ln(2π)/2.

    Derivative: dx = g·(x − t)/v, dv = g·(1/v − (x − t)²/v²)/2.

    var: of the input's shape, or without its last dim, or with 1 there, or a number.

    Errors: ValueError for negative variances or another shape.

    >>> torch.nn.functional.gaussian_nll_loss(torch.tensor([1., 2.]), torch.tensor([1., 1.]), torch.tensor([1., 1.]))
    tensor(0.2500)
    """
    x = tensor_argument(input, "gaussian_nll_loss")
    t = _target(target, x, "gaussian_nll_loss")
    if isinstance(var, (int, float)):
        if var < 0:
            raise ValueError(f"var has negative entry/entries (var={var})")
        if x.dtype.is_complex:
            raise NotImplementedError("clamp is not supported for complex types (var of gaussian_nll_loss, of the input's dtype)")
        v: Any = float(var)
        if t.dtype.is_complex:
            v = new_full((), v, x.dtype)
    else:
        v = tensor_argument(var, "gaussian_nll_loss", "var")
        if v.dtype.category < 2:
            raise RuntimeError(f"gaussian_nll_loss(): result type Float can't be cast to the desired output type {scalar_type(v.dtype)} (of var)")
        if v.dtype.is_complex:
            raise not_for_complex("gaussian_nll_loss")
        if v._layout.size:
            launch.check(_not_negative, _NEGATIVE((v.detach(),), tuple(range(v.ndim)), False, dtypes.bool_, v.dtype.compute)._data)
        if v.shape != x.shape:
            if tuple(x.shape[:-1]) == tuple(v.shape):
                v = v.unsqueeze(-1)
            elif not (x.ndim == v.ndim and sum(b for a, b in zip(x.shape, v.shape, strict=True) if a != b) == 1):
                raise ValueError(f"var is of incorrect size ({list(v.shape)} for an input of {list(x.shape)})")
    check_reduction(reduction)
    eps = real_beside(x, eps, "gaussian_nll_loss", "eps", x.dtype)
    if x.dtype.is_half:
        eps = float(new_full((), eps, x.dtype).item())
    if isinstance(v, Tensor):  # what the derivative keeps is nobody's to change
        v = v.clone()
    extra = 0.5 * math.log(2 * math.pi) if full else 0.0
    if x.dtype.is_complex or t.dtype.is_complex:
        s = _held(v, eps)
        return _total(0.5 * (s.log() + (x - t) ** 2 / s) + extra, reduction)
    return _in_memory_of(v if isinstance(v, Tensor) else x, _gaussian_nll_loss((x - t, v, eps, extra), reduction))


# ------------------------------------------------------------------------------------------------- of margins


@loss(lambda g, x, t, margin: m.where(t != -1, g, 0.0) + m.where((t != 1) & (margin - x >= 0), -g, 0.0), None, None)
def _hinge_embedding_loss(x, t, margin):
    return m.where(t != 1, m.maximum(margin - x, 0.0), 0.0) + m.where(t != -1, x, 0.0)


@functional("torch")
def hinge_embedding_loss(input, target, margin=1.0, size_average=None, reduce=None, reduction="mean"):
    """Return x where the target is 1 (dL/dx = 1), max(0, margin − x) where it is −1 (dL/dx = −1, or 0).

    Shapes broadcast; ``reduction`` "none", "mean" or "sum". Errors: ValueError for another ``reduction``.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.hinge_embedding_loss.html

    >>> torch.nn.functional.hinge_embedding_loss(torch.tensor([0.2, 0.2]), torch.tensor([1.0, -1.0]), reduction="none")
    tensor([0.2000, 0.8000])
    """
    reduction = _settled(size_average, reduce, reduction)
    if isinstance(target, Tensor) and target.dtype.is_complex:  # which is only compared with 1 and -1
        target = cast(target == 1, dtypes.float32) - cast(target == -1, dtypes.float32)
    x, t = _pair(input, target, "hinge_embedding_loss", False)
    _no_bool(x)
    margin = real_beside(x, float_argument(margin, "hinge_embedding_loss", "margin"), "hinge_embedding_loss", "margin")
    if x.dtype.category == 1 and reduction == "mean":
        raise RuntimeError(f"mean(): could not infer output dtype. Input dtype must be either a floating point or complex dtype. Got: {x.dtype}")
    if state.grad and x.requires_grad:  # what the derivative keeps is nobody's to change
        x, t = x.clone(), t.clone()
    if x.dtype.category == 1 and reduction == "sum":
        return cast(_hinge_embedding_loss((x, t, margin), "none"), x.dtype).sum()
    y = _in_memory_of(t, _hinge_embedding_loss((x, t, margin), reduction))
    return y if y.dtype is x.dtype else cast(y, x.dtype)


@loss(lambda g, z, margin: m.where(z + margin >= 0, g, 0.0), None, node="ClampMinBackward0")
def _margin_ranking_loss(z, margin):
    return m.maximum(z + margin, 0.0)


@functional("torch")
def margin_ranking_loss(input1, input2, target, margin=0.0, size_average=None, reduce=None, reduction="mean"):
    """Return max(0, −t·(a − b) + margin); dL/da = −t and dL/db = t where that is positive.

    Shapes broadcast; t is 1 where a shall be the larger one, −1 where b.
    Errors: RuntimeError when the numbers of dims differ.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.margin_ranking_loss.html

    >>> torch.nn.functional.margin_ranking_loss(torch.tensor([1.0, 3.0]), torch.tensor([2.0, 1.0]), torch.tensor([1.0, 1.0]), reduction="none")
    tensor([1., 0.])
    """
    reduction = _settled(size_average, reduce, reduction)
    a, b = _pair(input1, input2, "margin_ranking_loss", False)
    t = tensor_argument(target, "margin_ranking_loss", "target")
    if not a.ndim == b.ndim == t.ndim:
        raise RuntimeError(
            f"margin_ranking_loss : All input tensors should have same dimension but got sizes: input1: {a.shape}, input2: "
            f"{b.shape}, target: {t.shape} "
        )
    return _margin_ranking_loss((-t * (a - b), float_argument(margin, "margin_ranking_loss", "margin")), reduction)


@loss(lambda g, x, t: -(g * t * m.sigmoid(-(t * x))), None)
def _soft_margin_loss(x, t):
    return 0.0 - _log_sigmoid(t * x)  # (where that is 0 so is this, not -0)


@functional()
def soft_margin_loss(input, target, size_average=None, reduce=None, reduction="mean"):
    """Return ln(1 + e^(−t·x)); dL/dx = −t·σ(−t·x).

    ``reduction`` "none", "mean" or "sum". Errors: ValueError for another ``reduction``.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.soft_margin_loss.html

    >>> torch.nn.functional.soft_margin_loss(torch.tensor([0.0, 2.0]), torch.tensor([1.0, -1.0]), reduction="none")
    tensor([0.6931, 2.1269])
    """
    reduction = _settled(size_average, reduce, reduction)
    if all(isinstance(v, Tensor) for v in (input, target)) and input.dtype.is_complex:
        target = constant("soft_margin_loss", "target", target)
        return _held_as(_total(((target * -input).exp() + 1).log(), reduction), input.dtype, "soft_margin_loss")
    x, t = _pair(input, target, "soft_margin_loss", False)
    t = constant("soft_margin_loss", "target", t)
    if x.dtype.category < 2:
        raise RuntimeError(f"soft_margin_loss(): result type Float can't be cast to the desired output type {scalar_type(x.dtype)} (of the input)")
    _fits_into(t.shape, x)
    return _in_memory_of(x, _held_as(_soft_margin_loss((x, t), reduction), x.dtype, "soft_margin_loss"))


def _where(condition: Tensor, a: Any, b: Any) -> Tensor:
    return OPS["where"].call(condition, a, b)
