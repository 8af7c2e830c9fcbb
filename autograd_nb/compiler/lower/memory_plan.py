"""Where temporaries lie in the one block of memory that a program keeps: by their lifetimes."""

from __future__ import annotations

import numpy as np

from ..ir import InvalidProgram, Step

ALIGN = 64
_ENDLESS = 1 << 60  #: bytes above all that is placed


def plan(steps: list[Step], fixed: set[int]) -> tuple[dict[int, int], int, int]:
    """Return (offset of each temporary in the arena, the arena's bytes, the bytes without sharing).

    The largest are placed first: small ones that come earlier cannot break up the room of large ones. Where that takes more than
    what is alive at one time, those are tried first that take most room and time together.
    """
    first: dict[int, int] = {}
    last: dict[int, int] = {}
    sizes: dict[int, int] = {}
    for i, step in enumerate(steps):
        for u, _ in step.uses():
            b = u.buffer
            if b.kind == "temporary" and b.number not in fixed:
                first.setdefault(b.number, i)
                last[b.number] = i
                sizes[b.number] = -(-max(b.nbytes, 1) // ALIGN) * ALIGN
    change = np.zeros(len(steps) + 1, np.int64)  # of the bytes that are alive, from one step to the next
    for n, size in sizes.items():
        change[first[n]] += size
        change[last[n] + 1] -= size
    offsets, total = _placed(sorted(sizes, key=lambda n: (-sizes[n], first[n])), sizes, first, last)
    if total > change.cumsum().max():
        other = _placed(sorted(sizes, key=lambda n: -sizes[n] * (last[n] - first[n] + 1)), sizes, first, last)
        offsets, total = min((offsets, total), other, key=lambda found: found[1])
    return offsets, total, sum(sizes.values())


def _placed(order: list[int], sizes: dict[int, int], first: dict[int, int], last: dict[int, int]) -> tuple[dict[int, int], int]:
    """Return (offsets, bytes) where buffers are put one after the other into the smallest gap among those that live at the same time."""
    begins, ends, lows, highs = (np.empty(len(order), np.int64) for _ in range(4))
    offsets: dict[int, int] = {}
    for i, n in enumerate(order):
        together = (begins[:i] <= last[n]) & (ends[:i] >= first[n])
        by_place = lows[:i][together].argsort()
        floors = np.append(0, np.maximum.accumulate(highs[:i][together][by_place]))
        gaps = np.append(lows[:i][together][by_place], _ENDLESS) - floors
        gaps[gaps < sizes[n]] = _ENDLESS + 1
        offsets[n] = at = int(floors[gaps.argmin()])
        begins[i], ends[i], lows[i], highs[i] = first[n], last[n], at, at + sizes[n]
    return offsets, int(highs.max(initial=0))


def verify_plan(steps: list[Step], offsets: dict[int, int]) -> None:
    """Check that no step uses a temporary whose memory another one has been written to meanwhile, or writes over one that it uses.

    Errors: InvalidProgram, which names the step and both buffers.
    """
    ends: dict[int, int] = {}
    freed: dict[int, int] = {}  # buffer -> the one that has its memory now
    for i, step in enumerate(steps):
        uses = [(u.buffer, written) for u, written in step.uses() if u.buffer.number in offsets]
        for b, written in uses:
            ends[b.number] = offsets[b.number] + b.nbytes
            if written:
                low, high = offsets[b.number], ends[b.number]
                freed.update({n: b.number for n, end in ends.items() if n != b.number and offsets[n] < high and low < end})
        for b, _ in uses:
            if b.number in freed:
                raise InvalidProgram(f"memory plan: step {i} ({step.name}) uses {b!r}, whose memory is that of t{freed[b.number]} by now")
