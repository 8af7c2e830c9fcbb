"""Programs as PyTorch users write them, each run with PyTorch and with this library in its place.

A program is a module that imports ``torch`` and has ``run(same)``, which trains for a few steps and returns its losses.
``same`` is what makes two runs comparable: see `Same`. Nothing here imports ``torch`` or this library at the top, so that a
process can choose which of the two the name means.
"""

from __future__ import annotations

import importlib
import pkgutil
from typing import Any

import numpy as np

NAMES = [module.name for module in pkgutil.iter_modules(__path__)]


class Same:
    """Makes runs of a program begin with the same weights and see the same draws.

    The first run leaves the initial state of its models in ``states``; a run that is given states loads them instead. With
    ``random`` programs draw from the library's own generator (dropout, sampling, noise), and losses differ.
    """

    def __init__(self, states: list[dict[str, np.ndarray]] | None = None, random: bool = False) -> None:
        self.states: list[dict[str, np.ndarray]] = []
        self.given = list(states) if states is not None else None
        self.random = random
        self.rng = np.random.RandomState(0)

    def start(self, *models: Any) -> Any:
        """The models (one: itself), in the state that all runs share."""
        for model in models:
            state = model.state_dict()
            if self.given is not None:
                given = self.given.pop(0)
                assert list(given) == list(state), f"names of the state: {list(state)} instead of {list(given)}"
                # in their own precision, through the memory that both share
                for key, value in given.items():
                    state[key].numpy()[...] = value
            self.states.append({key: value.detach().numpy().copy() for key, value in state.items()})
        return models[0] if len(models) == 1 else models

    def dropout(self, p: float) -> float:
        """The rate of a dropout: zero in runs that are compared."""
        return p if self.random else 0.0

    def normal(self, like: Any) -> Any:
        """Standard normal draws of the shape and dtype of ``like``."""
        if self.random:
            return like.detach().clone().normal_()
        return like.new_tensor(self.rng.standard_normal(tuple(like.shape)))

    def choice(self, distribution: Any) -> Any:
        """A draw from a categorical distribution without batch."""
        if self.random:
            return distribution.sample()
        cumulative = distribution.probs.detach().cumsum(-1)
        return (cumulative < self.rng.uniform()).sum().clamp(max=cumulative.numel() - 1)


def run(name: str, states: list[dict[str, np.ndarray]] | None = None, random: bool = False) -> tuple[list[float], Any]:
    """The losses of a program, and the states that its models began with."""
    same = Same(states, random)
    importlib.import_module("torch").manual_seed(0)
    losses = importlib.import_module(f"{__name__}.{name}").run(same)
    return [float(value) for value in losses], same.states


def replace_torch() -> None:
    """In this process, ``import torch`` gives this library."""
    importlib.import_module("autograd_nb").as_torch()
