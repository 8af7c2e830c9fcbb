"""From tensors to Python and NumPy, and the protocols by which they find us."""

from __future__ import annotations

import operator
from collections.abc import Iterator
from typing import Any

import numpy as np

from ... import launch, strides
from ...config import settings
from ...errors import warn_user
from ...graph.modes import state
from ...graph.versions import fix
from ...shapes import wrap_dim
from ...tensor import Tensor, _storage, ndarray
from ..core.marked import need_known_history
from ..core.numbers import MOST_DIMS, numbers_of
from ..core.registry import OPS, public
from ..core.structured import tensor_argument
from .cast import format_name


@public(namespaces=())
def numpy(input, *, force=False) -> np.ndarray:
    """Return a NumPy array that shares the tensor's memory. RuntimeError when the tensor requires grad, but for under `no_grad`.

    >>> torch.tensor([1, 2]).numpy()
    array([1, 2])
    """
    if (input._rg or input._view is not None) and not force and state.grad and input.requires_grad:
        raise RuntimeError("Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead.")
    fix(input._version_)
    return ndarray(input)


@public(namespaces=())
def item(input) -> bool | int | float:
    """Return the one element as a Python number. RuntimeError when there are more or none.

    >>> torch.tensor([2.5]).item()
    2.5
    """
    layout = input._layout
    if layout.size != 1:
        raise RuntimeError(f"a Tensor with {layout.size} elements cannot be converted to Scalar (use tolist(), or index one of them)")
    if launch._observing:
        launch.escapes("item()")
    if layout.dtype.carrier is layout.dtype.np:
        return input._data.item(0)
    return numbers_of(input).item()


@public(namespaces=())
def tolist(input) -> Any:
    """Return the elements as nested lists of Python numbers.

    >>> torch.tensor([[1, 2], [3, 4]]).tolist()
    [[1, 2], [3, 4]]
    """
    need_known_history(input)
    layout = input._layout
    if layout.contiguous and layout.ndim <= MOST_DIMS and layout.dtype.carrier is layout.dtype.np and not launch._observing:
        data = input._data
        if data.size != layout.size:
            data = data[: layout.size]
        return data.tolist() if layout.ndim == 1 else data.reshape(layout.sizes).tolist()
    if layout.ndim > MOST_DIMS:
        return [part.tolist() for part in input.detach()]
    return numbers_of(input).tolist()


_ONE_ELEMENT = "only one element tensors can be converted to Python scalars (this one has {}: use tolist(), or index one of them)"


def _scalar(kind: type) -> Any:
    def convert(self):
        if self._layout.size != 1:
            raise ValueError(_ONE_ELEMENT.format(self._layout.size))
        value = item(self)
        return kind(_real_number(value) if value.__class__ is complex and kind is not complex else value)

    return convert


def _real_number(value: complex) -> float:
    if value.imag:
        raise RuntimeError(f"value cannot be converted to type double without overflow: {value} has an imaginary part")
    return value.real


_warned = False


def _float(self: Tensor) -> float:
    global _warned
    if self._rg and (not _warned or settings.warn_always):
        _warned = True
        warn_user(
            "Converting a tensor with requires_grad=True to a scalar may lead to unexpected behavior. Consider using tensor.detach() "
            "first.",
        )
    layout = self._layout
    if layout.size != 1:
        raise ValueError(_ONE_ELEMENT.format(layout.size))
    if layout.dtype.carrier is layout.dtype.np and not launch._observing:
        value = self._data.item(0)  # `item`, written out
    else:
        value = item(self)
    return value if value.__class__ is float else float(_real_number(value) if value.__class__ is complex else value)


def _bool(self: Tensor) -> bool:
    layout = self._layout
    if layout.size != 1:
        raise RuntimeError(
            "Boolean value of Tensor with no values is ambiguous"
            if not layout.size
            else "Boolean value of Tensor with more than one value is ambiguous. Use .any() or .all()."
        )
    if layout.dtype.carrier is layout.dtype.np and not launch._observing:
        return bool(self._data.item(0))  # `item`, written out
    return bool(item(self))


def _index(self: Tensor) -> int:
    if self._layout.size != 1 or self.dtype.category > 1:
        raise TypeError("only integer tensors of a single element can be converted to an index")
    return operator.index(int(item(self)))


def _len(self: Tensor) -> int:
    if not self._layout.ndim:
        raise TypeError("len() of a 0-d tensor")
    return self._layout.sizes[0]


def _iter(self: Tensor) -> Iterator[Tensor]:
    if not self._layout.ndim:
        raise TypeError("iteration over a 0-d tensor")
    return iter(OPS["unbind"].call(self, 0))


def _contains(self: Tensor, value: Any) -> bool:
    if isinstance(value, (Tensor, int, float, complex)):
        return bool((self == value).any())
    raise RuntimeError(f"Tensor.__contains__ only supports Tensor or scalar, but you passed in a {type(value)}.")


def _array(self: Tensor, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
    a = numpy(self)
    if dtype is not None and a.dtype != dtype:
        return a.astype(dtype)
    return a.copy() if copy else a


def _array_function(self: Tensor, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
    return function(*_as_arrays(tuple(args)), **{k: _as_arrays(v) for k, v in kwargs.items()})


def _as_arrays(x: Any) -> Any:
    """Return tensors, also those in lists and tuples, as NumPy's arrays."""
    if isinstance(x, Tensor):
        return numpy(x)
    if isinstance(x, (list, tuple)):
        return type(x)(_as_arrays(v) for v in x)
    return x


def _pointwise(self: Tensor, name: str, args: tuple[Any, ...], options: dict[Any, Any]) -> Any:
    """Return ``m.<name>`` on tensors (see `autograd_nb.codegen.formula.namespace`)."""
    if name == "zero_like":
        return OPS["zeros_like"].call(self.detach())  # memory of its own, as of other gradients: it may be written to
    if name == "where" and not isinstance(args[0], Tensor):
        return args[1] if args[0] else args[2]
    op = OPS["conj_physical" if name == "conj" else name]  # (a view is for users)
    if op.kind == "pointwise" and op.rule is not None and not options and not all(isinstance(a, Tensor) for a in args):
        return op.rule.slow(args)  # formulas may have numbers where callers may not
    return op.call(*args, **options)


Tensor.__pointwise__ = _pointwise  # type: ignore[assignment]
Tensor.__int__ = _scalar(int)  # type: ignore[assignment]
Tensor.__complex__ = _scalar(complex)  # type: ignore[assignment]
Tensor.__float__ = _float  # type: ignore[assignment]
Tensor.__bool__ = _bool  # type: ignore[assignment]
Tensor.__index__ = _index  # type: ignore[assignment]
Tensor.__len__ = _len  # type: ignore[assignment]
Tensor.__iter__ = _iter  # type: ignore[assignment]
Tensor.__contains__ = _contains  # type: ignore[assignment]
Tensor.__array__ = _array  # type: ignore[assignment]
Tensor.__array_function__ = _array_function  # type: ignore[assignment]


# ------------------------------------------------------------------------------------------ what a tensor is


@public(namespaces=())
def size(input, dim=None):
    """Return the shape, or one size of it.

    >>> torch.tensor([[1, 2, 3]]).size()
    torch.Size([1, 3])
    """
    layout = input._layout
    if dim is None:
        return layout.shape
    if not layout.ndim:
        raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
    return layout.sizes[dim if type(dim) is int and 0 <= dim < layout.ndim else wrap_dim(dim, layout.ndim)]


Tensor.size = size  # it has no other name for its dim  # type: ignore[assignment]


@public(namespaces=())
def stride(input, dim=None):
    """Return the strides in elements, or one of them; [[1, 2, 3]].stride() = (3, 1)."""
    layout = input._layout
    return layout.strides if dim is None else layout.strides[wrap_dim(dim, layout.ndim)]


@public("ndimension", namespaces=())
def dim(input) -> int:
    """Return the number of dims.

    >>> torch.tensor([[1, 2, 3]]).dim()
    2
    """
    return input._layout.ndim


@public("nelement", methods=("nelement",))
def numel(input) -> int:
    """Return the number of elements.

    >>> torch.numel(torch.tensor([[1, 2, 3]]))
    3
    """
    try:
        return input._layout.size
    except AttributeError:
        return tensor_argument(input, "numel")._layout.size


@public(namespaces=())
def is_contiguous(input, memory_format=None) -> bool:
    """Return whether the elements stand in C order without gaps, or as another ``memory_format`` says; [1, 2].is_contiguous() = True."""
    return input._layout.contiguous if memory_format is None else strides.is_in(input._layout, format_name(memory_format))


@public(namespaces=())
def element_size(input) -> int:
    """Return the bytes of one element.

    >>> torch.tensor([1.]).element_size()
    4
    """
    return input.dtype.itemsize


@public(namespaces=())
def storage_offset(input) -> int:
    """Return the number of elements from the beginning of the storage to the first element.

    >>> torch.tensor([1, 2]).storage_offset()
    0
    """
    launch.escapes("storage_offset()")
    return _storage(input)[1]


@public(namespaces=())
def data_ptr(input) -> int:
    """Return the address of the first element; 0 where there is none.

    >>> x = torch.tensor([1, 2])
    >>> x[1:].data_ptr() - x.data_ptr()
    8
    """
    launch.escapes("data_ptr()")
    return launch.memory.address(input._data) if input._layout.size else 0


@public()
def is_floating_point(input) -> bool:
    """Return whether the dtype is a float; is_floating_point([1.]) = True."""
    return tensor_argument(input, "is_floating_point").dtype.is_floating_point


@public()
def is_complex(input) -> bool:
    """Return whether the dtype is complex; is_complex([1.]) = False."""
    return tensor_argument(input, "is_complex").dtype.is_complex


@public()
def is_signed(input) -> bool:
    """Return whether the dtype is signed; is_signed([1]) = True."""
    return tensor_argument(input, "is_signed").dtype.is_signed


@public()
def is_same_size(input, other) -> bool:
    """Return whether the shapes are equal; is_same_size([1, 2], [3, 4]) = True."""
    return tensor_argument(input, "is_same_size").shape == tensor_argument(other, "is_same_size", "other").shape


@public()
def is_nonzero(input) -> bool:
    """Return whether the one element is not 0; is_nonzero([2.]) = True."""
    if tensor_argument(input, "is_nonzero")._layout.size != 1:
        raise RuntimeError(
            f"Boolean value of Tensor with {'no values' if not input._layout.size else 'more than one value'} is ambiguous"
        )
    return bool(item(input))


@public()
def is_inference(input) -> bool:
    """Return whether the tensor was made in inference mode; is_inference([1.]) = False."""
    return tensor_argument(input, "is_inference")._inference


Tensor.itemsize = property(element_size, doc="Bytes of one element.")  # type: ignore[assignment]
Tensor.nbytes = property(lambda self: self._layout.size * self.dtype.itemsize, doc="Bytes of all elements.")  # type: ignore[assignment]
