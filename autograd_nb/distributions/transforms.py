"""Invertible maps of numbers, vectors and matrices with the logarithm of their volume, and the maps onto constraints.

Source: https://docs.pytorch.org/docs/stable/distributions.html#module-torch.distributions.transforms
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from .. import dtypes
from ..tensor import Tensor
from . import constraints
from .common import F, T, sum_rightmost
from .multivariate import _cholesky
from .transform import (
    ComposeTransform,
    IndependentTransform,
    ReshapeTransform,
    Transform,
    _InverseTransform,
    identity_transform,
)

_InverseTransform = _InverseTransform  # packages ask whether a map is one


class _Map(Transform):
    """A map of one number given by its formulas."""

    bijective = True
    _sign: Any = 1

    @property
    def sign(self) -> Any:
        return self._sign

    def __eq__(self, other: Any) -> bool:
        return type(self) is type(other)

    __hash__: Callable[..., Any] = object.__hash__


class ExpTransform(_Map):
    """y = e^x; ExpTransform()([0., 1.]) = [1.0000, 2.7183]."""

    codomain = constraints.positive

    def _call(self, x: Tensor) -> Tensor:
        return x.exp()

    def _inverse(self, y: Tensor) -> Tensor:
        return y.log()

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return x


class PowerTransform(_Map):
    """y = x^exponent, x > 0; PowerTransform(2.)([2., 3.]) = [4., 9.]."""

    exponent: Any

    domain = constraints.positive
    codomain = constraints.positive

    def __init__(self, exponent: Any, cache_size: int = 0):
        super().__init__(cache_size)
        self.exponent = exponent if isinstance(exponent, Tensor) else T.tensor(float(exponent))

    @property
    def sign(self) -> Any:
        return self.exponent.sign()

    def __eq__(self, other: Any) -> bool:
        return isinstance(other, PowerTransform) and bool(self.exponent.eq(other.exponent).all().item())

    __hash__: Callable[..., int] = object.__hash__

    def _call(self, x: Tensor) -> Tensor:
        return x.pow(self.exponent)

    def _inverse(self, y: Tensor) -> Tensor:
        return y.pow(1 / self.exponent)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return (self.exponent * y / x).abs().log()


class SigmoidTransform(_Map):
    """y = 1/(1 + e^−x); SigmoidTransform()([0., 2.]) = [0.5000, 0.8808]."""

    codomain = constraints.unit_interval

    def _call(self, x: Tensor) -> Tensor:
        info = dtypes.finfo(x.dtype)
        return T.sigmoid(x).clamp(min=info.tiny, max=1.0 - info.eps)

    def _inverse(self, y: Tensor) -> Tensor:
        info = dtypes.finfo(y.dtype)
        y = y.clamp(min=info.tiny, max=1.0 - info.eps)
        return y.log() - (-y).log1p()

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return -F.softplus(-x) - F.softplus(x)


class SoftplusTransform(_Map):
    """y = ln(1 + e^x); SoftplusTransform()([0., 1.]) = [0.6931, 1.3133]."""

    codomain = constraints.positive

    def _call(self, x: Tensor) -> Tensor:
        return F.softplus(x)

    def _inverse(self, y: Tensor) -> Tensor:
        return (-y).expm1().neg().log() + y

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return -F.softplus(-x)


class TanhTransform(_Map):
    """y = tanh x; TanhTransform()([0., 1.]) = [0.0000, 0.7616]."""

    codomain: Any = constraints.interval(-1.0, 1.0)

    def _call(self, x: Tensor) -> Tensor:
        return x.tanh()

    def _inverse(self, y: Tensor) -> Tensor:
        return T.atanh(y)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return 2.0 * (math.log(2.0) - x - F.softplus(-2.0 * x))


class AbsTransform(Transform):
    """y = |x|; not invertible; AbsTransform()([-1., 2.]) = [1., 2.]."""

    codomain = constraints.positive

    def __eq__(self, other: Any) -> bool:
        return isinstance(other, AbsTransform)

    __hash__: Callable[..., int] = object.__hash__

    def _call(self, x: Tensor) -> Tensor:
        return x.abs()

    def _inverse(self, y: Tensor) -> Tensor:
        return y


class AffineTransform(Transform):
    """y = loc + scale·x; AffineTransform(1., 2.)([0., 1.]) = [1., 3.]."""

    loc: Any
    scale: Any
    domain: Any
    codomain: Any

    bijective = True

    def __init__(self, loc: Any, scale: Any, event_dim: int = 0, cache_size: int = 0):
        super().__init__(cache_size)
        self.loc, self.scale, self._event_dim = loc, scale, event_dim
        self.domain = self.codomain = constraints.independent(constraints.real, event_dim) if event_dim else constraints.real

    @property
    def event_dim(self) -> int:
        """Return how many last dims make one value."""
        return self._event_dim

    @property
    def sign(self) -> Any:
        return self.scale.sign() if isinstance(self.scale, Tensor) else (1 if self.scale > 0 else -1 if self.scale < 0 else 0)

    def __eq__(self, other: Any) -> bool:
        def equal(a: Any, b: Any) -> bool:
            return bool((a == b).all().item()) if isinstance(a, Tensor) or isinstance(b, Tensor) else a == b

        return isinstance(other, AffineTransform) and equal(self.loc, other.loc) and equal(self.scale, other.scale)

    __hash__: Callable[..., int] = object.__hash__

    def _call(self, x: Tensor) -> Tensor:
        return self.loc + self.scale * x

    def _inverse(self, y: Tensor) -> Tensor:
        return (y - self.loc) / self.scale

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        scale = self.scale
        result = T.full_like(x, math.log(abs(scale))) if not isinstance(scale, Tensor) else T.abs(scale).log()
        shape = x.shape
        if self.event_dim:
            result = result.expand(shape).reshape(*shape[: -self.event_dim], -1).sum(-1)
            shape = shape[: -self.event_dim]
        return result.expand(shape)


class SoftmaxTransform(Transform):
    """y = softmax x; not invertible as a map of the whole space; SoftmaxTransform()([0., 1.]) = [0.2689, 0.7311]."""

    domain = constraints.real_vector
    codomain = constraints.simplex

    def __eq__(self, other: Any) -> bool:
        return isinstance(other, SoftmaxTransform)

    __hash__: Callable[..., int] = object.__hash__

    def _call(self, x: Tensor) -> Tensor:
        p = (x - x.max(-1, True)[0]).exp()
        return p / p.sum(-1, True)

    def _inverse(self, y: Tensor) -> Tensor:
        return y.log()


class StickBreakingTransform(Transform):
    """A map from K − 1 numbers to K that are positive and sum to 1; StickBreakingTransform()([0., 0.]) = [0.3333, 0.3333, 0.3333]."""

    domain = constraints.real_vector
    codomain = constraints.simplex
    bijective = True

    def __eq__(self, other: Any) -> bool:
        return isinstance(other, StickBreakingTransform)

    __hash__: Callable[..., int] = object.__hash__

    def _offset(self, n: int, x: Tensor) -> Tensor:
        return (n + 1 - T.arange(1, n + 1, dtype=x.dtype)).log()

    def _call(self, x: Tensor) -> Tensor:
        z = SigmoidTransform()(x - self._offset(x.shape[-1], x))
        rest = (1 - z).cumprod(-1)
        one = T.ones((*x.shape[:-1], 1), dtype=x.dtype)
        return T.cat([z, one], -1) * T.cat([one, rest], -1)

    def _inverse(self, y: Tensor) -> Tensor:
        cropped = y[..., :-1]
        left = (1 - cropped.cumsum(-1)).clamp(min=dtypes.finfo(y.dtype).tiny)
        return cropped.log() - left.log() + self._offset(cropped.shape[-1], y)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        shifted = x - self._offset(x.shape[-1], x)
        return (-shifted + F.logsigmoid(shifted) + y[..., :-1].log()).sum(-1)

    def forward_shape(self, shape: Any) -> Any:
        return (*shape[:-1], shape[-1] + 1)

    def inverse_shape(self, shape: Any) -> Any:
        return (*shape[:-1], shape[-1] - 1)


class LowerCholeskyTransform(Transform):
    """A map from any matrix to a lower triangular one with a positive diagonal; LowerCholeskyTransform()([[0., 5.], [1., 0.]]) = [[1., 0.], [1., 1.]]."""

    domain: Any = constraints.independent(constraints.real, 2)
    codomain = constraints.lower_cholesky

    def __eq__(self, other: Any) -> bool:
        return isinstance(other, LowerCholeskyTransform)

    __hash__: Callable[..., int] = object.__hash__

    def _call(self, x: Tensor) -> Tensor:
        return x.tril(-1) + T.diag_embed(x.diagonal(0, -2, -1).exp())

    def _inverse(self, y: Tensor) -> Tensor:
        return y.tril(-1) + T.diag_embed(y.diagonal(0, -2, -1).log())


class PositiveDefiniteTransform(Transform):
    """A map from any matrix to a positive definite one; PositiveDefiniteTransform()([[0., 5.], [1., 0.]]) = [[1., 1.], [1., 2.]]."""

    domain: Any = constraints.independent(constraints.real, 2)
    codomain = constraints.positive_definite

    def __eq__(self, other: Any) -> bool:
        return isinstance(other, PositiveDefiniteTransform)

    __hash__: Callable[..., int] = object.__hash__

    def _call(self, x: Tensor) -> Tensor:
        lower = LowerCholeskyTransform()(x)
        return lower @ lower.mT

    def _inverse(self, y: Tensor) -> Tensor:
        return LowerCholeskyTransform().inv(_cholesky(y))


class CorrCholeskyTransform(Transform):
    """A map from D(D − 1)/2 numbers to the Cholesky factor of a D × D correlation matrix; CorrCholeskyTransform()([0.]) = [[1., 0.], [0., 1.]]."""

    domain = constraints.real_vector
    codomain = constraints.corr_cholesky
    bijective = True

    def _size(self, n: int) -> int:
        d = round((0.25 + 2 * n) ** 0.5 + 0.5)
        if d * (d - 1) // 2 != n:
            raise ValueError("Input is not a flattened lower-diagonal number")
        return d

    def _call(self, x: Tensor) -> Tensor:
        eps = dtypes.finfo(x.dtype).eps
        r = T.tanh(x).clamp(min=-1 + eps, max=1 - eps)
        d = self._size(x.shape[-1])
        rows, columns = T.tril_indices(d, d, -1)
        full = T.zeros((*x.shape[:-1], d, d), dtype=x.dtype).index_put(_at(x, rows, columns), r)
        z1 = (1 - full**2).sqrt().cumprod(-1)
        shifted = T.cat([T.ones((*x.shape[:-1], d, 1), dtype=x.dtype), z1[..., :-1]], -1)
        return (full + T.eye(d, dtype=x.dtype)) * shifted

    def _inverse(self, y: Tensor) -> Tensor:
        d = y.shape[-1]
        left = 1 - T.cumsum(y * y, -1)
        shifted = T.cat([T.ones((*y.shape[:-1], 1), dtype=y.dtype), left[..., :-1]], -1)
        rows, columns = T.tril_indices(d, d, -1)
        flat = y.tril(-1)[..., rows, columns]
        return T.atanh(flat / shifted[..., rows, columns].sqrt())

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        left = 1 - (y * y).cumsum(-1)
        d = y.shape[-1]
        rows, columns = T.tril_indices(d, d, -2)
        parts = left[..., rows, columns]
        return 0.5 * parts.log().sum(-1) - 2.0 * (x + F.softplus(-2.0 * x) - math.log(2.0)).sum(-1)

    def forward_shape(self, shape: Any) -> Any:
        d = self._size(shape[-1])
        return (*shape[:-1], d, d)

    def inverse_shape(self, shape: Any) -> Any:
        d = shape[-1]
        return (*shape[:-2], d * (d - 1) // 2)


def _at(x: Tensor, rows: Tensor, columns: Tensor) -> tuple[Any, ...]:
    """Return indices of the places (…, row, column) for every batch element of x."""
    batch = x.shape[:-1]
    grids = []
    for k, n in enumerate(batch):
        grids.append(T.arange(n).reshape(*(n if j == k else 1 for j in range(len(batch))), 1))
    return (*grids, rows, columns)


class CatTransform(Transform):
    """Maps for parts along a dim; CatTransform((torch.distributions.ExpTransform(), torch.distributions.AbsTransform()))([0., -1.]) = [1., 1.]."""

    transforms: list[Transform]
    dim: int
    lengths: list[int]

    def __init__(self, tseq: Sequence[Transform], dim: int = 0, lengths: Sequence[int] | None = None, cache_size: int = 0):
        super().__init__(cache_size)
        self.transforms, self.dim = list(tseq), dim
        self.lengths = list(lengths) if lengths is not None else [1] * len(self.transforms)

    @property
    def bijective(self) -> bool:  # type: ignore[override]
        return all(t.bijective for t in self.transforms)

    @property
    def domain(self) -> Any:  # type: ignore[override]
        return constraints.cat([t.domain for t in self.transforms], self.dim, self.lengths)

    @property
    def codomain(self) -> Any:  # type: ignore[override]
        return constraints.cat([t.codomain for t in self.transforms], self.dim, self.lengths)

    def _call(self, x: Tensor) -> Tensor:
        return T.cat([t(p) for t, p in zip(self.transforms, x.split(self.lengths, self.dim), strict=True)], self.dim)

    def _inverse(self, y: Tensor) -> Tensor:
        return T.cat([t.inv(p) for t, p in zip(self.transforms, y.split(self.lengths, self.dim), strict=True)], self.dim)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        event = self.domain.event_dim
        triples = zip(self.transforms, x.split(self.lengths, self.dim), y.split(self.lengths, self.dim), strict=True)
        parts = [sum_rightmost(t.log_abs_det_jacobian(a, b), event - t.domain.event_dim) for t, a, b in triples]
        dim = (self.dim - x.ndim if self.dim >= 0 else self.dim) + event
        return T.cat(parts, dim) if dim < 0 else sum(parts[1:], parts[0])  # along a dim of one value they are factors of its determinant


class StackTransform(Transform):
    """Maps for slices along a dim; StackTransform((torch.distributions.ExpTransform(), torch.distributions.AbsTransform()))([0., -1.]) = [1., 1.]."""

    transforms: list[Transform]
    dim: int

    def __init__(self, tseq: Sequence[Transform], dim: int = 0, cache_size: int = 0):
        super().__init__(cache_size)
        self.transforms, self.dim = list(tseq), dim

    @property
    def bijective(self) -> bool:  # type: ignore[override]
        return all(t.bijective for t in self.transforms)

    @property
    def domain(self) -> Any:  # type: ignore[override]
        return constraints.stack([t.domain for t in self.transforms], self.dim)

    @property
    def codomain(self) -> Any:  # type: ignore[override]
        return constraints.stack([t.codomain for t in self.transforms], self.dim)

    def _call(self, x: Tensor) -> Tensor:
        return T.stack([t(p) for t, p in zip(self.transforms, x.unbind(self.dim), strict=True)], self.dim)

    def _inverse(self, y: Tensor) -> Tensor:
        return T.stack([t.inv(p) for t, p in zip(self.transforms, y.unbind(self.dim), strict=True)], self.dim)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        pairs = zip(self.transforms, x.unbind(self.dim), y.unbind(self.dim), strict=True)
        return T.stack([t.log_abs_det_jacobian(a, b) for t, a, b in pairs], self.dim)


class CumulativeDistributionTransform(Transform):
    """y = F(x), F the cumulative distribution function; CumulativeDistributionTransform(torch.distributions.Uniform(0., 4.))([1.]) = [0.2500]."""

    bijective = True
    codomain = constraints.unit_interval

    def __init__(self, distribution: Any, cache_size: int = 0):
        super().__init__(cache_size)
        self.distribution = distribution

    @property
    def domain(self) -> Any:  # type: ignore[override]
        return self.distribution.support

    @property
    def sign(self) -> Any:
        return 1

    def _call(self, x: Tensor) -> Tensor:
        return self.distribution.cdf(x)  # type: ignore[no-any-return]

    def _inverse(self, y: Tensor) -> Tensor:
        return self.distribution.icdf(y)  # type: ignore[no-any-return]

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return self.distribution.log_prob(x)  # type: ignore[no-any-return]


__all__ = [
    "AbsTransform", "AffineTransform", "CatTransform", "ComposeTransform", "CorrCholeskyTransform", "CumulativeDistributionTransform",
    "ExpTransform", "IndependentTransform", "LowerCholeskyTransform", "PositiveDefiniteTransform", "PowerTransform", "ReshapeTransform",
    "SigmoidTransform", "SoftmaxTransform", "SoftplusTransform", "StackTransform", "StickBreakingTransform", "TanhTransform", "Transform",
    "identity_transform",
]  # fmt: skip
