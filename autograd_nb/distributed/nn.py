"""Collectives with gradients: what flows back to each rank is what its tensor did to the losses of all.

Source: https://docs.pytorch.org/docs/stable/distributed.html (torch.distributed.nn.functional)
"""

from __future__ import annotations

import sys
from typing import Any

from ..autograd.function import Function
from ..ops.core.registry import OPS
from ..tensor import Tensor
from . import checks
from .collectives import all_gather as gather_all
from .collectives import all_reduce as reduce_all
from .collectives import broadcast as broadcast_from
from .collectives import gather as gather_to
from .collectives import reduce as reduce_to
from .collectives import reduce_scatter as reduce_scattered
from .collectives import scatter as scatter_from
from .exchanges import all_to_all as exchange
from .group import ProcessGroup
from .reduce_op import RedOpType, ReduceOp

__path__: list[str] = []  # PyTorch has its functions in a module below this one: see compat/import_aliases.py
functional: Any = sys.modules[__name__]


def _group(name: str, given: Any) -> ProcessGroup:
    found = checks.group_of(name, given)
    if found is None:
        raise RuntimeError(f"{name}: this rank does not belong to the group, and so has no result")
    return found


class _AllReduce(Function):
    @staticmethod
    def forward(ctx: Any, op: RedOpType, group: ProcessGroup, tensor: Tensor) -> Any:
        ctx.op, ctx.group = op, group
        result = tensor.clone()
        reduce_all(result, op, group)
        return result

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        return None, None, _AllReduce.apply(ctx.op, ctx.group, grads[0])


class _AllGather(Function):
    @staticmethod
    def forward(ctx: Any, group: ProcessGroup, tensor: Tensor) -> Any:
        ctx.group = group
        parts = [OPS["empty_like"].call(tensor) for _ in range(group.size())]
        gather_all(parts, tensor, group)
        return tuple(parts)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        # the sum of what all ranks say of this rank's part
        total = _AllReduce.apply(ReduceOp.SUM, ctx.group, OPS["stack"].call(list(grads)))
        return None, total[ctx.group.rank()]


class _Broadcast(Function):
    @staticmethod
    def forward(ctx: Any, src: int, group: ProcessGroup, tensor: Tensor) -> Any:
        ctx.src, ctx.group = src, group
        result = tensor.clone()
        broadcast_from(result, src, group)
        return result

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        total = grads[0].clone()
        reduce_to(total, ctx.src, ReduceOp.SUM, ctx.group)
        return None, None, total if ctx.group.ranks[ctx.group.rank()] == ctx.src else OPS["zeros_like"].call(total)


class _Reduce(Function):
    @staticmethod
    def forward(ctx: Any, dst: int, op: RedOpType, group: ProcessGroup, tensor: Tensor) -> Any:
        ctx.dst, ctx.group = dst, group
        result = tensor.clone()
        reduce_to(result, dst, op, group)
        return result

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        return None, None, None, _Broadcast.apply(ctx.dst, ctx.group, grads[0].contiguous())


class _Gather(Function):
    @staticmethod
    def forward(ctx: Any, dst: int, group: ProcessGroup, tensor: Tensor) -> Any:
        ctx.dst, ctx.group = dst, group
        parts = [OPS["zeros_like"].call(tensor) for _ in range(group.size())]
        gather_to(tensor.contiguous(), parts if _is(group, dst) else None, dst, group)
        return tuple(parts)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        return None, None, _Scatter.apply(ctx.dst, ctx.group, *grads)


class _Scatter(Function):
    @staticmethod
    def forward(ctx: Any, src: int, group: ProcessGroup, *tensors: Tensor) -> Any:
        ctx.src, ctx.group = src, group
        result = OPS["zeros_like"].call(tensors[0])
        scatter_from(result, [t.contiguous() for t in tensors] if _is(group, src) else None, src, group)
        return result

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        return (None, None, *_Gather.apply(ctx.src, ctx.group, grads[0]))


class _ReduceScatter(Function):
    @staticmethod
    def forward(ctx: Any, op: RedOpType, group: ProcessGroup, output: Tensor, *tensors: Tensor) -> Any:
        ctx.group = group
        result = OPS["empty_like"].call(output)
        reduce_scattered(result, [t.contiguous() for t in tensors], op, group)
        return result

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        return (None, None, None, *_AllGather.apply(ctx.group, grads[0].contiguous()))


class _AllToAll(Function):
    @staticmethod
    def forward(ctx: Any, group: ProcessGroup, shapes: Any, *tensors: Tensor) -> Any:
        ctx.group, ctx.shapes = group, [t.shape for t in tensors]
        outs = [OPS["new_empty"].call(tensors[0], tuple(shape)) for shape in shapes]
        exchange(outs, [t.contiguous() for t in tensors], group)
        return tuple(outs)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        return (None, None, *_AllToAll.apply(ctx.group, ctx.shapes, *grads))


def _is(group: ProcessGroup, rank: int) -> bool:
    return group.ranks[group.rank()] == rank


def all_reduce(tensor: Tensor, op: RedOpType = ReduceOp.SUM, group: Any = None) -> Tensor:
    """Return the reduction of all ranks' tensors, with a gradient; the gradients of all ranks are reduced alike."""
    return _AllReduce.apply(op, _group("all_reduce", group), checks.one_tensor(tensor, "tensor"))  # type: ignore[no-any-return]


def all_gather(tensor: Tensor, group: Any = None) -> tuple[Tensor, ...]:
    """Return the tensors of all ranks, with gradients: each rank gets the sum of what all say of its own."""
    return _AllGather.apply(_group("all_gather", group), checks.one_tensor(tensor, "tensor"))  # type: ignore[no-any-return]


def broadcast(tensor: Tensor, src: int, group: Any = None) -> Tensor:
    """Return the tensor of rank ``src``, with a gradient, which is the sum of all on rank ``src`` and 0 elsewhere."""
    return _Broadcast.apply(src, _group("broadcast", group), checks.one_tensor(tensor, "tensor"))  # type: ignore[no-any-return]


def reduce(tensor: Tensor, dst: int, op: RedOpType = ReduceOp.SUM, group: Any = None) -> Tensor:
    """Return the reduction on rank ``dst`` (elsewhere the own tensor), with a gradient, which all get from rank ``dst``."""
    return _Reduce.apply(dst, op, _group("reduce", group), checks.one_tensor(tensor, "tensor"))  # type: ignore[no-any-return]


def gather(tensor: Tensor, dst: int = 0, group: Any = None) -> tuple[Tensor, ...]:
    """Return the tensors of all ranks on rank ``dst``, zeros elsewhere, with gradients: each rank gets that of its own."""
    return _Gather.apply(dst, _group("gather", group), checks.one_tensor(tensor, "tensor"))  # type: ignore[no-any-return]


def scatter(tensors: list[Tensor], src: int = 0, group: Any = None) -> Tensor:
    """Return this rank's of rank ``src``'s tensors, with gradients, which go back to rank ``src``."""
    return _Scatter.apply(src, _group("scatter", group), *checks.tensors(tensors, "tensors"))  # type: ignore[no-any-return]


def reduce_scatter(output: Tensor, input_list: list[Tensor], op: RedOpType = ReduceOp.SUM, group: Any = None) -> Tensor:
    """Return the reduction of what all ranks hold for this one, with gradients; ``output`` says its shape."""
    parts = checks.tensors(input_list, "input_list")
    return _ReduceScatter.apply(op, _group("reduce_scatter", group), output, *parts)  # type: ignore[no-any-return]


def all_to_all(output_tensor_list: list[Tensor], input_tensor_list: list[Tensor], group: Any = None) -> tuple[Tensor, ...]:
    """Return what each rank gives to this one, with gradients; the outputs say the shapes."""
    shapes = [t.shape for t in checks.tensors(output_tensor_list, "output_tensor_list")]
    return _AllToAll.apply(_group("all_to_all", group), shapes, *checks.tensors(input_tensor_list, "input_tensor_list"))  # type: ignore[no-any-return]


def all_to_all_single(
    output: Tensor, input: Tensor, output_split_sizes: list[int] | None = None, input_split_sizes: list[int] | None = None, group: Any = None
) -> Tensor:
    """Return the rows that all ranks give to this one, with gradients; ``output`` says the shape."""
    of = _group("all_to_all_single", group)
    given, taken = _rows(input, input_split_sizes, of), _rows(output, output_split_sizes, of)
    shapes = [(n, *output.shape[1:]) for n in taken]
    return OPS["cat"].call(list(_AllToAll.apply(of, shapes, *OPS["split"].call(input, given))))  # type: ignore[no-any-return]


def _rows(tensor: Tensor, sizes: list[int] | None, group: ProcessGroup) -> list[int]:
    if sizes:
        return list(sizes)
    if tensor.shape[0] % group.size():
        raise RuntimeError("Tensor's dim 0 does not divide equally across group size")
    return [tensor.shape[0] // group.size()] * group.size()


def _all_gather_base(output_tensor: Tensor, input_tensor: Tensor, group: Any = None) -> Tensor:
    """Return the tensors of all ranks in one of ``output_tensor``'s shape, with gradients."""
    return OPS["cat"].call(list(all_gather(input_tensor, group))).reshape(output_tensor.shape)  # type: ignore[no-any-return]
