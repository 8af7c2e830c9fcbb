"""Signals at any moment: handlers that compute, handlers that need kernels while others are compiled, Ctrl-C."""

from __future__ import annotations

import _thread
import functools
import gc
import os
import signal
import subprocess
import sys
import textwrap
import traceback
from pathlib import Path
from types import FunctionType

import pytest

import autograd_nb as torch
from autograd_nb.autograd import handlers
from autograd_nb.autograd.handlers import _is_users
from autograd_nb.graph.modes import state, unrecorded
from autograd_nb.overriding import whole

pytestmark = pytest.mark.skipif(os.name != "posix", reason="timers that send signals are POSIX's")
ROOT = Path(__file__).parents[1]


def python(code: str, timeout: float = 240, **environment: str) -> str:
    """What a process of its own prints; it must end by itself, without a signal."""
    env = {k: v for k, v in os.environ.items() if not k.startswith("NUMBA_")}
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], env={**env, "PYTHONPATH": str(ROOT), **environment}, capture_output=True, text=True,
        timeout=timeout, check=False,
    )  # fmt: skip
    assert done.returncode == 0, (done.returncode, done.stdout[-1000:], done.stderr[-3000:])
    return done.stdout.strip()


@pytest.fixture
def ticking():
    """Calls a function every so often, wherever the program is, until ``stop``. (To clear the timer is not enough: a handler that is called just
    then sets it again.)"""

    def start(function, seconds=0.0005):
        def handler(number, frame):
            if on[0]:
                function()
                signal.setitimer(signal.ITIMER_REAL, seconds)  # not before it is done: calls would pile up

        signal.signal(signal.SIGALRM, handler)
        signal.setitimer(signal.ITIMER_REAL, seconds)

    def stop():
        on[0] = False
        signal.setitimer(signal.ITIMER_REAL, 0)

    on = [True]
    before = signal.getsignal(signal.SIGALRM)
    start.stop = stop
    yield start
    stop()
    signal.signal(signal.SIGALRM, before)


def whereabouts() -> list[str]:
    """The functions in whose midst a handler was called."""
    return [f"{f.filename.rpartition('/')[2]}:{f.lineno} {f.name}" for f in traceback.extract_stack()[-10:-2]]


def step(x, w):
    loss = (torch.tanh(x @ w) * 2).sum() + (x * 3).mean()
    return torch.autograd.grad(loss, [x, w])


@pytest.mark.parametrize("mode", [True, False])
def test_a_handler_computes_in_the_users_grad_mode(ticking, mode):
    p = torch.tensor([1.0, 2.0], requires_grad=True)
    x, w = torch.randn(3, 4, requires_grad=True), torch.randn(4, 2, requires_grad=True)
    seen, places = [], []

    def compute():
        y = (p * p).sum()
        seen.append((torch.is_grad_enabled(), y.requires_grad))
        if mode and not seen[-1][0]:  # tell where
            places.append(whereabouts())
        with torch.enable_grad():
            y = (p * p).sum()
        y.backward()

    expected = step(x, w)
    compute()
    seen.clear()
    p.grad = None
    with torch.set_grad_enabled(mode):
        loss = None
        ticking(compute)
        while len(seen) < 300:
            with torch.enable_grad():
                loss = (torch.tanh(x @ w) * 2).sum() + (x * 3).mean()
            found = torch.autograd.grad(loss, [x, w])
            assert all(map(torch.equal, found, expected))
            assert torch.is_grad_enabled() is mode
        ticking.stop()
    # where the interrupted code itself has switched recording on, it is on
    assert not places
    assert all(a is b for a, b in seen) and (mode is False or all(a for a, _ in seen))
    assert torch.equal(p.grad, 2 * len(seen) * p.detach())


def test_no_handler_finds_recording_off_in_a_backward_pass(ticking):
    x = torch.randn(8, requires_grad=True)
    seen = []
    ticking(lambda: seen.append([] if torch.is_grad_enabled() else whereabouts()))
    while len(seen) < 400:
        y = x
        for _ in range(30):
            y = y.cumsum(0) * 0.5
        y.sum().backward()
    assert not [place for place in seen if place]


def collects():
    """Set the collector to run at almost every container, with a callback of the user's that takes its time in functions of its own."""

    def slow():
        return sum(range(200))

    def callback(phase, info):
        slow()

    gc.callbacks.append(callback)
    before = gc.get_threshold()
    gc.set_threshold(5)
    return lambda: (gc.set_threshold(*before), gc.callbacks.remove(callback))


def traces():
    """Trace what follows, with a function of the user's."""

    def trace(frame, event, argument):
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    return lambda: sys.settrace(before)


def profiles():
    before = sys.getprofile()
    sys.setprofile(lambda frame, event, argument: sum(range(50)))
    return lambda: sys.setprofile(before)


@pytest.mark.parametrize("begin", [collects, profiles, traces])
def test_functions_that_python_calls_by_itself_change_no_handlers_mode(ticking, begin):
    """The callback of a library that watches the collector ran within a backward pass; a handler that came then found recording off."""
    x = torch.randn(8, requires_grad=True)
    seen = []
    end = begin()
    try:
        ticking(lambda: seen.append([] if torch.is_grad_enabled() else whereabouts()))
        while len(seen) < 100:
            y = x
            for _ in range(10):
                y = y.cumsum(0) * 0.5
            y.sum().backward()
        ticking.stop()
    finally:
        end()
    assert not [place for place in seen if place]


def test_what_is_generated_is_no_users_code():
    """Methods that dataclasses and named tuples are given, and functions that are written at run time, name no file of the package."""
    (torch.tanh(torch.ones(2, requires_grad=True)) * 2).sum().backward()
    generated = 0
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] != "autograd_nb":
            continue
        own = [v for v in vars(module).values() if str(getattr(v, "__module__", "")).startswith("autograd_nb")]
        members = [getattr(f, "__func__", f) for v in own if isinstance(v, type) for f in vars(v).values()]
        for function in (*own, *members):
            if isinstance(function, FunctionType):
                generated += function.__code__.co_filename.startswith("<")
                assert not _is_users(function.__code__, function.__globals__), function
    assert generated > 100
    assert _is_users(compile("0", "<string>", "exec"), {"__name__": "__main__"})


def test_hooks_keep_the_mode_of_their_pass():
    x = torch.tensor(2.0, requires_grad=True)
    seen = []
    signal.signal(signal.SIGUSR1, lambda number, frame: seen.append(torch.is_grad_enabled()))
    try:
        for create_graph in (False, True):
            y = x * x
            y.register_hook(lambda g: os.kill(os.getpid(), signal.SIGUSR1))
            torch.autograd.grad(y, x, create_graph=create_graph)
    finally:
        signal.signal(signal.SIGUSR1, signal.SIG_DFL)
    assert seen == [False, True]  # as in PyTorch: the hook is the user's code that was interrupted


def test_handlers_are_shown_as_they_were_given():
    def handler(number, frame):
        raise ValueError(number)

    before, plain = signal.signal(signal.SIGUSR1, handler), signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        assert signal.getsignal(signal.SIGUSR1) is handler
        with pytest.raises(ValueError, match=str(int(signal.SIGUSR1))):
            os.kill(os.getpid(), signal.SIGUSR1)
        assert signal.signal(signal.SIGUSR1, signal.SIG_IGN) is handler
        assert signal.getsignal(signal.SIGUSR1) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGUSR1, before)
        assert signal.signal(signal.SIGINT, plain) is signal.default_int_handler


def test_a_handler_runs_the_compiled_function_that_it_interrupts(ticking):
    w = torch.randn(4, 4)
    scale = torch.tensor([1.5], requires_grad=True)

    @torch.compile
    def f(x):
        return torch.tanh(x @ w) * 2

    @torch.compile
    def g(x):
        return (torch.tanh(x @ w) * scale).sum()

    inputs = [torch.full((4, 4), float(i)) for i in range(4)]
    for _ in range(3):
        expected = [(f(x).clone(), torch.autograd.grad(g(x), scale)[0].clone()) for x in inputs]
    wrong, calls = [], [0]

    def compute():
        i = calls[0] % 4
        calls[0] += 1
        if not torch.equal(f(inputs[i]), expected[i][0]):
            wrong.append(i)
        with torch.enable_grad():  # `assert_close` has switched it off, as any function may
            d = torch.autograd.grad(g(inputs[i]), scale)[0]
        torch.testing.assert_close(d, expected[i][1])

    ticking(compute)
    while calls[0] < 400:
        for x, (y, d) in zip(inputs, expected, strict=True):
            torch.testing.assert_close(f(x), y)
            torch.testing.assert_close(torch.autograd.grad(g(x), scale)[0], d)
    ticking.stop()
    assert not wrong


def test_a_handler_wants_memory_while_memory_is_given(ticking):
    x = torch.ones(200_000)
    calls = [0]

    def compute():
        calls[0] += 1
        assert (x + 1)[-1] == 2

    compute()
    ticking(compute, 0.002)
    while calls[0] < 100:
        assert (x * 2)[0] == 2
        torch.release_memory()


KERNELS = """
import os, signal, sys, time, threading
import numpy as np
from autograd_nb.codegen.build import compilation
def text(k):
    return f"def kernel(x, y):\\n    for i in range(y.size):\\n        y[i] = x[i] * {k}\\n"
def run(k):
    x, y = np.ones(2, np.float32), np.zeros(2, np.float32)
    compilation.build(text(k), "kernel", ("float32[:]", "float32[:]"))(x, y)
    assert y.tolist() == [k, k], (k, y)
"""


@pytest.mark.slow
def test_a_handler_needs_a_kernel_while_another_is_compiled(tmp_path):
    """From the first import of Numba on; each handler compiles a kernel of its own, some while another handler waits for its."""
    code = KERNELS + textwrap.dedent("""
    count = [0]
    def handler(number, frame):
        count[0] += 1
        if count[0] <= 12:
            run(1000 + count[0])
    signal.signal(signal.SIGALRM, handler)
    signal.setitimer(signal.ITIMER_REAL, 0.03, 0.07)
    k = 1
    while k < 11 or count[0] <= 5:
        k += 1
        run(k)
    signal.setitimer(signal.ITIMER_REAL, 0)
    print("numba" in sys.modules)
    """)
    for _ in range(2):  # compiled, and loaded
        assert python(code, AUTOGRAD_NB_CACHE_DIR=str(tmp_path)).endswith("True")


@pytest.mark.slow
def test_a_handler_needs_a_kernel_while_numba_compiles_the_users_code(tmp_path):
    code = KERNELS + textwrap.dedent("""
    run(1)
    import numba
    said = []
    def handler(number, frame):
        try:
            run(2 + len(said))
            said.append("ran")
        except RuntimeError as error:
            said.append(str(error))
    signal.signal(signal.SIGALRM, handler)
    signal.setitimer(signal.ITIMER_REAL, 0.01, 0.05)
    for k in range(3):
        f = numba.njit(lambda x: np.sort(x * 2)[0] + np.cumsum(x)[-1])
        assert f(np.ones(3)) == 5.0
    signal.setitimer(signal.ITIMER_REAL, 0)
    print(set(s[:54] for s in said))
    run(99)
    """)
    found = python(code, AUTOGRAD_NB_CACHE_DIR=str(tmp_path))
    assert "a kernel is needed while Numba compiles something else" in found


def test_a_finalizer_needs_a_kernel_in_the_midst_of_compiling(tmp_path):
    code = KERNELS + textwrap.dedent("""
    plain = compilation._compile
    def compile_(*args):
        if len(said) == 0:
            said.append("")
            try:
                run(5)
            except RuntimeError as error:
                said[0] = str(error)
        return plain(*args)
    said = []
    compilation._compile = compile_
    run(4)
    print(said[0][:52])
    run(5)
    """)
    assert python(code, AUTOGRAD_NB_CACHE_DIR=str(tmp_path)) == "a kernel is needed in the midst of making another on"


def test_interrupts_while_kernels_are_compiled_and_loaded(tmp_path):
    """Ctrl-C breaks off the waiting; the work goes on, and the next call finds its result."""
    code = KERNELS + textwrap.dedent("""
    import random
    rng = random.Random(int(sys.argv[1]) if len(sys.argv) > 1 else 0)
    run(2)
    began = time.perf_counter()
    run(3)
    took = time.perf_counter() - began
    interrupts, k = 0, 3
    signal.signal(signal.SIGALRM, signal.default_int_handler)
    while k < 14 or interrupts <= 5:
        k += 1
        while True:
            try:
                signal.setitimer(signal.ITIMER_REAL, rng.uniform(0.001, took))
                run(k)
                signal.setitimer(signal.ITIMER_REAL, 0)
                break
            except KeyboardInterrupt:
                interrupts += 1
        run(k)
    """)
    python(code, AUTOGRAD_NB_CACHE_DIR=str(tmp_path))
    assert not [p for p in tmp_path.iterdir() if p.suffix not in (".kernel", ".requests")]


STEPS = """
import random, signal, sys
import autograd_nb as torch
from autograd_nb import launch
torch.manual_seed(0)
w = torch.randn(3, 2, requires_grad=True)
p = torch.ones(2, requires_grad=True)
optimizer = torch.optim.SGD([p], lr=0.1, momentum=0.9)
x = torch.randn(4, 3)
def eager():
    loss = torch.tanh(x @ w).cumsum(0).sum()
    return torch.autograd.grad(loss, w)[0]
compiled = torch.compile(lambda: torch.autograd.grad((torch.tanh(x @ w) * 3).sum(), w)[0])
def training():
    optimizer.zero_grad()
    (p * p).sum().backward()
    optimizer.step()
    return None
def saved():
    return torch.autograd.grad((x @ w).sum().exp(), w)[0]
steps = [eager, compiled, training, saved]
expected = []
for f in steps:
    for _ in range(3):
        r = f()
    expected.append(None if r is None else r.clone())
torch.compiler.reset()
rng = random.Random(1)
class Stop(BaseException):
    pass
def handler(number, frame):
    global armed
    if armed:
        armed = False
        raise Stop
signal.signal(signal.SIGALRM, handler)
interrupts = 0
def attempt(f, k):
    global armed
    armed = True
    signal.setitimer(signal.ITIMER_REAL, rng.uniform(1e-5, 6e-4))
    while armed:  # (what is raised in a finalizer is lost)
        if k % 40 == 37:
            torch.compiler.reset()
        f()
for k in range(COUNT):
    f = steps[k % len(steps)]
    try:
        attempt(f, k)
    except Stop:
        interrupts += 1
    signal.setitimer(signal.ITIMER_REAL, 0)
    assert launch.observer() is None and launch._observing == 0, k
    assert torch.is_grad_enabled(), k
    for g, e in zip(steps, expected):
        r = g()
        assert e is None or torch.allclose(r, e), (k, g, r, e)
    assert torch.isfinite(p).all() and p.grad is not None
print(interrupts)
"""


@pytest.mark.slow
def test_interrupts_at_any_moment_of_steps():
    """Hundreds of them, in eager and compiled steps, captures and an optimizer: what is called next works and is right."""
    assert int(python(STEPS.replace("COUNT", "300"))) > 200


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["eager", "compiled"])
def test_a_signal_at_every_moment(kind):
    """Backward passes, optimizers, in-place ops, contexts, transforms: broken off, they have happened or not; see `interrupted`."""
    few, least = (["compiled", "--most", "20"], 250) if kind == "compiled" else ([], 500)
    command = [sys.executable, "-m", "tests.interrupted", *few]
    env = {**os.environ, **({} if kind == "compiled" else {"NUMBA_DISABLE_JIT": "1"}), "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, env=env, cwd=ROOT, capture_output=True, text=True, timeout=900, check=False)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-2000:]
    assert int(done.stdout.rsplit(" interruptions of ", 1)[0].rsplit(None, 1)[-1]) > least


class Sent(int):
    """A signal's number; the attribute sends it, and Python does not ask for signals before the next call, or what is called."""

    now = property(_thread.interrupt_main)


class Stop(Exception):
    pass


MODES = {
    "no_grad": torch.no_grad, "enable_grad": torch.enable_grad, "inference_mode": torch.inference_mode,
    "set_grad_enabled": lambda: torch.set_grad_enabled(False), "unrecorded": unrecorded,
}  # fmt: skip


@pytest.mark.parametrize("mode", MODES.values(), ids=MODES)
@pytest.mark.parametrize("outside", [True, False])
def test_a_signal_as_a_mode_is_left(mode, outside):
    """The handler is called when the mode of before is there again; Ctrl-C would be raised before the first line of ``__exit__``."""

    def handler(number, frame):
        seen.append(torch.is_grad_enabled())
        raise Stop

    seen = []
    before = signal.signal(signal.SIGUSR1, handler)
    send = Sent(signal.SIGUSR1)
    try:
        with torch.set_grad_enabled(outside):
            with pytest.raises(Stop):
                with mode():
                    _ = send.now
                for _ in range(10):
                    pass
            assert torch.is_grad_enabled() is outside and not torch.is_inference_mode_enabled()
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert seen == [outside] and state.blocks == ()


def test_handlers_within_ops_find_the_users_mode(monkeypatch):
    """Also where an op has recording off for what it computes itself."""
    seen = []
    before = signal.signal(signal.SIGUSR1, lambda number, frame: seen.append(torch.is_grad_enabled()))
    x = torch.tensor([3.0, 1.0, 2.0], requires_grad=True)
    send, enter = Sent(signal.SIGUSR1), unrecorded.__enter__

    def entered(self):
        enter(self)
        self.frame = sys._getframe(1)
        _ = send.now

    monkeypatch.setattr(unrecorded, "__enter__", whole(entered))
    try:
        for mode in (True, False):
            seen.clear()
            with torch.set_grad_enabled(mode):
                torch.quantile(x, 0.5)
                torch.nanmedian(x)
                torch.cdist(x[None], x[None])
            assert seen and set(seen) == {mode}
    finally:
        signal.signal(signal.SIGUSR1, before)


def test_signals_faster_than_they_are_handled(monkeypatch):
    """Each would interrupt what finds out where the one before has come, until there is no stack left; they are one, as the system's are."""
    seen = []
    before = signal.signal(signal.SIGUSR1, lambda number, frame: seen.append(torch.is_grad_enabled()))
    send, is_users = Sent(signal.SIGUSR1), handlers._is_users

    def sending(code, names):
        _ = send.now
        return is_users(code, names)

    try:
        with torch.no_grad():
            with monkeypatch.context() as m:
                m.setattr(handlers, "_is_users", sending)
                _ = send.now
                for _ in range(10):
                    pass
            assert seen == [False]
            _ = send.now
            for _ in range(10):
                pass
        assert seen == [False, False]
    finally:
        signal.signal(signal.SIGUSR1, before)


def test_ctrl_c_waits_for_an_op_in_place():
    """It is raised as soon as the kernel has returned, when version and history are not yet what they have to be."""
    x = torch.linspace(0.1, 1.0, 4).requires_grad_()
    send = Sent(signal.SIGINT)

    def broken(values, entry):
        entry(values)
        _ = send.now

    plan_of = torch.exp.op.inplace_memo.plans
    (x * 1).exp_()
    plan = plan_of[x._layout]
    entry = plan.entry
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    y = x * 1
    try:
        plan.entry = functools.partial(broken, entry=entry)
        broken.__code__ = broken.__code__.replace(co_filename="<autograd_nb: tests>")
        with pytest.raises(KeyboardInterrupt):
            y.exp_()
            for _ in range(10):
                pass
    finally:
        plan.entry = entry
        signal.signal(signal.SIGINT, before)
    assert y._version == 1 and "Exp" in y.grad_fn.name()
    assert torch.allclose(torch.autograd.grad(y.sum(), x)[0], x.exp())


@pytest.mark.slow
def test_kernels_are_made_whatever_the_limit_of_recursion(tmp_path):
    """An error in the midst of LLVM's locks would leave them held: the next kernel would never come."""
    code = KERNELS + textwrap.dedent("""
    run(2)
    for limit in range(20, 120, 3):
        try:
            sys.setrecursionlimit(limit)
            run(limit)
        except RecursionError:
            pass
        finally:
            sys.setrecursionlimit(1000)
        run(limit)
    print(sys.getrecursionlimit())
    """)
    for _ in range(2):  # compiled, and loaded
        assert python(code, 100, AUTOGRAD_NB_CACHE_DIR=str(tmp_path)) == "1000"


def test_little_room_on_stacks_of_threads(tmp_path):
    """Compiling brings its own; what the user has set stands."""
    code = KERNELS + textwrap.dedent("""
    threading.stack_size(64 << 10)
    run(3)
    print(threading.stack_size())
    """)
    assert python(code, AUTOGRAD_NB_CACHE_DIR=str(tmp_path)) == str(64 << 10)


@pytest.mark.slow
def test_a_fork_in_a_handler_while_kernels_are_compiled(tmp_path):
    code = KERNELS + textwrap.dedent("""
    import warnings
    warnings.simplefilter("ignore", DeprecationWarning)
    children = []
    def handler(number, frame):
        if len(children) < 3:
            child = os.fork()
            if not child:
                signal.setitimer(signal.ITIMER_REAL, 0)
                signal.signal(signal.SIGALRM, signal.SIG_DFL)
                signal.alarm(100)
                try:
                    run(500 + len(children))
                    os._exit(0)
                except BaseException:
                    import traceback
                    traceback.print_exc()
                    os._exit(1)
            children.append(child)
            signal.setitimer(signal.ITIMER_REAL, 0.1)
    signal.signal(signal.SIGALRM, handler)
    signal.setitimer(signal.ITIMER_REAL, 0.1)
    for k in range(2, 9):
        run(k)
    signal.setitimer(signal.ITIMER_REAL, 0)
    print([os.waitpid(c, 0)[1] for c in children])
    """)
    assert set(eval(python(code, AUTOGRAD_NB_CACHE_DIR=str(tmp_path)))) == {0}


def test_what_switches_the_mode_keeps_the_users_where_handlers_look_for_it():
    for code, name in handlers._SWITCHES.items():
        assert name in code.co_varnames, code.co_qualname
