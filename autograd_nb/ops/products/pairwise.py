"""Distances between the rows of matrices: all against all.

Backward passes run kernels of their own; under ``create_graph`` the same gradient is composed of other ops, so derivatives of any
order are there.
"""

from __future__ import annotations

import math
from typing import Any

from ... import dtypes, launch
from ...graph.modes import state
from ...shapes import broadcast_shapes, layout_of
from ...tensor import Tensor, make
from ..core.numbers import float_argument, narrowed
from ..core.recording import fresh
from ..core.registry import OPS, public
from ..core.structured import structured, tensor_argument
from ..creation.cast import cast, dense

_BETWEEN = launch.Kernel("products.distance", "between")
_BETWEEN_BACKWARD = launch.Kernel("products.distance", "between_backward")
_NARROW = launch.Kernel("products.distance", "between_narrow")
_NARROW_BACKWARD = launch.Kernel("products.distance", "between_narrow_backward")
_WITHIN = launch.Kernel("products.distance", "within")
_WITHIN_NARROW = launch.Kernel("products.distance", "within_narrow")
_WITHIN_BACKWARD = launch.Kernel("products.distance", "within_backward")

_MODES = ("use_mm_for_euclid_dist_if_necessary", "use_mm_for_euclid_dist", "donot_use_mm_for_euclid_dist")
_MANY, _FEW = 25, 8  #: rows and columns beyond which a matrix product is the faster way to Euclidean distances
_SHORT = 64  #: numbers of rows up to which other distances are computed for several rows at a time
_ROWS = 64  #: rows that vectors are filled with where the other operand has more


def _mode(p: float) -> int:
    return {0.0: 0, 1.0: 1, 2.0: 2, math.inf: 3}.get(p, 4)


def _is_narrow(width: int, p: float, few: int) -> bool:
    """Return whether vectors are better filled with several rows than with one's numbers, and there are kernels that do so; ``few``: numbers of
    rows up to which they are where p = 2."""
    return width > 0 and (p == math.inf or (p == 2 and width <= few) or (p == 1 and width <= _SHORT))


def _between_mode(p: float) -> int:
    """Return the mode of `cdist`, whose greatest difference is one that is not nan, as in PyTorch."""
    return 5 if p == math.inf else _mode(p)


def _new(shape: Any, d: dtypes.dtype) -> Tensor:
    layout = layout_of(shape, None, d)
    return make(launch.empty(layout.size, d.carrier), layout, [0, 0])


def _slope(delta: Tensor, y: Tensor, p: float) -> Tensor:
    """Return d(‖delta‖ₚ)/d(delta) by other ops, ``y`` the norm with a last dim of 1; 0 where there is no derivative, nan of nan."""
    where = OPS["where"].call
    if p == 0:
        return delta.sign() * 0.0
    if p == 1:
        return where(delta == delta, delta.sign(), math.nan)
    if math.isinf(p):
        least = delta.abs() - y
        return where(least == 0, delta.sign(), where(least == least, 0.0, math.nan))
    nothing = y == 0
    safe = where(nothing, 1.0, y)  # not 0/0, whose nan would come back in the next derivative
    if p == 2:
        return where(nothing, 0.0, delta / safe)
    size = delta.abs()
    still = size == 0
    power = where(still, 0.0, where(still, 1.0, size).pow(p - 1))
    return where(nothing, 0.0, delta.sign() * power / safe.pow(p - 1))


def _between_rule(g: Tensor, a: Tensor, b: Tensor, out: Tensor, p: float, products: bool) -> Tensor:
    """Return the gradient of a."""
    if state.grad:
        delta = a.unsqueeze(-2) - b.unsqueeze(-3)
        return (g.unsqueeze(-1) * _slope(delta, out.unsqueeze(-1), p)).sum(-2)
    if products:
        weight = OPS["where"].call(out == 0, 0.0, g / out)
        return a * weight.sum(-1, True) - OPS["matmul"].call(weight, b)
    n, width = a._layout.shape[-2:]
    m = b._layout.shape[-2]
    da = _new(a._layout.shape, a.dtype)
    if da._layout.size:
        # a transposed gradient (that of the second operand) is read in the order of the first
        turned = not g._layout.contiguous and g.mT._layout.contiguous
        steps = (1, n) if turned else (m, 1)
        gd, yd = (dense(g.mT), dense(out.mT)) if turned else (dense(g), dense(out))
        batch = da._layout.size // (n * width)
        if p in (1, 2) and width <= _FEW:
            _NARROW_BACKWARD(a.dtype, batch, n, m, width, _mode(p), *steps, dense(a), dense(b), gd, yd, da._data)
        else:
            _BETWEEN_BACKWARD(a.dtype, batch, n, m, width, _between_mode(p), p, *steps, dense(a), dense(b), gd, yd, da._data)
    return da


@structured(
    a=lambda g, a, b, out, p, products: _between_rule(g, a, b, out, p, products),
    b=lambda g, a, b, out, p, products: _between_rule(g.mT, b, a, out.mT, p, products),
    node="CdistBackward0",
    linear="no", batch="samples",
    dtypes="float", samples="torch.cdist(x(3, 4), x(2, 4))",
)
def _between(a, b, p, products):
    (*lead, n, width), m = a._layout.shape, b._layout.shape[-2]
    if products:  # ‖a − b‖² = ‖a‖² + ‖b‖² − 2a·b, which rounding may take below 0
        square = (a * a).sum(-1, True) + (b * b).sum(-1, True).mT - 2 * OPS["matmul"].call(a, b.mT)
        return square.clamp(min=0.0).sqrt()
    y = _new((*lead, n, m), a.dtype)
    if y._layout.size and _is_narrow(width, p, _FEW):
        batch = y._layout.size // (n * m)
        if m < min(n, _ROWS):
            _NARROW(a.dtype, batch, m, n, width, _between_mode(p), 1, m, dense(b), dense(a), y._data)
        else:
            _NARROW(a.dtype, batch, n, m, width, _between_mode(p), m, 1, dense(a), dense(b), y._data)
    elif y._layout.size:
        _BETWEEN(a.dtype, y._layout.size // (n * m), n, m, width, _between_mode(p), p, dense(a), dense(b), y._data)
    return y


def _within_rule(g: Tensor, a: Tensor, out: Tensor, p: float) -> Tensor:
    n, width = a.shape
    if state.grad:
        first, second = OPS["triu_indices"].call(n, n, 1).unbind(0)
        delta = a.index_select(0, first) - a.index_select(0, second)
        pull = g.unsqueeze(-1) * _slope(delta, out.unsqueeze(-1), p)
        return OPS["zeros_like"].call(a).index_add(0, first, pull).index_add(0, second, -pull)
    da = _new(a.shape, a.dtype)
    if da._layout.size:
        _WITHIN_BACKWARD(a.dtype, n, width, _mode(p), p, dense(a), dense(g), dense(out), da._data)
    return da


@structured(
    a=_within_rule, node="PdistBackward0", linear="no", batch="samples",
    dtypes="half float", samples="F.pdist(x(4, 3))",
)
def _within(a, p):
    n, width = a.shape
    y = _new((n * (n - 1) // 2,), a.dtype)
    if y._layout.size:
        kernel = _WITHIN_NARROW if _is_narrow(width, p, _SHORT) else _WITHIN
        kernel(a.dtype, n, width, _mode(p), p, dense(a), y._data)
    return y


def _order(p: Any, name: str, d: dtypes.dtype) -> float:
    p = float_argument(p, name, "p")
    if not p >= 0:
        raise RuntimeError(f"{name} only supports non-negative p values (p={p})")
    return narrowed(p, d)


@public(method=False)
def cdist(x1, x2, p=2.0, compute_mode="use_mm_for_euclid_dist_if_necessary"):
    """Return the distances ‖x1[…, i, :] − x2[…, j, :]‖ₚ of all pairs of rows: (…, P, M), (…, R, M) → (…, P, R); batch dims broadcast.

    Euclidean distances of more than 25 rows of more than 8 numbers are found by a matrix product (``compute_mode`` forces either way). The gradient of
    a distance of 0 is 0.

    Derivative: dx1[i] = Σⱼ g[i, j]·sgn(d)·|d|ᵖ⁻¹/y[i, j]ᵖ⁻¹ for d = x1[i] − x2[j], dx2 the same with the other sign.

    Example:
        >>> torch.cdist(torch.tensor([[0., 0.]]), torch.tensor([[3., 4.], [0., 1.]]))
        tensor([[5., 1.]])

    Errors: RuntimeError for fewer than 2 dims, other dtypes than floating ones, different numbers of columns, negative p.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.cdist.html
    """
    a, b = tensor_argument(x1, "cdist", "x1"), tensor_argument(x2, "cdist", "x2")
    for label, t in (("X1", a), ("X2", b)):
        if t.ndim < 2:
            raise RuntimeError(f"cdist only supports at least 2D tensors, {label} got: {t.ndim}D")
        if not t.dtype.is_floating_point:
            raise RuntimeError(f"cdist only supports floating-point dtypes, {label} got: {t.dtype}")
    if a.shape[-1] != b.shape[-1]:
        raise RuntimeError(f"X1 and X2 must have the same number of columns. X1: {a.shape[-1]} X2: {b.shape[-1]}")
    order = _order(p, "cdist", a.dtype)
    if compute_mode is None:
        compute_mode = _MODES[0]
    if compute_mode not in _MODES:
        raise ValueError(f"{compute_mode} is not a valid value for compute_mode (one of {', '.join(_MODES)})")
    if not (a._layout.size and b._layout.size) and (a.dtype is not b.dtype or a.dtype.is_half):  # PyTorch does not look at the dtypes of nothing
        return cast(cdist(cast(a, dtypes.float32), cast(b, dtypes.float32), p, compute_mode), a.dtype)
    for t in (a, b):
        if t.dtype.is_half:
            raise NotImplementedError(f"\"cdist\" not implemented for '{'Half' if t.dtype is dtypes.float16 else 'BFloat16'}'")
    if a.dtype is not b.dtype:
        raise RuntimeError(f"expected scalar type {a.dtype.name} but found {b.dtype.name} (cdist(); cast one with .to())")
    (*first, n, width), (*second, m, _) = a._layout.shape, b._layout.shape
    if first != second:
        batch = broadcast_shapes(tuple(first), tuple(second))
        a, b = a.expand(*batch, n, width), b.expand(*batch, m, width)
    many = width > _FEW and (n > _MANY or m > _MANY)
    return fresh(_between(a, b, order, order == 2 and (compute_mode == _MODES[1] or (compute_mode == _MODES[0] and many))))


@public(namespaces=("torch", "nn.functional"), method=False)
def pdist(input, p=2.0):
    """Return the distances ‖x[i] − x[j]‖ₚ of all pairs i < j of the rows of a matrix, in order: N rows give N(N−1)/2 numbers.

    Derivative: dx[i] = Σⱼ g·sgn(d)·|d|ᵖ⁻¹/yᵖ⁻¹ for d = x[i] − x[j]; 0 where y is 0.
    Errors: RuntimeError for what is not a matrix of floating numbers, or negative p.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.pdist.html

    >>> torch.pdist(torch.tensor([[0.0, 0.0], [3.0, 4.0]]))
    tensor([5.])
    """
    x = tensor_argument(input, "pdist")
    if x.ndim != 2:
        raise RuntimeError(f"pdist only supports 2D tensors, got: {x.ndim}D")
    if not x.dtype.is_floating_point:
        raise RuntimeError(f"pdist only supports floating-point dtypes (input is {x.dtype})")
    wide = cast(x, dtypes.float32) if x.dtype.is_half else x
    return cast(_within(wide, _order(p, "pdist", x.dtype)), x.dtype)
