"""Code of the user's that nobody has asked for: the backward pass behind results is captured before it is known whether there will be one.

Where rules are the user's own (those of a `Function`, a checkpoint, a hook that unpacks) they may do more than compute. What they would
do to the world is refused before it happens (`Capture.unasked`); what they have done to Python's state is undone.
"""

from __future__ import annotations

import types
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from ...autograd.function import FunctionNode
from ...autograd.saved import Packed
from ..guards.places import in_library

if TYPE_CHECKING:
    from ...graph.node import Node
    from ...tensor import Tensor
    from ..guards.reach import Reach
    from .recorder import Capture

_GONE = object()


class State:
    """The state of containers, objects, classes and closures. `restore` brings back what has changed since `before`."""

    def __init__(self, reach: Reach) -> None:
        self._reach = reach
        self._held: dict[int, tuple[Any, Callable[[Any, Any], None], Any]] = {}

    def before(self, nodes: Iterable[Node]) -> None:
        """Note what is held before the rules of some nodes run, if any of these are the user's."""
        own = [n for n in nodes if hasattr(n, "__dict__") or isinstance(n.saved, Packed) or hasattr(n.saved, "forget")]
        if own:
            self._hold(self._reach.scope().values())
        for ctx in [vars(n) for n in own if hasattr(n, "__dict__")]:
            self._hold((ctx, *ctx.values()))

    def _hold(self, holders: Iterable[Any]) -> None:
        for o in holders:
            if id(o) in self._held or (isinstance(o, type) and in_library(o.__module__)):
                continue
            for kinds, look, restore in _KINDS:
                if isinstance(o, kinds):
                    self._held[id(o)] = o, restore, look(o)
                    break

    def restore(self) -> None:
        """Let all of them hold what they held."""
        for o, restore, then in self._held.values():
            restore(o, then)


def own_rules(nodes: Iterable[Node]) -> list[Any]:
    """Return the functions of the user's that the backward pass of some nodes calls."""
    found = [f for n in nodes if isinstance(n, FunctionNode) for f in (n.function.backward, n.function.vjp)]
    found += [n.saved.unpack for n in nodes if isinstance(n.saved, Packed)]
    return [f for f in dict.fromkeys(found) if not in_library(getattr(f, "__module__", None)) or hasattr(f, "__wrapped__")]


def _look_into_cell(cell: types.CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:
        return _GONE


def _restore_cell(cell: types.CellType, then: Any) -> None:
    if _look_into_cell(cell) is then:
        return
    if then is _GONE:
        del cell.cell_contents
    else:
        cell.cell_contents = then


def _restore_dict(o: dict[Any, Any], then: dict[Any, Any]) -> None:
    for k in [k for k in o if k not in then]:
        del o[k]
    for k, v in then.items():
        if o.get(k, _GONE) is not v:
            o[k] = v


def _restore_class(cls: type, then: dict[str, Any]) -> None:
    for k in [k for k in vars(cls) if k not in then]:
        delattr(cls, k)
    for k, v in then.items():
        if vars(cls).get(k, _GONE) is not v:
            setattr(cls, k, v)


def _restore_sequence(o: Any, then: list[Any]) -> None:
    if len(o) != len(then) or any(a is not b for a, b in zip(o, then, strict=True)):
        o.clear()
        o.extend(then)


def _restore_set(o: set[Any], then: set[Any]) -> None:
    if o != then:
        o.clear()
        o.update(then)


def _restore_bytes(o: bytearray, then: bytearray) -> None:
    if o != then:
        o[:] = then


def _restore_array(o: np.ndarray, then: np.ndarray) -> None:
    if o.tobytes() != then.tobytes():
        o[...] = then


def _slots(o: Any) -> dict[str, Any]:
    names = [s for cls in type(o).__mro__ if not in_library(cls.__module__) for s in _named(cls)]
    return {s: getattr(o, s, _GONE) for s in names}


def _named(cls: type) -> tuple[str, ...]:
    slots = vars(cls).get("__slots__", ())
    return (slots,) if isinstance(slots, str) else tuple(s for s in slots if s not in ("__dict__", "__weakref__"))


def _restore_slots(o: Any, then: dict[str, Any]) -> None:
    for k, v in then.items():
        if getattr(o, k, _GONE) is v:
            continue
        if v is _GONE:
            delattr(o, k)
        else:
            setattr(o, k, v)


#: kinds of holders, what they hold, and how it is brought back
_KINDS: tuple[tuple[Any, Callable[[Any], Any], Callable[[Any, Any], None]], ...] = (
    (dict, dict, _restore_dict),
    ((list, deque), list, _restore_sequence),
    (set, set, _restore_set),
    (bytearray, bytearray, _restore_bytes),
    (np.ndarray, np.copy, _restore_array),
    (types.CellType, _look_into_cell, _restore_cell),
    (type, lambda cls: dict(vars(cls)), _restore_class),
    (object, _slots, _restore_slots),
)


@contextmanager
def unasked(capture: Capture, reach: Reach, tensors: Iterable[Tensor]) -> Iterator[State]:
    """Let the user's code that runs within leave nothing behind: effects raise Problem, Python's state and ``tensors`` are as before."""
    state = State(reach)
    versions = [(t._version_, t._version_[0]) for t in tensors]
    gradients = [(t, t._grad) for t in tensors]
    capture.unasked = True
    try:
        yield state
    finally:
        capture.unasked = False
        state.restore()
        for counter, count in versions:
            counter[0] = count
        for t, g in gradients:
            t._grad = g
