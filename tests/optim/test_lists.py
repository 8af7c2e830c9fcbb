"""Updates of many parameters by one launch: what is launched, and the same bits as parameter by parameter."""

from __future__ import annotations

import numpy as np
import pytest
from numba import config

import autograd_nb as torch
from autograd_nb import launch, nn, optim

#: of tests that ask for a program, or for the checks of compiled code
COMPILES = pytest.mark.skipif(bool(config.DISABLE_JIT), reason="nothing is compiled")

UPDATES = {
    "sgd": lambda p: optim.SGD(p, 0.1, weight_decay=0.1),
    "momentum": lambda p: optim.SGD(p, 0.1, momentum=0.9),
    "adam": lambda p: optim.Adam(p, 0.01),
    "nadam": lambda p: optim.NAdam(p, 0.01, weight_decay=0.1, decoupled_weight_decay=True),
    "asgd": lambda p: optim.ASGD(p, 0.01, t0=1),
}


def launched(function):
    """The names of the kernels of optimizers that it launches."""
    seen = []

    def observer(call, args):
        call.entry(*args)
        if call.origin[:2] == ("kernel", "optim"):
            seen.append(call.name)

    with launch.observe(observer):
        function()
    return seen


def parameters(*shapes, dtype="float32"):
    rng = np.random.default_rng(0)
    return [nn.Parameter(torch.tensor(rng.normal(size=s).astype(dtype))) for s in shapes]


def give_gradients(params, seed, without=()):
    rng = np.random.default_rng(seed)
    for i, p in enumerate(params):
        g = torch.tensor(rng.normal(size=p.shape).astype(p.dtype.name))
        p.grad = None if i in without else g


def numbers(params, optimizer):
    states = [s for p in params for _, s in sorted(optimizer.state[p].items())]
    return [t.detach().numpy().copy() for t in (*params, *states)]


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("name", UPDATES)
def test_one_launch_has_the_bits_of_many(name, threads):
    shapes = [(700, 1000), (3,), (), (0,), (513, 300), (5,)]
    together, alone = parameters(*shapes), parameters(*shapes)
    one, many = UPDATES[name](together), UPDATES[name]([{"params": [p]} for p in alone])
    before = torch.get_num_threads()
    try:
        for step in range(4):  # counters differ from parameter to parameter
            for params in (together, alone):
                give_gradients(params, step, without=(step, step + 3))
            torch.set_num_threads(threads)
            one.step()
            torch.set_num_threads(1)
            many.step()
    finally:
        torch.set_num_threads(before)
    for a, b in zip(numbers(together, one), numbers(alone, many), strict=True):
        np.testing.assert_array_equal(a, b)
    assert [p._version for p in together] == [p._version for p in alone]


def test_a_group_is_one_launch_for_each_dtype():
    params = [*parameters((3,), (2, 2), ()), *parameters((4,), (5,), dtype="float64")]
    optimizer = optim.Adam(params)
    give_gradients(params, 0)
    assert launched(optimizer.step) == ["adam", "adam"]
    assert launched(lambda: nn.utils.clip_grad_norm_(params, 0.1)) == [
        "sum_of_powers",
        "sum_of_powers",
        "root",
        "clip_factor",
        "scale",
        "scale",
    ]
    assert launched(lambda: nn.utils.clip_grad_value_(params, 0.1)) == ["clamp", "clamp"]


def test_momentum_that_begins_is_launched_apart():
    params = parameters((3,), (2,), (4,))
    optimizer = optim.SGD(params, 0.1, momentum=0.9)
    give_gradients(params, 0, without=(1,))
    assert launched(optimizer.step) == ["sgd_momentum"]
    give_gradients(params, 1)
    assert launched(optimizer.step) == ["sgd_momentum", "sgd_momentum"]


def test_more_parameters_than_a_list_holds():
    params = parameters(*[(1,)] * (launch.MOST + 3))
    before = [p.item() for p in params]
    optimizer = optim.SGD(params, 1.0)
    give_gradients(params, 0)
    assert launched(optimizer.step) == ["sgd", "sgd"]
    for p, old in zip(params, before, strict=True):
        assert p.item() == np.float32(old) - p.grad.numpy()[0]


def test_memory_that_is_replaced_between_steps_is_what_the_next_one_updates():
    params = parameters((4, 3), (5,))
    optimizer = optim.SGD(params, 1.0)
    give_gradients(params, 0)
    optimizer.step()
    old = params[0].data
    kept = old.numpy().copy()
    params[0].data = torch.ones(3, 4).t()  # not contiguous from now on
    whole = torch.zeros(9)
    params[1].data = whole[2:7]  # memory that goes on behind it
    give_gradients(params, 1)
    optimizer.step()
    np.testing.assert_array_equal(old.numpy(), kept)
    np.testing.assert_array_equal(params[0].detach().numpy(), 1 - params[0].grad.numpy())
    np.testing.assert_array_equal(whole.numpy(), np.pad(-params[1].grad.numpy(), 2))


def test_a_gradient_of_another_size_or_dtype():
    (p,) = parameters((3,))
    for make in (optim.SGD, optim.Adam):
        optimizer = make([p], lr=0.5)
        give_gradients([p], 0)
        optimizer.step()
        p.data = torch.ones(5)
        with pytest.raises(RuntimeError, match="must match"):
            optimizer.step()
        assert p.tolist() == [1.0] * 5
        p.data = torch.ones(3)
    optimizer = optim.SGD([p], 0.5)
    p.data = torch.ones(3, dtype=torch.float64)
    optimizer.step()
    np.testing.assert_array_equal(p.detach().numpy(), 1 - 0.5 * p.grad.numpy().astype(np.float64))


def test_parameters_that_share_memory_are_updated_one_after_the_other():
    whole = torch.ones(1 << 20)
    a, b = (nn.Parameter(v) for v in (whole[:-1], whole[1:]))
    optimizer = optim.SGD([a, b], 1.0)
    a.grad, b.grad = torch.full_like(a, 0.25), b.detach()  # the gradient of the second is what the first has left
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        optimizer.step()
    finally:
        torch.set_num_threads(before)
    expected = np.zeros(1 << 20, np.float32)
    expected[0] = 0.75
    np.testing.assert_array_equal(whole.numpy(), expected)


@COMPILES
def test_lists_are_as_long_as_one_another_and_of_flat_arrays():
    scale = launch.Kernel("optim", "scale")
    factor, x = np.full(1, 2.0), np.arange(3, dtype=np.float32)
    scale("float32", factor, [x, x[:0], x[1:]])
    np.testing.assert_array_equal(x, [0, 4, 8])
    for wrong in ((x,), [x.reshape(1, 3)], [None]):
        with pytest.raises(TypeError, match="argument of a kernel"):
            scale("float32", factor, wrong)
    sgd = launch.Kernel("optim", "sgd")
    sgd("float32", 1.0, 0.0, 1.0, True, [x.copy()], [x])
    with pytest.raises(TypeError, match="argument of a kernel"):
        sgd("float32", 1.0, 0.0, 1.0, True, [x, x], [x])


@COMPILES
@pytest.mark.parametrize("threads", [1, 2])
def test_a_compiled_step_updates_by_one_kernel(threads):
    def make():
        torch.manual_seed(0)
        params = [torch.randn(700, 1000), torch.randn(3), torch.randn(40, 7)]
        for p in params:
            p.requires_grad_()
        optimizer = optim.Adam(params, 0.01)
        scales = [torch.randn(p.shape) for p in params]

        def step():
            optimizer.zero_grad()
            sum((p * p * s).sum() for p, s in zip(params, scales, strict=True)).backward()
            optimizer.step()

        return params, optimizer, step

    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        (mine, first, step), (theirs, second, eager) = make(), make()
        compiled = torch.compile(step, fullgraph=True)
        for _ in range(4):
            compiled()
            eager()
        for a, b in zip(numbers(mine, first), numbers(theirs, second), strict=True):
            np.testing.assert_array_equal(a, b)
        program = compiled.programs[0].program
        assert [s.name for s in program.steps].count("adam") == threads  # the second counts, once all pieces have read the counts
        assert bool(program.shared) is (threads > 1)
        mine[1].data = torch.ones(3)  # memory of the program is what the parameters have now
        theirs[1].data = torch.ones(3)
        compiled()
        eager()
        np.testing.assert_array_equal(mine[1].detach().numpy(), theirs[1].detach().numpy())
    finally:
        torch.set_num_threads(before)
