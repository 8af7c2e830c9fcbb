"""A further pass through a gradient of a compiled call's results: it meets the results' hooks, as an eager one does."""

from __future__ import annotations

import gc
import weakref

import pytest

import autograd_nb as torch

FUNCTIONS = {
    "norm": lambda w: w.norm(dim=1), "exp": torch.exp, "softmax": lambda w: w.softmax(1), "sigmoid and more": lambda w: w.sigmoid() * w,
    "two": lambda w: (w.exp(), w.tanh().sum(0)), "one of the other": lambda w: (y := w.exp(), (y * y).sigmoid()),
    "parts": lambda w: (w[0].exp(), w[1:].sigmoid().prod(0)), "scaled": lambda w: (w / w.norm(), w.norm()),
}  # fmt: skip


def results_of(y):
    return y if isinstance(y, tuple) else (y,)


def passes(step, w, targets, retain):
    """What two passes leave: gradients kept of results, what their hooks were given, the leaf's gradient."""
    w.grad = None
    ys, told = results_of(step(w)), []
    for k, y in enumerate(ys):
        if retain:
            y.retain_grad()
        y.register_hook(lambda g, k=k: told.append((k, g.tolist())))
    inputs = ys if targets == "results" else [w]
    gs = torch.autograd.grad(sum((y * y).sum() for y in ys), inputs, create_graph=True)
    sum((g * g * g).sum() for g in gs).backward()
    return told, [None if not retain or y.grad is None else y.grad.tolist() for y in ys], w.grad.tolist(), [y.requires_grad for y in ys]


@pytest.mark.parametrize("retain", [True, False])
@pytest.mark.parametrize("targets", ["leaf", "results"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_hooks_of_results_see_further_passes(name, targets, retain):
    function = FUNCTIONS[name]
    w = torch.linspace(0.2, 1.4, 6, dtype=torch.float64).reshape(2, 3).requires_grad_()

    def step(z):
        return function(z * w)

    compiled = torch.compile(step)
    one = torch.ones(2, 3, dtype=torch.float64)
    for _ in range(3):
        found = passes(lambda z, one=one: compiled(one), w, targets, retain)
    assert compiled.programs, "captured"
    expected = passes(lambda z: step(one), w, targets, retain)
    close(sorted(found[0]), sorted(expected[0]))
    close(found[1:], expected[1:])


def close(found, expected):
    assert type(found) is type(expected), (found, expected)
    if isinstance(found, (list, tuple)):
        assert len(found) == len(expected), (found, expected)
        for a, b in zip(found, expected, strict=True):
            close(a, b)
    elif found is not None:
        assert found == pytest.approx(expected, rel=1e-9), (found, expected)


def test_the_graph_of_a_further_pass_is_gone_with_its_results():
    w = torch.ones(3, requires_grad=True)
    step = torch.compile(lambda x: (x * w).exp())
    for _ in range(3):
        step(torch.ones(3))
    gc.collect()
    gc.disable()
    try:
        y = step(torch.ones(3))
        (g,) = torch.autograd.grad(y.sum(), w, create_graph=True)
        seen = [weakref.ref(y.grad_fn), weakref.ref(g.grad_fn)]
        g.sum().backward()
        del y, g
        assert [r() for r in seen] == [None, None]
    finally:
        gc.enable()


def _clipped(w, b):
    torch.nn.utils.clip_grad_norm_([w, b], 1.0)


def _asked(w, b):
    return 2.0 if b.grad is None else 3.0


def _cleared(w, b):
    if b.grad is not None:
        b.grad.zero_()


def _stepped(w, b):
    with torch.no_grad():
        for p in (w, b):
            if p.grad is not None:
                p -= 0.1


def _clamped(w, b):
    torch.nn.utils.clip_grad_value_([b], 0.5)


#: functions of which one result is computed from another, and pairs of them that stand apart
OTHERS = {
    "of the first": lambda v: (v, (v * v).sin()), "of several": lambda v: (v, v.exp() * v.tanh(), v @ v), "of distances": lambda v: (v, torch.cdist(v, v)),
    "in a row": lambda v: (v, u := v.tanh(), (u * v).exp()), "of a part": lambda v: (v, v.detach() * v[0].exp()),
    "of two": lambda v: (a := v[0] * 2, b := v[1].exp(), (a * b).sin()),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore:Using backward")
@pytest.mark.parametrize("again", [1, 2])
@pytest.mark.parametrize("name", OTHERS)
def test_retained_gradients_of_results_that_others_are_computed_from(name, again):
    """What comes to a result from other results comes to its hooks and its retained gradient in further passes too."""

    def trained(decorate):
        w = torch.linspace(-1, 1, 6, dtype=torch.float64).reshape(2, 3).requires_grad_()
        step = decorate(lambda: OTHERS[name](w @ w.detach().T * 0.5))
        told = []
        for _ in range(3):
            ys = step()
            for k, y in enumerate(ys):
                y.retain_grad()
                y.register_hook(lambda g, k=k: told.append((k, g.sum().item())))
            (g,) = torch.autograd.grad(sum((y * y).sum() for y in ys), w, create_graph=True)
            if again > 1:
                (g,) = torch.autograd.grad((g * g).sum(), w, create_graph=True)
            (g * g).sum().backward()
            told += [w.grad.tolist(), *[y.grad.tolist() for y in ys]]
            w.grad = None
        return step, told

    compiled, found = trained(torch.compile)
    _, expected = trained(lambda f: f)
    assert compiled.programs
    numbers = [[v for v in told if isinstance(v, list)] for told in (found, expected)]
    close(*numbers)
    close(*[sorted((k, round(v, 6)) for k, v in (v for v in told if isinstance(v, tuple))) for told in (found, expected)])


@pytest.mark.filterwarnings("ignore:Using backward")
@pytest.mark.parametrize("first", [False, True], ids=["none before", "some before"])
@pytest.mark.parametrize("look", [_clipped, _asked, _cleared, _stepped, _clamped])
def test_another_run_finds_the_gradients_that_the_call_found(look, first):
    """A gradient that has come since the call, or has gone, is none of what the function does again for a derivative of its derivative."""

    def trained(decorate):
        w = torch.linspace(0.2, 1.4, 6, dtype=torch.float64).reshape(2, 3).requires_grad_()
        b = torch.linspace(1, 3, 3, dtype=torch.float64).requires_grad_()

        @decorate
        def step(x):
            by = look(w, b)
            return (w * x).exp() * (by or 1.0)

        x, told = torch.full((2, 3), 0.5, dtype=torch.float64), []
        for _ in range(4):
            b.grad = torch.full_like(b, 4.0) if first else None
            w.grad = None
            y = step(x)
            if first:
                b.grad = None
            (y.sum() * b).sum().backward(create_graph=True)  # (the gradient of b comes first)
            told += [w.grad.tolist(), b.grad.tolist(), w.tolist()]
            (w.grad * w.grad).sum().backward()
            told += [w.grad.tolist(), b.grad.tolist(), w.tolist()]
            w.grad, b.grad = w.grad.detach(), b.grad.detach()
        return step, told

    compiled, found = trained(torch.compile)
    _, expected = trained(lambda f: f)
    assert compiled.programs
    close(found, expected)


@pytest.mark.filterwarnings("ignore:Using backward")
def test_another_run_finds_no_gradient_of_an_argument_that_has_come_since():
    w = torch.linspace(0.2, 1.4, 4, dtype=torch.float64).requires_grad_()

    def step(x):
        torch.nn.utils.clip_grad_norm_([z for z in [x, w] if z.grad is not None], 0.5)
        return torch.nn.functional.dropout(x, 0.0), w.exp()  # (the argument itself, whose gradient comes first)

    found = []
    for function in (step, torch.compile(step)):
        for _ in range(3):
            x = torch.linspace(1, 2, 4, dtype=torch.float64).requires_grad_()
            w.grad = None
            a, b = function(x)
            ((a * a).sum() + (b * b).sum()).backward(create_graph=True)
            g, w.grad = w.grad, None
            (g * g).sum().backward()
            told = x.grad.tolist(), w.grad.tolist()
        found.append(told)
    close(*found)
