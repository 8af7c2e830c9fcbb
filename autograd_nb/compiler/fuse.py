"""Fusing: neighbouring pointwise kernels and reductions over one shape become one kernel; what only they pass on is never stored.

A pointwise step knows the formula that it was made from (`ops.plans.Recipe`). Several of them are run one after the other on
symbols; the kernel that comes out reads every array once. A step joins an earlier group when all that it depends on has been
computed by then, when it shares data with the group, and when both walk shared memory in the same order of elements, perhaps
after one of them has been looped over the other's shape.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import count

from .again import recompute
from .capture import Step
from .early import advance
from .groups import Group
from .members import fold_member, member
from .merge import merged
from .placing import place_outputs
from .products import absorb


def fuse(steps: list[Step], outside: set[int], number: int) -> list[Step]:
    """The steps with pointwise ones fused. ``outside``: buffers that are read after the program; ``number``: the first unused
    number of a buffer."""
    steps = place_outputs(steps, outside)
    steps, number = recompute(steps, outside, number)
    steps, number = advance(steps, outside, number)
    steps = absorb(steps, outside)
    numbers = count(number)
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
        m = member(step) or fold_member(step)
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
                if g.join(m):
                    joined = place, g
                    break
            if joined is None:
                g = None
                for k in range(len(open_groups) - 1, -1, -1):
                    place, made = open_groups[k]
                    if made.feeds(m) and _idle(made, place, wrote, read) and made.join(m):
                        g, places[place] = made, None
                        wrote.update(dict.fromkeys(g.written, at))
                        read.update(dict.fromkeys(g.walks | g.ends, at))
                        del open_groups[k]
                        break
                if g is None:
                    g = Group(m.shape)
                    g.add(m)
                open_groups.append((at, g))
                places.append(g)
            else:
                at, g = joined
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
        elif p.compiled:
            found.append(p.members[0].step)
        else:
            needed = {
                n for n in p.written
                if n in outside or users[n] != {i} or any(u.buffer.kind != "temporary" for m in p.members for u, _, _ in m.outputs if u.buffer.number == n)
            }  # fmt: skip
            fused = merged(p, needed, numbers)
            if fused is not None:
                found += fused
                continue
            for m in p.members:  # apart
                if m.step.call.entry is None:
                    alone = Group(m.shape)
                    alone.add(replace(m, late=False))
                    found += merged(alone, alone.written, numbers) or [m.step]
                else:
                    found.append(m.step)
    return found


def _idle(group: Group, place: int, wrote: dict[int, int], read: dict[int, int]) -> bool:
    """Whether a group may as well run later: nobody has used what it writes, or written what it reads."""
    if any(u.buffer.kind != "temporary" for m in group.members for u, _, _ in m.outputs):
        return False
    return all(wrote.get(n, -1) <= place for n in group.walks | group.ends) and all(read[n] <= place for n in group.written)
