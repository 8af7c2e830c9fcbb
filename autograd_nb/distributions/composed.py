"""Distributions made of others: independent, transformed, mixed."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ..graph.modes import no_grad
from ..shapes import Size
from ..tensor import Tensor
from . import constraints
from .common import T, sum_rightmost
from .discrete import Categorical
from .distribution import Distribution
from .transform import ComposeTransform, Transform


class Independent(Distribution):
    """Another distribution with some batch dims counted as part of one value.

    >>> torch.distributions.Independent(torch.distributions.Normal(torch.tensor([0., 0.]), 1.), 1).event_shape
    torch.Size([2])
    """

    base_dist: Distribution
    reinterpreted_batch_ndims: int

    def __init__(self, base_distribution: Distribution, reinterpreted_batch_ndims: int, validate_args: bool | None = None):
        if reinterpreted_batch_ndims > len(base_distribution.batch_shape):
            raise ValueError(
                f"Expected reinterpreted_batch_ndims <= len(base_distribution.batch_shape), actual {reinterpreted_batch_ndims} vs "
                f"{len(base_distribution.batch_shape)}"
            )
        shape = base_distribution.batch_shape + base_distribution.event_shape
        event = reinterpreted_batch_ndims + len(base_distribution.event_shape)
        self.base_dist, self.reinterpreted_batch_ndims = base_distribution, reinterpreted_batch_ndims
        super().__init__(shape[: len(shape) - event], shape[len(shape) - event :], validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        shape = Size(batch_shape)
        base = self.base_dist.expand(shape + self.event_shape[: self.reinterpreted_batch_ndims])
        new = object.__new__(type(self)) if _instance is None else _instance
        wider = Independent(base, self.reinterpreted_batch_ndims, validate_args=False)
        new.__dict__.update({**vars(self), **vars(wider), "_validate_args": self._validate_args})
        return new

    @property
    def has_rsample(self) -> bool:  # type: ignore[override]
        return self.base_dist.has_rsample

    @property
    def has_enumerate_support(self) -> bool:  # type: ignore[override]
        return self.base_dist.has_enumerate_support and self.reinterpreted_batch_ndims == 0

    @constraints.dependent_property
    def support(self) -> Any:
        """Return the base's support, with more dims in one value."""
        inner = self.base_dist.support
        return constraints.independent(inner, self.reinterpreted_batch_ndims) if self.reinterpreted_batch_ndims else inner

    @property
    def mean(self) -> Tensor:
        return self.base_dist.mean

    @property
    def mode(self) -> Tensor:
        return self.base_dist.mode

    @property
    def variance(self) -> Tensor:
        return self.base_dist.variance

    def sample(self, sample_shape: Any = ()) -> Tensor:
        return self.base_dist.sample(sample_shape)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        return self.base_dist.rsample(sample_shape)

    def log_prob(self, value: Tensor) -> Tensor:
        return sum_rightmost(self.base_dist.log_prob(value), self.reinterpreted_batch_ndims)  # type: ignore[no-any-return]

    def entropy(self) -> Tensor:
        return sum_rightmost(self.base_dist.entropy(), self.reinterpreted_batch_ndims)  # type: ignore[no-any-return]

    def enumerate_support(self, expand: bool = True) -> Tensor:
        if self.reinterpreted_batch_ndims > 0:
            raise NotImplementedError("Enumeration over cartesian product is not implemented")
        return self.base_dist.enumerate_support(expand=expand)

    def __repr__(self) -> str:
        return f"Independent({self.base_dist}, {self.reinterpreted_batch_ndims})"


class TransformedDistribution(Distribution):
    """The distribution of t(X) for invertible maps t.

    >>> uniform = torch.distributions.Uniform(0., 1.)
    >>> torch.distributions.TransformedDistribution(uniform, [torch.distributions.AffineTransform(1., 2.)]).log_prob(torch.tensor(2.))
    tensor(-0.6931)
    """

    transforms: list[Transform] | list[Any]

    def __init__(self, base_distribution: Distribution, transforms: Any, validate_args: bool | None = None):
        self.transforms = list(transforms) if isinstance(transforms, Iterable) else [transforms]
        if not all(isinstance(t, Transform) for t in self.transforms):
            raise ValueError(f"transforms must be a Transform or list, but was {transforms}")
        whole = ComposeTransform(self.transforms)
        base_shape = base_distribution.batch_shape + base_distribution.event_shape
        shape = whole.forward_shape(base_shape)
        need = whole.domain.event_dim
        event = len(base_distribution.event_shape)
        if event < need:
            base_distribution = Independent(base_distribution, need - event)
        self.base_dist = base_distribution
        out = max(whole.codomain.event_dim, len(base_distribution.event_shape) + whole.codomain.event_dim - need)
        cut = len(shape) - out
        super().__init__(tuple(shape)[:cut], tuple(shape)[cut:], validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        new = object.__new__(type(self)) if _instance is None else _instance
        new.__dict__.update(vars(self))
        shape = Size(batch_shape)
        base_shape = ComposeTransform(self.transforms).inverse_shape(shape + self.event_shape)
        new.base_dist = self.base_dist.expand(tuple(base_shape)[: len(base_shape) - len(self.base_dist.event_shape)])
        for name in (*type(self).arg_constraints, "concentration_reciprocal"):
            value = vars(self).get(name)
            if isinstance(value, Tensor):
                new.__dict__[name] = value.expand(shape + value.shape[len(self.batch_shape) :])
        new._batch_shape = shape
        return new

    @property
    def has_rsample(self) -> bool:  # type: ignore[override]
        return self.base_dist.has_rsample

    @constraints.dependent_property(is_discrete=False)
    def support(self) -> Any:
        """Return where the last map leads."""
        if not self.transforms:
            return self.base_dist.support
        last = self.transforms[-1].codomain
        more = len(self.event_shape) - last.event_dim
        return constraints.independent(last, more) if more > 0 else last

    def sample(self, sample_shape: Any = ()) -> Tensor:
        with no_grad():
            x = self.base_dist.sample(sample_shape)
            for t in self.transforms:
                x = t(x)
            return x

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        x = self.base_dist.rsample(sample_shape)
        for t in self.transforms:
            x = t(x)
        return x

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        event = len(self.event_shape)
        total: Any = 0.0
        y = value
        for t in reversed(self.transforms):
            x = t.inv(y)
            event += t.domain.event_dim - t.codomain.event_dim
            total = total - sum_rightmost(t.log_abs_det_jacobian(x, y), event - t.domain.event_dim)
            y = x
        return total + sum_rightmost(self.base_dist.log_prob(y), event - len(self.base_dist.event_shape))  # type: ignore[no-any-return]

    def _sign(self) -> Any:
        sign: Any = 1
        for t in self.transforms:
            sign = sign * t.sign
        return sign

    def cdf(self, value: Tensor) -> Tensor:
        for t in reversed(self.transforms):
            value = t.inv(value)
        value, sign = self.base_dist.cdf(value), self._sign()
        return value if isinstance(sign, int) and sign == 1 else sign * (value - 0.5) + 0.5

    def icdf(self, value: Tensor) -> Tensor:
        sign = self._sign()
        value = value if isinstance(sign, int) and sign == 1 else sign * (value - 0.5) + 0.5
        value = self.base_dist.icdf(value)
        for t in self.transforms:
            value = t(value)
        return value


class MixtureSameFamily(Distribution):
    """A mixture: a `Categorical` chooses among the last batch dim of a distribution."""

    def __init__(
        self, mixture_distribution: Categorical, component_distribution: Distribution, validate_args: bool | None = None
    ):
        if not isinstance(mixture_distribution, Categorical):
            raise ValueError(" The Mixture distribution needs to be an instance of torch.distributions.Categorical")
        if not isinstance(component_distribution, Distribution):
            raise ValueError("The Component distribution need to be an instance of torch.distributions.Distribution")
        batch = component_distribution.batch_shape[:-1]
        pairs = zip(reversed(mixture_distribution.batch_shape), reversed(batch), strict=False)
        if any(a != b and 1 not in (a, b) for a, b in pairs):
            raise ValueError(
                f"`mixture_distribution.batch_shape` ({tuple(mixture_distribution.batch_shape)}) is not compatible with "
                f"`component_distribution.batch_shape`({tuple(component_distribution.batch_shape)})"
            )
        if mixture_distribution._num_events != component_distribution.batch_shape[-1]:
            raise ValueError(
                f"`mixture_distribution component` ({mixture_distribution._num_events}) does not equal "
                f"`component_distribution.batch_shape[-1]` ({component_distribution.batch_shape[-1]})"
            )
        self._mixture_distribution, self._component_distribution = mixture_distribution, component_distribution
        self._num_component = mixture_distribution._num_events
        super().__init__(batch, component_distribution.event_shape, validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        new = object.__new__(type(self)) if _instance is None else _instance
        new.__dict__.update(vars(self))
        shape = Size(batch_shape)
        new._component_distribution = self._component_distribution.expand((*shape, self._num_component))
        new._mixture_distribution = self._mixture_distribution.expand(shape)
        new._batch_shape = shape
        return new

    @property
    def mixture_distribution(self) -> Categorical:
        """Return the distribution that chooses a component."""
        return self._mixture_distribution

    @property
    def component_distribution(self) -> Distribution:
        """Return what is chosen from."""
        return self._component_distribution

    def __repr__(self) -> str:
        return f"MixtureSameFamily(\n  {self.mixture_distribution},\n  {self.component_distribution})"

    @constraints.dependent_property
    def support(self) -> Any:
        """Return that of the components, where it is one for all."""
        support = self._component_distribution.support
        return None if support is None or constraints.is_dependent(support) else constraints.MixtureSameFamilyConstraint(support)

    def _weights(self) -> Tensor:
        p = self._mixture_distribution.probs
        return p.reshape((*p.shape, *(1,) * len(self.event_shape)))

    @property
    def mean(self) -> Tensor:
        return (self._weights() * self._component_distribution.mean).sum(-1 - len(self.event_shape))

    @property
    def variance(self) -> Tensor:
        dim = -1 - len(self.event_shape)
        w, c = self._weights(), self._component_distribution
        within = (w * c.variance).sum(dim)
        return within + (w * (c.mean - self.mean.unsqueeze(dim)).pow(2)).sum(dim)

    def _pad(self, x: Tensor) -> Tensor:
        return x.unsqueeze(-1 - len(self.event_shape))

    def cdf(self, value: Tensor) -> Tensor:
        return (self._component_distribution.cdf(self._pad(value)) * self._mixture_distribution.probs).sum(-1)

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        log_x = self._component_distribution.log_prob(self._pad(value))
        return T.logsumexp(log_x + T.log_softmax(self._mixture_distribution.logits, dim=-1), dim=-1)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        with no_grad():
            at = len(Size(sample_shape)) + len(self.batch_shape)
            chosen = self._mixture_distribution.expand(self.batch_shape).sample(sample_shape)
            drawn = self._component_distribution.sample(sample_shape)
            index = chosen.reshape(*chosen.shape, 1, *(1,) * len(self.event_shape))
            index = index.expand(*chosen.shape, 1, *self.event_shape)
            return T.gather(drawn, at, index).squeeze(at)


__all__ = ["Independent", "MixtureSameFamily", "TransformedDistribution"]
