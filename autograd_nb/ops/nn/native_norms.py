"""The norms under PyTorch's inner names, which also give the statistics they used (as PyTorch, with a gradient in `native_group_norm` only)."""

from __future__ import annotations

from typing import Any

from ... import dtypes
from ...tensor import Tensor
from ..core.numbers import bool_argument, float_argument
from ..core.recording import fresh, guarded
from ..core.registry import OPS, public
from ..core.structured import optional_tensor, tensor_argument
from ..creation.cast import cast


def _statistics(x: Tensor, dims: tuple[int, ...], eps: float, keepdim: bool) -> tuple[Tensor, Tensor]:
    """Return mean and 1/√(variance + eps)."""
    return x.mean(dims, keepdim), (x.var(dims, correction=0, keepdim=keepdim) + eps).rsqrt()


def _wide(x: Tensor, *others: Any) -> Tensor:
    """Return half precision in float32 where parameters or running statistics are, as the statistics then are."""
    return cast(x, dtypes.float32) if x.dtype.is_half and any(t is not None and t.dtype is dtypes.float32 for t in others) else x


def _checked(op: str, input: Any, **others: Any) -> Tensor:
    """Return the input, a tensor as the others are that are given."""
    for name, value in others.items():
        optional_tensor(value, op, name)
    return tensor_argument(input, op)


def _with_statistics(y: Tensor, statistics: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor, Tensor]:
    mean, deviation = (guarded(fresh(s), *statistics) for s in statistics)
    return guarded(fresh(y), *statistics), mean, deviation


@public(method=False)
def native_layer_norm(input, normalized_shape, weight, bias, eps) -> tuple[Tensor, Tensor, Tensor]:
    """Return (`nn.functional.layer_norm`, the means, the reciprocal deviations)."""
    y = OPS["nn.functional.layer_norm"].call(input, normalized_shape, weight, bias, eps)
    dims = tuple(range(input.ndim - len(normalized_shape), input.ndim))
    return _with_statistics(y, _statistics(_wide(input.detach(), weight, bias), dims, eps, True))


@public(method=False)
def native_group_norm(input, weight, bias, N, C, HxW, group, eps) -> tuple[Tensor, Tensor, Tensor]:
    """Return (`nn.functional.group_norm`, the means, the reciprocal deviations, each N × group)."""
    _checked("native_group_norm", input, weight=weight, bias=bias)
    y = OPS["nn.functional.group_norm"].call(input.reshape(N, C, HxW), group, weight, bias, eps).reshape(input.shape)
    return _with_statistics(y, _statistics(_wide(input, weight, bias).reshape(N, group, C // group * HxW), (2,), eps, False))


@public(method=False)
def native_batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps) -> tuple[Tensor, Tensor, Tensor]:
    """Return (`nn.functional.batch_norm`, the means, the reciprocal deviations; these are empty unless ``training``)."""
    x: Any = _checked("native_batch_norm", input, weight=weight, bias=bias, running_mean=running_mean, running_var=running_var)
    eps = float_argument(eps, "native_batch_norm", "eps")
    call = OPS["nn.functional.batch_norm"].call
    if not bool_argument(training, "native_batch_norm", "training"):
        y = call(x, running_mean, running_var, weight, bias, False, momentum, eps)
        nothing = _wide(x.detach(), weight, bias, running_mean, running_var).new_empty(0)
        return _with_statistics(y, (nothing, nothing))
    statistics = _statistics(_wide(x.detach(), weight, bias, running_mean, running_var), (0, *range(2, x.ndim)), eps, False)
    return _with_statistics(call(x, running_mean, running_var, weight, bias, True, momentum, eps), statistics)
