"""Quantiles, modes, histograms, finite differences, masked reductions, copying forms of views, memory under new shapes."""

import numpy as np
import pytest

import autograd_nb as torch
from autograd_nb.ops.core.registry import OPS, parameters_of

RNG = np.random.default_rng(6)
NAN = float("nan")


@pytest.mark.parametrize("way", ["linear", "lower", "higher", "midpoint", "nearest"])
def test_quantile(way):
    a = RNG.normal(size=(3, 7))
    q = np.array([0.0, 0.2, 0.55, 1.0])
    y = torch.quantile(torch.tensor(a), torch.tensor(q), 1, interpolation=way)
    np.testing.assert_allclose(y.numpy(), np.quantile(a, q, axis=1, method=way), rtol=1e-12)
    np.testing.assert_allclose(torch.quantile(torch.tensor(a), 0.3, interpolation=way).item(), np.quantile(a, 0.3, method=way))
    assert torch.quantile(torch.tensor(a), 0.5, keepdim=True).shape == (1, 1)


def test_quantile_and_nan():
    x = torch.tensor([[1.0, NAN, 3.0], [4.0, 5.0, 6.0], [NAN, NAN, NAN]])
    np.testing.assert_array_equal(x.quantile(0.5, 1).numpy(), [NAN, 5, NAN])
    np.testing.assert_array_equal(x.nanquantile(0.5, 1).numpy(), [2, 5, NAN])


def test_quantile_derivatives():
    x = torch.tensor(RNG.normal(size=(2, 5)), requires_grad=True)
    q = torch.tensor([0.3, 0.7], dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda x, q: x.quantile(q, 1), (x, q))
    assert torch.autograd.gradgradcheck(lambda x, q: x.quantile(q, 1), (x, q))


#: name -> (operand, q, the error's text)
REFUSED_QUANTILES = {
    "integers": (torch.ones(3, dtype=torch.int64), 0.5, "must be either float or double"),
    "nothing": (torch.ones(0), 0.5, "must be non-empty"),
    "more than all": (torch.ones(3), 1.5, r"must be in the range \[0, 1\]"),
    "q of another dtype": (torch.ones(3), torch.tensor([0.5], dtype=torch.float64), "same dtype"),
    "a matrix of q": (torch.ones(3), torch.ones(2, 2), "scalar or 1D"),
}


@pytest.mark.parametrize("case", REFUSED_QUANTILES)
def test_wrong_operands_of_quantile_are_refused(case):
    x, q, text = REFUSED_QUANTILES[case]
    with pytest.raises(RuntimeError, match=text):
        torch.quantile(x, q)


def test_mode():
    values, indices = torch.tensor([[1, 3, 3, 1, 2], [5, 4, 4, 4, 5]]).mode()
    assert values.tolist() == [1, 4]
    assert indices.tolist() == [3, 3]
    x = torch.tensor([1.0, 2.0, 2.0], requires_grad=True)
    x.mode(0).values.backward()
    assert x.grad.tolist() == [0, 0, 1]


def test_ties():
    x = torch.tensor([1.0, 1.0, 0.0, 1.0], requires_grad=True)
    assert x.median(0).indices.item() == 0  # the second of the elements in stable order: 0 at 2, then 1 at 0
    x = torch.tensor([2, 1, 2, 1, 2])
    assert x.topk(3).values.tolist() == [2, 2, 2]
    assert sorted(x.topk(3).indices.tolist()) == [0, 2, 4]


def test_topk_of_long_rows():
    a = RNG.permutation(5000).astype(np.float32)
    for k in (1, 7, 70, 3000, 5000):
        values, indices = torch.tensor(a).topk(k)
        np.testing.assert_array_equal(values.numpy(), np.sort(a)[::-1][:k])
        np.testing.assert_array_equal(a[indices.numpy()], values.numpy())
    killer = np.r_[np.arange(0, 3000), np.arange(3000, 0, -1)].astype(np.float32)
    np.testing.assert_array_equal(torch.tensor(killer).topk(1500).values.numpy(), np.sort(killer)[::-1][:1500])


# ----------------------------------------------------------------------------------------------------- histograms


def test_histogram():
    a, w = RNG.normal(size=200), RNG.uniform(size=200)
    for kw in ({}, {"density": True}, {"weight": torch.tensor(w)}):
        hist, edges = torch.histogram(torch.tensor(a), 12, **kw)
        expected = np.histogram(a, edges.numpy(), density="density" in kw, weights=w if "weight" in kw else None)[0]
        np.testing.assert_allclose(hist.numpy(), expected)
    hist, _ = torch.histogram(torch.tensor([0.0, 1.0, 1.0, 2.0, 9.0, NAN]), torch.tensor([0.0, 1.0, 2.0]))
    assert hist.tolist() == [1, 3]


def test_histogramdd():
    a = RNG.normal(size=(100, 2))
    hist, edges = torch.histogramdd(torch.tensor(a), [3, 4], range=[-1.0, 1.0, -2.0, 2.0])
    np.testing.assert_allclose(hist.numpy(), np.histogramdd(a, [3, 4], [(-1, 1), (-2, 2)])[0])
    assert [len(e) for e in edges] == [4, 5]


# ------------------------------------------------------------------------------------------------------- gradient


@pytest.mark.parametrize("order", [1, 2])
def test_gradient(order):
    a = RNG.normal(size=(4, 5))
    for y, z in zip(
        torch.gradient(torch.tensor(a), spacing=0.5, edge_order=order), np.gradient(a, 0.5, edge_order=order), strict=True
    ):
        np.testing.assert_allclose(y.numpy(), z)
    places = np.cumsum(RNG.uniform(0.5, 1.5, 5))
    (y,) = torch.gradient(torch.tensor(a), spacing=(torch.tensor(places),), dim=1, edge_order=order)
    np.testing.assert_allclose(y.numpy(), np.gradient(a, places, axis=1, edge_order=order))


def test_gradient_derivatives():
    x = torch.tensor(RNG.normal(size=5), requires_grad=True)
    t = torch.tensor(np.cumsum(RNG.uniform(0.5, 1.5, 5)), requires_grad=True)
    assert torch.autograd.gradcheck(lambda x, t: torch.gradient(x, spacing=(t,), edge_order=2), (x, t))


def test_gradient_refuses():
    with pytest.raises(RuntimeError, match=r"at least edge_order\+1"):
        torch.gradient(torch.ones(2), edge_order=2)
    with pytest.raises(RuntimeError, match="only supports edge_order=1 and edge_order=2"):
        torch.gradient(torch.ones(9), edge_order=3)


# ---------------------------------------------------------------------------------------------------- torch.masked


def test_masked():
    a, keep = RNG.normal(size=(3, 4)), RNG.random((3, 4)) < 0.6
    keep[0, 0] = keep[1, 0] = keep[2, 0] = True
    x, mask = torch.tensor(a), torch.tensor(keep)
    held = np.ma.array(a, mask=~keep)
    for name in ("sum", "prod", "mean", "median"):
        y = getattr(torch.masked, name)(x, 1, mask=mask)
        expected = (
            getattr(np.ma, name)(held, 1)
            if name != "median"
            else [np.sort(r[k])[(k.sum() - 1) // 2] for r, k in zip(a, keep, strict=True)]
        )
        np.testing.assert_allclose(y.numpy(), expected)
    np.testing.assert_allclose(torch.masked.amax(x, mask=mask).item(), held.max())
    np.testing.assert_allclose(torch.masked.var(x, 1, unbiased=False, mask=mask).numpy(), held.var(1))
    soft = torch.masked.softmax(x, 1, mask=mask)
    assert not soft[~mask].any()
    np.testing.assert_allclose(soft.sum(1).numpy(), np.ones(3))


def test_masked_elements_get_no_gradient():
    x = torch.tensor([1.0, NAN, 3.0], requires_grad=True)
    torch.masked.mean(x, mask=torch.tensor([True, False, True])).backward()
    assert x.grad.tolist() == [0.5, 0.0, 0.5]


# --------------------------------------------------------------------------------------------------------- memory


def test_copying_forms_own_their_memory():
    x = torch.arange(6.0).reshape(2, 3)
    for y in (x.permute(1, 0), torch.permute_copy(x, (1, 0)), torch.select_copy(x, 0, 0), torch.unbind_copy(x)[0], torch.alias_copy(x)):
        before = x.clone()
        y.add_(1)
        assert torch.equal(x, before) is (y._view is None)
        x.copy_(before)


def test_parts_of_unsafe_split_may_change_in_place():
    x = torch.arange(4.0, requires_grad=True)
    first, second = (x * 1).unsafe_split(2)
    first.mul_(3)
    (first.sum() + second.sum()).backward()
    assert x.grad.tolist() == [3, 3, 1, 1]


def test_resize():
    x = torch.arange(6.0)
    y = x[2:]
    assert y.resize_(2, 2) is y
    assert y.tolist() == [[2, 3], [4, 5]]
    x.resize_(2)
    assert x.tolist() == [0, 1]
    assert x.resize_(3, 3).flatten()[:6].tolist() == [0, 1, 2, 3, 4, 5]
    with pytest.raises(RuntimeError, match="cannot resize variables that require grad"):
        torch.ones(2, requires_grad=True).resize_(1)


def test_unravel_index():
    i = RNG.integers(0, 24, (3, 2))
    for y, z in zip(torch.unravel_index(torch.tensor(i), (2, 3, 4)), np.unravel_index(i, (2, 3, 4)), strict=True):
        np.testing.assert_array_equal(y.numpy(), z)


def test_a_view_that_reaches_before_its_tensor():
    x = torch.arange(6.0, requires_grad=True)
    y = x.detach()[2:4].requires_grad_()
    z = y.as_strided((3,), (1,), 1)
    assert z.tolist() == [1, 2, 3]
    (z * torch.tensor([5.0, 6.0, 7.0])).sum().backward()
    assert y.grad.tolist() == [6, 7]
    assert y.detach().as_strided((3,), (1,), 1).tolist() == [1, 2, 3]


def test_storages_are_shared_by_views():
    x = torch.arange(6.0).reshape(2, 3)
    y = x[1:]
    assert x.untyped_storage().data_ptr() == y.untyped_storage().data_ptr() != x.clone().untyped_storage().data_ptr()
    assert (y.storage().size(), y.untyped_storage().nbytes(), y.storage()[1]) == (6, 24, 1.0)
    z = torch.empty(0).set_(x)
    assert z.is_set_to(x)
    z[0, 0] = 7
    assert x[0, 0].item() == 7


# ------------------------------------------------------------------------------------------------------- segments


@pytest.mark.parametrize("reduce", ["sum", "mean", "prod", "max", "min"])
def test_segment_reduce(reduce):
    a = RNG.normal(size=(5, 2))
    function = {"prod": np.prod, "sum": np.sum, "mean": np.mean, "max": np.max, "min": np.min}[reduce]
    y = torch.segment_reduce(torch.tensor(a), reduce, lengths=torch.tensor([2, 3]))
    np.testing.assert_allclose(y.numpy(), [function(a[:2], 0), function(a[2:], 0)])
    z = torch.segment_reduce(torch.tensor(a), reduce, offsets=torch.tensor([0, 2, 2, 5]), initial=1.0)
    assert z[1].tolist() == [1, 1]
    x = torch.tensor(a, requires_grad=True)
    assert torch.autograd.gradcheck(lambda x: torch.segment_reduce(x, reduce, lengths=torch.tensor([2, 3])), (x,))


def test_segment_reduce_refuses():
    with pytest.raises(RuntimeError, match="contains negative value"):
        torch.segment_reduce(torch.ones(3), "sum", lengths=torch.tensor([-1, 4]))
    with pytest.raises(RuntimeError, match="Expected all rows of lengths"):
        torch.segment_reduce(torch.ones(3), "sum", lengths=torch.tensor([1, 1]))
    with pytest.raises(RuntimeError, match="reduce argument must be"):
        torch.segment_reduce(torch.ones(3), "median", lengths=torch.tensor([3]))


@pytest.mark.parametrize(("n", "p"), [(5, 0.3), (400, 0.9), (100, 0.02)])
def test_binomial(n, p):
    torch.manual_seed(0)
    y = torch.binomial(torch.full((50_000,), float(n)), torch.tensor(p))
    assert abs(y.mean().item() - n * p) < 5 * (n * p * (1 - p) / 50_000) ** 0.5
    assert abs(y.var().item() / (n * p * (1 - p)) - 1) < 0.05
    assert y.min() >= 0
    assert y.max() <= n


@pytest.mark.parametrize("shape", [(0, 0, 0, 0), (0, 2, 0, 3, 0), (2, 0, 3, 0, 2), (3, 0, 2, 0, 2, 0)])
def test_empty_operands_of_many_dims(shape):
    """Their dims do not merge, and a copy in another order does not help."""
    a = np.zeros(shape)
    for dims in [(d,) for d in range(len(shape))] + [(0, 2), (1, 3), tuple(range(1, len(shape)))]:
        np.testing.assert_array_equal(torch.from_numpy(a).sum(dims).numpy(), a.sum(dims))
        np.testing.assert_array_equal(torch.from_numpy(a.T).sum(dims).numpy(), a.T.sum(dims))
        np.testing.assert_array_equal(torch.from_numpy(a).prod(dims[0]).numpy(), a.prod(dims[0]))


#: reductions that take ``dim`` and ``keepdim``
OF_DIMS = sorted({n for n, o in OPS.items() if o.name == n and o.kind != "inplace" and {"dim", "keepdim"} <= {*parameters_of(o.call)}})


@pytest.mark.filterwarnings("ignore:.*degrees of freedom")
@pytest.mark.parametrize("name", OF_DIMS)
def test_of_a_number(name):
    """A number has no dims but answers to dim 0, and what is kept of it is a number."""
    tried = 0
    for x in (torch.tensor(2.5), torch.tensor(True), torch.tensor(3 + 1j)):
        for dim in (0, -1):
            for keepdim in (False, True):
                try:
                    y = OPS[name].call(x, dim=dim, keepdim=keepdim)
                except (TypeError, RuntimeError):  # other arguments, other dtypes
                    continue
                first = y[0] if isinstance(y, tuple) else y
                assert first.shape == (), (x, dim, keepdim)
                tried += 1
    assert tried or name in ("linalg.matrix_norm", "quantile", "nanquantile", "kthvalue")  # which take more
