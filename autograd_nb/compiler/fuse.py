"""Fusing: neighbouring pointwise kernels over one shape become one kernel, and what only they pass on is never stored.

A pointwise step knows the formula that it was made from (`ops.plans.Recipe`). Several of them are run one after the other on
symbols; the kernel that comes out reads every array once. A step joins an earlier group when all that it depends on has been
computed by then, when it shares data with the group, and when both walk shared memory in the same order of elements, perhaps
after one of them has been looped over the other's shape.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from .. import launch
from ..codegen.loops import Input
from ..ops.plans import pointwise_entry
from ..shapes import Layout
from .again import recompute
from .capture import Buffer, Step, Use
from .early import advance
from .members import Member, member, reshaped, walk
from .placing import place_outputs
from .products import absorb
from .slots import _Slot

MOST_STEPS = 48
MOST_ARRAYS = 24


@dataclass
class Group:
    """Pointwise members that will be one kernel."""

    shape: tuple[int, ...]
    members: list[Member] = field(default_factory=list)
    walks: dict[int, set] = field(default_factory=dict)  # buffer -> the ways in which it is walked
    written: set[int] = field(default_factory=set)

    def fitting(self, m: Member) -> Member | None:
        """The member as it can be computed in the same loop, or None: over the group's shape, or the group over the member's."""
        if m.shape == self.shape:
            return m if self._takes(m) else None
        if not any(u.buffer.number in self.walks for u, _ in _arrays(m)):
            return None
        other = reshaped(m, self.shape)
        if other is not None:
            return other if self._takes(other) else None
        turned = Group(m.shape)
        for n in self.members:
            other = reshaped(n, m.shape)
            if other is None:
                return None
            turned.add(other)
        if not turned._takes(m):
            return None
        self.shape, self.members, self.walks, self.written = turned.shape, turned.members, turned.walks, turned.written
        return m

    def _takes(self, m: Member) -> bool:
        if len(self.members) >= MOST_STEPS:
            return False
        shared = False
        mine = {o[0].buffer.number for o in m.outputs}
        for use, layout in _arrays(m):
            n = use.buffer.number
            if n in self.walks:
                shared = True
                if (n in self.written or n in mine) and self.walks[n] != {walk(use, layout, self.shape)}:
                    return False
        return shared and len(self.walks) <= MOST_ARRAYS

    def feeds(self, m: Member) -> bool:
        """Whether the member reads what the group writes."""
        return any(o.buffer.number in self.written for o, _ in m.inputs if isinstance(o, Use))

    def add(self, m: Member) -> None:
        """Take it in."""
        self.members.append(m)
        for use, layout in _arrays(m):
            self.walks.setdefault(use.buffer.number, set()).add(walk(use, layout, self.shape))
        self.written.update(u.buffer.number for u, _, _ in m.outputs)


def _arrays(m: Member) -> list[tuple[Use, Layout]]:
    return [(o, lay) for o, lay in m.inputs if isinstance(o, Use)] + [(u, lay) for u, lay, _ in m.outputs]


def fuse(steps: list[Step], outside: set[int], number: int) -> list[Step]:
    """The steps with pointwise ones fused. ``outside``: buffers that are read after the program; ``number``: the first unused
    number of a buffer."""
    steps = place_outputs(steps, outside)
    steps, number = recompute(steps, outside, number)
    steps, number = advance(steps, outside, number)
    steps = absorb(steps, outside)
    places: list[Step | Group | None] = []  # None: a group that has moved on to what reads it
    wrote: dict[int, int] = {}  # buffer -> place of its last write
    read: dict[int, int] = {}  # buffer -> last place that read it
    wall = -1  # the place of the last check: nothing may move from behind it to before
    open_groups: list[tuple[int, Group]] = []
    for step in steps:
        after = -1
        for use, written in step.uses():
            n = use.buffer.number
            after = max(after, wrote.get(n, -1))
            if written:
                after = max(after, read.get(n, -1))
        m = member(step)
        at = len(places)
        if m is None:
            places.append(step)
            if step.check is not None:
                wall = at
        else:
            joined = None
            for place, g in reversed(open_groups):
                if place < after or place < wall:
                    break
                fits = g.fitting(m)
                if fits is not None:
                    joined, m = (place, g), fits
                    break
            if joined is None:
                g = Group(m.shape)
                for k in range(len(open_groups) - 1, -1, -1):
                    place, made = open_groups[k]
                    if made.feeds(m) and _idle(made, place, wrote, read) and (fits := made.fitting(m)) is not None:
                        g, m, places[place] = made, fits, None
                        wrote.update(dict.fromkeys(g.written, at))
                        read.update(dict.fromkeys(g.walks, at))
                        del open_groups[k]
                        break
                open_groups.append((at, g))
                places.append(g)
            else:
                at, g = joined
            g.add(m)
        for use, written in step.uses():
            n = use.buffer.number
            if written:
                wrote[n] = max(wrote.get(n, -1), at)
            read[n] = max(read.get(n, -1), at)
    users: dict[int, set[int]] = {}
    for i, p in enumerate(places):
        for s in [] if p is None else [p] if isinstance(p, Step) else [m.step for m in p.members]:
            for use, _ in s.uses():
                users.setdefault(use.buffer.number, set()).add(i)
    found: list[Step] = []
    for i, p in enumerate(places):
        if p is None:
            continue
        if isinstance(p, Step):
            found.append(p)
        elif len(p.members) == 1 and p.members[0].step.call.entry is not None:
            found.append(p.members[0].step)
        else:
            needed = {
                n for n in p.written
                if n in outside or users[n] != {i} or any(u.buffer.kind != "temporary" for m in p.members for u, _, _ in m.outputs if u.buffer.number == n)
            }  # fmt: skip
            fused = _one(p, needed, number)
            if fused is not None:
                found.append(fused)
                number += 1
                continue
            for m in p.members:  # apart
                if m.step.call.entry is None:
                    alone = Group(p.shape)
                    alone.add(m)
                    found.append(_one(alone, alone.written, number) or m.step)
                    number += 1
                else:
                    found.append(m.step)
    return found


def _idle(group: Group, place: int, wrote: dict[int, int], read: dict[int, int]) -> bool:
    """Whether a group may as well run later: nobody has used what it writes, or written what it reads."""
    if any(u.buffer.kind != "temporary" for m in group.members for u, _, _ in m.outputs):
        return False
    return all(wrote.get(n, -1) <= place for n in group.walks) and all(read[n] <= place for n in group.written)


def _one(group: Group, needed: set[int], number: int) -> Step | None:
    """The group as one step that stores the buffers ``needed``."""
    shape = group.shape
    arrays: dict[tuple, tuple[Use, Layout]] = {}  # walk -> what is read from memory
    numbers: dict[Any, tuple[Any, str]] = {}
    stored: dict[tuple, tuple[Use, Layout, str]] = {}
    made: set[tuple] = set()
    for m in group.members:
        for o, lay in m.inputs:
            if isinstance(o, Use):
                w = walk(o, lay, shape)
                if w not in made:
                    arrays.setdefault(w, (o, lay))
            else:
                numbers.setdefault(_number_key(o, lay), (o, lay))
        for u, lay, dtype in m.outputs:
            w = walk(u, lay, shape)
            made.add(w)
            if u.buffer.number in needed:
                stored[w] = (u, lay, dtype)
    if not stored:
        return None
    walks, keys, outs = list(arrays), list(numbers), list(stored)

    def formula(*symbols: Any) -> list:
        values: dict[tuple, Any] = dict(zip(walks, symbols, strict=False))
        given = dict(zip(keys, symbols[len(walks) :], strict=True))
        for m in group.members:
            operands = []
            for (o, lay), dtype in zip(m.inputs, m.compute, strict=True):
                x = values[walk(o, lay, shape)] if isinstance(o, Use) else given[_number_key(o, lay)]
                operands.append(x.cast(dtype))
            trace = operands[0].trace if operands else symbols[0].trace
            for (u, lay, dtype), value in zip(m.outputs, m.step.call.recipe.formula(*operands), strict=True):
                values[walk(u, lay, shape)] = trace.as_sym(value).cast(dtype)
        return [values[w] for w in outs]

    inputs = [Input(w[3]) for w in walks] + [Input(dtype, scalar=True) for _, dtype in numbers.values()]
    compute = [i.dtype for i in inputs]
    names = [m.step.name for m in group.members]
    name = "+".join(names[:4]) + (f"+{len(names) - 4} more" if len(names) > 4 else "")
    try:
        entry, dims = pointwise_entry(
            name, formula, inputs, compute, [stored[w][2] for w in outs],
            [lay for _, lay in arrays.values()], [stored[w][1] for w in outs],
        )  # fmt: skip
    except Exception:  # a formula that does not run on these symbols: the kernels stay apart
        return None
    operands: list[Any] = [u for u, _ in arrays.values()] + [o for o, _ in numbers.values()] + [stored[w][0] for w in outs]
    if dims is not None:
        buffer = Buffer(number, dims, "constant")
        operands.insert(0, Use(buffer, 0, dims.size, dims.dtype))
    n = len(operands)
    call = launch.described(entry, name, len(outs))
    return Step(call, operands, tuple(range(n - len(outs), n)), group.members[0].step.line)


def _number_key(value: Any, dtype: str) -> tuple:
    return (id(value), dtype) if isinstance(value, _Slot) else (type(value), repr(value), dtype)
