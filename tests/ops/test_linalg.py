"""Linear algebra, against NumPy and by what the results must satisfy; derivatives by differences."""

import numpy as np
import pytest

import autograd_nb as torch
from autograd_nb import linalg
from autograd_nb.autograd import gradcheck, gradgradcheck

pytestmark = pytest.mark.slow  # many kernels

#: below and above the sizes at which kernels turn from loops to LAPACK and to blocks
SIZES = [1, 3, 25, 70]


def matrices(*shape, dtype="float64", seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def definite(*shape, **kw):
    a = matrices(*shape, **kw)
    return a @ a.swapaxes(-1, -2) + shape[-1] * np.eye(shape[-1], dtype=a.dtype)


def close(x, y, dtype="float64"):
    tolerance = 1e-9 if dtype == "float64" else 2e-4
    np.testing.assert_allclose(x.numpy() if isinstance(x, torch.Tensor) else x, y, rtol=tolerance, atol=tolerance * max(1.0, np.abs(y).max(initial=0)))


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("n", SIZES)
def test_lu_and_what_it_solves(n, dtype):
    a, b = matrices(2, n, n, dtype=dtype), matrices(2, n, 4, dtype=dtype, seed=1)
    t = torch.tensor(a)
    p, lower, upper = linalg.lu(t)
    close(p @ lower @ upper, a, dtype)
    close(t @ linalg.solve(t, torch.tensor(b)), b, dtype)
    close(linalg.solve(t, torch.tensor(b.swapaxes(-1, -2)), left=False) @ t, b.swapaxes(-1, -2), dtype)
    close(t @ linalg.solve(t, torch.tensor(b[..., 0])).unsqueeze(-1), b[..., :1], dtype)
    close(t @ linalg.inv(t), np.broadcast_to(np.eye(n), a.shape), dtype)
    sign, log = linalg.slogdet(t)
    close(sign, np.linalg.slogdet(a)[0], dtype)
    close(log, np.linalg.slogdet(a)[1], dtype)
    close(linalg.det(t / n), np.linalg.det(a / n), dtype)  # (float32 holds no determinant of the large one)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("shape", [(16, 12, 8), (33, 3, 5), (5, 1, 1), (5, 3, 1), (7, 8, 3), (6, 16, 16)])
def test_qr_of_many_small_matrices_is_that_of_each(shape, dtype):
    a = np.random.default_rng(0).standard_normal(shape).astype(dtype)
    far = 20 if dtype == "float32" else 170  # squares of such numbers are no numbers of the dtype
    a[0], a[3, :, 0] = 0, 0
    a[1] *= a.dtype.type(f"1e-{far}")
    a[2] *= a.dtype.type(f"1e{far}")
    a[4, 0, 0] = np.nan
    t = torch.tensor(a)
    for mode in ("reduced", "complete", "r"):
        together = linalg.qr(t, mode)
        turned = linalg.qr(t.flip(0), mode)
        for k in range(len(a)):
            scale = max(np.abs(a[k]).max(), np.finfo(dtype).tiny)
            for found, alone, unit in zip(together, linalg.qr(t[k], mode), (1, scale), strict=True):
                if found.numel():
                    bound = 100 * np.finfo(dtype).eps
                    np.testing.assert_allclose(found[k].numpy() / unit, alone.numpy() / unit, atol=bound, rtol=bound)
        for found, other in zip(together, turned, strict=True):
            assert not found.numel() or np.array_equal(found.numpy(), other.numpy()[::-1], equal_nan=True)


@pytest.mark.parametrize("shape", [(2, 3, 5), (2, 5, 3), (30, 40), (40, 30)])
def test_factors_of_rectangles(shape):
    a = matrices(*shape)
    t = torch.tensor(a)
    m, n = shape[-2:]
    p, lower, upper = linalg.lu(t)
    close(p @ lower @ upper, a)
    for mode in ("reduced", "complete"):
        q, r = linalg.qr(t, mode)
        close(q @ r, a)
        close(q.mT @ q, np.broadcast_to(np.eye(q.shape[-1]), (*shape[:-2], q.shape[-1], q.shape[-1])))
        close(linalg.qr(t, "r").R.abs(), np.abs(linalg.qr(t).R.numpy()))
    for full in (False, True):
        u, s, vh = linalg.svd(t, full_matrices=full)
        k = min(m, n)
        assert (u.shape[-1], vh.shape[-2]) == ((m, n) if full else (k, k))
        close((u[..., :k] * s.unsqueeze(-2)) @ vh[..., :k, :], a)
    close(linalg.svdvals(t), np.linalg.svd(a, compute_uv=False))
    close(linalg.pinv(t), np.linalg.pinv(a))
    packed, tau = torch.geqrf(t)
    if m >= n:
        close(linalg.householder_product(packed, tau), linalg.qr(t).Q.numpy())
    b = matrices(*shape[:-1], 2, seed=1)
    close(torch.ormqr(packed, tau, torch.tensor(b)), linalg.qr(t, "complete").Q.numpy() @ b)
    close(linalg.lstsq(t, torch.tensor(b)).solution, np.linalg.pinv(a) @ b)


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("upper", [False, True])
def test_triangles(n, upper):
    a, b = definite(2, n, n), matrices(2, n, 3, seed=1)
    t, x = torch.tensor(a), torch.tensor(b)
    factor = linalg.cholesky(t, upper=upper)
    close(factor.mT @ factor if upper else factor @ factor.mT, a)
    assert not (factor.tril(-1) if upper else factor.triu(1)).any()
    close(t @ torch.cholesky_solve(x, factor, upper=upper), b)
    close(torch.cholesky_inverse(factor, upper=upper), np.linalg.inv(a))
    one = np.triu(a) if upper else np.tril(a)
    for k in (1, 3):  # a column has its own loops
        close(linalg.solve_triangular(t, x[..., :k], upper=upper), np.linalg.solve(one, b[..., :k]))
        trans = torch.triangular_solve(x[..., :k], t, upper=upper, transpose=True).solution
        close(trans, np.linalg.solve(one.swapaxes(-1, -2), b[..., :k]))


@pytest.mark.parametrize("n", [1, 4, 40])
def test_eigenvalues(n):
    a = definite(2, n, n)
    w, v = linalg.eigh(torch.tensor(a))
    close(w, np.linalg.eigvalsh(a))
    close((v * w.unsqueeze(-2)) @ v.mT, a)
    b = matrices(2, n, n)
    w, v = linalg.eig(torch.tensor(b))
    np.testing.assert_allclose(b @ v.numpy(), v.numpy() * w.numpy()[..., None, :], atol=1e-10)
    np.testing.assert_allclose(np.sort_complex(linalg.eigvals(torch.tensor(b)).numpy()), np.sort_complex(np.linalg.eigvals(b)), atol=1e-10)


def test_batches_strides_and_empty_matrices():
    a = matrices(3, 4, 5, 5)
    t = torch.tensor(a)[:, ::2].mT
    close(linalg.inv(t), np.linalg.inv(a[:, ::2].swapaxes(-1, -2)))
    b = torch.tensor(matrices(7, 1, 5, 2, seed=1))
    assert linalg.solve(t[0, 0], b).shape == (7, 1, 5, 2)  # one matrix for all right sides
    assert linalg.solve(t[0], b).shape == (7, 2, 5, 2)
    nothing = torch.ones(2, 0, 0)
    assert linalg.det(nothing).tolist() == [1.0, 1.0]
    assert linalg.inv(nothing).shape == (2, 0, 0)
    assert [x.shape for x in linalg.svd(torch.ones(0, 3))] == [(0, 0), (0,), (3, 3)]
    assert linalg.lstsq(torch.ones(3, 0), torch.ones(3, 2)).solution.shape == (0, 2)
    assert linalg.qr(torch.ones(3, 0), "complete").Q.shape == (3, 3)


def test_functions_of_matrices():
    a = matrices(2, 4, 4)
    t = torch.tensor(a)
    close(linalg.matrix_power(t, 5), np.linalg.matrix_power(a, 5))
    close(linalg.matrix_power(t, -3), np.linalg.matrix_power(a, -3))
    w, v = np.linalg.eig(a * 9)
    close(torch.matrix_exp(t * 9), ((v * np.exp(w)[:, None]) @ np.linalg.inv(v)).real)
    close(linalg.matrix_exp(t) @ linalg.matrix_exp(-t), np.broadcast_to(np.eye(4), a.shape))
    assert linalg.matrix_rank(torch.ones(3, 4)).item() == 1
    close(linalg.cond(t, "fro"), np.linalg.cond(a, "fro"))
    chain = [matrices(2, 30, seed=1), matrices(30, 4), matrices(4, 20), matrices(20, seed=3)]
    close(linalg.multi_dot([torch.tensor(x) for x in chain]), np.linalg.multi_dot(chain))
    for order in ("fro", "nuc", 1, -1, 2, -2, np.inf, -np.inf):
        close(linalg.matrix_norm(t, order), np.array([np.linalg.norm(x, order) for x in a]))
    close(linalg.vander(torch.tensor(a[0]), N=4), np.stack([np.vander(x, 4, increasing=True) for x in a[0]]))
    close(torch.cross(t[..., :3], t[..., 1:], dim=-1), np.cross(a[..., :3], a[..., 1:]))
    tensor = matrices(2, 3, 6)
    close(linalg.tensorinv(torch.tensor(tensor)), np.linalg.tensorinv(tensor))
    close(linalg.tensorsolve(torch.tensor(tensor), torch.ones(2, 3).double()), np.linalg.tensorsolve(tensor, np.ones((2, 3))))


def test_low_rank():
    torch.manual_seed(0)
    a = matrices(40, 3) @ matrices(3, 20, seed=1)
    u, s, v = torch.svd_lowrank(torch.tensor(a), q=4)
    close((u * s) @ v.mT, a)
    u, s, v = torch.pca_lowrank(torch.tensor(a), q=3)
    close((u * s) @ v.mT, a - a.mean(0))


#: name -> function of a batch of square matrices
DIFFERENTIABLE = {
    "det": linalg.det,
    "slogdet": lambda a: linalg.slogdet(a)[1],
    "inv": linalg.inv,
    "solve": lambda a: linalg.solve(a, a[..., :2] + 1),
    "cholesky": lambda a: linalg.cholesky(a @ a.mT + torch.eye(3).double()),
    "lu": lambda a: linalg.lu(a)[1:],
    "lu of rectangles": lambda a: (linalg.lu(a[..., :2])[2], linalg.lu(a[..., :2, :])[1]),
    "qr": lambda a: linalg.qr(a),
    "qr of wide matrices": lambda a: linalg.qr(a[..., :2, :]),
    "svd": lambda a: linalg.svd(a[..., :2], full_matrices=False).U.abs(),
    "eigh": lambda a: linalg.eigh(a + a.mT).eigenvectors.abs(),
    "eigvalsh": lambda a: linalg.eigvalsh(a + a.mT),
    "pinv": lambda a: linalg.pinv(a[..., :2]),
    "lstsq": lambda a: linalg.lstsq(a[..., :2], a[..., 2:], driver="gelsd")[:2],
    "matrix_exp": linalg.matrix_exp,
    "matrix_power": lambda a: linalg.matrix_power(a, -2),
    "householder_product": lambda a: linalg.householder_product(a[..., :2], a[..., 0, :2]),
    "norms": lambda a: (linalg.matrix_norm(a, "nuc"), linalg.matrix_norm(a, -2), linalg.cond(a)),
}


@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_first_and_second_derivatives_against_differences(name):
    function = DIFFERENTIABLE[name]
    x = torch.tensor(matrices(2, 3, 3, seed=4), requires_grad=True)
    assert gradcheck(function, x)
    assert gradgradcheck(function, x)


def test_determinant_of_singular_matrices():
    a = np.array([[[1.0, 2, 3], [2, 4, 6], [1, 0, 1]], [[2.0, 0, 1], [0, 3, 0], [1, 0, 1]]])
    x = torch.tensor(a, requires_grad=True)
    assert gradcheck(linalg.det, x)
    assert gradgradcheck(linalg.det, x)
    tiny = torch.tensor(1e-9 * np.eye(3), requires_grad=True)  # a small determinant is no sign of a singular matrix
    linalg.det(tiny).backward()
    np.testing.assert_allclose(tiny.grad.numpy(), 1e-18 * np.eye(3))


#: PyTorch's key phrase -> function of regular and of singular matrices
FAILURES = {
    r"linalg.inv: \(Batch element 1\): The diagonal element 3 is zero": lambda a, s: linalg.inv(s),
    "linalg.inv: The diagonal element 3 is zero": lambda a, s: linalg.inv(s[1]),
    r"linalg.solve: \(Batch element 1\): The solver failed because the input matrix is singular": lambda a, s: linalg.solve(s, s),
    r"cholesky: \(Batch element 0\): .*leading minor of order 1 is not positive-definite": lambda a, s: linalg.cholesky(-a),
    r"linalg.svd: \(Batch element 0\): .*contained non-finite values": lambda a, s: linalg.svd(a / 0),
    r"linalg.eigh: \(Batch element 0\): The algorithm failed to converge": lambda a, s: linalg.eigh(a * float("nan")),
}  # fmt: skip


@pytest.mark.parametrize("text", FAILURES)
def test_failures_name_the_matrix(text):
    call = FAILURES[text]
    a = torch.tensor(definite(2, 3, 3))
    s = torch.tensor(np.stack([np.eye(3), np.diag([1.0, 2.0, 0.0])]))
    with pytest.raises(linalg.LinAlgError, match=text):
        call(a, s)


#: PyTorch's key phrase -> (call, type of the error)
REFUSED = {
    "must be batches of square matrices, but they are 2 by 3": (lambda: linalg.inv(torch.ones(2, 3)), RuntimeError),
    "must have at least 2 dimensions": (lambda: linalg.inv(torch.ones(3)), RuntimeError),
    "Expected a floating point or complex tensor as input. Got Long": (lambda: linalg.det(torch.ones(2, 2).long()), RuntimeError),
    "same dtype.*Float and B of type Double": (lambda: linalg.solve(torch.eye(3), torch.eye(3).double()), RuntimeError),
    "Incompatible shapes": (lambda: linalg.solve(torch.eye(3), torch.ones(2, 2)), RuntimeError),
    "Pivots given to lu_solve": (lambda: linalg.lu_solve(torch.eye(3), torch.ones(3).int() * 7, torch.eye(3)), RuntimeError),
    "unrecognized mode 'x'": (lambda: linalg.qr(torch.eye(3), "x"), RuntimeError),
    "UPLO argument": (lambda: linalg.eigh(torch.eye(3), "X"), RuntimeError),
    "Order 3 not supported": (lambda: linalg.matrix_norm(torch.eye(3), 3), RuntimeError),
    "must have length 3": (lambda: linalg.cross(torch.eye(2), torch.eye(2)), RuntimeError),
    "at least 2 tensors": (lambda: linalg.multi_dot([torch.eye(2)]), RuntimeError),
    r"U\[1,1\] is zero": (lambda: linalg.lu_factor(torch.zeros(2, 2)), RuntimeError),
}  # fmt: skip


@pytest.mark.parametrize("text", REFUSED)
def test_wrong_operands_and_options_are_refused(text):
    call, error = REFUSED[text]
    with pytest.raises(error, match=text):
        call()


def test_qr_without_a_derivative_says_so():
    x = torch.tensor(matrices(3, 2), requires_grad=True)
    with pytest.raises(RuntimeError, match="not differentiable when mode='complete' and nrows > ncols"):
        linalg.qr(x, "complete").R.sum().backward()
    with pytest.raises(RuntimeError, match="depends on Q, which is not computed when mode='r'"):
        linalg.qr(x, "r").R.sum().backward()


def test_named_results_and_out():
    a = torch.tensor(definite(3, 3))
    assert linalg.slogdet(a)._fields == ("sign", "logabsdet")
    assert linalg.lstsq(a, a)._fields == ("solution", "residuals", "rank", "singular_values")
    out = torch.empty(0).double()
    assert linalg.inv(a, out=out) is out
    q, r = torch.empty(3, 3).double(), torch.empty(3, 3).double()
    assert linalg.qr(a, out=(q, r)).Q is q
    close(q @ r, a.numpy())


@pytest.mark.parametrize("d", [torch.float32, torch.float64])
def test_many_small_matrices_give_what_each_gives_alone(d):
    """Matrices that are factorised together take the same steps as one by itself: rows exchanged, zeros and nan met."""
    rng = np.random.default_rng(2)
    for batch, n in ((4, 1), (19, 3), (37, 8)):
        a, b = (torch.tensor(rng.normal(size=(batch, n, n)), dtype=d) for _ in range(2))
        if n > 2:
            a[1, :, 1] = 0
            a[2, 0, 0] = float("nan")
        whole = [*torch.linalg.lu_factor_ex(a), *torch.linalg.solve_ex(a, b), *torch.linalg.inv_ex(a)]
        lu, pivots = whole[:2]
        whole += [torch.linalg.lu_solve(lu, pivots, b), torch.linalg.lu_solve(lu, pivots, b, adjoint=True)]
        for i in range(batch):
            x, y = a[i], b[i]
            alone = [*torch.linalg.lu_factor_ex(x), *torch.linalg.solve_ex(x, y), *torch.linalg.inv_ex(x)]
            alone += [torch.linalg.lu_solve(lu[i], pivots[i], y), torch.linalg.lu_solve(lu[i], pivots[i], y, adjoint=True)]
            for t, (many, one) in enumerate(zip(whole, alone, strict=True)):
                if n > 2 and i in (1, 2) and t >= 3:  # of these only the factors mean something
                    continue
                np.testing.assert_allclose(many[i].numpy(), one.numpy(), rtol=1e-3 if d is torch.float32 else 1e-10, atol=1e-5)


@pytest.mark.parametrize("d", [np.float32, np.float64])
@pytest.mark.parametrize("kind", ["dense", "rank deficient", "zero", "tiny", "huge", "integers"])
def test_values_of_many_small_matrices(d, kind):
    rng = np.random.default_rng(4)
    factor = {"zero": 0.0, "tiny": 1e-30, "huge": 1e30}.get(kind, 1.0)
    for batch, m, n in ((16, 1, 1), (19, 3, 3), (37, 8, 8), (15, 2, 7), (15, 6, 3)):
        a = rng.normal(size=(batch, m, n)) * factor
        if kind == "rank deficient":
            a[..., -1] = a[..., 0]
        a = (np.round(a) if kind == "integers" else a).astype(d)
        found, expected = linalg.svdvals(torch.tensor(a)).numpy(), np.linalg.svd(a.astype(np.float64), compute_uv=False)
        assert (np.abs(found - expected) <= 10 * np.finfo(d).eps * expected.max(-1, keepdims=True)).all()
        if m == n:
            low, high = (t + np.swapaxes(t, 1, 2) - np.eye(n) * t for t in (np.tril(a), np.triu(a)))
            for side, whole in (("L", low), ("U", high)):
                found, expected = linalg.eigvalsh(torch.tensor(a), side).numpy(), np.linalg.eigvalsh(whole.astype(np.float64))
                assert (np.abs(found - expected) <= 10 * np.finfo(d).eps * np.abs(expected).max(-1, keepdims=True)).all()


@pytest.mark.parametrize("f", [linalg.svdvals, linalg.eigvalsh])
def test_values_of_many_small_matrices_that_are_not_finite(f):
    a = torch.ones(18, 3, 3)
    a[3, 0, 0] = float("nan")
    with pytest.raises(linalg.LinAlgError, match=r"element 3.*non-finite"):
        f(a)
