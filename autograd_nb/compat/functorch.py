"""The package ``functorch`` as PyTorch keeps it for older programs: transforms of functions, and modules as functions of their parameters.

Source: https://docs.pytorch.org/docs/stable/func.migrating.html
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import deepcopy
from typing import Any

from ..func import functional_call, grad, grad_and_value, hessian, jacfwd, jacrev, jvp, stack_module_state, vjp, vmap
from ..nn.modules.module import Module
from ..tensor import Tensor

__all__ = [
    "FunctionalModule", "FunctionalModuleWithBuffers", "combine_state_for_ensemble", "grad", "grad_and_value", "hessian", "jacfwd", "jacrev", "jvp",
    "make_functional", "make_functional_with_buffers", "vjp", "vmap",
]  # fmt: skip


class FunctionalModuleWithBuffers(Module):
    """A module called with its parameters and buffers: ``f(parameters, buffers, *args)``."""

    def __init__(self, stateless_model: Module, param_names: Sequence[str], buffer_names: Sequence[str]):
        super().__init__()
        self.stateless_model, self.param_names, self.buffer_names = stateless_model, tuple(param_names), tuple(buffer_names)

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
