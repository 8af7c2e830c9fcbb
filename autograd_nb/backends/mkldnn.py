"""`is_available` of mkldnn: this library has its own kernels."""

from __future__ import annotations

from .absent import is_available, is_built

__all__ = ["enabled", "is_available", "is_built"]

enabled = False
