"""Less travelled ways of autograd's interface: edges made of nodes, saved tensors that come back otherwise, rules of users' functions."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

import autograd_nb as ours  # noqa: E402

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
def test_edges_are_tuples():
    of = "f = t.autograd.graph.get_gradient_edge; y = x * 2; e = f(y)"
    check({
        "parts": f"{X}; {of}; r = isinstance(e, tuple), len(e), e._fields, e[0] is y.grad_fn, e[1], e.ownership_token",
        "equal": f"{X}; {of}; r = e == f(y), e == f(x), len({{e, f(y), f(x)}})",
        "taken apart": f"{X}; {of}; node, k, _ = e; E = t.autograd.graph.GradientEdge; r = t.autograd.grad((y * y).sum(), [E(node, k), e, x])",
        "made by name": f"{X}; {of}; E = t.autograd.graph.GradientEdge; r = t.autograd.grad((y * y).sum(), E(node=e.node, output_nr=0))",
        "exchanged": f"{X}; {of}; r = e._replace(output_nr=0) == e, t.autograd.grad((y * y).sum(), e._replace(output_nr=0))",
    })  # fmt: skip


@pytest.mark.parity
def test_saved_tensors_that_come_back_in_memory_of_their_own():
    hooks = "with t.autograd.graph.saved_tensors_hooks(lambda v: {}, lambda v: {}):"
    calls = [
        "(x.expand(2, 3) ** 3).sum()",
        "(x[:, None].expand(3, 4) * x[:, None].expand(3, 4)).sum()",
        "x.sum().expand(4).exp().sum()",
        "(x ** 3).sum()",
    ]
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
    check(
        {
            mode: f"C = t.{mode}(type('C', (), {{'__init__': lambda self: setattr(self, 'on', t.is_grad_enabled())}})); r = C().on, t.is_grad_enabled()"
        }
    )


@pytest.mark.parity
def test_distinct_elements_require_grad_and_have_no_derivative():
    calls = (
        "t.unique(x)",
        "t.unique(x, dim=0)",
        "t.unique_consecutive(x)",
        "t.unique(x, return_inverse=True, return_counts=True)[0]",
        "t.unique(x.detach())",
    )
    check(
        {call: f"y = {call}\nr = y, y.requires_grad, y.is_leaf" for call in calls},
        "x = t.tensor([[2., 1.], [2., 1.]]).requires_grad_()",
    )
    check({call: f"r = {call}; r.sum().backward()" for call in calls}, "x = t.tensor([[2., 1.], [2., 1.]]).requires_grad_()")


@pytest.mark.parity
@pytest.mark.parametrize("kind", ["split(1, -1)", "chunk(2)", "unbind()", "tensor_split(2)"])
def test_one_of_several_views_may_be_written_to_where_nothing_is_recorded(kind):
    writes = [
        "v[0] = 1.",
        "v[0] += 1.",
        "v[:1] *= v[:1]",
        "v[...] = 2.",
        "v.mul_(2)",
        "v.fill_(1.)",
        "v[t.tensor([0])] = 1.",
        "v.zero_()",
    ]
    before = f"x = t.ones(3, 4, requires_grad=True); y = x * 2; v = y.{kind}[0]\nwith t.no_grad(): v.add_(1)"
    check(
        {
            f"{w}, {mode}": f"with t.{mode}: {w}\nr = y.detach(), y.requires_grad"
            for w in writes
            for mode in ("no_grad()", "enable_grad()")
        },
        before,
    )


@pytest.mark.parity
def test_jacobians_of_nothing_require_grad():
    functions = ("z.sin() * 2", "z.sum()", "z.sum(1)", "(z.cos(), z.exp())")
    check({
        f"{name} of {f}, {shape}": f"v = t.ones({shape}).requires_grad_() * 1; r = t.func.{name}(lambda z: {f})(v)"
        for name in ("jacrev", "jacfwd", "hessian") for f in functions for shape in ((0, 3), (2, 3))
    })  # fmt: skip


@pytest.mark.parity
def test_tangents_where_gradients_are_refused_or_differ():
    """Of a negative radius, and of complex numbers of which PyTorch's backward mode has no derivative."""
    before = "a = t.tensor([[1., -2., 3.], [.5, 2., -1.]], dtype=t.float64); v = a.flip(1) / 3; b = a.flip(0) + .3; i = t.tensor([[0, 1, 1], [1, 0, 0]])\n"
    before += "c, w = t.complex(a, b), t.complex(v, a)"
    real = ["t.polar(z, b)", "t.polar(b, z)", "t.polar(z, z * 2)"]
    numbers = ["c.scatter_reduce(1, i, z, 'sum')", "c.scatter_reduce(1, i, z, 'mean')", "z.scatter_reduce(1, i, c, 'mean')", "z.nan_to_num()",
               "z.select_scatter(c[0], 0, 1)", "c.select_scatter(z[0], 0, 1)"]  # fmt: skip
    check({call: f"r = t.func.jvp(lambda z: {call}, (a,), (v,))" for call in real}, before)
    check({call: f"r = t.func.jvp(lambda z: {call}, (c,), (w,))" for call in numbers}, before)


@pytest.mark.parity
def test_ranks_of_masks_are_told_before_leaves_are_refused():
    leaf = "x = t.ones(3, 4).requires_grad_(); v = x[..., 1]; m = t.ones(3, 4) > 0"
    check({call: call for call in ("v[m] = 0.5", "v[m[:, 0]] = 0.5", "x[m] = 0.5", "v.detach()[m] = 0.5")}, leaf, kinds=True)


#: functions of x, 2 × 3, whose second backward pass PyTorch runs or refuses
REUSED = [
    "x * 2", "2 * x", "x + 1", "x - 1", "1 - x", "x / 2", "-x", "x.float()", "x.exp()", "x ** 2", "x.view(6)", "x.mean()", "x.sum(0)", "x * x",
        "x * t.ones(3)", "x.clamp(0, 1)",
    "x[1:]", "x[t.tensor([0, 1])]", "t.cat([x, x])", "t.stack([x, x])", "x.cumsum(0)", "t.where(x > 0, x, 0.0)", "x.t()", "F.pad(x, (1, 1))",
        "x.roll(1)", "x.flip(0)",
    "x.repeat(2, 1)", "x + x", "x.clone()", "x.expand(4, 2, 3)", "x.tril()", "x.relu()", "x.max()", "x @ t.ones(3, 2)", "F.linear(x, t.ones(2, 3))",
        "x.sort()[0]", "x.diagonal()",
    "x.unbind()[0]", "x.split(1)[1]", "x.permute(1, 0)", "x.sigmoid()", "x.abs()", "x.reshape(-1)", "x.masked_fill(x > 0, 0.0)", "x.squeeze()",
        "x.unfold(1, 2, 1)",
    "t.add(x, x, alpha=2)", "t.sub(x, x.detach(), alpha=0.5)", "x.add(x, alpha=3)", "t.lerp(x, x + 1, 0.4)", "t.lerp(x, x.detach(), 0.4)",
    "t.rsub(x, x, alpha=2)",
    "t.lerp(x, x + 1, x.detach())", "x * 0.5", "x / 2", "t.add(x, 2, alpha=3)",
]  # fmt: skip


@pytest.mark.parity
def test_second_passes_over_what_saved_nothing():
    before = ours.autograd.set_graph_reuse("torch")
    try:
        start = "x = (t.arange(6.0, dtype=t.float64).reshape(2, 3) - 2.5).requires_grad_()\n"
        check({e: f"{start}y = ({e}).sum(); y.backward(); y.backward(); r = x.grad" for e in REUSED}, kinds=True)
        check(
            {e: f"{start}y = ({e}).sum(); r = t.autograd.grad(y, x)[0], t.autograd.grad(y, x)[0]" for e in REUSED}, kinds=True
        )
        code = "y = x.double().view(6)\nfor _ in range(3):\n    (y * y).sum().backward()\nr = x.grad"
        check({"a leaf that is converted once": start.replace("float64", "float32") + code})
        once = "p[0] = 1", "p[0].copy_(x.detach()[1])", "p.view(6).mul_(1)", "p = t.nn.functional.dropout(p)", "p = t.nn.functional.dropout(p, 0.0)"
        check({c: f"{start}p = x + 0; {c}; y = p.sum(); y.backward(); y.backward(); r = x.grad.shape" for c in once}, kinds=True)
    finally:
        ours.autograd.set_graph_reuse(before)


@pytest.mark.parity
def test_tangents_pass_where_nothing_is_recorded():
    before = (
        "x = t.tensor([0.5, 0.8]); f = t.func\n"
        "def half(y):\n    with t.no_grad(): z = y ** 2\n    return (z * y).sum()\n"
        "@t.no_grad()\ndef whole(y): return y.sin() * y\n"
        "def off(y):\n    with t.set_grad_enabled(False): return y * y\n"
    )
    calls = ("f.jvp(g, (x,), (x,))", "f.jacfwd(g)(x)", "f.jacrev(lambda y: g(y) + y.sum())(x)", "f.vmap(lambda y: f.jvp(g, (y,), (y,)))(t.stack([x, x * 2]))",
             "f.jvp(lambda y: f.vmap(g)(y), (t.stack([x, x]),), (t.stack([x, x]),))")  # fmt: skip
    check({f"{name}: {call}": f"g = {name}; r = {call}" for name in ("half", "whole", "off") for call in calls}, before)


@pytest.mark.parity
@pytest.mark.parametrize(
    "draw", ("t.bernoulli(y.clamp(0, 1))", "t.multinomial(y, 2)", "y.clone().bernoulli_()", "t.rand(3)", "t.normal(y, y)")
)
def test_random_numbers_under_vmap_are_refused_unless_they_are_asked_for(draw):
    asked = f"r = t.func.vmap(lambda y: {draw}, randomness='different')(t.ones(2, 3)).shape"
    check({"refused": f"t.func.vmap(lambda y: {draw})(t.ones(2, 3))", "asked for": asked})


@pytest.mark.parity
def test_what_a_pass_into_a_result_runs_and_consumes():
    """The node that made a result among ``inputs=`` runs, though nothing below it is wanted; in `grad` it does not."""
    made = {
        "exp": "y.exp()",
        "product": "y * y",
        "layer norm": "nn.LayerNorm(3)(y)",
        "sum": "y + 1",
        "Function": "Cube.apply(y)",
    }
    passes = {
        "backward": "z.sum().backward(inputs=[z])", "edge": "t.autograd.backward([t.autograd.graph.get_gradient_edge(z.sum())], inputs=[z])",
        "retained": "z.sum().backward(inputs=[z], retain_graph=True)", "grad": "t.autograd.grad(z.sum(), z)",
        "with what is below": "z.sum().backward(inputs=[z, x])", "hooks": "z.register_hook(lambda g: g * 2); z.sum().backward(inputs=[z])",
        "prehook": "z.grad_fn.register_prehook(lambda g: (g[0] * 3,)); z.sum().backward(inputs=[z])",
        "changed": "y.mul_(2); z.sum().backward(inputs=[z])",
    }  # fmt: skip
    function = """
seen = []
def twice(z):
    try:
        z.sum().backward(retain_graph=True)
    except RuntimeError:
        seen.append("refused")
class Cube(t.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x**3
    @staticmethod
    def backward(ctx, g):
        seen.append("ran")
        return 3 * ctx.saved_tensors[0] ** 2 * g
"""
    check({
        f"{name}, {way}": f"t.manual_seed(0); {X}; y = x * 1; z = {text}; {run}\ng = [z.grad.clone() for _ in range(z.grad is not None)]\n"
        "twice(z); twice(z); r = g, seen.count('refused'), 'ran' in seen"
        for name, text in made.items() for way, run in passes.items()
    }, function)  # fmt: skip


def test_hooks_on_several_tensors_wait_for_what_is_asked_for():
    """A multi-grad hook is called once, with all gradients that the pass gives, also of tensors whose nodes do not run as the pass ends there."""
    for hooked in ("a", "aa", "ab", "ac", "cc", "abc", "au", "x", "ya"):
        for asked in ("a", "ab", "c", "u", "x", "backward"):
            found = []
            for library in (torch, ours):
                x, y = (library.full((3,), v, requires_grad=True) for v in (1.0, 2.0))
                a, b = x * 2, y * 3
                named, calls = {"x": x, "y": y, "a": a, "b": b, "c": a * b, "u": x * 7}, []
                hook = lambda grads, calls=calls: calls.append([None if g is None else g.tolist() for g in grads])
                library.autograd.graph.register_multi_grad_hook([named[n] for n in hooked], hook)
                for _ in range(2):
                    loss = (named["c"] ** 3).sum() + (a * 5).sum()
                    try:
                        if asked == "backward":
                            loss.backward(retain_graph=True)
                        else:
                            library.autograd.grad(loss, [named[n] for n in asked], retain_graph=True, allow_unused=True)
                    except RuntimeError:  # "A leaf node was passed to _will_engine_execute_node": a fault of PyTorch
                        assert library is torch
                        calls.append("refused")
                found.append(calls)
            assert "refused" in found[0] or found[0] == found[1], (hooked, asked)


RESULTS = ["q * q", "q.sin()", "q.exp()", "q @ q.t()", "q.cumsum(0)", "q.softmax(0)", "q + 1", "q.clone()", "t.stack([q, q])[0]", "q.view(-1).view(q.shape)"]


@pytest.mark.parametrize("how", ["unsqueeze_(0)", "unsqueeze_(1)", "unsqueeze_(-1)", "squeeze_()", "squeeze_(0)", "t_()", "transpose_(0, 1)"])
def test_results_that_are_seen_otherwise_where_nothing_is_recorded(how):
    """What comes back has the shape of now, and must fit the one that was computed: as a broadcast of it, or the pass is refused."""
    check({
        f"{result}, {shape}, {how}": f"x = t.arange(1.0, 1 + {shape[0] * shape[1]}).reshape{shape}.requires_grad_(); q = x * 1; y = {result}\n"
                                     f"with t.no_grad():\n    y.{how}\n"
                                     "(y * y * t.arange(1.0, 1 + y.numel()).reshape(y.shape)).sum().backward(); r = x.grad"
        for result in RESULTS for shape in ((2, 2), (2, 3), (1, 3), (3, 1))
    })  # fmt: skip
