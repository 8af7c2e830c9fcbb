"""Functions that launch kernels of their own, beside the ops: what they do for wrapped tensors, written with ops.

Imported with the first transform; the functions are exchanged only while one is active (`doors`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import dtypes
from ..graph.modes import no_grad
from ..ops import attention, cross_entropy, layer_norm, normalization
from ..ops.registry import OPS
from ..shapes import numel
from ..tensor import Tensor
from .wrapped import everywhere, innermost

__all__: list[str] = []


def composite(module: Any, name: str) -> Callable[[Callable], Callable]:
    """Decorator: the function that stands for ``module.name`` where an operand is wrapped."""

    def enter(function: Callable) -> Callable:
        def factory(inner: Callable) -> Callable:
            def call(*args: Any, **kw: Any) -> Any:
                if innermost((*args, *kw.values())) is None:
                    return inner(*args, **kw)
                return function(*args, **kw)

            return call

        everywhere(vars(module)[name])(factory)
        return function

    return enter


@composite(cross_entropy, "_cross_entropy_indices")
def _cross_entropy(x: Tensor, target: Tensor, w: Any, ignore: int, reduction: str, eps: float) -> Tensor:
    call = {name: OPS[name].call for name in ("log_softmax", "gather", "where")}
    c = x.shape[1]
    keep = target.ne(ignore)
    at = call["where"](keep, target, 0)
    logs = call["log_softmax"](x, 1)
    kept = keep.to(x.dtype)
    weight = kept if w is None else OPS["index_select"].call(w, 0, at.reshape(-1)).reshape(at.shape) * kept
    loss = -call["gather"](logs, 1, at.unsqueeze(1)).squeeze(1) * weight * (1 - eps)
    if eps:
        spread = logs if w is None else logs * w.reshape(1, c, *[1] * (x.ndim - 2))
        loss = loss - spread.sum(1) * kept * (eps / c)
    if reduction == "none":
        return loss
    return loss.sum() / weight.sum() if reduction == "mean" else loss.sum()


@composite(layer_norm, "_row_norm")
def _row_norm(x: Tensor, w: Any, b: Any, k: int, eps: float, centered: bool) -> Tensor:
    dims = list(range(x.ndim - k, x.ndim))
    gap = x - x.mean(dims, True) if centered else x
    y = gap * ((gap * gap).mean(dims, True) + eps).rsqrt()
    if w is not None:
        y = y * w
    return y if b is None else y + b


@composite(normalization, "_statistics")
def _statistics(
    x: Tensor, dims: tuple[int, ...], eps: float, running: Any = (None, None), momentum: float = 0.0
) -> tuple[Tensor, Tensor]:
    with no_grad():
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


@composite(attention, "attention_weights")
def _attention_weights(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    mask: Any,
    dropout_p: float,
    causal: bool,
    scale: Any,
    blank: float = 0.0,
    weights: bool = True,
) -> tuple[Tensor, Tensor]:
    factor = 1.0 / max(q.shape[-1], 1) ** 0.5 if scale is None else float(scale)
    scores = q @ k.transpose(-2, -1) * factor
    hidden = None
    if causal:
        hidden = OPS["ones"].call(q.shape[-2], k.shape[-2], dtype=dtypes.bool_).triu(1)
    if mask is not None:
        if mask.dtype is dtypes.bool_:
            hidden = mask.logical_not() if hidden is None else mask.logical_not().logical_or(hidden)
        else:
            scores = scores + mask
    if hidden is not None:
        scores = scores.masked_fill(hidden, float("-inf"))
    p = OPS["softmax"].call(scores, -1)
    if hidden is not None:
        p = p.masked_fill(hidden.all(-1, keepdim=True), blank)
    if dropout_p:
        p = OPS["nn.functional.dropout"].call(p, dropout_p)
    return p @ v, p
