"""The order of a group's calls, as one number that each call goes into: what ranks compare from time to time, while their programs go on.

A call whose kind is known is compared with nobody before it is sent. So ranks that make known calls in another order than others may be given garbage:
the watching threads send one another the number behind the last call, and the first that differs is an error on the ranks that see it. What compiled
programs call by themselves does not go in: their calls are compared when they are captured.
"""

from __future__ import annotations

import hashlib
from array import array
from collections import deque
from typing import Any

KEPT = 1 << 13  #: calls whose numbers are kept, for ranks that are behind; of a power of two
SHOWN = 16  #: calls of which the others are told what they were
_MASK, _FACTOR = (1 << 64) - 1, 0x9E3779B97F4A7C15


class Trail:
    """One group's: ``numbers[n]`` after its n-th call, ``last`` of which is the latest."""

    ranks: tuple[int, ...]
    last: int
    first: int
    agreed: int
    told: int
    next: int

    def __init__(self, ranks: tuple[int, ...], own: int):
        self.ranks, self.last, self.first, self.agreed, self.told = ranks, 0, 1, 0, 0
        self.next = ranks[(ranks.index(own) + 1) % len(ranks)]  # who is told
        self.closed = False
        self._number = 0
        self._numbers = array("Q", bytes(8 * KEPT))
        self._digests: dict[Any, int] = {}
        self._texts: dict[int, str] = {0: "no call"}

    def add(self, seq: int, kind: Any, name: str, text: str) -> None:
        """Note a call, the group's ``seq``-th."""
        digest = self._digests.get(kind)
        if digest is None:
            digest = self._digests[kind] = _digest(kind)
            self._texts[digest] = f"{name} {text}".rstrip()
        self._number = self._numbers[seq & (KEPT - 1)] = (self._number * _FACTOR + digest) & _MASK
        self.last = seq

    def number(self, seq: int) -> int | None:
        """Return the number behind a call, None where it has not been made yet, or too long ago."""
        return self._numbers[seq & (KEPT - 1)] if self.last - KEPT < seq <= self.last else None

    def said(self) -> tuple[int, list[tuple[int, str]]]:
        """Return what the others are told: the last call's place, and the numbers and texts of the last few calls."""
        last, found = self.last, []
        for seq in range(max(last - SHOWN, 0) + 1, last + 1):
            number, before = self._numbers[seq & (KEPT - 1)], self._numbers[(seq - 1) & (KEPT - 1)] if seq > 1 else 0
            found.append((number, self._texts.get((number - before * _FACTOR) & _MASK, "a call")))
        return last, found

    def text(self, seq: int) -> str:
        """Return what this rank's call was in a place."""
        before = self.number(seq - 1) if seq > 1 else 0
        number = self.number(seq)
        return "a call" if number is None or before is None else self._texts.get((number - before * _FACTOR) & _MASK, "a call")

    def other_than(self, seq: int, kind: Any, last: int, calls: list[tuple[int, str]]) -> str:
        """Return what another rank's call was in the place of one that this rank waits for, "" where it was the same, or is not known."""
        at, before = seq - 1 - (last - len(calls)), self.number(seq - 1) if seq > 1 else 0
        if seq != self.last + 1 or not 0 <= at < len(calls) or (at and calls[at - 1][0] != before) or before is None:
            return ""
        number, text = calls[at]
        found = _placed(text, seq) if number != (before * _FACTOR + _digest(kind)) & _MASK else ""
        return found if seq == self.last + 1 else ""  # it may have ended meanwhile

    def difference(self, rank: int, other: int, last: int, calls: list[tuple[int, str]]) -> str:
        """Return the first difference from another rank's calls, "" where there is none."""
        if self.number(last) == calls[-1][0]:
            self.agreed = max(self.agreed, last)
            return ""
        begin = last - len(calls) + 1
        for seq, (number, text) in enumerate(calls, begin):
            after = seq == self.agreed + 1 or (seq > begin and self.number(seq - 1) == calls[seq - 1 - begin][0])
            if after and self.number(seq) != number:
                return f"rank {other}: {_placed(text, seq)}; rank {rank}: {_placed(self.text(seq), seq)}"
        return f"rank {other}'s and rank {rank}'s calls differ somewhere from #{self.agreed + 1} to #{begin}; TORCH_DISTRIBUTED_DEBUG=DETAIL names the first"


def _digest(kind: Any) -> int:
    return int.from_bytes(hashlib.blake2b(repr(kind).encode(), digest_size=8).digest(), "big")


def _placed(text: str, seq: int) -> str:
    """Return "all_reduce #7 float64[1000] SUM"."""
    name, _, rest = text.partition(" ")
    return f"{name} #{seq} {rest}".rstrip()


class Trails:
    """Those of all groups by their names, also of the last few that have ended, whose other ranks may not have compared theirs yet."""

    def __init__(self) -> None:
        self.by_name: dict[str, Trail] = {}
        self._ended: deque[str] = deque()

    def begin(self, name: str, ranks: tuple[int, ...], own: int) -> Trail:
        """Begin the trail of a new group."""
        self.by_name[name] = made = Trail(ranks, own)
        return made

    def end(self, name: str) -> None:
        """Keep that of a group that ends for a while."""
        self._ended.append(name)
        if len(self._ended) > SHOWN:
            self.by_name.pop(self._ended.popleft(), None)


trails: Trails = Trails()
