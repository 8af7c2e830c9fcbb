"""DataLoader: batches of a dataset, made here or by workers.

Source: https://docs.pytorch.org/docs/stable/data.html
"""

from __future__ import annotations

import multiprocessing
import os
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from itertools import cycle, repeat
from multiprocessing.context import BaseContext
from typing import Any, Generic, TypeVar

from ... import dtypes
from ...errors import warn_user
from . import fetch, pool, worker
from .collate import default_collate, default_convert
from .dataset import Dataset, IterableDataset
from .sampler import BatchSampler, RandomSampler, Sampler, SequentialSampler, random_seed
from .worker import get_worker_info

__all__ = ["DataLoader", "default_collate", "default_convert", "get_worker_info"]

T = TypeVar("T", covariant=True)


class _DatasetKind:
    Map, Iterable = 0, 1


class _InfiniteConstantSampler(Sampler[None]):
    """The sampler of a stream: that decides by itself what comes and when it ends."""

    def __iter__(self) -> Iterator[None]:
        return repeat(None)


def _check_workers(num_workers: int, timeout: float, prefetch_factor: int | None, persistent_workers: bool) -> None:
    if num_workers < 0:
        raise ValueError("num_workers option should be non-negative; use num_workers=0 to disable multiprocessing.")
    if timeout < 0:
        raise ValueError("timeout option should be non-negative")
    if num_workers == 0 and prefetch_factor is not None:
        raise ValueError(
            "prefetch_factor option could only be specified in multiprocessing. Let num_workers > 0 to enable multiprocessing, "
            "otherwise set prefetch_factor to None."
        )
    if prefetch_factor is not None and prefetch_factor < 0:
        raise ValueError("prefetch_factor option should be non-negative")
    if persistent_workers and num_workers == 0:
        raise ValueError("persistent_workers option needs num_workers > 0")


def _check_stream(shuffle: bool | None, sampler: Any, batch_sampler: Any) -> None:
    if shuffle not in (False, None):
        raise ValueError(f"DataLoader with IterableDataset: expected unspecified shuffle option, but got shuffle={shuffle}")
    for name, value in (("sampler", sampler), ("batch_sampler", batch_sampler)):
        if value is not None:
            raise ValueError(f"DataLoader with IterableDataset: expected unspecified {name} option, but got {name}={value}")


def _check_sampling(batch_size: int | None, shuffle: bool | None, sampler: Any, batch_sampler: Any, drop_last: bool) -> None:
    if sampler is not None and shuffle:
        raise ValueError("sampler option is mutually exclusive with shuffle")
    if batch_sampler is not None:
        if batch_size != 1 or shuffle or sampler is not None or drop_last:
            raise ValueError("batch_sampler option is mutually exclusive with batch_size, shuffle, sampler, and drop_last")
    elif batch_size is None and drop_last:
        raise ValueError("batch_size=None option disables auto-batching and is mutually exclusive with drop_last")


class DataLoader(Generic[T]):
    """Iterates over batches of a dataset, anew for each ``for`` loop.

    dataset: with items by number (``__getitem__`` and ``__len__``), or an `IterableDataset`.
    batch_size: items a batch; None gives items one by one, as they are. drop_last: leave out a last batch that is not full.
    shuffle: in a new random order each time. sampler: gives the indices; batch_sampler: gives lists of indices, a batch each.
    collate_fn: makes a batch of a list of items (`default_collate`); with batch_size=None, converts an item (`default_convert`).
    num_workers: processes that load in advance, ``prefetch_factor`` batches each (2); 0 loads in this process. The order is the
    samplers', unless ``in_order`` is False. worker_init_fn(number): called in each worker. persistent_workers: keep them for the
    next loop. timeout: seconds to wait for a batch. generator: draws the order and the workers' seeds.
    pin_memory and pin_memory_device are accepted: memory on the CPU needs no pinning.

    Processes are forked from a clean server, or started afresh (``multiprocessing_context="spawn"``); never from this process,
    whose threads would not survive it. So the dataset is pickled, and the script's own part belongs under
    ``if __name__ == '__main__':``. Where that is not so, a warning says why, and the workers' batches are made in this process,
    the same ones. An exception in a worker is raised here, its traceback in the text.

    Errors: ValueError and TypeError for arguments; RuntimeError for a worker that died, and after ``timeout``.

    Example:
        >>> from autograd_nb.utils.data import DataLoader, TensorDataset
        >>> x = torch.arange(5)
        >>> for a, b in DataLoader(TensorDataset(x, x * 10), batch_size=2):
        ...     print(a.tolist(), b.tolist())
        [0, 1] [0, 10]
        [2, 3] [20, 30]
        [4] [40]

    Source: https://docs.pytorch.org/docs/stable/data.html#torch.utils.data.DataLoader
    """

    dataset: Any
    batch_size: int | None
    drop_last: bool
    sampler: Any
    batch_sampler: Any
    collate_fn: Callable[..., Any]
    generator: Any
    pin_memory: bool
    pin_memory_device: str
    timeout: float
    worker_init_fn: Callable[..., Any] | None
    in_order: bool
    persistent_workers: bool
    prefetch_factor: int | None

    _iterator: Any = None
    _fixed = False

    def __init__(
        self, dataset: Dataset[T] | Sequence[T], batch_size: int | None = 1, shuffle: bool | None = None, sampler: Any = None, batch_sampler: Any = None,
        num_workers: int = 0, collate_fn: Callable[..., Any] | None = None, pin_memory: bool = False, drop_last: bool = False, timeout: float = 0,
        worker_init_fn: Callable[..., Any] | None = None, multiprocessing_context: Any = None, generator: Any = None, *,
        prefetch_factor: int | None = None, persistent_workers: bool = False, pin_memory_device: str = "", in_order: bool = True,
    ) -> None:  # fmt: skip
        stream = isinstance(dataset, IterableDataset)
        _check_workers(num_workers, timeout, prefetch_factor, persistent_workers)
        if stream:
            _check_stream(shuffle, sampler, batch_sampler)
        _check_sampling(batch_size, shuffle, sampler, batch_sampler, drop_last)
        if batch_sampler is not None:
            batch_size = None
        self.num_workers = num_workers
        self.multiprocessing_context = multiprocessing_context
        if sampler is None:
            if stream:
                sampler = _InfiniteConstantSampler()
            else:
                sampler = RandomSampler(dataset, generator=generator) if shuffle else SequentialSampler(dataset)
        if batch_size is not None and batch_sampler is None:
            batch_sampler = BatchSampler(sampler, batch_size, drop_last)
        if collate_fn is None:
            collate_fn = default_convert if batch_sampler is None else default_collate
        self.dataset, self.batch_size, self.drop_last = dataset, batch_size, drop_last
        self.sampler, self.batch_sampler, self.collate_fn, self.generator = sampler, batch_sampler, collate_fn, generator
        self.pin_memory, self.pin_memory_device, self.timeout = pin_memory, pin_memory_device, timeout
        self.worker_init_fn, self.in_order, self.persistent_workers = worker_init_fn, in_order, persistent_workers
        self.prefetch_factor = 2 if num_workers > 0 and prefetch_factor is None else prefetch_factor
        self._dataset_kind = _DatasetKind.Iterable if stream else _DatasetKind.Map
        self._IterableDataset_len_called: int | None = None
        self._fixed = True
        self.check_worker_number_rationality()

    def __setattr__(self, name: str, value: Any) -> None:
        if self._fixed and name in ("batch_size", "batch_sampler", "sampler", "drop_last", "dataset", "persistent_workers"):
            raise ValueError(f"{name} attribute should not be set after {type(self).__name__} is initialized")
        super().__setattr__(name, value)

    @property
    def multiprocessing_context(self) -> BaseContext | None:
        """Return how worker processes are started."""
        return self._context

    @multiprocessing_context.setter
    def multiprocessing_context(self, value: Any) -> None:
        if value is not None:
            if self.num_workers == 0:
                raise ValueError(
                    "multiprocessing_context can only be used with multi-process loading (num_workers > 0), but got num_workers=0"
                )
            if isinstance(value, str):
                methods = multiprocessing.get_all_start_methods()
                if value not in methods:
                    raise ValueError(
                        f"multiprocessing_context option should specify a valid start method in {methods!r}, but got "
                        f"multiprocessing_context={value!r}"
                    )
                value = multiprocessing.get_context(value)
            if not isinstance(value, BaseContext):
                raise TypeError(
                    "multiprocessing_context option should be a valid context object or a string specifying the start method, but "
                    f"got multiprocessing_context={value}"
                )
        self._context = value

    @property
    def _auto_collation(self) -> bool:
        return self.batch_sampler is not None

    @property
    def _index_sampler(self) -> Any:
        return self.sampler if self.batch_sampler is None else self.batch_sampler

    def __len__(self) -> int:
        """Return the number of batches; for a stream, what its own length promises."""
        if self._dataset_kind == _DatasetKind.Map:
            return len(self._index_sampler)
        length = self._IterableDataset_len_called = len(self.dataset)
        if self.batch_size is None:
            return length
        return length // self.batch_size if self.drop_last else -(-length // self.batch_size)

    def __iter__(self) -> _BaseDataLoaderIter:
        if not self.persistent_workers:
            return self._get_iterator()
        if self._iterator is None:
            self._iterator = self._get_iterator()
        else:
            self._iterator._reset(self)
        return self._iterator

    def _get_iterator(self) -> _BaseDataLoaderIter:
        return _SingleProcessDataLoaderIter(self) if self.num_workers == 0 else _MultiProcessingDataLoaderIter(self)

    def check_worker_number_rationality(self) -> None:
        """Warn of more workers than processors."""
        try:
            processors: int | None = len(os.sched_getaffinity(0))
        except AttributeError:
            processors = os.cpu_count()
        if processors is not None and self.num_workers > processors:
            warn_user(
                f"This DataLoader will create {self.num_workers} worker processes in total. Our suggested max number of worker in "
                f"current system is {processors}, which is smaller than what this DataLoader is going to create. Please be aware that "
                "excessive worker creation might get DataLoader running slow or even freeze, lower the worker number to avoid "
                "potential slowness/freeze if necessary.",
            )

class _BaseDataLoaderIter:
    """One pass over a loader's batches."""

    def __init__(self, loader: DataLoader[Any]):
        self._loader = loader
        # before the samplers draw theirs, as in PyTorch: the same seed gives the same order with and without workers
        base_seed = random_seed(loader.generator)
        self._plan = worker.Plan(
            loader.dataset, fetch.Map if loader._dataset_kind == _DatasetKind.Map else fetch.Stream, loader._auto_collation,
            loader.collate_fn, loader.drop_last, loader.worker_init_fn, loader.num_workers, base_seed, dtypes.get_default_dtype(),
        )  # fmt: skip
        self._base_seed = base_seed
        self._sampler_iter: Iterator[Any] = iter(())
        self._num_yielded = 0

    def _reset(self, loader: DataLoader) -> None:
        self._sampler_iter = iter(loader._index_sampler)
        self._num_yielded = 0

    def __iter__(self) -> _BaseDataLoaderIter:
        return self

    def _next_data(self) -> Any:
        raise NotImplementedError

    def __next__(self) -> Any:
        data = self._next_data()
        self._num_yielded += 1
        promised = self._loader._IterableDataset_len_called
        if promised is not None and self._num_yielded > promised:
            text = (
                f"Length of IterableDataset {self._loader.dataset} was reported to be {promised} (when accessing len(dataloader)), but "
                f"{self._num_yielded} samples have been fetched. "
            )
            if self._plan.num_workers:
                text += (
                    "For multiprocessing data-loading, this could be caused by not properly configuring the IterableDataset replica "
                    "at each worker (see get_worker_info)."
                )
            warn_user(text)
        return data

    def __len__(self) -> int:
        return len(self._loader._index_sampler)

    def __getstate__(self) -> Any:
        raise NotImplementedError(f"{type(self).__name__} cannot be pickled")


class _SingleProcessDataLoaderIter(_BaseDataLoaderIter):
    def __init__(self, loader: DataLoader[Any]):
        super().__init__(loader)
        if loader.timeout != 0:
            raise AssertionError("_SingleProcessDataLoaderIter requires timeout == 0: only workers (num_workers > 0) are waited for")
        self._reset(loader)
        self._fetcher = self._plan.make_fetcher(loader.dataset)

    def _next_data(self) -> Any:
        return self._fetcher.fetch(next(self._sampler_iter))


class _MultiProcessingDataLoaderIter(_BaseDataLoaderIter):
    _workers: Any = ()

    def __init__(self, loader: DataLoader[Any]):
        super().__init__(loader)
        self._timeout, self._in_order = loader.timeout, loader.in_order
        self._persistent = loader.persistent_workers
        self._most = max(loader.prefetch_factor or 0, 1) * loader.num_workers  #: batches that are worked on at a time
        self._workers = pool.start(self._plan, loader.multiprocessing_context)
        self._begin(loader)

    def _begin(self, loader: DataLoader) -> None:
        super()._reset(loader)
        self._active = [True] * len(self._workers)
        self._turns = cycle(range(len(self._workers)))
        self._tasks: deque[int] = deque()  #: who works on a batch that is to come, in the batches' order
        for _ in range(self._most):
            self._assign()

    def _reset(self, loader: DataLoader) -> None:
        if self._workers:
            self._restart()
        else:  # they were ended, as one of them failed or a call was broken off
            self._workers = pool.start(self._plan, loader.multiprocessing_context)
        self._begin(loader)

    def _restart(self) -> None:
        try:
            for each in self._workers:
                each.ask(worker.Restart())
            for each in self._workers:
                while not isinstance(each.answer(self._timeout), worker.Restart):  # batches that nobody waited for
                    pass
        except BaseException:
            self._shutdown_workers()
            raise

    def _assign(self) -> None:
        """Give the next batch to the next worker whose stream has not ended."""
        try:
            index = next(self._sampler_iter)
        except StopIteration:
            return
        for _ in self._workers:
            i = next(self._turns)
            if self._active[i] and (self._in_order or self._tasks.count(i) < self._most // sum(self._active)):
                try:
                    self._tasks.append(i)
                    self._workers[i].ask(index)
                except BaseException:  # half a request may be on its way
                    self._shutdown_workers()
                    raise
                return

    def _next_task(self) -> int | None:
        """Return the worker whose batch comes next."""
        while self._tasks:
            if self._in_order:
                i = self._tasks.popleft()
            else:
                waiting = [i for i in dict.fromkeys(self._tasks) if self._active[i]]
                if not waiting:
                    break
                first = pool.first_answered([self._workers[i] for i in waiting], self._timeout)
                i = next(i for i in waiting if self._workers[i] is first)
                self._tasks.remove(i)
            if self._active[i]:
                return i
        return None

    def _next_data(self) -> Any:
        while (i := self._next_task()) is not None:
            try:
                answer = self._workers[i].answer(self._timeout)
            except BaseException:
                self._shutdown_workers()
                raise
            if isinstance(answer, worker.End):
                self._active[i] = False
                self._assign()
                continue
            self._assign()
            if isinstance(answer, worker.Failure):
                answer.reraise()
            return answer
        if not self._persistent:
            self._shutdown_workers()
        raise StopIteration

    def _shutdown_workers(self) -> None:
        workers, self._workers = self._workers, ()
        self._tasks = deque()
        pool.stop(workers)

    def __del__(self) -> None:
        try:
            if self._workers:
                self._shutdown_workers()
        except Exception:  # at the interpreter's exit parts are missing; daemons are ended there anyway
            pass
