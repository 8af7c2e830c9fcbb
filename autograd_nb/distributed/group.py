"""Groups of ranks, and the world of all: `init_process_group` begins it.

Source: https://docs.pytorch.org/docs/stable/distributed.html#initialization
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from datetime import timedelta
from threading import Lock
from typing import Any

import numpy as np

from .. import launch
from ..config import allowance
from ..kernels.order import BEGUN, DONE, GIVEN_UP, WORDS
from ..ops.creation.cast import as_device
from ..tensor import Tensor, wrap
from . import mpi, rendezvous, waiting
from .courier import Courier
from .ending import end_together
from .failures import DifferentCallsError, DistBackendError
from .thread import communication, drain
from .trail import Trail, trails
from .watch import Watch, holder
from .work import Task

default_pg_timeout: timedelta = timedelta(minutes=30)
BACKENDS = ("gloo", "mpi", "nccl", "ucc", "xccl")
_UNSET = "Default process group has not been initialized, please make sure to call init_process_group."


class ProcessGroup:
    """Ranks that make calls together. Each call has a number in its group, the same on all of its ranks.

    >>> dist.group.WORLD.size(), dist.group.WORLD.rank() == rank
    (2, True)
    """

    name: str
    ranks: tuple[int, ...]
    backend: str
    timeout: float
    number: int
    lock: Lock
    comm: Any
    agreement: Any
    messages: Any
    order: Tensor
    words: np.ndarray
    courier: Courier | None
    trail: Trail | None

    def __init__(self, name: str, ranks: Sequence[int], own: int, backend: str, timeout: float, comm: Any):
        self.name, self.ranks, self.backend, self.timeout = name, tuple(ranks), backend, timeout
        self.number = 0
        self.known: set[Any] = set()
        self.lock = Lock()
        self._rank = self.ranks.index(own)
        # comparisons and messages have their own, so that nothing meets what it is not meant for
        self.comm, self.agreement, self.messages = comm, comm.Dup(), comm.Dup()
        self.words = np.zeros(WORDS, np.int64)
        waiting.set_patience(self.words, world.crowded)
        self.order = wrap(self.words)  # what compiled collectives write
        launch.orders.append(self.order)
        self.trail = trails.begin(name, self.ranks, own) if len(self.ranks) > 1 else None
        self.courier = None  # makes the calls that compiled programs hand over, from the first one on

    @property
    def group_name(self) -> str:
        """Return its name, the same on all ranks."""
        return self.name

    def rank(self) -> int:
        """Return this process's rank in the group."""
        return self._rank

    def size(self) -> int:
        """Return the number of ranks."""
        return len(self.ranks)

    def submit(self, task: Task, here: bool = False) -> Task:
        """Give a collective its number, and to the communication thread; or (``here``) run it at once where nothing else is to be done.

        What a call's own continuation begins is a part of that call, and has no number.
        """
        thread = communication()
        if thread.inside():
            thread.run_here(task)
            return task
        if self.courier is not None:
            self.courier.settle()
        with self.lock:
            self.number += 1
            self.words[BEGUN] = self.number
            task.seq = self.made()
            if not (here and thread.take_turn()):
                return thread.submit(task)
        thread.run_here(task)
        return task

    def note(self, task: Task, error: BaseException | None) -> None:
        """Let a call that has run go into what the ranks compare, unless compiled programs have made calls, which do not."""
        trail = self.trail
        if trail is None or trail.closed:
            return
        if self.words[DONE]:
            trail.closed = True
        elif isinstance(error, DifferentCallsError):  # which all ranks have got
            trail.add(task.seq, "refused", "a call that was refused", "")
        else:
            trail.add(task.seq, task.kind or (task.name, task.text), task.name, task.text)

    def made(self) -> int:
        """Return how many collectives this rank has begun, those of compiled programs among them."""
        return self.number + int(self.words[DONE])

    def end(self) -> None:
        """Let compiled programs wait for nobody here any more."""
        self.words[GIVEN_UP] = 1
        if self.courier is not None:
            self.courier.close()
        launch.orders[:] = [order for order in launch.orders if order is not self.order]

    def submit_beside(self, task: Task) -> Task:
        """Give what only some ranks do to the communication thread, without a number."""
        return communication().submit(task)

    def agreed(self, known: Any) -> bool:
        """Return whether a call of this kind needs no comparison with the other ranks any more."""
        return (known in self.known and not world.detail) or self.size() == 1


class GroupMember:
    """A number for no group: `new_group` returns it on ranks outside; ``WORLD`` is the group of all, None before there is one.

    >>> dist.new_group([0]) == dist.GroupMember.NON_GROUP_MEMBER if rank == 1 else dist.new_group([0]).size() == 1
    True
    """

    WORLD: ProcessGroup | None = None
    NON_GROUP_MEMBER = -100


class _GroupNames(type):
    @property
    def WORLD(cls) -> ProcessGroup | None:
        """Return the group of all ranks, None before there is one."""
        return GroupMember.WORLD


class group(metaclass=_GroupNames):
    """``group.WORLD``: the group of all ranks.

    >>> dist.get_world_size(dist.group.WORLD)
    2
    """


class _World:
    groups: dict[str, ProcessGroup] = {}
    made = 0
    detail = False
    crowded = False  #: whether this machine has more ranks than cores for them


world: _World = _World()


def is_initialized() -> bool:
    """Return whether there is a group of all ranks.

    >>> dist.is_initialized()
    True
    """
    return GroupMember.WORLD is not None


def default_group() -> ProcessGroup:
    """Return the group of all ranks. ValueError before there is one."""
    if GroupMember.WORLD is None:
        raise ValueError(_UNSET)
    return GroupMember.WORLD


def limit_of(timeout: timedelta | None) -> float:
    """Return the seconds of a time limit, 30 minutes where none is given. TypeError for anything but a timedelta."""
    if timeout is None:
        return default_pg_timeout.total_seconds()
    if not isinstance(timeout, timedelta):
        raise TypeError(f"Expected timeout argument to be of type datetime.timedelta, got {timeout}")
    return timeout.total_seconds()


def _backend(name: Any) -> str:
    given = str(name or "mpi").lower()
    parts = [part.rpartition(":")[2] for part in given.split(",")]
    if not all(part in BACKENDS for part in parts):
        raise ValueError(f"Unknown backend '{name}': gloo, mpi and nccl are known here, and all mean MPI")
    return given


def _meeting_point(init_method: str | None) -> tuple[str, int] | None:
    """Return the host and port where ranks meet that nobody started together, None where the environment does not say."""
    host, port = os.environ.get("MASTER_ADDR"), os.environ.get("MASTER_PORT")
    if init_method is not None and init_method.startswith("tcp://"):
        host, _, port = init_method[len("tcp://") :].partition("?")[0].rpartition(":")
    return (host, int(port)) if host and port else None


def _place(init_method: str | None, world_size: int, rank: int) -> tuple[int, int]:
    """Return (rank, number of ranks) as the caller or the environment wants them, -1 where they do not say."""
    if init_method is not None and init_method.partition("://")[0] not in ("env", "tcp", "file"):
        raise ValueError(f"No rendezvous handler for {init_method.partition('://')[0]}://")
    size = world_size if world_size is not None and world_size > 0 else int(os.environ.get("WORLD_SIZE", -1))
    return rank if rank is not None and rank >= 0 else int(os.environ.get("RANK", -1)), size


def init_process_group(
    backend: str | None = None, init_method: str | None = None, timeout: timedelta | None = None, world_size: int = -1, rank: int = -1,
    store: Any = None, group_name: str = "", pg_options: Any = None, device_id: Any = None,
) -> None:  # fmt: skip
    """Begin: make the group of all ranks that `python -m autograd_nb run -n …`, mpiexec or srun started; alone it has one rank.

    Every backend's name means MPI, and ``init_method`` and ``store`` are not needed, as the ranks know one another. ``rank`` and
    ``world_size`` (or RANK and WORLD_SIZE) may say how the ranks are numbered, and must fit the number that was started. Processes that nobody
    started together meet at MASTER_ADDR and MASTER_PORT, or at ``tcp://host:port``, if the MPI is MPICH.
    ``timeout``: for how long a call waits for other ranks, 30 minutes where nothing is said.

    Errors: RuntimeError without MPI, ValueError the second time and for a ``world_size`` that was not started.

    >>> dist.init_process_group("gloo")
    Traceback (most recent call last):
    ValueError: trying to initialize the default process group twice!
    >>> dist.get_rank() == rank, dist.get_world_size()
    (True, 2)
    """
    if is_initialized():
        raise ValueError("trying to initialize the default process group twice!")
    limit, name = limit_of(timeout), _backend(backend)
    own, size = _place(init_method, world_size, rank)
    point = _meeting_point(init_method)
    if size > 1 and own >= 0 and point is not None and not mpi.started() and mpi.launched() is None:
        rendezvous.join(own, size, *point, limit)
    MPI = mpi.mpi()
    started = MPI.COMM_WORLD.Get_size()
    if size not in (-1, started):
        raise ValueError(
            f"Error initializing: world_size is {size}, but MPI started {started} process{'es' if started > 1 else ''}; start the program with "
            f"`python -m autograd_nb run -n {size} program.py`, mpiexec or srun"
        )
    comm = MPI.COMM_WORLD.Split(0, own if own >= 0 else MPI.COMM_WORLD.Get_rank())
    if own not in (-1, comm.Get_rank()):
        raise ValueError(f"Error initializing: rank is {own}, but there are only {started} ranks, or another one has this number too")
    local, near = mpi.launched(), comm.Split_type(MPI.COMM_TYPE_SHARED)
    mpi.name_ranks(comm.Get_rank(), started, near.Get_rank() if local is None else local[2])
    world.crowded = _crowded(near)
    waiting.set_patience(waiting.words, world.crowded)
    near.Free()
    world.detail = os.environ.get("TORCH_DISTRIBUTED_DEBUG", "").upper() == "DETAIL"
    if holder.watch is None:
        holder.watch = Watch(MPI, comm.Dup())
        end_together(MPI, leave_all)
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=_forked)
    world.made += 1
    made = ProcessGroup(f"world {world.made}", range(started), comm.Get_rank(), name, limit, comm)
    world.groups[made.name] = GroupMember.WORLD = made


def _crowded(near: Any) -> bool:
    """Return whether the ranks of one machine, those of ``near``, are more than the processors that they may use, all together."""
    every = near.allgather(allowance())
    granted = sum({name: quota for _, name, quota in every}.values())
    return len(every) > min(len(set().union(*[processors for processors, _, _ in every])), granted)


def _forked() -> None:
    """Let calls raise in a process that was forked off: MPI, and the threads that call it, are its parent's."""
    if holder.watch is not None:
        holder.watch = None
        communication().broken = DistBackendError("a forked process makes no collective calls: MPI is its parent's; start ranks by `run -n` or spawn()")
        for g in world.groups.values():
            g.words[GIVEN_UP] = 1


def leave_all() -> None:
    """Tell the other ranks that this one makes no more calls."""
    if holder.watch is not None:
        numbers = {g.name: g.made() for g in world.groups.values()}
        holder.watch.leave(None, list(range(holder.watch.comm.Get_size())), numbers)


def destroy_process_group(group: ProcessGroup | None = None) -> None:
    """End a group, or all of them: this rank makes no more calls there. What was begun ends first.

    >>> pair = dist.new_group([0, 1])
    >>> dist.destroy_process_group(pair)
    >>> dist.get_rank(pair)
    Traceback (most recent call last):
    ValueError: Invalid process group specified or has been destroyed.
    """
    if group is GroupMember.NON_GROUP_MEMBER:
        return
    if group is None and not is_initialized():
        raise AssertionError("Process group cannot be None: there is none to destroy")
    of = default_group() if group is None else known_group(group)
    drain(of.timeout)
    ended = list(world.groups.values()) if of is GroupMember.WORLD else [of]
    for g in ended:
        if g.courier is not None:
            g.courier.settle(g.timeout)
        if holder.watch is not None:
            holder.watch.leave(g.name, list(g.ranks), {g.name: g.made()})
        trails.end(g.name)
        g.end()
        del world.groups[g.name]
    if of is GroupMember.WORLD:
        GroupMember.WORLD = None


def known_group(given: Any) -> ProcessGroup:
    """Return the group that is meant: all ranks where none is named. ValueError for what is no group, or not any more."""
    if given is None:
        return default_group()
    if not isinstance(given, ProcessGroup):
        raise ValueError(f"Group {given} is not registered, please create group with torch.distributed.new_group API")
    if given.name not in world.groups:
        raise ValueError("Invalid process group specified or has been destroyed.")
    return given


def get_rank(group: Any = None) -> int:
    """Return this process's rank in the group; -1 outside of it.

    >>> dist.get_rank() in (0, 1)
    True
    """
    if group == GroupMember.NON_GROUP_MEMBER:
        return -1
    return known_group(group).rank()


def get_world_size(group: Any = None) -> int:
    """Return the number of ranks in the group; -1 outside of it.

    >>> dist.get_world_size()
    2
    """
    if group == GroupMember.NON_GROUP_MEMBER:
        return -1
    return known_group(group).size()


def get_backend(group: Any = None) -> str:
    """Return the name that the group was made with.

    >>> dist.get_backend()
    'gloo'
    """
    if group == GroupMember.NON_GROUP_MEMBER:
        raise ValueError("Invalid process group specified")
    return known_group(group).backend


def get_group_rank(group: ProcessGroup, global_rank: int) -> int:
    """Return the rank in the group of a rank among all. ValueError where it is not in it.

    >>> dist.get_group_rank(dist.new_group([0, 1]), 1)
    1
    """
    ranks = known_group(group).ranks
    if global_rank not in ranks:
        raise ValueError(f"Global rank {global_rank} is not part of group {group}")
    return ranks.index(global_rank)


def get_global_rank(group: ProcessGroup, group_rank: int) -> int:
    """Return the rank among all of a rank in the group. ValueError where it has no such rank.

    >>> dist.get_global_rank(dist.group.WORLD, 1)
    1
    """
    ranks = known_group(group).ranks
    if not 0 <= group_rank < len(ranks):
        raise ValueError(f"Group rank {group_rank} is not part of group {group}")
    return ranks[group_rank]


def get_process_group_ranks(group: ProcessGroup | None) -> list[int]:
    """Return the group's ranks among all.

    >>> dist.get_process_group_ranks(dist.group.WORLD)
    [0, 1]
    """
    return list(known_group(group).ranks)


def get_node_local_rank(fallback_rank: int | None = None) -> int:
    """Return the rank on this machine, LOCAL_RANK.

    >>> dist.get_node_local_rank(fallback_rank=0) in (0, 1)
    True
    """
    if "LOCAL_RANK" in os.environ:
        return int(os.environ["LOCAL_RANK"])
    if fallback_rank is not None:
        return int(fallback_rank)
    raise RuntimeError("LOCAL_RANK is not in the environment. Consider passing fallback_rank to allow `get_node_local_rank` to work")


def get_debug_level() -> str:
    """Return "DETAIL" or "OFF", as TORCH_DISTRIBUTED_DEBUG says it when the group is made.

    >>> dist.get_debug_level()
    'OFF'
    """
    return "DETAIL" if world.detail else "OFF"


def is_torchelastic_launched() -> bool:
    """Return whether `python -m autograd_nb run -n …` started this process.

    >>> dist.is_torchelastic_launched()
    False
    """
    return "TORCHELASTIC_RUN_ID" in os.environ


def is_backend_available(backend: str) -> bool:
    """Return whether a backend's name is known, and MPI is there, which all of them mean.

    >>> dist.is_backend_available("gloo"), dist.is_backend_available("carrier pigeons")
    (True, False)
    """
    return backend.lower() in BACKENDS and mpi.is_available()


is_mpi_available: Callable[[], bool] = mpi.is_available
is_gloo_available: Callable[[], bool] = mpi.is_available


def get_default_backend_for_device(device: Any) -> str:
    """Return the backend's name that programs for a device name; get_default_backend_for_device("cpu") = 'gloo'.

    >>> dist.get_default_backend_for_device("cpu")
    'gloo'
    """
    as_device(device)
    return "gloo"


def get_pg_count() -> int:
    """Return the number of groups that this rank is in.

    >>> dist.get_pg_count() >= 1
    True
    """
    return len(world.groups)


def is_ucc_available() -> bool:
    """Return False; the name "ucc" is accepted all the same, and means MPI.

    >>> dist.is_ucc_available()
    False
    """
    return False


def is_nccl_available() -> bool:
    """Return False: there are no GPUs. The name "nccl" is accepted all the same.

    >>> dist.is_nccl_available()
    False
    """
    return False
