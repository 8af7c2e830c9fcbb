"""A backward pass that a capture runs before anybody has asked for it leaves nothing behind: what the user's own rules do besides computing
happens as often as in eager calls, and at the same moments.
"""

from __future__ import annotations

import collections
import warnings

import numpy as np
import pytest

import autograd_nb as torch

W = torch.ones(3, 4)
CALLS = 3


def made(rule):
    """A Function of a tensor that doubles it, with such a backward."""

    class Doubled(torch.autograd.Function):
        count = 0

        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            ctx.notes, ctx.left = [], 1
            return x * 2

        @staticmethod
        def backward(ctx, g):
            rule(ctx)
            return g * 2

    return Doubled


class Slotted:
    __slots__ = ("count",)


def state():
    """Holders of every kind, and what each rule below does to one of them."""
    held = {"list": [], "dict": {"n": 0}, "set": set(), "deque": collections.deque(maxlen=2), "bytes": bytearray(b"a")}
    held |= {"array": np.zeros(2), "object": Slotted(), "tensor": torch.zeros(2), "leaf": torch.ones(3, 4).requires_grad_()}
    held["object"].count = 0
    return held


def swallowed(say):
    try:
        say("printed")
    except Exception:
        pass


RULES = {
    "print": lambda held, ctx: print("pass"),
    "print, whatever comes": lambda held, ctx: swallowed(print),
    "warn": lambda held, ctx: warnings.warn("pass", RuntimeWarning, stacklevel=1),
    "list": lambda held, ctx: held["list"].append(1),
    "item": lambda held, ctx: held["dict"].update(n=held["dict"]["n"] + 1),
    "new item": lambda held, ctx: held["dict"].setdefault(f"k{len(held['dict'])}", 1),
    "item gone": lambda held, ctx: held["dict"].pop("n", None),
    "set": lambda held, ctx: held["set"].add(len(held["set"])),
    "deque": lambda held, ctx: held["deque"].append(len(held["deque"])),
    "bytes": lambda held, ctx: held["bytes"].extend(b"b"),
    "array": lambda held, ctx: held["array"].__setitem__(0, held["array"][0] + 1),
    "slot": lambda held, ctx: setattr(held["object"], "count", held["object"].count + 1),
    "tensor": lambda held, ctx: held["tensor"].add_(1),
    "tensor of the graph": lambda held, ctx: held["tensor"].copy_(ctx.saved_tensors[0][0, :2]),
    "gradient": lambda held, ctx: setattr(held["leaf"], "grad", torch.ones(3, 4) if held["leaf"].grad is None else held["leaf"].grad * 2),
    "random numbers": lambda held, ctx: torch.rand(2),
    "class": lambda held, ctx: setattr(type(ctx).function, "count", type(ctx).function.count + 1),
    "context": lambda held, ctx: ctx.notes.append(len(ctx.notes)) or print(ctx.notes),
    "context, once": lambda held, ctx: delattr(ctx, "left"),
}


def looked(held, function):
    return [
        list(held["list"]), dict(held["dict"]), set(held["set"]), list(held["deque"]), bytes(held["bytes"]), held["array"].tolist(),
        held["object"].count, held["tensor"].tolist(), held["tensor"]._version, None if held["leaf"].grad is None else held["leaf"].grad.tolist(),
        function.count, torch.get_rng_state().tolist(),
    ]  # fmt: skip


def told(rule, compiled, capsys):
    """What can be seen of a few calls and passes, after each."""
    torch.manual_seed(0)
    held, found = state(), []
    function = made(lambda ctx: rule(held, ctx))
    w = W.clone().requires_grad_()

    def step(x):
        return function.apply(x * w)

    call = torch.compile(step) if compiled else step
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(CALLS):
            y = call(W)
            found.append(looked(held, function))
            y.sum().backward()
            found += [looked(held, function), w.grad.tolist()]
        call(W)
    found += [looked(held, function), len([c for c in caught if c.category is RuntimeWarning]), capsys.readouterr().out]
    return found


@pytest.mark.parametrize("rule", RULES)
def test_rules_of_functions_run_when_a_pass_is_asked_for(rule, capsys):
    eager, compiled = (told(RULES[rule], c, capsys) for c in (False, True))
    assert compiled == eager


def test_outputs_nothing_is_asked_of(capsys):
    """Which of several outputs a rule makes gradients of is asked of rules too."""

    class Both(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, y):
            return x * 2, y * 3

        @staticmethod
        def backward(ctx, g, h):
            print("pass")
            return g * 2, h * 3

    w, v = W.clone().requires_grad_(), W.clone().requires_grad_()

    def step():
        first, _ = Both.apply(w, v)
        return first, v * 3

    def printed(call):
        for _ in range(CALLS):
            first, _ = call()
            print("called")
            first.sum().backward()
        return capsys.readouterr().out

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert printed(torch.compile(step)) == printed(step)


def test_statistics_of_a_checkpoint():
    """Running statistics move once in the forward pass and once when the checkpoint runs again, not when a call is captured."""
    x = torch.arange(12.0).reshape(3, 4).requires_grad_()

    def seen(compiled):
        norm = torch.nn.BatchNorm1d(4)

        def step(x):
            return torch.utils.checkpoint.checkpoint(norm, x, use_reentrant=False)

        call, found = torch.compile(step) if compiled else step, []
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for _ in range(CALLS):
                y = call(x)
                found.append((norm.num_batches_tracked.item(), norm.running_mean.tolist(), norm.running_mean._version))
                y.sum().backward()
                found.append((norm.num_batches_tracked.item(), norm.running_mean.tolist(), norm.running_mean._version))
        return found

    assert seen(True) == seen(False)


def test_hooks_that_unpack():
    log = []
    w = W.clone().requires_grad_()

    def step():
        with torch.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: log.append(1) or t):
            return w * w

    def seen(call):
        found = []
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for _ in range(CALLS):
                y = call()
                found.append(len(log))
                y.sum().backward()
                found.append(len(log))
        log.clear()
        return found

    assert seen(torch.compile(step)) == seen(step)


@pytest.mark.parametrize("again", ["turned", "create_graph"])
def test_hooks_around_a_pass_do_not_see_another_run(again):
    """A pass of a compiled call may run its function once more: what that saves is no affair of the hooks around the pass."""
    w = W.clone().requires_grad_()
    call = torch.compile(lambda: (w * w).exp())
    call()
    y, log = call(), []
    g = torch.ones(4, 3).T if again == "turned" else torch.ones(3, 4)
    with torch.autograd.graph.saved_tensors_hooks(lambda t: log.append(t.shape) or t, lambda t: t):
        torch.autograd.grad(y, w, g, create_graph=again == "create_graph")
    packed, log[:] = len(log), []
    y = (w * w).exp()
    with torch.autograd.graph.saved_tensors_hooks(lambda t: log.append(t.shape) or t, lambda t: t):
        torch.autograd.grad(y, w, g, create_graph=again == "create_graph")
    assert packed == len(log)
