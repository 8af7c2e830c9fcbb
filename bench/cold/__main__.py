"""What a program costs that was never run before: ``python -m bench.cold [word…] [--rounds 3] [--cores 1]``.

Nine programs (`programs.py`), eager and compiled, each as a fresh process with an empty kernel cache, from its start to the end of the
first training step; and once more, with the kernels that it left. Beside them PyTorch's process of the same program, and `jax.jit`'s
where there is one. All take turns; given are medians in seconds, and ratios to PyTorch's process. Processor time counts what a process
started and waited for, and is what to read on a machine that does other things meanwhile. Then, of one more process of each, the
processor time by stage, and the kernels that took longest to compile, with the LLVM instructions and basic blocks that they consist of
before anything is optimised, functions that they call among them.

Packs of kernels are left aside unless AUTOGRAD_NB_PACK names them. ``python -m bench.cold ops`` asks for the first call of every op of
PyTorch's database instead.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import sys
import tempfile
from collections import Counter
from dataclasses import asdict
from pathlib import Path
from typing import Any

from bench.case import COMPILED, OURS, TORCH
from bench.cold.process import JAX, STEPS, Spent, absent, spent, stages
from bench.cold.programs import PROGRAMS
from bench.cold.programs_jax import PROGRAMS as IN_JAX
from bench.cold.stages import STAGES
from bench.run import confine

WARM = ", second process"
#: columns: what runs, and the name of the row of figures
ROWS = (OURS, OURS + WARM, COMPILED, COMPILED + WARM, TORCH, JAX)


def arguments(given: list[str] | None = None) -> argparse.Namespace:
    p = argparse.ArgumentParser(prog="python -m bench.cold", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("words", nargs="*", help="programs whose name contains one of these; all by default. 'ops': every op instead")
    p.add_argument("--rounds", type=int, default=3, help="processes of each kind, in turn (default 3; 0: stages and kernels only)")
    p.add_argument("--cores", type=int, default=1, choices=(1, 2), help="processors that all are kept to (default 1)")
    p.add_argument("--kernels", type=int, default=10, help="show this many of each process (default 10)")
    p.add_argument("--json", type=Path, help="write all figures to this file")
    return p.parse_args(given)


def chosen(words: list[str]) -> list[str]:
    """Names of programs."""
    return [name for name in PROGRAMS if not words or any(w.lower() in name.lower() for w in words)]


def measure(name: str, rounds: int) -> dict[str, list[Spent]]:
    """What the processes of a program spend, round by round, by the rows' names."""
    found: dict[str, list[Spent]] = {}
    peers = [peer for peer in (TORCH, OURS, COMPILED, JAX) if not absent(peer) and (peer != JAX or name in IN_JAX)]
    if rounds:
        for peer in peers:
            with tempfile.TemporaryDirectory() as folder:
                spent(peer, name, folder)  # not counted: Python keeps what it compiles of the modules that are imported
    for _ in range(rounds):
        for peer in peers:
            with tempfile.TemporaryDirectory() as folder:
                found.setdefault(peer, []).append(spent(peer, name, folder))
                if peer in (OURS, COMPILED):
                    found.setdefault(peer + WARM, []).append(spent(peer, name, folder))
    return found


def middle(found: list[Spent], field: str) -> float:
    return statistics.median(getattr(s, field) for s in found)


def ratios(found: dict[str, list[Spent]], field: str) -> dict[str, float]:
    """Medians in units of PyTorch's process; empty where it is not installed."""
    if TORCH not in found:
        return {}
    unit = middle(found[TORCH], field)
    return {row: middle(s, field) / unit for row, s in found.items() if row != TORCH}


def show(name: str, found: dict[str, list[Spent]]) -> None:
    """Print the lines of one program."""
    wall, processor = ratios(found, "wall"), ratios(found, "processor")
    for row in ROWS:
        if row not in found:
            continue
        line = f"{name:22}{row:26}{middle(found[row], 'wall'):9.2f}{middle(found[row], 'processor'):11.2f}"
        line += f"{wall[row]:9.2f}{processor[row]:11.2f}" if row in wall else " " * 20
        if row.startswith(COMPILED):
            line += f"   {STEPS} steps: {middle(found[row], 'all_processor'):.2f}"
        print(line, flush=True)
        name = ""


def show_stages(name: str, peer: str, found: dict[str, Any], kernels: int) -> None:
    """Print the stages of one process, and its kernels that took longest."""
    total, made = sum(found["stages"].values()), found["kernels"]
    print(f"{name}, {peer}: {total:.2f} s of the processor; {len(made)} kernels compiled in {sum(k['seconds'] for k in made):.2f} s, "
          f"{sum(k['instructions'] for k in made):,d} instructions in {sum(k['blocks'] for k in made):,d} blocks")  # fmt: skip
    print("  " + ", ".join(f"{s} {found['stages'].get(s, 0):.2f}" for s in STAGES))
    for k in made[:kernels]:
        line = f"{k['seconds']:8.3f} s {k['seconds'] / total:6.1%} {k['instructions']:8,d} {k['blocks']:6,d}  {k['name']}"
        print(f"{line} ({', '.join(k['types'])})"[:160], flush=True)


def show_together(profiles: dict[str, dict[str, Any]], peer: str, kernels: int) -> None:
    """Print the stages of the processes of all programs, and the kernels that took longest in all of them."""
    reports = [found[peer] for found in profiles.values()]
    spent_in: Counter[str] = Counter()
    took: dict[str, list[float]] = {}
    for found in reports:
        spent_in.update(found["stages"])
        for k in found["kernels"]:
            took.setdefault(f"{k['name']} ({', '.join(k['types'])})", []).append(k["seconds"])
    total, compiling, count = spent_in.total(), sum(map(sum, took.values())), sum(map(len, took.values()))
    print(f"all programs, {peer}: {total:.2f} s of the processor; {count} kernels compiled, {1e3 * compiling / max(count, 1):.0f} ms each")
    print("  " + ", ".join(f"{s} {spent_in[s] / total:.1%}" for s in STAGES))
    for name, seconds in sorted(took.items(), key=lambda item: -sum(item[1]))[:kernels]:
        print(f"{sum(seconds):8.3f} s {sum(seconds) / total:6.1%} {len(seconds):8d} times  {name}"[:160], flush=True)


def show_means(all_found: dict[str, dict[str, list[Spent]]]) -> None:
    """Print the geometric means of all programs, and the worst."""
    for row in ROWS:
        pairs = [(ratios(f, "wall").get(row), ratios(f, "processor").get(row), n) for n, f in all_found.items()]
        known = [(w, p, n) for w, p, n in pairs if w is not None and p is not None]
        if not known:
            continue
        means = [math.exp(statistics.fmean(math.log(k[i]) for k in known)) for i in range(2)]
        worst = max(known, key=lambda k: k[1])
        count = f"{len(known)} programs" if len(known) > 1 else "1 program"
        print(f"{'geometric mean':22}{row:26}{count:>20}{means[0]:9.2f}{means[1]:11.2f}   worst: {worst[2]} {worst[1]:.2f}")


def main(given: list[str] | None = None) -> int:
    a = arguments(given)
    if a.words == ["ops"]:
        from bench.cold import ops

        ops.main()
        return 0
    names = chosen(a.words)
    if not names:
        sys.exit(f"no program is called {' or '.join(a.words)}; there are {', '.join(PROGRAMS)}")
    confine(a.cores)
    for peer in (TORCH, JAX):
        if reason := absent(peer):
            print(f"{peer}: {reason}")
    with tempfile.TemporaryDirectory() as folder:  # the files of the libraries are in the system's memory from now on
        for peer in (TORCH, OURS, JAX):
            if not absent(peer):
                spent(peer, next(iter(PROGRAMS)), folder)
    print(f"{'':48}{'seconds':^20}{'to PyTorch':^20}\n{'program':22}{'process':26}" + f"{'wall':>9}{'processor':>11}" * 2)
    all_found: dict[str, dict[str, list[Spent]]] = {}
    for name in names:
        all_found[name] = measure(name, a.rounds)
        show(name, all_found[name])
    show_means(all_found)
    profiles: dict[str, dict[str, Any]] = {}
    for name in names:
        for peer in (OURS, COMPILED):
            with tempfile.TemporaryDirectory() as folder:
                found = profiles.setdefault(name, {})[peer] = stages(peer, name, folder)
            show_stages(name, peer, found, a.kernels)
    for peer in (OURS, COMPILED) if len(names) > 1 else ():
        show_together(profiles, peer, a.kernels)
    if a.json:
        figures: Any = {n: {row: [asdict(s) for s in all_] for row, all_ in f.items()} for n, f in all_found.items()}
        a.json.write_text(json.dumps({"cores": a.cores, "rounds": a.rounds, "programs": figures, "stages": profiles}, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
