"""Learning-rate schedules under PyTorch's name for their module.

Source: https://docs.pytorch.org/docs/stable/optim.html#how-to-adjust-learning-rate
"""

from .composed import ChainedScheduler, SequentialLR
from .cycles import CyclicLR, OneCycleLR
from .plateau import ReduceLROnPlateau
from .schedules import EPOCH_DEPRECATION_WARNING as EPOCH_DEPRECATION_WARNING
from .schedules import (
    ConstantLR,
    CosineAnnealingLR,
    CosineAnnealingWarmRestarts,
    ExponentialLR,
    LambdaLR,
    LinearLR,
    LRScheduler,
    MultiplicativeLR,
    MultiStepLR,
    PolynomialLR,
    StepLR,
    _LRScheduler,
)

__all__ = [
    "LRScheduler", "LambdaLR", "MultiplicativeLR", "StepLR", "MultiStepLR", "ConstantLR", "LinearLR", "ExponentialLR", "SequentialLR",
    "CosineAnnealingLR", "ChainedScheduler", "ReduceLROnPlateau", "CyclicLR", "CosineAnnealingWarmRestarts", "OneCycleLR", "PolynomialLR",
    "_LRScheduler",
]  # fmt: skip
