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
    values: Tensor
    indices: Tensor

class min(NamedTuple):
    values: Tensor
    indices: Tensor

class aminmax(NamedTuple):
    min: Tensor
    max: Tensor

class cummax(NamedTuple):
    values: Tensor
    indices: Tensor

class cummin(NamedTuple):
    values: Tensor
    indices: Tensor

class frexp(NamedTuple):
    mantissa: Tensor
    exponent: Tensor

class median(NamedTuple):
    values: Tensor
    indices: Tensor

class nanmedian(NamedTuple):
    values: Tensor
    indices: Tensor

class mode(NamedTuple):
    values: Tensor
    indices: Tensor

class kthvalue(NamedTuple):
    values: Tensor
    indices: Tensor

class sort(NamedTuple):
    values: Tensor
    indices: Tensor

class topk(NamedTuple):
    values: Tensor
    indices: Tensor

class histogram(NamedTuple):
    hist: Tensor
    bin_edges: Tensor

class histogramdd(NamedTuple):
    hist: Tensor
    bin_edges: tuple[Tensor, ...]

class triangular_solve(NamedTuple):
    solution: Tensor
    cloned_coefficient: Tensor

class geqrf(NamedTuple):
    a: Tensor
    tau: Tensor

class qr(NamedTuple):
    Q: Tensor
    R: Tensor

class svd(NamedTuple):
    U: Tensor
    S: Tensor
    V: Tensor

class slogdet(NamedTuple):
    sign: Tensor
    logabsdet: Tensor

class lu_unpack(NamedTuple):
    P: Tensor
    L: Tensor
    U: Tensor

class _lu_with_info(NamedTuple):
    LU: Tensor
    pivots: Tensor
    info: Tensor

class linalg_slogdet(NamedTuple):
    sign: Tensor
    logabsdet: Tensor

class linalg_cholesky_ex(NamedTuple):
    L: Tensor
    info: Tensor

class linalg_inv_ex(NamedTuple):
    inverse: Tensor
    info: Tensor

class linalg_solve_ex(NamedTuple):
    result: Tensor
    info: Tensor

class linalg_lu(NamedTuple):
    P: Tensor
    L: Tensor
    U: Tensor

class linalg_lu_factor(NamedTuple):
    LU: Tensor
    pivots: Tensor

class linalg_lu_factor_ex(NamedTuple):
    LU: Tensor
    pivots: Tensor
    info: Tensor

class linalg_ldl_factor(NamedTuple):
    LD: Tensor
    pivots: Tensor

class linalg_ldl_factor_ex(NamedTuple):
    LD: Tensor
    pivots: Tensor
    info: Tensor

class linalg_qr(NamedTuple):
    Q: Tensor
    R: Tensor

class linalg_svd(NamedTuple):
    U: Tensor
    S: Tensor
    Vh: Tensor

class linalg_eigh(NamedTuple):
    eigenvalues: Tensor
    eigenvectors: Tensor

class linalg_eig(NamedTuple):
    eigenvalues: Tensor
    eigenvectors: Tensor

class linalg_lstsq(NamedTuple):
    solution: Tensor
    residuals: Tensor
    rank: Tensor
    singular_values: Tensor
