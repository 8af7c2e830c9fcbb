"""Exceptions of the library, the texts that more than one place raises, and the mark `deprecated` (docs/versions.md has the policy).

Types are PyTorch's (a subclass of RuntimeError, TypeError, ValueError, IndexError…) and messages carry PyTorch's key
phrases, so that a search finds help; the rest names the op, the user's line and the remedy.
"""

from __future__ import annotations

import functools
import inspect
import os
import re
import sys
import warnings
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

_PACKAGE = os.path.dirname(os.path.abspath(__file__)) + os.sep


class AutogradError(RuntimeError):
    """Something about the graph forbids the operation; every error of the recorder and the engine is one."""


class ConsumedGraphError(AutogradError):
    """A backward pass reached a node that an earlier pass consumed."""


class ModifiedError(AutogradError):
    """An array that the graph needs was changed in place after it was saved."""


class GradcheckError(RuntimeError):
    """An analytic derivative differs from the numeric one."""


class CacheWarning(UserWarning):
    """The kernel cache on disk cannot be used; the program goes on without it."""


class DeviceError(AssertionError, RuntimeError):
    """A device that there is not: PyTorch without CUDA raises AssertionError, and RuntimeError for other kinds."""

    def __init__(self, name: str):
        absent = "Torch not compiled with CUDA enabled: " if name.startswith("cuda") else ""
        super().__init__(
            f"{absent}device {name!r} is not available: this library computes on the CPU only (use device='cpu', or test "
            "cuda.is_available() first)"
        )


def warn_user(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn of the user's line: the innermost that is outside this package, however many of its functions lie between.

    >>> import warnings
    >>> with warnings.catch_warnings(record=True) as found:
    ...     warn_user("a wrong window")
    >>> str(found[0].message)
    'a wrong window'
    """
    level, frame = 2, sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)


def shorten(value: object) -> str:
    """Return ``repr(value)`` cut to 80 characters."""
    text = repr(value)
    return text if len(text) <= 80 else text[:79] + "…"


def guess(name: str, names: Iterable[str]) -> str:
    """Return the sentence that asks for the nearest of ``names``, and "" where none is near; ``guess("dmi", ["dim"])``: " Did you mean 'dim'?"."""
    from difflib import get_close_matches

    near = get_close_matches(name, [n for n in names if n[:1] != "_"], 1, 0.6)
    return f" Did you mean {near[0]!r}?" if near else ""


def keywords_of(function: Any) -> tuple[str, ...]:
    """Return the names of the parameters of a function written in Python, of what it is wrapped around: () of others."""
    code = getattr(inspect.unwrap(function), "__code__", None)
    return code.co_varnames[: code.co_argcount + code.co_kwonlyargcount] if code is not None else ()


def with_guess(error: TypeError, function: Any, others: Iterable[str] = ()) -> TypeError:
    """Return the error of a call by a keyword that the function does not have, with a guess at the end, as Python itself makes it from 3.13 on.

    ``others``: what the function takes beside its own parameters.
    """
    text = error.args[0] if error.args and isinstance(error.args[0], str) else ""
    found = re.search(r"got an unexpected keyword argument '(\w+)'$", text)
    if found is not None:
        near = guess(found[1], (*keywords_of(function), *others))
        error.args = (error.args[0] + ("." + near if near else ""), *error.args[1:])
    return error


def unexpected(given: Iterable[str], names: Iterable[str]) -> str:
    """Return PyTorch's words for keywords that `checkpoint` does not pass on, with a guess for each among ``names``."""
    names = tuple(names)
    return "Unexpected keyword arguments: " + ",".join(given) + ("." if (near := "".join(guess(name, names) for name in given)) else "") + near


def refuse_keywords(function: str, given: Iterable[str], names: Iterable[str] = ()) -> None:
    """Raise the TypeError that Python would, with a guess among ``names``, if any keyword is ``given`` that is not of them."""
    names = tuple(names)
    for name in given:
        if name not in names:
            near = guess(name, names)
            raise TypeError(f"{function}() got an unexpected keyword argument {name!r}" + ("." + near if near else ""))


def check_keywords(kind: type, keywords: Iterable[str]) -> None:
    """Raise the TypeError that Python would, with a guess, where ``__init__`` of a class does not take one of the keywords."""
    function = next(vars(base)["__init__"] for base in kind.__mro__ if "__init__" in vars(base))
    code = getattr(function, "__code__", None)
    if code is None or code.co_flags & inspect.CO_VARKEYWORDS or hasattr(function, "__wrapped__"):
        return
    refuse_keywords(f"{kind.__name__}.__init__", keywords, code.co_varnames[1 : code.co_argcount + code.co_kwonlyargcount])


class OutOfMemoryError(RuntimeError):
    """Never raised: PyTorch's error for a GPU whose memory is full, which programs catch."""


class LinAlgError(RuntimeError):
    """A matrix that cannot be factored or inverted, or an iteration that did not converge (PyTorch's `linalg.LinAlgError`)."""


#: how a view was made -> the words for it
UNTRACKED = {
    "no_grad": ("no_grad", "with grad mode enabled", "no_grad"),
    "inference": ("inference", "in normal mode", "inference_mode"),
    "function": ("no_grad", "with grad mode enabled", "no_grad"),
}


SEVERAL = (
    "This view is the output of a function that returns multiple views. Such functions do not allow the output views to be modified "
    "inplace. You should replace the inplace operation by an out-of-place one."
)
OVERRIDDEN = (
    "This view was created inside a custom Function (or because an input was returned as-is) and the autograd logic to handle "
    "view+inplace would override the custom backward associated with the custom Function, leading to incorrect gradients. This "
    "behavior is forbidden. You can fix this by cloning the output of the custom Function."
)
AMBIGUOUS = (
    "Given that this use case is ambiguous and error-prone, it is forbidden. You can clarify your code by moving both the view and "
    "the inplace either both inside the {block} block (if you don't want the inplace to be tracked) or both outside (if you want the "
    "inplace to be tracked)."
)
COMPLEX_MODULE = (
    "Complex modules are a new feature under active development whose design may change, and some modules might not work as expected when using "
    "complex tensors as parameters or buffers."
)


# ---------------------------------------------------------------------------------------------- deprecation

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
        >>> from autograd_nb.errors import deprecated
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
