"""Schedules and weight averages beside PyTorch's: rates of two groups, states saved on the way, tensor rates, errors."""

from __future__ import annotations

import copy
import warnings

import numpy as np
import pytest

from .compare import torch

import autograd_nb as ours  # isort: skip


def S(t):
    return t.optim.lr_scheduler


MAKERS = {
    "lambda": lambda t, o: S(t).LambdaLR(o, [lambda e: 0.9**e, lambda e: 1 / (1 + e)]),
    "multiplicative": lambda t, o: S(t).MultiplicativeLR(o, lambda e: 0.9 + e / 100),
    "step": lambda t, o: S(t).StepLR(o, 3, 0.5),
    "multistep": lambda t, o: S(t).MultiStepLR(o, [2, 2, 5, 9], 0.5),
    "constant": lambda t, o: S(t).ConstantLR(o, 0.4, 4),
    "linear": lambda t, o: S(t).LinearLR(o, 0.2, 0.8, 6),
    "exponential": lambda t, o: S(t).ExponentialLR(o, 0.9),
    "sequential": lambda t, o: S(t).SequentialLR(
        o, [S(t).LinearLR(o, 0.1, total_iters=4), S(t).ExponentialLR(o, 0.9), S(t).StepLR(o, 2)], [4, 9]
    ),
    "cosine": lambda t, o: S(t).CosineAnnealingLR(o, 5, 0.01),
    "chained": lambda t, o: S(t).ChainedScheduler([S(t).ConstantLR(o, 0.5, 3), S(t).ExponentialLR(o, 0.9)], optimizer=o),
    "chained first": lambda t, o: S(t).ChainedScheduler([S(t).StepLR(o, 2), S(t).CosineAnnealingLR(o, 7)]),
    "cyclic": lambda t, o: S(t).CyclicLR(o, [0.01, 0.02], 0.3, 4, 3, mode="triangular2"),
    "cyclic range": lambda t, o: S(t).CyclicLR(o, 0.01, 0.3, 4, mode="exp_range", gamma=0.9, cycle_momentum=False),
    "cyclic own": lambda t, o: S(t).CyclicLR(
        o, 0.01, 0.3, 4, scale_fn=lambda x: 1 / (5 ** (x * 0.0001)), scale_mode="iterations"
    ),
    "restarts": lambda t, o: S(t).CosineAnnealingWarmRestarts(o, 3, 2, 0.01),
    "one cycle": lambda t, o: S(t).OneCycleLR(o, [0.5, 0.7], total_steps=20),
    "one cycle 3": lambda t, o: S(t).OneCycleLR(
        o, 0.5, epochs=4, steps_per_epoch=5, three_phase=True, anneal_strategy="linear", div_factor=10
    ),
    "polynomial": lambda t, o: S(t).PolynomialLR(o, 8, 2.0),
    "swa": lambda t, o: t.optim.swa_utils.SWALR(o, [0.02, 0.03], 6),
    "swa linear": lambda t, o: t.optim.swa_utils.SWALR(o, 0.02, 4, "linear"),
    "swa at once": lambda t, o: t.optim.swa_utils.SWALR(o, 0.02, 0),
}


def two_groups(t, lr=0.1):
    groups = [{"params": [t.nn.Parameter(t.zeros(2))]}, {"params": [t.nn.Parameter(t.zeros(3))], "lr": copy.deepcopy(lr) * 2}]
    return t.optim.SGD(groups, lr=lr, momentum=0.9)


@pytest.mark.parametrize("name", MAKERS)
@pytest.mark.parametrize("kind", ["plain", "tensor", "reloaded"])
def test_rates(name, kind):
    def run(t):
        o = two_groups(t, t.tensor(0.1, dtype=t.float64) if kind == "tensor" else 0.1)
        s = MAKERS[name](t, o)
        out = []
        for i in range(18):
            out += [float(g["lr"]) for g in o.param_groups] + [g["momentum"] for g in o.param_groups]
            out += [float(x) for x in s.get_last_lr()]
            o.step()
            s.step()
            if kind == "reloaded" and i == 7:
                kept, rates = copy.deepcopy(s.state_dict()), copy.deepcopy(o.state_dict())
                o = two_groups(t)
                s = MAKERS[name](t, o)
                o.load_state_dict(rates)
                s.load_state_dict(kept)
        return out

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        np.testing.assert_allclose(run(ours), run(torch), rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("name", [n for n in MAKERS if not n.startswith(("chained", "swa", "sequential", "one"))])
def test_given_epochs(name):
    def run(t):
        o = two_groups(t)
        s = MAKERS[name](t, o)
        out = []
        for epoch in (0, 1, 2, 5, 6, 3, 9):
            s.step(epoch)
            out += [g["lr"] for g in o.param_groups]
        return out

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        np.testing.assert_allclose(run(ours), run(torch), rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize(
    "options",
    [
        {"patience": 1, "cooldown": 1},
        {"mode": "max", "threshold_mode": "abs", "threshold": 0.1, "patience": 0},
        {"min_lr": [0.05, 0.01], "patience": 0, "factor": 0.5},
        {"eps": 0.05, "patience": 0},
    ],
    ids=range(4),
)
def test_plateau(options):
    metrics = np.concatenate([np.linspace(1, 0.5, 5), np.random.default_rng(0).normal(size=20) / 50 + 0.5])

    def run(t):
        o = two_groups(t)
        s = S(t).ReduceLROnPlateau(o, **options)
        out = []
        for m in metrics:
            s.step(t.tensor(m))
            out += [g["lr"] for g in o.param_groups] + [s.num_bad_epochs, float(s.best)]
        return out

    np.testing.assert_allclose(run(ours), run(torch), rtol=1e-6)


ERRORS = [
    lambda t, o: S(t).LambdaLR(o, [lambda e: 1]),
    lambda t, o: S(t).CyclicLR(o, 0.1, 0.2, mode="what"),
    lambda t, o: S(t).CyclicLR(t.optim.Rprop([t.nn.Parameter(t.zeros(1))]), 0.1, 0.2),
    lambda t, o: S(t).CyclicLR(o, [0.1], 0.2),
    lambda t, o: S(t).OneCycleLR(o, 0.1),
    lambda t, o: S(t).OneCycleLR(o, 0.1, total_steps=-1),
    lambda t, o: S(t).OneCycleLR(o, 0.1, epochs=0, steps_per_epoch=3),
    lambda t, o: S(t).OneCycleLR(o, 0.1, total_steps=10, pct_start=1.5),
    lambda t, o: S(t).OneCycleLR(o, 0.1, total_steps=10, anneal_strategy="what"),
    lambda t, o: S(t).OneCycleLR(o, [0.1], total_steps=10),
    lambda t, o: S(t).CosineAnnealingWarmRestarts(o, 0),
    lambda t, o: S(t).CosineAnnealingWarmRestarts(o, 3, 0),
    lambda t, o: S(t).CosineAnnealingWarmRestarts(o, 3).step(-1),
    lambda t, o: S(t).ReduceLROnPlateau(o, factor=1.0),
    lambda t, o: S(t).ReduceLROnPlateau(o, mode="what"),
    lambda t, o: S(t).ReduceLROnPlateau(o, threshold_mode="what"),
    lambda t, o: S(t).ReduceLROnPlateau(o, min_lr=[0.1]),
    lambda t, o: S(t).SequentialLR(o, [], []),
    lambda t, o: S(t).SequentialLR(o, [S(t).StepLR(o, 2)], [3]),
    lambda t, o: S(t).SequentialLR(o, [S(t).StepLR(o, 2), S(t).StepLR(two_groups(t), 2)], [3]),
    lambda t, o: S(t).SequentialLR(o, [S(t).StepLR(o, 2), S(t).ReduceLROnPlateau(o)], [3]),
    lambda t, o: S(t).ChainedScheduler([]),
    lambda t, o: S(t).ChainedScheduler([S(t).StepLR(o, 2), S(t).StepLR(two_groups(t), 2)]),
    lambda t, o: S(t).ConstantLR(o, 2.0),
    lambda t, o: S(t).LinearLR(o, 0.0),
    lambda t, o: S(t).LinearLR(o, end_factor=2.0),
    lambda t, o: S(t).StepLR(o, 2, last_epoch=3),
    lambda t, o: S(t).StepLR(None, 2),
    lambda t, o: t.optim.swa_utils.SWALR(o, 0.1, anneal_strategy="what"),
    lambda t, o: t.optim.swa_utils.SWALR(o, 0.1, anneal_epochs=-1),
    lambda t, o: t.optim.swa_utils.SWALR(o, [0.1]),
    lambda t, o: t.optim.swa_utils.get_ema_avg_fn(1.5),
    lambda t, o: t.optim.swa_utils.get_ema_multi_avg_fn(-1),
    lambda t, o: t.optim.swa_utils.AveragedModel(t.nn.Linear(1, 1), avg_fn=print, multi_avg_fn=print),
]


@pytest.mark.parametrize("number", range(len(ERRORS)))
def test_errors(number):
    def refused(t):
        with pytest.raises(Exception) as caught:
            ERRORS[number](t, two_groups(t))
        return caught.value

    mine, theirs = refused(ours), refused(torch)
    assert isinstance(mine, type(theirs)), (mine, theirs)
    words = set(str(theirs.args[0] if theirs.args else "").split()[:16])
    assert len(words & set(str(mine.args[0]).split())) >= 0.6 * len(words), (str(mine), str(theirs))


# --------------------------------------------------------------------------------------------------- averages


@pytest.mark.parametrize("buffers", [False, True])
@pytest.mark.parametrize("kind", ["default", "swa", "ema", "multi swa", "multi ema", "own"])
def test_averaged_model(kind, buffers):
    if (kind, buffers) == ("multi swa", True):
        pytest.skip("PyTorch refuses to average integer buffers so")
    rng = np.random.default_rng(0)
    x, weights = rng.normal(size=(8, 3)).astype("f4"), rng.normal(size=(3, 2, 3)).astype("f4")

    def run(t):
        u = t.optim.swa_utils
        options = {
            "default": {}, "swa": {"avg_fn": u.get_swa_avg_fn()}, "ema": {"avg_fn": u.get_ema_avg_fn(0.9)},
            "multi swa": {"multi_avg_fn": u.get_swa_multi_avg_fn()}, "multi ema": {"multi_avg_fn": u.get_ema_multi_avg_fn(0.9)},
            "own": {"avg_fn": lambda a, c, n: a * 0.3 + c * 0.7},
        }[kind]  # fmt: skip
        model = t.nn.Sequential(t.nn.Linear(3, 2), t.nn.BatchNorm1d(2))
        with t.no_grad():
            model[0].bias.zero_()
        averaged = u.AveragedModel(model, use_buffers=buffers, **options)
        for w in weights:
            with t.no_grad():
                model[0].weight.copy_(t.tensor(w))
            model(t.tensor(x))
            averaged.update_parameters(model)
        before = {k: v.clone() for k, v in averaged.state_dict().items()}
        u.update_bn([t.tensor(x[:4]), [t.tensor(x[4:])]], averaged)
        return before, averaged.state_dict()

    for mine, theirs in zip(run(ours), run(torch), strict=True):
        assert list(mine) == list(theirs)
        for k, v in theirs.items():
            np.testing.assert_allclose(mine[k].numpy(), v.numpy(), rtol=2e-6, atol=2e-6, err_msg=k)
