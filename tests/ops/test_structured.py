"""Structured ops, a line each: value against NumPy or SciPy where there is one, first and second derivative by differences."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.signal as signal
import scipy.special as special

import autograd_nb as torch
from autograd_nb.autograd import gradcheck, gradgradcheck
from autograd_nb.nn import functional as F


def array(*shape: int, seed: int = 0, low: float = -1, high: float = 1) -> np.ndarray:
    rng = np.random.default_rng([seed, *shape])
    n = int(np.prod(shape))
    return (low + (high - low) * (rng.permutation(n) + rng.uniform(0.3, 0.7, n)) / max(n, 1)).reshape(shape)


def conv_reference(x, w, b):
    out = [[sum(signal.correlate2d(i, k, "valid") for i, k in zip(image, kernel)) for kernel in w] for image in x]
    return np.array(out) + b[:, None, None]


def windows(x: np.ndarray, k: int) -> np.ndarray:
    n, c, h, w = x.shape
    return x[:, :, : h // k * k, : w // k * k].reshape(n, c, h // k, k, w // k, k)


A, B3, M, V = array(3, 4), array(2, 3, 4), array(4, 5, seed=1), array(4, seed=2)
X, W, BIAS = array(2, 2, 5, 6), array(3, 2, 3, 2, seed=1), array(3, seed=2)
CLASSES = torch.tensor([1, 0, 3])
INDEX = torch.tensor([[0, 2, 1, 0], [1, 1, 0, 2]])
MASK = torch.tensor([[True, False, True, False]] * 3)
POSITIVE = array(3, 4, low=0.3, high=2.0)

#: name -> (function of tensors, arrays, the same in NumPy or None)
CASES = {
    "sum": (lambda x: x.sum(), [A], np.sum),
    "sum dim": (lambda x: x.sum(1), [B3], lambda x: x.sum(1)),
    "sum dims keepdim": (lambda x: x.sum((0, 2), keepdim=True), [B3], lambda x: x.sum((0, 2), keepdims=True)),
    "mean": (lambda x: x.mean((0, 1)), [B3], lambda x: x.mean((0, 1))),
    "var": (lambda x: x.var(1), [A], lambda x: x.var(1, ddof=1)),
    "var population": (lambda x: x.var((0, 2), unbiased=False), [B3], lambda x: x.var((0, 2))),
    "std": (lambda x: x.std(0), [A], lambda x: x.std(0, ddof=1)),
    "prod": (lambda x: x.prod(1), [POSITIVE], lambda x: x.prod(1)),
    "max dim": (lambda x: x.max(1).values, [A], lambda x: x.max(1)),
    "min": (lambda x: x.min(), [A], np.min),
    "amax": (lambda x: x.amax((0, 1)), [B3], lambda x: x.max((0, 1))),
    "amin": (lambda x: x.amin(0), [A], lambda x: x.min(0)),
    "logsumexp": (lambda x: x.logsumexp(1), [A], lambda x: special.logsumexp(x, 1)),
    "norm": (lambda x: x.norm(), [A], np.linalg.norm),
    "norm p": (lambda x: x.norm(3, 1), [POSITIVE], lambda x: (x**3).sum(1) ** (1 / 3)),
    "cumsum": (lambda x: x.cumsum(1), [A], lambda x: x.cumsum(1)),
    "cumprod": (lambda x: x.cumprod(0), [POSITIVE], lambda x: x.cumprod(0)),
    "softmax": (lambda x: x.softmax(1), [A], lambda x: special.softmax(x, 1)),
    "softmax first dim": (lambda x: x.softmax(0), [B3], lambda x: special.softmax(x, 0)),
    "log_softmax": (lambda x: x.log_softmax(-1), [B3], lambda x: special.log_softmax(x, -1)),
    "log_softmax middle": (lambda x: x.log_softmax(1), [B3], lambda x: special.log_softmax(x, 1)),
    "mm": (lambda a, b: a @ b, [A, M], np.matmul),
    "mm transposed": (lambda a, b: a.t() @ b.t(), [array(4, 3), array(5, 4)], lambda a, b: a.T @ b.T),
    "bmm": (torch.bmm, [B3, array(2, 4, 3)], np.matmul),
    "matmul broadcast": (torch.matmul, [array(2, 1, 3, 4), array(3, 4, 2)], np.matmul),
    "mv": (torch.mv, [A, V], np.matmul),
    "dot": (torch.dot, [V, array(4)], np.dot),
    "vector matrix": (torch.matmul, [V, M], np.matmul),
    "outer": (torch.outer, [V, array(3)], np.outer),
    "linear": (F.linear, [array(2, 3, 4), array(5, 4), array(5)], lambda x, w, b: x @ w.T + b),
    "addmm": (lambda c, a, b: torch.addmm(c, a, b, beta=0.5, alpha=2), [array(3, 5), A, M], lambda c, a, b: 0.5 * c + 2 * a @ b),
    "conv2d": (F.conv2d, [X, W, BIAS], conv_reference),
    "conv2d options": (lambda x, w: F.conv2d(x, w, stride=2, padding=1, dilation=2, groups=2), [X, array(4, 1, 2, 2)], None),
    "conv1d": (lambda x, w: F.conv1d(x, w, padding=1), [array(2, 2, 6), array(3, 2, 3)], None),
    "conv3d": (lambda x, w: F.conv3d(x, w), [array(1, 1, 3, 3, 3), array(2, 1, 2, 2, 2)], None),
    "conv_transpose2d": (lambda x, w: F.conv_transpose2d(x, w, stride=2, output_padding=1), [array(1, 2, 2, 3), array(2, 2, 2, 2)], None),
    "max_pool2d": (lambda x: F.max_pool2d(x, 2), [X], lambda x: windows(x, 2).max((3, 5))),
    "max_pool2d overlapping": (lambda x: F.max_pool2d(x, 3, 2, 1), [X], None),
    "avg_pool2d": (lambda x: F.avg_pool2d(x, 2), [X], lambda x: windows(x, 2).mean((3, 5))),
    "avg_pool2d padded": (lambda x: F.avg_pool2d(x, 3, 2, 1, ceil_mode=True, count_include_pad=False), [X], None),
    "adaptive_avg_pool2d": (lambda x: F.adaptive_avg_pool2d(x, (2, 4)), [X], None),
    "reshape": (lambda x: x.reshape(6, 4), [B3], lambda x: x.reshape(6, 4)),
    "reshape transposed": (lambda x: x.transpose(0, 2).reshape(-1), [B3], lambda x: x.swapaxes(0, 2).reshape(-1)),
    "permute": (lambda x: x.permute(2, 0, 1) * 2, [B3], lambda x: x.transpose(2, 0, 1) * 2),
    "expand": (lambda x: x.expand(2, 3, 4) * 1, [array(3, 1)], lambda x: np.broadcast_to(x, (2, 3, 4))),
    "squeeze unsqueeze": (lambda x: x.unsqueeze(1).squeeze(1) * 1, [A], lambda x: x),
    "flatten": (lambda x: x.flatten(1) * 1, [B3], lambda x: x.reshape(2, -1)),
    "cat": (lambda a, b: torch.cat([a, b, a], 1), [A, array(3, 2)], lambda a, b: np.concatenate([a, b, a], 1)),
    "stack": (lambda a, b: torch.stack([a, b], 1), [A, array(3, 4, seed=5)], lambda a, b: np.stack([a, b], 1)),
    "split": (lambda x: x.split(3, 2)[0] * 2, [B3], lambda x: x[:, :, :3] * 2),
    "chunk": (lambda x: x.chunk(2, 1)[1] * 2, [B3], lambda x: x[:, 2:] * 2),
    "slice": (lambda x: x[:, 1:, ::2] * 1, [B3], lambda x: x[:, 1:, ::2]),
    "index": (lambda x: x[INDEX[0]], [A], lambda x: x[[0, 2, 1, 0]]),
    "mask": (lambda x: x[MASK], [A], lambda x: x[:, [0, 2]].reshape(-1)),
    "gather": (lambda x: x.gather(0, INDEX), [A], lambda x: np.take_along_axis(x, INDEX.numpy(), 0)),
    "index_select": (lambda x: x.index_select(1, INDEX[0]), [A], lambda x: x[:, [0, 2, 1, 0]]),
    "masked_fill": (lambda x: x.masked_fill(MASK, 0.5), [A], lambda x: np.where(MASK.numpy(), 0.5, x)),
    "where": (lambda a, b: torch.where(MASK, a, b), [A, array(3, 4, seed=7)], lambda a, b: np.where(MASK.numpy(), a, b)),
    "scatter_add": (lambda x, s: x.scatter_add(0, INDEX, s), [A, array(2, 4)], None),
    "as_strided": (lambda x: x.as_strided((3, 3), (2, 1)) * 1, [A], lambda x: np.lib.stride_tricks.as_strided(x, (3, 3), (16, 8))),
    "diagonal": (lambda x: x.diagonal(1) * 1, [A], lambda x: x.diagonal(1)),
    "pad": (lambda x: F.pad(x, (1, 2, 0, 1), value=3.0), [A], lambda x: np.pad(x, ((0, 1), (1, 2)), constant_values=3.0)),
    "pad reflect": (lambda x: F.pad(x, (2, 1), mode="reflect"), [B3], lambda x: np.pad(x, ((0, 0), (0, 0), (2, 1)), mode="reflect")),
    "sort": (lambda x: x.sort(1).values, [A], lambda x: np.sort(x, 1)),
    "clamp": (lambda x: x.clamp(-0.5, 0.4), [A], lambda x: x.clip(-0.5, 0.4)),
    "layer_norm": (lambda x, w, b: F.layer_norm(x, (4,), w, b), [A, V, array(4)], None),
    "batch_norm": (lambda x, w, b: F.batch_norm(x, None, None, w, b, training=True), [array(4, 3), array(3), array(3, seed=3)], None),
    "embedding": (lambda w: F.embedding(INDEX, w), [A], lambda w: w[INDEX.numpy()]),
    "cross_entropy": (
        lambda x: F.cross_entropy(x, CLASSES), [A],
        lambda x: -special.log_softmax(x, 1)[np.arange(3), CLASSES.numpy()].mean(),
    ),
    "cross_entropy smoothed": (lambda x: F.cross_entropy(x, CLASSES, label_smoothing=0.1, reduction="sum"), [A], None),
    "nll_loss": (lambda x: F.nll_loss(x, CLASSES), [A], lambda x: -x[np.arange(3), CLASSES.numpy()].mean()),
    "mse_loss": (F.mse_loss, [A, array(3, 4, seed=9)], lambda a, b: ((a - b) ** 2).mean()),
    "bce_with_logits": (
        F.binary_cross_entropy_with_logits, [A, array(3, 4, seed=3, low=0, high=1)],
        lambda x, t: (np.log1p(np.exp(-np.abs(x))) + np.maximum(x, 0) - x * t).mean(),
    ),
}  # fmt: skip


def leaves(arrays):
    return [torch.from_numpy(np.array(a)).requires_grad_() for a in arrays]


@pytest.mark.parametrize("name", CASES)
def test_value(name):
    function, arrays, reference = CASES[name]
    out = function(*leaves(arrays)).detach().numpy()
    assert np.isfinite(out).all()
    if reference is not None:
        np.testing.assert_allclose(out, reference(*arrays), rtol=1e-9, atol=1e-11)


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_float32_agrees_with_float64(name):
    function, arrays, _ = CASES[name]
    wide = leaves(arrays)
    narrow = [t.detach().float().requires_grad_() for t in wide]
    function(*wide).sum().backward()
    out = function(*narrow)
    assert out.dtype is torch.float32
    out.sum().backward()
    for a, b in zip(narrow, wide, strict=True):
        np.testing.assert_allclose(a.grad.numpy(), b.grad.numpy(), rtol=2e-3, atol=2e-4)


@pytest.mark.parametrize("name", CASES)
def test_derivatives(name):
    function, arrays, _ = CASES[name]
    assert gradcheck(function, leaves(arrays), atol=1e-6)
    assert gradgradcheck(function, leaves(arrays), atol=1e-5, fast_mode=True)


@pytest.mark.parametrize("name", CASES)
def test_strided_operands(name):
    """What contiguous operands give, transposed copies of them give too."""
    function, arrays, _ = CASES[name]
    if name == "as_strided":
        return  # it reads memory, which differs
    plain = leaves(arrays)
    odd = [torch.from_numpy(np.array(a).T.copy()).requires_grad_() for a in arrays]
    views = [t.permute(*range(t.ndim)[::-1]) if t.ndim else t for t in odd]
    a, b = function(*plain), function(*views)
    np.testing.assert_allclose(a.detach().numpy(), b.detach().numpy(), rtol=1e-12, atol=1e-13)
    a.sum().backward()
    b.sum().backward()
    for x, y in zip(plain, odd, strict=True):
        np.testing.assert_allclose(x.grad.numpy(), y.grad.numpy().T, rtol=1e-10, atol=1e-12)


#: name -> function of a matrix
CALLS = {
    "softmax": lambda x: torch.softmax(x, 1),
    "layer_norm": lambda x: F.layer_norm(x, (3,)),
    "linear": lambda x: F.linear(x, x),
    "cross_entropy": lambda x: F.cross_entropy(x, torch.tensor([0, 1, 2])),
    "index": lambda x: x[1],
    "view": lambda x: x.view(9),
    "where": lambda x: torch.where(x > 0, x, x),
    "cat": lambda x: torch.cat([x, x]),
    "sum": lambda x: x.sum(),
}  # fmt: skip


@pytest.mark.parametrize("name", CALLS)
def test_a_node_knows_the_users_line(name):
    call = CALLS[name]
    x = torch.ones(3, 3, requires_grad=True)
    for _ in range(3):  # the first call makes plans, the next ones go by them
        assert call(x).grad_fn.code is call.__code__
