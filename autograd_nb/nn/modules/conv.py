"""Convolutions and transposed convolutions in one, two and three dims.

Source: https://docs.pytorch.org/docs/stable/nn.html#convolution-layers
"""

from __future__ import annotations

import math
from typing import Any

from ...tensor import Tensor
from .. import functional as F
from .. import init
from .options import Spatial, parameter, several, sizes

_PADDING_MODES = ("zeros", "reflect", "replicate", "circular")


class _ConvNd(Spatial):
    weight: Tensor
    bias: Tensor | None
    in_channels: int
    out_channels: int
    kernel_size: tuple[Any, ...]
    stride: tuple[Any, ...]
    padding: str | tuple[Any, ...]
    dilation: tuple[Any, ...]
    groups: int
    transposed = False
    output_padding: tuple[Any, ...]

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: Any, stride: Any, padding: Any, dilation: Any, output_padding: Any,
        groups: int, bias: bool, padding_mode: str, device: Any, dtype: Any,
    ) -> None:  # fmt: skip
        super().__init__()
        if groups <= 0:
            raise ValueError(f"groups must be a positive integer (groups={groups})")
        for name, channels in (("in_channels", in_channels), ("out_channels", out_channels)):
            if channels % groups:
                raise ValueError(f"{name} must be divisible by groups ({name}={channels}, groups={groups})")
        if isinstance(padding, str):
            if self.transposed:
                raise TypeError(f"conv_transpose{self.dims}d(): argument 'padding' must be tuple of ints, not str (padding={padding!r})")
            if padding not in ("valid", "same"):
                raise ValueError(f"Invalid padding string '{padding}', should be one of 'valid', 'same'")
            if padding == "same" and any(s != 1 for s in several(stride, self.dims)):
                raise ValueError("padding='same' is not supported for strided convolutions")
        if padding_mode not in _PADDING_MODES:
            raise ValueError(f"padding_mode must be one of {_PADDING_MODES}, but got padding_mode='{padding_mode}'")
        n = self.dims
        self.in_channels, self.out_channels = in_channels, out_channels
        self.kernel_size, self.stride = several(kernel_size, n), sizes(stride, n, "stride", self)
        self.padding = padding if isinstance(padding, str) else sizes(padding, n, "padding", self)
        self.dilation, self.output_padding = sizes(dilation, n, "dilation", self), sizes(output_padding, n, "output_padding", self)
        self.groups, self.padding_mode = groups, padding_mode
        filters = (in_channels, out_channels // groups) if self.transposed else (out_channels, in_channels // groups)
        self.weight = parameter((*filters, *self.kernel_size), dtype, device)
        self._reversed_padding_repeated_twice = self._padding_of_sides()
        self.register_parameter("bias", parameter((out_channels,), dtype, device) if bias else None)
        self.reset_parameters()

    def _padding_of_sides(self) -> list[int]:
        """Return padding as `nn.functional.pad` takes it: left and right of the last dim first."""
        if isinstance(self.padding, tuple):
            return [p for p in reversed(self.padding) for _ in range(2)]
        out: list[int] = []
        for size, step in zip(reversed(self.kernel_size), reversed(self.dilation), strict=True):
            total = step * (size - 1) if self.padding == "same" else 0
            out += [total // 2, total - total // 2]
        return out

    def reset_parameters(self) -> None:
        """Draw weight and bias anew, uniform within ±1/√fan_in."""
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None:
            fan_in, _ = init._calculate_fan_in_and_fan_out(self.weight)
            if fan_in != 0:
                bound = 1 / math.sqrt(fan_in)
                init.uniform_(self.bias, -bound, bound)

    def extra_repr(self) -> str:
        s = f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, stride={self.stride}"
        zeros, ones = (0,) * self.dims, (1,) * self.dims
        if self.padding != zeros:
            s += f", padding={self.padding}"
        if self.dilation != ones:
            s += f", dilation={self.dilation}"
        if self.output_padding != zeros:
            s += f", output_padding={self.output_padding}"
        if self.groups != 1:
            s += f", groups={self.groups}"
        if self.bias is None:
            s += ", bias=False"
        if self.padding_mode != "zeros":
            s += f", padding_mode={self.padding_mode}"
        return s


class _Conv(_ConvNd):
    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: Any, stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups: int = 1,
        bias: bool = True, padding_mode: str = "zeros", device: Any = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__(in_channels, out_channels, kernel_size, stride, padding, dilation, 0, groups, bias, padding_mode, device, dtype)

    def forward(self, input: Tensor) -> Tensor:
        return self._conv_forward(input, self.weight, self.bias)

    def _conv_forward(self, input: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        convolve = getattr(F, f"conv{self.dims}d")
        padding = self.padding
        if self.padding_mode != "zeros":
            input = F.pad(input, self._reversed_padding_repeated_twice, mode=self.padding_mode)
            padding = (0,) * self.dims
        return convolve(input, weight, bias, self.stride, padding, self.dilation, self.groups)


class Conv1d(_Conv, dims=1):
    """Cross-correlation of (N, C, L) or (C, L) with learned filters (out_channels, in_channels / groups, k).

    >>> torch.nn.Conv1d(1, 2, 3)(torch.tensor([[0., 1., 2., 3.]])).shape
    torch.Size([2, 2])
    """


class Conv2d(_Conv, dims=2):
    """Cross-correlation of (N, C, H, W) or (C, H, W) with learned filters (out_channels, in_channels / groups, kH, kW).

    padding: an int, a tuple, "same" or "valid"; padding_mode: "zeros", "reflect", "replicate", "circular".
    Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.Conv2d.html

    >>> torch.nn.Conv2d(3, 8, 3, padding=1)(torch.ones(1, 3, 4, 4)).shape
    torch.Size([1, 8, 4, 4])
    """


class Conv3d(_Conv, dims=3):
    """Cross-correlation of (N, C, D, H, W) or (C, D, H, W) with learned filters; Conv3d(1, 2, 1)([[[[0.]]]]).shape = torch.Size([2, 1, 1, 1])."""


class _ConvTransposed(_ConvNd):
    transposed = True

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: Any, stride: Any = 1, padding: Any = 0, output_padding: Any = 0,
        groups: int = 1, bias: bool = True, dilation: Any = 1, padding_mode: str = "zeros", device: Any = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        if padding_mode != "zeros":
            raise ValueError(f'Only "zeros" padding mode is supported for {type(self).__name__}')
        super().__init__(
            in_channels, out_channels, kernel_size, stride, padding, dilation, output_padding, groups, bias, padding_mode, device, dtype
        )

    def _output_padding(self, input: Tensor, output_size: Any) -> tuple[Any, ...]:
        """Return the output padding that gives ``output_size``. ValueError where none does."""
        if output_size is None:
            return self.output_padding
        n = self.dims
        size = list(output_size)
        if len(size) == input.ndim:
            size = size[-n:]
        if len(size) != n:
            raise ValueError(
                f"ConvTranspose{n}D: for {input.ndim}D input, output_size must have {n} or {input.ndim} elements (got {len(size)})"
            )
        out = []
        for d in range(n):
            least = (
                (input.shape[input.ndim - n + d] - 1) * self.stride[d] - 2 * self.padding[d]
                + self.dilation[d] * (self.kernel_size[d] - 1) + 1
            )  # fmt: skip
            if not least <= size[d] <= least + self.stride[d] - 1:
                raise ValueError(
                    f"requested an output size of {size}, but valid sizes range from {least} to {least + self.stride[d] - 1} in dim {d}"
                )
            out.append(size[d] - least)
        return tuple(out)

    def forward(self, input: Tensor, output_size: Any = None) -> Tensor:
        convolve = getattr(F, f"conv_transpose{self.dims}d")
        extra = self._output_padding(input, output_size)
        return convolve(input, self.weight, self.bias, self.stride, self.padding, extra, self.groups, self.dilation)


class ConvTranspose1d(_ConvTransposed, dims=1):
    """The transpose (gradient by the input) of `Conv1d`."""


class ConvTranspose2d(_ConvTransposed, dims=2):
    """The transpose (gradient by the input) of `Conv2d`; ``output_size`` in the call chooses among possible sizes."""


class ConvTranspose3d(_ConvTransposed, dims=3):
    """The transpose (gradient by the input) of `Conv3d`."""
