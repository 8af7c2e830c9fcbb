"""Big arrays of the forward pass that are quickly computed once more, from what is there anyway, are not kept for the backward pass.

The input of an activation or a layer norm is kept for its derivative. Its output is needed too, by the gradient of the weights
that it was multiplied by; there it is computed a second time, pointwise in one loop with the derivative. It is the training
step's peak of memory that this lowers, and every array in it is a little nearer.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterator

import numpy as np

from ..ir import Buffer, Step, users
from .pointwise_step import member
from .row_parts import by_elements

BIG = 1 << 17  #: bytes of an array that is worth it
LONG = 20  #: steps during which nobody would read it


def rematerialize(steps: list[Step], live_out: Collection[int], numbers: Iterator[int]) -> list[Step]:
    """Return the steps, of which those that are quickly repeated stand once more right before what reads their results much later."""
    uses = users(steps)
    before: dict[int, list[Step]] = {}  # place -> steps to stand before it
    moved: set[int] = set()
    for i, step in enumerate(steps):
        if not _cheap(step) or any(u.buffer.number in moved for u, _ in step.uses()):
            continue
        outputs = {u.buffer.number: u.buffer for u, written in step.uses() if written}
        if any(
            b.kind != "temporary" or n in live_out or uses[n][0] != (i, True) or (i, False) in uses[n]
            for n, b in outputs.items()
        ):
            continue
        if any(written for n in outputs for _, written in uses[n][1:]):
            continue
        at = _late_reader(i, [n for n, b in outputs.items() if b.nbytes >= BIG], uses)
        if at is None or not all(_there(u.buffer, i, at, uses) for u, written in step.uses() if not written):
            continue
        twin = by_elements(step) or step.copy()
        twin.pinned = True
        news: dict[int, Buffer] = {}
        for u, written in twin.uses():
            if written:
                if u.buffer.number not in news:
                    news[u.buffer.number] = _like(u.buffer, next(numbers))
                u.buffer = news[u.buffer.number]
        for later in steps[at:]:
            for u, _ in later.uses():
                new = news.get(u.buffer.number)
                if new is not None and u.buffer.nbytes >= BIG:
                    u.buffer = new
        before.setdefault(at, []).append(twin)
        moved |= outputs.keys()
    return [s for i, step in enumerate(steps) for s in (*before.get(i, ()), step)]


def _cheap(step: Step) -> bool:
    """Return whether a step takes about as long as reading and writing its arrays, with what else it has found to read."""
    if step.check is not None or step.call.over is not None:
        return False
    return member(step) is not None or by_elements(step) is not None


def _late_reader(i: int, big: list[int], uses: dict[int, list[tuple[int, bool]]]) -> int | None:
    """Return the first reader of the big outputs after a long time in which nobody reads them."""
    if len(big) != 1:
        return None
    places = [i, *(p for p, _ in uses[big[0]][1:])]
    gap, at = max(((b - a, b) for a, b in itertools.pairwise(places)), default=(0, 0))
    return at if gap >= LONG and len(places) > 2 and at != places[1] else None


def _there(buffer: Buffer, i: int, at: int, uses: dict[int, list[tuple[int, bool]]]) -> bool:
    """Return whether what step ``i`` read is still there, and would be anyway, at a later place."""
    mine = uses[buffer.number]
    if any(written and i <= p < at for p, written in mine):
        return False
    return buffer.kind != "temporary" or any(p >= at and not written for p, written in mine)


def _like(buffer: Buffer, number: int) -> Buffer:
    """Return a new temporary of the same size."""
    dtype = buffer.array.dtype
    size = max(buffer.nbytes // dtype.itemsize, 1)
    return Buffer(number, np.lib.stride_tricks.as_strided(np.empty(1, dtype), (size,), (0,)), "temporary")
