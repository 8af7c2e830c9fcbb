"""Moving averages of a model's parameters, by two packages."""

import torch
from ema_pytorch import EMA
from torch_ema import ExponentialMovingAverage

from ..helpers import data, fill, numbers


def run():
    net = fill(torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4), torch.nn.Linear(4, 1)))
    ema = EMA(net, beta=0.9, update_after_step=1, update_every=1)
    other = ExponentialMovingAverage(net.parameters(), decay=0.9)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for _ in range(5):
        optimizer.zero_grad()
        net(data(6, 3)).square().mean().backward()
        optimizer.step()
        ema.update()
        other.update()
    with other.average_parameters():
        averaged = net.eval()(data(2, 3))
    state = other.state_dict()
    return {"ema": numbers(ema(data(6, 3))), "averaged": numbers(averaged), "own": numbers(net(data(2, 3))), "state": [state["decay"], state["num_updates"]]}
