"""QR, products of reflections, and LDL."""

from __future__ import annotations

from typing import Any

from ... import dtypes, return_types
from ...launch import Kernel
from ...shapes import broadcast_shapes
from ...tensor import Tensor
from ..core.recording import fresh, guarded, underived
from ..core.registry import OPS, public
from ..core.structured import structured, tensor_argument
from ..creation.cast import clone, dense
from ..creation.create import new_empty, new_full
from ..shape.rearrange import tril, triu
from .common import (
    adjoint,
    batch_of,
    by_columns,
    check,
    check_equation,
    count,
    floating,
    given,
    identity,
    info_tensor,
    matrix,
    new_info,
    same_dtype,
    scalar_name,
    several,
    square_shape,
    turned,
)
from .triangular import solve as solve_triangle

_MANY_QR = Kernel("linalg.batched", "qr", outputs=2)
_QR, _GEQRF = Kernel("linalg.lapack", "qr", outputs=2), Kernel("linalg.lapack", "geqrf", outputs=2)
_LDL, _LDL_SOLVE = Kernel("linalg.ldl", "factor", outputs=3), Kernel("linalg.ldl", "solve")

# ----------------------------------------------------------------------------------------------------------- QR


def _square_qr_rule(gq: Tensor | None, gr: Tensor | None, q: Tensor, r: Tensor) -> Tensor:
    """gA for A = Q·R with a square R: (gQ + Q·H)·R⁻ᴴ, H Hermitian with the lower triangle of R·gRᴴ − gQᴴ·Q."""
    both = None if gr is None else r @ adjoint(gr)
    if gq is not None:
        term = adjoint(gq) @ q
        both = -term if both is None else both - term
    assert both is not None
    h = adjoint(tril(both, -1)) + tril(both, -1) + both.diagonal(0, -2, -1).real.diag_embed()
    inner = q @ h if gq is None else gq + q @ h
    return fresh(adjoint(solve_triangle(r, adjoint(inner), True)))


def _qr_rule(g: Any, a_shape: Any, out: Any, mode: str) -> Any:
    gq, gr = g
    if gq is None and gr is None:
        return None
    if mode == "r":
        raise RuntimeError(
            "The derivative of linalg.qr depends on Q, which is not computed when mode='r'. Please use linalg.qr(A, mode='reduced') "
            "if you are going to differentiate through linalg.qr."
        )
    *batch, m, n = a_shape
    if mode == "complete" and m > n:
        raise RuntimeError("The QR decomposition is not differentiable when mode='complete' and nrows > ncols.")
    q, r = out
    if m >= n:
        return _square_qr_rule(gq, gr, q, r)
    # A = [X Y], R = [U V] with X = Q·U and V = Qᴴ·Y
    gv = None
    gu = gr
    if gr is not None:
        gu, gv = gr.narrow(-1, 0, m), gr.narrow(-1, m, n - m)
        term = (q @ r.narrow(-1, m, n - m)) @ adjoint(gv)
        gq = term if gq is None else gq + term
    gx = _square_qr_rule(gq, gu, q, r.narrow(-1, 0, m))
    gy = new_full((*batch, m, n - m), 0, q.dtype) if gv is None else q @ gv
    return OPS["cat"].call([gx, gy], -1)


@structured(
    a=_qr_rule, node="LinalgQrBackward0", holomorphic=False, linear="no", batch="shift",
    dtypes="float complex", samples="torch.linalg.qr(x(4, 3)).R",
)
def _qr(a, mode):
    m, n = a.shape[-2:]
    k, batch = min(m, n), batch_of(a)
    rows = m if mode == "complete" else k
    r = by_columns((*batch, rows, n), a.dtype)
    q = new_empty((0,), a.dtype) if mode == "r" else by_columns((*batch, m, rows), a.dtype)
    if a._layout.size:
        many = count(a) >= 4 and m * n <= 256 and m * rows <= 256 and a.dtype.is_floating_point
        (_MANY_QR if many else _QR)(a.dtype, count(a), m, n, 0 if mode == "r" else rows, dense(a), q._data, r._data)
    elif q._layout.size:  # of a matrix without columns
        q.copy_(identity(m, a.dtype))
        q._version_[0] = 0
    return [q, r]


@public(method=False, namespaces=("linalg",), name="linalg.qr")
def qr(A, mode="reduced", *, out=None):
    """Return (Q, R) with A = Q·R: A (…, m, n), Q with orthonormal columns, R upper triangular.

    mode: "reduced": Q (…, m, k), R (…, k, n) for k = min(m, n); "complete": Q (…, m, m), R (…, m, n); "r": only R, Q is empty.
    The gradient exists where the first k columns of A are independent, in "reduced", and "complete" for m ≤ n.

    Errors: RuntimeError for other modes and less than 2 dims.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.linalg.qr.html

    >>> torch.linalg.qr(torch.tensor([[1.0, 2.0], [1.0, 0.0]])).R.abs()
    tensor([[1.4142, 1.4142],
            [0.0000, 1.4142]])
    """
    a = matrix(A, "linalg.qr")
    if mode not in ("reduced", "complete", "r"):
        raise RuntimeError(f"qr received unrecognized mode '{mode}' but expected one of 'reduced' (default), 'r', or 'complete'")
    return several(return_types.linalg_qr, _qr(a, mode), out, "linalg.qr")


@public(name="qr")
def torch_qr(input, some=True, *, out=None):
    """Return (Q, R): the older form of `linalg.qr`, reduced if ``some``, else complete."""
    return several(return_types.qr, _qr(matrix(input, "qr", "input"), "reduced" if some else "complete"), out, "qr")


# --------------------------------------------------------------------------------------------------- reflections


def _no_rule(g: Any) -> Any:
    raise NotImplementedError("the derivative for 'geqrf' is not implemented: use linalg.qr, which has one")


@structured(
    a=_no_rule, node="NotImplemented", linear="no", batch="samples",
    dtypes="float complex", samples="torch.geqrf(x(4, 3))",
)
def _geqrf(a):
    m, n = a.shape[-2:]
    out, tau = by_columns(a.shape, a.dtype), new_empty((*batch_of(a), min(m, n)), a.dtype)
    if a._layout.size:
        _GEQRF(a.dtype, count(a), m, n, dense(a), out._data, tau._data)
    return [out, tau]


@public()
def geqrf(input, *, out=None):
    """Return (a, tau): R in the upper triangle of a, and below it the vectors of the reflections whose product is Q; see `linalg.qr`.

    Errors: RuntimeError for less than 2 dims. No gradient.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.geqrf.html

    >>> torch.geqrf(torch.tensor([[3.], [4.]])).tau
    tensor([1.6000])
    """
    a = tensor_argument(input, "geqrf")
    if a.ndim < 2:
        raise RuntimeError(f"torch.geqrf: input must have at least 2 dimensions (its shape is {list(a.shape)}).")
    if a.dtype.category < 2:
        raise NotImplementedError(f"\"geqrf_cpu\" not implemented for '{scalar_name(a)}'")
    return several(return_types.geqrf, _geqrf(floating(a, "geqrf")), out, "geqrf")


def _compact(a: Tensor, tau: Tensor) -> tuple[Tensor, Tensor]:
    """Return (V, T) with H₁·H₂·… = I − V·T·Vᴴ, for the reflections Hᵢ = I − τᵢ·vᵢ·vᵢᴴ that `geqrf` packs: T⁻¹ = diag(1/τ) + striu(Vᴴ·V).

    With it products of reflections are products of matrices, and differentiable as those are.
    """
    k, m = tau.shape[-1], a.shape[-2]
    one = identity(k, a.dtype)
    if m > k:
        one = OPS["cat"].call([one, new_full((m - k, k), 0, a.dtype)], 0)
    v = tril(a.narrow(-1, 0, k), -1) + one
    overlap = triu(adjoint(v) @ v, 1) * tau.unsqueeze(-1)
    return v, solve_triangle(overlap, tau.diag_embed(), True, unit=True)


def _check_reflections(a: Tensor, tau: Tensor) -> None:
    name = "torch.linalg.householder_product"
    if a.ndim < 2:
        raise RuntimeError(f"{name}: input must have at least 2 dimensions.")
    if a.shape[-2] < a.shape[-1]:
        raise RuntimeError(
            f"{name}: input.shape[-2] must be greater than or equal to input.shape[-1] (the shape is {list(a.shape)})"
        )
    if not tau.ndim:
        raise IndexError(f"Dimension specified as -1 but tensor has no dimensions ({name}: tau)")
    if a.shape[-1] < tau.shape[-1]:
        raise RuntimeError(
            f"{name}: input.shape[-1] must be greater than or equal to tau.shape[-1] ({a.shape[-1]} and {tau.shape[-1]})"
        )
    if a.ndim - tau.ndim != 1:
        raise RuntimeError(
            f"{name}: Expected tau to have one dimension less than input, but got tau.ndim equal to {tau.ndim} and input.ndim is "
            f"equal to {a.ndim}"
        )
    if tau.shape[:-1] != a.shape[:-2]:
        raise RuntimeError(
            f"{name}: Expected batch dimensions of tau to be equal to input.shape[:-2], but got {list(tau.shape[:-1])}"
        )
    if tau.dtype is not a.dtype:
        raise RuntimeError(f"{name}: tau dtype {scalar_name(tau)} does not match input dtype {scalar_name(a)}")
    floating(a, "linalg.householder_product", "orgqr_cpu")


@structured(
    a=lambda g: None, tau=lambda g: None, node="LinalgHouseholderProductBackward0", linear="no", batch="samples", dtypes="float complex",
    samples="torch.linalg.householder_product(x(4, 3), x(0))",
)
def _unreflected(a, tau):
    """Return the product of no reflections, which depends on nothing."""
    m, n = a.shape[-2:]
    return turned(clone(identity(m, a.dtype).narrow(-1, 0, n).expand(a.shape)))


@public(name="orgqr")
@public(method=False, namespaces=("linalg",), name="linalg.householder_product")
def householder_product(input, tau, *, out=None):
    """Return the first n columns of H₁·H₂·…·Hₖ, Hᵢ = I − τᵢ·vᵢ·vᵢᴴ, for vectors vᵢ packed below the diagonal of input (…, m, n) by `geqrf`.

    Errors: RuntimeError for shapes and dtypes that do not fit (m ≥ n ≥ k).
    Source: https://docs.pytorch.org/docs/stable/generated/torch.linalg.householder_product.html

    >>> torch.orgqr(torch.tensor([[1.], [0.]]), torch.tensor([0.])).shape
    torch.Size([2, 1])
    """
    a, t = tensor_argument(input, "householder_product"), tensor_argument(tau, "householder_product", "tau")
    _check_reflections(a, t)
    m, n = a.shape[-2:]
    if not (a._layout.size and t._layout.size):
        y = _unreflected(a, t)
        return given(guarded(y, a, t, y), out, "linalg.householder_product")
    v, inner = _compact(a, t)
    one = identity(n, a.dtype)
    if m > n:
        one = OPS["cat"].call([one, new_full((m - n, n), 0, a.dtype)], 0)
    y = turned(one - v @ (inner @ adjoint(v.narrow(-2, 0, n))))
    return given(guarded(y, a, t, y), out, "linalg.householder_product")


@public()
def ormqr(input, tau, other, left=True, transpose=False, *, out=None):
    """Return Q·other, or other·Q if not ``left``, with Qᴴ for Q if ``transpose``: Q is the whole product of `geqrf`'s reflections.

    Errors: RuntimeError for shapes and dtypes that do not fit.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.ormqr.html

    >>> torch.ormqr(torch.tensor([[1.], [0.]]), torch.tensor([0.]), torch.tensor([[1.], [2.]]))
    tensor([[1.],
            [2.]])
    """
    a, t, c = (tensor_argument(x, "ormqr", n) for x, n in ((input, "input"), (tau, "tau"), (other, "other")))
    for argument, x in (("input", a), ("other", c)):
        if x.ndim < 2:
            raise RuntimeError(f"torch.ormqr: {argument} must have at least 2 dimensions (its shape is {list(x.shape)}).")
    side = -2 if left else -1
    if c.shape[side] != a.shape[-2]:
        raise RuntimeError(f"torch.ormqr: other.shape[{side}] must be equal to input.shape[-2] ({c.shape[side]} and {a.shape[-2]})")
    if not t.ndim:
        raise IndexError("Dimension specified as -1 but tensor has no dimensions (torch.ormqr: tau)")
    if a.ndim - t.ndim != 1:
        raise RuntimeError(
            f"torch.ormqr: Expected tau to have one dimension less than input, but got tau.ndim equal to {t.ndim} and input.ndim is "
            f"equal to {a.ndim}"
        )
    if a.ndim != c.ndim:
        raise RuntimeError(
            f"torch.ormqr: Expected other to have the same number of dimensions as input, but got other.ndim equal to {c.ndim} and "
            f"input.ndim is equal to {a.ndim}"
        )
    if t.shape[-1] != min(c.shape[side], a.shape[-1]):
        raise RuntimeError(f"torch.ormqr: tau.shape[-1] must be equal to min(other.shape[{side}], input.shape[-1])")
    for argument, shape in (("tau", t.shape[:-1]), ("other", c.shape[:-2])):
        if shape != a.shape[:-2]:
            raise RuntimeError(
                f"torch.ormqr: Expected batch dimensions of {argument} to be equal to input.shape[:-2], but got {list(shape)}"
            )
    for argument, x in (("tau", t), ("other", c)):
        if x.dtype is not a.dtype:
            raise RuntimeError(
                f"torch.ormqr: Expected input and {argument} to have the same dtype, but input has dtype {scalar_name(a)} and "
                f"{argument} has dtype {scalar_name(x)}"
            )
    floating(a, "torch.ormqr")
    v, inner = _compact(a, t)
    if transpose:
        inner = adjoint(inner)
    y = c - v @ (inner @ (adjoint(v) @ c)) if left else c - ((c @ v) @ inner) @ adjoint(v)
    y = turned(y)
    return given(guarded(y, a, t, c, y), out, "ormqr")


# ---------------------------------------------------------------------------------------------------------- LDL


def _ldl(A: Any, hermitian: bool) -> tuple[Tensor, Tensor, Tensor]:
    name = "torch.linalg.ldl_factor_ex"
    a = square_shape(matrix(A, name), name).detach()
    n, batch = a.shape[-1], batch_of(a)
    ld, pivots, info = by_columns(a.shape, a.dtype), new_empty((*batch, n), dtypes.int32), new_info(a)
    if a._layout.size:
        _LDL(a.dtype, count(a), n, hermitian and a.dtype.is_complex, dense(a), ld._data, pivots._data, info)
    underived("ldl_factor", (ld,), A)
    return ld, pivots, info_tensor(info, batch)


def _zero_block(k: int) -> str:
    return f"D[{k},{k}] is zero: the matrix is singular, and its factors cannot be used to solve a system."


@public(method=False, namespaces=("linalg",), name="linalg.ldl_factor")
def ldl_factor(A, *, hermitian=False, out=None):
    """Return (LD, pivots) of symmetric (Hermitian) matrices (…, n, n), definite or not, as LAPACK packs them; reads the lower triangle.

    Errors: `linalg.LinAlgError` for a singular matrix. No gradient.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.linalg.ldl_factor.html

    >>> torch.linalg.ldl_factor(torch.tensor([[4.]])).LD
    tensor([[4.]])
    """
    ld, pivots, info = _ldl(A, hermitian)
    check(info, "torch.linalg.ldl_factor", _zero_block)
    return several(return_types.linalg_ldl_factor, (ld, pivots), out, "linalg.ldl_factor")


@public(method=False, namespaces=("linalg",), name="linalg.ldl_factor_ex")
def ldl_factor_ex(A, *, hermitian=False, check_errors=False, out=None):
    """Return (LD, pivots, info): `linalg.ldl_factor` that reports the first zero block in ``info`` instead of raising.

    Source: https://docs.pytorch.org/docs/stable/generated/torch.linalg.ldl_factor_ex.html

    >>> torch.linalg.ldl_factor_ex(torch.tensor([[4.]])).info
    tensor(0, dtype=torch.int32)
    """
    parts = _ldl(A, hermitian)
    if check_errors:
        check(parts[2], "torch.linalg.ldl_factor_ex", _zero_block)
    return several(return_types.linalg_ldl_factor_ex, parts, out, "linalg.ldl_factor_ex")


@public(method=False, namespaces=("linalg",), name="linalg.ldl_solve")
def ldl_solve(LD, pivots, B, *, hermitian=False, out=None):
    """X with A·X = B, given the results of `linalg.ldl_factor` of A. No gradient.

    Errors: RuntimeError for shapes and dtypes that do not fit.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.linalg.ldl_solve.html

    >>> torch.linalg.ldl_solve(*torch.linalg.ldl_factor(torch.tensor([[4.]])), torch.tensor([[8.]]))
    tensor([[2.]])
    """
    name = "torch.linalg.ldl_solve"
    ld, b, order = tensor_argument(LD, name, "LD"), tensor_argument(B, name, "B"), tensor_argument(pivots, name, "pivots")
    square_shape(matrix(ld, name, "LD"), name)
    if b.ndim < 2:
        raise IndexError(f"Dimension out of range (expected to be in range of [-1, 0], but got -2): {name}: B has shape {list(b.shape)}")
    if order.shape != ld.shape[:-1]:
        raise RuntimeError(
            f"{name}: Expected LD.shape[:-1] and pivots.shape to be the same, but got pivots with shape {list(order.shape)} instead"
        )
    if order.dtype.category != 1:
        raise RuntimeError(f"{name}: Expected pivots to be integers. Got {scalar_name(order)}")
    same_dtype(ld, b, name, "LD", "B")
    check_equation(ld, b, True, name)
    n = ld.shape[-1]
    if order._layout.size and (int(order.abs().max()) > n or int(order.abs().min()) < 1):
        raise RuntimeError(f"{name}: pivots must be ±1 to ±{n}. Did you properly pass the result of ldl_factor?")
    batch = broadcast_shapes(ld.shape[:-2], b.shape[:-2])
    ld, b, order = ld.expand(*batch, n, n), b.expand(*batch, *b.shape[-2:]).detach(), order.expand(*batch, n).int()
    x = by_columns(b.shape, b.dtype)
    if x._layout.size:
        _LDL_SOLVE(
            b.dtype, count(b), n, b.shape[-1], hermitian and b.dtype.is_complex, dense(ld), dense(order), dense(b), x._data
        )
    underived("ldl_solve", (x,), LD, B)
    return given(x, out, "linalg.ldl_solve")
