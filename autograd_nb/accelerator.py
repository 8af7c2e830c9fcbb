"""What programs ask about accelerators, answered: there is none, they go on with the CPU.

Source: https://docs.pytorch.org/docs/stable/accelerator.html
"""

from __future__ import annotations

from typing import Any

from .ops.creation.device import device


def is_available() -> bool:
    """False: this library computes on the CPU."""
    return False


def current_accelerator(check_available: bool = False) -> device | None:
    """None: there is no accelerator."""
    return None


def device_count() -> int:
    """0."""
    return 0


def synchronize(device: Any = None) -> None:
    """Nothing to wait for."""


def empty_cache() -> None:
    """Nothing; see `autograd_nb.release_memory` for the CPU's."""


def current_device_index() -> int:
    """RuntimeError: there is no accelerator."""
    raise RuntimeError(
        "no accelerator is available: this library computes on the CPU only (test accelerator.is_available() first)"
    )


current_device_idx = current_device_index


def set_device_index(device: Any) -> None:
    """RuntimeError: there is no accelerator."""
    current_device_index()


set_device_idx = set_device_index
