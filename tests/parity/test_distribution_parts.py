"""What stands within PyTorch's distributions, which packages take: names of parts, natural parameters, and families that programs declare by them."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import autograd_nb as ag  # noqa: E402

from .snippets import check  # noqa: E402
from .test_distributions import CASES, both  # noqa: E402

#: PyTorch's steps of an algorithm, which is another one here
STEPS = {"_cont_bern_log_norm", "_cut_probs", "_outside_unstable_region", "_is_protocol", "_bartlett_sampling", "_batch_dims", "_dist_chi2"}
FAMILIES = [name for name in CASES if issubclass(getattr(torch.distributions, name), torch.distributions.ExponentialFamily)]


@pytest.mark.parametrize("name", CASES)
def test_names(name):
    mine, theirs = both(name)[:2]
    assert not {n for n in dir(theirs) if not n.startswith("__")} - set(dir(mine)) - STEPS


@pytest.mark.parametrize("name", FAMILIES)
def test_natural_parameters(name):
    mine, theirs = both(name)[:2]
    for x, y in zip(mine._natural_params, theirs._natural_params, strict=True):
        np.testing.assert_allclose(x.detach().numpy(), y.detach().numpy(), rtol=1e-5)
    given = mine._log_normalizer(*mine._natural_params), theirs._log_normalizer(*theirs._natural_params)
    np.testing.assert_allclose(given[0].detach().numpy(), given[1].detach().numpy(), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", FAMILIES)
def test_entropy_of_the_family(name):
    mine, theirs = both(name)[:2]
    try:
        expected = torch.distributions.ExponentialFamily.entropy(theirs)
    except NotImplementedError:
        with pytest.raises(NotImplementedError):
            ag.distributions.ExponentialFamily.entropy(mine)
        return
    np.testing.assert_allclose(ag.distributions.ExponentialFamily.entropy(mine).tolist(), expected.tolist(), rtol=1e-4)


def test_mode_of_weibull():
    for k in (0.5, 1.0, 3.0):
        mine, theirs = (t.distributions.Weibull(t.tensor(2.0), t.tensor(k)).mode.item() for t in (ag, torch))
        assert mine == pytest.approx(theirs)


def test_parts():
    for name, part in (("Beta", "_dirichlet.concentration"), ("StudentT", "_chi2.df"), ("FisherSnedecor", "_gamma1.rate"), ("Binomial", "_param"),
                       ("NegativeBinomial", "_gamma.rate"), ("Multinomial", "_binomial.probs"), ("VonMises", "_proposal_r")):  # fmt: skip
        found = list(both(name)[:2])
        for step in part.split("."):
            found = [getattr(d, step) for d in found]
        np.testing.assert_allclose(found[0].detach().numpy(), found[1].detach().numpy(), rtol=1e-5)


@pytest.mark.parametrize("library", [ag, torch])
def test_a_family_of_a_program(library):
    """A subclass of `ExponentialFamily` has an entropy and a divergence by its natural parameters, with gradients."""

    class Scaled(library.distributions.ExponentialFamily):
        """Exponential with its rate."""

        _mean_carrier_measure = 0

        def __init__(self, rate):
            self.rate = rate
            super().__init__(rate.shape, validate_args=False)

        @property
        def _natural_params(self):
            return (-self.rate,)

        def _log_normalizer(self, x):
            return -library.log(-x)

    rate = library.tensor([0.5, 2.0])
    assert np.allclose(Scaled(rate).entropy().tolist(), [1 - math.log(0.5), 1 - math.log(2)])
    other = library.tensor([1.0, 1.0], requires_grad=True)
    divergence = library.distributions.kl_divergence(Scaled(rate), Scaled(other))
    assert np.allclose(divergence.tolist(), [math.log(0.5) + 1 / 0.5 - 1, math.log(2) + 0.5 - 1])
    divergence.sum().backward()
    assert np.allclose(other.grad.tolist(), [2 - 1, 0.5 - 1])


def test_moments_that_a_generalized_pareto_has_not():
    for library in (ag, torch):
        d = library.distributions.GeneralizedPareto(library.zeros(2), library.ones(2), library.tensor([0.3, 1.5]))
        assert [math.isnan(x) for x in [*d.mean.tolist(), *d.variance.tolist()]] == [False, True, False, True]
        assert np.allclose(d.log_survival_function(library.tensor(2.0)).tolist(), [-math.log1p(0.6) / 0.3, -math.log1p(3.0) / 1.5])


@pytest.mark.parity
def test_concatenated_transforms_of_values_of_several_dims():
    """Their determinants lie side by side, or are multiplied where the dim is one of a value."""
    before = "T = t.distributions.transforms\nexp, scale = T.ExpTransform(), lambda n: T.AffineTransform(0., 2 * t.arange(1., n + 1), event_dim=1)\n"
    parts = {"one dim": "[exp, T.SigmoidTransform()]", "values": "[T.IndependentTransform(exp, 1), T.IndependentTransform(T.SigmoidTransform(), 1)]",
             "mixed": "[exp, T.IndependentTransform(T.SigmoidTransform(), 1)]"}  # fmt: skip
    check({
        f"{name}, {dim}": f"c = T.CatTransform({given}, dim={dim}, lengths=[1, 2])\nx = t.linspace(-1., 1., 9).reshape(3, 3)\n"
        "y = c(x); r = y, c.inv(y), c.log_abs_det_jacobian(x, y)"
        for name, given in parts.items() for dim in (0, 1, -1, -2)
    } | {
        "lengths": "c = T.CatTransform([scale(5), scale(2)], dim=1, lengths=[5, 2])\nx = t.ones(3, 7); r = c.log_abs_det_jacobian(x, c(x))"
    }, before)  # fmt: skip


@pytest.mark.parity
def test_what_distributions_refuse_before_they_compute():
    before = "D = t.distributions\nmixture = D.MixtureSameFamily(D.Categorical(t.ones(2)), D.Independent(D.Normal(t.zeros(2, 2), 1.), 1))"
    check({
        **{f"transforms, {given}": f"r = D.TransformedDistribution(D.Normal(0., 1.), {given}) and 1" for given in ("lambda x: x", "3", "[len]", "None", "[]")},
        **{f"mixture, {shape}": f"r = mixture.log_prob(t.ones({shape}))" for shape in ("()", "2", "4", "(3, 5)", "(3, 2)")},
        **{f"{name} of a number": f"r = D.{name}(1.).log_prob(1)" for name in ("HalfCauchy", "HalfNormal", "Exponential")},
    }, before)  # fmt: skip


@pytest.mark.parity
def test_mixtures_whose_weights_are_broadcast():
    mixture = "D = t.distributions; m = D.MixtureSameFamily(D.Categorical(t.arange(1., 7.).reshape({})), D.Normal(t.arange(18.).reshape({}), 1.))"
    seen = "m.mean, m.variance, tuple(m.batch_shape), m.log_prob(t.ones(m.batch_shape)), m.cdf(t.ones(m.batch_shape)), repr(m.support)"
    shapes = (("(3, 1, 2)", "(3, 3, 2)"), ("(3, 2)", "(3, 3, 2)"), ("(1, 6)", "(3, 6)"), ("(3, 2)", "(9, 2)"))
    check({f"{weights} {parts}": f"{mixture.format(weights, parts)}; r = {seen}" for weights, parts in shapes})


def test_what_a_class_says_of_its_support():
    """What only a distribution knows is refused, not guessed."""
    names = [*CASES, "MixtureSameFamily", "Independent", "TransformedDistribution"]
    check({
        f"{name}.{what}": f"r = t.distributions.{name}.support.{what}" for name in names for what in ("event_dim", "is_discrete")
    } | {
        f"{of}.{what}": f"r = t.distributions.constraints.{of}.{what}"
        for of in ("dependent", "dependent(is_discrete=True)", "dependent(event_dim=1)") for what in ("event_dim", "is_discrete")
    } | {"mixture": "D = t.distributions; r = repr(D.MixtureSameFamily(D.Categorical(t.ones(3)), D.Normal(t.ones(3), 1)))[:31]"}, kinds=True)  # fmt: skip


def test_few_degrees_of_freedom():
    """A Wishart matrix that rounding made singular is drawn again, as PyTorch means to do (it draws the good ones again)."""
    ag.manual_seed(0)
    with pytest.warns(UserWarning, match="Low df values"):
        w = ag.distributions.Wishart(ag.tensor([2.01, 5.0]), ag.eye(3))
    with pytest.warns(UserWarning, match="Singular sample"):
        bad = w.rsample((500,), max_try_correction=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        good, more = w.sample((500,)), w.expand((4, 2)).sample()
    assert w.support.check(good).all() and good.shape == bad.shape == (500, 2, 3, 3) and more.shape == (4, 2, 3, 3)
