"""Gamma functions: lgamma and digamma."""

from __future__ import annotations

from ..namespace import formula
from ..symbols import Sym, libm, where
from .common import INF, NAN, copysign, floating, floor, horner, rint
from .logarithm import log
from .trigonometric import tan

# sin(pi t) / t in t^2 on |t| <= 1/2; relative error 4e-17
SIN_PI = (3.141592653589793, -5.167712780049969, 2.550164039877294, -0.5992645293187382, 0.08214588656989165,
          -0.0073704304787564155, 0.00046629968875762726, -2.1903185417057095e-05, 7.694727635704518e-07)  # fmt: skip
# y (lgamma(y) - (y - 1/2) log y + y - log(2 pi) / 2) in 1 / y^2 for y >= 7; error 2e-16
STIRLING = (0.08333333333333316, -0.0027777777771793534, 0.000793650446189682, -0.0005951639948731949, 0.0008345336565365988,
            -0.0015845332767951167)  # fmt: skip
# B(2k) / (2k), k = 1…8: the asymptotic series of digamma
DIGAMMA = (1 / 12, -1 / 120, 1 / 252, -1 / 240, 1 / 132, -691 / 32760, 1 / 12, -3617 / 8160)
SHIFTS = 8


@formula
def lgamma(x: Sym) -> Sym:
    """Return log|Gamma(x)|. float32: in float64, shifted up to 7 or more, Stirling's series there, reflected below 1/2; the shift's
    product and the reflection's sine share one logarithm. float64: the C library's, one element at a time.

    The maximum error is 1 ulp (float32) but for the zeros below -2, where it is 1e-14 absolute.
    """
    if floating(x).dtype == "float64":
        return libm("math.lgamma", x)
    w = x.cast("float64")
    reflect = w < 0.5
    y = where(reflect, 1.0 - w, w)
    small = y < 7.0
    product = y
    for k in range(1, 7):
        product = product * (y + float(k))
    product = where(small, product, 1.0)
    y = where(small, y + 7.0, y)
    inverse = 1.0 / y
    stirling = (y - 0.5) * log(y) - y + 0.9189385332046727 + inverse * horner(inverse * inverse, STIRLING)
    t = w - rint(w)
    sine = abs(t * horner(t * t, SIN_PI))
    rest = log(where(reflect, product * 3.141592653589793 / sine, product))
    r = where(reflect, rest - stirling, stirling - rest).cast("float32")
    r = where((x == 1.0) | (x == 2.0), 0.0, r)
    return where(abs(x) == INF, INF, r)


@formula
def digamma(x: Sym) -> Sym:
    """Return the derivative of lgamma, in float64: shifted up by 8 (the sum of reciprocals as one quotient), asymptotic series there,
    reflected below 1/2. The maximum error is 1 ulp (float32); float64 4e-15 relative but near its zeros. +-0: -+inf; -1, -2…: NaN.
    """
    w = floating(x).cast("float64")
    reflect = w < 0.5
    y = where(reflect, 1.0 - w, w)
    small = y < float(SHIFTS)
    base = where(small, y, 1.0)
    # the product p of the factors and its derivative q: q / p is the sum of their reciprocals
    p, q = base, base * 0.0 + 1.0
    for k in range(1, SHIFTS):
        factor = base + float(k)
        p, q = p * factor, q * factor + p
    y = where(small, y + float(SHIFTS), y)
    inverse = 1.0 / y
    z = inverse * inverse
    r = log(y) - 0.5 * inverse - z * horner(z, DIGAMMA) - where(small, q / p, 0.0)
    r = where(reflect, r - 3.141592653589793 / tan((w - rint(w)) * 3.141592653589793), r)
    r = where((w <= 0.0) & (w == floor(w)), NAN, r)
    r = where(w == INF, INF, r)
    return where(w == 0.0, -copysign(w * 0.0 + INF, w), r).cast(x.dtype)
