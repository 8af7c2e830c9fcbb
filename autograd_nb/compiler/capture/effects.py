"""What Python does beside launching kernels, while a function is captured."""

from __future__ import annotations

import builtins
import sys
import types
import warnings
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from logging import Logger
from threading import Thread, local
from typing import Any

from ... import launch
from ...autograd.torch_function import look_for_functions
from ...codegen.build import apart
from ...graph import engine
from ...ops.random import generator
from ...overriding import Overrides
from ...tensor import Tensor
from ..guards.places import in_library
from ..guards.reach import PACKAGE
from ..live_numbers import FloatSlot, plain_number
from .recorder import Capture, Problem


@contextmanager
def watching(
    capture: Capture, optimizers: Sequence[Any] = (), codes: Collection[types.CodeType] = ()
) -> Iterator[dict[tuple[int, str], Any]]:
    """Observe this thread's launches; numbers of optimizers and random streams are slots meanwhile.

    ``codes``: of the user's functions. Gives the numbers that were replaced, by (id of the group, name).
    """
    replaced: dict[tuple[int, str], Any] = {}
    groups = [g for o in optimizers for g in o.param_groups]
    for g in groups:
        for name, value in list(g.items()):
            new = _slotted(g, name, value, capture.decided)
            if new is not value:
                replaced[(id(g), name)] = value
                g[name] = new
    slots = {(id(g), name): g[name] for g in groups for name in g if (id(g), name) in replaced}
    observed = _Watch(capture, codes).functions()
    before = [(owner, name, vars(owner).get(name)) for owner, name, _ in observed]
    _exchange(observed)
    outer, _standing.pair = _standing.pair, (observed, before)
    try:
        with _BUILDS.active(), launch.observe(capture):
            yield replaced
    finally:
        _standing.pair = outer
        _exchange(before)
        for g in groups:
            for (number, name), value in replaced.items():
                if number != id(g):
                    continue
                if g.get(name) is slots[number, name]:
                    g[name] = value
                else:
                    if name in g:
                        g[name] = _plain(g[name])
                    capture.problems.append(Problem(f"it changes {name!r} of an optimizer's parameter group"))


@contextmanager
def watching_passes(capture: Capture, began: int, ends: Collection[int]) -> Iterator[None]:
    """Note backward passes that go on into nodes older than ``began``, or to ``ends`` (ids): what they leave there a program could not repeat."""
    watch = engine.watch

    def ran(node: Any, found: tuple[Any, ...]) -> None:
        if (node.seq < began or id(node) in ends) and launch.observer() is capture:
            capture.problem("it runs a backward pass through a graph that was made before; make that inside, or return the loss")
        if watch is not None:
            watch(node, found)

    engine.watch = ran
    try:
        yield
    finally:
        engine.watch = watch


class _Standing(local):
    """A record of what this thread's capture has put in the place of builtins, and what stood there before; None where nothing
    is captured.
    """

    pair: tuple[list[Any], list[Any]] | None = None


_standing = _Standing()
_BUILDS = Overrides()


def _exchange(functions: Sequence[tuple[Any, str, Callable[..., Any] | None]]) -> None:
    for owner, name, function in functions:
        if function is None:
            delattr(owner, name)
        else:
            setattr(owner, name, function)


def _with_what_stood_before(inner: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that runs with what a capture has exchanged put back."""

    def undisturbed(*args: Any, **kwargs: Any) -> Any:
        if _standing.pair is None:
            return inner(*args, **kwargs)
        observed, before = _standing.pair
        _exchange(before)
        try:
            return inner(*args, **kwargs)
        finally:
            _exchange(observed)

    return undisturbed


# Numba asks for hundreds of thousands of attributes, which the captured function does not; and what finds the functions that stand there
# for a time would keep them
_BUILDS.at(apart.apart)(_with_what_stood_before)
_BUILDS.at(look_for_functions)(_with_what_stood_before)


def _caller() -> types.FrameType:
    """Return the frame that called one of the functions of this module."""
    frame = sys._getframe(2)
    while frame.f_globals is globals() and frame.f_back is not None:
        frame = frame.f_back
    return frame


class _Watch:
    """A watch stands in the place of builtins and other functions while a capture runs, and tells the capture what Python does.

    ``codes``: of the user's functions.
    """

    def __init__(self, capture: Capture, codes: Collection[types.CodeType]):
        self.capture, self.codes = capture, codes

    def functions(self) -> list[tuple[Any, str, Callable[..., Any]]]:
        """Return (object, name of its attribute, function in its place) of what is exchanged."""
        return [
            (generator, "drawn", self._drawn()), (builtins, "print", self._print()), (warnings, "warn", self._warn()),
            (builtins, "vars", self._vars()), (builtins, "open", self._effect(open, "it opens a file")),
            (builtins, "input", self._effect(input, "it waits for input")),
            (Thread, "start", self._effect(Thread.start, "it starts a thread")), (Logger, "handle", self._effect(Logger.handle, "it logs")),
            (Tensor, "__getattr__", self._missing()), (Tensor, "__hash__", self._identity()),
            (builtins, "__import__", self._import()),
            *((builtins, f.__name__, self._attribute(f)) for f in (getattr, setattr, hasattr, delattr)),
        ]  # fmt: skip

    # ---- who calls
    def _mine(self) -> bool:
        """Return whether this thread is the captured one."""
        return launch.observer() is self.capture

    def _told(self) -> bool:
        """Return whether it is the captured function, or the user's code under it, that calls."""
        return self._mine() and _caller().f_globals.get("__name__", "").partition(".")[0] not in (PACKAGE, "linecache", "llvmlite", "numba")

    # ---- functions that take the place of others
    def _effect(self, function: Callable[..., Any], what: str) -> Callable[..., Any]:
        def seen(*args: Any, **kwargs: Any) -> Any:
            if self._told():
                self.capture.problem(what)
            return function(*args, **kwargs)

        return seen

    def _import(self) -> Callable[..., Any]:
        """Return `__import__`, by which no new module finds, and keeps, what is exchanged for the time of a capture."""
        known, new = __import__, _with_what_stood_before(__import__)

        def importing(name: str, globals: Any = None, locals: Any = None, fromlist: Any = (), level: int = 0) -> Any:
            module = None if level else sys.modules.get(name)
            done = module is not None and all(hasattr(module, part) for part in fromlist or ())
            return (known if done else new)(name, globals, locals, fromlist, level)

        return importing

    def _drawn(self) -> Callable[..., Any]:
        stream = generator.drawn

        def drawn(source: Any) -> tuple[int, int]:
            return self.capture.draw(source) if self._mine() else stream(source)

        return drawn

    def _print(self) -> Callable[..., Any]:
        write = print

        def printing(*args: Any, **kwargs: Any) -> None:
            if self._mine() and kwargs.get("file") in (None, sys.stdout, sys.stderr):
                self.capture.problem("it prints")
            write(*args, **kwargs)

        return printing

    def _warn(self) -> Callable[..., Any]:
        warn = warnings.warn

        def warning(message: Any, category: Any = None, stacklevel: int = 1, *args: Any, **kwargs: Any) -> None:
            if self._told():
                self.capture.problem("it warns")
            warn(message, category, stacklevel + 1, *args, **kwargs)

        return warning

    def _module(self, holder: Any, name: str) -> None:
        if isinstance(holder, types.ModuleType) and not in_library(holder.__name__) and self._mine() and _caller().f_code in self.codes:
            self.capture.problem(f"it uses {name}() on the module {holder.__name__}; write the attribute's name itself")

    def _attribute(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def seen(holder: Any, *args: Any) -> Any:
            if isinstance(holder, types.ModuleType):
                self._module(holder, function.__name__)
            return function(holder, *args)

        return seen

    def _vars(self) -> Callable[..., Any]:
        look = vars

        def names(*holder: Any) -> dict[str, Any]:
            if not holder:
                return sys._getframe(1).f_locals
            self._module(holder[0], "vars")
            return look(*holder)

        return names

    def _missing(self) -> Callable[..., Any]:
        def missing(tensor: Tensor, name: str) -> Any:
            if self._told():
                self.capture.asked.add(name)
            raise AttributeError(f"{type(tensor).__name__!r} object has no attribute {name!r}", name=name, obj=tensor)

        return missing

    def _identity(self) -> Callable[..., Any]:
        hashed: Any = Tensor.__hash__

        def identity(tensor: Tensor) -> int:
            self.capture.hashed = self.capture.hashed or self._told()
            return hashed(tensor)  # type: ignore[no-any-return]

        return identity


def _plain(value: Any) -> Any:
    return tuple(plain_number(v) for v in value) if isinstance(value, tuple) else plain_number(value)


def _slotted(group: dict[Any, Any], name: str, value: Any, decided: list[Any]) -> Any:
    if isinstance(value, float):
        return FloatSlot.make(value, lambda: group[name], decided)
    if isinstance(value, tuple) and value and all(isinstance(v, float) for v in value):

        def reader(i: int) -> Callable[[], float]:
            return lambda: group[name][i]

        return tuple(FloatSlot.make(v, reader(i), decided) for i, v in enumerate(value))
    return value
