"""The one door: every array computation and every output's memory go through here.

- `Kernel`: a hand-written kernel of `autograd_nb.kernels`, compiled per key (its dtypes) on first use;
- `entry`: the compiled entry point for generated source, as the plans of pointwise ops and reductions hold it;
- `empty`: memory for outputs; big blocks that were freed are used again;
- `keep`: what is remembered of calls, so that the next one like it is quick; one bound for all of it;
- `observe`: see every launch (capture, checks, profiles). Fast paths hold raw entry points, so observing swaps them: plans are set
  aside when observation begins, and made anew around `_Observed` calls, which are forgotten when it ends; then they are put back.

An entry point checks nothing: a wrong dtype or layout would be silent garbage. Only code that has keyed its arguments on
dtype may call one.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from .. import config, dtypes, locks
from ..codegen import threads
from ..codegen.build import compilation, notice
from ..overriding import whole
from . import memory as memory
from .memory import BIG as BIG
from .memory import empty as empty
from .memory import promised as promised

Entry = Callable[..., Any]

MOST = 1024  #: arrays of a list: who calls a kernel holds their addresses on its stack

_observing = 0
_epoch = 0  # how often observation has begun
# of each thread: its ``current`` observer, how many have ``begun``, and the epoch in which it was last given an entry point
_observers = threading.local()
_plans = locks.lock()  # held while plans are kept or forgotten (a finalizer may come in between, in the same thread)

KEPT = 20_000  #: what the plans in all tables weigh together at most: a program with ever new shapes must not fill memory
_order: deque[tuple[dict[Any, Any], Any, int]] = deque()  # (table, key, weight) of every plan, the oldest first
_held = 0  # the sum of their weights
_aside: list[tuple[deque[Any], int, list[tuple[dict[Any, Any], dict[Any, Any]]]]] = []  # of before an observation: (_order, _held, (table, plans))


#: classes of what may be part of a key, as it stays what it is: numbers, names, and those that were found to be none of the others
_lasting: set[type] = {int, float, complex, str, bytes, bool, type(None)}


def _may_change(part: Any) -> bool:
    """Return whether part of a key, a tensor for instance, stands for a number that may be another one later."""
    kind = part.__class__
    if kind is slice:
        kind, part = tuple, (part.start, part.stop, part.step)
    if kind is tuple:
        for p in part:  # (a call for each would take longer than all else)
            own = p.__class__
            if own not in _lasting and not (own is tuple and _lasting.issuperset(map(type, p))) and _may_change(p):
                return True
        return False
    if isinstance(part, (int, float, complex, str, bytes, np.generic, type)) or not (hasattr(kind, "__index__") or hasattr(kind, "__float__")):
        _lasting.add(kind)
    return kind not in _lasting


def keep(table: dict[Any, Any], key: Any, plan: Any, weight: int = 1) -> Any:
    """Keep ``plan`` in a table that is filled by this alone, and return it.

    It is forgotten when so many other plans were kept that it is the oldest, or, if it was made while launches were observed, when that
    ends; one made before is set aside meanwhile. A key that cannot be one is passed over, and one that holds what may
    change. ``weight``: for how many ordinary plans it counts, some hundred bytes each.
    """
    global _held
    with _plans:
        if _observing and getattr(_observers, "planned", 0) != _epoch:
            return plan  # this thread began to make it before the observation: its entry points may tell nobody
        kind = key.__class__
        if kind not in _lasting and not (kind is tuple and _lasting.issuperset(map(type, key))) and _may_change(key):
            return plan
        try:
            known = key in table
            table[key] = plan
        except TypeError:
            return plan
        if known:  # it has its place in the order
            return plan
        _order.append((table, key, weight))
        _held += weight
        while _held > KEPT and _drop():
            pass
    return plan


def remember(table: dict[Any, Any], key: Any, plan: Any, weight: int = 1) -> None:
    """Keep, as `keep` does, a plan that passes by what observers are told of: not while there are any, who find such tables empty."""
    if not _observing:
        keep(table, key, plan, weight)


def move(tables: list[tuple[dict[Any, Any], dict[Any, Any]]]) -> None:
    """Put the plans of each first table into the second beside it, without making them younger."""
    global _order
    with _plans:
        to = {id(old): new for old, new in tables if old}
        for old, new in tables:
            new.update(old)
            old.clear()
        if to:
            _order = _renamed(_order, to)
            _aside[:] = [(_renamed(order, to), held, [(to.get(id(table), table), plans) for table, plans in found]) for order, held, found in _aside]


def _renamed(order: deque[tuple[dict[Any, Any], Any, int]], to: dict[int, dict[Any, Any]]) -> deque[tuple[dict[Any, Any], Any, int]]:
    return deque([(to.get(id(table), table), key, weight) for table, key, weight in list(order)])


def _drop() -> bool:
    """Forget the oldest plan; whether there was one."""
    global _held
    try:
        table, key, weight = _order.popleft()
    except IndexError:
        return False
    _held -= weight
    table.pop(key, None)
    return True


class _Observed:
    """An entry point that tells this thread's observer of each call.

    ``recipe``: what a generated kernel was made from (see `ops.core.entries.Recipe`), for the compiler to fuse; None for others.
    ``over``: the argument that is written besides the outputs, or None. ``origin``: ("source", text, argument types) or
    ("kernel", module, name, argument types), from which the entry point can be made again. ``parts``: from the arguments to
    those of independent launches that do the same together (see `threads.Split.parts`), or None.
    """

    __slots__ = ("entry", "name", "origin", "outputs", "over", "parts", "recipe")

    def __init__(
        self, entry: Entry, name: str, outputs: int, recipe: Any = None, over: int | None = None, origin: tuple[Any, ...] = (),
        parts: Callable[[tuple[Any, ...]], list[tuple[Any, ...]]] | None = None,
    ):  # fmt: skip
        self.entry, self.name, self.outputs, self.recipe, self.over, self.origin = entry, name, outputs, recipe, over, origin
        self.parts = parts

    def __call__(self, *args):
        observer = getattr(_observers, "current", None)
        if observer is None:
            self.entry(*args)
        else:
            observer(self, args)


def entry(
    source: str, name: str, argtypes: tuple[str, ...], label: str = "", outputs: int = 1, recipe: Any = None, over: int | None = None,
    split: Callable[[Entry], Entry] | None = None,
) -> Entry:  # fmt: skip
    """Return the compiled entry point of generated ``source``; its last ``outputs`` arguments (and argument ``over``) are written.

    ``split``: makes of it one that runs on several threads, where that pays. An observer is told of the one kernel.
    """
    compiled = compilation.built(source, name, argtypes)
    if compiled is None:
        with notice.of(label or name):
            compiled = compilation.build(source, name, argtypes)
    whole = compiled if split is None else split(compiled)
    _observers.planned = _epoch
    if _observing:
        parts = whole.parts if isinstance(whole, threads.Split) else None
        return _Observed(compiled, label or name, outputs, recipe, over, ("source", source, argtypes), parts)
    return whole


def each(entry: Entry, parts: list[tuple[Any, ...]]) -> None:
    """Call ``entry(*args)`` for all args of ``parts``, which do not depend on one another: on several threads."""
    if isinstance(entry, _Observed):
        for args in parts:
            entry(*args)
    else:
        threads.run(entry, parts)


def described(entry: Entry, name: str, outputs: int) -> _Observed:
    """Return an entry point of generated source as an observer is told of it."""
    if isinstance(entry, _Observed):  # another thread, or a profile around this, is observing
        return entry
    parts = entry.parts if isinstance(entry, threads.Split) else None
    entry = entry.entry if isinstance(entry, threads.Split) else entry
    return _Observed(entry, name, outputs, origin=compilation.source_of(entry), parts=parts)


def observing() -> bool:
    """Return whether any thread's launches are observed: then calls go by the ways that tell of themselves, and leave no quick ones."""
    return _observing > 0


def observer() -> Any:
    """Return this thread's observer, or None."""
    return getattr(_observers, "current", None) if _observing else None


def check(function: Callable[..., None], *arrays: Any, passes: tuple[tuple[int, int, int, int], ...] = ()) -> None:
    """Run ``function(*arrays)``, which reads what kernels wrote and raises where it is wrong; a capture repeats it.

    ``passes``: (array, element, least, most) of int64 or int32 arrays; where all hold, ``function`` would not raise, and a captured
    program need not call it. What a function raises that has an attribute ``fatal`` ends the program, and nothing is undone.
    """
    watching = observer()
    if watching is not None and hasattr(watching, "check"):
        watching.check(function, arrays, passes)
    else:
        function(*arrays)


def holds(array: np.ndarray, element: int, least: int, most: int) -> bool | None:
    """Return whether an element of an int64 array, which a kernel wrote, is within bounds, so that the caller may go a shorter way; None
    where it must not rely on that.

    What repeats the launches asks again each time; a capture does not.
    """
    watching = observer()
    if watching is None:
        return bool(least <= array.item(element) <= most)
    return watching.holds(array, (0, element, least, most)) if hasattr(watching, "holds") else None


def escapes(what: str) -> None:
    """Say that Python is about to use an array's values, so that what it does next may depend on them."""
    if _observing:
        watching = observer()
        if watching is not None and hasattr(watching, "escapes"):
            watching.escapes(what)


def constant(array: np.ndarray) -> np.ndarray:
    """Return the array, whose values Python has just written: a capture keeps them."""
    if _observing:
        watching = observer()
        if watching is not None and hasattr(watching, "constant"):
            watching.constant(array)
    return array


def unrepeatable(what: str) -> None:
    """Say that Python is about to do what no launch tells of: a function that does ``what`` cannot become a program."""
    if _observing:
        watching = observer()
        if watching is not None and hasattr(watching, "problem"):
            watching.problem(what)


def looked() -> None:
    """Say that Python now looks at gradients: what it does may depend on which are None."""
    if _observing:
        watching = observer()
        if watching is not None and hasattr(watching, "looked"):
            watching.looked = True


def derived() -> None:
    """Say that Python now differentiates by some tensors: which are the same one, and have hooks, tells what it does."""
    if _observing:
        watching = observer()
        if watching is not None and hasattr(watching, "derived"):
            watching.hashed = watching.derived = True


def cleared(tensor: Any) -> None:
    """Say that a tensor's gradient is about to be set without being read."""
    if _observing:
        watching = observer()
        if watching is not None and hasattr(watching, "cleared"):
            watching.cleared(tensor)


#: tensors that kernels write so as to stay in order (see `kernels.collectives`): every captured function may use them
orders: list[Any] = []

#: what is called when a captured program ends early, behind a kernel that writes one of them: each ends what such kernels have begun
interrupted: list[Callable[[], None]] = []


class Kernel:
    """A hand-written kernel: ``Kernel("nn.conv", "conv2d")(key, *args)`` runs ``autograd_nb.kernels.nn.conv.conv2d``.

    ``key`` names what decides the types of ``args`` (a dtype, or a tuple of them); arguments are flat C arrays, lists of 1 to `MOST`
    such arrays (all lists of a call of one length), ints, floats, bools and tuples of ints, in the kernel's order, its ``outputs``
    written arrays or lists last. A function marked `compilation.foreign` is called as it is: the work of another library's compiled
    code, which is launched and observed like any kernel. ``recipe``: from the arguments to what a generated kernel could be made
    from that does the same, for the compiler to fuse, or None.
    """

    module: str
    name: str
    outputs: int
    recipe: Callable[[tuple[Any, ...]], Any] | None

    __slots__ = ("_entries", "module", "name", "outputs", "recipe")

    def __init__(self, module: str, name: str, outputs: int = 1, recipe: Callable[[tuple[Any, ...]], Any] | None = None):
        self.module, self.name, self.outputs, self.recipe = module, name, outputs, recipe
        self._entries: dict[Any, Entry] = {}

    def __call__(self, key: Any, *args: Any) -> None:
        compiled = self._entries.get(key)
        if compiled is None:
            compiled = self._compile(key, args)
        if _observing:
            observer = getattr(_observers, "current", None)
            if observer is not None:
                self._tell(observer, compiled, args)
                return
        compiled(*args)

    def _tell(self, observer: Any, compiled: Entry, args: tuple[Any, ...], parts: Any = None) -> None:
        origin = self._origin(tuple([argument_type(a) for a in args]))
        recipe = None if self.recipe is None else self.recipe(args)
        observer(_Observed(compiled, self.name, self.outputs, recipe, origin=origin, parts=parts), args)

    def _origin(self, types: tuple[str, ...]) -> tuple[Any, ...]:
        """Return from what the entry point for arguments of these types can be made again; empty where it cannot."""
        return ("kernel", self.module, self.name, types)

    def entry(self, key: Any, *args: Any) -> Entry | None:
        """Return the entry point for a key, for plans that forget it when observing begins (see `keep`).

        Before its first call it is compiled for ``args``; where these are not given, it is None.
        """
        return self._entries.get(key) or (self._compile(key, args) if args else None)

    def each(self, key: Any, parts: list[tuple[Any, ...]]) -> None:
        """Call ``self(key, *args)`` for all args of ``parts``, which do not depend on one another: on several threads."""
        if _observing:
            for args in parts:
                self(key, *args)
        else:
            threads.run(self._entries.get(key) or self._compile(key, parts[0]), parts)

    def split(self, key: Any, args: tuple[Any, ...], parts: Callable[[tuple[Any, ...]], list[tuple[Any, ...]]], again: bool = True) -> None:
        """Call ``self(key, *args)``, which may as well be done by a launch for each of ``parts(args)``, in any order: on several threads.

        An observer is told of the one launch with ``args``. ``again``: the parts serve another time too.
        """
        compiled = self._entries.get(key) or self._compile(key, args)
        watching = observer()
        if watching is not None:
            self._tell(watching, compiled, args, parts if again else None)
        elif threads.settings.threads == 1:
            compiled(*args)
        else:
            threads.run(compiled, parts(args))

    def rows(self, key: Any, strides: tuple[int, ...], work: int, count: int, *args: Any) -> None:
        """Call ``self(key, count, *args)`` of a kernel that does the same for each of ``count`` rows, see `threads.rows`."""
        if count == 1 or threads.alone(work):
            self(key, count, *args)
        else:
            self.split(key, (count, *args), lambda args: threads.rows(args, strides, work))

    def _compile(self, key: Any, args: tuple[Any, ...]) -> Entry:
        function = compilation.written(self.module, self.name)
        if getattr(function, "foreign", False):
            compiled = function
        else:
            try:
                compiled = compilation.build_function(function, tuple(argument_type(a) for a in args))
            except Exception:
                if any(isinstance(a, np.ndarray) and a.dtype.kind == "c" for a in args):  # it compares or rounds them
                    raise NotImplementedError(f'"{self.name}" not implemented for complex tensors') from None
                raise
        self._entries[key] = compiled
        return compiled

    def __repr__(self) -> str:
        return f"Kernel({self.module}.{self.name})"


def argument_type(value: Any) -> str:
    """Return how `build` spells the type of an argument."""
    if isinstance(value, np.ndarray):
        return f"{'bool' if value.dtype == np.bool_ else value.dtype.name}[:]"
    if isinstance(value, (bool, np.bool_)):
        return "bool"
    if isinstance(value, (int, np.integer)):
        return "int64"
    if isinstance(value, (float, np.floating)):
        return "float64"
    if isinstance(value, complex):
        return "complex128"
    if isinstance(value, tuple):
        return f"({len(value)})"
    if isinstance(value, list):
        return f"[{value[0].dtype.name}]"
    raise TypeError(f"a kernel cannot take an argument of type {type(value).__name__}")


class Alike:
    """An observer that lets launches be: what is observed goes another way in places, with other nodes."""

    draws: tuple[()] = ()

    def __call__(self, call: Any, args: tuple[Any, ...]) -> None:
        call.entry(*args)


@contextmanager
@whole
def observe(observer: Callable[[_Observed, tuple[Any, ...]], None]) -> Iterator[None]:
    """Tell ``observer(call, args)`` of this thread's launches within the context; it must run ``call.entry(*args)``."""
    global _observing, _epoch
    previous, begun = getattr(_observers, "current", None), getattr(_observers, "begun", 0)
    _observing += 1
    try:  # an interrupt may come at any moment
        _observers.begun = begun + 1
        with _plans:
            config.note_unusual("observers", True)
            _epoch += 1
            if _observing == 1:
                _set_aside()
            else:
                _drop_all()
            _observers.planned = _epoch
        _observers.current = observer
        yield
    finally:
        _observers.current, _observers.begun = previous, begun
        with _plans:
            _observing -= 1
            if not _observing:
                config.note_unusual("observers", False)
                _put_back()


@contextmanager
def unobserved() -> Iterator[None]:
    """Tell nobody of this thread's launches within the context: code runs that has interrupted what is watched."""
    previous = getattr(_observers, "current", None)
    _observers.current = None
    try:
        yield
    finally:
        _observers.current = previous


def forget() -> None:
    """Forget all plans."""
    with _plans:
        _aside.clear()
        _drop_all()


def _drop_all() -> None:
    while _drop():
        pass


def _set_aside() -> None:
    """Empty the tables for an observation, which is to see what plans pass by."""
    global _order, _held
    tables = {id(table): table for table, _, _ in list(_order)}  # whole ones are copied: a program of many sizes has ten thousands of plans
    _aside.append((_order, _held, [(table, table.copy()) for table in tables.values()]))
    _order, _held = deque(), 0
    for table in tables.values():
        table.clear()


def _put_back() -> None:
    """Fill the tables, after an observation, with what was in them before, and forget what was made meanwhile, which tells of itself."""
    global _order, _held
    _drop_all()
    while _aside:
        _order, _held, tables = _aside.pop()
        for table, plans in tables:
            table.update(plans)


dtypes.default_changed.append(forget)  # plans for integers and numbers have taken it up
config.threads_changed.append(lambda number: forget())  # plans are for one thread or for several


def _after_fork() -> None:
    global _observing
    _observing = getattr(_observers, "begun", 0)  # (other threads of the parent may have watched)
    config.note_unusual("observers", _observing > 0)
    if not _observing:
        _aside.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


# ------------------------------------------------------------------------------------------------------ memory


def zeros(size: int, d: np.dtype) -> np.ndarray | None:
    """Return a new flat array of zeros; None where a kernel is to write them: big blocks are used again, and a capture must see it."""
    return np.zeros(size, d) if size * d.itemsize < BIG and not _observing else None
