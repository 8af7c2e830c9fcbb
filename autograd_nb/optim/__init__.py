"""Optimizers, each update of a parameter one kernel; learning-rate schedules.

Source: https://docs.pytorch.org/docs/stable/optim.html
"""

import typing as _typing
from typing import Any as _Any

from . import adam, adaptive, lr_scheduler as lr_scheduler, matrices, sgd
from .adam import *
from .adaptive import *
from .lbfgs import LBFGS as LBFGS
from .matrices import *
from .optimizer import Optimizer as Optimizer
from .sgd import *
from .sparse import SparseAdam as SparseAdam

if not _typing.TYPE_CHECKING:  # a checker goes by the imports
    __all__ = ["LBFGS", "Optimizer", "SparseAdam", "lr_scheduler", "swa_utils"]
    __all__ += adam.__all__
    __all__ += adaptive.__all__
    __all__ += matrices.__all__
    __all__ += sgd.__all__


def __getattr__(name: str) -> _Any:
    if name == "swa_utils":
        from importlib import import_module

        return import_module(f"{__name__}.swa_utils")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
