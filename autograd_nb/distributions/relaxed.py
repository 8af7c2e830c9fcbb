"""Continuous relaxations of discrete distributions, at a temperature."""

from __future__ import annotations

import math
from typing import Any

from ..shapes import Size
from ..tensor import Tensor
from . import constraints
from .common import T, broadcast_all, clamp_probs, part
from .composed import TransformedDistribution
from .continuous import _open_uniform
from .discrete import Categorical, OfCategories
from .distribution import Binary
from .transforms import ExpTransform, SigmoidTransform


class _Relaxed(TransformedDistribution):
    """A distribution with the parameters of the distribution that it transforms."""

    has_rsample = True

    temperature: Any = part("base_dist.temperature", "Return the temperature.")
    logits: Any = part("base_dist.logits", "ln p/(1 − p), or ln p of each category.")
    probs: Any = part("base_dist.probs", "Return p.")


class LogitRelaxedBernoulli(Binary):
    """The logit of `RelaxedBernoulli`."""

    arg_constraints: Any = {"probs": constraints.unit_interval, "logits": constraints.real}
    support: Any = constraints.real
    has_rsample = True

    def __init__(self, temperature: Any, probs: Any = None, logits: Any = None, validate_args: bool | None = None):
        self.temperature = temperature
        super().__init__(self._parameters(probs, logits).shape, validate_args=validate_args)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        probs = clamp_probs(self.probs.expand(shape))
        u = clamp_probs(T.rand(shape, dtype=probs.dtype))
        return (u.log() - (-u).log1p() + probs.log() - (-probs).log1p()) / self.temperature

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        logits, value = broadcast_all(self.logits, value)
        diff = logits - value.mul(self.temperature)
        t = self.temperature
        log_t = t.log() if isinstance(t, Tensor) else math.log(t)
        return log_t + diff - 2 * diff.exp().log1p()


class RelaxedBernoulli(_Relaxed):
    """Bernoulli made continuous, at a temperature (Maddison et al. 2017); RelaxedBernoulli(0.5, 0.5).sample().shape = torch.Size([])."""

    arg_constraints: Any = {"probs": constraints.unit_interval, "logits": constraints.real}
    support: Any = constraints.unit_interval  # type: ignore[assignment]

    def __init__(self, temperature: Any, probs: Any = None, logits: Any = None, validate_args: bool | None = None):
        super().__init__(LogitRelaxedBernoulli(temperature, probs, logits), SigmoidTransform(), validate_args=validate_args)


class ExpRelaxedCategorical(OfCategories):
    """The logarithm of `RelaxedOneHotCategorical`."""

    arg_constraints: Any = {"probs": constraints.simplex, "logits": constraints.real_vector}
    support: Any = constraints.real_vector
    has_rsample = True

    def __init__(self, temperature: Any, probs: Any = None, logits: Any = None, validate_args: bool | None = None):
        self._categorical = Categorical(probs, logits)
        self.temperature = temperature
        super().__init__(self._categorical.batch_shape, (self._categorical._num_events,), validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        new = object.__new__(type(self))
        new._categorical, new.temperature = self._categorical.expand(batch_shape), self.temperature
        new._batch_shape, new._event_shape = Size(batch_shape), self._event_shape
        return new

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        gumbels = -(-clamp_probs(_open_uniform(shape, self.logits)).log()).log()
        scores = (self.logits + gumbels) / self.temperature
        return scores - scores.logsumexp(dim=-1, keepdim=True)

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        k = self._event_shape[0]
        logits, value = broadcast_all(self.logits, value)
        t = self.temperature if isinstance(self.temperature, Tensor) else T.tensor(float(self.temperature), dtype=logits.dtype)
        scale = T.full_like(t, float(k)).lgamma() - t.log().mul(-(k - 1))
        score = logits - value.mul(t)
        return (score - score.logsumexp(dim=-1, keepdim=True)).sum(-1) + scale


class RelaxedOneHotCategorical(_Relaxed):
    """OneHotCategorical made continuous, at a temperature (Jang et al. 2017); RelaxedOneHotCategorical(0.5, [0.3, 0.7]).sample().shape = torch.Size([2])."""

    arg_constraints: Any = {"probs": constraints.simplex, "logits": constraints.real_vector}
    support: Any = constraints.simplex  # type: ignore[assignment]

    def __init__(self, temperature: Any, probs: Any = None, logits: Any = None, validate_args: bool | None = None):
        super().__init__(
            ExpRelaxedCategorical(temperature, probs, logits, validate_args=validate_args),
            ExpTransform(),
            validate_args=validate_args,
        )


__all__ = ["RelaxedBernoulli", "RelaxedOneHotCategorical"]
