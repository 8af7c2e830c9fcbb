"""`compiler.set_stance`: one switch for all compiled functions."""

from __future__ import annotations

import pytest

import autograd_nb as torch
from autograd_nb.compiler.stance import STANCES, current


@pytest.fixture(autouse=True)
def _default():
    yield
    torch.compiler.set_stance("default")


@pytest.mark.parametrize("stance", STANCES)
def test_what_a_call_does_in_each_stance(stance):
    double, x, calls = torch.compile(lambda x: x * 2), torch.ones(2), []
    with torch.compiler.set_stance(stance):
        if current.new == "fail":
            with pytest.raises(RuntimeError, match="fail_on_recompile"):
                double(x)
        else:
            assert double(x).tolist() == [2.0, 2.0]
    assert len(double.programs) == (not current.eager and stance in ("default", "eager_then_compile", "aot_eager_then_compile"))
    for _ in range(3):
        double(x)
    assert len(double.programs) == 1
    captured = double._function
    double._function = lambda x: calls.append(1) or captured(x)
    with torch.compiler.set_stance(stance):  # what is captured is replayed, unless everything is eager
        for _ in range(3):
            assert double(x).tolist() == [2.0, 2.0]
        assert len(calls) == (3 if stance == "force_eager" else 0)
        if current.new == "eager":
            assert double(x.double()).dtype is torch.float64
            assert len(double.programs) == 1
    seen = len(calls)
    double(x)
    assert len(calls) == seen


def test_how_it_is_used():
    assert current.name == "default"
    torch.compiler.set_stance("force_eager")
    assert current.name == "force_eager"
    with torch.compiler.set_stance("fail_on_recompile"):
        assert current.name == "fail_on_recompile"
    assert current.name == "force_eager"
    torch.compiler.set_stance("default")

    @torch.compiler.set_stance("force_eager")
    def within(x):
        """Its own words."""
        return current.name, x

    assert current.name == "default"
    assert within(1) == ("force_eager", 1)
    assert within.__doc__ == "Its own words."
    assert current.name == "default"
    with pytest.raises(RuntimeError, match="invalid"):
        torch.compiler.set_stance("nonsense")
    with pytest.raises(ZeroDivisionError), torch.compiler.set_stance("force_eager"):
        1 / 0
    assert current.name == "default"


def test_training_steps():
    model = torch.nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    @torch.compile
    def step(x):
        optimizer.zero_grad()
        loss = model(x).square().sum()
        loss.backward()
        optimizer.step()
        return loss

    x, losses = torch.ones(3, 2), []
    for stance in ("default", "force_eager", "default", "eager_on_recompile") * 2:
        with torch.compiler.set_stance(stance):
            losses.append(step(x).item())
    assert losses == sorted(losses, reverse=True)
