"""A program ready to run: its buffers in memory, its steps as a native table of records.

Where the memory of a buffer (see `ir`) comes from: arguments' is bound at each run, state and constants stay where they are,
temporaries lie in the arena, *fresh* ones (results) get new memory at each run, *kept* ones (gradients) have memory of their own
that the user sees.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from ... import launch, locks
from ..ir import Buffer, Step, Use, address, changes, grouped, settings, show, written
from ..live_numbers import _Slot, plain_number
from . import driver
from .memory_plan import ALIGN, plan, verify_plan
from .parallel_records import shared

#: the bytes at an address (an array type of ctypes for each size would be a class, which only the collector of cycles frees)
_memory = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_ssize_t, ctypes.c_int)(("PyMemoryView_FromMemory", ctypes.pythonapi))
_WRITABLE = 0x200  #: PyBUF_WRITE


def _in_python(step: Step) -> bool:
    """Return whether Python calls a kernel: that of another library, one of complex numbers, for which a cell has no room, or any where none
    is compiled."""
    entry = step.call.entry
    return getattr(entry, "foreign", False) or driver.compilation.disabled() or "complex128" in driver.compilation.native(entry)[1]


class Refused(Exception):
    """A check of values failed; all that the program had changed is as it was before."""


class Executable:
    """A program ready to run: its steps in memory, and the table of records that calls their kernels.

    ``kept``: buffers that have memory of their own; ``fresh``: those that get new memory at each run.
    """

    fixed: set[int]
    arena_bytes: int
    unshared_bytes: int
    busy: list[bool]
    arena: np.ndarray
    table: driver.Table
    writes: bool
    undone: dict[tuple[Any, ...], Use]
    nowhere: int
    records: np.ndarray
    values: np.ndarray
    watched: bool

    def __init__(self, steps: list[Step], draws: list[Any], kept: set[int], fresh: set[int]):
        self._made_of = steps, draws, kept, fresh
        self.steps = steps
        self.draws = draws
        self.fixed = kept | fresh
        offsets, self.arena_bytes, self.unshared_bytes = plan(steps, self.fixed)
        if settings.verifies:
            verify_plan(steps, offsets)
        self.busy = [False]  # whether it is being run: with the lock in hand, by this very thread, which a signal handler has interrupted
        self.lock: Any = locks.lock(self.busy)
        self.arena = launch.empty(max(self.arena_bytes, 1) + ALIGN, np.dtype(np.uint8))
        begin = -address(self.arena) % ALIGN
        self.table = driver.Table()
        self.cells: dict[int, int] = {}  # buffer number -> cell of its address
        self._arena_cell = self.table.new_cell(address(self.arena) + begin)
        self._offsets = offsets
        self._live: list[tuple[int, _Slot, str]] = []  # cell, slot, type
        self._slot_cells: dict[tuple[int, str], int] = {}
        self.segments: list[tuple[int, int] | Step] = []  # a range of records, or what Python runs
        self.shared = 0  # steps whose records threads take in turn
        self.writes = any(changes(s) for s in steps)  # to arguments or state
        self.starts_over = False  # whether a check that fails raises Refused
        checks = [i for i, s in enumerate(steps) if s.check is not None and not hasattr(s.check, "fatal")]
        told = next((i for i, s in enumerate(steps) if any(u.buffer.owner is o for u in written(s) for o in launch.orders)), len(steps))
        self.final: set[int] = {id(s) for s in steps[told:]}  # behind a call to others, which cannot be undone: a check that fails there ends the run
        #: what has changed when a check fails that does not
        self.undone = {u.key(): u for s in steps[: max((i for i in checks if i < told), default=0)] for u in written(s, kept)}
        self.repeatable: bool = not self.undone and all(i < told for i in checks)  # whether steps before a check that fails may run twice
        self.watched = False  # whether records test values
        self._holds: list[Any] = []
        start = 0
        for i, step in enumerate(steps):
            start = self._lower(i, step, start)
        self._close(start)
        self.nowhere = self.table.new_cell()  # for the address of what nothing reads
        self.records, self.values = self.table.finish()
        self._records_at, self._values_at = address(self.records), address(self.values)
        self._drive = driver.driver()

    def _lower(self, i: int, step: Step, start: int) -> int:
        """Write the records of a step, or let it be a segment of its own; where the segment begins that goes on. ``start``: where it
        began before."""
        if step.check is not None and step.passes:
            for k, element, least, most in step.passes:
                use = step.operands[k]
                (cell, offset), width = self._cell(use.buffer), use.dtype.itemsize
                self.table.add_test(cell, offset + use.offset + width * element, width, least, most, i)
            for u, _ in step.uses():
                self._cell(u.buffer)
            self.watched = True
            return start
        if step.check is not None or _in_python(step):
            self._close(start)
            self.segments.append(step)
            for u, _ in step.uses():
                self._cell(u.buffer)
            return len(self.table.records)
        self._holds.append(step.call)
        parts = shared(step)
        if parts is None:
            self.table.add(step.call.entry, self._operands(step), i)
            return start
        with self.table.shared(len(parts), i) as began:
            for part in parts:
                began.append(len(self.table.records))
                self.table.add(step.call.entry, self._part(step, part), i)
        self.shared += 1
        return start

    def _close(self, start: int) -> None:
        if len(self.table.records) > start:
            self.segments.append((start, len(self.table.records) - start))

    def _cell(self, buffer: Buffer) -> tuple[int, int]:
        """Return (cell, byte offset) of a buffer's beginning."""
        if buffer.number in self._offsets:
            return self._arena_cell, self._offsets[buffer.number]
        cell = self.cells.get(buffer.number)
        if cell is None:
            array = buffer.array
            if buffer.number in self.fixed:
                array = np.empty(0, np.uint8)  # bound before each run
            cell = self.cells[buffer.number] = self.table.new_cell(address(array))
        return cell, 0

    def _operands(self, step: Step) -> list[tuple[Any, ...]]:
        _, argtypes = driver.compilation.native(step.call.entry)
        found: list[tuple[Any, ...]] = []
        for o, t in zip(grouped(step.operands, argtypes), argtypes, strict=True):
            if isinstance(o, Use):
                found.append(("array", *self._place(o)))
            elif isinstance(o, list):
                found.append(("arrays", [self._place(u) for u in o]))
            elif isinstance(o, tuple):
                found.append(("cells", [self._number(v, "int64") for v in o]))
            else:
                found.append(("cell", self._number(o, t)))
        return found

    def _place(self, use: Use, shift: int = 0, size: int | None = None) -> tuple[int, int, int]:
        """Return (cell, byte offset, elements) of a use, or of ``size`` elements of it from byte ``shift`` on."""
        cell, offset = self._cell(use.buffer)
        return cell, offset + use.offset + shift, use.size if size is None else size

    def _part(self, step: Step, part: list[Any]) -> list[tuple[Any, ...]]:
        """Return the operands of one of a step's records, see `sharing.shared`."""
        _, argtypes = driver.compilation.native(step.call.entry)
        found: list[tuple[Any, ...]] = []
        for o, t in zip(part, argtypes, strict=True):
            if isinstance(o, np.ndarray):
                self._holds.append(o)
                found.append(("array", self.table.new_cell(address(o)), 0, o.size))
            elif isinstance(o, list):
                found.append(("arrays", [self._place(step.operands[i], shift, size) for i, shift, size in o]))
            elif isinstance(o, tuple) and t.endswith("[:]"):
                i, shift, size = o
                found.append(("array", *self._place(step.operands[i], shift, size)))
            elif isinstance(o, tuple):
                found.append(("cells", [self._number(v, "int64") for v in o]))
            else:
                found.append(("cell", self._number(o, t)))
        return found

    def _number(self, value: Any, argtype: str) -> int:
        if not isinstance(value, _Slot):
            return self.table.constant(value, argtype)
        key = (id(value), argtype)
        if key not in self._slot_cells:
            cell = self._slot_cells[key] = self.table.new_cell(driver.encode(plain_number(value), argtype))
            self._live.append((cell, value, argtype))
        return self._slot_cells[key]

    # ---- running
    @contextmanager
    def alone(self) -> Iterator[Executable]:
        """Give this program, which no other thread runs meanwhile, or one like it where this thread is already running it."""
        with self.lock:
            if self.busy[0]:
                other = Executable(*self._made_of)
                other.starts_over = self.starts_over
                yield other
                return
            try:
                self.busy[0] = True
                yield self
            finally:
                self.busy[0] = False

    def bind(self, buffer: int, array: np.ndarray, shift: int = 0) -> None:
        """Let a buffer be this array's memory (``shift`` bytes before its beginning)."""
        cell = self.cells.get(buffer)
        if cell is not None:
            self.values[cell] = address(array) - shift

    def run(self, numbers: Sequence[Any] | None = None) -> None:
        """Run all steps on what is bound, with the live numbers as they are now, or as given.

        RuntimeError when a kernel fails; a check raises what it raises.
        """
        values = self.values
        for source, now in self.draws:
            now[0], now[1] = source._next()
        for (cell, _, argtype), number in zip(self._live, self.numbers() if numbers is None else numbers, strict=True):
            values[cell] = driver.encode(number, argtype)
        before = [(memory, memory.copy()) for memory in map(self.view, self.undone.values())]
        try:
            self._run()
        except Refused:
            for memory, copy in before:
                memory[...] = copy
            raise

    def _run(self) -> None:
        for segment in self.segments:
            if segment.__class__ is tuple:
                self.drive(*segment)  # type: ignore[misc]
            else:
                self._python(segment)  # type: ignore[arg-type]

    def numbers(self) -> list[Any]:
        """Return the live numbers as they are now."""
        return [slot.read() for _, slot, _ in self._live]

    def _rewind(self) -> None:
        """Let random streams be where they were before this run."""
        for source, _ in reversed(self.draws):
            if hasattr(source, "begin"):
                source.source._place = tuple(source.begin)
            else:
                seed, call = source._place
                source._place = seed, call - 1

    def drive(self, start: int, words: int) -> None:
        """Run the records from ``start`` on."""
        end = start + words
        while True:
            failed = self._drive(self._records_at + 8 * start, end - start, self._values_at)
            if not failed:
                return
            at = start + failed - 1
            record = self.table.places.index(at)
            step = self.steps[self.table.steps[record]]
            if step.check is None:
                _, argtypes = driver.compilation.native(step.call.entry)
                step.call.entry(*grouped(self._values_of(step), argtypes))  # raises what the kernel has raised
                raise RuntimeError(f"the kernel {step.name} of a compiled function failed (not enough memory?)")
            self._python(step)  # says what is wrong; where it finds nothing, go on behind this record
            start = at + int(self.records[at + 2])
            if start >= end:
                return

    def _python(self, step: Step) -> None:
        """Make a segment of a step that Python runs: a check, or a kernel that no record calls."""
        operands = self._values_of(step)
        if step.check is not None:
            try:
                step.check(*operands)
            except Exception as error:
                if id(step) in self.final:
                    for end in launch.interrupted:
                        end()
                if not self.starts_over or id(step) in self.final or hasattr(step.check, "fatal"):
                    raise
                self._rewind()
                raise Refused from error
        else:
            step.call.entry(*operands)

    def _values_of(self, step: Step) -> list[Any]:
        """Return a step's operands as they are now."""
        found: list[Any] = [o.read() if isinstance(o, _Slot) else o for o in step.operands]
        return [self.view(o) if isinstance(o, Use) else plain_number(o) for o in found]

    def view(self, use: Use) -> np.ndarray:
        """Return the memory of a use as it is now."""
        cell, offset = self._cell(use.buffer)
        if not use.size:
            return np.empty(0, use.dtype)
        memory = _memory(int(self.values[cell]) + offset + use.offset, use.size * use.dtype.itemsize, _WRITABLE)
        return np.frombuffer(memory, use.dtype)

    def __str__(self) -> str:
        return "\n".join(f"{i:4d}  {show(s)}" for i, s in enumerate(self.steps))


