"""Which implementation of attention to use: there is one, and it is always used.

Source: https://docs.pytorch.org/docs/stable/nn.attention.html
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from enum import IntEnum
from typing import Any

__path__: list[str] = []  # PyTorch has modules below this one: see compat/more.py


class SDPBackend(IntEnum):
    """PyTorch's names of implementations."""

    ERROR = -1
    MATH = 0
    FLASH_ATTENTION = 1
    EFFICIENT_ATTENTION = 2
    CUDNN_ATTENTION = 3
    OVERRIDEABLE = 4


@contextmanager
def sdpa_kernel(backends: Any, set_priority: bool = False) -> Iterator[None]:
    """Return a context in which nothing changes; TypeError unless given SDPBackend members."""
    for b in backends if isinstance(backends, (list, tuple)) else [backends]:
        if not isinstance(b, SDPBackend):
            raise TypeError(f"sdpa_kernel(): expected SDPBackend members, got {b!r}")
    yield
