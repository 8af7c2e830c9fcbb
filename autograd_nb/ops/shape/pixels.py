"""Rearranging pixels and channels; copies of views, so that gradients follow by themselves."""

from __future__ import annotations

from typing import Any

from ... import strides
from ...shapes import as_int
from ...tensor import Tensor
from ..core.marked import MARKED
from ..core.recording import not_for_limited
from ..core.registry import public
from ..core.structured import tensor_argument
from ..creation.cast import _clones

_WHERE = ("torch", "nn.functional")


def _own(y: Tensor, x: Tensor) -> Tensor:
    """Return the result in the operand's format and in memory of its own, also where its elements lie as the operand's do."""
    name = strides.suggested(x._layout)
    if name != "contiguous_format":
        return _clones[name](y)
    return y if y._view is None and y.__class__ not in MARKED and strides.is_in(y._layout, name) else _clones[name](y)


def _image(input: Any, factor: Any, name: str, factor_name: str) -> tuple[Tensor, int]:
    """Return the image and the factor of a shuffle, checked."""
    x, r = tensor_argument(input, name), as_int(factor, factor_name)
    not_for_limited(name, x.dtype)
    if x.ndim < 3:
        raise RuntimeError(f"{name} expects input to have at least 3 dimensions, but got input with {x.ndim} dimension(s)")
    if r <= 0:
        raise RuntimeError(f"{name} expects a positive {factor_name}, but got {r}")
    return x, r


@public(method=False, namespaces=_WHERE)
def pixel_shuffle(input, upscale_factor):
    """Return (…, C r², H, W) → (…, C, H r, W r). RuntimeError unless the channels divide by r².

    Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.PixelShuffle.html

    >>> torch.pixel_shuffle(torch.arange(4).reshape(1, 4, 1, 1), 2)
    tensor([[[[0, 1],
              [2, 3]]]])
    """
    x, r = _image(input, upscale_factor, "pixel_shuffle", "upscale_factor")
    *lead, c, h, w = x.shape
    if c % (r * r):
        raise RuntimeError(
            "pixel_shuffle expects its input's 'channel' dimension to be divisible by the square of upscale_factor, but "
            f"input.size(-3)={c} is not divisible by {r * r}"
        )
    n = len(lead)
    y = x.reshape(*lead, c // (r * r), r, r, h, w).permute(*range(n), n, n + 3, n + 1, n + 4, n + 2)
    return _own(y.reshape(*lead, c // (r * r), h * r, w * r), x)


@public(method=False, namespaces=_WHERE)
def pixel_unshuffle(input, downscale_factor):
    """Return (…, C, H r, W r) → (…, C r², H, W). RuntimeError unless height and width divide by r.

    Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.PixelUnshuffle.html

    >>> torch.pixel_unshuffle(torch.arange(4).reshape(1, 1, 2, 2), 2).flatten()
    tensor([0, 1, 2, 3])
    """
    x, r = _image(input, downscale_factor, "pixel_unshuffle", "downscale_factor")
    *lead, c, h, w = x.shape
    if not x._layout.size:  # PyTorch gives it back as it is
        return x.clone()
    for name, d, size in (("height", -2, h), ("width", -1, w)):
        if size % r:
            raise RuntimeError(
                f"pixel_unshuffle expects {name} to be divisible by downscale_factor, but input.size({d})={size} is not divisible by {r}"
            )
    n = len(lead)
    y = x.reshape(*lead, c, h // r, r, w // r, r).permute(*range(n), n, n + 2, n + 4, n + 1, n + 3)
    return _own(y.reshape(*lead, c * r * r, h // r, w // r), x)


@public("native_channel_shuffle", method=False, namespaces=_WHERE)
def channel_shuffle(input, groups):
    """Return the channels (dim 1) of ``groups`` groups, taken in turn; the gradient is put back. RuntimeError unless they divide by it.

    Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.ChannelShuffle.html

    >>> torch.channel_shuffle(torch.arange(4).reshape(1, 4, 1, 1), 2).flatten()
    tensor([0, 2, 1, 3])
    """
    x = tensor_argument(input, "channel_shuffle")
    not_for_limited("channel_shuffle", x.dtype)
    g = as_int(groups, "groups")
    if x.ndim <= 2:
        raise RuntimeError(
            f"channel_shuffle expects input with > 2 dims, but got input with sizes {list(x.shape)}"
        )
    if g <= 0:
        raise RuntimeError(f"Number of groups to divide channels in must be positive. Value of groups:{g}")
    n, c, *rest = x.shape
    if c % g:
        raise RuntimeError(f"Number of channels must be divisible by groups. Got {c} channels and {g} groups.")
    return _own(x.reshape(n, g, c // g, *rest).transpose(1, 2).reshape(n, c, *rest), x)
