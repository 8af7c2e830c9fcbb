"""What becomes of the caller's tangent where a function changes its operand in place, and of gradients by both: as in PyTorch."""

from __future__ import annotations

import itertools

import pytest

pytest.importorskip("torch")

from .snippets import check

CHANGES = ("z.mul_(2.)", "z.pow_(3)", "z.neg_().exp_()", "z[0].pow_(3)", "z[:1] = z[1:] * 2", "z.mul_(c)", "z.zero_()", "z.add_(c).sin_()")
BEFORE = """
x, s, c = (t.tensor(values, dtype=t.float64, requires_grad=True) for values in ([1., 2.], [.5, -1.], [3., .25]))
def changing(change):
    def f(z):
        exec(change, {"t": t, "z": z, "c": c})
        return z.sin()
    return f
def passes(parts):
    for part in parts:
        some = part.requires_grad
        first = t.autograd.grad(part.sum(), [x, s, c], create_graph=True, allow_unused=True) if some else [None] * 3
        second = [g for g in first if g is not None and g.requires_grad]
        again = t.autograd.grad(sum((g * g).sum() for g in second), [x, s, c], retain_graph=True, allow_unused=True) if second else [None] * 3
        yield [0. if g is None else g.detach().sum().item() for g in (*first, *again)]
"""
CALLS = {
    f"{change}; {primal}; {tangent}": f"p, m = {primal}, {tangent}\ny, d = t.func.jvp(changing({change!r}), (p,), (m,))\n"
    "r = [y.detach(), d.detach(), p.detach(), m.detach(), p._version, t.tensor(list(passes([y, d, p, m])))]"
    for change, primal, tangent in itertools.product(
        CHANGES, ("x.detach().clone()", "x * 1"), ("s.detach().clone()", "s * 1", "s", "s.clone().requires_grad_()", "t.stack([s, s * 2])[1]"),
    )
}  # fmt: skip
UNRECORDED = {
    f"{change}; {tangent}": f"p, m = x.detach().clone(), {tangent}\nwith t.no_grad(): y, d = t.func.jvp(changing({change!r}), (p,), (m,))\nr = [y, d, p, m]"
    for change, tangent in itertools.product(CHANGES, ("s", "s * 1"))
}


@pytest.mark.parity
def test_the_callers_tangent_changes_with_the_operand():
    check({**CALLS, **UNRECORDED}, BEFORE)
