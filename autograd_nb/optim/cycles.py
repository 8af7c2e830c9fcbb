"""Schedules in cycles, stepped after every batch: OneCycleLR and CyclicLR; `autograd_nb.optim.lr_scheduler` offers them."""

from __future__ import annotations

import math
import types
from collections.abc import Callable
from typing import Any

from .optimizer import Optimizer
from .schedules import LRScheduler, check_optimizer, set_rate


class OneCycleLR(LRScheduler):
    """Up from max_lr / div_factor to max_lr and down to nearly 0 in one cycle of batches (Smith and Topin, 2018).

    Momentum (or beta1) goes the other way if ``cycle_momentum``. Step after every batch.

    >>> s = torch.optim.lr_scheduler.OneCycleLR(torch.optim.SGD([torch.zeros(1)], lr=1.0, momentum=0.9), 1.0, total_steps=10)
    >>> s.get_last_lr()
    [0.040000000000000036]
    """

    optimizer: Optimizer
    total_steps: int
    use_beta1: bool

    def __init__(
        self, optimizer: Optimizer, max_lr: Any, total_steps: int | None = None, epochs: int | None = None, steps_per_epoch: int | None = None,
        pct_start: float = 0.3, anneal_strategy: str = "cos", cycle_momentum: bool = True, base_momentum: Any = 0.85, max_momentum: Any = 0.95,
        div_factor: float = 25.0, final_div_factor: float = 1e4, three_phase: bool = False, last_epoch: int = -1,
    ) -> None:  # fmt: skip
        self.optimizer = check_optimizer(optimizer)
        if total_steps is not None:
            if total_steps <= 0 or not isinstance(total_steps, int):
                raise ValueError(f"Expected positive integer total_steps, but got {total_steps}")
            self.total_steps = total_steps
        elif epochs is not None and steps_per_epoch is not None:
            for name, value in (("epochs", epochs), ("steps_per_epoch", steps_per_epoch)):
                if not isinstance(value, int) or value <= 0:
                    raise ValueError(f"Expected positive integer {name}, but got {value}")
            self.total_steps = epochs * steps_per_epoch
        else:
            raise ValueError("You must define either total_steps OR (epochs AND steps_per_epoch)")
        if not isinstance(pct_start, float) or not 0 <= pct_start <= 1:
            raise ValueError(f"Expected float between 0 and 1 pct_start, but got {pct_start}")
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(f"anneal_strategy must be one of 'cos' or 'linear', instead got {anneal_strategy}")
        self._anneal = anneal_strategy
        top = pct_start * self.total_steps - 1
        lrs, momenta = ("initial_lr", "max_lr", "min_lr"), ("max_momentum", "base_momentum")
        if three_phase:
            self._phases = [
                (top, lrs[0], lrs[1], momenta[0], momenta[1]),
                (2 * top, lrs[1], lrs[0], momenta[1], momenta[0]),
                (self.total_steps - 1, lrs[0], lrs[2], momenta[0], momenta[0]),
            ]
        else:
            self._phases = [
                (top, lrs[0], lrs[1], momenta[0], momenta[1]),
                (self.total_steps - 1, lrs[1], lrs[2], momenta[1], momenta[0]),
            ]
        groups = optimizer.param_groups
        if last_epoch == -1:
            for group, high in zip(groups, _for_groups("max_lr", max_lr, groups), strict=True):
                group["initial_lr"] = high / div_factor
                group["max_lr"], group["min_lr"] = high, group["initial_lr"] / final_div_factor
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            self.use_beta1 = _momentum_kind(optimizer)
            if last_epoch == -1:
                low, high = (_for_groups(n, v, groups) for n, v in (("base_momentum", base_momentum), ("max_momentum", max_momentum)))
                for group, a, b in zip(groups, low, high, strict=True):
                    _set_momentum(group, b, self.use_beta1)
                    group["max_momentum"], group["base_momentum"] = b, a
        super().__init__(optimizer, last_epoch)

    def _between(self, start: float, end: float, part: float) -> float:
        if self._anneal == "cos":
            return end + (start - end) / 2.0 * (math.cos(math.pi * part) + 1)
        return (end - start) * part + start

    def get_lr(self) -> list[Any]:
        step = self.last_epoch
        if step > self.total_steps:
            raise ValueError(f"Tried to step {step} times. The total number of steps is {self.total_steps}")
        lrs = []
        for group in self.optimizer.param_groups:
            start = 0.0
            for i, (end, a, b, c, d) in enumerate(self._phases):
                if step <= end or i == len(self._phases) - 1:
                    part = (step - start) / (end - start)
                    lrs.append(self._between(group[a], group[b], part))
                    if self.cycle_momentum:
                        _set_momentum(group, self._between(group[c], group[d], part), self.use_beta1)
                    break
                start = end
        return lrs


def _for_groups(name: str, value: Any, groups: list[Any]) -> list[Any]:
    if isinstance(value, (list, tuple)):
        if len(value) != len(groups):
            raise ValueError(f"{name} must have the same length as optimizer.param_groups. {name} has {len(value)} values, param_groups has {len(groups)}.")
        return list(value)
    return [value] * len(groups)


def _momentum_kind(optimizer: Optimizer) -> bool:
    """Return whether the momentum is the first beta. ValueError where there is none."""
    if "momentum" not in optimizer.defaults and "betas" not in optimizer.defaults:
        raise ValueError("optimizer must support momentum or beta1 with `cycle_momentum` option enabled")
    return "betas" in optimizer.defaults


def _set_momentum(group: dict[str, Any], value: float, beta1: bool) -> None:
    if beta1:
        group["betas"] = (value, *group["betas"][1:])
    else:
        group["momentum"] = value


class CyclicLR(LRScheduler):
    """Up and down between ``base_lr`` and ``max_lr`` (Smith, 2017); step after every batch.

    mode: "triangular", "triangular2" (the amplitude halves each cycle), "exp_range" (it shrinks by gamma each batch).

    >>> s = torch.optim.lr_scheduler.CyclicLR(torch.optim.SGD([torch.zeros(1)], lr=1.0, momentum=0.9), 0.1, 1.0)
    >>> s.get_last_lr()
    [0.1]
    """

    max_lrs: list[Any]
    total_size: float
    step_ratio: float
    mode: str
    gamma: float
    scale_mode: str
    use_beta1: bool
    base_momentums: list[Any]
    max_momentums: list[Any]

    def __init__(
        self, optimizer: Optimizer, base_lr: Any, max_lr: Any, step_size_up: int = 2000, step_size_down: int | None = None,
        mode: str = "triangular", gamma: float = 1.0, scale_fn: Callable[[float], float] | None = None, scale_mode: str = "cycle",
        cycle_momentum: bool = True, base_momentum: Any = 0.8, max_momentum: Any = 0.9, last_epoch: int = -1,
    ) -> None:  # fmt: skip
        groups = check_optimizer(optimizer).param_groups
        if mode not in ("triangular", "triangular2", "exp_range") and scale_fn is None:
            raise ValueError("mode is invalid and scale_fn is None")
        low = _for_groups("base_lr", base_lr, groups)
        if last_epoch == -1:
            for group, lr in zip(groups, low, strict=True):
                set_rate(group, lr)
        self.max_lrs = _for_groups("max_lr", max_lr, groups)
        up, down = float(step_size_up), float(step_size_up if step_size_down is None else step_size_down)
        self.total_size, self.step_ratio = up + down, up / (up + down)
        self.mode, self.gamma, self._scale_fn_custom = mode, gamma, scale_fn
        self.scale_mode = scale_mode if scale_fn is not None else "iterations" if mode == "exp_range" else "cycle"
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            self.use_beta1 = _momentum_kind(optimizer)
            self.base_momentums = _for_groups("base_momentum", base_momentum, groups)
            self.max_momentums = _for_groups("max_momentum", max_momentum, groups)
            if last_epoch == -1:
                for group, b in zip(groups, self.max_momentums, strict=True):
                    _set_momentum(group, b, self.use_beta1)
        super().__init__(optimizer, last_epoch)
        self.base_lrs = low

    def scale_fn(self, x: float) -> float:
        """Return the amplitude in cycle (or at batch) ``x``."""
        if self._scale_fn_custom is not None:
            return self._scale_fn_custom(x)
        if self.mode == "triangular":
            return 1.0
        return 1 / (2.0 ** (x - 1)) if self.mode == "triangular2" else self.gamma**x

    def state_dict(self) -> dict[str, Any]:
        """Return everything but the optimizer and a plain function."""
        out = super().state_dict()
        f = out.pop("_scale_fn_custom")
        out["_scale_fn_custom"] = None if f is None or isinstance(f, types.FunctionType) else f.__dict__.copy()
        return out

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over what `state_dict` gave."""
        given = dict(state_dict)
        values = given.pop("_scale_fn_custom", None)
        super().load_state_dict(given)
        if values is not None and self._scale_fn_custom is not None:
            self._scale_fn_custom.__dict__.update(values)

    def get_lr(self) -> list[Any]:
        cycle = math.floor(1 + self.last_epoch / self.total_size)
        x = 1.0 + self.last_epoch / self.total_size - cycle
        height = x / self.step_ratio if x <= self.step_ratio else (x - 1) / (self.step_ratio - 1)
        scale = self.scale_fn(cycle if self.scale_mode == "cycle" else self.last_epoch)
        lrs = [base + (high - base) * height * scale for base, high in zip(self.base_lrs, self.max_lrs, strict=True)]
        if self.cycle_momentum:
            for group, a, b in zip(self.optimizer.param_groups, self.base_momentums, self.max_momentums, strict=True):
                _set_momentum(group, b - (b - a) * height * scale, self.use_beta1)
        return lrs
