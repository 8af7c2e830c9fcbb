"""Linear algebra against PyTorch, where its op database does not tell: complex matrices, errors, edges.

Factors with a free sign or phase are compared by what does not depend on it.
"""

from __future__ import annotations

import warnings
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from torch.testing._internal.common_methods_invocations import op_db  # noqa: E402

import autograd_nb as ag  # noqa: E402

from .test_complex import check  # noqa: E402

COMPLEX = """
cholesky cholesky_inverse cholesky_solve cross geqrf lu_unpack lu_solve matrix_exp ormqr triangular_solve pinverse logdet linalg.det
linalg.vecdot linalg.eigvals linalg.eigvalsh linalg.householder_product linalg.ldl_factor linalg.ldl_solve linalg.lstsq
linalg.matrix_power linalg.multi_dot linalg.norm linalg.matrix_norm linalg.qr linalg.slogdet linalg.vander linalg.lu linalg.lu_solve
linalg.inv linalg.solve linalg.solve_triangular linalg.matrix_rank linalg.pinv linalg.svdvals linalg.tensorinv linalg.tensorsolve
"""


@pytest.mark.parity
@pytest.mark.parametrize("op", [op for op in op_db if op.name in COMPLEX.split() and not op.variant_test_name], ids=lambda op: op.name)
def test_complex_matrices(op):
    samples, passed, reasons = check(op, (torch.complex128,), 4)
    assert samples and passed == samples, "\n".join(reasons)


# --------------------------------------------------------------------------------- free signs and phases


def hermitian(a: Any) -> Any:
    return a @ a.mH


def lengths(*factors: Any) -> tuple:
    return tuple(x.abs() if k != 1 else x for k, x in enumerate(factors))


GAUGE_FREE = {
    "svd": lambda t, a: lengths(*t.linalg.svd(a, full_matrices=False)),
    "svd, wide": lambda t, a: lengths(*t.linalg.svd(a[..., :3, :], full_matrices=False)),
    "svd, full": lambda t, a: t.linalg.svd(a[..., :3]).S,
    "svd, tall, products": lambda t, a: (lambda u, s, v: (u @ u.mH, (u * s.unsqueeze(-2)) @ v))(*t.linalg.svd(a[..., :3], full_matrices=False)),
    "eigh": lambda t, a: (lambda w, v: (w, v.abs()))(*t.linalg.eigh(hermitian(a))),
    "eigh, upper": lambda t, a: (lambda w, v: (w, v @ v.mH))(*t.linalg.eigh(hermitian(a), UPLO="U")),
    "qr": lambda t, a: (lambda q, r: (q @ r, r.abs()))(*t.linalg.qr(a)),
    "svd_lowrank": lambda t, a: t.svd_lowrank(a, q=5)[1],
}


def derivatives(t: Any, function: Any, array: np.ndarray) -> list:
    """Values, gradient and second derivative of a weighted sum, which is real."""
    x = t.from_numpy(array.copy()).requires_grad_()
    out = function(t, x)
    out = out if isinstance(out, tuple) else (out,)

    def total(values):
        result = 0
        for k, y in enumerate(values):
            weights = t.from_numpy(np.cos(np.arange(y.numel()) + k).reshape(tuple(y.shape)))
            result = result + ((y.real + y.imag) * weights).sum() if y.is_complex() else result + (y * weights).sum()
        return result

    (g,) = t.autograd.grad(total(out), x, create_graph=True)
    (h,) = t.autograd.grad(total([g]), x)
    return [v.detach().resolve_conj().numpy() for v in (*out, g, h)]


@pytest.mark.parametrize("name", GAUGE_FREE)
@pytest.mark.parametrize("kind", ["real", "complex"])
def test_what_no_phase_changes(name, kind):
    r = np.random.default_rng(5)
    a = r.standard_normal((2, 5, 5))
    if kind == "complex":
        a = a + 1j * r.standard_normal(a.shape)
    for mine, theirs in zip(derivatives(ag, GAUGE_FREE[name], a), derivatives(torch, GAUGE_FREE[name], a), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-6, atol=1e-7 * max(1, np.abs(theirs).max()))


@pytest.mark.parametrize("name", ["svd", "eigh", "eig"])
def test_a_loss_that_depends_on_the_phase_is_refused(name):
    r = np.random.default_rng(5)
    a = r.standard_normal((4, 4)) + 1j * r.standard_normal((4, 4))
    for t in (torch, ag):
        x = t.from_numpy(a + a.conj().T if name == "eigh" else a).requires_grad_()
        vectors = getattr(t.linalg, name)(x)[0 if name == "svd" else 1]
        with pytest.raises(RuntimeError, match="ill-defined"):
            (vectors.imag * t.from_numpy(r.standard_normal((4, 4)))).sum().backward()


# -------------------------------------------------------------------------------------- errors and edges


def names(t: Any) -> dict:
    zero, eye = t.zeros(3, 3), t.eye(3)
    return {
        "torch": t, "L": t.linalg, "Z": zero, "E": eye, "D": eye.double(), "B": t.stack([eye, zero]), "R": t.ones(2, 3),
        "I": t.ones(2, 2, dtype=t.long), "v": t.ones(3), "H": t.ones(2, 2).half(), "N": zero * float("nan"),
    }  # fmt: skip


CALLS = """
L.inv(Z) | L.inv(B) | L.inv(R) | L.inv(I) | L.inv(v) | L.inv(H) | L.inv_ex(Z, check_errors=True) | L.solve(Z, E) | L.solve(B, E)
L.solve(R, E) | L.solve(E, D) | L.solve(v, E) | L.solve(E, v[0]) | L.solve(E, R) | L.solve(E, R, left=False) | L.solve(E, v, left=False)
L.solve(B + E, v) | L.solve(B + E, R) | L.solve(torch.ones(0, 3, 3), torch.ones(3, 2)) | L.cholesky(Z) | L.cholesky(B) | L.cholesky(R)
L.cholesky_ex(Z, check_errors=True) | L.cholesky(I) | torch.cholesky(Z) | torch.cholesky_inverse(R) | torch.cholesky_solve(v, E)
L.lu_factor(Z) | L.lu_factor(B) | L.lu_factor(v) | L.lu(v) | L.lu_factor(E, pivot=False) | L.lu_factor(I) | L.lu_solve(E, v, E)
L.lu_solve(E, v.int()[:2], E) | L.lu_solve(E, v.int(), D) | L.lu_solve(E, v.int() * 7, E) | L.lu_solve(R, v.int(), E)
torch.lu_unpack(E, v) | torch.lu_unpack(v, v.int()) | L.det(R) | L.det(I) | L.det(v) | L.det(Z) | L.slogdet(R) | L.slogdet(Z)
torch.logdet(R) | torch.logdet(Z) | torch.logdet(-E) | L.solve_triangular(E, R, upper=True) | L.solve_triangular(E, v, upper=True)
torch.triangular_solve(v, E) | torch.triangular_solve(R, E) | L.qr(v) | L.qr(I) | L.qr(E, mode='x') | L.householder_product(R, v)
L.householder_product(E, D) | L.householder_product(E, v.double()) | torch.ormqr(E, v, R) | torch.ormqr(E, v[:2], E)
L.svd(v) | L.svd(I) | L.svd(N) | L.svd(torch.stack([E, N])) | L.svdvals(N) | L.svd(E, driver='gesvd') | torch.svd(v) | L.eigh(R)
L.eigh(E, UPLO='X') | L.eigh(I) | L.eig(R) | L.pinv(v) | L.pinv(I) | L.lstsq(v, E) | L.lstsq(E, R) | L.lstsq(E, D) | L.lstsq(E, v[:2])
L.lstsq(E, E, driver='x') | L.matrix_norm(v) | L.matrix_norm(E, ord='x') | L.matrix_norm(E, ord=3) | L.matrix_norm(I)
L.matrix_norm(E, dim=(0, 0)) | L.norm(E, 'nuc', 0) | L.norm(v, 'fro') | L.norm(torch.ones(2, 2, 2), 2) | L.norm(E, 3)
L.matrix_norm(torch.ones(0, 3), 2) | L.matrix_norm(torch.ones(0, 3)) | L.cond(v) | L.cond(R, 1) | L.cond(E, 'x') | L.cond(Z) | L.cond(Z, 1)
L.cond(torch.ones(0, 0)) | L.cond(torch.ones(0, 3, 3)) | L.matrix_power(R, 2) | L.matrix_power(E, 1.5) | L.matrix_power(Z, -1)
L.matrix_power(I, 2) | L.matrix_power(v, 2) | L.matrix_exp(R) | L.matrix_exp(I) | L.matrix_rank(v) | L.matrix_rank(E, tol=0.5)
L.tensorinv(torch.ones(2, 3, 4)) | L.tensorinv(E, ind=0) | L.tensorsolve(torch.ones(2, 3, 4), E) | L.vander(v, N=1) | L.vander(v > 0)
torch.vander(E) | torch.vander(v, N=-1) | torch.vander(v, N=0) | torch.vander(v * 2) | torch.vander(v > 0) | L.multi_dot([E])
L.multi_dot([E, v, E]) | L.multi_dot([E, R]) | L.multi_dot([E, D]) | torch.chain_matmul(E, v) | L.cross(v, R)
L.cross(torch.ones(2, 2), torch.ones(2, 2)) | torch.cross(torch.ones(2, 2), torch.ones(2, 2)) | L.vecdot(v, v.double()) | L.ldl_factor(R)
L.svd(torch.ones(0, 3)) | L.svdvals(torch.ones(2, 0, 3)) | L.eigh(torch.ones(2, 0, 0)) | L.qr(torch.ones(3, 0), 'complete')
L.pinv(torch.ones(0, 3)) | L.inv(torch.ones(0, 0)) | L.det(torch.ones(0, 0)) | L.slogdet(torch.ones(2, 0, 0)) | L.cholesky(torch.ones(0, 0))
L.matrix_exp(torch.ones(0, 0)) | L.lu(torch.ones(0, 3)) | L.lstsq(torch.ones(3, 0), torch.ones(3, 2)) | L.matrix_rank(torch.ones(0, 3))
E.inverse() | E.det() | E.slogdet() | E.logdet() | E.lu() | E.lu_solve(E, v.int()) | E.qr() | E.svd() | E.pinverse() | E.matrix_power(2)
L.solve(H, H) | L.solve_ex(H, H) | L.tensorsolve(H, H[0]) | L.det(H) | L.slogdet(H) | L.lu(H) | L.cholesky(H) | L.cholesky_ex(H) | L.qr(H) | torch.qr(H)
L.svd(H) | L.svdvals(H) | torch.svd(H) | L.eigh(H) | L.eigvalsh(H) | L.eig(H) | L.eigvals(H) | L.cond(H) | torch.ormqr(H, H[0], H) | H.geqrf()
torch.svd_lowrank(H) | L.lu_solve(H, v.int()[:2], H) | L.ldl_factor(H) | L.vander(H) | L.solve_triangular(H, H, upper=True) | torch.logdet(H)
E.matrix_exp() | E.geqrf() | E.orgqr(v) | E.ormqr(v, E) | E.triangular_solve(E) | E.cross(E) | E.cholesky() | E.norm('nuc')
"""


def result(call: str, space: dict) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return eval(call, dict(space))
        except Exception as error:
            return error


def start(text: str) -> str:
    """What an error says before it goes into details."""
    return text.split("(")[0].split("\n")[0].rstrip(" .")


def test_calls():
    """Values, shapes and dtypes of edge cases; of errors the type and the words they begin with."""
    spaces = SimpleNamespace(mine=names(ag), theirs=names(torch))
    wrong = []
    for call in CALLS.replace("\n", "|").split("|"):
        if not call.strip():
            continue
        mine, theirs = result(call.strip(), spaces.mine), result(call.strip(), spaces.theirs)
        if isinstance(theirs, Exception):
            kind = "LinAlgError" if isinstance(theirs, torch.linalg.LinAlgError) else type(theirs).__name__
            if type(mine).__name__ != kind or start(str(theirs)) not in str(mine):
                wrong.append(f"{call}: {kind}: {start(str(theirs))}\n   instead: {type(mine).__name__}: {mine}")
            continue
        a, b = (list(x) if isinstance(x, tuple) else [x] for x in (mine, theirs))
        same = len(a) == len(b) and type(mine).__name__ == type(theirs).__name__
        for x, y in zip(a, b, strict=False):
            if isinstance(y, torch.Tensor):
                same = same and isinstance(x, ag.Tensor) and tuple(x.shape) == tuple(y.shape) and str(x.dtype) == str(y.dtype)
                same = same and np.allclose(x.numpy(), y.numpy(), atol=1e-5, equal_nan=True)
        if not same:
            wrong.append(f"{call}: {theirs}\n   instead: {mine}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.filterwarnings("ignore:torch.cholesky is deprecated")  # said once in a process, by PyTorch
@pytest.mark.parametrize("upper", [False, True])
@pytest.mark.parametrize("shape", [(0, 0), (0, 3, 3), (2, 0, 0), (0, 3, 4), (2, 4, 0)])
def test_cholesky_without_elements(shape, upper):
    """Lies in C order, takes matrices that are not square, refuses their derivative; the result is saved."""
    said = []
    for library in (torch, ag):
        x = library.zeros(shape, dtype=library.float64, requires_grad=True)
        row = []
        for given in (x, x.mT):
            y = library.cholesky(given, upper=upper)
            row.append((tuple(y.shape), tuple(y.stride())))
            for change in (False, True):
                if change:
                    y.detach().add_(1)
                try:
                    (grad,) = library.autograd.grad(y.sum(), x, retain_graph=True)
                    row.append((tuple(grad.shape), tuple(grad.stride())))
                except RuntimeError as error:
                    row.append(str(error).split("[")[0])
        said.append(row)
    assert said[1] == said[0]


NORMS = {
    "vector_norm": lambda t, x: t.linalg.vector_norm(x, dim=-1), "of all": lambda t, x: t.linalg.vector_norm(x), "norm": lambda t, x: t.norm(x, dim=-1),
    "dist": lambda t, x: t.dist(x[0], x.detach()[0]), "normalize": lambda t, x: t.nn.functional.normalize(x, dim=-1),
    "pairwise_distance": lambda t, x: t.nn.functional.pairwise_distance(x, x.detach() * 0, eps=0.0), "renorm": lambda t, x: t.renorm(x, 2, 0, 0.5),
}  # fmt: skip


@pytest.mark.parametrize("name", NORMS)
def test_second_derivatives_of_norms_at_zero(name):
    """The gradient jumps there: they are nan, and 0 of the numbers that the gradient is multiplied with."""
    for rows in ([[0.0, 0.0], [1.0, 2.0]], [[0.0, 0.0], [0.0, 0.0]]):
        found = []
        for t in (torch, ag):
            x = t.tensor(rows, dtype=t.float64).requires_grad_()
            c = t.tensor(1.5, dtype=t.float64).requires_grad_()
            (g,) = t.autograd.grad((NORMS[name](t, x) * c).sum(), x, create_graph=True)
            found.append([v.tolist() for v in (g, *t.autograd.grad((g * g).sum() + g.sum(), [x, c]))])
        for a, b in zip(*found, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-9)


@pytest.mark.parametrize("rcond", [0.0, -1.0, 1.0, 2.0, float("inf")])
@pytest.mark.parametrize("driver", ["gelsy", "gelsd", "gelss"])
def test_least_squares_where_no_singular_value_is_told_from_another(driver, rcond):
    """What gelsy computes with these is LAPACK's with columns free to be exchanged; PyTorch leaves open which are."""
    from scipy.linalg import lapack

    rng = np.random.default_rng(0)
    for m, n in ((4, 3), (3, 3), (3, 5)):
        a, b = rng.standard_normal((m, n)), rng.standard_normal((m, 2))
        mine, theirs = (t.linalg.lstsq(t.tensor(a), t.tensor(b), rcond=rcond, driver=driver) for t in (ag, torch))
        x = theirs.solution.numpy()
        if driver == "gelsy":
            x = lapack.dgelsy(a, np.vstack([b, np.zeros((max(n - m, 0), 2))]), np.zeros(n, np.int32), rcond, 1000)[1][:n]
        np.testing.assert_allclose(mine.solution.numpy(), x, rtol=1e-9, atol=1e-12)
        assert mine.rank.tolist() == theirs.rank.tolist() and mine.residuals.shape == theirs.residuals.shape


@pytest.mark.parity
def test_no_reflections():
    """Their product lies by columns as others do, and depends on nothing."""
    for shape, tau in (((5, 5), (0,)), ((2, 5, 3), (2, 0))):
        found = []
        for lib in (torch, ag):
            a, t = lib.ones(shape, requires_grad=True), lib.ones(tau, requires_grad=True)
            y = lib.linalg.householder_product(a, t)
            found.append((y.stride(), y.tolist(), lib.autograd.grad(y.sum(), [a, t], allow_unused=True)))
        assert found[0] == found[1]


@pytest.mark.parametrize("a", [(5, 5), (1, 5, 5), (0, 5, 5), (2, 5, 5), (1, 0, 0), (3, 1, 5, 5)])
def test_what_is_said_of_each_matrix_of_a_system(a):
    """`solve_ex` says it of the matrices as they are given, however they are broadcast."""
    for b in ((5, 3), (0, 5, 3), (1, 5, 3), (2, 5, 3), (5,), (2, 5), (1, 5), (0, 5), (5, 0), (2, 1, 5, 3)):
        for left, singular in ((True, False), (False, False), (True, True)):
            found: dict[Any, list[Any]] = {torch: [], ag: []}
            for lib, said in found.items():
                matrix = lib.eye(a[-1]).expand(a).clone()
                if singular and matrix.numel():
                    matrix[..., -1, :] = 0
                try:
                    x, info = lib.linalg.solve_ex(matrix, lib.ones(b), left=left)
                    said.append((tuple(x.shape), info.dtype is lib.int32, info.tolist()))
                    lib.linalg.solve(matrix, lib.ones(b), left=left)
                except RuntimeError as error:
                    said.append("singular" in str(error))
            assert found[torch] == found[ag], (b, left, singular, found)


@pytest.mark.parametrize("values", [
    np.ones((3, 4)), np.ones((4, 3)), np.outer([1, 2, 0.5], [1, -1, 3]), np.ones((2, 3, 3)), np.diag([2.0, 0, 0, 0]), np.eye(2),
], ids=["wide", "tall", "outer", "batch", "zeros", "equal"])  # fmt: skip
def test_second_derivative_of_singular_values_of_a_deficient_matrix(values):
    """Singular values that vanish take no part in Σs³, also where they are 0 to the bit (PyTorch's is nan there); equal ones have no derivative."""

    def slope(t):
        x = t.tensor(values, requires_grad=True)
        g, = t.autograd.grad(t.linalg.svdvals(x).pow(3).sum(), x, create_graph=True)
        return t.autograd.grad(g.square().sum(), x)[0].numpy()

    found, expected = slope(ag), slope(torch)
    if np.isnan(expected).any() and np.linalg.matrix_rank(values).max() == 1:
        s = np.linalg.svd(values)[1][..., :1, None]
        expected = 36 * s**2 * values  # |3s²·uvᴴ|² = 9s⁴, and by A that is 36s³·uvᴴ
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("dtype", ["float32", "complex64"])
@pytest.mark.parametrize("shape", [(100, 100), (10, 300), (300, 7), (1, 1)])
def test_traces_are_as_exact_as_their_dtype(dtype, shape):
    a = np.random.default_rng(0).uniform(-9, 9, shape).astype(dtype)
    exact = np.trace(a.astype("complex128" if dtype == "complex64" else "float64")).astype(dtype)
    for lib in (torch, ag):
        x = lib.tensor(a, requires_grad=True)
        y = x.trace()
        np.testing.assert_allclose(y.detach().numpy(), exact, rtol=1e-7)
        y.abs().backward()
        assert x.grad.dtype is x.dtype and x.grad.count_nonzero() == min(shape)


@pytest.mark.parity
def test_norms_that_are_views():
    """Of a matrix those of singular values that keep their dims, as in PyTorch, and no other."""

    def views(t, shape):
        x = t.linspace(0.1, 1.0, 12).reshape(shape)
        return {
            (norm, order, dim, keepdim): getattr(t.linalg, norm)(x, order, dim, keepdim)._is_view() for norm in ("matrix_norm", "norm")
            for order in (1, -1, 2, -2, float("inf"), -float("inf"), "fro", "nuc") for dim in ((-2, -1), (0, 1), (1, 0), (-1, 0)) for keepdim in (False, True)
        }  # fmt: skip

    for shape in ((3, 4), (2, 2, 3), (2, 1, 2, 3)):
        assert views(ag, shape) == views(torch, shape)
