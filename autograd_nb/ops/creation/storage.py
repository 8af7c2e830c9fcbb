"""What a tensor tells of its memory: ``storage()`` and ``untyped_storage()``, for programs that compare pointers and count bytes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ... import dtypes, launch
from ...tensor import Tensor, _storage
from ..core.registry import public
from ..core.structured import tensor_argument


class _Storage:
    """A flat array shared by all views of a tensor."""

    def __init__(self, array: np.ndarray, d: dtypes.dtype):
        self._array, self.dtype = array, d

    dtype: dtypes.dtype
    device: str = "cpu"
    is_cuda: bool = False

    def data_ptr(self) -> int:
        """The address of the first byte."""
        return self._array.__array_interface__["data"][0] if self._array.size else 0

    def nbytes(self) -> int:
        """The size in bytes."""
        return self._array.nbytes

    def element_size(self) -> int:
        return self._array.itemsize

    def size(self) -> int:
        """The number of elements."""
        return self._array.size

    def __len__(self) -> int:
        return self._array.size

    def __iter__(self) -> Iterator[Any]:
        return iter(self.tolist())

    def __getitem__(self, index: Any) -> Any:
        launch.escapes("storage()[…]")
        found = self._array.view(self.dtype.np)[index]
        return found.item() if isinstance(found, np.generic) else type(self)(found.view(self.dtype.carrier), self.dtype)

    def tolist(self) -> list[Any]:
        """The elements as Python numbers."""
        launch.escapes("storage().tolist()")
        return self._array.view(self.dtype.np).tolist()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Storage) and self.data_ptr() == other.data_ptr() and self.nbytes() == other.nbytes()

    def __hash__(self) -> int:
        return hash((self.data_ptr(), self.nbytes()))


class TypedStorage(_Storage):
    """The memory as elements of the tensor's dtype."""

    def untyped(self) -> UntypedStorage:
        """The same memory as bytes."""
        return UntypedStorage(self._array.view(np.uint8), dtypes.uint8)

    def __repr__(self) -> str:
        rows = "\n".join(f" {v}" for v in self.tolist())
        return f"{rows}\n[torch.storage.TypedStorage(dtype={self.dtype}, device=cpu) of size {self.size()}]"


class UntypedStorage(_Storage):
    """The memory as bytes."""

    def __repr__(self) -> str:
        rows = "\n".join(f" {v}" for v in self.tolist())
        return f"{rows}\n[torch.storage.UntypedStorage(device=cpu) of size {self.size()}]"


@public(namespaces=())
def storage(input) -> TypedStorage:
    """The memory that the tensor and all views of it look at, as elements."""
    x = tensor_argument(input, "storage")
    return TypedStorage(_storage(x)[0], x.dtype)


@public(namespaces=())
def untyped_storage(input) -> UntypedStorage:
    """The memory that the tensor and all views of it look at, as bytes."""
    return storage(input).untyped()


@public(namespaces=())
def is_set_to(input, tensor) -> bool:
    """Whether both tensors read the same memory under the same geometry."""
    a, b = tensor_argument(input, "is_set_to"), tensor_argument(tensor, "is_set_to", "tensor")
    launch.escapes("is_set_to()")  # (`data_ptr` is 0 for all that have no elements)
    first, second = (t._data.__array_interface__["data"][0] for t in (a, b))
    same = first == second and a._layout is b._layout
    return same and storage(a) == storage(b)


def _reversed(x: Tensor) -> Tensor:
    """``reversed(x)``: the first dim from the back, a tensor as PyTorch gives it."""
    return x.flip(0) if x.ndim else x


Tensor.__reversed__ = _reversed  # type: ignore[assignment]
Tensor.volatile = property(lambda x: False, doc="False: PyTorch's old flag; see `no_grad`.")  # type: ignore[assignment]
