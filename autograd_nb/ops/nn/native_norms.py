"""The norms under PyTorch's inner names, which also give the statistics they used (as PyTorch, with a gradient in `native_group_norm` only)."""

from __future__ import annotations

from typing import Any

from ...tensor import Tensor
from ..core.recording import fresh, guarded
from ..core.registry import OPS, public


def _statistics(x: Tensor, dims: tuple[int, ...], eps: float, keepdim: bool) -> tuple[Tensor, Tensor]:
    """Mean and 1/√(variance + eps)."""
    return x.mean(dims, keepdim), (x.var(dims, correction=0, keepdim=keepdim) + eps).rsqrt()


def _with_statistics(y: Tensor, statistics: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor, Tensor]:
    mean, deviation = (guarded(fresh(s), *statistics) for s in statistics)
    return guarded(fresh(y), *statistics), mean, deviation


@public(method=False)
def native_layer_norm(input, normalized_shape, weight, bias, eps) -> tuple[Tensor, Tensor, Tensor]:
    """(`nn.functional.layer_norm`, the means, the reciprocal deviations)."""
    y = OPS["nn.functional.layer_norm"].call(input, normalized_shape, weight, bias, eps)
    dims = tuple(range(input.ndim - len(normalized_shape), input.ndim))
    return _with_statistics(y, _statistics(input.detach(), dims, eps, True))


@public(method=False)
def native_group_norm(input, weight, bias, N, C, HxW, group, eps) -> tuple[Tensor, Tensor, Tensor]:
    """(`nn.functional.group_norm`, the means, the reciprocal deviations, each N × group)."""
    y = OPS["nn.functional.group_norm"].call(input.reshape(N, C, HxW), group, weight, bias, eps).reshape(input.shape)
    return _with_statistics(y, _statistics(input.reshape(N, group, C // group * HxW), (2,), eps, False))


@public(method=False)
def native_batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps) -> tuple[Tensor, Tensor, Tensor]:
    """(`nn.functional.batch_norm`, the means, the reciprocal deviations; these are empty unless ``training``)."""
    x: Any = input
    call = OPS["nn.functional.batch_norm"].call
    if not training:
        y = call(x, running_mean, running_var, weight, bias, False, momentum, eps)
        return _with_statistics(y, (x.detach().new_empty(0), x.detach().new_empty(0)))
    statistics = _statistics(x.detach(), (0, *range(2, x.ndim)), eps, False)
    return _with_statistics(call(x, running_mean, running_var, weight, bias, True, momentum, eps), statistics)
