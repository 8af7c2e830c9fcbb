"""The older place of mixed precision, where the device needs no naming.

Source: https://docs.pytorch.org/docs/stable/amp.html
"""

from __future__ import annotations

from typing import Any

from .. import amp
from ..amp import GradScaler, custom_bwd, custom_fwd

__path__: list[str] = []  # PyTorch has modules below this one: see moved.py
__all__ = ["GradScaler", "autocast", "custom_bwd", "custom_fwd"]


class autocast(amp.autocast):
    """`autograd_nb.amp.autocast` for "cuda": nothing is cast."""

    def __init__(self, enabled: bool = True, dtype: Any = None, cache_enabled: bool = True):
        super().__init__("cuda", dtype=dtype, enabled=enabled, cache_enabled=cache_enabled)
