"""Distances, similarities, and the losses made of them; written with other ops."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ... import dtypes
from ...graph.modes import state, unrecorded
from ...shapes import wrap_dim
from ...tensor import Tensor
from ..core.numbers import float_argument, real_beside
from ..core.recording import constant, guarded, scalar_type, store
from ..core.registry import OPS
from ..core.structured import tensor_argument
from ..creation.cast import cast
from ..creation.create import new_full
from ..elementwise.activation import functional
from ..elementwise.arithmetic import minimum
from ..indexing.take_along import put_along, take_along
from ..reduce.norms import vector_norm
from .cross_entropy import _checked_indices, check_reduction
from .loss import _settled, _target, _total, _where


def _clamp(x: Tensor, low: float) -> Tensor:
    return OPS["clamp"].call(x, min=low)


@functional("torch")
def cosine_similarity(x1, x2, dim=1, eps=1e-8):
    """Return x₁·x₂/(max(‖x₁‖, eps)·max(‖x₂‖, eps)) along ``dim`` of the broadcast inputs.

    The dim is gone in the result. Each input is divided by its norm in its own dtype; the result has that of both together.
    Errors: RuntimeError unless that is a floating point one, IndexError for a dim out of range.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.cosine_similarity.html

    >>> torch.nn.functional.cosine_similarity(torch.tensor([[3.0, 4.0]]), torch.tensor([[1.0, 0.0]]))
    tensor([0.6000])
    """
    a, b = tensor_argument(x1, "cosine_similarity", "x1"), tensor_argument(x2, "cosine_similarity", "x2")
    eps = float_argument(eps, "cosine_similarity", "eps")
    d = dtypes.promote_types(a.dtype, b.dtype)
    if d.category != 2:
        raise RuntimeError(f"expected common dtype to be floating point, yet common dtype is {d}")
    if not eps >= 0:
        raise RuntimeError(f"eps must be non-negative, got: {eps} (cosine_similarity())")
    for t in (a, b):
        real_beside(t, eps, "cosine_similarity", "eps", dtypes.float32)
    a, b = OPS["broadcast_tensors"].call(*[t if t.dtype.category == 2 else cast(t, d) for t in (a, b)])
    dim = wrap_dim(dim, a.ndim)
    return (_unit(a, dim, eps) * _unit(b, dim, eps)).sum(dim)


def _unit(x: Tensor, dim: int, eps: float) -> Tensor:
    """Return x over its norm; the clamp of the norm is not seen by the gradient, but by a tangent."""
    norm = vector_norm(x, 2, dim, True)
    with unrecorded():
        state.switched += 1  # (a tangent is that of a function which is called again)
        missing = _clamp(eps - norm, 0.0)
    return x / (norm + missing)


@functional("torch")
def pairwise_distance(x1, x2, p=2.0, eps=1e-6, keepdim=False):
    """Return ‖x₁ − x₂ + eps‖ₚ along the last dim: (…, n) → (…), or (…, 1) if ``keepdim``.

    The inputs broadcast. Errors: RuntimeError when they do not.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.pairwise_distance.html

    >>> torch.nn.functional.pairwise_distance(torch.tensor([[3.0, 4.0]]), torch.tensor([[0.0, 0.0]]))
    tensor([5.0000])
    """
    a, b = tensor_argument(x1, "pairwise_distance", "x1"), tensor_argument(x2, "pairwise_distance", "x2")
    return vector_norm(a - b + eps, p, -1, keepdim)


@functional()
def normalize(input, p=2.0, dim: int = 1, eps=1e-12, out=None):
    """Return x/max(‖x‖ₚ, eps) along ``dim``, of the input's shape.

    A vector needs ``dim=0``. Errors: IndexError for a dim out of range.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.normalize.html

    >>> torch.nn.functional.normalize(torch.tensor([[3.0, 4.0], [0.0, 0.0]]))
    tensor([[0.6000, 0.8000],
            [0.0000, 0.0000]])
    """
    x = tensor_argument(input, "normalize")
    y = x / _clamp(vector_norm(x, p, dim, True), eps)
    if out is None:
        return y
    return store(out, y, "normalize", (), (input,))


@functional("torch")
def cosine_embedding_loss(input1, input2, target, margin=0.0, size_average=None, reduce=None, reduction="mean"):
    """Return 1 − cos(x₁, x₂) where the target is 1, max(0, cos(x₁, x₂) − margin) where it is −1.

    Inputs (N, n) with targets (N), or (n) with one target; ``margin`` in [−1, 1].
    Errors: RuntimeError for other numbers of dims.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.cosine_embedding_loss.html

    >>> torch.nn.functional.cosine_embedding_loss(torch.tensor([[1.0, 0.0]]), torch.tensor([[3.0, 4.0]]), torch.tensor([1]))
    tensor(0.4000)
    """
    reduction = _settled(size_average, reduce, reduction)
    a, b = (
        tensor_argument(input1, "cosine_embedding_loss", "input1"),
        tensor_argument(input2, "cosine_embedding_loss", "input2"),
    )
    t = tensor_argument(target, "cosine_embedding_loss", "target")
    if t.ndim > 1:
        raise RuntimeError(f"0D or 1D target tensor expected, multi-target not supported (target has shape {list(t.shape)})")
    if t.ndim == 1 and (a.ndim != 2 or b.ndim != 2):
        raise RuntimeError(
            f"1D target tensor expects 2D input tensors, but found inputs with sizes {list(a.shape)} and {list(b.shape)}."
        )
    if t.ndim == 0 and (a.ndim != 1 or b.ndim != 1):
        raise RuntimeError(
            f"0D target tensor expects 1D input tensors, but found inputs with sizes {list(a.shape)} and {list(b.shape)}."
        )
    dim, margin = t.ndim, float_argument(margin, "cosine_embedding_loss", "margin")
    cos = (a * b).sum(dim) / (((a * a).sum(dim) + 1e-12) * ((b * b).sum(dim) + 1e-12)).sqrt()
    value = _where(t == 1, 1 - cos, 0.0) + _where(t == -1, _clamp(cos - margin, 0.0), 0.0)
    return _total(value, reduction)


def _triplet(positive: Tensor, negative: Tensor, margin: float, reduction: str) -> Tensor:
    return _total(_clamp(margin + positive - negative, 0.0), reduction)


def _check_triplet(anchor: Any, positive: Any, negative: Any, margin: Any, name: str) -> float:
    """Return the margin as a number, where all fits."""
    for n, t in (("anchor", anchor), ("positive", positive), ("negative", negative)):
        tensor_argument(t, name, n)
    if not anchor.ndim == positive.ndim == negative.ndim:
        raise RuntimeError(
            "The anchor, positive, and negative tensors are expected to have the same number of dimensions, but got: anchor "
            f"{anchor.ndim}D, positive {positive.ndim}D, and negative {negative.ndim}D inputs"
        )
    number = float_argument(margin, name, "margin")
    if number <= 0:
        raise ValueError(f"margin must be greater than 0, got {margin}")
    return number


@functional("torch")
def triplet_margin_loss(
    anchor, positive, negative, margin=1.0, p=2, eps=1e-6, swap=False, size_average=None, reduce=None, reduction="mean"
):
    """Return max(0, d(anchor, positive) − d(anchor, negative) + margin), d the `pairwise_distance`: (N, n) → (N), reduced.

    ``swap``: the negative's distance is the smaller one of those from the anchor and from the positive (Balntas et al., 2016).
    Errors: RuntimeError when the numbers of dims differ, ValueError unless ``margin`` > 0.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.triplet_margin_loss.html

    >>> torch.nn.functional.triplet_margin_loss(torch.tensor([[0.0, 0.0]]), torch.tensor([[0.0, 3.0]]), torch.tensor([[0.0, 3.5]]))
    tensor(0.5000)
    """
    reduction = _settled(size_average, reduce, reduction)
    margin = _check_triplet(anchor, positive, negative, margin, "triplet_margin_loss")
    near, far = pairwise_distance(anchor, positive, p, eps), pairwise_distance(anchor, negative, p, eps)
    if swap:
        far = minimum(far, pairwise_distance(positive, negative, p, eps))
    return _triplet(near, far, margin, reduction)


@functional()
def triplet_margin_with_distance_loss(
    anchor, positive, negative, *, distance_function: Callable[[Tensor, Tensor], Tensor] | None = None, margin=1.0, swap=False, reduction="mean"
):
    """Return max(0, d(anchor, positive) − d(anchor, negative) + margin) with any distance d; `pairwise_distance` if None.

    ``swap`` as in `triplet_margin_loss`.
    Errors: RuntimeError when the numbers of dims differ, ValueError unless ``margin`` > 0.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.triplet_margin_with_distance_loss.html

    >>> torch.nn.functional.triplet_margin_with_distance_loss(torch.zeros(1, 2), torch.ones(1, 2), torch.ones(1, 2), distance_function=torch.dist)
    tensor(1.0000)
    """
    check_reduction(reduction)
    margin = _check_triplet(anchor, positive, negative, margin, "triplet_margin_with_distance_loss")
    d = distance_function or pairwise_distance
    near, far = d(anchor, positive), d(anchor, negative)
    if swap:
        far = minimum(far, d(positive, negative))
    return _triplet(near, far, margin, reduction)


@functional()
def multilabel_soft_margin_loss(input, target, weight=None, size_average=None, reduce=None, reduction="mean"):
    """Return the mean over classes of the binary cross-entropy of logits: −t·ln σ(x) − (1 − t)·ln σ(−x), (N, C) → (N), reduced.

    weight: a factor for each class. Errors: IndexError for a tensor without dims.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.multilabel_soft_margin_loss.html

    >>> torch.nn.functional.multilabel_soft_margin_loss(torch.tensor([[0.0, 2.0]]), torch.tensor([[1.0, 0.0]]))
    tensor(1.4100)
    """
    reduction = _settled(size_average, reduce, reduction)
    x = tensor_argument(input, "multilabel_soft_margin_loss")
    t = _target(target, x, "multilabel_soft_margin_loss")
    if not x.ndim:
        raise IndexError("Dimension specified as -1 but tensor has no dimensions (input of multilabel_soft_margin_loss)")
    log_sigmoid = OPS["nn.functional.logsigmoid"].call
    value = -(t * log_sigmoid(x) + (1 - t) * log_sigmoid(-x))
    if weight is not None:
        value = value * tensor_argument(weight, "multilabel_soft_margin_loss", "weight")
    return _total(value.sum(x.ndim - 1) / x.shape[-1], reduction)  # (the dim is counted in x, also where the target has more)


def _one_hot(at: Tensor, classes: int, x: Tensor) -> Tensor:
    with unrecorded():
        return put_along(new_full(at.shape, 1, x.dtype), at, (at.shape[0], classes), 1)


def _need_classes(x: Tensor) -> None:
    if x.ndim not in (1, 2) or x.shape[-1] == 0:
        raise RuntimeError(f"Expected non-empty vector or matrix with optional 0-dim batch size, but got: {list(x.shape)}")


@functional()
def multi_margin_loss(input, target, p=1, margin=1.0, weight=None, size_average=None, reduce=None, reduction="mean"):
    """Return Σ over the other classes of max(0, margin − x_target + x)ᵖ / C, p 1 or 2.

    input (N, C) with targets (N) of class indices, or (C) with one; float32 and float64; ``weight``: (C).
    Errors: ValueError for another ``p``, RuntimeError when sizes or the target's dtype do not fit.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.multi_margin_loss.html

    >>> torch.nn.functional.multi_margin_loss(torch.tensor([[0.1, 0.2, 0.4, 0.8]]), torch.tensor([3]))
    tensor(0.3250)
    """
    reduction = _settled(size_average, reduce, reduction)
    x, t = tensor_argument(input, "multi_margin_loss"), tensor_argument(target, "multi_margin_loss", "target")
    margin = real_beside(x, margin, "multi_margin_loss", "margin")
    if p not in (1, 2):
        raise ValueError(f"only p == 1 and p == 2 supported (p={p})")
    if weight is not None and weight.ndim != 1:
        raise ValueError(f"weight must be one-dimensional (weight has shape {list(weight.shape)})")
    x = x.reshape(1) if x.ndim == 0 else x
    _need_classes(x)
    weight = constant("multi_margin_loss", "weight", weight)
    if x.dtype.category < 2 or x.dtype.is_half:
        raise NotImplementedError(f"\"multi_margin_loss_cpu_kernel\" not implemented for '{scalar_type(x.dtype)}'")
    for other, want in ((weight, x.dtype), (t, dtypes.int64)):
        if other is not None and other.dtype is not want:
            raise RuntimeError(f"expected scalar type {want.name} but found {other.dtype.name} (multi_margin_loss)")
    alone = x.ndim == 1
    rows = x.unsqueeze(0) if alone else x
    if t.ndim > 1 or t._layout.size != rows.shape[0]:
        raise RuntimeError(f"inconsistent target size, expected {rows.shape[0]} but got {list(t.shape)}")
    classes = rows.shape[1]
    if weight is not None and weight.shape[0] != classes:
        raise RuntimeError(f"inconsistent weight size, expected {classes} but got {list(weight.shape)}")
    at, _ = _checked_indices(t.reshape(-1), classes, -(1 << 62), RuntimeError)
    z = margin - take_along(rows, at, 1).unsqueeze(1) + rows
    z = _where((_one_hot(at, classes, rows) != 1) & (z > 0), z, 0.0)  # (also what is nan adds nothing)
    z = z * z if p == 2 else z
    if weight is not None:
        z = z * take_along(weight, at, 0).unsqueeze(1)
    value = z.sum(1) / classes
    y = _total(value if t.ndim else value.reshape(()), reduction)
    return guarded(y, input, target, weight)


@functional()
def multilabel_margin_loss(input, target, size_average=None, reduce=None, reduction="mean"):
    """Return Σ over targets j and other classes i of max(0, 1 − (x_j − x_i)) / C; a row's targets end at the first −1.

    input and target (int64) of one shape, (N, C) or (C); float32 and float64. Errors: RuntimeError when they do not fit.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.multilabel_margin_loss.html

    >>> torch.nn.functional.multilabel_margin_loss(torch.tensor([[0.1, 0.2, 0.4, 0.8]]), torch.tensor([[3, 0, -1, 1]]))
    tensor(0.8500)
    """
    reduction = _settled(size_average, reduce, reduction)
    x, t = tensor_argument(input, "multilabel_margin_loss"), tensor_argument(target, "multilabel_margin_loss", "target")
    if x.dtype.category < 2 or x.dtype.is_half:
        raise NotImplementedError(f"\"multilabel_margin_loss_forward_out_frame\" not implemented for '{scalar_type(x.dtype)}'")
    if t.dtype is not dtypes.int64:
        raise RuntimeError(f"expected scalar type Long but found {t.dtype} (target of multilabel_margin_loss)")
    if x.ndim <= 1 and x._layout.size == 1 and t.ndim <= 1 and t._layout.size == 1:
        x, t = x.reshape(1), t.reshape(1)
    _need_classes(x)
    if x.shape != t.shape:
        raise RuntimeError(f"inconsistent target size: {list(t.shape)} for input of size: {list(x.shape)}")
    alone = x.ndim == 1
    rows, marks = (x.unsqueeze(0), t.unsqueeze(0)) if alone else (x, t)
    classes = rows.shape[1]
    with unrecorded():
        valid = cast((marks >= 0).cumprod(1), x.dtype)
        at = cast(marks.clamp(min=0) * cast(valid, marks.dtype), dtypes.int64)
        at, _ = _checked_indices(at, classes, -(1 << 62))
        counted = (valid > 0).unsqueeze(2) & (put_along(valid, at, rows.shape, 1) == 0).unsqueeze(1)
    z = 1 - (take_along(rows, at, 1).unsqueeze(2) - rows.unsqueeze(1))
    value = _where(counted & (z > 0), z, 0.0).sum((1, 2)) / classes  # (also what is nan adds nothing)
    return guarded(_total(value.reshape(()) if alone else value, reduction), input, target)
