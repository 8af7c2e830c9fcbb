"""`compile`, and the marks that programs set around it."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar, overload

from .stance import set_stance

if TYPE_CHECKING:
    from ..nn.modules.module import Module
    from .dispatch import Compiled

__all__ = [
    "assume_constant_result",
    "compile",
    "cudagraph_mark_step_begin",
    "disable",
    "is_compiling",
    "is_dynamo_compiling",
    "reset",
    "set_stance",
]


_Model = TypeVar("_Model", bound="Module")
_P = ParamSpec("_P")
_R = TypeVar("_R")


@overload
def compile(  # type: ignore[overload-overlap]
    model: _Model, *, fullgraph: bool = ..., dynamic: bool | None = ..., backend: Any = ..., mode: str | None = ..., options: Any = ...,
    disable: bool = ..., check: bool = ...,
) -> _Model: ...  # fmt: skip
@overload
def compile(
    model: Callable[_P, _R], *, fullgraph: bool = ..., dynamic: bool | None = ..., backend: Any = ..., mode: str | None = ...,
    options: Any = ..., disable: bool = ..., check: bool = ...,
) -> Compiled[_P, _R]: ...  # fmt: skip
@overload
def compile(
    model: None = None, *, fullgraph: bool = ..., dynamic: bool | None = ..., backend: Any = ..., mode: str | None = ...,
    options: Any = ..., disable: bool = ..., check: bool = ...,
) -> Callable[[Callable[_P, _R]], Compiled[_P, _R]]: ...  # fmt: skip
def compile(
    model: Any = None, *, fullgraph: bool = False, dynamic: bool | None = None, backend: Any = "numba", mode: str | None = None,
    options: Any = None, disable: bool = False, check: bool = False,
) -> Any:  # fmt: skip
    """Return the function (or module), captured at its first call of each kind and from then on run as one native program.

    A training step (forward, ``backward()``, ``optimizer.step()``) becomes one program too. Another kind of call (shapes,
    dtypes, flags, Python values that the function reaches) is captured anew; learning rates and random streams are live. What
    cannot be captured (values read with ``item()``, NumPy, iterators) runs eagerly, with one warning that says why and where.

    Args:
        fullgraph: raise `CompileError` instead of running eagerly.
        check: run the first calls both ways and raise where they differ.
        dynamic, backend, mode, options: accepted for programs that give them. disable: give the function back as it is.

    Example:
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
    from .dispatch import compile_function

    if hasattr(model, "_modules") and hasattr(model, "forward"):
        return _twin(model, fullgraph, check)
    return compile_function(model, fullgraph, check)


def _twin(model: Any, fullgraph: bool, check: bool) -> Any:
    """Return a module with the attributes of ``model`` (the same dict), of which only what its class computes in is another."""
    from .dispatch import compile_function

    kind = type(model)
    name = "__call__" if "__call__" in _computing(kind) else "forward"
    compiled = compile_function(getattr(kind, name).__get__(model), fullgraph, check)
    methods = {
        "__module__": kind.__module__,
        name: lambda self, *args, **kwargs: compiled(*args, **kwargs),
        "programs": property(
            lambda self: getattr(compiled, "programs", [])
        ),  # (of a function as it is where compilation is off)
        "__deepcopy__": lambda self, memo: _twin(deepcopy(model, memo), fullgraph, check),
        "__reduce_ex__": lambda self, protocol: (_twin, (model, fullgraph, check)),
    }
    twin = object.__new__(type(f"Compiled{kind.__name__}", (kind,), methods))
    twin.__dict__ = model.__dict__
    return twin


def _computing(kind: type) -> Any:
    """Return the attributes of the first class that says what a call computes: some programs override ``__call__``, not ``forward``."""
    return next(vars(c) for c in kind.__mro__ if not vars(c).keys().isdisjoint(("__call__", "forward")))


def disable(fn: Callable[..., Any] | None = None, recursive: bool = True, *, reason: str | None = None) -> Any:
    """Return the function as it is."""
    return (lambda f: f) if fn is None else fn


def is_compiling() -> bool:
    """Return whether a function is being captured."""
    from ..launch import observer

    return hasattr(observer(), "draws")


is_dynamo_compiling = is_compiling


def is_exporting() -> bool:
    """Return False: nothing is exported here; is_exporting() = False."""
    return False


def allow_in_graph(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function, which is captured as any other."""
    return fn


def reset() -> None:
    """Forget what was captured: every compiled function begins anew."""
    import sys

    dispatch = sys.modules.get(f"{__name__}.dispatch")
    for compiled in list(dispatch._all) if dispatch is not None else ():
        compiled.forget()


def assume_constant_result(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function as it is."""
    return fn


def cudagraph_mark_step_begin() -> None:
    """Do nothing: there are no CUDA graphs here."""
