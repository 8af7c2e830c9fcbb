"""What kernels were asked for, and what was found: a process whose kernels are all on disk need not import Numba.

A kernel is kept under its content, which can only be told by defining it and what it calls, with Numba. But the same words mean the
same content while the library's files are the same. So each answer is noted in the cache, in a file named after all that it depends on
besides the words: the texts of `codegen` and `kernels`, the versions, the processor. Only a process that has not imported Numba asks
there, and only about what is the library's alone; what is missing or damaged there is found out as ever.

The file has a line for each answer: the words (hash), the answer (JSON), and a checksum of both. Lines are added at the end, each in one
piece that begins the line, so that what a killed process has left undone spoils nothing else.
"""

from __future__ import annotations

import json
import os
import platform
import re
import sys
from collections.abc import Container, Iterator
from contextlib import suppress
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from .cache import NotOurs, Store, opened
from .digest import ROOMS
from .hashed import hashed

SUFFIX = ".requests"
_ROOT = Path(__file__).parents[2]
_LARGEST = 1 << 24  #: bytes of a file that is read
_MOST = 8  #: files that are kept: of versions and processors that share a cache


class Requests:
    """The answers in a cache's folder."""

    def __init__(self, store: Store):
        self._store = store
        self.noted: dict[str, Any] = {}  #: what this process has noted: answers by words, as packs take them
        self._path: Path | None = None
        self._known: dict[bytes, bytes] | None = None  # answers by words; read on first use

    def find(self, *words: Any) -> Any:
        """Return what was noted of these words; None where nothing was, or Numba is there to find it out."""
        if "numba" in sys.modules:
            return None
        answer = self._read().get(words_of(*words).encode())
        return None if answer is None else json.loads(answer)

    def is_new(self) -> bool:
        """Return whether no process has noted anything here, so that kernels will have to be compiled."""
        return not self._read() and self._path is not None

    def everything(self) -> dict[str, Any]:
        """Return all answers that hold here, by words."""
        return {said.decode(): json.loads(text) for said, text in self._read().items()} | self.noted

    def note(self, answer: Any, *words: Any) -> None:
        """Note an answer for processes to come."""
        known, said = self._read(), words_of(*words).encode()
        self.noted[said.decode()] = answer
        if self._path is None or said in known:
            return
        known[said] = text = json.dumps(answer).encode()
        with suppress(OSError), open(self._path, "ab", buffering=0, opener=lambda name, flags: os.open(name, flags, 0o600)) as file:
            file.write(_line(said, text))

    def clear(self) -> None:
        """Remove all that was noted in the folder, by whatever versions."""
        if self._store.folder is not None:
            _sweep(self._store.folder, 0)

    def _read(self) -> dict[bytes, bytes]:
        if self._known is None:
            found: dict[bytes, bytes] = {}
            folder = self._store.folder
            name = _name() if folder is not None and untouched() else None
            if folder is not None and name is not None:
                self._path = folder / (name + SUFFIX)
                with suppress(OSError, NotOurs), opened(self._path) as file:
                    if os.fstat(file.fileno()).st_size <= _LARGEST:
                        found.update(_answers(file.read()))
                if not found:
                    _sweep(folder)
            self._known = found
        return self._known


def words_of(*words: Any) -> str:
    """Return what words are noted under."""
    return hashed(repr(words).encode()).hexdigest()


def _line(said: bytes, text: bytes) -> bytes:
    whole = said + b" " + text
    return b"\n" + whole + b" " + hashed(whole).hexdigest()[:16].encode()


def _answers(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    for line in data.split(b"\n"):
        said, text = line[:64], line[65:-17]
        if b"\n" + line == _line(said, text):
            yield said, text


def untouched(besides: Container[str] = ()) -> bool:
    """Return whether nobody has told Numba what to do otherwise than by itself, ``besides`` these variables."""
    return not any(name.startswith("NUMBA_") and name not in besides for name in os.environ) and not os.path.exists(".numba_config.yaml")


def numba_version() -> str:
    """Return the version of Numba, without importing it; empty where that cannot be told."""
    numba = find_spec("numba")
    if numba is None or numba.origin is None:
        return ""
    try:
        found = re.search(r'"version": "([^"]+)"', Path(numba.origin).with_name("_version.py").read_text())
    except OSError:
        return ""
    return found[1] if found else ""


@cache
def texts() -> str:
    """Return the hash of the texts that kernels consist of; empty where the library has no files to tell by."""
    digest = hashed()
    try:
        for path in [p for room in ROOMS for p in sorted((_ROOT / room).rglob("*.py"))]:
            text = path.read_bytes()
            digest.update(b"%d:" % len(text) + text)
    except OSError:
        return ""
    return digest.hexdigest()


def _name() -> str | None:
    """Return the name of the file whose answers hold here; None where it cannot be told."""
    from llvmlite import __version__, binding

    numba = numba_version()
    if not numba or not texts():
        return None
    about = (
        texts(), sys.implementation.cache_tag, *sys.version_info, platform.machine(), np.__version__, numba, __version__,
        binding.get_host_cpu_name(), binding.get_host_cpu_features().flatten(),
    )  # fmt: skip
    return hashed(repr(about).encode()).hexdigest()


def _sweep(folder: Path, most: int = _MOST) -> None:
    """Remove the oldest files where there are more than so many."""
    with suppress(OSError):
        files = sorted(folder.glob("*" + SUFFIX), key=lambda p: p.stat().st_mtime)
        for path in files[: max(0, len(files) - most)]:
            path.unlink()
