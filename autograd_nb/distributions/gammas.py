"""Gamma, and the distributions whose samples are made of its: chi², Dirichlet, beta, Student's t, Fisher–Snedecor."""

from __future__ import annotations

import math
from typing import Any

from .. import dtypes
from ..ops.core.registry import OPS
from ..tensor import Tensor
from . import constraints
from .common import T, _standard_normal, broadcast_all
from .distribution import Distribution, ExponentialFamily


class Gamma(ExponentialFamily):
    """p = rate^α x^(α−1) e^(−rate·x) / Γ(α), α the concentration; Gamma(2., 4.).mean = 0.5000."""

    concentration: Tensor
    rate: Tensor

    arg_constraints: Any = {"concentration": constraints.positive, "rate": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True

    def __init__(self, concentration: Any, rate: Any, validate_args: bool | None = None):
        self.concentration, self.rate = broadcast_all(concentration, rate)
        super().__init__(self.concentration.shape, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return self.concentration / self.rate

    @property
    def mode(self) -> Tensor:
        return ((self.concentration - 1) / self.rate).clamp(min=0)

    @property
    def variance(self) -> Tensor:
        return self.concentration / self.rate.pow(2)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        value = T._standard_gamma(self.concentration.expand(shape)) / self.rate.expand(shape)
        return value.clamp(min=dtypes.finfo(value.dtype).tiny)

    def log_prob(self, value: Tensor) -> Tensor:
        value = T.as_tensor(value, dtype=self.rate.dtype)
        self._validate_sample(value)
        return (
            T.xlogy(self.concentration, self.rate)
            + T.xlogy(self.concentration - 1, value)
            - self.rate * value
            - T.lgamma(self.concentration)
        )

    def cdf(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        return OPS["igamma"].call(self.concentration, self.rate * value)

    def entropy(self) -> Tensor:
        a = self.concentration
        return a - T.log(self.rate) + T.lgamma(a) + (1.0 - a) * T.digamma(a)


class Chi2(Gamma):
    """Gamma(df/2, 1/2); Chi2(2.).mean = tensor(2.)."""

    arg_constraints: Any = {"df": constraints.positive}

    def __init__(self, df: Any, validate_args: bool | None = None):
        (half,) = broadcast_all(df)
        super().__init__(0.5 * half, T.full_like(half * 1.0, 0.5), validate_args=validate_args)

    @property
    def df(self) -> Tensor:
        """Return the degrees of freedom."""
        return self.concentration * 2


class Dirichlet(ExponentialFamily):
    """p ∝ Π xᵢ^(αᵢ − 1) on the simplex; Dirichlet([1., 3.]).mean = [0.2500, 0.7500]."""

    arg_constraints: Any = {"concentration": constraints.independent(constraints.positive, 1)}
    support = constraints.simplex
    has_rsample = True

    def __init__(self, concentration: Tensor, validate_args: bool | None = None):
        if concentration.ndim < 1:
            raise ValueError("`concentration` parameter must be at least one-dimensional.")
        self.concentration = concentration
        super().__init__(concentration.shape[:-1], concentration.shape[-1:], validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return self.concentration / self.concentration.sum(-1, True)

    @property
    def mode(self) -> Tensor:
        above = (self.concentration - 1).clamp(min=0.0)
        mode = above / above.sum(-1, True)
        flat = (self.concentration < 1).all(-1, True)  # every corner is a peak: the first
        corner = (T.arange(mode.shape[-1]) == 0).to(mode.dtype)
        return T.where(flat, corner, mode)

    @property
    def variance(self) -> Tensor:
        total = self.concentration.sum(-1, True)
        return self.concentration * (total - self.concentration) / (total.pow(2) * (total + 1))

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        return T._sample_dirichlet(self.concentration.expand(self._extended_shape(sample_shape)))

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        a = self.concentration
        return T.xlogy(a - 1.0, value).sum(-1) + T.lgamma(a.sum(-1)) - T.lgamma(a).sum(-1)

    def entropy(self) -> Tensor:
        a, k = self.concentration, self.concentration.shape[-1]
        total = a.sum(-1)
        return T.lgamma(a).sum(-1) - T.lgamma(total) - (k - total) * T.digamma(total) - ((a - 1.0) * T.digamma(a)).sum(-1)


def _Dirichlet_backward(x: Tensor, concentration: Tensor, grad_output: Tensor) -> Tensor:
    """Return the gradient of the concentrations, of samples ``x`` that have the gradient ``grad_output``."""
    total = concentration.sum(-1, True).expand_as(concentration)
    return T._dirichlet_grad(x, concentration, total) * (grad_output - (x * grad_output).sum(-1, True))  # type: ignore[no-any-return]


class Beta(ExponentialFamily):
    """p = x^(α−1) (1−x)^(β−1) / B(α, β); Beta(2., 2.).mean = 0.5000."""

    concentration1: Tensor
    concentration0: Tensor

    arg_constraints: Any = {"concentration1": constraints.positive, "concentration0": constraints.positive}
    support = constraints.unit_interval
    has_rsample = True

    def __init__(self, concentration1: Any, concentration0: Any, validate_args: bool | None = None):
        self.concentration1, self.concentration0 = broadcast_all(concentration1, concentration0)
        super().__init__(self.concentration1.shape, validate_args=validate_args)

    @property
    def _total(self) -> Tensor:
        return self.concentration1 + self.concentration0

    @property
    def mean(self) -> Tensor:
        return self.concentration1 / self._total

    @property
    def mode(self) -> Tensor:
        return Dirichlet(T.stack([self.concentration1, self.concentration0], -1), validate_args=False).mode[..., 0]

    @property
    def variance(self) -> Tensor:
        t = self._total
        return self.concentration1 * self.concentration0 / (t.pow(2) * (t + 1))

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        both = T.stack((self.concentration1, self.concentration0), -1)
        return T._sample_dirichlet(both.expand((*shape, 2))).select(-1, 0)

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        a, b = self.concentration1, self.concentration0
        if not a.dtype is b.dtype is value.dtype:  # also of numbers, which PyTorch stacks
            a, b, value = (t.to(T.promote_types(T.promote_types(a.dtype, b.dtype), value.dtype)) for t in (a, b, value))
        return T.xlogy(a - 1.0, value) + T.xlogy(b - 1.0, 1.0 - value) + T.lgamma(a + b) - T.lgamma(a) - T.lgamma(b)

    def entropy(self) -> Tensor:
        a, b = self.concentration1, self.concentration0
        t = a + b
        return (
            T.lgamma(a)
            + T.lgamma(b)
            - T.lgamma(t)
            - (a - 1.0) * T.digamma(a)
            - (b - 1.0) * T.digamma(b)
            + (t - 2.0) * T.digamma(t)
        )


class StudentT(Distribution):
    """Student's t with ``df`` degrees of freedom, shifted by loc and scaled."""

    df: Tensor
    loc: Tensor
    scale: Tensor

    arg_constraints: Any = {"df": constraints.positive, "loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    has_rsample = True

    def __init__(self, df: Any, loc: Any = 0.0, scale: Any = 1.0, validate_args: bool | None = None):
        self.df, self.loc, self.scale = broadcast_all(df, loc, scale)
        super().__init__(self.df.shape, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return T.where(self.df > 1, self.loc, math.nan)

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def variance(self) -> Tensor:
        v = self.scale.pow(2) * self.df / (self.df - 2)
        return T.where(self.df > 2, v, T.where(self.df > 1, math.inf, math.nan).to(v.dtype))

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        x = _standard_normal(shape, self.df.dtype)
        z = Chi2(self.df, validate_args=False).rsample(sample_shape)
        return self.loc + self.scale * x * T.rsqrt(z / self.df)

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        y = (value - self.loc) / self.scale
        z = (
            self.scale.log()
            + 0.5 * self.df.log()
            + 0.5 * math.log(math.pi)
            + T.lgamma(0.5 * self.df)
            - T.lgamma(0.5 * (self.df + 1.0))
        )
        return -0.5 * (self.df + 1.0) * T.log1p(y**2.0 / self.df) - z

    def entropy(self) -> Tensor:
        lbeta = T.lgamma(0.5 * self.df) + math.lgamma(0.5) - T.lgamma(0.5 * (self.df + 1))
        return (
            self.scale.log()
            + 0.5 * (self.df + 1) * (T.digamma(0.5 * (self.df + 1)) - T.digamma(0.5 * self.df))
            + 0.5 * self.df.log()
            + lbeta
        )


class FisherSnedecor(Distribution):
    """The ratio of two chi-squared numbers over their degrees of freedom; FisherSnedecor(2., 4.).mean = tensor(2.)."""

    df1: Tensor
    df2: Tensor

    arg_constraints: Any = {"df1": constraints.positive, "df2": constraints.positive}
    support = constraints.positive
    has_rsample = True

    def __init__(self, df1: Any, df2: Any, validate_args: bool | None = None):
        self.df1, self.df2 = broadcast_all(df1, df2)
        super().__init__(self.df1.shape, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return T.where(self.df2 > 2, self.df2 / (self.df2 - 2), math.nan)

    @property
    def mode(self) -> Tensor:
        return T.where(self.df1 > 2, (self.df1 - 2) / self.df1 * self.df2 / (self.df2 + 2), math.nan)

    @property
    def variance(self) -> Tensor:
        d1, d2 = self.df1, self.df2
        return T.where(d2 > 4, 2 * d2.pow(2) * (d1 + d2 - 2) / (d1 * (d2 - 2).pow(2) * (d2 - 4)), math.nan)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        x1 = T._standard_gamma((self.df1 * 0.5).expand(shape)) / (self.df1 * 0.5)
        x2 = T._standard_gamma((self.df2 * 0.5).expand(shape)) / (self.df2 * 0.5)
        tiny = dtypes.finfo(x2.dtype).tiny
        return (x1 / x2.clamp(min=tiny)).clamp(min=tiny)

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        a, b = self.df1 * 0.5, self.df2 * 0.5
        ratio = self.df1 / self.df2
        return (
            (a + b).lgamma()
            - a.lgamma()
            - b.lgamma()
            + a * ratio.log()
            + (a - 1) * value.log()
            - (a + b) * T.log1p(ratio * value)
        )


__all__ = ["Beta", "Chi2", "Dirichlet", "FisherSnedecor", "Gamma", "StudentT"]
