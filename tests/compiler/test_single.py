"""Programs of one kernel, and those with kernels that only Python can call, take the short way and give what eager calls give."""

from __future__ import annotations

import threading

import pytest

import autograd_nb as torch

a, b = torch.randn(6, 6), torch.randn(6, 6)

ONE_KERNEL = {
    "pointwise": lambda x: x + a,
    "product": lambda x: x @ b,
    "reduction": lambda x: x.sum(1),
    "random": lambda x: torch.rand(5),
    "in place": lambda x: x.mul_(2),
    "view": lambda x: (x + a)[1:],
}


def called(function, x):
    """Return what three calls give, and what they have left in the argument and the generator."""
    torch.manual_seed(3)
    x = x.clone()
    return [function(x).clone() for _ in range(3)], x, torch.rand(2)


@pytest.mark.parametrize("name", ONE_KERNEL)
def test_one_kernel_is_called_without_the_programs_lock(name):
    function = ONE_KERNEL[name]
    compiled = torch.compile(function, fullgraph=True)
    x = torch.randn(6, 6)
    with torch.no_grad():
        torch.testing.assert_close(called(compiled, x), called(function, x), rtol=0, atol=0)
        (variant,) = compiled.programs
        assert len(variant.program.steps) == 1 and variant.state.call is not None
        held, done, found = threading.Event(), threading.Event(), []

        def hold():
            with variant.program.lock:
                held.set()
                done.wait(10)

        def call():
            with torch.no_grad():
                found.append(called(compiled, x))

        threads = [threading.Thread(target=hold), threading.Thread(target=call)]
        threads[0].start()
        held.wait()
        threads[1].start()
        threads[1].join(5)
        try:
            assert found, "the call waits for the program's lock"
        finally:
            done.set()
            for t in threads:
                t.join()
        torch.testing.assert_close(found[0], called(function, x), rtol=0, atol=0)


def test_an_argument_may_begin_a_longer_piece_of_memory():
    compiled = torch.compile(lambda x: x.exp(), fullgraph=True)
    whole = torch.randn(40)
    for part in (torch.randn(7), whole[:7], whole[20:27]):
        torch.testing.assert_close(compiled(part), part.exp(), rtol=0, atol=0)
    assert len(compiled.programs) == 1


def test_what_holds_around_a_call_is_asked_each_time():
    compiled = torch.compile(lambda: torch.rand(3) + a.sum())
    for _ in range(3):
        assert compiled().dtype is torch.float32 and not compiled().requires_grad
    torch.set_default_dtype(torch.float64)
    try:
        assert compiled().dtype is torch.float64
    finally:
        torch.set_default_dtype(torch.float32)
    w = torch.randn(6, requires_grad=True)
    doubled = torch.compile(lambda: w * 2)
    assert doubled().requires_grad and doubled().requires_grad
    with torch.no_grad():
        assert not doubled().requires_grad and not doubled().requires_grad
    with torch.inference_mode():
        assert doubled().is_inference()
    assert doubled().requires_grad
    packed = []
    with torch.autograd.graph.saved_tensors_hooks(lambda t: packed.append(t) or t, lambda t: t):
        w.exp()
        torch.compile(lambda: w.exp())()
        assert len(packed) == 2


@pytest.mark.filterwarnings("ignore:.*runs eagerly")
def test_calls_that_stay_eager_go_straight_to_the_function_until_what_holds_around_changes():
    compiled = torch.compile(lambda: a[a > 0] if not torch.is_grad_enabled() else a + 1)
    with torch.no_grad():
        for _ in range(3):
            torch.testing.assert_close(compiled(), a[a > 0])
        assert compiled._eager is not None and not compiled.programs
    for _ in range(3):
        torch.testing.assert_close(compiled(), a + 1)
    assert len(compiled.programs) == 1
    compiled.forget()
    assert compiled._eager is None


@pytest.mark.filterwarnings("ignore:.*runs eagerly")
def test_calls_that_stay_eager_for_long_do_not_look_at_what_they_carry():
    """What a function leaves in Python's state would have made each call's key, which no longer tells anything."""
    kept = {"count": 0, "x": torch.ones(3)}

    def step():
        kept["count"] += 1
        kept["x"] = kept["x"] * 2 if kept["count"] % 2 else kept["x"] / 2
        return kept["x"] + kept["count"]

    compiled = torch.compile(step)
    for k in range(1, 200):
        torch.testing.assert_close(compiled(), torch.full((3,), 2.0 if k % 2 else 1.0) + k)
    assert compiled._carried and compiled._eager is not None and not compiled.programs


FOREIGN = {"fft": lambda x: torch.fft.fft2(x).abs(), "real": lambda x: torch.fft.rfft(x), "there and back": lambda x: torch.fft.ifft(torch.fft.fft(x)).real + 1}


@pytest.mark.parametrize("name", FOREIGN)
def test_kernels_of_other_libraries_take_the_short_way_too(name):
    function = FOREIGN[name]
    compiled = torch.compile(function, fullgraph=True)
    for _ in range(4):
        x = torch.randn(8, 8)
        torch.testing.assert_close(compiled(x), function(x), rtol=0, atol=0)
    (variant,) = compiled.programs
    assert variant.state.call is not None
