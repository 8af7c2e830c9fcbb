"""Batch norm: y = (x − mean)·rstd·weight + bias with the statistics over all dims but the channels.

A small batch is one launch forward and one backward; a large one goes the way of the other norms (`normalization`), whose
reductions and pointwise kernels are dealt out to threads.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from ... import launch, strides
from ...graph.modes import state
from ...shapes import Layout, layout_of, numel
from ...tensor import Tensor, make
from ..core.call_path import known
from ..core.jumps import beside
from ..core.numbers import float_argument
from ..core.recording import constant, guarded, mark_inference
from ..core.structured import optional_tensor, structured, tensor_argument
from ..creation.cast import cast, dense
from ..elementwise.activation import functional
from .normalization import (
    channel_norm,
    graph_gradients,
    nothing_normalized,
    per_channel,
    same_dtype,
    verify_batch_size,
    widened,
)


@cache
def _one_each(c: int, carrier: Any, value: float) -> np.ndarray:
    """Return what stands for a weight or bias that is not given."""
    return np.full(c, value, carrier)


_CHANNELS = launch.Kernel("nn.norm", "channels", outputs=6)
_CHANNELS_FIXED = launch.Kernel("nn.norm", "channels_fixed", outputs=2)
_CHANNELS_BACK = launch.Kernel("nn.norm", "channels_back", outputs=5)
_NOTHING = {name: np.empty(0, name) for name in ("float32", "float64")}
SMALL = 1 << 16  #: elements up to which a batch is normalised in one launch; more are worth being dealt out to threads


def _channel_rule(g, x, w, mean, rstd, eps, training, needs):
    c, d = x.shape[1], x._layout.dtype
    wdims = tuple(i for i in range(x.ndim) if i != 1)
    if state.grad:
        weight, grads = per_channel(x, w), {}
        if training:
            grads = graph_gradients(g, x, weight, wdims, wdims, eps, True, needs)
        else:
            r = per_channel(x, rstd)
            if "x" in needs:
                grads["x"] = g * (r if weight is None else r * weight)
            if "w" in needs:
                grads["w"] = (g * ((x - per_channel(x, mean)) * r)).sum(wdims)
            if "b" in needs:
                grads["b"] = g.sum(wdims)
        return {p: beside(t if p == "x" else t.reshape(c), x, w) for p, t in grads.items()}
    carrier = d.carrier
    data, gw, gb = launch.empty(x._layout.size, carrier), np.empty(c, carrier), np.empty(c, carrier)
    scale = _one_each(c, carrier, 1.0) if w is None else w._data
    sizes = (x.shape[0], c, numel(x.shape[2:]))
    work, share = np.empty(2 * c), np.empty(2 * c, carrier)
    _CHANNELS_BACK(
        d.name, *sizes, training, dense(g), x._data, mean._data, rstd._data, scale, work, share, gw, gb, data
    )  # fmt: skip
    layout = layout_of((c,), None, d)
    found = {"x": (data, x._layout), "w": (gw, layout), "b": (gb, layout)}
    return {p: make(*found[p], [0, 0]) for p in needs}


@structured(
    _channel_rule, node="NativeBatchNormBackward0", linear="no", batch="samples",
    dtypes="half float", samples="F.batch_norm(x(4, 3), None, None, x(3), x(3), training=True)",
)
def _channels(x, w, b, mean, rstd, value, eps, training):
    return value


_channels.node.shown_edges = ((0, False), (1, False), (2, False))


def _plan_channels(
    checked: bool, x: Tensor, running_mean: Any, running_var: Any, weight: Any, bias: Any, training: Any, momentum: Any, eps: Any
) -> tuple[Any, ...] | None:
    """Return how a small batch is normalised in one launch; None where it is not, or where something is to be refused."""
    layout = x._layout
    if layout.ndim < 2 or not layout.contiguous or not 0 < layout.size <= SMALL or layout.dtype.name not in _NOTHING:
        return None
    c, carrier = layout.sizes[1], layout.dtype.carrier
    for t in (running_mean, running_var, weight, bias):
        if t is not None and (t._layout.sizes != (c,) or not t._layout.contiguous or t._layout.dtype is not layout.dtype):
            return None
    if eps.__class__ is not float or eps < 0.0 or (training and (eps == 0.0 or layout.size == c)):
        return None
    if not training and (running_mean is None or running_var is None):
        return None
    sizes = (layout.shape[0], c, numel(layout.shape[2:]))
    return (
        sizes,
        layout,
        layout_of((c,), None, layout.dtype),
        carrier,
        _one_each(c, carrier, 1.0),
        _one_each(c, carrier, 0.0),
        eps,
        bool(training),
    )


def _run_known(
    plan: tuple[Any, ...], x: Tensor, running_mean: Any, running_var: Any, w: Any, b: Any, training: Any, momentum: Any, eps: Any
) -> Tensor:
    """Return the batch norm of a small batch."""
    sizes, layout, row, carrier, ones, zeros, eps, training = plan
    if running_mean is not None and running_mean._rg:
        running_mean = constant("native_batch_norm", "running_mean", running_mean)
    if running_var is not None and running_var._rg:
        running_var = constant("native_batch_norm", "running_var", running_var)
    momentum = 0.0 if momentum is None else float_argument(momentum, "batch_norm", "momentum")
    name, c = layout.dtype.name, sizes[1]
    y, rstd = launch.empty(layout.size, carrier), np.empty(c, carrier)
    weight, bias = ones if w is None else w._data, zeros if b is None else b._data
    if training:
        mean = make(np.empty(c, carrier), row, [0, 0])
        moved = [_NOTHING[name] if t is None else t._data[:c] for t in (running_mean, running_var)]
        _CHANNELS(name, *sizes, eps, momentum, x._data, weight, bias, np.empty(2 * c), mean._data, rstd, *moved, y)
    else:
        mean = make(running_mean._data, row, running_mean._version_)
        _CHANNELS_FIXED(name, *sizes, eps, x._data, weight, bias, mean._data, running_var._data, rstd, y)
    value = make(y, layout, [0, 0])
    if state.grad:
        _channels.record((x, w, b, mean, make(rstd, row, [0, 0]), value, eps, training), value, 3)
        guarded(value, running_mean, running_var)
    elif state.inference:
        mark_inference(value)
    return value


_TENSORS = ("running_mean", "running_var", "weight", "bias")
_KEY = ", ".join(["input._layout", *[f"{p} if {p} is None else {p}._layout" for p in _TENSORS], "eps", "not training"])


@functional("torch")
@known(
    _KEY, _plan_channels, _run_known,
    takes=("input", "running_mean", "running_var", "weight", "bias", "training", "momentum", "eps"),
)
def batch_norm(
    input, running_mean, running_var, weight=None, bias=None, training=False, momentum=0.1, eps=1e-5, cudnn_enabled=True
):
    """Return (x − mean)/√(var + eps)·weight + bias per channel (dim 1).

    Derivative: for x̂ = (x − mean)/√(var + eps) and h = g·weight: dx = (h − mean(h) − x̂·mean(h·x̂))/√(var + eps) when training, else h/√(var +
    eps); dweight = Σ g·x̂, dbias = Σ g.
    training: statistics of this batch, and ``running_mean`` and ``running_var`` are moved towards them by ``momentum`` (in place;
    the running variance is the unbiased one). Otherwise the running statistics are used.

    Errors: ValueError for one value a channel when training; RuntimeError for sizes that do not fit, or missing statistics.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.batch_norm.html

    >>> torch.nn.functional.batch_norm(torch.tensor([[1.], [3.]]), None, None, training=True)
    tensor([[-1.0000],
            [ 1.0000]])
    """
    x = tensor_argument(input, "batch_norm")
    for n, t in (("running_mean", running_mean), ("running_var", running_var), ("weight", weight), ("bias", bias)):
        optional_tensor(t, "batch_norm", n)
    momentum, eps = 0.0 if momentum is None else float_argument(momentum, "batch_norm", "momentum"), float_argument(eps, "batch_norm", "eps")
    if training and x.ndim == x._layout.size == 1:
        raise ValueError(f"Expected more than 1 value per channel when training, got input size {list(x.shape)}")
    if training and x.ndim < 2 and not (x.ndim and not x._layout.size):
        raise IndexError(f"batch_norm: Dimension out of range: expected an input of at least 2 dims (N, C, …), got {x.ndim}")
    if x.ndim < 2 and x._layout.size:
        raise RuntimeError(f"batch_norm: expected an input of at least 2 dims (N, C, …), got {x.ndim}")
    if training:
        if x.ndim > 1:
            verify_batch_size(x.shape)
        if eps <= 0.0:
            raise ValueError(f"batch_norm eps must be positive during training, but got {eps}")
    elif eps < 0.0:
        raise ValueError(f"batch_norm eps must be non-negative, but got {eps}")
    if x._layout.size:
        running_mean = constant("native_batch_norm", "running_mean", running_mean)
        running_var = constant("native_batch_norm", "running_var", running_var)
    if not x._layout.size:
        return nothing_normalized(x, weight, bias)
    if not training and (running_mean is None or running_var is None):
        raise RuntimeError("Expected running_mean and running_var to be defined when training=False")
    same_dtype(x, "batch_norm", weight=weight, bias=bias, running_mean=running_mean, running_var=running_var)
    w, b = _in_one_dim(x, weight, bias, running_mean, running_var)
    y = channel_norm(
        widened(x), running_mean, running_var, widened(w), widened(b), bool(training), momentum, eps,
        tuple(d for d in range(x.ndim) if d != 1), "batch_norm",
    )  # fmt: skip
    y = cast(guarded(y, x, running_mean, running_var), x.dtype)
    if w is weight:
        return y
    why = f"TensorAccessor expected 1 dims but tensor has {weight.ndim}: batch_norm has no such gradient for such a weight"
    return _underived(y, why, _channels_innermost(x._layout))


def _channels_innermost(layout: Layout) -> str | None:
    """Return the memory format in which the channels of such a tensor lie together; None where they do not."""
    if numel(layout.shape[2:]) == 1:
        return "contiguous_format"
    found = strides.suggested(layout)
    return None if found == "contiguous_format" else found


def _underived_rule(g, why, memory_format):
    if memory_format is None or not strides.is_in(g._layout, memory_format):
        raise RuntimeError(why)
    return g


@structured(
    x=_underived_rule, node="NativeBatchNormBackward0", linear="jointly", batch="shift",
    dtypes="half float", samples="F.batch_norm(x(4, 3).contiguous(), None, None, pos(1, 3).contiguous(), training=True)",
)
def _underived(x, why, memory_format):
    """Return the same values, whose gradient is refused if it does not lie in that memory format."""
    return x.clone()


def _in_one_dim(x: Tensor, weight: Any, bias: Any, *running: Any) -> tuple[Any, Any]:
    """Return weight and bias as they are read: PyTorch counts their elements where no operand has gaps, but has no gradients of other ranks."""
    if all(t is None or t.ndim == 1 for t in (weight, bias)):
        return weight, bias
    gaps = not strides.is_in(x._layout, strides.suggested(x._layout))
    if gaps or any(t is not None and not t._layout.contiguous for t in (weight, bias, *running)):
        raise RuntimeError("t.dim() == 1: weight and bias of batch_norm have to have one dim where an operand is not contiguous")
    return _counted(weight, 1), _counted(bias, 2)


def _counted(t: Tensor | None, index: int) -> Tensor | None:
    if t is None or t.ndim == 1:
        return t
    shapes = f"got [{t._layout.size}] but expected shape compatible with {list(t.shape)}"
    why = f"Function NativeBatchNormBackward0 returned an invalid gradient at index {index} - {shapes}: not implemented for batch_norm"
    return _underived(t, why, None).reshape(-1)
