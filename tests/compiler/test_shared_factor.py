"""Factors of a backward pass that the forward pass computes with its own work."""

from __future__ import annotations

import pytest

import autograd_nb as torch
from autograd_nb.nn import functional as F


def reads(name, program):
    """How many arrays the step of this name reads."""
    (step,) = (s for s in program.steps if s.name == name)
    arrays = [u for u, _ in step.uses() if u.buffer.kind != "constant"]
    return len(arrays) - step.call.outputs  # where it overwrites what it reads, that is no output


def program_of(activation, x, more=lambda h: 0.0):
    """The program of a gradient through an activation of a product, compared with eager."""
    torch.manual_seed(0)
    w = torch.randn(6, 6, dtype=x.dtype)

    def step(x):
        h = x @ w
        y = activation(h)
        return torch.autograd.grad((y @ w).square().sum() + more(h), x)

    step = torch.compile(step, check=True)
    for _ in range(3):
        step(x)
    return step.programs[0].program


@pytest.mark.parametrize(
    "name, activation",
    [
        ("gelu", F.gelu),
        ("gelu_tanh", lambda h: F.gelu(h, approximate="tanh")),
        ("silu", F.silu),
        ("mish", F.mish),
        ("sin", torch.sin),
    ],
)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_the_forward_pass_writes_the_derivative(name, activation, dtype):
    program = program_of(activation, torch.randn(5, 6, dtype=dtype, requires_grad=True))
    (forward,) = (s for s in program.steps if s.name == name)
    assert len(forward.writes) == 2
    assert reads(f"{name}_backward", program) == 2  # the gradient and the factor


@pytest.mark.parametrize("name, activation", [("tanh", torch.tanh), ("elu", F.elu), ("erf", torch.erf)])
def test_cheap_derivatives_stay(name, activation):
    program = program_of(activation, torch.randn(5, 6, requires_grad=True))
    (forward,) = (s for s in program.steps if s.name == name)
    assert len(forward.writes) == 1


def test_no_more_memory_where_the_input_is_needed_anyway():
    program = program_of(F.gelu, torch.randn(5, 6, requires_grad=True), more=lambda h: (h @ h.T).sum())
    (forward,) = (s for s in program.steps if s.name == "gelu")
    assert len(forward.writes) == 1


def test_an_input_that_changes_in_between():
    def activation(h):
        y = F.silu(h.clone())
        with torch.no_grad():
            h.mul_(2)
        return y

    torch.manual_seed(0)
    x = torch.randn(5, 6)

    @torch.compile(check=True)
    def step(x):
        h = x.exp().requires_grad_()
        return torch.autograd.grad(activation(h).sum(), h), h.detach()

    for _ in range(4):
        step(x)
