"""The functions that the ops offer under ``special``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .ops.core.registry import functions as _functions

globals().update(_functions("special"))

if TYPE_CHECKING:

    def __getattr__(name: str) -> Any: ...  # the ops, which are attached from their table
