"""Every pointwise op of the table: values, gradients of both orders, broadcasting, strides, dtypes, formula against kernel."""

from __future__ import annotations

import inspect

import numpy as np
import pytest

import autograd_nb as torch
from autograd_nb.autograd.batching import vmap
from autograd_nb.ops.core.pointwise_backward import PointwiseNode
from autograd_nb.ops.core.registry import OPS

from . import table
from .table import dtype_of, sample

pytestmark = pytest.mark.formulas

ROWS = {n: o for n, o in OPS.items() if n == o.name and o.kind == "pointwise" and hasattr(o.rule, "params")}
EXTRA = {n: OPS[n] for n in ("add", "sub", "div", "pow", "remainder", "fmod")}  # public functions around pointwise ops
ALL = {**ROWS, **EXTRA}
SHAPE = (3, 4)


def arity(name: str) -> int:
    return len(ALL[name].rule.params) if hasattr(ALL[name].rule, "params") else 2


def call(name: str, *args):
    return ALL[name].call(*args)


def operands(name: str, dtype: str = "float64", shape=SHAPE) -> list[np.ndarray]:
    return [sample(name, i, shape, dtype) for i in range(arity(name))]


def run(name: str, args: list):
    """The op on its operands: trailing numbers go where the public function wants them."""
    function = ALL[name].call
    if name in ("addcmul", "addcdiv"):
        return function(*args[:3], value=0.7)
    return function(*args)


def reference(name: str, arrays: list[np.ndarray]) -> np.ndarray:
    if name in ("addcmul", "addcdiv"):
        return table.reference(name)(*arrays[:3], 0.7)
    return table.reference(name)(*arrays)


def count(name: str) -> int:
    return min(arity(name), 3)


def differentiable(name: str) -> bool:
    return ALL[name].differentiable


@pytest.mark.parametrize("name", sorted(ALL))
def test_values(name):
    arrays = operands(name, dtype_of(name))[: count(name)]
    out = run(name, [torch.from_numpy(a) for a in arrays])
    expected = reference(name, arrays)
    np.testing.assert_allclose(out.numpy(), expected, rtol=1e-11, atol=1e-13)
    assert out.numpy().dtype == np.asarray(expected).dtype


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(n for n in ALL if dtype_of(n) == "float64"))
def test_float32_and_strides(name):
    """A transposed, a broadcast and a row-sliced operand give what contiguous copies give."""
    arrays = operands(name, "float32", (4, 4))[: count(name)]
    layouts = [
        lambda a: torch.from_numpy(a).t(),
        lambda a: torch.from_numpy(a)[:1],
        lambda a: torch.from_numpy(a)[1:2, ::2].expand(4, 2)[:, :1],
    ]
    views = [layouts[i % 3](a) for i, a in enumerate(arrays)]
    plain = np.broadcast_arrays(*[v.numpy() for v in views])
    out = run(name, views)
    expected = reference(name, [p.astype(np.float64) for p in plain])
    if name == "nextafter":
        expected = np.nextafter(*plain)
    np.testing.assert_allclose(out.numpy(), expected, rtol=3e-5, atol=1e-6)
    assert out.stride() == views[0].stride() == (1, 4)  # the first operand of full shape says the order of dims, as in PyTorch


def numeric(name: str, arrays: list[np.ndarray], i: int, weight: np.ndarray, h: float = 1e-6) -> np.ndarray:
    """Central difference by one operand: pointwise, so one shift does all elements."""

    def at(shift: float) -> np.ndarray:
        moved = [a + shift if k == i else a for k, a in enumerate(arrays)]
        with torch.no_grad():
            return run(name, [torch.from_numpy(a) for a in moved]).numpy()

    return (at(h) - at(-h)) / (2 * h) * weight


GRADS = sorted(n for n in ALL if differentiable(n) and dtype_of(n) == "float64")


@pytest.mark.parametrize("name", GRADS)
def test_gradient(name):
    arrays = operands(name)[: count(name)]
    tensors = [torch.from_numpy(a.copy()).requires_grad_() for a in arrays]
    weight = np.random.default_rng(1).uniform(0.5, 1.5, SHAPE)
    out = run(name, tensors)
    out.backward(torch.from_numpy(weight))
    for i, t in enumerate(tensors):
        expected = numeric(name, arrays, i, weight)
        got = np.zeros(SHAPE) if t.grad is None else t.grad.numpy()
        np.testing.assert_allclose(got, expected, rtol=2e-6, atol=2e-8, err_msg=f"{name}, operand {i}")


@pytest.mark.parametrize("name", GRADS)
def test_formula_on_tensors_gives_the_kernels_gradient(name):
    arrays = operands(name)[: count(name)]
    weight = torch.from_numpy(np.random.default_rng(1).uniform(0.5, 1.5, SHAPE))
    tensors = [torch.from_numpy(a.copy()).requires_grad_() for a in arrays]
    fused = torch.autograd.grad(run(name, tensors), tensors, weight, allow_unused=True)
    recorded = torch.autograd.grad(run(name, tensors), tensors, weight, allow_unused=True, create_graph=True)
    for a, b in zip(fused, recorded, strict=True):
        assert (a is None) == (b is None)
        if a is not None:
            np.testing.assert_allclose(a.numpy(), b.detach().numpy(), rtol=1e-12, atol=1e-13)


@pytest.mark.slow
@pytest.mark.parametrize("name", GRADS)
def test_second_derivative(name):
    """d/dx_j of (dy/dx_i · w) against central differences of the first gradient."""
    arrays = operands(name)[: count(name)]
    weight = np.random.default_rng(2).uniform(0.5, 1.5, SHAPE)

    def first(moved: list[np.ndarray], i: int, graph: bool):
        tensors = [torch.from_numpy(a.copy()).requires_grad_() for a in moved]
        (g,) = torch.autograd.grad(
            run(name, tensors), tensors[i], torch.from_numpy(weight), create_graph=graph, materialize_grads=True
        )
        return g, tensors

    h = 1e-5
    for i in range(len(arrays)):
        g, tensors = first(arrays, i, True)
        if not g.requires_grad:
            second = [None] * len(arrays)
        else:
            second = torch.autograd.grad(g.sum(), tensors, allow_unused=True)
        for j in range(len(arrays)):
            up = first([a + h if k == j else a for k, a in enumerate(arrays)], i, False)[0].numpy()
            down = first([a - h if k == j else a for k, a in enumerate(arrays)], i, False)[0].numpy()
            expected = (up - down) / (2 * h)
            got = np.zeros(SHAPE) if second[j] is None else second[j].numpy()
            np.testing.assert_allclose(got, expected, rtol=2e-4, atol=2e-6, err_msg=f"{name}, d²/d{i}d{j}")


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(n for n in GRADS if count(n) > 1))
def test_gradients_of_broadcast_operands_are_summed(name):
    big = sample(name, 0, (2, 3, 4), "float64")
    small = sample(name, 1, (3, 1), "float64")
    rest = [sample(name, k, (4,), "float64") for k in range(2, count(name))]
    tensors = [torch.from_numpy(a.copy()).requires_grad_() for a in (big, small, *rest)]
    run(name, tensors).sum().backward()
    wide = [torch.from_numpy(np.broadcast_to(a, (2, 3, 4)).copy()).requires_grad_() for a in (big, small, *rest)]
    run(name, wide).sum().backward()
    for t, w in zip(tensors, wide, strict=True):
        if w.grad is None:
            assert t.grad is None
            continue
        full = w.grad.numpy()
        axes = tuple(range(3 - t.ndim)) + tuple(3 - t.ndim + d for d, n in enumerate(t.shape) if n == 1)
        expected = full.sum(axes, keepdims=True).reshape(t.shape)
        np.testing.assert_allclose(t.grad.numpy(), expected, rtol=1e-10, atol=1e-12)
        assert t.grad.shape == t.shape


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(n for n in ROWS if arity(n) == 1 and dtype_of(n) == "float64" and n not in ("isreal",)))
def test_half_and_integers(name):
    values = sample(name, 0, (5,), "float16")
    out = run(name, [torch.from_numpy(values)])
    expected = reference(name, [values.astype(np.float64)])
    if out.dtype is torch.float16:
        np.testing.assert_allclose(out.numpy().astype(np.float64), expected, rtol=2e-3, atol=2e-3)
    integers = np.array([1, 2, 3], dtype=np.int32)
    try:
        got = run(name, [torch.from_numpy(integers)])
    except RuntimeError:
        return  # refused, as PyTorch refuses some
    assert got.dtype in (torch.float32, torch.int32, torch.bool)


def test_every_reference_is_of_an_op():
    assert set(table.REFERENCES) <= set(ALL)


def test_ops_with_a_function_of_their_name_elsewhere_are_compared_with_that():
    ours = {name for name in ALL if isinstance(table.reference(name), np.vectorize)}
    assert not {"exp", "atan2", "special.xlogy", "erfcx", "sigmoid", "nextafter"} & ours
    assert len(ours) < len(ALL) / 3


def test_nodes_are_named_as_in_pytorch():
    x = torch.ones(2).requires_grad_()
    names = {"exp": "ExpBackward0", "mul": "MulBackward0", "tanh": "TanhBackward0", "sigmoid": "SigmoidBackward0"}
    for op, node in names.items():
        y = OPS[op].call(*([x] * arity(op)))
        assert y.grad_fn.name() == node
        assert isinstance(y.grad_fn, PointwiseNode)


def test_public_functions_have_docstrings():
    bare = [n for n, o in ROWS.items() if not (inspect.getdoc(o.call) or "").strip()]
    assert not bare, f"ops without a docstring: {bare}"


@pytest.mark.parametrize("name", sorted(ALL))
def test_batches_are_computed_at_once(name, monkeypatch):
    """Also where calls like those of the samples were seen before, whose quick path would read the memory of a batch."""

    def never(*args):
        raise AssertionError(f"{name} was mapped sample by sample")

    monkeypatch.setattr(vmap, "_one_by_one", never)
    args = [torch.tensor(a) for a in operands(name, dtype_of(name))]
    expected = run(name, args)
    run(name, [a[0] for a in args])
    found = torch.vmap(lambda *rows: run(name, list(rows)))(*args)
    assert torch.equal(found.isnan(), expected.isnan()) and torch.equal(found.nan_to_num(), expected.nan_to_num())
