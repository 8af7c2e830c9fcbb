"""What stands in PyTorch's files, unpickled without running it: containers, numbers, tensors over storages."""


from __future__ import annotations

import io
import pickle
import struct
import sys
from collections import Counter, OrderedDict, defaultdict
from collections.abc import Callable
from typing import Any

import numpy as np

from .. import dtypes
from ..autograd import meta
from ..dtypes import dtype
from ..graph.slots import own_slots
from ..nn.parameter import Buffer, Parameter
from ..ops.core.marked import marked
from ..ops.core.recording import made_here
from ..ops.creation.cast import stand_in
from ..ops.creation.device import device as Device
from ..ops.creation.storages import TypedStorage
from ..shapes import Size, layout_of
from ..tensor import Tensor, adopt, make, set_requires_grad
from .saving import STORAGES

_DTYPE_OF = {storage: name for name, storage in STORAGES.items()}


def _rebuild_tensor(
    storage: TypedStorage, offset: int, size: tuple[Any, ...], stride: tuple[Any, ...], requires_grad: Any = False, hooks: Any = None, marks: Any = None
) -> Tensor:
    """Return a tensor over a storage, checked: nothing outside it can be reached."""
    if not isinstance(storage, TypedStorage):
        raise pickle.UnpicklingError("a tensor without a storage")
    array, d = storage._array, storage.dtype
    numbers = (offset, *size, *stride)
    if not all(type(n) is int and 0 <= n < 1 << 63 for n in numbers) or len(size) != len(stride):
        raise pickle.UnpicklingError(f"a tensor of shape {size} and strides {stride} at {offset}")
    layout = layout_of(size, stride, d)
    if offset + layout.extent > array.size:
        raise pickle.UnpicklingError(f"a tensor of shape {size} and strides {stride} at {offset} in a storage of {array.size}")
    t = made_here(make(array[offset:], layout, [0, 0]))
    for mark in ("conj", "neg") if isinstance(marks, dict) else ():
        if marks.get(mark):
            t = marked(t, mark)
    if requires_grad:
        set_requires_grad(t, True)
    return t


def _rebuild_barebone(
    storage: TypedStorage, offset: int, size: tuple[Any, ...], stride: tuple[Any, ...], requires_grad: Any, hooks: Any, dtype: Any, marks: Any = None
) -> Tensor:
    """Return a tensor of a dtype over a storage of bytes."""
    if not isinstance(storage, TypedStorage) or not isinstance(dtype, dtypes.dtype) or storage.nbytes() % dtype.itemsize:
        raise pickle.UnpicklingError(f"a tensor of {dtype!r:.60} without a storage for it")
    return _rebuild_tensor(TypedStorage._over(storage._array.view(dtype.carrier), dtype, [0, 0]), offset, size, stride, requires_grad, hooks, marks)


def _rebuild_meta(d: Any, size: Any, stride: Any, requires_grad: Any) -> Tensor:
    """Return a tensor of the device ``meta``."""
    if not isinstance(d, dtypes.dtype) or len(size) != len(stride) or not all(type(n) is int and 0 <= n < 1 << 63 for n in (*size, *stride)):
        raise pickle.UnpicklingError(f"a tensor of the device meta of shape {size!r:.60}, strides {stride!r:.60} and dtype {d!r:.60}")
    t = meta.of_layout(layout_of(size, stride, d))
    return t.requires_grad_() if requires_grad else t


def _rebuild_on_meta(*arguments: Any) -> Tensor:
    t = _rebuild_tensor(*arguments)
    found: Tensor = meta.of_layout(t._layout)
    return found.requires_grad_() if t._rg else found


def _set_attributes(t: Tensor, attributes: Any) -> Tensor:
    slots: Any = None
    if hasattr(type(t), "__setstate__"):  # a class of a program's, which was trusted
        type(t).__setstate__(t, attributes)
        return t
    if isinstance(attributes, tuple) and len(attributes) == 2:  # (attributes, slots)
        attributes, slots = attributes
    if not isinstance(attributes, (dict, type(None))) or not isinstance(slots, (dict, type(None))):
        raise pickle.UnpicklingError(f"a tensor with attributes in a {type(attributes).__name__}")
    t.__dict__.update(attributes or {})
    for name, value in (slots or {}).items():
        if name not in own_slots(type(t)):
            raise pickle.UnpicklingError(f"a tensor with a slot {name!r:.60}, which its class has not")
        setattr(t, name, value)
    return t


def _rebuild_parameter(data: Any, requires_grad: Any, hooks: Any, attributes: Any = None) -> Tensor:
    t = (meta.parameter if isinstance(data, meta.Meta) else Parameter)(data, bool(requires_grad))
    return _set_attributes(t, attributes) if attributes else t


def _rebuild_sparse(layout: str, parts: Any) -> Tensor:
    from ..sparse import sparse_coo_tensor, sparse_csr_tensor

    if layout == "torch.sparse_coo":
        return sparse_coo_tensor(*parts[:3], is_coalesced=parts[3] if len(parts) > 3 else None)  # type: ignore[no-any-return]
    if layout != "torch.sparse_csr":
        raise NotImplementedError(f"load(): tensors of layout {layout} are not in this library; save them as COO or CSR, or dense")
    return sparse_csr_tensor(*parts)  # type: ignore[no-any-return]


def _rebuild_from_type(rebuild: Any, kind: Any, arguments: Any, attributes: Any) -> Tensor:
    """Return a tensor of a class or with attributes of its own."""
    if rebuild not in (_rebuild_tensor, _rebuild_barebone, _rebuild_on_meta) or not isinstance(kind, type) or not issubclass(kind, Tensor):
        raise pickle.UnpicklingError(f"a tensor that {rebuild!r:.60} makes, of type {kind!r:.60}")
    t = rebuild(*arguments)
    return _set_attributes(t if kind in (Tensor, Buffer) else adopt(kind, t), attributes)


_safe: dict[tuple[str, str], Any] = {}


def _known() -> dict[tuple[str, str], Any]:
    """Return (module, name) -> what the safe loader makes of it."""
    if not _safe:
        _safe.update({
            ("collections", "OrderedDict"): OrderedDict,
            ("collections", "Counter"): Counter,
            ("collections", "defaultdict"): defaultdict,
            ("torch._utils", "_rebuild_tensor"): _rebuild_tensor,
            ("torch._utils", "_rebuild_tensor_v2"): _rebuild_tensor,
            ("torch._utils", "_rebuild_tensor_v3"): _rebuild_barebone,
            ("torch._utils", "_rebuild_parameter"): _rebuild_parameter,
            ("torch._utils", "_rebuild_parameter_with_state"): _rebuild_parameter,
            ("torch._tensor", "_rebuild_from_type_v2"): _rebuild_from_type,
            ("torch._utils", "_rebuild_sparse_tensor"): _rebuild_sparse,
            ("torch._utils", "_rebuild_meta_tensor_no_storage"): _rebuild_meta,
            ("torch.serialization", "_get_layout"): str,
            ("torch", "Tensor"): Tensor,
            ("torch", "Size"): Size,
            ("torch", "device"): Device,
            ("torch.nn.parameter", "Parameter"): Parameter,
            ("torch.nn.parameter", "Buffer"): Buffer,
            ("_codecs", "encode"): _encode,
            **{("builtins", k.__name__): k for k in (set, frozenset, complex, bytearray, slice, range, dict, list, tuple)},
            **{("__builtin__", k.__name__): k for k in (set, frozenset, complex, bytearray, slice, dict, list, tuple)},
            **{("torch", d.name): d for d in dtypes.ALL},
            **{("torch", storage): _StorageType(dtypes.BY_NAME[name]) for storage, name in _DTYPE_OF.items()},
            ("torch.storage", "UntypedStorage"): _StorageType(dtypes.uint8),
        })  # fmt: skip
    return _safe


def _encode(text: str, encoding: str) -> bytes:
    """Return what protocol 2 writes for bytes."""
    if encoding != "latin1":
        raise pickle.UnpicklingError(f"bytes in encoding {encoding}")
    return text.encode(encoding)


class Elsewhere(RuntimeError):
    """A storage is to be where this library has no memory."""


def to_meta(map_location: Any) -> bool:
    """Return whether tensors are only to have shapes, on the device ``meta``."""
    return isinstance(map_location, (str, Device)) and str(map_location).partition(":")[0] == "meta"


def need_place(map_location: Any, location: str, storage: Any = None) -> None:
    """Raise where a storage that was saved at ``location`` would not end on the CPU: as ``map_location`` says, else where it was."""
    if isinstance(map_location, dict):
        location = map_location.get(location, location)
    elif isinstance(map_location, (str, Device)):
        location = "cpu" if to_meta(map_location) else str(map_location)
    elif callable(map_location) and map_location(storage.untyped(), location) is not None:
        return
    kind = str(location).partition(":")[0]
    if kind == "cpu" or stand_in.gpus:
        return
    if kind == "cuda":
        raise Elsewhere(
            "Attempting to deserialize object on a CUDA device but torch.cuda.is_available() is False. If you are running on a CPU-only machine, "
            f"please use torch.load with map_location=torch.device('cpu') to map your storages to the CPU. (location={location!r})"
        )
    raise Elsewhere(
        f"don't know how to restore data location of torch.storage.UntypedStorage (tagged with {location}): this library computes on the CPU, so "
        "load with map_location='cpu'"
    )


class _StorageType:
    """The type of a storage, as it stands in a file."""

    def __init__(self, d: dtype):
        self.dtype = d


_allowed: dict[tuple[str, str], Any] = {}


def add_safe_globals(safe_globals: list[Any]) -> None:
    """Let `load` make objects of these classes, which you trust, also with ``weights_only=True``."""
    for item in safe_globals:
        value, name = item if isinstance(item, tuple) else (item, f"{item.__module__}.{item.__qualname__}")
        module, _, last = name.rpartition(".")
        _allowed[module, last] = value


def get_safe_globals() -> list[Any]:
    """Return what was given to `add_safe_globals`."""
    return list(_allowed.values())


def clear_safe_globals() -> None:
    """Forget what was given to `add_safe_globals`."""
    _allowed.clear()


class safe_globals:
    """`add_safe_globals` for the length of a ``with`` block."""

    def __init__(self, safe_globals: list[Any]):
        self._items = safe_globals

    def __enter__(self) -> None:
        self._before = dict(_allowed)
        add_safe_globals(self._items)

    def __exit__(self, *error: Any) -> None:
        _allowed.clear()
        _allowed.update(self._before)


def _meaning(module: str, name: str) -> str:
    """Return what it means that a file wants a global, and what to do."""
    if module == "torch" and (name.endswith("Storage") or name in dtypes.ABSENT):
        return f"the file has tensors of a dtype that this library lacks ({name}): convert them first in PyTorch, with .float() or .long()"
    if module in ("torch._utils", "torch._tensor") or module == "torch.storage":
        return f"the file has what this library lacks or PyTorch keeps to itself ({name}): save dense tensors on the CPU"
    if module.startswith("numpy"):
        return "the file has NumPy values: save tensors, and plain numbers (.item()), instead"
    if module.startswith(("torch.nn.", "autograd_nb.nn.")):
        return f"the file has a whole module ({name}): save its state_dict() instead, or load(..., weights_only=False) if you trust it"
    return (
        f"the file wants {module}.{name}, which could run code of the file's author. If you trust it, use load(..., weights_only=False), or "
        "add_safe_globals([...])"
    )


def _find(module: str, name: str) -> Any:
    return _known().get((module, name), _allowed.get((module, name)))


def finder_of(pickle_module: Any) -> Any:
    """Return what finds the classes of a file for a module like `pickle`: its Unpickler's ``find_class``, which finds PyTorch's names here."""
    reader = getattr(pickle_module, "Unpickler", None)
    if not isinstance(reader, type) or reader in (pickle.Unpickler, pickle._Unpickler):  # type: ignore[attr-defined]
        return True
    own: Any = next((cls for cls in (pickle.Unpickler, pickle._Unpickler) if issubclass(reader, cls)), None)  # type: ignore[attr-defined]
    if own is None:
        return reader(io.BytesIO()).find_class

    class Known(own):
        def find_class(self, module: str, name: str) -> Any:
            found = _find(module, name)
            return super().find_class(module, name) if found is None else found

    return type("Finder", (reader, Known), {})(io.BytesIO()).find_class


class _Unpickler(pickle._Unpickler):  # type: ignore[name-defined]
    """Reads ``data.pkl``; safe unless ``trusting``: True, or what finds classes."""

    dispatch = pickle._Unpickler.dispatch.copy()  # type: ignore[attr-defined]

    def __init__(self, data: bytes, storage: Callable[[str, dtype, int], tuple[Any, ...]], trusting: Any, encoding: str, map_location: Any):
        self.file = io.BytesIO(data)
        super().__init__(self.file, encoding=encoding)
        self._storage, self._trusting, self._map_location = storage, trusting, map_location

    def find_class(self, module: str, name: str) -> Any:
        found = _find(module, name)
        if found is _rebuild_tensor and to_meta(self._map_location):
            return _rebuild_on_meta
        if found is not None:
            return found
        if callable(self._trusting):
            return self._trusting(module, name)
        if not self._trusting:
            raise pickle.UnpicklingError(
                f"Weights only load failed: {_meaning(module, name)}. Unsupported global: GLOBAL {module}.{name} was not an allowed "
                "global by default"
            )
        return super().find_class(module, name)

    def persistent_load(self, pid: Any) -> Any:
        if isinstance(pid, tuple):  # (texts of Python 2 are bytes where they were asked for so)
            pid = tuple(part.decode("ascii", "replace") if isinstance(part, bytes) else part for part in pid)
        if not isinstance(pid, tuple) or len(pid) < 5 or pid[0] != "storage" or not isinstance(pid[1], _StorageType):
            raise pickle.UnpicklingError(f"unknown reference {pid!r:.80}")
        array, d = self._storage(str(pid[2]), pid[1].dtype, int(pid[4]))
        whole = TypedStorage._over(array, d, [0, 0])
        need_place(self._map_location, str(pid[3]), whole)
        return whole

    def load_build(self) -> None:
        """Set state, only on what may have some: an OrderedDict's attributes, or objects of trusted classes."""
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

    def load_reduce(self) -> None:
        """Make a call: of what makes containers only on data that is there already, which nothing can be made large by."""
        if not self._trusting:
            _check_call(self.stack[-2], self.stack[-1])
        super().load_reduce()  # type: ignore[misc]

    dispatch[pickle.REDUCE[0]] = load_reduce  # type: ignore[assignment]

    def _new(self, cls: Any) -> None:
        if not self._trusting and cls not in [v for v in _allowed.values() if isinstance(v, type)]:
            raise pickle.UnpicklingError(f"Weights only load failed: Trying to instantiate unsupported class {cls!r:.80}")

    def load_newobj(self) -> None:
        """Make an object, of a class that was named as safe."""
        self._new(self.stack[-2])
        super().load_newobj()  # type: ignore[misc]

    dispatch[pickle.NEWOBJ[0]] = load_newobj  # type: ignore[assignment]

    def load_newobj_ex(self) -> None:
        """Make an object in the same way, with keywords."""
        self._new(self.stack[-3])
        super().load_newobj_ex()  # type: ignore[misc]

    dispatch[pickle.NEWOBJ_EX[0]] = load_newobj_ex  # type: ignore[assignment]

    def _instantiate(self, cls: Any, args: Any) -> None:
        self._new(cls)  # (pickles of protocol 0)
        super()._instantiate(cls, args)  # type: ignore[misc]

    def load_bytearray8(self) -> None:
        """Make a bytearray, but not before there is something to fill it with."""
        (n,) = struct.unpack("<Q", self.read(8))  # type: ignore[has-type]
        data = self.read(min(n, sys.maxsize))  # type: ignore[has-type]
        if len(data) != n:
            raise EOFError("a bytearray is longer than the file")
        self.append(bytearray(data))  # type: ignore[has-type]

    dispatch[pickle.BYTEARRAY8[0]] = load_bytearray8  # type: ignore[assignment]

    def _with_keys(self, first: int, step: int) -> None:
        """Raise UnpicklingError for keys whose hash takes for ever: a tuple of a tuple of … twice each."""
        if not self._trusting:
            for key in self.stack[first::step]:
                _check_key(key)

    def load_setitem(self) -> None:
        """Set a key of a dict to a value."""
        self._with_keys(-2, 2)
        super().load_setitem()  # type: ignore[misc]

    dispatch[pickle.SETITEM[0]] = load_setitem  # type: ignore[assignment]

    def load_setitems(self) -> None:
        """Set keys of a dict to values."""
        self._with_keys(0, 2)
        super().load_setitems()  # type: ignore[misc]

    dispatch[pickle.SETITEMS[0]] = load_setitems  # type: ignore[assignment]

    def load_additems(self) -> None:
        """Add the members of a set."""
        self._with_keys(0, 1)
        super().load_additems()  # type: ignore[misc]

    dispatch[pickle.ADDITEMS[0]] = load_additems  # type: ignore[assignment]

    def load_frozenset(self) -> None:
        """Make a frozenset of what stands there."""
        self._with_keys(0, 1)
        super().load_frozenset()  # type: ignore[misc]

    dispatch[pickle.FROZENSET[0]] = load_frozenset  # type: ignore[assignment]


_CONTAINERS: tuple[Any, ...] = (set, frozenset, bytearray, dict, list, tuple, OrderedDict, Counter, defaultdict, Size)
_DATA = (list, tuple, dict, set, frozenset, bytes, bytearray, str)  # (a range is not: it may stand for more than fits)
_PARTS = 10_000  #: that a key may have, counted as often as they stand in it


def _check_call(function: Any, args: Any) -> None:
    """Raise UnpicklingError for a call that can take all time or memory: containers are made of data that is there already."""
    if type(args) is not tuple:
        raise pickle.UnpicklingError("Weights only load failed: arguments that are no tuple")
    if any(function is c for c in _CONTAINERS):
        for a in args:
            if not isinstance(a, _DATA) and not isinstance(a, type):
                raise pickle.UnpicklingError(f"Weights only load failed: {function.__name__} of something else than data")
            if isinstance(a, (list, tuple)):
                for item in a:
                    _check_key(item)


def _check_key(value: Any) -> None:
    """Raise UnpicklingError for what would take too long to hash: tuples of the same tuples over and over."""
    if type(value) is not tuple:
        return
    rest, left = [value], _PARTS
    while rest:
        v = rest.pop()
        left -= len(v)
        if left < 0:
            raise pickle.UnpicklingError("Weights only load failed: a key of too many parts")
        rest += [x for x in v if type(x) is tuple]


def storage_array(data: bytearray, d: dtype) -> np.ndarray:
    """Return the flat array of some bytes; any byte but 0 is true, where kernels know only 0 and 1."""
    return (np.frombuffer(data, np.uint8) != 0) if d.category == 0 else np.frombuffer(data, d.carrier)
