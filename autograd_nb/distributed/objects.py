"""Collectives on any objects that can be pickled; unpickling runs what the sender wrote, so all ranks must be trusted.

Source: https://docs.pytorch.org/docs/stable/distributed.html#torch.distributed.all_gather_object
"""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np

from ..tensor import wrap
from . import checks
from .collectives import call
from .group import ProcessGroup
from .messages import irecv, isend
from .work import Work


def all_gather_object(object_list: list[Any], obj: Any, group: Any = None) -> None:
    """Put the objects of all ranks into ``object_list``, which has a place for each.

    >>> every = [None, None]
    >>> dist.all_gather_object(every, {"rank": rank})
    >>> every
    [{'rank': 0}, {'rank': 1}]
    """
    if (of := checks.group_of("all_gather_object", group)) is None:
        return
    checks.as_many("all_gather_object", "output", len(object_list), of)
    own, found = pickle.dumps(obj), []
    _through(call(of, "all_gather_object", "", (), lambda: found.extend(of.comm.allgather(own)), None, True))
    object_list[:] = [pickle.loads(data) for data in found]


def gather_object(
    obj: Any, object_gather_list: list[Any] | None = None, dst: int | None = None, group: Any = None, group_dst: int | None = None
) -> None:
    """Put the objects of all ranks into rank ``dst``'s ``object_gather_list``.

    >>> every = [None, None] if rank == 0 else None
    >>> dist.gather_object("ab"[rank], every)
    >>> every == (["a", "b"] if rank == 0 else None)
    True
    """
    if (of := checks.group_of("gather_object", group)) is None:
        return
    root = checks.root("gather_object", of, dst, group_dst, 0)
    if of.rank() == root:
        if not object_gather_list:
            raise ValueError("Argument ``gather_list`` must be specified on destination rank.")
        checks.as_many("gather_object", "output", len(object_gather_list), of)
    elif object_gather_list:
        raise ValueError("Argument ``gather_list`` must NOT be specified on non-destination ranks.")
    own, found = pickle.dumps(obj), []
    _through(call(of, "gather_object", f"to {of.ranks[root]}", (root,), lambda: found.extend(of.comm.gather(own, root) or ()), None, True))
    if object_gather_list:
        object_gather_list[:] = [pickle.loads(data) for data in found]


def broadcast_object_list(
    object_list: list[Any], src: int | None = None, group: Any = None, device: Any = None, group_src: int | None = None
) -> None:
    """Give every rank the objects in rank ``src``'s list, in their places.

    >>> objects = ["a", 1] if rank == 0 else [None, None]
    >>> dist.broadcast_object_list(objects, src=0)
    >>> objects
    ['a', 1]
    """
    if (of := checks.group_of("broadcast_object_list", group)) is None:
        return
    root, found = checks.root("broadcast_object_list", of, src, group_src, 0), []
    own = [pickle.dumps(obj) for obj in object_list] if of.rank() == root else None
    key = (len(object_list), root)
    text = f"of {len(object_list)} from {of.ranks[root]}"
    _through(call(of, "broadcast_object_list", text, key, lambda: found.extend(of.comm.bcast(own, root)), None, True))
    if of.rank() != root:
        object_list[:] = [pickle.loads(data) for data in found]


def scatter_object_list(
    scatter_object_output_list: list[Any], scatter_object_input_list: list[Any] | None = None, src: int | None = None, group: Any = None,
    group_src: int | None = None,
) -> None:  # fmt: skip
    """Put one of rank ``src``'s objects into the first place of each rank's output list.

    >>> own = [None]
    >>> dist.scatter_object_list(own, ["a", "b"] if rank == 0 else None, src=0)
    >>> own[0] == "ab"[rank]
    True
    """
    if (of := checks.group_of("scatter_object_list", group)) is None:
        return
    if not isinstance(scatter_object_output_list, list) or len(scatter_object_output_list) < 1:
        raise ValueError("Expected argument scatter_object_output_list to be a list of size at least 1.")
    root, found = checks.root("scatter_object_list", of, src, group_src, 0), []
    own = None
    if of.rank() == root:
        if scatter_object_input_list is None:
            raise ValueError("source rank must provide non-None scatter_object_input_list")
        checks.as_many("scatter_object_list", "input", len(scatter_object_input_list), of)
        own = [pickle.dumps(obj) for obj in scatter_object_input_list]
    _through(call(of, "scatter_object_list", f"from {of.ranks[root]}", (root,), lambda: found.append(of.comm.scatter(own, root)), None, True))
    scatter_object_output_list[0] = pickle.loads(found[0])


def send_object_list(
    object_list: list[Any], dst: int | None = None, group: Any = None, device: Any = None, group_dst: int | None = None, use_batch: bool = False
) -> None:
    """Send the objects to rank ``dst``, which calls `recv_object_list` with a list as long.

    >>> objects = ["a"] if rank == 0 else [None]
    >>> source = dist.send_object_list(objects, dst=1) if rank == 0 else dist.recv_object_list(objects, src=0)
    >>> objects
    ['a']
    """
    if (of := checks.group_of("send_object_list", group)) is None:
        return
    data = [pickle.dumps(obj) for obj in object_list]
    _wait(of, isend(wrap(np.array([len(d) for d in data], np.int64)), dst, of, 0, group_dst))
    _wait(of, isend(wrap(np.frombuffer(b"".join(data), np.uint8).copy()), dst, of, 0, group_dst))


def recv_object_list(
    object_list: list[Any], src: int | None = None, group: Any = None, device: Any = None, group_src: int | None = None, use_batch: bool = False
) -> int:
    """Put the objects that rank ``src``, or any, sends into the list; the rank that sent them.

    >>> objects = ["a"] if rank == 0 else [None]
    >>> source = dist.send_object_list(objects, dst=1) if rank == 0 else dist.recv_object_list(objects)
    >>> objects, source == (0 if rank == 1 else None)
    (['a'], True)
    """
    if (of := checks.group_of("recv_object_list", group)) is None:
        return -1
    sizes = wrap(np.zeros(len(object_list), np.int64))
    source = _wait(of, irecv(sizes, src, of, 0, group_src)).source_rank()
    lengths = sizes.tolist()
    data = wrap(np.zeros(sum(lengths), np.uint8))
    _wait(of, irecv(data, source, of))
    text, at = data.numpy().tobytes(), 0
    for i, n in enumerate(lengths):
        object_list[i] = pickle.loads(text[at : at + n])
        at += n
    return source


def _through(work: Work | None) -> None:
    """Wait for a call whose sizes only the communication thread learns."""
    assert work is not None
    work.wait()


def _wait(of: ProcessGroup, work: Work | None) -> Work:
    assert work is not None
    work.wait()
    return work
