"""Updates from sparse gradients, which change only the rows that have a gradient: those of `SGD` and `Adagrad`, and `SparseAdam`."""

from __future__ import annotations

import math
from typing import Any

from ..graph.modes import enable_grad, no_grad
from ..tensor import Tensor
from .optimizer import Optimizer, ParamsT, check_betas, check_lr, number, zeros_of

__all__ = ["SparseAdam"]


def _rows(g: Any) -> tuple[tuple[Tensor, ...], Tensor]:
    """Return (indices, values) of a sparse gradient, each place once."""
    g = g.coalesce()
    return tuple(g.indices().unbind(0)), g.values()


def _momentum(group: dict[str, Any], g: Any, state: dict[str, Any]) -> Any:
    buffer = state.get("momentum_buffer")
    if buffer is None:
        buffer = g.clone()
    else:
        buffer = buffer * number(group["momentum"]) + g * (1 - number(group["dampening"]))
    state["momentum_buffer"] = buffer
    return g + buffer * number(group["momentum"]) if group["nesterov"] else buffer


def sgd(group: dict[str, Any], p: Tensor, g: Any, state: dict[str, Any]) -> None:
    """Update a parameter as `SGD` does."""
    if number(group["weight_decay"]):
        raise RuntimeError("add(sparse, dense) is not supported: SGD's weight_decay option is not compatible with sparse gradients (set weight_decay=0)")
    g = -g if group["maximize"] else g
    if number(group["momentum"]):
        g = _momentum(group, g, state)
    p.add_(g, alpha=-number(group["lr"]))


def adagrad(group: dict[str, Any], p: Tensor, g: Any, state: dict[str, Any]) -> None:
    """Update a parameter as `Adagrad` does."""
    if number(group["weight_decay"]):
        raise RuntimeError("weight_decay option is not compatible with sparse gradients")
    state["step"] += 1
    rate = number(group["lr"]) / (1 + (state["step"].item() - 1) * number(group["lr_decay"]))
    at, values = _rows(-g if group["maximize"] else g)
    total = state["sum"]
    total.index_put_(at, values.pow(2), accumulate=True)
    p.index_put_(at, -rate * values / (total[at].sqrt() + number(group["eps"])), accumulate=True)


_UPDATES = {"SGD": sgd, "Adagrad": adagrad}


@no_grad()
def update_sparse(optimizer: Any, group: dict[str, Any], params: list[Any]) -> list[Any]:
    """Update those of the parameters whose gradients are sparse; the others. RuntimeError of an optimizer that takes none of them."""
    given = [p for p in params if p._grad.is_sparse]
    if not given:
        return params
    name = next((cls.__name__ for cls in type(optimizer).__mro__ if cls.__name__ in _UPDATES), None)
    if name is None:
        raise RuntimeError(f"{type(optimizer).__name__} does not support sparse gradients, please consider SparseAdam instead")
    for p in given:
        _UPDATES[name](group, p, p._grad, optimizer.state[p])
    return [p for p in params if not p._grad.is_sparse]


class SparseAdam(Optimizer):
    """Adam that changes, of its averages and of the parameter, only the rows that have a gradient, for sparse gradients.

    Errors: ValueError for options without a meaning and for sparse parameters, RuntimeError for dense gradients.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.optim.SparseAdam.html

    >>> e = torch.nn.Embedding.from_pretrained(torch.ones(3, 1), freeze=False, sparse=True)
    >>> e(torch.tensor([1])).sum().backward()
    >>> torch.optim.SparseAdam(e.parameters(), lr=0.1).step()
    >>> e.weight.data.flatten()
    tensor([1.0000, 0.9000, 1.0000])
    """

    def __init__(
        self, params: ParamsT, lr: float | Tensor = 1e-3, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8, maximize: bool = False
    ) -> None:
        check_lr(lr)
        if not number(lr) > 0.0:
            raise ValueError(f"Invalid learning rate: {lr}")
        if not number(eps) > 0.0:
            raise ValueError(f"Invalid epsilon value: {eps}")
        check_betas(betas)
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "maximize": maximize})
        wrong = [i for i, p in enumerate(p for group in self.param_groups for p in group["params"]) if p.is_sparse]
        if wrong:
            raise ValueError(f"Sparse params at indices {wrong}: SparseAdam requires dense parameter tensors")

    @no_grad()
    def step(self, closure: Any = None) -> Any:
        """Update every parameter that has a gradient; ``closure`` computes the loss again, which is returned."""
        loss = None
        if closure is not None:
            with enable_grad():
                loss = closure()
        for group in self.param_groups:
            given = [p for p in group["params"] if p._grad is not None]
            if any(not p._grad.is_sparse for p in given):
                raise RuntimeError("SparseAdam does not support dense gradients, please consider Adam instead")
            for p in given:
                self._row_update(group, p)
        return loss

    def _row_update(self, group: dict[str, Any], p: Tensor) -> None:
        state = self.state[p]
        if "exp_avg" not in state:
            state["step"] = 0
            state["exp_avg"], state["exp_avg_sq"] = zeros_of(p), zeros_of(p)
        state["step"] += 1
        at, values = _rows(p._grad)
        if not values.numel():
            return
        values = -values if group["maximize"] else values
        beta1, beta2 = (number(b) for b in group["betas"])
        first, second = state["exp_avg"], state["exp_avg_sq"]
        m = first[at] + (values - first[at]) * (1 - beta1)
        v = second[at] + (values * values - second[at]) * (1 - beta2)
        first.index_put_(at, m)
        second.index_put_(at, v)
        step = float(state["step"])
        rate = number(group["lr"]) * math.sqrt(1 - beta2**step) / (1 - beta1**step)
        p.index_put_(at, -rate * m / (v.sqrt() + number(group["eps"])), accumulate=True)
