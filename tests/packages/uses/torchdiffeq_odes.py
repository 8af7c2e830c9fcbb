"""Ordinary differential equations by several methods, with gradients directly and by the adjoint method, and an event."""

import torch
from torchdiffeq import odeint, odeint_adjoint, odeint_event

from ..helpers import data, fill, numbers, train


class Field(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.net = fill(torch.nn.Sequential(torch.nn.Linear(2, 12), torch.nn.Tanh(), torch.nn.Linear(12, 2)), scale=0.4)

    def forward(self, t, y):
        return self.net(y**3)


def run():
    field, y0, times = Field(), data(5, 2), torch.linspace(0, 1, 5)
    result = {}
    for method in ("dopri5", "rk4", "euler", "dopri8", "implicit_adams", "heun3", "bosh3", "adaptive_heun"):
        result[method] = numbers(odeint(field, y0, times, method=method, options={"step_size": 0.1} if method in ("rk4", "euler") else None).detach())
    target = data(5, 5, 2, seed=1)
    result["direct"] = train(field, lambda: (odeint(field, y0, times, method="dopri5") - target).square().mean(), lr=0.02)
    result["adjoint"] = train(field, lambda: (odeint_adjoint(field, y0, times, adjoint_params=tuple(field.parameters())) - target).square().mean(), lr=0.02)
    fall = lambda t, y: torch.stack([y[1], -torch.ones_like(y[1]) * 9.8])
    time, states = odeint_event(fall, torch.tensor([2.0, 1.0]), torch.tensor(0.0), event_fn=lambda t, y: y[0], atol=1e-6, rtol=1e-6)
    result["event"] = numbers(time, states[-1])[:4]
    return result
