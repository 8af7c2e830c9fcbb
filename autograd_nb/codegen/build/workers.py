"""Processes that compile beside the program, into the same cache: the program's side of them.

Where a kernel was not on disk, the program goes on to compile it, and a *worker* is started, which compiles kernels that the
program will probably want: `foresee` tells it what the program does (an op was recorded, a module or an optimizer was made, a function
was captured) and which names its code mentions, in notes of plain data. What follows from a note is the worker's business
(`utils.compiling`). All that the program ever gets from one is a file in the cache, named after all that its content depends on: what
the program computes cannot depend on who compiled.

Nobody compiles what somebody else is compiling. Who begins a kernel holds a lock on one byte of a file that the processes of a
program share; the kernel's key says which byte. The system gives the lock back when its holder dies, however that happens. The
program waits for a kernel that a worker has begun, but not for ever; a worker passes over what somebody else has begun.

A worker ends when the program does: it asks the system to be killed when the other end of a pipe is closed, which needs nothing of
it; where there is no such service, its thread that reads notes sees the end of them. It is no child of the program's, so that
programs that wait for their children meet only their own.
"""

from __future__ import annotations

import marshal
import os
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

from ... import locks
from ...config import settings
from ...dtypes import get_default_dtype

try:
    import fcntl
except ImportError:  # a system without the locks: everything is compiled by the program itself
    fcntl = None  # type: ignore[assignment]

VARIABLE = "AUTOGRAD_NB_COMPILE_WORKERS"
MOST = 4  #: workers, each of which takes some 200 MB
STARTS = 3  #: how often they are started in a process
PATIENCE = 20.0  #: seconds to wait for one kernel that another process has begun
POLL = 0.002  #: seconds between two looks whether it is there
NOTES = 2000  #: sent at most
BUSY = 0.9  #: load by others, for each processor, with which none are started
RUNNING = Path("/proc/loadavg")  #: where Linux says how many threads compute

#: what a worker runs: it leaves the process that its parent knows of, asks to be killed when nobody holds the other end of a pipe any
#: more, and is told where modules are
_START = """import fcntl, marshal, os, select, signal, sys
if os.fork(): os._exit(0)
life = int(sys.argv[1])
if hasattr(fcntl, "F_SETSIG"):
    fcntl.fcntl(life, fcntl.F_SETOWN, os.getpid())
    fcntl.fcntl(life, fcntl.F_SETSIG, signal.SIGKILL)
    fcntl.fcntl(life, fcntl.F_SETFL, fcntl.fcntl(life, fcntl.F_GETFL) | os.O_ASYNC)
if select.select([life], [], [], 0)[0]: os._exit(0)
sys.path[:], module, *given = marshal.load(sys.stdin.buffer)
__import__(module, fromlist=["main"]).main(*given)
"""
_PACKAGE = __package__.partition(".")[0]
_WORKER = f"{_PACKAGE}.utils.compiling"

_FORMAT = 2  #: of marshal: equal data are equal bytes
_RANGE = (1 << 62) - 1


def allowed() -> int:
    """Return how many workers the environment and the machine allow: one for each core but the program's own.

    A process that a program has started by `multiprocessing` is one of several that share the cores.
    """
    given = os.environ.get(VARIABLE, "")
    if given.isdigit():
        return int(given)
    processes = sys.modules.get("multiprocessing.process")
    if processes is not None and processes.parent_process() is not None:
        return 0
    return min(settings.threads - 1, MOST)


def _busy() -> bool:
    """Return whether others keep the machine busy, where nobody has said how many workers there shall be.

    The load is the last minute's, less the most that this process can have had part in; others may just have ended.
    """
    try:
        load = os.getloadavg()[0]
    except (AttributeError, OSError):
        return False
    own = min(time.process_time() / 60, settings.threads)
    processors = os.cpu_count() or 1
    return not os.environ.get(VARIABLE, "").isdigit() and (load - own) / processors > BUSY and _running() >= processors


def _running() -> float:
    """Return how many threads of the machine compute at this moment, this one among them; infinity where the system does not say."""
    try:
        return int(RUNNING.read_text().split()[3].partition("/")[0])
    except (OSError, ValueError, IndexError):
        return float("inf")


def mentioned() -> list[str]:
    """Return the names that the program's own code mentions, of functions of this library for example.

    It is the code that the main thread is running now, and the functions that are called by their names there.
    """
    frame = sys._current_frames().get(threading.main_thread().ident or 0)
    left: list[Any] = []
    while frame is not None:
        if _own(frame.f_globals):
            left.append((frame.f_code, frame.f_globals))
        frame = frame.f_back
    names: set[str] = set()
    seen: set[Any] = set()
    while left and len(seen) < NOTES:
        code, space = left.pop()
        if code in seen:
            continue
        seen.add(code)
        names.update(code.co_names)
        for constant in code.co_consts:
            if isinstance(constant, CodeType):
                left.append((constant, space))
            elif isinstance(constant, tuple):  # names of arguments
                names.update(c for c in constant if isinstance(c, str))
        called = [space.get(name) for name in code.co_names]
        # (nobody's objects are asked for their class, which a proxy may look up who knows where)
        left += [(f.__code__, f.__globals__) for f in called if type(f) is FunctionType and _own(f.__globals__)]
    return sorted(names)


def _own(space: dict[str, Any]) -> bool:
    """Return whether these are the names of a module of the program's own: neither of this library nor installed or Python's."""
    home, file = space.get("__name__"), space.get("__file__")
    if type(home) is not str or type(file) not in (str, type(None)):
        return False
    home = home.partition(".")[0]
    return home != _PACKAGE and home not in sys.stdlib_module_names and "site-packages" not in (file or "")


def _possible(folder: Path | None) -> bool:
    """Return whether workers can be started, and can keep what they compile."""
    if fcntl is None or not hasattr(os, "fork") or folder is None or not os.access(folder, os.W_OK):
        return False
    return "python" in os.path.basename(sys.executable or "").lower() and not getattr(sys, "frozen", False)


class _Worker:
    """A worker as the program knows it: the pipe for notes, and the one that it lives as long as."""

    def __init__(self, claims: int, folder: Path):
        import subprocess  # (processes whose kernels are all on disk start no worker)

        read, self._write = os.pipe()
        life, self._life = os.pipe()
        try:
            os.set_blocking(self._write, False)
            self._unsent = bytearray()
            environment = {**os.environ, VARIABLE: "0", "AUTOGRAD_NB_CACHE_DIR": str(folder)}
            flags: list[str] = getattr(subprocess, "_args_from_interpreter_flags", list)()
            self.process: subprocess.Popen[bytes] | None = subprocess.Popen(
                [sys.executable, *flags, "-P", "-c", _START, str(life)],
                stdin=read, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, pass_fds=(life, claims), env=environment,
            )  # fmt: skip
        except BaseException:
            self.close()
            raise
        finally:
            os.close(read)
            os.close(life)
        self.send(marshal.dumps((list(sys.path), _WORKER, claims)))

    def send(self, note: bytes) -> None:
        """Send a note without ever waiting for the worker to read it. OSError where it lives no more."""
        self._unsent += note
        with suppress(BlockingIOError):
            while self._unsent:
                del self._unsent[: os.write(self._write, self._unsent[:4096])]

    def settle(self) -> None:
        """Take note of the end of the process that has started the worker, if it has ended."""
        if self.process is not None and self.process.poll() is not None:
            self.process = None

    def close(self) -> None:
        """Let the worker be killed."""
        os.close(self._write)
        os.close(self._life)


class _Workers:
    """The workers of this process."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Begin as a process that has no workers."""
        self.running: list[_Worker] = []
        self.starts = 0
        self.claims: Any = None  # the file whose bytes are locked
        self.sent: set[bytes] = set()
        self.lock = locks.lock()

    def start(self, folder: Path | None) -> None:
        """Start workers where there are none and may be some."""
        with self.lock:
            if self.running or self.starts >= STARTS or _busy():
                return
            self.starts += 1
            self.sent.clear()
            count = allowed()
            if count <= 0 or not _possible(folder):
                self.starts = STARTS
                return
            with suppress(OSError):
                if self.claims is None:
                    self.claims = tempfile.TemporaryFile(prefix="autograd_nb")  # noqa: SIM115  (open as long as the process)
                for _ in range(count):
                    self.running.append(_Worker(self.claims.fileno(), folder))  # type: ignore[arg-type]
                foresee("names", get_default_dtype().name, mentioned())

    def tell(self, note: bytes) -> None:
        for worker in list(self.running):
            try:
                worker.send(note)
            except OSError:  # it has ended, of whatever
                self.dismiss(worker)

    def dismiss(self, worker: _Worker) -> None:
        with self.lock:
            if worker in self.running:
                self.running.remove(worker)
                worker.close()

    def end(self) -> None:
        """End all workers, and start no others."""
        for worker in list(self.running):
            self.dismiss(worker)
        self.starts = STARTS


_workers = _Workers()


def _after_fork() -> None:
    """Leave the workers to the parent: a child that held their pipes would keep them alive."""
    running, claims = _workers.running, _workers.claims
    for worker in running:
        worker.process = None
        with suppress(OSError):
            worker.close()
    if claims is not None:
        with suppress(OSError):
            claims.close()
    _workers.reset()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def foresee(kind: str, *data: Any) -> None:
    """Tell workers what the program does, from which follows what it will need: plain data, which `marshal` takes."""
    try:
        note = marshal.dumps((kind, *data), _FORMAT)
    except ValueError:
        return
    with _workers.lock:
        if note not in _workers.sent and len(_workers.sent) < NOTES:
            _workers.sent.add(note)
            _workers.tell(note)


def foresees() -> bool:
    """Return whether there are workers: not before a kernel was found missing, so a program whose kernels are all there takes no notes."""
    return bool(_workers.running)


def missing(folder: Path | None) -> None:
    """Say that a kernel is not on disk: workers are started, unless there are some."""
    if not _workers.running and _workers.starts < STARTS:
        _workers.start(folder)


def _try_lock(descriptor: int, key: str) -> bool:
    try:
        fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, int(key[:16], 16) & _RANGE)
    except BlockingIOError:
        return False
    except PermissionError:  # which some systems say in its place
        return False
    return True


def _unlock(descriptor: int, key: str) -> None:
    with suppress(OSError):
        fcntl.lockf(descriptor, fcntl.LOCK_UN, 1, int(key[:16], 16) & _RANGE)


@contextmanager
def claimed(key: str) -> Iterator[None]:
    """Compile a kernel that no worker has begun: first wait until the one that has is ready, or dead, or too slow to be waited for."""
    claims = _workers.claims
    if claims is None:
        yield
        return
    descriptor, held = claims.fileno(), False
    try:
        held = _locked(descriptor, key)
        yield
    finally:
        if held:
            _unlock(descriptor, key)
        for worker in list(_workers.running):
            worker.settle()


def _locked(descriptor: int, key: str) -> bool:
    deadline = time.monotonic() + PATIENCE
    try:
        while not _try_lock(descriptor, key):
            if time.monotonic() > deadline:  # it hangs: it will not be missed
                _workers.end()
                return False
            time.sleep(POLL)
    except OSError:  # no locks here
        return False
    return True


@contextmanager
def unclaimed(descriptor: int, key: str) -> Iterator[bool]:
    """Claim a kernel for a worker; whether nobody else has begun it."""
    held = _try_lock(descriptor, key)
    try:
        yield held
    finally:
        if held:
            _unlock(descriptor, key)
