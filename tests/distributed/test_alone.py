"""One process, with MPI and without: what programs ask, and what they are told."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
import threading
import time

import pytest

import autograd_nb as torch
import autograd_nb.distributed as dist
from autograd_nb.distributed.group import _crowded
from autograd_nb.distributed.thread import CommunicationThread
from autograd_nb.distributed.waiting import rest_exactly
from autograd_nb.distributed.work import Task
from tests.test_examples import is_error

from .jobs import ROOT, environment, job, needs_mpi


def python(code, **more):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, env=environment(**more))


def test_nothing_of_mpi_is_imported_before_it_is_used():
    code = "import sys, autograd_nb as torch, autograd_nb.distributed as dist; dist.is_available(), dist.is_initialized(), torch.nn.parallel\n"
    assert python(code + "print([m for m in sys.modules if 'mpi4py' in m])").stdout == "[]\n"
    assert python("import sys, autograd_nb; print('autograd_nb.distributed' in sys.modules)").stdout == "False\n"


def test_without_mpi_an_error_names_the_extra():
    code = """
import sys, importlib.abc
class Hidden(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        return None
import importlib.util
found = importlib.util.find_spec
importlib.util.find_spec = lambda name, *rest: None if name == "mpi4py" else found(name, *rest)
import autograd_nb.distributed as dist
print(dist.is_available(), dist.is_mpi_available(), dist.is_initialized(), dist.is_backend_available("gloo"))
try:
    dist.init_process_group("gloo")
except RuntimeError as error:
    print(error)
"""
    out = python(code).stdout
    assert out.startswith("False False False False\nDistributed package doesn't have MPI built in")
    assert 'pip install "autograd_nb[mpi]"' in out


def test_before_there_is_a_group():
    for call in (dist.get_rank, dist.get_world_size, dist.barrier, lambda: dist.all_reduce(torch.ones(1))):
        with pytest.raises(ValueError, match="Default process group has not been initialized"):
            call()
    with pytest.raises(AssertionError, match="Process group cannot be None"):
        dist.destroy_process_group()
    assert dist.group.WORLD is None
    assert not dist.is_torchelastic_launched()
    assert dist.get_node_local_rank(3) == 3


def test_bad_arguments_are_refused_before_mpi_starts():
    with pytest.raises(TypeError, match=r"datetime\.timedelta"):
        dist.init_process_group(timeout=3)
    with pytest.raises(ValueError, match="Unknown backend 'foo'"):
        dist.init_process_group("foo")
    with pytest.raises(ValueError, match="No rendezvous handler for what://"):
        dist.init_process_group(init_method="what://x")


def test_backends_of_devices():
    assert dist.get_default_backend_for_device("cpu") == dist.get_default_backend_for_device(torch.device("cpu")) == "gloo"
    with pytest.raises(RuntimeError, match="cuda"):
        dist.get_default_backend_for_device("cuda")
    assert not dist.is_ucc_available()


def test_the_names_of_pytorch_are_there():
    for name in dist.__all__:
        assert getattr(dist, name) is not None or name == "group"
    from autograd_nb.distributed.nn import functional  # noqa: F401


def test_every_public_name_has_an_example():
    """Which `tests.distributed.examples` runs on two ranks."""
    things = {name: getattr(dist, name) for name in dist.__all__ if name not in ("default_pg_timeout", "nn")}
    without = [name for name, thing in things.items() if not is_error(thing) and ">>>" not in (thing.__doc__ or "")]
    assert without == []


@pytest.mark.parametrize(
    ("allowances", "crowded"),
    [
        ([({0}, "", 99)], False),
        ([({0, 1}, "", 99)] * 2, False),
        ([({0, 1}, "", 99)] * 3, True),
        ([({0}, "", 99), ({1}, "", 99)], False),  # each bound to a core of its own
        ([({0}, "", 99), ({0}, "", 99)], True),
        ([({0, 1, 2, 3}, "", 2)] * 3, True),  # of a container that is granted two
        ([({0, 1, 2, 3}, "a", 1), ({0, 1, 2, 3}, "b", 1)], False),  # each has a control group of its own
    ],
)
def test_whether_ranks_have_a_core_each(allowances, crowded):
    class Near:
        def allgather(self, own):
            return allowances

    assert _crowded(Near()) is crowded


@needs_mpi
def test_more_ranks_than_cores_rest_while_they_wait():
    code = """
import os
os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
import autograd_nb as torch, autograd_nb.distributed as dist
from autograd_nb.distributed.group import world
dist.init_process_group()
words = dist.group.WORLD.words
dist.barrier()  # with what the first one loads
begin = os.times()
if dist.get_rank():
    import time; time.sleep(2)
dist.barrier()
said = "waited %s %s %s" % (world.crowded, words[25] < 100, os.times().user - begin.user < 0.5)
print(said + "\\n", end="", flush=True)  # in one piece: other ranks print too
"""
    if not hasattr(os, "sched_setaffinity"):
        pytest.skip("this system binds no processes to cores")
    for ranks, crowded in ((1, False), (2, True)):
        ended = job(ranks, "-c", code)
        assert ended.code == 0, ended.out
        assert ended.out.count(f"waited {crowded} {crowded} True") == ranks


@pytest.mark.skipif(sys.platform != "linux", reason="timer slack is Linux's")
def test_who_rests_exactly_does_so_with_the_threads_it_starts():
    def slack() -> int:
        return ctypes.CDLL(None).prctl(30, 0, 0, 0, 0)  # PR_GET_TIMERSLACK

    def rests() -> None:
        exact.append(rest_exactly())
        found.append(slack())
        inner = threading.Thread(target=lambda: found.append(slack()))
        inner.start()
        inner.join()

    exact: list[bool] = []
    before, found = slack(), []
    thread = threading.Thread(target=rests)
    thread.start()
    thread.join()
    assert exact == [True]
    assert found == [1, 1]
    assert slack() == before  # of this thread


@needs_mpi
def test_one_process_is_a_group_of_one():
    code = """
import os, autograd_nb as torch, autograd_nb.distributed as dist
for _ in range(2):
    dist.init_process_group("cpu:gloo,cuda:nccl", init_method="env://")
    t = torch.ones(3)
    assert dist.all_reduce(t) is None and t.tolist() == [1, 1, 1]
    dist.barrier(); dist.monitored_barrier()
    print(dist.get_rank(), dist.get_world_size(), dist.get_backend(), [os.environ[n] for n in ("RANK", "WORLD_SIZE", "LOCAL_RANK")])
    dist.destroy_process_group()
    assert not dist.is_initialized()
"""
    ended = python(code)
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout == "0 1 cpu:gloo,cuda:nccl ['0', '1', '0']\n" * 2


@needs_mpi
def test_an_exception_in_one_process_is_an_ordinary_one():
    ended = python("import autograd_nb.distributed as dist; dist.init_process_group(); 1 / 0")
    assert ended.returncode == 1
    assert ended.stderr.rstrip().endswith("ZeroDivisionError: division by zero")
    assert "Abort" not in ended.stderr


@needs_mpi
def test_ranks_that_were_not_started_are_refused():
    ended = python("import autograd_nb.distributed as dist; dist.init_process_group('gloo', rank=0, world_size=4)")
    assert "world_size is 4, but MPI started 1 process; start the program with `python -m autograd_nb run -n 4 program.py`" in ended.stderr
    assert os.environ.get("WORLD_SIZE") is None


def test_the_old_name_of_the_reductions():
    with pytest.warns(FutureWarning, match="ReduceOp"):
        assert dist.reduce_op.SUM is dist.ReduceOp.SUM
    with pytest.raises(AttributeError, match="TOTAL"):
        dist.reduce_op.TOTAL


@needs_mpi
def test_a_compiled_step_on_one_rank_calls_nothing():
    """Its gradients are the means already; a group that has ended is told all the same."""
    code = """
import autograd_nb as torch, autograd_nb.distributed as dist
dist.init_process_group()
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(300, 300).double())
def step(x):
    model.zero_grad()
    model(x).square().sum().backward()
run = torch.compile(step, fullgraph=True)
@torch.compile(fullgraph=True)
def calls(x):
    dist.all_reduce(y := x * 2, dist.ReduceOp.AVG)
    dist.all_gather_into_tensor(every := torch.zeros(2), y)
    return y, every
x = torch.ones(2, 300).double()
for i in range(6):
    run(x * i)
    found, _ = [p.grad for p in model.parameters()], step(x * i)
    assert all(torch.allclose(a, p.grad) for a, p in zip(found, model.parameters()))
    assert [t.tolist() for t in calls(torch.ones(2) * i)] == [[2.0 * i] * 2] * 2
print("calls", int(dist.group.WORLD.words[0]), any(word in str(run.programs) for word in ("all_reduce", "hand_over")))
dist.destroy_process_group()
try:
    calls(torch.ones(2))
except dist.DistBackendError as error:
    print(error)
"""
    ended = python(code)
    assert ended.stdout == "calls 0 False\na collective was given up, or its group is destroyed\n", ended.stderr


def test_a_message_that_is_given_up_fails_with_that_and_not_with_its_cancelling():
    """What is cancelled counts as through with no bytes, which the thread may see before `give_up` has ended."""
    thread, cancelled, looked = CommunicationThread(), threading.Event(), threading.Event()

    def polled():
        if cancelled.is_set():
            looked.set()
            raise RuntimeError("0 bytes where 80 were expected")
        return False

    def cancel():
        cancelled.set()
        looked.wait(0.5)

    task = Task(None, "recv", "", lambda: None, 0.0, ())
    task.polled, task.cancel = polled, cancel
    thread.submit(task)
    while task not in thread.under_way:
        time.sleep(0.001)
    thread.give_up(task, ValueError("too late"))
    assert isinstance(task.error, ValueError)
