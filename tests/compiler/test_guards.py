"""What a compiled function takes for granted: every change of it is noticed, and what cannot be watched runs eagerly."""

from __future__ import annotations

import collections
import copy
import dataclasses
import functools
import gc
import io
import logging
import math
import random
import sys
import time
import types
import weakref

import numpy as np
import pytest

import autograd_nb as torch
from autograd_nb import nn

from .common import eq, same, training

pytestmark = pytest.mark.filterwarnings("ignore")


@dataclasses.dataclass
class Batch:
    x: object
    k: float = 1.0


def shifted(x):
    return x * 1.0


def test_int_to_float():

    class T:
        k = 2

    t = T()
    c = torch.compile(lambda x: x * t.k)
    x = torch.arange(3)
    c(x)
    c(x)
    t.k = 2.0
    assert c(x).dtype is torch.float32
    t.k = True
    assert c(x).dtype is torch.int64


def test_negzero():
    c = torch.compile(lambda x, k: x * 0 + torch.atan2(torch.zeros(1), torch.full((1,), k)))
    x = torch.ones(1)
    c(x, 0.0)
    c(x, 0.0)
    eq(c(x, -0.0), torch.full((1,), math.pi))


def test_dict_replaced_equal():

    class T:
        pass

    t = T()
    t.d = {"a": 1.0}
    t.w = [torch.ones(1)]
    c = torch.compile(lambda x: x * t.d["a"] * t.w[0])
    x = torch.ones(1)
    c(x)
    c(x)
    t.d = {"a": 1.0}
    c(x)
    t.d["a"] = 3.0
    assert c(x) == 3
    t.w[0] = torch.ones(1)
    c(x)
    t.w[0].fill_(5)
    assert c(x) == 15
    t.w = [torch.ones(1)]
    c(x)
    t.w[0].fill_(7)
    assert c(x) == 21


def test_default_dtype():
    c = torch.compile(lambda x: x + torch.ones(3))
    x = torch.ones(3)
    c(x)
    c(x)
    torch.set_default_dtype(torch.float64)
    try:
        assert c(x).dtype is torch.float64
    finally:
        torch.set_default_dtype(torch.float32)


def test_from_time():
    c = torch.compile(lambda x: x + time.perf_counter())
    x = torch.zeros(1, dtype=torch.float64)
    a = c(x)
    b = c(x)
    d = c(x)
    assert a != b and b != d


def test_from_random():
    r = random.Random(0)
    g = np.random.default_rng(0)
    for f in (lambda x: x + random.random(), lambda x: x + r.random(), lambda x: x + r.uniform(0, 1), lambda x: x + g.random()):
        c = torch.compile(f)
        x = torch.zeros(1, dtype=torch.float64)
        a = c(x)
        b = c(x)
        d = c(x)
        assert a != b and b != d


def test_ndarray_closure():
    a = np.array([1.0, 2.0])
    c = torch.compile(lambda x: x * float(a[0]))
    x = torch.ones(1)
    c(x)
    c(x)
    a[0] = 5
    assert c(x) == 5


def test_set_changed():
    s = {1, 2}
    c = torch.compile(lambda x: x * sum(s))
    x = torch.ones(1)
    c(x)
    c(x)
    s.remove(1)
    s.add(5)
    assert c(x) == 7


def test_dict_order():
    d = {"a": torch.ones(1), "b": torch.full((1,), 2.0)}

    def f(x):
        for v in d.values():
            x = x * 2 + v
        return x

    c = torch.compile(f)
    x = torch.ones(1)
    c(x)
    c(x)
    d["a"] = d.pop("a")
    eq(c(x), f(x))


def test_dataclass_arg():
    c = torch.compile(lambda b: b.x * b.k)
    for i in range(5):
        assert c(Batch(torch.full((1,), float(i)), 2.0)) == 2 * i
    assert c(Batch(torch.ones(1), 3.0)) == 3
    c = torch.compile(lambda bs: bs[0].x * bs[0].k)
    for i in range(5):
        assert c([Batch(torch.full((1,), float(i)), 2.0)]) == 2 * i
    b = Batch(torch.ones(1), 1.0)
    c([b])
    c([b])
    b.k = 4.0
    assert c([b]) == 4


def scaled_and_moved(a, b):
    """Changes both arguments, which may be parts of one array."""
    a.mul_(2)
    b.add_(1)
    return a + b


def agrees(compiled, base, *views):
    """The compiled function does to views of ``base`` what it does to those of a copy when it is eager."""
    copy = base.clone()
    eq(compiled(*[view(base) for view in views]), scaled_and_moved(*[view(copy) for view in views]))
    eq(base, copy)


OVERLAPPING = (lambda t: t[:3], lambda t: t[1:])
SAME = (lambda t: t, lambda t: t)


def test_arguments_that_are_views_of_one_array():
    c = torch.compile(scaled_and_moved)
    for _ in range(4):
        agrees(c, torch.arange(4.0), *OVERLAPPING)
    for _ in range(3):
        agrees(c, torch.arange(6.0), lambda t: t[:3], lambda t: t[3:])
    a, b = torch.ones(3), torch.ones(3)
    eq(c(a, b), torch.full((3,), 4.0))
    assert a._version == 1


def test_arguments_that_share_memory_after_calls_with_ones_that_did_not():
    c = torch.compile(scaled_and_moved)
    for _ in range(3):
        c(torch.ones(3), torch.ones(3))
    agrees(c, torch.arange(4.0), *OVERLAPPING)
    array = np.arange(4, dtype=np.float32)
    expected = torch.arange(4.0)
    eq(c(torch.from_numpy(array)[:3], torch.from_numpy(array)[1:]), scaled_and_moved(expected[:3], expected[1:]))
    eq(torch.from_numpy(array), expected)
    for _ in range(3):
        x = torch.arange(3.0)
        agrees(c, x, *SAME)
        assert x._version == 2
    agrees(c, torch.arange(3.0), lambda t: t, lambda t: t.data)


def test_arg_alias_param():
    w = torch.ones(4)

    def f(x):
        w.add_(1)
        return x * 2 + w[:3]

    c = torch.compile(f)
    for i in range(3):
        c(torch.ones(3))
    ref = w.clone()
    for i in range(3):
        r = c(w[1:])
        ref.add_(1)
        eq(r, ref[1:] * 2 + ref[:3])
        eq(w, ref)
    for i in range(3):
        r = c(w[:3])
        ref.add_(1)
        eq(r, ref[:3] * 2 + ref[:3])
        eq(w, ref)


def test_hooks():
    seen = []
    w = torch.ones(3, requires_grad=True)
    w.register_hook(lambda g: seen.append(1) or g * 2)

    def step(x):
        w.grad = None
        (w * x).sum().backward()

    c = torch.compile(step)
    for i in range(6):
        c(torch.ones(3))
    assert len(seen) == 6, len(seen)
    assert w.grad[0] == 2
    w = torch.ones(3, requires_grad=True)

    def step2(x):
        w.grad = None
        (w * x).sum().backward()

    c2 = torch.compile(step2)
    for i in range(3):
        c2(torch.ones(3))
    h = w.register_hook(lambda g: g * 3)
    for i in range(3):
        c2(torch.ones(3))
        assert w.grad[0] == 3
    h.remove()
    c2(torch.ones(3))
    assert w.grad[0] == 1

    def five_times(p):
        p.grad.mul_(5)

    w.register_post_accumulate_grad_hook(five_times)
    c2(torch.ones(3))
    assert w.grad[0] == 5
    c2(torch.ones(3))
    assert w.grad[0] == 5


def test_module_hooks():
    m = nn.Linear(2, 2)
    seen = []
    c = torch.compile(lambda x: m(x).detach())
    x = torch.ones(1, 2)
    c(x)
    c(x)
    h = m.register_forward_hook(lambda m, i, o: seen.append(1))
    for i in range(6):
        c(x)
    assert len(seen) == 6
    h.remove()
    m.register_forward_hook(lambda m, i, o: o * 2)
    eq(c(x), m(x))
    eq(c(x), m(x))
    b = []
    m.register_full_backward_hook(lambda m, gi, go: b.append(1))

    def step(x):
        m.zero_grad()
        m(x).sum().backward()

    c = torch.compile(step)
    for i in range(6):
        c(x)
    assert len(b) == 6, len(b)


def test_guards():
    m = nn.Sequential(nn.Linear(2, 2), nn.ReLU(), nn.Linear(2, 2))
    f = lambda x: m(x)
    c = torch.compile(f)
    x = torch.randn(3, 2)

    def ok():
        eq(c(x), f(x))
        eq(c(x), f(x))
        a = c(x)
        assert a.requires_grad == f(x).requires_grad

    ok()
    m[1] = nn.Tanh()
    ok()
    m[0].weight.requires_grad_(False)
    ok()
    g = torch.autograd.grad(c(x).sum(), m[0].bias)
    eq(g, torch.autograd.grad(f(x).sum(), m[0].bias))
    for p in m.parameters():
        p.requires_grad_(False)
    ok()
    m.requires_grad_(True)
    ok()
    s = copy.deepcopy(m.state_dict())
    s = {k: v * 2 for k, v in s.items()}
    m.load_state_dict(s)
    ok()
    m.load_state_dict({k: (v * 3).clone() for k, v in s.items()}, assign=True)
    ok()
    m.append(nn.Linear(2, 2))
    ok()
    m.register_buffer("b", torch.ones(1))
    ok()
    del m[0]
    ok()
    with torch.inference_mode():
        eq(c(x), f(x))
        assert c(x).is_inference()
    with torch.no_grad():
        assert not c(x).requires_grad
    m.double()
    x = x.double()
    ok()
    m.float()
    x = x.float()
    ok()
    m.eval()
    ok()
    m[0].forward = lambda x: x * 7
    ok()
    nn.utils.parametrizations.weight_norm(m[1]) if isinstance(m[1], nn.Linear) else None
    ok()
    torch.nn.init.zeros_(m[1].weight) if hasattr(m[1], "weight") and (not hasattr(m[1], "parametrizations")) else None
    ok()


def test_opt_load():

    def mk():
        torch.manual_seed(0)
        m = nn.Linear(3, 3)
        o = torch.optim.Adam(m.parameters(), 0.1)
        return (m, o, training(m, o))

    m, o, s = mk()
    m2, o2, s2 = mk()
    c = torch.compile(s)

    def go(k=3):
        for i in range(k):
            x, y = (torch.randn(2, 3), torch.randn(2, 3))
            eq(c(x, y), s2(x, y))
        same(m, m2)

    go()
    sd = copy.deepcopy(o.state_dict())
    go()
    o.load_state_dict(sd)
    o2.load_state_dict(copy.deepcopy(sd))
    go()
    e, e2 = (nn.Parameter(torch.ones(2)), nn.Parameter(torch.ones(2)))
    e.grad = torch.ones(2)
    e2.grad = torch.ones(2)
    o.add_param_group({"params": [e], "lr": 0.5})
    o2.add_param_group({"params": [e2], "lr": 0.5})
    go()
    eq(e, e2)
    for g in (*o.param_groups, *o2.param_groups):
        g["betas"] = (0.5, 0.6)
        g["weight_decay"] = 0.1
        g["eps"] = 0.001
    go()
    for g in (*o.param_groups, *o2.param_groups):
        g["maximize"] = True
    go()
    o.state.clear()
    o2.state.clear()
    go()
    for g in (*o.param_groups, *o2.param_groups):
        g["lr"] = torch.tensor(0.01)
    go()
    for g in (*o.param_groups, *o2.param_groups):
        g["lr"] = torch.tensor(0.3)
    go()
    o.param_groups[0]["lr"].fill_(0.05)
    o2.param_groups[0]["lr"].fill_(0.05)
    go()


def test_redefined(monkeypatch):
    c = torch.compile(lambda x: shifted(x))
    x = torch.ones(2)
    c(x)
    c(x)
    monkeypatch.setitem(globals(), "shifted", lambda x: x * 10)
    assert c(x)[0] == 10
    monkeypatch.undo()
    assert c(x)[0] == 1

    class M(nn.Module):
        def forward(s, x):
            return x + 1

    m = M()
    c = torch.compile(lambda x: m(x))
    c(x)
    c(x)
    M.forward = lambda s, x: x + 5
    assert c(x)[0] == 6
    xs = [torch.ones(2)]
    c = torch.compile(lambda x: sum(xs) + x)
    c(x)
    c(x)
    xs.append(torch.ones(2))
    assert c(x)[0] == 3
    cfg = {"a": 1}
    c = torch.compile(lambda x: x * cfg["a"] if "b" not in cfg else x * 100)
    c(x)
    c(x)
    cfg["a"] = 2
    assert c(x)[0] == 2
    cfg["b"] = 1
    assert c(x)[0] == 100

    class S:
        __slots__ = ("k",)

    s = S()
    s.k = 1.0
    c = torch.compile(lambda x: x * s.k)
    c(x)
    c(x)
    s.k = 2.0
    assert c(x)[0] == 2

    class P:
        _v = 1.0

        @property
        def v(self):
            return self._v

    p = P()
    c = torch.compile(lambda x: x * p.v)
    c(x)
    c(x)
    P._v = 3.0
    assert c(x)[0] == 3
    p._v = 4.0
    assert c(x)[0] == 4
    fn = functools.partial(lambda x, k: x * k[0], k=[2.0])
    c = torch.compile(fn)
    c(x)
    c(x)
    fn.keywords["k"][0] = 5.0
    assert c(x)[0] == 5
    d = collections.deque([1.0])
    c = torch.compile(lambda x: x * d[0])
    c(x)
    c(x)
    d[0] = 2.0
    assert c(x)[0] == 2
    t = torch.ones(2)
    c = torch.compile(lambda x: x * t)
    c(x)
    c(x)
    t.data = torch.full((2,), 3.0)
    assert c(x)[0] == 3
    t.mul_(2)
    assert c(x)[0] == 6
    t.resize_(1)
    eq(c(x), x * t)


def test_data_swap():
    w = torch.ones(3, requires_grad=True)
    c = torch.compile(lambda x: x * w)
    x = torch.ones(3)
    c(x)
    w.data = torch.full((3,), 2.0)
    y = c(x)
    y = c(x)
    w.data = torch.full((3,), 3.0)
    (g,) = torch.autograd.grad(y.sum(), w)
    eq(g, x)
    w.grad = torch.ones(3)
    c(x).sum().backward()
    assert w.grad[0] == 2


def test_logging_etc(tmp_path):
    log = tmp_path / "log.txt"
    lg = logging.getLogger("cmp")
    st = io.StringIO()
    h = logging.StreamHandler(st)
    lg.addHandler(h)
    lg.setLevel(logging.INFO)
    lg.propagate = False

    def f(x):
        lg.info("hi")
        return x * 2

    c = torch.compile(f)
    [c(torch.ones(1)) for _ in range(5)]
    assert st.getvalue().count("hi") == 5, st.getvalue()

    def g(x):
        with open(log, "a") as fh:
            fh.write("x")
        return x * 2

    log.write_text("")
    c2 = torch.compile(g)
    [c2(torch.ones(1)) for _ in range(5)]
    assert log.read_text() == "xxxxx"


#: views that a function reaches, and what happens to their base between two calls
VIEWS = {
    "plain": lambda b: b.view(-1),
    "not recorded": lambda b: torch.no_grad()(lambda: b.view(-1))(),
    "one of several": lambda b: b.unbind(0)[0],
    "detached": lambda b: b.detach().view(-1),
}
CHANGES = {
    "requires grad": lambda b: b.requires_grad_(),
    "requires none": lambda b: b.requires_grad_(False),
    "gets a history": lambda b: b.mul_(torch.ones(2, 2, requires_grad=True)),
    "changed unrecorded": lambda b: torch.no_grad()(lambda: b.add_(1))(),
    "changed behind it": lambda b: b.detach().add_(1),
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("view", VIEWS)
def test_views_whose_base_changes(view, change):
    def calls(base, use, compiled):
        b = torch.ones(2, 2, requires_grad=base == "leaf")
        v = VIEWS[view](b)
        function = torch.compile(use(v)) if compiled else use(v)
        found = []
        for k in range(4):
            try:
                if k == 2:
                    CHANGES[change](b)
                y = function(torch.ones(2))
                found.append((y.requires_grad, y.is_leaf, y.tolist()))
                if y.requires_grad:
                    y.sum().backward()
                found.append(None if not b.is_leaf or b.grad is None else b.grad.tolist())
            except RuntimeError as error:
                found.append(str(error).splitlines()[0][:60])
        return found

    for base in ("leaf", "plain"):
        for use in (lambda v: lambda x: v.view(-1)[:2] * x, lambda v: lambda x: x * v.requires_grad, lambda v: lambda x: v.mul_(2)):
            assert calls(base, use, True) == calls(base, use, False), base


def python_calls(function):
    """How many Python functions a call runs, itself included."""
    count = 0

    def watch(frame, event, argument):
        nonlocal count
        count += event == "call"

    before = sys.getprofile()
    sys.setprofile(watch)
    try:
        function()
    finally:
        sys.setprofile(before)
    return count


def test_a_dict_that_changes_is_looked_into_alone():
    """Of two dicts and an object: what was there before, new keys, equal values of another type, both at once, and back."""
    d, e, o = {"scale": 2.0, "name": "x"}, {"power": 2}, types.SimpleNamespace(shift=1)
    x = torch.tensor([1.0, 2.0])

    def function(x):
        return (x * d["scale"]) ** e["power"] + o.shift + len(d["name"])

    compiled = torch.compile(function)
    changes = [
        lambda: None, lambda: None, lambda: d.update(unread=1), lambda: d.update(scale=3.0), lambda: d.update(unread=2), lambda: e.update(power=3),
        lambda: (d.update(scale=0.5), e.update(power=1)), lambda: setattr(o, "shift", 2), lambda: d.update(name="xy"), lambda: d.update(scale=2),
        lambda: (d.update(unread=3), e.update(unread=1), setattr(o, "unread", 1)), lambda: e.update(power=2), lambda: d.update(name="ab"),
    ]  # fmt: skip
    for change in changes:
        change()
        assert torch.equal(compiled(x), function(x))
        assert torch.equal(compiled(x), function(x))


def test_what_a_compiled_call_costs_in_python():
    """A call that comes as the last one did runs one function that was written for it; a new learning rate does not mean to look at everything."""
    a, b = torch.ones(3), torch.ones(3)
    add = torch.compile(lambda a, b: a + b)
    for _ in range(5):
        add(a, b)
    assert min(python_calls(lambda: add(a, b)) for _ in range(5)) <= 9  # one of which is asked where inference mode was ever used
    model = torch.nn.Sequential(*[torch.nn.Linear(3, 3) for _ in range(8)])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    @torch.compile
    def step():
        optimizer.zero_grad()
        loss = model(a).sum()
        loss.backward()
        optimizer.step()
        return loss

    for k in range(5):
        optimizer.param_groups[0]["lr"] = 0.1 / (k + 1)
        step()
    few = python_calls(step)
    optimizer.param_groups[0]["lr"] = 0.2
    assert few <= 10 and python_calls(step) <= few + 20
    assert len(step.programs) == 1


@pytest.mark.parametrize("slots", [("scale", "__hidden"), "scale"])
def test_slots_that_are_empty(slots):
    made = type("Slotted", (), {"__slots__": slots})()

    @torch.compile
    def scaled(x):
        return x * (made.scale if hasattr(made, "scale") else 5.0)

    def found():
        return [scaled(torch.ones(1)).item() for _ in range(2)]

    assert found() == [5.0, 5.0]
    made.scale = 2.0
    assert found() == [2.0, 2.0]
    made.scale = 3.0
    assert found() == [3.0, 3.0]
    del made.scale
    assert found() == [5.0, 5.0]
    made.scale = 4.0
    assert found() == [4.0, 4.0]


ASKING = {
    "is_leaf": lambda y: y * 2 if y.is_leaf else y * 3, "grad_fn": lambda y: y * 2 if y.grad_fn is None else y * 3,
    "an optimizer": lambda y: (torch.optim.SGD([y], 0.1), y * 1)[1], "retain_grad": lambda y: y * (2 if y.retains_grad else 3),
}  # fmt: skip


def told(function, *args):
    try:
        found = function(*args)
    except Exception as error:
        return type(error).__name__
    return [None if t is None else t.tolist() for t in (found if isinstance(found, tuple) else (found,))]


@pytest.mark.parametrize("asking", ASKING)
@pytest.mark.parametrize("order", ["ll.l", "..l.", ".l.l"])
def test_arguments_that_are_leaves_and_others(asking, order):
    """An argument that requires grad is a leaf or none, for which functions may ask."""
    compiled = torch.compile(ASKING[asking])
    for kind in order * 2:
        a, b = ((x if kind == "l" else x * 1) for x in (torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True)))
        assert told(compiled, a) == told(ASKING[asking], b)


BY = torch.ones(2, requires_grad=True)
DERIVED = {
    "of another argument": lambda x, y: torch.autograd.grad((x * 2).sum(), y, allow_unused=True)[0],
    "of what it reaches": lambda x, y: torch.autograd.grad((BY * 2).sum() + x.sum(), [y, x], allow_unused=True),
    "backward": lambda x, y: ((BY * x).sum().backward(inputs=[y]), y.grad.clone() if y.grad is not None else None)[1],
}  # fmt: skip


@pytest.mark.parametrize("derived", DERIVED)
def test_derivatives_by_an_argument_that_is_another_tensor_or_not(derived):
    """By which of its tensors a function differentiates depends on which of them are the same."""
    compiled, function = torch.compile(DERIVED[derived]), DERIVED[derived]
    for _ in range(3):
        for kind in ("apart", "apart", "same", "reached"):
            seen = []
            for run in (compiled, function):
                BY.grad = None
                x, y = torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True)
                seen.append(told(run, x, x if kind == "same" else BY if kind == "reached" else y))
            assert seen[0] == seen[1], kind


def test_parts_of_an_argument_that_is_a_view_itself():
    """One of several views stays one, whatever it is a view of."""
    for view in (lambda x: x.unbind(0)[0], lambda x: x.split(1)[1], lambda x: x[0]):
        compiled = torch.compile(lambda x, y, view=view: (view(x), y))
        for _ in range(3):
            kinds = [f(torch.ones(3, 4, 2)[..., 0], 1.5)[0]._view_kind for f in (compiled, lambda x, y, view=view: (view(x), y))]
            assert kinds[0] == kinds[1]


@pytest.mark.parametrize("derived", DERIVED)
@pytest.mark.parametrize("order", ["..h.", "h.h", ".hh."])
def test_hooks_of_arguments_that_it_differentiates_by(derived, order):
    compiled, function = torch.compile(DERIVED[derived]), DERIVED[derived]
    for kind in order * 2:
        seen = []
        for run in (compiled, function):
            BY.grad = None
            x = torch.ones(2, requires_grad=True)
            if kind == "h":
                x.register_hook(lambda g: g * 3)
            seen.append(told(run, x, x))
        assert seen[0] == seen[1]


def test_what_a_weak_reference_is_to_is_watched():
    """Modules keep such of what they share, as recurrent layers do of their weights."""
    scale = torch.full((2,), 3.0)
    weak = weakref.ref(scale)

    @torch.compile(fullgraph=True)
    def f(x):
        there = weak()
        return x * 10 if there is None else x * there

    x = torch.ones(2)
    for _ in range(3):
        assert f(x).tolist() == [3.0, 3.0]
    scale.mul_(2)
    assert f(x).tolist() == [6.0, 6.0]
    torch.compiler.reset()  # the guard keeps what it has seen
    del scale
    gc.collect()
    assert weak() is None
    assert f(x).tolist() == [10.0, 10.0]


@pytest.mark.parametrize("kind", [torch.nn.RNN, torch.nn.GRU, torch.nn.LSTM])
def test_recurrent_layers_are_compiled_and_a_replaced_weight_is_seen(kind):
    layer, x = kind(2, 3), torch.randn(4, 1, 2)
    f = torch.compile(lambda x: layer(x)[0], fullgraph=True)
    for _ in range(3):
        assert torch.allclose(f(x), layer(x)[0])
    layer.weight_hh_l0 = torch.nn.Parameter(torch.zeros_like(layer.weight_hh_l0))
    assert torch.allclose(f(x), layer(x)[0])
    with torch.no_grad():
        layer.bias_ih_l0.add_(1)
    assert torch.allclose(f(x), layer(x)[0])
    layer._flat_weights[1] = torch.ones_like(layer.weight_hh_l0)
    assert torch.allclose(f(x), layer(x)[0])


#: what makes another history of a tensor w that requires grad, in place, and by which of ``b`` it depends then
HISTORIES = {
    "detached": lambda w, b: (w.detach_(), w.mul_(b.sum())), "data": lambda w, b: (w.requires_grad_(False), w.add_(b.sum())),
    "a part": lambda w, b: (w.detach_(), w[:2].mul_(b[:2])), "a copy": lambda w, b: (w.detach_(), w.copy_(b)),
}  # fmt: skip
PASSES = {
    "a pass": lambda w: (w * 2).square().sum().backward(), "a pass towards it": lambda w: torch.autograd.grad((w * w).sum(), [w])[0],
    "a pass and the tensor": lambda w: ((w * 2).sum().backward(), w)[1], "a loss": lambda w: (w * w).sum(), "asking": lambda w: w.detach() * w.is_leaf,
}  # fmt: skip


@pytest.mark.parametrize("history", HISTORIES)
@pytest.mark.parametrize("name", PASSES)
def test_a_leaf_that_has_a_history_by_now(name, history):
    """Passes go on to what it depends on, and where it is a leaf again they end there."""
    def outcome(compiled):
        w, b, found = torch.ones(3, requires_grad=True), torch.full((3,), 2.0, requires_grad=True), []

        def step():
            return PASSES[name](w)

        step = torch.compile(step) if compiled else step
        for change in (None, None, None, HISTORIES[history], None):
            if change:
                change(w, b)
            elif not w.is_leaf:
                w.detach_().requires_grad_()
            result = step()
            if name == "a loss":
                result.backward()
            found.append([None if t is None else t.tolist() for t in (result, b.grad, w.grad if w.is_leaf else None)])
        return found

    assert outcome(True) == outcome(False)
