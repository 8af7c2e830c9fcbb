"""Signal handlers see the user's grad mode, whatever they interrupt.

PyTorch's engine is C++, and Python runs signal handlers only between instructions of Python: a handler finds the mode that the
user's code has set. This engine is Python, and so are ops; both switch recording off for their own computations, and a handler that
computes would find it off. So handlers that are set with ``signal.signal`` are called in the user's mode, which is found from the
frame that was interrupted, and unseen by a capture that they interrupt. Nothing is asked for until a signal comes.
``signal.getsignal`` shows handlers as they were given.
"""

from __future__ import annotations

import functools
import os
import signal
import threading
from collections.abc import Callable
from types import CodeType, FrameType
from typing import Any

import numpy as np

from .. import launch
from ..graph import engine
from ..graph.modes import state
from ..ops.core.inplace import write_inplace
from ..ops.core.structured import Structured
from .function import Function

#: what switches the mode -> its local variable that holds the user's, from just before it does
_SWITCHES: dict[CodeType, str] = {
    engine.run.__code__: "previous",
    Structured._call.__code__: "previous",
    write_inplace.__code__: "record",
    Function._applied.__func__.__code__: "previous",  # type: ignore[attr-defined]
}


_LIBRARY = os.path.dirname(os.__file__) + os.sep
_OURS = tuple(os.path.dirname(os.path.abspath(str(module.__file__))) + os.sep for module in (launch, np))


def _is_users(file: str) -> bool:
    """Whether code is neither this package's nor of what it calls: Python's own library, NumPy, or a text that was generated."""
    if file.startswith(_LIBRARY):
        return file.startswith(("site-packages", "dist-packages"), len(_LIBRARY)) and not file.startswith(_OURS)
    return not file.startswith((*_OURS, "<autograd_nb:", "<frozen "))


def _mode(frame: FrameType | None) -> bool | None:
    """The mode of the user's code that was running in or above a frame; None where it is the one that is set."""
    found = None
    while frame is not None and not _is_users(frame.f_code.co_filename):
        name = _SWITCHES.get(frame.f_code)
        if name is not None:
            found = frame.f_locals.get(name, found)
        frame = frame.f_back
    return found


class _Handler:
    """A user's handler."""

    __slots__ = ("function",)

    def __init__(self, function: Callable):
        self.function = function

    def __call__(self, number: int, frame: FrameType | None) -> Any:
        mode, now, watching = _mode(frame), state.grad, launch.observer()
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
    plain = not callable(handler) or handler is signal.default_int_handler or isinstance(handler, (signal.Handlers, _Handler))
    return handler if plain else _Handler(handler)


def install() -> None:
    """From now on, and for the handlers that there are."""
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

    def __init__(self, before: Callable):
        functools.update_wrapper(self, before)
        self._before = before

    def __call__(self, signalnum: int, handler: Any) -> Any:
        return _given(self._before(signalnum, _wrapped(handler)))
