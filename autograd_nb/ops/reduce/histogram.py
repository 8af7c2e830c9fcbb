"""Histograms over bins of any edges, in one dim and several."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ... import dtypes, launch, return_types
from ...errors import shorten
from ...graph.modes import unrecorded
from ...tensor import Tensor
from ..core.numbers import several_argument
from ..core.recording import made_here, store_each, underived
from ..core.registry import OPS, public
from ..core.structured import tensor_argument
from ..creation.cast import cast, dense
from ..creation.create import new_empty

_HISTOGRAMDD = launch.Kernel("reduce.histogram", "histogramdd")


def _limits(x: Tensor, range: Any, name: str) -> list[tuple[float, float]]:
    """Return the outer edges of each column: given, or found in the data; widened where both are equal."""
    columns = x.shape[1]
    if range is not None:
        if not isinstance(range, (tuple, list)):
            raise TypeError(f"{name}(): argument 'range' must be tuple of floats, not {type(range).__name__}")
        for v in range:
            if not isinstance(v, (int, float)):
                raise TypeError(f"{name}(): argument 'range' must be tuple of floats, but has {shorten(v)}")
        if len(range) != 2 * columns:
            raise RuntimeError(
                f"{name}(): for a {columns}-dimensional histogram range should have {2 * columns} elements, but got {len(range)}"
            )
        found = [(float(a), float(b)) for a, b in zip(range[::2], range[1::2], strict=True)]
    elif x._layout.size:
        found = list(zip(x.amin(0).tolist(), x.amax(0).tolist(), strict=True))
    else:
        found = [(0.0, 1.0)] * columns
    for d, (a, b) in enumerate(found):
        if not (math.isfinite(a) and math.isfinite(b)):
            raise RuntimeError(f"{name}(): dimension {d}'s range [{a}, {b}] is not finite")
        if a > b:
            raise RuntimeError(f"{name}(): min should not exceed max, but got min {a} max {b} for dimension {d}")
    return [(a - 0.5, b + 0.5) if a == b else (a, b) for a, b in found]


def _counts(x: Tensor, edges: Sequence[Tensor], even: bool, weight: Any, density: bool, name: str) -> Tensor:
    """Return the histogram of the rows of ``x`` (N × D) over D rows of edges."""
    shape = [len(e) - 1 for e in edges]
    if weight is not None:
        tensor_argument(weight, name, "weight")
        if weight.dtype is not x.dtype:
            raise RuntimeError(
                f"{name}(): if weight tensor is provided, input tensor and weight tensor should have the same dtype, but got input "
                f"{x.dtype} and weight {weight.dtype}"
            )
    d = x.dtype
    if d.is_half:
        wide, *floats = (cast(t, dtypes.float32) for t in (x, *edges))
        y = _counts(wide, floats, even, None if weight is None else cast(weight, dtypes.float32), density, name)
        return made_here(cast(y, d))
    y = new_empty(shape, d)
    lines = dense(OPS["cat"].call(list(edges)))
    sizes = np.array([len(e) for e in edges], dtype=np.int64)
    weights = dense(weight) if weight is not None else np.zeros(1, d.carrier)
    _HISTOGRAMDD(d, x.shape[0], weight is not None, even, dense(x), weights, lines, sizes, y._data)
    if density:
        y = y / y.sum()
        for k, e in enumerate(edges):
            widths = e[1:] - e[:-1]
            y = y / widths.reshape([-1 if i == k else 1 for i in range(len(edges))])
    return made_here(y)


def _checked(input: Any, name: str, edged: bool) -> Tensor:
    """Return the operand without history. ``edged``: edges or a range are given; of half precision it is not worked out, as in PyTorch."""
    x = tensor_argument(input, name)
    if not x.dtype.is_floating_point or (x.dtype.is_half and not edged and x._layout.size):
        raise NotImplementedError(f'"{name}" not implemented for {x.dtype} (use float32 or float64)')
    return x.detach()


def _edges(bins: Tensor, x: Tensor, name: str) -> Tensor:
    if bins.ndim != 1:
        raise RuntimeError(f"{name}(): bins tensor should have one dimension, but got {bins.ndim} dimensions")
    if bins.numel() == 0:
        raise RuntimeError(f"{name}(): bins tensor should have at least 1 element, but got {bins.numel()}")
    if bins.dtype is not x.dtype:
        raise RuntimeError(
            f"{name}(): input tensor and bins tensors should have the same dtype, but got input with dtype {x.dtype} and bins with "
            f"dtype {bins.dtype}"
        )
    if bins.numel() == 1:
        raise RuntimeError(f"torch.histogram(): bins must be > 0, but got 0 for a dimension ({name}() got one edge: give two or more)")
    return bins.detach()


def _count(bins: Any, name: str) -> int:
    if isinstance(bins, bool) or not isinstance(bins, int):
        raise TypeError(f"{name}(): argument 'bins' must be an int or a Tensor, not {type(bins).__name__}")
    if bins <= 0:
        raise RuntimeError(f"{name}(): bins must be > 0, but got {bins}")
    return bins


@public()
def histogram(
    input, bins: int | Sequence[int] | Tensor | Sequence[Tensor] = 100, *, range: Sequence[float] | None = None, weight=None, density=False, out=None,
):  # fmt: skip
    """Return (hist, bin_edges): how many elements (or how much ``weight``) fall into each bin; ``density``: so that the integral is 1.

    ``bins``: a number of equal bins from range[0] to range[1] (default the data's), or the increasing edges. The last bin includes
    its right edge. No gradient.

    Errors: RuntimeError for bins, ranges and weights that do not fit.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.histogram.html

    >>> torch.histogram(torch.tensor([0.0, 1.0, 1.0, 4.0]), 2).hist
    tensor([3., 1.])
    """
    x = _checked(input, "histogram", isinstance(bins, Tensor) or range is not None)
    if weight is not None and tensor_argument(weight, "histogram", "weight")._layout.size != x._layout.size:
        raise RuntimeError(
            f"histogram(): if weight tensor is provided it should have the same shape (number of elements) as the input tensor, but got {list(weight.shape)} "
            f"for {list(x.shape)}"
        )
    with unrecorded():
        column = x.reshape(-1, 1)
        if isinstance(bins, Tensor):
            edges = _edges(bins, x, "histogram").clone()
        else:
            count = _count(bins, "histogram")
            ((low, high),) = _limits(column, range, "histogram")
            edges = OPS["linspace"].call(low, high, count + 1, dtype=x.dtype)
        hist = _counts(
            column,
            [edges],
            not isinstance(bins, Tensor),
            None if weight is None else weight.detach().reshape(-1),
            bool(density),
            "histogram",
        )
    underived("histogram", (hist, edges), input, bins, weight)
    if out is not None:
        return return_types.histogram(*store_each(out, (hist, edges), "histogram"))
    return return_types.histogram(hist, edges)


@public(method=False)
def histogramdd(input, bins: int | Sequence[int] | Tensor | Sequence[Tensor], *, range: Sequence[float] | None = None, weight=None, density=False):
    """Return (hist, bin_edges) of rows of D numbers: a D-dimensional `histogram`, and the tuple of the edges along each dim.

    ``bins``: one int for all dims, D ints, or D tensors of edges; ``range``: 2·D numbers.

    Source: https://docs.pytorch.org/docs/stable/generated/torch.histogramdd.html

    >>> torch.histogramdd(torch.tensor([[0., 1.], [1., 0.]]), bins=[2, 2]).hist
    tensor([[0., 1.],
            [1., 0.]])
    """
    given_bins: Sequence[Any] = (bins,) if isinstance(bins, int) else several_argument(bins, "histogramdd", "bins")
    x = _checked(input, "histogramdd", range is not None or all(isinstance(b, Tensor) for b in given_bins))
    if x.ndim < 2:
        raise RuntimeError(f"histogramdd(): input tensor should have at least 2 dimensions, but got {x.ndim}")
    width = x.shape[-1]
    if weight is not None and tensor_argument(weight, "histogramdd", "weight").reshape(weight.shape or 1).shape != x.shape[:-1]:
        raise RuntimeError(
            f"histogramdd(): if weight tensor is provided it should have the same shape as the input tensor excluding its innermost "
            f"dimension, but got input with shape {list(x.shape)} and weight with shape {list(weight.shape)}"
        )
    each: list[Any] = [bins] * width if isinstance(bins, int) else list(given_bins)
    if len(each) != width:
        raise RuntimeError(
            f"histogramdd(): expected {width} sequences of bin edges for a {width}-dimensional histogram but got {len(each)}"
        )
    if not width:
        return return_types.histogramdd(OPS["full"].call((), math.nan if density else 0, dtype=x.dtype), ())
    with unrecorded():
        rows = x.reshape(-1, width)
        given = all(isinstance(b, Tensor) for b in each)
        if given:
            edges = [_edges(b, x, "histogramdd") for b in each]
        else:
            counts = [_count(b, "histogramdd") for b in each]
            limits = _limits(rows, range, "histogramdd")
            edges = [OPS["linspace"].call(a, b, n + 1, dtype=x.dtype) for n, (a, b) in zip(counts, limits, strict=True)]
        hist = _counts(
            rows, edges, not given, None if weight is None else weight.detach().reshape(-1), bool(density), "histogramdd"
        )
    if given:
        edges = each  # as they were given
    underived("histogramdd", (hist, *([] if given else edges)), input, weight, *each)
    return return_types.histogramdd(hist, tuple(edges))
