"""``torch.nn.grad``: the gradients of convolutions by their operands, as functions.

Source: https://docs.pytorch.org/docs/stable/nn.functional.html
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..autograd.api import grad
from ..graph.modes import recorded
from ..ops.core.registry import OPS
from ..ops.creation.create import zeros
from ..tensor import Tensor


def _made(dims: int, of_input: bool) -> Callable[..., Tensor]:
    convolution = f"nn.functional.conv{dims}d"

    def by_input(
        input_size: Any, weight: Tensor, grad_output: Tensor, stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups: int = 1
    ) -> Tensor:
        x = zeros(tuple(input_size), dtype=weight.dtype, requires_grad=True)
        with recorded():
            y = OPS[convolution].call(x, weight, None, stride, padding, dilation, groups)
        return grad(y, x, grad_output, create_graph=weight.requires_grad or grad_output.requires_grad)[0]

    def by_weight(
        input: Tensor, weight_size: Any, grad_output: Tensor, stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups: int = 1
    ) -> Tensor:
        w = zeros(tuple(weight_size), dtype=input.dtype, requires_grad=True)
        with recorded():
            y = OPS[convolution].call(input, w, None, stride, padding, dilation, groups)
        return grad(y, w, grad_output, create_graph=input.requires_grad or grad_output.requires_grad)[0]

    made = by_input if of_input else by_weight
    what = "input" if of_input else "weight"
    made.__name__ = made.__qualname__ = f"conv{dims}d_{what}"
    made.__doc__ = f"Return the gradient of `conv{dims}d` by its {what}, of the given size."
    return made


conv1d_input: Callable[..., Tensor] = _made(1, True)
conv1d_weight: Callable[..., Tensor] = _made(1, False)
conv2d_input: Callable[..., Tensor] = _made(2, True)
conv2d_weight: Callable[..., Tensor] = _made(2, False)
conv3d_input: Callable[..., Tensor] = _made(3, True)
conv3d_weight: Callable[..., Tensor] = _made(3, False)
