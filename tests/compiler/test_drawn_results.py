"""Functions drawn at random: compiled calls agree with eager ones in all that `test_agreement` looks at.

``DRAWN_RESULTS=2000 pytest tests/compiler/test_drawn_results.py`` looks at many more than `make test-slow` does.
"""

from __future__ import annotations

import os
import random

import pytest

import autograd_nb as torch

from ..functions import Square
from .test_agreement import DEEDS, KINDS, World, outcome

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]

MANY = int(os.environ.get("DRAWN_RESULTS", "20"))
FIRST = int(os.environ.get("DRAWN_RESULTS_FROM", "0"))


def _quiet(f):
    def run(a, b):
        with torch.no_grad():
            return f(a, b)

    return run


def _loud(f):
    def run(a, b):
        with torch.enable_grad():
            return f(a, b)

    return run


PURE = {
    "mul": lambda a, b: a * b,
    "add": lambda a, b: a + b,
    "exp": lambda a, b: (a * 0.125).exp(),
    "square": lambda a, b: Square.apply(a),
    "sum": lambda a, b: a.sum(),
    "view": lambda a, b: a[..., :1],
    "row": lambda a, b: a.reshape(-1),
    "expand": lambda a, b: a.expand(2, *a.shape)[0],
    "detach": lambda a, b: a.detach(),
    "data": lambda a, b: a.data,
    "clone": lambda a, b: a.clone(),
    "div": lambda a, b: a / (b * b + 1),
    "quiet": _quiet(lambda a, b: a * b),
    "loud": _loud(lambda a, b: a * b),
    "quiet view": _quiet(lambda a, b: a[..., :1]),
    "positive": lambda a, b: a > 0,
    "tanh": lambda a, b: a.tanh(),
}
CHANGES = {
    "mul_": lambda a, b: a.mul_(b),
    "add_": lambda a, b: a.add_(b),
    "zero_": lambda a, b: a.zero_(),
    "first": lambda a, b: a[..., 0].mul_(2),
    "copy_": lambda a, b: a.copy_(b),
    "quiet mul_": _quiet(lambda a, b: a.mul_(2)),
    "data mul_": lambda a, b: a.data.mul_(2),
    "detached mul_": lambda a, b: a.detach().mul_(2),
    "tanh_": lambda a, b: a.tanh_(),
    "quiet add_": _quiet(lambda a, b: a.add_(0.5)),
}
PASSES = {
    "backward": lambda a, s: a.sum().backward(),
    "backward kept": lambda a, s: a.sum().backward(retain_graph=True),
    "w": lambda a, s: torch.autograd.grad(a.sum(), s.w)[0],
    "w kept": lambda a, s: torch.autograd.grad(a.sum(), s.w, retain_graph=True)[0],
    "w graph": lambda a, s: torch.autograd.grad(a.sum(), s.w, create_graph=True)[0],
}


def draw(numbers):
    """A program: instructions (table, name, operands), and which values are its results."""
    program = []
    for _ in range(numbers.randint(2, 8)):
        table = numbers.choices(["pure", "change", "pass"], [8, 3, 1])[0]
        names = {"pure": PURE, "change": CHANGES, "pass": PASSES}[table]
        program.append((table, numbers.choice(list(names)), numbers.randint(-4, 7), numbers.randint(-4, 7)))
    return program, [numbers.randint(-3, 6) for _ in range(numbers.randint(1, 3))], numbers.random() < 0.3


def function_of(program, results, single):
    """The function of the world and an argument; what makes no sense is left out, the same each time for arguments of one kind."""

    def run(s, x):
        values = [x, s.w, s.v, s.b, x * s.w]
        for table, name, i, j in program:
            a, b = values[i % len(values)], values[j % len(values)]
            if table == "pure":
                if a.dtype is torch.bool or b.dtype is torch.bool:
                    continue
                values.append(PURE[name](a, b))
            elif table == "change":
                if a.dtype is not torch.bool and b.dtype is not torch.bool:
                    CHANGES[name](a, b)
            elif a.requires_grad:
                found = PASSES[name](a, s)
                if found is not None:
                    values.append(found)
        found = [values[k % len(values)] for k in results]
        return found[0] if single else found

    return run


def differences(seed):
    """(what, compiled, eager) of the first call that differs, or None; and whether anything was captured."""
    numbers = random.Random(seed)
    program = draw(numbers)
    function = function_of(*program)
    mine, theirs = World(), World()
    compiled = torch.compile(lambda x: function(mine, x))
    kinds = [numbers.choice(KINDS) for _ in range(2)]
    for k in range(8):
        kind, deed = kinds[k >= 5], numbers.choice(DEEDS)
        a = outcome(lambda s, x: compiled(x), mine, kind, k, deed)
        b = outcome(function, theirs, kind, k, deed)
        if a != b:
            return program, kind, k, deed.__name__, [(p, q) for p, q in zip(a, b, strict=False) if p != q]
    return None


@pytest.mark.parametrize("seed", range(FIRST, FIRST + MANY))
def test_a_drawn_function_agrees(seed):
    assert differences(seed) is None
