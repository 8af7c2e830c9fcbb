"""Tensors that a compiled function changes in place, so that they have a history: each call adds to it."""

from __future__ import annotations

import pytest

import autograd_nb as torch
from autograd_nb.errors import ConsumedGraphError

pytestmark = pytest.mark.filterwarnings("ignore:compile")


def leaf(*values):
    return torch.tensor(values, requires_grad=True)


WRITES = {
    "itself": (lambda h, b: h.mul_(0.5).add_(b), lambda h: h),
    "a view of it": (lambda h, b: h[1:].mul_(b[1:]), lambda h: h),
    "it beside a view": (lambda h, b: h.mul_(b), lambda h: h[:1]),
    "an item": (lambda h, b: h.__setitem__(0, b[0] * 2 + h[1]), lambda h: h),
    "copy_": (lambda h, b: h.copy_(h * 0.5 + b), lambda h: h),
    "out of a leaf": (lambda h, b: h.add_(b.exp()), lambda h: h * 2),
}


@pytest.mark.parametrize("begins", ["without a history", "with one"])
@pytest.mark.parametrize("write", WRITES)
def test_each_call_adds_to_the_history_of_what_it_changes(write, begins):
    change, look = WRITES[write]

    def seen(decorate):
        b, h = leaf(1.0, 2.0), torch.tensor([0.5, -1.0])
        if begins == "with one":
            h = h * b
        part = look(h)

        @decorate
        def step(x):
            change(h, b)
            return x * 2

        found = []
        for k in range(5):
            found.append(step(torch.ones(2) * k).requires_grad)
            for t in (h, part):
                found.append((t.requires_grad, t.detach().tolist()))
                if t.requires_grad:
                    (g,) = torch.autograd.grad(t.sum(), b, retain_graph=True)
                    found.append(g.tolist())
        return found

    assert seen(torch.compile) == seen(lambda f: f)


def test_a_sum_of_losses_in_a_variable():
    w, total = leaf(1.0, 2.0), 0

    @torch.compile
    def step(x):
        nonlocal total
        total += (x * w).sum()

    for k in range(4):
        step(torch.ones(2) * k)
    total.backward()
    assert w.grad.tolist() == [6.0, 6.0]


@pytest.mark.parametrize("cleared", [False, True])
def test_a_pass_that_ends_with_an_argument_uses_up_what_is_behind_it(cleared):
    """Also where the gradient that it leaves is forgotten, in the call that is captured and those behind it."""

    @torch.compile
    def step(x):
        (x * 3).sum().backward(inputs=[x])
        if cleared:
            x.grad = None
        return x.detach() * 2

    for _ in range(3):
        w = leaf(1.0, 2.0)
        x = w.exp()
        step(x)
        with pytest.raises(ConsumedGraphError, match="ExpBackward0"):
            x.sum().backward()
        assert w.grad is None
