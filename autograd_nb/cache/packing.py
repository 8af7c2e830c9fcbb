"""Write packs of kernels: those in the cache, or those that programs use, compiled for this processor or a level of processors."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from .. import __version__
from ..codegen.build import cache, machine_code, pack, packs
from ..codegen.build.requests import untouched
from ..codegen.processor import LEVELS, features
from . import warm

HOST = "host"

__all__ = ["HOST", "LEVELS", "Written", "write"]


class Written(NamedTuple):
    """A record of what `write` wrote."""

    kernels: int
    size: int
    failed: list[str]


def environment_of(level: str) -> dict[str, str]:
    """Return the environment variables under which Numba compiles for a level, from the cache alone."""
    chosen = {packs.VARIABLE: packs.OFF}
    if level != HOST:
        chosen |= {"NUMBA_CPU_NAME": level, "NUMBA_CPU_FEATURES": features(level)}
    return chosen


def write(path: Path, level: str = HOST, programs: Sequence[str] = (), usual: bool = False, jobs: int = 1) -> Written:
    """Write a pack of the kernels that ``programs`` (and with ``usual`` the usual ops) use; without any, of what is in the cache.

    A program is what one would write behind ``python``. Errors: RuntimeError where there is nothing to pack.
    """
    store = cache.Store()
    if store.folder is None:
        raise RuntimeError("there is no kernel cache to take kernels from")
    environment = environment_of(level)
    failed: list[str] = []
    if level != HOST and (usual or programs) and (lacking := machine_code.lacking(LEVELS[level])):
        raise RuntimeError(f"programs for {level} cannot be run here to find their kernels: this processor lacks {lacking}")
    with tempfile.TemporaryDirectory() as room:
        recorder = [sys.executable, "-m", f"{__package__}.record"]
        if usual:
            failed += warm.compile_all(jobs, [*recorder, f"{room}/usual{{part}}", "-m"], environment)
        for number, program in enumerate(programs):
            words = [*recorder, f"{room}/program{number}", *shlex.split(program)]
            status = subprocess.run(words, env={**os.environ, **environment}, check=False).returncode
            if status:
                failed.append(f"{program} ended with status {status}")
        if not usual and not programs:
            subprocess.run([*recorder, f"{room}/nothing"], env={**os.environ, **environment}, check=True)
        said = [json.loads(file.read_text()) for file in sorted(Path(room).iterdir())]
    if not said:
        raise RuntimeError("no program got as far as to use a kernel: " + "; ".join(failed))
    if usual or programs:
        kernels = dict(_used(store.folder, said))
    else:
        kernels = dict(_made(store, said[0]["made"]))
    if not kernels:
        raise RuntimeError(f"the cache has no kernels that this version compiled for {level}: name programs to run, or --usual")
    about = {"autograd_nb": __version__, "level": level, **said[0]["made_by"], **_requests(said, kernels), "plain": _is_plain()}
    return Written(len(kernels), pack.write(path, about, kernels), failed)


def _is_plain() -> bool:
    """Return whether Numba compiled as it does by itself, but for the processor."""
    return untouched(besides=("NUMBA_CPU_NAME", "NUMBA_CPU_FEATURES"))


def _requests(said: Sequence[Mapping[str, Any]], kernels: Mapping[str, bytes]) -> dict[str, Any]:
    """Return what the kernels of a pack were asked for by, so that processes need no Numba to know them."""
    found, wanted = {words: answer for one in said for words, answer in one["requests"].items()}, {*kernels, ""}
    return {"texts": said[0]["texts"], "requests": {w: a for w, a in sorted(found.items()) if isinstance(a, dict) and a.get("content", "") in wanted}}


def _used(folder: Path, said: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, bytes]]:
    """Yield contents and payloads of what programs used; a kernel that could not be kept is not there."""
    for key, content in sorted({pair for one in said for pair in one["used"].items()}):
        found = cache.read(folder / (key + cache.SUFFIX))
        if found is not None and found[0].get("key") == key:
            yield content, found[1]


def _made(store: cache.Store, made: str) -> Iterator[tuple[str, bytes]]:
    """Yield contents and payloads of what is in the cache, made as ``made`` says."""
    for file in store.files():
        found = cache.read(file.path)
        if found is not None and found[0].get("made") == made and isinstance(found[0].get("content"), str):
            yield found[0]["content"], found[1]
