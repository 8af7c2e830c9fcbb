"""`save`: PyTorch's zip files, written whole or not at all."""

from __future__ import annotations

import io
import os
import pickle
import struct
import sys
import zipfile
from collections import OrderedDict
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from ..codegen.build.files import archiving, replacing
from ..dtypes import dtype
from ..nn.parameter import Parameter
from ..ops.core.marked import MARKED, Marked, shows
from ..ops.creation.device import device as Device
from ..ops.creation.storages import LEGACY, StorageBase, UntypedStorage
from ..shapes import Size
from ..tensor import Tensor, _storage
from .pickling import state_of

#: what files of before 1.6 begin with
MAGIC, VERSION = 0x1950A86A20F9469CFC6C, 1001

#: dtype -> how PyTorch names a storage of it
STORAGES = {d.name: cls.__name__ for d, cls in LEGACY.items()}


class _Name:
    """A global of PyTorch's, written into the pickle by its name alone."""

    def __init__(self, module: str, name: str):
        self.module, self.name = module, name

    def __call__(self, *args: Any) -> Any:  # pickle asks whether it is callable
        raise TypeError(f"{self.module}.{self.name} is a name in a file only")


class _Storage:
    """The memory of one or several tensors on its way to a file."""

    def __init__(self, array: np.ndarray, d: dtype, key: str):
        self.array, self.dtype, self.key = array, d, key

    def kind(self) -> tuple[str, str]:
        """Return where PyTorch has the class of storages of this dtype, and its name: the newer dtypes are kept as bytes."""
        return ("torch.storage", "UntypedStorage") if self.dtype.is_limited else ("torch", STORAGES[self.dtype.name])

    def size(self) -> int:
        """Return the number of elements, or of bytes where it is kept as such."""
        return self.array.nbytes if self.dtype.is_limited else self.array.size


class _Layout:
    """The name of a layout, which PyTorch's files have in the place of it."""

    def __init__(self, name: str):
        self.name = name


_REBUILD_TENSOR = _Name("torch._utils", "_rebuild_tensor_v2")
_REBUILD_BAREBONE = _Name("torch._utils", "_rebuild_tensor_v3")
_REBUILD_PARAMETER = _Name("torch._utils", "_rebuild_parameter")
_REBUILD_PARAMETER_WITH_STATE = _Name("torch._utils", "_rebuild_parameter_with_state")
_REBUILD_FROM_TYPE = _Name("torch._tensor", "_rebuild_from_type_v2")
_REBUILD_SPARSE = _Name("torch._utils", "_rebuild_sparse_tensor")
_REBUILD_META = _Name("torch._utils", "_rebuild_meta_tensor_no_storage")
_GET_LAYOUT = _Name("torch.serialization", "_get_layout")
_SIZE = _Name("torch", "Size")
_DEVICE = _Name("torch", "device")


class _Shape:
    """A tensor of the device ``meta`` as it is written: without numbers."""

    def __init__(self, layout: Any, requires_grad: bool):
        self.layout, self.requires_grad = layout, requires_grad


class _Pickler(pickle._Pickler):  # type: ignore[name-defined]
    """Writes tensors as PyTorch does; protocol 2, as its safe loader wants."""

    dispatch = pickle._Pickler.dispatch.copy()  # type: ignore[attr-defined]

    def __init__(self, file: BinaryIO, protocol: int = 2, parts: tuple[None, ...] = ()):
        super().__init__(file, protocol)
        self.parts = parts  # what references to storages end with
        self.storages: dict[tuple[Any, ...], _Storage] = {}
        self._names: dict[tuple[str, str], _Name] = {}

    def save_name(self, obj: _Name) -> None:
        self.write(pickle.GLOBAL + f"{obj.module}\n{obj.name}\n".encode())
        self.memoize(obj)

    dispatch[_Name] = save_name  # type: ignore[assignment]

    def _name(self, module: str, name: str) -> _Name:
        return self._names.setdefault((module, name), _Name(module, name))

    def persistent_id(self, obj: Any) -> Any:
        if isinstance(obj, _Storage):
            return ("storage", self._name(*obj.kind()), obj.key, "cpu", obj.size(), *self.parts)
        if isinstance(obj, StorageBase):
            s = self._memory(obj._array, obj._dtype)
            kind = self._name(*(("torch.storage", "UntypedStorage") if isinstance(obj, UntypedStorage) else s.kind()))
            return ("storage", kind, s.key, "cpu", s.size(), *self.parts)
        return None

    def reducer_override(self, obj: Any) -> Any:
        if isinstance(obj, Tensor) and "_sharding" in obj.__dict__:  # a rank's rows of what ranks share: saved as what they are
            rows = obj.detach()  # type: ignore[attr-defined]
            obj = Parameter(rows, obj._rg) if isinstance(obj, Parameter) else rows
        if isinstance(obj, _Shape):
            return (_REBUILD_META, (obj.layout.dtype, tuple(obj.layout.shape), obj.layout.strides, obj.requires_grad))
        if isinstance(obj, Tensor) and obj.is_meta and not isinstance(obj, Parameter):
            return self.reducer_override(_Shape(obj._layout, obj._rg))
        if type(obj) is Parameter or (isinstance(obj, Parameter) and obj.is_meta):
            content: tuple[Any, ...] = (_Shape(obj._layout, False) if obj.is_meta else obj.detach(), obj._rg, OrderedDict())
            return (_REBUILD_PARAMETER_WITH_STATE, (*content, dict(obj.__dict__))) if obj.__dict__ else (_REBUILD_PARAMETER, content)
        if isinstance(obj, Tensor):
            if str(obj.layout) != "torch.strided":
                return self._sparse(obj)
            rebuild = _REBUILD_BAREBONE if obj.dtype.is_limited else _REBUILD_TENSOR
            if type(obj) is Tensor and not obj.__dict__:
                return (rebuild, self._tensor(obj))
            if type(obj) in MARKED:
                marks, of = {mark: True for mark in ("conj", "neg") if shows(obj, mark)}, obj.of
                while isinstance(of, Marked):
                    of = of.of
                found = [*self._tensor(of), marks]
                found[4] = obj.requires_grad
                return (rebuild, tuple(found))
            kind = self._name("torch", "Tensor") if type(obj) is Tensor else type(obj)
            return (_REBUILD_FROM_TYPE, (rebuild, kind, self._tensor(obj), state_of(obj)))
        if isinstance(obj, _Layout):
            return (_GET_LAYOUT, (obj.name,))
        if isinstance(obj, Size):
            return (_SIZE, (tuple(obj),))
        if isinstance(obj, Device):
            return (_DEVICE, (str(obj),))
        return NotImplemented

    def save(self, obj: Any, save_persistent_id: bool = True) -> None:
        if isinstance(obj, dtype):
            obj = self._name("torch", obj.name)
        elif isinstance(obj, Size) and id(obj) not in self.memo:
            self.save_reduce(_SIZE, (tuple(obj),), obj=obj)
            return
        super().save(obj, save_persistent_id)  # type: ignore[misc]

    def _sparse(self, t: Tensor) -> tuple[Any, ...]:
        """Return a sparse tensor as its places and values."""
        layout = _Layout(str(t.layout))
        if t.is_sparse:
            return (_REBUILD_SPARSE, (layout, (t._indices(), t._values(), t.shape, t.is_coalesced())))
        return (_REBUILD_SPARSE, (layout, (t.crow_indices(), t.col_indices(), t.detach().values(), t.shape)))

    def _tensor(self, t: Tensor) -> tuple[Any, ...]:
        array, offset = _storage(t)
        found = (self._memory(array, t.dtype), offset, tuple(t.shape), t._layout.strides, t.requires_grad, OrderedDict())
        return (*found, t.dtype) if t.dtype.is_limited else found

    def _memory(self, array: np.ndarray, d: dtype) -> _Storage:
        """Return the storage of an array in the file, the same for all that read it as this dtype."""
        key = (array.__array_interface__["data"][0], array.size, d)
        storage = self.storages.get(key)
        if storage is None:
            storage = self.storages[key] = _Storage(array, d, str(len(self.storages)))
        return storage


def save(
    obj: Any, f: Any, pickle_module: Any = None, pickle_protocol: int = 2, _use_new_zipfile_serialization: bool = True
) -> None:
    """Write an object of containers, numbers and tensors to a file (a path, or an open binary file) in PyTorch's format.

    A path is written under a temporary name and moved into place when it is whole, so a crash leaves the old file. Views
    of one storage stay views of one storage; non-leaf tensors become leaves. ``_use_new_zipfile_serialization=False`` writes the format of
    before 1.6, of which a file can hold several, one after the other.

    Example:
        >>> import autograd_nb as torch, os, tempfile
        >>> path = os.path.join(tempfile.mkdtemp(), "weights.pt")
        >>> torch.save({"w": torch.ones(2)}, path)
        >>> torch.load(path)
        {'w': tensor([1., 1.])}

    Source: https://docs.pytorch.org/docs/stable/generated/torch.save.html
    """
    if not _use_new_zipfile_serialization:
        _save_older(obj, f, pickle_protocol)
    elif hasattr(f, "write"):
        if hasattr(f, "seekable"):
            _write_archive(obj, f, pickle_protocol, "archive")
        else:  # zipfile wants more of a file than write()
            whole = io.BytesIO()
            _write_archive(obj, whole, pickle_protocol, "archive")
            f.write(whole.getvalue())
            if hasattr(f, "flush"):
                f.flush()
    else:
        with replacing(path := _path(f)) as file:
            _write_archive(obj, file, pickle_protocol, path.stem or "archive")


def _path(f: Any) -> Path:
    if not isinstance(f, (str, os.PathLike)):
        raise AttributeError(f"save(): argument 'f' must be a path or a file open for writing, not {type(f).__name__}")
    return Path(os.fspath(f))


def _save_older(obj: Any, f: Any, protocol: int) -> None:
    if hasattr(f, "write"):
        _write_older(obj, f, protocol)
        if hasattr(f, "flush"):
            f.flush()
        return
    with replacing(_path(f)) as file:
        _write_older(obj, file, protocol)


def _write_older(obj: Any, file: Any, protocol: int) -> None:
    """Write pickles one after the other, then the storages in the order of their keys, each after its number of elements."""
    machine = {"protocol_version": VERSION, "little_endian": sys.byteorder == "little", "type_sizes": {"short": 2, "int": 4, "long": 4}}
    for first in (MAGIC, VERSION, machine):
        file.write(pickle.dumps(first, protocol))
    data = io.BytesIO()
    pickler = _Pickler(data, protocol, (None,))
    pickler.dump(obj)
    file.write(data.getvalue())
    storages = {s.key: s for s in pickler.storages.values()}
    file.write(pickle.dumps(sorted(storages), protocol))
    for key in sorted(storages):
        array = storages[key].array
        file.write(struct.pack("<q", storages[key].size()))
        file.write(memoryview(np.ascontiguousarray(array.astype(array.dtype.newbyteorder("<"), copy=False)).view(np.uint8)))  # type: ignore[arg-type]


def _write_archive(obj: Any, file: Any, protocol: int, root: str) -> None:
    data = io.BytesIO()
    pickler = _Pickler(data, protocol)
    pickler.dump(obj)
    with archiving(file, zipfile.ZIP_STORED) as archive:

        def write(name: str, content: Any) -> None:
            # a fixed date: equal objects give equal files
            with archive.open(zipfile.ZipInfo(f"{root}/{name}", (1980, 1, 1, 0, 0, 0)), "w", force_zip64=True) as entry:
                entry.write(content)

        write("data.pkl", data.getvalue())
        write("byteorder", sys.byteorder.encode())
        for storage in pickler.storages.values():
            write(f"data/{storage.key}", memoryview(np.ascontiguousarray(storage.array).view(np.uint8)))  # type: ignore[arg-type]
        write("version", b"3\n")
