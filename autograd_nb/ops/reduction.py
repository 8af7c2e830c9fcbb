"""Reductions: folds over dims, each one kernel with the formula that feeds it and the formula that finishes it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from sys import _getframe
from typing import Any

import numpy as np

from .. import dtypes, launch, threads
from ..codegen import loops
from ..codegen.loops import Fold, Input
from ..dtypes import dtype
from ..graph.modes import state
from ..graph.node import MANY, Output, _internal, sequence, spare, user_frame
from ..shapes import Layout, broadcast_strides, contiguous_strides, dims_array, layout, numel, wrap_dims
from ..tensor import Tensor, make, refresh
from .recording import mark_inference, real_only
from .registry import numpy_names, public
from .structured import Structured, structured, tensor_argument

MOST_PLANS = 5_000


def reduction_entry(
    name: str,
    formula: Callable,
    inputs: list[Input],
    compute: Any,
    fold: Fold,
    finish: Callable | None,
    out: str,
    in_layouts: Sequence[Layout],
    shape: Sequence[int],
    axes: Sequence[int],
    count: int = 1,
) -> tuple[Callable, np.ndarray]:
    """(entry point, dims) of a kernel that folds the ``count`` values of ``formula(*inputs)`` over ``axes`` of the broadcast ``shape``.

    Its arguments: dims, the inputs, the flat outputs (contiguous, of the kept dims).
    """
    gone = set(axes)
    kept_shape = [n for d, n in enumerate(shape) if d not in gone]
    out_strides_kept = contiguous_strides(kept_shape)
    out_strides, k = [], 0
    for d in range(len(shape)):
        if d in gone:
            out_strides.append(0)
        else:
            out_strides.append(out_strides_kept[k])
            k += 1
    strides: list[Sequence[int]] = [broadcast_strides(lay, shape) for lay in in_layouts] + [out_strides] * count
    kept, kept_steps = _group([d for d in range(len(shape)) if d not in gone], shape, strides)
    # the reduced dims may be walked in any order: widest strides of the first operand outermost
    red_order = sorted(gone, key=lambda d: tuple(-s[d] for s in strides))
    red, red_steps = _group(red_order, shape, strides)
    inner_reduced = True
    if kept and red:
        narrow_kept = min(abs(t[-1]) or 1 << 60 for t in kept_steps[:1])
        narrow_red = min(abs(t[-1]) or 1 << 60 for t in red_steps[:1])
        inner_reduced = not (narrow_kept < narrow_red and kept[-1] >= 8)
    elif kept and not red:
        inner_reduced = False
    inner = "reduced" if inner_reduced else "kept"
    most_kept = loops.KEPT + (not inner_reduced)
    most_red = loops.REDUCED + inner_reduced
    if len(red) > most_red:
        raise NestedReduction
    lead = max(0, len(kept) - most_kept)
    total_kept = [1] * (most_kept - len(kept) + lead) + kept[lead:]
    total_red = [1] * (most_red - len(red)) + red
    kept_steps_full = [[0] * (most_kept - len(kept) + lead) + t[lead:] for t in kept_steps]
    red_steps_full = [[0] * (most_red - len(red)) + t for t in red_steps]
    if inner_reduced:
        sizes = total_kept + total_red
        steps = [a + b for a, b in zip(kept_steps_full, red_steps_full, strict=True)]
    else:
        sizes = total_kept[:-1] + total_red + total_kept[-1:]
        steps = [a[:-1] + b + a[-1:] for a, b in zip(kept_steps_full, red_steps_full, strict=True)]
    kinds = "".join({1: "u", 0: "0"}.get(t[-1], "s") for t in steps[:-count])
    if sizes[-1] == 1:  # a loop of one step may take any stride; unit keeps the variants few
        kinds = "".join("u" if k == "0" else k for k in kinds)
    with real_only(name):
        body = loops.trace_body(formula, inputs, compute, [None] * count)
        source = loops.reduction(body, fold, inner, kinds, finish, out, _wide(out))
    argtypes = ["int64[:]"] + [f"{loops.storage(s.dtype)}[:]" if not s.scalar else s.dtype for s in inputs]
    argtypes += [f"{loops.storage(out)}[:]"] * count
    outer = range(most_kept - (not inner_reduced))
    if not lead and all(sizes[a] < threads.EVEN for a in outer):
        stages = _stages(name, inputs, fold, finish, out, body, (inner, kinds), sizes, steps)
        if stages is not None:
            return stages, dims_array(sizes, steps)

    def split(entry: Callable) -> Callable:
        axes = outer if inner_reduced else (*outer, loops.RANK - 1)
        return threads.walk(entry, sizes, axes, body.effort(), loops.CHUNK)

    entry = launch.entry(source, "kernel", tuple(argtypes), name, count, split=split)
    if lead:
        from .plans import _nested

        scalars = [s.scalar for s in inputs] + [False] * count
        entry = _nested(entry, kept[:lead], [t[:lead] for t in kept_steps], scalars)
    return entry, dims_array(sizes, steps)


def _wide(out: str) -> bool:
    """Whether a sum of float32 is asked for in more digits than float32 has."""
    return out == "float64"


def _stages(
    name: str, inputs: list[Input], fold: Fold, finish: Callable | None, out: str, body: loops.Body, loop: tuple[str, str],
    sizes: list[int], steps: list[list[int]],
) -> _Stages | None:  # fmt: skip
    """A fold as one of blocks, each of which keeps all results, and one of theirs; None where that does not pay."""
    work, value, count = numel(sizes) * body.effort(), body.results[0][0], len(body.results)
    found = dtypes.BY_NAME.get(fold.accumulator(value.dtype))
    if work < threads.MANY or found is None or found.is_complex or "complex" in value.dtype:
        return None
    inner, kinds = loop
    axes = range(loops.KEPT, loops.RANK - (inner == "kept"))
    axis = max(axes, key=lambda d: sizes[d])
    folded = numel(sizes[a] for a in axes)
    kept = numel(sizes) // folded
    most = 32 if work >= 8 * threads.MANY and folded >= 1024 else 8
    blocks = list(threads.cut(sizes[axis], most, loops.CHUNK if axis == loops.RANK - 1 else 1))
    if len(blocks) < 2 or folded < 32 * len(blocks):
        return None
    argtypes = (
        ["int64[:]"] + [f"{loops.storage(s.dtype)}[:]" if not s.scalar else s.dtype for s in inputs] + [found.kernel] * count
    )
    source = loops.reduction(body, fold, inner, kinds, None, found.name, _wide(out))
    first = launch.entry(source, "kernel", tuple(argtypes), name, count)
    numbers = [s for s in inputs if s.scalar]
    shape = (len(blocks), kept)
    second, dims = reduction_entry(
        name, lambda x, *numbers: (x,), [Input(found.name), *numbers], [found.name, *[s.dtype for s in numbers]], fold, finish, out,
        [layout(shape, None, found)], shape, (0,),
    )  # fmt: skip
    own = []
    for begin, end in blocks:
        cut = [*sizes[:axis], end - begin, *sizes[axis + 1 :]]
        own.append((dims_array(cut, steps), [begin * t[axis] for t in steps[:-count]]))
    return _Stages(first, second, dims, own, kept, [s.scalar for s in inputs], found.carrier, count)


class _Stages:
    """An entry point in two stages. Blocks depend on the shape only, so that the result is the same for every number of threads."""

    __slots__ = ("blocks", "carrier", "count", "dims", "first", "kept", "scalars", "second")

    def __init__(
        self, first: Callable, second: Callable, dims: np.ndarray, blocks: list, kept: int, scalars: list[bool], carrier: Any,
        count: int,
    ):  # fmt: skip
        self.count = count
        self.first, self.second, self.dims, self.blocks = first, second, dims, blocks
        self.kept, self.scalars, self.carrier = kept, scalars, carrier

    def __call__(self, dims: np.ndarray, *args: Any) -> None:
        kept, inputs, outputs = self.kept, args[: -self.count], args[-self.count :]
        found = [launch.empty(len(self.blocks) * kept, self.carrier) for _ in outputs]
        parts = []
        for k, (sizes, starts) in enumerate(self.blocks):
            start = iter(starts)
            moved = [a if scalar else a[next(start) :] for a, scalar in zip(inputs, self.scalars, strict=True)]
            parts.append((sizes, *moved, *[f[k * kept : (k + 1) * kept] for f in found]))
        launch.each(self.first, parts)
        numbers = [a for a, scalar in zip(inputs, self.scalars, strict=True) if scalar]
        for f, out in zip(found, outputs, strict=True):
            self.second(self.dims, f, *numbers, out)


class NestedReduction(Exception):
    """The reduced dims do not merge into the template's loops; the caller copies into a friendlier layout first."""


def _group(dims: Sequence[int], shape: Sequence[int], strides: Sequence[Sequence[int]]) -> tuple[list[int], list[list[int]]]:
    from ..shapes import coalesce

    return coalesce([shape[d] for d in dims], [[s[d] for d in dims] for s in strides])


class Reduction:
    """A reduction with a fixed fold and formulas; plans are kept per (layout, dims, output dtype)."""

    def __init__(self, name: str, fold: Fold, feed: Callable | None = None, finish: Callable | None = None, extra: int = 0):
        self.name, self.fold = name, fold
        self.feed = feed or (lambda x: x)
        self.finish = finish
        self.extra = extra  # number of float scalars that feed and finish take
        self.plans: dict = launch.plan_table()

    def __call__(self, x: Tensor, dims: tuple[int, ...], keepdim: bool, out: dtype, compute: str, *scalars: float) -> Tensor:
        key = (x._layout, dims, keepdim, out, compute)
        plan = self.plans.get(key)
        if plan is None:
            try:
                plan = self._plan(x._layout, dims, keepdim, out, compute)
            except NestedReduction:
                kept = [d for d in range(x.ndim) if d not in dims]
                order = [*kept, *dims]
                moved = x.permute(order).contiguous().reshape([x.shape[d] for d in kept] + [-1])
                y = self(moved, (len(kept),), False, out, compute, *scalars)
                return y.reshape([1 if d in dims else n for d, n in enumerate(x.shape)]) if keepdim else y
            if len(self.plans) > MOST_PLANS:
                self.plans.clear()
            self.plans[key] = plan
        entry, dims_, lay, carrier = plan
        data = launch.empty(lay.size, carrier)
        entry(dims_, x._data, *scalars, data)
        return make(data, lay, [0, 0])

    def _plan(self, lay: Layout, dims: tuple[int, ...], keepdim: bool, out: dtype, compute: str) -> tuple:
        inputs = [Input(lay.dtype.name)] + [Input("float64", scalar=True)] * self.extra

        def formula(x, *scalars):
            return (self.feed(x, *scalars) if self.extra else self.feed(x),)

        finish = self.finish
        entry, array = reduction_entry(
            self.name,
            formula,
            inputs,
            [compute] + ["float64"] * self.extra,
            self.fold,
            finish,
            out.name,
            [lay],
            lay.shape,
            dims,
        )
        return entry, array, layout(reduced_shape(lay.shape, dims, keepdim), None, out), out.carrier


def reduced_shape(shape: Sequence[int], dims: Sequence[int], keepdim: bool) -> list[int]:
    if keepdim:
        return [1 if d in dims else n for d, n in enumerate(shape)]
    return [n for d, n in enumerate(shape) if d not in dims]


_expanded: dict[tuple, Layout] = {}


def expand_reduced(g: Tensor, shape: Sequence[int], dims: Sequence[int], keepdim: bool) -> Tensor:
    """A gradient of a reduction read with the shape of its input."""
    if g.__class__ is Tensor and not (state.grad and (g._rg or g._view is not None)):  # without a history: only another layout
        key = (g._layout, shape, dims, keepdim)
        found = _expanded.get(key)
        if found is None:
            if len(_expanded) > MOST_PLANS:
                _expanded.clear()
            lay = g._layout
            steps = iter(lay.strides)
            strides = [next(steps) if keepdim or d not in dims else 0 for d in range(len(shape))]
            found = layout(shape, [0 if d in dims else s for d, s in enumerate(strides)], lay.dtype)
            _expanded[key] = found
        return make(g._data, found, g._version_)
    if not keepdim and dims:
        g = g.reshape([1 if d in dims else n for d, n in enumerate(shape)])
    return g.expand(shape)


class QuickPlan:
    """A call of a reduction whose arguments were seen before: ``kind`` is the class of its ``dim``, which the table ignores."""

    __slots__ = ("args", "carrier", "dims", "entry", "kind", "layout", "numbers", "recorded", "recording", "size", "values")

    def __init__(self, op: Structured, kind: type, found: tuple, numbers: tuple, args: tuple, lay: Layout):
        self.entry, self.dims, self.layout, self.carrier = found
        self.kind, self.numbers, self.args, self.size = kind, numbers, args, self.layout.size
        self.recorded = self.layout.dtype.category >= 2 and bool(op.rules)
        recording = op.recording(1, 1) if op.rules else None
        self.recording, self.values = None, {}
        if recording is not None and not recording.out and all(i for _, i, _ in recording.saved):  # nothing to save
            self.recording = recording
            self.values = {p: args[i - 1] for p, i, _ in recording.saved}
            self.values.update((name, lay.shape) for name, _ in recording.shapes)


def quick(op: Structured, how: Callable[[Layout, tuple[int, ...]], tuple]) -> Callable[[Callable], Callable]:
    """Decorator of the public function of a reduction ``op``: calls that were seen before find their plan by their arguments.

    ``how(layout, dims)``: what `fold` takes. Operands of transforms have layouts of their own and so find no plan.
    """

    def decorate(function: Callable) -> Callable:
        long = numpy_names(function)
        plans: dict = launch.plan_table()
        default = function.__defaults__[0]
        empty, new, internal = np.empty, object.__new__, _internal

        def first(input, dim, keepdim):
            y = long(input, dim, keepdim)
            lay = input._layout
            if dim.__class__ in (type(None), int, tuple) and lay.__class__ is Layout and not launch.observing():
                args = (_all_dims(dim, lay.ndim), bool(keepdim))
                reduction, d, compute, numbers = how(lay, args[0])
                found = reduction.plans.get((lay, *args, d, compute))
                if found is not None and y._layout.size * y._layout.dtype.itemsize < launch.BIG:
                    if len(plans) > MOST_PLANS:
                        plans.clear()
                    plans[lay, dim, keepdim] = QuickPlan(op, dim.__class__, found, numbers, args, lay)
            return y

        @wraps(function)
        def call(input, dim=default, keepdim=False, **options):
            if options:  # among them NumPy's names of these two
                if dim is not default:
                    options["dim"] = dim
                if keepdim is not False:
                    options["keepdim"] = keepdim
                return long(input, **options)
            try:
                plan = plans[input._layout, dim, keepdim]
            except (KeyError, TypeError, AttributeError):  # a list, or no tensor, is told so
                return first(input, dim, keepdim)
            if plan.kind is not dim.__class__:
                return long(input, dim, keepdim)
            data = empty(plan.size, plan.carrier)
            plan.entry(plan.dims, input._data, *plan.numbers, data)
            t = new(Tensor)  # `make`, written out
            t._data = data
            t._layout = plan.layout
            t._version_ = [0, 0]
            t._rg = False
            t._edge = t._grad = t._view = t._leaf_hook_set = None
            if not state.grad:
                if state.inference:
                    mark_inference(t)
            elif plan.recorded:
                if input._view is not None:
                    refresh(input)
                if input._rg:
                    if plan.recording is None:
                        op.record((input, *plan.args), t)
                    else:
                        node = op.node()
                        e = input._edge
                        if e is None:
                            node.edges = (input,)
                            node.plain = 1
                        else:
                            node.edges = (e,)
                            node.plain = 0 if e.__class__ is Output else 2
                        node.recording, node.values, node.made = plan.recording, plan.values, plan.layout
                        node.saved, node.versions, node.stamp = None, (), 0
                        node.consumed = node.hooks = None  # `finish_node`, written out
                        node.seq = seq = sequence()
                        if not seq & MANY:
                            spare(node)
                        f = _getframe(1)
                        if internal.get(f.f_code.co_filename, True):
                            f = user_frame(f)
                        node.code = f.f_code
                        node.lasti = f.f_lasti
                        t._edge = node
                        t._rg = True
            return t

        return call

    return decorate


def fold(how: tuple, x: Tensor, dims: tuple[int, ...], keepdim: bool) -> Tensor:
    """``how``: (reduction, output dtype, compute dtype, numbers)."""
    reduction, d, compute, numbers = how
    return reduction(x, dims, keepdim, d, compute, *numbers)


def count_of(shape: Sequence[int], dims: Sequence[int]) -> int:
    return numel(shape[d] for d in dims)


# ------------------------------------------------------------------------------------------------ sum and mean

_SUM = Reduction("sum", loops.SUM)
_MEAN = Reduction("mean", loops.SUM, lambda x, inverse: x, lambda total, inverse: total * inverse, extra=1)
_SUMSQ = Reduction("sum_of_squares", loops.SUM, lambda x: x * x)


def _sum_of(lay: Layout, dims: tuple[int, ...]) -> tuple:
    d = lay.dtype
    return _SUM, dtypes.int64 if d.category < 2 else d, d.compute, ()


@structured(x=lambda g, x_shape, dims, keepdim: expand_reduced(g, x_shape, dims, keepdim))
def _sum(x, dims, keepdim):
    return fold(_sum_of(x._layout, dims), x, dims, keepdim)


@public()
@quick(_sum, _sum_of)
def sum(input, dim=None, keepdim=False, *, dtype=None, out=None):
    """Sum over ``dim`` (an int, a tuple, or None for all): y = Σ x, dy/dx = 1.

    Integers and booleans sum to int64; ``dtype`` casts first. Chunks of 1,024 elements are added in a fixed order, those of
    float32 in float64.

    Example:
        >>> import autograd_nb as torch
        >>> torch.tensor([[1., 2.], [3., 4.]]).sum(0)
        tensor([4., 6.])

    Errors: IndexError for a dim out of range. Source: https://docs.pytorch.org/docs/stable/generated/torch.sum.html
    """
    x = tensor_argument(input, "sum")
    if dtype is not None:
        x = x.to(dtypes.as_dtype(dtype))
    y = _sum(x, _all_dims(dim, x.ndim), bool(keepdim))
    return y if out is None else _store(out, y, "sum")


def _all_dims(dim: Any, ndim: int) -> tuple[int, ...]:
    if dim is None or (isinstance(dim, (tuple, list)) and not dim):
        return tuple(range(ndim))
    return wrap_dims(dim, ndim)


def _store(out: Tensor, y: Tensor, name: str) -> Tensor:
    from .recording import store

    return store(out, y, name)


def _mean_of(lay: Layout, dims: tuple[int, ...]) -> tuple:
    n = count_of(lay.shape, dims)
    return _MEAN, lay.dtype, lay.dtype.compute, (1.0 / n if n else float("nan"),)


@structured(
    x=lambda g, x_shape, dims, keepdim: expand_reduced(g * (1.0 / max(count_of(x_shape, dims), 1)), x_shape, dims, keepdim)
)
def _mean(x, dims, keepdim):
    return fold(_mean_of(x._layout, dims), x, dims, keepdim)


@public()
@quick(_mean, _mean_of)
def mean(input, dim=None, keepdim=False, *, dtype=None, out=None):
    """Mean over ``dim``: y = Σ x / n, dy/dx = 1/n.

    Errors: RuntimeError for integers unless ``dtype`` is a floating one.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.mean.html
    """
    x = tensor_argument(input, "mean")
    if dtype is not None:
        x = x.to(dtypes.as_dtype(dtype))
    if x.dtype.category < 2:
        raise RuntimeError(
            f"mean(): could not infer output dtype. Input dtype must be either a floating point or complex dtype. Got: {x.dtype} "
            "(use x.float() or dtype=)"
        )
    y = _mean(x, _all_dims(dim, x.ndim), bool(keepdim))
    return y if out is None else _store(out, y, "mean")


@public()
def sum_to_size(input, *size):
    """Sum over the dims that were broadcast so that the result has ``size``."""
    from ..shapes import as_shape

    shape = as_shape(size)
    x = tensor_argument(input, "sum_to_size")
    if tuple(x.shape) == tuple(shape) and shape:
        return x
    lead = x.ndim - len(shape)
    if lead < 0 or any(n not in (1, x.shape[lead + d]) for d, n in enumerate(shape)):
        raise RuntimeError(f"size {list(shape)} is not expandable to size {list(x.shape)}.")
    dims = tuple(d for d in range(x.ndim) if d < lead or (shape[d - lead] == 1 and x.shape[d] != 1))
    y = _sum(x, dims, True) if dims or not shape else x
    return y.reshape(shape) if lead else y
