"""Tensors in parts, one on each rank of a mesh.

A `DTensor` is this rank's part, and knows how the whole lies among the ranks: its ``shape`` is that of the whole, and so is what is computed of it
(see `rules`). `to_local` gives the part, `full_tensor` brings the parts together; all have gradients.

Source: https://docs.pytorch.org/docs/stable/distributed.tensor.html
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

from ...autograd.subclasses import Redefining, machinery
from ...autograd.torch_function import DisableTorchFunctionSubclass, attributes_of_tensors
from ...ops.core.foreign import asked
from ...ops.core.registry import OPS
from ...ops.shape.shape import alias_view
from ...shapes import Size
from ...tensor import Tensor
from ..collectives import broadcast
from ..group import default_group
from . import rules
from .layout import Sharding, relaid
from .mesh import DeviceMesh, Partial, Placement, Replicate, Shard, _StridedShard


def mark(own: Sharding, t: Tensor) -> Any:
    """Let a tensor of this rank's part be a `DTensor`, of its own class besides; return it."""
    cls = type(t)
    if not issubclass(cls, DTensor):
        if cls not in _marked:
            away = issubclass(cls, Redefining)  # (of the device "meta")
            names = {"__torch_function__": classmethod(_on_meta)} if away else {}
            _marked[cls] = type("DTensor", (cls, DTensor) if away else (DTensor, cls), {"__slots__": (), "__module__": __name__, **names})
        t.__class__ = _marked[cls]
        machinery().made(type(t))
        asked.whole, asked.roots, asked.gradients = rules.alike, rules.of_roots, rules.of_inputs
    t.__dict__["_sharding"] = own
    return t


def _on_meta(cls: type, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
    """Return what a call makes of shapes: sizes are those of the whole."""
    own, owner = args[0].__dict__.get("_sharding") if args and isinstance(args[0], Tensor) else None, getattr(func, "__self__", None)
    if own is not None and isinstance(owner, property) and _names()[owner] in ("shape", "ndim"):
        return _attribute(own, owner, func, args)
    if own is not None and func.__name__ in ("size", "numel", "nelement", "__len__"):
        return rules.apply(func, tuple(args), kwargs or {})
    base: Any = next(c for c in cls.__mro__ if not issubclass(c, DTensor))
    return base.__torch_function__(func, types, args, kwargs)


def local_of(t: Tensor) -> Tensor:
    """Return this rank's part of a tensor in parts as a plain tensor outside the graph, in the same memory; others as they are."""
    return Tensor.detach(t) if "_sharding" in t.__dict__ else t


def _gradient(own: Sharding, part: Any) -> Any:
    """Return a gradient that the backward pass has left, known as one in parts."""
    return part if part is None or "_sharding" in part.__dict__ else mark(own.gradients(), part)


def _attribute(own: Sharding, owner: property, func: Any, args: tuple[Any, ...]) -> Any:
    """Return an attribute, or set it."""
    name, t, get = _names()[owner], args[0], owner.fget
    assert get is not None
    with DisableTorchFunctionSubclass():
        if func.__name__ == "__get__":
            if name == "shape":
                return Size(own.whole)
            if name == "ndim":
                return len(own.whole)
            if name == "nbytes":
                return rules.SPECIAL["numel"](rules.Call(Tensor.numel, (t,), {})) * t.element_size()
            if name == "grad":
                return _gradient(own, get(t))
            value = get(t)
            if not isinstance(value, Tensor) or name == "_base":
                return value
            return mark(own, value) if name == "data" else rules.apply(_ATTRIBUTES.setdefault(name, _named(get, name)), args, {})
        if func.__name__ == "__set__" and name in ("data", "grad") and isinstance(args[1], Tensor):
            given = args[1].__dict__.get("_sharding")
            if given is None:
                raise RuntimeError(f"{name} of a DTensor must be a DTensor too, not a plain tensor: distribute_tensor() or DTensor.from_local() make one")
            if name == "grad" and (given.whole != own.whole or given.placements != own.gradients().placements):
                is_, slopes, found = (s.placements if s.below is not None else s.placement for s in (own, own.gradients(), given))
                raise RuntimeError(
                    f"a DTensor of shape {list(own.whole)} that is {is_} has gradients that are {slopes}, not one of shape {list(given.whole)} that is "
                    f"{found}: redistribute() it"
                )
            if name == "data":
                t.__dict__["_sharding"] = given
        return func(*args)


@cache
def _names() -> dict[property, str]:
    return {value: name for name, value in attributes_of_tensors().items()}


_ATTRIBUTES: dict[str, Callable[..., Any]] = {}


def _named(get: Callable[..., Any], name: str) -> Callable[..., Any]:
    def read(t: Tensor) -> Any:
        return get(t)

    read.__name__ = name
    return read


class DTensor(Redefining, Tensor):
    """This rank's part of a tensor that all ranks of a mesh have together. `distribute_tensor`, `DTensor.from_local` and `fully_shard` make them.

    Its ``shape`` is that of the whole. Ops compute what one process would of whole tensors, each rank a part of it where that can be; the result is
    a DTensor. All ranks call them. Plain tensors are not mixed with them, but for single numbers.

    >>> t = dist.tensor.distribute_tensor(torch.arange(4.), DeviceMesh("cpu", [0, 1]), [Shard(0)])
    >>> t.to_local().tolist() == [2.0 * rank, 2.0 * rank + 1], t.full_tensor(), t.placements
    (True, tensor([0., 1., 2., 3.]), (Shard(dim=0),))
    >>> t.sum().placements, t.sum().item()
    ((Partial(reduce_op=sum),), 6.0)
    """

    __slots__ = ()

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Return what a call gives whose arguments, some of them, are tensors in parts."""
        owner = getattr(func, "__self__", None)
        if isinstance(owner, property):
            own = args[0].__dict__.get("_sharding")
            return func(*args) if own is None else _attribute(own, owner, func, args)
        return rules.apply(func, tuple(args), kwargs or {})

    @staticmethod
    def from_local(
        local_tensor: Tensor, device_mesh: DeviceMesh | None = None, placements: Sequence[Placement] | None = None, *, run_check: bool = False,
        shape: Sequence[int] | None = None, stride: Any = None,
    ) -> DTensor:  # fmt: skip
        """Return the tensor whose parts are the ranks' ``local_tensor``, of one size where ``shape``, that of all, is not given. dy/dx = 1.

        ValueError where ``shape`` does not give this rank a part of the size of ``local_tensor``.
        """
        mesh, placed, order = _placed(device_mesh, placements, True)
        whole = list(local_tensor.shape if shape is None else shape)
        for k, placement in enumerate(placed if shape is None else ()):
            if isinstance(placement, Shard):
                whole[placement.dim] *= mesh.size(k)
        own = Sharding.placed(mesh, tuple(whole), placed, order)
        if own.own != tuple(local_tensor._layout.shape) and not own.scalar:
            along = placed[0] if len(placed) == 1 else placed
            raise ValueError(f"shape={tuple(whole)}: this rank's part along {along} is {own.own}, but local_tensor is {tuple(local_tensor.shape)}")
        leaf = local_tensor.is_leaf and not local_tensor.requires_grad
        return mark(own, local_tensor.detach() if leaf else alias_view(local_tensor))  # type: ignore[no-any-return]

    @property
    def placements(self) -> tuple[Placement, ...]:
        """Return what each rank has, one for each dim of the mesh."""
        return self.__dict__["_sharding"].placements  # type: ignore[no-any-return]

    @property
    def device_mesh(self) -> DeviceMesh:
        """Return the ranks."""
        return self.__dict__["_sharding"].mesh  # type: ignore[no-any-return]

    def to_local(self, *, grad_placements: Sequence[Placement] | None = None) -> Tensor:
        """Return this rank's part, a plain tensor in the same memory; dy/dx = 1.

        ``grad_placements``: what the ranks' gradients of it are; ``[Partial()]`` where they are summands, of a tensor that is the same on all ranks.
        """
        own: Sharding = self.__dict__["_sharding"]
        with DisableTorchFunctionSubclass():
            if not self.requires_grad:
                return self.detach()
            return rules.summed(own, grad_placements, alias_view(self))

    def full_tensor(self, *, grad_placements: Sequence[Placement] | None = None) -> Tensor:
        """Return the whole tensor; all ranks call it. Its gradient is what each rank's is, the same everywhere."""
        own: Sharding = self.__dict__["_sharding"]
        if all(level.placement == Replicate() for level in own.levels):
            return self.to_local(grad_placements=grad_placements)
        if not self.requires_grad:
            return own.collected(self)
        target = own.replaced(own.whole, *[Replicate()] * len(own.dims))
        return rules.summed(target, grad_placements, relaid(own, target, self))

    def redistribute(
        self, device_mesh: DeviceMesh | None = None, placements: Sequence[Placement] | None = None, *, async_op: bool = False, forward_dtype: Any = None,
        backward_dtype: Any = None,
    ) -> DTensor:  # fmt: skip
        """Return the tensor with other parts; all ranks call it. The gradient moves back.

        ValueError for another mesh, NotImplementedError for dtypes: cast with ``to``.
        """
        own: Sharding = self.__dict__["_sharding"]
        mesh, placed, order = _placed(device_mesh or own.mesh, placements or self.placements, True)
        if mesh != own.mesh and (mesh.ndim > 1 or own.mesh.ndim > 1 or list(mesh.get_group().ranks) != list(own.mesh.get_group().ranks)):
            raise ValueError(f"redistribute(): from {own.mesh} to another mesh, {mesh}: not here; take full_tensor() and distribute_tensor()")
        if forward_dtype is not None or backward_dtype is not None:
            raise NotImplementedError("redistribute(forward_dtype=…, backward_dtype=…): cast the tensor with to() instead")
        out = Sharding.placed(own.mesh, own.whole, placed, order)
        if order != own.dims:  # by the way of the whole, as in another order the parts are others
            alike = [Replicate()] * own.mesh.ndim
            whole = relaid(own, own.replaced(own.whole, *alike), self)
            return mark(out, relaid(out.replaced(own.whole, *alike), out, alias_view(self) if whole is self else whole))  # type: ignore[no-any-return]
        found = relaid(own, out, self)
        return mark(out, alias_view(self) if found is self else found)  # type: ignore[no-any-return]

    def __reduce_ex__(self, protocol: Any) -> Any:
        return self.to_local().__reduce_ex__(protocol)  # what is saved is this rank's part

    def __deepcopy__(self, memo: dict[Any, Any]) -> Any:
        if id(self) not in memo:
            base: Any = next(c for c in type(self).__mro__ if issubclass(c, Tensor) and not issubclass(c, DTensor))
            copied = OPS["clone"].call(local_of(self))
            new = copied if base is Tensor else base(copied, self.requires_grad)
            memo[id(self)] = mark(self.__dict__["_sharding"], new if base is not Tensor else new.requires_grad_(self.requires_grad))
        return memo[id(self)]

    def __repr__(self, **options: Any) -> str:
        return f"DTensor(local_tensor={self.to_local()!r}, device_mesh={self.device_mesh!r}, placements={self.placements})"


_marked: dict[type, type] = {Tensor: DTensor}


def _placed(
    mesh: DeviceMesh | None, placements: Sequence[Placement] | None, partial: bool = False
) -> tuple[DeviceMesh, tuple[Placement, ...], tuple[int, ...]]:  # fmt: skip
    """Return a mesh, that of all ranks where none is named, what its ranks have, all where that is not said, and the order of its dims."""
    mesh = DeviceMesh.from_group(default_group()) if mesh is None else mesh
    found = tuple(placements) if placements is not None else (Replicate(),) * mesh.ndim
    if len(found) != mesh.ndim:
        raise ValueError(
            f"`placements` must have the same length as `device_mesh.ndim`! Found placements length: {len(found)}, and device_mesh.ndim: {mesh.ndim}."
        )
    if not all(isinstance(p, (Shard, Replicate, Partial) if partial else (Shard, Replicate)) for p in found):
        raise NotImplementedError(f"placements={found}: Shard(dim) and Replicate() are here; DTensor.from_local() takes summands, Partial()")
    strided = [isinstance(p, _StridedShard) for p in found]
    return mesh, found, tuple(sorted(range(mesh.ndim), key=lambda k: strided[k]))


def _given(whole: Tensor, mesh: DeviceMesh, src: int) -> None:
    """Give all ranks of a mesh the numbers of one, dim after dim."""
    for k in range(mesh.ndim):
        broadcast(whole, group=mesh.get_group(k), group_src=src)


def _parted(whole: Tensor, mesh: DeviceMesh, placements: Sequence[Placement], order: tuple[int, ...], requires_grad: bool) -> DTensor:
    own = Sharding.placed(mesh, tuple(whole._layout.shape), placements, order)
    return mark(own, OPS["clone"].call(own.part(whole)).requires_grad_(requires_grad))  # type: ignore[no-any-return]


def distribute_tensor(
    tensor: Tensor, device_mesh: DeviceMesh | None = None, placements: Sequence[Placement] | None = None, *, src_data_rank: int | None = 0
) -> DTensor:  # fmt: skip
    """Return the parts of a tensor, that of rank ``src_data_rank`` of the mesh; None: each rank's own, which they know to be equal.

    ``placements``: one for each dim of the mesh. ValueError for another number of them, NotImplementedError for partial sums.

    >>> dist.tensor.distribute_tensor(torch.ones(4, 3), placements=[Shard(1)]).to_local().shape == (4, 2 - rank)
    True
    """
    mesh, placed, order = _placed(device_mesh, placements)
    if isinstance(tensor, DTensor):
        return tensor.redistribute(mesh, placed)
    whole = tensor.detach().clone()  # type: ignore[attr-defined]
    if src_data_rank is not None:
        _given(whole, mesh, src_data_rank)
    return _parted(whole, mesh, placed, order, tensor.requires_grad)


def _made(name: str, size: tuple[Any, ...], placements: Any, device_mesh: Any, requires_grad: bool, **options: Any) -> DTensor:
    """Make this rank's part of a tensor that is alike on all ranks, as the function of this name makes it."""
    mesh, placed, order = _placed(device_mesh, placements)
    shape = tuple(size[0]) if len(size) == 1 and not isinstance(size[0], int) else tuple(size)
    whole = OPS[name].call(shape, **{k: v for k, v in options.items() if v is not None})
    if name in ("rand", "randn"):
        _given(whole, mesh, 0)
    return _parted(whole, mesh, placed, order, requires_grad)


def zeros(*size: Any, requires_grad: bool = False, dtype: Any = None, layout: Any = None, device_mesh: Any = None, placements: Any = None) -> DTensor:
    """Return zeros in parts."""
    return _made("zeros", size, placements, device_mesh, requires_grad, dtype=dtype)


def ones(*size: Any, requires_grad: bool = False, dtype: Any = None, layout: Any = None, device_mesh: Any = None, placements: Any = None) -> DTensor:
    """Return ones in parts."""
    return _made("ones", size, placements, device_mesh, requires_grad, dtype=dtype)


def empty(*size: Any, requires_grad: bool = False, dtype: Any = None, layout: Any = None, device_mesh: Any = None, placements: Any = None) -> DTensor:
    """Return a tensor in parts whose numbers are anything."""
    return _made("empty", size, placements, device_mesh, requires_grad, dtype=dtype)


def full(
    size: Sequence[int], fill_value: Any, *, requires_grad: bool = False, dtype: Any = None, layout: Any = None, device_mesh: Any = None,
    placements: Any = None,
) -> DTensor:  # fmt: skip
    """Return a tensor in parts whose numbers are all ``fill_value``."""
    return _made("full", (tuple(size),), placements, device_mesh, requires_grad, dtype=dtype, fill_value=fill_value)


def rand(*size: Any, requires_grad: bool = False, dtype: Any = None, layout: Any = None, device_mesh: Any = None, placements: Any = None) -> DTensor:
    """Return random numbers between 0 and 1 in parts, drawn by the first rank."""
    return _made("rand", size, placements, device_mesh, requires_grad, dtype=dtype)


def randn(*size: Any, requires_grad: bool = False, dtype: Any = None, layout: Any = None, device_mesh: Any = None, placements: Any = None) -> DTensor:
    """Return normally distributed numbers in parts, drawn by the first rank."""
    return _made("randn", size, placements, device_mesh, requires_grad, dtype=dtype)


Sharding.mark = mark
