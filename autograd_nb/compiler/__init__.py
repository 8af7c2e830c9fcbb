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
    model: Any = None, *, fullgraph: bool = False, dynamic: bool | None = None, backend: Any = "numba", mode: str | None = None,
    options: Any = None, disable: bool = False, check: bool = False,
) -> Any:  # fmt: skip
    """The function (or module), captured at its first call of each kind and from then on run as one native program.

    A training step (forward, ``backward()``, ``optimizer.step()``) becomes one program too. Another kind of call (shapes,
    dtypes, flags, Python values that the function reaches) is captured anew; learning rates and random streams are live. What
    cannot be captured (values read with ``item()``, NumPy, iterators) runs eagerly, with one warning that says why and where.

    Args:
        fullgraph: raise `CompileError` instead of running eagerly.
        check: run the first calls both ways and raise where they differ.
        dynamic, backend, mode, options: accepted for programs that give them. disable: give the function back as it is.

    Example:
        >>> import autograd_nb as torch
        >>> @torch.compile
        ... def f(x):
        ...     return (x * 2).sum()
        >>> f(torch.ones(3)), f(torch.ones(3))
        (tensor(6.), tensor(6.))

    Source: https://docs.pytorch.org/docs/stable/generated/torch.compile.html
    """
    if model is None:
        return lambda function: compile(function, fullgraph=fullgraph, check=check, disable=disable)
    if not callable(model):
        raise TypeError(f"compile(): expected a function or a module, got {type(model).__name__}")
    if disable:
        return model
    from .step import compile_function

    if hasattr(model, "_modules") and hasattr(model, "forward"):  # a module: the same object but for its forward
        twin = object.__new__(type(f"Compiled{type(model).__name__}", (type(model),), {"forward": _compiled_forward, "__module__": type(model).__module__}))
        twin.__dict__ = model.__dict__
        _forwards[id(twin.__dict__)] = (compile_function(type(model).forward.__get__(model), fullgraph, check), model)
        return twin
    return compile_function(model, fullgraph, check)


_forwards: dict[int, tuple[Any, Any]] = {}  # by the id of a module's attributes, which live as long


def _compiled_forward(self: Any, *args: Any, **kwargs: Any) -> Any:
    return _forwards[id(self.__dict__)][0](*args, **kwargs)


def disable(fn: Callable | None = None, recursive: bool = True, *, reason: str | None = None) -> Any:
    """The function as it is."""
    return (lambda f: f) if fn is None else fn


def is_compiling() -> bool:
    """Whether a function is being captured."""
    from ..launch import observer

    return hasattr(observer(), "draws")


is_dynamo_compiling = is_compiling


def reset() -> None:
    """Forget what was compiled."""


def assume_constant_result(fn: Callable) -> Callable:
    """The function as it is."""
    return fn


def cudagraph_mark_step_begin() -> None:
    """Nothing."""
