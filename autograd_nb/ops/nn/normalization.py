"""What the norms share, and group, instance and local response norm (`batch_norm` and `layer_norm` have files of their own).

All but the last are y = (x − mean)·rstd·weight + bias with the statistics over some dims: here fused reductions and one pointwise
kernel, as the weights vary along other dims than the statistics. Under ``create_graph`` the gradients are written with ops.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ... import dtypes, launch
from ...codegen.templates.loops import SUM
from ...graph.modes import state, unrecorded
from ...overriding import overridable
from ...shapes import numel
from ...tensor import Tensor, make
from ..core.jumps import beside
from ..core.numbers import float_argument, int_argument
from ..core.pointwise import pointwise
from ..core.recording import constant, fresh, guarded, not_for_complex, scalar_type
from ..core.reduction import Reduction
from ..core.registry import OPS
from ..core.structured import optional_tensor, structured, tensor_argument
from ..creation.cast import cast, contiguous, gradient_in_its_format, in_format_of
from ..elementwise.activation import functional
from ..reduce.statistics import mean_square, wide_mean

# ----------------------------------------------------------------------------------------------- what all norms share


def same_dtype(x: Tensor, name: str, **others: Any) -> None:
    """Raise RuntimeError where `x` is no floating point tensor, or another has not its dtype; those of half precision may all be float32."""
    if x.dtype.category < 2:
        raise NotImplementedError(f'"{name}" not implemented for {x.dtype}: input must be a floating point tensor')
    others = {n: tensor_argument(t, name, n) for n, t in others.items() if t is not None}
    if all(t.dtype is x.dtype for t in others.values()):
        return
    if x.dtype.is_half and all(t.dtype is dtypes.float32 for t in others.values()):
        return
    n, t = next((n, t) for n, t in others.items() if t.dtype is not x.dtype)
    raise RuntimeError(
        f"mixed dtype (CPU): all inputs must share same datatype, or parameters be float32 where the input is half precision: expected scalar "
        f"type {x.dtype} but found {t.dtype} (argument '{n}' of {name})"
    )


def widened(t: Any) -> Any:
    """Return half precision as float32, in which its norms are computed."""
    return t if t is None or not t.dtype.is_half else cast(t, dtypes.float32)


SUMS = Reduction("norm_backward", SUM, lambda g, x, mean, rstd: (g, g * ((x - mean) * rstd)), count=2)
SUM_G = Reduction("norm_backward", SUM, lambda g: g)
SUM_GX = Reduction("norm_backward", SUM, lambda g, x, mean, rstd: g * ((x - mean) * rstd))


def graph_gradients(g, x, w, dims, wdims, eps, centered, needs):
    """Return the gradients as tensors with a history, from the input alone."""
    grads = {}
    mean = x.mean(dims, True) if centered else 0.0
    gap = x - mean
    rstd = ((gap * gap).mean(dims, True) + eps).rsqrt()
    hat = gap * rstd
    if "x" in needs:
        gw = g if w is None else g * w
        inner = gw - hat * (gw * hat).mean(dims, True)
        grads["x"] = rstd * (inner - gw.mean(dims, True) if centered else inner)
    if "w" in needs:
        grads["w"] = (g * hat).sum(wdims, True) if wdims else g * hat
    if "b" in needs:
        grads["b"] = g.sum(wdims, True) if wdims else g
    return grads


# ------------------------------------------------------------------------- statistics over any dims, weights along others


# one formula: with constant statistics (evaluation) it is the whole op
@pointwise(
    lambda rstd, w: rstd * w,
    None,
    None,
    lambda g, x, mean, rstd: g * ((x - mean) * rstd),
    lambda: 1,
    name="native_batch_norm", public=False, inplace=False, node="NativeBatchNormBackward0",
)  # fmt: skip
def _apply(x, mean, rstd, w, b):
    return ((x - mean) * rstd) * w + b


@pointwise(*[None] * 8, name="norm_backward", public=False, inplace=False)
def _input_gradient(x, g, mean, rstd, w, total, total_x, inverse):
    hat = (x - mean) * rstd
    return rstd * (g * w - (total + hat * total_x) * inverse)


@pointwise(*[None] * 8, name="norm_backward", public=False, inplace=False)
def _channel_gradient(x, g, mean, rstd, w, total, total_x, inverse):
    """Return the same where the weight varies as the statistics do, with totals that have no part of it."""
    hat = (x - mean) * rstd
    return (rstd * w) * (g - (total + hat * total_x) * inverse)


_FINISH = launch.Kernel("nn.norm", "statistics", outputs=4)


@overridable
def _statistics(
    x: Tensor, dims: tuple[int, ...], eps: float, running: Sequence[Tensor | None] = (None, None), momentum: float = 0.0
) -> tuple[Tensor, Tensor]:
    """Return (mean, 1/√(biased variance + eps)) over ``dims``, kept, outside the graph; ``running`` mean and variance move towards them."""
    with unrecorded():
        n = numel(x.shape[d] for d in dims)
        x = x.detach()
        center = wide_mean(x, dims)
        var = mean_square(x, center, n, dims, True)
        layout = var._layout
        mean, rstd = launch.empty(layout.size, layout.dtype.carrier), launch.empty(layout.size, layout.dtype.carrier)
        kept = [None if t is None or not n else t.to(x.dtype).contiguous() for t in running]  # an empty batch tells nothing
        moved = [np.empty(0, layout.dtype.carrier) if t is None else t._data[: t._layout.size] for t in kept]
        _FINISH(x.dtype.name, eps, momentum, n, center._data, var._data, mean, rstd, *moved)
        for t, k in zip(running, kept, strict=True):
            if t is not None and k is not None:
                if k is not t:
                    t.copy_(k)
        return make(mean, layout, [0, 0]), make(rstd, layout, [0, 0])


@_statistics.decomposed
def _statistics_by_ops(
    x: Tensor, dims: tuple[int, ...], eps: float, running: Any = (None, None), momentum: float = 0.0
) -> tuple[Tensor, Tensor]:
    with unrecorded():
        x = x.detach()
        n = numel(x.shape[d] for d in dims)
        mean = x.mean(dims, True)
        gap = x - mean
        var = (gap * gap).mean(dims, True)
        for t, now in zip(running, (mean, var * (n / max(n - 1, 1))), strict=True):
            if t is not None and n:
                now = now.mean(0) if now.shape[0] > 1 else now  # instance norm has statistics of every sample
                t.mul_(1 - momentum).add_(now.reshape(t.shape).to(t.dtype), alpha=momentum)
        return mean, (var + eps).rsqrt()


def _norm_rule(g, x, w, mean, rstd, dims, wdims, eps, needs):
    if state.grad:
        return graph_gradients(g, x, w, dims, wdims, eps, True, needs)
    d = x.dtype
    # sums over the dims where neither statistics nor weight vary; all other sums are made of them
    inner = tuple(i for i in dims if i in wdims)
    total, total_x = SUMS((g, x, mean, rstd), inner, True, d, d.name)
    rest = tuple(i for i in wdims if i not in inner)
    grads = {}
    if "b" in needs:
        grads["b"] = total.sum(rest, True) if rest else total
    if "w" in needs:
        grads["w"] = total_x.sum(rest, True) if rest else total_x
    if "x" in needs:
        outer = tuple(i for i in dims if i not in inner)
        if outer:
            if w is not None:
                total, total_x = total * w, total_x * w
            total, total_x = total.sum(outer, True), total_x.sum(outer, True)
        inverse = 1.0 / max(numel(x.shape[i] for i in dims), 1)
        gradient = _input_gradient if outer else _channel_gradient
        grads["x"] = gradient(x, g, mean, rstd, 1.0 if w is None else w, total, total_x, inverse)
    return grads


def _norm(name: str, sample: str, together: str) -> Any:
    """Declare a norm; ``together``: the operands whose gradients PyTorch computes by one op."""

    def rule(g, x, w, mean, rstd, dims, wdims, eps, needs):
        grads = _norm_rule(g, x, w, mean, rstd, dims, wdims, eps, needs)
        return {p: beside(t, x, w) if p in together else t for p, t in grads.items()}

    def normalize(x, w, b, mean, rstd, dims, wdims, eps):
        return _apply(x, mean, rstd, 1.0 if w is None else w, 0.0 if b is None else b)

    return structured(rule, node=name, linear="no", dtypes="half float", samples=sample)(normalize)


_batch_norm = _norm("NativeBatchNormBackward0", "F.instance_norm(x(2, 3, 4))", "xwb")
_group_norm = _norm("NativeGroupNormBackward0", "F.group_norm(x(2, 4, 3), 2, x(4), x(4))", "xw")


def _norm_of_batch(op, args, batch):
    """Return the formula written with ops: the statistics are recomputed, for their part in the gradient."""
    x, w, b, _, _, dims, _, eps = args
    whole = batch.whole(x)

    def aligned(t):
        if t is None:
            return None
        value, batched = batch.of(t)
        return value.reshape(value.shape[0], *[1] * (x.ndim - t.ndim), *t.shape) if batched else value

    dims = [d + 1 for d in dims]
    gap = whole - whole.mean(dims, True)
    y = gap * ((gap * gap).mean(dims, True) + eps).rsqrt()
    w, b = aligned(w), aligned(b)
    y = y if w is None else y * w
    return y if b is None else y + b


_batch_norm.batched(_norm_of_batch)
_group_norm.batched(_norm_of_batch)


# ------------------------------------------------------------------------------------------ one value a channel


def verify_batch_size(size: Sequence[int]) -> None:
    if numel([size[0], *size[2:]]) == 1:
        raise ValueError(f"Expected more than 1 value per channel when training, got input size {size!r}")


def nothing_normalized(x: Tensor, weight: Any, bias: Any) -> Tensor:
    """Return the batch norm of no elements. PyTorch looks at no sizes then; it multiplies by the first weight, so that it has a gradient."""
    y = x.clone()
    y = y if weight is None else y * weight[0]
    return y if bias is None else y + bias[0]


def check_channels(x: Tensor, name: str, **tensors: Any) -> None:
    """Raise RuntimeError where a tensor has not one value for each channel."""
    c = x.shape[1]
    for n, t in tensors.items():
        if t is not None:
            tensor_argument(t, name, n)
            if t._layout.size != c or t.ndim != 1:
                raise RuntimeError(
                    f"{n} should contain {c} elements not {t._layout.size}, in one dim (its shape is {list(t.shape)}; {name} of {list(x.shape)})"
                )


def per_channel(x: Tensor, t: Any) -> Any:
    """Return a tensor of one value a channel, shaped to broadcast along dim 1."""
    return None if t is None else t.reshape([1, x.shape[1]] + [1] * (x.ndim - 2))


def channel_norm(x, running_mean, running_var, weight, bias, training, momentum, eps, dims, name):
    check_channels(x, name, weight=weight, bias=bias, running_mean=running_mean, running_var=running_var)
    x, w, b = in_format_of(x, x) if name == "batch_norm" else contiguous(x), per_channel(x, weight), per_channel(x, bias)
    if not training:
        if x.dtype.is_complex:
            raise not_for_complex("batch_norm")
        with unrecorded():
            rm, rstd = per_channel(x, running_mean), (per_channel(x, running_var) + eps).rsqrt()
            if name == "instance_norm":  # (which in PyTorch repeats them for each sample)
                rm = rm.clone()
        return guarded(_apply(gradient_in_its_format(x), rm, rstd, 1.0 if w is None else w, 0.0 if b is None else b), x)
    mean, rstd = _statistics(x, dims, eps, (running_mean, running_var), momentum)
    if eps == 0.0:  # PyTorch's batch norm makes zeros of what does not vary
        rstd = OPS["where"].call(rstd.isinf(), 0.0, rstd)
    wdims = tuple(d for d in range(x.ndim) if d != 1)
    return _batch_norm(x, w, b, mean, rstd, dims, wdims, eps)


@functional("torch")
def instance_norm(
    input, running_mean=None, running_var=None, weight=None, bias=None, use_input_stats=True, momentum=0.1, eps=1e-5,
    cudnn_enabled=True,
):  # fmt: skip
    """Return `batch_norm` with statistics of every sample by itself. ValueError for one spatial element when they are used.

    >>> torch.nn.functional.instance_norm(torch.tensor([[[1., 3.]]]))
    tensor([[[-1.0000,  1.0000]]])
    """
    x = tensor_argument(input, "instance_norm")
    for n, t in (("running_mean", running_mean), ("running_var", running_var), ("weight", weight), ("bias", bias)):
        optional_tensor(t, "instance_norm", n)
    momentum, eps = float_argument(momentum, "instance_norm", "momentum"), float_argument(eps, "instance_norm", "eps")
    if x.ndim < 2 and not use_input_stats:
        raise IndexError(f"instance_norm: Dimension out of range: expected an input of at least 2 dims (N, C, …), got {x.ndim}")
    if use_input_stats and numel(x.shape[2:]) == 1:
        raise ValueError(f"Expected more than 1 spatial element when training, got input size {x.shape!r}")
    if not use_input_stats and (running_mean is None or running_var is None):
        raise RuntimeError("Expected running_mean and running_var to be defined when use_input_stats is false")
    if (running_mean is None) != (running_var is None):
        raise ValueError("running_mean and running_var must either both be None or neither be None")
    running_mean = constant("native_batch_norm", "running_mean", running_mean)
    running_var = constant("native_batch_norm", "running_var", running_var)
    if running_var is not None and running_mean.dtype is x.dtype is not running_var.dtype:
        raise RuntimeError(
            f"expected scalar type {scalar_type(running_mean.dtype)} but found {scalar_type(running_var.dtype)} "
            "(running_mean and running_var of instance_norm)"
        )
    if not x._layout.size:  # (weights are repeated for each sample in PyTorch)
        count = x.shape[0]
        for t in (running_mean, running_var):
            if use_input_stats and t is not None and t._layout.size != x.shape[1]:
                raise RuntimeError(f"running statistics should contain {x.shape[1]} elements not {t._layout.size} (instance_norm)")
        return nothing_normalized(x, *[None if t is None else t.repeat(count) for t in (weight, bias)])
    same_dtype(x, "instance_norm", weight=weight, bias=bias)
    if weight is not None and state.grad:
        weight = weight.clone()  # (repeated for each sample in PyTorch)
    written = [t._version_ for t in (running_mean, running_var) if use_input_stats and t is not None]
    x, weight, bias = (t.clone() if t is not None and any(t._version_ is v for v in written) else t for t in (x, weight, bias))
    y = channel_norm(
        widened(x), running_mean, running_var, widened(weight), widened(bias), bool(use_input_stats), momentum, eps,
        tuple(range(2, x.ndim)), "instance_norm",
    )  # fmt: skip
    for t in (running_mean, running_var):
        if use_input_stats and t is not None and t._version_[0] >= 0:
            t._version_[0] += 1  # (they are copied into in PyTorch)
    return cast(y, x.dtype)


@functional("torch")
def group_norm(input, num_groups, weight=None, bias=None, eps=1e-5, cudnn_enabled=True):
    """Return (x − mean)/√(var + eps)·weight + bias, the statistics over each of ``num_groups`` groups of channels of a sample.

    Derivative: for x̂ = (x − mean)/√(var + eps) and h = g·weight: dx = (h − mean(h) − x̂·mean(h·x̂))/√(var + eps) over each group; dweight = Σ g·x̂,
    dbias = Σ g.
    Errors: RuntimeError when the channels do not divide into the groups, or sizes do not fit.

    >>> torch.nn.functional.group_norm(torch.tensor([[1., 3.]]), 1)
    tensor([[-1.0000,  1.0000]])
    """
    x = tensor_argument(input, "group_norm")
    if x.ndim < 2:
        raise RuntimeError(f"Expected at least 2 dimensions for input tensor but received {x.ndim}")
    num_groups, eps = int_argument(num_groups, "group_norm", "num_groups"), float_argument(eps, "group_norm", "eps")
    if num_groups <= 0:
        raise RuntimeError(f"Expected num groups to be greater than 0, got {num_groups}")
    c = x.shape[1]
    verify_batch_size([x.shape[0] * c // num_groups, num_groups, *x.shape[2:]])
    if c % num_groups:
        raise RuntimeError(
            f"Expected number of channels in input to be divisible by num_groups, but got input of shape {list(x.shape)} and "
            f"num_groups={num_groups}"
        )
    for n, t in (("weight", weight), ("bias", bias)):
        if t is not None and (tensor_argument(t, "group_norm", n).ndim != 1 or t._layout.size != c):
            raise RuntimeError(
                f"Expected {n} to be a vector of size equal to the number of channels in input, but got {n} of shape {list(t.shape)} and "
                f"input of shape {list(x.shape)}"
            )
    same_dtype(x, "group_norm", weight=weight, bias=bias)
    x = in_format_of(x, x)  # a copy of what has gaps or is turned, which is what PyTorch keeps
    wide = widened(x).reshape(
        [x.shape[0], num_groups, c // num_groups, -1] if x._layout.size else [0, num_groups, c // num_groups, 0]
    )
    w, b = (None if t is None else widened(t).reshape([1, num_groups, c // num_groups, 1]) for t in (weight, bias))
    mean, rstd = _statistics(wide, (2, 3), eps)
    y = _group_norm(wide, w, b, mean, rstd, (2, 3), (0, 3), eps)
    return fresh(in_format_of(cast(y.reshape(x.shape), x.dtype), x))


@functional()
def local_response_norm(input, size, alpha=1e-4, beta=0.75, k: float = 1.0):
    """Return x/(k + alpha·mean of x² over ``size`` neighbouring channels)^beta, of the input's shape (N, C, …).

    Errors: ValueError for less than 3 dims.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.local_response_norm.html

    >>> torch.nn.functional.local_response_norm(torch.ones(1, 3, 2), 2, alpha=1.0)
    tensor([[[0.7378, 0.7378],
             [0.5946, 0.5946],
             [0.5946, 0.5946]]])
    """
    x = tensor_argument(input, "local_response_norm")
    if x.ndim < 3:
        raise ValueError(f"Expected 3D or higher dimensionality input (got {x.ndim} dimensions)")
    if not x._layout.size:
        return x
    if x.dtype.category < 2 and x.dtype is not dtypes.int64:
        raise NotImplementedError(f'"avg_pool{x.ndim - 1 if x.ndim < 4 else 3}d" not implemented for {x.dtype} (local_response_norm)')
    if x.dtype.is_complex:
        raise not_for_complex(f"avg_pool{x.ndim - 1 if x.ndim < 4 else 3}d")
    size = int_argument(size, "local_response_norm", "size")
    if size < 1:
        raise RuntimeError(f"kernel size should be greater than zero, but got size={size} (local_response_norm)")
    alpha, beta, k = (float_argument(v, "local_response_norm", n) for n, v in (("alpha", alpha), ("beta", beta), ("k", k)))
    # the sum over a window is a difference of running sums; here the window is small, and adding its parts loses no digits
    squares = x * x
    channels = x.shape[1]
    total = None
    for offset in range(-min(size // 2, channels), min((size - 1) // 2, channels) + 1):
        part = _moved(squares, offset, channels)
        if part is not None:
            total = part if total is None else total + part
    if x.dtype.category < 2:  # (a mean of integers is one)
        return x / (OPS["div"].call(total, size, rounding_mode="trunc") * alpha + k).pow(beta)
    return x / (total * (alpha / size) + k).pow(beta)


def _moved(t: Tensor, offset: int, channels: int) -> Tensor | None:
    """Return x moved along the channels: channel c reads channel c + offset, 0 outside."""
    if abs(offset) >= channels:
        return None
    if offset == 0:
        return t
    pad = OPS["zeros"].call([t.shape[0], abs(offset), *t.shape[2:]], dtype=t.dtype)
    inside = t.narrow(1, max(offset, 0), channels - abs(offset))
    return OPS["cat"].call([inside, pad] if offset > 0 else [pad, inside], 1)
