"""What compiling costs: the time that each kernel took, and the line on a terminal that says what a program waits for.

The line stands while a kernel is compiled, once a process has compiled for two seconds, and goes away with it. It is for people:
where the standard error is no terminal, or AUTOGRAD_NB_QUIET is set, nothing is written.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from time import perf_counter
from typing import Any, NamedTuple

from ... import locks

QUIET = "AUTOGRAD_NB_QUIET"
PATIENCE = 2.0  #: seconds of compiling before a process says so
TEXT = "autograd_nb: compiling {} (once; `python -m autograd_nb cache warm` or a pack of kernels spares the wait)"

class Compiled(NamedTuple):
    """A kernel that this process has compiled: the op that it is of, and the seconds that it took."""

    op: str
    seconds: float


compiled: dict[str | None, Compiled] = {}  #: by the key of the kernel
_op: ContextVar[str] = ContextVar("op", default="")
_spent = 0.0  # by all of them
_count = 0
_start = threading.Thread.start  # whatever stands in its place while a function is watched


@contextmanager
def of(op: str) -> Iterator[None]:
    """Let kernels that are compiled meanwhile be an op's."""
    before = _op.set(op)
    try:
        yield
    finally:
        _op.reset(before)


@contextmanager
def compiling(name: str, key: str | None) -> Iterator[None]:
    """Count the time that a kernel's compiling takes, and say what goes on if it is long."""
    global _count, _spent
    name = _op.get() or name
    began = perf_counter()
    line = _Line(name, PATIENCE - _spent) if _wanted() else None
    try:
        yield
    finally:
        if line is not None:
            line.end()
        took = perf_counter() - began
        _spent += took
        _count += 1
        compiled.pop(key, None)
        compiled[key] = Compiled(name, took)


def count() -> int:
    """Return how many kernels this process has compiled."""
    return _count


def last() -> str:
    """Return the op whose kernel was compiled last."""
    return next(reversed(compiled.values())).op if compiled else ""


def _wanted() -> bool:
    if os.environ.get(QUIET, "") not in ("", "0"):
        return False
    try:
        return os.isatty(sys.stderr.fileno())
    except (AttributeError, OSError, ValueError):  # closed, replaced or not there
        return False


class _Line:
    """A line on the terminal that is written after some seconds, and goes away."""

    def __init__(self, name: str, wait: float):
        self._text = TEXT.format(name)
        self._width = 0  # of what is written
        self._lock = locks.lock()
        self._ended = threading.Event()
        if wait <= 0:
            self._show()
            return
        thread = threading.Thread(target=self._after, args=(wait,), name="autograd_nb tells", daemon=True)
        with suppress(RuntimeError):  # no more threads
            _start(thread)

    def _after(self, wait: float) -> None:
        if not self._ended.wait(wait):
            self._show()

    def _show(self) -> None:
        with self._lock:
            if self._ended.is_set():
                return
            with suppress(OSError):
                columns = os.get_terminal_size(sys.stderr.fileno()).columns or 80
                text = self._text[: columns - 1]
                self._width = len(text)
                _write(f"\r{text}")

    def end(self) -> None:
        self._ended.set()
        with self._lock:
            if self._width:
                _write(f"\r{' ' * self._width}\r")


def _write(text: str) -> None:
    stream: Any = sys.stderr
    with suppress(OSError, ValueError, UnicodeError):
        stream.flush()
        os.write(stream.fileno(), text.encode())
