"""Modules that rearrange pixels: padding, shuffles, upsampling, fold and unfold."""

from __future__ import annotations

from typing import Any

from ...tensor import Tensor
from .. import functional as F
from .module import Module
from .options import sizes


class _Pad(Module):
    padding: tuple[int, ...] | tuple[Any, ...]
    dims: int
    mode = "constant"

    def __init__(self, padding: Any) -> None:
        super().__init__()
        # one number for all sides; else left and right of the last dim first, as nn.functional.pad takes them
        self.padding = sizes(padding, 2 * self.dims, "padding", self)

    def forward(self, input: Tensor) -> Tensor:
        return F.pad(input, self.padding, self.mode)

    def extra_repr(self) -> str:
        return f"{self.padding}"


class _ConstantPad(_Pad):
    def __init__(self, padding: Any, value: float) -> None:
        super().__init__(padding)
        self.value = value

    def forward(self, input: Tensor) -> Tensor:
        return F.pad(input, self.padding, "constant", self.value)

    def extra_repr(self) -> str:
        return f"padding={self.padding}, value={self.value}"


class _ZeroPad(_ConstantPad):
    def __init__(self, padding: Any) -> None:
        super().__init__(padding, 0.0)

    def extra_repr(self) -> str:
        return f"{self.padding}"


class _CircularPad(_Pad):
    dims: int

    def forward(self, input: Tensor) -> Tensor:
        n = self.dims
        if input.ndim not in (n + 1, n + 2):
            raise ValueError(f"expected {n + 1}D or {n + 2}D input (got {input.ndim}D input)")
        return super().forward(input)


def _family(base: type, prefix: str, mode: str, text: str, shown: str) -> list[type]:
    """Return the classes for 1 to 3 dims; ``shown``: their arguments, and what they make of [1., 2.] with one element on the left."""
    options, result = shown.split(" → ")

    def doc(n: int) -> str:
        zeros, opened, closed = "0, " * (2 * n - 1), "[" * (n + 1), "]" * (n + 1)
        example = f"{prefix}{n}d((1, {zeros[:-2]}){options})({opened}1., 2.{closed}) = {opened}{result}{closed}"
        return f"Pads the last {n} dim(s) {text}; {example}."

    return [type(f"{prefix}{n}d", (base,), {"dims": n, "mode": mode, "__module__": __name__, "__doc__": doc(n)}) for n in (1, 2, 3)]


ConstantPad1d: type[_ConstantPad]
ConstantPad2d: type[_ConstantPad]
ConstantPad3d: type[_ConstantPad]
ConstantPad1d, ConstantPad2d, ConstantPad3d = _family(_ConstantPad, "ConstantPad", "constant", "with one value", ", 7. → 7., 1., 2.")
ZeroPad1d: type[_ZeroPad]
ZeroPad2d: type[_ZeroPad]
ZeroPad3d: type[_ZeroPad]
ZeroPad1d, ZeroPad2d, ZeroPad3d = _family(_ZeroPad, "ZeroPad", "constant", "with zeros", " → 0., 1., 2.")
ReflectionPad1d: type[_Pad]
ReflectionPad2d: type[_Pad]
ReflectionPad3d: type[_Pad]
ReflectionPad1d, ReflectionPad2d, ReflectionPad3d = _family(_Pad, "ReflectionPad", "reflect", "by reflection at the edge", " → 2., 1., 2.")
ReplicationPad1d: type[_Pad]
ReplicationPad2d: type[_Pad]
ReplicationPad3d: type[_Pad]
ReplicationPad1d, ReplicationPad2d, ReplicationPad3d = _family(_Pad, "ReplicationPad", "replicate", "with the edge's value", " → 1., 1., 2.")
CircularPad1d: type[_CircularPad]
CircularPad2d: type[_CircularPad]
CircularPad3d: type[_CircularPad]
CircularPad1d, CircularPad2d, CircularPad3d = _family(_CircularPad, "CircularPad", "circular", "from the other side", " → 2., 1., 2.")


class PixelShuffle(Module):
    """(N, C r², H, W) → (N, C, H r, W r); PixelShuffle(2)([[[1.]], [[2.]], [[3.]], [[4.]]]) = [[[1., 2.], [3., 4.]]]."""

    def __init__(self, upscale_factor: int) -> None:
        super().__init__()
        self.upscale_factor = upscale_factor

    def forward(self, input: Tensor) -> Tensor:
        return F.pixel_shuffle(input, self.upscale_factor)

    def extra_repr(self) -> str:
        return f"upscale_factor={self.upscale_factor}"


class PixelUnshuffle(Module):
    """(N, C, H r, W r) → (N, C r², H, W); PixelUnshuffle(2)([[[1., 2.], [3., 4.]]]).flatten() = [1., 2., 3., 4.]."""

    def __init__(self, downscale_factor: int) -> None:
        super().__init__()
        self.downscale_factor = downscale_factor

    def forward(self, input: Tensor) -> Tensor:
        return F.pixel_unshuffle(input, self.downscale_factor)

    def extra_repr(self) -> str:
        return f"downscale_factor={self.downscale_factor}"


class ChannelShuffle(Module):
    """Takes channels of ``groups`` groups in turn."""

    def __init__(self, groups: int) -> None:
        super().__init__()
        self.groups = groups

    def forward(self, input: Tensor) -> Tensor:
        return F.channel_shuffle(input, self.groups)

    def extra_repr(self) -> str:
        return f"groups={self.groups}"


class Upsample(Module):
    """Resizes the spatial dims to ``size``, or by ``scale_factor``."""

    name: str
    mode: str
    align_corners: bool | None
    recompute_scale_factor: bool | None

    def __init__(
        self, size: Any = None, scale_factor: Any = None, mode: str = "nearest", align_corners: bool | None = None,
        recompute_scale_factor: bool | None = None,
    ) -> None:  # fmt: skip
        super().__init__()
        self.name = type(self).__name__
        self.size = size
        if isinstance(scale_factor, tuple):
            self.scale_factor: Any = tuple(float(f) for f in scale_factor)
        else:
            self.scale_factor = float(scale_factor) if scale_factor else None
        self.mode, self.align_corners, self.recompute_scale_factor = mode, align_corners, recompute_scale_factor

    def forward(self, input: Tensor) -> Tensor:
        return F.interpolate(
            input, self.size, self.scale_factor, self.mode, self.align_corners, recompute_scale_factor=self.recompute_scale_factor
        )

    def extra_repr(self) -> str:
        first = f"scale_factor={self.scale_factor!r}" if self.scale_factor is not None else f"size={self.size!r}"
        return f"{first}, mode={self.mode!r}"


class UpsamplingNearest2d(Upsample):
    """`Upsample` of (N, C, H, W) by nearest neighbours."""

    def __init__(self, size: Any = None, scale_factor: Any = None) -> None:
        super().__init__(size, scale_factor, mode="nearest")


class UpsamplingBilinear2d(Upsample):
    """`Upsample` of (N, C, H, W) by bilinear interpolation with aligned corners."""

    def __init__(self, size: Any = None, scale_factor: Any = None) -> None:
        super().__init__(size, scale_factor, mode="bilinear", align_corners=True)


class Unfold(Module):
    """The windows of (N, C, H, W) as columns; Unfold(1)([[[[1., 2.]]]]) = [[[1., 2.]]]."""

    kernel_size: Any
    dilation: Any
    padding: Any
    stride: Any

    def __init__(self, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1) -> None:
        super().__init__()
        self.kernel_size, self.dilation, self.padding, self.stride = kernel_size, dilation, padding, stride

    def forward(self, input: Tensor) -> Tensor:
        return F.unfold(input, self.kernel_size, self.dilation, self.padding, self.stride)

    def extra_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, dilation={self.dilation}, padding={self.padding}, stride={self.stride}"


class Fold(Module):
    """The sum of columns put back as windows of an image of ``output_size``."""

    kernel_size: Any
    dilation: Any
    padding: Any
    stride: Any

    def __init__(self, output_size: Any, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1) -> None:
        super().__init__()
        self.output_size = output_size
        self.kernel_size, self.dilation, self.padding, self.stride = kernel_size, dilation, padding, stride

    def forward(self, input: Tensor) -> Tensor:
        return F.fold(input, self.output_size, self.kernel_size, self.dilation, self.padding, self.stride)

    def extra_repr(self) -> str:
        return (
            f"output_size={self.output_size}, kernel_size={self.kernel_size}, dilation={self.dilation}, padding={self.padding}, "
            f"stride={self.stride}"
        )
