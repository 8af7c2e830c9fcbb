"""Pooling.

Source: https://docs.pytorch.org/docs/stable/nn.html#pooling-layers
"""

from __future__ import annotations

from typing import Any

from ...tensor import Tensor
from .. import functional as F
from .module import Module
from .options import several


class _MaxPool(Module):
    dims: int

    def __init__(
        self, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1, return_indices: bool = False, ceil_mode: bool = False
    ) -> None:
        super().__init__()
        self.kernel_size, self.stride = kernel_size, stride if stride is not None else kernel_size
        self.padding, self.dilation = padding, dilation
        self.return_indices, self.ceil_mode = return_indices, ceil_mode

    def forward(self, input: Tensor) -> Any:
        pool = getattr(F, f"max_pool{self.dims}d")
        return pool(
            input, self.kernel_size, self.stride, self.padding, self.dilation, ceil_mode=self.ceil_mode, return_indices=self.return_indices
        )

    def extra_repr(self) -> str:
        return (
            f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}, dilation={self.dilation}, "
            f"ceil_mode={self.ceil_mode}"
        )


class MaxPool1d(_MaxPool):
    """The largest element of each window of (N, C, L)."""

    dims = 1


class MaxPool2d(_MaxPool):
    """The largest element of each window of (N, C, H, W); ``return_indices``: also where it was in its plane."""

    dims = 2


class MaxPool3d(_MaxPool):
    """The largest element of each window of (N, C, D, H, W)."""

    dims = 3


class _MaxUnpool(Module):
    dims: int

    def __init__(self, kernel_size: Any, stride: Any = None, padding: Any = 0) -> None:
        super().__init__()
        self.kernel_size = several(kernel_size, self.dims)
        self.stride = several(stride if stride is not None else kernel_size, self.dims)
        self.padding = several(padding, self.dims)

    def forward(self, input: Tensor, indices: Tensor, output_size: Any = None) -> Tensor:
        return getattr(F, f"max_unpool{self.dims}d")(input, indices, self.kernel_size, self.stride, self.padding, output_size)

    def extra_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class MaxUnpool1d(_MaxUnpool):
    """Puts the elements that `MaxPool1d` found back where they were, zeros elsewhere."""

    dims = 1


class MaxUnpool2d(_MaxUnpool):
    """Puts the elements that `MaxPool2d` found back where they were, zeros elsewhere."""

    dims = 2


class MaxUnpool3d(_MaxUnpool):
    """Puts the elements that `MaxPool3d` found back where they were, zeros elsewhere."""

    dims = 3


class AvgPool1d(Module):
    """The mean of each window of (N, C, L)."""

    def __init__(
        self, kernel_size: Any, stride: Any = None, padding: Any = 0, ceil_mode: bool = False, count_include_pad: bool = True
    ) -> None:
        super().__init__()
        self.kernel_size, self.stride = several(kernel_size, 1), several(stride if stride is not None else kernel_size, 1)
        self.padding, self.ceil_mode, self.count_include_pad = several(padding, 1), ceil_mode, count_include_pad

    def forward(self, input: Tensor) -> Tensor:
        return F.avg_pool1d(input, self.kernel_size, self.stride, self.padding, self.ceil_mode, self.count_include_pad)

    def extra_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class _AvgPool(Module):
    dims: int

    def __init__(
        self, kernel_size: Any, stride: Any = None, padding: Any = 0, ceil_mode: bool = False, count_include_pad: bool = True,
        divisor_override: int | None = None,
    ) -> None:  # fmt: skip
        super().__init__()
        self.kernel_size, self.stride, self.padding = kernel_size, stride if stride is not None else kernel_size, padding
        self.ceil_mode, self.count_include_pad, self.divisor_override = ceil_mode, count_include_pad, divisor_override

    def forward(self, input: Tensor) -> Tensor:
        pool = getattr(F, f"avg_pool{self.dims}d")
        return pool(input, self.kernel_size, self.stride, self.padding, self.ceil_mode, self.count_include_pad, self.divisor_override)

    def extra_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class AvgPool2d(_AvgPool):
    """The mean of each window of (N, C, H, W)."""

    dims = 2


class AvgPool3d(_AvgPool):
    """The mean of each window of (N, C, D, H, W)."""

    dims = 3


class _LPPool(Module):
    dims: int

    def __init__(self, norm_type: float, kernel_size: Any, stride: Any = None, ceil_mode: bool = False) -> None:
        super().__init__()
        self.norm_type, self.kernel_size, self.stride, self.ceil_mode = norm_type, kernel_size, stride, ceil_mode

    def forward(self, input: Tensor) -> Tensor:
        return getattr(F, f"lp_pool{self.dims}d")(input, float(self.norm_type), self.kernel_size, self.stride, self.ceil_mode)

    def extra_repr(self) -> str:
        return f"norm_type={self.norm_type}, kernel_size={self.kernel_size}, stride={self.stride}, ceil_mode={self.ceil_mode}"


class LPPool1d(_LPPool):
    """(Σ xᵖ)^(1/p) of each window of (N, C, L)."""

    dims = 1


class LPPool2d(_LPPool):
    """(Σ xᵖ)^(1/p) of each window of (N, C, H, W)."""

    dims = 2


class LPPool3d(_LPPool):
    """(Σ xᵖ)^(1/p) of each window of (N, C, D, H, W)."""

    dims = 3


class _AdaptiveMax(Module):
    dims: int

    def __init__(self, output_size: Any, return_indices: bool = False) -> None:
        super().__init__()
        self.output_size, self.return_indices = output_size, return_indices

    def forward(self, input: Tensor) -> Any:
        pool = getattr(F, f"adaptive_max_pool{self.dims}d")
        return pool(input, self.output_size, self.return_indices)

    def extra_repr(self) -> str:
        return f"output_size={self.output_size}"


class AdaptiveMaxPool1d(_AdaptiveMax):
    """Max pooling to a given output size."""

    dims = 1


class AdaptiveMaxPool2d(_AdaptiveMax):
    """Max pooling to a given output size; None keeps a dim's size."""

    dims = 2


class AdaptiveMaxPool3d(_AdaptiveMax):
    """Max pooling to a given output size; None keeps a dim's size."""

    dims = 3


class _AdaptiveAvg(Module):
    dims: int

    def __init__(self, output_size: Any) -> None:
        super().__init__()
        self.output_size = output_size

    def forward(self, input: Tensor) -> Tensor:
        return getattr(F, f"adaptive_avg_pool{self.dims}d")(input, self.output_size)

    def extra_repr(self) -> str:
        return f"output_size={self.output_size}"


class AdaptiveAvgPool1d(_AdaptiveAvg):
    """Average pooling to a given output size."""

    dims = 1


class AdaptiveAvgPool2d(_AdaptiveAvg):
    """Average pooling to a given output size; None keeps a dim's size."""

    dims = 2


class AdaptiveAvgPool3d(_AdaptiveAvg):
    """Average pooling to a given output size; None keeps a dim's size."""

    dims = 3
