"""Pointwise ops from one-line formulas: the declaration, the plans behind its calls, and its derivative.

    @pointwise(lambda b: b, lambda a: a)
    def mul(a, b): return a * b

The decorated function is the formula of one element; the positional lambdas are the derivatives by its operands in order
(None: not differentiable). A derivative's parameter names say what it needs and so what is saved: operands by name, ``g`` for
the incoming gradient (then it returns the whole gradient instead of a factor), any other name for the output.

A call looks up its plan by the operands' layouts (one dict lookup settles dtypes, broadcasting and the kernel), runs the
kernel, and records (`autograd_nb.ops.core.plans`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from ... import dtypes, launch, strides
from ...dtypes import dtype
from ...errors import shorten
from ...graph.modes import state
from ...graph.node import finish
from ...graph.versions import same_storage
from ...overriding import overridable, whole
from ...shapes import Layout, layout_of
from ...tensor import Tensor, make
from .calls import binary_call, call_of_many, inplace_call, inplace_recorder, into_call, unary_call
from .entries import as_half
from .history import check_inplace, check_recorded, rewrite_history
from .memo import Memo
from .numbers import scalar_tensor
from .plans import InplacePlan, Plan, new_plan
from .pointwise_backward import PointwiseNode, Rule, UnaryNode
from .recording import (
    BAREBONE_POINTWISE,
    CHALF_POINTWISE,
    fitting,
    gather,
    mark_inference,
    refuse_limited,
    refuse_overlap,
    store,
)
from .registry import OPS, node_name, parameters_of, register
from .repeated import repeated

__all__ = ["Pointwise", "pointwise"]

_NUMBERS = (bool, int, float, complex)
_PLAIN = frozenset((Tensor, *_NUMBERS))  #: what is an operand as it stands
EVERY: list[Pointwise] = []  #: all that were declared


class Pointwise:
    """A pointwise op, as it was declared: its formula, its derivatives and its kinds of results.

    - ``result``: "same" (promoted dtype), "float" (integers become the default float), "number" (booleans become int64), "bool",
      "real" (complex numbers become real) or "complex" (real ones become complex).
    - ``conditions``: names of the operands that are read as bool.
    - ``check``: called with the operands' avals when a plan is made, to refuse dtypes.
    - ``scaled``: the op of three operands that serves ``alpha=``.
    - ``holomorphic``: whether the rules are derivatives in the complex sense; where not, they give the gradient of complex operands as it
      stands, with ``g``.
    - ``numbers``: which of two operands a caller may give as a number, see `only_tensors`.
    - ``reads``: whether the formula looks at its first operand, or only overwrites it in place.
    - ``repeats``: whether doing it twice is doing it once, so that it may write into expanded tensors.
    - ``c_order``: whether the result lies in C order however the operands lie.
    - ``exact``: operands with which it is computed as they are where they are numbers or 0-d, though the result is of half precision; others
      are rounded to that first, see `formula_of`. Nothing said: all of three and more, none of two.

    An operand's aval (JAX's abstract value) is all that a plan depends on: the layout of a tensor, the type of a number.
    """

    quick: Callable[..., Any] | None = None  #: what gives the result for one or two tensors as `run` does, the quick way
    into: Callable[..., Any] | None = None  #: the function for ``out=``, once somebody has called it
    in_order = True  #: whether operands in C order give a result in C order

    name: str
    params: tuple[str, ...]
    given: tuple[Callable[..., Any] | None, ...]
    rules: list[Rule | None]
    result: str
    conditions: frozenset[str]
    check: Callable[..., Any] | None
    scaled: Callable[..., Any] | None
    numbers: str
    holomorphic: bool
    reads: bool
    repeats: bool
    c_order: bool
    exact: frozenset[str] | None
    differentiable: bool
    node_name: str
    memo: Memo
    inplace_memo: Memo

    def __init__(
        self, formula: Callable[..., Any], rules: Sequence[Callable[..., Any] | None], name: str = "", node: str = "", *, result: str = "same",
        conditions: Sequence[str] = (), check: Callable[..., Any] | None = None, scaled: Callable[..., Any] | None = None,
        holomorphic: bool = True, numbers: str = "both", reads: bool = True, repeats: bool = False, c_order: bool = False,
        exact: Iterable[str] | None = None,
    ):  # fmt: skip
        self.formula = formula
        self.name = name or formula.__name__.rstrip("_")
        self.params = parameters_of(formula)
        self.given = tuple(rules)
        padded = [*rules, *[None] * (len(self.params) - len(rules))]
        self.rules = [Rule(r) if r is not None else None for r in padded]
        self.result, self.conditions = result, frozenset(conditions)
        self.check, self.scaled, self.numbers = check, scaled, numbers
        self.holomorphic, self.reads, self.repeats, self.c_order = holomorphic, reads, repeats, c_order
        self.exact = None if exact is None and len(self.params) > 2 else frozenset(exact or ())
        self.differentiable = any(r is not None for r in self.rules)
        self.node_name = node or node_name(self.name)
        self.memo, self.inplace_memo = Memo(), Memo()
        EVERY.append(self)
        self.alike: dict[Any, Any] = {}  # plans that are copied for other shapes, see `plans.new_plan`
        self.kinds: dict[Any, Any] = {}  # what does not depend on sizes, see `plans.Kind` and `backward_plans.BackwardKind`

    @cached_property
    def node(self) -> type[PointwiseNode]:
        """Return the class of the op's nodes."""
        return type(self.node_name, (UnaryNode if len(self.params) == 1 else PointwiseNode,), {"__slots__": ()})

    def write_into(self, call: Callable[..., Any]) -> Callable[..., Any]:
        """Return the function of operands and ``out=``, which is repeated as those are that go through several ops; ``call``: without ``out=``."""
        unseen = len(self.params) <= 2 and not self.differentiable

        def into(*args: Any, out: Any) -> Tensor:
            return store(out, call(*args), self.name, (), args, unseen)

        found = repeated(into)
        found.public = OPS[self.name].call if self.name in OPS else call  # type: ignore[attr-defined]
        self.into = into_call(self, found) if len(self.params) <= 2 else found
        return self.into

    # ---- dtypes
    def common_dtype(self, avals: Sequence[Any]) -> dtype:
        """Return what operands given by layout or number type are promoted to."""
        operands = []
        for p, k in zip(self.params, avals, strict=True):
            if p in self.conditions:
                continue
            if isinstance(k, Layout):
                operands.append((k.dtype, 2 if k.ndim else 1))
            else:
                operands.append((dtypes.of_scalar(k), 0))
        return dtypes.result_of(operands)

    def rounded(self, avals: Sequence[Any]) -> dict[int, str]:
        """Return the operands that are rounded to half precision before anything is computed with them, and the name of its format."""
        if self.exact is None or not any(isinstance(k, Layout) and k.dtype.is_half for k in avals):
            return {}
        d, found = self.common_dtype(avals), {}
        for i, (p, k) in enumerate(zip(self.params, avals, strict=True)):
            scalar = not (isinstance(k, Layout) and k.ndim)
            if d.is_half and getattr(k, "dtype", None) is not d and p not in self.conditions and not (scalar and p in self.exact):
                found[i] = d.name
        return found

    def formula_of(self, avals: Sequence[Any]) -> Callable[..., Any]:
        """Return the formula for such operands: those of another dtype are rounded to half precision where that is what they are promoted to.

        So does PyTorch, which casts operands before it computes: ``x == 0.1`` is true of a float16 that is nearest to 0.1.
        """
        halves = self.rounded(avals)
        if not halves:
            return self.formula

        def formula(*operands: Any) -> Any:
            return self.formula(*[as_half(x, halves[i]) if i in halves else x for i, x in enumerate(operands)])

        return formula

    def result_dtypes(self, avals: Sequence[Any]) -> tuple[str, dtype]:
        """Return (compute dtype, output dtype) for operands given by layout or number type."""
        if self.check is not None:
            self.check(avals)
        d = self.common_dtype(avals)
        if self.result == "float" and d.category < 2:
            d = dtypes.get_default_dtype()
        elif self.result == "number" and d is dtypes.bool_:
            d = dtypes.int64
        if d.is_limited:
            refuse_limited(self.name, d, BAREBONE_POINTWISE, CHALF_POINTWISE)
        compute = d.compute
        if self.result == "bool":
            return compute, dtypes.bool_
        if self.result == "real":
            d = d.to_real()
        elif self.result == "complex":
            d = d.to_complex()
        # arithmetic on booleans happens in integers and is true where it is not 0
        return ("uint8" if compute == "bool" else compute), d

    def result_layout(self, shape: Sequence[int], avals: Sequence[Any], d: dtype) -> Layout:
        """Return the output's layout for operands given by layout or number type."""
        if self.c_order:
            return layout_of(shape, None, d)
        operands = []
        mixed, plain = False, True
        for k in avals:
            if isinstance(k, Layout):
                mixed = mixed or (bool(operands) and k.dtype is not operands[0].dtype)
                plain = plain and k.usual
                operands.append(k)
        if plain:
            return layout_of(shape, None, d)
        if mixed:  # those of another dtype are cast first, which leaves no gaps
            common = self.common_dtype(avals)
            operands = [k if k.dtype is common else strides.like(k) for k in operands]
        return strides.combined(shape, operands, d, len(operands) == 1 and len(avals) == 2)

    def compute_list(self, compute: str) -> list[str]:
        return ["bool" if p in self.conditions else compute for p in self.params]

    # ---- calls
    def slow(self, args: tuple[Any, ...]) -> Tensor:
        """Return the result for operands of any kind: convert what can be, make the plan, run."""
        if not _PLAIN.issuperset(map(type, args)):
            args = tuple([self.operand(p, a) for p, a in zip(self.params, args, strict=True)])
        if Tensor not in map(type, args) and not any(isinstance(a, Tensor) for a in args):
            args = (scalar_tensor(args[0]), *args[1:])
        return self.run(args)

    def operand(self, name: str, value: Any) -> Any:
        """Return ``value`` as a tensor or a Python number, else TypeError."""
        if isinstance(value, Tensor) or type(value) in _NUMBERS:
            return value
        if isinstance(value, (np.generic, np.ndarray)) and value.ndim == 0:
            return self.operand(name, value.item())
        if isinstance(value, _NUMBERS):  # subclasses such as IntEnum
            return next(t(value) for t in _NUMBERS if isinstance(value, t))  # type: ignore[arg-type]
        raise TypeError(
            f"{self.name}(): argument '{name}' must be a Tensor or a number, not {type(value).__name__}"
            + (" (use autograd_nb.from_numpy to make a Tensor of a NumPy array)" if isinstance(value, np.ndarray) else "")
            + f", got {shorten(value)}"
        )

    def plan(self, avals: tuple[Any, ...]) -> Plan:
        """Return the plan for several operands given by layout or number type."""
        return self.memo.plans.get(avals) or self.memo.keep(avals, new_plan(self, avals))  # type: ignore[no-any-return]

    def inplace_plan(self, avals: tuple[Any, ...]) -> InplacePlan:
        """Return the plan for writing over the first of several such operands."""
        return self.inplace_memo.plans.get(avals) or self.inplace_memo.keep(avals, new_plan(self, avals, InplacePlan))  # type: ignore[no-any-return]

    @overridable
    def run(self, args: Sequence[Any]) -> Tensor:
        """Return the result for any number of operands, tensors and Python numbers."""
        avals = tuple([a._layout if isinstance(a, Tensor) else a.__class__ for a in args])
        key = avals if len(avals) > 1 else avals[0]  # one operand: found by its bare layout
        plan = self.memo.plans.get(key) or self.memo.keep(key, new_plan(self, avals))
        out = launch.empty(plan.size, plan.carrier)
        values = [a._data if isinstance(a, Tensor) else a for a in args]
        try:
            if plan.dims is None:
                plan.entry(*values, out)
            else:
                plan.entry(plan.dims, *values, out)
        except OverflowError:
            return self.run(fitting(self.name, args))
        t = make(out, plan.out, [0, 0])
        if self.differentiable and state.grad:
            self.record(plan, args, t)
        if state.inference:
            mark_inference(t)
        return t

    @overridable
    def record(self, plan: Any, args: Sequence[Any], out: Tensor) -> bool:
        mask, edge_kind, edges = gather(args, self.rules)
        if not mask or plan.out.dtype.category < 2:
            return False
        spec = plan.specs[mask] or plan.spec(mask)
        node = spec.node()
        node.spec = spec
        node.edges, node.edge_kind = edges, edge_kind
        self.save(node, args, out)
        finish(node)
        out._edge = node
        out._rg = True
        return True

    def save(self, node: PointwiseNode, args: Sequence[Any], out: Tensor) -> None:
        """Keep on the node the arrays that its rule needs, stamped with their versions."""
        kind = node.spec.kind
        (kind.saver or kind.write_saver())(node, args, out)

    # ---- in place
    @cached_property
    def write_node(self) -> Callable[..., Any]:
        """Return what makes the node of a write over the first operand."""
        return inplace_recorder(self)

    @overridable
    @whole
    def inplace(self, args: Sequence[Any]) -> Tensor:
        """Write the result over the first operand, and record it as that tensor's new history."""
        target = args[0]
        if not isinstance(target, Tensor):
            raise TypeError(f"{self.name}_(): argument '{self.params[0]}' must be a Tensor, not {type(target).__name__}")
        args = list(args) if _PLAIN.issuperset(map(type, args)) else [self.operand(p, a) for p, a in zip(self.params, args, strict=True)]
        check_inplace(target)
        avals = tuple([a._layout if isinstance(a, Tensor) else a.__class__ for a in args])
        key = avals if len(avals) > 1 else avals[0]
        plan = self.inplace_memo.plans.get(key) or self.inplace_memo.keep(key, new_plan(self, avals, InplacePlan))
        for i in range(1, len(args)):
            a = args[i]
            # reading memory while it is rewritten elsewhere: read a copy, unless it is the very same view
            if (
                isinstance(a, Tensor)
                and same_storage(a._version_, target._version_)
                and (a._data is not target._data or a._layout is not target._layout)
            ):
                if not (self.repeats or self.params[i] == "value"):  # (a single value is read before)
                    refuse_overlap(target, (a,))
                args[i] = copy = a.clone()
                self.inplace(args)
                if a._version_ is target._version_:  # a derivative that saved the copy is refused, as it is in PyTorch
                    copy._version_[0] += 1
                return target
        # what the derivative saves is stamped before the write, so that an operand that the write destroys is noticed
        node = self.record_in_place(plan, args) if state.grad else None
        if node is not None and target._view is not None:
            check_recorded(target)
        try:
            plan.write(*[a._data if isinstance(a, Tensor) else a for a in args])
        except OverflowError:
            return self.inplace(fitting(self.name + "_", args))
        target._version_[0] += 1
        if node is not None or (target._rg and state.grad):
            rewrite_history(target, node)
        return target

    @overridable
    def record_in_place(self, plan: InplacePlan, args: Sequence[Any]) -> PointwiseNode | None:
        """Return the node of a write over the first operand that is about to happen; None where the new contents have no history."""
        return self.write_node(plan, args)  # type: ignore[no-any-return]


def pointwise(
    *rules: Callable[..., Any] | None, result: str = "same", conditions: Sequence[str] = (), name: str = "", node: str = "",
    aliases: tuple[str, ...] = (), namespaces: tuple[str, ...] = ("torch",), method: bool = True, inplace: bool = True, methods: tuple[str, ...] = (),
    public: bool = True, check: Callable[..., Any] | None = None, scaled: Callable[..., Any] | None = None,
    holomorphic: bool = True, numbers: str = "both", repeats: bool = False, c_order: bool = False, exact: Iterable[str] | None = None,
    **info: Any,
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:  # fmt: skip
    """Declare a pointwise op from the formula of one element and those of its derivatives (see the module's text).

    result, conditions, check, scaled, holomorphic, numbers, repeats, c_order, exact: see `Pointwise`. aliases: other names. methods: names, those
    in place among them, that are methods only.
    Returns the op's function; ``.op`` is its `Pointwise`. With ``inplace``, ``<name>_`` is made too.
    """

    def declare(formula: Callable[..., Any]) -> Callable[..., Any]:
        op = Pointwise(
            formula, rules, name, node, result=result, conditions=conditions, check=check, scaled=scaled, holomorphic=holomorphic,
            numbers=numbers, repeats=repeats, c_order=c_order, exact=exact,
        )  # fmt: skip
        n = len(op.params)
        call = unary_call(op) if n == 1 else binary_call(op) if n == 2 else call_of_many(op)
        call.op = op  # type: ignore[attr-defined]
        call.__doc__ = formula.__doc__
        call.__module__ = formula.__module__
        if public:
            register(op.name, call, "pointwise", method=method, namespaces=namespaces, aliases=aliases, methods=methods,
                     differentiable=op.differentiable, rule=op, **info)  # fmt: skip
        if inplace and result != "bool":
            inner = inplace_call(op)
            call.inplace = inner  # type: ignore[attr-defined]
            if public:
                places = ("torch",) if "torch" in namespaces else ()
                register(
                    op.name + "_",
                    inner,
                    "inplace",
                    method=method,
                    namespaces=places,
                    aliases=tuple(a + "_" for a in aliases),
                    methods=methods,
                    rule=op,
                )
        return call

    return declare
