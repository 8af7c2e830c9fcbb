"""Hooks on one of the tensors that a node keeps, `SavedTensor.register_hooks`: gradients, what is read, and what is refused."""

from __future__ import annotations

import pytest

import autograd_nb

pytest.importorskip("torch")

from .snippets import check

BEFORE = """
x = t.tensor([1., 2., 3.], requires_grad=True)
def same(v): return v
class Kept(t.autograd.Function):
    @staticmethod
    def forward(ctx, x): y = x * 2; ctx.save_for_backward(x, None, y); return y
    @staticmethod
    def backward(ctx, g): a, _, c = ctx.saved_tensors; return g * a * c
def saved(node): return getattr(node, name) if name != 'of a function' else node._raw_saved_tensors[0]
"""

HOOKED = {
    f"{function}; {name}; {hooks}; {use}": f"name = {name!r}\ny = {function}\ns = saved(y.grad_fn)\n{use.replace('HOOKS', hooks)}"
    for function, name in (
        ("x * x", "_raw_saved_self"), ("x * x", "_raw_saved_other"), ("(x * 1).exp()", "_raw_saved_result"), ("x ** 3", "_raw_saved_self"),
        ("x + 1", "_raw_saved_self"), ("x[:2].sin()", "_raw_saved_self"), ("Kept.apply(x * 1)", "of a function"),
    )
    for hooks in (
        "same, same", "lambda v: v * 2, same", "lambda v: v * 2, lambda v: v / 2", "lambda v: v.detach().numpy(), t.from_numpy", "same, lambda v: 1",
        "lambda a, b: a, same", "lambda v: v.mul_(2), same", "1, same",
    )
    for use in (
        "s.register_hooks(HOOKS); y.sum().backward(); r = x.grad",
        "s.register_hooks(HOOKS); (g,) = t.autograd.grad(y.sum(), x, create_graph=True); g.sum().backward(); r = x.grad",
        "s.register_hooks(HOOKS); r = s.register_hooks(same, same)",
        "y.sum().backward(); r = s.register_hooks(HOOKS)",
        "with t.no_grad(): r = getattr(y.grad_fn, name[4:]).detach(), s.register_hooks(HOOKS), getattr(y.grad_fn, name[4:]).detach()",
    )
    if not (name == "of a function" and use.startswith("y.sum()"))  # PyTorch reads memory there that the pass has freed
}  # fmt: skip
OTHERS = {
    "nothing is kept": "r = Kept.apply(x).grad_fn._raw_saved_tensors[1].register_hooks(same, same)",
    "how many": "r = len(Kept.apply(x).grad_fn._raw_saved_tensors)",
    "no more": "y = Kept.apply(x); y.sum().backward(); r = y.grad_fn._raw_saved_tensors",
    "by hand": "r = t.autograd.SavedTensor()",
    "beside the hooks of a context": "with t.autograd.graph.saved_tensors_hooks(same, same): y = x * x\n"
    "r = y.grad_fn._raw_saved_self.register_hooks(same, same)",
}


def test_hooks_of_a_function_after_its_pass():
    """The tensors are gone, and hooks on what was taken of the node before are refused."""
    names = {"t": autograd_nb}
    exec(f"{BEFORE}\nname = 'of a function'\ny = Kept.apply(x * 1)\ns = saved(y.grad_fn)\ny.sum().backward()", names)
    with pytest.raises(RuntimeError):
        names["s"].register_hooks(names["same"], names["same"])


@pytest.mark.parity
def test_hooks_on_saved_tensors():
    check({**HOOKED, **OTHERS}, BEFORE)
