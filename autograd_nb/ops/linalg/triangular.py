"""Triangular systems, the Cholesky factor and what is solved with it."""

from __future__ import annotations

from typing import Any

from ... import return_types
from ...launch import Kernel
from ...tensor import Tensor
from ..core.numbers import bool_argument
from ..core.recording import fresh, guarded, underived
from ..core.registry import public
from ..core.structured import structured, tensor_argument
from ..creation.cast import cast, dense, relaid
from ..creation.create import new_empty
from ..shape.rearrange import tril, triu
from .common import (
    adjoint,
    batch_of,
    broadcast,
    by_columns,
    check,
    check_equation,
    columns,
    count,
    floating,
    given,
    identity,
    info_tensor,
    matrix,
    new_info,
    same_dtype,
    several,
    solved_into,
    square,
    square_shape,
    stride,
    summed,
    turned,
)

_SOLVE, _CHOLESKY = Kernel("linalg.lapack", "solve_triangular"), Kernel("linalg.lapack", "cholesky", outputs=2)


def _triangle_rule(g: Tensor, needs: set[Any], t: Tensor, out: Tensor, upper: bool, trans: bool, unit: bool, standing: bool) -> dict[Any, Any]:
    gb = triangle(t, g, upper, not trans, unit, standing)
    found = {"b": gb}
    if "t" in needs:
        gt = -(out @ gb.mT if trans else gb @ out.mT)
        keep = triu(gt, int(unit)) if upper else tril(gt, -int(unit))
        found["t"] = summed(keep, t.shape)
    return found


@structured(
    every=_triangle_rule, node="LinalgSolveTriangularBackward0", linear="no", batch="samples",
    dtypes="float complex", samples="torch.linalg.solve_triangular(spd(4), x(4, 2), upper=True)",
)
def triangle(t, b, upper, trans, unit, standing):
    """Return op(t)⁻¹·b for one triangle of t, op transposing if ``trans``; t one matrix, or as many as b. ``standing``: by columns."""
    out = new_empty(b.shape, b.dtype)
    n, k = b.shape[-2:]
    if out._layout.size:
        _SOLVE(b.dtype, count(b), n, k, upper, trans, unit, stride(t, n * n), n * k, dense(t), dense(b), out._data)
    return turned(out) if standing else out


@structured(
    every=_triangle_rule, node="TriangularSolveBackward0", linear="no", batch="samples",
    dtypes="float complex", samples="torch.triangular_solve(x(4, 2), spd(4)).solution",
)
def _triangle_by_columns(t, b, upper, trans, unit, standing):
    """Return `triangle`, laid out as LAPACK leaves solutions."""
    return triangle(t, b, upper, trans, unit, standing)


def solve(a: Tensor, b: Tensor, upper: bool, left: bool = True, unit: bool = False) -> Tensor:
    """X with A·X = B, or X·A = B, by columns."""
    a, b = broadcast(a, b)
    return triangle(a, b, upper, False, unit, True) if left else fresh(triangle(a, b.mT, upper, True, unit, False).mT)


@public(method=False, namespaces=("linalg",), name="linalg.solve_triangular")
def solve_triangular(A, B, *, upper, left=True, unitriangular=False, out=None):
    """X with A·X = B (X·A = B if not ``left``) for triangular A, the other triangle of which is not read.

    A: (…, n, n), B: (…, n, k); batches broadcast. dB = A⁻ᴴ·g, dA = −dB·Xᴴ in the triangle. ``unitriangular``: the diagonal counts as 1.

    Errors: RuntimeError for shapes or dtypes that do not fit. A zero on the diagonal gives infinities.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.linalg.solve_triangular.html

    >>> torch.linalg.solve_triangular(torch.tensor([[1.0, 2.0], [0.0, 4.0]]), torch.tensor([[5.0], [8.0]]), upper=True)
    tensor([[1.],
            [2.]])
    """
    name, kernel = "linalg.solve_triangular", "triangular_solve_cpu"
    upper = bool_argument(upper, name, "upper")
    a, b = matrix(A, name, kernel=kernel), tensor_argument(B, name, "B")
    if b.ndim < 2:
        raise RuntimeError(f"{name}: The input tensor B must have at least 2 dimensions. (B has shape {list(b.shape)})")
    square_shape(a, name)
    b = cast(b, a.dtype)
    check_equation(a, b, left, name)
    x = solve(a, b, bool(upper), bool(left), bool(unitriangular))
    return given(x, out, name, (B,))


@public()
def triangular_solve(b, A, upper=True, transpose=False, unitriangular=False, *, out=None):
    """Return (solution, cloned_coefficient): the older form of `linalg.solve_triangular`, b before A.

    Errors: RuntimeError for shapes or dtypes that do not fit.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.triangular_solve.html

    >>> torch.triangular_solve(torch.tensor([[4.]]), torch.tensor([[2.]]))
    torch.return_types.triangular_solve(
    solution=tensor([[2.]]),
    cloned_coefficient=tensor([[2.]]))
    """
    x, a = tensor_argument(b, "triangular_solve", "b"), tensor_argument(A, "triangular_solve", "A")
    for argument, t in (("b", x), ("A", a)):
        if t.ndim < 2:
            raise RuntimeError(
                f"torch.triangular_solve: Expected {argument} to have at least 2 dimensions, but it has {t.ndim} dimensions instead"
            )
        floating(t, "triangular_solve", "triangular_solve_cpu")
    square_shape(a, "triangular_solve")
    same_dtype(a, x, "triangular_solve", second="b")
    if a.shape[-1] != x.shape[-2]:
        raise RuntimeError(
            f"Incompatible matrix sizes for triangular_solve: each A matrix is {a.shape[-1]} by {a.shape[-1]} but each b matrix is "
            f"{x.shape[-2]} by {x.shape[-1]}"
        )
    one, many = broadcast(a, x)
    y = guarded(_triangle_by_columns(one, many, bool(upper), bool(transpose), bool(unitriangular), True), x)
    copy = relaid(a.expand(*y.shape[:-2], *a.shape[-2:]), columns((*y.shape[:-2], *a.shape[-2:]), a.dtype))
    if y._rg and not copy._rg:
        underived("cloned_coefficient of triangular_solve", (copy,), x)
    return several(return_types.triangular_solve, (y, copy), out, "triangular_solve")


# --------------------------------------------------------------------------------------------------- Cholesky


def _cholesky_rule(g: Any, out0: Any, upper: bool, by_rows: bool) -> Any:
    if g[0] is None:
        return None
    factor, gl = (adjoint(out0), adjoint(g[0])) if upper else (out0, g[0])
    # gA = L⁻ᴴ·Φ·L⁻¹, Φ the Hermitian matrix with half of the lower triangle of Lᴴ·gL
    other = square_shape(adjoint(factor), "linalg.solve_triangular")  # (`torch.cholesky` takes others that have no elements)
    inner = other @ gl
    inner = (tril(inner) + adjoint(tril(inner, -1))) * 0.5
    return solve(factor, solve(other, inner, True), False, left=False)


@structured(
    a=_cholesky_rule, node="LinalgCholeskyExBackward0", holomorphic=False, linear="no", batch="shift",
    dtypes="float complex", samples="torch.linalg.cholesky(spd(4))",
)
def _cholesky(a, upper, by_rows):
    n = a.shape[-1]
    out, info = new_empty(a.shape, a.dtype) if by_rows else by_columns(a.shape, a.dtype), new_info(a)
    if out._layout.size:
        _CHOLESKY(a.dtype, count(a), n, upper, dense(a), out._data, info)
    return [out, info_tensor(info, batch_of(a))]


def _not_definite(k: int) -> str:
    return (
        "The factorization could not be completed because the input is not positive-definite (the leading minor of order "
        f"{k} is not positive-definite)."
    )


@public(method=False, namespaces=("linalg",), name="linalg.cholesky")
def cholesky(A, *, upper=False, out=None):
    """Return the lower triangular L with A = L·Lᴴ (the upper U with A = Uᴴ·U) of Hermitian positive definite matrices; reads one triangle.

    The gradient is that of a symmetric A: L⁻ᴴ·Φ·L⁻¹, Φ the symmetric matrix with half of the lower triangle of Lᴴ·g.

    Errors: `linalg.LinAlgError` naming the batch element and the leading minor when A is not positive definite.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.linalg.cholesky.html

    >>> torch.linalg.cholesky(torch.tensor([[4.0, 2.0], [2.0, 10.0]]))
    tensor([[2., 0.],
            [1., 3.]])
    """
    return _checked_cholesky(square(A, "linalg.cholesky"), bool(upper), out, "linalg.cholesky")


@public(name="cholesky")
def torch_cholesky(input, upper=False, *, out=None):
    """Return `linalg.cholesky`, its older name; cholesky([[4., 2.], [2., 2.]]) = [[2., 0.], [1., 1.]]."""
    x = matrix(input, "cholesky", kernel="cholesky_cpu")
    empty = not x._layout.size  # then in C order, of any shape
    return _checked_cholesky(x if empty else square_shape(x, "cholesky"), bool(upper), out, "cholesky", empty)


def _checked_cholesky(a: Tensor, upper: bool, out: Any, name: str, by_rows: bool = False) -> Tensor:
    y, info = _cholesky(a, upper, by_rows)
    check(info, name, _not_definite)
    return given(y, out, name)


@public(method=False, namespaces=("linalg",), name="linalg.cholesky_ex")
def cholesky_ex(A, *, upper=False, check_errors=False, out=None):
    """Return (L, info): `linalg.cholesky` that reports failure in ``info`` (the order of the leading minor, else 0) instead of raising.

    Source: https://docs.pytorch.org/docs/stable/generated/torch.linalg.cholesky_ex.html

    >>> torch.linalg.cholesky_ex(torch.tensor([[4.]]))
    torch.return_types.linalg_cholesky_ex(
    L=tensor([[2.]]),
    info=tensor(0, dtype=torch.int32))
    """
    y, info = _cholesky(square(A, "linalg.cholesky_ex"), bool(upper), False)
    if check_errors:
        check(info, "linalg.cholesky_ex", _not_definite)
    return several(return_types.linalg_cholesky_ex, (y, info), out, "linalg.cholesky_ex")


def _cholesky_solve_rule(g: Tensor, needs: set[Any], b: Tensor, factor: Tensor, out: Tensor, upper: bool) -> dict[Any, Any]:
    gb = _cholesky_solve(g, factor, upper)
    found = {"b": gb}
    if "factor" in needs:
        both = gb @ adjoint(out)
        both = both + adjoint(both)
        found["factor"] = summed(-(factor @ both if upper else both @ factor), factor.shape)
    return found


@structured(
    every=_cholesky_solve_rule, node="CholeskySolveBackward0", holomorphic=False, linear="no", batch="shift",
    dtypes="float complex", samples="torch.cholesky_solve(x(4, 2), spd(4).tril())",
)
def _cholesky_solve(b, factor, upper):
    other = adjoint(factor)
    x = solve(factor, solve(other, b, False), True) if upper else solve(other, solve(factor, b, False), True)
    return turned(x)


def _two(a: Any, b: Any, name: str) -> tuple[Tensor, Tensor]:
    x, factor = tensor_argument(a, name), tensor_argument(b, name, "L")
    for argument, t in (("b", x), ("u", factor)):
        if t.ndim < 2:
            raise RuntimeError(f"{argument} should have at least 2 dimensions, but has {t.ndim} dimensions instead ({name})")
        floating(t, name, "cholesky_solve_cpu")
    square_shape(factor, name)
    same_dtype(factor, x, name, "L", "B")
    if factor.shape[-1] != x.shape[-2]:
        raise RuntimeError(
            f"Incompatible matrix sizes for {name}: each A matrix is {factor.shape[-1]} by {factor.shape[-1]} but each b matrix is "
            f"{x.shape[-2]} by {x.shape[-1]}"
        )
    return x, factor


@public()
def cholesky_solve(B, L, upper=False, *, out=None):
    """X with A·X = B, given the Cholesky factor of A: B (…, n, k), L (…, n, n), batches broadcast.

    The gradient of L is, as PyTorch's, that of the whole matrix: take its triangle where L was not made by `linalg.cholesky`.

    Errors: RuntimeError for shapes or dtypes that do not fit.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.cholesky_solve.html

    >>> torch.cholesky_solve(torch.tensor([[4.0], [8.0]]), torch.tensor([[2.0, 0.0], [0.0, 4.0]]))
    tensor([[1.0000],
            [0.5000]])
    """
    x, factor = _two(B, L, "cholesky_solve")
    factor, x = broadcast(factor, x)
    return given(_by_rows(_cholesky_solve(x, factor, bool(upper)), out), out, "cholesky_solve")


def _by_rows(y: Tensor, out: Any) -> Tensor:
    """Return a solution for ``out``, which PyTorch lays out in C order where it has another shape."""
    return y.contiguous() if isinstance(out, Tensor) and out.shape != y.shape else y


@public()
def cholesky_inverse(L, upper=False, *, out=None):
    """Return A⁻¹, given the Cholesky factor of A (…, n, n).

    Errors: RuntimeError for matrices that are not square.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.cholesky_inverse.html

    >>> torch.cholesky_inverse(torch.tensor([[2.0, 0.0], [2.0, 4.0]]))
    tensor([[ 0.3125, -0.0625],
            [-0.0625,  0.0625]])
    """
    factor = square(L, "cholesky_inverse", kernel="cholesky_inverse_out_cpu")
    eye = identity(factor.shape[-1], factor.dtype).expand(factor.shape)
    y = _cholesky_solve(eye, factor, bool(upper))
    return solved_into(out, _by_rows(y, out) if isinstance(out, Tensor) and out._layout.size else y, factor, "cholesky_inverse")
