"""Backward passes within backward passes, which hooks and users' functions may begin: as deep as somebody nests them.

Each takes several of Python's frames, so that a few dozen would use up a thread's stack. Therefore every so many of them go on in
a thread of their own, as in PyTorch, while the one that asked waits. The new thread has its modes (see `modes.PerThread`) and its
context variables; other thread-local values of the user's it has not.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable
from contextvars import copy_context
from functools import wraps
from typing import Any

from .modes import PerThread, state

DEEP = 16  #: passes within one another that one thread runs
MOST = 5_000  #: passes within one another

_waits_for: dict[int, int] = {}  # thread -> the one whose pass it waits for


def users(function: Callable[..., Any]) -> Callable[..., Any]:
    """Decorator of what calls users' code in a backward pass: only there can another one begin."""

    @wraps(function)
    def counted(*args: Any) -> Any:
        state.passes += 1
        try:
            return function(*args)
        finally:
            state.passes -= 1

    return counted


def elsewhere(run: Callable[[], Any]) -> Any:
    """Return the result of ``run()``, a backward pass, in another thread; whatever it raises is raised here."""
    if state.passes >= MOST:
        raise RecursionError(
            f"backward was called within backward passes {MOST} times over. Does a hook, or the backward of a Function, call itself by it?"
        )
    context, mine = copy_context(), PerThread.copied()
    done, outcome = threading.Lock(), _Outcome()
    done.acquire()

    def work() -> None:
        PerThread.take(mine)
        state.passes += 1
        try:
            outcome.value = context.run(run)
        except BaseException as error:
            outcome.error = error
        finally:
            state.passes -= 1
            outcome.modes = PerThread.copied()
            done.release()

    thread = threading.Thread(target=work, name="autograd_nb-backward", daemon=True)
    thread.start()
    here = threading.get_ident()
    interrupt: BaseException | None = None
    _waits_for[here] = thread.ident or 0
    try:
        while True:
            try:
                if done.acquire(timeout=0.5):  # now and then this thread sees to signals
                    break
            except BaseException as error:  # a signal, as Ctrl-C: it ends the pass too, which must not go on behind our back
                interrupt = error
                _raise_in(here, type(error))
    finally:
        del _waits_for[here]
    PerThread.take(outcome.modes)
    failed = interrupt or outcome.error
    if failed is None:
        return outcome.value
    outcome.error = interrupt = None
    try:
        raise failed
    finally:
        failed = None  # its traceback leads here


class _Outcome:
    value: Any = None
    error: BaseException | None = None
    modes: list[Any] = []


def _raise_in(thread: int, kind: type[BaseException]) -> None:
    """Let the thread that works for this one, at whatever distance, raise an exception."""
    while thread in _waits_for:
        thread = _waits_for[thread]
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), ctypes.py_object(kind))
