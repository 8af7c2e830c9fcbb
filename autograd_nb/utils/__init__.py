"""Tools: hooks' handles."""

from . import hooks

__all__ = ["hooks"]
