"""Sums, means and maxima of bags of embeddings.

Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.embedding_bag.html
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from ... import dtypes, launch
from ...errors import warn_user
from ...graph.modes import state
from ...launch import Kernel
from ...shapes import as_int
from ...tensor import Tensor
from ..core.foreign import asked
from ..core.recording import guarded, scalar_type
from ..core.registry import OPS, public
from ..core.structured import structured, tensor_argument
from ..creation.cast import cast, dense, in_float32
from ..creation.create import new_empty, new_full
from ..creation.ranges import arange
from ..shape.shape import reshape
from .embedding import _renormalise
from .picking import check_bounds
from .take_along import take_along

_PREPARE = Kernel("indexing.bags", "prepare", outputs=3)
_GATHER = Kernel("indexing.bags", "gather")
_DOTS = Kernel("indexing.bags", "dots")
_GREATEST = Kernel("indexing.bags", "greatest")


# coef: factors of the samples in the value; slope: in the gradient of the table, where uses may be weighed down


@structured(
    w=lambda g, s, index, bag, slope, w_shape: _bag_scatter(g, s, index, bag, slope, w_shape[0]),
    s=lambda g, w, index, bag, coef: _bag_dots(w, g, index, bag, coef),
    node="EmbeddingBagBackward0",
    linear="no", batch="samples",
    dtypes="half float", samples='F.embedding_bag(index(3, 2, 2), x(3, 4), mode="sum", per_sample_weights=x(2, 2))',
)
def _bag_sum(w, s, index, bag, coef, slope, bags):
    if w.dtype.is_half:
        return in_float32(_bag_sum.forward, w, s, index, bag, coef, slope, bags)
    out = new_empty((bags, w.shape[1]), w.dtype)
    _GATHER(w.dtype, w.shape[1], dense(index), dense(bag), dense(coef), dense(s), dense(w), out._data)
    return out


@structured(
    grad=lambda g, s, index, bag, slope, grad_shape: _bag_sum(g, s, index, bag, slope, slope, grad_shape[0]),
    s=lambda g, grad, index, bag, slope: _bag_dots(g, grad, index, bag, slope),
    linear="no", batch="samples",
)
def _bag_scatter(grad, s, index, bag, slope, rows):
    if grad.dtype.is_half:
        return in_float32(_bag_scatter.forward, grad, s, index, bag, slope, rows)
    out = new_empty((rows, grad.shape[1]), grad.dtype)
    _GATHER(grad.dtype, grad.shape[1], dense(bag), dense(index), dense(slope), dense(s), dense(grad), out._data)
    return out


@structured(
    w=lambda g, grad, index, bag, coef, w_shape: _bag_scatter(grad, g, index, bag, coef, w_shape[0]),
    grad=lambda g, w, index, bag, coef, grad_shape: _bag_sum(w, g, index, bag, coef, coef, grad_shape[0]),
    linear="no", batch="samples",
)
def _bag_dots(w, grad, index, bag, coef):
    if w.dtype.is_half:
        return in_float32(_bag_dots.forward, w, grad, index, bag, coef)
    out = new_empty(index.shape, w.dtype)
    _DOTS(w.dtype, w.shape[1], dense(index), dense(bag), dense(coef), dense(w), dense(grad), out._data)
    return out


def _greatest(w: Tensor, index: Tensor, offsets: Tensor, padding: int) -> Tensor:
    """Return the largest elements of each bag, picked from the table by their rows, so that gradients go there."""
    rows = new_empty((offsets.shape[0], w.shape[1]), dtypes.int64)
    source = cast(w.detach(), dtypes.float32) if w.dtype.is_half else w
    _GREATEST(source.dtype, w.shape[1], padding, dense(index), dense(offsets), dense(source), rows._data)
    empty = rows < 0
    if not w.shape[0]:
        return w.new_zeros(rows.shape)
    return take_along(w, rows.clamp(min=0), 0).masked_fill(empty, 0)


def _bounds(x: Tensor, offsets: Tensor, last: bool) -> Tensor:
    """Return the offsets of the bags, checked, without the one behind the last."""
    if offsets.dtype not in (dtypes.int64, dtypes.int32):
        raise RuntimeError(f"expected offsets to be int or long, but got {offsets.dtype} (embedding_bag)")
    if last and not offsets._layout.size:
        raise RuntimeError("include_last_offset: number of offsets should be at least 1")
    n = x.shape[0]

    def ordered(array: np.ndarray) -> None:
        found = array.tolist()
        if found and found[0] != 0:
            raise RuntimeError(
                f"offsets[0] has to be 0, i.e., the first sequence in the mini-batch has to start from position 0. However, got {found[0]}"
            )
        if any(a > b for a, b in pairwise(found)):
            raise RuntimeError(f"offsets must not decrease (embedding_bag; offsets={found[:20]})")
        if found and found[-1] > n:
            raise RuntimeError(f"offsets[-1] can not be greater than input's length {n}, but got offsets[-1] of {found[-1]}")

    launch.check(ordered, dense(offsets))
    return cast(offsets[:-1] if last else offsets, dtypes.int64)


def _check_mode(mode: str, by_frequency: Any, sparse: Any, s: Tensor | None, w: Tensor) -> None:
    """Raise ValueError, NotImplementedError or RuntimeError for options that do not go with the mode."""
    if mode not in ("sum", "mean", "max"):
        raise ValueError(f"mode has to be one of sum, mean or max (mode={mode!r})")
    if mode == "max" and by_frequency:
        raise ValueError("max mode does not support scaling the gradient by the frequency")
    if mode == "max" and sparse:
        raise ValueError("max mode does not support sparse weights")
    if s is not None and mode != "sum":
        raise NotImplementedError(
            "embedding_bag: per_sample_weights was not None. per_sample_weights is only supported for mode='sum' "
            f"(got mode='{mode}'). Please open a feature request on GitHub."
        )
    if s is not None and s.dtype is not w.dtype:
        raise RuntimeError(
            f"expected 'weight' to have the same type as 'per_sample_weights', but got {w.dtype} and {s.dtype} (embedding_bag)"
        )


@public(method=False, namespaces=("nn.functional",))
def embedding_bag(
    input, weight, offsets=None, max_norm=None, norm_type=2, scale_grad_by_freq=False, mode="mean", sparse=False,
    per_sample_weights=None, include_last_offset=False, padding_idx=None,
):  # fmt: skip
    """Return sums, means or maxima of bags of rows of ``weight`` (n, d): (bags, d), an empty bag giving zeros.

    input: (bags, length) ints, or one dim of all bags, each starting at its number in ``offsets`` (with ``include_last_offset``, the
    end of the last one stands there too). per_sample_weights: factors, for mode "sum". padding_idx: a row that counts nowhere.
    max_norm, norm_type: as in `embedding`. scale_grad_by_freq: gradients are divided by how often a row is used. sparse: the gradient
    of ``weight`` is a sparse tensor of the rows used.

    Errors: ValueError, NotImplementedError, RuntimeError or IndexError naming what does not fit.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.embedding_bag.html

    >>> torch.nn.functional.embedding_bag(torch.tensor([[0, 1]]), torch.tensor([[1.0], [3.0]]), mode="sum")
    tensor([[4.]])
    """
    op = "embedding_bag"
    x, w = tensor_argument(input, op), tensor_argument(weight, op, "weight")
    if w.dtype is dtypes.int64 and x.dtype.category == 2:
        warn_user(
            "Argument order of nn.functional.embedding_bag was changed. Usage `embedding_bag(weight, input, ...)` is deprecated, and should "
            "now be `embedding_bag(input, weight, ...)`.",
        )
        x, w = w, x
    s = per_sample_weights
    if s is not None and tensor_argument(s, op, "per_sample_weights").shape != x.shape:
        raise ValueError(
            f"embedding_bag: If per_sample_weights ({s.shape}) is not None, then it must have the same shape as the input ({x.shape})"
        )
    if w.ndim != 2:
        raise ValueError(f"weight has to be a 2D Tensor, but got Tensor of dimension {w.ndim}")
    if x.ndim == 2 and (x.dtype is dtypes.bool_ or x.dtype.is_complex):  # (of which PyTorch first makes offsets)
        raise NotImplementedError(f"\"arange_cpu\" not implemented for '{scalar_type(x.dtype)}' (embedding_bag: input)")
    if x.ndim == 2:
        if offsets is not None:
            raise ValueError(
                "if input is 2D, then offsets has to be None, as input is treated is a mini-batch of fixed length sequences. However, "
                f"found offsets of type {type(offsets)}"
            )
        _check_dtypes(x, w)
        starts = arange(0, x.shape[0], dtype=dtypes.int64) * x.shape[1]
        s = None if s is None else s.reshape(-1)
        x = x.reshape(-1)
    elif x.ndim == 1:
        if offsets is None:
            raise ValueError("offsets has to be a 1D Tensor but got None")
        if tensor_argument(offsets, op, "offsets").ndim != 1:
            raise ValueError(f"offsets has to be a 1D Tensor (offsets.shape={list(offsets.shape)})")
        _check_dtypes(x, w)
        starts = _bounds(x, offsets, bool(include_last_offset))
    else:
        raise ValueError(f"input has to be 1D or 2D Tensor, but got Tensor of dimension {x.ndim}")
    _check_mode(mode, scale_grad_by_freq, sparse, s, w)
    index, padding = _checked(x, w, padding_idx, max_norm, norm_type)
    bags = _sparse_bags if sparse and state.grad and w.requires_grad else _bags
    y = bags(index, w, starts, mode, s, padding, bool(scale_grad_by_freq))
    return guarded(y, x, starts if offsets is None else offsets, per_sample_weights)


def _check_dtypes(x: Tensor, w: Tensor) -> None:
    if x.dtype not in (dtypes.int64, dtypes.int32):
        raise RuntimeError(f"expected input to be int or long, but got {x.dtype} (embedding_bag)")
    if w.dtype.category != 2:
        raise NotImplementedError(f'"embedding_bag" not implemented for {w.dtype}; weight must be floating point')


def _checked(x: Tensor, w: Tensor, padding_idx: Any, max_norm: Any, norm_type: Any) -> tuple[Tensor, int]:
    """Return the indices as int64 and the row that counts nowhere, or -1; the rows used have ``max_norm`` then."""
    n = w.shape[0]
    padding = -1
    if padding_idx is not None:
        padding = as_int(padding_idx, "padding_idx")
        if not -n <= padding < n:
            raise RuntimeError(f"padding_idx must be within the number of embeddings, -{n} through {n - 1} but got {padding}")
        padding %= n
    index = cast(x, dtypes.int64)
    if index._layout.size:
        sizes = list(w.shape)

        def outside(low: int, high: int) -> Exception:
            wrong = low if low < 0 else high
            if max_norm is not None:  # (for which rows are taken first)
                return IndexError(f"select(): index {wrong} out of range for tensor of size {sizes} at dimension 0 (embedding_bag)")
            return RuntimeError(f"embedding_bag: Expected idx >= 0 && idx < num_embeddings but found idx to be {wrong} (weight has {n} rows)")

        check_bounds(index, n, outside)
    if max_norm is not None:
        _renormalise(w, index, float(max_norm), float(norm_type))
    return index, padding


def _sparse_bags(index: Tensor, w: Tensor, starts: Tensor, mode: str, s: Any, padding: int, by_frequency: bool) -> Tensor:
    """Return the bags of the rows that are used, taken as a table of their own: the gradient of ``w`` is sparse."""
    if padding >= 0:  # those rows leave their bags
        before = OPS["cat"].call([new_full((1,), 0, dtypes.int64), OPS["cumsum"].call(cast(index == padding, dtypes.int64), 0)])
        keep = reshape(OPS["nonzero"].call(index != padding), -1)
        starts, index, s = starts - before[starts], index[keep], None if s is None else s[keep]
    rows = asked.embedding(w, index, -1, by_frequency)
    return _bags(arange(0, index.shape[0], dtype=dtypes.int64), rows, starts, mode, s, -1, False)


def _bags(index: Tensor, w: Tensor, starts: Tensor, mode: str, s: Any, padding: int, by_frequency: bool) -> Tensor:
    if mode == "max":
        return _greatest(w, index, starts, padding)
    n = w.shape[0]
    single = dtypes.float32 if w.dtype.is_half else w.dtype
    bag = new_empty(index.shape, dtypes.int64)
    coef, slope = new_empty(index.shape, single), new_empty(index.shape, single)
    _PREPARE(single, n, padding, mode == "mean", by_frequency, dense(index), dense(starts), bag._data, coef._data, slope._data)
    return _bag_sum(w, new_empty((0,), w.dtype) if s is None else s, index, bag, coef, slope, starts.shape[0])
