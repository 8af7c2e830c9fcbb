"""Row fusion: neighbouring steps that walk the same rows become one kernel of a few passes over each row.

Softmax, norms and losses written by hand are reductions along the last dims between pointwise steps over the same elements; the
library's own row kernels have neighbours of that kind too. A step that works along rows takes in, one after the other, those steps
around it that share arrays with it and can run at the same time: no path of dependencies leads out of the group and back into it.
What only the group's members read is not stored.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from functools import reduce
from typing import Any

import numpy as np

from ... import launch
from ...codegen.templates.row import begins, row_kernel
from ...ops.core.reduction_kernel import Folding
from ...ops.core.row_kernel import split_rows
from ..ir import Buffer, Step, Use
from ..live_numbers import _Slot
from . import rematerialize
from .row_parts import Array, Part, Walk, dense_walk, part, rows_of
from .row_plan import Plan

LEAST = 16  #: elements of a row from which what else is one loop over all elements is as quick by rows
MOST_STEPS = 48
MOST_ARRAYS = 24
LONG = 1 << 16  #: elements of a row that passes may keep in the processor's caches
POPULAR = 16  #: users of an array, of which only so many are asked whether they would join


@dataclass
class _Group:
    """Parts that will be one kernel over ``outer`` rows of ``n`` elements."""

    outer: int
    n: int
    parts: dict[int, Part] = field(default_factory=dict)  # by the step's place
    events: dict[int, set[tuple]] = field(default_factory=dict)  # buffer -> (place, whether it is written, how it is walked)

    def takes(self, place: int, p: Part) -> bool:
        """Return whether a part may join the group."""
        if len(self.parts) >= MOST_STEPS or len(self.events) > MOST_ARRAYS:
            return False
        mine = _events(place, p)
        for n, events in mine.items():
            everyone = sorted(events | self.events.get(n, set()), key=lambda event: event[:2])
            # what is written is walked in one way only, and not read before: passes of one kernel do not wait for one another
            if any(written for _, written, _ in everyone) and (not everyone[0][1] or len({key for _, _, key in everyone}) > 1):
                return False
        if not self.parts:
            return True
        known = {key for events in self.events.values() for _, _, key in events}
        shared = {a.use.buffer.number for a in p.arrays() if self.binds(a) and a.key in known}
        # what only reads the same elements saves too little for a larger kernel, unless it has passes of its own over them
        along = rows_of(p.step) is not None
        return any(along or written for n in shared for _, written, _ in mine[n] | self.events[n])

    def near(self, place: int) -> bool:
        """Return whether a step stands so close that nothing lives much longer for being computed elsewhere."""
        return not self.parts or min(abs(place - other) for other in self.parts) < rematerialize.LONG

    def binds(self, a: Array) -> bool:
        """Return whether those who use an array walk rows together: it is not the same for all of them."""
        return self.outer == 1 or any(a.walk.strides)

    def add(self, place: int, p: Part) -> None:
        """Take a part into the group."""
        self.parts[place] = p
        for n, events in _events(place, p).items():
            self.events.setdefault(n, set()).update(events)


def _events(place: int, p: Part) -> dict[int, set[tuple[Any, ...]]]:
    """Return what a part does with each buffer; it reads before it writes."""
    found: dict[int, set[tuple[Any, ...]]] = {}
    for written, arrays in ((False, (r for r in p.reads if isinstance(r, Array))), (True, p.writes)):
        for a in arrays:
            found.setdefault(a.use.buffer.number, set()).add((place, written, a.key))
    return found


class _Work:
    """Steps of which some become one; what is gone leaves a hole, so that places stay what they are."""

    def __init__(self, steps: list[Step], live_out: Collection[int], numbers: Iterator[int]):
        self.steps: list[Step | None] = list(steps)
        self.live_out, self.numbers = live_out, numbers
        self.users: dict[int, list[Step]] = {}
        self.places = {id(step): i for i, step in enumerate(steps)}
        for step in steps:
            for n in {u.buffer.number for u, _ in step.uses()}:
                self.users.setdefault(n, []).append(step)

    def done(self) -> list[Step]:
        """Return the steps that come out."""
        for i in range(len(self.steps)):
            step = self.steps[i]
            if step is None or (rows := rows_of(step)) is None or not rows[0]:
                continue
            if (2 if isinstance(step.call.recipe, Folding) else LEAST) <= rows[1] <= LONG:
                self._around(i, *rows)
        return [step for step in self.steps if step is not None]

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
        if p is None or not group.takes(place, p):
            return False
        places = {*group.parts, place}
        behind = self._behind(places)
        pinned = [other for other in places if (step := self.steps[other]) is not None and step.pinned]
        if behind is None or any(waits < other for other in pinned for waits in behind):
            return False
        group.add(place, p)
        return True

    def _behind(self, places: set[int]) -> list[int] | None:
        """Return the steps among the group's that have to wait for it; None where the group has to wait for one of those."""
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
            waits = bool(reads & wrote[True] or writes & (wrote[True] | read[True]))
            if i in places:
                if waits:
                    return None
            elif waits or reads & wrote[False] or writes & (wrote[False] | read[False]):
                found.append(i)
                waits = True
            else:
                continue
            read[waits] |= reads
            wrote[waits] |= writes
        return found

    def _kernel(self, group: _Group) -> Step | None:
        """Return the group as one step, or None where it would be one pass over the rows, as other kernels are."""
        plan = Plan()
        operands: dict[str, tuple[str, Any]] = {}  # name -> (kind, use or number or table of beginnings)
        names: dict[Any, str] = {}
        outputs: dict[tuple[Any, ...], tuple[Array, str]] = {}  # by the array: what is written last stays
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
                if n in self.live_out or any(id(s) not in mine for s in self.users[n]):
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
        if walk == dense_walk(group.outer, several):
            kind = "full" if walk.inner else "row"
        elif not any(walk.strides):
            kind = "col" if walk.inner else "one"
        else:
            kind = "line" if walk.inner else "spot"
        operands[name] = (kind, r)
        return plan.operand(name, not walk.inner, r.use.dtype.name)

    def _step(
        self, group: _Group, members: list[Part], plan: Plan, operands: dict[str, tuple[str, Any]],
        outputs: list[tuple[Array, str]],
    ) -> Step:  # fmt: skip
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
        """Return a table of where rows begin."""
        table = reduce(np.add.outer, [np.arange(n) * s for n, s in zip(walk.sizes, walk.strides, strict=True)]).reshape(-1)
        return Use(Buffer(next(self.numbers), table, "constant"), 0, table.size, table.dtype)

    def _replace(self, group: _Group, made: Step) -> None:
        places = set(group.parts)
        first, last = min(places), max(places)
        behind = self._behind(places)
        assert behind is not None
        waiting = set(behind)
        between = [i for i in range(first, last + 1) if self.steps[i] is not None and i not in places]
        order = [self.steps[i] for i in between if i not in waiting] + [made] + [self.steps[i] for i in behind]
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
    """Return the buffers that a step reads and writes."""
    reads = {u.buffer.number for u, written in step.uses() if not written}
    writes = {u.buffer.number for u, written in step.uses() if written}
    if step.check is not None or any(written and u.buffer.kind != "temporary" for u, written in step.uses()):
        writes.add(_ORDER)
    return reads, writes


def _number_key(value: Any, dtype: str) -> tuple[Any, ...]:
    return (id(value), dtype) if isinstance(value, _Slot) else (type(value), repr(value), dtype)


def fuse_rows(steps: list[Step], live_out: Collection[int], numbers: Iterator[int]) -> list[Step]:
    """Return the steps with those along rows fused."""
    return _Work(steps, live_out, numbers).done()
