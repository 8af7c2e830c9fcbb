"""Times of a program's steps."""

from __future__ import annotations

import pytest

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


def test_a_compiled_function_gives_the_times_of_the_program_that_serves():
    step = torch.compile(lambda x: (x * 2).exp().sum())
    step(torch.ones(3))
    found = step.profile(torch.ones(3, 2, dtype=torch.float64))
    assert len(step.programs) == 2
    served = [p.program for p in step.programs if p.program is found._program]
    assert len(served) == 1 and found.total > 0 and set(found.times) == set(range(len(served[0].steps)))
    assert step(torch.ones(3)) == step(torch.ones(3))  # nothing is timed any more
    assert not any("drive" in vars(p.program) for p in step.programs if hasattr(p.program, "__dict__"))


@pytest.mark.filterwarnings("ignore")
def test_what_runs_eagerly_has_no_profile_of_a_program():
    with pytest.raises(RuntimeError, match=r"runs eagerly, and print\(step\) says why"):
        torch.compile(lambda x: x if x.sum().item() > 0 else -x).profile(torch.ones(3))
