"""One fresh process of a program, and what it says of itself."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from dataclasses import dataclass
from typing import Any

from bench.case import COMPILED, OURS, TORCH, missing
from bench.measure import ROOT

JAX = "JAX"
STEPS = 3  #: of a compiled program, which may be captured again after the first

#: what a process runs: a library, the table of its programs, and what is done with the step
CHILDREN = {
    OURS: "import autograd_nb as lib; from bench.cold.programs import PROGRAMS; step = PROGRAMS[NAME](lib)[0]",
    COMPILED: "import autograd_nb as lib; from bench.cold.programs import PROGRAMS; step = lib.compile(PROGRAMS[NAME](lib)[0])",
    TORCH: "import torch as lib; from bench.cold.programs import PROGRAMS; step = PROGRAMS[NAME](lib)[0]",
    JAX: "import jax as lib; from bench.cold.programs_jax import PROGRAMS; step = PROGRAMS[NAME](lib)",
}

#: the clock of the system, which the parent reads too, and the processor time of this process and of those that it has waited for
MARK = """
def mark():
    import os, time
    t = os.times()
    return time.monotonic(), time.process_time() + t.children_user + t.children_system
"""
STEP = "\nvalue = float(step()); marks = [mark()]\n"
MORE = f"for _ in range({STEPS - 1}):\n    float(step())\nmarks.append(mark())\n"
SAY = "import json; print(json.dumps({'loss': value, 'marks': marks}))\n"


@dataclass
class Spent:
    """Seconds from the start of a process: on the wall and of the processor, to the end of the first step and of all."""

    wall: float
    processor: float
    all_wall: float
    all_processor: float
    loss: float


def code_of(peer: str, name: str) -> str:
    """The program of a process."""
    return MARK + CHILDREN[peer].replace("NAME", repr(name)) + STEP + (MORE if peer == COMPILED else "")


def absent(peer: str) -> str:
    """Why a peer cannot run; empty if it can."""
    return "" if peer in (OURS, COMPILED) else missing(peer)


def said(code: str, cache: str, **environment: str) -> tuple[float, dict[str, Any]]:
    """When a fresh interpreter was started, and what it printed at last. It uses packs of kernels only where AUTOGRAD_NB_PACK names them."""
    given = {"AUTOGRAD_NB_PACK": "off", **os.environ, "PYTHONPATH": str(ROOT), "AUTOGRAD_NB_CACHE_DIR": cache, **environment}
    given.pop("PYTHONDONTWRITEBYTECODE", None)  # what is imported was imported before, as it is for nearly everybody
    started = time.monotonic()
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", code], env=given, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(done.stderr.strip().splitlines()[-1] if done.stderr.strip() else f"exit status {done.returncode}")
    return started, json.loads(done.stdout.splitlines()[-1])


def stages(peer: str, name: str, cache: str) -> dict[str, Any]:
    """Run a program as `spent` does, and return where its processor time went (`stages.Watch.report`); it compiles all kernels itself."""
    code = "from bench.cold.stages import watch; watching = watch()\n" + code_of(peer, name)
    return said(code + "import json; print(json.dumps(watching.report()))\n", cache, AUTOGRAD_NB_COMPILE_WORKERS="0")[1]


def spent(peer: str, name: str, cache: str) -> Spent:
    """Run a program to the end of its first step (compiled, `STEPS` of them) in a fresh process."""
    started, found = said(code_of(peer, name) + SAY, cache)
    (wall, processor), (all_wall, all_processor) = found["marks"][0], found["marks"][-1]
    return Spent(wall - started, processor, all_wall - started, all_processor, found["loss"])
