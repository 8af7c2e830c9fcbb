"""Backward rules of the user's own behind the results of compiled calls read what Python holds when a pass runs."""

from __future__ import annotations

import pytest

import autograd_nb as torch

pytestmark = pytest.mark.filterwarnings("ignore:compile")


def leaf(*values):
    return torch.tensor(values, requires_grad=True)


class Reads:
    """A function whose rule reads several kinds of places."""

    def __init__(self):
        number, numbers, held = 2.0, [2.0], torch.tensor([2.0, 2.0])

        class Scaled(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                return x * 3

            @staticmethod
            def backward(ctx, g):
                if number < 0:
                    raise ValueError("a negative number")
                return g * number * sum(numbers) * held

        def cell(value):
            nonlocal number
            number = value

        def tensor():
            nonlocal held
            held = held * 2

        self.function = Scaled
        self.changes = {
            "nothing": lambda: None, "a cell": lambda: cell(5.0), "a list": lambda: numbers.append(1.0), "a tensor": tensor,
            "a tensor's values": lambda: held.add_(1), "an error": lambda: cell(-1.0),
        }  # fmt: skip


@pytest.mark.parametrize("draws", [False, True])
@pytest.mark.parametrize("change", Reads().changes)
def test_what_a_rule_reads_is_changed_between_a_call_and_its_pass(change, draws):
    def seen(decorate):
        torch.manual_seed(0)
        reads, w = Reads(), leaf(1.0, 2.0)
        apply = reads.function.apply

        @decorate
        def step(x):
            return apply(x * w * torch.rand(2) if draws else x * w).sin()

        found = []
        for k in range(4):
            w.grad = None
            y = step(torch.ones(2) * k)
            if k == 2:
                reads.changes[change]()
            try:
                y.sum().backward()
            except ValueError as error:
                found.append(str(error))
            found += [y.tolist(), None if w.grad is None else w.grad.tolist(), torch.rand(1).item()]
        return found

    assert _close(seen(torch.compile), seen(lambda f: f))


def _close(a, b):
    if isinstance(a, list):
        return len(a) == len(b) and all(map(_close, a, b))
    return a == pytest.approx(b, rel=1e-5) if isinstance(a, float) else a == b


def test_what_other_code_reads_too_is_changed():
    factor, w = 2.0, leaf(1.0, 2.0)

    class Scaled(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * factor

        @staticmethod
        def backward(ctx, g):
            return g * factor

    compiled = torch.compile(lambda x: Scaled.apply(x * w).sum())
    for _ in range(2):
        compiled(torch.ones(2)).backward()
    y, factor = compiled(torch.ones(2)), 3.0
    with pytest.raises(RuntimeError, match="a backward rule whose Python values have changed"):
        y.backward()
    w.grad = None
    compiled(torch.ones(2)).backward()
    assert w.grad.tolist() == [3.0, 3.0]
