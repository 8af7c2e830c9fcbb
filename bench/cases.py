"""The programs that are timed: each written once, run by this library and by PyTorch on the same numbers.

A case takes the library (``autograd_nb`` or ``torch``) and returns a function that runs one round and gives back an array to
compare. `ratios.py` prints how the two compare; `test_*.py` gives the same cases to pytest-benchmark.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

Case = Callable[[Any], Callable[[], np.ndarray]]


def _leaf(lib: Any, values: np.ndarray) -> Any:
    return lib.from_numpy(values.copy()).requires_grad_()


def chain_20_ops_8_numbers(lib: Any) -> Callable[[], np.ndarray]:
    """20 pointwise ops on 8 numbers, forward and backward: the cost of recording and of the engine."""
    rng = np.random.default_rng(0)
    x, w = (_leaf(lib, rng.uniform(0.5, 1.5, 8).astype(np.float32)) for _ in range(2))
    g = lib.from_numpy(np.ones(8, np.float32))

    def run() -> np.ndarray:
        x.grad = w.grad = None
        y = x
        for _ in range(5):
            y = lib.tanh(y)
            y = y * w
            y = lib.sigmoid(y)
            y = y + 0.5
        y.backward(g)
        return x.grad.numpy()

    return run


def chain_20_tanh_8_numbers(lib: Any) -> Callable[[], np.ndarray]:
    """20 times tanh on 8 numbers, forward and backward."""
    x = _leaf(lib, np.linspace(-1, 1, 8, dtype=np.float32))
    g = lib.from_numpy(np.ones(8, np.float32))

    def run() -> np.ndarray:
        x.grad = None
        y = x
        for _ in range(20):
            y = lib.tanh(y)
        y.backward(g)
        return x.grad.numpy()

    return run


def chain_20_ops_no_grad(lib: Any) -> Callable[[], np.ndarray]:
    """The same 20 ops as the first chain, forward only and not recorded."""
    rng = np.random.default_rng(0)
    x, w = (lib.from_numpy(rng.uniform(0.5, 1.5, 8).astype(np.float32)) for _ in range(2))

    def run() -> np.ndarray:
        with lib.no_grad():
            y = x
            for _ in range(5):
                y = lib.tanh(y)
                y = y * w
                y = lib.sigmoid(y)
                y = y + 0.5
        return y.numpy()

    return run


def fused_formula_1m(lib: Any) -> Callable[[], np.ndarray]:
    """sigmoid(a)·tanh(a) + exp(−a²) on 1M float32, forward and backward."""
    a = _leaf(lib, np.random.default_rng(0).standard_normal(1 << 20).astype(np.float32))
    g = lib.from_numpy(np.ones(1 << 20, np.float32))

    def run() -> np.ndarray:
        a.grad = None
        (lib.sigmoid(a) * lib.tanh(a) + lib.exp(-(a * a))).backward(g)
        return a.grad.numpy()

    return run


def mlp_8_16_2_step(lib: Any) -> Callable[[], np.ndarray]:
    """One training step of an 8-16-2 MLP on a batch of 4 with SGD."""
    rng = np.random.default_rng(0)
    nn = lib.nn
    model = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 2))
    with lib.no_grad():
        for p in model.parameters():
            p.copy_(lib.from_numpy(rng.normal(0, 0.3, tuple(p.shape)).astype(np.float32)))
    x = lib.from_numpy(rng.standard_normal((4, 8)).astype(np.float32))
    y = lib.from_numpy(rng.integers(0, 2, 4))
    loss_of = nn.CrossEntropyLoss()
    optimizer = lib.optim.SGD(model.parameters(), lr=1e-3)

    def run() -> np.ndarray:
        optimizer.zero_grad()
        loss = loss_of(model(x), y)
        loss.backward()
        optimizer.step()
        return loss.detach().numpy()

    return run


def two_branch_step(lib: Any) -> Callable[[], np.ndarray]:
    """One training step of the two-branch classifier's net: conv trunk, two heads, batch 64 of 8×8 images, Adam."""
    rng = np.random.default_rng(0)
    nn = lib.nn

    class TwoBranch(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.trunk = nn.Sequential(
                nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
                nn.Conv2d(32, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
            )  # fmt: skip
            self.heads = nn.ModuleList(
                nn.Sequential(nn.Linear(128, 64), nn.ReLU(), nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 2)) for _ in range(2)
            )

        def forward(self, x: Any) -> list:
            z = self.trunk(x)
            return [head(z) for head in self.heads]

    model = TwoBranch()
    with lib.no_grad():
        for p in model.parameters():
            scale = 1 / np.sqrt(max(int(np.prod(tuple(p.shape)[1:])), 1))
            p.copy_(lib.from_numpy(rng.normal(0, scale, tuple(p.shape)).astype(np.float32)))
    x = lib.from_numpy(rng.random((64, 1, 8, 8)).astype(np.float32))
    targets = [lib.from_numpy(rng.integers(0, 2, 64)) for _ in range(2)]
    loss_of = nn.CrossEntropyLoss()
    optimizer = lib.optim.Adam(model.parameters(), lr=1e-4)

    def run() -> np.ndarray:
        optimizer.zero_grad()
        a, b = model(x)
        loss = loss_of(a, targets[0]) + loss_of(b, targets[1])
        loss.backward()
        optimizer.step()
        return loss.detach().numpy()

    return run


#: (case, the ratio to PyTorch that it must not exceed, or None)
OVERHEAD: list[tuple[Case, float | None]] = [
    (chain_20_ops_8_numbers, 0.6), (chain_20_tanh_8_numbers, 0.6), (chain_20_ops_no_grad, None), (mlp_8_16_2_step, None),
]  # fmt: skip
KERNELS: list[tuple[Case, float | None]] = [(fused_formula_1m, 0.6)]
MODELS: list[tuple[Case, float | None]] = [(two_branch_step, None)]
