"""Passes before fusion: dead steps, constants, copies and common subexpressions go, checks come first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator
from typing import Any

from ..ir import Buffer, Step, Use, changes, grouped, needed
from ..live_numbers import _Slot


def remove_dead_steps(steps: list[Step], live_out: Collection[int], numbers: Iterator[int]) -> list[Step]:
    """Return the steps that something live out, a check, or memory that others see depends on."""
    return needed(steps, live_out)


def hoist_checks(steps: list[Step], live_out: Collection[int], numbers: Iterator[int]) -> list[Step]:
    """Return the steps with the checks, and what they read, before the first change of arguments and state, where that is possible.

    A check that fails there leaves nothing to be undone.
    """
    first = next((i for i, s in enumerate(steps) if changes(s)), len(steps))
    found, rest = steps[:first], steps[first:]
    for check in [s for s in rest if s.check is not None]:
        before = rest[: rest.index(check)]
        moved = _needed(check, before)
        if moved is not None:
            found += moved
            rest = [s for s in rest if not any(s is m for m in moved)]
    return found + rest


def _needed(check: Step, before: list[Step]) -> list[Step] | None:
    """Return the steps that have to run for a check, and itself; None where one of them changes arguments or state."""
    moved = [check]
    touched = {u.buffer.number for u, _ in check.uses()}
    written: set[int] = set()
    for s in reversed(before):
        if any(u.buffer.number in (touched if writes else written) for u, writes in s.uses()):
            if changes(s):
                return None
            moved.insert(0, s)
            for u, writes in s.uses():
                touched.add(u.buffer.number)
                if writes:
                    written.add(u.buffer.number)
    return moved


def _writers(steps: list[Step]) -> Counter[int]:
    """Return how many steps write each buffer; those count that are gone, as what stands in the captured memory is what the last one has left."""
    count: Counter[int] = Counter()
    captured: dict[int, int] = {}
    for step in steps:
        for b in {u.buffer for u, written in step.uses() if written}:
            count[b.number] += 1
            captured[b.number] = b.writers
    return count | Counter(captured)


def fold_constants(steps: list[Step], live_out: Collection[int], numbers: Iterator[int]) -> list[Step]:
    """Drop steps that read only constants and numbers that do not change: their results stand in the captured memory."""
    writers = _writers(steps)
    kept = []
    for step in steps:
        if step.check is None and step.writes and _fixed(step, writers, live_out):
            for u, written in step.uses():
                if written:
                    u.buffer.kind = "constant"
            continue
        kept.append(step)
    return kept


def compute_constants(steps: list[Step]) -> None:
    """Run the steps that `fold_constants` drops: in a graph from a file nothing stands in memory yet."""
    writers = _writers(steps)
    for step in steps:
        if step.check is None and step.writes and _fixed(step, writers, ()):
            operands = [o.array() if isinstance(o, Use) else o for o in step.operands]
            step.call.entry(*grouped(operands, step.call.origin[-1]))
            for u, written in step.uses():
                if written:
                    u.buffer.kind = "constant"


def _fixed(step: Step, writers: Counter[int], live_out: Collection[int]) -> bool:
    for i, o in enumerate(step.operands):
        if isinstance(o, Use):
            if i in step.writes:
                if (
                    o.buffer.kind not in ("temporary", "constant")
                    or writers[o.buffer.number] != 1
                    or o.buffer.number in live_out
                ):
                    return False
            elif o.buffer.kind != "constant" or writers[o.buffer.number]:
                return False
        elif isinstance(o, _Slot) or (isinstance(o, tuple) and any(isinstance(v, _Slot) for v in o)):
            return False
    return True


def eliminate_common_steps(steps: list[Step], live_out: Collection[int], numbers: Iterator[int]) -> list[Step]:
    """Compute once what several steps compute from the same values."""
    version: Counter[int] = Counter()
    writers = _writers(steps)
    seen: dict[tuple[Any, ...], Step] = {}
    instead: dict[int, Buffer] = {}
    kept = []
    for step in steps:
        _rename(step, instead)
        key = _value_key(step, version, writers, live_out)
        twin = seen.get(key) if key is not None else None
        if twin is not None:
            for i in step.writes:
                instead[step.operands[i].buffer.number] = twin.operands[i].buffer
            continue
        for n in {u.buffer.number for u, written in step.uses() if written}:
            version[n] += 1
        if key is not None:
            seen[key] = step
        kept.append(step)
    return kept


def _value_key(step: Step, version: Counter[int], writers: Counter[int], live_out: Collection[int]) -> tuple[Any, ...] | None:
    """Return what decides the values that a step writes; None where it may not be merged with another."""
    if step.check is not None:
        return None
    parts: list[Any] = [id(getattr(step.call, "entry", None)), step.writes]
    for i, o in enumerate(step.operands):
        if isinstance(o, Use):
            if i in step.writes:
                b = o.buffer
                if b.kind != "temporary" or b.number in live_out or writers[b.number] != 1 or not o.whole:
                    return None
                parts.append(("out", o.size, o.dtype.str))
            elif o.buffer.kind == "constant" and not writers[o.buffer.number] and o.buffer.nbytes <= 1024:
                parts.append(("bytes", o.offset, o.size, o.dtype.str, o.buffer.array.tobytes()))
            else:
                parts.append((o.key(), version[o.buffer.number]))
        elif isinstance(o, _Slot):
            parts.append(("slot", id(o)))
        else:
            parts.append((type(o), repr(o)))
    return tuple(parts)


def _rename(step: Step, instead: dict[int, Buffer]) -> None:
    for o in step.operands:
        if isinstance(o, Use):
            while o.buffer.number in instead:
                o.buffer = instead[o.buffer.number]


def eliminate_copies(steps: list[Step], live_out: Collection[int], numbers: Iterator[int]) -> list[Step]:
    """Let a copy and its source be one buffer where neither changes afterwards, or the source is not needed any more."""
    k = 0
    while k < len(steps):
        pair = _copy(steps[k])
        if pair is not None:
            source, target = pair
            if _may_join(steps, k, source, target, live_out):
                # the one that is wanted afterwards keeps its name
                gone, stays = (source, target) if target.number in live_out else (target, source)
                for step in steps:
                    _rename(step, {gone.number: stays})
                del steps[k]
                continue
        k += 1
    return steps


def _copy(step: Step) -> tuple[Buffer, Buffer] | None:
    """Return (source, target) of a step that copies a whole buffer to another."""
    recipe = getattr(step.call, "recipe", None)
    if step.name not in ("clone", "copy_", "contiguous") or recipe is None or recipe.dims:
        return None
    uses = list(step.uses())
    if len(uses) != 2 or len(step.operands) != 2:
        return None
    (a, a_written), (b, b_written) = uses
    if a_written or not b_written or a.buffer is b.buffer or a.dtype != b.dtype or not (a.whole and b.whole):
        return None
    if recipe.in_layouts[0].strides != recipe.out_layouts[0].strides:
        return None
    return a.buffer, b.buffer


def _may_join(steps: list[Step], k: int, source: Buffer, target: Buffer, live_out: Collection[int]) -> bool:
    if (
        target.kind != "temporary"
        or source.kind != "temporary"
        or source.nbytes != target.nbytes
        or source.array.dtype != target.array.dtype
    ):
        return False
    if source.number in live_out and target.number in live_out:
        return False
    if any(u.buffer is target for s in steps[:k] for u, _ in s.uses()):
        return False
    after = [(u.buffer, written) for s in steps[k + 1 :] for u, written in s.uses() if u.buffer in (source, target)]
    changes = any(written for _, written in after)
    source_used = source.number in live_out or any(b is source for b, _ in after)
    return not changes or not source_used
