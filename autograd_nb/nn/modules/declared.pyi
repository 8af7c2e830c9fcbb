"""Modules that `simple.declare` and `lazy` make. Written by `make stubs`: change their declarations, not this file."""

from typing import Any

from ...tensor import Tensor
from . import conv, normalization
from .module import Module


class ReLU(Module):
    """max(x, 0)."""

    inplace: bool
    def __init__(self, inplace: bool = False) -> None: ...
    def forward(self, input: Tensor) -> Tensor: ...


class SiLU(Module):
    """x · sigmoid(x)."""

    inplace: bool
    def __init__(self, inplace: bool = False) -> None: ...
    def forward(self, input: Tensor) -> Tensor: ...


class Mish(Module):
    """x · tanh(softplus(x))."""

    inplace: bool
    def __init__(self, inplace: bool = False) -> None: ...
    def forward(self, input: Tensor) -> Tensor: ...


class SELU(Module):
    """Scaled exponential linear unit."""

    inplace: bool
    def __init__(self, inplace: bool = False) -> None: ...
    def forward(self, input: Tensor) -> Tensor: ...


class Hardsigmoid(Module):
    """clamp(x / 6 + 1/2, 0, 1)."""

    inplace: bool
    def __init__(self, inplace: bool = False) -> None: ...
    def forward(self, input: Tensor) -> Tensor: ...


class Hardswish(Module):
    """x · hardsigmoid(x)."""

    inplace: bool
    def __init__(self, inplace: bool = False) -> None: ...
    def forward(self, input: Tensor) -> Tensor: ...


class ELU(Module):
    """x above 0, alpha (eˣ - 1) below."""

    alpha: float
    inplace: bool
    def __init__(self, alpha: float = 1.0, inplace: bool = False) -> None: ...
    def forward(self, input: Tensor) -> Tensor: ...


class CELU(Module):
    """max(0, x) + min(0, alpha (exp(x / alpha) - 1))."""

    alpha: float
    inplace: bool
    def __init__(self, alpha: float = 1.0, inplace: bool = False) -> None: ...
    def forward(self, input: Tensor) -> Tensor: ...


class LeakyReLU(Module):
    """x above 0, negative_slope · x below."""

    negative_slope: float
    inplace: bool
    def __init__(self, negative_slope: float = 0.01, inplace: bool = False) -> None: ...
    def forward(self, input: Tensor) -> Tensor: ...


class Threshold(Module):
    """x above the threshold, ``value`` elsewhere."""

    threshold: float
    value: float
    inplace: bool
    def __init__(self, threshold: float, value: float, inplace: bool = False) -> None: ...
    def forward(self, input: Tensor) -> Tensor: ...


class GELU(Module):
    """x · Φ(x), or its tanh approximation."""

    approximate: str
    def __init__(self, approximate: str = 'none') -> None: ...
    def forward(self, input: Tensor) -> Tensor: ...


class GLU(Module):
    """The first half times the sigmoid of the second."""

    dim: int
    def __init__(self, dim: int = -1) -> None: ...
    def forward(self, input: Tensor) -> Tensor: ...


class Hardshrink(Module):
    """x where |x| > lambd, else 0."""

    lambd: float
    def __init__(self, lambd: float = 0.5) -> None: ...
    def forward(self, input: Tensor) -> Tensor: ...


class Softshrink(Module):
    """x moved towards 0 by lambd."""

    lambd: float
    def __init__(self, lambd: float = 0.5) -> None: ...
    def forward(self, input: Tensor) -> Tensor: ...


class Softplus(Module):
    """log(1 + exp(beta x)) / beta."""

    beta: float
    threshold: float
    def __init__(self, beta: float = 1.0, threshold: float = 20.0) -> None: ...
    def forward(self, input: Tensor) -> Tensor: ...


class Sigmoid(Module):
    """1 / (1 + e⁻ˣ)."""

    def __init__(self) -> None: ...
    def forward(self, input: Tensor) -> Tensor: ...


class Tanh(Module):
    """The hyperbolic tangent."""

    def __init__(self) -> None: ...
    def forward(self, input: Tensor) -> Tensor: ...


class LogSigmoid(Module):
    """log(sigmoid(x))."""

    def __init__(self) -> None: ...
    def forward(self, input: Tensor) -> Tensor: ...


class Softsign(Module):
    """x / (1 + |x|)."""

    def __init__(self) -> None: ...
    def forward(self, input: Tensor) -> Tensor: ...


class Tanhshrink(Module):
    """x - tanh(x)."""

    def __init__(self) -> None: ...
    def forward(self, input: Tensor) -> Tensor: ...


class Softmin(Module):
    """softmax(-x) over ``dim``."""

    dim: int | None
    def __init__(self, dim: int | None = None) -> None: ...
    def forward(self, input: Tensor) -> Tensor: ...


class Softmax(Module):
    """exp(x) / Σ exp(x) over ``dim``."""

    dim: int | None
    def __init__(self, dim: int | None = None) -> None: ...
    def forward(self, input: Tensor) -> Tensor: ...


class LogSoftmax(Module):
    """log of the softmax over ``dim``."""

    dim: int | None
    def __init__(self, dim: int | None = None) -> None: ...
    def forward(self, input: Tensor) -> Tensor: ...


class LazyConv1d(conv.Conv1d):
    """A `Conv1d` that takes its number of input channels from the first batch."""

    def __init__(self, out_channels: int, kernel_size: Any, stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups: int = 1, bias: bool = True, padding_mode: str = 'zeros', device: Any = None, dtype: Any = None) -> None: ...


class LazyConv2d(conv.Conv2d):
    """A `Conv2d` that takes its number of input channels from the first batch."""

    def __init__(self, out_channels: int, kernel_size: Any, stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups: int = 1, bias: bool = True, padding_mode: str = 'zeros', device: Any = None, dtype: Any = None) -> None: ...


class LazyConv3d(conv.Conv3d):
    """A `Conv3d` that takes its number of input channels from the first batch."""

    def __init__(self, out_channels: int, kernel_size: Any, stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups: int = 1, bias: bool = True, padding_mode: str = 'zeros', device: Any = None, dtype: Any = None) -> None: ...


class LazyConvTranspose1d(conv.ConvTranspose1d):
    """A `ConvTranspose1d` that takes its number of input channels from the first batch."""

    def __init__(self, out_channels: int, kernel_size: Any, stride: Any = 1, padding: Any = 0, output_padding: Any = 0, groups: int = 1, bias: bool = True, dilation: Any = 1, padding_mode: str = 'zeros', device: Any = None, dtype: Any = None) -> None: ...


class LazyConvTranspose2d(conv.ConvTranspose2d):
    """A `ConvTranspose2d` that takes its number of input channels from the first batch."""

    def __init__(self, out_channels: int, kernel_size: Any, stride: Any = 1, padding: Any = 0, output_padding: Any = 0, groups: int = 1, bias: bool = True, dilation: Any = 1, padding_mode: str = 'zeros', device: Any = None, dtype: Any = None) -> None: ...


class LazyConvTranspose3d(conv.ConvTranspose3d):
    """A `ConvTranspose3d` that takes its number of input channels from the first batch."""

    def __init__(self, out_channels: int, kernel_size: Any, stride: Any = 1, padding: Any = 0, output_padding: Any = 0, groups: int = 1, bias: bool = True, dilation: Any = 1, padding_mode: str = 'zeros', device: Any = None, dtype: Any = None) -> None: ...


class LazyBatchNorm1d(normalization.BatchNorm1d):
    """A `BatchNorm1d` that takes its number of input channels from the first batch."""

    def __init__(self, eps: float = 1e-05, momentum: float | None = 0.1, affine: bool = True, track_running_stats: bool = True, device: Any = None, dtype: Any = None, bias: bool = True) -> None: ...


class LazyBatchNorm2d(normalization.BatchNorm2d):
    """A `BatchNorm2d` that takes its number of input channels from the first batch."""

    def __init__(self, eps: float = 1e-05, momentum: float | None = 0.1, affine: bool = True, track_running_stats: bool = True, device: Any = None, dtype: Any = None, bias: bool = True) -> None: ...


class LazyBatchNorm3d(normalization.BatchNorm3d):
    """A `BatchNorm3d` that takes its number of input channels from the first batch."""

    def __init__(self, eps: float = 1e-05, momentum: float | None = 0.1, affine: bool = True, track_running_stats: bool = True, device: Any = None, dtype: Any = None, bias: bool = True) -> None: ...


class LazyInstanceNorm1d(normalization.InstanceNorm1d):
    """A `InstanceNorm1d` that takes its number of input channels from the first batch."""

    def __init__(self, eps: float = 1e-05, momentum: float | None = 0.1, affine: bool = True, track_running_stats: bool = True, device: Any = None, dtype: Any = None, bias: bool = True) -> None: ...


class LazyInstanceNorm2d(normalization.InstanceNorm2d):
    """A `InstanceNorm2d` that takes its number of input channels from the first batch."""

    def __init__(self, eps: float = 1e-05, momentum: float | None = 0.1, affine: bool = True, track_running_stats: bool = True, device: Any = None, dtype: Any = None, bias: bool = True) -> None: ...


class LazyInstanceNorm3d(normalization.InstanceNorm3d):
    """A `InstanceNorm3d` that takes its number of input channels from the first batch."""

    def __init__(self, eps: float = 1e-05, momentum: float | None = 0.1, affine: bool = True, track_running_stats: bool = True, device: Any = None, dtype: Any = None, bias: bool = True) -> None: ...
