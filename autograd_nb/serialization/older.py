"""PyTorch's files from before 1.6: pickles one after the other, the last of which names the storages that follow as plain bytes."""

from __future__ import annotations

import pickle
import struct
from typing import Any

import numpy as np

from ..dtypes import dtype
from ..graph.modes import state
from ..ops.creation.storages import TypedStorage
from .saving import MAGIC, VERSION
from .unpickling import Elsewhere, _Unpickler, storage_array


class _Reader(_Unpickler):
    """Reads one pickle after the other; storages are filled when all are read, as their bytes stand behind the last."""

    def __init__(self, data: bytes, trusting: Any, encoding: str, map_location: Any):
        super().__init__(data, self._made, trusting, encoding, map_location)
        self.arrays: dict[str, tuple[np.ndarray, dtype]] = {}
        self._left = len(data)

    def _made(self, key: str, d: dtype, numel: int) -> tuple[Any, ...]:
        found = self.arrays.get(key)
        if found is None:
            self._left -= numel * d.itemsize
            if numel < 0 or self._left < 0:
                raise pickle.UnpicklingError(f"a storage of {numel} elements, of which the file has no bytes")
            found = self.arrays[key] = (np.zeros(numel, d.carrier), d)
        elif found[1] is not d:
            raise pickle.UnpicklingError(f"a storage of both {found[1]!r} and {d!r}")
        return found

    def persistent_load(self, pid: Any) -> Any:
        if isinstance(pid, tuple) and len(pid) > 1 and pid[0] in ("module", b"module"):  # (with the source of its class, which is not looked at)
            return pid[1]
        whole = super().persistent_load(pid)
        part = pid[5] if len(pid) > 5 else None
        if part is None:
            return whole
        if not (isinstance(part, tuple) and len(part) == 3 and all(type(n) is int and n >= 0 for n in part[1:])):
            raise pickle.UnpicklingError(f"a part of a storage, {part!r:.80}")
        return TypedStorage._over(whole._array[part[1] : part[1] + part[2]], whole.dtype, [0, 0])


def read_older(file: Any, name: str, trusting: Any, encoding: str, map_location: Any) -> Any:
    """Return the object that begins where a file stands, which is at its end then. RuntimeError where it is damaged, UnpicklingError for other classes."""
    previous, state.grad = state.grad, True
    try:
        start = file.tell()
        data = file.read()
        reader = _Reader(data, trusting, encoding, map_location)
        if reader.load() != MAGIC or reader.load() != VERSION:
            raise EOFError("another version of the format")
        reader.load()  # what the machine was like: numbers are written as on most
        found, keys = reader.load(), reader.load()
        file.seek(start + _fill(reader, keys, data, reader.file.tell()))
        return found
    except pickle.UnpicklingError as error:
        raise pickle.UnpicklingError(f"{name!r}: {error}") from None
    except Elsewhere:
        raise
    except Exception as error:
        if trusting and not isinstance(error, (EOFError, IndexError, KeyError, ValueError, struct.error, UnicodeDecodeError)):
            raise
        raise RuntimeError(f"{name!r} is damaged: it cannot be read ({type(error).__name__}: {error})") from None
    finally:
        state.grad = previous


def _fill(reader: _Reader, keys: Any, data: bytes, place: int) -> int:
    """Fill the storages with the bytes from a place on, and return where they end."""
    for key in keys:
        array, d = reader.arrays[key.decode() if isinstance(key, bytes) else str(key)]
        (numel,) = struct.unpack_from("<q", data, place)
        place += 8
        if numel != array.size or place + array.nbytes > len(data):
            raise EOFError(f"storage {key} has {numel} elements, where {array.size} are told")
        array[:] = storage_array(bytearray(data[place : place + array.nbytes]), d)
        place += array.nbytes
    return place
