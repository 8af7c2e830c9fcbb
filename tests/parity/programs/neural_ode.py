"""Neural ODE: a spiral fitted through Runge-Kutta steps of tensors, with RMSprop."""

import torch
import torch.nn as nn
import torch.optim as optim


class ODEFunc(nn.Module):
    def __init__(self):
        super(ODEFunc, self).__init__()
        self.net = nn.Sequential(nn.Linear(2, 24), nn.Tanh(), nn.Linear(24, 2))
        for m in self.net.modules():
            if isinstance(m, nn.Linear):
                nn.init.normal_(m.weight, mean=0, std=0.1)
                nn.init.constant_(m.bias, val=0)

    def forward(self, t, y):
        return self.net(y**3)


def odeint(func, y0, t):
    solution = [y0]
    for t0, t1 in zip(t[:-1], t[1:], strict=True):
        dt, y = t1 - t0, solution[-1]
        k1 = func(t0, y)
        k2 = func(t0 + dt / 3, y + dt * k1 / 3)
        k3 = func(t0 + dt * 2 / 3, y + dt * (k2 - k1 / 3))
        k4 = func(t1, y + dt * (k1 - k2 + k3))
        solution.append(y + dt * (k1 + 3 * (k2 + k3) + k4) * 0.125)
    return torch.stack(solution)


def run(same):
    true_y0 = torch.tensor([[2.0, 0.0]])
    t = torch.linspace(0.0, 5.0, 60)
    true_A = torch.tensor([[-0.1, 2.0], [-2.0, -0.1]])

    class Lambda(nn.Module):
        def forward(self, t, y):
            return torch.mm(y**3, true_A)

    with torch.no_grad():
        true_y = odeint(Lambda(), true_y0, t)
    func = same.start(ODEFunc())
    optimizer = optim.RMSprop(func.parameters(), lr=1e-3)
    losses = []
    for _ in range(6):
        optimizer.zero_grad()
        s = torch.from_numpy(same.rng.choice(50, 8, replace=False))
        batch_y0, batch_t = true_y[s], t[:8]
        batch_y = torch.stack([true_y[s + i] for i in range(8)], dim=0)
        pred_y = odeint(func, batch_y0, batch_t)
        loss = torch.mean(torch.abs(pred_y - batch_y))
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses
