"""Search for programs that do not do what they do in PyTorch: ``python -m tests.fuzz --seconds 600 --seed 1`` (or ``make fuzz``).

Each program is drawn from a seed of its own, which is told with a failure: ``--only 1:57`` draws it again. A process runs a stretch
of programs; if it dies or hangs, the program that it was at is the failure.
"""

from __future__ import annotations

import argparse
import collections
import faulthandler
import gc
import os
import re
import signal
import subprocess
import sys
import time
import traceback
from pathlib import Path
from typing import Any

HANG = 120  #: seconds that a program may take
BROKEN = 3  #: the exit code of a process whose own work has failed, and no program
#: draws a program, for which PyTorch alone runs its statements, and runs it in PyTorch as it is compared
DRAW = "import torch; from tests.fuzz import generate, program; program.{}(generate.{}({!r}), torch{})"


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--seed", default="0")
    parser.add_argument("--family", help="draw mostly from families whose names begin so (of `statements.FAMILIES`), as from conjugate")
    parser.add_argument("--programs", type=int, help="at most so many programs")
    parser.add_argument("--skip", default="", help="numbers of programs to leave out, with commas")
    parser.add_argument("--only", help="one program, by what was told with its failure")
    parser.add_argument(
        "--compiled", action="store_true",
        help="functions called a few times, compiled; without, programs run eagerly (with NUMBA_DISABLE_JIT=1 kernels are run by Python: quicker)",
    )
    parser.add_argument("--replays", action="store_true", help="compare programs that are replayed with the same ones that are not (`replays`)")
    parser.add_argument("--most", type=int, default=2, help="failures to print of those that are alike")
    parser.add_argument("--no-strides", action="store_true")
    parser.add_argument("--from", dest="first", type=int, default=0)
    parser.add_argument("--corpus", action="store_true", help="run the programs of corpus.txt instead of drawn ones")
    parser.add_argument("--coverage", action="store_true", help="draw --programs, run none, and tell which share of all ops they call")
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.family:
        options.seed = f"{options.family}+{options.seed}"  # as it is told with a failure
    return options


def alike(text: str) -> str:
    """What reports of one fault have in common: the last statement, without names and numbers."""
    kind, _, rest = text.partition(" after step")
    lines = [line for line in rest.splitlines()[1:] if line.strip()]
    return f"{kind}: {re.sub(r'v?[-0-9.]+', '', ' '.join(lines[-1:]))}"


def worker(options: argparse.Namespace) -> None:
    """Run programs until the time is up; each one's number is written down before it begins."""
    from ..compiler import interpreted
    from . import replays
    from .check import ALONE, check, report
    from .program import CAPTURED

    interpreted.install()
    faulthandler.enable()
    faulthandler.dump_traceback_later(HANG, exit=True)
    began, number, alone = time.time(), options.first, 0  # (of how many programs something was refused here alone)
    seen: collections.Counter = collections.Counter()
    reports: collections.Counter = collections.Counter()
    explained: collections.Counter = collections.Counter()
    while options.only or (time.time() - began < options.seconds and number != options.programs):
        if str(number) in options.skip.split(","):
            number += 1
            continue
        seed = options.only or f"{options.seed}:{number}"
        faulthandler.dump_traceback_later(HANG, exit=True)
        if options.worker:
            Path(options.worker).write_text(f"{number}")
        if number % 32 == 0 and (options.replays or options.compiled):
            gc.freeze()  # what passes that are noted, and captures, look through: all that PyTorch consists of is none of it
        if options.replays:
            program, before, difference = replays.check(seed)
            why: list[str] = []
        else:
            program, difference, why = check(seed, options.compiled, not options.no_strides)
            alone += bool(ALONE)
        number += 1
        explained.update(set(why))
        if difference is not None:
            seen[difference.kind] += 1
            faulthandler.dump_traceback_later(HANG * 5, exit=True)
            text = replays.report(program, before, difference) if options.replays else report(program, difference, not options.no_strides)
            key = alike(text)
            reports[key] += 1
            if reports[key] <= options.most:  # else it is one more of a kind
                print(f"\n=== {seed}: {text}", flush=True)
            else:
                print(f"\n=== {seed}: as before: {key[:100]}", flush=True)
        if options.only:
            break
    faulthandler.cancel_dump_traceback_later()
    count, taken = number - options.first, time.time() - began
    captured = f"; {alone} with what was refused here alone"
    captured += f"; {CAPTURED[0]} functions became programs (shrinking included)" if options.compiled else ""
    if options.replays:
        captured = f"; {replays.REPLAYED[0]} passes and {replays.REPLAYED[1]} calls were replays (shrinking included)"
    print(f"\n{count} programs, {sum(seen.values())} differ {dict(seen)}, {taken:.0f} s; explained: {dict(explained)}" + captured, flush=True)


def coverage(options: argparse.Namespace) -> None:
    """Tell which share of the library's ops the programs of a seed call."""
    from . import generate, ops

    texts = [generate.program(f"{options.seed}:{k}").text("torch").partition("# ---")[2] for k in range(options.programs or 1000)]
    called, every, missing = ops.share(texts)
    print(f"{len(texts)} programs call {called} of {every} ops ({100 * called / every:.1f} %); not {', '.join(missing)}")


def dies_there(text: str) -> bool:
    """Whether a process that runs PyTorch alone dies or hangs."""
    try:
        return subprocess.run([sys.executable, "-c", text], timeout=HANG).returncode != 0
    except subprocess.TimeoutExpired:
        return True


def main() -> None:
    options = arguments()
    if options.coverage:
        coverage(options)
        return
    if options.corpus:
        from .check import corpus

        sys.exit(corpus())
    if options.only or options.worker:
        try:
            worker(options)
        except Exception:  # in what draws and compares; a hang ends the process with 1
            traceback.print_exc()
            sys.exit(BROKEN)
        return
    import tempfile

    note: Any = Path(tempfile.mkdtemp()) / "number"
    began, first, died = time.time(), options.first, 0
    slow: set[int] = set()  # programs that took too long once
    while (left := options.seconds - (time.time() - began)) > 0:
        command = [sys.executable, "-m", "tests.fuzz", "--seed", options.seed, "--seconds", str(left), "--from", str(first)]
        command += (
            ["--worker", str(note), "--most", str(options.most)]
            + ["--compiled"] * options.compiled
            + ["--replays"] * options.replays
            + ["--no-strides"] * options.no_strides
        )
        command += [f"--skip={options.skip}"] + ([f"--programs={options.programs}"] if options.programs else [])
        environment = {**os.environ, "NUMBA_DISABLE_JIT": os.environ.get("NUMBA_DISABLE_JIT", "0" if options.compiled else "1")}
        code = subprocess.run(command, env=environment).returncode
        if code == 0:
            break
        if not note.exists() or code == BROKEN:  # not a program's fault
            sys.exit(code)
        at = int(note.read_text())
        if code == 1 and at not in slow:  # the machine may have stood still
            print(f"\n{options.seed}:{at} took too long, and is begun anew", flush=True)
            slow.add(at)
            first = at
            continue
        drawn = ("call", "calls", f"{options.seed}:{at}", ", False") if options.compiled else ("trace", "program", f"{options.seed}:{at}", "")
        if dies_there(DRAW.format(*drawn)):
            print(f"\n{options.seed}:{at}: PyTorch itself dies of what is drawn", flush=True)
            first = at + 1
            continue
        died += 1
        name = signal.Signals(-code).name if code < 0 else f"exit {code}"
        print(f"\n=== {options.seed}:{at}: the process died or hung ({name})", flush=True)
        first = at + 1
    if died:
        print(f"{died} processes died or hung", flush=True)


if __name__ == "__main__":
    main()
