"""Reductions and scans against NumPy, their derivatives against differences, and the rules for ties, nan and nothing."""

import numpy as np
import pytest

import autograd_nb as torch

pytestmark = pytest.mark.slow  # many kernels

RNG = np.random.default_rng(0)
X = RNG.normal(size=(3, 4, 5))
nan, inf = np.nan, np.inf


def t(a, **kw):
    return torch.tensor(np.asarray(a), **kw)


@pytest.mark.parametrize("axis", [0, 1, 2, (0, 2), (1, 2), (0, 1, 2)])
@pytest.mark.parametrize("keep", [False, True])
def test_against_numpy(axis, keep):
    x = t(X)
    for ours, theirs in (
        (x.amax(axis, keep), X.max(axis, keepdims=keep)),
        (x.amin(axis, keep), X.min(axis, keepdims=keep)),
        (x.var(axis, keepdim=keep), X.var(axis, ddof=1, keepdims=keep)),
        (x.std(axis, correction=0, keepdim=keep), X.std(axis, keepdims=keep)),
        (x.norm(3, axis, keep), (abs(X) ** 3).sum(axis, keepdims=keep) ** (1 / 3)),
        (x.logsumexp(axis, keep), np.log(np.exp(X).sum(axis, keepdims=keep))),
    ):
        np.testing.assert_allclose(ours.numpy(), theirs, rtol=1e-12)
    if isinstance(axis, int):
        assert (x.argmax(axis, keep).numpy() == X.argmax(axis, keepdims=keep)).all()
        np.testing.assert_allclose(x.prod(axis, keep).numpy(), X.prod(axis, keepdims=keep), rtol=1e-12)
        np.testing.assert_allclose(x.cumsum(axis).numpy(), X.cumsum(axis), rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(x.cumprod(axis).numpy(), X.cumprod(axis), rtol=1e-12)
        np.testing.assert_allclose(x.cummax(axis).values.numpy(), np.maximum.accumulate(X, axis))


#: name -> function of three dims
CASES = {
    "amax": lambda x: x.amax(1),
    "max": lambda x: x.max(),
    "min of columns": lambda x: x.min(0).values,
    "var of dims": lambda x: x.var((0, 2)),
    "std": lambda x: x.std(1),
    "prod": lambda x: x.prod(),
    "prod of rows": lambda x: x.prod(1),
    "cumprod": lambda x: x.cumprod(0),
    "cumsum": lambda x: x.cumsum(2),
    "logsumexp of dims": lambda x: x.logsumexp((0, 2)),
    "logcumsumexp": lambda x: x.logcumsumexp(1),
    "norm": lambda x: x.norm(),
    "norm p": lambda x: x.norm(1.5, 1),
    "norm inf": lambda x: x.norm(inf, 0),
    "cummin": lambda x: x.cummin(1).values,
    "cov": lambda x: torch.cov(x[0]),
    "nansum": lambda x: x.nansum(1),
    "var_mean": lambda x: torch.var_mean(x, 1)[0],
    "trapezoid": lambda x: torch.trapezoid(x),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_derivatives_against_differences(name):
    f = CASES[name]
    x = t(X, requires_grad=True)
    assert torch.autograd.gradcheck(f, (x,))
    assert torch.autograd.gradgradcheck(f, (x,))


def test_products_with_zeros():
    x = X[0].copy()
    x[0, 1] = x[1, 2] = x[1, 4] = 0
    for f in (lambda x: x.prod(1), lambda x: x.cumprod(1), lambda x: x.prod()):
        assert torch.autograd.gradcheck(f, (t(x, requires_grad=True),))
        assert torch.autograd.gradgradcheck(f, (t(x, requires_grad=True),))


def test_ties():
    x = t([[1.0, 3, 3], [3, 0, 2]], requires_grad=True)
    x.max().backward()
    np.testing.assert_allclose(x.grad.numpy(), [[0, 1 / 3, 1 / 3], [1 / 3, 0, 0]])
    x.grad = None
    x.amax(1).sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), [[0, 0.5, 0.5], [1, 0, 0]])
    x.grad = None
    values, indices = x.max(1)
    values.sum().backward()
    assert indices.tolist() == [1, 0]
    np.testing.assert_allclose(x.grad.numpy(), [[0, 1, 0], [1, 0, 0]])


def test_nan_wins():
    x = t([[1.0, nan, 5], [-inf, 2, nan]])
    assert x.argmax(1).tolist() == [1, 2]
    assert x.argmin(1).tolist() == [1, 2]
    assert torch.isnan(x.amax(1)).all()
    assert torch.isnan(x.min())
    assert x.nansum().item() == -inf
    assert t([-0.0, 0.0]).argmax().item() == 0


def test_half_integers_and_booleans():
    x = t(X).half()
    assert x.max().dtype is torch.float16
    assert x.max().item() == np.float16(X.astype(np.float16).max())
    assert t([3, 1, 2]).max(0).indices.item() == 0
    assert t([True, False]).min().item() is False
    assert t([1, 2, 3], dtype=torch.int32).prod().dtype is torch.int64
    assert t([0, 2], dtype=torch.uint8).any().dtype is torch.uint8


def test_nothing():
    empty = torch.zeros(2, 0)
    assert empty.any(1).tolist() == [False, False]
    assert empty.all().item() is True
    assert empty.prod().item() == 1
    assert empty.logsumexp(1).tolist() == [-inf, -inf]
    for f in (lambda: empty.max(), lambda: empty.amax(1), lambda: empty.argmin(1)):
        with pytest.raises((RuntimeError, IndexError)):
            f()
    with pytest.warns(UserWarning, match="degrees of freedom"):
        assert np.isnan(torch.ones(1).var().item())


def test_a_large_mean_does_not_swamp_the_variance():
    x = (RNG.normal(size=50000) + 1e6).astype(np.float32)
    assert abs(t(x).var().item() / x.astype(np.float64).var(ddof=1) - 1) < 1e-6
