"""Collectives on tensors of one size: reductions, broadcasts, gathering and scattering.

All ranks of a group call them, in the same order. ``async_op=True`` returns a `Work` at once.
Source: https://docs.pytorch.org/docs/stable/distributed.html#collective-functions
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..tensor import Tensor
from . import checks, compiled
from .agreement import agree
from .buffers import Buffer, as_bytes, average, is_summable, joined, operation, parted, summable, typed
from .group import ProcessGroup
from .mpi import mpi
from .reduce_op import RedOpType, ReduceOp
from .thread import through
from .work import Task, Work


def said(tensor: Tensor) -> str:
    """Return "float32[2, 3]"."""
    return f"{tensor.dtype.name}{list(tensor.shape)}"


def call(
    group: ProcessGroup, name: str, text: str, key: tuple[Any, ...], run: Callable[[], Any], outputs: Any, async_op: bool,
    always: bool = False,
) -> Work | None:  # fmt: skip
    """Let the group run a collective once its ranks agree on ``key``: the work, or None after it is done."""

    def compared() -> Any:
        agree(group, task, key, always)
        return run()

    task = Task(group, name, text, compared, group.timeout)
    task.kind = known = (name, *key)
    group.submit(task, not (async_op or always) and group.agreed(known))
    if async_op:
        return Work(task, outputs)
    task.wait()
    if task.error is not None:
        raise task.error
    return None


def all_reduce(tensor: Tensor, op: RedOpType = ReduceOp.SUM, group: Any = None, async_op: bool = False) -> Work | None:
    """Reduce in place so that every rank has the result: the same bits everywhere.

    >>> t = torch.ones(2) * (rank + 1)
    >>> dist.all_reduce(t)
    >>> t
    tensor([3., 3.])
    >>> work = dist.all_reduce(t, dist.ReduceOp.MAX, async_op=True)
    >>> work.wait()
    True
    """
    checks.one_tensor(tensor, "tensor")
    if (of := checks.group_of("all_reduce", group)) is None:
        return None
    op = checks.reduction("all_reduce", op, tensor)
    if compiled.capturing() and compiled.serves(tensor, op):
        return compiled.all_reduce(of, tensor, op, async_op)
    buffer, MPI = Buffer(tensor), mpi()

    def run() -> None:
        direct = is_summable(buffer.array)
        flat = buffer.read() if direct else summable(buffer.read())
        through(of.comm.Iallreduce(MPI.IN_PLACE, typed(MPI, flat), operation(MPI, op, flat)))
        if op is ReduceOp.AVG:
            average(flat, of.size())
        if direct:
            buffer.write()
        else:
            buffer.fill(flat)

    return call(of, "all_reduce", f"{said(tensor)} {op.name}", _key(tensor, int(op)), run, [tensor], async_op)


def _key(tensor: Tensor, *more: Any) -> tuple[Any, ...]:
    return (tensor.dtype.name, tensor.numel(), *more)


def reduce(
    tensor: Tensor, dst: int | None = None, op: RedOpType = ReduceOp.SUM, group: Any = None, async_op: bool = False,
    group_dst: int | None = None,
) -> Work | None:  # fmt: skip
    """Reduce in place on rank ``dst``; the others' tensors stay as they are.

    >>> t = torch.ones(2)
    >>> dist.reduce(t, dst=0)
    >>> t[0].item() == 2 if rank == 0 else True
    True
    """
    checks.one_tensor(tensor, "tensor")
    if (of := checks.group_of("reduce", group)) is None:
        return None
    op, root = checks.reduction("reduce", op, tensor), checks.root("reduce", of, dst, group_dst)
    buffer, MPI = Buffer(tensor), mpi()

    def run() -> None:
        flat = buffer.read() if is_summable(buffer.array) else summable(buffer.read())
        if of.rank() != root:
            through(of.comm.Ireduce(typed(MPI, flat), None, operation(MPI, op, flat), root))
            return
        total = np.empty_like(flat)
        through(of.comm.Ireduce(typed(MPI, flat), typed(MPI, total), operation(MPI, op, flat), root))
        if op == ReduceOp.AVG:
            average(total, of.size())
        buffer.fill(total)

    return call(of, "reduce", f"{said(tensor)} {op.name} to {of.ranks[root]}", _key(tensor, int(op), root), run, [tensor], async_op)


def broadcast(tensor: Tensor, src: int | None = None, group: Any = None, async_op: bool = False, group_src: int | None = None) -> Work | None:
    """Give every rank the elements of rank ``src``.

    >>> t = torch.arange(3) * (rank + 1)
    >>> dist.broadcast(t, src=1)
    >>> t
    tensor([0, 2, 4])
    """
    checks.one_tensor(tensor, "tensor")
    if (of := checks.group_of("broadcast", group)) is None:
        return None
    root = checks.root("broadcast", of, src, group_src)
    if compiled.capturing() and compiled.serves(tensor):
        return compiled.broadcast(of, tensor, root, async_op)
    buffer = Buffer(tensor)

    def run() -> None:
        through(of.comm.Ibcast(as_bytes(buffer.read() if of.rank() == root else buffer.room()), root))
        if of.rank() != root:
            buffer.write()

    return call(of, "broadcast", f"{said(tensor)} from {of.ranks[root]}", _key(tensor, root), run, [tensor], async_op)


def all_gather(tensor_list: list[Tensor], tensor: Tensor, group: Any = None, async_op: bool = False) -> Work | None:
    """Give every rank the tensors of all, one in each place of ``tensor_list``.

    >>> every = [torch.zeros(1) for _ in range(2)]
    >>> dist.all_gather(every, torch.tensor([float(rank)]))
    >>> every
    [tensor([0.]), tensor([1.])]
    """
    outs, _ = checks.tensors(tensor_list, "tensor_list"), checks.one_tensor(tensor, "tensor")
    checks.same_dtype(tensor, *outs)
    if (of := checks.group_of("all_gather", group)) is None:
        return None
    checks.as_many("all_gather", "output", len(outs), of)
    checks.same_sizes("all_gather", tensor, outs)
    buffer, buffers = Buffer(tensor), [Buffer(t) for t in outs]

    def run() -> None:
        every = np.empty(of.size() * buffer.array.size, buffer.array.dtype)
        through(of.comm.Iallgather(as_bytes(buffer.read()), as_bytes(every)))
        parted(every, buffers)

    return call(of, "all_gather", said(tensor), _key(tensor), run, [outs], async_op)


def all_gather_into_tensor(output_tensor: Tensor, input_tensor: Tensor, group: Any = None, async_op: bool = False) -> Work | None:
    """Give every rank the tensors of all in one, behind one another or stacked along a new first dim.

    >>> every = torch.zeros(4)
    >>> dist.all_gather_into_tensor(every, torch.ones(2) * rank)
    >>> every
    tensor([0., 0., 1., 1.])
    """
    out, own = checks.one_tensor(output_tensor, "output_tensor"), checks.one_tensor(input_tensor, "input_tensor")
    if (of := checks.group_of("all_gather_into_tensor", group)) is None:
        return None
    if out.dtype is not own.dtype:
        raise TypeError("output tensor must have the same type as input tensor")
    if out.numel() != own.numel() * of.size():
        raise ValueError("output tensor size must be equal to world_size times input tensor size")
    if compiled.capturing() and compiled.serves(own):
        return compiled.all_gather(of, out, own, async_op)
    buffer, whole = Buffer(own), Buffer(out)

    def run() -> None:
        through(of.comm.Iallgather(as_bytes(buffer.read()), as_bytes(whole.room())))
        whole.write()

    return call(of, "all_gather_into_tensor", said(own), _key(own), run, [out], async_op)


def gather(
    tensor: Tensor, gather_list: list[Tensor] | None = None, dst: int | None = None, group: Any = None, async_op: bool = False,
    group_dst: int | None = None,
) -> Work | None:  # fmt: skip
    """Give rank ``dst`` the tensors of all, in ``gather_list``, which only it names.

    >>> every = [torch.zeros(1) for _ in range(2)] if rank == 0 else None
    >>> dist.gather(torch.tensor([float(rank)]), every, dst=0)
    >>> every == [0.0, 1.0] if rank == 0 else every is None
    True
    """
    checks.one_tensor(tensor, "tensor")
    outs = checks.tensors(gather_list, "gather_list") if gather_list else []
    checks.same_dtype(tensor, *outs)
    if (of := checks.group_of("gather", group)) is None:
        return None
    root = checks.root("gather", of, dst, group_dst, 0)
    if of.rank() == root:
        if not outs:
            raise ValueError("Argument ``gather_list`` must be specified on destination rank.")
        checks.as_many("gather", "output", len(outs), of)
        checks.same_sizes("gather", tensor, outs)
    elif outs:
        raise ValueError("Argument ``gather_list`` must NOT be specified on non-destination ranks.")
    buffer, buffers = Buffer(tensor), [Buffer(t) for t in outs]

    def run() -> None:
        every = np.empty(of.size() * buffer.array.size if buffers else 0, buffer.array.dtype)
        through(of.comm.Igather(as_bytes(buffer.read()), as_bytes(every) if buffers else None, root))
        if buffers:
            parted(every, buffers)

    return call(of, "gather", f"{said(tensor)} to {of.ranks[root]}", _key(tensor, root), run, [outs], async_op)


def scatter(
    tensor: Tensor, scatter_list: list[Tensor] | None = None, src: int | None = None, group: Any = None, async_op: bool = False,
    group_src: int | None = None,
) -> Work | None:  # fmt: skip
    """Give every rank one of the tensors in rank ``src``'s ``scatter_list``, which only it names.

    >>> t = torch.zeros(1)
    >>> dist.scatter(t, [torch.tensor([5.]), torch.tensor([6.])] if rank == 0 else None, src=0)
    >>> t.item() == 5 + rank
    True
    """
    checks.one_tensor(tensor, "tensor")
    parts = checks.tensors(scatter_list, "scatter_list") if scatter_list else []
    checks.same_dtype(tensor, *parts)
    if (of := checks.group_of("scatter", group)) is None:
        return None
    root = checks.root("scatter", of, src, group_src, 0)
    if of.rank() == root:
        if not parts:
            raise ValueError("Argument ``scatter_list`` must be specified on source rank.")
        checks.as_many("scatter", "input", len(parts), of)
        checks.same_sizes("scatter", tensor, parts)
    elif parts:
        raise ValueError("Argument ``scatter_list`` must NOT be specified on non-source ranks.")
    buffer, buffers = Buffer(tensor), [Buffer(t) for t in parts]

    def run() -> None:
        through(of.comm.Iscatter(as_bytes(joined(buffers)) if buffers else None, as_bytes(buffer.room()), root))
        buffer.write()

    return call(of, "scatter", f"{said(tensor)} from {of.ranks[root]}", _key(tensor, root), run, [tensor], async_op)


def reduce_scatter(
    output: Tensor, input_list: list[Tensor], op: RedOpType = ReduceOp.SUM, group: Any = None, async_op: bool = False
) -> Work | None:
    """Reduce the ranks' lists of tensors, and give rank i the i-th result.

    >>> t = torch.zeros(1)
    >>> dist.reduce_scatter(t, [torch.tensor([1.]), torch.tensor([2.])])
    >>> t.item() == 2 * (rank + 1)
    True
    """
    checks.one_tensor(output, "output")
    parts = checks.tensors(input_list, "input_list")
    checks.same_dtype(output, *parts)
    if (of := checks.group_of("reduce_scatter", group)) is None:
        return None
    if len(parts) != of.size():
        raise RuntimeError("invalid input tensor list size, must be world size")
    checks.same_sizes("reduce_scatter", output, parts)
    return _reduce_scatter(of, "reduce_scatter", output, [Buffer(t) for t in parts], op, async_op)


def reduce_scatter_tensor(output: Tensor, input: Tensor, op: RedOpType = ReduceOp.SUM, group: Any = None, async_op: bool = False) -> Work | None:
    """Reduce the ranks' tensors, and give rank i the i-th of their equal parts.

    >>> t = torch.zeros(2)
    >>> dist.reduce_scatter_tensor(t, torch.arange(4.))
    >>> t.tolist() == ([0.0, 2.0] if rank == 0 else [4.0, 6.0])
    True
    """
    checks.one_tensor(output, "output")
    checks.one_tensor(input, "input")
    if (of := checks.group_of("reduce_scatter_tensor", group)) is None:
        return None
    if output.dtype is not input.dtype:
        raise TypeError("input tensor must be the same type as the output tensor.")
    if input.numel() != output.numel() * of.size():
        raise ValueError("input tensor must be the same size as output size times world size")
    if compiled.capturing() and compiled.serves(output, checks.reduction("reduce_scatter_tensor", op, output)):
        return compiled.reduce_scatter(of, output, input, op, async_op)
    return _reduce_scatter(of, "reduce_scatter_tensor", output, [Buffer(input)], op, async_op)


def _reduce_scatter(of: ProcessGroup, name: str, output: Tensor, parts: list[Buffer], op: RedOpType, async_op: bool) -> Work | None:
    op, buffer, MPI = checks.reduction(name, op, output), Buffer(output), mpi()

    def run() -> None:
        whole = joined(parts)
        if not is_summable(whole):
            whole = summable(whole)
        own = np.empty(buffer.array.size, whole.dtype)
        memory, _, kind = typed(MPI, whole)  # the count is that of one part
        through(of.comm.Ireduce_scatter_block([memory, own.size, kind], typed(MPI, own), operation(MPI, op, whole)))
        if op == ReduceOp.AVG:
            average(own, of.size())
        buffer.fill(own)

    return call(of, name, f"{said(output)} {op.name}", _key(output, int(op)), run, [output], async_op)
