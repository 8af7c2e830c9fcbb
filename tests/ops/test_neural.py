"""Resizing, sampling, windows, attention, CTC and bags: against definitions by loops, and derivatives against differences."""

import itertools
import math
import os
import subprocess
import sys

import numpy as np
import pytest

import autograd_nb as torch
import autograd_nb.nn.functional as F
from autograd_nb.launch import Kernel

pytestmark = pytest.mark.slow  # many kernels

RNG = np.random.default_rng(0)


def leaf(*shape, scale=1.0):
    return torch.tensor(RNG.normal(size=shape) * scale, requires_grad=True)


def check(f, *inputs):
    assert torch.autograd.gradcheck(f, inputs)
    assert torch.autograd.gradgradcheck(f, inputs)


# ------------------------------------------------------------------------------------------------ interpolate


def test_nearest_and_linear_by_hand():
    x = torch.tensor([[[1.0, 2.0, 4.0]]])
    assert F.interpolate(x, size=6).tolist() == [[[1, 1, 2, 2, 4, 4]]]
    assert F.interpolate(x, size=5, mode="linear", align_corners=True).tolist() == [[[1, 1.5, 2, 3, 4]]]
    assert F.interpolate(x, scale_factor=2, mode="linear").tolist() == [[[1, 1.25, 1.75, 2.5, 3.5, 4]]]
    assert F.interpolate(x, size=2).tolist() == [[[1, 2]]]
    assert F.interpolate(x, size=2, mode="nearest-exact").tolist() == [[[1, 4]]]
    assert F.interpolate(torch.tensor([[[3, 9]]], dtype=torch.uint8), size=4).tolist() == [[[3, 3, 9, 9]]]


@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
@pytest.mark.parametrize("antialias", [False, True])
def test_resizing_keeps_constants_and_is_linear(mode, antialias):
    resize = lambda x: F.interpolate(x, size=(3, 7), mode=mode, antialias=antialias)
    assert torch.allclose(resize(torch.ones(1, 2, 5, 4)), torch.ones(1, 2, 3, 7))
    check(resize, leaf(1, 1, 5, 4))


@pytest.mark.parametrize(
    ("mode", "shape", "size"), [("nearest", (2, 3, 2, 3), (4, 5)), ("trilinear", (1, 2, 2, 3, 2), (3, 2, 4))]
)
def test_transposed_resizing_is_the_derivative(mode, shape, size):
    x = leaf(*shape)
    y = F.interpolate(x, size=size, mode=mode)
    w = torch.tensor(RNG.normal(size=tuple(y.shape)))
    (g,) = torch.autograd.grad(y, x, w)
    assert math.isclose((g * x).sum().item(), (w * y).sum().item(), rel_tol=1e-9)  # ⟨Aᵀw, x⟩ = ⟨w, Ax⟩


#: name -> (arguments after the image, options, error, its text)
REFUSED_SIZES = {
    "size and scale": ((2, 2), {}, ValueError, "only one of size or scale_factor"),
    "corners without lines between": ((2,), {"align_corners": True}, ValueError, "align_corners option can only be set"),
    "lines of an image": ((2,), {"mode": "linear"}, NotImplementedError, "needs 3D input"),
    "size 0": (((0, 2),), {}, RuntimeError, "greater than 0"),
    "antialias of the nearest": ((2,), {"antialias": True}, ValueError, "Anti-alias"),
}


@pytest.mark.parametrize("case", REFUSED_SIZES)
def test_wrong_sizes_and_modes_of_interpolate_are_refused(case):
    args, options, error, text = REFUSED_SIZES[case]
    with pytest.raises(error, match=text):
        F.interpolate(torch.zeros(1, 1, 4, 4), *args, **options)


# -------------------------------------------------------------------------------------------------------- grid


def test_grid_sample_of_the_identity_grid_is_the_image():
    x = torch.tensor(RNG.normal(size=(2, 3, 4, 5)))
    theta = torch.tensor([[[1.0, 0, 0], [0, 1, 0]]] * 2, dtype=torch.float64)
    for aligned in (False, True):
        grid = F.affine_grid(theta, (2, 3, 4, 5), aligned)
        for mode in ("bilinear", "nearest", "bicubic"):
            assert torch.allclose(F.grid_sample(x, grid, mode, align_corners=aligned), x)


@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
def test_grid_sample_derivatives(mode, padding):
    grid = torch.tensor(RNG.uniform(-1.4, 1.4, size=(1, 3, 2, 2)), requires_grad=True)
    check(lambda x, g: F.grid_sample(x, g, mode, padding, align_corners=False), leaf(1, 2, 3, 4), grid)


def test_grid_sample_outside_and_nan():
    x = torch.ones(1, 1, 2, 2)
    grid = torch.tensor([[[[5.0, 0.0], [float("nan"), 0.0], [1e30, -1e30]]]])
    y = F.grid_sample(x, grid, align_corners=False).numpy()
    np.testing.assert_array_equal(y, [[[[0, np.nan, 0]]]])  # a place that is nowhere has weights of nan
    assert F.grid_sample(x, grid, "nearest", align_corners=False).tolist() == [[[[0, 0, 0]]]]
    assert F.grid_sample(x, grid, padding_mode="border", align_corners=False).tolist() == [[[[1, 1, 1]]]]
    with pytest.raises(RuntimeError, match="same batch size"):
        F.grid_sample(x, torch.zeros(2, 1, 1, 2), align_corners=False)


# ------------------------------------------------------------------------------------------------- fold, unfold


def test_unfold_by_loops_and_fold_back():
    x = RNG.normal(size=(2, 3, 5, 4))
    y = F.unfold(torch.tensor(x), (2, 3), dilation=(2, 1), padding=1, stride=(1, 2)).numpy()
    p = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
    rows, cols = range(7 - 2), range(0, 6 - 2, 2)
    expected = np.stack([p[:, :, i : i + 3 : 2, j : j + 3].reshape(2, -1) for i, j in itertools.product(rows, cols)], -1)
    np.testing.assert_array_equal(y, expected)
    ones = F.fold(F.unfold(torch.ones(1, 1, 3, 3), 2), (3, 3), 2)
    assert ones.tolist() == [[[[1, 2, 1], [2, 4, 2], [1, 2, 1]]]]
    check(lambda x: F.unfold(x, 2, stride=2, padding=1) ** 2, leaf(1, 2, 3, 3))
    check(lambda x: F.fold(x, (3, 3), 2) ** 2, leaf(8, 4))


def test_unfold_of_lines_outside_writes_only_its_own():
    x, out = np.ones(1, np.float32), np.full(9, -1, np.float32)
    # a kernel of 1×2, 10 apart, over a pixel that is padded by 5 on both sides: one place, from which nothing is seen
    Kernel("nn.fold", "unfold")(torch.float32, 1, 1, (1, 1, 1, 1, 1, 1, 1, 1, 2, 1, 1, 1, 0, 0, 5, 1, 1, 10), x, out)
    assert out.tolist() == [0, 0, *[-1] * 7]


def test_fold_refuses():
    with pytest.raises(RuntimeError, match="sliding blocks"):
        F.fold(torch.zeros(1, 4, 5), (3, 3), 2)
    with pytest.raises(RuntimeError, match="divisible by the product"):
        F.fold(torch.zeros(1, 5, 4), (3, 3), 2)
    with pytest.raises(RuntimeError, match="at least one"):
        F.unfold(torch.zeros(1, 1, 2, 2), 3)


# --------------------------------------------------------------------------------------------------- attention


def attend(q, k, v, mask=None, scale=None):
    s = q @ k.mT * (q.shape[-1] ** -0.5 if scale is None else scale)
    return torch.softmax(s if mask is None else s + mask, -1) @ v


@pytest.mark.parametrize("keys", [2041, 2048, 2056, 2060, 4104])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_attention_to_more_keys_than_there_is_room_for(keys, dtype):
    """The softmax works on whole lines of the cache, beyond its last score: nothing else may lie there."""
    q, k, v = (torch.tensor(RNG.normal(size=s)).to(dtype) for s in ((2, 7, 4), (2, keys, 4), (2, keys, 3)))
    assert torch.allclose(F.scaled_dot_product_attention(q, k, v), attend(q, k, v), atol=1e-5)
    q.requires_grad_()
    (found,), (expected,) = (torch.autograd.grad(f(q, k, v).sum(), q) for f in (F.scaled_dot_product_attention, attend))
    assert torch.allclose(found, expected, atol=1e-5)


def test_attention_without_a_compiler():
    code = "import autograd_nb as t; q = t.ones(2, 3, 4); assert (t.nn.functional.scaled_dot_product_attention(q, q, q) - 1).abs().max() < 1e-5"
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1", "NUMBA_BOUNDSCHECK": "0"}
    subprocess.run([sys.executable, "-c", code], env=environment, check=True)


@pytest.mark.parametrize(
    "shape",
    [
        ((3, 2), (5, 2), (5, 4)),
        ((2, 3, 70, 4), (2, 3, 70, 4), (2, 3, 70, 2)),
        ((80, 2), (70, 2), (70, 3)),  # queries that see all
        ((300, 2), (300, 2), (300, 33)),  # rows that go through the softmax one by one
    ],
)
@pytest.mark.parametrize("kind", ["none", "float", "bool", "causal"])
def test_attention_is_its_definition(shape, kind):
    q, k, v = (leaf(*s) for s in shape)
    n, m = q.shape[-2], k.shape[-2]
    mask, given, causal = None, None, kind == "causal"
    if kind == "float":
        mask = given = torch.tensor(RNG.normal(size=(n, m)))
    elif kind != "none":
        seen = np.tril(np.ones((n, m), bool))
        mask = torch.tensor(np.where(seen, 0.0, -np.inf))
        given = None if causal else torch.tensor(seen)
    y, expected = F.scaled_dot_product_attention(q, k, v, given, is_causal=causal), attend(q, k, v, mask)
    assert torch.allclose(y, expected)
    with torch.no_grad():
        assert torch.allclose(F.scaled_dot_product_attention(q, k, v, given, is_causal=causal), expected)
    for a, b in zip(
        torch.autograd.grad((y**2).sum(), (q, k, v)), torch.autograd.grad((expected**2).sum(), (q, k, v)), strict=True
    ):
        assert torch.allclose(a, b)


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
def test_attention_reads_any_strides_and_its_result_lies_as_the_queries(order):
    back = [order.index(d) for d in range(3)]
    q, k, v = (leaf(*[(2, 3, 70)[d] for d in order], 4).permute(*back, 3) for _ in range(3))
    y, dense = (F.scaled_dot_product_attention(*ts, is_causal=True) for ts in ((q, k, v), [t.contiguous() for t in (q, k, v)]))
    assert y.stride() == q.stride() and y.equal(dense)
    g = torch.tensor(RNG.normal(size=(4, 70, 3, 2))).permute(3, 2, 1, 0)
    for t, expected in zip(torch.autograd.grad(y, (q, k, v), g), torch.autograd.grad(dense, (q, k, v), g), strict=True):
        assert t.equal(expected) and t.stride() == q.stride()


def test_attention_where_no_strides_tell_of_rows():
    x = leaf(2, 5, 3, 2, 4)
    turned, folded = x.mT, x.permute(2, 1, 0, 3, 4)
    for t in (turned, folded, x[:, :1].expand(2, 5, 3, 2, 4), x.detach()[..., ::2]):
        assert F.scaled_dot_product_attention(t, t, t).equal(F.scaled_dot_product_attention(*[t.contiguous()] * 3))
    check(lambda x: F.scaled_dot_product_attention(x.mT, x.mT, x.mT), leaf(1, 2, 2, 3))


def test_attention_derivatives():
    check(F.scaled_dot_product_attention, leaf(2, 3, 2), leaf(2, 4, 2), leaf(2, 4, 2), leaf(3, 4))
    check(lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True), leaf(3, 2), leaf(3, 2), leaf(3, 2))


def test_rows_that_see_nothing_are_zero_and_have_no_gradient():
    q = leaf(2, 3)
    mask = torch.tensor([[True, False], [False, False]])
    y = F.scaled_dot_product_attention(q, q, q, mask)
    assert y[1].tolist() == [0, 0, 0]
    y.sum().backward()
    assert torch.isfinite(q.grad).all()


def test_shared_heads_and_dropout():
    q, k = leaf(1, 4, 3, 2), leaf(1, 2, 5, 2)
    y = F.scaled_dot_product_attention(q, k, k, enable_gqa=True)
    assert torch.allclose(y, attend(q, *[k.repeat_interleave(2, 1)] * 2))
    assert (
        F.scaled_dot_product_attention(q, k.repeat_interleave(2, 1), q[..., :1, :].expand(1, 4, 5, 2), dropout_p=1.0)
        .abs()
        .max()
        == 0
    )
    with pytest.raises(RuntimeError, match="same dtype"):
        F.scaled_dot_product_attention(q, q.float(), q)


# --------------------------------------------------------------------------------------------------------- ctc


def all_paths(probs, target, blank):
    """−ln of the sum over every path that collapses to the target."""
    total = 0.0
    for path in itertools.product(range(probs.shape[1]), repeat=probs.shape[0]):
        labels = [c for c, _ in itertools.groupby(path) if c != blank]
        if labels == list(target):
            total += math.prod(probs[t, c] for t, c in enumerate(path))
    return -math.log(total)


@pytest.mark.parametrize("target", [(1, 2), (1, 1), (2,), ()])
def test_ctc_is_the_sum_over_paths(target):
    x = leaf(4, 3)
    loss = lambda x: F.ctc_loss(
        x.log_softmax(-1), torch.tensor(target, dtype=torch.int64), (4,), (len(target),), reduction="sum"
    )
    assert math.isclose(loss(x).item(), all_paths(x.softmax(-1).detach().numpy(), target, 0), rel_tol=1e-9)
    assert torch.autograd.gradcheck(loss, (x,))


def test_ctc_impossible_targets_and_errors():
    x = torch.zeros(2, 1, 3, requires_grad=True)
    args = (torch.tensor([[1, 1]]), (2,), (2,))
    assert F.ctc_loss(x.log_softmax(2), *args).item() == math.inf
    loss = F.ctc_loss(x.log_softmax(2), *args, zero_infinity=True)
    loss.backward()
    assert loss.item() == 0 and not x.grad.any()
    with pytest.raises(RuntimeError, match="targets must be in"):
        F.ctc_loss(x, torch.tensor([[1, 3]]), (2,), (2,))
    with pytest.raises(RuntimeError, match="input_lengths"):
        F.ctc_loss(x, torch.tensor([[1, 2]]), (3,), (2,))
    with pytest.raises(RuntimeError, match="blank must be in label range"):
        F.ctc_loss(x, torch.tensor([[1, 2]]), (2,), (2,), blank=3)


# -------------------------------------------------------------------------------------------------------- bags


def test_bags_by_hand():
    w = torch.tensor([[1.0, 2.0], [3.0, 5.0], [7.0, 0.0]])
    x, offsets = torch.tensor([0, 1, 2, 2]), torch.tensor([0, 2, 2])
    assert F.embedding_bag(x, w, offsets, mode="sum").tolist() == [[4, 7], [0, 0], [14, 0]]
    assert F.embedding_bag(x, w, offsets, mode="mean").tolist() == [[2, 3.5], [0, 0], [7, 0]]
    assert F.embedding_bag(x, w, offsets, mode="max").tolist() == [[3, 5], [0, 0], [7, 0]]
    assert F.embedding_bag(x, w, offsets, mode="mean", padding_idx=0).tolist() == [[3, 5], [0, 0], [7, 0]]
    assert F.embedding_bag(x, w, torch.tensor([0, 3, 4]), mode="sum", include_last_offset=True).tolist() == [[11, 7], [7, 0]]
    assert F.embedding_bag(torch.tensor([[0, 1]]), w, mode="sum", per_sample_weights=torch.tensor([[2.0, -1.0]])).tolist() == [
        [-1, -1]
    ]


def test_bags_derivatives_and_errors():
    x, offsets = torch.tensor([0, 2, 2, 1, 0]), torch.tensor([0, 3])
    check(lambda w, s: F.embedding_bag(x, w, offsets, mode="sum", per_sample_weights=s), leaf(3, 2), leaf(5))
    check(lambda w: F.embedding_bag(x, w, offsets) ** 2, leaf(3, 2))
    check(lambda w: F.embedding_bag(x, w, offsets, mode="max") ** 2, leaf(3, 2))
    w = torch.zeros(3, 2)
    with pytest.raises(RuntimeError, match="Expected idx >= 0 && idx < num_embeddings but found idx to be 3"):  # (PyTorch's type and words)
        F.embedding_bag(torch.tensor([[3]]), w)
    with pytest.raises(RuntimeError, match="offsets\\[-1\\]"):
        F.embedding_bag(x, w, torch.tensor([0, 6]))
    with pytest.raises(NotImplementedError, match="per_sample_weights"):
        F.embedding_bag(x, w, offsets, per_sample_weights=torch.ones(5))


# ------------------------------------------------------------------------------------------------------ others


def test_fractional_pooling_takes_maxima_of_its_windows():
    x = leaf(1, 1, 5, 5)
    samples = torch.full((1, 1, 2), 0.5, dtype=torch.float64)
    y, index = F.fractional_max_pool2d(x, 2, output_size=3, return_indices=True, _random_samples=samples)
    starts = [int((i + 0.5) * 1.5) - int(0.5 * 1.5) for i in range(2)] + [3]
    expected = [[x[0, 0, i : i + 2, j : j + 2].max().item() for j in starts] for i in starts]
    assert y[0, 0].tolist() == expected
    assert x.flatten()[index.flatten()].tolist() == y.flatten().tolist()
    with pytest.raises(RuntimeError, match="too large relative to input"):
        F.fractional_max_pool2d(x, 3, output_size=4)


def test_gumbel_softmax():
    logits = torch.zeros(500, 3, requires_grad=True)
    y = F.gumbel_softmax(logits, hard=True)
    assert ((y > 0.5).sum(1) == 1).all()
    assert 100 < y[:, 0].sum().item() < 240
    y[:, 0].sum().backward()
    assert logits.grad.abs().max() > 0


def test_linear_cross_entropy_is_both():
    x, w = leaf(4, 3), leaf(5, 3)
    t = torch.tensor([0, 4, 2, 1])
    assert torch.equal(F.linear_cross_entropy(x, w, t), F.cross_entropy(F.linear(x, w), t))
    with pytest.raises(RuntimeError, match="in_features"):
        F.linear_cross_entropy(x, leaf(5, 2), t)


def test_adaptive_softmax_sums_to_one():
    m = torch.nn.AdaptiveLogSoftmaxWithLoss(8, 12, [3, 7], div_value=2.0)
    x = torch.randn(6, 8)
    t = torch.tensor([0, 2, 3, 6, 7, 11])
    everything = m.log_prob(x)
    assert torch.allclose(everything.exp().sum(1), torch.ones(6))
    out = m(x, t)
    assert torch.allclose(out.output, everything.gather(1, t.unsqueeze(1)).squeeze(1))
    assert torch.allclose(out.loss, -out.output.mean())
    assert m.predict(x).tolist() == everything.argmax(1).tolist()
    with pytest.raises(RuntimeError, match="Target values should be in"):
        m(x, t + 1)


def test_max_pool_against_a_loop_over_windows():
    rng = np.random.default_rng(8)
    x = rng.normal(size=(2, 3, 11, 13)).round()
    x.flat[::17], x.flat[3:9] = np.nan, -np.inf
    for k, s, p, d in (((2, 2), 2, 0, 1), ((3, 3), 2, 1, 1), ((3, 2), 1, 1, 2), ((2, 3), 3, 1, 1), ((1, 2), 4, 0, 1)):
        y, index = F.max_pool2d(torch.tensor(x), k, s, p, d, return_indices=True)
        for n, c, i, j in np.ndindex(y.shape):
            best, place = None, -1
            for a, b in np.ndindex(k):
                r, q = i * s - p + a * d, j * s - p + b * d
                if 0 <= r < 11 and 0 <= q < 13:
                    v = x[n, c, r, q]
                    if best is None or v > best or v != v:
                        best, place = v, r * 13 + q
            assert index[n, c, i, j] == place
            np.testing.assert_equal(y[n, c, i, j].item(), best)


def test_halves_of_windows_with_ceil_mode():
    x = torch.arange(27.0).view(1, 1, 3, 9).clone().requires_grad_()
    y = torch.nn.functional.max_pool2d(x, 2, ceil_mode=True)
    assert y.flatten().tolist() == [10, 12, 14, 16, 17, 19, 21, 23, 25, 26]
    y.sum().backward()
    assert x.grad.flatten().nonzero().flatten().tolist() == [10, 12, 14, 16, 17, 19, 21, 23, 25, 26]


def test_corners_that_are_not_given():
    """They are not aligned, which is said once more to those who remember that they were."""
    x = torch.arange(16.0).reshape(1, 1, 4, 4)
    theta = torch.tensor([[[0.5, 0.0, 0.2], [0.0, 0.7, 0.0]]])
    with pytest.warns(UserWarning, match="align_corners=False"):
        found = F.grid_sample(x, F.affine_grid(theta, (1, 1, 3, 3)))
    wanted = F.grid_sample(x, F.affine_grid(theta, (1, 1, 3, 3), align_corners=False), align_corners=False)
    assert found.tolist() == wanted.tolist()
