"""Reductions against PyTorch over dims, keepdim and special values."""

import random

import numpy as np
import pytest

torch = pytest.importorskip("torch")
import autograd_nb as ours  # noqa: E402
from autograd_nb.ops.core.registry import functions  # noqa: E402

from .compare import compare  # noqa: E402
from .snippets import check  # noqa: E402

TORCH = functions("torch")
RNG = np.random.default_rng(3)
CUBE = RNG.normal(size=(3, 4, 5))
TIES = np.array([[1.0, 3, 3], [2, 2, 2], [-1, 5, 0]])
SPECIAL = np.array([[1.0, np.nan, 2, np.nan], [np.inf, -np.inf, 0, 1], [-0.0, 0.0, -0.0, 0.0]])


def run(name, arrays, *args, grad=True, second=True, rtol=1e-9, atol=1e-9, **kw):
    compare(
        lambda *t: TORCH[name](*t, *args, **kw),
        lambda *t: getattr(torch, name)(*t, *args, **kw),
        arrays,
        grad=grad,
        second=second,
        rtol=rtol,
        atol=atol,
    )


@pytest.mark.parametrize("name", ["max", "min"])
@pytest.mark.parametrize(
    "x", [CUBE, TIES, SPECIAL, CUBE.astype(np.float32), (CUBE * 9).astype(np.int64), CUBE > 0, (CUBE * 9).astype(np.int8)]
)
def test_max_min(name, x):
    grad = x.dtype.kind == "f"
    run(name, [x], grad=grad, rtol=1e-6)
    for dim in range(x.ndim):
        run(name, [x], dim, grad=grad, rtol=1e-6)
        run(name, [x], dim, True, grad=grad, rtol=1e-6)


@pytest.mark.parametrize("name", ["argmax", "argmin"])
@pytest.mark.parametrize("x", [CUBE, TIES, SPECIAL, np.arange(2000.0).reshape(2, 1000), (CUBE * 3).astype(np.int32)])
def test_arg(name, x):
    run(name, [x], grad=False)
    for dim in (0, 1, -1):
        run(name, [x], dim, grad=False)
        run(name, [x], dim, True, grad=False)


@pytest.mark.parametrize("name", ["max", "min", "argmax", "argmin"])
@pytest.mark.parametrize("columns", [1, 2, 11, 40])
def test_places_in_many_rows_with_ties_and_nans(name, columns):
    x = RNG.integers(0, 4, (150, columns)).astype(np.float64)
    x[x == RNG.integers(0, 20, (150, 1))] = np.nan
    run(name, [x], 1, grad=False)
    run(name, [np.where(x == 0, -np.inf, x)], 1, True, grad=False)


@pytest.mark.parametrize("name", ["amax", "amin"])
@pytest.mark.parametrize("dim", [(), 0, 1, (0, 2), (0, 1, 2), -1])
def test_amax_amin(name, dim):
    run(name, [CUBE], dim)
    run(name, [CUBE], dim, True)
    run(name, [np.round(CUBE)], dim)


@pytest.mark.parametrize("name", ["var", "std", "var_mean", "std_mean"])
@pytest.mark.parametrize(
    "kw", [{}, {"dim": 0}, {"dim": (0, 2), "keepdim": True}, {"dim": 1, "correction": 0}, {"dim": -1, "unbiased": False}]
)
def test_moments(name, kw):
    if name.endswith("mean") and not kw:
        kw = {"dim": None}
    run(name, [CUBE], **kw)
    run(name, [CUBE.astype(np.float32)], **kw, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize("value", [0.0, 2.0])
def test_gradients_of_moments_are_zero_where_all_are_equal(dtype, value):
    found = []
    for t in (torch, ours):
        x = t.full((3, 2), value, dtype=getattr(t, dtype)).requires_grad_()
        ways = x.std(0), x.std(), t.std_mean(x, 1)[0], x.var(0)
        found += [t.autograd.grad((y * y + y).sum(), x)[0].tolist() for y in ways]
    assert found[:4] == found[4:]


def test_variance_is_accurate():
    x = (RNG.normal(size=100000) + 1e6).astype(np.float32)
    exact = x.astype(np.float64).var(ddof=1)
    assert abs(TORCH["var"](ours.from_numpy(x)).item() / exact - 1) < 1e-6


@pytest.mark.parametrize("name", ["any", "all", "count_nonzero"])
@pytest.mark.parametrize(
    "x", [CUBE > 0, np.round(CUBE), SPECIAL, np.round(CUBE).astype(np.int64), np.zeros((2, 0)), np.array([0, 3], np.uint8)]
)
def test_truth(name, x):
    run(name, [x], grad=False)
    run(name, [x], 0, grad=False)


@pytest.mark.parametrize(
    "name", ["nansum", "nanmean", "logsumexp", "prod", "cumsum", "cumprod", "cummax", "cummin", "logcumsumexp"]
)
@pytest.mark.parametrize("dim", [0, 1, -1])
def test_along_one_dim(name, dim):
    run(name, [CUBE], dim)
    run(name, [CUBE.astype(np.float32)], dim, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("zeros", [0, 1, 2])
@pytest.mark.parametrize("name", ["prod", "cumprod"])
def test_zeros_in_products(name, zeros):
    x = RNG.normal(size=(3, 5))
    x[1, :zeros] = 0
    x[2, 3] = 0 if zeros else 1
    run(name, [x], 1)
    if name == "prod":
        run(name, [x])
    else:
        run(name, [x], 0)


@pytest.mark.parametrize("dim", [(0,), (0, 1), (0, 2), (1, 2), (0, 1, 2)])
def test_logsumexp_dims(dim):
    run("logsumexp", [CUBE], dim)
    run("logsumexp", [CUBE], dim, True)


def test_nan_and_infinities():
    for name in ("nansum", "nanmean"):
        run(name, [SPECIAL], second=False)
        run(name, [SPECIAL], 1, second=False)
    inf = np.inf
    run("logsumexp", [np.array([[-inf, -inf], [inf, 0.0], [1, -inf]])], 1, grad=False)
    run("logcumsumexp", [np.array([[-inf, -inf, 0], [inf, 0.0, 1], [1, -inf, 2]])], 1, grad=False)
    for name in ("cummax", "cummin"):
        run(name, [SPECIAL], 1, second=False)
        run(name, [SPECIAL], 0, second=False)
        run(name, [np.array([3, 1, 3, 0, 3])], 0, grad=False)
    run("cumsum", [np.array([1, 2, 3], np.int32)], 0, grad=False)
    run("prod", [np.array([1, 2, 3], np.int32)], grad=False)
    run("prod", [np.zeros((0, 3))], grad=False)


@pytest.mark.parametrize("p", [2, 1, 0, 3, 8, 0.5, 1.5, float("inf"), -float("inf"), -1, "fro"])
@pytest.mark.parametrize("kw", [{}, {"dim": 1}, {"dim": (0, 2), "keepdim": True}])
def test_norm(p, kw):
    if p == "fro" and not kw:
        kw = {"dim": None}
    run("norm", [CUBE], p, **kw, rtol=1e-7)


@pytest.mark.parametrize("p", [2, 1, 0, 3, 0.5, 1.5, float("inf")])
def test_norm_at_zero(p):
    run("norm", [np.zeros((2, 3))], p, dim=1, second=False, grad=p != 0)
    run("dist", [CUBE, CUBE + np.round(CUBE)], p, second=False, grad=p != 0)


def test_differences_and_areas():
    x = RNG.normal(size=(4, 6))
    run("diff", [x])
    run("diff", [x], n=2, dim=0)
    run("trapezoid", [x])
    run("trapezoid", [x], dx=0.5, dim=0)
    run("trapezoid", [x, np.sort(x, 1)])
    run("cumulative_trapezoid", [x])
    run("cov", [x])
    run("cov", [x], correction=0)
    run("corrcoef", [x])
    run("histc", [x], 10, grad=False)
    run("histc", [x], 7, -1, 1, grad=False)


def test_errors():
    x = ours.zeros(2, 0)
    for call in (
        lambda: x.max(),
        lambda: x.max(1),
        lambda: x.amax(1),
        lambda: x.argmax(1),
        lambda: ours.zeros(3).max(1),
        lambda: ours.ones(3, dtype=ours.int64).var(),
    ):
        with pytest.raises((RuntimeError, IndexError)):
            call()
    with pytest.warns(UserWarning, match="degrees of freedom"):
        ours.ones(1).var()


@pytest.mark.parity
@pytest.mark.parametrize("call", (
    "x.topk(1)", "x.kthvalue(1)", "x.median()", "x[0].kthvalue(1)", "x.median(0)", "x.nanmedian()", "x.nanmedian(0)", "x.argmax()", "x.argmin(0)",
    "x.sort()", "x.mode()", "x.cummax(0)", "x.amax()", "x.max(0)", "x[:0].median()",
))
def test_bools_are_refused_where_pytorch_refuses_them(call):
    found = []
    for library in (torch, ours):
        try:
            eval(call, {"x": library.tensor([True, False, True])})
            found.append(None)
        except (RuntimeError, NotImplementedError) as error:
            found.append(type(error))
    assert found[0] is found[1]


@pytest.mark.parity
@pytest.mark.parametrize("reduce", ["sum", "mean", "max", "min", "prod"])
def test_segments_with_nan_and_segments_of_nothing(reduce):
    """Gradients go to what is nan where there is such an element; offsets need not begin at 0 nor reach the end."""
    where = [f"lengths=t.tensor({s}, dtype=t.int64)" for s in ("[2, 2]", "[2, 0, 2]", "[0, 4]", "[1, 3]", "[3]", "[]")]
    where += [f"offsets=t.tensor({s})" for s in ("[0, 2]", "[1, 3]", "[1, 1, 2]", "[0, 0]", "[2]")]
    rows = ["[1., nan, 3., 4.]", "[nan, 1., nan, 4.]", "[inf, nan, 0., 4.]", "[0., 2., 0., 0.]", "[[1., nan], [3., 4.], [nan, 2.], [1., 1.]]"]
    codes = {
        f"{row} {segments}{initial}": f"x = t.tensor({row}, requires_grad=True)\n"
        f"y = t._segment_reduce(x, {reduce!r}, {segments}, axis=0{initial})\ny.sum().backward()\nr = y, x.grad"
        for row in rows for segments in where for initial in ("", ", initial=2.0", ", initial=nan")
    }  # fmt: skip
    check(codes, "from math import inf, nan")


@pytest.mark.parity
@pytest.mark.parametrize("reduce", ["sum", "mean", "max", "min", "prod"])
def test_what_a_reduction_of_segments_keeps(reduce):
    """A pass is refused after a change of the data, the result or where the segments are, as of all that PyTorch's node saves."""
    changes = ("", "x.mul_(1)", "x.t().clamp_(min=-1)", "y.mul_(1)", "g.add_(0)", "x.data.mul_(1)", "w.detach().mul_(1)")
    codes = {
        f"{change} {given}{initial}": f"w = t.arange(1., 9.).reshape(4, 2).requires_grad_(); x = w * 1.5; g = t.tensor({segments})\n"
        f"y = t._segment_reduce(x, {reduce!r}, {given}=g, axis=0{initial}); z = y * 1\n{change}\nz.sum().backward()\nr = y.detach(), w.grad"
        for change in changes for given, segments in (("lengths", [1, 3]), ("offsets", [0, 1, 4])) for initial in ("", ", initial=2.0")
    }  # fmt: skip
    check(codes)


@pytest.mark.parity
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_means_and_ramps_to_the_last_bit(dtype):
    """A mean is a sum divided, not multiplied by 1 / n: that of equal numbers is the number. Of linspace the float32 bits are PyTorch's."""
    for n in range(1, 130):
        kinds = [(lib, getattr(lib, dtype)) for lib in (torch, ours)]
        values = [[lib.full((n,), 3.0, dtype=d).mean().item(), lib.ones(n, 3, dtype=d).mean(0)[1].item()] for lib, d in kinds]
        assert values[0] == values[1] == [3, 1], n
    for k in range(300):
        rng = np.random.default_rng(k)
        low, high, n = *np.round(rng.standard_normal(2), 3), int(rng.integers(1, 40))
        theirs, mine = (lib.linspace(low, high, n, dtype=getattr(lib, dtype)).numpy() for lib in (torch, ours))
        np.testing.assert_allclose(mine, theirs, rtol=0 if dtype == "float32" else 1e-14, atol=0 if dtype == "float32" else 1e-15)
        middle = [lib.linspace(low - 0.5, low + 0.5, 3, dtype=getattr(lib, dtype))[1].item() for lib in (torch, ours)]
        assert middle[0] == middle[1]


@pytest.mark.parity
@pytest.mark.parametrize("dtype", ["int16", "uint8", "int64", "bool", "float32", "complex64"])
def test_what_counts_in_masked_logaddexp(dtype):
    before = "from importlib import import_module; import_module(t.__name__ + '.masked'); b = t.tensor([1., 1, 0, 0, 1]); "
    before += f"a = t.tensor([1, 0, 1, 1, 0]).to(t.{dtype}); "
    before += "m, n = t.tensor([True, False, True, False, False]), t.tensor([True, True, False, False, False])"
    masks = ["", ", input_mask=m", ", other_mask=n", ", input_mask=m, other_mask=n"]
    check({f"{x}, {y}{m}": f"r = t.masked.logaddexp({x}, {y}{m})" for m in masks for x, y in ("ab", "ba", "aa")}, before)


FEW = ["t.ones(0)", "t.ones(2, 0)", "t.ones(0, 2)", "t.tensor(1.5)", "t.tensor([1.5])", "t.tensor([1., 2.])", "t.tensor([[1., 2.], [4., 2.]])"]


@pytest.mark.parity
@pytest.mark.parametrize("name", ["var", "std", "var_mean", "std_mean"])
def test_gradients_where_elements_are_too_few(name):
    """For fewer elements than the correction, and for as many, of all elements and of a dim."""
    first = "[0]" if name.endswith("mean") else ""
    check({
        f"{x} {correction} {dim}": f"x = {x}.requires_grad_(); y = t.{name}(x, {dim}, correction={correction}){first}\n"
        "r = list(t.autograd.grad(y.sum(), x, create_graph=True))\n"
        "if r[0].requires_grad: r += t.autograd.grad(r[0].abs().sum(), x)"
        for x in FEW for correction in range(-2, 6) for dim in (None, 0, -1)
    })  # fmt: skip


@pytest.mark.parametrize("seed", range(3))
def test_histogram_of_edges_that_do_not_increase(seed):
    """Which PyTorch takes, and searches as if they did."""
    drawn = random.Random(seed)
    for _ in range(100):
        edges = [round(drawn.uniform(-3, 3), 1) for _ in range(drawn.randint(2, 7))]
        x = [round(drawn.uniform(-4, 4), 1) for _ in range(4)] + drawn.sample(edges, 1)
        counts = [lib.histogram(lib.tensor(x), lib.tensor(edges)).hist.tolist() for lib in (torch, ours)]
        assert counts[0] == counts[1], (x, edges)
