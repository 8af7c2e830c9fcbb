"""autograd.functional: products with Jacobians and Hessians, the matrices, strict mode, errors."""

from __future__ import annotations

import pytest

import autograd_nb as torch
from autograd_nb.autograd import functional as F

x = torch.tensor([1.0, 2.0, 3.0])
y = torch.tensor([0.5, -1.0, 2.0])
v = torch.tensor([1.0, 0.0, 2.0])


def both(a, b):
    return a * b, (a**2).sum()


def cubic(a, b):
    return (a**3 * b).sum()


def close(a, b):
    if isinstance(b, tuple):
        return len(a) == len(b) and all(close(p, q) for p, q in zip(a, b, strict=True))
    return torch.allclose(a, b)


def test_vjp_and_jvp():
    out, grads = F.vjp(both, (x, y), (v, torch.tensor(2.0)))
    assert close(out, (x * y, (x**2).sum()))
    assert close(grads, (v * y + 4 * x, v * x))
    out, pushed = F.jvp(both, (x, y), (v, x))
    assert close(pushed, (v * y + x * x, 2 * (x * v).sum()))
    assert not pushed[0].requires_grad


@pytest.mark.parametrize("options", [{}, {"vectorize": True}, {"vectorize": True, "strategy": "forward-mode"}])
def test_jacobian(options):
    j = F.jacobian(both, (x, y), **options)
    assert close(j, ((torch.diag(y), torch.diag(x)), (2 * x, torch.zeros(3))))
    assert close(F.jacobian(lambda a: a.exp(), x, **options), torch.diag(x.exp()))


def test_hessian_and_products():
    h = F.hessian(cubic, (x, y))
    assert close(h, ((torch.diag(6 * x * y), torch.diag(3 * x**2)), (torch.diag(3 * x**2), torch.zeros(3, 3))))
    assert close(
        F.hessian(lambda a: (a**3).sum(), x, vectorize=True, outer_jacobian_strategy="forward-mode"), torch.diag(6 * x)
    )
    for product in (F.hvp, F.vhp):
        out, p = product(lambda a: (a**3).sum(), x, v)
        assert close(out, (x**3).sum()) and close(p, 6 * x * v)


def test_create_graph():
    a = x.clone().requires_grad_()
    j = F.jacobian(lambda t: t**3, a, create_graph=True)
    (g,) = torch.autograd.grad(j.sum(), a)
    assert close(g, 6 * x)
    _, p = F.hvp(lambda t: (t**3).sum(), a, v, create_graph=True)
    (g,) = torch.autograd.grad(p.sum(), a)
    assert close(g, 6 * v)


@pytest.mark.parametrize("name", ["vjp", "jvp", "jacobian"])
def test_strict(name):
    call = getattr(F, name)
    args = (v,) if name != "jacobian" else ()
    with pytest.raises(RuntimeError, match="Output 0 of the user-provided function does not require gradients"):
        call(lambda a: torch.ones(3), x, *args, strict=True)
    with pytest.raises(RuntimeError, match="independent of input 0"):
        call(lambda a: a.detach().requires_grad_().clone(), x, *args, strict=True)
    assert close(call(lambda a: a, x, *args, strict=True), call(lambda a: a * 1, x, *args, strict=True))  # as in PyTorch


def test_errors():
    with pytest.raises(TypeError, match="The inputs given to vjp must be either a Tensor or a tuple of Tensors"):
        F.vjp(both, "no")
    with pytest.raises(RuntimeError, match="The vector v can only be None if"):
        F.vjp(lambda a: a, x)
    with pytest.raises(RuntimeError, match="v has invalid size"):
        F.vjp(lambda a: a, x, torch.ones(2))
    with pytest.raises(RuntimeError, match="v is a tuple of invalid length: should be 2 but got 1"):
        F.vjp(both, (x, y), (v,))
    with pytest.raises(RuntimeError, match="should contain a single element"):
        F.hessian(lambda a: a, x)
    with pytest.raises(RuntimeError, match="should return a single Tensor"):
        F.hvp(both, (x, y), (v, v))
    with pytest.raises(RuntimeError, match="are not supported together"):
        F.jacobian(lambda a: a, x, vectorize=True, strict=True)
