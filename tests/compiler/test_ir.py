"""The rules of the intermediate representation: each is broken once, and `verify` says which, at which step, after which pass."""

from __future__ import annotations

from itertools import count

import numpy as np
import pytest

import autograd_nb as torch
from autograd_nb.codegen.templates.loops import Input
from autograd_nb.compiler import ir
from autograd_nb.compiler.ir import Buffer, InvalidProgram, Outline, Program, Step, Use, argument_names, needed, users, verify
from autograd_nb.compiler.lower.memory_plan import plan, verify_plan
from autograd_nb.compiler.passes import pipeline
from autograd_nb.compiler.passes.pipeline import PASSES, optimize
from autograd_nb.dtypes import float32
from autograd_nb.ops.core.entries import Recipe
from autograd_nb.shapes import layout_of

SIZE = 4
F32 = np.dtype(np.float32)


class Call:
    """What a step knows of its kernel."""

    def __init__(self, name, origin=(), recipe=None):
        self.name, self.origin, self.recipe, self.over = name, origin, recipe, None
        self.entry, self.outputs, self.parts = print, 1, None


def buffer(number, kind="temporary"):
    return Buffer(number, np.zeros(SIZE, np.float32), kind)


def use(b, offset=0, size=SIZE, dtype=F32):
    return Use(b, offset, size, dtype)


def add(a, b, out):
    return Step(Call("add", ("source", "def add(a, b, out):\n    pass\n", ("float32[:]",) * 3)), [use(a), use(b), use(out)], (2,), None)


def fill_rows(rows, bias, out):
    origin = ("kernel", "products.matmul", "fill_rows", ("int64", "float32[:]", "float32[:]"))
    return Step(Call("fill_rows", origin), [rows, bias, out], (2,), None)


def looped(inputs, outputs):
    """A pointwise step of (use, shape, strides)."""
    layouts = [[layout_of(shape, strides, float32) for _, shape, strides in given] for given in (inputs, outputs)]
    recipe = Recipe(lambda *xs: xs[:1], [Input("float32")] * len(inputs), "float32", ["float32"] * len(outputs), *layouts, False)
    operands = [u for u, *_ in (*inputs, *outputs)]
    return Step(Call("loop", recipe=recipe), operands, tuple(range(len(inputs), len(operands))), None)


def check(b):
    return Step(None, [use(b)], (), None, check=print)


def refused(steps, words, live_out=(), given=(), before=None):
    with pytest.raises(InvalidProgram, match=words):
        verify(Program(steps, frozenset(live_out), frozenset(given)), "some_pass", before)


x, y, constant, state = buffer(0, "argument"), buffer(1, "argument"), buffer(2, "constant"), buffer(3, "state")
t, u, v = buffer(4), buffer(5), buffer(6)


def test_a_program_that_obeys_all_rules():
    steps = [add(x, y, t), add(t, constant, u), check(u), add(u, t, state)]
    verify(Program(steps, frozenset({5})), "some_pass", Outline(steps))


def test_the_message_names_the_pass_and_the_step():
    refused([add(x, y, u), add(t, y, u)], r"after the pass some_pass: step 1 \(add\) reads t4, which nothing has written")


def test_a_number_names_one_buffer():
    refused([add(x, y, t), add(x, y, buffer(4))], "another buffer that has the number of t4")


@pytest.mark.parametrize(("offset", "size"), [(0, SIZE + 1), (4, SIZE), (-4, SIZE)])
def test_a_use_lies_within_its_buffer(offset, size):
    refused([fill_rows(1, use(x), use(t, offset, size))], "uses bytes .* of t4, which has 16")


def test_operands_are_as_many_as_the_kernel_takes():
    step = fill_rows(1, use(x), use(t))
    step.operands.append(1.0)
    refused([step], "gives 4 arguments to a kernel that takes 3")


@pytest.mark.parametrize(
    "operands",
    [(1, use(x, dtype=np.dtype(np.int32)), use(t)), (use(y), use(x), use(t)), (1, 2.0, use(t)), ((1, 2), use(x), use(t))],
    ids=["dtype", "an array for a number", "a number for an array", "a tuple for a number"],
)
def test_operands_are_of_the_kinds_that_the_kernel_takes(operands):
    refused([fill_rows(*operands)], "as the kernel's argument (bias|rows), which is")


def test_arrays_hold_what_layouts_reach():
    refused([looped([(use(x), (2, 2), (4, 1))], [(use(t), (2, 2), (2, 1))])], "reaches element 5 of a0, of which it uses 4")


def test_arrays_are_of_the_dtypes_of_layouts():
    refused([looped([(use(x, dtype=np.dtype(np.int32)), (4,), (1,))], [(use(t), (4,), (1,))])], "holds int32, as .*float32")


def test_what_is_read_has_been_written_or_given():
    steps = [add(t, y, u)]
    refused(steps, "reads t4, which nothing has written")
    verify(Program(steps, given=frozenset({4})))


def test_no_output_lies_over_what_is_read():
    refused([fill_rows(1, use(t), use(t))], "writes t4 over t4, which it reads", given={4})
    shifted = [(use(t), (3,), (1,))], [(use(t, 4, 3), (3,), (1,))]
    refused([looped(*shifted)], r"writes t4\+4 over t4, which it reads", given={4})


def test_loops_may_write_what_they_walk_alike_or_beside():
    verify(Program([looped([(use(t), (4,), (1,))], [(use(t), (4,), (1,))])], given=frozenset({4})))
    verify(Program([looped([(use(t), (2,), (2,))], [(use(t, 4, 3), (2,), (2,))])], given=frozenset({4})))


def test_no_two_outputs_are_one():
    origin = ("source", "def two(a, p, q):\n    pass\n", ("float32[:]",) * 3)
    refused([Step(Call("two", origin), [use(x), use(t), use(t)], (1, 2), None)], "writes t4 twice")


def listed(*written):
    """A kernel that goes through a list, as the updates of optimizers do."""
    origin = ("source", "def each(xs, ys):\n    pass\n", ("float32[:]", "[float32]"))
    return Step(Call("each", origin), [use(x), *map(use, written)], tuple(range(1, len(written) + 1)), None)


def test_a_list_may_name_memory_of_the_users_twice():
    """It is gone through in order; two outputs of one call that are one, or memory of the program's own, are a fault all the same."""
    verify(Program([listed(state, state)]))
    verify(Program([listed(y, state, y)]))
    refused([listed(t, t)], "writes t4 twice")
    origin = ("source", "def two(a, p, q):\n    pass\n", ("float32[:]",) * 3)
    refused([Step(Call("two", origin), [use(x), use(state), use(state)], (1, 2), None)], "writes .* twice")


def test_what_is_read_afterwards_is_written():
    refused([add(x, y, t)], r"nothing writes the buffers \[5\]", live_out={4, 5})


def test_the_users_memory_is_still_written():
    steps = [add(x, y, t), add(x, t, state)]
    refused(steps[:1], r"nothing writes the user's memory \[3\] any more", before=Outline(steps))


def test_checks_are_kept():
    steps = [add(x, y, t), check(t)]
    refused(steps[:1], "a check of values is lost", before=Outline(steps))


@pytest.mark.parametrize("order", [(1, 0, 2), (0, 2, 1), (2, 0, 1)], ids=["write, read", "write, write", "all"])
def test_steps_that_wait_for_one_another_stay_in_order(order):
    steps = [add(x, y, state), add(state, y, t), add(x, x, state)]
    refused([steps[i] for i in order], "comes after one that waited for it", before=Outline(steps))


def test_readers_may_change_places():
    steps = [add(x, y, t), add(x, t, u), add(t, y, v)]
    verify(Program([steps[i] for i in (0, 2, 1)], frozenset({5, 6})), "some_pass", Outline(steps))


def test_a_broken_pass_is_named(monkeypatch):
    def drop_the_last(steps, live_out, numbers):
        return steps[:-1]

    monkeypatch.setattr(ir.settings, "verifies", True)
    with pytest.raises(InvalidProgram, match=r"after the pass drop_the_last: nothing writes the buffers \[5\]"):
        optimize([add(x, y, t), add(t, y, u)], {5}, count(100), [*PASSES[:2], drop_the_last])
    monkeypatch.setattr(ir.settings, "verifies", False)
    assert len(optimize([add(x, y, t), add(t, y, u)], {5}, count(100), [*PASSES[:2], drop_the_last])) == 1


def test_compiled_functions_are_verified_after_every_pass(monkeypatch):
    seen = []
    monkeypatch.setattr(pipeline, "verify", lambda program, after, before=None: seen.append(after))
    torch.compile(lambda a: (a * 2).sum())(torch.ones(3))
    assert seen == ["capture", *[one.__name__ for one in PASSES]]


# ------------------------------------------------------------------------------------------------ the plan of memory


def test_memory_is_shared_by_those_that_do_not_meet():
    steps = [add(x, y, t), add(t, y, u), add(u, y, v), add(v, y, state)]
    verify_plan(steps, plan(steps, set())[0])
    verify_plan(steps, {4: 0, 5: 64, 6: 0})


@pytest.mark.parametrize("offsets", [{4: 0, 5: 0}, {4: 0, 5: 8}], ids=["the same", "overlapping"])
def test_what_a_step_writes_does_not_lie_over_what_it_reads(offsets):
    with pytest.raises(InvalidProgram, match=r"memory plan: step 1 \(add\) uses t4, whose memory is that of t5 by now"):
        verify_plan([add(x, y, t), add(t, y, u)], offsets)


def test_freed_memory_is_not_read():
    steps = [add(x, y, t), add(x, y, u), add(u, y, v), add(t, v, state)]
    with pytest.raises(InvalidProgram, match=r"memory plan: step 3 \(add\) uses t4, whose memory is that of t6 by now"):
        verify_plan(steps, {4: 0, 5: 64, 6: 0})


# ------------------------------------------------------------------------------------------------ operands by name


def test_operands_are_found_by_the_names_of_the_kernels_own_arguments():
    step = fill_rows(1, use(x), use(t))
    assert argument_names(step.call.origin) == ("rows", "bias", "out")
    assert step.argument("rows") == 1
    assert step.argument("bias").buffer is x
    assert step.with_arguments(rows=2).operands == [2, *step.operands[1:]]
    with pytest.raises(KeyError, match="fill_rows has no argument 'b'; it has: rows, bias, out"):
        step.argument("b")


def test_lists_of_arrays_count_as_one_argument():
    origin = ("source", "def f(n, xs, ys, m):\n    pass\n", ("int64", "[float32]", "[float32]", "float64"))
    step = Step(Call("f", origin), [3, use(x), use(y), use(t), use(u), 0.5], (3, 4), None)
    assert (step.position("n"), step.position("xs"), step.position("ys"), step.argument("m")) == (0, 1, 3, 0.5)


def test_names_and_types_are_as_many():
    with pytest.raises(TypeError, match="the arguments rows, bias, out is called with 2"):
        argument_names(("kernel", "products.matmul", "fill_rows", ("int64", "float32[:]")))


# ------------------------------------------------------------------------------------------------ questions about steps


def test_needed_steps():
    steps = [add(x, y, t), add(x, y, u), check(u), add(x, y, state), add(t, y, v)]
    assert needed(steps, {6}) == steps  # checks and writes to the user's memory stay
    assert needed(steps, {6}, effects=False) == [steps[0], steps[4]]
    assert needed(steps, {6}, given={4}, effects=False) == [steps[4]]
    assert needed(steps, {6}, given={6}, effects=False) == []


def test_users():
    assert users([add(x, y, t), add(t, t, u)]) == {0: [(0, False)], 1: [(0, False)], 4: [(0, True), (1, False), (1, False)], 5: [(1, True)]}


