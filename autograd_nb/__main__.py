"""``python -m autograd_nb``: run a PyTorch program with this library; look after the kernels that are kept on disk."""

from __future__ import annotations

import argparse
import platform
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from .codegen.build.cache import Store, describe


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; the exit code."""
    parser = argparse.ArgumentParser(prog="python -m autograd_nb", description="Tools of autograd_nb.")
    commands = parser.add_subparsers(title="commands", required=True, metavar="command")
    _add_run(commands)
    _add_cache(commands)
    options = parser.parse_args(arguments)
    run: Callable[[argparse.Namespace], int] = options.run
    return run(options)


def _add_run(commands: Any) -> None:
    run = commands.add_parser(
        "run",
        help="run a program with `import torch` giving this library",
        description="Run a PyTorch program unchanged: `import torch` gives this library, whether PyTorch is installed or not.",
    )
    run.add_argument("-m", dest="module", action="store_true", help="the target is a module's name")
    run.add_argument("target", help="the script")
    run.add_argument("arguments", nargs=argparse.REMAINDER, help="its arguments")
    run.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
    from .compat.as_torch import run

    try:
        run(options.target, options.arguments, options.module)
    except FileNotFoundError as error:
        if error.filename is not None:  # the program's own
            raise
        print(error, file=sys.stderr)
        return 2
    return 0


def _add_cache(commands: Any) -> None:
    cache = commands.add_parser(
        "cache",
        help="the kernels that are kept on disk",
        description="Look at, empty or fill the folder of compiled kernels (AUTOGRAD_NB_CACHE_DIR says where it is).",
    )
    actions = cache.add_subparsers(title="actions", required=True, metavar="action")
    actions.add_parser("info", help="where they are, how many, how big").set_defaults(run=_info)
    actions.add_parser("clear", help="remove them, and no other file").set_defaults(run=_clear)
    actions.add_parser("warm", help="compile the usual kernels before they are needed").set_defaults(run=_warm)


def _bytes(n: float) -> str:
    for unit in ("bytes", "kB", "MB"):
        if n < 1000:
            return f"{n:.0f} {unit}" if unit == "bytes" else f"{n:.1f} {unit}"
        n /= 1000
    return f"{n:.1f} GB"


def _info(options: argparse.Namespace) -> int:
    import llvmlite
    import numba
    import numpy

    store = Store()
    if store.folder is None:
        return 1  # a warning has said why
    files = list(store.files())
    makers: Counter[str] = Counter()
    for path, _ in files:
        about = describe(path)
        makers[f"Numba {about.get('numba', '?')}" if about else "damaged"] += 1
    print(f"folder    {store.folder}")
    print(f"kernels   {len(files)}")
    print(f"size      {_bytes(sum(size for _, size in files))}")
    for maker, count in sorted(makers.items()):
        print(f"          {count} by {maker}" if maker != "damaged" else f"          {count} damaged (compiled again when needed)")
    print(
        f"versions  Python {platform.python_version()}, NumPy {numpy.__version__}, "
        f"Numba {numba.__version__}, llvmlite {llvmlite.__version__}"
    )
    return 0


def _clear(options: argparse.Namespace) -> int:
    store = Store()
    if store.folder is None:
        return 1
    count, size = store.clear()
    print(f"removed {count} kernels, {_bytes(size)}, from {store.folder}")
    return 0


def _warm(options: argparse.Namespace) -> int:
    try:
        from .warm import usual_kernels
    except ImportError as error:
        print(f"no list of usual kernels in this installation ({error})", file=sys.stderr)
        return 1
    store = Store()
    if store.folder is None:
        return 1
    before, begin, failed = len(list(store.files())), time.perf_counter(), 0
    for description, thunk in _progress(list(usual_kernels())):
        try:
            thunk()
        except Exception as error:  # one that fails must not keep the others from being compiled
            failed += 1
            print(f"\n{description}: {type(error).__name__}: {error}", file=sys.stderr)
    added = len(list(store.files())) - before
    print(f"compiled {added} kernels in {time.perf_counter() - begin:.1f} s into {store.folder}")
    return 1 if failed else 0


def _progress(items: Sequence[tuple[str, Any]]) -> Iterable[tuple[str, Any]]:
    """``items`` with a progress bar on the terminal."""
    try:
        from tqdm import tqdm
    except ImportError:
        return _plain_progress(items)

    def with_names() -> Iterator[tuple[str, Any]]:
        with tqdm(items, unit="op", disable=None, leave=False) as bar:
            for item in bar:
                bar.set_postfix_str(item[0])
                yield item

    return with_names()


def _plain_progress(items: Sequence[tuple[str, Any]]) -> Iterator[tuple[str, Any]]:
    show = sys.stderr.isatty()
    for k, item in enumerate(items):
        if show:
            done = 30 * k // len(items)
            line = f"[{'#' * done}{'.' * (30 - done)}] {k}/{len(items)} {item[0]}"
            print(f"\r{line[:100]:<100}", end="", file=sys.stderr, flush=True)
        yield item
    if show:
        print(f"\r{'':<100}\r", end="", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
