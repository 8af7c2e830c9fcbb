"""Collectives that return new tensors: `torch.distributed._functional_collectives`, as programs use them.

The results are there when a function returns, so `wait_tensor` has nothing to wait for.
Source: https://github.com/pytorch/pytorch/blob/main/torch/distributed/_functional_collectives.py
"""

from __future__ import annotations

from typing import Any

from ..graph.modes import no_grad
from ..ops.core.registry import OPS
from ..tensor import Tensor
from . import collectives, exchanges, nn
from .group import ProcessGroup, known_group, world
from .messages import P2POp, batch_isend_irecv, irecv, isend
from .reduce_op import RedOpType, ReduceOp


def _group(given: Any) -> ProcessGroup:
    """Return the group that a group, its name, or the list of its ranks means. ValueError where there is none of these ranks."""
    if isinstance(given, str):
        given = world.groups.get(given, given)
    if isinstance(given, (list, tuple)) and all(isinstance(r, int) for r in given):
        found = [g for g in world.groups.values() if list(g.ranks) == list(given)]
        if not found:
            raise ValueError(f"group={given!r}: no group has these ranks, make it with new_group({list(given)})")
        given = found[0]
    return known_group(given)


def _op(name: Any) -> RedOpType:
    """Return the reduction of a name such as "sum". ValueError for others."""
    if isinstance(name, RedOpType):
        return name
    try:
        return RedOpType[str(name).upper()]
    except KeyError:
        raise ValueError(f"reduceOp={name!r}: known are {', '.join(op.name.lower() for op in RedOpType)}") from None


def wait_tensor(tensor: Tensor) -> Tensor:
    """Return the tensor, which is there."""
    return tensor


def all_reduce(self: Tensor, reduceOp: Any, group: Any, tag: str = "") -> Tensor:
    """Return the reduction of all ranks' tensors."""
    with no_grad():
        result = self.clone()
        collectives.all_reduce(result, _op(reduceOp), _group(group))
    return result


def broadcast(self: Tensor, src: int, group: Any, tag: str = "") -> Tensor:
    """Return the tensor of rank ``src`` of the group."""
    with no_grad():
        result = self.clone()
        collectives.broadcast(result, group=_group(group), group_src=src)
    return result


def all_gather_tensor(self: Tensor, gather_dim: int, group: Any, tag: str = "") -> Tensor:
    """Return the tensors of all ranks behind one another along ``gather_dim``."""
    of = _group(group)
    with no_grad():
        own = self.contiguous()
        whole = OPS["new_empty"].call(own, (of.size(), *own.shape))
        collectives.all_gather_into_tensor(whole, own, of)
        return _along(whole, gather_dim)


def _along(whole: Tensor, dim: int) -> Tensor:
    return OPS["cat"].call(list(whole.unbind(0)), dim) if dim or whole.ndim == 1 else whole.flatten(0, 1)  # type: ignore[attr-defined,no-any-return]


def reduce_scatter_tensor(self: Tensor, reduceOp: Any, scatter_dim: int, group: Any, tag: str = "") -> Tensor:
    """Return this rank's part along ``scatter_dim`` of the reduction of all ranks' tensors. ValueError where it has no equal parts."""
    of = _group(group)
    _divisible(self, scatter_dim, of)
    with no_grad():
        whole = OPS["cat"].call(list(OPS["chunk"].call(self, of.size(), scatter_dim)))
        part = OPS["chunk"].call(self, of.size(), scatter_dim)[0]
        result = OPS["new_empty"].call(whole, tuple(part.shape))
        collectives.reduce_scatter_tensor(result, whole, _op(reduceOp), of)
    return result


def _divisible(tensor: Tensor, dim: int, group: ProcessGroup) -> None:
    if tensor.shape[dim] % group.size():
        raise ValueError(f"input dimension {dim} ({tensor.shape[dim]}) must be a multiple of group_size {group.size()}")


def all_to_all_single(
    self: Tensor, output_split_sizes: list[int] | None, input_split_sizes: list[int] | None, group: Any, tag: str = ""
) -> Tensor:
    """Return the rows that all ranks give to this one."""
    of = _group(group)
    with no_grad():
        rows = sum(output_split_sizes) if output_split_sizes else self.shape[0]
        result = OPS["new_empty"].call(self, (rows, *self.shape[1:]))
        exchanges.all_to_all_single(result, self.contiguous(), output_split_sizes, input_split_sizes, of)
    return result


def permute_tensor(self: Tensor, src_dst: list[int], group: Any, tag: str = "") -> Tensor:
    """Return the tensor of the rank i for which ``src_dst[i]`` is this rank."""
    of = _group(group)
    source, target = src_dst.index(of.rank()), src_dst[of.rank()]
    with no_grad():
        own = self.contiguous()
        if source == of.rank() == target:
            return own.clone()
        result = OPS["empty_like"].call(own)
        for work in batch_isend_irecv([P2POp(isend, own, group=of, group_peer=target), P2POp(irecv, result, group=of, group_peer=source)]):
            work.wait()
    return result


def all_reduce_coalesced(self: list[Tensor], reduceOp: Any, group: Any, tag: str = "") -> list[Tensor]:
    """Return the reductions of several tensors."""
    return [all_reduce(t, reduceOp, group) for t in self]


def all_gather_into_tensor_coalesced(self: list[Tensor], group: Any, tag: str = "") -> list[Tensor]:
    """Return the tensors of all ranks along the first dim, for several tensors."""
    return [all_gather_tensor(t, 0, group) for t in self]


def reduce_scatter_tensor_coalesced(inputs: list[Tensor], reduceOp: Any, scatter_dim: list[int], group: Any, tag: str = "") -> list[Tensor]:
    """Return this rank's parts of the reductions of several tensors."""
    return [reduce_scatter_tensor(t, reduceOp, dim, group) for t, dim in zip(inputs, scatter_dim, strict=True)]


# ---- with gradients
def all_gather_tensor_autograd(self: Tensor, gather_dim: int, group: Any, tag: str = "") -> Tensor:
    """Return what `all_gather_tensor` does, with a gradient: each rank gets the sum of what all say of its own part."""
    return OPS["cat"].call(list(nn.all_gather(self, _group(group))), gather_dim)  # type: ignore[no-any-return]


def reduce_scatter_tensor_autograd(self: Tensor, reduceOp: Any, scatter_dim: int, group: Any, tag: str = "") -> Tensor:
    """Return what `reduce_scatter_tensor` does, with a gradient: each rank gets those of all parts."""
    of = _group(group)
    _divisible(self, scatter_dim, of)
    if _op(reduceOp) not in (ReduceOp.SUM, ReduceOp.AVG):
        raise NotImplementedError(f"reduce_scatter_tensor_autograd(): the gradient of {reduceOp!r} is not defined, those of sum and avg are")
    parts = [part.contiguous() for part in OPS["chunk"].call(self, of.size(), scatter_dim)]
    total = nn.reduce_scatter(parts[0], parts, ReduceOp.SUM, of)
    return total / of.size() if _op(reduceOp) == ReduceOp.AVG else total


def all_to_all_single_autograd(
    self: Tensor, output_split_sizes: list[int] | None, input_split_sizes: list[int] | None, group: Any, tag: str = ""
) -> Tensor:
    """Return what `all_to_all_single` does, with a gradient, which goes the way back."""
    rows = sum(output_split_sizes) if output_split_sizes else self.shape[0]
    like = OPS["new_empty"].call(self.detach(), (rows, *self.shape[1:]))
    return nn.all_to_all_single(like, self, output_split_sizes, input_split_sizes, _group(group))


# ---- names that PyTorch gives besides
all_gather_single, all_gather_single_autograd = all_gather_tensor, all_gather_tensor_autograd
reduce_scatter_single, reduce_scatter_single_autograd = reduce_scatter_tensor, reduce_scatter_tensor_autograd
