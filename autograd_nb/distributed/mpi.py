"""The door to MPI: mpi4py, imported when the first process group is made and not before.

Also what the programs that start ranks (mpiexec, srun) tell their processes, which is known without MPI.
"""

from __future__ import annotations

import ctypes
import functools
import importlib.util
import os
import sys
from collections.abc import Mapping
from typing import Any

#: whether kernels can call MPI: where its functions are is known through mpi4py's own library
NATIVE = sys.platform.startswith(("linux", "darwin"))

#: the remedy where there is no MPI
INSTALL = "install MPI with `pip install \"autograd_nb[mpi]\"`, which brings mpi4py and a working mpiexec (on a cluster: mpi4py, built for its own MPI)"

#: rank, number of ranks and rank on the machine, as MPICH and Intel MPI, Open MPI, and Slurm call them; the last is there only for ranks (a
#: batch script has Slurm's other names too)
_LAUNCHERS = (
    ("PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "PMI_RANK"),
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_RANK"),
    ("SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID", "SLURM_STEP_ID"),
)


def is_available() -> bool:
    """Return whether process groups can be made here: mpi4py is installed (extra ``mpi``).

    >>> dist.is_available()
    True
    """
    return "mpi4py" in sys.modules or importlib.util.find_spec("mpi4py") is not None


def started() -> bool:
    """Return whether MPI has been started in this process."""
    return "mpi4py.MPI" in sys.modules


def mpi() -> Any:
    """Return ``mpi4py.MPI``, which starts MPI when it is imported first. RuntimeError where it is missing or has no threads."""
    if not is_available():
        raise RuntimeError(f"Distributed package doesn't have MPI built in: {INSTALL}")
    try:
        from mpi4py import MPI
    except (ImportError, RuntimeError) as error:  # mpi4py without an MPI library
        raise RuntimeError(f"Distributed package doesn't have MPI built in: mpi4py cannot load an MPI library ({error}); {INSTALL}") from error
    if MPI.Query_thread() < MPI.THREAD_MULTIPLE:
        raise RuntimeError("this MPI was started without MPI_THREAD_MULTIPLE, which process groups need: leave mpi4py.rc.thread_level at its default")
    return MPI


@functools.cache
def address(name: str) -> int:
    """Return where a C function is: one of MPI's, or of the system's."""
    library = ctypes.CDLL(mpi().__file__ if name.startswith("MPI_") else None)
    return ctypes.cast(getattr(library, name), ctypes.c_void_p).value or 0


def launched(environment: Mapping[str, str] = os.environ) -> tuple[int, int, int] | None:
    """Return (rank, number of ranks, rank on this machine) as the program that started this process says, None where none did."""
    for rank, size, local, sign in _LAUNCHERS:
        if sign in environment and rank in environment and size in environment:
            alone = environment.get("OMPI_COMM_WORLD_LOCAL_SIZE") == environment[size]  # then Open MPI may count by cores, and programs by ranks
            return int(environment[rank]), int(environment[size]), int(environment[rank] if alone else environment.get(local, environment[rank]))
    return None


def name_ranks(rank: int, size: int, local: int) -> None:
    """Set the variables that torchrun sets and programs read; those that are there stay."""
    for name, value in (("RANK", rank), ("WORLD_SIZE", size), ("LOCAL_RANK", local)):
        os.environ.setdefault(name, str(value))
    os.environ.setdefault("MASTER_ADDR", "localhost")
    os.environ.setdefault("MASTER_PORT", "29500")
