"""Fusing: neighbouring pointwise kernels and reductions over one shape become one kernel; what only they pass on is never stored.

A pointwise step knows the formula that it was made from (`ops.core.entries.Recipe`). Several of them are run one after the other on
symbols; the kernel that comes out reads every array once. A step joins an earlier group when all that it depends on has been
computed by then, when it shares data with the group, and when both walk shared memory in the same order of elements, perhaps
after one of them has been looped over the other's shape.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace

from ..ir import Step
from .buffer_reuse import Lives
from .fused_kernel import merged
from .fusion_group import Group
from .pointwise_step import Member, fold_member, member


def fuse_loops(steps: list[Step], live_out: Collection[int], numbers: Iterator[int]) -> list[Step]:
    """Return the steps with pointwise ones and reductions fused; the formulas of earlier passes become kernels."""
    places = _Places()
    for step in steps:
        places.put(step)
    return places.steps(live_out, numbers)


class _Places:
    """Steps and groups in the order in which they will run."""

    def __init__(self) -> None:
        self.places: list[Step | Group | None] = []  # None: a group that has moved on to what reads it
        self.open: list[tuple[int, Group]] = []
        self.wrote: dict[int, int] = {}  # buffer -> place of its last write
        self.read: dict[int, int] = {}  # buffer -> last place that read it
        self.wall = -1  # the place of the last check: nothing may move from behind it to before

    def put(self, step: Step) -> None:
        """Let a step be the last, or a member of a group."""
        m = member(step) or fold_member(step)
        if m is None:
            at = len(self.places)
            self.places.append(step)
            if step.check is not None:
                self.wall = at
        else:
            at = -1 if step.pinned else self._earlier(m)
            if at < 0:
                at = self._now(m)
        for use, written in step.uses():
            n = use.buffer.number
            if written:
                self.wrote[n] = max(self.wrote.get(n, -1), at)
            self.read[n] = max(self.read.get(n, -1), at)

    def _earlier(self, m: Member) -> int:
        """Return the place of the latest group that has taken the member in, or -1."""
        after = self.wall
        for use, written in m.step.uses():
            n = use.buffer.number
            after = max(after, self.wrote.get(n, -1), self.read.get(n, -1) if written else -1)
        for place, group in reversed(self.open):
            if place < after:
                break
            if group.join(m):
                return place
        return -1

    def _now(self, m: Member) -> int:
        """Return the place of a group of its own, or of one that has moved here."""
        at = len(self.places)
        for k in range(len(self.open) - 1, -1, -1):
            place, group = self.open[k]
            if group.feeds(m) and self._idle(group, place) and group.join(m):
                self.places[place] = None
                self.wrote.update(dict.fromkeys(group.written, at))
                self.read.update(dict.fromkeys(group.walks | group.ends, at))
                del self.open[k]
                break
        else:
            group = Group(m.shape)
            group.add(m)
        self.open.append((at, group))
        self.places.append(group)
        return at

    def _idle(self, group: Group, place: int) -> bool:
        """Return whether a group may as well run later: nobody has used what it writes, or written what it reads."""
        if any(u.buffer.kind != "temporary" for m in group.members for u, _, _ in m.outputs):
            return False
        if any(self.wrote.get(n, -1) > place for n in group.walks | group.ends):
            return False
        return all(self.read[n] <= place for n in group.written)

    def steps(self, live_out: Collection[int], numbers: Iterator[int]) -> list[Step]:
        """Return the steps that come out. ``numbers``: of buffers that are unused."""
        placed = [[] if p is None else [p] if isinstance(p, Step) else [m.step for m in p.members] for p in self.places]
        lives = Lives(placed, live_out)
        found: list[Step] = []
        for i, p in enumerate(self.places):
            if isinstance(p, Step):
                found.append(p)
            elif p is not None and p.compiled and not p.long:
                found.append(p.members[0].step)
            elif p is not None:
                lasting = {u.buffer.number for m in p.members for u, _, _ in m.outputs if u.buffer.kind != "temporary"}
                needed = {n for n in p.written if n in live_out or n in lasting or not lives.first[n] == i == lives.last[n]}
                found += merged(p, needed, numbers, lives, i) or [s for m in p.members for s in _apart(m, numbers)]
        return lives.settled(found)


def _apart(m: Member, numbers: Iterator[int]) -> list[Step]:
    """Return the steps of a member by itself."""
    if m.step.call.entry is not None:
        return [m.step]
    alone = Group(m.shape)
    alone.add(replace(m, epilogue=False))
    return merged(alone, alone.written, numbers) or [m.step]
