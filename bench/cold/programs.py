"""Nine programs as users begin them: data are drawn, modules and an optimizer made, one step trained.

Each is a function of the library, ``torch``, so that PyTorch runs the same; it returns the step and the tensors that the step
reads, parameters among them. The library is all that they import: what a process pays is what such a program pays.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

Made = tuple[Callable[[], Any], list[Any]]

PROGRAMS: dict[str, Callable[[Any], Made]] = {}


def program(name: str) -> Callable[[Callable[[Any], Made]], Callable[[Any], Made]]:
    """Decorator: enter a program under its name."""

    def enter(build: Callable[[Any], Made]) -> Callable[[Any], Made]:
        PROGRAMS[name] = build
        return build

    return enter


def training(optimizer: Any, parameters: Iterable[Any], data: list[Any], loss: Callable[[], Any]) -> Made:
    """The step of an optimizer on ``loss()``."""

    def step() -> Any:
        optimizer.zero_grad()
        value = loss()
        value.backward()
        optimizer.step()
        return value

    return step, [*parameters, *data]


@program("first gradient")
def first_gradient(torch: Any) -> Made:
    """The first lines of a tutorial."""
    x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)

    def step() -> Any:
        x.grad = None
        y = (x * x).sum()
        y.backward()
        return y

    return step, [x]


@program("MLP")
def mlp(torch: Any) -> Made:
    """A classifier of rows, SGD."""
    nn = torch.nn
    model = nn.Sequential(nn.Linear(20, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 5))
    x, y = torch.randn(64, 20), torch.randint(0, 5, (64,))
    loss = nn.CrossEntropyLoss()
    return training(torch.optim.SGD(model.parameters(), lr=0.1), model.parameters(), [x, y], lambda: loss(model(x), y))


@program("CNN")
def cnn(torch: Any) -> Made:
    """A classifier of small images: convolutions, batch norm, pooling, Adam."""
    nn = torch.nn
    model = nn.Sequential(
        nn.Conv2d(1, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(8, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(16 * 7 * 7, 10),
    )  # fmt: skip
    x, y = torch.randn(16, 1, 28, 28), torch.randint(0, 10, (16,))
    loss = nn.CrossEntropyLoss()
    return training(torch.optim.Adam(model.parameters(), lr=1e-3), model.parameters(), [x, y], lambda: loss(model(x), y))


@program("transformer")
def transformer(torch: Any) -> Made:
    """A language model of two pre-norm blocks with causal attention, AdamW, gradients clipped."""
    nn, F = torch.nn, torch.nn.functional
    vocabulary, width, heads, batch, length = 65, 32, 4, 4, 16

    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
            self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

        def forward(self, x: Any) -> Any:
            b, t, c = x.shape
            q, k, v = (p.view(b, t, heads, c // heads).transpose(1, 2) for p in self.qkv(self.norm1(x)).split(c, dim=2))
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.out(y.transpose(1, 2).contiguous().view(b, t, c))
            return x + self.mlp(self.norm2(x))

    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.token, self.place = nn.Embedding(vocabulary, width), nn.Embedding(length, width)
            self.blocks = nn.Sequential(Block(), Block())
            self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, vocabulary, bias=False)

        def forward(self, x: Any) -> Any:
            y = self.token(x) + self.place(torch.arange(x.shape[1]))
            return self.head(self.norm(self.blocks(y)))

    model = Model()
    text = torch.randint(0, vocabulary, (batch, length + 1))
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)

    def step() -> Any:
        logits = model(text[:, :-1])
        loss = F.cross_entropy(logits.view(-1, vocabulary), text[:, 1:].reshape(-1))
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        return loss

    return step, [*model.parameters(), text]


@program("LSTM")
def lstm(torch: Any) -> Made:
    """Sequences classified by the last output of an LSTM, Adam."""
    nn = torch.nn

    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embedding, self.lstm = nn.Embedding(50, 16), nn.LSTM(16, 32, batch_first=True)
            self.head = nn.Linear(32, 2)

        def forward(self, x: Any) -> Any:
            return self.head(self.lstm(self.embedding(x))[0][:, -1])

    model = Net()
    x, y = torch.randint(0, 50, (8, 12)), torch.randint(0, 2, (8,))
    loss = nn.CrossEntropyLoss()
    return training(torch.optim.Adam(model.parameters(), lr=1e-2), model.parameters(), [x, y], lambda: loss(model(x), y))


@program("VAE")
def vae(torch: Any) -> Made:
    """A variational autoencoder; the noise is drawn beforehand, so that libraries can be compared. Adam."""
    nn, F = torch.nn, torch.nn.functional

    class Vae(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.hidden, self.mean, self.spread = nn.Linear(64, 32), nn.Linear(32, 4), nn.Linear(32, 4)
            self.decode = nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 64), nn.Sigmoid())

        def forward(self, x: Any, noise: Any) -> Any:
            h = F.relu(self.hidden(x))
            mean, log_var = self.mean(h), self.spread(h)
            return self.decode(mean + noise * torch.exp(0.5 * log_var)), mean, log_var

    model = Vae()
    x, noise = torch.rand(32, 64), torch.randn(32, 4)

    def loss() -> Any:
        y, mean, log_var = model(x, noise)
        divergence = -0.5 * torch.sum(1 + log_var - mean.pow(2) - log_var.exp())
        return F.binary_cross_entropy(y, x, reduction="sum") + divergence

    return training(torch.optim.Adam(model.parameters(), lr=1e-3), model.parameters(), [x, noise], loss)


@program("Gaussian process")
def gaussian_process(torch: Any) -> Made:
    """The hyperparameters of a Gaussian process by its marginal likelihood, by Cholesky's factor in float64, Adam."""
    x = torch.linspace(0, 1, 40, dtype=torch.float64)
    y = torch.sin(2 * math.pi * x) + 0.1 * torch.randn(40, dtype=torch.float64)
    scale, length, noise = (torch.nn.Parameter(torch.tensor(v, dtype=torch.float64)) for v in (0.0, -1.0, -2.0))

    def loss() -> Any:
        distance = (x.unsqueeze(0) - x.unsqueeze(1)) / length.exp()
        covariance = scale.exp() * torch.exp(-0.5 * distance**2) + noise.exp() * torch.eye(len(x), dtype=torch.float64)
        factor = torch.linalg.cholesky(covariance)
        alpha = torch.cholesky_solve(y.unsqueeze(1), factor)
        return 0.5 * (y @ alpha).sum() + factor.diagonal().log().sum() + 0.5 * len(x) * math.log(2 * math.pi)

    parameters = [scale, length, noise]
    return training(torch.optim.Adam(parameters, lr=0.1), parameters, [x, y], loss)


@program("physics-informed net")
def physics(torch: Any) -> Made:
    """The heat equation, by first and second derivatives of a net in its inputs, Adam."""
    nn, grad = torch.nn, torch.autograd.grad
    model = nn.Sequential(nn.Linear(2, 20), nn.Tanh(), nn.Linear(20, 20), nn.Tanh(), nn.Linear(20, 1))
    x, t = torch.rand(64, 1).requires_grad_(), torch.rand(64, 1).requires_grad_()
    start = torch.linspace(0, 1, 20).unsqueeze(1)

    def u(x: Any, t: Any) -> Any:
        return model(torch.cat([x, t], dim=1))

    def loss() -> Any:
        value = u(x, t)
        du_dx, du_dt = grad(value, (x, t), grad_outputs=torch.ones_like(value), create_graph=True)
        (d2u_dx2,) = grad(du_dx.sum(), x, create_graph=True)
        equation = (du_dt - 0.1 * d2u_dx2).pow(2).mean()
        return equation + (u(start, torch.zeros_like(start)) - torch.sin(math.pi * start)).pow(2).mean()

    return training(torch.optim.Adam(model.parameters(), lr=1e-3), model.parameters(), [x, t, start], loss)


@program("graph attention")
def graph_attention(torch: Any) -> Made:
    """A layer of graph attention over a list of edges, its softmax and sums by index_add, Adam."""
    nn, F = torch.nn, torch.nn.functional
    nodes, edges, features, width, classes = 30, 120, 12, 16, 3

    class Attention(nn.Module):
        def __init__(self, given: int, width: int) -> None:
            super().__init__()
            self.project = nn.Linear(given, width, bias=False)
            self.source, self.target = nn.Linear(width, 1, bias=False), nn.Linear(width, 1, bias=False)

        def forward(self, x: Any, source: Any, target: Any) -> Any:
            h = self.project(x)
            score = F.leaky_relu(self.source(h)[source] + self.target(h)[target], 0.2)
            weight = torch.exp(score - score.max().detach())
            total = torch.zeros(len(x), 1).index_add(0, target, weight)
            return torch.zeros_like(h).index_add(0, target, weight * h[source]) / (total + 1e-9)

    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second = Attention(features, width), Attention(width, classes)

        def forward(self, x: Any, source: Any, target: Any) -> Any:
            return self.second(F.elu(self.first(x, source, target)), source, target)

    model = Net()
    x, y = torch.randn(nodes, features), torch.randint(0, classes, (nodes,))
    source, target = torch.randint(0, nodes, (edges,)), torch.randint(0, nodes, (edges,))
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3, weight_decay=5e-4)
    data = [x, y, source, target]
    return training(optimizer, model.parameters(), data, lambda: F.nll_loss(F.log_softmax(model(x, source, target), dim=1), y))
