"""Running one expression through this library and PyTorch: values, dtypes, first and second derivatives."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import autograd_nb as ours  # noqa: E402

SPECIALS = [0.0, -0.0, 1.0, -1.0, 2.0, -2.0, 0.5, -0.5, 3.0, -3.0, 6.0, float("inf"), float("-inf"), float("nan")]


def both(array: Any, requires_grad: bool = False) -> tuple[Any, Any]:
    """The same data as our tensor and PyTorch's."""
    a = np.asarray(array)
    mine, theirs = ours.from_numpy(a.copy()), torch.from_numpy(a.copy())
    if requires_grad and a.dtype.kind == "f":
        mine.requires_grad_()
        theirs.requires_grad_()
    return mine, theirs


def leaves(value: Any) -> list:
    if value is None:
        return []
    if isinstance(value, (tuple, list)):
        return [x for v in value for x in leaves(v)]
    return [value]


def numpy(t: Any) -> np.ndarray:
    return t.detach().numpy(force=True)


def check_same(mine: Any, theirs: Any, what: str, rtol: float, atol: float) -> None:
    if not hasattr(theirs, "shape"):
        assert mine == theirs, f"{what}: {mine} != {theirs}"
        return
    assert tuple(mine.shape) == tuple(theirs.shape), f"{what}: shape {tuple(mine.shape)} != {tuple(theirs.shape)}"
    assert str(mine.dtype) == str(theirs.dtype), f"{what}: dtype {mine.dtype} != {theirs.dtype}"
    np.testing.assert_allclose(numpy(mine), numpy(theirs), rtol=rtol, atol=atol, err_msg=what, equal_nan=True)


def compare(
    mine: Callable,
    theirs: Callable,
    arrays: Sequence[Any],
    *,
    grad: bool = True,
    second: bool = True,
    rtol: float = 1e-9,
    atol: float = 1e-9,
) -> None:
    """``mine(*tensors)`` and ``theirs(*tensors)`` on the same arrays must agree, with their derivatives."""
    pairs = [both(a, grad) if isinstance(a, (np.ndarray, np.generic)) else (a, a) for a in arrays]
    a, b = [p[0] for p in pairs], [p[1] for p in pairs]
    out_a, out_b = leaves(mine(*a)), leaves(theirs(*b))
    assert len(out_a) == len(out_b)
    for i, (x, y) in enumerate(zip(out_a, out_b, strict=True)):
        check_same(x, y, f"output {i}", rtol, atol)
    if not grad:
        return
    wrt_a = [x for x in a if isinstance(x, ours.Tensor) and x.requires_grad]
    wrt_b = [x for x in b if isinstance(x, torch.Tensor) and x.requires_grad]
    keep = [i for i, y in enumerate(out_b) if isinstance(y, torch.Tensor) and y.requires_grad]
    for i, x in enumerate(out_a):
        if isinstance(x, ours.Tensor):
            assert x.requires_grad == (i in keep), f"output {i}: requires_grad {x.requires_grad}"
    if not keep or not wrt_a:
        return
    rng = np.random.default_rng(7)
    weights = [both(np.asarray(rng.normal(size=tuple(out_b[i].shape)), dtype=numpy(out_b[i]).dtype), True) for i in keep]
    g_a = ours.autograd.grad([out_a[i] for i in keep], wrt_a, [w[0] for w in weights], create_graph=second, allow_unused=True)
    g_b = torch.autograd.grad([out_b[i] for i in keep], wrt_b, [w[1] for w in weights], create_graph=second, allow_unused=True)
    for i, (x, y) in enumerate(zip(g_a, g_b, strict=True)):
        if x is None or y is None:  # zero may be left out
            for t in (x, y):
                if t is not None:
                    np.testing.assert_array_equal(numpy(t), 0, err_msg=f"gradient {i}")
        else:
            check_same(x, y, f"gradient {i}", rtol, atol)
    if not second:
        return
    keep = [i for i, y in enumerate(g_b) if y is not None and y.requires_grad and g_a[i] is not None]
    if not keep:
        return
    v = [both(np.asarray(rng.normal(size=tuple(g_b[i].shape)), dtype=numpy(g_b[i]).dtype)) for i in keep]
    wrt_a, wrt_b = [*wrt_a, *[w[0] for w in weights]], [*wrt_b, *[w[1] for w in weights]]
    h_a = ours.autograd.grad([g_a[i] for i in keep], wrt_a, [w[0] for w in v], allow_unused=True)
    h_b = torch.autograd.grad([g_b[i] for i in keep], wrt_b, [w[1] for w in v], allow_unused=True)
    for i, (x, y) in enumerate(zip(h_a, h_b, strict=True)):
        if x is None or y is None:  # zero may be left out
            for t in (x, y):
                if t is not None:
                    np.testing.assert_allclose(numpy(t), 0, atol=atol, err_msg=f"second derivative {i}")
        else:
            check_same(x, y, f"second derivative {i}", rtol, atol)
