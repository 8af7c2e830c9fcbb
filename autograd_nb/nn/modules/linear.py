"""Linear maps, and modules that only change shapes."""

from __future__ import annotations

import math
from typing import Any

from ...shapes import as_int
from ...tensor import Tensor
from .. import functional as F
from .. import init
from ..parameter import Parameter
from .module import Module
from .options import parameter


class Identity(Module):
    """Returns its input, whatever arguments it was made with; Identity()([1., 2.]) = [1., 2.]."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__()

    def forward(self, input: Tensor) -> Tensor:
        return input


class Linear(Module):
    """y = x Wᵀ + b over the last dim.

    Shapes: (…, in_features) → (…, out_features); weight (out_features, in_features), bias (out_features). Both start uniform
    within ±1/√in_features.

    Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.Linear.html

    >>> torch.nn.Linear(3, 2)(torch.ones(4, 3)).shape
    torch.Size([4, 2])
    """

    in_features: int
    out_features: int
    weight: Tensor
    bias: Parameter  # (None without one: as in PyTorch, who asks for one need not say to a checker that it is there)

    def __init__(self, in_features: int, out_features: int, bias: bool = True, device: Any = None, dtype: Any = None) -> None:
        super().__init__()
        self.in_features, self.out_features = in_features, out_features
        self.weight = parameter((out_features, in_features), dtype, device)
        self.register_parameter("bias", parameter((out_features,), dtype, device) if bias else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw weight and bias anew."""
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None:
            bound = 1 / math.sqrt(self.in_features) if self.in_features > 0 else 0
            init.uniform_(self.bias, -bound, bound)

    def forward(self, input: Tensor) -> Tensor:
        own = self._parameters
        try:
            weight, bias = own["weight"], own["bias"]
        except KeyError:  # computed from others
            weight, bias = self.weight, self.bias
        return F.linear(input, weight, bias)

    def extra_repr(self) -> str:
        return f"in_features={self.in_features}, out_features={self.out_features}, bias={self.bias is not None}"


class NonDynamicallyQuantizableLinear(Linear):
    """A `Linear`; its name is how PyTorch prints the last layer of attention."""


class Bilinear(Module):
    """y = x₁ᵀ A x₂ + b.

    Shapes: (…, in1_features), (…, in2_features) → (…, out_features).
    Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.Bilinear.html

    >>> torch.nn.Bilinear(3, 2, 4)(torch.ones(5, 3), torch.ones(5, 2)).shape
    torch.Size([5, 4])
    """

    weight: Parameter
    bias: Parameter | None
    in1_features: int
    in2_features: int
    out_features: int

    def __init__(
        self, in1_features: int, in2_features: int, out_features: int, bias: bool = True, device: Any = None, dtype: Any = None
    ) -> None:
        super().__init__()
        if as_int(in1_features, "in1_features") <= 0:
            raise ValueError(f"in1_features must be > 0, but got {in1_features}")
        self.in1_features, self.in2_features, self.out_features = in1_features, in2_features, out_features
        self.weight = parameter((out_features, in1_features, in2_features), dtype, device)
        self.register_parameter("bias", parameter((out_features,), dtype, device) if bias else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw weight and bias anew."""
        bound = 1 / math.sqrt(self.weight.shape[1])
        init.uniform_(self.weight, -bound, bound)
        if self.bias is not None:
            init.uniform_(self.bias, -bound, bound)

    def forward(self, input1: Tensor, input2: Tensor) -> Tensor:
        return F.bilinear(input1, input2, self.weight, self.bias)

    def extra_repr(self) -> str:
        return (
            f"in1_features={self.in1_features}, in2_features={self.in2_features}, out_features={self.out_features}, "
            f"bias={self.bias is not None}"
        )


class Flatten(Module):
    """The dims from ``start_dim`` to ``end_dim`` as one."""

    start_dim: int
    end_dim: int

    def __init__(self, start_dim: int = 1, end_dim: int = -1) -> None:
        super().__init__()
        self.start_dim, self.end_dim = start_dim, end_dim

    def forward(self, input: Tensor) -> Tensor:
        return input.flatten(self.start_dim, self.end_dim)

    def extra_repr(self) -> str:
        return f"start_dim={self.start_dim}, end_dim={self.end_dim}"


class Unflatten(Module):
    """One dim as several of the sizes ``unflattened_size``."""

    dim: int
    unflattened_size: tuple[Any, ...] | list[Any]

    def __init__(self, dim: Any, unflattened_size: Any) -> None:
        super().__init__()
        if not isinstance(dim, int):
            raise TypeError(f"Unflatten: argument 'dim' must be int, not {type(dim).__name__} (named dims are not supported)")
        if not isinstance(unflattened_size, (tuple, list)):
            raise TypeError(f"unflattened_size must be a tuple of ints, but found type {type(unflattened_size).__name__}")
        for i, n in enumerate(unflattened_size):
            if not isinstance(n, int):
                raise TypeError(f"unflattened_size must be tuple of ints, but found element of type {type(n).__name__} at pos {i}")
        self.dim, self.unflattened_size = dim, unflattened_size

    def forward(self, input: Tensor) -> Tensor:
        return input.unflatten(self.dim, self.unflattened_size)

    def extra_repr(self) -> str:
        return f"dim={self.dim}, unflattened_size={self.unflattened_size}"
