"""Sampling of images at places that are computed: spatial transformers.

Source: Jaderberg et al., Spatial transformer networks (2015);
https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.grid_sample.html
"""

from __future__ import annotations

from typing import Any

from ... import dtypes
from ...errors import warn_user
from ...graph.modes import unrecorded
from ...launch import Kernel
from ...shapes import as_int
from ...tensor import Tensor
from ..core.numbers import bool_argument
from ..core.recording import scalar_type
from ..core.registry import OPS, public
from ..core.structured import structured, tensor_argument
from ..creation.cast import cast, dense, in_float32
from ..creation.create import new_empty

_FORWARD = Kernel("nn.grid", "forward")
_BACKWARD = Kernel("nn.grid", "backward", outputs=2)
_BACKWARD2 = Kernel("nn.grid", "backward2", outputs=3)
_MODES = {"bilinear": 0, "nearest": 1, "bicubic": 2}
_PADDINGS = {"zeros": 0, "border": 1, "reflection": 2}


def _geometry(x: Tensor, grid: Tensor, how: tuple[Any, ...]) -> tuple[Any, ...]:
    n = x.ndim - 2
    places = grid._layout.size // (n * grid.shape[0]) if grid._layout.size else 0
    return (x.shape[0], x.shape[1], n, *how, (1,) * (3 - n) + tuple(x.shape[2:]), places)


def _grid_rule(g, x, grid, how, needs):
    gx, ggrid = _grid_sampler_backward(g, x, grid, how, "x" in needs, "grid" in needs)
    return {"x": gx, "grid": ggrid}


@structured(
    every=_grid_rule, node="GridSamplerBackward0", linear="no", batch="samples",
    dtypes="half float", samples="F.grid_sample(x(1, 2, 4, 4), 0.8 * x(1, 3, 3, 2), align_corners=False)",
)
def _grid_sampler(x, grid, how):
    if x.dtype.is_half:
        return in_float32(_grid_sampler.forward, x, grid, how)
    y = new_empty((*x.shape[:2], *grid.shape[1:-1]), x.dtype)
    if y._layout.size:
        _FORWARD(x.dtype, *_geometry(x, grid, how), dense(x), dense(grid), y._data)
    return y


def _grid_backward_rule(g, grad, x, grid, how):
    h, hgrid = g
    return dict(zip(("grad", "x", "grid"), _grid_sampler_backward2(h, hgrid, grad, x, grid, how), strict=True))


@structured(every=_grid_backward_rule, node="GridSamplerBackwardBackward0", linear="no", batch="samples")
def _grid_sampler_backward(grad, x, grid, how, want_x, want_grid):
    if x.dtype.is_half:
        return in_float32(_grid_sampler_backward.forward, grad, x, grid, how, want_x, want_grid)
    gx, ggrid = new_empty(x.shape, x.dtype), new_empty(grid.shape, x.dtype)
    _BACKWARD(x.dtype, *_geometry(x, grid, how), want_x, want_grid, dense(x), dense(grid), dense(grad), gx._data, ggrid._data)
    return gx, ggrid


def _third(g):
    raise RuntimeError("derivative for grid_sampler_backward_backward is not implemented: grid_sample can be differentiated twice")


@structured(every=lambda g: _third(g), node="GridSamplerBackwardBackwardBackward0", linear="no", batch="samples")
def _grid_sampler_backward2(h, hgrid, grad, x, grid, how):
    d = x.dtype
    if d.is_half:
        return in_float32(_grid_sampler_backward2.forward, h, hgrid, grad, x, grid, how)
    outs = [new_empty(t.shape, d) for t in (grad, x, grid)]
    nothing = new_empty((0,), d)._data
    _BACKWARD2(
        d, *_geometry(x, grid, how), h is not None, hgrid is not None, dense(x), dense(grid), dense(grad),
        nothing if h is None else dense(h), nothing if hgrid is None else dense(hgrid), *[o._data for o in outs],
    )  # fmt: skip
    return tuple(outs)


def _default_corners(align_corners: Any) -> bool:
    if align_corners is None:
        warn_user(
            "Default grid_sample and affine_grid behavior has changed to align_corners=False since 1.3.0. Please specify "
            "align_corners=True if the old behavior is desired. See the documentation of grid_sample for details.",
        )
        return False
    return bool_argument(align_corners, "grid_sampler", "align_corners")


@public(method=False, namespaces=("nn.functional",))
def grid_sample(input, grid, mode="bilinear", padding_mode="zeros", align_corners=None):
    """Return ``input`` (N, C, H, W) read at ``grid`` (N, Hₒ, Wₒ, 2) of (x, y) in [−1, 1]: (N, C, Hₒ, Wₒ); or with one dim more.

    Derivative: dinput: g spread over the pixels that were read, with the same weights; dgrid: the slope of the image there.

    mode: "bilinear" (trilinear for volumes), "nearest", "bicubic" (images only). padding_mode: what stands outside, "zeros",
    "border" or "reflection". align_corners: ±1 are the centres of corner pixels, else their outer edges. Differentiable twice in
    both arguments; "nearest" gives the grid zeros.

    Errors: ValueError for unknown modes, RuntimeError for shapes or dtypes that do not fit.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.grid_sample.html

    >>> torch.nn.functional.grid_sample(torch.ones(1, 1, 2, 2), torch.zeros(1, 1, 1, 2), align_corners=True)
    tensor([[[[1.]]]])
    """
    if not isinstance(mode, str) or mode not in _MODES:
        raise ValueError(f"nn.functional.grid_sample(): expected mode to be 'bilinear', 'nearest' or 'bicubic', but got: '{mode}'")
    if not isinstance(padding_mode, str) or padding_mode not in _PADDINGS:
        raise ValueError(
            f"nn.functional.grid_sample(): expected padding_mode to be 'zeros', 'border', or 'reflection', but got: '{padding_mode}'"
        )
    return grid_sampler(input, grid, _MODES[mode], _PADDINGS[padding_mode], _default_corners(align_corners))


@public("grid_sampler_2d", "grid_sampler_3d", method=False)
def grid_sampler(input, grid, interpolation_mode, padding_mode, align_corners):
    """Return `nn.functional.grid_sample` with modes as numbers, in the order in which it lists them."""
    x, places = tensor_argument(input, "grid_sampler"), tensor_argument(grid, "grid_sampler", "grid")
    if not x.ndim or not places.ndim:
        raise IndexError("Dimension specified as 0 but tensor has no dimensions (grid_sampler(): input and grid)")
    if x.shape[0] != places.shape[0]:
        raise RuntimeError(
            f"grid_sampler(): expected grid and input to have same batch size, but got input with sizes {list(x.shape)} and grid with "
            f"sizes {list(places.shape)}"
        )
    if places.shape[-1] != x.ndim - 2:
        raise RuntimeError(f"grid_sampler(): expected grid to have size {x.ndim - 2} in last dimension, but got grid with sizes {list(places.shape)}")
    for d, m in enumerate(x.shape[2:], 2):
        if m == 0:
            raise RuntimeError(
                f"grid_sampler(): expected input to have non-empty spatial dimensions, but input has sizes {list(x.shape)} with dimension "
                f"{d} being empty"
            )
    if x.ndim not in (4, 5) or places.ndim != x.ndim:
        raise RuntimeError(
            f"grid_sampler(): expected {4 if x.ndim == 4 else 5}D input and grid with same number of dimensions, but got input with sizes "
            f"{list(x.shape)} and grid with sizes {list(places.shape)}"
        )
    if x.dtype.category != 2:
        raise NotImplementedError(f"\"grid_sampler\" not implemented for '{scalar_type(x.dtype)}'; use floating point tensors")
    if x.dtype is not places.dtype:
        raise RuntimeError(f"grid_sampler(): expected input and grid to have the same dtype, but got input with {x.dtype} and grid with {places.dtype}")
    mode, padding = as_int(interpolation_mode, "interpolation_mode"), as_int(padding_mode, "padding_mode")
    if mode not in (0, 1, 2) or padding not in (0, 1, 2):
        raise RuntimeError(f"grid_sampler(): expected modes 0, 1 or 2, but got interpolation_mode={mode}, padding_mode={padding}")
    if mode == 2 and x.ndim == 5:
        raise RuntimeError("grid_sampler(): bicubic interpolation only supports 4D input")
    return _grid_sampler(x, places, (mode, padding, bool_argument(align_corners, "grid_sampler", "align_corners")))


def _axis(n: int, aligned: bool, like: Tensor) -> Tensor:
    """Return n places from −1 to 1: centres of the first and last pixel, or of n equal parts."""
    if n <= 1:
        return OPS["zeros"].call(n, dtype=like.dtype)
    line = OPS["linspace"].call(-1, 1, n, dtype=dtypes.float32 if like.dtype.is_half else like.dtype)
    return cast(line if aligned else line * ((n - 1) / n), like.dtype)


def _places(spatial: tuple[int, ...], aligned: bool, like: Tensor) -> Tensor:
    """Return the places (x, y, 1) of an image's elements, or (x, y, z, 1), row by row."""
    axes = [_axis(m, aligned, like) for m in spatial]
    lines = [a.reshape([-1 if k == d else 1 for k in range(len(spatial))]).expand(spatial) for d, a in enumerate(axes)]
    return OPS["stack"].call([*reversed(lines), OPS["ones_like"].call(lines[0])], -1).reshape(-1, len(spatial) + 1)


@structured(
    theta=lambda g, spatial, aligned: _affine_grid_backward(g, spatial, aligned), node="AffineGridGeneratorBackward0", linear="jointly", batch="samples",
    dtypes="half float", samples="F.affine_grid(x(2, 2, 3), (2, 1, 3, 4), align_corners=False)",
)
def _affine_grid(theta, spatial, aligned):
    """Return θ·(x, y, 1) at each place. Nothing is kept for the derivative, which makes the places anew."""
    with unrecorded():
        return (_places(spatial, aligned, theta) @ theta.mT).reshape(theta.shape[0], *spatial, len(spatial))


@structured(
    grad=lambda g, spatial, aligned: _affine_grid(g, spatial, aligned), node="AffineGridGeneratorBackwardBackward0", linear="jointly", batch="samples",
    dtypes="half float",
)
def _affine_grid_backward(grad, spatial, aligned):
    with unrecorded():
        return (_places(spatial, aligned, grad).mT @ grad.reshape(grad.shape[0], -1, len(spatial))).mT


@public(method=False, namespaces=("nn.functional",))
def affine_grid(theta, size, align_corners=None):
    """Return a grid for `grid_sample` of places θ·(x, y, 1): ``theta`` (N, 2, 3) and ``size`` (N, C, H, W) → (N, H, W, 2); or 3-D.

    Derivative: dθ = Σ g·(x, y, 1)ᵀ over the places.

    Errors: ValueError or NotImplementedError for shapes that do not fit.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.affine_grid.html

    >>> torch.nn.functional.affine_grid(torch.tensor([[[0.5, 0.0, 0.0], [0.0, 1.0, 0.0]]]), (1, 1, 2, 2), align_corners=True)
    tensor([[[[-0.5000, -1.0000],
              [ 0.5000, -1.0000]],
    <BLANKLINE>
             [[-0.5000,  1.0000],
              [ 0.5000,  1.0000]]]])
    """
    t = tensor_argument(theta, "affine_grid", "theta")
    aligned = _default_corners(align_corners)
    if t.dtype.category != 2:
        raise ValueError(f"Expected theta to have floating point type, but got {t.dtype}")
    sizes = tuple(as_int(s, "size") for s in size)
    n = len(sizes) - 2
    if n not in (2, 3):
        raise NotImplementedError(
            f"affine_grid only supports 4D and 5D sizes, for 2D and 3D affine transforms, respectively. Got size {tuple(size)}."
        )
    if t.ndim != 3 or tuple(t.shape[1:]) != (n, n + 1):
        raise ValueError(f"Expected a batch of {n}D affine matrices of shape Nx{n}x{n + 1} for size {tuple(size)}. Got {t.shape}.")
    if aligned and min(sizes[2:]) == 1:
        warn_user(
            "Since version 1.3.0, affine_grid behavior has changed for unit-size grids when align_corners=True. This is not an intended "
            "use case of affine_grid. See the documentation of affine_grid for details.",
        )
    elif min(sizes) <= 0:
        raise ValueError(f"Expected non-zero, positive output size. Got {tuple(size)}")
    return affine_grid_generator(t, sizes, aligned)


@public(method=False)
def affine_grid_generator(theta, size, align_corners):
    """Return `nn.functional.affine_grid` without its checks."""
    t = tensor_argument(theta, "affine_grid_generator", "theta")
    sizes = tuple(as_int(s, "size") for s in size)
    if t.ndim != 3 or t.shape[0] != sizes[0] or tuple(t.shape[1:]) != (len(sizes) - 2, len(sizes) - 1):
        raise RuntimeError(f"Expected a batch of affine matrices that fits size {list(sizes)}. Got theta of shape {list(t.shape)}.")
    return _affine_grid(t, sizes[2:], bool_argument(align_corners, "affine_grid_generator", "align_corners"))
