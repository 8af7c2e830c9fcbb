"""``torch.futures``: results that come later, or are there already."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from types import GenericAlias
from typing import Any

from .waiting import awaited


class Future:
    """Holds a value that some thread sets, and calls what waits for it.

    >>> from autograd_nb.futures import Future
    >>> f = Future(); g = f.then(lambda f: f.wait() + 1); f.set_result(1); g.wait()
    2
    """

    def __class_getitem__(cls, value: Any) -> Any:
        """Return ``Future[int]`` as annotations write it."""
        return GenericAlias(cls, value)

    def __init__(self, *, devices: Any = None, order: Callable[[Callable[[], None]], None] | None = None):
        self._order = order  # what runs calls in their turn, where the order of calls matters
        self._set, self._lock = threading.Event(), threading.Lock()
        self._value: Any = None
        self._error: BaseException | None = None
        self._calls: list[Callable[[Future], Any]] = []

    def done(self) -> bool:
        """Return whether there is a value, or an error."""
        return self._set.is_set()

    def wait(self) -> Any:
        """Return the value when it is there; raise the error if there is one."""
        if not self.done():
            with awaited():
                self._set.wait()
        return self.value()

    def value(self) -> Any:
        """Return the value, which must be there."""
        if not self.done():
            raise RuntimeError("Future has not completed: wait() for it")
        if self._error is not None:
            raise self._error
        return self._value

    def add_done_callback(self, callback: Callable[[Future], Any]) -> None:
        """Call ``callback(self)`` when the value is there."""
        with self._lock:
            if not self.done():
                self._calls.append(callback)
                return
        callback(self)

    def then(self, callback: Callable[[Future], Any]) -> Future:
        """Return the future of ``callback(self)``, which is called when the value is there."""
        following = Future(order=self._order)

        def run(done: Future) -> None:
            try:
                following.set_result(callback(done))
            except Exception as error:
                following.set_exception(error)

        if self._order is None:
            self.add_done_callback(run)
        else:
            self._order(lambda: self.add_done_callback(run))
        return following

    def _finish(self, value: Any, error: BaseException | None) -> None:
        with self._lock:
            if self.done():
                raise RuntimeError("Future already set: it has one value")
            self._value, self._error = value, error
            self._set.set()
        for call in self._calls:
            call(self)

    def set_result(self, result: Any) -> None:
        """Set the value. RuntimeError where it was set before."""
        self._finish(result, None)

    def set_exception(self, result: BaseException) -> None:
        """Set an error, which `wait` raises."""
        if not isinstance(result, Exception):
            raise AssertionError(f"{result} is of type {type(result)}, not an Exception.")
        self._finish(None, result)


def collect_all(futures: Sequence[Future]) -> Future:
    """Return the future of the list when all of it is there."""
    whole = Future()
    left = [len(futures)]
    lock = threading.Lock()

    def one(_: Any) -> None:
        with lock:
            left[0] -= 1
            complete = left[0] == 0
        if complete:
            whole.set_result(list(futures))

    for f in futures:
        f.add_done_callback(one)
    if not futures:
        whole.set_result([])
    return whole


def wait_all(futures: Sequence[Future]) -> list[Any]:
    """Return the values when all are there."""
    return [f.wait() for f in collect_all(futures).wait()]


def fork(func: Callable[..., Any], *args: Any, **kwargs: Any) -> Future:
    """Return the future of a call, which is made at once, as PyTorch does outside of scripts.

    >>> torch.jit.fork(torch.add, torch.ones(2), 1).wait()
    tensor([2., 2.])
    """
    found = Future()
    found.set_result(func(*args, **kwargs))
    return found


def wait(future: Future) -> Any:
    """Return the future's value.

    >>> torch.jit.wait(torch.jit.fork(torch.add, torch.ones(2), 1))
    tensor([2., 2.])
    """
    return future.wait()
