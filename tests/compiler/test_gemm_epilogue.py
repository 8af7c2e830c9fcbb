"""Sums and biases around matrix products: the rules fire, and what comes out is what eager gives."""

from __future__ import annotations

import pytest

import autograd_nb as torch
from autograd_nb import nn
from autograd_nb.nn import functional as F

from .common import checked_program, names


def adds(program):
    """Of each product, whether it adds to what is there."""
    return [next(o for o in s.operands if isinstance(o, bool)) for s in program.steps if s.name == "matmul"]


def test_bias_is_added_by_the_activation():
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(6, 5), nn.ReLU(), nn.Linear(5, 4), nn.Tanh())
    with torch.no_grad():
        program = checked_program(lambda x: net(x), torch.randn(3, 6))
    assert names(program) == ["matmul", "relu", "matmul", "tanh"]
    assert adds(program) == [False, False]


def test_bias_is_added_by_every_pointwise_reader_forward_and_backward():
    torch.manual_seed(0)
    layer = nn.Linear(6, 5)
    x = torch.randn(3, 6)

    def step(x):
        loss = F.gelu(layer(x)).square().mean()
        loss.backward()
        grads = [p.grad for p in layer.parameters()]
        layer.zero_grad()
        return loss, *grads

    assert "fill_rows" not in names(checked_program(step, x))


def test_bias_stays_where_a_kernel_that_is_not_pointwise_reads_the_product():
    torch.manual_seed(0)
    layer, y = nn.Linear(6, 5), torch.tensor([1, 0, 4])
    with torch.no_grad():
        program = checked_program(lambda x: F.cross_entropy(layer(x), y), torch.randn(3, 6))
    assert "fill_rows" in names(program)


def test_bias_beside_parts_of_columns():
    torch.manual_seed(0)
    layer = nn.Linear(6, 12)

    def parts(x):
        a, b, c = layer(x).view(2, 3, 2, 6).transpose(1, 2).split(2, dim=3)
        return a.clone(), b.sin(), c.exp()

    with torch.no_grad():
        program = checked_program(parts, torch.randn(6, 6))
    assert "fill_rows" not in names(program)


def test_a_view_over_several_rows_keeps_the_bias():
    torch.manual_seed(0)
    layer = nn.Linear(6, 4)
    with torch.no_grad():
        program = checked_program(lambda x: layer(x).view(-1).exp(), torch.randn(6, 6))
    assert "fill_rows" in names(program)


def test_residual_is_where_the_product_adds():
    torch.manual_seed(0)
    a, b = nn.Linear(6, 6), nn.Linear(6, 6, bias=False)

    def block(x):
        x = x + a(x.sin())
        return (x + b(F.layer_norm(x, (6,)))).sum(1)

    with torch.no_grad():
        program = checked_program(block, torch.randn(5, 6))
    assert adds(program) == [True, True]
    assert "fill_rows" not in names(program)


def test_gradients_that_meet_are_summed_by_products():
    torch.manual_seed(0)
    q, k, v = (nn.Linear(6, 6, bias=False) for _ in range(3))
    x = torch.randn(5, 6, requires_grad=True)

    def step(x):
        h = x.exp()
        return torch.autograd.grad((q(h).sin() * k(h).cos() + v(h).exp()).sum(), x)

    program = checked_program(step, x)
    assert adds(program).count(True) == 2
    assert "add_" not in names(program)


def test_gradients_accumulate_by_products():
    torch.manual_seed(0)
    w = torch.randn(6, 4, requires_grad=True)
    x = torch.randn(5, 6)

    def step(x):
        (x @ w).sin().sum().backward()
        return w.grad.sum()

    (x @ w).sum().backward()
    program = checked_program(step, x)
    assert adds(program) == [False, True]


@pytest.mark.parametrize("calls", [1, 4])
def test_what_is_read_again_is_not_overwritten(calls):
    torch.manual_seed(0)
    w = torch.randn(6, 6)

    def f(x):
        y = x.sin()
        z = y + y @ w
        return z.sum(0), y.sum(0)

    with torch.no_grad():
        checked_program(f, torch.randn(5, 6), calls=calls)


def test_a_sum_in_the_memory_of_an_operand_of_its_product_is_left_alone():
    torch.manual_seed(0)
    w = torch.randn(6, 6)

    def f(x):
        y = x.sin()
        y += y @ w
        return y.sum(0)

    with torch.no_grad():
        program = checked_program(f, torch.randn(6, 6))
    assert adds(program) == [False]


def test_operands_that_change_between_a_product_and_its_sum():
    torch.manual_seed(0)
    w = torch.randn(6, 6)

    def f(x):
        y, other = x.sin(), x.cos()
        p = y @ w
        y.mul_(2)
        return (other + p).sum(0), y.sum(0)

    with torch.no_grad():
        program = checked_program(f, torch.randn(6, 6))
    assert adds(program) == [False]


def test_products_of_doubles_and_batches():
    torch.manual_seed(0)
    a, b = torch.randn(3, 4, 5, dtype=torch.float64), torch.randn(3, 5, 6, dtype=torch.float64)

    def f(x):
        return (x.exp() + a @ b).sum((0, 1))

    with torch.no_grad():
        assert adds(checked_program(f, torch.randn(3, 4, 6, dtype=torch.float64))) == [True]


def test_a_view_of_another_shape_joins_the_loop():
    torch.manual_seed(0)

    def f(x):
        y = x.exp().transpose(0, 1).reshape(4, 6)  # a copy of (4, 2, 3) as (4, 6)
        return y.sin()

    program = checked_program(f, torch.randn(2, 4, 3))
    assert len(program.steps) <= 2
    assert "clone+sin" in " ".join(names(program))


def test_parts_put_side_by_side_are_copied_once():
    torch.manual_seed(0)
    x = torch.randn(2, 4, 12, requires_grad=True)

    def f(x):
        a, b = x.split(6, dim=2)
        a, b = (p.reshape(2, 4, 2, 3).transpose(1, 2).contiguous() for p in (a, b))
        return torch.autograd.grad(((a @ b.mT).softmax(-1) @ a).sum(), x)

    program = checked_program(f, x)
    assert names(program)[-2:] == ["clone+copy_", "copy_"]  # one pass for each part


def test_a_number_is_nothing_to_begin_a_sum_with():
    program = checked_program(lambda x, w: x @ w + 1, torch.randn(2, 5), torch.randn(5, 4))
    assert adds(program) == [False]
