"""What the workloads are made of: data that is the same for every library, and the usual step of training."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

Step = Callable[[], Any]


def normal(lib: Any, *shape: int, seed: int = 0) -> Any:
    """Normal numbers in float32."""
    return lib.from_numpy(np.random.default_rng(seed).normal(size=shape).astype(np.float32))


def integers(lib: Any, below: int, *shape: int, seed: int = 0) -> Any:
    """Integers from 0 up to ``below``."""
    return lib.from_numpy(np.random.default_rng(seed).integers(0, below, size=shape))


def training(loss: Callable[[], Any], optimizer: Any) -> Step:
    """The step that brings a loss down."""

    def step() -> Any:
        optimizer.zero_grad()
        value = loss()
        value.backward()
        optimizer.step()
        return value.detach()

    return step
