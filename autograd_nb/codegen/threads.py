"""Big launches on several threads: how the arguments of a kernel are cut into independent pieces, and the pool that does them.

Pieces are cut where the results cannot tell: between elements (in multiples of ALIGN, so that the
same elements stand in the vectorised part of a loop), between rows, along kept dims. A fold over one long dim is cut in blocks
that depend on the shape only. So results have the same bits for every number of threads.

The pool (`build.pool`) serves one caller at a time; another thread that finds it busy runs its kernel by itself, so nobody ever
waits for a thread that waits. Threads begin with the first big launch, and again after a fork.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from ..config import settings, threads_changed
from ..locks import lock
from ..shapes import overlaps_itself
from .build.pool import Pool

ALIGN = 256  #: elements: a multiple of what a vectorised loop takes at once of any dtype
#: work from which pieces pay for being handed over, which costs some 3 µs; a unit is an element moved in cache, or a few
#: instructions of a vectorised loop: 0.05 ns
WORTH = 1 << 18
COPIED, PICKED = 2, 8  #: what an element costs that is copied, or found by an index, in such units
EVEN = 16  #: steps of a loop that are enough to be shared out evenly
MANY = 1 << 23  #: work from which there are more pieces than threads, so that a thread that was held up is helped

Entry = Callable[..., Any]


# ---------------------------------------------------------------------------------------------------- the pool


_NATIVE = type(len)  # of entry points of machine code
_pool: Any = None
control = np.zeros(2, np.int64)  #: where machine code finds the pool's words, and how many threads it may use


_making = lock()  # held while a pool is made


def _renew() -> None:
    """Let there be a new pool, whose threads are yet to begin."""
    global _pool
    _pool = Pool()
    control[:] = _pool.address, settings.threads


def _made() -> Any:
    """Return the pool of this process."""
    with _making:
        if _pool is None:
            _renew()
    return _pool


def _after_fork() -> None:
    if _pool is not None:
        _renew()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def _changed(number: int) -> None:
    control[1] = number
    if _pool is not None:
        _pool.begin(number)


threads_changed.append(_changed)


def ready() -> None:
    """Let the threads of the pool be there, which machine code may then share work with."""
    (_pool or _made()).begin(settings.threads)


def run(entry: Entry, parts: list[tuple[Any, ...]]) -> None:
    """Call ``entry(*args)`` for all args of ``parts``, in any order, on the threads that there are."""
    if entry.__class__ is _NATIVE and len(parts) > 1 and settings.threads > 1:
        (_pool or _made()).run(entry, parts, settings.threads)
    else:
        for args in parts:
            entry(*args)


# ------------------------------------------------------------------------------------------------------ pieces


def cut(size: int, count: int, step: int = 1) -> Iterator[tuple[int, int]]:
    """Yield (begin, end) of at most ``count`` nearly equal pieces of ``range(size)``, each but the last a multiple of ``step``."""
    units = -(-size // step)
    count = max(1, min(count, units))
    begin = 0
    for i in range(1, count + 1):
        end = min(units * i // count * step, size)
        yield begin, end
        begin = end


def pieces(size: int, work: int, step: int = 1) -> Iterator[tuple[int, int]]:
    """Return pieces of ``range(size)`` for as many threads as are allowed."""
    return cut(size, _count(work), step)


def aligned(arrays: Sequence[Any]) -> int:
    """Return how many elements are a multiple of what a vectorised loop over these arrays (or dtypes) takes at once."""
    return -(-ALIGN // min([a.itemsize for a in arrays] + [4]))


def alone(work: int) -> bool:
    """Return whether one thread does so much work: it is little, or there are no others."""
    return work < WORTH or settings.threads == 1


def _count(work: int) -> int:
    """Return how many pieces are made of so much work."""
    return settings.threads * (4 if work >= MANY else 1)


class Split:
    """An entry point whose launches are cut in pieces when more than one thread is allowed."""

    entry: Entry

    __slots__ = ("entry",)

    def __init__(self, entry: Entry):
        self.entry = entry

    def __call__(self, *args: Any) -> None:
        if settings.threads == 1:
            self.entry(*args)
        elif self.entry.__class__ is _NATIVE:
            self.share(args)
        else:
            run(self.entry, self.parts(args))

    def share(self, args: tuple[Any, ...]) -> None:
        """Let threads do the pieces, of an entry point of machine code."""
        run(self.entry, self.parts(args))

    def parts(self, args: tuple[Any, ...]) -> list[tuple[Any, ...]]:
        """Return the argument lists of the pieces."""
        raise NotImplementedError


class Flat(Split):
    """Flat arrays of one size, elements of which are independent; ``first``: the array whose size is the loop's."""

    first: int
    work: int
    entry: Entry

    __slots__ = ("first", "work")

    def __init__(self, entry: Entry, first: int, work: int):
        self.entry, self.first, self.work = entry, first, work

    def share(self, args: tuple[Any, ...]) -> None:
        (_pool or _made()).cut(self.entry, args, args[self.first].size, ALIGN, _count(self.work), settings.threads, 0, 0)

    def parts(self, args: tuple[Any, ...]) -> list[tuple[Any, ...]]:
        found = []
        for begin, end in pieces(args[self.first].size, self.work, ALIGN):
            found.append(tuple([a[begin:end] if a.__class__ is np.ndarray else a for a in args]))
        return found


class Walk(Split):
    """A walk over loops whose sizes and strides are its first argument, ``dims``, cut along loop ``axis``."""

    axis: int
    loops: int
    step: int
    work: int
    entry: Entry

    __slots__ = ("axis", "loops", "step", "work")

    def __init__(self, entry: Entry, loops: int, axis: int, step: int, work: int):
        self.entry, self.loops, self.axis, self.step, self.work = entry, loops, axis, step, work

    def share(self, args: tuple[Any, ...]) -> None:
        axis = self.axis
        (_pool or _made()).cut(self.entry, args, int(args[0][axis]), self.step, _count(self.work), settings.threads, self.loops, axis)

    def parts(self, args: tuple[Any, ...]) -> list[tuple[Any, ...]]:
        dims, *rest = args
        loops, axis = self.loops, self.axis
        strides = dims[loops + axis :: loops].tolist()
        found = []
        for begin, end in pieces(int(dims[axis]), self.work, self.step):
            own = dims.copy()
            own[axis] = end - begin
            stride = iter(strides)
            found.append((own, *[a[begin * next(stride) :] if a.__class__ is np.ndarray else a for a in rest]))
        return found


def rows(args: tuple[Any, ...], strides: Sequence[int], work: int, step: int = 1) -> list[tuple[Any, ...]]:
    """Return the argument lists of pieces of a kernel that does the same for each of ``args[0]`` rows.

    ``strides``: for each further argument the elements of a row, 0 for what is the same for all. ``step``: rows that stay together.
    """
    count, *rest = args
    return [
        (end - begin, *[a[begin * n : end * n] if n else a for a, n in zip(rest, strides, strict=True)])
        for begin, end in pieces(count, work, step)
    ]


def flat(entry: Entry, first: int, size: int, effort: int) -> Entry:
    """Return the entry point, cut where ``size`` elements of ``effort`` each are enough."""
    return Flat(entry, first, size * effort) if size * effort >= WORTH and size >= 2 * ALIGN else entry


def walk(entry: Entry, sizes: Sequence[int], axes: Sequence[int], effort: int, step: int = ALIGN) -> Entry:
    """Return the entry point, cut along one of the loops ``axes`` (outermost first) of a walk of these sizes where it is long enough.

    ``step``: where the innermost loop may be cut.
    """
    work = effort
    for n in sizes:
        work *= n
    if work < WORTH:
        return entry
    inner = len(sizes) - 1
    rooms = [(-(-sizes[a] // (step if a == inner else 1)), a) for a in axes]
    # the outermost loop with enough steps to share them out evenly, or with as many for each, else the one with most
    even = max(settings.threads, 2)
    most = max(rooms, key=lambda r: r[0], default=(0, -1))[1]
    axis = next((a for room, a in rooms if room >= EVEN or (room > 1 and not room % even)), most)
    if axis < 0 or max(room for room, a in rooms if a == axis) < 2:
        return entry
    return Walk(entry, len(sizes), axis, step if axis == inner else 1, work)


def writes_apart(layouts: Sequence[Any]) -> bool:
    """Return whether no two elements of an output are one place in memory."""
    return not [layout for layout in layouts if not layout.contiguous and overlaps_itself(layout)]
