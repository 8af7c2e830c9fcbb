"""Resizing of images, volumes and sequences. Every mode is linear in its input, so its transpose is the derivative.

Source: Keys, Cubic convolution interpolation for digital image processing (1981);
https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.interpolate.html
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from operator import index as as_index
from typing import Any

import numpy as np

from ... import dtypes, launch
from ...errors import warn_user
from ...shapes import numel
from ...tensor import Tensor
from ..core.numbers import bool_argument, float_argument, text_argument
from ..core.registry import OPS, public
from ..core.structured import structured, tensor_argument
from ..creation.cast import dense, images
from ..creation.create import new_empty

_NEAREST_TABLE = launch.Kernel("nn.interpolate", "nearest_table")
_TABLE = launch.Kernel("nn.interpolate", "table", outputs=3)
_BYTE_TABLE = launch.Kernel("nn.interpolate", "byte_table", outputs=5)
_RESAMPLE = launch.Kernel("nn.interpolate", "resample")
_RESAMPLE_BYTES = launch.Kernel("nn.interpolate", "resample_bytes")
_RESAMPLE_BACK = launch.Kernel("nn.interpolate", "resample_back")
_NEAREST = launch.Kernel("nn.interpolate", "nearest")
_NEAREST_BACK = launch.Kernel("nn.interpolate", "nearest_back")

# numbers of the modes in the kernels, and PyTorch's names of their nodes
_MODES = {"nearest": 0, "nearest-exact": 1, "linear": 2, "bilinear": 2, "trilinear": 2, "bicubic": 3}
_SMOOTH = {"bilinear": 4, "bicubic": 5, "lanczos": 6}
_NODES = {
    0: "UpsampleNearest{n}DBackward0", 1: "UpsampleNearestExact{n}DBackward0", 2: "Upsample{linear}{n}DBackward0",
    3: "UpsampleBicubic2DBackward0", 4: "UpsampleBilinear2DAaBackward0", 5: "UpsampleBicubic2DAaBackward0", 6: "UpsampleLanczos2DAaBackward0",
}  # fmt: skip


@lru_cache(256)
def _nearest_index(mode: int, sizes: tuple[int, ...], scales: tuple[float, ...]) -> np.ndarray:
    """Return the joined tables of `kernels.nn.interpolate.nearest`; sizes: (depth, height, width) before and after."""
    index = launch.empty(sum(sizes[3:]), np.dtype(np.int64))
    at = 0
    for d in (2, 1, 0):
        _NEAREST_TABLE(0, mode == 1, sizes[d], sizes[3 + d], scales[d], index[at:])
        at += sizes[3 + d]
    return index


def _taps(mode: int, n_in: int, n_out: int, scale: float, aligned: bool) -> int:
    """Return how many inputs an output may read; 0 if the dim stays as it is."""
    if mode < 4:
        return 0 if n_in == n_out and mode == 2 else 2 * (mode - 1)
    if n_in == n_out:
        return 0
    step = ((n_in - 1) / (n_out - 1) if n_out > 1 else 0.0) if aligned else scale or n_in / n_out
    return math.ceil((mode - 3) * max(step, 1.0)) * 2 + 1


@lru_cache(256)
def _tables(mode: int, aligned: bool, sizes: tuple[int, ...], scales: tuple[float, ...], d: dtypes.dtype) -> tuple[Any, ...]:
    """Return (taps of each dim, count, index, weight) of `kernels.nn.interpolate.resample`."""
    # a dim of size 1 that is there to make three is left alone, as any that keeps its size
    taps = tuple(_taps(mode, sizes[k], sizes[3 + k], scales[k], aligned) if scales[k] >= 0 else 0 for k in range(3))
    total = sum(t * n for t, n in zip(taps, sizes[3:], strict=True))
    count, index = launch.empty(sum(sizes[3:]), np.dtype(np.int64)), launch.empty(total, np.dtype(np.int64))
    weight = launch.empty(total, d.carrier)
    at = start = 0
    for k in (2, 1, 0):
        if taps[k]:
            _TABLE(d, mode, sizes[k], sizes[3 + k], scales[k], aligned, taps[k], count[at:], index[start:], weight[start:])
        at += sizes[3 + k]
        start += taps[k] * sizes[3 + k]
    return taps, count, index, weight


@lru_cache(256)
def _byte_tables(mode: int, aligned: bool, sizes: tuple[int, ...], scales: tuple[float, ...]) -> tuple[Any, ...]:
    """Return (taps of each dim, count, index, weight, bits) of `kernels.nn.interpolate.resample_bytes`."""
    scales = tuple(-1.0 if sizes[k] == sizes[3 + k] else scales[k] for k in range(3))  # whatever the factor, such a dim stays
    taps, count, index, weight = _tables(mode, aligned, sizes, scales, dtypes.float64)
    total = launch.empty(weight.size, weight.dtype)
    used, place, whole, bits = (launch.empty(n, count.dtype) for n in (count.size, index.size, index.size, 2))
    at = start = 0
    for k in (2, 1):
        if taps[k]:
            source, made = (count[at:], index[start:], weight[start:]), (used[at:], place[start:], total[start:], whole[start:])
            _BYTE_TABLE(0, sizes[3 + k], taps[k], *source, *made, bits[2 - k:])
        at += sizes[3 + k]
        start += taps[k] * sizes[3 + k]
    return taps, used, place, whole, bits


def _three(sizes: Sequence[int]) -> tuple[int, ...]:
    return (1,) * (3 - len(sizes)) + tuple(sizes)


def _sample(mode: int, n: int) -> str:
    """Return what the tests run the op of a mode with."""
    name = ("nearest", "nearest-exact", ("linear", "bilinear", "trilinear")[n - 1], "bicubic", "bilinear", "bicubic", "lanczos")[mode]
    return f'F.interpolate(x(1, 2{", 3" * n}), scale_factor=2, mode="{name}"{", antialias=True" * (mode > 3)})'


@lru_cache(64)
def _operation(mode: int, n: int) -> Any:
    """Return the op of a mode over n dims: (x, sizes, scales, aligned), differentiable as often as wanted."""

    @images(4, 5, wide=True)
    def resize(x, sizes, scales, aligned, kernels, before, after):
        y = new_empty((*x.shape[:2], *sizes), x.dtype)
        geometry = (*_three(before), *_three(after))
        scales = (-1.0,) * (3 - n) + scales  # −1 marks what is no dim of the tensor
        planes = numel(x.shape[:2])
        if mode < 2:
            if mode == 0 and n == 2:  # where a size stays or doubles PyTorch does not look at the factor of an image
                scales = tuple(0.0 if geometry[3 + k] in (geometry[k], 2 * geometry[k]) else scales[k] for k in range(3))
            kernels[0](x.dtype, planes, geometry, _nearest_index(mode, geometry, scales), dense(x), y._data)
        elif x.dtype is dtypes.uint8:
            _RESAMPLE_BYTES(0, planes, geometry, *_byte_tables(mode, aligned, geometry, scales), dense(x), y._data)
        else:
            kernels[1](x.dtype, planes, geometry, *_tables(mode, aligned, geometry, scales, x.dtype), dense(x), y._data)
        return y

    node = _NODES[mode].format(n=n, linear=("", "Linear", "Bilinear", "Trilinear")[n])

    @structured(
        x=lambda g, x_shape, scales, aligned: backward(g, tuple(x_shape[2:]), scales, aligned), node=node,
        linear="no", batch="samples", dtypes="half float", samples=_sample(mode, n),
    )
    def forward(x, sizes, scales, aligned):
        return resize(x, sizes, scales, aligned, (_NEAREST, _RESAMPLE), x.shape[2:], sizes)

    @structured(
        x=lambda g, x_shape, scales, aligned: forward(g, tuple(x_shape[2:]), scales, aligned), node=node.replace("Backward0", "BackwardBackward0"),
        linear="no", batch="samples",
    )
    def backward(x, sizes, scales, aligned):
        return resize(x, sizes, scales, aligned, (_NEAREST_BACK, _RESAMPLE_BACK), sizes, x.shape[2:])

    return forward


def _is_integer(value: Any) -> bool:
    try:
        as_index(value)
    except TypeError:
        return False
    return not isinstance(value, bool)


def _wanted_sizes(x: Tensor, size: Any, scale_factor: Any) -> tuple[Any, Any]:
    """Return (sizes, None) or (None, factors), one for each spatial dim."""
    n = x.ndim - 2
    if n < 0 and not isinstance(scale_factor if size is None else size, (tuple, list)):
        raise NotImplementedError(f"Input Error: Only 3D, 4D and 5D input Tensors supported (got {x.ndim}D)")
    if size is not None and scale_factor is not None:
        raise ValueError(f"only one of size or scale_factor should be defined (size={size}, scale_factor={scale_factor})")
    if size is not None:
        sizes = list(size) if isinstance(size, (tuple, list)) else [size] * n
        if len(sizes) != n:
            raise ValueError(
                "Input and output must have the same number of spatial dimensions, but got input with spatial dimensions of "
                f"{list(x.shape[2:])} and output size of {size}. Please provide input tensor in (N, C, d1, d2, ...,dK) format and "
                "output size in (o1, o2, ...,oK) format."
            )
        if not all(_is_integer(s) for s in sizes):
            raise TypeError(
                "expected size to be one of int or Tuple[int] or Tuple[int, int] or Tuple[int, int, int], but got size with types "
                f"{[type(s) for s in sizes]}"
            )
        return [as_index(s) for s in sizes], None
    if scale_factor is None:
        raise ValueError("either size or scale_factor should be defined")
    factors = list(scale_factor) if isinstance(scale_factor, (tuple, list)) else [scale_factor] * n
    if len(factors) != n:
        raise ValueError(
            "Input and scale_factor must have the same number of spatial dimensions, but got input with spatial dimensions of "
            f"{list(x.shape[2:])} and scale_factor of shape {scale_factor}. Please provide input tensor in (N, C, d1, d2, ...,dK) "
            "format and scale_factor in (s1, s2, ...,sK) format."
        )
    return None, [float_argument(f, "interpolate", "scale_factor") for f in factors]


@public(method=False, namespaces=("nn.functional",))
def interpolate(
    input, size=None, scale_factor: float | Sequence[float] | None = None, mode="nearest", align_corners=None, recompute_scale_factor=None, antialias=False
):
    """Resize the dims after (batch, channels) to ``size``, or by ``scale_factor``: (N, C, d…) → (N, C, size…).

    mode: "nearest", "nearest-exact", "area" for 1 to 3 dims; "linear" (1), "bilinear", "bicubic", "lanczos" (2), "trilinear" (3).
    align_corners: corner pixels keep their values. recompute_scale_factor: use the ratio of sizes, not ``scale_factor``, for
    places. antialias: filters as wide as an output pixel ("bilinear", "bicubic", "lanczos"). uint8 is rounded and clamped.

    The gradient is the transposed resizing. Errors: ValueError for options that do not go together, NotImplementedError for a
    mode that is not for so many dims, RuntimeError for empty sizes.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.interpolate.html

    >>> torch.nn.functional.interpolate(torch.tensor([[[1.0, 2.0]]]), scale_factor=2)
    tensor([[[1., 1., 2., 2.]]])
    """
    x = tensor_argument(input, "interpolate")
    plain = text_argument(mode, "interpolate", "mode") in ("nearest", "area", "nearest-exact")
    if plain and align_corners is not None:
        raise ValueError(
            f"align_corners option can only be set with the interpolating modes: linear | bilinear | bicubic | trilinear (mode={mode!r})"
        )
    sizes, factors = _wanted_sizes(x, size, scale_factor)
    if recompute_scale_factor and sizes is not None:
        raise ValueError("recompute_scale_factor is not meaningful with an explicit size.")
    if factors is not None and (recompute_scale_factor or mode == "area"):
        sizes, factors = [math.floor(n * f) for n, f in zip(x.shape[2:], factors, strict=True)], None
    if antialias and not (mode in _SMOOTH and x.ndim == 4):
        raise ValueError(
            "Anti-alias option is restricted to bilinear, bicubic, and lanczos modes and requires a 4-D tensor as input "
            f"(mode={mode!r}, input of {x.ndim} dims)"
        )
    if mode == "lanczos" and x.ndim == 4:
        if align_corners:
            raise ValueError("Lanczos mode does not support align_corners=True")
        if not antialias:
            raise ValueError("Lanczos mode requires antialias=True")
    needs: tuple[int, ...] = {"linear": (3,), "bilinear": (4,), "bicubic": (4,), "lanczos": (4,), "trilinear": (5,)}.get(mode, (3, 4, 5) if plain else ())
    if x.ndim not in needs:
        if x.ndim in (3, 4, 5) and mode in ("linear", "bilinear", "trilinear"):
            raise NotImplementedError(f"Got {x.ndim}D input, but {mode} mode needs {needs[0]}D input")
        raise NotImplementedError(
            f"Input Error: Only 3D, 4D and 5D input Tensors supported (got {x.ndim}D) for the modes: nearest | linear | bilinear | "
            f"bicubic | trilinear | lanczos | area | nearest-exact (got {mode})"
        )
    if mode == "area":
        return OPS[f"nn.functional.adaptive_avg_pool{x.ndim - 2}d"].call(x, tuple(sizes))
    number = _SMOOTH[mode] if antialias else _MODES[mode]
    return _resized(x, number, sizes, factors, align_corners is not None and bool_argument(align_corners, "upsample", "align_corners"))


def _scaled(size: int, factor: float) -> int:
    """Return ``size * factor`` without what stands after the point; RuntimeError where that is no integer of 64 bits."""
    if not abs(size * factor) < 2**63:
        raise RuntimeError(f"value cannot be converted to type int64_t without overflow (interpolate: {size} elements, scale_factor {factor})")
    return int(size * factor)


def _resized(x: Tensor, mode: int, sizes: Any, factors: Any, aligned: bool) -> Tensor:
    n = x.ndim - 2
    before = tuple(x.shape[2:])
    after = tuple(sizes) if sizes is not None else tuple(_scaled(m, f) for m, f in zip(before, factors, strict=True))
    if sizes is not None and any(abs(m) >= 2**63 for m in after):
        raise TypeError(f"interpolate(): argument 'size' holds {list(after)}: Overflow when unpacking long long")
    if any(m <= 0 for m in (*before, *after)):
        raise RuntimeError(f"Input and output sizes should be greater than 0, but got input {list(before)} and output {list(after)}")
    if x.shape[1] == 0:
        raise RuntimeError(f"Non-empty {x.ndim}D data tensor expected but got a tensor with sizes {list(x.shape)}")
    scales = tuple(1.0 / f if f > 0 else 0.0 for f in factors) if factors is not None else (0.0,) * n
    operation = _operation(mode, n)
    if x.dtype.category != 2 and (x.dtype is not dtypes.uint8 or (mode == 2 and n != 2)):
        raise NotImplementedError(f'"{operation.node_name.removesuffix("Backward0")}" not implemented for {x.dtype}; use floating point tensors or uint8')
    return operation(x, after, scales, aligned)


def _deprecated(name: str) -> None:
    warn_user(f"`nn.functional.{name}` is deprecated. Use `nn.functional.interpolate` instead.")


@public(method=False, namespaces=("nn.functional",))
def upsample(input, size=None, scale_factor: float | Sequence[float] | None = None, mode="nearest", align_corners=None):
    """Return the old name of `interpolate`."""
    _deprecated("upsample")
    return interpolate(input, size, scale_factor, mode, align_corners)


@public(method=False, namespaces=("nn.functional",))
def upsample_nearest(input, size=None, scale_factor: float | Sequence[float] | None = None):
    """Return `interpolate` with mode "nearest"."""
    _deprecated("upsample_nearest")
    return interpolate(input, size, scale_factor, mode="nearest")


@public(method=False, namespaces=("nn.functional",))
def upsample_bilinear(input, size=None, scale_factor: float | Sequence[float] | None = None):
    """Return `interpolate` with mode "bilinear" and aligned corners."""
    _deprecated("upsample_bilinear")
    return interpolate(input, size, scale_factor, mode="bilinear", align_corners=True)
