"""Storages: the memory of tensors as flat sequences, as `Tensor.storage` and `Tensor.untyped_storage` give it, and memory without a tensor.

What is written into one is seen by all tensors that read its memory. Source: https://docs.pytorch.org/docs/stable/storage.html
"""

from __future__ import annotations

import copyreg
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ... import dtypes, launch
from ...dtypes import dtype
from ...errors import refuse_keywords
from ...graph.versions import FIXED
from ...shapes import layout_of
from ...tensor import Tensor, make
from ..core.registry import OPS
from . import create, device
from .data import tensor

CPU: device.device = device.device("cpu")


class StorageBase:
    """A flat array shared by all views of a tensor."""

    _array: np.ndarray
    _dtype: dtype
    _versions: list[int]

    device: device.device = CPU
    is_cuda: bool = False
    is_hpu: bool = False
    is_sparse: bool = False
    is_sparse_csr: bool = False
    filename: str | None = None

    @classmethod
    def _over(cls, array: np.ndarray, d: dtype, versions: list[int]) -> Any:
        """Return the storage of an array that is there, whose tensors count changes in ``versions``."""
        storage = object.__new__(cls)
        storage._array, storage._dtype, storage._versions = array, d, versions
        return storage

    def _flat(self, d: dtype | None = None) -> Tensor:
        """Return the whole memory as a tensor, of the storage's dtype or of another one."""
        launch.escapes("storage()")  # a captured program does not know whose memory this is
        d = d or self._dtype
        data = self._array.view(d.carrier)
        return make(data, layout_of((data.size,), None, d), [0, 0])

    def _read_as(self, d: dtype | None) -> Tensor:
        """Return the tensor of that dtype over this memory. RuntimeError for a `TypedStorage` of another."""
        d = d or (dtypes.get_default_dtype() if isinstance(self, TypedStorage) else dtypes.int64)
        if isinstance(self, TypedStorage) and self._dtype is not d:
            raise RuntimeError(f"Expected a Storage of type {d} or an UntypedStorage, but got type {self._dtype}")
        launch.escapes("a tensor over a storage")
        data = self._array[: self.nbytes() // d.itemsize * d.itemsize // self._array.itemsize].view(d.carrier)
        return make(data, layout_of((data.size,), None, d), self._versions)

    def data_ptr(self) -> int:
        """Return the address of the first byte."""
        return launch.memory.address(self._array) if self._array.size else 0

    @property
    def _cdata(self) -> int:
        return launch.memory.address(self._array)

    def nbytes(self) -> int:
        """Return the size in bytes."""
        return self._array.nbytes

    def element_size(self) -> int:
        """Return the bytes of one element."""
        return self._dtype.itemsize

    def size(self) -> int:
        """Return the number of elements."""
        return self._array.nbytes // self._dtype.itemsize

    def __len__(self) -> int:
        return self.size()

    def __iter__(self) -> Iterator[Any]:
        return iter(self.tolist())

    def tolist(self) -> list[Any]:
        """Return the elements as Python numbers."""
        return self._flat().tolist()  # type: ignore[no-any-return]

    def _element(self, index: int) -> int:
        n = self.size()
        if not -n <= index < n:
            raise IndexError(f"index {index} out of range for storage of size {n}")
        return index % n

    def clone(self) -> Any:
        """Return a copy in memory of its own."""
        return self._over(self._flat().clone()._data, self._dtype, [0, 0])

    __copy__ = clone

    def __deepcopy__(self, memo: dict[Any, Any]) -> Any:
        flat = self._flat()
        memo.setdefault("_autograd_nb_keep", []).append(flat)  # another object at its address would be taken for it
        twin = self._over(flat.__deepcopy__(memo)._data, self._dtype, [0, 0])
        return memo.setdefault(id(self), twin)

    def copy_(self, source: Any, non_blocking: bool | None = None) -> Any:
        """Write the bytes of another storage of the same size over this one's."""
        if not isinstance(source, StorageBase):
            raise TypeError(f"copy_(): argument 'src' (position 1) must be torch.Storage, not {type(source).__name__}")
        if source.nbytes() != self.nbytes():
            raise RuntimeError(f"size does not match, self was {self.nbytes()} bytes but src was {source.nbytes()} bytes")
        self._flat(dtypes.uint8).copy_(source._flat(dtypes.uint8))
        return self

    def cpu(self) -> Any:
        """Return this storage."""
        return self

    def to(self, *, device: Any, non_blocking: bool = False) -> Any:
        """Return this storage, as it is on the CPU. RuntimeError for another device."""
        create.as_device(device)
        return self

    def is_shared(self) -> bool:
        """Return whether the memory is one that processes share."""
        return self._flat(dtypes.uint8).is_shared()

    def is_pinned(self, device: Any = None) -> bool:
        """Return False: there is no GPU that would read it."""
        return False

    def share_memory_(self) -> Any:
        """Return this storage, which stays where it is: it is a tensor that moves (`Tensor.share_memory_`)."""
        return self

    def resizable(self) -> bool:
        """Return whether the memory belongs to this library and not to an array of NumPy's."""
        return True

    def get_device(self) -> int | None:
        """Return None: memory of the CPU has no number."""
        return None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, StorageBase) and self._cdata == other._cdata and self.nbytes() == other.nbytes()

    def __hash__(self) -> int:
        return hash((self._cdata, self.nbytes()))

    def __sizeof__(self) -> int:
        return object.__sizeof__(self) + self.nbytes()

    def _cast(self, d: dtype) -> TypedStorage:
        if d is self._dtype:
            return self._over(self._array, d, self._versions)  # type: ignore[no-any-return]
        return TypedStorage._over(self._flat().to(d)._data, d, [0, 0])  # type: ignore[no-any-return]


def _cast_to(name: str) -> Any:
    def convert(self: StorageBase) -> Any:
        return self._cast(dtypes.BY_NAME[name])

    convert.__doc__ = f"The elements as {name}, in memory of their own where they are not."
    return convert


_CASTS = {
    "double": "float64", "float": "float32", "half": "float16", "bfloat16": "bfloat16", "long": "int64", "int": "int32", "short": "int16", "char": "int8",
    "byte": "uint8", "bool": "bool", "complex_double": "complex128", "complex_float": "complex64",
}  # fmt: skip
for _name, _to in _CASTS.items():
    setattr(StorageBase, _name, _cast_to(_to))


def _new_memory(args: tuple[Any, ...], d: dtype, refused: str) -> np.ndarray:
    """Return memory for a storage of that many elements, or of the elements of a sequence."""
    if len(args) > 1:
        raise RuntimeError(f"{refused}\nToo many positional arguments")
    (what,) = args or (0,)
    if isinstance(what, str):
        raise TypeError(f"new(): invalid data type 'str' ({refused.split(' received')[0]})")
    if isinstance(what, int):
        return create.empty(what, dtype=d)._data
    if isinstance(what, Tensor) or not isinstance(what, (Sequence, np.ndarray)):
        raise TypeError(f"{refused}\nArgument type not recognized: {type(what)}")
    return OPS["clone"].call(tensor(what, dtype=None if len(what) else d).to(d))._data  # type: ignore[no-any-return]


class TypedStorage(StorageBase):
    """The memory as elements of a dtype.

    ``TypedStorage(n)`` is uninitialised, ``TypedStorage([1, 2])`` has these elements, ``wrap_storage=`` reads an `UntypedStorage`.

    >>> len(torch.ones(3)[1:].storage())
    3
    """

    def __init__(self, *args: Any, wrap_storage: Any = None, dtype: Any = None, device: Any = None, _internal: bool = False):
        refused = (
            "TypedStorage.__init__ received an invalid combination of arguments. Expected one of:\n"
            " * (*, torch.device device, torch.dtype dtype)\n * (int size, *, torch.device device, torch.dtype dtype)\n"
            " * (Sequence data, *, torch.device device, torch.dtype dtype)\n * (*, UntypedStorage wrap_storage, torch.dtype dtype)"
        )
        if wrap_storage is None:
            if device is not None:
                _check_device(device, refused)
            self._dtype = dtypes.get_default_dtype() if dtype is None else dtypes.as_dtype(dtype)
            self._array, self._versions = _new_memory(args, self._dtype, refused), [0, 0]
            return
        if args:
            raise RuntimeError(f"{refused}\nNo positional arguments should be given when using 'wrap_storage'")
        if dtype is None:
            raise RuntimeError(f"{refused}\nArgument 'dtype' must be specified")
        if not isinstance(dtype, dtypes.dtype):
            raise TypeError(f"{refused}\nArgument 'dtype' must be torch.dtype, not {type(dtype)}")
        if device is not None:
            raise RuntimeError(f"{refused}\nArgument 'device' should not be specified when 'wrap_storage' is given")
        if not isinstance(wrap_storage, UntypedStorage):
            raise TypeError(f"{refused}\nArgument 'wrap_storage' must be UntypedStorage, but got {type(wrap_storage)}")
        self._array, self._dtype, self._versions = wrap_storage._array.view(dtype.carrier), dtype, wrap_storage._versions

    @property
    def dtype(self) -> dtypes.dtype:
        """Return the dtype of the elements."""
        return self._dtype

    def untyped(self) -> UntypedStorage:
        """Return the same memory as bytes."""
        return UntypedStorage._over(self._array.view(np.uint8), dtypes.uint8, self._versions)  # type: ignore[no-any-return]

    @property
    def _untyped_storage(self) -> UntypedStorage:
        """Return `untyped`, by the name that PyTorch's own parts take."""
        return self.untyped()

    def type(self, dtype: Any = None, non_blocking: bool = False) -> Any:
        """Return the type's name, as PyTorch's old classes of storages have it ("torch.FloatStorage")."""
        return f"torch.{LEGACY[self._dtype].__name__}"

    def pickle_storage_type(self) -> str:
        """Return the name of the old class of this dtype."""
        return LEGACY[self._dtype].__name__

    def _index(self, index: Any) -> int:
        if not isinstance(index, (int, np.integer)):
            raise RuntimeError(f"can't index a {TypedStorage} with {type(index)}")
        return self._element(int(index))

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            raise RuntimeError("slices are only supported in UntypedStorage.__getitem__")
        return self._flat()[self._index(index)].item()

    def __setitem__(self, index: Any, value: Any) -> None:
        if isinstance(value, StorageBase):
            raise RuntimeError(f"cannot set item with value type {type(value)}")
        self._flat()[index if isinstance(index, slice) else self._index(index)] = value

    def fill_(self, value: Any) -> TypedStorage:
        """Write one number over all elements."""
        self[:] = value
        return self

    def __repr__(self) -> str:
        rows = "\n".join(f" {v}" for v in self.tolist())
        return f"{rows}\n[torch.storage.TypedStorage(dtype={self.dtype}, device=cpu) of size {self.size()}]"

    @classmethod
    def from_buffer(cls, *args: Any, dtype: Any, **kw: Any) -> TypedStorage:
        """Return a copy of a buffer's bytes, read in the order that ``byte_order`` names."""
        return cls(wrap_storage=UntypedStorage.from_buffer(*args, dtype=dtype, **kw), dtype=dtype)


def of_file(filename: str, shared: bool | None, size: int, d: dtype) -> np.ndarray:
    """Return an array of ``size`` elements over a file. RuntimeError where there is no such file to read, or where it is too small."""
    path, wanted = Path(os.fsdecode(filename)), size * d.itemsize
    if shared:
        with path.open("ab") as file:
            file.truncate(max(wanted, path.stat().st_size))
    elif not path.exists() or path.stat().st_size < wanted:
        raise RuntimeError(f"unable to open file <{filename}> in read-only mode: it has not the {wanted} bytes of {size} elements of {d}")
    return np.memmap(path, d.carrier, "r+" if shared else "c", shape=(size,)).view(np.ndarray)


class UntypedStorage(StorageBase):
    """The memory as bytes: ``UntypedStorage(n)`` is uninitialised, ``UntypedStorage([1, 2])`` has these bytes.

    >>> torch.ones(3)[1:].untyped_storage().nbytes()
    12
    """

    def __init__(self, *args: Any, device: Any = None):
        refused = "torch.UntypedStorage() received an invalid combination of arguments"
        if device is not None:
            _check_device(device, refused)
        if len(args) > 1 or (args and isinstance(args[0], str)):
            raise TypeError(f"{refused} - got {args}, but expected a size or a sequence of bytes")
        if args and isinstance(args[0], Tensor):
            raise RuntimeError("torch.UntypedStorage(): Expected a sequence type, but got Tensor")
        if args and isinstance(args[0], int) and args[0] < 0:
            raise RuntimeError(f"alloc_cpu() seems to have been called with negative number: {args[0]}")
        self._array, self._dtype, self._versions = _new_memory(args, dtypes.uint8, refused), dtypes.uint8, [0, 0]

    def untyped(self) -> UntypedStorage:
        """Return this storage."""
        return self

    def type(self, dtype: Any = None, non_blocking: bool = False) -> Any:
        """Return the type's name."""
        return "torch.storage.UntypedStorage"

    def new(self) -> UntypedStorage:
        """Return an empty storage."""
        return UntypedStorage()

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            _check_step(index)
            return self._over(self._array[index], self._dtype, self._versions)
        if not isinstance(index, (int, np.integer)):
            raise TypeError(f"can't index a torch.UntypedStorage with {type(index).__name__}")
        return self._flat()[self._element(int(index))].item()

    def __setitem__(self, index: Any, value: Any) -> None:
        if not isinstance(value, int):
            raise RuntimeError(f"can only set storage content with a int types, but got {type(value).__name__} instead")
        if isinstance(index, slice):
            _check_step(index)
        elif not isinstance(index, (int, np.integer)):
            raise TypeError(f"can't index a torch.UntypedStorage with {type(index).__name__}")
        elif not -self.size() <= index < self.size():
            raise RuntimeError(f"out of bounds (index {index} of a storage of size {self.size()})")
        self._flat()[index] = value

    def fill_(self, value: int) -> UntypedStorage:
        """Write one number over all bytes."""
        self[:] = value
        return self

    def __repr__(self) -> str:
        rows = "\n".join(f" {v}" for v in self.tolist())
        return f"{rows}\n[torch.storage.UntypedStorage(device=cpu) of size {self.size()}]"

    @classmethod
    def from_file(cls, filename: Any, shared: bool = False, nbytes: int = 0, size: int | None = None) -> UntypedStorage:
        """Return the first ``nbytes`` bytes of a file as memory that is read when it is used; ``shared`` writes what is changed into the file."""
        nbytes = nbytes if size is None else size
        if shared and os.path.getsize(filename) < nbytes:
            os.truncate(filename, nbytes)
        data = np.memmap(filename, np.uint8, "r+" if shared else "c", shape=(nbytes,)) if nbytes else np.empty(0, np.uint8)
        found = cls._over(launch.constant(np.asarray(data)), dtypes.uint8, [0, 0])
        found.filename = os.fspath(filename)
        return found  # type: ignore[no-any-return]

    @classmethod
    def from_buffer(cls, buffer: Any, byte_order: str = "native", count: int = -1, offset: int = 0, *, dtype: Any) -> UntypedStorage:
        """Return a copy of the bytes of ``count`` elements of a buffer, turned round where ``byte_order`` is not this machine's."""
        if byte_order not in ("native", "little", "big"):
            raise ValueError(f"invalid byte_order '{byte_order}' (expected 'native', 'little', or 'big')")
        d = dtypes.as_dtype(dtype)
        array = np.frombuffer(buffer, d.np, count, offset)
        foreign = byte_order != "native" and byte_order != sys.byteorder
        data = (array.byteswap() if foreign else array).view(np.uint8)
        return cls._over(launch.constant(data.copy()), dtypes.uint8, [0, 0])  # type: ignore[no-any-return]


def _check_step(index: slice) -> None:
    if index.step not in (None, 1):
        raise RuntimeError(f"Trying to slice with a step of {index.step}, but only a step of 1 is supported")


def _check_device(where: Any, refused: str) -> None:
    try:
        named = device.device(where)
    except RuntimeError:
        raise RuntimeError(f"{refused}\nStorage device not recognized: {where}") from None
    create.as_device(named)


class _LegacyMeta(type):
    dtype: dtype

    def __instancecheck__(cls, value: Any) -> bool:
        return isinstance(value, TypedStorage) and value.dtype is cls.dtype

    def __call__(cls, *args: Any, wrap_storage: Any = None, **kw: Any) -> Any:
        """Return a `TypedStorage` of the class's dtype."""
        refused = (
            f"{cls}.__new__ received an invalid combination of arguments. Expected one of:\n * no arguments\n * (int size)\n"
            " * (Sequence data)\n * (*, UntypedStorage wrap_storage)"
        )
        if cls.__name__ == "_LegacyStorage":
            raise RuntimeError("Only child classes of _LegacyStorage can be instantiated")
        for name in ("device", "dtype"):
            if kw.pop(name, None) is not None:
                raise RuntimeError(f"{refused}\nKeyword argument '{name}' cannot be specified")
        refuse_keywords("TypedStorage.__new__", kw, ("wrap_storage",))
        if wrap_storage is None:
            return TypedStorage._over(_new_memory(args, cls.dtype, refused), cls.dtype, [0, 0])
        if args:
            raise RuntimeError(f"{refused}\nNo positional arguments should be given when using 'wrap_storage'")
        if not isinstance(wrap_storage, UntypedStorage):
            raise TypeError(f"{refused}\nArgument 'wrap_storage' must be UntypedStorage, but got {type(wrap_storage)}")
        return TypedStorage(wrap_storage=wrap_storage, dtype=cls.dtype)


class _LegacyStorage(TypedStorage, metaclass=_LegacyMeta):
    """Base of PyTorch's old classes of storages, one for each dtype."""

    @classmethod
    def from_file(cls, filename: str, shared: bool = False, size: int = 0) -> TypedStorage:
        """Return a storage of ``size`` elements that reads a file; with ``shared`` changes are written into it, and it is made if needed."""
        d: Any = cls.dtype
        return TypedStorage._over(of_file(filename, shared, size, d), d, [0, FIXED])  # type: ignore[no-any-return]

    @classmethod
    def from_buffer(cls, *args: Any, **kw: Any) -> TypedStorage:  # type: ignore[override]
        """Return a copy of a buffer's bytes as elements of the class's dtype."""
        return TypedStorage.from_buffer(*args, dtype=cls.dtype, **kw)


_LEGACY = {
    "FloatStorage": "float32", "DoubleStorage": "float64", "HalfStorage": "float16", "BFloat16Storage": "bfloat16", "LongStorage": "int64",
    "IntStorage": "int32", "ShortStorage": "int16", "CharStorage": "int8", "ByteStorage": "uint8", "BoolStorage": "bool", "ComplexFloatStorage": "complex64",
    "ComplexDoubleStorage": "complex128",
}  # fmt: skip


def _legacy(name: str, d: dtype) -> Any:
    doc = f"The old class of storages of {d.name}: calling it makes a `TypedStorage`, and those are its instances."
    return _LegacyMeta(name, (_LegacyStorage,), {"dtype": d, "__module__": "torch", "__doc__": doc})


#: dtype -> the old class of its storages
LEGACY: dict[dtype, Any] = {dtypes.BY_NAME[d]: _legacy(name, dtypes.BY_NAME[d]) for name, d in _LEGACY.items()}
NAMES: tuple[str, ...] = tuple(_LEGACY)


def _dtype_to_storage_type_map() -> dict[dtype, str]:
    """Return the names of the old classes of storages by their dtypes."""
    return {d: cls.__name__ for d, cls in LEGACY.items()}


def _storage_type_to_dtype_map() -> dict[str, dtype]:
    """Return the dtypes by the names of the old classes of storages."""
    return {cls.__name__: d for d, cls in LEGACY.items()}


globals().update({cls.__name__: cls for cls in LEGACY.values()})
Storage: Any = LEGACY[dtypes.get_default_dtype()]


def _follow_default() -> None:
    """Make ``Storage`` the class of the default dtype's storages, here and in the package, where it has been asked for."""
    found = LEGACY[dtypes.get_default_dtype()]
    for module in (sys.modules[__name__], sys.modules[__name__.partition(".")[0]]):
        if "Storage" in vars(module):
            setattr(module, "Storage", found)  # noqa: B010


dtypes.default_changed.append(_follow_default)


def _named(name: str) -> Any:
    """Return the old class of a name, for `pickle`, which finds none of these by its module."""
    return globals()[name]


copyreg.pickle(_LegacyMeta, lambda cls: (_named, (cls.__name__,)))  # type: ignore[arg-type]
