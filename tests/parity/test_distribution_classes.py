"""What classes of distributions, of maps and their registries say of themselves, beside PyTorch's: walked over all of them."""

from __future__ import annotations

import inspect

import pytest

torch = pytest.importorskip("torch")
import autograd_nb as ours  # noqa: E402

from .test_distributions import CASES, both  # noqa: E402

CLASSES = sorted(
    n for n, c in vars(torch.distributions).items() if inspect.isclass(c) and issubclass(c, torch.distributions.Distribution)
)
CONSTRAINTS = {
    "real": "c.real", "positive": "c.positive", "above": "c.greater_than(2.0)", "at least": "c.greater_than_eq(1.0)", "below": "c.less_than(1.0)",
    "unit interval": "c.unit_interval", "interval": "c.interval(0.0, 2.0)", "half open": "c.half_open_interval(0.0, 1.0)", "simplex": "c.simplex",
    "lower cholesky": "c.lower_cholesky", "lower triangular": "c.lower_triangular", "vector": "c.real_vector", "correlation": "c.corr_cholesky",
    "definite": "c.positive_definite", "semidefinite": "c.positive_semidefinite", "nonnegative": "c.nonnegative", "several": "c.independent(c.positive, 1)",
    "stack": "c.stack([c.positive, c.real])", "cat": "c.cat([c.positive, c.real])",
}  # fmt: skip


@pytest.mark.parametrize("name", CLASSES)
def test_a_class_says_what_it_is(name):
    found = []
    for lib in (ours, torch):
        kind = getattr(lib.distributions, name)
        support = (
            isinstance(kind.support, lib.distributions.constraints.Constraint)
            if name not in ("Distribution", "ExponentialFamily")
            else None
        )
        found.append(
            [
                support,
                *(
                    value if isinstance(value := getattr(kind, what), bool) else None
                    for what in ("has_rsample", "has_enumerate_support")
                ),
            ]
        )
    mine, theirs = found
    assert all(a == b for a, b in zip(mine, theirs, strict=True) if b is not None), (mine, theirs)


@pytest.mark.parametrize("registry", ["biject_to", "transform_to"])
@pytest.mark.parametrize("constraint", CONSTRAINTS)
def test_registries(constraint, registry):
    found = []
    for lib in (ours, torch):
        region = eval(CONSTRAINTS[constraint], {"c": lib.distributions.constraints})
        try:
            made = getattr(lib.distributions, registry)(region)
        except NotImplementedError:
            found.append(None)
            continue
        assert made.inv.inv is made
        found.append([made.bijective, made.domain.event_dim, made.codomain.event_dim, made.inv.bijective])
    assert found[0] == found[1], found


@pytest.mark.parametrize("name", CASES)
def test_what_is_expanded_is_of_the_same_class(name):
    """Also of a class that a program has made of it."""
    d, _, args, _, _ = both(name)
    kind = type("Mine", (type(d),), {})
    wider = kind(*args).expand((2, *d.batch_shape))
    assert type(wider) is kind and wider.sample().shape == (2, *d.batch_shape, *d.event_shape)
    assert type(ours.distributions.Independent(d, len(d.batch_shape)).expand((2,))) is ours.distributions.Independent
