"""A worker of a loader: its seeds, its dataset, and the batches that it makes; in a process of its own, or in the loader's.

Source: https://docs.pytorch.org/docs/stable/data.html#multi-process-data-loading
"""

from __future__ import annotations

import queue
import random
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from ... import dtypes
from ...config import set_num_threads
from ...ops.random.generator import default_generator
from . import fetch, transport


@dataclass(frozen=True, slots=True)
class WorkerInfo:
    """The things that `get_worker_info` tells a worker: its number, how many there are, its seed, its copy of the dataset."""

    id: int
    num_workers: int
    seed: int
    dataset: Any
    rng: Any = None
    worker_method: str | None = "multiprocessing"


_process_info: WorkerInfo | None = None
_thread = threading.local()


def get_worker_info() -> WorkerInfo | None:
    """Return, in a worker of a DataLoader, its ``id``, ``num_workers``, ``seed`` and ``dataset``. None elsewhere.

    Source: https://docs.pytorch.org/docs/stable/data.html#torch.utils.data.get_worker_info

    >>> torch.utils.data.get_worker_info() is None
    True
    """
    return getattr(_thread, "info", None) or _process_info


class _KeyErrorMessage(str):
    """A text that KeyError shows as it is, with its line breaks."""

    def __repr__(self) -> str:
        return str(self)


class Failure:
    """The exception that is being handled, on its way to the loader's process."""

    text: str

    def __init__(self, where: str):
        kind, value, trace = sys.exc_info()
        assert kind is not None
        self.kind: type[BaseException] = kind
        self.text = f"Caught {kind.__name__} {where}.\nOriginal " + "".join(traceback.format_exception(kind, value, trace))

    def portable(self) -> Failure:
        """Return the error itself, or, where its type is not known in other processes, as a RuntimeError."""
        try:
            transport._Pickler(whole_storages=False).dump(self)
        except Exception:
            self.kind = RuntimeError
        return self

    def reraise(self) -> None:
        """Raise an exception of the original type, with the original traceback in its text."""
        text = _KeyErrorMessage(self.text) if self.kind is KeyError else self.text
        try:
            error = self.kind(text)
        except Exception:  # its type wants other arguments
            error = RuntimeError(text)
        raise error


class End:
    """A worker's stream is exhausted."""


class Restart:
    """A worker begins again, for another pass over its dataset."""


@dataclass(frozen=True)
class Plan:
    """The things that the workers of a loader have in common."""

    dataset: Any
    fetcher: Callable[..., Any]
    batched: bool
    collate_fn: Callable[..., Any]
    drop_last: bool
    init_fn: Callable[..., Any] | None
    num_workers: int
    base_seed: int
    default_dtype: Any

    def make_fetcher(self, dataset: Any) -> Any:
        return self.fetcher(dataset, self.batched, self.collate_fn, self.drop_last)


class Worker:
    """Answers requests: an index or a batch of them with the data, `End` or a `Failure`."""

    info: WorkerInfo

    def __init__(self, plan: Plan, number: int, dataset: Any, method: str = "multiprocessing"):
        self.plan = plan
        seed = plan.base_seed + number
        self.info = WorkerInfo(number, plan.num_workers, seed, dataset, None, method)
        self._fetcher: Any = None

    def seed(self) -> None:
        """Seed the random numbers of Python, NumPy and this library as the worker's own."""
        base, number = self.plan.base_seed, self.info.id
        random.seed(self.info.seed)
        default_generator.manual_seed(self.info.seed)
        np.random.seed(np.random.SeedSequence([number, base & 0xFFFFFFFF, base >> 32, 0]).generate_state(4))  # noqa: NPY002

    def answer(self, request: Any) -> Any:
        try:
            if isinstance(request, Restart):
                if self._fetcher is not None:
                    self._fetcher = self.plan.make_fetcher(self.info.dataset)
                return request
            if self._fetcher is None:
                if self.plan.init_fn is not None:
                    self.plan.init_fn(self.info.id)
                self._fetcher = self.plan.make_fetcher(self.info.dataset)
            return self._fetcher.fetch(request)
        except StopIteration:
            if self.plan.fetcher is fetch.Stream:
                return End()
            return Failure(self.where)
        except Exception:
            return Failure(self.where)

    @property
    def where(self) -> str:
        return f"in DataLoader worker process {self.info.id}"


class Isolated:
    """A `Worker` in the loader's own process, which computes when it is asked, with random numbers of its own."""

    def __init__(self, plan: Plan, number: int, dataset: Any):
        self._worker = Worker(plan, number, dataset, "local")
        self._states: tuple[Any, ...] | None = None

    @contextmanager
    def _own_world(self) -> Iterator[None]:
        before = _states()
        outer = getattr(_thread, "info", None)
        _thread.info = self._worker.info
        try:
            if self._states is None:
                self._worker.seed()
            else:
                _restore(self._states)
            yield
        finally:
            self._states = _states()
            _restore(before)
            _thread.info = outer

    def answer(self, request: Any) -> Any:
        with self._own_world():
            return self._worker.answer(request)


def _states() -> tuple[Any, ...]:
    """Return where the global random numbers are that datasets draw from."""
    return random.getstate(), np.random.get_state(), default_generator.get_state()  # noqa: NPY002


def _restore(states: tuple[Any, ...]) -> None:
    random.setstate(states[0])
    np.random.set_state(states[1])  # noqa: NPY002
    default_generator.set_state(states[2])


# ---------------------------------------------------------------------------------------------- in a process


def main(connection: Any, delivery: transport.Delivery, number: int) -> None:
    """Run a worker's process: answer the requests of the loader until it closes the connection."""
    global _process_info
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the loader's process's affair, which then ends this one
    requests: queue.SimpleQueue = queue.SimpleQueue()
    # a thread of its own takes requests, so that the loader never waits in sending one while this process sends it a batch
    threading.Thread(target=_take_requests, args=(connection, requests), daemon=True).start()
    worker = None
    try:
        plan = delivery.open()
        dtypes.set_default_dtype(plan.default_dtype)
        set_num_threads(1)
        worker = Worker(plan, number, plan.dataset)
        worker.seed()
        _process_info = worker.info
    except Exception:
        failure = Failure(f"in DataLoader worker process {number}")
    try:
        while (message := requests.get()) is not None:
            (request,) = message
            answer = failure if worker is None else worker.answer(request)
            try:
                transport.send(connection, answer.portable() if isinstance(answer, Failure) else answer)
            except (BrokenPipeError, ConnectionResetError):
                break
            except Exception:  # the batch cannot be pickled
                transport.send(connection, Failure(f"in DataLoader worker process {number}").portable())
            del answer
    except (BrokenPipeError, ConnectionResetError):
        pass


def _take_requests(connection: Any, requests: queue.SimpleQueue) -> None:
    try:
        while True:
            requests.put((transport.receive(connection),))
    except (EOFError, OSError):
        requests.put(None)
