"""Tensors that modules own: parameters, which are learned, and buffers, which are only kept.

Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.parameter.Parameter.html
"""

from __future__ import annotations

from typing import Any

from ..dtypes import get_default_dtype
from ..ops.create import new_empty
from ..ops.recording import tensor_type
from ..tensor import Tensor, TensorMeta, adopt, set_requires_grad


class Parameter(Tensor):
    """A tensor that a `Module` registers as a parameter when it is assigned as an attribute.

    data: the tensor whose memory it takes over; requires_grad: whether it is learned.

    Example:
        >>> import autograd_nb as torch
        >>> torch.nn.Parameter(torch.zeros(2)).requires_grad
        True
    """

    def __new__(cls, data: Any = None, requires_grad: bool = True) -> Any:
        if data is None:
            data = new_empty((0,), get_default_dtype())
        if not isinstance(data, Tensor):
            raise TypeError(f"Parameter(): argument 'data' must be a Tensor, not {type(data).__name__}")
        t = adopt(cls, data.detach())
        set_requires_grad(t, requires_grad)
        return t

    def __repr__(self, **options: Any) -> str:
        return "Parameter containing:\n" + super().__repr__(**options)


class _BufferMeta(TensorMeta):
    """A tensor of any class that carries the mark is a `Buffer`."""

    def __instancecheck__(cls, instance: Any) -> bool:
        if cls is Buffer and isinstance(instance, Tensor) and getattr(instance, "_is_buffer", False):
            return True
        return super().__instancecheck__(instance)


class Buffer(Tensor, metaclass=_BufferMeta):
    """A tensor that a `Module` registers as a buffer when it is assigned as an attribute.

    persistent: whether it is part of the module's state_dict.
    """

    def __new__(cls, data: Any = None, *, persistent: bool = True) -> Any:
        if data is None:
            data = new_empty((0,), get_default_dtype())
        t = adopt(Tensor, data.detach())
        set_requires_grad(t, data.requires_grad)
        t.persistent = persistent
        t._is_buffer = True
        return t


def typename(value: Any) -> str:
    """How PyTorch names the type of ``value`` in its messages: ``torch.FloatTensor``, ``int``, ``package.Class``."""
    if isinstance(value, Tensor):
        return "torch." + tensor_type(value.dtype)
    kind = type(value)
    return kind.__qualname__ if kind.__module__ in ("builtins", None) else f"{kind.__module__}.{kind.__qualname__}"
