"""Optimizers, each update of a parameter one kernel; learning-rate schedules.

Source: https://docs.pytorch.org/docs/stable/optim.html
"""

from . import lr_scheduler
from .adam import Adam, Adamax, AdamW, NAdam, RAdam
from .adaptive import ASGD, Adadelta, Adagrad, RMSprop, Rprop
from .optimizer import Optimizer
from .sgd import SGD

__all__ = [
    "ASGD", "Adadelta", "Adagrad", "Adam", "AdamW", "Adamax", "NAdam", "Optimizer", "RAdam", "RMSprop", "Rprop", "SGD", "lr_scheduler",
]  # fmt: skip
