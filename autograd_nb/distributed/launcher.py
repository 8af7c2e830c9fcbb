"""``python -m autograd_nb run -n 4 program.py``: start a program on several ranks, with the mpiexec that belongs to this interpreter.

torchrun's spellings are accepted. A job that fails is started again, ``--max-restarts`` times: all ranks, from the program's last checkpoint.
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import subprocess
import sys
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from .mpi import INSTALL

#: options of torchrun that say where ranks meet, or where output goes; MPI and mpiexec see to that
_ACCEPTED = (
    "rdzv_backend", "rdzv_endpoint", "rdzv_id", "rdzv_conf", "node_rank", "local_addr", "log_dir", "redirects", "tee", "role",
    "start_method", "monitor_interval", "master_addr", "master_port",
)  # fmt: skip

AS_GPUS = "AUTOGRAD_NB_AS_GPUS"  #: the variable by which processes, and those that they start, find so many GPUs (see `compat.gpus`)


def _spellings(name: str) -> list[str]:
    return list(dict.fromkeys([f"--{name}", f"--{name.replace('_', '-')}"]))


def add_to(parser: argparse.ArgumentParser) -> None:
    """Add the options of jobs to those of ``run``."""
    job = parser.add_argument_group("several ranks (needs the extra mpi)")
    job.add_argument("-n", *_spellings("nproc_per_node"), dest="ranks", metavar="N", help="run on so many ranks on each host; auto: one a core")
    job.add_argument("--hosts", help="the hosts, with commas; this machine where none is named")
    job.add_argument("--nnodes", default=None, help="how many hosts there are: as many as --hosts names")
    job.add_argument(*_spellings("max_restarts"), type=int, default=0, help="start all ranks again so many times when one fails")
    job.add_argument("--standalone", action="store_true", help=argparse.SUPPRESS)
    job.add_argument(*_spellings("no_python"), action="store_true", help=argparse.SUPPRESS)
    for name in _ACCEPTED:
        job.add_argument(*_spellings(name), default=None, help=argparse.SUPPRESS)


def wants_ranks(options: argparse.Namespace) -> bool:
    """Return whether a job is asked for, and not a program in this process."""
    return options.ranks is not None or options.hosts is not None or options.standalone or options.nnodes is not None


def find_mpiexec() -> str:
    """Return the mpiexec beside this interpreter, else the one on PATH. FileNotFoundError where there is none."""
    folder = Path(sys.executable).parent  # not resolved: an environment's, not that of the Python it was made of
    found = next((str(p) for name in ("mpiexec", "mpiexec.exe") if (p := folder / name).exists()), None) or shutil.which("mpiexec")
    if found is None:
        raise FileNotFoundError(f"no mpiexec beside {sys.executable}, nor on PATH: {INSTALL}")
    return found


def is_open_mpi(mpiexec: str) -> bool:
    """Return whether it is Open MPI's, whose options have other names than those of MPICH and Intel MPI."""
    said = subprocess.run([mpiexec, "--version"], capture_output=True, text=True, check=False).stdout.lower()
    return "open mpi" in said or "openrte" in said or "prrte" in said


def count(options: argparse.Namespace) -> tuple[int, list[str]]:
    """Return (ranks on each host, hosts). ValueError for numbers that are none, and for hosts that are not named."""
    hosts = [host for host in (options.hosts or "").split(",") if host]
    nodes = int(str(options.nnodes or max(1, len(hosts))).rpartition(":")[2])
    if nodes != max(1, len(hosts)):
        raise ValueError(f"--nnodes={options.nnodes} needs the names of {nodes} hosts: --hosts a,b (torchrun is started on each, this once)")
    wanted = str(options.ranks or 1)
    if wanted in ("auto", "cpu", "gpu"):
        return os.cpu_count() or 1, hosts
    if not wanted.isdigit() or int(wanted) < 1:
        raise ValueError(f"-n {wanted}: the number of ranks is a whole number, or auto")
    return int(wanted), hosts


def _as_root() -> list[str]:
    """Return the option without which Open MPI starts no ranks for the administrator (as whom programs run in containers)."""
    return ["--allow-run-as-root"] if hasattr(os, "geteuid") and os.geteuid() == 0 else []


def near(open_mpi: bool) -> list[str]:
    """Return the options of a job on this machine alone, which may have more ranks than cores."""
    return ["--oversubscribe", *_as_root()] if open_mpi else []


def command(mpiexec: str, open_mpi: bool, ranks: int, hosts: Sequence[str], names: Sequence[str]) -> list[str]:
    """Return the start of the command line: how many, where, each line of output with its rank. ``names``: variables that all ranks get."""
    total = ranks * max(1, len(hosts))
    if open_mpi:
        where = [*_as_root(), "--host", ",".join(f"{host}:{ranks}" for host in hosts)] if hosts else near(True)
        given = [word for name in names for word in ("-x", name)]
        return [mpiexec, "-n", str(total), "--tag-output", *where, *given]
    where = ["-hosts", ",".join(hosts), "-ppn", str(ranks)] if hosts else []
    return [mpiexec, "-n", str(total), "-prepend-rank", *where]


def variables(options: argparse.Namespace, ranks: int, attempt: int) -> dict[str, str]:
    """Return what the ranks find in their environment: torchrun's names, and their share of the cores."""
    share = str(max(1, (os.cpu_count() or 1) // ranks))
    found = {
        "LOCAL_WORLD_SIZE": str(ranks), "TORCHELASTIC_RUN_ID": options.rdzv_id or uuid.uuid4().hex, "TORCHELASTIC_RESTART_COUNT": str(attempt),
        "TORCHELASTIC_MAX_RESTARTS": str(options.max_restarts), "AUTOGRAD_NB_NUM_THREADS": os.environ.get("AUTOGRAD_NB_NUM_THREADS", share),
    }  # fmt: skip
    if AS_GPUS in os.environ:
        found[AS_GPUS] = os.environ[AS_GPUS]
    for name in ("master_addr", "master_port"):
        if getattr(options, name):
            found[name.upper()] = getattr(options, name)
    return found


def launch(options: argparse.Namespace) -> int:
    """Run the job, again where it fails and may; the exit code."""
    try:
        (ranks, hosts), mpiexec = count(options), find_mpiexec()
    except (ValueError, FileNotFoundError) as error:
        print(error, file=sys.stderr)
        return 2
    program = [options.target, *options.arguments]
    if not options.no_python:
        program = [sys.executable, "-m", "autograd_nb", "run", *(["-m"] if options.module else []), *program]
    open_mpi = is_open_mpi(mpiexec)
    for attempt in range(options.max_restarts + 1):
        more = variables(options, ranks, attempt)
        code = _run([*command(mpiexec, open_mpi, ranks, hosts, list(more)), *program], {**os.environ, **more})
        if code == 0 or code == 128 + signal.SIGINT:
            break
        if attempt < options.max_restarts:
            print(f"the job failed (exit code {code}): starting all ranks again, {attempt + 1} of {options.max_restarts}", file=sys.stderr)
    return code


def _run(words: list[str], environment: Mapping[str, str]) -> int:
    """Run mpiexec, which hears of the signals that end this process; the exit code."""
    process = subprocess.Popen(words, env=dict(environment))

    def forward(number: int, frame: Any) -> None:
        process.send_signal(number)

    before = signal.signal(signal.SIGTERM, forward)
    try:
        code = process.wait()
    except KeyboardInterrupt:  # the terminal has told mpiexec too
        process.wait()
        code = 128 + signal.SIGINT
    finally:
        signal.signal(signal.SIGTERM, before)
    return code if code >= 0 else 128 - code
