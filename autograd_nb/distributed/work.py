"""One call on a group: the task that the communication thread runs, and what the caller holds of it.

Source: https://docs.pytorch.org/docs/stable/distributed.html#torch.distributed.Work
"""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import timedelta
from threading import Lock
from typing import Any

from .failures import DistBackendError, seconds
from .futures import Future
from .waiting import awaited


class Task:
    """A call on a group: its place in the group's order, and its outcome.

    ``run`` does it, and waits until it is done. A task that only posts its calls has ``polled``: what says whether it is through.
    """

    __slots__ = (
        "_callbacks", "cancel", "done", "error", "event", "group", "kind", "lock", "name", "native", "order", "peers", "polled", "result", "run", "seq",
        "started", "text", "timeout",
    )  # fmt: skip
    group: Any
    name: str
    peers: tuple[int, ...] | None
    run: Callable[[], Any]
    text: str
    timeout: float
    seq: int
    event: Lock
    lock: Lock
    started: float
    done: bool

    def __init__(self, group: Any, name: str, text: str, run: Callable[[], Any], timeout: float, peers: tuple[int, ...] | None = None):
        self.group, self.name, self.text, self.run, self.timeout, self.peers = group, name, text, run, timeout, peers
        self.polled: Callable[[], bool] | None = None
        self.cancel: Callable[[], None] | None = None
        self.order: Callable[[Callable[[], None]], None] | None = None
        self.seq = 0
        self.kind: Any = None  # what is the same of it on all ranks, where that is more than its name and text say
        self.native: bool = False  # whether a compiled program runs it
        self.started = 0.0
        self.result: Any = None
        self.error: BaseException | None = None
        self.done = False
        self.lock, self.event = Lock(), Lock()
        self.event.acquire()
        self._callbacks: list[Callable[[], None]] = []

    def __str__(self) -> str:
        return f"{self.name} #{self.seq}{' ' if self.text else ''}{self.text}" if self.peers is None else f"{self.name} {self.text}"

    def begin(self) -> None:
        """Note that it runs from now on."""
        self.started = time.monotonic()

    def waited(self) -> float:
        """Return for how long it has run."""
        return time.monotonic() - self.started if self.started else 0.0

    def finish(self, error: BaseException | None = None) -> None:
        """End it, and let go of whoever waits. What comes second is not heard: a task that was given up may end later."""
        with self.lock:
            if self.done:
                return
            self.error, self.done = error, True
            callbacks, self._callbacks = self._callbacks, []
        self.event.release()
        for call in callbacks:
            call()

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until it is done, at most ``timeout`` seconds; return whether it is."""
        if not self.done:
            with awaited():
                if self.event.acquire(timeout=-1 if timeout is None else timeout):
                    self.event.release()  # for the next who waits
        return self.done

    def then(self, call: Callable[[], None]) -> None:
        """Call it when the task is done, in the thread that does it; at once where it is."""
        with self.lock:
            if not self.done:
                self._callbacks.append(call)
                return
        call()


class Work:
    """A call that runs while the program goes on: ``async_op=True`` and `isend` return it.

    >>> t = torch.ones(1)
    >>> work = dist.all_reduce(t, async_op=True)
    >>> total = work.get_future().then(lambda f: f.value()[0] * 10)
    >>> work.wait(), total.wait()
    (True, tensor([20.]))
    """

    def __init__(self, task: Task, outputs: Any = None, source: Callable[[], int] | None = None):
        self._task, self._outputs, self._source = task, outputs, source

    def wait(self, timeout: timedelta | float | None = None) -> bool:
        """Wait until the tensors are there; True. DistBackendError where it fails or takes longer than ``timeout``."""
        limit = timeout.total_seconds() if isinstance(timeout, timedelta) else timeout
        if not self._task.wait(limit or None):
            raise DistBackendError(f"Timed out: {self._task} took longer than {seconds(limit or 0)}")
        if self._task.error is not None:
            raise self._task.error
        return True

    def is_completed(self) -> bool:
        """Return whether it is done, well or not."""
        return self._task.done

    def is_success(self) -> bool:
        """Return whether it is done and nothing failed."""
        return self._task.done and self._task.error is None

    def exception(self) -> BaseException | None:
        """Return what it failed with, or None."""
        return self._task.error

    def get_future(self) -> Future:
        """Return a future of the list of tensors that are written.

        What its `then` is given runs in its place among the calls, the same on all ranks: it may make calls itself.
        """
        future, task = Future(order=self._task.order), self._task

        def finish() -> None:
            if task.error is None:
                future.set_result(self._outputs)
            else:
                future.set_exception(task.error)

        task.then(finish)
        return future

    def result(self) -> Any:
        """Return the tensors that are written."""
        return self._outputs

    def source_rank(self) -> int:
        """Return who sent what was received."""
        if self._source is None:
            raise RuntimeError("source_rank(): this work received nothing")
        return self._source()

    def synchronize(self) -> None:
        """Wait, as `wait` does."""
        self.wait()
