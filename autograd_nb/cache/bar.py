"""A progress bar on the terminal: tqdm's where that is installed."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_WIDE, _LINE = 30, 100


@contextmanager
def progress(total: int, unit: str) -> Iterator[Callable[[str], None]]:
    """Return a function to call with a name for each thing that is done; without a terminal nothing is written."""
    try:
        from tqdm import tqdm
    except ImportError:
        with _plain(total) as done:
            yield done
        return
    with tqdm(total=total, unit=unit, disable=None, leave=False) as bar:

        def done(name: str) -> None:
            bar.set_postfix_str(name, refresh=False)
            bar.update()

        yield done


@contextmanager
def _plain(total: int) -> Iterator[Callable[[str], None]]:
    show, count = sys.stderr.isatty(), 0

    def done(name: str) -> None:
        nonlocal count
        count += 1
        if show:
            full = _WIDE * count // max(total, 1)
            line = f"[{'#' * full}{'.' * (_WIDE - full)}] {count}/{total} {name}"
            print(f"\r{line[:_LINE]:<{_LINE}}", end="", file=sys.stderr, flush=True)

    try:
        yield done
    finally:
        if show:
            print(f"\r{'':<{_LINE}}\r", end="", file=sys.stderr, flush=True)
