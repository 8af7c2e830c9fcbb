"""Arguments of the calls, checked before anything is sent, with PyTorch's errors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..errors import warn_user
from ..tensor import Tensor
from .group import GroupMember, ProcessGroup, get_group_rank, get_rank, known_group
from .reduce_op import BITS, RedOpType, ReduceOp, supports_complex


def one_tensor(value: Any, name: str) -> Tensor:
    """Return the tensor. TypeError for anything else."""
    if not isinstance(value, Tensor):
        raise TypeError(
            f"Invalid function argument. Expected parameter `{name}` of type torch.Tensor\n             but got {type(value)} instead."
        )
    return value


def tensors(value: Any, name: str) -> list[Tensor]:
    """Return the list of tensors. TypeError for anything else."""
    if not isinstance(value, (list, tuple)) or not all(isinstance(t, Tensor) for t in value):
        kinds = f" with elements of type {[type(t) for t in value]}" if isinstance(value, (list, tuple)) else " instead"
        raise TypeError(
            f"Invalid function argument. Expected parameter `{name}` of type List[torch.Tensor]\n             but got {type(value)}{kinds}."
        )
    return list(value)


def same_dtype(*every: Tensor) -> None:
    """Raise ValueError where the tensors' dtypes differ."""
    for t in every[1:]:
        if t.dtype is not every[0].dtype:
            raise ValueError(f"Invalid usage of tensors with different dtypesFound {every[0].dtype} and  {t.dtype}")


def reduction(name: str, op: Any, tensor: Tensor) -> RedOpType:
    """Return the reduction. TypeError for anything else, ValueError and RuntimeError where the dtype has it not."""
    if not isinstance(op, RedOpType):
        raise TypeError(f"{name}(): incompatible function arguments: op must be a ReduceOp, not {op!r}")
    if tensor.dtype.is_complex and not supports_complex(op):
        refusal = ValueError if name == "all_reduce" else RuntimeError  # as PyTorch's Python and C++ do
        raise refusal(f"{name} does not support {op} on complex tensors")
    if op in BITS and (tensor.dtype.is_floating_point or tensor.dtype.is_complex):
        raise RuntimeError(f"Cannot use ReduceOp.{op.name} with non-integral dtype")
    if op == ReduceOp.AVG and tensor.dtype.name == "bool":
        raise RuntimeError(f"{name}(): ReduceOp.AVG of truth values is not defined")
    return op


def group_of(name: str, given: Any) -> ProcessGroup | None:
    """Return the group, or None, with a warning, where this rank does not belong to it."""
    if given == GroupMember.NON_GROUP_MEMBER:
        warn_user(f"Running {name} on global rank {get_rank()} which does not belong to the given group.")
        return None
    return known_group(given)


def root(name: str, group: ProcessGroup, among_all: int | None, in_group: int | None, default: int | None = None) -> int:
    """Return the rank in the group that a call names, among all ranks or (``in_group``) among the group's."""
    if in_group is not None:
        if among_all is not None:
            raise ValueError("Can't specify both group_rank and global_rank")
        if not 0 <= in_group < group.size():
            raise ValueError(f"Group rank {in_group} is not part of group {group}")
        return in_group
    if among_all is None:
        if default is None:
            raise ValueError("Must specify global_rank or group_rank")
        among_all = default
    if group is GroupMember.WORLD:
        if isinstance(among_all, bool) or not isinstance(among_all, int) or not 0 <= among_all < group.size():
            raise RuntimeError(f"{name}: invalid root rank: {among_all}")
        return among_all
    return get_group_rank(group, among_all)


def as_many(name: str, what: str, found: int, group: ProcessGroup) -> None:
    """Raise RuntimeError unless there is one for each rank."""
    if found != group.size():
        raise RuntimeError(f"{name}: Incorrect {what} list size {found}. It should be {group.size()}, same as size of the process group.")


def same_sizes(name: str, tensor: Tensor, others: Sequence[Tensor]) -> None:
    """Raise RuntimeError unless all have as many elements as ``tensor``."""
    for i, t in enumerate(others):
        if t.numel() != tensor.numel():
            raise RuntimeError(f"{name}: invalid tensor size at index {i} (expected {tuple(tensor.shape)}, got {tuple(t.shape)})")
