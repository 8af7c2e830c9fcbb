"""A tensor's memory: what it tells of it (``storage()``), for programs that compare pointers and count bytes, and how it gets other."""

from __future__ import annotations

from typing import Any

from ... import launch
from ...errors import warn_user
from ...graph.modes import state
from ...graph.node import expect
from ...graph.versions import beside, check_grows
from ...shapes import Layout, as_shape, check_sizes, contiguous_strides, layout_of
from ...strides import formatted, suggested
from ...tensor import Tensor, _storage, make
from ..core.history import check_inplace
from ..core.marked import MARKED
from ..core.registry import public
from ..core.structured import tensor_argument
from . import create, device
from .cast import format_name
from .storages import LEGACY, StorageBase, TypedStorage, UntypedStorage


@public(namespaces=())
def storage(input) -> TypedStorage:
    """Return the memory that the tensor and all views of it look at, as elements.

    >>> len(torch.ones(3)[1:].storage())
    3
    """
    x = tensor_argument(input, "storage")
    return TypedStorage._over(_storage(x)[0], x.dtype, x._version_)  # type: ignore[no-any-return]


@public(namespaces=())
def untyped_storage(input) -> UntypedStorage:
    """Return the memory that the tensor and all views of it look at, as bytes.

    >>> torch.ones(3)[1:].untyped_storage().nbytes()
    12
    """
    return storage(input).untyped()


@public(namespaces=())
def _typed_storage(input) -> TypedStorage:
    """Return `storage`, by the name that PyTorch's own functions use."""
    return storage(input)


@public(namespaces=())
def storage_type(input) -> Any:
    """Return PyTorch's old class of storages of the tensor's dtype; [1.].storage_type() = <class 'torch.FloatStorage'>."""
    return LEGACY[tensor_argument(input, "storage_type").dtype]


@public(method=False, differentiable=False)
def is_storage(obj: Any) -> bool:
    """Return whether ``obj`` is a storage."""
    return isinstance(obj, StorageBase)


@public(namespaces=())
def is_set_to(input, tensor) -> bool:
    """Return whether both tensors read the same memory under the same geometry; [1.].is_set_to([1.]) = False."""
    a, b = tensor_argument(input, "is_set_to"), tensor_argument(tensor, "is_set_to", "tensor")
    launch.escapes("is_set_to()")  # (`data_ptr` is 0 for all that have no elements)
    first, second = (launch.memory.address(t._data) for t in (a, b))
    same = first == second and a._layout is b._layout
    return same and storage(a) == storage(b)


def _reversed(x: Tensor) -> Tensor:
    """Return ``reversed(x)``: the first dim from the back, a tensor as PyTorch gives it."""
    return x.flip(0) if x.ndim else x


Tensor.__reversed__ = _reversed  # type: ignore[assignment]


def _volatile(x: Tensor) -> bool:
    """Return False, with a warning: the flag is of old, see `no_grad`."""
    warn_user("volatile was removed (Variable.volatile is always False)")
    return False


Tensor.volatile = property(_volatile)  # type: ignore[assignment]


# ------------------------------------------------------------------------------------------------ memory and geometry


def _no_grad_needed(x: Tensor, name: str) -> None:
    if x.requires_grad and not state.inference:
        raise RuntimeError(f"cannot resize variables that require grad ({name}(); use it on x.detach(), or reshape a copy)")
    check_inplace(x)


@public(kind="inplace", namespaces=())
def resize_(input, *sizes, size=None, memory_format=None):
    """Give the tensor another shape, in place: its elements in C order, further ones undefined where there are more.

    Memory is kept, and shared with who shares it, as long as the storage is large enough; a tensor that outgrows it gets memory of
    its own. ``memory_format`` says how the elements lie then. Derivative: none. Errors: RuntimeError for tensors that require grad.

    Source: https://docs.pytorch.org/docs/stable/generated/torch.Tensor.resize_.html

    >>> torch.tensor([1, 2, 3, 4]).resize_(2, 2)
    tensor([[1, 2],
            [3, 4]])
    """
    x = tensor_argument(input, "resize_")
    _no_grad_needed(x, "resize_")
    shape = as_shape(sizes if size is None else (size,), op="resize_")
    check_sizes(shape)
    new = layout_of(shape, None, x.dtype)
    if memory_format is not None:
        new = _resized(new, memory_format)
    if new is x._layout or (memory_format is None and new.shape == x._layout.shape):
        return x
    base, offset = _storage(x)
    launch.escapes("resize_()")
    if base.size - offset < new.size:
        check_grows(x._version_)
        data = create.told(make(launch.empty(new.size, x.dtype.carrier), layout_of((new.size,), None, x.dtype), [0, 0]))._data
        data[: base.size - offset] = base[offset:]
        x._data, x._view = data, None
    else:
        x._data = base[offset:] if offset else base
    x._layout = new
    x._version_[0] += 1
    return x


@public(kind="inplace", namespaces=("torch",))
def resize_as_(input, the_template, *, memory_format=None):
    """Return `resize_` to the shape of another tensor; with ``memory_format=torch.preserve_format`` in the order that it looks to be in."""
    like = tensor_argument(the_template, "resize_as_", "the_template")
    if memory_format is not None and format_name(memory_format) == "preserve_format":
        memory_format = getattr(device, suggested(like._layout))
    return resize_(input, like.shape, memory_format=memory_format)


def _resized(layout: Layout, memory_format: Any) -> Layout:
    name = format_name(memory_format)
    if name == "preserve_format":
        raise RuntimeError("Unsupported memory format Preserve (resize_(memory_format=torch.preserve_format))")
    return formatted(layout, name)


@public(kind="inplace", namespaces=())
def set_(input, source=None, storage_offset=0, size=None, stride=None):
    """Let the tensor read the memory of ``source``, a tensor or a storage (under a geometry of its own, if given); without it become empty.

    Derivative: none. Errors: RuntimeError for another dtype, a geometry that reaches outside the memory, or, but for under `no_grad`,
    tensors that require grad.

    >>> x = torch.zeros(1)
    >>> x.set_(torch.tensor([1., 2.]))
    tensor([1., 2.])
    """
    x = tensor_argument(input, "set_")
    if state.grad:
        _no_grad_needed(x, "set_")
    check_inplace(x)
    if source is None:
        y = make(launch.empty(0, x.dtype.carrier), layout_of((0,), None, x.dtype), [0, 0])
    elif isinstance(source, StorageBase):
        y = source._read_as(x.dtype)
    else:
        y = tensor_argument(source, "set_", "source").detach()
        while y.__class__ in MARKED:  # the memory is read as it lies, whatever the source shows of it
            y = y.of
    if y.dtype is not x.dtype:
        raise RuntimeError(f"Could not set tensor of type {y.dtype} to a tensor of type {x.dtype} (set_())")
    if size is not None:
        shape = as_shape((size,))
        y = y.as_strided(shape, contiguous_strides(shape) if stride is None else stride, storage_offset)
    if y.shape != x.shape:
        expect(x._edge, x._layout.shape, x.dtype)
    x._version_[0] += 1  # for what has kept the tensor, and for its views
    x._data, x._layout, x._version_ = y._data, y._layout, beside(y._version_, x._version_[0])
    x._view = None
    return x
