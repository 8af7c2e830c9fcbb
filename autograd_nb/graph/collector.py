"""Python's cyclic garbage collector, kept from walking over and over what will not go: what the package consists of, and very large graphs."""

from __future__ import annotations

import atexit
import gc
import sys
import weakref
from collections.abc import Iterator
from itertools import chain, compress, repeat, starmap
from types import ModuleType
from typing import Any

#: blocks of memory that a program has at most none of which is worth being looked for; NumPy's import leaves 75,000
FEW = 150_000

#: objects that no program has set aside: Python 3.12 begins with 375 of its own
OWN = 1_000


class _Witness:
    """An object that the collector tells of until something is set aside after it was made."""


_witness = _Witness()  #: made after the package has set aside what it consists of
_marks: set[weakref.ref[Any]] = set()
_frozen = False
_imported = 0  #: what the package's import has set aside are fewer objects


class Pause:
    """Nothing is collected until `end`, or until the module that is being imported has gone, as it does where its import fails.

    (Its names may live on then: from Python 3.14 on a function that makes annotations holds them, which holds itself.)
    """

    def __init__(self, module: ModuleType) -> None:
        self.collecting: bool = gc.isenabled()
        self.before: int = sys.getallocatedblocks()
        self._module: Any = weakref.ref(module, self.end)
        gc.disable()

    def end(self, module: Any = None) -> None:
        """Collect again, if that was done before."""
        self._module = None
        if self.collecting:
            gc.enable()

    def set_aside(self) -> None:
        """Set aside what lives (gc.freeze) where nearly all of it was made since.

        Nothing of the package ever goes, yet the collector would visit all of it in each full pass. A program that had more than a few
        objects keeps them all in sight, as there may be cycles to be found among them.
        """
        global _imported, _witness
        if self.before < FEW and gc.get_freeze_count() < OWN:
            _imported = self.before + gc.get_count()[0]  # counting them would take as long as many a module
            gc.freeze()
            _witness = _Witness()


def spare(node: Any) -> None:
    """Keep the collector from walking a very large graph over and over while it grows.

    Nodes form no cycles, so the collector finds nothing there, yet each of its full passes visits them all: a node of a million
    cost twice what one of ten thousand did. If the node seen at the last call is still alive, what lives now is set aside
    (gc.freeze) until the marked nodes have died. A program that froze objects itself is left alone.
    """
    global _frozen

    def died(reference: weakref.ref[Any]) -> None:
        global _frozen
        _marks.discard(reference)
        if _frozen and not _marks:
            _frozen = False
            gc.unfreeze()

    grown = any(mark() is not None for mark in _marks)
    _marks.add(weakref.ref(node, died))
    if grown and gc.isenabled() and (_frozen or gc.get_freeze_count() <= max(_imported, OWN)):
        _frozen = True
        gc.freeze()


class OwnReference(weakref.ref):  # type: ignore[type-arg]
    """A reference of the library's, which is nobody else's: Python keeps one plain weak reference to an object for all who ask for one."""

    __slots__ = ()


_aside: list[OwnReference] = []  #: what `living` found set aside


def living(kind: type) -> list[Any]:
    """Return all objects of a class and its subclasses, also of those that were set aside, which the collector does not tell of.

    Where the program has set objects aside since the last time, everything is brought back, looked through and set aside again.
    (No object is asked for anything: a dead weak proxy would answer with an error.)
    """
    global _aside, _witness
    kinds = [kind]
    for known in kinds:
        kinds += type.__subclasses__(known)
    wanted = {*map(id, kinds), id(_Witness)}.__contains__

    def among_all() -> Iterator[Any]:
        twice = chain.from_iterable(map(repeat, starmap(gc.get_objects, ((),)), (2,)))  # the list of all objects, as what is chosen from and what by
        return chain.from_iterable(map(compress, twice, map(map, repeat(wanted), map(map, repeat(id), map(map, repeat(type), twice)))))

    def seen() -> list[Any]:
        # In one instruction, by functions of C alone: there may be millions, and no other thread may come in between. Who holds all objects holds
        # the tuples that others are filling, which CPython then cannot resize: their `tuple(…)` would be a SystemError.
        return [*among_all()]

    found = seen()
    if not any(o is _witness for o in found):
        aside: list[OwnReference] = []  # (other threads may be reading what there was)
        if gc.get_freeze_count():
            gc.unfreeze()
            aside = [OwnReference(o) for o in seen() if type(o) is not _Witness]
            gc.freeze()
        _aside = aside
        _witness = _Witness()
    return [o for o in found if type(o) is not _Witness] + [o for o in (known() for known in _aside) if o is not None]


@atexit.register
def bring_back() -> None:
    """Let Python's end see what was set aside here, the variables of the program's own module among it.

    It is the collector that takes them apart: without it an open file would not be written to the end, and finalizers would not run.
    """
    if _frozen or _imported:
        gc.unfreeze()
