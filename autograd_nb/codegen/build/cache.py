"""The folder of compiled kernels: one checksummed file each, safe against other processes, crashes and full disks.

This module knows nothing of Numba: it keeps bytes under a key. A file is

    MAGIC, hash of the rest, length of the description (4 bytes), the description (JSON), the payload

and is written under a temporary name and moved into place, so a reader sees a whole file or none. What fails its
checksum is treated as absent, and its payload is never handed out: payloads are unpickled by the caller, and hold machine
code. For the same reason the folder and its files must belong to the user or the administrator (root) and be writable by nobody
else: a checksum tells what is whole, not who wrote it. Anything but a plain file is passed over without being read.
"""

from __future__ import annotations

import errno
import json
import os
import re
import stat
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from ... import locks
from ...errors import warn_user
from .files import looked_at
from .hashed import hashed

MAGIC = b"agnb-k2\n"
SUFFIX = ".kernel"
_DIGEST = 32
_KERNEL = re.compile(r"[0-9a-f]{64}\.kernel")
_TEMPORARY = re.compile(r"\.[0-9a-f]{64}\.[0-9a-f]+\.tmp")
_ABANDONED = 3600.0  #: seconds after which a temporary file belongs to a process that was killed
_LARGEST = 1 << 28  #: bytes of the largest file that is read
#: a link is not followed, and opening a pipe or a device does not wait for anybody
_OPEN = os.O_RDONLY | sum(getattr(os, name, 0) for name in ("O_NOFOLLOW", "O_NONBLOCK", "O_NOCTTY", "O_CLOEXEC", "O_BINARY"))


class CacheWarning(UserWarning):
    """Kernels cannot be kept on disk: the program goes on, and compiles them again in every process."""


def default_folder() -> Path:
    """Return the folder that ``AUTOGRAD_NB_CACHE_DIR`` names, else the platform's folder for caches."""
    given = os.environ.get("AUTOGRAD_NB_CACHE_DIR")
    if given:
        return Path(given).expanduser()
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA")
        return (Path(base) if base else Path.home() / "AppData" / "Local") / "autograd_nb" / "Cache"
    base = os.environ.get("XDG_CACHE_HOME")
    if base and os.path.isabs(base):  # the XDG specification: ignore relative paths
        return Path(base) / "autograd_nb"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "autograd_nb"
    return Path.home() / ".cache" / "autograd_nb"


class Kept(NamedTuple):
    """A file of the cache as `Store.files` lists it."""

    path: Path
    size: int


class Store:
    """Bytes under hexadecimal hash keys in one folder; a failure warns once and switches the store off."""

    def __init__(self, folder: Path | None = None):
        self._given = folder
        self._folder: Path | None = None
        self._opened = False
        self._writable = True
        self._warned = False
        self._lock = locks.lock()

    @property
    def folder(self) -> Path | None:
        """Return the folder, which is made and checked on first use; None when it cannot be used."""
        if not self._opened:
            with self._lock:
                problem = None if self._opened else self._open()
                self._opened = True
            if problem:
                self.warn(problem)
        return self._folder

    def _open(self) -> str | None:
        """Make and check the folder; what is wrong with it."""
        try:
            folder = self._given or default_folder()
            _make(folder)
            status = folder.stat()
        except (OSError, RuntimeError) as error:  # RuntimeError: the user has no home
            return f"the kernel cache cannot be made: {error}"
        if not stat.S_ISDIR(status.st_mode):
            return f"the kernel cache {folder} is not a folder"
        if not is_private(status):
            return f"the kernel cache {folder} belongs to, or may be written by, another user: unsafe to load from"
        self._folder = folder
        return None

    def warn(self, problem: str, kernels: str = "Kernels are") -> None:
        """Say once that, and why, kernels are not kept."""
        if not self._warned:
            self._warned = True
            warn_user(
                f"{problem}. {kernels} compiled again in every process; set AUTOGRAD_NB_CACHE_DIR to a folder of your own.",
                CacheWarning,
            )

    def load(self, key: str) -> bytes | None:
        """Return what was saved under ``key``; None when there is nothing, or nothing that is whole."""
        folder = self.folder
        if folder is None:
            return None
        path = folder / (key + SUFFIX)
        try:
            data = _read(path)
        except NotOurs as error:
            self.warn(f"the kernel cache has {path}, which {error}: unsafe to load", "Such kernels are")
            return None
        except OSError:
            return None
        found = _parse(data)
        return found[1] if found is not None and found[0].get("key") == key else None

    def holds(self, key: str) -> bool:
        """Return whether there is a file under ``key``, whatever is in it."""
        return self.folder is not None and (self.folder / (key + SUFFIX)).exists()

    def save(self, key: str, payload: bytes, description: dict[str, Any]) -> bool:
        """Keep ``payload`` under ``key``; whether that succeeded."""
        folder = self.folder
        if folder is None or not self._writable:
            return False
        about = json.dumps({"key": key, **description}).encode()
        rest = len(about).to_bytes(4, "little") + about + payload
        # the name is this thread's alone, also among containers that share the folder and count their processes alike
        temporary = folder / f".{key}.{os.urandom(8).hex()}.tmp"
        try:
            try:
                with open(temporary, "xb", buffering=0, opener=lambda name, flags: os.open(name, flags, 0o600)) as file:
                    _write_all(file, MAGIC + hashed(rest).digest() + rest)
                os.replace(temporary, folder / (key + SUFFIX))
            except BaseException:
                _remove(temporary)
                raise
        except PermissionError as error:
            if os.name == "nt" and (folder / (key + SUFFIX)).exists():
                return True  # another process has the same kernel open
            self._refuse(folder, error)
            return False
        except OSError as error:
            self._refuse(folder, error)
            return False
        return True

    def _refuse(self, folder: Path, error: OSError) -> None:
        self._writable = False  # what is there already may still be read
        self.warn(f"the kernel cache {folder} cannot be written: {error}")

    def files(self) -> Iterator[Kept]:
        """Yield the kernels in the folder."""
        folder = self.folder
        if folder is None:
            return
        with os.scandir(folder) as entries:
            for entry in entries:
                if _KERNEL.fullmatch(entry.name):
                    try:
                        if entry.is_file(follow_symlinks=False):
                            yield Kept(Path(entry.path), entry.stat(follow_symlinks=False).st_size)
                    except OSError:  # removed meanwhile
                        continue

    def clear(self) -> tuple[int, int]:
        """Remove every kernel and leftover of this library, and nothing else; (files, bytes) removed."""
        count = size = 0
        for path, n in list(self.files()):
            if _remove(path):
                count += 1
                size += n
        self.sweep(0.0)
        return count, size

    def sweep(self, age: float = _ABANDONED) -> None:
        """Remove the temporary files that killed processes left behind."""
        folder = self.folder
        if folder is None:
            return
        limit = time.time() - age
        try:
            with os.scandir(folder) as entries:
                for entry in entries:
                    if _TEMPORARY.fullmatch(entry.name) and entry.stat(follow_symlinks=False).st_mtime <= limit:
                        _remove(Path(entry.path))
        except OSError:
            pass


def describe(path: Path) -> dict[str, Any] | None:
    """Return the description in a kernel's file; None when it is damaged, or not to be trusted."""
    found = read(path)
    return found[0] if found else None


def read(path: Path) -> tuple[dict[str, Any], bytes] | None:
    """Return the description and the payload in a kernel's file; None when it is damaged, or not to be trusted."""
    try:
        return _parse(_read(path))
    except (OSError, NotOurs):
        return None


class NotOurs(Exception):
    """The error about what stands where a kernel should, and may not be loaded: its text says why."""


def _read(path: Path) -> bytes:
    """Return the bytes of a plain file that only the user or root can have written."""
    with opened(path) as file:
        return b"" if os.fstat(file.fileno()).st_size > _LARGEST else file.read()


def opened(path: Path, trusted: Callable[[os.stat_result], bool] | None = None) -> Any:
    """Return a plain file that only the user or root (or who else is ``trusted``) can have written, open and without a buffer."""

    def look(status: os.stat_result) -> None:
        if not stat.S_ISREG(status.st_mode):
            raise NotOurs("is not a file")
        if not (trusted or is_private)(status):
            raise NotOurs("belongs to, or may be written by, another user")

    try:
        return looked_at(path, _OPEN, look, 0)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.EMLINK):
            raise NotOurs("is a link") from None
        if error.errno in (errno.ENXIO, errno.ENODEV, errno.EISDIR):  # a socket, a device without a driver, a folder
            raise NotOurs("is not a file") from None
        raise


def _make(folder: Path) -> None:
    """Make a folder, and those above it that are missing, for the user alone."""
    missing = [folder]
    while not missing[-1].parent.exists() and missing[-1].parent != missing[-1]:
        missing.append(missing[-1].parent)
    for path in reversed(missing):
        path.mkdir(mode=0o700, exist_ok=True)


def _parse(data: bytes) -> tuple[dict[str, Any], bytes] | None:
    start = len(MAGIC) + _DIGEST
    rest = memoryview(data)[start:]
    if data[: len(MAGIC)] != MAGIC or hashed(rest).digest() != data[len(MAGIC) : start] or len(rest) < 4:
        return None
    end = 4 + int.from_bytes(rest[:4], "little")
    try:
        about = json.loads(bytes(rest[4:end]))
    except (ValueError, RecursionError):
        return None
    return (about, bytes(rest[end:])) if isinstance(about, dict) else None


def _write_all(file: Any, data: bytes) -> None:
    view = memoryview(data)
    while view:  # an unbuffered write may be a partial one
        view = view[file.write(view) :]


def is_private(status: os.stat_result) -> bool:
    """Return whether only this user, or root, may have written what ``status`` is of."""
    if not hasattr(os, "geteuid"):
        return True
    return status.st_uid in (os.geteuid(), 0) and not status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


def _remove(path: Path) -> bool:
    try:
        os.unlink(path)
    except OSError:
        return False
    return True
