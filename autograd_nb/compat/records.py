"""Archives of records: the files that `save` writes, read and written record by record."""

from __future__ import annotations

import os
import sys
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ..codegen.build.files import archiving, replacing


class FileReader:
    """Reads records of an archive by their names. RuntimeError for what is no archive, and for records that it lacks.

    >>> import io
    >>> file = io.BytesIO()
    >>> torch.save(torch.ones(2), file)
    >>> "data.pkl" in torch.PyTorchFileReader(file).get_all_records()
    True
    """

    def __init__(self, file: Any) -> None:
        try:
            self._archive = zipfile.ZipFile(file)
        except (zipfile.BadZipFile, EOFError) as error:
            raise RuntimeError(f"PytorchStreamReader failed reading zip archive: not a ZIP archive ({error})") from None
        names = self._archive.namelist()
        self._root = names[0].partition("/")[0] + "/" if names else ""

    def get_all_records(self) -> list[str]:
        """Return the names of all records."""
        return [name.removeprefix(self._root) for name in self._archive.namelist()]

    def has_record(self, name: str) -> bool:
        """Return whether there is a record of this name."""
        return self._root + name in self._archive.namelist()

    def get_record(self, name: str) -> bytes:
        """Return the bytes of a record."""
        try:
            return self._archive.read(self._root + name)
        except KeyError:
            raise RuntimeError(f"PytorchStreamReader failed locating file {name}: file not found (there are {self.get_all_records()})") from None

    def __enter__(self) -> FileReader:
        return self

    def __exit__(self, *error: object) -> None:
        self._archive.close()


class FileWriter:
    """Writes records one after the other."""

    def __init__(self, archive: zipfile.ZipFile, root: str) -> None:
        self._archive, self._root = archive, root

    def write_record(self, name: str, data: Any, size: int) -> None:
        """Write the first ``size`` bytes as a record of this name."""
        content = data.encode() if isinstance(data, str) else data
        with self._archive.open(zipfile.ZipInfo(f"{self._root}/{name}", (1980, 1, 1, 0, 0, 0)), "w", force_zip64=True) as entry:
            entry.write(memoryview(content)[:size])


def open_for_reading(name_or_buffer: Any) -> FileReader:
    """Return a reader of the archive."""
    return FileReader(os.fspath(name_or_buffer) if isinstance(name_or_buffer, (str, os.PathLike)) else name_or_buffer)


@contextmanager
def open_for_writing(name_or_buffer: Any) -> Iterator[FileWriter]:
    """Give a writer; at a path there is the whole archive afterwards, or none."""
    if isinstance(name_or_buffer, (str, os.PathLike)):
        path = Path(name_or_buffer)
        with replacing(path) as file, _written(file, path.stem or "archive") as writer:
            yield writer
    else:
        with _written(name_or_buffer, "archive") as writer:
            yield writer


@contextmanager
def _written(file: Any, root: str) -> Iterator[FileWriter]:
    with archiving(file, zipfile.ZIP_STORED) as archive:
        writer = FileWriter(archive, root)
        yield writer
        for name, content in (("version", b"3\n"), ("byteorder", sys.byteorder.encode())):
            writer.write_record(name, content, len(content))
