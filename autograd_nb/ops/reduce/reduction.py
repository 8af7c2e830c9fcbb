"""Reductions: folds over dims, each one kernel (see `folds`) with the formula that feeds it and the formula that finishes it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from sys import _getframe
from typing import Any

import numpy as np

from ... import dtypes, launch
from ...codegen.templates import loops
from ...codegen.templates.loops import Fold, Input
from ...dtypes import dtype
from ...graph.modes import state
from ...graph.node import MANY, Output, _internal, sequence, spare, user_frame
from ...overriding import overridable
from ...shapes import Layout, as_shape, layout, numel, wrap_dims
from ...tensor import Tensor, blank, make, refresh
from ..core.recording import mark_inference, store
from ..core.reduction_kernel import Folding, FoldKernel, NestedReduction, folding
from ..core.registry import numpy_names, public
from ..core.structured import Structured, structured, tensor_argument


class Reduction:
    """A reduction with a fixed fold and formulas; plans are kept per (layout, dims, output dtype)."""

    def __init__(self, name: str, fold: Fold, feed: Callable | None = None, finish: Callable | None = None, extra: int = 0):
        self.name, self.fold = name, fold
        self.feed = feed or (lambda x: x)
        self.finish = finish
        self.extra = extra  # number of float scalars that feed and finish take
        self.plans: dict = launch.plan_table()
        self.kernels: dict[tuple, FoldKernel] = {}

    @overridable
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
            launch.keep(self.plans, key, plan)
        entry, dims_, lay, carrier = plan
        data = launch.empty(lay.size, carrier)
        entry(dims_, x._data, *scalars, data)
        return make(data, lay, [0, 0])

    def _plan(self, lay: Layout, dims: tuple[int, ...], keepdim: bool, out: dtype, compute: str) -> tuple:
        def formula(x, *scalars):
            return (self.feed(x, *scalars) if self.extra else self.feed(x),)

        def of() -> Folding:
            inputs = [Input(lay.dtype.name)] + [Input("float64", scalar=True)] * self.extra
            computes = [compute] + ["float64"] * self.extra
            return folding(formula, inputs, computes, self.fold, self.finish, out.name, [lay], lay.shape, dims)

        key = (lay.dtype, out, compute)
        kernel = self.kernels.get(key)
        if kernel is None:
            kernel = self.kernels[key] = FoldKernel(self.name, of())
        whole = layout([1 if d in dims else n for d, n in enumerate(lay.sizes)], None, out)
        entry, array = kernel.at(lay.sizes, dims, (lay, whole), of)
        return entry, array, whole if keepdim else layout(reduced_shape(lay.sizes, dims, False), None, out), out.carrier


def reduced_shape(shape: Sequence[int], dims: Sequence[int], keepdim: bool) -> list[int]:
    if keepdim:
        return [1 if d in dims else n for d, n in enumerate(shape)]
    return [n for d, n in enumerate(shape) if d not in dims]


_expanded: dict[tuple, Layout] = launch.plan_table()


def expand_reduced(g: Tensor, x_shape: Sequence[int], dims: Sequence[int], keepdim: bool) -> Tensor:
    """A gradient of a reduction read with the shape of its input."""
    if g.__class__ is Tensor and not (state.grad and (g._rg or g._view is not None)):  # without a history: only another layout
        key = (g._layout, x_shape, dims, keepdim)
        found = _expanded.get(key)
        if found is None:
            lay = g._layout
            found = layout(x_shape, _expanded_strides(lay, x_shape, dims, keepdim), lay.dtype)
            launch.keep(_expanded, key, found)
        return make(g._data, found, g._version_)
    if not keepdim and dims:
        g = g.reshape([1 if d in dims else n for d, n in enumerate(x_shape)])
    return g.expand(x_shape)


def _expanded_strides(lay: Layout, shape: Sequence[int], dims: Sequence[int], keepdim: bool) -> list[int]:
    """The strides that ``unsqueeze`` and ``expand`` give: 0 along what was reduced, unless that is of size 1."""
    if not lay.ndim:
        return [0] * len(shape)
    left = list(zip(lay.shape, lay.strides, strict=True))
    strides, beyond = [], 1
    for d in range(len(shape) - 1, -1, -1):
        if keepdim or d not in dims:
            n, s = left.pop()
            beyond = n * s
        else:
            s = beyond
        strides.append(0 if d in dims and shape[d] != 1 else s)
    return strides[::-1]


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
        empty, new, internal = np.empty, blank, _internal

        def first(input, dim, keepdim):
            y = long(input, dim, keepdim)
            lay = input._layout
            if dim.__class__ in (type(None), int, tuple) and lay.__class__ is Layout and not launch.observing():
                args = (_all_dims(dim, lay.ndim), bool(keepdim))
                reduction, d, compute, numbers = how(lay, args[0])
                found = reduction.plans.get((lay, *args, d, compute))
                if found is not None and y._layout.size * y._layout.dtype.itemsize < launch.BIG:
                    launch.keep(plans, (lay, dim, keepdim), QuickPlan(op, dim.__class__, found, numbers, args, lay))
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
            t = new()  # `make`, written out
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


def _sum_of(lay: Layout, dims: tuple[int, ...]) -> tuple:
    d = lay.dtype
    return _SUM, dtypes.int64 if d.category < 2 else d, d.compute, ()


@structured(x=expand_reduced, linear="jointly", batch="shift")
def _sum(x, dims, keepdim):
    return fold(_sum_of(x._layout, dims), x, dims, keepdim)


@public()
@quick(_sum, _sum_of)
def sum(input, dim=None, keepdim=False, *, dtype=None, out=None):
    """Sum over ``dim`` (an int, a tuple, or None for all): y = Σ x, dy/dx = 1.

    Integers and booleans sum to int64, unless ``dtype`` says otherwise, to which the elements are cast first. Chunks of 1,024
    elements are added in a fixed order, those of float32 in float64.

    Example:
        >>> import autograd_nb as torch
        >>> torch.tensor([[1., 2.], [3., 4.]]).sum(0)
        tensor([4., 6.])

    Errors: IndexError for a dim out of range. Source: https://docs.pytorch.org/docs/stable/generated/torch.sum.html
    """
    x = tensor_argument(input, "sum")
    if dtype is None and isinstance(out, Tensor):
        dtype = out.dtype
    if dtype is not None:
        x = x.to(dtypes.as_dtype(dtype))
    y = _sum(x, _all_dims(dim, x.ndim), bool(keepdim))
    if dtype is not None:
        y = y.to(x.dtype)  # integers are summed as int64
    return y if out is None else _store(out, y, "sum")


def _all_dims(dim: Any, ndim: int) -> tuple[int, ...]:
    if dim is None or (isinstance(dim, (tuple, list)) and not dim):
        return tuple(range(ndim))
    return wrap_dims(dim, ndim)


def _store(out: Tensor, y: Tensor, name: str) -> Tensor:
    return store(out, y, name)


def _mean_of(lay: Layout, dims: tuple[int, ...]) -> tuple:
    n = count_of(lay.shape, dims)
    return _MEAN, lay.dtype, lay.dtype.compute, (1.0 / n if n else float("nan"),)


@structured(
    x=lambda g, x_shape, dims, keepdim: expand_reduced(g * (1.0 / max(count_of(x_shape, dims), 1)), x_shape, dims, keepdim),
    linear="jointly", batch="shift",
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
