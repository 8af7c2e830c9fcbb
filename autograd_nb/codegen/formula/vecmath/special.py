"""Error functions: erf, erfc, erfinv, erfcx, and the normal distribution's: ndtr, log_ndtr, ndtri."""

from __future__ import annotations

from ..namespace import formula
from ..symbols import Sym, where
from .common import INF, LAYOUT, NAN, Coefficients, at_least, at_most, copysign, floating, horner, sqrt
from .exponential import EXP, EXP2, LN2, LOG2E, exp, exp2_short, exp_mid, power_of_two, round_bits, scale
from .logarithm import log, log1p, log_normal_short

# erf(x) / x - 1 in x^2: float32 on |x| <= 0.9, relative error of erf 1.4e-8; float64 on |x| <= 1, 2.9e-17
ERF_SMALL: Coefficients = {
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
# (1 + 2 a) e^(a^2) erfc(a) in t = (a - 4) / (a + 4): for float32 results on [0, 10.1], 6e-10; for float64 on [0, 27.4], 5e-17
ERFC_SHORT = (
    1.2329951187393675, -0.13962113070388874, 0.015379629356317877, 0.06809783302531666, -0.10103780826024544,
    0.09372131669125601, -0.06635466532056705, 0.037221884575688834, -0.016024315003273656, 0.005043450573784435,
    -0.0011365674298370462, -0.0006419614696234888,
)  # fmt: skip
ERFC = (
    1.2329951186255526, -0.13962111684056253, 0.015379652102619655, 0.06809705425469544, -0.10103906603629964,
    0.0937328349982513, -0.06633036581231722, 0.03716751553908268, -0.016197734056678514, 0.005031969963685688,
    -0.0007577732964420548, -0.00019925661750273414, 0.00015062171449278135, -2.43994750845707e-05, -1.1222170952531313e-05,
    5.710279350108222e-06, 2.9417322872741723e-07, -8.260885117244808e-07, 7.404164038314479e-08, 1.104246445718205e-07,
    -1.7385891233881976e-08, -1.4087567211531068e-08, 1.6385631998272526e-09, 1.187035048503759e-09,
)  # fmt: skip
# erfinv(x) / x in w = -log(1 - x^2) on [0, 5], 5.6e-9; and in sqrt(w), w on [5, 17.4] (float32), 1.6e-8, on [5, 37], 7e-7
ERFINV_CENTRE = (
    0.8862269204967517, 0.23201381804681118, 0.01154865381758601, -0.0023342959496728314, -0.00012748194221727537,
    4.456541192729188e-05, 3.9831640117232664e-06, -1.976445467536475e-06, 2.2102872453411173e-07, -8.790933844163591e-09,
)  # fmt: skip
ERFINV_TAIL = {
    "float32": (-1.365168353426968, 7.606569150962495, -10.835572722955318, 9.049578580759215, -4.545036856053916,
                1.463598679731637, -0.3063155576651307, 0.04048250782165227, -0.0030797714915769187, 0.0001030663208874488),
    "float64": (3.089361011881665, -4.9844649423715905, 4.869093709714676, -2.2974534338102437, 0.6899410993119971,
                -0.13606733267578477, 0.017535139269639274, -0.0014155215886933249, 6.441469729593427e-05,
                -1.2423615161879275e-06),
}  # fmt: skip

# log2(2 ndtr(-a)) / a on [0, 6], float32; error of ndtr 8e-9. The last is negative: what follows keeps falling
NORMAL_TAIL = (-1.1511051654815674, -0.45920851826667786, -0.05249525234103203, 0.007062140386551619, -0.00013599534577224404,
               -0.0001865556841949001, 3.945416028727777e-05, -2.841135938069783e-06)  # fmt: skip

# s - |ndtri(p)| in 1 / s for s = sqrt(-2 log p) on [2, 8] and [8, 38.9], 1e-7
NDTRI_NEAR = (0.6864429948148693, 0.24711995954928204, -0.04336083453513825, 0.010733671306750778,
    -0.003323037477470097, 0.0012385893559453028, -0.0005114670462399334, 0.0001537398936557633,
    -5.742398899658055e-05, 9.410953064043302e-05, -4.99506679812063e-05)  # fmt: skip
NDTRI_FAR = (0.26538656699965796, 0.12708507445335837, -0.015442105427097619, 0.003641496710235759,
    -0.0012056353168472804, 0.0005027385931727278, -0.00023152128460680448, 5.088075197450432e-05,
    -1.320378524545752e-05, 6.504918681272747e-05, -3.918410386153957e-05)  # fmt: skip


def _square(a: Sym) -> tuple[Sym, Sym]:
    """Return a^2 of a float64 in two parts."""
    square = a * a
    top = (a.bitcast("uint64") & 0xFFFFFFFFF8000000).bitcast("float64")  # 26 bits: its square is exact
    return square, (top * top - square) + (a - top) * (a + top)


def _exp_two(x: Sym, rest: Sym) -> tuple[Sym, Sym]:
    """Return e^(x + rest), rest far below x: (e^r - 1, n's bits for `scale`)."""
    high, low = LN2["float64"]
    n, bits = round_bits(x, LOG2E, 2 * LAYOUT["float64"][3])
    r = (x - n * high) - (n * low - rest)
    return r * r * horner(r, EXP["float64"]) + r, bits


def _erfcx64(a: Sym) -> Sym:
    """Return e^(a^2) erfc(a) of a float64 in [0, 27.4]."""
    return horner((a - 4.0) / (a + 4.0), ERFC) / (2.0 * a + 1.0)


def _erfc64(a: Sym) -> tuple[Sym, Sym]:
    """Return (erfc(a), e^-a^2) of a float64 in [0, 27.4]; the square is carried in two parts."""
    square, rest = _square(a)
    em, bits = _exp_two(-square, -rest)
    g = _erfcx64(a)
    return scale(g + g * em, bits), scale(em + 1.0, bits)


@formula
def erf(x: Sym) -> Sym:
    """Return the error function: a polynomial near 0; beyond it 1 - e^p(|x|) (float32) or 1 - erfc|x| (float64).

    The maximum error is 1.0 ulp, both dtypes; -0 stays -0.
    """
    a = abs(floating(x))
    if x.dtype == "float64":
        large = 1.0 - _erfc64(at_most(a, 6.0))[0]
        edge = 1.0
    else:
        large = 1.0 - exp_mid(horner(at_most(a, 4.0), ERF_LARGE))  # type: ignore[arg-type]  # of a symbol it is one
        edge = 0.9
    z = where(a < edge, a * a, a)  # not squared where it could overflow
    return copysign(where(a < edge, a + a * horner(z, ERF_SMALL[x.dtype]), large), x)


@formula
def erfc(x: Sym) -> Sym:
    """Return the complementary error function: e^-x^2 g(|x|), 2 minus that for negative x. float32 is computed in float64; float64 is
    1 - erf below 0.47.

    The maximum error is 0.6 ulp (float32), 3 ulp (float64); denormal results right.
    """
    a = abs(floating(x))
    if x.dtype == "float64":
        small = a < 0.47
        near = 1.0 - (a + a * horner(where(small, a * a, 0.0), ERF_SMALL["float64"]))
        y = where(small, near, _erfc64(at_most(a, 27.4))[0])
        return where(x < 0.0, 2.0 - y, y)
    w = at_most(a, 10.1).cast("float64")
    t = (w - 4.0) / (w + 4.0)
    y = exp2_short(w * w * -LOG2E) * horner(t, ERFC_SHORT) / (2.0 * w + 1.0)
    return where(x < 0.0, 2.0 - y, y).cast("float32")


@formula
def erfinv(x: Sym) -> Sym:
    """Return the inverse error function: x times polynomials in -log(1 - x^2); float64 adds one step of Halley's method.

    1: inf; beyond: NaN. The maximum error is 0.7 ulp (float32), 1.6 ulp (float64).
    """
    a = abs(floating(x))
    v = a.cast("float64")
    w = -log_normal_short((1.0 - v) * (v + 1.0))
    y = v * where(w < 5.0, horner(w, ERFINV_CENTRE), horner(sqrt(w), ERFINV_TAIL[x.dtype]))
    if x.dtype == "float64":
        tail, slope = _erfc64(y)
        small = y < 0.9
        near = y + y * horner(where(small, y * y, 0.0), ERF_SMALL["float64"])
        u = where(small, near - v, (1.0 - v) - tail) / (slope * 1.1283791670955126)
        y = y - u / (u * y + 1.0)
    y = y.cast(x.dtype)
    return copysign(where(a < 1.0, y, where(a == 1.0, INF, NAN)), x)


ROOT_HALF = 0.7071067811865476


def _erfcx_any(a: Sym) -> Sym:
    """Return e^(a^2) erfc(a) of any positive float64; for large a the first terms of the asymptotic series."""
    s = 1.0 / at_least(a, 27.0)
    large = s * horner(s * s, (1.0, -1 / 2, 3 / 4, -15 / 8, 105 / 16, -945 / 32, 10395 / 64)) * 0.5641895835477563
    return where(a < 27.0, _erfcx64(at_most(a, 27.0)), large)


@formula
def erfcx(x: Sym) -> Sym:
    """Return e^(x^2) erfc(x), in float64; for negative x twice e^(x^2) less the value for -x. The maximum error is 3 ulp (float64)."""
    w = floating(x).cast("float64")
    a = abs(w)
    square, rest = _square(at_most(a, 27.0))
    em, bits = _exp_two(square, rest)
    positive = _erfcx_any(a)
    return where(w < 0.0, 2.0 * scale(em + 1.0, bits) - positive, positive).cast(x.dtype)


def _normal_tail(a: Sym) -> Sym:
    """Return the probability beyond ``a`` >= 0 of a normal variable, float64; a^2 / 2 is carried in two parts."""
    a = at_most(a, 38.7)
    square, rest = _square(a)
    em, bits = _exp_two(square * -0.5, rest * -0.5)
    g = 0.5 * _erfcx64(a * ROOT_HALF)
    return scale(g + g * em, bits)


@formula
def ndtr(x: Sym) -> Sym:
    """Return the normal distribution function, in float64. The maximum error is 3 ulp (float64); denormal results right."""
    w = floating(x).cast("float64")
    tail = _normal_tail(abs(w))
    return where(w > 0.0, 1.0 - tail, tail).cast(x.dtype)


def _half_power(t: Sym) -> Sym:
    """Return 2^t / 2 of a float32 t <= 127, 0 where t <= -126."""
    t = at_least(t, -126.0)
    n, bits = round_bits(t, 1.0, LAYOUT["float32"][3] - 1)
    r = t - n
    return (r * horner(r, EXP2["float32"]) + 1.0) * power_of_two(bits, "float32")


@formula
def normal_cdf(x: Sym) -> Sym:
    """Return `ndtr` for use as a factor: in float32 the absolute error is 8e-8, and the relative one is not bounded."""
    if floating(x).dtype == "float64":
        return ndtr(x)
    a = abs(x)
    tail = _half_power(a * horner(a, NORMAL_TAIL))
    return where(x < 0.0, tail, 1.0 - tail)


@formula
def normal_pdf(x: Sym) -> Sym:
    """Return the derivative of `ndtr`, e^(-x^2 / 2) / sqrt(2 pi). The absolute error is 8e-8 in float32."""
    if floating(x).dtype == "float64":
        return exp(x * x * -0.5) * 0.3989422804014327
    return _half_power(x * x * (-0.5 * LOG2E) - 0.3257480647361593)  # the logarithm of 2 / sqrt(2 pi)


@formula
def log_ndtr(x: Sym) -> Sym:
    """Return log(ndtr(x)), in float64: below -1 by erfcx, whose logarithm is never extreme. The maximum error is 3 ulp (float64)."""
    w = floating(x).cast("float64")
    a = abs(w)
    tail = _normal_tail(a)
    far = log(0.5 * _erfcx_any(a * ROOT_HALF)) - 0.5 * (w * w)
    return where(w < -1.0, far, where(w < 0.0, log(tail), log1p(-tail))).cast(x.dtype)


@formula
def ndtri(x: Sym) -> Sym:
    """Return the inverse of ndtr, in float64: by erfinv in the middle; a tail from polynomials in 1 / sqrt(-2 log p) and one step of
    Halley's method on log_ndtr. 0 and 1: -inf and inf; beyond: NaN. The maximum error is 3 ulp (float64).
    """
    p = floating(x).cast("float64")
    q = where(p > 0.5, 1.0 - p, p)
    level = log(q)
    s = sqrt(-2.0 * level)
    v = 1.0 / s
    gap = where(s < 8.0, horner((v - 0.3125) * (1 / 0.1875), NDTRI_NEAR), horner((v - 0.07525) * (1 / 0.04975), NDTRI_FAR))
    y = s - gap
    g = _erfcx64(at_most(at_least(y * ROOT_HALF, 0.0), 27.4))
    slope = 0.7978845608028654 / g  # of log_ndtr at -y
    u = (log(0.5 * g) - 0.5 * (y * y) - level) / slope
    y = y + u / (0.5 * u * (slope - y) + 1.0)
    middle = erfinv(where(q > 0.135, 2.0 * (p - 0.5), 0.0)) * 1.4142135623730951
    y = where(q > 0.135, middle, where(p > 0.5, y, -y))
    y = where(p == 0.0, -INF, where(p == 1.0, INF, y))
    return where((p >= 0.0) & (p <= 1.0), y, NAN).cast(x.dtype)
