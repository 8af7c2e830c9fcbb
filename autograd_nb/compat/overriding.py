"""``torch.overrides`` for objects that stand for tensors: what programs ask, and the call of ``__torch_function__``."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import wraps
from typing import Any

from ..tensor import Tensor


def _disabled_torch_function_impl(*args: Any, **kwargs: Any) -> Any:
    """Return NotImplemented: a class whose ``__torch_function__`` is this redefines nothing."""
    return NotImplemented


def _redefines(value: Any) -> bool:
    found = getattr(type(value), "__torch_function__", None)
    return found is not None and found is not _disabled_torch_function_impl


def has_torch_function(relevant_args: Iterable[Any]) -> bool:
    """Return whether one of the arguments has a ``__torch_function__``; Tensors have none here."""
    return any(_redefines(a) for a in relevant_args)


def has_torch_function_unary(x: Any) -> bool:
    """Return `has_torch_function` of one argument."""
    return _redefines(x)


def has_torch_function_variadic(*args: Any) -> bool:
    """Return `has_torch_function` of these arguments."""
    return has_torch_function(args)


def handle_torch_function(public_api: Callable[..., Any], relevant_args: Iterable[Any], *args: Any, **kwargs: Any) -> Any:
    """Return what the first ``__torch_function__`` that does not decline makes of a call; those of subclasses are asked first."""
    found: list[Any] = []
    for a in relevant_args:
        if _redefines(a) and type(a) not in [type(b) for b in found]:
            place = next((i for i, b in enumerate(found) if issubclass(type(a), type(b))), len(found))
            found.insert(place, a)
    types = tuple([type(a) for a in found])
    for a in found:
        result = a.__torch_function__(public_api, types, args, kwargs)
        if result is not NotImplemented:
            return result
    name = f"{public_api.__module__}.{public_api.__name__}"
    raise TypeError(f"no implementation found for '{name}' on types that implement __torch_function__: {[t.__name__ for t in types]}")


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
    return func in vars(Tensor).values() or getattr(func, "__name__", "") == "__get__"


def get_ignored_functions() -> set[Any]:
    """Return the functions that cannot be redefined."""
    return set()
