"""Where arrays begin, written into a program's table by one native call for all of them.

NumPy's public structure of an array has the address of its elements behind the object's head, for extensions in C to read; whether that is
so here is found out by trying, once. Elsewhere Python asks each array.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..codegen.build import linking, llvm_text
from .ir import address

#: ``self`` is an array, of words: how many arrays come, where the values stand, for each array the number of its value and the bytes to take off
_WRITE = """
declare ptr @PyBool_FromLong(i64)
define ptr @write_addresses(ptr %self, ptr %arrays, i64 %given) {
entry:
  %table.at = getelementptr i64, ptr %self, i64 2
  %table = load ptr, ptr %table.at
  %count = load i64, ptr %table
  %values.at = getelementptr i64, ptr %table, i64 1
  %values = load ptr, ptr %values.at
  %records = getelementptr i64, ptr %table, i64 2
  br label %test
test:
  %i = phi i64 [ 0, %entry ], [ %next, %write ]
  %more = icmp slt i64 %i, %count
  br i1 %more, label %write, label %done
write:
  %array.at = getelementptr ptr, ptr %arrays, i64 %i
  %array = load ptr, ptr %array.at
  %data.at = getelementptr i64, ptr %array, i64 2
  %data = load i64, ptr %data.at
  %record = shl i64 %i, 1
  %cell.at = getelementptr i64, ptr %records, i64 %record
  %cell = load i64, ptr %cell.at
  %shift.at = getelementptr i64, ptr %cell.at, i64 1
  %shift = load i64, ptr %shift.at
  %begin = sub i64 %data, %shift
  %value.at = getelementptr i64, ptr %values, i64 %cell
  store i64 %begin, ptr %value.at
  %next = add i64 %i, 1
  br label %test
done:
  %none = call ptr @PyBool_FromLong(i64 1)
  ret ptr %none
}
"""
DATA = 16  #: bytes from an array object's beginning to the address of its elements
_as_described: bool | None = None


def arrays_known() -> bool:
    """Return whether arrays look so here."""
    global _as_described
    if _as_described is None:
        some = (np.empty(0), np.empty(3, np.int8)[1:], np.ones(1000, np.float32), np.zeros((3, 4))[1])
        whole = sys.implementation.name == "cpython" and ctypes.sizeof(ctypes.c_void_p) == 8
        _as_described = whole and all(ctypes.c_int64.from_address(id(a) + DATA).value == address(a) for a in some)
    return _as_described


def writer(values: np.ndarray, cells: Sequence[int], shifts: Sequence[int]) -> Callable[..., Any]:
    """Return a function of as many arrays that writes where each begins, less its shift, into its cell of ``values``, which the caller keeps."""
    pairs = [*zip(cells, shifts, strict=True)]
    if not arrays_known():

        def write(*arrays: np.ndarray) -> None:
            for (cell, shift), array in zip(pairs, arrays, strict=True):
                values[cell] = address(array) - shift

        return write
    table = np.array([len(pairs), address(values), *(n for pair in pairs for n in pair)], np.int64)
    return llvm_text.bound_to(table, "write_addresses", _WRITE, linking.FASTCALL)
