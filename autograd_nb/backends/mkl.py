"""`is_available` of mkl: this library has its own kernels."""

from __future__ import annotations

from .absent import is_available, is_built

__all__ = ["is_available", "is_built"]
