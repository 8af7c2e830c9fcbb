"""Batch norm folded into the layer before it, for evaluation, and modules made without their first weights.

Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.utils.fuse_conv_bn_eval.html
"""

from __future__ import annotations

import copy
import inspect
from typing import Any

from ...ops.creation.create import new_full
from ...tensor import Tensor
from ..modules.module import Module
from ..parameter import Parameter

__all__ = ["fuse_conv_bn_eval", "fuse_conv_bn_weights", "fuse_linear_bn_eval", "fuse_linear_bn_weights", "skip_init"]


def _folded(
    w: Tensor, b: Any, mean: Tensor, var: Tensor, eps: float, weight: Any, bias: Any, dim: int
) -> tuple[Parameter, Parameter]:
    b = new_full(mean.shape, 0, mean.dtype) if b is None else b
    scale = (var + eps).rsqrt()
    scale = scale if weight is None else scale * weight
    shape = [1] * w.ndim
    shape[dim] = -1
    new_bias = (b - mean) * scale
    new_bias = new_bias if bias is None else new_bias + bias
    return (
        Parameter((w * scale.reshape(shape)).to(w.dtype), w.requires_grad),
        Parameter(new_bias.to(b.dtype), b.requires_grad),
    )


def fuse_conv_bn_weights(
    conv_w: Tensor, conv_b: Any, bn_rm: Tensor, bn_rv: Tensor, bn_eps: float, bn_w: Any, bn_b: Any, transpose: bool = False
) -> tuple[Parameter, Parameter]:
    """Return (weight, bias) of a convolution that does what it and a batch norm after it did.

    >>> one, zero = torch.ones(1), torch.zeros(1)
    >>> torch.nn.utils.fuse_conv_bn_weights(torch.ones(1, 1, 1), zero, zero, one, 0., one * 2, one)[0].detach()
    tensor([[[2.]]])
    """
    return _folded(conv_w, conv_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b, 1 if transpose else 0)


def fuse_linear_bn_weights(
    linear_w: Tensor, linear_b: Any, bn_rm: Tensor, bn_rv: Tensor, bn_eps: float, bn_w: Any, bn_b: Any
) -> tuple[Parameter, Parameter]:
    """Return (weight, bias) of a linear layer that does what it and a batch norm after it did.

    >>> one, zero = torch.ones(1), torch.zeros(1)
    >>> torch.nn.utils.fuse_linear_bn_weights(torch.ones(1, 1), zero, zero, one, 0., one * 2, one)[0].detach()
    tensor([[2.]])
    """
    return _folded(linear_w, linear_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b, 0)


def _fused(layer: Module, bn: Module, dim: int) -> Module:
    if layer.training or bn.training:
        raise AssertionError("Fusion only for eval!")
    if bn.running_mean is None or bn.running_var is None:
        raise AssertionError("Fusion needs a batch norm with running statistics (track_running_stats=True)")
    out = copy.deepcopy(layer)
    out.weight, out.bias = _folded(out.weight, out.bias, bn.running_mean, bn.running_var, bn.eps, bn.weight, bn.bias, dim)
    return out


def fuse_conv_bn_eval(conv: Module, bn: Module, transpose: bool = False) -> Module:
    """Return a convolution that does what ``conv`` and ``bn`` do in evaluation. AssertionError while they are training."""
    return _fused(conv, bn, 1 if transpose else 0)


def fuse_linear_bn_eval(linear: Module, bn: Module) -> Module:
    """Return a linear layer that does what ``linear`` and ``bn`` do in evaluation. AssertionError while they are training."""
    if linear.out_features != bn.num_features and bn.num_features != 1:
        raise AssertionError("To fuse, linear.out_features == bn.num_features or bn.num_features == 1")
    return _fused(linear, bn, 0)


def skip_init(module_cls: type[Module], *args: Any, **kwargs: Any) -> Module:
    """Return a module whose weights are not drawn: it is made on the device "meta" and then given memory.

    Errors: RuntimeError unless it is a Module class with an argument ``device``.

    >>> torch.nn.utils.skip_init(torch.nn.Linear, 2, 3).weight.shape
    torch.Size([3, 2])
    """
    if not issubclass(module_cls, Module):
        raise RuntimeError(f"Expected a Module; got {module_cls}")
    if "device" not in inspect.signature(module_cls).parameters:
        raise RuntimeError("Module must support a 'device' arg to skip initialization")
    device = kwargs.pop("device", "cpu")
    return module_cls(*args, device="meta", **kwargs).to_empty(device=device)
