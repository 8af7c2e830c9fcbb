"""The kernels of a program are built together: all texts are written first, so that a compile worker begins with the last while the
program builds the first (see `codegen.build.workers`), and what a later pass has fused again is not built at all."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import copy_context
from typing import Any

from ...codegen.build import compilation, workers
from ...ops.core.foreseen import note
from ...overriding import Overrides
from ..capture.recorder import Problem
from ..ir import Step

_OVERRIDES = Overrides()
_waiting = threading.local()  # ``made``: this thread's kernels that are not built, by what `compilation` calls them, while it collects


class Deferred:
    """Stands for the entry point of a text until it is built. ``origin``: see `compilation.source_of`."""

    __slots__ = ("_build", "_entry", "asked", "origin")
    asked: tuple[Any, ...]
    origin: tuple[str, Any, Any]

    def __init__(self, build: Callable[[], Any], asked: tuple[Any, ...]):
        context = copy_context()  # which knows the op that the kernel is of
        self._build, self.asked = lambda: context.run(build), asked
        self._entry: Any = None
        self.origin = ("source", asked[0], asked[2])

    def entry(self) -> Any:
        """Return the entry point, built if need be."""
        if self._entry is None:
            self._entry = self._build()
        return self._entry

    def __call__(self, *args: Any) -> None:
        self.entry()(*args)


@_OVERRIDES.at(compilation._entry)
def _deferring(standing: Callable[..., Any]) -> Callable[..., Any]:
    """Put off what this thread asks for, if it collects: kernels that are given as text."""

    def entry(make: Any, wanted: Any, *args: Any) -> Any:
        made = getattr(_waiting, "made", None)
        if made is None or not isinstance(args[0], str):
            return standing(make, wanted, *args)
        if wanted not in made:
            made[wanted] = Deferred(lambda: standing(make, wanted, *args), args)
        return made[wanted]

    return entry


@contextmanager
def put_off() -> Iterator[None]:
    """Let kernels of texts that this thread asks for within the context be built by `build`."""
    _waiting.made = {}
    try:
        with _OVERRIDES.active():
            yield
    finally:
        _waiting.made = None


def build(steps: Sequence[Step]) -> None:
    """Build the kernels of steps that were put off, in their order. Problem where one cannot be."""
    calls = [step.call for step in steps if isinstance(getattr(step.call, "entry", None), Deferred)]
    left = list({call.entry.asked: call.entry for call in calls}.values())
    told = False
    try:
        while left:
            if workers.foresees() and not told:  # there may be none before the first of them was found missing
                told = True
                note("kernels", [kernel.asked for kernel in left[1:]])
            left.pop(0).entry()
    except Exception as error:
        raise Problem(f"a kernel of it cannot be compiled ({type(error).__name__}: {error})") from error
    for call in calls:
        call.entry = call.entry.entry()
