"""Compile workers: what they have ready, that nothing depends on them, and that none is left behind."""

from __future__ import annotations

import marshal
import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

import autograd_nb as torch
from autograd_nb.codegen.build import ahead, workers
from autograd_nb.compiler.passes import together
from autograd_nb.nn import foreseen as modules
from autograd_nb.ops.core import foreseen
from autograd_nb.utils import compiling

ROOT = Path(__file__).parents[2]
LINUX = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="processes are looked for in /proc")
pytestmark = pytest.mark.skipif(os.name != "posix", reason="workers need POSIX's locks")
LONG = 120  #: seconds for what a loaded machine may take long to do

#: before each program: ``own`` names the kernels that it compiles itself, ``until`` waits for a worker
PRELUDE = """
import glob, os, sys, threading, time
import autograd_nb as torch
from autograd_nb.codegen.build import compilation, workers
own, folder = [], os.environ["AUTOGRAD_NB_CACHE_DIR"]
compile_ = compilation._compile
compilation._compile = lambda function, types, key, *rest: own.append(key) or compile_(function, types, key, *rest)
def kept():
    return len(glob.glob(folder + "/*.kernel"))
def until(true):
    end = time.monotonic() + 100
    while not true():
        assert time.monotonic() < end, (len(own), kept())
        time.sleep(0.02)
def alone():
    for worker in workers._workers.running:
        worker.settle()
    return all(worker.process is None for worker in workers._workers.running)
def recorded():
    x = torch.linspace(-1, 1, 8).requires_grad_()
    return x, (x.sin() * x).tanh()
"""


def environment(folder: Path, count: str) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT), "AUTOGRAD_NB_CACHE_DIR": str(folder), workers.VARIABLE: count}


def start(folder: Path, program: str, count: str = "1") -> subprocess.Popen[str]:
    folder.mkdir(exist_ok=True)
    return subprocess.Popen(
        [sys.executable, "-c", PRELUDE + textwrap.dedent(program)],
        env=environment(folder, count), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def run(folder: Path, program: str, count: str = "1") -> list[str]:
    """The words that a program prints, which must end well."""
    process = start(folder, program, count)
    out, err = process.communicate(timeout=LONG)
    assert process.returncode == 0, err
    return out.split()


def helpers(folder: Path) -> list[int]:
    """The workers that write into a folder, by their environment."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                given = (entry / "environ").read_bytes().split(b"\0")
                state = (entry / "stat").read_text().rpartition(")")[2].split()[0]
            except OSError:
                continue
            if f"AUTOGRAD_NB_CACHE_DIR={folder}".encode() in given and f"{workers.VARIABLE}=0".encode() in given and state != "Z":
                found.append(int(entry.name))
    return found


def eventually(true: Callable[[], object]) -> bool:
    end = time.monotonic() + LONG
    while not true():
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True


BACKWARD = """
x, y = recorded()
{before}
mine = len(own)
y.backward(torch.ones(8))
print(x.grad.numpy().tobytes().hex(), len(own) - mine)
"""
AHEAD = BACKWARD.format(before="until(lambda: kept() >= len(own) + 3)")  # the gradients of three ops
ALONE = BACKWARD.format(before="")


@pytest.fixture(scope="module")
def alone(tmp_path_factory) -> tuple[str, int]:
    """What the program gives, and how many kernels its backward pass compiles, without workers: under 0 there are none."""
    bits, count = run(tmp_path_factory.mktemp("alone"), ALONE + "\nassert not workers._workers.running and not workers.foresees()", "0")
    return bits, int(count)


@LINUX
def test_gradients_are_compiled_ahead_with_the_same_bits(tmp_path, alone):
    bits, count = run(tmp_path, AHEAD)
    assert bits == alone[0]
    assert int(count) <= alone[1] - 3
    assert eventually(lambda: not helpers(tmp_path))
    again, none = run(tmp_path, ALONE, "0")  # kernels of a worker are found as any
    assert (again, none) == (bits, "0")




KILLED = """
import signal
pids = lambda: [int(p) for p in os.listdir("/proc") if p.isdigit() and mine(p)]
def mine(p):
    try:
        with open(f"/proc/{p}/environ", "rb") as f:
            return folder.encode() in f.read() and int(p) != os.getpid()
    except OSError:
        return False
x, y = recorded()
until(pids)
for pid in pids():
    os.kill(pid, signal.SIG)
"""


@LINUX
@pytest.mark.parametrize("name", ["SIGKILL", pytest.param("SIGSTOP", marks=pytest.mark.slow)])
def test_a_worker_that_is_killed_or_stopped_costs_time_only(tmp_path, alone, name):
    program = KILLED.replace("SIG)", f"{name})") + "workers.PATIENCE = 0.5\ny.backward(torch.ones(8))\nprint(x.grad.numpy().tobytes().hex())"
    assert run(tmp_path, program) == [alone[0]]
    assert eventually(lambda: not helpers(tmp_path))


#: a worker that begins every kernel at once, and ends none
HANGS = """
workers._START = '''
import fcntl, marshal, os, sys, time
given = marshal.load(sys.stdin.buffer)
fcntl.lockf(given[-1], fcntl.LOCK_EX)
open(os.environ["AUTOGRAD_NB_CACHE_DIR"] + "/begun", "w").close()
time.sleep(1000)
'''
"""


@LINUX
def test_a_worker_that_hangs_is_waited_for_once(tmp_path):
    program = HANGS + """
workers.PATIENCE = 0.5
workers.missing(compilation.store.folder)
until(lambda: os.path.exists(folder + "/begun"))
x, begin = torch.zeros(3, dtype=torch.int32), time.monotonic()
print(*(~x).tolist(), len(own))
assert time.monotonic() - begin >= 0.5 and not workers._workers.running
for p in [p for p in os.listdir("/proc") if p.isdigit() and int(p) != os.getpid()]:
    try:
        with open(f"/proc/{p}/environ", "rb") as f:
            if folder.encode() in f.read():
                os.kill(int(p), 9)
    except OSError:
        pass
"""
    assert run(tmp_path, program) == ["-1", "-1", "-1", "1"]


@LINUX
@pytest.mark.parametrize("stopped", [False, True])
def test_no_worker_outlives_a_program_that_is_killed(tmp_path, stopped):
    process = start(tmp_path, 'x, y = recorded()\nprint("ready", flush=True)\ntime.sleep(1000)')
    try:
        assert process.stdout is not None and process.stdout.readline() == "ready\n"
        assert eventually(lambda: helpers(tmp_path))
        if stopped:
            for pid in helpers(tmp_path):
                os.kill(pid, signal.SIGSTOP)
    finally:
        process.kill()
        process.communicate()
    assert eventually(lambda: not helpers(tmp_path))


@LINUX
@pytest.mark.slow
def test_a_child_leaves_the_workers_to_its_parent(tmp_path):
    """It has none itself, does not keep its parent's alive, and is the only child that its parent can wait for."""
    program = """
        x, y = recorded()
        until(alone)
        assert workers._workers.running
        child = os.fork()
        if not child:
            assert not workers._workers.running and workers._workers.claims is None
            time.sleep(1000)
        print(child, flush=True)
        os._exit(0)
    """
    process = start(tmp_path, program)
    assert process.stdout is not None
    child = int(process.stdout.readline() or process.communicate(timeout=LONG)[1])
    try:
        process.wait(LONG)
        assert eventually(lambda: child not in helpers(tmp_path) and not helpers(tmp_path))
    finally:
        os.kill(child, signal.SIGKILL)
        process.communicate()


@LINUX
@pytest.mark.slow
def test_a_program_waits_for_its_own_children_only(tmp_path):
    program = """
        recorded()
        assert workers._workers.running
        until(alone)
        try:
            print(os.wait())
        except ChildProcessError:
            print("none")
    """
    assert run(tmp_path, program) == ["none"]


def test_two_threads_compile_a_kernel_once(tmp_path):
    program = """
        barrier = threading.Barrier(4)
        def work():
            barrier.wait()
            torch.ones(4).exp()
        threads = [threading.Thread(target=work) for _ in range(4)]
        for t in threads: t.start()
        for t in threads: t.join()
        print(len(own) - len(set(own)), len(own) > 1)
    """
    assert run(tmp_path, program) == ["0", "True"]


# ------------------------------------------------------------------------------------------------------- in this process


HOLDER = """
import fcntl, os, sys, time
fcntl.lockf(int(sys.argv[1]), fcntl.LOCK_EX | fcntl.LOCK_NB, 1, int(sys.argv[2]))
print("held", flush=True)
time.sleep(1000)
"""
KEY = "ab" * 32


@pytest.fixture
def mine(monkeypatch, tmp_path):
    """Workers of this process's that nobody started, with a file to lock."""
    made = workers._Workers()
    monkeypatch.setattr(workers, "_workers", made)
    with open(tmp_path / "claims", "w+b") as made.claims:
        yield made


@pytest.fixture
def holder(mine):
    """Another process that has begun a kernel."""
    place = str(int(KEY[:16], 16) & workers._RANGE)
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(mine.claims.fileno()), place], pass_fds=[mine.claims.fileno()], stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None and process.stdout.readline() == b"held\n"
        yield process
        process.kill()


def test_what_another_has_begun_is_waited_for_until_it_dies(mine, holder):
    assert not workers._try_lock(mine.claims.fileno(), KEY)
    with workers.unclaimed(mine.claims.fileno(), KEY) as free:
        assert not free
    with workers.unclaimed(mine.claims.fileno(), "cd" * 32) as free:
        assert free
    holder.kill()
    with workers.claimed(KEY):
        assert holder.wait(LONG) == -signal.SIGKILL


def test_what_hangs_is_given_up(mine, holder, monkeypatch):
    monkeypatch.setattr(workers, "PATIENCE", 0.2)
    begin = time.monotonic()
    with workers.claimed(KEY):
        assert time.monotonic() - begin >= 0.2 and holder.poll() is None
    mine.start(Path("."))
    assert not mine.running and mine.starts == workers.STARTS  # nor are there others


def test_the_longest_kernel_that_is_ready_in_time_comes_first():
    """The program makes 6, 4, 25, 5 and 2 one after the other, and has begun the first."""
    queue = ahead.Queue()

    def kernel(order: int, length: int, **given: bool) -> SimpleNamespace:
        s = {"free": True, "needed": True, **given}
        return SimpleNamespace(order=(ahead.FORWARD, order), length=length, is_free=lambda _: s["free"], is_needed=lambda: s["needed"])

    begun = kernel(1, 6, free=False)
    ready = kernel(2, 100, needed=False)
    queue.left = [kernel(5, 2), kernel(4, 5), kernel(3, 25), kernel(2, 4), begun, ready]  # type: ignore[list-item]
    lengths = []
    while (chosen := queue.pick(0)) is not None:
        lengths.append(chosen.length)
    assert lengths == [5, 4, 2, 25]  # 25 would not be ready when 6 and 4 are
    assert queue.left == [begun]
    queue.left = [kernel(1, 3), kernel(2, 8)]  # type: ignore[list-item]
    chosen = queue.pick(0)
    assert chosen is not None and chosen.length == 8  # late, yet rather than what the program begins with


@pytest.mark.parametrize("given", [("0", 8, 0), ("2", 1, 2), ("", 1, 0), ("", 2, 1), ("", 64, workers.MOST)])
def test_how_many(monkeypatch, given):
    variable, threads, count = given
    monkeypatch.setenv(workers.VARIABLE, variable)
    monkeypatch.setattr(workers.settings, "threads", threads)
    assert workers.allowed() == count


@pytest.mark.parametrize(
    "load, running, spent, given, expected",
    [
        (3.9, "3.90 2.10 1.05 4/320 77", 0, "", True),
        (3.9, "3.90 2.10 1.05 2/320 77", 0, "", False),  # others have just ended
        (3.9, "", 0, "", True),  # another system
        (1.0, "", 0, "", False),
        (3.9, "", 0, "1", False),
        (3.9, "", 600, "", False),
        (7.9, "", 600, "", True),
    ],
)
def test_none_are_started_on_a_machine_that_others_keep_busy(monkeypatch, mine, tmp_path, load, running, spent, given, expected):
    """Of four processors with two threads here; a process that has computed for long has had part in the load itself."""
    (tmp_path / "loadavg").write_text(running)
    monkeypatch.setattr(workers, "RUNNING", tmp_path / "loadavg")
    monkeypatch.setenv(workers.VARIABLE, given)
    monkeypatch.setattr(workers.settings, "threads", 2)
    monkeypatch.setattr(os, "getloadavg", lambda: (load, 0.0, 0.0))
    monkeypatch.setattr(os, "cpu_count", lambda: 4)
    monkeypatch.setattr(time, "process_time", lambda: spent)
    assert workers._busy() is expected
    monkeypatch.setattr(workers, "_Worker", lambda *args: SimpleNamespace(send=lambda note: None, settle=lambda: None, close=lambda: None))
    mine.start(tmp_path)
    assert bool(mine.running) is not expected and mine.starts == (not expected)  # another missing kernel may find it quiet


def test_a_machine_that_knows_no_load_is_not_busy(monkeypatch):
    monkeypatch.delenv(workers.VARIABLE, raising=False)
    monkeypatch.delattr(os, "getloadavg")
    assert not workers._busy()


MENTIONS = """
import statistics
def loss(x, y):
    return lib.nn.functional.cross_entropy(x, y, reduction="sum")
class Net:
    def forward(self, x):
        return x.softplus()
def other():
    return never_run_here()
def main():
    statistics.mean([1])
    return [loss, proxy, asked(create_graph=True)][2]
found = main()
"""


def test_what_a_program_mentions():
    """Names in the code that runs, and in the functions that it names; not those of libraries."""

    class Proxy:
        @property
        def __class__(self):
            raise RuntimeError("looked at")

    space = {"__name__": "__main__", "asked": lambda create_graph: workers.mentioned(), "proxy": Proxy()}
    exec(MENTIONS, space)
    found = set(space["found"])  # type: ignore[call-overload]
    assert {"cross_entropy", "reduction", "softplus", "create_graph", "mean"} <= found
    assert not {"_own", "fmean", "co_names"} & found


REHEARSALS = """
import autograd_nb as torch
from autograd_nb import launch
from autograd_nb.nn import foreseen
from autograd_nb.utils import compiling
launch.check, launch.escapes = compiling._nothing, compiling._escapes
compiling._OVERRIDES.enter()
FUNCTIONS = {
    "CrossEntropyLoss": "cross_entropy", "BCELoss": "binary_cross_entropy", "BCEWithLogitsLoss": "binary_cross_entropy_with_logits",
    "KLDivLoss": "kl_div", "NLLLoss": "nll_loss", "LeakyReLU": "leaky_relu", "LogSoftmax": "log_softmax", "GELU": "gelu",
}
assert not list(foreseen.mentioned({"F", "weight", "reduction", "forward"}))
for name in foreseen.MENTIONED:
    for word in (name, FUNCTIONS.get(name, name)):
        (rehearsal,) = foreseen.mentioned({word})
        with compiling._kernels(0):
            leaves, out = rehearsal()
        compiling._differentiate(leaves, out)
    print(name)
for name in (*foreseen.FUNCTIONS, "clip_grad_norm_"):
    (rehearsal,) = foreseen.mentioned({name, "float64"})
    with compiling._kernels(0):
        given, out = rehearsal()
    compiling._differentiate(given, out)
    print(name)
compiling._again[0] = True
compiling._differentiate(leaves, torch.nn.Tanh()(leaves[0]))
print({order[0] for order in [k.order for k in compiling._queue.left]} == {0, 1})
print(*[k.given[0].__name__ for k in compiling._queue.left])
"""


def test_what_is_mentioned_is_rehearsed():
    """By its class or its function, forwards and backwards, in a process of its own: here kernels shall do something."""
    env = {**os.environ, "PYTHONPATH": str(ROOT), "NUMBA_DISABLE_JIT": "1"}
    found = subprocess.check_output([sys.executable, "-c", REHEARSALS], env=env, text=True).split()
    names = [*modules.MENTIONED, *modules.FUNCTIONS, "clip_grad_norm_"]
    count = len(names)
    assert found[: count + 1] == [*names, "True"] and "first_outside" in found[count:]


def test_where_there_can_be_none(monkeypatch, mine, tmp_path):
    assert workers._possible(tmp_path) and not workers._possible(None)
    with monkeypatch.context() as changed:
        changed.setattr(os, "access", lambda path, mode: False)
        assert not workers._possible(tmp_path)
    with monkeypatch.context() as changed:
        changed.setattr(sys, "executable", "/usr/bin/server")
        assert not workers._possible(tmp_path)
    monkeypatch.setenv(workers.VARIABLE, "1")
    mine.start(None)
    assert not mine.running


def test_interpreted_kernels_start_none(tmp_path):
    program = "recorded()\nprint(len(own), workers._workers.starts)"
    env = {**environment(tmp_path, "1"), "NUMBA_DISABLE_JIT": "1"}
    assert subprocess.check_output([sys.executable, "-c", PRELUDE + program], env=env, text=True).split() == ["0", "0"]


@pytest.fixture
def notes(mine, monkeypatch):
    """The notes that a program whose kernels are missing sends."""
    sent: list[bytes] = []
    monkeypatch.setattr(mine, "tell", sent.append)
    mine.running = [SimpleNamespace(settle=lambda: None)]
    yield sent
    mine.running = []


def kinds(notes: list[bytes]) -> set[str]:
    return {marshal.loads(note)[0] for note in notes}


def test_notes_are_plain_data_about_this_library_only(notes):
    class Twice(torch.nn.Linear):
        pass

    class Doubled(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return g * 2

    x = torch.rand(3, 7, requires_grad=True)
    torch.nn.Sequential(Twice(7, 7))
    before = len(notes)
    Doubled.apply(x)
    assert len(notes) == before and "module" not in kinds(notes)
    model = torch.nn.Sequential(torch.nn.Linear(7, 2))
    torch.optim.SGD(model.parameters(), lr=0.1)
    assert {"module", "optimizer"} <= kinds(notes)
    for value in (lambda: 0, test_how_many, object(), Twice, os):
        with pytest.raises(foreseen.Opaque):
            foreseen.described(value)
    with pytest.raises(foreseen.Opaque):
        foreseen.rebuilt(("object", "os", "system"))


def test_a_compiled_program_sends_its_kernels_before_it_builds_the_first(notes, monkeypatch):
    """All but the first, as the program begins with that one; the worker begins with the last."""
    built: list[tuple[object, int]] = []
    entry = together.Deferred.entry
    monkeypatch.setattr(together.Deferred, "entry", lambda self: built.append((self.asked, len(sent()))) or entry(self))

    def sent() -> list[bytes]:
        return [n for n in notes if marshal.loads(n)[0] == "kernels"]

    step = torch.compile(lambda a, b: ((a * 2 + 1).exp(), (b * 3 - 1).tanh(), (b * 3 - 1).sum()))
    # no number at which b * 3 - 1 cancels: fused into one instruction it has other last bits, which are all that is left of a result near 0
    a, b = torch.linspace(0, 1, 4), torch.linspace(0.5, 1, 15).reshape(3, 5)
    expected = step(a, b)
    assert all(torch.allclose(x, y) for x, y in zip(step(a, b), expected, strict=True))
    order = list(dict.fromkeys(asked for asked, _ in built))
    assert len(order) > 1 and all(count == 1 for _, count in built)
    (note,) = sent()
    monkeypatch.setattr(compiling, "_queue", ahead.Queue())
    compiling.rehearse(*marshal.loads(note))
    queued = sorted(compiling._queue.left, key=lambda k: k.order)
    assert [(k.given[2], k.given[1]) for k in queued] == [(text, types) for text, _, types, _ in order[1:]]


def test_a_kernel_that_cannot_be_compiled_leaves_the_function_as_it_is(monkeypatch):
    def fails(self):
        raise ValueError("too hard")

    monkeypatch.setattr(together.Deferred, "entry", fails)
    step = torch.compile(lambda a: (a * 2 + 1).exp().sin().cos().atan())
    with pytest.warns(UserWarning, match=r"runs eagerly, as a kernel of it cannot be compiled \(ValueError: too hard\)"):
        step(torch.ones(3))
    assert torch.allclose(step(torch.ones(3)), (torch.ones(3) * 2 + 1).exp().sin().cos().atan())


def test_what_is_rebuilt_is_as_what_was_described():
    x = torch.rand(3, 4).t().requires_grad_()
    given = [x, (1, 2.5, None, "a"), {"k": [True]}, torch.float64, x._layout, float, torch.nn.functional.relu]
    found = foreseen.rebuilt(marshal.loads(marshal.dumps(foreseen.described(given))))
    assert found[0]._layout is x._layout and found[0].requires_grad
    assert found[1:4] == given[1:4] and found[4] is x._layout and found[5:] == given[5:]


def test_a_pipe_that_nobody_reads_is_not_waited_for(mine):
    read, write = os.pipe()
    os.set_blocking(write, False)
    worker = object.__new__(workers._Worker)
    worker._write, worker._unsent = write, bytearray()
    for _ in range(100):
        worker.send(b"x" * 10_000)
    got = bytearray()
    while len(got) < 1_000_000:
        got += os.read(read, 1 << 20)
        worker.send(b"")
    assert got == b"x" * 1_000_000
    os.close(read)
    with pytest.raises(BrokenPipeError):
        worker.send(b"x")
    os.close(write)


@pytest.mark.parametrize("name", sorted(modules.OPERANDS))
def test_layers_are_rehearsed_on_operands_that_fit(name):
    """The layer that a worker makes is called as a program calls it: with hollow operands, here of zeros."""
    given = {
        "Linear": (3, 2), "Embedding": (5, 2), "EmbeddingBag": (5, 2), "MultiheadAttention": (4, 2), "GroupNorm": (1, 2),
        "TransformerEncoderLayer": (4, 2, 3), "LayerNorm": (3,), "RMSNorm": (3,), "Softmax": (-1,), "LogSoftmax": (-1,),
    }  # fmt: skip
    shapes = {"Conv": (2, 3, 3), "Batc": (2,), "MaxP": (2,), "AvgP": (2,), "Adap": (2,), "RNN": (3, 2), "LSTM": (3, 2), "GRU": (3, 2)}
    layer = getattr(torch.nn, name)(*given.get(name, shapes.get(name[:4], ())))
    state = marshal.loads(marshal.dumps(foreseen.described(modules._state(layer))))
    found = modules._rebuilt(foreseen.rebuilt(state))
    assert type(found) is type(layer) and found.extra_repr() == layer.extra_repr()
    assert [n for n, _ in found.named_parameters()] == [n for n, _ in layer.named_parameters()]
    assert modules.OPERANDS[name](found) == modules.OPERANDS[name](layer)
    with pytest.MonkeyPatch.context() as changed:
        changed.setattr(type(found), "forward", lambda self, *operands: len(operands))
        assert modules.rehearse_module(foreseen.rebuilt(state), False)[1] == len(modules.OPERANDS[name](layer))


def test_the_kernels_of_backward_passes_are_foreseen():
    """`python -m tests.ops.foreseen` lists those that are not: 7 of 75."""
    from tests.ops.foreseen import share

    found, missed = share()
    assert found >= 0.8, missed
