"""RMSprop, Adagrad, Adadelta, Rprop and ASGD."""

from __future__ import annotations

from typing import Any

from ..tensor import Tensor
from .fused import Fused, Update
from .optimizer import ParamsT, check_not_negative, check_pair, check_sequence, number

__all__ = ["ASGD", "Adadelta", "Adagrad", "RMSprop", "Rprop"]

_rmsprop, _rmsprop_momentum = Update("rmsprop"), Update("rmsprop_momentum")
_rmsprop_centered, _rmsprop_centered_momentum = Update("rmsprop_centered"), Update("rmsprop_centered_momentum")
_adagrad, _adadelta, _asgd = Update("adagrad"), Update("adadelta"), Update("asgd")
_rprop = Update(
    "rprop", shrink=lambda group: float(group["etas"][0]), grow=lambda group: float(group["etas"][1]),
    least=lambda group: float(group["step_sizes"][0]), most=lambda group: float(group["step_sizes"][1]),
)  # fmt: skip


class RMSprop(Fused):
    """p -= lr · g / (√E[g²] + eps), optionally with momentum, and with the variance in the place of E[g²] (``centered``).

    Source: https://docs.pytorch.org/docs/stable/generated/torch.optim.RMSprop.html

    >>> w = torch.ones(1, requires_grad=True)
    >>> w.sum().backward()
    >>> torch.optim.RMSprop([w], lr=0.1).step()
    >>> w.data
    tensor([5.9605e-08])
    """

    order: tuple[str, ...] = ("lr", "momentum", "alpha", "eps", "centered", "weight_decay")

    def __init__(
        self, params: ParamsT, lr: float | Tensor = 1e-2, alpha: float = 0.99, eps: float = 1e-8, weight_decay: float = 0,
        momentum: float = 0, centered: bool = False, capturable: bool = False, foreach: bool | None = None, maximize: bool = False,
        differentiable: bool = False,
    ) -> None:  # fmt: skip
        check_not_negative("alpha", alpha)
        super().__init__(params, locals())

    def _kernel(self, group: dict[str, Any]) -> Update:
        if group["momentum"]:
            return _rmsprop_centered_momentum if group["centered"] else _rmsprop_momentum
        return _rmsprop_centered if group["centered"] else _rmsprop


class Adagrad(Fused):
    """p -= lr · g / (√Σg² + eps), the rate falling as 1 / (1 + t · lr_decay).

    Source: https://docs.pytorch.org/docs/stable/generated/torch.optim.Adagrad.html

    >>> w = torch.ones(1, requires_grad=True)
    >>> w.sum().backward()
    >>> torch.optim.Adagrad([w], lr=0.1).step()
    >>> w.data
    tensor([0.9000])
    """

    order: tuple[str, ...] = ("lr", "lr_decay", "eps", "weight_decay")

    def __init__(
        self, params: ParamsT, lr: float | Tensor = 1e-2, lr_decay: float = 0, weight_decay: float = 0,
        initial_accumulator_value: float = 0, eps: float = 1e-10, foreach: bool | None = None, *, maximize: bool = False,
        differentiable: bool = False, fused: bool | None = None,
    ) -> None:  # fmt: skip
        super().__init__(params, locals())
        for group in self.param_groups:
            for p in group["params"]:
                self._begin(p, self.state[p], group)

    def share_memory(self) -> None:
        """Do nothing: the state is in memory already."""

    def _kernel(self, group: dict[str, Any]) -> Update:
        return _adagrad

    def _first(self, group: dict[str, Any]) -> dict[str, float]:
        return {"sum": group["initial_accumulator_value"]}


class Adadelta(Fused):
    """Steps scaled by the ratio of the running sizes of past steps and gradients.

    Source: https://docs.pytorch.org/docs/stable/generated/torch.optim.Adadelta.html

    >>> w = torch.ones(1, requires_grad=True)
    >>> w.sum().backward()
    >>> torch.optim.Adadelta([w], lr=1.0).step()
    >>> w.data
    tensor([0.9968])
    """

    order: tuple[str, ...] = ("lr", "rho", "eps", "weight_decay", "maximize", "capturable", "foreach")

    def __init__(
        self, params: ParamsT, lr: float | Tensor = 1.0, rho: float = 0.9, eps: float = 1e-6, weight_decay: float = 0,
        foreach: bool | None = None, *, capturable: bool = False, maximize: bool = False, differentiable: bool = False,
    ) -> None:  # fmt: skip
        if not 0.0 <= rho <= 1.0:
            raise ValueError(f"Invalid rho value: {rho}")
        super().__init__(params, locals())

    def _kernel(self, group: dict[str, Any]) -> Update:
        return _adadelta


class Rprop(Fused):
    """Step sizes of their own for each element, by the sign of the gradient alone.

    Source: https://docs.pytorch.org/docs/stable/generated/torch.optim.Rprop.html

    >>> w = torch.ones(1, requires_grad=True)
    >>> w.sum().backward()
    >>> torch.optim.Rprop([w], lr=0.1).step()
    >>> w.data
    tensor([0.9000])
    """

    order: tuple[str, ...] = ("lr", "etas", "step_sizes", "foreach", "maximize", "differentiable", "capturable")
    like_gradients: tuple[str, ...] = ("step_size",)

    def __init__(
        self, params: ParamsT, lr: float | Tensor = 1e-2, etas: tuple[float, float] = (0.5, 1.2),
        step_sizes: tuple[float, float] = (1e-6, 50), *, capturable: bool = False, foreach: bool | None = None, maximize: bool = False,
        differentiable: bool = False,
    ) -> None:  # fmt: skip
        check_sequence("etas", etas)
        if not 0.0 < etas[0] < 1.0 < etas[1]:
            raise ValueError(f"Invalid eta values: {etas[0]}, {etas[1]}")
        check_pair("etas", etas)
        check_pair("step_sizes", step_sizes)
        super().__init__(params, locals())

    def _kernel(self, group: dict[str, Any]) -> Update:
        return _rprop

    def _first(self, group: dict[str, Any]) -> dict[str, float]:
        return {"step_size": number(group["lr"])}


class ASGD(Fused):
    """Averaged gradient descent: ``ax`` of the state is the average of the parameters from step ``t0`` on.

    Source: https://docs.pytorch.org/docs/stable/generated/torch.optim.ASGD.html

    >>> w = torch.ones(1, requires_grad=True)
    >>> w.sum().backward()
    >>> torch.optim.ASGD([w], lr=0.1).step()
    >>> w.data
    tensor([0.9000])
    """

    def __init__(
        self, params: ParamsT, lr: float | Tensor = 1e-2, lambd: float = 1e-4, alpha: float = 0.75, t0: float = 1e6, weight_decay: float = 0,
        foreach: bool | None = None, maximize: bool = False, differentiable: bool = False, capturable: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(params, locals())

    def _kernel(self, group: dict[str, Any]) -> Update:
        return _asgd

    def _first(self, group: dict[str, Any]) -> dict[str, float]:
        return {"eta": number(group["lr"]), "mu": 1.0}
