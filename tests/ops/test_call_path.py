"""The one path of calls: what a new shape and a warm backward pass cost in Python calls, and that nothing has a path of its own."""

from __future__ import annotations

import gc
import re
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import autograd_nb as torch
from autograd_nb import launch

F = torch.nn.functional
PACKAGE = Path(torch.__file__).parent


def python_calls(step: Callable[[], object]) -> int:
    """How many Python functions a call of ``step`` runs, itself not among them."""
    count = 0

    def watch(frame, event, arg):
        nonlocal count
        count += event == "call"

    gc.disable()  # what others have left calls back when it goes
    sys.setprofile(watch)
    try:
        step()
    finally:
        sys.setprofile(None)
        gc.enable()
    return count - 1


def test_a_warm_backward_pass():
    w = torch.randn(8, requires_grad=True)
    for _ in range(3):
        torch.tanh(w).sum().backward()
    assert python_calls(torch.tanh(w).sum().backward) + 1 <= 20


X = torch.ones(1 << 12)
ROW, LONG, WEIGHT = torch.ones(4), torch.zeros(1 << 10, dtype=torch.int64), torch.ones(3, 4)


def rows(n: int):
    return X[: 4 * n].view(n, 4)


def leaf(n: int):
    return rows(n).detach().requires_grad_()


#: a step on n rows, and the Python calls that it may come to where n is new; without them it is some µs
NEW = {
    "view": (rows, 40),
    "tanh": (lambda n: rows(n).tanh(), 75),
    "add": (lambda n: rows(n) + rows(n), 85),
    "add a row": (lambda n: rows(n) + ROW, 100),
    "in place": (lambda n: rows(n).add_(0.0), 80),
    "transposed": (lambda n: rows(n).t() * 2.0, 120),
    "tanh, backward": (lambda n: leaf(n).tanh().sum().backward(), 225),
    "sum": (lambda n: rows(n).sum(), 110),
    "sum(0)": (lambda n: rows(n).sum(0), 110),
    "matmul": (lambda n: rows(n) @ WEIGHT.t(), 85),
    "linear": (lambda n: F.linear(rows(n), WEIGHT), 80),
    "softmax": (lambda n: F.softmax(rows(n), -1), 65),
    "layer_norm": (lambda n: F.layer_norm(rows(n), (4,)), 80),
    "cross_entropy": (lambda n: F.cross_entropy(rows(n), LONG[:n]), 90),
}


@pytest.mark.parametrize("name", NEW)
def test_a_new_shape(name):
    step, most = NEW[name]
    for n in range(3, 6):
        step(n)
    launch.forget()
    step(6)
    found = min(python_calls(lambda n=n: step(n)) for n in range(20, 24))
    assert found <= most
    assert python_calls(lambda: step(20)) < found  # the second time it is known


#: writes nodes: the one generator, the class of nodes, and compiled programs, whose nodes stand for many
WRITERS = {"graph/node.py", "compiler/run/backward.py"}


def test_nodes_are_written_in_one_place():
    """No op gives nodes their age and place by itself."""
    found = {
        str(p.relative_to(PACKAGE)) for p in PACKAGE.rglob("*.py") if re.search(r"\.seq = (seq = )?sequence\(\)|[^_]\bspare\(", p.read_text())
    }
    assert found <= WRITERS


def test_only_one_place_asks_for_observers_before_plans_are_kept():
    for path in sorted((PACKAGE / "ops").rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        assert not re.search(r"observing\(?\)?:\n\s+(return )?(launch\.)?keep\(", text), path


@pytest.mark.parametrize("call", [lambda x, d: F.softmax(x, d), lambda x, d: x.sum(d), lambda x, d: x.log_softmax(d)])
def test_what_is_equal_is_not_the_same(call):
    """1.0 is equal to 1, and no dim, also where a plan for 1 is known."""
    x = torch.ones(2, 3)
    call(x, 1)
    with pytest.raises(TypeError):
        call(x, 1.0)


def test_errors_have_no_history():
    """What is refused was not raised within the search for a plan."""
    with pytest.raises(ValueError, match="batch_size") as found:
        F.cross_entropy(torch.ones(2, 3), torch.zeros(3, dtype=torch.int64))
    assert found.value.__context__ is None


def test_an_observer_sees_what_is_known():
    x = torch.ones(3, 4)
    seen = []

    def look(call, args):
        seen.append(call.name)
        call.entry(*args)

    for step in (lambda: F.softmax(x, -1), lambda: x.sum(), lambda: x @ x.t(), lambda: F.layer_norm(x, (4,)), lambda: F.linear(x, x, x[:, 0])):
        step()
        before = len(seen)
        with launch.observe(look):
            step()
            step()
        assert len(seen) >= before + 2
        step()


def test_records_the_users_line():
    x = torch.ones(2, 3, requires_grad=True)
    for step in (lambda: x.sum(), lambda: F.softmax(x, 1), lambda: x @ x.t(), lambda: x.view(-1), lambda: F.linear(x, x), lambda: x.tanh()):
        for _ in range(2):
            assert step().grad_fn.code.co_filename == __file__
