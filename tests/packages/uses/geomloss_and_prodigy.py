"""Distances of clouds of points (geomloss): Sinkhorn, energy, Gaussian, moved along their gradients; Prodigy and warm-up of rates"""

import pytorch_warmup
import torch
from geomloss import SamplesLoss
from prodigyopt import Prodigy

from ..helpers import data, fill, numbers


def run():
    x, y, found = data(20, 2).requires_grad_(), data(25, 2, seed=1) + 1, {}
    for name, loss in {"sinkhorn": SamplesLoss("sinkhorn", p=2, blur=0.1, scaling=0.7), "biased": SamplesLoss("sinkhorn", p=1, blur=0.2, debias=False),
                       "energy": SamplesLoss("energy"), "gaussian": SamplesLoss("gaussian", blur=0.5), "laplacian": SamplesLoss("laplacian", blur=0.5)}.items():
        value = loss(x, y)
        (gradient,) = torch.autograd.grad(value, [x])
        found[name] = numbers(value, gradient)
    net = fill(torch.nn.Sequential(torch.nn.Linear(2, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1)), scale=0.5)
    optimizer = Prodigy(net.parameters(), lr=1.0, weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 10)
    warmup = pytorch_warmup.UntunedLinearWarmup(optimizer)
    losses = []
    for _ in range(6):
        optimizer.zero_grad()
        value = (net(y) - y.sum(1, keepdim=True)).square().mean()
        value.backward()
        optimizer.step()
        with warmup.dampening():
            schedule.step()
        losses += [value.item(), optimizer.param_groups[0]["lr"], float(optimizer.param_groups[0]["d"])]
    return {**found, "prodigy": losses}
