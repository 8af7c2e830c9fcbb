"""Python's multiprocessing with processes that are started afresh, and PyTorch's `spawn`.

A forked process would share locks with this one's threads; tensors are sent as copies.
Source: https://docs.pytorch.org/docs/stable/multiprocessing.html
"""

from __future__ import annotations

import multiprocessing as _mp
from collections.abc import Callable
from typing import Any

_context = _mp.get_context("spawn")

Process, Queue, SimpleQueue, Pipe, Pool = _context.Process, _context.Queue, _context.SimpleQueue, _context.Pipe, _context.Pool
Lock, RLock, Event, Barrier, Value, Array, Manager = (
    _context.Lock, _context.RLock, _context.Event, _context.Barrier, _context.Value, _context.Array, _context.Manager,
)  # fmt: skip
get_context, cpu_count, current_process = _mp.get_context, _mp.cpu_count, _mp.current_process
freeze_support, active_children = _mp.freeze_support, _mp.active_children


def set_start_method(method: str, force: bool = False) -> None:
    """As Python's; "fork" is refused: threads of kernels do not survive it."""
    if method == "fork":
        raise RuntimeError("set_start_method('fork'): threads and locks do not survive a fork; use 'spawn' or 'forkserver'")
    _mp.set_start_method(method, force=force)


get_start_method = _mp.get_start_method


def get_sharing_strategy() -> str:
    """How tensors travel: "file_system" by name, copies in fact."""
    return "file_system"


def set_sharing_strategy(new_strategy: str) -> None:
    """Accepted."""


def get_all_sharing_strategies() -> set[str]:
    """{"file_system"}."""
    return {"file_system"}


def spawn(
    fn: Callable, args: tuple = (), nprocs: int = 1, join: bool = True, daemon: bool = False, start_method: str = "spawn"
) -> Any:
    """Run ``fn(i, *args)`` in ``nprocs`` processes; RuntimeError when one fails."""
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
