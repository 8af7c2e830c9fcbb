"""Results that take the memory of an operand that dies where they are made."""

from __future__ import annotations

import pytest

import autograd_nb as torch
from autograd_nb.compiler.passes import fused_kernel
from autograd_nb.compiler.trace.graph import label

pytestmark = pytest.mark.slow  # many kernels

N = 64


def values(*shapes):
    torch.manual_seed(0)
    return [torch.randn(shape) for shape in shapes]


def program_of(f, *args):
    """Its program; the values are eager's."""
    compiled = torch.compile(f)
    for _ in range(3):
        for found, wanted in zip(compiled(*args), f(*args), strict=True):
            torch.testing.assert_close(found, wanted, rtol=1e-4, atol=1e-4)
    assert len(compiled.programs) == 1
    return compiled.programs[0].program


def overwritten(program, name):
    """How many of the operands of the one step that has ``name`` in its name are read and overwritten."""
    (step,) = [s for s in program.steps if name in s.name]
    return sum(step.call.outputs <= len(step.operands) - 1 - i for i in step.writes)


def test_a_product_is_overwritten():
    a, b = values((N, N), (N, N))

    def f(a, b):
        return ((((a @ b) * 2).tanh() @ b),)

    program = program_of(f, a, b)
    assert overwritten(program, "tanh") == 1
    assert program.arena_bytes == a.nbytes


def test_two_results_take_two_operands():
    a, b = values((N, N), (N, N))

    def f(a, b):
        x, y = a @ b, b @ a
        return (x + y) @ a, (x * y) @ b

    program = program_of(f, a, b)
    assert overwritten(program, "add") == 2
    assert program.arena_bytes == 2 * a.nbytes


def test_strided_operands_are_overwritten():
    a, b, row = values((N, N), (N, N), (N,))

    def f(a, b, row):
        return (((a @ b) * row + 1) @ b,)

    program = program_of(f, a, b, row)
    assert overwritten(program, "add") == 1
    (step,) = [s for s in program.steps if "add" in s.name]
    assert "turn(" not in step.call.origin[1]  # it walks as the result does


@pytest.mark.parametrize(
    ("axes", "least", "launches"), [((0,), 1 << 60, 1), ((1,), 0, 1), ((0, 1), 1 << 60, 1), ((0,), 0, 2), ((0, 1), 0, 2)]
)
def test_what_is_stored_beside_a_fold(axes, least, launches, monkeypatch):
    monkeypatch.setattr(fused_kernel, "BLOCKS", least)  # work from which a fold is made in blocks, by several launches
    a, b, c = values((260, 8), (8, 1030), (1030, 8))

    def f(a, b, c):
        h = (a @ b).relu() * 3
        return h @ c, h.sum(axes)

    program = program_of(f, a, b, c)
    changed = [s for s in program.steps if s.writes[0] < len(s.operands) - s.call.outputs]
    assert all("relu" in s.name for s in changed) and len(changed) == launches
    assert program.arena_bytes < 2 * a.shape[0] * b.shape[1] * 4


KEPT = {
    "read afterwards": lambda a, b, x: (x.exp() * 2 @ b, x @ a),
    "read in another order": lambda a, b, x: ((x + x.T * 2) @ b,),
    "read as a row too": lambda a, b, x: ((x + x[0] * 2) @ b,),
    "of another shape": lambda a, b, x: ((x[0] + b * 2) @ b,),
    "of another dtype": lambda a, b, x: ((x.double() * 2) @ b.double(),),
    "a result": lambda a, b, x: ((x * 2 + 1) @ b, x),
    "a part": lambda a, b, x: ((x[1:] * 2 + 1) @ b,),
}


@pytest.mark.parametrize("case", KEPT)
def test_others_are_not(case):
    a, b = values((N, N), (N, N))
    program = program_of(lambda a, b: KEPT[case](a, b, a @ b), a, b)
    first = program.steps[0].operands[program.steps[0].writes[0]].buffer.number
    assert not any(u.buffer.number == first for s in program.steps[1:] for u, written in s.uses() if written)


def test_arguments_and_state_are_not():
    a, b = values((N, N), (N, N))
    before = a.clone(), b.clone()
    program = program_of(lambda x: (((x * 2).tanh() @ b + b.exp()).sin(),), a)
    assert torch.equal(a, before[0]) and torch.equal(b, before[1])
    assert all(u.buffer.kind == "temporary" for s in program.steps for u, written in s.uses() if written)


def test_what_a_backward_pass_reads_is_there_for_the_next():
    a, b = values((N, N), (N, N))
    a.requires_grad_()

    def f(a):
        return ((a @ b).exp() * 2).sin()

    compiled = torch.compile(f)
    wanted = torch.autograd.grad(f(a).sum(), a)[0]
    for _ in range(3):
        y = compiled(a)
        for retain in (True, False):
            assert torch.equal(torch.autograd.grad(y.sum(), a, retain_graph=retain)[0], wanted)


def test_gradients_that_are_added_to_stay():
    w, x = values((N, N), (N, N))
    w.requires_grad_()

    def step(x):
        ((x @ w).tanh() * 2).sum().backward()

    step(x)
    once = w.grad.clone()
    compiled = torch.compile(step)
    for n in range(2, 5):
        compiled(x)
        torch.testing.assert_close(w.grad, n * once)


def test_fetched_values_are_not_overwritten():
    a, b = values((N, N), (N, N))

    def f(a, b):
        return {"result": ((label(a @ b, "product") * 2).tanh() + 1) @ b}

    graph = torch.trace(f, a, b)
    result = f(a, b)["result"]
    product = a @ b
    assert torch.equal(graph.run("result", a=a, b=b), result)
    assert all(torch.equal(x, y) for x, y in zip(graph.run(["product", "result"], a=a, b=b), (product, result), strict=True))
    assert torch.equal(graph.run("result", product=product, b=b), result)
    assert torch.equal(product, a @ b)


def test_pieces_of_several_threads():
    a, b, row = values((1024, 512), (512, 1024), (1024,))

    def f(a, b, row):
        x = a @ b
        return (x * 2).tanh() @ b.T, ((a @ b).sigmoid() + row).sin() @ b.T

    threads = torch.get_num_threads()
    found = []
    try:
        for n in (1, 2):
            torch.set_num_threads(n)
            found.append(torch.compile(f)(a, b, row))
    finally:
        torch.set_num_threads(threads)
    assert all(torch.equal(x, y) for other in found[1:] for x, y in zip(found[0], other, strict=True))
