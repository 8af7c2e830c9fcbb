"""Special functions: the gamma family, Bessel's, the normal distribution's. One formula an op; the mathematics is in `codegen`.

Source: https://docs.pytorch.org/docs/stable/special.html
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from ...codegen.formula.namespace import FORMULAS, m
from ...codegen.formula.symbols import libm
from ...graph.modes import state
from ...shapes import as_int
from ...tensor import Tensor
from ..core.calls import only_tensors
from ..core.inplace import in_place
from ..core.numbers import int_argument
from ..core.pointwise import pointwise
from ..core.recording import need_floats, store
from ..core.registry import OPS, public, register
from ..core.structured import structured, tensor_argument
from ..creation.cast import contiguous
from .arithmetic import underivable
from .unary import digamma, lgamma


def _also(name: str, *aliases: str) -> None:
    """Offer an op of the table in the namespace ``special`` too, under other names."""
    for alias in aliases:
        register(f"special.{alias}", OPS[name].call, OPS[name].kind, method=False, namespaces=("special",))


def _by_formula(declared: Callable[..., Any]) -> Callable[..., Any]:
    """Let derivatives name an op that is not public as ``m.<name>``, on symbols and on tensors."""
    op = declared.op  # type: ignore[attr-defined]
    FORMULAS.setdefault(op.name, op.formula)
    if op.name not in OPS:
        register(op.name, declared, "internal", method=False, namespaces=())
    return declared


# --------------------------------------------------------------------------------------------- the gamma family


def _apart(name: str) -> Any:
    """Return an op that gives its operand, and refuses the derivative by that: no pass that asks for another operand's runs it."""
    return pointwise(underivable(name), name=name, node="NotImplemented", public=False)(lambda x: x)


def _set_apart(op: Any, operand: Any) -> Any:
    return op(operand) if isinstance(operand, Tensor) and operand._rg and state.grad else operand


def _gamma_slope(g, a, x):
    return g * m.exp((a - 1) * m.log(x) - x - m.lgamma(a))


@pointwise(
    lambda g: g, _gamma_slope, name="igamma", node="IgammaBackward0", public=False, check=lambda avals: need_floats("igamma_cpu", avals)
)
def _igamma(a, x):
    return libm("iterative.igamma", a, x)


@pointwise(
    lambda g: g, lambda g, a, x: -_gamma_slope(g, a, x),
    name="igammac", node="IgammacBackward0", public=False, check=lambda avals: need_floats("igammac_cpu", avals),
)  # fmt: skip
def _igammac(a, x):
    return libm("iterative.igammac", a, x)


def _incomplete(name: str, op: Any, text: str, shown: str, special: str) -> None:
    apart = _apart(f"{name}: input")

    def call(input, other, *, out=None):
        only_tensors(name, input, other)
        y = op(_set_apart(apart, input), other)
        return y if out is None else store(out, y, name, (), (input, other))

    def inner(input, other):
        only_tensors(name + "_", input, other)
        return op.inplace(input, other) if _set_apart(apart, input) is input else in_place(name + "_", call, input, other)

    call.__name__, inner.__name__ = name, name + "_"
    call.__doc__ = (
        f"{text}, a = ``input``, x = ``other``, both floating point tensors; {name}([1., 2.], [1., 1.]) = {shown}.\n\n"
        f"    The derivative by x is {'−' if name == 'igammac' else ''}xᵃ⁻¹e⁻ˣ/Γ(a); by a there is none (NotImplementedError, as in PyTorch).\n\n"
        "    Errors: NotImplementedError for integers.\n"
        f"    Source: https://docs.pytorch.org/docs/stable/special.html#torch.special.{special}"
    )
    inner.__doc__ = f"Compute `{name}` in place and return the tensor."
    register(name, call, "pointwise")
    register(name + "_", inner, "inplace", namespaces=())
    _also(name, special)


_incomplete("igamma", _igamma, "The regularised lower incomplete gamma function P(a, x) = 1/Γ(a) ∫₀ˣ tᵃ⁻¹e⁻ᵗ dt", "[0.6321, 0.2642]", "gammainc")
_incomplete(
    "igammac", _igammac, "The regularised upper incomplete gamma function Q(a, x) = 1/Γ(a) ∫ₓ^∞ tᵃ⁻¹e⁻ᵗ dt", "[0.3679, 0.7358]", "gammaincc"
)


@_by_formula
@pointwise(
    lambda g: g, lambda g, s, q: g * -s * m.zeta(s + 1, q),
    result="float", name="zeta", node="SpecialZetaBackward0", public=False,
)  # fmt: skip
def _zeta(s, q):
    return libm("iterative.zeta", s, q)


_zeta_apart = _apart("zeta")


@public(method=False, namespaces=("special",), name="special.zeta", kind="pointwise")
def zeta(input, other, *, out=None):
    """Hurwitz's ζ(s, q) = Σₖ 1/(q + k)ˢ, k = 0, 1, …; s = ``input``, q = ``other``, one of them may be a number.

    ∂/∂q = −s·ζ(s + 1, q); by s there is no derivative (NotImplementedError, as in PyTorch).
    Source: https://docs.pytorch.org/docs/stable/special.html#torch.special.zeta

    >>> torch.special.zeta(torch.tensor([2.0]), 1)
    tensor([1.6449])
    """
    only_tensors("zeta", input, other, "either")
    y = _zeta(_set_apart(_zeta_apart, input), other)
    return y if out is None else store(out, y, "zeta", (), (input, other))


_BERNOULLI = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510)


@_by_formula
@pointwise(
    lambda x: m.polygamma_order(x, 2),
    result="float", method=False, namespaces=(), node="PolygammaBackward0", samples=(0.3, 4),
)  # fmt: skip
def trigamma(x):
    """Return ψ'(x), the derivative of `digamma`."""
    x = x.cast("float64")
    small = x < 0.5
    z = m.where(small, 1 - x, x)
    shifts = 10
    total = 1 / (z * z)
    for k in range(1, shifts):
        total = total + 1 / ((z + float(k)) * (z + float(k)))
    w = z + float(shifts)
    r = 1 / (w * w)
    tail = 0.0
    for b in reversed(_BERNOULLI):
        tail = tail * r + b
    y = total + 1 / w + 0.5 * r + tail * r / w
    s = m.sin(math.pi * (x - m.round(x)))
    return m.where(small, (math.pi * math.pi) / (s * s) - y, y)


@_by_formula
@pointwise(lambda x, n: m.polygamma_order(x, n + 1), None, result="float", public=False, node="PolygammaBackward0", exact=("n",))
def polygamma_order(x, n):
    """Return the n-th derivative of `digamma`, n ≥ 2 a number: (−1)ⁿ⁺¹·n!·ζ(n + 1, x)."""
    x, n = x.cast("float64"), x.trace.as_sym(n, "float64").cast("float64")
    odd = n - 2 * m.floor(n * 0.5)
    return (2 * odd - 1) * libm("math.gamma", n + 1) * libm("iterative.zeta", n + 1, x)


def _order(n: Any, name: str) -> int:
    if isinstance(n, bool) or not hasattr(n, "__index__"):
        raise TypeError(f"{name}(): argument 'n' must be int, not {type(n).__name__} (n={n!r})")
    n = as_int(n.__index__(), "n")
    if n < 0:
        raise RuntimeError(f"polygamma(n, x) does not support negative n. (n={n})")
    return n


@public()
def polygamma(n, input, *, out=None):
    """Return the n-th derivative of `digamma`: ``polygamma(n, x)`` or ``x.polygamma(n)``; its own derivative is that of order n + 1.

    Errors: TypeError unless n is an integer; RuntimeError where it is negative.
    Source: https://docs.pytorch.org/docs/stable/special.html#torch.special.polygamma

    >>> torch.polygamma(1, torch.tensor([1.0]))
    tensor([1.6449])
    """
    k, x = _order(n, "polygamma"), tensor_argument(input, "polygamma")
    y = digamma(x) if k == 0 else trigamma(x) if k == 1 else polygamma_order(x, k)
    return y if out is None else store(out, y, "polygamma", (), (input,))


def _polygamma_method(self, n, *, out=None):
    return polygamma(n, self, out=out)


_polygamma_method.__doc__ = polygamma.__doc__
Tensor.polygamma = _polygamma_method  # type: ignore[attr-defined]


@public(kind="inplace", namespaces=())
def polygamma_(input, n):
    """Compute `polygamma` in place and return the tensor."""
    x, k = tensor_argument(input, "polygamma_"), _order(n, "polygamma_")
    if k < 2:
        return (trigamma if k else digamma).inplace(x)
    return polygamma_order.inplace(x, k)


def _mvlgamma_rule(g, x, p):
    total = digamma(x)
    for k in range(1, p):
        total = total + digamma(x - k / 2)
    return g * total


@structured(x=_mvlgamma_rule, linear="no", batch="shift", dtypes="half float integer bool", samples="torch.mvlgamma(pos(3, 4) + 1, 2)")
def _mvlgamma(x, p):
    x = contiguous(x)  # as the result is
    y = lgamma(x)
    for k in range(1, p):
        y = y + lgamma(x - k / 2)
    return y + p * (p - 1) / 4 * math.log(math.pi)


@public()
def mvlgamma(input, p: int, *, out=None):
    """Return the multivariate log-gamma function of order ``p``: p(p−1)/4·ln π + Σₖ ln Γ(x − k/2), k = 0 … p−1.

    Derivative: dy/dx = Σₖ ψ(x − k/2), k = 0 … p−1.
    Errors: RuntimeError unless p ≥ 1.
    Source: https://docs.pytorch.org/docs/stable/special.html#torch.special.multigammaln

    >>> torch.mvlgamma(torch.tensor([3.0]), 1)
    tensor([0.6931])
    """
    x, p = tensor_argument(input, "mvlgamma"), int_argument(p, "mvlgamma", "p")
    if p < 1:
        raise RuntimeError(f"p has to be greater than or equal to 1 (p={p})")
    y = _mvlgamma(x, p)
    return y if out is None else store(out, y, "mvlgamma")


@public(kind="inplace", namespaces=())
def mvlgamma_(input, p: int):
    """Compute `mvlgamma` in place and return the tensor."""
    return in_place("mvlgamma_", mvlgamma, input, p)


# ------------------------------------------------------------------------ Bessel functions (of derivatives PyTorch has I's)


@pointwise(lambda x: -m.bessel_j1(x), result="float", namespaces=("special",), method=False, inplace=False, samples=(-9, 9))
def bessel_j0(x):
    """Return the Bessel function of the first kind J₀; dJ₀/dx = −J₁; bessel_j0([0., 1.]) = [1.0000, 0.7652]."""
    return m.bessel_j0(x)


def _over(y, x):
    """Return y / x, 1/2 at 0: the limit of J₁(x)/x and I₁(x)/x."""
    return m.where(x == 0, 0.5, y / m.where(x == 0, 1.0, x))


@pointwise(
    lambda x, y: m.bessel_j0(x) - _over(y, x),
    result="float", namespaces=("special",), method=False, inplace=False, samples=(-9, 9),
)  # fmt: skip
def bessel_j1(x):
    """Return the Bessel function of the first kind J₁; dJ₁/dx = J₀ − J₁/x; bessel_j1([0., 1.]) = [0.0000, 0.4401]."""
    return m.bessel_j1(x)


@pointwise(lambda x: -m.bessel_y1(x), result="float", namespaces=("special",), method=False, inplace=False, samples=(0.3, 9))
def bessel_y0(x):
    """Return the Bessel function of the second kind Y₀; dY₀/dx = −Y₁. nan for x < 0; bessel_y0([1., 2.]) = [0.0883, 0.5104]."""
    return m.bessel_y0(x)


@pointwise(
    lambda x, y: m.bessel_y0(x) - y / x,
    result="float", namespaces=("special",), method=False, inplace=False, samples=(0.3, 9),
)  # fmt: skip
def bessel_y1(x):
    """Return the Bessel function of the second kind Y₁; dY₁/dx = Y₀ − Y₁/x. nan for x < 0; bessel_y1([1., 2.]) = [-0.7812, -0.1070]."""
    return m.bessel_y1(x)


@pointwise(
    lambda x, y: m.where(x == 0, 0.0, (m.cos(x) - y) / m.where(x == 0, 1.0, x)),
    result="float", namespaces=("special",), method=False, inplace=False,
)  # fmt: skip
def spherical_bessel_j0(x):
    """Return the spherical Bessel function of the first kind j₀ = sin x / x; dj₀/dx = (cos x − j₀)/x; spherical_bessel_j0([0., 1.]) = [1.0000, 0.8415]."""
    return m.spherical_bessel_j0(x)


@pointwise(lambda x: m.i1(x), result="float", namespaces=("torch", "special"))
def i0(x):
    """Return the modified Bessel function of the first kind I₀; dI₀/dx = I₁; i0([0., 1.]) = [1.0000, 1.2661]."""
    return m.i0(x)


@pointwise(lambda x, y: m.i0(x) - _over(y, x), result="float", namespaces=("special",), method=False, inplace=False)
def i1(x):
    """Return the modified Bessel function of the first kind I₁; dI₁/dx = I₀ − I₁/x; i1([0., 1.]) = [0.0000, 0.5652]."""
    return m.i1(x)


@pointwise(lambda x, y: m.i1e(x) - m.sign(x) * y, result="float", namespaces=("special",), method=False, inplace=False)
def i0e(x):
    """Return e^−|x|·I₀(x); dy/dx = e^−|x|·I₁ − sign(x)·y; i0e([0., 1.]) = [1.0000, 0.4658]."""
    return m.i0e(x)


@pointwise(
    lambda x, y: m.i0e(x) - m.sign(x) * y - _over(y, x), result="float", namespaces=("special",), method=False, inplace=False
)
def i1e(x):
    """Return e^−|x|·I₁(x); dy/dx = e^−|x|·I₀ − y·(sign(x) + 1/x); i1e([0., 1.]) = [0.0000, 0.2079]."""
    return m.i1e(x)


@pointwise(
    lambda x: -m.modified_bessel_k1(x),
    result="float", namespaces=("special",), method=False, inplace=False, samples=(0.3, 4),
)  # fmt: skip
def modified_bessel_k0(x):
    """Return the modified Bessel function of the second kind K₀; dK₀/dx = −K₁. nan for x < 0; modified_bessel_k0([1., 2.]) = [0.4210, 0.1139]."""
    return m.modified_bessel_k0(x)


@pointwise(
    lambda x, y: -m.modified_bessel_k0(x) - y / x,
    result="float", namespaces=("special",), method=False, inplace=False, samples=(0.3, 4),
)  # fmt: skip
def modified_bessel_k1(x):
    """Return the modified Bessel function of the second kind K₁; dK₁/dx = −K₀ − K₁/x. nan for x < 0; modified_bessel_k1([1., 2.]) = [0.6019, 0.1399]."""
    return m.modified_bessel_k1(x)


@pointwise(
    lambda x, y: y - m.scaled_modified_bessel_k1(x),
    result="float", namespaces=("special",), method=False, inplace=False, samples=(0.3, 4),
)  # fmt: skip
def scaled_modified_bessel_k0(x):
    """y = eˣ·K₀(x); dy/dx = y − eˣ·K₁. nan for x < 0; scaled_modified_bessel_k0([1., 2.]) = [1.1445, 0.8416]."""
    return m.scaled_modified_bessel_k0(x)


@pointwise(
    lambda x, y: y - m.scaled_modified_bessel_k0(x) - y / x,
    result="float",
    namespaces=("special",),
    method=False,
    inplace=False,
    samples=(0.3, 4),
)
def scaled_modified_bessel_k1(x):
    """y = eˣ·K₁(x); dy/dx = y − eˣ·K₀ − y/x. nan for x < 0; scaled_modified_bessel_k1([1., 2.]) = [1.6362, 1.0335]."""
    return m.scaled_modified_bessel_k1(x)


@pointwise(None, result="float", namespaces=("special",), method=False, inplace=False, samples=(-8, 4))
def airy_ai(x):
    """Airy's function Ai, a solution of y″ = x·y. Not differentiable, as in PyTorch; airy_ai([0., 1.]) = [0.3550, 0.1353]."""
    return m.airy_ai(x)


# ------------------------------------------------------------------------------------------ the normal distribution


@pointwise(
    lambda x, y: 2 * x * y - 2 / math.sqrt(math.pi), result="float", namespaces=("special",), method=False, inplace=False
)
def erfcx(x):
    """y = e^(x²)·erfc x, which neither overflows nor loses digits for large x; dy/dx = 2·x·y − 2/√π; erfcx([0., 10.]) = [1.0000, 0.0561]."""
    return m.erfcx(x)


@pointwise(
    lambda x: m.exp(-0.5 * (x * x)) * (1 / math.sqrt(2 * math.pi)), result="float", name="ndtr", public=False, inplace=False
)
def _ndtr(x):
    return m.ndtr(x)


def ndtr(input, *, out=None):
    """Return Φ(x), the distribution function of the standard normal; dΦ/dx = e^(−x²/2)/√(2π); ndtr([0., 1.]) = [0.5000, 0.8413]."""
    x = tensor_argument(input, "ndtr")
    y = _ndtr(x.clone() if state.grad and x.requires_grad else x)  # what the derivative keeps is nobody's to change
    return y if out is None else store(out, y, "ndtr")


register("ndtr", ndtr, "pointwise", method=False, namespaces=("special",), rule=_ndtr.op, differentiable=True)


@pointwise(
    lambda g, x, y: g / m.erfcx(x * -math.sqrt(0.5)) * math.sqrt(2 / math.pi),
    result="float", namespaces=("special",), method=False, inplace=False, samples=(-4, 3),
)  # fmt: skip
def log_ndtr(x):
    """Return ln Φ(x), exact also where Φ is 0 or 1 in floating point; dy/dx = √(2/π)/erfcx(−x/√2); log_ndtr([0., -10.]) = [ -0.6931, -53.2313]."""
    return m.log_ndtr(x)


@pointwise(
    lambda y: m.exp(0.5 * (y * y)) * math.sqrt(2 * math.pi),
    result="float",
    namespaces=("special",),
    method=False,
    inplace=False,
    samples=(0.05, 0.95),
)
def ndtri(p):
    """Return the inverse of `ndtr`: the x with Φ(x) = p; dx/dp = √(2π)·e^(x²/2). nan outside [0, 1]; ndtri([0.5, 0.9]) = [0.0000, 1.2816]."""
    return m.ndtri(p)


@pointwise(
    lambda g, x: g * (-1 - m.log(x)),
    result="float", namespaces=("special",), method=False, inplace=False, samples=(0.2, 2),
)  # fmt: skip
def entr(x):
    """Return the entropy −x·ln x: 0 at 0, −∞ for negative x; dy/dx = −1 − ln x; entr([0., 0.5]) = [0.0000, 0.3466]."""
    return m.where(x > 0, -x * m.log(x), m.where(x == 0, 0.0, m.where(x < 0, -math.inf, x)))


_also("i0", "modified_bessel_i0")
_also("i1", "modified_bessel_i1")
for _name, _alias in {
    "sigmoid": "expit", "logit": "logit", "erf": "erf", "erfc": "erfc", "erfinv": "erfinv", "exp2": "exp2", "expm1": "expm1",
    "log1p": "log1p", "lgamma": "gammaln", "digamma": "digamma", "polygamma": "polygamma", "mvlgamma": "multigammaln",
    "sinc": "sinc", "round": "round",
}.items():  # fmt: skip
    _also(_name, _alias)
_also("digamma", "psi")
