"""Tangents of gradients: `autograd.grad` of what has a tangent, beside PyTorch's; and what `gradcheck` and anomaly detection make of functions."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")

from .snippets import check

BEFORE = """
from importlib import import_module
fw = import_module(t.__name__ + ".autograd.forward_ad")
D = t.float64
X, V, W = t.tensor([1., 2.], dtype=D), t.tensor([1., 3.], dtype=D), t.tensor([[1., 2.], [3., 4.]], dtype=D)
def parts(gs): return [None if p is None else p.detach() for g in gs if g is not None for p in fw.unpack_dual(g)]
x, w, v = X.clone().requires_grad_(), W.clone().requires_grad_(), V.clone().requires_grad_()
"""

#: of a function of two operands, one or both with tangents: gradients by some of them, from a seed that may have a tangent
GRADIENTS = {
    f"{function}; {wanted}; {moved}; {seed}; {options}": f"with fw.dual_level():\n    d = fw.make_dual(x, V)\n    m = {moved}\n    y = {function}\n"
    f"    s = {seed}\n    r = parts(t.autograd.grad(y, {wanted}, s, allow_unused=True, {options}))"
    for function in (
        "(m @ d).sin().sum() + (d ** 3).sum() * m[0, 0]", "F.softmax(m @ d, 0)[0] * d.prod()", "(d * 2).sum()", "(m @ d).norm() * d.exp().sum()",
        "(d.detach() ** 3 * x ** 2).sum() * m.sum()", "t.cat([d, m[0]]).cumsum(0).square().sum()",
    )
    for wanted in ("[d]", "[x]", "[w]", "[m, d]")
    for moved in ("w", "fw.make_dual(w, t.ones(2, 2, dtype=D))")
    for seed in ("None", "fw.make_dual(t.tensor(2., dtype=D), t.tensor(5., dtype=D))")
    for options in ("create_graph=False", "create_graph=True")
}  # fmt: skip

#: gradients by a tensor and by what was computed from it, where what has a tangent requires no grad
OF_CONSTANTS = {
    f"{function}; {wanted}; {seed}; {options}": f"with fw.dual_level():\n    d = fw.make_dual(X, {tangent})\n    h = (w @ d).exp() * 0.01; y = {function}\n"
    f"    r = parts(t.autograd.grad(y, {wanted}, {seed}, allow_unused=True, {options}))"
    for function in ("(h * h).sum() * d.prod()", "(w * d).sin().sum()", "(h.log() / d).norm()", "h.clone().mul_(d).square().sum()", "(w.exp() @ X).sum()")
    for wanted in ("[w]", "[h]", "[h, w]", "[w, v]")
    for tangent, seed in (("V", "None"), ("v * 2", "None"), ("w[0]", "t.tensor(3., dtype=D)"), ("V", "d.sum()"))
    for options in ("create_graph=False", "create_graph=True")
}  # fmt: skip

#: hooks, in-place changes, intermediate results, complex numbers, tangents with a history
OTHERS = {
    "by what was computed": "with fw.dual_level():\n    h = fw.make_dual(x, V) * 2; r = parts(t.autograd.grad((h ** 3).sum(), [h]))",
    "changed in place": "with fw.dual_level():\n    d = fw.make_dual(x, V); h = d.clone(); h.mul_(d); r = parts(t.autograd.grad((h ** 2).sum(), [x]))",
    "written into": "with fw.dual_level():\n    h = t.zeros(2, dtype=D); h[0] = (fw.make_dual(x, V) ** 3).sum()\n"
    "    r = parts(t.autograd.grad((h ** 2).sum(), [x]))",
    "complex": "z = t.complex(X, V).requires_grad_()\nwith fw.dual_level():\n"
    "    d = fw.make_dual(z, t.complex(V, X)); r = parts(t.autograd.grad((d * d.abs()).real.sum(), [z]))",
    "the tangent's history": "with fw.dual_level():\n    d = fw.make_dual(x, v)\n"
    "    (g,) = t.autograd.grad((d ** 3).sum(), [x], create_graph=True); s = fw.unpack_dual(g).tangent\nr = t.autograd.grad(s.sum(), [x, v])",
    "rows": "with fw.dual_level():\n    d = fw.make_dual(x, V); r = parts(t.autograd.grad(d ** 3, [x], t.eye(2, dtype=D), is_grads_batched=True))",
    "rows of another width": "y = x * 2; r = t.autograd.grad(y, [x], t.ones(2, 3, dtype=D), is_grads_batched=True)",
    "no tangent": "with fw.dual_level():\n    d = fw.make_dual(x, V); r = parts(t.autograd.grad((x ** 2).sum(), [x]))",
    "backward keeps no tangent": "with fw.dual_level():\n    (fw.make_dual(x, V) ** 3).sum().backward(); r = parts([x.grad])",
    "a module": "t.manual_seed(0)\nm = nn.Sequential(nn.Linear(2, 3), nn.Tanh(), nn.Linear(3, 1)).double()\nfor p in m.parameters(): p.data.fill_(0.3)\n"
    "with fw.dual_level():\n    d = fw.make_dual(x, V); r = parts(t.autograd.grad(m(d).sum(), [d, *m.parameters()]))",
}

#: functions and options that gradcheck accepts, and that it refuses
CHECKED = {
    f"{name}; {options}": f"{before}r = t.autograd.{function}, {options})"
    for name, before, function in (
        ("shape", "", "gradcheck(lambda a: t.cat([a, a]) if t.all(a >= 1) else a, t.ones(1, dtype=D, requires_grad=True)"),
        ("dtype", "", "gradcheck(lambda a: a.float() if t.all(a >= 1) else a, t.ones(1, dtype=D, requires_grad=True)"),
        ("none", "def hook(g):\n    if g is None: raise RuntimeError('none')\ndef f(a): y = a.clone(); y.register_hook(hook); return y\n", "gradcheck(f, x"),
        ("detached output", "", "gradcheck(lambda a: (a * 2, a.detach() * 3), x"),
        ("detached", "", "gradcheck(lambda a: a.detach() * 3, x"),
        ("sine", "", "gradcheck(t.sin, x"),
        ("two results", "", "gradcheck(lambda a: (a.sin(), a * 2), x"),
        ("sine again", "", "gradgradcheck(t.sin, x"),
        ("forward over reverse", "", "gradgradcheck(lambda a, b: (b @ a).exp() * 0.01, (x, w), check_fwd_over_rev=True"),
        ("only forward over reverse", "", "gradgradcheck(t.sin, x, check_fwd_over_rev=True, check_rev_over_rev=False"),
        ("neither", "", "gradgradcheck(t.sin, x, check_rev_over_rev=False"),
        ("batches", "", "gradcheck(t.sin, x, check_batched_grad=True, check_forward_ad=True, check_batched_forward_grad=True"),
        ("batches of what is not checked", "", "gradcheck(t.sin, x, check_batched_grad=True, check_forward_ad=True, check_backward_ad=False"),
    )
    for options in ("fast_mode=False", "fast_mode=True", "check_undefined_grad=False", "raise_exception=False")
}  # fmt: skip

WATCHED = {
    "an op changed in place": "import warnings\nwith warnings.catch_warnings(record=True) as L:\n    warnings.simplefilter('always')\n"
    "    try:\n        with t.autograd.detect_anomaly():\n            d = x * 1; y = d ** 2; d += 1; y.sum().backward()\n    except RuntimeError: pass\n"
    "r = [str(m.message)[:35] for m in L if 'nomaly' in str(m.message) or 'detected' in str(m.message)]",
    "callbacks of callbacks": "L = []; engine = t.autograd.Variable._execution_engine\n"
    "def first(): L.append(1); engine.queue_callback(lambda: L.append(2))\n"
    "y = x * 1; y.register_hook(lambda g: engine.queue_callback(first)); y.sum().backward(); r = L",
    "a callback too late": "t.autograd.Variable._execution_engine.queue_callback(print); r = 1",
    "seeds": "r = [t.manual_seed(s).initial_seed() for s in (-1, 2 ** 63 + 11, 2 ** 64 - 1, 0)] + [t.Generator().manual_seed(2 ** 64 - 3).initial_seed()]",
    "a seed too large": "r = t.manual_seed(2 ** 64)",
}


@pytest.mark.parity
def test_tangents_of_gradients():
    check({**GRADIENTS, **OF_CONSTANTS, **OTHERS}, BEFORE)


@pytest.mark.parity
def test_what_gradcheck_refuses():
    check(CHECKED, BEFORE)


@pytest.mark.parity
def test_anomalies_callbacks_and_seeds():
    check(WATCHED, BEFORE)
