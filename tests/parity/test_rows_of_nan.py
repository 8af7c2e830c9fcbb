"""Reductions, norms, losses and distances of rows with nan and infinities, their first and second derivatives, for gradients that are nan too."""

from __future__ import annotations

import itertools

import pytest

torch = pytest.importorskip("torch")

from .snippets import check  # noqa: E402

ROWS = {
    "nan": "[[1., nan, 3], [2, 2, 1]]", "several": "[[nan, nan, 3], [2, 2, 1]]", "infinities": "[[inf, inf, 1], [-inf, -inf, -inf]]",
    "nothing but −∞": "[[-inf, -inf, -inf], [-inf, -inf, -inf]]", "both": "[[inf, -inf, 1], [inf, inf, inf]]",
    "nan and infinities": "[[inf, nan, 1], [-inf, nan, -inf]]", "zeros": "[[0., 0, 0], [-0., 0, 1]]", "ties": "[[2., 2, 1], [1, 2, 2]]",
}  # fmt: skip
DISTANCES = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, "inf")
CALLS = [
    *(f"{name}(x{dim})" for name in ("t.amax", "t.amin") for dim in ("", ", 0", ", 1", ", (0, 1)")),
    *(f"{name}(x{dim})" for name in ("t.max", "t.min", "t.median", "t.nanmedian") for dim in ("", ", 0", ", 1")),
    *(f"t.aminmax(x{dim})" for dim in ("", ", dim=0", ", dim=1")), *(f"t.logsumexp(x, {dim})" for dim in ("0", "1", "(0, 1)")),
    *(f"{name}(x, {dim})" for name in ("F.softmax", "F.log_softmax", "F.softmin", "t.cummax", "t.cummin", "t.sort") for dim in (0, 1)),
    "t.nansum(x)", "t.nansum(x, 1)", "x.sum(1)", "x.mean(0)", "t.logaddexp(x[0], x[1])", "t.logaddexp2(x[0], x[1])",
    "t.maximum(x[0], x[1])", "t.fmin(x[0], x[1])", "F.max_pool1d(x[None], 2, 1)", "F.adaptive_max_pool1d(x[None], 2)", "x.topk(2, 1)",
    "x.kthvalue(2, 1)", "x.mode(0)", "x.mode(1)", "x.mode(1).indices * x[:, 0]",
    "x.prod()", "x.prod(0)", "x.prod(1)", "x.cumprod(0)", "x.cumprod(1)",
    "t.quantile(x, 0.3, 1)", "x.norm(dim=1)", "x.norm(1)", "F.nll_loss(x, t.tensor([0, 1]))",
    "t.linalg.vector_norm(x, inf, dim=1)", "t.linalg.vector_norm(x, -inf)", "t.linalg.matrix_norm(x, inf)", "t.linalg.matrix_norm(x, -1)",
    "x.renorm(inf, 0, 1.)", "F.normalize(x, inf)", "F.normalize(x)", "F.multilabel_margin_loss(x, t.tensor([[0, 1, -1], [2, -1, 0]]))",
    "F.multi_margin_loss(x, t.tensor([0, 1]))", "t.segment_reduce(x, 'max', lengths=t.tensor([1, 1]))",
    *(f"{call}, {p})" for call in ("t.cdist(x, x + 1", "t.cdist(x, t.tensor([[.5, nan, inf], [1, 2, 3]], dtype=t.float64)", "F.pdist(x") for p in DISTANCES),
]  # fmt: skip
#: only the value and the first derivative, by a gradient that is finite
ONCE = (
    "multi",
    "segment_reduce",
    "sort",
    "cum",
    "topk",
    "kthvalue",
    "quantile",
    "renorm",
    "normalize",
    "norm(x",
    "dist(",
    "mode",
    "prod",
)
#: PyTorch reads nan as the smallest number in some of its loops
KNOWN = {("t.quantile(x, 0.3, 1)", "nan and infinities")}


@pytest.mark.parity
@pytest.mark.parametrize("call", CALLS)
def test_rows(call):
    codes = {}
    for name, rows in ROWS.items():
        for g in ("1.", "0.", "nan"):
            if (call, name) in KNOWN or (g != "1." and any(word in call for word in ONCE)):
                continue
            code = (
                f"x = t.tensor({rows}, dtype=t.float64, requires_grad=True); y = {call}; y = y if isinstance(y, t.Tensor) else y[0]\n"
                f"d, = t.autograd.grad((y * {g} * t.arange(1., y.numel() + 1).reshape(y.shape)).sum(), x, create_graph=True); r = [y.detach(), d.detach()]"
            )
            codes[f"{name}, {g}"] = code
    check(codes, "inf, nan = float('inf'), float('nan')")


SAMPLES = [(mode, padding) for mode in ("bilinear", "nearest", "bicubic") for padding in ("zeros", "border", "reflection")]


@pytest.mark.parity
@pytest.mark.parametrize(("mode", "padding"), SAMPLES)
def test_places_that_are_nowhere(mode, padding):
    """Of nan and infinities, of which PyTorch's bilinear kernel makes indices where there is padding, and of places far away."""
    values = ["1e8", "-3e9", "1e20", "1e300"] + ["nan", "inf", "-inf"] * (mode != "bilinear" or padding == "zeros")
    if (mode, padding) == ("bilinear", "reflection"):
        values.remove("1e300")
    before = "inf, nan = float('inf'), float('nan'); x = t.linspace(-1, 2, 40, dtype=t.float64).reshape(1, 2, 4, 5).sin().requires_grad_()"
    check({
        f"{v}": f"g = t.tensor([[[[{v}, .1], [.1, {v}], [.2, .3]]]], dtype=t.float64, requires_grad=True)\n"
        f"y = F.grid_sample(x, g, '{mode}', '{padding}', False); r = [y.detach(), *t.autograd.grad(y.sum(), [x, g])]"
        for v in values
    }, before)  # fmt: skip


@pytest.mark.parity
def test_other_numbers():
    x = "x = t.zeros(2, 0, 3, requires_grad=True)"
    check({
        "zeta": "r = t.special.zeta(t.tensor([nan, nan, 1., .5, 2]), t.tensor([0., 1, 0, 0, nan]))",
        "zeta far away": "r = t.special.zeta(t.tensor([inf, 1.5, 2, nan, 3, 2.5]), t.tensor([-.5, -inf, -inf, -inf, -.5, -.5], dtype=t.float64))",
        **{f"slope of sinc, {d}": f"x = t.tensor([0, 1e-30, 1e-23, 1e-200, -1e-160, 1e-45, .1, inf], dtype=t.{d}, requires_grad=True); "
           "r = t.autograd.grad(t.sinc(x).sum(), x)" for d in ("float32", "float64")},
        "nothing as complex numbers": f"{x}; y = t.view_as_real(t.complex(x, x) * 1j).prod(-1); (x + y).sum().backward(); r = x.grad",
        "mixed dtypes, expanded": "r = (t.tensor(2.).expand(2, 3) * t.ones(3, 2, dtype=t.float64).T).stride()",
        "mixed dtypes, turned": "r = (t.ones(3, 2).T[:, ::2] * t.ones(4, 2, dtype=t.float64).T[:, ::2]).stride()",
    }, "inf, nan = float('inf'), float('nan')")  # fmt: skip


NORMS = [
    "t.linalg.vector_norm(x, {})",
    "t.linalg.vector_norm(x, {}, dim=1)",
    "x.norm({})",
    "F.normalize(x, {})",
    "F.pairwise_distance(x[:1], x[1:], {})",
]


@pytest.mark.parity
@pytest.mark.parametrize("d", ["float32", "float64", "bfloat16", "float16"])
@pytest.mark.parametrize("rows", ["[[1., -2, 0], [.5, 3, -4]]", "[[0., 0, 0], [0, 1, 0]]", "[[inf, 1, -inf], [0, nan, 1]]"])
def test_orders_that_are_beyond_a_dtype(rows, d):
    """Such an order is infinite or 0 where powers are computed, and half precision refuses it in the derivative."""
    before = f"inf, nan = float('inf'), float('nan'); x = t.tensor({rows}).to(t.{d}).requires_grad_()"
    orders = (
        "1e40",
        "-1e40",
        "1e300",
        "1e39",
        "1e-310",
        "-1e-310",
        "1e-40",
        "-inf",
        "inf",
        "0.001",
        "-1e5" if "16" in d else "1e5",
    )
    check({
        f"{call} {p}": f"y = {call.format(p)}; g, = t.autograd.grad((y * t.arange(1, y.numel() + 1).reshape(y.shape)).sum(), x); r = y.double(), g.double()"
        for call in NORMS for p in orders
        if not (d == "float16" and "normalize" in call)  # (half of eps is 0)
    }, before, 1e-2 if "16" in d else 1e-5)  # fmt: skip


@pytest.mark.parity
def test_powers_beyond_half_precision():
    check(
        {
            f"{d} {p}": f"r = (t.ones(3, dtype=t.{d}) ** {p}).float()"
            for d in ("float16", "bfloat16", "float32")
            for p in (65504.0, 65520.0, 1e39, -1e300, 7)
        }
    )


@pytest.mark.parity
@pytest.mark.parametrize(
    "call",
    ["x.prod()", "x.prod(-1)", "t.stack([x, 2 * x]).prod(0)", "x.cumprod(0)", "t.stack([x, 2 * x]).cumprod(1)", "x.mode(0)[0]"],
)
def test_products_and_modes_of_all_short_rows(call):
    """Of 0, numbers, infinities and nan in any order; of products in one dim with several zeros PyTorch has two ways, by whether a dim was given."""
    rows = [r for n in (1, 2, 3) for r in itertools.product(("0.", "-2.", "inf", "nan"), repeat=n)]
    if call == "x.prod(-1)":
        rows = [r for r in rows if r.count("0.") < 2]
    way = f"y = {call}; w = t.arange(1., y.numel() + 1)\ng, = t.autograd.grad((y * w.reshape(y.shape)).sum(), x); r = y.detach(), g"
    before = "inf, nan = float('inf'), float('nan')"
    check({(row := ", ".join(r)): f"x = t.tensor([{row}], dtype=t.float64, requires_grad=True); {way}" for r in rows}, before)


@pytest.mark.parity
@pytest.mark.parametrize("n", [3, 8, 16, 33])
def test_places_among_nothing_but_nan_and_ties(n):
    rows = "x = t.arange(%d.) %% 3; x[t.arange(%d) %% %d == 1] = float('nan')"
    check({
        **{f"{k}": f"{rows % (n, n, k)}; r = x.mode(0), x.nanmedian(0), x.median(0)" for k in (2, 3, 5) if n <= 16},
        "nan": f"x = t.full(({n},), float('nan')); r = {'x.mode(0), ' if n <= 16 else ''}x.nanmedian(0), x.median(0)",
    })  # fmt: skip


@pytest.mark.parity
@pytest.mark.parametrize("n", [6, 16, 17, 40, 300])
def test_distinct_rows_are_in_the_order_of_pytorchs_comparisons(n):
    """Rows with nan have no order: where they end follows from which ones are compared; of zeros with both signs the first one is kept."""
    rows = "n = %d; a = (t.arange(n * %d) * 37 %% 11 %% 5 - 1.).reshape(n, -1); a[a == 3] = float('nan'); a[::2] *= -1."
    seen = "u, i, c = t.unique(a, dim=0, return_inverse=True, return_counts=True); r = u, t.signbit(u), i, c"
    check({f"{width}": f"{rows % (n, width)}; {seen}" for width in (1, 3)})


@pytest.mark.parity
def test_distinct_rows_of_several_empty_dims_are_refused():
    check({f"{shape} {dim}": f"r = t.unique(t.empty({shape}), dim={dim})" for shape in ("1, 0, 0", "0, 2", "2, 0") for dim in (0, 1)})
