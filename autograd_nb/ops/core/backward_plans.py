"""The fused kernels of the backward passes of pointwise ops.

`BackwardPlan` holds them for one layout of the incoming gradient. What does not depend on sizes is in `BackwardKind`, of which an op has few.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any

import numpy as np

from ... import launch, strides
from ...codegen.templates import loops
from ...codegen.templates.loops import Input
from ...dtypes import BY_NAME, dtype
from ...graph.ownership import OURS, share
from ...shapes import Layout, layout_of
from ...tensor import Tensor, make
from .entries import PointwiseKernel, operand
from .reduction_kernel import Folding, FoldKernel, NestedReduction, folding

if TYPE_CHECKING:
    from .pointwise_backward import Spec, SpecKind

WIDE = 1 << 16  #: elements from which a kernel that overwrites the incoming gradient pays for being compiled
FEW = 64  #: elements up to which a kernel may write over what it reads: it is not vectorised then, which does not matter


class Passed(Enum):
    """Which of two operands get the incoming gradient itself, as those of a sum do."""

    BOTH = 0
    FIRST = 1
    SECOND = 2


BOTH, FIRST, SECOND = Passed


class BackwardKind:
    """The kernels of a backward pass for one dtype of the incoming gradient, whatever the sizes.

    ``alias``: operands that get the gradient itself; ``full``, ``reduced``: (rule, operand) of those of the output's shape, and of
    those that were stretched to it.
    """

    __slots__ = ("alias", "compute", "folds", "full", "inputs", "kernels", "reduced", "spec")
    spec: SpecKind
    inputs: list[Input]
    compute: list[str]
    alias: list[int]
    full: list[tuple[int, int]]
    reduced: list[tuple[int, int]]

    def __init__(self, spec: SpecKind, avals: tuple[Any, ...], g: dtype, saved: list[dtype], stretched: Sequence[bool]):
        self.spec = spec
        self.inputs = [Input(d.name) for d in (g, *saved)] + [operand(avals[i]) for i in spec.scalar_names]
        per_operand = spec.op.compute_list(spec.compute)
        mixed = g.is_complex or spec.compute.startswith("complex")  # then the gradient is read as what it is
        self.compute = [g.compute if mixed else spec.compute]
        for w, d in zip(spec.saved, saved, strict=True):  # (the output of real operands may be complex)
            self.compute.append((d.compute if d.is_complex else spec.compute) if w == "out" else per_operand[w])
        self.compute += [per_operand[i] for i in spec.scalar_names]
        self.kernels: dict[tuple[Any, ...], PointwiseKernel] = {}
        self.folds: dict[int, FoldKernel] = {}
        self.alias, self.full, self.reduced = [], [], []
        every = range(len(spec.rules))
        probe = loops.trace_body(self.formulas(every), self.inputs, self.compute, [None] * len(every))
        for k, (i, _) in enumerate(spec.rules):
            value = probe.results[k][0]
            same = value.op == "input" and value.name == "x0" and avals[i].dtype is g
            if g.is_half and avals[i].dtype is g:
                same = value is probe_half(probe, g)
            if stretched[k]:
                self.reduced.append((k, i))
            elif same:
                self.alias.append(i)
            else:
                self.full.append((k, i))

    def formulas(self, picked: Sequence[int]) -> Callable[..., Any]:
        """Return the formula that makes, of the gradient and what is saved, the gradients that the rules ``picked`` give."""
        spec = self.spec

        def run(gx, *rest):
            values = dict(zip([*spec.saved, *spec.scalar_names], rest, strict=True))
            all_values = spec.factors(gx, values)
            return [all_values[k] for k in picked]

        return run

    def kernel(self, picked: tuple[int, ...], outs: list[str], over: Mapping[int, int] = loops.APART) -> PointwiseKernel:
        """Return the kernel that stores what the rules ``picked`` give."""
        found = self.kernels.get((picked, bool(over)))
        if found is None:
            name = self.spec.op.name + "_backward"
            found = PointwiseKernel(name, self.formulas(picked), self.inputs, self.compute, outs, over)
            self.kernels[picked, bool(over)] = found
        return found

    def fold(self, k: int, out: str, layouts: list[Layout], shape: Sequence[int], axes: list[int]) -> tuple[Any, ...]:
        """Return (entry point, dims) of the kernel that sums what rule ``k`` gives."""
        def of() -> Folding:
            return folding(self.formulas((k,)), self.inputs, self.compute, loops.SUM, None, out, layouts, shape, axes)

        kernel = self.folds.get(k)
        if kernel is None:
            kernel = self.folds[k] = FoldKernel(self.spec.op.name + "_backward", of())
        whole = layout_of([1 if d in axes else n for d, n in enumerate(shape)], None, BY_NAME[out])
        return kernel.at(shape, axes, [*layouts, whole], of)


@dataclass(slots=True, eq=False)
class BackwardPlan:
    """Kernels of a backward pass for one layout of the incoming gradient: one for all operands of full shape, one reduction
    for each that was broadcast; an operand whose derivative is 1 gets the gradient itself. `backward_plan` makes it."""

    count: int  #: of operands
    alias: list[int]  #: operands that get the gradient itself
    kind: BackwardKind
    kernel: PointwiseKernel | None  #: of the gradients of full shape
    outs: list[tuple[int, Layout, np.dtype]]  #: operands of full shape, their gradients' layouts and dtypes in memory
    entry: Callable[..., Any] | None  #: of the kernel that makes these
    dims: np.ndarray | None
    reductions: list[tuple[Any, ...]]  #: operands that were stretched: (operand, entry point, dims, layout, dtype in memory)
    nested: list[tuple[Any, ...]]  #: more than a kernel walks at once: (operand, entry point, dims, layout, axes, shape)

    # the commonest: one gradient from one kernel
    small: bool  #: whether the first gradient is too small for the pool of memory
    simple: tuple[Any, ...] | None  #: (layout, dtype in memory) of the only gradient
    over: Layout | None  #: the layout of an incoming gradient that it may be written over,
    overwrite: Callable[..., Any] | None  #: by this entry point, where not by ``entry``

    # and two operands of full shape
    passed: Passed | None  #: which of them get the incoming gradient itself, where no other is computed
    pair: tuple[Layout, np.dtype] | None  #: (layout, dtype in memory) of both gradients, where one flat kernel makes them
    first_over: Layout | None  #: the layout of an incoming gradient over which the first of a pair is written

    def resized(self, spec: Spec, g: Layout) -> BackwardPlan:
        """Return the plan of a call and a gradient that differ in nothing but their one shape."""
        avals, size = spec.avals, g.size
        outs = [(i, avals[i], carrier) for i, _, carrier in self.outs]
        first = outs[0][1:] if outs else None
        simple = first if self.simple is not None else None
        pair = first if self.pair is not None else None
        over, overwrite, entry = None, None, None
        if simple is not None and simple[0].dtype is g.dtype:
            over, overwrite = _overwriting(self.kind, [g] * (1 + len(spec.saved)), g)
        if self.kernel is not None and self.entry is not None:
            entry = self.kernel.resized(self.entry, size)
        return BackwardPlan(
            self.count, self.alias, self.kind, self.kernel, outs, entry, None, [], [],
            bool(outs) and size * outs[0][2].itemsize < launch.BIG, simple, over, overwrite, self.passed, pair,
            pair[0] if pair is not None and size <= FEW else None,
        )  # fmt: skip

    def placed(self, t: Tensor) -> tuple[Any, ...]:
        """Return the one gradient in its operand's place."""
        grads: list[Any] = [None] * self.count
        grads[self.outs[0][0]] = t
        return tuple(grads)

    def run(self, g: Tensor, saved: Any) -> tuple[Any, ...]:
        grads: list[Any] = [None] * self.count
        if self.entry is not None:
            outs = [launch.empty(layout.size, carrier) for _, layout, carrier in self.outs]
            if self.dims is None:
                self.entry(g._data, *saved, *outs)
            else:
                self.entry(self.dims, g._data, *saved, *outs)
            for (i, layout, _), data in zip(self.outs, outs, strict=True):
                grads[i] = make(data, layout, [0, OURS])
        for i in self.alias:
            grads[i] = g
        if len(self.alias) > 1:
            share(g)
        for i, entry, dims, layout, carrier in self.reductions:
            data = launch.empty(layout.size, carrier)
            entry(dims, g._data, *saved, data)
            grads[i] = make(data, layout, [0, OURS])
        for i, plain, steps, whole, axes, shape in self.nested:
            data = launch.empty(whole.size, whole.dtype.carrier)
            if steps is None:
                plain(g._data, *saved, data)
            else:
                plain(steps, g._data, *saved, data)
            grads[i] = t = make(data, whole, [0, 0]).sum(axes).reshape(shape)
            t._version_[1] = OURS
        return tuple(grads)


def backward_plan(spec: Spec, g: Layout) -> BackwardPlan:
    """Return the plan for gradients that come in with the layout ``g``; it is a copy where another differs in the one shape of all alone."""
    if spec.like is None or launch._observing or not g.usual or g.sizes != spec.out.sizes:
        return _new_backward_plan(spec, g)
    like = spec.kind.alike.get(g.dtype)
    if like is None:
        like = spec.kind.alike[g.dtype] = _new_backward_plan(spec, g)
        return like
    return like.resized(spec, g)


def _new_backward_plan(spec: Spec, g: Layout) -> BackwardPlan:
    avals, out = spec.avals, spec.out
    saved_layouts = [out if w == "out" else avals[w] for w in spec.saved]
    layouts = [g, *saved_layouts]
    stretched = tuple([avals[i].shape != out.shape for i, _ in spec.rules])
    kind = spec.kind.backward_kinds.get((g.dtype, stretched))
    if kind is None:
        kind = BackwardKind(spec.kind, avals, g.dtype, [layout.dtype for layout in saved_layouts], stretched)
        spec.kind.backward_kinds[g.dtype, stretched] = kind
    full, alias, reduced = kind.full, kind.alias, kind.reduced
    outs = [(i, strides.combined(out.shape, layouts, avals[i].dtype), avals[i].dtype.carrier) for _, i in full]
    entry = dims = kernel = None
    if full:
        kernel = kind.kernel(tuple([k for k, _ in full]), [avals[i].dtype.name for _, i in full])
        entry, dims = kernel.entry(layouts, [layout for _, layout, _ in outs])
    simple = outs[0][1:] if len(full) == 1 and not reduced and not alias else None
    over: Layout | None = None
    overwrite: Callable[..., Any] | None = None
    if simple is not None and dims is None and simple[0].dtype is g.dtype and not launch._observing:
        over, overwrite = _overwriting(kind, layouts, simple[0])
    two = len(avals) == 2 and not reduced and dims is None
    pair = outs[0][1:] if two and len(outs) == 2 and outs[0][1:] == outs[1][1:] else None
    sums, nested = _reductions(kind, avals, out, layouts) if reduced else ([], [])
    return BackwardPlan(
        count=len(avals), alias=alias, kind=kind, kernel=kernel, outs=outs, entry=entry, dims=dims, reductions=sums, nested=nested,
        small=bool(outs) and outs[0][1].size * outs[0][2].itemsize < launch.BIG, simple=simple, over=over, overwrite=overwrite,
        passed=_passed(alias) if two and not outs else None, pair=pair,
        first_over=pair[0] if pair is not None and pair[0].size <= FEW and not launch._observing else None,
    )  # fmt: skip


def _overwriting(kind: BackwardKind, layouts: list[Layout], only: Layout) -> tuple[Layout | None, Callable[..., Any] | None]:
    """Return ``over`` and ``overwrite`` of a plan for the only gradient, which is dense and has the dtype of the incoming one."""
    if only.size <= FEW:  # a kernel whose output is its input runs unvectorised, which does not matter here
        return only, None
    if only.size < WIDE:
        return None, None
    ((k, _),) = kind.full  # worth a kernel of its own
    return only, kind.kernel((k,), [only.dtype.name], {0: 0}).flat(layouts, layouts[:1])


def _passed(alias: list[int]) -> Passed:
    """Return ``passed`` of a plan for two operands, of which some get the incoming gradient itself and the others none."""
    return BOTH if len(alias) == 2 else FIRST if alias == [0] else SECOND


def _reductions(
    kind: BackwardKind, avals: tuple[Any, ...], out: Layout, layouts: list[Layout]
) -> tuple[list[tuple[Any, ...]], list[tuple[Any, ...]]]:
    """Return ``reductions`` and ``nested`` of a plan: the gradients of operands that were stretched."""
    sums: list[tuple[Any, ...]] = []
    nested: list[tuple[Any, ...]] = []
    for k, i in kind.reduced:
        to = avals[i]
        lead = out.ndim - to.ndim
        axes = [d for d in range(out.ndim) if d < lead or (to.shape[d - lead] == 1 and out.shape[d] != 1)]
        try:
            entry, dims = kind.fold(k, to.dtype.name, layouts, out.shape, axes)
        except NestedReduction:  # stretched along more dims than the kernels walk at once: written out, then summed
            whole = layout_of(out.shape, None, to.dtype)
            plain, steps = kind.kernel((k,), [to.dtype.name]).entry(layouts, [whole])
            nested.append((i, plain, steps, whole, tuple(axes), to.shape))
        else:
            sums.append((i, entry, dims, layout_of(to.shape, None, to.dtype), to.dtype.carrier))
    return sums, nested


def probe_half(body: Any, d: dtype) -> Any:
    """Return the symbol that a gradient of half precision has after being loaded and stored again unchanged."""
    return loops.stored(loops.loaded(body.symbols[0], d.name), d.name)
