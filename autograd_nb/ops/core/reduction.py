"""Reductions: folds over dims, from the formula of one element, how two values combine, and the derivative.

    @reduction(SUM, finish=lambda total: m.sqrt(total), grad=lambda g, x, y: g * x / y)
    def length(x): return x * x

declares the function ``length(input, dim=None, keepdim=False, *, dtype=None, out=None)``, the Tensor method of that name, and all that the
library asks about an op: kernels for whole tensors and along any dims, result dtype, half precision, the derivative (and so those of higher
order), `vmap`, forward mode, `compile`, NumPy's names of the arguments, docs and generated tests.

- The decorated function is the formula of one element (see `pointwise`). A parameter behind the first that has a default is an option
  of the public function.
- What is folded is combined by one of the folds of `codegen.loops` (`SUM`, `PROD`, `MAX`, `MIN`, `ANY`, `ALL`: the sums are blocked and
  vectorised), or by any formula: ``@reduction(lambda a, x: …, init=…)``, where ``init`` changes nothing that it is combined with.
- ``finish`` makes the result of the total. It and the formula may ask by name for numbers: ``count`` (elements in one result), an option.
- ``grad`` is the derivative rule: of ``g`` (the incoming gradient), ``x``, ``y`` (the result), ``count``, ``dims`` and options, as its
  parameters name them; what it names of x and y is saved. g and y come with their dims kept, so that they broadcast with x. It is written
  with ops, and what is smaller than x is spread over it. A number is the derivative where that is constant.
- Without a fold the decorated function is the whole computation, ``f(x, dims, keepdim, …options)``, which launches kernels of its own.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ... import dtypes, launch
from ...codegen.formula.namespace import m
from ...codegen.formula.symbols import FLOATS
from ...codegen.templates.loops import ALL, ANY, MAX, MIN, Fold
from ...dtypes import dtype
from ...graph.modes import state
from ...graph.node import tensor_lines, written
from ...overriding import overridable
from ...shapes import Layout, broadcast_shapes, layout_of, wrap_dim, wrap_dims
from ...tensor import Tensor, make
from .call_path import known, result_lines, shortcut, unsaved_lines
from .entries import operand, signature
from .memo import Memo
from .recording import computed_in, not_for_barebone, store
from .reduction_kernel import Folding, FoldKernel, NestedReduction, folding
from .registry import parameters_of, register
from .structured import Recording, Structured, tensor_argument

__all__ = ["Reduction", "ReductionOp", "all_dims", "count_of", "expand_reduced", "reduced_shape", "reduction"]


class Reduction:
    """A fold over a formula of one or several operands that broadcast: tensors, and numbers behind them.

    ``feed``: from an element of each operand to what is folded. ``finish``: from the total and the numbers to the result. Extremes of
    floats are found by integers of the same order. ``count``: the formula gives so many values, which are folded side by side, and the
    result is a tuple.
    """

    name: str
    fold: Fold
    feed: Callable[..., Any]
    finish: Callable[..., Any] | None
    count: int
    memo: Memo

    def __init__(self, name: str, fold: Fold, feed: Callable[..., Any] | None = None, finish: Callable[..., Any] | None = None, count: int = 1):
        self.name, self.fold, self.finish, self.count = name, fold, finish, count
        self.feed = feed or (lambda x: x)
        self.memo = Memo()
        self.kernels: dict[tuple[Any, ...], FoldKernel] = {}

    @overridable
    def __call__(
        self, args: Sequence[Any], dims: tuple[int, ...], keepdim: bool, out: dtype, compute: str | Sequence[str]
    ) -> Any:
        """Fold over ``dims`` of the operands' broadcast shape; ``args`` are tensors and Python numbers, in feed's order."""
        avals = tuple([a._layout if isinstance(a, Tensor) else a.__class__ for a in args])
        try:
            entry, array, layout = self.plan(avals, dims, keepdim, out, compute)
        except NestedReduction:
            shape = broadcast_shapes(*[k.shape for k in avals if isinstance(k, Layout)])
            order = [*[d for d in range(len(shape)) if d not in dims], *dims]
            flat = [a.expand(shape).permute(order).contiguous() if isinstance(a, Tensor) else a for a in args]
            y = self(flat, tuple(range(len(shape) - len(dims), len(shape))), False, out, compute)
            kept = reduced_shape(shape, dims, keepdim)
            return y.reshape(kept) if self.count == 1 else tuple([t.reshape(kept) for t in y])
        found = [launch.empty(layout.size, layout.dtype.carrier) for _ in range(self.count)]
        entry(array, *[a._data if isinstance(a, Tensor) else a for a in args], *found)
        return make(found[0], layout, [0, 0]) if self.count == 1 else tuple([make(data, layout, [0, 0]) for data in found])

    def plan(self, avals: tuple[Any, ...], dims: tuple[int, ...], keepdim: bool, out: dtype, compute: str | Sequence[str]) -> tuple[Any, ...]:
        """Return (entry point, its dims, layout of the result) for operands given by layout or number type."""
        key = (avals, dims, keepdim, out, compute)
        return self.memo.plans.get(key) or self.memo.keep(key, self.new_plan(*key))  # type: ignore[no-any-return]

    def new_plan(self, avals: tuple[Any, ...], dims: tuple[int, ...], keepdim: bool, out: dtype, compute: str | Sequence[str]) -> tuple[Any, ...]:
        """Return `plan`, made anew. `NestedReduction` where the dims do not merge into the kernel's loops."""
        layouts = [k for k in avals if k.__class__ is Layout] if len(avals) > 1 else avals
        shape = layouts[0].sizes if len(layouts) == 1 else broadcast_shapes(*[k.shape for k in layouts])

        def of() -> Folding:
            fold, feed, finish = self._of(compute if isinstance(compute, str) else compute[0])
            return folding(
                feed if self.count > 1 else lambda *x: (feed(*x),), [operand(k) for k in avals], compute, fold, finish, out.name,
                layouts, shape, dims, self.count,
            )  # fmt: skip

        of_kind = (signature(avals), out, compute)
        kernel = self.kernels.get(of_kind)
        if kernel is None:
            kernel = self.kernels[of_kind] = FoldKernel(self.name, of())
        whole = layout_of(reduced_shape(shape, dims, True), None, out)
        entry, array = kernel.at(shape, dims, (*layouts, *[whole] * self.count), of)
        return entry, array, whole if keepdim else layout_of(reduced_shape(shape, dims, False), None, out)

    def _of(self, compute: str) -> tuple[Fold, Callable[..., Any], Callable[..., Any] | None]:
        """Return the fold, feed and finish for values of this dtype."""
        fold, feed, finish = self.fold, self.feed, self.finish
        if fold not in (MAX, MIN):
            return fold, feed, finish
        if compute == "bool":
            return ANY if fold is MAX else ALL, feed, finish
        if compute not in FLOATS:
            return fold, feed, finish
        key = m.order_key if fold is MAX else m.order_key_min

        def found(total: Any, *numbers: Any) -> Any:
            value = m.from_order_key(total)
            return value if finish is None else finish(value, *numbers)

        return fold, lambda *xs: key(feed(*xs)), found


def reduced_shape(shape: Sequence[int], dims: Sequence[int], keepdim: bool) -> list[int]:
    if keepdim:
        return [1 if d in dims else n for d, n in enumerate(shape)]
    return [n for d, n in enumerate(shape) if d not in dims]


def _expand_recorded(g: Tensor, x_shape: Sequence[int], dims: Sequence[int], keepdim: bool) -> Tensor:
    if not keepdim and dims:
        g = g.reshape([1 if d in dims else n for d, n in enumerate(x_shape)])
    return g.expand(x_shape)


_expanded = Memo()


def _plan_expanded(layout: Layout, shape: tuple[int, ...], dims: tuple[int, ...], keepdim: bool) -> Layout:
    wanted = layout_of(shape, _expanded_strides(layout, shape, dims, keepdim), layout.dtype)
    return _expanded.keep((layout, shape, dims, keepdim), wanted)  # type: ignore[no-any-return]


#: a gradient of a reduction read with the shape of its input: without a history, only another layout
expand_reduced: Callable[[Tensor, Sequence[int], Sequence[int], bool], Tensor] = shortcut(
    "g, x_shape, dims, keepdim", "g._layout, x_shape, dims, keepdim",
    ["data = g._data", *tensor_lines("plan", "g._version_"), "return t"], ["plan = _plan(g._layout, x_shape, dims, keepdim)"],
    memo=_expanded,
    first=[
        # (what is no view has all of its memory, which nodes write over)
        "if g.__class__ is not _Tensor or (_state.grad and (g._rg or g._view is not None)) or g._data.size != g._layout.extent:",
        "    return _expand_recorded(g, x_shape, dims, keepdim)",
    ],
    _plan=_plan_expanded, _expand_recorded=_expand_recorded,
)  # fmt: skip


def _expanded_strides(layout: Layout, shape: Sequence[int], dims: Sequence[int], keepdim: bool) -> list[int]:
    """Return the strides that ``unsqueeze`` and ``expand`` give: 0 along what was reduced, unless that is of size 1."""
    if not layout.ndim:
        return [0] * len(shape)
    left = list(zip(layout.shape, layout.strides, strict=True))
    strides, beyond = [], 1
    for d in range(len(shape) - 1, -1, -1):
        if keepdim or d not in dims:
            n, s = left.pop()
            beyond = n * s
        else:
            s = beyond
        strides.append(0 if d in dims and shape[d] != 1 else s)
    return strides[::-1]


def count_of(shape: Sequence[int], dims: Sequence[int]) -> int:
    n = 1
    for d in dims:
        n *= shape[d]
    return n


def all_dims(dim: Any, ndim: int) -> tuple[int, ...]:
    """Return ``dim=`` (an int, several, or None and () for all) as dims counted from the front."""
    if dim is None or (isinstance(dim, (tuple, list)) and not dim):
        return tuple(range(ndim))
    return wrap_dims(dim, ndim)


class KnownPlan:
    """A call of a reduction: its kernel, its result, and how it is recorded (``recording`` is None where something is saved)."""

    __slots__ = ("args", "carrier", "dims", "entry", "layout", "numbers", "recorded", "recording", "size", "values")
    entry: Callable[..., Any]
    dims: np.ndarray | None
    layout: Layout
    carrier: np.dtype[Any]
    args: tuple[Any, ...]
    numbers: tuple[Any, ...]
    size: int
    recorded: bool
    recording: Recording | None
    values: dict[str, Any]

    def __init__(self, op: Structured, found: tuple[Any, ...], numbers: tuple[Any, ...], args: tuple[Any, ...], layout: Layout):
        self.entry, self.dims, self.layout = found
        self.carrier = self.layout.dtype.carrier
        self.numbers, self.args, self.size = numbers, args, self.layout.size
        self.recorded = self.layout.dtype.category >= 2 and bool(op.rules)
        recording = op.recording(1, 1) if op.rules else None
        self.recording, self.values = None, {}
        if recording is not None and recording.unsaved:
            self.recording = recording
            self.values = recording.constants(layout, args)


def known_reduction(op: ReductionOp, several: bool) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Decorator of the public function of a reduction, whose calls are `known`; ``several``: whether ``dim`` may be a tuple."""

    def plan(checked: bool, input: Any, dim: Any, keepdim: Any) -> KnownPlan | None:
        layout = input._layout
        if dim.__class__ not in (_DIMS if several else _DIM) or not (checked or (layout.size and layout.dtype.category == 2)):
            return None
        try:
            args = (op.dims(dim, layout.ndim), bool(keepdim))
            found, numbers = op.plan(layout, *args)
        except (IndexError, RuntimeError, TypeError, NestedReduction):  # the function says so, or knows another way
            return None
        if found[2].size * found[2].dtype.itemsize >= launch.BIG:
            return None
        return KnownPlan(op, found, numbers, args, layout)

    key = "input._layout, dim, dim.__class__ if dim.__class__ is not tuple else (*map(type, dim),), keepdim"
    run = result_lines("plan.entry(plan.dims, input._data, *plan.numbers, data)", unsaved_lines("input"))
    return known(key, plan, run, takes=("input", "dim", "keepdim"), _op=op)


_DIM = (type(None), int)
_DIMS = (type(None), int, tuple)


# ------------------------------------------------------------------------------------------------- declarations

#: numbers that a formula and ``finish`` may ask for by name, made of how many elements are folded into one
NUMBERS: dict[str, Callable[[int], float]] = {
    "count": float,
}

#: names of ``result=`` -> the result's dtype, from the operand's
RESULTS: dict[str, Callable[[dtype], dtype]] = {
    "same": lambda d: d,
    "float": lambda d: d,  # integers are converted before
    "sum": lambda d: dtypes.int64 if d.category < 2 else d,
    "truth": lambda d: d if d is dtypes.uint8 else dtypes.bool_,
    "count": lambda d: dtypes.int64,
}

EVERY: list[ReductionOp] = []  #: all that were declared

REQUIRED = inspect.Parameter.empty  #: the default of a ``dim`` that must be given


def _kept(t: Tensor, shape: Sequence[int], dims: Sequence[int], keepdim: bool) -> Tensor:
    """Return a result with the dims that were reduced, of size 1."""
    return t if keepdim or not dims else t.reshape(reduced_shape(shape, dims, True))


def _derivative(grad: Callable[..., Any] | float, options: Sequence[str]) -> Callable[..., Any]:
    """Return the rule of a structured op ``(x, dims, keepdim, …options)`` from a declaration's ``grad``."""
    if not callable(grad):
        factor = grad
        if factor == 1:
            return expand_reduced
        return lambda g, x_shape, dims, keepdim: expand_reduced(g * factor, x_shape, dims, keepdim)
    names = parameters_of(grad)
    unknown = set(names) - {"g", "x", "y", "count", "dims", *options}
    assert not unknown, f"grad= names {unknown}, which are neither g, x, y, count, dims nor options"
    given = {"y": "y", "count": "max(count_of(x_shape, dims), 1)"}
    value = f"grad({', '.join(given.get(n, n) for n in names)})"
    asked = ["g", *(["x"] if "x" in names else []), *(["out"] if "y" in names else []), "x_shape", "dims", "keepdim"]
    asked += [n for n in options if n in names]
    lines = []
    if "x" in names or "y" in names:  # g is to meet what has x's shape, or the shape that y has when its dims are kept
        lines.append("g = kept(g, x_shape, dims, keepdim)")
        if "y" in names:
            lines.append("y = kept(out, x_shape, dims, keepdim)")
        lines += [f"dx = {value}", "return dx if dx is None or dx._layout.shape == x_shape else dx.expand(x_shape)"]
    else:
        # what is recorded is spread first, as in PyTorch: the gradient has memory of its own
        lines += ["if state.grad:", "    g = spread(g, x_shape, dims, keepdim)", f"    return {value}"]
        lines.append(f"return spread({value}, x_shape, dims, keepdim)")
    return written("rule", ", ".join(asked), lines, __file__, grad=grad, kept=_kept, spread=expand_reduced, count_of=count_of, state=state)


class ReductionOp(Structured):
    """A declared reduction: the op ``(x, dims, keepdim, …options)`` that transforms and the graph see, and its kernel's recipe."""

    public: _Public  #: what the op takes that has a public function
    formula: Callable[..., Any]
    fold: Fold | None
    finish: Callable[..., Any] | None
    result: str
    options: dict[str, Any]
    numbers: tuple[str, ...]
    recipe: Reduction

    def __init__(
        self, formula: Callable[..., Any], fold: Fold | None, finish: Callable[..., Any] | None, grad: Any, name: str, node: str, linear: str, result: str
    ):
        self.formula, self.fold, self.finish, self.result = formula, fold, finish, result
        first = inspect.signature(formula).parameters
        taken = 1 if fold is not None else 3
        self.options = {p: v.default for p, v in list(first.items())[taken:] if p not in NUMBERS}
        if fold is not None:
            asked = (*parameters_of(formula)[1:], *(parameters_of(finish)[1:] if finish else ()))
            self.numbers = tuple(dict.fromkeys(asked))
            unknown = set(self.numbers) - {*NUMBERS, *self.options}
            assert not unknown, f"{name}: numbers {unknown}, which are neither {', '.join(NUMBERS)} nor options"
            self.recipe = Reduction(name, fold, *self._picking())
        forward = self._folded if fold is not None else formula
        forward = written(
            name, ", ".join(("x", "dims", "keepdim", *self.options)),
            [f"return forward(x, dims, keepdim{''.join(', ' + p for p in self.options)})"], __file__,
            forward=forward,
        )  # fmt: skip
        forward.__module__, forward.__doc__ = formula.__module__, formula.__doc__
        rules = {} if grad is None else {"x": _derivative(grad, tuple(self.options))}
        super().__init__(forward, rules, None, False, node, linear=linear, batch="shift")
        EVERY.append(self)

    def _picking(self) -> tuple[Callable[..., Any], Callable[..., Any] | None]:
        """Return formula and finish, which take the numbers that they ask for, as functions of all numbers."""

        def picking(function: Callable[..., Any]) -> Callable[..., Any]:
            which = [self.numbers.index(p) for p in parameters_of(function)[1:]]
            return lambda first, *numbers: function(first, *[numbers[k] for k in which])

        return picking(self.formula), None if self.finish is None else picking(self.finish)

    def how(self, layout: Layout, dims: tuple[int, ...], options: tuple[Any, ...] = ()) -> tuple[dtype, Any, tuple[Any, ...]]:
        """Return (dtype of the result, dtypes to compute in, numbers)."""
        d = layout.dtype
        numbers: tuple[Any, ...] = ()
        if self.numbers:
            given = dict(zip(self.options, options, strict=False))
            n = count_of(layout.sizes, dims)
            numbers = tuple([float(given[p]) if p in given else NUMBERS[p](n) for p in self.numbers])
        compute = (d.compute, *["float64"] * len(numbers)) if numbers else d.compute
        return RESULTS[self.result](d), compute, numbers

    def dims(self, dim: Any, ndim: int) -> tuple[int, ...]:
        """Return ``dim=`` as dims counted from the front: no dims are all of them, but for `any` and `all`, which then ask each element."""
        return () if self.result == "truth" and isinstance(dim, (tuple, list)) and not dim else all_dims(dim, ndim)

    def plan(self, layout: Layout, dims: tuple[int, ...], keepdim: bool) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        """Return (the plan of such a call, which is not kept; its numbers). `NestedReduction` where it takes more than one kernel."""
        out, compute, numbers = self.how(layout, dims)
        return self.recipe.new_plan((layout, *[float] * len(numbers)), dims, keepdim, out, compute), numbers

    def _folded(self, x: Tensor, dims: tuple[int, ...], keepdim: bool, *options: Any) -> Tensor:
        out, compute, numbers = self.how(x._layout, dims, options)
        return self.recipe((x, *numbers), dims, keepdim, out, compute)


class _Public:
    """The public function of a reduction: it checks and completes its arguments, and runs the op on them."""

    def __init__(self, op: ReductionOp, name: str, accepts: str, typed: bool, several: bool, empty: bool):
        self.op, self.name, self.accepts, self.typed, self.several, self.empty = op, name, accepts, typed, several, empty
        op.public = self

    def __call__(self, input: Any, dim: Any, keepdim: Any, dtype: Any, out: Any, *options: Any) -> Tensor:
        x = tensor_argument(input, self.name)
        if self.typed:
            if dtype is not None or self.accepts != "float" or x.dtype.category >= 2:
                dtype = computed_in(out, dtype)
            if dtype is not None:
                not_for_barebone(f"{self.name}_cpu", dtypes.as_dtype(dtype))
                x = x.to(dtypes.as_dtype(dtype))
        self.check_dtype(x)
        if self.op.result == "float" and x.dtype.category < 2:
            x = x.to(dtypes.get_default_dtype())
        dims = self.op.dims(dim, x.ndim) if self.several or dim is None else (wrap_dim(dim, x.ndim),)[: x.ndim]
        if not self.empty:
            check_not_empty(x, dim, dims, self.name)
        y = self.op(x, dims, bool(keepdim), *options)
        if dtype is not None:
            y = y.to(x.dtype)  # integers are summed as int64
        return y if out is None else store(out, y, self.name)

    def check_dtype(self, x: Tensor) -> None:
        """Raise RuntimeError for an operand of a dtype that the op does not take."""
        if self.accepts == "float" and x.dtype.category < 2:
            raise RuntimeError(
                f"{self.name}(): could not infer output dtype. Input dtype must be either a floating point or complex dtype. Got: "
                f"{x.dtype} (use x.float() or dtype=)"
            )
        if self.accepts == "real" and x.dtype.is_complex:
            raise RuntimeError(f"{self.name} does not support complex inputs")


def check_not_empty(x: Tensor, dim: Any, dims: tuple[int, ...], name: str) -> None:
    """Refuse a reduction without a value for nothing."""
    if not x._layout.size and (dim is None or dim == ()):
        raise RuntimeError(
            f"{name}(): Expected reduction dim to be specified for input.numel() == 0. Specify the reduction dim with "
            "the 'dim' argument."
        )
    for d in dims:
        if x.ndim and x.shape[d] == 0:
            raise IndexError(f"{name}(): Expected reduction dim {d} to have non-zero size.")


def reduction(
    combine: Fold | Callable[[Any, Any], Any] | None = None, *, init: float | None = None,
    finish: Callable[..., Any] | None = None, grad: Callable[..., Any] | float | None = None, linear: str = "no",
    result: str = "same", accepts: str = "any", empty: bool = True, dim: Any = None, several: bool = True, keepdim: bool = True,
    typed: bool = False, name: str = "", node: str = "", aliases: tuple[str, ...] = (),
    namespaces: tuple[str, ...] = ("torch",), method: bool = True, public: bool = True, **info: Any,
) -> Callable[[Callable[..., Any]], Any]:  # fmt: skip
    """Declare a reduction (see the module's text for combine, init, finish and grad).

    linear: "jointly", where the result is linear in the operand. result: "same", "float" (integers become the default float), "sum"
    (int64 for integers), "truth" (bool, or uint8 for uint8) or "count" (int64). accepts: "any", "real" or "float" dtypes. empty: whether
    there is a value for no elements at all. dim: its default, or `REQUIRED`; several: whether it may be a tuple. keepdim, typed: whether
    the function takes ``keepdim=``, and ``dtype=``. samples, reference: of the generated tests, see `OpInfo`.
    Returns the op's function; ``.op`` is its `ReductionOp`. Without ``public`` it returns that.
    """
    if combine is not None and not isinstance(combine, Fold):
        assert init is not None, "a formula that combines needs init=, what changes nothing that it is combined with"

    def declare(formula: Callable[..., Any]) -> Any:
        own = name or formula.__name__.strip("_")
        fold = combine if combine is None or isinstance(combine, Fold) else Fold(own, init, combine)  # type: ignore[arg-type]
        op = ReductionOp(formula, fold, finish, grad, own, node, linear, result)
        if not public:
            return op
        run = _Public(op, own, accepts, typed, several, empty)
        head = ["input", "dim" if dim is REQUIRED else "dim=default", *(["keepdim=False"] if keepdim else [])]
        ways = [*[f"{p}=default_{p}" for p in op.options], *(["dtype=None"] if typed else []), *(["out=None"] if keepdim else [])]
        given = ["input, dim", "keepdim" if keepdim else "False", "dtype" if typed else "None", "out" if keepdim else "None", *op.options]
        call = written(
            formula.__name__, ", ".join([*head, *(["*", *ways] if ways else [])]), [f"return run({', '.join(given)})"], __file__, run=run,
            default=dim,
            **{f"default_{p}": v for p, v in op.options.items()},
        )  # fmt: skip
        call.__doc__, call.__module__ = formula.__doc__, formula.__module__
        if not several:
            call.__annotations__["dim"] = "int | None"
        if fold is not None and keepdim and dim is not REQUIRED and not op.options:
            call = known_reduction(op, several)(call)
        call.op = op  # type: ignore[attr-defined]
        register(own, call, "reduction", method=method, namespaces=namespaces, aliases=aliases, differentiable=grad is not None,
                 rule=op, **info)  # fmt: skip
        return call

    return declare
