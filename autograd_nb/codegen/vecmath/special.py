"""Error functions and gamma functions."""

from __future__ import annotations

from ..maths import formula
from ..symbols import Sym, libm, where
from .common import at_most, copysign, floating, horner
from .exponential import exp_mid

# erf(x) / x - 1 in x^2: float32 on |x| <= 0.9, relative error of erf 1.4e-8; float64 on |x| <= 1, 2.9e-17
ERF_SMALL = {
    "float32": (0.12837915122509003, -0.3761250376701355, 0.11281921714544296, -0.02677050232887268, 0.004998998716473579,
                -0.0006021196604706347),
    "float64": (
        0.12837916709551256, -0.3761263890318352, 0.11283791670944188, -0.026866170643111763, 0.0052239776061199115,
        -0.0008548325929349783, 0.00012055293577238381, -1.49247122986727e-05, 1.6447131443941786e-06, -1.620631231692597e-07,
        1.3710972750063072e-08, -7.779452393371061e-10,
    ),
}  # fmt: skip
# log(erfc(x)) on [0.9, 4], float32; relative error of erf 1.7e-9
ERF_LARGE = (-0.0001664531882852316, -1.127797245979309, -0.6369760036468506, -0.10411384701728821, 0.022315362468361855,
             -0.00306555163115263, 0.00019822920148726553)  # fmt: skip


@formula
def erf(x: Sym) -> Sym:
    if floating(x).dtype == "float64":
        return libm("math.erf", x)
    a = at_most(abs(x), 4.0)
    z = a * a
    large = copysign(1.0 - exp_mid(horner(a, ERF_LARGE)), x)
    return where(a < 0.9, x + x * horner(z, ERF_SMALL[x.dtype]), large)
