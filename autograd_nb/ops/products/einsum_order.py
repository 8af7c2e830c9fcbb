"""``backends.opt_einsum``: whether `einsum` looks for a good order of its products, and by which of opt_einsum's ways."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from typing import Any

STRATEGIES = ("auto", "greedy", "optimal")

enabled = True
strategy: str = "auto"


def is_available() -> bool:
    """Return whether opt_einsum is installed; without it a good order is looked for all the same."""
    return find_spec("opt_einsum") is not None


def get_opt_einsum() -> Any:
    """Return the package opt_einsum, None where it is not installed."""
    return import_module("opt_einsum") if is_available() else None


def set_flags(_enabled: bool | None = None, _strategy: str | None = None) -> tuple[bool, str | None]:
    """Set what is given, and return what was set before. ValueError for a strategy that there is not, or that nothing would ask for."""
    global enabled, strategy
    before = enabled, strategy if is_available() else None
    if _enabled is not None:
        enabled = _enabled
    if _strategy is not None:
        if not enabled:
            raise ValueError(f"opt_einsum is not enabled, so that strategy={_strategy!r} would mean nothing: set enabled=True as well, or leave it out")
        if _strategy not in STRATEGIES:
            raise ValueError(f"`strategy` must be one of the following: [{', '.join(STRATEGIES)}] but is {_strategy}")
        strategy = _strategy
    return before


@contextmanager
def flags(enabled: bool | None = None, strategy: str | None = None) -> Iterator[None]:
    """Have this set for the length of a ``with`` block."""
    here = globals()
    before = here["enabled"], here["strategy"]
    try:
        set_flags(enabled, strategy)
        yield
    finally:
        here["enabled"], here["strategy"] = before
