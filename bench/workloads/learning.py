"""Games, contrasts, adversaries, graphs, sets and tables."""

from __future__ import annotations

from typing import Any

from .common import Step, integers, normal, training


def gan(lib: Any) -> Step:
    """A generator and a discriminator, each with its own Adam."""
    nn = lib.nn
    G = nn.Sequential(nn.Linear(16, 64), nn.LeakyReLU(0.2), nn.Linear(64, 32))
    D = nn.Sequential(nn.Linear(32, 64), nn.LeakyReLU(0.2), nn.Linear(64, 1))
    og, od = lib.optim.Adam(G.parameters(), 2e-4), lib.optim.Adam(D.parameters(), 2e-4)
    z, real = normal(lib, 32, 16), normal(lib, 32, 32, seed=1)
    one, zero = lib.ones(32, 1), lib.zeros(32, 1)
    bce = nn.BCEWithLogitsLoss()

    def step():
        fake = G(z)
        od.zero_grad()
        ld = bce(D(real), one) + bce(D(fake.detach()), zero)
        ld.backward()
        od.step()
        og.zero_grad()
        lg = bce(D(fake), one)
        lg.backward()
        og.step()
        return lg.detach()

    return step


def dqn(lib: Any) -> Step:
    """Deep Q-learning: values of actions taken towards rewards, gradients clamped."""
    nn, F = lib.nn, lib.nn.functional
    q, tq = (
        nn.Sequential(nn.Linear(8, 64), nn.ReLU(), nn.Linear(64, 4)),
        nn.Sequential(nn.Linear(8, 64), nn.ReLU(), nn.Linear(64, 4)),
    )
    optimizer = lib.optim.RMSprop(q.parameters(), 1e-3)
    s, s2, a, r, d = (
        normal(lib, 64, 8),
        normal(lib, 64, 8, seed=1),
        integers(lib, 4, 64, 1),
        normal(lib, 64, seed=2),
        lib.zeros(64),
    )

    def step():
        v = q(s).gather(1, a).squeeze(1)
        with lib.no_grad():
            t = r + 0.99 * tq(s2).max(1).values * (1 - d)
        l = F.smooth_l1_loss(v, t)
        optimizer.zero_grad()
        l.backward()
        for p in q.parameters():
            p.grad.clamp_(-1, 1)
        optimizer.step()
        return l.detach()

    return step


def policy_gradient(lib: Any) -> Step:
    """REINFORCE with an entropy bonus."""
    nn, F = lib.nn, lib.nn.functional
    net = nn.Sequential(nn.Linear(6, 32), nn.Tanh(), nn.Linear(32, 3))
    optimizer = lib.optim.Adam(net.parameters(), 1e-2)
    s, a, R = normal(lib, 50, 6), integers(lib, 3, 50), normal(lib, 50, seed=2)

    def step():
        lp = F.log_softmax(net(s), -1)
        l = -(lp[lib.arange(50), a] * R).mean() + 0.01 * (lp.exp() * lp).sum(-1).mean()
        optimizer.zero_grad()
        l.backward()
        optimizer.step()
        return l.detach()

    return step


def ppo(lib: Any) -> Step:
    """A clipped policy objective with a value head."""
    nn = lib.nn
    n = nn.Sequential(nn.Linear(6, 32), nn.Tanh(), nn.Linear(32, 4))
    v = nn.Linear(6, 1)
    s, a = normal(lib, 64, 6), integers(lib, 4, 64)
    old, adv, ret = normal(lib, 64, seed=1) * 0.1 - 1.4, normal(lib, 64, seed=2), normal(lib, 64, seed=3)
    parameters = [*n.parameters(), *v.parameters()]
    optimizer = lib.optim.Adam(parameters, 3e-4)

    def step():
        d = lib.distributions.Categorical(logits=n(s))
        r = (d.log_prob(a) - old).exp()
        l = (
            -lib.min(r * adv, r.clamp(0.8, 1.2) * adv).mean()
            + 0.5 * (v(s).squeeze(-1) - ret).pow(2).mean()
            - 0.01 * d.entropy().mean()
        )
        optimizer.zero_grad()
        l.backward()
        nn.utils.clip_grad_norm_(parameters, 0.5)
        optimizer.step()
        return l.detach()

    return step


def triplet(lib: Any) -> Step:
    """Normalised embeddings under a triplet loss, by Adagrad."""
    nn, F = lib.nn, lib.nn.functional
    n = nn.Sequential(nn.Linear(20, 64), nn.ReLU(), nn.Linear(64, 16))
    a, p, q = normal(lib, 40, 20), normal(lib, 40, 20, seed=1), normal(lib, 40, 20, seed=2)
    optimizer = lib.optim.Adagrad(n.parameters())
    return training(lambda: F.triplet_margin_loss(F.normalize(n(a)), F.normalize(n(p)), F.normalize(n(q))), optimizer)


def simclr(lib: Any) -> Step:
    """A contrastive loss of two views."""
    nn, F = lib.nn, lib.nn.functional
    n = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 32))
    a, b = normal(lib, 32, 32), normal(lib, 32, 32, seed=1)
    optimizer = lib.optim.Adam(n.parameters())
    y = lib.cat([lib.arange(32, 64), lib.arange(0, 32)])
    eye = lib.eye(64, dtype=lib.bool)

    def loss():
        z = F.normalize(n(lib.cat([a, b])), dim=1)
        s = (z @ z.t() / 0.1).masked_fill(eye, -1e9)
        return F.cross_entropy(s, y)

    return training(loss, optimizer)


def maml(lib: Any) -> Step:
    """A gradient step inside, differentiated through."""
    nn, F = lib.nn, lib.nn.functional
    w1, b1, w2 = (nn.Parameter(normal(lib, *s) * 0.1) for s in ((40, 1), (40,), (1, 40)))
    x, y, x2, y2 = normal(lib, 10, 1), normal(lib, 10, 1, seed=1), normal(lib, 10, 1, seed=2), normal(lib, 10, 1, seed=3)
    optimizer = lib.optim.Adam([w1, b1, w2], 1e-3)

    def net(x, w):
        return F.linear(F.relu(F.linear(x, w[0], w[1])), w[2])

    def loss():
        w = [w1, b1, w2]
        g = lib.autograd.grad(F.mse_loss(net(x, w), y), w, create_graph=True)
        return F.mse_loss(net(x2, [a - 0.01 * b for a, b in zip(w, g)]), y2)

    return training(loss, optimizer)


def wgan_gp(lib: Any) -> Step:
    """A critic with a penalty on the norm of its gradient."""
    nn = lib.nn
    D = nn.Sequential(nn.Linear(8, 64), nn.LeakyReLU(0.2), nn.Linear(64, 1))
    optimizer = lib.optim.Adam(D.parameters())
    r, f, e = normal(lib, 32, 8), normal(lib, 32, 8, seed=1), normal(lib, 32, 1, seed=2).sigmoid()

    def loss():
        x = (e * r + (1 - e) * f).requires_grad_()
        g = lib.autograd.grad(D(x).sum(), x, create_graph=True)[0]
        return D(f).mean() - D(r).mean() + 10 * ((g.norm(2, 1) - 1) ** 2).mean()

    return training(loss, optimizer)


def matrix_factorisation(lib: Any) -> Step:
    """Embeddings of users and items, with biases."""
    nn, F = lib.nn, lib.nn.functional
    U, V, bu, bv = nn.Embedding(500, 20), nn.Embedding(800, 20), nn.Embedding(500, 1), nn.Embedding(800, 1)
    u, i, r = integers(lib, 500, 256), integers(lib, 800, 256, seed=1), normal(lib, 256, seed=2)
    optimizer = lib.optim.Adam([p for m in (U, V, bu, bv) for p in m.parameters()], weight_decay=1e-5)
    return training(lambda: F.mse_loss((U(u) * V(i)).sum(1) + bu(u).squeeze() + bv(i).squeeze(), r), optimizer)


def moe(lib: Any) -> Step:
    """A mixture of experts: the rows of each are picked by nonzero, whose number varies."""
    nn = lib.nn
    ex = nn.ModuleList([nn.Linear(16, 16) for _ in range(4)])
    g = nn.Linear(16, 4)
    x = normal(lib, 64, 16)
    optimizer = lib.optim.Adam([*ex.parameters(), *g.parameters()])

    def loss():
        p = g(x).softmax(-1)
        v, i = p.topk(2, -1)
        out = lib.zeros_like(x)
        for k, m in enumerate(ex):
            rows, slot = (i == k).nonzero(as_tuple=True)
            out = out.index_add(0, rows, m(x[rows]) * v[rows, slot, None])
        return out.pow(2).mean()

    return training(loss, optimizer)


def ema_teacher(lib: Any) -> Step:
    """A student, and a teacher that is its moving average."""
    nn, F = lib.nn, lib.nn.functional
    a, b = nn.Linear(16, 16), nn.Linear(16, 16)
    x = normal(lib, 32, 16)
    optimizer = lib.optim.SGD(a.parameters(), 0.1)

    def step():
        with lib.no_grad():
            t = b(x).softmax(-1)
        l = -(t * F.log_softmax(a(x), -1)).sum(-1).mean()
        optimizer.zero_grad()
        l.backward()
        optimizer.step()
        with lib.no_grad():
            for p, q in zip(a.parameters(), b.parameters()):
                q.mul_(0.99).add_(p, alpha=0.01)
        return l.detach()

    return step


def vqvae(lib: Any) -> Step:
    """Codes of a book, chosen by argmin, with a straight-through gradient."""
    nn, F = lib.nn, lib.nn.functional
    e, d = (
        nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 8)),
        nn.Sequential(nn.Linear(8, 64), nn.ReLU(), nn.Linear(64, 32)),
    )
    C = nn.Parameter(normal(lib, 16, 8))
    x = normal(lib, 64, 32)
    optimizer = lib.optim.Adam([*e.parameters(), *d.parameters(), C])

    def loss():
        z = e(x)
        k = ((z[:, None] - C) ** 2).sum(-1).argmin(1)
        q = C[k]
        s = z + (q - z).detach()
        return F.mse_loss(d(s), x) + F.mse_loss(q, z.detach()) + 0.25 * F.mse_loss(z, q.detach())

    return training(loss, optimizer)


def gumbel(lib: Any) -> Step:
    """Hard samples of the Gumbel softmax."""
    nn, F = lib.nn, lib.nn.functional
    w = nn.Parameter(normal(lib, 32, 10))
    t = normal(lib, 10, 4)
    y = normal(lib, 32, 4, seed=1)
    optimizer = lib.optim.Adam([w])
    return training(lambda: F.mse_loss(F.gumbel_softmax(w, tau=0.5, hard=True) @ t, y), optimizer)


def hyper_functional(lib: Any) -> Step:
    """A layer whose weights another one makes."""
    nn, F = lib.nn, lib.nn.functional
    h = nn.Linear(8, 4 * 6 + 4)
    x, z, y = normal(lib, 20, 6), normal(lib, 8, seed=1), normal(lib, 20, 4, seed=2)
    optimizer = lib.optim.Adam(h.parameters())

    def loss():
        p = h(z)
        return F.mse_loss(F.linear(x, p[:24].view(4, 6), p[24:]), y)

    return training(loss, optimizer)


def deepset_ragged(lib: Any) -> Step:
    """Sets of different sizes, each by its mean."""
    nn, F = lib.nn, lib.nn.functional
    f, g = nn.Linear(5, 32), nn.Linear(32, 1)
    xs = [normal(lib, k, 5, seed=k) for k in (3, 7, 5, 9)]
    y = normal(lib, 4, 1)
    optimizer = lib.optim.Adam([*f.parameters(), *g.parameters()])
    return training(lambda: F.mse_loss(g(lib.stack([F.relu(f(x)).mean(0) for x in xs])), y), optimizer)


def gcn(lib: Any) -> Step:
    """Two layers of graph convolution, messages summed by index_add."""
    nn, F = lib.nn, lib.nn.functional
    n, e = 200, 800
    src, dst = integers(lib, n, e), integers(lib, n, e, seed=1)
    x, y = normal(lib, n, 16), integers(lib, 4, n, seed=2)
    w1, w2 = nn.Linear(16, 32), nn.Linear(32, 4)
    optimizer = lib.optim.Adam([*w1.parameters(), *w2.parameters()], 1e-2)
    deg = lib.zeros(n).index_add(0, dst, lib.ones(e)).clamp(min=1)

    def prop(h):
        return lib.zeros(n, h.shape[1]).index_add(0, dst, h[src]) / deg[:, None]

    return training(lambda: F.cross_entropy(prop(w2(F.relu(prop(w1(x))))), y), optimizer)


def gat(lib: Any) -> Step:
    """Attention over the edges of a graph."""
    nn, F = lib.nn, lib.nn.functional
    n, e = 60, 300
    s, d = integers(lib, n, e), integers(lib, n, e, seed=1)
    x, y = normal(lib, n, 8), integers(lib, 3, n, seed=2)
    W, a = nn.Linear(8, 16, bias=False), nn.Parameter(normal(lib, 32))
    out = nn.Linear(16, 3)
    optimizer = lib.optim.Adam([*W.parameters(), a, *out.parameters()])

    def loss():
        h = W(x)
        sc = F.leaky_relu(lib.cat([h[s], h[d]], 1) @ a, 0.2)
        ex = (sc - sc.max().detach()).exp()
        den = lib.zeros(n).scatter_add(0, d, ex)
        al = ex / (den[d] + 1e-9)
        return F.cross_entropy(out(F.elu(lib.zeros(n, 16).index_add(0, d, al[:, None] * h[s]))), y)

    return training(loss, optimizer)


def by_hand(lib: Any) -> Step:
    """Linear regression with its update written by hand."""
    X, y = normal(lib, 100, 5), normal(lib, 100, 1, seed=1)
    w = lib.zeros(5, 1, requires_grad=True)
    b = lib.zeros(1, requires_grad=True)

    def step():
        l = ((X @ w + b - y) ** 2).mean()
        l.backward()
        with lib.no_grad():
            w.sub_(0.01 * w.grad)
            b.sub_(0.01 * b.grad)
            w.grad.zero_()
            b.grad.zero_()
        return l.detach()

    return step
