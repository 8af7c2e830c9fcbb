"""The few names that programs take from PyTorch's binary module."""

from __future__ import annotations

from .errors import LinAlgError as _LinAlgError
from .ops.random.generator import Generator

__all__ = ["Generator", "_LinAlgError"]
