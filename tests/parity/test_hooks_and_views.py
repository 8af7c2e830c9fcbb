"""What hooks, retained gradients and `autograd.grad` see, and views whose base changes or that were made without recording."""

from __future__ import annotations

import pytest

import autograd_nb as ag

torch = pytest.importorskip("torch")

from .snippets import check  # noqa: E402

BEFORE = """
def leaf(*s): return t.arange(1., 1 + int(np.prod(s))).reshape(s).requires_grad_()
L = []
def tell(name, factor=None):
    def hook(g):
        L.append(name)
        return None if factor is None else g * factor
    return hook
x = leaf(2); v = x * 2
"""

CAPTURES = {
    "hook": "v.register_hook(tell('a', 10)); r = t.autograd.grad((v * 3).sum(), [x, v]), L",
    "hook, v alone": "v.register_hook(tell('a', 10)); r = t.autograd.grad((v * 3).sum(), [v]), L",
    "hook and retained": "v.register_hook(tell('a', 10)); v.retain_grad(); r = t.autograd.grad((v * 3).sum(), [x, v]), v.grad",
    "retained before the hook": "v.retain_grad(); v.register_hook(tell('a', 10)); (v * 3).sum().backward(); r = x.grad, v.grad",
    "a root that leads to no target": "y = v.sum(); w = leaf(2).sum(); w.register_hook(tell('a')); w.retain_grad(); r = t.autograd.grad([y, w], [x]), "
    "L, w.grad",
    "a root twice that leads to no target": "w = leaf(2).sum(); w.register_hook(tell('a')); w.retain_grad(); "
    "r = t.autograd.grad([w, v.sum(), w], [x]), L, w.grad",
    "a leaf as a root that is no target": "w = leaf(1); w.register_hook(tell('a')); r = t.autograd.grad([w, v.sum()], [x]), L, w.grad",
    "one root that leads to no target": "w = leaf(2).sum(); w.register_hook(tell('a')); w.retain_grad(); w.register_hook(tell('b', 2)); "
    "r = t.autograd.grad(w, [x], allow_unused=True), L, w.grad",
    "one leaf as a root that is no target": "w = leaf(1); w.register_hook(tell('a')); r = t.autograd.grad(w, [x], allow_unused=True), L, w.grad",
    "one result as a root that leads to no target": "a, b = leaf(2, 3).max(1); a.register_hook(tell('a')); "
    "r = t.autograd.grad(a, [x], [t.ones(2)], allow_unused=True), L",
    "a root with several results": "a, b = leaf(2, 3).max(1); a.register_hook(tell('a')); r = t.autograd.grad([a.sum(), v.sum()], [x]), L",
    "a root whose part leads to no target": "w = v * 3; z = (w.sum(), leaf(2).exp()); z[1].register_hook(tell('a')); w.register_hook(tell('b', 2)); "
    "r = t.autograd.grad([z[0], z[1]], [x], [t.tensor(1.), t.ones(2)]), L",
    "a root above a target alone": "w = leaf(2).sum(); w.register_hook(tell('a')); w.retain_grad(); "
    "w.backward(inputs=[x]); r = L, w.grad, x.grad",
    "hook of a leaf": "x.register_hook(tell('a', 10)); r = t.autograd.grad((x * 3).sum(), [x])",
    "inputs": "v.register_hook(tell('a', 10)); x.register_hook(tell('b', 7)); (v * 3).sum().backward(inputs=[x, v]); r = x.grad, v.grad",
    "prehook": "v.grad_fn.register_prehook(lambda g: (g[0] * 10,)); r = t.autograd.grad((v * 3).sum(), [x, v])",
    "prehook, v alone": "v.grad_fn.register_prehook(lambda g: (g[0] * 10,)); r = t.autograd.grad((v * 3).sum(), [v])",
    "prehook, hook and retained": "v.grad_fn.register_prehook(lambda g: (g[0] * 10,)); v.register_hook(lambda g: g + 1); v.retain_grad()\n"
    "r = t.autograd.grad((v * 3).sum(), [x, v]), v.grad",
    "the same, v alone": "v.grad_fn.register_prehook(lambda g: (g[0] * 10,)); v.register_hook(lambda g: g + 1); v.retain_grad()\n"
    "r = t.autograd.grad((v * 3).sum(), [v]), v.grad",
    "posthook": "v.grad_fn.register_hook(lambda gi, go: (gi[0] * 10, *gi[1:])); r = t.autograd.grad((v * 3).sum(), [x, v])",
    "root": "y = (x * 3).sum(); y.register_hook(tell('a', 10)); r = t.autograd.grad(y, [x, y])",
    "several outputs": "w = leaf(2, 2); a, b = w.unbind(); a.register_hook(tell('a', 10)); r = t.autograd.grad((a * b).sum(), [w, a, b])",
    "order": "v.retain_grad(); v.register_hook(tell('a')); v.grad_fn.register_prehook(tell('pre')); x.register_hook(tell('x'))\n"
    "x.register_post_accumulate_grad_hook(tell('post')); v.sum().backward(); r = L",
    "recorded": "v.register_hook(tell('a', 10)); g, h = t.autograd.grad((v * v).sum(), [x, v], create_graph=True)\n"
    "r = g, h, t.autograd.grad(g.sum() + h.sum(), x)",
    "materialized": "z = leaf(3); a, b = t.autograd.grad((x * x).sum(), [x, z], create_graph=True, materialize_grads=True); r = a, b, b.is_leaf",
    "materialized, not recorded": "z = leaf(3); r = t.autograd.grad((x * x).sum(), [x, z], materialize_grads=True)",
}

REWRITTEN = {
    "in place after a hook": "v.register_hook(tell('a', 10)); v.mul_(3); r = t.autograd.grad(v.sum(), [x, v])",
    "in place between hooks": "v.register_hook(tell('a', 10)); v.mul_(3); v.register_hook(tell('b', 2)); v.sum().backward(); r = x.grad, L",
    "in place after retain_grad": "v.retain_grad(); v.mul_(3); v.sum().backward(); r = x.grad, v.grad, v.retains_grad",
    "retained twice": "v.retain_grad(); v.mul_(2); v.retain_grad(); v.add_(1); v.sum().backward(); r = v.grad, x.grad",
    "hook, base changed": "w = v[1:]; w.register_hook(tell('a', 10)); v.mul_(2); w.sum().backward(); r = L, x.grad",
    "hook, base changed and used": "w = v[1:]; w.register_hook(tell('a', 10)); v.mul_(2); v.sum().backward(); r = L, x.grad",
    "hook, used before": "w = v[1:]; z = w * 2; w.register_hook(tell('a', 10)); v.mul_(2); (z.sum() + w.sum()).backward(); r = L, x.grad",
    "hook, view changed": "w = v[1:]; w.register_hook(tell('a', 10)); w.mul_(2); w.sum().backward(); r = L, x.grad",
    "hook, view changed, base used": "w = v[1:]; w.register_hook(tell('a', 10)); w.mul_(2); v.sum().backward(); r = L, x.grad",
    "hook of the base, view changed": "w = v[1:]; v.register_hook(tell('a', 10)); w.mul_(2); v.sum().backward(); r = L, x.grad",
    "hook of the base after": "w = v[1:]; w.mul_(2); v.register_hook(tell('a', 10)); v.sum().backward(); r = L, x.grad",
    "retained, base changed": "w = v[1:]; w.retain_grad(); v.mul_(2); (w * 3).sum().backward(); r = w.grad, x.grad, w.retains_grad",
    "retained, used before": "w = v[1:]; z = w * 5; w.retain_grad(); v.mul_(2); (z.sum() + (w * 3).sum()).backward(); r = w.grad, x.grad",
    "retained, base used": "w = v[1:]; w.retain_grad(); v.mul_(2); (v * 3).sum().backward(); r = w.grad, x.grad",
    "retained, view changed": "w = v[1:]; w.retain_grad(); w.mul_(2); (w * 3).sum().backward(); r = w.grad, x.grad, w.retains_grad",
    "retained base, view changed": "w = v[1:]; v.retain_grad(); w.mul_(2); (v * 3).sum().backward(); r = v.grad, x.grad, v.retains_grad",
    **{
        f"second hook {how}": f"w = v[1:]; h = w.register_hook(tell('a', 2)); {how}; w.register_hook(tell('b', 3)); "
        "w.sum().backward(); r = L, x.grad"
        for how in ("v.mul_(2)", "v.mul_(2); w.grad_fn", "w.mul_(2)", "v.mul_(2); h.remove()", "v.mul_(2); w.register_hook(tell('c')); v.mul_(2)",
                    "v[1:].mul_(2)", "v.mul_(2); z = w * 2")
    },
    "by a view of before": "w = v[1:]; v.mul_(2); r = t.autograd.grad((v * v).sum(), [w], allow_unused=True)",
}

UNRECORDED = {
    "of a leaf": "with t.no_grad(): w = x.view(2)\nr = w.requires_grad, w.is_leaf, w.grad_fn is None, w._is_view()",
    "of a result": "with t.no_grad(): w = v[1:]\nr = w.requires_grad, w.is_leaf, w.grad_fn is None, w._base is v",
    "changed": "with t.no_grad(): w = v[1:]\nw.mul_(2)",
    "of a leaf, changed": "with t.no_grad(): w = x[1:]\nw.mul_(2); r = w, x",
    "changed within": "with t.no_grad():\n    w = v[1:]\n    w.mul_(2)\nr = v, w",
    "base changed": "with t.no_grad(): w = v[1:]\nv.mul_(2); r = w + 1",
    "base changed, grad_fn": "with t.no_grad(): w = v[1:]\nv.mul_(2); w.grad_fn",
    "made to require grad": "with t.no_grad(): w = v[1:]\nw.requires_grad_(); (w * w).sum().backward(); r = w.grad, w.is_leaf",
    "of no history, changed": "z = t.zeros(3)\nwith t.no_grad(): w = z[1:]\nw.mul_(2); r = w, z",
    "of no history, changed by what has one": "z = t.zeros(3)\nwith t.no_grad(): w = z[1:]\nw.mul_(v[1:])",
    "of no history, copied from what has one": "z = t.zeros(3)\nwith t.no_grad(): w = z[1:]\nw.copy_(v)",
    "of no history, base changed": "z = t.zeros(2)\nwith t.no_grad(): w = z[1:]\nz.mul_(v); r = w + 1",
    "view of a view": "with t.no_grad(): w = v[1:]\nu = w[:]; r = u._base is v\nu.mul_(2)",
    "assigned": "with t.no_grad(): w = v[1:]\nw[0] = 1.",
    "in inference mode": "with t.inference_mode(): w = v[1:]\nr = w.requires_grad, w.is_inference()",
    "in inference mode, changed": "with t.inference_mode(): w = v[1:]\nw.mul_(2)",
    "several, base changed": "a, b = v.unbind(); v.mul_(2); r = a + 1",
    "several, base changed, read without recording": "a, b = v.unbind(); v.mul_(2)\nwith t.no_grad(): r = a + 1",
    "several of no history, changed": "a, b = t.zeros(2).unbind(); a.mul_(v.sum())",
    "chunks of no history, base changed": "z = t.zeros(2); a, b = z.chunk(2); z.mul_(v); r = a + 1",
}


#: views whose memory is changed without recording, and in-place ops that only move a view
MOVED = {
    f"{view}; {change}": f"b = leaf(2, 3).clone(){'.detach().requires_grad_()' if leaf else ''}; {view}\n{change}\n"
    "r = (w * 2).requires_grad, (b * 2).requires_grad; s = (w * w).sum(); s.backward(); r = r, b.grad if b.is_leaf else None, w"
    for leaf in (True, False)
    for view in ("w = b[1:]", "w = b[...]", "w, u = b.split(1)", "w, u = b.unbind()", "w, u = b.chunk(2)", "w = b.view(3, 2)", "w = b[:][1:]",
                 "w = b.detach()")
    for change in (
        "with t.no_grad(): b.mul_(2)", "with t.no_grad(): w.mul_(2)", "b.detach().mul_(2)", "w.detach().zero_()", "b.data.mul_(2)",
        "w.transpose_(0, -1)", "w.unsqueeze_(0)", "w.squeeze_(0)", "w.as_strided_((2,), (1,))", "w.mul_(2)", "b.mul_(2)", "b.unsqueeze_(0)",
        "with t.no_grad(): w.unsqueeze_(0)", "w.fill_(1.)", "w.detach_()", "with t.no_grad(): b[0] = 1.", "w[0] = 1.",
    )
}  # fmt: skip
MOVED["view of a view that requires grad"] = "b = t.arange(6.).view(2, 3).requires_grad_(); w = b[...]\nw.mul_(2)"


#: what is asked of views whose base was changed, also behind autograd's back, and of what has a history
ASKED = {
    f"{view}; {change}; {ask}": f"v = x * 1; {view}\n{change}\n{ask}"
    for view in ("w, u = v.unbind()", "with t.no_grad(): w = v[1:]", "w = v[1:]", "z = t.zeros(2); w = z[1:]; z.mul_(v)", "w = v")
    for change in ("", "v.detach().add_(1)", "v.mul_(2)")
    for ask in (
        *(f"r = w.{name}" for name in (
            "is_leaf", "requires_grad", "grad_fn is None", "output_nr", "_version", "_is_view()", "_base is None", "retain_grad()", "retains_grad",
            "requires_grad_().requires_grad", "requires_grad_(False).requires_grad", "detach()", "tolist()", "clone()", "view(-1)", "detach_().requires_grad",
        )),
        "w.requires_grad = True; r = w.requires_grad", "w.requires_grad = False; r = w.requires_grad", "r = len(repr(w)) > 0, 'Invalid' in repr(w)",
        "with t.no_grad(): r = w.grad_fn is None", "with t.no_grad(): r = w.is_leaf", "with t.no_grad(): r = w * 2",
        "r = t.autograd.grad(x.sum(), [w], allow_unused=True)",
    )
}  # fmt: skip

#: gradients that require grad themselves, through ops that pass them on and ops that do not
GIVEN = {
    f"{op}; {use}": f"a, b = leaf(2, 2), leaf(2, 2); h = leaf(2, 2); y = {op}; g = (h * h).sum() * y.detach(); T = lambda g: L.append(g.requires_grad)\n"
    f"{use}"
    for op in (
        "a", "a + b", "t.add(a, b, alpha=2)", "a.view(4)", "a.t()", "a.clone()", "a * b", "t.cat([a, b])", "t.where(a > 2, a, b)", "a + b[0]",
        "a.relu()", "a.double()", "a.clone().copy_(b)", "a + a", "t.addmm(a, b, b)", "a.unsqueeze(0)",
    )
    for use in (
        "r = t.autograd.grad(y, [a], g); r = r, t.autograd.grad(r[0].sum(), h, allow_unused=True) if r[0].requires_grad else None",
        "r = t.autograd.grad(y, [y], g); r = r, t.autograd.grad(r[0].sum(), h)",
        "r = t.autograd.grad(y, [y, a], g, create_graph=True); r = r, t.autograd.grad(r[1].sum(), h)",
        "a.register_hook(T); b.register_hook(T); y.register_hook(T); y.retain_grad(); y.backward(g, retain_graph=True); r = L, a.grad, b.grad, y.grad",
        "y.grad_fn and y.grad_fn.register_hook(lambda gi, go: L.append(go[0].sum())); y.backward(g); y.detach().add_(1); r = L, a.grad, g",
        "y.backward(g, retain_graph=True); y.backward(g, inputs=[a]); r = a.grad, g.requires_grad, a.grad.requires_grad",
        "a.register_post_accumulate_grad_hook(lambda p: L.append(p.grad.requires_grad)); y.backward(g); r = L, a.grad",
        "(y * 1).backward(g); a.grad.zero_(); r = g, a.grad",
    )
}  # fmt: skip


@pytest.mark.parity
@pytest.mark.parametrize(
    "programs", (CAPTURES, REWRITTEN, UNRECORDED, MOVED, ASKED, GIVEN), ids=("captures", "rewritten", "unrecorded", "moved", "asked", "given")
)
def test_programs(programs):
    check({name: f"{BEFORE}{code}" for name, code in programs.items()})


@pytest.mark.parity
@pytest.mark.parametrize("made", ("b = t.ones(3); v = b[:2]", "b = t.ones(3); v = b[:2].view(2, 1)", "b = t.ones(3); v = b[:2]; v.requires_grad_()"))
def test_a_base_that_requires_grad_after_a_change_reaches_its_views(made):
    changed = "with t.no_grad(): b.mul_(2)"
    then = "b.requires_grad_(); y = (v * 3).sum(); y.backward(); r = v.requires_grad, v.is_leaf, y.requires_grad, b.grad"
    check({used: f"{made}\n{changed}\n{used}\n{then}" for used in ("v * 2", "v.requires_grad", "v.grad_fn", "v.is_leaf", "b.sum()")})


def exchanged(make, shape, use, dtype="float32"):
    def run(t):
        w = t.ones(4, 3, requires_grad=True)
        y = make(w)
        early = (y * 2 if "else" in use else y).sum() if "before" in use else 0
        y.data = t.ones(shape, dtype=getattr(t, dtype))
        USES[use](y, early)
        return w.grad

    return run


MAKERS = {"computed": lambda w: w * 2, "view": lambda w: w.view(4, 3), "one of several": lambda w: w.sort()[0], "leaf": lambda w: w}
USES = {
    "used after": lambda y, early: (y * 3).sum().backward(),
    "used before": lambda y, early: early.backward(),
    "used before and after": lambda y, early: (early + y.sum()).backward(),
    "used twice": lambda y, early: ((y * 3).sum() + (y * y).sum()).backward(),
    "accumulated": lambda y, early: ((y * 3).sum().backward(retain_graph=True), (y * 2).sum().backward()),
    "itself": lambda y, early: y.backward(y.detach()),
    "nothing else before": lambda y, early: early.backward(),
}
USES |= {
    f"{use}, recorded": lambda y, early, of=of: of(y, early).backward(create_graph=True)
    for use, of in {
        "used twice": lambda y, early: (y * 3).sum() + (y * y).sum(),
        "used before and after": lambda y, early: early + y.sum(),
        "used thrice": lambda y, early: early + (y * 3).sum() + (y * y).sum(),
    }.items()
}  # fmt: skip
USES["accumulated, recorded"] = lambda y, early: [(y * k).sum().backward(create_graph=True) for k in (3, 2)]
EXCHANGED = {
    f"{name}, {shape}, {use}": exchanged(make, shape, use)
    for name, make in MAKERS.items()
    for shape in ((2,), (3,), (1,), (0,), (4, 1), (3, 4), (2, 5), (5, 4, 3), (1, 4, 3), (4, 3))
    for use in USES
}
EXCHANGED |= {
    f"{name}, {shape} of float64, {use}": exchanged(make, shape, use, "float64")
    for name, make in MAKERS.items() if name != "leaf" for shape in ((4, 3), (3,), (5, 4, 3)) for use in USES
}  # fmt: skip


@pytest.mark.filterwarnings("ignore:Using backward")
@pytest.mark.parametrize("name", EXCHANGED)
def test_gradients_of_tensors_whose_data_has_another_shape(name):
    """They fit the node that the tensor came from, or are refused; none is read past its end."""
    answers = []
    for t in (ag, torch):
        try:
            found = EXCHANGED[name](t).detach().numpy()
            answers.append((found.tolist(), found.dtype))
        except RuntimeError:
            answers.append("RuntimeError")
    assert answers[0] == answers[1]


# ---------------------------------------------------------------------------------------- what PyTorch's own tests asked for
def _refusals(lib):
    """Changes in place of views whose history nobody can say, and where a view's own text names it."""

    class One(lib.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.view_as(x)

        @staticmethod
        def backward(ctx, g):
            return g

    class Two(lib.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.view_as(x), x.view_as(x)

        @staticmethod
        def backward(ctx, g, h):
            return g + h

    def base(requires_grad=True):
        return lib.ones(2, 2, requires_grad=requires_grad).clone()

    def written(view, value=1.0):
        view += value

    def after(x, view):
        x += 1
        return view.grad_fn

    def inside(x, mode):
        with mode:
            return x.view(-1)

    def leaf(mode):
        y = inside(lib.zeros(2), mode)
        written(y.requires_grad_(True).view(2))

    leaves = lib.ones(2, 2, requires_grad=True)
    yield "function", lambda: written(One.apply(base()))
    yield "function of what needs no gradient", lambda: written(One.apply(base(False)), leaves)
    yield "function of two outputs", lambda: written(Two.apply(base())[0])
    yield "two outputs without gradients", lambda: written(Two.apply(base(False))[0], leaves)
    yield "function's base", lambda: after(x := base(), One.apply(x))
    yield "unbind", lambda: written(base().unbind()[0])
    yield "split", lambda: written(base().split(1)[1])
    yield "unbind's base", lambda: after(x := base(), x.unbind()[0])
    for mode in (lib.no_grad(), lib.inference_mode()):
        yield "untracked", lambda mode=mode: written(inside(base(), mode))
        yield "untracked base", lambda mode=mode: after(x := base(), inside(x, mode))
        yield "view of a view", lambda mode=mode: leaf(mode)


def test_refused_views_are_told_in_the_same_words():
    for (name, mine), (_, other) in zip(_refusals(ag), _refusals(torch), strict=True):
        texts = []
        for f in (mine, other):
            with pytest.raises(RuntimeError) as refused:
                f()
            texts.append(str(refused.value))
        if name == "function's base":  # which is seen only where it is asked for: one evaluates the view first
            texts = [t.split(". ", 1)[1] for t in texts]
        assert texts[0] == texts[1], name


def test_a_view_without_a_history_can_be_printed():
    for lib in (ag, torch):
        x = lib.ones(1, requires_grad=True).clone()
        with lib.no_grad():
            view = x.view(-1)
        x += 1
        assert repr(x) == "tensor([2.], grad_fn=<AddBackward0>)"
        assert repr(view) == "tensor([2.], grad_fn=<Invalid>)"


@pytest.mark.parametrize("extra", ["__enter__", "__exit__"])
def test_hooks_that_enter_and_leave_contexts_do_so_for_themselves(extra):
    def counts(lib):
        packed = []
        context = lib.autograd.graph.saved_tensors_hooks(lambda x: packed.append(x) or x, lambda x: (getattr(context, extra)(), x)[1])
        x = lib.ones(3, requires_grad=True)
        for _ in range(3):
            with context:
                x.sin().sum().backward()
        before, later = len(packed), []
        (x * x).sum().backward()
        with lib.autograd.graph.saved_tensors_hooks(lambda t: later.append(t) or t, lambda t: t):
            (x * x).sum().backward()
        return before, len(packed) - before, len(later)

    assert counts(ag) == counts(torch)
    ag.autograd.graph.saved_tensors_hooks(lambda x: x, lambda x: x).__exit__()  # as often as one likes


def test_gradcheck_moves_the_tensors_it_is_given():
    """So that a function may read a parameter elsewhere than in its arguments."""
    for lib in (ag, torch):
        w = lib.arange(6.0, dtype=lib.float64).reshape(2, 3).requires_grad_()
        for options in ({}, {"fast_mode": True}):
            assert lib.autograd.gradcheck(lambda _: (w * w).sum(), (w,), **options)
        assert not lib.autograd.gradcheck(lambda _: (w.detach() * w).sum(), (w,), raise_exception=False)
        assert w.tolist() == [[0, 1, 2], [3, 4, 5]]
        assert w._version == 0


CHANGES = """
v.masked_scatter_(m, v.clone()) | v.masked_scatter_(m, w) | v.masked_fill_(m, w[0]) | v.index_copy_(0, i, w[:1]) | v.index_add_(0, i, w[:1])
v.index_fill_(0, i, 2.) | v.index_put_((i,), w[:1]) | v.index_reduce_(0, i, w[:1], 'mean') | v.put_(i, w[:1]) | v.scatter_(0, i, w[:1]) | v.mul_(w)
v.scatter_add_(0, i, w[:1]) | v.scatter_reduce_(0, i, w[:1], 'amax') | v.cumsum_(0) | v.cumprod_(0) | v.addcmul_(w, w) | v.lerp_(w, 0.5) | v.clamp_(w)
v.renorm_(2, 0, 1.) | v.addmv_(t.eye(3), w) | v.copy_(w) | v[0] = w[0] | v[1:3] = w[:2] | v[m] = w[:2] | v[0] = 2. | v.select(0, 0).mul_(3)
v.view(-1).mul_(w) | v.unsqueeze(0).add_(w) | v[1:].mul_(w[0])
"""


@pytest.mark.parametrize("view", ["y[:]", "y.view(3, 1)[:, 0]", "y.expand(3)"])
@pytest.mark.parametrize("factor", ["10", "1"])
def test_the_gradient_of_what_is_changed_passes_by_the_hooks_of_a_view(view, factor):
    """Which were those of its old contents: whichever op changes it, through whichever view of it."""
    before = f"""
w = t.ones(3, requires_grad=True); m = t.tensor([True, False, True]); i = t.tensor([1]); L = []
x = (t.arange(3.) / 4 + 0.1).requires_grad_(); y = x * 1; v = {view}
v.register_hook(lambda g: (L.append(g.tolist()), g * {factor})[1])
"""
    check({
        f"{change}, {loss}": f"{change}; r = *t.autograd.grad(({loss}).sum(), (x, w), allow_unused=True), len(L)"
        for line in CHANGES.strip().splitlines() for change in map(str.strip, line.split("|")) for loss in ("y * 1000 + v", "v * 1")
    }, before)  # fmt: skip


SHAPED = {
    "squeeze_": lambda v: v.squeeze_(0), "unsqueeze_": lambda v: v.unsqueeze_(0), "t_": lambda v: v.t_(), "transpose_": lambda v: v.transpose_(0, 1),
    "swapaxes_": lambda v: v.swapaxes_(0, 1), "swapdims_": lambda v: v.swapdims_(0, 1), "as_strided_": lambda v: v.as_strided_((3,), (1,)),
}  # fmt: skip


@pytest.mark.parametrize("view", [False, True], ids=["no view", "view"])
@pytest.mark.parametrize("name", SHAPED)
def test_hooks_stay_where_a_tensor_gets_another_shape_in_place(name, view):
    """A view forgot the hook that it had: the gradient was another. What is changed afterwards is changed as in PyTorch."""

    def results(lib):
        for change in (None, "base", "view"):
            x = lib.ones(1, 3, requires_grad=True)
            y = x * 2
            v = y.view(1, 3) if view else y
            seen = []
            v.register_hook(lambda g, seen=seen: (seen.append(tuple(g.shape)), g * 10)[1])
            SHAPED[name](v)
            if change is not None:
                (y if change == "base" else v).mul_(3)
            v.sum().backward()
            yield seen, x.grad.tolist(), tuple(v.shape), v._version

    assert list(results(ag)) == list(results(torch))


#: views of a tensor of 3 × 4, what its .data becomes, and who is changed in place afterwards
LOOKS = {
    "row": "w[1]", "column": "w[:, 2]", "corner": "w[1:, 1:3]", "windows": "w.as_strided((3, 2), (4, 1), 5)",
    "of a view": "w[1:].t()[1:3]", "flat": "w.view(-1)[5:9]",
}  # fmt: skip
EXCHANGES = {
    "same": "t.ones(3, 4).double() * 2", "a part of more": "t.ones(6, 4).double()[2:5]", "transposed": "t.ones(4, 3).double().t()",
    "less": "t.ones(2).double()",
}  # fmt: skip


@pytest.mark.parametrize("exchange", EXCHANGES)
def test_views_of_a_tensor_whose_data_was_exchanged(exchange):
    """Where a view lies in its base was told from addresses: those of other memory gave other elements, or none that there are."""
    programs = {}
    for name, view in LOOKS.items():
        for kind, made in (("leaf", "w = x"), ("inner", "w = x * 1")):
            for who in ("w", "v") if kind == "inner" else ("w",):
                change = f"{who}.mul_(3)" if kind == "inner" else "exec('with t.no_grad(): w.mul_(3)')"
                programs[f"{name} {kind} {who}"] = (
                    f"x = t.arange(12.).double().view(3, 4).clone().requires_grad_(); {made}; v = {view}; w.data = {EXCHANGES[exchange]}; {change}\n"
                    "(v * v).sum().backward(); r = x.grad, v, v.requires_grad"
                )
    if exchange == "less":  # PyTorch refuses gradients of another shape than the leaf's, which here are of the shape that it has now
        programs = {name: text for name, text in programs.items() if "leaf" not in name}
    check(programs, BEFORE)


@pytest.mark.parametrize("mode", ("no_grad", "inference_mode", "enable_grad"))
def test_loose_views_take_other_data(mode):
    """What was made without recording has no node that would know a shape: its gradients are lost, whatever shape they have."""
    looks = ("x[1:]", "x.view(6)", "x.unbind()[0]", "x.detach()", "z[1:]", "z.unbind()[0]")
    uses = ("r = v, v.dtype, v.requires_grad, v.is_leaf, v._version, v._is_view()", "r = v * 2",
            "s = (v * v).sum()\nif s.requires_grad: s.backward()\nr = s, x.grad")  # fmt: skip
    kinds = ("double", "half") if mode != "enable_grad" else ()
    check({
        f"{look}, {data}, {use}": f"with t.{mode}(): v = {look}\nv.data = {data}\n{use}"
        for look in looks for data in ("t.ones(2)", "t.ones(4, 5)", "t.ones(0)", *(f"t.ones(2).{kind}()" for kind in kinds)) for use in uses
    }, "x = t.ones(2, 3, requires_grad=True); z = x * 2")  # fmt: skip


@pytest.mark.parametrize("change", ("v.detach().add_(1)", "z.detach().mul_(2)", "t.no_grad().__enter__(); v.add_(1); t.set_grad_enabled(True)"))
def test_loose_views_may_change_where_nothing_else_needs_them(change):
    """No gradient goes on from a node whose operands are loose views: what it has kept is not read."""
    uses = ("y = v * v", "y = v.exp()", "y = 1 / (v * v)", "y = v @ v.T", "y = (v * v).sum(0)", "y = v * x[1:]", "y = t.cat([v, x]).square()")
    ends = ("y.sum().backward(); r = x.grad", "r = t.autograd.grad(y.sum(), [x], allow_unused=True)",
            "h = []; y.register_hook(h.append); y.sum().backward(); r = h")  # fmt: skip
    before = "x = t.ones(2, 3, requires_grad=True); z = x * 2\nwith t.no_grad(): v = z[1:]"
    check({f"{use}, {end}": f"{use}; {change}; {end}" for use in uses for end in ends}, before)


@pytest.mark.parametrize("source", ("t.ones(2, 3)", "t.ones(3, 2)", "t.ones(5)", "x.detach()", "t.ones(2, 3).untyped_storage(), 0, (2, 2)", ""))
def test_tensors_that_are_given_other_memory_count_it_as_a_change(source):
    """The count goes on from where it was, and neither moves nor follows that of the memory it got; what was saved is refused, hooks of views stay."""
    looks = ("v = x[1:]", "v = x.view(6)", "v = x.unbind()[0]", "v = x[1:]; v.register_hook(lambda g: g * 10)", "v = None", "x.add_(1); v = x.detach()")
    whole = "s = (x * x).sum()\nif s.requires_grad: s.backward()\nr = s, x.grad, x._version" if source in ("t.ones(2, 3)", "x.detach()") else "r = 1"
    programs = {}
    for look in looks:
        after = [whole, "r = x, x._version, x.is_leaf", "x.mul_(2); r = x, x._version, z._version", "z.mul_(2); r = x._version, z._version"]
        before = f"x = x.detach().clone(); {look}; z = t.ones(2, 3)\n{{}}x.set_({source.replace('t.ones(2, 3)', 'z')})"
        programs |= {f"{look}, {mode}, {a}": before.format(mode) + f"\n{a}" for mode in ("", "with t.no_grad(): ") for a in after}
        if "add_" not in look:
            programs |= {
                f"{look}, {used}": f"{look}; y = {used}\nwith t.no_grad(): x.set_({source})\ny.sum().backward(); r = x.grad, x._version"
                for used in ("x * x", "x.exp()", "x + 1", "x[:1] * x[1:]")
            }
    check(programs, "x = t.arange(1., 7.).reshape(2, 3).requires_grad_()")


def test_leaves_that_are_results_by_now_take_no_gradient():
    """What was computed from a leaf that an op in place has made a result of others since may not be differentiated."""
    made = ("b = t.ones(3, 4); v = b[0].requires_grad_(); c = b[1]", "v = c = t.ones(4).requires_grad_()", "b = t.ones(3, 4); v = b[0].requires_grad_(); c = b")
    changes = ("v.requires_grad_(False)\nc.mul_(w)", "c.mul_(w)", "v.requires_grad_(False)", "c.mul_(2)")
    ends = ("y.backward(); r = v.grad", "r = t.autograd.grad(y, [v], allow_unused=True)",
            "y.backward(inputs=[v]); r = v.grad", "y.backward(inputs=[u]); r = u.grad", "r = v.is_leaf")  # fmt: skip
    check({
        f"{m}, {c}, {e}": f"{m}; u = t.ones(4, requires_grad=True); y = (v * 2 + u).sum()\nwith t.enable_grad():\n    " + c.replace("\n", "\n    ") + f"\n{e}"
        for m in made for c in changes for e in ends
    }, "w = t.ones(4, requires_grad=True)")  # fmt: skip


@pytest.mark.parametrize("call", (
    "t.as_strided_scatter(x, s, (2, 2), (1, 2), 0)", "t.slice_scatter(x, s, 0, 0, 2)", "t.select_scatter(x, s[0], 0, 0)", "t.diagonal_scatter(x, s[0])",
))  # fmt: skip
def test_no_gradient_is_lost_in_a_copy_of_integers(call):
    """What takes a source of another dtype refuses one that requires grad, where the result cannot."""
    check({
        f"{x}, {s}, {after}, {mode}": f"x = t.ones(2, 2).to(t.{x}); s = (t.ones(2, 2) * 2).to(t.{s}){after}\nwith t.{mode}(): r = {call}"
        for x in ("int64", "bool", "uint8", "float32") for s in ("float64", "float32", "int32") for after in ("", ".requires_grad_()")
        if not (s == "int32" and after) for mode in ("enable_grad", "no_grad", "inference_mode")
    })  # fmt: skip


def test_what_a_view_between_retains_is_not_touched_by_changes_of_its_views():
    """A change of a view is one of the base, past the views between, whose gradients it does not go through."""
    middles = ("v", "v.view(-1)", "v[:1]", "v.view(2, 1)[0]")
    befores = ("", "m.sum().backward(retain_graph=True)", "m.register_hook(tell('m', 3))")
    changes = ("w = m.view(-1); w.mul_(-1)", "w = m[:1]; w.mul_(2)", "w = m.view(-1)[:1]; w.retain_grad(); w.exp_()", "w = m; w.mul_(3)",
               "w = m[:1]; w[0] = x[1]")  # fmt: skip
    check({
        f"{m}, {b}, {c}, {end}": f"m = {m}; m.retain_grad(); {b}\n{c}; {end}.sum().backward(retain_graph=True); m.sum().backward()\n"
        "r = m.grad, w.grad if w.retains_grad else 0, x.grad, L"
        for m in middles for b in befores for c in changes for end in ("w", "v", "m")
    }, BEFORE)  # fmt: skip


def test_a_view_that_is_changed_by_itself_is_read_with_its_hooks():
    """The gradient of what is overwritten goes past the view to the base, that of what is read by way of the view."""
    changes = ("v += v", "v.add_(v, alpha=2)", "v.sub_(v)", "v.add_(v * 2)", "v.copy_(v * 3)", "v.add_(b)", "b.add_(v)", "v.view(-1).add_(v)", "v[0] = v[1]")
    check({
        f"{c}, {hook}, {end}": f"{hook}; {c}; {end}.sum().backward(); r = x.grad, v.grad if v.retains_grad else 0, L"
        for c in changes for hook in ("v.register_hook(tell('v', 3))", "v.retain_grad()") for end in ("b", "v")
    }, f"{BEFORE}b = v; v = b.view(-1)")  # fmt: skip


def test_a_batch_of_gradients_is_retained_by_nobody():
    """PyTorch leaves a batch that nothing can be done with; here what a tensor retains is as it was."""
    x = ag.ones(2, requires_grad=True)
    y = x * 1
    y.retain_grad()
    y.sum().backward(retain_graph=True)
    (g,) = ag.autograd.grad(y, x, ag.eye(2) * 3, is_grads_batched=True, retain_graph=True)
    assert g.tolist() == [[3, 0], [0, 3]] and y.grad.tolist() == [1, 1]
    y.sum().backward()
    assert y.grad.tolist() == [2, 2]
