"""Recommenders, tables, probabilistic models and losses by order."""

from __future__ import annotations

from typing import Any

from .common import Step, integers, normal, training


def factorization_machine(lib: Any) -> Step:
    """A factorization machine of ten fields."""
    nn = lib.nn
    v, w = nn.Embedding(1000, 8), nn.Embedding(1000, 1)
    x, y = integers(lib, 1000, 128, 10), normal(lib, 128).sigmoid().round()

    def loss() -> Any:
        e = v(x)
        pairs = 0.5 * (e.sum(1) ** 2 - (e**2).sum(1)).sum(1)
        return nn.functional.binary_cross_entropy_with_logits(w(x).sum((1, 2)) + pairs, y)

    return training(loss, lib.optim.Adagrad([*v.parameters(), *w.parameters()], 0.05))


def deep_cross(lib: Any) -> Step:
    """Deep and cross network on numbers and categories."""
    nn = lib.nn
    embedding = nn.Embedding(500, 8)
    cross = nn.ParameterList([nn.Parameter(normal(lib, 48, seed=k) * 0.1) for k in range(3)])
    deep, head = nn.Sequential(nn.Linear(48, 64), nn.ReLU(), nn.Dropout(0.2), nn.Linear(64, 32), nn.ReLU()), nn.Linear(80, 1)
    x, c, y = normal(lib, 128, 8), integers(lib, 500, 128, 5), (normal(lib, 128, 1, seed=1) > 0).float()

    def loss() -> Any:
        x0 = lib.cat([x, embedding(c).flatten(1)], 1)
        xl = x0
        for w in cross:
            xl = x0 * (xl @ w)[:, None] + xl
        return nn.functional.binary_cross_entropy_with_logits(head(lib.cat([xl, deep(x0)], 1)), y)

    every = [*embedding.parameters(), *cross, *deep.parameters(), *head.parameters()]
    return training(loss, lib.optim.AdamW(every, 1e-3))


def bags(lib: Any) -> Step:
    """Texts as means of words, with offsets."""
    nn = lib.nn
    bag, head = nn.EmbeddingBag(2000, 32, mode="mean"), nn.Linear(32, 4)
    words, offsets, y = integers(lib, 2000, 1200), lib.arange(0, 1200, 20), integers(lib, 4, 60)
    return training(lambda: nn.functional.cross_entropy(head(bag(words, offsets)), y), lib.optim.SGD([*bag.parameters(), *head.parameters()], 0.5))


def autorec(lib: Any) -> Step:
    """An autoencoder of ratings, those that are missing left out."""
    nn = lib.nn
    net = nn.Sequential(nn.Linear(400, 64), nn.Sigmoid(), nn.Linear(64, 400))
    x = normal(lib, 64, 400)
    known = (normal(lib, 64, 400, seed=1) > 1).float()
    return training(lambda: (((net(x * known) - x) * known) ** 2).sum() / known.sum(), lib.optim.RMSprop(net.parameters(), 1e-3))


def bpr(lib: Any) -> Step:
    """Pairs are ranked: users' items before others, drawn anew."""
    nn, F = lib.nn, lib.nn.functional
    users, items = nn.Embedding(300, 16), nn.Embedding(800, 16)
    u, i = integers(lib, 300, 256), integers(lib, 800, 256, seed=1)

    def loss() -> Any:
        j = lib.randint(0, 800, (256,))
        p, q, n = users(u), items(i), items(j)
        return -F.logsigmoid((p * (q - n)).sum(1)).mean() + 1e-4 * (p.norm() + q.norm() + n.norm())

    return training(loss, lib.optim.Adam([*users.parameters(), *items.parameters()]))


def mixed_table(lib: Any) -> Step:
    """Gated residual blocks with layer norm on a table, focal loss, gradients clipped."""
    nn = lib.nn

    class Block(nn.Module):  # type: ignore[name-defined, misc]
        def __init__(self) -> None:
            super().__init__()
            self.norm, self.wide, self.gate, self.back = nn.LayerNorm(32), nn.Linear(32, 64), nn.Linear(32, 64), nn.Linear(64, 32)

        def forward(self, x: Any) -> Any:
            z = self.norm(x)
            return x + self.back(nn.functional.gelu(self.wide(z)) * self.gate(z).sigmoid())

    net = nn.Sequential(nn.Linear(12, 32), Block(), Block(), nn.Linear(32, 3))
    x, y = normal(lib, 256, 12), integers(lib, 3, 256)
    optimizer = lib.optim.AdamW(net.parameters(), 1e-3, weight_decay=0.01)

    def step() -> Any:
        optimizer.zero_grad()
        log_p = net(x).log_softmax(1).gather(1, y[:, None])[:, 0]
        loss = (-((1 - log_p.exp()) ** 2) * log_p).mean()
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        optimizer.step()
        return loss.detach()

    return step


def iwae(lib: Any) -> Step:
    """An importance-weighted autoencoder: eight samples each, by torch.distributions."""
    nn, D = lib.nn, lib.distributions
    encoder, decoder = nn.Sequential(nn.Linear(50, 64), nn.Tanh(), nn.Linear(64, 16)), nn.Sequential(nn.Linear(8, 64), nn.Tanh(), nn.Linear(64, 50))
    x = (normal(lib, 32, 50) > 0).float()

    def loss() -> Any:
        mean, scale = encoder(x).chunk(2, 1)
        q = D.Normal(mean, scale.exp())
        z = q.rsample((8,))
        log_w = D.Bernoulli(logits=decoder(z)).log_prob(x).sum(2) + D.Normal(0.0, 1.0).log_prob(z).sum(2) - q.log_prob(z).sum(2)
        return -log_w.logsumexp(0).mean()

    return training(loss, lib.optim.Adam([*encoder.parameters(), *decoder.parameters()]))


def mixture_by_hand(lib: Any) -> Step:
    """Logits, means and scales of a mixture, by MixtureSameFamily."""
    D = lib.distributions
    logits, mean, scale = lib.zeros(5).requires_grad_(), normal(lib, 5, 2).requires_grad_(), lib.zeros(5, 2).requires_grad_()
    x = normal(lib, 200, 2, seed=1)

    def loss() -> Any:
        parts = D.Independent(D.Normal(mean, scale.exp()), 1)
        return -D.MixtureSameFamily(D.Categorical(logits=logits), parts).log_prob(x).mean()

    return training(loss, lib.optim.Adam([logits, mean, scale], 1e-2))


def wasserstein(lib: Any) -> Step:
    """Sliced Wasserstein distance of two clouds, by sorting."""
    x, y = normal(lib, 256, 8).requires_grad_(), normal(lib, 256, 8, seed=1)

    def loss() -> Any:
        d = lib.nn.functional.normalize(lib.randn(8, 32), dim=0)
        return ((x @ d).sort(0).values - (y @ d).sort(0).values).abs().mean()

    return training(loss, lib.optim.SGD([x], 1.0))


def sinkhorn(lib: Any) -> Step:
    """Optimal transport of two clouds by 20 rounds in logarithms."""
    x, y = normal(lib, 64, 3).requires_grad_(), normal(lib, 64, 3, seed=1)

    def loss() -> Any:
        cost = ((x[:, None] - y[None]) ** 2).sum(2)
        k, u, v = -cost / 0.5, lib.zeros(64), lib.zeros(64)
        for _ in range(20):
            u = -(k + v[None]).logsumexp(1)
            v = -(k + u[:, None]).logsumexp(0)
        return ((k + u[:, None] + v[None]).exp() * cost).sum()

    return training(loss, lib.optim.SGD([x], 0.1))


def hard_examples(lib: Any) -> Step:
    """The worst fifth of a batch is learnt from; labels are smoothed."""
    nn, F = lib.nn, lib.nn.functional
    net = nn.Sequential(nn.Linear(30, 64), nn.LeakyReLU(0.1), nn.Linear(64, 10))
    x, y = normal(lib, 200, 30), integers(lib, 10, 200)
    loss = lambda: F.cross_entropy(net(x), y, reduction="none", label_smoothing=0.1).topk(40).values.mean()
    return training(loss, lib.optim.SGD(net.parameters(), 0.1, momentum=0.9, nesterov=True))


def spline_flow(lib: Any) -> Step:
    """Rational quadratic splines: softmax, cumsum, searchsorted and gathers."""
    nn, F = lib.nn, lib.nn.functional
    net = nn.Sequential(nn.Linear(2, 32), nn.ReLU(), nn.Linear(32, 16))
    condition, x = normal(lib, 128, 2), normal(lib, 128, seed=1).sigmoid()

    def loss() -> Any:
        w, h = net(condition).chunk(2, 1)
        w, h = F.softmax(w, 1), F.softmax(h, 1)
        left, low = F.pad(w.cumsum(1), (1, 0))[:, :-1], F.pad(h.cumsum(1), (1, 0))[:, :-1]
        at = (lib.searchsorted(left.detach().contiguous(), x[:, None], right=True) - 1).clamp(0, 7)
        wk, hk, xk, yk = (t.gather(1, at)[:, 0] for t in (w, h, left, low))
        y = yk + (x - xk) / wk * hk
        return -(hk / wk).log().mean() + ((y - 0.5) ** 2).mean()

    return training(loss, lib.optim.Adam(net.parameters()))


def dataloader(lib: Any) -> Step:
    """A pass over 640 rows by a DataLoader that shuffles."""
    nn, data = lib.nn, lib.utils.data
    net = nn.Linear(10, 3)
    rows = data.DataLoader(data.TensorDataset(normal(lib, 640, 10), integers(lib, 3, 640)), batch_size=64, shuffle=True)
    optimizer = lib.optim.SGD(net.parameters(), 0.1)

    def step() -> Any:
        total = 0.0
        for x, y in rows:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(net(x), y)
            loss.backward()
            optimizer.step()
            total += loss.item()
        return total

    return step
