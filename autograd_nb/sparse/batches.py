"""Products whose result is sparse, and batches of them: names that PyTorch keeps for sparse matrices alone."""

from __future__ import annotations

from typing import Any

from ..autograd.function import Function
from ..graph.modes import no_grad
from ..ops.core.foreign import asking_first
from ..ops.core.registry import OPS
from ..tensor import Tensor
from .create import zeros
from .ops import handles
from .products import _Product, _times
from .tensor import SparseTensor, bare, become, made, refused, sparse_dims, written
from .values import as_coo, parts, values_of, with_values


class _Batch(Function):
    """The products of a sparse batch of matrices with a dense one; the sparse one's gradient is dense, as in PyTorch."""

    @staticmethod
    def forward(ctx: Any, s: Any, b: Tensor) -> Tensor:
        ctx.sparse = bare(s)
        ctx.save_for_backward(b)
        batch, rows, columns = s.shape
        at = ctx.sparse._index[0]
        y = _Product.apply(ctx.sparse._val, b.reshape(batch * columns, b.shape[2]), at[0] * rows + at[1], at[0] * columns + at[2], batch * rows)
        return y.reshape(batch, rows, b.shape[2])  # type: ignore[no-any-return]

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Any:
        (b,) = ctx.saved_tensors
        of_s = OPS["bmm"].call(g, b.conj_physical().transpose(1, 2)) if ctx.needs_input_grad[0] else None
        of_b = bmm(ctx.sparse.conj().transpose(1, 2), g) if ctx.needs_input_grad[1] else None
        return of_s, of_b


@handles("bmm")
def bmm(input: Any, mat2: Any, *, out: Any = None) -> Any:
    """Return the products of the matrices of two batches, the first of them sparse. RuntimeError for shapes that do not fit."""
    if not isinstance(input, SparseTensor) or isinstance(mat2, SparseTensor):
        raise RuntimeError("bmm_sparse: Tensor 'mat2' must be dense (and 'self' sparse; make the other dense by .to_dense())")
    if sparse_dims(input) != input.ndim:
        raise RuntimeError(f"bmm_sparse: Tensor 'self' must have 0 dense dims, but has {input.ndim - sparse_dims(input)}")
    for name, x in (("self", input), ("mat2", mat2)):
        if x.ndim != 3:
            raise RuntimeError(f"bmm_sparse: Tensor '{name}' must have 3 dims, but has {x.ndim}")
    for d, other in ((0, 0), (2, 1)):
        if input.shape[d] != mat2.shape[other]:
            raise RuntimeError(f"bmm_sparse: 'self.size({d})' and 'mat2.size({other})' must match")
    if input.dtype is not mat2.dtype:
        raise RuntimeError(f"bmm_sparse: expected both operands to have one dtype, but got {input.dtype} and {mat2.dtype}")
    return _Batch.apply(input, mat2)


def _rows(s: Any, b: Any, name: str) -> tuple[Any, Tensor]:
    """Return (the rows of ``s`` that have values, these rows of the product with the dense ``b``)."""
    if not isinstance(s, SparseTensor) or isinstance(b, SparseTensor):
        raise RuntimeError(f"{name}: expected the first matrix to be sparse and the second to be dense")
    product = _times(as_coo(s), b, name)
    found = OPS["unique"].call(as_coo(s)._index[0][0].detach())
    return found, product.index_select(0, found)


@handles("hspmm", "hsmm")
@asking_first
def hspmm(mat1: Any, mat2: Any, *, out: Any = None) -> Any:
    """Return the product of a sparse and a dense matrix, sparse by rows that are dense each. RuntimeError where sizes or layouts do not fit.

    >>> torch.hspmm(torch.tensor([[0., 0.], [0., 2.]]).to_sparse(), torch.ones(2, 3)).to_dense()
    tensor([[0., 0., 0.],
            [2., 2., 2.]])
    """
    found, rows = _rows(mat1, mat2, "hspmm")
    return written(out, with_values("coo", (mat1.shape[0], mat2.shape[1]), (found.unsqueeze(0),), rows), "hspmm")


@handles("smm")
@asking_first
def smm(input: Any, mat2: Any) -> Any:
    """Return the product of a sparse and a dense matrix as a sparse one. RuntimeError where sizes or layouts do not fit.

    >>> torch.smm(torch.tensor([[0., 0.], [0., 2.]]).to_sparse(), torch.ones(2, 2)).to_dense()
    tensor([[0., 0.],
            [2., 2.]])
    """
    found, rows = _rows(input, mat2, "smm")
    n = mat2.shape[1]
    columns = OPS["arange"].call(n).repeat(found.shape[0])
    index = OPS["stack"].call([found.repeat_interleave(n), columns])
    return with_values("coo", (input.shape[0], n), (index,), rows.reshape(-1))


@handles("sspaddmm", "saddmm")
@asking_first
def sspaddmm(input: Any, mat1: Any, mat2: Any, *, beta: Any = 1, alpha: Any = 1, out: Any = None) -> Any:
    """Return beta · input + alpha · mat1 @ mat2 for sparse ``input`` and ``mat1``, sparse and not coalesced. RuntimeError where sizes or layouts do not fit.

    >>> s = torch.tensor([[0., 0.], [0., 2.]]).to_sparse()
    >>> torch.sspaddmm(s, s, torch.ones(2, 2), beta=10).to_dense()
    tensor([[ 0.,  0.],
            [ 2., 22.]])
    """
    product = smm(mat1, mat2)
    if input.shape != product.shape:
        raise RuntimeError(f"sspaddmm: Argument #1: Expected dim 0 size {product.shape[0]}, got {input.shape[0]} (sizes {list(input.shape)})")
    a, b = parts(as_coo(input)), parts(product)
    index = OPS["cat"].call([a._index[0], b._index[0]], 1)
    found = with_values("coo", input.shape, (index,), OPS["cat"].call([values_of(a) * beta, values_of(b) * alpha]), False)
    return written(out, found, "sspaddmm")


# -------------------------------------------------------------------------------------------------------- resizing


def _changeable(s: Any, name: str) -> None:
    if not isinstance(s, SparseTensor) or s._kind != "coo":
        raise refused(name, "only tensors by coordinates change their size")
    if s.requires_grad:
        raise RuntimeError("cannot resize variables that require grad")


def _kept(what: str, old: Any, new: Any) -> None:
    raise RuntimeError(
        f"{what} (from {old} to {new}) on a non-empty sparse tensor is not supported. Make a new one by torch.sparse_coo_tensor(), or empty it first"
    )


@handles("sparse_resize_")
def sparse_resize_(s: Any, size: Any, sparse_dim: int, dense_dim: int) -> Any:
    """Let a tensor have another size in place. A tensor with values may only grow and keeps its numbers of dims.

    Its values get more elements at the end of their memory, as in PyTorch.
    """
    _changeable(s, "sparse_resize_")
    size, old, n = tuple(size), tuple(s.shape), sparse_dims(s)
    if len(size) != sparse_dim + dense_dim:
        raise RuntimeError(
            f"'len(size) == sparse_dim + dense_dim' is not satisfied: len(size) = {len(size)}, sparse_dim = {sparse_dim}, dense_dim = {dense_dim}"
        )
    if not s._val.shape[0]:
        return sparse_resize_and_clear_(s, size, sparse_dim, dense_dim)
    if sparse_dim != n:
        _kept("changing the number of sparse dimensions", n, sparse_dim)
    if dense_dim != len(old) - n:
        _kept("changing the number of dense dimensions", len(old) - n, dense_dim)
    for what, at in (("sparse", slice(0, n)), ("dense", slice(n, None))):
        if any(a < b for a, b in zip(size[at], old[at], strict=True)):
            _kept(f"shrinking the size of {what} dimensions", list(old[at]), list(size[at]))
    values = s._val
    if size[n:] != old[n:]:
        with no_grad():  # (PyTorch resizes their memory: the numbers stay in a row, whatever the shape is)
            wider = values.new_zeros((values.shape[0], *size[n:])).reshape(-1)
            wider[: values.numel()] = values.reshape(-1)
            values = wider.reshape(values.shape[0], *size[n:])
    become(s, made("coo", size, s._index, values, s._coalesced))
    return s


@handles("sparse_resize_and_clear_")
def sparse_resize_and_clear_(s: Any, size: Any, sparse_dim: int, dense_dim: int) -> Any:
    """Let a tensor have another size, and no values, in place."""
    _changeable(s, "sparse_resize_and_clear_")
    if len(size) != sparse_dim + dense_dim:
        raise RuntimeError(f"number of dimensions must be sparse_dim ({sparse_dim}) + dense_dim ({dense_dim}), but got {len(size)}")
    become(s, zeros(tuple(size), s.dtype, s.layout, dims=sparse_dim))
    return s


@handles("resize_as_", "resize_as_sparse_")
def resize_as_(s: Any, the_template: Any, *, memory_format: Any = None) -> Any:
    """Let a sparse tensor have the size of another in place. RuntimeError where one of them is not sparse.

    >>> s, t = torch.ones(2).to_sparse(), torch.zeros(3).to_sparse()
    >>> torch.resize_as_sparse_(s, t).shape
    torch.Size([3])
    """
    if not isinstance(s, SparseTensor) or not isinstance(the_template, SparseTensor):
        raise refused("resize_as_", "both tensors must be sparse, or both dense")
    return sparse_resize_(s, the_template.shape, sparse_dims(the_template), the_template.ndim - sparse_dims(the_template))


__all__ = ["bmm", "hspmm", "resize_as_", "smm", "sparse_resize_", "sparse_resize_and_clear_", "sspaddmm"]
