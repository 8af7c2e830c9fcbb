"""Python's cyclic garbage collector, kept from walking over and over what will not go: what the package consists of, and very large graphs."""

from __future__ import annotations

import atexit
import gc
import sys
import weakref
from typing import Any

#: blocks of memory that a program has at most none of which is worth being looked for; NumPy's import leaves 75,000
FEW = 150_000

_marks: set[weakref.ref[Any]] = set()
_frozen = False
_imported = 0  #: what the package's import has set aside are fewer objects


class Pause:
    """Nothing is collected from when it is made until it has gone, with the names of the module that holds it if an import fails."""

    def __init__(self) -> None:
        self.collecting: bool = gc.isenabled()
        self.before: int = sys.getallocatedblocks()
        gc.disable()

    def __del__(self) -> None:
        if self.collecting:
            gc.enable()

    def set_aside(self) -> None:
        """Set aside what lives (gc.freeze) where nearly all of it was made since.

        Nothing of the package ever goes, yet the collector would visit all of it in each full pass. A program that had more than a few
        objects keeps them all in sight, as there may be cycles to be found among them.
        """
        global _imported
        if self.before < FEW and gc.get_freeze_count() == 0:
            _imported = self.before + gc.get_count()[0]  # counting them would take as long as many a module
            gc.freeze()


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
    if grown and gc.isenabled() and (_frozen or gc.get_freeze_count() <= _imported):
        _frozen = True
        gc.freeze()


@atexit.register
def bring_back() -> None:
    """Let Python's end see what was set aside here, the variables of the program's own module among it.

    It is the collector that takes them apart: without it an open file would not be written to the end, and finalizers would not run.
    """
    if _frozen or _imported:
        gc.unfreeze()
