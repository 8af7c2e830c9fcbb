"""The test of what a captured program takes for granted about Python.

What words of memory tell is compared natively (see `memory_words`), the rest by a generated function, which says which place has
changed.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from operator import itemgetter
from typing import Any

from .memory_words import marked, records
from .places import BY_DIGITS, BY_IDENTITY, BY_VALUE, EMPTY, Place
from .reach import Reach
from .watch import Record, Watch

Test = Callable[[], int]  #: gives the number of a place that has changed, or −1
OfDict = Callable[[dict[Any, Any]], Test | None]  #: gives the test of one dict's places
TOGETHER = 32  #: empty containers that are tested in one line


class Guard:
    """Whether all places are as they were. ``always`` tests those that no words tell of, ``watched`` the others; −1: unchanged.

    ``same()``: whether the others are surely unchanged, numbers that programs read anew included. It is what a call begins with.
    """

    always: Test | None

    def __init__(self, places: list[Place], always: Test | None, watched: Test | None, words: Watch | None, alone: OfDict):
        self.always, self._places, self._watched, self._words, self._of_dict = always, places, watched, words, alone
        self.same: Callable[[], bool] = bool  # nothing has been looked at yet
        self._alone: dict[int, Test | None] = {}  # tests of single dicts that have changed: a learning rate does so at each step

    def __call__(self) -> int:
        """Return the number of a place that has changed, or −1."""
        changed = -1 if self.always is None else self.always()
        return changed if changed >= 0 or self.same() else self.look()

    def look(self) -> int:
        """Return the number of a place that has changed among those that words tell of, or −1."""
        if self._watched is None or self._words is None:
            return -1
        seen = self._words.seen()
        changed = self._look_into(self._words.changed(seen))
        if changed < 0:
            self._words.renew(seen)
            self.same = self._words.same
        return changed

    def _look_into(self, dicts: list[int]) -> int:
        """Return what has changed in some of the dicts that are watched, or in anything where none are named."""
        if not dicts or self.same is bool:
            return self._watched()  # type: ignore[misc]
        for k in dicts:
            if k not in self._alone:
                self._alone[k] = self._of_dict(self._words.dicts[k])  # type: ignore[union-attr]
            test = self._alone[k]
            changed = -1 if test is None else test()
            if changed >= 0:
                return changed
        return -1

    def sees(self, mapping: dict[Any, Any]) -> bool:
        """Return whether a change of this dict is a change to `same`."""
        return self._words is not None and any(d is mapping for d in self._words.dicts)

    def describe(self, number: int) -> str:
        """Return what has changed, in words."""
        if not 0 <= number < len(self._places):
            return "a container that it reads has changed"
        p = self._places[number]
        return f"{p.path} is no longer {_short(p.value)}" if p.how is BY_DIGITS else f"{p.path} has changed"


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) < 60 else text[:57] + "…"


def build_guard(reach: Reach, skip: Collection[tuple[int, Any]] = ()) -> Guard:
    """Return the test of all places of a walk. ``skip``: (id of the mapping, key) of entries that are live numbers."""
    reach.note_methods()
    parts: dict[tuple[int, str], list[Place]] = {}
    for p in reach.places:
        if p.part is not None:
            parts.setdefault((id(p.part[0]), p.part[1]), []).append(p)
    dicts: list[dict[Any, Any]] = []
    words: list[Record] = []
    told: set[tuple[int, str]] = set()  # the parts of which words tell
    for key, places in parts.items():
        of, part = places[0].part  # type: ignore[misc]
        if part == "entries" and marked(of):
            dicts.append(of)
        else:
            found = records(of, part, [p.value for p in places if p.entry is not None or part != "entries"])
            if found is None:
                continue
            words += found
        told.add(key)
    always: list[int] = []
    watched: list[int] = []
    for i, p in enumerate(reach.places):
        if p.entry is None or (id(p.entry.holder), p.entry.key) not in skip:
            (watched if p.part is not None and (id(p.part[0]), p.part[1]) in told else always).append(i)
    write = _Writer(reach)

    def of_dict(d: dict[Any, Any]) -> Test | None:
        return write.test([i for i in watched if (p := reach.places[i].part) is not None and p[0] is d])

    return Guard(reach.places, write.test(always), write.test(watched), Watch(dicts, words) if told else None, of_dict)


def _unchanged(now: Any, place: Place) -> bool:
    """Return whether a value that is another object than before is as good as the same: 2 is not 2.0, nor 0.0 the same as −0.0."""
    then = place.value
    if now is then or place.how is BY_IDENTITY:
        return now is then
    if place.how is EMPTY:
        return not now
    if place.how is BY_VALUE:
        return bool(now == then)
    return type(now) is type(then) and (now == then if isinstance(now, (str, bytes)) else repr(now) == repr(then))


class _Writer:
    """Writes the text of tests.

    The entries of one mapping or sequence are fetched together and compared by identity, empty containers are tested
    together: a few dozen comparisons cost a microsecond. Only where an object is another is it looked at closer.
    """

    def __init__(self, reach: Reach):
        self._places, self._scope = reach.places, reach.scope

    def test(self, numbers: list[int]) -> Test | None:
        """Return a function that gives the first of some places that has changed, or −1; None where there are none."""
        if not numbers:
            return None
        values: dict[str, Any] = self._scope() | {"find": self._find}
        together: dict[str, list[int]] = {}  # by the holder's name
        empty: list[int] = []
        lines: list[str] = []
        for i in numbers:
            p = self._places[i]
            if p.entry is not None:
                together.setdefault(p.entry.name, []).append(i)
            elif p.how is EMPTY:
                empty.append(i)
            else:
                lines += [f"if {self._single(i, values)}:", f"    return {i}"]
        for name, entries in together.items():
            lines += self._entries(name, entries, values)
        for k in range(0, len(empty), TOGETHER):
            part = empty[k : k + TOGETHER]
            lines += [f"if {' or '.join(self._places[i].code for i in part)}:", f"    return find({self._kept(tuple(part), values)})"]
        body = "".join(f"        {line}\n" for line in lines)
        text = f"def check():\n    try:\n{body}    except Exception:\n        return {len(self._places)}\n    return -1\n"
        exec(compile(text, "<guards of a compiled function>", "exec"), values)
        return values.pop("check")  # type: ignore[no-any-return]  # (it would hold itself)

    def _differs(self, i: int, code: str, values: dict[str, Any]) -> str:
        """Return the expression of whether what some code gives is another object than it was."""
        value = self._places[i].value
        if value is None or isinstance(value, bool):
            return f"{code} is not {value!r}"
        return f"{code} is not {self._kept(value, values)}"

    @staticmethod
    def _kept(value: Any, values: dict[str, Any]) -> str:
        """Return the name of a value in the text."""
        name = f"v{len(values)}"
        values[name] = value
        return name

    def _single(self, i: int, values: dict[str, Any]) -> str:
        """Return the expression of whether a place that is no entry has changed."""
        p = self._places[i]
        if p.how is BY_VALUE:
            return f"{p.code} != {self._kept(p.value, values)}"
        differs = self._differs(i, p.code, values)
        return differs if p.how is BY_IDENTITY else f"{differs} and find(({i},)) >= 0"

    def _entries(self, name: str, numbers: list[int], values: dict[str, Any]) -> list[str]:
        """Return the lines that compare the entries of one holder."""
        get = self._kept(itemgetter(*[self._places[i].entry.key for i in numbers]), values)  # type: ignore[union-attr]
        return [
            f"{', '.join(f'x{i}' for i in numbers)} = {get}({name})",
            f"if {' or '.join(self._differs(i, f'x{i}', values) for i in numbers)}:",
            f"    n = find({self._kept(tuple(numbers), values)})",
            "    if n >= 0:",
            "        return n",
        ]

    def _find(self, numbers: tuple[int, ...]) -> int:
        """Return which of some places has changed, or −1."""
        scope = self._scope()
        return next((i for i in numbers if not _unchanged(eval(self._places[i].code, scope), self._places[i])), -1)
