"""The words behind ``python -m autograd_nb cache``."""

from __future__ import annotations

import argparse
import platform
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

from ..codegen.build import compilation, machine_code
from ..codegen.build.cache import NotOurs, Store, describe
from ..codegen.build.pack import Pack, PackError
from ..codegen.build.packs import Packs
from ..codegen.build.requests import Requests
from ..config import get_num_threads
from . import packing, warm

_MOST = 10  #: ops whose time is shown


def add_to(commands: Any) -> None:
    """Add the words to a parser."""
    cache = commands.add_parser(
        "cache",
        help="the kernels that are kept on disk",
        description="Look at, empty, fill or share the folder of compiled kernels (AUTOGRAD_NB_CACHE_DIR says where it is).",
    )
    actions = cache.add_subparsers(title="actions", required=True, metavar="action")
    actions.add_parser("info", help="where they are, how many, how big, what compiling them took").set_defaults(run=_info)
    actions.add_parser("clear", help="remove them, and no other file").set_defaults(run=_clear)
    heat = actions.add_parser("warm", help="compile the usual kernels before they are needed")
    heat.set_defaults(run=_warm)
    pack = actions.add_parser("pack", help="write kernels into one file, for other machines and users")
    pack.add_argument("file", type=Path, help="the pack that is written")
    pack.add_argument("--run", action="append", default=[], dest="programs", metavar="PROGRAM",
                      help="run a program for its kernels: 'train.py --epochs 1' or '-m package.train'; without any, all of the cache is packed")
    pack.add_argument("--level", choices=(packing.HOST, *packing.LEVELS), default=packing.HOST, help="the processors it is for (default: this one)")
    pack.add_argument("--usual", action="store_true", help="the usual kernels too (those of `cache warm`)")
    pack.set_defaults(run=_pack)
    for p in (heat, pack):
        p.add_argument("--jobs", type=int, default=get_num_threads(), metavar="N", help="processes that compile (default: one a core)")
    for word, run, text in (("add", _add, "use a pack from now on"), ("remove", _remove, "use a pack no more that was added")):
        p = actions.add_parser(word, help=text)
        p.add_argument("file", type=Path, help="the pack")
        p.set_defaults(run=run)


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
    times: Counter[str] = Counter()
    counts: Counter[str] = Counter()
    for path, _ in files:
        about = describe(path)
        makers[f"Numba {about.get('numba', '?')}" if about else "damaged"] += 1
        if about and isinstance(about.get("seconds"), float):
            times[str(about.get("op"))] += about["seconds"]
            counts[str(about.get("op"))] += 1
    print(f"folder    {store.folder}")
    print(f"kernels   {len(files)}")
    print(f"size      {_bytes(sum(size for _, size in files))}")
    for maker, count in sorted(makers.items()):
        print(f"          {count} by {maker}" if maker != "damaged" else f"          {count} damaged (compiled again when needed)")
    _info_packs(store)
    print(
        f"versions  Python {platform.python_version()}, NumPy {numpy.__version__}, "
        f"Numba {numba.__version__}, llvmlite {llvmlite.__version__}"
    )
    if times:
        print(f"compiling {sum(times.values()):.1f} s for {counts.total()} kernels; most by")
        for name, seconds in times.most_common(_MOST):
            print(f"          {seconds:7.2f} s  {name}, {counts[name]} kernel{'s' * (counts[name] > 1)}")
    return 0


def _info_packs(store: Store) -> None:
    """Print a line for each pack, and why it is not used."""
    compilation.apart(machine_code.machine)
    for named, pack in Packs(store, machine_code.unfit).each():
        if isinstance(pack, (str, PackError)):
            print(f"pack      {named.path}: not used ({pack})")
        else:
            print(f"pack      {named.path}: {len(pack)} kernels for {pack.about.get('level')} ({named.origin})")


def _clear(options: argparse.Namespace) -> int:
    store = Store()
    if store.folder is None:
        return 1
    count, size = store.clear()
    Requests(store).clear()
    print(f"removed {count} kernels, {_bytes(size)}, from {store.folder}")
    return 0


def _warm(options: argparse.Namespace) -> int:
    store = Store()
    if store.folder is None:
        return 1
    before, begin = len(list(store.files())), time.perf_counter()
    failed = warm.compile_all(options.jobs)
    added = len(list(store.files())) - before
    print(f"compiled {added} kernels in {time.perf_counter() - begin:.1f} s into {store.folder}")
    return 1 if failed else 0


def _pack(options: argparse.Namespace) -> int:
    compilation.apart(machine_code.machine)
    try:
        done = packing.write(options.file, options.level, options.programs, options.usual, options.jobs)
    except (OSError, RuntimeError) as error:
        print(error, file=sys.stderr)
        return 1
    for problem in done.failed:
        print(problem, file=sys.stderr)
    print(f"packed {done.kernels} kernels for {options.level}, {_bytes(done.size)}, into {options.file}")
    try:
        Pack(options.file)
    except NotOurs as error:
        print(f"where it lies now it would not be used: it {error}", file=sys.stderr)
    return 1 if done.failed else 0


def _add(options: argparse.Namespace) -> int:
    compilation.apart(machine_code.machine)
    try:
        pack = Packs(Store(), machine_code.unfit).add(options.file)
    except (OSError, PackError) as error:
        print(error, file=sys.stderr)
        return 1
    print(f"added {pack.path}: {len(pack)} kernels for {pack.about.get('level')}")
    return 0


def _remove(options: argparse.Namespace) -> int:
    if not Packs(Store(), machine_code.unfit).remove(options.file):
        print(f"{options.file} was not added", file=sys.stderr)
        return 1
    print(f"removed {options.file} from the list; the file is still there")
    return 0
