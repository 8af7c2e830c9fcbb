"""Physics-informed net for the Burgers equation: first and second derivatives by ``autograd.grad``, Adam and then LBFGS."""

import math

import torch
from torch import nn
from torch.autograd import grad


class MLP(nn.Module):
    def __init__(self, sizes):
        super().__init__()
        layers = []
        for a, b in zip(sizes[:-2], sizes[1:-1], strict=True):
            layers += [nn.Linear(a, b), nn.Tanh()]
        self.net = nn.Sequential(*layers, nn.Linear(sizes[-2], sizes[-1]))
        for m in self.net:
            if isinstance(m, nn.Linear):
                nn.init.xavier_normal_(m.weight, gain=5 / 3)
                nn.init.zeros_(m.bias)

    def forward(self, x, t):
        return self.net(torch.cat([x, t], dim=1))


def residual(net, x, t, nu=0.01 / math.pi):
    u = net(x, t)
    u_x, u_t = grad(u, (x, t), grad_outputs=torch.ones_like(u), create_graph=True)
    u_xx = grad(u_x.sum(), x, create_graph=True, retain_graph=True)[0]
    return u_t + u * u_x - nu * u_xx


def run(same):
    torch.set_default_dtype(torch.float64)
    try:
        draw = lambda low, high, *shape: torch.tensor(same.rng.uniform(low, high, shape))
        net = same.start(MLP([2, 16, 16, 1]))
        x0 = torch.linspace(-1, 1, 20)[:, None]
        u0 = -torch.sin(math.pi * x0)
        x, t = draw(-1, 1, 40, 1).requires_grad_(True), draw(0, 1, 40, 1).requires_grad_()
        mse = nn.MSELoss()

        def objective():
            f = residual(net, x, t)
            wall = net(torch.ones(10, 1), t[:10].detach()) ** 2
            return mse(net(x0, torch.zeros_like(x0)), u0) + mse(f, torch.zeros_like(f)) + wall.mean()

        losses = []
        adam = torch.optim.Adam(net.parameters(), lr=1e-2)
        sched = torch.optim.lr_scheduler.ExponentialLR(adam, gamma=0.9)
        for _ in range(5):
            adam.zero_grad()
            loss = objective()
            loss.backward()
            adam.step()
            sched.step()
            losses.append(loss.item())
        lbfgs = torch.optim.LBFGS(net.parameters(), max_iter=5, history_size=10, line_search_fn="strong_wolfe")

        def closure():
            lbfgs.zero_grad()
            loss = objective()
            loss.backward()
            return loss

        for _ in range(3):
            losses.append(lbfgs.step(closure).item())
        return losses
    finally:
        torch.set_default_dtype(torch.float32)
