"""What the captured run has made: its results, the gradients that it left and those that it began from.

Each is told as a record (`run.records`) of where its memory is; what no other run could make again is a Problem.
"""

from __future__ import annotations

import types
from enum import Enum
from typing import Any

import numpy as np

from .. import dtypes
from ..errors import AutogradError
from ..shapes import Layout
from ..tensor import ALONE, Tensor, edge
from .capture.recorder import Capture, Problem
from .guards.holders import KeptGradient
from .guards.reach import Reach
from .ir import address, root
from .nested import containers, flatten
from .run.records import OWN, AnyResult, ArgumentResult, GradientResult, InitialGradient, Memory, NewResult, StateResult
from .snapshot import Snapshot

#: objects in results that may be given again: they do not change
HARMLESS = (type, types.ModuleType, types.BuiltinFunctionType, dtypes.dtype, Layout, np.generic)


class Outcome:
    """The outcome of a run: what was captured, beside what was there before it."""

    capture: Capture
    before: Snapshot
    reach: Reach

    def __init__(self, capture: Capture, before: Snapshot, reach: Reach):
        self.capture, self.before, self.reach = capture, before, reach

    def gradients(self) -> tuple[list[KeptGradient], list[Tensor]]:
        """Return (gradients that the run has left, tensors without one)."""
        kept: set[int] = set()
        found: list[KeptGradient] = []
        expects_none: list[Tensor] = []
        arguments = {id(t) for t in self.before.leaves}
        for t, before in self.before.gradients.values():
            after = t._grad
            forgotten = id(t) in self.capture.forgotten
            if before is None and not forgotten and t._rg and id(t) not in arguments:
                expects_none.append(t)
            if after is before and (after is not None or not forgotten or id(t) in arguments):
                continue
            if id(t) in arguments:
                raise Problem("it leaves a gradient in an argument; return the gradient instead")
            if after is None:
                found.append(KeptGradient(t))
                continue
            if after._rg:
                raise Problem("it leaves a gradient with a graph of its own (create_graph=True); return the gradient instead")
            b = self.capture.buffer_of(after._data)
            if (
                b.kind != "temporary"
                or b.number in kept
                or address(after._data) != address(b.array)
                or b.array.dtype != after._data.dtype
            ):
                raise Problem("a gradient shares its memory with another tensor")
            kept.add(b.number)
            found.append(KeptGradient(t, b.number, after._layout, b.array.size, b.array.dtype, after._version_[0]))
        return found, expects_none

    def initial_gradients(self) -> tuple[list[InitialGradient], list[Tensor]]:
        """Return (gradients that the program starts from, tensors whose gradient is there but not used)."""
        capture = self.capture
        used = {u.buffer.number for s in capture.steps for u, _ in s.uses()}
        arguments = {id(t) for t in self.before.leaves}
        held: list[InitialGradient] = []
        some: list[Tensor] = []
        for t, g in self.before.gradients.values():
            if g is None:
                continue
            b = capture.buffer_of(g._data)
            if b.number not in used:
                if t._rg and id(t) not in arguments and id(t) not in capture.forgotten:
                    some.append(t)
                continue
            if id(t) in arguments or b.owner is not g or g._rg:
                raise Problem("it works on the gradient of an argument, or on one that shares its memory")
            by = g._version_[0] - next(before for counter, before in self.before.gradient_versions if counter is g._version_)
            held.append(InitialGradient(t, b.number, g._layout, address(g._data) - address(b.array), by))
        return held, some

    def results(self, result: Any, given: set[int]) -> tuple[list[Tensor], list[int]]:
        """Return the tensors of the result, each once, and which of them stands at each place."""
        found: list[Tensor] = []
        others: list[Any] = []
        flatten(result, found, others)
        for o in others:
            if not isinstance(o, (HARMLESS, Enum)) and not self.reach.reaches(o):
                raise Problem(
                    f"its result holds an object of the class {type(o).__name__}; return tensors, numbers and containers of them"
                )
        for c in containers(result):
            if id(c) in given or self.reach.reaches(c):
                raise Problem("its result is a container that it was given or reaches; return a new one")
        flat = list({id(t): t for t in found}.values())
        for t in flat:
            try:
                edge(t)  # (a view may not know yet that its base's history was rewritten)
            except AutogradError as error:
                raise Problem("a result is one of several views of what it has changed since") from error
        place = {id(t): i for i, t in enumerate(flat)}
        return flat, [place[id(t)] for t in found]

    def outputs(self, flat: list[Tensor], gradients: list[KeptGradient]) -> tuple[list[AnyResult], set[int]]:
        """Return (how the results are made, the buffers of those in new memory)."""
        fresh: set[int] = set()
        outputs: list[AnyResult] = []
        kept = [g.buffer for g in gradients]
        by_state = {id(t) for t in self.before.reached}
        for t in flat:
            if id(t) not in by_state and not any(t is a for a in self.before.leaves):
                _refuse_unlike(t)
            if id(t) in by_state:
                outputs.append(StateResult(t))
                continue
            if t.requires_grad is not t._rg:
                raise Problem("a result is a view that was made without recording, of what requires grad")
            b = self.capture.buffer_of(t._data)
            offset = (address(t._data) - address(b.array)) // t._data.itemsize
            index = next((i for i, a in enumerate(self.before.leaves) if a is t), None)
            if index is None and not any(isinstance(s, Tensor) and self.capture.buffer_of(s._data) is b for s in self.before.shares):
                index = next((i for i, a in enumerate(self.before.leaves) if self.capture.buffer_of(a._data) is b), None)
                if index is not None and (t._rg or self.before.leaves[index]._rg):
                    raise Problem("a result is a view of an argument that requires grad; return a copy (clone())")
            if index is not None:
                a = self.before.leaves[index]
                if a._data.dtype != t._data.dtype:
                    raise Problem("a result is a view of another dtype")
                shift = (address(t._data) - address(a._data)) // t._data.itemsize
                if shift < 0 or shift + t._layout.extent > a._layout.extent:
                    raise Problem("a result looks at memory of which an argument is only a part; return a copy (clone())")
                outputs.append(ArgumentResult(index, shift, t._layout, t is a, *self._beside(t, a)))
            elif b.number in kept:
                number = kept.index(b.number)
                if gradients[number].leaf._grad is not t:
                    raise Problem("a result shares its memory with a gradient")
                outputs.append(GradientResult(number))
            elif b.kind == "temporary":
                if b.array.dtype != t._data.dtype:
                    raise Problem("a result is a view of another dtype")
                if b.number in fresh and any(s._rg for s in flat):
                    raise Problem("two results share their memory; return copies (clone())")
                if t.__dict__:
                    raise Problem("it sets an attribute of a result")
                if t._leaf_hook_set is not None:
                    raise Problem("it leaves a hook on a result")
                fresh.add(b.number)
                memory = Memory(b.number, b.array.size, b.array.dtype)
                outputs.append(NewResult(memory, offset, t._layout, t._version_[0], self._base(t, flat)))
            else:
                raise Problem("a result shares memory with the function's state; return a copy (clone())")
        return outputs, fresh

    def _beside(self, t: Tensor, a: Tensor) -> tuple[str, int]:
        """Return (what a result in the memory of an argument has in common with it, the result's version)."""
        if t._view is not None and (t._view is a or t._view is a._view):
            return ("" if a._view is not None and t._view_kind == a._view_kind else t._view_kind), -1
        return "detached", -1 if t._version_ is a._version_ else t._version_[0]

    def _base(self, t: Tensor, flat: list[Tensor]) -> tuple[Any, ...] | None:
        """Tell of views and results that share memory: (number of the counter, the base's number and how the view of it was
        made).

        A view that may be changed in place as others may is told by a word: its base has no history.
        """
        together = [s for s in flat if self.capture.buffer_of(s._data) is self.capture.buffer_of(t._data)]
        base = t._view
        if len(together) == 1 and base is None:
            return None
        counter = next(i for i, s in enumerate(flat) if s._version_ is t._version_)
        if base is None:
            return counter, None, None, ""
        shift = (address(base._data) - address(self.capture.buffer_of(t._data).array)) // base._data.itemsize
        if len(together) == 1 and not t._view_kind:
            return counter, None, (shift, base._layout, base._rg), ALONE
        same = [i for i, s in enumerate(flat) if s is base or s._view is base]
        number = next((i for i in same if flat[i] is base), -1 - same[0]) if len(together) > 1 else OWN
        return counter, number, (shift, base._layout, base._rg), t._view_kind


def _refuse_unlike(t: Tensor) -> None:
    """Refuse a new result that has what a program cannot give it: another class, a gradient, a base elsewhere in memory."""
    if t.__class__ is not Tensor:
        raise Problem(f"its result is a new tensor of the class {t.__class__.__name__}")
    if t._grad is not None:
        raise Problem("it leaves a gradient in a result; return the gradient beside it")
    if t._view is not None and root(t._view._data) is not root(t._data):
        raise Problem("a result is a view of what has other memory by now, or has itself; return a copy (clone())")
