"""Reductions of pointwise formulas in one kernel: Σ f(a, b, …) without the array of f's values.

`reduced` makes one from a `pointwise` declaration, whose derivative rules serve it too: the gradient of the sum is the
formula's own gradient kernel, fed with the reduction's gradient spread (without a copy) over the elements.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ... import launch
from ...codegen.templates import loops
from ...codegen.templates.loops import Input
from ...graph.modes import state
from ...overriding import overridable
from ...shapes import Layout, broadcast_shapes, layout_of
from ...tensor import Tensor, make
from ..core.call_path import planned
from ..core.entries import operand
from ..core.plans import Kind, Plan, kind_of
from ..core.pointwise import Pointwise
from ..core.pointwise_backward import PointwiseNode
from ..core.recording import mark_inference
from ..core.reduction import count_of, expand_reduced, reduced_shape
from ..core.reduction_kernel import FoldKernel, NestedReduction, folding


class _ReducedNode(PointwiseNode):
    """A recorded reduction of a pointwise formula."""

    __slots__ = ("factor", "place")

    def tell(self, graph: Any, n: str) -> None:
        graph.same(f"{n}.factor", self.factor)
        graph.same(f"{n}.place", self.place)
        PointwiseNode.tell(self, graph, n)

    def again(self, text: Any, n: str) -> list[str]:
        return [*PointwiseNode.again(self, text, n), f"{n}.factor, {n}.place = {text.constant(self.factor)}, {text.constant(self.place)}"]

    def _spread(self, g: Tensor) -> Tensor:
        dims, keepdim = self.place
        if self.factor != 1.0:
            g = g * self.factor
        return expand_reduced(g, self.spec.out.shape, dims, keepdim)

    def run(self, g: Tensor) -> tuple[Any, ...]:
        return PointwiseNode.run(self, self._spread(g))

    def run_graph(self, g: Tensor) -> tuple[Any, ...]:
        return self.spec.run_graph(self, self._spread(g))


class _ReducedPlan:
    """The kernel and the recording of one call's layouts."""

    __slots__ = ("array", "entry", "factor", "avals", "layout", "like", "op", "out", "recorded", "specs")

    def __init__(self, op: Reduced, avals: tuple[Any, ...], dims: tuple[int, ...] | None, keepdim: bool, mean: bool):
        self.op, self.avals, self.like = op, avals, None
        layouts = [k for k in avals if isinstance(k, Layout)]
        shape = broadcast_shapes(*[k.shape for k in layouts])
        kind = kind_of(op, avals)
        compute, out = kind.compute, kind.out
        self.out = layout_of(shape, None, out)
        self.recorded = out.category >= 2
        self.specs: list[Any] = [None] * (1 << len(avals))
        axes = tuple(range(len(shape))) if dims is None else dims
        n = count_of(shape, axes)
        self.factor = 1.0 if not mean else 1.0 / n if n else float("nan")
        formula = op.formula_of(avals)
        of = folding(
            lambda *x: (formula(*x[:-1]),), [*[operand(k) for k in avals], Input("float64", scalar=True)],
            [*op.compute_list(compute), "float64"], loops.SUM, lambda total, *scalars: total * scalars[-1], out.name, layouts, shape,
            axes,
        )  # fmt: skip
        kernel = op.folds.get(kind)
        if kernel is None:
            kernel = op.folds[kind] = FoldKernel(op.name, of)
        self.entry, self.array = kernel.entry(of)
        self.layout = layout_of(reduced_shape(shape, axes, keepdim), None, out)

    spec = Plan.spec


class Reduced(Pointwise):
    """The sum or mean of a pointwise op's values; made by `reduced`."""

    kinds: dict[Any, Any]

    def __init__(self, op: Pointwise, node: str):
        self.__dict__.update(op.__dict__)
        for rule in self.rules:
            assert rule is None or all(n == "g" or n in self.params for n in rule.names), (
                f"{op.name}: a rule needs the unreduced output"
            )
        self.node = type(node, (_ReducedNode,), {"__slots__": ()})
        self.kinds, self.alike = {}, {}
        self.folds: dict[Kind, FoldKernel] = {}

    @overridable
    def __call__(
        self, args: Sequence[Any], dims: tuple[int, ...] | None = None, keepdim: bool = False, mean: bool = False
    ) -> Tensor:
        """Return Σ or mean of the formula over ``dims`` (None: all) of the broadcast shape of the operands, tensors and numbers."""
        avals = tuple([a._layout if isinstance(a, Tensor) else a.__class__ for a in args])
        try:
            plan = _plan(self, avals, dims, keepdim, mean)
        except NestedReduction:
            shape = broadcast_shapes(*[k.shape for k in avals if isinstance(k, Layout)])
            return self([a.expand(shape).contiguous() if isinstance(a, Tensor) else a for a in args], dims, keepdim, mean)
        data = launch.empty(plan.layout.size, plan.layout.dtype.carrier)
        plan.entry(plan.array, *[a._data if isinstance(a, Tensor) else a for a in args], plan.factor, data)
        t = make(data, plan.layout, [0, 0])
        if state.grad and self.record(plan, args, t):
            node = t._edge
            node.factor = plan.factor
            node.place = (tuple(range(plan.out.ndim)) if dims is None else dims, keepdim)
        if state.inference:
            mark_inference(t)
        return t


@planned
def _plan(op: Reduced, avals: tuple[Any, ...], dims: Any, keepdim: bool, mean: bool) -> _ReducedPlan:
    return _ReducedPlan(op, avals, dims, keepdim, mean)


def reduced(call: Any, node: str) -> Reduced:
    """Return the sum or mean of a declared pointwise op (its call, as `pointwise` returns it); ``node`` names its grad_fn."""
    return Reduced(call.op, node)
