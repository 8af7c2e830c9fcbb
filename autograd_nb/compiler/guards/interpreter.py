"""Whether this interpreter's objects look as words of memory are read here: found out by trying, once.

Where they do, on CPython 3.11 to 3.14 and any later one whose objects are the same, guards compare words; elsewhere nothing is watched,
and Python compares everything at each call.
"""

from __future__ import annotations

import gc
import types
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterator
from typing import Any

from ...tensor import Tensor
from ..addresses import arrays_known
from .dict_marks import ways, word
from .holders import counting
from .watch import Watch

CLASS, SIZE, ITEMS, CELL, USED = 8, 16, 24, 16, 24  #: bytes from the beginning of an object
MANAGED, HAS_MANAGED = -24, 1 << 4  #: where its dict is, if the flags of its class say so (else its class knows)
_SLOTS = ("_data", "_layout", "_rg", "_edge", "_leaf_hook_set", "_grad", "_version_")
#: what classes and functions have, beside a Tensor's slots
PARTS = ("__mro__", "__code__", "__defaults__")
_TIMES = 16  #: so often that the interpreter specialises what runs

_offsets: dict[str, int] | None = None


def known() -> dict[str, int]:
    """Return where a Tensor's slots are, and `PARTS`; empty where this interpreter's objects are not known to look as is written here."""
    global _offsets
    if _offsets is None:
        _offsets = _slot_offsets() if _as_described() and any(_dicts_tell() for _ in ways()) else {}
    return _offsets


def _slot_offsets() -> dict[str, int]:
    found: dict[str, int] = {}
    for name in _SLOTS:
        t, mark = object.__new__(Tensor), object()
        setattr(t, name, mark)
        found[name] = _place(t, mark)

    class Some:
        def method(self, number: object = object()) -> None:
            pass

    for of, name in zip((Some, Some.method, Some.method), PARTS, strict=True):
        found[name] = _place(of, getattr(of, name))
    return found if all(found.values()) else {}


def _place(of: Any, value: Any) -> int:
    """Return how many bytes from the beginning of an object a value of it stands; 0 where that is not in one place."""
    places = [k for k in range(16, type(of).__basicsize__, 8) if word(id(of) + k) == id(value)]
    return places[0] if len(places) == 1 else 0


def _as_described() -> bool:
    if not (arrays_known() and counting()):
        return False
    for make in (dict.fromkeys, OrderedDict.fromkeys, list, deque):
        sized: Any = make(range(5))
        if word(id(sized) + SIZE) != 5:
            return False
    entries, cell, numbers = [object()], types.CellType(object()), set(range(5))
    if word(id(entries) + CLASS) != id(list):
        return False
    if word(word(id(entries) + ITEMS)) != id(entries[0]) or word(id(cell) + CELL) != id(cell.cell_contents):
        return False
    return word(id(numbers) + USED) == 5 and _has_counts()


def _has_counts() -> bool:
    """Return whether the first word of an object is how many have it."""
    entries = [object()]
    found = [word(id(entries[0]))]
    entries.append(entries[0])
    found.append(word(id(entries[0])))
    entries.pop()
    return [*found, word(id(entries[0]))] == [1, 2, 1]


# ------------------------------------------------------------------------------------------------ dicts


def _dicts_tell() -> bool:
    """Return whether each change of a dict is seen, however it is made, whatever it belongs to."""
    return all(_all_seen(d, changes) for d, changes in _dicts())


def _all_seen(d: dict[Any, Any], changes: list[Callable[[], Any]]) -> bool:
    watch = Watch([d], [])
    for change in changes:
        watch.renew(watch.seen())
        if not watch.same():
            return False
        change()
        if watch.same():
            return False
    return True


def _dicts() -> Iterator[tuple[dict[Any, Any], list[Callable[[], Any]]]]:
    """Yield dicts of every kind, and ways to change them."""

    class Plain:
        pass

    class Slotted:
        __slots__ = ("__dict__",)

    filled, full, emptied = Plain(), Plain(), Plain()
    filled.x = 1  # type: ignore[attr-defined]  # before its dict is made
    for k in range(50):
        setattr(full, f"x{k}", k)
    vars(emptied).clear()
    for holder in (Plain(), filled, full, emptied, Slotted(), types.ModuleType("holder")):
        yield vars(holder), [*_attribute_changes(holder), *_entry_changes(vars(holder))]
    yield gc.get_referents(vars(Plain))[0], _attribute_changes(Plain)
    for d in ({}, defaultdict(int), {1: 2}):
        yield d, _entry_changes(d)
    scope: dict[str, Any] = {}
    exec("def put():\n    global x\n    x = object()", scope)
    yield scope, [scope["put"]] * _TIMES


def _anew(f: Any) -> Callable[[], Any]:
    """Return a function of its own code, which the interpreter specialises for what it meets there alone."""
    return types.FunctionType(f.__code__.replace(), f.__globals__, closure=f.__closure__)


def _attribute_changes(holder: Any) -> list[Callable[[], Any]]:
    def put() -> None:
        holder.x = object()

    return [
        *[_anew(put)] * _TIMES, lambda: delattr(holder, "x"), lambda: setattr(holder, "x", 1), lambda: setattr(holder, "x", 2),
        lambda: setattr(holder, "y", 1), lambda: delattr(holder, "x"), lambda: delattr(holder, "y"), put,
    ]  # fmt: skip


def _entry_changes(d: dict[Any, Any]) -> list[Callable[[], Any]]:
    def put() -> None:
        d["x"] = object()

    return [
        *[_anew(put)] * _TIMES, lambda: d.update(y=1), lambda: d.update(y=2), lambda: d.pop("y"), lambda: d.setdefault("z", 2),
        lambda: d.__delitem__("z"), lambda: d.popitem(), lambda: d.__ior__({"w": 1}), d.clear, put,
    ]  # fmt: skip
