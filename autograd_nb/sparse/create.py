"""How sparse tensors are made, from places and values or from SciPy's, and told apart into these.

Source: https://docs.pytorch.org/docs/stable/sparse.html#construction
"""

from __future__ import annotations

from typing import Any

from .. import dtypes
from ..ops.core.registry import OPS
from ..ops.creation.create import as_device
from ..shapes import Size
from ..tensor import Tensor
from .tensor import SparseTensor, bare, sparse_dims
from .values import as_coo, as_csr, coalesced, from_dense, like, values_of, with_values


def _tensor(data: Any, dtype: Any = None) -> Tensor:
    if isinstance(data, Tensor):
        return data if dtype is None else data.to(dtypes.as_dtype(dtype))
    return OPS["tensor"].call(data, dtype=dtype)  # type: ignore[no-any-return]


def _check_places(index: Tensor, size: tuple[int, ...]) -> None:
    if not index.numel():
        return
    for d, (low, high) in enumerate(zip(index.amin(1).tolist(), index.amax(1).tolist(), strict=True)):
        if low < 0:
            raise RuntimeError(f"found negative index {low} for dim {d} (sparse_coo_tensor: indices)")
        if high >= size[d]:
            raise RuntimeError(f"size is inconsistent with indices: for dim {d}, size is {size[d]} but found index {high}")


def sparse_coo_tensor(
    indices: Any, values: Any = None, size: Any = None, *, dtype: Any = None, device: Any = None, pin_memory: bool = False,
    requires_grad: bool = False, check_invariants: bool | None = None, is_coalesced: bool | None = None,
) -> Any:  # fmt: skip
    """Return the tensor with ``values`` [nnz, …] at ``indices`` [sparse dims, nnz], and 0 elsewhere; those of one place count together.

    size: the shape; by default the least that all indices fit into. A size alone gives a tensor without values.
    The gradient of ``values`` is the result's, read at their places.

    Errors: RuntimeError for indices outside of the size, and for sizes that do not fit together.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.sparse_coo_tensor.html

    >>> torch.sparse_coo_tensor([[0, 1, 1], [2, 0, 2]], [3., 4., 5.], (2, 3)).to_dense()
    tensor([[0., 0., 3.],
            [4., 0., 5.]])
    """
    if values is None or (size is None and isinstance(indices, int)):
        shape = tuple(indices) if values is None else (indices, values)
        empty = OPS["zeros"].call(0, dtype=dtype), OPS["zeros"].call((len(shape), 0), dtype=dtypes.int64)
        return with_values("coo", shape, (empty[1],), empty[0]).requires_grad_(requires_grad)
    i, v = _tensor(indices), _tensor(values, dtype)
    i = i.to(dtypes.int64)
    if i.ndim != 2:
        raise RuntimeError(f"indices must be sparse_dim x nnz, but got: {list(i.shape)}")
    v = v.expand(i.shape[1]) if not v.ndim else v
    if i.shape[1] != v.shape[0]:
        raise RuntimeError(f"indices and values must have same nnz, but got nnz from indices: {i.shape[1]}, nnz from values: {v.shape[0]}")
    if size is None:
        if not i.shape[1]:
            least = [0] * i.shape[0]
        else:
            _check_places(i, (1 << 62,) * i.shape[0])
            least = [n + 1 for n in i.amax(1).tolist()]
        shape = (*least, *v.shape[1:])
    else:
        shape = tuple(size) if not isinstance(size, int) else (size,)
        if len(shape) != i.shape[0] + v.ndim - 1:
            raise RuntimeError(
                f"number of dimensions must be sparse_dim ({i.shape[0]}) + dense_dim ({v.ndim - 1}), but got {len(shape)} (size={list(shape)})"
            )
        if shape[i.shape[0] :] != tuple(v.shape[1:]):
            raise RuntimeError(f"values has incorrect size, expected {[v.shape[0], *shape[i.shape[0] :]]}, got {list(v.shape)}")
        _check_places(i, shape)
    s = with_values("coo", shape, (i.detach(),), v if requires_grad is False else v.detach(), bool(is_coalesced))
    return s.requires_grad_(True) if requires_grad else s


def sparse_csr_tensor(
    crow_indices: Any, col_indices: Any, values: Any, size: Any = None, *, dtype: Any = None, device: Any = None, pin_memory: bool = False,
    requires_grad: bool = False, check_invariants: bool | None = None,
) -> Any:  # fmt: skip
    """Return the matrix whose row r has ``values[crow_indices[r]:crow_indices[r + 1]]`` in the columns ``col_indices`` of the same slice.

    size: (rows, columns); by default the columns are as many as the indices need. The gradient of ``values`` is read at their places.

    Errors: RuntimeError where lengths, starts or columns do not fit together.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.sparse_csr_tensor.html

    >>> torch.sparse_csr_tensor([0, 1, 3], [2, 0, 2], [3., 4., 5.], (2, 3)).to_dense()
    tensor([[0., 0., 3.],
            [4., 0., 5.]])
    """
    starts, columns, v = _tensor(crow_indices).to(dtypes.int64), _tensor(col_indices).to(dtypes.int64), _tensor(values, dtype)
    for name, t in (("crow_indices", starts), ("col_indices", columns)):
        if t.ndim != 1:
            raise RuntimeError(f"{name} must be 1-d, without batches ({name}.shape={list(t.shape)})")
    if not starts.shape[0] or starts[0].item() != 0:
        raise RuntimeError("`crow_indices[..., 0] == 0` is not satisfied. (crow_indices must begin with 0)")
    nnz = columns.shape[0]
    if v.shape[:1] != (nnz,):
        raise RuntimeError(f"`values` must have one row for each of the {nnz} `col_indices`, but has shape {list(v.shape)}")
    if starts[-1].item() != nnz or bool((starts[1:] < starts[:-1]).any()):
        raise RuntimeError("`crow_indices[..., -1] == nnz` and `0 <= crow_indices[..., 1:] - crow_indices[..., :-1] <= ncols` are not satisfied.")
    width = int(columns.max().item()) + 1 if nnz else 0
    shape = (starts.shape[0] - 1, width) if size is None else tuple(size)
    if len(shape) != 2 or shape[0] != starts.shape[0] - 1:
        raise RuntimeError(f"`crow_indices.shape[-1]` must be one more than the rows of size {list(shape)}, but is {starts.shape[0]}")
    if nnz and (width > shape[1] or columns.min().item() < 0):
        raise RuntimeError(f"`0 <= col_indices < ncols` is not satisfied. (size={list(shape)}, greatest column {width - 1})")
    s = with_values("csr", shape, (starts.detach(), columns.detach()), v if not requires_grad else v.detach(), True)
    return s.requires_grad_(True) if requires_grad else s


def to_sparse(x: Any, sparse_dim: Any = None, *, layout: Any = None, blocksize: Any = None, dense_dim: Any = None) -> Any:
    """Return the elements that are not 0 with their places; with ``sparse_dim`` the slices of the first dims. dy/dx = 1 there.

    >>> torch.tensor([[0., 3.], [0., 0.]]).to_sparse().indices()
    tensor([[0],
            [1]])
    """
    if sparse_dim is not None and not isinstance(sparse_dim, int):
        sparse_dim, layout = None, sparse_dim
    name = "coo" if layout is None else str(layout).rpartition("_")[2]
    if name not in ("coo", "csr"):
        if str(layout) == "torch.strided":
            return x
        raise NotImplementedError(f"to_sparse(): layout {layout} is not in this library; use torch.sparse_coo or torch.sparse_csr")
    if isinstance(x, SparseTensor):
        return as_csr(x) if name == "csr" else as_coo(x)
    if sparse_dim is not None and not min(1, x.ndim) <= sparse_dim <= x.ndim:
        raise RuntimeError(f"dense_to_sparse: sparse_dim argument must be in >0 and at most {x.ndim}, when self.dim()>0 (sparse_dim={sparse_dim})")
    found = from_dense(x, sparse_dim)
    return as_csr(found) if name == "csr" else found


def sparse_mask(x: Tensor, mask: Any) -> Any:
    """Return the elements of ``x`` at the places of the sparse tensor ``mask``; dy/dx = 1 there.

    Errors: RuntimeError for a mask that is dense or of another shape.
    """
    from .values import read_at

    if not isinstance(mask, SparseTensor):
        raise RuntimeError("sparse_mask(): argument 'mask' must be sparse; make it so by .to_sparse()")
    if mask.shape != x.shape:
        raise RuntimeError(f"sparse_mask(): operands have incompatible sizes; self has size {list(x.shape)} but mask has size {list(mask.shape)}")
    mask = coalesced(bare(mask))
    return like(mask, read_at(x, mask))


def zeros(shape: Any, d: Any, layout: Any, requires_grad: bool = False, dims: int | None = None) -> Any:
    """Return a tensor of a shape without values, by coordinates (of ``dims`` dims, by default all) or by rows."""
    n = len(shape) if dims is None else dims
    by_rows = str(layout) == "torch.sparse_csr"
    if by_rows and len(shape) < 2:
        raise RuntimeError(f"torch.zeros: a tensor with the layout sparse_csr has at least 2 dims, not the shape {list(shape)}")
    empty = OPS["zeros"].call((0, *shape[n:]), dtype=d), OPS["zeros"].call((n, 0), dtype=dtypes.int64)
    found = with_values("coo", tuple(shape), (empty[1],), empty[0], True)
    return (as_csr(found) if by_rows else found).requires_grad_(requires_grad)


def made_of(args: tuple[Any, ...], d: Any, device: Any = None) -> Any:
    """Return what the old constructors make: of sizes, of a size, or of places, values and maybe a size. TypeError for other sequences."""
    if device is not None:
        as_device(device)
    if all(isinstance(a, int) for a in args):
        return sparse_coo_tensor(args or (0,), dtype=d)
    if len(args) == 1:
        if not isinstance(args[0], Size):
            raise TypeError(
                "SparseTensor.new(sequence) only accepts sizes (torch.Size). Please use torch.sparse_coo_tensor(), or to_sparse() of a dense tensor"
            )
        return sparse_coo_tensor(tuple(args[0]), dtype=d)
    return sparse_coo_tensor(*args[:2], *(tuple(a) for a in args[2:]), dtype=d)


def from_scipy(matrix: Any) -> Any:
    """Return SciPy's sparse matrix or array as a tensor: CSR as CSR, every other format by coordinates.

    >>> import scipy.sparse
    >>> torch.sparse.from_scipy(scipy.sparse.csr_matrix([[0., 2.]])).to_dense()
    tensor([[0., 2.]], dtype=torch.float64)
    """
    if matrix.format == "csr":
        return sparse_csr_tensor(_array(matrix.indptr), _array(matrix.indices), _array(matrix.data), matrix.shape)
    coo = matrix.tocoo()
    coords = coo.coords if hasattr(coo, "coords") else (coo.row, coo.col)
    return sparse_coo_tensor(OPS["stack"].call([_array(c).long() for c in coords]), _array(coo.data), coo.shape)


def _array(array: Any) -> Tensor:
    return OPS["from_numpy"].call(array.copy())  # type: ignore[no-any-return]


def to_scipy(s: Any) -> Any:
    """Return a sparse matrix as SciPy's ``csr_array`` or ``coo_array``. TypeError for dense tensors, RuntimeError for other than two dims.

    >>> torch.sparse.to_scipy(torch.eye(2).to_sparse()).toarray().tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    import scipy.sparse

    if not isinstance(s, SparseTensor):
        raise TypeError(f"to_scipy(): argument 's' must be a sparse tensor, not {type(s).__name__} (make it one by .to_sparse())")
    if s.ndim != 2 or sparse_dims(s) != 2:
        raise RuntimeError(f"to_scipy(): SciPy's formats have two sparse dims, this tensor has shape {list(s.shape)} and {sparse_dims(s)} of them")
    values = values_of(s).detach().numpy()
    if s._kind == "csr":
        return scipy.sparse.csr_array((values, s._index[1].numpy(), s._index[0].numpy()), shape=tuple(s.shape))
    rows, columns = s._index[0].unbind(0)
    return scipy.sparse.coo_array((values, (rows.numpy(), columns.numpy())), shape=tuple(s.shape))
