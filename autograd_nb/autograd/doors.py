"""Functions of the library that are exchanged for others while something is active, so that ordinary code pays nothing for it.

Each kind of activity has its `Doors`. Where two are active and meet at one function, the later declared stands in front of the
earlier. The exchange is seen by all threads; what stands there must look whether it concerns its own.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

__all__ = ["Doors"]

_lock = threading.RLock()
_every: list[Doors] = []
_originals: dict[tuple[int, str], tuple[Any, str, Any]] = {}


class Doors:
    """The functions that one kind of activity exchanges."""

    def __init__(self) -> None:
        self.factories: dict[tuple[int, str], Callable] = {}
        self.count = 0
        _every.append(self)

    def at(self, owner: Any, name: str) -> Callable[[Callable], Callable]:
        """Decorator of a factory: it is given what stands at ``owner.name``, and returns what is to stand before it."""

        def enter(factory: Callable) -> Callable:
            key = (id(owner), name)
            _originals.setdefault(key, (owner, name, owner.__dict__[name]))
            self.factories[key] = factory
            return factory

        return enter

    def opened(self) -> None:
        """Called when the first becomes active."""

    def closed(self) -> None:
        """Called when the last has ceased to be."""

    def enter(self) -> None:
        """Become active."""
        with _lock:
            self.count += 1
            if self.count == 1:
                self._exchange()
                self.opened()

    def leave(self) -> None:
        """Cease to be."""
        with _lock:
            self.count -= 1
            if not self.count:
                self._exchange()
                self.closed()

    @contextmanager
    def active(self) -> Iterator[None]:
        """Active for the length of a ``with`` block."""
        self.enter()
        try:
            yield
        finally:
            self.leave()

    def _exchange(self) -> None:
        for key in self.factories:
            owner, name, function = _originals[key]
            for doors in _every:
                if doors.count and key in doors.factories:
                    function = doors.factories[key](function)
            setattr(owner, name, function)
