"""Optimizers, each update of a parameter one kernel; learning-rate schedules.

Source: https://docs.pytorch.org/docs/stable/optim.html
"""

from typing import Any as _Any

from . import lr_scheduler
from .adam import Adam, Adamax, AdamW, NAdam, RAdam
from .adaptive import ASGD, Adadelta, Adagrad, RMSprop, Rprop
from .lbfgs import LBFGS
from .matrices import Adafactor, Muon
from .optimizer import Optimizer
from .sgd import SGD

__all__ = [
    "ASGD", "Adadelta", "Adafactor", "Adagrad", "Adam", "AdamW", "Adamax", "LBFGS", "Muon", "NAdam", "Optimizer", "RAdam", "RMSprop",
    "Rprop", "SGD", "SparseAdam", "lr_scheduler", "swa_utils",
]  # fmt: skip


class SparseAdam(Optimizer):
    """Refused: gradients are dense here. Use `Adam`."""

    def __init__(self, params: _Any, *args: _Any, **kwargs: _Any) -> None:
        raise NotImplementedError("SparseAdam does not support dense gradients, please consider Adam instead: there are no sparse tensors")


def __getattr__(name: str) -> _Any:
    if name == "swa_utils":
        from importlib import import_module

        return import_module(f"{__name__}.swa_utils")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
