"""Results that take the memory of an operand that nobody reads afterwards."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from ...shapes import Layout
from ..ir import Buffer, Step, Use
from .fusion_group import Group


class Lives:
    """Lives tell from which place to which a program's own buffers are in use, and which of them live on as others.

    ``places``: the steps at each place. ``live_out``: buffers that are read after the program.
    """

    def __init__(self, places: Iterable[list[Step]], live_out: Collection[int]):
        self.first: dict[int, int] = {}
        self.last: dict[int, int] = {}
        self.heirs: dict[int, Buffer] = {}  # buffer -> the one whose memory it takes
        given = set(live_out)  # and those that are read before they are written
        for at, steps in enumerate(places):
            for step in steps:
                for use, written in sorted(step.uses(), key=lambda u: u[1]):
                    n = use.buffer.number
                    if use.buffer.kind != "temporary" or (not written and n not in self.first):
                        given.add(n)
                    self.first.setdefault(n, at)
                    self.last[n] = at
        self.own = self.first.keys() - given

    def over(
        self, group: Group, at: int, arrays: Mapping[tuple[Any, ...], tuple[Use, Layout]], stored: Mapping[tuple[Any, ...], tuple[Use, Layout, str]]
    ) -> dict[int, int]:
        """Return which of ``stored`` may overwrite which of ``arrays`` (both by walk) in the kernel of the group at this place."""
        inside = group.ends.keys() | group.written
        dying: dict[tuple[Any, ...], list[int]] = {}
        for j, (walked, (use, _)) in enumerate(arrays.items()):
            if self._free(group, walked, at, self.last) and walked[0] not in inside:
                dying.setdefault(_memory(walked, use), []).append(j)
        found = {}
        for k, (walked, (use, *_)) in enumerate(stored.items()):
            fitting = dying.get(_memory(walked, use))
            if fitting and self._free(group, walked, at, self.first) and walked[0] not in group.ends:
                found[k] = fitting.pop(0)
        return found

    def _free(self, group: Group, walked: tuple[Any, ...], at: int, end: Mapping[int, int]) -> bool:
        """Return whether a buffer is the program's own, begins or ends here, and is walked in this one way."""
        n = walked[0]
        return n in self.own and end[n] == at and group.walks[n] == {walked}

    def inherit(self, heir: Buffer, old: Buffer) -> None:
        """Let a buffer have the memory of one that came before."""
        self.heirs[heir.number] = self.heirs.get(old.number, old)

    def settled(self, steps: list[Step]) -> list[Step]:
        """Return the steps with one buffer in place of all that have its memory."""
        return [self._settled(s) if any(u.buffer.number in self.heirs for u, _ in s.uses()) else s for s in steps]

    def _settled(self, step: Step) -> Step:
        step = step.copy()
        for u, _ in step.uses():
            u.buffer = self.heirs.get(u.buffer.number, u.buffer)
        return step


def _memory(walked: tuple[Any, ...], use: Use) -> tuple[Any, ...]:
    """Return what two uses of different buffers have in common where one may have the other's memory."""
    return *walked[1:], use.size, use.buffer.nbytes
