"""How much code the kernels of the nine programs of `bench.cold` consist of, and how much they may: ``compile_budget.txt``.

Counted are the LLVM instructions and basic blocks of each kernel and of all that it calls, before anything is optimised: what Numba has
to write and LLVM to read. They are the same on every machine, as the kernels are made for one level of processors, and nearly the same
for all versions of Python and Numba. A kernel is known by its op (or its name, where it is written by hand) and the types of its
arguments; of several that are known alike the largest stands first.

``python -m tests.compile_budget`` compiles them all, shows what changed and writes the table anew: after a change that makes kernels
smaller, or larger for a reason that its commit gives.
"""

from __future__ import annotations

import platform
import tempfile
from pathlib import Path
from typing import Any

from autograd_nb.codegen.processor import LEVELS, features
from bench.cold.process import said

TABLE = Path(__file__).with_suffix(".txt")
LEVEL = "x86-64-v3"
TOTAL = "all"  #: the line of the sums
SLACK, MORE, TOTAL_SLACK = 1.1, 60, 1.03  #: times, and instructions more, that a kernel may have; times that all may have: versions differ

#: all programs eager, then compiled, in one process. What is counted does not depend on NUMBA_OPT
CHILD = """
from bench.cold.stages import watch; watching = watch()
import json
import autograd_nb as torch
from bench.cold.programs import PROGRAMS
builds = [PROGRAMS[name] for name in NAMES]
for build in builds:
    float(build(torch)[0]())
for build in builds:
    step = torch.compile(build(torch)[0])
    for _ in range(3):
        float(step())
print(json.dumps(watching.report()))
"""

Sizes = dict[str, list[tuple[int, int]]]  #: (instructions, blocks) by what a kernel is known by, the largest first


def fits() -> bool:
    """Whether kernels of the table's level of processors run here."""
    from llvmlite import binding

    if platform.machine().lower() not in ("x86_64", "amd64"):
        return False
    host = binding.get_host_cpu_features()
    return all(host.get(f, f == "64bit") for f in LEVELS[LEVEL])


def measured(names: list[str]) -> Sizes:
    """The sizes of the kernels that programs need."""
    fixed = {"NUMBA_CPU_NAME": "generic", "NUMBA_CPU_FEATURES": features(LEVEL), "NUMBA_OPT": "0", "AUTOGRAD_NB_NUM_THREADS": "1"}
    with tempfile.TemporaryDirectory() as folder:
        _, found = said(CHILD.replace("NAMES", repr(names)), folder, **fixed, AUTOGRAD_NB_COMPILE_WORKERS="0", AUTOGRAD_NB_PACK="off")
    return sizes_of(found["kernels"])


def sizes_of(kernels: list[dict[str, Any]]) -> Sizes:
    """What `Watch.report` tells, by kernel."""
    sizes: Sizes = {}
    for k in kernels:
        sizes.setdefault(f"{k['name']}({', '.join(k['types'])})", []).append((k["instructions"], k["blocks"]))
    return {name: sorted(sizes[name], reverse=True) for name in sorted(sizes)}


def sums(sizes: Sizes) -> tuple[int, int, int]:
    """(instructions, blocks, kernels) of all."""
    found = [size for alike in sizes.values() for size in alike]
    return sum(n for n, _ in found), sum(n for _, n in found), len(found)


def written(sizes: Sizes) -> str:
    """The text of the table."""
    instructions, blocks, kernels = sums(sizes)
    lines = [f"{n:7d} {b:6d}  {name}" for name, alike in sizes.items() for n, b in alike]
    return "\n".join(["# instructions, blocks, kernel; python -m tests.compile_budget", f"{instructions:7d} {blocks:6d}  {TOTAL} {kernels}", *lines, ""])


def read(text: str) -> tuple[Sizes, tuple[int, int, int]]:
    """The sizes in the table, and the sums that it gives."""
    sizes: Sizes = {}
    total = (0, 0, 0)
    for line in text.splitlines():
        if line.startswith("#"):
            continue
        instructions, blocks, name = line.split(maxsplit=2)
        if name.startswith(TOTAL + " "):
            total = (int(instructions), int(blocks), int(name.split()[1]))
        else:
            sizes.setdefault(name, []).append((int(instructions), int(blocks)))
    return sizes, total


def grown(recorded: Sizes, sizes: Sizes) -> list[str]:
    """The kernels that have more code than they may."""
    found = []
    for name, alike in sizes.items():
        for (n, blocks), (most, most_blocks) in zip(alike, recorded.get(name, ()), strict=False):
            if n > most * SLACK + MORE or blocks > most_blocks * SLACK + MORE / 10:
                found.append(f"{name}: {n} instructions in {blocks} blocks, where {most} in {most_blocks} are recorded")
    return found


def changes(recorded: Sizes, sizes: Sizes) -> list[str]:
    """What differs from the table, a line a kernel."""
    return [
        f"{name}: {' '.join(f'{n}/{b}' for n, b in recorded.get(name, ())) or '-'} → {' '.join(f'{n}/{b}' for n, b in sizes.get(name, ())) or '-'}"
        for name in sorted({*recorded, *sizes}) if recorded.get(name) != sizes.get(name)
    ]  # fmt: skip


def main() -> None:
    from bench.cold.programs import PROGRAMS

    sizes = measured(list(PROGRAMS))
    recorded, before = read(TABLE.read_text()) if TABLE.exists() else ({}, (0, 0, 0))
    print("\n".join(changes(recorded, sizes)))
    print(f"instructions, blocks, kernels: {before} → {sums(sizes)}")
    TABLE.write_text(written(sizes))


if __name__ == "__main__":
    main()
