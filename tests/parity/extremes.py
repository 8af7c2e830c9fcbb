"""Ops on the largest and least integers, and on zeros, under ``NUMBA_DISABLE_JIT=1``: ``python -m tests.parity.extremes``.

Machine code lets integers overflow and divides floats by zero without a word. Kernels that Python runs must do the same: integers are
compared with PyTorch's, and what PyTorch computes must not raise here. Of floats the signs of zeros are compared.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch

import autograd_nb as ag
from autograd_nb.ops.core.registry import OPS

from ..ops.test_observed import POINTWISE

DTYPES = ("int8", "uint8", "int16", "int32", "int64", "bool", "float32", "float64")
#: the greatest divisor is positive here; PyTorch's has the sign of the least integer, which has no absolute value
KNOWN = {"gcd"}
CALLS = """
x.sum() | x.sum(dtype=x.dtype) | m.sum(1, dtype=x.dtype) | m.sum(0, dtype=x.dtype) | x.prod() | m.prod(1, dtype=x.dtype)
x.cumsum(0, dtype=x.dtype) | m.cumsum(0, dtype=x.dtype) | x.reshape(6, 2).cumsum(1, dtype=x.dtype) | x.cumprod(0, dtype=x.dtype)
m.cumprod(0, dtype=x.dtype) | x.reshape(6, 2).cumprod(1, dtype=x.dtype) | m @ y.reshape(4, 3) | m @ y[:4] | x.dot(y)
t.bmm(x.reshape(2, 2, 3), y.reshape(2, 3, 2)) | t.addmm(z[:9].reshape(3, 3), m, y.reshape(4, 3)) | t.outer(x, y) | t.kron(x, y)
t.addr(z[:9].reshape(3, 3), x[:3], y[:3]) | t.baddbmm(z[:8].reshape(2, 2, 2), x.reshape(2, 2, 3), y.reshape(2, 3, 2), beta=2, alpha=3)
x.index_add(0, i, y[:3]) | x.index_add(0, i, y[:3], alpha=3) | x.scatter_add(0, i, y) | x.scatter_reduce(0, i, y, 'prod')
x.scatter_reduce(0, i, y, 'sum') | x.index_reduce(0, i, y[:3], 'prod') | x.index_put((i,), y[:3], accumulate=True)
x.put(i, y[:3], accumulate=True) | t.bincount(i, x[:3]) | m.trace() | x.diff() | x.mean() | x.var() | m.std(0) | x.nansum()
x.max(0) | m.amax(0) | x.argmax() | x.sort(stable=True) | x.median(0) | t.unique(x) | t.linalg.cross(x.reshape(4, 3), y.reshape(4, 3))
t.vander(x, 3) | t.matrix_power(x[:9].reshape(3, 3), 3) | t.histc(x, 4, 0, 10) | t.quantile(x, 0.5) | t.full((2,), 3, dtype=x.dtype)
x.to(t.int8) | x.to(t.int16) | x.to(t.uint8) | x.to(t.int32) | x.to(t.float32) | t.add(x, y, alpha=3) | x * 100 | x ** 3 | x // 2 | x / 0
1 / x | x % -3 | -x | x.clone().add_(y) | x.clone().mul_(100) | t.zeros_like(x).fill_(x[1]) | x.square() | t.addcmul(x, y, z, value=3)
F.conv1d(x.reshape(1, 2, 6), y.reshape(2, 2, 3)) | F.conv1d(x.reshape(1, 2, 6), y.reshape(4, 1, 3), y[:4], 2, 1, 2, groups=2)
F.conv2d(x.reshape(1, 3, 2, 2), y.reshape(1, 3, 2, 2), padding='same') | F.conv_transpose1d(x.reshape(1, 2, 6), y.reshape(2, 2, 3), y[:2], 2, 1)
F.conv3d(x.reshape(1, 1, 2, 2, 3), y[:8].reshape(1, 1, 2, 2, 2)) | F.conv_transpose2d(x.reshape(1, 3, 2, 2), y.reshape(3, 1, 2, 2), dilation=2)
F.avg_pool1d(x.reshape(1, 2, 6), 2) | F.avg_pool1d(x.reshape(1, 2, 6), 3, 2, 1, True) | F.avg_pool1d(x.reshape(1, 2, 6), 3, 2, 1, False, False)
F.avg_pool2d(x.reshape(1, 1, 3, 4), 2, 2, 1, True, False) | F.avg_pool2d(x.reshape(1, 3, 4), (2, 3), divisor_override=3)
F.avg_pool3d(x.reshape(1, 2, 2, 3), 2, 1, 1) | t.trapezoid(x, y) | t.cov(m)
m.softmax(0) | m.log_softmax(0) | m.norm(3.0) | m.renorm(2, 0, 1.0) | t.cdist(m, y.reshape(3, 4), 3.0) | t.linalg.vector_norm(x * 0, -1.0)
F.layer_norm(m * 0, [4], eps=0.0) | F.rms_norm(m * 0, [4], eps=0.0) | F.group_norm(m * 0, 2, eps=0.0) | F.normalize(m * 0, eps=0.0)
F.batch_norm(m * 0, None, None, training=True, eps=0.0) | F.cosine_similarity(m * 0, m * 0, eps=0.0) | F.smooth_l1_loss(x, y, beta=0.0)
F.cross_entropy(m, n) | F.cross_entropy(m, t.tensor([0, 1, 3]), weight=y[:4] * 0) | F.nll_loss(m, n) | F.poisson_nll_loss(x, y, full=True)
F.cross_entropy(x[:0].reshape(0, 4), n[:0]) | F.cross_entropy(m, y.reshape(3, 4), label_smoothing=0.1) | F.kl_div(x, y)
F.nll_loss(x.reshape(1, 3, 4), t.tensor([[-100] * 4])) | F.ctc_loss(x.reshape(6, 1, 2), i[:1].reshape(1, 1), i[:1] * 6, i[:1] * 0)
F.interpolate(x.reshape(1, 2, 6), size=1, mode='linear', align_corners=True) | F.embedding_bag(i, m, t.tensor([0, 0, 3]), mode='mean')
F.affine_grid(x[:6].reshape(1, 2, 3), (1, 1, 1, 1), align_corners=True) | F.local_response_norm(x.reshape(1, 3, 4), 2)
F.relu6(x) | F.relu(x) | F.hardswish(x) | F.hardtanh(x, 0, 1) | x.clamp(0, 6) | x.clamp(min=0) | x.clamp(max=0)
t.special.i1(x) | t.special.i1e(x) | t.fft.fftn(t.arange(-8.0, 0.0).reshape(2, 2, 2)).imag
t.fft.fft(t.arange(-5.0, 0.0)).imag | t.fft.fft(t.arange(-6.0, 0.0)).imag | t.fft.ifft(t.arange(-1.0, 0.0)).imag
t.fft.fft2(t.arange(-6.0, 0.0).reshape(3, 2)).imag
"""


def operand(dtype: str, k: int) -> np.ndarray:
    """The ends of a type and what lies between, in an order for each ``k``."""
    if dtype == "bool":
        found = [True, False, True, True, False, False]
    elif dtype.startswith("float"):
        found = [0.0, -0.0, np.inf, -np.inf, np.nan, 1e30, -1e30, 1e-30, 3.7, -2.5, 1.0, 0.5]
    else:
        least, most = int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)
        found = [least, most, 0, 1, most, least, 2, most - 1, -1 if least else 3, 7, least, 100]
    return np.roll(np.resize(np.array(found, dtype), 12), (0, 5, 3)[k])


def cases() -> Iterator[tuple[str, Callable]]:
    """(text, function of a library and three tensors)."""
    for name in POINTWISE:
        count = min(len(OPS[name].rule.params), 3)
        yield name, lambda library, *given, name=name, count=count: getattr(library, name)(*given[:count])
    for text in CALLS.replace("\n", "|").split("|"):
        if text.strip():
            code = compile(text.strip(), text.strip(), "eval")

            def call(library: Any, x: Any, y: Any, z: Any, code: Any = code) -> Any:
                n, i = library.tensor([-100] * 3), library.tensor([1, 1, 2])
                names = {"x": x, "y": y, "z": z, "m": x.reshape(3, 4), "i": i, "n": n, "t": library, "F": library.nn.functional}
                return eval(code, names)

            yield text.strip(), call


def differs(call: Callable, dtype: str) -> str:
    """What raises here and not in PyTorch, or which integers or signs of zeros are others."""
    try:
        theirs = call(torch, *(torch.from_numpy(operand(dtype, k)) for k in range(3)))
    except Exception:
        return ""
    try:
        mine = call(ag, *(ag.from_numpy(operand(dtype, k)) for k in range(3)))
    except Exception as error:
        return "" if type(error).__name__ == "NotImplementedError" else f"{type(error).__name__}: {error}"
    for a, b in zip(*([r] if not isinstance(r, tuple) else r for r in (mine, theirs)), strict=True):
        if b.dtype.is_complex:
            continue
        if b.dtype.is_floating_point:
            m, t = (v.detach().numpy(force=True) for v in (a, b))
            if ((m == 0) & (t == 0) & (np.signbit(m) != np.signbit(t))).any():
                return f"zeros of other signs: {m.tolist()} instead of {t.tolist()}"
            continue
        if not np.array_equal(a.numpy(), b.numpy()):
            return f"{a.tolist()} instead of {b.tolist()}"
    return ""


def main() -> int:
    warnings.simplefilter("ignore")
    count = wrong = 0
    for text, call in cases():
        for dtype in DTYPES:
            count += 1
            if text not in KNOWN and (found := differs(call, dtype)):
                wrong += 1
                print(f"{text}, {dtype}: {found}", flush=True)
    print(count, wrong)
    return wrong > 0


if __name__ == "__main__":
    sys.exit(main())
