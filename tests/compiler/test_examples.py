"""The training steps of the examples, compiled: losses, parameters and gradients are those of the eager steps."""

from __future__ import annotations

import importlib.util
import warnings
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

import autograd_nb as torch
from autograd_nb import nn, optim
from autograd_nb.nn import functional as F
from autograd_nb.nn.utils import parameters_to_vector

pytestmark = pytest.mark.slow  # many kernels

EXAMPLES = Path(__file__).parents[2] / "examples"


def example(name: str) -> ModuleType:
    for needed in ("matplotlib", "tqdm", "sklearn", "safetensors", "PIL"):
        pytest.importorskip(needed)
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def updating(optimizer, losses):
    """A step that minimises the sum of what ``losses`` returns, and returns them."""

    def step():
        parts = losses()
        total = sum(parts[1:], start=parts[0])
        optimizer.zero_grad()
        total.backward()
        optimizer.step()
        return [part.detach() for part in parts]

    return step


def two_branch(backward):
    file = example("two_branch_classifier")
    model = file.TwoBranches()
    optimizer = optim.Adam(model.parameters(), lr=1e-3)
    images, answers = torch.rand(16, 1, 8, 8), torch.rand(2, 16, 1).round()

    def step():
        even, big = file.losses(model, images, answers)
        optimizer.zero_grad()
        file.backward(backward, even, big)
        optimizer.step()
        return [even.detach(), big.detach()]

    return step, model


def char_gpt():
    file = example("char_gpt")
    model = file.GPT(characters=20, context=8, width=16, heads=2, layers=2)
    optimizer = optim.AdamW(model.parameters(), lr=1e-3)
    text = torch.randint(0, 20, (4, 9))
    return updating(optimizer, lambda: [file.cross_entropy(model, text[:, :-1], text[:, 1:])]), model


def style_transfer():
    file = example("style_transfer")
    image = nn.Parameter(torch.rand(1, 3, 12, 12))
    model, contents, styles = file.with_losses(file.network(0), torch.rand(1, 3, 12, 12), torch.rand(1, 3, 12, 12))
    optimizer = optim.Adam([image], lr=0.02)

    def step():
        optimizer.zero_grad()
        model(image)
        style, content = (sum(one.loss for one in those) for those in (styles, contents))
        style.backward(retain_graph=True)
        content.backward()
        optimizer.step()
        with torch.no_grad():
            image.clamp_(0, 1)
        return [style.detach(), content.detach()]

    return step, nn.ParameterList([image])


def pinn_heat():
    file = example("pinn_heat")
    model = file.Heat(8)
    return updating(optim.Adam(model.parameters(), lr=1e-3), lambda: file.losses(model, 32)), model


def neural_ode():
    file = example("neural_ode")
    model, start = file.Learnt(8), torch.randn(4, 2)
    wanted = torch.randn(5, 4, 2)
    return updating(optim.Adam(model.parameters()), lambda: [(file.rk4(model, start, 0.1, 5) - wanted).abs().mean()]), model


def maml_sine():
    file = example("maml_sine")
    model = file.network(8)

    def losses():
        task = file.Task()
        weights = file.adapted(model, dict(model.named_parameters()), *task.sample(5), 0.01, steps=2)
        x, y = task.sample(5)
        return [F.mse_loss(torch.func.functional_call(model, weights, (x,)), y)]

    return updating(optim.Adam(model.parameters(), lr=1e-3), losses), model


def atoms():
    file = example("user_ops")
    where = nn.Parameter(file.icosahedron(0.05))
    return updating(optim.SGD([where], lr=1e-3), lambda: [file.energy(where)]), nn.ParameterList([where])


def pulses():
    file = example("user_ops")
    model = nn.Conv1d(1, 1, 17, padding=8, bias=False)  # a bias would have no gradient but noise

    def losses():
        signals, where = file.pulses(8, 50, 0.1)
        return [F.smooth_l1_loss(file.soft_argmax(model(signals)[:, 0]), where)]

    return updating(optim.Adam(model.parameters(), lr=0.05), losses), model


STEPS = {
    "joint": lambda: two_branch("joint"),
    "sequential": lambda: two_branch("sequential"),
    **{f.__name__: f for f in (char_gpt, style_transfer, pinn_heat, neural_ode, maml_sine, atoms, pulses)},
}


@pytest.mark.parametrize("name", STEPS)
def test_example(name):
    runs = []
    for compiled in (False, True):
        torch.manual_seed(0)
        step, model = STEPS[name]()
        if compiled:
            step = torch.compile(step, fullgraph=True, check=True)
        losses = []
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            for i in range(4):
                torch.manual_seed(i)
                losses.append([value.item() for value in step()])
        runs.append((np.array(losses), parameters_to_vector(model.parameters()).detach().numpy()))
    assert len(step.programs) == 1
    (eager, eager_weights), (losses, weights) = runs
    assert np.isfinite(eager).all() and len({tuple(x) for x in eager.tolist()}) == 4
    np.testing.assert_allclose(losses, eager, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(weights, eager_weights, rtol=1e-4, atol=1e-5)
