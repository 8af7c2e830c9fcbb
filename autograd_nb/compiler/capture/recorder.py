"""Watching a function run once: every kernel over its buffers, and what Python did besides.

The function runs eagerly, with real values. What it launches becomes a list of steps over buffers; a buffer is a block of
memory, known by the NumPy array that owns it. Anything that a replay could not repeat is a `problem`, and the function then
stays eager: values read by Python, memory that is not reachable from the function, files and prints.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import numpy as np

from ... import dtypes
from ...graph.collector import living
from ...graph.node import here, place
from ...ops.core.registry import OPS
from ...shapes import layout_of
from ...tensor import Tensor, make
from ..ir import Buffer, Step, Use, address, changes, root
from ..live_numbers import IntSlot, _Slot, plain_number


class Problem(Exception):
    """Why a function cannot be captured, and the line of it."""

    reason: str
    line: str

    def __init__(self, reason: str, line: str = ""):
        super().__init__(reason)
        self.reason, self.line = reason, line


class Capture:
    """The observer of one run. ``known``: buffer kind and path by the id of memory that the function may use."""

    def __init__(self, known: list[tuple[str, str, Tensor]]):
        self.steps: list[Step] = []
        self.buffers: dict[int, Buffer] = {}
        self.problems: list[Problem] = []
        self.leaving: list[Callable[[], None]] = []  # each is called when the function has returned, and is watched too
        self.endings: list[Callable[[], str]] = []  # each is asked when the run has ended, and returns a problem or ""
        self.settled: list[Callable[[Any], None]] = []  # each is told the function when its program is made
        self.forgotten: set[int] = set()  # ids of tensors whose gradient was set without being read
        self.looked = False  # whether Python has looked at gradients
        self.grads: dict[int, tuple[Any, ...]] = {}  # id of a tensor -> (tensor, its gradient before the run, the gradient's version)
        self.draws: list[tuple[Any, list[Any]]] = []  # (generator, [seed, call]) in the order of drawing
        self.streams: dict[int, tuple[Any, int, int]] = {}  # generators as the first draw found them
        self.decided: list[_Slot] = []
        self.asked: set[str] = set()  # attributes that tensors were asked for and did not have
        self.derived = False  # whether Python has differentiated by some of its tensors
        self.hashed = False  # whether Python has looked for a tensor in a dict or a set
        self.unasked = False  # whether what runs is a backward pass that nobody has asked for: a problem ends it before it happens
        self._kept: list[Any] = []  # while they live their ids name them
        self._constants: set[int] = set()
        for kind, path, t in known:
            self.buffer_of(t._data, kind, path, t)
        self._foreign: dict[int, Any] = {}
        for o in living(Tensor):
            with contextlib.suppress(RuntimeError, AttributeError):  # of a batched tensor whose vmap has ended, or in the making
                r = root(o._data)
                if id(r) not in self.buffers:
                    self._foreign[id(r)] = r
        self._kept.append(self._foreign)

    def buffer_of(self, array: np.ndarray, kind: str = "", path: str = "", owner: Any = None) -> Buffer:
        """Return the buffer of an array's memory; made with ``kind`` if it is new."""
        r = root(array)
        found = self.buffers.get(id(r))
        if found is None:
            if not kind:
                kind = "foreign" if id(r) in self._foreign else "temporary"
            found = self.buffers[id(r)] = Buffer(len(self.buffers), r, kind, path, owner)
            self._kept.append(r)
        return found

    def use(self, array: np.ndarray, written: bool) -> Use:
        """Return the use of a buffer that stands for an array operand."""
        r = root(array)
        if id(r) not in self.buffers and id(r) not in self._foreign and not written:
            # memory that no kernel has written: Python's numbers, or tables of sizes
            buffer = self.buffer_of(array, "constant")
        else:
            buffer = self.buffer_of(array)
        buffer.writers += written
        if buffer.kind == "foreign" and not buffer.path:
            buffer.path = "seen"
            self.problem(
                "it uses a tensor that cannot be found from its arguments, closure, globals or their attributes; pass it as an argument"
            )
        return Use(buffer, address(array) - address(r), array.size, array.dtype)

    def problem(self, reason: str) -> None:
        """Note why this cannot be replayed. Problem where it need not happen at all."""
        self.problems.append(Problem(reason, user_line()))
        if self.unasked:
            raise self.problems[0]

    def at_line(self) -> str:
        """Return the line of the user's that runs just now, as " at file:line"; "" where there is none."""
        line = user_line()
        return f" at {line}" if line else ""

    # ---- what `launch` calls
    def __call__(self, call: Any, args: tuple[Any, ...]) -> None:
        first = len(args) - call.outputs
        operands: list[Any] = []
        plain: list[Any] = []
        writes: list[int] = []
        for i, a in enumerate(args):
            arrays = [a] if isinstance(a, np.ndarray) else a if isinstance(a, list) else None
            if arrays is not None:
                written = i >= first or i == call.over
                if written:
                    self._own(arrays)
                    writes += range(len(operands), len(operands) + len(arrays))
                operands += [self.use(x, written) for x in arrays]
                plain.append(a)
            elif isinstance(a, tuple):
                operands.append(a)
                plain.append(tuple(plain_number(v) for v in a))
            else:
                operands.append(a)
                plain.append(plain_number(a))
        step = Step(call, operands, tuple(writes), here(2))
        if self.unasked and changes(step):
            self.problem("the backward pass of its results changes tensors")
        call.entry(*plain)
        self.steps.append(step)

    def _own(self, arrays: list[np.ndarray]) -> None:
        """Let memory that is about to be written be the program's own: what stands in a constant is copied there first, in every run."""
        for array in arrays:
            r = root(array)
            buffer = self.buffers.get(id(r))
            if buffer is None or buffer.kind != "constant":
                continue
            values = r.copy()
            constant = self.buffer_of(values, "constant")
            for use in [o for s in self.steps for o in s.operands if isinstance(o, Use) and o.buffer is buffer]:
                use.buffer = constant
            buffer.kind = "temporary"
            layout = layout_of((r.nbytes,), None, dtypes.uint8)
            target, source = (make(a.reshape(-1).view(np.uint8), layout, [0, 0]) for a in (r, values))
            OPS["copy_"].call(target, source)

    def check(self, function: Callable[..., None], arrays: tuple[Any, ...], passes: tuple[Any, ...] = ()) -> None:
        """Note a test of what kernels wrote, which is repeated at each run."""
        try:
            function(*arrays)
        except Exception as error:
            self.problem(f"it goes on after an error ({type(error).__name__})")
            raise
        self.steps.append(Step(None, [self.use(a, False) for a in arrays], (), here(2), function, passes))

    def escapes(self, what: str) -> None:
        """Give the capture up, as Python is about to see values."""
        self.problem(f"it reads values with {what}")

    def constant(self, array: np.ndarray) -> None:
        """Note that Python wrote the values of an array, so that the program keeps them."""
        self.buffer_of(array, "constant")

    def cleared(self, tensor: Tensor) -> None:
        """Note that a gradient is about to be set, and that nobody has looked at what it was."""
        t, before, version = self.grads.get(id(tensor), (None, None, 0))
        g = tensor._grad
        if not self.looked and (t is None or (g is before and (g is None or g._version_[0] == version))):
            self.forgotten.add(id(tensor))

    def draw(self, source: Any) -> tuple[int, int]:
        """Seed and call of a random op, read anew at each run."""
        if self.unasked:
            self.problem("the backward pass of its results draws random numbers")
        self.streams.setdefault(id(source), (source, *source._place))
        seed, call = source.__class__._next(source)
        now = [seed, call]
        self.draws.append((source, now))
        return (IntSlot.make(seed, lambda: now[0], self.decided), IntSlot.make(call, lambda: now[1], self.decided))


class Draw:
    """One key of a random stream at a place counted from where the stream is when a run begins."""

    __slots__ = ("advance", "begin", "first", "last", "place", "source")
    source: Any
    place: int
    begin: list[int]
    advance: int
    first: bool
    last: bool

    def __init__(self, source: Any, place: int, begin: list[int], first: bool, last: bool, advance: int):
        self.source, self.place, self.begin, self.first, self.last, self.advance = source, place, begin, first, last, advance

    def _next(self) -> tuple[int, int]:
        if self.first:
            self.begin[:] = self.source._place
        seed, call = self.begin
        self.source._place = seed, call + self.place
        found = self.source._next()
        if self.last:
            self.source._place = seed, call + self.advance
        return found  # type: ignore[no-any-return]


def in_order(draws: list[tuple[Any, list[Any]]], before: dict[int, tuple[Any, int, int]]) -> list[tuple[Any, list[Any]]]:
    """Return the draws of a capture as a run repeats them. ``before``: (generator, seed, call) when it began, by the generator's id.

    Mostly one key after another; a checkpointed function goes back in the stream to draw the same numbers again.
    """
    found = list(draws)
    for source, seed, call in before.values():
        mine = [i for i, (s, _) in enumerate(draws) if s is source]
        places = [draws[i][1][1] - call for i in mine]
        now, reached = source._place
        advance = reached - call
        if now != seed or any(draws[i][1][0] & _MASK != seed for i in mine):
            raise Problem("it seeds its random numbers")
        if places != list(range(advance)):
            begin = [0, 0]
            for k, i in enumerate(mine):
                draw = Draw(source, places[k], begin, k == 0, k == len(mine) - 1, advance)
                found[i] = (draw, draws[i][1])
    return found


def places(draws: list[tuple[Any, list[Any]]]) -> list[tuple[Any, tuple[int, int]]] | None:
    """Return where the last run found its streams: (generator, its place); None where another thread has drawn in between."""
    begun: dict[int, tuple[Any, int, int]] = {}
    count: dict[int, int] = {}
    for source, (seed, call) in draws:
        if isinstance(source, Draw):
            begun.setdefault(id(source.source), (source.source, *source.begin))
            continue
        _, _, first = begun.setdefault(id(source), (source, seed & _MASK, call))
        if call != first + count.setdefault(id(source), 0):
            return None
        count[id(source)] += 1
    return [(source, (seed, call)) for source, seed, call in begun.values()]


_MASK = (1 << 64) - 1


def user_line() -> str:
    """Return the user's line that is running, as text."""
    code, lasti = here(2)
    return place(code, lasti) if code is not None else ""
