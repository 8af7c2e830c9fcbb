"""Methods by which programs come to sparse tensors; `autograd_nb.sparse`, which does the work, is imported with the first call."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from ..dtypes import dtype as _dtype
from ..ops.core.foreign import asked
from ..tensor import Tensor

_SPARSE = __name__.partition(".")[0] + ".sparse"


def _module(name: str = "") -> Any:
    return import_module(_SPARSE + name)


def _dense_only(name: str, message: str) -> Any:
    def method(self: Tensor) -> Any:
        raise RuntimeError(f"{message} (the tensor is dense; make it sparse by .to_sparse())")

    method.__name__, method.__qualname__, method.__module__ = name, f"Tensor.{name}", Tensor.__module__
    method.__doc__ = f"Raise RuntimeError: only sparse tensors have {name}()."
    return method


def to_sparse(self: Tensor, sparse_dim: int | None = None, *, layout: object = None, blocksize: object = None, dense_dim: int | None = None) -> Any:
    """Return a sparse tensor of the elements that are not 0 (see `sparse`), by coordinates or in ``layout``; dy/dx = 1 there.

    Source: https://docs.pytorch.org/docs/stable/generated/torch.Tensor.to_sparse.html

    >>> torch.tensor([[0., 3.], [0., 0.]]).to_sparse().values()
    tensor([3.])
    """
    _module()
    return _module(".create").to_sparse(self, sparse_dim, layout=layout)


def to_sparse_coo(self: Tensor) -> Any:
    """Return `to_sparse` by coordinates."""
    return to_sparse(self)


def to_sparse_csr(self: Tensor, dense_dim: int | None = None) -> Any:
    """Return a sparse matrix by rows of the elements that are not 0.

    >>> torch.tensor([[0., 3.], [0., 0.]]).to_sparse_csr().crow_indices()
    tensor([0, 1, 1])
    """
    return _module(".create").to_sparse(self, layout="torch.sparse_csr")


def to_dense(self: Tensor, dtype: _dtype | None = None, *, masked_grad: bool | None = None) -> Any:
    """Return the tensor itself, which is dense; of a sparse one the dense one, recorded.

    >>> torch.eye(2).to_sparse().to_dense()
    tensor([[1., 0.],
            [0., 1.]])
    """
    return self if dtype is None else self.to(dtype)


def sparse_mask(self: Tensor, mask: Tensor) -> Any:
    """Return the elements at the places of a sparse ``mask`` as a sparse tensor; dy/dx = 1 there. RuntimeError for a dense mask.

    >>> torch.ones(2, 2).sparse_mask(torch.eye(2).to_sparse()).values()
    tensor([1., 1.])
    """
    return _module(".create").sparse_mask(self, mask)


def sparse_dim(self: Tensor) -> int:
    """Return how many dims have coordinates: none of a dense tensor.

    >>> torch.ones(2).sparse_dim(), torch.ones(2).to_sparse().sparse_dim()
    (0, 1)
    """
    return 0


def dense_dim(self: Tensor) -> int:
    """Return how many dims have no coordinates: all of a dense tensor.

    >>> torch.ones(2, 3).dense_dim(), torch.ones(2, 3).to_sparse(1).dense_dim()
    (2, 1)
    """
    return self.ndim


_WANTED = "{} expected sparse coordinate tensor layout but got Strided"
_ROWS = "{} expected sparse row compressed tensor layout but got Strided"

for _method in (to_sparse, to_sparse_coo, to_sparse_csr, to_dense, sparse_mask, sparse_dim, dense_dim):
    setattr(Tensor, _method.__name__, _method)
for _name in ("coalesce", "is_coalesced", "indices", "values", "_indices", "_values", "_nnz"):
    setattr(Tensor, _name, _dense_only(_name, _WANTED.format(_name)))
for _name in ("crow_indices", "col_indices"):
    setattr(Tensor, _name, _dense_only(_name, _ROWS.format(_name)))


def _embedding(*args: Any) -> Any:
    _module()
    return _module(".embedding").embedding(*args)


asked.embedding = _embedding


def _zeros(shape: Any, dtype: Any, layout: Any, requires_grad: bool) -> Any:
    return _module(".create").zeros(shape, dtype, layout, requires_grad)


asked.sparse_zeros = _zeros
