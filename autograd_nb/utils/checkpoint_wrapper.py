"""Modules whose activations are computed again in the backward pass: `torch.distributed.algorithms._checkpoint.checkpoint_wrapper`.

Source: https://github.com/pytorch/pytorch/blob/main/torch/distributed/algorithms/_checkpoint/checkpoint_wrapper.py
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from ..autograd.graph import save_on_cpu
from ..nn.modules.module import Module
from ..nn.parallel.wrap_policies import chosen
from .checkpoint import checkpoint

_CHECKPOINT_WRAPPED_MODULE = "_checkpoint_wrapped_module"
_CHECKPOINT_PREFIX = f"{_CHECKPOINT_WRAPPED_MODULE}."


class CheckpointImpl(enum.Enum):
    """The ways of `utils.checkpoint`, by its ``use_reentrant``."""

    REENTRANT = enum.auto()
    NO_REENTRANT = enum.auto()


class ActivationWrapper(Module):
    """The base class of wrappers that leave names as they are: parameters and states are known by those that they have in the module."""

    def __init__(self, mod: Module):
        super().__init__()
        self._checkpoint_wrapped_module = mod
        self.register_state_dict_post_hook(_shortened)
        self.register_load_state_dict_pre_hook(_lengthened)

    def __getattr__(self, name: str) -> Any:
        try:
            return super().__getattr__(name)
        except AttributeError:
            return getattr(self._modules[_CHECKPOINT_WRAPPED_MODULE], name)

    def __getitem__(self, key: int) -> Any:
        return self._checkpoint_wrapped_module[key]  # type: ignore[index]

    def named_parameters(self, *args: Any, **kwargs: Any) -> Iterator[tuple[str, Any]]:
        """Yield the parameters with the names that they have in the wrapped module."""
        for name, p in super().named_parameters(*args, **kwargs):
            yield name.replace(_CHECKPOINT_PREFIX, ""), p


def _shortened(module: Module, state_dict: dict[str, Any], prefix: str, *args: Any) -> None:
    """Let a state have the names of the wrapped module."""
    _renamed(state_dict, f"{prefix}{_CHECKPOINT_PREFIX}", prefix)


def _lengthened(module: Module, state_dict: dict[str, Any], prefix: str, *args: Any) -> None:
    """Let a state that is loaded have the names that the wrapper has for it."""
    _renamed(state_dict, prefix, f"{prefix}{_CHECKPOINT_PREFIX}")


def _renamed(state_dict: dict[str, Any], old: str, new: str) -> None:
    if old != new:
        for key in [k for k in state_dict if k.startswith(old)]:
            state_dict[new + key[len(old) :]] = state_dict.pop(key)


class OffloadWrapper(ActivationWrapper):
    """A module whose activations are kept on the CPU, where all are anyway."""

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        with save_on_cpu(pin_memory=True):
            return self._checkpoint_wrapped_module(*args, **kwargs)


class CheckpointWrapper(ActivationWrapper):
    """A module whose activations are let go of, and computed again in the backward pass.

    ``checkpoint_fn``: what does it, `utils.checkpoint` where None; further options are given to it.
    """

    def __init__(
        self, mod: Module, checkpoint_impl: CheckpointImpl = CheckpointImpl.NO_REENTRANT, checkpoint_fn: Callable[..., Any] | None = None, **kwargs: Any
    ):
        super().__init__(mod)
        self.checkpoint_impl = checkpoint_impl
        reentrant = checkpoint_impl is CheckpointImpl.REENTRANT
        options = {"use_reentrant": reentrant, **kwargs} if checkpoint_fn is None else kwargs
        self.checkpoint_fn: Callable[..., Any] = partial(checkpoint_fn or checkpoint, **options)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        if self.checkpoint_impl is not CheckpointImpl.REENTRANT or not kwargs:
            return self.checkpoint_fn(self._checkpoint_wrapped_module, *args, **kwargs)
        names, count = tuple(kwargs), len(args)  # the older way knows of no tensors but those given by place

        def called(*flat: Any) -> Any:
            return self._checkpoint_wrapped_module(*flat[:count], **dict(zip(names, flat[count:], strict=True)))

        return self.checkpoint_fn(called, *args, *kwargs.values())


def offload_wrapper(module: Module) -> Module:
    """Return a module whose activations are kept on the CPU."""
    return OffloadWrapper(module)


def checkpoint_wrapper(
    module: Module, checkpoint_impl: CheckpointImpl = CheckpointImpl.NO_REENTRANT, checkpoint_fn: Callable[..., Any] | None = None, **kwargs: Any
) -> Module:
    """Return a module whose activations are computed again in the backward pass, with the parameters' names of the one that it wraps.

    >>> block = checkpoint_wrapper(torch.nn.Linear(2, 2))
    >>> sorted(block.state_dict()), block.weight.shape
    (['bias', 'weight'], torch.Size([2, 2]))
    """
    return CheckpointWrapper(module, checkpoint_impl, checkpoint_fn, **kwargs)


def apply_activation_checkpointing(
    model: Module, checkpoint_wrapper_fn: Callable[[Module], Module] = checkpoint_wrapper, check_fn: Callable[[Module], bool] = lambda _: True,
    auto_wrap_policy: Callable[..., bool] | None = None,
) -> None:  # fmt: skip
    """Put wrappers around the modules within a model for which ``check_fn`` says so, or which a policy of `distributed.fsdp.wrap` names."""

    def wanted(module: Module, recurse: bool, **sizes: Any) -> bool:
        return recurse or check_fn(module)

    names = {id(child): (parent, name) for parent in model.modules() for name, child in parent._modules.items() if child is not None}
    for module in chosen(model, auto_wrap_policy or wanted, set()):
        parent, name = names[id(module)]
        parent._modules[name] = checkpoint_wrapper_fn(module)


__all__ = [
    "ActivationWrapper", "CheckpointImpl", "CheckpointWrapper", "OffloadWrapper", "apply_activation_checkpointing", "checkpoint_wrapper", "offload_wrapper",
]  # fmt: skip
