"""cross_entropy and nll_loss.

With class indices, cross_entropy is one fused kernel forward (log-softmax, pick and sum) and one backward (softmax minus the
one-hot target); under ``create_graph`` the backward is written with ops, so that every derivative is there. For a backward pass the
kernel keeps e^(x − max) and their sums and not the logits x, which may be changed in place meanwhile.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from ... import dtypes, launch
from ...codegen.formula.namespace import m
from ...codegen.templates.loops import MAX, SUM
from ...codegen.templates.row import Each, Pick, Put, Row, Step, Total
from ...errors import warn_user
from ...graph.modes import state, unrecorded
from ...graph.node import tensor_lines
from ...overriding import overridable
from ...shapes import layout_of
from ...tensor import Tensor, make
from ..core.call_path import known
from ..core.history import attach
from ..core.jumps import jumping
from ..core.numbers import float_argument, int_argument
from ..core.recording import constant, fresh, guarded, mark_inference, not_for_complex
from ..core.registry import OPS
from ..core.row_kernel import RowKernel, row_sizes
from ..core.structured import structured, tensor_argument
from ..creation.cast import cast, dense
from ..creation.create import new_full
from ..elementwise.activation import functional
from ..indexing.take_along import put_along, take_along
from .softmax import _softmax, log_softmax

_OUTSIDE = launch.Kernel("indexing.along", "first_outside")


def legacy_reduction(size_average: Any, reduce: Any, reduction: str) -> str:
    """Return the ``reduction`` that the old arguments ``size_average`` and ``reduce`` mean; it warns when they are given."""
    if size_average is not None or reduce is not None:
        for name, given in (("size_average", size_average), ("reduce", reduce)):
            if isinstance(given, Tensor) and given.numel() != 1:
                raise RuntimeError(
                    f"Boolean value of Tensor with more than one value is ambiguous: {name} is a Tensor of shape {list(given.shape)}. A loss is made "
                    "first and called then, CrossEntropyLoss()(input, target); or use the function, cross_entropy(input, target)."
                )
        average = True if size_average is None else size_average
        total = True if reduce is None else reduce
        reduction = "none" if not total else "mean" if average else "sum"
        warn_user(
            f"size_average and reduce args will be deprecated, please use reduction='{reduction}' instead.",
        )
    return reduction


def check_reduction(reduction: Any, also: tuple[str, ...] = ()) -> None:
    if reduction not in ("none", "mean", "sum", *also):
        raise ValueError(f"{reduction} is not a valid value for reduction (one of 'none', 'mean', 'sum')")


# ---------------------------------------------------------------------------------------------- the kernels


def _pick_weight(weighted: bool) -> list[Step]:
    return [Pick("wt", "w", "at")] if weighted else [Row({"wt": lambda n: m.where(n == 0, 0.0, 1.0).cast("float64")})]


def _divisor(parts: bool) -> Callable[[Any, Any], Any]:
    """Return the formula of what sums are divided by. ``parts``: the sum has a part of the targets' own losses, 0/0 where these weigh nothing."""
    return lambda mean, weight: m.where(mean != 0, m.where(weight == 0, math.nan, weight) if parts else weight, 1.0)


@cache
def _forward(weighted: bool, smoothed: bool, rows: bool, kept: bool) -> RowKernel:
    """Compute the loss from logits; ``kept``: to the powers of e and the inverse of their sum as well, of which softmax is the product."""
    operands = {
        "x": "full",
        "target": "row",
        **({"w": "col", "all": "one"} if weighted else {}),
        "ignore": "number",
        "eps": "number",
        "mean": "number",
    }
    stores = {"y": lambda x, top: m.exp_below(x - top)} if kept else {}
    folds: dict[str, Any] = {"s": (SUM, (lambda y: y) if kept else lambda x, top: m.exp_below(x - top))}
    if smoothed:
        folds["sx"] = (SUM, (lambda x, w: x * w) if weighted else (lambda x: x))

    def loss(target, ignore, wt, logs, top, xt, eps):
        return m.where(target == ignore, 0.0, ((1 - eps) * wt) * (logs - (xt - top)))

    def loss_smoothed(target, ignore, wt, logs, top, xt, eps, n, sx):
        spread = (logs + top) * n.cast("float64") - sx
        return m.where(target == ignore, 0.0, ((1 - eps) * wt) * (logs - (xt - top)) + (eps / n.cast("float64")) * spread)

    def loss_smoothed_weighted(target, ignore, wt, logs, top, xt, eps, n, sx, all):  # noqa: A002
        spread = (logs + top) * all - sx
        return m.where(target == ignore, 0.0, ((1 - eps) * wt) * (logs - (xt - top)) + (eps / n.cast("float64")) * spread)

    steps: list[Step] = [
        Each(folds={"top": (MAX, lambda x: x)}),
        Each(stores=stores, folds=folds),
        Row({"logs": lambda s: m.log(s), "inverse": lambda s: 1 / s, "at": lambda target, ignore: m.where(target == ignore, 0, target)}),
        Pick("xt", "x", "at"),
        *_pick_weight(weighted),
        Row({"loss": loss if not smoothed else loss_smoothed_weighted if weighted else loss_smoothed}),
    ]
    full, by = {"y": "full", "inverse": "row"} if kept else {}, _divisor(weighted and smoothed)
    if rows:
        return RowKernel("cross_entropy", operands, {**full, "loss": "row"}, steps)
    steps.append(
        Total(
            {"total": lambda loss: loss, "weight": lambda target, ignore, wt: m.where(target == ignore, 0.0, wt)},
            {"value": lambda total, weight, mean: total / by(mean, weight), "wsum": lambda weight: weight},
        )
    )
    return RowKernel("cross_entropy", operands, {**full, "value": "one", "wsum": "one"}, steps)


@cache
def _backward(weighted: bool, smoothed: bool, rows: bool) -> RowKernel:
    weights = {"w": "col", "all": "one"} if weighted else {}
    operands = {"y": "full", "target": "row", **weights, "ignore": "number", "eps": "number", "mean": "number", "inverse": "row",
                "g": "row" if rows else "one"}  # fmt: skip
    if not rows:
        operands["wsum"] = "one"

    def scale_rows(target, ignore, g):
        return m.where(target == ignore, 0.0, g)

    by = _divisor(weighted and smoothed)

    def scale_one(target, ignore, g, mean, wsum):
        return m.where(target == ignore, 0.0, g / by(mean, wsum))

    def part(scale, eps, n):
        return scale * (eps / n.cast("float64"))

    def whole(scale, eps, n, wt, inverse):
        return scale * ((1 - eps) * wt + eps) * inverse

    def whole_weighted(scale, eps, n, wt, inverse, all):  # noqa: A002
        return scale * ((1 - eps) * wt + (eps / n.cast("float64")) * all) * inverse

    def store(y, a):
        return y * a

    def store_smoothed(y, a, c):
        return y * a - c

    def store_smoothed_weighted(y, a, c, w):
        return y * a - c * w

    steps: list[Step] = [
        Row({"scale": scale_rows if rows else scale_one, "at": lambda target, ignore: m.where(target == ignore, 0, target)}),
        *_pick_weight(weighted),
        Row({"b": lambda scale, eps, wt: scale * ((1 - eps) * wt)}),
        Row({"a": whole_weighted if weighted else whole, "c": part} if smoothed else {"a": lambda b, inverse: b * inverse}),
        Each(stores={"o": store if not smoothed else store_smoothed_weighted if weighted else store_smoothed}),
        Put("o", "at", lambda o, b: o - b),
    ]
    return RowKernel("cross_entropy_backward", operands, {"o": "full"}, steps)


# ------------------------------------------------------------------------------------------------- the op


def _weights(w: Tensor | None, total: Tensor | None) -> list[Any]:
    return [] if w is None else [dense(w), total._data]  # type: ignore[union-attr]


def _constants(x: Tensor, target: Tensor, w: Tensor | None, ignore: int, eps: float) -> tuple[Tensor, Tensor, Tensor]:
    """Return (which rows are kept, what multiplies the softmax, what is subtracted) as tensors outside the graph."""
    with unrecorded():
        c = x.shape[1]
        keep = target.ne(ignore)
        at = target.where(keep, 0)
        kept = cast(keep, x.dtype)
        wt = kept if w is None else take_along(w, at.reshape(-1), 0).reshape(at.shape) * kept
        total = float(c) if w is None else w.sum()
        taken = put_along(wt * (1 - eps), at, x.shape, 1)
        if eps:
            spread = new_full((c,), eps / c, x.dtype) if w is None else w * (eps / c)
            taken = taken + spread.reshape([1, c] + [1] * (x.ndim - 2))
        whole = wt * (1 - eps) + (total * (eps / c) if eps else 0.0)
        return keep.unsqueeze(1), whole.unsqueeze(1), taken


def _rule(g, x_edge, powers, target, w, total, inverse, wsum, reduction, ignore, eps):
    if not state.grad:
        return _gradient(g, powers, target, w, total, inverse, wsum, reduction, ignore, eps)
    with unrecorded():
        soft = cast(powers * inverse.unsqueeze(1), g.dtype)
    x = make(soft._data, soft._layout, [0, 0])  # stands for the logits: of them only their place in the graph is read
    attach(x, x_edge)
    _softmax.record((x, 1), soft)
    keep, whole, taken = _constants(soft, target, w, ignore, eps)
    scale = g.unsqueeze(1) if reduction == "none" else g / m.where(wsum == 0, math.nan, wsum) if reduction == "mean" else g
    # the scale is nan where nothing counts; the weights and their sum may be wider than the gradient
    return cast((soft * whole - taken) * m.where(keep, scale, 0.0), g.dtype)


def _gradient_arguments(g, powers, target, w, total, inverse, wsum, reduction, ignore, eps) -> list[Any]:
    mean = 1.0 if reduction == "mean" else 0.0
    args = [powers._data, target._data, *_weights(w, total), ignore, eps, mean, inverse._data, g._data]
    return args if reduction == "none" else [*args, wsum._data]


def _plan_gradient(checked: bool, g, powers, target, w, total, inverse, wsum, reduction, ignore, eps) -> tuple[Any, ...] | None:
    """Return what the gradient of a loss without weights takes."""
    d = powers._layout.dtype
    if w is not None or reduction == "none" or g._layout.dtype is not d or not powers._layout.size:
        return None
    if not all(t._layout.contiguous for t in (target, g)):
        return None
    sizes, args = row_sizes(powers.shape, 1), _gradient_arguments(g, powers, target, w, total, inverse, wsum, reduction, ignore, eps)
    return sizes, _backward(False, eps != 0, False).entry(d.name, sizes, args, [powers._data]), args[4]


_RUN_GRADIENT = [
    "sizes, entry, mean = plan",
    "layout = powers._layout",
    "data = _allocate(layout.size, layout.dtype.carrier)",
    "entry(*sizes, powers._data, target._data, ignore, eps, mean, inverse._data, g._data, wsum._data, data)",
    *tensor_lines("layout"),
    "return t",
]


@known("powers._layout, target._layout, g._layout, w is None, reduction, eps", _plan_gradient, _RUN_GRADIENT)
def _gradient(g, powers, target, w, total, inverse, wsum, reduction, ignore, eps):
    """Return the gradient outside the graph."""
    layout = powers._layout
    data = launch.empty(layout.size, layout.dtype.carrier)
    if layout.size:
        index, scale = (make(dense(t), t._layout.dense, t._version_) for t in (target, cast(g, layout.dtype)))
        args = _gradient_arguments(scale, powers, index, w, total, inverse, wsum, reduction, ignore, eps)
        _backward(w is not None, eps != 0, reduction == "none")(layout.dtype.name, row_sizes(powers.shape, 1), args, [data])
    return cast(make(data, layout, [0, 0]), g.dtype)


@structured(
    x=_rule, node="CrossEntropyLossBackward0", linear="no", batch="samples",
    dtypes="half float", samples="F.cross_entropy(x(3, 4), index(4, 3))",
)
def _cross_entropy(x, target, w, total, powers, inverse, wsum, value, reduction, ignore, eps):
    return value


LARGE = 1 << 18  #: elements from which rows pay for being shared by threads


def _weight_of_rows(target: Tensor, weight: Tensor | None, ignore: int, d: Any) -> Tensor:
    """Return the sum of the weights of the rows that are kept."""
    kept = target.ne(ignore)
    if weight is None:
        return cast(kept.sum(), d)
    at = target.where(kept, 0)
    return (take_along(weight, at.reshape(-1), 0).reshape(at.shape) * kept).sum()


@overridable
def _cross_entropy_indices(x: Tensor, target: Tensor, w: Tensor | None, ignore: int, reduction: str, eps: float) -> Tensor:
    half = x.dtype.is_half
    wide = dtypes.float32 if half else x.dtype
    kept = state.grad and x.requires_grad
    with unrecorded():
        source = cast(x.detach(), wide)
        weight = None if w is None else cast(w.detach(), wide)
        total = None if weight is None else weight.sum()
        layout = layout_of(target.shape, None, wide)
        args = [dense(source), dense(target), *_weights(weight, total), ignore, eps, 1.0 if reduction == "mean" else 0.0]
        large = x._layout.size >= LARGE  # then rows are dealt out to threads, and summed afterwards
        kernel = _forward(w is not None, eps != 0, reduction == "none" or large, kept)
        sizes = row_sizes(x.shape, 1)
        kinds = (layout_of(x.shape, None, wide), layout) if kept else ()
        read = [make(launch.empty(k.size, wide.carrier), k, [0, 0]) for k in kinds]  # by the backward pass
        outputs = [t._data for t in read]
        wsum = None
        if reduction == "none" or large:
            value = make(launch.empty(layout.size, wide.carrier), layout, [0, 0])
            if layout.size:
                kernel(wide.name, sizes, args, [*outputs, value._data])
            if reduction != "none":
                value, wsum = value.sum(), _weight_of_rows(target, weight, ignore, wide)
                value = value / wsum if reduction == "mean" else value
        else:
            one = layout_of((), None, wide)
            value, wsum = make(np.empty(1, wide.carrier), one, [0, 0]), make(np.empty(1, wide.carrier), one, [0, 0])
            kernel(wide.name, sizes, args, [*outputs, value._data, wsum._data])
        value = cast(value, x.dtype)
    if state.inference:
        mark_inference(value)
    return _cross_entropy(x, target, weight, total, *read, wsum, value, reduction, ignore, eps) if kept else value


@_cross_entropy_indices.decomposed
def _cross_entropy_by_ops(x: Tensor, target: Tensor, w: Any, ignore: int, reduction: str, eps: float) -> Tensor:
    call = {name: OPS[name].call for name in ("log_softmax", "gather", "where")}
    c = x.shape[1]
    keep = target.ne(ignore)
    at = call["where"](keep, target, 0)
    logs = call["log_softmax"](x, 1)
    kept = keep.to(x.dtype)
    weight = kept if w is None else OPS["index_select"].call(w, 0, at.reshape(-1)).reshape(at.shape) * kept
    loss = -call["gather"](logs, 1, at.unsqueeze(1)).squeeze(1) * weight * (1 - eps)
    if eps:
        spread = logs if w is None else logs * w.reshape(1, c, *[1] * (x.ndim - 2))
        loss = loss - spread.sum(1) * kept * (eps / c)
    if reduction == "none":
        return loss
    return loss.sum() / weight.sum() if reduction == "mean" else loss.sum()


def _plan_known(checked: bool, input: Any, target: Any, ignore_index: Any, reduction: Any, label_smoothing: Any) -> tuple[Any, ...] | None:
    """Return what a call with the classes of the rows of a matrix takes."""
    layout, wanted = input._layout, target._layout
    if layout.ndim != 2 or wanted.ndim != 1 or layout.sizes[0] != wanted.size or not 0 < layout.size < LARGE:
        return None
    d, outside = layout.dtype, _OUTSIDE.entry("int64")
    if d.category != 2 or d.is_half or wanted.dtype is not dtypes.int64 or not layout.contiguous or not wanted.contiguous:
        return None
    if outside is None or reduction not in ("mean", "sum") or ignore_index.__class__ is not int or not -(1 << 63) <= ignore_index < 1 << 63:
        return None
    if label_smoothing.__class__ is not float or not 0.0 <= label_smoothing <= 1.0:
        return None
    sizes, some, mean = row_sizes(layout.sizes, 1), input._data, 1.0 if reduction == "mean" else 0.0
    kept = state.grad and input.requires_grad
    kernel = _forward(False, label_smoothing != 0, False, kept)
    entry = kernel.entry(d.name, sizes, [some, target._data, ignore_index, label_smoothing, mean], [some] * (2 + 2 * kept))
    return sizes, entry, outside, mean, kept, layout.dense, layout_of(wanted.sizes, None, d), layout_of((), None, d)


def _run_known(plan: tuple[Any, ...], x: Tensor, target: Tensor, ignore: int, reduction: str, eps: float) -> Tensor:
    """Return what `cross_entropy` comes to in a `known` call."""
    sizes, entry, outside, mean, kept, layout, rows, one = plan
    carrier, count = layout.dtype.carrier, rows.size
    indices = target._data if target._data.size == count else target._data[:count]
    found = np.empty(2, np.int64)
    if target._layout.dtype is dtypes.int64:
        outside(sizes[1], ignore, indices, found)
    if target._layout.dtype is not dtypes.int64 or found.item(0) >= 0:
        target, _ = _checked_indices(target, sizes[1], ignore)
    value, wsum = np.empty(1, carrier), np.empty(1, carrier)
    y = make(value, one, [0, 0])
    if kept:
        powers, inverse = launch.empty(layout.size, carrier), np.empty(count, carrier)
        entry(*sizes, x._data, target._data, ignore, eps, mean, powers, inverse, value, wsum)
        read = make(powers, layout, [0, 0]), make(inverse, rows, [0, 0]), make(wsum, one, [0, 0])
        _cross_entropy.record((x, target, None, None, *read, y, reduction, ignore, eps), y, 3)
        return y
    entry(*sizes, x._data, target._data, ignore, eps, mean, value, wsum)
    if state.inference:
        mark_inference(y)
    return y


# ------------------------------------------------------------------------------------------- the functions


@overridable
def _checked_indices(target: Tensor, classes: int, ignore: int, error: type[Exception] = IndexError) -> tuple[Tensor, int]:
    """Return class indices as int64, and how many are ignored. IndexError (or ``error``) for one outside [0, classes)."""
    if target.dtype not in (dtypes.int64, dtypes.uint8):
        raise RuntimeError(
            f"expected scalar type Long but found {target.dtype}: expected target dtype to be Long or Byte, but got "
            f"{target.dtype} (class indices; use target.long())"
        )
    target = cast(target, dtypes.int64)
    if target._layout.size == 0:
        return target, 0
    found = np.empty(2, np.int64)
    flat = dense(target)
    _OUTSIDE("int64", classes, ignore, flat, found)

    def inside(found, flat):
        if found[0] >= 0:
            where = f"element {int(found[0])} of target; there are {classes} classes"
            if error is not IndexError:
                raise error(f"target out of range ({where})")
            raise error(f"Target {int(flat[found[0]])} is out of bounds. ({where})")

    launch.check(inside, found, flat, passes=((0, 0, -(1 << 62), -1),))
    if launch.holds(found, 1, 0, 0):
        return target, 0
    return target, int(found[1]) if launch.observer() is None else -1  # a capture must serve any number


def _batched(input: Tensor, target: Tensor, weight: Any, name: str) -> tuple[Tensor, Tensor, bool]:
    """Return input (N, C, …) and target (N, …) of class indices, checked, and whether a batch dim was added."""
    x, t = input, target
    alone = x.ndim == 1
    if alone:
        if t.ndim > 1:
            raise RuntimeError(f"0D or 1D target tensor expected, multi-target not supported (target has shape {list(t.shape)})")
        if t.ndim == 1 and t.shape[0] != 1:
            raise ValueError(
                f"Expected input batch_size (1) to match target batch_size ({t.shape[0]}). "
                f"(input {list(x.shape)}, target {list(t.shape)})"
            )
        x, t = x.unsqueeze(0), t.reshape(1)
        alone = target.ndim == 0
    elif x.ndim == 2:
        if t.ndim > 1 and x.shape[0] == t.shape[0]:
            remedy = "; use target.squeeze(1)" if t.ndim == 2 and t.shape[1] == 1 else ""
            raise RuntimeError(f"0D or 1D target tensor expected, multi-target not supported (target has shape {list(t.shape)}{remedy})")
    if t.ndim == 0 or x.shape[0] != t.shape[0]:
        raise ValueError(f"Expected input batch_size ({x.shape[0]}) to match target batch_size ({t.shape[0] if t.ndim else 0}).")
    if tuple(t.shape) != (x.shape[0], *x.shape[2:]):
        raise RuntimeError(f"Expected target size {[x.shape[0], *x.shape[2:]]}, got {list(t.shape)}")
    if weight is not None:
        tensor_argument(weight, name, "weight")
        if weight._layout.size != x.shape[1] or (weight.ndim != 1 and x.ndim < 3):  # of images PyTorch counts the numbers alone
            raise RuntimeError(
                f"weight tensor should be defined either for all {x.shape[1]} classes or no classes but got weight tensor "
                f"of shape: {list(weight.shape)}"
            )
        if weight.dtype is not x.dtype and x.dtype.is_floating_point:  # (others are refused by themselves)
            raise RuntimeError(f"expected scalar type {x.dtype} but found {weight.dtype} (argument 'weight' of {name})")
    return x, t, alone


def _with_classes(x: Tensor, name: str) -> None:
    if x.ndim == 0:
        if name == "nll_loss":
            raise ValueError("Expected 1 or more dimensions (got 0) (nll_loss: expected (C), (N, C) or (N, C, d1, …))")
        raise IndexError(
            f"Dimension out of range (expected to be in range of [-1, 0], but got 1) ({name}: input tensor should have at least 1 dim: "
            "expected (C), (N, C) or (N, C, d1, …), got a 0-d tensor)"
        )


def _floating(x: Tensor, name: str, kernel: str) -> None:
    if x.dtype.category < 2:
        raise NotImplementedError(f'"{name}" not implemented for {x.dtype}: input must be a floating point tensor')
    if x.dtype.is_complex:
        raise not_for_complex(kernel)


@functional()
@known(
    "input._layout, target._layout, ignore_index, ignore_index.__class__, reduction, label_smoothing, _state.grad and input.requires_grad",
    _plan_known, _run_known, takes=("input", "target", "ignore_index", "reduction", "label_smoothing"),
)
def cross_entropy(
    input, target, weight=None, size_average=None, ignore_index=-100, reduce=None, reduction="mean", label_smoothing=0.0
):
    """Return −ln softmax(input) at the target class; dL/dx = softmax(x) − onehot(target), over the mean's count.

    input: (C), (N, C) or (N, C, d1, …), unnormalised. target: class indices of shape (), (N) or (N, d1, …), or probabilities of
    the input's shape. weight: one factor a class. ignore_index: a target that counts for nothing. label_smoothing: the share of
    the target that is spread evenly over the classes. "mean" divides by the sum of the targets' weights.

    Errors: IndexError for a target out of range; ValueError, RuntimeError for shapes and dtypes that do not fit.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.cross_entropy.html

    >>> torch.nn.functional.cross_entropy(torch.tensor([[2.0, 0.0], [0.0, 0.0]]), torch.tensor([0, 1]))
    tensor(0.4100)
    """
    x, t = tensor_argument(input, "cross_entropy"), tensor_argument(target, "cross_entropy", "target")
    reduction = legacy_reduction(size_average, reduce, reduction)
    check_reduction(reduction)
    ignore_index = int_argument(ignore_index, "cross_entropy", "ignore_index")
    label_smoothing = float_argument(label_smoothing, "cross_entropy", "label_smoothing")
    if not label_smoothing > 0.0:  # PyTorch smoothes by nothing then, nan included
        label_smoothing = 0.0
    elif label_smoothing > 1.0:
        raise RuntimeError(f"label_smoothing must be between 0.0 and 1.0. Got: {label_smoothing}")
    if t.shape == x.shape and not t.dtype.is_floating_point:
        raise RuntimeError(f"Expected floating point type for target with class probabilities, got {t.dtype} (a target of input's shape is one: use .float())")
    _with_classes(x, "cross_entropy")
    if x._layout.size or t.shape == x.shape or (x.dtype.is_complex and x.requires_grad):  # (PyTorch's softmax of nothing takes any numbers)
        _floating(x, "cross_entropy", "cross_entropy")
    if t.shape == x.shape and x.ndim:
        return _soft_cross_entropy(x, t, weight, ignore_index, reduction, label_smoothing)
    if x.ndim == 1:
        weight = constant("nll_loss_forward", "weight", weight)
    x, t, alone = _batched(x, t, weight, "cross_entropy")
    _floating(x, "cross_entropy", "cross_entropy")
    weight = constant("nll_loss_forward", "weight", weight)
    weight = weight if weight is None or weight.ndim == 1 else weight.reshape(-1)
    t, _ = _checked_indices(t, x.shape[1], ignore_index)
    y = _cross_entropy_indices(x, t, weight, ignore_index, reduction, label_smoothing)
    return fresh(y.reshape(())) if alone and reduction == "none" else y


def _soft_cross_entropy(x: Tensor, t: Tensor, weight: Any, ignore: int, reduction: str, eps: float) -> Tensor:
    """Return the target given as probabilities."""
    if ignore >= 0:
        raise RuntimeError(f"ignore_index is not supported for floating point target (ignore_index={ignore})")
    d = 0 if x.ndim == 1 else 1
    c = x.shape[d]
    if weight is not None and (weight.ndim != 1 or weight.shape[0] != c):
        raise RuntimeError(
            f"cross_entropy: weight tensor should be defined either for all {c} classes or no classes but got weight tensor "
            f"of shape: {list(weight.shape)}"
        )
    logs = log_softmax(x, d)
    if eps:
        t = t * (1 - eps) + eps / c
    loss = logs * t
    if weight is not None:
        loss = loss * weight.reshape([c] if x.ndim == 1 else [1, c] + [1] * (x.ndim - 2))
    if reduction == "none":
        return -loss.sum(d)
    if reduction == "sum":
        return -loss.sum()
    return -loss.sum() / max(x._layout.size // c if c else 1, 1) if x._layout.size else -loss.sum() / 0.0


@functional()
def nll_loss(input, target, weight=None, size_average=None, ignore_index=-100, reduce=None, reduction="mean"):
    """Return −input at the target class, as after `log_softmax`; dL/dx = −1 there, over the mean's count.

    input (N, C, d…) with targets (N, d…) of class indices, or (C) with one; ``weight`` (C); other arguments as `cross_entropy`'s.
    Errors: IndexError for a class that is not there, ValueError or RuntimeError when shapes do not fit.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.nll_loss.html

    >>> torch.nn.functional.nll_loss(torch.tensor([[0.5, 0.25, 0.25]]).log(), torch.tensor([1]))
    tensor(1.3863)
    """
    x, t = tensor_argument(input, "nll_loss"), tensor_argument(target, "nll_loss", "target")
    reduction = legacy_reduction(size_average, reduce, reduction)
    check_reduction(reduction)
    ignore_index = int_argument(ignore_index, "nll_loss", "ignore_index")
    _with_classes(x, "nll_loss")
    if x.ndim == 1:
        weight = constant("nll_loss_forward", "weight", weight)
    x, t, alone = _batched(x, t, weight, "nll_loss")
    _floating(x, "nll_loss", "nll_loss_out_frame")
    weight = constant("nll_loss_forward", "weight", weight)
    weight = weight if weight is None or weight.ndim == 1 else weight.reshape(-1)
    t, ignored = _checked_indices(t, x.shape[1], ignore_index)
    factor = None
    with unrecorded():
        if ignored:
            keep = t.ne(ignore_index)
            t = t.where(keep, 0)
            factor = cast(keep, x.dtype)
        if weight is not None:
            wt = take_along(weight.detach(), t.reshape(-1), 0).reshape(t.shape)
            factor = wt if factor is None else wt * factor
    picked = take_along(x, t, 1)
    if factor is None:
        y = -(picked.mean() if reduction == "mean" else picked.sum() if reduction == "sum" else picked)
    else:
        rows = picked * factor
        if reduction == "mean" and ignored == t._layout.size:  # 0 / 0, but with a gradient of 0
            return guarded(jumping(-rows.sum() + math.nan, x), input, target, weight)
        y = -(rows.sum() / factor.sum() if reduction == "mean" else rows.sum() if reduction == "sum" else rows)
    y = jumping(y, x)
    return guarded(fresh(y.reshape(())) if alone and reduction == "none" else y, input, target, weight)
