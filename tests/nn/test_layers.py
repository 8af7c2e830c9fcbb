"""Layers and losses against NumPy; training one small model; initial weights."""

from __future__ import annotations

import math

import numpy as np
import pytest

import autograd_nb as torch
from autograd_nb import nn


@pytest.fixture(autouse=True)
def seeded():
    torch.manual_seed(1)


def array(t):
    return t.detach().numpy().astype(np.float64)


def test_linear():
    m = nn.Linear(4, 3)
    x = torch.randn(2, 5, 4)
    np.testing.assert_allclose(array(m(x)), array(x) @ array(m.weight).T + array(m.bias), rtol=1e-5, atol=1e-6)
    assert nn.Linear(4, 3, bias=False).bias is None
    assert nn.Linear(4, 3, dtype=torch.float64).weight.dtype is torch.float64
    a = nn.Bilinear(2, 3, 4)
    u, v = torch.randn(5, 2), torch.randn(5, 3)
    expected = np.einsum("bi,oij,bj->bo", array(u), array(a.weight), array(v)) + array(a.bias)
    np.testing.assert_allclose(array(a(u, v)), expected, rtol=1e-4, atol=1e-5)


def test_conv2d():
    m = nn.Conv2d(2, 3, 3, stride=2, padding=1)
    x = torch.randn(2, 2, 7, 6)
    padded = np.pad(array(x), ((0, 0), (0, 0), (1, 1), (1, 1)))
    y = array(m(x))
    expected = np.zeros_like(y)
    for i in range(y.shape[2]):
        for j in range(y.shape[3]):
            window = padded[:, :, 2 * i : 2 * i + 3, 2 * j : 2 * j + 3]
            expected[:, :, i, j] = np.einsum("nchw,ochw->no", window, array(m.weight)) + array(m.bias)
    np.testing.assert_allclose(y, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("module", "shape", "out"),
    [
        (nn.Conv1d(2, 4, 3), (5, 2, 9), (5, 4, 7)),
        (nn.Conv2d(2, 4, 3, padding="same"), (5, 2, 9, 8), (5, 4, 9, 8)),
        (nn.Conv2d(2, 4, 3, padding=1, padding_mode="circular"), (2, 9, 8), (4, 9, 8)),
        (nn.Conv3d(2, 4, 2), (1, 2, 5, 6, 7), (1, 4, 4, 5, 6)),
        (nn.ConvTranspose2d(2, 4, 3, stride=2), (5, 2, 4, 4), (5, 4, 9, 9)),
        (nn.MaxPool2d(2), (5, 2, 9, 8), (5, 2, 4, 4)),
        (nn.MaxPool2d(3, 2, 1, ceil_mode=True), (5, 2, 8, 8), (5, 2, 5, 5)),
        (nn.AvgPool2d(2), (2, 9, 8), (2, 4, 4)),
        (nn.AdaptiveAvgPool2d((1, None)), (5, 2, 9, 8), (5, 2, 1, 8)),
        (nn.Flatten(), (5, 2, 3, 4), (5, 24)),
        (nn.Unflatten(1, (2, 3)), (5, 6), (5, 2, 3)),
        (nn.Embedding(5, 3), None, (2, 4, 3)),
        (nn.GLU(), (5, 6), (5, 3)),
        (nn.PixelShuffle(2), (1, 8, 3, 3), (1, 2, 6, 6)),
        (nn.ZeroPad2d((1, 2, 3, 4)), (1, 1, 2, 2), (1, 1, 9, 5)),
    ],
    ids=lambda v: type(v).__name__ if isinstance(v, nn.Module) else "",
)
def test_shapes(module, shape, out):
    x = torch.randint(0, 5, (2, 4)) if shape is None else torch.randn(shape, requires_grad=True)
    y = module(x)
    assert tuple(y.shape) == out
    y.sum().backward()
    assert all(p.grad is not None and p.grad.shape == p.shape for p in module.parameters())


def test_output_size_of_transposed_convolutions():
    m = nn.ConvTranspose2d(1, 1, 3, stride=2, padding=1)
    x = torch.randn(1, 1, 5, 5)
    assert m(x).shape == (1, 1, 9, 9)
    assert m(x, output_size=(10, 9)).shape == (1, 1, 10, 9)
    with pytest.raises(ValueError, match="requested an output size of"):
        m(x, output_size=(12, 9))


def test_batch_norm():
    m = nn.BatchNorm2d(3)
    x = torch.randn(4, 3, 5, 5) * 2 + 1
    y, a = array(m(x)), array(x)
    mean, var = a.mean((0, 2, 3)), a.var((0, 2, 3))
    expected = (a - mean[:, None, None]) / np.sqrt(var[:, None, None] + 1e-5)
    np.testing.assert_allclose(y, expected, rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(array(m.running_mean), 0.1 * mean, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(array(m.running_var), 0.9 + 0.1 * var * 100 / 99, rtol=1e-4)
    assert m.num_batches_tracked.item() == 1
    m.eval()
    expected = (a - array(m.running_mean)[:, None, None]) / np.sqrt(array(m.running_var)[:, None, None] + 1e-5)
    np.testing.assert_allclose(array(m(x)), expected, rtol=1e-3, atol=1e-4)
    assert m.num_batches_tracked.item() == 1
    with pytest.raises(ValueError, match=r"expected 4D input \(got 2D input\)"):
        m(torch.ones(2, 3))
    with pytest.raises(ValueError, match="Expected more than 1 value per channel when training"):
        nn.BatchNorm1d(3)(torch.ones(1, 3))


def test_layer_and_group_norm():
    x = torch.randn(4, 6, 5)
    a = array(x)
    expected = (a - a.mean(-1, keepdims=True)) / np.sqrt(a.var(-1, keepdims=True) + 1e-5)
    np.testing.assert_allclose(array(nn.LayerNorm(5)(x)), expected, rtol=1e-4, atol=1e-5)
    g = a.reshape(4, 2, 15)
    expected = ((g - g.mean(-1, keepdims=True)) / np.sqrt(g.var(-1, keepdims=True) + 1e-5)).reshape(4, 6, 5)
    np.testing.assert_allclose(array(nn.GroupNorm(2, 6)(x)), expected, rtol=1e-4, atol=1e-5)


def test_losses():
    x, y = torch.randn(4, 5), torch.randn(4, 5)
    a, b = array(x), array(y)
    np.testing.assert_allclose(nn.MSELoss()(x, y).item(), ((a - b) ** 2).mean(), rtol=1e-5)
    np.testing.assert_allclose(nn.L1Loss(reduction="sum")(x, y).item(), np.abs(a - b).sum(), rtol=1e-5)
    target = torch.tensor([0, 3, 1, 4])
    log_p = a - np.log(np.exp(a).sum(1, keepdims=True))
    np.testing.assert_allclose(nn.CrossEntropyLoss()(x, target).item(), -log_p[range(4), target.numpy()].mean(), rtol=1e-5)
    weight = torch.tensor([1.0, 2.0, 3.0, 4.0, 5.0])
    w = array(weight)[target.numpy()]
    expected = -(w * log_p[range(4), target.numpy()]).sum() / w.sum()
    loss = nn.CrossEntropyLoss(weight)
    assert "weight" in loss.state_dict()
    np.testing.assert_allclose(loss(x, target).item(), expected, rtol=1e-5)
    z = (b > 0).astype(np.float64)
    expected = np.maximum(a, 0) - a * z + np.log1p(np.exp(-np.abs(a)))
    np.testing.assert_allclose(
        nn.BCEWithLogitsLoss()(x, torch.tensor(z, dtype=torch.float32)).item(), expected.mean(), rtol=1e-5
    )
    with pytest.warns(UserWarning, match="please use reduction='sum' instead"):
        assert nn.MSELoss(size_average=False).reduction == "sum"


def test_dropout_follows_the_mode():
    m = nn.Sequential(nn.Linear(10, 50), nn.Dropout(0.5))
    x = torch.ones(3, 10)
    assert (m(x) == 0).float().mean().item() > 0.3
    m.eval()
    assert torch.equal(m(x), m[0](x))
    with pytest.raises(ValueError, match="dropout probability has to be between 0 and 1, but got -1"):
        nn.Dropout(-1)


def test_embedding():
    m = nn.Embedding(6, 3, padding_idx=-1)
    assert m.padding_idx == 5
    assert (m.weight[5] == 0).all()
    m(torch.tensor([[0, 5], [0, 2]])).sum().backward()
    assert m.weight.grad[:, 0].tolist() == [2, 0, 1, 0, 0, 0]
    e = nn.Embedding.from_pretrained(torch.arange(6.0).reshape(3, 2))
    assert not e.weight.requires_grad
    assert e(torch.tensor(1)).tolist() == [2, 3]
    with pytest.raises(AssertionError, match="Padding_idx must be within num_embeddings"):
        nn.Embedding(3, 2, padding_idx=3)


@pytest.mark.parametrize(
    ("make", "kind", "text"),
    [
        (lambda: nn.Conv2d(3, 4, 3, groups=2), ValueError, "in_channels must be divisible by groups"),
        (lambda: nn.Conv2d(4, 3, 3, groups=2), ValueError, "out_channels must be divisible by groups"),
        (lambda: nn.Conv2d(4, 3, 3, groups=0), ValueError, "groups must be a positive integer"),
        (lambda: nn.Conv2d(4, 3, 3, padding="x"), ValueError, "Invalid padding string 'x'"),
        (lambda: nn.Conv2d(4, 3, 3, stride=2, padding="same"), ValueError, "not supported for strided convolutions"),
        (lambda: nn.Conv2d(4, 3, 3, padding_mode="x"), ValueError, "padding_mode must be one of"),
        (lambda: nn.ConvTranspose2d(4, 3, 3, padding_mode="reflect"), ValueError, 'Only "zeros" padding mode'),
        (lambda: nn.GroupNorm(3, 4), ValueError, "must be divisible by num_groups"),
        (lambda: nn.Bilinear(0, 1, 1), ValueError, "in1_features must be > 0"),
        (lambda: nn.Hardtanh(1, 1), AssertionError, "max_val"),
        (lambda: nn.ReLU(1, 2), TypeError, r"ReLU.__init__\(\)"),
        (lambda: nn.HuberLoss(delta="x"), TypeError, "delta must be a float or int"),
        (lambda: nn.TripletMarginLoss(margin=0), ValueError, "expected margin to be greater than 0"),
        (lambda: nn.Unflatten(1, 3), TypeError, "unflattened_size must be"),
        (lambda: nn.init.kaiming_uniform_(torch.zeros(3)), ValueError, "Fan in and fan out can not be computed"),
        (lambda: nn.init.kaiming_uniform_(torch.zeros(3, 3), mode="x"), ValueError, "Mode x not supported"),
        (lambda: nn.init.calculate_gain("x"), ValueError, "Unsupported nonlinearity x"),
        (lambda: nn.init.eye_(torch.zeros(3)), ValueError, "Only tensors with 2 dimensions"),
    ],
)
def test_errors(make, kind, text):
    with pytest.raises(kind, match=text):
        make()


def test_initial_weights():
    m = nn.Linear(400, 300)
    bound = 1 / math.sqrt(400)
    for p in m.parameters():
        assert 0.9 * bound < p.abs().max().item() <= bound
    assert abs(m.weight.std().item() / (bound / math.sqrt(3)) - 1) < 0.02
    w = nn.init.xavier_normal_(torch.empty(200, 300), gain=2.0)
    assert abs(w.std().item() / (2 * math.sqrt(2 / 500)) - 1) < 0.02
    w = nn.init.kaiming_normal_(torch.empty(50, 20, 3, 3), mode="fan_out", nonlinearity="relu")
    assert abs(w.std().item() / math.sqrt(2 / 450) - 1) < 0.05
    assert nn.init.dirac_(torch.empty(2, 2, 3)).tolist() == [[[0, 1, 0], [0, 0, 0]], [[0, 0, 0], [0, 1, 0]]]
    s = nn.init.sparse_(torch.empty(10, 4), 0.3)
    assert (s == 0).sum(0).tolist() == [3] * 4
    assert not m.weight.grad_fn
    assert (nn.init.zeros_(m.weight) == 0).all()


def test_a_model_learns():
    x = torch.randn(200, 2)
    y = (x[:, 0] * x[:, 1] > 0).long()
    m = nn.Sequential(nn.Linear(2, 16), nn.Tanh(), nn.Linear(16, 2))
    o, loss = torch.optim.Adam(m.parameters(), lr=0.03), nn.CrossEntropyLoss()
    for _ in range(150):
        o.zero_grad()
        e = loss(m(x), y)
        e.backward()
        o.step()
    assert e.item() < 0.15
    assert (m(x).argmax(1) == y).float().mean().item() > 0.95


def test_instance_norm_needs_its_number_of_features_only_for_what_it_learns():
    x = torch.randn(2, 3, 4, 4)
    with pytest.warns(UserWarning, match="does not match num_features"):
        assert torch.equal(nn.InstanceNorm2d(8)(x), nn.InstanceNorm2d(3)(x))
    with pytest.raises(ValueError, match="to match num_features"):
        nn.InstanceNorm2d(8, affine=True)(x)
