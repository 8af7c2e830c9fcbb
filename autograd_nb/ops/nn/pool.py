"""Pooling in one, two and three dims: maxima with their places, averages, adaptive parts, unpooling."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import product
from typing import Any

from ... import dtypes, launch, strides
from ...shapes import as_int, layout_of, numel
from ...tensor import Tensor, make
from ..core.jumps import by_jumps, jumping
from ..core.numbers import bool_argument, int_argument, several_argument
from ..core.recording import need_floats, scalar_type, store
from ..core.registry import OPS, public
from ..core.structured import structured, tensor_argument
from ..creation.cast import as_images, dense, images
from ..creation.data import tensor
from ..indexing.picking import check_bounds
from .conv import tuple_of

_MAX = launch.Kernel("nn.pool", "max_forward", outputs=2)
_MAX_PAIRS = launch.Kernel("nn.pool", "max_forward_pairs", outputs=2)
_SCATTER = launch.Kernel("nn.pool", "scatter")
_GATHER = launch.Kernel("nn.pool", "gather")
_PLACE = launch.Kernel("nn.pool", "place")
_AVERAGE = launch.Kernel("nn.pool", "average_forward")
_AVERAGE_BACK = launch.Kernel("nn.pool", "average_backward")
_ADAPTIVE = launch.Kernel("nn.pool", "adaptive_forward")
_ADAPTIVE_BACK = launch.Kernel("nn.pool", "adaptive_backward")
_ADAPTIVE_MAX = launch.Kernel("nn.pool", "adaptive_max", outputs=2)


def _new(shape: Sequence[int], d: dtypes.dtype) -> Tensor:
    layout = layout_of(shape, None, d)
    return make(launch.empty(layout.size, d.carrier), layout, [0, 0])


WINDOW = 4  #: what an element of a window costs, see `threads.WORTH`


def _geometry(x_shape: Sequence[int], y_spatial: Sequence[int], how: tuple[Any, ...]) -> tuple[int, ...]:
    kernel, stride, padding, dilation = how
    n = len(kernel)
    lead = 3 - n

    def three(values: Sequence[int], fill: int) -> tuple[int, ...]:
        return (fill,) * lead + tuple(values)

    return (
        *three(x_shape[-n:], 1), *three(y_spatial, 1), *three(kernel, 1), *three(stride, 1), *three(padding, 0), *three(dilation, 1),
    )  # fmt: skip


def _planes(shape: Sequence[int], n: int) -> int:
    return numel(shape[: len(shape) - n])


# ------------------------------------------------------------------------------------------------------- max


@structured(
    every=lambda g, x, x_shape, out1, n: {"x": None if g[0] is None else by_jumps(_scatter(g[0], out1, tuple(x_shape), n), x)},
    node="MaxPoolWithIndicesBackward0",
    linear="no", batch="shift",
    dtypes="half float integer", samples="F.max_pool2d(x(1, 2, 4, 6), 2)",
)
@images(4, 5, wide=True)
def _max_pool(x, how, y_spatial, n):
    shape = [*x.shape[: x.ndim - n], *y_spatial]
    y, index = _new(shape, x.dtype), _new(shape, dtypes.int64)
    planes, n_in, n_out = _planes(x.shape, n), numel(x.shape[x.ndim - n :]), numel(y_spatial)
    if not y._layout.size:
        return y, index
    arrays = (dense(x), y._data, index._data)
    whole = all(out * 2 <= size for out, size in zip(y_spatial, x.shape[-n:], strict=True))  # ceil_mode: the last may be half
    if how == ((2, 2), (2, 2), (0, 0), (1, 1)) and whole:
        _MAX_PAIRS.rows(x.dtype, (0, 0, n_in, n_out, n_out), WINDOW * planes * n_in, planes, x.shape[-2], x.shape[-1], *arrays)
    else:
        work = WINDOW * planes * n_out * numel(how[0])
        geometry, lowest = _geometry(x.shape, y_spatial, how), -math.inf if x.dtype.is_floating_point else dtypes.iinfo(x.dtype).min
        _MAX.rows(x.dtype, (0, 0, n_in, n_out, n_out), work, planes, geometry, lowest, *arrays)
    return y, index


@structured(x=lambda g, index, n: _gather(g, index, n), node="MaxPoolBackwardBackward0", linear="no", batch="shift")
@images(4, 5, wide=True)
def _scatter(x, index, shape, n):
    out = _new(shape, x.dtype)
    n_in, n_out = numel(shape[len(shape) - n :]), numel(x.shape[x.ndim - n :])
    _SCATTER.rows(
        x.dtype, (0, 0, n_out, n_out, n_in), WINDOW * numel(shape), _planes(shape, n), n_in, n_out, dense(x), dense(index), out._data
    )
    return out


@structured(
    x=lambda g, index, x_shape, n: _scatter(g, index, tuple(x_shape), n), node="GatherBackward0",
    linear="no", batch="shift",
)
@images(4, 5, wide=True)
def _gather(x, index, n):
    out = _new(index.shape, x.dtype)
    n_in, n_out = numel(x.shape[x.ndim - n :]), numel(index.shape[index.ndim - n :])
    _GATHER.rows(
        x.dtype, (0, 0, n_in, n_out, n_out), WINDOW * numel(index.shape), _planes(x.shape, n), n_in, n_out, dense(x), dense(index), out._data
    )
    return out


def _out_size(n: int, k: int, s: int, p: int, d: int, ceil: bool) -> int:
    span = n + 2 * p - d * (k - 1) - 1
    size = (span + (s - 1 if ceil else 0)) // s + 1
    # the last window must begin inside the input or its left padding
    if ceil and (size - 1) * s >= n + p:
        size -= 1
    return size


def _prepare(op: str, n: int, input: Any, kernel: Any, stride: Any, padding: Any, dilation: Any, ceil: bool) -> tuple[Any, ...]:
    x = tensor_argument(input, op)
    if x.ndim < n + 1 == 3 and op in ("avg_pool2d", "lp_pool2d"):
        raise IndexError(f"{op}: Dimension out of range: an image has 3 or 4 dims, but got: {list(x.shape)}; tensor has no dimensions -3")
    if x.ndim not in (n + 1, n + 2):
        raise RuntimeError(f"{op}: Expected {n + 1}D or {n + 2}D (batch mode) tensor with optional 0 dim batch size for input, but got: {list(x.shape)}")
    if 0 in x.shape[x.ndim - n - 1 :] and not x._layout.size and (x.ndim == n + 1 or 0 in x.shape[1:]) and op.startswith("max"):
        raise RuntimeError(
            f"{op}: Expected {n + 1}D or {n + 2}D (batch mode) tensor with optional 0 dim batch size for input (only the batch may be "
            f"empty), but got: {list(x.shape)}"
        )
    if x.ndim == n + 1 and not x.shape[0]:
        raise RuntimeError(f"{op}: Expected {n + 1}D or {n + 2}D (batch mode) tensor with optional 0 dim batch size for input, but got:{list(x.shape)}")
    if x.dtype.category not in (1, 2):
        raise NotImplementedError(f'"{op}" not implemented for {x.dtype}; use numbers')
    k = tuple_of(kernel, n, "kernel_size", op)
    s = k if stride is None or (isinstance(stride, (tuple, list)) and not stride) else tuple_of(stride, n, "stride", op)
    p, d = tuple_of(padding, n, "padding", op), tuple_of(dilation, n, "dilation", op)
    ceil = bool_argument(ceil, op, "ceil_mode")
    if any(v < 1 for v in k):
        raise RuntimeError(f"kernel size should be greater than zero, but got kernel_size={kernel}")
    if any(v < 1 for v in s):
        raise RuntimeError(f"stride should not be zero, but got stride={stride}")
    if any(v < 1 for v in d):
        raise RuntimeError(f"dilation should be greater than zero, but got dilation={dilation}")
    if any(v < 0 for v in p):
        raise RuntimeError(f"pad must be non-negative, but got pad: {padding}")
    if any(q > (dv * (kv - 1) + 1) // 2 for q, kv, dv in zip(p, k, d, strict=True)):
        raise RuntimeError(
            f"pad should be at most half of effective kernel size, but got pad={max(p)}, kernel_size={list(k)} and dilation={list(d)}"
        )
    if any(m == 0 for m in x.shape[1:]):
        raise RuntimeError(f"{op}(): Expected input with non-zero size for non-batch dimensions, but got {list(x.shape)}")
    y = tuple(_out_size(m, kv, sv, pv, dv, ceil) for m, kv, sv, pv, dv in zip(x.shape[-n:], k, s, p, d, strict=True))
    if any(m < 1 for m in y):
        raise RuntimeError(
            f"Given input size: ({'x'.join(map(str, x.shape[-n - 1:]))}). Calculated output size: "
            f"({'x'.join(map(str, (x.shape[-n - 1], *y)))}). Output size is too small"
        )
    return x, (k, s, p, d), y


def _max(op: str, n: int, input: Any, kernel_size: Any, stride: Any, padding: Any, dilation: Any, ceil_mode: bool, both: bool) -> Any:
    x, how, y = _prepare(op, n, input, kernel_size, stride, padding, dilation, ceil_mode)
    if n == 1 and not both:
        need_floats("max_pool1d_impl", (x,))
    out = _max_pool(x, how, y, n)
    return tuple(out) if both else out[0]


# --------------------------------------------------------------------------------------------------- average


@structured(
    x=lambda g, x, x_shape, how, n, include, divisor: by_jumps(_average_back(g, tuple(x_shape), how, n, include, divisor), x),
    node="AvgPoolBackward0",
    linear="jointly", batch="shift",
    dtypes="half float integer", samples="F.avg_pool2d(x(1, 2, 4, 6), 2)",
)
@images(3, 4, wide=True)
def _average(x, how, y_spatial, n, include, divisor):
    y = _new([*x.shape[: x.ndim - n], *y_spatial], x.dtype)
    planes, n_in, n_out = _planes(x.shape, n), numel(x.shape[x.ndim - n :]), numel(y_spatial)
    _AVERAGE.rows(
        x.dtype, (0, 0, 0, n_in, n_out), WINDOW * planes * n_out * numel(how[0]), planes, _geometry(x.shape, y_spatial, how), include, divisor,
        dense(x), y._data,
    )  # fmt: skip
    return y


@structured(
    x=lambda g, x_shape, how, n, include, divisor: _average(g, how, tuple(x_shape[len(x_shape) - n :]), n, include, divisor),
    node="AvgPoolBackwardBackward0",
    linear="jointly", batch="shift",
)
@images(3, 4, wide=True)
def _average_back(x, shape, how, n, include, divisor):
    out = _new(shape, x.dtype)
    planes, spatial = _planes(shape, n), x.shape[x.ndim - n :]
    n_in, n_out = numel(shape[len(shape) - n :]), numel(spatial)
    _AVERAGE_BACK.rows(
        x.dtype, (0, 0, 0, n_out, n_in), WINDOW * planes * n_out * numel(how[0]), planes, _geometry(shape, spatial, how), include, divisor,
        dense(x), out._data,
    )  # fmt: skip
    return out


def _avg(op: str, n: int, input: Any, kernel: Any, stride: Any, padding: Any, ceil: bool, include: bool, divisor: Any) -> Tensor:
    x, how, y = _prepare(op, n, input, kernel, stride, padding, 1, ceil)
    if n == 3 and any(size < k for size, k in zip(x.shape[-3:], how[0], strict=True)):
        size, window = (" ".join(f"{name}: {v}" for name, v in zip(names, values, strict=True)) for names, values in (
            (("T", "H", "W"), x.shape[-3:]), (("kT", "kH", "kW"), how[0])
        ))
        raise RuntimeError(f"{op}(): input image ({size}) smaller than kernel size ({window})")
    if divisor is not None and as_int(divisor, "divisor_override") == 0:
        raise RuntimeError("divisor must be not zero")
    include, divisor = bool_argument(include, op, "count_include_pad"), 0 if divisor is None else divisor
    if x.dtype.category > 1:
        return _average(x, how, y, n, include, divisor)
    if x.dtype is not dtypes.int64:
        raise NotImplementedError(f"\"avg_pool{max(n, 2)}d\" not implemented for '{scalar_type(x.dtype)}' (cast it with .to(), e.g. x.float())")
    return _average_of_integers(x, how, y, n, include, divisor)


def _average_of_integers(x: Tensor, how: tuple[Any, ...], y_spatial: Sequence[int], n: int, include: bool, divisor: int) -> Tensor:
    """Return the means of windows of integers, rounded towards 0; sums that overflow wrap around."""
    counts, borders = [], []
    for have, k, s, p, out in zip(x.shape[x.ndim - n :], *how[:3], y_spatial, strict=True):
        begins = [o * s - p for o in range(out)]
        borders.append((p, max(begins[-1] + k - have, 0) if out else 0))
        ends = [min(b + k, have + p) for b in begins]
        counts.append([e - b if include else max(min(e, have) - max(b, 0), 1) for b, e in zip(begins, ends, strict=True)])
    y = OPS["nn.functional.pad"].call(x, [v for pair in reversed(borders) for v in pair])
    for d, (k, s, out) in enumerate(zip(*how[:2], y_spatial, strict=True)):
        y = y.unfold(x.ndim - n + d, k, s).narrow(x.ndim - n + d, 0, out)
    y = y.sum(tuple(range(-n, 0)))
    by: Any = divisor
    if not divisor:
        by = tensor([math.prod(c) for c in product(*counts)], dtype=x.dtype).reshape(y_spatial)
    return as_images(x._layout, y.div(by, rounding_mode="trunc"))


# -------------------------------------------------------------------------------------------------- adaptive


def _six(x_shape: Sequence[int], y_spatial: Sequence[int], n: int) -> tuple[int, ...]:
    lead = (1,) * (3 - n)
    return (*lead, *x_shape[len(x_shape) - n :], *lead, *y_spatial)


@structured(
    x=lambda g, x_shape, n: _adaptive_back(g, tuple(x_shape), n), node="AdaptiveAvgPoolBackward0",
    linear="jointly", batch="shift",
    dtypes="half float", samples="F.adaptive_avg_pool2d(x(1, 2, 4, 6), (2, 4))",
)
@images(3, 4, wide=True)
def _adaptive(x, y_spatial, n):
    y = _new([*x.shape[: x.ndim - n], *y_spatial], x.dtype)
    if y._layout.size:
        _ADAPTIVE(x.dtype, _planes(x.shape, n), _six(x.shape, y_spatial, n), dense(x), y._data)
    return y


@structured(
    x=lambda g, x_shape, n: _adaptive(g, tuple(x_shape[len(x_shape) - n :]), n), node="AdaptiveAvgPoolBackwardBackward0",
    linear="jointly", batch="shift",
)
@images(3, 4, wide=True)
def _adaptive_back(x, shape, n):
    out = _new(shape, x.dtype)
    _ADAPTIVE_BACK(x.dtype, _planes(shape, n), _six(shape, x.shape[x.ndim - n :], n), dense(x), out._data)
    return out


@structured(
    every=lambda g, x, x_shape, out1, n: {"x": None if g[0] is None else by_jumps(_scatter(g[0], out1, tuple(x_shape), n), x)},
    node="AdaptiveMaxPoolBackward0",
    linear="no", batch="shift",
    dtypes="half float", samples="F.adaptive_max_pool2d(x(1, 2, 4, 6), (2, 4))",
)
@images(3, 4, wide=True)
def _adaptive_max(x, y_spatial, n):
    shape = [*x.shape[: x.ndim - n], *y_spatial]
    y, index = _new(shape, x.dtype), _new(shape, dtypes.int64)
    if y._layout.size:
        _ADAPTIVE_MAX(x.dtype, _planes(x.shape, n), _six(x.shape, y_spatial, n), dense(x), y._data, index._data)
    return y, index


def _max_parts(op: str, n: int, input: Any, output_size: Any) -> tuple[Tensor, tuple[int, ...]]:
    x, sizes = _parts(op, n, input, output_size)
    if 0 in x.shape[1:]:
        raise RuntimeError(f"{op}(): Expected input to have non-zero size for non-batch dimensions, but input has sizes {list(x.shape)}")
    return x, sizes


def _parts(op: str, n: int, input: Any, output_size: Any) -> tuple[Tensor, tuple[int, ...]]:
    x = tensor_argument(input, op)
    if x.ndim <= n and n > 1 and isinstance(output_size, (tuple, list)):
        raise ValueError(f"{op}(): Input dimension should be at least {n + 1} (got {list(x.shape)})")
    if x.ndim not in (n + 1, n + 2):
        raise RuntimeError(f"{op}(): Expected {n + 1}D or {n + 2}D tensor, but got {list(x.shape)}")
    means = x.dtype.is_complex and op.startswith("adaptive_avg")  # a single part is a mean, which there is of complex numbers
    if x.dtype.category != 2 and not means:
        raise NotImplementedError(f'"{op}" not implemented for {x.dtype}; use floating point tensors')
    if any(m == 0 for m in x.shape[x.ndim - n :]):
        raise RuntimeError(f"{op}(): Expected input to have non-zero size for non-batch dimensions, but input has sizes {list(x.shape)}")
    if output_size is None:
        raise TypeError(f"{op}(): argument 'output_size' must be tuple of ints, not NoneType (use (None,) for the size of the input)")
    sizes = output_size if isinstance(output_size, (tuple, list)) else (output_size,) * n
    sizes = [None if s is None else as_int(s, "output_size") for s in sizes]
    if len(sizes) != n:
        raise RuntimeError(f"{op}(): output_size must be {n} ints, got {output_size!r}")
    y = tuple(m if s is None else s for s, m in zip(sizes, x.shape[x.ndim - n :], strict=True))
    if any(m < 0 for m in y):
        raise RuntimeError(f"{op}(): elements of output_size must be greater than or equal to 0 but got {list(y)}")
    if means and any(size != 1 for size in y):
        raise NotImplementedError(f'"{op}" not implemented for {x.dtype}; use floating point tensors')
    return x, y


# ------------------------------------------------------------------------------------------------- unpooling


@structured(
    x=lambda g, index, n: _gather(g, index, n), node="MaxUnpoolBackward0", linear="no", batch="shift",
    dtypes="half float", samples="F.max_unpool2d(x(1, 1, 2, 2), torch.tensor([[[[0, 3], [9, 15]]]]), 2)",
)
@images(4, wide=True)
def _unpool(x, index, y_spatial, n):
    y = _new([*x.shape[: x.ndim - n], *y_spatial], x.dtype)
    _PLACE(x.dtype, _planes(x.shape, n), numel(x.shape[x.ndim - n :]), numel(y_spatial), dense(x), dense(index), y._data)
    return y


def _unpooled_sizes(op: str, n: int, x: Tensor, kernel: Any, stride: Any, padding: Any, output_size: Any) -> tuple[int, ...]:
    """Return the sizes of the dims that are unpooled, as given or as small as they can be."""
    k = tuple_of(kernel, n, "kernel_size", op)
    s = k if stride is None else tuple_of(stride, n, "stride", op)
    p = tuple_of(padding, n, "padding", op)
    if x.ndim < n:
        raise IndexError(f"{op}(): tuple index out of range: the input has {x.ndim} dimensions")
    default = [(m - 1) * sv + kv - 2 * pv for m, sv, kv, pv in zip(x.shape[x.ndim - n :], s, k, p, strict=True)]
    y = tuple(default) if output_size is None else tuple([int_argument(v, op, "output_size") for v in several_argument(output_size, op, "output_size")])
    if len(y) not in (n, n + 2):
        raise ValueError(f"output_size should be a sequence containing {n} or {n + 2} elements, but it has a length of '{len(y)}'")
    y = y[-n:]
    for d, (got, want, sv) in enumerate(zip(y, default, s, strict=True)):
        if output_size is not None and not want - sv < got < want + sv:
            raise ValueError(f"invalid output_size {list(y)} (dim {d} must be between {want - sv} and {want + sv})")
        if got < 0:
            raise ValueError(f"max_unpooling: output_size must contain non-negative spatial dimensions, but got output_size[{d}]={got}")
    return y


def _unpooled(op: str, n: int, input: Any, indices: Any, kernel: Any, stride: Any, padding: Any, output_size: Any) -> Tensor:
    x, index = tensor_argument(input, op), tensor_argument(indices, op, "indices")
    y = _unpooled_sizes(op, n, x, kernel, stride, padding, output_size)
    if x.shape != index.shape:
        raise RuntimeError(f"Expected shape of indices to be same as that of the input tensor ({list(x.shape)}) but got {list(index.shape)}")
    if index.dtype is not dtypes.int64:
        raise RuntimeError(f"elements in indices should be type int64 but got: {index.dtype}")
    if x.ndim not in (n + 1, n + 2):
        raise RuntimeError(f"Input to max_unpooling{n}d should be a {n + 1}d or {n + 2}d Tensor, but got a tensor with ndim = {x.ndim}")
    if 0 in x.shape[1:]:
        raise RuntimeError(f"{op}(): Expected input to have non-zero size for non-batch dimensions, but got {list(x.shape)}")
    if not x.dtype.is_floating_point:
        raise NotImplementedError(f"\"max_unpool{max(n, 2)}d\" not implemented for '{scalar_type(x.dtype)}' (cast it with .to(), e.g. x.float())")
    if x._layout.size:
        n_out = numel(y)
        check_bounds(index, n_out, lambda low, high: RuntimeError(
            f"Found an invalid max index: {high if high >= n_out else low} (output volumes are of size {'x'.join(map(str, y))})"
        ))  # fmt: skip
    return _unpool(x, index, y, n)


# -------------------------------------------------------------------------------------------- public functions

_SOURCE = "https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.{name}.html"


def _offer(name: str, function: Any, doc: str, example: str, also: bool = False) -> None:
    function.__name__ = function.__qualname__ = name
    function.__doc__ = (
        f"Return {doc}; {name}({example}.\n\n    input: (N, C, …) or (C, …). Errors: RuntimeError naming what does not fit.\n"
        f"    Source: {_SOURCE.format(name=name)}\n    "
    )
    public(method=False, namespaces=("nn.functional",), name=f"nn.functional.{name}")(function)
    if also:
        public(method=False, namespaces=("torch",), name=name)(function)


def _adaptive_average(n: int) -> Any:
    """Return the function for ``n`` dims; of one part it is a mean."""

    def adaptive_avg_pool(input, output_size):
        x, y = _parts(f"adaptive_avg_pool{n}d", n, input, output_size)
        if any(size != 1 for size in y):
            return jumping(_adaptive(x, y, n), x)
        if x.dtype.category == 2 and strides.looks_channels_last(x._layout):  # and so is the result
            return _adaptive(x, y, n)
        return OPS["mean"].call(x, tuple(range(x.ndim - n, x.ndim)), keepdim=True)  # as in PyTorch

    adaptive_avg_pool.__qualname__ = f"adaptive_avg_pool{n}d"
    return adaptive_avg_pool


def _declare(n: int) -> None:
    def max_pool(input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False):
        return _max(f"max_pool{n}d", n, input, kernel_size, stride, padding, dilation, ceil_mode, return_indices)

    def max_pool_with_indices(input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=True):
        return _max(f"max_pool{n}d", n, input, kernel_size, stride, padding, dilation, ceil_mode, True)

    if n == 1:

        def avg_pool(input, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True):
            return _avg("avg_pool1d", 1, input, kernel_size, stride, padding, ceil_mode, count_include_pad, None)
    else:

        def avg_pool(  # type: ignore[misc]
            input, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True, divisor_override=None, *, out=None
        ):
            y = _avg(f"avg_pool{n}d", n, input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)
            return y if out is None else store(out, y, f"avg_pool{n}d")

    adaptive_avg_pool = _adaptive_average(n)

    def adaptive_max_pool(input, output_size, return_indices=False):
        x, y = _max_parts(f"adaptive_max_pool{n}d", n, input, output_size)
        out = _adaptive_max(x, y, n)
        return tuple(out) if return_indices else out[0]

    def adaptive_max_pool_with_indices(input, output_size, return_indices=True):
        x, y = _max_parts(f"adaptive_max_pool{n}d", n, input, output_size)
        return tuple(_adaptive_max(x, y, n))

    def lp_pool(input, norm_type, kernel_size, stride=None, ceil_mode=False):
        if isinstance(norm_type, (int, float)) and abs(norm_type) == math.inf:  # the largest or the least absolute value
            sign = 1 if norm_type > 0 else -1
            return sign * max_pool(sign * tensor_argument(input, f"lp_pool{n}d").abs(), kernel_size, stride, 0, 1, ceil_mode)
        k = tuple_of(kernel_size, n, "kernel_size", f"lp_pool{n}d")
        mean = _avg(f"lp_pool{n}d", n, tensor_argument(input, f"lp_pool{n}d").pow(norm_type), k, stride, 0, ceil_mode, True, None)
        relu = OPS["relu"].call
        return (mean.sign() * relu(mean.abs())).mul(float(numel(k))).pow(1.0 / norm_type)

    def max_unpool(input, indices, kernel_size, stride=None, padding=0, output_size=None):
        return _unpooled(f"max_unpool{n}d", n, input, indices, kernel_size, stride, padding, output_size)

    _offered(n, {function.__name__: function for function in (
        max_pool, max_pool_with_indices, avg_pool, adaptive_avg_pool, adaptive_max_pool, adaptive_max_pool_with_indices, lp_pool, max_unpool,
    )})  # fmt: skip


def _offered(n: int, pools: dict[str, Any]) -> None:
    """Offer the functions of ``n`` dims, each with the example of a window of two elements."""
    pair, two, place, mean = ("[" * (n + 2) + text + "]" * (n + 2) for text in ("1., 2.", "2.", "1", "1.5000"))
    window = 2 if n == 1 else (1,) * (n - 1) + (2,)
    root, kept = two.replace("2.", "2.2361"), pair.replace("1.", "0.")
    for kind, doc, example in (
        ("max_pool", "the largest element of each window (nan wins), to which the gradient goes", f"{pair}, {window}) = {two}"),
        ("max_pool_with_indices", "what `max_pool` does and the place of each maximum in its plane", f"{pair}, {window}) = ({two}, {place})"),
        ("avg_pool", "the mean of each window, which shares the gradient evenly", f"{pair}, {window}) = {mean}"),
        ("adaptive_avg_pool", "the mean of each of ``output_size`` nearly equal parts, which shares the gradient evenly", f"{pair}, 1) = {mean}"),
        ("adaptive_max_pool", "the largest element of each of ``output_size`` nearly equal parts, to which the gradient goes", f"{pair}, 1) = {two}"),
        ("adaptive_max_pool_with_indices", "what `adaptive_max_pool` does and the places of the maxima", f"{pair}, 1) = ({two}, {place})"),
        ("lp_pool", "(Σ xᵖ)^(1/p) over each window", f"{pair}, 2, {window}) = {root}"),
        ("max_unpool", "values put back where `max_pool` found them, zeros elsewhere; the gradient is read there", f"{two}, {place}, {window}) = {kept}"),
    ):
        # PyTorch has these in both namespaces
        also = kind == "max_pool" or (n == 1 and kind in ("avg_pool", "adaptive_avg_pool", "adaptive_max_pool"))
        _offer(kind.replace("pool", f"pool{n}d"), pools[kind], doc, example, also)


for _n in (1, 2, 3):
    _declare(_n)
