"""How pointwise ops are recorded, and their backward passes.

`Spec` says how a call is recorded for one set of operands that require grad, `BackwardPlan` holds the fused backward kernels for one
layout of the incoming gradient. What of them does not depend on sizes is in `SpecKind` and `BackwardKind`, of which an op has few.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any

import numpy as np

from ... import launch, strides
from ...codegen.formula.namespace import m
from ...codegen.templates import loops
from ...codegen.templates.loops import Input
from ...dtypes import BY_NAME, dtype
from ...graph.node import Node, consumed_error
from ...graph.ownership import OURS, share
from ...overriding import overridable
from ...shapes import Layout, layout_of
from ...tensor import Tensor, make
from .entries import PointwiseKernel, as_half, operand, signature
from .foreseen import note_op
from .history import attach
from .memo import Memo
from .recording import tensor_type
from .reduction_kernel import Folding, FoldKernel, NestedReduction, folding
from .registry import parameters_of

if TYPE_CHECKING:
    from .pointwise import Pointwise


class Above:
    """The functions that `double_backward`, which is made of ops, hands in here."""

    gradient_op: Callable[[Pointwise, int], tuple[Callable[..., Any], tuple[Any, ...]] | None]
    by_jumps: Callable[..., Any]


above: Above = Above()

#: ops whose derivatives depend on what they read by jumps, as PyTorch records them
JUMPS = {"hardshrink", "softshrink", "threshold", "prelu", "fmod", "remainder", "l1_loss", "pow_1"}

MANY_TOKENS = 4096  #: kept at most; what was noted with those that went is not met again

WIDE = 1 << 16  #: elements from which a kernel that overwrites the incoming gradient pays for being compiled


FEW = 64  #: elements up to which a kernel may write over what it reads: it is not vectorised then, which does not matter


class Passed(Enum):
    """Which of two operands get the incoming gradient itself, as those of a sum do."""

    BOTH = 0
    FIRST = 1
    SECOND = 2


BOTH, FIRST, SECOND = Passed


#: gives what stands for the place of an array that a node keeps, of the layer above
raw_saved: list[Callable[[Any, int], Any]] = []


class PointwiseNode(Node):
    """A recorded pointwise op; subclasses are named per op."""

    __slots__ = ("spec",)

    @property
    def alike(self) -> Any:  # type: ignore[override]
        """Return the spec's kind."""
        return self.spec.kind

    def tell(self, graph: Any, n: str) -> None:
        spec = self.spec
        if spec.token is None:
            spec.token = token(spec.op, spec.avals, spec.out, spec.mask)
        graph.differs(f"{n}.spec.token", "is not", spec.token)
        if self.saved:
            parts = graph.saved(n, self.saved)
            for k, (part, value) in enumerate(zip(parts, self.saved, strict=True)):
                (graph.array if k < len(spec.saved) else graph.same)(part, value)

    def again(self, text: Any, n: str) -> list[str]:
        arrays = len(self.spec.saved)
        kept = [text.array(value) if k < arrays else text.constant(value) for k, value in enumerate(self.saved or ())]
        return [f"{n}.spec = {text.constant(self.spec)}", f"{n}.saved = ({''.join(k + ', ' for k in kept)})"]

    @overridable
    def run(self, g: Tensor) -> tuple[Any, ...]:
        layout = g._layout
        plan = self.spec.backward_memo.plans.get(layout)
        if plan is None:
            plan = self.spec.plan_backward(layout)
        if plan.over is layout and g._version_[1] == OURS and g._view is None:
            # a gradient that nobody else has is overwritten: that saves its memory, its tensor, and traffic to memory
            data = g._data
            if plan.overwrite is None:
                plan.entry(data, *self.saved, data)
            else:
                plan.overwrite(data, *self.saved)
            return (g,) if plan.count == 1 else plan.placed(g)
        if plan.simple:
            layout, carrier = plan.simple
            data = np.empty(layout.size, carrier) if plan.small else launch.empty(layout.size, carrier)
            if plan.dims is None:
                plan.entry(g._data, *self.saved, data)
            else:
                plan.entry(plan.dims, g._data, *self.saved, data)
            t = make(data, layout, [0, OURS])
            return (t,) if plan.count == 1 else plan.placed(t)
        if plan.passed is not None:  # two operands, and nothing to compute
            if plan.passed is BOTH:
                version = g._version_
                if version[1] == OURS:  # `share`
                    version[1] = 0
                return (g, g)
            return (g, None) if plan.passed is FIRST else (None, g)
        if plan.pair is not None:
            layout, carrier = plan.pair
            if plan.first_over is g._layout and g._version_[1] == OURS and g._view is None:
                data = g._data
                b = np.empty(layout.size, carrier)
                plan.entry(data, *self.saved, data, b)
                return (g, make(b, layout, [0, OURS]))
            a = np.empty(layout.size, carrier) if plan.small else launch.empty(layout.size, carrier)
            b = np.empty(layout.size, carrier) if plan.small else launch.empty(layout.size, carrier)
            plan.entry(g._data, *self.saved, a, b)
            return (make(a, layout, [0, OURS]), make(b, layout, [0, OURS]))
        return plan.run(g, self.saved)

    def run_graph(self, g: Tensor) -> tuple[Any, ...]:
        return self.spec.run_graph(self, g)

    def saved_arrays(self) -> list[tuple[Any, ...]]:
        spec = self.spec
        out = []
        for which in spec.saved:
            layout = spec.out if which == "out" else spec.avals[which]
            out.append((layout.shape, tensor_type(layout.dtype), self if which == "out" else self.edges[which]))
        return out

    def __getattr__(self, name: str) -> Any:
        # PyTorch's _saved_self, _saved_other, _saved_result, and _raw_saved_self …
        if name.startswith(("_saved_", "_raw_saved_")):
            if self.consumed is not None and name[1] == "s":
                raise consumed_error(self)
            names, tail = {"self": 0, "other": 1, "result": "out"}, name.partition("saved_")[2]
            key = names.get(tail, tail)
            if name[1] == "r":
                if key in self.spec.saved:
                    return raw_saved[0](self, self.spec.saved.index(key))
            elif key in (values := self.spec.unpack(self)):
                return values[key]
        raise AttributeError(f"{self.name()!r} has no attribute {name!r}")

    def __dir__(self) -> list[str]:
        names = {0: "_saved_self", 1: "_saved_other", "out": "_saved_result"}
        return [*super().__dir__(), *(names[which] for which in self.spec.saved if which in names)]


class UnaryNode(PointwiseNode):
    """A recorded op of one operand: its edge stands by itself."""

    __slots__ = ("edge",)
    edge: Any

    @property
    def edges(self) -> tuple[Any, ...]:
        return (self.edge,)

    @edges.setter
    def edges(self, edges: tuple[Any, ...]) -> None:
        (self.edge,) = edges


class SpecKind:
    """A kind of spec says how a call is recorded and differentiated for one set of operands that require grad, whatever their
    shapes.

    ``save``: what the recorders of one and two operands save: bit 0 the first, bit 1 the second, bit 2 the output.
    """

    __slots__ = ("backward_kinds", "compute", "conjugate", "halves", "needs", "op", "ops", "rules", "save", "saved", "scalar_names")
    op: Pointwise
    needs: list[bool]
    scalar_names: list[int]
    compute: str
    conjugate: bool
    halves: dict[int, str]
    save: int

    def __init__(self, op: Pointwise, avals: tuple[Any, ...], out: dtype, mask: int):
        self.op = op
        self.needs = [bool(mask >> i & 1) and op.rules[i] is not None for i in range(len(avals))]
        self.rules: list[tuple[int, Rule]] = [(i, op.rules[i]) for i, need in enumerate(self.needs) if need]  # type: ignore[misc]
        wanted = {n for _, r in self.rules for n in r.names if n != "g"}
        self.saved: list[Any] = [i for i, p in enumerate(op.params) if p in wanted and isinstance(avals[i], Layout)]
        if any(n not in op.params for n in wanted):
            self.saved.append("out")
        self.scalar_names = [i for i, p in enumerate(op.params) if p in wanted and not isinstance(avals[i], Layout)]
        self.compute = op.result_dtypes(avals)[0]
        self.halves = op.rounded(avals)
        # of a holomorphic function of complex numbers the gradient is g · conj(dy/dx)
        self.conjugate = out.is_complex and op.holomorphic
        self.save = sum({0: 1, 1: 2, "out": 4}.get(w, 8) for w in self.saved)
        self.backward_kinds: dict[tuple[Any, ...], BackwardKind] = {}  # by the gradient's dtype, and which operands were broadcast
        self.ops: Any = None  # of a recorded backward pass, one for each rule

    def factors(self, g: Any, values: dict[Any, Any]) -> list[Any]:
        """Return the gradient formulas of the needed operands, on symbols or on tensors."""
        if self.halves and not isinstance(g, Tensor):
            values = {which: as_half(x, self.halves[which]) if which in self.halves else x for which, x in values.items()}
        if self.conjugate:  # f'(conj x) = conj f'(x) for every formula with real coefficients: conjugate what it reads
            values = {which: m.conj(value) for which, value in values.items()}
        return [rule.whole(g, values, self.op.params) for _, rule in self.rules]


_tokens: dict[tuple[Any, ...], object] = {}


def token(*parts: Any) -> object:
    """Return one object for all that is equal to these parts: specs are made anew where observation has begun or ended."""
    if len(_tokens) > MANY_TOKENS:
        _tokens.clear()
    return _tokens.setdefault(parts, object())


class Spec:
    """A spec says how a call of given layouts is recorded and differentiated for one set of operands that require grad."""

    __slots__ = ("backward_memo", "avals", "kind", "mask", "node", "op", "out", "rules", "save", "saved", "scalar_names", "token")
    op: Pointwise
    avals: tuple[Any, ...]
    out: Layout
    mask: int
    rules: list[tuple[int, Rule]]
    saved: list[Any]
    scalar_names: list[int]
    save: int
    node: type[PointwiseNode]
    backward_memo: Memo
    token: object | None

    def __init__(self, op: Pointwise, avals: tuple[Any, ...], out: Layout, mask: int):
        self.op, self.avals, self.out, self.mask, self.node = op, avals, out, mask, op.node
        of = (signature(avals), out.dtype, mask)
        kind = op.kinds.get(of)
        if kind is None:
            kind = op.kinds[of] = SpecKind(op, avals, out.dtype, mask)
            note_op("pointwise", op, op.formula, list(avals), out, mask)
        self.kind: SpecKind = kind
        self.rules, self.save, self.saved, self.scalar_names = kind.rules, kind.save, kind.saved, kind.scalar_names
        self.backward_memo = Memo()
        self.token = _tokens.get((op, avals, out, mask)) if _tokens else None  # what specs that are equal to this one have in common

    def plan_backward(self, g: Layout) -> BackwardPlan:
        return self.backward_memo.keep(g, backward_plan(self, g))

    # ---- the same on tensors
    def unpack(self, node: PointwiseNode) -> dict[Any, Any]:
        """Return operand index (or "out") -> tensor with its place in the graph, or the number."""
        values: dict[Any, Any] = {}
        arrays = len(self.saved)
        for which, data, version in zip(self.saved, node.saved[:arrays], node.counters(), strict=False):
            layout = self.out if which == "out" else self.avals[which]
            e: Any = node if which == "out" else node.edges[which]
            if e is not None and e.is_leaf_edge and e._layout is layout and e._data is data:
                values[which] = e
                continue
            t = make(data, layout, version)
            if e is not None:
                attach(t, e)
            values[which] = t
        values.update(zip(self.scalar_names, node.saved[arrays:], strict=True))
        return values

    def run_graph(self, node: PointwiseNode, g: Tensor) -> tuple[Any, ...]:
        grads: list[Any] = [None] * len(self.avals)
        values = self.unpack(node)
        # the formulas compute in the result's dtype, whatever the operands have (1 / b of integers would be float32)
        d = self.out.dtype
        if d.is_complex is not self.kind.compute.startswith("complex"):  # |z|, or a complex number of two real ones
            d = BY_NAME[self.kind.compute]
        for which, t in values.items():
            if (
                isinstance(t, Tensor)
                and t.dtype is not d
                and (not self.out.dtype.is_complex if which == "out" else self.op.params[which] not in self.op.conditions)
            ):
                values[which] = t.to(d)
        found = self._by_ops(g, values) or self.kind.factors(g, values)
        for (i, rule), value in zip(self.rules, found, strict=True):
            grads[i] = _fit(value, g, self.avals[i])
            if self.op.name in JUMPS:
                params = self.op.params
                grads[i] = above.by_jumps(grads[i], *[values[params.index(n)] for n in rule.names if n in params])
        return tuple(grads)

    def _by_ops(self, g: Tensor, values: dict[Any, Any]) -> list[Any] | None:
        """Return the gradients, those of longer formulas computed by ops of their own (see `ops.core.double_backward`); only of one real dtype."""
        d = self.out.dtype
        if g.__class__ is not Tensor or g._layout.dtype is not d or not d.is_floating_point:
            return None
        kind = self.kind
        if kind.ops is None:
            plain = not self.op.conditions and all(w == "out" or self.avals[w].dtype is d for w in self.saved)
            kind.ops = [above.gradient_op(self.op, i) for i, _ in self.rules] if plain else ()
        if not any(kind.ops):
            return None
        out: list[Any] = []
        for (_, rule), found in zip(self.rules, kind.ops, strict=True):
            if found is None:
                out.append(rule.whole(g, values, self.op.params))
            else:
                call, which = found
                out.append(call(g, *[values[w] for w in which]))
        return out


def _fit(value: Any, g: Tensor, layout: Layout) -> Tensor:
    """Return a gradient brought to an operand's shape and dtype, recorded."""
    if not isinstance(value, Tensor):
        value = g * value
    if value.shape != layout.shape:
        value = value.sum_to_size(layout.shape)
    if value.dtype is not layout.dtype:
        if value.dtype.is_complex and not layout.dtype.is_complex:
            value = m.real(value)
        value = value.to(layout.dtype)
    return value


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


@dataclass(frozen=True, slots=True, eq=False)
class BackwardPlan:
    """Kernels of a backward pass for one layout of the incoming gradient: one for all operands of full shape, one reduction
    for each that was broadcast; an operand whose derivative is 1 gets the gradient itself. `backward_plan` makes it."""

    count: int  #: of operands
    alias: list[int]  #: operands that get the gradient itself
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
    """Return the plan for gradients that come in with the layout ``g``."""
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
    entry = dims = None
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
        count=len(avals), alias=alias, outs=outs, entry=entry, dims=dims, reductions=sums, nested=nested,
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


class Rule:
    """A derivative's formula and the names it asks for."""

    __slots__ = ("function", "names")
    function: Callable[..., Any]
    names: tuple[str, ...]

    def __init__(self, function: Callable[..., Any]):
        self.function = function
        self.names = parameters_of(function)

    def whole(self, g: Any, values: dict[Any, Any], params: Sequence[str]) -> Any:
        """Return the operand's gradient: g · derivative, or what the formula makes of ``g`` itself."""
        args = [g if n == "g" else values[params.index(n) if n in params else "out"] for n in self.names]
        try:
            value = self.function(*args)
        except (ArithmeticError, ValueError):  # of Python's numbers, where 1/0 and log 0 are errors: as a tensor they are infinite
            value = self.function(*[m.zero_like(g) + a if isinstance(a, (int, float, complex)) else a for a in args])
        if "g" in self.names:
            return value
        if isinstance(value, (int, float, complex)):
            if value == 0 and not any(value is a for a in args):  # not g * 0, which is nan for an infinite g, but where the user's number is 0
                return m.zero_like(g)
            return g if value == 1 else -g if value == -1 else g * value
        return g * value
