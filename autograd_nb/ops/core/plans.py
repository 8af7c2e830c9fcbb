"""Plans: what a pointwise op does for operands of given layouts, forward and in place.

A plan is found by the operands' interned layouts, so that dtype promotion, broadcasting and the choice of kernel are settled
once. How a call is recorded, and its backward pass, are in `pointwise_backward`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from ... import launch, strides
from ...dtypes import dtype, get_default_dtype
from ...shapes import Layout, broadcast_shapes, layout_of
from .entries import PointwiseKernel, operand, signature
from .pointwise_backward import Spec
from .recording import can_cast, check_result

if TYPE_CHECKING:
    from .pointwise import Pointwise


class Kind:
    """A kind says what a pointwise op does for operands of given dtypes, whatever their shapes: see `kind_of`."""

    __slots__ = ("compute", "forward", "out", "over")
    compute: str
    out: dtype

    def __init__(self, op: Pointwise, avals: tuple[Any, ...]):
        self.compute, self.out = op.result_dtypes(avals)
        self.forward: PointwiseKernel | None = None
        self.over: PointwiseKernel | None = None  # writes over the first operand

    def kernel(self, op: Pointwise, avals: tuple[Any, ...]) -> PointwiseKernel:
        """Return the kernel whose result has memory of its own."""
        if self.forward is None:
            formula = op.formula_of(avals)
            self.forward = PointwiseKernel(
                op.name, lambda *x: (formula(*x),), [operand(k) for k in avals], op.compute_list(self.compute), [self.out.name]
            )
        return self.forward

    def over_kernel(self, op: Pointwise, avals: tuple[Any, ...]) -> PointwiseKernel:
        """Return the kernel that writes over the first operand; where the op only overwrites, it is not given the old values."""
        if self.over is None:
            target, computes, formula = avals[0].dtype, op.compute_list(self.compute), op.formula_of(avals)
            if not op.reads:
                avals, computes = avals[1:], computes[1:]

                def formula(*x: Any) -> Any:
                    return op.formula(None, *x)

            self.over = PointwiseKernel(
                op.name + "_", lambda *x: (formula(*x),), [operand(k) for k in avals], computes, [target.name],
                {0: 0} if op.reads else {},
            )  # fmt: skip
        return self.over


def kind_of(op: Pointwise, avals: tuple[Any, ...]) -> Kind:
    """Return the `Kind` of operands given by layout or number type, which an op makes once."""
    of = signature(avals)
    found = op.kinds.get(of)
    if found is None:
        found = op.kinds[of] = Kind(op, avals)
    return found


def alike(avals: tuple[Any, ...]) -> tuple[Layout, tuple[Any, ...]] | None:
    """Return (one of the operands' layouts, what they have besides their shape) where all lie in C order and have one shape, else None."""
    first: Layout | None = None
    sort: list[Any] = [get_default_dtype()]
    for k in avals:
        if k.__class__ is not Layout:
            sort.append(k)
            continue
        if first is None:
            first = k
        elif k.sizes != first.sizes:
            return None
        if not k.usual:
            return None
        sort.append(k.dtype)
    return (first, tuple(sort)) if first is not None and first.ndim else None


class Plan:
    """A plan says what to do for operands of given layouts: kernel, output, and how to record for each combination of
    requires_grad.

    ``like``: the plan of another shape of which this is a copy; then operands and output lie in C order and have one shape.
    """

    __slots__ = ("big", "carrier", "dims", "entry", "avals", "kernel", "like", "op", "out", "recorded", "size", "specs")
    op: Pointwise
    avals: tuple[Any, ...]
    out: Layout
    recorded: bool
    size: int
    carrier: np.dtype[Any]
    big: bool
    kernel: PointwiseKernel
    entry: Callable[..., Any]
    dims: np.ndarray | None
    like: Plan | None

    def __init__(self, op: Pointwise, avals: tuple[Any, ...]):
        self.op, self.avals, self.like = op, avals, None
        arrays = [k for k in avals if isinstance(k, Layout)]
        shape = broadcast_shapes(*[k.shape for k in arrays])
        kind = kind_of(op, avals)
        self.out = op.result_layout(shape, avals, kind.out)
        self.recorded = kind.out.category >= 2
        self.size = self.out.size
        self.carrier = kind.out.carrier
        self.big = self.size * kind.out.itemsize >= launch.BIG
        self.kernel = kind.kernel(op, avals)
        self.entry, self.dims = self.kernel.entry(arrays, [self.out])
        self.specs: list[Any] = [None] * (1 << len(avals))

    def resized(self, avals: tuple[Any, ...], first: Layout) -> Plan:
        """Return the plan of operands that differ from these in nothing but their one shape, that of ``first``."""
        plan = Plan.__new__(Plan)
        d = self.out.dtype
        plan.op, plan.avals, plan.like, plan.dims = self.op, avals, self, None
        plan.out = first if d is first.dtype else layout_of(first.sizes, None, d)
        plan.size = size = first.size
        plan.recorded, plan.carrier, plan.kernel = self.recorded, self.carrier, self.kernel
        plan.big = size * d.itemsize >= launch.BIG
        plan.entry = self.kernel.resized(self.entry, size)
        plan.specs = [None] * len(self.specs)
        return plan

    def spec(self, mask: int) -> Spec:
        found = self.specs[mask]
        if found is None:
            like = None if self.like is None else self.like.spec(mask)
            found = self.specs[mask] = Spec(self.op, self.avals, self.out, mask, like)
        return found


class InplacePlan:
    """A pointwise kernel that writes over its first operand; ``size``: what the flat loop runs over, −1 for another."""

    __slots__ = ("dims", "entry", "kernel", "reads", "record", "size")
    record: _InplaceRecord
    kernel: PointwiseKernel
    entry: Callable[..., Any]
    dims: np.ndarray | None
    reads: bool

    def __init__(self, op: Pointwise, avals: tuple[Any, ...]):
        target = avals[0]
        kind = kind_of(op, avals)
        self.record = plan = _InplaceRecord(op, avals, kind.out)
        if op.result == "real" and target.dtype.is_complex:
            raise RuntimeError(f"In-place {op.name} is not supported for complex tensors.")
        check_result(op.name + "_", target, plan.out, op.repeats)
        self.reads = op.reads
        arrays = [k for k in (avals if op.reads else avals[1:]) if isinstance(k, Layout)]
        self.kernel = kind.over_kernel(op, avals)
        self.entry, self.dims = self.kernel.entry(arrays, [target])
        self.size = target.size if self.dims is None else -1

    def resized(self, avals: tuple[Any, ...], first: Layout) -> InplacePlan:
        """Return the plan of operands that differ from these in nothing but their one shape, that of ``first``."""
        plan = InplacePlan.__new__(InplacePlan)
        plan.record = self.record.resized(avals)
        plan.kernel, plan.reads, plan.dims, plan.size = self.kernel, self.reads, None, first.size
        plan.entry = self.kernel.resized(self.entry, first.size)
        return plan

    def write(self, target: np.ndarray, *values: Any) -> None:
        """Run the kernel on the target's memory and the other operands' arrays and numbers."""
        if self.dims is not None:
            if self.reads:
                self.entry(self.dims, target, *values)
            else:
                self.entry(self.dims, *values, target)
            return
        if len(target) != self.size:  # the flat loop runs over all that it is given: a view's memory goes on behind the view
            target = target[: self.size]
        if self.reads:
            self.entry(target, *values)
        else:
            self.entry(*values, target)


class _InplaceRecord:
    """The recording part of a plan, with the target's layout for the output; ``like`` as of `Plan`."""

    __slots__ = ("copies", "avals", "like", "op", "out", "recorded", "specs")
    like: _InplaceRecord | None

    def __init__(self, op: Pointwise, avals: tuple[Any, ...], d: dtype):
        self.op, self.avals, self.like = op, avals, None
        self.copies: dict[Any, Any] = {}
        shape = broadcast_shapes(*[k.shape for k in avals if isinstance(k, Layout)])
        target = avals[0]
        self.out = target if shape == target.shape and d is target.dtype else layout_of(shape, None, d)
        self.specs: list[Any] = [None] * (1 << len(avals))
        if shape == target.shape and can_cast(d, target.dtype):
            self.out = target
        self.recorded = self.out.dtype.category >= 2

    spec: Any = Plan.spec

    def resized(self, avals: tuple[Any, ...]) -> _InplaceRecord:
        """Return the same of operands of another shape in C order."""
        record = _InplaceRecord.__new__(_InplaceRecord)
        record.op, record.avals, record.like, record.out, record.recorded = self.op, avals, self, avals[0], self.recorded
        record.copies, record.specs = {}, [None] * len(self.specs)
        return record

    def kept(self, spec: Spec) -> Spec:
        """Return the same record with a copy of the target's old values in the target's place."""
        found = self.copies.get(spec.mask)
        if found is None:
            found = self.copies[spec.mask] = Spec(self.op, (strides.like(self.avals[0]), *self.avals[1:]), spec.out, spec.mask)
        return found


def new_plan(op: Pointwise, avals: tuple[Any, ...], of: type[Plan] | type[InplacePlan] = Plan) -> Any:
    """Return the plan of operands that were not seen; a copy of another where only their shape is new, and all lie in C order."""
    found = alike(avals)
    if found is None or launch._observing or not op.in_order:
        return of(op, avals)
    first, sort = found
    like = op.alike.get((of, sort))
    if like is not None:
        return like.resized(avals, first)
    plan = op.alike[of, sort] = of(op, avals)
    return plan
