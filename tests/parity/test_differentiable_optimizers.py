"""Optimizers with ``differentiable=True`` beside PyTorch's: gradients through several steps, to what they began with and to their options."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import autograd_nb as ag

#: optimizer -> options of each case; "tensor" stands for the number as a tensor that requires grad
CASES: dict[str, dict[str, dict[str, Any]]] = {
    "SGD": {
        "plain": {"lr": 0.3}, "momentum": {"lr": 0.3, "momentum": 0.8, "dampening": 0.2, "weight_decay": 0.1},
        "nesterov": {"lr": 0.3, "momentum": 0.8, "nesterov": True}, "maximize": {"lr": 0.3, "maximize": True},
        "tensor lr": {"lr": "tensor 0.3"}, "tensor lr, decay": {"lr": "tensor 0.3", "weight_decay": "tensor 0.1", "momentum": 0.5},
    },
    "Adam": {
        "plain": {"lr": 0.3}, "decay": {"lr": 0.3, "weight_decay": 0.1, "maximize": True}, "amsgrad": {"lr": 0.3, "amsgrad": True},
        "tensor lr": {"lr": "tensor 0.3"}, "tensor betas": {"lr": 0.3, "betas": ("tensor 0.8", "tensor 0.9")},
        "tensor decay": {"lr": "tensor 0.3", "weight_decay": "tensor 0.1", "amsgrad": True},
    },
    "AdamW": {
        "plain": {"lr": 0.3, "weight_decay": 0.1}, "amsgrad": {"lr": 0.3, "weight_decay": 0.1, "amsgrad": True},
        "tensor lr, decay": {"lr": "tensor 0.3", "weight_decay": "tensor 0.1"},
    },
    "Adagrad": {"plain": {"lr": 0.3, "lr_decay": 0.1, "initial_accumulator_value": 0.1}, "decay": {"lr": 0.3, "weight_decay": 0.1}},
    "RMSprop": {
        "plain": {"lr": 0.3}, "momentum": {"lr": 0.3, "momentum": 0.5, "weight_decay": 0.1}, "centered": {"lr": 0.3, "centered": True, "eps": 0.1},
        "both": {"lr": 0.3, "centered": True, "momentum": 0.5, "maximize": True, "eps": 0.1}, "tensor lr": {"lr": "tensor 0.3"},
    },
    "Adadelta": {"plain": {"lr": 2.0, "rho": 0.5}, "decay": {"lr": 1.0, "weight_decay": 0.1}, "tensor lr": {"lr": "tensor 2.0"}},
    "Adamax": {"plain": {"lr": 0.3}, "decay": {"lr": 0.3, "weight_decay": 0.1}, "tensor lr": {"lr": "tensor 0.3"}},
    "NAdam": {"plain": {"lr": 0.3}, "decoupled": {"lr": 0.3, "weight_decay": 0.1, "decoupled_weight_decay": True}, "tensor lr": {"lr": "tensor 0.3"}},
    "RAdam": {"plain": {"lr": 0.3, "betas": (0.5, 0.6)}, "decoupled": {"lr": 0.3, "weight_decay": 0.1, "decoupled_weight_decay": True}},
    "ASGD": {"plain": {"lr": 0.3, "t0": 2}, "decay": {"lr": 0.3, "weight_decay": 0.1, "lambd": 0.05, "alpha": 0.5}},
    "Rprop": {"plain": {"lr": 0.3}, "etas": {"lr": 0.3, "etas": (0.3, 1.5), "step_sizes": (0.1, 0.4), "maximize": True}},
}  # fmt: skip
NAMES = [(name, case) for name, cases in CASES.items() for case in cases]
STEPS = 5


def options_of(library: Any, given: dict[str, Any], dtype: Any) -> tuple[dict[str, Any], list[Any]]:
    """The options, and those of them that gradients go to."""
    tensors: list[Any] = []

    def made(value: Any) -> Any:
        if isinstance(value, tuple):
            return tuple(made(v) for v in value)
        if not isinstance(value, str):
            return value
        tensors.append(library.tensor(float(value.split()[1]), dtype=dtype, requires_grad=True))
        return tensors[-1]

    return {name: made(value) for name, value in given.items()}, tensors


def begun(library: Any, given: dict[str, Any], dtype: Any) -> tuple[dict[str, Any], list[Any]]:
    """The options of a case, and what gradients go to: the first parameter, data, options."""
    options, tensors = options_of(library, given, dtype)
    first = library.tensor([[0.5, -1.0, 2.0], [1.5, 0.25, -0.75]], dtype=dtype, requires_grad=True)
    data = library.tensor([[1.0, 0.5, -0.5], [-1.0, 2.0, 0.3]], dtype=dtype, requires_grad=True)
    return options, [first, data, *tensors]


def stepped(library: Any, name: str, options: dict[str, Any], first: Any, data: Any) -> list[Any]:
    """The parameter after some steps, and the state."""
    p = first.clone()
    optimizer = getattr(library.optim, name)([p], differentiable=True, **options)
    for k in range(STEPS):
        loss = ((p.clone() - data * (k + 1) / 3) ** 2).sum() + (p.clone() * data).sin().sum()
        (p.grad,) = library.autograd.grad(loss, p, create_graph=True)
        if k == 2:  # it records, whoever has switched that off
            with library.no_grad():
                optimizer.step()
        else:
            optimizer.step()
    state = optimizer.state[p]
    return [p, *[state[key] for key in sorted(state) if isinstance(state[key], library.Tensor)]]


def learnt(library: Any, name: str, given: dict[str, Any], dtype: Any) -> list[Any]:
    """The parameter and the state, then gradients of what they lead to."""
    options, sources = begun(library, given, dtype)
    p, *kept = stepped(library, name, options, *sources[:2])
    outcome = (p**3).sum() + sum((t * t).sum() for t in kept if t.requires_grad)
    return [p, *kept, *library.autograd.grad(outcome, sources, allow_unused=True)]


def put(given: Any, tensors: list[Any]) -> Any:
    """The options with tensors in the place of texts, which are taken from the list."""
    if isinstance(given, dict):
        return {name: put(value, tensors) for name, value in given.items()}
    return tuple(put(v, tensors) for v in given) if isinstance(given, tuple) else tensors.pop(0) if isinstance(given, str) else given


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name, case", NAMES)
def test_gradients_go_through_steps(name, case, dtype):
    try:
        theirs = learnt(torch, name, CASES[name][case], getattr(torch, dtype))
    except (RuntimeError, TypeError):  # PyTorch changes what it has saved, or takes no tensor
        if dtype == "float64":
            pytest.skip("see the next test")
        theirs = [t if t is None else t.float() for t in learnt(ag, name, CASES[name][case], ag.float64)]
    mine = learnt(ag, name, CASES[name][case], getattr(ag, dtype))
    assert len(mine) == len(theirs)
    for a, b in zip(mine, theirs, strict=True):
        assert (a is None) is (b is None)
        if a is not None:
            assert repr(a.dtype) == repr(b.dtype) and a.shape == tuple(b.shape) and a.requires_grad == b.requires_grad
            # PyTorch computes corrections of float64 from a count in float32
            tolerance = {"rtol": 1e-4, "atol": 3e-5} if dtype == "float64" else {"rtol": 2e-3, "atol": 2e-3}
            np.testing.assert_allclose(a.detach().numpy(), b.detach().numpy(), **tolerance)


@pytest.mark.parametrize("name, case", NAMES)
def test_gradients_are_differences(name, case):
    """As finite differences have them, which gives PyTorch's numbers where it gives none."""
    given = CASES[name][case]
    if name == "SGD" and "momentum" in given:
        pytest.skip("the first average has no history, as in PyTorch")
    sources = begun(ag, given, ag.float64)[1]

    def function(first: Any, data: Any, *options: Any) -> Any:
        return [t for t in stepped(ag, name, put(given, list(options)), first, data) if t.requires_grad]

    assert ag.autograd.gradcheck(function, sources)


@pytest.mark.parametrize("name, case", NAMES)
def test_one_step_from_states_that_require_grad(name, case):
    """Each state, the gradient and the parameter are inputs, as PyTorch's own tests have it."""
    given = {k: v for k, v in CASES[name][case].items() if "tensor" not in str(v)}
    ag.manual_seed(0)
    p, grad = (ag.rand(2, 3, dtype=ag.float64, requires_grad=True) for _ in range(2))
    begun = getattr(ag.optim, name)([first := ag.ones(2, 3, dtype=ag.float64)], **given)
    first.grad = ag.ones(2, 3, dtype=ag.float64)
    begun.step()
    begun.step()
    state = begun.state[first]
    wide = [key for key in state if state[key] is not None and state[key].ndim]

    def step(p: Any, grad: Any, *values: Any) -> Any:
        p = p.clone()
        p.grad = grad
        optimizer = getattr(ag.optim, name)([p], differentiable=True, **given)
        counters = {key: value.clone() for key, value in state.items() if value is not None and key not in wide}
        optimizer.state[p].update(counters | {key: v.clone() for key, v in zip(wide, values, strict=True)})
        optimizer.step()
        return [p, *[t for t in optimizer.state[p].values() if t.requires_grad]]

    values = [ag.rand(2, 3, dtype=ag.float64).add_(0.5).mul_(0.2 if key == "grad_avg" else 1.0) for key in wide]  # (its square is less than the other's)
    assert ag.autograd.gradcheck(step, [p, grad, *[v.requires_grad_() for v in values]])


def result(call: Any, library: Any) -> str:
    try:
        call(library)
    except Exception as error:
        return next(c.__name__ for c in type(error).__mro__ if c.__module__ == "builtins")
    return "done"


def a_step(library: Any, p: Any, **options: Any) -> Any:
    p.grad = library.ones(2)
    optimizer = library.optim.Adam([p], differentiable=True, **options)
    optimizer.step()
    return optimizer


REFUSED = {
    "a leaf": lambda t: a_step(t, t.ones(2, requires_grad=True)),
    "a leaf that needs no gradient": lambda t: a_step(t, t.ones(2)),
    "foreach": lambda t: a_step(t, t.ones(2), foreach=True),
    "fused": lambda t: a_step(t, t.ones(2), fused=True),
    "closure": lambda t: a_step(t, t.ones(2, requires_grad=True).clone()).step(lambda: t.ones(())),
    "no leaf, not recorded": lambda t: t.optim.Adam([t.ones(2, requires_grad=True).clone()]),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused(name):
    assert result(REFUSED[name], ag) == result(REFUSED[name], torch)


def test_complex_parameters():
    found = []
    for library, amsgrad in ((torch, False), (ag, False)):
        first = library.tensor([1.0 + 2.0j, -0.5 + 0.25j], dtype=library.complex128, requires_grad=True)
        p = first.clone()
        optimizer = library.optim.Adam([p], lr=0.1, amsgrad=amsgrad, differentiable=True)
        for _ in range(3):
            (p.grad,) = library.autograd.grad((p.clone() * p.clone().conj() * p.clone().real).real.sum(), p, create_graph=True)
            optimizer.step()
        found.append([p.detach(), library.autograd.grad(library.view_as_real(p).pow(2).sum(), first)[0]])
    for a, b in zip(found[1], found[0], strict=True):
        np.testing.assert_allclose(a.numpy(), b.resolve_conj().numpy(), rtol=1e-5)
