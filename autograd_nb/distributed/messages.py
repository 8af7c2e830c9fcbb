"""From one rank to another: `send` and `recv`.

They are posted in the order of the calls and looked after together, so both of two ranks may send first.
Source: https://docs.pytorch.org/docs/stable/distributed.html#point-to-point-communication
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..tensor import Tensor
from . import checks
from .buffers import Buffer, as_bytes
from .collectives import said
from .failures import DistBackendError
from .group import ProcessGroup, get_group_rank, known_group
from .mpi import mpi
from .thread import communication
from .work import Task, Work


def _peer(group: ProcessGroup, among_all: int | None, in_group: int | None, kind: str) -> int:
    if in_group is None and among_all is not None:
        in_group = get_group_rank(group, among_all)
    elif in_group is not None and among_all is not None:
        raise ValueError("Can't specify both group_rank and global_rank")
    if in_group is None:
        raise ValueError("Must specify global_rank or group_rank")
    if not 0 <= in_group < group.size():
        raise ValueError(f"Group rank {in_group} is not part of group {group}")
    if in_group == group.rank():
        raise ValueError(f"Invalid {kind} rank: {kind} rank should not be the same as the rank of the current process.")
    return in_group


def isend(tensor: Tensor, dst: int | None = None, group: Any = None, tag: int = 0, group_dst: int | None = None) -> Work | None:
    """Begin to send the elements to rank ``dst``; they must stay as they are until the work is done.

    >>> work = dist.isend(torch.ones(2), 1) if rank == 0 else dist.irecv(torch.zeros(2), 0)
    >>> work.wait()
    True
    """
    checks.one_tensor(tensor, "tensor")
    if (of := checks.group_of("isend", group)) is None:
        return None
    peer, buffer = _peer(of, dst, group_dst, "destination"), Buffer(tensor)

    def run() -> None:
        request = of.messages.Isend(as_bytes(buffer.read()), peer, tag)
        task.polled = request.Test

    task = Task(of, "send", f"{said(tensor)} to {of.ranks[peer]}", run, of.timeout, (of.ranks[peer],))
    return Work(communication().submit(task), [tensor])


def irecv(tensor: Tensor, src: int | None = None, group: Any = None, tag: int = 0, group_src: int | None = None) -> Work | None:
    """Begin to receive into ``tensor`` what rank ``src`` sends; from any rank where none is named.

    >>> t = torch.zeros(2)
    >>> work = dist.irecv(t, src=0) if rank == 1 else dist.isend(t + 7, dst=1)
    >>> work.wait() and t.tolist() == [7 * rank, 7 * rank]
    True
    """
    checks.one_tensor(tensor, "tensor")
    if (of := checks.group_of("irecv", group)) is None:
        return None
    MPI, buffer, source = mpi(), Buffer(tensor), [-1]
    anyone = src is None and group_src is None
    peer = MPI.ANY_SOURCE if anyone else _peer(of, src, group_src, "source")
    whom = tuple(r for r in of.ranks if r != of.ranks[of.rank()]) if anyone else (of.ranks[peer],)

    def run() -> None:
        request = of.messages.Irecv(as_bytes(buffer.room()), peer, tag)
        task.cancel, task.polled = request.Cancel, _received(MPI, of, request, buffer, source, str(task))

    task = Task(of, "recv", f"{said(tensor)} from {'any rank' if anyone else of.ranks[peer]}", run, of.timeout, whom)
    return Work(communication().submit(task), [tensor], lambda: source[0])


def _received(MPI: Any, of: ProcessGroup, request: Any, buffer: Buffer, source: list[int], text: str) -> Callable[[], bool]:
    status = MPI.Status()

    def polled() -> bool:
        if not request.Test(status):
            return False
        source[0] = of.ranks[status.Get_source()]
        got, wanted = status.Get_count(MPI.BYTE), buffer.flat.nbytes
        if got != wanted:
            raise DistBackendError(f"{text}: rank {source[0]} sent {got} bytes where {wanted} were expected")
        buffer.write()
        return True

    return polled


def send(tensor: Tensor, dst: int | None = None, group: Any = None, tag: int = 0, group_dst: int | None = None) -> None:
    """Send the elements to rank ``dst``, and wait until they may change again.

    >>> t = torch.zeros(1)
    >>> source = dist.send(t + 3, dst=1) if rank == 0 else dist.recv(t, src=0)
    >>> t.item() == 3 * rank
    True
    """
    work = isend(tensor, dst, group, tag, group_dst)
    if work is not None:
        work.wait()


def recv(tensor: Tensor, src: int | None = None, group: Any = None, tag: int = 0, group_src: int | None = None) -> int:
    """Receive into ``tensor`` what rank ``src``, or any, sends; the rank that sent it.

    >>> t = torch.zeros(1)
    >>> source = dist.send(t, dst=1) if rank == 0 else dist.recv(t)
    >>> source == (0 if rank == 1 else None)
    True
    """
    work = irecv(tensor, src, group, tag, group_src)
    if work is None:
        return -1
    work.wait()
    return work.source_rank()


class P2POp:
    """One of the messages of `batch_isend_irecv`: ``P2POp(isend or irecv, tensor, peer)``.

    >>> own, other = torch.ones(1) * rank, torch.zeros(1)
    >>> ops = [dist.P2POp(dist.isend, own, 1 - rank), dist.P2POp(dist.irecv, other, 1 - rank)]
    >>> [work.wait() for work in dist.batch_isend_irecv(ops)]
    [True, True]
    >>> other.item() == 1 - rank
    True
    """

    op: Any
    tensor: Tensor
    tag: int
    group: ProcessGroup
    group_peer: int
    peer: int

    def __init__(self, op: Any, tensor: Tensor, peer: int | None = None, group: Any = None, tag: int = 0, group_peer: int | None = None):
        if op not in (isend, irecv):
            raise ValueError("Invalid ``op``. Expected ``op`` to be of type ``torch.distributed.isend`` or ``torch.distributed.irecv``.")
        checks.one_tensor(tensor, "tensor")
        self.op, self.tensor, self.tag = op, tensor, tag
        self.group = known_group(group)
        self.group_peer = _peer(self.group, peer, group_peer, "peer")
        self.peer = self.group.ranks[self.group_peer]


def batch_isend_irecv(p2p_op_list: list[P2POp]) -> list[Work]:
    """Begin all the messages; the works, in their order.

    >>> other = torch.zeros(1)
    >>> ops = [dist.P2POp(dist.irecv, other, 1 - rank), dist.P2POp(dist.isend, torch.ones(1), 1 - rank)]
    >>> [work.wait() for work in dist.batch_isend_irecv(ops)], other
    ([True, True], tensor([1.]))
    """
    if not isinstance(p2p_op_list, list) or not all(isinstance(op, P2POp) for op in p2p_op_list):
        raise ValueError("Invalid ``p2p_op_list``. Each op is expected to to be of type ``torch.distributed.P2POp``.")
    first = p2p_op_list[0].group
    if not all(op.group is first for op in p2p_op_list):
        raise ValueError("All ops need to use the same group.")
    works = [op.op(op.tensor, group=op.group, tag=op.tag, **{_PEER[op.op]: op.group_peer}) for op in p2p_op_list]
    return [work for work in works if work is not None]


_PEER = {isend: "group_dst", irecv: "group_src"}
