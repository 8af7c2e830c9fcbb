"""MPI jobs for tests: a program on several ranks, what it prints, and how long it may take."""

from __future__ import annotations

import functools
import importlib.util
import os
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

from autograd_nb.distributed.launcher import is_open_mpi, near

ROOT = Path(__file__).parents[2]
#: seconds that a job may take that ends by itself or by a limit of 2 s, on a machine that does much else
PATIENCE = 400


def mpiexec() -> str | None:
    """The mpiexec of this interpreter's environment, or the one on PATH."""
    beside = Path(sys.prefix) / "bin" / "mpiexec"
    return str(beside) if beside.exists() else shutil.which("mpiexec")


@functools.cache
def open_mpi() -> bool:
    """Whether it is Open MPI's, whose messages and options are others."""
    return is_open_mpi(str(mpiexec()))


needs_mpi = pytest.mark.skipif(
    importlib.util.find_spec("mpi4py") is None or mpiexec() is None, reason="needs the extra mpi: make test-mpi installs it"
)


@dataclass
class Ended:
    """A job that has ended."""

    code: int
    out: str
    seconds: float


def environment(**more: str) -> dict[str, str]:
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("PMI", "MPI", "OMPI", "RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_"))}
    return {**kept, "PYTHONPATH": str(ROOT), "PYTHONFAULTHANDLER": "1", "PYTHONUNBUFFERED": "1", "AUTOGRAD_NB_NUM_THREADS": "1", **more}


def job(ranks: int, *arguments: str, patience: float = PATIENCE, **more: str) -> Ended:
    """Run Python with these arguments on so many ranks; a job that takes longer than ``patience`` hangs, which is a failure."""
    return started([str(mpiexec()), "-n", str(ranks), *near(open_mpi()), sys.executable, *arguments], patience, **more)


def started(command: list[str], patience: float = PATIENCE, **more: str) -> Ended:
    """Run a command as a job."""
    begin = time.monotonic()
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=ROOT, env=environment(**more), start_new_session=True
    )
    try:
        out, _ = process.communicate(timeout=patience)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, 9)
        out, _ = process.communicate()
        pytest.fail(f"the job hangs after {patience} s:\n{out}")
    return Ended(process.returncode, out, time.monotonic() - begin)
