"""`FullyShardedDataParallel`, the older way to share a model out: a wrapper around a module that `fully_shard` splits.

Parameters keep their names and shapes, each a `DTensor`, as with PyTorch's ``use_orig_params=True``; what travels is what `fully_shard` sends.
Source: https://docs.pytorch.org/docs/stable/fsdp.html
"""

from __future__ import annotations

import contextlib
import enum
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ... import distributed as dist
from ...distributed.tensor import DeviceMesh, local_of
from ...dtypes import dtype
from ...graph.modes import no_grad
from ...tensor import Tensor
from ..modules.module import Module
from ..utils.clip_grad import clip_grad_norm_
from .fully_sharded import FSDPModule, MixedPrecisionPolicy, fully_shard
from .wrap_policies import chosen

INNER = "_fsdp_wrapped_module"


class ShardingStrategy(enum.Enum):
    """The ways to share out: each gives the numbers of all others, and `SHARD_GRAD_OP` keeps parameters between the two passes."""

    FULL_SHARD = 1
    SHARD_GRAD_OP = 2
    NO_SHARD = 3
    HYBRID_SHARD = 4
    _HYBRID_SHARD_ZERO2 = 5


#: those that keep parameters between the two passes
_KEPT = (ShardingStrategy.SHARD_GRAD_OP, ShardingStrategy.NO_SHARD, ShardingStrategy._HYBRID_SHARD_ZERO2)


class BackwardPrefetch(enum.Enum):
    """The times to collect parameters early, which make no difference: they are collected when they are needed."""

    BACKWARD_PRE = 1
    BACKWARD_POST = 2


class StateDictType(enum.Enum):
    """The contents of a state: whole tensors, `DTensor`s, or this rank's rows."""

    FULL_STATE_DICT = 1
    LOCAL_STATE_DICT = 2
    SHARDED_STATE_DICT = 3


@dataclass
class MixedPrecision:
    """The dtypes of parameters while they compute, of gradients while they are summed, and of buffers; None: as they are."""

    param_dtype: dtype | None = None
    reduce_dtype: dtype | None = None
    buffer_dtype: dtype | None = None
    keep_low_precision_grads: bool = False
    cast_forward_inputs: bool = False
    cast_root_forward_inputs: bool = True
    _module_classes_to_ignore: Any = ()


@dataclass
class CPUOffload:
    """The place of parameters between their passes: the memory that there is."""

    offload_params: bool = False


@dataclass
class StateDictConfig:
    """The way that a state is asked for."""

    offload_to_cpu: bool = False


@dataclass
class FullStateDictConfig(StateDictConfig):
    """Whole tensors; ``rank0_only``: other ranks are given nothing."""

    rank0_only: bool = False


@dataclass
class ShardedStateDictConfig(StateDictConfig):
    """Tensors in parts."""

    _use_dtensor: bool = False


@dataclass
class LocalStateDictConfig(StateDictConfig):
    """Rows of this rank."""


class FullOptimStateDictConfig(FullStateDictConfig):
    """Whole states of an optimizer."""


class ShardedOptimStateDictConfig(ShardedStateDictConfig):
    """States of an optimizer in parts."""


class LocalOptimStateDictConfig(LocalStateDictConfig):
    """States of an optimizer for this rank's rows."""


@dataclass
class StateDictSettings:
    """The settings that `FullyShardedDataParallel.state_dict_type` makes."""

    state_dict_type: StateDictType = StateDictType.FULL_STATE_DICT
    state_dict_config: Any = None
    optim_state_dict_config: Any = None


def _clean(name: str) -> str:
    return name.replace(f"{INNER}.", "").replace("_checkpoint_wrapped_module.", "")


def _kept(value: Any, settings: StateDictSettings) -> Any:
    """Return a value of a state as it was asked for."""
    if not isinstance(value, Tensor) or "_sharding" not in value.__dict__ or settings.state_dict_type is StateDictType.SHARDED_STATE_DICT:
        return value
    if settings.state_dict_type is StateDictType.LOCAL_STATE_DICT:
        return local_of(value)
    return value.__dict__["_sharding"].collected(value)


class FullyShardedDataParallel(Module):
    """A module whose parameters, gradients and optimizer states are shared out among ranks.

    module: the model, or a part of it; auto_wrap_policy: which modules within collect their parameters for themselves (see `wrap_policies`), as
    `fully_shard` calls of these would; sharding_strategy, mixed_precision: see there; sync_module_states: give all ranks the parameters and
    buffers of rank 0 first; ignored_modules, ignored_states: what stays whole; process_group, device_mesh: the ranks, for hybrid strategies a mesh of two
    dims or two groups: those that split the rows, and those that keep the same. Options of devices and of when to send make no difference.
    ``state_dict()`` has whole tensors, unless `state_dict_type` says otherwise.

    >>> model = dist.fsdp.FullyShardedDataParallel(torch.nn.Linear(4, 2))
    >>> model.weight.shape, model.state_dict()["weight"].shape, model(torch.ones(3, 4)).shape
    (torch.Size([2, 4]), torch.Size([2, 4]), torch.Size([3, 2]))
    """

    settings: StateDictSettings

    def __init__(
        self, module: Module, process_group: Any = None, sharding_strategy: ShardingStrategy | None = None, cpu_offload: CPUOffload | None = None,
        auto_wrap_policy: Any = None, backward_prefetch: BackwardPrefetch | None = BackwardPrefetch.BACKWARD_PRE, mixed_precision: MixedPrecision | None = None,
        ignored_modules: Iterable[Module] | None = None, param_init_fn: Any = None, device_id: Any = None, sync_module_states: bool = False,
        forward_prefetch: bool = False, limit_all_gathers: bool = True, use_orig_params: bool = False, ignored_states: Any = None, device_mesh: Any = None,
    ):  # fmt: skip
        super().__init__()
        if process_group is not None and device_mesh is not None:
            raise ValueError("Cannot pass both process_group and device_mesh at the same time. Please just pass only one of them.")
        copies = None
        if isinstance(process_group, tuple):
            device_mesh = _grid(process_group, sharding_strategy)
            process_group, copies = process_group
        ranks = device_mesh if device_mesh is not None else process_group
        self.settings = StateDictSettings()
        self.process_group = dist.group.WORLD if process_group is None else process_group
        away = list(ignored_modules or ())
        left = [p for m in away for p in m.parameters()]
        for s in ignored_states or ():
            away += [s] if isinstance(s, Module) else []
            left += s.parameters() if isinstance(s, Module) else [s]
        if param_init_fn is not None:
            for m in module.modules():
                if any(p.is_meta for p in m.parameters(recurse=False)):
                    param_init_fn(m)
        if sync_module_states:
            for group in (self.process_group, copies)[: 1 if copies is None else 2]:
                _from_first(module, group)
        kept = mixed_precision or MixedPrecision()
        if kept.buffer_dtype is not None:
            for m in module.modules():
                m._buffers.update({k: b.to(kept.buffer_dtype) for k, b in m._buffers.items() if b is not None and b.dtype.is_floating_point})
        options: dict[str, Any] = {
            "mesh": ranks, "ignored_params": left,
            "mp_policy": MixedPrecisionPolicy(kept.param_dtype, kept.reduce_dtype, None, True),
            "reshard_after_forward": False if sharding_strategy in _KEPT else None,
        }  # fmt: skip
        for inner in chosen(module, auto_wrap_policy, set(away)):
            if not isinstance(inner, FSDPModule) and type(inner).forward is not Module.forward:
                fully_shard(inner, **options)
        setattr(self, INNER, module if isinstance(module, FSDPModule) else fully_shard(module, **options))

    @property
    def module(self) -> Module:
        """Return the wrapped module."""
        return self._modules[INNER]  # type: ignore[return-value]

    def __getattr__(self, name: str) -> Any:
        try:
            return super().__getattr__(name)
        except AttributeError:
            return getattr(self._modules[INNER], name)

    def __getitem__(self, key: Any) -> Any:
        return self.module[key]  # type: ignore[index]

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self.module(*args, **kwargs)

    def named_parameters(self, *args: Any, **kwargs: Any) -> Iterator[tuple[str, Any]]:
        """Yield the parameters with the names that they have in the wrapped module."""
        for name, p in super().named_parameters(*args, **kwargs):
            yield _clean(name), p

    def clip_grad_norm_(self, max_norm: float, norm_type: float = 2.0) -> Tensor:
        """Scale gradients so that the norm of those of all ranks is at most ``max_norm``; the norm before."""
        return clip_grad_norm_(self.parameters(), max_norm, norm_type)

    def _sync(self, on: bool) -> None:
        for m in self.fsdp_modules(self):
            m.module.set_requires_gradient_sync(on)

    @contextlib.contextmanager
    def no_sync(self) -> Iterator[None]:
        """Let gradients accumulate on each rank in this context, whole and not reduced."""
        self._sync(False)
        try:
            yield
        finally:
            self._sync(True)

    # ---- states
    def state_dict(self, *args: Any, destination: Any = None, prefix: str = "", keep_vars: bool = False) -> Any:
        """Return parameters and buffers by name, of the kind that `state_dict_type` has set; all ranks call it."""
        found = self.module.state_dict(prefix=prefix, keep_vars=keep_vars)
        made = {_clean(name): _kept(value, self.settings) for name, value in found.items()}
        if getattr(self.settings.state_dict_config, "rank0_only", False) and dist.get_rank(self.process_group):
            made = {}
        if destination is None:
            return made
        destination.update(made)
        return destination

    def load_state_dict(self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False) -> Any:
        """Take parameters and buffers by name: whole tensors, `DTensor`s or this rank's rows."""
        own = {_clean(name): name for name in Module.state_dict(self.module)}
        return self.module.load_state_dict({own.get(_clean(k), k): v for k, v in state_dict.items()}, strict, assign)

    @staticmethod
    def fsdp_modules(module: Module, root_only: bool = False) -> list[FullyShardedDataParallel]:
        """Return the wrappers within a module, itself among them."""
        found = [m for m in module.modules() if isinstance(m, FullyShardedDataParallel)]
        return found[:1] if root_only else found

    @staticmethod
    def set_state_dict_type(module: Module, state_dict_type: StateDictType, state_dict_config: Any = None, optim_state_dict_config: Any = None) -> Any:
        """Set what ``state_dict()`` of the wrappers within a module has; the settings before."""
        every = FullyShardedDataParallel.fsdp_modules(module)
        before = every[0].settings if every else StateDictSettings()
        for m in every:
            m.settings = StateDictSettings(state_dict_type, state_dict_config, optim_state_dict_config)
        return before

    @staticmethod
    def get_state_dict_type(module: Module) -> StateDictSettings:
        """Return what is set."""
        return FullyShardedDataParallel.fsdp_modules(module)[0].settings

    @staticmethod
    @contextlib.contextmanager
    def state_dict_type(module: Module, state_dict_type: StateDictType, state_dict_config: Any = None, optim_state_dict_config: Any = None) -> Iterator[None]:
        """Set what ``state_dict()`` of the wrappers within a module has, in this context."""
        before = FullyShardedDataParallel.set_state_dict_type(module, state_dict_type, state_dict_config, optim_state_dict_config)
        try:
            yield
        finally:
            for m in FullyShardedDataParallel.fsdp_modules(module):
                m.settings = before

    @staticmethod
    def optim_state_dict(model: Module, optim: Any, optim_state_dict: Any = None, group: Any = None) -> dict[str, Any]:
        """Return an optimizer's state by the parameters' names, of the kind that `state_dict_type` has set; all ranks call it."""
        settings = FullyShardedDataParallel.get_state_dict_type(model)
        names = {p: _clean(name) for name, p in model.named_parameters()}
        given = optim.state_dict() if optim_state_dict is None else optim_state_dict
        numbers = dict(zip([k for g in given["param_groups"] for k in g["params"]], [names[p] for g in optim.param_groups for p in g["params"]], strict=True))
        state = {numbers[k]: {key: _kept(v, settings) for key, v in s.items()} for k, s in given["state"].items()}
        if getattr(settings.optim_state_dict_config, "rank0_only", False) and dist.get_rank():
            return {}
        return {"state": state, "param_groups": [{**g, "params": [numbers[k] for k in g["params"]]} for g in given["param_groups"]]}

    @staticmethod
    def full_optim_state_dict(model: Module, optim: Any, optim_input: Any = None, rank0_only: bool = True, group: Any = None) -> dict[str, Any]:
        """Return an optimizer's state as whole tensors by the parameters' names; ``rank0_only``: on the first rank alone."""
        with FullyShardedDataParallel.state_dict_type(model, StateDictType.FULL_STATE_DICT, None, FullOptimStateDictConfig(rank0_only=rank0_only)):
            return FullyShardedDataParallel.optim_state_dict(model, optim)

    @staticmethod
    def optim_state_dict_to_load(model: Module, optim: Any, optim_state_dict: dict[str, Any], is_named_optimizer: bool = False,
                                 load_directly: bool = False, group: Any = None) -> dict[str, Any]:  # fmt: skip
        """Return what ``optim.load_state_dict`` takes for a state that `optim_state_dict` gave, on any number of ranks."""
        names = {p: _clean(name) for name, p in model.named_parameters()}
        every = [p for g in optim.param_groups for p in g["params"]]
        numbers = {names[p]: k for k, p in enumerate(every)}
        state = {numbers[n]: {key: _part(every[numbers[n]], v) for key, v in s.items()} for n, s in optim_state_dict["state"].items()}
        found = {"state": state, "param_groups": [{**g, "params": [numbers[n] for n in g["params"]]} for g in optim_state_dict["param_groups"]]}
        if load_directly:
            optim.load_state_dict(found)
        return found

    @staticmethod
    def scatter_full_optim_state_dict(full_optim_state_dict: Any, model: Module, optim_input: Any = None, optim: Any = None, group: Any = None) -> Any:
        """Return what ``optim.load_state_dict`` takes for the whole state that the first rank has; all ranks call it."""
        held = [full_optim_state_dict]
        dist.broadcast_object_list(held, 0, group)
        order = optim if optim is not None else _Order(list(model.parameters()))
        return FullyShardedDataParallel.optim_state_dict_to_load(model, order, held[0])

    @staticmethod
    @contextlib.contextmanager
    def summon_full_params(
        module: Module, recurse: bool = True, writeback: bool = True, rank0_only: bool = False, offload_to_cpu: bool = False, with_grads: bool = False
    ) -> Iterator[None]:  # fmt: skip
        """Let modules have whole parameters in this context; ``writeback``: keep what is written to this rank's rows of them. All ranks call it."""
        units = [m for m in module.modules() if isinstance(m, FSDPModule)]
        for m in units:
            m.unshard()
        try:
            yield
        finally:
            for m in units:
                with no_grad():
                    for member in m._unit.members if writeback else ():
                        local_of(member.p).copy_(member.local.part(local_of(member.full).detach()))  # type: ignore[attr-defined]
                m.reshard()


@dataclass
class _Order:
    """Parameters in an order, as an optimizer has them."""

    params: list[Any]

    @property
    def param_groups(self) -> list[dict[str, Any]]:
        """Return one group of them."""
        return [{"params": self.params}]


def _part(p: Tensor, value: Any) -> Any:
    """Return a state's value for a parameter in parts: this rank's rows where it is of the parameter's shape."""
    own = p.__dict__.get("_sharding")
    if own is None or not isinstance(value, Tensor) or "_sharding" in value.__dict__ or not value.ndim or tuple(value.shape) != own.whole:
        return value
    return own.mark(own.part(value).clone())  # type: ignore[attr-defined]


def _grid(groups: tuple[Any, ...], strategy: ShardingStrategy | None) -> DeviceMesh:
    """Return the mesh of two groups, as hybrid strategies take them: the ranks among which rows are split, and those that keep the same."""
    if strategy not in (ShardingStrategy.HYBRID_SHARD, ShardingStrategy._HYBRID_SHARD_ZERO2):
        raise ValueError(f"FullyShardedDataParallel(process_group=two groups) is for hybrid strategies, not {strategy}: give ShardingStrategy.HYBRID_SHARD")
    if len(groups) != 2 or not all(isinstance(g, dist.ProcessGroup) for g in groups):
        kinds = ", ".join(type(g).__name__ for g in groups)
        raise ValueError(f"Expected process_group to be passed in as either None or Tuple[dist.ProcessGroup, dist.ProcessGroup] but got ({kinds})")
    split, copies = groups
    rows: list[Any] = [None] * copies.size()
    dist.all_gather_object(rows, list(split.ranks), copies)
    if [row[split.rank()] if len(row) == split.size() else -1 for row in rows] != list(copies.ranks):
        raise ValueError(f"FullyShardedDataParallel(process_group=two groups): {list(split.ranks)} and {list(copies.ranks)} are no row and column of one grid")
    return DeviceMesh.from_group([copies, split], "cpu", rows, mesh_dim_names=("replicate", "shard"))


def _from_first(module: Module, group: Any) -> None:
    """Give all ranks the parameters and buffers of the first."""
    with no_grad():
        for t in (*module.parameters(), *module.buffers()):
            if not t.is_meta and "_sharding" not in t.__dict__:
                dist.broadcast(t.detach(), group=group, group_src=0)


__all__ = [
    "BackwardPrefetch", "CPUOffload", "FullOptimStateDictConfig", "FullStateDictConfig", "FullyShardedDataParallel", "LocalOptimStateDictConfig",
    "LocalStateDictConfig", "MixedPrecision", "ShardedOptimStateDictConfig", "ShardedStateDictConfig", "ShardingStrategy", "StateDictConfig",
    "StateDictSettings", "StateDictType",
]  # fmt: skip
