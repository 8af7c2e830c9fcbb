"""Signal handlers see whole steps, and the user's grad mode, whatever they interrupt.

PyTorch's engine is C++, and Python runs signal handlers only between instructions of Python: a handler finds the mode that the
user's code has set. This engine is Python, and so are ops; both switch recording off for their own computations, and a handler that
computes would find it off. So handlers that are set with ``signal.signal`` are called in the user's mode, which is found from the
frame that was interrupted, and unseen by a capture that they interrupt. Nothing is asked for until a signal comes.
``signal.getsignal`` shows handlers as they were given.

Where a function is interrupted that is marked `overriding.whole`, the signal is sent again, so that Python asks at its next
opportunity, and so on until the function has returned. That is a matter of microseconds, or of one kernel; after `PATIENCE` the handler
is called all the same (kernels may run as Python, for debuggers).
"""

from __future__ import annotations

import _thread
import functools
import gc
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from types import CodeType, FrameType
from typing import Any

import numpy as np

from .. import launch
from ..codegen.build.apart import apart
from ..graph import engine, nested
from ..graph.modes import state
from ..ops.core.inplace import write_inplace
from ..ops.core.structured import Structured
from ..overriding import WHOLE
from .function import Function

#: what switches the mode -> its local variable that holds the user's, from just before it does
_SWITCHES: dict[CodeType, str] = {
    engine.push.__code__: "previous",
    Structured._call.__code__: "previous",
    write_inplace.__wrapped__.__code__: "record",  # type: ignore[attr-defined]
    Function._applied.__func__.__code__: "previous",  # type: ignore[attr-defined]
}


_LIBRARY = os.path.dirname(os.__file__) + os.sep
_OURS = tuple(os.path.dirname(os.path.abspath(str(module.__file__))) + os.sep for module in (sys.modules[__package__.partition(".")[0]], np))
_PACKAGES = {__name__.partition(".")[0], "numpy", *sys.stdlib_module_names}


def _is_users(code: CodeType, names: dict[str, Any]) -> bool:
    """Return whether a frame's code, with its global ``names``, is neither this package's nor of what it calls: Python's own library, NumPy,
    or a text that was generated. Where a dataclass generates methods, its module's name tells; where a named tuple does, its own."""
    file = code.co_filename
    if file.startswith("<"):
        name = str(names.get("__name__", ""))
        ours = file.startswith(("<autograd_nb:", "<frozen ")) or name.partition(".")[0] in _PACKAGES or name.startswith("namedtuple_")
        return not ours
    if file.startswith(_LIBRARY):
        return file.startswith(("site-packages", "dist-packages"), len(_LIBRARY)) and not file.startswith(_OURS)
    return not file.startswith(_OURS)


#: what waits for another thread: for a kernel to be made, or for a pass within this one, where the user's code may take its time
_WAITING = {getattr(apart, "__wrapped__", apart).__code__, nested.elsewhere.__code__}
PATIENCE = 0.5  #: seconds of this thread's work that a signal waits for a function to return


def _called_by_nobody() -> set[Any]:
    """Return the code of functions that Python calls by itself in the midst of others: when it collects, at lines that are traced or profiled."""
    functions = [f for f in (*gc.callbacks, sys.gettrace(), sys.getprofile()) if f is not None]
    called = [getattr(f, "func", f) for f in functions]
    called = [f if hasattr(f, "__code__") or hasattr(f, "__func__") else type(f).__call__ for f in called]
    return {getattr(getattr(f, "__func__", f), "__code__", None) for f in called}


def _interrupted(frame: FrameType | None) -> FrameType | None:
    """Return the frame that was running before Python called such a function by itself; without one, the given frame."""
    found, codes = frame, _called_by_nobody()
    while codes and frame is not None:
        if frame.f_code in codes:
            found = frame.f_back
        frame = frame.f_back
    return found


def _standing(frame: FrameType | None) -> tuple[bool | None, bool]:
    """Return, of what the user's code that was running in or above a frame has called: the mode that he had set, None where it is the one that
    is set now; whether it is to be seen as a whole. What waits for another thread is not."""
    found, inside, waiting, blocks = None, False, False, state.blocks
    frame = _interrupted(frame)
    while frame is not None and not _is_users(frame.f_code, frame.f_globals):
        code = frame.f_code
        name = _SWITCHES.get(code)
        if name is not None:
            found = frame.f_locals.get(name, found)
        for block in reversed(blocks):
            if block.frame is frame:
                found = block._previous
        waiting = waiting or code in _WAITING
        inside = inside or (code in WHOLE and not waiting)
        frame = frame.f_back
    return found, inside


class _Number(int):
    """A signal's number. Its attribute sends it, as Python would ask for signals right after a call."""

    sent = property(_thread.interrupt_main)


class _Descriptor(int):
    restored = property(signal.set_wakeup_fd)


def _later(number: int) -> None:
    time.sleep(1e-4)
    _thread.interrupt_main(number)  # type: ignore[arg-type]


class _Handler:
    """A user's handler. ``since``: when a signal began to wait. ``deciding``: whether one has come and is not handled yet."""

    __slots__ = ("deciding", "function", "since")

    def __init__(self, function: Callable[..., Any]):
        self.function, self.since, self.deciding = function, 0.0, False

    def _may_wait(self) -> bool:
        """Return whether a signal has not waited for long."""
        now = time.thread_time()
        self.since = self.since or now
        return now - self.since <= PATIENCE

    def _send_again(self, number: int) -> None:
        """Send the signal again, so that Python asks at its next opportunity."""
        if sys.gettrace() or sys.getprofile():  # Python 3.11 asks before each instruction that is traced, and would do nothing else
            _thread.start_new_thread(_later, (number,))
            return
        wakes = _Descriptor(signal.set_wakeup_fd(-1))  # who waits for signals there has been told of this one
        _ = _Number(number).sent
        _ = wakes.restored

    def __call__(self, number: int, frame: FrameType | None) -> Any:
        if self.deciding:  # two signals of a number that wait are one, to the system too; else each of many would interrupt the one before
            return None
        self.deciding = True
        try:
            mode, inside = _standing(frame)
            waits = inside and self._may_wait()
        finally:
            self.deciding = False
        if waits:
            return self._send_again(number)
        self.since = 0.0
        now, watching = state.grad, launch.observer()
        if mode is None and watching is None:
            return self.function(number, frame)
        with launch.unobserved():
            state.grad = now if mode is None else mode
            try:
                return self.function(number, frame)
            finally:
                state.grad = now


def _given(handler: Any) -> Any:
    return handler.function if isinstance(handler, _Handler) else handler


def _wrapped(handler: Any) -> Any:
    plain = not callable(handler) or isinstance(handler, (signal.Handlers, _Handler))
    return handler if plain else _Handler(handler)


def install() -> None:
    """Let handlers run whole from now on, those that there are among them."""
    if isinstance(signal.signal, _Setter):
        return
    before, get = signal.signal, signal.getsignal
    signal.signal = _Setter(before)  # type: ignore[assignment]

    @functools.wraps(get)
    def getsignal(signalnum: int) -> Any:
        return _given(get(signalnum))

    signal.getsignal = getsignal
    if threading.current_thread() is threading.main_thread():
        for number in signal.valid_signals():
            handler = get(number)
            if _wrapped(handler) is not handler:
                before(number, _wrapped(handler))


class _Setter:
    """``signal.signal``."""

    def __init__(self, before: Callable[..., Any]):
        functools.update_wrapper(self, before)
        self._before = before

    def __call__(self, signalnum: int, handler: Any) -> Any:
        return _given(self._before(signalnum, _wrapped(handler)))
