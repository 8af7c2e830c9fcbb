"""Numbers of every kind written into tensors of every dtype: what is stored, or that it is refused."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import autograd_nb as ag  # noqa: E402

from .snippets import check  # noqa: E402

DTYPES = ("bool", "uint8", "int8", "int32", "int64", "float16", "float32", "float64", "complex64")
NUMBERS = ("0.25", "-1", "2.7", "-0.5", "float('inf')", "float('nan')", "300", "1e40", "2**63-1", "-2**63", "True", "1j",
           "2+0j", "0.5+0j", "np.float64(0.25)", "np.int64(7)")  # fmt: skip
#: ways to write a number ``v`` into ``x``, of shape (3,)
WAYS = {
    "fill_": "x.fill_(v); r = x",
    "fill": "r = t.fill(x, v)",
    "fill_ of an expanded tensor": "e = x[:1].expand(3); e.fill_(v); r = x",
    "zero_ of an expanded tensor": "e = x[:1].expand(3); e.zero_(); r = x",
    "x[0] =": "x[0] = v; r = x",
    "x[1:] =": "x[1:] = v; r = x",
    "x[...] =": "x[...] = v; r = x",
    "x[None] =": "x[None] = v; r = x",
    "x[mask] =": "x[m] = v; r = x",
    "x[index] =": "x[i] = v; r = x",
    "x[list] =": "x[[0, 2]] = v; r = x",
    "x[True] =": "x[t.tensor(True)] = v; r = x",
    "masked_fill_": "x.masked_fill_(m, v); r = x",
    "masked_fill": "r = x.masked_fill(m, v)",
    "index_fill_": "x.index_fill_(0, i, v); r = x",
    "index_fill": "r = x.index_fill(0, i, v)",
    "scatter_": "x.scatter_(0, i, v); r = x",
    "scatter": "r = x.scatter(0, i, v)",
    "full": "r = t.full((2,), v, dtype=x.dtype)",
    "full_like": "r = t.full_like(x, v)",
    "new_full": "r = x.new_full((2,), v)",
    "fill_diagonal_": "y = x.repeat(3, 1); y.fill_diagonal_(v); r = y",
}
#: the same for 0-d and one-element tensors made of the number
TENSORS = {
    "masked_fill_": "x.masked_fill_(m, t.tensor(v)); r = x",
    "masked_fill": "r = x.masked_fill(m, t.tensor(v))",
    "x[mask] =": "x[m] = t.tensor(v); r = x",
    "x[mask] = one element": "x[m] = t.tensor([v]); r = x",
    "x[index] =": "x[i] = t.tensor(v); r = x",
    "index_fill_": "x.index_fill_(0, i, t.tensor(v)); r = x",
    "scatter_": "x.scatter_(0, i, t.tensor(v)); r = x",
    "index_put_": "x.index_put_((i,), t.tensor(v)); r = x",
}
#: PyTorch writes numbers into float16 by way of float32 in some of these and then has infinity, or refuses them in others
UNEVEN = {("float16", "1e40"), ("float16", "2**63-1"), ("float16", "-2**63")}


def _check(ways: dict[str, str], dtype: str, numbers: tuple[str, ...]) -> None:
    for number in numbers:
        if (dtype, number) not in UNEVEN:
            before = f"x = t.tensor([0, 1, 3]).to(t.{dtype}); kept = x; m = t.tensor([True, False, True]); i = t.tensor([0, 2]); v = {number}"
            check({f"{name}, v = {number}, {dtype}": code for name, code in ways.items()}, before)


@pytest.mark.parity
@pytest.mark.parametrize("dtype", DTYPES)
def test_numbers(dtype):
    _check(WAYS, dtype, NUMBERS)


@pytest.mark.parity
@pytest.mark.parametrize("dtype", DTYPES)
def test_tensors_of_one_number(dtype):
    _check(TENSORS, dtype, tuple(n for n in NUMBERS if "np" not in n))


@pytest.mark.parity
def test_quick_assignments_convert_as_the_first():
    """The second assignment of a kind takes a shortcut; it must treat its number as the first did."""
    codes = {
        f"{dtype} {first} {second} {place}": f"x = t.zeros(3, dtype=t.{dtype}); i = t.tensor([0, 2]); m = x == 0\n"
        f"x[{place}] = {first}\nx[{place}] = {second}\nr = x"
        for dtype in ("uint8", "int64", "float32", "bool")
        for place in ("0", "1:", "i", "m")
        for first, second in (("1.0", "0.25"), ("1.0", "float('inf')"), ("1.0", "1e40"), ("1", "300"), ("1", "-1"))
    }
    check(codes)


@pytest.mark.parametrize("k", [2**63 - 1, -(2**63), 2**40, 3, -3, 4])
def test_triangles_beyond_the_matrix(k):
    for name in ("tril", "triu"):
        found = [getattr(t, name)(t.arange(1.0, 13.0).reshape(3, 4), k).tolist() for t in (ag, torch)]
        wanted = getattr(np, name)(np.arange(1.0, 13.0).reshape(3, 4), max(-9, min(k, 9))).tolist()  # (PyTorch's triu passes the end of int64)
        assert found[0] == wanted and (found[1] == wanted or k == 2**63 - 1)


@pytest.mark.parametrize("order", [1e40, -1e40, float("nan"), 2**63 - 1, -(2**63), 1e9])
def test_norms_of_one_element_of_any_order(order):
    for shape, dim in (((), None), ((1,), None), ((3, 1), 1), ((3, 1), (1,))):
        values = (np.arange(1.0, 4.0)[: int(np.prod(shape))].reshape(shape) * -2.5).astype(np.float32)
        found = [t.linalg.vector_norm(t.tensor(values), order, dim).tolist() for t in (ag, torch)]
        assert found[0] == found[1]


@pytest.mark.parity
def test_integers_beyond_64_bits():
    """They are refused by the same errors, those of pairs and lists by others than single ones."""
    big = {"2^63": 2**63, "2^64": 2**64, "-2^64": -(2**64)}
    calls = [
        "t.polygamma({}, t.ones(2))", "t.ones(2).polygamma_({})", "t.special.polygamma({}, t.ones(2))", "t.renorm(t.ones(2, 2), {}, 0, 1.0)",
        "t.renorm(t.ones(2, 2), 2, 0, {})", "t.dist(t.ones(2), t.zeros(2), {})", "t.linalg.vector_norm(t.ones(2), {})",
        "F.unfold(t.ones(1, 1, 4, 4), {})", "F.unfold(t.ones(1, 1, 4, 4), 2, stride={})", "F.fold(t.ones(1, 4, 4), {}, 2)",
    ]  # fmt: skip
    check({f"{call} {name}": "r = " + call.format(n) for call in calls for name, n in big.items()}, kinds=True)
    orders = {f"{call} {p}": f"r = {call.format(p)}" for call in calls[5:7] for p in ("True", "False", "1j")}
    check(orders, kinds=True)


@pytest.mark.parametrize("dtype", ["uint8", "int8", "int32", "int64"])
def test_bounds_of_integers_keep_their_digits(dtype):
    low, high = (0, 255) if dtype == "uint8" else (-(1 << (b := int(dtype[3:]) - 1)), (1 << b) - 1)
    before = f"x = t.tensor([{low}, 0, 1, 7, {high}], dtype=t.{dtype})"
    bounds = [(low, high), (0, high), (0, high - 1), (0.5, 7), (low, 0)] + ([(-(2**53) - 1, 2**53 + 1)] if dtype == "int64" else [])
    check({f"{name}{a, b}": f"r = {call.format(a, b)}" for a, b in bounds for name, call in {
        "hardtanh": "F.hardtanh(x, {}, {})", "hardtanh_": "F.hardtanh(x, {}, {}, inplace=True), x", "clamp": "x.clamp({}, {})"}.items()}, before)


def test_a_local_norm_of_integers_takes_whole_means():
    check({f"{size}, {k}": f"r = F.local_response_norm(x, {size}, k={k}, alpha=0.3)" for size in (1, 2, 3, 5) for k in (0.5, 1.0)},
          "x = t.arange(1, 37).reshape(1, 6, 6)")


@pytest.mark.parametrize("call", ["linspace(0, 1, M)", "bincount(t.tensor([1]), minlength=M)", "diag_embed(t.ones(2, 2), offset=M)",
                                  "ones(2, 3, 4).repeat(M // 2, 1, 1)", "nn.functional.one_hot(t.tensor(1), M)"])  # fmt: skip
def test_sizes_beyond_all_memory(call):
    for t in (torch, ag):
        with pytest.raises(RuntimeError):
            eval("t." + call, {"t": t, "M": 2**63 - 1})


@pytest.mark.parity
@pytest.mark.parametrize("number", ("True", "1", "3", "1.0", "2.5", "1j", "float('nan')", "2**63", "None", "'a'", "t.tensor(2)", "np.float64(2)"))
def test_numbers_of_other_kinds(number):
    """Which numbers an argument takes, and with what exception others are refused."""
    calls = ("t.gradient(x, edge_order={})", "t.gradient(x, spacing={})", "t.cdist(y, y, {})", "t.cdist(y, y[1:], {})", "t.nn.functional.pdist(y, {})",
             "t.topk(x, {})", "t.topk(x[0], {})", "t.kthvalue(x, {})")  # fmt: skip
    check({call: f"import numpy as np; r = {call.format(number)}" for call in calls}, "x = t.arange(5.) ** 2; y = x.reshape(5, 1)", kinds=True)


@pytest.mark.parity
@pytest.mark.parametrize("k", (0, 1))
def test_the_largest_of_a_number(k):
    code = "v, i = t.topk(x, {}, largest={}); r = v, i, t.autograd.grad(v, x)"
    check({f"{largest}": code.format(k, largest) for largest in (True, False)}, "x = t.tensor(3., requires_grad=True)")


@pytest.mark.parity
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_rounding_to_places_beyond_all_powers_of_ten(dtype):
    places = (2**63 - 1, -(2**63), 2**31, 309, -309, 308, -308, 39, -46)
    check({f"{n}": f"r = x.round(decimals={n}), x.clone().round_(decimals={n})" for n in places}, f"x = t.tensor([1.25, -3.0, 0.0, 1e3], dtype=t.{dtype})")
