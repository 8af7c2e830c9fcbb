"""A linear map and cross entropy of its output as one module.

Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.LinearCrossEntropyLoss.html
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from ...tensor import Tensor
from .. import functional as F
from .linear import Linear
from .loss import _WeightedLoss


@dataclass(frozen=True)
class LinearCrossEntropyOptions:
    """The options by which PyTorch cuts `LinearCrossEntropyLoss` into chunks; they are checked and kept, and change no result."""

    allow_retain_graph: bool = False
    batch_chunk_size: int | None = None
    chunking_method: str | None = "auto"
    acc_policy: str = "auto"
    acc_dtype: Any = None

    def __post_init__(self) -> None:
        if self.acc_policy not in ("auto", "accurate", "balanced", "compact"):
            raise ValueError(f"invalid acc_policy: {self.acc_policy!r}")
        name, _, factor = (self.chunking_method or "auto").partition(":")
        if name != "auto" and not (name == "aspect_ratio" and (factor or "1").isdigit() and int(factor or "1") > 0):
            raise ValueError(f"invalid chunking_method: {self.chunking_method!r}")
        size = self.batch_chunk_size
        if size is not None and not (isinstance(size, int) and size > 0):
            raise ValueError(f"batch_chunk_size must be positive int or None, got {size!r}")
        if self.acc_dtype is not None and getattr(self.acc_dtype, "name", "") not in ("float16", "float32", "float64"):
            raise ValueError(f"acc_dtype must be one of {{None, torch.float16, torch.float32, torch.float64}}, got {self.acc_dtype!r}.")


class LinearCrossEntropyLoss(_WeightedLoss):
    """Cross entropy of ``linear(input)``: (N, in_features) and targets (N, *out_features) → a loss.

    The map has ``num_classes`` · ∏ ``out_features`` outputs; the other options are those of `CrossEntropyLoss`.

    >>> torch.nn.LinearCrossEntropyLoss(4, 3)(torch.ones(2, 4), torch.tensor([0, 2])).shape
    torch.Size([])
    """

    options: LinearCrossEntropyOptions | None

    num_classes: int
    out_features: tuple[int, ...]
    ignore_index: int | None
    label_smoothing: float
    linear: Linear

    def __init__(
        self, in_features: int, num_classes: int, *, out_features: tuple[int, ...] = (), bias: bool = False, device: Any = None,
        dtype: Any = None, reduction: str = "mean", weight: Tensor | None = None, ignore_index: int | None = None,
        label_smoothing: float = 0.0, options: LinearCrossEntropyOptions | None = None,
    ) -> None:  # fmt: skip
        if weight is not None and tuple(weight.shape) != (num_classes,):
            raise RuntimeError(f"expected weight shape to be {(num_classes,)}, got {tuple(weight.shape)}")
        if label_smoothing < 0 or label_smoothing > 1:  # (nan passes, and smoothes nothing, as in PyTorch)
            raise RuntimeError(f"expected label_smoothing to be in range [0, 1], got {label_smoothing}")
        super().__init__(weight, reduction=reduction)
        self.num_classes, self.out_features, self.ignore_index = num_classes, tuple(out_features), ignore_index
        self.label_smoothing, self.options = label_smoothing, options
        self.linear = Linear(in_features, math.prod(out_features, start=num_classes), bias=bias, device=device, dtype=dtype)

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        sizes = (self.num_classes, *self.out_features)
        bias = self.linear.bias
        return F.linear_cross_entropy(
            input, self.linear.weight.reshape(*sizes, self.linear.in_features), target, linear_bias=None if bias is None else bias.reshape(sizes),
            weight=self.weight, reduction=self.reduction, ignore_index=self.ignore_index, label_smoothing=self.label_smoothing,
            options=self.options,
        )  # fmt: skip

    def extra_repr(self) -> str:
        return (
            f"in_features={self.linear.in_features}, num_classes={self.num_classes}, out_features={self.out_features}, "
            f"bias={self.linear.bias is not None}, reduction={self.reduction}, ignore_index={self.ignore_index}, "
            f"label_smoothing={self.label_smoothing}, options={self.options}"
        )
