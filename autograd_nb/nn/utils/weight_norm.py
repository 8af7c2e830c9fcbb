"""Weights as length and direction, kept by a hook: the older form of `parametrizations.weight_norm`.

Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.utils.weight_norm.html
"""

from __future__ import annotations

from typing import Any

from ...errors import warn_user
from ...ops.core.registry import OPS
from ...tensor import Tensor
from ..modules.module import Module
from ..parameter import Parameter, is_lazy

__all__ = ["WeightNorm", "remove_weight_norm", "weight_norm"]


def norm_of_slices(weight: Tensor, dim: int) -> Tensor:
    """Return the 2-norm of each slice along ``dim``, or of all for −1."""
    return OPS["norm_except_dim"].call(weight, 2, dim)


def weight_of(g: Tensor, v: Tensor, dim: int) -> Tensor:
    """Return g · v/‖v‖."""
    return v * (g / norm_of_slices(v, dim))


class WeightNorm:
    """The hook that computes ``name`` from ``name_g`` and ``name_v`` before each forward call."""

    name: str
    dim: int

    def __init__(self, name: str, dim: int | None) -> None:
        self.name, self.dim = name, -1 if dim is None else dim

    def compute_weight(self, module: Module) -> Tensor:
        """Return the weight g · v/‖v‖."""
        return weight_of(getattr(module, self.name + "_g"), getattr(module, self.name + "_v"), self.dim)

    @staticmethod
    def apply(module: Module, name: str, dim: int | None) -> WeightNorm:
        """Put the hook on a module."""
        for hook in module._forward_pre_hooks.values():
            if isinstance(hook, WeightNorm) and hook.name == name:
                raise RuntimeError(f"Cannot register two weight_norm hooks on the same parameter {name}")
        hook = WeightNorm(name, dim)
        weight = getattr(module, name)
        if is_lazy(weight):
            raise ValueError(
                "The module passed to `WeightNorm` can't have uninitialized parameters. Make sure to run the dummy forward before "
                "applying weight normalization"
            )
        del module._parameters[name]
        module.register_parameter(name + "_g", Parameter(norm_of_slices(weight, hook.dim).detach()))
        module.register_parameter(name + "_v", Parameter(weight.data))
        setattr(module, name, hook.compute_weight(module))
        module.register_forward_pre_hook(hook)
        return hook

    def remove(self, module: Module) -> None:
        """Make the weight an ordinary parameter."""
        weight = self.compute_weight(module)
        delattr(module, self.name)
        for suffix in ("_g", "_v"):
            del module._parameters[self.name + suffix]
        setattr(module, self.name, Parameter(weight.detach()))

    def __call__(self, module: Module, inputs: Any) -> None:
        setattr(module, self.name, self.compute_weight(module))


def weight_norm(module: Module, name: str = "weight", dim: int | None = 0) -> Module:
    """w = g · v/‖v‖ with parameters ``name_g`` and ``name_v`` (Salimans and Kingma, 2016); see `parametrizations.weight_norm`."""
    warn_user(
        "`torch.nn.utils.weight_norm` is deprecated in favor of `torch.nn.utils.parametrizations.weight_norm`.",
        FutureWarning,
    )
    WeightNorm.apply(module, name, dim)
    return module


def remove_weight_norm(module: Module, name: str = "weight") -> Module:
    """Undo `weight_norm`. ValueError where it was not done."""
    for key, hook in module._forward_pre_hooks.items():
        if isinstance(hook, WeightNorm) and hook.name == name:
            hook.remove(module)
            del module._forward_pre_hooks[key]
            return module
    raise ValueError(f"weight_norm of '{name}' not found in {module}")
