"""Compiled backward passes that add to gradients that are there, and changes in place: kernels are given no memory twice.

LLVM would see that two arrays overlap, and take its loop over single elements, which is several times slower.
"""

from __future__ import annotations

import pytest

import autograd_nb as torch
from autograd_nb.codegen.build import compilation
from autograd_nb.ops.core.registry import OPS
from autograd_nb.ops.elementwise.operators import WORTH

N = 100


def leaf(*shape):
    torch.manual_seed(1)
    return torch.randn(shape).requires_grad_()


#: leaf, loss
LOSSES = {
    "one": (leaf(N, N), lambda x: x.tanh().sum()),
    "several": (leaf(N, N), lambda x: (x.sigmoid() * x.tanh() + x.exp()).sum()),
    "bias": (leaf(N), lambda x: (torch.ones(3, N) * x).tanh().sum()),
    "column": (leaf(N, 1), lambda x: (torch.ones(N, 3) * x).tanh().sum()),
    "number": (leaf(), lambda x: (torch.ones(N) * x).tanh().sum()),
    "part": (leaf(N, N), lambda x: x[:, :60].tanh().sum()),
    "transposed": (leaf(N, N).detach().t().requires_grad_(), lambda x: x.tanh().sum()),
}


def repeated(compiled) -> list[str]:
    """Where a kernel writes memory that it is given by another argument as well; small ones go to the kernel of `add`, or are sums' ends."""
    found = []
    for entry in compiled.programs:
        for step in entry.program.steps:
            uses = list(step.uses())
            for i, (u, written) in enumerate(uses):
                same = [v for k, (v, _) in enumerate(uses) if k != i and v.buffer is u.buffer and v.offset < u.end and u.offset < v.end]
                if written and same and u.size >= WORTH:
                    found.append(f"{step.name}: {u!r} and {same}")
    return found


@pytest.mark.parametrize("name", LOSSES)
def test_gradients_are_added_to_in_place(name):
    x, loss = LOSSES[name]
    step = torch.compile(lambda: loss(x).backward())
    for passes in range(1, 5):
        step()
        (wanted,) = torch.autograd.grad(loss(x), x)
        torch.testing.assert_close(x.grad, passes * wanted)
    assert step.programs and not repeated(step)


POINTWISE = [n for n, o in OPS.items() if n == o.name and o.kind == "pointwise" and len(getattr(o.rule, "params", ())) in (1, 2)]


@pytest.mark.slow
@pytest.mark.parametrize("name", POINTWISE)
def test_gradients_of_every_pointwise_op_are_added_to_in_place(name):
    operands = [(torch.rand(N, N) * 0.5 + 0.25).requires_grad_() for _ in OPS[name].rule.params]
    try:
        recorded = OPS[name].call(*operands).requires_grad
    except (RuntimeError, TypeError):
        pytest.skip("takes no floats")
    if not recorded:
        pytest.skip("has no derivative")
    step = torch.compile(lambda: OPS[name].call(*operands).sum().backward())
    for _ in range(4):
        step()
    assert step.programs and not repeated(step)
    for x, wanted in zip(operands, torch.autograd.grad(OPS[name].call(*operands).sum(), operands, allow_unused=True), strict=True):
        torch.testing.assert_close(x.grad, None if wanted is None else 4 * wanted, rtol=1e-4, atol=1e-4, equal_nan=True)


def test_changes_in_place_are_made_in_place():
    x, y, z = (torch.ones(N, N) for _ in range(3))

    def f(y):
        x.mul_(y).add_(1)
        z[:, 1:].sub_(y[:, 1:]).exp_()
        z[:, 0].tanh_()

    wanted = x.clone(), z.clone()
    step = torch.compile(f)
    for _ in range(4):
        step(y)
        a, b = wanted
        b = torch.cat([b[:, :1].tanh(), (b[:, 1:] - y[:, 1:]).exp()], 1)
        wanted = a * y + 1, b
        torch.testing.assert_close((x, z), wanted)
    assert step.programs and not repeated(step)


@pytest.mark.skipif(compilation.disabled(), reason="nothing is compiled")
def test_their_loops_are_vectors(monkeypatch):
    made = {}
    compile_ = compilation._compile

    def keeping(function, *args):
        result = compile_(function, *args)
        made[function.__name__] = str(result.library._final_module)
        return result

    monkeypatch.setattr(compilation, "_compile", keeping)
    monkeypatch.setattr(compilation, "_known", lambda *args: None)
    monkeypatch.setattr(compilation.machine_code, "load", lambda key: None)
    x = leaf(N, N)
    step = torch.compile(lambda: (x.tanh() * 0.7310 + x).sum().backward())  # a number in the text, of which there is no kernel
    for _ in range(3):
        step()
    fused = [code for name, code in made.items() if "double" not in code and "fused" in name]
    assert not repeated(step)
    assert all("vector.body" in code for code in fused), made.keys()
