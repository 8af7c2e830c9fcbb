"""Compiled calls have the effects of eager ones: errors, random streams, transforms, threads, copies, lifetimes."""

from __future__ import annotations

import copy
import functools
import gc
import pickle
import weakref

import pytest

import autograd_nb as torch
import autograd_nb.nn.functional as F
from autograd_nb import launch, nn

from .common import eq, in_threads, same, training

pytestmark = pytest.mark.filterwarnings("ignore")


def triple(x):
    return x * 3


compiled_triple = torch.compile(triple)  # another name than the function's: pickled by value


@torch.compile
def deco(x):
    return x * 4


@pytest.mark.parametrize("matrix", [torch.zeros(3, 3), torch.full((3, 3), float("nan"))], ids=["zeros", "nan"])
@pytest.mark.parametrize(
    "f",
    [
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
    ],
)
def test_singular(f, matrix):
    c = torch.compile(f)
    good = torch.eye(3) * 2
    c(good)
    c(good)
    try:
        expected = f(matrix)
    except Exception as error:
        with pytest.raises(type(error)):
            c(matrix)
    else:
        eq(c(matrix), expected, nan=True)


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
    for _ in range(3):
        x = torch.randn(3)
        (g,) = torch.autograd.grad(c(x).sum(), w, create_graph=True)
        (g2,) = torch.autograd.grad(g.sum(), w)
        eq(g2, 6 * w.detach() * x**3)


def test_threads_one_function():
    w = torch.randn(64, 64)
    f = lambda x: (x @ w).tanh().sum(0)
    c = torch.compile(f)

    def work(k):
        for i in range(60):
            x = torch.full((3 + (k + i) % 3, 64), float(k))
            torch.testing.assert_close(c(x), f(x), rtol=0.0001, atol=0.0001)

    in_threads(4, work)


def test_threads_one_module():
    m = nn.Linear(8, 8)
    c = torch.compile(m)

    def work(k):
        for _ in range(40):
            x = torch.full((2, 8), float(k), requires_grad=True)
            y = x.detach().requires_grad_()
            eq(torch.autograd.grad(c(x).square().sum(), x), torch.autograd.grad(m(y).square().sum(), y))

    in_threads(4, work)


def test_exceptions():
    flag = [True]
    w = torch.ones(3)

    def f(x):
        w.add_(1)
        if flag[0]:
            raise KeyError("no")
        return x * w

    c = torch.compile(f)
    for _ in range(3):
        with pytest.raises(KeyError):
            c(torch.ones(3))
    assert w[0] == 4
    flag[0] = False
    eq(c(torch.ones(3)), torch.full((3,), 5.0))
    eq(c(torch.ones(3)), torch.full((3,), 6.0))
    flag[0] = True
    with pytest.raises(KeyError):
        c(torch.ones(3))
    assert w[0] == 7


def test_what_capturing_exchanges_is_put_back():
    def f(x):
        raise KeyboardInterrupt

    before = print, open
    with pytest.raises(KeyboardInterrupt):
        torch.compile(f)(torch.ones(1))
    assert (print, open) == before
    assert not launch.observing()


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
    st = torch.compile(training(cm, o))
    e = training(n, on)
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

    q = pickle.loads(pickle.dumps(compiled_triple))
    eq(q(x), x * 3)
    assert copy.deepcopy(deco) is deco

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


def test_frees_closure():
    t = torch.zeros(300000)
    gone = weakref.ref(t)
    c = torch.compile(functools.partial(lambda t, x: x + t.sum(), t))
    c(torch.ones(1))
    c(torch.ones(1))
    del t, c
    gc.collect()
    assert gone() is None


def test_frees_module():
    m = nn.Linear(300, 300)
    gone = weakref.ref(m.weight)
    c = torch.compile(m)
    c(torch.ones(1, 300))
    c(torch.ones(1, 300)).sum().backward()
    del m, c
    gc.collect()
    assert gone() is None


def test_frees_step():
    m = nn.Linear(300, 300)
    o = torch.optim.Adam(m.parameters())
    s = torch.compile(training(m, o))
    gone = weakref.ref(m.weight)
    for _ in range(3):
        s(torch.ones(2, 300), torch.ones(2, 300))
    del m, o, s
    gc.collect()
    assert gone() is None


@pytest.mark.parametrize("weight", [torch.ones(1000), torch.ones(1000, requires_grad=True)], ids=["plain", "with a gradient"])
def test_frees_argument(weight):
    c = torch.compile(lambda x: (x * weight).sin())
    x = torch.ones(1000)
    gone = weakref.ref(x)
    c(x)
    y = c(x)
    del x, y
    gc.collect()
    assert gone() is None


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
    with pytest.raises(ValueError, match="loc"):
        f(torch.full((3,), float("nan")))
    with pytest.raises(ValueError, match="loc"):
        c(torch.full((3,), float("nan")))


def test_gradients_of_views_that_eager_calls_had_before():
    def f(x):
        y = x * 1
        y[1] -= x[0] * x[0]
        return y

    def gradient(f):
        x = torch.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
        outs = []
        for _ in range(3):
            (found,) = torch.autograd.grad(f(x).square().sum(), x)
            with torch.no_grad():
                x += 0.5
            outs.append(found)
        return outs

    wanted = gradient(f)  # its kernels are known when the capture begins
    for found, value in zip(gradient(torch.compile(f)), wanted, strict=True):
        assert torch.equal(found, value)
