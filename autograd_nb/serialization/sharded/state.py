"""States of models and optimizers under the parameters' names, whatever wraps the model and however many ranks there are.

Source: https://docs.pytorch.org/docs/stable/distributed.checkpoint.html#torch.distributed.checkpoint.state_dict.get_state_dict
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from ... import distributed as dist
from ...graph.modes import no_grad
from ...ops.core.registry import OPS
from ...tensor import Tensor

State = dict[str, Any]


@dataclass(frozen=True)
class StateDictOptions:
    """Options of `get_state_dict` and its kin: what they leave out, and how they load.

    ``ignore_frozen_params``: parameters without gradient are left out. ``strict``: names must be the model's. ``broadcast_from_rank0``: rank 0 has the
    state, and the others get it. ``flatten_optimizer_state_dict``: one flat dict. Tensors are whole and on the CPU in any case.
    """

    full_state_dict: bool = False
    cpu_offload: bool = False
    ignore_frozen_params: bool = False
    keep_submodule_prefixes: bool = True
    strict: bool = True
    broadcast_from_rank0: bool = False
    flatten_optimizer_state_dict: bool = False
    dsd_fqn_modifiers: str = "_fqn_modifiers"


def _plain(model: Any) -> Any:
    """Return the module inside of DistributedDataParallel and of compiled modules."""
    while any(base.__name__ in ("DistributedDataParallel", "DataParallel") for base in type(model).__mro__):
        model = model.module
    return model


def _clean(name: str) -> str:
    return name.replace("._orig_mod.", ".").removeprefix("_orig_mod.").replace("_checkpoint_wrapped_module.", "")


def _names(model: Any) -> dict[Tensor, str]:
    return {p: _clean(name) for name, p in _plain(model).named_parameters()}


def _each(optimizers: Any) -> list[Any]:
    return list(optimizers) if isinstance(optimizers, Iterable) else [optimizers]


def get_model_state_dict(model: Any, *, submodules: Any = None, options: StateDictOptions | None = None) -> State:
    """Return the model's parameters and buffers by name."""
    chosen, plain = options or StateDictOptions(), _plain(model)
    frozen = {name for name, p in plain.named_parameters() if not p.requires_grad} if chosen.ignore_frozen_params else set()
    parts = _shardings(plain)
    found = {_clean(name): value for name, value in plain.state_dict().items() if name not in frozen}
    return {name: _collected(parts[name], value) if name in parts else value for name, value in found.items()}


def _collected(own: Any, value: Tensor) -> Tensor:
    """Return the whole of a parameter that a state dict has as rows, or whole already."""
    rows = "_sharding" in value.__dict__ or tuple(value.shape) != own.whole
    return own.collected(value) if rows else value  # type: ignore[no-any-return]


def _shardings(plain: Any) -> dict[str, Any]:
    """Return how the parameters that `fully_shard` has shared out are, by name."""
    named = plain.named_parameters(remove_duplicate=False)
    return {_clean(name): p.__dict__["_sharding"] for name, p in named if "_sharding" in p.__dict__}


def _part(parts: dict[str, Any], name: str, value: Any) -> Any:
    """Return this rank's rows of a parameter, or of a state of its shape, where the ranks have shared it out."""
    whole = name in parts and isinstance(value, Tensor) and tuple(value.shape) in (parts[name].shape, () if parts[name].scalar else None)
    return parts[name].mark(parts[name].part(value.detach())) if whole else value  # type: ignore[attr-defined]


def set_model_state_dict(model: Any, model_state_dict: State, *, options: StateDictOptions | None = None) -> Any:
    """Load a state into the model; the names that were missing or unexpected. RuntimeError for those where ``options.strict``."""
    chosen, plain = options or StateDictOptions(), _plain(model)
    if chosen.broadcast_from_rank0:
        model_state_dict = _from_first(model_state_dict)
    own = {_clean(name): name for name in plain.state_dict()}
    parts = _shardings(plain)
    given = {own.get(name, name): _part(parts, name, value) for name, value in model_state_dict.items()}
    away = any(p.is_meta for p in plain.parameters())  # they have no memory yet
    if away:
        given = {n: parts[_clean(n)].mark(v.detach().clone()) if _clean(n) in parts and isinstance(v, Tensor) else v for n, v in given.items()}
    return plain.load_state_dict(given, strict=chosen.strict, assign=away)


def _from_first(state: State) -> State:
    held = [state if dist.get_rank() == 0 else None]
    dist.broadcast_object_list(held, 0)
    return held[0] or {}


def _begin(optimizer: Any) -> None:
    """Make an optimizer's state where it has none yet, by a step that changes nothing."""
    if optimizer.state:
        return
    params = [p for g in optimizer.param_groups for p in g["params"] if p.requires_grad]
    if any(p.grad is not None for p in params):
        raise RuntimeError("the optimizer has no state yet: step(), or zero_grad(), before its state is asked for")
    rates = [g.get("lr") for g in optimizer.param_groups]
    for p in params:
        p.grad = OPS["zeros_like"].call(p.detach())
    for group in optimizer.param_groups:
        if "lr" in group:
            group["lr"] = group["lr"] * 0 if isinstance(group["lr"], Tensor) else 0.0
    optimizer.step()
    for group, rate in zip(optimizer.param_groups, rates, strict=True):
        if rate is not None:
            group["lr"] = rate
    optimizer.zero_grad(set_to_none=True)


def get_optimizer_state_dict(model: Any, optimizers: Any, *, submodules: Any = None, options: StateDictOptions | None = None) -> State:
    """Return the optimizers' states and options by the parameters' names; of one that ranks share, this rank's part."""
    names, found = _names(model), {"state": {}, "param_groups": []}  # type: ignore[var-annotated]
    for optimizer in _each(optimizers):
        inner = getattr(optimizer, "optim", optimizer)  # of an optimizer that ranks share: this rank's
        _begin(inner)
        for p, state in inner.state.items():
            whole = p.__dict__.get("_sharding")
            alike = [] if whole is None else [k for k, v in state.items() if isinstance(v, Tensor) and v.ndim and v.shape == p.shape]
            found["state"][names[p]] = {k: whole.collected(v) if k in alike else v for k, v in state.items()}  # type: ignore[union-attr]
        for group in optimizer.param_groups:
            kept = {k: v for k, v in group.items() if k not in ("params", "param_names")}
            found["param_groups"].append({**kept, "params": [names[p] for p in group["params"]]})
    if (options or StateDictOptions()).flatten_optimizer_state_dict:
        return _flat(found)
    return found


def _flat(found: State) -> State:
    flat = {f"state.{name}.{key}": value for name, state in found["state"].items() for key, value in state.items()}
    for group in found["param_groups"]:
        for name in group["params"]:
            flat.update({f"param_groups.{name}.{key}": value for key, value in group.items() if key != "params"})
    return flat


def _nested(flat: State, optimizer: Any, names: dict[Tensor, str]) -> State:
    found: State = {"state": {}, "param_groups": []}
    for group in optimizer.param_groups:
        own = [names[p] for p in group["params"]]
        for name in own:
            head = f"state.{name}."
            found["state"][name] = {key[len(head) :]: value for key, value in flat.items() if key.startswith(head)}
        kept = {key: flat[f"param_groups.{own[0]}.{key}"] for key in group if own and f"param_groups.{own[0]}.{key}" in flat}
        found["param_groups"].append({**kept, "params": own})
    return found


def _copy(t: Tensor) -> Tensor:
    copied = t.detach().clone()  # type: ignore[attr-defined]
    return t.__dict__["_sharding"].mark(copied) if "_sharding" in t.__dict__ else copied  # type: ignore[no-any-return]


def set_optimizer_state_dict(model: Any, optimizers: Any, optim_state_dict: State, *, options: StateDictOptions | None = None) -> None:
    """Load what `get_optimizer_state_dict` returned. KeyError where a parameter has no state there."""
    chosen, names = options or StateDictOptions(), _names(model)
    parts = _shardings(_plain(model))
    if chosen.broadcast_from_rank0:
        optim_state_dict = _from_first(optim_state_dict)
    for optimizer in _each(optimizers):
        inner = getattr(optimizer, "optim", optimizer)
        state = optim_state_dict if "state" in optim_state_dict else _nested(optim_state_dict, inner, names)
        groups = {name: group for group in state["param_groups"] for name in group["params"]}
        with no_grad():
            for own, outer in zip(inner.param_groups, optimizer.param_groups, strict=True):
                for p in own["params"]:
                    if names[p] in state["state"]:
                        held = {k: _part(parts, names[p], v) for k, v in state["state"][names[p]].items()}
                        inner.state[p] = {k: _copy(v) if isinstance(v, Tensor) else v for k, v in held.items()}
                    elif p.requires_grad and state["state"]:
                        raise KeyError(f"the state of the parameter {names[p]!r} is not in the optimizer's state")
                given = next((groups[names[p]] for p in own["params"] if names[p] in groups), {})
                kept = {k: v for k, v in given.items() if k != "params"}
                own.update(kept)
                outer.update(kept)


def get_state_dict(model: Any, optimizers: Any, *, submodules: Any = None, options: StateDictOptions | None = None) -> tuple[State, State]:
    """Return the states of the model and of its optimizers, by the parameters' names."""
    return get_model_state_dict(model, options=options), get_optimizer_state_dict(model, optimizers, options=options)


def set_state_dict(
    model: Any, optimizers: Any, *, model_state_dict: State, optim_state_dict: State, options: StateDictOptions | None = None
) -> Any:
    """Load the states of a model and of its optimizers; the names that were missing or unexpected."""
    found = set_model_state_dict(model, model_state_dict, options=options)
    set_optimizer_state_dict(model, optimizers, optim_state_dict, options=options)
    return found
