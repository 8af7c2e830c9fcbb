"""Pooling.

Source: https://docs.pytorch.org/docs/stable/nn.html#pooling-layers
"""

from __future__ import annotations

from typing import Any

from ...tensor import Tensor
from .. import functional as F
from .module import Module
from .options import Spatial, several


class _MaxPool(Spatial):
    kernel_size: Any
    stride: Any
    padding: Any
    dilation: Any
    return_indices: bool
    ceil_mode: bool

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


class MaxPool1d(_MaxPool, dims=1):
    """The largest element of each window of (N, C, L); MaxPool1d(2)([[1., 2.]]) = [[2.]]."""


class MaxPool2d(_MaxPool, dims=2):
    """The largest element of each window of (N, C, H, W); ``return_indices``: also where it was in its plane."""


class MaxPool3d(_MaxPool, dims=3):
    """The largest element of each window of (N, C, D, H, W); MaxPool3d((1, 1, 2))([[[[1., 2.]]]]) = [[[[2.]]]]."""


class _FractionalMaxPool(Spatial):
    kernel_size: tuple[Any, ...]
    return_indices: bool
    output_size: tuple[Any, ...] | None
    output_ratio: tuple[Any, ...] | None

    def __init__(
        self, kernel_size: Any, output_size: Any = None, output_ratio: Any = None, return_indices: bool = False, _random_samples: Any = None
    ) -> None:
        super().__init__()
        self.kernel_size, self.return_indices = several(kernel_size, self.dims), return_indices
        self.register_buffer("_random_samples", _random_samples)
        self.output_size = several(output_size, self.dims) if output_size is not None else None
        self.output_ratio = several(output_ratio, self.dims) if output_ratio is not None else None
        if output_size is None and output_ratio is None:
            raise ValueError(f"{type(self).__name__} requires specifying either an output size, or a pooling ratio")
        if output_size is not None and output_ratio is not None:
            raise ValueError("only one of output_size and output_ratio may be specified")
        if self.dims == 3 and any(isinstance(k, int) and k <= 0 for k in self.kernel_size):
            raise ValueError(f"kernel_size must be greater than 0, but got {kernel_size}")
        if self.output_ratio is not None and not (self.output_ratio and all(0 < r < 1 for r in self.output_ratio)):
            raise ValueError(f"output_ratio must be between 0 and 1 (got {output_ratio})")

    def forward(self, input: Tensor) -> Any:
        pool = getattr(F, f"fractional_max_pool{self.dims}d")
        return pool(input, self.kernel_size, self.output_size, self.output_ratio, self.return_indices, _random_samples=self._random_samples)


class FractionalMaxPool2d(_FractionalMaxPool, dims=2):
    """The largest elements of windows at random places of (N, C, H, W), as many as ``output_size`` or ``output_ratio`` says."""


class FractionalMaxPool3d(_FractionalMaxPool, dims=3):
    """The largest elements of windows at random places of (N, C, D, H, W), as many as ``output_size`` or ``output_ratio`` says."""


class _MaxUnpool(Spatial):
    kernel_size: tuple[Any, ...]
    stride: tuple[Any, ...]
    padding: tuple[Any, ...]

    def __init__(self, kernel_size: Any, stride: Any = None, padding: Any = 0) -> None:
        super().__init__()
        self.kernel_size = several(kernel_size, self.dims)
        self.stride = several(stride if stride is not None else kernel_size, self.dims)
        self.padding = several(padding, self.dims)

    def forward(self, input: Tensor, indices: Tensor, output_size: Any = None) -> Tensor:
        return getattr(F, f"max_unpool{self.dims}d")(input, indices, self.kernel_size, self.stride, self.padding, output_size)

    def extra_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class MaxUnpool1d(_MaxUnpool, dims=1):
    """Puts the elements that `MaxPool1d` found back where they were, zeros elsewhere."""


class MaxUnpool2d(_MaxUnpool, dims=2):
    """Puts the elements that `MaxPool2d` found back where they were, zeros elsewhere."""


class MaxUnpool3d(_MaxUnpool, dims=3):
    """Puts the elements that `MaxPool3d` found back where they were, zeros elsewhere."""


class AvgPool1d(Module):
    """The mean of each window of (N, C, L); AvgPool1d(2)([[1., 2.]]) = [[1.5000]]."""

    kernel_size: tuple[Any, ...]
    stride: tuple[Any, ...]
    padding: tuple[Any, ...]
    ceil_mode: bool
    count_include_pad: bool

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


class _AvgPool(Spatial):
    kernel_size: Any
    stride: Any
    padding: Any
    ceil_mode: bool
    count_include_pad: bool
    divisor_override: int | None

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


class AvgPool2d(_AvgPool, dims=2):
    """The mean of each window of (N, C, H, W); AvgPool2d((1, 2))([[[1., 2.]]]) = [[[1.5000]]]."""


class AvgPool3d(_AvgPool, dims=3):
    """The mean of each window of (N, C, D, H, W); AvgPool3d((1, 1, 2))([[[[1., 2.]]]]) = [[[[1.5000]]]]."""


class _LPPool(Spatial):
    norm_type: float
    kernel_size: Any
    stride: Any
    ceil_mode: bool

    def __init__(self, norm_type: float, kernel_size: Any, stride: Any = None, ceil_mode: bool = False) -> None:
        super().__init__()
        self.norm_type, self.kernel_size, self.stride, self.ceil_mode = norm_type, kernel_size, stride, ceil_mode

    def forward(self, input: Tensor) -> Tensor:
        return getattr(F, f"lp_pool{self.dims}d")(input, float(self.norm_type), self.kernel_size, self.stride, self.ceil_mode)

    def extra_repr(self) -> str:
        return f"norm_type={self.norm_type}, kernel_size={self.kernel_size}, stride={self.stride}, ceil_mode={self.ceil_mode}"


class LPPool1d(_LPPool, dims=1):
    """(Σ xᵖ)^(1/p) of each window of (N, C, L); LPPool1d(2, 2)([[3., 4.]]) = [[5.]]."""


class LPPool2d(_LPPool, dims=2):
    """(Σ xᵖ)^(1/p) of each window of (N, C, H, W); LPPool2d(2, (1, 2))([[[3., 4.]]]) = [[[5.]]]."""


class LPPool3d(_LPPool, dims=3):
    """(Σ xᵖ)^(1/p) of each window of (N, C, D, H, W); LPPool3d(2, (1, 1, 2))([[[[3., 4.]]]]) = [[[[5.]]]]."""


class _Adaptive(Spatial):
    output_size: Any

    def __init__(self, output_size: Any) -> None:
        super().__init__()
        self.output_size = output_size

    def extra_repr(self) -> str:
        return f"output_size={self.output_size}"


class _AdaptiveMax(_Adaptive):
    return_indices: bool

    def __init__(self, output_size: Any, return_indices: bool = False) -> None:
        super().__init__(output_size)
        self.return_indices = return_indices

    def forward(self, input: Tensor) -> Any:
        pool = getattr(F, f"adaptive_max_pool{self.dims}d")
        return pool(input, self.output_size, self.return_indices)


class AdaptiveMaxPool1d(_AdaptiveMax, dims=1):
    """Max pooling to a given output size; AdaptiveMaxPool1d(1)([[1., 2.]]) = [[2.]]."""


class AdaptiveMaxPool2d(_AdaptiveMax, dims=2):
    """Max pooling to a given output size; None keeps a dim's size; AdaptiveMaxPool2d(1)([[[1., 2.]]]) = [[[2.]]]."""


class AdaptiveMaxPool3d(_AdaptiveMax, dims=3):
    """Max pooling to a given output size; None keeps a dim's size; AdaptiveMaxPool3d(1)([[[[1., 2.]]]]) = [[[[2.]]]]."""


class _AdaptiveAvg(_Adaptive):
    def forward(self, input: Tensor) -> Tensor:
        return getattr(F, f"adaptive_avg_pool{self.dims}d")(input, self.output_size)


class AdaptiveAvgPool1d(_AdaptiveAvg, dims=1):
    """Average pooling to a given output size; AdaptiveAvgPool1d(1)([[1., 2.]]) = [[1.5000]]."""


class AdaptiveAvgPool2d(_AdaptiveAvg, dims=2):
    """Average pooling to a given output size; None keeps a dim's size; AdaptiveAvgPool2d(1)([[[1., 2.]]]) = [[[1.5000]]]."""


class AdaptiveAvgPool3d(_AdaptiveAvg, dims=3):
    """Average pooling to a given output size; None keeps a dim's size; AdaptiveAvgPool3d(1)([[[[1., 2.]]]]) = [[[[1.5000]]]]."""
