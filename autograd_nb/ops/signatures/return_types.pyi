"""The named tuples of results. Written by `make stubs` from return_types: change that, not this file."""

from typing import NamedTuple

from autograd_nb.tensor import Tensor

__all__ = [
    "max",
    "min",
    "aminmax",
    "cummax",
    "cummin",
    "frexp",
    "median",
    "nanmedian",
    "mode",
    "kthvalue",
    "sort",
    "topk",
    "histogram",
    "histogramdd",
    "triangular_solve",
    "geqrf",
    "qr",
    "svd",
    "slogdet",
    "lu_unpack",
    "_lu_with_info",
    "linalg_slogdet",
    "linalg_cholesky_ex",
    "linalg_inv_ex",
    "linalg_solve_ex",
    "linalg_lu",
    "linalg_lu_factor",
    "linalg_lu_factor_ex",
    "linalg_ldl_factor",
    "linalg_ldl_factor_ex",
    "linalg_qr",
    "linalg_svd",
    "linalg_eigh",
    "linalg_eig",
    "linalg_lstsq",
]

class max(NamedTuple):
    """What `max` returns."""
    values: Tensor
    indices: Tensor

class min(NamedTuple):
    """What `min` returns."""
    values: Tensor
    indices: Tensor

class aminmax(NamedTuple):
    """What `aminmax` returns."""
    min: Tensor
    max: Tensor

class cummax(NamedTuple):
    """What `cummax` returns."""
    values: Tensor
    indices: Tensor

class cummin(NamedTuple):
    """What `cummin` returns."""
    values: Tensor
    indices: Tensor

class frexp(NamedTuple):
    """What `frexp` returns."""
    mantissa: Tensor
    exponent: Tensor

class median(NamedTuple):
    """What `median` returns."""
    values: Tensor
    indices: Tensor

class nanmedian(NamedTuple):
    """What `nanmedian` returns."""
    values: Tensor
    indices: Tensor

class mode(NamedTuple):
    """What `mode` returns."""
    values: Tensor
    indices: Tensor

class kthvalue(NamedTuple):
    """What `kthvalue` returns."""
    values: Tensor
    indices: Tensor

class sort(NamedTuple):
    """What `sort` returns."""
    values: Tensor
    indices: Tensor

class topk(NamedTuple):
    """What `topk` returns."""
    values: Tensor
    indices: Tensor

class histogram(NamedTuple):
    """What `histogram` returns."""
    hist: Tensor
    bin_edges: Tensor

class histogramdd(NamedTuple):
    """What `histogramdd` returns."""
    hist: Tensor
    bin_edges: tuple[Tensor, ...]

class triangular_solve(NamedTuple):
    """What `triangular_solve` returns."""
    solution: Tensor
    cloned_coefficient: Tensor

class geqrf(NamedTuple):
    """What `geqrf` returns."""
    a: Tensor
    tau: Tensor

class qr(NamedTuple):
    """What `qr` returns."""
    Q: Tensor
    R: Tensor

class svd(NamedTuple):
    """What `svd` returns."""
    U: Tensor
    S: Tensor
    V: Tensor

class slogdet(NamedTuple):
    """What `slogdet` returns."""
    sign: Tensor
    logabsdet: Tensor

class lu_unpack(NamedTuple):
    """What `lu_unpack` returns."""
    P: Tensor
    L: Tensor
    U: Tensor

class _lu_with_info(NamedTuple):
    """What `_lu_with_info` returns."""
    LU: Tensor
    pivots: Tensor
    info: Tensor

class linalg_slogdet(NamedTuple):
    """What `linalg_slogdet` returns."""
    sign: Tensor
    logabsdet: Tensor

class linalg_cholesky_ex(NamedTuple):
    """What `linalg_cholesky_ex` returns."""
    L: Tensor
    info: Tensor

class linalg_inv_ex(NamedTuple):
    """What `linalg_inv_ex` returns."""
    inverse: Tensor
    info: Tensor

class linalg_solve_ex(NamedTuple):
    """What `linalg_solve_ex` returns."""
    result: Tensor
    info: Tensor

class linalg_lu(NamedTuple):
    """What `linalg_lu` returns."""
    P: Tensor
    L: Tensor
    U: Tensor

class linalg_lu_factor(NamedTuple):
    """What `linalg_lu_factor` returns."""
    LU: Tensor
    pivots: Tensor

class linalg_lu_factor_ex(NamedTuple):
    """What `linalg_lu_factor_ex` returns."""
    LU: Tensor
    pivots: Tensor
    info: Tensor

class linalg_ldl_factor(NamedTuple):
    """What `linalg_ldl_factor` returns."""
    LD: Tensor
    pivots: Tensor

class linalg_ldl_factor_ex(NamedTuple):
    """What `linalg_ldl_factor_ex` returns."""
    LD: Tensor
    pivots: Tensor
    info: Tensor

class linalg_qr(NamedTuple):
    """What `linalg_qr` returns."""
    Q: Tensor
    R: Tensor

class linalg_svd(NamedTuple):
    """What `linalg_svd` returns."""
    U: Tensor
    S: Tensor
    Vh: Tensor

class linalg_eigh(NamedTuple):
    """What `linalg_eigh` returns."""
    eigenvalues: Tensor
    eigenvectors: Tensor

class linalg_eig(NamedTuple):
    """What `linalg_eig` returns."""
    eigenvalues: Tensor
    eigenvectors: Tensor

class linalg_lstsq(NamedTuple):
    """What `linalg_lstsq` returns."""
    solution: Tensor
    residuals: Tensor
    rank: Tensor
    singular_values: Tensor
