"""PyTorch's own database of optimizers: every dense CPU configuration in both libraries, and its error inputs refused."""

from __future__ import annotations

import copy
import re
import warnings

import numpy as np
import pytest

from .compare import torch

import autograd_nb as ours  # isort: skip

common = pytest.importorskip("torch.testing._internal.common_optimizers")

OPTIMIZERS = {info.optim_cls.__name__: info for info in common.optim_db if not info.only_supports_sparse_grads}
CASES = [(name, i) for name, info in OPTIMIZERS.items() for i in range(len(info.optim_inputs_func(device="cpu")))]


def translated(value):
    """Arguments of PyTorch as ours; parameters go on being the same where they were."""
    known: dict[int, object] = {}

    def go(v):
        if isinstance(v, torch.Tensor):
            if id(v) not in known:
                t = ours.from_numpy(v.detach().numpy().copy())
                known[id(v)] = ours.nn.Parameter(t) if isinstance(v, torch.nn.Parameter) else t
                if v.grad is not None:
                    known[id(v)].grad = ours.from_numpy(v.grad.numpy().copy())
            return known[id(v)]
        if isinstance(v, dict):
            return {k: go(x) for k, x in v.items()}
        return type(v)(go(x) for x in v) if isinstance(v, (list, tuple)) else v

    return go(value)


def start(name, dtype):
    rng = np.random.default_rng(0)
    shapes = [(6, 4), (3, 5)] if name == "Muon" else [(6, 4), (5,), (2, 3, 4), ()]
    return [rng.normal(size=s).astype(dtype) for s in shapes]


def run(library, name, kwargs, dtype, steps=10, through_state=False):
    """Parameters, state and loss after some steps from fixed gradients (LBFGS: of a fixed function)."""
    params = [library.nn.Parameter(library.tensor(a)) for a in start(name, dtype)]
    optimizer = getattr(library.optim, name)(params, **kwargs)
    rng = np.random.default_rng(1)
    losses = []
    for step in range(steps):
        if name == "LBFGS":

            def closure():
                optimizer.zero_grad()
                loss = sum(((p - 0.5) ** 2 * (1 + i) + (p - 0.5) ** 4).sum() for i, p in enumerate(params))
                loss.backward()
                return loss

            losses.append(float(optimizer.step(closure).detach()))
        else:
            for p in params:
                p.grad = library.tensor(rng.normal(size=tuple(p.shape)).astype(dtype))
            optimizer.step()
        if through_state and step == steps // 2:
            state = copy.deepcopy(optimizer.state_dict())
            optimizer = getattr(library.optim, name)(params, **kwargs)
            optimizer.load_state_dict(state)
    return params, optimizer, losses


def close(mine, theirs, dtype, name=""):
    tolerance = 2e-5 if dtype == "float32" else 1e-9
    np.testing.assert_allclose(mine, theirs, rtol=tolerance, atol=tolerance, err_msg=name)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("name", "number"), CASES, ids=[f"{n}-{i}" for n, i in CASES])
def test_configuration(name, number, dtype):
    given = OPTIMIZERS[name].optim_inputs_func(device="cpu")[number].kwargs
    rounding = "float32" if any(isinstance(v, torch.Tensor) for v in given.values()) else dtype  # of a float32 lr
    a, mine, mine_losses = run(ours, name, translated(given), dtype, through_state=True)
    b, theirs, their_losses = run(torch, name, copy.deepcopy(given), dtype, through_state=True)
    for p, q in zip(a, b, strict=True):
        close(p.detach().numpy(), q.detach().numpy(), rounding)
    close(mine_losses, their_losses, rounding)
    if name == "LBFGS":
        assert [mine.state[a[0]][k] for k in ("n_iter", "func_evals")] == [
            theirs.state[b[0]][k] for k in ("n_iter", "func_evals")
        ]
        return
    for p, q in zip(a, b, strict=True):
        assert set(mine.state[p]) == set(theirs.state[q])
        for key, value in theirs.state[q].items():
            if isinstance(value, torch.Tensor):
                assert tuple(mine.state[p][key].shape) == tuple(value.shape)
                close(mine.state[p][key].numpy(), value.numpy(), rounding, key)


@pytest.mark.parametrize(
    "name", [n for n, info in OPTIMIZERS.items() if info.supports_complex and n not in ("LBFGS", "Muon", "Adafactor")]
)
def test_complex_parameters(name):
    kwargs = {"SGD": {"momentum": 0.9}, "Adagrad": {"initial_accumulator_value": 0.1}}.get(name, {})

    def run(t):
        rng = np.random.default_rng(0)
        draw = lambda: t.tensor((rng.normal(size=(3, 2)) + 1j * rng.normal(size=(3, 2))).astype("complex64"))
        p = t.nn.Parameter(draw())
        optimizer = getattr(t.optim, name)([p], **kwargs)
        for _ in range(6):
            p.grad = draw()
            optimizer.step()
        return p.detach().numpy()

    close(run(ours), run(torch), "float32")


ERRORS = [
    (name, i, dtype)
    for name, info in OPTIMIZERS.items()
    for dtype in (torch.float32,)
    for i in range(len(info.optim_error_inputs_func(device="cpu", dtype=dtype)))
]


@pytest.mark.parametrize(("name", "number", "dtype"), ERRORS, ids=[f"{n}-{i}" for n, i, _ in ERRORS])
def test_error_inputs(name, number, dtype):
    case = OPTIMIZERS[name].optim_error_inputs_func(device="cpu", dtype=dtype)[number]
    given = case.optimizer_error_input
    params, kwargs = translated((given.params, given.kwargs))
    if params is None:
        params = [ours.nn.Parameter(ours.ones(2, 3))]

    def construct():
        return getattr(ours.optim, name)(params, **kwargs)

    if case.error_on == common.OptimizerErrorEnum.CONSTRUCTION_ERROR:
        if issubclass(case.error_type, Warning):
            with pytest.warns(case.error_type, match=case.error_regex):
                construct()
        else:
            with pytest.raises(case.error_type, match=case.error_regex):
                construct()
    else:
        optimizer = construct()
        with pytest.raises(case.error_type, match=case.error_regex):
            optimizer.step()


# ------------------------------------------------------------------------------------------------- schedules


def _sequences():
    for name, info in OPTIMIZERS.items():
        for i, makers in enumerate(info.scheduler_inputs or ()):
            yield name, i, makers


SEQUENCES = list(_sequences())


@pytest.mark.parametrize(("name", "number", "makers"), SEQUENCES, ids=[f"{n}-{i}" for n, i, _ in SEQUENCES])
def test_scheduler_sequence(name, number, makers):
    """The rates of several schedules stepped together; PyTorch's makers are run with our classes in their globals."""

    def rates(library):
        params = [library.nn.Parameter(library.ones(2, 3))]
        optimizer = getattr(library.optim, name)(params, lr=0.1)
        schedules = []
        for make in makers:
            names = {k: getattr(library.optim.lr_scheduler, k) for k in make.__code__.co_names if k in make.__globals__}
            schedules.append(type(make)(make.__code__, {**make.__globals__, **names})(optimizer))
        out = []
        for step in range(30):
            for p in params:
                p.grad = library.ones(2, 3)
            if name != "LBFGS":
                optimizer.step()
            for s in schedules:
                s.step(*([2.0 if step > 3 else 5.0 - step] if type(s).__name__ == "ReduceLROnPlateau" else []))
            out.append(float(optimizer.param_groups[0]["lr"]))
        return out

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        np.testing.assert_allclose(rates(ours), rates(torch), rtol=1e-12)


def test_states_are_exchanged():
    """What one library saved, the other goes on from."""
    for name in ("Adam", "SGD", "RMSprop", "Adafactor", "LBFGS", "NAdam"):
        kwargs = {"momentum": 0.9} if name == "SGD" else {}
        a, mine, _ = run(ours, name, kwargs, "float64", 4)
        b, theirs, _ = run(torch, name, kwargs, "float64", 4)

        def ours_of(v):
            if isinstance(v, dict):
                return {k: ours_of(x) for k, x in v.items()}
            if isinstance(v, list):
                return [ours_of(x) for x in v]
            return ours.tensor(v.numpy()) if isinstance(v, torch.Tensor) else v

        mine.load_state_dict(ours_of(theirs.state_dict()))
        rng = np.random.default_rng(7)
        gradients = [rng.normal(size=tuple(p.shape)) for p in a]
        for library, params, optimizer in ((ours, a, mine), (torch, b, theirs)):

            def closure(library=library, params=params):
                for p, g in zip(params, gradients, strict=True):
                    p.grad = library.tensor(g)
                return library.tensor(1.0)

            optimizer.step(closure)
        for p, q in zip(a, b, strict=True):
            close(p.detach().numpy(), q.detach().numpy(), "float64", name)
    assert re.match("LBFGS", repr(ours.optim.LBFGS([ours.nn.Parameter(ours.ones(1))])))
