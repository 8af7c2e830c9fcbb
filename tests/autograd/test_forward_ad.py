"""Forward mode: tangents through every kind of op."""

from __future__ import annotations

import pytest

import autograd_nb as torch
import autograd_nb.autograd.forward_ad as fw
from tests.functions import overwritten

x = torch.tensor([0.5, -1.0, 2.0, 1.5])
t = torch.tensor([1.0, 0.5, -1.0, 2.0])


def pushed(f, *pairs):
    with fw.dual_level():
        out = f(*[fw.make_dual(p, v) for p, v in pairs])
        return [fw.unpack_dual(o).tangent for o in (out if isinstance(out, tuple) else (out,))]


OPS = {
    "pointwise": lambda a: (a * a + a.exp()).sin() / (a * a + 1),
    "where": lambda a: torch.where(a > 0, a * 3, a**2),
    "reduction": lambda a: a.sum() * a.mean() + a.std() + a.norm(),
    "views": lambda a: a.reshape(2, 2).t()[1:].flatten() * 2,
    "matmul": lambda a: a.reshape(2, 2) @ a.reshape(2, 2).T,
    "softmax": lambda a: torch.softmax(a, 0),
    "cat": lambda a: torch.cat([a, a * 2, a.new_ones(2)]),
    "index": lambda a: a[torch.tensor([0, 0, 2])] * a[1],
    "sort": lambda a: a.sort()[0].cumsum(0),
    "loss": lambda a: torch.nn.functional.cross_entropy(a.reshape(2, 2), torch.tensor([0, 1])),
    "norm": lambda a: torch.nn.functional.layer_norm(a, (4,)),
    "attention": lambda a: torch.nn.functional.scaled_dot_product_attention(*[a.reshape(1, 2, 2)] * 3),
}


@pytest.mark.parametrize("name", OPS)
@pytest.mark.parametrize("mode", [torch.enable_grad, torch.no_grad])
def test_tangent_is_the_jacobians_product(name, mode):
    """The change of the result along ``t``, in a central difference, is what it is compared with."""
    f, at, along = OPS[name], x.double(), t.double()
    expected = (f(at + 1e-6 * along) - f(at - 1e-6 * along)) / 2e-6
    with mode():
        (found,) = pushed(f, (at, along))
    assert torch.allclose(found, expected, rtol=1e-7, atol=1e-8)


def test_two_operands_and_broadcasting():
    a, b = torch.ones(2, 1), torch.tensor([1.0, 2.0, 3.0])
    (found,) = pushed(lambda p, q: p * q + q, (a, a * 2), (b, b * 0))
    assert found.tolist() == [[2, 4, 6], [2, 4, 6]]
    (found,) = pushed(lambda p: p + b, (a, a))
    assert found.shape == (2, 3)


def test_in_place_and_views():
    (found,) = pushed(overwritten, (x, t))
    assert found.tolist() == [1.0, 2.0, -4.0, 8.0]

    def g(a):
        y = torch.zeros_like(a)
        y[1:] = a[:-1] * 2
        return y

    (found,) = pushed(g, (x, t))
    assert found.tolist() == [0.0, 2.0, 1.0, -2.0]


def test_plain_tensors_get_a_tangent_with_all_that_see_their_memory():
    w = torch.ones(4, requires_grad=True)
    buffer = torch.zeros(2, 4)
    row, column = buffer[0], buffer.t()[1]
    with fw.dual_level():
        row += fw.make_dual(x, t)
        row *= 2
        for seen, tangent in ((buffer[0], t * 2), (column, t[1:2] * torch.tensor([2.0, 0.0]))):
            assert fw.unpack_dual(seen).tangent.tolist() == tangent.tolist()
        late = buffer[1:]
        whole = torch.zeros(4)
        with pytest.raises(NotImplementedError, match="out= function"):
            torch.add(whole, 1, out=buffer)
        counts = torch.zeros(4, dtype=torch.int64)
        counts += fw.make_dual(x, t).round().long()
        counts.copy_(fw.make_dual(x, t))
        assert fw.unpack_dual(counts).tangent is None and fw.unpack_dual(whole).tangent is None
    assert buffer[0].tolist() == row.tolist() == (x * 2).tolist()
    assert all(type(v) is torch.Tensor and v._base is buffer for v in (row, column, late))
    buffer.mul_(w)  # the histories of the views follow
    late.sum().backward()
    assert w.grad.tolist() == [0.0] * 4 and row.requires_grad
    with fw.dual_level(), torch.no_grad(), pytest.raises(RuntimeError, match="without a tangent cannot be overwritten"):
        w.add_(fw.make_dual(x, t))


def test_reverse_over_forward():
    a = x.clone().requires_grad_()
    with fw.dual_level():
        y = fw.make_dual(a, t).exp().sum()
        tangent = fw.unpack_dual(y).tangent
    (g,) = torch.autograd.grad(tangent, a)
    assert torch.allclose(g, x.exp() * t)


def test_levels_of_transforms_within_a_level():
    with fw.dual_level():
        inner = torch.func.jvp(lambda z: z**3, (fw.make_dual(x, t),), (t,))[1]
        second = fw.unpack_dual(inner).tangent
    assert torch.allclose(second, 6 * x * t * t)


def test_function_with_a_rule_of_its_own():
    class Square(torch.autograd.Function):
        @staticmethod
        def forward(ctx, a):
            ctx.save_for_forward(a)
            return a**2

        @staticmethod
        def jvp(ctx, g):
            return 100 * ctx.saved_tensors[0] * g

    assert torch.allclose(pushed(Square.apply, (x, t))[0], 100 * x * t)


def test_batches_of_duals():
    def column(v):
        with fw.dual_level():
            return fw.unpack_dual((fw.make_dual(x, v) * 2).exp()).tangent

    assert torch.allclose(torch.vmap(column)(torch.eye(4)), torch.diag(2 * (2 * x).exp()))


def test_levels_and_errors():
    assert fw.unpack_dual(x).tangent is None
    with pytest.raises(RuntimeError, match="no level exists"):
        fw.make_dual(x, t)
    with fw.dual_level():
        d = fw.make_dual(x, t)
        assert fw.unpack_dual(d.detach()).tangent is None
        assert "tangent=" in repr(d)
        with pytest.raises(RuntimeError, match="different size"):
            fw.make_dual(x, torch.ones(2))
        with pytest.raises(ValueError, match="floating point"):
            fw.make_dual(torch.arange(3), torch.arange(3))
    assert torch.allclose(d * 2, x * 2) and fw.unpack_dual(d).tangent is None
    with pytest.raises(RuntimeError, match="exit a forward AD level"):
        fw.exit_dual_level()


def test_gradients_have_the_tangents_of_what_requires_no_grad():
    with fw.dual_level():
        x = fw.make_dual(torch.tensor([1.0, 2.0]), torch.tensor([1.0, 3.0]))
        y = torch.ones(2).requires_grad_()
        for options in ({}, {"create_graph": True}):
            (g,) = torch.autograd.grad((y * y * x).sum(), y, **options)
            assert fw.unpack_dual(g).tangent.tolist() == [2.0, 6.0]
        assert torch.autograd.grad((y * y).sum(), y)[0].tolist() == [2.0, 2.0]


def test_a_function_without_any_derivative_names_the_rule_that_is_missing():
    class Silent(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

    x = torch.ones(2, requires_grad=True)
    with pytest.raises(NotImplementedError, match="must implement the jvp function"), fw.dual_level():
        Silent.apply(fw.make_dual(x, torch.ones(2)))
    with pytest.raises(NotImplementedError, match="must implement either the backward or vjp"):
        Silent.apply(x).sum().backward()


INSIDE = {
    "jvp": (lambda x, v: torch.func.jvp(lambda z: z**3, (x,), (v,))[1], lambda x, v, t, s: 6 * x * v * t + 3 * x**2 * s),
    "value of jvp": (lambda x, v: torch.func.jvp(lambda z: z**3, (x,), (v,))[0], lambda x, v, t, s: 3 * x**2 * t),
    "jvp, aux": (lambda x, v: torch.func.jvp(lambda z: (z, z**3), (x,), (v,), has_aux=True)[2], lambda x, v, t, s: 3 * x**2 * t),
    "samples": (lambda x, v: torch.vmap(lambda z, w: torch.func.jvp(lambda y: y**3, (z,), (w,))[1])(x, v), lambda x, v, t, s: 6 * x * v * t + 3 * x**2 * s),
    "jacfwd": (lambda x, v: torch.func.jacfwd(lambda z: z**3)(x) @ v, lambda x, v, t, s: 6 * x * v * t + 3 * x**2 * s),
    "hessian": (lambda x, v: torch.func.hessian(lambda z: (z**3).sum())(x) @ v, lambda x, v, t, s: 6 * v * t + 6 * x * s),
}  # fmt: skip


@pytest.mark.parametrize("name", INSIDE)
def test_transforms_that_go_forward_inside_a_level_keep_its_tangents(name):
    """PyTorch refuses them there; that of their results had been None."""
    function, wanted = INSIDE[name]
    x, v, t, s = (torch.tensor(values, dtype=torch.float64) for values in ([1.0, 2.0], [1.0, 10.0], [0.5, 1.0], [2.0, -1.0]))
    with fw.dual_level():
        found = fw.unpack_dual(function(fw.make_dual(x, t), fw.make_dual(v, s))).tangent
    torch.testing.assert_close(found, wanted(x, v, t, s))


def test_linear_functions_inside_a_level():
    x, v, t = torch.tensor([1.0, 2.0]), torch.tensor([1.0, 10.0]), torch.tensor([0.5, 1.0])
    with fw.dual_level():
        _, linear = torch.func.linearize(lambda z: z**2, x)
        assert fw.unpack_dual(linear(fw.make_dual(v, t))).tangent.tolist() == [1.0, 4.0]
        with pytest.raises(RuntimeError, match="Nested forward mode AD is not supported"):
            torch.func.linearize(lambda z: z**2, fw.make_dual(x, t))
