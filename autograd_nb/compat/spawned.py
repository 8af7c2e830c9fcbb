"""Ranks of a program that starts them itself: `multiprocessing.spawn` runs them by mpiexec, as MPI knows only what that started.

``python -m autograd_nb.compat.spawned FOLDER`` is one of these ranks: it prepares itself as Python's own spawned processes do, and calls the
function.
"""

from __future__ import annotations

import multiprocessing as mp
import multiprocessing.spawn as python_spawn
import os
import pickle
import shutil
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ..distributed.launcher import find_mpiexec, is_open_mpi, near
from ..distributed.mpi import is_available, launched
from ..ops.creation.shared import pickled_copies
from .as_torch import PACKAGE, as_torch


class ProcessRaisedException(RuntimeError):
    """An exception in a spawned process, with its traceback as the text."""

    error_index: int

    def __init__(self, msg: str, error_index: int, error_pid: int = -1):
        super().__init__(msg)
        self.msg: str = msg
        self.error_index = error_index
        self.pid: int = error_pid


class ProcessExitedException(RuntimeError):
    """A spawned process that ended with an exit code other than 0, and no exception."""

    error_index: int

    def __init__(self, msg: str, error_index: int, error_pid: int = -1, exit_code: int = 1, signal_name: str | None = None):
        super().__init__(msg)
        self.msg: str = msg
        self.error_index = error_index
        self.pid: int = error_pid
        self.exit_code: int = exit_code
        self.signal_name: str | None = signal_name


class SpawnContext:
    """The job that `spawn` started."""

    def __init__(self, process: subprocess.Popen[bytes], folder: Path):
        self._process, self._folder = process, folder

    def pids(self) -> list[int]:
        """Return the number of the process that started the ranks."""
        return [self._process.pid]

    def join(self, timeout: float | None = None, grace_period: float | None = None) -> bool:
        """Wait until all ranks have ended; whether they have, after ``timeout`` seconds. ProcessRaisedException where one raised."""
        try:
            code = self._process.wait(timeout)
        except subprocess.TimeoutExpired:
            return False
        errors = sorted(self._folder.glob("error.*"), key=lambda path: path.stat().st_mtime_ns)
        texts = [(int(path.suffix[1:]), path.read_text()) for path in errors]
        shutil.rmtree(self._folder, ignore_errors=True)
        if texts:
            rank, text = texts[0]
            raise ProcessRaisedException(f"\n\n-- Process {rank} terminated with the following error:\n{text}", rank)
        if code:
            raise ProcessExitedException(f"a process terminated with exit code {code}", -1, exit_code=code)
        return True


#: what says to a process which rank it is, and is not for those that it starts
_OF_A_RANK = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "GROUP_RANK")


def can_spawn(nprocs: int) -> bool:
    """Return whether ranks can be started by mpiexec here: there is one, and this process is no rank itself, or the only one of MPICH's mpiexec."""
    found = launched()
    alone = found is None or (found[1] == 1 and "PMI_FD" in os.environ)
    if nprocs < 2 or not is_available() or not alone:
        return False
    try:
        find_mpiexec()
    except FileNotFoundError:
        return False
    return True


def spawn(fn: Callable[..., Any], args: tuple[Any, ...], nprocs: int) -> SpawnContext:
    """Run ``fn(i, *args)`` on ``nprocs`` ranks. TypeError and PicklingError for arguments that only Python's own processes can be given."""
    prepared = python_spawn.get_preparation_data("rank")
    prepared["authkey"] = bytes(prepared["authkey"])
    torch = sys.modules.get("torch") is sys.modules[PACKAGE]
    call = pickled_copies((fn, args))
    folder = Path(tempfile.mkdtemp(prefix="autograd_nb-spawn-"))
    (folder / "call").write_bytes(pickle.dumps((torch, prepared, call)))
    mpiexec = find_mpiexec()
    words = [mpiexec, "-n", str(nprocs), *near(is_open_mpi(mpiexec)), sys.executable, "-m", __name__, str(folder)]
    kept = {k: v for k, v in os.environ.items() if launched() is None or not (k in _OF_A_RANK or k.startswith(("PMI", "HYD", "MPI")))}
    return SpawnContext(subprocess.Popen(words, stdin=subprocess.DEVNULL, env=kept), folder)


def main(folder: Path) -> None:
    """Be one rank."""
    found = launched()
    rank = 0 if found is None else found[0]
    torch, prepared, call = pickle.loads((folder / "call").read_bytes())
    if torch:
        as_torch()
    mp.current_process()._inheriting = True  # type: ignore[attr-defined]  # the main module may begin no processes while it is imported
    try:
        try:
            python_spawn.prepare(prepared)
            fn, args = pickle.loads(call)
        finally:
            del mp.current_process()._inheriting  # type: ignore[attr-defined]
        fn(rank, *args)
    except Exception:
        text = traceback.format_exc()
        (folder / f"error.{rank}").write_text(text)
        time.sleep(0.1)  # who failed first is who wrote first
        raise


if __name__ == "__main__":
    main(Path(sys.argv[1]))
