"""``python -m autograd_nb``: run a PyTorch program with this library; let a whole environment do so; look after the kernels that are kept on disk."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from typing import Any

from .cache import commands as cache
from .compat import shimming
from .distributed import launcher
from .distributed.mpi import launched, name_ranks


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; the exit code."""
    parser = argparse.ArgumentParser(prog="python -m autograd_nb", description="Tools of autograd_nb.")
    commands = parser.add_subparsers(title="commands", required=True, metavar="command")
    _add_run(commands)
    cache.add_to(commands)
    shimming.add_to(commands)
    options = parser.parse_args(arguments)
    run: Callable[[argparse.Namespace], int] = options.run
    return run(options)


def _add_run(commands: Any) -> None:
    run = commands.add_parser(
        "run",
        help="run a program with `import torch` giving this library",
        description="Run a PyTorch program unchanged: `import torch` gives this library, whether PyTorch is installed or not; with -n on several "
        "ranks, by MPI.",
    )
    launcher.add_to(run)
    run.add_argument("-m", "--module", dest="module", action="store_true", help="the target is a module's name")
    run.add_argument("--as-gpus", type=_some, metavar="N", help="a program that insists on GPUs finds N of them: the CPU in their place")
    run.add_argument("target", help="the script")
    run.add_argument("arguments", nargs=argparse.REMAINDER, help="its arguments")
    run.set_defaults(run=_run)


def _some(word: str) -> int:
    if not word.isdigit() or int(word) < 1:
        raise argparse.ArgumentTypeError(f"{word!r} is no number of GPUs: at least 1")
    return int(word)


def _run(options: argparse.Namespace) -> int:
    if options.as_gpus:
        os.environ[launcher.AS_GPUS] = str(options.as_gpus)
    if launcher.wants_ranks(options):
        return launcher.launch(options)
    from .compat.as_torch import run

    place = launched()
    if place is not None:  # programs read RANK and LOCAL_RANK before they make a group
        name_ranks(*place)
        if hasattr(sys.stdout, "reconfigure"):
            sys.stdout.reconfigure(line_buffering=True, write_through=False)  # whole lines behind their ranks
    try:
        run(options.target, options.arguments, options.module)
    except FileNotFoundError as error:
        if error.filename is not None:  # the program's own
            raise
        print(error, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
