"""Plans of operands in C order that are copied for another shape do what those do that are made from the beginning."""

from __future__ import annotations

import sys

import pytest

import autograd_nb as torch
from autograd_nb import launch
from autograd_nb.ops.core import pointwise
from tests.ops.table import sample
from tests.ops.test_pointwise_table import ALL, arity, count, run

pytestmark = pytest.mark.formulas

SHAPES = [(3, 4), (5, 2), (2, 3, 2), (1, 6), (0, 3), (7,), (130, 600)]  #: the last is for threads to share


def results(name, dtypes, shape, needs):
    """What the op gives, and its gradients, from nothing that was known before."""
    given = [torch.from_numpy(sample(name, i, shape, "float64")).to(d) for i, d in enumerate(dtypes)]
    for k, x in enumerate(given):
        x.requires_grad_(needs and k < count(name) and x.is_floating_point())
    y = run(name, given)
    found = [y]
    if y.requires_grad:
        y.backward(torch.ones_like(y))
        found += [x.grad for x in given]
    return [None if t is None else (t.dtype, t.stride(), t.detach().tolist()) for t in found]


def forget_kinds():
    launch.forget()
    for op in pointwise.EVERY:
        op.alike.clear()
        for kind in op.kinds.values():
            if hasattr(kind, "alike"):
                kind.alike.clear()


@pytest.mark.parametrize("mixed", [pytest.param(True, marks=pytest.mark.slow), False])
@pytest.mark.parametrize("name", sorted(ALL))
def test_a_copied_plan_is_as_one_made_anew(name, mixed):
    n, one, other = arity(name), torch.float64, torch.float32
    for dtypes in [[one, *[other] * (n - 1)], [other, *[one] * (n - 1)]] if mixed else [[one] * n]:
        for needs in (False, True):
            wanted = []
            for shape in SHAPES[:-1]:
                forget_kinds()
                try:
                    wanted.append(results(name, dtypes, shape, needs))
                except RuntimeError as error:  # dtypes that do not go together
                    wanted.append(str(error))
            forget_kinds()
            for _ in range(2):
                for shape, value in zip(SHAPES, wanted, strict=False):
                    try:
                        found = results(name, dtypes, shape, needs)
                    except RuntimeError as error:
                        found = str(error)
                    assert repr(found) == repr(value), (shape, dtypes)


def test_copies_are_cut_for_threads_by_their_own_size():
    forget_kinds()
    threads = torch.get_num_threads()
    try:
        for count_ in (2, 1):
            torch.set_num_threads(count_)
            for shape in ((3, 4), SHAPES[-1], (4, 3)):
                x = torch.linspace(-2, 2, torch.Size(shape).numel()).view(shape).requires_grad_()
                y = x.tanh() * 1.5
                y.sum().backward()
                assert torch.equal(y[-1], x[-1].tanh() * 1.5)
                assert torch.allclose(x.grad, 1.5 * (1 - x.tanh() ** 2))
    finally:
        torch.set_num_threads(threads)


@pytest.mark.parametrize("memory_format", [torch.preserve_format, torch.contiguous_format, torch.channels_last])
def test_clones_in_memory_formats(memory_format):
    for shape in ((1, 1, 1, 1), (2, 3, 4, 5), (3, 2, 2, 2)):
        y = torch.ones(shape).clone(memory_format=memory_format)
        assert y.is_contiguous(memory_format=torch.contiguous_format if memory_format is torch.preserve_format else memory_format)
    if memory_format is torch.channels_last:
        with pytest.raises(RuntimeError, match="rank 4"):
            torch.ones(2, 3).clone(memory_format=memory_format)


#: calls of Python that a call takes of which only the sizes are new
CALLS = {
    "tanh": (lambda n: torch.ones(n, 3), lambda x: x.tanh(), 20),
    "mul": (lambda n: torch.ones(n, 3), lambda x: x * x, 22),
    "add_": (lambda n: torch.ones(n, 3), lambda x: x.add_(1.0), 24),
    "view": (lambda n: torch.ones(n, 3), lambda x: x.view(-1), 24),
    "index": (lambda n: torch.ones(n, 3), lambda x: x[1:, None], 24),
    "ones": (lambda n: n, lambda n: torch.ones(n, 3), 22),
    "sum": (lambda n: torch.ones(n, 3), lambda x: x.sum(), 50),
    "matmul": (lambda n: torch.ones(n, 3), lambda x: x @ x.t(), 60),
    "add a row": (lambda n: (torch.ones(n, 3), torch.ones(3)), lambda x: x[0] + x[1], 60),
    "cat": (lambda n: torch.ones(n, 3), lambda x: torch.cat([x, x]), 40),
    "index_add": (
        lambda n: (torch.zeros(n, 3), torch.zeros(4, dtype=torch.int64), torch.ones(4, 3)), lambda x: x[0].index_add(0, x[1], x[2]), 90,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CALLS)
def test_a_new_size_takes_few_calls_of_python(name):
    make, step, most = CALLS[name]
    for n in range(100, 104):
        step(make(n))
    given, calls = make(111), 0

    def count_calls(frame, event, argument):
        nonlocal calls
        calls += event == "call"

    sys.setprofile(count_calls)
    try:
        step(given)
    finally:
        sys.setprofile(None)
    assert calls <= most
