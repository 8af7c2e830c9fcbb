"""The package ``functorch`` as PyTorch keeps it for older programs: transforms of functions, and modules as functions of their parameters.

Source: https://docs.pytorch.org/docs/stable/func.migrating.html
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from copy import deepcopy
from math import prod
from typing import Any

from ..func import functional_call, grad, grad_and_value, hessian, jacfwd, jacrev, jvp, stack_module_state, vjp, vmap
from ..nn.modules.module import Module
from ..ops.shape.cat import stack
from ..tensor import Tensor

__all__ = [
    "FunctionalModule", "FunctionalModuleWithBuffers", "combine_state_for_ensemble", "grad", "grad_and_value", "hessian", "jacfwd", "jacrev", "jvp",
    "make_functional", "make_functional_with_buffers", "vjp", "vmap",
]  # fmt: skip


class FunctionalModuleWithBuffers(Module):
    """A module called with its parameters and buffers: ``f(parameters, buffers, *args)``."""

    def __init__(self, stateless_model: Module, param_names: Sequence[str], buffer_names: Sequence[str]):
        super().__init__()
        self.stateless_model: Module = stateless_model
        self.param_names: tuple[str, ...] = tuple(param_names)
        self.buffer_names: tuple[str, ...] = tuple(buffer_names)

    def forward(self, params: Sequence[Tensor], buffers: Sequence[Tensor], *args: Any, **kwargs: Any) -> Any:
        """Return what the module gives with these in the place of its own."""
        state = dict(zip((*self.param_names, *self.buffer_names), (*params, *buffers), strict=True))
        return functional_call(self.stateless_model, state, args, kwargs)


class FunctionalModule(FunctionalModuleWithBuffers):
    """A module called with its parameters: ``f(parameters, *args)``."""

    def __init__(self, stateless_model: Module, param_names: Sequence[str]):
        super().__init__(stateless_model, param_names, ())

    def forward(self, params: Sequence[Tensor], *args: Any, **kwargs: Any) -> Any:
        """Return what the module gives with these in the place of its own."""
        return super().forward(params, (), *args, **kwargs)


def make_functional_with_buffers(
    model: Module, disable_autograd_tracking: bool = False
) -> tuple[FunctionalModuleWithBuffers, tuple[Tensor, ...], tuple[Tensor, ...]]:
    """Return a module as a function, its parameters and its buffers, which the function takes before its arguments.

    >>> from autograd_nb.compat.functorch import make_functional_with_buffers
    >>> f, parameters, buffers = make_functional_with_buffers(torch.nn.BatchNorm1d(2))
    >>> f(parameters, buffers, torch.eye(2)).shape, len(buffers)
    (torch.Size([2, 2]), 3)
    """
    copied = deepcopy(model)
    parameters, buffers = dict(copied.named_parameters()), dict(copied.named_buffers())
    if disable_autograd_tracking:
        copied.requires_grad_(False)
    return FunctionalModuleWithBuffers(copied, tuple(parameters), tuple(buffers)), tuple(parameters.values()), tuple(buffers.values())


def make_functional(model: Module, disable_autograd_tracking: bool = False) -> tuple[FunctionalModule, tuple[Tensor, ...]]:
    """Return a module without buffers as a function, and its parameters, which the function takes before its arguments.

    Errors: RuntimeError for a module with buffers.

    >>> from autograd_nb.compat.functorch import make_functional
    >>> f, parameters = make_functional(torch.nn.Linear(2, 1, bias=False))
    >>> f((torch.tensor([[1., 2.]]),), torch.ones(2))
    tensor([3.])
    """
    if next(model.buffers(), None) is not None:
        raise RuntimeError("make_functional(model): `model` has buffers. Please use make_functional_with_buffers(model) instead.")
    whole, values, _ = make_functional_with_buffers(model, disable_autograd_tracking)
    return FunctionalModule(whole.stateless_model, whole.param_names), values


def combine_state_for_ensemble(models: Sequence[Module]) -> tuple[Callable[..., Any], tuple[Tensor, ...], tuple[Tensor, ...]]:
    """Return the function of models of one class, their parameters and their buffers, stacked: for `vmap` over the models.

    >>> from autograd_nb.compat.functorch import combine_state_for_ensemble
    >>> f, parameters, buffers = combine_state_for_ensemble([torch.nn.Linear(2, 1) for _ in range(3)])
    >>> torch.vmap(f, (0, 0, None))(parameters, buffers, torch.ones(4, 2)).shape
    torch.Size([3, 4, 1])
    """
    if not models:
        raise RuntimeError("combine_state_for_ensemble: Expected at least one model, got 0.")
    parameters, buffers = stack_module_state(list(models))
    function = make_functional_with_buffers(models[0])[0]
    return function, tuple(p.detach() for p in parameters.values()), tuple(buffers.values())


def _groups(side: str, pattern: str) -> list[list[str]]:
    """Return the dims of one side of a pattern, each the names of the axes that it is composed of."""
    found: list[list[str]] = []
    inside = False
    for token in re.findall(r"\.\.\.|\w+|\S", side):
        if token in "()":
            if inside == (token == "("):
                raise ValueError(f"rearrange(): brackets are not balanced, or within brackets (pattern={pattern!r})")
            inside = token == "("
            if inside:
                found.append([])
        elif token != "..." and not (token.isidentifier() and token[0] != "_" and token[-1] != "_") and not token.isdigit():
            raise ValueError(f"rearrange(): {token!r} is no name of an axis (pattern={pattern!r})")
        elif token.isdigit() and token != "1":
            raise ValueError(f"rearrange only supports unnamed axes of size 1 (pattern={pattern!r})")
        elif inside:
            found[-1] += [] if token == "1" else [token]
        else:
            found.append([] if token == "1" else [token])
    names = [name for group in found for name in group]
    if inside or len(set(names)) < len(names):
        raise ValueError(f"rearrange(): an axis is there twice, or a bracket is open (pattern={pattern!r})")
    return found


def _axes(shape: Sequence[int], left: list[list[str]], lengths: dict[str, int], pattern: str) -> dict[str, int]:
    """Return the lengths of all axes, of those of "..." under names of their own; ``left`` is changed to have them."""
    if ["..."] in left:
        at, count = left.index(["..."]), len(shape) - len(left) + 1
        left[at : at + 1] = [[f"...{i}"] for i in range(count)]
    if len(left) != len(shape):
        raise ValueError(f"rearrange(): the tensor has {len(shape)} dims, the pattern {len(left)} (pattern={pattern!r})")
    found = dict(lengths)
    for group, size in zip(left, shape, strict=True):
        unknown = [name for name in group if name not in found]
        if len(unknown) > 1:
            raise ValueError(f"rearrange(): the lengths of {unknown} are not known (pattern={pattern!r}); give all but one of them")
        known = prod(found[name] for name in group if name in found)
        if unknown and known:
            found[unknown[0]] = size // known
        if prod(found[name] for name in group) != size:
            raise ValueError(f"rearrange(): a dim of {size} is not made of {group} of {found} (pattern={pattern!r})")
    return found


def rearrange(tensor: Tensor | list[Tensor] | tuple[Tensor, ...], pattern: str, **axes_lengths: int) -> Tensor:
    """Return a tensor with its dims in the order of a pattern: names, "..." for any others, in brackets those that are one dim together.

    A list of tensors is stacked first. ``axes_lengths``: lengths of axes that the shape does not tell. Errors: ValueError where the pattern is
    none or does not fit, TypeError for lengths that are no integers.

    >>> from autograd_nb.compat.functorch import rearrange
    >>> rearrange(torch.ones(2, 3, 4), "a b c -> b (a c)").shape
    torch.Size([3, 8])
    """
    whole = tensor if isinstance(tensor, Tensor) else stack(list(tensor))
    left, arrow, right = pattern.partition("->")
    if not arrow or "->" in right:
        raise ValueError(f"Pattern must contain a single '->' separator (pattern={pattern!r})")
    given, wanted = _groups(left, pattern), _groups(right, pattern)
    names = {name for group in given for name in group}
    for name, length in axes_lengths.items():
        if not isinstance(length, int):
            raise TypeError(f"rearrange axis lengths must be integers, got: {type(length)} ({name}={length!r})")
    if any("..." in group for group in given if group != ["..."]):
        raise ValueError(f"Ellipsis is parenthesis in the left side is not allowed: {pattern}")
    other = names ^ {name for group in wanted for name in group}
    if other or axes_lengths.keys() - names:
        raise ValueError(f"rearrange(): {sorted(other or axes_lengths.keys() - names)} must be on both sides (pattern={pattern!r})")
    lengths = _axes(whole.shape, given, axes_lengths, pattern)
    flat = [name for group in given for name in group]
    rest = [name for name in flat if name[:3] == "..."]
    groups = [[part for name in group for part in (rest if name == "..." else [name])] for group in wanted]
    if ["..."] in wanted:
        at = wanted.index(["..."])
        groups[at : at + 1] = [[name] for name in rest]
    apart = whole.reshape([lengths[name] for name in flat])
    moved = apart.permute([flat.index(name) for group in groups for name in group])
    return moved.reshape([prod(lengths[name] for name in group) for group in groups])
