"""Error functions and gamma functions."""

from __future__ import annotations

from ..maths import formula
from ..symbols import Sym, libm, where
from .common import at_most, copysign, floating, horner
from .exponential import exp_mid

# erf(x) / x in x^2 on |x| <= 1, relative error 5.4e-8
ERF_SMALL = (1.1283791065216064, -0.3761223554611206, 0.11279378831386566, -0.02668687514960766, 0.004887471906840801,
             -0.0005502998828887939)  # fmt: skip
# log(erfc(x)) on [1, 4]
ERF_LARGE = (0.00018846700550056994, -1.1295802593231201, -0.6332165598869324, -0.10842189937829971, 0.025210224092006683,
             -0.004205256700515747, 0.00044147251173853874, -2.169830804632511e-05)  # fmt: skip


@formula
def erf(x: Sym) -> Sym:
    if floating(x).dtype == "float64":
        return libm("math.erf", x)
    a = at_most(abs(x), 4.0)
    z = a * a
    large = copysign(1.0 - exp_mid(horner(a, ERF_LARGE)), x)
    return where(a < 1.0, x * horner(z, ERF_SMALL), large)
