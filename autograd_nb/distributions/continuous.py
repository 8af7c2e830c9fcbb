"""Continuous distributions of one number."""

from __future__ import annotations

import math
from typing import Any

from .. import dtypes
from ..ops.registry import OPS
from ..tensor import Tensor
from . import constraints
from .common import T, broadcast_all, clamp_probs, lazy_property, logits_to_probs, probs_to_logits
from .distribution import Distribution, ExponentialFamily, all_hold

EULER = 0.57721566490153286061


def _open_uniform(shape: Any, like: Tensor) -> Tensor:
    """Uniform numbers in (0, 1), kept away from both ends by the dtype."""
    info = dtypes.finfo(like.dtype)
    return T.rand(shape, dtype=like.dtype).clamp(min=info.tiny, max=1 - info.eps / 2)


class Normal(ExponentialFamily):
    """N(loc, scale²): ln p = −(x − loc)²/(2 scale²) − ln scale − ½ ln 2π."""

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    has_rsample = True

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None):
        self.loc, self.scale = broadcast_all(loc, scale)
        super().__init__(self.loc.shape, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return self.loc

    mode = mean

    @property
    def stddev(self) -> Tensor:
        return self.scale

    @property
    def variance(self) -> Tensor:
        return self.scale.square()

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        return self.loc + T.randn(shape, dtype=self.loc.dtype) * self.scale

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        return -((value - self.loc) ** 2) / (2 * self.scale**2) - self.scale.log() - math.log(math.sqrt(2 * math.pi))

    def cdf(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        return 0.5 * (1 + T.erf((value - self.loc) * self.scale.reciprocal() / math.sqrt(2)))

    def icdf(self, value: Tensor) -> Tensor:
        return self.loc + self.scale * T.erfinv(2 * value - 1) * math.sqrt(2)

    def entropy(self) -> Tensor:
        return 0.5 + 0.5 * math.log(2 * math.pi) + self.scale.log()


class Uniform(Distribution):
    """Uniform on [low, high)."""

    arg_constraints = {"low": constraints.dependent(), "high": constraints.dependent()}
    has_rsample = True

    def __init__(self, low: Any, high: Any, validate_args: bool | None = None):
        self.low, self.high = broadcast_all(low, high)
        super().__init__(self.low.shape, validate_args=validate_args)
        if self._validate_args and not all_hold(self.low < self.high):
            raise ValueError("Uniform is not defined when low>= high")

    @constraints.dependent_property
    def support(self) -> Any:
        return constraints.interval(self.low, self.high)

    @property
    def mean(self) -> Tensor:
        return (self.high + self.low) / 2

    @property
    def mode(self) -> Tensor:
        return T.full_like(self.high, math.nan)

    @property
    def stddev(self) -> Tensor:
        return (self.high - self.low) / 12**0.5

    @property
    def variance(self) -> Tensor:
        return (self.high - self.low).square() / 12

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        u = T.rand(self._extended_shape(sample_shape), dtype=self.low.dtype)
        return self.low + u * (self.high - self.low)

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        inside = self.low.le(value) & self.high.gt(value)
        return T.log(inside.to(self.low.dtype)) - T.log(self.high - self.low)

    def cdf(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        return ((value - self.low) / (self.high - self.low)).clamp(min=0, max=1)

    def icdf(self, value: Tensor) -> Tensor:
        return value * (self.high - self.low) + self.low

    def entropy(self) -> Tensor:
        return T.log(self.high - self.low)


class Exponential(ExponentialFamily):
    """p = rate·e^(−rate·x) for x ≥ 0."""

    arg_constraints = {"rate": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True

    def __init__(self, rate: Any, validate_args: bool | None = None):
        (self.rate,) = broadcast_all(rate)
        super().__init__(self.rate.shape, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return self.rate.reciprocal()

    @property
    def mode(self) -> Tensor:
        return T.zeros_like(self.rate)

    @property
    def stddev(self) -> Tensor:
        return self.rate.reciprocal()

    @property
    def variance(self) -> Tensor:
        return self.rate.pow(-2)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        return T.empty(self._extended_shape(sample_shape), dtype=self.rate.dtype).exponential_() / self.rate

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        return self.rate.log() - self.rate * value

    def cdf(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        return 1 - T.exp(-self.rate * value)

    def icdf(self, value: Tensor) -> Tensor:
        return -T.log1p(-value) / self.rate

    def entropy(self) -> Tensor:
        return 1.0 - T.log(self.rate)


class Laplace(Distribution):
    """p = e^(−|x − loc|/scale) / (2 scale)."""

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    has_rsample = True

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None):
        self.loc, self.scale = broadcast_all(loc, scale)
        super().__init__(self.loc.shape, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return self.loc

    mode = mean

    @property
    def variance(self) -> Tensor:
        return 2 * self.scale.pow(2)

    @property
    def stddev(self) -> Tensor:
        return 2**0.5 * self.scale

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        info = dtypes.finfo(self.loc.dtype)
        u = T.rand(self._extended_shape(sample_shape), dtype=self.loc.dtype) * (2 - info.eps) - (1 - info.eps)
        return self.loc - self.scale * u.sign() * T.log1p(-u.abs().clamp(max=1 - info.eps / 2))

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        return -T.log(2 * self.scale) - T.abs(value - self.loc) / self.scale

    def cdf(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        x = value - self.loc
        return 0.5 - 0.5 * x.sign() * T.expm1(-x.abs() / self.scale)

    def icdf(self, value: Tensor) -> Tensor:
        term = value - 0.5
        return self.loc - self.scale * term.sign() * T.log1p(-2 * term.abs())

    def entropy(self) -> Tensor:
        return 1 + T.log(2 * self.scale)


class Cauchy(Distribution):
    """p = 1 / (π scale (1 + ((x − loc)/scale)²))."""

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    has_rsample = True

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None):
        self.loc, self.scale = broadcast_all(loc, scale)
        super().__init__(self.loc.shape, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return T.full_like(self.loc, math.nan)

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def variance(self) -> Tensor:
        return T.full_like(self.loc, math.inf)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        return self.loc + T.empty(self._extended_shape(sample_shape), dtype=self.loc.dtype).cauchy_() * self.scale

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        return -math.log(math.pi) - self.scale.log() - (((value - self.loc) / self.scale) ** 2).log1p()

    def cdf(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        return T.atan((value - self.loc) / self.scale) / math.pi + 0.5

    def icdf(self, value: Tensor) -> Tensor:
        return T.tan(math.pi * (value - 0.5)) * self.scale + self.loc

    def entropy(self) -> Tensor:
        return math.log(4 * math.pi) + self.scale.log()


class Gamma(ExponentialFamily):
    """p = rate^α x^(α−1) e^(−rate·x) / Γ(α), α the concentration."""

    arg_constraints = {"concentration": constraints.positive, "rate": constraints.positive}
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
    """Gamma(df/2, 1/2)."""

    arg_constraints = {"df": constraints.positive}

    def __init__(self, df: Any, validate_args: bool | None = None):
        (half,) = broadcast_all(df)
        super().__init__(0.5 * half, T.full_like(half * 1.0, 0.5), validate_args=validate_args)

    @property
    def df(self) -> Tensor:
        """The degrees of freedom."""
        return self.concentration * 2


class Beta(ExponentialFamily):
    """p = x^(α−1) (1−x)^(β−1) / B(α, β)."""

    arg_constraints = {"concentration1": constraints.positive, "concentration0": constraints.positive}
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
        from .multivariate import Dirichlet

        return Dirichlet(T.stack([self.concentration1, self.concentration0], -1), validate_args=False).mode[..., 0]

    @property
    def variance(self) -> Tensor:
        t = self._total
        return self.concentration1 * self.concentration0 / (t.pow(2) * (t + 1))

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        a = T._standard_gamma(self.concentration1.expand(shape))
        b = T._standard_gamma(self.concentration0.expand(shape))
        info = dtypes.finfo(a.dtype)
        return (a / (a + b)).clamp(min=info.tiny, max=1 - info.eps / 2)

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        a, b = self.concentration1, self.concentration0
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

    arg_constraints = {"df": constraints.positive, "loc": constraints.real, "scale": constraints.positive}
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
        x = T.randn(shape, dtype=self.df.dtype)
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
    """The ratio of two chi-squared numbers over their degrees of freedom."""

    arg_constraints = {"df1": constraints.positive, "df2": constraints.positive}
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


class VonMises(Distribution):
    """p = e^(κ cos(x − loc)) / (2π I₀(κ)) on the circle."""

    arg_constraints = {"loc": constraints.real, "concentration": constraints.positive}
    support = constraints.real

    def __init__(self, loc: Any, concentration: Any, validate_args: bool | None = None):
        self.loc, self.concentration = broadcast_all(loc, concentration)
        super().__init__(self.loc.shape, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return self.loc

    mode = mean

    @property
    def variance(self) -> Tensor:
        k = self.concentration
        return 1 - OPS["i1e"].call(k) / OPS["i0e"].call(k)

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        k = self.concentration
        return k * (T.cos(value - self.loc) - 1) - math.log(2 * math.pi) - OPS["i0e"].call(k).log()

    def sample(self, sample_shape: Any = ()) -> Tensor:
        """Best and Fisher's rejection (1979), vectorised: rounds until every place has been accepted."""
        shape = self._extended_shape(sample_shape)
        k = self.concentration.detach().expand(shape).double()
        tau = 1 + (1 + 4 * k**2).sqrt()
        rho = (tau - (2 * tau).sqrt()) / (2 * k)
        r = T.where(k < 1e-5, 1 / k + k, (1 + rho**2) / (2 * rho))
        x, done = T.zeros(shape, dtype=k.dtype), T.zeros(shape, dtype=dtypes.bool_)
        while not done.all().item():
            u = T.rand((3, *shape), dtype=k.dtype)
            z = T.cos(math.pi * u[0])
            f = (1 + r * z) / (r + z)
            c = k * (r - f)
            accept = ((c * (2 - c) - u[1]) > 0) | ((c / u[1]).log() + 1 - c >= 0)
            x = T.where(accept & ~done, (u[2] - 0.5).sign() * f.clamp(min=-1, max=1).acos(), x)
            done = done | accept
        return ((x + math.pi + self.loc.detach()) % (2 * math.pi) - math.pi).to(self.loc.dtype)


class ContinuousBernoulli(ExponentialFamily):
    """p ∝ λ^x (1−λ)^(1−x) on [0, 1] (Loaiza-Ganem and Cunningham 2019)."""

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.unit_interval
    has_rsample = True

    def __init__(
        self,
        probs: Any = None,
        logits: Any = None,
        lims: tuple[float, float] = (0.499, 0.501),
        validate_args: bool | None = None,
    ):
        if (probs is None) == (logits is None):
            raise ValueError("Either `probs` or `logits` must be specified, but not both.")
        if probs is not None:
            (p,) = broadcast_all(probs)
            self.probs = clamp_probs(p)
        else:
            (self.logits,) = broadcast_all(logits)
        self._lims = lims
        super().__init__((self.probs if probs is not None else self.logits).shape, validate_args=validate_args)

    @lazy_property
    def logits(self) -> Tensor:
        """ln λ/(1−λ)."""
        return probs_to_logits(self.probs, is_binary=True)

    @lazy_property
    def probs(self) -> Tensor:
        """λ."""
        return clamp_probs(logits_to_probs(self.logits, is_binary=True))

    def _cut(self) -> tuple[Tensor, Tensor]:
        outside = (self.probs <= self._lims[0]) | (self.probs > self._lims[1])
        return outside, T.where(outside, self.probs, self._lims[0])

    def _log_norm(self) -> Tensor:
        outside, p = self._cut()
        below, above = T.where(p <= 0.5, p, 0.0), T.where(p >= 0.5, p, 1.0)
        log_norm = T.log((T.log1p(-p) - T.log(p)).abs()) - T.where(p <= 0.5, T.log1p(-2.0 * below), T.log(2.0 * above - 1.0))
        x = (self.probs - 0.5).square()
        return T.where(outside, log_norm, math.log(2.0) + (4.0 / 3.0 + 104.0 / 45.0 * x) * x)

    @property
    def mean(self) -> Tensor:
        outside, p = self._cut()
        x = self.probs - 0.5
        return T.where(
            outside, p / (2.0 * p - 1.0) + 1.0 / (T.log1p(-p) - T.log(p)), 0.5 + (1.0 / 3.0 + 16.0 / 45.0 * x.square()) * x
        )

    @property
    def variance(self) -> Tensor:
        outside, p = self._cut()
        x = (self.probs - 0.5).square()
        v = p * (p - 1.0) / (1.0 - 2.0 * p).square() + 1.0 / (T.log1p(-p) - T.log(p)).square()
        return T.where(outside, v, 1.0 / 12.0 - (1.0 / 15.0 - 128.0 / 945.0 * x) * x)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        return self.icdf(T.rand(self._extended_shape(sample_shape), dtype=self.probs.dtype))

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        logits, value = broadcast_all(self.logits, value)
        return value * logits - T.logaddexp(logits, T.zeros_like(logits)) + self._log_norm()

    def cdf(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        outside, p = self._cut()
        c = (T.pow(p, value) * T.pow(1.0 - p, 1.0 - value) + p - 1.0) / (2.0 * p - 1.0)
        return T.where(value <= 0, 0.0, T.where(value >= 1, 1.0, T.where(outside, c, value)))

    def icdf(self, value: Tensor) -> Tensor:
        outside, p = self._cut()
        x = (T.log1p(-p + value * (2.0 * p - 1.0)) - T.log1p(-p)) / (T.log(p) - T.log1p(-p))
        return T.where(outside, x, value)

    def entropy(self) -> Tensor:
        return self.mean * (T.log1p(-self.probs) - T.log(self.probs)) - self._log_norm() - T.log1p(-self.probs)


class GeneralizedPareto(Distribution):
    """The tail distribution with location, scale and shape (``concentration``)."""

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive, "concentration": constraints.real}
    has_rsample = True

    def __init__(self, loc: Any, scale: Any, concentration: Any, validate_args: bool | None = None):
        self.loc, self.scale, self.concentration = broadcast_all(loc, scale, concentration)
        super().__init__(self.loc.shape, validate_args=validate_args)

    @constraints.dependent_property
    def support(self) -> Any:
        upper = T.where(self.concentration < 0, self.loc - self.scale / self.concentration, math.inf)
        return constraints.interval(self.loc, upper)

    def _flat(self) -> Tensor:
        return self.concentration == 0

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        return self.icdf(T.rand(self._extended_shape(sample_shape), dtype=self.loc.dtype))

    def icdf(self, value: Tensor) -> Tensor:
        c = T.where(self._flat(), 1.0, self.concentration)
        x = T.where(self._flat(), -T.log1p(-value), T.expm1(-c * T.log1p(-value)) / c)
        return self.loc + self.scale * x

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        z = (value - self.loc) / self.scale
        c = T.where(self._flat(), 1.0, self.concentration)
        y = T.where(self._flat(), z, T.log1p(z * c) / c)
        return T.where(y == math.inf, -math.inf, -T.where(self._flat(), y, (1 + c) * y)) - self.scale.log()

    def cdf(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        z = (value - self.loc) / self.scale
        c = T.where(self._flat(), 1.0, self.concentration)
        return -T.expm1(-T.where(self._flat(), z, T.log1p(z * c) / c))

    @property
    def mean(self) -> Tensor:
        return T.where(self.concentration < 1, self.loc + self.scale / (1 - self.concentration), math.inf)

    @property
    def variance(self) -> Tensor:
        c = self.concentration
        return T.where(c < 0.5, self.scale**2 / ((1 - c) ** 2 * (1 - 2 * c)), math.inf)

    @property
    def mode(self) -> Tensor:
        return self.loc

    def entropy(self) -> Tensor:
        return T.log(self.scale) + self.concentration + 1


__all__ = [
    "Beta", "Cauchy", "Chi2", "ContinuousBernoulli", "Exponential", "FisherSnedecor", "Gamma", "GeneralizedPareto", "Laplace", "Normal",
    "StudentT", "Uniform", "VonMises",
]  # fmt: skip
