"""Memory that processes share (`share_memory_`): forked processes see it, and others are sent the memory itself, not a copy of it.

Source: https://docs.pytorch.org/docs/stable/multiprocessing.html
"""

from __future__ import annotations

import io
import mmap
import pickle
from multiprocessing.heap import Arena
from multiprocessing.reduction import ForkingPickler
from typing import Any

import numpy as np

from ... import launch
from ...dtypes import dtype
from ...graph import noted
from ...shapes import layout_of
from ...tensor import Tensor, _storage, make, set_requires_grad


class Memory(mmap.mmap):
    """A mapping that knows the file it is of, which is closed with it."""

    arena: Arena


def _mapped(arena: Arena) -> Memory:
    """Return the file's memory in this process, and have Python's pickles of processes send tensors over such memory as what they are."""
    memory = Memory(arena.fd, arena.size)
    memory.arena = arena
    for cls in (Tensor, noted.parameter):
        ForkingPickler.register(cls, _reduced)
    return memory


def memory_of(array: np.ndarray) -> Memory | None:
    """Return the memory that processes share in which the array lies, None where they do not."""
    owner: Any = array
    while isinstance(owner, np.ndarray):
        owner = owner.base
    owner = owner.obj if isinstance(owner, memoryview) else owner
    return owner if isinstance(owner, Memory) else None


def share(x: Tensor) -> None:
    """Move the memory of a tensor, and of the base that it is a view of, to where processes share it."""
    if memory_of(x._data) is not None:
        return
    launch.escapes("share_memory_()")
    try:
        x._data = x._data
    except AttributeError:
        raise RuntimeError("share_memory_() is not supported within transforms: call it outside, before the function is transformed") from None
    old = _storage(x)[0]
    first = launch.memory.address(old)
    memory = _mapped(Arena(max(old.nbytes, 1)))
    np.frombuffer(memory, old.dtype, old.size)[:] = old
    for t in (x,) if x._view is None else (x, x._view):
        data = t._data
        t._data = np.frombuffer(memory, data.dtype, data.size, launch.memory.address(data) - first if data.size else 0)


def _reduced(x: Tensor) -> Any:
    memory = memory_of(x._data)
    if memory is None or not x.is_leaf:
        return x.__reduce_ex__(pickle.HIGHEST_PROTOCOL)
    start = launch.memory.address(x._data) - launch.memory.address(np.frombuffer(memory, np.uint8))
    return _rebuilt, (type(x), memory.arena, start, x._data.size, x.dtype, x._layout.sizes, x._layout.strides, x.requires_grad)


def _rebuilt(
    cls: type[Tensor], arena: Arena, start: int, size: int, d: dtype, sizes: tuple[int, ...], strides: tuple[int, ...], requires_grad: bool
) -> Tensor:
    data = np.frombuffer(_mapped(arena), d.carrier, size, start)
    x = make(data, layout_of(sizes, strides, d), [0, 0])
    if cls is not Tensor:
        return cls(x, requires_grad)  # type: ignore[call-arg]
    set_requires_grad(x, requires_grad)
    return x


class _Copies(pickle.Pickler):
    def reducer_override(self, obj: Any) -> Any:
        if isinstance(obj, Tensor) and memory_of(obj._data) is not None:
            raise RuntimeError("tensors in memory that processes share are not copied")
        return NotImplemented


def pickled_copies(obj: Any) -> bytes:
    """Return a pickle that sends tensors as copies. RuntimeError where one lies in memory that processes share."""
    file = io.BytesIO()
    _Copies(file).dump(obj)
    return file.getvalue()
