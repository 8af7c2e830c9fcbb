"""Python's multiprocessing with processes that are started afresh, and PyTorch's `spawn`.

A forked process would share locks with this one's threads; tensors are sent as copies.
Source: https://docs.pytorch.org/docs/stable/multiprocessing.html
"""

from __future__ import annotations

import multiprocessing as _mp
import pickle
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from . import spawned
from .spawned import ProcessExitedException, ProcessRaisedException, SpawnContext  # noqa: F401

if TYPE_CHECKING:
    from multiprocessing import context, pool, process, queues, synchronize
    from multiprocessing.connection import Connection
    from multiprocessing.context import SpawnProcess
    from multiprocessing.managers import SyncManager

_context = _mp.get_context("spawn")

#: the classes are Python's own, of processes that are started afresh
Process: type[SpawnProcess] = _context.Process
Queue: Callable[..., queues.Queue[Any]] = _context.Queue
SimpleQueue: Callable[..., queues.SimpleQueue[Any]] = _context.SimpleQueue
Pipe: Callable[..., tuple[Connection[Any, Any], Connection[Any, Any]]] = _context.Pipe
Pool: Callable[..., pool.Pool] = _context.Pool
Lock: Callable[[], synchronize.Lock] = _context.Lock
RLock: Callable[[], synchronize.RLock] = _context.RLock
Event: Callable[[], synchronize.Event] = _context.Event
Barrier: Callable[..., synchronize.Barrier] = _context.Barrier
Value: Callable[..., Any] = _context.Value
Array: Callable[..., Any] = _context.Array
Manager: Callable[[], SyncManager] = _context.Manager
Condition: Callable[..., synchronize.Condition] = _context.Condition
Semaphore: Callable[..., synchronize.Semaphore] = _context.Semaphore
BoundedSemaphore: Callable[..., synchronize.BoundedSemaphore] = _context.BoundedSemaphore
JoinableQueue: Callable[..., queues.JoinableQueue[Any]] = _context.JoinableQueue
RawValue: Callable[..., Any] = _context.RawValue
RawArray: Callable[..., Any] = _context.RawArray
TimeoutError = _mp.TimeoutError  # noqa: A001
parent_process: Callable[[], process.BaseProcess | None] = _mp.parent_process
get_all_start_methods: Callable[[], list[str]] = _mp.get_all_start_methods
get_context: Callable[..., context.BaseContext] = _mp.get_context
cpu_count: Callable[[], int] = _mp.cpu_count
current_process: Callable[[], process.BaseProcess] = _mp.current_process
freeze_support: Callable[[], None] = _mp.freeze_support
active_children: Callable[[], list[process.BaseProcess]] = _mp.active_children


def set_start_method(method: str, force: bool = False) -> None:
    """As Python's; "fork" is refused: threads of kernels do not survive it."""
    if method == "fork":
        raise RuntimeError("set_start_method('fork'): threads and locks do not survive a fork; use 'spawn' or 'forkserver'")
    _mp.set_start_method(method, force=force)


get_start_method: Callable[..., str] = _mp.get_start_method


def get_sharing_strategy() -> str:
    """Return how tensors travel: "file_system" by name, copies in fact."""
    return "file_system"


def set_sharing_strategy(new_strategy: str) -> None:
    """Accepted."""


def get_all_sharing_strategies() -> set[str]:
    """{"file_system"}."""
    return {"file_system"}


def spawn(
    fn: Callable[..., Any], args: tuple[Any, ...] = (), nprocs: int = 1, join: bool = True, daemon: bool = False, start_method: str = "spawn"
) -> Any:
    """Run ``fn(i, *args)`` in ``nprocs`` processes; RuntimeError when one fails.

    Where MPI is there (extra ``mpi``) they are ranks: `distributed.init_process_group` works in them. Arguments that only Python's own processes
    can be given, such as queues, make them these, which are no ranks.
    """
    if start_method == "spawn" and spawned.can_spawn(nprocs):
        try:
            job = spawned.spawn(fn, tuple(args), nprocs)
        except (TypeError, RuntimeError, pickle.PicklingError):
            pass  # locks, queues, pipes
        else:
            if not join:
                return job
            job.join()
            return None
    processes = [_mp.get_context(start_method).Process(target=fn, args=(i, *args), daemon=daemon) for i in range(nprocs)]  # type: ignore[attr-defined]
    for p in processes:
        p.start()
    if not join:
        return processes
    for i, p in enumerate(processes):
        p.join()
        if p.exitcode:
            for other in processes:
                other.terminate()
            raise RuntimeError(f"process {i} terminated with exit code {p.exitcode}")
    return None


start_processes = spawn  #: PyTorch's name of it where the way to start them is chosen
