"""Forks amid what other threads do: the child has only the thread that forked, and finds nothing held or half done."""

from __future__ import annotations

import ast
import contextlib
import os
import subprocess
import sys
import textwrap
import threading
from pathlib import Path

import pytest

import autograd_nb as torch
from autograd_nb import launch, locks

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork"),
    pytest.mark.filterwarnings("ignore:os.fork:RuntimeWarning"),  # of JAX, where another test has imported it
]
ROOT = Path(__file__).parents[1]
START = textwrap.dedent("""
    import builtins, os, signal, sys, threading, time, traceback, warnings
    import autograd_nb as torch
    warnings.simplefilter("ignore")
    warmed = torch.compile(lambda x: (x * 2).sum()) if "import" not in sys.argv else None

    def forked(work, count=1):
        failed = 0
        for _ in range(count):
            child = os.fork()
            if not child:
                signal.alarm(30)
                try:
                    work()
                    os._exit(0)
                except BaseException:
                    traceback.print_exc()
                    os._exit(1)
            failed += os.waitpid(child, 0)[1] != 0
            time.sleep(0.01)
        return failed

    def run(target):
        thread = threading.Thread(target=target, daemon=True)
        thread.start()
        return thread
""")
#: what other threads do, and what a child calls then; it prints how many children failed
AMID = {
    "a capture": """
        w = torch.ones(3, requires_grad=True)
        optimizer = torch.optim.SGD([w], 0.5)
        inside, go = threading.Event(), threading.Event()
        known = builtins.getattr, builtins.hasattr, time.time

        @torch.compile
        def step(x):
            (w * x).sum().backward()
            optimizer.step()
            inside.set()
            while not go.is_set():
                pass

        def work():
            assert (builtins.getattr, builtins.hasattr, time.time) == known and type(optimizer.param_groups[0]["lr"]) is float
            f = torch.compile(lambda x: (x * 3).sum())
            assert [f(torch.ones(4)).item() for _ in range(3)] == [12.0] * 3

        thread = run(lambda: step(torch.ones(3)))
        inside.wait()
        threading.Timer(0.3, go.set).start()
        print(forked(work))
        """,
    "compiled calls": """
        w = torch.ones(3, requires_grad=True)
        step = torch.compile(lambda x: (w * x).exp().log().sum())
        for _ in range(4):
            torch.autograd.grad(step(torch.ones(3)), w)
        done = threading.Event()

        def calling():
            while not done.is_set():
                step(torch.ones(3)).backward()

        def work():
            for _ in range(3):
                assert torch.autograd.grad(step(torch.full((3,), 2.0)), w)[0].tolist() == [2.0] * 3

        threads = [run(calling) for _ in range(3)]
        sys.setswitchinterval(1e-6)
        print(forked(work, 30))
        done.set()
        """,
    "an import": """
        class Slow:
            def find_spec(self, name, path=None, target=None):
                if name.startswith("autograd_nb.compiler.") and threading.current_thread() is not threading.main_thread():
                    begun.set()
                    time.sleep(0.01)

        begun = threading.Event()
        sys.meta_path.insert(0, Slow())

        def work():
            f = torch.compile(lambda x: (x * 3).sum())
            assert f(torch.ones(4)).item() == 12

        thread = run(lambda: torch.compile(lambda x: x * 2))
        begun.wait()
        print(forked(work))
        """,
}


@pytest.mark.parametrize("what", AMID)
def test_a_fork_amid(what):
    run = subprocess.run(
        [sys.executable, "-c", START + textwrap.dedent(AMID[what]), *what.split()], env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True,
        text=True, timeout=300, check=False,
    )  # fmt: skip
    assert run.returncode == 0 and run.stdout.strip() == "0", (run.stdout[-500:], run.stderr[-3000:])


def test_every_lock_is_free_in_a_child():
    torch.compile(lambda x: x * 2)(torch.ones(2))
    every, held, done = list(locks._locks), threading.Event(), threading.Event()

    def hold():
        for lock in every:
            lock.acquire()
        held.set()
        done.wait()
        for lock in every:
            lock.release()

    patience, locks.FORK_PATIENCE = locks.FORK_PATIENCE, 0.1
    mine = locks.lock(busy := [True])
    holder = threading.Thread(target=hold)
    try:
        with mine:
            turn = sys.modules["autograd_nb.codegen.build.apart"]._turn  # for which forks wait
            every = [lock for lock in every if lock is not turn]
            holder.start()
            held.wait()
            child = os.fork()
            if not child:
                free = all(lock.acquire(timeout=1) for lock in every)
                os._exit(0 if free and len(every) > 5 and mine._is_owned() and busy == [True] else 1)
    finally:
        done.set()
        holder.join()
        locks.FORK_PATIENCE = patience
    assert os.waitpid(child, 0)[1] == 0


def test_nobody_observes_in_a_child():
    """Or it would never again take the short ways to its plans."""
    inside, done = threading.Event(), threading.Event()

    def observe():
        with launch.observe(launch.Alike()):
            inside.set()
            done.wait()

    thread = threading.Thread(target=observe)
    thread.start()
    inside.wait()
    found = []
    for mine in (0, 1, 2):
        with contextlib.ExitStack() as stack:
            for _ in range(mine):
                stack.enter_context(launch.observe(launch.Alike()))
            child = os.fork()
            if not child:
                within = launch._observing
                with contextlib.suppress(BaseException):
                    stack.close()
                os._exit(10 * within + launch._observing)
        found.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    done.set()
    thread.join()
    assert found == [0, 10, 20]


#: modules that have locks of their own: they are passed from thread to thread, or asked for without waiting
OWN = {"locks.py", "graph/noted.py", "graph/nested.py", "codegen/build/apart.py"}


def test_locks_come_from_one_place():
    package, found = Path(torch.__file__).parent, set()
    for path in package.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            name = getattr(node.func, "attr", getattr(node.func, "id", "")) if isinstance(node, ast.Call) else ""
            if name in ("Lock", "RLock", "allocate_lock") and "distributed" not in path.parts:
                found.add(path.relative_to(package).as_posix())
    assert found <= OWN, "a lock is `locks.lock()`, which is free in a forked child"
