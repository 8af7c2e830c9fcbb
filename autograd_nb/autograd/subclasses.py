"""Subclasses of Tensor that programs define: how objects of them are made, and that results of ops are of their class.

A class that a program derives from `Tensor` (not from `Parameter`, whose results are plain tensors, as in PyTorch) has `Redefining` before it
in the order of its bases: PyTorch's constructor, and attributes that ask ``__torch_function__``. Plain tensors know nothing of it.
`torch_function` does the work, and is imported when there is a first object of such a class.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from ..ops.core.foreign import asked
from ..ops.core.marked import MARKED, marked_as
from ..ops.shape.shape import alias_view
from ..tensor import Tensor, TensorMeta, above, adopt, set_requires_grad

_PACKAGE = __name__.partition(".")[0]


def _disabled_torch_function_impl(*args: Any, **kwargs: Any) -> Any:
    """Return NotImplemented: a class whose ``__torch_function__`` is this redefines nothing, and results are not of its class."""
    return NotImplemented


def machinery() -> Any:
    """Return the module `torch_function`."""
    return import_module(f"{__package__}.torch_function")


class Redefining:
    """The base that a program's subclass has before `Tensor` in their order: a constructor, and attributes that can be taken over."""

    __slots__ = ()
    of_program = True

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        following: Any = super().__new__
        if following is not object.__new__:  # Parameter's
            return following(cls, *args, **kwargs)
        return adopt(cls, above.legacy_tensor(*args, **kwargs))

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """Take what `__new__` has taken."""

    def __iter__(self) -> Any:
        if not machinery().called(Tensor.dim, (self,), {}):
            raise TypeError("iteration over a 0-d tensor")
        return iter(machinery().called(Tensor.unbind, (self,), {}))


def of_class(cls: type, t: Tensor) -> Any:
    """Return the tensor as an object of ``cls``, sharing everything."""
    if t.__class__ not in MARKED or not (cls is Tensor or hasattr(cls, "of_program")):
        return adopt(cls, t)
    return marked_as(cls, t)


def _mro(cls: type) -> list[type]:
    order = type.mro(cls)
    if cls.__dict__.get("__module__", "").partition(".")[0] == _PACKAGE or Redefining in order or Tensor not in order:
        return order
    place = order.index(Tensor)
    return [*order[:place], Redefining, *order[place:]]


def _subclassed(cls: type) -> None:
    machinery().made(cls)


def _torch_function(cls: type, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
    """Return ``func(*args, **kwargs)`` computed on tensors; those among the results become of this class."""
    return machinery().default(cls, func, types, args, kwargs or {})


def as_subclass(self: Tensor, cls: type) -> Any:
    """Return the tensor as one of another class, with the same memory; dy/dx = 1. TypeError where ``cls`` is no subclass of Tensor.

    Source: https://docs.pytorch.org/docs/stable/generated/torch.Tensor.as_subclass.html

    >>> class Money(torch.Tensor):
    ...     __module__ = "shop"
    >>> type(torch.ones(2).as_subclass(Money) * 2).__name__
    'Money'
    """
    if not isinstance(cls, type) or not issubclass(cls, Tensor):
        raise TypeError(f"as_subclass(): argument 'cls' must be a subclass of Tensor, not {cls!r}")
    new = of_class(cls, alias_view(self))
    return new if new is not self else alias_view(self)


def _make_subclass(cls: type, data: Any, require_grad: bool = False, **kwargs: Any) -> Any:
    """Return a tensor of class ``cls`` with the memory of ``data``, outside its graph."""
    if not isinstance(data, Tensor):
        raise TypeError(f"_make_subclass(): argument 'data' must be Tensor, not {type(data).__name__}")
    new = of_class(cls, machinery().undisturbed(Tensor.detach, data))
    if require_grad:
        set_requires_grad(new, True)
    return new


def _make_wrapper_subclass(cls: type, size: Any, **kwargs: Any) -> Any:
    """Raise NotImplementedError: tensors that only look as if they had memory need ``__torch_dispatch__``, which is not here."""
    raise NotImplementedError(
        f"{cls.__name__}: _make_wrapper_subclass() and __torch_dispatch__ are not in this library; a subclass with memory of its own "
        "(as_subclass, _make_subclass) and __torch_function__ are"
    )


def _redefined(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    return machinery().called(function, args, kwargs)


asked.redefined = _redefined
above.subclassed = _subclassed
asked.meta = lambda: import_module(f"{__package__}.meta")
TensorMeta.mro = _mro  # type: ignore[method-assign, assignment]
Tensor.__torch_function__ = classmethod(_torch_function)  # type: ignore[attr-defined]
Tensor.as_subclass = as_subclass  # type: ignore[method-assign, assignment]
Tensor._make_subclass = staticmethod(_make_subclass)  # type: ignore[attr-defined]
Tensor._make_wrapper_subclass = staticmethod(_make_wrapper_subclass)  # type: ignore[attr-defined]
