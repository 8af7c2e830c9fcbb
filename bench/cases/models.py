"""Whole training steps: forward, backward, update. Every parameter starts from the same numbers in every library."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np

from bench.case import Case, Program
from bench.cases import functional
from bench.cases.functional import cross_entropy, fill, initial

CASES: list[Case] = []


def add(name: str, group: str, build: Callable[[Any], Program], **more: Any) -> None:
    CASES.append(Case(name, "models", group, build, compiled=True, tolerance=more.pop("tolerance", 2e-3), **more))


def training(lib: Any, modules: Any, loss: Callable[[], Any], optimizer: Any) -> Program:
    """One step of ``optimizer`` on ``loss()``; gradients of the modules' parameters are compared."""
    fill(lib, modules)

    def step() -> Any:
        optimizer.zero_grad()
        value = loss()
        value.backward()
        optimizer.step()
        return value

    return Program(step, lambda: [p.grad for p in modules.parameters()])


def data(seed: int, *shape: int) -> np.ndarray:
    return np.random.default_rng(1000 + seed).standard_normal(shape).astype(np.float32)


def labels(seed: int, classes: int, *shape: int) -> np.ndarray:
    return np.random.default_rng(2000 + seed).integers(0, classes, shape)


# --------------------------------------------------------------------------------------------------------- MLPs


def mlp(sizes: tuple[int, ...], batch: int, activation: str, lr: float) -> tuple[Callable, dict[str, Callable[[], Program]]]:
    """(for PyTorch's API, for the others): layers of ``sizes``, cross entropy, SGD."""
    x, y = data(0, batch, sizes[0]), labels(0, sizes[-1], batch)

    def build(lib: Any) -> Program:
        nn = lib.nn
        layers: list[Any] = []
        for a, b in pairwise(sizes):
            layers += [nn.Linear(a, b), nn.Tanh() if activation == "tanh" else nn.ReLU()]
        model = nn.Sequential(*layers[:-1])
        given, target, loss_of = lib.from_numpy(x), lib.from_numpy(y), nn.CrossEntropyLoss()
        return training(lib, model, lambda: loss_of(model(given), target), lib.optim.SGD(model.parameters(), lr=lr))

    def loss(np: Any, parameters: list, x: Any) -> Any:
        names = functional.Named(np)
        for i in range(0, len(parameters), 2):
            x = x @ parameters[i].T + parameters[i + 1]
            if i + 2 < len(parameters):
                x = getattr(names, activation)(x)
        return cross_entropy(np, x, y)

    shapes = [s for a, b in pairwise(sizes) for s in ((b, a), (b,))]
    others = functional.training(loss, initial(shapes), [x], lr)
    if activation == "tanh" and len(sizes) == 3:
        others["NumPy"] = lambda: mlp_by_hand(initial(shapes), x, y, lr)
    return build, others


def mlp_by_hand(parameters: list[np.ndarray], x: np.ndarray, y: np.ndarray, lr: float) -> Program:
    """Two layers with tanh, their gradients written out."""
    w1, b1, w2, b2 = (p.copy() for p in parameters)
    rows = np.arange(len(y))
    latest: list[np.ndarray] = []

    def step() -> Any:
        h = np.tanh(x @ w1.T + b1)
        z = h @ w2.T + b2
        e = np.exp(z - z.max(1, keepdims=True))
        total = e.sum(1, keepdims=True)
        p = e / total
        loss = -np.log(p[rows, y]).mean()
        p[rows, y] -= 1
        p /= np.float32(len(y))
        back = (p @ w2) * (1 - h * h)
        latest[:] = [back.T @ x, back.sum(0), p.T @ h, p.sum(0)]
        for parameter, gradient in zip((w1, b1, w2, b2), latest, strict=True):
            parameter -= np.float32(lr) * gradient
        return loss

    return Program(step, lambda: latest)


for _sizes, _batch, _activation, _bounds in (
    ((8, 16, 2), 4, "tanh", {"PyTorch": 0.05, "JAX": 0.2}),
    ((64, 64, 64, 10), 32, "relu", {"PyTorch": 0.25, "JAX": 0.8}),
    ((784, 128, 10), 64, "relu", {"PyTorch": 0.7}),
):
    _build, _others = mlp(_sizes, _batch, _activation, 1e-3)
    add(f"MLP {'-'.join(map(str, _sizes))}, batch {_batch}, SGD", "MLP", _build, others=_others, bounds=_bounds)

# ------------------------------------------------------------------------------------------------ convolutional


def two_branch(lib: Any) -> Program:
    """The network of examples/two_branch_classifier.py, both losses at once, Adam."""
    nn = lib.nn

    class TwoBranches(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.trunk = nn.Sequential(
                nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
                nn.Conv2d(32, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
            )  # fmt: skip
            self.heads = nn.ModuleList(
                nn.Sequential(nn.Linear(128, 64), nn.ReLU(), nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 1)) for _ in range(2)
            )

        def forward(self, x: Any) -> list:
            z = self.trunk(x)
            return [head(z) for head in self.heads]

    model = TwoBranches()
    x = lib.from_numpy(np.abs(data(0, 64, 1, 8, 8)))
    targets = [lib.from_numpy(labels(i, 2, 64, 1).astype(np.float32)) for i in range(2)]
    loss_of = nn.BCEWithLogitsLoss()

    def loss() -> Any:
        even, big = model(x)
        return loss_of(even, targets[0]) + loss_of(big, targets[1])

    return training(lib, model, loss, lib.optim.Adam(model.parameters(), lr=1e-4))


def conv_net(lib: Any) -> Program:
    """Conv, batch norm, ReLU, pool, twice; batch 32 of 3×32×32, SGD with momentum."""
    nn = lib.nn
    model = nn.Sequential(
        nn.Conv2d(3, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(32 * 64, 10),
    )  # fmt: skip
    x, y, loss_of = lib.from_numpy(data(0, 32, 3, 32, 32)), lib.from_numpy(labels(0, 10, 32)), nn.CrossEntropyLoss()
    return training(lib, model, lambda: loss_of(model(x), y), lib.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9))


def residual_block(lib: Any) -> Program:
    """A basic block of a ResNet: 64 channels of 28×28, batch 8."""
    nn = lib.nn

    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second = (nn.Conv2d(64, 64, 3, padding=1, bias=False) for _ in range(2))
            self.norms = nn.ModuleList([nn.BatchNorm2d(64), nn.BatchNorm2d(64)])

        def forward(self, x: Any) -> Any:
            y = lib.relu(self.norms[0](self.first(x)))
            return lib.relu(x + self.norms[1](self.second(y)))

    model = Block()
    x = lib.from_numpy(data(0, 8, 64, 28, 28))
    return training(lib, model, lambda: (model(x) ** 2).mean(), lib.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9))


add("two-branch net, batch 64, Adam", "convolutional", two_branch, bounds={"PyTorch": 0.7}, threaded=True)
add("conv-BN-ReLU-pool net, batch 32", "convolutional", conv_net, threaded=True)
add("ResNet block, 8×64×28×28", "convolutional", residual_block, quick=False, smallest=False, threaded=True)

# --------------------------------------------------------------------------------------------------- recurrent


def lstm(lib: Any) -> Program:
    """nn.LSTM of 64 units over 32 steps, batch 16, and a linear layer on its last output."""
    nn = lib.nn

    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.lstm = nn.LSTM(32, 64, batch_first=True)
            self.head = nn.Linear(64, 10)

        def forward(self, x: Any) -> Any:
            return self.head(self.lstm(x)[0][:, -1])

    model = Net()
    x, y, loss_of = lib.from_numpy(data(0, 16, 32, 32)), lib.from_numpy(labels(0, 10, 16)), nn.CrossEntropyLoss()
    return training(lib, model, lambda: loss_of(model(x), y), lib.optim.SGD(model.parameters(), lr=1e-2))


STEPS, UNITS, CELL_BATCH = 50, 16, 8
_sequence, _goal = data(0, STEPS, CELL_BATCH, 4), data(1, CELL_BATCH, UNITS)
_cell_shapes = [(UNITS, 4), (UNITS,), (UNITS, UNITS), (UNITS,)]


def cell(lib: Any) -> Program:
    """h = tanh(Wx + Uh), 50 times in a Python loop."""
    nn = lib.nn

    class Cell(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.read, self.keep = nn.Linear(4, UNITS), nn.Linear(UNITS, UNITS)

        def forward(self, x: Any) -> Any:
            h = lib.zeros(CELL_BATCH, UNITS)
            for t in range(STEPS):
                h = lib.tanh(self.read(x[t]) + self.keep(h))
            return h

    model = Cell()
    x, y = lib.from_numpy(_sequence), lib.from_numpy(_goal)
    return training(lib, model, lambda: ((model(x) - y) ** 2).mean(), lib.optim.SGD(model.parameters(), lr=1e-2))


def cell_loss(np_: Any, parameters: list, x: Any) -> Any:
    w, b, u, c = parameters
    h = np.zeros((CELL_BATCH, UNITS), np.float32)
    for t in range(STEPS):
        h = np_.tanh(x[t] @ w.T + b + (h @ u.T + c))
    return np_.mean((h - _goal) ** 2)


add("LSTM 32→64, 32 steps, batch 16", "recurrent", lstm)
add("recurrent cell by hand, 50 steps", "recurrent", cell, bounds={"PyTorch": 0.1, "JAX": 0.7},
    others=functional.training(cell_loss, initial(_cell_shapes), [_sequence], 1e-2))  # fmt: skip

# -------------------------------------------------------------------------------------------------- transformer


def transformer(lib: Any, width: int = 128, layers: int = 4, heads: int = 4, batch: int = 8, length: int = 64) -> Program:
    """A language model over 65 characters: pre-norm blocks, causal attention, GELU, AdamW."""
    nn, f, vocabulary = lib.nn, lib.nn.functional, 65

    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
            self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

        def forward(self, x: Any) -> Any:
            b, t, c = x.shape
            q, k, v = (
                part.view(b, t, heads, c // heads).transpose(1, 2) for part in self.qkv(self.norm1(x)).split(width, dim=2)
            )
            y = f.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.out(y.transpose(1, 2).reshape(b, t, c))
            return x + self.down(f.gelu(self.up(self.norm2(x))))

    class Characters(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.token, self.place = nn.Embedding(vocabulary, width), nn.Embedding(length, width)
            self.blocks = nn.Sequential(*(Block() for _ in range(layers)))
            self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, vocabulary)

        def forward(self, x: Any) -> Any:
            y = self.token(x) + self.place(lib.arange(x.shape[1]))
            return self.head(self.norm(self.blocks(y)))

    model = Characters()
    x, y = (lib.from_numpy(labels(i, vocabulary, batch, length)) for i in range(2))
    optimizer = lib.optim.AdamW(model.parameters(), lr=3e-4)
    return training(lib, model, lambda: f.cross_entropy(model(x).view(-1, vocabulary), y.view(-1)), optimizer)


add("character transformer 4×128, batch 8×64, AdamW", "transformer", transformer, bounds={"PyTorch": 0.7}, quick=False,
    smallest=False, threaded=True, tolerance=5e-3)  # fmt: skip
add("character transformer 1×32, batch 2×16, AdamW", "transformer", lambda lib: transformer(lib, 32, 1, 2, 2, 16), tolerance=5e-3)

# ---------------------------------------------------------------------------------------------------------- VAE


def vae(lib: Any) -> Program:
    """A variational autoencoder 784-256-16 on a batch of 64; the noise is given, so that libraries agree."""
    nn, f = lib.nn, lib.nn.functional

    class Vae(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.hidden, self.mean, self.spread = nn.Linear(784, 256), nn.Linear(256, 16), nn.Linear(256, 16)
            self.decode = nn.Sequential(nn.Linear(16, 256), nn.ReLU(), nn.Linear(256, 784))

        def forward(self, x: Any, noise: Any) -> Any:
            h = lib.relu(self.hidden(x))
            mean, log_var = self.mean(h), self.spread(h)
            y = self.decode(mean + noise * lib.exp(0.5 * log_var))
            rebuilt = f.binary_cross_entropy_with_logits(y, x, reduction="sum")
            return (rebuilt - 0.5 * lib.sum(1 + log_var - mean.pow(2) - log_var.exp())) / x.shape[0]

    model = Vae()
    x = lib.from_numpy((data(0, 64, 784) > 0).astype(np.float32))
    noise = lib.from_numpy(data(1, 64, 16))
    return training(lib, model, lambda: model(x, noise), lib.optim.Adam(model.parameters(), lr=1e-3))


add("VAE 784-256-16, batch 64, Adam", "VAE", vae)

# ------------------------------------------------------------------------------------------- second derivatives


def hessian_vector(lib: Any) -> Program:
    """A Hessian-vector product of an MLP's loss: grad of (gradient · vector)."""
    nn = lib.nn
    model = nn.Sequential(nn.Linear(16, 32), nn.Tanh(), nn.Linear(32, 32), nn.Tanh(), nn.Linear(32, 1))
    fill(lib, model)
    parameters = list(model.parameters())
    x, y = lib.from_numpy(data(0, 64, 16)), lib.from_numpy(data(1, 64, 1))
    direction = [lib.from_numpy(data(2 + i, *p.shape)) for i, p in enumerate(parameters)]

    def step() -> Any:
        loss = ((model(x) - y) ** 2).mean()
        gradients = lib.autograd.grad(loss, parameters, create_graph=True)
        product = sum((g * v).sum() for g, v in zip(gradients, direction, strict=True))
        return loss, lib.autograd.grad(product, parameters)

    return Program(step)


def physics(lib: Any) -> Program:
    """A physics-informed net for the heat equation: ∂u/∂t = a ∂²u/∂x² at 256 points, in the loss, Adam."""
    nn = lib.nn
    model = nn.Sequential(nn.Linear(2, 32), nn.Tanh(), nn.Linear(32, 32), nn.Tanh(), nn.Linear(32, 1))
    rng = np.random.default_rng(5)
    x, t = (lib.from_numpy(rng.random((256, 1), dtype=np.float32)).requires_grad_() for _ in range(2))
    start = lib.from_numpy(rng.random((64, 1), dtype=np.float32))

    def u(x: Any, t: Any) -> Any:
        return x * (1 - x) * model(lib.cat([2 * x - 1, 2 * t - 1], dim=1))

    def loss() -> Any:
        du_dx, du_dt = lib.autograd.grad(u(x, t).sum(), (x, t), create_graph=True)
        (d2u_dx2,) = lib.autograd.grad(du_dx.sum(), x, create_graph=True)
        equation = ((du_dt - 0.2 * d2u_dx2) ** 2).mean()
        return equation + ((u(start, lib.zeros_like(start)) - lib.sin(math.pi * start)) ** 2).mean()

    return training(lib, model, loss, lib.optim.Adam(model.parameters(), lr=1e-3))


add("Hessian-vector product, MLP 16-32-32-1", "second derivatives", hessian_vector)
add("physics-informed net, 256 points, Adam", "second derivatives", physics)
