"""Pointwise ops from one-line formulas: the declaration, the plans behind its calls, and its derivative.

    @pointwise(lambda b: b, lambda a: a)
    def mul(a, b): return a * b

The decorated function is the formula of one element; the positional lambdas are the derivatives by its operands in order
(None: not differentiable). A derivative's parameter names say what it needs and so what is saved: operands by name, ``g`` for
the incoming gradient (then it returns the whole gradient instead of a factor), any other name for the output.

A call looks up its plan by the operands' layouts (one dict lookup settles dtypes, broadcasting and the kernel), runs the
kernel, and records. What the formulas cannot show is `Options`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from itertools import product
from sys import _getframe, getrefcount
from typing import Any

import numpy as np

from .. import dtypes, launch
from ..codegen import loops
from ..codegen.loops import Input
from ..dtypes import dtype
from ..errors import shorten
from ..graph.modes import state
from ..graph.node import Node, Output, _internal, sequence, set_edges, user_frame
from ..shapes import Layout, broadcast_shapes, broadcast_strides, coalesce, dims_array, layout, sort_dims
from ..tensor import INFERENCE, Tensor, check_inplace, make, refresh, rewrite_history
from .registry import register

_new = object.__new__
_NUMBERS = (bool, int, float)
MOST_PLANS = 5_000  #: per op; a program with ever new shapes must not fill memory


class PointwiseNode(Node):
    """A recorded pointwise op; subclasses are named per op."""

    __slots__ = ("spec",)

    def run(self, g: Tensor) -> tuple:
        spec = self.spec
        plan = spec.backs.get(g._layout)
        if plan is None:
            plan = spec.plan_back(g._layout)
        if plan.simple:
            lay, carrier = plan.simple
            if plan.small:
                # a small gradient that nobody else holds is overwritten: that saves its memory and its tensor
                if getrefcount(g) == _OURS and getrefcount(g._data) == 2 and g._layout is lay and g._view is None:
                    data = g._data
                    plan.entry(data, *self.saved, data)
                    return (g,) if plan.count == 1 else plan.placed(g)
                data = np.empty(lay.size, carrier)
            else:
                data = launch.empty(lay.size, carrier)
            plan.entry(g._data, *self.saved, data)
            t = make(data, lay, [0, 0])
            return (t,) if plan.count == 1 else plan.placed(t)
        if plan.both:  # two operands of the output's shape and dtype
            if plan.entry is None:
                return (g, g)
            lay, carrier = plan.both
            a = np.empty(lay.size, carrier) if plan.small else launch.empty(lay.size, carrier)
            b = np.empty(lay.size, carrier) if plan.small else launch.empty(lay.size, carrier)
            plan.entry(g._data, *self.saved, a, b)
            return (make(a, lay, [0, 0]), make(b, lay, [0, 0]))
        return plan.run(g, self.saved)

    def run_graph(self, g: Tensor) -> tuple:
        return self.spec.run_graph(self, g)

    def saved_versions(self) -> list:
        spec = self.spec
        out = []
        total = self.stamp
        current = [v[0] for v in self.versions]
        # only the sum was kept at recording; the array that changed is the one whose count is above its share
        for k, (which, v) in enumerate(zip(spec.saved, self.versions, strict=True)):
            others = sum(current) - current[k]
            expected = max(total - others, 0) if len(current) == 1 else min(total, current[k])
            lay = spec.out if which == "out" else spec.keys[which]
            e = self if which == "out" else self.edges[which]
            producer = "" if e is None or e.is_leaf_edge else getattr(e, "node", e).name().rstrip("0123456789")
            out.append((lay.shape, _tensor_type(lay.dtype), producer, expected, v))
        if len(current) > 1 and sum(current) > total:
            k = max(range(len(current)), key=current.__getitem__)
            shape, kind, producer, _, v = out[k]
            out = [(shape, kind, producer, v[0] - (sum(current) - total), v)]
        return out

    def __getattr__(self, name: str) -> Any:
        # PyTorch's _saved_self, _saved_other, _saved_result
        if name.startswith("_saved_"):
            from ..graph.node import consumed_error

            if self.consumed is not None:
                raise consumed_error(self)
            values = self.spec.unpack(self)
            names = {"self": 0, "other": 1, "result": "out"}
            key = names.get(name[7:], name[7:])
            if key in values:
                return values[key]
        raise AttributeError(f"{self.name()!r} has no attribute {name!r}")


def _tensor_type(d: dtype) -> str:
    return {
        "float32": "FloatTensor", "float64": "DoubleTensor", "float16": "HalfTensor", "int64": "LongTensor", "int32": "IntTensor",
        "int16": "ShortTensor", "int8": "CharTensor", "uint8": "ByteTensor", "bool": "BoolTensor",
    }.get(d.name, "Tensor")  # fmt: skip


def _references() -> int:
    """What getrefcount says in ``run`` of a gradient that only the engine holds (it depends on the Python version)."""

    class Probe:
        def run(self, g):
            return getrefcount(g)

    pending = {0: object()}
    g = pending.pop(0)
    return Probe().run(g)


_OURS = _references()


class Plan:
    """What to do for operands of given layouts: kernel, output, and how to record for each combination of requires_grad."""

    __slots__ = ("arrays", "big", "carrier", "dims", "entry", "keys", "op", "out", "recorded", "size", "specs")

    def __init__(self, op: Pointwise, keys: tuple):
        self.op, self.keys = op, keys
        self.arrays = [i for i, k in enumerate(keys) if isinstance(k, Layout)]
        shape = broadcast_shapes(*[keys[i].shape for i in self.arrays])
        compute, out_dtype = op.result_dtypes(keys)
        self.out = layout(shape, None, out_dtype)
        self.recorded = out_dtype.category >= 2
        self.size = self.out.size
        self.carrier = out_dtype.carrier
        self.big = self.size * out_dtype.itemsize >= launch.BIG
        self.entry, self.dims = pointwise_entry(
            op.name, lambda *x: (op.formula(*x),), [_input(k) for k in keys], op.compute_list(compute),
            [out_dtype.name], [k for k in keys if isinstance(k, Layout)], [self.out],
        )  # fmt: skip
        self.specs: list = [None] * (1 << len(keys))

    def spec(self, mask: int) -> Spec:
        found = self.specs[mask]
        if found is None:
            found = self.specs[mask] = Spec(self.op, self.keys, self.out, mask)
        return found


def _input(key: Any) -> Input:
    if isinstance(key, Layout):
        return Input(key.dtype.name)
    return Input({float: "float64", int: "int64", bool: "bool"}[key], scalar=True)


def _argtype(key: Any) -> str:
    return key.dtype.kernel if isinstance(key, Layout) else {float: "float64", int: "int64", bool: "bool"}[key]


def pointwise_entry(
    name: str,
    formula: Callable,
    inputs: list[Input],
    compute: Any,
    outputs: list[str],
    in_layouts: Sequence[Layout],
    out_layouts: Sequence[Layout],
) -> tuple[Callable, np.ndarray | None]:
    """(entry point, dims) of a pointwise kernel for these layouts; dims is None for the flat variant."""
    body = loops.trace_body(formula, inputs, compute, outputs)
    argtypes = [f"{loops.storage(s.dtype)}[:]" if not s.scalar else s.dtype for s in inputs]
    argtypes += [f"{loops.storage(d)}[:]" for d in outputs]
    first = out_layouts[0]
    n_out = len(outputs)
    everyone = [*in_layouts, *out_layouts]
    if all(lay.contiguous and lay.shape == first.shape for lay in everyone):
        return launch.entry(loops.pointwise_flat(body), "kernel", tuple(argtypes), name, n_out), None
    strides: list[Sequence[int]] = [broadcast_strides(lay, first.shape) for lay in everyone]
    order = sort_dims(first.shape, strides)
    sizes, steps = coalesce([first.shape[d] for d in order], [[s[d] for d in order] for s in strides])
    if len(sizes) <= 1 and all(not t or t[0] == 1 for t in steps):
        return launch.entry(loops.pointwise_flat(body), "kernel", tuple(argtypes), name, n_out), None
    lead = max(0, len(sizes) - loops.RANK)
    inner_sizes = [1] * (loops.RANK - len(sizes) + lead) + sizes[lead:]
    inner_steps = [[0] * (loops.RANK - len(t) + lead) + t[lead:] for t in steps]
    kinds = "".join({1: "u", 0: "0"}.get(t[-1], "s") for t in inner_steps)
    entry = launch.entry(loops.pointwise_strided(body, kinds), "kernel", ("int64[:]", *argtypes), name, n_out)
    dims = dims_array(inner_sizes, inner_steps)
    if lead:
        scalars = [s.scalar for s in inputs] + [False] * n_out
        entry = _nested(entry, sizes[:lead], [t[:lead] for t in steps], scalars)
    return entry, dims


def _nested(entry: Callable, sizes: list[int], steps: list[list[int]], scalars: list[bool]) -> Callable:
    """More loops than the template has: the outermost run here, each step one launch on sliced arrays."""

    def run(dims: np.ndarray, *args: Any) -> None:
        for index in product(*map(range, sizes)):
            moved, k = [], 0
            for a, scalar in zip(args, scalars, strict=True):
                if not scalar:
                    a = a[sum(i * s for i, s in zip(index, steps[k], strict=True)) :]
                    k += 1
                moved.append(a)
            entry(dims, *moved)

    return run


class Spec:
    """How a call is recorded and differentiated for one set of operands that require grad."""

    __slots__ = ("__weakref__", "backs", "compute", "keys", "mask", "needs", "node", "op", "out", "rules", "save", "saved", "scalar_names")

    def __init__(self, op: Pointwise, keys: tuple, out: Layout, mask: int):
        self.op, self.keys, self.out, self.mask = op, keys, out, mask
        self.needs = [bool(mask >> i & 1) and op.rules[i] is not None for i in range(len(keys))]
        self.rules = [(i, op.rules[i]) for i, need in enumerate(self.needs) if need]
        wanted = {n for i, r in self.rules for n in r.names if n != "g"}
        self.saved: list = [i for i, p in enumerate(op.params) if p in wanted and isinstance(keys[i], Layout)]
        if any(n not in op.params for n in wanted):
            self.saved.append("out")
        self.scalar_names = [i for i, p in enumerate(op.params) if p in wanted and not isinstance(keys[i], Layout)]
        self.compute = op.result_dtypes(keys)[0]
        self.node = op.node
        # what the quick recorders of one and two operands save: bit 0 the first, bit 1 the second, bit 2 the output
        self.save = sum({0: 1, 1: 2, "out": 4}.get(w, 8) for w in self.saved)
        self.backs: dict = {}
        launch.holds_plans(self)

    # ---- the fused kernels
    def plan_back(self, g: Layout) -> BackPlan:
        plan = self.backs[g] = BackPlan(self, g)
        return plan

    def factors(self, g: Any, values: dict) -> list:
        """The gradient formulas of the needed operands, on symbols or on tensors."""
        return [rule.whole(g, values, self.op.params) for _, rule in self.rules]

    # ---- the same on tensors
    def unpack(self, node: PointwiseNode) -> dict:
        """operand index (or "out") -> tensor with its place in the graph, or the number."""
        values: dict = {}
        arrays = len(self.saved)
        for which, data, version in zip(self.saved, node.saved[:arrays], node.versions, strict=True):
            lay = self.out if which == "out" else self.keys[which]
            e = node if which == "out" else node.edges[which]
            if e is not None and e.is_leaf_edge and e._layout is lay and e._data is data:
                values[which] = e
                continue
            t = make(data, lay, version)
            if e is not None:
                t._edge, t._rg = e, True
            values[which] = t
        for i, s in zip(self.scalar_names, node.saved[arrays:], strict=True):
            values[i] = s
        return values

    def run_graph(self, node: PointwiseNode, g: Tensor) -> tuple:
        grads: list = [None] * len(self.keys)
        values = self.unpack(node)
        for (i, _), value in zip(self.rules, self.factors(g, values), strict=True):
            grads[i] = _fit(value, g, self.keys[i])
        return tuple(grads)


def _fit(value: Any, g: Tensor, lay: Layout) -> Tensor:
    """A gradient brought to an operand's shape and dtype, recorded."""
    if not isinstance(value, Tensor):
        value = g * value
    if value.shape != lay.shape:
        value = value.sum_to_size(lay.shape)
    if value.dtype is not lay.dtype:
        value = value.to(lay.dtype)
    return value


class BackPlan:
    """Kernels of a backward pass for one layout of the incoming gradient: one for all operands of full shape, one reduction
    for each that was broadcast; an operand whose derivative is 1 gets the gradient itself."""

    __slots__ = ("alias", "both", "count", "dims", "entry", "outs", "reductions", "simple", "small", "spec")

    def __init__(self, spec: Spec, g: Layout):
        op, keys = spec.op, spec.keys
        self.spec = spec
        self.count = len(keys)
        saved_layouts = [spec.out if w == "out" else keys[w] for w in spec.saved]
        inputs = [Input(g.dtype.name)] + [Input(lay.dtype.name) for lay in saved_layouts]
        inputs += [_input(keys[i]) for i in spec.scalar_names]
        per_operand = op.compute_list(spec.compute)
        compute = [spec.compute] + [spec.compute if w == "out" else per_operand[w] for w in spec.saved]
        compute += [per_operand[i] for i in spec.scalar_names]

        def formulas(picked: list[int]) -> Callable:
            def run(gx, *rest):
                values = dict(zip([*spec.saved, *spec.scalar_names], rest, strict=True))
                all_values = spec.factors(gx, values)
                return [all_values[k] for k in picked]

            return run

        full, reduced, self.alias = [], [], []
        # which operands just pass the gradient on
        probe = loops.trace_body(formulas(list(range(len(spec.rules)))), inputs, compute, [None] * len(spec.rules))
        for k, (i, _) in enumerate(spec.rules):
            value = probe.results[k][0]
            same = value.op == "input" and value.name == "x0" and keys[i].dtype is g.dtype
            if g.dtype.name == "float16" and keys[i].dtype is g.dtype:
                same = value is probe_half(probe)
            if keys[i].shape != spec.out.shape:
                reduced.append((k, i))
            elif same:
                self.alias.append(i)
            else:
                full.append((k, i))
        self.outs = [(i, keys[i].dense, keys[i].dtype.carrier) for _, i in full]
        self.entry = self.dims = None
        if full:
            self.entry, self.dims = pointwise_entry(
                op.name + "_backward", formulas([k for k, _ in full]), inputs, compute, [keys[i].dtype.name for _, i in full],
                [g, *saved_layouts], [lay for _, lay, _ in self.outs],
            )  # fmt: skip
        # the commonest: one gradient from one flat kernel
        self.simple = self.outs[0][1:] if len(full) == 1 and not reduced and not self.alias and self.dims is None else None
        # and two operands that both get the gradient itself, or both come from one flat kernel
        self.both: Any = None
        if self.count == 2 and not reduced and len(spec.rules) == 2:
            if len(self.alias) == 2:
                self.both = True
            elif len(full) == 2 and self.dims is None and self.outs[0][1:] == self.outs[1][1:]:
                self.both = self.outs[0][1:]
        self.small = bool(self.outs) and self.outs[0][1].size * self.outs[0][2].itemsize < launch.BIG
        self.reductions = []
        if reduced:
            from .reduction import reduction_entry

            for k, i in reduced:
                lead = spec.out.ndim - keys[i].ndim
                axes = [d for d in range(spec.out.ndim) if d < lead or (keys[i].shape[d - lead] == 1 and spec.out.shape[d] != 1)]
                entry, dims = reduction_entry(
                    op.name + "_backward", formulas([k]), inputs, compute, loops.SUM, None, keys[i].dtype.name,
                    [g, *saved_layouts], spec.out.shape, axes,
                )  # fmt: skip
                self.reductions.append((i, entry, dims, keys[i].dense, keys[i].dtype.carrier))

    def placed(self, t: Tensor) -> tuple:
        """The one gradient in its operand's place."""
        grads: list = [None] * self.count
        grads[self.outs[0][0]] = t
        return tuple(grads)

    def run(self, g: Tensor, saved: Any) -> tuple:
        grads: list = [None] * self.count
        if self.entry is not None:
            outs = [launch.empty(lay.size, carrier) for _, lay, carrier in self.outs]
            if self.dims is None:
                self.entry(g._data, *saved, *outs)
            else:
                self.entry(self.dims, g._data, *saved, *outs)
            for (i, lay, _), data in zip(self.outs, outs, strict=True):
                grads[i] = make(data, lay, [0, 0])
        for i in self.alias:
            grads[i] = g
        for i, entry, dims, lay, carrier in self.reductions:
            data = launch.empty(lay.size, carrier)
            entry(dims, g._data, *saved, data)
            grads[i] = make(data, lay, [0, 0])
        return tuple(grads)


def probe_half(body: Any) -> Any:
    """The symbol that a float16 gradient has after being loaded and stored again unchanged."""
    from ..codegen.maths import m

    return m.float_to_half(m.half_to_float(body.symbols[0]))


class Rule:
    """A derivative's formula and the names it asks for."""

    __slots__ = ("function", "names")

    def __init__(self, function: Callable):
        self.function = function
        self.names = tuple(inspect.signature(function).parameters)

    def whole(self, g: Any, values: dict, params: Sequence[str]) -> Any:
        """The operand's gradient: g · derivative, or what the formula makes of ``g`` itself."""
        args = [g if n == "g" else values[params.index(n) if n in params else "out"] for n in self.names]
        value = self.function(*args)
        if "g" in self.names:
            return value
        if isinstance(value, (int, float)):
            return g if value == 1 else -g if value == -1 else g * value
        return g * value


class Pointwise:
    """A declared pointwise op. ``result``: "same" (promoted dtype), "float" (integers become the default float) or "bool"."""

    def __init__(self, formula: Callable, rules: Sequence[Callable | None], result: str, conditions: Sequence[str], name: str, node: str):
        self.formula = formula
        self.name = name or formula.__name__.rstrip("_")
        self.params = tuple(inspect.signature(formula).parameters)
        padded = [*rules, *[None] * (len(self.params) - len(rules))]
        self.rules = [Rule(r) if r is not None else None for r in padded]
        self.result = result
        self.conditions = frozenset(conditions)
        self.differentiable = any(r is not None for r in self.rules)
        camel = "".join(w[:1].upper() + w[1:] for w in self.name.split("_"))
        self.node = type(node or f"{camel}Backward0", (PointwiseNode,), {"__slots__": ()})
        self.plans: dict = launch.plan_table()
        self.inplace_plans: dict = launch.plan_table()

    # ---- dtypes
    def result_dtypes(self, keys: Sequence[Any]) -> tuple[str, dtype]:
        """(compute dtype, output dtype) for operands given by layout or number type."""
        operands = []
        for p, k in zip(self.params, keys, strict=True):
            if p in self.conditions:
                continue
            if isinstance(k, Layout):
                operands.append((k.dtype, 2 if k.ndim else 1))
            else:
                operands.append((dtypes.of_scalar(k), 0))
        d = dtypes.result_of(operands)
        if self.result == "float" and d.category < 2:
            d = dtypes.get_default_dtype()
        compute = d.compute
        if self.result == "bool":
            return compute, dtypes.bool_
        # arithmetic on booleans happens in integers and is true where it is not 0
        return ("uint8" if compute == "bool" else compute), d

    def compute_list(self, compute: str) -> list[str]:
        return ["bool" if p in self.conditions else compute for p in self.params]

    # ---- calls
    def slow(self, args: tuple) -> Tensor:
        """Operands of any kind: convert what can be, make the plan, run."""
        args = tuple([self.operand(p, a) for p, a in zip(self.params, args, strict=True)])
        if not any(isinstance(a, Tensor) for a in args):
            from .create import scalar_tensor

            args = (scalar_tensor(args[0]), *args[1:])
        return self.run(args)

    def operand(self, name: str, value: Any) -> Any:
        """``value`` as a tensor or a Python number, else TypeError."""
        if isinstance(value, Tensor) or type(value) in _NUMBERS:
            return value
        if isinstance(value, (np.generic, np.ndarray)) and value.ndim == 0:
            return self.operand(name, value.item())
        if isinstance(value, _NUMBERS):  # subclasses such as IntEnum
            return next(t(value) for t in _NUMBERS if isinstance(value, t))
        raise TypeError(
            f"{self.name}(): argument '{name}' must be a Tensor or a number, not {type(value).__name__}"
            + (" (use autograd_nb.from_numpy to make a Tensor of a NumPy array)" if isinstance(value, np.ndarray) else "")
            + f", got {shorten(value)}"
        )

    def run(self, args: Sequence[Any]) -> Tensor:
        """Any number of operands, tensors and Python numbers."""
        keys = tuple([a._layout if isinstance(a, Tensor) else a.__class__ for a in args])
        plan = self.plans.get(keys)
        if plan is None:
            if len(self.plans) > MOST_PLANS:
                self.plans.clear()
            plan = self.plans[keys] = Plan(self, keys)
        out = launch.empty(plan.size, plan.carrier)
        values = [a._data if isinstance(a, Tensor) else a for a in args]
        try:
            if plan.dims is None:
                plan.entry(*values, out)
            else:
                plan.entry(plan.dims, *values, out)
        except OverflowError:
            raise too_large(self.name, args) from None
        t = make(out, plan.out, [0, 0])
        if self.differentiable and state.grad:
            self.record(plan, args, t)
        if state.inference:
            mark_inference(t)
        return t

    def record(self, plan: Plan, args: Sequence[Any], out: Tensor) -> bool:
        mask = 0
        for i, a in enumerate(args):
            if isinstance(a, Tensor):
                if a._view is not None:
                    refresh(a)
                if a._rg and self.rules[i] is not None:
                    mask |= 1 << i
        if not mask or plan.out.dtype.category < 2:
            return False
        spec = plan.specs[mask] or plan.spec(mask)
        node = _new(spec.node)
        node.spec = spec
        set_edges(
            node, tuple([(a._edge if a._edge is not None else a) if mask >> i & 1 else None for i, a in enumerate(args)])
        )  # fmt: skip
        self.save(node, args, out)
        finish_node(node)
        out._edge = node
        out._rg = True
        return True

    def save(self, node: PointwiseNode, args: Sequence[Any], out: Tensor) -> None:
        """Keep on the node the arrays that its rule needs, stamped with their versions."""
        saved, versions, stamp = [], [], 0
        spec = node.spec
        for w in spec.saved:
            a = out if w == "out" else args[w]
            saved.append(a._data)
            versions.append(a._version_)
            stamp += a._version_[0]
            if a._version_[0] < 0:
                refuse_inference()
        saved.extend([args[i] for i in spec.scalar_names])
        node.saved, node.versions, node.stamp = saved, versions, stamp

    # ---- in place
    def inplace(self, args: Sequence[Any]) -> Tensor:
        """Write the result over the first operand, and record it as that tensor's new history."""
        target = args[0]
        if not isinstance(target, Tensor):
            raise TypeError(f"{self.name}_(): argument '{self.params[0]}' must be a Tensor, not {type(target).__name__}")
        args = [self.operand(p, a) for p, a in zip(self.params, args, strict=True)]
        check_inplace(target)
        keys = tuple([a._layout if isinstance(a, Tensor) else a.__class__ for a in args])
        plan = self.inplace_plans.get(keys)
        if plan is None:
            plan = self.inplace_plans[keys] = InplacePlan(self, keys)
        for i in range(1, len(args)):
            a = args[i]
            # reading memory while it is rewritten elsewhere: read a copy, unless it is the very same view
            if isinstance(a, Tensor) and a._version_ is target._version_ and (a._data is not target._data or a._layout is not target._layout):
                args[i] = a.clone()
                return self.inplace(args)
        old = target
        recorded = False
        out = make(target._data, target._layout, target._version_)
        if self.differentiable and state.grad:
            # what the derivative saves is stamped before the write, so that an operand that the write destroys is noticed
            recorded = self.record(plan.record, args, out)
            if recorded and 0 in out._edge.spec.saved:  # the old values are needed: keep a copy of them
                node = out._edge
                k = node.spec.saved.index(0)
                copy = target.detach().clone()
                node.spec = plan.record.kept(node.spec)
                node.stamp -= target._version_[0]
                node.saved[k], node.versions[k] = copy._data, copy._version_
        values = [a._data if isinstance(a, Tensor) else a for a in args]
        if plan.dims is None:
            plan.entry(*values, old._data)
        else:
            plan.entry(plan.dims, *values, old._data)
        target._version_[0] += 1
        if recorded:
            node = out._edge
            if "out" in node.spec.saved:
                node.stamp += 1  # the output is the new contents
            rewrite_history(target, node)
        elif target._rg and state.grad:
            rewrite_history(target, None)
        return target


class InplacePlan:
    """A pointwise kernel that writes over its first operand."""

    __slots__ = ("dims", "entry", "record")

    def __init__(self, op: Pointwise, keys: tuple):
        target = keys[0]
        self.record = plan = _InplaceRecord(op, keys)
        check_result(op.name + "_", target, plan.out)
        compute, _ = op.result_dtypes(keys)
        self.entry, self.dims = pointwise_entry(
            op.name + "_", lambda *x: (op.formula(*x),), [_input(k) for k in keys], op.compute_list(compute),
            [target.dtype.name], [k for k in keys if isinstance(k, Layout)], [target],
        )  # fmt: skip


class _InplaceRecord:
    """The recording part of a plan, with the target's layout for the output."""

    __slots__ = ("copies", "keys", "op", "out", "specs")

    def __init__(self, op: Pointwise, keys: tuple):
        self.op, self.keys = op, keys
        self.copies: dict = {}
        shape = broadcast_shapes(*[k.shape for k in keys if isinstance(k, Layout)])
        _, d = op.result_dtypes(keys)
        target = keys[0]
        self.out = target if shape == target.shape and d is target.dtype else layout(shape, None, d)
        self.specs: list = [None] * (1 << len(keys))
        if shape == target.shape and _can_cast(d, target.dtype):
            self.out = target

    spec = Plan.spec

    def kept(self, spec: Spec) -> Spec:
        """The same record with a dense copy of the target's old values in the target's place."""
        found = self.copies.get(spec.mask)
        if found is None:
            found = self.copies[spec.mask] = Spec(self.op, (self.keys[0].dense, *self.keys[1:]), spec.out, spec.mask)
        return found


def _can_cast(source: dtype, target: dtype) -> bool:
    return source.category <= target.category


def check_result(name: str, target: Layout, result: Layout) -> None:
    """Refuse an in-place result that does not fit its target's shape or dtype, or a target that overlaps itself."""
    from ..shapes import overlaps_itself

    if result.shape != target.shape:
        raise RuntimeError(
            f"{name}(): output with shape {list(target.shape)} doesn't match the broadcast shape {list(result.shape)}"
        )
    if not _can_cast(result.dtype, target.dtype):
        raise RuntimeError(
            f"{name}(): result type {result.dtype.name} can't be cast to the desired output type {target.dtype.name}"
        )
    if overlaps_itself(target):
        raise RuntimeError(
            "unsupported operation: more than one element of the written-to tensor refers to a single memory location. "
            "Please clone() the tensor before performing the operation."
        )


def mark_inference(t: Tensor) -> None:
    """Make a new tensor an inference tensor."""
    if t._version_[0] >= 0:
        t._version_ = [INFERENCE, 0]


def refuse_inference() -> None:
    raise RuntimeError(
        "Inference tensors cannot be saved for backward. Please do not use Tensors created in inference mode in computation "
        "tracked by autograd. To work around this, you can make a clone to get a normal tensor and use it in autograd, or use "
        "`torch.no_grad()` instead of `torch.inference_mode()`."
    )


def finish_node(node: Node) -> None:
    """Age, place and empty state of a node that is being recorded."""
    node.consumed = None
    node.hooks = None
    node.seq = sequence()
    f = _getframe(2)
    if _internal.get(f.f_code.co_filename, True):
        f = user_frame(f)
    node.code = f.f_code
    node.lasti = f.f_lasti


# --------------------------------------------------------------------------------------------- the hot calls


def _unary(op: Pointwise) -> Callable:
    plans = op.plans
    recordable = op.rules[0] is not None

    def call(input, *, out=None):
        if out is not None:
            return store(out, call(input), op.name)
        try:
            plan = plans[input._layout]
        except (KeyError, AttributeError):
            t = op.slow((input,))
            if isinstance(input, Tensor) and (input._layout,) in plans:
                plans[input._layout] = plans[(input._layout,)]  # one operand: found by its bare layout next time
            return t
        data = launch.empty(plan.size, plan.carrier) if plan.big else np.empty(plan.size, plan.carrier)
        if plan.dims is None:
            plan.entry(input._data, data)
        else:
            plan.entry(plan.dims, input._data, data)
        t = make(data, plan.out, [0, 0])
        if not state.grad:
            if state.inference:
                mark_inference(t)
            return t
        if recordable:
            if input._view is not None:
                refresh(input)
            if input._rg and plan.recorded:
                spec = plan.specs[1] or plan.spec(1)
                node = spec.node()
                node.spec = spec
                e = input._edge
                if e is None:
                    node.edges = (input,)
                    node.plain = 1
                else:
                    node.edges = (e,)
                    node.plain = 0 if e.__class__ is Output else 2
                save = spec.save
                if save == 4:
                    node.saved = (data,)
                    node.versions = (t._version_,)
                    node.stamp = 0
                elif save == 1:
                    v = input._version_
                    if v[0] < 0:
                        refuse_inference()
                    node.saved = (input._data,)
                    node.versions = (v,)
                    node.stamp = v[0]
                elif save == 5:
                    v = input._version_
                    if v[0] < 0:
                        refuse_inference()
                    node.saved = (input._data, data)
                    node.versions = (v, t._version_)
                    node.stamp = v[0]
                else:
                    node.saved = node.versions = ()
                    node.stamp = 0
                node.consumed = node.hooks = None
                node.seq = sequence()
                f = _getframe(1)
                if internal.get(f.f_code.co_filename, True):
                    f = user_frame(f)
                node.code = f.f_code
                node.lasti = f.f_lasti
                t._edge = node
                t._rg = True
        return t

    internal = _internal
    call.__name__ = call.__qualname__ = op.name
    return call


def _binary(op: Pointwise) -> Callable:
    plans = op.plans
    recordable = op.differentiable

    def call(input, other, *, out=None):
        if out is not None:
            return store(out, call(input, other), op.name)
        kind = other.__class__
        number = kind is float or kind is int
        try:
            if number:
                plan = plans[input._layout, kind]
                b = other
            else:
                plan = plans[input._layout, other._layout]
                b = other._data
        except (KeyError, AttributeError):
            return op.slow((input, other))
        data = launch.empty(plan.size, plan.carrier) if plan.big else np.empty(plan.size, plan.carrier)
        try:
            if plan.dims is None:
                plan.entry(input._data, b, data)
            else:
                plan.entry(plan.dims, input._data, b, data)
        except OverflowError:
            raise too_large(op.name, other) from None
        t = make(data, plan.out, [0, 0])
        if not state.grad:
            if state.inference:
                mark_inference(t)
            return t
        if recordable and plan.recorded:
            if input._view is not None:
                refresh(input)
            if number:
                mask = 1 if input._rg else 0
            else:
                if other._view is not None:
                    refresh(other)
                mask = (1 if input._rg else 0) | (2 if other._rg else 0)
            mask &= rules_mask
            if mask:
                spec = plan.specs[mask] or plan.spec(mask)
                node = spec.node()
                node.spec = spec
                plain = 2
                if mask & 1:
                    e = input._edge
                    if e is None:
                        e = input
                        plain = 1
                    elif e.__class__ is Output:
                        plain = 0
                else:
                    e = None
                if mask & 2:
                    e2 = other._edge
                    if e2 is None:
                        e2 = other
                        if plain:
                            plain = 1
                    elif e2.__class__ is Output:
                        plain = 0
                else:
                    e2 = None
                node.edges = (e, e2)
                node.plain = plain
                save = spec.save
                if save == 3:
                    v, w = input._version_, other._version_
                    if v[0] < 0 or w[0] < 0:
                        refuse_inference()
                    node.saved = (input._data, b)
                    node.versions = (v, w)
                    node.stamp = v[0] + w[0]
                elif save == 1:
                    v = input._version_
                    if v[0] < 0:
                        refuse_inference()
                    node.saved = (input._data, b) if spec.scalar_names else (input._data,)
                    node.versions = (v,)
                    node.stamp = v[0]
                elif save == 2:
                    v = other._version_
                    if v[0] < 0:
                        refuse_inference()
                    node.saved = (b,)
                    node.versions = (v,)
                    node.stamp = v[0]
                elif save == 0:
                    node.saved = (b,) if spec.scalar_names else ()
                    node.versions = ()
                    node.stamp = 0
                else:
                    op.save(node, (input, other), t)
                node.consumed = node.hooks = None
                node.seq = sequence()
                f = _getframe(1)
                if internal.get(f.f_code.co_filename, True):
                    f = user_frame(f)
                node.code = f.f_code
                node.lasti = f.f_lasti
                t._edge = node
                t._rg = True
        return t

    internal = _internal
    rules_mask = sum(1 << i for i, r in enumerate(op.rules) if r is not None)
    call.__name__ = call.__qualname__ = op.name
    return call


def too_large(name: str, value: Any) -> RuntimeError:
    return RuntimeError(f"{name}(): value cannot be converted to type int64_t without overflow: {shorten(value)}")


def _many(op: Pointwise) -> Callable:
    def call(*args, out=None):
        if len(args) != len(op.params):
            raise TypeError(f"{op.name}() takes {len(op.params)} arguments ({', '.join(op.params)}) but got {len(args)}")
        t = op.slow(args)
        return t if out is None else store(out, t, op.name)

    call.__name__ = call.__qualname__ = op.name
    return call


def pointwise(
    *rules: Callable | None,
    result: str = "same",
    conditions: Sequence[str] = (),
    name: str = "",
    node: str = "",
    aliases: tuple[str, ...] = (),
    namespaces: tuple[str, ...] = ("torch",),
    method: bool = True,
    inplace: bool = True,
    public: bool = True,
    **info: Any,
) -> Callable[[Callable], Callable]:
    """Declare a pointwise op from the formula of one element and those of its derivatives (see the module's text).

    result: "same", "float" or "bool" (what integers become). conditions: operands read as bool. aliases: other names.
    Returns the op's function; ``.op`` is its `Pointwise`. With ``inplace``, ``<name>_`` is made too.
    """

    def declare(formula: Callable) -> Callable:
        op = Pointwise(formula, rules, result, conditions, name, node)
        n = len(op.params)
        call = _unary(op) if n == 1 else _binary(op) if n == 2 else _many(op)
        call.op = op  # type: ignore[attr-defined]
        call.__doc__ = formula.__doc__
        call.__module__ = formula.__module__
        if public:
            register(op.name, call, "pointwise", method=method, namespaces=namespaces, aliases=aliases,
                     differentiable=op.differentiable, rule=op, **info)  # fmt: skip
        if inplace and result != "bool":
            inner = _inplace(op)
            call.inplace = inner  # type: ignore[attr-defined]
            if public:
                register(op.name + "_", inner, "inplace", method=method, aliases=tuple(a + "_" for a in aliases), rule=op)
        return call

    return declare


def _inplace(op: Pointwise) -> Callable:
    def call(input, *args):
        if len(args) + 1 != len(op.params):
            raise TypeError(f"{op.name}_() takes {len(op.params)} arguments ({', '.join(op.params)}) but got {len(args) + 1}")
        return op.inplace([input, *args])

    call.__name__ = call.__qualname__ = op.name + "_"
    call.__doc__ = f"In-place version of `{op.name}`."
    return call


def store(out: Tensor, value: Tensor, name: str) -> Tensor:
    """Put a result into ``out=``: resized if its shape differs, RuntimeError if its dtype cannot hold it or grad is needed."""
    if not isinstance(out, Tensor):
        raise TypeError(f"{name}(): argument 'out' must be a Tensor, not {type(out).__name__}")
    if value._rg or (out.requires_grad and state.grad):
        raise RuntimeError(
            f"{name}(): functions with out=... arguments don't support automatic differentiation, but one of the arguments "
            "requires grad. Call it without out=, or inside torch.no_grad()."
        )
    if not _can_cast(value.dtype, out.dtype):
        raise RuntimeError(f"{name}(): result type {value.dtype.name} can't be cast to the desired output type {out.dtype.name}")
    if out.shape != value.shape:
        fresh = value if value.dtype is out.dtype else value.to(out.dtype)
        out._data, out._layout = fresh._data, fresh._layout
        out._version_[0] += 1
        return out
    return out.copy_(value)
