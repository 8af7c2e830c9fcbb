"""Special functions against SciPy: accuracy over their ranges, special values, derivatives, refusals.

What is one formula of one operand is in test_pointwise_table.py too.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import special as sp

import autograd_nb as torch
from autograd_nb import special

pytestmark = [pytest.mark.slow, pytest.mark.formulas]  # many kernels

INF, NAN = math.inf, math.nan


def call(function, *arrays):
    return function(*(torch.from_numpy(np.asarray(a)) if not isinstance(a, int) else a for a in arrays)).numpy()


def draw(low, high, n=400, seed=0):
    return np.random.default_rng(seed).uniform(low, high, n)


#: name -> (SciPy's function, range); SciPy's own errors set the tolerance: relative beside the size of the function's waves
UNARY = {
    "bessel_j0": (sp.j0, (-60, 60)), "bessel_j1": (sp.j1, (-60, 60)), "bessel_y0": (sp.y0, (0.01, 60)), "bessel_y1": (sp.y1, (0.01, 60)),
    "i0": (sp.i0, (-60, 60)), "i1": (sp.i1, (-60, 60)), "i0e": (sp.i0e, (-90, 90)), "i1e": (sp.i1e, (-90, 90)),
    "modified_bessel_k0": (sp.k0, (0.01, 30)), "modified_bessel_k1": (sp.k1, (0.01, 30)),
    "scaled_modified_bessel_k0": (sp.k0e, (0.01, 90)), "scaled_modified_bessel_k1": (sp.k1e, (0.01, 90)),
    "airy_ai": (lambda x: sp.airy(x)[0], (-20, 10)), "spherical_bessel_j0": (lambda x: sp.spherical_jn(0, x), (-60, 60)),
    "erfcx": (sp.erfcx, (-5, 60)), "ndtr": (sp.ndtr, (-8, 8)), "log_ndtr": (sp.log_ndtr, (-40, 8)), "ndtri": (sp.ndtri, (0, 1)),
}  # fmt: skip


@pytest.mark.parametrize("name", UNARY)
def test_functions_of_one_operand_against_scipy(name):
    reference, (low, high) = UNARY[name]
    x = draw(low, high)
    np.testing.assert_allclose(call(getattr(special, name), x), reference(x), rtol=2e-13, atol=2e-15)
    narrow = x.astype(np.float32)
    if name in ("erfcx", "i0", "i1", "modified_bessel_k0", "modified_bessel_k1"):
        narrow = np.clip(narrow, -8, 60)
    with np.errstate(over="ignore"):
        expected = reference(narrow.astype(np.float64)).astype(np.float32)
    np.testing.assert_allclose(call(getattr(special, name), narrow), expected, rtol=1.2e-7, atol=1e-45)


#: name -> (arguments at the ends of the domain, at poles and outside of it, values there)
AT_THE_ENDS = {
    "bessel_j0": ((0.0, -0.0, NAN), (1.0, 1.0, NAN)),
    "bessel_j1": ((0.0, 1e-300, NAN), (0.0, 5e-301, NAN)),
    "bessel_y0": ((0.0, -1.0, NAN), (-INF, NAN, NAN)),
    "bessel_y1": ((0.0, -1.0, 1e-310), (-INF, NAN, -INF)),
    "i0": ((0.0, 713.0, 720.0), (1.0, 6.7051282636709967e307, INF)),  # SciPy's overflows at 710
    "i0e": ((INF, -INF, 0.0), (0.0, 0.0, 1.0)),
    "i1": ((0.0, -713.0, -720.0), (0.0, -6.700424559186402e307, -INF)),
    "modified_bessel_k0": ((0.0, INF, -1.0), (INF, 0.0, NAN)),
    "modified_bessel_k1": ((0.0, INF, -1.0), (INF, 0.0, NAN)),
    "scaled_modified_bessel_k1": ((0.0, INF, -1.0), (INF, 0.0, NAN)),
    "spherical_bessel_j0": ((0.0, INF, NAN), (1.0, 0.0, NAN)),
    "airy_ai": ((0.0, 200.0, NAN), (sp.airy(0.0)[0], 0.0, NAN)),
    "erfcx": ((INF, -INF, 1e300), (0.0, INF, 1 / (1e300 * math.sqrt(math.pi)))),
    "ndtr": ((INF, -INF, -38.0), (1.0, 0.0, 2.88542835e-316)),
    "log_ndtr": ((INF, -INF, -1e10), (0.0, -INF, -5e19)),
    "ndtri": ((0.0, 1.0, 1.1), (-INF, INF, NAN)),
    "entr": ((0.0, -1.0, NAN), (0.0, -INF, NAN)),
    "psi": ((0.0, -1.0, 1.0), (-INF, NAN, -np.euler_gamma)),
}


@pytest.mark.parametrize("name", AT_THE_ENDS)
def test_values_at_the_ends_of_the_domain(name):
    at, expected = AT_THE_ENDS[name]
    np.testing.assert_allclose(call(getattr(special, name), np.array(at)), expected, rtol=1e-12, atol=1e-323)


# ----------------------------------------------------------------------------------------------- gamma family


#: which orders -> (the lowest and highest of them, how far the argument is from the order, as a standard deviation of its logarithm)
ORDERS = {"middling": (0.01, 10, 1.0), "large": (10, 2000, 0.2), "huge": (1e3, 1e5, 0.01), "small": (1e-6, 0.9, 2.0)}


@pytest.mark.parametrize("orders", ORDERS)
def test_incomplete_gamma_functions_against_scipy_and_their_sum(orders):
    low, high, spread = ORDERS[orders]
    rng = np.random.default_rng(0)
    a = np.exp(rng.uniform(np.log(low), np.log(high), 500))
    x = a * np.exp(rng.normal(0, spread, 500))
    lower, upper = call(torch.igamma, a, x), call(torch.igammac, a, x)
    np.testing.assert_allclose(lower, sp.gammainc(a, x), rtol=1e-10, atol=1e-300)
    np.testing.assert_allclose(upper, sp.gammaincc(a, x), rtol=1e-10, atol=1e-300)
    np.testing.assert_allclose(lower + upper, 1, rtol=1e-14)


def test_incomplete_gamma_at_the_ends():
    a = np.array([0.0, 0, 1, -1, 1, INF, INF, 1, NAN, 1e300])
    x = np.array([0.0, 1, 0, 1, -1, INF, 1, INF, 1, 1e300])
    expected = np.array([NAN, 1, 0, NAN, NAN, NAN, 0, 1, NAN, 0.5])
    np.testing.assert_allclose(call(torch.igamma, a, x), expected)
    np.testing.assert_allclose(call(special.gammaincc, a, x), 1 - expected)


def test_derivatives_by_the_argument_beside_the_order():
    a, x = torch.tensor([0.7, 3.0], dtype=torch.float64), torch.tensor([0.5, 2.0], dtype=torch.float64, requires_grad=True)
    torch.igamma(a, x).sum().backward()
    density = x.detach().numpy() ** (a.numpy() - 1) * np.exp(-x.detach().numpy()) / sp.gamma(a.numpy())
    np.testing.assert_allclose(x.grad.numpy(), density, rtol=1e-14)
    assert torch.autograd.gradgradcheck(lambda x: torch.igammac(a, x), (x,))
    q = torch.tensor([0.5, 2.0], dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda q: special.zeta(3.0, q), (q,))
    assert torch.autograd.gradgradcheck(lambda q: special.zeta(3.0, q), (q,))


@pytest.mark.parametrize(("name", "said"), [("igamma", "igamma: input"), ("igammac", "igammac: input"), ("zeta", "zeta")])
def test_the_missing_derivative_by_the_order_is_said(name, said):
    function = getattr(torch, name, None) or special.zeta
    a = torch.tensor([1.5], requires_grad=True)
    with pytest.raises(NotImplementedError, match=f"the derivative for '{said}' is not implemented"):
        function(a, torch.tensor([2.5])).sum().backward()


def test_zeta_against_scipy_and_at_its_poles():
    rng = np.random.default_rng(0)
    s, q = 1 + 10 ** rng.uniform(-5, 1.3, 300), 10 ** rng.uniform(-3, 3, 300)
    np.testing.assert_allclose(call(special.zeta, s, q), sp.zeta(s, q), rtol=1e-13)
    s = np.array([1.0, 0.5, 2, 2, 2, 2.5, 3, NAN])
    q = np.array([2.0, 2, 0, -1, -1.5, -1.5, -0.5, 1])
    expected = [INF, NAN, INF, INF, 9.379246644989124, NAN, 0.41439832211716, NAN]
    np.testing.assert_allclose(call(special.zeta, s, q), expected, rtol=1e-13)


@pytest.mark.parametrize("n", [0, 1, 2, 3, 7])
def test_polygamma_of_each_order(n):
    x = draw(0.05, 20)
    np.testing.assert_allclose(call(torch.polygamma, n, x), sp.polygamma(n, x), rtol=2e-13, atol=1e-14)
    t = torch.tensor([0.7, 1.3, 4.0], dtype=torch.float64, requires_grad=True)
    (g,) = torch.autograd.grad(t.polygamma(n).sum(), t)
    np.testing.assert_allclose(g.numpy(), sp.polygamma(n + 1, t.detach().numpy()), rtol=1e-13)
    y = t.detach().clone()
    assert y.polygamma_(n) is y
    np.testing.assert_allclose(y.numpy(), sp.polygamma(n, t.detach().numpy()), rtol=1e-13)


# --------------------------------------------------------------------------------------- orthogonal polynomials

POLYNOMIALS = {
    "chebyshev_polynomial_t": sp.eval_chebyt, "chebyshev_polynomial_u": sp.eval_chebyu, "hermite_polynomial_h": sp.eval_hermite,
    "hermite_polynomial_he": sp.eval_hermitenorm, "laguerre_polynomial_l": sp.eval_laguerre, "legendre_polynomial_p": sp.eval_legendre,
    "shifted_chebyshev_polynomial_t": sp.eval_sh_chebyt, "shifted_chebyshev_polynomial_u": sp.eval_sh_chebyu,
}  # fmt: skip


@pytest.mark.parametrize("name", POLYNOMIALS)
def test_orthogonal_polynomials_against_scipy(name):
    x, n = draw(-1.5, 1.5), np.random.default_rng(1).integers(0, 25, 400)
    got = call(getattr(special, name), x, n)
    expected = POLYNOMIALS[name](n, x)
    assert np.max(np.abs(got - expected) / np.maximum(1, np.abs(expected))) < 1e-12


@pytest.mark.parametrize("kind", ["v", "w"])
@pytest.mark.parametrize("shifted", [False, True])
def test_chebyshev_of_the_third_and_fourth_kind(kind, shifted):
    t, n = draw(0.1, 3.0), np.arange(400) % 20
    f = np.cos if kind == "v" else np.sin
    x = (np.cos(t) + 1) / 2 if shifted else np.cos(t)
    got = call(getattr(special, ("shifted_" if shifted else "") + f"chebyshev_polynomial_{kind}"), x, n.astype(np.float64))
    np.testing.assert_allclose(got, f((n + 0.5) * t) / f(t / 2), rtol=1e-10, atol=1e-11)


def test_polynomials_at_the_ends():
    x = torch.tensor([1.0, -1.0, 0.5, 2.0], dtype=torch.float64)
    np.testing.assert_array_equal(special.chebyshev_polynomial_t(x, 3).numpy(), [1, -1, -1, 26])
    np.testing.assert_array_equal(special.chebyshev_polynomial_u(x, 1e6).numpy()[:2], [1e6 + 1, 1e6 + 1])
    np.testing.assert_array_equal(special.chebyshev_polynomial_v(x, 3).numpy()[:2], [1, -7])
    np.testing.assert_array_equal(special.chebyshev_polynomial_w(x, 3).numpy()[:2], [7, -1])
    np.testing.assert_array_equal(special.legendre_polynomial_p(x, -1).numpy(), 0)
    np.testing.assert_array_equal(special.hermite_polynomial_h(2.0, torch.tensor([0, 1, 2])).numpy(), [1, 4, 14])
    assert not special.legendre_polynomial_p(x.requires_grad_(), 3).requires_grad


# ---------------------------------------------------------------------------------------------- the namespace


def test_aliases_methods_and_in_place_forms_are_the_same_functions():
    assert special.modified_bessel_i0 is special.i0 is torch.i0
    assert special.gammainc is torch.igamma
    assert special.psi is special.digamma is torch.digamma
    x = torch.tensor([0.5, 1.5])
    y = x.clone()
    assert y.i0_() is y
    np.testing.assert_allclose(y.numpy(), sp.i0(x.numpy()), rtol=2e-7)
    np.testing.assert_allclose(x.clone().mvlgamma_(1).numpy(), sp.gammaln(x.numpy()), rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(x.clone().igamma_(x).numpy(), sp.gammainc(x.numpy(), x.numpy()), rtol=2e-7)
    assert special.bessel_j0(torch.tensor([1, 2])).dtype is torch.float32


def test_frexp_gives_mantissa_exponent_and_a_gradient():
    x = np.array([0.0, 1.0, -8.0, 3.7, 1e308, 5e-324, INF])
    y = torch.frexp(torch.from_numpy(x))
    mantissa, exponent = np.frexp(x[:-1])
    np.testing.assert_array_equal(y.mantissa.numpy()[:-1], mantissa)
    np.testing.assert_array_equal(y.exponent.numpy()[:-1], exponent)
    assert y.mantissa[-1] == INF and y.exponent.dtype is torch.int32
    t = torch.tensor([3.0, 0.1], requires_grad=True)
    t.frexp().mantissa.sum().backward()
    np.testing.assert_array_equal(t.grad.numpy(), [0.25, 8.0])


REFUSED = {
    "a number as igamma's argument": (lambda x: torch.igamma(x, 2.0), TypeError, "argument 'other' must be Tensor, not float"),
    "igamma of integers": (lambda x: torch.igamma(x.long(), x.long()), NotImplementedError, "\"igamma_cpu\" not implemented for 'Long'"),
    "zeta of numbers only": (lambda x: special.zeta(2.0, 3.0), TypeError, "argument 'input' must be Tensor"),
    "a polynomial of numbers only": (lambda x: special.chebyshev_polynomial_t(2, 3), TypeError, "argument 'input' must be Tensor"),
    "polygamma of a negative order": (lambda x: torch.polygamma(-1, x), RuntimeError, "does not support negative n"),
    "polygamma of a fraction": (lambda x: torch.polygamma(1.5, x), TypeError, "argument 'n' must be int, not float"),
    "mvlgamma of order 0": (lambda x: torch.mvlgamma(x, 0), RuntimeError, "p has to be greater than or equal to 1"),
    "frexp of integers": (lambda x: torch.frexp(x.long()), RuntimeError, "only supports floating-point dtypes"),
    "bessel_j0 of a string": (lambda x: special.bessel_j0("1"), TypeError, "argument 'input' must be Tensor, not str"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_wrong_operands_and_orders_are_refused(case):
    call, error, text = REFUSED[case]
    with pytest.raises(error, match=text):
        call(torch.tensor([1.0, 2.0]))
