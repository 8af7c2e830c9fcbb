"""Waiting for one another, and groups of some ranks, which all ranks make together.

Source: https://docs.pytorch.org/docs/stable/distributed.html#torch.distributed.barrier
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import numpy as np

from . import checks
from .agreement import agree
from .collectives import call
from .failures import DistBackendError, listed
from .group import GroupMember, ProcessGroup, default_group, limit_of, world
from .mpi import mpi
from .thread import through
from .work import Task, Work

TAGS = 32000  #: MPI has at least 32768


def barrier(group: Any = None, async_op: bool = False, device_ids: Any = None) -> Work | None:
    """Wait until all ranks of the group are here.

    >>> dist.barrier()
    """
    if (of := checks.group_of("barrier", group)) is None:
        return None
    if device_ids is not None and not isinstance(device_ids, list):
        raise TypeError("Invalid function argument: device_ids type should be List[int]")
    return call(of, "barrier", "", (), lambda: through(of.comm.Ibarrier()), [], async_op)


class _Roll:
    """The part of rank 0 in a monitored barrier: it hears who arrives, and then tells all whether everybody did."""

    def __init__(self, group: ProcessGroup, tag: int, limit: float, every: bool):
        self.group, self.tag, self.limit, self.every = group, tag, limit, every
        self.end = time.monotonic() + limit
        self.word = np.zeros(1, np.uint8)
        self.calls = {r: group.agreement.Irecv(np.zeros(1, np.uint8), r, tag) for r in range(1, group.size())}
        self.here: list[int] = []

    def polled(self) -> bool:
        for r in [r for r, request in self.calls.items() if request.Test()]:
            del self.calls[r]
            self.here.append(r)
        if self.calls and time.monotonic() < self.end:
            return False
        missing = [self.group.ranks[r] for r in self.calls]
        self.word[0] = not missing
        for r in self.here:
            self.group.agreement.Send(self.word, r, self.tag)
        for request in self.calls.values():
            request.Cancel()
        if missing:
            who = listed(missing if self.every else missing[:1]).capitalize()
            raise DistBackendError(f"[Rank {self.group.ranks[0]}]: {who} failed to pass monitoredBarrier in {self.limit * 1000:.0f} ms")
        return True


def _arrive(group: ProcessGroup, tag: int, limit: float) -> Callable[[], bool]:
    """Return what another rank than 0 does: it tells that it is here, and hears whether all are."""
    own, boss = group.ranks[group.rank()], group.ranks[0]
    word, end = np.zeros(1, np.uint8), time.monotonic() + limit + 1.0
    said, heard = group.agreement.Isend(np.ones(1, np.uint8), 0, tag), group.agreement.Irecv(word, 0, tag)

    def polled() -> bool:
        if heard.Test():
            said.Wait()
            if not word[0]:
                raise DistBackendError(
                    f"[Rank {own}]: Rank {boss} successfully reached monitoredBarrier, but received errors while waiting for send/recv from "
                    f"rank {boss}. Please check rank {boss} logs for faulty rank."
                )
            return True
        if time.monotonic() > end:
            heard.Cancel()
            raise DistBackendError(f"[Rank {own}]: Rank {boss} failed to pass monitoredBarrier in {limit * 1000:.0f} ms")
        return False

    return polled


def monitored_barrier(group: Any = None, timeout: timedelta | None = None, wait_all_ranks: bool = False) -> None:
    """Wait until all ranks are here; DistBackendError that names the first (or all) that did not come within ``timeout``.

    >>> dist.monitored_barrier(wait_all_ranks=True)
    """
    if (of := checks.group_of("monitored_barrier", group)) is None:
        return
    limit = of.timeout if timeout is None else limit_of(timeout)

    def run() -> None:
        tag = task.seq % TAGS
        task.polled = _Roll(of, tag, limit, wait_all_ranks).polled if of.rank() == 0 else _arrive(of, tag, limit)

    task = Task(of, "monitored_barrier", "", run, limit + 10.0)  # it names who is missing itself
    of.submit(task)
    Work(task).wait()


def new_group(
    ranks: list[int] | None = None, timeout: timedelta | None = None, backend: str | None = None, pg_options: Any = None,
    use_local_synchronization: bool = False, group_desc: str | None = None, device_id: Any = None,
) -> Any:  # fmt: skip
    """Make a group of some ranks. All ranks call it, in the same order (with ``use_local_synchronization`` only the members).

    ``GroupMember.NON_GROUP_MEMBER`` on ranks outside. ValueError for ranks that there are not, or twice.

    >>> pair = dist.new_group([0, 1])
    >>> t = torch.ones(1)
    >>> dist.all_reduce(t, group=pair)
    >>> t
    tensor([2.])
    """
    everyone = default_group()
    limit = everyone.timeout if timeout is None else limit_of(timeout)
    wanted = _checked(list(everyone.ranks) if ranks is None else list(ranks), everyone)
    member = everyone.ranks[everyone.rank()] in wanted
    if use_local_synchronization:
        if not member:
            return GroupMember.NON_GROUP_MEMBER
        name = f"group {wanted} {sum(g.ranks == tuple(wanted) for g in world.groups.values())}"
    else:
        world.made += 1
        name = f"group {world.made}"
    MPI = mpi()

    def run() -> Any:
        if not use_local_synchronization:
            agree(everyone, task, (tuple(wanted),), always=True)
        if not member:
            return None
        chosen = everyone.comm.Get_group().Incl(wanted)
        tag = int.from_bytes(hashlib.blake2b(name.encode(), digest_size=4).digest(), "big") % TAGS
        comm = everyone.comm.Create_group(chosen, tag)
        return ProcessGroup(name, wanted, everyone.rank(), backend or everyone.backend, limit, comm) if comm != MPI.COMM_NULL else None

    task = Task(everyone, "new_group", str(wanted), run, everyone.timeout, tuple(wanted) if use_local_synchronization else None)
    everyone.submit(task) if not use_local_synchronization else everyone.submit_beside(task)
    Work(task).wait()
    if task.result is None:
        return GroupMember.NON_GROUP_MEMBER
    world.groups[name] = task.result
    return task.result


def _checked(ranks: list[int], everyone: ProcessGroup) -> list[int]:
    """Return the ranks, sorted. ValueError for what are none."""
    size = everyone.size()
    if len(ranks) > size:
        raise ValueError("the new group's world size should be less or equal to the world size set by init_process_group")
    if len(set(ranks)) < len(ranks):
        raise ValueError(f"ranks list must not contain duplicate entries, got {ranks}")
    for r in ranks:
        if not 0 <= r < size:
            raise ValueError(f"Rank {r} is out of range. Valid ranks are 0 to {size - 1} (world_size={size})")
    return sorted(ranks)


def new_subgroups(
    group_size: int | None = None, group: Any = None, timeout: timedelta | None = None, backend: str | None = None, pg_options: Any = None,
    group_desc: str | None = None,
) -> tuple[Any, list[Any]]:  # fmt: skip
    """Make groups of ``group_size`` ranks each (those of one machine where it is None), the first of the first ranks; (this rank's, all).

    >>> own, every = dist.new_subgroups(1)
    >>> dist.get_process_group_ranks(own) == [rank], len(every)
    (True, 2)
    """
    everyone = default_group()
    each = int(os.environ.get("LOCAL_WORLD_SIZE", everyone.size())) if group_size is None else group_size
    if each <= 0:
        raise ValueError(f"The arg 'group_size' ({each}) must be positive")
    if each > everyone.size():
        raise ValueError(f"The arg 'group_size' ({each}) must not exceed the world size ({everyone.size()})")
    if everyone.size() % each:
        raise ValueError(f"The world size ({everyone.size()}) must be divisible by 'group_size={each}'")
    parts = [list(range(begin, begin + each)) for begin in range(0, everyone.size(), each)]
    return new_subgroups_by_enumeration(parts, timeout, backend, pg_options, group_desc)


def new_subgroups_by_enumeration(
    ranks_per_subgroup_list: list[list[int]], timeout: timedelta | None = None, backend: str | None = None, pg_options: Any = None,
    group_desc: str | None = None,
) -> tuple[Any, list[Any]]:  # fmt: skip
    """Make a group of each list of ranks, of which no rank is in two; (this rank's, None where it is in none, and all).

    >>> own, every = dist.new_subgroups_by_enumeration([[0], [1]])
    >>> dist.get_process_group_ranks(own) == [rank]
    True
    """
    if not ranks_per_subgroup_list:
        raise ValueError("The arg 'ranks_per_subgroup_list' cannot be empty")
    seen: set[int] = set()
    for r in (r for ranks in ranks_per_subgroup_list for r in ranks):
        if r in seen:
            raise ValueError(f"Rank {r} has appeared in more than one subgroup")
        seen.add(r)
    made = [new_group(ranks, timeout, backend, pg_options) for ranks in ranks_per_subgroup_list]
    return next((g for g in made if g is not GroupMember.NON_GROUP_MEMBER), None), made
