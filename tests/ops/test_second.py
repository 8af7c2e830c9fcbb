"""Recorded backward passes: one launch for a longer derivative, and right to the third derivative."""

import numpy as np
import pytest

import autograd_nb as torch
from autograd_nb import launch
from autograd_nb.ops.core.registry import OPS

CASES = {
    "tanh": (torch.tanh, lambda y: 1 - y * y, lambda y: -2 * y * (1 - y * y), lambda y: (6 * y * y - 2) * (1 - y * y)),
    "sigmoid": (
        torch.sigmoid,
        lambda y: y * (1 - y),
        lambda y: y * (1 - y) * (1 - 2 * y),
        lambda y: y * (1 - y) * (1 - 6 * y + 6 * y * y),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_three_derivatives(name):
    function, *expected = CASES[name]
    x = torch.linspace(-2, 2, 7, dtype=torch.float64).requires_grad_()
    y = function(x)
    value = y
    for formula in expected:
        (value,) = torch.autograd.grad(value.sum(), x, create_graph=True)
        np.testing.assert_allclose(value.detach().numpy(), formula(y.detach().numpy()), rtol=1e-12, atol=1e-14)


def test_one_launch():
    x = torch.ones(3, requires_grad=True)
    seen = []

    def watch(call, args):
        seen.append(call.name)
        call.entry(*args)

    y = torch.tanh(x)
    with launch.observe(watch):
        torch.autograd.grad(y, x, torch.ones(3), create_graph=True)
    assert seen.count("tanh_backward") == 1
    assert "mul" not in seen


def test_long_derivatives_and_flat_ones_keep_their_history():
    x = torch.tensor([0.5, -1.0], dtype=torch.float64, requires_grad=True)
    (g,) = torch.autograd.grad(torch.nn.functional.gelu(x).sum(), x, create_graph=True)
    assert g.requires_grad
    w = torch.ones(2, dtype=torch.float64, requires_grad=True)
    (g,) = torch.autograd.grad(torch.relu(x), x, w, create_graph=True)  # linear in the gradient, flat in x
    (h,) = torch.autograd.grad(g.sum(), w)
    assert h.tolist() == [1.0, 0.0]


def test_products_of_transposes_under_vmap():
    a, b = torch.randn(3, 4, 5, dtype=torch.float64), torch.randn(2, 5, dtype=torch.float64)
    for both in (lambda x: torch.nn.functional.linear(x, b), lambda x: torch.nn.functional.linear(b, x)):
        np.testing.assert_allclose(torch.vmap(both)(a).numpy(), np.stack([both(t).numpy() for t in a]), rtol=1e-12)


@pytest.mark.parametrize("name", ["relu", "leaky_relu", "hardtanh", "relu6"])
def test_derivatives_that_only_jump_have_zeros_for_theirs(name):
    x = torch.tensor([0.5, -0.25], requires_grad=True)
    (g,) = torch.autograd.grad(getattr(torch.nn.functional, name)(x).sum(), x, create_graph=True)
    assert g.requires_grad
    (h,) = torch.autograd.grad(g.sum(), x)
    assert h.tolist() == [0.0, 0.0]


def test_nodes_are_called_as_what_a_user_would_have_written():
    x = torch.tensor([0.5, 0.25], requires_grad=True)
    for y, name in (
        (x**3, "MulBackward0"),
        (x.log(), "DivBackward0"),
        (x.sin(), "MulBackward0"),
        (x.tanh(), "TanhBackwardBackward0"),
    ):
        (g,) = torch.autograd.grad(y.sum(), x, create_graph=True)
        assert g.grad_fn.name() == name


@pytest.mark.slow
@pytest.mark.parametrize("own", (0.0, 1.5))
@pytest.mark.parametrize("include_self", (True, False))
def test_products_by_index_of_several_zeros(include_self, own):
    """Of two zeros in one place each is the other's factor, in the second derivative; PyTorch refuses to take it."""
    x = torch.tensor([[own, 2.0, 3.0], [1.0, 0.0, 4.0], [own, 0.0, 2.0]], dtype=torch.float64, requires_grad=True)
    source = torch.tensor([[0.0, 2.0, 0.0], [0.0, 0.0, 4.0], [0.0, 5.0, 0.0]], dtype=torch.float64, requires_grad=True)
    index = torch.tensor([[0, 1, 0], [0, 1, 2], [0, 0, 2]])
    for function in (
        lambda x, s: x.scatter_reduce(0, index, s, "prod", include_self=include_self),
        lambda x, s: x.index_reduce(0, torch.tensor([0, 0, 1]), s, "prod", include_self=include_self),
    ):
        assert torch.autograd.gradcheck(function, (x, source))
        assert torch.autograd.gradgradcheck(function, (x, source))


EDGES = torch.tensor([0.0, -0.0, 0.5, 1.0, -1.0, 2.0, -0.25])
OF_ONE = [n for n, info in OPS.items() if info.kind == "pointwise" and info.differentiable and "half" in info.dtypes and info.call.__code__.co_argcount == 1]
OF_TWO = ["atan2", "copysign", "fmod", "hypot", "maximum", "remainder", "xlogy", "special.xlog1py", "nn.functional.mse_loss", "nn.functional.smooth_l1_loss"]
MORE = {
    "norm": lambda x: x.unsqueeze(-1).norm(dim=-1),
    "logit": lambda x: x.logit(0.1),
    "celu": torch.nn.functional.celu,
    "binary_cross_entropy": lambda x: torch.nn.functional.binary_cross_entropy(x.abs() / 3, x.abs() / 3, reduction="none"),
}


def _second_derivatives(function, dtype, operands):
    points = [t.flatten().to(dtype).requires_grad_() for t in torch.meshgrid(*[EDGES] * operands, indexing="ij")]
    y = function(*points)
    weight = torch.full_like(y, 0.75).requires_grad_()
    firsts = torch.autograd.grad(y, points, weight, create_graph=True, allow_unused=True)
    return [
        None if h is None else h.float()
        for g in firsts if g is not None and g.requires_grad
        for h in torch.autograd.grad(g, [*points, weight], torch.full_like(g, 1.25), retain_graph=True, allow_unused=True)
    ]  # fmt: skip


@pytest.mark.slow
@pytest.mark.formulas
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("name", [*OF_ONE, *OF_TWO, *MORE])
def test_half_precision_is_not_a_number_where_float32_is_not(name, dtype):
    """Edges of a formula, where a factor is infinite and another one 0, are known to the formula of the derivative alone."""
    function = MORE.get(name) or OPS[name].call
    operands = 2 if name in OF_TWO else 1
    for h, f in zip(_second_derivatives(function, dtype, operands), _second_derivatives(function, torch.float32, operands), strict=True):
        assert (h is None) is (f is None)
        assert h is None or h.isnan().equal(f.isnan())
