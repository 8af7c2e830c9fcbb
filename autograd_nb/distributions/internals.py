"""What programs take from the inside of PyTorch's distributions: the parts that these are made of there, and exponential families' natural parameters."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from . import composed, continuous, discrete, gammas, multivariate, relaxed, transforms
from .common import T, probs_to_logits
from .distribution import Binary


def _given(d: Any) -> Any:
    """Return the parameter that was given, a probability or its logit."""
    return d.__dict__.get("probs", d.__dict__.get("logits"))


def _monotone(d: Any, value: Any) -> Any:
    """Return a probability, or 1 less it where the transforms turn the line around."""
    sign = math.prod(t.sign for t in d.transforms)
    return value if sign == 1 else sign * (value - 0.5) + 0.5


def _gamma_normalizer(x: Any, y: Any) -> Any:
    return T.lgamma(x + 1) + (x + 1) * T.log(-y.reciprocal())


def _proposal_r(d: Any) -> Any:
    """Return the parameter of the density from which angles are proposed (Best and Fisher, 1979)."""
    kappa = d.concentration.double()
    tau = 1 + (1 + 4 * kappa**2).sqrt()
    rho = (tau - (2 * tau).sqrt()) / (2 * kappa)
    return T.where(kappa < 1e-5, 1 / kappa + kappa, (1 + rho**2) / (2 * rho))


def _continuous_bernoulli(x: Any) -> Any:
    """Return ln((eˣ − 1)/x), near 0 by its Taylor series."""
    far = (x <= -0.001) | (x > 0.001)  # where probs are outside (0.499, 0.501), as the density has it
    cut = T.where(far, x, -0.001)
    return T.where(far, T.log(T.abs(T.expm1(cut))) - T.log(T.abs(cut)), 0.5 * x + x.pow(2) / 24.0 - x.pow(4) / 2880.0)


def _wishart_normalizer(x: Any, y: Any) -> Any:
    p = x.shape[-1]
    shape = y + (p + 1) / 2
    return shape * (-T.linalg.slogdet(-2 * x).logabsdet + math.log(2) * p) + T.mvlgamma(shape, p=p)


#: family -> its natural parameters, and the logarithm by which densities in them are normalized
_FAMILIES: dict[type, tuple[Callable[[Any], tuple[Any, ...]], Callable[..., Any]]] = {
    discrete.Bernoulli: (lambda d: (T.logit(d.probs),), lambda x: T.log(1 + T.exp(x))),
    discrete.Poisson: (lambda d: (T.log(d.rate),), T.exp),
    continuous.Normal: (
        lambda d: (d.loc / d.scale.pow(2), -0.5 * d.scale.pow(2).reciprocal()), lambda x, y: -0.25 * x.pow(2) / y + 0.5 * T.log(-math.pi / y),
    ),
    continuous.Exponential: (lambda d: (-d.rate,), lambda x: -T.log(-x)),
    continuous.ContinuousBernoulli: (lambda d: (probs_to_logits(d.probs, is_binary=True),), _continuous_bernoulli),
    gammas.Gamma: (lambda d: (d.concentration - 1, -d.rate), _gamma_normalizer),
    gammas.Beta: (lambda d: (d.concentration1, d.concentration0), lambda x, y: T.lgamma(x) + T.lgamma(y) - T.lgamma(x + y)),
    gammas.Dirichlet: (lambda d: (d.concentration,), lambda x: x.lgamma().sum(-1) - T.lgamma(x.sum(-1))),
    multivariate.Wishart: (lambda d: (-d.precision_matrix / 2, (d.df - d._event_shape[-1] - 1) / 2), _wishart_normalizer),
}  # fmt: skip
#: properties
_PARTS: dict[type, dict[str, Callable[[Any], Any]]] = {
    Binary: {"_param": _given},
    gammas.Beta: {"_dirichlet": lambda d: gammas.Dirichlet(T.stack([d.concentration1, d.concentration0], -1), validate_args=False)},
    gammas.StudentT: {"_chi2": lambda d: gammas.Chi2(d.df, validate_args=False)},
    gammas.FisherSnedecor: {
        "_gamma1": lambda d: gammas.Gamma(d.df1 * 0.5, d.df1, validate_args=False),
        "_gamma2": lambda d: gammas.Gamma(d.df2 * 0.5, d.df2, validate_args=False),
    },
    discrete.NegativeBinomial: {"_gamma": lambda d: gammas.Gamma(d.total_count, T.exp(-d.logits), validate_args=False)},
    discrete.OfCategories: {"_param": lambda d: d._categorical._param},
    discrete.Multinomial: {"_binomial": lambda d: discrete.Binomial(d.total_count, d.probs, validate_args=False)},
    multivariate.LowRankMultivariateNormal: {"_unbroadcasted_cov_factor": lambda d: d.cov_factor, "_unbroadcasted_cov_diag": lambda d: d.cov_diag},
    multivariate.Wishart: {"_unbroadcasted_scale_tril": lambda d: d.scale_tril},
    continuous.VonMises: {"_loc": lambda d: d.loc.double(), "_concentration": lambda d: d.concentration.double(), "_proposal_r": _proposal_r},
    composed.MixtureSameFamily: {"_event_ndims": lambda d: len(d.event_shape)},
    transforms.CatTransform: {"length": lambda t: sum(t.lengths)},
}
#: methods
_METHODS: dict[type, dict[str, Callable[..., Any]]] = {
    composed.TransformedDistribution: {"_monotonize_cdf": _monotone},
    composed.MixtureSameFamily: {"_pad_mixture_dimensions": lambda d, x: x.reshape((*x.shape, *(1,) * len(d.event_shape)))},
    continuous.GeneralizedPareto: {
        "_z": lambda d, x: (x - d.loc) / d.scale, "log_survival_function": lambda d, x: T.log1p(-d.cdf(x)), "log_cdf": lambda d, x: d.cdf(x).log(),
    },
    transforms.StackTransform: {"_slice": lambda t, z: list(z.unbind(t.dim))},
    Binary: {"_new": lambda d, *a, **k: d._param.new(*a, **k)},
    discrete.Categorical: {"_new": lambda d, *a, **k: d._param.new(*a, **k)},
    discrete.OfCategories: {"_new": lambda d, *a, **k: d._param.new(*a, **k)},
    relaxed.ExpRelaxedCategorical: {"_new": lambda d, *a, **k: d._param.new(*a, **k)},
}  # fmt: skip


def _normalizer(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda self, *parameters: function(*parameters)


for _cls, (_natural, _log) in _FAMILIES.items():
    _PARTS.setdefault(_cls, {})["_natural_params"] = _natural
    if _cls.__name__ not in ("Beta", "Dirichlet", "Poisson"):  # theirs is not 0, and PyTorch does not give it
        _PARTS[_cls]["_mean_carrier_measure"] = lambda d: 0
    _METHODS.setdefault(_cls, {})["_log_normalizer"] = _normalizer(_log)
for _cls, _parts in _PARTS.items():
    for _name, _of in _parts.items():
        setattr(_cls, _name, property(_of))
for _cls, _methods in _METHODS.items():
    for _name, _method in _methods.items():
        setattr(_cls, _name, _method)
