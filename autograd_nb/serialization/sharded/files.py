"""The folder of a checkpoint: data files with tensors' bytes, and `.metadata`, which says where each stands."""

from __future__ import annotations

import contextlib
import io
import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ...tensor import Tensor, ndarray
from ..loading import load as load_file
from ..saving import save as save_file

METADATA = ".metadata"
FORMAT = 1


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
        self.path, self.sync_files = Path(path), sync_files

    def data(self, name: str, tensors: Mapping[str, Tensor], others: Mapping[str, Any]) -> dict[str, list[Any]]:
        """Write one rank's data file; return where each entry stands: [file, offset, bytes, dtype, shape], dtype "" for what is no tensor."""
        self.path.mkdir(parents=True, exist_ok=True)
        found: dict[str, list[Any]] = {}
        with open(self.path / name, "wb") as file:
            for key, t in tensors.items():
                array = np.ascontiguousarray(ndarray(t))
                found[key] = [name, file.tell(), array.nbytes, t.dtype.name, list(t.shape)]
                file.write(array.reshape(-1).view(np.uint8).data)
            for key, value in others.items():
                buffer = io.BytesIO()
                save_file(value, buffer)
                found[key] = [name, file.tell(), buffer.tell(), "", []]
                file.write(buffer.getvalue())
            self._through(file)
        return found

    def metadata(self, entries: Mapping[str, list[Any]]) -> None:
        """Put the list of entries in its place, which makes the checkpoint valid, and remove data files that it does not name."""
        self.path.mkdir(parents=True, exist_ok=True)
        new = self.path / f"{METADATA}.new"
        with open(new, "wb") as file:
            file.write(json.dumps({"format": FORMAT, "entries": dict(entries)}).encode())
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
        try:
            found = json.loads((self.path / METADATA).read_bytes())
        except FileNotFoundError:
            raise FileNotFoundError(f"checkpoint_id={str(self.path)!r}: there is no checkpoint here (no file {METADATA})") from None
        except ValueError:
            found = {}
        if found.get("format") != FORMAT:
            raise RuntimeError(f"{self.path / METADATA} is not a checkpoint that this library wrote")
        return found["entries"]  # type: ignore[no-any-return]

    def read(self, entry: list[Any], into: Tensor | None) -> Any:
        """Read a tensor into one of its shape, or return what is no tensor. Values become those of the tensor's dtype."""
        name, offset, size, dtype, shape = entry
        if into is None:
            with open(self.path / name, "rb") as file:
                file.seek(offset)
                value = load_file(io.BytesIO(file.read(size)))
            return value
        array = np.fromfile(self.path / name, np.dtype(dtype), size // np.dtype(dtype).itemsize, offset=offset).reshape(shape)
        np.copyto(ndarray(into), array, casting="unsafe")
        return into


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
