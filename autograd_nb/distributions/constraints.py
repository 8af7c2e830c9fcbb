"""Where the parameters and values of distributions may lie: ``constraint.check(x)`` says it for each value.

Source: https://docs.pytorch.org/docs/stable/distributions.html#module-torch.distributions.constraints
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..dtypes import bool_
from ..ops.core.registry import OPS
from ..tensor import Tensor
from .common import T


class Constraint:
    """A region. ``is_discrete``: made of separate points; ``event_dim``: how many last dims make one value."""

    is_discrete = False
    event_dim = 0

    def check(self, value: Tensor) -> Tensor:
        """Return a bool tensor: which values lie in the region."""
        raise NotImplementedError

    def __repr__(self) -> str:
        return type(self).__name__.strip("_") + "()"


class _Dependent(Constraint):
    """A region that depends on other parameters."""

    is_discrete: bool
    event_dim: int

    def __init__(self, *, is_discrete: bool = False, event_dim: int = 0):
        self.is_discrete, self.event_dim = is_discrete, event_dim

    def __call__(self, *, is_discrete: bool = False, event_dim: int = 0) -> _Dependent:
        return _Dependent(is_discrete=is_discrete, event_dim=event_dim)

    def check(self, value: Tensor) -> Tensor:
        raise ValueError("Cannot determine validity of dependent constraint")


class dependent_property(property, _Dependent):
    """A property that gives a constraint; usable bare or with ``is_discrete`` and ``event_dim``."""

    is_discrete: bool
    event_dim: int

    def __init__(self, fn: Callable[..., Any] | None = None, *, is_discrete: bool = False, event_dim: int = 0):
        super().__init__(fn)
        self.is_discrete, self.event_dim = is_discrete, event_dim  # type: ignore[misc]

    def __call__(self, fn: Callable[..., Any]) -> dependent_property:  # type: ignore[override]
        return dependent_property(fn, is_discrete=self.is_discrete, event_dim=self.event_dim)


def is_dependent(constraint: Any) -> bool:
    """Return whether the region depends on other parameters."""
    return isinstance(constraint, _Dependent)


class _Test(Constraint):
    """A region that a function of the values decides."""

    is_discrete: bool
    event_dim: int

    def __init__(self, name: str, test: Callable[[Tensor], Tensor], is_discrete: bool = False, event_dim: int = 0):
        self._name, self._test, self.is_discrete, self.event_dim = name, test, is_discrete, event_dim

    def check(self, value: Tensor) -> Tensor:
        return self._test(value)

    def __repr__(self) -> str:
        return self._name


def _finite_order(x: Tensor) -> Tensor:
    return x == x


def _triangle(x: Tensor) -> Tensor:
    return (x == x.tril()).flatten(-2).all(-1)


def _symmetric(x: Tensor) -> Tensor:
    return (x.shape[-1] == x.shape[-2]) & T.isclose(x, x.mT, atol=1e-6).flatten(-2).all(-1)


def _has_cholesky(x: Tensor) -> Tensor:
    return OPS["linalg.cholesky_ex"].call(x)[1] == 0


def _positive_diagonal(x: Tensor) -> Tensor:
    return (x.diagonal(0, -2, -1) > 0).all(-1)


real: _Test = _Test("Real()", _finite_order)
boolean: _Test = _Test("Boolean()", lambda x: (x == 0) | (x == 1), True)
positive: _Test = _Test("GreaterThan(lower_bound=0.0)", lambda x: x > 0)
nonnegative: _Test = _Test("GreaterThanEq(lower_bound=0.0)", lambda x: x >= 0)
nonnegative_integer: _Test = _Test("IntegerGreaterThan(lower_bound=0)", lambda x: (x % 1 == 0) & (x >= 0), True)
positive_integer: _Test = _Test("IntegerGreaterThan(lower_bound=1)", lambda x: (x % 1 == 0) & (x >= 1), True)
unit_interval: _Test = _Test("Interval(lower_bound=0.0, upper_bound=1.0)", lambda x: (x >= 0) & (x <= 1))
simplex: _Test = _Test("Simplex()", lambda x: (x >= 0).all(-1) & ((x.sum(-1) - 1).abs() < 1e-6), event_dim=1)
one_hot: _Test = _Test("OneHot()", lambda x: ((x == 0) | (x == 1)).all(-1) & (x.sum(-1) == 1), True, 1)
real_vector: _Test = _Test("IndependentConstraint(Real(), 1)", lambda x: (x == x).all(-1), event_dim=1)
square: _Test = _Test("Square()", lambda x: T.full(x.shape[:-2], x.shape[-1] == x.shape[-2], dtype=_bool()), event_dim=2)
symmetric: _Test = _Test("Symmetric()", _symmetric, event_dim=2)
lower_triangular: _Test = _Test("LowerTriangular()", _triangle, event_dim=2)
lower_cholesky: _Test = _Test("LowerCholesky()", lambda x: _triangle(x) & _positive_diagonal(x), event_dim=2)
positive_definite: _Test = _Test("PositiveDefinite()", lambda x: _symmetric(x) & _has_cholesky(x), event_dim=2)
positive_semidefinite: _Test = _Test(
    "PositiveSemidefinite()", lambda x: _symmetric(x) & _has_cholesky(x + 1e-6 * T.eye(x.shape[-1], dtype=x.dtype)), event_dim=2
)
corr_cholesky: _Test = _Test(
    "CorrCholesky()", lambda x: _triangle(x) & _positive_diagonal(x) & ((x.square().sum(-1) - 1).abs() < 1e-4).all(-1), event_dim=2
)
dependent: _Dependent = _Dependent()


def _bool() -> Any:
    return bool_


def interval(lower_bound: Any, upper_bound: Any) -> Constraint:
    """Return the constraint lower ≤ x ≤ upper."""
    return _Test(f"Interval(lower_bound={lower_bound}, upper_bound={upper_bound})", lambda x: (x >= lower_bound) & (x <= upper_bound))


def half_open_interval(lower_bound: Any, upper_bound: Any) -> Constraint:
    """Return the constraint lower ≤ x < upper."""
    return _Test(f"HalfOpenInterval(lower_bound={lower_bound}, upper_bound={upper_bound})", lambda x: (x >= lower_bound) & (x < upper_bound))


def integer_interval(lower_bound: Any, upper_bound: Any) -> Constraint:
    """Return the constraint that x is an integer from lower to upper."""
    return _Test(
        f"IntegerInterval(lower_bound={lower_bound}, upper_bound={upper_bound})",
        lambda x: (x % 1 == 0) & (x >= lower_bound) & (x <= upper_bound),
        True,
    )


def greater_than(lower_bound: Any) -> Constraint:
    """Return the constraint x > bound."""
    return _Test(f"GreaterThan(lower_bound={lower_bound})", lambda x: x > lower_bound)


def greater_than_eq(lower_bound: Any) -> Constraint:
    """Return the constraint x ≥ bound."""
    return _Test(f"GreaterThanEq(lower_bound={lower_bound})", lambda x: x >= lower_bound)


def less_than(upper_bound: Any) -> Constraint:
    """Return the constraint x < bound."""
    return _Test(f"LessThan(upper_bound={upper_bound})", lambda x: x < upper_bound)


def multinomial(upper_bound: Any) -> Constraint:
    """Return the constraint of counts with a given sum."""
    return _Test(f"Multinomial({upper_bound})", lambda x: (x >= 0).all(-1) & (x.sum(-1) <= upper_bound), True, 1)


def independent(base_constraint: Constraint, reinterpreted_batch_ndims: int) -> Constraint:
    """Return a constraint with more dims in one value."""

    def test(x: Tensor) -> Tensor:
        inside = base_constraint.check(x)
        return inside.reshape(*inside.shape[: inside.ndim - reinterpreted_batch_ndims], -1).all(-1) if reinterpreted_batch_ndims else inside

    return _Test(
        f"IndependentConstraint({base_constraint}, {reinterpreted_batch_ndims})",
        test,
        base_constraint.is_discrete,
        base_constraint.event_dim + reinterpreted_batch_ndims,
    )


def stack(cseq: Sequence[Constraint], dim: int = 0) -> Constraint:
    """Return a constraint for each slice along a dim."""
    return _Test("Stack()", lambda x: T.stack([c.check(v) for c, v in zip(cseq, x.unbind(dim), strict=True)], dim))


def cat(cseq: Sequence[Constraint], dim: int = 0, lengths: Sequence[int] | None = None) -> Constraint:
    """Return a constraint for each part along a dim."""
    sizes = list(lengths) if lengths is not None else [1] * len(cseq)
    return _Test("Cat()", lambda x: T.cat([c.check(v) for c, v in zip(cseq, x.split(sizes, dim), strict=True)], dim))
