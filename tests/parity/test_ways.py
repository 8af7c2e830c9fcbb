"""Ops that choose among kernels by the sizes of their operands, or by a mode: each way gives PyTorch's numbers, and its derivatives."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import autograd_nb
from autograd_nb.ops.nn import conv_ways

torch = pytest.importorskip("torch")

pytestmark = pytest.mark.parity
INF = float("inf")


def numbers(seed, *shape):
    return np.random.default_rng(seed).standard_normal(shape)


def agree(f, *arrays):
    """Compare ``f(torch, *tensors)``, the gradients of its squares by all floats, and theirs."""
    found = []
    for t in (autograd_nb, torch):
        given = [t.tensor(a) for a in arrays]
        leaves = [x.requires_grad_() for x in given if x.is_floating_point()]
        y = f(t, *given)
        first = t.autograd.grad((y * y).sum(), leaves, create_graph=True)
        second = t.autograd.grad(sum((g**3).sum() for g in first), leaves, allow_unused=True)
        found.append([y, *first, *second])
    for mine, theirs in zip(*found, strict=True):
        theirs = torch.zeros(()) if theirs is None else theirs
        mine = autograd_nb.zeros(()) if mine is None else mine
        np.testing.assert_allclose(mine.detach().numpy(), theirs.detach().numpy(), rtol=1e-9, atol=1e-9 * (1 + float(theirs.detach().abs().max())))


#: (images, inputs, outputs of a group, groups, sizes of images, of kernels, stride, padding)
CONVOLUTIONS = [
    (3, 4, 2, 1, (4, 4), (4, 4), 1, 0), (3, 4, 2, 1, (4, 4), (4, 4), 3, 0), (2, 3, 5, 1, (1, 1), (1, 1), 1, 0), (1, 4, 3, 1, (5,), (5,), 1, 0),
    (2, 2, 3, 1, (2, 3, 2), (2, 3, 2), 1, 0), (3, 4, 2, 2, (4, 4), (4, 4), 1, 0), (3, 4, 2, 1, (4, 4), (4, 4), 1, 1),
    (3, 1, 1, 1, (6, 7), (3, 3), 1, 1), (3, 1, 4, 1, (6, 7), (1, 1), 1, 0), (3, 1, 5, 1, (6, 7), (3, 2), 2, 1), (2, 1, 2, 1, (20,), (7,), 1, 3),
]  # fmt: skip


@pytest.mark.parametrize("case", CONVOLUTIONS, ids=str)
def test_convolutions(case):
    images, inputs, outputs, groups, sizes, kernel, stride, padding = case
    name = f"conv{len(sizes)}d"
    x, w, b = numbers(0, images, inputs, *sizes), numbers(1, outputs * groups, inputs // groups, *kernel), numbers(2, outputs * groups)
    agree(lambda t, x, w, b: getattr(t.nn.functional, name)(x, w, b, stride, padding, 1, groups), x, w, b)


@pytest.mark.parametrize("most", [1 << 24, 100], ids=["all images", "some images at a time"])
@pytest.mark.parametrize(
    "images, groups, sizes, kernel", [(3, 1, (2, 2), (7, 7)), (4, 2, (2, 1), (5, 9)), (5, 1, (1, 2, 1), (4, 5, 4)), (3, 1, (1, 1), (4, 4))]
)
def test_transposed_convolutions_of_kernels_far_larger_than_images(images, groups, sizes, kernel, most, monkeypatch):
    monkeypatch.setattr(conv_ways, "COLUMNS", most)
    x, w = numbers(0, images, 4, *sizes), numbers(1, 4, 3, *kernel)
    agree(lambda t, x, w: getattr(t.nn.functional, f"conv_transpose{len(sizes)}d")(x, w, groups=groups), x, w)


@pytest.mark.parametrize("p", [0, 1, 2, 3, INF])
@pytest.mark.parametrize("width", [1, 2, 3, 8, 9, 64, 65])
def test_distances(width, p):
    for n, m in itertools.product((1, 5, 70), (1, 3, 40)):
        a, b = numbers(n, n, width), numbers(m + 100, m, width)
        if n > 1:
            a[1, 0] = np.nan
        mine, theirs = (t.cdist(t.tensor(a), t.tensor(b), p, "donot_use_mm_for_euclid_dist").numpy() for t in (autograd_nb, torch))
        np.testing.assert_allclose(mine, theirs, rtol=1e-9)
    for n in (1, 2, 7, 70):
        a = numbers(n, n, width)
        if n > 2:
            a[2, 0] = np.nan
        mine, theirs = (t.nn.functional.pdist(t.tensor(a), p).numpy() for t in (autograd_nb, torch))
        np.testing.assert_allclose(mine, theirs, rtol=1e-9)


@pytest.mark.parametrize("width", [3, 9])
@pytest.mark.parametrize("p", [1, 2, 3, INF])
def test_gradients_of_distances(width, p):
    found = []
    for t in (autograd_nb, torch):
        a, b = t.tensor(numbers(0, 7, width)).requires_grad_(), t.tensor(numbers(1, 40, width)).requires_grad_()
        found.append(t.autograd.grad((t.cdist(a, b, p) ** 2).sum(), (a, b)))
    for mine, theirs in zip(*found, strict=True):
        np.testing.assert_allclose(mine.numpy(), theirs.numpy(), rtol=1e-9)


@pytest.mark.parametrize("aligned", [False, True])
@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("n, mode", [(2, "bilinear"), (2, "nearest"), (2, "bicubic"), (3, "bilinear"), (3, "nearest")])
def test_samples_of_images_at_places(n, mode, padding, aligned):
    for scale in (1.0, 3.0):
        x, places = numbers(0, 2, 3, *(5, 7, 6)[:n]), scale * np.random.default_rng(1).uniform(-1, 1, (2, *(9, 17, 3)[:n], n))
        found = []
        for t in (autograd_nb, torch):
            image, grid = t.tensor(x).requires_grad_(), t.tensor(places).requires_grad_()
            y = t.nn.functional.grid_sample(image, grid, mode=mode, padding_mode=padding, align_corners=aligned)
            found.append([y, *t.autograd.grad((y * y).sum(), (image, grid))])
        for mine, theirs in zip(*found, strict=True):
            np.testing.assert_allclose(mine.detach().numpy(), theirs.detach().numpy(), rtol=1e-9, atol=1e-9)


@pytest.mark.filterwarnings("ignore:index_reduce")
@pytest.mark.parametrize("reduce", ["sum", "prod", "mean", "amax", "amin"])
@pytest.mark.parametrize("shape, dim", [((50,), 0), ((6, 20), 1), ((20, 6), 0), ((3, 20, 2), 1)])
def test_scattered_reductions_with_nan(shape, dim, reduce):
    x, source, index = numbers(0, *shape), numbers(1, *shape), np.random.default_rng(2).integers(0, shape[dim], shape)
    source.flat[3] = x.flat[7] = np.nan
    flat = np.random.default_rng(3).integers(0, shape[dim], shape[dim])
    for included in (True, False):
        calls = [lambda t, x, i, s, f, e=included: x.scatter_reduce(dim, i, s, reduce, include_self=e)]
        if reduce != "sum":
            calls.append(lambda t, x, i, s, f, e=included: x.index_reduce(dim, f, s, reduce, include_self=e))
        for call in calls:
            mine, theirs = (call(t, *map(t.tensor, (x, index, source, flat))).numpy() for t in (autograd_nb, torch))
            np.testing.assert_allclose(mine, theirs, rtol=1e-12)


MASK = np.array([[1, 0, 0, 1], [0, 1, 1, 0], [1, 1, 0, 0]], bool)


@pytest.mark.parametrize("mask", [MASK, MASK[0], MASK[:, :1], np.zeros((3, 4), bool)], ids=["whole", "row", "column", "nothing"])
def test_masked_scatter_and_its_derivatives(mask):
    agree(lambda t, x, m, s: x.masked_scatter(m, s), numbers(0, 3, 4), mask, numbers(1, 12))


def test_compiled_functions_hold_masked_scatter():
    def step(x, mask, source):
        return (x.masked_scatter(mask, source) ** 2).sum()

    compiled = autograd_nb.compile(step)
    x, source = (autograd_nb.tensor(numbers(k, 3, 4), requires_grad=True) for k in (0, 1))
    for k in range(4):
        mask = autograd_nb.tensor(numbers(k + 5, 3, 4) > 0)
        mine, wanted = (autograd_nb.autograd.grad(f(x, mask, source), (x, source)) for f in (compiled, step))
        assert [g.tolist() for g in mine] == [g.tolist() for g in wanted]
    assert "Program of" in str(compiled.programs)


@pytest.mark.parametrize("driver", ["gels", "gelsy", "gelsd"])
@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize("shape", [(3, 5), (1, 4), (7, 7), (9, 4), (2, 3, 9, 20), (40, 70)], ids=str)
def test_least_squares_of_wide_and_tall_matrices(shape, dtype, driver):
    for columns in (1, 3):
        a, b = numbers(0, *shape), numbers(1, *shape[:-1], columns)
        a, b = (v + 1j * numbers(2 + i, *v.shape) if dtype == "complex128" else v for i, v in enumerate((a, b)))
        mine, theirs = (t.linalg.lstsq(t.tensor(a), t.tensor(b), driver=driver) for t in (autograd_nb, torch))
        for part, wanted in zip(mine, theirs, strict=True):
            np.testing.assert_allclose(part.numpy(), wanted.numpy(), rtol=1e-9, atol=1e-9)
    if dtype == "float64" and len(shape) == 2 and max(shape) < 10:
        agree(lambda t, a, b: t.linalg.lstsq(a, b, driver=driver).solution, a, b)


def test_least_squares_of_a_wide_matrix_of_lower_rank():
    a, b = numbers(0, 3, 6), numbers(1, 3, 2)
    a[2] = a[1]
    mine, theirs = (t.linalg.lstsq(t.tensor(a), t.tensor(b)) for t in (autograd_nb, torch))
    assert mine.rank.item() == theirs.rank.item() == 2
    np.testing.assert_allclose(mine.solution.numpy(), theirs.solution.numpy(), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", ["linspace", "logspace"])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int64"])
def test_ramps_between_tensors(name, dtype):
    ends = [(0, "int64"), (1.3, "float32"), (-7.77, "float64"), (1.5, "bfloat16"), (True, "bool")]
    for (a, one), (b, two) in itertools.product(ends, repeat=2):
        for steps in (0, 1, 2, 5, 50, 101):
            mine, theirs = (
                getattr(t, name)(t.tensor(a, dtype=getattr(t, one)), t.tensor(b, dtype=getattr(t, two)), steps, dtype=getattr(t, dtype))
                for t in (autograd_nb, torch)
            )
            np.testing.assert_allclose(mine.numpy(), theirs.numpy(), rtol=0 if name == "linspace" else 1e-5)


@pytest.mark.parametrize("n", [1, 2, 3, 40, 1000])
def test_kth_values_are_pytorchs_elements(n):
    x = np.random.default_rng(n).integers(0, max(n // 4, 2), (50, n)).astype("float32")
    x[::7, ::5] = np.nan
    for k in sorted({1, 2, n // 2, n} & set(range(1, n + 1))):
        mine, theirs = (t.kthvalue(t.tensor(x), k) for t in (autograd_nb, torch))
        np.testing.assert_array_equal(mine.indices.numpy(), theirs.indices.numpy())


@pytest.mark.parametrize("n", [0, 1, 2, 20, 47, 48, 49, 130, 1000])
@pytest.mark.parametrize("right", [False, True])
def test_places_among_few_and_many_edges(n, right):
    edges, values = np.sort(numbers(0, n).round(1)), numbers(1, 30, 40).round(1)
    values[0, :3] = np.nan, np.inf, -np.inf
    for e in (edges, edges[::-1].copy()):
        mine, theirs = (t.bucketize(t.tensor(values), t.tensor(e), right=right) for t in (autograd_nb, torch))
        np.testing.assert_array_equal(mine.numpy(), theirs.numpy())


@pytest.mark.parametrize("shape, over", [((4,), (3, 4)), ((3, 1), (3, 4)), ((), (3,)), ((2, 3), (3,)), ((2, 1, 4), (3, 1))], ids=str)
def test_masked_select_that_broadcasts(shape, over):
    mask = numbers(1, *over) > 0
    agree(lambda t, x, m: t.masked_select(x, m), numbers(0, *shape), mask)


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
@pytest.mark.parametrize("options", [{}, {"padding_idx": 2}, {"include_last_offset": True}], ids=str)
def test_bags_of_few_and_many_rows(mode, options):
    index = np.random.default_rng(0).integers(0, 6, 40)
    offsets = np.array([0, 1, 1, 3, 6, 10, 15, 27, 40][: 9 if options.get("include_last_offset") else 8])
    found = []
    for t in (autograd_nb, torch):
        table, factors = t.tensor(numbers(1, 6, 19), requires_grad=True), t.tensor(numbers(2, 40), requires_grad=True)
        given = {"per_sample_weights": factors} if mode == "sum" else {}
        y = t.nn.functional.embedding_bag(t.tensor(index), table, t.tensor(offsets), mode=mode, **options, **given)
        found.append([y, *t.autograd.grad((y * y).sum(), [table, *given.values()])])
    for mine, theirs in zip(*found, strict=True):
        np.testing.assert_allclose(mine.detach().numpy(), theirs.detach().numpy(), rtol=1e-12, atol=1e-12)


def test_gradients_of_bags_by_frequency():
    """Of each row's own frequency: PyTorch divides by that of another row, the one at the sorted index of this one's number."""
    index = np.random.default_rng(0).integers(0, 6, 40)
    table = autograd_nb.tensor(numbers(1, 6, 19), requires_grad=True)
    y = autograd_nb.nn.functional.embedding_bag(autograd_nb.tensor(index), table, autograd_nb.arange(0, 40, 5), mode="sum", scale_grad_by_freq=True)
    (g,) = autograd_nb.autograd.grad(y.sum(), table)
    np.testing.assert_allclose(g.numpy(), np.ones((6, 19)))


def test_greatest_of_a_bag_with_nan():
    table = numbers(0, 5, 7)
    table[1, 2] = table[3, 4] = np.nan
    index, offsets = np.array([1, 0, 3, 3, 1, 4, 2, 3]), np.array([0, 3, 6])
    mine, theirs = (t.nn.functional.embedding_bag(t.tensor(index), t.tensor(table), t.tensor(offsets), mode="max").numpy() for t in (autograd_nb, torch))
    np.testing.assert_array_equal(mine, theirs)


@pytest.mark.parametrize("shape", [(), (5,), (3, 4), (2, 0, 3), (2, 3, 4)], ids=str)
@pytest.mark.parametrize("dtype", ["bool", "float32", "int64", "complex64"])
def test_places_of_a_number_that_is_given(shape, dtype):
    x = (numbers(0, *shape) > 0).astype(dtype) if shape else np.array(1, dtype)
    for size, options in itertools.product((0, 1, 3, 50), ({}, {"fill_value": 7})):
        mine, theirs = (t.nonzero_static(t.tensor(x), size=size, **options) for t in (autograd_nb, torch))
        assert (mine.tolist(), tuple(mine.shape), mine.stride()) == (theirs.tolist(), tuple(theirs.shape), theirs.stride())


def test_compiled_functions_hold_places_of_a_number_that_is_given():
    compiled = autograd_nb.compile(lambda x: autograd_nb.nonzero_static(x, size=4).sum() + x.sum(), check=True)
    assert [compiled(autograd_nb.tensor([0.0, 1, k, 0])).item() for k in range(4)] == [-1.0, 3.0, 4.0, 5.0]
    assert "Program of" in str(compiled.programs)


@pytest.mark.parametrize("queries", [1, 2, 3, 9])
@pytest.mark.parametrize("keys, width, value_width", [(1, 3, 2), (17, 16, 70), (40, 33, 16), (300, 5, 131)])
@pytest.mark.parametrize("kind", ["plain", "causal", "mask", "turned"])
def test_attention_of_few_queries(queries, keys, width, value_width, kind):
    def f(t, q, k, v):
        options = {"is_causal": kind == "causal"}
        if kind == "mask":
            options["attn_mask"] = t.tensor(numbers(3, queries, keys) > -1)
        if kind == "turned":
            q, k, v = (x.transpose(1, 2) for x in (q, k, v))
        return t.nn.functional.scaled_dot_product_attention(q, k, v, **options)

    heads = (lambda rows, w: (2, rows, 3, w)) if kind == "turned" else (lambda rows, w: (2, 3, rows, w))
    arrays = numbers(0, *heads(queries, width)), numbers(1, *heads(keys, width)), numbers(2, *heads(keys, value_width))
    agree(f, *arrays)
    mine, theirs = (f(t, *(t.tensor(a, dtype=t.float32) for a in arrays)).numpy() for t in (autograd_nb, torch))
    np.testing.assert_allclose(mine, theirs, rtol=2e-5, atol=2e-5)
