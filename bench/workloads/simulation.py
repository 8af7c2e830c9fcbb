"""Programs that use tensors as arrays: simulations, statistics, and the gradients of them."""

from __future__ import annotations

import math
from typing import Any

from .common import Step, normal, training


def wave(lib: Any) -> Step:
    """Twenty steps of the wave equation on 100 × 100, slices written in place."""
    u, v = normal(lib, 100, 100), lib.zeros(100, 100)

    def step() -> Any:
        nonlocal u, v
        for _ in range(20):
            around = u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2] - 4 * u[1:-1, 1:-1]
            v[1:-1, 1:-1] += 0.1 * around
            u = u + 0.1 * v
            u[0], u[-1], u[:, 0], u[:, -1] = 0, 0, 0, 0
        return u

    return step


def heat_inverse(lib: Any) -> Step:
    """Where the heat began is learnt through 20 steps of diffusion by rolls."""
    start, wanted = lib.zeros(64).requires_grad_(), normal(lib, 64)

    def loss() -> Any:
        u = start
        for _ in range(20):
            u = u + 0.1 * (u.roll(1, 0) - 2 * u + u.roll(-1, 0))
        return ((u - wanted) ** 2).mean()

    return training(loss, lib.optim.SGD([start], 0.1, momentum=0.9))


def black_scholes(lib: Any) -> Step:
    """Prices of 20,000 options and their sensitivities."""
    s, k = (normal(lib, 20000).abs() + 1).requires_grad_(), normal(lib, 20000, seed=1).abs() + 1
    t, vol = lib.full((20000,), 0.5), (normal(lib, 20000, seed=2).abs() * 0.1 + 0.2).requires_grad_()

    def step() -> Any:
        d1 = ((s / k).log() + (0.02 + vol**2 / 2) * t) / (vol * t.sqrt())
        d2 = d1 - vol * t.sqrt()
        n = lambda x: 0.5 * (1 + lib.erf(x / math.sqrt(2)))
        price = s * n(d1) - k * (-0.02 * t).exp() * n(d2)
        return lib.autograd.grad(price.sum(), (s, vol))

    return step


def monte_carlo(lib: Any) -> Step:
    """Paths of a stock, 1,000 by 50 steps, and the mean of what an Asian option pays."""

    def step() -> Any:
        z = lib.randn(1000, 50)
        path = (0.001 + 0.02 * z).cumsum(1).exp()
        return (path.mean(1) - 1).clamp(min=0).mean().item()

    return step


def life(lib: Any) -> Step:
    """Ten generations of the game of life by a convolution."""
    F = lib.nn.functional
    kernel = lib.ones(1, 1, 3, 3)
    kernel[0, 0, 1, 1] = 0
    x = (normal(lib, 1, 1, 64, 64) > 0.5).float()

    def step() -> Any:
        board = x
        for _ in range(10):
            n = F.conv2d(F.pad(board, (1, 1, 1, 1), mode="circular"), kernel)
            board = ((n == 3) | ((n == 2) & (board == 1))).float()
        return board

    return step


def cellular(lib: Any) -> Step:
    """Neural cellular automata: perception by fixed filters, a small network at each place, eight steps."""
    nn, F = lib.nn, lib.nn.functional
    filters = normal(lib, 3, 1, 3, 3).repeat(8, 1, 1, 1)
    first, second = nn.Conv2d(24, 32, 1), nn.Conv2d(32, 8, 1)
    seed, wanted = normal(lib, 2, 8, 16, 16, seed=1), normal(lib, 2, 4, 16, 16, seed=2)

    def loss() -> Any:
        x = seed
        for _ in range(8):
            y = second(F.relu(first(F.conv2d(x, filters, padding=1, groups=8))))
            x = x + y * (lib.rand(2, 1, 16, 16) < 0.5).float()
        return ((x[:, :4] - wanted) ** 2).mean()

    return training(loss, lib.optim.Adam([*first.parameters(), *second.parameters()]))


def langevin(lib: Any) -> Step:
    """Samples of an energy by ten steps of Langevin dynamics, and a step of the energy."""
    nn = lib.nn
    energy = nn.Sequential(nn.Linear(2, 32), nn.SiLU(), nn.Linear(32, 1))
    data = normal(lib, 64, 2)
    optimizer = lib.optim.Adam(energy.parameters(), 1e-3)

    def step() -> Any:
        x = lib.randn(64, 2)
        for _ in range(10):
            x.requires_grad_(True)
            (g,) = lib.autograd.grad(energy(x).sum(), x)
            x = (x - 0.1 * g + 0.05 * lib.randn(64, 2)).detach()
        optimizer.zero_grad()
        loss = energy(data).mean() - energy(x).mean()
        loss.backward()
        optimizer.step()
        return loss.detach()

    return step


def hmc(lib: Any) -> Step:
    """Hamiltonian Monte Carlo of a logistic regression: a proposal of ten leapfrogs."""
    x, y = normal(lib, 100, 5), (normal(lib, 100, seed=1) > 0).float()
    w = lib.zeros(5)

    def slope(w: Any) -> Any:
        w = w.detach().requires_grad_()
        u = lib.nn.functional.binary_cross_entropy_with_logits(x @ w, y, reduction="sum") + 0.5 * (w**2).sum()
        return u.detach(), lib.autograd.grad(u, w)[0]

    def step() -> Any:
        nonlocal w
        p = lib.randn(5)
        u0, g = slope(w)
        q, r = w, p - 0.05 * g
        for _ in range(10):
            q = q + 0.1 * r
            u, g = slope(q)
            r = r - 0.1 * g
        if lib.rand(()).log() < u0 - u + 0.5 * ((p**2).sum() - (r**2).sum()):
            w = q
        return w

    return step


def cubic(lib: Any) -> Step:
    """The tutorial's polynomial: y = a + bx + cx² + dx³ fitted to a sine, gradients by hand."""
    x = lib.linspace(-math.pi, math.pi, 2000)
    y = lib.sin(x)
    a, b, c, d = (lib.randn(()) for _ in range(4))

    def step() -> Any:
        nonlocal a, b, c, d
        p = a + b * x + c * x**2 + d * x**3
        loss = (p - y).pow(2).sum().item()
        g = 2.0 * (p - y)
        a, b = a - 1e-6 * g.sum(), b - 1e-6 * (g * x).sum()
        c, d = c - 1e-6 * (g * x**2).sum(), d - 1e-6 * (g * x**3).sum()
        return loss

    return step


def cubic_autograd(lib: Any) -> Step:
    """The same with a graph, weights changed without one."""
    x = lib.linspace(-math.pi, math.pi, 2000)
    y = lib.sin(x)
    weights = [lib.randn((), requires_grad=True) for _ in range(4)]

    def step() -> Any:
        a, b, c, d = weights
        loss = (a + b * x + c * x**2 + d * x**3 - y).pow(2).sum()
        loss.backward()
        with lib.no_grad():
            for w in weights:
                w -= 1e-6 * w.grad
                w.grad = None
        return loss.detach()

    return step


def covariance(lib: Any) -> Step:
    """A covariance of ten dims is learnt through its Cholesky factor."""
    raw, x = normal(lib, 10, 10).requires_grad_(), normal(lib, 200, 10, seed=1)

    def loss() -> Any:
        lower = raw.tril(-1) + lib.diag(raw.diagonal().exp())
        z = lib.linalg.solve_triangular(lower, x.T, upper=False)
        return 0.5 * (z**2).sum(0).mean() + lower.diagonal().log().sum()

    return training(loss, lib.optim.Adam([raw], 1e-2))


def bundle(lib: Any) -> Step:
    """Cameras and points are moved until the points fall where they were seen."""
    points, poses = normal(lib, 60, 3).requires_grad_(), normal(lib, 5, 6, seed=1).mul(0.1).requires_grad_()
    seen = normal(lib, 5, 60, 2, seed=2)

    def loss() -> Any:
        angle, shift = poses[:, :3], poses[:, 3:]
        theta = angle.norm(dim=1, keepdim=True).clamp(min=1e-6)
        axis = (angle / theta)[:, None]
        p = points[None].expand(5, 60, 3)
        c, s = theta[:, None].cos(), theta[:, None].sin()
        turned = p * c + lib.cross(axis.expand_as(p), p, dim=2) * s + axis * (axis * p).sum(2, keepdim=True) * (1 - c)
        at = turned + shift[:, None] + lib.tensor([0.0, 0.0, 5.0])
        return (at[..., :2] / at[..., 2:] - seen).abs().mean()

    return training(loss, lib.optim.Adam([points, poses], 1e-2))


def robot_arm(lib: Any) -> Step:
    """Six joints reach for a point: chained rotations of 4 × 4 matrices."""
    angles, goal = lib.zeros(6).requires_grad_(), lib.tensor([1.0, 2.0, 0.5])

    def loss() -> Any:
        pose = lib.eye(4)
        for k in range(6):
            c, s = angles[k].cos(), angles[k].sin()
            zero, one = lib.zeros(()), lib.ones(())
            rows = [c, -s, zero, one * 0.6, s, c, zero, zero, zero, zero, one, one * 0.2 * k, zero, zero, zero, one]
            pose = pose @ lib.stack(rows).view(4, 4)
        return ((pose[:3, 3] - goal) ** 2).sum()

    return training(loss, lib.optim.Adam([angles], 1e-2))


def quantiles(lib: Any) -> Step:
    """Quantiles and moments of columns, without a graph."""
    x = normal(lib, 2000, 20)

    def step() -> Any:
        q = x.quantile(lib.tensor([0.1, 0.5, 0.9]), dim=0)
        z = (x - x.mean(0)) / x.std(0)
        return q, z.pow(3).mean(0), z.pow(4).mean(0), lib.corrcoef(x.T), x.median(0).values

    return step
