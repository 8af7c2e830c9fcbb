"""Texts and series."""

from __future__ import annotations

from typing import Any

from .common import Step, integers, normal, training


def gru_classifier(lib: Any) -> Step:
    """A text is read by a GRU and told apart by its last state."""
    nn, F = lib.nn, lib.nn.functional
    emb, gru, fc = nn.Embedding(500, 32), nn.GRU(32, 48, batch_first=True), nn.Linear(48, 5)
    parameters = [*emb.parameters(), *gru.parameters(), *fc.parameters()]
    x, y = integers(lib, 500, 16, 25), integers(lib, 5, 16, seed=1)
    return training(lambda: F.cross_entropy(fc(gru(emb(x))[1][-1]), y), lib.optim.Adam(parameters))


def lstm_lm(lib: Any) -> Step:
    """A language model of two LSTM layers, gradients clipped by their norm."""
    nn, F = lib.nn, lib.nn.functional
    emb, l, fc = nn.Embedding(300, 64), nn.LSTM(64, 64, 2), nn.Linear(64, 300)
    x, y = integers(lib, 300, 20, 8), integers(lib, 300, 20, 8, seed=1)
    parameters = [*emb.parameters(), *l.parameters(), *fc.parameters()]
    optimizer = lib.optim.SGD(parameters, 1.0)

    def step():
        optimizer.zero_grad()
        out, _ = l(emb(x))
        ls = F.cross_entropy(fc(out).view(-1, 300), y.view(-1))
        ls.backward()
        nn.utils.clip_grad_norm_(parameters, 0.25)
        optimizer.step()
        return ls.detach()

    return step


def wavenet(lib: Any) -> Step:
    """Gated dilated convolutions with skip connections."""
    nn, F = lib.nn, lib.nn.functional
    cs = nn.ModuleList([nn.Conv1d(16, 32, 2, dilation=2**i) for i in range(4)])
    rs = nn.ModuleList([nn.Conv1d(16, 16, 1) for _ in range(4)])
    x = normal(lib, 4, 16, 128)
    optimizer = lib.optim.Adam([*cs.parameters(), *rs.parameters()])

    def loss():
        h, skip = x, 0
        for i, (c, r) in enumerate(zip(cs, rs)):
            a, b = c(F.pad(h, (2**i, 0))).chunk(2, 1)
            g = lib.tanh(a) * lib.sigmoid(b)
            s = r(g)
            skip = skip + s
            h = h + s
        return skip.pow(2).mean()

    return training(loss, optimizer)


def ctc(lib: Any) -> Step:
    """A bidirectional LSTM under the CTC loss."""
    nn, F = lib.nn, lib.nn.functional
    l, fc = nn.LSTM(20, 32, bidirectional=True), nn.Linear(64, 12)
    x, y = normal(lib, 30, 4, 20), integers(lib, 11, 4, 8) + 1
    il, tl = lib.full((4,), 30, dtype=lib.long), lib.full((4,), 8, dtype=lib.long)
    optimizer = lib.optim.Adam([*l.parameters(), *fc.parameters()])
    return training(lambda: F.ctc_loss(F.log_softmax(fc(l(x)[0]), 2), y, il, tl), optimizer)


def seq2seq_attention(lib: Any) -> Step:
    """An encoder and a decoder with attention, step by step."""
    nn, F = lib.nn, lib.nn.functional
    enc, dec, emb, fc, at = nn.GRU(16, 32), nn.GRUCell(48, 32), nn.Embedding(50, 16), nn.Linear(64, 50), nn.Linear(32, 32)
    s, t = integers(lib, 50, 10, 8), integers(lib, 50, 10, 8, seed=1)
    optimizer = lib.optim.Adam([p for m in (enc, dec, emb, fc, at) for p in m.parameters()])

    def loss():
        H, h = enc(emb(s))
        h = h[0]
        c = lib.zeros(8, 32)
        l = 0
        e = emb(t)
        for i in range(9):
            h = dec(lib.cat([e[i], c], 1), h)
            w = lib.softmax((at(H) * h).sum(-1), 0)
            c = (w.unsqueeze(-1) * H).sum(0)
            l = l + F.cross_entropy(fc(lib.cat([h, c], 1)), t[i + 1])
        return l / 9

    return training(loss, optimizer)


def crf(lib: Any) -> Step:
    """The likelihood of a linear-chain CRF."""
    nn = lib.nn
    tr = nn.Parameter(normal(lib, 6, 6))
    em = nn.Linear(10, 6)
    x, tags = normal(lib, 12, 8, 10), integers(lib, 6, 12, 8)
    optimizer = lib.optim.Adam([tr, *em.parameters()])
    r = lib.arange(8)

    def loss():
        e = em(x)
        a = e[0]
        s = e[0][r, tags[0]]
        for t in range(1, 12):
            a = lib.logsumexp(a.unsqueeze(2) + tr, 1) + e[t]
            s = s + tr[tags[t - 1], tags[t]] + e[t][r, tags[t]]
        return (lib.logsumexp(a, 1) - s).mean()

    return training(loss, optimizer)


def greedy_decode(lib: Any) -> Step:
    """Twelve words from a GRU cell, one after the other, no gradient."""
    nn = lib.nn
    e, g, f = nn.Embedding(40, 24), nn.GRUCell(24, 24), nn.Linear(24, 40)

    def step():
        with lib.no_grad():
            t, h = lib.zeros(4, dtype=lib.long), lib.zeros(4, 24)
            out = []
            for _ in range(12):
                h = g(e(t), h)
                t = f(h).argmax(-1)
                out.append(t)
            return lib.stack(out, 1)

    return step


def packed_lstm(lib: Any) -> Step:
    """An LSTM over packed sequences."""
    nn, F = lib.nn, lib.nn.functional
    l = nn.LSTM(8, 16, batch_first=True)
    fc = nn.Linear(16, 2)
    x = normal(lib, 5, 12, 8)
    ln = lib.tensor([12, 9, 7, 4, 2])
    y = integers(lib, 2, 5)
    optimizer = lib.optim.Adam([*l.parameters(), *fc.parameters()])

    def loss():
        p = nn.utils.rnn.pack_padded_sequence(x, ln, batch_first=True)
        _, (h, _) = l(p)
        return F.cross_entropy(fc(h[-1]), y)

    return training(loss, optimizer)


def soft_dtw(lib: Any) -> Step:
    """Soft dynamic time warping, cell by cell."""
    nn = lib.nn
    x, y = nn.Parameter(normal(lib, 10, 2)), normal(lib, 10, 2, seed=1)
    optimizer = lib.optim.SGD([x], 0.01)

    def loss():
        D = lib.cdist(x, y)
        R = [[None] * 11 for _ in range(11)]
        inf = lib.tensor(1e4)
        for i in range(11):
            for j in range(11):
                if i == 0 or j == 0:
                    R[i][j] = lib.tensor(0.0) if i == j else inf
                else:
                    R[i][j] = D[i - 1, j - 1] - lib.logsumexp(-lib.stack([R[i - 1][j - 1], R[i - 1][j], R[i][j - 1]]), 0)
        return R[10][10]

    return training(loss, optimizer)


def word2vec(lib: Any) -> Step:
    """Skip-gram with negative samples."""
    nn, F = lib.nn, lib.nn.functional
    u, v = nn.Embedding(2000, 50), nn.Embedding(2000, 50)
    c, p, n = integers(lib, 2000, 64), integers(lib, 2000, 64, seed=1), integers(lib, 2000, 64, 5, seed=2)
    optimizer = lib.optim.SGD([*u.parameters(), *v.parameters()], 0.1)

    def loss():
        e = u(c)
        return -(F.logsigmoid((e * v(p)).sum(1)) + F.logsigmoid(-lib.bmm(v(n), e.unsqueeze(2)).squeeze(2)).sum(1)).mean()

    return training(loss, optimizer)
