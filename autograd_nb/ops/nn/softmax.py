"""softmax and log_softmax: fused row kernels forward and backward."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from ... import dtypes, launch
from ...codegen.formula.namespace import m
from ...codegen.templates.loops import MAX, SUM
from ...codegen.templates.row import Each, Row
from ...graph.modes import state
from ...shapes import wrap_dim
from ...tensor import Tensor, blank, make
from ..core.recording import mark_inference, store
from ..core.registry import public, register
from ..core.row_kernel import RowKernel, row_sizes
from ..core.structured import structured, tensor_argument
from ..creation.cast import cast, dense
from ..creation.create import new_empty, new_full
from ..elementwise.activation import functional

_TOP = Each(folds={"top": (MAX, lambda x: x)})

_SOFTMAX = RowKernel("softmax", {"x": "full"}, {"y": "full"}, [
    _TOP,
    Each(stores={"y": lambda x, top: m.exp(x - top)}, folds={"s": (SUM, lambda y: y)}),
    Row({"inverse": lambda s: 1 / s}),
    Each(stores={"y": lambda y, inverse: y * inverse}),
])  # fmt: skip

_LOG_SOFTMAX = RowKernel("log_softmax", {"x": "full"}, {"y": "full"}, [
    _TOP,
    Each(folds={"s": (SUM, lambda x, top: m.exp_below(x - top))}),
    Row({"logs": lambda s: m.log(s)}),
    Each(stores={"y": lambda x, top, logs: (x - top) - logs}),
])  # fmt: skip

_SOFTMAX_BACK = RowKernel("softmax_backward", {"g": "full", "y": "full"}, {"o": "full"}, [
    Each(folds={"s": (SUM, lambda g, y: g * y)}),
    Each(stores={"o": lambda g, y, s: y * (g - s)}),
])  # fmt: skip

_LOG_SOFTMAX_BACK = RowKernel("log_softmax_backward", {"g": "full", "y": "full"}, {"o": "full"}, [
    Each(folds={"s": (SUM, lambda g: g)}),
    Each(stores={"o": lambda g, y, s: g - m.exp(y) * s}),
])  # fmt: skip


def _run(kernel: RowKernel, d: int, *operands: Tensor) -> Tensor:
    """A kernel from full operands of one shape to a full output."""
    key = (kernel, d, *[x._layout for x in operands])
    plan = _plans.get(key)
    if plan is None:
        lay = operands[0]._layout.dense
        if lay.dtype is dtypes.float16:
            return cast(_run(kernel, d, *[cast(x, dtypes.float32) for x in operands]), dtypes.float16)
        arrays = [dense(x) for x in operands]
        out = launch.empty(lay.size, lay.dtype.carrier)
        if lay.size:
            sizes = row_sizes(lay.shape, d)
            entry = kernel.entry(lay.dtype.name, sizes, arrays, [out])
            entry(*sizes, *arrays, out)
            if all(x._layout.contiguous for x in operands):
                launch.keep(_plans, key, (entry, lay, *sizes))
        return make(out, lay, [0, 0])
    entry, lay, outer, n, inner = plan
    out = launch.empty(lay.size, lay.dtype.carrier)
    entry(outer, n, inner, *[x._data for x in operands], out)
    return make(out, lay, [0, 0])


_plans = launch.plan_table()


def _dot(a: Tensor, b: Tensor, d: int) -> Tensor:
    return (a * b).sum(d, True)


@structured(
    grad=lambda g, y, d: _softmax_backward(g, y, d),
    y=lambda g, grad, y, d: g * (grad - _dot(grad, y, d)) - grad * _dot(g, y, d),
    linear="no", batch="shift",
)
def _softmax_backward(grad, y, d):
    return _run(_SOFTMAX_BACK, d, grad, y)


@structured(x=lambda g, out, d: _softmax_backward(g, out, d), linear="no", batch="shift")
def _softmax(x, d):
    return _run(_SOFTMAX, d, x)


@structured(
    grad=lambda g, y, d: g - (g * y.exp()).sum(d, True),
    y=lambda g, grad, y, d: -(g * y.exp()) * grad.sum(d, True),
    linear="no", batch="shift",
)
def _log_softmax_backward(grad, y, d):
    return _run(_LOG_SOFTMAX_BACK, d, grad, y)


@structured(x=lambda g, out, d: _log_softmax_backward(g, out, d), linear="no", batch="shift")
def _log_softmax(x, d):
    return _run(_LOG_SOFTMAX, d, x)


def _prepared(input: Any, dim: Any, dtype: Any, name: str) -> tuple[Tensor, int]:
    x = tensor_argument(input, name)
    if dtype is not None:
        x = cast(x, dtypes.as_dtype(dtype))
    d = wrap_dim(dim, x.ndim)
    if x.dtype.category < 2:
        raise NotImplementedError(
            f'"{name}" not implemented for {x.dtype}: it takes floating point tensors (use dtype=torch.float32)'
        )
    return x, d


_written = launch.plan_table()  # plans by the dim as the user wrote it
SMALL = launch.BIG // 16  #: elements, of whatever dtype, whose memory does not come from the pool


def _quick(op: Any, x: Any, dim: Any) -> Tensor | None:
    """What ``op(x, dim)`` gives, if its plan is known."""
    try:
        plan = _written.get((op, x._layout, dim)) if dim.__class__ is int else None
    except AttributeError:
        plan = None
    if plan is None:
        return None
    d, (entry, lay, outer, n, inner) = plan
    carrier = lay.dtype.carrier
    out = np.empty(lay.size, carrier) if lay.size < SMALL else launch.empty(lay.size, carrier)
    entry(outer, n, inner, x._data, out)
    y = blank()  # `make`, written out
    y._data, y._layout, y._version_, y._rg = out, lay, [0, 0], False
    y._edge = y._grad = y._view = y._leaf_hook_set = None
    if not state.grad:
        if state.inference:
            mark_inference(y)
    elif x._rg or x._view is not None:
        op.record((x, d), y, 3)
    return y


def _keep(op: Any, kernel: RowKernel, x: Tensor, dim: Any, d: int) -> None:
    plan = _plans.get((kernel, d, x._layout))
    if plan is not None and not launch.observing():
        launch.keep(_written, (op, x._layout, dim), (d, plan))


@public()
def softmax(input, dim: int | None = None, dtype=None, *, axis=None, out=None):
    """yᵢ = e^xᵢ / Σⱼ e^xⱼ along ``dim``; dL/dx = y·(g − Σ g·y). ``dtype`` casts first.

    Errors: IndexError for a dim out of range, NotImplementedError for integers.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.softmax.html
    """
    dim = axis if dim is None else dim
    if dtype is None and out is None:
        y = _quick(_softmax, input, dim)
        if y is not None:
            return y
    x, d = _prepared(input, dim, dtype, "softmax")
    y = _softmax(x, d)
    if x is input:
        _keep(_softmax, _SOFTMAX, x, dim, d)
    return y if out is None else store(out, y, "softmax")


@public()
def log_softmax(input, dim: int | None = None, dtype=None, *, axis=None, out=None):
    """yᵢ = xᵢ − ln Σⱼ e^xⱼ along ``dim``; dL/dx = g − e^y·Σ g. ``dtype`` casts first.

    Errors: IndexError for a dim out of range, NotImplementedError for integers.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.log_softmax.html
    """
    dim = axis if dim is None else dim
    if dtype is None and out is None:
        y = _quick(_log_softmax, input, dim)
        if y is not None:
            return y
    x, d = _prepared(input, dim, dtype, "log_softmax")
    y = _log_softmax(x, d)
    if x is input:
        _keep(_log_softmax, _LOG_SOFTMAX, x, dim, d)
    return y if out is None else store(out, y, "log_softmax")


def _implicit_dim(name: str, dim: Any, x: Any, stacklevel: int) -> Any:
    if dim is not None:
        return dim
    warnings.warn(
        f"Implicit dimension choice for {name} has been deprecated. Change the call to include dim=X as an argument.",
        stacklevel=stacklevel,
    )
    return 0 if tensor_argument(x, name).ndim in (0, 1, 3) else 1


@functional(name="softmax")
def _f_softmax(input, dim: int | None = None, _stacklevel=3, dtype=None):
    """`softmax` along ``dim``."""
    return softmax(input, _implicit_dim("softmax", dim, input, _stacklevel), dtype)


@functional(name="log_softmax")
def _f_log_softmax(input, dim: int | None = None, _stacklevel=3, dtype=None):
    """`log_softmax` along ``dim``."""
    return log_softmax(input, _implicit_dim("log_softmax", dim, input, _stacklevel), dtype)


@functional()
def softmin(input, dim: int | None = None, _stacklevel=3, dtype=None):
    """`softmax` of −x."""
    return softmax(-input, _implicit_dim("softmin", dim, input, _stacklevel), dtype)


@functional()
def gumbel_softmax(logits, tau=1, hard=False, eps=1e-10, dim=-1):
    """`softmax` of (logits + Gumbel noise)/tau: a relaxed sample of the categories along ``dim``.

    hard: one-hot vectors whose gradient is that of the relaxed sample. Source: Jang et al., Categorical reparameterization with
    Gumbel-softmax (2017)
    """
    x = tensor_argument(logits, "gumbel_softmax", "logits")
    if eps != 1e-10:
        warnings.warn("`eps` parameter is deprecated and has no effect.", stacklevel=2)
    noise = -new_empty(x.shape, x.dtype).exponential_().log()
    soft = softmax((x + noise) / tau, dim)
    if not hard:
        return soft
    chosen = new_full(x.shape, 0, x.dtype).scatter_(dim, soft.detach().argmax(dim, keepdim=True), 1.0)
    return chosen - soft.detach() + soft


register("special.softmax", softmax, method=False, namespaces=("special",))
register("special.log_softmax", log_softmax, method=False, namespaces=("special",))
