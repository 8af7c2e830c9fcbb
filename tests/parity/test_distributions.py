"""Distributions beside PyTorch's: densities and their gradients, moments, entropies, KL, transforms; samples by their moments."""

from __future__ import annotations

import contextlib
import inspect
import itertools
import warnings
from unittest import mock

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import autograd_nb as ag  # noqa: E402
import autograd_nb.distributions as mine  # noqa: E402

theirs = torch.distributions

V = [0.3, 0.7, 1.4]
M = [[1.5, 0.3, 0.1], [0.3, 1.2, 0.2], [0.1, 0.2, 0.9]]
P = [[0.2, 0.5, 0.3], [0.6, 0.1, 0.3]]

#: name -> (arguments, a value)
CASES = {
    "Normal": ([V, [1.0, 0.5, 2.0]], [0.1, -1.0, 2.0]),
    "LogNormal": ([V, [1.0, 0.5, 2.0]], [0.1, 1.0, 2.0]),
    "Uniform": ([[0.0, -1.0, 2.0], [1.0, 3.0, 2.5]], [0.5, 0.0, 2.2]),
    "Exponential": ([V], [0.5, 1.0, 2.0]),
    "Laplace": ([V, [1.0, 0.5, 2.0]], [0.1, -1.0, 2.0]),
    "Cauchy": ([V, [1.0, 0.5, 2.0]], [0.1, -1.0, 2.0]),
    "HalfNormal": ([V], [0.5, 1.0, 2.0]),
    "HalfCauchy": ([V], [0.5, 1.0, 2.0]),
    "Gamma": ([V, [1.0, 0.5, 2.0]], [0.1, 1.0, 2.0]),
    "InverseGamma": ([[2.3, 3.1, 4.0], [1.0, 0.5, 2.0]], [0.1, 1.0, 2.0]),
    "Chi2": ([[1.0, 2.0, 5.0]], [0.1, 1.0, 2.0]),
    "Beta": ([V, [1.0, 2.5, 2.0]], [0.1, 0.4, 0.9]),
    "StudentT": ([[3.0, 5.0, 2.5], V, [1.0, 0.5, 2.0]], [0.1, -1.0, 2.0]),
    "FisherSnedecor": ([[3.0, 5.0, 2.5], [5.0, 6.0, 7.0]], [0.1, 1.0, 2.0]),
    "Gumbel": ([V, [1.0, 0.5, 2.0]], [0.1, -1.0, 2.0]),
    "Weibull": ([V, [1.0, 1.5, 2.0]], [0.1, 1.0, 2.0]),
    "Pareto": ([V, [2.5, 3.5, 4.0]], [0.5, 1.0, 2.0]),
    "Kumaraswamy": ([[1.3, 2.0, 3.0], [1.5, 2.5, 1.2]], [0.1, 0.4, 0.9]),
    "VonMises": ([V, [1.0, 0.5, 2.0]], [0.1, -1.0, 2.0]),
    "ContinuousBernoulli": ([[0.3, 0.5, 0.8]], [0.1, 0.4, 0.9]),
    "Bernoulli": ([[0.3, 0.5, 0.8]], [1.0, 0.0, 1.0]),
    "Geometric": ([[0.3, 0.5, 0.8]], [1.0, 0.0, 3.0]),
    "Poisson": ([V], [1.0, 0.0, 3.0]),
    "Binomial": ([5, [0.3, 0.5, 0.8]], [1.0, 0.0, 5.0]),
    "NegativeBinomial": ([[5.0, 2.0, 3.0], [0.3, 0.5, 0.8]], [1.0, 0.0, 5.0]),
    "Categorical": ([P], [0, 2]),
    "OneHotCategorical": ([P], [[0.0, 1.0, 0.0], [1.0, 0.0, 0.0]]),
    "Multinomial": ([6, P], [[1.0, 2.0, 3.0], [0.0, 6.0, 0.0]]),
    "Dirichlet": ([P], [[0.2, 0.2, 0.6], [0.1, 0.8, 0.1]]),
    "MultivariateNormal": ([V, M], [0.1, -1.0, 2.0]),
    "LowRankMultivariateNormal": ([V, [[0.5], [1.0], [0.2]], V], [0.1, -1.0, 2.0]),
    "Wishart": ([4.0, M], M),
    "LogisticNormal": ([V, [1.0, 0.5, 2.0]], [0.1, 0.2, 0.3, 0.4]),
    "RelaxedBernoulli": ([[0.7], [0.3, 0.5, 0.8]], [0.1, 0.4, 0.9]),
    "RelaxedOneHotCategorical": ([[0.7], P], [[0.2, 0.2, 0.6], [0.1, 0.8, 0.1]]),
}  # fmt: skip


def both(name):
    args, value = CASES[name]

    def convert(lib, x):
        return lib.tensor(x, dtype=lib.float64, requires_grad=True) if isinstance(x, list) else x

    a, b = [convert(ag, x) for x in args], [convert(torch, x) for x in args]
    return getattr(mine, name)(*a), getattr(theirs, name)(*b), a, b, value


def close(x, y, what):
    np.testing.assert_allclose(x.detach().numpy(), y.detach().numpy(), rtol=1e-6, atol=1e-8, err_msg=what)


def first(x):
    return first(x[0]) if isinstance(x, list) else x


@pytest.mark.parity
@pytest.mark.parametrize("name", CASES)
def test_dtypes_of_numbers_and_values(name):
    """Parameters of one dtype, a value of another, either of them of no dims."""
    args, value = CASES[name]
    found = []
    for lib, module in ((torch, theirs), (ag, mine)):
        for given, kind, other in ((args, "float32", "float64"), (args, "float64", "float32"), (list(map(first, args)), "float64", "float32")):
            for v in (value, first(value)):
                try:
                    made = [lib.tensor(a, dtype=getattr(lib, kind)) if isinstance(x, list) else x for a, x in zip(given, args, strict=True)]
                    p = getattr(module, name)(*made).log_prob(lib.tensor(v, dtype=getattr(lib, other)))
                    found.append((str(p.dtype), tuple(p.shape)))
                except Exception as error:
                    found.append(type(error).__mro__[-3].__name__)
    assert found[len(found) // 2 :] == found[: len(found) // 2]


@pytest.mark.parity
@pytest.mark.parametrize("name", CASES)
def test_a_distribution(name):
    p, q, a, b, value = both(name)
    assert tuple(p.batch_shape) == tuple(q.batch_shape) and tuple(p.event_shape) == tuple(q.event_shape)
    assert p.has_rsample == q.has_rsample
    if hasattr(q, "param_shape"):
        assert tuple(p.param_shape) == tuple(q.param_shape)
    integral = name == "Categorical"
    x, y = (lib.tensor(value, dtype=lib.int64 if integral else lib.float64) for lib in (ag, torch))
    lp, lq = p.log_prob(x), q.log_prob(y)
    close(lp, lq, "log_prob")
    mine_in, theirs_in = [t for t in a if isinstance(t, ag.Tensor)], [t for t in b if isinstance(t, torch.Tensor)]
    for g, h in zip(ag.autograd.grad(lp.sum(), mine_in, allow_unused=True), torch.autograd.grad(lq.sum(), theirs_in, allow_unused=True), strict=True):
        if h is not None:
            close(g, h, "gradient of log_prob")
    for what in ("mean", "variance", "stddev", "mode"):
        try:
            expected = getattr(q, what)
        except (NotImplementedError, AttributeError):
            continue
        if (name, what) != ("Kumaraswamy", "mode"):  # PyTorch's is nan
            close(getattr(p, what), expected, what)
    for what in ("entropy", "cdf", "icdf", "enumerate_support"):
        args = None
        if what == "cdf":
            args = (x, y)
        elif what == "icdf":
            args = tuple(lib.tensor([0.2, 0.5, 0.9], dtype=lib.float64) for lib in (ag, torch))
        try:
            expected = getattr(q, what)(*(args[1:] if args else ()))
        except (NotImplementedError, AttributeError, RuntimeError):
            continue
        close(getattr(p, what)(*(args[:1] if args else ())), expected, what)


@pytest.mark.parity
@pytest.mark.parametrize("name", CASES)
def test_samples_have_the_moments(name):
    ag.manual_seed(0)
    p, q, *_ = both(name)
    drawn = p.sample((4000,)) if name != "Categorical" else p.sample((4000,)).double()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # PyTorch's Wishart may find its sample singular
        assert tuple(p.sample((2, 3)).shape) == tuple(q.sample((2, 3)).shape)
        assert tuple(p.sample().shape) == tuple(q.sample().shape)
    if name in ("Cauchy", "HalfCauchy", "StudentT", "FisherSnedecor", "InverseGamma", "Pareto", "LogNormal", "Categorical", "RelaxedBernoulli",
                "RelaxedOneHotCategorical", "LogisticNormal", "VonMises"):  # fmt: skip
        return  # heavy tails, or no mean known
    mean, std = q.mean.detach().numpy(), np.sqrt(q.variance.detach().numpy())
    np.testing.assert_array_less(np.abs(drawn.detach().numpy().mean(0) - mean), 6 * std / np.sqrt(4000) + 1e-9)


@pytest.mark.parity
@pytest.mark.parametrize("name", [n for n in CASES if getattr(theirs, n).has_rsample is True or n in ("LogNormal", "Gumbel", "Weibull", "HalfNormal")])
def test_gradients_flow_through_samples(name):
    p, _, a, *_ = both(name)
    leaves = [t for t in a if isinstance(t, ag.Tensor)]
    grads = ag.autograd.grad(p.rsample((5,)).sum(), leaves, allow_unused=True)
    assert any(g is not None and bool(ag.isfinite(g).all()) for g in grads)


PAIRS = [(n, n) for n in ("Normal", "Bernoulli", "Categorical", "OneHotCategorical", "Beta", "Dirichlet", "Exponential", "Gamma", "Laplace", "Poisson",
         "Geometric", "Binomial", "Pareto", "Cauchy", "Gumbel", "HalfNormal", "LogNormal", "MultivariateNormal", "Uniform")]  # fmt: skip
PAIRS += [("Uniform", "Normal"), ("Laplace", "Normal"), ("Gumbel", "Normal"), ("Exponential", "Normal"), ("Gamma", "Normal"), ("Beta", "Normal"),
          ("Exponential", "Gamma"), ("Gamma", "Exponential")]  # fmt: skip


@pytest.mark.parity
@pytest.mark.parametrize(("first", "second"), PAIRS)
def test_kl(first, second):
    p, q, *_ = both(first)
    args, _ = CASES[second]

    def moved(lib, x):
        if not isinstance(x, list):
            return x
        t = lib.tensor(x, dtype=lib.float64)
        if second in ("Categorical", "OneHotCategorical"):
            return t.flip(0)
        return t * 0.9 if second != "MultivariateNormal" else t * 1.3

    r, s = getattr(mine, second)(*[moved(ag, x) for x in args]), getattr(theirs, second)(*[moved(torch, x) for x in args])
    close(mine.kl_divergence(p, r), theirs.kl_divergence(q, s), "kl")


@pytest.mark.parity
def test_kl_without_a_formula():
    with pytest.raises(NotImplementedError, match=r"No KL|cross KL"):
        mine.kl_divergence(mine.Poisson(ag.tensor(1.0)), mine.Normal(0.0, 1.0))


TRANSFORMS = {
    "ExpTransform": (), "SigmoidTransform": (), "TanhTransform": (), "SoftplusTransform": (), "AffineTransform": (0.5, -2.0),
    "StickBreakingTransform": (), "PowerTransform": (3.0,), "CorrCholeskyTransform": (),
}  # fmt: skip


@pytest.mark.parity
@pytest.mark.parametrize("name", TRANSFORMS)
def test_transforms(name):
    args = TRANSFORMS[name]
    wrap = lambda lib: [lib.tensor(a, dtype=lib.float64) if name == "PowerTransform" else a for a in args]
    t, u = getattr(mine.transforms, name)(*wrap(ag)), getattr(theirs.transforms, name)(*wrap(torch))
    x, y = ag.tensor(V, dtype=ag.float64), torch.tensor(V, dtype=torch.float64)
    a, b = t(x), u(y)
    close(a, b, "forward")
    close(t.inv(a), x, "inverse")
    close(t.log_abs_det_jacobian(x, a), u.log_abs_det_jacobian(y, b), "volume")


def everything(d, value):
    """What a distribution says of itself and of a value, by name; None for what it does not know."""
    found = {"batch": tuple(d.batch_shape), "event": tuple(d.event_shape), "sample": tuple(d.sample().shape), "samples": tuple(d.sample((3,)).shape)}
    asked = {w: lambda w=w: getattr(d, w) for w in ("mean", "variance", "stddev", "mode", *d.arg_constraints)}
    asked |= {"entropy": lambda: d.entropy(), "log_prob": lambda: d.log_prob(value), "again": lambda: d.expand((2, *d.batch_shape)).log_prob(value)}
    for what, ask in asked.items():
        try:
            found[what] = ask()
        except (NotImplementedError, AttributeError):
            found[what] = None
    return found


@pytest.mark.parity
@pytest.mark.filterwarnings("ignore:Singular sample detected")
@pytest.mark.parametrize("name", [*CASES, "MixtureSameFamily", "Independent", "TransformedDistribution"])
def test_a_distribution_of_an_expanded_shape(name):
    def made(lib, d):
        normal = d.Normal(lib.ones(2, 3, dtype=lib.float64), lib.full((2, 3), 2.0, dtype=lib.float64))
        if name == "MixtureSameFamily":
            return d.MixtureSameFamily(d.Categorical(lib.tensor(P, dtype=lib.float64)), normal), lib.tensor([0.3, 0.4])
        if name in ("Independent", "TransformedDistribution"):
            return (d.Independent(normal, 1) if name == "Independent" else d.TransformedDistribution(normal, [d.ExpTransform()])), lib.tensor(V)
        args, value = CASES[name]
        kind = lib.int64 if name == "Categorical" else lib.float64
        return getattr(d, name)(*[lib.tensor(x, dtype=lib.float64) if isinstance(x, list) else x for x in args]), lib.tensor(value, dtype=kind)

    for before in ((2,), (2, 1), ()):
        (p, x), (q, y) = made(ag, mine), made(torch, theirs)
        a, b = everything(p.expand((*before, *p.batch_shape)), x), everything(q.expand((*before, *q.batch_shape)), y)
        for what, wanted in b.items():
            if isinstance(wanted, torch.Tensor) and (name, what) != ("Kumaraswamy", "mode"):
                assert a[what].shape == wanted.shape, what
                close(a[what], wanted, what)
            elif not isinstance(wanted, torch.Tensor):
                assert a[what] == wanted or wanted is None, what


@pytest.mark.parity
def test_event_dims_of_transforms():
    def dims(d):
        for name in [*sorted(TRANSFORMS), "CorrCholeskyTransform", "LowerCholeskyTransform", "StickBreakingTransform", "SoftmaxTransform"]:
            args = [2.0, 3.0][: len(TRANSFORMS.get(name, ()))]
            try:
                yield name, getattr(d.transforms, name)(*args).event_dim
            except ValueError as error:
                yield name, str(error)

    assert list(dims(mine)) == list(dims(theirs))


@pytest.mark.parity
def test_mixtures_independence_and_expansion():
    def build(lib, d):
        mixture = d.MixtureSameFamily(d.Categorical(lib.tensor(P, dtype=lib.float64)), d.Independent(d.Normal(lib.ones(2, 3, 2, dtype=lib.float64), 2.0), 1))
        flow = d.TransformedDistribution(d.Normal(lib.zeros(2, dtype=lib.float64), 1.0), [d.AffineTransform(1.0, 2.0), d.TanhTransform()])
        return mixture, d.Independent(flow, 1), d.Normal(lib.tensor(0.0), 1.0).expand((4, 2))

    for p, q, shape in zip(build(ag, mine), build(torch, theirs), ((2, 2), (2,), (4, 2)), strict=True):
        assert tuple(p.batch_shape) == tuple(q.batch_shape) and tuple(p.event_shape) == tuple(q.event_shape)
        x = np.full(shape, 0.4)
        close(p.log_prob(ag.from_numpy(x)), q.log_prob(torch.from_numpy(x)), "log_prob")
        assert tuple(p.sample((3,)).shape) == tuple(q.sample((3,)).shape)


@pytest.mark.parity
def test_wrong_parameters_and_values_are_refused():
    for make in (
        lambda lib, d: d.Normal(lib.tensor(0.0), lib.tensor(-1.0)),
        lambda lib, d: d.Categorical(),
        lambda lib, d: d.Uniform(2.0, 1.0),
        lambda lib, d: d.Bernoulli(lib.tensor(1.5)),
        lambda lib, d: d.Normal(0.0, 1.0).log_prob(3),
        lambda lib, d: d.Bernoulli(lib.tensor(0.5)).log_prob(lib.tensor(0.5)),
        lambda lib, d: d.MultivariateNormal(lib.zeros(2)),
    ):
        with pytest.raises(ValueError) as expected:
            make(torch, theirs)
        with pytest.raises(ValueError) as got:
            make(ag, mine)
        assert type(got.value) is type(expected.value)


@pytest.mark.parity
def test_all_names_are_here():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        missing = [n for n in theirs.__all__ if not hasattr(mine, n)]
    assert not missing
    assert all(not inspect.isclass(getattr(theirs, n)) or inspect.isclass(getattr(mine, n)) for n in theirs.__all__)


# ---------------------------------------------------------------------------------------- what PyTorch's own tests asked for
_FAMILIES = {
    "Beta": ([1.0, 2.5, 0.3], [2.0, 0.4, 3.0]), "Uniform": ([-1.0, 0.0, 0.2], [1.0, 1.0, 2.0]), "Normal": ([0.0, 1.0, -2.0], [1.0, 2.0, 0.1]),
    "Gamma": ([1.0, 0.3, 4.0], [2.0, 1.0, 0.5]), "Exponential": ([1.0, 0.1, 3.0],), "Gumbel": ([0.0, 1.0, -1.0], [1.0, 0.5, 2.0]),
    "Laplace": ([0.0, 1.0, -1.0], [1.0, 0.5, 2.0]), "Pareto": ([1.0, 0.5, 0.2], [1.0, 1.5, 3.0]), "Poisson": ([1.0, 0.5, 4.0],),
    "Bernoulli": ([0.3, 0.0, 1.0],), "Binomial": (3, [0.3, 0.1, 0.9]), "ContinuousBernoulli": ([0.3, 0.5, 0.9],), "Chi2": ([2.0, 1.0, 0.3],),
}  # fmt: skip


def _family(lib, name):
    module = mine if lib is ag else theirs
    return getattr(module, name)(*[lib.tensor(v, dtype=lib.float64) if isinstance(v, list) else v for v in _FAMILIES[name]])


@pytest.mark.parametrize("p", _FAMILIES)
def test_kl_of_every_pair(p):
    """What PyTorch has a formula for has one here, of the same values; the others are refused in both."""
    for q in _FAMILIES:
        try:
            want = theirs.kl_divergence(_family(torch, p), _family(torch, q))
        except NotImplementedError:
            with pytest.raises(NotImplementedError):
                mine.kl_divergence(_family(ag, p), _family(ag, q))
            continue
        got = mine.kl_divergence(_family(ag, p), _family(ag, q))
        np.testing.assert_allclose(got.numpy(), want.numpy(), rtol=1e-9, atol=1e-12, err_msg=q)


@pytest.mark.parametrize("kinds", ["ll", "lm", "ml", "mm"])
def test_kl_of_normals_of_low_rank(kinds):
    def made(lib, kind, s):
        module, d = (mine if lib is ag else theirs), {"dtype": lib.float64}
        loc = lib.arange(3.0, **d) + s
        if kind == "l":
            return module.LowRankMultivariateNormal(loc, lib.arange(6.0, **d).reshape(3, 2) / (s + 1), lib.ones(3, **d) + s)
        return module.MultivariateNormal(loc, lib.eye(3, **d) * (s + 1) + 0.3)

    got, want = (module.kl_divergence(*[made(lib, k, s) for k, s in zip(kinds, (1.0, 2.0), strict=True)]) for lib, module in ((ag, mine), (torch, theirs)))
    np.testing.assert_allclose(got.numpy(), want.numpy(), rtol=1e-9)


@pytest.mark.parametrize("name", ["Normal", "Gamma", "Exponential", "Poisson", "Bernoulli", "Laplace", "HalfCauchy", "Uniform", "Geometric"])
def test_density_of_a_number_that_is_not_checked(name):
    arguments = {"Normal": (0.0, 1.0), "Gamma": (1.0, 2.0), "Laplace": (0.0, 1.0), "Uniform": (0.0, 1.0)}.get(name, (0.4,))
    got, want = (getattr(module, name)(*arguments, validate_args=False).log_prob(1) for module in (mine, theirs))
    np.testing.assert_allclose(got.numpy(), want.numpy(), rtol=1e-6)
    if name == "Gamma":  # which makes a tensor of it before it looks
        assert getattr(mine, name)(*arguments).log_prob(1).item() == pytest.approx(want.item())
    else:
        for module in (mine, theirs):
            with pytest.raises(ValueError, match="must be a Tensor"):
                getattr(module, name)(*arguments).log_prob(1)


@pytest.mark.parametrize("given", ["probs", "logits"])
@pytest.mark.parametrize("name", ["Bernoulli", "Categorical", "Geometric", "Binomial", "ContinuousBernoulli", "OneHotCategorical"])
def test_what_is_computed_while_drawing_keeps_its_gradient(name, given):
    for lib, module in ((ag, mine), (torch, theirs)):
        p = lib.tensor([0.2, 0.3, 0.5], requires_grad=True)
        d = getattr(module, name)(**{given: p}, **({"total_count": 3} if name == "Binomial" else {}))
        d.sample()
        assert d.probs.requires_grad
        assert d.logits.requires_grad


def test_straight_through_samples_have_gradients_after_a_draw():
    for lib, module in ((ag, mine), (torch, theirs)):
        d = module.OneHotCategoricalStraightThrough(logits=lib.zeros(3, requires_grad=True))
        d.sample()
        assert d.rsample().requires_grad


def test_draws_at_the_edge():
    """Gammas of the shape 0 and of tiny ones are no less than the smallest number; nothing is nan, no count is negative."""
    for dtype in (ag.float32, ag.float64):
        tiny = ag.finfo(dtype).tiny
        assert (ag._standard_gamma(ag.zeros(5, dtype=dtype)) == tiny).all()
        assert (ag._standard_gamma(ag.full((500,), 1e-3, dtype=dtype)) >= tiny).all()
    assert (ag.poisson(ag.full((100,), 1e-38)) == 0).all()
    assert (mine.NegativeBinomial(ag.zeros(2), probs=ag.tensor([0.9, 0.0])).sample() == 0).all()
    assert not mine.Beta(ag.full((1000,), 0.01), ag.full((1000,), 0.01)).sample().isnan().any()
    np.testing.assert_allclose(mine.Dirichlet(ag.full((200, 3), 0.01)).sample().sum(-1).numpy(), 1, rtol=1e-6)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("alpha", "beta"), [(1e-3, 1e-3), (0.1, 1e-3), (1.0, 1e-3), (1e3, 1e-3), (1e-3, 1e3), (1e3, 0.1)])
def test_samples_next_to_the_ends_have_a_density(alpha, beta, dtype):
    """A sample of 0 or 1 would have the logarithm ∞, and gradients that are no numbers."""
    for lib, kinds in ((ag, mine), (torch, torch.distributions)):
        a, b = (lib.full((4000,), v, dtype=getattr(lib, dtype), requires_grad=True) for v in (alpha, beta))
        for d in (kinds.Beta(a, b), kinds.Dirichlet(lib.stack([a, b], -1)), kinds.Dirichlet(a.unsqueeze(-1))):
            x = d.rsample()
            assert x.min() > 0 and x.max() < 1
            assert d.log_prob(x.detach()).isfinite().all()
            d.log_prob(x).sum().backward()
            assert (a.grad.isfinite().all() and b.grad is None) or b.grad.isfinite().all()


@pytest.mark.parametrize("beta", [0.3, 1.0, 4.0, 30.0])
@pytest.mark.parametrize("alpha", [0.3, 1.0, 4.0, 30.0])
def test_slope_of_a_beta_sample(alpha, beta):
    """The gradient of a sample at its place in the distribution: differences of SciPy's inverse; PyTorch's approximation is near it."""
    special = pytest.importorskip("scipy.special")
    x = np.array([1e-3, 0.1, 0.4, 0.7, 0.95])
    place, h = special.betainc(alpha, beta, x), 1e-5 * alpha
    want = (special.betaincinv(alpha + h, beta, place) - special.betaincinv(alpha - h, beta, place)) / (2 * h) / (1 - x)
    got, near = (lib._dirichlet_grad(*[lib.tensor(v * np.ones(5), dtype=lib.float64) for v in (x, alpha, alpha + beta)]) for lib in (ag, torch))
    sure = (place > 1e-9) & (place < 1 - 1e-9)
    np.testing.assert_allclose(got.numpy()[sure], want[sure], rtol=1e-4)
    np.testing.assert_allclose(got.numpy()[sure], near.numpy()[sure], rtol=0.05)


def test_gradient_of_dirichlet_samples_is_the_marginals():
    a = ag.tensor([[0.7, 1.5, 3.0]] * 4, dtype=ag.float64, requires_grad=True)
    x = mine.Dirichlet(a).rsample()
    g = ag.arange(12.0, dtype=ag.float64).reshape(4, 3).cos()
    (got,) = ag.autograd.grad(x, a, g)
    t = torch.distributions.dirichlet._Dirichlet_backward(*[torch.tensor(v.detach().numpy()) for v in (x, a, g)])
    np.testing.assert_allclose(got.numpy(), t.numpy(), rtol=0.05, atol=1e-3)


def test_parameters_are_checked_where_they_are_computed():
    for module, lib in ((mine, ag), (theirs, torch)):
        with pytest.raises(ValueError, match="df"):
            module.Chi2(lib.tensor([-1.0]))
        with pytest.raises(ValueError, match="must match event_shape"):
            module.Wishart(lib.tensor([2.0, 3.0]), lib.eye(2)).log_prob(lib.ones(3, 2))


def test_density_of_wishart_reads_the_whole_matrix():
    grads = []
    for lib, module in ((ag, mine), (torch, theirs)):
        x = (lib.eye(3, dtype=lib.float64) + 0.1).requires_grad_()
        module.Wishart(lib.tensor(5.0, dtype=lib.float64), lib.eye(3, dtype=lib.float64) * 2 + 0.5, validate_args=False).log_prob(x).backward()
        grads.append(x.grad.numpy())
    np.testing.assert_allclose(*grads, rtol=1e-9, atol=1e-12)


def test_vectors_of_triangular_matrices():
    m = np.arange(16.0).reshape(4, 4)
    for diag in (-3, -1, 0):
        got, want = (lib.distributions.utils.tril_matrix_to_vec(lib.tensor(m), diag) for lib in (ag, torch))
        np.testing.assert_array_equal(got.numpy(), want.numpy())
        back, there = (lib.distributions.utils.vec_to_tril_matrix(v, diag) for lib, v in ((ag, got), (torch, want)))
        np.testing.assert_array_equal(back.numpy(), there.numpy())


def _replaced(lib):
    """Let ``lib``'s functions that draw give NumPy's numbers; those of uniform, normal and exponential numbers and what is drawn from parameters."""
    g = np.random.default_rng(5)

    def tensor(values, d=None):
        return lib.from_numpy(np.asarray(values, np.float64)).to(d or lib.get_default_dtype())

    def shape(size):
        return tuple(size[0]) if len(size) == 1 and not isinstance(size[0], int) else size

    def of_parameters(draw):
        return lambda p, *more, **_: tensor(draw(*[np.asarray(x.detach(), np.float64) for x in (p, *more) if not isinstance(x, (int, bool))]), p.dtype)

    functions = {
        "rand": lambda *size, dtype=None, **_: tensor(g.random(shape(size)), dtype),
        "randn": lambda *size, dtype=None, **_: tensor(g.standard_normal(shape(size)), dtype),
        "normal": of_parameters(g.normal), "bernoulli": of_parameters(lambda p: g.random(p.shape) < p), "poisson": of_parameters(g.poisson),
        "_standard_gamma": of_parameters(g.standard_gamma), "_sample_dirichlet": of_parameters(lambda a: np.apply_along_axis(g.dirichlet, -1, a)),
        "binomial": of_parameters(lambda n, p: g.binomial(n.astype(int), p)),
        "multinomial": lambda p, n, *_: lib.from_numpy(g.integers(0, p.shape[-1], (*p.shape[:-1], n))),
    }
    methods = {
        "normal_": lambda x, mean=0.0, std=1.0: x.copy_(tensor(g.normal(mean, std, tuple(x.shape)))),
        "uniform_": lambda x, low=0.0, high=1.0: x.copy_(tensor(g.uniform(low, high, tuple(x.shape)))),
        "exponential_": lambda x, rate=1.0: x.copy_(tensor(g.exponential(1 / rate, tuple(x.shape)))),
        "cauchy_": lambda x: x.copy_(tensor(g.standard_cauchy(tuple(x.shape)))),
    }
    stack = contextlib.ExitStack()
    stack.enter_context(mock.patch.multiple(lib, **functions))
    stack.enter_context(mock.patch.multiple(lib.Tensor, **methods))
    return stack


@pytest.mark.parametrize("name", sorted(CASES.keys() - {"Wishart"}))  # PyTorch draws a Wishart's matrices again where they were good
def test_programs_that_replace_the_functions_that_draw_are_served(name):
    """What is drawn is drawn by the functions that PyTorch draws it by: with these replaced, samples are the same numbers."""
    ours, torchs, *_ = both(name)
    drawn = []
    for lib, d in ((torch, torchs), (ag, ours)):
        with _replaced(lib):
            drawn.append([x.detach().numpy() for x in (d.sample((3,)), d.sample(), *([d.rsample((2,))] if d.has_rsample else []))])
    for x, y in zip(*drawn, strict=True):
        np.testing.assert_allclose(y, x, rtol=2e-4, atol=1e-5)


@pytest.mark.parametrize("name", ["Transform", "Distribution", "ExponentialFamily", "AffineTransform", "ExpTransform", "Constraint"])
def test_classes_that_are_modules_too(name):
    """Programs make modules of transforms: the next class in line is begun where PyTorch begins it."""

    def begun(t):
        seen = []

        class Other:
            def __init__(self):
                seen.append(True)

        base = getattr(t.distributions, name, None) or t.distributions.constraints.Constraint
        type("Both", (base, Other), {"arg_constraints": {}})(*((0.0, 1.0) if name == "AffineTransform" else ()))
        return seen

    assert begun(ag) == begun(torch)


@pytest.mark.parity
def test_numbers_beside_tensors_take_the_dtype_of_the_first():
    """1.5 beside integers is 1."""
    kinds = ["int16", "int64", "float32", "float64", "float16"]
    for first_kind, last_kind in itertools.product(kinds, kinds):
        found = []
        for lib, module in ((torch, theirs), (ag, mine)):
            a, b = lib.tensor([1, 2], dtype=getattr(lib, first_kind)), lib.tensor([3, 4], dtype=getattr(lib, last_kind))
            calls = (a, 1.5), (1.5, a), (a, 2), (a, b, 1.5), (a, 2.5, b), (1.5, a, b), (1.5, 2), (True, a)
            found += [[(str(t.dtype).rsplit(".", 1)[-1], t.tolist()) for t in module.utils.broadcast_all(*given)] for given in calls]
            found.append([module.Normal(a, 1.5).log_prob(b.double()).tolist(), module.VonMises(a, 1.5).log_prob(b.double()).tolist()])
        half = len(found) // 2
        assert found[half:-1] == found[: half - 1], (first_kind, last_kind)
        np.testing.assert_allclose(found[-1], found[half - 1], rtol=1e-3)
