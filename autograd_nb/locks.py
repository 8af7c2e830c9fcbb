"""Locks that forks heed.

A forked child has one thread, the one that forked. What other threads of its parent held would stay held in it, and it would wait for ever:
so locks are made by `lock`, and a fork waits for what could not be gone on with.
"""

from __future__ import annotations

import importlib
import os
import threading
import time
import weakref
from contextlib import suppress
from typing import Any

FORK_PATIENCE = 5.0  #: seconds that a fork waits for other threads, which may wait for what the thread that forks holds
_PACKAGE = __name__.partition(".")[0]

#: whether there are forks, and locks that tell who has them and can be made free, as `threading` itself asks of them
_KNOWN = hasattr(os, "register_at_fork") and all(hasattr(threading.RLock(), name) for name in ("_is_owned", "_at_fork_reinit"))

#: every lock, and the list whose first item says that somebody is at what it guards
_locks: weakref.WeakKeyDictionary[Any, list[bool] | None] = weakref.WeakKeyDictionary()


def lock(busy: list[bool] | None = None) -> Any:
    """Return a reentrant lock that is free in a forked child, unless the thread that forked holds it; there ``busy[0]`` is False then."""
    made = threading.RLock()
    _locks[made] = busy
    return made


def _free_locks() -> None:
    for one, busy in [*_locks.items()]:
        if not one._is_owned():
            one._at_fork_reinit()
            if busy is not None:
                busy[0] = False


class _Held(threading.local):
    """Whether this thread has taken a lock to fork."""

    taken = False


def wait_for(one: Any) -> None:
    """Let forks wait until no other thread holds a lock of `lock`, for some seconds at most: what it guards, a child could not go on from.

    Forks wait for locks in the reverse of the order in which this was called.
    """
    held = _Held()

    def before() -> None:
        if one._is_owned():
            return
        end = time.monotonic() + FORK_PATIENCE
        while not one._is_owned() and (left := end - time.monotonic()) > 0:
            with suppress(BaseException):  # of a signal's handler, which could only be ignored here: the fork goes on
                one.acquire(timeout=left)
        held.taken = one._is_owned()

    def after() -> None:
        if held.taken:
            held.taken = False
            one.release()

    if _KNOWN:
        os.register_at_fork(before=before, after_in_parent=after, after_in_child=after)


def _importing() -> bool:
    """Return whether another thread is in the midst of importing one of the package's modules."""
    locks = getattr(getattr(importlib, "_bootstrap", None), "_module_locks", {})
    mine = (None, threading.get_ident())
    return any(name.partition(".")[0] == _PACKAGE and getattr(known(), "owner", None) not in mine for name, known in [*locks.items()])


def wait_for_imports() -> None:
    """Wait until no other thread imports one of the package's modules, for some seconds at most."""
    end = time.monotonic() + FORK_PATIENCE
    while _importing() and time.monotonic() < end:
        with suppress(BaseException):  # of a signal's handler
            time.sleep(1e-3)


if _KNOWN:
    os.register_at_fork(after_in_child=_free_locks)
