"""What every backend answers that is not there."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any


def is_available() -> bool:
    """False."""
    return False


is_built = is_available


def setting(*args: Any, **kwargs: Any) -> Any:
    """Nothing is set; also a context in which nothing changes."""
    return nullcontext()
