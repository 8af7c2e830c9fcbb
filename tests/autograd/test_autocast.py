"""`autocast` by itself: what it costs others, what is kept of parameters, threads, compiled functions, checkpoints, classes that take calls over."""

from __future__ import annotations

import threading

import pytest

import autograd_nb as torch
from autograd_nb.autograd.autocasting import rules
from autograd_nb.autograd.torch_function import INTERCEPTION, LINGER
from autograd_nb.graph import casting
from autograd_nb.utils.checkpoint import checkpoint

F = torch.nn.functional
LINEAR = torch.nn.Linear(4, 4)


@pytest.fixture(autouse=True)
def nothing_stays():
    """No state is left behind in this thread, and functions are their own again after some calls."""
    before = {} if INTERCEPTION.count else {f: f.__code__ for f in rules()}
    yield
    settle()
    assert casting.state.to is None and not casting.state.enabled and not casting.state.nesting and not casting.state.kept
    assert not INTERCEPTION._casting
    if not INTERCEPTION.count:
        assert all(f.__code__ is code or "_write" in f.__globals__ for f, code in before.items())


def settle() -> None:
    for _ in range(LINGER + 1):
        INTERCEPTION.pass_by()


def product() -> object:
    return (torch.ones(2, 2) @ torch.ones(2, 2)).dtype


def test_functions_are_their_own_outside_of_regions():
    F.linear(torch.ones(1, 4), LINEAR.weight)
    code = F.linear.__code__
    with torch.autocast("cpu"):
        assert F.linear.__code__ is not code
        with torch.autocast("cpu", enabled=False):
            assert product() is torch.float32
        assert product() is torch.bfloat16
    assert product() is torch.float32
    for _ in range(LINGER):
        product()
    assert F.linear.__code__ is code and product() is torch.float32


def test_the_next_region_finds_the_places_taken(monkeypatch):
    with torch.autocast("cpu"):
        code = F.linear.__code__
    taken = []
    take = INTERCEPTION._take
    monkeypatch.setattr(INTERCEPTION, "_take", lambda *given: taken.append(given) or take(*given))
    for _ in range(3):
        assert product() is torch.float32
        with torch.autocast("cpu"):
            assert product() is torch.bfloat16 and F.linear.__code__ is code
    assert not taken
    settle()
    with torch.autocast("cpu"):
        assert product() is torch.bfloat16
    assert taken


def test_a_region_is_the_threads():
    seen, inside, go_on = [], threading.Event(), threading.Event()

    def other():
        seen.append(product())
        with torch.autocast("cpu", dtype=torch.float16):
            inside.set()
            go_on.wait(60)
            seen.append(product())

    thread = threading.Thread(target=other)
    with torch.autocast("cpu"):
        thread.start()
        inside.wait(60)
        assert product() is torch.bfloat16
    assert product() is torch.float32
    go_on.set()
    thread.join()
    assert seen == [torch.float32, torch.float16]


def test_one_object_may_be_entered_again():
    """Recursion through a decorator leaves nothing behind; nor does one region in two threads."""
    region = torch.autocast("cpu")

    @region
    def falls(n):
        return product() if n == 0 else falls(n - 1)

    assert falls(3) is torch.bfloat16 and product() is torch.float32
    with region:
        thread = threading.Thread(target=falls, args=(1,))
        thread.start()
        thread.join()
        assert product() is torch.bfloat16
    assert product() is torch.float32


# ------------------------------------------------------------------------------------------------- parameters


def test_parameters_are_cast_once_in_a_region(monkeypatch):
    from autograd_nb.autograd import autocasting

    seen = []
    own = autocasting.cast
    monkeypatch.setattr(autocasting, "cast", lambda t, to: (seen.append(t), own(t, to))[1])
    x = torch.ones(2, 4)
    for cache, count in ((True, 1), (False, 2)):
        seen.clear()
        with torch.autocast("cpu", cache_enabled=cache):
            F.linear(F.linear(x, LINEAR.weight), LINEAR.weight)
        assert sum(t is LINEAR.weight for t in seen) == count


def test_what_is_kept_is_not_seen():
    """Neither after a change in place, nor after no_grad, nor after a backward pass within the region."""
    w = torch.nn.Parameter(torch.ones(2, 2))
    x = torch.ones(1, 2)
    with torch.autocast("cpu"):
        with torch.no_grad():
            F.linear(x, w)
        assert F.linear(x, w).requires_grad
        with torch.no_grad():
            w.mul_(2)
        assert F.linear(x, w).tolist() == [[4.0, 4.0]]
        for k in range(3):
            F.linear(x, w).float().sum().backward()
            assert w.grad.dtype is torch.float32 and w.grad.tolist() == [[k + 1.0] * 2] * 2
        w.requires_grad_(False)
        assert not F.linear(x, w).requires_grad


def test_training_within_one_region():
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 3))
    optimizer, x, y = torch.optim.Adam(net.parameters(), 0.05), torch.randn(6, 4), torch.arange(6) % 3
    with torch.autocast("cpu"):
        losses = []
        for _ in range(40):
            optimizer.zero_grad()
            loss = F.cross_entropy(net(x), y)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    assert loss.dtype is torch.float32 and losses[-1] < 0.2 * losses[0]


# ---------------------------------------------------------------------------------------- compiled, checkpointed


def test_a_compiled_function_has_a_program_for_each_state():
    step = torch.compile(lambda x: F.linear(x, LINEAR.weight) * 2)
    x = torch.ones(2, 4)
    for region, expected, programs in (
        (torch.autocast("cpu", enabled=False), torch.float32, 1), (torch.autocast("cpu"), torch.bfloat16, 2),
        (torch.autocast("cpu", torch.float16), torch.float16, 3), (torch.autocast("cpu"), torch.bfloat16, 3),
        (torch.autocast("cpu", enabled=False), torch.float32, 3),
    ):  # fmt: skip
        for _ in range(3):
            with region:
                assert step(x).dtype is expected
        assert len(step.programs) == programs
    assert "autocast" in step.programs[1].reason


def test_a_region_within_a_compiled_function():
    w = torch.nn.Parameter(torch.eye(4))
    optimizer = torch.optim.SGD([w], lr=0.25)

    @torch.compile
    def step(x):
        optimizer.zero_grad()
        with torch.autocast("cpu"):
            loss = F.mse_loss(F.linear(x, w), torch.zeros(2, 4))
        loss.backward()
        optimizer.step()
        return loss

    losses = [step(torch.ones(2, 4)).item() for _ in range(5)]
    assert len(step.programs) == 1 and losses == sorted(losses, reverse=True) and losses[-1] < losses[0]
    assert product() is torch.float32


@pytest.mark.parametrize("reentrant", [False, True])
@pytest.mark.parametrize("before", [False, True])
def test_a_checkpoint_is_computed_again_as_it_was(reentrant, before):
    net = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 3))
    found = []
    for run in (lambda x: net(x), lambda x: checkpoint(net, x, use_reentrant=reentrant)):
        x = torch.linspace(-1, 1, 8).view(2, 4).requires_grad_()
        with torch.autocast("cpu"):
            if before:  # parameters are cast already
                net(x)
            y = run(x)
        assert y.dtype is torch.bfloat16
        y.float().sum().backward()
        found.append(x.grad)
    assert torch.equal(*found)


def test_a_checkpoint_outside_whose_pass_runs_in_a_region():
    x = torch.ones(2, 4, requires_grad=True)
    y = checkpoint(LINEAR, x, use_reentrant=False)
    with torch.autocast("cpu"):
        y.sum().backward()
    assert y.dtype is torch.float32 and torch.allclose(x.grad, LINEAR.weight.sum(0).expand(2, 4))


# ------------------------------------------------------------------------------------------ others at the same door


def test_classes_and_modes_are_asked_first():
    class Named(torch.Tensor):
        pass

    class Count(torch.overrides.TorchFunctionMode):
        seen = 0

        def __torch_function__(self, func, types, args=(), kwargs=None):
            type(self).seen += func is torch.Tensor.matmul or func is torch.matmul
            return func(*args, **(kwargs or {}))

    named = torch.ones(2, 2).as_subclass(Named)
    with torch.autocast("cpu"):
        y = named @ named
        assert type(y) is Named and y.dtype is torch.bfloat16
        with Count():
            assert product() is torch.bfloat16
        assert Count.seen == 1 and product() is torch.bfloat16
    with Count(), torch.autocast("cpu"):
        assert product() is torch.bfloat16
    assert Count.seen == 2 and product() is torch.float32


def test_transforms():
    w, x = torch.randn(3, 3), torch.randn(5, 3)
    with torch.autocast("cpu"):
        y = torch.func.vmap(lambda row: w @ row)(x)
        g = torch.func.grad(lambda w: F.linear(x, w).float().sum())(w)
        primal, tangent = torch.func.jvp(lambda w: F.linear(x, w), (w,), (torch.ones(3, 3),))
    assert y.dtype is primal.dtype is tangent.dtype is torch.bfloat16 and g.dtype is torch.float32
    torch.testing.assert_close(y.float(), x @ w.t(), atol=0.1, rtol=0.05)
    torch.testing.assert_close(g, x.sum(0).expand(3, 3), atol=0.1, rtol=0.05)
    torch.testing.assert_close(tangent.float(), x.sum(1, keepdim=True).expand(5, 3), atol=0.1, rtol=0.05)


def test_second_derivatives():
    w = torch.tensor([[0.5]], requires_grad=True)
    with torch.autocast("cpu"):
        y = F.linear(torch.tensor([[2.0]]), w).float().pow(3).sum()
    (g,) = torch.autograd.grad(y, w, create_graph=True)
    (h,) = torch.autograd.grad(g.sum(), w)
    assert g.dtype is h.dtype is torch.float32 and (g.item(), h.item()) == (6.0, 24.0)
