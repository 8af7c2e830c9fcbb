"""Connectionist temporal classification loss.

Source: Graves et al., Connectionist temporal classification (ICML 2006);
https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.ctc_loss.html
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import accumulate
from typing import Any

import numpy as np

from ... import dtypes, launch
from ...launch import Kernel
from ...shapes import as_int
from ...tensor import Tensor
from ..core.numbers import bool_argument
from ..core.registry import OPS, public
from ..core.structured import structured, tensor_argument
from ..creation.cast import cast, dense
from ..creation.create import new_empty
from ..creation.data import tensor
from .loss import check_reduction

_bounds = Kernel("indexing.index", "bounds")
_FORWARD = Kernel("nn.ctc", "forward", outputs=2)
_BACKWARD = Kernel("nn.ctc", "backward")


def _rule(g, x, labels, places, lengths, sizes, out, how):
    return {"x": None if g[0] is None else _ctc_loss_backward(g[0], x, labels, places, lengths, sizes, *out, how)}


@structured(
    every=_rule, node="CtcLossBackward0", linear="no", batch="samples",
    dtypes="half float", samples="F.ctc_loss(x(5, 2, 4).log_softmax(2), index(3, 2, 2) + 1, torch.tensor([5, 4]), torch.tensor([2, 2]))",
)
def _ctc_loss(x, labels, places, lengths, sizes, how):
    """Return (losses, alpha); how: (states, blank, zero_infinity)."""
    steps, batch, classes = x.shape
    losses, alpha = new_empty((batch,), x.dtype), new_empty((batch, steps, how[0]), x.dtype)
    if batch:
        _FORWARD(x.dtype, batch, classes, how[0], how[1], *[dense(t) for t in (x, labels, places, lengths, sizes)], losses._data, alpha._data)
    return losses, alpha


def _second(g):
    raise RuntimeError("derivative for ctc_loss_backward is not implemented: ctc_loss can be differentiated once")


@structured(every=lambda g: _second(g), linear="no", batch="samples")
def _ctc_loss_backward(g, x, labels, places, lengths, sizes, losses, alpha, how):
    out = new_empty(x.shape, x.dtype)
    batch, classes = x.shape[1:]
    operands = [dense(t) for t in (g, x, labels, places, lengths, sizes, losses, alpha)]
    if batch:
        _BACKWARD(x.dtype, batch, classes, *how, *operands, out._data)
    return out


def _lengths(value: Any, name: str, batch: int, most: int, what: str) -> tuple[Tensor, list[int] | None]:
    """Return a length for each sample, as an int64 tensor and as ints, None of a tensor that a capture sees; RuntimeError for other counts or values."""
    later = False
    if isinstance(value, Tensor):
        if value.dtype.category != 1:
            raise RuntimeError(f"{name} must be integral (got {value.dtype})")
        count, later = value._layout.size, launch.observer() is not None
        found = [] if later else value.reshape(-1).tolist()
    else:
        found = [as_int(v, name) for v in (value if isinstance(value, (tuple, list)) else [value])]
        count = len(found)
    if count != batch:
        raise RuntimeError(f"{name} must be of size batch_size (got {count} for a batch of {batch})")

    def fit(found: Any) -> None:
        for v in found.tolist():
            if not 0 <= v <= most:
                raise RuntimeError(f"Expected {name} to have value {'at least 0' if v < 0 else f'at most {most}'}, but got value {v} ({what})")

    lengths = cast(value.reshape(-1), dtypes.int64) if later else tensor(found, dtype=dtypes.int64)
    launch.check(fit, dense(lengths), passes=tuple([(0, b, 0, most) for b in range(batch)]))
    return lengths, None if later else found


@public(method=False, namespaces=("nn.functional",), name="nn.functional.ctc_loss")
def ctc_loss(
    log_probs, targets, input_lengths: Tensor | Sequence[int], target_lengths: Tensor | Sequence[int], blank=0, reduction="mean", zero_infinity=False
):
    """Return −ln of the probability that ``log_probs`` (T, N, C) spells the targets, over all alignments with blanks and repeats.

    targets: (N, S), or all one after the other in one dim; lengths: a tensor or a tuple of N ints. Without a batch: (T, C), (S),
    and one length each. "mean" divides each loss by its target's length, then averages. zero_infinity: impossible targets count
    0, and so do their gradients. The gradient is that of log_softmax's output, eˣ − posterior. It can be taken once.

    Errors: RuntimeError naming what does not fit.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.ctc_loss.html

    >>> torch.nn.functional.ctc_loss(torch.full((2, 1, 2), 0.5).log(), torch.tensor([[1]]), [2], [1])
    tensor(0.2877)
    """
    x, labels = tensor_argument(log_probs, "ctc_loss", "log_probs"), tensor_argument(targets, "ctc_loss", "targets")
    check_reduction(reduction)
    zero_infinity = bool_argument(zero_infinity, "ctc_loss", "zero_infinity")
    if x.dtype.category != 2:
        raise NotImplementedError(f'"ctc_loss" not implemented for {x.dtype}; log_probs must be floating point')
    if labels.dtype.category != 1:
        raise RuntimeError(f"ctc_loss: targets must be integral, but got {labels.dtype}")
    single = x.ndim == 2
    if x.ndim not in (2, 3):
        raise RuntimeError(f"ctc_loss: log_probs must be (T, N, C) or (T, C), but got {list(x.shape)}")
    if single:
        x = x.unsqueeze(1)
    steps, batch, classes = x.shape
    if not 0 <= as_int(blank, "blank") < classes:
        raise RuntimeError(f"blank must be in label range (blank={blank}, {classes} classes)")
    if labels.ndim not in (1, 2) or (labels.ndim == 2 and labels.shape[0] != batch):
        raise RuntimeError(f"ctc_loss: targets must be (N, S) or one-dimensional, but got {list(labels.shape)} for a batch of {batch}")
    lengths, _ = _lengths(input_lengths, "input_lengths", batch, steps, "the number of time steps")
    most = labels.shape[1] if labels.ndim == 2 else labels.shape[0]
    sizes, counts = _lengths(target_lengths, "target_lengths", batch, most, f"targets of size {list(labels.shape)}")
    places = _places(labels, sizes, counts, single)
    labels = cast(labels, dtypes.int64)
    if labels._layout.size:
        labels = _in_range(labels, sizes, classes)
    longest = most if counts is None else max(counts, default=0)
    d = x.dtype
    x = cast(x, dtypes.float32) if d.is_half else x
    losses, _ = _ctc_loss(x, labels, places, lengths, sizes, (2 * longest + 1, int(blank), bool(zero_infinity)))
    if zero_infinity:
        losses = OPS["where"].call(losses == math.inf, 0.0, losses)
    if reduction == "mean":
        losses = (losses / cast(sizes, x.dtype).clamp(min=1)).mean()
    elif reduction == "sum":
        losses = losses.sum()
    elif single:
        losses = losses.squeeze(0)
    return cast(losses, d)


def _places(labels: Tensor, sizes: Tensor, counts: list[int] | None, single: bool) -> Tensor:
    """Return where the targets of each sample begin; RuntimeError where those that follow one another are not as many as the sizes say."""
    batch, most = sizes.shape[0], labels.shape[-1]
    if labels.ndim == 2:
        return tensor([most * b for b in range(batch)], dtype=dtypes.int64)
    ends = sizes.cumsum(0) if counts is None else tensor([*accumulate(counts)], dtype=dtypes.int64)

    def whole(ends: np.ndarray) -> None:
        total = ends.tolist()[-1] if batch else 0
        if total > most or (not single and total != most):
            raise RuntimeError(f"Expected 1D targets of size {total} (the sum of target_lengths), but got size {most}")

    launch.check(whole, dense(ends), passes=((0, batch - 1, 0 if single else most, most),) if batch else ())
    return ends - sizes


def _in_range(labels: Tensor, sizes: Tensor, classes: int) -> Tensor:
    """Return targets in [0, classes), whatever stood behind each sample's length; RuntimeError for a class that is out of range."""
    flat, span, width = dense(labels), np.empty(2, np.int64), labels.shape[1] if labels.ndim == 2 else 0
    _bounds(0, flat, span)

    def inside(span: np.ndarray, flat: np.ndarray, sizes: np.ndarray) -> None:
        low, high = span.tolist()
        if low < 0 or high >= classes:
            rows = flat.tolist()
            used = [v for k, n in enumerate(sizes.tolist()) for v in rows[k * width : k * width + n]] if width else rows
            wrong = [v for v in used if not 0 <= v < classes]
            if wrong:
                raise RuntimeError(f"ctc_loss: targets must be in [0, {classes}), but got {wrong[0]}")

    launch.check(inside, span, flat, dense(sizes), passes=((0, 0, 0, classes - 1), (0, 1, 0, classes - 1)))
    if launch.holds(span, 0, 0, classes - 1) and launch.holds(span, 1, 0, classes - 1):
        return labels
    return labels.clamp(0, classes - 1)


@public(method=False, name="ctc_loss")
def ctc_loss_(
    log_probs, targets, input_lengths: Tensor | Sequence[int], target_lengths: Tensor | Sequence[int], blank=0, reduction: int = 1, zero_infinity=False
):
    """Return `nn.functional.ctc_loss` with reductions as numbers: 0 none, 1 mean, 2 sum."""
    names = ("none", "mean", "sum")
    return ctc_loss(log_probs, targets, input_lengths, target_lengths, blank, names[reduction] if reduction in (0, 1, 2) else reduction, zero_infinity)
