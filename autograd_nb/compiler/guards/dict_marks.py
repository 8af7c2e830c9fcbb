"""The mark of a dict: a word of memory that each change of the dict makes another one.

From Python 3.12 on an interpreter calls back before it changes a dict that it is asked to watch (`PyDict_Watch`). What it calls here is
native and counts in a table of words. Earlier dicts have versions (PEP 509). Python 3.13.0 tells nothing of attributes that it writes
into an object itself, whose dict is a view of its memory then: there these values are words of a watch too. Which of these ways serves
is tried out, see `interpreter`.
"""

from __future__ import annotations

import atexit
import ctypes
import sys
from collections.abc import Callable, Iterator
from enum import Enum
from functools import partial
from typing import Any

import numpy as np

from ...codegen.build import linking, llvm_text
from ...codegen.build.apart import apart
from ..ir import address
from ..nested import is_plain

_VERSION, _VALUES = 24, 40  #: bytes from the beginning of a dict: its version; a pointer to its values, where they lie apart
_BITS = 16
_COUNTS = np.zeros(1 << _BITS, np.int64)  #: of changes; a dict that shares its word with another one looks changed once too often
_SPREAD = 0x9E3779B97F4A7C15  #: 2^64 over the golden ratio: the upper bits of its multiples differ
_NOTHING = np.zeros(256, np.int64)  #: is compared where an object's values stand in it no longer

_CHANGES = f"""
@dict_counts = global ptr null
define i32 @dict_changes(i32 %event, i64 %dict, ptr %key, ptr %value) {{
  %mixed = mul i64 %dict, {_SPREAD - (1 << 64)}
  %number = lshr i64 %mixed, {64 - _BITS}
  %counts = load ptr, ptr @dict_counts
  %at = getelementptr i64, ptr %counts, i64 %number
  %count = load i64, ptr %at
  %more = add i64 %count, 1
  store i64 %more, ptr %at
  ret i32 0
}}
"""


def _changes() -> int:
    """Return the address of what the interpreter calls, which counts in `_COUNTS`."""
    found = llvm_text.address_of(_CHANGES, "dict_changes")
    ctypes.c_int64.from_address(linking.global_variable("dict_counts")).value = address(_COUNTS)
    return found


class Way(Enum):
    """The ways in which changes are told: by the interpreter's call, by that and the values that stand in objects, or by the dicts' versions."""

    CALLED = 0
    CALLED_AND_VALUES = 1
    VERSIONS = 2


CALLED, CALLED_AND_VALUES, VERSIONS = Way
_way = VERSIONS
_watch: Callable[[Any], Any] | None = None  # asks the interpreter to call before it changes a dict


def ways() -> Iterator[Way]:
    """Take one way after the other that this interpreter may have; the last one taken is in force."""
    global _way
    found = [VERSIONS] if sys.version_info < (3, 12) else [CALLED]
    if sys.version_info[:2] == (3, 13):
        found.append(CALLED_AND_VALUES)
    for _way in found:
        if _way is VERSIONS or _is_called():
            yield _way


def _is_called() -> bool:
    """Return whether the interpreter calls, after asking it to."""
    global _watch
    api, integer = ctypes.pythonapi, ctypes.c_int
    if _watch is None and hasattr(api, "PyDict_AddWatcher"):
        add = ctypes.PYFUNCTYPE(integer, ctypes.c_void_p)(("PyDict_AddWatcher", api))
        ask = ctypes.PYFUNCTYPE(integer, integer, ctypes.py_object)(("PyDict_Watch", api))
        try:
            number = add(apart(_changes))
        except RuntimeError:  # as others have taken all numbers
            return False
        # at the end modules are emptied, and machine code is gone
        atexit.register(ctypes.PYFUNCTYPE(integer, integer)(("PyDict_ClearWatcher", api)), number)
        _watch = partial(ask, number)
    return _watch is not None


def mark(d: dict[Any, Any]) -> int:
    """Return the address of a dict's mark."""
    if _watch is None:
        return id(d) + _VERSION
    _watch(d)
    return address(_COUNTS) + 8 * (id(d) * _SPREAD % (1 << 64) >> (64 - _BITS))


def word(address: int) -> int:
    """Return what stands at an address."""
    return ctypes.c_int64.from_address(address).value


class ObjectValues:
    """The values that stand in an object, as records of a watch: where they begin, how many there are, and their addresses.

    An address tells an object only while it lives. A watch goes on with other values where its guard has found them as good as those
    before: they are the same, which the guard holds, or plain, and held here.
    """

    def __init__(self, d: dict[Any, Any], size: int):
        self._dict, self._size, self._begin = d, 1 + size, word(id(d) + _VALUES)
        self.held: list[Any] = []

    def now(self) -> tuple[list[int], list[Any]]:
        """Return the words of the records as they are now, and what is to be held."""
        pointer, size, values = id(self._dict) + _VALUES, self._size, list(self._dict.values())
        if word(pointer) != self._begin:
            return [pointer, 0, 1, word(pointer), address(_NOTHING), 0, size, *[0] * size], []
        words = [*memoryview(ctypes.string_at(self._begin, 8 * size)).cast("q")]
        if not {0, *map(id, values)}.issuperset(words[1:]):  # another thread has changed them meanwhile
            words = [-1] * size
        return [pointer, 0, 1, self._begin, pointer, 1, size, *words], [v for v in values if isinstance(v, tuple) or is_plain(v)]


def object_values(d: dict[Any, Any]) -> ObjectValues | None:
    """Return the values of a dict that is a view of an object's memory; None where it is not, or its mark tells all."""
    begin = word(id(d) + _VALUES) if _way is CALLED_AND_VALUES else 0
    size, _, inside, _ = ctypes.string_at(begin, 4) if begin else bytes(4)
    return ObjectValues(d, size) if inside else None
