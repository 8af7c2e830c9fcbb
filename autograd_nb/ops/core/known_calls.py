"""Forward functions of structured ops whose calls recur: the launches of one are noted, and calls like it launch the same.

As `graph.recurring` does for backward passes. A call is like another where its operands have the same layouts and its other arguments
the same values; what it gives is new each time, and has the same bits.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ... import launch
from ...graph import noted, ownership, recurring
from ...graph.modes import state
from ...graph.noted import Checks, Notes, Replays, Text, Unfit, observed
from ...overriding import Overrides

CALLS = 4  #: kinds of calls that are kept for operands of one layout
LAYOUTS = 128  #: of an op's first operands that are looked at
NO_OPTIONS: dict[str, Any] = {}


def unanswered(args: tuple[Any, ...], options: dict[str, Any]) -> None:
    """Stand for no call: the replay that is asked first, before any has answered."""


class Known(Replays):
    """One keeps what is known of an op's calls with a first operand of one layout."""

    __slots__ = ("last",)

    def __init__(self) -> None:
        super().__init__(recurring.FIRST)
        self.last: Callable[..., Any] = unanswered  # the replay that has answered last, and stands in front

    def answered(self, replay: Callable[..., Any]) -> None:
        """Let the replay that has answered be asked first, and be on trial no longer."""
        if replay is self.fresh:
            self.fresh = None
        self.replays = [replay, *[other for other in self.replays if other is not replay]]  # (another list: other threads may be at this one)
        self.last = replay

    def run(self, forward: Callable[..., Any], args: tuple[Any, ...], options: dict[str, Any] = NO_OPTIONS) -> Any:
        """Return ``forward(*args, **options)``, or the same from a replay."""
        if launch._observing:
            return forward(*args, **options)
        for replay in self.replays:
            out = replay(args, options)
            if out is not None:
                if replay is not self.last:
                    self.answered(replay)
                return out
        return self.miss(forward, args, options)

    def miss(self, forward: Callable[..., Any], args: tuple[Any, ...], options: dict[str, Any]) -> Any:
        """Return ``forward(*args, **options)``, for which no replay stands, and take notes of it if it is time."""
        self.missed += 1
        due = self.due if self.fresh is None else recurring.TRIAL
        if self.missed < due or not due or Overrides.standing or state.inference:
            return forward(*args, **options)
        return self.note(forward, args, options)

    def note(self, forward: Callable[..., Any], args: tuple[Any, ...], options: dict[str, Any]) -> Any:
        """Return ``forward(*args, **options)``, and keep what may stand for calls like it."""
        if self.dropped(recurring.LONGEST):
            return forward(*args, **options)
        self.due *= 2
        try:
            out, make = self.noted(forward, args, options)
        except Unfit:
            return forward(*args, **options)
        try:
            found, held = make()
        except Unfit:
            return out
        if recurring.room(held):
            self.due //= 2
            self.keep(found)
        return out

    def noted(self, forward: Callable[..., Any], args: tuple[Any, ...], options: dict[str, Any]) -> tuple[Any, Any]:
        """Return the result of the call, and what makes its replay of what was noted. Unfit, before it is made, where it is none to be noted."""
        call = _Call(args)
        notes = Notes(call.arrays)
        with observed(notes):
            out = forward(*args)
        return out, lambda: call.replay(notes, out)

    def keep(self, found: Callable[..., Any]) -> None:
        """Keep a replay."""
        if len(self.replays) >= CALLS:
            self.due *= 2
        self.replays, self.fresh, self.last = [found, *self.replays[: CALLS - 1]], found, unanswered


class _Call(Checks):
    """The text that compares a call's arguments with these."""

    def __init__(self, args: tuple[Any, ...]):
        super().__init__()
        for name, a in zip(self.unpack("args", len(args)), args, strict=True):
            if isinstance(a, (tuple, list)) and a and isinstance(a[0], ownership.tensor):
                self.differs(f"{name}.__class__", "is not", a.__class__)
                for part, t in zip(self.unpack(name, len(a)), a, strict=True):
                    self._operand(part, t)
            elif isinstance(a, ownership.tensor):
                self._operand(name, a)
            else:
                self.same(name, a)

    def _operand(self, name: str, t: Any) -> None:
        if t.__class__ is not ownership.tensor and t.__class__ is not noted.parameter:
            raise Unfit("a tensor of another class")
        self.differs(f"{name}.__class__", "is not", t.__class__)
        self.differs(f"{name}._layout", "is not", t._layout)
        self.array(f"{name}._data", t._data)

    def replay(self, notes: Notes, out: Any) -> tuple[Callable[..., Any], int]:
        """Return ``replay(args)``, None where they differ, and how many bytes it holds."""
        text = Text(self, notes)
        kind = out.__class__
        results = list(out) if kind is tuple or kind is list else [out]
        if not all(t.__class__ is ownership.tensor for t in results):
            raise Unfit("results of another kind")
        made = [text.keep(t, k) for k, t in enumerate(results)]
        whole = f"[{', '.join(made)}]" if kind is list else f"({', '.join(made)},)" if kind is tuple else made[0]
        return text.function("replay", "args, options", [f"out = {whole}"], ["return out"])
