"""The layout of one tensor among ranks, and moves from one layout to another, which have gradients."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from ...autograd.function import Function
from ...dtypes import float64
from ...ops.core.registry import OPS
from ...shapes import layout_of
from ...tensor import Tensor, make, wrap
from ..collectives import all_gather_into_tensor, all_reduce, reduce_scatter_tensor
from ..group import get_rank, get_world_size
from ..reduce_op import RedOpType, ReduceOp
from .mesh import DeviceMesh, Partial, Placement, Replicate, Shard


class Sharding:
    """The layout of one tensor among the ranks of a group: rank i has its rows from i · ``rows`` on, or (``Replicate``) all, or (``Partial``) a summand.

    ``shape``: that of all together. ``placement``: rows along which dim.
    """

    group: Any
    shape: tuple[int, ...]
    rows: int
    mark: ClassVar[Callable[[Any, Tensor], Any]]  #: let a tensor of this rank's part be a `DTensor`, of its own class besides; return it (see `dtensor`)

    def __init__(self, group: Any, shape: tuple[int, ...], placement: Placement = Shard(0), mesh: DeviceMesh | None = None):  # noqa: B008
        self.group, self.shape, self._mesh = group, tuple(shape) or (1,), mesh
        self.scalar: bool = not shape
        self.unit = False  # whether the modules that have it collect it for their passes, as `fully_shard` lets them
        sharded = isinstance(placement, Shard)
        self.dim: int = placement.dim % len(self.shape) if isinstance(placement, Shard) else 0
        self.placement: Placement = Shard(self.dim) if sharded else placement
        ranks = get_world_size(group) if sharded else 1
        moved = (self.shape[self.dim], *self.shape[: self.dim], *self.shape[self.dim + 1 :])
        self.rows = -(-moved[0] // ranks)
        self.inner: int = int(np.prod(moved[1:], dtype=np.int64))
        self._moved = moved

    @property
    def whole(self) -> tuple[int, ...]:
        """Return the shape of all together, () for numbers too."""
        return () if self.scalar else self.shape

    @property
    def mesh(self) -> DeviceMesh:
        """Return the ranks, as a mesh."""
        if self._mesh is None:
            self._mesh = DeviceMesh.from_group(self.group)
        return self._mesh

    def like(self, shape: tuple[int, ...], placement: Placement) -> Sharding:
        """Return the layout of another tensor among the same ranks."""
        return Sharding(self.group, shape, placement, self.mesh)

    def same(self, other: Sharding) -> bool:
        """Return whether the parts of two tensors are of the same places."""
        return self.placement == other.placement and self.whole == other.whole

    def sizes(self, rank: int | None = None) -> tuple[int, ...]:
        """Return the shape of a rank's part, this one's where None."""
        if not isinstance(self.placement, Shard):
            return self.whole
        begin = min((get_rank(self.group) if rank is None else rank) * self.rows, self.shape[self.dim])
        own = min(begin + self.rows, self.shape[self.dim]) - begin
        return (*self.shape[: self.dim], own, *self.shape[self.dim + 1 :])

    def part(self, whole: Tensor, rank: int | None = None) -> Tensor:
        """Return this rank's rows of a whole tensor."""
        if not isinstance(self.placement, Shard):
            return whole
        whole = whole.reshape(self.shape) if self.scalar else whole  # type: ignore[attr-defined]
        begin = min((get_rank(self.group) if rank is None else rank) * self.rows, self.shape[self.dim])
        return whole.narrow(self.dim, begin, self.sizes(rank)[self.dim])  # type: ignore[attr-defined,no-any-return]

    def collected(self, part: Tensor) -> Tensor:
        """Return the whole tensor of the ranks' rows, outside the graph; all ranks call it."""
        if isinstance(self.placement, Partial):
            total = _plain(part)
            all_reduce(total, RedOpType[self.placement.reduce_op.upper()], self.group)
            return total
        if not isinstance(self.placement, Shard):
            return _plain(part)
        own = part.detach().movedim(self.dim, 0).contiguous()  # type: ignore[attr-defined]
        padded = np.zeros(self.rows * self.inner, part.dtype.carrier)
        padded[: part._layout.size] = own._data[: part._layout.size]
        every = np.empty(get_world_size(self.group) * padded.size, padded.dtype)
        all_gather_into_tensor(wrap(every.view(np.uint8)), wrap(padded.view(np.uint8)), self.group)
        shape = () if self.scalar else self._moved
        whole = make(every[: self.shape[self.dim] * self.inner].copy(), layout_of(shape, None, part.dtype), [0, 0])
        return whole.movedim(0, self.dim).contiguous() if self.dim else whole  # type: ignore[attr-defined,no-any-return]

    def joint(self, total: np.ndarray, p: float) -> None:
        """Make one rank's sum of powers, as the p-norm adds them up (its largest number for ∞), that of all ranks; a float64 array of one."""
        all_reduce(make(total, layout_of((), None, float64), [0, 0]), ReduceOp.MAX if np.isinf(p) else ReduceOp.SUM, self.group)


def _plain(part: Tensor) -> Tensor:
    return OPS["clone"].call(part.detach())  # type: ignore[no-any-return]


def of_gradients(placement: Placement) -> Placement:
    """Return what each rank has of the gradient of a tensor that is placed so: each summand of a sum has the gradient of the sum."""
    return Replicate() if isinstance(placement, Partial) else placement


def _moved(layout: Sharding, to: Placement, part: Tensor) -> Tensor:
    """Return this rank's part in another placement, outside the graph."""
    src = layout.placement
    if src == to:
        return _plain(part)
    target = layout.like(layout.whole, to)
    if isinstance(to, Partial):
        whole = layout.collected(part)
        return whole if get_rank(layout.group) == 0 or to.reduce_op != "sum" else OPS["zeros_like"].call(whole)  # type: ignore[no-any-return]
    even = isinstance(to, Shard) and target.rows * get_world_size(layout.group) == target.shape[target.dim] and part._layout.size
    if even and isinstance(src, Partial):
        rows = part.detach().movedim(target.dim, 0).contiguous()  # type: ignore[attr-defined]
        own = OPS["new_empty"].call(rows, (target.rows, *rows._layout.shape[1:]))
        reduce_scatter_tensor(own, rows, RedOpType[src.reduce_op.upper()], layout.group)
        return own.movedim(0, target.dim).contiguous()  # type: ignore[no-any-return]
    whole = layout.collected(part)
    return _plain(target.part(whole)) if isinstance(to, Shard) else whole


class _Move(Function):
    @staticmethod
    def forward(ctx: Any, layout: Sharding, to: Placement, part: Tensor) -> Any:
        ctx.layout, ctx.to = layout, to
        return _moved(layout, to, part)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        layout = ctx.layout
        return None, None, moved(layout.like(layout.whole, of_gradients(ctx.to)), of_gradients(layout.placement), grads[0])


def moved(layout: Sharding, to: Placement, part: Tensor) -> Tensor:
    """Return this rank's part of a tensor in another placement; all ranks call it. The gradient moves back."""
    return part if layout.placement == to else _Move._applied(layout, to, part)  # type: ignore[no-any-return]


class _Shared(Function):
    """A tensor that all ranks have alike, for work of which each does a part: the gradient is the sum of theirs."""

    @staticmethod
    def forward(ctx: Any, layout: Sharding, part: Tensor) -> Any:
        ctx.layout = layout
        return OPS["alias_copy"].call(part)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        layout = ctx.layout
        return None, moved(layout.like(layout.whole, Partial()), Replicate(), grads[0])


def shared(layout: Sharding, part: Tensor) -> Tensor:
    """Return the whole tensor that each rank has, to be used for a part of the work each."""
    return _Shared._applied(layout, part) if part.requires_grad else part  # type: ignore[no-any-return]


def summand(layout: Sharding, part: Tensor) -> Tensor:
    """Return a tensor that all ranks have alike as summands: all of it on the first rank, zeros on the others."""
    return moved(layout, Partial(), part)
