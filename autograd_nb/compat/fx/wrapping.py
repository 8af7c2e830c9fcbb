"""Functions that are steps of graphs as a whole."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

#: (the module's names, a function's name) -> these names
WRAPPED: dict[tuple[int, str], dict[str, Any]] = {}


def wrap(fn_or_name: str | Callable[..., Any]) -> Any:
    """Let calls of a function of this module be steps of graphs, instead of being traced through; also a decorator.

    Source: https://docs.pytorch.org/docs/stable/fx.html#torch.fx.wrap
    Errors: RuntimeError where it is not called at the top of a module.
    """
    if not callable(fn_or_name) and not isinstance(fn_or_name, str):
        raise RuntimeError("Unsupported type for global function! Must be either a callable or string name")
    name = fn_or_name if isinstance(fn_or_name, str) else fn_or_name.__name__
    frame = inspect.currentframe()
    above = frame and frame.f_back
    if above is None or above.f_code.co_name != "<module>":
        raise NotImplementedError("wrap must be called at the top level of a module")
    WRAPPED[id(above.f_globals), name] = above.f_globals
    return fn_or_name
