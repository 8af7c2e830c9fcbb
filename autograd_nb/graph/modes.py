"""Gradient modes: thread-local switches, as contexts and decorators.

Source: https://docs.pytorch.org/docs/stable/notes/autograd.html#locally-disabling-gradient-computation
"""

from __future__ import annotations

import functools
import inspect
import threading
from collections.abc import Callable, Sequence
from math import inf
from sys import _getframe
from typing import Any, ClassVar, Self, TypeVar

from ..config import note_unusual
from ..errors import warn_user
from ..overriding import whole

Function = TypeVar("Function", bound=Callable[..., Any])


class PerThread(threading.local):
    """A value that a thread has set for the code that it runs, and hands on to a thread that works in its place."""

    every: ClassVar[list[PerThread]] = []

    def __new__(cls, *args: Any) -> Any:
        self = super().__new__(cls, *args)
        PerThread.every.append(self)
        return self

    @staticmethod
    def copied() -> list[tuple[Any, dict[Any, Any]]]:
        """Return all that this thread has set."""
        return [(values, dict(values.__dict__)) for values in PerThread.every]

    @staticmethod
    def take(copied: list[tuple[Any, dict[Any, Any]]]) -> None:
        """Set the same in this thread."""
        for values, entries in copied:
            values.__dict__.clear()
            values.__dict__.update(entries)


class _State(PerThread):
    grad = True  # record ops
    inference = False  # new tensors are inference tensors
    asked = False  # the mode that was asked for in inference mode, where nothing is recorded all the same
    lifted = False  # a transform that was begun in inference mode runs: nobody else differentiates what is computed
    blocks: tuple[unrecorded, ...] = ()  # that the thread is in, the outermost first
    still: float = 0  # tangents of levels up to this one stand still: nothing that is computed has one of them
    apart: float = 0  # those that stand still where forward mode is on: levels around a `jvp` that was begun while it was off
    switched = 0  # how often recording was switched off by `no_grad`: forward mode goes on within
    ending: Sequence[Callable[[], None]] = ()  # what is called when the outermost pass ends
    closing = False  # whether that is being called
    batched = False  # a pass of a batch of gradients runs, which no tensor retains
    transformed = 0  # functions that transforms have called and wait for, one within the other
    constant: Any = None  # tells whether a tensor comes from outside of a transform's function, where nothing is recorded
    passes = 0  # backward passes that have called users' code and wait for it, one within the other


state: _State = _State()
inference_used: bool = False  #: until inference mode is first entered, nobody need ask whether his thread is in it


def _switch(mode: bool) -> bool:
    """Set whether ops are recorded, and return what was set; in inference mode the answer of `is_grad_enabled` is all that changes."""
    if inference_used and state.inference:
        before, state.asked = state.asked, mode
    else:
        before, state.grad = state.grad, mode
    return before


class _Mode:
    """A context that can also decorate a function or a generator function."""

    def __call__(self, function: Function) -> Function:
        if inspect.isgeneratorfunction(function):

            @functools.wraps(function)
            def generator(*args, **kwargs):
                # the mode holds while the generator's own code runs, not while its consumer's does
                run = function(*args, **kwargs)
                with self._clone():
                    try:
                        value = next(run)
                    except StopIteration as end:
                        return end.value
                while True:
                    try:
                        sent = yield value
                    except GeneratorExit:
                        with self._clone():
                            run.close()
                        raise
                    except BaseException as error:
                        with self._clone():
                            try:
                                value = run.throw(error)
                            except StopIteration as end:
                                return end.value
                    else:
                        with self._clone():
                            try:
                                value = run.send(sent)
                            except StopIteration as end:
                                return end.value

            return generator  # type: ignore[return-value]
        if inspect.isclass(function):
            warn_user(
                "Decorating classes is deprecated and will be disabled in future versions. You should only decorate functions or methods. "
                f"To preserve the current behavior of class decoration, you can directly decorate the `__init__` method of {function.__name__}.",
                FutureWarning,
            )

        @functools.wraps(function)
        def call(*args, **kwargs):
            with self._clone():
                return function(*args, **kwargs)

        return call  # type: ignore[return-value]

    def _clone(self) -> Any:
        return type(self)()

    def __enter__(self) -> None:
        raise NotImplementedError

    def __exit__(self, *error: Any) -> None:
        raise NotImplementedError


class _GradMode(_Mode):
    """A mode that says whether ops are recorded."""

    def __new__(cls, function: Any = None) -> Self:
        # ``@no_grad`` without parentheses works as in PyTorch
        self = object.__new__(cls)
        return self if function is None else self(function)

    @whole
    def __exit__(self, *error: Any) -> None:
        _switch(self._previous)


class no_grad(_GradMode):
    """Context or decorator in which ops are not recorded: their results have ``requires_grad=False``.

    Example:
        >>> x = torch.tensor([1.0], requires_grad=True)
        >>> with torch.no_grad():
        ...     y = x * 2
        >>> y.requires_grad
        False

    Source: https://docs.pytorch.org/docs/stable/generated/torch.no_grad.html
    """

    @whole
    def __enter__(self) -> None:
        self._previous = _switch(False)
        state.switched += 1


class unrecorded(no_grad):
    """`no_grad` around what an op computes for itself, which PyTorch does in C++: a signal handler finds the user's mode there."""

    @whole
    def __enter__(self) -> None:
        self.frame, self._outside, self._previous = _getframe(1), state.blocks, state.grad
        state.blocks = (*state.blocks, self)
        state.grad = False

    @whole
    def __exit__(self, *error: Any) -> None:
        state.grad = self._previous
        state.blocks = self._outside


class enable_grad(_GradMode):
    """Context or decorator in which ops are recorded, also inside `no_grad`, but not inside `inference_mode`."""

    @whole
    def __enter__(self) -> None:
        self._previous = _switch(True)


class recorded(enable_grad):
    """`enable_grad` around what the library differentiates for itself, which works in inference mode too."""

    @whole
    def __enter__(self) -> None:
        self._modes = state.grad, state.inference
        state.grad, state.inference = True, False

    @whole
    def __exit__(self, *error: Any) -> None:
        state.grad, state.inference = self._modes


class lifted(_GradMode):
    """Context around what the library makes in inference mode that is to be ordinary tensors; nothing is recorded all the same."""

    @whole
    def __enter__(self) -> None:
        self._modes = state.inference, state.lifted
        state.inference, state.lifted = False, True

    @whole
    def __exit__(self, *error: Any) -> None:
        state.inference, state.lifted = self._modes


class set_grad_enabled(_Mode):
    """Record ops or not, according to ``mode``: at once when called as a function, or for the length of a ``with`` block."""

    @whole
    def __init__(self, mode: bool):
        self._mode = bool(mode)
        self._previous = _switch(self._mode)
        state.switched += not self._mode

    def __call__(self, function: Function) -> Function:
        _switch(self._previous)
        return super().__call__(function)

    def _clone(self) -> Self:
        return type(self)(self._mode)

    @whole
    def __enter__(self) -> None:
        _switch(self._mode)

    @whole
    def __exit__(self, *error: Any) -> None:
        _switch(self._previous)


class inference_mode(_Mode):
    """Context or decorator without recording whose new tensors never take part in recording later.

    Errors: using such a tensor where it must be saved for backward, or changing it in place outside, is a RuntimeError.

    >>> with torch.inference_mode(): x = torch.ones(2)
    ...
    >>> x.is_inference()
    True
    """

    def __new__(cls, mode: Any = True) -> Self:
        self = object.__new__(cls)
        if callable(mode):
            self.mode = True
            return self(mode)
        self.mode = bool(mode)
        return self

    def _clone(self) -> Self:
        return type(self)(self.mode)

    @whole
    def __enter__(self) -> None:
        global inference_used
        inference_used = True
        note_unusual("inference mode", True)
        self._previous = state.grad, state.inference, state.asked, state.still
        state.inference, state.asked, state.still = self.mode, False, inf if self.mode else state.apart
        state.grad = not self.mode  # (False also ends a `no_grad` around it, as in PyTorch)

    @whole
    def __exit__(self, *error: Any) -> None:
        state.grad, state.inference, state.asked, state.still = self._previous


def is_grad_enabled() -> bool:
    """Return whether ops are being recorded in this thread.

    >>> with torch.no_grad(): print(torch.is_grad_enabled())
    ...
    False
    """
    return state.asked if inference_used and state.inference else state.grad


def is_inference_mode_enabled() -> bool:
    """Return whether `inference_mode` is on in this thread."""
    return state.inference
