"""Gradients of attention go straight to where they would be copied, and only there: programs against eager."""

from __future__ import annotations

import pytest

import autograd_nb as torch
from autograd_nb import nn
from autograd_nb.nn import functional as F

B, T, H, D = 2, 5, 3, 4
COPIES = {"clone", "copy_", "contiguous"}


def by_split(x):
    return [part.view(B, T, H, D).transpose(1, 2) for part in x.split(H * D, -1)]


def joined(y):
    return y.transpose(1, 2).reshape(B, T, H * D)


def program_of(function, width=3 * H * D):
    """The program of function(x) and its gradient, after calls that compare it with eager."""
    torch.manual_seed(0)
    w = torch.randn(width, width, requires_grad=True)

    def step(x):
        w.grad = None
        loss = function(x @ w)
        loss.backward()
        return loss, w.grad

    compiled = torch.compile(step, check=True)
    for _ in range(4):
        compiled(torch.randn(B, T, width))
    assert compiled.programs, "not captured"
    return compiled.programs[0].program


def copies(program):
    return [s.name for s in program.steps if COPIES & set(s.name.split("+"))]


@pytest.mark.parametrize("causal", [False, True])
def test_parts_of_a_packed_projection_are_read_and_their_gradients_written_in_place(causal):
    program = program_of(lambda x: (joined(F.scaled_dot_product_attention(*by_split(x), is_causal=causal)) ** 2).sum())
    assert "backward" in [s.name for s in program.steps]
    assert not copies(program)


def test_module():
    torch.manual_seed(0)
    attention, x = nn.MultiheadAttention(H * D, H), torch.randn(T, B, H * D)

    def step(x):
        attention.zero_grad()
        attention(x, x, x, need_weights=False)[0].square().sum().backward()
        return [p.grad for p in attention.parameters()]

    compiled = torch.compile(step, check=True)
    for _ in range(4):
        compiled(x)
    assert not copies(compiled.programs[0].program)


def test_a_result_that_lies_by_heads_is_written_where_it_is_joined():
    def apart(x):
        q, k, v = (t.contiguous() for t in by_split(x))
        return (joined(F.scaled_dot_product_attention(q, k, v)) @ torch.ones(H * D, 2)).square().sum()

    forward = next(s for s in program_of(apart).steps if s.name == "forward")
    assert (T * H * D, D, H * D) in forward.operands


def test_gradients_that_somebody_else_reads_stay_where_they_are():
    def shared(x):
        q, k, v = by_split(x)
        return (F.scaled_dot_product_attention(q, k, v) * q + k * v).sum()

    assert "backward" in [s.name for s in program_of(shared).steps]


def test_one_tensor_for_all_three():
    def same(x):
        q = x.view(B, T, H, D).transpose(1, 2)
        return (joined(F.scaled_dot_product_attention(q, q, q)) ** 2).sum()

    assert "backward" in [s.name for s in program_of(same, H * D).steps]


def test_an_array_overwritten_twice_keeps_the_later_value():
    def twice(x):
        q, k, v = by_split(x)
        out = torch.zeros(B, H, T, D)
        out.copy_(F.scaled_dot_product_attention(q, k, v))
        out[:, :1].copy_(q[:, :1].detach())
        return (out**2).sum() + out.detach()[0, 0, 0, 0] * 0

    assert "forward" in [s.name for s in program_of(twice).steps]


def test_attention_written_by_hand():
    hidden = torch.ones(T, T, dtype=torch.bool).triu(1)

    def by_hand(x):
        q, k, v = by_split(x)
        p = (q @ k.transpose(-2, -1) * D**-0.5).masked_fill(hidden, float("-inf")).softmax(-1)
        return (joined(p @ v) ** 2).sum()

    assert "forward" not in [s.name for s in program_of(by_hand).steps]
