"""What functions say of themselves where they are defined: that others may take their place, or that nothing interrupts them.

**Overridable** are functions that transforms take the place of while they are active, so that ordinary code pays nothing for them.
What may be taken over says so where it is defined, by `overridable`. A kind of activity (vmap and forward mode, hooks on saved
tensors, the profiler) has its `Overrides`. Where two are active and meet at one function, the later declared stands in front of
the earlier. All threads see what stands there; it must look whether it concerns its own.

**Whole** are functions that a signal handler does not see half done. Python runs handlers between any two instructions of its main
thread, and they may raise: Ctrl-C does. What PyTorch does in C++ is one step to them. Here such a step is a function that is marked
`whole`: a signal that arrives in its midst is handled as soon as it has returned (see `autograd.handlers`). Marking costs nothing
when no signal comes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import _GeneratorContextManager, contextmanager
from functools import wraps
from types import CodeType, FunctionType
from typing import Any, TypeVar

from . import locks
from .config import note_unusual

__all__ = ["DECOMPOSED", "WHOLE", "Overrides", "overridable", "whole"]

Function = TypeVar("Function", bound=Callable)

_lock = locks.lock()
_every: list[Overrides] = []

#: overridable functions that launch kernels of their own -> the same written with ops, for operands that hold no memory
DECOMPOSED: dict[Callable[..., Any], Callable[..., Any]] = {}

#: the code of functions that are whole; contexts that generators make are, or what has begun might never end
WHOLE: set[CodeType] = {getattr(_GeneratorContextManager, name).__code__ for name in ("__enter__", "__exit__")}


def whole(function: Function) -> Function:
    """Decorator: signals wait until the function has returned. It must be quick, or spend its time in kernels."""
    WHOLE.add(function.__code__)  # type: ignore[attr-defined]
    return function


def overridable(function: Function) -> Function:
    """Decorator: a function or method whose place `Overrides` may take.

    Methods are exchanged in their class. Functions are imported under their names by other modules, so a function becomes one that
    calls what stands for it now (one frame more, about 0.1 µs); ``function.decomposed`` is a decorator for the same computation
    written with ops (see `DECOMPOSED`).
    """
    if "." in function.__qualname__.rpartition("<locals>.")[2]:
        function.overridable = True  # type: ignore[attr-defined]
        return function
    standing: Callable[..., Any] = function

    @wraps(function)
    def call(*args: Any, **kw: Any) -> Any:
        return standing(*args, **kw)

    def exchange(other: Callable[..., Any]) -> None:
        nonlocal standing
        standing = other

    def decomposed(rule: Callable[..., Any]) -> Callable[..., Any]:
        DECOMPOSED[call] = rule
        return rule

    call.exchange, call.decomposed = exchange, decomposed  # type: ignore[attr-defined]
    return call  # type: ignore[return-value]


class Overrides:
    """What one kind of activity puts in the place of overridable functions. ``standing``: whether any is active but those that pass by.

    passes_by: calls that are replayed never concern it.
    """

    standing = False
    passes_by = False

    def __init__(self) -> None:
        self.count: int = 0
        self._originals: dict[Any, tuple[Callable[..., Any], Callable[[Callable[..., Any]], None]]] = {}
        self._factories: dict[Any, Callable[..., Any]] = {}
        self._ready: dict[tuple[bool, ...], list[tuple[Callable[..., Any], Callable[..., Any]]]] = {}  # by which kinds are active: what to place, and how
        _every.append(self)

    def at(self, owner: Any, name: str = "") -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        """Decorator of a factory: it is given what stands at ``owner.name``, a method, or for the function ``owner``, and returns
        what is to stand before it. TypeError where that is not `overridable`."""
        key: Any = owner
        if isinstance(owner, FunctionType):
            original, place = getattr(owner, "__wrapped__", None), getattr(owner, "exchange", None)
        else:
            key = (owner, name)  # in whose place something may stand already
            original = next((kind._originals[key][0] for kind in _every if key in kind._originals), owner.__dict__[name])
            marked = getattr(getattr(original, "__func__", original), "overridable", False)
            place = (lambda other: setattr(owner, name, other)) if marked else None  # type: ignore[assignment]
        if place is None:
            raise TypeError(f"{getattr(owner, '__qualname__', owner)} {name} is not @overridable: say so where it is defined")

        def enter(factory: Callable[..., Any]) -> Callable[..., Any]:
            self._originals[key] = original, place  # type: ignore[assignment]
            self._factories[key] = factory
            for overrides in _every:
                overrides._ready = {}
            return factory

        return enter

    def opened(self) -> None:
        """Do what is needed when the first becomes active."""

    def closed(self) -> None:
        """Do what is needed when the last has ceased to be active."""

    @whole
    def enter(self) -> None:
        """Become active."""
        with _lock:
            self.count += 1
            try:
                if self.count == 1:
                    self._exchange()
                    self.opened()
            except BaseException:  # no room left on the stack
                self.count -= 1
                self._exchange()
                raise

    @whole
    def leave(self) -> None:
        """Cease to be."""
        with _lock:
            self.count -= 1
            if not self.count:
                self._exchange()
                self.closed()

    @contextmanager
    @whole
    def active(self) -> Iterator[None]:
        """Be active for the length of a ``with`` block."""
        self.enter()
        try:
            yield
        finally:
            self.leave()

    def _exchange(self) -> None:
        active = tuple([overrides.count > 0 for overrides in _every])
        Overrides.standing = any(overrides.count and not overrides.passes_by for overrides in _every)
        note_unusual("functions in the place of others", Overrides.standing)
        standing = self._ready.get(active)
        if standing is None:
            standing = self._ready[active] = [(place, self._standing(key, function)) for key, (function, place) in self._originals.items()]
        for place, function in standing:  # when all could be made
            place(function)

    @staticmethod
    def _standing(key: Any, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return what stands in the place of a function, by what is active."""
        for overrides in _every:
            if overrides.count and key in overrides._factories:
                function = overrides._factories[key](function)
        return function
