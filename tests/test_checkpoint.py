"""Checkpointing and hooks on saved tensors."""

from __future__ import annotations

import gc
import math
import weakref
from contextlib import nullcontext

import pytest

import autograd_nb as torch
from autograd_nb.autograd.graph import (
    allow_mutation_on_saved_tensors,
    disable_saved_tensors_hooks,
    save_on_cpu,
    saved_tensors_hooks,
)
from autograd_nb.utils.checkpoint import CheckpointError, checkpoint, checkpoint_sequential, set_checkpoint_early_stop


def net():
    torch.manual_seed(0)
    return torch.nn.Sequential(
        torch.nn.Linear(4, 8),
        torch.nn.Tanh(),
        torch.nn.Dropout(0.5),
        torch.nn.Linear(8, 8),
        torch.nn.ReLU(),
        torch.nn.Linear(8, 2),
    )


def gradients(model, run):
    for p in model.parameters():
        p.grad = None
    torch.manual_seed(3)
    x = torch.linspace(-1, 1, 12).reshape(3, 4).requires_grad_()
    run(x).square().sum().backward()
    return [x.grad, *[p.grad for p in model.parameters()]]


@pytest.mark.parametrize("use_reentrant", [False, True])
def test_gradients_are_those_without(use_reentrant):
    model = net()
    expected = gradients(model, model)
    for run in (
        lambda x: checkpoint(model, x, use_reentrant=use_reentrant),
        lambda x: checkpoint_sequential(model, 3, x, use_reentrant=use_reentrant),
        lambda x: checkpoint(lambda y: checkpoint(model, y, use_reentrant=False), x, use_reentrant=use_reentrant),
    ):
        for g, e in zip(gradients(model, run), expected, strict=True):
            assert torch.equal(g, e)


def test_arrays_are_freed_and_come_back_once():
    seen = []
    calls = []

    def block(x):
        calls.append(1)
        y = x.exp()
        seen.append(weakref.ref(y))
        return y.sin().sum()

    x = torch.ones(3, requires_grad=True)
    out = checkpoint(block, x, use_reentrant=False)
    gc.collect()
    assert seen[0]() is None and len(calls) == 1
    (g,) = torch.autograd.grad(out, x, create_graph=True)
    assert len(calls) == 2
    (h,) = torch.autograd.grad(g.sum(), x)
    e = torch.ones(3).exp()
    assert torch.allclose(g, e * e.cos()) and torch.allclose(h, e * e.cos() - e * e * e.sin())


@pytest.mark.parametrize("use_reentrant", [False, True])
@pytest.mark.parametrize("way", ["data", "array", "directly"])
def test_each_pass_computes_from_what_tensors_hold_by_then(way, use_reentrant):
    def gradient(passes):
        calls.clear()
        w = torch.linspace(-1, 1, 4).requires_grad_()
        out = checkpoint(lambda q: calls.append(1) or (q.sin() * w * w.detach()).sum(), w, use_reentrant=use_reentrant)
        for _ in range(passes):
            if way == "directly":
                out.grad_fn(torch.tensor(1.0))
                torch.autograd.grad(out, out, retain_graph=True)
                out.grad_fn.next_functions[0][0](torch.ones(4))
            else:
                out.backward(retain_graph=True)
            w.grad = None
        if way == "array":
            w.detach().numpy()[:] *= 2
        else:
            w.data.mul_(2)
        out.backward(retain_graph=True)
        (again,) = torch.autograd.grad(out, w, retain_graph=True) if not use_reentrant else (w.grad,)
        assert torch.equal(again, w.grad)
        return w.grad

    calls = []
    assert torch.equal(gradient(2), gradient(0))
    assert len(calls) == (2 if use_reentrant else 3)


def test_what_a_pass_computes_goes_with_it():
    made = []

    def block(x):
        y = x.exp()
        made.append(weakref.ref(y))
        return y.sin().sum()

    x = torch.ones(3, requires_grad=True)
    out = checkpoint(block, x, use_reentrant=False)
    arrays = out.grad_fn.next_functions[0][0]
    for count in (2, 3):
        out.backward(retain_graph=True)
        assert len(made) == count and not arrays.saved.items


def test_looking_at_what_is_saved_computes_it_again_once():
    calls = []

    def block(x):
        calls.append(x)
        return x.exp()

    y = checkpoint(block, torch.ones(3, requires_grad=True), use_reentrant=False)
    for count in (2, 3):
        assert torch.equal(y.grad_fn._saved_result, y) and len(calls) == count


def test_inputs_without_grad():
    w = torch.ones(3, requires_grad=True)
    checkpoint(lambda x: (x * w).sum(), torch.ones(3), use_reentrant=False).backward()
    assert w.grad.tolist() == [1, 1, 1]
    with pytest.warns(UserWarning, match="None of the inputs have requires_grad=True"):
        assert not checkpoint(lambda x: (x * w).sum(), torch.ones(3), use_reentrant=True).requires_grad


@pytest.mark.parametrize("by_closure", [False, True])
def test_reentrant_with_leaves_that_were_frozen_or_thawed(by_closure):
    def gradients_of(library, checkpoint):
        x, w, c = (library.tensor([n, 2.0], requires_grad=n < 3) for n in (1.0, 2.0, 3.0))
        if by_closure:
            y = checkpoint(lambda x: x * w.exp() * c, x, use_reentrant=True)
        else:
            y = checkpoint(lambda x, w, c: x * w.exp() * c, x, w, c, use_reentrant=True)
        w.requires_grad_(False)
        if not by_closure:
            c.requires_grad_()
        y.sum().backward()
        return x.grad.tolist(), w.grad, c.grad, [t.requires_grad for t in (x, w, c)]

    found, w, c, required = gradients_of(torch, checkpoint)
    assert found == pytest.approx([3 * math.exp(2), 2 * math.exp(2)]) and w is c is None
    assert required == [True, False, not by_closure]  # as they were left


@pytest.mark.parametrize("hooks", [allow_mutation_on_saved_tensors, save_on_cpu, lambda: saved_tensors_hooks(lambda t: t * 2, lambda t: t)])
@pytest.mark.parametrize("use_reentrant", [False, True])
def test_recomputation_where_hooks_are_set(hooks, use_reentrant):
    """They are those of the pass, not of the function."""
    x = torch.ones(3, requires_grad=True)
    y = checkpoint(lambda x: (x * x).sin().exp(), x, use_reentrant=use_reentrant)
    with hooks():
        y.sum().backward()
    assert x.grad.tolist() == pytest.approx([2 * math.cos(1) * math.exp(math.sin(1))] * 3)


def changing(*parts):
    """A function that does another thing at each call."""
    left = list(parts)
    return lambda x: left.pop(0)(x)


SHORT, LONG = (lambda x: x.exp() + 1), (lambda x: x.exp().sin() + 1)


@pytest.mark.parametrize("said", [{}, {"early_stop": True}, {"early_stop": False}])
@pytest.mark.parametrize("around", [None, True, False])
def test_differing_recomputation_is_noticed(said, around):
    x = torch.ones(2, requires_grad=True)
    with nullcontext() if around is None else set_checkpoint_early_stop(around):
        less = checkpoint(changing(LONG, SHORT), x, use_reentrant=False, **said)
        more = checkpoint(changing(SHORT, LONG), x, use_reentrant=False, **said)
    with pytest.raises(CheckpointError, match="A different number of tensors was saved"):
        less.sum().backward()
    if said.get("early_stop", True) if around is None else around:  # what comes behind what was saved is not compared then
        more.sum().backward()
        assert x.grad.tolist() == [pytest.approx(math.e)] * 2
    else:
        with pytest.raises(CheckpointError, match="A different number of tensors was saved"):
            more.sum().backward()


def test_checks_of_the_recomputation_are_named():
    x, block = torch.ones(2, requires_grad=True), torch.exp
    with pytest.raises(ValueError, match="determinism_check"):
        checkpoint(block, x, use_reentrant=False, determinism_check="always")


def test_contexts_and_arguments():
    order = []

    class Named:
        def __init__(self, name):
            self.name = name

        def __enter__(self):
            order.append(self.name)

        def __exit__(self, *error):
            pass

    x = torch.ones(2, requires_grad=True)
    y = checkpoint(
        lambda a, *, k: a.exp() * k, x, k=3, use_reentrant=False, context_fn=lambda: (Named("first"), Named("second"))
    )
    y.sum().backward()
    assert order == ["first", "second"]
    with pytest.warns(UserWarning, match="use_reentrant"):
        checkpoint(lambda a: a * 2, x)
    with pytest.raises(ValueError, match="Unexpected keyword arguments"):
        checkpoint(lambda a: a * 2, x, other=1, use_reentrant=True)


# ------------------------------------------------------------------------------------------------ saved tensors


def test_hooks_see_what_is_saved():
    packed, unpacked = [], []

    def pack(t):
        packed.append(t.tolist())
        return len(packed) - 1

    def unpack(k):
        unpacked.append(k)
        return torch.tensor(packed[k])

    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = torch.tensor([3.0, 4.0], requires_grad=True)
    with saved_tensors_hooks(pack, unpack):
        z = (x * y).exp()
        s = (z @ z).sin()
    s.backward(retain_graph=True)
    gx = x.grad.clone()
    assert [1.0, 2.0] in packed and [3.0, 4.0] in packed and unpacked
    x2, y2 = x.detach().requires_grad_(), y.detach()
    z2 = (x2 * y2).exp()
    (z2 @ z2).sin().backward()
    assert torch.equal(gx, x2.grad)
    count = len(packed)
    (x * y).sum().backward()
    assert len(packed) == count  # outside the context nothing is packed


def test_hooks_with_functions_in_place_and_second_derivatives():
    class Cube(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            y = x**3
            ctx.save_for_backward(x, y)
            return y

        @staticmethod
        def backward(ctx, g):
            x, _ = ctx.saved_tensors
            return g * 3 * x**2

    (torch.tensor(2.0) ** 2, torch.tensor(2.0) * 3, torch.tensor(2.0) * torch.tensor(3.0))  # plans are there already
    x = torch.tensor(2.0, requires_grad=True)
    with saved_tensors_hooks(lambda t: t * 2, lambda t: t / 2):
        y = Cube.apply(x)
        y = y.clone().exp_().log_()
        y.mul_(x)
    (g,) = torch.autograd.grad(y, x, create_graph=True)
    (h,) = torch.autograd.grad(g, x)
    assert g.item() == pytest.approx(32, rel=1e-4) and h.item() == pytest.approx(48, rel=1e-4)


def test_errors_of_hooks():
    x = torch.ones(2, requires_grad=True)
    with saved_tensors_hooks(lambda t: t, lambda t: 1):
        y = x.exp()
    with pytest.raises(TypeError, match="unpack_hook expected to be a Tensor"):
        y.sum().backward()
    with disable_saved_tensors_hooks("not here"), pytest.raises(RuntimeError, match="not here"), saved_tensors_hooks(id, id):
        pass


def test_save_on_cpu_and_mutation():
    x = torch.ones(3, requires_grad=True)
    with save_on_cpu():
        (x.exp() * x).sum().backward()
    assert torch.allclose(x.grad, torch.full((3,), 2 * 2.7182817))
    y = x.detach().clone()
    w = torch.ones(3, requires_grad=True)
    with allow_mutation_on_saved_tensors():
        z = (w * y).sum()
        y.zero_()
        z.backward()
    assert w.grad.tolist() == [1, 1, 1]


def test_views_whose_nodes_are_made_when_they_are_asked_for():
    """Arguments, and what a function finds by itself: views of conjugates, and of what was changed since."""
    x = torch.tensor([1 + 2j, 3 - 1j], requires_grad=True)
    base = x * 1
    conjugates, part = base.conj(), base[:1]
    base.mul_(2)
    for function, given in (
        (lambda u: u.conj() * u, (x * 1).conj()), (lambda u: u.real.sin(), x.conj()), (lambda u: u * u, conjugates), (lambda u: u * u, part),
        (lambda u: u * conjugates, x), (lambda u: (u * part).sin(), x), (lambda u: u * (x * 3).conj().mul_(2), x),
    ):  # fmt: skip
        found = []
        for call in (function, lambda u, f=function: checkpoint(f, u, use_reentrant=False)):
            (g,) = torch.autograd.grad(call(given).abs().sum(), x, retain_graph=True)
            found.append(g)
        assert torch.allclose(*found)
