"""One of everything, in seconds: the first thing to run after a change (``make smoke``)."""

from __future__ import annotations

import io

import numpy as np
import pytest

import autograd_nb as torch
from autograd_nb import nn
from autograd_nb.nn import functional as F

from .functions import Double


def test_gradient_by_hand():
    x = torch.tensor([[1.0, -2.0], [0.5, 3.0]], requires_grad=True)
    w = torch.tensor([[2.0], [-1.0]], requires_grad=True)
    y = torch.tanh(x @ w).square().mean()
    y.backward()
    t = np.tanh(x.detach().numpy() @ w.detach().numpy())
    g = t * (1 - t * t)  # d mean(t²)/dt · dt/d(xw), over 2 elements
    np.testing.assert_allclose(w.grad.numpy(), x.detach().numpy().T @ g, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(x.grad.numpy(), g @ w.detach().numpy().T, rtol=1e-4, atol=1e-6)


def test_graph_is_used_once():
    x = torch.ones(3, requires_grad=True)
    y = (x * x).sum()
    y.backward(retain_graph=True)
    y.backward()
    assert x.grad.tolist() == [4, 4, 4]
    with pytest.raises(RuntimeError, match="Trying to backward through the graph a second time"):
        y.backward()
    assert x.grad.tolist() == [4, 4, 4]


def test_views_in_place_and_indexing():
    x = torch.zeros(3, 4, requires_grad=True)
    y = x * 1
    y[1:, ::2] = 2
    y.t()[0].add_(1)
    y.sum().backward()
    assert y.tolist() == [[1, 0, 0, 0], [3, 0, 2, 0], [3, 0, 2, 0]]
    assert x.grad.tolist() == [[1, 1, 1, 1], [0, 1, 0, 1], [0, 1, 0, 1]]


def test_second_derivative_and_modes():
    x = torch.tensor(0.7, requires_grad=True)
    (g,) = torch.autograd.grad(x.exp(), x, create_graph=True)
    (h,) = torch.autograd.grad(g, x)
    assert h.item() == pytest.approx(np.exp(0.7), rel=1e-6)
    with torch.no_grad():
        assert not (x * 2).requires_grad


def test_own_function():
    x = torch.ones(2, requires_grad=True)
    Double.apply(x).sum().backward()
    assert x.grad.tolist() == [2, 2]


def network() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Conv2d(1, 2, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(18, 3))


def batch() -> tuple[torch.Tensor, torch.Tensor]:
    generator = np.random.default_rng(0)
    return torch.from_numpy(generator.normal(size=(4, 1, 8, 8)).astype("float32")), torch.tensor([0, 2, 1, 0])


def losses(compiled: bool) -> list[float]:
    model, (x, y) = network(), batch()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.05)

    def step(x, y):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return loss

    step = torch.compile(step) if compiled else step
    return [step(x, y).item() for _ in range(4)]


def test_training_eager_and_compiled():
    eager = losses(False)
    assert eager[-1] < eager[0] / 2
    assert losses(True) == pytest.approx(eager, rel=1e-4)


def test_data_and_files():
    x, y = batch()
    loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x, y), batch_size=3)
    assert [len(b) for _, b in loader] == [3, 1]
    model, file = network(), io.BytesIO()
    torch.save(model.state_dict(), file)
    file.seek(0)
    other = network()
    nn.init.zeros_(other[0].weight)
    other.load_state_dict(torch.load(file))
    assert torch.equal(other(x), model(x))


def test_transforms():
    xs = torch.tensor([1.0, 2.0])
    assert torch.func.vmap(torch.func.grad(lambda v: v * v))(xs).tolist() == [2, 4]
    out, tangent = torch.func.jvp(lambda v: v * v, (xs,), (torch.ones(2),))
    assert out.tolist() == [1, 4] and tangent.tolist() == [2, 4]


def test_own_op():
    @torch.pointwise
    def squared(x):
        return x * x

    x = torch.tensor([3.0], requires_grad=True)
    squared(x).backward()
    assert x.grad.tolist() == [6]


def test_bad_input():
    with pytest.raises(RuntimeError, match="The size of tensor a"):
        torch.ones(2) + torch.ones(3)
