"""Numbers that are no numbers, or hardly any, as arguments of ops: infinities, nan, what float32 cannot tell from 0."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import autograd_nb as ag  # noqa: E402

from .snippets import check  # noqa: E402

NUMBERS = ("float('inf')", "-float('inf')", "float('nan')", "1e-46", "-1e-46", "0.0", "-0.0", "1e40", "-1e40")
CALLS = {
    "elu": "F.elu(x, {})", "leaky_relu": "F.leaky_relu(x, {})", "softplus": "F.softplus(x, {})", "softplus, threshold": "F.softplus(x, 1, {})",
    "hardshrink": "F.hardshrink(x, {})", "softshrink": "F.softshrink(x, {})", "threshold": "F.threshold(x, {}, 1.0)", "clamp": "x.clamp(min={})",
    "add": "t.add(x, x, alpha={})", "sub": "t.sub(x, x, alpha={})", "lerp": "t.lerp(x, x * 2, {})", "addcmul": "t.addcmul(x, x, x, value={})",
    "addcdiv": "t.addcdiv(x, x, x + 3, value={})", "mul": "x * {}", "div": "x / {}", "fmod": "x.fmod({})", "remainder": "x.remainder({})",
    "renorm": "x.renorm(2, 0, {})", "normalize": "F.normalize(x * 0, eps={})", "logit": "(x * 0.3).logit({})",
    "rrelu": "F.rrelu(x, {0}, {0})", "rrelu, upper": "F.rrelu(x, 0.1, {})", "huber": "F.huber_loss(x, x * 2, delta={})",
    "label_smoothing": "F.cross_entropy(x, t.tensor([0, 1]), label_smoothing={})", "margin": "F.multi_margin_loss(x, t.tensor([0, 1]), margin={})",
    "fill": "x * 0 + t.full((2, 2), {}, dtype=x.dtype)", "masked_fill": "x.masked_fill(x > 0, {})", "pad": "F.pad(x, (1, 0), value={})",
    "where": "t.where(x > 0, x, {})", "hardtanh": "F.hardtanh(x, -abs({0}), abs({0}))", "quantile": "t.quantile(x, {})",
    "dropout": "F.dropout(x * 0, {})", "torch.dropout": "t.dropout(x * 0, {}, True)", "alpha_dropout": "F.alpha_dropout(x, {})",
    "smooth_l1": "F.smooth_l1_loss(x, x * 2, beta={})", "trapezoid": "t.trapezoid(x, dx={})", "cumulative_trapezoid": "t.cumulative_trapezoid(x, dx={})",
    "trapezoid of infinities": "t.trapezoid(x * {})", "layer_norm": "F.layer_norm(x, [2], eps={})", "rms_norm": "F.rms_norm(x, [2], eps={})",
    "batch_norm": "F.batch_norm(x, None, None, training=True, eps={})", "momentum": "F.batch_norm(x, t.zeros(2).to(x), t.ones(2).to(x), True, {})",
    "vector_norm": "t.linalg.vector_norm(x, {})", "cosine_similarity": "F.cosine_similarity(x, x * 2, 1, {})", "std": "x.std(correction={})",
    "margins": "F.triplet_margin_loss(x, x * 2, x * 3, margin={})", "nan_to_num": "(x / 0).nan_to_num(1.0, {0}, {0})",
    "gradient": "t.gradient(x, spacing={})[0]",
    "poisson": "F.poisson_nll_loss(x, x * 2, eps={}, log_input=False)", "index_fill": "x.index_fill(0, t.tensor([0]), {})", "copysign": "t.copysign(x, {})",
}
PLACES = {
    "bucketize": "t.bucketize({}, t.tensor([0.0, 1.0, 5.0]).to(x.dtype))", "searchsorted": "t.searchsorted(t.tensor([0.0, 1.0]).to(x.dtype), {}, right=True)",
    "matrix_rank": "t.linalg.matrix_rank(x, atol={})", "pinv": "t.linalg.pinv(x, atol={})", "isclose": "t.isclose(x, x * 2, atol={})", "gt": "t.gt(x, {})",
}  # fmt: skip
#: what PyTorch's float32 kernels cannot be given, or round to 0 first; a slope of −0 in a threshold or a probability that rounds to 0
KNOWN = {("elu", "-0.0"), ("elu", "-1e-46"), ("alpha_dropout", "1e-46"), ("alpha_dropout", "0.0"), ("alpha_dropout", "-0.0")}


@pytest.mark.parity
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("number", NUMBERS)
def test_numbers_that_are_hardly_any(number, dtype):
    """The result and the gradient, or that it is refused."""
    before = f"x = t.tensor([[1.0, 2.0], [0.0, -1.0]], dtype=t.{dtype}, requires_grad=True)"
    check({
        f"{name}({number}), {dtype}": f"y = {call.format(number)}; y.sum().backward(); r = y, x.grad"
        for name, call in CALLS.items() if (name, number) not in KNOWN
    }, before, kinds="subclasses")  # fmt: skip


@pytest.mark.parity
@pytest.mark.parametrize("number", NUMBERS)
def test_places_and_ranks_of_numbers_that_are_hardly_any(number):
    for dtype in ("float32", "float64"):
        calls = {f"{name}({number}), {dtype}": f"r = {call.format(number)}" for name, call in PLACES.items()}
        check(calls, f"x = t.tensor([[1.0, 2.0], [0.0, -1.0]], dtype=t.{dtype})", kinds="subclasses")


@pytest.mark.parity
@pytest.mark.parametrize("number", NUMBERS)
def test_sizes_that_are_none(number):
    check({
        f"{mode} by {number}, {more}": f"r = tuple(F.interpolate(t.ones(1, 2, 4, 4), scale_factor={number}, mode='{mode}'{more}).shape)"
        for mode in ("nearest", "bilinear", "bicubic", "nearest-exact") for more in ("", ", recompute_scale_factor=True")
    }, kinds=True)  # fmt: skip


@pytest.mark.parity
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16"])
def test_probabilities_that_are_none(dtype):
    """What is nan lies outside of the bounds too."""
    values = ("[0.5, 0.2]", "[0.5, n]", "[n] * 9", "[0.5] * 20 + [n]", "[0.5, 1.5]", "[-0.1, 0.5]", "[]")
    calls = {f"{x}, {y}": f"x, y = t.tensor({x}, dtype=t.{dtype}), t.tensor({y}, dtype=t.{dtype}); r = F.binary_cross_entropy(x, y)"
             for x in values for y in values if eval(f"len({x}) == len({y})", {"n": 0})}
    check(calls, "n = float('nan')", 1e-5 if dtype in ("float32", "float64") else 1e-2, kinds=True)


@pytest.mark.parametrize("bins", [2, 100])
@pytest.mark.parametrize("values", [[-3e38, 3e38, 0.0], [-3e38, 1e38, 0.0, 2.9e38], [1e38, 2e38, 3e38], [0.0, 1.0, 0.0]])
def test_histograms_of_numbers_whose_distance_is_none(values, bins):
    """Every element falls into a bin, where the distance of the bounds is infinite, or 0 in float32 (PyTorch writes before its memory)."""
    x = ag.tensor(values)
    bounds = (0, 1e-46) if max(values) == 1 else (0, 0)
    inside = sum(v <= bounds[1] for v in values) if bounds[1] else len(values)
    found = ag.histc(x, bins, *bounds)
    assert found.sum().item() == inside
    if not bounds[1]:
        wide = torch.histc(torch.tensor(values, dtype=torch.float64), bins)
        assert abs(found.cumsum(0) - ag.tensor(wide.tolist()).cumsum(0)).max().item() <= 1  # (at an edge rounding decides)
    ag.histogram(x, bins, range=bounds if bounds[1] else (min(values), max(values)))  # (whose edges are nan then, as in PyTorch)


@pytest.mark.parametrize("dtype", [ag.float16, ag.bfloat16])
@pytest.mark.parametrize("values", [[0.5, 0.01, -0.5], [0.01, 0.7, 0.3], [0.0, 1.0, 2.0], [0.02, 0.01, 0.03]])
def test_products_of_halves_are_differentiated_without_quotients(dtype, values):
    """A product of halves is soon 0, and a quotient by one of its factors infinite."""
    for function in (lambda z: (z**3).prod(), lambda z: (z**3).cumprod(0).sum(), lambda z: z.prod()):
        found = ag.func.hessian(function)(ag.tensor(values, dtype=dtype)).double()
        both = ag.func.vmap(ag.func.hessian(function))(ag.tensor([values], dtype=dtype))[0].double()
        expected = ag.func.hessian(function)(ag.tensor(values, dtype=dtype).double())
        for each in (found, both):
            assert each.isfinite().all() and (each - expected).abs().max().item() <= 0.03 * (1e-3 + expected.abs().max().item())


@pytest.mark.parity
def test_branches_of_sums_of_exponentials():
    """Of several numbers with one real part the last one decides which logarithm it is."""
    numbers = ("2j", "-2.89j", "3.1j", "-3j", "1 + 3j", "1 - 2.5j", "9j")
    check({
        f"{name} of {a}, {b}": f"r = t.view_as_real(t.{name}(t.tensor([{a}, {b}, 1.5j, {a}], dtype=t.complex128), 0))"
        for name in ("logcumsumexp", "logsumexp") for a in numbers for b in numbers
    })  # fmt: skip


@pytest.mark.parity
def test_infinite_complex_numbers_in_sums_of_exponentials():
    parts = ("0.0", "1.0", "float('inf')", "-float('inf')", "float('nan')")
    numbers = [f"complex({a}, {b})" for a in parts for b in parts]
    x = f"x = t.tensor([{', '.join(numbers)}], dtype=t.complex128)\n"
    check({
        "pairs": f"{x}r = t.view_as_real(t.logaddexp(x[:, None], x))",
        "both zeros": "z = t.complex(t.tensor([-float('inf')]), t.tensor([2.0]))\nr = t.view_as_real(t.logaddexp(z, z.conj()))",
        **{f"from {i}": f"{x}r = t.view_as_real(t.logcumsumexp(x.roll({i}), 0))" for i in range(len(numbers))},
        **{f"{a}, {b}": f"r = t.view_as_real(t.logcumsumexp(t.tensor([{a}, {b}, 1], dtype=t.complex64), 0))" for a in numbers for b in numbers},
    })  # fmt: skip


#: functions of one tensor with kinks or quotients, whose slopes at infinities and nan are a matter of how they are written
SLOPES = {
    **{name: f"F.{name}(x)" for name in (
        "softshrink", "hardshrink", "tanhshrink", "hardtanh", "relu6", "hardswish", "hardsigmoid", "elu", "selu", "celu", "softsign", "relu", "leaky_relu",
        "silu", "mish", "softplus", "logsigmoid",
    )},
    **{name: f"F.{name}(x, t.zeros_like(x), reduction='none')" for name in ("huber_loss", "smooth_l1_loss", "mse_loss", "l1_loss")},
    "threshold": "F.threshold(x, 0.1, 0.2)", "prelu": "F.prelu(x, t.tensor([0.25], dtype=x.dtype))", "clamp": "x.clamp(-1, 1)", "tanh": "x.tanh()",
    "huber_loss, wide": "F.huber_loss(x, t.ones_like(x), reduction='none', delta=4.0)", "hinge": "F.hinge_embedding_loss(x, t.ones_like(x), reduction='none')",
    "logits": "F.binary_cross_entropy_with_logits(x, t.ones_like(x), reduction='none')", "sigmoid": "x.sigmoid()", "abs": "x.abs()",
}  # fmt: skip


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", SLOPES)
def test_slopes_at_infinities_and_nan(name, dtype):
    found = []
    for lib in (torch, ag):
        values = []
        for number in (np.nan, np.inf, -np.inf, 0.0, 1.0, -1.0, 0.5, -3.0, 6.0):
            x = lib.tensor([number], dtype=getattr(lib, dtype), requires_grad=True)
            y = eval(SLOPES[name], {"F": lib.nn.functional, "t": lib, "x": x})
            g = lib.full_like(y, 0.75).requires_grad_()
            (slope,) = lib.autograd.grad(y, x, g, create_graph=True)
            values += [y.item(), slope.item()]
            # PyTorch lacks the one's second derivative; that of the other takes another slope at 0 than its first one
            if name != "hardsigmoid" and (name, number) != ("prelu", 0):
                more = lib.autograd.grad(slope, (x, g), lib.ones_like(slope), allow_unused=True)
                values += [0.0 if m is None else m.item() for m in more]
        found.append(values)
    np.testing.assert_allclose(found[1], found[0], rtol=1e-5, atol=1e-7)


@pytest.mark.parity
@pytest.mark.parametrize("n", (1, 2, 3, 8))
def test_sums_of_infinite_complex_numbers_are_infinite_whatever_comes_first(n):
    """As in NumPy; in PyTorch they are only where the first is, as it multiplies the second with a complex 1 (`tests.fuzz.reasons`)."""
    for infinite in (complex(np.inf, -np.inf), complex(1, np.inf), complex(-np.inf, 2)):
        found = []
        for lib in (torch, ag):
            a, b = (lib.full((n,), z, dtype=lib.complex128) for z in (infinite, 1 + 1j))
            found.append([(a + b).numpy(), (a - b).numpy(), (b + a).numpy(), (b - a).numpy(), b.clone().add_(a).numpy()])
        wanted = [a.numpy() + b.numpy(), a.numpy() - b.numpy(), b.numpy() + a.numpy(), b.numpy() - a.numpy(), b.numpy() + a.numpy()]
        np.testing.assert_array_equal(found[1], wanted)
        np.testing.assert_array_equal(found[0][:2], wanted[:2])
        assert np.isnan(found[0][2:]).all()


@pytest.mark.parity
@pytest.mark.parametrize("dtype", ("complex64", "complex128"))
def test_parts_of_complex_numbers_are_replaced_each_by_itself(dtype):
    kinds = "float('nan'), float('inf'), -float('inf'), 2.0"
    before = f"x = t.tensor([complex(a, b) for a in ({kinds}) for b in ({kinds})], dtype=t.{dtype})"
    calls = ("t.nan_to_num(x)", "t.nan_to_num(x, 1.5, 7.0, -8.0)", "t.nan_to_num(x.conj(), posinf=3.0)", "x.clone().nan_to_num_(2.0)", "x[::2].nan_to_num(1.0)")
    check({call: f"r = t.view_as_real(({call}).resolve_conj())" for call in calls}, before, kinds=True)
