"""The loader's side of its workers: processes that are started, asked, waited for and ended; and workers within the process."""

from __future__ import annotations

import copy
import multiprocessing
import signal
import time
from collections import deque
from collections.abc import Sequence
from multiprocessing import connection, forkserver
from typing import Any

from ...errors import warn_user
from . import transport, worker

PATIENCE = 5.0  #: seconds for a worker to end by itself


class Process:
    """A worker in a process of its own."""

    process: Any

    def __init__(self, context: Any, parcel: transport.Parcel, number: int):
        self._connection, other = context.Pipe(duplex=True)
        self.process = context.Process(target=worker.main, args=(other, parcel, number), daemon=True)
        with transport.without_main():
            self.process.start()
        other.close()

    @property
    def signs(self) -> tuple[Any, ...]:
        """Return what becomes ready when an answer comes, or the process ends."""
        return self._connection, self.process.sentinel

    def ask(self, request: Any) -> None:
        try:
            transport.send(self._connection, request)
        except (BrokenPipeError, ConnectionResetError):
            pass  # it is noticed when the answer is waited for

    def answer(self, timeout: float) -> Any:
        """Return the next answer. RuntimeError after ``timeout`` seconds (0: none), and if the process ended without answering."""
        ready = connection.wait(self.signs, timeout or None)
        if not ready:
            raise RuntimeError(f"DataLoader timed out after {timeout} seconds")
        if self._connection in ready:
            try:
                return transport.receive(self._connection)
            except (EOFError, OSError):
                pass
        self.process.join(PATIENCE)
        raise RuntimeError(f"DataLoader worker (pid(s) {self.process.pid}) exited unexpectedly{_reason(self.process.exitcode)}")

    def hang_up(self) -> None:
        """Let it end: it sees the connection closed."""
        self._connection.close()

    def end(self, deadline: float) -> None:
        """Wait until it ended; after the deadline, end it."""
        self.process.join(max(deadline - time.monotonic(), 0))
        if self.process.is_alive():
            self.process.terminate()
            self.process.join(1)
            if self.process.is_alive():
                self.process.kill()
                self.process.join()
        self.process.close()


def _reason(code: int | None) -> str:
    if code is None or code == 0:
        return ""
    if code > 0:
        return f" with exit code {code}"
    try:
        name = signal.Signals(-code).name
    except ValueError:
        name = str(-code)
    hint = " (the system may have run out of memory)" if name == "SIGKILL" else ""
    return f": it is killed by signal {name}{hint}"


class Local:
    """A worker in the loader's own process: it answers when its answer is wanted."""

    signs: tuple[Any, ...] = ()

    def __init__(self, plan: worker.Plan, number: int):
        try:
            dataset = copy.copy(plan.dataset)  # a worker may change its own
        except Exception:
            dataset = plan.dataset
        self._worker = worker.Isolated(plan, number, dataset)
        self._requests: deque[Any] = deque()

    def ask(self, request: Any) -> None:
        self._requests.append(request)

    def answer(self, timeout: float) -> Any:
        return self._worker.answer(self._requests.popleft())

    def hang_up(self) -> None:
        self._requests.clear()

    def end(self, deadline: float) -> None:
        pass


def _default_context() -> Any:
    """Return how workers are started: forked from a server that has all they need, where the system can; else afresh."""
    chosen = multiprocessing.get_start_method(allow_none=True)
    if chosen == "spawn" or "forkserver" not in multiprocessing.get_all_start_methods():
        return multiprocessing.get_context("spawn")
    server = getattr(forkserver, "_forkserver", None)
    if getattr(server, "_preload_modules", None) == ["__main__"]:  # as it is unless the program chose; no effect once it runs
        multiprocessing.set_forkserver_preload([f"{__package__}.preload"])
    return multiprocessing.get_context("forkserver")


def start(plan: worker.Plan, context: Any) -> Sequence[Process] | Sequence[Local]:
    """Return the workers of a loader: processes where the dataset can be sent to them and the script imported, else local ones."""
    try:
        parcel = transport.Parcel(plan)
    except Exception as error:
        warn_user(
            f"DataLoader: its {plan.num_workers} worker(s) cannot be processes, and load one after the other in this one: {error}. "
            "Datasets, collate_fn and worker_init_fn for processes are classes and functions of modules (no lambdas or local ones), "
            "and a script that defines them runs its own part under `if __name__ == '__main__':`",
        )
        return [Local(plan, i) for i in range(plan.num_workers)]
    if context is None or context.get_start_method(allow_none=True) in (None, "fork"):  # threads of kernels and of BLAS do not survive a fork
        context = _default_context()
    workers: list[Process] = []
    try:
        for i in range(plan.num_workers):
            workers.append(Process(context, parcel, i))  # noqa: PERF401 (those that started are stopped)
    except BaseException:
        stop(workers)
        raise
    finally:
        parcel.close()
    return workers


def stop(workers: Sequence[Process] | Sequence[Local]) -> None:
    """End workers, all at once."""
    for each in workers:
        each.hang_up()
    deadline = time.monotonic() + PATIENCE
    for each in workers:
        each.end(deadline)


def first_answered(workers: Sequence[Any], timeout: float) -> Any:
    """Return the first of these workers that has an answer, or has died."""
    if not workers[0].signs:
        return workers[0]
    ready = connection.wait([sign for each in workers for sign in each.signs], timeout or None)
    if not ready:
        raise RuntimeError(f"DataLoader timed out after {timeout} seconds")
    return next(each for each in workers if any(sign in ready for sign in each.signs))
