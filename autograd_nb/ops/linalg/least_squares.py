"""Least squares, and approximations of low rank by random projections."""

from __future__ import annotations

from typing import Any

import numpy as np

from ... import dtypes, return_types
from ...launch import Kernel
from ...shapes import as_int, broadcast_shapes
from ...tensor import Tensor
from ..core.numbers import float_argument, text_argument
from ..core.registry import OPS, public
from ..core.structured import structured, tensor_argument
from ..creation.cast import cast, dense
from ..creation.create import new_empty, new_full
from .common import adjoint, batch_of, by_columns, count, floating, scalar_name
from .decompose import _qr
from .spectral import _pinv, _pinv_rule, thin_svd

_LSTSQ = Kernel("linalg.least_squares", "least_squares", outputs=3)
_DRIVERS = ("gels", "gelsy", "gelsd", "gelss")


def _lstsq_rule(g: Any, needs: set[Any], a: Tensor, b: Tensor, out0: Any) -> dict[Any, Any]:
    gx, gr = g[:2]
    x, found = out0, {}
    p = None if gx is None else _pinv(a, None, None, False)
    # a small change of x does not change |A·x − b|²
    off = None if gr is None or not gr._layout.size else (b - a @ x) * (2 * gr).unsqueeze(-2)
    if "b" in needs:
        found["b"] = _added(None if p is None else adjoint(p) @ gx, off)
    if "a" in needs:
        found["a"] = _added(
            None if p is None else _pinv_rule(gx @ adjoint(b), a, p), None if off is None else -(off @ adjoint(x))
        )
    return found


def _added(x: Tensor | None, y: Tensor | None) -> Tensor | None:
    return x if y is None else y if x is None else x + y


def _of_one_column(a: Tensor, b: Tensor) -> list[Tensor]:
    """Return [x, rank] where only the largest column counts, as LAPACK's gelsy begins with it and finds no other above ``rcond`` ≥ 1."""
    norms = a.abs().square().sum(-2)
    place = norms.argmax(-1)[..., None, None]
    length = norms.amax(-1)[..., None, None].sqrt()
    some = length > 0
    column = a.gather(-1, place.expand(*a.shape[:-1], 1)) / OPS["where"].call(some, length, 1.0)
    row = adjoint(column) @ a
    x = adjoint(row) @ (adjoint(column) @ b) / OPS["where"].call(some, row.abs().square().sum(-1, keepdim=True), 1.0)
    return [x, cast(some.squeeze(-1).squeeze(-1), dtypes.int64)]


@structured(
    every=_lstsq_rule, node="LinalgLstsqBackward0", holomorphic=False, linear="no", batch="samples",
    dtypes="float complex", samples="torch.linalg.lstsq(x(5, 3), x(5, 2)).solution",
)
def _lstsq(a, b, rcond, driver):
    """Return [x (n × k), residuals, rank, singular values] for matrices of one batch."""
    m, n = a.shape[-2:]
    k, batch, r = b.shape[-1], batch_of(a), min(m, n)
    x = by_columns((*batch, max(m, n), k), a.dtype)
    x.zero_()
    x._version_[0] = 0
    s, rank = new_full((*batch, r), 0, a.dtype.to_real()), new_full(batch, 0, dtypes.int64)
    if a._layout.size and k and not rcond < 1 and driver == "gelsy":
        x, rank = _of_one_column(a, b)
        return [x, new_empty((0,), s.dtype), rank, s]
    if a._layout.size and k:
        values = driver in ("gelsd", "gelss")
        _LSTSQ(a.dtype, count(a), m, n, k, rcond, values, dense(a), dense(b), x._data, s._data, rank._data)
    x = x if m <= n else x.narrow(-2, 0, n)
    if rcond >= 1 and driver == "gelss":  # none is greater than the largest (gelsd takes such a number for ε)
        x, rank = x * 0, rank * 0
    if m > n and driver != "gelsy" and (driver == "gels" or not bool((rank != n).any())):
        residuals = (b - a @ x).abs().square().sum(-2)
    else:
        residuals = new_empty((0,), s.dtype)
    return [x, residuals, rank, s]


@public(method=False, namespaces=("linalg",), name="linalg.lstsq")
def lstsq(input, b, rcond: float | None = None, *, driver=None):
    """Return (solution, residuals, rank, singular_values): the X that minimises |A·X − B|, the shortest where several do.

    A: (…, m, n), B: (…, m, k), or (…, m) for vectors. rcond: singular values up to rcond·s₀ count as 0, max(m, n)·ε if not given.
    driver: "gelsy" (the default), "gelsd", "gelss"; "gels" takes A to be of full rank. It decides which results are empty: rank is for
    "gels", singular_values are for "gels" and "gelsy". residuals: |A·X − B|² per column, for m > n and full rank.

    The gradient is that of pinv(A)·B.

    Errors: RuntimeError for shapes, dtypes and drivers that do not fit.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.linalg.lstsq.html

    >>> torch.linalg.lstsq(torch.tensor([[1.], [1.]]), torch.tensor([[1.], [3.]])).rank
    tensor(1)
    """
    name = "torch.linalg.lstsq"
    a, right = tensor_argument(input, name), tensor_argument(b, name, "B")
    if a.ndim < 2:
        raise RuntimeError(f"{name}: input must have at least 2 dimensions (its shape is {list(a.shape)}).")
    if not right.ndim:
        raise RuntimeError(f"{name}: other must have at least 1 dimension.")
    if a.dtype is not right.dtype:
        raise RuntimeError(
            f"{name}: Expected input and other to have the same dtype, but got input's dtype {scalar_name(a)} and other's dtype "
            f"{scalar_name(right)}"
        )
    floating(a, name)
    if not 0 <= a.ndim - right.ndim <= 1:
        raise RuntimeError(
            f"{name}: input.dim() must be greater or equal to other.dim() and (input.dim() - other.dim()) <= 1 "
            f"({a.ndim} and {right.ndim} dims)"
        )
    vector = a.ndim - 1 == right.ndim and right.shape == a.shape[:-1]
    if not vector and right.ndim == 1:
        raise RuntimeError(
            f"{name}: input.size(-2) should match other.size(-1) ({a.shape[-2]} and {right.shape[-1]})"
        )
    if vector:
        right = right.unsqueeze(-1)
    if a.shape[-2] != right.shape[-2]:
        raise RuntimeError(f"{name}: input.size(-2) should match other.size(-2) ({a.shape[-2]} and {right.shape[-2]})")
    driver = text_argument(driver, name, "driver") or "gelsy"
    if driver not in _DRIVERS:
        raise RuntimeError(f"{name}: parameter `driver` should be one of (gels, gelsy, gelsd, gelss), got {driver!r}")
    m, n = a.shape[-2:]
    batch = broadcast_shapes(a.shape[:-2], right.shape[:-2])
    a, right = a.expand(*batch, m, n), right.expand(*batch, m, right.shape[-1])
    cut = float(np.finfo(a.dtype.np).eps) * max(m, n) if rcond is None else float_argument(rcond, "linalg.lstsq", "rcond")
    if cut == 0 and driver == "gelss":
        cut = float(np.finfo(a.dtype.np).tiny)
    x, residuals, rank, s = _lstsq(a, right, 0.0 if driver == "gels" else cut, driver)
    if driver == "gels":
        rank = new_empty((0,), dtypes.int64)
    if driver in ("gels", "gelsy"):
        s = new_empty((0,), a.dtype.to_real())
    return return_types.linalg_lstsq(x.squeeze(-1) if vector else x, residuals, rank, s.detach())


# ------------------------------------------------------------------------------------------------------ low rank


def _range(a: Tensor, q: int, niter: int, mean: Tensor | None) -> Tensor:
    """Return an orthonormal basis (m × q) of about the space that A (− mean) maps to (Halko et al., algorithm 4.4)."""

    def times(x: Tensor) -> Tensor:
        return a @ x if mean is None else a @ x - mean @ x

    def back(x: Tensor) -> Tensor:
        return adjoint(a) @ x if mean is None else adjoint(a) @ x - adjoint(mean) @ x

    start = OPS["randn"].call(a.shape[-1], q, dtype=a.dtype)
    y = _qr(times(start), "reduced")[0]
    for _ in range(niter):
        y = _qr(times(_qr(back(y), "reduced")[0]), "reduced")[0]
    return y


def _low_rank(a: Tensor, q: int, niter: int, mean: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
    m, n = a.shape[-2:]
    q = min(q, m, n)
    flip = m < n
    if flip:
        a, mean = adjoint(a), None if mean is None else adjoint(mean)
    basis = _range(a, q, niter, mean)
    small = adjoint(basis) @ a if mean is None else adjoint(basis) @ (a - mean)
    u, s, vh = thin_svd(small)
    u, v = basis @ u, adjoint(vh)
    return (v, s, u) if flip else (u, s, v)


@public(method=False)
def svd_lowrank(A, q=6, niter=2, M=None) -> tuple[Tensor, Tensor, Tensor]:
    """Return (U, S, V), about the ``q`` greatest singular values of A (− M) and their vectors, by random projection.

    A: (…, m, n); ``niter`` rounds of iteration make it more exact. A seed makes it repeatable.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.svd_lowrank.html

    >>> torch.svd_lowrank(torch.tensor([[3., 0.], [0., 2.]]), 1)[1].shape
    torch.Size([1])
    """
    a = tensor_argument(A, "svd_lowrank")
    if a.ndim < 2:
        raise ValueError(f"svd_lowrank: A must have at least 2 dimensions (its shape is {list(a.shape)})")
    floating(a, "svd_lowrank")
    mean = None if M is None else tensor_argument(M, "svd_lowrank", "M").expand(a.shape)
    return _low_rank(a, as_int(q, "q"), as_int(niter, "niter"), mean)


@public(method=False)
def pca_lowrank(A, q=None, center=True, niter=2) -> tuple[Tensor, Tensor, Tensor]:
    """Return (U, S, V): about the ``q`` first principal components (columns of V) of the rows of A (…, m, n), by `svd_lowrank`.

    Errors: ValueError for q outside 0 … min(m, n), and negative niter.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.pca_lowrank.html

    >>> torch.pca_lowrank(torch.ones(3, 2), 1)[2].shape
    torch.Size([2, 1])
    """
    a = tensor_argument(A, "pca_lowrank")
    floating(a, "pca_lowrank")
    m, n = a.shape[-2:]
    q = min(6, m, n) if q is None else q
    if not 0 <= q <= min(m, n):
        raise ValueError(f"q(={q}) must be non-negative integer and not greater than min(m, n)={min(m, n)}")
    if niter < 0:
        raise ValueError(f"niter(={niter}) must be non-negative integer")
    if center:
        a = a - a.mean(-2, keepdim=True)
    return _low_rank(a, q, niter, None)
