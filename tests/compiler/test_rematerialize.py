"""What is computed again in the backward pass, in place of being kept for it."""

from __future__ import annotations

import pytest

import autograd_nb as torch
from autograd_nb import nn
from autograd_nb.compiler.passes import rematerialize
from autograd_nb.nn import functional as F


def program_of(between=lambda h: h, blocks=3, rows=300):
    """The program of a training step of residual blocks, compared with eager."""
    torch.manual_seed(0)
    norms = nn.ModuleList([nn.LayerNorm(128) for _ in range(blocks)])
    layers = nn.ModuleList([nn.Linear(128, 128) for _ in range(blocks)])
    x = torch.randn(rows, 128)

    def step(x):
        for norm, layer in zip(norms, layers, strict=True):
            x = x + F.gelu(layer(between(norm(x))))
        x.square().mean().backward()
        grads = [p.grad for p in layers.parameters()]
        layers.zero_grad()
        norms.zero_grad()
        return grads

    step = torch.compile(step, check=True)
    for _ in range(3):
        step(x)
    return step.programs[0].program


def count(program, name):
    return sum(name in s.name.split("+") for s in program.steps)


def test_norms_are_computed_again(monkeypatch):
    monkeypatch.setattr(rematerialize, "LONG", 8)
    less = program_of()
    assert count(less, "layer_norm") > 3
    monkeypatch.setattr(rematerialize, "LONG", 10_000)
    more = program_of()
    assert count(more, "layer_norm") == 3
    assert less.arena_bytes < more.arena_bytes
    twin = next(s for s in reversed(less.steps) if s.name == "layer_norm")
    assert len(twin.writes) == 1  # mean and deviation of the rows are there


def test_what_is_computed_again_is_not_computed_at_once(monkeypatch):
    monkeypatch.setattr(rematerialize, "LONG", 15)  # the steps between are fewer when rows are fused
    assert all(s.name.split("+").count("layer_norm") < 2 for s in program_of().steps)


def test_small_arrays_are_kept(monkeypatch):
    monkeypatch.setattr(rematerialize, "LONG", 8)
    assert count(program_of(rows=20), "layer_norm") == 3


@pytest.mark.parametrize("rows", [300])
def test_what_has_been_changed_is_kept(monkeypatch, rows):
    monkeypatch.setattr(rematerialize, "LONG", 4)
    torch.manual_seed(0)
    w = torch.randn(128, 128)

    @torch.compile(check=True)
    def step(x):
        a = x.exp()
        y = a.sin()
        b = y @ w
        for _ in range(6):
            b = (b @ w).softmax(1)
        a.mul_(2)  # y is no longer the sine of it
        return (b @ y.mT).sum(), a.sum()

    x = torch.randn(rows, 128)
    for _ in range(4):
        step(x)


def test_random_numbers_are_drawn_once(monkeypatch):
    monkeypatch.setattr(rematerialize, "LONG", 8)
    program = program_of(between=lambda h: F.dropout(h, 0.5))
    assert program.draws
    assert len(program.draws) == 3
