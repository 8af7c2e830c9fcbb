"""Tensors that modules own: parameters, which are learned, and buffers, which are only kept.

Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.parameter.Parameter.html
"""

from __future__ import annotations

from collections.abc import Callable
from inspect import signature
from typing import Any, Self

from ..autograd.subclasses import Redefining, _disabled_torch_function_impl, machinery
from ..dtypes import as_dtype, get_default_dtype
from ..graph import noted
from ..ops.core.foreign import asked
from ..ops.core.recording import typename
from ..ops.creation.create import new_empty
from ..shapes import as_shape
from ..tensor import Tensor, TensorMeta, adopt, set_requires_grad


class _ParameterMeta(TensorMeta):
    """A tensor of a program's class that carries the mark is a `Parameter`."""


def _is_parameter(cls: type, instance: Any) -> bool:
    return (cls is Parameter and isinstance(instance, Tensor) and getattr(instance, "_is_param", False)) or type.__instancecheck__(cls, instance)


class Parameter(Tensor, metaclass=_ParameterMeta):
    """A tensor that a `Module` registers as a parameter when it is assigned as an attribute.

    data: the tensor whose memory it takes over; requires_grad: whether it is learned.

    Example:
        >>> torch.nn.Parameter(torch.zeros(2)).requires_grad
        True
    """

    def __new__(cls, data: Any = None, requires_grad: bool = True) -> Self:
        if data is None:
            data = new_empty((0,), get_default_dtype())
        if not isinstance(data, Tensor):
            raise TypeError(f"Parameter(): argument 'data' must be a Tensor, not {type(data).__name__}")
        parts = "_sharding" in data.__dict__ and not data.is_meta  # of a tensor that ranks share
        other = (isinstance(data, Redefining) and not parts) or data.is_sparse or data.is_sparse_csr
        if cls is Parameter and other and not issubclass(type(data), Parameter):  # it stays of its class
            if data.is_meta:
                return asked.meta().parameter(data, requires_grad)  # type: ignore[no-any-return]
            _ParameterMeta.__instancecheck__ = _is_parameter  # type: ignore[method-assign]
            t = data.detach().requires_grad_(requires_grad)
            t._is_param = True
            return t  # type: ignore[return-value]
        t = adopt(cls, machinery().undisturbed(Tensor.detach, data) if isinstance(data, Redefining) else data.detach())
        set_requires_grad(t, requires_grad)
        if parts:
            data.__dict__["_sharding"].mark(t)
        return t

    __torch_function__ = _disabled_torch_function_impl

    def __deepcopy__(self, memo: dict[Any, Any]) -> Any:
        if id(self) not in memo:  # (its gradient stays behind, as in PyTorch)
            memo[id(self)] = type(self)(self.detach().clone(), self.requires_grad)
        return memo[id(self)]

    def __repr__(self, **options: Any) -> str:
        return "Parameter containing:\n" + super().__repr__(**options)


noted.parameter = Parameter


class _BufferMeta(TensorMeta):
    """A tensor of any class that carries the mark is a `Buffer`."""

    def __instancecheck__(cls, instance: Any) -> bool:
        if cls is Buffer and isinstance(instance, Tensor) and getattr(instance, "_is_buffer", False):
            return True
        return super().__instancecheck__(instance)


class Buffer(Tensor, metaclass=_BufferMeta):
    """A tensor that a `Module` registers as a buffer when it is assigned as an attribute.

    persistent: whether it is part of the module's state_dict.

    >>> m = torch.nn.Module()
    >>> m.mean = torch.nn.Buffer(torch.zeros(1))
    >>> list(m.state_dict())
    ['mean']
    """

    def __new__(cls, data: Any = None, *, persistent: bool = True) -> Self:
        if data is None:
            data = new_empty((0,), get_default_dtype())
        t = data.detach() if data.is_meta else adopt(Tensor, data.detach())
        set_requires_grad(t, data.requires_grad)
        t.persistent = persistent
        t._is_buffer = True
        return t


def is_persistent(value: Any, name: str, apart: set[str]) -> bool:
    """Return whether what is assigned as the buffer ``name`` is to be in the state_dict; ``apart``: the names of those that are not. TypeError."""
    if value is not None and not isinstance(value, Tensor) and not hasattr(value, "__torch_function__"):
        raise TypeError(f"cannot assign '{typename(value)}' as buffer '{name}' (torch.nn.Buffer, torch.Tensor or None expected)")
    return value.persistent if isinstance(value, Buffer) else name not in apart


def register_by(register: Callable[..., None], name: str, value: Any, persistent: bool) -> None:
    """Register a buffer by a class's own ``register_buffer``, which may be of the time when all buffers were in the state_dict."""
    if "persistent" in signature(register).parameters:
        register(name, value, persistent)
    elif persistent:
        register(name, value)
    else:
        raise RuntimeError(
            "Registering a non-persistent buffer on a Module subclass that implements register_buffer() without the persistent argument is not "
            f"allowed. (buffer '{name}': give that register_buffer() the argument, or the buffer persistent=True)"
        )


class UninitializedTensorMixin:
    """A tensor without a shape yet: it only knows its dtype, until `materialize` makes an ordinary tensor of it."""

    cls_to_become: type = Tensor

    @property
    def _layout(self) -> Any:  # every op asks for it
        raise ValueError(
            "Attempted to use an uninitialized parameter or buffer. This error happens when you are using a `LazyModule` or explicitly "
            f"manipulating `torch.nn.parameter.{type(self).__name__}` objects. When using LazyModules call `forward` with a dummy "
            "batch to initialize the parameters before calling torch functions"
        )

    @_layout.setter
    def _layout(self, layout: Any) -> None:
        self.__dict__["dtype_"] = layout.dtype

    def materialize(self, shape: Any, device: Any = None, dtype: Any = None) -> None:
        """Become a tensor of this shape, with undefined contents."""
        full = new_empty(as_shape((shape,)), self.dtype if dtype is None else as_dtype(dtype))
        self.__class__ = self.cls_to_become  # type: ignore[assignment]
        self.__dict__.pop("dtype_", None)
        self._data, self._layout = full._data, full._layout  # type: ignore[misc]

    @property
    def dtype(self) -> Any:
        """Return the element type."""
        return self.__dict__["dtype_"]

    @property
    def shape(self) -> Any:
        """Raise RuntimeError: there is none yet."""
        raise RuntimeError(
            "Can't access the shape of an uninitialized parameter or buffer. This error usually happens in `load_state_dict` when "
            "trying to load an uninitialized parameter into an initialized one. Call `forward` to initialize the parameters before "
            "accessing their attributes."
        )

    @property
    def data(self) -> Any:
        """Return the parameter itself; assigning another takes over its dtype."""
        return self

    @data.setter
    def data(self, other: Any) -> None:
        self.__dict__["dtype_"] = other.dtype

    def detach(self) -> Any:
        """Return the object itself."""
        return self

    def is_floating_point(self) -> bool:
        """Return whether its elements will be floats."""
        return self.dtype.is_floating_point

    def is_complex(self) -> bool:
        """Return whether its elements will be complex."""
        return self.dtype.is_complex

    def to(self, *args: Any, **kwargs: Any) -> Any:
        """Return one of another dtype."""
        d = new_empty((0,), self.dtype).to(*args, **kwargs).dtype
        return self if d is self.dtype else type(self)(self._rg and d.is_floating_point, dtype=d)  # type: ignore[attr-defined, call-arg]

    cpu = to

    def share_memory_(self) -> Any:
        """Raise RuntimeError: there is no memory yet."""
        raise RuntimeError(
            "Can't share memory on an uninitialized parameter or buffer. Call `forward` to initialize the parameters before calling "
            "`module.share_memory()`."
        )

    def __deepcopy__(self, memo: dict[Any, Any]) -> Any:
        if id(self) not in memo:
            memo[id(self)] = type(self)(self._rg, dtype=self.dtype)  # type: ignore[attr-defined, call-arg]
        return memo[id(self)]

    def __reduce_ex__(self, protocol: Any) -> Any:
        return type(self), (self._rg, None, self.dtype)  # type: ignore[attr-defined]

    def __repr__(self, **options: Any) -> str:
        return f"<{type(self).__name__}>"


class UninitializedParameter(UninitializedTensorMixin, Parameter):
    """A parameter whose shape is known only after the first forward call; see `nn.modules.lazy`."""

    cls_to_become = Parameter

    def __new__(cls, requires_grad: bool = True, device: Any = None, dtype: Any = None) -> Self:
        t = adopt(cls, new_empty((0,), get_default_dtype() if dtype is None else as_dtype(dtype)))
        t._rg = bool(requires_grad)
        return t


class UninitializedBuffer(UninitializedTensorMixin, Tensor):
    """A buffer whose shape is known only after the first forward call.

    >>> torch.nn.UninitializedBuffer().requires_grad
    False
    """

    def __new__(cls, requires_grad: bool = False, device: Any = None, dtype: Any = None, persistent: bool = True) -> Self:
        t = adopt(cls, new_empty((0,), get_default_dtype() if dtype is None else as_dtype(dtype)))
        t._rg, t.persistent, t._is_buffer = bool(requires_grad), persistent, True
        return t


def is_lazy(param: Any) -> bool:
    """Return whether a parameter or buffer has no shape yet."""
    return isinstance(param, UninitializedTensorMixin)


# ---------------------------------------------------------------------------------------------- conversion (PyTorch's ``torch.__future__``)

_overwrites = [False]


def set_overwrite_module_params_on_conversion(value: bool) -> None:
    """Set whether conversions of a module give it new parameters, where by default (False) the parameters stay and get other data.

    >>> torch.__future__.set_overwrite_module_params_on_conversion(True)
    >>> m = torch.nn.Linear(1, 1); w = m.weight
    >>> m.double().weight is w, w.dtype
    (False, torch.float32)
    >>> torch.__future__.set_overwrite_module_params_on_conversion(False)
    """
    _overwrites[0] = value


def get_overwrite_module_params_on_conversion() -> bool:
    """Return what `set_overwrite_module_params_on_conversion` set."""
    return _overwrites[0]


def converted(p: Any, new: Tensor) -> Any:
    """Return the parameter (or gradient) with the data ``new``: itself, unless it is to be overwritten or the data are of another layout or device."""
    if not _overwrites[0] and new.layout is p.layout and new.is_meta is p.is_meta:
        p.data = new
        return p
    return Parameter(new, p.requires_grad) if isinstance(p, Parameter) else new.requires_grad_(p.requires_grad)
