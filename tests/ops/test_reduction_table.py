"""Every declared reduction: values, dtypes, gradients of both orders, vmap, forward mode, compile, out=, strides, nothing at all."""

from __future__ import annotations

import inspect
from math import inf

import numpy as np
import pytest

import autograd_nb as torch
from autograd_nb.codegen.formula.namespace import m
from autograd_nb.codegen.templates.loops import SUM
from autograd_nb.ops.core.reduction import NUMBERS, REQUIRED, ReductionOp, reduction
from autograd_nb.ops.core.registry import OPS

pytestmark = pytest.mark.slow  # many kernels

ROWS = {n: o for n, o in OPS.items() if n == o.name and isinstance(o.rule, ReductionOp)}
GRADS = sorted(n for n, o in ROWS.items() if o.differentiable)
DIMS = (None, 0, -1, (0, 2))


def parameters(name: str):
    return inspect.signature(ROWS[name].call).parameters


def dims_of(name: str) -> list:
    """Those of `DIMS` that the function takes; for one that insists on a dim, all of them in place of None."""
    required = parameters(name)["dim"].default is REQUIRED
    one = not ROWS[name].rule.public.several
    return [(0, 1, 2) if d is None and required else d for d in DIMS if not (one and isinstance(d, tuple))]


def array(name: str, dtype: str = "float64", shape: tuple = (3, 4, 5)) -> np.ndarray:
    low, high = ROWS[name].samples
    a = np.random.default_rng(len(name)).uniform(low, high, shape)
    return (a * 3).astype(dtype) if dtype.startswith("int") else (a > 0) if dtype == "bool" else a.astype(dtype)


def reference(name: str, a: np.ndarray, dim, keepdim: bool = False) -> np.ndarray:
    """The declaration's own words on Python's floats, or the function that it names."""
    axes = tuple(range(a.ndim)) if dim is None else tuple(d % a.ndim for d in (dim if isinstance(dim, tuple) else (dim,)))
    kept = [1 if d in axes else n for d, n in enumerate(a.shape)]
    rows = np.moveaxis(a, axes, range(-len(axes), 0)).reshape(-1, int(np.prod([a.shape[d] for d in axes])))
    shape = kept if keepdim else [n for d, n in enumerate(a.shape) if d not in axes]
    return np.array([_folded(name, row) for row in rows]).reshape(shape)


def _folded(name: str, row: np.ndarray):
    op = ROWS[name].rule
    if ROWS[name].reference is not None:
        return ROWS[name].reference(row, 0)
    numbers = {**{p: f(row.size) for p, f in NUMBERS.items()}, **op.options}

    def asked(function, first):
        return function(first, *[numbers[p] for p in list(inspect.signature(function).parameters)[1:]])

    total = op.fold.init if abs(op.fold.init) != inf else asked(op.formula, row[0].item())
    for x in row.tolist():
        total = op.fold.combine(total, asked(op.formula, x))
    return asked(op.finish, total) if op.finish else total


@pytest.mark.parametrize("name", sorted(ROWS))
def test_values(name):
    a, call = array(name), ROWS[name].call
    for dim in dims_of(name):
        for keepdim in (False, True) if "keepdim" in parameters(name) else (False,):
            y = call(torch.tensor(a), dim, *([keepdim] if keepdim else []))
            expected = reference(name, a, dim, keepdim)
            assert y.shape == expected.shape
            np.testing.assert_allclose(y.numpy(), expected, rtol=1e-12)
    wide = np.concatenate([a.reshape(12, 5)] * 60, 1)  # longer than a chunk, and read across
    for x in (wide.reshape(4, -1), wide.reshape(4, -1).T):
        for dim in (0, 1):
            np.testing.assert_allclose(call(torch.from_numpy(x), dim).numpy(), reference(name, x, dim), rtol=1e-11)


@pytest.mark.parametrize("name", sorted(ROWS))
def test_dtypes_and_strides(name):
    call, result = ROWS[name].call, ROWS[name].rule.result
    for dtype in ("float32", "float16", "int64", "bool"):
        a = array(name, dtype)
        x = torch.from_numpy(a)
        if dtype in ("int64", "bool") and ROWS[name].rule.public.accepts == "float":
            with pytest.raises(RuntimeError, match="could not infer output dtype"):
                call(x, 1)
            continue
        y = call(x, 1)
        whole = dtype in ("int64", "bool")
        wanted = {"truth": torch.bool, "count": torch.int64, "float": torch.float32 if whole else x.dtype}.get(result, x.dtype)
        assert y.dtype is (torch.int64 if result == "sum" and whole else wanted)
        close = {"float32": 1e-5, "float16": 2e-3}.get(dtype, 1e-6)
        same = call(torch.from_numpy(a.astype("float64")) if not whole else x, 1)
        np.testing.assert_allclose(y.double().numpy(), same.double().numpy(), rtol=close, atol=close)
        turned = torch.from_numpy(np.ascontiguousarray(a.transpose(2, 0, 1))).permute(1, 2, 0)
        np.testing.assert_allclose(call(turned, 1).double().numpy(), y.double().numpy(), rtol=close, atol=close)
        assert call(turned, 1).is_contiguous()


@pytest.mark.parametrize("name", GRADS)
def test_gradients_of_both_orders(name):
    for dim in dims_of(name):
        f = lambda x, dim=dim: ROWS[name].call(x, dim)
        x = torch.tensor(array(name, shape=(2, 3, 2)), requires_grad=True)
        assert torch.autograd.gradcheck(f, (x,))
        assert torch.autograd.gradgradcheck(f, (x,))


@pytest.mark.parametrize("name", sorted(ROWS))
def test_transforms(name):
    a, call = torch.tensor(array(name, shape=(2, 3, 4))), ROWS[name].call
    one = (0, 1) if parameters(name)["dim"].default is REQUIRED else None
    for dim in (0, -1, one):
        f = lambda x, dim=dim: call(x, dim)
        assert torch.equal(torch.func.vmap(f)(a), torch.stack([f(r) for r in a]))
        if name not in GRADS:
            continue
        tangent = a.cos()
        value, moved = torch.func.jvp(f, (a[0],), (tangent[0],))
        _, pull = torch.func.vjp(f, a[0])
        weight = torch.ones_like(value)
        assert torch.allclose(moved.sum(), (pull(weight)[0] * tangent[0]).sum())
        g = torch.func.grad(lambda x, f=f: f(x).sum())
        assert torch.allclose(torch.func.vmap(g)(a), torch.stack([g(r) for r in a]))


@pytest.mark.parametrize("name", sorted(ROWS))
def test_compiled(name):
    def step(x):
        y = ROWS[name].call(x * 2, 1)
        return (y.detach(), *torch.autograd.grad((y * y).sum(), x)) if y.requires_grad else (y,)

    compiled = torch.compile(step, fullgraph=True)
    for scale in (1.0, 0.5, 0.25):
        x = torch.tensor(array(name, "float32") * np.float32(scale), requires_grad=name in GRADS)
        for found, expected in zip(compiled(x), step(x), strict=True):
            assert torch.allclose(found.double(), expected.double(), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", sorted(ROWS))
def test_out_numpys_names_and_nothing(name):
    call = ROWS[name].call
    x = torch.tensor(array(name))
    y = call(x, 1)
    assert torch.equal(call(x, axis=1), y)
    assert torch.equal(getattr(x, name)(1), y)
    if "out" in parameters(name):
        target = torch.empty(0, dtype=y.dtype)
        assert call(x, 1, out=target) is target
        assert torch.equal(target, y)
        assert torch.equal(call(x, 1, keepdims=True), y.unsqueeze(1))
        if name in GRADS:
            with pytest.raises(RuntimeError, match="don't support automatic differentiation"):
                call(x.requires_grad_(), 1, out=target)
    empty = torch.ones(0, 3, dtype=torch.float64)
    assert call(empty, 1).shape == (0,)
    if not ROWS[name].rule.public.empty:
        with pytest.raises(IndexError, match="to have non-zero size"):
            call(empty, 0)
    elif ROWS[name].rule.fold is not None:
        op = ROWS[name].rule
        total = op.fold.init
        value = total if op.finish is None else float("nan") if "count" in op.numbers else op.finish(total)
        np.testing.assert_array_equal(call(empty, 0).numpy(), [value] * 3)


@reduction(lambda a, x: m.sqrt(a * a + x * x), init=0, grad=lambda g, x, y, scale: g * x * scale * scale / y, public=False)
def length(x, scale=1.0):
    return m.abs(x) * scale


def test_a_fold_of_its_own():
    """What a user of `reduction` may write: a formula that combines, with its init, and an option."""
    a = np.random.default_rng(0).uniform(0.5, 2, (3, 40, 50))
    for dims in ((0, 1, 2), (1,), (2,), (0, 2)):
        y = length(torch.tensor(a), dims, False, 3.0)
        np.testing.assert_allclose(y.numpy(), 3 * np.sqrt((a * a).sum(dims)), rtol=1e-12)
        np.testing.assert_allclose(length(torch.tensor(a, dtype=torch.float16), dims, False, 1.0).numpy(), y.numpy() / 3, rtol=2e-3)
    x = torch.tensor(a[:, :3, :4], requires_grad=True)
    f = lambda x: length(x, (1,), True, 2.0)
    assert torch.autograd.gradcheck(f, (x,))
    assert torch.autograd.gradgradcheck(f, (x,))
    assert torch.allclose(torch.func.vmap(lambda r: length(r, (0,), False, 2.0))(x), f(x).squeeze(1))
    compiled = torch.compile(lambda x: torch.autograd.grad(f(x * 2).sum(), x)[0], fullgraph=True)
    for _ in range(2):
        assert torch.allclose(compiled(x), torch.autograd.grad(f(x * 2).sum(), x)[0])


def test_what_cannot_be_declared():
    with pytest.raises(AssertionError, match="needs init="):
        reduction(lambda a, x: a + x)
    with pytest.raises(AssertionError, match="neither g, x, y"):
        reduction(SUM, grad=lambda g, z: g, name="total", public=False)(lambda x: x)
    with pytest.raises(AssertionError, match="neither count nor options"):
        reduction(SUM, finish=lambda total, size: total, name="total", public=False)(lambda x: x)
    op = reduction(lambda a, x: m.log(m.exp(a) + m.exp(x)), init=-100, name="lse", public=False)(lambda x: x)
    with pytest.raises(TypeError, match="one short expression"):
        op(torch.ones(3), (0,), False)
