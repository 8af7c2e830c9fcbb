"""A pack: the machine code of many kernels in one file, which is only read.

This module knows nothing of Numba: a pack keeps payloads under the contents of kernels (hexadecimal hash). The file is

    MAGIC, hash of the head, length of the head (8 bytes)
    the head: length of the description (4 bytes), the description (JSON), the index
    the payloads

and the index a record for each kernel, in the order of their contents: content, hash of the payload, where it begins in the file
and how long it is (8 bytes each). The head is checked when a pack is opened, a payload whenever it is asked for; what fails its checksum
is never handed out. The file is opened anew for each payload: nothing is held open or mapped that could be cut short meanwhile.

As for the cache, whoever can write a pack runs code: it and its folder must belong to the user or root, and be writable by nobody else.
"""

from __future__ import annotations

import json
import os
import stat
import struct
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from .cache import NotOurs, is_private, opened
from .files import replacing
from .hashed import hashed

MAGIC = b"agnb-p2\n"
_DIGEST = 32
_HEAD = struct.Struct("<8s32sQ")
_RECORD = struct.Struct("<32s32sQQ")
_LARGEST_HEAD = 1 << 26
_LARGEST = 1 << 34  #: bytes of a pack


class PackError(RuntimeError):
    """The error about a pack that is damaged, or no pack."""


def write(path: Path, about: Mapping[str, Any], kernels: Mapping[str, bytes]) -> int:
    """Write a pack that takes the place of ``path``; its size."""
    contents = sorted(kernels)
    described = json.dumps(about).encode()
    head_size = 4 + len(described) + _RECORD.size * len(contents)
    at, records = _HEAD.size + head_size, []
    for content in contents:
        payload = kernels[content]
        records.append(_RECORD.pack(bytes.fromhex(content), hashed(payload).digest(), at, len(payload)))
        at += len(payload)
    head = len(described).to_bytes(4, "little") + described + b"".join(records)
    with replacing(path) as file:
        file.write(_HEAD.pack(MAGIC, hashed(head).digest(), head_size) + head)
        for content in contents:
            file.write(kernels[content])
    if os.name == "posix":
        path.chmod(path.stat().st_mode & ~(stat.S_IWGRP | stat.S_IWOTH))  # else it could not be used
    return at


class Pack:
    """A pack that is open for reading.

    ``beside``: a file that it came with, such as the package's own; then it may belong to the owner of that, and be as writable as that.

    Errors: OSError where there is none; `cache.NotOurs` where others may have written it; `PackError` where it is damaged.
    """

    def __init__(self, path: str | os.PathLike[str], beside: str | None = None):
        self.path: Path = Path(os.path.realpath(path))  # what a link leads to is the affair of who named the link
        self._beside = beside
        with self._file() as file:
            self._same = _identity(os.fstat(file.fileno()))
            self._read_head(file)

    def _file(self) -> Any:
        """Return the file, open, if it is a plain one that nobody else can have written."""
        like = os.stat(self._beside) if self._beside else None
        if not _trusted(os.stat(self.path.parent), os.stat(Path(self._beside).parent) if self._beside else None):
            raise NotOurs("is in a folder that belongs to, or may be written by, another user")
        return opened(self.path, lambda status: _trusted(status, like))

    def _read_head(self, file: Any) -> None:
        size = os.fstat(file.fileno()).st_size
        first = _read(file, 0, _HEAD.size)
        if len(first) < _HEAD.size or size > _LARGEST:
            raise self.damaged("it is no pack")
        magic, digest, length = _HEAD.unpack(first)
        if magic != MAGIC:
            raise self.damaged("it is no pack, or one of another format")
        if length > min(_LARGEST_HEAD, size - _HEAD.size):
            raise self.damaged("it is cut short")
        head = _read(file, _HEAD.size, length)
        if hashed(head).digest() != digest:
            raise self.damaged("the checksum of its index is wrong")
        begin = 4 + int.from_bytes(head[:4], "little")
        try:
            self.about: dict[str, Any] = dict(json.loads(head[4:begin]))
        except (ValueError, TypeError, RecursionError):
            raise self.damaged("its description cannot be read") from None
        self._index = memoryview(head)[begin:]
        self._count, rest = divmod(len(self._index), _RECORD.size)
        if rest or begin > length:
            raise self.damaged("its index cannot be read")
        if any(at < _HEAD.size + length or at + n > size for _, _, at, n in self._records()):
            raise self.damaged("it is cut short")

    def damaged(self, why: str) -> PackError:
        """Return the error that says so."""
        return PackError(f"the pack of kernels {self.path} is damaged: {why}. Make it again, or copy it again from where it came from")

    def __len__(self) -> int:
        return self._count

    def _records(self) -> Iterator[tuple[bytes, bytes, int, int]]:
        return _RECORD.iter_unpack(self._index)  # type: ignore[return-value]

    def _find(self, content: bytes) -> tuple[bytes, int, int] | None:
        """Return checksum, place and length of a payload."""
        low, high = 0, self._count
        while low < high:
            middle = (low + high) // 2
            found, digest, at, length = _RECORD.unpack_from(self._index, middle * _RECORD.size)
            if found == content:
                return digest, at, length
            low, high = (middle + 1, high) if found < content else (low, middle)
        return None

    def __contains__(self, content: str) -> bool:
        return self._find(bytes.fromhex(content)) is not None

    def load(self, content: str) -> bytes | None:
        """Return a payload; None where there is none. PackError where it is damaged, or the file is another one than before."""
        found = self._find(bytes.fromhex(content))
        if found is None:
            return None
        digest, at, length = found
        with self._file() as file:
            if _identity(os.fstat(file.fileno())) != self._same:
                raise PackError(f"the pack of kernels {self.path} was replaced while this process was using it")
            payload = _read(file, at, length)
        if len(payload) != length or hashed(payload).digest() != digest:
            raise self.damaged(f"the checksum of kernel {content[:16]} is wrong")
        return payload

    def verify(self) -> None:
        """Check all payloads. PackError where one is damaged."""
        for content, *_ in self._records():
            self.load(content.hex())


def _read(file: Any, at: int, length: int) -> bytes:
    """Return so many bytes of an unbuffered file; fewer at its end."""
    file.seek(at)
    parts = []
    while length:
        part = file.read(length)
        if not part:
            break
        parts.append(part)
        length -= len(part)
    return b"".join(parts)


def _identity(status: os.stat_result) -> tuple[int, ...]:
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


def _trusted(status: os.stat_result, like: os.stat_result | None) -> bool:
    """Return whether only this user, root, or who may write what ``like`` is of, can have written what ``status`` is of."""
    if is_private(status) or like is None:
        return is_private(status)
    others = stat.S_IWGRP | stat.S_IWOTH
    return status.st_uid in (os.geteuid(), 0, like.st_uid) and not status.st_mode & others & ~like.st_mode
