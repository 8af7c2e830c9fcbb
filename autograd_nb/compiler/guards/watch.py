"""The comparison of words of memory with what they were, by one native function."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from itertools import compress
from operator import attrgetter, ne
from typing import Any, NamedTuple

import numpy as np

from ... import locks
from ...codegen.build import llvm_text
from ..ir import address
from .dict_marks import mark, object_values

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
FEW = 2  #: dicts that are looked into alone
_value = attrgetter("value")


class Seen(NamedTuple):
    """The words of dicts when somebody looked into them: their marks, the values in objects, where they have changed, with what of them
    is to be held.
    """

    marks: list[int]
    values: list[tuple[list[int], list[Any]]]


class Watch:
    """Words to compare. Whoever makes one keeps the objects alive whose memory it reads.

    ``same()``: whether all is as it was. ``dicts``: those that are watched by their marks, which `renew` takes over once somebody has
    looked into them; until then all has changed.
    """

    def __init__(self, dicts: list[dict[Any, Any]], others: list[Record]):
        self.dicts = dicts
        marks = [mark(d) for d in dicts]
        self._marks = [ctypes.c_int64.from_address(m) for m in marks]
        self._known = [-1] * len(marks)  # those in the table
        self._lock = locks.lock()
        self._trial: np.ndarray | None = None
        self._trial_same: Callable[[], bool] = bool
        words = [w for m in marks for w in (m, 0, 1, -1)] + [w for r in others for w in r]
        self._values = [*filter(None, map(object_values, dicts))]
        inner: list[int] = []
        for values in self._values:
            own, values.held = values.now()
            inner += own
        # the last record before theirs is where a table of them alone begins: it compares its own word
        begin = len(words) + 4
        self.table: np.ndarray = np.array([begin + 1 + len(inner), *words, 0, 0, 1, 1 + len(inner), *inner], dtype=np.int64)
        self.table[begin - 3] = address(self.table) + 8 * begin
        self._begin = begin + 1
        self.same: Callable[[], bool] = llvm_text.bound_to(address(self.table), "unchanged", _UNCHANGED)
        self._same_values: Callable[[], bool] = llvm_text.bound_to(address(self.table) + 8 * begin, "unchanged", _UNCHANGED)

    def seen(self) -> Seen:
        """Return the words of the dicts as they are now."""
        return Seen([*map(_value, self._marks)], [] if self._same_values() else [v.now() for v in self._values])

    def changed(self, seen: Seen) -> list[int]:
        """Return which dicts were seen with another mark than they had, where at most `FEW` were and nothing else; else nothing."""
        if seen.values:
            return []
        with self._lock:
            found = self._news(seen)
            if not 0 < len(found) <= FEW:
                return []
            if self._trial is None:  # (not in the table itself: another thread may be reading that)
                self._trial = self.table.copy()
                self._trial_same = llvm_text.bound_to(address(self._trial), "unchanged", _UNCHANGED)
            self._trial[:] = self.table
            for k in found:
                self._trial[4 + 4 * k] = seen.marks[k]
            return found if self._trial_same() else []

    def _news(self, seen: Seen) -> list[int]:
        return [*compress(range(len(seen.marks)), map(ne, seen.marks, self._known))]

    def renew(self, seen: Seen) -> None:
        """Take these words as fine from now on."""
        at = self._begin
        for values, (words, held) in zip(self._values, seen.values, strict=False):
            self.table[at : at + len(words)] = words
            values.held = held
            at += len(words)
        with self._lock:
            for k in self._news(seen):
                self.table[4 + 4 * k] = seen.marks[k]
            self._known = seen.marks
