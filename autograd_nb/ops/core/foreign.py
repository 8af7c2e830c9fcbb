"""Objects that are no tensors and stand for some: classes with a ``__torch_function__``, which redefines the functions that are called with them.

Functions come to ask for them where an argument is no tensor, so that calls with tensors pay nothing; `autograd.torch_function` has the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import wraps
from typing import Any

from ...tensor import Tensor


class Asked:
    """Functions that layers above hand in: the call of an argument's ``__torch_function__``, and sparse tensors, which begin with the first of them."""

    redefined: Callable[[Callable[..., Any], tuple[Any, ...], dict[str, Any]], Any]
    sparse = False  #: whether a program has ever made a sparse tensor
    begin_sparse: Callable[[], None]
    meta: Callable[[], Any]  #: the module of tensors without numbers
    meta_used = False  #: whether a program has ever named the device "meta"
    whole: Any = None  #: calls a function that asks no class, of whole tensors; None before a program has tensors in parts
    roots: Any = None  #: gives the gradients from which a backward pass begins, for tensors in parts
    gradients: Any = None  #: lets gradients of tensors in parts be known as such
    moving: Any = None  #: finds the tangents of gradients; None before a program has entered a dual level
    moving_among: Callable[[Iterable[Any]], int | None]  #: the innermost dual level in which one of these has a tangent
    sparse_zeros: Callable[..., Any]  #: a sparse tensor without values, of a shape, dtype and layout
    embedding: Callable[..., Any]  #: rows of a table whose gradient is sparse


asked: Asked = Asked()


def alike(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Call a function that asks no class: where arguments are tensors in parts (`distributed.tensor`), of whole ones."""
    return function(*args, **kwargs) if asked.whole is None else asked.whole(function, *args, **kwargs)


def is_foreign(value: Any) -> bool:
    """Return whether an object is no tensor and has a ``__torch_function__``."""
    return value.__class__ is not Tensor and hasattr(type(value), "__torch_function__") and not isinstance(value, Tensor)


def foreign_among(values: Iterable[Any]) -> bool:
    """Return whether there is such an object among arguments, or in lists and tuples of them."""
    return any(any(map(is_foreign, v)) if v.__class__ in (list, tuple) else is_foreign(v) for v in values)


def asking(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function, which asks such an object where it cannot take it: the way of calls that no plan knows, so that known ones pay nothing.

    Its attribute ``public`` is the function as users know it, if that is another.
    """

    @wraps(function)
    def ask(*args: Any, **options: Any) -> Any:
        try:
            return function(*args, **options)
        except (TypeError, AttributeError):
            if not foreign_among((*args, *options.values())):
                raise
        return asked.redefined(ask.public, args, options)  # type: ignore[attr-defined]

    ask.public = ask  # type: ignore[attr-defined]
    return ask


def asking_first(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function, which asks such an object before it looks at anything: for functions that are seldom called, or refuse all."""

    @wraps(function)
    def ask(*args: Any, **options: Any) -> Any:
        if foreign_among((*args, *options.values())):
            return asked.redefined(ask, args, options)
        return function(*args, **options)

    return ask
