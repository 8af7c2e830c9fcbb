"""`load`: PyTorch's zip files, read without running what stands in them; `older` reads those from before 1.6."""

from __future__ import annotations

import os
import pickle
import struct
import sys
import zipfile
from contextlib import nullcontext
from typing import Any

from ..codegen.build.files import reading
from ..dtypes import dtype
from ..errors import warn_user
from ..graph.modes import state
from ..ops.creation.device import device as Device
from .older import read_older
from .unpickling import Elsewhere, _Unpickler, finder_of, need_place, storage_array


def _name_of(f: Any) -> str:
    return str(getattr(f, "name", type(f).__name__)) if hasattr(f, "read") else os.fspath(f)


def load(
    f: Any, map_location: Any = None, pickle_module: Any = None, *, weights_only: bool | None = None, mmap: bool | None = None,
    **pickle_load_args: Any,
) -> Any:  # fmt: skip
    """Read what `save`, or PyTorch's, wrote: containers, numbers and tensors. No code of the file is run.

    weights_only: False reads any object, and can run anything that the file's author liked: only for files you trust. So does naming a
    pickle_module, and TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD=1 in the environment where nothing is said; TORCH_FORCE_WEIGHTS_ONLY_LOAD=1 forbids it.
    map_location: the CPU, or a function or dict, which end there too; "meta" for shapes alone; None for what was saved there. mmap is
    accepted; everything is read into memory.

    Errors: FileNotFoundError; RuntimeError that names the file when it is truncated, damaged or of another format;
    pickle.UnpicklingError when it holds objects of other classes.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.load.html

    >>> import os, tempfile
    >>> name = os.path.join(tempfile.mkdtemp(), "weights.pt")
    >>> torch.save({"w": torch.ones(2)}, name)
    >>> torch.load(name)
    {'w': tensor([1., 1.])}
    """
    if not hasattr(f, "read") and not isinstance(f, (str, os.PathLike)):
        raise AttributeError(f"load(): argument 'f' must be a path or a file open for reading, not {type(f).__name__}")
    _check_location(map_location)
    name = _name_of(f)
    trusting: Any = _trusts(weights_only, pickle_module)
    if trusting and pickle_module is not None:
        trusting = finder_of(pickle_module)
    with reading(f) if not hasattr(f, "read") else nullcontext(f if hasattr(f, "seekable") else _File(f)) as file:
        if not hasattr(file, "seek") or not hasattr(file, "tell"):
            raise AttributeError(
                f"{type(f).__name__} has no seek and tell. You can only torch.load from a file that is seekable. Please pre-load the data into "
                "a buffer like io.BytesIO and try to load from it instead."
            )
        encoding = pickle_load_args.get("encoding", "utf-8")
        if _is_older(file):
            return read_older(file, name, trusting, encoding, map_location)
        try:
            archive = zipfile.ZipFile(file)
        except Exception as error:  # zipfile raises a variety
            raise RuntimeError(
                f"PytorchStreamReader failed reading zip archive: {name!r} is truncated, damaged, or not a file of save() "
                f"({_other_format(file) or error})"
            ) from None
        with archive:
            return _read_archive(archive, name, trusting, encoding, map_location)


def _set(variable: str) -> bool:
    return os.environ.get(variable, "0").lower() in ("1", "y", "yes", "true")


def _trusts(weights_only: bool | None, pickle_module: Any) -> bool:
    """Return whether any object may be read: as the caller says, else for whoever names a pickle module; PyTorch's variables overrule it."""
    never, unless_said = _set("TORCH_FORCE_WEIGHTS_ONLY_LOAD"), _set("TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD")
    if never and unless_said:
        raise RuntimeError(
            "Only one of `TORCH_FORCE_WEIGHTS_ONLY_LOAD` or `TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD` should be set, but both were set."
        )
    trusting = pickle_module is not None if weights_only is None else not weights_only
    if never:
        trusting = False
    elif unless_said and weights_only is None:
        warn_user(
            "Environment variable TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD detected, since the `weights_only` argument was not explicitly passed "
            "to `torch.load`, forcing weights_only=False."
        )
        trusting = True
    if pickle_module is not None and not trusting:
        raise RuntimeError("Can not safely load weights when explicit pickle_module is specified")
    return trusting


class _File:
    """A file of which only a few methods are there, as zipfile wants it."""

    def __init__(self, file: Any):
        self._file = file
        for name in ("seek", "tell"):
            if hasattr(file, name):
                setattr(self, name, getattr(file, name))

    def seekable(self) -> bool:
        return hasattr(self, "seek")

    def read(self, n: int = -1) -> bytes:
        if n < 0 or not hasattr(self._file, "readinto"):
            return self._file.read(n) if n >= 0 else self._file.read()  # type: ignore[no-any-return]
        content = bytearray(n)
        return bytes(memoryview(content)[: self._file.readinto(content)])


def _check_location(map_location: Any) -> None:
    if isinstance(map_location, dict):
        map_location = map_location.get("cpu")
    if not (map_location is None or isinstance(map_location, (str, Device)) or callable(map_location)):
        kind = type(map_location).__name__
        raise TypeError(f"load(): '{kind}' object is not callable: map_location is a device, a function or a dict (map_location={map_location!r:.60})")
    if isinstance(map_location, (str, Device)):
        need_place(Device(map_location), "cpu")


def _is_older(file: Any) -> bool:
    """Return whether a file begins as PyTorch's did before 1.6: with a pickle of its number."""
    place = file.tell()
    start = file.read(16)
    file.seek(place)
    return start[:1] == b"\x80" and b"\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19." in start


def _other_format(file: Any) -> str:
    """Return what a file is instead, if that is known."""
    try:
        file.seek(0)
        start = file.read(16)
    except Exception:
        return ""
    if not start:
        return "it is empty"
    if start[8:9] == b"{" and start[7:8] == b"\0":  # the length of a header of JSON, and the header
        return "it is a safetensors file, which serialization.load_safetensors() reads"
    if start[:6] == b"\x93NUMPY":
        return "it is an array of NumPy: from_numpy(numpy.load(...))"
    if start[:1] == b"\x80":
        return "it is a bare pickle"
    return ""


class _Damaged(RuntimeError):
    """An error whose text names the file."""


#: bytes that an entry may be unpacked to, whose size nothing else tells; larger ones must not be packed by more than this factor
_ENTRY, _FACTOR = 1 << 26, 100


def _read_archive(archive: zipfile.ZipFile, name: str, trusting: Any, encoding: str, map_location: Any) -> Any:
    entries = archive.namelist()
    pickles = [e for e in entries if e.endswith("/data.pkl") and e.count("/") == 1]
    if not pickles:
        if any("/code/" in e or e.endswith("/constants.pkl") for e in entries):
            raise RuntimeError(f"{name!r} is a TorchScript archive, which holds a program: save a state_dict() with save()")
        raise RuntimeError(f"{name!r} is a zip archive, but not a file of save(): it lacks data.pkl")
    root = pickles[0].rsplit("/", 1)[0]
    order = _read_entry(archive, name, f"{root}/byteorder").decode() if f"{root}/byteorder" in entries else "little"
    storages: dict[str, tuple[Any, ...]] = {}

    def storage(key: str, d: dtype, numel: int) -> tuple[Any, ...]:
        found = storages.get(key)
        if found is None:
            array = storage_array(bytearray(_read_entry(archive, name, f"{root}/data/{key}", numel * d.itemsize)), d)
            if order != sys.byteorder:
                array.byteswap(inplace=True)
            found = storages[key] = (array, d)
        elif found[1] is not d:
            found = (found[0].view(d.carrier), d)
        return found

    previous, state.grad = state.grad, True
    try:
        return _Unpickler(_read_entry(archive, name, pickles[0]), storage, trusting, encoding, map_location).load()
    except pickle.UnpicklingError as error:
        raise pickle.UnpicklingError(f"{name!r}: {error}") from None
    except _Damaged as error:
        raise RuntimeError(str(error)) from None
    except Elsewhere:
        raise
    except Exception as error:
        if trusting and not isinstance(error, (EOFError, IndexError, KeyError, struct.error, UnicodeDecodeError)):
            raise
        raise RuntimeError(f"{name!r} is damaged: its data.pkl cannot be read ({type(error).__name__}: {error})") from None
    finally:
        state.grad = previous


def _read_entry(archive: zipfile.ZipFile, name: str, entry: str, size: int | None = None) -> bytes:
    """Return an entry, of ``size`` bytes if that is known: what it says of itself is compared before it is unpacked."""
    try:
        info = archive.getinfo(entry)
        if size is not None and info.file_size != size:
            raise _Damaged(f"{name!r} is damaged: {entry.partition('/')[2]} has {info.file_size} bytes instead of {size}")
        if info.file_size > max(_ENTRY, _FACTOR * info.compress_size) and size is None:
            raise _Damaged(f"{name!r} is damaged: {entry} would unpack to {info.file_size} bytes")
        with archive.open(info) as file:
            data = file.read(info.file_size + 1)
        if len(data) != info.file_size:
            raise _Damaged(f"{name!r} is damaged: {entry} has {len(data)} bytes instead of {info.file_size}")
        return data
    except KeyError:
        raise _Damaged(f"{name!r} is damaged: it lacks {entry}") from None
    except _Damaged:
        raise
    except Exception as error:  # zipfile and zlib raise a variety
        raise _Damaged(f"{name!r} is damaged: {entry} cannot be read ({error})") from None
