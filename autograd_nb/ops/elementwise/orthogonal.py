"""Orthogonal polynomials of ``torch.special``, by their recurrences. As in PyTorch they are not differentiable.

Source: https://docs.pytorch.org/docs/stable/special.html
"""

from __future__ import annotations

from ...codegen.formula.symbols import libm
from ...tensor import Tensor
from ..core.calls import only_tensors
from ..core.pointwise import pointwise
from ..core.recording import store
from ..core.registry import register


def _polynomial(name: str, function: str, text: str, shown: str, shifted: bool = False) -> None:
    @pointwise(None, None, result="float", name=name, public=False, inplace=False)
    def op(x, n):
        x, n = x.cast("float64"), n.cast("float64")
        return libm(f"iterative.{function}", 2 * x - 1 if shifted else x, n)

    def call(input: Tensor | float, n: Tensor | float, *, out: Tensor | None = None) -> Tensor:
        only_tensors(name, input, n, "either", "n")
        y = op(input, n)
        return y if out is None else store(out, y, name, (), (input, n))

    call.__name__ = call.__qualname__ = name
    call.__doc__ = (
        f"{text}; {name}([0., 0.5], 2) = {shown}.\n\n    x = ``input``, n = ``n``; one of them may be a number, both broadcast. "
        "A degree is truncated to an integer, and of a negative one the result is 0.\n    Not differentiable, as in PyTorch.\n"
        f"    Source: https://docs.pytorch.org/docs/stable/special.html#torch.special.{name}"
    )
    register(name, call, "pointwise", method=False, namespaces=("special",), differentiable=False)


for _kind, (_text, _shown, _shifted) in {
    "t": ("the first kind, Tₙ(x) = cos(n·arccos x)", "[-1.0000, -0.5000]", "[ 1., -1.]"),
    "u": ("the second kind, Uₙ(cos θ) = sin((n + 1)θ)/sin θ", "[-1., 0.]", "[ 3., -1.]"),
    "v": ("the third kind, Vₙ(cos θ) = cos((n + ½)θ)/cos(θ/2)", "[-1., -1.]", "[ 5., -1.]"),
    "w": ("the fourth kind, Wₙ(cos θ) = sin((n + ½)θ)/sin(θ/2)", "[-1., 1.]", "[ 1., -1.]"),
}.items():
    _name = f"chebyshev_polynomial_{_kind}"
    _polynomial(_name, f"chebyshev_{_kind}", f"Chebyshev polynomials of {_text}", _shown)
    _polynomial(f"shifted_{_name}", f"chebyshev_{_kind}", f"Chebyshev polynomials, taken at 2x − 1, of {_text}", _shifted, True)
_polynomial("hermite_polynomial_h", "hermite_h", "The physicists' Hermite polynomials, Hₙ₊₁ = 2x·Hₙ − 2n·Hₙ₋₁", "[-2., -1.]")
_polynomial("hermite_polynomial_he", "hermite_he", "The probabilists' Hermite polynomials, Heₙ₊₁ = x·Heₙ − n·Heₙ₋₁", "[-1.0000, -0.7500]")
_polynomial("laguerre_polynomial_l", "laguerre_l", "Laguerre polynomials, (n + 1)·Lₙ₊₁ = (2n + 1 − x)·Lₙ − n·Lₙ₋₁", "[1.0000, 0.1250]")
_polynomial("legendre_polynomial_p", "legendre_p", "Legendre polynomials, (n + 1)·Pₙ₊₁ = (2n + 1)·x·Pₙ − n·Pₙ₋₁", "[-0.5000, -0.1250]")
