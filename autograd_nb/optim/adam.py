"""Adam, AdamW and their relatives NAdam, RAdam and Adamax."""

from __future__ import annotations

from typing import Any

from ..dtypes import float32
from ..ops.core.numbers import scalar_tensor
from ..tensor import Tensor
from .fused import Fused, Update
from .optimizer import ParamsT, check_betas, check_fused, check_lr, check_not_negative, counter, number, zeros_of

_MOMENTS, _STEP = ("exp_avg", "exp_avg_sq"), ("step",)
_adam = Update("adam", _MOMENTS, _STEP)
_amsgrad = Update("adam_amsgrad", (*_MOMENTS, "max_exp_avg_sq"), _STEP)
_nadam = Update("nadam", _MOMENTS, ("mu_product", "step"))
_radam = Update("radam", _MOMENTS, _STEP)
_adamax = Update("adamax", ("exp_avg", "exp_inf"), _STEP)


def _common(group: dict[str, Any]) -> tuple[float, ...]:
    """lr, weight decay, sign, betas, eps: the first arguments of this family's kernels."""
    beta1, beta2 = group["betas"]
    sign = -1.0 if group["maximize"] else 1.0
    return number(group["lr"]), number(group["weight_decay"]), sign, number(beta1), number(beta2), number(group["eps"])


def _check(lr: Any, betas: Any, eps: float, weight_decay: Any) -> None:
    check_lr(lr)
    check_not_negative("epsilon", eps)
    check_betas(betas)
    check_not_negative("weight_decay", weight_decay)


def _check_tensors(lr: Any, betas: Any, foreach: Any, capturable: bool) -> None:
    """What Adam asks of numbers that are given as tensors."""
    if isinstance(betas[0], Tensor) != isinstance(betas[1], Tensor):
        raise ValueError("betas must be either both floats or both Tensors")
    for name, value in (("lr", lr), ("betas[0]", betas[0]), ("betas[1]", betas[1])):
        if isinstance(value, Tensor):
            if foreach and not capturable:
                raise ValueError(f"{name} as a Tensor is not supported for capturable=False and foreach=True")
            if value._layout.size != 1:
                raise ValueError(f"Tensor {name} must be 1-element")


class _Family(Fused):
    """State of two moments and a count."""

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        for group in self.param_groups:
            for name, default in (("maximize", False), ("foreach", None), ("capturable", False), ("differentiable", False)):
                group.setdefault(name, default)
            if isinstance(self, (Adam, NAdam, RAdam)):
                group.setdefault("decoupled_weight_decay", False)
        for s in self.state.values():
            if s and "step" in s and not isinstance(s["step"], Tensor):  # as old checkpoints have it
                s["step"] = scalar_tensor(float(s["step"]), float32)

    def _begin(self, p: Tensor, state: dict[str, Any], group: dict[str, Any]) -> None:
        state["step"] = counter()
        state["exp_avg"] = zeros_of(p)
        state["exp_avg_sq"] = zeros_of(p)


class Adam(_Family):
    """p -= lr · m̂ / (√v̂ + eps), m and v being running averages of the gradient and its square, corrected for their start.

    amsgrad: divide by the largest v so far. decoupled_weight_decay: as `AdamW`.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.optim.Adam.html
    """

    def __init__(
        self, params: ParamsT, lr: float | Tensor = 1e-3, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8,
        weight_decay: float = 0, amsgrad: bool = False, *, foreach: bool | None = None, maximize: bool = False, capturable: bool = False,
        differentiable: bool = False, fused: bool | None = None, decoupled_weight_decay: bool = False,
    ) -> None:  # fmt: skip
        _check_tensors(lr, betas, foreach, capturable)
        _check(lr, betas, eps, weight_decay)
        check_fused(fused, foreach, differentiable)
        super().__init__(params, {
            "lr": lr, "betas": tuple(map(number, betas)), "eps": eps, "weight_decay": weight_decay, "amsgrad": amsgrad, "maximize": maximize,
            "foreach": foreach, "capturable": capturable, "differentiable": differentiable, "fused": fused,
            "decoupled_weight_decay": decoupled_weight_decay,
        })  # fmt: skip

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        for group in self.param_groups:
            group.setdefault("amsgrad", False)
            group.setdefault("fused", None)

    def _begin(self, p: Tensor, state: dict[str, Any], group: dict[str, Any]) -> None:
        super()._begin(p, state, group)
        if group["amsgrad"]:
            state["max_exp_avg_sq"] = zeros_of(p)

    def _plan(self, group: dict[str, Any]) -> tuple[Update, tuple[float, ...]]:
        numbers = (*_common(group), bool(group["decoupled_weight_decay"]))
        return (_amsgrad if group["amsgrad"] else _adam), numbers


class AdamW(Adam):
    """`Adam` with weight decay apart from the gradient: p shrinks by lr · weight_decay · p.

    Source: https://docs.pytorch.org/docs/stable/generated/torch.optim.AdamW.html
    """

    def __init__(
        self, params: ParamsT, lr: float | Tensor = 1e-3, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8,
        weight_decay: float = 1e-2, amsgrad: bool = False, *, maximize: bool = False, foreach: bool | None = None, capturable: bool = False,
        differentiable: bool = False, fused: bool | None = None,
    ) -> None:  # fmt: skip
        super().__init__(
            params, lr, betas, eps, weight_decay, amsgrad, foreach=foreach, maximize=maximize, capturable=capturable,
            differentiable=differentiable, fused=fused, decoupled_weight_decay=True,
        )  # fmt: skip

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        for group in self.param_groups:
            group["decoupled_weight_decay"] = True


class NAdam(_Family):
    """`Adam` with Nesterov's momentum.

    Source: https://docs.pytorch.org/docs/stable/generated/torch.optim.NAdam.html
    """

    def __init__(
        self, params: ParamsT, lr: float | Tensor = 2e-3, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8,
        weight_decay: float = 0, momentum_decay: float = 4e-3, decoupled_weight_decay: bool = False, *, foreach: bool | None = None,
        maximize: bool = False, capturable: bool = False, differentiable: bool = False,
    ) -> None:  # fmt: skip
        _check(lr, betas, eps, weight_decay)
        check_not_negative("momentum_decay", momentum_decay)
        super().__init__(params, {
            "lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay, "momentum_decay": momentum_decay,
            "decoupled_weight_decay": decoupled_weight_decay, "maximize": maximize, "foreach": foreach, "capturable": capturable,
            "differentiable": differentiable,
        })  # fmt: skip

    def _begin(self, p: Tensor, state: dict[str, Any], group: dict[str, Any]) -> None:
        state["step"] = counter()
        state["mu_product"] = scalar_tensor(1.0, float32)
        state["exp_avg"] = zeros_of(p)
        state["exp_avg_sq"] = zeros_of(p)

    def _plan(self, group: dict[str, Any]) -> tuple[Update, tuple[float, ...]]:
        numbers = (*_common(group), number(group["momentum_decay"]), bool(group["decoupled_weight_decay"]))
        return _nadam, numbers


class RAdam(_Family):
    """`Adam` whose adaptive rate is rectified at the start.

    Source: https://docs.pytorch.org/docs/stable/generated/torch.optim.RAdam.html
    """

    def __init__(
        self, params: ParamsT, lr: float | Tensor = 1e-3, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8,
        weight_decay: float = 0, decoupled_weight_decay: bool = False, *, foreach: bool | None = None, maximize: bool = False,
        capturable: bool = False, differentiable: bool = False,
    ) -> None:  # fmt: skip
        _check(lr, betas, eps, weight_decay)
        super().__init__(params, {
            "lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay, "maximize": maximize, "foreach": foreach,
            "capturable": capturable, "decoupled_weight_decay": decoupled_weight_decay, "differentiable": differentiable,
        })  # fmt: skip

    def _plan(self, group: dict[str, Any]) -> tuple[Update, tuple[float, ...]]:
        return _radam, (*_common(group), bool(group["decoupled_weight_decay"]))


class Adamax(_Family):
    """`Adam` with the infinity norm in the place of the second moment.

    Source: https://docs.pytorch.org/docs/stable/generated/torch.optim.Adamax.html
    """

    def __init__(
        self, params: ParamsT, lr: float | Tensor = 2e-3, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8,
        weight_decay: float = 0, foreach: bool | None = None, *, maximize: bool = False, differentiable: bool = False,
        capturable: bool = False,
    ) -> None:  # fmt: skip
        _check(lr, betas, eps, weight_decay)
        super().__init__(params, {
            "lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay, "foreach": foreach, "maximize": maximize,
            "differentiable": differentiable, "capturable": capturable,
        })  # fmt: skip

    def _begin(self, p: Tensor, state: dict[str, Any], group: dict[str, Any]) -> None:
        state["step"] = counter()
        state["exp_avg"] = zeros_of(p)
        state["exp_inf"] = zeros_of(p)

    def _plan(self, group: dict[str, Any]) -> tuple[Update, tuple[float, ...]]:
        return _adamax, _common(group)
