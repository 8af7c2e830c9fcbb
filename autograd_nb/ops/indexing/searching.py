"""Where values belong among sorted ones, and how often integers occur."""

from __future__ import annotations

from typing import Any

import numpy as np

from ... import dtypes, launch
from ...codegen import threads
from ...launch import Kernel
from ...shapes import as_int
from ...tensor import Tensor
from ..core.numbers import plain_number, text_argument
from ..core.recording import (
    made_here,
    not_for_barebone,
    scalar_type,
    store,
)
from ..core.registry import public
from ..core.structured import tensor_argument
from ..creation.cast import cast, dense
from ..creation.create import new_empty, new_full
from .picking import checked_index

_bounds = Kernel("indexing.index", "bounds")
_search = Kernel("indexing.sort", "search")
_count_ints = Kernel("indexing.sort", "count_ints")
_sum_ints = Kernel("indexing.sort", "sum_ints")

_INT = np.dtype(np.int64)
SEARCHED = 128  #: what it costs to search a place, see `threads.WORTH`


def _search_parts(args: tuple[Any, ...]) -> list[tuple[Any, ...]]:
    edges, values, order, rows, n, m, right, by, out = args
    if rows == 1:
        return [(edges, values[i:j], order, 1, n, m, right, by, out[i:j]) for i, j in threads.pieces(out.size, SEARCHED * out.size)]
    return [
        (edges[i * n : j * n], values[i * m : j * m], order[i * n : j * n] if by else order, j - i, n, m, right, by, out[i * m : j * m])
        for i, j in threads.pieces(rows, SEARCHED * out.size)
    ]


def _searched(edges: Tensor, values: Any, sorter: Tensor | None, right: bool, int32: bool, name: str) -> Tensor:
    scalar = not isinstance(values, Tensor)
    if scalar:
        number = plain_number(values)
        if number is None:
            raise TypeError(f"{name}(): values must be a Tensor or a number, not {type(values).__name__}")
        kind = edges.dtype if isinstance(number, int) or edges.dtype.category > 1 else dtypes.get_default_dtype()
        if kind.category == 2 and abs(number) > dtypes.finfo(kind).max:  # (it is compared as it is)
            kind = dtypes.float64
        values = new_full((), number, kind)
    d = dtypes.promote_types(edges.dtype, values.dtype)
    if d is dtypes.bool_ or d.is_complex:
        raise NotImplementedError(f"\"searchsorted_out_cpu\" not implemented for '{scalar_type(d)}'")
    not_for_barebone("searchsorted_out_cpu", d)
    if d.is_half:
        d = dtypes.float32
    n = edges.shape[-1] if edges.ndim else 1
    rows = edges._layout.size // n if n else 1
    if edges.ndim <= 1:
        rows = 1
    out = new_empty(values.shape, dtypes.int64)
    if out._layout.size:
        m = values.shape[-1] if values.ndim else 1
        order = np.zeros(1, _INT) if sorter is None else dense(sorter)
        a, b = dense(cast(edges.detach(), d)), dense(cast(values.detach(), d))
        args = (a, b, order, rows, n, m, right, sorter is not None, out._data)
        if threads.alone(SEARCHED * b.size):
            _search(d.carrier, *args)
        else:
            _search.split(d.carrier, args, _search_parts)
    return made_here(cast(out, dtypes.int32) if int32 else out)


@public(method=False)
def searchsorted(sorted_sequence, input: Tensor | float, *, out_int32=False, right=False, side=None, sorter=None, out=None):
    """Return where each value would be inserted in the sorted last dim: the first place with sequence ≥ value (``right``: > value).

    Errors: RuntimeError for shapes that do not match.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.searchsorted.html

    >>> torch.searchsorted(torch.tensor([1, 3, 5]), torch.tensor([3, 4]))
    tensor([1, 2])
    """
    edges = tensor_argument(sorted_sequence, "searchsorted", "sorted_sequence")
    if text_argument(side, "searchsorted", "side") not in (None, "left", "right"):
        raise RuntimeError(f"torch.searchsorted(): side can only be 'left' or 'right' but got {side}")
    if side == "left" and right:
        raise RuntimeError(
            "torch.searchsorted(): side and right can't be set to opposites, got side of left while right was True"
        )
    if not edges.ndim:
        raise RuntimeError("torch.searchsorted(): sorted_sequence must have at least 1 dimension, but got 0")
    if isinstance(input, Tensor):
        if edges.ndim > 1 and (input.ndim != edges.ndim or input.shape[:-1] != edges.shape[:-1]):
            raise RuntimeError(
                "torch.searchsorted(): boundaries tensor should be 1 dimension or the first N-1 dimensions of boundaries "
                f"tensor and input value tensor must match, but we got boundaries tensor {list(edges.shape)} and input value "
                f"tensor {list(input.shape)}"
            )
    elif edges.ndim > 1:
        raise RuntimeError(
            "torch.searchsorted(): input value can be a scalar only when boundaries tensor dimension is 1, but we got "
            f"boundaries tensor dim({edges.ndim})"
        )
    if sorter is not None:
        tensor_argument(sorter, "searchsorted", "sorter")
        if sorter.dtype is not dtypes.int64:
            raise RuntimeError(f"torch.searchsorted(): sorter must be a tensor of long dtype but got dtype {sorter.dtype}")
        if sorter.shape != edges.shape:
            raise RuntimeError(
                f"torch.searchsorted(): boundary and sorter must have the same size, but got boundary tensor "
                f"{list(edges.shape)} and got sorter tensor {list(sorter.shape)}"
            )
        checked_index(sorter, edges.shape[-1], edges.ndim - 1, negative=False)
    y = _searched(edges, input, sorter, bool(right) or side == "right", bool(out_int32), "searchsorted")
    return y if out is None else store(out, y, "searchsorted")


@public(method=False)
def bucketize(input: Tensor | float, boundaries, *, out_int32=False, right=False, out=None):
    """Return the bucket of each value between sorted 1-d ``boundaries``; bucketize([1, 5, 9], [2, 6]) = [0, 1, 2]."""
    edges = tensor_argument(boundaries, "bucketize", "boundaries")
    if edges.ndim != 1:
        raise RuntimeError(f"boundaries tensor must be 1 dimension, but got dim({edges.ndim})")
    y = _searched(edges, input, None, bool(right), bool(out_int32), "bucketize")
    return y if out is None else store(out, y, "bucketize")


@public()
def bincount(input, weights=None, minlength=0):
    """Return how often each non-negative integer of a 1-d tensor occurs, or the sum of ``weights`` there; no gradient. RuntimeError otherwise.

    >>> torch.bincount(torch.tensor([0, 1, 1, 3]))
    tensor([1, 2, 0, 1])
    """
    x = tensor_argument(input, "bincount")
    if x.dtype.category > 1 or x.dtype is dtypes.bool_:
        raise NotImplementedError(f'"bincount_cpu" not implemented for {x.dtype} (it counts integers)')
    not_for_barebone("bincount_cpu", x.dtype)
    if x.ndim != 1:
        raise RuntimeError(
            f"bincount only supports 1-d non-negative integral inputs. (input: {x.dtype} of shape {list(x.shape)})"
        )
    least = as_int(minlength, "minlength")
    if least < 0:
        raise RuntimeError(f"minlength should be >= 0 (minlength={minlength})")
    if weights is not None and tensor_argument(weights, "bincount", "weights").shape != x.shape:
        raise RuntimeError(f"weights should be 1-d and have the same length as input (weights.shape={list(weights.shape)})")
    flat = dense(cast(x, dtypes.int64))
    low, high = 0, -1
    if flat.size:
        span = np.empty(2, _INT)
        _bounds(0, flat, span)
        launch.escapes("bincount(), whose size depends on them")
        low, high = span.tolist()
    if low < 0:
        raise RuntimeError("bincount only supports 1-d non-negative integral inputs. (input has negative elements)")
    size = max(least, high + 1)
    if weights is None:
        out = new_empty((size,), dtypes.int64)
        _count_ints(0, flat, out._data)
        return made_here(out)
    kind = weights.dtype if weights.dtype in (dtypes.float32, dtypes.float64) else dtypes.float64
    out = new_empty((size,), kind)
    _sum_ints(kind, flat, dense(cast(weights.detach(), kind)), out._data)
    return made_here(out)
