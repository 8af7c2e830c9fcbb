"""Run one program in each library and compare; report a failure as a short program."""

from __future__ import annotations

from typing import Any

import torch

import autograd_nb as ours

from . import generate
from .compare import Difference, first_difference
from .program import Calls, Program, call, trace
from .shrink import shrink


def difference(program: Any, strides: bool = True, compiled: bool = True) -> Difference | None:
    """How a program differs from PyTorch; for functions first how the compiled one differs from the eager one."""
    if isinstance(program, Program):
        return first_difference(trace(program, ours), trace(program, torch), strides)
    eager = call(program, ours, False)
    found = first_difference(call(program, ours, True), eager, strides, own=True) if compiled else None
    if found is not None and found.kind != "limit":
        found.kind, found.deliberate = f"compiled {found.kind}", False
        return found
    found = first_difference(eager, call(program, torch, False), strides)
    if found is not None:
        found.kind = f"eager {found.kind}"
    return found


def check(seed: str, compiled: bool, strides: bool = True) -> tuple[Any, Difference | None]:
    program: Any = generate.calls(seed) if compiled else generate.program(seed)
    return program, difference(program, strides)


def report(program: Any, found: Difference, strides: bool = True) -> str:
    """The program shrunk to what makes the difference, as text that runs with either library."""

    def fails(smaller: Any) -> bool:
        if isinstance(smaller, Calls) and not smaller.calls:
            return False
        other = difference(smaller, strides, found.kind.startswith("compiled"))
        return other is not None and other.kind == found.kind and not other.deliberate

    small = shrink(program, fails)
    _, _, body = small.text("autograd_nb").partition("# ---\n")
    return f"{difference(small, strides)}\n{body}"
