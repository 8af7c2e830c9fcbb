"""Collectives inside of captured functions: kernels that call MPI by address, so that a whole step stays one native program.

A captured call is the same call to the other ranks as one that Python makes: by the group's communicator, in its place among the group's calls.
So a rank that has captured a step works with one that has not. Ranks agree on a call's kind when it is captured, and the watch looks after
calls of programs as after all others. What is not served here (other collectives, truth values, float16 but in means of gradients) lets the
function run eagerly.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from .. import launch
from ..graph.modes import no_grad
from ..kernels.order import DONE, GIVEN_UP, INSIDE, KIND
from ..ops.creation.cast import copy_, dense
from ..tensor import Tensor, make
from .agreement import agree
from .buffers import NAMES, OPERATIONS
from .courier import Courier, possible
from .failures import DistBackendError
from .group import ProcessGroup, world
from .mpi import NATIVE, address, mpi
from .reduce_op import RedOpType, ReduceOp
from .thread import communication
from .watch import holder
from .work import Task, Work

_KERNELS = {name: launch.Kernel("collectives", name, outputs=2) for name in ("all_reduce", "broadcast", "all_gather", "reduce_scatter")}
_FUNCTIONS = {
    "all_reduce": "MPI_Iallreduce", "broadcast": "MPI_Ibcast", "all_gather": "MPI_Iallgather", "reduce_scatter": "MPI_Ireduce_scatter_block",
}  # fmt: skip
_HAND_OVER, _TAKE = launch.Kernel("collectives", "hand_over", outputs=4), launch.Kernel("collectives", "take", outputs=3)
MOST = 1 << 31  #: elements, which MPI's functions count by an int
WORTH = 1 << 16  #: bytes from which a call is handed over: a small one takes less time than that


def capturing() -> bool:
    """Return whether this thread's launches are being captured."""
    return hasattr(launch.observer(), "escapes") if launch.observing() else False


def refuse(reason: str) -> None:
    """Let the function that is captured run eagerly."""
    launch.observer().problem(reason)


def at_end(ask: Callable[[], str]) -> None:
    """Call this when the captured run has ended, for a reason to let the function run eagerly; "" where there is none."""
    launch.observer().endings.append(ask)


@contextmanager
def apart() -> Iterator[None]:
    """Make calls that happen once and belong to no program."""
    with launch.unobserved():
        yield


def serves(tensor: Tensor, op: RedOpType | None = None) -> bool:
    """Return whether a program can run a call on this tensor by itself. ``op``: its reduction, None for what only copies."""
    d = tensor.dtype
    if not NATIVE or d.name not in NAMES or d.name == "bool" or not 0 < tensor.numel() < MOST:
        return False
    return op is None or not (op is ReduceOp.AVG and d.category < 2)


def _handle(value: Any) -> int:
    """Return one of MPI's handles, an int or a pointer, as a word."""
    return int((mpi()._handleof(value) + (1 << 63)) % (1 << 64) - (1 << 63))


class _Calls:
    """The calls of programs on a group: their kinds by number, and the one that is under way."""

    def __init__(self, group: ProcessGroup):
        self.group = group
        self.kinds: dict[tuple[str, str], int] = {}
        self.seen: Task | None = None
        communication().native.append(self.under_way)

    def number(self, name: str, text: str) -> int:
        """Return the number of a kind of call."""
        return self.kinds.setdefault((name, text), len(self.kinds))

    def under_way(self) -> Task | None:
        """Return what a program waits for just now, as a task that began when this was asked first."""
        words = self.group.words
        if not words[INSIDE] or words[GIVEN_UP]:
            self.seen, last = None, communication().last
            if words[DONE] and (last is None or last.seq < self.group.made()):
                communication().last = self._task(self.group.made())
            return None
        seq = self.group.made() + 1
        if self.seen is None or self.seen.seq != seq:
            self.seen = self._task(seq)
            self.seen.begin()
        return self.seen

    def _task(self, seq: int) -> Task:
        name, text = list(self.kinds)[int(self.group.words[KIND])]
        task = Task(self.group, name, text, lambda: None, self.group.timeout)
        task.native, task.seq = True, seq
        return task


_calls: dict[str, _Calls] = {}


class _Program:
    """The calls of a function that is being captured: ranks compare their hash when its program is made.

    So a rank is found whose program has more calls than another's: those beyond would meet calls that nobody compares any more, as programs run
    again. Groups of the same ranks are compared together, as their calls have one order.
    """

    def __init__(self) -> None:
        self.calls: dict[tuple[int, ...], list[Any]] = {}
        self.first: dict[tuple[int, ...], int] = {}
        self.last: dict[tuple[int, ...], Task] = {}

    @classmethod
    def of(cls, observer: Any) -> _Program:
        """Return that of the function whose launches are observed."""
        for tell in observer.settled:
            if isinstance(tell, cls):
                return tell
        observer.settled.append(made := cls())
        return made

    def add(self, task: Task, kind: tuple[Any, ...]) -> None:
        """Add a call, behind those before."""
        ranks = task.group.ranks
        if ranks not in self.calls:
            self.first[ranks] = sum(g.made() for g in world.groups.values() if g.ranks == ranks)
        self.calls.setdefault(ranks, []).append((task.group.name, kind))
        self.last[ranks] = task

    def __call__(self, function: Any) -> None:
        name = getattr(function, "__qualname__", type(function).__name__)
        for ranks, calls in self.calls.items():
            digest = hashlib.blake2b(repr(calls).encode(), digest_size=16).digest()
            said = f"{len(calls)} call{'s' if len(calls) > 1 else ''}, the last {self.last[ranks]}"
            assert holder.watch is not None
            holder.watch.captured(self.last[ranks], (f"programs of {name}", ranks, self.first[ranks]), digest, said)


def _given_up(order: np.ndarray) -> None:
    """Raise what made a group's calls end, if anything did."""
    if order[GIVEN_UP]:
        broken = communication().broken
        raise broken if isinstance(broken, DistBackendError) else DistBackendError("a collective was given up, or its group is destroyed")


_given_up.fatal = True  # type: ignore[attr-defined]


def _agreed(group: ProcessGroup, name: str, text: str, key: tuple[Any, ...]) -> None:
    """Compare a call of a program with the other ranks' in its place: behind all calls that Python has begun, which may be compared themselves.

    A kind that is new is compared before anything is sent. One that is known may meet a rank that runs eagerly, and so compares nothing: the watch
    compares the calls of those that capture them while they run.
    """
    if group.courier is not None:
        group.courier.settle()  # what is compared has its place behind all calls before
    _given_up(group.words)  # calls that were given up are not counted: the others must hear of no call in their places
    task = Task(group, name, f"{text}{launch.observer().at_line()}", lambda: agree(group, task, key), group.timeout)
    task.native, task.seq = True, group.made() + 1
    if holder.watch is not None and group.size() > 1:
        holder.watch.captured(task, ("calls", group.name, task.seq), (name, *key), str(task))
        _Program.of(launch.observer()).add(task, (name, *key))
    if group.agreed((name, *key)):
        return
    thread = communication()
    if thread.inside():
        thread.run_here(task)
    else:
        thread.submit(task).wait()
    if task.error is not None:
        raise task.error


def _run(group: ProcessGroup, name: str, text: str, key: tuple[Any, ...], numbers: tuple[int, ...], x: np.ndarray, size: int) -> np.ndarray:
    """Run a call once the group's ranks agree on its kind; the array that it writes. Of one rank all calls are what they are given."""
    if group.size() == 1:
        launch.check(_given_up, group.order._data, passes=((0, GIVEN_UP, 0, 0),))
        return x
    out = launch.empty(size, x.dtype)
    kind = _kind(group, name, text, key)
    begin, *rest = (address(f) for f in (_FUNCTIONS[name], "MPI_Test", "sched_yield", "usleep"))
    _KERNELS[name](str(x.dtype), kind, begin, *rest, _dtype(x), *numbers, x, group.order._data, out)
    launch.check(_given_up, group.order._data, passes=((0, GIVEN_UP, 0, 0),))
    return out


def _kind(group: ProcessGroup, name: str, text: str, key: tuple[Any, ...]) -> int:
    """Return the number of a kind of call, on which the ranks agree."""
    _agreed(group, name, text, key)
    calls = _calls.get(group.name) or _calls.setdefault(group.name, _Calls(group))
    return calls.number(name, text)


def _dtype(x: np.ndarray) -> int:
    return _handle(getattr(mpi(), NAMES[str(x.dtype)]))


def _handles(group: ProcessGroup, op: RedOpType) -> tuple[int, int, int]:
    """Return MPI's operation and communicator, and what sums are divided by."""
    return _handle(getattr(mpi(), OPERATIONS[op])), _handle(group.comm), group.size() if op is ReduceOp.AVG else 1


def _said(tensor: Tensor, op: str) -> str:
    return f"{tensor.dtype.name}{list(tensor.shape)} {op}"


def reduced(group: ProcessGroup, tensor: Tensor, op: RedOpType) -> Tensor:
    """Return the reduction of all ranks' tensors; of one rank's, that rank's own tensor or a copy of it."""
    key = (tensor.dtype.name, tensor.numel(), int(op))
    out = _run(group, "all_reduce", _said(tensor, op.name), key, _handles(group, op), dense(tensor), tensor.numel())
    return make(out, tensor._layout.dense, [0, 0])


def _worth(group: ProcessGroup, tensor: Tensor) -> bool:
    """Return whether a call is to be handed over: it is large enough, and a thread can make it that has a core."""
    return tensor.numel() * tensor.dtype.itemsize >= WORTH and group.size() > 1 and not world.crowded and possible()


def reduced_later(group: ProcessGroup, tensor: Tensor, op: RedOpType) -> Callable[[], Tensor]:
    """Begin the reduction of all ranks' tensors; what returns it, as a new one, and is called once.

    ``tensor`` is the caller's own, and stays as it is meanwhile. Its kernels go on while the call travels, where that is worth its while.
    """
    if _worth(group, tensor):
        return _handed_over(group, "all_reduce", tensor, op, tensor)
    total = reduced(group, tensor, op)
    return lambda: total


def _handed_over(group: ProcessGroup, name: str, tensor: Tensor, op: RedOpType, like: Tensor) -> Callable[[], Tensor]:
    """Give a reduction to the group's courier; what returns its result, a new tensor ``like`` that one, and is called once."""
    x, order = dense(tensor), group.order._data
    ticket, out = launch.empty(1, np.dtype(np.int64)), launch.empty(like.numel(), x.dtype)
    kind = _kind(group, name, _said(like, op.name), (like.dtype.name, like.numel(), int(op)))
    if group.courier is None:
        group.courier = Courier(group.words)
    begin, post, sleep, *rest = (address(f) for f in (_FUNCTIONS[name], "sem_post", "sem_wait", "sched_yield", "usleep"))
    *handles, divisor = _handles(group, op)
    _HAND_OVER(str(x.dtype), kind, begin, post, *rest, _dtype(x), *handles, x, ticket, order, out)
    group.courier.keep(ticket, x, out)

    def take() -> Tensor:
        _TAKE(str(x.dtype), sleep, post, rest[-1], divisor, ticket, x, order, out)
        launch.check(_given_up, order, passes=((0, GIVEN_UP, 0, 0),))
        return make(out, like._layout.dense, [0, 0])

    return take


class _Travelling(Work):
    """A call that travels while a function is captured: its result is taken by whoever asks for it first, or by the function's end."""

    def __init__(self, task: Task, outputs: Any, take: Callable[[], None]):
        self._ended, self._outputs, self._source = task, outputs, None
        self._take: Callable[[], None] | None = take

    @property
    def _task(self) -> Task:  # type: ignore[override]
        self.land()
        return self._ended

    def land(self) -> None:
        """Take what has come of it, once."""
        take, self._take = self._take, None
        if take is not None:
            take()


def _under_way(group: ProcessGroup, name: str, output: Tensor, taken: Callable[[], Tensor]) -> Work:
    """Return the work of a call that travels, which writes ``output`` when it is waited for."""

    def take() -> None:
        with no_grad():
            copy_(output, taken())

    work = _Travelling(_finished(group, name), [output], take)
    launch.observer().leaving.append(work.land)
    return work


def all_reduce(group: ProcessGroup, tensor: Tensor, op: RedOpType, async_op: bool) -> Work | None:
    """Reduce in place."""
    if async_op and _worth(group, tensor):
        return _under_way(group, "all_reduce", tensor, _handed_over(group, "all_reduce", tensor, op, tensor))
    with no_grad():
        copy_(tensor, reduced(group, tensor, op))
    return _done(group, "all_reduce", [tensor]) if async_op else None


def broadcast(group: ProcessGroup, tensor: Tensor, root: int, async_op: bool) -> Work | None:
    """Give every rank the elements of rank ``root``."""
    key, text = (tensor.dtype.name, tensor.numel(), root), f"{tensor.dtype.name}{list(tensor.shape)} from {group.ranks[root]}"
    with no_grad():
        out = _run(group, "broadcast", text, key, (root, _handle(group.comm)), dense(tensor), tensor.numel())
        copy_(tensor, make(out, tensor._layout.dense, [0, 0]))
    return _done(group, "broadcast", [tensor]) if async_op else None


def all_gather(group: ProcessGroup, out: Tensor, tensor: Tensor, async_op: bool) -> Work | None:
    """Give every rank the tensors of all in one."""
    text = f"{tensor.dtype.name}{list(tensor.shape)}"
    key, comm = (tensor.dtype.name, tensor.numel()), _handle(group.comm)
    with no_grad():
        found = _run(group, "all_gather", text, key, (comm,), dense(tensor), out.numel())
        copy_(out, make(found, out._layout.dense, [0, 0]))
    return _done(group, "all_gather_into_tensor", [out]) if async_op else None


def reduce_scatter(group: ProcessGroup, out: Tensor, tensor: Tensor, op: RedOpType, async_op: bool) -> Work | None:
    """Reduce the ranks' tensors, and give each its part."""
    if async_op and _worth(group, tensor):
        return _under_way(group, "reduce_scatter_tensor", out, _handed_over(group, "reduce_scatter", tensor, op, out))
    key = (out.dtype.name, out.numel(), int(op))
    with no_grad():
        found = _run(group, "reduce_scatter", _said(out, op.name), key, _handles(group, op), dense(tensor), out.numel())
        copy_(out, make(found, out._layout.dense, [0, 0]))
    return _done(group, "reduce_scatter_tensor", [out]) if async_op else None


def _finished(group: ProcessGroup, name: str) -> Task:
    task = Task(group, name, "", lambda: None, group.timeout)
    task.order = lambda call: call()  # what a program does next stands behind it already, and belongs to the program
    task.finish()
    return task


def _done(group: ProcessGroup, name: str, outputs: Any) -> Work:
    return Work(_finished(group, name), outputs)
