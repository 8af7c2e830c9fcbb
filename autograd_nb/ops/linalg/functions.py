"""Functions of matrices, and tensors seen as matrices."""

from __future__ import annotations

from ... import dtypes
from ...launch import Kernel
from ...shapes import as_int, numel
from ...tensor import Tensor
from ..core.numbers import int_argument, several_argument
from ..core.registry import OPS, public
from ..core.structured import structured, tensor_argument
from ..creation.cast import cast, clone, dense
from ..creation.create import new_empty, new_full
from .common import check, count, given, identity, scalar_name, square, square_shape
from .lu import _inv, _singular, inv
from .lu import solve as solve_system

_EXP = Kernel("linalg.matrix_exp", "matrix_exp")


@public(method=False, namespaces=("linalg",), name="linalg.matrix_power")
def matrix_power(A, n, *, out=None):
    """Return Aⁿ of square matrices (…, d, d) for an integer n, by repeated squaring; of A⁻¹ for negative n.

    Errors: `linalg.LinAlgError` for a singular matrix and n < 0; TypeError for an n that is not an integer.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.linalg.matrix_power.html

    >>> torch.linalg.matrix_power(torch.tensor([[2.0, 1.0], [1.0, 3.0]]), 2)
    tensor([[ 5.,  5.],
            [ 5., 10.]])
    """
    a = tensor_argument(A, "linalg.matrix_power")
    if isinstance(n, bool) or not isinstance(n, int):
        if not hasattr(n, "__index__"):
            raise TypeError(f"linalg_matrix_power(): argument 'n' (position 2) must be int, not {type(n).__name__}")
        n = as_int(n, "n")
    if a.ndim < 2:
        raise RuntimeError(f"linalg.matrix_power: The input tensor A must have at least 2 dimensions (its shape is {list(a.shape)}).")
    square_shape(a, "linalg.matrix_power")
    copied = n in (0, 1) or (abs(n) > 3 and not abs(n) & (abs(n) - 1))  # into out=; in PyTorch the last product or the inverse is written there
    return given(_power(a, n), out, "linalg.matrix_power" if copied else "mm")


@public(name="matrix_power")
def torch_matrix_power(input, n, *, out=None):
    """Return `linalg.matrix_power`, its older name; matrix_power([[1., 1.], [0., 1.]], 3) = [[1., 3.], [0., 1.]]."""
    return matrix_power(input, n, out=out)


@structured(
    a=lambda g: new_full(g.shape, 0, g.dtype), node="LinalgMatrixPowerBackward0", linear="no", batch="samples",
    samples="torch.linalg.matrix_power(x(3, 3), 0)",
)
def _zeroth(a):
    return clone(identity(a.shape[-1], a.dtype).expand(a.shape))


def _power(a: Tensor, n: int) -> Tensor:
    if n == 0:
        return _zeroth(a)
    if n < 0:
        return _power(inv(a), -n) if n < -1 else inv(a)
    if n == 1:
        return clone(a)
    while not n & 1:
        a, n = a @ a, n >> 1
    y = a
    while n > 1:
        a, n = a @ a, n >> 1
        if n & 1:
            y = y @ a
    return y


def _exp_rule(g: Tensor, a: Tensor) -> Tensor:
    # the derivative in direction G stands in the corner of the exponential of the block triangle of A and G
    n = a.shape[-1]
    cat = OPS["cat"].call
    a = a.mT
    block = cat([cat([a, g], -1), cat([new_full(a.shape, 0, a.dtype), a], -1)], -2)
    return _exp(block).narrow(-2, 0, n).narrow(-1, n, n)


@structured(
    a=_exp_rule, node="LinalgMatrixExpBackward0", linear="no", batch="samples",
    dtypes="half float complex", samples="torch.linalg.matrix_exp(x(3, 3))",
)
def _exp(a):
    out = new_empty(a.shape, a.dtype)
    if out._layout.size:
        _EXP(a.dtype, count(a), a.shape[-1], dense(a), out._data)
    return out


@public()
@public(method=False, namespaces=("linalg",), name="linalg.matrix_exp")
def matrix_exp(A):
    """Return Σ Aᵏ/k! of square matrices (…, n, n), by scaling and squaring of Taylor's series.

    The derivative is the block above the diagonal of the exponential of [[Aᴴ, g], [0, Aᴴ]].

    Errors: RuntimeError for matrices that are not square.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.linalg.matrix_exp.html

    >>> torch.linalg.matrix_exp(torch.zeros(2, 2))
    tensor([[1., 0.],
            [0., 1.]])
    """
    if isinstance(A, Tensor) and A.dtype.is_half:
        return cast(matrix_exp(cast(A, dtypes.float32)), A.dtype)
    return _exp(square(A, "linalg.matrix_exp"))


# ------------------------------------------------------------------------------------------ tensors as matrices


@public(method=False, namespaces=("linalg",), name="linalg.tensorinv")
def tensorinv(A, ind=2, *, out=None):
    """Return the inverse of A as a linear map from its last dims to its first ``ind``: of shape A.shape[ind:] + A.shape[:ind].

    Errors: RuntimeError where the two parts have different sizes; `linalg.LinAlgError` where A has no inverse.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.linalg.tensorinv.html

    >>> torch.linalg.tensorinv(torch.tensor([[2.0, 0.0], [0.0, 4.0]]), ind=1)
    tensor([[0.5000, 0.0000],
            [0.0000, 0.2500]])
    """
    a = tensor_argument(A, "linalg.tensorinv")
    ind = as_int(ind, "ind")
    if ind <= 0:
        raise RuntimeError(f"Expected a strictly positive integer for 'ind', but got {ind}")
    first, last = a.shape[:ind], a.shape[ind:]
    if numel(first) != numel(last) or ind > a.ndim:
        raise RuntimeError(
            "Expected self to satisfy the requirement prod(self.shape[ind:]) == prod(self.shape[:ind]), but got "
            f"{numel(last)} != {numel(first)} (ind={ind}, shape {list(a.shape)})"
        )
    y, info = _inv(square(a.reshape(numel(last), numel(first)), "linalg.tensorinv"))
    check(info, "linalg.tensorinv", _singular)
    return given(y.reshape((*last, *first)), out, "linalg.tensorinv")


@public(method=False, namespaces=("linalg",), name="linalg.tensorsolve")
def tensorsolve(A, B, dims=None, *, out=None):
    """X with tensordot(A, X, X.ndim) = B; the dims of A in ``dims`` are moved behind the others first.

    Errors: RuntimeError where A is not as large as B's size squared; `linalg.LinAlgError` where A has no inverse.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.linalg.tensorsolve.html

    >>> torch.linalg.tensorsolve(torch.tensor([[2.0, 0.0], [0.0, 4.0]]), torch.tensor([2.0, 2.0]))
    tensor([1.0000, 0.5000])
    """
    a, b = tensor_argument(A, "linalg.tensorsolve"), tensor_argument(B, "linalg.tensorsolve", "B")
    if dims is not None:
        dims = tuple([int_argument(d, "linalg.tensorsolve", "dims") for d in several_argument(dims, "linalg.tensorsolve", "dims")])
        a = OPS["movedim"].call(a, dims, tuple(range(a.ndim - len(dims), a.ndim)))
    shape = a.shape[b.ndim :]
    if numel(shape) != numel(a.shape[: b.ndim]):
        raise RuntimeError(
            "Expected self to satisfy the requirement prod(self.shape[other.ndim:]) == prod(self.shape[:other.ndim]), but got "
            f"{numel(shape)} != {numel(a.shape[: b.ndim])}"
        )
    n = numel(shape)
    if numel(b.shape) != n:
        raise RuntimeError(f"linalg.tensorsolve: B must have {n} elements, as A has rows, but its shape is {list(b.shape)}")
    return given(solve_system(a.reshape(n, n), b.reshape(n)).reshape(shape), out, "linalg.tensorsolve")


# -------------------------------------------------------------------------------------------------- Vandermonde


def _powers(x: Tensor, n: int) -> Tensor:
    """Return 1, x, x², … in a new last dim."""
    one = new_full((*x.shape, 1), 1, x.dtype)
    if n == 1:
        return one
    rest = x.unsqueeze(-1).expand(*x.shape, n - 1)
    return OPS["cat"].call([one, OPS["cumprod"].call(rest, -1)], -1)


@public(method=False, namespaces=("linalg",), name="linalg.vander")
def vander(x, *, N=None):
    """Return 1, x, x², …, x^(N−1) in a new last dim; N is the size of x's last dim if not given.

    Errors: RuntimeError for N ≤ 1, bools, halves, and 0-d tensors without N.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.linalg.vander.html

    >>> torch.linalg.vander(torch.tensor([2, 3]), N=3)
    tensor([[1, 2, 4],
            [1, 3, 9]])
    """
    t = tensor_argument(x, "linalg.vander", "x")
    if t.dtype is dtypes.bool_ or t.dtype.is_half:
        raise RuntimeError(f"linalg.vander supports floating point, complex, and integer tensors, but got {scalar_name(t)}")
    t = t if t.ndim else t.unsqueeze(-1)
    n = t.shape[-1] if N is None else as_int(N, "N")
    if n <= 1:
        raise RuntimeError(f"N must be greater than 1. (N={n})")
    if t.dtype.category == 1:
        t = cast(t, dtypes.int64)
    return _powers(t, n)


@public(name="vander", method=False)
def torch_vander(x, N=None, increasing=False):
    """Return x^(N−1), …, x, 1 as the columns of a matrix, or in ``increasing`` order; N is the size of x if not given.

    Errors: RuntimeError for x that is not 1-D, and negative N. Source: https://docs.pytorch.org/docs/stable/generated/torch.vander.html

    >>> torch.vander(torch.tensor([2, 3]))
    tensor([[2, 1],
            [3, 1]])
    """
    t = tensor_argument(x, "vander", "x")
    if t.ndim != 1:
        raise RuntimeError(f"x must be a one-dimensional tensor. (its shape is {list(t.shape)})")
    n = t.shape[0] if N is None else as_int(N, "N")
    if n < 0:
        raise RuntimeError(f"N must be non-negative. (N={n})")
    if t.dtype.category < 2:
        t = cast(t, dtypes.int64)
    if not n:
        return new_empty((t.shape[0], 0), t.dtype)
    y = _powers(t, n)
    return y if increasing else y.flip(1)
