"""Switches of the library."""

from __future__ import annotations

import os
from typing import Any


class _Settings:
    """What can be set; one object, so that every module sees a change."""

    __slots__ = ("deterministic", "matmul_precision", "threads")

    def __init__(self) -> None:
        given = os.environ.get("AUTOGRAD_NB_NUM_THREADS", "")
        self.threads = int(given) if given.isdigit() and int(given) > 0 else _processors()
        self.deterministic = False
        self.matmul_precision = "highest"


def _processors() -> int:
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on every system
        return os.cpu_count() or 1


settings = _Settings()


def get_num_threads() -> int:
    """The most threads that one kernel is given."""
    return settings.threads


def set_num_threads(num: int) -> None:
    """Let one kernel have at most ``num`` threads; results are the same for any number. RuntimeError below 1."""
    if not isinstance(num, int) or isinstance(num, bool):
        raise TypeError(f"set_num_threads expects an int, but got {type(num).__name__}")
    if num < 1:
        raise RuntimeError(f"expected positive number of threads (num={num})")
    settings.threads = num


def get_num_interop_threads() -> int:
    """1: ops run one after the other."""
    return 1


def set_num_interop_threads(num: int) -> None:
    """Nothing: ops run one after the other."""


def use_deterministic_algorithms(mode: bool, *, warn_only: bool = False) -> None:
    """Nothing changes: every kernel gives the same bits each time."""
    settings.deterministic = bool(mode)


def are_deterministic_algorithms_enabled() -> bool:
    """What `use_deterministic_algorithms` was last given."""
    return settings.deterministic


def set_float32_matmul_precision(precision: str) -> None:
    """Accepted for programs that set it; products are always computed in full precision."""
    if precision not in ("highest", "high", "medium"):
        raise RuntimeError(f"{precision} is not one of 'highest', 'high', or 'medium'")
    settings.matmul_precision = precision


def get_float32_matmul_precision() -> str:
    """What `set_float32_matmul_precision` was last given."""
    return settings.matmul_precision


def set_default_device(device: Any) -> None:
    """Accepted for the CPU. RuntimeError for any other device."""
    if device is not None and str(device).split(":")[0] != "cpu":
        raise RuntimeError(f"device {str(device)!r} is not available: this library computes on the CPU only")
