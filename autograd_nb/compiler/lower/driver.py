"""One native call for a whole list of kernels: a table of records, walked by a small driver.

Kernels are called as Numba compiled them, through their own calling convention, so every kernel that is on disk serves here
as it is. A *trampoline* per list of argument types, written as LLVM text, loads the arguments of a record and calls; the
driver goes from record to record. Pointers and numbers stand in ``cells``, a table of 64-bit words that Python fills.

A record: trampoline, function, its own length in words, then for an array (cell of its base address, byte offset, elements),
for a number its cell, for a tuple a cell each. Where threads share a step, one record has others within it, which the threads take in turn.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import chain, pairwise
from typing import Any

import numpy as np

from ...codegen import threads
from ...codegen.build import compilation, llvm_text
from ...codegen.build.hashed import hashed

_trampolines: dict[tuple[str | int, ...], int] = {}
_driver: Any = None

_WIDTH = {"int8": "i8", "uint8": "i8", "bool": "i8", "int16": "i16", "uint16": "i16", "int32": "i32", "uint32": "i32"}

_DRIVER = """
define i32 @drive(ptr %program, i64 %words, ptr %cells) {
entry:
  %some = icmp sgt i64 %words, 0
  br i1 %some, label %step, label %done
step:
  %at = phi i64 [ 0, %entry ], [ %next, %went ]
  %record = getelementptr i64, ptr %program, i64 %at
  %trampoline.word = load i64, ptr %record
  %trampoline = inttoptr i64 %trampoline.word to ptr
  %function.at = getelementptr i64, ptr %record, i64 1
  %function.word = load i64, ptr %function.at
  %function = inttoptr i64 %function.word to ptr
  %length.at = getelementptr i64, ptr %record, i64 2
  %length = load i64, ptr %length.at
  %arguments = getelementptr i64, ptr %record, i64 3
  %status = call i32 %trampoline(ptr %function, ptr %arguments, ptr %cells)
  %fine = icmp eq i32 %status, 0
  br i1 %fine, label %went, label %failed
went:
  %next = add i64 %at, %length
  %more = icmp slt i64 %next, %words
  br i1 %more, label %step, label %done
failed:
  %place = trunc i64 %at to i32
  %number = add i32 %place, 1
  ret i32 %number
done:
  ret i32 0
}
"""


#: (address, elements) of each array of a list, as `codegen.arrays` has them, from the (cell, offset, elements) of a record
_PLACES = """
define internal void @places(ptr %table, ptr %uses, i64 %count, ptr %cells) {
entry:
  br label %test
test:
  %k = phi i64 [ 0, %entry ], [ %next, %body ]
  %more = icmp slt i64 %k, %count
  br i1 %more, label %body, label %done
body:
  %from = mul i64 %k, 3
  %cell.at = getelementptr i64, ptr %uses, i64 %from
  %cell = load i64, ptr %cell.at
  %offset.at = getelementptr i64, ptr %cell.at, i64 1
  %offset = load i64, ptr %offset.at
  %size.at = getelementptr i64, ptr %cell.at, i64 2
  %size = load i64, ptr %size.at
  %base.at = getelementptr i64, ptr %cells, i64 %cell
  %base = load i64, ptr %base.at
  %address = add i64 %base, %offset
  %into = shl i64 %k, 1
  %address.at = getelementptr i64, ptr %table, i64 %into
  store i64 %address, ptr %address.at
  %elements.at = getelementptr i64, ptr %address.at, i64 1
  store i64 %size, ptr %elements.at
  %next = add i64 %k, 1
  br label %test
done:
  ret void
}
"""

_TEST = """
define i32 @test(ptr %function, ptr %arguments, ptr %cells) {
  %cell = load i64, ptr %arguments
  %offset.at = getelementptr i64, ptr %arguments, i64 1
  %offset = load i64, ptr %offset.at
  %least.at = getelementptr i64, ptr %arguments, i64 2
  %least = load i64, ptr %least.at
  %most.at = getelementptr i64, ptr %arguments, i64 3
  %most = load i64, ptr %most.at
  %base.at = getelementptr i64, ptr %cells, i64 %cell
  %base = load i64, ptr %base.at
  %address = add i64 %base, %offset
  %place = inttoptr i64 %address to ptr
{load}
  %low = icmp slt i64 %value, %least
  %high = icmp sgt i64 %value, %most
  %outside = or i1 %low, %high
  %status = zext i1 %outside to i32
  ret i32 %status
}
"""
#: how it loads an integer of so many bytes
_LOADS = {8: "  %value = load i64, ptr %place", 4: "  %narrow = load i32, ptr %place\n  %value = sext i32 %narrow to i64"}


class _Loads:
    """The lines of a trampoline that load the words of a record, one after the other, as the arguments of a kernel."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.begin, self.at = "%arguments", 0  # the next word is number ``at`` from there

    def value(self, expression: str) -> str:
        """Return the name of a value that a new line computes."""
        name = f"%v{len(self.lines)}"
        self.lines.append(f"{name} = {expression}")
        return name

    def pointer(self, base: str, index: Any) -> str:
        """Return a pointer to a word behind another one."""
        return self.value(f"getelementptr i64, ptr {base}, i64 {index}")

    def word(self) -> str:
        """Return the next word of the record."""
        self.at += 1
        return self.value(f"load i64, ptr {self.pointer(self.begin, self.at - 1)}")

    def number(self, kind: str) -> str:
        """Return the number in the cell that the next word names."""
        return self.value(f"load {kind}, ptr {self.pointer('%cells', self.word())}")

    def array(self, itemsize: int) -> list[str]:
        """Return an array as Numba passes it: memory's owner, parent, elements, element size, data, shape, stride."""
        base, offset, size = self.number("i64"), self.word(), self.word()
        data = self.value(f"inttoptr i64 {self.value(f'add i64 {base}, {offset}')} to ptr")
        return ["ptr null", "ptr null", f"i64 {size}", f"i64 {itemsize}", f"ptr {data}", f"i64 {size}", f"i64 {itemsize}"]

    def arrays(self) -> list[str]:
        """Return a list of arrays: the table of their addresses and sizes, on the stack, and how many there are."""
        count = self.word()
        uses = self.pointer(self.begin, self.at)
        table = self.value(f"alloca i64, i64 {self.value(f'shl i64 {count}, 1')}")
        self.lines.append(f"call void @places(ptr {table}, ptr {uses}, i64 {count}, ptr %cells)")
        self.begin, self.at = self.pointer(uses, self.value(f"mul i64 {count}, 3")), 0
        return [f"ptr {table}", f"i64 {count}"]

    def argument(self, t: str) -> list[str]:
        """Return the kernel's argument of type ``t``, which may be several of the machine code."""
        if t.startswith("["):
            return self.arrays()
        if t.endswith("[:]"):
            return self.array(1 if t == "bool[:]" else np.dtype(t[:-3]).itemsize)
        if t.startswith("("):
            return [f"i64 {self.number('i64')}" for _ in range(int(t.strip("()")))]
        kind = {"float64": "double", "float32": "float"}.get(t) or _WIDTH.get(t, "i64")
        return [f"{kind} {self.number(kind)}"]


def _trampoline_text(name: str, argtypes: tuple[str, ...]) -> str:
    """Return the LLVM text of the function ``name`` that loads the arguments of a record and calls its kernel."""
    loads = _Loads()
    arguments = ["ptr %ret", "ptr %exc", *[part for t in argtypes for part in loads.argument(t)]]
    body = "".join(f"  {line}\n" for line in loads.lines)
    return (
        (_PLACES if any(t.startswith("[") for t in argtypes) else "")
        + f"define i32 @{name}(ptr %function, ptr %arguments, ptr %cells) {{\n  %ret = alloca ptr\n  %exc = alloca ptr\n{body}"
        f"  %status = call i32 %function({', '.join(arguments)})\n  ret i32 %status\n}}\n"
    )


def trampoline(argtypes: tuple[str, ...]) -> int:
    """Return the address of the trampoline for kernels of these argument types."""
    found = _trampolines.get(argtypes)
    return found if found is not None else compilation.apart(_make_trampoline, argtypes)


def _make_trampoline(argtypes: tuple[str, ...]) -> int:
    found = _trampolines.get(argtypes)
    if found is None:
        name = f"trampoline_{hashed(repr(argtypes).encode()).hexdigest()[:16]}"
        found = _trampolines[argtypes] = llvm_text.address_of(_trampoline_text(name, argtypes), name)
    return found


def driver() -> Any:
    """Return the function of (program address, words, cells address) that runs a table; it gives 0, or 1 + the place of the failed record.

    Other threads run meanwhile: the interpreter's lock is released.
    """
    if _driver is None:
        compilation.apart(_make_driver)
    return _driver


def _make_driver() -> None:
    global _driver
    if _driver is None:
        address = llvm_text.address_of(_DRIVER, "drive")
        _driver = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_int64, ctypes.c_int64, ctypes.c_int64)(address)


_RUN = """
declare i64 @PyLong_AsLongLong(ptr)
declare ptr @PyLong_FromLongLong(i64)
declare ptr @PyEval_SaveThread()
declare void @PyEval_RestoreThread(ptr)
declare i32 @drive(ptr, i64, ptr)
define ptr @run_records(ptr %self, ptr %none) {
  %words.word = call i64 @PyLong_AsLongLong(ptr %self)
  %program.at = inttoptr i64 %words.word to ptr
  %program = load ptr, ptr %program.at
  %count.at = getelementptr i64, ptr %program.at, i64 1
  %count = load i64, ptr %count.at
  %cells.at = getelementptr i64, ptr %program.at, i64 2
  %cells = load ptr, ptr %cells.at
  %thread = call ptr @PyEval_SaveThread()
  %failed = call i32 @drive(ptr %program, i64 %count, ptr %cells)
  call void @PyEval_RestoreThread(ptr %thread)
  %wide = sext i32 %failed to i64
  %result = call ptr @PyLong_FromLongLong(i64 %wide)
  ret ptr %result
}
"""


def runner(arguments: int) -> Callable[[], int]:
    """Return `driver` as a function of no arguments, which are three words at this address."""
    driver()
    return llvm_text.bound_to(arguments, "run_records", _RUN)


def _test_address(width: int) -> int:
    found = _trampolines.get(("test", width))
    return found if found is not None else compilation.apart(_make_test, width)


def _make_test(width: int) -> int:
    found = _trampolines.get(("test", width))
    if found is None:
        found = _trampolines["test", width] = llvm_text.address_of(_TEST.replace("{load}", _LOADS[width]), "test")
    return found


#: what runs a record of other records, which threads take in turn: how many there are, and for each where it begins, and its words
_SHARED = """
declare i32 @drive(ptr, i64, ptr)
declare i32 @pool_share(ptr, ptr, ptr, ptr, i64, i64, ptr)
define internal i32 @part(ptr %cells, ptr %block, ptr %why) {
  %program = load ptr, ptr %block
  %words.at = getelementptr i64, ptr %block, i64 1
  %words = load i64, ptr %words.at
  %failed = call i32 @drive(ptr %program, i64 %words, ptr %cells)
  ret i32 %failed
}
define i32 @share_records(ptr %control, ptr %arguments, ptr %cells) {
entry:
  %record = getelementptr i64, ptr %arguments, i64 -3
  %count = load i64, ptr %arguments
  %pool = load ptr, ptr %control
  %threads.at = getelementptr i64, ptr %control, i64 1
  %threads = load i64, ptr %threads.at
  %fewer = icmp slt i64 %count, %threads
  %workers = select i1 %fewer, i64 %count, i64 %threads
  %twice = mul i64 %count, 2
  %space = alloca i64, i64 %twice
  %blocks = alloca ptr, i64 %count
  %why = alloca ptr
  br label %next
next:
  %i = phi i64 [ 0, %entry ], [ %i1, %one ]
  %more = icmp slt i64 %i, %count
  br i1 %more, label %one, label %go
one:
  %i2 = mul i64 %i, 2
  %k = add i64 %i2, 1
  %begin.at = getelementptr i64, ptr %arguments, i64 %k
  %begin = load i64, ptr %begin.at
  %length.at = getelementptr i64, ptr %begin.at, i64 1
  %length = load i64, ptr %length.at
  %program = getelementptr i64, ptr %record, i64 %begin
  %block = getelementptr i64, ptr %space, i64 %i2
  store ptr %program, ptr %block
  %words.at = getelementptr i64, ptr %block, i64 1
  store i64 %length, ptr %words.at
  %block.at = getelementptr ptr, ptr %blocks, i64 %i
  store ptr %block, ptr %block.at
  %i1 = add i64 %i, 1
  br label %next
go:
  %status = call i32 @pool_share(ptr %pool, ptr @part, ptr %cells, ptr %blocks, i64 %count, i64 %workers, ptr %why)
  ret i32 %status
}
"""


def _sharing() -> int:
    found = _trampolines.get(("shared",))
    if found is None:
        threads.ready()
        driver()
        found = compilation.apart(_make_sharing)
    return found


def _make_sharing() -> int:
    found = _trampolines.get(("shared",))
    if found is None:
        found = _trampolines["shared",] = llvm_text.address_of(_SHARED, "share_records")
    return found


class Table:
    """Records being written, and the cells that they read."""

    def __init__(self) -> None:
        self.records: list[int] = []
        self.values: list[int] = []
        self.places: list[int] = []  # where each record begins
        self.steps: list[int] = []  # the step of each record
        self._constants: dict[int, int] = {}

    def new_cell(self, value: int = 0) -> int:
        """Return a cell of its own."""
        self.values.append(value)
        return len(self.values) - 1

    def constant(self, value: Any, argtype: str) -> int:
        """Return the cell of a constant number; equal ones share it."""
        bits = encode(value, argtype)
        if bits not in self._constants:
            self._constants[bits] = self.new_cell(bits)
        return self._constants[bits]

    def add(self, entry: Any, operands: list[tuple[Any, ...]], step: int) -> None:
        """Add a record, whose ``operands`` are ("array", *place), ("arrays", [place …]), ("cell", n) or ("cells", [n …]).

        A place is (cell, byte offset, elements).
        """
        address, argtypes = compilation.native(entry)
        body: list[int] = []
        for o, t in zip(operands, argtypes, strict=True):
            expected = (
                "arrays" if t.startswith("[") else "array" if t.endswith("[:]") else "cells" if t.startswith("(") else "cell"
            )
            assert o[0] == expected, "operands do not fit the kernel's arguments"
            if o[0] == "array":
                body += o[1:]
            elif o[0] == "arrays":
                body += [len(o[1]), *chain.from_iterable(o[1])]
            elif o[0] == "cell":
                body.append(o[1])
            else:
                assert len(o[1]) == int(t.strip("()")), "a tuple does not fit the kernel's argument"
                body += o[1]
        self.places.append(len(self.records))
        self.steps.append(step)
        self.records += [trampoline(argtypes), address, len(body) + 3, *body]

    def add_test(self, cell: int, offset: int, width: int, least: int, most: int, step: int) -> None:
        """Add a record that fails unless the integer of ``width`` bytes at a place lies between two numbers."""
        self.places.append(len(self.records))
        self.steps.append(step)
        self.records += [_test_address(width), 0, 7, cell, offset, least, most]

    @contextmanager
    def shared(self, count: int, step: int) -> Iterator[list[int]]:
        """Add a record for ``count`` parts that do not depend on one another, each a record or more; the list gets where each of them begins."""
        begin, began = len(self.records), []
        self.places.append(begin)
        self.steps.append(step)
        self.records += [_sharing(), threads.control.ctypes.data, 0, count, *[0] * (2 * count)]
        yield began
        end = len(self.records)
        self.records[begin + 2] = end - begin
        for i, (at, after) in enumerate(pairwise([*began, end])):
            self.records[begin + 4 + 2 * i : begin + 6 + 2 * i] = at - begin, after - at

    def finish(self) -> tuple[np.ndarray, np.ndarray]:
        """Return (records, cells) as arrays of 64-bit words."""
        return np.array(self.records, dtype=np.int64), np.array(self.values or [0], dtype=np.int64)


def encode(value: Any, argtype: str) -> int:
    """Return the 64 bits of a number as the trampoline loads it."""
    if argtype == "float64":
        return int(struct.unpack("<q", struct.pack("<d", value))[0])
    if argtype == "float32":
        return int(struct.unpack("<q", struct.pack("<fi", value, 0))[0])
    value = int(value) & ((1 << 64) - 1)
    return value - (1 << 64) if value >> 63 else value
