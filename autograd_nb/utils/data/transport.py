"""Objects between processes: pickles whose big arrays travel beside them in shared memory.

An array leaves the pickle as a buffer (protocol 5). Where the system has memory files (Linux), the buffers of a message lie in one,
whose handle goes through the connection: the receiver maps it, and nothing is left behind when a process is killed.
"""

from __future__ import annotations

import ast
import io
import mmap
import os
import pickle
import socket
import sys
import types
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from multiprocessing import context, reduction, spawn
from multiprocessing.connection import Connection
from typing import Any

from ... import locks
from ...serialization import compact, refuse_non_leaf
from ...tensor import Tensor

SHARED_FROM = 1 << 16  #: bytes from which a message's buffers go through shared memory
_ALIGN = 64
_MEMORY_FILES = hasattr(os, "memfd_create") and hasattr(socket, "send_fds")


class _Pickler(reduction.ForkingPickler):
    """Pickles for another process; notes whether the script's own classes or functions are needed there."""

    def __init__(self, whole_storages: bool):
        self.file = io.BytesIO()
        self.buffers: list[memoryview] = []
        self.needs_main = False
        self._whole_storages = whole_storages
        super().__init__(self.file, 5, True, self._set_aside)

    def _set_aside(self, buffer: pickle.PickleBuffer) -> None:
        self.buffers.append(buffer.raw())

    def reducer_override(self, obj: Any) -> Any:
        if isinstance(obj, Tensor):
            refuse_non_leaf(obj)
            if not self._whole_storages:
                obj = compact(obj)
            return obj.__reduce_ex__(5)
        if isinstance(obj, (type, types.FunctionType)) and obj.__module__ in ("__main__", "__mp_main__"):
            self.needs_main = True
        return NotImplemented


def _places(sizes: Sequence[int]) -> list[int]:
    """Return where buffers of these sizes begin in a memory file, and where it ends."""
    places = [0]
    for size in sizes:
        places.append(places[-1] + -(-size // _ALIGN) * _ALIGN)
    return places


def _memory_file(buffers: list[memoryview]) -> int:
    fd = os.memfd_create("autograd_nb")
    places = _places([b.nbytes for b in buffers])
    os.truncate(fd, places[-1])
    with open(fd, "wb", closefd=False) as file:
        for place, buffer in zip(places, buffers, strict=False):
            file.seek(place)
            file.write(buffer)
    return fd


def _mapped(fd: int, sizes: Sequence[int], private: bool) -> list[memoryview]:
    """Return the buffers of a memory file, which is closed; writing to ``private`` ones is seen by this process alone."""
    try:
        places = _places(sizes)
        flags = mmap.MAP_PRIVATE if private else mmap.MAP_SHARED
        memory = memoryview(mmap.mmap(fd, places[-1], flags=flags, prot=mmap.PROT_READ | mmap.PROT_WRITE))
    finally:
        os.close(fd)
    return [memory[place : place + size] for place, size in zip(places, sizes, strict=False)]


# ---------------------------------------------------------------------------------------------- messages


def send(connection: Connection, obj: Any) -> None:
    """Send an object; tensors arrive as copies, without the rest of the storages that they are views of."""
    pickler = _Pickler(whole_storages=False)
    pickler.dump(obj)
    sizes = [b.nbytes for b in pickler.buffers]
    shared = sum(sizes) >= SHARED_FROM and _MEMORY_FILES
    connection.send((sizes, shared, pickler.file.getvalue()))
    if shared:
        fd = _memory_file(pickler.buffers)
        try:
            _send_file(connection, fd)
        finally:
            os.close(fd)
    else:
        for buffer in pickler.buffers:
            connection.send_bytes(buffer)


def _send_file(connection: Connection, fd: int) -> None:
    """Send an open file, and wait for nothing: from Python 3.14 on `multiprocessing.reduction` waits for an answer, where a request may stand."""
    with socket.fromfd(connection.fileno(), socket.AF_UNIX, socket.SOCK_STREAM) as s:
        s.setblocking(True)
        socket.send_fds(s, [b"F"], [fd])


def _receive_file(connection: Connection) -> int:
    with socket.fromfd(connection.fileno(), socket.AF_UNIX, socket.SOCK_STREAM) as s:
        s.setblocking(True)
        _, fds, _, _ = socket.recv_fds(s, 1, 1)
    if not fds:
        raise EOFError
    return fds[0]


def receive(connection: Connection) -> Any:
    """Return what the other end of the connection sent. EOFError or OSError where it was closed, or the other process died."""
    sizes, shared, data = connection.recv()
    if shared:
        buffers: list[Any] = _mapped(_receive_file(connection), sizes, private=False)
    else:
        buffers = [bytearray(connection.recv_bytes()) for _ in sizes]
    return pickle.loads(data, buffers=buffers)


# ---------------------------------------------------------------------------------------------- a worker's luggage


class _Rehearsal:
    """Stands for the process that is being started, to see whether an object can be sent to one."""

    handles = False

    def duplicate_for_child(self, fd: int) -> int:
        self.handles = True
        return fd

    DupFd = int


class Parcel:
    """The things that all workers of a loader start with, pickled once; big arrays are shared, and copied where a worker writes to them.

    Raises what pickle raises where it cannot be sent; `CannotImportMain` where the script cannot be imported again.
    """

    def __init__(self, content: Any):
        rehearsal = _Rehearsal()
        context.set_spawning_popen(rehearsal)  # type: ignore[arg-type]
        try:
            pickler = self._pickled(content)
        finally:
            context.set_spawning_popen(None)
        self._content = content if rehearsal.handles else None  # handles are made anew for each process
        self._data = pickler.file.getvalue()
        self._main = _script() if pickler.needs_main else {}
        self._sizes = [b.nbytes for b in pickler.buffers]
        self._fd, self._buffers = None, None
        if _MEMORY_FILES and any(self._sizes):
            self._fd = _memory_file(pickler.buffers)
        else:
            self._buffers = [bytes(b) for b in pickler.buffers]

    @staticmethod
    def _pickled(content: Any) -> _Pickler:
        pickler = _Pickler(whole_storages=True)
        pickler.dump(content)
        return pickler

    def __reduce__(self) -> Any:
        data = self._data if self._content is None else self._pickled(self._content).file.getvalue()
        handle = None if self._fd is None else reduction.DupFd(self._fd)
        return Delivery, (data, self._sizes, handle, self._buffers, self._main, _alias())

    def close(self) -> None:
        """Give the memory back, once all workers have been started."""
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None


class Delivery:
    """A `Parcel` on arrival: opened in the worker, so that what goes wrong there can be reported."""

    def __init__(self, data: bytes, sizes: list[int], handle: Any, buffers: list[Any] | None, main: dict[Any, Any], alias: bool):
        self._data, self._sizes, self._handle, self._buffers, self._main, self._alias = data, sizes, handle, buffers, main, alias

    def open(self) -> Any:
        if self._alias:
            from importlib import import_module

            import_module(__name__.partition(".")[0] + ".compat.as_torch").as_torch()
        spawn.prepare(self._main)
        buffers = self._buffers if self._handle is None else _mapped(self._handle.detach(), self._sizes, private=True)
        return pickle.loads(self._data, buffers=buffers)  # type: ignore[arg-type]


def _alias() -> bool:
    """Return whether programs find this library under the name torch."""
    return getattr(sys.modules.get("torch"), "__name__", "torch") != "torch"


# ---------------------------------------------------------------------------------------------- the script


_main_lock = locks.lock()  #: `without_main` changes what others read of it


class CannotImportMain(Exception):
    """The script that runs cannot be imported by another process."""


def _script() -> dict[str, str]:
    """Return how another process imports the script, in the terms of `spawn.prepare`."""
    with _main_lock:
        found = {k: v for k, v in spawn.get_preparation_data("worker").items() if k.startswith("init_main_from")}
        path = getattr(sys.modules["__main__"], "__file__", None)
    if not found:
        raise CannotImportMain("its classes or functions are defined interactively")
    if path is not None and not _guarded(path):
        raise CannotImportMain(f"{path!r} would run again in every worker, as it has no `if __name__ == '__main__':`")
    return found


def _guarded(path: str) -> bool:
    """Return whether the source of a script asks whether it is imported."""
    try:
        with open(path, "rb") as file:
            tree = ast.parse(file.read())
    except (OSError, SyntaxError, ValueError):
        return False
    return any(
        isinstance(node, ast.If) and any(isinstance(n, ast.Name) and n.id == "__name__" for n in ast.walk(node.test)) for node in tree.body
    )


@contextmanager
def without_main() -> Iterator[None]:
    """Let processes that are started in the block not import the script by themselves: `Delivery` does, if it has to."""
    with _main_lock:
        main = sys.modules["__main__"]
        kept = {name: getattr(main, name) for name in ("__spec__", "__file__") if hasattr(main, name)}
        try:
            for name in kept:
                setattr(main, name, None)
            yield
        finally:
            for name, value in kept.items():
                setattr(main, name, value)
