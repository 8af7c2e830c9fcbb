"""Layers and ways of training that the other rooms do not have."""

from __future__ import annotations

from typing import Any

import numpy as np

from .common import Step, integers, normal, training


def cells_by_hand(lib: Any) -> Step:
    """An LSTM cell stepped through 25 characters in a loop."""
    nn = lib.nn
    cell, head = nn.LSTMCell(20, 48), nn.Linear(48, 20)
    x, y = normal(lib, 25, 16, 20), integers(lib, 20, 25, 16)

    def loss() -> Any:
        h, c, total = lib.zeros(16, 48), lib.zeros(16, 48), 0
        for k in range(25):
            h, c = cell(x[k], (h, c))
            total = total + nn.functional.cross_entropy(head(h), y[k])
        return total / 25

    return training(loss, lib.optim.Adam([*cell.parameters(), *head.parameters()]))


def bidirectional(lib: Any) -> Step:
    """Two layers of an LSTM both ways, with dropout between, and a loss for each word."""
    nn = lib.nn
    lstm, head = nn.LSTM(24, 32, 2, batch_first=True, bidirectional=True, dropout=0.2), nn.Linear(64, 9)
    x, y = normal(lib, 16, 30, 24), integers(lib, 9, 16, 30)
    loss = lambda: nn.functional.cross_entropy(head(lstm(x)[0]).transpose(1, 2), y)
    return training(loss, lib.optim.Adam([*lstm.parameters(), *head.parameters()]))


def double_precision(lib: Any) -> Step:
    """A network in float64."""
    nn = lib.nn
    net = nn.Sequential(nn.Linear(30, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 1)).double()
    x = lib.from_numpy(np.random.default_rng(0).normal(size=(200, 30)))
    return training(lambda: (net(x) ** 2).mean(), lib.optim.Adam(net.parameters()))


def autocast(lib: Any) -> Step:
    """A network under autocast to bfloat16."""
    nn = lib.nn
    net = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, 10))
    x, y = normal(lib, 64, 64), integers(lib, 10, 64)

    def loss() -> Any:
        with lib.autocast("cpu", dtype=lib.bfloat16):
            z = net(x)
        return nn.functional.cross_entropy(z.float(), y)

    return training(loss, lib.optim.SGD(net.parameters(), 0.1))


def weight_norms(lib: Any) -> Step:
    """Weights in norm and direction, and one whose largest singular value is held."""
    nn, P = lib.nn, lib.nn.utils.parametrizations
    net = nn.Sequential(P.weight_norm(nn.Linear(32, 64)), nn.ReLU(), P.spectral_norm(nn.Linear(64, 64)), nn.ReLU(), nn.Linear(64, 1))
    x = normal(lib, 64, 32)
    return training(lambda: (net(x) ** 2).mean(), lib.optim.Adam(net.parameters()))


def orthogonal(lib: Any) -> Step:
    """A recurrent weight held orthogonal by the exponential of a skew matrix, 15 steps."""
    a, b, x = normal(lib, 32, 32).mul(0.1).requires_grad_(), normal(lib, 32, 8, seed=1).requires_grad_(), normal(lib, 15, 8, 16, seed=2)

    def loss() -> Any:
        w, h = lib.linalg.matrix_exp(a - a.T), lib.zeros(32, 16)
        for k in range(15):
            h = (w @ h + b @ x[k]).tanh()
        return (h**2).mean()

    return training(loss, lib.optim.SGD([a, b], 0.1))


def deconvolutions(lib: Any) -> Step:
    """A generator of images by transposed convolutions, and the critic's convolutions."""
    nn = lib.nn
    make = nn.Sequential(
        nn.ConvTranspose2d(32, 32, 4), nn.BatchNorm2d(32), nn.ReLU(), nn.ConvTranspose2d(32, 16, 4, 2, 1), nn.BatchNorm2d(16), nn.ReLU(),
        nn.ConvTranspose2d(16, 1, 4, 2, 1), nn.Tanh(),
    )  # fmt: skip
    judge = nn.Sequential(nn.Conv2d(1, 16, 4, 2, 1), nn.LeakyReLU(0.2), nn.Conv2d(16, 32, 4, 2, 1), nn.LeakyReLU(0.2), nn.Conv2d(32, 1, 4))
    z = normal(lib, 16, 32, 1, 1)
    return training(lambda: nn.functional.softplus(-judge(make(z))).mean(), lib.optim.Adam([*make.parameters(), *judge.parameters()], 2e-4))


def speech(lib: Any) -> Step:
    """A separator of sounds: encoder, dilated depthwise convolutions, mask, decoder, and the ratio of signal to noise."""
    nn = lib.nn
    encode, decode = nn.Conv1d(1, 32, 16, 8), nn.ConvTranspose1d(32, 1, 16, 8)
    blocks = nn.Sequential(*[
        nn.Sequential(nn.Conv1d(32, 32, 3, padding=2**k, dilation=2**k, groups=32), nn.PReLU(), nn.GroupNorm(1, 32), nn.Conv1d(32, 32, 1))
        for k in range(4)
    ])  # fmt: skip
    x, wanted = normal(lib, 4, 1, 1600), normal(lib, 4, 1, 1600, seed=1)

    def loss() -> Any:
        z = encode(x).relu()
        y = decode(z * blocks(z).sigmoid())
        part = (y * wanted).sum(2, keepdim=True) / (wanted**2).sum(2, keepdim=True) * wanted
        return -(10 * ((part**2).sum(2) / ((y - part) ** 2).sum(2)).log10()).mean()

    return training(loss, lib.optim.Adam([*encode.parameters(), *decode.parameters(), *blocks.parameters()]))


def spectra(lib: Any) -> Step:
    """A loss of spectra at three lengths of window."""
    x, wanted = normal(lib, 2, 4000).requires_grad_(), normal(lib, 2, 4000, seed=1)
    windows = [lib.hann_window(n) for n in (64, 128, 256)]

    def loss() -> Any:
        total = 0
        for w in windows:
            a, b = (lib.stft(t, len(w), len(w) // 4, window=w, return_complex=True).abs() for t in (x, wanted))
            total = total + (a - b).abs().mean() + ((a + 1e-5).log() - (b + 1e-5).log()).abs().mean()
        return total

    return training(loss, lib.optim.Adam([x], 1e-2))


def linear_attention(lib: Any) -> Step:
    """Causal attention without a softmax, by running sums."""
    nn, F = lib.nn, lib.nn.functional
    qkv, out = nn.Linear(32, 96), nn.Linear(32, 32)
    x = normal(lib, 4, 64, 32)

    def loss() -> Any:
        q, k, v = qkv(x).chunk(3, -1)
        q, k = F.elu(q) + 1, F.elu(k) + 1
        kv = lib.einsum("btd,bte->btde", k, v).cumsum(1)
        y = lib.einsum("btd,btde->bte", q, kv) / (q * k.cumsum(1)).sum(-1, keepdim=True)
        return (out(y) ** 2).mean()

    return training(loss, lib.optim.Adam([*qkv.parameters(), *out.parameters()]))


def rotary(lib: Any) -> Step:
    """Attention with rotary positions, root mean square norms and a gated MLP, as in Llama."""
    nn, F = lib.nn, lib.nn.functional
    qkv, out = nn.Linear(64, 192, False), nn.Linear(64, 64, False)
    gate, up, down = nn.Linear(64, 128, False), nn.Linear(64, 128, False), nn.Linear(128, 64, False)
    n1, n2 = nn.RMSNorm(64), nn.RMSNorm(64)
    x = normal(lib, 4, 32, 64)
    angle = lib.arange(32)[:, None] / 10000 ** (lib.arange(0, 16, 2) / 16)
    cos, sin = angle.cos(), angle.sin()

    def turned(t: Any) -> Any:
        a, b = t[..., ::2], t[..., 1::2]
        return lib.stack([a * cos - b * sin, a * sin + b * cos], -1).flatten(-2)

    def loss() -> Any:
        q, k, v = (t.view(4, 32, 4, 16).transpose(1, 2) for t in qkv(n1(x)).chunk(3, -1))
        y = F.scaled_dot_product_attention(turned(q), turned(k), v, is_causal=True)
        h = x + out(y.transpose(1, 2).reshape(4, 32, 64))
        z = n2(h)
        return ((h + down(F.silu(gate(z)) * up(z))) ** 2).mean()

    modules = (qkv, out, gate, up, down, n1, n2)
    return training(loss, lib.optim.AdamW([p for m in modules for p in m.parameters()]))


def capsules(lib: Any) -> Step:
    """Capsules routed by agreement, three rounds."""
    w, u = normal(lib, 32, 10, 8, 16).mul(0.1).requires_grad_(), normal(lib, 16, 32, 8, seed=1)

    def squashed(s: Any) -> Any:
        n = (s**2).sum(-1, keepdim=True)
        return n / (1 + n) * s / (n + 1e-8).sqrt()

    def loss() -> Any:
        votes = lib.einsum("nid,ijde->nije", u, w)
        logits = lib.zeros(16, 32, 10)
        for k in range(3):
            v = squashed((logits.softmax(2)[..., None] * votes).sum(1))
            if k < 2:
                logits = logits + (votes * v[:, None]).sum(-1)
        return (0.9 - v.norm(dim=-1)).clamp(min=0).pow(2).mean()

    return training(loss, lib.optim.Adam([w]))


def squeeze_excite(lib: Any) -> Step:
    """A residual block with squeeze and excitation, and stochastic depth."""
    nn = lib.nn
    first, second = (nn.Sequential(nn.Conv2d(16, 16, 3, padding=1, bias=False), nn.BatchNorm2d(16)) for _ in range(2))
    body = nn.Sequential(first, nn.SiLU(), second)
    squeeze = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Conv2d(16, 4, 1), nn.ReLU(), nn.Conv2d(4, 16, 1), nn.Sigmoid())
    x = normal(lib, 8, 16, 16, 16)

    def loss() -> Any:
        y = body(x)
        alive = (lib.rand(8, 1, 1, 1) < 0.8).float() / 0.8
        return (x + alive * y * squeeze(y)).relu().mean()

    return training(loss, lib.optim.SGD([*body.parameters(), *squeeze.parameters()], 0.1, momentum=0.9, weight_decay=1e-4))


def sage(lib: Any) -> Step:
    """GraphSAGE with means and maxima by scatters."""
    nn, F = lib.nn, lib.nn.functional
    first, second = nn.Linear(48, 32), nn.Linear(96, 4)
    source, target, x, y = integers(lib, 200, 1000), integers(lib, 200, 1000, seed=1), normal(lib, 200, 16), integers(lib, 4, 200, seed=2)

    def around(h: Any) -> Any:
        at = target[:, None].expand(-1, h.shape[1])
        messages = h[source]
        count = lib.zeros(200, 1).scatter_add(0, target[:, None], lib.ones(1000, 1)).clamp(min=1)
        mean = lib.zeros(200, h.shape[1]).scatter_add(0, at, messages) / count
        most = lib.zeros(200, h.shape[1]).scatter_reduce(0, at, messages, "amax", include_self=False)
        return lib.cat([h, mean, most], 1)

    loss = lambda: F.cross_entropy(second(around(F.relu(first(around(x))))), y)
    return training(loss, lib.optim.Adam([*first.parameters(), *second.parameters()], 1e-2))


def equilibrium(lib: Any) -> Step:
    """A deep equilibrium: a fixed point without a graph, and one step through it."""
    nn = lib.nn
    f, inject = nn.Linear(32, 32), nn.Linear(16, 32)
    x = normal(lib, 32, 16)

    def loss() -> Any:
        u = inject(x)
        with lib.no_grad():
            z = lib.zeros(32, 32)
            for _ in range(15):
                z = (0.5 * f(z) + u).tanh()
        return ((0.5 * f(z) + u).tanh() ** 2).mean()

    return training(loss, lib.optim.Adam([*f.parameters(), *inject.parameters()]))


def checkpointed(lib: Any) -> Step:
    """Four blocks, each computed again in the backward pass."""
    nn, again = lib.nn, lib.utils.checkpoint.checkpoint
    blocks = nn.ModuleList([nn.Sequential(nn.Linear(64, 64), nn.GELU(), nn.Linear(64, 64)) for _ in range(4)])
    x = normal(lib, 64, 64)

    def loss() -> Any:
        h = x
        for b in blocks:
            h = h + again(b, h, use_reentrant=False)
        return (h**2).mean()

    return training(loss, lib.optim.Adam(blocks.parameters()))


def many_parameters(lib: Any) -> Step:
    """A hundred small layers, NAdam with a schedule, gradients clipped by value."""
    nn = lib.nn
    net = nn.Sequential(*[nn.Sequential(nn.Linear(8, 8), nn.Tanh()) for _ in range(100)])
    x = normal(lib, 16, 8)
    optimizer = lib.optim.NAdam(net.parameters(), 1e-3)
    schedule = lib.optim.lr_scheduler.CosineAnnealingLR(optimizer, 1000)

    def step() -> Any:
        optimizer.zero_grad()
        loss = (net(x) ** 2).mean()
        loss.backward()
        nn.utils.clip_grad_value_(net.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        return loss.item()

    return step


def conjugate_gradients(lib: Any) -> Step:
    """Five steps of conjugate gradients with products by the Hessian."""
    nn = lib.nn
    net = nn.Sequential(nn.Linear(10, 20), nn.Tanh(), nn.Linear(20, 1))
    x, parameters = normal(lib, 64, 10), list(net.parameters())

    def step() -> Any:
        loss = (net(x) ** 2).mean()
        grads = lib.autograd.grad(loss, parameters, create_graph=True)
        flat = lib.cat([g.reshape(-1) for g in grads])
        r = -flat.detach()
        p, s = r.clone(), lib.zeros_like(r)
        for _ in range(5):
            hp = lib.cat([h.reshape(-1) for h in lib.autograd.grad((flat * p).sum(), parameters, retain_graph=True)]) + 0.1 * p
            a = (r @ r) / (p @ hp)
            s, new = s + a * p, r - a * hp
            p, r = new + (new @ new) / (r @ r) * p, new
        return s

    return step


def masked_autoencoder(lib: Any) -> Step:
    """Patches are left out at random: an argsort of noise, gathers, and tokens in their places."""
    nn = lib.nn
    embed, layer, head = nn.Linear(48, 32), nn.TransformerEncoderLayer(32, 4, 64, batch_first=True, dropout=0.0), nn.Linear(32, 48)
    token, x = nn.Parameter(normal(lib, 1, 1, 32)), normal(lib, 8, 16, 48, seed=1)

    def loss() -> Any:
        order = lib.rand(8, 16).argsort(1)
        back = order.argsort(1)
        kept = embed(x).gather(1, order[:, :4, None].expand(-1, -1, 32))
        full = lib.cat([layer(kept), token.expand(8, 12, 32)], 1).gather(1, back[..., None].expand(-1, -1, 32))
        mask = (back >= 4).float()
        return (((head(full) - x) ** 2).mean(-1) * mask).sum() / mask.sum()

    return training(loss, lib.optim.AdamW([*embed.parameters(), *layer.parameters(), *head.parameters(), token]))


def hypernetwork(lib: Any) -> Step:
    """A network whose weights another network makes, for each example."""
    nn = lib.nn
    make = nn.Sequential(nn.Linear(6, 32), nn.ReLU(), nn.Linear(32, 8 * 4 + 8 + 8))
    context, x = normal(lib, 32, 6), normal(lib, 32, 20, 4, seed=1)

    def loss() -> Any:
        w1, b1, w2 = make(context).split([32, 8, 8], 1)
        h = (lib.bmm(x, w1.view(32, 4, 8)) + b1[:, None]).tanh()
        return (lib.bmm(h, w2[..., None]) ** 2).mean()

    return training(loss, lib.optim.Adam(make.parameters()))
