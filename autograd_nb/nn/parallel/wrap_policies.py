"""Which modules within a model collect their parameters for themselves: the policies of `FullyShardedDataParallel`.

Source: https://github.com/pytorch/pytorch/blob/main/torch/distributed/fsdp/wrap.py
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from ..modules.activation import MultiheadAttention
from ..modules.container import ModuleDict, ModuleList
from ..modules.module import Module


class ModuleWrapPolicy:
    """Modules of these classes.

    >>> policy = dist.fsdp.wrap.ModuleWrapPolicy({torch.nn.Linear})
    >>> policy(torch.nn.Linear(2, 2), False)
    True
    """

    def __init__(self, module_classes: Iterable[type]):
        self.classes: tuple[type, ...] = tuple(set(module_classes))

    def __call__(self, module: Module, recurse: bool, *args: Any, **kwargs: Any) -> bool:
        return recurse or isinstance(module, self.classes)


class CustomPolicy:
    """Modules for which a function says so."""

    def __init__(self, lambda_fn: Callable[[Module], Any]):
        self.function = lambda_fn

    def __call__(self, module: Module, recurse: bool, *args: Any, **kwargs: Any) -> bool:
        return recurse or bool(self.function(module))


def always_wrap_policy(*args: Any, **kwargs: Any) -> bool:
    """Return True: every module."""
    return True


def transformer_auto_wrap_policy(module: Module, recurse: bool, nonwrapped_numel: int, transformer_layer_cls: Iterable[type]) -> bool:
    """Return whether a module is of one of these classes, the layers of a transformer."""
    return recurse or isinstance(module, tuple(transformer_layer_cls))


def lambda_auto_wrap_policy(module: Module, recurse: bool, nonwrapped_numel: int, lambda_fn: Callable[[Module], bool]) -> bool:
    """Return what a function says of a module."""
    return recurse or lambda_fn(module)


def size_based_auto_wrap_policy(
    module: Module, recurse: bool, nonwrapped_numel: int, min_num_params: float = 1e8, force_leaf_modules: Any = None, exclude_wrap_modules: Any = None
) -> bool:
    """Return whether the parameters of a module that no module within has for itself are as many as ``min_num_params``."""
    leaves = tuple(force_leaf_modules or (MultiheadAttention,))
    excluded = tuple(exclude_wrap_modules or (ModuleList, ModuleDict))
    large = nonwrapped_numel >= min_num_params
    return large and not isinstance(module, leaves if recurse else excluded)


def _or_policy(module: Module, recurse: bool, nonwrapped_numel: int, policies: Iterable[Callable[..., bool]]) -> bool:
    """Return whether one of several policies says so."""
    return any(policy(module=module, recurse=recurse, nonwrapped_numel=nonwrapped_numel) for policy in policies)


def chosen(root: Module, policy: Any, away: set[Module]) -> list[Module]:
    """Return the modules within ``root`` that a policy names, inner ones first, but for those in ``away``."""
    found: list[Module] = []
    if policy is not None:
        _choose(root, policy, away, found, True)
    return found


def _choose(module: Module, policy: Any, away: set[Module], found: list[Module], top: bool) -> int:
    """Add what a policy names in a module; the number of parameters that those have."""
    total = sum(p.numel() for p in module.parameters())
    if not policy(module=module, recurse=True, nonwrapped_numel=total):
        return 0
    taken = sum(_choose(child, policy, away, found, False) for child in module.children() if child not in away)
    if top or not policy(module=module, recurse=False, nonwrapped_numel=total - taken):
        return taken
    if module not in found:
        found.append(module)
    return total


class _Wrapping:
    made: tuple[Any, dict[str, Any]] | None = None


@contextlib.contextmanager
def enable_wrap(*, wrapper_cls: Any, **wrapper_kwargs: Any) -> Iterator[None]:
    """Let `wrap` wrap modules in this context, by a class with these options."""
    before, _Wrapping.made = _Wrapping.made, (wrapper_cls, wrapper_kwargs)
    try:
        yield
    finally:
        _Wrapping.made = before


def wrap(module: Module, **wrap_overrides: Any) -> Module:
    """Return a module as the `enable_wrap` around wraps it; as it is without one."""
    if _Wrapping.made is None:
        return module
    cls, options = _Wrapping.made
    return cls(module, **{**options, **wrap_overrides})  # type: ignore[no-any-return]


__all__ = [
    "CustomPolicy", "ModuleWrapPolicy", "always_wrap_policy", "enable_wrap", "lambda_auto_wrap_policy", "size_based_auto_wrap_policy",
    "transformer_auto_wrap_policy", "wrap",
]  # fmt: skip
