"""Where the parameters and values of distributions may lie: ``constraint.check(x)`` says it for each value.

Each kind of region is a class, by which maps onto regions are found (`distributions.constraint_registry`); regions without parameters have one
instance each. Source: https://docs.pytorch.org/docs/stable/distributions.html#module-torch.distributions.constraints
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..dtypes import bool_
from ..ops.core.registry import OPS
from ..tensor import Tensor
from .common import T

__all__ = [
    "Constraint", "boolean", "cat", "corr_cholesky", "dependent", "dependent_property", "greater_than", "greater_than_eq", "half_open_interval",
    "independent", "integer_interval", "interval", "is_dependent", "less_than", "lower_cholesky", "lower_triangular", "MixtureSameFamilyConstraint",
    "multinomial", "nonnegative", "nonnegative_integer", "one_hot", "positive", "positive_definite", "positive_integer", "positive_semidefinite", "real",
    "real_vector", "simplex", "square", "stack", "symmetric", "unit_interval",
]  # fmt: skip


class Constraint:
    """A region. ``is_discrete``: made of separate points; ``event_dim``: how many last dims make one value."""

    is_discrete: bool = False
    event_dim: int = 0

    def check(self, value: Tensor) -> Tensor:
        """Return a bool tensor: which values lie in the region."""
        raise NotImplementedError

    def __repr__(self) -> str:
        return type(self).__name__.strip("_") + "()"


class _Dependent(Constraint):
    """A region that depends on other parameters, and perhaps its kind too: what is not given is not known before there is a distribution."""

    def __init__(self, *, is_discrete: Any = NotImplemented, event_dim: Any = NotImplemented):
        self._is_discrete, self._event_dim = is_discrete, event_dim

    @property
    def is_discrete(self) -> bool:  # type: ignore[override]
        return _given(self._is_discrete, "is_discrete")

    @property
    def event_dim(self) -> int:  # type: ignore[override]
        return _given(self._event_dim, "event_dim")

    def __call__(self, *, is_discrete: Any = NotImplemented, event_dim: Any = NotImplemented) -> _Dependent:
        return _Dependent(
            is_discrete=self._is_discrete if is_discrete is NotImplemented else is_discrete,
            event_dim=self._event_dim if event_dim is NotImplemented else event_dim,
        )

    def check(self, value: Tensor) -> Tensor:
        raise ValueError("Cannot determine validity of dependent constraint")


def _given(value: Any, name: str) -> Any:
    if value is NotImplemented:
        raise NotImplementedError(f".{name} cannot be determined statically: ask the support of a distribution, not of its class")
    return value


class dependent_property(property, _Dependent):
    """A property that gives a constraint; usable bare or with ``is_discrete`` and ``event_dim``."""

    def __init__(self, fn: Callable[..., Any] | None = None, *, is_discrete: Any = NotImplemented, event_dim: Any = NotImplemented):
        super().__init__(fn)
        self._is_discrete, self._event_dim = is_discrete, event_dim

    def __call__(self, fn: Callable[..., Any]) -> dependent_property:  # type: ignore[override]
        return dependent_property(fn, is_discrete=self._is_discrete, event_dim=self._event_dim)

    def __repr__(self) -> str:
        return "DependentProperty()"


def is_dependent(constraint: Any) -> bool:
    """Return whether the region depends on other parameters."""
    return isinstance(constraint, _Dependent)


class _Real(Constraint):
    """All numbers but nan."""

    def check(self, value: Tensor) -> Tensor:
        return value == value


class _Boolean(Constraint):
    """0 and 1."""

    is_discrete: bool = True

    def check(self, value: Tensor) -> Tensor:
        return (value == 0) | (value == 1)


class _Bounded(Constraint):
    """A region between bounds, one of which may be absent; a subclass says which, and whether they belong to it."""

    def __init__(self, lower_bound: Any):
        self.lower_bound: Any = lower_bound

    def __repr__(self) -> str:
        bounds = ", ".join(f"{name}={value}" for name, value in vars(self).items())
        return f"{type(self).__name__.strip('_')}({bounds})"


class _GreaterThan(_Bounded):
    """x > bound."""

    def check(self, value: Tensor) -> Tensor:
        return self.lower_bound < value  # type: ignore[no-any-return]


class _GreaterThanEq(_Bounded):
    """x ≥ bound."""

    def check(self, value: Tensor) -> Tensor:
        return self.lower_bound <= value  # type: ignore[no-any-return]


class _IntegerGreaterThan(_Bounded):
    """Integers x ≥ bound."""

    is_discrete: bool = True

    def check(self, value: Tensor) -> Tensor:
        return (value % 1 == 0) & (value >= self.lower_bound)


class _LessThan(_Bounded):
    """x < bound."""

    def __init__(self, upper_bound: Any):
        self.upper_bound: Any = upper_bound

    def check(self, value: Tensor) -> Tensor:
        return value < self.upper_bound


class _IntegerLessThan(_LessThan):
    """Integers x ≤ bound."""

    is_discrete: bool = True

    def check(self, value: Tensor) -> Tensor:
        return (value % 1 == 0) & (value <= self.upper_bound)


class _Interval(_Bounded):
    """lower ≤ x ≤ upper."""

    def __init__(self, lower_bound: Any, upper_bound: Any):
        self.lower_bound: Any = lower_bound
        self.upper_bound: Any = upper_bound

    def check(self, value: Tensor) -> Tensor:
        return (self.lower_bound <= value) & (value <= self.upper_bound)


class _HalfOpenInterval(_Interval):
    """lower ≤ x < upper."""

    def check(self, value: Tensor) -> Tensor:
        return (self.lower_bound <= value) & (value < self.upper_bound)


class _IntegerInterval(_Interval):
    """Integers from lower to upper."""

    is_discrete: bool = True

    def check(self, value: Tensor) -> Tensor:
        return (value % 1 == 0) & (self.lower_bound <= value) & (value <= self.upper_bound)


class _Simplex(Constraint):
    """Vectors of numbers from 0 on whose sum is 1."""

    event_dim: int = 1

    def check(self, value: Tensor) -> Tensor:
        return (value >= 0).all(-1) & ((value.sum(-1) - 1).abs() < 1e-6)


class _OneHot(Constraint):
    """Vectors of one 1 and zeros."""

    is_discrete: bool = True
    event_dim: int = 1

    def check(self, value: Tensor) -> Tensor:
        return ((value == 0) | (value == 1)).all(-1) & (value.sum(-1) == 1)


class _Multinomial(Constraint):
    """Vectors of counts whose sum is at most a bound."""

    is_discrete: bool = True
    event_dim: int = 1

    def __init__(self, upper_bound: Any):
        self.upper_bound: Any = upper_bound

    def check(self, value: Tensor) -> Tensor:
        return (value >= 0).all(-1) & (value.sum(-1) <= self.upper_bound)


class _Square(Constraint):
    """Square matrices."""

    event_dim: int = 2

    def check(self, value: Tensor) -> Tensor:
        return T.full(value.shape[:-2], value.shape[-1] == value.shape[-2], dtype=bool_)  # type: ignore[no-any-return]


class _Symmetric(_Square):
    """Symmetric matrices."""

    def check(self, value: Tensor) -> Tensor:
        square = super().check(value)
        return square & T.isclose(value, value.mT, atol=1e-6).flatten(-2).all(-1) if value.shape[-1] == value.shape[-2] else square


class _PositiveDefinite(_Symmetric):
    """Symmetric matrices that have a Cholesky factor."""

    def check(self, value: Tensor) -> Tensor:
        symmetric = super().check(value)
        return symmetric & (OPS["linalg.cholesky_ex"].call(value)[1] == 0) if bool(symmetric.all()) else symmetric


class _PositiveSemidefinite(_Symmetric):
    """Symmetric matrices without negative eigenvalues."""

    def check(self, value: Tensor) -> Tensor:
        symmetric = super().check(value)
        shifted = value + 1e-6 * T.eye(value.shape[-1], dtype=value.dtype)
        return symmetric & (OPS["linalg.cholesky_ex"].call(shifted)[1] == 0) if bool(symmetric.all()) else symmetric


class _LowerTriangular(Constraint):
    """Matrices with zeros above the diagonal."""

    event_dim: int = 2

    def check(self, value: Tensor) -> Tensor:
        return (value == value.tril()).flatten(-2).all(-1)


class _LowerCholesky(_LowerTriangular):
    """Lower triangular matrices with a positive diagonal."""

    def check(self, value: Tensor) -> Tensor:
        return super().check(value) & (value.diagonal(0, -2, -1) > 0).all(-1)


class _CorrCholesky(_LowerCholesky):
    """Cholesky factors of matrices of correlations: their rows are of length 1."""

    def check(self, value: Tensor) -> Tensor:
        return super().check(value) & ((value.square().sum(-1) - 1).abs() < 1e-4).all(-1)


def _event(inside: Tensor, dims: int) -> Tensor:
    return inside.reshape(*inside.shape[: inside.ndim - dims], -1).all(-1) if dims else inside


class _IndependentConstraint(Constraint):
    """A region with more dims in one value: all of them lie in ``base_constraint``."""

    def __init__(self, base_constraint: Constraint, reinterpreted_batch_ndims: int):
        self.base_constraint: Constraint = base_constraint
        self.reinterpreted_batch_ndims: int = reinterpreted_batch_ndims
        self.is_discrete: bool = base_constraint.is_discrete
        self.event_dim: int = base_constraint.event_dim + reinterpreted_batch_ndims

    def check(self, value: Tensor) -> Tensor:
        inside = self.base_constraint.check(value)
        if inside.ndim < self.reinterpreted_batch_ndims:
            raise ValueError(f"Expected value.dim() >= {self.event_dim} but got {value.dim()}")
        return _event(inside, self.reinterpreted_batch_ndims)

    def __repr__(self) -> str:
        return f"IndependentConstraint({self.base_constraint!r}, {self.reinterpreted_batch_ndims})"


class MixtureSameFamilyConstraint(Constraint):
    """The region of a mixture, whose components all lie in ``base_constraint``."""

    def __init__(self, base_constraint: Constraint):
        self.base_constraint: Constraint = base_constraint
        self.is_discrete: bool = base_constraint.is_discrete
        self.event_dim: int = base_constraint.event_dim

    def check(self, value: Tensor) -> Tensor:
        return _event(self.base_constraint.check(value.unsqueeze(-1 - self.event_dim)), 1)

    def __repr__(self) -> str:
        return f"MixtureSameFamilyConstraint({self.base_constraint!r})"


class _Stack(Constraint):
    """A constraint for each slice along a dim."""

    def __init__(self, cseq: Sequence[Constraint], dim: int = 0):
        self.cseq: list[Constraint] = list(cseq)
        self.dim: int = dim
        self.is_discrete: bool = any(c.is_discrete for c in self.cseq)
        self.event_dim: int = max(c.event_dim for c in self.cseq)

    def check(self, value: Tensor) -> Tensor:
        return T.stack([c.check(v) for c, v in zip(self.cseq, value.unbind(self.dim), strict=True)], self.dim)  # type: ignore[no-any-return]


class _Cat(Constraint):
    """A constraint for each part along a dim."""

    def __init__(self, cseq: Sequence[Constraint], dim: int = 0, lengths: Sequence[int] | None = None):
        self.cseq: list[Constraint] = list(cseq)
        self.dim: int = dim
        self.lengths: list[int] = list(lengths) if lengths is not None else [1] * len(self.cseq)
        self.is_discrete: bool = any(c.is_discrete for c in self.cseq)
        self.event_dim: int = max(c.event_dim for c in self.cseq)

    def check(self, value: Tensor) -> Tensor:
        parts = value.split(self.lengths, self.dim)
        return T.cat([c.check(v) for c, v in zip(self.cseq, parts, strict=True)], self.dim)  # type: ignore[no-any-return]


interval, half_open_interval, integer_interval = _Interval, _HalfOpenInterval, _IntegerInterval
greater_than, greater_than_eq, less_than, multinomial = _GreaterThan, _GreaterThanEq, _LessThan, _Multinomial
independent, stack, cat = _IndependentConstraint, _Stack, _Cat

real: _Real = _Real()
boolean: _Boolean = _Boolean()
positive: _GreaterThan = _GreaterThan(0.0)
nonnegative: _GreaterThanEq = _GreaterThanEq(0.0)
nonnegative_integer: _IntegerGreaterThan = _IntegerGreaterThan(0)
positive_integer: _IntegerGreaterThan = _IntegerGreaterThan(1)
unit_interval: _Interval = _Interval(0.0, 1.0)
simplex: _Simplex = _Simplex()
one_hot: _OneHot = _OneHot()
real_vector: _IndependentConstraint = _IndependentConstraint(real, 1)
square: _Square = _Square()
symmetric: _Symmetric = _Symmetric()
lower_triangular: _LowerTriangular = _LowerTriangular()
lower_cholesky: _LowerCholesky = _LowerCholesky()
positive_definite: _PositiveDefinite = _PositiveDefinite()
positive_semidefinite: _PositiveSemidefinite = _PositiveSemidefinite()
corr_cholesky: _CorrCholesky = _CorrCholesky()
dependent: _Dependent = _Dependent()
