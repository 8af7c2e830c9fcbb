"""Words of memory that tell of changes: every change that matters is noticed, whichever way Python makes it."""

from __future__ import annotations

import copy
import threading
from collections import OrderedDict, defaultdict, deque
from types import MappingProxyType

import pytest

import autograd_nb as torch
import autograd_nb.nn.functional as F
from autograd_nb import Tensor, nn
from autograd_nb.compiler.guards import interpreter, memory_words
from autograd_nb.compiler.guards.guard import build_guard
from autograd_nb.compiler.guards.reach import Reach
from autograd_nb.compiler.guards.watch import Watch

SCALE = 2.0


def test_this_interpreter_s_objects_are_known():
    """On every Python that is supported: elsewhere a guard compares each value at each call, which takes ten times as long."""
    assert interpreter.known()


def watched(of, part="entries", values=()):
    if memory_words.marked(of) and part == "entries":
        w = Watch([of], [])
        w.renew(w.seen())
        return w
    return Watch([], memory_words.records(of, part, list(values)))


@pytest.mark.parametrize(
    "change",
    [
        lambda d: d.update(a=5), lambda d: d.pop("a"), lambda d: d.clear(), lambda d: d.setdefault("c", 1), lambda d: d.popitem(),
        lambda d: d.__setitem__("a", "new"), lambda d: d.__delitem__("b"), lambda d: d.__ior__({"c": 3}),
        lambda d: (d.pop("a"), d.update(a=1)),
    ],
)  # fmt: skip
@pytest.mark.parametrize("kind", [dict, lambda d: defaultdict(int, d)])
def test_every_change_of_a_dict_is_seen(change, kind):
    d = kind({"a": 1, "b": 2})
    w = watched(d)
    assert w.same()
    assert len(d) == 2 and d.get("a") == 1 and list(d.items())  # reading is no change
    assert w.same()
    change(d)
    assert not w.same()
    w.renew(w.seen())
    assert w.same()


def test_attributes_of_objects_and_classes():
    class Thing:
        size = 1

    thing = Thing()
    thing.a = 1
    w = watched(thing.__dict__)
    for k in range(100):
        thing.a = k + 10
        assert not w.same()
        w.renew(w.seen())
        assert w.same()
    reach = Reach()
    reach.function(lambda: thing.size)
    guard = build_guard(reach)
    assert guard() < 0 and guard.same()
    Thing.size = 2
    assert not guard.same() and guard() >= 0
    Thing.size = 1
    assert guard() < 0 and guard.same()
    thing.size = 3  # before the class's
    assert guard() >= 0


@pytest.mark.parametrize("slots", [{}, {"__slots__": ("__dict__",)}], ids=["plain", "slots"])
def test_an_attribute_in_the_memory_of_one_that_has_gone(slots):
    """A new number often stands where the one before it stood, so an address that is the same tells nothing of it."""
    thing = type("Thing", (), slots)()
    thing.a = float("2.5")
    reach = Reach()
    reach.function(lambda: thing.a)
    guard = build_guard(reach)
    assert guard() < 0 and guard.same()
    for k in range(50):
        thing.a = float("2.5")  # as good as the one before
        assert guard() < 0 and guard.same()
        thing.a = None
        thing.a = float(k)
        assert not guard.same() and guard() >= 0
        thing.a = None
    del thing.a
    assert not guard.same() and guard() >= 0
    thing.a = float("2.5")
    assert guard() < 0 and guard.same()
    vars(thing).clear()
    assert not guard.same() and guard() >= 0


def test_an_object_that_goes_before_its_attributes():
    class Thing:
        pass

    thing = Thing()
    thing.a = 1
    attributes = vars(thing)
    w = watched(attributes)
    assert w.same()
    del thing  # they move out of its memory
    w.renew(w.seen())
    assert w.same()
    attributes["a"] = 2
    assert not w.same()
    w.renew(w.seen())
    assert w.same()


def test_lists_empty_containers_cells_and_slots():
    a, b = object(), object()
    items = [a, b]
    w = watched(items, values=items)
    for change in (lambda: items.append(a), lambda: items.reverse(), lambda: items.pop(), lambda: items.__setitem__(0, b)):
        assert w.same()
        change()
        assert not w.same()
        items[:] = [a, b]
    items.extend([a] * 1000)  # it moves
    assert not w.same()
    del items[2:]
    assert w.same()
    for empty, change in (
        ([], lambda c: c.append(1)), (set(), lambda c: c.add(1)), (deque(), lambda c: c.append(1)),
        (OrderedDict(), lambda c: c.update(a=1)), (OrderedDict(), lambda c: c.setdefault("a")),
    ):  # fmt: skip
        w = watched(empty)
        assert w.same()
        change(empty)
        assert not w.same()
    x = torch.ones(2, requires_grad=True)
    for part, value in (("_grad", torch.ones(2)), ("_rg", False), ("_data", torch.ones(2)._data)):
        w = watched(x, part, [getattr(x, part)])
        assert w.same()
        setattr(x, part, value)
        assert not w.same()

    def function():
        return a

    (cell,) = function.__closure__
    w = watched(cell, "cell", [a])
    assert w.same()
    a = b
    assert not w.same()


def test_what_words_do_not_tell_is_compared():
    assert memory_words.records({1, 2}, "entries", []) is None  # (not empty)
    assert memory_words.records(OrderedDict(a=1), "entries", [1]) is None
    assert memory_words.records(deque([1]), "entries", [1]) is None

    class Mine(dict):
        pass

    assert not memory_words.marked(Mine()) and memory_words.records(Mine(), "entries", []) is None
    order = OrderedDict(a=1.0, b=2.0)
    numbers = {1, 2}
    step = torch.compile(lambda x: x * next(iter(order.values())) + sum(numbers))
    x = torch.ones(2)
    for _ in range(3):
        assert step(x).tolist() == [4.0, 4.0]
    order.move_to_end("a")
    assert step(x).tolist() == [5.0, 5.0]
    numbers.add(3)
    assert step(x).tolist() == [8.0, 8.0]


def pair(optimizer):
    torch.manual_seed(0)
    mine = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2))
    theirs = copy.deepcopy(mine)

    def training(model):
        o = optimizer(model.parameters())

        def step(x, y):
            o.zero_grad()
            loss = F.mse_loss(model(x), y) * SCALE
            loss.backward()
            o.step()
            return loss

        return step, o

    (a, o), (b, p) = training(mine), training(theirs)
    return mine, theirs, torch.compile(a, fullgraph=True), b, o, p


def run(mine, theirs, compiled, eager, times=3):
    for k in range(times):
        x, y = torch.full((5, 3), 0.1 * k), torch.ones(5, 2)
        torch.testing.assert_close(compiled(x, y), eager(x, y), rtol=1e-5, atol=1e-6)
        for p, q in zip(mine.parameters(), theirs.parameters(), strict=True):
            torch.testing.assert_close(p, q, rtol=1e-5, atol=1e-6)
            torch.testing.assert_close(p.grad, q.grad, rtol=1e-5, atol=1e-6)


def test_rates_in_every_form():
    """Numbers that are read anew are read again once they have changed, in place too."""
    mine, theirs, compiled, eager, o, p = pair(lambda ps: torch.optim.Adam(ps, lr=0.1))
    run(mine, theirs, compiled, eager)
    programs = compiled.programs[0]
    for rate in (0.2, 0.2, 0.05, 1):
        for g in (o.param_groups[0], p.param_groups[0]):
            g["lr"] = rate
        run(mine, theirs, compiled, eager, 2)
    assert compiled.programs[0] is programs
    for betas in ((0.5, 0.6), [0.7, 0.8]):
        for g in (o.param_groups[0], p.param_groups[0]):
            g["betas"] = betas
        run(mine, theirs, compiled, eager, 2)
    for g in (o.param_groups[0], p.param_groups[0]):
        g["betas"][0] = 0.3
    run(mine, theirs, compiled, eager, 2)
    for g in (o.param_groups[0], p.param_groups[0]):
        g["lr"] = torch.tensor(0.1)
    run(mine, theirs, compiled, eager, 2)
    for g in (o.param_groups[0], p.param_groups[0]):
        g["lr"].fill_(0.01)
    run(mine, theirs, compiled, eager, 2)


def test_what_lies_around_a_step():
    """Changes between calls: gradients, parameters, hooks, flags, globals, the default dtype."""
    global SCALE
    mine, theirs, compiled, eager, o, p = pair(lambda ps: torch.optim.SGD(ps, lr=0.1, momentum=0.9))

    def go():
        run(mine, theirs, compiled, eager)

    go()
    kept = [q.grad for q in mine.parameters()]  # somebody has the gradients now
    values = [g.clone() for g in kept]
    go()
    assert all(bool((g == v).all()) for g, v in zip(kept, values, strict=True))
    del kept
    go()
    for m in (mine, theirs):
        m[0].weight.grad = None
        m[0].bias.grad = torch.ones(4)
        m[2].bias.grad.fill_(7.0)
        m[2].weight.grad.requires_grad_()
    go()
    assert not mine[2].weight.grad.requires_grad
    for m in (mine, theirs):
        m[2].weight.data = torch.full((2, 4), 0.5)
    go()
    for m in (mine, theirs):
        m[1] = nn.ReLU()
    go()
    for m in (mine, theirs):
        m[0].bias.requires_grad_(False)
    go()
    for m in (mine, theirs):
        m[0].bias.requires_grad_(True)
        handle = m[0].register_forward_hook(lambda module, args, out: out * 2)
    go()
    handle.remove()
    eager(torch.ones(5, 3), torch.ones(5, 2))
    mine.load_state_dict(theirs.state_dict())
    compiled.forget()
    mine[0]._forward_hooks.clear()
    p.load_state_dict(copy.deepcopy(o.state_dict()))
    go()
    for m in (mine, theirs):
        m.eval()
        m[0].extra = 1
    go()
    SCALE = 3.0
    go()
    SCALE = 2.0
    go()
    halved = torch.compile(lambda x: x * torch.tensor(0.5))
    for dtype in (torch.float32, torch.float64, torch.float32):
        torch.set_default_dtype(dtype)
        try:
            assert halved(torch.ones(2, dtype=torch.float32)).dtype is torch.float32
            assert halved(torch.ones(2, dtype=torch.int64)).dtype is dtype
        finally:
            torch.set_default_dtype(torch.float32)
    for o_, m in ((o, mine), (p, theirs)):
        o_.param_groups[0]["params"].pop()
        assert len(list(m.parameters())) == 4
    go()


def test_results_that_are_kept_are_not_written_over():
    w = torch.ones(3, requires_grad=True)

    def step(x):
        return (w * x).sum().detach()

    compiled = torch.compile(step)
    kept = [compiled(torch.full((3,), float(k))) for k in range(10)]
    assert [k.item() for k in kept] == [3.0 * k for k in range(10)]
    views = []
    for k in range(10):
        result = compiled(torch.full((3,), float(k)))
        views.append((result.view(1), result.numpy(), result.detach())[k % 3])
        del result
    assert [float(v) for v in views] == [3.0 * k for k in range(10)]


def test_a_rate_that_another_thread_changes():
    """One step, several threads, the rate changing between calls: each call has the rate that its caller has set."""
    lock = threading.Lock()
    p = nn.Parameter(torch.zeros(1))
    o = torch.optim.SGD([p], lr=1.0)

    def step():
        o.zero_grad()
        (p * 1.0).sum().backward()
        o.step()

    compiled = torch.compile(step, fullgraph=True)
    for _ in range(3):
        compiled()
    wrong = []

    def work(seed):
        for k in range(200):
            with lock:
                o.param_groups[0]["lr"] = rate = float((seed * 7 + k) % 5)
                before = p.item()
                compiled()
                if p.item() != before - rate:
                    wrong.append((seed, k))

    threads = [threading.Thread(target=work, args=(k,)) for k in range(3)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


@pytest.mark.parametrize("keep", [Tensor.numpy, lambda g: g.data, lambda g: memoryview(g.numpy())])
def test_memory_of_a_gradient_that_somebody_has_kept_is_not_written_again(keep):
    p = nn.Parameter(torch.ones(3))

    @torch.compile(fullgraph=True)
    def step(x):
        p.grad = None
        (p * x).sum().backward()

    for k in range(4):
        step(torch.full((3,), float(k)))
    kept = keep(p.grad)
    for _ in range(3):
        step(torch.full((3,), 7.0))
    assert torch.as_tensor(kept).tolist() == [3.0, 3.0, 3.0]


def test_defaults_of_a_function_and_what_lies_behind_a_proxy():
    behind = {"scale": 2.0}
    proxy = MappingProxyType(behind)

    def helper(x, add=1.0):
        return x * proxy["scale"] + add

    compiled = torch.compile(lambda x: helper(x), fullgraph=True)
    x = torch.ones(2)
    assert compiled(x).tolist() == compiled(x).tolist() == [3.0, 3.0]
    helper.__defaults__ = (5.0,)
    assert compiled(x).tolist() == [7.0, 7.0]
    behind["scale"] = 4.0
    assert compiled(x).tolist() == [9.0, 9.0]
