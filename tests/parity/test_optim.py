"""Optimizers, schedules and files beside PyTorch's."""

from __future__ import annotations

import itertools
import warnings

import numpy as np
import pytest

from .compare import torch

import autograd_nb as ours  # isort: skip

OPTIMIZERS = [
    ("SGD", {"lr": 0.1}),
    ("SGD", {"lr": 0.1, "momentum": 0.9, "weight_decay": 0.01}),
    ("SGD", {"lr": 0.1, "momentum": 0.9, "nesterov": True, "maximize": True}),
    ("SGD", {"lr": 0.1, "momentum": 0.9, "dampening": 0.3}),
    ("Adam", {}),
    ("Adam", {"weight_decay": 0.1, "amsgrad": True}),
    ("AdamW", {"maximize": True}),
    ("AdamW", {"amsgrad": True}),
    ("RMSprop", {}),
    ("RMSprop", {"momentum": 0.9, "centered": True, "weight_decay": 0.1}),
    ("RMSprop", {"centered": True}),
    ("Adagrad", {"lr_decay": 0.1, "initial_accumulator_value": 0.2}),
    ("Adadelta", {"weight_decay": 0.1}),
    ("Adamax", {"weight_decay": 0.1}),
    ("NAdam", {"weight_decay": 0.1}),
    ("NAdam", {"weight_decay": 0.1, "decoupled_weight_decay": True}),
    ("RAdam", {}),
    ("RAdam", {"weight_decay": 0.1, "decoupled_weight_decay": True}),
    ("Rprop", {}),
    ("ASGD", {"t0": 2, "weight_decay": 0.1}),
]


def _laid_out(library, rng, dtype, how):
    if how == "channels last":
        return library.tensor(rng.normal(size=(2, 3, 2, 2)).astype(dtype)).contiguous(memory_format=library.channels_last)
    t = library.tensor(rng.normal(size=(4, 3)).astype(dtype)).t()
    return {"turned": t, "stepped": t[:, ::2], "C order": t.contiguous()}[how]


@pytest.mark.parametrize(("name", "options"), [*OPTIMIZERS, ("Adafactor", {}), ("Muon", {})])
@pytest.mark.parametrize("dtype", ["float32", "complex64"])
def test_states_lie_in_memory_as_parameters_or_gradients_do(name, options, dtype):
    if dtype == "complex64" and name in ("Adafactor", "Muon"):
        pytest.skip("refuses complex parameters")
    same = [(how, how) for how in ("stepped", "channels last") if (name, how) != ("Muon", "channels last")]
    for p_lies, g_lies in [*itertools.product(("turned", "C order"), repeat=2), *same]:
        seen = []
        for library in (ours, torch):
            rng = np.random.default_rng(0)
            p = library.nn.Parameter(_laid_out(library, rng, dtype, p_lies))
            optimizer = getattr(library.optim, name)([p], **options)
            for _ in range(3):
                p.grad = _laid_out(library, rng, dtype, g_lies)
                optimizer.step()
            seen.append((p, optimizer.state[p]))
        (p, mine), (q, theirs) = seen
        assert p.stride() == q.stride()
        np.testing.assert_allclose(p.detach().numpy(), q.detach().numpy(), rtol=1e-5, atol=2e-6)
        for state in mine:
            if theirs[state] is not None and theirs[state].ndim:
                assert mine[state].stride() == theirs[state].stride(), (p_lies, g_lies, state)
                np.testing.assert_allclose(mine[state].numpy(), theirs[state].numpy(), rtol=1e-5, atol=2e-6)


@pytest.mark.parametrize(("name", "options"), OPTIMIZERS, ids=[f"{o[0]}-{i}" for i, o in enumerate(OPTIMIZERS)])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_optimizer(name, options, dtype):
    rng = np.random.default_rng(0)
    weights = [rng.normal(size=(7, 3)).astype(dtype), rng.normal(size=(5,)).astype(dtype)]
    a = [ours.nn.Parameter(ours.tensor(w)) for w in weights]
    b = [torch.nn.Parameter(torch.tensor(w)) for w in weights]
    mine, theirs = getattr(ours.optim, name)(a, **options), getattr(torch.optim, name)(b, foreach=False, **options)
    assert repr(mine) == repr(theirs).replace("foreach: False", "foreach: None")
    for step in range(8):
        for p, q in zip(a, b, strict=True):
            g = rng.normal(size=p.shape).astype(dtype)
            p.grad, q.grad = ours.tensor(g), torch.tensor(g)
        mine.step()
        theirs.step()
        if step == 4:  # PyTorch's state is taken over
            state = theirs.state_dict()
            state["state"] = {
                i: {k: ours.tensor(v.numpy()) if v is not None else None for k, v in s.items()} for i, s in state["state"].items()
            }
            mine.load_state_dict(state)
    tolerance = 3e-6 if dtype == "float32" else 1e-9
    for p, q in zip(a, b, strict=True):
        np.testing.assert_allclose(p.detach().numpy(), q.detach().numpy(), rtol=tolerance, atol=tolerance)
    x, y = mine.state_dict(), theirs.state_dict()
    for i, values in y["state"].items():
        assert set(x["state"][i]) == set(values)
        for k, v in values.items():
            if v is not None:
                np.testing.assert_allclose(x["state"][i][k].numpy(), v.numpy(), rtol=1e-5, atol=1e-6)


SCHEDULES = [
    ("StepLR", {"step_size": 3}),
    ("MultiStepLR", {"milestones": [2, 5, 5]}),
    ("ExponentialLR", {"gamma": 0.9}),
    ("CosineAnnealingLR", {"T_max": 5, "eta_min": 0.01}),
    ("LambdaLR", {"lr_lambda": lambda e: 0.95**e}),
    ("MultiplicativeLR", {"lr_lambda": lambda e: 0.95}),
    ("ConstantLR", {"factor": 0.5, "total_iters": 4}),
    ("LinearLR", {"total_iters": 6}),
    ("PolynomialLR", {"total_iters": 8, "power": 2.0}),
    ("CosineAnnealingWarmRestarts", {"T_0": 3, "T_mult": 2}),
    ("OneCycleLR", {"max_lr": 0.5, "total_steps": 20}),
    ("OneCycleLR", {"max_lr": 0.5, "total_steps": 20, "three_phase": True, "anneal_strategy": "linear"}),
    ("CyclicLR", {"base_lr": 0.01, "max_lr": 0.3, "step_size_up": 4, "mode": "triangular2"}),
    ("CyclicLR", {"base_lr": 0.01, "max_lr": 0.3, "step_size_up": 4, "mode": "exp_range", "gamma": 0.9}),
    ("ReduceLROnPlateau", {"patience": 1, "cooldown": 1}),
]


@pytest.mark.parametrize(("name", "options"), SCHEDULES, ids=[f"{s[0]}-{i}" for i, s in enumerate(SCHEDULES)])
def test_schedule(name, options):
    def run(t):
        o = t.optim.SGD([t.nn.Parameter(t.zeros(2))], lr=0.1, momentum=0.9)
        s = getattr(t.optim.lr_scheduler, name)(o, **options)
        out = [(o.param_groups[0]["lr"], o.param_groups[0]["momentum"])]
        for i in range(18):
            o.step()
            s.step(*([max(5 - i // 3, 3)] if name == "ReduceLROnPlateau" else []))
            out.append((s.get_last_lr()[0], o.param_groups[0]["momentum"]))
        return out

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        np.testing.assert_allclose(run(ours), run(torch), rtol=1e-14)


@pytest.mark.parametrize("norm", [2.0, 1.0, float("inf"), 3.0])
def test_clipping(norm):
    gs = [np.random.default_rng(i).normal(size=(7, 5)).astype(np.float32) for i in range(3)]

    def run(t):
        ps = [t.nn.Parameter(t.zeros(7, 5)) for _ in gs]
        for p, g in zip(ps, gs, strict=True):
            p.grad = t.tensor(g)
        return t.nn.utils.clip_grad_norm_(ps, 1.0, norm).item(), [p.grad.numpy() for p in ps]

    (a, x), (b, y) = run(ours), run(torch)
    np.testing.assert_allclose(a, b, rtol=1e-6)
    np.testing.assert_allclose(x, y, rtol=1e-5)


def test_files_are_exchanged(tmp_path):
    path = tmp_path / "weights.pt"

    def make(t):
        m = t.nn.Sequential(t.nn.Linear(3, 4), t.nn.BatchNorm1d(4))
        o = t.optim.Adam(m.parameters())
        m(t.ones(5, 3)).sum().backward()
        o.step()
        return m, o

    (m, o), (n, p) = make(ours), make(torch)
    ours.save({"model": m.state_dict(), "optimizer": o.state_dict(), "view": ours.arange(6.0).reshape(2, 3).t(), "dtype": ours.float16}, path)
    found = torch.load(path)
    n.load_state_dict(found["model"])
    p.load_state_dict(found["optimizer"])
    np.testing.assert_array_equal(n[0].weight.detach().numpy(), m[0].weight.detach().numpy())
    assert found["view"].stride() == (1, 3)
    assert found["dtype"] is torch.float16
    n, p = make(torch)
    torch.save({"model": n.state_dict(), "optimizer": p.state_dict(), "half": torch.ones(3, dtype=torch.float16), "p": n[0].bias}, path)
    found = ours.load(path)
    m.load_state_dict(found["model"])
    o.load_state_dict(found["optimizer"])
    np.testing.assert_array_equal(n[0].weight.detach().numpy(), m[0].weight.detach().numpy())
    assert found["half"].tolist() == [1, 1, 1]
    assert isinstance(found["p"], ours.nn.Parameter)


@pytest.mark.parametrize("name", ["SGD", "Adam", "AdamW", "NAdam", "RAdam", "Adamax", "Adadelta", "Adagrad", "RMSprop", "Rprop", "ASGD", "Adafactor"])
def test_parameters_that_were_given_another_shape(name):
    """A gradient that can be broadcast to it is; else, and where the states are others, the step is refused and nothing changes."""
    taken = 0
    for shape, new in itertools.product([(1, 4), (3, 4), (4,), (12,), (4, 3)], repeat=2):
        for steps in (0, 1):
            found = []
            for lib in (torch, ours):
                p = lib.ones(shape).requires_grad_()
                optimizer = getattr(lib.optim, name)([p], lr=0.1)
                (p * lib.arange(float(p.numel())).reshape(shape)).sum().backward()
                for _ in range(steps):
                    optimizer.step()
                p.data = lib.full(new, 2.0)
                try:
                    optimizer.step()
                except RuntimeError:
                    assert lib is torch or bool((p == 2).all())
                    found.append(None)
                else:
                    found.append(p.tolist())
            theirs, mine = found
            if mine is not None and theirs is not None:
                np.testing.assert_allclose(mine, theirs, rtol=1e-4)
                taken += 1
            elif mine is not None:  # PyTorch writes the smaller gradient as a state
                assert len(shape) <= len(new) and np.broadcast_shapes(shape, new) == new
            if shape == new:
                assert mine is not None
    assert taken >= 10


@pytest.mark.parity
@pytest.mark.parametrize(("name", "options"), [
    ("SGD", {"momentum": 0.9}), ("Adam", {"amsgrad": True}), ("AdamW", {}), ("NAdam", {}), ("RAdam", {}), ("Adamax", {}), ("Rprop", {}), ("ASGD", {}),
    ("RMSprop", {"centered": True}), ("RMSprop", {"momentum": 0.3}), ("RMSprop", {"centered": True, "momentum": 0.3}), ("Adagrad", {}), ("Adadelta", {}),
    ("Adafactor", {}), ("Muon", {}),
])  # fmt: skip
def test_states_stand_in_pytorchs_order(name, options):
    found = []
    for lib in (torch, ours):
        p = lib.nn.Parameter(lib.ones(3, 3))
        optimizer = getattr(lib.optim, name)([p], **options)
        p.square().sum().backward()
        optimizer.step()
        found.append([list(state) for state in optimizer.state_dict()["state"].values()])
    assert found[0] == found[1]


@pytest.mark.parity
@pytest.mark.parametrize("name", sorted(n for n, c in vars(torch.optim).items() if isinstance(c, type) and n != "Optimizer"))
def test_options_stand_in_pytorchs_order(name):
    """In groups, defaults and state dicts, and after these were read."""
    found = []
    for library in (torch, ours):
        p = library.nn.Parameter(library.ones(2, 2))
        o = getattr(library.optim, name)([p], lr=0.1)
        o.load_state_dict(o.state_dict())
        found.append([list(o.defaults), list(o.param_groups[0]), list(o.state_dict()["param_groups"][0])])
    assert found[0] == found[1]
