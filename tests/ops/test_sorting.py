"""Sorting, selecting and searching, against NumPy."""

import numpy as np
import pytest

import autograd_nb as torch

pytestmark = pytest.mark.slow  # many kernels

DTYPES = ["float64", "float32", "float16", "int64", "int32", "int16", "int8", "uint8", "bool"]


def sample(dtype, shape, seed=0):
    r = np.random.default_rng(seed)
    if dtype == "bool":
        return r.random(shape) < 0.5
    if dtype.startswith("float"):
        a = r.standard_normal(shape).astype(dtype)
        a.flat[::7] = 0.0
        a.flat[3::11] = -np.inf
        return a
    info = np.iinfo(dtype)
    return r.integers(info.min, info.max, shape, dtype=dtype, endpoint=True)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(1,), (7,), (100,), (3, 40), (2, 3, 33), (20_000,), (8, 2), (25, 200), (37, 65), (24, 201)])
def test_sort(dtype, shape):
    a = sample(dtype, shape)
    for dim in (-1, 0):
        values, indices = torch.tensor(a).sort(dim)
        order = np.argsort(a, dim, kind="stable")
        np.testing.assert_array_equal(indices.numpy(), order)
        np.testing.assert_array_equal(values.numpy(), np.take_along_axis(a, order, dim))
    down = torch.argsort(torch.tensor(a), descending=True).numpy()
    picked = np.take_along_axis(a, down, -1)
    np.testing.assert_array_equal(picked, np.flip(np.sort(a, -1), -1))


def test_nan_is_greatest_and_zeros_are_equal():
    x = torch.tensor([float("nan"), -0.0, 1.0, 0.0, float("-inf"), float("nan")])
    assert x.argsort().tolist() == [4, 1, 3, 2, 0, 5]
    assert x.argsort(descending=True).tolist() == [0, 5, 2, 1, 3, 4]
    assert x.topk(1).indices.tolist() == [5]  # of equal ones that which PyTorch names
    assert np.isnan(x.median().item())
    assert x.nanmedian().item() == 0


@pytest.mark.parametrize("k", [1, 5, 60, 100])
def test_topk(k):
    a = sample("float32", (4, 100))
    values, indices = torch.tensor(a).topk(k)
    np.testing.assert_array_equal(values.numpy(), -np.sort(-a, -1)[:, :k])
    np.testing.assert_array_equal(np.take_along_axis(a, indices.numpy(), -1), values.numpy())
    low = torch.tensor(a).topk(k, 1, largest=False).values
    np.testing.assert_array_equal(low.numpy(), np.sort(a, -1)[:, :k])
    with pytest.raises(RuntimeError, match="selected index k out of range"):
        torch.tensor(a).topk(101)


def test_order_statistics():
    a = sample("float64", (5, 9))
    x = torch.tensor(a)
    np.testing.assert_array_equal(x.kthvalue(3, 1).values.numpy(), np.sort(a, 1)[:, 2])
    np.testing.assert_array_equal(x.median(1).values.numpy(), np.sort(a, 1)[:, 4])
    assert x.median().item() == np.sort(a.ravel())[22]


def test_gradients_go_where_values_came_from():
    x = torch.tensor([3.0, 1.0, 2.0], requires_grad=True)
    y = x.sort().values
    (g,) = torch.autograd.grad((y * torch.tensor([1.0, 10.0, 100.0])).sum(), x)
    assert g.tolist() == [100, 1, 10]
    (g,) = torch.autograd.grad((x.topk(2).values ** 2).sum(), x)
    assert g.tolist() == [6, 0, 4]
    (g,) = torch.autograd.grad(x.kthvalue(2).values, x)
    assert g.tolist() == [0, 0, 1]


def test_unique():
    x = torch.tensor([3, 1, 3, 2, 1])
    values, inverse, counts = x.unique(return_inverse=True, return_counts=True)
    assert (values.tolist(), inverse.tolist(), counts.tolist()) == ([1, 2, 3], [2, 0, 2, 1, 0], [2, 1, 2])
    rows = torch.tensor([[1, 2], [0, 5], [1, 2]]).unique(dim=0)
    assert rows.tolist() == [[0, 5], [1, 2]]
    assert torch.tensor([1, 1, 2, 1]).unique_consecutive().tolist() == [1, 2, 1]


@pytest.mark.parametrize("count", [1, 2, 127, 128, 129, 300, 1024, 1025])
@pytest.mark.parametrize("right", [False, True])
def test_searches_of_every_length(count, right):
    """Rows whose edges are all looked at, that are halved together, and that are too long for their values to be looked through."""
    edges = np.sort(np.random.default_rng(count).integers(0, count, count)).astype(np.float32)
    for values in (np.array([0.5], np.float32), np.r_[edges, edges - 0.5, [-1, count, np.inf, -np.inf, np.nan]].astype(np.float32)):
        found = torch.searchsorted(torch.from_numpy(edges), torch.from_numpy(values), right=right)
        np.testing.assert_array_equal(found.numpy(), np.searchsorted(edges, values, "right" if right else "left"))


@pytest.mark.parametrize("dtype", ["int64", "float32", "bool", "uint8"])
def test_unique_of_the_same_layout_again(dtype):
    """The first call goes the long way, later ones by the kernels alone."""
    for seed in range(4):
        a = np.random.default_rng(seed).integers(0, 5, (4, 6)).astype(dtype)
        want = np.unique(a, return_inverse=True, return_counts=True)
        found = torch.unique(torch.from_numpy(a), return_inverse=True, return_counts=True)
        for t, w in zip(found, want, strict=True):
            np.testing.assert_array_equal(t.numpy().reshape(-1), w.reshape(-1))


@pytest.mark.parametrize("right", [False, True])
def test_searchsorted(right):
    edges = np.sort(sample("float32", (50,)))
    values = np.concatenate([sample("float32", (20,), 1), edges[:5]])
    want = np.searchsorted(edges, values, "right" if right else "left")
    np.testing.assert_array_equal(torch.searchsorted(torch.tensor(edges), torch.tensor(values), right=right).numpy(), want)
    np.testing.assert_array_equal(torch.bucketize(torch.tensor(values), torch.tensor(edges), right=right).numpy(), want)


def test_bincount():
    assert torch.bincount(torch.tensor([1, 3, 1])).tolist() == [0, 2, 0, 1]
    assert torch.bincount(torch.tensor([1, 3, 1]), torch.tensor([1.0, 2.0, 3.0]), minlength=5).tolist() == [0, 4, 0, 2, 0]
    with pytest.raises(RuntimeError, match="non-negative"):
        torch.bincount(torch.tensor([-1]))


CHOICES = {
    "sort": lambda x, d: x.sort(d),
    "descending": lambda x, d: torch.sort(x, d, True),
    "topk": lambda x, d: x.topk(2, d),
    "smallest": lambda x, d: torch.topk(x, 3, d, False),
}


@pytest.mark.parametrize("name", CHOICES)
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16", "int64", "uint8"])
def test_calls_that_come_again_give_the_same_as_along_another_dim(name, dtype):
    """Along the last dim the call has a plan from the second time on; along another it goes the general way."""
    call = CHOICES[name]
    for dim in (1, -1, 1, -1):
        x = (torch.randn(4, 5) * 4).to(getattr(torch, dtype))
        found, wanted = call(x, dim), call(x.t().contiguous(), 0)
        assert type(found) is type(wanted)
        torch.testing.assert_close(found.values, wanted.values.t(), rtol=0, atol=0)
        torch.testing.assert_close(found.indices, wanted.indices.t(), rtol=0, atol=0)
    if dtype == "float32":
        x = torch.randn(4, 5, requires_grad=True)
        for _ in range(3):
            values, indices = call(x, 1)
            (g,) = torch.autograd.grad(values.sum(), x)
            torch.testing.assert_close(g, torch.zeros(4, 5).scatter(1, indices, 1.0), rtol=0, atol=0)
        with torch.inference_mode():
            assert all(t.is_inference() for t in call(x, 1))


@pytest.mark.parametrize("dtype", ["float32", "float64", "int8", "int64"])
@pytest.mark.parametrize("threads", [1, 2])
def test_topk_of_rows_of_every_length(dtype, threads):
    """Rows are gone through in blocks, and those of equal elements another way; against NumPy, with and without what is equal."""
    before, r = torch.get_num_threads(), np.random.default_rng(3)
    torch.set_num_threads(threads)
    try:
        for n in (1, 31, 32, 33, 64, 100, 700):
            for spread in (3, 10**6):
                a = np.clip(r.normal(size=(300, n)) * spread, *((-120, 120) if dtype == "int8" else (None, None))).astype(dtype)
                for k in {1, min(3, n), min(16, n), n}:
                    for largest in (True, False):
                        values, indices = torch.tensor(a).topk(k, 1, largest)
                        expected = np.sort(a, 1)[:, ::-1][:, :k] if largest else np.sort(a, 1)[:, :k]
                        assert np.array_equal(values.numpy(), expected), (n, k, largest)
                        assert np.array_equal(np.take_along_axis(a, indices.numpy(), 1), expected)
                        assert all(len({*row}) == k for row in indices.tolist())
    finally:
        torch.set_num_threads(before)
