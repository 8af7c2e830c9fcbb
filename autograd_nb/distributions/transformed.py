"""Distributions of a transformed number or vector: what becomes of a simpler law under a map."""

from __future__ import annotations

import math
from typing import Any

from .. import dtypes
from ..shapes import Size
from ..tensor import Tensor
from . import constraints
from .common import T, broadcast_all, part
from .composed import TransformedDistribution
from .continuous import EULER, Cauchy, Exponential, Normal, Uniform
from .gammas import Gamma
from .transforms import AbsTransform, AffineTransform, ExpTransform, PowerTransform, StickBreakingTransform


class LogNormal(TransformedDistribution):
    """e^X, X ~ N(loc, scale²); LogNormal(0., 1.).mean = 1.6487."""

    has_rsample = True

    arg_constraints: Any = {"loc": constraints.real, "scale": constraints.positive}
    support: Any = constraints.positive  # type: ignore[assignment]

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None):
        super().__init__(Normal(loc, scale, validate_args=validate_args), ExpTransform(), validate_args=validate_args)

    loc: Tensor = part("base_dist.loc", "The mean of ln X.")
    scale: Tensor = part("base_dist.scale", "The standard deviation of ln X.")

    @property
    def mean(self) -> Tensor:
        return (self.loc + self.scale.pow(2) / 2).exp()

    @property
    def mode(self) -> Tensor:
        return (self.loc - self.scale.square()).exp()

    @property
    def variance(self) -> Tensor:
        s = self.scale.pow(2)
        return s.expm1() * (2 * self.loc + s).exp()

    def entropy(self) -> Tensor:
        return self.base_dist.entropy() + self.loc


class _Half(TransformedDistribution):
    """|X| of a distribution that is symmetric about 0."""

    has_rsample = True

    support: Any = constraints.nonnegative  # type: ignore[assignment]
    arg_constraints: Any = {"scale": constraints.positive}

    scale: Tensor = part("base_dist.scale", "The scale of X.")

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        return T.where(value >= 0, self.base_dist.log_prob(value) + math.log(2), -math.inf)

    def cdf(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        return 2 * self.base_dist.cdf(value) - 1

    def icdf(self, value: Tensor) -> Tensor:
        return self.base_dist.icdf((value + 1) / 2)

    def entropy(self) -> Tensor:
        return self.base_dist.entropy() - math.log(2)

    @property
    def mode(self) -> Tensor:
        return T.zeros_like(self.scale)


class HalfNormal(_Half):
    """|X|, X ~ N(0, scale²); HalfNormal(1.).mean = 0.7979."""

    def __init__(self, scale: Any, validate_args: bool | None = None):
        super().__init__(Normal(0, scale, validate_args=False), AbsTransform(), validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return self.scale * math.sqrt(2 / math.pi)

    @property
    def variance(self) -> Tensor:
        return self.scale.pow(2) * (1 - 2 / math.pi)


class HalfCauchy(_Half):
    """|X|, X Cauchy with a scale; HalfCauchy(1.).log_prob([1.]) = [-1.1447]."""

    def __init__(self, scale: Any, validate_args: bool | None = None):
        super().__init__(Cauchy(0, scale, validate_args=False), AbsTransform(), validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return T.full_like(self.scale, math.inf)

    @property
    def variance(self) -> Tensor:
        return T.full_like(self.scale, math.inf)

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        return super().log_prob(T.as_tensor(value, dtype=self.base_dist.scale.dtype))  # type: ignore[attr-defined]


class Gumbel(TransformedDistribution):
    """The distribution of maxima: F = e^(−e^(−(x − loc)/scale)); Gumbel(0., 1.).mean = 0.5772."""

    loc: Tensor
    scale: Tensor

    arg_constraints: Any = {"loc": constraints.real, "scale": constraints.positive}
    support: Any = constraints.real  # type: ignore[assignment]

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None):
        self.loc, self.scale = broadcast_all(loc, scale)
        info = dtypes.finfo(self.loc.dtype)
        base = Uniform(T.full_like(self.loc, info.tiny), T.full_like(self.loc, 1 - info.eps), validate_args=False)
        parts = [
            ExpTransform().inv,
            AffineTransform(0, -T.ones_like(self.scale)),
            ExpTransform().inv,
            AffineTransform(self.loc, -self.scale),
        ]
        super().__init__(base, parts, validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        new = object.__new__(type(self)) if _instance is None else _instance
        wider = Gumbel(self.loc.expand(Size(batch_shape)), self.scale.expand(Size(batch_shape)), validate_args=False)
        new.__dict__.update({**vars(self), **vars(wider), "_validate_args": self._validate_args})
        return new

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        y = (self.loc - value) / self.scale
        return (y - y.exp()) - self.scale.log()

    @property
    def mean(self) -> Tensor:
        return self.loc + self.scale * EULER

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def stddev(self) -> Tensor:
        return (math.pi / math.sqrt(6)) * self.scale

    @property
    def variance(self) -> Tensor:
        return self.stddev.pow(2)

    def entropy(self) -> Tensor:
        return self.scale.log() + (1 + EULER)


class Weibull(TransformedDistribution):
    """F = 1 − e^(−(x/scale)^concentration); Weibull(1., 1.).mean = tensor(1.)."""

    scale: Tensor
    concentration: Tensor
    concentration_reciprocal: Tensor

    arg_constraints: Any = {"scale": constraints.positive, "concentration": constraints.positive}
    support: Any = constraints.positive  # type: ignore[assignment]

    def __init__(self, scale: Any, concentration: Any, validate_args: bool | None = None):
        self.scale, self.concentration = broadcast_all(scale, concentration)
        self.concentration_reciprocal = self.concentration.reciprocal()
        base = Exponential(T.ones_like(self.scale), validate_args=False)
        parts = [PowerTransform(exponent=self.concentration_reciprocal), AffineTransform(0, self.scale)]
        super().__init__(base, parts, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return self.scale * T.exp(T.lgamma(1 + self.concentration_reciprocal))

    @property
    def mode(self) -> Tensor:
        k = self.concentration  # below 1 there is none, and PyTorch gives what the formula does
        return self.scale * ((k - 1) / k) ** k.reciprocal()

    @property
    def variance(self) -> Tensor:
        r = self.concentration_reciprocal
        return self.scale.pow(2) * (T.exp(T.lgamma(1 + 2 * r)) - T.exp(2 * T.lgamma(1 + r)))

    def entropy(self) -> Tensor:
        return EULER * (1 - self.concentration_reciprocal) + T.log(self.scale * self.concentration_reciprocal) + 1


class Pareto(TransformedDistribution):
    """p = α scale^α / x^(α+1) for x ≥ scale; Pareto(1., 2.).mean = tensor(2.)."""

    scale: Tensor
    alpha: Tensor

    arg_constraints: Any = {"alpha": constraints.positive, "scale": constraints.positive}

    def __init__(self, scale: Any, alpha: Any, validate_args: bool | None = None):
        self.scale, self.alpha = broadcast_all(scale, alpha)
        base = Exponential(self.alpha, validate_args=validate_args)
        super().__init__(base, [ExpTransform(), AffineTransform(0, self.scale)], validate_args=validate_args)

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self) -> Any:
        """Return x ≥ scale."""
        return constraints.greater_than_eq(self.scale)

    @property
    def mean(self) -> Tensor:
        a = self.alpha.clamp(min=1)
        return a * self.scale / (a - 1)

    @property
    def mode(self) -> Tensor:
        return self.scale

    @property
    def variance(self) -> Tensor:
        a = self.alpha.clamp(min=2)
        return self.scale.pow(2) * a / ((a - 1).pow(2) * (a - 2))

    def entropy(self) -> Tensor:
        return (self.scale / self.alpha).log() + (1 + self.alpha.reciprocal())


class Kumaraswamy(TransformedDistribution):
    """F = 1 − (1 − x^a)^b on [0, 1]; Kumaraswamy(1., 1.).mean = 0.5000."""

    has_rsample = True

    concentration1: Tensor
    concentration0: Tensor

    arg_constraints: Any = {"concentration1": constraints.positive, "concentration0": constraints.positive}
    support: Any = constraints.unit_interval  # type: ignore[assignment]

    def __init__(self, concentration1: Any, concentration0: Any, validate_args: bool | None = None):
        self.concentration1, self.concentration0 = broadcast_all(concentration1, concentration0)
        base = Uniform(T.full_like(self.concentration0, 0.0), T.full_like(self.concentration0, 1.0), validate_args=False)
        parts = [
            PowerTransform(exponent=self.concentration0.reciprocal()), AffineTransform(1.0, -1.0), PowerTransform(exponent=self.concentration1.reciprocal()),
        ]  # fmt: skip
        super().__init__(base, parts, validate_args=validate_args)

    def _moment(self, n: int) -> Tensor:
        a, b = self.concentration1, self.concentration0
        t = 1 + n / a
        return T.exp(b.log() + T.lgamma(t) + T.lgamma(b) - T.lgamma(t + b))

    @property
    def mean(self) -> Tensor:
        return self._moment(1)

    @property
    def mode(self) -> Tensor:
        a, b = self.concentration1, self.concentration0
        inner = ((a - 1) / (a * b - 1)) ** a.reciprocal()
        return T.where((a < 1) | (b < 1), math.nan, inner)

    @property
    def variance(self) -> Tensor:
        return self._moment(2) - self._moment(1).pow(2)

    def entropy(self) -> Tensor:
        a, b = self.concentration1, self.concentration0
        harmonic = T.digamma(b + 1) + EULER
        return (1 - b.reciprocal()) + (1 - a.reciprocal()) * harmonic - T.log(a) - T.log(b)


class LogisticNormal(TransformedDistribution):
    """A normal vector broken into sticks: a distribution on the simplex; LogisticNormal([0.], [1.]).sample().shape = torch.Size([2])."""

    has_rsample = True

    arg_constraints: Any = {"loc": constraints.real, "scale": constraints.positive}
    support: Any = constraints.simplex  # type: ignore[assignment]

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None):
        base = Normal(loc, scale, validate_args=validate_args)
        base = base if base.batch_shape else base.expand([1])
        super().__init__(base, StickBreakingTransform(), validate_args=validate_args)

    loc: Tensor = part("base_dist.base_dist.loc", "The mean of the normal vector.")
    scale: Tensor = part("base_dist.base_dist.scale", "The value is its standard deviation.")


class InverseGamma(TransformedDistribution):
    """1/X, X ~ Gamma; InverseGamma(3., 4.).mean = tensor(2.)."""

    has_rsample = True

    arg_constraints: Any = {"concentration": constraints.positive, "rate": constraints.positive}
    support: Any = constraints.positive  # type: ignore[assignment]

    def __init__(self, concentration: Any, rate: Any, validate_args: bool | None = None):
        base = Gamma(concentration, rate, validate_args=validate_args)
        super().__init__(base, PowerTransform(-T.ones((), dtype=base.rate.dtype)), validate_args=validate_args)

    concentration: Tensor = part("base_dist.concentration", "The value is α.")
    rate: Tensor = part("base_dist.rate", "The value is β.")

    @property
    def mean(self) -> Tensor:
        return T.where(self.concentration > 1, self.rate / (self.concentration - 1), math.inf)

    @property
    def mode(self) -> Tensor:
        return self.rate / (self.concentration + 1)

    @property
    def variance(self) -> Tensor:
        a = self.concentration
        return T.where(a > 2, self.rate.square() / ((a - 1).square() * (a - 2)), math.inf)

    def entropy(self) -> Tensor:
        a = self.concentration
        return a + self.rate.log() + a.lgamma() - (1 + a) * a.digamma()


__all__ = [
    "Gumbel",
    "HalfCauchy",
    "HalfNormal",
    "InverseGamma",
    "Kumaraswamy",
    "LogNormal",
    "LogisticNormal",
    "Pareto",
    "Weibull",
]
