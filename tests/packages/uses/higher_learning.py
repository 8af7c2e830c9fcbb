"""Meta-learning: gradients through steps of an optimizer."""

import higher
import torch

from ..helpers import data, fill, numbers


def run():
    net = fill(torch.nn.Sequential(torch.nn.Linear(3, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1)), scale=0.4)
    outer = torch.optim.Adam(net.parameters(), lr=0.05)
    losses = []
    for Inner in (torch.optim.SGD, torch.optim.Adam):
        inner = Inner(net.parameters(), lr=0.05)
        for _ in range(2):
            outer.zero_grad()
            for task in range(2):
                x, y = data(6, 3, seed=task), data(6, 1, seed=task + 10)
                with higher.innerloop_ctx(net, inner, copy_initial_weights=False) as (fast, steps):
                    for _ in range(2):
                        steps.step((fast(x) - y).square().mean())
                    loss = (fast(x.flip(0)) - y).square().mean()
                    loss.backward()
                    losses.append(loss.item())
            outer.step()
    return {"losses": losses, "gradients": numbers(*[p.grad for p in net.parameters()]), "parameters": numbers(*net.parameters())}
