"""Averages of a model's weights along its training: stochastic weight averaging, exponential moving averages.

Source: https://docs.pytorch.org/docs/stable/optim.html#weight-averaging-swa-and-ema
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from copy import deepcopy
from itertools import chain
from typing import Any

from .. import dtypes
from ..graph.modes import no_grad
from ..nn.modules.module import Module
from ..nn.modules.normalization import _BatchNorm
from ..ops.core.numbers import scalar_tensor
from ..tensor import Tensor
from .cycles import _for_groups
from .optimizer import Optimizer
from .schedules import LRScheduler

__all__ = ["SWALR", "AveragedModel", "get_ema_avg_fn", "get_ema_multi_avg_fn", "get_swa_avg_fn", "get_swa_multi_avg_fn", "update_bn"]


def _check_decay(decay: float) -> None:
    if not 0.0 <= decay <= 1.0:
        raise ValueError(f"Invalid decay value {decay} provided. Please provide a value in [0,1] range.")


def get_ema_multi_avg_fn(decay: float = 0.999) -> Callable[..., Any]:
    """Return a function for an exponential moving average, in place on lists of parameters: average = decay · average + (1 - decay) · current."""
    _check_decay(decay)

    @no_grad()
    def ema_update(averaged: Any, current: Any, num_averaged: Any) -> None:
        for a, c in zip(averaged, current, strict=True):
            if a.dtype.is_floating_point or a.dtype.is_complex:
                a.lerp_(c, 1 - decay)
            else:
                a.copy_(a * decay + c * (1 - decay))

    return ema_update


def get_swa_multi_avg_fn() -> Callable[..., Any]:
    """Return a function for the plain average, in place on lists of parameters: average += (current - average) / (n + 1)."""

    @no_grad()
    def swa_update(averaged: Any, current: Any, num_averaged: Any) -> None:
        part = 1 / (int(num_averaged) + 1)
        for a, c in zip(averaged, current, strict=True):
            if a.dtype.is_floating_point or a.dtype.is_complex:
                a.lerp_(c, part)
            else:
                a.copy_(a + (c - a) * part)

    return swa_update


def get_ema_avg_fn(decay: float = 0.999) -> Callable[..., Any]:
    """Return a function for an exponential moving average of one parameter: decay · average + (1 - decay) · current."""
    _check_decay(decay)

    @no_grad()
    def ema_update(averaged: Tensor, current: Tensor, num_averaged: Any) -> Tensor:
        return decay * averaged + (1 - decay) * current

    return ema_update


def get_swa_avg_fn() -> Callable[..., Any]:
    """Return a function for the plain average of one parameter: average + (current - average) / (n + 1)."""

    @no_grad()
    def swa_update(averaged: Tensor, current: Tensor, num_averaged: Any) -> Tensor:
        return averaged + (current - averaged) / (num_averaged + 1)

    return swa_update


class AveragedModel(Module):
    """A copy of ``model`` whose parameters average the model's as `update_parameters` sees them; calls go to the copy.

    avg_fn(average, current, n) gives a new average of one parameter, multi_avg_fn changes lists of them in place; the plain average
    if neither is given. use_buffers: average the buffers too; else they are copied.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.optim.swa_utils.AveragedModel.html
    """

    module: Module

    n_averaged: Tensor

    def __init__(
        self, model: Module, device: Any = None, avg_fn: Callable[..., Any] | None = None, multi_avg_fn: Callable[..., Any] | None = None,
        use_buffers: bool = False,
    ) -> None:  # fmt: skip
        super().__init__()
        if avg_fn is not None and multi_avg_fn is not None:
            raise AssertionError("Only one of avg_fn and multi_avg_fn should be provided")
        self.module = deepcopy(model)
        if device is not None:
            self.module = self.module.to(device)
        self.register_buffer("n_averaged", scalar_tensor(0, dtypes.int64))
        self.avg_fn = avg_fn
        self.multi_avg_fn = multi_avg_fn
        self.use_buffers = use_buffers

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Return what the averaged copy makes of the arguments."""
        return self.module(*args, **kwargs)

    def _averaged(self, model: Module) -> list[Tensor]:
        parts = chain(model.parameters(), model.buffers()) if self.use_buffers else model.parameters()
        return [t.detach() for t in parts]

    @no_grad()
    def update_parameters(self, model: Module) -> None:
        """Take the present parameters of ``model`` into the average; the first ones are copied."""
        averaged, current = self._averaged(self.module), self._averaged(model)
        if int(self.n_averaged) == 0:
            for a, c in zip(averaged, current, strict=True):
                a.copy_(c)
        elif self.avg_fn is not None:
            for a, c in zip(averaged, current, strict=True):
                a.copy_(self.avg_fn(a, c, self.n_averaged))
        else:
            average = self.multi_avg_fn or get_swa_multi_avg_fn()
            for d in dict.fromkeys(a.dtype for a in averaged):  # lists of one dtype, as such functions expect
                which = [i for i, a in enumerate(averaged) if a.dtype is d]
                average([averaged[i] for i in which], [current[i] for i in which], self.n_averaged)
        if not self.use_buffers:
            for a, c in zip(self.module.buffers(), model.buffers(), strict=True):
                a.detach().copy_(c.detach())
        self.n_averaged += 1


@no_grad()
def update_bn(loader: Iterable[Any], model: Module, device: Any = None) -> None:
    """Compute the running statistics of batch-norm layers anew, as averages over the batches of ``loader``.

    A batch that is a list or tuple stands for its first element.
    """
    momenta = {}
    for module in model.modules():
        if isinstance(module, _BatchNorm):
            module.reset_running_stats()
            momenta[module] = module.momentum
    if not momenta:
        return
    training = model.training
    model.train()
    for module in momenta:
        module.momentum = None
    for batch in loader:
        x = batch[0] if isinstance(batch, (list, tuple)) else batch
        model(x if device is None else x.to(device))
    for module, momentum in momenta.items():
        module.momentum = momentum
    model.train(training)


class SWALR(LRScheduler):
    """The rates go from the present ones to ``swa_lr`` in ``anneal_epochs`` epochs, along a cosine ("cos") or "linear"; constant from there.

    Source: https://docs.pytorch.org/docs/stable/generated/torch.optim.swa_utils.SWALR.html
    """

    def __init__(
        self, optimizer: Optimizer, swa_lr: Any, anneal_epochs: int = 10, anneal_strategy: str = "cos", last_epoch: int = -1
    ) -> None:
        groups = optimizer.param_groups
        for value, group in zip(_for_groups("swa_lr", swa_lr, groups), groups, strict=True):
            group["swa_lr"] = value
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(f"anneal_strategy must be one of 'cos' or 'linear', instead got {anneal_strategy}")
        if not isinstance(anneal_epochs, int) or anneal_epochs < 0:
            raise ValueError(f"anneal_epochs must be equal or greater than 0, got {anneal_epochs}")
        self._anneal_strategy = anneal_strategy
        self.anneal_epochs = anneal_epochs
        super().__init__(optimizer, last_epoch)

    def anneal_func(self, t: float) -> float:
        """Return how much of the way is done after a part ``t`` of the epochs."""
        return (1 - math.cos(math.pi * t)) / 2 if self._anneal_strategy == "cos" else t

    def get_lr(self) -> list[Any]:
        """Return the rates for this epoch, from those of the last one."""
        step = self._step_count - 1
        if self.anneal_epochs == 0:
            step = max(1, step)
        length = max(1, self.anneal_epochs)
        before = self.anneal_func(max(0, min(1, (step - 1) / length)))
        now = self.anneal_func(max(0, min(1, step / length)))
        out = []
        for group in self.optimizer.param_groups:
            end = group["swa_lr"]
            start = end if before == 1 else (group["lr"] - before * end) / (1 - before)
            out.append(end * now + start * (1 - now))
        return out
