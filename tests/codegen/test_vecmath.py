"""vecmath against NumPy and SciPy in wider precision: errors in ulp over the whole range, and special values."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import special

from autograd_nb.codegen.build.compilation import build
from autograd_nb.codegen.formula.namespace import m
from autograd_nb.codegen.templates import loops

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")  # NumPy's, of overflows in references

INF, NAN = np.inf, np.nan
WIDE = {"float32": np.float64, "float64": np.longdouble}
extended = np.finfo(np.longdouble).nmant > np.finfo(np.float64).nmant


def compiled(formula, *dtypes, out=None):
    """``formula`` as a function of arrays."""
    body = loops.trace_body(lambda *x: (formula(*x),), [loops.Input(d) for d in dtypes], list(dtypes), [out])
    result = body.results[0][1]
    entry = build(loops.pointwise_flat(body), "kernel", tuple(f"{loops.storage(d)}[:]" for d in (*dtypes, result)))

    def call(*arrays):
        arrays = [np.ascontiguousarray(a, dtype=loops.storage(d)) for a, d in zip(arrays, dtypes, strict=True)]
        y = np.empty(arrays[0].shape, loops.storage(result))
        entry(*arrays, y)
        return y

    return call


def ulps(got, reference):
    """Distance to the reference, in units of the last place of the reference rounded to the dtype of ``got``."""
    wide = reference.dtype.type
    rounded = reference.astype(got.dtype)
    largest = np.finfo(got.dtype).max
    unit = np.spacing(np.where(np.isfinite(rounded), np.abs(rounded), largest).astype(got.dtype)).astype(wide)
    # an overflow counts as the power of two that comes after the largest number
    top = wide(largest) + wide(np.spacing(largest)) if got.dtype == np.float32 else wide(np.inf)
    finite = [np.where(np.isinf(v), np.copysign(top, v), v) for v in (got.astype(wide), reference)]
    error = np.abs(finite[0] - finite[1]) / unit
    error = np.where(got == rounded, np.minimum(np.nan_to_num(error), 0.5), error)
    return np.where(np.isnan(got) | np.isnan(rounded), np.where(np.isnan(got) == np.isnan(rounded), 0.0, np.inf), error)


def check(got, reference, bound, *operands):
    error = ulps(got, reference)
    worst = int(np.argmax(error))
    place = tuple(o[worst] for o in operands)
    assert error[worst] <= bound, f"{error[worst]:.3f} ulp at {place}: {got[worst]!r}, not {reference[worst]!r}"
    zeros = (got == 0) & (reference == 0)
    wrong = np.signbit(got[zeros]) != np.signbit(reference[zeros])
    assert not wrong.any(), f"the sign of zero is wrong at {[o[zeros][wrong][:5] for o in operands]}"


def around(values, steps=2000):
    """Neighbouring float32 around each value, of both signs."""
    centres = np.asarray(values, np.float32).view(np.int32)
    bits = (centres[:, None] + np.arange(-steps, steps + 1, dtype=np.int32)).ravel()
    near = bits[bits >= 0].view(np.float32)
    return np.concatenate([near, -near])


SPECIAL = [0.0, -0.0, INF, -INF, NAN, 1.0, -1.0, 0.5, -0.5, 2.0, -2.0, 1e-45, -1e-45, 1e-40, -1e-40, 1e-38, 3.4e38, -3.4e38]
DIFFICULT = [0.015625, 0.03125, 0.34657, 0.5, 0.6, 0.625, 0.7071, 0.9, 1.0, 1.4142, 2.0, 4.0, 5.5, 9.01, 10.05, 16.6, 17.3,
             87.3, 88.4, 88.72, 89.4, 103.9, 127.9, 149.0, 1.1754944e-38]  # fmt: skip


@pytest.fixture(scope="module")
def singles():
    """Every 997th float32, dense runs around difficult places, and the float32 nearest to multiples of pi/2."""
    strided = np.arange(0, 2**32, 997, dtype=np.uint64).astype(np.uint32).view(np.float32)
    turns = (np.arange(1, 20000) * (np.pi / 2)).astype(np.float32)
    # float32 that are exceptionally near to multiples of pi/2
    near = np.array(
        [16367173.0 * 2.0**k for k in range(70, 76)] + [6381956970095103.0 * 2.0**5, 11789.0, 12867.964], np.float32
    )
    return np.concatenate([strided, around(DIFFICULT), turns, -turns, near, np.array(SPECIAL, np.float32)])


@pytest.fixture(scope="module")
def doubles():
    rng = np.random.default_rng(0)
    n = 20_000
    return np.concatenate([
        rng.integers(0, 2**63, n).view(np.float64), -rng.integers(0, 2**63, n).view(np.float64), rng.normal(0, 1, n),
        rng.uniform(-10, 10, n), rng.uniform(-760, 760, n), 1 + rng.normal(0, 1e-4, n), rng.normal(0, 1e-3, n),
        np.array(SPECIAL), around(DIFFICULT, 20).astype(np.float64),
    ])  # fmt: skip


def expit(x):
    e = np.exp(-np.abs(x))
    return np.where(x < 0, e, 1) / (1 + e)


# name: (reference, bound in ulp for float32, for float64)
UNARY = {
    "exp": (np.exp, 1.1, 1.1), "exp2": (np.exp2, 1.0, 1.0), "expm1": (np.expm1, 1.5, 1.5), "sigmoid": (expit, 2.5, 2.5),
    "log": (np.log, 0.9, 0.9), "log2": (np.log2, 1.0, 1.0), "log10": (np.log10, 1.0, 1.0), "log1p": (np.log1p, 1.5, 1.5),
    "tanh": (np.tanh, 1.5, 1.9), "sinh": (np.sinh, 1.8, 1.8), "cosh": (np.cosh, 1.6, 1.6),
    "asinh": (np.arcsinh, 0.7, 2.0), "acosh": (np.arccosh, 0.6, 2.5), "atanh": (np.arctanh, 0.6, 2.2),
    "sin": (np.sin, 1.9, None), "cos": (np.cos, 1.9, None), "tan": (np.tan, 1.7, None),
    "asin": (np.arcsin, 1.8, 1.9), "acos": (np.arccos, 1.3, 1.4), "atan": (np.arctan, 1.5, 1.9),
    "rsqrt": (lambda x: 1 / np.sqrt(x), 1.6, 1.6), "reciprocal": (lambda x: 1 / x, 0.6, 0.6), "square": (np.square, 0.6, 0.6),
    "erf": (special.erf, 1.1, None), "erfc": (special.erfc, 0.7, None),
    "erfinv": (lambda x: np.where(x == 0, x, special.erfinv(x)), 0.8, None),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", UNARY)
def test_float32(name, singles):
    reference, bound, _ = UNARY[name]
    x = singles[::8] if name == "erfinv" else singles  # SciPy's is slow
    check(compiled(getattr(m, name), "float32")(x), reference(x.astype(np.float64)), bound, x)


@pytest.mark.skipif(not extended, reason="no number format wider than float64")
@pytest.mark.parametrize("name", [n for n, (_, _, bound) in UNARY.items() if bound])
def test_float64(name, doubles):
    reference, _, bound = UNARY[name]
    check(compiled(getattr(m, name), "float64")(doubles), reference(doubles.astype(np.longdouble)), bound, doubles)


@pytest.mark.parametrize(("name", "bound"), [("erf", 2.0), ("erfc", 4.0), ("erfinv", 4.0)])
def test_float64_error_functions(name, bound, doubles):
    # the references have errors of their own: one ulp for the C library's, more for SciPy's inverse
    x = doubles[::3]
    reference = np.where(x == 0, x, special.erfinv(x)) if name == "erfinv" else np.array([getattr(math, name)(v) for v in x])
    check(compiled(getattr(m, name), "float64")(x), reference.astype(np.longdouble), bound, x)


def test_normal_distribution(singles):
    x = np.concatenate([singles, np.linspace(-15, 15, 100_001, dtype=np.float32)])
    wide = x.astype(np.float64)
    for formula, reference in ((m.normal_cdf, special.ndtr(wide)), (m.normal_pdf, np.exp(-0.5 * wide**2) / np.sqrt(2 * np.pi))):
        got = compiled(formula, "float32")(x)
        assert np.array_equal(np.isnan(got), np.isnan(x))
        assert np.nanmax(np.abs(got - reference)) < 9e-8
        assert not got[x < -13.5].any()  # so that a product with any number is 0


def test_lgamma(singles):
    x = singles[singles > -2.0]
    check(compiled(m.lgamma, "float32")(x), special.gammaln(x.astype(np.float64)), 1.5, x)


def test_digamma(singles):
    x = singles[::4][singles[::4] > -0.9]
    reference = special.digamma(x.astype(np.float64))
    got = compiled(m.digamma, "float32")(x)
    check(got, reference, 0.7, x)
    x = np.random.default_rng(0).uniform(0, 20, 10000)
    np.testing.assert_allclose(compiled(m.digamma, "float64")(x), special.digamma(x), rtol=1e-14, atol=1e-14)


def special_pairs():
    values = np.array([*SPECIAL, 3.0, -3.0, 1.5, -2.5, 16777217.0, 33554434.0, 5e8], np.float32)
    return tuple(v.ravel() for v in np.meshgrid(values, values))


@pytest.fixture(scope="module")
def pairs():
    rng = np.random.default_rng(1)
    n = 200_000
    a, b = special_pairs()
    random = rng.integers(0, 2**32, (2, n)).astype(np.uint32).view(np.float32)
    x = np.concatenate(
        [a, random[0], 10 ** rng.uniform(-38, 38, n), rng.normal(0, 3, n), rng.uniform(0, 4, n), rng.uniform(0.9, 1.1, n)]
    )
    y = np.concatenate(
        [b, random[1], rng.uniform(-4, 4, n), np.round(rng.normal(0, 9, n)), rng.normal(0, 3, n), rng.normal(0, 800, n)]
    )
    return x.astype(np.float32), y.astype(np.float32)


@pytest.mark.parametrize(
    ("name", "reference", "bound"),
    [
        ("pow", np.power, 0.7),
        ("atan2", np.arctan2, 1.9),
        ("hypot", np.hypot, 0.6),
        ("xlogy", special.xlogy, 2.0),
        ("fmod", np.fmod, 0.5),
    ],
)
def test_binary_float32(name, reference, bound, pairs):
    x, y = pairs
    expected = reference(x.astype(np.float64), y.astype(np.float64))
    check(compiled(getattr(m, name), "float32", "float32")(x, y), expected, bound, x, y)


@pytest.mark.parametrize("name", ["pow", "atan2", "hypot"])
@pytest.mark.skipif(not extended, reason="no number format wider than float64")
def test_binary_float64(name, pairs):
    x, y = (v.astype(np.float64) for v in pairs)
    reference = {"pow": np.power, "atan2": np.arctan2, "hypot": np.hypot}[name]
    expected = reference(x.astype(np.longdouble), y.astype(np.longdouble))
    check(compiled(getattr(m, name), "float64", "float64")(x, y), expected, 2.0, x, y)


@pytest.mark.skipif(not extended, reason="no number format wider than float64")
def test_pow_float64(doubles):
    """Also of results of every size, of bases next to 1 and next to where the logarithm's halves meet; of integers it is exact."""
    rng, n = np.random.default_rng(0), 20_000
    roots = rng.choice([1.0, 0.75**0.5, 1.5**0.5, 1.5], n) * (1 + rng.normal(0, 1, n) * 10.0 ** rng.uniform(-16, -1, n))
    x = np.concatenate([roots, rng.integers(1, 2047 << 52, 2 * n).view(np.float64)])
    with np.errstate(all="ignore"):
        y = np.nan_to_num(rng.uniform(-1080, 1030, x.size) / np.log2(x))
        x, y = np.concatenate([x, doubles]), np.concatenate([y, rng.permutation(doubles)])
        reference = np.power(x.astype(np.longdouble), y.astype(np.longdouble))
    call = compiled(m.pow, "float64", "float64")
    for order in (slice(None), np.argsort(~((x > 1e-300) & (x < INF) & (abs(y) < 1e6)), kind="stable")):
        check(call(x[order], y[order]), reference[order], 0.76, x[order], y[order])
    base, exponent = (v.ravel().astype(np.float64) for v in np.meshgrid(np.arange(-200, 201), np.arange(8)))
    exact = np.array([int(b) ** int(e) for b, e in zip(base, exponent, strict=True)], object)
    keep = abs(exact) < 2**53
    np.testing.assert_array_equal(call(base[keep], exponent[keep]), exact[keep].astype(np.float64))


def test_norm_power():
    rng = np.random.default_rng(0)
    x = np.concatenate([10.0 ** rng.uniform(-44, 38, 4000), [0.0, INF, NAN, 1.0, 1.0000001]]).astype(np.float32)
    for p in (0.5, -0.5, 2.5, 7.3, -3.0, 0.0, INF, -INF):
        with np.errstate(all="ignore"):
            expected = np.power(x.astype(np.float64), p)
        expected[expected > 2.0**1000] = INF
        expected[expected < 2.0**-1000] = 0.0
        np.testing.assert_allclose(compiled(m.norm_power, "float32", "float64")(x, np.full(x.size, p)), expected, rtol=5e-9)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_remainders(dtype, pairs):
    x, y = (v.astype(dtype) for v in pairs)
    with np.errstate(all="ignore"):
        keep = ~((np.abs(x) > 2.0**22 * np.abs(y)) & (y != 0))  # beyond, the rounding of a quotient is anyone's choice
        np.testing.assert_array_equal(compiled(m.remainder, dtype, dtype)(x, y)[keep], np.mod(x, y)[keep])
        got, reference = compiled(m.floor_divide, dtype, dtype)(x, y), np.floor_divide(x, y)
    np.testing.assert_array_equal(got[keep], reference[keep])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_remainders_and_neighbours_are_those_of_c(dtype):
    """Also of quotients next to integers and next to the largest that vectors divide, and of numbers that are not normal."""
    rng, unsigned, bits, n = np.random.default_rng(0), f"u{dtype.replace('float', 'int')}", 8 * np.dtype(dtype).itemsize, 4096
    drawn = lambda: rng.integers(0, 2 ** (bits - 1), n, dtype=np.uint64).astype(unsigned).view(dtype)
    few = 2.0**28 if dtype == "float32" else 2.0**26
    tiny = [rng.integers(1, 2**k, n).astype(unsigned).view(dtype) for k in (12, 22)]
    b = np.concatenate([drawn(), drawn(), drawn(), drawn(), *tiny])
    with np.errstate(all="ignore"):
        near = [b[k * n : (k + 1) * n] * q for k, q in enumerate((rng.integers(1, 50, n), rng.integers(1, 2**25, n), few))]
    shift = rng.integers(-3, 4, 3 * n).astype(unsigned)
    a = np.concatenate([(np.concatenate(near).astype(dtype).view(unsigned) + shift).view(dtype), drawn(), tiny[1], tiny[0]])
    special_ = np.meshgrid(np.array(SPECIAL, dtype), np.array(SPECIAL, dtype))
    x, y = (np.concatenate([v * rng.choice([-1, 1], v.size).astype(dtype), s.ravel()]) for v, s in zip((a, b), special_, strict=True))
    for name in ("fmod", "nextafter"):
        with np.errstate(all="ignore"):
            expected = getattr(np, name)(x, y)
        for order in (slice(None), np.argsort(~((abs(x) < abs(y) * few) & np.isfinite(y)), kind="stable")):
            got = compiled(getattr(m, name), dtype, dtype)(x[order], y[order])
            same = (got.view(unsigned) == expected[order].view(unsigned)) | (np.isnan(got) & np.isnan(expected[order]))
            assert same.all(), f"{name}{x[order][~same][0], y[order][~same][0]} = {got[~same][0]!r}, not {expected[order][~same][0]!r}"


@pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "int64", "uint8", "uint32", "uint64"])
def test_integer_division(dtype):
    """Of numbers of every size: those of 51 bits are divided as float64."""
    rng, info, n = np.random.default_rng(0), np.iinfo(dtype), 4096
    a, b = (rng.integers(info.min, info.max, n, dtype, endpoint=True) >> rng.integers(0, info.bits - 1, n).astype(dtype) for _ in range(2))
    b = np.where(b == 0, 3, b).astype(dtype)
    with np.errstate(over="ignore"):
        near = [b * rng.integers(info.min >> 3, (info.max >> 3) + 1, n, dtype) + np.array(k).astype(dtype) for k in (-1, 0, 1)]
        a, b = np.concatenate([a, *near]), np.concatenate([b] * 4)
        keep = (b != -1) | (a != info.min)
        a, b = a[keep], b[keep]
        floored, cut = a // b, np.fmod(a, b)
        truncated = (a - cut) // b
    expected = {"floor_divide": floored, "remainder": np.mod(a, b), "fmod": cut, "trunc_divide": truncated}
    for order in (slice(None), np.argsort(abs(a.astype(float)) + abs(b.astype(float)), kind="stable")):
        for name, reference in expected.items():
            np.testing.assert_array_equal(compiled(getattr(m, name), dtype, dtype)(a[order], b[order]), reference[order], name)


@pytest.mark.parametrize("name", ["logaddexp", "logaddexp2"])
def test_logaddexp(name, pairs):
    x, y = pairs
    got = compiled(getattr(m, name), "float32", "float32")(x, y)
    reference = getattr(np, name)(x.astype(np.float64), y.astype(np.float64))
    # where the sum nearly cancels, the error is that of the larger operand
    np.testing.assert_allclose(got, reference, rtol=2.5e-7, atol=2e-7)


@pytest.mark.parametrize("exponent", [0, 1, 2, 3, 4, -1, -2, 0.5, -0.5, 2.5, -3, 7])
def test_pow_constant(exponent, singles):
    x = singles[::7]
    reference = np.power(x.astype(np.float64), exponent)
    got = compiled(lambda v: m.pow(v, exponent), "float32")(x)
    if exponent in (0.5, -0.5):  # square roots, as in PyTorch: of -inf it is NaN
        got, reference, x = (v[x != -INF] for v in (got, reference, x))
        got, reference, x = (v[x != 0] for v in (got, reference, x))
    check(got, reference, 2.0, x)


def test_pow_integers():
    a, b = (v.ravel() for v in np.meshgrid(np.arange(-5, 6), np.arange(0, 12)))
    np.testing.assert_array_equal(compiled(m.pow, "int64", "int64")(a, b), a**b)
    got = compiled(m.pow, "int64", "int64")(np.array([1, -1, -1, 2]), np.array([-3, -3, -2, -1]))
    assert got.tolist() == [1, -1, 1, 0]


@pytest.mark.parametrize("name", ["sin", "cos", "tan"])
@pytest.mark.skipif(not extended, reason="no number format wider than float64")
def test_trigonometric_float64(name):
    rng = np.random.default_rng(0)
    n = 50_000
    near = np.arange(1, n) * (np.pi / 2)
    x = np.concatenate(
        [rng.uniform(-10, 10, n), rng.uniform(-1e5, 1e5, n), near, 10 ** rng.uniform(-300, 5, n), np.array(SPECIAL[:10])]
    )
    check(compiled(getattr(m, name), "float64")(x), getattr(np, name)(x.astype(np.longdouble)), 2.5, x)


@pytest.mark.parametrize("name", ["sin", "cos"])
@pytest.mark.skipif(not extended, reason="no number format wider than float64")
def test_trigonometric_float64_large(name):
    rng = np.random.default_rng(0)
    function = compiled(getattr(m, name), "float64")
    # beyond 1e8 the precision comes from fused multiplications, where the machine has them
    fused = compiled(lambda a, b: a * a - b, "float64", "float64")(np.array([1 + 2.0**-30]), np.array([1 + 2.0**-29]))[0] != 0
    x = 10 ** rng.uniform(3, 12 if fused else 8, 100_000)
    check(function(x), getattr(np, name)(x.astype(np.longdouble)), 2.0, x)
    x = np.concatenate([10 ** rng.uniform(12, 308, 20_000), 2.0 ** np.arange(40, 1024), [1.797e308]])
    error = function(x) - getattr(np, name)(x.astype(np.longdouble))
    assert np.abs(error).max() < 1e-15


def test_half_to_float():
    halves = np.arange(65536, dtype=np.uint16)
    got, expected = compiled(m.half_to_float, "uint16")(halves), halves.view(np.float16).astype(np.float32)
    known = ~np.isnan(expected)
    assert np.array_equal(got.view(np.uint32)[known], expected.view(np.uint32)[known])
    assert np.isnan(got[~known]).all()


def test_float_to_half(singles):
    halves = np.arange(65536, dtype=np.uint16).view(np.float16).astype(np.float32)
    # halves, what lies halfway between neighbours, and one float32 to each side
    finite = np.sort(halves[np.isfinite(halves)])
    middle = (finite[1:] + finite[:-1]) / 2
    x = np.concatenate([singles, halves, middle, np.nextafter(middle, np.float32(INF)), np.nextafter(middle, np.float32(-INF)),
                        np.array([65519.996, 65520.0, -65520.0], np.float32)])  # fmt: skip
    got, expected = compiled(m.float_to_half, "float32")(x), x.astype(np.float16)
    known = ~np.isnan(x)
    assert np.array_equal(got[known], expected.view(np.uint16)[known])
    assert np.isnan(got.view(np.float16)[~known]).all()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_order_keys(dtype):
    x = np.array([-INF, -3.4e38, -1.0, -1e-45, -0.0, 0.0, 1e-45, 1.0, 3.4e38, INF, NAN], dtype)
    integer = "int32" if dtype == "float32" else "int64"
    back = compiled(m.from_order_key, integer)
    key = compiled(m.order_key, dtype)(x)
    assert (np.diff(key.astype(object)) > 0).all()
    np.testing.assert_array_equal(back(key), x)
    smallest = compiled(m.order_key_min, dtype)(x)
    assert smallest.argmin() == 10
    np.testing.assert_array_equal(smallest[:-1], key[:-1])
    np.testing.assert_array_equal(back(smallest), x)


def test_maximum_minimum_sign(pairs):
    x, y = pairs
    np.testing.assert_array_equal(compiled(m.maximum, "float32", "float32")(x, y), np.maximum(x, y))
    np.testing.assert_array_equal(compiled(m.minimum, "float32", "float32")(x, y), np.minimum(x, y))
    known = ~np.isnan(x)
    np.testing.assert_array_equal(compiled(m.sign, "float32")(x)[known], np.sign(x)[known])
    assert (compiled(m.sign, "float32")(x)[~known] == 0).all()
