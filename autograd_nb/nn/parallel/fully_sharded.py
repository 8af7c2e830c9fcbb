"""Modules whose parameters, gradients and optimizer states are shared out among ranks: `torch.distributed.fsdp.fully_shard`.

Source: https://docs.pytorch.org/docs/stable/distributed.fsdp.fully_shard.html
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from ... import distributed as dist
from ...distributed.tensor import DeviceMesh
from ...dtypes import dtype
from ...graph.modes import state
from ...tensor import Tensor
from ..modules.module import Module
from .distributed import leaves_of
from .units import Sharding, Unit


@dataclass(frozen=True)
class MixedPrecisionPolicy:
    """The dtypes of a module's parameters and inputs while it computes, of gradients while they are summed, and of its outputs; None: as they are.

    Gradients in half precision are summed in float32, and so rounded once, where ``reduce_dtype`` does not say otherwise.
    """

    param_dtype: dtype | None = None
    reduce_dtype: dtype | None = None
    output_dtype: dtype | None = None
    cast_forward_inputs: bool = True


@dataclass
class OffloadPolicy:
    """The place of parameters between their passes: the memory that there is."""


@dataclass
class CPUOffloadPolicy(OffloadPolicy):
    """The CPU's memory, where all tensors are anyway."""

    pin_memory: bool = True


class FSDPModule:
    """The class that modules get from `fully_shard` beside their own."""

    _unit: Unit

    def unshard(self, async_op: bool = False) -> Any:
        """Collect the module's parameters from all ranks now. ``async_op``: return what has ``wait()``."""
        self._unit.collect()
        for m in self._unit.members:
            m.show(True)
        return _There() if async_op else None

    def reshard(self) -> None:
        """Let go of the other ranks' parts of the module's parameters."""
        self._unit.release()
        for m in self._unit.members:
            m.show(False)

    def _units(self, recurse: bool) -> Iterator[Unit]:
        for module in self.modules() if recurse else (self,):  # type: ignore[attr-defined]
            if isinstance(module, FSDPModule):
                yield module._unit

    def _apply(self, fn: Any, recurse: bool = True) -> Any:
        super()._apply(fn, recurse)  # type: ignore[misc]
        for unit in self._units(True):
            for m in unit.members:
                m.renew()  # `to_empty` gives those of the device "meta" memory
        return self

    def set_requires_gradient_sync(self, requires_gradient_sync: bool, *, recurse: bool = True) -> None:
        """Say whether gradients are reduced at the end of a backward pass, or accumulate whole on each rank until one that does so."""
        for unit in self._units(recurse):
            unit.sync = requires_gradient_sync

    def set_reshard_after_forward(self, reshard_after_forward: bool, recurse: bool = True) -> None:
        """Say whether parameters are let go of between the forward and the backward pass."""
        for unit in self._units(recurse):
            unit.lets_go = reshard_after_forward

    def set_reshard_after_backward(self, reshard_after_backward: bool, *, recurse: bool = True) -> None:
        """Say whether parameters are let go of after the backward pass."""
        for unit in self._units(recurse):
            unit.lets_go_after = reshard_after_backward

    def set_is_last_backward(self, is_last_backward: bool) -> None:
        """Accept what makes no difference: every backward pass ends by itself."""

    def set_requires_all_reduce(self, requires_all_reduce: bool, *, recurse: bool = True) -> None:
        """Accept what makes no difference: there is one group."""

    def set_modules_to_forward_prefetch(self, modules: list[Any]) -> None:
        """Accept what makes no difference: parameters are collected when they are needed."""

    def set_modules_to_backward_prefetch(self, modules: list[Any]) -> None:
        """Accept what makes no difference: parameters are collected when they are needed."""


class _There:
    def wait(self) -> None:
        """Return: it has been waited for."""


def fully_shard(
    module: Any, *, mesh: Any = None, reshard_after_forward: bool | None = None, shard_placement_fn: Any = None,
    mp_policy: MixedPrecisionPolicy | None = None, offload_policy: OffloadPolicy | None = None, ignored_params: Iterable[Tensor] | None = None,
) -> Any:  # fmt: skip
    """Split the parameters of ``module`` among ranks, but for those that `fully_shard` of a part of it has split: rank i keeps the i-th rows of each.
    Call it for the parts first (each block of a transformer), then for the whole; all ranks call it, with the same parameters. Each part collects its
    parameters for its forward and its backward pass, and gradients are averaged and scattered, so that ``.grad``, and the state of an optimizer, are
    those of this rank's rows. ``mesh``: the ranks, a `DeviceMesh` or a group; all where None. Of a mesh of two dims ranks along the first keep the same rows.
    Layers that `parallelize_module` has split stay so: both meshes are dims of one. ``reshard_after_forward``: whether
    parameters are let go of between the two passes; None: but for the outermost module. Parameters, their gradients and what ``state_dict()`` has are
    this rank's rows, each a `distributed.tensor.DTensor`; ``parameter.full_tensor()`` collects a whole one, and
    `distributed.checkpoint.state_dict.get_model_state_dict` all of them. The same module is returned; its class becomes one of `FSDPModule` too.

    Errors: ValueError without a process group, for a module that was shared out already, for a container that is never called, and for layers in parts
    among ranks of another mesh.

    Source: https://docs.pytorch.org/docs/stable/distributed.fsdp.fully_shard.html
    """
    modules: list[Module] = list(module) if isinstance(module, (list, tuple)) else [module]
    for m in modules:
        if isinstance(m, FSDPModule):
            raise ValueError(f"fully_shard has already been applied to this module: {type(m).__name__}")
        if type(m).forward is Module.forward:
            raise ValueError(f"fully_shard does not support containers that do not implement forward: {type(m).__name__}")
    if shard_placement_fn is not None:
        raise NotImplementedError("fully_shard(shard_placement_fn=…): parameters are shared out along dim 0 here; leave it out")
    if isinstance(mesh, DeviceMesh) and mesh.ndim > 2:
        raise ValueError(f"fully_shard expects a 1D or 2D DeviceMesh but got {mesh}")
    group = dist.group.WORLD if mesh is None else mesh.get_group(mesh.ndim - 1) if isinstance(mesh, DeviceMesh) else mesh
    dist.get_world_size(group)  # ValueError without a group
    policy, left_out = mp_policy or MixedPrecisionPolicy(), {id(p) for p in ignored_params or ()}
    places: dict[int, tuple[Tensor, list[tuple[Module, str]]]] = {}
    for m in modules:
        for inner in m.modules():
            for name, p in inner._parameters.items():
                own = None if p is None else p.__dict__.get("_sharding")
                if p is None or id(p) in left_out or (own is not None and own.unit):
                    continue
                if own is not None and not isinstance(mesh, DeviceMesh):
                    raise NotImplementedError(
                        f"fully_shard: the parameter {name!r} is a DTensor already, among the ranks of {own.mesh}: give fully_shard the other dims of one "
                        "mesh, mesh=mesh['dp']"
                    )
                places.setdefault(id(p), (p, []))[1].append((inner, name))
    of = mesh if isinstance(mesh, DeviceMesh) else None
    unit = Unit(list(places.values()), group, of, reshard_after_forward, policy.param_dtype, policy.reduce_dtype)
    for part in (p for m in modules for p in m.modules()):
        if isinstance(part, FSDPModule):
            part._unit.outermost = False
            if part._unit not in unit.parts:
                unit.parts.append(part._unit)
    for owner in {id(owner): owner for _, where in places.values() for owner, _ in where}.values():
        owner._register_state_dict_hook(_mark)
    for m in modules:
        m.__dict__["_unit"] = unit
        m.__class__ = type(f"FSDP{type(m).__name__}", (FSDPModule, type(m)), {"__module__": type(m).__module__})
        m.register_forward_pre_hook(lambda _, args, kwargs: _enter(unit, policy, args, kwargs), prepend=True, with_kwargs=True)
        m.register_forward_hook(lambda _, args, output: _leave(unit, policy, output), always_call=True)
    return module


def _mark(module: Any, state_dict: Any, prefix: str, local_metadata: Any) -> None:
    """Let the rows in a state dict be known as such."""
    for name, p in module._parameters.items():
        if p is not None and "_sharding" in p.__dict__ and isinstance(state_dict.get(prefix + name), Tensor):
            p.__dict__["_sharding"].mark(state_dict[prefix + name])


def _enter(unit: Unit, policy: MixedPrecisionPolicy, args: Any, kwargs: Any) -> tuple[Any, Any]:
    unit.enter()
    d = policy.param_dtype
    if d is None or not policy.cast_forward_inputs:
        return args, kwargs
    return _cast(args, d), _cast(kwargs, d)


def _leave(unit: Unit, policy: MixedPrecisionPolicy, output: Any) -> Any:
    unit.leave()
    if policy.output_dtype is not None:
        output = _cast(output, policy.output_dtype)
    if state.grad:
        unit.used, unit.fresh = None, True
        if unit.outermost and not unit.depth:
            unit.look(leaves_of(output))
        for t in _tensors(output):
            if t.requires_grad:
                t.register_hook(lambda g: unit.before_backward())
    return output


def _cast(value: Any, d: dtype) -> Any:
    """Return a container with its floating point tensors in another dtype."""
    if isinstance(value, Tensor):
        return value.to(d) if value.dtype.is_floating_point else value  # type: ignore[attr-defined]
    if isinstance(value, dict):
        return type(value)({k: _cast(v, d) for k, v in value.items()})
    if isinstance(value, (list, tuple)):
        found = [_cast(v, d) for v in value]
        return type(value)(*found) if hasattr(value, "_fields") else type(value)(found)
    return value


def _tensors(value: Any) -> Iterator[Tensor]:
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, (dict, list, tuple)):
        for v in value.values() if isinstance(value, dict) else value:
            yield from _tensors(v)
    elif hasattr(value, "__dataclass_fields__"):
        for name in value.__dataclass_fields__:
            yield from _tensors(getattr(value, name))


def register_fsdp_forward_method(module: Any, method_name: str) -> None:
    """Let a method of ``module`` collect the parameters as its ``forward`` does, for programs that call it instead."""
    if not isinstance(module, FSDPModule):
        return
    unit, inner = module._unit, getattr(module, method_name)

    def wrapped(*args: Any, **kwargs: Any) -> Any:
        unit.enter()
        try:
            output = inner(*args, **kwargs)
        finally:
            unit.leave()
        return _leave(unit, MixedPrecisionPolicy(), output)

    module.__dict__[method_name] = wrapped


__all__ = ["CPUOffloadPolicy", "FSDPModule", "MixedPrecisionPolicy", "OffloadPolicy", "Sharding", "fully_shard", "register_fsdp_forward_method"]
