"""Tensors that a compiled function makes of numbers, reads, and then changes in place: each run begins with the numbers again."""

from __future__ import annotations

import pytest

import autograd_nb as torch

MADE = [
    "torch.tensor([3., 4., 5.])", "torch.tensor(3.)", "torch.tensor(3)", "torch.arange(3)", "torch.zeros(3)", "torch.ones(3)", "torch.full((3,), 2.)",
    "torch.linspace(0, 1, 3)", "torch.eye(3)", "torch.zeros_like(x)", "torch.tensor([True, False, True])", "torch.tensor([1., 2., 3.]).half()",
    "torch.tensor([[1., 2., 3.], [4., 5., 6.]])[1]", "torch.scalar_tensor(3.)",
]  # fmt: skip
READ = ["w * v", "x + v", "(v * 2).sum() * x", "torch.where(x > 1, x, v)", "x.detach() + v * 3"]
CHANGED = ["v.fill_(1)", "v.zero_()", "v.mul_(2) if v.dtype is not torch.bool else v.logical_not_()", "v[...] = 1", "v.copy_(torch.tensor(1))"]
GIVEN = ["y", "y * v", "(y, v.clone())", "y + torch.ones(3)"]


@pytest.mark.parametrize("made", MADE)
def test_every_run_begins_with_the_same_numbers(made):
    w = torch.tensor([0.5, -1.0, 2.0])
    first = MADE.index(made)
    for i, read in enumerate(READ):
        changed, given = CHANGED[(i + first) % len(CHANGED)], GIVEN[(i + first) % len(GIVEN)]
        space = {"torch": torch, "w": w}
        exec(f"def step(x):\n    v = {made}\n    y = {read}\n    {changed}\n    return {given}", space)
        compiled = torch.compile(space["step"])
        for k in range(3):
            x = torch.arange(3.0) + k
            expected, found = space["step"](x), compiled(x)
            for a, b in zip(*(t if isinstance(t, tuple) else (t,) for t in (found, expected)), strict=True):
                assert a.dtype is b.dtype
                assert a.tolist() == b.tolist(), (read, changed, given, k)


def test_what_a_dead_step_has_left_is_not_read():
    """The sum is not returned; what it has left in memory is no constant."""
    w = torch.ones(3, requires_grad=True)

    @torch.compile
    def step(x):
        total = torch.zeros(3)
        y = (w * total).exp() + x
        total.add_(1)
        total.mul_(x.detach())
        return y

    for _ in range(3):
        w.grad = None
        y = step(torch.ones(3))
        assert y.tolist() == [2.0] * 3
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            y.sum().backward()
    assert step.programs


def test_gradients_of_what_began_as_numbers():
    w = torch.tensor([0.5, -1.0, 2.0], requires_grad=True)

    def step(x):
        total = torch.zeros(3)
        kept = total + 1
        for k in range(3):
            total = total + w * kept.clone()
            kept.mul_(x.detach() * (k + 1))
        return total.sum()

    compiled = torch.compile(step)
    for k in range(4):
        x = torch.arange(3.0) + k
        (expected,), (found,) = (torch.autograd.grad(f(x), w) for f in (step, compiled))
        assert found.tolist() == expected.tolist()
    assert compiled.programs
