"""Row fusion: neighbouring steps that walk the same rows become one kernel of a few passes over each row.

Softmax, norms and losses written by hand are reductions along the last dims between pointwise steps over the same elements; the
library's own row kernels have neighbours of that kind too. A step that works along rows takes in, one after the other, those steps
around it that share arrays with it and can run at the same time: no path of dependencies leads out of the group and back into it.
What only the group's members read is not stored.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import reduce
from inspect import signature
from typing import Any

import numpy as np

from .. import launch
from ..codegen.loops import SUM, Fold
from ..codegen.rows import Each, Row, begins, row_kernel
from ..codegen.symbols import FLOATS
from ..ops.folds import Folding
from ..ops.rowwise import RowRecipe, split_rows
from ..shapes import Layout, broadcast_strides, coalesce, numel
from . import again
from .capture import Buffer, Step, Use
from .members import member
from .rowplan import Plan
from .slots import _Slot

LEAST = 16  #: elements of a row from which what else is one loop over all elements is as quick by rows
MOST_STEPS = 48
MOST_ARRAYS = 24
LONG = 1 << 16  #: elements of a row that passes may keep in the processor's caches
POPULAR = 16  #: users of an array, of which only so many are asked whether they would join


@dataclass(frozen=True)
class Walk:
    """Where a row's elements or its one value lie: the row's beginning by loops over rows, then ``inner`` apart."""

    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    inner: int


@dataclass
class Array:
    """A use of memory as rows."""

    use: Use
    walk: Walk

    @property
    def key(self) -> tuple:
        """Equal for uses that meet the same element at the same place of the same row."""
        return self.use.buffer.number, self.use.offset, self.walk, self.use.dtype.str


@dataclass
class Part:
    """A step as rows: what it reads and writes, in its own order, and how a plan gets its values (`Plan.add`)."""

    step: Step
    reads: list[Any]  # Array, or (number, dtype name)
    writes: list[Array]
    tell: Callable[[Plan, list[str]], list[str]]  # from the names of what is read to those of what is written

    def arrays(self) -> Iterator[Array]:
        """All that it touches."""
        yield from (r for r in self.reads if isinstance(r, Array))
        yield from self.writes


# ------------------------------------------------------------------------------------------------ steps as parts


def _walk(lay: Layout, shape: Sequence[int], first: int) -> Walk | None:
    """How rows, the dims from ``first`` on of ``shape``, lie in an operand; None where they have no one stride."""
    strides = broadcast_strides(lay, shape)
    sizes, (steps,) = coalesce(shape[:first], [strides[:first]])
    _, (inner,) = coalesce(shape[first:], [strides[first:]])
    if len(inner) > 1 or (inner and inner[0] not in (0, 1)):
        return None
    return Walk(tuple(sizes), tuple(steps), inner[0] if inner else 0)


def _dense(outer: int, n: int) -> Walk:
    """That of an array of its own, of ``n`` elements a row, or of one value where ``n`` is 1."""
    return Walk((outer,), (n,), int(n > 1)) if outer > 1 else Walk((), (), int(n > 1))


def _first(shape: Sequence[int], n: int) -> int | None:
    """Where the dims begin that make rows of ``n`` elements."""
    at, size = len(shape), 1
    while size < n and at:
        at -= 1
        size *= shape[at]
    return at if size == n else None


def rows_of(step: Step) -> tuple[int, int] | None:
    """(rows, elements of each) of a step that works along rows, None for others."""
    recipe = getattr(step.call, "recipe", None)
    if isinstance(recipe, Folding) and recipe.axes:
        first = min((d for d in recipe.axes if recipe.shape[d] != 1), default=None)
        if first is None or any(n != 1 for d, n in enumerate(recipe.shape) if d > first and d not in recipe.axes):
            return None
        return numel(recipe.shape[:first]), numel(recipe.shape[first:])
    if isinstance(recipe, RowRecipe) and step.operands[2] == 1:
        return step.operands[0], step.operands[1]
    return None


def part(step: Step, outer: int, n: int) -> Part | None:
    """A step as one over these rows, or None where it is no such step."""
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
    if m is None:
        return None
    size = numel(m.shape)
    first = _first(m.shape, n) if size == outer * n else len(m.shape) if size == outer else None
    if first is None or numel(m.shape[:first]) != outer:
        return None
    reads = _operands(m.inputs, m.shape, first)
    writes = _operands([(u, lay) for u, lay, _ in m.outputs], m.shape, first)
    if reads is None or writes is None or any(w.walk != _dense(outer, size // outer) for w in writes):
        return None
    formula, compute, outputs = m.step.call.recipe.formula, m.compute, [dtype for _, _, dtype in m.outputs]

    def tell(plan: Plan, names: list[str]) -> list[str]:
        return [plan.add(_one(formula, compute, k, dtype), names, _literals(compute)) for k, dtype in enumerate(outputs)]

    return Part(step, reads, writes, tell)


def _literals(compute: Sequence[str]) -> str:
    return next((c for c in compute if c != "bool"), "float32")


def _one(formula: Callable, compute: Sequence[str], k: int, dtype: str | None) -> Callable:
    """The ``k``-th value of a formula of operands in their compute dtypes, as ``dtype``."""

    def value(*xs: Any) -> Any:
        found = xs[0].trace.as_sym(formula(*[x.cast(c) for x, c in zip(xs, compute, strict=True)])[k])
        return found if dtype is None else found.cast(dtype)

    return value


def _operands(given: Sequence[tuple[Any, Any]], shape: Sequence[int], first: int) -> list[Any] | None:
    """Operands with their walks; None where one has none, or is of a dtype that rows are not computed in."""
    found: list[Any] = []
    for o, lay in given:
        if not isinstance(o, Use):
            found.append((o, lay))
            continue
        walk = _walk(lay, shape, first)
        if walk is None or lay.dtype.is_complex or lay.dtype.name == "float16":
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
    if any(w.walk != _dense(outer, 1 if k < len(of.results) else n) for k, w in enumerate(writes)):
        return None
    count, literals = len(of.folds), _literals(of.compute)

    def fed(k: int, fold: Fold) -> Callable:
        value = _one(of.formula, of.compute, k, None)

        def wide(*xs: Any) -> Any:
            found = value(*xs)
            return found.cast("float64") if of.wide and found.dtype == "float32" and fold is SUM else found

        return wide

    def tell(plan: Plan, names: list[str]) -> list[str]:
        totals = [plan.add(fed(k, fold), names, literals, fold) for k, fold in enumerate(of.folds)]
        late = [k for k, name in enumerate(names) if plan.values[name].rows]

        def finish(k: int, lay: Layout) -> Callable:
            def finished(*xs: Any) -> Any:
                given: list[Any] = [None] * len(names)
                for j, x in zip(late, xs[count:], strict=True):
                    given[j] = x
                return xs[0].trace.as_sym(of.finish(list(xs[:count]), given)[k]).cast(lay.dtype.name)

            return finished

        parameters = [*totals, *[names[k] for k in late]]
        found = [plan.add(finish(k, lay), parameters, plan.values[totals[0]].dtype) for k, lay in enumerate(of.results)]
        for k, lay in enumerate(of.stored):
            found.append(plan.add(_one(of.formula, of.compute, count + k, lay.dtype.name), names, literals))
        return found

    return Part(step, reads, writes, tell)


def _row_kernel(step: Step, of: RowRecipe) -> Part | None:
    if not all(isinstance(s, (Each, Row)) for s in of.steps):
        return None
    outer, n = step.operands[:2]
    sizes, steps = ((outer,), (0,)) if outer > 1 else ((), ())
    walks = {"full": _dense(outer, n), "row": _dense(outer, 1), "col": Walk(sizes, steps, 1), "one": Walk(sizes, steps, 0)}
    operands = step.operands[3:]
    reads: list[Any] = []
    for (kind, dtype), o in zip(of.operands.values(), operands, strict=False):
        reads.append(Array(o, walks[kind]) if isinstance(o, Use) else (o, dtype))
    writes = [Array(o, walks[kind]) for o, (kind, _) in zip(operands[len(reads) :], of.outputs.values(), strict=True)]

    def tell(plan: Plan, names: list[str]) -> list[str]:
        known = {"n": "n", "i": "i", **dict(zip(of.operands, names, strict=True))}

        def add(formula: Callable, cast: bool, dtype: str | None = None, fold: Fold | None = None) -> str:
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
        return [plan.add(lambda x, d=dtype: x.cast(d), [known[name]]) for name, (_, dtype) in of.outputs.items()]

    return Part(step, reads, writes, tell)


# ------------------------------------------------------------------------------------------------ groups


@dataclass
class _Group:
    """Parts that will be one kernel over ``outer`` rows of ``n`` elements."""

    outer: int
    n: int
    parts: dict[int, Part] = field(default_factory=dict)  # by the step's place
    events: dict[int, set[tuple]] = field(default_factory=dict)  # buffer -> (place, whether it is written, how it is walked)

    def takes(self, place: int, p: Part) -> bool:
        """Whether a part may join the group."""
        if len(self.parts) >= MOST_STEPS or len(self.events) > MOST_ARRAYS:
            return False
        mine = _events(place, p)
        for n, events in mine.items():
            everyone = sorted(events | self.events.get(n, set()))
            # what is written is walked in one way only, and not read before: passes of one kernel do not wait for one another
            if any(written for _, written, _ in everyone) and (not everyone[0][1] or len({key for _, _, key in everyone}) > 1):
                return False
        if not self.parts:
            return True
        known = {key for events in self.events.values() for _, _, key in events}
        return any(self.binds(a) and a.key in known for a in p.arrays())

    def near(self, place: int) -> bool:
        """Whether a step stands so close that nothing lives much longer for being computed elsewhere."""
        return not self.parts or min(abs(place - other) for other in self.parts) < again.LONG

    def binds(self, a: Array) -> bool:
        """Whether those who use an array walk rows together: it is not the same for all of them."""
        return self.outer == 1 or any(a.walk.strides)

    def add(self, place: int, p: Part) -> None:
        """Take it in."""
        self.parts[place] = p
        for n, events in _events(place, p).items():
            self.events.setdefault(n, set()).update(events)


def _events(place: int, p: Part) -> dict[int, set[tuple]]:
    """What a part does with each buffer; it reads before it writes."""
    found: dict[int, set[tuple]] = {}
    for written, arrays in ((False, (r for r in p.reads if isinstance(r, Array))), (True, p.writes)):
        for a in arrays:
            found.setdefault(a.use.buffer.number, set()).add((place, written, a.key))
    return found


class _Work:
    """Steps of which some become one; what is gone leaves a hole, so that places stay what they are."""

    def __init__(self, steps: list[Step], outside: set[int], number: int):
        self.steps: list[Step | None] = list(steps)
        self.outside, self.number = outside, number
        self.users: dict[int, list[Step]] = {}
        self.places = {id(step): i for i, step in enumerate(steps)}
        for step in steps:
            for n in {u.buffer.number for u, _ in step.uses()}:
                self.users.setdefault(n, []).append(step)

    def done(self) -> tuple[list[Step], int]:
        """What comes out, and the first number of a buffer that is unused."""
        for i in range(len(self.steps)):
            step = self.steps[i]
            if step is None or (rows := rows_of(step)) is None or not rows[0]:
                continue
            if (2 if isinstance(step.call.recipe, Folding) else LEAST) <= rows[1] <= LONG:
                self._around(i, *rows)
        return [step for step in self.steps if step is not None], self.number

    def _around(self, i: int, outer: int, n: int) -> None:
        """Make one kernel of step ``i`` and what can be taken in around it, where that pays."""
        seen: dict[int, Part | None] = {}
        group = _Group(outer, n)
        waiting = [i]
        while waiting:
            joined = [place for place in waiting if self._joins(place, group, seen)]
            if not joined:
                break
            near = {
                self.places[id(step)]
                for place in joined
                for a in group.parts[place].arrays()
                if group.binds(a) and len(self.users[a.use.buffer.number]) <= POPULAR
                for step in self.users[a.use.buffer.number]
            }
            waiting = sorted(p for p in {*waiting, *near} if p not in group.parts)
        if len(group.parts) > 1:
            made = self._kernel(group)
            if made is not None:
                self._replace(group, made)

    def _joins(self, place: int, group: _Group, seen: dict[int, Part | None]) -> bool:
        if not group.near(place):
            return False
        if place not in seen:
            step = self.steps[place]
            assert step is not None
            found = part(step, group.outer, group.n)
            mine = found is not None and all(w.use.buffer.kind == "temporary" for w in found.writes)
            seen[place] = found if mine else None
        p = seen[place]
        if p is None or not group.takes(place, p) or self._behind({*group.parts, place}) is None:
            return False
        group.add(place, p)
        return True

    def _behind(self, places: set[int]) -> list[int] | None:
        """The steps among the group's that have to wait for it; None where the group has to wait for one of those."""
        read, wrote = (
            {False: set[int](), True: set[int]()},
            {False: set[int](), True: set[int]()},
        )  # by the group, and behind it
        found = []
        for i in range(min(places), max(places) + 1):
            step = self.steps[i]
            if step is None:
                continue
            reads, writes = _touched(step)
            late = bool(reads & wrote[True] or writes & (wrote[True] | read[True]))
            if i in places:
                if late:
                    return None
            elif late or reads & wrote[False] or writes & (wrote[False] | read[False]):
                found.append(i)
                late = True
            else:
                continue
            read[late] |= reads
            wrote[late] |= writes
        return found

    def _kernel(self, group: _Group) -> Step | None:
        """The group as one step, or None where it would be one pass over the rows, as other kernels are."""
        plan = Plan()
        operands: dict[str, tuple[str, Any]] = {}  # name -> (kind, use or number or table of beginnings)
        names: dict[Any, str] = {}
        outputs: dict[tuple, tuple[Array, str]] = {}  # by the array: what is written last stays
        members = [group.parts[place] for place in sorted(group.parts)]
        mine = {id(p.step) for p in members}
        for p in members:
            read = []
            for r in p.reads:
                key = r.key if isinstance(r, Array) else _number_key(*r)
                if key not in names:
                    names[key] = self._operand(plan, operands, r, group)
                read.append(names[key])
            for w, name in zip(p.writes, p.tell(plan, read), strict=True):
                names[w.key] = name
                n = w.use.buffer.number
                if n in self.outside or any(id(s) not in mine for s in self.users[n]):
                    outputs[w.key] = (w, name)
        wanted = [name for _, name in outputs.values()]
        if not wanted or plan.passes(wanted) < 2:
            return None
        return self._step(group, members, plan, operands, list(outputs.values()))

    @staticmethod
    def _operand(plan: Plan, operands: dict[str, tuple[str, Any]], r: Any, group: _Group) -> str:
        name = f"a{len(operands)}"
        if not isinstance(r, Array):
            operands[name] = ("number", r)
            return plan.operand(name, True, r[1])
        walk, several = r.walk, group.n if r.walk.inner else 1
        if walk == _dense(group.outer, several):
            kind = "full" if walk.inner else "row"
        elif not any(walk.strides):
            kind = "col" if walk.inner else "one"
        else:
            kind = "line" if walk.inner else "spot"
        operands[name] = (kind, r)
        return plan.operand(name, not walk.inner, r.use.dtype.name)

    def _step(
        self,
        group: _Group,
        members: list[Part],
        plan: Plan,
        operands: dict[str, tuple[str, Any]],
        outputs: list[tuple[Array, str]],
    ) -> Step:
        stored = {f"o{k}": (array, name) for k, (array, name) in enumerate(outputs)}
        full = {o: name for o, (array, name) in stored.items() if array.walk.inner}
        rows = {o: name for o, (array, name) in stored.items() if not array.walk.inner}
        steps, kept = plan.steps(full, rows)
        used = set(plan.needed([*full.values(), *rows.values()]))
        kinds: dict[str, str] = {}
        dtypes = dict(kept)
        given: list[Any] = []
        for name, (kind, r) in operands.items():
            if name not in used:
                continue
            kinds[name] = kind
            dtypes[name] = plan.values[name].dtype
            given.append(r.use if isinstance(r, Array) else r[0])
            if kind in ("line", "spot"):
                kinds[begins(name)], dtypes[begins(name)] = "row", "int64"
                given.append(self._beginnings(r.walk))
        written = {o: "full" if o in full else "row" for o in stored}
        dtypes |= {o: array.use.dtype.name for o, (array, _) in stored.items()}
        longest = 1 << (group.n - 1).bit_length() if kept else 0
        source = row_kernel(kinds, written, steps, dtypes, None, False, kept=list(kept), longest=longest)
        types = [dtypes[p] if kind == "number" else f"{dtypes[p]}[:]" for p, kind in {**kinds, **written}.items()]
        names = [p.step.name for p in members]
        title = "+".join(names[:4]) + (f"+{len(names) - 4} more" if len(names) > 4 else "")
        entry = launch.entry(
            source,
            "kernel",
            ("int64", "int64", "int64", *types),
            title,
            len(stored),
            split=split_rows([*kinds.values(), *written.values()], steps),
        )
        everything = [group.outer, group.n, 1, *given, *[array.use for array, _ in stored.values()]]
        n = len(everything)
        return Step(
            launch.described(entry, title, len(stored)), everything, tuple(range(n - len(stored), n)), members[0].step.line
        )

    def _beginnings(self, walk: Walk) -> Use:
        """A table of where rows begin."""
        table = reduce(np.add.outer, [np.arange(n) * s for n, s in zip(walk.sizes, walk.strides, strict=True)]).reshape(-1)
        self.number += 1
        return Use(Buffer(self.number - 1, table, "constant"), 0, table.size, table.dtype)

    def _replace(self, group: _Group, made: Step) -> None:
        places = set(group.parts)
        first, last = min(places), max(places)
        behind = self._behind(places)
        assert behind is not None
        late = set(behind)
        between = [i for i in range(first, last + 1) if self.steps[i] is not None and i not in places]
        order = [self.steps[i] for i in between if i not in late] + [made] + [self.steps[i] for i in behind]
        for p in group.parts.values():
            for n in {u.buffer.number for u, _ in p.step.uses()}:
                self.users[n].remove(p.step)
        for n in {u.buffer.number for u, _ in made.uses()}:
            self.users.setdefault(n, []).append(made)
        self.steps[first : last + 1] = [*order, *[None] * (last + 1 - first - len(order))]
        for i, step in enumerate(order, first):
            self.places[id(step)] = i


_ORDER = -1  #: stands for all that is seen from outside: checks happen in the order of what they let pass


def _touched(step: Step) -> tuple[set[int], set[int]]:
    """Buffers that a step reads and writes."""
    reads = {u.buffer.number for u, written in step.uses() if not written}
    writes = {u.buffer.number for u, written in step.uses() if written}
    if step.check is not None or any(written and u.buffer.kind != "temporary" for u, written in step.uses()):
        writes.add(_ORDER)
    return reads, writes


def _number_key(value: Any, dtype: str) -> tuple:
    return (id(value), dtype) if isinstance(value, _Slot) else (type(value), repr(value), dtype)


def fuse_rows(steps: list[Step], outside: set[int], number: int) -> tuple[list[Step], int]:
    """(the steps with those along rows fused, the first unused number of a buffer). ``outside``: buffers read after the program."""
    return _Work(steps, outside, number).done()
