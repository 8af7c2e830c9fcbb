"""Methods of tensors that PyTorch keeps for old programs and for its own parts, beside those that are ops."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..dtypes import dtype as _dtype
from ..errors import DeviceError, warn_user
from ..ops.core.marked import MARKED, can_be_marked, look_again, looked_at, marked
from ..strides import formatted
from ..tensor import Tensor, wrap


def _names(self: Tensor) -> list[str]:
    """Return the attributes that a tensor has, for `dir`: places that only views fill are none of the others'."""
    return sorted(name for name in object.__dir__(self) if name not in ("_seen", "_view_kind"))


Tensor.__dir__ = _names  # type: ignore[assignment]


def _refusing(name: str, error: type[Exception], message: str) -> Any:
    def method(self: Tensor, *args: Any, **kwargs: Any) -> Any:
        raise error(f"{name}(): {message}")

    method.__name__, method.__qualname__, method.__module__ = name, f"Tensor.{name}", Tensor.__module__
    method.__doc__ = f"Raise {error.__name__}: {message}."
    return method


def resize(self: Tensor, *sizes: Any) -> Tensor:
    """Return the tensor under another shape of as many elements, with a warning: `reshape` is today's name; [1, 2].resize(2, 1) = [[1], [2]]."""
    warn_user("non-inplace resize is deprecated (use reshape)")
    shape = tuple(sizes[0]) if len(sizes) == 1 and isinstance(sizes[0], Sequence) else sizes
    if int(np.prod(shape)) != self.numel():
        raise RuntimeError(
            f"requested resize to {'x'.join(map(str, shape))} ({int(np.prod(shape))} elements in total), but the given tensor has a size of "
            f"{'x'.join(map(str, self.shape))} ({self.numel()} elements). resize() can only change the shape of a tensor"
        )
    return self.reshape(shape)


def resize_as(self: Tensor, tensor: Tensor) -> Tensor:
    """Return the tensor under the shape of another of as many elements, with a warning: `reshape` is today's name."""
    return resize(self, *tensor.shape)


def dim_order(self: Tensor, *, ambiguity_check: bool | Sequence[Any] = False) -> tuple[int, ...]:
    """Return the dims from the outermost in memory to the innermost; RuntimeError where that is ambiguous and ``ambiguity_check`` says to look.

    >>> torch.zeros(2, 3, 5).transpose(1, 2).dim_order()
    (0, 2, 1)
    """
    if not isinstance(ambiguity_check, bool) and (isinstance(ambiguity_check, str) or not isinstance(ambiguity_check, Sequence)):
        raise TypeError("The ambiguity_check argument must be a bool or a list of memory formats.")
    strides = self.stride()
    order = tuple(sorted(range(self.ndim), key=lambda d: -strides[d] if self.shape[d] > 1 or strides[d] else 0))
    if ambiguity_check is False:
        return order
    if ambiguity_check is True:
        clear = len(set(strides)) == len(strides) and all(n > 1 for n in self.shape)
    else:
        names = [str(f).rpartition(".")[2] for f in ambiguity_check]
        fit = [n for n in names if n == "contiguous_format" or (n == "channels_last" and self.ndim == 4) or (n == "channels_last_3d" and self.ndim == 5)]
        clear = sum(formatted(self._layout, n).strides == strides for n in fit) == 1
    if not clear:
        raise RuntimeError("The tensor does not have unique dim order, or cannot map to exact one of the given memory formats.")
    return order


def _grad_dtype(self: Tensor) -> _dtype:
    """Return the dtype that gradients of a leaf have: its own. RuntimeError for others."""
    if not self.is_leaf:
        raise RuntimeError("grad_dtype can only be accessed on leaf tensors.")
    return self.dtype


def const_data_ptr(self: Tensor) -> int:
    """Return `data_ptr`, for those who only read."""
    return self.data_ptr()


def dequantize(self: Tensor) -> Tensor:
    """Return the tensor in float32: it was not quantized.

    >>> torch.tensor([1]).dequantize()
    tensor([1.])
    """
    return self.float()


def module_load(self: Tensor, other: Tensor, assign: bool = False) -> Tensor:
    """Return what a module's `load_state_dict` puts in the tensor's place: itself with the other's values, with ``assign`` the other."""
    return other.detach() if assign else self.copy_(other).detach()


def is_distributed(self: Tensor) -> bool:
    """Return False: a tensor is whole.

    >>> torch.tensor([1]).is_distributed()
    False
    """
    return False


def _every(self: Tensor) -> Tensor:
    """Return whether all elements of a tensor of bools are true."""
    return self.all()


def _some(self: Tensor) -> Tensor:
    """Return whether some element of a tensor of bools is true."""
    return self.any()


def _neg_view(self: Tensor) -> Tensor:
    """Return a view that shows the negatives."""
    if self.__class__ in MARKED and self.mark == "neg":
        return look_again(looked_at(self))
    if hasattr(self.__class__, "viewed"):
        return self.viewed(_neg_view)
    return marked(look_again(self), "neg") if can_be_marked(self) or self.__class__ in MARKED else -self


def _fix_weakref(self: Tensor) -> None:
    """Do nothing: weak references to a tensor end with the tensor."""


def _array_wrap(self: Tensor, array: Any, context: Any = None, return_scalar: bool = False) -> Tensor:
    """Return what NumPy computed as a tensor; bools as bytes, as in PyTorch."""
    array = np.asarray(array)
    return wrap(array.astype(np.uint8) if array.dtype == np.bool_ else array)


def _kept(text: str) -> Any:
    def refuse(self: Tensor) -> None:
        raise RuntimeError(text)

    return refuse


_OLD = "This function was deprecated since version 1.9 and is now removed; in this library as in PyTorch it is linalg."
_QUANTIZED = "the tensor is not quantized: there are no quantized tensors in this library"

for _method in (resize, resize_as, dim_order, const_data_ptr, dequantize, module_load, is_distributed):
    setattr(Tensor, _method.__name__, _method)
for _name, _message in {
    "eig": _OLD + "eig", "symeig": _OLD + "eigh", "lstsq": _OLD + "lstsq", "solve": _OLD + "solve",
    "reinforce": "it was removed; use autograd_nb.distributions",
}.items():  # fmt: skip
    setattr(Tensor, _name, _refusing(_name, RuntimeError, _message))
for _name in ("q_scale", "q_zero_point", "q_per_channel_axis", "q_per_channel_scales", "q_per_channel_zero_points", "qscheme", "int_repr"):
    setattr(Tensor, _name, _refusing(_name, NotImplementedError, _QUANTIZED))
for _name, _message in {
    "to_mkldnn": "layouts of oneDNN are not in this library", "to_padded_tensor": "nested tensors are not in this library",
    "record_stream": "there are no streams in this library, which computes on the CPU",
    "to_sparse_bsr": "sparse tensors by blocks are not in this library", "to_sparse_bsc": "sparse tensors by blocks are not in this library",
}.items():  # fmt: skip
    setattr(Tensor, _name, _refusing(_name, NotImplementedError, _message))
Tensor.ipu = _refusing("ipu", DeviceError, "this library computes on the CPU only")  # type: ignore
Tensor.grad_dtype = property(_grad_dtype)  # type: ignore
Tensor._is_all_true, Tensor._is_any_true, Tensor._neg_view, Tensor._fix_weakref = _every, _some, _neg_view, _fix_weakref  # type: ignore
Tensor.__array_wrap__ = _array_wrap  # type: ignore
Tensor.__nonzero__, Tensor.__long__ = Tensor.__bool__, Tensor.__int__  # type: ignore
Tensor.data = Tensor.data.deleter(_kept("Deleting tensor data is not allowed. Delete tensor instead!"))  # type: ignore
Tensor.requires_grad = Tensor.requires_grad.deleter(_kept("requires_grad must be a bool"))  # type: ignore
Tensor._grad_fn = property(  # type: ignore
    lambda x: x.grad_fn, None, _kept("Deletion of _grad_fn not allowed. Detach tensor instead!"), doc="`grad_fn`, by its old name."
)
Tensor._backward_hooks = property(  # type: ignore
    lambda x: x.__dict__.get("_backward_hooks"),
    lambda x, hooks: x.__dict__.update(_backward_hooks=hooks),
    _kept("Deletion of _backwards_hooks not allowed!"),
    doc="None, or what was set, which nothing reads: hooks of a tensor are its node's.",
)
