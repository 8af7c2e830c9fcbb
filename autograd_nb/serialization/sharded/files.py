"""The folder of a checkpoint: data files with tensors' bytes, and `.metadata`, which says where each stands."""

from __future__ import annotations

import contextlib
import io
import json
import os
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ... import dtypes
from ...codegen.build.files import reading
from ...graph.modes import no_grad
from ...shapes import layout_of, numel
from ...tensor import Tensor, make
from ..loading import load as load_file
from ..saving import save as save_file
from ..unpickling import storage_array

METADATA = ".metadata"
#: 1 had no sums of what it wrote
FORMATS = (1, 2)


class CheckpointException(RuntimeError):
    """Something failed on some ranks: ``failures`` has their errors by rank."""

    failures: dict[int, BaseException | str]

    def __init__(self, message: str, failures: Mapping[int, BaseException | str]):
        super().__init__(f"{message}: " + "; ".join(f"rank {rank}: {error}" for rank, error in sorted(failures.items())))
        self.failures = dict(failures)


class FileSystemWriter:
    """The folder that a checkpoint is written to; it is made."""

    path: Path

    def __init__(self, path: str | os.PathLike[str], single_file_per_rank: bool = True, sync_files: bool = True, thread_count: int = 1, **_: Any):
        self.path = Path(path)
        self.sync_files: bool = sync_files

    def data(self, name: str, tensors: Mapping[str, Tensor], others: Mapping[str, Any]) -> dict[str, list[Any]]:
        """Write one rank's data file; return where each entry stands: [file, offset, bytes, dtype, shape, CRC-32], dtype "" for what is no tensor."""
        self.path.mkdir(parents=True, exist_ok=True)
        found: dict[str, list[Any]] = {}
        with open(self.path / name, "wb") as file:
            for key, t in tensors.items():
                x = t.detach().contiguous()
                content: Any = memoryview(x._data[: x._layout.size].view(np.uint8))  # type: ignore[arg-type]
                found[key] = [name, file.tell(), len(content), t.dtype.name, list(t.shape), zlib.crc32(content)]
                file.write(content)
            for key, value in others.items():
                buffer = io.BytesIO()
                save_file(value, buffer)
                content = buffer.getvalue()
                found[key] = [name, file.tell(), len(content), "", [], zlib.crc32(content)]
                file.write(content)
            self._through(file)
        return found

    def metadata(self, entries: Mapping[str, list[Any]]) -> None:
        """Put the list of entries in its place, which makes the checkpoint valid, and remove data files that it does not name."""
        self.path.mkdir(parents=True, exist_ok=True)
        new = self.path / f"{METADATA}.new"
        with open(new, "wb") as file:
            file.write(json.dumps({"format": FORMATS[-1], "entries": dict(entries), "sum": _sum(entries)}).encode())
            self._through(file)
        os.replace(new, self.path / METADATA)
        named = {entry[0] for entry in entries.values()}
        for old in self.path.glob("*.distcp"):
            if old.name not in named:
                with contextlib.suppress(OSError):
                    old.unlink()

    def _through(self, file: Any) -> None:
        file.flush()
        if self.sync_files:
            os.fsync(file.fileno())


class FileSystemReader:
    """The folder that a checkpoint is read from."""

    path: Path

    def __init__(self, path: str | os.PathLike[str], **_: Any):
        self.path = Path(path)

    def entries(self) -> dict[str, list[Any]]:
        """Return where each entry stands. FileNotFoundError where there is no checkpoint, RuntimeError for one of another format."""
        place = self.path / METADATA
        try:
            with reading(place) as file:
                found = json.loads(file.read())
        except FileNotFoundError:
            raise FileNotFoundError(f"checkpoint_id={str(self.path)!r}: there is no checkpoint here (no file {METADATA})") from None
        except (ValueError, RecursionError):
            found = None
        if not isinstance(found, dict) or found.get("format") not in FORMATS:
            raise RuntimeError(f"{place} is not a checkpoint that this library wrote")
        entries: dict[str, list[Any]] = found.get("entries", {})
        if found["format"] > 1 and found.get("sum") != _sum(entries):
            raise RuntimeError(f"{place} is damaged: its sum is another")
        return entries

    def content(self, entry: list[Any]) -> bytearray:
        """Return the bytes of an entry. RuntimeError where they are not what was written."""
        name, offset, size, dtype, shape = entry[:5]
        known = dtypes.BY_NAME.get(dtype)
        sizes = all(type(n) is int and 0 <= n < 1 << 63 for n in (offset, size, *shape))
        fits = not dtype or (sizes and known is not None and size == numel(shape) * known.itemsize)
        if not (sizes and fits and os.path.basename(name) == name):
            raise RuntimeError(f"{self.path / METADATA} is damaged: it has the entry {entry}")
        with reading(self.path / name) as file:
            file.seek(offset)
            content = bytearray(file.read(size))
        if len(content) != size or (len(entry) > 5 and zlib.crc32(content) != entry[5]):
            raise RuntimeError(f"{self.path / name} is truncated or damaged at byte {offset}")
        return content

    def read(self, entry: list[Any], into: Tensor | None) -> Any:
        """Read a tensor into one of its shape, or return what is no tensor. Values become those of the tensor's dtype."""
        content = self.content(entry)
        if into is None:
            return load_file(io.BytesIO(content))
        d = dtypes.BY_NAME[entry[3]]
        whole, parts = make(storage_array(content, d), layout_of(tuple(entry[4]), None, d), [0, 0]), into.__dict__.get("_sharding")
        with no_grad():
            into.copy_(whole if parts is None else parts.part(whole))
        return into


def _sum(entries: Any) -> int:
    return zlib.crc32(json.dumps(entries).encode())


def flattened(state: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[str, tuple[Any, ...], Any]]:
    """Yield (name, path, value) of all that nested dicts, and lists with tensors in them, hold: {"a": {"b": 1}} has "a.b"."""
    items: Any = None
    if isinstance(state, dict) and (state or not path):
        items = state.items()
    elif isinstance(state, (list, tuple)) and any(isinstance(v, (Tensor, dict, list, tuple)) for v in state):
        items = enumerate(state)
    if items is None:
        yield ".".join(map(str, path)), path, state
        return
    for key, value in items:
        yield from flattened(value, (*path, key))


def put(state: Any, path: tuple[Any, ...], value: Any) -> None:
    """Set what stands at a path of nested dicts and lists."""
    for key in path[:-1]:
        state = state[key]
    state[path[-1]] = value
