"""Meshes of ranks, and what each of their ranks has of a tensor."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...tensor import Tensor, wrap
from ..barriers import new_group
from ..group import ProcessGroup, default_group, get_rank, get_world_size, init_process_group, is_initialized, known_group


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


class _StridedShard(Shard):
    """A part of a dim that was split along a later dim of the mesh before, into ``split_factor`` parts: layers in parts that `fully_shard` splits."""

    split_factor: int

    def __init__(self, dim: int, *, split_factor: int):
        super().__init__(dim)
        self.split_factor = split_factor


class Replicate(Placement):
    """The whole tensor on each rank.

    >>> Replicate().is_replicate()
    True
    """


class Partial(Placement):
    """A summand on each rank, which sums and products over parts leave: their sum is the tensor.

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
        self._groups = list(groups) if groups is not None else [self._along((dim,)) for dim in range(self._ranks.ndim)]
        self._part_of: tuple[DeviceMesh, tuple[int, ...]] = (self, tuple(range(self._ranks.ndim)))  # the mesh of which it is some dims, and which ones
        self._parts: dict[Any, DeviceMesh] = {}

    def _along(self, dims: tuple[int, ...]) -> Any:
        """Return this rank's group along a dim, or several of them; all ranks make those of all lines."""
        own: Any = None
        size = int(np.prod([self._ranks.shape[d] for d in dims]))
        for line in np.moveaxis(self._ranks, dims, range(-len(dims), 0)).reshape(-1, size).tolist():
            made = default_group() if sorted(line) == list(default_group().ranks) else new_group(line)
            own = made if get_rank() in line else own
        return own

    @classmethod
    def from_group(cls, group: Any, device_type: str = "cpu", mesh: Any = None, *, mesh_dim_names: Sequence[str] | None = None) -> DeviceMesh:
        """Return the mesh of a group's ranks; of several groups, one for each dim, that of ``mesh``.

        Errors: ValueError for several groups without a mesh of so many dims, or without names of them.
        """
        if isinstance(group, (list, tuple)):
            if mesh is None or mesh_dim_names is None or not group:
                what = "at least one ProcessGroup" if not group else "mesh" if mesh is None else "mesh_dim_names"
                raise ValueError(f"Must pass {what} if passing multiple ProcessGroups")
            found = cls(device_type, mesh, mesh_dim_names=mesh_dim_names, groups=[known_group(g) for g in group])
            if found.ndim != len(group):
                raise ValueError(f"Expects mesh with ndim equal to number of ProcessGroups but got mesh {found._ranks.tolist()} and {len(group)} ProcessGroups")
            return found
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
        if isinstance(names, str) and names in self._part_of[0]._parts:
            return self._part_of[0]._parts[names]
        return self.some([self._number(name) for name in ((names,) if isinstance(names, str) else names)])

    def some(self, dims: Sequence[int]) -> DeviceMesh:
        """Return the mesh of some dims, in which this process is, by their numbers."""
        root, own = self._part_of
        if root is not self:
            return root.some([own[d] for d in dims])
        chosen = tuple(dims)
        if chosen == tuple(range(self.ndim)):
            return self
        if chosen not in self._parts:
            place = self._place or [0] * self.ndim
            ranks = self._ranks[tuple(slice(None) if d in chosen else place[d] for d in range(self.ndim))].transpose(np.argsort(np.argsort(chosen)))
            names = None if self.mesh_dim_names is None else [self.mesh_dim_names[d] for d in chosen]
            made = self._parts[chosen] = DeviceMesh(self.device_type, ranks, mesh_dim_names=names, groups=[self._groups[d] for d in chosen])
            made._part_of = self, chosen
        return self._parts[chosen]

    def beside(self, other: DeviceMesh) -> tuple[DeviceMesh, list[int], list[int]]:
        """Return the mesh of this one's dims and another's, and where there those of each are. ValueError where they are of no one mesh, or share dims."""
        (root, own), (other_root, others) = self._part_of, other._part_of
        if root is not other_root or set(own) & set(others):
            raise ValueError(f"{self} and {other} are not of one mesh, of which they have other dims: take both from it, mesh['dp'] and mesh['tp']")
        dims = sorted((*own, *others))
        return root.some(dims), [dims.index(d) for d in own], [dims.index(d) for d in others]

    def _flatten(self, mesh_dim_name: str | None = None) -> DeviceMesh:
        """Return the mesh of one dim of all this one's ranks; all ranks call it. ``mesh[name]`` finds it again."""
        root, dims = self._part_of
        name = mesh_dim_name or "_".join(self.mesh_dim_names or ["mesh"])
        if name not in root._parts:
            group = self._groups[0] if self.ndim == 1 else root._along(dims)
            root._parts[name] = DeviceMesh(self.device_type, self._ranks.reshape(-1), mesh_dim_names=(name,), groups=[group])
        return root._parts[name]

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
