"""PyTorch's old API: `Variable`, and the type constructors ``FloatTensor`` and so on."""

from __future__ import annotations

import copyreg
from typing import Any

from .. import dtypes
from ..dtypes import dtype
from ..errors import warn_user
from ..graph import engine
from ..ops.core.recording import tensor_type
from ..ops.core.registry import public
from ..ops.creation.cast import cast
from ..ops.creation.data import legacy
from ..tensor import Tensor
from .function import Function

_TYPES = {
    "FloatTensor": dtypes.float32, "DoubleTensor": dtypes.float64, "HalfTensor": dtypes.float16, "BFloat16Tensor": dtypes.bfloat16, "LongTensor": dtypes.int64,
    "IntTensor": dtypes.int32, "ShortTensor": dtypes.int16, "CharTensor": dtypes.int8, "ByteTensor": dtypes.uint8,
    "BoolTensor": dtypes.bool_,
}  # fmt: skip


_Type = type


class _VariableMeta(_Type):
    def __instancecheck__(cls, value: Any) -> bool:
        return isinstance(value, Tensor)

    def __subclasscheck__(cls, other: _Type) -> bool:
        return issubclass(other, Tensor) or _Type.__subclasscheck__(cls, other)


class Variable(metaclass=_VariableMeta):
    """The old wrapper that made a tensor part of the graph; Tensors do that themselves now, and this returns one.

    Example:
        >>> x = torch.autograd.Variable(torch.ones(2), requires_grad=True)
        >>> isinstance(x, torch.Tensor), x.requires_grad
        (True, True)

    ``volatile=True`` has no effect but a warning: use ``with no_grad():`` instead.
    """

    def __new__(
        cls, data: Any = None, requires_grad: bool = False, volatile: bool | None = None, _grad_fn: Any = None, name: str | None = None
    ) -> Any:
        if _grad_fn is not None:
            if not isinstance(_grad_fn, Function):
                raise TypeError(f"_grad_fn has to be a Function object or None, but got {_Type(_grad_fn).__name__}")
            raise RuntimeError("_grad_fn argument to legacy Variable constructor is no longer supported: call the function's apply")
        if volatile:
            warn_user("volatile was removed and now has no effect. Use `with torch.no_grad():` instead.", UserWarning)
        if data is None:
            data = legacy((), dtypes.get_default_dtype())
        if not isinstance(data, Tensor):
            raise TypeError(f"Variable data has to be a tensor, but got {type(data).__name__}")
        t = data.detach()
        return t.requires_grad_() if requires_grad else t

    _execution_engine = engine  # its `queue_callback` is what programs use


class _TypeMeta(_Type):
    dtype: dtype

    def __new__(cls, name: str, bases: tuple[Any, ...], members: dict[str, Any]) -> Any:
        if bases:
            raise TypeError(f"type 'torch.{bases[0].__name__}' is not an acceptable base type (inherit from Tensor)")
        return super().__new__(cls, name, bases, members)

    def __instancecheck__(cls, value: Any) -> bool:
        return isinstance(value, Tensor) and value.dtype is cls.dtype

    def __call__(cls, *args: Any, **options: Any) -> Any:
        return legacy(args, cls.dtype, **options)


def _make(name: str, d: dtype) -> Any:
    return _TypeMeta(name, (), {
        "dtype": d, "__module__": "torch", "is_cuda": False,
        "__doc__": f"The old constructor of {d.name} tensors: ``{name}(2, 3)`` is uninitialised, ``{name}([1, 2])`` holds data.",
    })  # fmt: skip


def _named(name: str) -> Any:
    """Return the class of a name, for `pickle`, which finds none of these by its module."""
    return TYPES[name]


TYPES: dict[str, Any] = {name: _make(name, d) for name, d in _TYPES.items()}
copyreg.pickle(_TypeMeta, lambda cls: (_named, (cls.__name__,)))  # type: ignore[arg-type]
_NAMES = {d: f"torch.{name}" for name, d in _TYPES.items()}


@public(namespaces=())
def type(input: Tensor, dtype: Any = None, non_blocking: bool = False) -> Any:  # noqa: A001
    """Return the tensor's type name ("torch.FloatTensor"), or the tensor cast to a dtype, a type or its name; [1.].type() = 'torch.FloatTensor'."""
    if dtype is None:
        return f"torch.{tensor_type(input.dtype)}"
    if isinstance(dtype, str):
        found = _TYPES.get(dtype.removeprefix("torch."))
        if found is None:
            raise ValueError(f"invalid type: {dtype!r}; one of {', '.join(_NAMES.values())}")
        return cast(input, found)
    if isinstance(dtype, _TypeMeta):
        return cast(input, dtype.dtype)
    if dtype is Tensor:
        return cast(input, dtypes.get_default_dtype())
    if isinstance(dtype, _Type):
        raise ValueError(f"invalid type: {dtype.__name__!r}; a dtype, or one of {', '.join(_NAMES.values())}")
    return cast(input, dtypes.as_dtype(dtype))


@public(method=False)
def is_tensor(obj: Any) -> bool:
    """Return whether ``obj`` is a Tensor; is_tensor([1.]) = True."""
    return isinstance(obj, Tensor)


_default_type = ["torch.FloatTensor"]


@public(method=False)
def set_default_tensor_type(t: Any) -> None:
    """Set the default dtype by a type or its name (floating types only).

    >>> torch.set_default_tensor_type(torch.FloatTensor)
    >>> torch.ones(1).dtype
    torch.float32
    """
    name = t if isinstance(t, str) else f"torch.{getattr(t, '__name__', t)}"
    found = _TYPES.get(name.removeprefix("torch."))
    if found is None:
        raise TypeError(f"invalid type object: {t!r}; one of {', '.join(_NAMES.values())}")
    dtypes.set_default_dtype(found)
