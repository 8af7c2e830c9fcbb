"""Batch, layer, group, instance, RMS and local response normalisation.

All but the last are y = (x − mean)·rstd·weight + bias with the statistics over some dims. Rows of layer and RMS norm are one fused
row kernel forward and one backward; the others are fused reductions and one pointwise kernel, as their weights vary along other
dims than their statistics. Under ``create_graph`` the gradients are written with ops.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

from .. import dtypes, launch
from ..codegen.loops import SUM
from ..codegen.maths import m
from ..codegen.rows import Each, Row, Step
from ..graph.modes import no_grad, state
from ..shapes import Layout, layout, numel
from ..tensor import Tensor, make
from .activation import functional
from .cast import cast, dense
from .fused import FoldOf
from .pointwise import pointwise
from .recording import mark_inference
from .registry import OPS
from .rowwise import RowKernel
from .statistics import _SQUARES, _WIDE_MEAN
from .structured import structured, tensor_argument
from .views import keep


def _scaled(x, mean, rstd, w, b):
    return ((x - mean) * rstd) * w + b


# one formula: with constant statistics (evaluation) it is the whole op
_apply = pointwise(
    lambda rstd, w: rstd * w,
    None,
    None,
    lambda g, x, mean, rstd: g * ((x - mean) * rstd),
    lambda: 1,
    name="native_batch_norm", public=False, inplace=False, node="NativeBatchNormBackward0",
)(_scaled)  # fmt: skip


@pointwise(name="norm_backward", public=False, inplace=False)
def _input_gradient(x, g, mean, rstd, w, total, total_x, inverse):
    hat = (x - mean) * rstd
    return rstd * (g * w - (total + hat * total_x) * inverse)


@pointwise(name="norm_backward", public=False, inplace=False)
def _channel_gradient(x, g, mean, rstd, w, total, total_x, inverse):
    """The same where the weight varies as the statistics do, with totals that have no part of it."""
    hat = (x - mean) * rstd
    return (rstd * w) * (g - (total + hat * total_x) * inverse)


_SUMS = FoldOf("norm_backward", SUM, lambda g, x, mean, rstd: (g, g * ((x - mean) * rstd)), count=2)
_SUM_G = FoldOf("norm_backward", SUM, lambda g: g)
_SUM_GX = FoldOf("norm_backward", SUM, lambda g, x, mean, rstd: g * ((x - mean) * rstd))


_finish = launch.Kernel("norm", "statistics", outputs=4)


def _statistics(
    x: Tensor, dims: tuple[int, ...], eps: float, running: Sequence[Tensor | None] = (None, None), momentum: float = 0.0
) -> tuple[Tensor, Tensor]:
    """(mean, 1/√(biased variance + eps)) over ``dims``, kept, outside the graph; ``running`` mean and variance move towards them."""
    with no_grad():
        n = numel(x.shape[d] for d in dims)
        x = x.detach()
        center = _WIDE_MEAN(x, dims, True, dtypes.float64, x.dtype.compute, 1.0 / n if n else math.nan)
        var = _SQUARES((x, center, float(n)), dims, True, x.dtype, "float64")
        lay = var._layout
        mean, rstd = launch.empty(lay.size, lay.dtype.carrier), launch.empty(lay.size, lay.dtype.carrier)
        kept = [None if t is None or not n else t.to(x.dtype).contiguous() for t in running]  # an empty batch tells nothing
        moved = [np.empty(0, lay.dtype.carrier) if t is None else t._data[: t._layout.size] for t in kept]
        _finish(x.dtype.name, eps, momentum, n, center._data, var._data, mean, rstd, *moved)
        for t, k in zip(running, kept, strict=True):
            if t is not None and k is not None:
                if k is t:
                    t._version_[0] += t._version_[0] >= 0
                else:
                    t.copy_(k)
        return make(mean, lay, [0, 0]), make(rstd, lay, [0, 0])


# ------------------------------------------------------------------------- statistics over any dims, weights along others


def _dims_of(w: Any, ndim: int) -> tuple[int, ...]:
    """The dims along which a weight (of as many dims, or a number) is the same."""
    return tuple(range(ndim)) if not isinstance(w, Tensor) else tuple(d for d in range(ndim) if w.shape[d] == 1)


def _graph_gradients(g, x, w, dims, wdims, eps, centered, needs):
    """The gradients as tensors with a history, from the input alone."""
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


def _norm_rule(g, x, w, mean, rstd, dims, wdims, eps, needs):
    if state.grad:
        return _graph_gradients(g, x, w, dims, wdims, eps, True, needs)
    d = x.dtype
    # sums over the dims where neither statistics nor weight vary; all other sums are made of them
    inner = tuple(i for i in dims if i in wdims)
    total, total_x = _SUMS((g, x, mean, rstd), inner, True, d, d.name)
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


def _norm(name: str) -> Any:
    def forward(x, w, b, mean, rstd, dims, wdims, eps):
        return _apply(x, mean, rstd, 1.0 if w is None else w, 0.0 if b is None else b)

    return structured(_norm_rule, node=name)(forward)


_batch_norm = _norm("NativeBatchNormBackward0")
_group_norm = _norm("NativeGroupNormBackward0")


# -------------------------------------------------------------------------------------------------- rows: layer, RMS


@cache
def _row_forward(centered: bool, weighted: bool, biased: bool) -> RowKernel:
    operands = {"x": "full", **({"w": "col"} if weighted else {}), **({"b": "col"} if biased else {}), "eps": "number"}
    store = {
        (False, False): lambda x, mean, rstd: (x - mean) * rstd,
        (True, False): lambda x, mean, rstd, w: ((x - mean) * rstd) * w,
        (False, True): lambda x, mean, rstd, b: (x - mean) * rstd + b,
        (True, True): lambda x, mean, rstd, w, b: ((x - mean) * rstd) * w + b,
    }[weighted, biased]
    steps: list[Step] = []
    if centered:
        steps += [Each(folds={"total": (SUM, lambda x: x)}), Row({"mean": lambda total, n: total / n.cast("float64")})]
    else:
        steps += [Row({"mean": lambda n: n.cast("float64") * 0.0})]
    steps += [
        Each(folds={"squares": (SUM, lambda x, mean: (x - mean) * (x - mean))}),
        Row({"rstd": lambda squares, n, eps: 1.0 / m.sqrt(squares / n.cast("float64") + eps)}),
        Each(stores={"y": store}),  # type: ignore[dict-item]
    ]
    return RowKernel("layer_norm", operands, {"mean": "row", "rstd": "row", "y": "full"}, steps)


@cache
def _row_backward(centered: bool, weighted: bool) -> RowKernel:
    operands = {"g": "full", "x": "full", "mean": "row", "rstd": "row", **({"w": "col"} if weighted else {})}
    folds: dict[str, Any] = {
        "tx": (
            SUM,
            (lambda g, x, mean, rstd, w: (g * w) * ((x - mean) * rstd))
            if weighted
            else (lambda g, x, mean, rstd: g * ((x - mean) * rstd)),
        )
    }
    if centered:
        folds["t"] = (SUM, (lambda g, w: g * w) if weighted else (lambda g: g))
        means: dict[str, Any] = {"a": lambda t, n: t / n.cast("float64"), "c": lambda tx, n: tx / n.cast("float64")}
    else:
        means = {"a": lambda n: n.cast("float64") * 0.0, "c": lambda tx, n: tx / n.cast("float64")}
    store = (
        (lambda g, x, mean, rstd, w, a, c: rstd * (g * w - (a + ((x - mean) * rstd) * c)))
        if weighted
        else (lambda g, x, mean, rstd, a, c: rstd * (g - (a + ((x - mean) * rstd) * c)))
    )
    return RowKernel("layer_norm_backward", operands, {"o": "full"}, [Each(folds=folds), Row(means), Each(stores={"o": store})])


def _rows(x: Tensor, k: int) -> tuple[int, int, int]:
    """(outer, n, 1) of a tensor normalised over its last ``k`` dims."""
    return numel(x.shape[: x.ndim - k]), numel(x.shape[x.ndim - k :]), 1


def _row_rule(g, x, w, mean, rstd, k, eps, centered, needs):
    lead = x.ndim - k
    dims, wdims = tuple(range(lead, x.ndim)), tuple(range(lead))
    if state.grad:
        grads = _graph_gradients(g, x, w, dims, wdims, eps, centered, needs)
    else:
        grads = {}
        d = x.dtype
        if "x" in needs:
            lay = x._layout.dense
            data = launch.empty(lay.size, lay.dtype.carrier)
            if lay.size:
                weights = [] if w is None else [dense(w)]
                _row_backward(centered, w is not None)(
                    d.name, _rows(x, k), [dense(g), dense(x), mean._data, rstd._data, *weights], [data]
                )
            grads["x"] = make(data, lay, [0, 0])
        if "w" in needs and "b" in needs:
            grads["b"], grads["w"] = _SUMS((g, x, mean, rstd), wdims, True, d, d.name)
        elif "w" in needs:
            grads["w"] = _SUM_GX((g, x, mean, rstd), wdims, True, d, d.name)
        elif "b" in needs:
            grads["b"] = _SUM_G((g,), wdims, True, d, d.name)
    for p in ("w", "b"):
        if p in grads:
            grads[p] = grads[p].reshape(x.shape[lead:])
    return grads


@structured(_row_rule, node="NativeLayerNormBackward0")
def _layer_norm(x, w, b, mean, rstd, value, k, eps, centered):
    return value


def _row_norm(x: Tensor, w: Any, b: Any, k: int, eps: float, centered: bool) -> Tensor:
    with no_grad():
        lay = x._layout.dense
        kept = layout([*x.shape[: x.ndim - k], *[1] * k], None, x.dtype)
        y, mean, rstd = (launch.empty(n, x.dtype.carrier) for n in (lay.size, kept.size, kept.size))
        if lay.size:
            weights = [dense(t) for t in (w, b) if t is not None]
            kernel = _row_forward(centered, w is not None, b is not None)
            kernel(x.dtype.name, _rows(x, k), [dense(x), *weights, eps], [mean, rstd, y])
    value = make(y, lay, [0, 0])
    return _layer_norm(x, w, b, make(mean, kept, [0, 0]), make(rstd, kept, [0, 0]), value, k, eps, centered)


_written = launch.plan_table()  # plans of layer norms by the layouts and constants as written


def _keep_rows(key: tuple, x: Tensor, w: Any, b: Any, k: int, eps: float) -> None:
    """Remember what such a call takes, where nothing has to be brought in order before."""
    lay = x._layout
    weights = [t for t in (w, b) if t is not None]
    if lay.size and all(t._layout.contiguous for t in (x, *weights)):
        kept = layout([*lay.shape[: lay.ndim - k], *[1] * k], None, lay.dtype)
        sizes, some = _rows(x, k), np.empty(1, lay.dtype.carrier)
        operands = [x._data, *[t._data for t in weights], eps]
        entry = _row_forward(True, w is not None, b is not None).entry(lay.dtype.name, sizes, operands, [some, some, some])
        keep(_written, key, (entry, sizes, lay, kept, k, eps))


def _again(known: tuple, x: Tensor, w: Any, b: Any) -> Tensor:
    """The layer norm of arguments like those of an earlier call."""
    entry, sizes, lay, kept, k, eps = known
    carrier = lay.dtype.carrier
    empty = np.empty if lay.size * carrier.itemsize < launch.BIG else launch.empty
    y, mean, rstd = empty(lay.size, carrier), empty(kept.size, carrier), empty(kept.size, carrier)
    if w is None or b is None:
        entry(*sizes, x._data, *[t._data for t in (w, b) if t is not None], eps, mean, rstd, y)
    else:
        entry(*sizes, x._data, w._data, b._data, eps, mean, rstd, y)
    value = make(y, lay, [0, 0])
    if state.grad:
        _layer_norm.record((x, w, b, make(mean, kept, [0, 0]), make(rstd, kept, [0, 0]), value, k, eps, True), value, 3)
    elif state.inference:
        mark_inference(value)
    return value


def _row_arguments(input: Any, normalized_shape: Any, weight: Any, bias: Any, name: str) -> tuple[Tensor, int]:
    x = tensor_argument(input, name)
    shape = (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)
    if not shape:
        raise RuntimeError(
            "Expected normalized_shape to be at least 1-dimensional, i.e., containing at least one element, but got "
            f"normalized_shape = {list(shape)}"
        )
    for n, t in (("weight", weight), ("bias", bias)):
        if t is None:
            continue
        if tuple(tensor_argument(t, name, n).shape) != shape:
            raise RuntimeError(
                f"Expected {n} to be of same shape as normalized_shape, but got {n} of shape {list(t.shape)} and normalized_shape = {list(shape)}"
            )
    if x.ndim < len(shape) or tuple(x.shape[x.ndim - len(shape) :]) != shape:
        raise RuntimeError(
            f"Given normalized_shape={list(shape)}, expected input with shape [*, {', '.join(map(str, shape))}], but got input of size "
            f"{list(x.shape)}"
        )
    _same_dtype(x, name, weight=weight, bias=bias)
    return x, len(shape)


def _same_dtype(x: Tensor, name: str, **others: Any) -> None:
    if x.dtype.category < 2:
        raise RuntimeError(f'"{name}" not implemented for {x.dtype}: input must be a floating point tensor')
    for n, t in others.items():
        if t is not None and t.dtype is not x.dtype:
            raise RuntimeError(f"expected scalar type {x.dtype} but found {t.dtype} (argument '{n}' of {name})")


def _in_float32(function: Any, x: Tensor, *tensors: Any) -> Tensor:
    """A norm of half precision, computed in float32."""
    return cast(
        function(cast(x, dtypes.float32), *[t if t is None else cast(t, dtypes.float32) for t in tensors]), dtypes.float16
    )


@functional("torch")
def layer_norm(input, normalized_shape, weight=None, bias=None, eps=1e-5, cudnn_enable=True):
    """(x − mean)/√(var + eps)·weight + bias, the statistics over the last dims, of sizes ``normalized_shape``.

    Errors: RuntimeError when shapes or dtypes do not fit.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.layer_norm.html
    """
    try:
        key = (
            input._layout,
            normalized_shape,
            None if weight is None else weight._layout,
            None if bias is None else bias._layout,
            eps,
        )
        known = _written.get(key)
    except (AttributeError, TypeError):  # a list, which cannot be a key, or no tensors: said below
        key = known = None
    if known is not None:
        return _again(known, input, weight, bias)
    x, k = _row_arguments(input, normalized_shape, weight, bias, "layer_norm")
    if x.dtype is dtypes.float16:
        return _in_float32(lambda *t: _row_norm(*t, k, float(eps), True), x, weight, bias)
    if key is not None and not launch.observing():
        _keep_rows(key, x, weight, bias, k, float(eps))
    return _row_norm(x, weight, bias, k, float(eps), True)


@functional("torch")
def rms_norm(input, normalized_shape, weight=None, eps=None):
    """x/√(mean x² + eps)·weight over the last dims; ``eps`` None is the dtype's machine epsilon."""
    x, k = _row_arguments(input, normalized_shape, weight, None, "rms_norm")
    e = dtypes.finfo(dtypes.float32 if x.dtype is dtypes.float16 else x.dtype).eps if eps is None else float(eps)
    if x.dtype is dtypes.float16:
        return _in_float32(lambda *t: _row_norm(*t, None, k, e, False), x, weight)
    if x.dtype.is_complex:
        y = x * ((x * x).mean(tuple(range(x.ndim - k, x.ndim)), True) + e).rsqrt()
        return y if weight is None else y * weight
    return _row_norm(x, weight, None, k, e, False)


# ------------------------------------------------------------------------------------------ batch, instance, group


def _verify_batch_size(size: Sequence[int]) -> None:
    if numel([size[0], *size[2:]]) == 1:
        raise ValueError(f"Expected more than 1 value per channel when training, got input size {size!r}")


def _check_channels(x: Tensor, name: str, **tensors: Any) -> None:
    """RuntimeError where a tensor has not one value for each channel."""
    c = x.shape[1]
    for n, t in tensors.items():
        if t is not None:
            tensor_argument(t, name, n)
            if t._layout.size != c or t.ndim != 1:
                raise RuntimeError(
                    f"{n} should contain {c} elements not {t._layout.size} ({name} of an input of shape {list(x.shape)})"
                )


def _per_channel(x: Tensor, t: Any) -> Any:
    """A tensor of one value a channel, shaped to broadcast along dim 1."""
    return None if t is None else t.reshape([1, x.shape[1]] + [1] * (x.ndim - 2))


def _channel_norm(x, running_mean, running_var, weight, bias, training, momentum, eps, dims, op, name):
    _check_channels(x, name, weight=weight, bias=bias, running_mean=running_mean, running_var=running_var)
    w, b = _per_channel(x, weight), _per_channel(x, bias)
    if not training:
        with no_grad():
            rm, rstd = _per_channel(x, running_mean), (_per_channel(x, running_var) + eps).rsqrt()
        return _apply(x, rm, rstd, 1.0 if w is None else w, 0.0 if b is None else b)
    mean, rstd = _statistics(x, dims, eps, (running_mean, running_var), momentum)
    wdims = tuple(d for d in range(x.ndim) if d != 1)
    return op(x, w, b, mean, rstd, dims, wdims, eps)


def _wide(t: Any) -> Any:
    return t if t is None or t.dtype is not dtypes.float16 else cast(t, dtypes.float32)


@cache
def _one_each(c: int, carrier: Any, value: float) -> np.ndarray:
    """What stands for a weight or bias that is not given."""
    return np.full(c, value, carrier)


_CHANNELS = launch.Kernel("norm", "channels", outputs=6)
_CHANNELS_FIXED = launch.Kernel("norm", "channels_fixed", outputs=2)
_CHANNELS_BACK = launch.Kernel("norm", "channels_back", outputs=5)
_NOTHING = {name: np.empty(0, name) for name in ("float32", "float64")}
SMALL = 1 << 16  #: elements up to which a batch is normalised in one launch; more are worth being dealt out to threads


def _channel_rule(g, x, w, mean, rstd, eps, training, needs):
    c, d = x.shape[1], x._layout.dtype
    wdims = tuple(i for i in range(x.ndim) if i != 1)
    if state.grad:
        weight, grads = _per_channel(x, w), {}
        if training:
            grads = _graph_gradients(g, x, weight, wdims, wdims, eps, True, needs)
        else:
            r = _per_channel(x, rstd)
            if "x" in needs:
                grads["x"] = g * (r if weight is None else r * weight)
            if "w" in needs:
                grads["w"] = (g * ((x - _per_channel(x, mean)) * r)).sum(wdims)
            if "b" in needs:
                grads["b"] = g.sum(wdims)
        return {p: t if p == "x" else t.reshape(c) for p, t in grads.items()}
    carrier = d.carrier
    data, gw, gb = launch.empty(x._layout.size, carrier), np.empty(c, carrier), np.empty(c, carrier)
    scale = _one_each(c, carrier, 1.0) if w is None else w._data
    sizes = (x.shape[0], c, numel(x.shape[2:]))
    work, share = np.empty(2 * c), np.empty(2 * c, carrier)
    _CHANNELS_BACK(
        d.name, *sizes, training, dense(g), x._data, mean._data, rstd._data, scale, work, share, gw, gb, data
    )  # fmt: skip
    lay = layout((c,), None, d)
    found = {"x": (data, x._layout), "w": (gw, lay), "b": (gb, lay)}
    return {p: make(*found[p], [0, 0]) for p in needs}


@structured(_channel_rule, node="NativeBatchNormBackward0")
def _channels(x, w, b, mean, rstd, value, eps, training):
    return value


_known = launch.plan_table()  # by the layouts and constants of batch norms: what `_at_once` takes


def _plan_channels(x: Tensor, tensors: tuple, eps: float, training: bool) -> tuple | None:
    """How a small batch is normalised in one launch, once the arguments are checked; None where it is not."""
    lay = x._layout
    if not 0 < lay.size <= SMALL or launch.observing() or lay.dtype.name not in _NOTHING:
        return None
    for t in (x, *tensors):
        if t is not None and (
            t._layout.__class__ is not Layout or not t._layout.contiguous or t._layout.dtype is not lay.dtype
        ):
            return None
    c, carrier = lay.shape[1], lay.dtype.carrier
    sizes = (lay.shape[0], c, numel(lay.shape[2:]))
    return (
        sizes,
        lay,
        layout((c,), None, lay.dtype),
        carrier,
        _one_each(c, carrier, 1.0),
        _one_each(c, carrier, 0.0),
        eps,
        training,
    )


def _at_once(plan: tuple, x: Tensor, running_mean: Any, running_var: Any, w: Any, b: Any, momentum: float) -> Tensor:
    """The batch norm of a small batch."""
    sizes, lay, row, carrier, ones, zeros, eps, training = plan
    name, c = lay.dtype.name, sizes[1]
    y, rstd = np.empty(lay.size, carrier), np.empty(c, carrier)
    weight, bias = ones if w is None else w._data, zeros if b is None else b._data
    if training:
        mean = make(np.empty(c, carrier), row, [0, 0])
        moved = [_NOTHING[name] if t is None else t._data[:c] for t in (running_mean, running_var)]
        _CHANNELS(name, *sizes, eps, momentum, x._data, weight, bias, np.empty(2 * c), mean._data, rstd, *moved, y)
        for t in (running_mean, running_var):
            if t is not None:
                t._version_[0] += t._version_[0] >= 0
    else:
        mean = make(running_mean._data, row, running_mean._version_)
        _CHANNELS_FIXED(name, *sizes, eps, x._data, weight, bias, mean._data, running_var._data, rstd, y)
    value = make(y, lay, [0, 0])
    if state.grad:
        _channels.record((x, w, b, mean, make(rstd, row, [0, 0]), value, eps, training), value, 3)
    elif state.inference:
        mark_inference(value)
    return value


@functional("torch")
def batch_norm(
    input, running_mean, running_var, weight=None, bias=None, training=False, momentum=0.1, eps=1e-5, cudnn_enabled=True
):
    """(x − mean)/√(var + eps)·weight + bias per channel (dim 1).

    training: statistics of this batch, and ``running_mean`` and ``running_var`` are moved towards them by ``momentum`` (in place;
    the running variance is the unbiased one). Otherwise the running statistics are used.

    Errors: ValueError for one value a channel when training; RuntimeError for sizes that do not fit, or missing statistics.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.batch_norm.html
    """
    tensors = (running_mean, running_var, weight, bias)
    try:
        key = (input._layout, *[None if t is None else t._layout for t in tensors], eps, bool(training))
        plan = _known.get(key)
    except (AttributeError, TypeError):  # no tensors: said below
        key = plan = None
    if plan is not None:
        return _at_once(plan, input, *tensors, 0.0 if momentum is None else float(momentum))
    x = tensor_argument(input, "batch_norm")
    if x.ndim == 1 and not x._layout.size:
        return x.clone()
    if x.ndim < 2:
        raise RuntimeError(f"batch_norm: expected an input of at least 2 dims (N, C, …), got {x.ndim}")
    if training:
        _verify_batch_size(x.shape)
        if eps <= 0.0:
            raise ValueError(f"batch_norm eps must be positive during training, but got {eps}")
    elif eps < 0.0:
        raise ValueError(f"batch_norm eps must be non-negative, but got {eps}")
    if not training and (running_mean is None or running_var is None):
        raise RuntimeError("Expected running_mean and running_var to be defined when training=False")
    _same_dtype(x, "batch_norm")
    if key is not None:
        _check_channels(x, "batch_norm", weight=weight, bias=bias, running_mean=running_mean, running_var=running_var)
        plan = _plan_channels(x, tensors, float(eps), bool(training))
        if plan is not None:
            keep(_known, key, plan)
            return _at_once(plan, x, *tensors, 0.0 if momentum is None else float(momentum))
    y = _channel_norm(
        _wide(x), running_mean, running_var, _wide(weight), _wide(bias), bool(training), 0.0 if momentum is None else float(momentum),
        float(eps), tuple(d for d in range(x.ndim) if d != 1), _batch_norm, "batch_norm",
    )  # fmt: skip
    return cast(y, x.dtype)


@functional("torch")
def instance_norm(
    input,
    running_mean=None,
    running_var=None,
    weight=None,
    bias=None,
    use_input_stats=True,
    momentum=0.1,
    eps=1e-5,
    cudnn_enabled=True,
):
    """`batch_norm` with statistics of every sample by itself. ValueError for one spatial element when they are used."""
    x = tensor_argument(input, "instance_norm")
    if x.ndim < 2:
        raise RuntimeError(f"instance_norm: expected an input of at least 2 dims (N, C, …), got {x.ndim}")
    if use_input_stats and numel(x.shape[2:]) == 1:
        raise ValueError(f"Expected more than 1 spatial element when training, got input size {x.shape!r}")
    if not use_input_stats and (running_mean is None or running_var is None):
        raise RuntimeError("Expected running_mean and running_var to be defined when use_input_stats is false")
    _same_dtype(x, "instance_norm")
    y = _channel_norm(
        _wide(x), running_mean, running_var, _wide(weight), _wide(bias), bool(use_input_stats), float(momentum), float(eps),
        tuple(range(2, x.ndim)), _batch_norm, "instance_norm",
    )  # fmt: skip
    return cast(y, x.dtype)


@functional("torch")
def group_norm(input, num_groups, weight=None, bias=None, eps=1e-5, cudnn_enabled=True):
    """(x − mean)/√(var + eps)·weight + bias, the statistics over each of ``num_groups`` groups of channels of a sample.

    Errors: RuntimeError when the channels do not divide into the groups, or sizes do not fit.
    """
    x = tensor_argument(input, "group_norm")
    if x.ndim < 2:
        raise RuntimeError(f"Expected at least 2 dimensions for input tensor but received {x.ndim}")
    if num_groups <= 0:
        raise RuntimeError(f"Expected num groups to be greater than 0, got {num_groups}")
    c = x.shape[1]
    if c % num_groups:
        raise RuntimeError(
            f"Expected number of channels in input to be divisible by num_groups, but got input of shape {list(x.shape)} and "
            f"num_groups={num_groups}"
        )
    _verify_batch_size([x.shape[0] * c // num_groups, num_groups, *x.shape[2:]])
    for n, t in (("weight", weight), ("bias", bias)):
        if t is not None and (t.ndim != 1 or t._layout.size != c):
            raise RuntimeError(
                f"Expected {n} to be a vector of size equal to the number of channels in input, but got {n} of shape {list(t.shape)} and "
                f"input of shape {list(x.shape)}"
            )
    _same_dtype(x, "group_norm", weight=weight, bias=bias)
    wide = _wide(x).reshape(
        [x.shape[0], num_groups, c // num_groups, -1] if x._layout.size else [0, num_groups, c // num_groups, 0]
    )
    w, b = (None if t is None else _wide(t).reshape([1, num_groups, c // num_groups, 1]) for t in (weight, bias))
    mean, rstd = _statistics(wide, (2, 3), float(eps))
    y = _group_norm(wide, w, b, mean, rstd, (2, 3), (0, 3), float(eps))
    return cast(y.reshape(x.shape), x.dtype)


@functional()
def local_response_norm(input, size, alpha=1e-4, beta=0.75, k=1.0):
    """x/(k + alpha·mean of x² over ``size`` neighbouring channels)^beta. ValueError for less than 3 dims."""
    x = tensor_argument(input, "local_response_norm")
    if x.ndim < 3:
        raise ValueError(f"Expected 3D or higher dimensionality input (got {x.ndim} dimensions)")
    if not x._layout.size:
        return x
    # the sum over a window is a difference of running sums; here the window is small, and adding its parts loses no digits
    squares = x * x
    channels = x.shape[1]
    total = None
    for offset in range(-(size // 2), (size - 1) // 2 + 1):
        part = _moved(squares, offset, channels)
        if part is not None:
            total = part if total is None else total + part
    return x / (total * (alpha / size) + k).pow(beta)


def _moved(t: Tensor, offset: int, channels: int) -> Tensor | None:
    """Channel c reads channel c + offset, 0 outside."""
    if abs(offset) >= channels:
        return None
    if offset == 0:
        return t
    pad = OPS["zeros"].call([t.shape[0], abs(offset), *t.shape[2:]], dtype=t.dtype)
    inside = t.narrow(1, max(offset, 0), channels - abs(offset))
    return OPS["cat"].call([inside, pad] if offset > 0 else [pad, inside], 1)
