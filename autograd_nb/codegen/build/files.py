"""Opening files by name: what is written replaces the old file when it is whole, what is read is a file and no pipe or device."""

from __future__ import annotations

import errno
import os
import stat
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

#: a pipe or a device that has taken the file's place since it was looked at does not let us wait
_OPEN = os.O_RDONLY | sum(getattr(os, name, 0) for name in ("O_NONBLOCK", "O_NOCTTY", "O_CLOEXEC", "O_BINARY"))


def reading(path: Any) -> BinaryIO:
    """Return a file that is open for reading; RuntimeError for a pipe, a device or a socket, which may never end, or never begin."""
    name = os.fspath(path)
    _look(os.stat(name).st_mode, name)
    return looked_at(name, _OPEN, lambda status: _look(status.st_mode, name))


def looked_at(name: Any, flags: int, look: Callable[[os.stat_result], None], buffering: int = -1) -> Any:
    """Return a file that is open for reading, which ``look(status)`` has not refused.

    No bare descriptor is in anybody's hands: where an interrupt comes, it would be closed twice, and another file with it.
    """
    file = open(name, "rb", buffering, opener=lambda name, _: os.open(name, flags))  # noqa: SIM115  (for who asks)
    try:
        look(os.fstat(file.fileno()))
    except BaseException:
        file.close()
        raise
    return file


def _look(mode: int, name: Any) -> None:
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), name)
    if not stat.S_ISREG(mode):
        raise RuntimeError(f"{name!r} is no file, but a pipe, a device or a socket")


@contextmanager
def replacing(path: Any) -> Iterator[BinaryIO]:
    """Give a file that takes the place of ``path`` when the block ends without error; what ``path`` links to is replaced, not the link.

    An empty file is written to itself, as nothing of it can be lost: whoever made a temporary one and holds it open reads what was written.
    """
    path = Path(os.path.realpath(os.fspath(path)))
    folder = path.parent
    if not folder.is_dir():
        raise RuntimeError(f"Parent directory {folder} does not exist.")
    if path.exists() and not path.is_file():  # a device or a pipe is written to (and a folder refuses)
        with open(path, "wb") as file:
            yield file
        return
    if path.exists() and not path.stat().st_size:
        with open(path, "wb") as file:
            try:
                yield file
            except BaseException:
                file.truncate(0)
                raise
        return
    if path.exists() and not os.access(path, os.W_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
    handle, temporary = tempfile.mkstemp(prefix=f".{path.name[:40]}.", suffix=".tmp", dir=folder)
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        mode = path.stat().st_mode & 0o777 if path.exists() else 0o666 & ~_umask()
        os.chmod(temporary, mode)
        os.replace(temporary, path)
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary)
        raise
    with suppress(OSError):  # the new name, too, survives a crash of the system
        place = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(place)
        finally:
            os.close(place)


@contextmanager
def archiving(file: Any, how: int) -> Iterator[Any]:
    """Give a zip file that is written to ``file``; what the block raises is raised, and no complaint about entries that stayed open."""
    import zipfile  # which few programs need

    archive = zipfile.ZipFile(file, "w", how)
    try:
        yield archive
    except BaseException:
        archive.fp = None  # it is not to be completed
        raise
    archive.close()


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
