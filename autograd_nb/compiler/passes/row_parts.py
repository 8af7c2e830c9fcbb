"""Steps as formulas over rows: what row fusion puts together."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from inspect import signature
from typing import Any

from ...codegen.formula.symbols import FLOATS
from ...codegen.templates.loops import SUM, Fold
from ...codegen.templates.row import Each, Row
from ...dtypes import BY_NAME
from ...ops.core.reduction_kernel import Folding
from ...ops.core.row_kernel import RowRecipe
from ...shapes import Layout, broadcast_strides, coalesce, layout_of, numel
from ..ir import Step, Use
from .pointwise_step import member, pointwise
from .row_plan import Plan
from .shared_factor import replay


@dataclass(frozen=True)
class Walk:
    """A walk tells where a row's elements or its one value lie: the row's beginning by loops over rows, then ``inner`` apart.
    """

    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    inner: int


@dataclass
class Array:
    """A use of memory as rows."""

    use: Use
    walk: Walk

    @property
    def key(self) -> tuple[Any, ...]:
        """Return a value that is equal for uses that meet the same element at the same place of the same row."""
        return self.use.buffer.number, self.use.offset, self.walk, self.use.dtype.str


@dataclass
class Part:
    """A step as rows: what it reads and writes, in its own order, and how a plan gets its values (`Plan.add`)."""

    step: Step
    reads: list[Any]  # Array, or (number, dtype name)
    writes: list[Array]
    tell: Callable[[Plan, list[str]], list[str]]  # from the names of what is read to those of what is written

    def arrays(self) -> Iterator[Array]:
        """Return all arrays that it touches."""
        yield from (r for r in self.reads if isinstance(r, Array))
        yield from self.writes


def _walk(layout: Layout, shape: Sequence[int], first: int) -> Walk | None:
    """Return how rows, the dims from ``first`` on of ``shape``, lie in an operand; None where they have no one stride."""
    strides = broadcast_strides(layout, shape)
    sizes, (steps,) = coalesce(shape[:first], [strides[:first]])
    _, (inner,) = coalesce(shape[first:], [strides[first:]])
    if len(inner) > 1 or (inner and inner[0] not in (0, 1)):
        return None
    return Walk(tuple(sizes), tuple(steps), inner[0] if inner else 0)


def dense_walk(outer: int, n: int) -> Walk:
    """Return the walk of an array of its own, of ``n`` elements a row, or of one value where ``n`` is 1."""
    return Walk((outer,), (n,), int(n > 1)) if outer > 1 else Walk((), (), int(n > 1))


def _first(shape: Sequence[int], n: int) -> int | None:
    """Return where the dims begin that make rows of ``n`` elements."""
    at, size = len(shape), 1
    while size < n and at:
        at -= 1
        size *= shape[at]
    return at if size == n else None


def rows_of(step: Step) -> tuple[int, int] | None:
    """Return (rows, elements of each) of a step that works along rows, None for others."""
    recipe = getattr(step.call, "recipe", None)
    if isinstance(recipe, Folding) and recipe.axes:
        first = min((d for d in recipe.axes if recipe.shape[d] != 1), default=None)
        if first is None or any(n != 1 for d, n in enumerate(recipe.shape) if d > first and d not in recipe.axes):
            return None
        return numel(recipe.shape[:first]), numel(recipe.shape[first:])
    if isinstance(recipe, RowRecipe) and step.argument("inner") == 1:
        return step.argument("outer"), step.argument("n")
    return None


def part(step: Step, outer: int, n: int) -> Part | None:
    """Return a step as one over these rows, or None where it is no such step."""
    recipe = getattr(step.call, "recipe", None)
    if step.check is not None or recipe is None:
        return None
    if isinstance(recipe, Folding):
        return _folding(step, recipe, outer, n)
    if isinstance(recipe, RowRecipe):
        return _row_kernel(step, recipe) if rows_of(step) == (outer, n) else None
    return _pointwise(step, outer, n)


def _pointwise(step: Step, outer: int, n: int) -> Part | None:
    m = member(step)
    if m is None or not m.inputs:  # (what only fills memory has no operands to be written with)
        return None
    size = numel(m.shape)
    first = _first(m.shape, n) if size == outer * n else len(m.shape) if size == outer else None
    if first is None or numel(m.shape[:first]) != outer:
        return None
    reads = _operands(m.inputs, m.shape, first)
    writes = _operands([(u, layout) for u, layout, _ in m.outputs], m.shape, first)
    if reads is None or writes is None or any(w.walk != dense_walk(outer, size // outer) for w in writes):
        return None
    formula, compute, outputs = m.step.call.recipe.formula, m.compute, [dtype for _, _, dtype in m.outputs]

    def tell(plan: Plan, names: list[str]) -> list[str]:
        return [plan.add(_one(formula, compute, k, dtype), names, _literals(compute)) for k, dtype in enumerate(outputs)]

    return Part(step, reads, writes, tell)


def _literals(compute: Sequence[str]) -> str:
    return next((c for c in compute if c != "bool"), "float32")


def _one(formula: Callable[..., Any], compute: Sequence[str], k: int, dtype: str | None) -> Callable[..., Any]:
    """Return the ``k``-th value of a formula of operands in their compute dtypes, as ``dtype``."""

    def value(*xs: Any) -> Any:
        found = xs[0].trace.as_sym(formula(*[x.cast(c) for x, c in zip(xs, compute, strict=True)])[k])
        return found if dtype is None else found.cast(dtype)

    return value


def _operands(given: Sequence[tuple[Any, Any]], shape: Sequence[int], first: int) -> list[Any] | None:
    """Return operands with their walks; None where one has none, or is of a dtype that rows are not computed in."""
    found: list[Any] = []
    for o, layout in given:
        if not isinstance(o, Use):
            found.append((o, layout))
            continue
        walk = _walk(layout, shape, first)
        if walk is None or layout.dtype.is_complex or layout.dtype.is_half:
            return None
        found.append(Array(o, walk))
    return found


def _folding(step: Step, of: Folding, outer: int, n: int) -> Part | None:
    if rows_of(step) != (outer, n) or any("complex" in c for c in of.compute):
        return None
    first = min(d for d in of.axes if of.shape[d] != 1)
    layouts = iter(of.in_layouts)
    operands = step.operands[1:]
    given = [(o, s.dtype) if s.scalar else (o, next(layouts)) for o, s in zip(operands, of.inputs, strict=False)]
    written = list(zip(operands[len(given) :], of.out_layouts, strict=True))
    reads, writes = _operands(given, of.shape, first), _operands(written, of.shape, first)
    if reads is None or writes is None:
        return None
    if any(w.walk != dense_walk(outer, 1 if k < len(of.results) else n) for k, w in enumerate(writes)):
        return None
    count, literals = len(of.folds), _literals(of.compute)

    def fed(k: int, fold: Fold) -> Callable[..., Any]:
        value = _one(of.formula, of.compute, k, None)

        def wide(*xs: Any) -> Any:
            found = value(*xs)
            return found.cast("float64") if of.wide and found.dtype == "float32" and fold is SUM else found

        return wide

    def tell(plan: Plan, names: list[str]) -> list[str]:
        totals = [plan.add(fed(k, fold), names, literals, fold) for k, fold in enumerate(of.folds)]
        by_row = [k for k, name in enumerate(names) if plan.values[name].rows]

        def finish(k: int, layout: Layout) -> Callable[..., Any]:
            def finished(*xs: Any) -> Any:
                given: list[Any] = [None] * len(names)
                for j, x in zip(by_row, xs[count:], strict=True):
                    given[j] = x
                return xs[0].trace.as_sym(of.finish(list(xs[:count]), given)[k]).cast(layout.dtype.name)

            return finished

        parameters = [*totals, *[names[k] for k in by_row]]
        found = [plan.add(finish(k, layout), parameters, plan.values[totals[0]].dtype) for k, layout in enumerate(of.results)]
        for k, layout in enumerate(of.stored):
            found.append(plan.add(_one(of.formula, of.compute, count + k, layout.dtype.name), names, literals))
        return found

    return Part(step, reads, writes, tell)


def _row_kernel(step: Step, of: RowRecipe) -> Part | None:
    dtypes = [d for _, d in (*of.operands.values(), *of.outputs.values())]
    if not all(isinstance(s, (Each, Row)) for s in of.steps) or any("complex" in d for d in dtypes):
        return None
    outer, n = step.argument("outer"), step.argument("n")
    sizes, steps = ((outer,), (0,)) if outer > 1 else ((), ())
    walks = {
        "full": dense_walk(outer, n),
        "row": dense_walk(outer, 1),
        "col": Walk(sizes, steps, 1),
        "one": Walk(sizes, steps, 0),
    }
    operands = step.operands[3:]
    reads: list[Any] = []
    for (kind, dtype), o in zip(of.operands.values(), operands, strict=False):
        reads.append(Array(o, walks[kind]) if isinstance(o, Use) else (o, dtype))
    writes = [Array(o, walks[kind]) for o, (kind, _) in zip(operands[len(reads) :], of.outputs.values(), strict=True)]

    def tell(plan: Plan, names: list[str]) -> list[str]:
        known = {"n": "n", "i": "i", **dict(zip(of.operands, names, strict=True))}

        def add(formula: Callable[..., Any], cast: bool, dtype: str | None = None, fold: Fold | None = None) -> str:
            def value(*xs: Any) -> Any:
                found = formula(*[x.cast(of.compute) if cast and x.dtype in FLOATS else x for x in xs])
                return found if dtype is None else found.cast(dtype)

            return plan.add(value, [known[p] for p in signature(formula).parameters], of.compute, fold)

        for one in of.steps:
            if isinstance(one, Row):
                for name, formula in one.values.items():
                    known[name] = add(formula, False)
            elif isinstance(one, Each):
                for name, formula in {**one.values, **one.stores}.items():
                    known[name] = add(formula, True, of.outputs[name][1] if name in of.outputs else None)
                known |= {name: add(formula, True, None, fold) for name, (fold, formula) in one.folds.items()}
        return [known[name] for name in of.outputs]

    return Part(step, reads, writes, tell)


def by_elements(step: Step) -> Step | None:
    """Return what a row kernel computes for each element, as a pointwise step that reads what was found for each row; None for
    others.
    """
    recipe = getattr(step.call, "recipe", None)
    found = _row_kernel(step, recipe) if isinstance(recipe, RowRecipe) and rows_of(step) is not None else None
    if found is None:
        return None
    plan = Plan()
    names = [
        plan.operand(f"a{k}", *(((not r.walk.inner), r.use.dtype.name) if isinstance(r, Array) else (True, r[1])))
        for k, r in enumerate(found.reads)
    ]
    made = found.tell(plan, names)
    given: dict[str, Any] = dict(zip(names, found.reads, strict=True))
    given |= {name: w for name, w in zip(made, found.writes, strict=True) if not w.walk.inner}
    wanted = {name: w for name, w in zip(made, found.writes, strict=True) if w.walk.inner}
    needed = plan.needed(wanted, given)
    mine = [name for name in needed if name in given]
    rest = [name for name in needed if name not in given]
    if not wanted or any(plan.values[name].fold is not None or plan.values[name].result is None for name in rest):
        return None

    def formula(*xs: Any) -> list[Any]:
        values = {name: x.cast(plan.values[name].dtype) for name, x in zip(mine, xs, strict=True)}
        for name in rest:
            value = plan.values[name]
            assert value.result is not None
            values[name] = replay([value.result], {p: values[p] for p in value.parameters}, xs[0].trace)[0]
        return [values[name].cast(w.use.dtype.name) for name, w in wanted.items()]

    outer, n = step.argument("outer"), step.argument("n")

    def laid(a: Array) -> tuple[Use, Layout]:
        use, strides = a.use, (sum(a.walk.strides), a.walk.inner)
        return Use(use.buffer, use.offset, use.size, use.dtype), layout_of((outer, n), strides, BY_NAME[use.dtype.name])

    inputs = [laid(r) if isinstance(r, Array) else r for r in (given[name] for name in mine)]
    compute = [plan.values[name].dtype for name in mine]
    outputs = [(*laid(w), w.use.dtype.name) for w in wanted.values()]
    return pointwise(step.name, formula, inputs, compute, outputs, step.line)
