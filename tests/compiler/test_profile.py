"""Times of a program's steps."""

from __future__ import annotations

import autograd_nb as torch
from autograd_nb.compiler.run.profile import profile


def test_profile_times_each_step_of_ordinary_calls():
    w = torch.ones(3, requires_grad=True)

    @torch.compile
    def step(x):
        loss = (x @ w).sum()
        loss.backward()
        with torch.no_grad():
            w.sub_(w.grad, alpha=0.5)
        w.grad = None
        return loss

    x = torch.ones(4, 3)
    while not step.programs:
        step(x)
    before = w.detach().clone()
    found = profile(lambda: step(x), step.programs[0], calls=3)
    assert set(found.times) == set(range(len(step.programs[0].program.steps)))
    assert found.total > 0
    assert sum(count for _, count, _ in found.by_name()) == len(found.times)
    assert torch.allclose(w, before - 3 * 0.5 * 4)  # three steps were made
    assert "sum" in str(found)
    step(x)
    assert torch.allclose(w, before - 4 * 0.5 * 4)
