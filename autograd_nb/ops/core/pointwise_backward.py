"""How pointwise ops are recorded, and their backward passes.

`Spec` says how a call is recorded for one set of operands that require grad, and for what does not depend on sizes `SpecKind`, of which
an op has few. The fused kernels of the backward passes are in `backward_plans`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from ... import launch
from ...codegen.formula.namespace import m
from ...dtypes import BY_NAME, dtype
from ...graph.node import Node, consumed_error
from ...graph.ownership import OURS
from ...overriding import overridable
from ...shapes import Layout
from ...tensor import Tensor, make
from .backward_plans import BOTH, FIRST, BackwardKind, BackwardPlan, backward_plan
from .call_path import generated, saving_lines
from .entries import as_half, signature
from .foreseen import note_op
from .history import attach
from .memo import Memo
from .recording import conjugated, guarded, tensor_type
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
                b = launch.empty(layout.size, carrier)
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


#: the operand that recorded derivatives of complex numbers keep in PyTorch, and formulas can do without: its first power, or a divisor
READ = {"square": 0, "div": 1, "addcdiv": 2}


class SpecKind:
    """A kind of spec says how a call is recorded and differentiated for one set of operands that require grad, whatever their
    shapes.

    ``save``: what the recorders of one and two operands save: bit 0 the first, bit 1 the second, bit 2 the output.
    """

    __slots__ = ("alike", "backward_kinds", "compute", "conjugate", "halves", "needs", "op", "ops", "rules", "save", "saved", "saver", "scalar_names")
    op: Pointwise
    needs: list[bool]
    scalar_names: list[int]
    saver: Callable[..., None] | None
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
        self.saver = None
        self.backward_kinds: dict[tuple[Any, ...], BackwardKind] = {}  # by the gradient's dtype, and which operands were broadcast
        self.alike: dict[dtype, BackwardPlan] = {}  # of all in C order and of one shape, by the gradient's dtype
        self.ops: Any = None  # of a recorded backward pass, one for each rule

    def write_saver(self) -> Callable[..., None]:
        """Return ``saver(node, args, out)``, which keeps on the node what the rules read."""
        self.saver = _saver(tuple(self.saved), tuple(self.scalar_names), len(self.needs))
        return self.saver

    def factors(self, g: Any, values: dict[Any, Any]) -> list[Any]:
        """Return the gradient formulas of the needed operands, on symbols or on tensors."""
        if self.halves and not isinstance(g, Tensor):
            values = {which: as_half(x, self.halves[which]) if which in self.halves else x for which, x in values.items()}
        if self.conjugate:  # f'(conj x) = conj f'(x) for every formula with real coefficients: conjugate what it reads
            values = {which: conjugated(value) for which, value in values.items()}
        found = [rule.whole(g, values, self.op.params) for _, rule in self.rules]
        if self.conjugate and self.op.name in READ and isinstance(g, Tensor):
            which = READ[self.op.name]
            for k, (_, rule) in enumerate(self.rules):
                if self.op.params[which] in rule.names and isinstance(found[k], Tensor):
                    found[k] = guarded(found[k], values[which])
        return found


@cache
def _saver(saved: tuple[Any, ...], numbers: tuple[int, ...], count: int) -> Callable[..., None]:
    """Return what keeps on a node the arrays of ``saved``, stamped with their versions, and the ``numbers`` among ``count`` operands."""
    names = [f"a{i}" for i in range(count)]
    tensors = ["t" if which == "out" else names[which] for which in saved]
    arrays = [*[f"{x}._data" for x in tensors], *[names[i] for i in numbers]]
    return generated("save", "_node, args, t", [f"{', '.join(names)}, = args", *saving_lines(arrays, [f"{x}._version_" for x in tensors])])


_tokens: dict[tuple[Any, ...], object] = {}


def token(*parts: Any) -> object:
    """Return one object for all that is equal to these parts: specs are made anew where observation has begun or ended."""
    if len(_tokens) > MANY_TOKENS:
        _tokens.clear()
    return _tokens.setdefault(parts, object())


class Spec:
    """A spec says how a call of given layouts is recorded and differentiated for one set of operands that require grad.

    ``like``: that of another shape, of which this is a copy; then operands and output lie in C order and have one shape.
    """

    __slots__ = ("backward_memo", "avals", "kind", "like", "mask", "node", "op", "out", "rules", "save", "saved", "scalar_names", "token")
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

    def __init__(self, op: Pointwise, avals: tuple[Any, ...], out: Layout, mask: int, like: Spec | None = None):
        self.op, self.avals, self.out, self.mask, self.node, self.like = op, avals, out, mask, op.node, like
        self.kind: SpecKind = spec_kind(op, avals, out, mask) if like is None else like.kind
        kind = self.kind
        self.rules, self.save, self.saved, self.scalar_names = kind.rules, kind.save, kind.saved, kind.scalar_names
        self.backward_memo = Memo()
        self.token = _tokens.get((op, avals, out, mask)) if _tokens else None  # what specs that are equal to this one have in common

    def plan_backward(self, g: Layout) -> BackwardPlan:
        return self.backward_memo.keep(g, backward_plan(self, g))  # type: ignore[no-any-return]

    # ---- the same on tensors
    def unpack(self, node: PointwiseNode) -> dict[Any, Any]:
        """Return operand index (or "out") -> tensor with its place in the graph, or the number."""
        values: dict[Any, Any] = {}
        arrays = len(self.saved)
        saved = tuple(node.saved)  # read once: each reading may compute it again
        for which, data, version in zip(self.saved, saved, node.counters(), strict=False):
            layout = self.out if which == "out" else self.avals[which]
            e: Any = node if which == "out" else node.edges[which]
            if e is not None and e.is_leaf_edge and e._layout is layout and e._data is data:
                values[which] = e
                continue
            t = make(data, layout, version)
            if e is not None:
                attach(t, e)
            values[which] = t
        values.update(zip(self.scalar_names, saved[arrays:], strict=True))
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


def spec_kind(op: Pointwise, avals: tuple[Any, ...], out: Layout, mask: int) -> SpecKind:
    """Return the `SpecKind` of such a call, which an op makes once."""
    of = (signature(avals), out.dtype, mask)
    kind = op.kinds.get(of)
    if kind is None:
        kind = op.kinds[of] = SpecKind(op, avals, out.dtype, mask)
        note_op("pointwise", op, op.formula, list(avals), out, mask)
    return kind  # type: ignore[no-any-return]


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
