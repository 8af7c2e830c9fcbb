"""Stochastic gradient descent."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import launch
from ..graph.modes import enable_grad, no_grad
from ..tensor import Tensor
from .fused import Update, update
from .optimizer import Optimizer, ParamsT, check_fused, check_lr, check_not_negative, number, zeros_of

_plain = Update("sgd")
_momentum = Update("sgd_momentum", ("momentum_buffer",))


class SGD(Optimizer):
    """p -= lr · d with d = gradient + weight_decay · p; with momentum d is averaged: b = momentum · b + (1 - dampening) · d.

    nesterov: step along d + momentum · b. maximize: climb instead.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.optim.SGD.html
    """

    def __init__(
        self, params: ParamsT, lr: float | Tensor = 1e-3, momentum: float = 0, dampening: float = 0, weight_decay: float = 0,
        nesterov: bool = False, *, maximize: bool = False, foreach: bool | None = None, differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:  # fmt: skip
        check_lr(lr)
        check_not_negative("momentum", momentum)
        check_not_negative("weight_decay", weight_decay)
        if nesterov and (momentum <= 0 or dampening != 0):
            raise ValueError("Nesterov momentum requires a momentum and zero dampening")
        check_fused(fused, foreach, differentiable)
        super().__init__(params, {
            "lr": lr, "momentum": momentum, "dampening": dampening, "weight_decay": weight_decay, "nesterov": nesterov,
            "maximize": maximize, "foreach": foreach, "differentiable": differentiable, "fused": fused,
        })  # fmt: skip

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        for group in self.param_groups:
            group.setdefault("nesterov", False)
            group.setdefault("maximize", False)
            group.setdefault("foreach", None)
            group.setdefault("differentiable", False)
            group.setdefault("fused", None)

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Update every parameter that has a gradient; what ``closure`` returned, if given."""
        loss = None
        if closure is not None:
            with enable_grad():
                loss = closure()
        launch.looked()
        for group in self.param_groups:
            if group["differentiable"]:
                raise NotImplementedError("SGD(differentiable=True) is not supported: write the update with tensor operations")
            lr, decay, sign = number(group["lr"]), number(group["weight_decay"]), -1.0 if group["maximize"] else 1.0
            momentum, nesterov = number(group["momentum"]), bool(group["nesterov"])
            params = [p for p in group["params"] if p._grad is not None]
            if momentum == 0.0:
                _run(_plain, (lr, decay, sign), params)
                continue
            gain = 1.0 - number(group["dampening"])
            begun = [self.state[p].get("momentum_buffer") is not None for p in params]
            for first in (True, False):
                chosen = [p for p, has in zip(params, begun, strict=True) if has is not first]
                states = [self.state[p] for p in chosen]
                if first:
                    with no_grad():
                        for p, state in zip(chosen, states, strict=True):
                            state["momentum_buffer"] = zeros_of(p)
                numbers = (lr, decay, sign, momentum, gain, nesterov, first)
                _run(_momentum, numbers, chosen, [state["momentum_buffer"] for state in states])
        return loss


def _run(kernel: Update, numbers: tuple, params: list[Any], *states: list[Any]) -> None:
    if params:
        update(kernel, numbers, [[p._grad for p in params], params, *states])
