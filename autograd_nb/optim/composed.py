"""Schedules of several schedules, one after the other or all at once.

Source: https://docs.pytorch.org/docs/stable/optim.html#how-to-adjust-learning-rate
"""

from __future__ import annotations

import warnings
from bisect import bisect_right
from collections.abc import Sequence
from typing import Any

from .optimizer import Optimizer
from .plateau import ReduceLROnPlateau
from .schedules import LRScheduler, copied, set_rate


class SequentialLR(LRScheduler):
    """One schedule after the other, changing at the epochs ``milestones``."""

    optimizer: Optimizer
    last_epoch: int

    def __init__(
        self, optimizer: Optimizer, schedulers: Sequence[LRScheduler], milestones: list[int], last_epoch: int = -1
    ) -> None:
        _check_same(optimizer, schedulers, "SequentialLR")
        if len(milestones) != len(schedulers) - 1:
            raise ValueError(
                "Sequential Schedulers expects number of schedulers provided to be one more than the number of milestone points, but got "
                f"number of schedulers {len(schedulers)} and the number of milestones to be equal to {len(milestones)}"
            )
        self._schedulers, self._milestones = list(schedulers), milestones
        self.last_epoch, self.optimizer = last_epoch + 1, optimizer
        for group in optimizer.param_groups:  # undo the first steps that the schedules took when they were made
            set_rate(group, copied(group["initial_lr"]))
        for scheduler in self._schedulers:
            scheduler.last_epoch -= 1
        self._schedulers[0]._initial_step()
        self._last_lr = self._schedulers[0].get_last_lr()

    def step(self) -> None:  # type: ignore[override]
        """Go on by one epoch."""
        self.last_epoch += 1
        i = bisect_right(self._milestones, self.last_epoch)
        scheduler = self._schedulers[i]
        if i > 0 and self._milestones[i - 1] == self.last_epoch:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                scheduler.step(0)
        else:
            scheduler.step()
        self._last_lr = scheduler.get_last_lr()

    def state_dict(self) -> dict[str, Any]:
        """Return the state of every schedule."""
        return _nested_state(self)

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over what `state_dict` gave."""
        _load_nested(self, state_dict)


class ChainedScheduler(LRScheduler):
    """Several schedules that all step at once.

    >>> optimizer = torch.optim.SGD([torch.zeros(1)], lr=1.0)
    >>> s = torch.optim.lr_scheduler.ChainedScheduler([torch.optim.lr_scheduler.ConstantLR(optimizer, 0.5)])
    >>> s.get_last_lr()
    [0.5]
    """

    optimizer: Optimizer

    def __init__(self, schedulers: Sequence[LRScheduler], optimizer: Optimizer | None = None) -> None:
        if len(schedulers) < 1:
            raise ValueError(f"{type(self).__name__} expects at least one scheduler to be chained, but got no scheduler.")
        optimizer = optimizer or schedulers[0].optimizer
        _check_same(optimizer, schedulers, type(self).__name__)
        self._schedulers, self.optimizer = list(schedulers), optimizer
        self._last_lr = self._rates()

    def step(self) -> None:  # type: ignore[override]
        """Step every schedule in turn."""
        for scheduler in self._schedulers:
            scheduler.step()
        self._last_lr = [copied(lr) for lr in self._rates()]

    def state_dict(self) -> dict[str, Any]:
        """Return the state of every schedule."""
        return _nested_state(self)

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over what `state_dict` gave."""
        _load_nested(self, state_dict)


def _check_same(optimizer: Optimizer, schedulers: Sequence[Any], name: str) -> None:
    if len(schedulers) < 1:
        raise ValueError(f"{name} expects at least one scheduler, but got no scheduler.")
    for i, s in enumerate(schedulers):
        if not hasattr(s, "optimizer"):
            raise TypeError(f"{name} at index {i} should have `optimizer` as its attribute.")
        if isinstance(s, ReduceLROnPlateau):
            raise ValueError(
                f"{name} does not support `ReduceLROnPlateau` scheduler as it requires additional kwargs to be specified when calling "
                f"`step`, but got one at index {i} in the given schedulers sequence."
            )
        if s.optimizer is not optimizer:
            raise ValueError(
                f"{name} expects all schedulers to belong to the same optimizer, but got scheduler at index {i} with another."
            )


def _nested_state(self: Any) -> dict[str, Any]:
    out = {k: v for k, v in self.__dict__.items() if k not in ("optimizer", "_schedulers")}
    out["_schedulers"] = [s.state_dict() for s in self._schedulers]
    return out


def _load_nested(self: Any, state_dict: dict[str, Any]) -> None:
    given = dict(state_dict)
    inner = given.pop("_schedulers")
    self.__dict__.update(given)
    for s, values in zip(self._schedulers, inner, strict=True):
        s.load_state_dict(values)
