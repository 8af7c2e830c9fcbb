"""Singular values and eigenvalues, and what is computed from them: pseudo-inverses, ranks."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ... import dtypes, launch, return_types
from ...codegen.formula.namespace import m
from ...graph.modes import state
from ...launch import Kernel
from ...tensor import Tensor
from ..core.numbers import float_argument, text_argument
from ..core.recording import constant, guarded
from ..core.registry import OPS, public
from ..core.structured import structured, tensor_argument
from ..creation.cast import cast, dense
from ..creation.create import new_empty, new_full
from ..creation.ranges import arange
from .common import (
    adjoint,
    batch_of,
    by_columns,
    check,
    count,
    given,
    identity,
    info_tensor,
    many_small,
    matrix,
    new_info,
    scalar_name,
    several,
    square,
    square_shape,
    summed,
)
from .lu import _solve

_SVD, _EIGH = Kernel("linalg.lapack", "svd", outputs=4), Kernel("linalg.lapack", "eigh", outputs=3)
_EIG, _EIG_COMPLEX = Kernel("linalg.lapack", "eig", outputs=3), Kernel("linalg.lapack", "eig_complex", outputs=3)
_SINGULAR_VALUES, _EIGENVALUES = Kernel("linalg.jacobi", "singular_values", outputs=2), Kernel("linalg.jacobi", "eigenvalues", outputs=2)
ROTATED = 12  #: small matrices from which on values alone are found by Jacobi's rotations, of all at once
ONLY_VALUES, THIN, FULL = 78, 83, 65  #: which singular vectors: 'N', 'S', 'A'


def _not_converged(what: str):
    def text(code: int) -> str:
        if code < 0:
            return "The algorithm failed to converge because the input matrix contained non-finite values."
        return (
            f"The algorithm failed to converge because the input matrix is ill-conditioned or has too many repeated {what} "
            f"(error code: {code})."
        )

    return text


def _gaps(values: Tensor) -> Tensor:
    """Return values[j] − values[i], with ones on the diagonal."""
    e = values.unsqueeze(-2) - values.unsqueeze(-1)
    return e + identity(values.shape[-1], values.dtype)


def _diagonal(x: Tensor) -> Tensor:
    return x.diagonal(0, -2, -1)


def _skew(x: Tensor) -> Tensor:
    return x - adjoint(x)


# ---------------------------------------------------------------------------------------------- singular values


def _divisors(s: Tensor) -> Tensor:
    """Return singular values to divide by: zeros of a matrix that has others too are a rounding away from 0 and from one another.

    So they are where LAPACK's steps end in rounding. Exact zeros would make nan of what vanishes with them: of the second derivative of Σs³, which
    multiplies by s before it divides.
    """
    r = s.shape[-1]
    if not r:
        return s
    values = s.detach()
    steps = arange(r, 0, -1, dtype=s.dtype) * (dtypes.finfo(s.dtype).eps / r)
    return s + OPS["where"].call(values == 0, values.amax(-1, True) * steps, 0.0)


def _svd_rule(g: Any, out: Any, job: int) -> Any:
    u, s, v = out
    gu, gs, gv = g
    if gu is None and gs is None and gv is None:
        return None
    if job == ONLY_VALUES:
        raise AssertionError("singular values alone are recorded with their vectors")
    m, n, r = u.shape[-2], v.shape[-1], s.shape[-1]
    if job == FULL:  # vectors that belong to no singular value are free within their space
        u, v = u.narrow(-1, 0, r), v.narrow(-2, 0, r)
        gu = None if gu is None else gu.narrow(-1, 0, r)
        gv = None if gv is None else gv.narrow(-2, 0, r)
    if gu is None and gv is None:
        return (u * gs.unsqueeze(-2)) @ v
    side_u = None if gu is None else adjoint(u) @ gu
    side_v = None if gv is None else v @ adjoint(gv)
    if u.dtype.is_complex:
        phase = sum(_diagonal(x).imag for x in (side_u, side_v) if x is not None)
        if bool((phase.detach().abs() > 1e-2).any()):
            raise RuntimeError(
                "svd_backward: The singular vectors in the complex case are specified up to multiplication by e^{i phi}. The "
                "specified loss function depends on this phase term, making it ill-defined."
            )
    divisors = _divisors(s)
    e = divisors.unsqueeze(-2) * divisors.unsqueeze(-2) - divisors.unsqueeze(-1) * divisors.unsqueeze(-1) + identity(r, s.dtype)
    inner = None
    if side_u is not None:
        inner = _skew(side_u) / e * s.unsqueeze(-2)
    if side_v is not None:
        term = s.unsqueeze(-1) * (_skew(side_v) / e)
        inner = term if inner is None else inner + term
    assert inner is not None
    if gs is not None:
        inner = inner + gs.diag_embed()
    if u.dtype.is_complex and side_u is not None:
        inner = inner + (_diagonal(_skew(side_u)) / (2 * divisors)).diag_embed()
    if m > r and gu is not None:  # the part of gu outside the space of u
        rest = gu - u @ side_u
        ga = (u @ inner + rest / divisors.unsqueeze(-2)) @ v
    else:
        ga = u @ inner @ v
    if n > r and side_v is not None:
        rest = gv - adjoint(side_v) @ v
        ga = ga + u @ (rest / divisors.unsqueeze(-1))
    return ga


@structured(
    a=_svd_rule, node="LinalgSvdBackward0", holomorphic=False, linear="no", batch="shift",
    dtypes="float complex", samples="torch.linalg.svdvals(x(4, 3))",
)
def _svd(a, job):
    m, n = a.shape[-2:]
    r, batch = min(m, n), batch_of(a)
    rows, columns = {ONLY_VALUES: (0, 0), THIN: (r, r), FULL: (m, n)}[job]
    u, v = by_columns((*batch, m, rows), a.dtype), by_columns((*batch, columns, n), a.dtype)
    s = new_empty((*batch, r), a.dtype.to_real())
    info = new_info(a)
    if a._layout.size and job == ONLY_VALUES and many_small(a, least=ROTATED):
        _SINGULAR_VALUES(a.dtype, count(a), m, n, dense(a), s._data, info)
        check(info_tensor(info, batch), "linalg.svd", _not_converged("singular values"))
    elif a._layout.size:
        scratch = [t._data if t._layout.size else new_empty((1,), a.dtype)._data for t in (u, v)]
        _SVD(a.dtype, count(a), m, n, job, dense(a), scratch[0], s._data, scratch[1], info)
        check(info_tensor(info, batch), "linalg.svd", _not_converged("singular values"))
    elif job == FULL:  # of a matrix without rows or columns: any orthogonal vectors
        for t in (u, v):
            if t._layout.size:
                t.copy_(identity(t.shape[-1], t.dtype))
                t._version_[0] = 0
    return [u, s, v]


def thin_svd(a: Tensor) -> list[Tensor]:
    """Return u, s, vᴴ with as many vectors as singular values."""
    return _svd(a, THIN)


def _singular_values(a: Tensor) -> Tensor:
    return _svd(a, THIN if a._rg and state.grad else ONLY_VALUES)[1]


@public(method=False, namespaces=("linalg",), name="linalg.svd")
def svd(A, full_matrices=True, *, driver=None, out=None):
    """Return (U, S, Vh) with A = U·diag(S)·Vh: A (…, m, n), S descending; U (…, m, m), Vh (…, n, n), or with min(m, n) vectors.

    The gradient exists where singular values differ, and are not 0 if it reaches vectors; of ``full_matrices`` only the vectors that
    belong to a singular value have one.

    Errors: `linalg.LinAlgError` for values that are not finite, naming the batch element; RuntimeError for less than 2 dims.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.linalg.svd.html

    >>> torch.linalg.svd(torch.tensor([[2.0, 1.0], [1.0, 3.0]])).S
    tensor([3.6180, 1.3820])
    """
    a = matrix(A, "linalg.svd")
    _no_driver(driver, "torch.linalg.svd", a)
    return several(return_types.linalg_svd, _svd(a, FULL if full_matrices else THIN), out, "linalg.svd")


def _no_driver(driver: Any, name: str, a: Tensor) -> None:
    if text_argument(driver, name, "driver") is not None and a._layout.size:
        raise RuntimeError(f"{name}: keyword argument `driver=` is only supported on CUDA inputs with cuSOLVER backend (driver={driver!r}).")


@public(name="svd")
def torch_svd(input, some=True, compute_uv=True, *, out=None):
    """Return (U, S, V) with A = U·diag(S)·Vᴴ: the older form of `linalg.svd`; without ``compute_uv`` U and V are zeros.

    Source: https://docs.pytorch.org/docs/stable/generated/torch.svd.html

    >>> torch.svd(torch.tensor([[3., 0.], [0., 2.]])).S
    tensor([3., 2.])
    """
    x = tensor_argument(input, "svd")
    if x.ndim < 2:
        raise RuntimeError(f"linalg.svd: input should have at least 2 dimensions, but has {x.ndim} dimensions instead")
    a = matrix(x, "linalg.svd")
    if not compute_uv:
        batch, (m, n) = batch_of(a), a.shape[-2:]
        parts = (new_full((*batch, m, m), 0, a.dtype), _singular_values(a), new_full((*batch, n, n), 0, a.dtype))
    else:
        u, s, vh = _svd(a, THIN if some else FULL)
        v = adjoint(vh)
        parts = (guarded(u, v), s, v)
    return several(return_types.svd, parts, out, "svd")


@public(method=False, namespaces=("linalg",), name="linalg.svdvals")
def svdvals(A, *, driver=None, out=None):
    """Return the singular values of matrices (…, m, n), descending; dA = U·diag(g)·Vᴴ.

    Errors: as `linalg.svd`. Source: https://docs.pytorch.org/docs/stable/generated/torch.linalg.svdvals.html

    >>> torch.linalg.svdvals(torch.tensor([[2.0, 1.0], [1.0, 3.0]]))
    tensor([3.6180, 1.3820])
    """
    a = matrix(A, "linalg.svdvals")
    _no_driver(driver, "torch.linalg.svdvals", a)
    return given(_singular_values(a), out, "linalg.svdvals")


# ------------------------------------------------------------------------------------------- symmetric matrices


def _eigh_rule(g: Any, out: Any) -> Any:
    w, v = out
    gw, gv = g
    if gw is None and gv is None:
        return None
    if gv is None:
        return (v * gw.unsqueeze(-2)) @ adjoint(v)
    side = adjoint(v) @ gv
    if v.dtype.is_complex and bool((_diagonal(side).imag.detach().abs() > 1e-2).any()):
        raise RuntimeError(
            "linalg_eigh_backward: The eigenvectors in the complex case are specified up to multiplication by e^{i phi}. The "
            "specified loss function depends on this quantity, so it is ill-defined."
        )
    inner = _skew(side) * 0.5 / _gaps(w)
    if gw is not None:
        inner = inner + gw.diag_embed()
    return v @ inner @ adjoint(v)


@structured(
    a=_eigh_rule, node="LinalgEighBackward0", holomorphic=False, linear="no", batch="shift",
    dtypes="float complex", samples="torch.linalg.eigvalsh(spd(4))",
)
def _eigh(a, upper, vectors):
    n, batch = a.shape[-1], batch_of(a)
    w, v, info = new_empty((*batch, n), a.dtype.to_real()), by_columns(a.shape, a.dtype), new_info(a)
    if a._layout.size:
        if not vectors and many_small(a, least=ROTATED):
            _EIGENVALUES(a.dtype, count(a), n, upper, dense(a), w._data, info)
        else:
            _EIGH(a.dtype, count(a), n, vectors, upper, dense(a), w._data, v._data, info)
        check(info_tensor(info, batch), "linalg.eigh", _not_converged("eigenvalues"))
    return [w, v]


def _hermitian(A: Any, UPLO: Any, name: str) -> tuple[Tensor, bool]:
    a = tensor_argument(A, name)
    if a.dtype.category < 2:
        raise NotImplementedError(f"\"linalg_eigh_cpu\" not implemented for '{scalar_name(a)}' ({name}: cast it with .to(), e.g. x.float())")
    square(a, name)
    if not isinstance(UPLO, str) or UPLO.upper() not in ("L", "U"):
        raise RuntimeError(f"Expected UPLO argument to be 'L' or 'U', but got {UPLO}")
    return a, UPLO.upper() == "U"


@public(method=False, namespaces=("linalg",), name="linalg.eigh")
def eigh(A, UPLO="L", *, out=None):
    """Return (eigenvalues, eigenvectors) of Hermitian matrices (…, n, n), ascending; A = V·diag(w)·Vᴴ. Reads the triangle ``UPLO``.

    dA = V·(diag(gw) + skew(Vᴴ·gV)/(wⱼ − wᵢ))·Vᴴ: gradients through vectors need eigenvalues that differ.

    Errors: `linalg.LinAlgError` when the iteration fails, naming the batch element; RuntimeError for other UPLO and shapes.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.linalg.eigh.html

    >>> torch.linalg.eigh(torch.tensor([[2.0, 1.0], [1.0, 3.0]])).eigenvalues
    tensor([1.3820, 3.6180])
    """
    a, upper = _hermitian(A, UPLO, "linalg.eigh")
    return several(return_types.linalg_eigh, _eigh(a, upper, True), out, "linalg.eigh")


@public(method=False, namespaces=("linalg",), name="linalg.eigvalsh")
def eigvalsh(A, UPLO="L", *, out=None):
    """Return the eigenvalues of Hermitian matrices (…, n, n), ascending; dA = V·diag(g)·Vᴴ.

    Source: https://docs.pytorch.org/docs/stable/generated/torch.linalg.eigvalsh.html

    >>> torch.linalg.eigvalsh(torch.tensor([[2.0, 1.0], [1.0, 3.0]]))
    tensor([1.3820, 3.6180])
    """
    a, upper = _hermitian(A, UPLO, "linalg.eigvalsh")
    return given(_eigh(a, upper, a._rg and state.grad)[0], out, "linalg.eigvalsh")


# --------------------------------------------------------------------------------------------- general matrices


def _eig_rule(g: Any, out: Any, a_real: bool) -> Any:
    w, v = out
    gw, gv = g
    if gw is None and gv is None:
        return None
    vh = adjoint(v)
    inner = None if gw is None else gw.diag_embed()
    if gv is not None:
        side = vh @ gv
        along = _diagonal(side)
        if bool((along.imag.detach().abs() > 1e-2).any()):
            raise RuntimeError(
                "linalg_eig_backward: The eigenvectors in the complex case are specified up to multiplication by e^{i phi}. The "
                "specified loss function depends on this quantity, so it is ill-defined."
            )
        # vectors have length 1: what would change it is taken out
        free = side - (vh @ v) * along.real.unsqueeze(-2)
        e = m.conj(_gaps(w))
        off = free * (1 - identity(w.shape[-1], w.dtype)) / e
        inner = off if inner is None else inner + off
    ga = _solve(vh, inner @ vh)[0]
    return ga.real if a_real else ga


@structured(
    a=_eig_rule, node="LinalgEigBackward0", holomorphic=False, linear="no", batch="shift",
    dtypes="float complex", samples="torch.linalg.eigvals(spd(4)).real",
)
def _eig(a, a_real, vectors):
    n, batch = a.shape[-1], batch_of(a)
    d = a.dtype.to_complex()
    w, v, info = new_empty((*batch, n), d), by_columns(a.shape, d), new_info(a)
    if a._layout.size:
        (_EIG if a_real else _EIG_COMPLEX)(a.dtype, count(a), n, vectors, dense(a), w._data, v._data, info)

        def finite(info: np.ndarray) -> None:
            if (info < 0).any():
                where = f" (matrix {int((info < 0).nonzero()[0][0])} of the batch does)" if batch else ""
                raise RuntimeError(f"torch.linalg.eig: input tensor should not contain infs or NaNs.{where}")

        launch.check(finite, info)
        check(info_tensor(info, batch), "linalg.eig", _not_converged("eigenvalues"))
    return [w, v]


@public(method=False, namespaces=("linalg",), name="linalg.eig")
def eig(A, *, out=None):
    """Return (eigenvalues, eigenvectors) of square matrices (…, n, n), always complex: A·V = V·diag(w), vectors of length 1, in no order.

    Gradients through vectors need eigenvalues that differ and a loss that does not depend on the vectors' phase.

    Errors: RuntimeError for values that are not finite; `linalg.LinAlgError` when the iteration fails.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.linalg.eig.html

    >>> torch.linalg.eig(torch.tensor([[2.0, 0.0], [0.0, 8.0]])).eigenvalues
    tensor([2.+0.j, 8.+0.j])
    """
    a = square(A, "linalg.eig")
    return several(return_types.linalg_eig, _eig(a, not a.dtype.is_complex, True), out, "linalg.eig")


@public(method=False, namespaces=("linalg",), name="linalg.eigvals")
def eigvals(A, *, out=None):
    """Return the eigenvalues of square matrices (…, n, n), complex, in no order.

    Source: https://docs.pytorch.org/docs/stable/generated/torch.linalg.eigvals.html

    >>> torch.linalg.eigvals(torch.tensor([[2.0, 0.0], [0.0, 8.0]]))
    tensor([2.+0.j, 8.+0.j])
    """
    a = square(A, "linalg.eigvals")
    return given(_eig(a, not a.dtype.is_complex, a._rg and state.grad)[0], out, "linalg.eigvals")


# -------------------------------------------------------------------------------------- pseudo-inverse and rank


def cutoff(a: Tensor, atol: Any, rtol: Any, largest: Tensor) -> Tensor:
    """Return the size up to which singular values count as 0: max(atol, rtol·largest), PyTorch's defaults where not given."""
    eps = float(np.finfo(a.dtype.np).eps) * max(a.shape[-2:], default=0)
    for name, bound in (("atol", atol), ("rtol", rtol)):
        if bound is not None and not isinstance(bound, Tensor):
            float_argument(bound, "linalg", name)
    absolute = 0.0 if atol is None else atol
    if rtol is None:
        relative: Any = eps
        if isinstance(atol, Tensor):
            relative = OPS["where"].call(atol > 0, 0.0, eps)
        elif atol is not None and atol > 0:
            relative = 0.0
    else:
        relative = rtol
    bound = largest * (cast(relative, largest.dtype) if isinstance(relative, Tensor) else relative)
    if isinstance(absolute, Tensor):
        return OPS["maximum"].call(bound, cast(absolute, bound.dtype))
    if abs(absolute) > dtypes.finfo(bound.dtype).max:
        absolute = math.copysign(math.inf, absolute)
    positive = not isinstance(rtol, Tensor) and not (rtol is not None and rtol < 0)
    return bound if positive and not absolute else bound.clamp(min=absolute)


def _pinv_rule(g: Tensor, a: Tensor, out: Tensor) -> Tensor:
    m, n = a.shape[-2:]
    p, ph, gh = out, adjoint(out), adjoint(g)
    if m <= n:
        k = gh @ p
        kph = k @ ph
        return -adjoint(p @ k) + kph - (a @ p) @ kph + (ph @ p) @ (gh - k @ a)
    k = p @ gh
    phk = ph @ k
    return -adjoint(k @ p) + (gh - a @ k) @ p @ ph + phk - (phk @ p) @ a


@structured(
    # (tolerances of a batch make a batch of results of one matrix)
    a=lambda g, a, out: summed(_pinv_rule(g, a, out), a.shape), node="LinalgPinvBackward0", holomorphic=False,
    linear="no",
    dtypes="float complex", samples="torch.linalg.pinv(x(4, 3))",
)
def _pinv(a, atol, rtol, hermitian):
    if not a._layout.size:
        return new_full((*a.shape[:-2], a.shape[-1], a.shape[-2]), 0, a.dtype)
    where = OPS["where"].call
    if hermitian:
        w, v = _eigh(a, False, True)
        size = w.abs()
        bound = cutoff(a, atol, rtol, size.amax(-1))
        inverse = where(size > bound.unsqueeze(-1), 1 / w, 0.0)
        return (v * inverse.unsqueeze(-2)) @ adjoint(v)
    u, s, vh = thin_svd(a)
    bound = cutoff(a, atol, rtol, s.narrow(-1, 0, 1).squeeze(-1))
    inverse = where(s > bound.unsqueeze(-1), 1 / s, 0.0)
    return (adjoint(vh) * inverse.unsqueeze(-2)) @ adjoint(u)


@_pinv.batched
def _pinv_of_batch(op, args, batch):
    a, *bounds, hermitian = args
    if not a._layout.size:  # (whose result does not depend on tolerances)
        return op(batch.whole(a), None, None, hermitian)
    rank = max(a.ndim - 2, *[t.ndim for t in bounds if isinstance(t, Tensor)], 0)

    def aligned(t: Any, ndim: int) -> Any:
        value, batched = batch.of(t)
        return value.reshape(batch.size, *[1] * (rank - ndim), *t.shape) if batched else value

    whole = batch.whole(a).reshape(batch.size, *[1] * (rank - a.ndim + 2), *a.shape)
    return op(whole, *[aligned(t, getattr(t, "ndim", 0)) for t in bounds], hermitian)


def _pseudo_inverse(value: Any, atol: Any, rtol: Any, hermitian: bool) -> Tensor:
    a = tensor_argument(value, "linalg.pinv")
    if a.ndim < 2 or a.dtype.category < 2 or a.dtype.is_half:
        raise RuntimeError(
            f"linalg.pinv({scalar_name(a)}{{{list(a.shape)}}}): expected a tensor with 2 or more dimensions of float, double, cfloat "
            "or cdouble types"
        )
    if hermitian and a._layout.size:
        square_shape(a, "linalg.eigh")
    for argument, value in (("atol", atol), ("rtol", rtol)):
        if isinstance(value, Tensor) and value.dtype.is_complex:
            raise RuntimeError(f"linalg.pinv: {argument} tensor of complex type is not supported. Got {scalar_name(value)}")
    return _pinv(a, atol, rtol, hermitian)


@public(method=False, namespaces=("linalg",), name="linalg.pinv")
def pinv(A, rcond: float | Tensor | None = None, hermitian=False, *, atol: float | Tensor | None = None, rtol: float | Tensor | None = None, out=None):
    """Return the Moore–Penrose inverse of matrices (…, m, n) → (…, n, m); singular values up to max(atol, rtol·s₀) count as 0.

    ``rtol`` is max(m, n)·ε where neither is given; ``rcond`` is its older name. ``hermitian``: by eigenvalues, reading the lower
    triangle. The gradient is that of matrices of the same rank.

    Errors: RuntimeError for less than 2 dims and for integers.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.linalg.pinv.html

    >>> torch.linalg.pinv(torch.tensor([[2.0], [1.0]]))
    tensor([[0.4000, 0.2000]])
    """
    atol = constant("linalg_pinv", "atol", atol)
    rtol = constant("linalg_pinv", "rtol", rcond if rtol is None else rtol)
    return given(_pseudo_inverse(A, atol, rtol, bool(hermitian)), out, "linalg.pinv")


@public()
def pinverse(input, rcond: float = 1e-15):
    """Return `linalg.pinv` with a relative cutoff of ``rcond``; pinverse([[2., 0.], [0., 4.]]) = [[0.5000, 0.0000], [0.0000, 0.2500]]."""
    return _pseudo_inverse(input, None, rcond, False)


@public(method=False, namespaces=("linalg",), name="linalg.matrix_rank")
def matrix_rank(A, tol: float | Tensor | None = None, hermitian=False, *, atol: float | Tensor | None = None, rtol: float | Tensor | None = None, out=None):
    """Return how many singular values of matrices (…, m, n) are greater than max(atol, rtol·s₀), int64; no gradient.

    ``tol``: the older form of ``atol``. ``hermitian``: by eigenvalues, reading the lower triangle.

    Errors: RuntimeError for less than 2 dims and for integers.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.linalg.matrix_rank.html

    >>> torch.linalg.matrix_rank(torch.tensor([[1.0, 2.0], [2.0, 4.0]]))
    tensor(1)
    """
    a = matrix(A, "torch.linalg.matrix_rank", "input").detach()
    if tol is not None:
        atol, rtol = tol, 0.0
    for argument, value in (("atol", atol), ("rtol", rtol)):
        if isinstance(value, Tensor) and value.dtype.is_complex:
            raise RuntimeError(f"torch.linalg.matrix_rank: {argument} tensor of complex type is not supported. Got {scalar_name(value)}")
    if hermitian and a._layout.size:
        square_shape(a, "linalg.eigh")
    if not a._layout.size:
        return given(new_full(batch_of(a), 0, dtypes.int64), out, "linalg.matrix_rank")
    s = _eigh(a, False, False)[0].abs() if hermitian else _singular_values(a)
    bound = cutoff(a, atol, rtol, s.amax(-1))
    return given((s > bound.unsqueeze(-1)).sum(-1), out, "linalg.matrix_rank")

