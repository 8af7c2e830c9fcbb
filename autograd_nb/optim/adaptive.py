"""RMSprop, Adagrad, Adadelta, Rprop and ASGD."""

from __future__ import annotations

from typing import Any

from ..dtypes import float32
from ..ops.core.numbers import scalar_tensor
from ..tensor import Tensor
from .fused import Fused, Update
from .optimizer import ParamsT, check_fused, check_lr, check_not_negative, counter, number, zeros_of

_STEP = ("step",)
_rmsprop = Update("rmsprop", ("square_avg",), _STEP)
_rmsprop_momentum = Update("rmsprop_momentum", ("square_avg", "momentum_buffer"), _STEP)
_rmsprop_centered = Update("rmsprop_centered", ("square_avg", "grad_avg"), _STEP)
_rmsprop_centered_momentum = Update("rmsprop_centered_momentum", ("square_avg", "grad_avg", "momentum_buffer"), _STEP)
_adagrad = Update("adagrad", ("sum",), _STEP)
_adadelta = Update("adadelta", ("square_avg", "acc_delta"), _STEP)
_rprop = Update("rprop", ("prev", "step_size"), _STEP)
_asgd = Update("asgd", ("ax",), ("eta", "mu", "step"))


class _Adaptive(Fused):
    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        for group in self.param_groups:
            for name, default in self.defaults.items():
                group.setdefault(name, default)
        for s in self.state.values():
            if s and "step" in s and not isinstance(s["step"], Tensor):  # as old checkpoints have it
                s["step"] = scalar_tensor(float(s["step"]), float32)


def _lead(group: dict[str, Any]) -> tuple[float, float, float]:
    return number(group["lr"]), number(group["weight_decay"]), -1.0 if group["maximize"] else 1.0


class RMSprop(_Adaptive):
    """p -= lr · g / (√E[g²] + eps), optionally with momentum, and with the variance in the place of E[g²] (``centered``).

    Source: https://docs.pytorch.org/docs/stable/generated/torch.optim.RMSprop.html
    """

    def __init__(
        self, params: ParamsT, lr: float | Tensor = 1e-2, alpha: float = 0.99, eps: float = 1e-8, weight_decay: float = 0,
        momentum: float = 0, centered: bool = False, capturable: bool = False, foreach: bool | None = None, maximize: bool = False,
        differentiable: bool = False,
    ) -> None:  # fmt: skip
        check_lr(lr)
        for name, value in (("epsilon", eps), ("momentum", momentum), ("weight_decay", weight_decay), ("alpha", alpha)):
            check_not_negative(name, value)
        super().__init__(params, {
            "lr": lr, "momentum": momentum, "alpha": alpha, "eps": eps, "centered": centered, "weight_decay": weight_decay,
            "capturable": capturable, "foreach": foreach, "maximize": maximize, "differentiable": differentiable,
        })  # fmt: skip

    def _begin(self, p: Tensor, state: dict[str, Any], group: dict[str, Any]) -> None:
        state["step"] = counter()
        state["square_avg"] = zeros_of(p)
        if group["momentum"] > 0:
            state["momentum_buffer"] = zeros_of(p)
        if group["centered"]:
            state["grad_avg"] = zeros_of(p)

    def _plan(self, group: dict[str, Any]) -> tuple[Update, tuple[float, ...]]:
        numbers = (*_lead(group), number(group["alpha"]), number(group["eps"]), number(group["momentum"]))
        if group["momentum"]:
            return (_rmsprop_centered_momentum if group["centered"] else _rmsprop_momentum), numbers
        return (_rmsprop_centered if group["centered"] else _rmsprop), numbers


class Adagrad(_Adaptive):
    """p -= lr · g / (√Σg² + eps), the rate falling as 1 / (1 + t · lr_decay).

    Source: https://docs.pytorch.org/docs/stable/generated/torch.optim.Adagrad.html
    """

    def __init__(
        self, params: ParamsT, lr: float | Tensor = 1e-2, lr_decay: float = 0, weight_decay: float = 0,
        initial_accumulator_value: float = 0, eps: float = 1e-10, foreach: bool | None = None, *, maximize: bool = False,
        differentiable: bool = False, fused: bool | None = None,
    ) -> None:  # fmt: skip
        check_lr(lr)
        for name, value in (
            ("lr_decay", lr_decay), ("weight_decay", weight_decay), ("initial_accumulator_value", initial_accumulator_value), ("epsilon", eps),
        ):  # fmt: skip
            check_not_negative(name, value)
        check_fused(fused, foreach, differentiable)
        super().__init__(params, {
            "lr": lr, "lr_decay": lr_decay, "eps": eps, "weight_decay": weight_decay,
            "initial_accumulator_value": initial_accumulator_value, "foreach": foreach, "maximize": maximize,
            "differentiable": differentiable, "fused": fused,
        })  # fmt: skip
        for group in self.param_groups:
            for p in group["params"]:
                self._begin(p, self.state[p], group)

    def share_memory(self) -> None:
        """Nothing to do: the state is in memory already."""

    def _begin(self, p: Tensor, state: dict[str, Any], group: dict[str, Any]) -> None:
        state["step"] = counter()
        state["sum"] = zeros_of(p, group["initial_accumulator_value"])

    def _plan(self, group: dict[str, Any]) -> tuple[Update, tuple[float, ...]]:
        return _adagrad, (*_lead(group), number(group["lr_decay"]), number(group["eps"]))


class Adadelta(_Adaptive):
    """Steps scaled by the ratio of the running sizes of past steps and gradients.

    Source: https://docs.pytorch.org/docs/stable/generated/torch.optim.Adadelta.html
    """

    def __init__(
        self, params: ParamsT, lr: float | Tensor = 1.0, rho: float = 0.9, eps: float = 1e-6, weight_decay: float = 0,
        foreach: bool | None = None, *, capturable: bool = False, maximize: bool = False, differentiable: bool = False,
    ) -> None:  # fmt: skip
        check_lr(lr)
        if not 0.0 <= rho <= 1.0:
            raise ValueError(f"Invalid rho value: {rho}")
        check_not_negative("epsilon", eps)
        check_not_negative("weight_decay", weight_decay)
        super().__init__(params, {
            "lr": lr, "rho": rho, "eps": eps, "weight_decay": weight_decay, "maximize": maximize, "capturable": capturable,
            "foreach": foreach, "differentiable": differentiable,
        })  # fmt: skip

    def _begin(self, p: Tensor, state: dict[str, Any], group: dict[str, Any]) -> None:
        state["step"] = counter()
        state["square_avg"] = zeros_of(p)
        state["acc_delta"] = zeros_of(p)

    def _plan(self, group: dict[str, Any]) -> tuple[Update, tuple[float, ...]]:
        return _adadelta, (*_lead(group), number(group["rho"]), number(group["eps"]))


class Rprop(_Adaptive):
    """Step sizes of their own for each element, by the sign of the gradient alone.

    Source: https://docs.pytorch.org/docs/stable/generated/torch.optim.Rprop.html
    """

    def __init__(
        self, params: ParamsT, lr: float | Tensor = 1e-2, etas: tuple[float, float] = (0.5, 1.2),
        step_sizes: tuple[float, float] = (1e-6, 50), *, capturable: bool = False, foreach: bool | None = None, maximize: bool = False,
        differentiable: bool = False,
    ) -> None:  # fmt: skip
        check_lr(lr)
        if not 0.0 < etas[0] < 1.0 < etas[1]:
            raise ValueError(f"Invalid eta values: {etas[0]}, {etas[1]}")
        super().__init__(params, {
            "lr": lr, "etas": etas, "step_sizes": step_sizes, "foreach": foreach, "maximize": maximize,
            "differentiable": differentiable, "capturable": capturable,
        })  # fmt: skip

    def _begin(self, p: Tensor, state: dict[str, Any], group: dict[str, Any]) -> None:
        state["step"] = counter()
        state["prev"] = zeros_of(p)
        state["step_size"] = zeros_of(p, number(group["lr"]))

    def _plan(self, group: dict[str, Any]) -> tuple[Update, tuple[float, ...]]:
        sign = -1.0 if group["maximize"] else 1.0
        numbers = (0.0, 0.0, sign, *map(float, group["etas"]), *map(float, group["step_sizes"]))
        return _rprop, numbers


class ASGD(_Adaptive):
    """Averaged gradient descent: ``ax`` of the state is the average of the parameters from step ``t0`` on.

    Source: https://docs.pytorch.org/docs/stable/generated/torch.optim.ASGD.html
    """

    def __init__(
        self, params: ParamsT, lr: float | Tensor = 1e-2, lambd: float = 1e-4, alpha: float = 0.75, t0: float = 1e6, weight_decay: float = 0,
        foreach: bool | None = None, maximize: bool = False, differentiable: bool = False, capturable: bool = False,
    ) -> None:  # fmt: skip
        check_lr(lr)
        check_not_negative("weight_decay", weight_decay)
        super().__init__(params, {
            "lr": lr, "lambd": lambd, "alpha": alpha, "t0": t0, "weight_decay": weight_decay, "foreach": foreach, "maximize": maximize,
            "differentiable": differentiable, "capturable": capturable,
        })  # fmt: skip

    def _begin(self, p: Tensor, state: dict[str, Any], group: dict[str, Any]) -> None:
        state["step"] = counter()
        state["eta"] = scalar_tensor(number(group["lr"]), float32)
        state["mu"] = scalar_tensor(1.0, float32)
        state["ax"] = zeros_of(p)

    def _plan(self, group: dict[str, Any]) -> tuple[Update, tuple[float, ...]]:
        numbers = (*_lead(group), number(group["lambd"]), number(group["alpha"]), number(group["t0"]))
        return _asgd, numbers
