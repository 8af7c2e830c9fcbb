"""Less travelled ways of autograd's interface: edges made of nodes, saved tensors that come back otherwise, rules of users' functions."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from .snippets import check  # noqa: E402

X = "x = t.linspace(1, 2, 3).requires_grad_()"


@pytest.mark.parity
def test_edges_made_of_nodes():
    edge = "Edge = t.autograd.graph.GradientEdge"
    check({
        "of a node": f"{X}; {edge}; y = x * 2; e = Edge(y.grad_fn, y.output_nr); r = t.autograd.grad((y * y).sum(), e)",
        "of an output": f"{X}; {edge}; a, b = x.unbind()[:2]; e = Edge(b.grad_fn, b.output_nr); r = t.autograd.grad(a * b * b, [e, x])",
        "of a leaf": f"{X}; {edge}; n = x.view_as(x).grad_fn.next_functions[0][0]; r = t.autograd.grad((x * x).sum(), Edge(n, 0))",
        "as a root": f"{X}; {edge}; y = x * x; t.autograd.backward(Edge(y.grad_fn, 0), t.ones(3)); r = x.grad",
        "as a root without a gradient": f"{X}; {edge}; y = x * x; t.autograd.backward(Edge(y.grad_fn, 0))",
        "accumulated": f"{X}; {edge}; y = x * 3; z = (y * y).sum(); z.backward(inputs=[Edge(x.view_as(x).grad_fn.next_functions[0][0], 0)]); r = x.grad",
        "materialized": f"{X}; {edge}; y = x * 2; r = t.autograd.grad((x * x).sum(), Edge(y.grad_fn, 0), materialize_grads=True)",
    })  # fmt: skip


@pytest.mark.parity
def test_saved_tensors_that_come_back_in_memory_of_their_own():
    hooks = "with t.autograd.graph.saved_tensors_hooks(lambda v: {}, lambda v: {}):"
    calls = ["(x.expand(2, 3) ** 3).sum()", "(x[:, None].expand(3, 4) * x[:, None].expand(3, 4)).sum()", "x.sum().expand(4).exp().sum()", "(x ** 3).sum()"]
    check({
        f"{call}, {pack}": f"{X}\n"
        f"{hooks.format(pack, unpack)}\n    y = {call}; g, = t.autograd.grad(y, x, create_graph=True); g.sum().backward()\nr = y, g, x.grad"
        for call in calls for pack, unpack in (("v.clone()", "v.clone()"), ("2 * v", "2 * v"), ("v.numpy(force=True).copy()", "t.from_numpy(v)"))
    })  # fmt: skip


FUNCTION = """
class Product(t.autograd.Function):
    @staticmethod
    def forward({head}x, y{default}):
        {save}return x * y
    @staticmethod
    def setup_context(ctx, inputs, output):
        x, y = inputs
        ctx.number = None if isinstance(y, t.Tensor) else y
    @staticmethod
    def backward(ctx, g):
        return g * ctx.number, None
    @staticmethod
    def jvp(ctx, x_t, y_t):
        x, y = ctx.saved_tensors
        return x_t * y + y_t * x
"""


@pytest.mark.parity
def test_users_functions():
    plain = FUNCTION.format(head="", default="=3", save="")
    check({
        "default": f"{X}{plain}\nProduct.apply(x).sum().backward(); r = x.grad",
        "given": f"{X}{plain}\nProduct.apply(x, 5).sum().backward(); r = x.grad",
    })  # fmt: skip
    rule = FUNCTION.format(head="ctx, ", default="", save="ctx.save_for_forward(x, y); ").replace("setup_context", "unused")
    from importlib import import_module

    for library in ("torch", "autograd_nb"):
        import_module(f"{library}.autograd.forward_ad")
    parts = {"both": ("d(a, a)", "d(b, b)"), "first": ("d(a, a)", "b"), "second": ("a", "d(b, b)")}
    check({
        name: f"{rule}\nfw = t.autograd.forward_ad; d = fw.make_dual; a, b = t.ones(2), t.full((2,), 3.)\nwith fw.dual_level():\n"
        f"    r = tuple(fw.unpack_dual(Product.apply({x}, {y})))"
        for name, (x, y) in parts.items()
    })  # fmt: skip


@pytest.mark.parity
def test_gradient_checks_of_functions_that_register_hooks():
    code = "x = t.ones(2, dtype=t.float64).requires_grad_()\n"
    code += "def f(x):\n    y = x * x; y.register_hook(lambda g: {}); return y\nr = t.autograd.gradcheck(f, (x,))"
    check({change: code.format(change) for change in ("g", "g * 2")})


@pytest.mark.parity
@pytest.mark.parametrize("mode", ["no_grad()", "enable_grad()", "inference_mode()", "set_grad_enabled(False)"])
def test_modes_that_decorate_classes(mode):
    check({mode: f"C = t.{mode}(type('C', (), {{'__init__': lambda self: setattr(self, 'on', t.is_grad_enabled())}})); r = C().on, t.is_grad_enabled()"})


@pytest.mark.parity
def test_distinct_elements_require_grad_and_have_no_derivative():
    calls = ("t.unique(x)", "t.unique(x, dim=0)", "t.unique_consecutive(x)", "t.unique(x, return_inverse=True, return_counts=True)[0]", "t.unique(x.detach())")
    check({call: f"y = {call}\nr = y, y.requires_grad, y.is_leaf" for call in calls}, "x = t.tensor([[2., 1.], [2., 1.]]).requires_grad_()")
    check({call: f"r = {call}; r.sum().backward()" for call in calls}, "x = t.tensor([[2., 1.], [2., 1.]]).requires_grad_()")
