"""Layers, models and optimizers: what they are made of, what a call gives, and what an index or a closure changes of it."""
# pyright: strict

from __future__ import annotations

from typing import Any, assert_type

import autograd_nb as torch
from autograd_nb import Tensor, nn, optim
from autograd_nb.func import jvp, vjp
from autograd_nb.nn.utils.rnn import PackedSequence, pack_sequence


class Head(nn.Module):
    """A model whose call has the types of its own `forward`."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.hidden = nn.Linear(width, 2 * width)
        self.norm = nn.BatchNorm1d(2 * width)
        self.activation = nn.ReLU()
        self.out = nn.Linear(2 * width, 1)

    def forward(self, x: Tensor, scale: float = 1.0) -> tuple[Tensor, float]:
        assert_type(self.hidden, nn.Linear)
        h = self.activation(self.norm(self.hidden(x)))
        assert_type(h, Tensor)
        return self.out(h) * scale, scale


def parts(x: Tensor) -> None:
    model = Head(3)
    assert_type(model, Head)
    y, scale = model(x, scale=2.0)
    assert_type(y, Tensor)
    assert_type(scale, float)
    assert_type(model.hidden.weight, Tensor)
    assert_type(model.hidden.in_features, int)
    assert_type(model.norm.running_mean, Tensor | None)
    assert_type([name for name, _ in model.named_parameters()], list[str])
    assert_type(model.train().eval().double().float(), Head)
    assert_type(model.state_dict(), dict[str, Any])


def containers(x: Tensor) -> None:
    net = nn.Sequential(nn.Linear(3, 2), nn.Tanh(), nn.Linear(2, 1))
    assert_type(net, nn.Sequential)
    assert_type(net[1:], nn.Sequential)
    first: nn.Module = net[0]
    several = nn.ModuleList([first, nn.Identity()])
    assert_type(several[:1], nn.ModuleList)
    print(net(x), len(several))


def recurrent() -> None:
    steps = torch.ones(4, 2, 3)
    lstm, gru = nn.LSTM(input_size=3, hidden_size=5, batch_first=False), nn.GRU(3, 5)
    y, (h, c) = lstm(steps)
    assert_type(y, Tensor)
    assert_type((h, c), tuple[Tensor, Tensor])
    assert_type(gru(steps, h), tuple[Tensor, Tensor])
    packed, _ = gru(pack_sequence([torch.ones(3, 3), torch.ones(2, 3)]))
    assert_type(packed, PackedSequence)
    mixed, weights = nn.MultiheadAttention(3, 1)(steps, steps, steps)
    assert_type(mixed, Tensor)
    assert_type(weights, Tensor | None)


def optimizers() -> None:
    w = torch.ones(2, requires_grad=True)
    sgd = optim.SGD([w], lr=0.1, momentum=0.9)
    assert_type(sgd, optim.SGD)
    sgd.step()

    def again() -> float:
        sgd.zero_grad()
        loss = (w**2).sum()
        loss.backward()
        return float(loss.item())

    assert_type(sgd.step(again), float)
    assert_type(optim.Adam([w]).step(again), float)
    assert_type(optim.LBFGS([w]).step(again), float)
    assert_type(sgd.param_groups, list[dict[str, Any]])


def transforms(x: Tensor) -> None:
    value, pull = vjp(torch.sin, x)
    print(pull(value), jvp(torch.sin, (x,), (x,))[1])
