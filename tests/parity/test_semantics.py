"""Small programs about the graph, run by both libraries: what they return, or the type of error they end in.

Two differences are deliberate (docs/design.md) and stand in `DIFFERENT` with what each library does.
"""

from __future__ import annotations

import copy
import warnings

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import autograd_nb  # noqa: E402

PROGRAMS = {}


def program(function):
    PROGRAMS[function.__name__] = function
    return function


@program
def accumulate(t):
    x = t.tensor([1.0, 2.0], requires_grad=True)
    (x * x).sum().backward()
    first = x.grad
    (x * 3).sum().backward()
    return x.grad, first is x.grad


@program
def copies_of_parameters(t):
    p = t.nn.Parameter(t.arange(6.0).reshape(2, 3).T)
    (p * p).sum().backward()
    p.name_of_it = "p"
    twin = copy.deepcopy(p)
    leaf = t.ones(2, requires_grad=True)
    leaf.sum().backward()
    kept = copy.deepcopy(leaf).grad
    return twin.detach(), twin.grad is None, list(twin.stride()), hasattr(twin, "name_of_it"), twin.requires_grad, kept


@program
def shared_trunk_sequential(t):
    w = t.tensor([[1.0, -2.0], [0.5, 3.0]], requires_grad=True)
    z = (w @ t.tensor([1.0, 2.0])).tanh()
    z.sum().backward(retain_graph=True)
    (z * z).sum().backward()
    return w.grad


@program
def second_pass(t):
    x = t.tensor([1.0], requires_grad=True)
    y = (x * x).sum()
    y.backward()
    y.backward()


@program
def modified(t):
    x = t.tensor([1.0, 2.0], requires_grad=True)
    y = x.exp()
    z = (y * y).sum()
    y.add_(1)
    z.backward()


@program
def leaf_in_place(t):
    t.tensor([1.0], requires_grad=True).add_(1)


@program
def non_scalar(t):
    (t.tensor([1.0, 2.0], requires_grad=True) * 2).backward()


@program
def no_graph(t):
    t.tensor([1.0]).backward()


@program
def unused(t):
    x, y = t.tensor([1.0], requires_grad=True), t.tensor([1.0], requires_grad=True)
    t.autograd.grad((x * 2).sum(), [x, y])


@program
def numpy_of_graph(t):
    t.tensor([1.0], requires_grad=True).numpy()


@program
def view_rewrites_history(t):
    w = t.tensor([2.0, 3.0], requires_grad=True)
    base = t.zeros(2, 2)
    view = base[0]
    view.add_(w)
    view.mul_(w)
    (base * base).sum().backward()
    return w.grad, base.detach(), view.grad_fn is not None


@program
def base_rewrites_views(t):
    w = t.tensor([2.0, 3.0], requires_grad=True)
    base = w * 1
    view = base[1:]
    base.mul_(w)
    view.sum().backward()
    return w.grad


@program
def setitem(t):
    w, v = t.tensor([1.0, 2.0, 3.0], requires_grad=True), t.tensor([5.0, 6.0], requires_grad=True)
    x = w * w
    x[t.tensor([0, 2])] = v
    x[1] = v[0] * 2
    (x * x).sum().backward()
    return w.grad, v.grad


@program
def chosen_subgradients(t):
    x = t.tensor([0.0, 1.0, 1.0, -0.5], requires_grad=True)
    (x.abs() + x.relu() + x.clamp(0, 1)).sum().backward()
    y = t.tensor([2.0, 2.0, 1.0], requires_grad=True)
    y.max().backward()
    z = t.tensor([[2.0, 2.0, 1.0]], requires_grad=True)
    z.max(1).values.sum().backward()
    a, b = t.tensor([1.0, 3.0], requires_grad=True), t.tensor([1.0, 2.0], requires_grad=True)
    t.maximum(a, b).sum().backward()
    return x.grad, y.grad, z.grad, a.grad, b.grad


@program
def hooks(t):
    seen = []
    x = t.tensor([1.0], requires_grad=True)
    y = x * 2
    y.register_hook(lambda g: seen.append("tensor") or g * 3)
    y.grad_fn.register_prehook(lambda g: seen.append("pre"))
    y.grad_fn.register_hook(lambda a, b: seen.append("post"))
    x.register_post_accumulate_grad_hook(lambda p: seen.append("accumulated"))
    y.sum().backward()
    return x.grad, tuple(seen)


@program
def inputs_only(t):
    x, w = t.tensor([1.0, 2.0], requires_grad=True), t.tensor([3.0, 4.0], requires_grad=True)
    y = x * w
    (y * y).sum().backward(inputs=[w, y])
    return w.grad, y.grad, x.grad is None


@program
def fourth_derivative(t):
    x = t.tensor([0.3, -0.7], dtype=t.float64, requires_grad=True)
    y = (x.sin() * x.exp()).sum()
    out = []
    for _ in range(4):
        (g,) = t.autograd.grad(y, x, create_graph=True)
        out.append(g.detach())
        y = g.sum()
    return tuple(out)


@program
def modes(t):
    x = t.tensor([1.0], requires_grad=True)
    with t.no_grad():
        a = (x * 2).requires_grad
        with t.enable_grad():
            b = (x * 2).requires_grad
    return a, b, (x * 2).requires_grad, x.detach().requires_grad


@program
def names(t):
    x = t.tensor([[1.0, 2.0]], requires_grad=True)
    made = [x + 1, x * x, x - x, x / x, -x, x**2, x.exp(), x.sum(), x.mean(), x.t(), x[0], x.reshape(2, 1), x @ x.t(), x.tanh(), 1 - x]
    return tuple(m.grad_fn.name() for m in made)


@program
def double_view_write_no_grad(t):
    x = t.tensor([1.0, 2.0], requires_grad=True)
    with t.no_grad():
        x[0] = 5.0
        x.mul_(2)
    return x.detach(), x.requires_grad, x._version


def outcome(function, library):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return "value", function(library)
        except Exception as error:
            return "error", type(error)


def same(a, b) -> None:
    if isinstance(b, tuple):
        assert len(a) == len(b)
        for x, y in zip(a, b, strict=True):
            same(x, y)
    elif isinstance(b, torch.Tensor):
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-6)
    else:
        assert a == b


@pytest.mark.parametrize("name", PROGRAMS)
def test_program(name):
    kind, mine = outcome(PROGRAMS[name], autograd_nb)
    expected, theirs = outcome(PROGRAMS[name], torch)
    assert kind == expected, (mine, theirs)
    if kind == "error":
        assert issubclass(mine, theirs)
    else:
        same(mine, theirs)


def sum_twice(t):
    x = t.tensor([1.0], requires_grad=True)
    y = x.sum()
    y.backward()
    y.backward()
    return x.grad.item()


def failing_pass(t):
    """Whether a pass that fails has changed a gradient."""
    x, w = t.tensor([1.0], requires_grad=True), t.tensor([1.0], requires_grad=True)
    shared = x * x
    shared.sum().backward()
    total = (shared * 1).sum() + (w * 2).sum()
    try:
        total.backward()
    except RuntimeError:
        return w.grad is None
    return "no error"


#: program -> (what this library does, what PyTorch does)
DIFFERENT = {sum_twice: (("error", autograd_nb.autograd.function.AutogradError), ("value", 2.0))}


@pytest.mark.parametrize("function", DIFFERENT)
def test_deliberate_differences(function):
    (kind, what), theirs = DIFFERENT[function]
    mine = outcome(function, autograd_nb)
    assert mine[0] == kind
    assert issubclass(mine[1], what)
    assert outcome(function, torch) == theirs


def test_a_failing_pass_changes_nothing_here():
    assert outcome(failing_pass, autograd_nb) == ("value", True)
