"""Operands of ops that are seldom seen: lists of nothing, no columns, results in tensors of other kinds."""

from __future__ import annotations

import importlib

import pytest

pytest.importorskip("torch")

from .snippets import check


@pytest.mark.parity
def test_joining_nothing_along_any_dim():
    nothing, lists = "e = t.empty(0)\n", ("[e, e]", "[e]", "[e, x]", "[e, t.ones(2)]", "[e.long(), e]", "[e.requires_grad_(), e]", "[t.empty(0, 0), e]")
    check({
        f"{call} of {given} along {d}": f"{nothing}x = t.ones(2, 3)\nr = t.{call}({given}, {d})"
        for call in ("cat", "concat") for given in lists for d in range(-3, 4)
    }, kinds=True)  # fmt: skip
    check({
        "gradient": f"{nothing}e.requires_grad_(); t.cat([e, e], 1).sum().backward(); r = e.grad",
        "out": f"{nothing}r = t.cat([e, e], 3, out=t.ones(2))",
        "axis": f"{nothing}r = t.cat([e, e], axis=2)",
    })


@pytest.mark.parity
def test_masked_reductions_along_dims_of_a_list():
    mask = "mask=t.tensor([[True, False, True], [False, False, False]])"
    check({
        f"{name}, {dim}, {keepdim}, {more}": f"r = t.masked.{name}(t.arange(6.0).reshape(2, 3) + 1, dim={dim}, keepdim={keepdim}{own}, {more})"
        for name, own in {"sum": "", "prod": "", "mean": "", "amax": "", "amin": "", "var": ", unbiased=True", "std": ", unbiased=True"}.items()
        for dim in ("[]", "()", "[0]", "(1,)", "[0, 1]", "None", "1") for keepdim in (False, True) for more in ("", mask)
    })  # fmt: skip


@pytest.mark.parity
def test_histograms_of_no_dims():
    check({
        f"{shape}, {density}, {d}": f"h = t.histogramdd(t.zeros({shape}, dtype=t.{d}), [], density={density}); r = h.hist, len(h.bin_edges)"
        for shape in ("5, 0", "0, 0", "2, 5, 0") for density in (False, True) for d in ("float32", "float64")
    })  # fmt: skip


@pytest.mark.parity
def test_magnitudes_and_angles_of_complex_numbers_in_tensors_of_all_kinds():
    kinds = ("complex64", "complex128", "float16", "bfloat16", "float32", "float64", "int64", "bool")
    check({
        f"{name} of {d} into {o}": f"r = t.{name}(t.tensor([3 + 4j, -2 + 0j], dtype=t.complex128).to(t.{d}), out=t.zeros(2, dtype=t.{o}))"
        for name in ("abs", "absolute", "angle", "sgn", "square") for d in ("complex64", "complex128", "float32") for o in kinds
    }, kinds=True)  # fmt: skip


@pytest.mark.parity
def test_singular_complex_matrices():
    calls = {
        "inv": "t.linalg.inv(a)", "inverse": "a.inverse()", "inv_ex": "t.linalg.inv_ex(a).info", "solve": "t.linalg.solve(a, a)", "det": "t.linalg.det(a)",
        "solve_ex": "t.linalg.solve_ex(a, a).info", "slogdet": "t.linalg.slogdet(a).sign", "lu": "t.linalg.lu(a).U", "lu_ex": "t.linalg.lu_factor_ex(a).info",
        "cond": "t.linalg.cond(a, 1)", "power": "t.linalg.matrix_power(a, -1)", "triangle": "t.linalg.solve_triangular(a, a + 1, upper=True).isnan().all()",
        "vector": "t.linalg.solve_triangular(a, a[..., :1] + 1, upper=False).isnan().any()", "pinv": "t.linalg.pinv(a)",
    }  # fmt: skip
    made = {"zeros": "t.zeros({0}, {0}, dtype=t.{1})", "rank": "t.eye({0}, dtype=t.{1}) - t.eye({0}, dtype=t.{1})[-1:].T @ t.eye({0}, dtype=t.{1})[-1:]"}
    check({
        f"{name} of {d}, {kind}, {n}, {batch}": f"a = ({text.format(n, d)}).expand({batch}{n}, {n}).contiguous()\nr = {call}"
        for name, call in calls.items() for d in ("complex64", "complex128") for kind, text in made.items() for n in (1, 3, 40) for batch in ("", "2, ")
        if (name, kind) != ("triangle", "rank")
    }, kinds="subclasses")  # fmt: skip


@pytest.mark.parity
def test_nuclear_and_frobenius_norms():
    check({
        f"{name} of {shape}, {more}": f"r = t.{name}(t.arange(12.0).reshape({shape}){more})"
        for name in ("nuclear_norm", "frobenius_norm") for shape in ("3, 4", "2, 2, 3", "12")
        for more in (", (0, 1)", ", (-2, -1), True", ", (0, 1), out=t.zeros(3)", ", (0, 1), out=t.zeros(3, dtype=t.float64)") + ("",) * (name < "g")
    }, kinds=True)  # fmt: skip
    check({f"{shape}, {dim}": f"r = t.norm(t.ones({shape}), 'nuc', {dim})" for shape in ("()", "(1,)", "(2,)", "(0,)", "(2, 2)")
           for dim in ("()", "(0,)", "(0, 1)", "None")}, kinds=True)  # fmt: skip


@pytest.mark.parity
def test_images_that_are_in_both_orders():
    sizes = {"pixels": (4, 8, 1, 1, 1), "depthwise": (4, 4, 3, 4, 1), "gray": (1, 8, 3, 1, 1), "to gray": (4, 1, 3, 1, 1), "both": (1, 1, 3, 1, 2)}
    formats = {"images": "t.contiguous_format", "last": "t.channels_last"}
    check({
        f"{kind}, {name}, {x}, {w}": f"m = nn.{kind}({c}, {o}, {k}, groups={g}, dilation={d}).to(memory_format={formats[w]})\n"
        f"y = m(t.ones(2, {c}, 7, 7).to(memory_format={formats[x]}))\n"
        "r = y.stride(), y.is_contiguous(), y.is_contiguous(memory_format=t.channels_last), nn.ReLU()(y).stride()"
        for kind in ("Conv2d", "ConvTranspose2d") for name, (c, o, k, g, d) in sizes.items() for x in formats for w in formats
    })  # fmt: skip
    check({
        f"{call} of {shape}": f"r = {call}(t.ones({shape}).to(memory_format=t.channels_last)).stride()"
        for call in ("nn.AvgPool2d(1)", "nn.MaxPool2d(1)", "nn.ZeroPad2d(1)", "nn.Upsample(scale_factor=2)", "nn.AdaptiveAvgPool2d(1)", "t.nn.PixelShuffle(1)")
        for shape in ("(2, 1, 4, 4)", "(2, 3, 1, 1)", "(2, 3, 4, 4)", "(1, 1, 4, 4)", "(2, 3, 1, 4)")
    })


@pytest.mark.parity
def test_what_a_star_imports():
    check({
        name: f"import importlib\nm = importlib.import_module(t.__name__ + '.{name}')\nr = set(m.__all__) >= set({sorted(expected)!r}), "
        "[n for n in m.__all__ if not hasattr(m, n)]"
        for name in ("special", "signal.windows", "nn.init") for expected in [set(importlib.import_module(f"torch.{name}").__all__)]
    })  # fmt: skip


@pytest.mark.parametrize("draw", [
    "t.randn(3, generator=g)", "t.rand(3, generator=g) + x", "t.randint(0, 1000, (3,), generator=g)", "t.ones(50).bernoulli_(0.5, generator=g)",
    "t.randperm(50, generator=g)", "t.multinomial(t.ones(500), 3, generator=g)", "x + t.normal(0.0, 1.0, (3,), generator=g)",
    "t.randn(3) + t.rand(3, generator=g)",
])  # fmt: skip
def test_samples_of_a_vmap_draw_the_same_numbers_from_any_generator(draw):
    program = (
        "g = t.Generator().manual_seed(5); t.manual_seed(3)\ndef f(x): return {0}, {0}\n"
        "a, b = t.vmap(f, randomness='same', chunk_size={1})(t.zeros(5, 3)); g.manual_seed(5); t.manual_seed(3); c, d = f(t.zeros(3))\n"
        "r = [(y == y[0]).all() for y in (a, b)], (a[0] == c).all(), (b[0] == d).all(), (a != b).any()"
    )
    check({f"chunks of {size}": program.format(draw, size) for size in (None, 2, 1)})
