"""Hooks of leaves, results and nodes are called in PyTorch's order, also where one node completes the gradients of several leaves."""

from __future__ import annotations

import random

import pytest

torch = pytest.importorskip("torch")

import autograd_nb as ag  # noqa: E402


def called(t, seed):
    """What hooks of a small graph drawn from the seed were called, in order."""
    draw, log = random.Random(seed), []
    leaves = [t.ones(2, requires_grad=True) for _ in range(draw.randint(1, 7))]
    values = list(leaves)
    for k in range(draw.randint(1, 10)):
        a, b, several = draw.choice(values), draw.choice(values), [draw.choice(values) for _ in range(draw.randint(2, 8))]
        values.append(draw.choice([lambda: a * b, lambda: a + b, lambda: -a, lambda: t.cat(several)[:2], lambda: t.stack(several).sum(0)])())
        if draw.random() < 0.5:
            values[-1].register_hook(lambda g, k=k: log.append(f"hook of v{k}"))
        if draw.random() < 0.3:
            values[-1].grad_fn.register_prehook(lambda g, k=k: log.append(f"before the node of v{k}"))
        if draw.random() < 0.3:
            values[-1].grad_fn.register_hook(lambda g, h, k=k: log.append(f"behind the node of v{k}"))
    for k, p in enumerate(leaves):
        if draw.random() < 0.8:
            p.register_post_accumulate_grad_hook(lambda p, k=k: log.append(f"accumulated p{k}, there are {[q.grad is not None for q in leaves]}"))
        if draw.random() < 0.4:
            p.register_hook(lambda g, k=k: log.append(f"hook of p{k}"))
    roots = draw.choices(values, k=draw.randint(1, 4)) if draw.random() < 0.4 else [values[-1]]
    wanted = draw.choice([None, draw.choices(leaves, k=3), draw.choices(values, k=2)])
    try:
        if draw.random() < 0.7:
            t.autograd.backward(roots, [t.ones(2) for _ in roots], inputs=wanted)
        else:
            t.autograd.grad(roots, wanted or leaves, [t.ones(2) for _ in roots], allow_unused=True)
    except RuntimeError as error:
        log.append(type(error).__name__)
    return log


@pytest.mark.parity
def test_hooks_are_called_in_pytorchs_order():
    wrong = {seed: (mine, theirs) for seed in range(600) if (mine := called(ag, seed)) != (theirs := called(torch, seed))}
    assert not wrong, [len(wrong), *list(wrong.items())[:3]]


@pytest.mark.parity
@pytest.mark.parametrize("count", range(2, 12))
def test_leaves_that_one_node_completes_take_their_gradients_in_pytorchs_order(count):
    def order(t, older):
        log = []
        leaves = [t.ones(1, requires_grad=True) for _ in range(count)]
        for k, p in enumerate(leaves):
            p.register_post_accumulate_grad_hook(lambda p, k=k: log.append(k))
        others = [(leaves[-1] * k for k in range(older))]
        (t.cat([*leaves, *leaves[1:2], *(v for vs in others for v in vs)]).sum()).backward()
        return log

    assert [order(ag, older) for older in range(5)] == [order(torch, older) for older in range(5)]
