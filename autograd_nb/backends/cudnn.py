"""Switches of cuDNN, which is not there: they can be set, and have no effect."""

from __future__ import annotations

from .absent import is_available
from .absent import setting as flags

__all__ = ["allow_tf32", "benchmark", "benchmark_limit", "deterministic", "enabled", "flags", "is_available", "version"]

enabled, benchmark, deterministic, allow_tf32 = False, False, True, False
benchmark_limit, fp32_precision = 10, "none"


def version() -> None:
    """None."""
