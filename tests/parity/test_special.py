"""``torch.special`` beyond the op database: special values, promotion, in-place forms, what is refused."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import autograd_nb as ag  # noqa: E402

VALUES = np.array([0.0, np.inf, -np.inf, np.nan, -1.0, 1.0, 0.3, -0.3, 2.5, 1e-300, 1e300, -1e300, 200.0, -200.0, -2.5])
UNARY = ["airy_ai", "bessel_j0", "bessel_j1", "bessel_y0", "bessel_y1", "digamma", "entr", "erf", "erfc", "erfcx", "erfinv", "exp2", "expit",
         "expm1", "gammaln", "i0", "i0e", "i1", "i1e", "log1p", "log_ndtr", "logit", "modified_bessel_i0", "modified_bessel_i1",
         "modified_bessel_k0", "modified_bessel_k1", "ndtr", "ndtri", "psi", "round", "scaled_modified_bessel_k0",
         "scaled_modified_bessel_k1", "sinc", "spherical_bessel_j0"]  # fmt: skip
POLYNOMIALS = [p + k for p in ("chebyshev_polynomial_", "shifted_chebyshev_polynomial_") for k in "tuvw"] + [
    "hermite_polynomial_h", "hermite_polynomial_he", "laguerre_polynomial_l", "legendre_polynomial_p"
]  # fmt: skip


def test_the_whole_namespace():
    theirs = {n for n in torch.special.__all__ if callable(getattr(torch.special, n))}
    assert not theirs - set(dir(ag.special))


@pytest.mark.parametrize("name", UNARY)
def test_special_values(name):
    mine = getattr(ag.special, name)(ag.from_numpy(VALUES)).numpy()
    theirs = getattr(torch.special, name)(torch.from_numpy(VALUES)).numpy()
    if name in ("digamma", "psi", "sinc"):  # near a huge pole or zero: ours is rounded once
        keep = np.abs(VALUES) != 1e-300
        mine, theirs = mine[keep], theirs[keep]
    # PyTorch's Airy and Bessel functions are right to 5 digits in places (Ai(-2.5), J0(-5.42)); see tests/ops/test_special.py
    np.testing.assert_allclose(mine, theirs, rtol=1e-5 if name.startswith(("airy", "bessel")) else 1e-9, atol=1e-12)


@pytest.mark.parametrize("name", POLYNOMIALS)
def test_polynomials(name):
    x, n = np.meshgrid([0.0, 1.0, -1.0, 0.5, -0.7, 2.0, -1.5], [-1.0, 0.0, 1.0, 2.0, 2.9, 6.0, 7.0, 9.0, 20.0])
    mine = getattr(ag.special, name)(ag.from_numpy(x.copy()), ag.from_numpy(n.copy())).numpy()
    theirs = getattr(torch.special, name)(torch.from_numpy(x.copy()), torch.from_numpy(n.copy())).numpy()
    np.testing.assert_allclose(mine, theirs, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", POLYNOMIALS)
def test_polynomials_of_degrees_that_are_none(name):
    n = [float("nan"), float("inf"), -float("inf"), 1e30, -1e30, 2.0**63, -0.0, 2.9, -0.9, -1.0]
    x = [[0.3], [1.0], [-2.5], [float("inf")]]  # (of nan PyTorch gives what nothing was written to)
    theirs = getattr(torch.special, name)(torch.tensor(x, dtype=torch.float64), torch.tensor(n, dtype=torch.float64))
    found = getattr(ag.special, name)(ag.tensor(x, dtype=ag.float64), ag.tensor(n, dtype=ag.float64))
    np.testing.assert_allclose(found.numpy(), theirs.numpy(), rtol=1e-12)


def test_promotion():
    for make in (lambda t, s: s.zeta(t.tensor([2, 3]), 2.0), lambda t, s: s.zeta(2.0, t.tensor([2.0], dtype=t.float64)),
                 lambda t, s: s.xlog1py(t.tensor([2]), t.tensor([2.0])), lambda t, s: s.chebyshev_polynomial_t(t.tensor([2]), 3),
                 lambda t, s: s.bessel_j0(t.tensor([True])), lambda t, s: t.polygamma(2, t.tensor([2])),
                 lambda t, s: t.mvlgamma(t.tensor([3]), 2), lambda t, s: t.i0(t.tensor([2.0], dtype=t.float16)),
                 lambda t, s: t.square(t.tensor([True])), lambda t, s: t.frexp(t.tensor([2.0], dtype=t.float16))[0]):  # fmt: skip
        mine, theirs = make(ag, ag.special), make(torch, torch.special)
        assert str(mine.dtype) == str(theirs.dtype)
        np.testing.assert_allclose(mine.numpy(), theirs.numpy(), rtol=1e-3)


REFUSED = [
    lambda t, x: t.igamma(x, 2.0), lambda t, x: t.igamma(x.long(), x.long()), lambda t, x: t.special.zeta(2.0, 3.0),
    lambda t, x: t.polygamma(-1, x), lambda t, x: t.polygamma(1.5, x), lambda t, x: t.mvlgamma(x, 0), lambda t, x: t.frexp(x.long()),
    lambda t, x: t.maximum(x, 1.0), lambda t, x: t.atan2(1.0, x), lambda t, x: t.eq(2, x), lambda t, x: t.gcd(x.long(), 2),
    lambda t, x: t.logical_and(x, 1), lambda t, x: t.pow(2, 3), lambda t, x: -x.bool(), lambda t, x: t.nextafter(x.long(), x.long()),
    lambda t, x: x.atan2_(2.0), lambda t, x: t.isclose(x, x, rtol=-1),
]  # fmt: skip


@pytest.mark.parametrize("call", REFUSED)
def test_refusals(call):
    with pytest.raises(Exception) as theirs:
        call(torch, torch.tensor([1.0, 2.0]))
    with pytest.raises(theirs.type):
        call(ag, ag.tensor([1.0, 2.0]))


@pytest.mark.parametrize("kind", ["float16", "bfloat16", "float32", "float64"])
def test_next_numbers(kind):
    info = torch.finfo(getattr(torch, kind))
    small = info.smallest_normal
    values = [0.0, -0.0, 1, -1, 2, 3, 0.1, 1e-6, 300.0, info.max, -info.max, np.inf, -np.inf, np.nan, small, -small, small * info.eps, small * (1 - info.eps)]

    def found(t):
        x, other = (t.tensor(values, dtype=t.float64).to(getattr(t, kind)) for _ in range(2))
        out = t.empty_like(x)
        t.nextafter(x, x.flip(0), out=out)
        every = [t.nextafter(x[:, None], x), other.nextafter_(t.tensor(5.0, dtype=x.dtype)), t.nextafter(x, t.tensor([3])), out]
        return [(y.shape, str(y.dtype).rpartition(".")[2], y.double().numpy()) for y in every]

    for mine, theirs in zip(found(ag), found(torch), strict=True):
        assert mine[:2] == theirs[:2]
        np.testing.assert_array_equal(mine[2], theirs[2])
