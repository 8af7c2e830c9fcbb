"""The communication thread: it runs tasks one after another, in the order in which the program made them.

MPI's calls are waited for here, so that the program computes meanwhile; its non-blocking ones make no progress in the background. The thread waits in
a kernel, without the interpreter's lock, and leaves the core to the program while that computes. A task that the program would wait for at once
runs on the calling thread instead where nothing else is to be done: handing it over costs more than a small call.
While messages between two ranks are under way the thread looks after them, as both may send first.
"""

from __future__ import annotations

import os
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Any

from .. import launch
from ..kernels.order import ENDED, GIVEN_UP, LONGEST, PATIENT, SLOWLY, SPIN
from ..kernels.order import REST as REST_WORD
from . import waiting
from .failures import DistBackendError
from .mpi import NATIVE, address, mpi
from .work import Task

#: the longest rest between two looks at messages under way, in seconds; the first hundred looks follow at once
REST, EAGER = 0.001, 100

_WAIT = launch.Kernel("collectives", "wait", outputs=2)


class CommunicationThread:
    """A queue of tasks and the thread that runs them; ``broken`` says why none can run any more.

    Whoever runs a task, this thread or the program's, has the turn meanwhile.
    """

    def __init__(self) -> None:
        self.queue: deque[Task] = deque()
        self.under_way: list[Task] = []
        self.current: Task | None = None
        self.last: Task | None = None
        self.broken: BaseException | None = None
        self.native: list[Callable[[], Task | None]] = []  # each tells what a compiled program waits for
        self.abandoned: list[Any] = []  # calls that were given up: MPI may still write into their memory
        self._turn = threading.Lock()
        self._whose = 0
        self._wake = threading.Lock()
        self._wake.acquire()
        self._own = threading.Thread(target=self._live, name="autograd_nb-communication", daemon=True)
        self._own.start()

    def submit(self, task: Task) -> Task:
        """Put a task behind the others. DistBackendError when an earlier call never ended."""
        if self.broken is not None:
            raise DistBackendError(f"{task} cannot run, as an earlier call failed: {self.broken}")
        task.order = self.in_order
        self.queue.append(task)
        self._awake()
        return task

    def inside(self) -> bool:
        """Return whether the caller runs a task already, so that what it begins is a part of that."""
        return self._whose == threading.get_ident()

    def take_turn(self) -> bool:
        """Give the caller the turn where nothing else is to be done; return whether it has it, and then calls `run_here`."""
        if self.broken is not None or not self._turn.acquire(blocking=False):
            return False
        if self.queue or self.broken is not None:
            self._turn.release()
            return False
        self._whose = threading.get_ident()
        return True

    def run_here(self, task: Task) -> None:
        """Run a task on the calling thread, which has the turn, or is inside of another task."""
        task.order = self.in_order
        around = self.current
        try:
            self._run(task)
        finally:
            if around is not None:
                self.current = around
            else:
                self._whose = 0
                self._turn.release()
                if self.queue or self.under_way:
                    self._awake()

    def in_order(self, call: Callable[[], None]) -> None:
        """Run what communicates nothing by itself in its place among the calls: behind all that was begun before."""
        if self.inside():
            call()
        else:
            self.submit(Task(None, "then", "", call, 0.0, ()))

    def through(self, request: Any) -> None:
        """Wait for a call of MPI that has been posted; raise the error of its task where that is given up meanwhile."""
        task = self.current
        if threading.current_thread() is not self._own:
            through = self._looked(request, task)
        elif NATIVE and task is not None:
            calls = [address(name) for name in ("MPI_Test", "sched_yield", "usleep")]
            _WAIT("wait", *calls, mpi()._addressof(request), waiting.words, task.group.words)
            through = not task.group.words[GIVEN_UP] or request.Test()
        else:
            request.Wait()
            through = True
        if not through:
            self.abandoned.append(request)
            raise (task and task.error) or DistBackendError(f"{task} was given up")

    def _looked(self, request: Any, task: Task | None) -> bool:
        """Look at a call on the program's own thread until it is through; return whether it is, and was not given up."""
        looks, words = 0, waiting.words if task is None or task.group is None else task.group.words
        spin, patient, rest = int(words[SPIN]), int(words[PATIENT]), int(words[REST_WORD])
        while not request.Test():
            looks += 1
            if looks > spin:
                if task is not None and task.done:
                    return False
                if looks > patient:
                    time.sleep(1e-6 * min(rest + (looks - patient) // SLOWLY, LONGEST))
                elif hasattr(os, "sched_yield"):
                    os.sched_yield()
        return True

    def give_up(self, task: Task, error: BaseException) -> None:
        """Fail a task that will not end. Where MPI is inside of it, all that follow fail too."""
        stuck = task is self.current or task.native
        if stuck:
            self.broken = error
            task.group.words[GIVEN_UP] = 1
        cancel = task.cancel if not stuck and task in self.under_way else None
        task.finish(error)
        if cancel is not None:  # last: a message that is cancelled counts as one of no bytes
            cancel()
        while stuck and self.queue:
            later = self.queue.popleft()
            later.finish(DistBackendError(f"{later} cannot run, as an earlier call failed: {error}"))

    def idle(self) -> bool:
        """Return whether nothing is to be done."""
        return not self.queue and not self.under_way and self.current is None

    def waiting(self) -> list[Task]:
        """Return the tasks that wait for other ranks, the one that MPI is inside of first."""
        current = self.current
        native = [task for look in self.native if (task := look()) is not None]
        return [*native, *([current] if current is not None and current.group is not None else []), *self.under_way]

    def _awake(self) -> None:
        try:
            self._wake.release()
        except RuntimeError:  # it is awake
            pass

    def _live(self) -> None:
        looks = 0
        while True:
            if self.queue:
                self._next()
                looks = 0
            elif self.under_way:
                looks = 0 if self._look() else looks + 1
                if looks > EAGER:
                    self._wake.acquire(timeout=min(REST, 1e-5 * (looks - EAGER)))
            else:
                self._wake.acquire()

    def _next(self) -> None:
        """Run the next task, when it is this thread's turn."""
        with self._turn:
            self._whose = threading.get_ident()
            try:
                self.current = self.queue[0]  # before it leaves the queue: somebody may ask whether all is done
                self._run(self.queue.popleft())
            except IndexError:  # it was given up meanwhile
                self.current = None
            finally:
                self._whose = 0

    def _run(self, task: Task) -> None:
        task.begin()
        self.current = task
        error: BaseException | None = None
        try:
            task.result = task.run()
        except BaseException as raised:
            error = raised
        if task.group is not None:
            self.last = task
            if task.seq and task.peers is None and not task.native:  # programs count their calls themselves
                task.group.words[ENDED] += 1
                task.group.note(task, error)
        if error is None and task.polled is not None:
            self.under_way.append(task)  # before it is no longer the current one: the watch sees it all the time
            self.current = None
            return
        self.current = None
        if isinstance(error, KeyboardInterrupt):  # on the program's thread: MPI may be in the middle of it
            self.broken = error
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
    if error is None or isinstance(error, (DistBackendError, TypeError, ValueError, KeyboardInterrupt)) or task.group is None:
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


def through(request: Any) -> None:
    """Wait for a call of MPI that has been posted, on whichever thread it is."""
    _thread[0].through(request)


def drain(limit: float) -> bool:
    """Wait until all that was begun is through; whether it is, after ``limit`` seconds."""
    end = time.monotonic() + limit
    while _thread and not _thread[0].idle() and _thread[0].broken is None and time.monotonic() < end:
        time.sleep(0.001)
    return not _thread or _thread[0].idle()
