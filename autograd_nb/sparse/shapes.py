"""What public functions that move or pick elements do with sparse tensors."""

from __future__ import annotations

from typing import Any

from .. import dtypes
from ..ops.core.registry import OPS
from ..shapes import wrap_dim
from ..tensor import Tensor
from .create import to_sparse
from .ops import handles, in_place, is_sparse
from .tensor import HANDLERS, SparseTensor, refused, sparse_dims
from .values import as_coo, as_csr, parts, to_dense, values_of, with_values


@handles("t")
def t(s: SparseTensor) -> Any:
    n = sparse_dims(s)
    if n > 2 or s.ndim > n:
        raise RuntimeError(f"t() expects a tensor with <= 2 sparse and 0 dense dimensions, but got {n} sparse and {s.ndim - n} dense dimensions")
    return transpose(s, 0, 1) if s.ndim == 2 else s


@handles("transpose", "swapaxes", "swapdims")
def transpose(s: SparseTensor, dim0: int, dim1: int) -> Any:
    dim0, dim1 = wrap_dim(dim0, s.ndim), wrap_dim(dim1, s.ndim)
    order = list(range(s.ndim))
    order[dim0], order[dim1] = order[dim1], order[dim0]
    return permute(s, order)


@handles("permute")
def permute(s: SparseTensor, *dims: Any) -> Any:
    given = dims[0] if len(dims) == 1 and not isinstance(dims[0], int) else dims
    order = [wrap_dim(d, s.ndim) for d in given]
    x, n = parts(as_coo(s)), sparse_dims(s)
    if sorted(order) != list(range(s.ndim)):
        raise RuntimeError(f"permute(sparse_coo): dims {list(given)} are no order of the {s.ndim} dims")
    if set(order[:n]) != set(range(n)):
        raise RuntimeError(f"transpose/permute: sparse dims (the first {n}) and dense ones cannot change places; use .to_dense()")
    v = values_of(x).permute(0, *[1 + d - n for d in order[n:]])
    index = x._index[0].index_select(0, OPS["tensor"].call(order[:n], dtype=dtypes.int64))
    y = with_values("coo", [s.shape[d] for d in order], (index,), v, x._coalesced and (not v.shape[0] or order[:n] == list(range(n))))
    return y if s._kind == "coo" else as_csr(y)


@handles("unsqueeze")
def unsqueeze(s: SparseTensor, dim: int) -> Any:
    x, n = parts(as_coo(s)), sparse_dims(s)
    d = wrap_dim(dim, s.ndim + 1)
    shape = [*s.shape[:d], 1, *s.shape[d:]]
    if d > n:
        return with_values("coo", shape, x._index, values_of(x).unsqueeze(1 + d - n), x._coalesced)
    rows = [*x._index[0].unbind(0)]
    rows.insert(d, OPS["zeros"].call(x._index[0].shape[1], dtype=dtypes.int64))
    return with_values("coo", shape, (OPS["stack"].call(rows),), values_of(x), x._coalesced)


@handles("index_select")
def index_select(s: SparseTensor, dim: int, index: Tensor) -> Any:
    d = wrap_dim(dim, s.ndim)
    return to_sparse(OPS["index_select"].call(to_dense(s), d, index), sparse_dims(s))


@handles("select")
def select(s: SparseTensor, dim: int, index: int) -> Any:
    d, n = wrap_dim(dim, s.ndim), sparse_dims(s)
    if not -s.shape[d] <= index < s.shape[d]:
        raise IndexError(f"select(): index {index} out of range for tensor of size {list(s.shape)} at dimension {d}")
    at, x = index % s.shape[d], parts(as_coo(s))
    shape = [*s.shape[:d], *s.shape[d + 1 :]]
    if d >= n:
        return with_values("coo", shape, x._index, OPS["select"].call(values_of(x), 1 + d - n, at), x._coalesced)
    rows = x._index[0]
    keep = (rows[d] == at).nonzero().squeeze(1)
    v = values_of(x).index_select(0, keep)
    if n == 1:
        return v.sum(0)
    others = OPS["tensor"].call([k for k in range(n) if k != d], dtype=dtypes.int64)
    return with_values("coo", shape, (rows.index_select(0, others).index_select(1, keep),), v, x._coalesced)


@handles("__getitem__")
def getitem(s: Any, key: Any) -> Any:
    if not is_sparse(s) or not isinstance(key, int):
        raise refused("index", f"[{type(key).__name__}]; one int selects a slice")
    return select(s, 0, key)


@handles("cat", "concat", "concatenate")
def cat(tensors: Any, dim: int = 0, *, out: Any = None) -> Any:
    first = tensors[0]
    for k, x in enumerate(tensors):
        if not is_sparse(x):
            raise RuntimeError(f"Concatenating sparse tensors, but a dense tensor was found at position {k}. Make all of them sparse or dense (.to_dense())")
    d, n = wrap_dim(dim, first.ndim), sparse_dims(first)
    for k, x in enumerate(tensors):
        if [*x.shape[:d], *x.shape[d + 1 :]] != [*first.shape[:d], *first.shape[d + 1 :]] or x.ndim != first.ndim:
            shapes = f"{list(first.shape)} (except in the concatenating dimension), but found shape: {list(x.shape)} at position {k}"
            raise RuntimeError(f"All tensors must have the same shape: {shapes}")
        if sparse_dims(x) != n:
            dims = f"{n}, {first.ndim - n}, but tensor at position {k} has {sparse_dims(x)}, {x.ndim - sparse_dims(x)}."
            raise RuntimeError(f"All tensors must have the same sparse_dim and dense_dim: {dims}")
    given = [parts(as_coo(x)) for x in tensors]
    shape = list(given[0].shape)
    shape[d] = sum(x.shape[d] for x in given)
    if d >= n:
        return to_sparse(OPS["cat"].call([to_dense(x) for x in given], d), n)
    at, index = 0, []
    for x in given:
        moved = x._index[0].clone()
        moved[d] += at
        index.append(moved)
        at += x.shape[d]
    return with_values("coo", shape, (OPS["cat"].call(index, 1),), OPS["cat"].call([values_of(x) for x in given]), False)


@handles("stack")
def stack(tensors: Any, dim: int = 0, *, out: Any = None) -> Any:
    if any(x.shape != tensors[0].shape for x in tensors):
        raise RuntimeError(f"stack expects each tensor to be equal size, but got {[list(x.shape) for x in tensors]}")
    d = wrap_dim(dim, tensors[0].ndim + 1)
    return cat([HANDLERS["unsqueeze"](x, d) for x in tensors], d)


@handles("narrow_copy")
def narrow_copy(s: Any, dim: int, start: int, length: int) -> Any:
    x = parts(as_coo(s))
    d, n = dim, sparse_dims(s)
    if not 0 <= d < s.ndim:
        raise RuntimeError(f"Dimension {d} out of range. Expecting 0 <= dim < {s.ndim}.")
    if not 0 <= start <= start + length <= s.shape[d]:
        raise RuntimeError(f"Invalid range to narrow. range(start, start+length) must be a subset of range(0, {s.shape[d]}).")
    shape = [length if k == d else size for k, size in enumerate(s.shape)]
    if d >= n:
        return with_values("coo", shape, (x._index[0],), values_of(x).narrow(d - n + 1, start, length), x._coalesced)
    index = x._index[0]
    keep = ((index[d] >= start) & (index[d] < start + length)).nonzero().reshape(-1)
    moved = index.index_select(1, keep)
    moved[d] -= start
    return with_values("coo", shape, (moved,), values_of(x).index_select(0, keep), x._coalesced)


for _name in ("t", "transpose"):
    HANDLERS[_name + "_"] = in_place(_name)
