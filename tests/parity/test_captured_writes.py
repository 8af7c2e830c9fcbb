"""Changes in place of what a function that is transformed has captured: by `vmap` as in PyTorch, which refuses them in all derivatives."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")

from .snippets import check, outcome, same

CAPTURED = {
    "plain": "c = t.zeros(3)", "leaf": "c = t.zeros(3, requires_grad=True)", "result": "c = t.zeros(3, requires_grad=True) * 1",
    "view": "b = t.zeros(4); c = b[1:]", "view of a result": "b = t.zeros(4, requires_grad=True) * 1; c = b[1:]",
}  # fmt: skip
WRITES = [
    "c.add_(x)", "c.add_(1)", "c.copy_(x)", "c[0] = x[0]", "c[0] = 1.0", "c.zero_()", "c[1:].mul_(x[1:])", "c.data.add_(x)", "c.detach().add_(x)",
    "c.add_(x.detach())", "c[t.tensor([0, 1])] = x[:2]", "c.index_add_(0, t.tensor([0]), x[:1])", "c.fill_(x[0])", "c.bernoulli_(0.0)",
    "d = c * 1; d.add_(x)", "x.detach_()", "(x * 2).detach_()",
]  # fmt: skip
DERIVATIVES = {
    "grad": "t.func.grad(lambda x: f(x).sum())(x)",
    "vjp": "t.func.vjp(f, x)[1](t.ones(3))[0]",
    "jacrev": "t.func.jacrev(f)(x).sum(0)",
}
START = "\nx = t.tensor([1.0, 2.0, 3.0])\ndef f(x):\n    "


@pytest.mark.parity
@pytest.mark.parametrize("captured", CAPTURED)
def test_what_vmap_lets_be_written(captured):
    calls = "t.func.vmap(f)(t.stack([x, x + 1]))", "t.func.vmap(f, in_dims=1)(t.stack([x, x + 1], 1))"
    check({
        f"{write}, {call}": f"{CAPTURED[captured]}{START}{write}\n    return x * c\nr = {call}, c.detach(), c.requires_grad, c.is_leaf, c._version"
        for write in WRITES for call in calls
    }, kinds="subclasses")  # fmt: skip


@pytest.mark.parity
@pytest.mark.parametrize("write", ["c.add_(x)", "c.mul_(2)", "c[0] = x[0]", "c.copy_(x)", "c[1:].mul_(x[1:])"])
def test_derivatives_are_those_of_a_plain_pass_where_pytorch_refuses(write):
    from . import snippets

    made = f"c = t.ones(3) * 1{START}{write}\n    return x * c\n"
    plain = outcome(f"{made}x.requires_grad_(); r = t.autograd.grad(f(x).sum(), x)[0]", snippets.torch, "")
    assert plain[0] != "error"
    for how in DERIVATIVES.values():
        theirs, mine = (outcome(f"{made}r = {how}", library, "") for library in (snippets.torch, snippets.autograd_nb))
        assert theirs[0] == "error" and "mutate a captured Tensor" in str(theirs[1])
        assert mine[0] == plain[0] and same(mine[1], plain[1], 1e-6)
