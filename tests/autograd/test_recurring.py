"""Passes that recur are replayed: with the same bits, only where nothing differs, and with every check that a pass makes.

The walk over all ops is in `test_ownership`, where each is run so too.
"""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import threading
from contextlib import nullcontext

import pytest

import autograd_nb as torch
import autograd_nb.nn.functional as F
from autograd_nb.graph import noted, recurring
from autograd_nb.ops.core.structured import structured

from ..recurring import at_once, verified

N = recurring.FIRST


def leaf(*shape, seed=0):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed)).requires_grad_()


def classifier(x, w, v, b):
    h = F.relu(F.linear(x, w, b))
    return F.cross_entropy(h @ v, torch.arange(len(x)) % v.shape[1]) + 0.1 * h.var(1).sqrt().sum()


def test_a_training_loop_goes_on_as_without(monkeypatch):
    def losses():
        parameters = [leaf(5, 4, seed=1), leaf(5, 3, seed=2), leaf(5, seed=3)]
        optimizer = torch.optim.Adam(parameters)
        found = []
        for step in range(5 * N):
            x = torch.randn(6, 4, generator=torch.Generator().manual_seed(step))
            optimizer.zero_grad(set_to_none=step % 2 == 0)
            loss = classifier(x, *parameters)
            loss.backward()
            optimizer.step()
            found.append(loss.item())
        return found

    recurring.forget()
    with_replays = losses()
    known = [len(root.replays) for root in recurring._roots.values()]
    monkeypatch.setattr(recurring, "FIRST", 0)
    assert with_replays == losses()
    assert sum(known) >= 2  # with gradients that are made, and that are added to


@pytest.mark.parametrize("reduce", ["amax", "mean", "sum"])
def test_rules_that_use_numbers_are_replayed(reduce):
    """Zeros, ones and counts that a rule makes are the same each time."""
    a, b, index = leaf(4, 3), leaf(2, 3, seed=1), torch.tensor([[0, 1, 2], [1, 1, 3]])
    with at_once() as answers:
        found = [torch.autograd.grad(a.scatter_reduce(0, index, b, reduce).sum(), [a, b]) for _ in range(4)]
    assert answers[-1]
    for grads in found[1:]:
        assert all(torch.equal(x, y) and x.data_ptr() != y.data_ptr() for x, y in zip(grads, found[0], strict=True))


def test_what_differs_is_not_replayed():
    a, b = leaf(3, 4), leaf(3, 4, seed=1)
    frozen = leaf(3, 4).requires_grad_(False)
    calls = {
        "the same": lambda: (a * b).tanh(),
        "one leaf twice": lambda: (a * a).tanh(),
        "the other order": lambda: (b * a).tanh(),
        "an operand without gradient": lambda: (a * frozen).tanh(),
        "a number": lambda: (a * 2.5).tanh(),
        "another number": lambda: (a * 3.5).tanh(),
        "an integer": lambda: (a * 2).tanh(),
        "one node more": lambda: (a * b).exp().tanh(),
        "another op": lambda: (a + b).tanh(),
        "a transposed operand": lambda: (a * b.t().contiguous().t()).tanh(),
        "one node in two places": lambda: (lambda h: (h * h).tanh())(a.exp()),
        "two nodes alike": lambda: (a.exp() * a.exp()).tanh(),
        "along rows": lambda: a.cumsum(0).tanh(),
        "along columns": lambda: a.cumsum(1).tanh(),
    }
    g = torch.linspace(0.5, 1.5, 12).reshape(3, 4)
    wanted = {}
    for name, call in calls.items():
        wanted[name] = torch.autograd.grad(call(), [a, b], g, allow_unused=True)
    with at_once() as answers:
        for _ in range(3):
            for name, call in calls.items():
                a.grad = b.grad = None
                call().backward(g)
                for x, want in zip((a, b), wanted[name], strict=True):
                    assert (x.grad is None) is (want is None), name
                    assert want is None or torch.equal(x.grad, want), name
        assert sum(answers) == 2 * len(calls)  # each graph is known from its second pass on


def test_gradients_that_are_returned_are_those_of_the_targets_in_their_order():
    a, b, c = leaf(3, 4), leaf(3, 4, seed=1), leaf(3, 4, seed=2)
    wanted = {"a": (b + c * 2).detach(), "b": a.detach().clone(), "c": (a * 2).detach()}
    by_name = {"a": a, "b": b, "c": c}
    with at_once() as answers:
        for names in ("abc", "cab", "a", "b", "ba", "aa", "aba", "abc", "ccc"):
            for _ in range(3):
                g = torch.ones(3, 4)
                found = torch.autograd.grad(a * b + a * 2 * c, [by_name[n] for n in names], g)
                assert all(torch.equal(t, wanted[n]) for n, t in zip(names, found, strict=True)), names
                assert len({id(t) for t in found}) == len(set(names))
        assert sum(answers) >= 18 and a.grad is None
        for _ in range(3):
            y = (a * b).sum()
            with pytest.raises(RuntimeError, match="not have been used"):
                torch.autograd.grad(y, [a, c])
            assert torch.autograd.grad(y, [a, c], allow_unused=True)[1] is None
            with pytest.raises(RuntimeError, match="second time"):
                torch.autograd.grad(y, [a])


def test_targets_in_the_midst_of_a_graph_and_hooks_are_not_replayed():
    x, seen = leaf(3, 4), []
    with at_once() as answers:
        for k in range(4):
            h = x.exp()
            hook = x.register_hook(lambda g: seen.append(g) or g * 2) if k > 1 else None
            inner, outer = torch.autograd.grad((h * h).sum(), [h, x])
            assert torch.equal(inner, 2 * h.detach())
            torch.testing.assert_close(outer, 2 * h.detach() ** 2 * (2 if k > 1 else 1))
            (outer,) = torch.autograd.grad((x.exp() ** 2).sum(), [x])
            torch.testing.assert_close(outer, 2 * h.detach() ** 2 * (2 if k > 1 else 1))
            if hook is not None:
                hook.remove()
    assert len(seen) == 4 and answers.count(True) == 1


def test_terms_are_added_in_the_order_of_their_age():
    x = leaf(5)
    with verified() as replays:
        for _ in range(2):
            a, b, c = x * 1e8, x * 3.0, x * -1e8
            (a + b + c).backward(torch.ones(5))
            c, b, a = x * -1e8, x * 3.0, x * 1e8
            (a + b + c).backward(torch.ones(5))
    assert replays


def test_all_checks_are_made():
    x, w = leaf(3, 4), leaf(4, 2, seed=1)

    def loss():
        h = (x @ w).exp()
        return h, h.sum()

    with at_once() as answers:
        for _ in range(3):
            loss()[1].backward()
        assert answers == [False, False, True]  # without and with a gradient to add to
        _, y = loss()
        y.backward()
        with pytest.raises(RuntimeError, match="second time"):
            y.backward()
        h, y = loss()
        with torch.no_grad():
            h.add_(1)
        before = x.grad.clone()
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            y.backward()
        assert torch.equal(x.grad, before)
        _, y = loss()
        y.backward(retain_graph=True)
        y.backward()
        count = x.grad._version
        loss()[1].backward()
        assert answers[-1] and x.grad._version == count + 1
        for k in range(4):
            y = (x * 2).sum()
            if k == 3:
                assert answers[-1]
                x.requires_grad_(False)
                x.mul_(w.sum())
            with pytest.raises(RuntimeError, match="moved into the graph") if k == 3 else nullcontext():
                y.backward()


def test_hooks_are_called():
    x = leaf(3)
    seen = []
    with at_once() as answers:
        for k in range(6):
            y = x.exp()
            if k == 3:
                y.register_hook(seen.append)
            if k == 4:
                handle = x.register_hook(seen.append)
            if k == 5:
                handle.remove()
                y.retain_grad()
            y.sum().backward()
            x.grad = None
        assert len(seen) == 2 and y.grad is not None
        assert answers[:3] == [False, True, True]


def test_modes_and_transforms_go_the_usual_way():
    x = leaf(3)

    def run():
        x.grad = None
        x.exp().sum().backward()
        return x.grad

    def step():
        return run().tolist()

    with at_once() as answers:
        plain = [step() for _ in range(3)][-1]
        replayed = sum(answers)
        with pytest.warns(UserWarning, match="Anomaly"), torch.autograd.detect_anomaly():
            assert step() == plain
        seen = []
        with torch.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: seen.append(1) or t):
            assert step() == plain
        assert seen
        with torch.profiler.profile() as profile:
            assert step() == plain
        assert any("exp" in e.key.lower() for e in profile.key_averages())
        assert torch.compile(run)().tolist() == plain
        x.grad = None
        with pytest.warns(UserWarning, match="reference cycle"):
            x.exp().sum().backward(create_graph=True)
        assert x.grad.requires_grad
        x.grad = None
        assert sum(answers) == replayed
        assert step() == plain and answers[-1]


@structured(x=lambda g, x: g * x.detach().exp() * torch.rand_like(x), samples=(), dtypes="float")
def _noisy(x):
    return x.exp()


@structured(x=lambda g, x: g * float(x.sum()), samples=(), dtypes="float")
def _looked_at(x):
    return x.exp()


@structured(x=lambda g, x: g * TABLE, samples=(), dtypes="float")
def _from_a_table(x):
    return x.exp()


TABLE = torch.linspace(1, 2, 3)


@pytest.mark.parametrize("op", [_noisy, _looked_at, _from_a_table], ids=lambda op: op.name)
def test_rules_that_more_goes_into_than_the_graph_run_each_time(op):
    x = leaf(3)
    found = []
    with at_once() as answers:
        for k in range(4):
            with torch.no_grad():
                x.copy_(torch.full((3,), float(k)))
                TABLE.fill_(k + 1.0)
            x.grad = None
            op(x).sum().backward()
            found.append(tuple(x.grad.tolist()))
    assert not any(answers) and len(set(found)) == 4


def test_what_leaves_keep_is_theirs():
    x = leaf(3)
    with at_once() as answers:
        kept = []
        for _ in range(4):
            x.grad = None
            (x * x).sum().backward()
            kept.append(x.grad)
        assert sum(answers) == 3
    values = [g.clone() for g in kept]
    for k, g in enumerate(kept):
        g.fill_(k)
    assert [g.tolist() for g in kept] == [[float(k)] * 3 for k in range(4)]
    assert all(torch.equal(v, values[0]) for v in values)


def test_several_threads_have_the_same_replay():
    weights = leaf(4, 4)
    wrong = []

    def work(seed):
        x = leaf(4, 4, seed=seed)
        for _ in range(200):
            x.grad = None
            ((x @ weights.detach()).tanh().var(1)).sum().backward()
            if not torch.equal(x.grad, wanted[seed]):
                wrong.append(seed)

    wanted = {}
    for seed in (1, 2):
        x = leaf(4, 4, seed=seed)
        (wanted[seed],) = torch.autograd.grad(((x @ weights.detach()).tanh().var(1)).sum(), x)
    threads = [threading.Thread(target=work, args=(seed,)) for seed in (1, 2)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


def test_tensors_in_the_making_are_passed_over():
    x, w = leaf(4, 4), leaf(4, 4, seed=1)
    half_made = object.__new__(torch.Tensor)  # what another thread may have got to just then
    with at_once():
        for _ in range(3):
            x.grad = None
            (x @ w).tanh().var(1).sum().backward()
    assert x.grad is not None and not hasattr(half_made, "_data")


def test_passes_that_never_recur_are_not_compared_with_what_is_kept(monkeypatch):
    kept = []
    run = recurring.Root.run
    monkeypatch.setattr(recurring.Root, "run", lambda self, *given: kept.append(len(self.replays)) or run(self, *given))
    x = torch.randn(5, 7, requires_grad=True)
    for i in range(200 * N):
        F.elu(x, alpha=i + 0.5).sum().backward()
    assert any(kept)
    assert sum(kept) < len(kept) / 10


def test_passes_with_dropout_recur_with_the_draws_of_each(monkeypatch):
    def gradients():
        torch.manual_seed(3)
        x, w, found = leaf(5, 7), leaf(7, 4, seed=1), []
        for step in range(6 * N):
            h = F.dropout(F.dropout(x, 0.3) @ w, 0.5)
            y = F.alpha_dropout(h, 0.4) + F.dropout1d(h, 0.2) + F.feature_alpha_dropout(h, 0.1)
            y.square().sum().backward()
            found.append(x.grad.tolist())
            if step % 3 == 0:
                x.grad = w.grad = None
        return found

    recurring.forget()
    used = []
    run = recurring.Root.run
    monkeypatch.setattr(recurring.Root, "run", lambda self, *given: used.append(run(self, *given)) or used[-1])
    with_replays = gradients()
    assert len(used) - used.count(None) > 2 * N
    monkeypatch.setattr(recurring, "FIRST", 0)
    assert with_replays == gradients()


def test_many_programs_behind_one_line_are_each_replayed(monkeypatch):
    functions = [torch.exp, torch.tanh, torch.sin, torch.cos, torch.sigmoid, torch.erf, lambda x: x * 2, lambda x: x.exp().tanh()]
    leaves = [leaf(3, 4), leaf(4, 3), leaf(12)]
    recurring.forget()
    used = []
    run = recurring.Root.run
    monkeypatch.setattr(recurring.Root, "run", lambda self, *given: used.append(run(self, *given)) or used[-1])
    for f in functions:
        for x in leaves:
            for _ in range(4 * N):
                used.clear()
                x.grad = None
                f(x).reshape(12).sum().backward()
            assert used == [[]], (f, x.shape)
            g = x.grad
            monkeypatch.setattr(recurring, "FIRST", 0)
            (expected,) = torch.autograd.grad(f(x).reshape(12).sum(), x)
            monkeypatch.undo()
            monkeypatch.setattr(recurring.Root, "run", lambda self, *given: used.append(run(self, *given)) or used[-1])
            assert torch.equal(g, expected)


def test_ever_new_graphs_do_not_grow_memory():
    def step(n):
        x = torch.ones(n, requires_grad=True)
        (x * x.exp()).sum().backward()

    with at_once():
        for n in range(1, 40):
            step(n)
    for _ in range(2 * N):
        step(3)
    gc.collect()
    gc.disable()
    try:
        before = len(gc.get_objects())
        for _ in range(200):
            step(3)
        assert len(gc.get_objects()) <= before + 5
    finally:
        gc.enable()
    for n in range(1, recurring.KEPT + 500):
        step(n)
    assert len(recurring._roots) <= recurring.KEPT


def test_leaves_that_died_are_not_kept():
    alive = []

    class Big(torch.nn.Parameter):
        def __del__(self):
            alive.remove(id(self))

    with at_once():
        for _ in range(3):
            p = Big(torch.ones(3))
            alive.append(id(p))
            (p * 2.0).sum().backward()
            del p
            gc.collect()
            assert not alive


@pytest.mark.parametrize("after", [0, 1])
def test_the_environment_says_after_how_many_passes(after):
    text = (
        "import autograd_nb as t\n"
        "from autograd_nb.graph import recurring\n"
        "x = t.ones(3, requires_grad=True)\n"
        "for _ in range(9):\n    x.grad = None\n    x.exp().sum().backward()\n"
        "print(sum(len(r.replays) for r in recurring._roots.values()))\n"
    )
    found = subprocess.run([sys.executable, "-c", text], env={**os.environ, "AUTOGRAD_NB_RECURRING": str(after)}, capture_output=True, text=True)
    assert found.stdout.strip() == str(after), found.stderr


def test_notes_of_large_passes_keep_little():
    """Where a pass needs more memory than notes may keep, they keep none of it, and such passes are left alone."""
    x = torch.ones(2000, 500, requires_grad=True)
    seen = []

    class Watched(noted.Notes):
        def __call__(self, call, args):
            super().__call__(call, args)
            seen.append((sum(a.nbytes for a in self.own.values()), self.why))

    before, recurring.Notes = recurring.Notes, Watched
    try:
        for _ in range(2 * recurring.FIRST):
            y = x
            for _ in range(6):
                y = (y * y).cumsum(1).flip(1)
            y.sum().backward()
            x.grad = None
    finally:
        recurring.Notes = before
    assert seen
    assert max(kept for kept, _ in seen) <= noted.NOTED
    assert seen[-1][1] == "much memory in between"
