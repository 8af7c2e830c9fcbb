"""An invertible map, and maps made of others: inverse, composed, over several dims, reshaping.

Source: https://docs.pytorch.org/docs/stable/distributions.html#module-torch.distributions.transforms
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from ..tensor import Tensor
from . import constraints
from .common import T, sum_rightmost


class Transform:
    """y = t(x), with ``t.inv`` and ``t.log_abs_det_jacobian(x, y)`` = ln |dy/dx|. ``cache_size=1`` keeps the last pair."""

    bijective = False
    domain: Any = constraints.real
    codomain: Any = constraints.real

    def __init__(self, cache_size: int = 0):
        if cache_size not in (0, 1):
            raise ValueError("cache_size must be 0 or 1")
        self._cache_size = cache_size
        self._cached_x_y: tuple[Any, Any] = (None, None)
        self._inv: _InverseTransform | None = None
        super().__init__()  # of another base class: programs make modules of transforms

    @property
    def inv(self) -> Transform:
        """Return the inverse map."""
        if self._inv is None:
            self._inv = _InverseTransform(self)
        return self._inv

    @property
    def event_dim(self) -> int:
        """Return how many dims one value has, before and after. ValueError where that differs: ask ``domain`` and ``codomain``."""
        if self.domain.event_dim != self.codomain.event_dim:
            raise ValueError("Please use either .domain.event_dim or .codomain.event_dim")
        return int(self.domain.event_dim)

    @property
    def sign(self) -> Any:
        """Return +1 for increasing maps of one number, −1 for decreasing ones."""
        raise NotImplementedError

    def with_cache(self, cache_size: int = 1) -> Transform:
        """Return the same map with a cache."""
        if self._cache_size == cache_size:
            return self
        new = object.__new__(type(self))
        new.__dict__.update(vars(self))
        new._cache_size, new._cached_x_y, new._inv = cache_size, (None, None), None
        return new

    def __eq__(self, other: Any) -> bool:
        return self is other

    __hash__: Callable[..., int] = object.__hash__

    def __call__(self, x: Tensor) -> Tensor:
        if self._cache_size and x is self._cached_x_y[0]:
            return self._cached_x_y[1]  # type: ignore[no-any-return]
        y = self._call(x)
        if self._cache_size:
            self._cached_x_y = (x, y)
        return y

    def _inv_call(self, y: Tensor) -> Tensor:
        if self._cache_size and y is self._cached_x_y[1]:
            return self._cached_x_y[0]  # type: ignore[no-any-return]
        x = self._inverse(y)
        if self._cache_size:
            self._cached_x_y = (x, y)
        return x

    def _call(self, x: Tensor) -> Tensor:
        raise NotImplementedError

    def _inverse(self, y: Tensor) -> Tensor:
        raise NotImplementedError

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        """Return the logarithm ln |dy/dx|."""
        raise NotImplementedError

    def forward_shape(self, shape: Any) -> Any:
        """Return the shape of y for a shape of x."""
        return shape

    def inverse_shape(self, shape: Any) -> Any:
        """Return the shape of x for a shape of y."""
        return shape

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class _InverseTransform(Transform):
    """The inverse of a map."""

    def __init__(self, transform: Transform):
        super().__init__(transform._cache_size)
        self._inv = transform  # type: ignore[assignment]

    @property
    def _of(self) -> Transform:
        return self._inv  # type: ignore[return-value]

    @property
    def domain(self) -> Any:  # type: ignore[override]
        return self._of.codomain

    @property
    def codomain(self) -> Any:  # type: ignore[override]
        return self._of.domain

    @property
    def bijective(self) -> bool:  # type: ignore[override]
        return self._of.bijective

    @property
    def sign(self) -> Any:
        return self._of.sign

    @property
    def inv(self) -> Transform:
        return self._of

    def with_cache(self, cache_size: int = 1) -> Transform:
        return self._of.with_cache(cache_size).inv

    def __call__(self, x: Tensor) -> Tensor:
        return self._of._inv_call(x)

    def _inv_call(self, y: Tensor) -> Tensor:
        return self._of(y)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return -self._of.log_abs_det_jacobian(y, x)

    def forward_shape(self, shape: Any) -> Any:
        return self._of.inverse_shape(shape)

    def inverse_shape(self, shape: Any) -> Any:
        return self._of.forward_shape(shape)

    def __eq__(self, other: Any) -> bool:
        return isinstance(other, _InverseTransform) and self._of == other._of

    __hash__ = object.__hash__

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._of!r})"


class ComposeTransform(Transform):
    """Several maps, the first one first; ComposeTransform((torch.distributions.ExpTransform(), torch.distributions.AffineTransform(1., 2.)))([0.]) = [3.]."""

    parts: list[Transform]

    def __init__(self, parts: Sequence[Transform], cache_size: int = 0):
        self.parts = [p.with_cache(cache_size) for p in parts] if cache_size else list(parts)
        super().__init__(cache_size)

    @property
    def domain(self) -> Any:  # type: ignore[override]
        if not self.parts:
            return constraints.real
        dims = self.parts[-1].codomain.event_dim
        for p in reversed(self.parts):
            dims = max(dims + p.domain.event_dim - p.codomain.event_dim, p.domain.event_dim)
        domain = self.parts[0].domain
        return constraints.independent(domain, dims - domain.event_dim) if dims > domain.event_dim else domain

    @property
    def codomain(self) -> Any:  # type: ignore[override]
        if not self.parts:
            return constraints.real
        dims = self.parts[0].domain.event_dim
        for p in self.parts:
            dims = max(dims + p.codomain.event_dim - p.domain.event_dim, p.codomain.event_dim)
        codomain = self.parts[-1].codomain
        return constraints.independent(codomain, dims - codomain.event_dim) if dims > codomain.event_dim else codomain

    @property
    def bijective(self) -> bool:  # type: ignore[override]
        return all(p.bijective for p in self.parts)

    @property
    def sign(self) -> Any:
        sign: Any = 1
        for p in self.parts:
            sign = sign * p.sign
        return sign

    @property
    def inv(self) -> Transform:
        if self._inv is None:
            inverse = ComposeTransform([p.inv for p in reversed(self.parts)])
            self._inv, inverse._inv = inverse, self  # type: ignore[assignment]
        return self._inv  # type: ignore[return-value]

    def __eq__(self, other: Any) -> bool:
        return isinstance(other, ComposeTransform) and self.parts == other.parts

    __hash__: Callable[..., int] = object.__hash__

    def __call__(self, x: Tensor) -> Tensor:
        for p in self.parts:
            x = p(x)
        return x

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        if not self.parts:
            return T.zeros_like(x)
        xs = [x]
        for p in self.parts[:-1]:
            xs.append(p(xs[-1]))
        xs.append(y)
        dims = self.domain.event_dim
        total: Any = 0
        for p, a, b in zip(self.parts, xs[:-1], xs[1:], strict=True):
            total = total + sum_rightmost(p.log_abs_det_jacobian(a, b), dims - p.domain.event_dim)
            dims += p.codomain.event_dim - p.domain.event_dim
        return total  # type: ignore[no-any-return]

    def forward_shape(self, shape: Any) -> Any:
        for p in self.parts:
            shape = p.forward_shape(shape)
        return shape

    def inverse_shape(self, shape: Any) -> Any:
        for p in reversed(self.parts):
            shape = p.inverse_shape(shape)
        return shape

    def __repr__(self) -> str:
        return f"ComposeTransform({self.parts})"


identity_transform: ComposeTransform = ComposeTransform([])


class IndependentTransform(Transform):
    """A map whose volume is summed over more dims.

    >>> torch.distributions.IndependentTransform(torch.distributions.ExpTransform(), 1).log_abs_det_jacobian(torch.tensor([1., 2.]), torch.tensor([1., 2.]))
    tensor(3.)
    """

    base_transform: Transform

    reinterpreted_batch_ndims: int

    def __init__(self, base_transform: Transform, reinterpreted_batch_ndims: int, cache_size: int = 0):
        super().__init__(cache_size)
        self.base_transform, self.reinterpreted_batch_ndims = base_transform, reinterpreted_batch_ndims

    @property
    def domain(self) -> Any:  # type: ignore[override]
        return constraints.independent(self.base_transform.domain, self.reinterpreted_batch_ndims)

    @property
    def codomain(self) -> Any:  # type: ignore[override]
        return constraints.independent(self.base_transform.codomain, self.reinterpreted_batch_ndims)

    @property
    def bijective(self) -> bool:  # type: ignore[override]
        return self.base_transform.bijective

    @property
    def sign(self) -> Any:
        return self.base_transform.sign

    def _call(self, x: Tensor) -> Tensor:
        return self.base_transform(x)

    def _inverse(self, y: Tensor) -> Tensor:
        return self.base_transform.inv(y)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return sum_rightmost(self.base_transform.log_abs_det_jacobian(x, y), self.reinterpreted_batch_ndims)  # type: ignore[no-any-return]


class ReshapeTransform(Transform):
    """The last dims in another shape; ReshapeTransform((2,), (1, 2))([1., 2.]) = [[1., 2.]]."""

    in_shape: tuple[Any, ...]
    out_shape: tuple[Any, ...]
    domain: Any
    codomain: Any

    bijective = True

    def __init__(self, in_shape: Any, out_shape: Any, cache_size: int = 0):
        super().__init__(cache_size)
        self.in_shape, self.out_shape = tuple(in_shape), tuple(out_shape)
        if math.prod(self.in_shape) != math.prod(self.out_shape):
            raise ValueError("in_shape, out_shape have different numbers of elements")
        self.domain = constraints.independent(constraints.real, len(self.in_shape))
        self.codomain = constraints.independent(constraints.real, len(self.out_shape))

    def _call(self, x: Tensor) -> Tensor:
        return x.reshape(x.shape[: x.ndim - len(self.in_shape)] + self.out_shape)

    def _inverse(self, y: Tensor) -> Tensor:
        return y.reshape(y.shape[: y.ndim - len(self.out_shape)] + self.in_shape)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return T.zeros(x.shape[: x.ndim - len(self.in_shape)], dtype=x.dtype)

    def forward_shape(self, shape: Any) -> Any:
        return tuple(shape[: len(shape) - len(self.in_shape)]) + self.out_shape

    def inverse_shape(self, shape: Any) -> Any:
        return tuple(shape[: len(shape) - len(self.out_shape)]) + self.in_shape
