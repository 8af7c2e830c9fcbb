"""What a signal handler does not see half done.

Python runs signal handlers between any two instructions of its main thread, and they may raise: Ctrl-C does. What PyTorch does in C++
is one step to them. Here such a step is a Python function that is marked `whole`: a signal that arrives in its midst is handled as soon
as it has returned (see `autograd.handlers`). Marking costs nothing when no signal comes.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import _GeneratorContextManager
from types import CodeType
from typing import TypeVar

F = TypeVar("F", bound=Callable)

#: the code of functions that are marked; those of contexts that generators make, or what has begun might never end
WHOLE: set[CodeType] = {getattr(_GeneratorContextManager, name).__code__ for name in ("__enter__", "__exit__")}


def whole(function: F) -> F:
    """Decorator: signals wait until the function has returned. It must be quick, or spend its time in kernels."""
    WHOLE.add(function.__code__)  # type: ignore[attr-defined]
    return function
