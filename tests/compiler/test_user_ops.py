"""Ops that users write stand as equals of the built-in ones."""

from __future__ import annotations

import math

import numpy as np
import pytest

import autograd_nb as torch

pytestmark = pytest.mark.slow  # many kernels


@torch.pointwise
def gaussian(x, width):
    return math.exp(-((x / width) ** 2)) * max(x, -0.35)


@torch.pointwise
def mixed(x, y):
    m = torch.m
    return m.where(x > y, np.sin(x) * y**3, np.sqrt(y * y + 1.0)) / (2.0 + np.tanh(x - 1.0)) + abs(x)


@pytest.mark.parametrize("f", [gaussian, mixed])
def test_derivatives_are_found_from_the_formula(f):
    x = torch.linspace(-1, 0.93, 5, dtype=torch.float64).requires_grad_()
    y = torch.tensor([[1.3], [0.7]], dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(f, (x, y))
    assert torch.autograd.gradgradcheck(f, (x, y))


def test_values_dtypes_and_numbers():
    x = torch.tensor([0.0, 1.0])
    torch.testing.assert_close(gaussian(x, 1.0), torch.exp(-(x**2)) * torch.clamp(x, min=-0.35))
    assert gaussian(x.double(), 1.0).dtype is torch.float64
    assert gaussian(x.expand(3, 2).t(), torch.ones(3)).shape == (2, 3)


def test_given_derivatives():
    @torch.pointwise(derivatives=[lambda g, out: g * out * 2], check=False)
    def odd(x):
        return math.exp(2 * x)

    x = torch.tensor([0.5], requires_grad=True)
    odd(x).backward()
    torch.testing.assert_close(x.grad, 2 * torch.exp(2 * x.detach()))
    with pytest.raises(TypeError, match="asks for"):
        torch.pointwise(lambda x: x, derivatives=[lambda z: z])


def test_registration_can_check():
    torch.pointwise(lambda x, a: math.log1p(math.exp(a * x)), check=True)
    with pytest.raises(RuntimeError):
        torch.pointwise(lambda x: x * x, derivatives=[lambda x: 3 * x], check=True)


def test_formulas_that_branch_say_what_to_do():
    @torch.pointwise
    def branching(x):
        return x if x > 0 else -x

    with pytest.raises(Exception, match="where"):
        branching(torch.ones(2))
    with pytest.raises(TypeError, match="function"):
        torch.pointwise(3)


def test_compile_fuses_them():
    f = lambda x: (gaussian(x, 2.0) * 3 + x).tanh()
    c = torch.compile(f, fullgraph=True)
    for k in range(3):
        x = torch.full((5,), float(k))
        torch.testing.assert_close(c(x), f(x))
    assert len(c.programs[0].program.steps) == 1


# ------------------------------------------------------------------------------------------------------ kernels


def forward(x, y, out):
    for i in range(x.shape[0]):
        s = 0.0
        for j in range(x.shape[1]):
            s += x[i, j] * y[j]
        out[i] = s


def backward(g, x, y, out, gx, gy):
    gy[:] = 0
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            gx[i, j] = g[i] * y[j]
            gy[j] += g[i] * x[i, j]


def operands():
    return [torch.randn(3, 4, dtype=torch.float64, requires_grad=True), torch.randn(4, dtype=torch.float64, requires_grad=True)]


def test_a_pair_of_kernels():
    op = torch.custom_op(forward, shape=lambda x, y: x[:1], backward=backward)
    x, y = operands()
    torch.testing.assert_close(op(x, y), x @ y)
    assert torch.autograd.gradcheck(op, (x, y))
    torch.testing.assert_close(op(x.t().contiguous().t(), y), x @ y)
    g = torch.autograd.grad(op(x, y).sum(), x, retain_graph=True)
    torch.testing.assert_close(g[0], y.detach().expand(3, 4))
    with pytest.raises(NotImplementedError, match="backward_ops"):
        torch.autograd.grad(op(x, y).sum(), x, create_graph=True)


def test_a_backward_of_ops_gives_every_order():
    op = torch.custom_op(forward, shape=lambda x, y: x[:1], backward_ops=lambda g, x, y, out: (g[:, None] * y, g @ x))
    x, y = operands()
    assert torch.autograd.gradcheck(op, (x, y)) and torch.autograd.gradgradcheck(op, (x, y))
    assert op(x, y).grad_fn.name() == "ForwardBackward0"


def test_captured_with_its_backward():
    op = torch.custom_op(forward, shape=lambda x, y: x[:1], backward=backward)
    y = torch.randn(4, requires_grad=True)

    def step(x):
        y.grad = None
        op(x, y).square().sum().backward()
        return y.grad

    c = torch.compile(step, fullgraph=True)
    for _ in range(3):
        x = torch.randn(3, 4)
        torch.testing.assert_close(c(x).clone(), step(x))


def test_a_graph_with_a_users_kernel_is_not_saved(tmp_path):
    """No file could tell where the kernel is: it would be saved, and refused when it is loaded."""
    op = torch.custom_op(forward, shape=lambda x, y: x[:1])
    graph = torch.trace(lambda x, y: op(x, y), torch.randn(3, 4), torch.randn(4))
    with pytest.raises(RuntimeError, match="the step forward cannot be saved"):
        graph.save(tmp_path / "graph.zip")


def test_wrong_use_is_refused():
    op = torch.custom_op(forward, shape=lambda x, y: 3)
    with pytest.raises(RuntimeError, match="tuple of sizes"):
        op(torch.ones(2, 2), torch.ones(2))
    with pytest.raises(TypeError, match="2 operands"):
        op(torch.ones(2))
    with pytest.raises(TypeError, match="must be Tensor"):
        op(torch.ones(2, 2), 3)
    with pytest.raises(TypeError, match="not both"):
        torch.custom_op(forward, shape=lambda x, y: x, backward=backward, backward_ops=backward)


def test_integers_stay_where_the_formula_keeps_them():
    i = torch.tensor([1, 2, 3])
    assert torch.pointwise(lambda x: x * x + 1)(i).dtype is torch.int64
    assert torch.pointwise(lambda x: 1 / x)(i).tolist() == pytest.approx([1, 1 / 2, 1 / 3])
    assert torch.pointwise(lambda x: x + 0.5)(i).tolist() == [1.5, 2.5, 3.5]
    assert torch.pointwise(lambda x: math.exp(x))(i).dtype is torch.float32
    assert torch.pointwise(lambda x: x > 1)(i.float()).tolist() == [False, True, True]


def test_custom_op_under_vmap_and_from_a_lambda():
    def doubled(x, out):
        for i in range(x.shape[0]):
            out[i] = 2 * x[i]

    double = torch.custom_op(doubled, shape=lambda x: x, backward_ops=lambda g, x, out: 2 * g)
    rows = torch.arange(6.0).reshape(2, 3)
    assert torch.equal(torch.vmap(double)(rows), 2 * rows)
    empty = torch.custom_op(lambda x, out: None, shape=lambda x: x)
    assert empty(torch.ones(2)).shape == (2,)


def test_what_a_kernel_raises_is_raised_by_a_program_too():
    def positive(x, out):
        if x[0] < 0:
            raise ValueError("negative")
        out[0] = x[0]

    op = torch.custom_op(positive, shape=lambda x: (1,))
    compiled = torch.compile(lambda x: op(x) * 2, fullgraph=True)
    for x in (1.0, 2.0, -1.0, 3.0):
        if x < 0:
            with pytest.raises(ValueError, match="negative"):
                compiled(torch.full((2,), x))
        else:
            assert compiled(torch.full((2,), x)).item() == 2 * x


def test_derivatives_that_do_not_fit_the_operands():
    def product(x, y, out):
        for i in range(x.shape[0]):
            out[i] = x[i] * y[i]

    x, y = torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True)
    with pytest.raises(TypeError, match="6 parameters, it has 2"):
        torch.custom_op(product, shape=lambda x, y: x, backward=lambda g, x: None)
    for backward, said in (
        (lambda g, x, y, out: g * y, "1 gradients for 2 operands"),
        (lambda g, x, y, out: (g[:1], g), r"shape \[1\] for x"),
    ):
        with pytest.raises(RuntimeError, match=said):
            torch.custom_op(product, shape=lambda x, y: x, backward_ops=backward)(x, y).sum().backward()
    with pytest.raises(TypeError, match="2 operands, and 1 derivatives"):
        torch.pointwise(derivatives=[lambda g: g])(lambda x, y: x * y)
