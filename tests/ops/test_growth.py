"""A program with ever new shapes does not grow, and a new shape costs no tracing, see `tests.ops.growing`."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import threading
import tracemalloc

import pytest

import autograd_nb as torch
from autograd_nb import launch, shapes
from autograd_nb.ops.elementwise.arithmetic import add
from autograd_nb.ops.elementwise.unary import tanh

tanh_plans = tanh.op.memo.plans


@pytest.mark.slow
def test_a_new_shape_traces_nothing_and_leaves_no_cycles():
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1"}
    run = subprocess.run(
        [sys.executable, "-m", "tests.ops.growing"], capture_output=True, text=True, env=environment, check=True
    )
    lines = run.stdout.splitlines()
    assert not [line for line in lines if line.startswith("wrong")]
    done, failed = (int(word) for word in lines[-1].replace(",", "").split() if word.isdigit())
    assert done > 300 and failed <= 3, lines  # random numbers need compiled kernels


def step(n):
    x = torch.ones(n, 3, requires_grad=True)
    ((x + 1).tanh() * x.detach()).sum().backward()
    return x[1:], x.t().contiguous().reshape(-1)


@pytest.fixture
def few(monkeypatch):
    """Few plans are kept."""
    monkeypatch.setattr(launch, "KEPT", 400)
    launch.forget()
    gc.collect()
    gc.disable()
    yield
    gc.enable()


@pytest.mark.slow
def test_ever_new_shapes_do_not_grow_memory(few):
    for n in (2, 3, 700, 1_999):  # compiling leaves cycles of its own
        step(n)
    gc.collect()
    tracemalloc.start()
    try:
        for n in range(2, 700):
            step(n)
        layouts = len(shapes._layouts)
        before = tracemalloc.get_traced_memory()[0]
        for n in range(700, 2_000):
            step(n)
        grown = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    assert abs(len(shapes._layouts) - layouts) < 100
    assert len(launch._order) <= 400
    assert grown < 200_000  # 150 bytes a step, as Python keeps freed tuples; the plans of one step have 17,000
    assert gc.collect() < 100


def test_the_oldest_plan_is_forgotten_first(few):
    keys = [torch.zeros(2, n)._layout for n in range(3, 600)]
    for n in range(3, 600):
        torch.zeros(2, n).tanh()
    assert keys[-1] in tanh.op.memo.plans and keys[0] not in tanh.op.memo.plans
    found = [layout in tanh.op.memo.plans for layout in keys]
    assert found == sorted(found)


def test_hooks_on_saved_tensors_move_plans_and_leave_them_their_age(few):
    hooks = torch.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t)
    x = torch.ones(5, 7, requires_grad=True)
    x.tanh()
    for _ in range(3):
        before = len(launch._order)
        with hooks:
            assert x._layout not in tanh_plans and x._layout in tanh.op.memo.plans
            x.tanh().sum().backward()
        assert tanh.op.memo.plans is tanh_plans and x._layout in tanh_plans
    assert len(launch._order) == before  # of the last two rounds
    with launch.observe(lambda call, args: call.entry(*args)):
        assert not tanh_plans


def test_an_observation_sets_plans_aside_and_puts_them_back(few):
    """What was planned before is found again behind it, at its age; what was planned meanwhile tells of itself and is gone."""
    x, y = torch.ones(5, 7), torch.ones(6, 7)
    x.tanh()
    plan, before = tanh_plans[x._layout], [(id(table), key) for table, key, _ in launch._order]
    for _ in range(2):
        with launch.observe(lambda call, args: call.entry(*args)):
            assert not tanh_plans and not launch._order
            x.tanh(), y.tanh()
            with launch.observe(lambda call, args: call.entry(*args)):
                y.tanh()
            assert y._layout in tanh_plans
        assert tanh_plans[x._layout] is plan and y._layout not in tanh_plans
        assert [(id(table), key) for table, key, _ in launch._order] == before
        assert launch._held == sum(weight for *_, weight in launch._order)
    with launch.observe(lambda call, args: call.entry(*args)):
        torch.set_num_threads(torch.get_num_threads())
        torch.set_default_dtype(torch.float64)
        torch.set_default_dtype(torch.float32)
    assert not tanh_plans  # plans have taken up what was changed


def test_layouts_are_one_object_as_long_as_somebody_uses_them():
    x = torch.ones(19, 23)
    launch.forget()
    shapes._recent.clear()
    gc.collect()
    assert torch.ones(19, 23)._layout is x._layout
    assert torch.ones(23, 19).t().contiguous()._layout is x._layout
    assert x[:, :]._layout is x._layout and shapes.layout_of((19, 23), (23, 1), torch.float32) is x._layout
    count = len(shapes._layouts)
    layout = shapes.layout_of((19, 24), None, torch.float32)
    assert layout.dense is layout and len(shapes._layouts) == count + 2
    turned = shapes.layout_of((24, 19), (1, 24), torch.float32)
    assert turned.dense is shapes.layout_of((24, 19), None, torch.float32)
    del layout, turned
    shapes._recent.clear()
    assert len(shapes._layouts) == count


def test_a_plan_found_by_a_layout_that_was_forgotten_is_made_anew(few):
    x = torch.arange(6.0).reshape(2, 3)
    wanted = (x + x).tolist()
    for n in range(4, 500):
        torch.zeros(n).tanh()
    assert (x._layout, x._layout) not in add.op.memo.plans
    y = torch.arange(6.0).reshape(2, 3)
    assert (x + y).tolist() == wanted and (x._layout, y._layout) in add.op.memo.plans


def test_threads_that_make_new_shapes(few):
    failed = []

    def work(first):
        try:
            for n in range(first, first + 300):
                assert step(n % 211 + 2)[1].tolist() == [1.0] * (3 * (n % 211 + 2))
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=work, args=(first,)) for first in (0, 50, 100, 150)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not failed


def test_another_default_dtype_is_heeded_after_calls_under_the_first():
    x = torch.tensor([1, 2])
    assert x.tanh().dtype is torch.float32 and (x * 0.5).dtype is torch.float32
    torch.set_default_dtype(torch.float64)
    try:
        assert x.tanh().dtype is torch.float64 and (x * 0.5).dtype is torch.float64
        y = torch.ones(2, requires_grad=True)
        (y * x).sum().backward()
        assert y.grad.dtype is torch.float64
    finally:
        torch.set_default_dtype(torch.float32)
    assert x.tanh().dtype is torch.float32 and (x * 0.5).dtype is torch.float32
