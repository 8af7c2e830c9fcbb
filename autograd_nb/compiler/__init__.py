"""`compile`, and the marks that programs set around it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

__all__ = [
    "assume_constant_result",
    "compile",
    "cudagraph_mark_step_begin",
    "disable",
    "is_compiling",
    "is_dynamo_compiling",
    "reset",
]


def compile(
    model: Any = None, *, fullgraph: bool = False, dynamic: bool | None = None, backend: Any = "numba", **options: Any
) -> Any:
    """The function or module itself, run eagerly; also used as a decorator with options.

    Source: https://docs.pytorch.org/docs/stable/generated/torch.compile.html
    """
    if model is None:
        return lambda function: compile(function, fullgraph=fullgraph, dynamic=dynamic, backend=backend, **options)
    if not callable(model):
        raise TypeError(f"compile(): expected a function or a module, got {type(model).__name__}")
    return model


def disable(fn: Callable | None = None, recursive: bool = True, *, reason: str | None = None) -> Any:
    """The function as it is."""
    return (lambda f: f) if fn is None else fn


def is_compiling() -> bool:
    """Whether a function is being captured."""
    return False


is_dynamo_compiling = is_compiling


def reset() -> None:
    """Forget what was compiled."""


def assume_constant_result(fn: Callable) -> Callable:
    """The function as it is."""
    return fn


def cudagraph_mark_step_begin() -> None:
    """Nothing."""
