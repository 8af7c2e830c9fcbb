"""The layout of one tensor among ranks, and moves from one layout to another, which have gradients."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np

from ...autograd.function import Function
from ...dtypes import float64
from ...ops.core.registry import OPS
from ...ops.shape.shape import alias_view
from ...shapes import layout_of
from ...tensor import Tensor, make, wrap
from ..collectives import all_gather_into_tensor, all_reduce, reduce_scatter_tensor
from ..group import get_rank, get_world_size
from ..reduce_op import RedOpType, ReduceOp
from .mesh import DeviceMesh, Partial, Placement, Replicate, Shard, _StridedShard


class Sharding:
    """The layout of one tensor among the ranks of a group: rank i has its rows from i · ``rows`` on, or (``Replicate``) all, or (``Partial``) a summand.

    ``shape``: that of all together. ``placement``: rows along which dim. Among the ranks of a mesh of several dims what one rank of the first of ``dims``
    has is a tensor that lies among those of the others: ``below`` is its layout there, None along the last of them.
    """

    group: Any
    shape: tuple[int, ...]
    rows: int
    dims: tuple[int, ...]
    below: Sharding | None
    mark: ClassVar[Callable[[Any, Tensor], Any]]  #: let a tensor of this rank's part be a `DTensor`, of its own class besides; return it (see `dtensor`)

    def __init__(
        self, group: Any, shape: tuple[int, ...], placement: Placement = Shard(0), mesh: DeviceMesh | None = None, dims: tuple[int, ...] = (0,),  # noqa: B008
    ):  # fmt: skip
        self.group, self.shape, self._mesh, self.dims, self.below = group, tuple(shape) or (1,), mesh, dims, None
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

    @classmethod
    def placed(cls, mesh: DeviceMesh, shape: tuple[int, ...], placements: Sequence[Placement], dims: tuple[int, ...] | None = None) -> Sharding:
        """Return the layout of a tensor among the ranks of a mesh, split along its ``dims`` one after another, in their order where that is not said."""
        dims = tuple(range(mesh.ndim)) if dims is None else dims
        found = cls(mesh.get_group(dims[0]), shape, placements[dims[0]], mesh, dims)
        if len(dims) > 1:
            found.below = cls.placed(mesh, found.sizes(), placements, dims[1:])
        return found

    @property
    def levels(self) -> list[Sharding]:
        """Return this layout and those below it."""
        return [self, *(self.below.levels if self.below is not None else ())]

    @property
    def placements(self) -> tuple[Placement, ...]:
        """Return what each rank has, one for each dim of the mesh; a dim of the tensor that is split out of the mesh's order says so."""
        if self.below is None and self.dims == (0,):
            return (self.placement,)
        found: list[Placement] = [Replicate()] * self.mesh.ndim
        for level in self.levels:
            place, strided = level.dims[0], isinstance(level.placement, Shard)
            before = [k for k in self.levels if strided and k.dims[0] > place and len(k.dims) > len(level.dims) and k.placement == level.placement]
            found[place] = _StridedShard(level.dim, split_factor=_size(before)) if before else level.placement
        return tuple(found)

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
        """Return the layout of another tensor among the same ranks, along the first dim of a mesh; see `over`."""
        return Sharding(self.group, shape, placement, self.mesh, self.dims)

    def over(self, below: Sharding | None) -> Sharding:
        """Return this layout with another one of what a rank has."""
        if below is self.below:
            return self
        found = self.like(self.whole, self.placement)
        found.below = below
        return found

    def replaced(self, shape: tuple[int, ...], *placements: Placement) -> Sharding:
        """Return the layout of a tensor of this shape among the same ranks, with other placements along the first of ``dims``."""
        found = self.like(shape, placements[0] if placements else self.placement)
        if self.below is not None:
            found.below = self.below.replaced(found.sizes(), *placements[1:])
        return found

    def gradients(self) -> Sharding:
        """Return the layout of a tensor's gradient: each summand of a sum has the gradient of the sum."""
        if all(not isinstance(level.placement, Partial) for level in self.levels):
            return self
        return self.replaced(self.whole, *[of_gradients(level.placement) for level in self.levels])

    def same(self, other: Sharding) -> bool:
        """Return whether the parts of two tensors are of the same places."""
        return self.placement == other.placement and self.whole == other.whole

    def sizes(self, rank: int | None = None) -> tuple[int, ...]:
        """Return the shape of a rank's part along the first dim of the mesh, this one's where None."""
        if not isinstance(self.placement, Shard):
            return self.whole
        begin = min((get_rank(self.group) if rank is None else rank) * self.rows, self.shape[self.dim])
        own = min(begin + self.rows, self.shape[self.dim]) - begin
        return (*self.shape[: self.dim], own, *self.shape[self.dim + 1 :])

    @property
    def even(self) -> bool:
        """Return whether ranks along the first dim of the mesh have parts of one size."""
        return not isinstance(self.placement, Shard) or self.rows * get_world_size(self.group) == self.shape[self.dim]

    @property
    def own(self) -> tuple[int, ...]:
        """Return the shape of what this rank has."""
        return self.levels[-1].sizes()

    def part(self, whole: Tensor) -> Tensor:
        """Return what this rank has of a whole tensor."""
        if isinstance(self.placement, Shard):
            whole = whole.reshape(self.shape) if self.scalar else whole  # type: ignore[attr-defined]
            begin = min(get_rank(self.group) * self.rows, self.shape[self.dim])
            whole = whole.narrow(self.dim, begin, self.sizes()[self.dim])  # type: ignore[attr-defined]
        return whole if self.below is None else self.below.part(whole)

    def collected(self, part: Tensor) -> Tensor:
        """Return the whole tensor of the ranks' rows, outside the graph; all ranks call it."""
        part = part if self.below is None else self.below.collected(part)
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
        if not self.dim:
            return whole
        whole = whole.movedim(0, self.dim).contiguous()  # type: ignore[attr-defined]
        return make(whole._data, layout_of(tuple(whole._layout.shape), None, part.dtype), [0, 0])  # dims of one element have any stride

    def joint(self, total: np.ndarray, p: float) -> None:
        """Make one rank's sum of powers, as the p-norm adds them up (its largest number for ∞), that of all ranks; a float64 array of one."""
        for level in self.levels:
            if isinstance(level.placement, Shard):
                all_reduce(make(total, layout_of((), None, float64), [0, 0]), ReduceOp.MAX if np.isinf(p) else ReduceOp.SUM, level.group)


def _size(levels: Sequence[Sharding]) -> int:
    return int(np.prod([get_world_size(level.group) for level in levels]))


def _plain(part: Tensor) -> Tensor:
    return OPS["clone"].call(part.detach())  # type: ignore[no-any-return]


def of_gradients(placement: Placement) -> Placement:
    """Return what each rank has of the gradient of a tensor that is placed so: each summand of a sum has the gradient of the sum."""
    return Replicate() if isinstance(placement, Partial) else placement


def _along(layout: Sharding, to: Placement, part: Tensor) -> Tensor:
    """Return this rank's part in another placement along one dim of the mesh, outside the graph."""
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


def _here(level: Sharding, placement: Placement, part: Tensor) -> Sharding:
    """Return the layout along one dim of the mesh alone, of what the ranks along it have of a tensor, whatever lies along the others."""
    sizes = list(part._layout.shape)
    if isinstance(placement, Shard) and not level.scalar:
        sizes[placement.dim] = level.shape[placement.dim]
    return Sharding(level.group, () if level.scalar else tuple(sizes), placement, level.mesh, level.dims[:1])


def _moved(layout: Sharding, target: Sharding, part: Tensor) -> Tensor:
    """Return this rank's part in another layout, outside the graph.

    What is split along a dim of the tensor that moves is brought together first, from the last dim of the mesh on, and split again behind it.
    """
    src, to = layout.levels, target.levels
    if len(src) == 1:
        return _along(layout, target.placement, part)
    changes = [k for k in range(len(src)) if src[k].placement != to[k].placement]
    touched = {level.dim for k in changes for level in (src[k], to[k]) if isinstance(level.placement, Shard)}
    apart = [k for k in range(len(src)) if k in changes or (changes and k > changes[0] and src[k].placement.is_shard() and src[k].dim in touched)]
    if len(apart) == 1:
        return _along(_here(src[apart[0]], src[apart[0]].placement, part), to[apart[0]].placement, part)
    for k in reversed(apart):
        part = _along(_here(src[k], src[k].placement, part), Replicate(), part)
    for k in apart:
        part = _along(_here(to[k], Replicate(), part), to[k].placement, part)
    return _plain(part) if not apart else part


class _Move(Function):
    @staticmethod
    def forward(ctx: Any, layout: Sharding, target: Sharding, part: Tensor) -> Any:
        ctx.layout, ctx.target = layout, target
        return _moved(layout, target, part)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        return None, None, relaid(ctx.target.gradients(), ctx.layout.gradients(), grads[0])


def relaid(layout: Sharding, target: Sharding, part: Tensor) -> Tensor:
    """Return this rank's part of a tensor in another layout; all ranks call it. The gradient moves back."""
    alike = all(a.placement == b.placement for a, b in zip(layout.levels, target.levels, strict=True))
    return part if alike else _Move._applied(layout, target, part)  # type: ignore[no-any-return]


def _full(layout: Sharding, part: Tensor) -> Sharding:
    """Return the layout of a part, with those along the other dims of the mesh as the part itself knows them: all of it on each rank where it knows none."""
    if len(layout.dims) == 1:
        return layout
    known: Sharding | None = part.__dict__.get("_sharding")
    while known is not None and len(known.dims) >= len(layout.dims):
        known = known.below
    if known is None:
        known = Sharding.placed(layout.mesh, tuple(part._layout.shape), [Replicate()] * layout.mesh.ndim, layout.dims[1:])
    return layout.over(known)


def _lower(layout: Sharding, part: Tensor) -> Tensor:
    """Let what a rank has along the first dim of a mesh be known as a tensor in parts along the others."""
    return part if layout.below is None else layout.below.mark(part)


def moved(layout: Sharding, to: Placement, part: Tensor) -> Tensor:
    """Return this rank's part of a tensor in another placement along the first dim of its mesh; all ranks call it. The gradient moves back."""
    if layout.placement == to:
        return part
    full = _full(layout, part)
    target = full.replaced(full.whole, to, *[level.placement for level in full.levels[1:]])
    return _lower(target, _Move._applied(full, target, part))


class _Shared(Function):
    """A tensor that all ranks have alike, for work of which each does a part: the gradient is the sum of theirs."""

    @staticmethod
    def forward(ctx: Any, layout: Sharding, part: Tensor) -> Any:
        ctx.layout = layout
        return OPS["alias_copy"].call(part)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        found = ctx.layout.gradients()
        return None, relaid(found.replaced(found.whole, Partial(), *[level.placement for level in found.levels[1:]]), found, grads[0])


def shared(layout: Sharding, part: Tensor) -> Tensor:
    """Return the whole tensor that each rank has, to be used for a part of the work each."""
    if not part.requires_grad:
        return part
    full = _full(layout, part)
    return _lower(full, _Shared._applied(full, part))


def summand(layout: Sharding, part: Tensor) -> Tensor:
    """Return a tensor that all ranks have alike as summands: all of it on the first rank, zeros on the others."""
    return moved(layout, Partial(), part)


def in_order_of(other: Sharding, t: Tensor) -> Tensor:
    """Return a tensor split along the dims of its mesh in the order in which another one is; others as they are."""
    own: Sharding | None = t.__dict__.get("_sharding")
    if own is None or own.dims == other.dims or own.mesh != other.mesh:
        return t
    by_dim = {level.dims[0]: level.placement for level in own.levels}
    placements = [by_dim[k] for k in range(own.mesh.ndim)]
    target, split = Sharding.placed(own.mesh, own.whole, placements, other.dims), [p.dim for p in placements if isinstance(p, Shard)]
    if len(split) == len(set(split)):  # in any order the parts are the same
        return target.mark(alias_view(t))  # type: ignore[no-any-return]
    alike = [Replicate()] * own.mesh.ndim
    return target.mark(relaid(target.replaced(own.whole, *alike), target, relaid(own, own.replaced(own.whole, *alike), t)))  # type: ignore[no-any-return]
