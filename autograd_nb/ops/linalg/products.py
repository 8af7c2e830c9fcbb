"""Products: of chains of matrices, of vectors, and cross products."""

from __future__ import annotations

from itertools import pairwise

from ...codegen.formula.namespace import m
from ...launch import Kernel
from ...shapes import broadcast_shapes, numel, wrap_dim
from ...tensor import Tensor
from ..core.numbers import int_argument
from ..core.recording import guarded, need_numbers, store
from ..core.registry import public
from ..core.structured import structured, tensor_argument, tensors_argument
from ..creation.cast import clone, dense
from ..creation.create import new_empty
from ..products.matmul import matmul, mm
from ..reduce.sums import sum as sum_
from ..shape.parts import diagonal as _diagonal
from ..shape.turning import roll
from .common import expected_kind, given, same_dtype, scalar_name

_CROSS = Kernel("linalg.vectors", "cross")

_C_NAMES = {"float32": "float", "float64": "double", "float16": "c10::Half", "bfloat16": "c10::BFloat16", "int64": "long int", "int32": "int"}


def _best_splits(sizes: list[int]) -> list[list[int]]:
    """Return where to split the product of matrices i … j, of sizes[i] × sizes[i + 1] …, for the fewest multiplications."""
    n = len(sizes) - 1
    cost = [[0] * n for _ in range(n)]
    split = [[0] * n for _ in range(n)]
    for length in range(1, n):
        for i in range(n - length):
            j = i + length
            cost[i][j], split[i][j] = min(
                (cost[i][k] + cost[k + 1][j] + sizes[i] * sizes[k + 1] * sizes[j + 1], k) for k in range(i, j)
            )
    if n == 3 and sizes[1] * sizes[3] * (sizes[0] + sizes[2]) == sizes[0] * sizes[2] * (sizes[1] + sizes[3]):
        split[0][2] = 1  # PyTorch begins at the left where both orders of three cost the same
    return split


def _chain(matrices: list[Tensor]) -> Tensor:
    if len(matrices) == 1:
        return matrices[0]
    split = _best_splits([x.shape[0] for x in matrices] + [matrices[-1].shape[1]])

    return _between(matrices, split, 0, len(matrices) - 1)


def _between(matrices: list[Tensor], split: list[list[int]], i: int, j: int) -> Tensor:
    """Return the product of matrices ``i`` to ``j``."""
    if i == j:
        return matrices[i]
    k = split[i][j]
    return mm(_between(matrices, split, i, k), _between(matrices, split, k + 1, j))


@public(method=False, namespaces=("linalg",), name="linalg.multi_dot")
def multi_dot(tensors, *, out=None):
    """Return the product of two or more matrices in the order of fewest multiplications; the first and the last may be vectors.

    Errors: RuntimeError for fewer tensors, and shapes and dtypes that do not fit.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.linalg.multi_dot.html

    >>> torch.linalg.multi_dot([torch.ones(2, 3), torch.ones(3, 4), torch.ones(4, 1)])
    tensor([[12.],
            [12.]])
    """
    if isinstance(tensors, (list, tuple)) and len(tensors) < 2:
        raise RuntimeError(f"multi_dot(): expected at least 2 tensors but got {len(tensors)}")
    chain = list(tensors_argument(tensors, "linalg_multi_dot"))
    last = len(chain) - 1
    shape: list[int] = []
    for i, x in enumerate(chain):
        if i in (0, last):
            if x.ndim not in (1, 2):
                raise RuntimeError(f"multi_dot(): the {'last' if i else 'first'} tensor must be 1D or 2D but got {x.ndim}D")
        elif x.ndim != 2:
            raise RuntimeError(f"multi_dot(): tensor {i} must be 2D but got {x.ndim}D")
        if x.dtype is not chain[0].dtype:
            first, other = (_C_NAMES.get(t.dtype.name, t.dtype.name) for t in (chain[0], x))
            raise RuntimeError(
                f"multi_dot(): all tensors must have be the same dtype but tensor 0 is {first} and tensor {i} {other}"
            )
    if chain[0].ndim == 1:
        chain[0] = chain[0].unsqueeze(0)
    else:
        shape.append(chain[0].shape[0])
    if chain[last].ndim == 1:
        chain[last] = chain[last].unsqueeze(-1)
    else:
        shape.append(chain[last].shape[1])
    for i, (x, y) in enumerate(pairwise(chain)):
        if x.shape[1] != y.shape[0]:
            raise RuntimeError(
                f"multi_dot(): tensors {i} and {i + 1} with shapes {list(tensors[i].shape)} and {list(tensors[i + 1].shape)} cannot be "
                "multiplied"
            )
    return given(_chain(chain).reshape(shape), out, "linalg.multi_dot")


@public(method=False)
def chain_matmul(*matrices, out=None):
    """Return the product of matrices in the order of fewest multiplications: the older form of `linalg.multi_dot`.

    >>> torch.chain_matmul(torch.tensor([[1., 2.]]), torch.tensor([[3.], [4.]]), torch.tensor([[2.]]))
    tensor([[22.]])
    """
    if len(matrices) == 1 and isinstance(matrices[0], (list, tuple)):
        matrices = tuple(matrices[0])
    if not matrices:
        raise RuntimeError("chain_matmul(): Expected one or more matrices")
    for x in matrices:
        if tensor_argument(x, "chain_matmul", "matrices").ndim != 2:
            raise RuntimeError(f"Tensor dimension is {x.ndim}, expected 2 instead. (chain_matmul)")
    y = clone(matrices[0]) if len(matrices) == 1 else multi_dot(matrices)
    return given(y, out, "chain_matmul")


# ----------------------------------------------------------------------------------------------------- vectors


@structured(
    x=lambda g, y, d: _cross(y, g, d), y=lambda g, x, d: _cross(g, x, d), node="LinalgCrossBackward0", linear="each", batch="shift",
    dtypes="half float complex integer", samples="torch.linalg.cross(x(2, 3), x(2, 3))",
)
def _cross(x, y, d):
    if not x.dtype.is_half:
        out, shape = new_empty(x.shape, x.dtype), x.shape
        _CROSS(x.dtype, numel(shape[:d]), numel(shape[d + 1 :]), dense(x), dense(y), out._data)
        return out
    return roll(x, -1, d) * roll(y, -2, d) - roll(x, -2, d) * roll(y, -1, d)


@public(method=False, namespaces=("linalg",), name="linalg.cross")
def linalg_cross(input, other, *, dim=-1, out=None):
    """Return a × b along ``dim``, which has size 3; the other dims broadcast. da = b × g, db = g × a.

    Errors: RuntimeError for other sizes and different numbers of dims.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.linalg.cross.html

    >>> torch.linalg.cross(torch.tensor([1.0, 0.0, 0.0]), torch.tensor([0.0, 1.0, 0.0]))
    tensor([0., 0., 1.])
    """
    a, b = tensor_argument(input, "linalg.cross"), tensor_argument(other, "linalg.cross", "other")
    if a.ndim != b.ndim:
        raise RuntimeError(f"linalg.cross: inputs must have the same number of dimensions. ({a.ndim} and {b.ndim})")
    d = wrap_dim(dim, a.ndim)
    if not a.ndim:
        raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions (linalg.cross)")
    if a.shape[d] != 3 or b.shape[d] != 3:
        raise RuntimeError(f"linalg.cross: inputs dimension {dim} must have length 3. Got {a.shape[d]} and {b.shape[d]}")
    shape = broadcast_shapes(a.shape, b.shape)
    need_numbers("cross", (a,))
    expected_kind(a, b)
    kept = [other] * a.requires_grad + [input] * b.requires_grad
    y = guarded(_cross(a.expand(shape), b.expand(shape), d), *kept)
    return y if out is None else store(out, y, "linalg.cross", (input, other))


@public()
def cross(input, other, dim: int | None = None, *, out=None):
    """Return `linalg.cross` along ``dim``, the first dim of size 3 if not given; cross([1., 0., 0.], [0., 1., 0.]) = [0., 0., 1.]."""
    a, b = tensor_argument(input, "cross"), tensor_argument(other, "cross", "other")
    if dim is None:
        dim = next((d for d, n in enumerate(broadcast_shapes(a.shape, b.shape)) if n == 3), None)
        if dim is None:
            raise RuntimeError(f"no dimension of size 3 in input (cross() got shapes {list(a.shape)} and {list(b.shape)})")
    return linalg_cross(a, b, dim=dim, out=out)


@public(method=False, namespaces=("linalg",), name="linalg.vecdot")
def vecdot(x, y, *, dim=-1, out=None):
    """Return Σ conj(x)·y along ``dim``; the other dims broadcast.

    Errors: RuntimeError for different dtypes. Source: https://docs.pytorch.org/docs/stable/generated/torch.linalg.vecdot.html

    >>> torch.linalg.vecdot(torch.tensor([1.0, 2.0]), torch.tensor([3.0, 4.0]))
    tensor(11.)
    """
    a, b = tensor_argument(x, "linalg.vecdot", "x"), tensor_argument(y, "linalg.vecdot", "y")
    dim = int_argument(dim, "linalg.vecdot", "dim")
    if a.dtype.category < 2:
        raise RuntimeError(f"linalg.vecdot: Expected a floating point or complex tensor as input. Got {scalar_name(a)}")
    same_dtype(a, b, "linalg.vecdot", "x", "y")
    if a.ndim == b.ndim == 1 and a.shape != b.shape and not (a._layout.size and b._layout.size):
        raise RuntimeError(
            f"inconsistent tensor size, expected tensor {list(a.shape)} and src {list(b.shape)} to have the same number of elements (linalg.vecdot())"
        )
    if a.dtype.is_complex:
        a = m.conj(a)
    z = sum_(a * b, -1 if a.ndim == b.ndim == 1 else dim, dtype=a.dtype)  # (of vectors PyTorch does not look at the dim)
    return given(guarded(z, x) if b.requires_grad else z, out, "linalg.vecdot")


@public(method=False, namespaces=("linalg",), name="linalg.diagonal")
def diagonal(A, *, offset=0, dim1=-2, dim2=-1):
    """Return `diagonal` of the last two dims, a view; diagonal([[1, 2], [3, 4]]) = [1, 4]."""
    return _diagonal(A, offset, dim1, dim2)


@public(method=False, namespaces=("linalg",), name="linalg.matmul")
def linalg_matmul(input, other, *, out=None):
    """Return `matmul`; matmul([[1., 2.]], [[3.], [4.]]) = [[11.]]."""
    return matmul(input, other, out=out)
