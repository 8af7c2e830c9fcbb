"""Adam, AdamW and their relatives NAdam, RAdam and Adamax."""

from __future__ import annotations

from typing import Any

from ..tensor import Tensor
from .fused import Fused, Update
from .optimizer import ParamsT, check_betas, check_sequence, number

__all__ = ["Adam", "AdamW", "Adamax", "NAdam", "RAdam"]

_adam, _amsgrad = Update("adam"), Update("adam_amsgrad")
_nadam, _radam, _adamax = Update("nadam"), Update("radam"), Update("adamax")


def _check_tensors(lr: Any, betas: Any, foreach: Any, capturable: bool) -> None:
    """Raise ValueError unless numbers that are given as tensors are such as Adam takes."""
    if isinstance(betas[0], Tensor) != isinstance(betas[1], Tensor):
        raise ValueError("betas must be either both floats or both Tensors")
    for name, value in (("lr", lr), ("betas[0]", betas[0]), ("betas[1]", betas[1])):
        if isinstance(value, Tensor):
            if foreach and not capturable:
                raise ValueError(f"{name} as a Tensor is not supported for capturable=False and foreach=True")
            if value._layout.size != 1:
                raise ValueError(f"Tensor {name} must be 1-element")


class Adam(Fused):
    """p -= lr · m̂ / (√v̂ + eps), m and v being running averages of the gradient and its square, corrected for their start.

    amsgrad: divide by the largest v so far. decoupled_weight_decay: as `AdamW`.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.optim.Adam.html

    >>> w = torch.ones(1, requires_grad=True)
    >>> w.sum().backward()
    >>> torch.optim.Adam([w], lr=0.1).step()
    >>> w.data
    tensor([0.9000])
    """

    order: tuple[str, ...] = ("lr", "betas", "eps", "weight_decay", "amsgrad", "maximize")

    def __init__(
        self, params: ParamsT, lr: float | Tensor = 1e-3, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8,
        weight_decay: float = 0, amsgrad: bool = False, *, foreach: bool | None = None, maximize: bool = False, capturable: bool = False,
        differentiable: bool = False, fused: bool | None = None, decoupled_weight_decay: bool = False,
    ) -> None:  # fmt: skip
        check_sequence("betas", betas)
        if not any(isinstance(value, Tensor) for value in betas):
            check_betas(betas)
        _check_tensors(lr, betas, foreach, capturable)
        if not differentiable:
            betas = (number(betas[0]), number(betas[1]))
        super().__init__(params, locals())

    def _kernel(self, group: dict[str, Any]) -> Update:
        return _amsgrad if group["amsgrad"] else _adam


class AdamW(Adam):
    """`Adam` with weight decay apart from the gradient: p shrinks by lr · weight_decay · p.

    Source: https://docs.pytorch.org/docs/stable/generated/torch.optim.AdamW.html

    >>> w = torch.ones(1, requires_grad=True)
    >>> w.sum().backward()
    >>> torch.optim.AdamW([w], lr=0.1, weight_decay=0.1).step()
    >>> w.data
    tensor([0.8900])
    """

    def __init__(
        self, params: ParamsT, lr: float | Tensor = 1e-3, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8,
        weight_decay: float = 1e-2, amsgrad: bool = False, *, maximize: bool = False, foreach: bool | None = None, capturable: bool = False,
        differentiable: bool = False, fused: bool | None = None,
    ) -> None:  # fmt: skip
        given = {name: value for name, value in locals().items() if name in AdamW.options}
        super().__init__(params, **given, decoupled_weight_decay=True)

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        for group in self.param_groups:
            group["decoupled_weight_decay"] = True


class NAdam(Fused):
    """`Adam` with Nesterov's momentum.

    Source: https://docs.pytorch.org/docs/stable/generated/torch.optim.NAdam.html

    >>> w = torch.ones(1, requires_grad=True)
    >>> w.sum().backward()
    >>> torch.optim.NAdam([w], lr=0.1).step()
    >>> w.data
    tensor([0.8944])
    """

    order: tuple[str, ...] = ("lr", "betas", "eps", "weight_decay", "momentum_decay", "decoupled_weight_decay", "maximize")

    def __init__(
        self, params: ParamsT, lr: float | Tensor = 2e-3, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8,
        weight_decay: float = 0, momentum_decay: float = 4e-3, decoupled_weight_decay: bool = False, *, foreach: bool | None = None,
        maximize: bool = False, capturable: bool = False, differentiable: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(params, locals())

    def _kernel(self, group: dict[str, Any]) -> Update:
        return _nadam

    def _first(self, group: dict[str, Any]) -> dict[str, float]:
        return {"mu_product": 1.0}


class RAdam(Fused):
    """`Adam` whose adaptive rate is rectified at the start.

    Source: https://docs.pytorch.org/docs/stable/generated/torch.optim.RAdam.html

    >>> w = torch.ones(1, requires_grad=True)
    >>> w.sum().backward()
    >>> torch.optim.RAdam([w], lr=0.1).step()
    >>> w.data
    tensor([0.9000])
    """

    order: tuple[str, ...] = ("lr", "betas", "eps", "weight_decay", "maximize", "foreach", "capturable", "decoupled_weight_decay")

    def __init__(
        self, params: ParamsT, lr: float | Tensor = 1e-3, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8,
        weight_decay: float = 0, decoupled_weight_decay: bool = False, *, foreach: bool | None = None, maximize: bool = False,
        capturable: bool = False, differentiable: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(params, locals())

    def _kernel(self, group: dict[str, Any]) -> Update:
        return _radam


class Adamax(Fused):
    """`Adam` with the infinity norm in the place of the second moment.

    Source: https://docs.pytorch.org/docs/stable/generated/torch.optim.Adamax.html

    >>> w = torch.ones(1, requires_grad=True)
    >>> w.sum().backward()
    >>> torch.optim.Adamax([w], lr=0.1).step()
    >>> w.data
    tensor([0.9000])
    """

    def __init__(
        self, params: ParamsT, lr: float | Tensor = 2e-3, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8,
        weight_decay: float = 0, foreach: bool | None = None, *, maximize: bool = False, differentiable: bool = False,
        capturable: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(params, locals())

    def _kernel(self, group: dict[str, Any]) -> Update:
        return _adamax
