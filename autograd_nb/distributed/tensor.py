"""Tensors in parts, one on each rank of a mesh: what programs ask of the parameters that `nn.parallel.fully_shard` has shared out.

What an op computes of a `DTensor` it computes of this rank's part, whose shape ``shape`` is too; the result is a plain tensor. `DTensor.full_tensor`
brings the parts together.

Source: https://docs.pytorch.org/docs/stable/distributed.tensor.html
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..autograd.subclasses import Redefining, _disabled_torch_function_impl
from ..dtypes import float64
from ..shapes import layout_of
from ..tensor import Tensor, make, wrap
from .barriers import new_group
from .collectives import all_gather_into_tensor, all_reduce, broadcast
from .group import ProcessGroup, default_group, get_rank, get_world_size, init_process_group, is_initialized, known_group
from .reduce_op import ReduceOp

__path__: list[str] = []  # PyTorch has modules below this one: see compat/distant.py


class Placement:
    """The base class of what ranks have of a tensor."""

    def is_shard(self, dim: int | None = None) -> bool:
        """Return whether it is a part, along ``dim`` where one is named."""
        return isinstance(self, Shard) and dim in (None, self.dim)

    def is_replicate(self) -> bool:
        """Return whether it is the whole tensor."""
        return isinstance(self, Replicate)

    def is_partial(self, reduce_op: str | None = None) -> bool:
        """Return whether it is a summand."""
        return isinstance(self, Partial) and reduce_op in (None, self.reduce_op)

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.__dict__ == other.__dict__

    def __hash__(self) -> int:
        return hash((type(self).__name__, *self.__dict__.values()))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{k}={v}' for k, v in self.__dict__.items())})"


class Shard(Placement):
    """The part of each rank, as `chunk` makes them along ``dim``.

    >>> Shard(0), Shard(0) == Shard(1)
    (Shard(dim=0), False)
    """

    dim: int

    def __init__(self, dim: int):
        self.dim = dim


class Replicate(Placement):
    """The whole tensor on each rank.

    >>> Replicate().is_replicate()
    True
    """


class Partial(Placement):
    """A summand on each rank. Programs can name it; no tensor here is placed so.

    >>> Partial().is_partial()
    True
    """

    reduce_op: str

    def __init__(self, reduce_op: str = "sum"):
        self.reduce_op = reduce_op


class DeviceMesh:
    """Ranks in a grid, with a group along each of its dims. All ranks make it, with the same numbers.

    device_type: kept as it is given; mesh: the ranks, a tensor or lists; mesh_dim_names: one for each dim.

    >>> mesh = dist.tensor.DeviceMesh("cpu", [0, 1], mesh_dim_names=("dp",))
    >>> mesh, mesh.size(), mesh.get_local_rank("dp") == rank
    (DeviceMesh('cpu', [0, 1], mesh_dim_names=('dp',)), 2, True)
    """

    device_type: str
    mesh_dim_names: tuple[str, ...] | None

    def __init__(self, device_type: str, mesh: Any, *, mesh_dim_names: Sequence[str] | None = None, groups: Sequence[ProcessGroup] | None = None):
        self.device_type, self._ranks = str(device_type), np.array(mesh.tolist() if isinstance(mesh, Tensor) else mesh, np.int64)
        if self._ranks.ndim == 0:
            self._ranks = self._ranks.reshape(1)
        self.mesh_dim_names = None if mesh_dim_names is None else tuple(mesh_dim_names)
        if self.mesh_dim_names is not None and len(self.mesh_dim_names) != self._ranks.ndim:
            raise RuntimeError(f"mesh_dim_names {self.mesh_dim_names} are not as many as the mesh has dims, {self._ranks.ndim}")
        place = np.argwhere(self._ranks == get_rank())
        self._place = [int(k) for k in place[0]] if len(place) else None
        self._groups = list(groups) if groups is not None else [self._along(dim) for dim in range(self._ranks.ndim)]

    def _along(self, dim: int) -> Any:
        """Return this rank's group along a dim; all ranks make those of all lines."""
        own: Any = None
        for line in np.moveaxis(self._ranks, dim, -1).reshape(-1, self._ranks.shape[dim]).tolist():
            made = default_group() if line == list(default_group().ranks) else new_group(line)
            own = made if get_rank() in line else own
        return own

    @classmethod
    def from_group(cls, group: Any, device_type: str = "cpu", mesh: Any = None, *, mesh_dim_names: Sequence[str] | None = None) -> DeviceMesh:
        """Return the mesh of a group's ranks."""
        of = known_group(group)
        return cls(device_type, list(of.ranks) if mesh is None else mesh, mesh_dim_names=mesh_dim_names, groups=[of])

    @property
    def mesh(self) -> Tensor:
        """Return the ranks."""
        return wrap(self._ranks.copy())

    @property
    def ndim(self) -> int:
        """Return the number of dims."""
        return self._ranks.ndim

    @property
    def shape(self) -> tuple[int, ...]:
        """Return the sizes of the dims."""
        return self._ranks.shape

    def _number(self, dim: int | str | None) -> int:
        if dim is None:
            if self.ndim > 1:
                raise RuntimeError(f"the mesh has {self.ndim} dims: name one of them")
            return 0
        if isinstance(dim, str):
            if dim not in (self.mesh_dim_names or ()):
                raise KeyError(f"Invalid mesh_dim_name {dim!r}: this mesh has {self.mesh_dim_names or 'no names'}")
            return (self.mesh_dim_names or ()).index(dim)
        return dim

    def size(self, mesh_dim: int | None = None) -> int:
        """Return the number of ranks, along a dim where one is named."""
        return self._ranks.size if mesh_dim is None else self._ranks.shape[mesh_dim]

    def get_group(self, mesh_dim: int | str | None = None) -> ProcessGroup:
        """Return this rank's group along a dim; of a mesh of one dim, that of all its ranks."""
        return self._groups[self._number(mesh_dim)]

    def get_all_groups(self) -> list[ProcessGroup]:
        """Return this rank's group along each dim."""
        return list(self._groups)

    def get_rank(self) -> int:
        """Return this process's rank among all."""
        return get_rank()

    def get_local_rank(self, mesh_dim: int | str | None = None) -> int:
        """Return this process's place along a dim. RuntimeError where it is not in the mesh."""
        if self._place is None:
            raise RuntimeError(f"rank {get_rank()} is not in {self}")
        return self._place[self._number(mesh_dim)]

    def get_coordinate(self) -> list[int] | None:
        """Return this process's place, None where it is not in the mesh."""
        return None if self._place is None else list(self._place)

    def __getitem__(self, names: str | tuple[str, ...]) -> DeviceMesh:
        """Return the mesh of some dims, in which this process is."""
        chosen = [self._number(name) for name in ((names,) if isinstance(names, str) else names)]
        place = self._place or [0] * self.ndim
        others = tuple(slice(None) if d in chosen else place[d] for d in range(self.ndim))
        ranks = self._ranks[others].transpose(np.argsort(np.argsort(chosen)))
        return DeviceMesh(
            self.device_type, ranks, mesh_dim_names=[(self.mesh_dim_names or ())[d] for d in chosen], groups=[self._groups[d] for d in chosen]
        )

    def __eq__(self, other: object) -> bool:
        return self is other or (
            isinstance(other, DeviceMesh) and np.array_equal(self._ranks, other._ranks)
            and (self.device_type, self.mesh_dim_names) == (other.device_type, other.mesh_dim_names)
        )  # fmt: skip

    def __hash__(self) -> int:
        return hash((self.device_type, self._ranks.tobytes(), self.mesh_dim_names))

    def __repr__(self) -> str:
        named = f", mesh_dim_names={self.mesh_dim_names}" if self.mesh_dim_names else ""
        return f"DeviceMesh({self.device_type!r}, {self._ranks.tolist()}{named})"


def init_device_mesh(
    device_type: str, mesh_shape: Sequence[int], *, mesh_dim_names: Sequence[str] | None = None, backend_override: Any = None
) -> DeviceMesh:  # fmt: skip
    """Return all ranks as a grid of this shape, row after row; makes the group of all ranks where there is none.

    RuntimeError where there are not as many ranks.

    >>> dist.tensor.init_device_mesh("cpu", (2, 1), mesh_dim_names=("dp", "tp"))["dp"]
    DeviceMesh('cpu', [0, 1], mesh_dim_names=('dp',))
    """
    if not is_initialized():
        init_process_group()
    shape = tuple(mesh_shape)
    if int(np.prod(shape)) != get_world_size():
        raise RuntimeError(f"mesh_shape {shape} is of {int(np.prod(shape))} ranks, but there are {get_world_size()}")
    return DeviceMesh(device_type, np.arange(get_world_size()).reshape(shape), mesh_dim_names=mesh_dim_names)


class Sharding:
    """The layout of one tensor among the ranks of a group: rank i has its rows from i · ``rows`` on, or (``Replicate``) all.

    ``shape``: that of all together. ``placement``: rows along which dim.
    """

    group: Any
    shape: tuple[int, ...]
    rows: int

    def __init__(self, group: Any, shape: tuple[int, ...], placement: Placement = Shard(0), mesh: DeviceMesh | None = None):  # noqa: B008
        self.group, self.shape, self.placement, self._mesh = group, tuple(shape) or (1,), placement, mesh
        self.scalar = not shape
        self.dim = placement.dim % len(self.shape) if isinstance(placement, Shard) else 0
        ranks = get_world_size(group) if isinstance(placement, Shard) else 1
        moved = (self.shape[self.dim], *self.shape[: self.dim], *self.shape[self.dim + 1 :])
        self.rows = -(-moved[0] // ranks)
        self.inner = int(np.prod(moved[1:], dtype=np.int64))
        self._moved = moved

    @property
    def mesh(self) -> DeviceMesh:
        """Return the ranks, as a mesh."""
        if self._mesh is None:
            self._mesh = DeviceMesh.from_group(self.group)
        return self._mesh

    def part(self, whole: Tensor, rank: int | None = None) -> Tensor:
        """Return this rank's rows of a whole tensor."""
        if self.placement.is_replicate():
            return whole
        whole = whole.reshape(self.shape) if self.scalar else whole  # type: ignore[attr-defined]
        size = self.shape[self.dim]
        begin = min((get_rank(self.group) if rank is None else rank) * self.rows, size)
        return whole.narrow(self.dim, begin, min(begin + self.rows, size) - begin)  # type: ignore[attr-defined]

    def collected(self, part: Tensor) -> Tensor:
        """Return the whole tensor of the ranks' rows; all ranks call it."""
        if self.placement.is_replicate():
            return part.detach().clone()  # type: ignore[attr-defined]
        own = part.detach().movedim(self.dim, 0).contiguous()  # type: ignore[attr-defined]
        padded = np.zeros(self.rows * self.inner, part.dtype.carrier)
        padded[: part.numel()] = own._data[: part.numel()]
        every = np.empty(get_world_size(self.group) * padded.size, padded.dtype)
        all_gather_into_tensor(wrap(every.view(np.uint8)), wrap(padded.view(np.uint8)), self.group)
        shape = () if self.scalar else self._moved
        whole = make(every[: self.shape[self.dim] * self.inner].copy(), layout_of(shape, None, part.dtype), [0, 0])
        return whole.movedim(0, self.dim).contiguous() if self.dim else whole  # type: ignore[attr-defined]

    def joint(self, total: np.ndarray, p: float) -> None:
        """Make one rank's sum of powers, as the p-norm adds them up (its largest number for ∞), that of all ranks; a float64 array of one."""
        all_reduce(make(total, layout_of((), None, float64), [0, 0]), ReduceOp.MAX if np.isinf(p) else ReduceOp.SUM, self.group)

    def mark(self, t: Tensor) -> Any:
        """Let a tensor of this rank's rows be a `DTensor`, of its own class besides; return it."""
        cls = type(t)
        if not issubclass(cls, DTensor):
            if cls not in _marked:
                bases = (cls, DTensor) if issubclass(cls, Redefining) else (DTensor, cls)  # (of the device "meta")
                _marked[cls] = type("DTensor", bases, {"__slots__": (), "__module__": __name__})
            t.__class__ = _marked[cls]
        t.__dict__["_sharding"] = self
        return t


class DTensor(Tensor):
    """This rank's part of a tensor that all ranks of a mesh have together. `distribute_tensor`, `DTensor.from_local` and `fully_shard` make them.

    Ops compute of the part, and return plain tensors.

    >>> t = dist.tensor.distribute_tensor(torch.arange(4.), DeviceMesh("cpu", [0, 1]), [Shard(0)])
    >>> t.to_local().tolist() == [2.0 * rank, 2.0 * rank + 1], t.full_tensor(), t.placements
    (True, tensor([0., 1., 2., 3.]), (Shard(dim=0),))
    """

    __slots__ = ()
    __torch_function__ = _disabled_torch_function_impl

    @staticmethod
    def from_local(
        local_tensor: Tensor, device_mesh: DeviceMesh | None = None, placements: Sequence[Placement] | None = None, *, run_check: bool = False,
        shape: Sequence[int] | None = None, stride: Any = None,
    ) -> DTensor:  # fmt: skip
        """Return the tensor whose parts are the ranks' ``local_tensor``, of one size where ``shape``, that of all, is not given."""
        mesh, placement = _placed(device_mesh, placements)
        whole = list(local_tensor.shape if shape is None else shape)
        if shape is None and isinstance(placement, Shard):
            whole[placement.dim] *= mesh.size()
        sharding = Sharding(mesh.get_group(), tuple(whole), placement, mesh)
        return sharding.mark(local_tensor.detach().requires_grad_(local_tensor.requires_grad))  # type: ignore[attr-defined,no-any-return]

    @property
    def placements(self) -> tuple[Placement, ...]:
        """Return what each rank has, one for each dim of the mesh."""
        return (self.__dict__["_sharding"].placement,)

    @property
    def device_mesh(self) -> DeviceMesh:
        """Return the ranks."""
        return self.__dict__["_sharding"].mesh  # type: ignore[no-any-return]

    def to_local(self, *, grad_placements: Any = None) -> Tensor:
        """Return this rank's part, a plain tensor in the same memory."""
        return self.detach()

    def full_tensor(self, *, grad_placements: Any = None) -> Tensor:
        """Return the whole tensor, a copy; all ranks call it."""
        return self.__dict__["_sharding"].collected(self)  # type: ignore[no-any-return]

    def redistribute(self, device_mesh: DeviceMesh | None = None, placements: Sequence[Placement] | None = None, *, async_op: bool = False) -> DTensor:
        """Return the tensor with other parts."""
        mesh, placement = _placed(device_mesh or self.device_mesh, placements or self.placements)
        whole = self.full_tensor()
        return _parted(whole, mesh, placement, self.requires_grad)

    def __reduce_ex__(self, protocol: Any) -> Any:
        return self.to_local().__reduce_ex__(protocol)  # what is saved is this rank's part

    def __deepcopy__(self, memo: dict[Any, Any]) -> Any:
        if id(self) not in memo:
            base = type(self).__mro__[2] if type(self) is not DTensor else Tensor
            new = self.detach().clone() if base is Tensor else base(self.detach().clone(), self.requires_grad)
            memo[id(self)] = self.__dict__["_sharding"].mark(new if base is not Tensor else new.requires_grad_(self.requires_grad))
        return memo[id(self)]

    def __repr__(self, **options: Any) -> str:
        return f"DTensor(local_tensor={self.to_local()!r}, device_mesh={self.device_mesh!r}, placements={self.placements})"


_marked: dict[type, type] = {Tensor: DTensor}


def _placed(mesh: DeviceMesh | None, placements: Sequence[Placement] | None) -> tuple[DeviceMesh, Placement]:
    """Return a mesh, that of all ranks where none is named, and what its ranks have, all where that is not said."""
    mesh = DeviceMesh.from_group(default_group()) if mesh is None else mesh
    if mesh.ndim != 1:
        raise NotImplementedError(f"{mesh}: tensors are placed along meshes of one dim here; take one of its dims, mesh[name]")
    found = tuple(placements) if placements is not None else (Replicate(),)
    if len(found) != 1:
        raise ValueError(f"`placements` must have the same length as `device_mesh.ndim`! Found placements length: {len(found)}, and device_mesh.ndim: 1.")
    if not isinstance(found[0], (Shard, Replicate)):
        raise NotImplementedError(f"placements={found}: Shard(dim) and Replicate() are here; reduce partial sums by all_reduce")
    return mesh, found[0]


def _parted(whole: Tensor, mesh: DeviceMesh, placement: Placement, requires_grad: bool) -> DTensor:
    sharding = Sharding(mesh.get_group(), tuple(whole.shape), placement, mesh)
    return sharding.mark(sharding.part(whole).clone().requires_grad_(requires_grad))  # type: ignore[attr-defined,no-any-return]


def distribute_tensor(
    tensor: Tensor, device_mesh: DeviceMesh | None = None, placements: Sequence[Placement] | None = None, *, src_data_rank: int | None = 0
) -> DTensor:  # fmt: skip
    """Return the parts of a tensor, that of rank ``src_data_rank`` of the mesh; None: each rank's own, which they know to be equal.

    Errors: ValueError for other than one placement, NotImplementedError for meshes of several dims and partial sums.

    >>> dist.tensor.distribute_tensor(torch.ones(4, 3), placements=[Shard(1)]).shape == (4, 2 - rank)
    True
    """
    mesh, placement = _placed(device_mesh, placements)
    if isinstance(tensor, DTensor):
        return tensor.redistribute(mesh, [placement])
    whole = tensor.detach().clone()  # type: ignore[attr-defined]
    if src_data_rank is not None:
        broadcast(whole, group=mesh.get_group(), group_src=src_data_rank)
    return _parted(whole, mesh, placement, tensor.requires_grad)


__all__: list[str] = [
    "DTensor", "DeviceMesh", "Partial", "Placement", "Replicate", "Shard", "distribute_tensor", "init_device_mesh",
]  # fmt: skip

