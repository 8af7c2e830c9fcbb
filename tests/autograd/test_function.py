"""User-defined `Function`s: recording, both derivatives, in place, errors."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest

import autograd_nb as torch
from autograd_nb.autograd import Function
from autograd_nb.autograd.function import once_differentiable
from tests.functions import Square


class Cube(Function):
    @staticmethod
    def forward(ctx, x, k):
        ctx.save_for_backward(x)
        ctx.k = k
        return x**3 * k

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * 3 * x**2 * ctx.k, None


class Exp(Function):
    @staticmethod
    def forward(ctx, x):
        y = x.exp()
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, g):
        (y,) = ctx.saved_tensors
        return g * y


class SinCos(Function):
    """Two outputs, and setup_context apart from forward."""

    @staticmethod
    def forward(x):
        return x.sin(), x.cos()

    @staticmethod
    def setup_context(ctx, inputs, output):
        (x,) = inputs
        ctx.save_for_backward(x)

    @staticmethod
    def backward(ctx, gs, gc):
        (x,) = ctx.saved_tensors
        return gs * x.cos() - gc * x.sin()


def leaf(*values):
    return torch.tensor(values, dtype=torch.float64, requires_grad=True)


def test_value_name_and_derivatives():
    x = leaf(2.0)
    y = Cube.apply(x, 2.0)
    assert y.item() == 16
    assert y.grad_fn.name() == "CubeBackward"
    assert y.grad_fn.needs_input_grad == (True, False)
    (g,) = torch.autograd.grad(y, x, create_graph=True)
    assert g.item() == 24
    assert torch.autograd.grad(g, x)[0].item() == 24
    assert torch.autograd.gradcheck(Cube.apply, (leaf(0.5, -1.2), 1.5))
    assert torch.autograd.gradgradcheck(Cube.apply, (leaf(0.5, -1.2), 1.5))


@pytest.mark.parametrize("function", [Exp, SinCos])
def test_saved_outputs_and_several_outputs(function):
    assert torch.autograd.gradcheck(function.apply, (leaf(0.3, -0.7),))
    assert torch.autograd.gradgradcheck(function.apply, (leaf(0.3, -0.7),))


def test_unused_outputs_get_zeros_or_none():
    seen = []

    class Two(Function):
        @staticmethod
        def forward(ctx, x, materialize):
            ctx.set_materialize_grads(materialize)
            return x * 1, x * 2

        @staticmethod
        def backward(ctx, a, b):
            seen.append((a, b))
            return a, None

    for materialize in (True, False):
        Two.apply(leaf(1.0), materialize)[0].sum().backward()
    assert seen[0][1].tolist() == [0.0]
    assert seen[1][1] is None


def test_mark_dirty_and_non_differentiable():
    class AddInto(Function):
        @staticmethod
        def forward(ctx, a, b):
            ctx.mark_dirty(a)
            return a.add_(b)

        @staticmethod
        def backward(ctx, g):
            return g, g

    x, b = leaf(1.0, 2.0), leaf(3.0, 4.0)
    a = x * 2
    out = AddInto.apply(a, b)
    assert out is a
    assert a._version == 2  # once by add_, once by the mark
    (out * out).sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), [20, 32])
    np.testing.assert_allclose(b.grad.numpy(), [10, 16])
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad"):
        AddInto.apply(leaf(1.0), leaf(1.0))

    class Index(Function):
        @staticmethod
        def forward(ctx, x):
            values, where = x.sort()
            ctx.mark_non_differentiable(where)
            return values, where

        @staticmethod
        def backward(ctx, g, _):
            return g

    values, where = Index.apply(leaf(2.0, 1.0))
    assert values.requires_grad
    assert not where.requires_grad


def test_an_input_returned_as_it_is():
    class Same(Function):
        @staticmethod
        def forward(ctx, x):
            return x

        @staticmethod
        def backward(ctx, g):
            return g * 3

    x = leaf(1.0)
    y = Same.apply(x)
    assert y is not x
    assert y.data_ptr() == x.data_ptr()
    y.sum().backward()
    assert x.grad.tolist() == [3.0]


def broken(result, inputs=1):
    class Broken(Function):
        @staticmethod
        def forward(ctx, *args):
            return args[0] * 1

        @staticmethod
        def backward(ctx, g):
            return result(g)

    return Broken.apply(*[leaf(1.0, 2.0, 3.0) for _ in range(inputs)]).sum()


def test_errors():
    with pytest.raises(RuntimeError, match=r"incorrect number of gradients \(expected 1, got 2\)"):
        broken(lambda g: (g, g)).backward()
    with pytest.raises(RuntimeError, match=r"invalid gradient at index 0 - got \[2\] but expected shape compatible with \[3\]"):
        broken(lambda g: g[:2]).backward()
    with pytest.raises(RuntimeError, match="expected Variable or None"):
        broken(lambda g: 1.0).backward()

    class NoBackward(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

    with pytest.raises(NotImplementedError, match="You must implement either the backward or vjp method"):
        NoBackward.apply(leaf(1.0)).sum().backward()

    class OldStyle(Function):
        def forward(self, x):
            return x

    with pytest.raises(RuntimeError, match="non-static forward"):
        OldStyle.apply(leaf(1.0))
    with pytest.warns(DeprecationWarning, match="should not be instantiated"):
        instance = OldStyle()
    with pytest.raises(RuntimeError, match="non-static forward"):
        instance(leaf(1.0))

    class SavesNumber(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(3)
            return x

    with pytest.raises(TypeError, match="save_for_backward can only save variables, but argument 0 is of type int"):
        SavesNumber.apply(leaf(1.0))


def test_saved_tensors_are_guarded():
    x = leaf(1.0)
    y = Exp.apply(x)
    y.sum().backward()
    with pytest.raises(RuntimeError, match="a second time"):
        y.sum().backward()
    with pytest.raises(RuntimeError, match="already been"):
        y.grad_fn.saved_tensors
    z = Exp.apply(x)
    z.detach().add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        z.sum().backward()


def test_once_differentiable():
    class Once(Square):
        backward = staticmethod(once_differentiable(Square.backward))

    x, w = leaf(3.0), leaf(1.0)
    (g,) = torch.autograd.grad((Once.apply(x) * w).sum(), x, create_graph=True)
    assert g.tolist() == [6.0]
    with pytest.raises(
        RuntimeError, match="trying to differentiate twice a function that was marked with @once_differentiable"
    ):
        g.sum().backward()


def test_grad_mode_is_restored_after_an_error():
    class Fails(Function):
        @staticmethod
        def forward(ctx, x):
            raise ValueError("forward")

    with pytest.raises(ValueError, match="forward"):
        Fails.apply(leaf(1.0))
    assert torch.is_grad_enabled()
    with pytest.raises(ZeroDivisionError):
        broken(lambda g: 1 / 0).backward()
    assert torch.is_grad_enabled()


def test_saved_outputs_make_no_cycle():
    gc.disable()
    try:
        x = leaf(1.0)
        y = Exp.apply(x)
        node = weakref.ref(y.grad_fn)
        del y
        assert node() is None
    finally:
        gc.enable()
