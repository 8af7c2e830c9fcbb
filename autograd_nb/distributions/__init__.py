"""Probability distributions with samples, densities, entropies and gradients through samples.

Source: https://docs.pytorch.org/docs/stable/distributions.html
"""

import sys as _sys
import typing as _typing

from ..ops.core.registry import show_examples as _show_examples
from . import (
    common as common, composed as composed, constraint_registry as constraint_registry, constraints as constraints,
    continuous as continuous, discrete as discrete, distribution as distribution, gammas as gammas, internals as internals, kl as kl,
    multivariate as multivariate, relaxed as relaxed, transformed as transformed, transforms as transforms,
)
from .composed import *  # noqa: F403
from .composed import __all__ as _composed
from .constraint_registry import biject_to as biject_to, transform_to as transform_to
from .continuous import *  # noqa: F403
from .continuous import __all__ as _continuous
from .discrete import *  # noqa: F403
from .discrete import __all__ as _discrete
from .distribution import Distribution as Distribution, ExponentialFamily as ExponentialFamily
from .gammas import *  # noqa: F403
from .gammas import __all__ as _gammas
from .kl import kl_divergence as kl_divergence, register_kl as register_kl
from .multivariate import *  # noqa: F403
from .multivariate import __all__ as _multivariate
from .relaxed import *  # noqa: F403
from .relaxed import __all__ as _relaxed
from .transformed import *  # noqa: F403
from .transformed import __all__ as _transformed
from .transforms import *  # noqa: F403
from .transforms import __all__ as _transforms

if not _typing.TYPE_CHECKING:  # a checker goes by the imports
    __all__ = [
        "Distribution", "ExponentialFamily", "biject_to", "constraints", "kl_divergence", "register_kl", "transform_to", "transforms",
        *_composed, *_continuous, *_discrete, *_gammas, *_multivariate, *_relaxed, *_transformed, *_transforms,
    ]  # fmt: skip

_show_examples(globals(), "distributions")

# PyTorch has a module for each: `from torch.distributions.normal import Normal`
for _name, _module in (
    *((n, continuous) for n in ("normal", "uniform", "exponential", "laplace", "cauchy", "continuous_bernoulli", "generalized_pareto", "von_mises")),
    *((n, gammas) for n in ("gamma", "beta", "chi2", "dirichlet", "studentT", "fishersnedecor")),
    *((n, discrete) for n in ("bernoulli", "binomial", "categorical", "geometric", "multinomial", "negative_binomial", "poisson", "one_hot_categorical")),
    *((n, multivariate) for n in ("multivariate_normal", "lowrank_multivariate_normal", "wishart", "lkj_cholesky")),
    *((n, composed) for n in ("independent", "transformed_distribution", "mixture_same_family")),
    *((n, transformed) for n in ("log_normal", "half_normal", "half_cauchy", "gumbel", "weibull", "pareto", "kumaraswamy", "logistic_normal", "inverse_gamma")),
    *((n, relaxed) for n in ("relaxed_bernoulli", "relaxed_categorical")),
    ("utils", common), ("exp_family", distribution),
):  # fmt: skip
    _sys.modules.setdefault(f"{__name__}.{_name}", _module)
    globals().setdefault(_name, _module)
