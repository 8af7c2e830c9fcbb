"""Reductions in one kernel with what feeds them and what works on their results: the rules fire, and values are eager's.

`checked_program` compares every call with eager; sizes are such that fusing pays, and most of them odd.
"""

from __future__ import annotations

import numpy as np
import pytest

import autograd_nb as torch
from autograd_nb.codegen.threads import WORTH

from .common import checked_program, names

pytestmark = pytest.mark.slow  # many kernels

N, M = 123, 131


def pair(*shape, dtype=torch.float32):
    torch.manual_seed(0)
    return torch.randn(shape, dtype=dtype), torch.randn(shape, dtype=dtype)


def test_what_only_a_sum_reads_is_not_stored():
    program = checked_program(lambda x, y: ((x - y) ** 2).mean(), *pair(N, M))
    assert names(program) == ["sub+square+mean"]
    assert program.arena_bytes < 1024


@pytest.mark.parametrize("dim", [0, 1, (0, 2), (1, 2), None])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_sums_over_any_dims_take_in_a_product(dim, dtype):
    program = checked_program(lambda x, y: (x * y).sum(dim), *pair(7, 150, 140, dtype=dtype))
    assert names(program) == ["mul+sum"]


def test_a_result_that_is_wanted_is_stored_by_the_loop_that_sums_it():
    def step(x, y):
        z = (x * y).relu()
        return z, z.sum(0)

    program = checked_program(step, *pair(N, M))
    assert names(program) == ["mul+relu+sum"]


def test_several_folds_over_the_same_dims_are_one_loop():
    program = checked_program(lambda x, y: (x.sum(0), (x * y).sum(0), x.amax(0), x.amin(0)), *pair(N, M))
    assert len(program.steps) == 1
    program = checked_program(lambda x, y: (x.sum(), x.amax(), (x == y).any()), *pair(N * M))
    assert len(program.steps) == 1


def test_folds_over_other_dims_stay_apart():
    program = checked_program(lambda x: (x.sum(0), x.sum(1)), pair(N, 2 * M)[0])
    assert names(program) == ["sum", "sum"]


def test_pointwise_steps_on_the_results_run_at_the_end_of_the_folds():
    def step(x, y, z):
        return ((x * y).sum(0) / 3.0 + z).exp()

    x, y = pair(N, M)
    program = checked_program(step, x, y, torch.randn(M))
    assert len(program.steps) == 1


def test_a_sum_is_added_to_a_gradient_in_place():
    torch.manual_seed(0)
    bias = torch.zeros(M, requires_grad=True)
    bias.grad = torch.ones(M)

    def step(x):
        (bias + x).sin().sum().backward()
        return bias.grad.clone()

    program = checked_program(step, torch.randn(N, M))
    assert sum("sum" in n for n in names(program)) <= 2


def test_what_reads_the_result_beside_the_elements_waits_for_it():
    program = checked_program(lambda x, y: (x * y) - (x * y).sum(0), *pair(N, M))
    assert len(program.steps) == 2


@pytest.mark.parametrize(
    "make",
    [
        lambda x: x.t(),
        lambda x: x[:, ::2],
        lambda x: x[1:, 3:],
        lambda x: x[:1].expand(N, M),
        lambda x: x[:, :1].expand(N, M),
        lambda x: x[5],
    ],
)
@pytest.mark.parametrize("dim", [0, -1, None])
def test_operands_of_other_layouts(make, dim):
    x, y = pair(N, M)
    program = checked_program(lambda x, y: (make(x) * make(y) + 1).sum(dim), x, y)
    assert program.steps


@pytest.mark.parametrize("dtype", [torch.int32, torch.int64, torch.bool, torch.uint8])
def test_integers_and_booleans(dtype):
    torch.manual_seed(0)
    x, y = torch.randint(0, 2, (N, M)).to(dtype), torch.randint(0, 2, (N, M)).to(dtype)
    program = checked_program(lambda x, y: ((x * y).sum(0), (x & y).sum(0), (x == y).all(0), (x | y).any(0)), x, y)
    assert len(program.steps) == 1


def test_half_and_complex_numbers_stay_as_they_are():
    x, y = pair(N, M)
    assert len(checked_program(lambda x, y: (x * y).sum(0), x.half(), y.half()).steps) == 2
    assert len(checked_program(lambda x, y: (x * y).sum(0), x.to(torch.complex64), y.to(torch.complex64)).steps) == 2


@pytest.mark.parametrize("shape", [(0, M), (N, 0), (1, 20_000), (20_000, 1)])
def test_empty_and_one(shape):
    checked_program(lambda x, y: ((x * y).sum(0), (x * y).sum(1), (x - y).square().sum()), *pair(*shape))


def test_nan_and_infinities_come_through():
    x, y = pair(N, M)
    x[3, 5], x[4, 6], y[7, 8] = float("nan"), float("inf"), float("-inf")

    def step(x, y):
        z = x * y
        return z.sum(0), z.amax(0), z.amin(0), z.sum(), z.amax()

    step_ = torch.compile(step)
    for _ in range(2):
        got = step_(x, y)
    for a, b in zip(got, step(x, y), strict=True):
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-5, atol=1e-5)


def test_a_value_that_is_overwritten_later_is_summed_as_it_was():
    def step(x, y):
        z = x * y
        s = z.sum(0)
        z.mul_(2)
        return s, z, z.sum(0)

    checked_program(step, *pair(N, M))


def test_a_result_that_is_overwritten_later_counts_as_it_was():
    def step(x, y):
        s = (x * y).sum(0)
        z = x + s
        s.add_(1)
        return s, z

    checked_program(step, *pair(N, M))


def test_a_long_formula_stays_out_of_a_fold_over_short_rows():
    def step(x):
        z = (x.sin() * x.tanh()).exp()
        return z, z.sum(0)

    assert len(checked_program(step, pair(200, 100)[0]).steps) == 2
    assert len(checked_program(step, pair(20, 2000)[0]).steps) == 1


def test_small_sums_are_not_worth_a_kernel():
    def step(x):
        z = x.tanh()
        return z, z.sum(0)

    assert names(checked_program(step, pair(16, 8)[0])) == ["tanh", "sum"]


@pytest.mark.parametrize("n", [1 << 17, (1 << 17) + 12_345])
def test_a_long_sum_has_the_same_bits_for_any_number_of_threads(n):
    x, y = pair(3, n)
    assert 3 * n * 16 > WORTH

    def step(x, y):
        z = (x * y).tanh().sin()
        return z, z.sum(1) + 1, z.amax(1)

    program = checked_program(step, x, y, calls=1)
    assert any("sum" in name for name in names(program)) and len(program.steps) <= 3
    found = []
    before = torch.get_num_threads()
    try:
        for threads in (1, 2):
            torch.set_num_threads(threads)
            again = torch.compile(step)
            for _ in range(2):
                result = again(x, y)
            found.append([t.numpy() for t in result])
    finally:
        torch.set_num_threads(before)
    for a, b in zip(*found, strict=True):
        assert np.array_equal(a, b)


def test_gradients_of_broadcast_operands_share_the_loop_of_the_other():
    torch.manual_seed(0)
    w, b = torch.randn(2000, requires_grad=True), torch.randn(2000, requires_grad=True)

    def step(x):
        loss = (x * w + b).tanh().square().mean()
        return loss, *torch.autograd.grad(loss, (w, b))

    sums = [name for name in names(checked_program(step, torch.randn(20, 2000))) if "sum" in name or "backward" in name]
    assert len(sums) == 1


def test_sums_beside_what_is_stored_ask_for_no_overlap():
    """Tests of overlap would send near arrays through another loop, which adds in another order (see `tests/codegen/test_addresses.py`)."""

    def step(x, y):
        z = (x * y).tanh()
        return z, z.sum(1)

    program = checked_program(step, *pair(3, 1 << 17))
    texts = [s.call.origin[1] for s in program.steps if "tanh" in s.name]
    folding = [text for text in texts if "acc0 = " in text and "r[i] = " in text.partition("acc0 = ")[2]]
    assert folding and all(text.partition("acc0 = ")[2].partition("for i in range(size):")[2].lstrip().startswith("independent()") for text in folding)
