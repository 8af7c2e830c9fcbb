"""Vector norms and what is measured with them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ... import dtypes
from ...codegen.formula.namespace import m
from ...codegen.templates.loops import MAX, MIN, SUM
from ...shapes import wrap_dim, wrap_dims
from ...tensor import Tensor
from ..core.numbers import narrowed, number_argument, real_argument
from ..core.pointwise import pointwise
from ..core.recording import scalar_type, store
from ..core.reduction import Reduction, all_dims, reduction
from ..core.registry import OPS, public
from ..core.structured import structured, tensor_argument
from ..creation.cast import cast, contiguous


def _whole(p: int) -> Reduction:
    """Return the norm of an order whose powers are quicker multiplied than by the general power."""

    def power(x: Any) -> Any:
        x = y = m.abs(x.cast("float64"))
        for _ in range(p - 1):
            y = y * x
        return y

    return Reduction("norm", SUM, power, lambda total: m.pow(total, 1 / p))


_KERNELS: dict[float, Reduction] = {
    2: Reduction("norm", SUM, lambda x: x * x, lambda total: m.sqrt(total)),
    1: Reduction("norm", SUM, lambda x: m.abs(x)),
    0: Reduction("norm", SUM, lambda x: m.where(x != 0, 1.0, 0.0)),
    **{p: _whole(p) for p in range(3, 9)},
    math.inf: Reduction("norm", MAX, lambda x: m.abs(x)),
    -math.inf: Reduction("norm", MIN, lambda x: m.abs(x)),
}
_NORM_P = Reduction("norm", SUM, lambda x, p: m.norm_power(m.abs(x), p), lambda total, p: m.pow(total, 1 / p))


# g·x/y, 0 where the norm y is 0: the gradient of the Euclidean norm. It jumps there, and has no derivative
@pointwise(
    lambda g, g0, y0: m.where(y0 == 0, math.nan, g * (g0 / y0)),
    lambda g, x, y0: m.where(y0 == 0, 0.0, g * (x / y0)),
    lambda g, x, g0, y0: m.where(y0 == 0, 0.0, -(g * ((x * g0) / (y0 * y0)))),
    name="norm_backward", public=False, inplace=False,
)  # fmt: skip
def _norm2_backward(x, g0, y0):
    return g0 * m.where(y0 == 0, 0.0, x / y0)


def _rule(g: Tensor, x: Tensor, y: Tensor, p: float, dims: tuple[int, ...]) -> Tensor | None:
    where = OPS["where"].call
    sign = OPS["sgn" if x.dtype.is_complex else "sign"].call
    if p == 2:
        return _norm2_backward(x, g, y)
    if p == 0:
        return None
    if p == 1:
        return sign(x) * g
    if math.isinf(p):
        hit = (x.abs() == y).logical_or(x.isnan())
        count = cast(hit.sum(dims, True) if dims else hit, g.dtype)
        # (0/0 where the values were exchanged behind the graph's back and none attains the extreme, as PyTorch's)
        return sign(x) * (g / count * hit)
    if p < 1:
        return where(x == 0, 0.0, sign(x) * x.abs().pow(p - 1)) * g * y.pow(1 - p)
    scale = g * where(y == 0, 0.0, 1 / y.pow(p - 1))  # (a factor, by which tangents are 0 at 0 too)
    if p < 2:
        return sign(x) * x.abs().pow(p - 1) * scale
    return x * x.abs().pow(p - 2) * scale


@reduction(grad=_rule, node="LinalgVectorNormBackward0", public=False)
def _norm(x, dims, keepdim, p):
    if x.dtype.is_complex:
        x = x.abs()
    d = x.dtype
    if p in _KERNELS:
        return _KERNELS[p]((x,), dims, keepdim, d, d.compute)
    return _NORM_P((x, narrowed(p, d)), dims, keepdim, d, (d.compute, "float64"))


HIGH = 1000.0  #: orders up to which powers are computed, of one element too


def vector_norm(
    x: Tensor, ord: Any = 2, dim: Any = None, keepdim: bool = False, dtype: Any = None, name: str = "linalg.vector_norm"
) -> Tensor:
    """Return (Σ |x|^ord)^(1/ord) over ``dim``; 0 counts what is not 0, ±∞ take the extreme of |x|. The gradient is 0 at norm 0."""
    tensor_argument(x, name)
    if dtype is not None:
        x = cast(x, dtypes.as_dtype(dtype))
    if x.dtype.category < 2:
        raise RuntimeError(f"{name}: Expected a floating point or complex tensor as input. Got {scalar_type(x.dtype)}")
    if isinstance(ord, np.number):
        ord = ord.item()
    ord = number_argument(ord, name, "ord")
    if isinstance(ord, complex):
        raise RuntimeError(f"{name}: Expected a non-complex scalar as the order of norm (ord={ord})")
    if not isinstance(ord, (int, float)):
        raise TypeError(f"{name}(): argument 'ord' must be a number, not {type(ord).__name__}")
    if isinstance(ord, int) and not -(1 << 63) <= ord < 1 << 64:
        raise OverflowError(f"{name}(): argument 'ord' is an int too big to convert (ord={ord})")
    ord = int(ord) if isinstance(ord, bool) else ord
    dims = all_dims(dim, x.ndim)
    if math.isinf(ord) or ord < 0:
        for d in dims:
            if x.ndim and x.shape[d] == 0:
                raise RuntimeError(
                    f"{name} cannot compute the {ord} norm on an empty dimension {d} because the operation does not have an "
                    "identity"
                )
    if not abs(ord) <= HIGH and all(x.shape[d] == 1 for d in dims if x.ndim):  # of one element it is |x|, whose powers may be too large
        ord = math.inf
    return _norm(x, dims, bool(keepdim), float(ord))


@public(method=False, namespaces=("linalg",), name="linalg.vector_norm")
def linalg_vector_norm(x, ord: float = 2, dim=None, keepdim=False, *, dtype=None, out=None):
    """Return (Σ |x|^ord)^(1/ord) over ``dim``; 0 counts what is not 0, ±∞ take the extreme of |x|; 0 is the subgradient at 0.

    Derivative: dx = g·sgn(x)·|x|^(ord−1)/y^(ord−1); of ±∞ g shared by the extremes.

    Errors: RuntimeError for integers, and for ±∞ and negative orders over nothing.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.linalg.vector_norm.html

    >>> torch.linalg.vector_norm(torch.tensor([3.0, 4.0]), 1)
    tensor(7.)
    """
    y = vector_norm(x, ord, dim, keepdim, dtype)
    return y if out is None else store(out, y, "linalg.vector_norm")


@public()
def norm(input, p: float | str | None = "fro", dim=None, keepdim=False, out=None, dtype=None):
    """Return (Σ |x|ᵖ)^(1/p) over ``dim`` (default all); "fro" is p = 2. "nuc" is the sum of the singular values of a matrix; norm([3., 4.]) = tensor(5.)."""
    x = tensor_argument(input, "norm")
    p = p if p is None or isinstance(p, str) else number_argument(p, "norm", "p")
    if p == "nuc":
        if x.ndim < 2:
            raise RuntimeError(f"linalg.matrix_norm: The input tensor A must have at least 2 dimensions for p='nuc', and it has {x.ndim}")
        dims = tuple(range(x.ndim)) if dim is None else wrap_dims(dim, x.ndim)
        return OPS["linalg.matrix_norm"].call(x, p, dims, keepdim, dtype=dtype, out=out)
    order = 2 if p is None or p == "fro" else p
    if isinstance(order, str):
        raise RuntimeError(f"norm(): p must be a number, 'fro' or 'nuc', got p={p!r}")
    y = vector_norm(x, order, dim, keepdim, dtype, "norm")
    return y if out is None else store(out, y, "norm")


def _dist_rule(g: Tensor, a: Tensor, b: Tensor, out: Tensor, p: Any, needs: set[Any]) -> dict[Any, Any]:
    apart = a - b
    found = _rule(g, apart, out, float(p), tuple(range(apart.ndim)))
    ga = apart * 0.0 if found is None else found
    return {n: _of_kind(t.sum_to_size(s.shape), s) for n, t, s in (("a", ga, a), ("b", -ga, b)) if n in needs}


def _of_kind(g: Tensor, x: Tensor) -> Tensor:
    """Return a gradient in the dtype of its operand."""
    return cast(g.real if g.dtype.is_complex and not x.dtype.is_complex else g, x.dtype)


@structured(_dist_rule, linear="no", batch="samples", dtypes="half float complex", samples="torch.dist(x(3, 4), x(3, 4))")
def _dist(a, b, p):
    return vector_norm(a - b, p, name="dist")


@public()
def dist(input, other, p=2):
    """Return the p-norm of input − other; dist([1., 2.], [4., 6.]) = tensor(5.).

    Derivative: dinput = g·sgn(d)·|d|ᵖ⁻¹/yᵖ⁻¹ for d = input − other, dother = −dinput; 0 where y is 0.
    """
    return _dist(tensor_argument(input, "dist"), tensor_argument(other, "dist", "other"), p)


@public(method=False)
def norm_except_dim(v, pow: int = 2, dim=0):
    """Return the norm over all dims but ``dim``, which are kept with size 1; with ``dim=-1`` over all; the gradient is that of `linalg.vector_norm`."""
    x = tensor_argument(v, "norm_except_dim", "v")
    if dim == -1:
        return vector_norm(x, pow)
    d = wrap_dim(dim, x.ndim)
    if x.ndim == 1:  # of each number
        return vector_norm(x.unsqueeze(1), pow, 1)
    return vector_norm(x, pow, tuple(k for k in range(x.ndim) if k != d), True)


def _renorm_rule(g: Tensor, x: Tensor, p: float, dims: tuple[int, ...], most: float) -> Tensor:
    sizes = vector_norm(x, p, dims, True)
    along = (m.conj(x) * g).real if x.dtype.is_complex else x * g
    turned = _rule(along.sum(dims, True), x, sizes, p, dims)
    inverse = 1 / (sizes + 1e-7)
    return OPS["where"].call(sizes > most, most * inverse * (g if turned is None else g - inverse * turned), g)


@structured(
    x=_renorm_rule, holomorphic=False, linear="no", batch="shift", dtypes="half float complex", samples="torch.renorm(x(3, 4), 2, 0, 0.5)",
)
def _renorm(x, p, dims, most):
    x = contiguous(x)  # as the result is
    sizes = vector_norm(x, p, dims, True)
    return x * OPS["where"].call(sizes > most, most / (sizes + 1e-7), 1.0)


@public()
def renorm(input, p, dim, maxnorm, *, out=None):
    """Return the slices along ``dim`` whose p-norm exceeds ``maxnorm`` scaled down to it.

    Derivative: that of x·min(1, maxnorm/‖x‖ₚ) in each slice.
    Errors: RuntimeError for fewer than 2 dims, p ≤ 0 or a negative maxnorm.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.renorm.html

    >>> torch.renorm(torch.tensor([[3.0, 4.0], [0.3, 0.4]]), 2, 0, 1.0)
    tensor([[0.6000, 0.8000],
            [0.3000, 0.4000]])
    """
    x = tensor_argument(input, "renorm")
    if isinstance(p, complex):
        raise RuntimeError("renorm: p must be real-valued")
    p = number_argument(p, "renorm", "p")
    real_argument(p, "renorm", "p")
    if not p > 0:
        raise RuntimeError(f"renorm: non-positive-norm not supported (p={p})")
    if isinstance(maxnorm, complex):
        raise RuntimeError("renorm: maxnorm must be real-valued")
    real_argument(maxnorm, "renorm", "maxnorm")
    if not maxnorm >= 0:
        raise RuntimeError(f"renorm: expected maxnorm to be >= 0 but got {maxnorm}")
    if x.ndim < 2:
        raise RuntimeError(f"renorm: input needs at least 2 dimensions, got {x.ndim} dimensions")
    d = wrap_dim(dim, x.ndim)
    if x.dtype.category < 2:
        raise RuntimeError(f"renorm: Expected a floating point or complex tensor as input. Got {scalar_type(x.dtype)}")
    y = _renorm(x, float(p), tuple(k for k in range(x.ndim) if k != d), float(maxnorm))
    return y if out is None else store(out, y, "renorm", (), (input,))
