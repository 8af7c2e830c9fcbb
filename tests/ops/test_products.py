"""einsum and its orders of contraction, Kronecker products, distances: against NumPy, and their derivatives by differences."""

import math
import os
import subprocess
import sys
import textwrap

import numpy as np
import pytest

import autograd_nb as torch
from autograd_nb import backends
from autograd_nb.ops.products.einsum import _best, _greedy

RNG = np.random.default_rng(5)


def leaf(*shape):
    return torch.tensor(RNG.normal(size=shape), requires_grad=True)


#: equation -> the operands' shapes
EINSUMS = {
    "ij,jk->ik": [(2, 3), (3, 4)],
    "ij,jk": [(2, 3), (3, 4)],
    "bij,bkj->bik": [(5, 2, 3), (5, 4, 3)],
    "bhqd,bhkd->bhqk": [(2, 3, 4, 5), (2, 3, 6, 5)],
    "...ij,...jk->...ik": [(4, 2, 3), (2, 4, 3, 5)],
    "i...,i...->...": [(3, 2), (3, 2)],
    "ii->i": [(3, 3)],
    "ii": [(3, 3)],
    "ij->ji": [(2, 3)],
    "ijk->": [(2, 3, 4)],
    "i,j->ij": [(2,), (3,)],
    "i,i": [(4,), (4,)],
    "iij,jk->ik": [(3, 3, 2), (2, 4)],
    " i j , j -> i ": [(2, 3), (3,)],
    "ij,jk,kl->il": [(2, 30), (30, 4), (4, 5)],
    "a,ab,bc,cd,de,e->": [(2,), (2, 3), (3, 4), (4, 5), (5, 2), (2,)],
}


@pytest.mark.parametrize("equation", EINSUMS)
def test_einsum_against_numpy(equation):
    arrays = [RNG.normal(size=s) for s in EINSUMS[equation]]
    np.testing.assert_allclose(
        torch.einsum(equation, *map(torch.tensor, arrays)).numpy(), np.einsum(equation.replace(" ", ""), *arrays)
    )


def test_sublists_name_what_letters_do():
    a, b = leaf(2, 3, 4), leaf(2, 4, 5)
    y = torch.einsum(a, [0, 1, 2], b, [0, 2, 3], [0, 3, 1])
    assert torch.equal(y, torch.einsum("abc,acd->adb", a, b))
    assert torch.equal(torch.einsum(a, [..., 7, 9]), a)


def test_a_size_of_1_stretches():
    a, b = RNG.normal(size=(2, 1)), RNG.normal(size=(3, 4))
    y = torch.einsum("ij,jk->ik", torch.tensor(a), torch.tensor(b))
    np.testing.assert_allclose(y.numpy(), np.broadcast_to(a, (2, 3)) @ b)


#: equation -> (the operands' shapes, the error's text)
REFUSED_EINSUMS = {
    "ij,jk": ([(2, 3)], "fewer operands were provided"),
    "i": ([(2,), (2,)], "more operands were provided"),
    "ij,jk->ik": ([(2, 3), (4, 5)], "subscript j has size 4 for operand 1 which does not broadcast with previously seen size 3"),
    "ij->k": ([(2, 3)], "output subscript k does not appear in the equation"),
    "ij->ii": ([(2, 3)], "output subscript i appears more than once"),
    "ii": ([(2, 3)], "subscript i is repeated for operand 0 but the sizes don't match"),
    "j": ([(2, 3)], "no ellipsis was given"),
    "..i": ([(2,)], "not part of any ellipsis"),
    "i1": ([(2, 3)], r"subscripts must be in \[a-zA-Z\]"),
}


@pytest.mark.parametrize("equation", REFUSED_EINSUMS)
def test_wrong_equations_of_einsum_are_refused(equation):
    shapes, text = REFUSED_EINSUMS[equation]
    with pytest.raises(RuntimeError, match=text):
        torch.einsum(equation, *[torch.ones(s) for s in shapes])


def test_orders_of_contraction():
    sizes = dict(enumerate((100, 2, 100, 2, 100)))
    chain = [frozenset((i, i + 1)) for i in range(4)]
    assert _best(chain, frozenset((0, 4)), sizes)[0] == (1, 2)  # through the narrow middle, not from the left
    assert _greedy(chain, frozenset((0, 4)), sizes)[0] == (1, 2)
    arrays = [RNG.normal(size=(sizes[i], sizes[i + 1])) for i in range(4)]
    y = torch.einsum("ab,bc,cd,de->ae", *map(torch.tensor, arrays))
    backends.opt_einsum.enabled = False
    try:
        z = torch.einsum("ab,bc,cd,de->ae", *map(torch.tensor, arrays))
    finally:
        backends.opt_einsum.enabled = True
    np.testing.assert_allclose(y.numpy(), z.numpy())


def test_einsum_derivatives():
    for equation, shapes in (
        ("bij,bjk->bki", [(2, 2, 3), (2, 3, 2)]),
        ("ij,jk,ki->", [(2, 3), (3, 2), (2, 2)]),
        ("ii,ij->j", [(2, 2), (2, 3)]),
    ):
        inputs = tuple(leaf(*s) for s in shapes)
        assert torch.autograd.gradcheck(lambda *t, e=equation: torch.einsum(e, *t), inputs)
        assert torch.autograd.gradgradcheck(lambda *t, e=equation: torch.einsum(e, *t), inputs)


def test_a_gradient_summed_over_dims_that_do_not_merge():
    a, b = leaf(2, 1, 2, 1, 2, 1, 2), leaf(2, 3, 2, 3, 2, 3, 2)
    (a * b).backward(torch.ones(b.shape, dtype=torch.float64))
    np.testing.assert_allclose(a.grad.numpy(), b.detach().numpy().sum((1, 3, 5), keepdims=True))


def test_kron():
    a, b = RNG.normal(size=(2, 3)), RNG.normal(size=(4, 2))
    np.testing.assert_allclose(torch.kron(torch.tensor(a), torch.tensor(b)).numpy(), np.kron(a, b))
    np.testing.assert_allclose(torch.kron(torch.tensor(a[0]), torch.tensor(b)).numpy(), np.kron(a[0], b))


# --------------------------------------------------------------------------------------------------- distances


@pytest.mark.slow
@pytest.mark.parametrize("p", [0, 0.5, 1, 1.5, 2, 3, math.inf])
def test_cdist(p):
    a, b = leaf(2, 4, 3), leaf(5, 3)
    y = torch.cdist(a, b, p)
    delta = a.detach().numpy()[:, :, None] - b.detach().numpy()[None, None]
    expected = (
        (delta != 0).sum(-1) if p == 0 else np.abs(delta).max(-1) if p == math.inf else (np.abs(delta) ** p).sum(-1) ** (1 / p)
    )
    np.testing.assert_allclose(y.detach().numpy(), expected, rtol=1e-6)
    if p:
        assert torch.autograd.gradcheck(lambda a, b: torch.cdist(a, b, p), (a, b))
        assert torch.autograd.gradgradcheck(lambda a, b: torch.cdist(a, b, p), (a, b))


def test_euclidean_distances_by_products():
    a, b = leaf(30, 4), leaf(28, 4)
    y = torch.cdist(a, b, compute_mode="use_mm_for_euclid_dist")
    z = torch.cdist(a, b, compute_mode="donot_use_mm_for_euclid_dist")
    assert torch.allclose(y, z)
    w = torch.tensor(RNG.normal(size=(30, 28)))
    first, second = torch.autograd.grad(y, (a, b), w), torch.autograd.grad(z, (a, b), w)
    assert all(torch.allclose(s, t) for s, t in zip(first, second, strict=True))


@pytest.mark.parametrize("p", [0, 0.5, 1, 1.5, 2, 3, math.inf])
def test_a_distance_of_0_has_gradient_0(p):
    x = torch.ones(3, 2, dtype=torch.float64, requires_grad=True)
    (g,) = torch.autograd.grad(torch.cdist(x, x.detach(), p).sum(), x, create_graph=True)
    assert g.tolist() == [[0.0, 0.0]] * 3
    if g.requires_grad:
        (h,) = torch.autograd.grad(g.sum(), x, allow_unused=True)
        assert h is None or not h.isnan().any()


@pytest.mark.parametrize("width", [0, 1, 2, 3, 8, 9])
@pytest.mark.parametrize("rows", [(5, 7), (40, 30), (3, 4500), (4500, 3)])  # beyond what is compared together, of one column too
def test_euclidean_distances_of_rows_of_every_width(rows, width):
    """Short rows have kernels of their own, which take rows of the other operand as columns; against the definition, with batches."""
    a, b = leaf(2, 1, rows[0], width), leaf(3, rows[1], width)
    y = torch.cdist(a, b)
    difference = a.detach().numpy()[..., None, :] - b.detach().numpy()[:, None]
    expected = np.sqrt((difference**2).sum(-1))
    assert y.shape == expected.shape
    assert np.allclose(y.detach().numpy(), expected, atol=1e-6)
    weight = np.random.default_rng(1).normal(size=expected.shape)
    y.backward(torch.tensor(weight))
    pull = weight[..., None] * np.divide(difference, expected[..., None], where=expected[..., None] > 0, out=np.zeros_like(difference))
    assert np.allclose(a.grad.numpy(), pull.sum(1, keepdims=True).sum(-2))
    assert np.allclose(b.grad.numpy(), -pull.sum(0).sum(-3))


def test_pdist_is_the_upper_triangle_of_cdist():
    x = leaf(5, 3)
    i, j = torch.triu_indices(5, 5, 1)
    for p in (1.0, 2.0, 3.0):
        assert torch.allclose(torch.pdist(x, p), torch.cdist(x, x, p)[i, j])
        assert torch.autograd.gradcheck(lambda x, p=p: torch.pdist(x, p), (x,))
        assert torch.autograd.gradgradcheck(lambda x, p=p: torch.pdist(x, p), (x,))


#: name -> (the operands' shapes, p, the error's text)
REFUSED_DISTANCES = {
    "a vector": (((3,), (2, 3)), 2, "at least 2D tensors, X1 got: 1D"),
    "other columns": (((2, 3), (2, 4)), 2, "X1 and X2 must have the same number of columns. X1: 3 X2: 4"),
    "a negative p": (((2, 3), (2, 3)), -1, "non-negative p values"),
}


@pytest.mark.parametrize("case", REFUSED_DISTANCES)
def test_wrong_operands_of_cdist_are_refused(case):
    shapes, p, text = REFUSED_DISTANCES[case]
    with pytest.raises(RuntimeError, match=text):
        torch.cdist(*[torch.ones(s) for s in shapes], p)


def test_renorm():
    x = leaf(3, 4)
    y = x.renorm(2, 0, 1.0)
    assert (y.detach().norm(dim=1) <= 1).all()
    short = torch.full((2, 2), 0.1)
    assert torch.equal(short.renorm(2, 0, 1.0), short)
    assert torch.autograd.gradgradcheck(lambda x: x.renorm(2, 1, 0.5), (x,))


ALONE = """
import sys
BEFORE
import autograd_nb.kernels.products.matmul
import autograd_nb as torch
assert ("scipy.linalg" in sys.modules) is WHOLE
x = torch.ones(2, 3, dtype=torch.complex64)
assert (x @ x.t()).tolist() == [[3, 3], [3, 3]]
import scipy.linalg, scipy.linalg.cython_blas
assert "dgemm" in scipy.linalg.cython_blas.__pyx_capi__
assert scipy.linalg.solve([[2.0]], [4.0]) == 2.0
"""


#: every function of LAPACK that kernels call, and after each that nothing else was imported
FACTORED = """
import sys
BEFORE
import autograd_nb as torch
from autograd_nb.kernels.products import blas
for kind in (torch.float32, torch.float64, torch.complex64, torch.complex128):
    x = 30 * torch.eye(30, dtype=kind) + 1
    inverse = torch.linalg.inv(x)
    torch.linalg.cholesky(x), torch.linalg.qr(x[:, :25]), torch.linalg.svd(x), torch.linalg.eigh(x), torch.linalg.eig(x)
    assert (x @ inverse - torch.eye(30, dtype=kind)).abs().max() < 1e-5
assert ("scipy.linalg" in sys.modules) is WHOLE, WHOLE
import scipy.linalg, scipy.linalg.cython_lapack
assert "dgetrf" in scipy.linalg.cython_lapack.__pyx_capi__
assert scipy.linalg.solve([[2.0]], [4.0]) == 2.0
"""


@pytest.mark.parametrize(
    "before, whole",
    [
        ("", False),
        ("import scipy.linalg", True),
        ("from autograd_nb.kernels.products import blas; blas.PathFinder = None", True),
        ("from autograd_nb.kernels.products import blas; blas._multiply_nothing = lambda: 1 / 0", True),
    ],
)
def test_blas_is_bound_without_the_rest_of_scipys_linear_algebra(before, whole):
    """Its import would take longer than NumPy's; where the extension cannot be found alone, all is imported."""
    program = ALONE.replace("BEFORE", before).replace("WHOLE", str(whole))
    subprocess.run([sys.executable, "-c", program], check=True)


@pytest.mark.parametrize(
    "before, whole",
    [
        ("", False),
        ("import scipy.linalg", True),
        ("from autograd_nb.kernels.products import blas; blas._factor_ones = lambda: 1 / 0", True),
    ],
)
def test_lapack_is_bound_without_the_rest_of_scipys_linear_algebra(before, whole):
    """Its import had been most of a small program's second start; kernels are compiled in the first process, and known in the second."""
    program = FACTORED.replace("BEFORE", before).replace("WHOLE", str(whole))
    for _ in range(2):
        subprocess.run([sys.executable, "-c", program], check=True)


def test_a_product_that_blas_refuses_is_an_error():
    """BLAS tells by its return code that it could not be called, and has then written nothing."""
    code = """
        import numpy as np
        from autograd_nb.kernels.products import matmul
        matmul._xxgemm = lambda *a: -1
        a = np.ones(4, np.complex128)
        try:
            matmul.gemm(a, False, 2, a, False, 2, a.copy(), 2, 2, 2, 2, 1, 0)
        except RuntimeError as error:
            print(error)
    """
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1"}
    run = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], env=environment, capture_output=True, text=True, check=False)
    assert run.stdout.strip() == "BLAS could not be called for a matrix product", run.stderr


@pytest.mark.parametrize(("m", "k", "n"), [(403, 310, 305), (1030, 900, 40), (57, 5000, 130)])
@pytest.mark.parametrize("turned", ["nn", "tn", "nt"])
def test_large_products_have_the_bits_of_small_ones(m, k, n, turned):
    """Those of more than `LAID_OUT` products of elements come from another kernel, which lays rows side by side."""
    numbers = np.random.default_rng(0)
    a = torch.tensor(numbers.standard_normal((k, m) if turned[0] == "t" else (m, k)).astype(np.float32))
    b = torch.tensor(numbers.standard_normal((n, k) if turned[1] == "t" else (k, n)).astype(np.float32))
    a, b = a.t() if turned[0] == "t" else a, b.t() if turned[1] == "t" else b
    whole, exact = (a @ b).numpy(), a.numpy().astype(np.float64) @ b.numpy().astype(np.float64)
    for i in (min(i, max(m - 40, 0)) for i in range(0, m, 40)):  # (fewer rows than 25 have a kernel of their own)
        assert np.array_equal(whole[i : i + 40], (a[i : i + 40] @ b).numpy())
    assert np.abs(whole - exact).max() <= 1e-5 * np.abs(exact).max()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("m", [2, 3, 4, 9, 24, 25])
def test_products_of_few_rows_by_rows(dtype, m):
    """A linear layer's of few samples: both operands' terms lie side by side, each element is the dot product of two rows."""
    for k in (32 * m, 32 * m + 7, 800):
        for n in (2, 5, 6, 13, 40):
            x, w, c = torch.randn(3, m, k + 2, dtype=dtype)[:, :, 1:-1], torch.randn(3, n, k, dtype=dtype), torch.randn(3, m, n, dtype=dtype)
            exact = x.numpy().astype(np.float64) @ w.numpy().astype(np.float64).transpose(0, 2, 1)
            near = {"rtol": 0, "atol": 1e-13 * k if dtype is torch.float64 else 2e-6 * k}
            for i in range(3):
                assert np.allclose(x[i] @ w[i].t(), exact[i], **near)
                assert np.allclose(torch.addmm(c[i], x[i], w[i].t()), exact[i] + c[i].numpy(), **near)
            assert np.allclose(x @ w.mT, exact, **near)
            assert np.allclose(torch.baddbmm(c, x, w.mT), exact + c.numpy(), **near)


def test_strategies_of_einsum_are_set_for_a_while():
    import autograd_nb.backends.opt_einsum as order

    a, b, c = torch.randn(2, 3), torch.randn(3, 4), torch.randn(4, 2)
    expected = (a @ b @ c).tolist()
    assert torch.backends.opt_einsum is order
    for options in ({"enabled": False}, {"strategy": "greedy"}, {"enabled": True, "strategy": "optimal"}, {}):
        with order.flags(**options):
            assert (order.enabled, order.strategy) == (options.get("enabled", True), options.get("strategy", "auto"))
            assert torch.allclose(torch.einsum("ij,jk,kl->il", a, b, c), torch.tensor(expected))
        assert (order.enabled, order.strategy) == (True, "auto")
    for wrong in ({"strategy": "quick"}, {"enabled": False, "strategy": "greedy"}):
        with pytest.raises(ValueError, match="strategy"), order.flags(**wrong):
            pass
        assert (order.enabled, order.strategy) == (True, "auto")
