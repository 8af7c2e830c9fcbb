"""repr of random tensors, character for character PyTorch's."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")
import autograd_nb as ag  # noqa: E402

SMALL = [(), (0,), (1,), (5,), (30,), (2, 0), (0, 3), (3, 4), (2, 3, 4), (1, 2, 1, 3), (1001,)]
SHAPES = [*SMALL, (50, 60), (3, 40, 20), (7, 3, 2, 40)]
KINDS = {
    "normal": lambda r, s: r.standard_normal(s),
    "wide": lambda r, s: r.standard_normal(s) * 10.0 ** r.integers(-6, 10, s),
    "small": lambda r, s: r.standard_normal(s) * 1e-5,
    "large": lambda r, s: r.standard_normal(s) * 1e9,
    "integral": lambda r, s: np.rint(r.standard_normal(s) * 20),
    "integral wide": lambda r, s: np.rint(r.standard_normal(s) * 10.0 ** r.integers(0, 10, s)),
    "zeros": lambda r, s: np.zeros(s),
    "special": lambda r, s: r.choice([0.0, -0.0, 1.0, 1.5, -2.25, np.inf, -np.inf, np.nan], s),
    "nan": lambda r, s: np.full(s, np.nan),
    "hundred": lambda r, s: r.uniform(-100, 900, s),
}


def pair(array, dtype):
    array = np.asarray(array)
    with np.errstate(all="ignore"):
        array = array.astype(dtype)
    if not array.ndim:
        return torch.from_numpy(array.reshape(1))[0], ag.from_numpy(array.reshape(1))[0]
    return torch.from_numpy(array), ag.from_numpy(array)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
def test_floats(kind, dtype):
    r = np.random.default_rng(0)
    for shape in SHAPES:
        for _ in range(3):
            a, b = pair(KINDS[kind](r, shape), dtype)
            assert repr(b) == repr(a)
            assert str(b) == str(a)


@pytest.mark.parametrize("dtype", ["int64", "int32", "int16", "int8", "uint8", "bool"])
def test_integers(dtype):
    r = np.random.default_rng(0)
    for shape in SHAPES:
        for scale in (2, 100, 10**6):
            a, b = pair(r.integers(-scale, scale, shape) if dtype != "bool" else r.integers(0, 2, shape), dtype)
            assert repr(b) == repr(a)


def programs(lib):
    x = lib.tensor([1.0, 2.5], requires_grad=True)
    yield x
    yield x * 2
    yield (x * 2).sum()
    yield x.detach()
    yield lib.tensor([[1.0] * 12] * 2, dtype=lib.float64, requires_grad=True).exp()
    yield lib.zeros(3, 0, dtype=lib.int64)
    yield lib.zeros(0, dtype=lib.float64)
    yield lib.zeros(2, 3).T
    yield lib.arange(6).reshape(2, 3)[:, ::2]
    for v in (3.14159, 2, True, float("nan"), float("inf"), 1e-9, 123456789.0):
        yield lib.tensor(v)


def test_suffixes():
    for a, b in zip(programs(torch), programs(ag), strict=True):
        assert repr(b) == repr(a)


@pytest.mark.parametrize(
    "options",
    [
        {"precision": 2},
        {"threshold": 10, "edgeitems": 2},
        {"linewidth": 40},
        {"sci_mode": True},
        {"sci_mode": False},
        {"profile": "short"},
        {"profile": "full"},
    ],
)
def test_printoptions(options):
    r = np.random.default_rng(0)
    try:
        torch.set_printoptions(**options)
        ag.set_printoptions(**options)
        for kind in KINDS.values():
            for shape in SMALL:
                a, b = pair(kind(r, shape), "float32")
                assert repr(b) == repr(a)
    finally:
        torch.set_printoptions(profile="default")
        ag.set_printoptions(profile="default")


@pytest.mark.parametrize("spec", ["", ".3f", "8.2e", "d", "+.1f"])
def test_format(spec):
    value = 7 if spec == "d" else 3.14159
    assert format(ag.tensor(value), spec) == format(torch.tensor(value), spec)
    if spec:
        with pytest.raises(TypeError):
            format(torch.tensor([1.0, 2.0]), spec)
        with pytest.raises(TypeError):
            format(ag.tensor([1.0, 2.0]), spec)


@pytest.mark.parametrize("shape", [(1,) * 65, (2, 1, *(1,) * 68, 3), (*(1,) * 40, 2, *(1,) * 30), (0, *(1,) * 70), (1,) * 64])
def test_more_dims_than_an_array_can_have(shape):
    a, b = (lib.arange(int(np.prod(shape, dtype=int)), dtype=lib.float32).reshape(shape) for lib in (torch, ag))
    assert str(a) == str(b) and a.tolist() == b.tolist()
    c, d = (lib.arange(6.0).expand(*(1,) * 70, 6)[..., 1:3] * 2 for lib in (torch, ag))
    assert str(c) == str(d) and c.tolist() == d.tolist()
