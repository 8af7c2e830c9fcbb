"""Compile the usual kernels on several cores: ``python -m autograd_nb.cache.warm PART PARTS`` is one of the processes.

A process prints a line for each thing that it has done, with an error's text where it failed.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from threading import Thread
from typing import Any

from ..codegen.build.workers import VARIABLE
from .bar import progress
from .usual import usual_kernels

_DONE, _FAILED = "done ", "failed "


def compile_all(jobs: int, command: Sequence[str] = (), environment: Mapping[str, str] | None = None) -> list[str]:
    """Compile the usual kernels in so many processes; what failed.

    ``command``: words before the module's own, from the interpreter on; "{part}" in them is the number of the process.
    """
    items = list(usual_kernels())
    jobs = max(1, min(jobs, len(items)))
    failed: list[str] = []
    with progress(len(items), "op") as done:

        def heard(line: str) -> None:
            if line.startswith(_FAILED):
                failed.append(line.removeprefix(_FAILED).strip())
                print(f"\n{failed[-1]}", file=sys.stderr)
            if line.startswith((_DONE, _FAILED)):
                done(line.partition(" ")[2].partition(":")[0].strip())

        if jobs == 1 and not command:
            for line in _compiled(items):
                heard(line)
            return failed
        listeners = [_start(part, jobs, command, environment, heard, failed) for part in range(jobs)]
        for listener in listeners:
            listener.join()
    return failed


def _start(
    part: int, jobs: int, command: Sequence[str], environment: Mapping[str, str] | None, heard: Callable[[str], None], failed: list[str]
) -> Thread:
    """Start a process, and the thread that listens to it."""
    words = [w.replace("{part}", str(part)) for w in command] or [sys.executable, "-m"]
    process = subprocess.Popen(
        [*words, __name__, str(part), str(jobs)], stdout=subprocess.PIPE, text=True,
        env={**os.environ, VARIABLE: "0", **(environment or {})},
    )  # fmt: skip

    def listen() -> None:
        with process:
            for line in process.stdout or ():
                heard(line)
        if process.returncode:
            failed.append(f"process {part + 1} of {jobs} ended with status {process.returncode}")

    thread = Thread(target=listen)
    thread.start()
    return thread


def _compiled(items: Sequence[tuple[str, Callable[[], Any]]]) -> Iterator[str]:
    """Compile one after the other, and yield what is to be said of each."""
    for name, thunk in items:
        try:
            thunk()
        except Exception as error:  # one that fails must not keep the others from being compiled
            yield f"{_FAILED}{name}: {type(error).__name__}: {error}".replace("\n", " ")
        else:
            yield _DONE + name


if __name__ == "__main__":
    _part, _parts = map(int, sys.argv[1:3])
    for _line in _compiled(list(usual_kernels())[_part::_parts]):
        print(_line, flush=True)
