"""The users' programs beside this file run, and what they say of types to checkers (`.ci/types`) is so when they run."""

from __future__ import annotations

import types
import typing
from typing import Any

import numpy as np
import pytest

import autograd_nb as torch
from tests.typing import derivatives, layers, loaders, programs, tensors, training


def holds(value: Any, said: Any) -> bool:
    """Return whether a value is of a type, whose parameters of tuples and lists are looked at too."""
    origin, inner = typing.get_origin(said), typing.get_args(said)
    if origin in (typing.Union, types.UnionType):
        return any(holds(value, one) for one in inner)
    if origin is tuple and inner[-1] is not Ellipsis:
        return isinstance(value, tuple) and len(value) == len(inner) and all(map(holds, value, inner))
    if origin is dict:
        return isinstance(value, dict) and all(holds(key, inner[0]) and holds(one, inner[1]) for key, one in value.items())
    if said is Any:
        return True
    if origin is np.ndarray:
        return isinstance(value, origin)
    if origin in (tuple, list):
        return isinstance(value, origin) and all(holds(one, inner[0]) for one in value)
    return type(value) is said or (isinstance(value, said) and said not in (int, tuple))


@pytest.fixture
def asserted(monkeypatch):
    """Let `assert_type` look at the values; the list grows by one with each."""
    seen: list[Any] = []

    def check(value: Any, said: Any) -> Any:
        assert holds(value, said), f"{type(value)} is not {said}"
        seen.append(said)
        return value

    for program in (derivatives, layers, loaders, programs, tensors, training):
        monkeypatch.setattr(program, "assert_type", check)
    return seen


def test_what_is_asserted_can_fail():
    pair = (torch.ones(1), torch.ones(1))
    assert holds(pair, tuple[torch.Tensor, torch.Tensor]) and not holds(pair, tuple[torch.Tensor, torch.Tensor, torch.Tensor])
    assert not holds(torch.ones(1).max(0), torch.Tensor) and not holds(True, int)


def test_tensors(asserted):
    x = torch.tensor(np.random.default_rng(0).random((4, 4)) + np.eye(4))
    tensors.arithmetic(x, x + 1)
    tensors.created()
    tensors.flags(x)
    tensors.named(x)
    tensors.out_of_tensors(torch.ones(1, 1, dtype=torch.float64))
    tensors.randoms(x / 2)
    assert len(asserted) > 100


@pytest.mark.filterwarnings("ignore:Anomaly Detection")
def test_derivatives(asserted, capsys):
    derivatives.gradients()
    derivatives.transforms(torch.ones(2, 2))
    derivatives.compiled(torch.ones(3))
    assert len(asserted) >= 7


def test_training(asserted, capsys, tmp_path):
    training.main()
    training.keep(training.Classifier(8, 3), tmp_path / "weights")
    assert len(asserted) > 10


def test_loaders(asserted):
    assert loaders.parts() == 44
    output, rate = loaders.watched()
    assert output.shape == (1, 2) and rate == 0.05
    assert len(asserted) == 1


def test_whole_programs(asserted, tmp_path, capsys):
    torch.manual_seed(0)
    x = torch.randn(32, 4)
    batches = programs.DataLoader(programs.TensorDataset(x, (x.sum(1) > 0).long()), batch_size=8)
    progress = programs.fit(torch.nn.Linear(4, 2), batches, (x, (x.sum(1) > 0).long()), 25)
    assert progress.losses[-1] < progress.losses[0] and progress.best < 0.5
    attention = programs.Attention(4, 2, 5)
    assert attention(torch.randn(2, 5, 4)).shape == (2, 5, 4) and attention.seen.shape == (2, 2, 5, 5)
    assert sorted(programs.watched(programs.Tower(3), torch.ones(2, 3))) == ["layers.first", "layers.second"]
    y = torch.tensor([-2.0, 0.5], requires_grad=True)
    programs.clamped(y).sum().backward()
    assert y.grad.tolist() == [pytest.approx(0.1), 1.0]
    (tmp_path / "rows").write_text("1,2\n3,4\n")
    assert programs.read(tmp_path / "rows") == (10.0, 4 + 6 + 6)
    losses = programs.compiled_steps(5)
    assert losses[-1] < losses[0] and "Compiled function" in capsys.readouterr().out
    model = torch.nn.Linear(4, 2)
    assert programs.per_sample(model, x, torch.zeros(32, 2))["weight"].shape == (32, 2, 4)
    found = programs.newton(lambda v: ((v - 1) ** 4).sum() + (v**2).sum(), torch.zeros(2), 8)
    assert torch.func.grad(lambda v: ((v - 1) ** 4).sum() + (v**2).sum())(found).abs().max().item() < 1e-4
    assert programs.shared(torch.nn.Linear(4, 1), x, torch.zeros(32, 1)) > 0
    assert len(asserted) >= 2


def test_layers(asserted):
    x = torch.ones(2, 3)
    layers.parts(x)
    layers.containers(x)
    layers.recurrent()
    layers.optimizers()
    layers.transforms(x)
    assert len(asserted) > 20
