"""The ops that are offered under ``special``. Written by `make stubs` from the table of ops: change the op, not this file."""

from collections.abc import Callable, Iterator, Sequence
from types import ModuleType
from typing import Any, Literal, Self, overload

from autograd_nb.dtypes import dtype as _dtype
from autograd_nb.ops.creation.device import device as _device
from autograd_nb.ops.creation.device import layout as _layout
from autograd_nb.ops.creation.device import memory_format as _memory_format
from autograd_nb.ops.creation.storages import TypedStorage, UntypedStorage
from autograd_nb.ops.random.generator import Generator
from autograd_nb.ops.signatures import return_types as _return_types
from autograd_nb.shapes import Size
from autograd_nb.tensor import Tensor
from autograd_nb.types import Device, Number, _Array, _bool, _complex, _float, _Holds, _int, _size, _str

def airy_ai(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Airy's function Ai, a solution of y″ = x·y. Not differentiable, as in PyTorch."""

def bessel_j0(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Return the Bessel function of the first kind J₀; dJ₀/dx = −J₁."""

def bessel_j1(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Return the Bessel function of the first kind J₁; dJ₁/dx = J₀ − J₁/x."""

def bessel_y0(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Return the Bessel function of the second kind Y₀; dY₀/dx = −Y₁. nan for x < 0."""

def bessel_y1(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Return the Bessel function of the second kind Y₁; dY₁/dx = Y₀ − Y₁/x. nan for x < 0."""

def chebyshev_polynomial_t(input: Tensor | _float, n: Tensor | _float, *, out: Tensor | None = None) -> Tensor:
    """Chebyshev polynomials of the first kind, Tₙ(x) = cos(n·arccos x)."""

def chebyshev_polynomial_u(input: Tensor | _float, n: Tensor | _float, *, out: Tensor | None = None) -> Tensor:
    """Chebyshev polynomials of the second kind, Uₙ(cos θ) = sin((n + 1)θ)/sin θ."""

def chebyshev_polynomial_v(input: Tensor | _float, n: Tensor | _float, *, out: Tensor | None = None) -> Tensor:
    """Chebyshev polynomials of the third kind, Vₙ(cos θ) = cos((n + ½)θ)/cos(θ/2)."""

def chebyshev_polynomial_w(input: Tensor | _float, n: Tensor | _float, *, out: Tensor | None = None) -> Tensor:
    """Chebyshev polynomials of the fourth kind, Wₙ(cos θ) = sin((n + ½)θ)/sin(θ/2)."""

def digamma(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """y = ψ(x) = Γ'(x)/Γ(x); dy/dx = the trigamma function. nan at negative integers, ∓∞ at ±0."""

def entr(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Return the entropy −x·ln x: 0 at 0, −∞ for negative x; dy/dx = −1 − ln x."""

def erf(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """y = 2/√π ∫₀ˣ e^(−t²) dt, dy/dx = 2/√π · e^(−x²)."""

def erfc(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """y = 1 − erf x, without the loss of digits for large x."""

def erfcx(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """y = e^(x²)·erfc x, which neither overflows nor loses digits for large x; dy/dx = 2·x·y − 2/√π."""

def erfinv(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Return the inverse of `erf` on [−1, 1]; dy/dx = √π/2 · e^(y²), with y found again, so that it may be changed in between."""

def exp2(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """y = 2ˣ, dy/dx = y·ln 2."""

def expit(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """y = 1/(1 + e⁻ˣ), dy/dx = y·(1 − y)."""

def expm1(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """y = eˣ − 1, without the loss of digits near 0; dy/dx = y + 1."""

def gammainc(input: Tensor, other: Tensor | Number | _complex, *, out: Tensor | None = None) -> Tensor:
    """The regularised lower incomplete gamma function P(a, x) = 1/Γ(a) ∫₀ˣ tᵃ⁻¹e⁻ᵗ dt, a = ``input``, x = ``other``, both floating point tensors."""

def gammaincc(input: Tensor, other: Tensor | Number | _complex, *, out: Tensor | None = None) -> Tensor:
    """The regularised upper incomplete gamma function Q(a, x) = 1/Γ(a) ∫ₓ^∞ tᵃ⁻¹e⁻ᵗ dt, a = ``input``, x = ``other``, both floating point tensors."""

def gammaln(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """y = ln|Γ(x)|, dy/dx = ψ(x), the `digamma` function."""

def hermite_polynomial_h(input: Tensor | _float, n: Tensor | _float, *, out: Tensor | None = None) -> Tensor:
    """The physicists' Hermite polynomials, Hₙ₊₁ = 2x·Hₙ − 2n·Hₙ₋₁."""

def hermite_polynomial_he(input: Tensor | _float, n: Tensor | _float, *, out: Tensor | None = None) -> Tensor:
    """The probabilists' Hermite polynomials, Heₙ₊₁ = x·Heₙ − n·Heₙ₋₁."""

def i0(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Return the modified Bessel function of the first kind I₀; dI₀/dx = I₁."""

def i0e(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Return e^−|x|·I₀(x); dy/dx = e^−|x|·I₁ − sign(x)·y."""

def i1(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Return the modified Bessel function of the first kind I₁; dI₁/dx = I₀ − I₁/x."""

def i1e(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Return e^−|x|·I₁(x); dy/dx = e^−|x|·I₀ − y·(sign(x) + 1/x)."""

def laguerre_polynomial_l(input: Tensor | _float, n: Tensor | _float, *, out: Tensor | None = None) -> Tensor:
    """Laguerre polynomials, (n + 1)·Lₙ₊₁ = (2n + 1 − x)·Lₙ − n·Lₙ₋₁."""

def legendre_polynomial_p(input: Tensor | _float, n: Tensor | _float, *, out: Tensor | None = None) -> Tensor:
    """Legendre polynomials, (n + 1)·Pₙ₊₁ = (2n + 1)·x·Pₙ − n·Pₙ₋₁."""

def log1p(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """y = ln(1 + x), without the loss of digits near 0; dy/dx = 1/(1 + x)."""

def log_ndtr(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Return ln Φ(x), exact also where Φ is 0 or 1 in floating point; dy/dx = √(2/π)/erfcx(−x/√2)."""

def log_softmax(
    input: Tensor, dim: _int | None = None, dtype: _dtype | None = None, *, axis: _int | None = None, out: Tensor | None = None
) -> Tensor:
    """yᵢ = xᵢ − ln Σⱼ e^xⱼ along ``dim``; dL/dx = g − e^y·Σ g. ``dtype`` casts first."""

def logit(input: Tensor, eps: _float | None = None, *, out: Tensor | None = None) -> Tensor:
    """y = ln(x/(1 − x)), x kept within [eps, 1 − eps] when ``eps`` is given; dy/dx = 1/(x(1 − x)), 0 where x was clamped."""

def logsumexp(input: Tensor, dim: _int | Sequence[_int], keepdim: _bool = False, *, out: Tensor | None = None) -> Tensor:
    """Return ln Σ eˣ over ``dim`` (an int or several), without overflow; dL/dx = g·e^(x − y)."""

def modified_bessel_i0(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Return the modified Bessel function of the first kind I₀; dI₀/dx = I₁."""

def modified_bessel_i1(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Return the modified Bessel function of the first kind I₁; dI₁/dx = I₀ − I₁/x."""

def modified_bessel_k0(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Return the modified Bessel function of the second kind K₀; dK₀/dx = −K₁. nan for x < 0."""

def modified_bessel_k1(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Return the modified Bessel function of the second kind K₁; dK₁/dx = −K₀ − K₁/x. nan for x < 0."""

def multigammaln(input: Tensor, p: _int, *, out: Tensor | None = None) -> Tensor:
    """Return the multivariate log-gamma function of order ``p``: p(p−1)/4·ln π + Σₖ ln Γ(x − k/2), k = 0 … p−1."""

def ndtr(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Return Φ(x), the distribution function of the standard normal; dΦ/dx = e^(−x²/2)/√(2π)."""

def ndtri(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Return the inverse of `ndtr`: the x with Φ(x) = p; dx/dp = √(2π)·e^(x²/2). nan outside [0, 1]."""

def polygamma(n: _int, input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Return the n-th derivative of `digamma`: ``polygamma(n, x)`` or ``x.polygamma(n)``; its own derivative is that of order n + 1."""

def psi(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """y = ψ(x) = Γ'(x)/Γ(x); dy/dx = the trigamma function. nan at negative integers, ∓∞ at ±0."""

def round(input: Tensor, *, decimals: _int = 0, out: Tensor | None = None) -> Tensor:
    """Return x rounded to ``decimals`` places, halves to even; the gradient is 0."""

def scaled_modified_bessel_k0(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """y = eˣ·K₀(x); dy/dx = y − eˣ·K₁. nan for x < 0."""

def scaled_modified_bessel_k1(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """y = eˣ·K₁(x); dy/dx = y − eˣ·K₀ − y/x. nan for x < 0."""

def shifted_chebyshev_polynomial_t(input: Tensor | _float, n: Tensor | _float, *, out: Tensor | None = None) -> Tensor:
    """Chebyshev polynomials, taken at 2x − 1, of the first kind, Tₙ(x) = cos(n·arccos x)."""

def shifted_chebyshev_polynomial_u(input: Tensor | _float, n: Tensor | _float, *, out: Tensor | None = None) -> Tensor:
    """Chebyshev polynomials, taken at 2x − 1, of the second kind, Uₙ(cos θ) = sin((n + 1)θ)/sin θ."""

def shifted_chebyshev_polynomial_v(input: Tensor | _float, n: Tensor | _float, *, out: Tensor | None = None) -> Tensor:
    """Chebyshev polynomials, taken at 2x − 1, of the third kind, Vₙ(cos θ) = cos((n + ½)θ)/cos(θ/2)."""

def shifted_chebyshev_polynomial_w(input: Tensor | _float, n: Tensor | _float, *, out: Tensor | None = None) -> Tensor:
    """Chebyshev polynomials, taken at 2x − 1, of the fourth kind, Wₙ(cos θ) = sin((n + ½)θ)/sin(θ/2)."""

def sinc(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """y = sin(πx)/(πx), 1 at 0."""

def softmax(
    input: Tensor, dim: _int | None = None, dtype: _dtype | None = None, *, axis: _int | None = None, out: Tensor | None = None
) -> Tensor:
    """yᵢ = e^xᵢ / Σⱼ e^xⱼ along ``dim``; dL/dx = y·(g − Σ g·y). ``dtype`` casts first."""

def spherical_bessel_j0(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Return the spherical Bessel function of the first kind j₀ = sin x / x; dj₀/dx = (cos x − j₀)/x."""

def xlog1py(input: Tensor, other: Tensor | Number | _complex, *, out: Tensor | None = None) -> Tensor:
    """Return x·ln(1 + y), 0 where x is 0 (unless y is nan)."""

def xlogy(input: Tensor, other: Tensor | Number | _complex, *, out: Tensor | None = None) -> Tensor:
    """Return x·ln y, 0 where x is 0 (unless y is nan)."""

def zeta(input: Tensor, other: Tensor | Number | _complex, *, out: Tensor | None = None) -> Tensor:
    """Hurwitz's ζ(s, q) = Σₖ 1/(q + k)ˢ, k = 0, 1, …; s = ``input``, q = ``other``, one of them may be a number."""
