"""Tangents by the jvp of a user's `Function`: of results that are inputs, views of them, or inputs changed in place; and changed views in graphs."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")

from .snippets import check

BEFORE = """
from importlib import import_module
fw, ck = import_module(t.__name__ + ".autograd.forward_ad"), import_module(t.__name__ + ".utils.checkpoint")
def function(forward, backward=lambda ctx, *g: (g[0], g[0]), jvp=None):
    rules = {"forward": staticmethod(forward), "backward": staticmethod(backward), "jvp": staticmethod(jvp)}
    return type("F", (t.autograd.Function,), {k: v for k, v in rules.items() if v.__func__ is not None})
def dirty(ctx, x, *rest): ctx.mark_dirty(x.mul_(2)); return x
def tangent(x):
    values = fw.unpack_dual(x)[1]
    return values if values is None else values.detach()
"""

#: what a jvp gives for what a forward returns, where the input or its tangent is a view
TANGENTS = {
    f"{forward}; {jvp}; {made}; {moved}": f"moved = {moved}\nwith fw.dual_level():\n    x = {made}\n"
    f"    out = function({forward}, jvp={jvp}).apply(x)\n"
    "    r = [fw.unpack_dual(out)[0].detach(), tangent(out), out is x, fw.unpack_dual(x)[0].detach(), tangent(x)]"
    for forward in ("lambda ctx, x: x.view_as(x)", "lambda ctx, x: x[:1]", "lambda ctx, x: x", "dirty", "lambda ctx, x: x * 2")
    for jvp in (
        "lambda ctx, a: a", "lambda ctx, a: a.view_as(a)", "lambda ctx, a: a[:1]", "lambda ctx, a: a * 2", "lambda ctx, a: a.mul_(2)",
        "lambda ctx, a: a.detach()",
        "lambda ctx, a: a.mul_(2).clone()", "lambda ctx, a: a.clone().view_as(a)", "lambda ctx, a: a.clone()[:1]",
    )
    for made in ("fw.make_dual(t.ones(2), moved)", "fw.make_dual(t.ones(2), moved).view(2)", "fw.make_dual(t.ones(2, requires_grad=True) * 1, moved)")
    for moved in ("t.tensor([1., 3.])", "t.tensor([[1., 3.]])[0]")
}  # fmt: skip
#: an input that is changed in place has its tangent changed; one that had none gets it
CHANGED = {
    "no tangent of its own": "a = t.ones(2)\nwith fw.dual_level():\n"
    "    b = fw.make_dual(t.ones(2), t.tensor([1., 3.]))\n"
    "    f = function(lambda ctx, x, y: ctx.mark_dirty(x.add_(y)) or x, jvp=lambda ctx, s, u: s.add_(u))\n"
    "    out = f.apply(a, b); r = [out is a, tangent(out), tangent(a), a.detach()]",
    "no tangent returned": "with fw.dual_level():\n    function(dirty, jvp=lambda ctx, a: None).apply(fw.make_dual(t.ones(2), t.ones(2)))",
}

#: a changed input among several results
SEVERAL = {
    f"{forward}; {made}; {grads}; {mode}": f"a, w = t.ones(2, requires_grad={grads[0]}), t.ones(2, requires_grad={grads[1]})\nx = {made}\n"
    f"with t.set_grad_enabled({mode}): y = function({forward}).apply(x, w)\n"
    "r = [x.detach(), x.requires_grad]"
    for forward in (
        "dirty", "lambda ctx, x, w: (dirty(ctx, x), x * w)", "lambda ctx, x, w: (dirty(ctx, x), 5, None)",
        "lambda ctx, x, w: (dirty(ctx, x), ctx.mark_non_differentiable(w) or w)",
    )
    for made in ("a.clone()", "a.clone().view_as(a)", "a.clone()[:]")
    for grads in ((True, True), (False, True), (True, False), (False, False))
    for mode in (True, False)
}  # fmt: skip

#: a reentrant checkpoint whose results do not require grad
CHECKPOINTS = {
    f"{body}; {use}": f"m = nn.Linear(2, 2)\nt.manual_seed(0)\nfor p in m.parameters(): p.data.fill_(0.5)\ndef quiet(x):\n    with t.no_grad(): return m(x)\n"
    f"a = t.ones(2, requires_grad=True)\ny = ck.checkpoint(lambda x: {body}, a, use_reentrant=True)\n{use}"
    for body in ("quiet(x)", "(quiet(x), 3)", "(quiet(x), x * 2)", "3", "quiet(x).long()", "x * 2", "x.detach()")
    for use in (
        "r = y[1] if isinstance(y, tuple) else y", "y = y[0] if isinstance(y, tuple) else y; (y + a).sum().backward(); r = a.grad",
        "y = y[-1] if isinstance(y, tuple) else y; y += a; y.sum().backward(); r = a.grad", "y.sum().backward(); r = a.grad",
    )
}  # fmt: skip

@pytest.mark.parity
def test_tangents_of_inputs_and_views():
    check({**TANGENTS, **CHANGED}, BEFORE)


@pytest.mark.parity
def test_changed_views_among_several_results():
    check(SEVERAL, BEFORE)


@pytest.mark.parity
def test_reentrant_checkpoints_without_gradients():
    check(CHECKPOINTS, BEFORE)
