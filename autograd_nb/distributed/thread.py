"""The communication thread: it runs tasks one after another, in the order in which the program made them.

MPI's blocking calls are made here, so that the program computes meanwhile; its non-blocking ones make no progress in the background, and
serve only messages between two ranks, of which both may send first. While such messages are under way the thread looks after them.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from typing import Any

from .failures import DistBackendError
from .work import Task

#: the longest rest between two looks at messages under way, in seconds; the first hundred looks follow at once
REST, EAGER = 0.001, 100


class CommunicationThread:
    """A queue of tasks and the thread that runs them; ``broken`` says why none can run any more."""

    def __init__(self) -> None:
        self.queue: deque[Task] = deque()
        self.under_way: list[Task] = []
        self.current: Task | None = None
        self.last: str = ""
        self.broken: BaseException | None = None
        self._wake = threading.Lock()
        self._wake.acquire()
        threading.Thread(target=self._live, name="autograd_nb-communication", daemon=True).start()

    def submit(self, task: Task) -> Task:
        """Put a task behind the others. DistBackendError when the thread is lost in a call that never ended."""
        if self.broken is not None:
            raise DistBackendError(f"{task} cannot run, as an earlier call failed: {self.broken}")
        self.queue.append(task)
        self._awake()
        return task

    def give_up(self, task: Task, error: BaseException) -> None:
        """Fail a task that will not end. Where the thread is inside of it, all that follow fail too."""
        stuck = task is self.current
        if stuck:
            self.broken = error
        elif task in self.under_way and task.cancel is not None:
            task.cancel()
        task.finish(error)
        while stuck and self.queue:
            later = self.queue.popleft()
            later.finish(DistBackendError(f"{later} cannot run, as an earlier call failed: {error}"))

    def idle(self) -> bool:
        """Return whether nothing is to be done."""
        return not self.queue and not self.under_way and self.current is None

    def waiting(self) -> list[Task]:
        """Return the tasks that wait for other ranks, the one in a blocking call first."""
        current = self.current
        return [*([current] if current is not None else []), *self.under_way]

    def _awake(self) -> None:
        try:
            self._wake.release()
        except RuntimeError:  # it is awake
            pass

    def _live(self) -> None:
        looks = 0
        while True:
            if self.queue:
                self._run(self.queue.popleft())
                looks = 0
            elif self.under_way:
                looks = 0 if self._look() else looks + 1
                if looks > EAGER:
                    self._wake.acquire(timeout=min(REST, 1e-5 * (looks - EAGER)))
            else:
                self._wake.acquire()

    def _run(self, task: Task) -> None:
        task.begin()
        self.current = task
        error: BaseException | None = None
        try:
            task.result = task.run()
        except BaseException as raised:
            error = raised
        self.last = str(task)
        if error is None and task.polled is not None:
            self.under_way.append(task)  # before it is no longer the current one: the watch sees it all the time
            self.current = None
            return
        self.current = None
        task.finish(_named(task, error))

    def _look(self) -> bool:
        """Finish the tasks whose messages have arrived; whether there were any."""
        found = False
        for task in list(self.under_way):
            error: BaseException | None = None
            try:
                if not (task.done or task.polled is None or task.polled()):
                    continue
            except BaseException as raised:
                error = raised
            self.under_way.remove(task)
            task.finish(_named(task, error))
            found = True
        return found


def _named(task: Task, error: BaseException | None) -> BaseException | None:
    """Return MPI's errors with the call that they come of."""
    if error is None or isinstance(error, (DistBackendError, TypeError, ValueError)):
        return error
    named = DistBackendError(f"{task}: {type(error).__name__}: {error}")
    named.__cause__ = error
    return named


_thread: list[Any] = []


def communication() -> CommunicationThread:
    """Return the thread, which begins with the first call."""
    if not _thread:
        _thread.append(CommunicationThread())
    return _thread[0]  # type: ignore[no-any-return]


def drain(limit: float) -> bool:
    """Wait until all that was begun is through; whether it is, after ``limit`` seconds."""
    end = time.monotonic() + limit
    while _thread and not _thread[0].idle() and _thread[0].broken is None and time.monotonic() < end:
        time.sleep(0.001)
    return not _thread or _thread[0].idle()
