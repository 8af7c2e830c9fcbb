"""Which packs of kernels this process uses: those that AUTOGRAD_NB_PACK names, those that were added, and what the package brought.

A pack that was made otherwise than this process would compile (other versions, a processor that has more) is passed over with one line.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from ... import locks
from ...errors import warn_user
from .cache import CacheWarning, NotOurs, Store, opened
from .files import replacing
from .pack import Pack, PackError

VARIABLE = "AUTOGRAD_NB_PACK"
OFF = "off"  #: the value of the variable that means: none at all
ADDED = "packs.json"  #: the file in the cache's folder that lists the packs that were added
SUFFIX = ".pack"

PACKAGE = Path(__file__).parents[2]
BROUGHT = PACKAGE / "packs"  #: where a wheel carries its own


class Named(NamedTuple):
    """A pack, who named it, and the file that it came with."""

    path: Path
    origin: str
    beside: str | None = None


class Packs:
    """The packs of this process; they are opened when the first kernel is not found in the cache.

    ``unfit``: a function of a pack's description that says why its kernels are of no use here, or nothing.
    """

    def __init__(self, store: Store, unfit: Callable[[dict[str, Any]], str | None]):
        self._store, self._unfit = store, unfit
        self._open: list[tuple[Named, Pack]] | None = None
        self._lock = locks.lock()
        self._said: set[Path] = set()

    def named(self) -> Iterator[Named]:
        """Yield the packs that there should be, in the order in which they are asked."""
        given = os.environ.get(VARIABLE, "")
        if given.lower() == OFF:
            return
        for path in given.split(os.pathsep):
            if path:
                yield Named(Path(path).expanduser(), VARIABLE)
        for path in self.added():
            yield Named(Path(path), "cache add")
        if BROUGHT.is_dir():
            for found in sorted(BROUGHT.glob("*" + SUFFIX), reverse=True):  # what is for the better processors comes first
                yield Named(found, "the package", str(PACKAGE / "__init__.py"))

    def load(self, content: str) -> bytes | None:
        """Return a kernel's machine code from the first pack that has it. PackError where AUTOGRAD_NB_PACK names a damaged one."""
        for named, pack in self._opened():
            try:
                found = pack.load(content)
            except (OSError, NotOurs, PackError) as error:
                self._forget(pack)
                self._say(named, f"{error}; it is not used any more" if isinstance(error, PackError) else f"{named.path} {error}")
                continue
            if found is not None:
                return found
        return None

    def answer(self, texts: str, words: str) -> Any:
        """Return what a pack made with the same ``texts`` of kernels says of words; None where none does."""
        for _, pack in self._opened():
            said = pack.about.get("requests")
            if isinstance(said, dict) and words in said and pack.about.get("texts") == texts != "":
                return said[words]
        return None

    def holds(self, content: str) -> bool:
        """Return whether a pack has a kernel, whole or not."""
        return any(content in pack for _, pack in self._opened())

    def _opened(self) -> list[tuple[Named, Pack]]:
        if self._open is None:
            with self._lock:
                if self._open is None:
                    self._open = list(self._open_all())
        return self._open

    def _open_all(self) -> Iterator[tuple[Named, Pack]]:
        for named, pack in self.each():
            if isinstance(pack, str):
                self._say(named, f"the pack of kernels {named.path} is passed over: {pack}")
            elif isinstance(pack, PackError):
                if named.origin == VARIABLE:
                    raise pack
                self._say(named, str(pack))
            else:
                yield named, pack

    def each(self) -> Iterator[tuple[Named, Pack | PackError | str]]:
        """Yield the packs that are named, each open, or the error that it is damaged, or why it is passed over."""
        for named in self.named():
            try:
                pack = Pack(named.path, named.beside)
            except PackError as error:
                yield named, error
            except NotOurs as error:
                yield named, f"it {error}, and is unsafe to load"
            except OSError as error:
                yield named, f"it cannot be read ({error.strerror or error})"
            else:
                yield named, self._unfit(pack.about) or pack

    def _forget(self, pack: Pack) -> None:
        self._open = [pair for pair in self._open or () if pair[1] is not pack]

    def _say(self, named: Named, problem: str) -> None:
        """Say once what is wrong with a pack: to the log where nobody asked for it."""
        if named.path in self._said:
            return
        self._said.add(named.path)
        if named.beside is not None:
            import logging  # with it comes a regular expression, 2 % of a second process

            logging.getLogger(__name__.partition(".")[0]).warning("%s", problem)
        else:
            warn_user(f"{problem} (named by {named.origin})", CacheWarning)

    # ------------------------------------------------------------------------------------------------ adding

    def added(self) -> list[str]:
        """Return the paths of the packs that were added to the cache."""
        if self._store.folder is None:
            return []
        with suppress(OSError, NotOurs, ValueError, RecursionError):
            with opened(self._store.folder / ADDED) as file:
                found = json.loads(file.read())
            return [path for path in found if isinstance(path, str)] if isinstance(found, list) else []
        return []

    def add(self, path: Path) -> Pack:
        """Note that processes with this cache use a pack, after all of it was checked; PackError where it is of no use."""
        try:
            pack = Pack(path)
            pack.verify()
        except NotOurs as error:
            raise PackError(f"the pack of kernels {path} {error}: unsafe to load") from None
        problem = self._unfit(pack.about)
        if problem is not None:
            raise PackError(f"the pack of kernels {path} would be passed over: {problem}")
        known = self.added()
        if str(pack.path) not in known:
            self._write([*known, str(pack.path)])
        return pack

    def remove(self, path: Path) -> bool:
        """Take back what `add` noted; whether there was anything to take back."""
        known, real = self.added(), os.path.realpath(path)
        left = [p for p in known if p not in (str(path), real)]
        if left != known:
            self._write(left)
        return left != known

    def _write(self, paths: list[str]) -> None:
        if self._store.folder is None:
            raise PackError("there is no kernel cache that could note it; name the pack by AUTOGRAD_NB_PACK")
        target = self._store.folder / ADDED
        with replacing(target) as file:
            file.write(json.dumps(paths, indent=1).encode() + b"\n")
        target.chmod(0o600)
