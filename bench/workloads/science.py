"""Likelihoods, flows, physics and derivatives of functions."""

from __future__ import annotations

import math
from typing import Any

from .common import Step, normal, training


def kalman(lib: Any) -> Step:
    """The likelihood of a Kalman filter of 20 steps, by its transition matrix."""
    nn = lib.nn
    A = nn.Parameter(lib.eye(4) * 0.9)
    H = normal(lib, 2, 4)
    Q, R = lib.eye(4) * 0.1, lib.eye(2) * 0.2
    ys = normal(lib, 20, 2, seed=1)
    optimizer = lib.optim.Adam([A], 1e-2)

    def loss():
        m, P_, l = lib.zeros(4), lib.eye(4), 0.0
        for y in ys:
            m = A @ m
            P_ = A @ P_ @ A.T + Q
            S = H @ P_ @ H.T + R
            K = lib.linalg.solve(S, H @ P_).T
            e = y - H @ m
            l = l + e @ lib.linalg.solve(S, e) + lib.logdet(S)
            m = m + K @ e
            P_ = P_ - K @ H @ P_
        return l

    return training(loss, optimizer)


def gmm(lib: Any) -> Step:
    """The likelihood of a mixture of Gaussians."""
    nn, F = lib.nn, lib.nn.functional
    mu, ls, lw = nn.Parameter(normal(lib, 5, 3)), nn.Parameter(lib.zeros(5, 3)), nn.Parameter(lib.zeros(5))
    x = normal(lib, 300, 3, seed=1)
    optimizer = lib.optim.Adam([mu, ls, lw], 1e-2)

    def loss():
        z = (x[:, None] - mu) / ls.exp()
        lp = -0.5 * (z**2).sum(-1) - ls.sum(-1) - 1.5 * math.log(2 * math.pi)
        return -lib.logsumexp(lp + F.log_softmax(lw, 0), 1).mean()

    return training(loss, optimizer)


def realnvp(lib: Any) -> Step:
    """Affine coupling layers of a normalizing flow."""
    nn = lib.nn
    nets = nn.ModuleList([nn.Sequential(nn.Linear(2, 32), nn.Tanh(), nn.Linear(32, 4)) for _ in range(4)])
    x = normal(lib, 128, 4)
    optimizer = lib.optim.Adam(nets.parameters(), 1e-3)

    def loss():
        h, ld = x, 0
        for i, n in enumerate(nets):
            a, b = h.chunk(2, 1)
            s, t = n(a).chunk(2, 1)
            s = lib.tanh(s)
            b = b * s.exp() + t
            ld = ld + s.sum(1)
            h = lib.cat([b, a], 1)
        return (0.5 * (h**2).sum(1) - ld).mean()

    return training(loss, optimizer)


def neural_ode(lib: Any) -> Step:
    """A neural ODE by eight steps of Runge-Kutta."""
    nn, F = lib.nn, lib.nn.functional
    f = nn.Sequential(nn.Linear(2, 32), nn.Tanh(), nn.Linear(32, 2))
    y0, yt = normal(lib, 20, 2), normal(lib, 20, 2, seed=1)
    optimizer = lib.optim.Adam(f.parameters(), 1e-3)

    def loss():
        y, h = y0, 0.1
        for _ in range(8):
            k1 = f(y)
            k2 = f(y + h / 2 * k1)
            k3 = f(y + h / 2 * k2)
            k4 = f(y + h * k3)
            y = y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        return F.mse_loss(y, yt)

    return training(loss, optimizer)


def mdn(lib: Any) -> Step:
    """A mixture density network."""
    nn, F = lib.nn, lib.nn.functional
    b = nn.Sequential(nn.Linear(1, 20), nn.Tanh())
    pi, mu, sg = nn.Linear(20, 5), nn.Linear(20, 5), nn.Linear(20, 5)
    x, y = normal(lib, 200, 1), normal(lib, 200, 1, seed=1)
    optimizer = lib.optim.Adam([p for m in (b, pi, mu, sg) for p in m.parameters()])

    def loss():
        h = b(x)
        m = lib.distributions.Normal(mu(h), sg(h).exp())
        return -lib.logsumexp(m.log_prob(y) + F.log_softmax(pi(h), 1), 1).mean()

    return training(loss, optimizer)


def lbfgs(lib: Any) -> Step:
    """Logistic regression by L-BFGS."""
    nn, F = lib.nn, lib.nn.functional
    w = nn.Parameter(lib.zeros(10))
    X, y = normal(lib, 100, 10), (normal(lib, 100, seed=1) > 0).float()
    optimizer = lib.optim.LBFGS([w], max_iter=5, history_size=5)

    def step():
        def closure():
            optimizer.zero_grad()
            l = F.binary_cross_entropy_with_logits(X @ w, y) + 1e-3 * w.dot(w)
            l.backward()
            return l

        return optimizer.step(closure).detach()

    return step


def fno(lib: Any) -> Step:
    """A Fourier layer: products of complex weights with the low frequencies."""
    nn, F = lib.nn, lib.nn.functional
    w = nn.Parameter(lib.complex(normal(lib, 8, 8, 12) * 0.1, normal(lib, 8, 8, 12, seed=1) * 0.1))
    l, p, q = nn.Conv1d(8, 8, 1), nn.Conv1d(1, 8, 1), nn.Conv1d(8, 1, 1)
    x = normal(lib, 8, 1, 64)
    optimizer = lib.optim.Adam([w, *l.parameters(), *p.parameters(), *q.parameters()], 1e-3)

    def loss():
        h = p(x)
        f = lib.fft.rfft(h)
        g = lib.zeros(8, 8, 33, dtype=lib.complex64)
        g[:, :, :12] = lib.einsum("bix,iox->box", f[:, :, :12], w)
        return q(F.gelu(lib.fft.irfft(g, n=64) + l(h))).pow(2).mean()

    return training(loss, optimizer)


def bayes_by_backprop(lib: Any) -> Step:
    """Weights drawn from normal distributions, with their divergence."""
    nn, F = lib.nn, lib.nn.functional
    mu, rho = nn.Parameter(normal(lib, 8, 16) * 0.1), nn.Parameter(lib.full((8, 16), -3.0))
    x, y = normal(lib, 64, 16), normal(lib, 64, 8, seed=1)
    optimizer = lib.optim.Adam([mu, rho])
    N = lib.distributions.Normal

    def loss():
        q = N(mu, F.softplus(rho))
        w = q.rsample()
        return (
            F.mse_loss(F.linear(x, w), y) + lib.distributions.kl_divergence(q, N(lib.zeros(8, 16), lib.ones(8, 16))).sum() / 640
        )

    return training(loss, optimizer)


def gp_regression(lib: Any) -> Step:
    """The marginal likelihood of a Gaussian process."""
    nn = lib.nn
    ls, sv, nv = (nn.Parameter(lib.tensor(v)) for v in (0.0, 0.0, -2.0))
    X, y = normal(lib, 60, 3), normal(lib, 60, seed=1)
    optimizer = lib.optim.Adam([ls, sv, nv], 1e-2)
    I = lib.eye(60)

    def loss():
        K = sv.exp() * lib.exp(-0.5 * lib.cdist(X, X).pow(2) / ls.exp() ** 2) + (nv.exp() + 1e-4) * I
        L = lib.linalg.cholesky(K)
        a = lib.cholesky_solve(y[:, None], L)
        return 0.5 * (y @ a[:, 0]) + L.diagonal().log().sum()

    return training(loss, optimizer)


def svd_pca(lib: Any) -> Step:
    """A share of singular values."""
    nn = lib.nn
    W = nn.Parameter(normal(lib, 20, 10))
    X = normal(lib, 50, 20, seed=1)
    optimizer = lib.optim.SGD([W], 1e-3)

    def loss():
        S = lib.linalg.svd(X @ W, full_matrices=False)[1]
        return -(S[:3].sum() / S.sum())

    return training(loss, optimizer)


def nbody(lib: Any) -> Step:
    """Ten steps of ten bodies, by their first velocities."""
    nn = lib.nn
    v0 = nn.Parameter(normal(lib, 10, 2) * 0.1)
    x0, m = normal(lib, 10, 2), normal(lib, 10, seed=1).abs()
    goal = normal(lib, 10, 2, seed=2)
    optimizer = lib.optim.Adam([v0], 1e-2)

    def loss():
        x, v = x0, v0
        for _ in range(10):
            d = x[None] - x[:, None]
            r = (d**2).sum(-1) + 0.1
            a = (m[None, :, None] * d / r[..., None] ** 1.5).sum(1)
            v = v + 0.01 * a
            x = x + 0.01 * v
        return ((x - goal) ** 2).sum()

    return training(loss, optimizer)


def per_sample_grads(lib: Any) -> Step:
    """Gradients of each sample: vmap of grad."""
    w, b = normal(lib, 1, 8), lib.zeros(1)
    X, y = normal(lib, 32, 8, seed=1), normal(lib, 32, seed=2)
    f = (
        lib.func.vmap(lib.func.grad(lambda w, b, x, t: (x @ w[0] + b[0] - t) ** 2), (None, None, 0, 0))
        if hasattr(lib, "func")
        else None
    )
    return lambda: f(w, b, X, y)


def jacobian(lib: Any) -> Step:
    """The Jacobian of a small net."""
    nn = lib.nn
    n = nn.Sequential(nn.Linear(6, 32), nn.Tanh(), nn.Linear(32, 6))
    x = normal(lib, 6)
    return lambda: lib.autograd.functional.jacobian(n, x)


def hessian(lib: Any) -> Step:
    """The Hessian of a function of eight numbers."""
    x = normal(lib, 8)
    A = normal(lib, 8, 8, seed=1)
    return lambda: lib.autograd.functional.hessian(lambda v: (A @ v).sin().sum() * (v * v).sum(), x)


def pinn_burgers(lib: Any) -> Step:
    """Burgers' equation by second derivatives of a net."""
    nn = lib.nn
    n = nn.Sequential(nn.Linear(2, 20), nn.Tanh(), nn.Linear(20, 20), nn.Tanh(), nn.Linear(20, 1))
    p = normal(lib, 100, 2)
    optimizer = lib.optim.Adam(n.parameters())

    def loss():
        q = p.clone().requires_grad_(True)
        u = n(q)
        g = lib.autograd.grad(u.sum(), q, create_graph=True)[0]
        ux, ut = g[:, 0:1], g[:, 1:2]
        uxx = lib.autograd.grad(ux.sum(), q, create_graph=True)[0][:, 0:1]
        return (ut + u * ux - 0.01 * uxx).pow(2).mean()

    return training(loss, optimizer)


def cox(lib: Any) -> Step:
    """The partial likelihood of Cox's model, by NAdam."""
    nn = lib.nn
    n = nn.Sequential(nn.Linear(10, 16), nn.SELU(), nn.Linear(16, 1))
    x = normal(lib, 100, 10)
    ev = (normal(lib, 100, seed=1) > 0).float()
    optimizer = lib.optim.NAdam(n.parameters())

    def loss():
        h = n(x)[:, 0]
        return -((h - lib.logcumsumexp(h, 0)) * ev).sum() / ev.sum()

    return training(loss, optimizer)


def complex_filter(lib: Any) -> Step:
    """A filter by its complex frequencies."""
    nn = lib.nn
    h = nn.Parameter(lib.complex(normal(lib, 33), normal(lib, 33, seed=1)))
    x, y = normal(lib, 8, 64), normal(lib, 8, 64, seed=2)
    optimizer = lib.optim.Adam([h], 1e-2)
    return training(lambda: (lib.fft.irfft(lib.fft.rfft(x) * h, 64) - y).pow(2).mean(), optimizer)
