"""Compiled functions that begin with gradients that are there: whatever happens to those between two calls, they do what eager does."""

from __future__ import annotations

import numpy as np
import pytest

import autograd_nb as torch
from autograd_nb.compiler.guards import interpreter


def exchanged(p):
    p.grad = p.grad.clone()


def other_memory(p):
    p.grad.data = p.grad.data + 1


def shared(p):
    p.grad = p.grad[:1].expand(3, 4).clone()
    p.grad = p.grad.view(12).view(3, 4)


def dropped(p):
    p.grad = None
    p.grad = torch.full((3, 4), 0.5)


#: what happens to a leaf's gradient between two calls
CHANGES = {
    "nothing": lambda p: None,
    "changed in place": lambda p: p.grad.mul_(2),
    "zeroed": lambda p: p.grad.zero_(),
    "another tensor": exchanged,
    "other memory": other_memory,
    "a view": shared,
    "dropped and made anew": dropped,
    "transposed": lambda p: setattr(p, "grad", p.grad.t().contiguous().t()),
    "NumPy's memory": lambda p: setattr(p, "grad", torch.from_numpy(np.full((3, 4), 2.0, np.float32))),
    "the leaf's values": lambda p: p.data.mul_(0.5),
    "None": lambda p: setattr(p, "grad", None),
}


def accumulating(leaves):
    def step():
        sum((p.tanh() * (k + 1)).sum() for k, p in enumerate(leaves)).backward()

    return step


def updating(leaves):
    optimizer = torch.optim.SGD(leaves, lr=0.1)
    return lambda: optimizer.step()


def reading(leaves):
    return lambda: [p.grad * 2 for p in leaves]


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("program", [accumulating, updating, reading])
def test_what_happens_to_gradients_between_calls(program, change):
    def run(compiled):
        torch.manual_seed(0)
        leaves = [torch.randn(3, 4).requires_grad_() for _ in range(3)]
        for p in leaves:
            p.grad = torch.ones(3, 4)
        step = program(leaves)
        step = torch.compile(step) if compiled else step
        found = []
        for call in range(14):
            if call in (6, 7, 11):  # gradients that stayed for some calls are watched
                CHANGES[change](leaves[1])
            try:
                result = step()
            except TypeError:  # of None
                result = "refused"
                leaves[1].grad = torch.ones(3, 4)
            values = [*leaves, *[p.grad for p in leaves if p.grad is not None], *(result if isinstance(result, list) else [])]
            seen = [None if p.grad is None else (p.grad.stride(), p.grad._version) for p in leaves]
            found.append(([t.detach().clone() for t in values], seen, str(type(result))))
        return found

    for (mine, *seen), (wanted, *seen_then) in zip(run(True), run(False), strict=True):
        torch.testing.assert_close(mine, wanted)
        assert seen == seen_then


def test_two_leaves_come_to_share_a_gradient():
    p, q = (torch.ones(4).requires_grad_() for _ in range(2))
    step = torch.compile(lambda: (p.tanh() + q.exp()).sum().backward())
    for _ in range(4):
        step()
    p.grad = q.grad
    before = p.grad.tolist()
    step()
    wanted = torch.tensor(before) + (1 - torch.ones(4).tanh() ** 2) + torch.ones(4).exp()
    torch.testing.assert_close(p.grad, wanted)
    assert p.grad is q.grad


@pytest.mark.skipif(not interpreter.known(), reason="words of memory tell nothing here")
def test_gradients_that_stay_are_looked_at_by_their_words():
    p = torch.ones(4).requires_grad_()
    step = torch.compile(lambda: p.tanh().sum().backward())
    for _ in range(5):
        step()
    initial = next(v.initial for v in step.programs if v.initial.held)
    assert initial.same()
    p.grad = p.grad.clone()
    assert not initial.same()
    step()
    step()
    step()
    assert initial.same()
    for _ in range(20):  # gradients that never stay are not watched for ever
        p.grad = p.grad.clone()
        step()
        step()
        step()
    assert not initial.same()


@pytest.mark.parametrize("size", [100, 50_000])
def test_the_short_way_serves(size):
    """Small results and big ones, whose memory is pooled, and gradients that are there."""
    p = torch.ones(size).requires_grad_()
    p.grad = torch.ones(size)
    step = torch.compile(lambda x: ((x + p.detach()).exp(), (x * p).sum().backward()))
    for _ in range(4):
        y, _ = step(torch.ones(size))
        assert y[-1].item() == pytest.approx(float(np.exp(2.0)), rel=1e-6)
    assert p.grad[0] == 5
    assert all(v.state.fast_path is not None for v in step.programs)


#: what becomes of a gradient within a function before it takes part in a result
BETWEEN = {
    "nothing": lambda p: p.grad.detach(), "zeros": lambda p: p.grad.detach().zero_(), "a view": lambda p: p.grad.view(-1)[1:].detach().mul_(2),
    "itself": lambda p: p.grad, "a second pass": lambda p: (p.grad.detach(), p.square().sum().backward())[0],
}  # fmt: skip
#: results whose backward passes read it
READING = {
    "mul": lambda g, p: g.sum() * p, "elements": lambda g, p: g * p.flatten()[: g.numel()].view(g.shape),
    "dot": lambda g, p: g.flatten() @ p.flatten()[: g.numel()],
    "softmax": lambda g, p: (g.flatten() + p.sum()).softmax(0), "both": lambda g, p: (g.exp().sum() * p.exp(), g.clone()),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore:.*reads a gradient that it leaves")
@pytest.mark.parametrize("begins", ["with none", "with one"])
@pytest.mark.parametrize("reading", READING)
@pytest.mark.parametrize("between", BETWEEN)
def test_gradients_that_results_read(between, reading, begins):
    """The gradient that a function leaves, or finds, and that the backward pass of its results reads too, is the same memory for both."""

    def step():
        if begins == "with none":
            p.grad = None
            (p * p).sum().backward()
        g = BETWEEN[between](p)
        return READING[reading](g, p)

    seen = []
    for function in (step, torch.compile(step)):
        p = torch.arange(6.0).view(2, 3).mul(0.1).requires_grad_()
        p.grad = torch.full((2, 3), 0.5)
        found = []
        for k in range(4):
            junk = [np.full(6, 9.5 + k, np.float32) for _ in range(50)] + [torch.full((n,), 7.5 + k) for n in (1, 6) for _ in range(50)]
            del junk
            y = function()
            result = y[0] if isinstance(y, tuple) else y
            found.append([result.tolist(), p.grad.tolist(), torch.autograd.grad(result.sum(), p)[0].tolist()])
            if begins == "with one":
                p.grad.mul_(0.9)
        seen.append(found)
    assert np.allclose(np.concatenate([np.ravel(v) for call in seen[0] for v in call]), np.concatenate([np.ravel(v) for call in seen[1] for v in call]))
