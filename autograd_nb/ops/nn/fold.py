"""Sliding windows of images as columns (im2col), and their sum (col2im): each is the other's derivative.

Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.Unfold.html
"""

from __future__ import annotations

from typing import Any

from ... import dtypes
from ...launch import Kernel
from ...shapes import numel
from ...tensor import Tensor
from ..core.registry import public
from ..core.structured import structured, tensor_argument
from ..creation.cast import dense, in_float32
from ..creation.create import new_empty
from .conv import tuple_of
from .conv_ways import FOLD

_UNFOLD = Kernel("nn.fold", "unfold")


def _geometry(image: tuple[int, ...], blocks: tuple[int, ...], how: tuple[Any, ...]) -> tuple[int, ...]:
    kernel, dilation, padding, stride = how
    return (1, *image, 1, *blocks, 1, *kernel, 1, *stride, 0, *padding, 1, *dilation)


@structured(
    x=lambda g, x_shape, blocks, how: _fold(g, tuple(x_shape[2:]), blocks, how), node="Im2ColBackward0",
    linear="no", batch="samples",
    dtypes="half float complex bool", samples="F.unfold(x(1, 2, 4, 5), 2)",
)
def _unfold(x, blocks, how):
    n, c, *image = x.shape
    y = new_empty((n, c * numel(how[0]), numel(blocks)), x.dtype)
    if y._layout.size:
        _UNFOLD(x.dtype, n, c, _geometry(tuple(image), blocks, how), dense(x), y._data)
    return y


@structured(
    x=lambda g, blocks, how: _unfold(g, blocks, how), node="Col2ImBackward0", linear="no", batch="samples",
    dtypes="half float complex bool", samples="F.fold(x(1, 8, 12), (4, 5), 2)",
)
def _fold(x, image, blocks, how):
    if x.dtype.is_half:
        return in_float32(_fold.forward, x, image, blocks, how)
    y = new_empty((x.shape[0], x.shape[1] // numel(how[0]), *image), x.dtype)
    FOLD(x.dtype, x.shape[0], y.shape[1], _geometry(image, blocks, how), dense(x), y._data)
    return y


def _windows(op: str, kernel_size: Any, dilation: Any, padding: Any, stride: Any) -> tuple[Any, ...]:
    """Return (kernel, dilation, padding, stride), two ints each."""
    given = ((kernel_size, "kernel_size"), (dilation, "dilation"), (padding, "padding"), (stride, "stride"))
    how = [tuple_of((v, v) if v.__class__ is int else v, 2, n, op) for v, n in given]
    for (h, w), name, what in zip(how, ("kernel", "dilation", "pad", "stride"), ("kernel size", "dilation", "padding", "stride"), strict=True):
        if name == "pad":
            if h < 0 or w < 0:
                raise RuntimeError(f"padding should be non-negative, but got pad_height: {h} pad_width: {w}")
        elif h <= 0 or w <= 0:
            raise RuntimeError(f"{what} should be greater than zero, but got {name}_height: {h} {name}_width: {w}")
    return tuple(how)


def _blocks(image: tuple[int, ...], how: tuple[Any, ...]) -> tuple[int, ...]:
    return tuple((n + 2 * p - d * (k - 1) - 1) // s + 1 for n, k, d, p, s in zip(image, *how, strict=True))


def _numbers(x: Tensor, op: str) -> None:
    if x.dtype.category < 2 and x.dtype is not dtypes.bool_:
        raise NotImplementedError(f'"{op}" not implemented for {x.dtype}; use floating point tensors')


@public(method=False, namespaces=("nn.functional",), name="nn.functional.unfold")
def unfold(input, kernel_size, dilation=1, padding=0, stride=1):
    """Return the windows of images as columns: (N, C, H, W) → (N, C·∏ kernel_size, L), L the number of places of the window.

    Sizes are ints or pairs; outside the image stand zeros. The gradient is `fold`.

    Errors: RuntimeError naming what does not fit.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.unfold.html

    >>> torch.nn.functional.unfold(torch.arange(6.0).reshape(1, 1, 2, 3), 2).shape
    torch.Size([1, 4, 2])
    """
    x = tensor_argument(input, "unfold")
    _numbers(x, "im2col")
    how = _windows("unfold", kernel_size, dilation, padding, stride)
    if x.ndim < 3:
        raise IndexError(f"Dimension out of range: unfold() expects 3D or 4D input, but got {list(x.shape)}")
    if x.ndim not in (3, 4) or any(m == 0 for m in x.shape[-3:]):
        raise RuntimeError(
            "Expected 3D or 4D (batch mode) tensor with possibly 0 batch size and other non-zero dimensions for input, but got: "
            f"{list(x.shape)}"
        )
    blocks = _blocks(tuple(x.shape[-2:]), how)
    if min(blocks) < 1:
        kernel, d, p, s = how
        raise RuntimeError(
            f"Given input with spatial size {tuple(x.shape[-2:])}, kernel_size={kernel}, dilation={d}, padding={p}, stride={s}, calculated "
            f"shape of the array of sliding blocks as {blocks}, but its components must be at least one."
        )
    if max(blocks) >= 1 << 63:
        raise RuntimeError(f"unfold(): the number of sliding blocks overflows 64 bits (padding={how[2]}, dilation={how[1]})")
    return _unfold(x, blocks, how) if x.ndim == 4 else _unfold(x.unsqueeze(0), blocks, how).squeeze(0)


@public(method=False, namespaces=("nn.functional",))
def fold(input, output_size, kernel_size, dilation=1, padding=0, stride=1):
    """Return columns added up to images, values of overlapping windows summed: (N, C·∏ kernel_size, L) → (N, C, *output_size).

    The transpose of `unfold`, which is its gradient. Errors: RuntimeError naming what does not fit.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.fold.html

    >>> torch.nn.functional.fold(torch.ones(1, 4, 2), (2, 3), 2)
    tensor([[[[1., 2., 1.],
              [1., 2., 1.]]]])
    """
    x = tensor_argument(input, "fold")
    _numbers(x, "col2im")
    image = tuple_of((output_size,) * 2 if output_size.__class__ is int else output_size, 2, "output_size", "fold")
    how = _windows("fold", kernel_size, dilation, padding, stride)
    if min(image) < 1:
        raise RuntimeError(f"Expected output spatial size to be positive, but got: output_size={image}")
    if x.ndim not in (2, 3) or any(m == 0 for m in x.shape[-2:]):
        raise RuntimeError(
            "Expected 2D or 3D (batch mode) tensor for input with possibly 0 batch size and non-zero dimensions for input, but got: "
            f"{list(x.shape)}"
        )
    if x.shape[-2] % numel(how[0]):
        raise RuntimeError(
            "Expected size of input's dimension 1 to be divisible by the product of kernel_size, but got input.size(1)="
            f"{x.shape[-2]} and kernel_size={how[0]}."
        )
    blocks = _blocks(image, how)
    kernel, d, p, s = how
    about = f"Given output_size={image}, kernel_size={kernel}, dilation={d}, padding={p}, stride={s}"
    if min(blocks) < 1:
        raise RuntimeError(f"{about}, calculated shape of the array of sliding blocks as {blocks}, which is too small (non-positive)")
    if x.shape[-1] != numel(blocks):
        raise RuntimeError(
            f"{about}, expected size of input's dimension 2 to match the calculated number of sliding blocks {blocks[0]} * {blocks[1]} = "
            f"{numel(blocks)}, but got input.size(2)={x.shape[-1]}."
        )
    return _fold(x, image, blocks, how) if x.ndim == 3 else _fold(x.unsqueeze(0), image, blocks, how).squeeze(0)
