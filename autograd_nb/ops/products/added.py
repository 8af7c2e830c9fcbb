"""Products that are added to something, with factors of both: `addmm` and its like."""

from __future__ import annotations

from typing import Any

from ... import dtypes
from ...shapes import wrap_dim
from ...tensor import Tensor
from ..core.numbers import number_argument, number_as
from ..core.recording import not_for_limited, scalar_type, store
from ..core.registry import OPS, public
from ..core.scalars_first import legacy_options, scalars_first
from ..core.structured import tensor_argument
from ..creation.cast import cast
from ..reduce.sums import sum as sum_
from .gemm import multiplies, widened
from .matmul import bmm, mm, mv, outer


def _scaled(y: Tensor, factor: Any) -> Tensor:
    if y.dtype.category < 2:
        factor = int(factor)  # as PyTorch, which keeps integers integers
    return y if factor == 1 else y * factor


def _addend(input: Any, y: Tensor, name: str) -> Tensor:
    """Return the tensor that a product is added to: of the product's dtype, and no larger."""
    x = tensor_argument(input, name)
    if x.dtype is not y.dtype:
        raise RuntimeError(f"self and mat2 must have the same dtype, but got {x.dtype.name} and {y.dtype.name} ({name}(); cast one with .to())")
    if x.ndim > y.ndim:
        if name == "addmv":
            raise RuntimeError(f"vector + matrix @ vector expected, got {x.ndim}, 2, 1")
        raise RuntimeError(
            f"expand({list(x.shape)}, size={list(y.shape)}): the number of sizes provided ({y.ndim}) must be greater or equal to the "
            f"number of dimensions in the tensor ({x.ndim}) ({name}())"
        )
    for have, want in zip(x.shape[::-1], y.shape[::-1], strict=False):
        if have not in (want, 1):
            raise RuntimeError(
                f"The expanded size of the tensor ({want}) must match the existing size ({have}): {name}() got an input of shape "
                f"{list(x.shape)} for a product of shape {list(y.shape)}"
            )
    return x


def _added(input: Any, y: Tensor, beta: Any, alpha: Any, out: Tensor | None, name: str, operands: tuple[Any, ...] = ()) -> Tensor:
    operands = operands if input is out else (input, *operands)  # (which may grow: what it held was expanded before)
    input = _addend(input, y, name)
    alpha, beta = (number_argument(v, name, n) for v, n in ((alpha, "alpha"), (beta, "beta")))
    if y.dtype is not dtypes.bool_:
        kept = dtypes.float32 if y.dtype.is_half and name not in ("addr", "addmv") else y.dtype
        alpha, beta = (number_as(v, kept, name) for v in (alpha, beta))
    if not multiplies(y.dtype):  # there was nothing to multiply, or the product would have been refused
        y = cast(_scaled(widened(input), beta).expand(y.shape) if beta != 0 else widened(y), y.dtype)
        return y if out is None else store(out, y, name, (), operands)
    # the product comes first where the result is in C order as it is: a sum has the order of dims of its first operand
    y = _scaled(y, alpha)
    if beta == 0:  # PyTorch then ignores what input holds, nan too (of addr not its order of dims)
        y = OPS["zeros_like"].call(input.detach()) + y if name == "addr" else y
        y = y + (input.masked_fill(input.new_ones((), dtype=dtypes.bool_), 0) if input._rg else input.detach().new_zeros(()))
    else:
        scaled = _scaled(input, beta)
        y = scaled + y if name == "addr" else y + scaled
    return y if out is None else store(out, y, name, (), operands)


def _only_scaled(x: Tensor, y: Tensor, beta: Any) -> None:
    """Refuse a factor that integers or bools do not take where there is no product to add, ``x`` being one of its operands: PyTorch then only scales."""
    if x._layout.size or not y._layout.size or beta == 0:
        return
    factor = "Float" if isinstance(beta, float) and y.dtype.category < 2 else "Long" if y.dtype is dtypes.bool_ and not isinstance(beta, bool) else ""
    if factor:
        raise RuntimeError(f"result type {factor} can't be cast to the desired output type {scalar_type(y.dtype)} (beta={beta})")


@public()
def addmm(input, mat1, mat2, *legacy, beta=1, alpha=1, out=None):
    """y = beta·input + alpha·A·B; addmm([[1.]], [[1., 2.]], [[3.], [4.]]) = [[12.]].

    Derivative: dinput = beta·g, dA = alpha·g·Bᵀ, dB = alpha·Aᵀ·g.
    """
    if legacy:
        return scalars_first("addmm", (input, mat1, mat2, *legacy), legacy_options(beta=beta, alpha=alpha, out=out))
    y = mm(mat1, mat2)
    _only_scaled(mat1, y, beta)
    return _added(input, y, beta, alpha, out, "addmm")


@public()
def addmv(input, mat, vec, *legacy, beta=1, alpha=1, out=None):
    """y = beta·input + alpha·A·v; addmv([1.], [[1., 2.]], [3., 4.]) = [12.]."""
    if legacy:
        return scalars_first("addmv", (input, mat, vec, *legacy), legacy_options(beta=beta, alpha=alpha, out=out))
    a, v = tensor_argument(mat, "addmv", "mat"), tensor_argument(vec, "addmv", "vec")
    if a.ndim != 2 or v.ndim != 1:
        raise RuntimeError(f"vector + matrix @ vector expected, got {getattr(input, 'ndim', 0)}, {a.ndim}, {v.ndim} dims (addmv)")
    if a.shape[1] != v.shape[0] and not tensor_argument(input, "addmv").ndim:
        raise IndexError(f"Dimension specified as 0 but tensor has no dimensions (addmv(): mat {list(a.shape)}, vec {list(v.shape)})")
    return _added(input, mv(mat, vec), beta, alpha, out, "addmv")


@public()
def addr(input, vec1, vec2, *legacy, beta=1, alpha=1, out=None):
    """y = beta·input + alpha·a⊗b; of booleans with "or" for the sum and "and" for products; addr([[1., 1.]], [2.], [3., 4.]) = [[7., 9.]]."""
    if legacy:
        return scalars_first("addr", (input, vec1, vec2, *legacy), legacy_options(beta=beta, alpha=alpha, out=out))
    operands = [tensor_argument(t, "addr", n) for t, n in ((input, "input"), (vec1, "vec1"), (vec2, "vec2"))]
    d = dtypes.bool_
    for t in operands:  # (broadcast first, a 0-d one has its say about the dtype)
        d = dtypes.promote_types(d, t.dtype)
    for what, value in (("beta", beta), ("alpha", alpha)):
        if isinstance(value, bool) and d is not dtypes.bool_:
            raise RuntimeError(f"Boolean {what} only supported for Boolean results. (addr(): {what}={value})")
        if isinstance(value, float) and d.category < 2:
            raise RuntimeError(f"For integral input tensors, argument {what} must not be a floating point number. (addr(): {what}={value})")
        if isinstance(value, complex) and not d.is_complex:
            raise RuntimeError(f"For non-complex input tensors, argument {what} must not be a complex number. (addr(): {what}={value})")
    not_for_limited("addr_cpu", d)
    reads = (vec2,) if vec1 is out else (vec1, vec2)
    if d is dtypes.bool_:
        alpha, beta = (number_as(number_argument(v, "addr", n), d, "addr") for v, n in ((alpha, "alpha"), (beta, "beta")))
        y = outer(vec1, vec2) & alpha
        y = (input if beta else OPS["zeros_like"].call(input.detach())).logical_or(y)
        return y if out is None else store(out, y, "addr", (), reads if input is out else (input, *reads))
    x, a, b = (cast(t, d) for t in operands)
    return _added(x, outer(a, b), beta, alpha, out, "addr", reads)


@public()
def baddbmm(input, batch1, batch2, *legacy, beta=1, alpha=1, out=None):
    """y[i] = beta·input[i] + alpha·A[i]·B[i]; baddbmm([[[1.]]], [[[1., 2.]]], [[[3.], [4.]]]) = [[[12.]]]."""
    if legacy:
        return scalars_first("baddbmm", (input, batch1, batch2, *legacy), legacy_options(beta=beta, alpha=alpha, out=out))
    return _added(input, _batches(batch1, batch2, beta, "baddbmm"), beta, alpha, out, "baddbmm")


@public()
def addbmm(input, batch1, batch2, *legacy, beta=1, alpha=1, out=None):
    """y = beta·input + alpha·Σᵢ A[i]·B[i]; addbmm([[1.]], [[[1., 2.]]], [[[3.], [4.]]]) = [[12.]]."""
    if legacy:
        return scalars_first("addbmm", (input, batch1, batch2, *legacy), legacy_options(beta=beta, alpha=alpha, out=out))
    y = _batches(batch1, batch2, beta, "addbmm")
    total = sum_(y, 0, dtype=y.dtype) if multiplies(y.dtype) else cast(sum_(widened(y), 0), y.dtype)
    _only_scaled(batch1, total, beta)
    return _added(input, total, beta, alpha, out, "addbmm")


def _batches(batch1: Any, batch2: Any, beta: Any, name: str) -> Tensor:
    wrap_dim(1, tensor_argument(batch1, name, "batch1").ndim)
    wrap_dim(2, tensor_argument(batch2, name, "batch2").ndim)
    y = bmm(batch1, batch2)
    _only_scaled(batch1, y, beta)
    return y
