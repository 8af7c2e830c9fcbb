"""Optimizer: parameter groups, state, hooks, saving and loading.

Source: https://docs.pytorch.org/docs/stable/optim.html
"""

from __future__ import annotations

import functools
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Hashable, Iterable, Sequence
from copy import deepcopy
from itertools import chain
from typing import Any, Self, TypeVar, overload

from .. import dtypes, launch, strides
from ..errors import check_keywords, shorten, warn_user
from ..graph.hooks import RemovableHandle, check_callable
from ..ops.core.marked import MARKED
from ..ops.core.numbers import scalar_tensor
from ..ops.core.recording import typename
from ..ops.creation.create import new_full
from ..tensor import Tensor, make

ParamsT = Any
R = TypeVar("R")  #: what a closure returns


class _Required:
    """The default of an option that every parameter group must give."""

    def __repr__(self) -> str:
        return "<required parameter>"


required: _Required = _Required()

_global_pre_hooks: OrderedDict[Any, Any] = OrderedDict()
_global_post_hooks: OrderedDict[Any, Any] = OrderedDict()


def _register(hooks: OrderedDict[Any, Any], hook: Callable[..., Any], first: bool = False) -> RemovableHandle:
    check_callable(hook)
    handle = RemovableHandle(hooks)
    hooks[handle.id] = hook
    if first:
        hooks.move_to_end(handle.id, last=False)
    return handle


def register_optimizer_step_pre_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call ``hook(optimizer, args, kwargs)`` before every step of every optimizer; it may return other (args, kwargs)."""
    return _register(_global_pre_hooks, hook)


def register_optimizer_step_post_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call ``hook(optimizer, args, kwargs)`` after every step of every optimizer."""
    return _register(_global_post_hooks, hook)


def _group_tensors_by_device_and_dtype(tensorlistlist: Sequence[Sequence[Tensor | None]], with_indices: bool = False) -> dict[Any, Any]:
    """Return {(device, dtype): (the lists with their tensors of that kind, their places)}; the first list says the kind."""
    groups: dict[Any, Any] = {}
    for i, first in enumerate(tensorlistlist[0]):
        assert first is not None
        lists, places = groups.setdefault((first.device, first.dtype), ([[] for _ in tensorlistlist], []))
        for found, values in zip(lists, tensorlistlist, strict=True):
            if values:
                found.append(values[i])
        if with_indices:
            places.append(i)
    return groups


class Optimizer:
    """Base of the optimizers.

    params: parameters, (name, parameter) pairs, or dicts, each with "params" and options of its own. defaults: the options of
    groups that do not give them.

    Errors: TypeError for what are not Tensors, ValueError for none at all and for non-leaf tensors.
    Source: https://docs.pytorch.org/docs/stable/optim.html#torch.optim.Optimizer

    >>> w = torch.ones(1, requires_grad=True)
    >>> torch.optim.SGD([{"params": [w], "lr": 0.5}]).param_groups[0]["lr"]
    0.5
    """

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        if kwargs:
            check_keywords(cls, kwargs)
        return object.__new__(cls)

    def __init__(self, params: ParamsT, defaults: dict[str, Any]) -> None:
        self.defaults = defaults
        self._make_hooks()
        self._patch_step_function()
        if isinstance(params, Tensor):
            raise TypeError(
                "params argument given to the optimizer should be an iterable of Tensors or dicts, but got " + typename(params)
            )
        self.state: defaultdict[Any, Any] = defaultdict(dict)
        self.param_groups: list[dict[str, Any]] = []
        several = isinstance(params, Iterable)
        if callable(getattr(params, "parameters", None)) and not (several and all(isinstance(p, (Tensor, dict)) for p in params)):  # no ParameterList
            raise TypeError(
                f"params argument given to the optimizer should be an iterable of Tensors or dicts, but got a {type(params).__name__}: "
                "use its parameters()"
            )
        if callable(params) and not several:
            raise TypeError(f"'{type(params).__name__}' object is not iterable (params is a function: call it, as in model.parameters())")
        groups = list(params)
        if not groups:
            raise ValueError(
                "optimizer got an empty parameter list (a module without parameters, or with its modules in a plain list, which nn.ModuleList would "
                "register; or a generator such as model.parameters() that has been walked before: call it anew)"
            )
        if not isinstance(groups[0], dict):
            groups = [{"params": groups}]
        for group in groups:
            self.add_param_group(group)

    def _make_hooks(self) -> None:
        for name in (
            "_optimizer_step_pre_hooks", "_optimizer_step_post_hooks", "_optimizer_state_dict_pre_hooks",
            "_optimizer_state_dict_post_hooks", "_optimizer_load_state_dict_pre_hooks", "_optimizer_load_state_dict_post_hooks",
        ):  # fmt: skip
            if name not in self.__dict__:
                setattr(self, name, OrderedDict())

    def __getstate__(self) -> dict[str, Any]:
        return {"defaults": self.defaults, "state": self.state, "param_groups": self.param_groups}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._make_hooks()
        self._patch_step_function()
        self.defaults.setdefault("differentiable", False)

    def __repr__(self) -> str:
        text = type(self).__name__ + " ("
        for i, group in enumerate(self.param_groups):
            text += f"\nParameter Group {i}\n"
            text += "".join(f"    {key}: {group[key]}\n" for key in sorted(group) if key != "params")
        return text + ")"

    # ---- hooks
    @staticmethod
    def profile_hook_step(func: Callable[..., Any]) -> Callable[..., Any]:
        """Return ``func``, a class's step, with the hooks around it."""

        @functools.wraps(func)
        def wrapper(self: Optimizer, *args: Any, **kwargs: Any) -> Any:
            if not (
                _global_pre_hooks or _global_post_hooks or self._optimizer_step_pre_hooks or self._optimizer_step_post_hooks
            ):
                return func(self, *args, **kwargs)
            for hook in chain(_global_pre_hooks.values(), self._optimizer_step_pre_hooks.values()):
                result = hook(self, args, kwargs)
                if result is not None:
                    if not (isinstance(result, tuple) and len(result) == 2):
                        raise RuntimeError(f"{func} must return None or a tuple of (new_args, new_kwargs), but got {result}.")
                    args, kwargs = result
            out = func(self, *args, **kwargs)
            for hook in chain(self._optimizer_step_post_hooks.values(), _global_post_hooks.values()):
                hook(self, args, kwargs)
            return out

        wrapper.hooked = True  # type: ignore[attr-defined]
        return wrapper

    def _patch_step_function(self) -> None:
        step = type(self).step
        if not getattr(step, "hooked", None):
            type(self).step = self.profile_hook_step(step)  # type: ignore[method-assign]

    def register_step_pre_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call ``hook(optimizer, args, kwargs)`` before each step; it may return other (args, kwargs)."""
        return _register(self._optimizer_step_pre_hooks, hook)

    def register_step_post_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call ``hook(optimizer, args, kwargs)`` after each step."""
        return _register(self._optimizer_step_post_hooks, hook)

    def register_state_dict_pre_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """Call ``hook(optimizer)`` before `state_dict`."""
        return _register(self._optimizer_state_dict_pre_hooks, hook, prepend)

    def register_state_dict_post_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """Call ``hook(optimizer, state_dict)`` after `state_dict`; it may return another."""
        return _register(self._optimizer_state_dict_post_hooks, hook, prepend)

    def register_load_state_dict_pre_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """Call ``hook(optimizer, state_dict)`` before `load_state_dict`; it may return another."""
        return _register(self._optimizer_load_state_dict_pre_hooks, hook, prepend)

    def register_load_state_dict_post_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """Call ``hook(optimizer)`` after `load_state_dict`."""
        return _register(self._optimizer_load_state_dict_post_hooks, hook, prepend)

    # ---- saving and loading
    def state_dict(self) -> dict[str, Any]:
        """Return {"state": number of the parameter -> its state, "param_groups": the groups with parameters as numbers}."""
        for hook in self._optimizer_state_dict_pre_hooks.values():
            hook(self)
        numbers: dict[int, int] = {}
        groups: list[dict[str, Any]] = []
        start = 0
        for group in self.param_groups:  # (what a group names twice has the last number, as in PyTorch)
            numbers |= {id(p): i for i, p in enumerate(group["params"], start) if id(p) not in numbers}
            start += len(group["params"])
            packed = {k: v for k, v in group.items() if k != "params"}
            packed["params"] = [numbers[id(p)] for p in group["params"]]
            groups.append(packed)
        state = {(numbers[id(k)] if isinstance(k, Tensor) else k): _known_as(k, v) for k, v in self.state.items()}
        out = {"state": state, "param_groups": groups}
        for hook in self._optimizer_state_dict_post_hooks.values():
            result = hook(self, out)
            out = out if result is None else result
        return out

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over what `state_dict` gave, for the same parameters in the same order. ValueError where groups differ."""
        state_dict = state_dict.copy()
        for hook in self._optimizer_load_state_dict_pre_hooks.values():
            result = hook(self, state_dict)
            state_dict = state_dict if result is None else result
        groups = self.param_groups
        saved = deepcopy(state_dict["param_groups"])
        if len(groups) != len(saved):
            raise ValueError(
                f"loaded state dict has a different number of parameter groups ({len(saved)} instead of {len(groups)})"
            )
        if any(len(g["params"]) != len(s["params"]) for g, s in zip(groups, saved, strict=True)):
            raise ValueError("loaded state dict contains a parameter group that doesn't match the size of optimizer's group")
        by_number = dict(
            zip(chain.from_iterable(s["params"] for s in saved), chain.from_iterable(g["params"] for g in groups), strict=True)
        )
        state: defaultdict[Any, Any] = defaultdict(dict)
        for k, v in state_dict["state"].items():
            if k in by_number:
                state[by_number[k]] = _fitted(by_number[k], v)
            else:
                state[k] = v
        for group, new in zip(groups, saved, strict=True):
            new["params"] = group["params"]
            if "param_names" in group:
                new.setdefault("param_names", group["param_names"])
        self.__setstate__({"state": state, "param_groups": saved})
        for hook in self._optimizer_load_state_dict_post_hooks.values():
            hook(self)

    # ---- work
    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget the gradients of all parameters, or (``set_to_none=False``) fill them with 0."""
        if set_to_none:
            if launch.observer() is not None:
                for group in self.param_groups:
                    for p in group["params"]:
                        launch.cleared(p)
            for group in self.param_groups:
                for p in group["params"]:
                    p._grad = None
            return
        for group in self.param_groups:
            for p in group["params"]:
                g = p._grad
                if g is not None:
                    if g.grad_fn is not None:
                        g.detach_()
                    else:
                        g.requires_grad_(False)
                    g.zero_()

    @overload
    def step(self, closure: None = None) -> None: ...
    @overload
    def step(self, closure: Callable[[], R]) -> R: ...
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Update the parameters from their gradients; ``closure`` computes the loss again, which is returned."""
        raise NotImplementedError(f"{type(self).__name__} does not define step()")

    _group_tensors_by_device_and_dtype = staticmethod(_group_tensors_by_device_and_dtype)

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add a group: {"params": …, and the options in which it differs}.

        Errors: TypeError for what are not Tensors, ValueError for non-leaf tensors and those of another group.
        """
        if not isinstance(param_group, dict):
            raise TypeError(f"param_group must be a dict, but got {type(param_group)}")
        params = param_group["params"]
        if isinstance(params, Tensor):
            params = [params]
        elif isinstance(params, set):
            raise TypeError(
                "optimizer parameters need to be organized in ordered collections, but the ordering of tensors in sets will change "
                "between runs. Please use a list instead."
            )
        params = list(params)
        names = [p[0] for p in params if isinstance(p, tuple)]
        if names:
            if len(names) != len(params):
                raise ValueError("all optimizer params should be with/without names. Some param names are missing")
            params = [p[1] for p in params]
        for i, p in enumerate(params):
            if not isinstance(p, Tensor):
                raise TypeError("optimizer can only optimize Tensors, but one of the params is " + typename(p))
            if p.__class__ in MARKED:
                raise ValueError(f"can't optimize a view that shows conjugates or negatives (params[{i}]): give its resolve_conj().resolve_neg()")
            if not self.defaults.get("differentiable") and not (p.is_leaf or p.retains_grad):
                raise ValueError(f"can't optimize a non-leaf Tensor (params[{i}] was made by {p.grad_fn.name()}: give what it was computed from)")
        for name, default in self.defaults.items():
            if default is required and name not in param_group:
                raise ValueError(f"parameter group didn't specify a value of required optimization parameter {name}")
        if len(params) != len(set(params)):
            warn_user(
                "optimizer contains a parameter group with duplicate parameters; in future, this will cause an error",
            )
        known = {p for group in self.param_groups for p in group["params"]}
        if not known.isdisjoint(params):
            raise ValueError("some parameters appear in more than one parameter group")
        if self.param_groups and bool(names) != ("param_names" in self.param_groups[0]):
            raise ValueError(
                "all optimizer param groups should be with/without names. cannot add param group "
                f"{'with' if names else 'without'} names to the optimizer"
            )
        param_group["params"] = params
        if names:
            param_group["param_names"] = names
        for name, default in self.defaults.items():
            param_group.setdefault(name, default)
        self.param_groups.append(param_group)


def _known_as(p: Any, state: Any) -> Any:
    """Return a parameter's state, in which what is of its shape is known as rows that ranks share where the parameter's are."""
    sharding = p.__dict__.get("_sharding") if isinstance(p, Tensor) else None
    if sharding is None or not isinstance(state, dict):
        return state
    alike = [k for k, v in state.items() if isinstance(v, Tensor) and "_sharding" not in v.__dict__ and v.ndim and v._layout.shape == p._layout.shape]
    return state | {k: sharding.mark(state[k].detach()) for k in alike}


def _fitted(p: Tensor, value: Any, key: Hashable = None) -> Any:
    """Return a loaded state in the dtype of its parameter (counters keep theirs)."""
    if isinstance(value, Tensor):
        return value if key == "step" or not p.dtype.is_floating_point else value.to(p.dtype)
    if isinstance(value, dict):
        return {k: _fitted(p, v, k) for k, v in value.items()}
    if isinstance(value, Iterable) and not isinstance(value, str):
        return type(value)(_fitted(p, v) for v in value)  # type: ignore[call-arg]
    return value


# ------------------------------------------------------------------------------------------- options and states


def number(value: Any) -> float:
    """Return a number that may be given as a one-element tensor."""
    if isinstance(value, float):
        return value
    if isinstance(value, Tensor):
        return float(value.item())
    if not hasattr(value.__class__, "__float__") and not hasattr(value.__class__, "__index__"):
        kind = type(value).__name__
        raise TypeError(f"an optimizer's option must be a number, not {kind} ({shorten(value)}): give it as a float")
    return float(value)


def check_one_element(lr: Any) -> None:
    if isinstance(lr, Tensor) and lr._layout.size != 1:
        raise ValueError("Tensor lr must be 1-element")


def check_lr(lr: Any) -> None:
    check_one_element(lr)
    if not number(lr) >= 0.0:
        raise ValueError(f"Invalid learning rate: {lr}")


def check_factor(name: str, value: Any) -> None:
    """Raise RuntimeError for a truth value that multiplies what is added to a tensor, as in PyTorch."""
    if value is True:
        raise RuntimeError(f"Boolean alpha only supported for Boolean results. ({name}=True: give it as a float)")


def check_not_negative(name: str, value: Any) -> None:
    if not number(value) >= 0.0:
        raise ValueError(f"Invalid {name} value: {value}")


def check_betas(betas: Any) -> None:
    check_sequence("betas", betas)
    for i in (0, 1):
        if not 0.0 <= number(betas[i]) < 1.0:
            raise ValueError(f"Invalid beta parameter at index {i}: {betas[i]}")
    check_pair("betas", betas)


def check_sequence(name: str, values: Any) -> None:
    """Raise TypeError for an option that stands for two numbers and is one, or none."""
    if not hasattr(type(values), "__len__") or not hasattr(type(values), "__getitem__"):
        raise TypeError(f"cannot unpack non-iterable {type(values).__name__} object: {name} must be two numbers, not {shorten(values)}")


def check_pair(name: str, values: Any) -> None:
    """Raise ValueError for an option that is not two numbers."""
    check_sequence(name, values)
    if len(values) != 2:
        few = f"not enough values to unpack (expected 2, got {len(values)}" if len(values) < 2 else "too many values to unpack (expected 2"
        raise ValueError(f"{few}): {name} must be two numbers, not {shorten(values)}")
    for value in values:
        number(value)


def check_flags(options: dict[str, Any]) -> None:
    """Raise RuntimeError for a flag that is a tensor of several elements."""
    for name in ("foreach", "differentiable"):
        if isinstance(options.get(name), Tensor):
            bool(options[name])


def check_fused(fused: Any, foreach: Any, differentiable: Any) -> None:
    if fused and differentiable:
        raise RuntimeError("`fused` does not support `differentiable`")
    if fused and foreach:
        raise RuntimeError("`fused` and `foreach` cannot be `True` together.")


#: options that may not be negative -> what the error calls them
_NOT_NEGATIVE = {
    "eps": "epsilon", "momentum": "momentum", "weight_decay": "weight_decay", "lr_decay": "lr_decay", "momentum_decay": "momentum_decay",
    "initial_accumulator_value": "initial_accumulator_value",
}  # fmt: skip


def check_options(options: dict[str, Any]) -> None:
    """Raise ValueError for an option that has no meaning, of those that several optimizers have."""
    check_lr(options["lr"])
    for name, text in _NOT_NEGATIVE.items():
        if name in options:
            check_not_negative(text, options[name])
    if not options.get("decoupled_weight_decay"):
        check_factor("weight_decay", options.get("weight_decay"))
    if "betas" in options:
        check_betas(options["betas"])
    if not isinstance(options.get("differentiable", False), bool):
        given = options["differentiable"]
        raise TypeError(f"argument 'differentiable' must be bool, not {type(given).__name__} (differentiable={shorten(given)})")
    if "fused" in options:
        check_fused(options["fused"], options["foreach"], options["differentiable"])


def counter() -> Tensor:
    """Return a step count that begins at 0."""
    return scalar_tensor(0.0, dtypes.float32)


def zeros_of(p: Tensor, value: float = 0.0, like: Tensor | None = None) -> Tensor:
    """Return a state like a parameter, filled with 0 or ``value``; of complex numbers, both parts are.

    Its dims lie in memory as the parameter's do, or those of its gradient (``like``).
    """
    state = new_full(p._layout.shape, complex(value, value) if p.dtype.is_complex else value, p.dtype)
    order = p._layout if like is None or like._layout.sizes != p._layout.sizes else like._layout
    if not order.contiguous:
        state = make(state._data, strides.like(order, p.dtype), [0, 0])
    return p.__dict__["_sharding"].mark(state) if "_sharding" in p.__dict__ else state  # type: ignore[no-any-return]
