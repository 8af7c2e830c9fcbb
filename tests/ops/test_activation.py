"""Activations against their definitions in NumPy, and their derivatives against differences."""

import numpy as np
import pytest
from scipy import special

import autograd_nb as torch
import autograd_nb.nn.functional as F

pytestmark = pytest.mark.formulas

X = np.array([-7.3, -3.1, -1.2, -0.6, -0.2, 0.3, 0.7, 1.4, 2.9, 3.3, 5.8, 21.5])
sigmoid = special.expit


def softplus(x):
    return np.logaddexp(0, x)


CASES = {
    "relu": ({}, lambda x: np.maximum(x, 0)),
    "relu6": ({}, lambda x: np.clip(x, 0, 6)),
    "leaky_relu": ({"negative_slope": 0.2}, lambda x: np.where(x > 0, x, 0.2 * x)),
    "elu": ({"alpha": 0.7}, lambda x: np.where(x > 0, x, 0.7 * np.expm1(x))),
    "selu": ({}, lambda x: 1.0507009873554805 * np.where(x > 0, x, 1.6732632423543772 * np.expm1(x))),
    "celu": ({"alpha": 1.3}, lambda x: np.where(x > 0, x, 1.3 * np.expm1(x / 1.3))),
    "gelu": ({}, lambda x: x * special.ndtr(x)),
    "silu": ({}, lambda x: x * sigmoid(x)),
    "mish": ({}, lambda x: x * np.tanh(softplus(x))),
    "softplus": ({"beta": 1.5}, lambda x: softplus(1.5 * x) / 1.5),
    "softsign": ({}, lambda x: x / (1 + abs(x))),
    "tanhshrink": ({}, lambda x: x - np.tanh(x)),
    "hardtanh": ({"min_val": -0.5, "max_val": 2.0}, lambda x: np.clip(x, -0.5, 2)),
    "hardsigmoid": ({}, lambda x: np.clip(x / 6 + 0.5, 0, 1)),
    "hardswish": ({}, lambda x: x * np.clip(x / 6 + 0.5, 0, 1)),
    "hardshrink": ({"lambd": 0.65}, lambda x: np.where(abs(x) > 0.65, x, 0)),
    "softshrink": ({"lambd": 0.65}, lambda x: np.sign(x) * np.maximum(abs(x) - 0.65, 0)),
    "threshold": ({"threshold": 0.5, "value": 2.0}, lambda x: np.where(x > 0.5, x, 2.0)),
    "logsigmoid": ({}, lambda x: -softplus(-x)),
}


@pytest.mark.parametrize("name", CASES)
def test_values_and_derivatives(name):
    kw, reference = CASES[name]
    f = getattr(F, name)
    x = torch.tensor(X, requires_grad=True)
    np.testing.assert_allclose(f(x, **kw).detach().numpy(), reference(X), rtol=1e-8, atol=1e-12)
    np.testing.assert_allclose(f(torch.tensor(X, dtype=torch.float32), **kw).numpy(), reference(X), rtol=1e-5, atol=1e-6)
    assert torch.autograd.gradcheck(lambda t: f(t, **kw), (x,))
    assert torch.autograd.gradgradcheck(lambda t: f(t, **kw), (x,))


@pytest.mark.parametrize(
    "name", ["relu", "relu6", "leaky_relu", "elu", "selu", "celu", "silu", "mish", "hardtanh", "hardsigmoid", "hardswish"]
)
def test_in_place_gives_what_a_new_result_has(name):
    f = getattr(F, name)
    a, b = torch.tensor(X, requires_grad=True), torch.tensor(X, requires_grad=True)
    source = b * 1
    y = f(source, inplace=True)
    assert y is source
    want = f(a)
    assert torch.equal(y.detach(), want.detach())
    want.sum().backward()
    y.sum().backward()
    np.testing.assert_allclose(b.grad.numpy(), a.grad.numpy())


@pytest.mark.parametrize("name", ["gelu", "mish", "silu"])
def test_far_from_zero(name):
    x = torch.tensor([25.0, 1e30, -1e30, -0.0], requires_grad=True)
    y = getattr(F, name)(x)
    y.sum().backward()
    assert y.tolist()[:3] == [*x.tolist()[:2], 0.0]
    assert x.grad.tolist()[:3] == [1.0, 1.0, 0.0]
    assert np.signbit(y.numpy(force=True)[2:]).all()


def test_prelu_glu_and_errors():
    x = torch.tensor(X.reshape(2, 6), requires_grad=True)
    w = torch.tensor([0.1, 0.2, 0.3, 0.4, 0.5, 0.6], dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(F.prelu, (x, w))
    assert torch.autograd.gradgradcheck(F.glu, (x,))
    with pytest.raises(RuntimeError, match="Halving dimension must be even"):
        F.glu(torch.zeros(3))
    with pytest.raises(RuntimeError, match="Mismatch of parameter numbers"):
        F.prelu(torch.zeros(2, 3), torch.zeros(2))
    with pytest.raises(RuntimeError, match="approximate"):
        F.gelu(torch.zeros(3), approximate="erf")
    with pytest.raises(NotImplementedError, match="elu"):
        F.elu(torch.tensor([1, 2]))
    with pytest.raises(TypeError, match="must be Tensor"):
        F.silu(3.0)


@pytest.mark.parametrize("call", [lambda x: F.leaky_relu_(x, -0.1), lambda x: F.elu_(x, -0.1), lambda x: F.celu_(x, -0.1), lambda x: F.rrelu_(x, -0.2, -0.1)])
def test_negative_slopes_in_place_have_no_backward_pass(call):
    x = torch.tensor([-1.0, 2.0, -3.0], requires_grad=True)
    y = call(x * 1)
    with pytest.raises(RuntimeError, match="negative slope"):
        y.sum().backward()
    assert x.grad is None
    with torch.no_grad():
        assert torch.equal(call(x * 1), y)
    F.leaky_relu(x, -0.1).sum().backward()
    assert x.grad.tolist() == pytest.approx([-0.1, 1.0, -0.1])
