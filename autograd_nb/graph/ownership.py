"""Whose memory a gradient is: known from how it came about, never guessed from reference counts.

All tensors of a storage share one version list. In its second place, where tensors of a user's have how often their history was
rewritten, `OURS` says: this pass made the memory, and a single gradient on its way uses it. Then, and only then, may a node write
its result over it, a second gradient be added to it in place, or a leaf keep it. The mark is

- set where a gradient is made: by fused kernels, by rules whose result shares no memory with what they were given (`settle`), by
  sums of gradients, and on the ones that a pass begins with;
- taken away where a gradient goes two ways (`share`), and where somebody outside the engine gets it (`handed`): a hook, a
  user's Function, ``.grad``, a result of `autograd.grad`. What never had it (a user's ``gradient=``, what hooks and Functions
  return, saved arrays) is copied before anybody keeps it.

Recorded passes (``create_graph``) write nothing in place, and mark nothing.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from .. import locks
from ..overriding import whole
from .modes import state

OURS = -1  #: stands where the history count of a user's tensor is 0 or more


def _unset(*_: Any) -> Any:
    raise RuntimeError("the ops have not been imported")


#: set by the ops: a copy of a gradient; in a recorded pass with a history
copy: Callable[[Any], Any] = _unset
retained: Callable[[Any], Any] = _unset  #: the same for what a tensor retains, in C order
tensor: Any = None  #: the class of plain tensors, set by it

#: held by a thread from when it looks at a leaf's gradient until its own is added: passes of several threads may end at one leaf
leaves: Any = locks.lock()
_left = threading.Condition(leaves)
#: compiled programs under way that read or leave gradients, where there are other threads: (thread, the leaves' ids)
programs: list[tuple[int, frozenset[int]]] = []
_waiting = 0  #: threads that wait for one of them to end


def _after_fork() -> None:
    global _left, _waiting
    _left = threading.Condition(leaves)
    programs.clear()
    _waiting = 0


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def wait(mine: frozenset[int]) -> None:
    """Wait, with the lock `leaves` in hand, until no other thread's program works on the gradients of these leaves."""
    global _waiting
    me = threading.get_ident()
    while any(thread != me and not theirs.isdisjoint(mine) for thread, theirs in programs):
        _waiting += 1
        try:
            _left.wait()
        finally:
            _waiting -= 1


@whole
def alone(mine: frozenset[int], function: Callable[..., Any], *args: Any) -> Any:
    """Return ``function(*args)``, meanwhile no other thread adds to the gradients of the leaves with these ids."""
    entry = threading.get_ident(), mine
    with leaves:
        if programs:
            wait(mine)
        programs.append(entry)
    try:
        return function(*args)
    finally:
        with leaves:
            if entry in programs:  # a fork in between has cleared it
                programs.remove(entry)
            if _waiting:
                _left.notify_all()


def share(g: Any) -> None:
    """Say that more than one gradient uses this memory from now on, or somebody outside the engine."""
    version = g._version_
    if version[1] == OURS:
        version[1] = 0


def handed(g: Any, recorded: bool) -> Any:
    """Return a gradient as user code may get it, which may keep it, change it and return it: memory of no other gradient.

    What has a history is ``g`` itself: all of a ``recorded`` pass, and what a user gave or a hook returned that requires grad.
    """
    if g is None or recorded:
        return g
    version = g._version_
    if version[1] == OURS:
        version[0] = version[1] = 0
        return g
    return g if g.requires_grad else copy(g)


def settle(results: Iterable[Any], given: Sequence[Any], saved: Sequence[list[Any]]) -> None:
    """Mark what a rule made, by the storage of each result. ``given``: gradients that it got. ``saved``: versions of what it read.

    A result in the memory of an incoming gradient is as that was, but for several that share it.
    """
    known = {id(g._version_) for g in given if g is not None}
    known.update(map(id, saved))
    seen: set[int] = set()
    for r in results:
        if r is None:
            continue
        version = r._version_
        number = id(version)
        if number in seen:
            share(r)
        elif number not in known and r.__class__ is tensor:
            version[1] = OURS
        seen.add(number)


def settled(g: Any, *grads: Any) -> tuple[Any, ...]:
    """Return what a rule has made of a gradient, marked as `settle` does where the pass is not recorded."""
    if not state.grad:
        settle(grads, (g,), ())
    return grads
