"""Products with sparse matrices, and softmax over their values.

y = A b for the values v of A at (r, c): y[i] = Σ v[k] b[c[k]] over the k with r[k] = i; so dy/db is the same with rows and columns exchanged, and
dy/dv[k] = g[r[k]] · b[c[k]], at A's places only.
"""

from __future__ import annotations

from typing import Any

from .. import dtypes
from ..autograd.function import Function
from ..launch import Kernel
from ..ops.core.registry import OPS
from ..ops.creation.cast import dense
from ..ops.creation.create import new_empty
from ..tensor import Tensor
from .ops import handles, to
from .shapes import permute, transpose
from .tensor import SparseTensor, grouped, keys_of, places, refused, segment_sum, sparse_dims
from .values import add_any, as_coo, coalesced, from_dense, like, parts, to_dense, values_of

_PRODUCT = Kernel("sparse", "product")


class _Product(Function):
    """The matrix of ``values`` at (rows, columns), ``m`` rows, times a dense one."""

    @staticmethod
    def forward(ctx: Any, values: Tensor, b: Tensor, rows: Tensor, columns: Tensor, m: int) -> Tensor:
        ctx.save_for_backward(values, b)
        ctx.places = rows, columns
        single = dtypes.float32 if values.dtype.is_half else values.dtype
        v, x = values.to(single), b.to(single)
        out = new_empty((m, b.shape[1]), single)
        _PRODUCT(single, m, b.shape[1], dense(rows), dense(columns), dense(v), dense(x), out._data)
        return out.to(values.dtype)

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Any:
        values, b = ctx.saved_tensors
        rows, columns = ctx.places
        of_values = of_b = None
        if ctx.needs_input_grad[0]:
            of_values = (g.index_select(0, rows) * b.conj_physical().index_select(0, columns)).sum(1)
        if ctx.needs_input_grad[1]:
            of_b = _Product.apply(values.conj_physical(), g, columns, rows, b.shape[0])
        return of_values, of_b, None, None, None


def _times(s: SparseTensor, b: Tensor, name: str) -> Tensor:
    if s.ndim != 2 or sparse_dims(s) != 2:
        raise RuntimeError(f"{name}: Expected a sparse matrix with two sparse dims, but got {sparse_dims(s)} sparse and {s.ndim - sparse_dims(s)} dense dims")
    if b.ndim != 2:
        raise RuntimeError(f"{name}: Expected dim 1 to be size 2: the dense operand must be a matrix, but has {b.ndim} dims")
    if s.shape[1] != b.shape[0]:
        raise RuntimeError(
            f"{name}: mat1 and mat2 shapes cannot be multiplied ({s.shape[0]}x{s.shape[1]} and {b.shape[0]}x{b.shape[1]})"
        )
    if s.dtype is not b.dtype:
        raise RuntimeError(f"{name}: expected m1 and m2 to have the same dtype, but got: {s.dtype} != {b.dtype}")
    s = parts(s)
    rows, columns = places(s).unbind(0)
    return _Product.apply(values_of(s), b, rows, columns, s.shape[0])  # type: ignore[no-any-return]


@handles("mm", "spmm")
def mm(a: Any, b: Any, reduce: Any = None, *, out: Any = None) -> Any:
    """Return the product of two matrices, one or both of them sparse; of both the product is sparse. Gradients of sparse ones are sparse.

    Errors: RuntimeError for shapes or dtypes that do not fit.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.sparse.mm.html

    >>> torch.sparse.mm(torch.eye(2).to_sparse(), torch.tensor([[1.], [2.]]))
    tensor([[1.],
            [2.]])
    """
    if reduce not in (None, "sum"):
        raise refused("mm", f"reduce={reduce!r}; only sums")
    first, second = isinstance(a, SparseTensor), isinstance(b, SparseTensor)
    if first and second:
        return from_dense(_times(a, to_dense(b), "mm"))
    if first:
        return _times(a, b, "mm")
    if second:
        return _times(transpose(b, 0, 1), a.t(), "mm").t()
    return OPS["mm"].call(a, b)


@handles("matmul", "__matmul__")
def matmul(a: Any, b: Any, *, out: Any = None) -> Any:
    if isinstance(a, Tensor) and isinstance(b, Tensor):
        if a.ndim == 2 and b.ndim == 1:
            return mv(a, b)
        if a.ndim == 1 and b.ndim == 2:
            return mv(transpose(b, 0, 1), a)
        if a.ndim == b.ndim == 2:
            return mm(a, b)
    raise refused("matmul", "operands must be matrices, or a matrix and a vector")


@handles("__rmatmul__")
def rmatmul(a: Any, b: Any) -> Any:
    return matmul(b, a)


@handles("mv")
def mv(a: Any, x: Any, *, out: Any = None) -> Any:
    if isinstance(x, SparseTensor):
        raise RuntimeError(f"mv: two tensor dim should be 2 and 1, the second of them dense, but got a sparse one of {x.ndim}")
    if x.ndim != 1:
        raise RuntimeError(f"mv: two tensor dim should be 2 and 1, but got {a.ndim} and {x.ndim}")
    if a.ndim == 2 and a.shape[1] != x.shape[0]:
        raise RuntimeError(f"mv: expected self.size(-1) == vec.size(-1), but got {a.shape[1]} and {x.shape[0]}")
    return _times(a, x.unsqueeze(1), "mv").squeeze(1)


@handles("addmm", "sspaddmm")
def addmm(input: Any, mat1: Any, mat2: Any, *, beta: Any = 1, alpha: Any = 1, out: Any = None) -> Any:
    """Return beta · input + alpha · mat1 @ mat2 for a sparse ``mat1``; gradients as in `mm`."""
    product = mm(mat1, mat2)
    product = product if alpha == 1 else product * alpha
    if beta == 0:
        return product
    return add_any(input if beta == 1 else input * beta, product)


@handles("linear")
def linear(input: Any, weight: Any, bias: Any = None) -> Any:
    product = mm(input, weight.t() if not isinstance(weight, SparseTensor) else transpose(weight, 0, 1))
    return product if bias is None else product + bias


def _softmax(s: Any, dim: int, dtype: Any, log: bool) -> Any:
    if not isinstance(s, SparseTensor):
        raise RuntimeError("sparse.softmax(): expected a sparse COO tensor; torch.softmax is for dense ones")
    s = coalesced(as_coo(s if dtype is None else to(s, dtype)))
    n, d = sparse_dims(s), dim % s.ndim
    v = values_of(s)
    if d >= n:
        return like(s, OPS["log_softmax" if log else "softmax"].call(v, 1 + d - n))
    others = [k for k in range(n) if k != d]
    size = [s.shape[k] for k in others]
    keys, ids = grouped(keys_of(s._index[0].index_select(0, OPS["tensor"].call(others, dtype=dtypes.int64)), size))
    m = keys.shape[0]
    wide = ids.reshape(-1, *[1] * (v.ndim - 1)).expand(v.shape)
    top = v.new_full((m, *v.shape[1:]), -float("inf")).scatter_reduce(0, wide, v.detach(), "amax")
    e = v - top.index_select(0, ids)
    total = segment_sum(e.exp(), ids, m)
    return like(s, e - total.log().index_select(0, ids) if log else e.exp() / total.index_select(0, ids))


@handles("softmax")
def softmax(input: Any, dim: int, *, dtype: Any = None, _stacklevel: int = 3) -> Any:
    """Return softmax along ``dim`` over the values that there are: elements without one count as −∞, and stay without.

    Source: https://docs.pytorch.org/docs/stable/generated/torch.sparse.softmax.html

    >>> torch.sparse.softmax(torch.tensor([[1., 1., 0.]]).to_sparse(), 1).values()
    tensor([0.5000, 0.5000])
    """
    return _softmax(input, dim, dtype, False)


@handles("log_softmax")
def log_softmax(input: Any, dim: int, *, dtype: Any = None, _stacklevel: int = 3) -> Any:
    """Return the logarithm of `softmax`.

    >>> torch.sparse.log_softmax(torch.tensor([[1., 1., 0.]]).to_sparse(), 1).values()
    tensor([-0.6931, -0.6931])
    """
    return _softmax(input, dim, dtype, True)


def sampled_addmm(input: Any, mat1: Tensor, mat2: Tensor, *, beta: Any = 1, alpha: Any = 1, out: Any = None) -> Any:
    """Return alpha · mat1 @ mat2 at the places of the CSR matrix ``input``, plus beta · input.

    >>> s = torch.eye(2).to_sparse_csr()
    >>> torch.sparse.sampled_addmm(s, torch.ones(2, 1), torch.ones(1, 2)).values()
    tensor([2., 2.])
    """
    if not isinstance(input, SparseTensor) or input._kind != "csr":
        raise RuntimeError("sampled_addmm: Expected self to be a sparse CSR tensor (argument 'input')")
    rows, columns = places(input).unbind(0)
    product = (mat1.index_select(0, rows) * mat2.t().index_select(0, columns)).sum(1)
    return like(input, values_of(input) * beta + product * alpha)


def spdiags(diagonals: Tensor, offsets: Tensor, shape: Any, layout: Any = None) -> Any:
    """Return the sparse matrix that has the rows of ``diagonals`` on the diagonals ``offsets``.

    >>> torch.sparse.spdiags(torch.ones(1, 2), torch.tensor([1]), (2, 2)).to_dense()
    tensor([[0., 1.],
            [0., 0.]])
    """
    from .create import sparse_coo_tensor, to_sparse

    rows_of: list[Tensor] = []
    values: list[Tensor] = []
    m, n = shape
    at = OPS["arange"].call(min(diagonals.shape[-1], n))
    diagonals = diagonals if diagonals.ndim == 2 else diagonals.unsqueeze(0)
    for row, offset in zip(diagonals.unbind(0), offsets.reshape(-1).tolist(), strict=True):
        keep = ((at - offset >= 0) & (at - offset < m)).nonzero().squeeze(1)
        rows_of.append(OPS["stack"].call([at[keep] - offset, at[keep]]))
        values.append(row.index_select(0, keep))
    s = sparse_coo_tensor(OPS["cat"].call(rows_of, 1), OPS["cat"].call(values), (m, n))
    return s if layout is None else to_sparse(s, layout=layout)


__all__ = ["addmm", "linear", "log_softmax", "matmul", "mm", "mv", "permute", "sampled_addmm", "softmax", "spdiags"]
