"""Distributions of vectors and matrices."""

from __future__ import annotations

import math
from typing import Any

from ..errors import warn_user
from ..ops.core.registry import OPS
from ..shapes import Size, broadcast_shapes
from ..tensor import Tensor
from . import constraints
from .common import T, _standard_normal, lazy_property
from .distribution import Distribution, ExponentialFamily
from .gammas import Beta


def _cholesky(x: Tensor) -> Tensor:
    return OPS["linalg.cholesky"].call(x)


def _solve_lower(lower: Tensor, b: Tensor) -> Tensor:
    return OPS["linalg.solve_triangular"].call(lower, b, upper=False)


def _diagonal(x: Tensor) -> Tensor:
    return x.diagonal(0, -2, -1)


def _precision_to_lower(precision: Tensor) -> Tensor:
    """Return the Cholesky factor of a precision's inverse."""
    flipped = _cholesky(precision.flip((-2, -1)))
    upper = flipped.flip((-2, -1)).mT
    return _solve_lower(upper, T.eye(precision.shape[-1], dtype=precision.dtype))


_precision_to_scale_tril = _precision_to_lower  # PyTorch's name, which packages take


class MultivariateNormal(Distribution):
    """N(loc, Σ), Σ given as a covariance, a precision, or a lower Cholesky factor; MultivariateNormal([0.], [[4.]]).variance = [4.]."""

    loc: Tensor

    arg_constraints: Any = {
        "loc": constraints.real_vector,
        "covariance_matrix": constraints.positive_definite,
        "precision_matrix": constraints.positive_definite,
        "scale_tril": constraints.lower_cholesky,
    }
    support = constraints.real_vector
    has_rsample = True

    def __init__(
        self, loc: Tensor, covariance_matrix: Any = None, precision_matrix: Any = None, scale_tril: Any = None,
        validate_args: bool | None = None,
    ):  # fmt: skip
        if loc.ndim < 1:
            raise ValueError("loc must be at least one-dimensional.")
        ways = (("covariance_matrix", covariance_matrix), ("precision_matrix", precision_matrix), ("scale_tril", scale_tril))
        given = [(n, v) for n, v in ways if v is not None]
        if len(given) != 1:
            raise ValueError("Exactly one of covariance_matrix or precision_matrix or scale_tril may be specified.")
        name, matrix = given[0]
        if matrix.ndim < 2:
            raise ValueError(f"{name} must be at least two-dimensional, with optional leading batch dimensions")
        batch = broadcast_shapes(matrix.shape[:-2], loc.shape[:-1])
        self.__dict__[name] = matrix.expand((*batch, -1, -1))
        self.loc = loc.expand((*batch, -1))
        super().__init__(batch, self.loc.shape[-1:], validate_args=validate_args)
        if name == "scale_tril":
            self._unbroadcasted_scale_tril = scale_tril
        elif name == "covariance_matrix":
            self._unbroadcasted_scale_tril = _cholesky(covariance_matrix)
        else:
            self._unbroadcasted_scale_tril = _precision_to_lower(precision_matrix)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        new = object.__new__(type(self)) if _instance is None else _instance
        shape = Size(batch_shape)
        n = self._event_shape[0]
        new.loc = self.loc.expand((*shape, n))
        new._unbroadcasted_scale_tril = self._unbroadcasted_scale_tril
        for name in ("covariance_matrix", "scale_tril", "precision_matrix"):
            if name in self.__dict__:
                new.__dict__[name] = self.__dict__[name].expand((*shape, n, n))
        new._batch_shape, new._event_shape = shape, self._event_shape
        return new

    @lazy_property
    def scale_tril(self) -> Tensor:
        """L with L·Lᵀ = Σ."""
        n = self._event_shape[0]
        return self._unbroadcasted_scale_tril.expand((*self._batch_shape, n, n))

    @lazy_property
    def covariance_matrix(self) -> Tensor:
        """Return the covariance Σ."""
        n = self._event_shape[0]
        lower = self._unbroadcasted_scale_tril
        return (lower @ lower.mT).expand((*self._batch_shape, n, n))

    @lazy_property
    def precision_matrix(self) -> Tensor:
        """Return the precision Σ⁻¹."""
        n = self._event_shape[0]
        inverse = _solve_lower(self._unbroadcasted_scale_tril, T.eye(n, dtype=self.loc.dtype))
        return (inverse.mT @ inverse).expand((*self._batch_shape, n, n))

    @property
    def mean(self) -> Tensor:
        return self.loc

    mode = mean

    @property
    def variance(self) -> Tensor:
        return self._unbroadcasted_scale_tril.pow(2).sum(-1).expand((*self._batch_shape, *self._event_shape))

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        eps = _standard_normal(self._extended_shape(sample_shape), self.loc.dtype)
        return self.loc + (self._unbroadcasted_scale_tril @ eps.unsqueeze(-1)).squeeze(-1)

    def _half_log_det(self) -> Tensor:
        return _diagonal(self._unbroadcasted_scale_tril).log().sum(-1)

    def _mahalanobis(self, difference: Tensor) -> Tensor:
        lower = self._unbroadcasted_scale_tril
        shape = broadcast_shapes(difference.shape[:-1], lower.shape[:-2])
        lower = lower.expand((*shape, *lower.shape[-2:]))
        return _solve_lower(lower, difference.expand((*shape, -1)).unsqueeze(-1)).squeeze(-1).pow(2).sum(-1)

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        return (
            -0.5 * (self._event_shape[0] * math.log(2 * math.pi) + self._mahalanobis(value - self.loc)) - self._half_log_det()
        )

    def entropy(self) -> Tensor:
        h = 0.5 * self._event_shape[0] * (1.0 + math.log(2 * math.pi)) + self._half_log_det()
        return h if not len(self._batch_shape) else h.expand(self._batch_shape)


class LowRankMultivariateNormal(Distribution):
    """N(loc, W·Wᵀ + diag(d)); LowRankMultivariateNormal([0.], [[1.]], [1.]).variance = [2.]."""

    loc: Tensor
    cov_factor: Tensor
    cov_diag: Tensor

    arg_constraints: Any = {
        "loc": constraints.real_vector,
        "cov_factor": constraints.independent(constraints.real, 2),
        "cov_diag": constraints.independent(constraints.positive, 1),
    }
    support = constraints.real_vector
    has_rsample = True

    def __init__(self, loc: Tensor, cov_factor: Tensor, cov_diag: Tensor, validate_args: bool | None = None):
        if loc.ndim < 1 or cov_factor.ndim < 2:
            raise ValueError(
                "loc must be at least one-dimensional, cov_factor at least two-dimensional, with optional leading batch dimensions"
            )
        n = loc.shape[-1]
        if cov_factor.shape[-2] != n or cov_diag.shape[-1] != n:
            raise ValueError(
                f"cov_factor must be a batch of matrices with shape {n} x m, and cov_diag a batch of vectors with shape ({n},)"
            )
        batch = broadcast_shapes(loc.shape[:-1], cov_factor.shape[:-2], cov_diag.shape[:-1])
        self.loc = loc.expand((*batch, n))
        self.cov_factor, self.cov_diag = cov_factor.expand((*batch, *cov_factor.shape[-2:])), cov_diag.expand((*batch, n))
        super().__init__(batch, (n,), validate_args=validate_args)

    def _capacitance_tril(self) -> Tensor:
        scaled = self.cov_factor.mT / self.cov_diag.unsqueeze(-2)
        return _cholesky(scaled @ self.cov_factor + T.eye(self.cov_factor.shape[-1], dtype=self.loc.dtype))

    @property
    def mean(self) -> Tensor:
        return self.loc

    mode = mean

    @property
    def variance(self) -> Tensor:
        return self.cov_factor.pow(2).sum(-1) + self.cov_diag

    @property
    def covariance_matrix(self) -> Tensor:
        """Return the covariance Σ."""
        return self.cov_factor @ self.cov_factor.mT + T.diag_embed(self.cov_diag)

    @property
    def scale_tril(self) -> Tensor:
        """L with L·Lᵀ = Σ."""
        return _cholesky(self.covariance_matrix)

    @property
    def precision_matrix(self) -> Tensor:
        """Return the precision Σ⁻¹."""
        a = _solve_lower(self._capacitance_tril(), self.cov_factor.mT / self.cov_diag.unsqueeze(-2))
        return T.diag_embed(self.cov_diag.reciprocal()) - a.mT @ a

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        w = _standard_normal((*shape[:-1], self.cov_factor.shape[-1]), self.loc.dtype)
        d = _standard_normal(shape, self.loc.dtype)
        return self.loc + (self.cov_factor @ w.unsqueeze(-1)).squeeze(-1) + self.cov_diag.sqrt() * d

    def _log_det(self) -> Tensor:
        return 2 * _diagonal(self._capacitance_tril()).log().sum(-1) + self.cov_diag.log().sum(-1)

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        x = value - self.loc
        inner = (self.cov_factor.mT / self.cov_diag.unsqueeze(-2)) @ x.unsqueeze(-1)
        lower = self._capacitance_tril()
        lower = lower.expand((*broadcast_shapes(inner.shape[:-2], lower.shape[:-2]), *lower.shape[-2:]))
        m = (x.pow(2) / self.cov_diag).sum(-1) - _solve_lower(lower, inner).squeeze(-1).pow(2).sum(-1)
        return -0.5 * (self._event_shape[0] * math.log(2 * math.pi) + self._log_det() + m)

    def entropy(self) -> Tensor:
        return 0.5 * (self._event_shape[0] * (1.0 + math.log(2 * math.pi)) + self._log_det())


class Wishart(ExponentialFamily):
    """Covariances of ``df`` normal vectors: X = L·A·Aᵀ·Lᵀ (Bartlett's decomposition)."""

    df: Any

    arg_constraints: Any = {
        "covariance_matrix": constraints.positive_definite, "precision_matrix": constraints.positive_definite,
        "scale_tril": constraints.lower_cholesky, "df": constraints.greater_than(0),
    }  # fmt: skip
    support = constraints.positive_definite
    has_rsample = True

    def __init__(
        self, df: Any, covariance_matrix: Any = None, precision_matrix: Any = None, scale_tril: Any = None,
        validate_args: bool | None = None,
    ):  # fmt: skip
        given = [v for v in (covariance_matrix, precision_matrix, scale_tril) if v is not None]
        if len(given) != 1:
            raise ValueError("Expected exactly one of covariance_matrix or precision_matrix or scale_tril to be specified.")
        matrix = given[0]
        if matrix.ndim < 2:
            raise ValueError("scale_tril must be at least two-dimensional, with optional leading batch dimensions")
        df = df if isinstance(df, Tensor) else T.tensor(float(df), dtype=matrix.dtype)
        n = matrix.shape[-1]
        if (df <= n - 1).any().item():
            raise ValueError(f"Value of df={df} expected to be greater than ndim - 1 = {n - 1}.")
        if scale_tril is not None:
            lower = scale_tril
        else:
            lower = _cholesky(covariance_matrix) if covariance_matrix is not None else _precision_to_lower(precision_matrix)
        batch = broadcast_shapes(df.shape, matrix.shape[:-2])
        self.df, self._lower = df.expand(batch), lower.expand((*batch, n, n))
        self._low = bool((df < n).any().item())
        if self._low:
            warn_user("Low df values detected. Singular samples are highly likely to occur for ndim - 1 < df < ndim.")
        super().__init__(batch, (n, n), validate_args=validate_args)

    @lazy_property
    def scale_tril(self) -> Tensor:
        """Return the factor L."""
        return self._lower

    @lazy_property
    def covariance_matrix(self) -> Tensor:
        """Return the covariance L·Lᵀ."""
        return self._lower @ self._lower.mT

    @lazy_property
    def precision_matrix(self) -> Tensor:
        """Return the precision (L·Lᵀ)⁻¹."""
        inverse = _solve_lower(self._lower, T.eye(self._event_shape[0], dtype=self._lower.dtype).expand(self._lower.shape))
        return inverse.mT @ inverse

    @property
    def mean(self) -> Tensor:
        return self.df[..., None, None] * self.covariance_matrix

    @property
    def mode(self) -> Tensor:
        factor = self.df - self._event_shape[0] - 1
        return T.where(factor <= 0, math.nan, factor)[..., None, None] * self.covariance_matrix

    @property
    def variance(self) -> Tensor:
        v = self.covariance_matrix
        d = _diagonal(v)
        return self.df[..., None, None] * (v.pow(2) + d[..., :, None] * d[..., None, :])

    def rsample(self, sample_shape: Any = (), max_try_correction: int | None = None) -> Tensor:
        """Return samples; those of few degrees of freedom that rounding made singular are drawn again, ``max_try_correction`` (10) times at most."""
        sample = self._drawn(sample_shape)
        tries = (10 if max_try_correction is None else max_try_correction) if self._low else 0
        for k in range(tries):
            singular = self.support.check(sample).logical_not()
            if not singular.any().item():
                break
            if k == 0:
                warn_user("Singular sample detected.")
            sample = T.where(singular[..., None, None], self._drawn(sample_shape), sample)
        return sample

    def _drawn(self, sample_shape: Any) -> Tensor:
        shape = self._extended_shape(sample_shape)
        n = self._event_shape[0]
        halves = (self.df[..., None] - T.arange(n, dtype=self._lower.dtype)) / 2
        noise = T.diag_embed((2 * T._standard_gamma(halves.expand(shape[:-1]))).sqrt())
        rows, columns = T.tril_indices(n, n, -1)
        noise[..., rows, columns] = T.randn((*shape[:-2], n * (n - 1) // 2), dtype=self._lower.dtype)
        a = self._lower @ noise
        return a @ a.mT

    def _log_gamma(self, a: Tensor) -> Tensor:
        return T.mvlgamma(a, self._event_shape[0])

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        nu, n = self.df, self._event_shape[0]
        log_det = OPS["slogdet"].call(value)[1]
        half = _diagonal(self._lower).log().sum(-1)
        trace = _diagonal(self.precision_matrix @ value).sum(-1)
        return -nu * (n * math.log(2) / 2 + half) - self._log_gamma(nu / 2) + (nu - n - 1) / 2 * log_det - trace / 2

    def entropy(self) -> Tensor:
        nu, n = self.df, self._event_shape[0]
        half = _diagonal(self._lower).log().sum(-1)
        digamma = T.digamma((nu[..., None] - T.arange(n, dtype=nu.dtype)) / 2).sum(-1)
        return (n + 1) * (n * math.log(2) / 2 + half) + self._log_gamma(nu / 2) - (nu - n - 1) / 2 * digamma + nu * n / 2


class LKJCholesky(Distribution):
    """Cholesky factors of correlation matrices, density ∝ det^(η − 1) (Lewandowski, Kurowicka and Joe 2009).

    >>> torch.distributions.LKJCholesky(2).sample().shape
    torch.Size([2, 2])
    """

    concentration: Any

    arg_constraints: Any = {"concentration": constraints.positive}
    support = constraints.corr_cholesky

    def __init__(self, dim: int, concentration: Any = 1.0, validate_args: bool | None = None):
        if dim < 2:
            raise ValueError(f"Expected dim to be an integer greater than or equal to 2. Found dim={dim}.")
        self.dim = dim
        self.concentration = concentration if isinstance(concentration, Tensor) else T.tensor(float(concentration))
        marginal = self.concentration + 0.5 * (dim - 2)
        offset = T.arange(dim - 1, dtype=self.concentration.dtype)
        offset = T.cat([T.zeros(1, dtype=offset.dtype), offset])
        self._beta = Beta(offset + 0.5, marginal.unsqueeze(-1) - 0.5 * offset)
        super().__init__(self.concentration.shape, (dim, dim), validate_args=validate_args)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        """Draw by the onion method, row by row."""
        y = self._beta.sample(sample_shape).detach().unsqueeze(-1)
        u = T.randn(self._extended_shape(sample_shape), dtype=y.dtype).tril(-1)
        direction = u / u.norm(dim=-1, keepdim=True)
        first = T.arange(self.dim).reshape(-1, 1) == 0
        direction = T.where(first, 0.0, direction)
        w = y.sqrt() * direction
        diagonal = (1 - w.pow(2).sum(-1)).clamp(min=1e-38).sqrt()
        return w + T.diag_embed(diagonal)

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        d = self.dim - 1
        order = 2 * (self.concentration - 1).unsqueeze(-1) + self.dim - T.arange(2, self.dim + 1, dtype=value.dtype)
        unnormalized = (order * _diagonal(value)[..., 1:].log()).sum(-1)
        alpha = self.concentration + 0.5 * d
        normalize = 0.5 * d * math.log(math.pi) + T.mvlgamma(alpha - 0.5, d) - T.lgamma(alpha) * d
        return unnormalized - normalize


__all__ = ["LKJCholesky", "LowRankMultivariateNormal", "MultivariateNormal", "Wishart"]
