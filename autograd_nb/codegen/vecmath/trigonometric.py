"""Trigonometric functions and their inverses."""

from __future__ import annotations

from ..maths import formula
from ..symbols import Sym, where
from .common import at_least, at_most, const, horner, rint

SIN32 = (-0.16666655242443085, 0.008332191035151482, -0.00019518598855938762)
COS32 = (0.041666653007268906, -0.0013887617969885468, 2.446319194859825e-05)
SIN64 = (-0.16666666666666632, 0.00833333333332237, -0.0001984126982977138, 2.7557313678731877e-06, -2.5050755970367276e-08,
         1.5896666948688288e-10)  # fmt: skip
COS64 = (0.0416666666666666, -0.0013888888888874064, 2.480158728944348e-05, -2.7557314340654267e-07, 2.087572162147219e-09,
         -1.1359559245589404e-11)  # fmt: skip


def _reduce(x: Sym) -> tuple[Sym, Sym]:
    wide = x.cast("float64")
    n = rint(wide * 0.6366197723675814)
    r = wide - n * 1.5707963267341256 - n * 6.077100506506192e-11
    n = at_least(at_most(n, 1e9), -1e9)
    return r.cast(x.dtype), where(n == n, n, const(n, 0.0)).cast("int32" if x.dtype == "float32" else "int64")


def _sine(x: Sym, shift: int) -> Sym:
    r, n = _reduce(x)
    n = n + shift
    z = r * r
    s, c = (SIN32, COS32) if x.dtype == "float32" else (SIN64, COS64)
    sine = r * z * horner(z, s) + r
    cosine = z * z * horner(z, c) - 0.5 * z + 1.0
    y = where((n & 1) == 0, sine, cosine)
    return where((n & 2) == 0, y, -y)


@formula
def sin(x: Sym) -> Sym:
    return _sine(x, 0)


@formula
def cos(x: Sym) -> Sym:
    return _sine(x, 1)
