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
from .collectives import reduce as reduce_to
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


def all_reduce(tensor: Tensor, op: RedOpType = ReduceOp.SUM, group: Any = None) -> Tensor:
    """Return the reduction of all ranks' tensors, with a gradient; the gradients of all ranks are reduced alike."""
    return _AllReduce.apply(op, _group("all_reduce", group), checks.one_tensor(tensor, "tensor"))  # type: ignore[no-any-return]


def all_gather(tensor: Tensor, group: Any = None) -> tuple[Tensor, ...]:
    """Return the tensors of all ranks, with gradients: each rank gets the sum of what all say of its own."""
    return _AllGather.apply(_group("all_gather", group), checks.one_tensor(tensor, "tensor"))  # type: ignore[no-any-return]


def broadcast(tensor: Tensor, src: int, group: Any = None) -> Tensor:
    """Return the tensor of rank ``src``, with a gradient, which is the sum of all on rank ``src`` and 0 elsewhere."""
    return _Broadcast.apply(src, _group("broadcast", group), checks.one_tensor(tensor, "tensor"))  # type: ignore[no-any-return]
