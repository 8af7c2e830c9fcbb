"""Quantiles, and the most frequent value."""

from __future__ import annotations

from typing import Any

import numpy as np

from ... import dtypes, launch, return_types
from ...graph.modes import unrecorded
from ...shapes import wrap_dim
from ...tensor import Tensor
from ..core.recording import fresh, no_complex_derivative, store
from ..core.registry import OPS, public
from ..core.structured import structured, tensor_argument
from ..creation.cast import cast, dense
from ..creation.create import new_empty, new_full
from ..indexing.gather import _gather
from ..indexing.sorting import _back, _bits_of_nan, _only_one, _pair, _picked_rule, _rows, _sort_keys, sort

_MODE = launch.Kernel("indexing.select", "mode")

INTERPOLATIONS = ("linear", "lower", "higher", "midpoint", "nearest")


def _levels(q: Any, x: Tensor, name: str) -> Tensor:
    """Return q as a tensor of x's dtype, checked."""
    if isinstance(q, Tensor):
        if q.ndim > 1:
            raise RuntimeError(f"{name}() q must be a scalar or 1D tensor, but got {q.ndim} dims")
        if q.dtype is not x.dtype:
            raise RuntimeError(f"{name}() q tensor must be same dtype as the input tensor (q is {q.dtype}, input {x.dtype})")
    elif isinstance(q, bool) or not isinstance(q, (int, float, np.number)):
        raise TypeError(f"{name}(): argument 'q' must be a float or a Tensor, not {type(q).__name__}")
    else:
        if not 0 <= q <= 1:
            raise RuntimeError(f"{name}() q must be in the range [0, 1] but got {q}")
        return new_full((), float(q), x.dtype)
    with unrecorded():
        if q.numel() and not bool(((q >= 0) & (q <= 1)).all()):
            raise RuntimeError(f"{name}() q values must be in the range [0, 1]")
    return q


def _quantile(x: Tensor, q: Any, dim: Any, keepdim: bool, interpolation: str, ignore_nan: bool, name: str) -> Tensor:
    if x.dtype not in (dtypes.float32, dtypes.float64):
        raise RuntimeError(f"{name}() input tensor must be either float or double dtype (got {x.dtype}; cast with .float())")
    if not x._layout.size:
        raise RuntimeError(f"{name}() input tensor must be non-empty (its shape is {list(x.shape)})")
    if interpolation not in INTERPOLATIONS:
        raise RuntimeError(
            f"{name}() interpolation must be one of linear, lower, higher, midpoint or nearest, but got {interpolation}"
        )
    q = _levels(q, x, name)
    where = OPS["where"].call
    d = wrap_dim(dim, x.ndim) if dim is not None else 0
    kept = [1] * x.ndim
    if dim is not None and x.ndim:
        kept = list(x.shape)
        kept[d] = 1
    rows = x.reshape(-1) if dim is None or not x.ndim else x.movedim(d, -1)
    ordered = sort(rows, -1).values
    n = ordered.shape[-1]
    with unrecorded():
        holes = ordered.detach().isnan().sum(-1, keepdim=True)
    place = q.reshape(-1)
    if ignore_nan:
        rank = place * cast((n - holes - 1).clamp(min=0), x.dtype)
    else:  # nan, sorted last, is the answer of a row that has one
        rank = where(holes > 0, float(n - 1), place * (n - 1))
    if interpolation == "lower":
        rank = rank.floor()
    elif interpolation == "higher":
        rank = rank.ceil()
    elif interpolation == "nearest":
        rank = rank.round()
    low = cast(rank.detach().floor(), dtypes.int64)
    y = ordered.gather(-1, low)
    if interpolation in ("linear", "midpoint"):
        weight = rank - cast(low, x.dtype) if interpolation == "linear" else new_full(rank.shape, 0.5, x.dtype)
        above = ordered.gather(-1, cast(rank.detach().ceil(), dtypes.int64))
        y = OPS["lerp"].call(y, above, weight)
    y = y.movedim(-1, 0)  # the levels first
    shape = list(y.shape[1:])
    if keepdim:
        shape = kept
    return fresh(y.reshape(([y.shape[0]] if q.ndim else []) + shape))


@public()
def quantile(input, q: Tensor | float, dim: int | None = None, keepdim=False, *, interpolation="linear", out=None):
    """Return the q-quantiles along ``dim`` (of all elements by default); ``q`` a number or 1-d tensor, whose dim then comes first.

    The place q·(n − 1) of the sorted elements, between two by ``interpolation``: "linear", "lower", "higher", "midpoint",
    "nearest". A row with nan gives nan. The gradient goes to the elements at both sides.

    Errors: RuntimeError for an empty input, other dtypes than float32 and float64, q outside [0, 1].
    Source: https://docs.pytorch.org/docs/stable/generated/torch.quantile.html

    >>> torch.quantile(torch.tensor([1.0, 2.0, 3.0, 5.0]), 0.5)
    tensor(2.5000)
    """
    y = _quantile(tensor_argument(input, "quantile"), q, dim, bool(keepdim), interpolation, False, "quantile")
    return y if out is None else store(out, y, "quantile")


@public()
def nanquantile(input, q: Tensor | float, dim: int | None = None, keepdim=False, *, interpolation="linear", out=None):
    """Return `quantile` of what is not nan; nan where a row has nothing else; nanquantile([1., float("nan"), 3.], 0.5) = tensor(2.)."""
    y = _quantile(tensor_argument(input, "nanquantile"), q, dim, bool(keepdim), interpolation, True, "nanquantile")
    return y if out is None else store(out, y, "nanquantile")


@structured(
    x=_picked_rule, node="ModeBackward0", linear="no", batch="shift",
    dtypes="half float integer bool", samples="x(3, 4).mode(1).values",
)
def _mode(x, d):
    rows, n = _rows(x, d)
    index = new_empty([*rows.shape[:-1], 1], dtypes.int64)
    if index._layout.size:
        _MODE(0, _sort_keys(dense(rows), x.dtype, False), n, _bits_of_nan(x.dtype), index._data)
    index = _back(index, d)
    return [_gather(x, d, index), index]


@public()
def mode(input, dim: int = -1, keepdim=False, *, out=None):
    """Return (values, indices) of the most frequent value along ``dim``, the smallest of several; the index is that of its last place.

    Derivative: g goes to the place in ``indices``, zeros elsewhere.
    Errors: IndexError for a dim out of range or of size 0.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.mode.html

    >>> torch.mode(torch.tensor([3, 1, 3, 2])).values
    tensor(3)
    """
    x = tensor_argument(input, "mode")
    d = wrap_dim(dim, x.ndim)
    if x.ndim and not x.shape[d]:
        raise IndexError(f"mode(): Expected reduction dim {dim} to have non-zero size.")
    if not x.ndim:
        no_complex_derivative("mode", x)
        return _pair(return_types.mode, *_only_one(x), out, "mode")
    values, indices = _mode(x, d)
    no_complex_derivative("mode", x)  # (of nothing: others are refused)
    if not keepdim:
        values, indices = values.squeeze(d), indices.squeeze(d)
    return _pair(return_types.mode, values, indices, out, "mode")
