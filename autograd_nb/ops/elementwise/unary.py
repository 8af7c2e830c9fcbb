"""Functions of one operand, one formula an op; their derivatives are PyTorch's, special values included."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ... import dtypes, return_types
from ...codegen.formula.namespace import m
from ...tensor import Tensor
from ..core.inplace import counted
from ..core.numbers import float_argument, int_argument, number_argument, real_beside
from ..core.pointwise import pointwise
from ..core.recording import need_floats, need_numbers, no_complex_derivative, real_operands, store, store_each
from ..core.registry import OPS, public
from ..core.structured import structured, tensor_argument
from ..creation.cast import cast

LN2, LN10 = math.log(2.0), math.log(10.0)

# --------------------------------------------------------------------------------- exponentials and logarithms


@pointwise(lambda y: y, result="float")
def exp(x):
    """y = eˣ, dy/dx = y; exp([0., 1.]) = [1.0000, 2.7183]."""
    return m.exp(x)


@pointwise(lambda y: y * LN2, result="float")
def exp2(x):
    """y = 2ˣ, dy/dx = y·ln 2; exp2([0., 3.]) = [1., 8.]."""
    return m.exp2(x)


@pointwise(lambda y: y + 1, result="float")
def expm1(x):
    """y = eˣ − 1, without the loss of digits near 0; dy/dx = y + 1; expm1([0., 1.]) = [0.0000, 1.7183]."""
    return m.expm1(x)


@pointwise(lambda g, x: g / x, result="float", samples=(0.1, 3))
def log(x):
    """y = ln x, dy/dx = 1/x; log([1., 10.]) = [0.0000, 2.3026]."""
    return m.log(x)


@pointwise(lambda g, x: g / (x * LN2), result="float", samples=(0.1, 3))
def log2(x):
    """y = log₂ x, dy/dx = 1/(x·ln 2); log2([1., 8.]) = [0., 3.]."""
    return m.log2(x)


@pointwise(lambda g, x: g / (x * LN10), result="float", samples=(0.1, 3))
def log10(x):
    """y = log₁₀ x, dy/dx = 1/(x·ln 10); log10([1., 100.]) = [0., 2.]."""
    return m.log10(x)


@pointwise(lambda g, x: g / (x + 1), result="float", samples=(-0.8, 3))
def log1p(x):
    """y = ln(1 + x), without the loss of digits near 0; dy/dx = 1/(1 + x); log1p([0., 1.]) = [0.0000, 0.6931]."""
    return m.log1p(x)


# ------------------------------------------------------------------------------------------------ trigonometry


@pointwise(lambda x: m.cos(x), result="float")
def sin(x):
    """y = sin x, dy/dx = cos x; sin([0., 1.]) = [0.0000, 0.8415]."""
    return m.sin(x)


@pointwise(lambda x: -m.sin(x), result="float")
def cos(x):
    """y = cos x, dy/dx = −sin x; cos([0., 1.]) = [1.0000, 0.5403]."""
    return m.cos(x)


@pointwise(lambda y: 1 + y * y, result="float", samples=(-1.2, 1.2))
def tan(x):
    """y = tan x, dy/dx = 1 + y²; tan([0., 1.]) = [0.0000, 1.5574]."""
    return m.tan(x)


@pointwise(lambda x: m.rsqrt(1 - x * x), result="float", aliases=("arcsin",), samples=(-0.9, 0.9))
def asin(x):
    """y = arcsin x, dy/dx = 1/√(1 − x²); asin([0., 1.]) = [0.0000, 1.5708]."""
    return m.asin(x)


@pointwise(lambda x: -m.rsqrt(1 - x * x), result="float", aliases=("arccos",), samples=(-0.9, 0.9))
def acos(x):
    """y = arccos x, dy/dx = −1/√(1 − x²); acos([0., 1.]) = [1.5708, 0.0000]."""
    return m.acos(x)


@pointwise(lambda g, x: g / (x * x + 1), result="float", aliases=("arctan",))
def atan(x):
    """y = arctan x, dy/dx = 1/(1 + x²); atan([0., 1.]) = [0.0000, 0.7854]."""
    return m.atan(x)


@pointwise(lambda x: m.cosh(x), result="float")
def sinh(x):
    """y = sinh x, dy/dx = cosh x; sinh([0., 1.]) = [0.0000, 1.1752]."""
    return m.sinh(x)


@pointwise(lambda x: m.sinh(x), result="float")
def cosh(x):
    """y = cosh x, dy/dx = sinh x; cosh([0., 1.]) = [1.0000, 1.5431]."""
    return m.cosh(x)


@pointwise(lambda y: 1 - y * y, result="float")
def tanh(x):
    """y = tanh x, dy/dx = 1 − y²; tanh([0., 1.]) = [0.0000, 0.7616]."""
    return m.tanh(x)


@pointwise(lambda x: m.rsqrt(x * x + 1), result="float", aliases=("arcsinh",))
def asinh(x):
    """y = arsinh x, dy/dx = 1/√(x² + 1); asinh([0., 1.]) = [0.0000, 0.8814]."""
    return m.asinh(x)


def _acosh_slope(x):
    # the product has the right sign also left of the imaginary axis; for real numbers PyTorch has the one root
    return m.rsqrt(x - 1) * m.rsqrt(x + 1) if "complex" in str(x.dtype) else m.rsqrt(x * x - 1)


@pointwise(lambda x: _acosh_slope(x), result="float", aliases=("arccosh",), samples=(1.2, 3))
def acosh(x):
    """y = arcosh x, dy/dx = 1/√(x² − 1); acosh([1., 2.]) = [0.0000, 1.3170]."""
    return m.acosh(x)


@pointwise(lambda g, x: g / (1 - x * x), result="float", aliases=("arctanh",), samples=(-0.9, 0.9))
def atanh(x):
    """y = artanh x, dy/dx = 1/(1 − x²); atanh([0., 0.5]) = [0.0000, 0.5493]."""
    return m.atanh(x)


@pointwise(
    lambda g, x: m.where(x * x == 0, 0.0, g * ((math.pi * x) * m.cos(math.pi * x) - m.sin(math.pi * x)) / (math.pi * (x * x))),
    result="float",
    samples=(0.2, 1.8),
)
def sinc(x):
    """y = sin(πx)/(πx), 1 at 0; sinc([0., 0.5]) = [1.0000, 0.6366]."""
    a = math.pi * x
    return m.where(x == 0, 1.0, m.sin(a) / a)


@pointwise(lambda: math.pi / 180, result="float", check=real_operands("deg2rad is not supported for complex tensors."))
def deg2rad(x):
    """y = x·π/180; deg2rad([180., 90.]) = [3.1416, 1.5708]."""
    return x * (math.pi / 180)


@pointwise(lambda: 180 / math.pi, result="float", check=real_operands("rad2deg is not supported for complex tensors."))
def rad2deg(x):
    """y = x·180/π; rad2deg([1., 2.]) = [ 57.2958, 114.5916]."""
    return x * (180 / math.pi)


# ------------------------------------------------------------------------------- sigmoid, error function, gamma


@pointwise(lambda y: (1 - y) * y, result="float")
def sigmoid(x):
    """y = 1/(1 + e⁻ˣ), dy/dx = y·(1 − y); sigmoid([0., 2.]) = [0.5000, 0.8808]."""
    return m.sigmoid(x)


@pointwise(
    lambda g, x, eps: m.where((x < eps) | (x > 1 - eps), 0.0, g / (x * (1 - x))), None,
    result="float",
    public=False,
    name="logit_eps",
    node="LogitBackward0",
)
def _logit_eps(x, eps):
    p = m.where(x < eps, eps, m.where(x > 1 - eps, 1 - eps, x))
    return m.log(p / (1 - p))


@pointwise(
    lambda g, x: m.where((x < 0) | (x > 1), math.nan, g / m.abs(x * (1 - x))),
    result="float",
    public=False,
    name="logit_",
    node="LogitBackward0",
    check=real_operands('"logit" not implemented for complex tensors (ComplexFloat, ComplexDouble)'),
)
def _logit(x):
    return m.log(x / (1 - x))


def _eps_of_logit(x: Any, eps: Any) -> float:
    eps = float_argument(eps, "logit", "eps")
    return real_beside(x, eps, "logit", "eps", x.dtype) if isinstance(x, Tensor) and x.dtype.category == 2 else eps


def _bounds(x: Any, eps: Any) -> float | None:
    """Return the ``eps`` of a call, None where it bounds nothing: one that is below 0 in the precision that is computed in."""
    if eps is None:
        return None
    eps = _eps_of_logit(x, eps)
    wide = isinstance(x, Tensor) and x.dtype is dtypes.float64
    return None if (eps if wide else np.float32(eps)) < 0 else eps


@public()
def logit(input, eps=None, *, out=None):
    """y = ln(x/(1 − x)), x kept within [eps, 1 − eps] when ``eps`` is given; dy/dx = 1/(x(1 − x)), 0 where x was clamped.

    >>> torch.logit(torch.tensor([0.5, 0.9]))
    tensor([0.0000, 2.1972])
    """
    eps = _bounds(input, eps)
    y = _logit(input) if eps is None else _logit_eps(input, eps)
    return y if out is None else store(out, y, "logit", (), (input,))


@public(kind="inplace")
def logit_(input, eps=None):
    """Compute `logit` in place and return the tensor."""
    eps = _bounds(input, eps)
    return _logit.inplace(input) if eps is None else _logit_eps.inplace(input, eps)


@pointwise(lambda x: (2 / math.sqrt(math.pi)) * m.exp(-(x * x)), result="float")
def erf(x):
    """y = 2/√π ∫₀ˣ e^(−t²) dt, dy/dx = 2/√π · e^(−x²); erf([0., 1.]) = [0.0000, 0.8427]."""
    return m.erf(x)


@pointwise(lambda x: (-2 / math.sqrt(math.pi)) * m.exp(-(x * x)), result="float")
def erfc(x):
    """y = 1 − erf x, without the loss of digits for large x; erfc([0., 1.]) = [1.0000, 0.1573]."""
    return m.erfc(x)


def _erfinv_slope(x):
    y = m.erfinv(x)
    return (math.sqrt(math.pi) / 2) * m.exp(y * y)


@pointwise(lambda x: _erfinv_slope(x), result="float", methods=("erfinv_",), samples=(-0.9, 0.9))
def erfinv(x):
    """Return the inverse of `erf` on [−1, 1]; dy/dx = √π/2 · e^(y²), with y found again, so that it may be changed in between.

    >>> torch.erfinv(torch.tensor([0., 0.5]))
    tensor([0.0000, 0.4769])
    """
    return m.erfinv(x)


@pointwise(lambda x: m.digamma(x), result="float", methods=("lgamma_",), samples=(0.3, 4))
def lgamma(x):
    """y = ln|Γ(x)|, dy/dx = ψ(x), the `digamma` function; lgamma([1., 4.]) = [0.0000, 1.7918]."""
    return m.lgamma(x)


@pointwise(lambda x: m.trigamma(x), result="float", methods=("digamma_",), samples=(0.3, 4))
def digamma(x):
    """y = ψ(x) = Γ'(x)/Γ(x); dy/dx = the trigamma function. nan at negative integers, ∓∞ at ±0; digamma([1., 2.]) = [-0.5772, 0.4228]."""
    return m.digamma(x)


# ------------------------------------------------------------------------------------------ rounding and signs


@pointwise(lambda: 0, check=lambda avals: need_numbers("floor_vml_cpu", avals), samples=(0.1, 0.9))
def floor(x):
    """Return the largest integer ≤ x; the gradient is 0; floor([-0.5, 1.5]) = [-1., 1.]."""
    return m.floor(x)


@pointwise(lambda: 0, check=lambda avals: need_numbers("ceil_vml_cpu", avals), samples=(0.1, 0.9))
def ceil(x):
    """Return the smallest integer ≥ x; the gradient is 0; ceil([-0.5, 1.5]) = [-0., 2.]."""
    return m.ceil(x)


@pointwise(lambda: 0, aliases=("fix",), check=lambda avals: need_numbers("trunc_vml_cpu", avals), samples=(0.1, 0.9))
def trunc(x):
    """Return x without its fraction; the gradient is 0; trunc([-1.5, 1.5]) = [-1., 1.]."""
    return m.trunc(x)


@pointwise(lambda: 1, check=lambda avals: need_floats("frac_cpu", avals), samples=(0.1, 0.9))
def frac(x):
    """Return the fraction of x, with its sign: y = x − trunc x, dy/dx = 1; frac([-1.5, 2.25]) = [-0.5000, 0.2500]."""
    return x - m.trunc(x)


@pointwise(lambda: 0, public=False, name="rint", node="RoundBackward0", check=lambda avals: need_numbers("round_vml_cpu", avals))
def _rint(x):
    return m.round(x)


@pointwise(lambda: 0, None, public=False, name="round_scaled", node="RoundBackward1", exact=("scale",))
def _round_scaled(x, scale):
    return m.round(x * scale) / scale


@pointwise(lambda: 0, None, public=False, name="round_tens", node="RoundBackward1", exact=("scale",))
def _round_tens(x, scale):
    return m.round(x / scale) * scale


def _rounded(input, decimals, inplace):
    x, decimals = tensor_argument(input, "round"), int_argument(decimals, "round", "decimals")
    if decimals:
        need_floats("round_cpu", (x,))
    else:
        return _rint.inplace(x) if inplace else _rint(x)
    op = _round_scaled if decimals > 0 else _round_tens
    scale = 10.0 ** abs(decimals) if abs(decimals) < 309 else math.inf
    return op.inplace(x, scale) if inplace else op(x, scale)


@public()
def round(input, *, decimals=0, out=None):
    """Return x rounded to ``decimals`` places, halves to even; the gradient is 0; round([0.5, 1.5, -1.7]) = [ 0., 2., -2.]."""
    y = _rounded(input, decimals, False)
    return y if out is None else store(out, y, "round", (), (input,))


@public(kind="inplace")
def round_(input, *, decimals=0):
    """Compute `round` in place and return the tensor."""
    return _rounded(input, decimals, True)


@pointwise(None, public=False, inplace=False, name="mantissa")
def _mantissa(x):
    return m.mantissa(x)


@pointwise(None, public=False, inplace=False, name="exponent")
def _exponent(x):
    return m.exponent(x)


@structured(
    x=lambda g, out1: None if g[0] is None else g[0] * exp2(cast(-out1, g[0].dtype)), node="FrexpBackward0", linear="no", batch="shift",
    dtypes="half float", samples="x(3, 4).frexp().mantissa",
)
def _frexp(x):
    return _mantissa(x), cast(_exponent(x), dtypes.int32)


@public()
def frexp(input, *, out=None):
    """Return (mantissa, exponent) with x = mantissa·2^exponent, ½ ≤ |mantissa| < 1, the exponent an int32; 0, ±∞ and nan have exponent 0.

    The mantissa's derivative is 2^−exponent. Errors: RuntimeError for integers.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.frexp.html

    >>> torch.frexp(torch.tensor([10.0])).mantissa
    tensor([0.6250])
    """
    x = tensor_argument(input, "frexp")
    if x.dtype.category != 2:
        raise RuntimeError(f"torch.frexp() only supports floating-point dtypes (input has {x.dtype})")
    y = return_types.frexp(*_frexp(x))
    return y if out is None else return_types.frexp(*store_each(out, (y[0], y[1]), "frexp"))


def _sign(x):
    return m.where(x > 0, 1, m.where(x < 0, -1, 0)).cast(x.dtype)


def _check_sign(avals):
    if avals[0].dtype.is_complex:
        raise NotImplementedError(
            "Unlike NumPy, torch.sign is not intended to support complex numbers. Please use torch.sgn instead."
        )


@pointwise(lambda: 0, check=_check_sign, methods=("sign_",), samples=(0.2, 2))
def sign(x):
    """Return −1, 0 or 1; the gradient is 0. RuntimeError for complex numbers (see `sgn`); sign([-2., 0., 3.]) = [-1., 0., 1.]."""
    return _sign(x)


@pointwise(result="bool", check=real_operands("signbit is not implemented for complex tensors."))
def signbit(x):
    """Return whether the sign bit is set (true for −0.0); signbit([-1., 0., 2.]) = [ True, False, False]."""
    return m.copysign(1, x) < 0 if x.dtype in ("float32", "float64") else x < 0


@pointwise(result="bool", check=real_operands("isneginf does not support complex inputs."))
def isneginf(x):
    """Return whether x is −∞; isneginf([1., float("-inf")]) = [False, True]."""
    return x == -math.inf if x.dtype in ("float32", "float64") else x != x


@pointwise(result="bool", check=real_operands("isposinf does not support complex inputs."))
def isposinf(x):
    """Return whether x is ∞; isposinf([1., float("inf")]) = [False, True]."""
    return x == math.inf if x.dtype in ("float32", "float64") else x != x


@pointwise(result="bool")
def isreal(x):
    """Return whether the imaginary part is 0; isreal([1 + 0j, 2j]) = [ True, False]."""
    return m.imag(x) == 0


@pointwise(
    lambda g, x: m.where((x - x) == (x - x), g, 0.0), None, None, None, name="nan_to_num", public=False
)  # fmt: skip
def _nan_to_num(x, nan, posinf, neginf):
    return m.where(x != x, nan, m.where(x == math.inf, posinf, m.where(x == -math.inf, neginf, x)))


def _nan_to_num_options(x, nan, posinf, neginf):
    given = {"nan": nan, "posinf": posinf, "neginf": neginf}
    nan, posinf, neginf = (v if v is None else number_argument(v, "nan_to_num", n) for n, v in given.items())
    limits = dtypes.finfo(x.dtype)
    return (float(nan or 0.0), float(limits.max if posinf is None else posinf), float(limits.min if neginf is None else neginf))


def _parts_to_num(x, options):
    """Return complex numbers whose parts are replaced each by itself."""
    return OPS["complex"].call(*(_nan_to_num(OPS[part].call(x), *options) for part in ("real", "imag")))


@public()
def nan_to_num(input, nan=None, posinf=None, neginf=None, *, out=None):
    """Return nan, ∞ and −∞ replaced by ``nan`` (0), ``posinf`` (the largest number) and ``neginf``; there the gradient is 0.

    >>> torch.nan_to_num(torch.tensor([1., float("nan")]))
    tensor([1., 0.])
    """
    x = tensor_argument(input, "nan_to_num")
    no_complex_derivative("nan_to_num", x)
    if x.dtype.category < 2:
        y = x.clone()
    else:
        options = _nan_to_num_options(x, nan, posinf, neginf)
        y = _parts_to_num(x, options) if x.dtype.is_complex else _nan_to_num(x, *options)
    return y if out is None else store(out, y, "nan_to_num", (), (input,))


@public(kind="inplace")
def nan_to_num_(input, nan=None, posinf=None, neginf=None):
    """Compute `nan_to_num` in place and return the tensor."""
    x = tensor_argument(input, "nan_to_num_")
    if x.dtype.category < 2:
        return counted(x)
    options = _nan_to_num_options(x, nan, posinf, neginf)
    if not x.dtype.is_complex:
        return _nan_to_num.inplace(x, *options)
    return x.copy_(_parts_to_num(x.clone() if x.requires_grad else x, options))  # (what is saved is what it was)


@pointwise(lambda g, y: m.where(y <= 0, 0.0, g), check=lambda avals: need_numbers("relu_cpu", avals), samples=(0.1, 2))
def relu(x):
    """y = max(x, 0), dy/dx = 1 for x > 0, else 0; relu([-1., 2.]) = [0., 2.]."""
    return m.where(x < 0, 0, x)
