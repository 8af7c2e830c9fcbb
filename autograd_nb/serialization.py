"""Saving and loading: pickle of tensors, ``save`` and ``load`` in PyTorch's file format, and safetensors files.

A file of `save` is a zip archive: ``data.pkl`` (the object, with tensors as references), and the memory of each storage as it
is. PyTorch reads these files and `load` reads PyTorch's. `load` runs no code from the file unless ``weights_only=False``: its
unpickler knows containers, numbers, tensors and nothing else.

Source: https://docs.pytorch.org/docs/stable/notes/serialization.html, https://huggingface.co/docs/safetensors
"""

from __future__ import annotations

import io
import json
import os
import pickle
import struct
import sys
import tempfile
import zipfile
from collections import Counter, OrderedDict, defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from . import dtypes
from .dtypes import dtype
from .errors import AutogradError
from .graph.modes import state
from .nn.parameter import Parameter
from .ops.device import device as Device
from .ops.registry import OPS
from .shapes import Size, layout
from .tensor import Tensor, _storage, adopt, make, set_requires_grad

# --------------------------------------------------------------------------------------------------- pickle


def reduce_tensor(t: Tensor) -> tuple:
    """What pickle needs to make ``t`` again. A non-leaf becomes a leaf; tensors of one storage go on sharing it."""
    if _for_another_process():
        refuse_non_leaf(t)
    array, offset = _storage(t)
    lay = t._layout
    args = (type(t), array, offset, tuple(lay.shape), lay.strides, lay.dtype, t.requires_grad)
    return (_rebuild, args, dict(t.__dict__)) if t.__dict__ else (_rebuild, args)


def refuse_non_leaf(t: Tensor) -> None:
    """RuntimeError for a tensor with a history, which another process cannot have."""
    if not t.is_leaf:
        raise AutogradError(
            "Cowardly refusing to serialize non-leaf tensor which requires_grad, since autograd does not support crossing process "
            "boundaries. If you just want to transfer the data, call detach() on the tensor before serializing (e.g., putting it "
            "on the queue)."
        )


def compact(t: Tensor) -> Tensor:
    """``t``, or a copy of it if it is a view of a larger storage, which pickle would take along."""
    if _storage(t)[0].size <= t._layout.size:
        return t
    return OPS["clone"].call(t.detach()).requires_grad_(t.requires_grad)


def _for_another_process() -> bool:
    """Whether multiprocessing's pickler is at work (its ``dumps`` is then the Python frame above ours)."""
    module = sys.modules.get("multiprocessing.reduction")
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith(__package__):
        frame = frame.f_back
    return module is not None and frame.f_code.co_filename == module.__file__


def _rebuild(cls: type, array: np.ndarray, offset: int, shape: tuple, strides: tuple, d: dtype, requires_grad: bool) -> Tensor:
    t = adopt(cls, make(array[offset:], layout(shape, strides, d), [0, 0]))
    t._rg = requires_grad
    return t


# ------------------------------------------------------------------------------------------------------ save

_STORAGES = {
    "float64": "DoubleStorage", "float32": "FloatStorage", "float16": "HalfStorage", "int64": "LongStorage", "int32": "IntStorage",
    "int16": "ShortStorage", "int8": "CharStorage", "uint8": "ByteStorage", "bool": "BoolStorage", "complex64": "ComplexFloatStorage",
    "complex128": "ComplexDoubleStorage",
}  # fmt: skip
_DTYPE_OF = {storage: name for name, storage in _STORAGES.items()}


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


_REBUILD_TENSOR = _Name("torch._utils", "_rebuild_tensor_v2")
_REBUILD_PARAMETER = _Name("torch._utils", "_rebuild_parameter")
_SIZE = _Name("torch", "Size")
_DEVICE = _Name("torch", "device")


class _Pickler(pickle._Pickler):  # type: ignore[name-defined]
    """Writes tensors as PyTorch does; protocol 2, as its safe loader wants."""

    dispatch = pickle._Pickler.dispatch.copy()  # type: ignore[attr-defined]

    def __init__(self, file: BinaryIO, protocol: int = 2):
        super().__init__(file, protocol)
        self.storages: dict[tuple, _Storage] = {}
        self._names: dict[tuple[str, str], _Name] = {}

    def save_name(self, obj: _Name) -> None:
        self.write(pickle.GLOBAL + f"{obj.module}\n{obj.name}\n".encode())
        self.memoize(obj)

    dispatch[_Name] = save_name  # type: ignore[assignment]

    def _name(self, module: str, name: str) -> _Name:
        return self._names.setdefault((module, name), _Name(module, name))

    def persistent_id(self, obj: Any) -> Any:
        if isinstance(obj, _Storage):
            return ("storage", self._name("torch", _STORAGES[obj.dtype.name]), obj.key, "cpu", obj.array.size)
        return None

    def reducer_override(self, obj: Any) -> Any:
        if isinstance(obj, Parameter) and not obj.__dict__:
            return (_REBUILD_PARAMETER, (obj.detach(), obj._rg, OrderedDict()))
        if isinstance(obj, Tensor):
            return (_REBUILD_TENSOR, self._tensor(obj))
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

    def _tensor(self, t: Tensor) -> tuple:
        array, offset = _storage(t)
        key = (array.__array_interface__["data"][0], array.size, t.dtype)
        storage = self.storages.get(key)
        if storage is None:
            storage = self.storages[key] = _Storage(array, t.dtype, str(len(self.storages)))
        return (storage, offset, tuple(t.shape), t._layout.strides, t.requires_grad, OrderedDict())


def save(
    obj: Any, f: Any, pickle_module: Any = None, pickle_protocol: int = 2, _use_new_zipfile_serialization: bool = True
) -> None:
    """Write an object of containers, numbers and tensors to a file (a path, or an open binary file) in PyTorch's format.

    A path is written under a temporary name and moved into place when it is whole, so a crash leaves the old file. Views
    of one storage stay views of one storage; non-leaf tensors become leaves.

    Example:
        >>> import autograd_nb as torch, os, tempfile
        >>> path = os.path.join(tempfile.mkdtemp(), "weights.pt")
        >>> torch.save({"w": torch.ones(2)}, path)
        >>> torch.load(path)
        {'w': tensor([1., 1.])}

    Source: https://docs.pytorch.org/docs/stable/generated/torch.save.html
    """
    if hasattr(f, "write"):
        _write_archive(obj, f, pickle_protocol, "archive")
        return
    if not isinstance(f, (str, os.PathLike)):
        raise AttributeError(f"save(): argument 'f' must be a path or a file open for writing, not {type(f).__name__}")
    path = Path(os.fspath(f))
    with _replacing(path) as file:
        _write_archive(obj, file, pickle_protocol, path.stem or "archive")


@contextmanager
def _replacing(path: Path) -> Iterator[BinaryIO]:
    """A file that takes the place of ``path`` when the block ends without error."""
    folder = path.parent
    if not folder.is_dir():
        raise RuntimeError(f"Parent directory {folder} does not exist.")
    handle, temporary = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".tmp", dir=folder)
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        mode = path.stat().st_mode & 0o777 if path.exists() else 0o666 & ~_umask()
        os.chmod(temporary, mode)
        os.replace(temporary, path)
    except BaseException:
        try:
            os.unlink(temporary)
        except OSError:
            pass
        raise


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def _write_archive(obj: Any, file: Any, protocol: int, root: str) -> None:
    data = io.BytesIO()
    pickler = _Pickler(data, protocol)
    pickler.dump(obj)
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:

        def write(name: str, content: Any) -> None:
            # a fixed date: equal objects give equal files
            with archive.open(zipfile.ZipInfo(f"{root}/{name}", (1980, 1, 1, 0, 0, 0)), "w", force_zip64=True) as entry:
                entry.write(content)

        write("data.pkl", data.getvalue())
        write("byteorder", sys.byteorder.encode())
        for storage in pickler.storages.values():
            write(f"data/{storage.key}", memoryview(np.ascontiguousarray(storage.array).view(np.uint8)))  # type: ignore[arg-type]
        write("version", b"3\n")


# ------------------------------------------------------------------------------------------------------ load


def _rebuild_tensor(storage: tuple, offset: int, size: tuple, stride: tuple, *rest: Any) -> Tensor:
    """A tensor over a storage, checked: nothing outside it can be reached."""
    requires_grad = bool(rest[0]) if rest else False
    if not isinstance(storage, tuple) or len(storage) != 2 or not isinstance(storage[0], np.ndarray):
        raise pickle.UnpicklingError("a tensor without a storage")
    array, d = storage
    numbers = (offset, *size, *stride)
    if not all(isinstance(n, int) and n >= 0 for n in numbers) or len(size) != len(stride):
        raise pickle.UnpicklingError(f"a tensor of shape {size} and strides {stride} at {offset}")
    lay = layout(size, stride, d)
    if offset + lay.extent > array.size:
        raise pickle.UnpicklingError(f"a tensor of shape {size} and strides {stride} at {offset} in a storage of {array.size}")
    t = make(array[offset:], lay, [0, 0])
    if requires_grad:
        set_requires_grad(t, True)
    return t


def _rebuild_parameter(data: Any, requires_grad: Any, hooks: Any, *state: Any) -> Parameter:
    return Parameter(data, bool(requires_grad))


_safe: dict[tuple[str, str], Any] = {}


def _known() -> dict[tuple[str, str], Any]:
    """(module, name) -> what the safe loader makes of it."""
    if not _safe:
        _safe.update({
            ("collections", "OrderedDict"): OrderedDict,
            ("collections", "Counter"): Counter,
            ("collections", "defaultdict"): defaultdict,
            ("torch._utils", "_rebuild_tensor"): _rebuild_tensor,
            ("torch._utils", "_rebuild_tensor_v2"): _rebuild_tensor,
            ("torch._utils", "_rebuild_parameter"): _rebuild_parameter,
            ("torch._utils", "_rebuild_parameter_with_state"): _rebuild_parameter,
            ("torch", "Size"): Size,
            ("torch", "device"): Device,
            ("torch.nn.parameter", "Parameter"): Parameter,
            ("_codecs", "encode"): _encode,
            **{("builtins", k.__name__): k for k in (set, frozenset, complex, bytearray, slice, range, dict, list, tuple)},
            **{("__builtin__", k.__name__): k for k in (set, frozenset, complex, bytearray, slice, dict, list, tuple)},
            **{("torch", d.name): d for d in dtypes.ALL},
            **{("torch", storage): _StorageType(dtypes.BY_NAME[name]) for storage, name in _DTYPE_OF.items()},
        })  # fmt: skip
    return _safe


def _encode(text: str, encoding: str) -> bytes:
    """How protocol 2 writes bytes."""
    if encoding != "latin1":
        raise pickle.UnpicklingError(f"bytes in encoding {encoding}")
    return text.encode(encoding)


class _StorageType:
    """The type of a storage, as it stands in a file."""

    def __init__(self, d: dtype):
        self.dtype = d


_allowed: dict[tuple[str, str], Any] = {}


def add_safe_globals(safe_globals: list) -> None:
    """Let `load` make objects of these classes, which you trust, also with ``weights_only=True``."""
    for item in safe_globals:
        value, name = item if isinstance(item, tuple) else (item, f"{item.__module__}.{item.__qualname__}")
        module, _, last = name.rpartition(".")
        _allowed[module, last] = value


def get_safe_globals() -> list:
    """What was given to `add_safe_globals`."""
    return list(_allowed.values())


def clear_safe_globals() -> None:
    """Forget what was given to `add_safe_globals`."""
    _allowed.clear()


class safe_globals:
    """`add_safe_globals` for the length of a ``with`` block."""

    def __init__(self, safe_globals: list):
        self._items = safe_globals

    def __enter__(self) -> None:
        self._before = dict(_allowed)
        add_safe_globals(self._items)

    def __exit__(self, *error: Any) -> None:
        _allowed.clear()
        _allowed.update(self._before)


class _Unpickler(pickle._Unpickler):  # type: ignore[name-defined]
    """Reads ``data.pkl``; safe unless ``trusting``."""

    dispatch = pickle._Unpickler.dispatch.copy()  # type: ignore[attr-defined]

    def __init__(self, data: bytes, storage: Callable[[str, dtype, int], tuple], trusting: bool, encoding: str):
        super().__init__(io.BytesIO(data), encoding=encoding)
        self._storage, self._trusting = storage, trusting

    def find_class(self, module: str, name: str) -> Any:
        found = _known().get((module, name), _allowed.get((module, name)))
        if found is not None:
            return found
        if not self._trusting:
            raise pickle.UnpicklingError(
                f"Weights only load failed: the file wants {module}.{name}, which could run code of the file's author. Unsupported "
                f"global: GLOBAL {module}.{name} was not an allowed global by default. If you trust the file, use "
                "load(..., weights_only=False), or add_safe_globals([...])"
            )
        return super().find_class(module, name)

    def persistent_load(self, pid: Any) -> Any:
        if not isinstance(pid, tuple) or len(pid) < 5 or pid[0] != "storage" or not isinstance(pid[1], _StorageType):
            raise pickle.UnpicklingError(f"unknown reference {pid!r:.80}")
        return self._storage(str(pid[2]), pid[1].dtype, int(pid[4]))

    def load_build(self) -> None:
        """State is set only on what may have some: an OrderedDict's attributes, or objects of trusted classes."""
        target = self.stack[-2]
        if not self._trusting and type(target) not in (OrderedDict, *[v for v in _allowed.values() if isinstance(v, type)]):
            raise pickle.UnpicklingError(f"Weights only load failed: state for a {type(target).__name__}")
        if isinstance(target, OrderedDict):
            attributes = self.stack.pop()
            if isinstance(attributes, dict):
                target.__dict__.update(attributes)
            return
        super().load_build()  # type: ignore[misc]

    dispatch[pickle.BUILD[0]] = load_build  # type: ignore[assignment]


def _name_of(f: Any) -> str:
    return str(getattr(f, "name", type(f).__name__)) if hasattr(f, "read") else os.fspath(f)


def load(
    f: Any, map_location: Any = None, pickle_module: Any = None, *, weights_only: bool | None = None, mmap: bool | None = None,
    **pickle_load_args: Any,
) -> Any:  # fmt: skip
    """Read what `save`, or PyTorch's, wrote: containers, numbers and tensors. No code of the file is run.

    weights_only: False reads any object, and can run anything that the file's author liked: only for files you trust.
    map_location and mmap are accepted; everything is read into memory.

    Errors: FileNotFoundError; RuntimeError that names the file when it is truncated, damaged or of another format;
    pickle.UnpicklingError when it holds objects of other classes.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.load.html
    """
    name = _name_of(f)
    trusting = weights_only is not None and not weights_only
    with open(f, "rb") if not hasattr(f, "read") else _left_open(f) as file:
        try:
            archive = zipfile.ZipFile(file)
        except Exception as error:  # zipfile raises a variety
            raise RuntimeError(
                f"PytorchStreamReader failed reading zip archive: {name!r} is truncated, damaged, or not a file of save() ({error})"
            ) from None
        with archive:
            return _read_archive(archive, name, trusting, pickle_load_args.get("encoding", "utf-8"))


@contextmanager
def _left_open(f: Any) -> Iterator[Any]:
    yield f


def _read_archive(archive: zipfile.ZipFile, name: str, trusting: bool, encoding: str) -> Any:
    def read(entry: str) -> bytes:
        try:
            return archive.read(entry)
        except KeyError:
            raise RuntimeError(f"{name!r} is damaged: it lacks {entry}") from None
        except Exception as error:  # zipfile and zlib raise a variety
            raise RuntimeError(f"{name!r} is damaged: {entry} cannot be read ({error})") from None

    entries = archive.namelist()
    pickles = [e for e in entries if e.endswith("/data.pkl") and e.count("/") == 1]
    if not pickles:
        raise RuntimeError(f"{name!r} is a zip archive, but not a file of save(): it lacks data.pkl")
    root = pickles[0].rsplit("/", 1)[0]
    order = read(f"{root}/byteorder").decode() if f"{root}/byteorder" in entries else "little"
    storages: dict[str, tuple] = {}

    def storage(key: str, d: dtype, numel: int) -> tuple:
        found = storages.get(key)
        if found is None:
            data = bytearray(read(f"{root}/data/{key}"))
            if len(data) != numel * d.itemsize:
                raise RuntimeError(f"{name!r} is damaged: data/{key} has {len(data)} bytes instead of {numel * d.itemsize}")
            array = np.frombuffer(data, d.carrier)
            if order != sys.byteorder:
                array.byteswap(inplace=True)
            found = storages[key] = (array, d)
        elif found[1] is not d:
            found = (found[0].view(d.carrier), d)
        return found

    previous, state.grad = state.grad, True
    try:
        return _Unpickler(read(pickles[0]), storage, trusting, encoding).load()
    except pickle.UnpicklingError as error:
        raise pickle.UnpicklingError(f"{name!r}: {error}") from None
    except RuntimeError:
        raise
    except Exception as error:
        if trusting and not isinstance(error, (EOFError, IndexError, KeyError, struct.error, UnicodeDecodeError)):
            raise
        raise RuntimeError(f"{name!r} is damaged: its data.pkl cannot be read ({type(error).__name__}: {error})") from None
    finally:
        state.grad = previous


# ------------------------------------------------------------------------------------------------ safetensors

_SAFE_NAMES = {
    "F64": "float64", "F32": "float32", "F16": "float16", "I64": "int64", "I32": "int32", "I16": "int16", "I8": "int8", "U8": "uint8",
    "BOOL": "bool", "C64": "complex64",
}  # fmt: skip
_SAFE_CODES = {name: code for code, name in _SAFE_NAMES.items()}


def save_safetensors(tensors: Mapping[str, Tensor], filename: Any, metadata: Mapping[str, str] | None = None) -> None:
    """Write named tensors as a safetensors file, whole or not at all. TypeError for what are not Tensors."""
    header: dict[str, Any] = {"__metadata__": dict(metadata)} if metadata else {}
    arrays, place = [], 0
    for name, t in tensors.items():
        if not isinstance(t, Tensor):
            raise TypeError(f"save_safetensors(): {name!r} must be a Tensor, not {type(t).__name__}")
        code = _SAFE_CODES.get(t.dtype.name)
        if code is None:
            raise TypeError(f"save_safetensors(): {name!r} has dtype {t.dtype}, which safetensors files do not have")
        x = t.detach().contiguous()
        array = x._data[: x._layout.size]
        header[name] = {"dtype": code, "shape": list(t.shape), "data_offsets": [place, place + array.nbytes]}
        place += array.nbytes
        arrays.append(array)
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with _replacing(Path(os.fspath(filename))) as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for array in arrays:
            file.write(memoryview(array.view(np.uint8)))


def load_safetensors(filename: Any) -> dict[str, Tensor]:
    """Read a safetensors file. RuntimeError that names the file when it is truncated or damaged."""
    name = os.fspath(filename)
    data = Path(name).read_bytes()
    try:
        (n,) = struct.unpack_from("<Q", data)
        header = json.loads(data[8 : 8 + n])
        if len(data) < 8 + n or not isinstance(header, dict):
            raise ValueError("header")
        header.pop("__metadata__", None)
        out = {}
        for key, about in header.items():
            d = dtypes.BY_NAME[_SAFE_NAMES[about["dtype"]]]
            a, b = about["data_offsets"]
            lay = layout(tuple(about["shape"]), None, d)
            if not 0 <= a <= b <= len(data) - 8 - n or b - a != lay.size * d.itemsize or any(s < 0 for s in lay.shape):
                raise ValueError(f"offsets of {key!r}")
            out[key] = make(np.frombuffer(bytearray(data[8 + n + a : 8 + n + b]), d.carrier), lay, [0, 0])
    except (struct.error, ValueError, KeyError, TypeError) as error:
        raise RuntimeError(
            f"{name!r} is truncated, damaged, or not a safetensors file ({type(error).__name__}: {error})"
        ) from None
    return out
