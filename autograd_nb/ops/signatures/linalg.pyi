"""The ops that are offered under ``linalg``. Written by `make stubs` from the table of ops: change the op, not this file."""

from collections.abc import Callable, Iterator, Sequence
from types import ModuleType
from typing import Any, Literal, Self, overload

from autograd_nb.dtypes import dtype as _dtype
from autograd_nb.ops.creation.device import device as _device
from autograd_nb.ops.creation.device import layout as _layout
from autograd_nb.ops.creation.device import memory_format as _memory_format
from autograd_nb.ops.creation.storages import TypedStorage, UntypedStorage
from autograd_nb.ops.random.generator import Generator
from autograd_nb.ops.signatures import return_types as _return_types
from autograd_nb.shapes import Size
from autograd_nb.tensor import Tensor
from autograd_nb.types import Device, Number, _Array, _bool, _complex, _float, _Holds, _int, _size, _str

def cholesky(A: Tensor, *, upper: _bool = False, out: Tensor | None = None) -> Tensor:
    """Return the lower triangular L with A = L·Lᴴ (the upper U with A = Uᴴ·U) of Hermitian positive definite matrices; reads one triangle."""

def cholesky_ex(
    A: Tensor, *, upper: _bool = False, check_errors: _bool = False, out: Tensor | None = None
) -> _return_types.linalg_cholesky_ex:
    """Return (L, info): `linalg.cholesky` that reports failure in ``info`` (the order of the leading minor, else 0) instead of raising."""

def cond(A: Tensor, p: _float | _str | None = None, *, out: Tensor | None = None) -> Tensor:
    """Return ‖A‖·‖A⁻¹‖ of matrices (…, m, n): for p None, 2 and −2 by singular values, else of square matrices in the matrix norm ``p``."""

def cross(input: Tensor, other: Tensor | Number | _complex, *, dim: _int = -1, out: Tensor | None = None) -> Tensor:
    """Return a × b along ``dim``, which has size 3; the other dims broadcast. da = b × g, db = g × a."""

def det(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Return the determinants of square matrices (…, n, n) → (…); dA = g·det(A)·A⁻ᴴ, the matrix of cofactors where A is singular."""

def diagonal(A: Tensor, *, offset: _int = 0, dim1: _int = -2, dim2: _int = -1) -> Tensor:
    """Return `diagonal` of the last two dims, a view."""

def eig(A: Tensor, *, out: Tensor | None = None) -> _return_types.linalg_eig:
    """Return (eigenvalues, eigenvectors) of square matrices (…, n, n), always complex: A·V = V·diag(w), vectors of length 1, in no order."""

def eigh(A: Tensor, UPLO: _str = 'L', *, out: Tensor | None = None) -> _return_types.linalg_eigh:
    """Return (eigenvalues, eigenvectors) of Hermitian matrices (…, n, n), ascending; A = V·diag(w)·Vᴴ. Reads the triangle ``UPLO``."""

def eigvals(A: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Return the eigenvalues of square matrices (…, n, n), complex, in no order."""

def eigvalsh(A: Tensor, UPLO: _str = 'L', *, out: Tensor | None = None) -> Tensor:
    """Return the eigenvalues of Hermitian matrices (…, n, n), ascending; dA = V·diag(g)·Vᴴ."""

def householder_product(input: Tensor, tau: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Return the first n columns of H₁·H₂·…·Hₖ, Hᵢ = I − τᵢ·vᵢ·vᵢᴴ, for vectors vᵢ packed below the diagonal of input (…, m, n) by `geqrf`."""

def inv(A: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Return A⁻¹ of square matrices (…, n, n); dA = −A⁻ᴴ·g·A⁻ᴴ."""

def inv_ex(A: Tensor, *, check_errors: _bool = False, out: Tensor | None = None) -> _return_types.linalg_inv_ex:
    """Return (inverse, info): `linalg.inv` that reports failure in ``info`` (the zero on U's diagonal, from 1) instead of raising."""

def ldl_factor(A: Tensor, *, hermitian: _bool = False, out: Tensor | None = None) -> _return_types.linalg_ldl_factor:
    """Return (LD, pivots) of symmetric (Hermitian) matrices (…, n, n), definite or not, as LAPACK packs them; reads the lower triangle."""

def ldl_factor_ex(
    A: Tensor, *, hermitian: _bool = False, check_errors: _bool = False, out: Tensor | None = None
) -> _return_types.linalg_ldl_factor_ex:
    """Return (LD, pivots, info): `linalg.ldl_factor` that reports the first zero block in ``info`` instead of raising."""

def ldl_solve(LD: Tensor, pivots: Tensor, B: Tensor, *, hermitian: _bool = False, out: Tensor | None = None) -> Tensor:
    """X with A·X = B, given the results of `linalg.ldl_factor` of A. No gradient."""

def lstsq(input: Tensor, b: Tensor, rcond: _float | None = None, *, driver: _str | None = None) -> _return_types.linalg_lstsq:
    """Return (solution, residuals, rank, singular_values): the X that minimises |A·X − B|, the shortest where several do."""

def lu(A: Tensor, *, pivot: _bool = True, out: Tensor | None = None) -> _return_types.linalg_lu:
    """Return (P, L, U) with A = P·L·U: P (…, m, m) a permutation, L (…, m, k) with ones on its diagonal, U (…, k, n), k = min(m, n)."""

def lu_factor(A: Tensor, *, pivot: _bool = True, out: Tensor | None = None) -> _return_types.linalg_lu_factor:
    """Return (LU, pivots) with A = P·L·U: both factors in one matrix (L without its diagonal of ones), and the row exchanges from 1."""

def lu_factor_ex(
    A: Tensor, *, pivot: _bool = True, check_errors: _bool = False, out: Tensor | None = None
) -> _return_types.linalg_lu_factor_ex:
    """Return (LU, pivots, info): `linalg.lu_factor` that reports the first zero on U's diagonal in ``info`` instead of raising."""

def lu_solve(
    LU: Tensor, pivots: Tensor, B: Tensor, *, left: _bool = True, adjoint: _bool = False, out: Tensor | None = None
) -> Tensor:
    """X with A·X = B (X·A = B if not ``left``; Aᴴ for A if ``adjoint``), given A = P·L·U as `linalg.lu_factor` returns it."""

def matmul(input: Tensor, other: Tensor | Number | _complex, *, out: Tensor | None = None) -> Tensor:
    """Return `matmul`."""

def matrix_exp(A: Tensor) -> Tensor:
    """Return Σ Aᵏ/k! of square matrices (…, n, n), by scaling and squaring of Taylor's series."""

def matrix_norm(
    A: Tensor, ord: _float | _str = 'fro', dim: _int | Sequence[_int] = (-2, -1), keepdim: _bool = False, *, dtype: _dtype |
    None = None, out: Tensor | None = None
) -> Tensor:
    """Return a norm of the matrices in the two dims ``dim``: 'fro' √Σ|a|², 'nuc' the sum of singular values, 2 / −2 the greatest / least, …"""

def matrix_power(A: Tensor, n: _int, *, out: Tensor | None = None) -> Tensor:
    """Return Aⁿ of square matrices (…, d, d) for an integer n, by repeated squaring; of A⁻¹ for negative n."""

def matrix_rank(
    A: Tensor, tol: _float | Tensor | None = None, hermitian: _bool = False, *, atol: _float | Tensor | None = None, rtol:
    _float | Tensor | None = None, out: Tensor | None = None
) -> Tensor:
    """Return how many singular values of matrices (…, m, n) are greater than max(atol, rtol·s₀), int64; no gradient."""

def multi_dot(tensors: Sequence[Tensor], *, out: Tensor | None = None) -> Tensor:
    """Return the product of two or more matrices in the order of fewest multiplications; the first and the last may be vectors."""

def norm(
    A: Tensor, ord: _float | _str | None = None, dim: _int | Sequence[_int] | None = None, keepdim: _bool = False, *, out:
    Tensor | None = None, dtype: _dtype | None = None
) -> Tensor:
    """Return a vector norm over one dim, a matrix norm over two; without ``ord`` √Σ|a|² over any dims (default all)."""

def pinv(
    A: Tensor, rcond: _float | Tensor | None = None, hermitian: _bool = False, *, atol: _float | Tensor | None = None, rtol:
    _float | Tensor | None = None, out: Tensor | None = None
) -> Tensor:
    """Return the Moore–Penrose inverse of matrices (…, m, n) → (…, n, m); singular values up to max(atol, rtol·s₀) count as 0."""

def qr(A: Tensor, mode: _str = 'reduced', *, out: Tensor | None = None) -> _return_types.linalg_qr:
    """Return (Q, R) with A = Q·R: A (…, m, n), Q with orthonormal columns, R upper triangular."""

def slogdet(A: Tensor, *, out: Tensor | None = None) -> _return_types.linalg_slogdet:
    """Return (sign, logabsdet) with det(A) = sign·e^logabsdet; sign 0 and −∞ for a singular matrix. dA = g·A⁻ᴴ."""

def solve(A: Tensor, B: Tensor, *, left: _bool = True, out: Tensor | None = None) -> Tensor:
    """X with A·X = B (X·A = B if not ``left``): A (…, n, n), B (…, n, k), or (…, n) for vectors; batches broadcast."""

def solve_ex(
    A: Tensor, B: Tensor, *, left: _bool = True, check_errors: _bool = False, out: Tensor | None = None
) -> _return_types.linalg_solve_ex:
    """Return (result, info): `linalg.solve` that reports failure in ``info`` (the zero on U's diagonal, from 1) instead of raising."""

def solve_triangular(
    A: Tensor, B: Tensor, *, upper: _bool, left: _bool = True, unitriangular: _bool = False, out: Tensor | None = None
) -> Tensor:
    """X with A·X = B (X·A = B if not ``left``) for triangular A, the other triangle of which is not read."""

def svd(
    A: Tensor, full_matrices: _bool = True, *, driver: _str | None = None, out: Tensor | None = None
) -> _return_types.linalg_svd:
    """Return (U, S, Vh) with A = U·diag(S)·Vh: A (…, m, n), S descending; U (…, m, m), Vh (…, n, n), or with min(m, n) vectors."""

def svdvals(A: Tensor, *, driver: _str | None = None, out: Tensor | None = None) -> Tensor:
    """Return the singular values of matrices (…, m, n), descending; dA = U·diag(g)·Vᴴ."""

def tensorinv(A: Tensor, ind: _int = 2, *, out: Tensor | None = None) -> Tensor:
    """Return the inverse of A as a linear map from its last dims to its first ``ind``: of shape A.shape[ind:] + A.shape[:ind]."""

def tensorsolve(A: Tensor, B: Tensor, dims: _int | _size | None = None, *, out: Tensor | None = None) -> Tensor:
    """X with tensordot(A, X, X.ndim) = B; the dims of A in ``dims`` are moved behind the others first."""

def vander(x: Tensor, *, N: _int | None = None) -> Tensor:
    """Return 1, x, x², …, x^(N−1) in a new last dim; N is the size of x's last dim if not given."""

def vecdot(x: Tensor, y: Tensor, *, dim: _int = -1, out: Tensor | None = None) -> Tensor:
    """Return Σ conj(x)·y along ``dim``; the other dims broadcast."""

def vector_norm(
    x: Tensor, ord: _float = 2, dim: _int | Sequence[_int] | None = None, keepdim: _bool = False, *, dtype: _dtype | None =
    None, out: Tensor | None = None
) -> Tensor:
    """Return (Σ |x|^ord)^(1/ord) over ``dim``; 0 counts what is not 0, ±∞ take the extreme of |x|; 0 is the subgradient at 0."""
