"""Continuous distributions of one number."""

from __future__ import annotations

import math
from typing import Any

from .. import dtypes
from ..graph.modes import no_grad
from ..ops.core.registry import OPS
from ..tensor import Tensor
from . import constraints
from .common import F, T, _standard_normal, broadcast_all, clamp_probs, lazy_property, logits_to_probs
from .distribution import Binary, Distribution, ExponentialFamily, all_hold

EULER = 0.57721566490153286061


def _open_uniform(shape: Any, like: Tensor) -> Tensor:
    """Return uniform numbers in (0, 1), kept away from both ends by the dtype."""
    info = dtypes.finfo(like.dtype)
    return T.rand(shape, dtype=like.dtype).clamp(min=info.tiny, max=1 - info.eps / 2)


class _LocationScale(Distribution):
    """A density on the real line that is moved by ``loc`` and stretched by ``scale``, with its peak at ``loc``."""

    loc: Tensor
    scale: Tensor

    arg_constraints: Any = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    has_rsample = True

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None):
        self.loc, self.scale = broadcast_all(loc, scale)
        super().__init__(self.loc.shape, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return self.loc

    @property
    def mode(self) -> Tensor:
        return self.loc


class Normal(_LocationScale, ExponentialFamily):
    """N(loc, scale²): ln p = −(x − loc)²/(2 scale²) − ln scale − ½ ln 2π.

    >>> torch.distributions.Normal(0.0, 1.0).log_prob(torch.tensor([0.0, 1.0]))
    tensor([-0.9189, -1.4189])
    """

    @property
    def stddev(self) -> Tensor:
        return self.scale

    @property
    def variance(self) -> Tensor:
        return self.scale.square()

    def sample(self, sample_shape: Any = ()) -> Tensor:
        with no_grad():
            shape = self._extended_shape(sample_shape)
            return T.normal(self.loc.expand(shape), self.scale.expand(shape))

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        return self.loc + _standard_normal(shape, self.loc.dtype, self.loc.device) * self.scale

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
    """Uniform on [low, high); Uniform(0., 4.).mean = tensor(2.)."""

    low: Tensor
    high: Tensor

    arg_constraints: Any = {"low": constraints.dependent(), "high": constraints.dependent()}
    has_rsample = True

    def __init__(self, low: Any, high: Any, validate_args: bool | None = None):
        self.low, self.high = broadcast_all(low, high)
        super().__init__(self.low.shape, validate_args=validate_args)
        if self._validate_args and not all_hold(self.low < self.high):
            raise ValueError("Uniform is not defined when low>= high")

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self) -> Any:
        """Return the interval [low, high]."""
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
    """p = rate·e^(−rate·x) for x ≥ 0; Exponential(2.).mean = 0.5000."""

    rate: Tensor

    arg_constraints: Any = {"rate": constraints.positive}
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


class Laplace(_LocationScale):
    """p = e^(−|x − loc|/scale) / (2 scale); Laplace(0., 1.).variance = tensor(2.)."""

    @property
    def variance(self) -> Tensor:
        return 2 * self.scale.pow(2)

    @property
    def stddev(self) -> Tensor:
        return 2**0.5 * self.scale

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        info = dtypes.finfo(self.loc.dtype)
        u = T.empty(self._extended_shape(sample_shape), dtype=self.loc.dtype).uniform_(info.eps - 1, 1)
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


class Cauchy(_LocationScale):
    """p = 1 / (π scale (1 + ((x − loc)/scale)²)); Cauchy(0., 1.).log_prob([0.]) = [-1.1447]."""

    @property
    def mean(self) -> Tensor:
        return T.full_like(self.loc, math.nan)

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


class VonMises(Distribution):
    """p = e^(κ cos(x − loc)) / (2π I₀(κ)) on the circle; VonMises(0., 1.).log_prob([0.]) = [-1.0738]."""

    loc: Tensor
    concentration: Tensor

    arg_constraints: Any = {"loc": constraints.real, "concentration": constraints.positive}
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
        """Draw by Best and Fisher's rejection (1979), vectorised: rounds until every place has been accepted."""
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
            x = T.where(accept, (u[2] - 0.5).sign() * f.clamp(min=-1, max=1).acos(), x)
            done = done | accept
        return ((x + math.pi + self.loc.detach()) % (2 * math.pi) - math.pi).to(self.loc.dtype)


class ContinuousBernoulli(Binary, ExponentialFamily):
    """p ∝ λ^x (1−λ)^(1−x) on [0, 1] (Loaiza-Ganem and Cunningham 2019); ContinuousBernoulli(0.3).mean = 0.4302."""

    arg_constraints: Any = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.unit_interval
    has_rsample = True

    def __init__(
        self, probs: Any = None, logits: Any = None, lims: tuple[float, float] = (0.499, 0.501),
        validate_args: bool | None = None,
    ):  # fmt: skip
        given = self._parameters(probs, logits)
        if probs is not None:
            self.probs = clamp_probs(given)
        self._lims = lims
        super().__init__(given.shape, validate_args=validate_args)

    @lazy_property
    def probs(self) -> Tensor:
        """Return the parameter λ."""
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
        return self._log_norm() - F.binary_cross_entropy_with_logits(logits, value, reduction="none")

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

    loc: Tensor
    scale: Tensor
    concentration: Tensor

    arg_constraints: Any = {"loc": constraints.real, "scale": constraints.positive, "concentration": constraints.real}
    has_rsample = True

    def __init__(self, loc: Any, scale: Any, concentration: Any, validate_args: bool | None = None):
        self.loc, self.scale, self.concentration = broadcast_all(loc, scale, concentration)
        super().__init__(self.loc.shape, validate_args=validate_args)

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self) -> Any:
        """Return x ≥ loc; for a negative concentration up to loc − scale/concentration."""
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
        return T.where(self.concentration < 1, self.loc + self.scale / (1 - self.concentration), math.nan)

    @property
    def variance(self) -> Tensor:
        c = self.concentration
        return T.where(c < 0.5, self.scale**2 / ((1 - c) ** 2 * (1 - 2 * c)), math.nan)

    @property
    def mode(self) -> Tensor:
        return self.loc

    def entropy(self) -> Tensor:
        return T.log(self.scale) + self.concentration + 1


__all__ = ["Cauchy", "ContinuousBernoulli", "Exponential", "GeneralizedPareto", "Laplace", "Normal", "Uniform", "VonMises"]
