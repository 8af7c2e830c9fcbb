"""softmax and log_softmax: fused row kernels forward and backward."""

from __future__ import annotations

import warnings
from typing import Any

from .. import dtypes, launch
from ..codegen.loops import MAX, SUM
from ..codegen.maths import m
from ..codegen.rows import Each, Row
from ..shapes import wrap_dim
from ..tensor import Tensor, make
from .activation import functional
from .cast import cast, dense
from .create import new_empty, new_full
from .recording import store
from .registry import public, register
from .rowwise import RowKernel, row_sizes
from .structured import structured, tensor_argument

_TOP = Each(folds={"top": (MAX, lambda x: x)})

_SOFTMAX = RowKernel("softmax", {"x": "full"}, {"y": "full"}, [
    _TOP,
    Each(stores={"y": lambda x, top: m.exp(x - top)}, folds={"s": (SUM, lambda y: y)}),
    Row({"inverse": lambda s: 1 / s}),
    Each(stores={"y": lambda y, inverse: y * inverse}),
])  # fmt: skip

_LOG_SOFTMAX = RowKernel("log_softmax", {"x": "full"}, {"y": "full"}, [
    _TOP,
    Each(folds={"s": (SUM, lambda x, top: m.exp(x - top))}),
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
    lay = operands[0]._layout.dense
    if lay.dtype is dtypes.float16:
        return cast(_run(kernel, d, *[cast(x, dtypes.float32) for x in operands]), dtypes.float16)
    out = launch.empty(lay.size, lay.dtype.carrier)
    if lay.size:
        kernel(lay.dtype.name, row_sizes(lay.shape, d), [dense(x) for x in operands], [out])
    return make(out, lay, [0, 0])


def _dot(a: Tensor, b: Tensor, d: int) -> Tensor:
    return (a * b).sum(d, True)


@structured(
    grad=lambda g, y, d: _softmax_backward(g, y, d),
    y=lambda g, grad, y, d: g * (grad - _dot(grad, y, d)) - grad * _dot(g, y, d),
)
def _softmax_backward(grad, y, d):
    return _run(_SOFTMAX_BACK, d, grad, y)


@structured(x=lambda g, out, d: _softmax_backward(g, out, d))
def _softmax(x, d):
    return _run(_SOFTMAX, d, x)


@structured(
    grad=lambda g, y, d: g - (g * y.exp()).sum(d, True),
    y=lambda g, grad, y, d: -(g * y.exp()) * grad.sum(d, True),
)
def _log_softmax_backward(grad, y, d):
    return _run(_LOG_SOFTMAX_BACK, d, grad, y)


@structured(x=lambda g, out, d: _log_softmax_backward(g, out, d))
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


@public()
def softmax(input, dim, dtype=None, *, out=None):
    """yᵢ = e^xᵢ / Σⱼ e^xⱼ along ``dim``; dL/dx = y·(g − Σ g·y). ``dtype`` casts first.

    Errors: IndexError for a dim out of range, NotImplementedError for integers.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.softmax.html
    """
    y = _softmax(*_prepared(input, dim, dtype, "softmax"))
    return y if out is None else store(out, y, "softmax")


@public()
def log_softmax(input, dim, dtype=None, *, out=None):
    """yᵢ = xᵢ − ln Σⱼ e^xⱼ along ``dim``; dL/dx = g − e^y·Σ g. ``dtype`` casts first.

    Errors: IndexError for a dim out of range, NotImplementedError for integers.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.log_softmax.html
    """
    y = _log_softmax(*_prepared(input, dim, dtype, "log_softmax"))
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
def _f_softmax(input, dim=None, _stacklevel=3, dtype=None):
    """`softmax` along ``dim``."""
    return softmax(input, _implicit_dim("softmax", dim, input, _stacklevel), dtype)


@functional(name="log_softmax")
def _f_log_softmax(input, dim=None, _stacklevel=3, dtype=None):
    """`log_softmax` along ``dim``."""
    return log_softmax(input, _implicit_dim("log_softmax", dim, input, _stacklevel), dtype)


@functional()
def softmin(input, dim=None, _stacklevel=3, dtype=None):
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
