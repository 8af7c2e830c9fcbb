"""Programs as PyTorch users write them give PyTorch's losses, with ``import torch`` finding this library."""

import multiprocessing
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor

import numpy as np
import pytest

from . import programs

pytest.importorskip("torch")
pytestmark = pytest.mark.filterwarnings("ignore")  # of PyTorch about itself


@pytest.fixture(scope="module")
def ours() -> Iterator[ProcessPoolExecutor]:
    """A process in which ``torch`` is this library."""
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn"), initializer=programs.replace_torch) as pool:
        yield pool


@pytest.mark.parametrize("name", programs.NAMES)
def test_losses_are_those_of_pytorch(name: str, ours: ProcessPoolExecutor) -> None:
    expected, states = programs.run(name)
    losses, _ = ours.submit(programs.run, name, states).result(timeout=300)
    assert len(expected) >= 5
    np.testing.assert_allclose(losses, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", programs.NAMES)
def test_runs_with_its_own_random_draws(name: str, ours: ProcessPoolExecutor) -> None:
    losses, _ = ours.submit(programs.run, name, None, True).result(timeout=300)
    assert np.isfinite(losses).all()
