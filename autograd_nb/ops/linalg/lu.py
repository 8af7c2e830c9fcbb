"""LU with row exchanges, and what it gives: solutions and inverses."""

from __future__ import annotations

from typing import Any

from ... import dtypes, return_types
from ...codegen.formula.namespace import m
from ...graph.modes import state
from ...launch import Kernel
from ...shapes import broadcast_shapes
from ...tensor import Tensor
from ..core.recording import check_output, fresh, guarded, refuse_overlap
from ..core.registry import OPS, public
from ..core.structured import structured, tensor_argument
from ..creation.cast import cast, dense
from ..creation.create import new_empty, new_full
from ..shape.rearrange import tril, triu
from .common import (
    SMALL,
    adjoint,
    batch_of,
    broadcast,
    by_columns,
    check,
    check_equation,
    count,
    floating,
    given,
    identity,
    info_tensor,
    many_small,
    new_info,
    reads_first,
    same_dtype,
    several,
    solved_into,
    square,
    square_shape,
    stride,
    summed,
    turned,
)
from .triangular import solve as solve_triangle

_FACTOR, _SOLVE = Kernel("linalg.lapack", "lu_factor", outputs=3), Kernel("linalg.lapack", "lu_solve")
_BY_COLUMNS = Kernel("linalg.lapack", "by_columns")
_INVERSE, _PERMUTATION = Kernel("linalg.lapack", "inverse", outputs=2), Kernel("linalg.lapack", "permutation")
_MANY_FACTOR, _MANY_SOLVE = Kernel("linalg.batched", "lu_factor", outputs=3), Kernel("linalg.batched", "lu_solve")
_MANY_INVERSE = Kernel("linalg.batched", "inverse", outputs=2)


def _factors(a: Tensor) -> list[Tensor]:
    """Return [LU, pivots, info], without history."""
    m, n = a.shape[-2:]
    batch = batch_of(a)
    lu, pivots, info = new_empty(a.shape, a.dtype), new_empty((*batch, min(m, n)), dtypes.int32), new_info(a)
    if lu._layout.size:
        factor = _MANY_FACTOR if m == n and many_small(a) else _FACTOR
        factor(a.dtype, count(a), m, n, dense(a), lu._data, pivots._data, info)
    return [lu, pivots, info_tensor(info, batch)]


def _solved(lu: Tensor, pivots: Tensor, b: Tensor, trans: bool = False) -> Tensor:
    """Return op(a)⁻¹·b from the factors of a, without history."""
    out = by_columns(b.shape, b.dtype)
    n, k = b.shape[-2:]
    if out._layout.size:
        solve = _MANY_SOLVE if k <= SMALL and many_small(lu, b) else _SOLVE
        solve(
            b.dtype,
            count(b),
            n,
            k,
            trans,
            stride(lu, n * n),
            stride(pivots, n),
            n * k,
            dense(lu),
            dense(pivots),
            dense(b),
            out._data,
        )
    return out


def _permutation(pivots: Tensor, m: int, d: dtypes.dtype) -> Tensor:
    """Return the matrix P of P·L·U, with ``m`` rows."""
    if d.is_half:  # its memory is not of numbers
        return cast(_permutation(pivots, m, dtypes.float32), d)
    p = new_empty((*pivots.shape[:-1], m, m), d)
    if p._layout.size:
        _PERMUTATION(d, count(p), m, pivots.shape[-1], dense(pivots), p._data)
    return p


def _unpacked(lu: Tensor) -> tuple[Tensor, Tensor]:
    """Return L with ones on its diagonal, and U."""
    m, n = lu.shape[-2:]
    r = min(m, n)
    one = identity(r, lu.dtype)
    if m > r:
        one = OPS["cat"].call([one, new_full((m - r, r), 0, lu.dtype)], 0)
    return tril(lu.narrow(-1, 0, r), -1) + one, triu(lu.narrow(-2, 0, r))


def _factors_gradient(gl: Any, gu: Any, p: Tensor, lower: Tensor, upper: Tensor) -> Tensor:
    """gA for A = P·L·U, of the gradients of L and U (None: none comes through it)."""
    m, n = lower.shape[-2], upper.shape[-1]
    r = min(m, n)
    square_l, square_u = lower.narrow(-2, 0, r), upper.narrow(-1, 0, r)
    inner: Any = None
    if gl is not None:
        left = square_l.mT @ gl.narrow(-2, 0, r)
        inner = tril(left, -1)
    if gu is not None:
        right = gu.narrow(-1, 0, r) @ square_u.mT
        inner = triu(right) if inner is None else inner + triu(right)
    if n > r and gu is not None:  # the rest of U is L⁻¹·Pᵀ·(the rest of A)
        rest = gu.narrow(-1, r, n - r)
        inner = inner - tril(rest @ upper.narrow(-1, r, n - r).mT, -1)
    if m > r and gl is not None:  # the rest of L is (the rest of Pᵀ·A)·U⁻¹
        rest = gl.narrow(-2, r, m - r)
        inner = inner - triu(lower.narrow(-2, r, m - r).mT @ rest)
    y = solve_triangle(square_u.mT, inner, False, left=False)
    parts = [solve_triangle(square_l.mT, y, True, unit=True)]
    if n > r:
        parts.append(new_full((*y.shape[:-1], n - r), 0, y.dtype) if gu is None else solve_triangle(square_l.mT, rest, True, unit=True))
    if m > r:
        parts.append(new_full((*y.shape[:-2], m - r, r), 0, y.dtype) if gl is None else solve_triangle(square_u.mT, rest, False, left=False))
    return p @ (parts[0] if len(parts) == 1 else OPS["cat"].call(parts, -1 if n > r else -2))


def _lu_rule(g: Any, out0: Any, out1: Any) -> Any:
    g, lu, pivots = g[0], out0, out1
    if g is None:
        return None
    r = min(lu.shape[-2:])
    lower, upper = _unpacked(lu)
    gl, gu = tril(g.narrow(-1, 0, r), -1), triu(g.narrow(-2, 0, r))
    return _factors_gradient(gl, gu, _permutation(pivots, lu.shape[-2], lu.dtype), lower, upper)


@structured(
    a=_lu_rule, node="LinalgLuFactorExBackward0", linear="no", batch="shift",
    dtypes="float complex", samples="torch.linalg.lu_factor(spd(4)).LU",
)
def _lu_factor(a):
    lu, pivots, info = _factors(a)
    out = by_columns(a.shape, a.dtype)
    if out._layout.size:
        _BY_COLUMNS(a.dtype, count(a), *a.shape[-2:], lu._data, out._data)
    return [out, pivots, info]


def _pivoted(pivot: Any) -> None:
    if not pivot:
        raise RuntimeError("linalg.lu_factor: LU without pivoting is not implemented on the CPU (pivot=False)")


def _two_dims(value: Any, name: str) -> Tensor:
    x = tensor_argument(value, name)
    if x.ndim < 2:
        raise RuntimeError(f"{name}: Expected tensor with 2 or more dimensions. Got size: {list(x.shape)} instead")
    return floating(x, name, "lu_cpu")


def _zero_pivot(k: int) -> str:
    return (
        f"U[{k},{k}] is zero and using it on lu_solve would result in a division by zero. If you still want to perform the "
        "factorization, consider calling linalg.lu(A, pivot) or linalg.lu_factor_ex(A, pivot)"
    )


@public(method=False, namespaces=("linalg",), name="linalg.lu_factor")
def lu_factor(A, *, pivot=True, out=None):
    """Return (LU, pivots) with A = P·L·U: both factors in one matrix (L without its diagonal of ones), and the row exchanges from 1.

    Derivative: that of `linalg.lu`, dL and dU being the two triangles of the gradient.

    A: (…, m, n). Errors: RuntimeError when U has a zero on its diagonal, naming the batch element; for ``pivot=False``.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.linalg.lu_factor.html

    >>> torch.linalg.lu_factor(torch.tensor([[2.0, 1.0], [4.0, 3.0]])).pivots
    tensor([2, 2], dtype=torch.int32)
    """
    _pivoted(pivot)
    lu, pivots, info = _lu_factor(_two_dims(A, "torch.lu_factor"))
    check(info, "torch.linalg.lu_factor", _zero_pivot, RuntimeError)
    return several(return_types.linalg_lu_factor, (lu, pivots), out, "linalg.lu_factor")


@public(method=False, namespaces=("linalg",), name="linalg.lu_factor_ex")
def lu_factor_ex(A, *, pivot=True, check_errors=False, out=None):
    """Return (LU, pivots, info): `linalg.lu_factor` that reports the first zero on U's diagonal in ``info`` instead of raising.

    Source: https://docs.pytorch.org/docs/stable/generated/torch.linalg.lu_factor_ex.html

    >>> torch.linalg.lu_factor_ex(torch.tensor([[4.]]))
    torch.return_types.linalg_lu_factor_ex(
    LU=tensor([[4.]]),
    pivots=tensor([1], dtype=torch.int32),
    info=tensor(0, dtype=torch.int32))
    """
    _pivoted(pivot)
    lu, pivots, info = _lu_factor(_two_dims(A, "torch.lu_factor_ex"))
    if check_errors:
        check(info, "torch.linalg.lu_factor_ex", _zero_pivot, RuntimeError)
    return several(return_types.linalg_lu_factor_ex, (lu, pivots, info), out, "linalg.lu_factor_ex")


@public(name="lu")
def torch_lu(self, pivot=True, get_infos=False, out=None) -> tuple[Tensor, ...]:
    """Return (LU, pivots), and info if ``get_infos``: the older form of `linalg.lu_factor_ex`."""
    _pivoted(pivot)
    results = _lu_factor(_two_dims(self, "torch.lu"))[: 3 if get_infos else 2]
    return several(return_types._lu_with_info if get_infos else lambda *t: t, results, out, "lu")


@structured(
    a=lambda g, out0, out1, out2: None if g[1] is None and g[2] is None else _factors_gradient(g[1], g[2], out0, out1, out2),
    node="LinalgLuBackward0", linear="no", batch="shift", dtypes="float complex", samples="torch.linalg.lu(spd(4)).U",
)
def _lu(a):
    """Return [P, L, U]; nothing goes back through P."""
    both, pivots, _ = _lu_factor.forward(a)
    return [_permutation(pivots, a.shape[-2], a.dtype), *_unpacked(both)]


@public(method=False, namespaces=("linalg",), name="linalg.lu")
def lu(A, *, pivot=True, out=None):
    """Return (P, L, U) with A = P·L·U: P (…, m, m) a permutation, L (…, m, k) with ones on its diagonal, U (…, k, n), k = min(m, n).

    Derivative: dA = P·L⁻ᴴ·(tril₋(Lᴴ·dL) + triu(dU·Uᴴ))·U⁻ᴴ for square A, tril₋ without the diagonal.
    Errors: RuntimeError for less than 2 dims and for ``pivot=False``.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.linalg.lu.html

    >>> torch.linalg.lu(torch.tensor([[2.0, 1.0], [4.0, 3.0]])).U
    tensor([[ 4.0000,  3.0000],
            [ 0.0000, -0.5000]])
    """
    _pivoted(pivot)
    p, lower, upper = _lu(_two_dims(A, "linalg.lu"))
    return several(return_types.linalg_lu, (p.detach(), lower, upper), out, "linalg.lu")


@public(method=False)
def lu_unpack(LU_data, LU_pivots, unpack_data=True, unpack_pivots=True, *, out=None):
    """Return (P, L, U) from the results of `linalg.lu_factor`; what is not unpacked is an empty tensor.

    Errors: RuntimeError for pivots that are not int32, or out of range.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.lu_unpack.html

    >>> LU, pivots = torch.linalg.lu_factor(torch.tensor([[2., 4.], [1., 5.]]))
    >>> torch.lu_unpack(LU, pivots)[2]
    tensor([[2., 4.],
            [0., 3.]])
    """
    both, pivots = tensor_argument(LU_data, "lu_unpack", "LU_data"), tensor_argument(LU_pivots, "lu_unpack", "LU_pivots")
    if both.ndim < 2:
        raise RuntimeError(f"torch.lu_unpack: Expected tensor with 2 or more dimensions. Got size: {list(both.shape)} instead")
    if unpack_pivots and pivots.dtype is not dtypes.int32:
        raise RuntimeError(
            f"torch.lu_unpack: LU_pivots is expected to be a contiguous tensor of torch.int32 dtype, got {pivots.dtype}.\n"
            "Note: this function is intended to be used with the output produced by torch.linalg.lu_factor"
        )
    if unpack_pivots and tuple(pivots.shape) != (*both.shape[:-2], min(both.shape[-2:])):
        raise RuntimeError(
            f"torch.lu_unpack: LU_pivots must have the shape {[*both.shape[:-2], min(both.shape[-2:])]} for LU_data of size {list(both.shape)}, got "
            f"{list(pivots.shape)}. Did you properly pass the result of lu_factor?"
        )
    nothing = new_empty((0,), both.dtype)
    p, (lower, upper) = nothing, _unpacked(both) if unpack_data else (nothing, nothing)
    if unpack_pivots:
        _check_pivots(pivots, both.shape[-2], "torch.lu_unpack: LU_pivots")
        p = _permutation(pivots, both.shape[-2], both.dtype)
    return several(return_types.lu_unpack, (p, lower, upper), out, "lu_unpack")


def _check_pivots(pivots: Tensor, m: int, what: str) -> None:
    if not pivots._layout.size:
        return
    low, high = int(pivots.min()), int(pivots.max())
    if low < 1 or high > m:
        bound = "greater or equal to 1" if low < 1 else "smaller or equal to LU.size(-2)"
        raise RuntimeError(
            f"{what} must all be {bound}. Did you properly pass the result of lu_factor? (they are {low} to {high}, LU.size(-2) is {m})"
        )


# ------------------------------------------------------------------------------------------------------ solving


def _by_factors_rule(g: Any, needs: set[Any], lu: Tensor, pivots: Tensor, out: Tensor, left: bool, conjugate: bool) -> dict[Any, Any]:
    found = {}
    if "b" in needs:
        found["b"] = _by_factors(lu, pivots, g, left, not conjugate)
    if "lu" in needs:
        p, (lower, upper) = _permutation(pivots, lu.shape[-1], lu.dtype), _unpacked(lu)
        x, gx = (out, g) if left else (adjoint(out), adjoint(g))
        if left is conjugate:  # X = A⁻ᴴ·B, so that gA = −X·gXᴴ·A⁻ᴴ
            inner = solve_triangle(adjoint(lower), adjoint(p) @ -(x @ adjoint(gx)) @ p, True, left=False, unit=True)
            glu = tril(inner, -1) + triu(solve_triangle(adjoint(upper), adjoint(lower) @ inner, False, left=False))
        else:  # X = A⁻¹·B, so that gA = −A⁻ᴴ·gX·Xᴴ
            inner = solve_triangle(adjoint(upper), -(gx @ adjoint(x)), False)
            glu = tril(solve_triangle(adjoint(lower), inner @ adjoint(upper), True, unit=True), -1) + triu(inner)
        found["lu"] = summed(glu, lu.shape)
    return found


@structured(
    every=_by_factors_rule, node="LinalgLuSolveBackward0", holomorphic=False, linear="no", batch="samples",
    dtypes="float complex", samples="(lambda b: torch.linalg.lu_solve(*torch.linalg.lu_factor(torch.eye(4).to(b) * 2), b))(x(4, 2))",
)
def _by_factors(lu, pivots, b, left, conjugate):
    """Return A⁻¹·b of the factors of A (b·A⁻¹ if not ``left``; A⁻ᴴ for A⁻¹ if ``conjugate``)."""
    if not left:  # X·A = B is Aᵀ·Xᵀ = Bᵀ, X·Aᴴ = B is A·Xᴴ = Bᴴ
        return adjoint(_solved(lu, pivots, adjoint(b))) if conjugate else _solved(lu, pivots, b.mT, True).mT
    if conjugate and b.dtype.is_complex:
        return m.conj(_solved(lu, pivots, m.conj(b), True))
    return _solved(lu, pivots, b, conjugate)


@public(method=False, namespaces=("linalg",), name="linalg.lu_solve")
def lu_solve(LU, pivots, B, *, left=True, adjoint=False, out=None):
    """X with A·X = B (X·A = B if not ``left``; Aᴴ for A if ``adjoint``), given A = P·L·U as `linalg.lu_factor` returns it.

    LU: (…, n, n), pivots: (…, n), B: (…, n, k); batches broadcast. Gradients go to LU and B.

    Errors: RuntimeError for shapes and dtypes that do not fit, and pivots out of range.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.linalg.lu_solve.html

    >>> A = torch.tensor([[2.]])
    >>> torch.lu_solve(torch.tensor([[6.]]), *torch.linalg.lu_factor(A))
    tensor([[3.]])
    """
    y = _lu_solve(LU, pivots, B, bool(left), bool(adjoint))
    return solved_into(out, guarded(y, LU, pivots, y), B, "linalg.lu_solve", bool(left))


@public(name="lu_solve")
def torch_lu_solve(b, LU_data, LU_pivots, *, out=None):
    """Return `linalg.lu_solve`, its older form: b first."""
    y = _lu_solve(LU_data, LU_pivots, b, True, False)
    return solved_into(out, guarded(y, LU_data, LU_pivots, y), b, "lu_solve")


def _lu_solve(LU: Any, pivots: Any, B: Any, left: bool, adjoint_: bool) -> Tensor:
    name = "linalg.lu_solve"
    both, b = tensor_argument(LU, name, "LU"), tensor_argument(B, name, "B")
    order = tensor_argument(pivots, name, "pivots")
    if both.ndim < 2 or b.ndim < 2:
        argument, x = ("LU", both) if both.ndim < 2 else ("B", b)
        raise RuntimeError(
            f"{name}: The input tensor {argument} must have at least 2 dimensions (its shape is {list(x.shape)})."
        )
    if order.dtype is not dtypes.int32:
        raise RuntimeError(f"{name}: pivots should be a Tensor of scalar type torch.int32, got {order.dtype}")
    floating(both, name)
    square_shape(both, f"torch.{name}")
    same_dtype(both, b, name, "LU", "B")
    check_equation(both, b, left, name)
    if not order.ndim:
        raise IndexError(f"Dimension specified as -1 but tensor has no dimensions ({name}: pivots)")
    if order.shape[-1] != both.shape[-1]:
        raise RuntimeError(
            f"{name}: Number of pivots per batch should be same as the dimension of the matrix ({both.shape[-1]})"
        )
    if order.shape != both.shape[:-1]:
        raise RuntimeError(
            f"{name}: Expected LU.shape[:-1] and pivots.shape to be the same, but got pivots with shape {list(order.shape)} instead"
        )
    _check_pivots(order, both.shape[-1], "Pivots given to lu_solve")
    batch = broadcast_shapes(both.shape[:-2], b.shape[:-2])
    both, b = broadcast(both, b)
    order = order.reshape(both.shape[-1:]) if both.ndim == 2 else order.expand(*batch, both.shape[-1])
    return _by_factors(both, order, b, left, adjoint_)


def _solve_rule(g: Any, needs: set[Any], a: Tensor, out0: Any, out1: Any, out2: Any) -> dict[Any, Any]:
    if g[0] is None:
        return {}
    gb = _solve(a.mT, g[0])[0] if state.grad else _solved(out1, out2, g[0], True)
    found = {"b": gb}
    if "a" in needs:
        found["a"] = summed(-(gb @ out0.mT), a.shape)
    return found


@structured(
    every=_solve_rule, node="LinalgSolveExBackward0", linear="no",
    dtypes="float complex", samples="torch.linalg.solve(spd(4), x(4, 2))",
)
def _solve(a, b):
    """Return [a⁻¹·b, LU, pivots, info]; a is one matrix, or as many as b."""
    lu, pivots, info = _factors(a)
    return [_solved(lu, pivots, b), lu, pivots, info]


@_solve.batched
def _solve_of_batch(op, args, batch):
    a, b = (batch.whole(x) for x in args)
    if a.ndim < b.ndim:  # one matrix for all of a sample's right-hand sides
        a = a.reshape(batch.size, *[1] * (b.ndim - a.ndim), *a.shape[1:]).expand(*b.shape[:-2], *a.shape[-2:])
    return op(a, b)


def _alone(x: Tensor) -> Tensor:
    """Return a result that may not be changed before the backward pass, as what it was copied from may not."""
    return guarded(x, x)


def _solution(A: Any, B: Any, left: bool) -> tuple[Tensor, Tensor]:
    """Return (X, info) for any shapes that `linalg.solve` takes."""
    name = "linalg.solve"
    a, b = tensor_argument(A, name), tensor_argument(B, name, "B")
    if a.ndim < 2:
        raise RuntimeError(f"{name}: The input tensor A must have at least 2 dimensions (its shape is {list(a.shape)}).")
    square_shape(floating(a, name), name)
    same_dtype(a, b, name)
    # PyTorch's rule: B is (a batch of) vectors where its shape is A's without the last dim
    vector = b.ndim == 1 or (a.ndim - 1 == b.ndim and b.shape == a.shape[:-1])
    if not b.ndim:
        raise RuntimeError(f"{name}: The input tensor B must have at least 2 dimensions (its shape is []).")
    if vector:
        b = b.unsqueeze(-1)
    check_equation(a, b, left, name)
    if vector and not left:
        raise RuntimeError(
            f"{name}: Vector broadcasting of the left hand side is not supported for left=False. In this case linalg.solve is "
            "equivalent to B / A.squeeze(-1)"
        )
    one, many = broadcast(a, b)
    x, _, _, info = _solve(one, many) if left else _solve(one.mT, many.mT)
    x = x if left else fresh(x.mT)
    if vector:
        x = x.squeeze(-1)
        x = fresh(_alone(turned(x)) if x.ndim > 1 else x)  # PyTorch lays out a batch of vectors as if it were a matrix
    return x, _of_each(info, a)


def _of_each(info: Tensor, a: Tensor) -> Tensor:
    """Return what is said of each of the matrices a, from what is said of each after their batch was broadcast (or of the only one)."""
    batch = a.shape[:-2]
    if info.shape == batch:
        return info
    if not info._layout.size:  # nothing to solve: they are looked at for themselves
        return _factors(a.detach())[2] if a._layout.size else new_full(batch, 0, info.dtype)
    while info.ndim > len(batch):
        info = info.select(0, 0)
    for d, n in enumerate(batch[len(batch) - info.ndim :]):
        if n == 1:
            info = info.narrow(d, 0, 1)
    return info.reshape(batch).clone()


def _unsolvable(k: int) -> str:
    return "The solver failed because the input matrix is singular."


@public(method=False, namespaces=("linalg",), name="linalg.solve")
def solve(A, B, *, left=True, out=None):
    """X with A·X = B (X·A = B if not ``left``): A (…, n, n), B (…, n, k), or (…, n) for vectors; batches broadcast.

    dB = A⁻ᴴ·g, dA = −dB·Xᴴ, from the same LU factors.

    Errors: `linalg.LinAlgError` for a singular A, naming the batch element; RuntimeError for shapes and dtypes that do not fit.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.linalg.solve.html

    >>> torch.linalg.solve(torch.tensor([[2.0, 0.0], [1.0, 1.0]]), torch.tensor([4.0, 5.0]))
    tensor([2., 3.])
    """
    x, info = _solution(A, B, left)
    check(info, "torch.linalg.solve", _unsolvable)
    return solved_into(out, x, B, "linalg.solve", bool(left))


@public(method=False, namespaces=("linalg",), name="linalg.solve_ex")
def solve_ex(A, B, *, left=True, check_errors=False, out=None):
    """Return (result, info): `linalg.solve` that reports failure in ``info`` (the zero on U's diagonal, from 1) instead of raising.

    Source: https://docs.pytorch.org/docs/stable/generated/torch.linalg.solve_ex.html

    >>> torch.linalg.solve_ex(torch.tensor([[2.]]), torch.tensor([[6.]]))
    torch.return_types.linalg_solve_ex(
    result=tensor([[3.]]),
    info=tensor(0, dtype=torch.int32))
    """
    x, info = _solution(A, B, left)
    if check_errors:
        check(info, "torch.linalg.solve_ex", _unsolvable)
    if isinstance(out, (tuple, list)) and len(out) == 2:
        check_output(out[0], "linalg.solve_ex", x._rg)
        refuse_overlap(out[0], reads_first(out[0], x, B, bool(left)))
    return several(return_types.linalg_solve_ex, (x, info), out, "linalg.solve_ex")


def _inv_rule(g: Any, out0: Any) -> Any:
    return None if g[0] is None else -(out0.mT @ (g[0] @ out0.mT))


@structured(
    a=_inv_rule, node="LinalgInvExBackward0", linear="no", batch="shift",
    dtypes="float complex", samples="torch.linalg.inv(spd(4))",
)
def _inv(a):
    out, info = by_columns(a.shape, a.dtype), new_info(a)
    if out._layout.size:
        inverse = _MANY_INVERSE if many_small(a) else _INVERSE
        inverse(a.dtype, count(a), a.shape[-1], dense(a), out._data, info)
    return [out, info_tensor(info, batch_of(a))]


def _singular(k: int) -> str:
    return f"The diagonal element {k} is zero, the inversion could not be completed because the input matrix is singular."


@public(name="inverse")
@public(method=False, namespaces=("linalg",), name="linalg.inv")
def inv(A, *, out=None):
    """Return A⁻¹ of square matrices (…, n, n); dA = −A⁻ᴴ·g·A⁻ᴴ.

    Errors: `linalg.LinAlgError` for a singular matrix, naming the batch element.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.linalg.inv.html

    >>> torch.linalg.inv(torch.tensor([[2.0, 1.0], [1.0, 3.0]]))
    tensor([[ 0.6000, -0.2000],
            [-0.2000,  0.4000]])
    """
    y, info = _inv(square(A, "linalg.inv"))
    check(info, "linalg.inv", _singular)
    return given(y, out, "linalg.inv")


@public(method=False, namespaces=("linalg",), name="linalg.inv_ex")
def inv_ex(A, *, check_errors=False, out=None):
    """Return (inverse, info): `linalg.inv` that reports failure in ``info`` (the zero on U's diagonal, from 1) instead of raising.

    Source: https://docs.pytorch.org/docs/stable/generated/torch.linalg.inv_ex.html

    >>> torch.linalg.inv_ex(torch.tensor([[2., 0.], [0., 4.]]))
    torch.return_types.linalg_inv_ex(
    inverse=tensor([[0.5000, 0.0000],
            [0.0000, 0.2500]]),
    info=tensor(0, dtype=torch.int32))
    """
    y, info = _inv(square(A, "linalg.inv_ex"))
    if check_errors:
        check(info, "linalg.inv_ex", _singular)
    return several(return_types.linalg_inv_ex, (y, info), out, "linalg.inv_ex")
