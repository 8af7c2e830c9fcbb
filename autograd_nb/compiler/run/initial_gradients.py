"""The gradients that a captured call finds: whether they are as when it was captured, and where they lie now."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from ...tensor import Tensor
from ..addresses import writer
from ..guards.memory_words import data_record, records
from ..guards.watch import Record, Watch
from ..ir import root
from .records import InitialGradient

TRIES = 4  #: watches made for gradients that were others at the next call


class InitialGradients:
    """The gradients that a program starts from (``held``), and leaves that have none, or some, which it does not read.

    ``same()``: whether all surely are the tensors that they were when somebody last looked, in the memory where they were.
    """

    held: Sequence[InitialGradient]

    def __init__(self, held: Sequence[InitialGradient], none: Sequence[Tensor], some: Sequence[Tensor], state_roots: set[int]):
        self.held, self._none, self._some, self._state_roots = held, none, some, state_roots
        self._leaves = [h.leaf for h in held]
        self._layouts = [h.layout for h in held]
        self._last: list[int] = []
        self._tries = TRIES
        self._watch: Watch | None = None
        self.same: Callable[[], bool] = bool  # nobody has looked yet

    def __bool__(self) -> bool:
        return bool(self.held or self._none or self._some)

    def differ(self) -> str:
        """Return how they are other than when the call was captured; empty where they are not."""
        if self.same():
            return ""
        self.same = bool
        if [t for t in self._none if t._grad is not None]:
            return "a gradient has been left that was None"
        if [t for t in self._some if t._grad is None]:
            return "a gradient is None that was not"
        found = [t._grad for t in self._leaves]
        try:
            fit = True not in [g._rg for g in found] and all(map(operator.is_, [g._layout for g in found], self._layouts))
        except AttributeError:  # None
            fit = False
        if not fit:
            return "a gradient that it adds to is another"
        data = [g._data for g in found]
        shared = [d for d in data if d.base is not None]
        owners = set(map(id, map(root, data) if shared else data))
        if len(owners) < len(data) or not owners.isdisjoint(self._state_roots):
            return "gradients share memory"
        self._settle(found)
        return ""

    def _settle(self, found: list[Tensor]) -> None:
        """Watch the gradients where they seem to stay: those of the last time are there again."""
        now = [*map(id, found), *[id(t._grad) for t in self._some]]
        again, self._last = now == self._last, now
        if again and self._tries:
            self._tries -= 1
            words = list(self._records(found))
            if None not in words:
                self._watch = Watch([], [r for part in words if part is not None for r in part])
                self.same = self._watch.same

    def _records(self, found: list[Tensor]) -> Iterator[list[Record] | None]:
        for t in (*self._none, *self._some):
            yield records(t, "_grad", [t._grad])
        for t, g in zip(self._leaves, found, strict=True):
            yield records(t, "_grad", [g])
            for slot in ("_rg", "_layout", "_data"):
                yield records(g, slot, [getattr(g, slot)])
            yield data_record(g._data)

    def binder(self, cells: dict[int, int], values: np.ndarray) -> Callable[[], None]:
        """Return a function that writes where they lie into a program's table ``values``, if need be; ``cells``: of buffers."""
        held = [h for h in self.held if h.buffer in cells]
        leaves = [h.leaf for h in held]
        write = writer(values, [cells[h.buffer] for h in held], [h.shift for h in held])
        bound: Callable[[], bool] = bool  # by what to see whether the table still says so

        def bind() -> None:
            nonlocal bound
            if bound is self.same and bound():
                return
            write(*[t._grad._data for t in leaves])  # type: ignore[union-attr]
            bound = self.same

        return bind
