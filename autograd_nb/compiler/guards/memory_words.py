"""Whether Python's objects have changed, told by a few words of their memory: what a guard of a program costs when all is well.

Most of what guards compare stands at a fixed place in memory: the slots of a tensor, what a cell holds, the size of a
container. And a dict has a version, a number that each change of it makes another one (PEP 509: it is there for guards). So a
`Watch` is a table of addresses and what is there while nothing has changed, and one native function compares it all, a few
hundred words in a tenth of a microsecond. A word that differs proves nothing; Python then looks closer.

CPython's objects look like this in versions 3.11 and 3.12. `known` finds out by trying; elsewhere nothing is watched, and
Python compares everything at each call.
"""

from __future__ import annotations

import ctypes
import sys
import types
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable
from typing import Any

import numpy as np

from ...codegen.build import linking
from ...tensor import Tensor
from ..ir import address
from .holders import KeptGradient, counting

_SIZE, _VERSION, _ITEMS, _CELL, _USED, _DATA = 16, 24, 24, 16, 24, 16  #: bytes from the beginning of an object
_SLOTS = ("_data", "_layout", "_rg", "_leaf_hook_set", "_grad", "_version_")

#: a record: address, whether a pointer to the words stands there instead of the words, how many words, the words
_UNCHANGED = """
declare i64 @PyLong_AsLongLong(ptr)
declare ptr @PyBool_FromLong(i64)
define ptr @unchanged(ptr %self, ptr %none) {
entry:
  %table.word = call i64 @PyLong_AsLongLong(ptr %self)
  %table = inttoptr i64 %table.word to ptr
  %end = load i64, ptr %table
  br label %test
test:
  %at = phi i64 [ 1, %entry ], [ %next, %equal ]
  %more = icmp slt i64 %at, %end
  br i1 %more, label %record, label %same
record:
  %address.at = getelementptr i64, ptr %table, i64 %at
  %address = load i64, ptr %address.at
  %indirect.at = getelementptr i64, ptr %address.at, i64 1
  %indirect = load i64, ptr %indirect.at
  %count.at = getelementptr i64, ptr %address.at, i64 2
  %count = load i64, ptr %count.at
  %expected = getelementptr i64, ptr %address.at, i64 3
  %place = inttoptr i64 %address to ptr
  %there = load i64, ptr %place
  %through = icmp ne i64 %indirect, 0
  %words.at = select i1 %through, i64 %there, i64 %address
  %words = inttoptr i64 %words.at to ptr
  %behind = add i64 %at, 3
  %next = add i64 %behind, %count
  br label %compare
compare:
  %i = phi i64 [ 0, %record ], [ %i.next, %going ]
  %word.at = getelementptr i64, ptr %words, i64 %i
  %word = load i64, ptr %word.at
  %wanted.at = getelementptr i64, ptr %expected, i64 %i
  %wanted = load i64, ptr %wanted.at
  %fine = icmp eq i64 %word, %wanted
  br i1 %fine, label %going, label %changed
going:
  %i.next = add i64 %i, 1
  %last = icmp eq i64 %i.next, %count
  br i1 %last, label %equal, label %compare
equal:
  br label %test
same:
  %true = call ptr @PyBool_FromLong(i64 1)
  ret ptr %true
changed:
  %false = call ptr @PyBool_FromLong(i64 0)
  ret ptr %false
}
"""

Record = tuple[int, ...]  #: the words of one
_offsets: dict[str, int] | None = None


def word(address: int) -> int:
    """Return what stands at an address."""
    return ctypes.c_int64.from_address(address).value


def known() -> dict[str, int]:
    """Return where a Tensor's slots are; empty where this interpreter's objects are not known to look as described above."""
    global _offsets
    if _offsets is None:
        _offsets = _slot_offsets() if _as_described() else {}
    return _offsets


def _slot_offsets() -> dict[str, int]:
    found: dict[str, int] = {}
    for name in _SLOTS:
        t, mark = object.__new__(Tensor), object()
        setattr(t, name, mark)
        places = [k for k in range(16, Tensor.__basicsize__, 8) if word(id(t) + k) == id(mark)]
        if len(places) != 1:
            return {}
        found[name] = places[0]
    return found


def _as_described() -> bool:
    if sys.implementation.name != "cpython" or sys.version_info >= (3, 13) or ctypes.sizeof(ctypes.c_void_p) != 8:
        return False
    for make in (dict.fromkeys, OrderedDict.fromkeys, list, deque):
        sized: Any = make(range(5))
        if word(id(sized) + _SIZE) != 5:
            return False
    for array in (np.empty(0), np.empty(3, np.int8)[1:], np.ones(1000, np.float32)):
        if word(id(array) + _DATA) != address(array):
            return False
    entries, cell, numbers = [object()], types.CellType(object()), set(range(5))
    if word(word(id(entries) + _ITEMS)) != id(entries[0]) or word(id(cell) + _CELL) != id(cell.cell_contents):
        return False
    return word(id(numbers) + _USED) == 5 and _has_versions() and counting() and _has_counts()


def _has_counts() -> bool:
    """Return whether the first word of an object is how many have it."""
    entries = [object()]
    found = [word(id(entries[0]))]
    entries.append(entries[0])
    found.append(word(id(entries[0])))
    entries.pop()
    return [*found, word(id(entries[0]))] == [1, 2, 1]


def _has_versions() -> bool:
    """Return whether each change of a dict makes its version another, however it is made."""

    class Holder:
        pass

    holder = Holder()
    d: Any = holder.__dict__
    seen = {word(id(d) + _VERSION), word(id({}) + _VERSION)}

    def fresh() -> bool:
        now = word(id(d) + _VERSION)
        new = now not in seen and now == word(id(d) + _VERSION)
        seen.add(now)
        return new

    for k in range(200):  # the interpreter comes to specialise these
        holder.x = k  # type: ignore[attr-defined]
        if not fresh():
            return False
        d["x"] = -1 - k
        if not fresh():
            return False
    changes: tuple[Callable[[], Any], ...] = (
        lambda: d.update(y=1), lambda: d.setdefault("z", 2), lambda: d.pop("y"), lambda: d.__delitem__("z"), lambda: d.popitem(),
        lambda: d.__ior__({"w": 1}), lambda: d.clear(), lambda: setattr(holder, "x", 1), lambda: delattr(holder, "x"),
    )  # fmt: skip
    for change in changes:
        change()
        if not fresh():
            return False
    return True


def records(of: Any, part: str, values: list[Any]) -> list[Record] | None:
    """Return what to compare to see whether a part of an object is what it was; None where no words tell.

    ``part``: "entries" of a container, "cell" (what it holds), or the name of a tensor's slot. ``values``: what is there, kept
    alive by the caller, as an address tells an object only while it lives. Dicts have versions, see `versioned`.
    """
    offsets = known()
    kind = type(of)
    if not offsets:
        return None
    if part == "cell":
        return [(id(of) + _CELL, 0, 1, id(values[0]))]
    if part != "entries":
        return [(id(of) + offsets[part], 0, 1, id(values[0]))] if getattr(kind, part) is getattr(Tensor, part) else None
    if kind is tuple or kind is frozenset:
        return []
    if kind is list and values:
        return [(id(of) + _SIZE, 0, 1, len(values)), (id(of) + _ITEMS, 1, len(values), *map(id, values))]
    if kind in (OrderedDict, list, deque) and not values:
        return [(id(of) + _SIZE, 0, 1, 0)]
    return [(id(of) + _USED, 0, 1, 0)] if kind is set and not of else None


def data_record(array: np.ndarray) -> list[Record] | None:
    """Return what to compare to see whether an array begins at the same place of memory."""
    return [(id(array) + _DATA, 0, 1, address(array))] if known() and type(array) is np.ndarray else None


def versioned(of: Any) -> bool:
    """Return whether it is a dict whose version tells of each change."""
    return type(of) in (dict, defaultdict) and bool(known())


class Watch:
    """Words to compare. Whoever makes one keeps the objects alive whose memory it reads.

    ``same()``: whether all is as it was. ``dicts``: those that are watched by their versions, which `renew` takes over once
    somebody has looked into them; until then all has changed.
    """

    def __init__(self, dicts: list[dict[Any, Any]], others: list[Record]):
        self.dicts = dicts
        self._versions = [ctypes.c_int64.from_address(id(d) + _VERSION) for d in dicts]
        words = [w for d in dicts for w in (id(d) + _VERSION, 0, 1, -1)] + [w for r in others for w in r]
        self.table = np.array([len(words) + 1, *words], dtype=np.int64)
        self.same: Callable[[], bool] = linking.bound_to(address(self.table), "unchanged", _UNCHANGED)

    def versions(self) -> list[int]:
        """Return the versions of the dicts as they are now."""
        return [v.value for v in self._versions]

    def renew(self, versions: list[int]) -> None:
        """Take these versions as fine from now on."""
        self.table[4 : 4 * len(versions) + 1 : 4] = versions


def held_alone(kept: KeptGradient) -> list[Record] | None:
    """Return what to compare to see whether a gradient is its leaf's and unchanged, nobody has it but these two, and nobody
    else its memory; None where no words tell.
    """
    offsets, leaf, gradient, data = known(), kept.leaf, kept.tensor, kept.memory
    if not offsets or gradient is None:
        return None
    return [
        (id(leaf) + offsets["_grad"], 0, 1, id(gradient)),
        (id(gradient), 0, 1, 2),
        (id(gradient) + offsets["_rg"], 0, 1, id(False)),
        (id(gradient) + offsets["_layout"], 0, 1, id(gradient._layout)),
        (id(gradient) + offsets["_data"], 0, 1, id(data)),
        (id(data), 0, 1, 2),
        (id(gradient) + offsets["_version_"], 0, 1, id(gradient._version_)),
        (id(gradient._version_) + _ITEMS, 1, 1, id(gradient._version_[0])),
    ]
