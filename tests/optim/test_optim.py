"""Optimizers against their formulas in NumPy; groups, state, hooks, errors; schedules."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

import autograd_nb as torch
from autograd_nb import nn, optim
from autograd_nb.optim import lr_scheduler


def sgd(p, gs, lr=0.1, momentum=0.0, dampening=0.0, nesterov=False, wd=0.0, sign=1.0):
    b = None
    for g in gs:
        d = sign * g + wd * p
        if momentum:
            b = d if b is None else momentum * b + (1 - dampening) * d
            d = d + momentum * b if nesterov else b
        p = p - lr * d
    return p


def adam(p, gs, lr=1e-3, b1=0.9, b2=0.999, eps=1e-8, wd=0.0, decoupled=False, amsgrad=False, sign=1.0):
    m = v = top = np.zeros_like(p)
    for t, g in enumerate(gs, 1):
        g = sign * g
        if decoupled:
            p = p * (1 - lr * wd)
        else:
            g = g + wd * p
        m, v = b1 * m + (1 - b1) * g, b2 * v + (1 - b2) * g * g
        top = np.maximum(top, v)
        p = p - lr / (1 - b1**t) * m / (np.sqrt(top if amsgrad else v) / np.sqrt(1 - b2**t) + eps)
    return p


def rmsprop(p, gs, lr=0.01, alpha=0.99, eps=1e-8, momentum=0.0, centered=False):
    s = a = b = np.zeros_like(p)
    for g in gs:
        s, a = alpha * s + (1 - alpha) * g * g, alpha * a + (1 - alpha) * g
        d = g / (np.sqrt(s - a * a if centered else s) + eps)
        b = momentum * b + d
        p = p - lr * b
    return p


def adagrad(p, gs, lr=0.01, decay=0.0, eps=1e-10, start=0.0):
    s = np.full_like(p, start)
    for t, g in enumerate(gs):
        s = s + g * g
        p = p - lr / (1 + t * decay) * g / (np.sqrt(s) + eps)
    return p


def adamax(p, gs, lr=2e-3, b1=0.9, b2=0.999, eps=1e-8):
    m = u = np.zeros_like(p)
    for t, g in enumerate(gs, 1):
        m, u = b1 * m + (1 - b1) * g, np.maximum(b2 * u, np.abs(g) + eps)
        p = p - lr / (1 - b1**t) * m / u
    return p


def adadelta(p, gs, lr=1.0, rho=0.9, eps=1e-6):
    s = u = np.zeros_like(p)
    for g in gs:
        s = rho * s + (1 - rho) * g * g
        d = np.sqrt(u + eps) / np.sqrt(s + eps) * g
        u = rho * u + (1 - rho) * d * d
        p = p - lr * d
    return p


CASES = [
    ("SGD", {"lr": 0.1}, sgd, {}),
    ("SGD", {"lr": 0.1, "momentum": 0.9, "dampening": 0.2, "weight_decay": 0.1}, sgd, {"momentum": 0.9, "dampening": 0.2, "wd": 0.1}),
    ("SGD", {"lr": 0.1, "momentum": 0.9, "nesterov": True, "maximize": True}, sgd, {"momentum": 0.9, "nesterov": True, "sign": -1.0}),
    ("Adam", {}, adam, {}),
    ("Adam", {"amsgrad": True, "weight_decay": 0.1, "betas": (0.5, 0.7)}, adam, {"amsgrad": True, "wd": 0.1, "b1": 0.5, "b2": 0.7}),
    ("AdamW", {"maximize": True}, adam, {"wd": 0.01, "decoupled": True, "sign": -1.0}),
    ("RMSprop", {}, rmsprop, {}),
    ("RMSprop", {"momentum": 0.9, "centered": True}, rmsprop, {"momentum": 0.9, "centered": True}),
    ("RMSprop", {"momentum": 0.9}, rmsprop, {"momentum": 0.9}),
    ("Adagrad", {"lr_decay": 0.1, "initial_accumulator_value": 0.5}, adagrad, {"decay": 0.1, "start": 0.5}),
    ("Adamax", {}, adamax, {}),
    ("Adadelta", {}, adadelta, {}),
]


@pytest.mark.parametrize(("name", "options", "reference", "given"), CASES, ids=[f"{c[0]}-{i}" for i, c in enumerate(CASES)])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_formula(name, options, reference, given, dtype):
    rng = np.random.default_rng(1)
    start, gs = rng.normal(size=(5, 7)), rng.normal(size=(9, 5, 7))
    p = nn.Parameter(torch.tensor(start.astype(dtype)))
    o = getattr(optim, name)([p], **options)
    for g in gs:
        p.grad = torch.tensor(g.astype(dtype))
        o.step()
    tolerance = 1e-9 if dtype == "float64" else 2e-5
    np.testing.assert_allclose(p.detach().numpy(), reference(start, gs, **given), rtol=tolerance, atol=tolerance)
    assert p._version == 9


@pytest.mark.parametrize("name", ["SGD", "Adam", "AdamW", "RMSprop", "Adagrad", "Adadelta", "Adamax", "NAdam", "RAdam", "Rprop", "ASGD"])
def test_minimises(name):
    p = nn.Parameter(torch.tensor([3.0, -2.0], dtype=torch.float64))
    o = getattr(optim, name)([p], lr={"Adadelta": 20.0, "Adagrad": 1.0}.get(name, 0.05))
    first = None
    for _ in range(200):
        o.zero_grad()
        loss = (p * p).sum()
        loss.backward()
        first = first or loss.item()
        o.step()
    assert loss.item() < 0.05 * first


def test_other_layouts_and_half():
    for p in (nn.Parameter(torch.ones(3, 4).t()), nn.Parameter(torch.ones(4, 3, dtype=torch.float16)), nn.Parameter(torch.ones(2, 4, 3)[1])):
        o = optim.SGD([p], lr=0.5, momentum=0.9)
        p.grad = torch.full((4, 3), 1.0, dtype=p.dtype)
        o.step()
        o.step()
        np.testing.assert_allclose(p.detach().numpy(), 1 - 0.5 - 0.5 * 1.9, rtol=2e-3)
    q = nn.Parameter(torch.zeros(4, 3))
    q.grad = torch.arange(12.0).reshape(3, 4).t()
    optim.SGD([q], lr=1.0).step()
    assert torch.equal(q.detach(), -q.grad)


def test_tensor_lr_and_closure():
    p = nn.Parameter(torch.ones(2))
    o = optim.Adam([p], lr=torch.tensor(0.1))

    def closure():
        o.zero_grad()
        loss = (p * p).sum()
        loss.backward()
        return loss

    with torch.no_grad():
        assert o.step(closure).item() == 2
    np.testing.assert_allclose(p.detach().numpy(), 0.9, rtol=1e-6)


def test_groups():
    a, b = nn.Parameter(torch.ones(1)), nn.Parameter(torch.ones(1))
    o = optim.SGD([{"params": [a]}, {"params": b, "lr": 1.0}], lr=0.1)
    a.grad = b.grad = torch.ones(1)
    o.step()
    assert (round(a.item(), 6), b.item()) == (0.9, 0.0)
    c = nn.Parameter(torch.ones(1))
    o.add_param_group({"params": [c], "momentum": 0.5})
    assert [g["lr"] for g in o.param_groups] == [0.1, 1.0, 0.1]
    assert repr(o).startswith("SGD (\nParameter Group 0\n    dampening: 0\n")
    o.zero_grad(set_to_none=False)
    assert (a.grad == 0).all()
    o.zero_grad()
    assert a.grad is None
    named = optim.SGD([("x", nn.Parameter(torch.ones(1)))], lr=0.1)
    assert named.param_groups[0]["param_names"] == ["x"]


def test_parameters_without_gradient_are_left():
    a, b = nn.Parameter(torch.ones(1)), nn.Parameter(torch.ones(1))
    o = optim.Adam([a, b])
    a.grad = torch.ones(1)
    o.step()
    assert b.item() == 1
    assert list(o.state) == [a]


@pytest.mark.parametrize("name", ["SGD", "Adam", "Adagrad", "ASGD"])
def test_state_dict(name):
    def make():
        torch.manual_seed(0)
        p = [nn.Parameter(torch.randn(3)), nn.Parameter(torch.randn(2))]
        return p, getattr(optim, name)(p, lr=0.1, **({"momentum": 0.9} if name == "SGD" else {}))

    def run(p, o, n):
        for _ in range(n):
            for q in p:
                q.grad = q.detach() * 2 + 1
            o.step()

    p, o = make()
    run(p, o, 3)
    q, r = make()
    with torch.no_grad():
        for x, y in zip(q, p, strict=True):
            x.copy_(y)
    r.load_state_dict(copy.deepcopy(o.state_dict()))
    run(p, o, 3)
    run(q, r, 3)
    assert all(torch.equal(x, y) for x, y in zip(p, q, strict=True))
    s = pickle.loads(pickle.dumps(o))
    assert s.state_dict()["param_groups"] == o.state_dict()["param_groups"]
    with pytest.raises(ValueError, match="different number of parameter groups"):
        r.load_state_dict({"state": {}, "param_groups": []})
    with pytest.raises(ValueError, match="doesn't match the size"):
        r.load_state_dict({"state": {}, "param_groups": [{"params": [0]}]})


def test_hooks():
    p = nn.Parameter(torch.ones(1))
    o = optim.SGD([p], lr=0.1)
    log = []
    handles = [
        o.register_step_pre_hook(lambda o, a, k: log.append("pre")),
        o.register_step_post_hook(lambda o, a, k: log.append("post")),
        optim.optimizer.register_optimizer_step_post_hook(lambda o, a, k: log.append("global")),
        o.register_state_dict_post_hook(lambda o, s: {**s, "more": 1}),
    ]
    o.step()
    assert log == ["pre", "post", "global"]
    assert o.state_dict()["more"] == 1
    for h in handles:
        h.remove()
    o.step()
    assert len(log) == 3


@pytest.mark.parametrize(
    ("call", "kind", "text"),
    [
        (lambda p: optim.SGD([], lr=0.1), ValueError, "optimizer got an empty parameter list"),
        (lambda p: optim.SGD(p, lr=0.1), TypeError, "should be an iterable of Tensors or dicts, but got torch.FloatTensor"),
        (lambda p: optim.SGD([p * 2], lr=0.1), ValueError, "can't optimize a non-leaf Tensor"),
        (lambda p: optim.SGD([3], lr=0.1), TypeError, "optimizer can only optimize Tensors, but one of the params is int"),
        (lambda p: optim.SGD([{"params": {p}}], lr=0.1), TypeError, "ordered collections"),
        (lambda p: optim.SGD([{"params": [p]}, {"params": [p]}], lr=0.1), ValueError, "some parameters appear in more than one"),
        (lambda p: optim.SGD([p], lr=-1), ValueError, "Invalid learning rate: -1"),
        (lambda p: optim.SGD([p], lr=0.1, momentum=-1), ValueError, "Invalid momentum value: -1"),
        (lambda p: optim.SGD([p], lr=0.1, nesterov=True), ValueError, "Nesterov momentum requires a momentum"),
        (lambda p: optim.Adam([p], betas=(1.0, 0.9)), ValueError, "Invalid beta parameter at index 0: 1.0"),
        (lambda p: optim.Adam([p], eps=-1), ValueError, "Invalid epsilon value: -1"),
        (lambda p: optim.Adam([p], lr=torch.ones(2)), ValueError, "Tensor lr must be 1-element"),
        (lambda p: optim.RMSprop([p], alpha=-1), ValueError, "Invalid alpha value: -1"),
        (lambda p: optim.Adadelta([p], rho=2), ValueError, "Invalid rho value: 2"),
        (lambda p: optim.Rprop([p], etas=(2, 3)), ValueError, "Invalid eta values: 2, 3"),
        (lambda p: lr_scheduler.StepLR(3, 1), TypeError, "int is not an Optimizer"),
        (lambda p: lr_scheduler.StepLR(optim.SGD([p]), 1, last_epoch=3), KeyError, "initial_lr"),
        (lambda p: lr_scheduler.ReduceLROnPlateau(optim.SGD([p]), factor=2), ValueError, "Factor should be < 1.0."),
    ],
)
def test_errors(call, kind, text):
    with pytest.raises(kind, match=text):
        call(nn.Parameter(torch.ones(1)))


# --------------------------------------------------------------------------------------------------- schedules


def rates(make, n=8, lr=1.0):
    o = optim.SGD([nn.Parameter(torch.ones(1))], lr=lr)
    s = make(o)
    out = [o.param_groups[0]["lr"]]
    for _ in range(n - 1):
        o.step()
        s.step()
        assert s.get_last_lr() == [o.param_groups[0]["lr"]]
        out.append(o.param_groups[0]["lr"])
    return out


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (lambda o: lr_scheduler.StepLR(o, 3), [0.1 ** (t // 3) for t in range(8)]),
        (lambda o: lr_scheduler.MultiStepLR(o, [2, 5, 5], 0.5), [0.5 ** ((t >= 2) + 2 * (t >= 5)) for t in range(8)]),
        (lambda o: lr_scheduler.ExponentialLR(o, 0.9), [0.9**t for t in range(8)]),
        (lambda o: lr_scheduler.CosineAnnealingLR(o, 4, 0.1), [0.1 + 0.45 * (1 + np.cos(np.pi * t / 4)) for t in range(8)]),
        (lambda o: lr_scheduler.LambdaLR(o, lambda t: 1 / (1 + t)), [1 / (1 + t) for t in range(8)]),
        (lambda o: lr_scheduler.MultiplicativeLR(o, lambda t: 0.5), [0.5**t for t in range(8)]),
        (lambda o: lr_scheduler.ConstantLR(o, 0.5, 3), [0.5] * 3 + [1.0] * 5),
        (lambda o: lr_scheduler.LinearLR(o, 0.5, 1.0, 5), [min(0.5 + 0.1 * t, 1.0) for t in range(8)]),
        (lambda o: lr_scheduler.PolynomialLR(o, 5, 2.0), [max(1 - t / 5, 0) ** 2 for t in range(8)]),
        (lambda o: lr_scheduler.CosineAnnealingWarmRestarts(o, 3), [0.5 * (1 + np.cos(np.pi * (t % 3) / 3)) for t in range(8)]),
        (
            lambda o: lr_scheduler.SequentialLR(o, [lr_scheduler.ConstantLR(o, 0.5, 10), lr_scheduler.ExponentialLR(o, 0.9)], [3]),
            [0.5] * 3 + [0.9**t for t in range(5)],
        ),
    ],
    ids=["step", "multistep", "exponential", "cosine", "lambda", "multiplicative", "constant", "linear", "polynomial", "restarts", "sequential"],
)
def test_schedule(make, expected):
    np.testing.assert_allclose(rates(make), expected, rtol=1e-12, atol=1e-15)


def test_plateau():
    o = optim.SGD([nn.Parameter(torch.ones(1))], lr=1.0)
    s = lr_scheduler.ReduceLROnPlateau(o, patience=1, factor=0.1, min_lr=0.01)
    out = []
    for metric in (5, 4, 4, 4, 4, 4, 3, 3, 3):
        s.step(torch.tensor(float(metric)))
        out.append(round(o.param_groups[0]["lr"], 6))
    assert out == [1.0, 1.0, 1.0, 0.1, 0.1, 0.01, 0.01, 0.01, 0.01]


def test_schedule_goes_on_after_loading():
    def make():
        o = optim.SGD([nn.Parameter(torch.ones(1))], lr=1.0)
        return o, lr_scheduler.ExponentialLR(o, 0.5)

    o, s = make()
    for _ in range(3):
        o.step()
        s.step()
    p, t = make()
    p.load_state_dict(o.state_dict())
    t.load_state_dict(s.state_dict())
    p.step()
    t.step()
    assert p.param_groups[0]["lr"] == 0.5**4


def test_wrong_order_warns():
    o = optim.SGD([nn.Parameter(torch.ones(1))], lr=1.0)
    s = lr_scheduler.ExponentialLR(o, 0.5)
    with pytest.warns(UserWarning, match=r"Detected call of `lr_scheduler.step\(\)` before `optimizer.step\(\)`"):
        s.step()


# ----------------------------------------------------------------------------------------------------- clipping


@pytest.mark.parametrize("norm", [2.0, 1.0, 3.0, float("inf")])
def test_clip_grad_norm(norm):
    rng = np.random.default_rng(0)
    gs = [rng.normal(size=s).astype(np.float32) for s in ((3, 4), (5,), (2000,))]
    ps = [nn.Parameter(torch.zeros(g.shape)) for g in gs]
    for p, g in zip(ps, gs, strict=True):
        p.grad = torch.tensor(g)
    total = np.linalg.norm(np.concatenate([g.ravel() for g in gs]), norm)
    np.testing.assert_allclose(nn.utils.clip_grad_norm_(ps, 1.0, norm).item(), total, rtol=1e-5)
    for p, g in zip(ps, gs, strict=True):
        np.testing.assert_allclose(p.grad.numpy(), g / total, rtol=1e-4)
    before = ps[0].grad.clone()
    nn.utils.clip_grad_norm_(ps, 1e9, norm)
    assert torch.equal(before, ps[0].grad)


def test_clip_grad_value_and_errors():
    p = nn.Parameter(torch.zeros(3))
    p.grad = torch.tensor([-5.0, 0.5, float("nan")])
    with pytest.raises(RuntimeError, match="non-finite, so it cannot be clipped"):
        nn.utils.clip_grad_norm_([p], 1.0, error_if_nonfinite=True)
    nn.utils.clip_grad_value_([p], 1.0)
    np.testing.assert_array_equal(p.grad.numpy(), [-1, 0.5, np.nan])
    assert nn.utils.clip_grad_norm_([nn.Parameter(torch.zeros(1))], 1.0).item() == 0


def test_parameters_as_vector():
    ps = [nn.Parameter(torch.ones(2, 3)), nn.Parameter(torch.zeros(4))]
    v = nn.utils.parameters_to_vector(ps)
    assert v.shape == (10,)
    nn.utils.vector_to_parameters(torch.arange(10.0), ps)
    assert ps[0].tolist() == [[0, 1, 2], [3, 4, 5]]
    assert ps[1].tolist() == [6, 7, 8, 9]
