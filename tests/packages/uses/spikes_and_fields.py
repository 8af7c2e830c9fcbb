"""Spiking neurons (norse), vector fields learnt as networks (torchdyn), and differentiable optimizers (torchopt)."""

import norse.torch as snn
import torch
import torchopt
from torchdyn.numerics import odeint

from ..helpers import data, fill, numbers


def run():
    net = fill(torch.nn.Linear(6, 5))
    cell, out, state, last, volts = snn.LIFCell(), snn.LICell(), None, None, []
    for k in range(6):
        spikes, state = cell(net(data(3, 6, seed=k).abs() * 30), state)
        v, last = out(spikes, last)
        volts.append(v)
    torch.stack(volts).square().mean().backward()
    sequence = snn.LIF()(data(6, 3, 5).abs() * 20)[0]

    field = fill(torch.nn.Sequential(torch.nn.Linear(2, 8), torch.nn.Tanh(), torch.nn.Linear(8, 2)))
    ends = [odeint(lambda t, x: field(x), data(4, 2), torch.linspace(0, 1, 4), solver=solver, atol=1e-5, rtol=1e-5)[1]
            for solver in ("euler", "rk4", "dopri5", "tsit5")]
    sum(e[-1].square().sum() for e in ends).backward()

    model = fill(torch.nn.Linear(3, 1))
    inner, rate = torchopt.MetaSGD(model, lr=0.1), data(3).requires_grad_()
    for _ in range(2):
        inner.step((model(data(5, 3) * rate) - 1).square().mean())
    model(data(5, 3, seed=1)).square().mean().backward()
    weights = {"w": data(3), "b": data(1)}
    optimizer = torchopt.adam(0.1)
    moments = optimizer.init(weights)
    for _ in range(2):
        updates, moments = optimizer.update({k: v * 2 for k, v in weights.items()}, moments, inplace=False)
        weights = torchopt.apply_updates(weights, updates, inplace=False)
    return {"volts": numbers(*volts, net.weight.grad), "sequence": numbers(sequence), "ends": numbers(*(e[-1] for e in ends), field[0].weight.grad),
            "rate": numbers(rate.grad), "adam": numbers(weights["w"], weights["b"])}
