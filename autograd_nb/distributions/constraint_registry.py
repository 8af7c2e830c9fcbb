"""Maps from unconstrained numbers onto constraints, found by the constraint's class; programs register maps for classes of their own.

Source: https://docs.pytorch.org/docs/stable/distributions.html#module-torch.distributions.constraint_registry
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from . import constraints, transforms
from .transform import ComposeTransform, IndependentTransform, Transform, identity_transform

__all__ = ["ConstraintRegistry", "biject_to", "transform_to"]


class ConstraintRegistry:
    """Finds the map onto a constraint: ``registry(constraint)``.

    >>> torch.distributions.biject_to(torch.distributions.constraints.positive)(torch.tensor([0., 1.]))
    tensor([1.0000, 2.7183])
    """

    def __init__(self) -> None:
        self._registry: dict[type, Callable[[Any], Transform]] = {}

    def register(self, constraint: Any, factory: Callable[[Any], Transform] | None = None) -> Any:
        """Let ``factory(constraint)`` make the map of constraints of a class, given or that of an instance; without it, return a decorator."""
        if factory is None:
            return lambda made: self.register(constraint, made)
        kind = type(constraint) if isinstance(constraint, constraints.Constraint) else constraint
        if not (isinstance(kind, type) and issubclass(kind, constraints.Constraint)):
            raise TypeError(f"Expected constraint to be either a Constraint subclass or instance, but got {constraint}")
        self._registry[kind] = factory
        return factory

    def __call__(self, constraint: Any) -> Transform:
        factory = self._registry.get(type(constraint))
        if factory is None:
            raise NotImplementedError(
                f"Cannot transform {type(constraint).__name__} constraints ({constraint!r}): register a map with register(constraint, factory)"
            )
        return factory(constraint)


biject_to: ConstraintRegistry = ConstraintRegistry()
transform_to: ConstraintRegistry = ConstraintRegistry()


def _above(c: Any) -> Transform:
    bound = c.lower_bound
    return transforms.ExpTransform() if isinstance(bound, (int, float)) and bound == 0 else ComposeTransform(
        [transforms.ExpTransform(), transforms.AffineTransform(bound, 1)]
    )  # fmt: skip


def _between(c: Any) -> Transform:
    low, high = c.lower_bound, c.upper_bound
    if all(isinstance(v, (int, float)) for v in (low, high)) and (low, high) == (0, 1):
        return transforms.SigmoidTransform()
    return ComposeTransform([transforms.SigmoidTransform(), transforms.AffineTransform(low, high - low)])


def _register_in(registry: ConstraintRegistry) -> None:
    """Register what the two registries have in common."""
    for constraint, factory in (
        (constraints._Real, lambda c: identity_transform),
        (constraints._GreaterThan, _above), (constraints._GreaterThanEq, _above),
        (constraints._LessThan, lambda c: ComposeTransform([transforms.ExpTransform(), transforms.AffineTransform(c.upper_bound, -1)])),
        (constraints._Interval, _between), (constraints._HalfOpenInterval, _between),
        (constraints._CorrCholesky, lambda c: transforms.CorrCholeskyTransform()),
        (constraints._IndependentConstraint, lambda c: IndependentTransform(registry(c.base_constraint), c.reinterpreted_batch_ndims)),
        (constraints._Cat, lambda c: transforms.CatTransform([registry(part) for part in c.cseq], c.dim, c.lengths)),
        (constraints._Stack, lambda c: transforms.StackTransform([registry(part) for part in c.cseq], c.dim)),
    ):  # fmt: skip
        registry.register(constraint, factory)


for _registry in (biject_to, transform_to):
    _register_in(_registry)
biject_to.register(constraints.simplex, lambda c: transforms.StickBreakingTransform())
transform_to.register(constraints.simplex, lambda c: transforms.SoftmaxTransform())
transform_to.register(constraints.lower_cholesky, lambda c: transforms.LowerCholeskyTransform())
transform_to.register(constraints.positive_definite, lambda c: transforms.PositiveDefiniteTransform())
transform_to.register(constraints.positive_semidefinite, lambda c: transforms.PositiveDefiniteTransform())
