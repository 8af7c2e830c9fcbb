"""Compiled calls have the effects of eager ones: gradients, aliases, hooks, random streams, errors, threads, copies."""

# ruff: noqa
from __future__ import annotations

import collections
import copy
import dataclasses
import functools
import gc
import io
import logging
import math
import pickle
import threading
import warnings
import weakref

import numpy as np
import pytest

import autograd_nb as torch
import autograd_nb.nn.functional as F
from autograd_nb import nn

pytestmark = pytest.mark.filterwarnings("ignore")


def eq(a, b):
    if isinstance(a, torch.Tensor):
        torch.testing.assert_close(a.detach(), b.detach(), equal_nan=True, rtol=0.0001, atol=1e-05)
    elif isinstance(a, (list, tuple)):
        assert type(a) is type(b) and len(a) == len(b)
        for x, y in zip(a, b, strict=True):
            eq(x, y)
    else:
        assert a == b and type(a) is type(b), (a, b)


def same(a, b):
    for p, q in zip(a.state_dict().values(), b.state_dict().values(), strict=True):
        eq(p, q)


def train(m, o, loss=F.mse_loss):

    def step(x, y):
        o.zero_grad()
        value = loss(m(x), y)
        value.backward()
        o.step()
        return value.detach()

    return step


@dataclasses.dataclass
class Batch:
    x: object
    k: float = 1.0


def glob(x):
    return x * 3


cglob = torch.compile(glob)


@torch.compile
def deco(x):
    return x * 4


CELL = 1.0


def helper(x):
    return x * CELL


def test_accumulate_zero_outside():
    w = torch.ones(3, requires_grad=True)

    def step(x):
        (w * x).sum().backward()

    c = torch.compile(step)
    for i in range(8):
        if i % 2 == 0:
            w.grad = None
        c(torch.full((3,), float(i + 1)))
        if i % 2 == 1:
            assert w.grad.tolist() == [float(2 * i + 1)] * 3, (i, w.grad)
        else:
            assert w.grad.tolist() == [float(i + 1)] * 3, (i, w.grad)
    w.grad = torch.full((3,), 100.0)
    c(torch.ones(3))
    assert w.grad[0] == 101


def test_list_arg_mutated():

    def f(xs, x):
        xs.append(x * 2)
        return x

    c = torch.compile(f)
    for i in range(4):
        xs = []
        c(xs, torch.ones(1))
        assert len(xs) == 1, i


def test_dict_arg_mutated():

    def f(d):
        d["y"] = d["x"] * 2
        return d["y"]

    c = torch.compile(f)
    for i in range(4):
        d = {"x": torch.ones(1)}
        c(d)
        assert "y" in d, i

    def f(d):
        d["x"] = d["x"] * 2

    c = torch.compile(f)
    for i in range(4):
        d = {"x": torch.ones(1)}
        c(d)
        assert d["x"] == 2, i


def test_dataclass_result():
    c = torch.compile(lambda x: Batch(x * 2))
    for i in range(4):
        assert c(torch.full((1,), float(i))).x == 2 * i


def test_object_result():

    class R:
        def __init__(s, x):
            s.x = x

    c = torch.compile(lambda x: R(x * 2))
    for i in range(4):
        assert c(torch.full((1,), float(i))).x == 2 * i
    c = torch.compile(lambda x: lambda: x * 2)
    for i in range(4):
        assert c(torch.full((1,), float(i)))() == 2 * i

    def gen(x):
        yield (x * 2)

    c = torch.compile(gen)
    for i in range(4):
        assert list(c(torch.full((1,), float(i))))[0] == 2 * i
    c = torch.compile(lambda x: collections.defaultdict(list, a=x * 2))
    for i in range(4):
        assert c(torch.full((1,), float(i)))["a"] == 2 * i


def test_max_result():
    f = lambda x: (x.max(0), torch.sort(x), x.shape, x.dtype, x.size(0))
    c = torch.compile(f, fullgraph=True)
    for i in range(4):
        x = torch.randn(3, 4)
        a = c(x)
        b = f(x)
        assert type(a[0]) is type(b[0])
        eq(a[0].values, b[0].values)
        eq(a[1].indices, b[1].indices)
        assert a[2:] == b[2:] and type(a[2]) is type(b[2])


def test_same_twice_out():

    def f(x):
        y = x * 2
        return (y, y, y[0], x, None, [y])

    c = torch.compile(f, fullgraph=True)
    for i in range(3):
        x = torch.ones(2)
        r = c(x)
        e = f(x)
        assert e[0] is e[1]
        assert r[0] is r[1], "identity lost"
        r[0].zero_()
        assert r[2] == 0 and r[1][0] == 0 and (r[5][0][0] == 0)
        assert r[3] is x


def test_nonleaf_arg():
    w = torch.randn(3, requires_grad=True)
    v = torch.randn(3, requires_grad=True)
    f = lambda x, y: (x * v).tanh() * y
    c = torch.compile(f)
    for i in range(4):
        z = torch.randn(3)
        h = w * z
        r = c(h, (h * 2).sin()).sum()
        ga = torch.autograd.grad(r, [w, v])
        h = w * z
        r2 = f(h, (h * 2).sin()).sum()
        gb = torch.autograd.grad(r2, [w, v])
        eq(r, r2)
        eq(ga, gb)


def test_nonleaf_hidden():
    cell = nn.LSTMCell(3, 4)
    c = torch.compile(lambda x, h: cell(x, h))
    ws = list(cell.parameters())
    for i in range(4):
        xs = torch.randn(5, 2, 3)

        def run(g):
            h = (torch.zeros(2, 4), torch.zeros(2, 4))
            for x in xs:
                h = g(x, h)
            return torch.autograd.grad(h[0].sum(), ws)

        eq(run(c), run(cell))


def test_nonleaf_inplace():
    w = torch.randn(3, requires_grad=True)

    def f(x):
        x.mul_(2)
        return x.sin()

    c = torch.compile(f)
    for i in range(4):
        h = w * 1
        r = c(h)
        ga = torch.autograd.grad((r + h).sum(), w)
        h = w * 1
        r2 = f(h)
        gb = torch.autograd.grad((r2 + h).sum(), w)
        eq(ga, gb)


def test_closure_nonleaf():
    w = torch.randn(3, requires_grad=True)
    z = w.exp()
    f = lambda x: x * z
    c = torch.compile(f)
    for i in range(4):
        x = torch.randn(3)
        eq(torch.autograd.grad(c(x).sum(), w, retain_graph=True), torch.autograd.grad(f(x).sum(), w, retain_graph=True))


def test_singular():
    for f in (
        torch.linalg.inv,
        torch.linalg.cholesky,
        lambda a: torch.linalg.solve(a, torch.ones(3, 1)),
        lambda a: torch.inverse(a),
        torch.linalg.lu_factor,
        lambda a: torch.cholesky_inverse(a),
        torch.linalg.eigh,
        torch.linalg.svdvals,
        torch.linalg.eigvals,
        torch.linalg.det,
        torch.linalg.slogdet,
        torch.linalg.ldl_factor,
    ):
        c = torch.compile(f)
        good = torch.eye(3) * 2
        c(good)
        c(good)
        for bad in (torch.zeros(3, 3), torch.full((3, 3), float("nan"))):
            try:
                e = f(bad)
                ee = None
            except Exception as x:
                e = None
                ee = x
            try:
                r = c(bad)
                rr = None
            except Exception as x:
                r = None
                rr = x
            assert type(ee) is type(rr), (f, ee, rr)
            if ee is None and isinstance(e, torch.Tensor):
                eq(r, e)


def test_handled_error():

    def f(a):
        try:
            return torch.linalg.cholesky(a)
        except Exception:
            return torch.linalg.cholesky(a + torch.eye(2) * 10)

    c = torch.compile(f)
    bad = -torch.eye(2)
    good = torch.eye(2) * 4
    for a in (bad, good, bad, good, good):
        eq(c(a), f(a))
    c = torch.compile(f)
    for a in (good, good, bad, good, bad):
        eq(c(a), f(a))


def test_dropout_two_forwards():
    w = torch.ones(50, requires_grad=True)
    f = lambda x: F.dropout(x * w, 0.5)
    c = torch.compile(f)
    c(torch.ones(50))
    a = c(torch.ones(50))
    b = c(torch.ones(50))
    (ga,) = torch.autograd.grad(a.sum(), w)
    (gb,) = torch.autograd.grad(b.sum(), w)
    eq(ga, a.detach())
    eq(gb, b.detach())
    m = nn.Sequential(nn.Linear(20, 20), nn.Dropout(0.5), nn.Dropout1d(0.5), nn.RReLU(), nn.GELU())
    c = torch.compile(m)
    x = torch.randn(4, 20)
    c(x)
    torch.manual_seed(3)
    a = c(x)
    b = c(x)
    g = torch.autograd.grad((a * 2 + b).sum(), m[0].weight)
    torch.manual_seed(3)
    a2 = m(x)
    b2 = m(x)
    g2 = torch.autograd.grad((a2 * 2 + b2).sum(), m[0].weight)
    eq(a, a2)
    eq(b, b2)
    eq(g, g2)


def test_checkpointed():
    from autograd_nb.utils.checkpoint import checkpoint

    torch.manual_seed(0)
    m = nn.Sequential(nn.Linear(8, 8), nn.Dropout(0.5))
    n = copy.deepcopy(m)
    for re in (False, True):

        def mk(m):
            o = torch.optim.SGD(m.parameters(), 0.1)

            def step(x):
                o.zero_grad()
                y = (
                    checkpoint(m, x.requires_grad_() if False else x, use_reentrant=re)
                    if not re
                    else checkpoint(m, m[0](x), use_reentrant=True)
                )
                l = (y + torch.rand(1)).square().sum()
                l.backward()
                o.step()
                return l.detach()

            return step

        c, e = (torch.compile(mk(m)), mk(n))
        for i in range(5):
            x = torch.randn(4, 8)
            torch.manual_seed(i)
            a = c(x)
            ra = torch.rand(1)
            torch.manual_seed(i)
            b = e(x)
            rb = torch.rand(1)
            eq(a, b)
            eq(ra, rb)
        same(m, n)
    c2 = torch.compile(lambda x: checkpoint(m, x, use_reentrant=False))
    for i in range(4):
        x = torch.randn(4, 8)
        torch.manual_seed(i)
        g = torch.autograd.grad(c2(x).square().sum(), m[0].weight)
        torch.manual_seed(i)
        g2 = torch.autograd.grad(checkpoint(m, x, use_reentrant=False).square().sum(), m[0].weight)
        eq(g, g2)


def test_seeds_inside():

    def f(x):
        torch.manual_seed(5)
        return x + torch.rand(3)

    c = torch.compile(f)
    eq(c(torch.zeros(3)), c(torch.zeros(3)))
    eq(c(torch.zeros(3)), f(torch.zeros(3)))
    g = torch.Generator()
    g.manual_seed(1)
    f = lambda x: x + torch.rand(3, generator=g)
    c = torch.compile(f)
    c(torch.zeros(3))
    a = c(torch.zeros(3))
    g.manual_seed(7)
    a = c(torch.zeros(3))
    b = c(torch.zeros(3))
    g.manual_seed(7)
    eq(a, f(torch.zeros(3)))
    eq(b, f(torch.zeros(3)))


def test_custom_function():
    n = []

    class Sq(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, k):
            ctx.save_for_backward(x)
            ctx.k = k
            return x * x * k

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return (g * 2 * x * ctx.k + 1, None)

    w = torch.randn(3, requires_grad=True)
    v = w.detach().clone().requires_grad_()
    c = torch.compile(lambda x: Sq.apply(x * w, 2.0))
    for i in range(4):
        x = torch.randn(3)
        g = torch.autograd.grad(c(x).sum(), w)
        g2 = torch.autograd.grad(Sq.apply(x * v, 2.0).sum(), v)
        eq(g, g2)

    def st(w):

        def step(x):
            w.grad = None
            Sq.apply(x * w, 2.0).sum().backward()

        return step

    c2 = torch.compile(st(w))
    e = st(v)
    for i in range(4):
        x = torch.randn(3)
        c2(x)
        e(x)
        eq(w.grad, v.grad)


def test_functional():
    f = lambda x: torch.func.vmap(lambda v: v.sin() * v.sum())(x)
    g = lambda x: torch.func.grad(lambda v: (v**3).sum())(x)
    h = lambda x: torch.func.jacrev(lambda v: v**2 * v.sum())(x[0])
    j = lambda x: torch.func.jvp(lambda v: v.sin(), (x,), (x,))
    out = []
    for k in (f, g, h, j):
        c = torch.compile(k)
        for i in range(4):
            x = torch.randn(3, 4)
            eq(c(x), k(x))
    c = torch.compile(lambda x: x.sin() * 2)
    x = torch.randn(3, 4)
    for i in range(3):
        eq(torch.func.vmap(c)(x), x.sin() * 2)
        eq(c(x), x.sin() * 2)
    for i in range(3):
        eq(torch.func.grad(lambda v: c(v).sum())(x), x.cos() * 2)
        eq(torch.func.jvp(c, (x,), (x,))[1], x.cos() * 2 * x)
    for i in range(3):
        eq(torch.func.hessian(lambda v: c(v).sum())(x[0]), torch.diag(-2 * x[0].sin()))


def test_double_backward_outside():
    w = torch.randn(3, requires_grad=True)
    c = torch.compile(lambda x: (x * w) ** 3)
    for i in range(3):
        x = torch.randn(3)
        try:
            (g,) = torch.autograd.grad(c(x).sum(), w, create_graph=True)
            (g2,) = torch.autograd.grad(g.sum(), w)
            eq(g2, 6 * w.detach() * x**3)
        except RuntimeError as e:
            return "refused: " + str(e)[:100]


def test_odd_shapes():
    f = lambda x, y: (x + y).sum() * x
    c = torch.compile(f)
    for mk in (
        lambda: torch.tensor(3.0),
        lambda: torch.ones(0),
        lambda: torch.randn(1).expand(3),
        lambda: torch.randn(3, 1).expand(3, 4),
        lambda: torch.randn(4, 3).t(),
        lambda: torch.randn(4, 6)[:, ::2],
        lambda: torch.randn(5, requires_grad=True),
        lambda: torch.randint(0, 5, (3,)),
        lambda: torch.ones(3, dtype=torch.bool),
        lambda: torch.randn(3, dtype=torch.complex64),
        lambda: torch.randn(3).half(),
        lambda: torch.randn(2, 3, 4).permute(2, 0, 1),
        lambda: torch.randn(0, 3),
        lambda: torch.randn(1, 1, 1).expand(0, 3, 2),
    ):
        for i in range(3):
            x, y = (mk(), mk())
            eq(c(x, y), f(x, y))


def test_scalars_returned():
    o = torch.optim.SGD([nn.Parameter(torch.ones(2))], lr=0.5)

    def f(x):
        return (x * 2, 3, None, "a", o.param_groups[0]["lr"], x.shape, (x.dtype, True))

    c = torch.compile(f)
    for i in range(4):
        r = c(torch.ones(2))
        assert type(r[4]) is float
        assert r[1:] == f(torch.ones(2))[1:]
    o.param_groups[0]["lr"] = 0.25
    assert c(torch.ones(2))[4] == 0.25

    def g(x):
        return (
            torch.full((2,), o.param_groups[0]["lr"]) * x,
            torch.tensor(o.param_groups[0]["lr"]),
            x * math.sqrt(o.param_groups[0]["lr"]),
            x * max(o.param_groups[0]["lr"], 0.01),
            x * float(f"{o.param_groups[0]['lr']:.3f}"),
            x * round(o.param_groups[0]["lr"], 2),
            x * int(o.param_groups[0]["lr"] * 10),
            torch.tensor([o.param_groups[0]["lr"], 1.0]),
        )

    c = torch.compile(g)
    for lr in (0.25, 0.25, 0.3, 0.4, 0.41):
        o.param_groups[0]["lr"] = lr
        eq(c(torch.ones(2)), g(torch.ones(2)))


def test_scheduler_inside():
    for mk in (
        lambda o: torch.optim.lr_scheduler.StepLR(o, 2),
        lambda o: torch.optim.lr_scheduler.CosineAnnealingLR(o, 5),
        lambda o: torch.optim.lr_scheduler.LambdaLR(o, lambda e: 0.9**e),
        lambda o: torch.optim.lr_scheduler.OneCycleLR(o, 0.1, total_steps=20),
    ):
        out = []
        for comp in (0, 1):
            torch.manual_seed(0)
            m = nn.Linear(3, 2)
            o = torch.optim.SGD(m.parameters(), 0.1, momentum=0.9)
            s = mk(o)

            def step(x):
                o.zero_grad()
                m(x).square().sum().backward()
                o.step()
                s.step()

            f = torch.compile(step) if comp else step
            for i in range(8):
                f(torch.full((1, 3), i / 8))
                assert type(o.param_groups[0]["lr"]) is float
            out.append((m.weight.detach().clone(), o.param_groups[0]["lr"]))
        eq(out[0][0], out[1][0])
        assert out[0][1] == out[1][1]


def test_threads_one_function():
    w = torch.randn(64, 64)
    f = lambda x: (x @ w).tanh().sum(0)
    c = torch.compile(f)
    errs = []

    def work(k):
        try:
            for i in range(60):
                x = torch.full((3 + (k + i) % 3, 64), float(k))
                torch.testing.assert_close(c(x), f(x), rtol=0.0001, atol=0.0001)
        except BaseException as e:
            errs.append(e)

    ts = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    [t.start() for t in ts]
    [t.join() for t in ts]
    assert not errs, errs[0]
    m = nn.Linear(8, 8)
    cm = torch.compile(m)

    def work2(k):
        try:
            for i in range(40):
                x = torch.full((2, 8), float(k), requires_grad=True)
                (g,) = torch.autograd.grad(cm(x).square().sum(), x)
                y = x.detach().requires_grad_()
                (g2,) = torch.autograd.grad(m(y).square().sum(), y)
                eq(g, g2)
        except BaseException as e:
            errs.append(e)

    ts = [threading.Thread(target=work2, args=(k,)) for k in range(4)]
    [t.start() for t in ts]
    [t.join() for t in ts]
    assert not errs, errs[0]


def test_threads_capture_opt():
    m = nn.Linear(4, 4)
    o = torch.optim.SGD(m.parameters(), 0.1)

    def step(x):
        o.zero_grad()
        m(x).sum().backward()
        o.step()

    c = torch.compile(step)
    ts = [threading.Thread(target=lambda: [c(torch.ones(k, 4)) for k in range(1, 5)]) for _ in range(3)]
    [t.start() for t in ts]
    [t.join() for t in ts]
    assert type(o.param_groups[0]["lr"]) is float


def test_exceptions():
    flag = [True]
    w = torch.ones(3)

    def f(x):
        w.add_(1)
        if flag[0]:
            raise KeyError("no")
        return x * w

    c = torch.compile(f)
    for i in range(3):
        try:
            c(torch.ones(3))
            assert 0
        except KeyError:
            pass
    assert w[0] == 4
    flag[0] = False
    eq(c(torch.ones(3)), torch.full((3,), 5.0))
    eq(c(torch.ones(3)), torch.full((3,), 6.0))
    flag[0] = True
    try:
        c(torch.ones(3))
        assert 0
    except KeyError:
        pass
    assert w[0] == 7

    def g(x):
        raise KeyboardInterrupt

    c = torch.compile(g)
    try:
        c(torch.ones(1))
    except KeyboardInterrupt:
        pass
    import builtins

    assert builtins.print.__module__ == "builtins" and builtins.open.__module__ in ("io", "_io")
    import autograd_nb.launch as L

    assert L.observer() is None and (not L._observing)


def test_recursion():

    @torch.compile
    def f(x, n):
        return x if n == 0 else f(x * 2, n - 1) + x

    def e(x, n):
        return x if n == 0 else e(x * 2, n - 1) + x

    for i in range(3):
        x = torch.randn(3)
        eq(f(x, 3), e(x, 3))
        eq(f(x, 1), e(x, 1))


def test_nested_compiled():
    w = torch.ones(2)
    inner = torch.compile(lambda x: x * w)
    outer = torch.compile(lambda x: inner(x) + inner(x * 2))
    for i in range(3):
        eq(outer(torch.ones(2)), w * 3)
    w.fill_(2.0)
    eq(outer(torch.ones(2)), w * 3)
    w = torch.full((2,), 5.0)
    eq(outer(torch.ones(2)), w * 3)
    m = nn.Sequential(nn.Linear(2, 2), nn.ReLU())
    cm = torch.compile(m)
    o = torch.optim.SGD(m.parameters(), 0.1)
    n = copy.deepcopy(m)
    on = torch.optim.SGD(n.parameters(), 0.1)
    st = torch.compile(train(cm, o))
    e = train(n, on)
    for i in range(4):
        x, y = (torch.randn(3, 2), torch.randn(3, 2))
        eq(st(x, y), e(x, y))
    same(m, n)


def test_pickles():
    m = nn.Linear(3, 2)
    c = torch.compile(m)
    x = torch.randn(2, 3)
    c(x)
    c(x)
    d = copy.deepcopy(c)
    with torch.no_grad():
        d.weight.zero_()
        d.bias.zero_()
    assert d(x).abs().sum() == 0
    assert c(x).abs().sum() != 0
    d(x)
    d(x)
    p = pickle.loads(pickle.dumps(c))
    eq(p(x), c(x))
    eq(p(x), c(x))
    with torch.no_grad():
        c.weight.zero_()
    assert not torch.equal(p(x), c(x))
    assert pickle.loads(pickle.dumps(deco)) is deco

    q = pickle.loads(pickle.dumps(cglob))
    eq(q(x), x * 3)
    assert copy.deepcopy(deco) is deco

    class H:
        pass

    mm = nn.Sequential(torch.compile(nn.Linear(3, 3)), nn.ReLU())
    m2 = copy.deepcopy(mm)
    with torch.no_grad():
        m2[0].weight.zero_()
        m2[0].bias.zero_()
    eq(m2(x), torch.zeros(2, 3))
    assert mm[0](x).abs().sum() > 0
    assert isinstance(c, nn.Linear) and list(c.state_dict()) == ["weight", "bias"]
    c.load_state_dict(m.state_dict())
    c.eval()
    assert not m.training
    repr(c)


def test_frees():

    class Big:
        pass

    t = torch.zeros(300000)
    r = weakref.ref(t)
    c = torch.compile(lambda x: x + t.sum())
    c(torch.ones(1))
    c(torch.ones(1))
    del t, c
    gc.collect()
    assert r() is None, "closure"
    m = nn.Linear(300, 300)
    r = weakref.ref(m.weight)
    c = torch.compile(m)
    c(torch.ones(1, 300))
    c(torch.ones(1, 300)).sum().backward()
    del m, c
    gc.collect()
    assert r() is None, "module"
    m = nn.Linear(300, 300)
    o = torch.optim.Adam(m.parameters())
    s = torch.compile(train(m, o))
    r = weakref.ref(m.weight)
    for i in range(3):
        s(torch.ones(2, 300), torch.ones(2, 300))
    rp = weakref.ref(s.programs[0].program) if hasattr(s.programs[0].program, "__weakref__") else None
    del m, o, s
    gc.collect()
    assert r() is None, "step"
    c = torch.compile(lambda x: x * 2)
    x = torch.ones(300000)
    r = weakref.ref(x)
    c(x)
    y = c(x)
    del x, y
    gc.collect()
    assert r() is None, "argument kept"
    w = torch.ones(1000, requires_grad=True)
    c = torch.compile(lambda x: (x * w).sin())
    x = torch.ones(1000)
    r = weakref.ref(x)
    c(x)
    y = c(x)
    del x, y
    gc.collect()
    assert r() is None, "argument kept by back"


def test_ema():

    def mk():
        torch.manual_seed(0)
        m = nn.Linear(3, 3)
        e = copy.deepcopy(m)
        o = torch.optim.SGD(m.parameters(), 0.1)

        def step(x):
            o.zero_grad()
            m(x).square().sum().backward()
            o.step()
            with torch.no_grad():
                for p, q in zip(e.parameters(), m.parameters()):
                    p.mul_(0.9).add_(q, alpha=0.1)

        return (m, e, step)

    m, e, s = mk()
    m2, e2, s2 = mk()
    c = torch.compile(s)
    for i in range(5):
        x = torch.randn(2, 3)
        c(x)
        s2(x)
    same(m, m2)
    same(e, e2)


def test_accumulation_k():

    def mk():
        torch.manual_seed(0)
        m = nn.Linear(3, 3)
        o = torch.optim.Adam(m.parameters(), 0.1)

        def step(x, last):
            (m(x).square().sum() / 3).backward()
            if last:
                o.step()
                o.zero_grad()

        return (m, step)

    m, s = mk()
    m2, s2 = mk()
    c = torch.compile(s)
    for i in range(12):
        x = torch.randn(2, 3)
        c(x, i % 3 == 2)
        s2(x, i % 3 == 2)
        [eq(p.grad, q.grad) if p.grad is not None else None for p, q in zip(m.parameters(), m2.parameters())]
    same(m, m2)


def test_delayed_step():

    def mk():
        torch.manual_seed(0)
        m = nn.Linear(3, 3)
        o = torch.optim.SGD(m.parameters(), 0.1)

        def step(x):
            o.step()
            o.zero_grad()
            m(x).square().sum().backward()

        return (m, step)

    m, s = mk()
    m2, s2 = mk()
    c = torch.compile(s)
    for i in range(6):
        x = torch.randn(2, 3)
        c(x)
        s2(x)
    same(m, m2)
    for p, q in zip(m.parameters(), m2.parameters()):
        p.grad = None
        q.grad = None
    for i in range(3):
        x = torch.randn(2, 3)
        c(x)
        s2(x)
    same(m, m2)


def test_zero_to_zeros():

    def mk():
        torch.manual_seed(0)
        m = nn.Linear(3, 3)
        o = torch.optim.SGD(m.parameters(), 0.1)

        def step(x):
            o.zero_grad(set_to_none=False)
            m(x).square().sum().backward()
            o.step()
            return m.weight.grad.norm()

        return (m, step)

    m, s = mk()
    m2, s2 = mk()
    c = torch.compile(s)
    for i in range(6):
        x = torch.randn(2, 3)
        eq(c(x), s2(x))
        eq(m.weight.grad, m2.weight.grad)
    same(m, m2)


def test_dists():
    D = torch.distributions
    mu = torch.zeros(3, requires_grad=True)

    def f(x):
        d = D.Normal(mu + x, torch.ones(3))
        s = d.rsample()
        return d.log_prob(s).sum() + s.sum()

    c = torch.compile(f)
    for i in range(3):
        x = torch.randn(3)
        torch.manual_seed(i)
        a = torch.autograd.grad(c(x), mu)
        torch.manual_seed(i)
        eq(a, torch.autograd.grad(f(x), mu))

    def g(p):
        d = D.Categorical(logits=p)
        a = d.sample()
        return (d.log_prob(a), d.entropy(), a)

    c2 = torch.compile(g)
    for i in range(3):
        x = torch.randn(5, 3)
        torch.manual_seed(i)
        a = c2(x)
        torch.manual_seed(i)
        eq(a, g(x))
    bad = torch.full((3,), float("nan"))
    for h in (f,):
        try:
            h(bad)
            ok = 0
        except ValueError:
            ok = 1
        try:
            c(bad)
            ok2 = 0
        except ValueError:
            ok2 = 1
        assert ok == ok2, (ok, ok2)


def test_setitem():

    def f(x, y):
        x = x.clone()
        x[0] = y[0]
        x[1:] += 1
        x[y > 0] = 0 if False else x[1]
        return x

    def f2(x, y):
        x = x.clone()
        x[0] = y[0]
        x[1:] += 1
        x = torch.where(y > 0, x, -x)
        x[torch.tensor([0, 2])] = 5.0
        return x

    for f in (f, f2):
        c = torch.compile(f)
        for i in range(4):
            x, y = (torch.randn(3), torch.randn(3))
            eq(c(x, y), f(x, y))
