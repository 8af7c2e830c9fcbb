"""The places that a walk finds: values, and the code that gets at each of them again.

A guard looks at all of them before a captured program runs: `guard.build_guard` writes it from this list, whose texts name objects
``o0``, ``o1``, … (`Places.scope`).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Any, NamedTuple

from .carried_state import form

MOST = 50_000  #: places; a function that reaches more is not captured


class Compared(Enum):
    """The way in which a value is compared with what it was: by identity, by type and digits (numbers and text), with ``==``,
    or not at all.

    `EMPTY` is for a container in which nothing may be.
    """

    BY_IDENTITY = 0
    BY_DIGITS = 1
    BY_VALUE = 2
    EMPTY = 3


#: what stands for a value that is not there
MISSING = object()
BY_IDENTITY, BY_DIGITS, BY_VALUE, EMPTY = Compared
_LIBRARIES = {
    __name__.partition(".")[0], "numba", "numpy", "scipy", "builtins", "typing", "collections", "functools", "itertools", "math", "torch", "os",
    "abc", "enum",
}  # fmt: skip


class TooMuch(Exception):
    """The function reaches something that cannot be watched."""


class NotYet(Exception):
    """The function reaches a parameter that gets its shape by the first call: the next one can be captured."""


def in_library(module: str | None) -> bool:
    """Return whether a module is taken to be always the same."""
    return (module or "").partition(".")[0] in _LIBRARIES


class Entry(NamedTuple):
    """An entry of a mapping or a sequence; ``name`` and ``text``: the holder and the key in generated code."""

    name: str
    text: str
    holder: Any
    key: Any

    @property
    def code(self) -> str:
        """Return the expression that fetches it."""
        return f"{self.name}[{self.text}]"


@dataclass(frozen=True, slots=True)
class Place:
    """One value: its ``path`` as a user would write it, the ``code`` that fetches it, and how it is compared.

    ``entry``: where it is one. ``part``: (object, which part of it) where words of memory may tell of a change (see
    `memory_words.records`).
    """

    path: str
    code: str
    value: Any
    how: Compared
    entry: Entry | None = None
    part: tuple[Any, str] | None = None


class Places:
    """The list of places, and the names that objects have in their code."""

    def __init__(self) -> None:
        self.found: list[Place] = []
        self._objects: list[Any] = []  # what the code names o0, o1, …
        self._numbers: dict[int, int] = {}

    def name(self, value: Any) -> str:
        """Return the name of an object in the code of places."""
        number = self._numbers.get(id(value))
        if number is None:
            number = self._numbers[id(value)] = len(self._objects)
            self._objects.append(value)
        return f"o{number}"

    def named(self, value: Any) -> bool:
        """Return whether an object has a name: the walk has met it."""
        return id(value) in self._numbers

    def entry(self, holder: Any, key: Any, text: str | None = None) -> Entry:
        """Return the entry of a container; ``text``: the key in code, where it is not how Python shows it."""
        return Entry(self.name(holder), repr(key) if text is None else text, holder, key)

    def add(
        self, path: str, code: str | Entry, value: Any, how: Compared = BY_IDENTITY, part: tuple[Any, str] | None = None
    ) -> None:
        """Enter a place, see `Place`. TooMuch where there are too many."""
        if len(self.found) >= MOST:
            raise TooMuch(
                f"it reaches more than {MOST} values (the last: {path}); pass large containers as arguments or keep them out of it"
            )
        if isinstance(code, Entry):
            holder = code.holder
            scope = isinstance(holder, dict) and "__builtins__" in holder and not in_library(holder.get("__name__"))
            # any line of a script changes its globals: comparing those that matter is quicker
            self.found.append(Place(path, code.code, value, how, code, None if scope else (holder, "entries")))
        else:
            self.found.append(Place(path, code, value, how, None, part))

    def scope(self) -> dict[str, Any]:
        """Return the objects that the names in the code of places stand for, by name."""
        return {f"o{i}": o for i, o in enumerate(self._objects)} | {"MISSING": MISSING, "form": form}
