"""`save` and `load` of checkpoints that all ranks take part in."""

from __future__ import annotations

import os
import time
import uuid
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Protocol, runtime_checkable

from ... import distributed as dist
from ...tensor import Tensor
from .files import CheckpointException, FileSystemReader, FileSystemWriter, flattened, put

State = dict[str, Any]


@runtime_checkable
class Stateful(Protocol):
    """An object with a state of its own: `save` asks for it, and `load` gives it back."""

    def state_dict(self) -> dict[str, Any]: ...

    def load_state_dict(self, state_dict: dict[str, Any]) -> None: ...


class _Ranks:
    """The ranks that write and read together; one where there is no process group."""

    def __init__(self, group: Any, no_dist: bool):
        self.alone = no_dist or not dist.is_initialized()
        self.group = None if self.alone else group
        self.rank = 0 if self.alone else dist.get_rank(group)
        self.size = 1 if self.alone else dist.get_world_size(group)

    def all(self, value: Any) -> list[Any]:
        """Return what each rank gives."""
        if self.alone:
            return [value]
        found: list[Any] = [None] * self.size
        dist.all_gather_object(found, value, self.group)
        return found

    def agree(self, what: str, result: Any, error: BaseException | None) -> list[Any]:
        """Return what each rank found. CheckpointException on all ranks where one failed."""
        every = self.all((result, None if error is None else f"{type(error).__name__}: {error}"))
        failures: dict[int, Any] = {rank: text for rank, (_, text) in enumerate(every) if text is not None}
        if failures:
            if self.rank in failures and error is not None:
                failures[self.rank] = error
            raise CheckpointException(what, failures) from error
        return [found for found, _ in every]


def _states(state_dict: Mapping[str, Any]) -> State:
    return {k: v.state_dict() if isinstance(v, Stateful) else v for k, v in state_dict.items()}


def _together(value: Any) -> Any:
    """Return the whole of a tensor in parts, which all ranks collect; others as they are."""
    parts = isinstance(value, Tensor) and "_sharding" in value.__dict__
    return value.__dict__["_sharding"].collected(value) if parts else value


def _share(ranks: _Ranks, state_dict: Mapping[str, Any]) -> tuple[dict[str, Tensor], State]:
    """Return what this rank writes: each entry is written once, by the one of its holders that has least to write."""
    flat = {name: _together(value) for name, _, value in flattened(_states(state_dict))}
    own = {name: value.numel() * value.dtype.itemsize if isinstance(value, Tensor) else 0 for name, value in flat.items()}
    every = ranks.all(own)
    holders: dict[str, list[int]] = {}
    for rank, sizes in enumerate(every):
        for name in sizes:
            holders.setdefault(name, []).append(rank)
    load, mine = [0] * ranks.size, set()
    for name in sorted(holders, key=lambda name: (-every[holders[name][0]][name], name)):
        writer = min(holders[name], key=lambda rank: (load[rank], rank))
        load[writer] += every[writer][name] + 1
        if writer == ranks.rank:
            mine.add(name)
    tensors = {name: v for name, v in flat.items() if name in mine and isinstance(v, Tensor)}
    return tensors, {name: v for name, v in flat.items() if name in mine and name not in tensors}


def _writer(checkpoint_id: Any, writer: Any) -> FileSystemWriter:
    if writer is None and checkpoint_id is None:
        raise ValueError("save(): say where: checkpoint_id is the path of a folder")
    if writer is None:
        return FileSystemWriter(checkpoint_id)
    if not isinstance(writer, FileSystemWriter):
        raise TypeError(f"storage_writer must be a FileSystemWriter, not {type(writer).__name__}")
    return writer


def _named(ranks: _Ranks) -> str:
    """Return the name of this rank's data file, which no other checkpoint has."""
    key: str = ranks.all(uuid.uuid4().hex[:12])[0]
    return f"__{key}_{ranks.rank}.distcp"


def save(
    state_dict: State, *, checkpoint_id: str | os.PathLike[str] | None = None, storage_writer: Any = None, planner: Any = None,
    process_group: Any = None, no_dist: bool = False, use_collectives: bool = True,
) -> None:  # fmt: skip
    """Write a nested state of tensors and numbers into the folder ``checkpoint_id``: all ranks call it, and each writes its part.

    What several ranks hold under one name is taken to be the same, and written once. Values that have a ``state_dict`` are asked for it. The
    checkpoint that was there stays as it was until this one is whole. CheckpointException on all ranks where one cannot write.
    """
    ranks = _Ranks(process_group, no_dist)
    writer = _writer(checkpoint_id, storage_writer)
    tensors, others = _share(ranks, state_dict)
    name, found, error = _named(ranks), None, None
    try:
        found = writer.data(name, tensors, others)
    except Exception as raised:
        error = raised
    every = ranks.agree("the checkpoint was not written", found, error)
    error = None
    if ranks.rank == 0:
        try:
            writer.metadata({key: place for part in every for key, place in part.items()})
        except Exception as raised:
            error = raised
    ranks.agree("the checkpoint was not written", None, error)


def async_save(
    state_dict: State, *, checkpoint_id: str | os.PathLike[str] | None = None, storage_writer: Any = None, planner: Any = None,
    process_group: Any = None, async_checkpointer_type: Any = None, async_stager: Any = None, no_dist: bool = False, use_collectives: bool = True,
) -> Future[None]:  # fmt: skip
    """Copy the state now, and write it as `save` does while the program goes on; the future of it.

    The copies are made before it returns, so the tensors may change. Ranks tell one another that they are through by files beside the data.
    """
    ranks = _Ranks(process_group, no_dist)
    writer = _writer(checkpoint_id, storage_writer)
    tensors, others = _share(ranks, state_dict)
    name = _named(ranks)
    held = {key: t.detach().clone() for key, t in tensors.items()}

    def write() -> None:
        found = writer.data(name, held, others)
        if ranks.size > 1:
            FileSystemWriter(writer.path / f"{name}.part").metadata(found)
        if ranks.rank == 0:
            _collect(writer, name, ranks.size, found)

    executor = ThreadPoolExecutor(1, "autograd_nb-checkpoint")
    try:
        return executor.submit(write)
    finally:
        executor.shutdown(wait=False)


#: seconds between two looks at what the other ranks wrote, and for how long rank 0 looks
LOOK, LONGEST = 0.02, 1800.0


def _collect(writer: FileSystemWriter, name: str, size: int, own: dict[str, list[Any]]) -> None:
    """Wait for the other ranks' lists, and make the checkpoint valid. TimeoutError where one does not come."""
    stem, entries, end = name.rpartition("_")[0], dict(own), time.monotonic() + LONGEST
    folders = [writer.path / f"{stem}_{rank}.distcp.part" for rank in range(size)] if size > 1 else []
    for rank, folder in enumerate(folders):
        while not (folder / ".metadata").exists():
            if time.monotonic() > end:
                raise TimeoutError(f"rank {rank} did not write its part of the checkpoint {writer.path}")
            time.sleep(LOOK)
        entries.update(FileSystemReader(folder).entries())
    writer.metadata(entries)
    for folder in folders:
        (folder / ".metadata").unlink()
        folder.rmdir()


def load(
    state_dict: State, *, checkpoint_id: str | os.PathLike[str] | None = None, storage_reader: Any = None, planner: Any = None,
    process_group: Any = None, no_dist: bool = False,
) -> None:  # fmt: skip
    """Read what ``state_dict`` names from the folder: into its tensors, and in place of what is no tensor; any number of ranks may load.

    Values that have a ``state_dict`` are given theirs by ``load_state_dict``. CheckpointException on all ranks where a name is missing, a shape
    differs, or a file cannot be read.
    """
    if storage_reader is None and checkpoint_id is None:
        raise ValueError("load(): say where: checkpoint_id is the path of a folder")
    ranks = _Ranks(process_group, no_dist)
    reader = FileSystemReader(checkpoint_id) if storage_reader is None else storage_reader  # type: ignore[arg-type]
    states = _states(state_dict)
    for step in (_looked_at, _taken_over):
        error = None
        try:
            step(reader, states)
        except Exception as raised:
            error = raised
        ranks.agree("the checkpoint was not loaded", None, error)
    for key, value in state_dict.items():
        if isinstance(value, Stateful):
            value.load_state_dict(states[key])
        else:
            state_dict[key] = states[key]


def _shape(t: Tensor) -> tuple[int, ...]:
    return t.__dict__["_sharding"].whole if "_sharding" in t.__dict__ else tuple(t.shape)


def _looked_at(reader: FileSystemReader, states: State) -> None:
    """Refuse, before anything is changed on any rank, what is missing, does not fit or is damaged."""
    entries = reader.entries()
    for name, _, value in flattened(states):
        if name not in entries:
            raise RuntimeError(f"Missing key in checkpoint state_dict: {name}.")
        shape = tuple(entries[name][4])
        if isinstance(value, Tensor) and (not entries[name][3] or shape != _shape(value)):
            raise ValueError(f"Size mismatch between saved {shape} and current: {_shape(value)} for {name}")
        if isinstance(value, Tensor):
            reader.content(entries[name])
        elif entries[name][3]:
            raise ValueError(f"{name} was saved as a tensor, and is {type(value).__name__} now")
        else:
            reader.read(entries[name], None)


def _taken_over(reader: FileSystemReader, states: State) -> None:
    entries = reader.entries()
    for name, path, value in list(flattened(states)):
        if isinstance(value, Tensor):
            reader.read(entries[name], value)
        elif path:
            put(states, path, reader.read(entries[name], None))


def save_state_dict(
    state_dict: State, storage_writer: Any, process_group: Any = None, coordinator_rank: int = 0, no_dist: bool = False, planner: Any = None
) -> None:
    """Write a checkpoint: the older name of `save`."""
    save(state_dict, storage_writer=storage_writer, process_group=process_group, no_dist=no_dist)


def load_state_dict(
    state_dict: State, storage_reader: Any, process_group: Any = None, coordinator_rank: int = 0, no_dist: bool = False, planner: Any = None
) -> None:
    """Read a checkpoint: the older name of `load`."""
    load(state_dict, storage_reader=storage_reader, process_group=process_group, no_dist=no_dist)
