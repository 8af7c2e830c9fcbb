"""Tensors that a function leaves in attributes and dicts: each run leaves new ones; who reads the last ones runs eagerly."""

from __future__ import annotations

import warnings

import pytest

import autograd_nb as torch
from autograd_nb import nn
from autograd_nb.nn import functional as F


class ContentLoss(nn.Module):
    """A layer that passes on what it is given, and keeps how far it is from a target."""

    def __init__(self, target):
        super().__init__()
        self.target = target.detach()
        self.loss = None

    def forward(self, x):
        self.loss = F.mse_loss(x, self.target)
        return x


@pytest.fixture
def model():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 4), ContentLoss(torch.ones(2, 4)), nn.Tanh(), ContentLoss(torch.zeros(2, 4)))


def test_losses_that_layers_keep(model):
    compiled = torch.compile(model, fullgraph=True)
    earlier = []
    for i in range(5):
        x = torch.full((2, 3), float(i), requires_grad=True)
        model(x)
        wanted = [model[1].loss, model[3].loss]
        (g,) = torch.autograd.grad(wanted[0] + 2 * wanted[1], x)
        y = compiled(x)
        kept = [model[1].loss, model[3].loss]
        torch.testing.assert_close(y, model[2](model[0](x)))
        for a, b in zip(kept, wanted, strict=True):
            assert a is not b
            torch.testing.assert_close(a, b)
        (h,) = torch.autograd.grad(kept[0] + 2 * kept[1], x)
        torch.testing.assert_close(h, g)
        earlier.append((kept[0], wanted[0].item()))
    assert len(compiled.programs) == 1
    assert all(t.item() == pytest.approx(v) for t, v in earlier)  # each run leaves a tensor of its own


def test_who_reads_the_last_one_runs_eagerly():
    class Average(nn.Module):
        def __init__(self):
            super().__init__()
            self.mean = torch.zeros(2)

        def forward(self, x):
            self.mean = 0.5 * self.mean + 0.5 * x
            return self.mean * 2

    m, e = Average(), Average()
    compiled = torch.compile(m)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for i in range(8):
            x = torch.tensor([1.0, float(i)])
            torch.testing.assert_close(compiled(x), e(x))
            torch.testing.assert_close(m.mean, e.mean)


def test_branches_on_what_is_kept():
    class First(nn.Module):
        def __init__(self):
            super().__init__()
            self.seen = None

        def forward(self, x):
            y = x * 2 if self.seen is None else x * 3
            self.seen = x + 1
            return y

    m, e = First(), First()
    compiled = torch.compile(m)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for i in range(12):
            if i in (6, 9):
                m.seen = e.seen = None
            x = torch.tensor([float(i)])
            assert compiled(x).item() == e(x).item()
            assert m.seen.item() == e.seen.item()


def test_kept_only_sometimes():
    class Sometimes(nn.Module):
        def __init__(self):
            super().__init__()
            self.keep, self.last = True, None

        def forward(self, x):
            if self.keep:
                self.last = x * 5
            return x + 1

    m, e = Sometimes(), Sometimes()
    compiled = torch.compile(m)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for i in range(16):
            m.keep = e.keep = i % 8 < 5
            x = torch.tensor([float(i)])
            assert compiled(x).item() == e(x).item()
            assert m.last.item() == e.last.item()


def test_results_in_a_dict():
    out: dict = {}

    @torch.compile(fullgraph=True)
    def f(x):
        out["square"] = x * x
        return x + 1

    for i in range(6):
        assert f(torch.tensor([float(i)])).item() == i + 1
        assert out["square"].item() == i * i
    assert len(f.programs) == 1
