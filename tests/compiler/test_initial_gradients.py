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
