"""Operands of several dtypes: the result's dtype, the gradients', or that they are refused."""

from __future__ import annotations

from itertools import permutations, product

import pytest

torch = pytest.importorskip("torch")

from .snippets import check  # noqa: E402

MIXED = list(permutations(("float16", "float32", "float64"), 2))
NORMS = [
    "F.layer_norm(x, (4,), w, b)", "F.layer_norm(x, (4,), w)", "F.layer_norm(x, (4,), w, b.to(x.dtype))", "F.rms_norm(x, (4,), w)",
    "F.group_norm(x, 2, w, b)", "F.group_norm(x, 2, w, b.to(x.dtype))", "F.instance_norm(x, weight=w, bias=b)",
    "F.batch_norm(x, z, o, w, b, True)", "F.batch_norm(x, z, o, w, b, False)", "F.batch_norm(x, z, o, None, None, True)",
    "F.batch_norm(x, z, o, None, None, False)", "F.batch_norm(x, None, None, w, b, True)", "F.batch_norm(x, z.to(x.dtype), o.to(x.dtype), w, b, True)",
    "t.einsum('ncl,c->ncl', x, w)", "t.einsum('i,j', x[0, 0], w)", "t.einsum('ncl,c->nl', x, w)", "t.einsum('i,i->i', x[0, 0], w)",
    "t.einsum('i,i->', x[0, 0], w)", "t.einsum('i,j,k->ijk', x[0, 0], w, w)", "t.einsum('i,j->j', x[0, 0], w)", "x @ w", "F.linear(x, w.repeat(2, 1))",
]  # fmt: skip


@pytest.mark.parity
@pytest.mark.parametrize(("d", "e"), MIXED, ids=str)
def test_norms_and_products(d, e):
    before = (
        f"x = t.linspace(-1, 3, 32).reshape(2, 4, 4).to(t.{d}).requires_grad_(); w = t.linspace(.5, 1.5, 4).to(t.{e}).requires_grad_()\n"
        f"b = t.linspace(.1, .2, 4).to(t.{e}).requires_grad_(); z = t.zeros(4, dtype=t.{e}); o = t.ones(4, dtype=t.{e})"
    )
    after = "; g = t.autograd.grad((y * y).float().sum(), [x, w, b], allow_unused=True); r = y.dtype, y.float(), g, z, o"
    check({call: f"y = {call}{after}" for call in NORMS}, before, 1e-2)


BINARY = [
    "add", "sub", "mul", "div", "remainder", "fmod", "pow", "atan2", "hypot", "maximum", "minimum", "fmax", "fmin", "copysign", "xlogy",
    "float_power", "eq", "lt", "logical_and", "isclose", "dist",
]  # fmt: skip
#: which of them broadcast their operands first, so that a 0-d one counts in full
LOSSES = ["mse_loss", "l1_loss", "smooth_l1_loss", "binary_cross_entropy_with_logits", "kl_div"]


@pytest.mark.parity
@pytest.mark.parametrize(("d", "e"), list(permutations(("float32", "float64", "int64"), 2)), ids=str)
def test_numbers_and_vectors(d, e):
    codes = {}
    for shape, other in (("()", "(2,)"), ("(2,)", "()"), ("(1,)", "()"), ("()", "()"), ("(2,)", "(2,)")):
        for name in [f"t.{n}" for n in BINARY] + [f"F.{n}" for n in LOSSES if "int64" not in (d, e)]:
            codes[f"{name} of {shape} {d} and {other} {e}"] = (
                f"a = t.full({shape}, 0.75).to(t.{d}); b = t.full({other}, 0.5).to(t.{e}); q = [v.requires_grad_() for v in (a, b) if v.is_floating_point()]\n"
                f"y = {name}(a, b); r = y, t.autograd.grad(y.sum(), q, allow_unused=True) if y.requires_grad else None"
            )
    check(codes)


@pytest.mark.parity
@pytest.mark.parametrize("dtype", ("int64", "int32", "uint8", "int8"))
def test_powers_of_integers(dtype):
    calls = ["t.pow(x, -1)", "x.pow_(-1)", "x ** -1", "x ** t.tensor(-1)", "x.pow(t.tensor([-1, 2, 0]))", "2 ** x", "t.float_power(x, -1)", "x.pow_(-2)",
             "x ** -1.0", "x.pow_(0.5)", "x.pow_(2)", "x.pow_(t.tensor([-1] * 3))", "x.__ipow__(-1)", "x.reciprocal()", "1 / x", "x.pow_(0)"]  # fmt: skip
    check({call: f"r = {call}" for call in calls}, f"x = t.tensor([1, 2, -1]).to(t.{dtype}); kept = x")


TWO = ["fmod", "remainder", "div", "pow", "atan2", "hypot", "minimum", "xlogy", "copysign", "logaddexp"]


@pytest.mark.parity
@pytest.mark.parametrize("name", TWO)
def test_second_derivatives(name):
    """They have the dtypes of what they are derivatives by, also where these are reached by jumps alone."""
    before = "x = t.linspace(1, 3, 4).requires_grad_(); y = t.tensor(1.3, dtype=t.float64).requires_grad_()"
    code = f"""\
r = t.autograd.grad(t.{name}(x, y).square().sum(), (x, y), create_graph=True)
r = [*r, *t.autograd.grad(sum((g * g).sum() for g in r), (x, y))]"""
    check({name: code}, before, 1e-4)


ALL = ("float16", "float32", "complex64", "int64", "uint8", "bool")
PAIR_LOSSES = ["F.poisson_nll_loss(x, y)", "F.poisson_nll_loss(x, y, full=True)", "F.poisson_nll_loss(x, y, log_input=False)", "F.soft_margin_loss(x, y)",
               "F.mse_loss(x, y)", "F.l1_loss(x, y)", "F.smooth_l1_loss(x, y)", "F.hinge_embedding_loss(x, y)", "F.cosine_similarity(x, y)"]  # fmt: skip


@pytest.mark.parity
@pytest.mark.parametrize(("d", "e"), list(product(ALL, repeat=2)), ids=str)
def test_losses(d, e):
    """Also of complex numbers and truth values, where PyTorch computes with them."""
    before = f"x = t.linspace(.2, 1.2, 4).to(t.{d}) * t.tensor(1).to(t.{d}); y = t.linspace(.9, .1, 4).to(t.{e})"
    check({call: f"r = {call}; r = r.dtype, r.cfloat()" for call in PAIR_LOSSES}, before, 1e-2)


@pytest.mark.parity
@pytest.mark.parametrize("d", ALL)
def test_scans(d):
    """In place a scan takes no other dtype, and there is none of truth values."""
    given = ["", *(f", dtype=t.{e}" for e in ALL)]
    calls = [
        f"t.ones(3).to(t.{d}).{name}(0{dtype})" for name in ("cumsum", "cumsum_", "cumprod", "cumprod_") for dtype in given
    ]
    check({call: f"r = {call}" for call in calls}, kinds=True)


@pytest.mark.parity
def test_logdet_of_nothing():
    """Its gradient is complex, and reached by jumps from the real logarithm."""
    before = "x = t.zeros(0, 0, dtype=t.complex128).requires_grad_()"
    check({"second": """\
g, = t.autograd.grad(t.logdet(x @ x.mH).abs(), x, create_graph=True)
r = t.autograd.grad((g * g).abs().sum(), x)""", "tangent": "r = t.func.jvp(t.logdet, (x.detach(),), (x.detach(),))"}, before)  # fmt: skip


WITHOUT_DIMS = [
    "t.block_diag(a, b)", "t.cat([a, b[None]])", "t.stack([a, b.expand(2)])", "t.hstack([a, b])", "t.cartesian_prod(a, b[None])", "t.kron(a, b)",
    "t.tensordot(a, b, 0)", "t.tensordot(b, b, 0)", "t.tensordot(a, b, ([], []))", "t.einsum('i,->i', a, b)", "t.where(a > 0, a, b)",
    "t.clamp(a, b)", "t.trapezoid(a, dx=b)", "t.cumulative_trapezoid(a, dx=b)", "F.mse_loss(a, b)", "t.addcmul(a, b, b)", "a.masked_fill(a > 0, b)",
    "t.index_fill(a, 0, t.tensor([0]), b)", "t.isin(a, b)", "t.searchsorted(a, b)", "t.inner(b, b)", "t.lerp(a, a, b)", "t.meshgrid(a, b, indexing='ij')[0]",
    "t.linalg.tensorsolve(b, b)", "t.broadcast_tensors(a, b)[1]", "t.outer(a, b[None])", "t.dist(a, b)", "t.xlogy(b, a)",
]  # fmt: skip


@pytest.mark.parity
@pytest.mark.parametrize("d", ["float32", "float64", "int64", "float16"])
def test_operands_without_dims(d):
    """One beside a tensor with dims: what it counts for, and that it may stand there."""
    after = "r = y, y.stride()"
    check({
        f"{call} {e}": f"a = t.ones(2, dtype=t.{d}); b = t.ones((), dtype=t.{e}); y = {call}; {after}"
        for call in WITHOUT_DIMS for e in ("float32", "float64", "int64", "float16")
        if not ("lerp" in call and d != e)
    })  # fmt: skip


@pytest.mark.parity
def test_widths_that_are_tensors():
    check({f"{name} {dx}": f"r = t.{name}(t.ones(3), dx={dx})" for name in ("trapezoid", "cumulative_trapezoid")
           for dx in ("t.tensor(0.5, requires_grad=True)", "t.tensor([0.5])", "t.tensor(2)", "0.5", "'2'")})  # fmt: skip


KINDS = ["bool", "uint8", "int8", "int32", "int64", "float16", "bfloat16", "float32", "float64", "complex32", "complex64", "complex128"]


@pytest.mark.parity
@pytest.mark.parametrize("default", ("float32", "float64"))
def test_what_two_operands_become(default):
    operands = [f"t.zeros({shape}, dtype=t.{d})" for shape in ("(2,)", "()") for d in KINDS] + ["True", "1", "1.0", "1j"]
    codes = {
        "result_type": f"t.set_default_dtype(t.{default}); q = [{', '.join(operands)}]; r = [t.result_type(a, b) for a in q for b in q]",
        "promote_types": f"q = [{', '.join('t.' + d for d in KINDS)}]; r = [t.promote_types(a, b) for a in q for b in q]",
        "can_cast": f"q = [{', '.join('t.' + d for d in KINDS)}]; r = [t.can_cast(a, b) for a in q for b in q]",
    }
    check({name: f"try:\n    {code}\nfinally:\n    t.set_default_dtype(t.float32)" for name, code in codes.items()})


@pytest.mark.parity
@pytest.mark.parametrize("default", ("float16", "float32", "float64"))
def test_dtypes_of_numbers_that_fill_a_tensor(default):
    """A complex number fills no tensor of half precision, whatever the default is."""
    code = "q = t.tensor(1j), t.full((2,), 1j, dtype=t.complex32); r = [t.full((2,), v) for v in (1, 1.0, 1j, True, *q[:1], t.tensor(1.0))]"
    code += "; r = [v.dtype for v in (*q, *r)]"
    check({default: f"t.set_default_dtype(t.{default})\ntry:\n    {code}\nfinally:\n    t.set_default_dtype(t.float32)"})
