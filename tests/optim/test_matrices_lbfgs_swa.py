"""LBFGS on hard functions, Adafactor and Muon against their formulas in NumPy, averages of weights."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import autograd_nb as torch
from autograd_nb import nn, optim
from autograd_nb.optim import swa_utils


def rosenbrock(p):
    return (100 * (p[1:] - p[:-1] ** 2) ** 2 + (1 - p[:-1]) ** 2).sum()


@pytest.mark.parametrize("options", [{"line_search_fn": "strong_wolfe"}, {"lr": 0.01, "max_iter": 5, "history_size": 5}], ids=["wolfe", "fixed"])
def test_lbfgs(options):
    p = nn.Parameter(torch.tensor([-1.2, 1.0, -0.5], dtype=torch.float64))
    o = optim.LBFGS([p], **options)
    calls = 0

    def closure():
        nonlocal calls
        calls += 1
        o.zero_grad()
        loss = rosenbrock(p)
        loss.backward()
        return loss

    first = o.step(closure).item()
    for _ in range(12):
        last = o.step(closure).item()
    state = o.state[p]
    assert state["func_evals"] == calls
    if "line_search_fn" in options:
        np.testing.assert_allclose(p.detach().numpy(), 1.0, atol=1e-6)
    else:
        assert last < first
        assert len(state["old_dirs"]) <= 5
        q = nn.Parameter(p.detach().clone())
        other = optim.LBFGS([q], **options)
        other.load_state_dict(pickle.loads(pickle.dumps(o.state_dict())))
        assert other.state[q]["n_iter"] == state["n_iter"]


def test_lbfgs_errors():
    a, b = nn.Parameter(torch.ones(1)), nn.Parameter(torch.ones(1))
    with pytest.raises(ValueError, match="LBFGS doesn't support per-parameter options"):
        optim.LBFGS([{"params": [a]}, {"params": [b]}])
    with pytest.raises(RuntimeError, match="only 'strong_wolfe' is supported"):
        optim.LBFGS([a], line_search_fn="armijo").step(lambda: a.sum())


def adafactor(p, gs, lr, decay=0.0, eps=(None, 1e-3), clip=1.0):
    rows = columns = variance = 0.0
    eps1 = np.finfo(p.dtype).eps if eps[0] is None else eps[0]
    for t, g in enumerate(gs, 1):
        new = t**-0.8
        alpha = max(eps[1], np.sqrt(np.mean(p**2))) * min(lr, 1 / np.sqrt(t))
        p = p * (1 - lr * decay)
        if g.ndim > 1:
            rows = rows + ((g**2).mean(-1, keepdims=True) - rows) * new
            columns = columns + ((g**2).mean(-2, keepdims=True) - columns) * new
            v = rows @ columns / np.maximum(rows.mean(-2, keepdims=True), eps1)
        else:
            v = variance = variance + (g**2 - variance) * new
        u = g / np.sqrt(np.maximum(v, eps1**2))
        p = p - alpha * u / max(1.0, np.sqrt(np.mean(u**2)) / clip)
    return p


@pytest.mark.parametrize("shape", [(5, 3), (2, 4, 3), (6,), ()])
def test_adafactor(shape):
    rng = np.random.default_rng(0)
    start, gs = rng.normal(size=shape), rng.normal(size=(6, *shape))
    p = nn.Parameter(torch.tensor(start))
    o = optim.Adafactor([p], lr=0.3, weight_decay=0.1)
    for g in gs:
        p.grad = torch.tensor(g)
        o.step()
    np.testing.assert_allclose(p.detach().numpy(), adafactor(start, gs, 0.3, 0.1), rtol=1e-10)
    assert p._version == 6


def test_muon():
    """The step is nearly orthogonal: its singular values lie about 1."""
    rng = np.random.default_rng(0)
    for shape in ((8, 3), (3, 8)):
        p = nn.Parameter(torch.zeros(shape))
        o = optim.Muon([p], lr=1.0, weight_decay=0.0)
        p.grad = torch.tensor(rng.normal(size=shape).astype("f4"))
        o.step()
        values = np.linalg.svd(p.detach().numpy() / np.sqrt(max(1, shape[0] / shape[1])), compute_uv=False)
        assert 0.6 < values.min() < values.max() < 1.3
        assert (p.grad * p.detach()).sum() < 0
    with pytest.raises(ValueError, match="Muon only supports 2D parameters whereas we found a parameter with size"):
        optim.Muon([nn.Parameter(torch.ones(3))])
    with pytest.raises(RuntimeError, match="please consider Adam"):
        optim.SparseAdam([p]).step()


def test_averages():
    model = nn.Linear(2, 1)
    plain = swa_utils.AveragedModel(model)
    moving = swa_utils.AveragedModel(model, multi_avg_fn=swa_utils.get_ema_multi_avg_fn(0.5))
    for value in (1.0, 2.0, 6.0):
        with torch.no_grad():
            model.weight.fill_(value)
        plain.update_parameters(model)
        moving.update_parameters(model)
    assert plain.module.weight.tolist() == [[3, 3]]
    assert moving.module.weight.tolist() == [[3.75, 3.75]]
    assert plain.n_averaged.item() == 3
    assert list(plain.state_dict()) == ["n_averaged", "module.weight", "module.bias"]
    o = optim.SGD(model.parameters(), lr=0.1)
    s = swa_utils.SWALR(o, 0.5, anneal_epochs=2, anneal_strategy="linear")
    rates = []
    for _ in range(4):
        o.step()
        s.step()
        rates.append(round(s.get_last_lr()[0], 12))
    assert rates == [0.3, 0.5, 0.5, 0.5]
    net = nn.Sequential(nn.BatchNorm1d(2))
    swa_utils.update_bn([torch.ones(4, 2), (torch.zeros(4, 2), 0)], net)
    assert net[0].running_mean.tolist() == [0.5, 0.5]


def test_line_search_by_pytorchs_arguments():
    """Packages take `_strong_wolfe` and `_cubic_interpolate`: the step found is PyTorch's, as its optimizer's is."""
    from autograd_nb.optim.lbfgs import _cubic_interpolate, _strong_wolfe

    def at(x, t, d):
        y = (x + t * d).requires_grad_()
        loss = (y**4).sum() + y.sum()
        (g,) = torch.autograd.grad(loss, y)
        return loss.item(), g

    x = torch.tensor([1.0, -2.0])
    loss, gradient = at(x, 0.0, torch.zeros(2))
    d = -gradient
    found, slope, t, calls = _strong_wolfe(at, x, 1.0, d, loss, gradient, gradient.dot(d))
    assert found < loss + 1e-4 * t * float(gradient.dot(d)) and abs(float(slope.dot(d))) <= 0.9 * abs(float(gradient.dot(d))) and 1 < calls < 26
    assert _cubic_interpolate(0.0, 1.0, torch.tensor(-2.0), 2.0, 1.0, torch.tensor(2.0)) == 1.0
    assert _cubic_interpolate(0.0, 1.0, -1.0, 1.0, -1.0, -4.0, bounds=(0.5, 1.5)) == 1.0
