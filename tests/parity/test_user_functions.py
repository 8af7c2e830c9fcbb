"""What a user's `Function` returns, how it may be changed in place, and what becomes of gradients that are None on their way."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")

from .snippets import check

BEFORE = """
def leaf(*s): return t.arange(1., 1 + int(np.prod(s))).reshape(s).requires_grad_()
L = []
def attempt(f):
    try: return f()
    except RuntimeError as e: return "refused"
def function(forward, backward=lambda ctx, *g: g[0]):
    return type("F", (t.autograd.Function,), {"forward": staticmethod(forward), "backward": staticmethod(backward)})
def seen(g): L.append([v if v is None else v.clone() for v in g]); return g
NONE = function(lambda ctx, x: x * 2, lambda ctx, g: None)
TWICE = function(lambda ctx, x: x * 2, lambda ctx, *g: seen(g)[0])
KEPT = function(lambda ctx, x: ctx.set_materialize_grads(False) or x * 2, lambda ctx, *g: seen(g)[0])
BOTH = function(lambda ctx, x: (x * 2, x * 3), lambda ctx, *g: seen(g)[0])
def dirty(ctx, x): ctx.mark_dirty(x.mul_(2)); return x
def first(r): return r[0] if isinstance(r, tuple) else r
"""

#: what a function returns, of a tensor that came to be in some way, in a mode
RETURNED = {
    f"{forward}; {made}; {mode}": f"b = t.arange(6.).reshape(2, 3).requires_grad_({grad})\n{made}\nf = function({forward})\n"
    f"def called():\n    with t.set_grad_enabled({mode}): return f.apply(x)\n"
    "out = attempt(called); o = first(out) if out != 'refused' else x\n"
    "r = [o is x, o.requires_grad, o._is_view(), o.is_leaf, attempt(lambda: o.add_(1)), x._version if out != 'refused' else 0, o.detach(), b.detach()]\n"
    "r.append(attempt(lambda: (o * 2).sum().backward() or b.grad)); r.append(attempt(lambda: x.mul_(3))); r.append(attempt(lambda: o.grad_fn is None))"
    for forward in (
        "lambda ctx, x: x", "lambda ctx, x: (x, x * 2)", "lambda ctx, x: (x, 5, None)", "dirty", "lambda ctx, x: x.view(-1)", "lambda ctx, x: x.detach()",
        "lambda ctx, x: (x[0], x[1])", "lambda ctx, x: (x[0], x * 2)", "lambda ctx, x: ctx.mark_non_differentiable(x) or x",
    )
    for made in ("x = b", "x = b * 1", "b = b * 1; x = b[:]", "x = (b * 1).unbind()[0].view(1, 3).expand(2, 3).clone()")
    for grad in (True, False)
    for mode in (True, False)
}  # fmt: skip

#: gradients that are None, by the node that they come to
MISSING = {
    f"{made}; {ask}": f"x = leaf(3); x.register_hook(lambda g: L.append(('x', g))); y = {made}; {ask}"
    for made in (
        "TWICE.apply(x)", "KEPT.apply(x)", "BOTH.apply(x)[1]", "x * 2", "x.exp()", "x.unbind()[0]", "x.max(0)[0]", "x @ x", "t.cat([x, x])", "x[1:]",
        "x.sum()", "x.view(3, 1)", "TWICE.apply(x * 2)", "x.cumsum(0)", "F.layer_norm(x, (3,))",
    )
    for ask in (
        "NONE.apply(y).sum().backward(); r = x.grad, L",
        "(NONE.apply(y).sum() + (x * x).sum()).backward(); r = x.grad, L",
        "y.register_hook(lambda g: L.append(('y', g))); NONE.apply(y).sum().backward(); r = x.grad, L",
        "y.register_hook(lambda g: t.ones(3)); NONE.apply(y).sum().backward(); r = x.grad, L",
        "y.retain_grad(); NONE.apply(y).sum().backward(); r = x.grad, y.grad",
        "r = t.autograd.grad(NONE.apply(y).sum(), x), L",
        "r = t.autograd.grad(NONE.apply(y).sum(), x, allow_unused=True), L",
        "r = t.autograd.grad(NONE.apply(y).sum(), x, materialize_grads=True), L",
        "y.grad_fn.register_prehook(lambda g: tuple(None for _ in g)); y.sum().backward(); r = x.grad, L",
        "y.grad_fn.register_prehook(lambda g: L.append([v is None for v in g])); NONE.apply(y).sum().backward(); r = x.grad, L",
        "y.grad_fn.register_hook(lambda gi, go: tuple(None for _ in gi)); y.sum().backward(); r = x.grad, L",
        "y.grad_fn.register_hook(lambda gi, go: list(gi)); y.sum().backward()",
        "y.grad_fn.register_hook(lambda gi, go: gi[0]); y.sum().backward()",
        "y.grad_fn.register_prehook(lambda go: list(go)); y.sum().backward()",
        "y.grad_fn.register_prehook(lambda go: go[0]); y.sum().backward()",
    )
}  # fmt: skip

MODULES = {
    f"{module}; {hook}": f"m = {module}; x = leaf(2, 3); {hook}; r = L, x.grad, [p.grad for p in m.parameters()]"
    for module in (
        "nn.Linear(3, 2, dtype=t.float32).requires_grad_(); [setattr(p, 'data', t.ones(p.shape)) for p in m.parameters()]",
        "nn.Identity()", "nn.Sequential(nn.ReLU(), nn.Tanh())",
    )
    for hook in (
        "m.register_full_backward_hook(lambda m, gi, go: (None,)); m(x).sum().backward()",
        "m.register_full_backward_pre_hook(lambda m, go: (None,)); m(x).sum().backward()",
        "m.register_full_backward_hook(lambda m, gi, go: L.append((gi, go))); NONE.apply(m(x)).sum().backward()",
        "m.register_full_backward_hook(lambda m, gi, go: gi + gi); m(x).sum().backward()",
    )
}  # fmt: skip
_TWO = (
    "class Two(nn.Module):\n    def forward(self, a, b): return a * 2, b * 3\nm = Two(); x = leaf(2, 3) * 1; y = x.detach()\n"
)
MODULES |= {
    f"two; {use}": f"{_TWO}m.register_full_backward_hook(lambda m, gi, go: L.append((gi, go))); {use}"
    for use in (
        "m(x, x)[0].sum().backward(); r = L", "m(x, x)[1].sum().backward(); r = L", "r = [o.requires_grad for o in m(x, y)]",
        "r = [o.requires_grad for o in m(y, x)]", "sum(o.sum() for o in m(x, y)).backward(); r = L", "m(y, x)[1].sum().backward(); r = L",
        "m(x, t.arange(3))[0].sum().backward(); r = L",
    )
}  # fmt: skip

OTHERS = {
    "kept though returned": "class S(t.autograd.Function):\n    forward = staticmethod(lambda x: x)\n    backward = staticmethod(lambda ctx, g: g)\n"
    "    setup_context = staticmethod(lambda ctx, inputs, output: ctx.save_for_backward(output))\nS.apply(leaf(2))",
    "no tensor as a gradient": "function(lambda ctx, x: x * 2, lambda ctx, g: 'a').apply(leaf(2)).sum().backward()",
    "a pack hook that changes what it gets": "x = leaf(2)\nwith t.autograd.graph.saved_tensors_hooks(lambda v: v.mul_(2), lambda v: v): x * x",
    "nodes are functions": "x = leaf(3); r = (x * 2).grad_fn(t.ones(3)), x.exp().grad_fn(t.ones(3)), (x / x).grad_fn(t.ones(3))",
    "nodes of several": "x = leaf(3); r = x.unbind()[0].grad_fn(t.ones(()), None, t.ones(()))",
    "a node that was run": "y = leaf(3).exp(); y.sum().backward(); y.grad_fn(t.ones(3))",
    "a checkpoint that changes its argument": "from importlib import import_module\nc = import_module(t.__name__ + '.utils.checkpoint').checkpoint\n"
    "x = leaf(3); y = x * 1; c(lambda a: a.mul_(2), y, use_reentrant=False).sum().backward(); r = x.grad",
}  # fmt: skip


@pytest.mark.parity
@pytest.mark.parametrize("programs", (RETURNED, MISSING, MODULES, OTHERS), ids=("returned", "missing", "modules", "others"))
def test_programs(programs):
    check({name: f"{BEFORE}{code}" for name, code in programs.items()})


JVP = """
class Product(t.autograd.Function):
    @staticmethod
    def forward(x, y):
        z = x * y
        return z, z.exp()
    @staticmethod
    def setup_context(ctx, inputs, outputs):
        ctx.save_for_backward(*inputs, outputs[1])
        ctx.save_for_forward(*inputs, outputs[1])
    @staticmethod
    def backward(ctx, g, h):
        x, y, w = ctx.saved_tensors
        return (g + h * w) * y, (g + h * w) * x
    @staticmethod
    def jvp(ctx, s, u):
        x, y, w = ctx.saved_tensors
        return s * y + x * u, (s * y + x * u) * w
class Double(t.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.mark_dirty(x)
        return x.mul_(2)
    @staticmethod
    def backward(ctx, g):
        return 2 * g
    @staticmethod
    def jvp(ctx, s):
        return s.mul_(2)
x = t.tensor([1.0, 2.0, 0.5], dtype=t.float64, requires_grad=True); v = t.tensor([1.0, -1.0, 2.0], dtype=t.float64); f = t.autograd.forward_ad
"""


@pytest.mark.parity
def test_tangents_by_a_jvp_have_derivatives():
    """Also by results that the jvp reads; a forward that writes what it is given does so once."""
    jvp = "(a, b), (c, d) = t.func.jvp(Product.apply, (x * 1, x.sin()), (v, v * x))"
    check({
        **{f"of {z}": f"{jvp}; r = t.autograd.grad({z}.sum(), x, create_graph=True)[0]; r = r.detach(), t.autograd.grad(r.sum(), x)" for z in "abcd"},
        "gradient of a tangent": "r = t.func.grad(lambda z: t.func.jvp(lambda w: Product.apply(w, w.sin())[1].sum(), (z,), (v,))[1])(x.detach())",
        "written": "with f.dual_level():\n    d = f.make_dual(x.detach(), v.clone()) * 1; r = [p.clone() for p in f.unpack_dual(Double.apply(d))]",
    }, JVP)  # fmt: skip


SUBCLASSES = """
class Plain(t.Tensor): pass
class Wrapped(t.Tensor):
    def __init__(self, data):
        super().__init__()
        self._data = data
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        out = func(*[a._data if isinstance(a, cls) else a for a in args], **(kwargs or {}))
        return cls(out) if isinstance(out, t.Tensor) else out
"""
INPUTS = ("Plain(t.ones(2, 3))", "t.ones(2, 3).as_subclass(Plain).requires_grad_()", "t.ones(2, requires_grad=True).clone().as_subclass(Plain)",
          "Wrapped(t.ones(2))", "nn.Parameter(t.ones(2))", "nn.Parameter(t.ones(2), requires_grad=False)")  # fmt: skip


@pytest.mark.parity
def test_an_input_of_a_subclass_that_is_returned_as_it_is_stays_of_its_class():
    ways = {"itself": "x", "a view": "x.view_as(x)", "another": "x * 2", "without derivative": "(ctx.mark_non_differentiable(x), x)[1]"}
    check({
        f"{way}, {x}": f"y = function(lambda ctx, x: {returned}).apply({x}); r = type(y).__name__, y.requires_grad"
        for way, returned in ways.items() for x in INPUTS
    }, BEFORE + SUBCLASSES)  # fmt: skip


@pytest.mark.parity
def test_what_a_hook_unpacks_counts_its_own_changes_in_place():
    pack = "x, other = leaf(2), t.ones(2)\nwith t.autograd.graph.saved_tensors_hooks(lambda v: {}, lambda v: {}):\n    y = function(keep, change).apply(x)\n"
    keep = """
def keep(ctx, x): ctx.save_for_backward(x); return x.sin()
def change(ctx, g):
    (v,) = ctx.saved_tensors
    L.append(v._version); v.add_(1); L.append(v._version)
    return g * v
"""
    hooks = {"another tensor": ("other", "v"), "a copy": ("v.clone().detach()", "v"), "a copy at unpacking": ("v.detach()", "v.clone()")}
    check({
        name: f"{pack.format(*of)}y.sum().backward(); r = L, x._version, other._version, other, x.grad"
        for name, of in hooks.items()
    }, BEFORE + keep)  # fmt: skip


@pytest.mark.parametrize("kept", ["x", "y", "x, y"])
@pytest.mark.parametrize("how", ["save_for_backward", "save_for_forward"])
def test_what_a_function_keeps_is_let_go_without_a_collector(how, kept):
    """No cycle of what was saved and the node keeps a graph: its leaves are free as soon as its results are."""
    code = f"""
class F(t.autograd.Function):
    @staticmethod
    def forward(x):
        return x.exp()

    @staticmethod
    def setup_context(ctx, inputs, output):
        (x,), y = inputs, output
        ctx.{how}({kept})

    @staticmethod
    def backward(ctx, g):
        return g

import gc
gc.disable()
try:
    w = t.ones(2, requires_grad=True)
    v = F.apply(w)
    del v
    t.utils.swap_tensors(w, w)
finally:
    gc.enable()
r = w.detach()
"""
    check({f"{how} {kept}": code})
