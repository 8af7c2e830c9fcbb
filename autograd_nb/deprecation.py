"""Say that something public will go away: the decorator `deprecated` (docs/versions.md has the policy)."""

from __future__ import annotations

import functools
import re
import warnings
from collections.abc import Callable
from typing import Any, TypeVar

__all__ = ["DEPRECATED", "deprecated"]

T = TypeVar("T", bound=Callable[..., Any])

#: what is deprecated -> the version in which it will be gone; a test sees to it that none of them outlives its version
DEPRECATED: dict[str, str] = {}


def deprecated(since: str, gone: str, instead: str = "") -> Callable[[T], T]:
    """Return a decorator of a function or class that warns at each place which calls it, and otherwise changes nothing.

    The docstring ends with the same sentence, and ``__deprecated__`` holds it, as PEP 702 has it for type checkers and editors.

    Args:
        since: the version that deprecates it. gone: the version in which it will be removed.
        instead: what to write in its place.

    Errors: ValueError where ``gone`` is no later version than ``since``.

    Example:
        >>> from autograd_nb.deprecation import deprecated
        >>> @deprecated(since="0.2", gone="0.3", instead="torch.square")
        ... def squared(x):
        ...     return x * x
        >>> squared.__deprecated__
        'squared is deprecated since 0.2 and will be gone in 0.3: use torch.square'
    """
    if version(since) >= version(gone):
        raise ValueError(f"deprecated(): `gone` (={gone!r}) must be a later version than `since` (={since!r})")

    def mark(thing: T) -> T:
        text = f"{thing.__qualname__.split('.<locals>.')[-1]} is deprecated since {since} and will be gone in {gone}"
        text += f": use {instead}" if instead else ""
        DEPRECATED[f"{thing.__module__}.{thing.__qualname__}"] = gone
        marked = _class(thing, text) if isinstance(thing, type) else _function(thing, text)
        marked.__doc__ = f"{thing.__doc__ or ''}\n\n{text[0].upper()}{text[1:]}.\n".lstrip("\n")
        marked.__deprecated__ = text
        return marked

    return mark


def _function(function: Any, text: str) -> Any:
    @functools.wraps(function)
    def warning(*args: Any, **options: Any) -> Any:
        warnings.warn(text, DeprecationWarning, stacklevel=2)
        return function(*args, **options)

    return warning


def _class(kind: Any, text: str) -> Any:
    """Let the constructor warn. The class itself stays what it is, so that ``isinstance`` and pickles find it."""
    build = kind.__init__

    @functools.wraps(build)
    def warning(self: Any, *args: Any, **options: Any) -> None:
        warnings.warn(text, DeprecationWarning, stacklevel=2)
        build(self, *args, **options)

    kind.__init__ = warning
    return kind


def version(text: str) -> tuple[int, ...]:
    """Return the numbers of a version, to be compared; ``version("0.10.1")`` is (0, 10, 1). ValueError for what is none."""
    if not re.fullmatch(r"\d+(\.\d+){1,2}", text):
        raise ValueError(f"version(): {text!r} is no MAJOR.MINOR or MAJOR.MINOR.PATCH")
    return tuple(map(int, text.split(".")))
