"""Backward passes within backward passes: as deep as somebody nests them, without using up the stack."""

from __future__ import annotations

import _thread
import signal
import threading
import time

import pytest

import autograd_nb as torch
from autograd_nb.graph import nested
from autograd_nb.graph.modes import state


def by_hooks(depth, inside=lambda k: None):
    """A pass whose hook begins the next one, so many times; how many hooks ran, and the innermost leaf's gradient."""
    count, leaves = [0], []

    def root(k):
        with torch.enable_grad():
            leaves.append(torch.ones(1, requires_grad=True))
            y = leaves[-1] * 2

        def hook(g):
            count[0] += 1
            inside(k)
            if k < depth:
                root(k + 1).backward()

        y.register_hook(hook)
        return y

    root(1).backward()
    return count[0], [x.grad.item() for x in leaves]


@pytest.mark.parametrize("target", ["below another root", "the root itself"])
def test_hooks_of_nodes_that_do_not_run_nest_as_deep(target):
    """A pass towards a target calls hooks on its root also where no node has to run for them."""
    other, count = torch.ones(1, requires_grad=True), [0]

    def root(k):
        with torch.enable_grad():
            y = torch.ones(1, requires_grad=True) * 2

        def hook(g):
            count[0] += 1
            if k < 2000:
                root(k + 1)

        y.register_hook(hook)
        torch.autograd.grad(y, y if target == "the root itself" else other, torch.ones(1), allow_unused=True)

    root(1)
    assert count == [2000]
    assert state.passes == 0


class Deep(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, k):
        ctx.k = k
        return x * 2

    @staticmethod
    def backward(ctx, g):
        if ctx.k:
            with torch.enable_grad():
                z = torch.ones(1, requires_grad=True)
                (inner,) = torch.autograd.grad(Deep.apply(z, ctx.k - 1).sum(), z)
            g = g * inner / 2
        return g * 2, None


def test_two_thousand_passes_within_one_another():
    count, grads = by_hooks(2000)
    assert count == 2000
    assert grads == [2.0] * 2000
    assert state.passes == 0


def test_functions_within_functions():
    x = torch.ones(1, requires_grad=True)
    Deep.apply(x, 300).sum().backward()
    assert x.grad.tolist() == [2.0]


def test_errors_come_through_and_leave_nothing_behind():
    def fail(k):
        if k == 60:
            raise ValueError("at 60")

    with pytest.raises(ValueError, match="at 60"):
        by_hooks(100, fail)
    assert state.passes == 0
    assert torch.is_grad_enabled()
    assert by_hooks(3)[0] == 3


def test_modes_and_context_go_along():
    seen = []

    def inside(k):
        seen.append((torch.is_grad_enabled(), threading.current_thread() is threading.main_thread()))

    by_hooks(40, inside)
    assert {mode for mode, _ in seen} == {False}
    assert {main for _, main in seen} == {True, False}  # some of them were in another thread
    with torch.autograd.set_detect_anomaly(True):
        modes = []
        by_hooks(40, lambda k: modes.append(torch.is_anomaly_enabled()))
    assert all(modes)


def test_without_end_it_is_an_error(monkeypatch):
    monkeypatch.setattr(nested, "MOST", 200)
    with pytest.raises(RecursionError, match="backward was called within backward"):
        by_hooks(10_000)
    assert state.passes == 0


def test_an_interrupt_ends_the_innermost_pass():
    reached = threading.Event()
    ended = []

    def interrupt():
        reached.wait(20)
        time.sleep(0.2)
        _thread.interrupt_main()

    def wait(k):
        if k == 50:
            reached.set()
            try:
                for _ in range(2000):
                    time.sleep(0.01)
            except KeyboardInterrupt:
                ended.append(k)
                raise

    waker = threading.Thread(target=interrupt)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background ignores it
    waker.start()
    with pytest.raises(KeyboardInterrupt):
        by_hooks(60, wait)
    waker.join()
    signal.signal(signal.SIGINT, before)
    assert ended == [50]  # there it was raised, long before the waiting had an end
    assert by_hooks(3)[0] == 3
