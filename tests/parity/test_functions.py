"""Unary, binary and activation functions against PyTorch: values, dtypes, first and second derivatives, special values."""

import itertools

import numpy as np
import pytest

torch = pytest.importorskip("torch")
import autograd_nb as ours  # noqa: E402
from autograd_nb.ops.core.registry import functions  # noqa: E402

from .compare import SPECIALS, compare  # noqa: E402

TORCH, F, SPECIAL = functions("torch"), functions("nn.functional"), functions("special")

ANY = np.array([-2.3, -0.7, 0.3, 0.8, 1.7, 3.4, 7.2])
UNIT = np.array([-0.9, -0.3, 0.1, 0.4, 0.77])
POSITIVE = np.array([0.2, 0.7, 1.3, 2.5, 9.0])
ABOVE_ONE = np.array([1.1, 1.7, 3.0, 12.0])
PROBABILITY = np.array([0.05, 0.3, 0.5, 0.9])

UNARY = {
    "exp": ANY, "exp2": ANY, "expm1": ANY, "log": POSITIVE, "log2": POSITIVE, "log10": POSITIVE, "log1p": POSITIVE, "sin": ANY, "cos": ANY,
    "tan": ANY, "asin": UNIT, "acos": UNIT, "atan": ANY, "sinh": ANY, "cosh": ANY, "tanh": ANY, "asinh": ANY, "acosh": ABOVE_ONE,
    "atanh": UNIT, "sinc": ANY, "deg2rad": ANY, "rad2deg": ANY, "sigmoid": ANY, "logit": PROBABILITY, "erf": ANY, "erfc": ANY,
    "erfinv": UNIT, "lgamma": POSITIVE, "digamma": POSITIVE, "floor": ANY, "ceil": ANY, "trunc": ANY, "frac": ANY, "round": ANY,
    "sign": ANY, "sgn": ANY, "nan_to_num": ANY, "relu": ANY, "square": ANY, "abs": ANY, "sqrt": POSITIVE, "rsqrt": POSITIVE,
    "reciprocal": ANY, "neg": ANY, "signbit": ANY, "isneginf": ANY, "isposinf": ANY, "isreal": ANY, "isnan": ANY, "isfinite": ANY,
}  # fmt: skip
#: PyTorch gives large numbers there; at -0 the gradient of logit has the sign that follows from how many numbers its vectors hold
POLES = {"digamma": (-1.0, -2.0, -3.0), "logit": (0.0,)}
NO_INTEGERS = {"frac", "nan_to_num"}


@pytest.mark.parametrize("name", UNARY)
def test_unary(name):
    compare(TORCH[name], getattr(torch, name), [UNARY[name]])


@pytest.mark.parametrize("name", UNARY)
def test_unary_special_values(name):
    values = np.array([x for x in SPECIALS if x not in POLES.get(name, ())])
    compare(TORCH[name], getattr(torch, name), [values], second=False, rtol=1e-7)
    compare(TORCH[name], getattr(torch, name), [values.astype(np.float32)], second=False, rtol=2e-5, atol=1e-6)
    if name != "sinc":
        compare(TORCH[name], getattr(torch, name), [UNARY[name].astype(np.float32)], rtol=2e-5, atol=1e-5)


@pytest.mark.parametrize("name", sorted(set(UNARY) - NO_INTEGERS))
def test_unary_integers(name):
    compare(TORCH[name], getattr(torch, name), [np.array([1, 2, 3])], grad=False, rtol=1e-5)


PAIRS = {
    "atan2": ANY, "hypot": ANY, "copysign": ANY, "xlogy": POSITIVE, "logaddexp": ANY, "logaddexp2": ANY, "fmax": ANY, "fmin": ANY,
    "heaviside": ANY, "nextafter": ANY, "ldexp": ANY,
}  # fmt: skip


@pytest.mark.parametrize("name", PAIRS)
def test_binary(name):
    x = PAIRS[name]
    grad = name not in {"heaviside", "nextafter"}
    compare(TORCH[name], getattr(torch, name), [x[:, None], x[::-1].copy()], grad=grad, rtol=1e-8)


@pytest.mark.parametrize("name", sorted(set(PAIRS) - {"ldexp"}))
def test_binary_special_values(name):
    x = np.array(SPECIALS)
    compare(
        TORCH[name],
        getattr(torch, name),
        [np.repeat(x, x.size), np.tile(x, x.size)],
        grad=name not in {"heaviside", "nextafter", "hypot"},
        second=False,
    )


def test_xlog1py():
    compare(SPECIAL["xlog1py"], torch.special.xlog1py, [POSITIVE[:, None], ANY[2:]])


def test_lerp_addcmul_addcdiv():
    a, b, w = ANY, ANY[::-1].copy(), np.linspace(-0.2, 1.2, 7)
    for name, args, kw in (
        ("lerp", (a, b, 0.3), {}), ("lerp", (a, b, 0.8), {}), ("lerp", (a, b, w), {}),
        ("addcmul", (a, b, w), {"value": 0.7}), ("addcmul", (a[:, None], b, w), {}), ("addcdiv", (a, b, w), {"value": -2}),
    ):  # fmt: skip
        compare(lambda *x, n=name, k=kw: TORCH[n](*x, **k), lambda *x, n=name, k=kw: getattr(torch, n)(*x, **k), args)


@pytest.mark.parametrize("name", ["gcd", "lcm", "bitwise_left_shift", "bitwise_right_shift"])
@pytest.mark.parametrize("dtype", [np.int64, np.int32, np.int8, np.uint8])
def test_integers(name, dtype):
    a, b = np.array([12, 8, 0, 5, 100], dtype), np.array([8, 3, 4, 0, 7], dtype)
    compare(TORCH[name], getattr(torch, name), [a, b], grad=False)


def test_options():
    x = np.array([*ANY, 0.0, 1.0, np.inf, -np.inf, np.nan, 0.12345, 1234.5678])
    for name, kw in (
        ("round", {"decimals": 2}), ("round", {"decimals": -2}), ("nan_to_num", {"nan": 1.5, "posinf": 7.0, "neginf": -3.0}),
        ("logit", {"eps": 0.1}), ("mvlgamma", {"p": 2}),
    ):  # fmt: skip
        data = np.abs(x) + 1 if name == "mvlgamma" else x
        compare(
            lambda t, n=name, k=kw: TORCH[n](t, **k), lambda t, n=name, k=kw: getattr(torch, n)(t, **k), [data], second=False
        )


@pytest.mark.parametrize("order", [0, 1, 2, 3])
def test_polygamma(order):
    compare(lambda x: TORCH["polygamma"](order, x), lambda x: torch.polygamma(order, x), [POSITIVE], rtol=1e-7)


def test_isin():
    x = np.array([[1, 2], [3, 4]])
    compare(TORCH["isin"], torch.isin, [x, np.array([2, 3])], grad=False)
    compare(
        lambda a, b: TORCH["isin"](a, b, invert=True),
        lambda a, b: torch.isin(a, b, invert=True),
        [x, np.array([2, 3])],
        grad=False,
    )


ACTIVATIONS = [
    ("relu", ()), ("relu6", ()), ("leaky_relu", ()), ("leaky_relu", (0.2,)), ("elu", ()), ("elu", (0.7,)), ("selu", ()), ("celu", ()),
    ("celu", (1.3,)), ("gelu", ()), ("silu", ()), ("mish", ()), ("softplus", ()), ("softplus", (2.0, 3.0)), ("softsign", ()),
    ("tanhshrink", ()), ("hardtanh", ()), ("hardtanh", (-0.5, 2.0)), ("hardsigmoid", ()), ("hardswish", ()), ("hardshrink", ()),
    ("hardshrink", (1.0,)), ("softshrink", ()), ("softshrink", (1.0,)), ("threshold", (0.5, 2.0)), ("logsigmoid", ()), ("sigmoid", ()),
    ("tanh", ()), ("rrelu", ()),
]  # fmt: skip


@pytest.mark.parametrize(("name", "args"), ACTIVATIONS)
def test_activation(name, args):
    grid = np.linspace(-8, 8, 38)
    rtol = 1e-7 if name in {"celu", "hardsigmoid"} else 1e-9  # PyTorch rounds their constants to float32
    specials = np.array(
        [x for x in SPECIALS if not (name in {"softsign", "hardswish"} and np.isinf(x))]
    )  # nan there in PyTorch
    compare(
        lambda x: F[name](x, *args),
        lambda x: getattr(torch.nn.functional, name)(x, *args),
        [grid],
        rtol=rtol,
        second=name != "hardsigmoid",
    )
    compare(
        lambda x: F[name](x, *args), lambda x: getattr(torch.nn.functional, name)(x, *args), [specials], second=False, rtol=rtol
    )
    compare(
        lambda x: F[name](x, *args),
        lambda x: getattr(torch.nn.functional, name)(x, *args),
        [grid.astype(np.float32)],
        second=False,
        rtol=2e-5,
        atol=2e-6,
    )


def test_activation_options():
    x = np.linspace(-4, 4, 24).reshape(2, 4, 3)
    for f in (
        lambda n: lambda t: n.gelu(t, approximate="tanh"),
        lambda n: lambda t: n.glu(t, dim=1),
        lambda n: lambda t: n.relu(t * 1, inplace=True),
        lambda n: lambda t: n.elu(t * 1, inplace=True),
        lambda n: lambda t: n.leaky_relu(t * 1, 0.3, inplace=True),
    ):
        compare(f(_Namespace(F)), f(torch.nn.functional), [x])
    compare(F["prelu"], torch.nn.functional.prelu, [x, np.array([0.25])])
    compare(F["prelu"], torch.nn.functional.prelu, [x, np.array([0.25, 0.5, -1, 2.0])])


class _Namespace:
    def __init__(self, table):
        self.__dict__.update(table)


#: functions of two or three operands whose derivative depends on which is larger
CHOOSING = [
    "t.clamp(a, b, c)", "t.clamp(a, b)", "t.clamp(a, None, c)", "t.clamp(a, 1., 3.)", "t.clamp(a, 3., 1.)", "t.clamp(a, 2., 2.)", "t.maximum(a, b)",
    "t.minimum(a, b)", "t.fmax(a, b)", "t.fmin(a, b)", "t.remainder(a, b)", "t.fmod(a, b)",
]


@pytest.mark.parametrize("call", CHOOSING)
def test_gradients_of_ties_and_nan(call):
    """Of every combination of equal numbers, nan and numbers whose quotient is rounded to a whole one."""
    numbers = [1.0, 2.0, 0.1, -0.3, 0.6] if "mod" in call or "rem" in call else [1.0, 2.0, 3.0, np.nan, np.inf]
    columns = np.array(list(itertools.product(numbers, repeat=3))).T
    found = []
    for lib in (torch, ours):
        names = {"t": lib, **{n: lib.tensor(c.tolist(), dtype=lib.float64, requires_grad=True) for n, c in zip("abc", columns, strict=True)}}
        y = eval(call, names)
        grads = lib.autograd.grad(y.sum(), [names[n] for n in "abc" if n in call.partition("(")[2]], allow_unused=True)
        found.append([y.detach().numpy(), *[g.numpy() for g in grads if g is not None]])
    for mine, theirs in zip(*found[::-1], strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-12)
