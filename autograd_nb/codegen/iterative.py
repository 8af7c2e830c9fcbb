"""Scalar functions with loops and branches, which formulas call an element at a time: ``libm("iterative.zeta", s, q)``.

All compute in float64. Kernels that use them import this module, and with it Numba; nothing else does.
"""


import numpy as np

from .jit import helper, math

INF, NAN = math.inf, math.nan
EPSILON = 2.0**-53
TINY = 1e-300

# ---------------------------------------------------------------------------------------------------- zeta

# B(2k) / (2k)!
EULER_MACLAURIN = (
    1 / 12, -1 / 720, 1 / 30240, -1 / 1209600, 1 / 47900160, -691 / 1307674368000, 1 / 74724249600, -3617 / 10670622842880000,
    43867 / 5109094217170944000, -174611 / 802857662698291200000,
)  # fmt: skip
TERMS = 10  #: of the sum before the Euler-Maclaurin formula takes over


@helper
def zeta(s, q):
    """Return Hurwitz's zeta: the sum over k of (q + k)^-s. s = 1: inf; s < 1: NaN; a pole of q: inf; q < 0 needs an integer s."""
    s, q = np.float64(s), np.float64(q)
    if s == 1.0:
        return INF
    if s < 1.0 or math.isnan(q):
        return NAN
    if q <= 0.0 and q == np.floor(q):
        return INF
    if math.isnan(s) or (q <= 0.0 and s != np.floor(s)):
        return NAN
    total = q**-s
    k = 0
    while k < TERMS or q <= TERMS:  # what is negative is brought up term by term
        k += 1
        q += 1.0
        term = q**-s
        total += term
        if abs(term) < 0.5 * EPSILON * abs(total):
            return total
        if k > 1_000_000:
            return NAN  # further below 0 than any sum could reach
    # the sum has its last term whole; the formula counts it half
    total += term * q / (s - 1.0) - 0.5 * term
    factor = s * term / q
    for j in range(len(EULER_MACLAURIN)):
        part = factor * EULER_MACLAURIN[j]
        total += part
        if abs(part) < 0.5 * EPSILON * abs(total):
            break
        factor *= (s + (2 * j + 1)) * (s + (2 * j + 2)) / (q * q)
    return total


# ------------------------------------------------------------------------------- incomplete gamma functions

# Temme's uniform expansion (DLMF 8.12): row k has the coefficients of the powers of eta that go with a^-k, as many as matter
# for a >= 100 and |eta| <= 0.36. From mu - log(1 + mu) = eta^2 / 2 as a power series, in 60 digits.
TEMME = (
    (-0.3333333333333333, 0.08333333333333333, -0.014814814814814815, 0.0011574074074074073, 0.0003527336860670194,
     -0.0001787551440329218, 3.919263178522438e-05, -2.185448510679992e-06, -1.85406221071516e-06, 8.296711340953087e-07,
     -1.7665952736826078e-07, 6.707853543401498e-09, 1.0261809784240309e-08, -4.382036018453353e-09, 9.14769958223679e-10),
    (-0.001851851851851852, -0.003472222222222222, 0.0026455026455026454, -0.0009902263374485596, 0.00020576131687242798,
     -4.018775720164609e-07, -1.8098550334489977e-05, 7.64916091608111e-06, -1.6120900894563446e-06, 4.647127802807434e-09,
     1.378633446915721e-07, -5.752545603517705e-08, 1.1951628599778148e-08),
    (0.004133597883597883, -0.0026813271604938273, 0.0007716049382716049, 2.0093878600823047e-06, -0.0001073665322636516,
     5.2923448829120125e-05, -1.2760635188618728e-05, 3.423578734096138e-08, 1.3721957309062934e-06, -6.298992138380055e-07,
     1.4280614206064242e-07),
    (0.0006494341563786008, 0.00022947209362139917, -0.0004691894943952557, 0.00026772063206283885, -7.561801671883977e-05,
     -2.396505113867297e-07, 1.1082654115347302e-05, -5.6749528269915965e-06, 1.4230900732435883e-06),
    (-0.0008618882909167117, 0.0007840392217200666, -0.0002990724803031902, -1.4638452578843418e-06, 6.641498215465122e-05,
     -3.968365047179435e-05, 1.1375726970678419e-05),
    (-0.00033679855336635813, -6.972813758365857e-05, 0.0002772753244959392, -0.00019932570516188847, 6.797780477937208e-05),
    (0.0005313079364639922, -0.0005921664373536939, 0.0002708782096718045),
)  # fmt: skip
LARGE = 100.0
TEMME_TABLE = np.array([row + (0.0,) * (len(TEMME[0]) - len(row)) for row in TEMME])
# log of Gamma(a) over Stirling's formula, in 1 / a
STIRLING = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360, 1 / 156, -3617 / 122400)

# (-1)^k (zeta(k) - 1) / k from k = 2 on: log Gamma(2 + a) less (1 - Euler's constant) a, in powers of a
GAMMA_TWO = (
    0.3224670334241132, -0.0673523010531981, 0.020580808427784546, -0.007385551028673986, 0.0028905103307415234,
    -0.001192753911703261, 0.0005096695247430425, -0.00022315475845357939, 9.945751278180853e-05, -4.492623673813314e-05,
    2.050721277567069e-05, -9.439488275268397e-06, 4.374866789907488e-06, -2.039215753801366e-06, 9.55141213040742e-07,
    -4.492469198764566e-07, 2.1207184805554665e-07, -1.0043224823968099e-07, 4.7698101693639804e-08, -2.2711094608943164e-08,
    1.0838659214896955e-08, -5.183475041970047e-09, 2.4836745438024785e-09, -1.1921401405860912e-09, 5.731367241678862e-10,
    -2.7595228851242334e-10,
)  # fmt: skip


@helper
def log1p_less(mu):
    """Return log(1 + mu) - mu without cancellation."""
    if abs(mu) > 0.4:
        return math.log1p(mu) - mu
    # log(1 + mu) = 2 artanh(r), r = mu / (2 + mu); the first term less mu is -mu r
    r = mu / (2.0 + mu)
    r2 = r * r
    total = 0.0
    power = 2.0 * r * r2
    k = 3
    while abs(power) > 1e-19 * abs(mu * r) and k < 80:
        total += power / k
        power *= r2
        k += 2
    return total - mu * r


@helper
def gamma_density(a, x):
    """Return x^a e^-x / Gamma(a)."""
    if a < 10.0:
        if x > 740.0:
            return 0.0 if x > 900.0 else math.exp(a * math.log(x) - x - math.lgamma(a))
        return x**a * math.exp(-x) / math.gamma(a)
    inverse = 1.0 / (a * a)
    rest = 0.0
    for j in range(len(STIRLING) - 1, -1, -1):
        rest = rest * inverse + STIRLING[j]
    return math.sqrt(a / (2.0 * math.pi)) * math.exp(a * log1p_less((x - a) / a) - rest / a)


@helper
def gamma_uniform(a, x, sign):
    """Temme's expansion near x = a: the lower function for sign -1, the upper for 1."""
    mu = (x - a) / a
    half = -log1p_less(mu)  # eta^2 / 2
    eta = math.copysign(math.sqrt(2.0 * half), mu)
    total, power = 0.0, 1.0
    for k in range(TEMME_TABLE.shape[0]):
        c = 0.0
        for j in range(TEMME_TABLE.shape[1] - k - k, 0, -1):  # two terms fewer a row
            c = c * eta + TEMME_TABLE[k, j - 1]
        total += c * power
        power /= a
    wave = math.exp(-a * half) / math.sqrt(2.0 * math.pi * a)
    return 0.5 * math.erfc(sign * eta * math.sqrt(0.5 * a)) + sign * wave * total


@helper
def gamma_series(a, x):
    """Return the lower function as a power series: terms decrease while x < a + n."""
    term, total, n = 1.0, 1.0, a
    for _ in range(5000):
        n += 1.0
        term *= x / n
        total += term
        if term <= EPSILON * total:
            break
    return gamma_density(a, x) / a * total


@helper
def gamma_fraction(a, x):
    """Return the upper function as a continued fraction (Lentz's method); for x above about a + 1."""
    b = x + 1.0 - a
    c = 1.0 / TINY
    d = 1.0 / b
    h = d
    for i in range(1, 5000):
        n = -i * (i - a)
        b += 2.0
        d = n * d + b
        if abs(d) < TINY:
            d = TINY
        c = b + n / c
        if abs(c) < TINY:
            c = TINY
        d = 1.0 / d
        step = d * c
        h *= step
        if abs(step - 1.0) <= EPSILON:
            break
    return gamma_density(a, x) * h


@helper
def log_gamma_one(a):
    """Return log Gamma(1 + a) for a > 0, to its last digits also where it is small."""
    if a > 0.5:
        return math.lgamma(1.0 + a)
    total = 0.0
    for j in range(len(GAMMA_TWO) - 1, -1, -1):
        total = total * a + GAMMA_TWO[j]
    return total * a * a + 0.42278433509846714 * a - math.log1p(a)


@helper
def gamma_upper_small(a, x):
    """Return the upper function for x below about 1.1 and small a: 1 - P, of P the first term and the rest apart."""
    total, term = 0.0, 1.0
    for n in range(1, 200):
        term *= -x / n
        part = term / (a + n)
        total += part
        if abs(part) <= EPSILON * abs(total):
            break
    power = a * math.log(x) - log_gamma_one(a)
    return -math.expm1(power) - math.exp(power) * total * a


@helper
def igamma(a, x):
    """Return the regularised lower incomplete gamma function P(a, x); NaN for a negative argument."""
    a, x = np.float64(a), np.float64(x)
    if math.isnan(a) or math.isnan(x) or a < 0.0 or x < 0.0:
        return NAN
    if a == 0.0:
        return 1.0 if x > 0.0 else NAN
    if x == 0.0:
        return 0.0
    if math.isinf(a):
        return NAN if math.isinf(x) else 0.0
    if math.isinf(x):
        return 1.0
    if a > LARGE and abs(x - a) < 0.3 * a:
        return gamma_uniform(a, x, -1.0)
    if x > 1.0 and x > a:
        return 1.0 - igammac_tail(a, x)
    return gamma_series(a, x)


@helper
def igammac_tail(a, x):
    """Return Q(a, x) for x > a or x > 1.1, where it is not near 1 (x > a), or x small."""
    return gamma_upper_small(a, x) if x <= 1.1 else gamma_fraction(a, x)


@helper
def igammac(a, x):
    """Return the regularised upper incomplete gamma function Q(a, x) = 1 - P(a, x); NaN for a negative argument."""
    a, x = np.float64(a), np.float64(x)
    if math.isnan(a) or math.isnan(x) or a < 0.0 or x < 0.0:
        return NAN
    if a == 0.0:
        return 0.0 if x > 0.0 else NAN
    if x == 0.0:
        return 1.0
    if math.isinf(a):
        return NAN if math.isinf(x) else 1.0
    if math.isinf(x):
        return 0.0
    if a > LARGE and abs(x - a) < 0.3 * a:
        return gamma_uniform(a, x, 1.0)
    if x > 1.1:
        return 1.0 - gamma_series(a, x) if x < a else gamma_fraction(a, x)
    # P is the smaller one where x^a is small
    if x <= 0.5:
        return 1.0 - gamma_series(a, x) if -0.4 / math.log(x) < a else gamma_upper_small(a, x)
    return 1.0 - gamma_series(a, x) if 1.1 * x < a else gamma_upper_small(a, x)


# --------------------------------------------------------------------------------- orthogonal polynomials
# A degree is truncated to an integer; of a negative one, and of what is no integer of 64 bits, the polynomial is 0.


@helper
def degree(n):
    """Return n truncated to an integer, -1 for what has no such."""
    return int(n) if -9223372036854775808.0 <= n < 9223372036854775808.0 else -1


@helper
def chebyshev(x, n, slope, first):
    """p(0) = 1, p(1) = slope x + first, p(k + 1) = 2 x p(k) - p(k - 1): the four kinds."""
    if n < 1:
        return 1.0 if n == 0 else 0.0
    p, q = 1.0, slope * x + first
    if abs(x) == 1.0:  # there it is linear in n, but for its sign
        size = 1.0 + n * (x * q - 1.0)
        return -size if x < 0.0 and n % 2 else size
    for _ in range(n - 1):
        p, q = q, 2.0 * x * q - p
        if math.isnan(q):
            break
    return q


@helper
def sine_ratio(k, theta):
    """Return sin(k theta) / sin(theta)."""
    return math.sin(k * theta) / math.sin(theta)


@helper
def chebyshev_t(x, n):
    """Return the first kind: cos(n arccos x)."""
    x, n = np.float64(x), degree(n)
    if abs(x) < 1.0 and n > 6:
        return math.cos(n * math.acos(x))
    return chebyshev(x, n, 1.0, 0.0)


@helper
def chebyshev_u(x, n):
    """Second kind: sin((n + 1) t) / sin t, x = cos t."""
    x, n = np.float64(x), degree(n)
    if abs(x) < 1.0 and n > 8:
        return sine_ratio(n + 1.0, math.acos(x))
    return chebyshev(x, n, 2.0, 0.0)


@helper
def chebyshev_v(x, n):
    """Third kind: cos((n + 1/2) t) / cos(t / 2), x = cos t."""
    x, n = np.float64(x), degree(n)
    if abs(x) < 1.0 and n > 8:
        t = math.acos(x)
        return math.cos((n + 0.5) * t) / math.cos(0.5 * t)
    return chebyshev(x, n, 2.0, -1.0)


@helper
def chebyshev_w(x, n):
    """Fourth kind: sin((n + 1/2) t) / sin(t / 2), x = cos t."""
    x, n = np.float64(x), degree(n)
    if abs(x) < 1.0 and n > 8:
        t = math.acos(x)
        return math.sin((n + 0.5) * t) / math.sin(0.5 * t)
    return chebyshev(x, n, 2.0, 1.0)


@helper
def hermite_h(x, n):
    """Physicists': p(k + 1) = 2 x p(k) - 2 k p(k - 1)."""
    x, n = np.float64(x), degree(n)
    if n < 1:
        return 1.0 if n == 0 else 0.0
    p, q = 1.0, 2.0 * x
    for k in range(1, n):
        p, q = q, 2.0 * (x * q - k * p)
        if math.isnan(q):
            break
    return q


@helper
def hermite_he(x, n):
    """Probabilists': p(k + 1) = x p(k) - k p(k - 1)."""
    x, n = np.float64(x), degree(n)
    if n < 1:
        return 1.0 if n == 0 else 0.0
    p, q = 1.0, x
    for k in range(1, n):
        p, q = q, x * q - k * p
        if math.isnan(q):
            break
    return q


@helper
def laguerre_l(x, n):
    """p(k + 1) = ((2 k + 1 - x) p(k) - k p(k - 1)) / (k + 1)."""
    x, n = np.float64(x), degree(n)
    if n < 1:
        return 1.0 if n == 0 else 0.0
    p, q = 1.0, 1.0 - x
    for k in range(1, n):
        p, q = q, ((2 * k + 1 - x) * q - k * p) / (k + 1)
        if math.isnan(q):
            break
    return q


@helper
def legendre_p(x, n):
    """p(k + 1) = ((2 k + 1) x p(k) - k p(k - 1)) / (k + 1)."""
    x, n = np.float64(x), degree(n)
    if n < 1:
        return 1.0 if n == 0 else 0.0
    p, q = 1.0, x
    for k in range(1, n):
        p, q = q, ((2 * k + 1) * x * q - k * p) / (k + 1)
        if math.isnan(q):
            break
    return q
