"""Operands of ops that are seldom seen: lists of nothing, no columns, results in tensors of other kinds."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")

from .snippets import check  # noqa: E402


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
