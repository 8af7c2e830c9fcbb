"""What is still done with a tensor that was detached in place after something had saved it: refused or not, as PyTorch does."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

import autograd_nb as ours  # noqa: E402
from autograd_nb.graph import detached, engine  # noqa: E402

from .snippets import check  # noqa: E402

ONE = (
    "abs acos acosh angle asin asinh atan atanh ceil clone cos cosh deg2rad digamma erf erfc erfinv exp exp2 expm1 floor frac lgamma log log10 log1p "
    "log2 logit nan_to_num neg positive rad2deg reciprocal relu round rsqrt sigmoid sign sin sinc sinh sqrt square tan tanh trunc sum mean prod std var "
    "norm amax max median sort t i0 selu celu cumsum(0) cumprod(0) logcumsumexp(0) softmax(0) log_softmax(0) topk(2) roll(1) logsumexp(0) "
    "F.softplus F.silu F.gelu F.elu F.mish F.hardswish F.logsigmoid F.leaky_relu F.tanhshrink F.softsign F.hardtanh F.relu6 F.hardsigmoid F.normalize"
)
TWO = (
    "add sub mul div pow atan2 hypot fmod remainder maximum minimum fmax fmin logaddexp logaddexp2 xlogy matmul mm mv(t.ones(2)) dist cdist F.linear "
    "F.mse_loss F.bilinear(t.ones(2,2,2))"
)


def outcome(t, call, detached, constant):
    """What a pass says after one operand was detached; ``constant``: which one needs no gradient."""
    first, second = (t.tensor(v, requires_grad=k != constant) for k, v in enumerate(([[0.3, 0.6], [0.4, 0.7]], [[0.5, 0.2], [0.1, 0.8]])))
    h, k = first * 1.0, second * 1.0
    name, _, more = call.partition("(")
    function = getattr(t.nn.functional if name[:2] == "F." else t, name.removeprefix("F."))
    y = function(h, *((k,) if call in TWO.split() and not name.startswith("mv") else ()), *eval(f"({more[:-1]},)" if more else "()", {"t": t}))
    (h, k)[detached].detach_()
    y = y if hasattr(y, "sum") and not isinstance(y, tuple) else y[0]
    try:
        y.sum().backward()
    except RuntimeError as error:
        return "detached in-place" in str(error)
    return [None if p.grad is None else [round(v, 4) for v in p.grad.reshape(-1).tolist()] for p in (first, second)]


@pytest.mark.parity
@pytest.mark.filterwarnings("ignore")
def test_operands_that_are_detached_in_place():
    cases = [(call, 0, None) for call in ONE.split()]
    cases += [(call, k, constant) for call in TWO.split() for k, constant in ((0, None), (1, None), (0, 1), (1, 0))]
    seen = {case: (outcome(ours, *case), outcome(torch, *case)) for case in cases}
    assert {case: pair for case, pair in seen.items() if pair[0] != pair[1]} == {}
    assert sum(theirs is True for _, theirs in seen.values()) > 50


LEAF, INNER = "x = t.ones(2, requires_grad=True); ", "x = t.ones(2, requires_grad=True); h = x * 2; "
OWN = """
L = []
class F(t.autograd.Function):
    @staticmethod
    def forward(ctx, x): y = x.exp(); ctx.save_for_backward(y, x); return y
    @staticmethod
    def backward(ctx, g): y, x = ctx.saved_tensors; L.append((y.requires_grad, y.is_leaf, x.requires_grad, x.is_leaf)); return g * y
"""


@pytest.mark.parity
def test_what_becomes_of_graphs():
    check({
        "a leaf": LEAF + "y = x * x; x.detach_(); y.sum().backward(); r = x.grad, x.requires_grad",
        "a leaf again": LEAF + "y = x * x; x.detach_(); x.requires_grad_(); (y + x).sum().backward(); r = x.grad",
        "a result": LEAF + "y = x.exp(); z = y * 2; y.detach_(); z.sum().backward(); r = x.grad, y.requires_grad",
        "twice": LEAF + "y = x.exp(); z = y.sum(); y.detach_(); g, = t.autograd.grad(z, x, create_graph=True); r = g, t.autograd.grad(g.sum(), x)",
        "that requires grad": INNER + "y = h * h; h.detach_().requires_grad_()\ntry: y.sum().backward()\nexcept RuntimeError: r = x.grad, h.grad",
        "behind the pass": INNER + "(h * h).sum().backward(retain_graph=True); h.detach_(); h.requires_grad_(); (h * 3).sum().backward(); r = x.grad, h.grad",
        "hooked": LEAF + "L = []; h = x * 2; h.register_hook(lambda g: L.append(1)); y = h + 1; h.detach_(); y.sum().backward(); r = x.grad, L",
        "retained": LEAF + "h = x * 2; h.retain_grad(); y = h + 1; h.detach_(); y.sum().backward(); r = x.grad, h.grad",
        "the base of a view": INNER + "v = h[0]; h.detach_(); v.backward(); r = x.grad, v.requires_grad, h.requires_grad",
        "packed": LEAF
        + "with t.autograd.graph.saved_tensors_hooks(lambda z: z, lambda z: z): h = x * 2; y = h * h\nh.detach_(); y.sum().backward(); r = x.grad",
        "a Function's": f"{OWN}{LEAF}h = x * 1; y = F.apply(h); z = y * 2; y.detach_(); h.detach_(); z.sum().backward(); r = x.grad, L",
        "truncated": INNER + "w = t.ones(2, requires_grad=True); G = []\n"
        "for _ in range(40):\n  h = h.tanh() * w; h.sum().backward(); h.detach_(); G.append(w.grad.clone())\nr = G",
    })  # fmt: skip


def test_a_pass_is_collected_once_while_there_are_such_results(monkeypatch):
    passes, collect = [], engine.collect
    monkeypatch.setattr(engine, "collect", lambda *given: passes.append(1) or collect(*given))
    x = ours.ones(2, requires_grad=True)
    h = x * 2
    kept = h * h
    h.detach_()
    assert detached.noted
    (x * 3).sum().backward()
    assert x.grad.tolist() == [3.0, 3.0] and len(passes) == 1
    with pytest.raises(RuntimeError, match="detached in-place"):
        kept.sum().backward()
    assert len(passes) == 2
