"""``torch.overrides``: what programs ask of functions that may be taken over, and the call of ``__torch_function__``; see `autograd.torch_function`."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import cache, wraps
from importlib import import_module
from types import FunctionType
from typing import Any

from ..autograd.subclasses import _disabled_torch_function_impl
from ..autograd.torch_function import (
    IGNORED,
    BaseTorchFunctionMode,
    DisableTorchFunction,
    DisableTorchFunctionSubclass,
    TorchFunctionMode,
    ask,
    functions,
    nowrap_functions,
    overloaded,
    state,
)
from ..ops.core.registry import OPS
from ..tensor import Tensor

__all__ = [
    "BaseTorchFunctionMode", "DisableTorchFunction", "DisableTorchFunctionSubclass", "TorchFunctionMode", "_disabled_torch_function_impl",
    "enable_reentrant_dispatch", "get_default_nowrap_functions", "get_ignored_functions", "get_overridable_functions", "get_testing_overrides",
    "handle_torch_function", "has_torch_function", "has_torch_function_unary", "has_torch_function_variadic", "is_tensor_like",
    "is_tensor_method_or_property", "resolve_name", "wrap_torch_function",
]  # fmt: skip

_PACKAGE = __name__.partition(".")[0]
_SPACES = ("torch", "nn.functional", "linalg", "fft", "special")


def has_torch_function(relevant_args: Iterable[Any]) -> bool:
    """Return whether one of the arguments, or an open mode, takes over calls."""
    return (bool(state.modes) and state.disabled < 2) or (not state.disabled and bool(overloaded(relevant_args)))


def has_torch_function_unary(x: Any) -> bool:
    """Return `has_torch_function` of one argument."""
    return has_torch_function((x,))


def has_torch_function_variadic(*args: Any) -> bool:
    """Return `has_torch_function` of these arguments."""
    return has_torch_function(args)


def handle_torch_function(public_api: Callable[..., Any], relevant_args: Iterable[Any], *args: Any, **kwargs: Any) -> Any:
    """Return what the first ``__torch_function__`` that does not decline makes of a call; those of subclasses are asked first. TypeError if all do."""
    return ask(public_api, overloaded(relevant_args), args, kwargs)


def wrap_torch_function(dispatcher: Callable[..., Iterable[Any]]) -> Callable[..., Any]:
    """Return a decorator of functions whose arguments, as ``dispatcher`` finds them, may redefine the call."""

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            relevant = dispatcher(*args, **kwargs)
            return handle_torch_function(call, relevant, *args, **kwargs) if has_torch_function(relevant) else function(*args, **kwargs)

        return call

    return decorate


def is_tensor_like(inp: Any) -> bool:
    """Return whether the object is a Tensor, or has a ``__torch_function__``."""
    return isinstance(inp, Tensor) or hasattr(inp, "__torch_function__")


def is_tensor_method_or_property(func: Callable[..., Any]) -> bool:
    """Return whether the function is a method of Tensor, or reads an attribute of it."""
    return func in _methods() or getattr(func, "__name__", "") == "__get__"


@cache
def _methods() -> set[Any]:
    return {f for f in vars(Tensor).values() if isinstance(f, FunctionType)}


def get_ignored_functions() -> set[Any]:
    """Return the functions that nothing takes over."""
    return {f for f in functions() if f.__name__ in IGNORED}


def get_default_nowrap_functions() -> set[Any]:
    """Return the functions whose results `Tensor.__torch_function__` leaves as they are."""
    return nowrap_functions()


def _spaces() -> dict[Any, list[tuple[str, Any]]]:
    found: dict[Any, list[tuple[str, Any]]] = {
        import_module(_PACKAGE if space == "torch" else f"{_PACKAGE}.{space}"): [
            (name.removeprefix(space + "."), info.call) for name, info in OPS.items() if space in info.namespaces and info.call in functions()
        ]
        for space in _SPACES
    }
    found[Tensor] = [(name, f) for name, f in vars(Tensor).items() if isinstance(f, FunctionType) and f in functions()]
    return found


def get_overridable_functions() -> dict[Any, list[Callable[..., Any]]]:
    """Return the functions that may be taken over, by the modules (and `Tensor`) where they are found."""
    return {place: [f for _, f in entries if f.__name__ not in IGNORED] for place, entries in _spaces().items()}


@cache
def _names() -> dict[Any, str]:
    names: dict[Any, str] = {}
    for place, entries in _spaces().items():
        space = "torch.Tensor" if place is Tensor else "torch" + place.__name__.removeprefix("torch").removeprefix(_PACKAGE)
        for name, f in entries:
            names.setdefault(f, f"{space}.{name}")
    for name, value in vars(Tensor).items():
        if isinstance(value, property):
            names.update({getattr(value, accessor): f"torch.Tensor.{name}.{accessor}" for accessor in ("__get__", "__set__", "__delete__")})
    return names


def resolve_name(f: Any) -> str | None:
    """Return by which name users know a function or attribute ("torch.add"), None for others.

    >>> torch.overrides.resolve_name(torch.Tensor.shape.__get__)
    'torch.Tensor.shape.__get__'
    """
    return _names().get(f)


def get_testing_overrides() -> dict[Callable[..., Any], Callable[..., Any]]:
    """Return for each function that may be taken over one with its parameters, which returns -1."""

    def dummy(f: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> int:
            return -1

        call.__signature__ = inspect.signature(f)  # type: ignore[attr-defined]
        return call

    return {f: dummy(f) for entries in get_overridable_functions().values() for f in entries}


@contextmanager
def enable_reentrant_dispatch() -> Iterator[None]:
    """Let calls within a ``__torch_function__`` be taken over again, where classes were not asked any more."""
    before, state.disabled = state.disabled, 0
    try:
        yield
    finally:
        state.disabled = before
