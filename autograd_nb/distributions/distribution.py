"""The base of all distributions."""

from __future__ import annotations

from typing import Any

from .. import launch
from ..autograd.api import grad
from ..errors import warn_user
from ..graph.modes import no_grad, recorded
from ..shapes import Size
from ..tensor import Tensor
from . import constraints
from .common import broadcast_all, lazy_property, logits_to_probs, probs_to_logits


def _refuse(flag: Any) -> None:
    if not flag[0]:
        raise ValueError(
            "Expected parameters and values of a distribution to satisfy their constraints, but found invalid values"
        )


def all_hold(flags: Tensor) -> bool:
    """Return whether all are true. A captured function tests it at each run, and where it fails runs eagerly to say what is wrong."""
    every = flags.all()
    if launch.observer() is None:
        return bool(every.item())
    try:
        launch.check(_refuse, every._data)
    except ValueError:
        return False
    return True


class Distribution:
    """Draws of shape ``sample_shape + batch_shape + event_shape``; ``batch_shape`` counts independent ones, an event is one value.

    Source: https://docs.pytorch.org/docs/stable/distributions.html

    >>> torch.distributions.Normal(torch.zeros(2), 1.0).sample((3,)).shape
    torch.Size([3, 2])
    """

    has_rsample = False
    has_enumerate_support = False
    _validate_args = __debug__
    arg_constraints: Any = {}
    support: Any = None

    def __init__(self, batch_shape: Any = (), event_shape: Any = (), validate_args: bool | None = None):
        self._batch_shape, self._event_shape = Size(batch_shape), Size(event_shape)
        if validate_args is not None:
            self._validate_args = validate_args
        if self._validate_args:
            self._check_arguments()
        super().__init__()  # of another base class

    def _check_arguments(self) -> None:
        for name, constraint in self.arg_constraints.items():
            if constraints.is_dependent(constraint) or (name not in vars(self) and isinstance(getattr(type(self), name), lazy_property)):
                continue  # what is computed later has been checked with what it is computed from
            value = getattr(self, name)
            if isinstance(value, Tensor) and not all_hold(constraint.check(value)):
                raise ValueError(
                    f"Expected parameter {name} ({type(value).__name__} of shape {tuple(value.shape)}) of distribution {self!r} to satisfy "
                    f"the constraint {constraint!r}, but found invalid values:\n{value}"
                )

    @staticmethod
    def set_default_validate_args(value: bool) -> None:
        """Say whether new distributions check their arguments."""
        if value not in (True, False):
            raise ValueError(f"set_default_validate_args expects True or False (value={value!r})")
        Distribution._validate_args = value

    @property
    def batch_shape(self) -> Size:
        """Return the shape of independent distributions."""
        return self._batch_shape

    @property
    def event_shape(self) -> Size:
        """Return the shape of one value."""
        return self._event_shape

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        """Return the same distribution with its parameters broadcast to a batch shape."""
        new = object.__new__(type(self)) if _instance is None else _instance
        shape = Size(batch_shape)
        for name, value in vars(self).items():
            if isinstance(value, Tensor):
                event = value.ndim - len(self.batch_shape)
                new.__dict__[name] = (
                    value.expand(shape + value.shape[value.ndim - event :]) if event >= 0 else value.expand(shape)
                )
            else:
                new.__dict__[name] = value
        new._batch_shape, new._event_shape = shape, self._event_shape
        return new

    def _get_checked_instance(self, cls: type, _instance: Any = None) -> Any:
        """Return the object that `expand` of a program's distribution fills. NotImplementedError where a subclass has an ``__init__`` of its own."""
        if _instance is None and type(self).__init__ != cls.__init__:  # type: ignore[misc]
            raise NotImplementedError(
                f"Subclass {type(self).__name__} of {cls.__name__} that defines a custom __init__ method must also define a custom .expand() method."
            )
        return object.__new__(type(self)) if _instance is None else _instance

    # ---- what distributions say
    @property
    def mean(self) -> Tensor:
        """Return the mean E[X]."""
        raise NotImplementedError

    @property
    def mode(self) -> Tensor:
        """Return the likeliest value."""
        raise NotImplementedError(f"{type(self)} does not implement mode")

    @property
    def variance(self) -> Tensor:
        """Return E[(X − E[X])²]."""
        raise NotImplementedError

    @property
    def stddev(self) -> Tensor:
        """Return the root of the variance."""
        return self.variance.sqrt()

    def sample(self, sample_shape: Any = ()) -> Tensor:
        """Return draws, outside the graph."""
        with no_grad():
            return self.rsample(sample_shape)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        """Return draws through which gradients flow to the parameters."""
        raise NotImplementedError

    def sample_n(self, n: int) -> Tensor:
        """Return ``sample((n,))``; PyTorch has deprecated it."""
        warn_user("sample_n will be deprecated. Use .sample((n,)) instead", UserWarning)
        return self.sample((n,))

    def log_prob(self, value: Tensor) -> Tensor:
        """Return ln of the density or probability at ``value``."""
        raise NotImplementedError

    def cdf(self, value: Tensor) -> Tensor:
        """Return P(X ≤ value)."""
        raise NotImplementedError

    def icdf(self, value: Tensor) -> Tensor:
        """Return the value below which X falls with a given probability."""
        raise NotImplementedError

    def enumerate_support(self, expand: bool = True) -> Tensor:
        """Return all values, along the first dim."""
        raise NotImplementedError

    def entropy(self) -> Tensor:
        """Return the entropy −E[ln p(X)]."""
        raise NotImplementedError

    def perplexity(self) -> Tensor:
        """Return the perplexity e^entropy."""
        return self.entropy().exp()

    # ---- help for subclasses
    def _extended_shape(self, sample_shape: Any = ()) -> Size:
        return Size(sample_shape) + self._batch_shape + self._event_shape

    def _validate_sample(self, value: Tensor) -> None:
        if not self._validate_args:
            return
        if not isinstance(value, Tensor):
            raise ValueError("The value argument to log_prob must be a Tensor")
        event = len(self._event_shape)
        if event and value.shape[value.ndim - event :] != self._event_shape:
            raise ValueError(
                f"The right-most size of value must match event_shape: {tuple(value.shape)} vs {tuple(self._event_shape)}."
            )
        for i, j in zip(reversed(value.shape), reversed(self._batch_shape + self._event_shape), strict=False):
            if i != 1 and j != 1 and i != j:
                raise ValueError(
                    f"Value is not broadcastable with batch_shape+event_shape: {tuple(value.shape)} vs "
                    f"{tuple(self._batch_shape + self._event_shape)}."
                )
        support = self.support
        if support is not None and not constraints.is_dependent(support) and not all_hold(support.check(value)):
            raise ValueError(
                f"Expected value argument ({type(value).__name__} of shape {tuple(value.shape)}) to be within the support ({support!r}) "
                f"of the distribution {self!r}, but found invalid values:\n{value}"
            )

    def __repr__(self) -> str:
        names = [n for n in self.arg_constraints if n in self.__dict__]
        shown = [
            f"{n}: {v if (v := self.__dict__[n]).numel() == 1 else v.size()}"
            for n in names
            if isinstance(self.__dict__[n], Tensor)
        ]
        return f"{type(self).__name__}({', '.join(shown)})"


class ExponentialFamily(Distribution):
    """Distributions of an exponential family: p = exp(θ·t(x) − F(θ) + k(x)).

    A subclass gives ``_natural_params`` θ, ``_log_normalizer`` F and ``_mean_carrier_measure`` E[k(X)], by which it has an entropy and a
    `kl_divergence` (Nielsen and Nock, 2010).

    >>> issubclass(torch.distributions.Normal, torch.distributions.ExponentialFamily)
    True
    """

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        raise NotImplementedError

    @property
    def _mean_carrier_measure(self) -> float:
        raise NotImplementedError

    def _log_normalizer(self, *natural_params: Tensor) -> Tensor:
        raise NotImplementedError

    def _normalized(self) -> tuple[list[Tensor], Tensor, tuple[Any, ...]]:
        """Return θ as leaves, F(θ) and its gradient, the mean of t(X)."""
        with recorded():
            natural = [p.detach().requires_grad_() for p in self._natural_params]
            log = self._log_normalizer(*natural)
            return natural, log, grad(log.sum(), natural, create_graph=True)

    def entropy(self) -> Tensor:
        natural, log, means = self._normalized()
        result = log - self._mean_carrier_measure
        for p, mean in zip(natural, means, strict=True):
            result = result - (p * mean).reshape((*self._batch_shape, -1)).sum(-1)
        return result


def one_of(probs: Any, logits: Any) -> None:
    """Raise ValueError unless one of the two is given, and the other is None."""
    if (probs is None) == (logits is None):
        raise ValueError("Either `probs` or `logits` must be specified, but not both.")


class Binary(Distribution):
    """Distributions given by a probability or its logit."""

    total_count: Tensor

    def _parameters(self, probs: Any, logits: Any, *count: Any) -> Tensor:
        """Keep what is given, with a count of one shape and dtype with it; returns that."""
        one_of(probs, logits)
        *counts, given = broadcast_all(*count, logits if probs is None else probs)
        if probs is None:
            self.logits = given
        else:
            self.probs = given
        for total in counts:
            self.total_count = total.to(given.dtype)
        return given

    @lazy_property
    def logits(self) -> Tensor:
        """Return ln p/(1 − p)."""
        return probs_to_logits(self.probs, is_binary=True)

    @lazy_property
    def probs(self) -> Tensor:
        """Return the probability p."""
        return logits_to_probs(self.logits, is_binary=True)

    @property
    def param_shape(self) -> Size:
        """Return the shape of the parameter."""
        return self.__dict__.get("probs", self.__dict__.get("logits")).shape  # type: ignore[union-attr]
