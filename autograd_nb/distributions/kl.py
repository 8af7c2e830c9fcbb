"""KL(p ‖ q) = E_p[ln p − ln q], by pairs of families.

Source: https://docs.pytorch.org/docs/stable/distributions.html#module-torch.distributions.kl
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from ..tensor import Tensor
from .common import T, sum_rightmost
from .composed import Independent, TransformedDistribution
from .continuous import EULER, Cauchy, ContinuousBernoulli, Exponential, Laplace, Normal, Uniform
from .discrete import Bernoulli, Binomial, Categorical, Geometric, OneHotCategorical, Poisson
from .distribution import Distribution, ExponentialFamily
from .gammas import Beta, Dirichlet, Gamma
from .multivariate import LowRankMultivariateNormal, MultivariateNormal, _diagonal, _solve_lower
from .transformed import Gumbel, HalfNormal, LogNormal, Pareto

_REGISTRY: dict[tuple[type, type], Callable[[Any, Any], Tensor]] = {}


def register_kl(type_p: type, type_q: type) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Decorator: enter a function of (p, q) for two families, subclasses included.

    >>> class Point(torch.distributions.Normal): pass
    >>> @torch.distributions.register_kl(Point, Point)
    ... def kl_point(p, q): return torch.zeros(())
    >>> torch.distributions.kl_divergence(Point(0.0, 1.0), Point(1.0, 1.0))
    tensor(0.)
    """
    for name, family in (("type_p", type_p), ("type_q", type_q)):
        if not isinstance(family, type):  # packages register bases of their own, which are no distributions of this library
            raise TypeError(f"Expected {name} to be a Distribution subclass but got {family}")

    def enter(function: Callable[..., Any]) -> Callable[..., Any]:
        _REGISTRY[type_p, type_q] = function
        return function

    return enter


def kl_divergence(p: Distribution, q: Distribution) -> Tensor:
    """Return KL(p ‖ q) for each member of the batch. NotImplementedError for a pair without a formula.

    >>> from autograd_nb.distributions import Normal, kl_divergence
    >>> kl_divergence(Normal(1.0, 1.0), Normal(0.0, 1.0))
    tensor(0.5000)
    """
    found = [(a, b) for a, b in _REGISTRY if isinstance(p, a) and isinstance(q, b)]
    if not found:
        raise NotImplementedError(f"No KL(p || q) is implemented for p type {type(p).__name__} and q type {type(q).__name__}")
    # the closest ancestors
    a, b = min(found, key=lambda pair: (type(p).__mro__.index(pair[0]), type(q).__mro__.index(pair[1])))
    return _REGISTRY[a, b](p, q)


@register_kl(Normal, Normal)
def _normal(p: Normal, q: Normal) -> Tensor:
    ratio = (p.scale / q.scale).pow(2)
    return 0.5 * (ratio + ((p.loc - q.loc) / q.scale).pow(2) - 1 - ratio.log())


@register_kl(ExponentialFamily, ExponentialFamily)
def _kl_expfamily_expfamily(p: ExponentialFamily, q: ExponentialFamily) -> Tensor:
    if type(p) is not type(q):
        raise NotImplementedError(
            f"The cross KL-divergence between different exponential families cannot be computed ({type(p).__name__} and {type(q).__name__})"
        )
    natural, log, means = p._normalized()
    result = q._log_normalizer(*q._natural_params) - log
    for a, b, mean in zip(natural, q._natural_params, means, strict=True):
        result = result - sum_rightmost((b - a) * mean, len(q.event_shape))
    return result


@register_kl(Bernoulli, Bernoulli)
def _bernoulli(p: Bernoulli, q: Bernoulli) -> Tensor:
    t1 = T.where(p.probs == 0, 0.0, p.probs * ((-q.logits).exp().log1p() - (-p.logits).exp().log1p()))
    t2 = T.where(p.probs == 1, 0.0, (1 - p.probs) * (q.logits.exp().log1p() - p.logits.exp().log1p()))
    t1 = T.where((q.probs == 0) & (p.probs != 0), math.inf, t1)
    t2 = T.where((q.probs == 1) & (p.probs != 1), math.inf, t2)
    return t1 + t2


@register_kl(Categorical, Categorical)
def _categorical(p: Categorical, q: Categorical) -> Tensor:
    t = p.probs * (p.logits - q.logits)
    t = T.where((q.probs == 0).expand(t.shape), math.inf, t)
    return T.where((p.probs == 0).expand(t.shape), 0.0, t).sum(-1)


@register_kl(OneHotCategorical, OneHotCategorical)
def _one_hot(p: OneHotCategorical, q: OneHotCategorical) -> Tensor:
    return _categorical(p._categorical, q._categorical)


@register_kl(Beta, Beta)
def _beta(p: Beta, q: Beta) -> Tensor:
    a, b = p.concentration1 + p.concentration0, q.concentration1 + q.concentration0
    t1 = q.concentration1.lgamma() + q.concentration0.lgamma() + a.lgamma()
    t2 = p.concentration1.lgamma() + p.concentration0.lgamma() + b.lgamma()
    t3 = (p.concentration1 - q.concentration1) * T.digamma(p.concentration1)
    t4 = (p.concentration0 - q.concentration0) * T.digamma(p.concentration0)
    return t1 - t2 + t3 + t4 + (b - a) * T.digamma(a)


@register_kl(Dirichlet, Dirichlet)
def _dirichlet(p: Dirichlet, q: Dirichlet) -> Tensor:
    total = p.concentration.sum(-1)
    t1 = total.lgamma() - q.concentration.sum(-1).lgamma()
    t2 = (p.concentration.lgamma() - q.concentration.lgamma()).sum(-1)
    t3 = p.concentration - q.concentration
    return t1 - t2 + (t3 * (p.concentration.digamma() - total.digamma().unsqueeze(-1))).sum(-1)


@register_kl(Exponential, Exponential)
def _exponential(p: Exponential, q: Exponential) -> Tensor:
    ratio = q.rate / p.rate
    return ratio - 1 - ratio.log()


@register_kl(Gamma, Gamma)
def _gamma(p: Gamma, q: Gamma) -> Tensor:
    t1 = q.concentration * (p.rate / q.rate).log()
    t2 = T.lgamma(q.concentration) - T.lgamma(p.concentration)
    t3 = (p.concentration - q.concentration) * T.digamma(p.concentration)
    return t1 + t2 + t3 + (q.rate - p.rate) * (p.concentration / p.rate)


@register_kl(Laplace, Laplace)
def _laplace(p: Laplace, q: Laplace) -> Tensor:
    ratio, apart = p.scale / q.scale, (p.loc - q.loc).abs()
    return -ratio.log() + apart / q.scale + ratio * T.exp(-apart / p.scale) - 1


@register_kl(Uniform, Uniform)
def _uniform(p: Uniform, q: Uniform) -> Tensor:
    result = ((q.high - q.low) / (p.high - p.low)).log()
    return T.where((q.low > p.low) | (q.high < p.high), math.inf, result)


@register_kl(Poisson, Poisson)
def _poisson(p: Poisson, q: Poisson) -> Tensor:
    return p.rate * (p.rate.log() - q.rate.log()) - (p.rate - q.rate)


@register_kl(Geometric, Geometric)
def _geometric(p: Geometric, q: Geometric) -> Tensor:
    return -p.entropy() - T.log1p(-q.probs) / p.probs - q.logits


@register_kl(Binomial, Binomial)
def _binomial(p: Binomial, q: Binomial) -> Tensor:
    kl = p.total_count * (p.probs * (p.logits - q.logits) + (-p.probs).log1p() - (-q.probs).log1p())
    return T.where((p.total_count > q.total_count).expand(kl.shape), math.inf, kl)


@register_kl(Pareto, Pareto)
def _pareto(p: Pareto, q: Pareto) -> Tensor:
    ratio = p.alpha / q.alpha
    result = q.alpha * (p.scale / q.scale).log() + ratio.log() + q.alpha / p.alpha - 1
    return T.where(p.scale < q.scale, math.inf, result)


@register_kl(Cauchy, Cauchy)
def _cauchy(p: Cauchy, q: Cauchy) -> Tensor:
    return ((p.scale + q.scale).pow(2) + (p.loc - q.loc).pow(2)).log() - (4 * p.scale * q.scale).log()


@register_kl(Gumbel, Gumbel)
def _gumbel(p: Gumbel, q: Gumbel) -> Tensor:
    ratio = p.scale / q.scale
    t1, t2 = q.loc / q.scale, p.loc / q.scale
    t3 = ratio * EULER
    return -ratio.log() - t1 + t2 + t3 + T.exp(t1 + (1 + ratio).lgamma() - t2) - (1 + EULER)


@register_kl(HalfNormal, HalfNormal)
def _half_normal(p: HalfNormal, q: HalfNormal) -> Tensor:
    return _normal(p.base_dist, q.base_dist)  # type: ignore[arg-type]


@register_kl(LogNormal, LogNormal)
def _log_normal(p: LogNormal, q: LogNormal) -> Tensor:
    return _normal(p.base_dist, q.base_dist)  # type: ignore[arg-type]


@register_kl(LowRankMultivariateNormal, LowRankMultivariateNormal)
@register_kl(LowRankMultivariateNormal, MultivariateNormal)
@register_kl(MultivariateNormal, LowRankMultivariateNormal)
@register_kl(MultivariateNormal, MultivariateNormal)
def _multivariate(p: Any, q: Any) -> Tensor:
    if p.event_shape != q.event_shape:
        kinds = ["Low Rank " * isinstance(d, LowRankMultivariateNormal) + "Multivariate Normals" for d in (p, q)]
        kinds = [f"two {kinds[0]}"] if kinds[0] == kinds[1] else kinds
        raise ValueError(f"KL-divergence between {' and '.join(kinds)} with different event shapes cannot be computed")
    n = p.event_shape[0]
    lower_p, lower_q = p.scale_tril, q.scale_tril
    batch = T.broadcast_shapes(lower_p.shape[:-2], lower_q.shape[:-2])
    lower_p, lower_q = lower_p.expand((*batch, n, n)), lower_q.expand((*batch, n, n))
    half = _diagonal(lower_q).log().sum(-1) - _diagonal(lower_p).log().sum(-1)
    trace = _solve_lower(lower_q, lower_p).pow(2).sum((-2, -1))
    apart = _solve_lower(lower_q, (q.loc - p.loc).expand((*batch, n)).unsqueeze(-1)).pow(2).sum((-2, -1))
    return half + 0.5 * (trace + apart - n)


@register_kl(Independent, Independent)
def _independent(p: Independent, q: Independent) -> Tensor:
    if p.reinterpreted_batch_ndims != q.reinterpreted_batch_ndims:
        raise NotImplementedError
    return sum_rightmost(kl_divergence(p.base_dist, q.base_dist), p.reinterpreted_batch_ndims)  # type: ignore[no-any-return]


@register_kl(TransformedDistribution, TransformedDistribution)
def _transformed(p: TransformedDistribution, q: TransformedDistribution) -> Tensor:
    if p.transforms != q.transforms or p.event_shape != q.event_shape:
        raise NotImplementedError
    return kl_divergence(p.base_dist, q.base_dist)


def _with_entropy(p_type: type, q_type: type, expected: Callable[[Any, Any], Tensor]) -> None:
    """KL = −H(p) − E_p[ln q], where the expectation has a formula."""
    register_kl(p_type, q_type)(lambda p, q: -p.entropy() - expected(p, q))


def _mean_log(p: Any) -> Tensor:
    """Return E_p[ln x]; for one on an interval that begins below 0 it is nan."""
    if isinstance(p, Beta):
        return T.digamma(p.concentration1) - T.digamma(p.concentration1 + p.concentration0)
    if isinstance(p, Pareto):
        return p.scale.log() + p.alpha.reciprocal()
    if isinstance(p, Exponential):
        return -EULER - p.rate.log()
    return _mean_log_between(p.low, p.high)


def _mean_log_between(low: Tensor, high: Tensor) -> Tensor:
    return (T.xlogy(high, high) - T.xlogy(low, low)) / (high - low) - 1


def _mean_exp(p: Any, t: Tensor) -> Tensor:
    """Return E_p[e^(−x/t)]."""
    if isinstance(p, Normal):
        return T.exp(-p.loc / t + 0.5 * (p.scale / t).pow(2))
    if isinstance(p, Uniform):
        return (T.exp(-p.low / t) - T.exp(-p.high / t)) * t / (p.high - p.low)
    ratio = p.rate / (p.rate + t.reciprocal())
    return ratio.pow(p.concentration) if isinstance(p, Gamma) else ratio


def _in_normal(p: Any, q: Normal) -> Tensor:
    return -0.5 * _LOG_2PI - q.scale.log() - (p.variance + (p.mean - q.loc).pow(2)) / (2 * q.scale.pow(2))


def _in_exponential(p: Any, q: Exponential) -> Tensor:
    return q.rate.log() - q.rate * p.mean


def _in_gamma(p: Any, q: Gamma) -> Tensor:
    return q.concentration * q.rate.log() - q.concentration.lgamma() + (q.concentration - 1) * _mean_log(p) - q.rate * p.mean


def _in_gumbel(p: Any, q: Gumbel) -> Tensor:
    return -(p.mean - q.loc) / q.scale - T.exp(q.loc / q.scale) * _mean_exp(p, q.scale) - q.scale.log()


def _in_laplace(p: Normal, q: Laplace) -> Tensor:
    apart = p.loc - q.loc
    root = math.sqrt(2) * p.scale
    away = root / math.sqrt(math.pi) * T.exp(-(apart / root).pow(2)) + apart * T.erf(apart / root)
    return -(2 * q.scale).log() - away / q.scale


def _in_uniform(p: Any, q: Uniform) -> Tensor:
    return -(q.high - q.low).log()


def _in_continuous_bernoulli(p: Any, q: ContinuousBernoulli) -> Tensor:
    return q._log_norm() + p.mean * q.logits + T.log1p(-q.probs)


def _in_beta(p: Uniform, q: Beta) -> Tensor:
    a, b = q.concentration1, q.concentration0
    logs = (a - 1) * _mean_log(p) + (b - 1) * _mean_log_between(1 - p.high, 1 - p.low)
    return logs - a.lgamma() - b.lgamma() + (a + b).lgamma()


def _in_pareto(p: Uniform, q: Pareto) -> Tensor:
    return q.alpha.log() + q.alpha * q.scale.log() - (q.alpha + 1) * _mean_log(p)


_LOG_2PI = math.log(2 * math.pi)
_family: type
for _family in (Uniform, Laplace, Gumbel, Exponential, Gamma, Beta, Pareto, ContinuousBernoulli):  # two moments do
    _with_entropy(_family, Normal, _in_normal)
for _family in (Gamma, Beta, Pareto, ContinuousBernoulli):
    _with_entropy(_family, Exponential, _in_exponential)
for _family in (Exponential, Beta, Pareto):
    _with_entropy(_family, Gamma, _in_gamma)
for _family in (Normal, Uniform, Exponential, Gamma):
    _with_entropy(_family, Gumbel, _in_gumbel)
_with_entropy(Normal, Laplace, _in_laplace)
for _family in (Beta, ContinuousBernoulli):
    _with_entropy(_family, ContinuousBernoulli, _in_continuous_bernoulli)
_with_entropy(Bernoulli, Poisson, lambda p, q: p.probs * q.rate.log() - q.rate)


def _where_inside(p_type: type, q_type: type, expected: Callable[[Any, Any], Tensor], inside: Callable[[Any, Any], Tensor]) -> None:
    """KL = −H(p) − E_p[ln q] where q is nowhere 0 on p's interval, else ∞."""
    register_kl(p_type, q_type)(lambda p, q: T.where(inside(p, q), -p.entropy() - expected(p, q), math.inf))


def _above_zero(p: Uniform, _q: Distribution) -> Tensor:
    return p.low >= 0


# (with ContinuousBernoulli equal ends count as outside, as in PyTorch)
_where_inside(Beta, Uniform, _in_uniform, lambda p, q: (q.low <= 0) & (q.high >= 1))
_where_inside(ContinuousBernoulli, Uniform, _in_uniform, lambda p, q: (q.low < 0) & (q.high > 1))
_where_inside(Uniform, Beta, _in_beta, lambda p, q: (p.low >= 0) & (p.high <= 1))
_where_inside(Uniform, ContinuousBernoulli, _in_continuous_bernoulli, lambda p, q: (p.low > 0) & (p.high < 1))
_where_inside(Uniform, Exponential, _in_exponential, _above_zero)
_where_inside(Uniform, Gamma, _in_gamma, _above_zero)
_where_inside(Uniform, Pareto, _in_pareto, lambda p, q: p.low >= q.scale)

_BOUNDED = (Beta, ContinuousBernoulli, Pareto, Uniform)
#: Pairs of which q is 0 somewhere that p is not, whatever the parameters.
_INFINITE = {
    Beta: (Pareto,), ContinuousBernoulli: (Pareto,), Poisson: (Bernoulli, Binomial), Pareto: (Beta, ContinuousBernoulli, Uniform),
    Exponential: _BOUNDED, Gamma: _BOUNDED, Normal: (*_BOUNDED, Exponential, Gamma), Laplace: (*_BOUNDED, Exponential, Gamma),
    Gumbel: (*_BOUNDED, Exponential, Gamma),
}  # fmt: skip
for _family, _others in _INFINITE.items():
    for _other in _others:
        register_kl(_family, _other)(lambda p, q: T.full_like(p.mean, math.inf))
