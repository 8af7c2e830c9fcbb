"""Results of a call that is repeated, written straight to where the call has copied them.

An op with ``out=`` computes into memory of its own, which is then copied: until the values are known, nothing may have changed. In a repetition
all questions are asked before, so that the kernels may write the operand's memory at once, unless they still read it.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from typing import Any

import numpy as np

from ... import launch
from ...graph.noted import Asked, Notes, Place

Line = tuple[Any, list[Any]]


def copies_all(call: Any, args: Sequence[Any]) -> bool:
    """Return whether a launch copies one array to another as it is."""
    recipe = call.recipe
    if call.name != "copy_" or len(args) != 2 or recipe is None or recipe.dims:
        return False
    (source,) = recipe.inputs
    return not source.scalar and [source.dtype] == list(recipe.compute) == list(recipe.outputs) and args[0].size == args[1].size


def _places(line: Line) -> Iterator[Place]:
    for a in line[1]:
        yield from (p for p in (a if isinstance(a, list) else [a]) if isinstance(p, Place))


def straight(notes: Notes, copies: Container[int], kept: Container[int]) -> set[str]:
    """Leave out those of a call's ``copies`` (numbers of launches) that are not needed; return the names of the arrays that are written instead.

    ``kept``: memory, by id, that a result or a node keeps. These arrays must have memory to
    themselves (see `launch.memory.alone`), and no other operand may lie there.
    """
    written: set[str] = set()
    for number in range(len(notes.lines) - 1, -1, -1):
        if number not in copies:
            continue
        source, target = notes.lines[number][1]
        whole = source.whole
        if source.slot or not target.slot or source.array is not whole or id(whole) in kept or not launch.memory.alone(target.whole):
            continue
        parts = [(k, p) for k, line in enumerate(notes.lines) for p in _places(line) if not p.slot and p.whole is whole]
        first, last = parts[0][0], parts[-1][0]
        if last != number or first == number or any(p.array.dtype != target.whole.dtype for _, p in parts):
            continue
        between = notes.lines[first:number]
        if any(entry.__class__ is Asked for entry, _ in between) or any(p.slot == target.slot for line in between for p in _places(line)):
            continue
        notes.lines[first : number + 1] = [(entry, _moved(args, whole, target)) for entry, args in between]
        notes.own.pop(id(whole))
        notes.written.discard(id(whole))
        written.add(target.slot)
    return written


def _moved(a: Any, whole: np.ndarray, target: Place) -> Any:
    """Return an argument of a launch, or a list of such, with what ``target`` is in the place of memory that would be copied there."""
    if isinstance(a, list):
        return [_moved(p, whole, target) for p in a]
    if not isinstance(a, Place) or a.slot or a.whole is not whole:
        return a
    array = target.whole if a.array.size == target.whole.size else a.array
    return Place(target.slot, target.whole, array, target.begin + a.begin, a.writes)
