"""Stochastic gradient descent."""

from __future__ import annotations

import math
from typing import Any

from ..graph.modes import no_grad
from ..tensor import Tensor
from .fused import Fused, Update
from .optimizer import ParamsT, zeros_of

__all__ = ["SGD"]

_plain = Update("sgd")
_momentum = Update("sgd_momentum", gain=lambda group: 1.0 - group["dampening"])


class SGD(Fused):
    """p -= lr · d with d = gradient + weight_decay · p; with momentum d is averaged: b = momentum · b + (1 - dampening) · d.

    nesterov: step along d + momentum · b. maximize: climb instead.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.optim.SGD.html

    >>> w = torch.ones(1, requires_grad=True)
    >>> w.sum().backward()
    >>> torch.optim.SGD([w], lr=0.1).step()
    >>> w.data
    tensor([0.9000])
    """

    def __init__(
        self, params: ParamsT, lr: float | Tensor = 1e-3, momentum: float = 0, dampening: float = 0, weight_decay: float = 0,
        nesterov: bool = False, *, maximize: bool = False, foreach: bool | None = None, differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:  # fmt: skip
        super().__init__(params, locals())

    def _check(self, options: dict[str, Any]) -> None:
        super()._check({name: 0.0 if isinstance(v, float) and math.isnan(v) else v for name, v in options.items()})  # which PyTorch lets pass
        if options["nesterov"] and (options["momentum"] <= 0 or options["dampening"] != 0):
            raise ValueError("Nesterov momentum requires a momentum and zero dampening")

    def _update(self, group: dict[str, Any], params: list[Any]) -> None:
        if not group["momentum"]:
            self.descend(group, params, [p._grad for p in params], None)
            return
        begun = [self.state[p].get("momentum_buffer") is not None for p in params]
        for first in (True, False):
            chosen = [p for p, has in zip(params, begun, strict=True) if has is not first]
            if not chosen:
                continue
            states = [self.state[p] for p in chosen]
            if first:
                with no_grad():
                    for p, state in zip(chosen, states, strict=True):
                        state["momentum_buffer"] = zeros_of(p, like=p._grad)
            self.descend(group, chosen, [p._grad for p in chosen], [state["momentum_buffer"] for state in states], first)

    def descend(self, group: dict[str, Any], params: list[Any], grads: list[Any], buffers: list[Any] | None, first: bool = False) -> None:
        """Update parameters from their gradients, and the averages of these if there are ``buffers``; ``first``: for the first time."""
        if buffers is None:
            self._run(_plain, group, [grads, params])
        else:
            self._run(_momentum, group, [grads, params, buffers], first=first)
