"""`compile`: a function that is captured once for each kind of call, and then run as a native program."""

from __future__ import annotations

import functools
import sys
import threading
import types
import warnings
import weakref
from collections.abc import Callable
from copy import deepcopy
from typing import Any

import numpy as np

from .. import dtypes, launch
from ..autograd.anomaly import _state as _anomaly
from ..autograd.saved import _state as _saved_hooks
from ..autograd.wrapped import Wrapped
from ..errors import AutogradError
from ..graph.modes import state
from ..tensor import Tensor
from .capture import Problem
from .guards import Reach, TooMuch
from .nested import containers, emptied, flatten, tensors_in
from .program import Refused
from .session import Session, Unstable
from .variant import Variant

MOST_PROGRAMS = 16  #: of one function; one that needs more stays eager
ATTEMPTS = 4  #: captures in a row that find Python's state changed


class CompileError(AutogradError):
    """A function that was to be captured whole (``fullgraph=True``) cannot be."""


def _surroundings() -> Any:
    """What holds in this thread beside arguments and reachable values, as a part of the key; None where calls stay eager."""
    if state.inference or _saved_hooks.stack or _anomaly.enabled:
        return None
    return state.grad, dtypes.get_default_dtype()


_all: weakref.WeakSet = weakref.WeakSet()
_capturing = threading.RLock()
_PACKAGE = __name__.partition(".")[0]


class Compiled:
    """What `compile` returns for a function: called like it, captured once for each kind of call."""

    def __init__(self, function: Callable, fullgraph: bool, check: bool):
        functools.update_wrapper(self, function, updated=())
        self._function, self._fullgraph, self._check = function, fullgraph, 3 if check else 0
        self._variants: dict[Any, list[Variant]] = {}
        self._eager: dict[Any, str] = {}
        self._attempts: dict[Any, int] = {}
        self._stored: dict[tuple[int, Any], dict] = {}  # (id, key) of mappings where it leaves tensors, and the mapping
        self._grown: set[Any] = set()  # keys of calls whose arguments have a graph of their own
        self._count = 0
        _all.add(self)

    def __reduce__(self) -> Any:
        function = self._function
        module = sys.modules.get(getattr(function, "__module__", None) or "")
        if getattr(module, getattr(function, "__qualname__", ""), None) is self:  # a decorated function is found by its name
            return str(function.__qualname__)
        return compile_function, (function, self._fullgraph, self._check > 0)

    def __deepcopy__(self, memo: dict) -> Any:
        function = self._function
        return (
            self
            if isinstance(function, types.FunctionType)
            else compile_function(deepcopy(function, memo), self._fullgraph, self._check > 0)
        )

    def forget(self) -> None:
        """Capture anew from now on."""
        self._variants, self._eager, self._attempts, self._count = {}, {}, {}, 0

    @property
    def programs(self) -> list[Variant]:
        """The captured calls; each has ``reason`` (why it was captured), ``program`` and ``key``."""
        return [v for variants in self._variants.values() for v in variants]

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else functools.partial(self, instance)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        around = _surroundings()
        watching = launch.observer()
        if around is None or (watching is not None and not hasattr(watching, "program")):
            return self._function(*args, **kwargs)
        leaves: list[Tensor] = []
        given = tuple([Tensor if a.__class__ is Tensor else None for a in args])
        if kwargs or None in given:
            key = (flatten(args, leaves), flatten(kwargs, leaves) if kwargs else None, around)
        else:
            leaves, key = list(args), (given, None, around)
        if key in self._eager:
            return self._function(*args, **kwargs)
        variant, reason = self._find(key, leaves)
        if variant is None:
            with _capturing:  # one at a time: a capture changes what other threads would see
                variant, reason = self._find(key, leaves)
                if variant is None:
                    return self._capture(key, leaves, args, kwargs, reason)
        try:
            if self._check:
                return self._compared(variant, leaves, args, kwargs)
            return variant.run(leaves) if watching is None else watching.program(self.__name__, variant.run, leaves)
        except Refused:  # a value was refused before anything had changed: say so as the function itself does
            return self._function(*args, **kwargs)

    def _find(self, key: Any, leaves: list[Tensor]) -> tuple[Variant | None, str]:
        """The captured call that serves, or why none does."""
        reason = "first call of its kind"
        for v in self._variants.get(key, ()):
            reason = v.refuses(leaves)
            if not reason:
                return v, ""
        return None, reason

    # ---- capturing
    def _capture(self, key: Any, leaves: list[Tensor], args: tuple, kwargs: dict, reason: str) -> Any:
        if self._count >= MOST_PROGRAMS:
            self._give_up(key, Problem(f"it was captured {self._count} times, the last because {reason}"))
            return self._function(*args, **kwargs)
        try:
            reach = Reach(self._stored)
            reach.function(self._function)
            others: list[Any] = []
            before = flatten((args, kwargs), [], others)
            for a in others:
                reach.value("an argument", a)
            for kind in {t.__class__ for t in (*leaves, *(t for _, t in reach.tensors.values()))}:
                if issubclass(kind, Wrapped):  # within vmap, grad or jvp
                    self._eager[key] = "it is called within a transform"
                    return self._function(*args, **kwargs)
                if not kind.__module__.startswith(_PACKAGE):
                    raise TooMuch(f"it works on a tensor of the class {kind.__name__}")
            session = Session(self._function, reach, leaves)
            if session.argument_problem:
                raise TooMuch(session.argument_problem)
        except TooMuch as error:
            if self._fullgraph or key not in self._variants:
                self._give_up(key, Problem(str(error)))
            return self._function(*args, **kwargs)
        alias = key in self._grown
        result = session.run(*(session.aliased(args, kwargs) if alias else (args, kwargs)))
        try:
            after: list[Tensor] = []
            if before != flatten((args, kwargs), after) or any(t is not s for t, s in zip(after, leaves, strict=True)):
                raise Problem("it changes a container that it is given; return the values instead")
            variant = session.variant(key, result, {id(c) for c in containers((args, kwargs))}, alias)
            if variant is None:  # arguments have a graph of their own, and are not changed: the next call is captured
                self._grown.add(key)
                return result
        except Unstable as error:
            for d, k in session.unwritten:
                self._stored.pop((id(d), k), None)
            self._stored.update({(id(d), k): d for d, k in reach.stored()})
            n = self._attempts[key] = self._attempts.get(key, 0) + 1
            if n >= ATTEMPTS:
                self._give_up(key, Problem(f"every call changes Python's state: {error.what}"))
            return result
        except Problem as problem:
            self._give_up(key, problem)
            return result
        variant.reason = reason
        variant.function, variant.given = self._function, emptied((args, kwargs))
        self._count += 1
        self._variants.setdefault(key, []).insert(0, variant)
        return result

    def _give_up(self, key: Any, problem: Problem) -> None:
        name = getattr(self._function, "__name__", "function")
        where = f" at {problem.line}" if problem.line else ""
        if self._fullgraph:
            raise CompileError(f"compile({name}, fullgraph=True): {problem.reason}{where}")
        self._eager[key] = problem.reason
        warnings.warn(f"compile({name}): this kind of call runs eagerly, as {problem.reason}{where}", UserWarning, stacklevel=4)

    # ---- checking
    def _compared(self, variant: Variant, leaves: list[Tensor], args: tuple, kwargs: dict) -> Any:
        """Run compiled and eager from the same state, and compare everything they change."""
        self._check -= 1
        watched = [t for _, t in variant.reach.tensors.values()] + leaves
        grads = [t._grad for t in watched]
        counters = [t._version_ for t in [*watched, *(g for g in grads if g is not None)]]
        counts = [c[0] for c in counters]
        before = [t._data.copy() for t in watched]
        before_grads = [None if g is None else g._data.copy() for g in grads]
        sources = [getattr(s, "source", s) for s, _ in variant.program.draws]
        draws = {id(s): (s, s._seed, s._call) for s in sources}
        result = variant.run(leaves)
        found = [t._data.copy() for t in watched]
        found_grads = [None if t._grad is None else t._grad.detach().clone() for t in watched]
        found_versions = [t._version_[0] for t in watched]
        kept = [d[k] for d, k in variant.stores]
        values = [t.detach().clone() for t in tensors_in((result, kept))]
        for t, data, g, gd in zip(watched, before, grads, before_grads, strict=True):
            t._data[...] = data
            t._grad = g
            if g is not None and gd is not None:
                g._data[...] = gd
        for c, count in zip(counters, counts, strict=True):
            c[0] = count
        for s, seed, call in draws.values():
            s._seed, s._call = seed, call
        expected = self._function(*args, **kwargs)
        for what, a, b in (
            ("a result", values, [t.detach() for t in tensors_in((expected, [d[k] for d, k in variant.stores]))]),
            ("memory", found, [t._data for t in watched]),
            ("a gradient", found_grads, [None if t._grad is None else t._grad for t in watched]),
        ):
            for x, y in zip(a, b, strict=True):
                if not _alike(x, y):
                    raise CompileError(f"compile(check=True): compiled and eager runs differ in {what}: {x} and {y}")
        versions = [t._version_[0] for t in watched]
        if found_versions != versions:
            raise CompileError(
                f"compile(check=True): compiled and eager runs differ in version counters: {found_versions} and {versions}"
            )
        return expected


def _alike(x: Any, y: Any) -> bool:
    if x is None or y is None:
        return x is y
    from ..tensor import ndarray

    a, b = (v if isinstance(v, np.ndarray) else ndarray(v.detach()) for v in (x, y))
    if a.dtype.kind not in "fc":
        return bool(np.array_equal(a, b))
    tolerance = 1e-4 if a.dtype.itemsize <= 4 else 1e-9
    return bool(
        np.allclose(a, b, rtol=tolerance, atol=tolerance * max(1.0, float(np.nanmax(np.abs(b), initial=0.0))), equal_nan=True)
    )


def compile_function(function: Any, fullgraph: bool, check: bool) -> Any:
    """The compiled form of a function (see `autograd_nb.compile`)."""
    from numba import config as numba_config

    if numba_config.DISABLE_JIT:
        return function
    return Compiled(function, fullgraph, check)


__all__ = ["CompileError", "Compiled", "compile_function"]
