"""The one door: observed launches compute the same, and memory of big freed arrays is used again."""

from __future__ import annotations

import copy
import pickle
import threading

import numpy as np
import pytest

import autograd_nb as torch
from autograd_nb import launch
from autograd_nb.launch import memory


def step(model, x):
    model.zero_grad()
    loss = (model(x).softmax(1) * torch.arange(3.0)).sum()
    loss.backward()
    return [p.grad.numpy().copy() for p in model.parameters()]


def test_every_launch_can_be_observed():
    torch.manual_seed(0)
    model = torch.nn.Sequential(
        torch.nn.Conv2d(1, 2, 3), torch.nn.ReLU(), torch.nn.MaxPool2d(2), torch.nn.Flatten(), torch.nn.Linear(8, 3)
    )
    x = torch.rand(2, 1, 6, 6)
    plain = step(model, x)
    seen = []

    def observer(call, args):
        seen.append(call.name)
        call.entry(*args)

    with launch.observe(observer):
        observed = step(model, x)
    for a, b in zip(plain, observed, strict=True):
        np.testing.assert_array_equal(a, b)
    for name in ("forward", "by_weight", "relu", "relu_backward", "max_forward_pairs", "scatter", "matmul", "mul", "sum"):
        assert any(name in s for s in seen), (name, seen)
    count = len(seen)
    step(model, x)
    assert len(seen) == count  # no longer


def test_memory_of_big_arrays_is_used_again():
    memory.release_memory()
    x = torch.ones(1 << 20)
    address = x.data_ptr()
    assert address % 16 == 0
    del x
    y = torch.zeros(1 << 20)
    assert y.data_ptr() == address
    view = y[10:]
    del y
    z = torch.ones(1 << 20)
    assert z.data_ptr() != address  # the view still looks at it
    assert not view.any()
    del z, view
    assert memory.release_memory() > 0
    assert memory.release_memory() == 0


SIZES = [launch.BIG, launch.BIG + 8, memory.LARGE - 8, memory.LARGE, 3 * memory.LARGE]


@pytest.mark.parametrize("size", SIZES)
def test_a_block_is_one_arrays_while_anything_looks_at_it(size):
    kind = np.dtype(np.float64)
    arrays = [launch.empty(size // 8, kind) for _ in range(4)]
    views = [a[3:7] for a in arrays]
    for k, a in enumerate(arrays):
        a.fill(k)
    del arrays, a
    others = [launch.empty(size // 8, kind) for _ in range(4)]
    for a in others:
        a.fill(-1)
    assert [v.tolist() for v in views] == [[k] * 4 for k in range(4)]
    assert not any(np.shares_memory(a, v) for a in others for v in views)
    del others, a
    assert memory.release_memory() > 0


@pytest.mark.parametrize("size", SIZES)
def test_threads_share_no_block(size):
    wrong = []

    def work(number):
        for _ in range(200):
            a = launch.empty(size // 8, np.dtype(np.int64))
            a[:16] = a[-16:] = number
            b = launch.empty(size // 8, np.dtype(np.int64))
            b[:16] = b[-16:] = -number
            if (a[:16] != number).any() or (a[-16:] != number).any():
                wrong.append(number)

    threads = [threading.Thread(target=work, args=(k + 1,)) for k in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


def test_arguments_are_typed():
    assert launch.argument_type(np.zeros(2, np.float32)) == "float32[:]"
    assert launch.argument_type((1, 2, 3)) == "(3)"
    with pytest.raises(TypeError, match="cannot take an argument of type str"):
        launch.argument_type("x")


def test_numpy_finds_tensors():
    t = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    assert np.asarray(t).tolist() == t.tolist()
    assert isinstance(np.exp(t), torch.Tensor)
    assert isinstance(np.multiply(np.ones(2, np.float32), t), torch.Tensor)
    assert np.sum(t, axis=0).tolist() == [4, 6]
    assert np.concatenate([t, t]).shape == (4, 2)
    assert np.from_dlpack(t).tolist() == t.tolist()
    shared = torch.from_numpy(np.zeros(2))
    np.asarray(shared)[0] = 5
    assert shared.tolist() == [5, 0]
    with pytest.raises(RuntimeError, match="Can't call numpy"):
        np.asarray(t.requires_grad_())


def test_copies_of_leaves():
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    x.note = "kept"
    for y in (copy.deepcopy(x), pickle.loads(pickle.dumps(x))):
        assert y.tolist() == [1, 2]
        assert y.requires_grad
        assert y.data_ptr() != x.data_ptr()
    assert copy.deepcopy(x).note == "kept"
    with pytest.raises(RuntimeError, match="Only Tensors created explicitly by the user"):
        copy.deepcopy(x * 2)


def test_a_plan_that_another_thread_was_making_when_an_observation_began_is_not_kept():
    table: dict = {}
    source = "def kernel(x, y):\n    y[0] = x[0] + 1\n"
    made, begun = threading.Event(), threading.Event()

    def making():
        plan = launch.entry(source, "kernel", ("float64[:]", "float64[:]"))
        made.set()
        assert begun.wait(10)
        launch.keep(table, "before", plan)
        launch.keep(table, "meanwhile", launch.entry(source, "kernel", ("float64[:]", "float64[:]")))

    thread = threading.Thread(target=making)
    thread.start()
    assert made.wait(60)
    seen = []
    with launch.observe(lambda call, args: (seen.append(call.name), call.entry(*args))):
        begun.set()
        thread.join()
        assert "before" not in table
        x = np.ones(1)
        table["meanwhile"](x, x)
        launch.keep(table, "mine", None)  # made of another plan, by the thread that observes
        assert "mine" in table
    assert seen == ["kernel"]
    assert x[0] == 2


def test_plans_are_kept_before_and_after_observations():
    table: dict = {}
    launch.keep(table, 1, "plan")
    with launch.observe(lambda call, args: call.entry(*args)):
        assert not table
    assert launch.keep(table, 1, "plan") == table[1]


def test_addresses_are_those_that_numpy_tells():
    """Of what may not be written, has gaps or no elements too."""
    fixed = np.ones(5)
    fixed.flags.writeable = False
    for array in (
        np.ones(3),
        np.ones(8)[2:],
        np.ones((4, 5))[1:, ::2],
        np.empty(0),
        np.ones(6)[6:],
        fixed,
        np.ones(3, bool),
        np.ones(2, complex),
        np.ones(4)[::-1],
    ):
        assert memory.address(array) == array.__array_interface__["data"][0]
    assert memory.distance(fixed, fixed[2:], 3) == 16 and memory.distance(fixed, np.ones(2), 2) is None
