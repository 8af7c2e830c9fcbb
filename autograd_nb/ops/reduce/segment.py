"""`segment_reduce`: reductions over consecutive runs of a dim."""

from __future__ import annotations

import math
from typing import Any

from ... import dtypes
from ...graph.modes import unrecorded
from ...shapes import wrap_dim
from ...tensor import Tensor
from ..core.numbers import float_argument, text_argument
from ..core.recording import guarded, scalar_type
from ..core.registry import OPS, public
from ..core.structured import structured, tensor_argument
from ..creation.cast import cast

_REDUCTIONS = {
    "sum": ("sum", 0.0), "mean": ("sum", 0.0), "prod": ("prod", 1.0), "max": ("amax", -math.inf), "amax": ("amax", -math.inf),
    "min": ("amin", math.inf), "amin": ("amin", math.inf),
}  # fmt: skip


def _share(g: Tensor, x: Tensor, out: Tensor, first: Tensor, index: Tensor, d: int, kind: str) -> Tensor:
    """Return the gradient of `_segments`: to the extremes, or to nan where there is one; to each factor the product of the others."""
    where, missing = OPS["where"].call, x.isnan()

    def count(chosen: Tensor) -> Tensor:
        return OPS["zeros_like"].call(out).scatter_add(d, index, cast(chosen, x.dtype))

    if kind != "prod":
        chosen = missing | (x == out.gather(d, index))
        return where(chosen, (g / count(chosen).clamp(min=1.0)).gather(d, index), 0.0)
    zero = x == 0
    rest = first.scatter_reduce(d, index, where(zero | missing, 1.0, x), "prod").gather(d, index)
    zeros = count(zero).gather(d, index) - cast(zero, x.dtype)
    others = where(zeros > 0, rest * 0.0, rest)
    others = where(count(missing).gather(d, index) > cast(missing, x.dtype), math.nan, others)
    return g.gather(d, index) * where(zero | missing, others, out.gather(d, index) / x)


@structured(
    x=_share, node="SegmentReduceBackward0", linear="no", batch="samples", dtypes="half float",
    samples='torch.segment_reduce(x(4, 3), "max", lengths=torch.tensor([1, 3]))',
)
def _segments(x, first, index, d, kind):
    return first.scatter_reduce(d, index, x, kind, include_self=True)


def _lengths(x: Tensor, lengths: Any, offsets: Any, axis: int, unsafe: bool) -> Tensor:
    """Return how long each segment is, along the last dim; checked."""
    given = lengths if lengths is not None else offsets
    label = "lengths" if lengths is not None else "offsets"
    if given is None:
        raise RuntimeError("segment_reduce(): Either lengths or offsets must be defined.")
    tensor_argument(given, "segment_reduce", label)
    if given.dtype not in (dtypes.int64, dtypes.int32):
        raise RuntimeError(f"segment_reduce(): {label} must be int32 or int64, not {given.dtype}")
    if given.ndim - 1 != axis or tuple(given.shape[:-1]) != tuple(x.shape[:axis]):
        raise RuntimeError(
            f"segment_reduce(): Expected axis to be the last dimension of {label} (axis={axis}, {label}.shape={list(given.shape)}, "
            f"data.shape={list(x.shape)})"
        )
    if lengths is None:
        lengths, unsafe = given[..., 1:] - given[..., :-1], True  # (what lies outside of them is left out)
    elif not lengths.numel():
        raise RuntimeError("min(): Expected reduction dim to be specified for input.numel() == 0 (segment_reduce() of no lengths)")
    if lengths.numel() and int(lengths.min().item()) < 0:
        raise RuntimeError("lengths contains negative value!")
    total = lengths.sum(-1)
    n = x.shape[axis]
    if bool((total > n).any() if unsafe else (total != n).any()):
        raise RuntimeError(
            "segment_reduce(): Expected all rows of lengths along axis to sum to data.size(lengths.dim()-1) when !unsafe. "
            f"(data has {n} along axis {axis})"
        )
    return lengths


@public("_segment_reduce", method=False)
def segment_reduce(data: Tensor, reduce, *, lengths=None, indices=None, offsets=None, axis=0, unsafe=False, initial: float | None = None):
    """Reduce runs of ``lengths`` (or between ``offsets``) along ``axis``: "sum", "mean", "prod", "max", "min".

    lengths has the dims of the data up to ``axis``, the last counting segments. ``initial`` takes part in every segment; without
    it an empty one gives the reduction's identity (nan for a mean).

    Errors: RuntimeError for lengths that are negative or do not add up, and other reductions.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.segment_reduce.html

    >>> torch.segment_reduce(torch.tensor([1.0, 2.0, 3.0]), "sum", lengths=torch.tensor([1, 2]))
    tensor([1., 5.])
    """
    x = tensor_argument(data, "segment_reduce", "data")
    if text_argument(reduce, "segment_reduce", "reduce") not in _REDUCTIONS:
        raise RuntimeError(f"reduce argument must be either sum, prod, mean, amax or amin, got {reduce}")
    if indices is not None:
        raise RuntimeError("segment_reduce(): indices based reduction is not supported yet.")
    if not x.dtype.is_floating_point:
        raise NotImplementedError(f"\"_segment_reduce_cpu\" not implemented for '{scalar_type(x.dtype)}': the data must be of a floating point dtype")
    d = wrap_dim(axis, x.ndim, "axis")
    where = OPS["where"].call
    with unrecorded():
        sizes = cast(_lengths(x, lengths, offsets, d, bool(unsafe)), dtypes.int64)
        # the segment of each place: how many segments end at or before it
        places = OPS["arange"].call(x.shape[d]).expand(*sizes.shape[:-1], x.shape[d])
        begin = 0 if lengths is not None else cast(offsets[..., :1], dtypes.int64)
        segment = OPS["searchsorted"].call(sizes.cumsum(-1) + begin, places.contiguous(), right=True)
        beyond = (segment >= sizes.shape[-1]) | (places < begin)
        tail = [1] * (x.ndim - d - 1)
        index = where(beyond, 0, segment).reshape((*segment.shape, *tail)).expand(x.shape)
        outside = beyond.reshape((*beyond.shape, *tail))
        counts = cast(sizes, x.dtype).reshape((*sizes.shape, *tail))
    if not sizes.shape[-1]:
        return x.narrow(d, 0, 0)
    kind, identity = _REDUCTIONS[reduce]
    start = identity if initial is None else float_argument(initial, "segment_reduce", "initial")
    if bool(beyond.any()):  # places after the last segment
        x = where(outside, identity, x)
    first = OPS["full"].call((*sizes.shape, *x.shape[d + 1 :]), start, dtype=x.dtype)
    y = first.scatter_add(d, index, x) if kind == "sum" else _segments(x, first, index, d, kind)
    if reduce == "mean":
        y = y / (counts if initial is None else counts.clamp(min=1.0))
    return guarded(y, data, lengths, offsets, y)
