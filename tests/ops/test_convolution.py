"""Convolutions of many shapes against sums of shifted images, and their gradients by what defines them: as adjoints."""

from __future__ import annotations

import itertools
import subprocess
import sys

import numpy as np
import pytest

import autograd_nb as torch
from autograd_nb.nn import functional as F

pytestmark = pytest.mark.slow  # many kernels

#: input, weight and options; sizes around those of tiles, vectors and blocks, and across them
CASES = {
    "one element": ((1, 1, 1, 1), (1, 1, 1, 1), {}),
    "same 8 × 8": ((3, 5, 8, 8), (9, 5, 3, 3), {"padding": 1}),
    "same 14 × 13": ((2, 3, 14, 13), (16, 3, 3, 5), {"padding": (1, 2)}),
    "valid 11 × 9": ((2, 3, 11, 9), (7, 3, 4, 2), {}),
    "many channels": ((2, 130, 9, 8), (10, 130, 3, 3), {"padding": 1}),
    "more lines than a block": ((1, 40, 50, 41), (6, 40, 3, 3), {"padding": 1}),
    "more images than a block": ((40, 4, 7, 7), (5, 4, 3, 3), {"padding": 1}),
    "small images": ((70, 4, 4, 4), (9, 4, 3, 3), {"padding": 1}),
    "small images, stride 3 and 2": ((70, 3, 6, 9), (5, 3, 3, 3), {"padding": 1, "stride": (3, 2)}),
    "small volumes in groups": ((20, 4, 3, 2, 4), (6, 2, 2, 2, 3), {"padding": 1, "groups": 2}),
    "one output": ((300, 5, 3, 3), (9, 5, 3, 3), {}),
    "stride 2": ((2, 4, 15, 16), (6, 4, 3, 3), {"stride": 2, "padding": 1}),
    "stride 3, kernel 2": ((2, 3, 17, 16), (4, 3, 2, 2), {"stride": 3}),
    "stride 2 and 3, dilation 3 and 2": (
        (2, 3, 19, 23),
        (4, 3, 3, 4),
        {"stride": (2, 3), "dilation": (3, 2), "padding": (2, 3)},
    ),
    "stride past the kernel": ((2, 3, 17, 16), (4, 3, 1, 1), {"stride": (4, 3)}),
    "stride past the image": ((2, 3, 1, 5), (4, 3, 3, 2), {"stride": 4, "padding": (1, 0)}),
    "dilation 2": ((2, 3, 12, 12), (4, 3, 3, 3), {"dilation": 2, "padding": 2}),
    "groups": ((2, 6, 10, 9), (9, 2, 3, 3), {"groups": 3, "padding": 1}),
    "borders wider than the kernel": ((2, 2, 3, 2), (3, 2, 2, 3), {"padding": 4}),
    "kernel wider than a line": ((2, 2, 4, 3), (3, 2, 7, 9), {"padding": (3, 4)}),
    "one line": ((2, 3, 70), (5, 3, 4), {"padding": 2}),
    "one line, stride 3": ((2, 3, 70), (5, 3, 4), {"stride": 3, "padding": 2, "dilation": 2}),
    "a long line, stride 1": ((2, 3, 131), (9, 3, 5), {"padding": 2}),
    "a long line, stride 2": ((3, 2, 200), (5, 2, 6), {"stride": 2, "padding": 3}),
    "a long line, stride 3, dilation 2, groups": ((2, 4, 257), (6, 2, 7), {"stride": 3, "padding": 5, "dilation": 2, "groups": 2}),
    "a long line, many channels": ((2, 330, 67), (5, 330, 3), {"padding": 1}),
    "a long line, a long kernel": ((2, 1, 900), (11, 1, 130), {"stride": 10, "padding": 7}),
    "windows of single channels": ((3, 1, 23, 31), (5, 1, 5, 6), {"stride": (3, 4), "padding": (1, 2)}),
    "windows of a line, past its end": ((2, 2, 107), (4, 1, 20), {"stride": 40, "groups": 2}),
    "windows of many steps": ((1, 9, 30, 30), (4, 9, 7, 7), {"stride": 7, "padding": 3}),
    "pixels": ((3, 9, 9, 11), (5, 9, 1, 1), {}),
    "pixels, few channels": ((2, 2, 9, 11), (5, 2, 1, 1), {}),
    "pixels, one output": ((3, 10, 8, 9), (1, 10, 1, 1), {}),
    "pixels, more weights than a block": ((5, 300, 70), (310, 300, 1), {}),
    "volume": ((2, 3, 5, 6, 7), (4, 3, 2, 3, 3), {"padding": 1}),
    "volume, strides": ((2, 3, 7, 8, 9), (4, 3, 3, 2, 3), {"stride": (2, 3, 2), "padding": (1, 0, 2), "dilation": (1, 2, 1)}),
    "by planes": ((2, 8, 19, 28), (8, 1, 3, 3), {"groups": 8, "padding": 1}),
    "by planes, two outputs each, strides": ((2, 4, 13, 11), (8, 1, 3, 5), {"groups": 4, "stride": (2, 1), "padding": (1, 2)}),
    "by planes, stride 2, dilation 2": ((2, 3, 20, 17), (3, 1, 5, 5), {"groups": 3, "stride": 2, "padding": 2, "dilation": 2}),
    "by planes, stride past the kernel": ((1, 2, 9, 9), (2, 1, 1, 1), {"groups": 2, "stride": (4, 3)}),
    "by planes, borders wider than the kernel": ((2, 2, 3, 2), (2, 1, 2, 3), {"groups": 2, "padding": 4}),
    "by planes, a line": ((2, 6, 30), (6, 1, 4), {"groups": 6, "stride": 3, "padding": 2, "dilation": 2}),
    "by planes, a volume": ((2, 2, 7, 9, 8), (2, 1, 3, 2, 3), {"groups": 2, "stride": (2, 1, 2), "padding": (1, 0, 1)}),
    "few positions": ((3, 20, 4, 5), (41, 20, 3, 3), {"padding": 1}),
    "few positions, more than a block of terms": ((5, 3, 8, 8), (44, 3, 3, 3), {"padding": 1}),
    "few positions, more channels than a block": ((1, 500, 14, 14), (20, 500, 3, 3), {}),
    "few positions, groups and strides": ((4, 8, 7, 9), (48, 4, 3, 2), {"groups": 2, "stride": (2, 3), "dilation": (1, 2)}),
    "few positions, one depth": ((2, 3, 2, 5, 4), (20, 3, 2, 3, 3), {}),
    "no images": ((0, 2, 5, 5), (3, 2, 2, 2), {}),
    "shared by threads": ((9, 16, 24, 24), (24, 16, 3, 3), {"padding": 1}),
}


def of_dims(value: int | tuple, n: int) -> tuple:
    return (value,) * n if isinstance(value, int) else value


def reference(x: np.ndarray, w: np.ndarray, stride=1, padding=0, dilation=1, groups=1) -> np.ndarray:
    n = x.ndim - 2
    s, p, d = of_dims(stride, n), of_dims(padding, n), of_dims(dilation, n)
    x = np.pad(x, [(0, 0), (0, 0), *((q, q) for q in p)])
    sizes = [(m - dd * (k - 1) - 1) // ss + 1 for m, k, ss, dd in zip(x.shape[2:], w.shape[2:], s, d, strict=True)]
    x = x.reshape(x.shape[0], groups, w.shape[1], *x.shape[2:])
    w = w.reshape(groups, w.shape[0] // groups, *w.shape[1:])
    y = np.zeros((x.shape[0], groups, w.shape[1], *sizes))
    for tap in itertools.product(*map(range, w.shape[3:])):
        seen = tuple(slice(t * dd, t * dd + ss * (m - 1) + 1, ss) for t, dd, ss, m in zip(tap, d, s, sizes, strict=True))
        y += np.einsum("ngc...,gkc->ngk...", x[(..., *seen)], w[(slice(None),) * 3 + tap])
    return y.reshape(x.shape[0], groups * w.shape[1], *sizes)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("name", CASES)
def test_convolution(name, dtype):
    x_shape, w_shape, options = CASES[name]
    rng = np.random.default_rng(0)
    x, w, b = rng.standard_normal(x_shape), rng.standard_normal(w_shape), rng.standard_normal(w_shape[0])
    conv = getattr(F, f"conv{len(x_shape) - 2}d")
    tx, tw, tb = (torch.tensor(a, dtype=dtype, requires_grad=True) for a in (x, w, b))
    y = conv(tx, tw, tb, **options)
    wanted = reference(x, w, **options) + b.reshape(-1, *(1,) * (x.ndim - 2))
    bound = (1e-4 if dtype is torch.float32 else 1e-12) * max(1, np.abs(wanted).max(initial=0))
    assert y.shape == wanted.shape and np.abs(y.detach().numpy() - wanted).max(initial=0) < bound
    # ⟨g, conv(u, w)⟩ = ⟨by_input(g, w), u⟩ for every u, and so for w
    g, u, v = rng.standard_normal(wanted.shape), rng.standard_normal(x_shape), rng.standard_normal(w_shape)
    dx, dw, db = torch.autograd.grad(y, (tx, tw, tb), torch.tensor(g, dtype=dtype))
    scale = bound * max(1, np.sqrt(wanted.size * max(1, w[:1].size)))
    assert abs((dx.numpy() * u).sum() - (g * reference(u, w, **options)).sum()) < scale
    assert abs((dw.numpy() * v).sum() - (g * reference(x, v, **options)).sum()) < scale
    assert np.abs(db.numpy() - g.sum((0, *range(2, g.ndim)))).max() < scale


def test_values_that_are_not_numbers_stay_where_they_are():
    x = torch.randn(1, 2, 9, 9)
    x[0, 1, 4, 4] = float("nan")
    seen = F.conv2d(x, torch.randn(3, 2, 3, 3), padding=1).isnan()
    wanted = torch.zeros(1, 3, 9, 9, dtype=torch.bool)
    wanted[:, :, 3:6, 3:6] = True
    assert torch.equal(seen, wanted)
    w = torch.randn(3, 2, 3, 3, requires_grad=True)
    g = torch.zeros(1, 3, 9, 9)
    g[0, 1, 8, 8] = float("inf")  # the last output, behind which a vector ends
    (dw,) = torch.autograd.grad(F.conv2d(torch.ones(1, 2, 9, 9), w, padding=1), w, g)
    assert dw.isfinite().all(dim=(1, 2, 3)).tolist() == [True, False, True]


PYTHON = """
import numpy as np
import autograd_nb as torch
x, w = torch.arange(1., 41.).reshape(1, 2, 4, 5), torch.arange(1., 13.).reshape(1, 2, 3, 2).requires_grad_()
y = torch.nn.functional.conv2d(x, w, padding=1)
y.sum().backward()
print(y.sum().item(), w.grad.sum().item())
"""


def test_in_python():
    """The same without a compiler."""
    import os

    run = [
        subprocess.run(
            [sys.executable, "-c", PYTHON], env={**os.environ, "NUMBA_DISABLE_JIT": flag}, capture_output=True, text=True
        )
        for flag in "01"
    ]
    assert run[0].stdout == run[1].stdout != "", run[1].stderr
