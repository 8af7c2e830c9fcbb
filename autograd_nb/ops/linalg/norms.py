"""Norms of matrices, and condition numbers."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ... import dtypes
from ...shapes import wrap_dims
from ...tensor import Tensor
from ..core.numbers import several_argument
from ..core.registry import public
from ..core.structured import tensor_argument
from ..creation.cast import cast
from ..creation.create import new_full
from ..reduce.norms import vector_norm
from .common import batch_of, given, scalar_name, square
from .lu import _inv
from .spectral import svdvals

_NAME = "linalg.matrix_norm"


def _order(ord: Any) -> Any:
    """Return ``ord`` if there is a matrix norm of that name or number."""
    if isinstance(ord, str):
        if ord not in ("fro", "nuc"):
            raise RuntimeError(f"{_NAME}: Order {ord} not supported.")
        return ord
    if isinstance(ord, bool) or not isinstance(ord, (int, float, np.number)):
        raise TypeError(f"linalg_matrix_norm(): argument 'ord' must be a number or a string, not {type(ord).__name__}")
    if abs(ord) not in (1, 2, math.inf):
        raise RuntimeError(f"{_NAME}: Order {ord} not supported.")
    return float(ord)


def _matrix_norm(x: Tensor, ord: Any, dim: Any, keepdim: bool, dtype: Any) -> Tensor:
    ord = _order(ord)
    if x.ndim < 2:
        raise RuntimeError(f"{_NAME}: The input tensor A must have at least 2 dimensions (its shape is {list(x.shape)}).")
    if not isinstance(dim, (tuple, list)):
        raise TypeError(f"linalg_matrix_norm(): argument 'dim' must be tuple of ints, not {type(dim).__name__}")
    if len(dim) != 2:
        raise RuntimeError(f"{_NAME}: dim must be a 2-tuple. Got {' '.join(map(str, dim))}")
    if dtype is not None:
        x = _converted(x, dtype, _NAME)
    if x.dtype.category < 2:
        raise RuntimeError(f"{_NAME}: Expected a floating point or complex tensor as input. Got {scalar_name(x)}")
    first, second = (wrap_dims(d, x.ndim)[0] for d in dim)
    if first == second:
        raise RuntimeError(f"{_NAME}: dims must be different. Got ({dim[0]}, {dim[1]})")
    if ord == "fro":
        return vector_norm(x, 2, (first, second), keepdim, None, _NAME)
    if ord == "nuc" or abs(ord) == 2:
        rest = [d for d in range(x.ndim) if d not in (first, second)]
        s = svdvals(x.permute(*rest, first, second))
        y = s.sum(-1) if ord == "nuc" else _extreme(s, -1, ord, False)
        return y.reshape([1 if d in (first, second) else n for d, n in enumerate(x.shape)]) if keepdim else y
    if math.isinf(ord):  # sums along rows
        first, second = second, first
    return _extreme(x.abs().sum(first, keepdim=keepdim), second if keepdim or second < first else second - 1, ord, keepdim)


def _extreme(sizes: Tensor, dim: int, ord: float, keepdim: bool) -> Tensor:
    """Return the greatest of numbers that are not negative, of none 0; the least for a negative ``ord``, which none do not have."""
    if ord < 0:
        return sizes.amin(dim, keepdim=keepdim)
    return sizes.amax(dim, keepdim=keepdim) if sizes.shape[dim] else sizes.detach().sum(dim, keepdim=keepdim)


def _converted(x: Tensor, dtype: Any, name: str) -> Tensor:
    d = dtypes.as_dtype(dtype)
    if d.category < 2 or (x.dtype.is_complex and not d.is_complex):
        raise RuntimeError(f"{name}: dtype must be a floating point (complex for complex input) dtype. Got {d}")
    if x.dtype.category >= 2 and d.to_real().itemsize < x.dtype.to_real().itemsize:
        raise RuntimeError(f"{name}: the dtype of the input ({x.dtype}) should be convertible without narrowing to the specified dtype ({d})")
    return cast(x, d)


@public(method=False, namespaces=("linalg",), name="linalg.matrix_norm")
def matrix_norm(A, ord: float | str = "fro", dim=(-2, -1), keepdim=False, *, dtype=None, out=None):
    """Return a norm of the matrices in the two dims ``dim``: "fro" √Σ|a|², "nuc" the sum of singular values, 2 / −2 the greatest / least,
    1 / −1 the greatest / least column sum of |a|, ±inf row sum.

    Errors: RuntimeError for other orders, integers and less than 2 dims.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.linalg.matrix_norm.html

    >>> torch.linalg.matrix_norm(torch.tensor([[3.0, 0.0], [0.0, 4.0]]))
    tensor(5.)
    """
    return given(_matrix_norm(tensor_argument(A, _NAME), ord, dim, bool(keepdim), dtype), out, _NAME)


@public(method=False, namespaces=("linalg",), name="linalg.norm")
def norm(A, ord: float | str | None = None, dim=None, keepdim=False, *, out=None, dtype=None):
    """Return a vector norm over one dim, a matrix norm over two; without ``ord`` √Σ|a|² over any dims (default all).

    Errors: RuntimeError for orders and dims that do not fit.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.linalg.norm.html

    >>> torch.linalg.norm(torch.tensor([3.0, 4.0]))
    tensor(5.)
    """
    x = tensor_argument(A, "linalg.norm")
    dims = None if dim is None else several_argument(dim, "linalg.norm", "dim")
    if dims is not None and ord is not None and len(dims) not in (1, 2):
        raise RuntimeError(f"linalg.norm: If dim is specified, it must be of length 1 or 2. Got {list(dims)}")
    if dims is None and ord is not None and x.ndim not in (1, 2):
        raise RuntimeError(f"linalg.norm: If dim is not specified but ord is, the input must be 1D or 2D. Got {x.ndim}D.")
    if isinstance(ord, str) or (ord is not None and (len(dims) == 2 if dims is not None else x.ndim == 2)):
        y = _matrix_norm(x, ord, dims if dims is not None else (0, 1), bool(keepdim), dtype)
    else:
        y = vector_norm(x, 2 if ord is None else ord, dims, bool(keepdim), dtype)
    return given(y, out, "linalg.norm")


@public(method=False, namespaces=("linalg",), name="linalg.cond")
def cond(A, p: float | str | None = None, *, out=None):
    """Return ‖A‖·‖A⁻¹‖ of matrices (…, m, n): for p None, 2 and −2 by singular values, else of square matrices in the matrix norm ``p``.

    Infinite for a singular matrix. Errors: RuntimeError for other p, less than 2 dims, or matrices that are not square.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.linalg.cond.html

    >>> torch.linalg.cond(torch.tensor([[2.0, 1.0], [1.0, 3.0]]))
    tensor(2.6180)
    """
    a = tensor_argument(A, "linalg.cond")
    if a.ndim < 2:
        raise RuntimeError(f"linalg.cond: The input tensor must have at least 2 dimensions (its shape is {list(a.shape)}).")
    if p is not None and (p not in ("fro", "nuc") if isinstance(p, str) else abs(p) not in (1, 2, math.inf)):
        raise RuntimeError(f"linalg.cond got an invalid norm type: {p}")
    if p is None or (not isinstance(p, str) and abs(p) == 2):
        if not a._layout.size:
            return given(new_full(batch_of(a), 0, a.dtype.to_real()), out, "linalg.cond")
        s = svdvals(a)
        first, last = s.select(-1, 0), s.select(-1, s.shape[-1] - 1)
        return given(last / first if p == -2 else first / last, out, "linalg.cond")
    square(a, f"linalg.cond(ord={p})")
    if not a._layout.size:
        return given(new_full(batch_of(a), 0, a.dtype.to_real()), out, "linalg.cond")
    inverse, info = _inv(a)
    singular = info != 0
    some = bool(singular.any())
    if some:
        inverse = inverse.masked_fill(singular.unsqueeze(-1).unsqueeze(-1), 0.0)
    y = _matrix_norm(a, p, (-2, -1), False, None) * _matrix_norm(inverse, p, (-2, -1), False, None)
    return given(y.masked_fill(singular, math.inf) if some else y, out, "linalg.cond")
