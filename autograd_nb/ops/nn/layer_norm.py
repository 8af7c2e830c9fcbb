"""Layer and RMS norm: y = (x − mean)·rstd·weight + bias with the statistics over the last dims.

One fused row kernel forward and one backward. Under ``create_graph`` the gradients are written with ops.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from ... import dtypes, launch
from ...codegen.formula.namespace import m
from ...codegen.templates.loops import SUM
from ...codegen.templates.row import Each, Row, Step
from ...graph.modes import state, unrecorded
from ...overriding import overridable
from ...shapes import layout_of, numel
from ...tensor import Tensor, make
from ..core.call_path import known
from ..core.jumps import beside
from ..core.numbers import float_argument, several_argument
from ..core.recording import mark_inference
from ..core.row_kernel import RowKernel
from ..core.structured import structured, tensor_argument
from ..creation.cast import cast, dense, in_float32, in_format_of
from ..elementwise.activation import functional
from .normalization import SUM_G, SUM_GX, SUMS, graph_gradients, same_dtype


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
    """Return (outer, n, 1) of a tensor normalised over its last ``k`` dims."""
    return numel(x.shape[: x.ndim - k]), numel(x.shape[x.ndim - k :]), 1


def _row_rule(g, x, w, b, mean, rstd, k, eps, centered, needs):
    lead = x.ndim - k
    dims, wdims = tuple(range(lead, x.ndim)), tuple(range(lead))
    if state.grad:
        grads = graph_gradients(g, x, w, dims, wdims, eps, centered, needs)
    else:
        grads = {}
        d = x.dtype
        if "x" in needs:
            layout = x._layout.dense
            data = launch.empty(layout.size, layout.dtype.carrier)
            if layout.size:
                weights = [] if w is None else [dense(w)]
                _row_backward(centered, w is not None)(
                    d.name, _rows(x, k), [dense(g), dense(x), mean._data, rstd._data, *weights], [data]
                )
            grads["x"] = make(data, layout, [0, 0])
        if "w" in needs and "b" in needs:
            grads["b"], grads["w"] = SUMS((g, x, mean, rstd), wdims, True, d, d.name)
        elif "w" in needs:
            grads["w"] = SUM_GX((g, x, mean, rstd), wdims, True, d, d.name)
        elif "b" in needs:
            grads["b"] = SUM_G((g,), wdims, True, d, d.name)
    for p in ("w", "b"):
        if p in grads:
            grads[p] = grads[p].reshape(x.shape[lead:])
    return {p: beside(t, x, w, b) for p, t in grads.items()} if centered else grads


@structured(
    _row_rule, node="NativeLayerNormBackward0", linear="no", batch="samples",
    dtypes="half float", samples="F.layer_norm(x(3, 4), (4,), x(4), x(4))",
)
def _layer_norm(x, w, b, mean, rstd, value, k, eps, centered):
    return value


@overridable
def _row_norm(x: Tensor, w: Any, b: Any, k: int, eps: float, centered: bool) -> Tensor:
    with unrecorded():
        layout = x._layout.dense
        kept = layout_of([*x.shape[: x.ndim - k], *[1] * k], None, x.dtype)
        y, mean, rstd = (launch.empty(n, x.dtype.carrier) for n in (layout.size, kept.size, kept.size))
        if layout.size:
            weights = [dense(t) for t in (w, b) if t is not None]
            kernel = _row_forward(centered, w is not None, b is not None)
            kernel(x.dtype.name, _rows(x, k), [dense(x), *weights, eps], [mean, rstd, y])
    value = make(y, layout, [0, 0])
    return _layer_norm(x, w, b, make(mean, kept, [0, 0]), make(rstd, kept, [0, 0]), value, k, eps, centered)


@_row_norm.decomposed
def _row_norm_by_ops(x: Tensor, w: Any, b: Any, k: int, eps: float, centered: bool) -> Tensor:
    dims = list(range(x.ndim - k, x.ndim))
    gap = x - x.mean(dims, True) if centered else x
    y = gap * ((gap * gap).mean(dims, True) + eps).rsqrt()
    if w is not None:
        y = y * w
    return y if b is None else y + b


def _plan_known(checked: bool, input: Any, normalized_shape: Any, weight: Any, bias: Any, eps: Any) -> tuple[Any, ...] | None:
    """Return what such a call takes, where nothing has to be brought in order before."""
    layout = input._layout
    weights = [t for t in (weight, bias) if t is not None]
    if not isinstance(normalized_shape, tuple) or eps.__class__ is not float or not layout.size or layout.dtype.is_half:
        return None
    k = len(normalized_shape)
    if not checked and (layout.dtype.category != 2 or not 0 < k <= layout.ndim or layout.sizes[layout.ndim - k :] != normalized_shape):
        return None
    if any(not t._layout.contiguous or t._layout.dtype is not layout.dtype or t._layout.sizes != normalized_shape for t in weights):
        return None
    if not layout.contiguous:
        return None
    kept = layout_of([*layout.sizes[: layout.ndim - k], *[1] * k], None, layout.dtype)
    sizes, some = _rows(input, k), input._data
    entry = _row_forward(True, weight is not None, bias is not None).entry(
        layout.dtype.name, sizes, [some, *[t._data for t in weights], eps], [some, some, some]
    )
    return entry, sizes, layout, kept, k, eps


def _run_known(plan: tuple[Any, ...], x: Tensor, normalized_shape: Any, w: Any, b: Any, eps: float) -> Tensor:
    """Return the layer norm of a `known` call."""
    entry, sizes, layout, kept, k, eps = plan
    carrier = layout.dtype.carrier
    empty = np.empty if layout.size * carrier.itemsize < launch.BIG else launch.empty
    y, mean, rstd = empty(layout.size, carrier), empty(kept.size, carrier), empty(kept.size, carrier)
    if w is None or b is None:
        entry(*sizes, x._data, *[t._data for t in (w, b) if t is not None], eps, mean, rstd, y)
    else:
        entry(*sizes, x._data, w._data, b._data, eps, mean, rstd, y)
    value = make(y, layout, [0, 0])
    if state.grad:
        _layer_norm.record((x, w, b, make(mean, kept, [0, 0]), make(rstd, kept, [0, 0]), value, k, eps, True), value, 3)
    elif state.inference:
        mark_inference(value)
    return value


def _row_arguments(input: Any, normalized_shape: Any, weight: Any, bias: Any, name: str) -> tuple[Tensor, int]:
    x = tensor_argument(input, name)
    shape = several_argument(normalized_shape, name, "normalized_shape")
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
    if x.ndim < len(shape) and name == "rms_norm":
        raise ValueError(f"Input tensor must have at least {len(shape)} dimensions, but got {x.ndim}")
    if x.ndim < len(shape) or tuple(x.shape[x.ndim - len(shape) :]) != shape:
        raise RuntimeError(
            f"Given normalized_shape={list(shape)}, expected input with shape [*, {', '.join(map(str, shape))}], but got input of size "
            f"{list(x.shape)}"
        )
    if name != "rms_norm":  # which multiplies by a weight of any dtype
        same_dtype(x, name, weight=weight, bias=bias)
    return x, len(shape)


@functional("torch")
@known(
    "input._layout, normalized_shape, weight if weight is None else weight._layout, bias if bias is None else bias._layout, eps",
    _plan_known, _run_known, takes=("input", "normalized_shape", "weight", "bias", "eps"),
)
def layer_norm(input, normalized_shape, weight=None, bias=None, eps=1e-5, cudnn_enable=True):
    """Return (x − mean)/√(var + eps)·weight + bias, the statistics over the last dims, of sizes ``normalized_shape``.

    Derivative: for x̂ = (x − mean)/√(var + eps) and h = g·weight: dx = (h − mean(h) − x̂·mean(h·x̂))/√(var + eps); dweight = Σ g·x̂, dbias = Σ g.
    Errors: RuntimeError when shapes or dtypes do not fit.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.layer_norm.html

    >>> torch.nn.functional.layer_norm(torch.tensor([[1.0, 3.0], [0.0, 8.0]]), (2,))
    tensor([[-1.0000,  1.0000],
            [-1.0000,  1.0000]])
    """
    x, k = _row_arguments(input, normalized_shape, weight, bias, "layer_norm")
    eps = float_argument(eps, "layer_norm", "eps")
    if x.dtype.is_half:
        return in_float32(_row_norm, x, weight, bias, k, eps, True)
    return _row_norm(x, weight, bias, k, eps, True)


@functional("torch")
def rms_norm(input, normalized_shape, weight=None, eps=None):
    """Return x/√(mean x² + eps)·weight over the last dims; ``eps`` None is the dtype's machine epsilon.

    normalized_shape: the sizes of these dims, and the shape of ``weight``.
    Errors: RuntimeError or ValueError when shapes do not fit.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.rms_norm.html

    >>> torch.nn.functional.rms_norm(torch.tensor([[3.0, 4.0]]), (2,))
    tensor([[0.8485, 1.1314]])
    """
    x, k = _row_arguments(input, normalized_shape, weight, None, "rms_norm")
    same_dtype(x, "rms_norm")
    if weight is not None and weight.dtype is not x.dtype and not x.dtype.is_half:
        return cast(rms_norm(x, normalized_shape, None, eps) * weight, x.dtype)
    e = dtypes.finfo(dtypes.float32 if x.dtype.is_half else x.dtype).eps if eps is None else float_argument(eps, "rms_norm", "eps")
    if x.dtype.is_half:
        return in_float32(_row_norm, x, weight if weight is None else cast(weight, dtypes.float32), None, k, e, False)
    if x.dtype.is_complex:
        c = x.contiguous()
        y = c * ((c * c).mean(tuple(range(x.ndim - k, x.ndim)), True) + e).rsqrt()
        return in_format_of(y if weight is None else y * weight, x)
    if weight is not None and state.grad and weight.requires_grad and not x.requires_grad:
        y = _row_norm(x, None, None, k, e, False) * weight  # what its derivative keeps is nobody's to change
    else:
        y = _row_norm(x, weight, None, k, e, False)
    return in_format_of(y, x)
