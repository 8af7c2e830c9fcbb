"""What the tests of compiled functions share."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import autograd_nb as torch
import autograd_nb.nn.functional as F
from autograd_nb import nn


def eq(a, b, nan=False):
    """Equal in structure and type, tensors up to rounding; ``nan``: NaN equals NaN."""
    if isinstance(a, torch.Tensor):
        torch.testing.assert_close(a.detach(), b.detach(), equal_nan=nan, rtol=0.0001, atol=1e-05)
    elif isinstance(a, (list, tuple)):
        assert type(a) is type(b) and len(a) == len(b)
        for x, y in zip(a, b, strict=True):
            eq(x, y, nan)
    else:
        assert a == b and type(a) is type(b), (a, b)


def training(model, optimizer, loss=F.mse_loss, clip=None):
    def step(x, y):
        optimizer.zero_grad()
        value = loss(model(x), y)
        value.backward()
        if clip is not None:
            nn.utils.clip_grad_norm_(model.parameters(), clip)
        optimizer.step()
        return value.detach()

    return step


def same(a, b):
    for p, q in zip(a.state_dict().values(), b.state_dict().values(), strict=True):
        torch.testing.assert_close(p, q, rtol=1e-4, atol=1e-5)
    for p, q in zip(a.parameters(), b.parameters(), strict=True):
        assert (p.grad is None) == (q.grad is None)
        if p.grad is not None:
            torch.testing.assert_close(p.grad, q.grad, rtol=1e-4, atol=1e-5)


def checked_program(function, *args, calls=2):
    """The program of a function, after calls that compare it with eager."""
    step = torch.compile(function, check=True)
    for _ in range(calls + 1):
        step(*args)
    assert step.programs, "not captured"
    return step.programs[0].program


def names(program):
    """The kernels of a program's steps."""
    return [s.name for s in program.steps]


def train_beside_eager(make, *calls, before=lambda k, model: None):
    """Run the step of one ``make() → (model, step)`` compiled and that of another eagerly: both agree after each call.

    A step is given a random batch and the arguments of ``calls``, one tuple a call; ``before(k, model)`` runs before call ``k``.
    """
    (model, step), (expected, eager) = make(), make()
    compiled = torch.compile(step)
    for k, args in enumerate(calls):
        before(k, model)
        before(k, expected)
        x = torch.randn(2, 3)
        eq(compiled(x, *args), eager(x, *args))
        same(model, expected)


def in_threads(count, work):
    """``work(k)`` in a thread for each k; what one raised is raised."""
    with ThreadPoolExecutor(count) as pool:
        list(pool.map(work, range(count)))
