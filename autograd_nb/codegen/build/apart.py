"""Work that must not be broken off or entered twice: compiling, loading machine code, importing Numba.

Python runs signal handlers in its main thread, between any two instructions, and a handler may raise (Ctrl-C does) or compute. Numba
and LLVM survive neither in their midst. So such work is done by a thread of its own, one piece after the other, while the thread that
needs it waits: there a handler interrupts nothing but waiting. One that needs a kernel itself waits for the work under way, then for
its own; one that raises leaves the work to be finished, and the result to be found by the next call.
"""

from __future__ import annotations

import gc
import logging  # noqa: F401 - what it does at a fork is registered before what this does, see below
import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import copy_context
from importlib import import_module
from typing import Any

from ... import locks
from ...overriding import overridable

_turn: Any = locks.lock()  #: held by the thread that works
_worker = 0  #: its number; 0 between two pieces of work
_start = threading.Thread.start  # whatever stands in its place while a function is watched
_STACK = 16 << 20  #: bytes of its stack
_DEPTH = 1000  #: calls in each other that it may need
_POLL = 1.0  #: seconds of waiting after which to look whether the work waits for us


def _before_fork() -> None:
    locks.wait_for_imports()
    while not _turn._is_owned():
        with suppress(BaseException):  # of a handler, which could only be ignored here: the fork goes on
            _turn.acquire()


def _after_fork() -> None:
    if _worker != threading.get_ident():
        _turn.release()


# A fork waits until no thread compiles: the child gets a free lock and whole tables. What was registered last is called first: a fork
# that held the lock of `logging`, which Numba's import and compiling ask for, would wait for ever.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_after_fork, after_in_child=_after_fork)


class _Work:
    """A call, and what came of it."""

    __slots__ = ("args", "context", "done", "error", "function", "result", "thread")

    def __init__(self, function: Callable[..., Any], args: tuple[Any, ...]):
        self.function, self.args, self.context = function, args, copy_context()
        self.done = threading.Lock()
        self.done.acquire()
        self.result: Any = None
        self.error: BaseException | None = None
        self.thread = 0

    def run(self) -> None:
        global _worker
        self.thread = threading.get_ident()
        try:
            with _turn:
                _worker = self.thread
                try:
                    with _deep(), _uncollected():
                        self.result = self.context.run(self.function, *self.args)
                finally:
                    _worker = 0
        except BaseException as error:
            self.error = error
        finally:
            self.done.release()


@contextmanager
def _deep() -> Iterator[None]:
    """Allow at least the depth of calls that Python itself allows: an error in the midst of LLVM's locks would leave them held for good."""
    before = sys.getrecursionlimit()
    if before < _DEPTH:
        sys.setrecursionlimit(_DEPTH)
    try:
        yield
    finally:
        if before < _DEPTH == sys.getrecursionlimit():
            sys.setrecursionlimit(before)


def _begin(thread: threading.Thread) -> None:
    """Start a thread in which Numba and LLVM, whose calls go deep, have room: systems give 128 kB (musl) to 8 MB."""
    before = threading.stack_size()
    try:
        if before < _STACK:
            threading.stack_size(_STACK)
        _start(thread)
    finally:
        threading.stack_size(before)


@contextmanager
def _uncollected() -> Iterator[None]:
    """Keep Python's collector from looking through the hundred thousand objects of Numba and of its compiling, again and again."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()


@overridable
def apart(function: Callable[..., Any], *args: Any) -> Any:
    """Return ``function(*args)``, which nothing interrupts and which does not begin while another such call goes on.

    RuntimeError where it never could: in code that such work itself, or Numba's own compiling, has been interrupted for.
    """
    if _worker and _worker == threading.get_ident():
        raise RuntimeError(f"a kernel is needed in the midst of making another one, by a finalizer or the like. {_REMEDY}")
    _refuse_in_numba()
    work = _Work(function, args)
    try:
        _begin(threading.Thread(target=work.run, name="autograd_nb compiles"))
    except RuntimeError:  # no more threads, or the interpreter is about to end
        work.run()
    while not work.done.acquire(timeout=_POLL):
        if _waits_for_us(work.thread):
            raise RuntimeError(f"a kernel is needed in the midst of an import that compiling waits for. {_REMEDY}")
    error, work.error = work.error, None
    if error is None:
        return work.result
    try:
        raise error
    finally:
        del error  # its traceback refers to this frame


def imported(path: str) -> Any:
    """Return a module, imported if need be: a handler that wants it too must not find it half made."""
    known = sys.modules.get(path)
    if known is not None and not getattr(known.__spec__, "_initializing", False):
        return known
    package = sys.modules.get(path.partition(".")[0])
    if getattr(getattr(package, "__spec__", None), "_initializing", False) or _worker == threading.get_ident():
        return import_module(path)  # by this very import
    return apart(import_module, path)


_REMEDY = "Let the handler note what is to be done and do it later, or run what it needs once beforehand, so that its kernels are there"


def _refuse_in_numba() -> None:
    """Raise RuntimeError where this thread is compiling something of the user's with Numba: it holds Numba's lock."""
    locks = sys.modules.get("numba.core.compiler_lock")
    held = getattr(getattr(getattr(locks, "global_compiler_lock", None), "_lock", None), "_is_owned", None)
    if held is not None and held():
        raise RuntimeError(f"a kernel is needed while Numba compiles something else, by a signal handler or a finalizer. {_REMEDY}")


def _waits_for_us(thread: int) -> bool:
    """Return whether a thread waits for a module whose import this one has been interrupted in."""
    waiting = getattr(sys.modules.get("importlib._bootstrap") or sys.modules.get("_frozen_importlib"), "_blocking_on", {})
    locks = waiting.get(thread)
    mine = threading.get_ident()
    return any(getattr(lock, "owner", None) == mine for lock in (locks if isinstance(locks, (list, tuple)) else [locks]))
