"""The intermediate representation: a straight list of kernel launches over buffers of memory, and the rules that it obeys.

Capture writes it, passes rewrite it, lowering turns it into a table for the driver. `verify` checks a program against the
rules; tests run it after every pass (see `passes.pipeline`).

A buffer's kind says who owns the memory:

- "state": the user's own, reached from the function (parameters, their moments, running statistics);
- "argument": that of an argument, at another address in each run;
- "constant": known when the function was captured;
- "temporary": the program's own. What is wanted after the program (results, gradients) is a temporary too;
- "foreign": reached by nobody; a program that uses it is refused.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import islice
from typing import Any

import numpy as np

from ..codegen.build import compilation
from ..graph.node import place as place_of
from ..launch.memory import address as address
from ..launch.memory import root as root
from ..shapes import Layout
from .live_numbers import plain_number


class Buffer:
    """A block of memory with a number that names it; its ``kind`` is one of those above. ``writers``: how many captured steps have written it."""

    __slots__ = ("array", "kind", "number", "owner", "path", "writers")
    number: int
    array: np.ndarray
    kind: str
    path: str
    owner: Any
    writers: int

    def __init__(self, number: int, array: np.ndarray, kind: str, path: str = "", owner: Any = None):
        self.number, self.array, self.kind, self.path, self.owner, self.writers = number, array, kind, path, owner, 0

    @property
    def nbytes(self) -> int:
        """Return the buffer's size in bytes."""
        return self.array.nbytes

    def __repr__(self) -> str:
        return f"{ {'state': 's', 'argument': 'a', 'temporary': 't', 'constant': 'c'}.get(self.kind, 'f') }{self.number}"


class Use:
    """A part of a buffer as a kernel's operand: ``size`` elements from a byte offset on."""

    __slots__ = ("buffer", "dtype", "offset", "size")
    buffer: Buffer
    offset: int
    size: int
    dtype: np.dtype[Any]

    def __init__(self, buffer: Buffer, offset: int, size: int, dtype: np.dtype):
        self.buffer, self.offset, self.size, self.dtype = buffer, offset, size, dtype

    @property
    def end(self) -> int:
        """Return the byte behind the last one."""
        return self.offset + self.size * self.dtype.itemsize

    @property
    def whole(self) -> bool:
        """Return whether it is all of its buffer."""
        return self.offset == 0 and self.end == self.buffer.nbytes

    def array(self) -> np.ndarray:
        """Return the memory as it is now."""
        return self.buffer.array.view(np.uint8)[self.offset : self.end].view(self.dtype)

    def key(self) -> tuple[Any, ...]:
        """Return what tells the use from others."""
        return self.buffer.number, self.offset, self.size, self.dtype.str

    def __repr__(self) -> str:
        return f"{self.buffer!r}" + (f"+{self.offset}" if self.offset else "")


class Step:
    """One launch: the kernel, its operands (`Use`, numbers, slots, tuples), which of them it writes, and the user's line.

    Of an argument that is a list of arrays each is an operand; `grouped` makes lists of them again. ``pinned``: the step is not to
    run earlier, as what it computes would take memory meanwhile. A step with a ``check`` has no kernel: Python looks at values
    and may raise; where all of ``passes`` hold it would not (see `launch.check`).
    """

    __slots__ = ("call", "check", "line", "operands", "passes", "pinned", "writes")
    call: Any
    operands: list[Any]
    writes: tuple[int, ...]
    line: Any
    check: Callable[..., Any] | None
    passes: tuple[Any, ...]
    pinned: bool

    def __init__(
        self, call: Any, operands: list[Any], writes: tuple[int, ...], line: Any, check: Callable[..., Any] | None = None, passes: tuple[Any, ...] = ()
    ):
        self.call, self.operands, self.writes, self.line, self.check, self.passes = call, operands, writes, line, check, passes
        self.pinned = False

    def copy(self) -> Step:
        """Return a step of its own over the same buffers."""
        operands = [Use(o.buffer, o.offset, o.size, o.dtype) if isinstance(o, Use) else o for o in self.operands]
        return Step(self.call, operands, self.writes, self.line, self.check, self.passes)

    @property
    def name(self) -> str:
        """Return the kernel's name."""
        return self.call.name if self.call is not None else "check"

    def uses(self) -> Iterator[tuple[Use, bool]]:
        """Yield (use, whether it is written) of every array operand."""
        for i, o in enumerate(self.operands):
            if isinstance(o, Use):
                yield o, i in self.writes

    # ---- operands by the names that the kernel gives to its arguments
    def runs(self, module: str, *names: str) -> bool:
        """Return whether it runs one of these hand-written kernels."""
        origin: tuple[Any, ...] = getattr(self.call, "origin", ())
        return self.check is None and origin[:2] == ("kernel", module) and origin[2] in names

    def position(self, argument: str) -> int:
        """Return the place among the operands of the kernel's argument of this name; KeyError where it has none."""
        names, types = argument_names(self.call.origin), self.call.origin[-1]
        if argument not in names:
            raise KeyError(f"the kernel {self.name} has no argument {argument!r}; it has: {', '.join(names)}")
        before = types[: names.index(argument)]
        lists = sum(t.startswith("[") for t in types)
        more = (len(self.operands) - len(types)) // lists if lists else 0
        return len(before) + more * sum(t.startswith("[") for t in before)

    def argument(self, name: str) -> Any:
        """Return the operand that is the kernel's argument of this name (no list)."""
        return self.operands[self.position(name)]

    def with_arguments(self, **operands: Any) -> Step:
        """Return the same launch with other operands, by the names of the kernel's arguments."""
        mine = list(self.operands)
        for name, value in operands.items():
            mine[self.position(name)] = value
        return Step(self.call, mine, self.writes, self.line, self.check, self.passes)


_PARAMETERS = re.compile(r"^def \w+\((.*?)\):", re.MULTILINE | re.DOTALL)


@cache
def argument_names(origin: tuple[Any, ...]) -> tuple[str, ...]:
    """Return the names that a kernel gives to its arguments: those in its own signature. ``origin``: as `launch` tells it."""
    if origin[0] == "kernel":
        names = compilation.parameters(compilation.written(origin[1], origin[2]))
    else:
        parameters = _PARAMETERS.findall(origin[1])[-1]  # (what stands before are the functions that it calls)
        names = tuple(n.strip() for n in parameters.split(",") if n.strip())
    if len(names) != len(origin[-1]):
        raise TypeError(f"a kernel with the arguments {', '.join(names)} is called with {len(origin[-1])}")
    return names


def grouped(operands: Sequence[Any], argtypes: Sequence[str]) -> list[Any]:
    """Return a step's operands as the arguments that its kernel takes. All lists of a call are of one length."""
    lists = sum(t.startswith("[") for t in argtypes)
    if not lists:
        return list(operands)
    more, rest = divmod(len(operands) - len(argtypes), lists)
    if rest:
        raise ValueError("lists of arrays of different lengths")
    found = iter(operands)
    return [list(islice(found, more + 1)) if t.startswith("[") else next(found) for t in argtypes]


# ------------------------------------------------------------------------------------------------ questions about steps


def written(step: Step, more: Collection[int] = ()) -> Iterator[Use]:
    """Return what a step writes of arguments and state, and of the buffers ``more``."""
    for u, writes in step.uses():
        if writes and (u.buffer.kind in ("state", "argument") or u.buffer.number in more):
            yield u


def changes(step: Step) -> bool:
    """Return whether a step writes to arguments or state."""
    return any(True for _ in written(step))


def users(steps: Iterable[Step]) -> dict[int, list[tuple[int, bool]]]:
    """Return, for each buffer, the places of the steps that use it, and whether they write it, in order."""
    found: dict[int, list[tuple[int, bool]]] = {}
    for i, step in enumerate(steps):
        for u, writes in step.uses():
            found.setdefault(u.buffer.number, []).append((i, writes))
    return found


def needed(steps: Sequence[Step], wanted: Collection[int], given: Collection[int] = (), effects: bool = True) -> list[Step]:
    """Return the steps that some buffers depend on, where ``given`` ones are there anyway.

    With ``effects`` also all checks and what writes memory that others see; without, only checks of what is needed.
    """
    alive = set(wanted) - set(given)
    kept = []
    for step in reversed(steps):
        uses = list(step.uses())
        if step.check is not None:
            if not effects and not any(u.buffer.number in alive for u, _ in uses):
                continue
        elif not any(w and (u.buffer.number in alive or (effects and u.buffer.kind in _SEEN)) for u, w in uses):
            continue
        kept.append(step)
        alive.update({u.buffer.number for u, _ in uses}.difference(given))
    return kept[::-1]


_SEEN = ("state", "argument", "foreign")


def show(step: Step) -> str:
    """Return a step as a line of text: what it writes ← the kernel of what it reads."""
    outs = [repr(o) for i, o in enumerate(step.operands) if i in step.writes]
    ins = [repr(o) if isinstance(o, Use) else str(plain_number(o)) for i, o in enumerate(step.operands) if i not in step.writes]
    return f"{', '.join(outs) or '-'} = {step.name}({', '.join(i for i in ins if len(i) < 40)})"


def written_at(step: Step) -> str:
    """Return the line of the user's program that a step came from, with its text; "" where there is none."""
    return place_of(*step.line) if isinstance(step.line, tuple) and step.line[0] is not None else ""


# ------------------------------------------------------------------------------------------------ programs and their rules


@dataclass(frozen=True, slots=True)
class Program:
    """Steps, and the numbers of temporaries that others know.

    ``live_out``: those that are read afterwards (results, gradients, what a backward pass reads). ``given``: those that hold
    something beforehand (what a forward pass has left for this program, or the caller feeds).
    """

    steps: Sequence[Step]
    live_out: frozenset[int] = frozenset()
    given: frozenset[int] = frozenset()

    @classmethod
    def captured(cls, steps: Sequence[Step], live_out: Collection[int]) -> Program:
        """Return a program as a run gives it: what it reads first, or leaves without writing it, was there beforehand."""
        defined: set[int] = set()
        given: set[int] = set()
        for step in steps:
            given.update(u.buffer.number for u, writes in step.uses() if not writes and u.buffer.number not in defined)
            defined.update(u.buffer.number for u, writes in step.uses() if writes)
        return cls(steps, frozenset(live_out), frozenset(given) | (frozenset(live_out) - defined))


class _Settings:
    """Whether programs are verified after every pass; tests switch it on, as does the environment."""

    verifies = os.environ.get("AUTOGRAD_NB_VERIFY", "0") not in ("", "0")


settings: _Settings = _Settings()


class InvalidProgram(RuntimeError):
    """A program breaks one of the rules of `verify`; the message names the step and the pass."""


class Outline:
    """An outline holds what a pass must leave as it is; it is noted beforehand, as passes rename buffers in place.

    ``user_memory``: the buffers of arguments and state that are written. ``checks``: Python's checks of values. ``order``: for
    each buffer the steps that use it, and whether they write it, in order.
    """

    user_memory: set[int]
    checks: list[Callable[..., Any]]
    steps: dict[int, Step]
    order: dict[int, dict[int, bool]]

    def __init__(self, steps: Sequence[Step]):
        self.user_memory = {u.buffer.number for s in steps for u in written(s)}
        self.checks = [s.check for s in steps if s.check is not None]
        self.steps = {id(s): s for s in steps}  # (kept, so that no other object gets one of these ids)
        self.order = _order(steps)


def _order(steps: Sequence[Step]) -> dict[int, dict[int, bool]]:
    found: dict[int, dict[int, bool]] = {}
    for step in steps:
        for u, writes in step.uses():
            mine = found.setdefault(u.buffer.number, {})
            mine[id(step)] = mine.get(id(step), False) or writes
    return found


def verify(program: Program, after: str = "", before: Outline | None = None) -> None:
    """Check a program against the rules; ``before``: also against what it was before the pass ``after``.

    1. A number names one buffer.
    2. A use lies within its buffer.
    3. Operands fit the kernel's arguments: in number, kind, dtype, length of tuples; an array holds all that its layout reaches.
    4. What is read has been written before, or was given.
    5. A step that reads and writes overlapping memory walks both in the same way, and no two of its outputs overlap, but for
       memory of the user's that a list names twice.
    6. What is live out is written, or was given.
    7. No check and no write to the user's memory is lost.
    8. Two steps of which one writes what the other uses stay in their order.

    Errors: InvalidProgram, which names the pass, the step and the rule that is broken.
    """
    place = f"after the pass {after}: " if after else ""
    defined: set[int] = set(program.given)
    buffers: dict[int, Buffer] = {}
    for i, step in enumerate(program.steps):
        where = f"{place}step {i} ({step.name})"
        for u, _ in step.uses():
            if buffers.setdefault(u.buffer.number, u.buffer) is not u.buffer:
                raise InvalidProgram(f"{where} uses another buffer that has the number of {u.buffer!r}")
            if u.offset < 0 or u.size < 0 or u.end > u.buffer.nbytes:
                raise InvalidProgram(f"{where} uses bytes {u.offset} to {u.end} of {u.buffer!r}, which has {u.buffer.nbytes}")
        if step.check is None:
            problem = _misfit(step) or _overlap(step)
            if problem:
                raise InvalidProgram(f"{where} {problem}")
        for u, writes in step.uses():
            if not writes and u.buffer.kind == "temporary" and u.buffer.number not in defined:
                raise InvalidProgram(f"{where} reads {u.buffer!r}, which nothing has written")
        defined.update(u.buffer.number for u, writes in step.uses() if writes)
    lost = program.live_out - defined - {n for n, b in buffers.items() if b.kind == "constant"}
    if lost:
        raise InvalidProgram(f"{place}nothing writes the buffers {sorted(lost)}, which are read after the program")
    if before is not None:
        _compare(program.steps, before, place)


def _misfit(step: Step) -> str:
    """Return how operands differ from what the kernel takes; empty where they fit."""
    origin = getattr(step.call, "origin", ())
    if origin:
        try:
            names, arguments = argument_names(origin), grouped(step.operands, origin[-1])
        except (TypeError, ValueError) as error:
            return str(error)
        if len(arguments) != len(names):
            return f"gives {len(arguments)} arguments to a kernel that takes {len(names)}"
        for name, argument, kind in zip(names, arguments, origin[-1], strict=True):
            if not _fits(argument, kind):
                return f"gives {argument!r} as the kernel's argument {name}, which is {kind}"
    for use, layout in _laid(step):
        if use.dtype != layout.dtype.carrier:
            return f"walks {use!r}, which holds {use.dtype}, as {layout.dtype}"
        if layout.extent > use.size:
            return f"reaches element {layout.extent - 1} of {use!r}, of which it uses {use.size}"
    return ""


def _fits(argument: Any, kind: str) -> bool:
    if kind.startswith("["):
        return isinstance(argument, list) and all(isinstance(u, Use) and f"[{u.dtype.name}]" == kind for u in argument)
    if kind.endswith("[:]"):
        return isinstance(argument, Use) and f"{argument.dtype.name}[:]" == kind
    if kind.startswith("("):
        return isinstance(argument, tuple) and f"({len(argument)})" == kind
    return not isinstance(argument, (Use, tuple, list))


def _laid(step: Step) -> Iterator[tuple[Use, Layout]]:
    """Yield the operands of which a recipe says how they are walked."""
    recipe = getattr(step.call, "recipe", None)
    if not hasattr(recipe, "in_layouts"):
        return
    operands = step.operands[getattr(recipe, "dims", True) :]
    layouts = iter(recipe.in_layouts)
    for spec, o in zip(recipe.inputs, operands, strict=False):
        if not spec.scalar:
            yield o, next(layouts)
    if step.call.over is None:
        yield from zip(operands[len(recipe.inputs) :], recipe.out_layouts, strict=True)


def _listed_twice(step: Step, use: Use) -> bool:
    """Return whether memory stands more than once in one list of a kernel's, which goes through its lists in order: the user's does."""
    origin = getattr(step.call, "origin", ())
    lists = [a for a in grouped(step.operands, origin[-1]) if isinstance(a, list)] if origin else []
    return use.buffer.kind in ("state", "argument") and any(sum(u.key() == use.key() for u in a) > 1 for a in lists)


def _overlap(step: Step) -> str:
    """Return how what a step writes lies over what else it uses; empty where it does not.

    A loop over elements may write an operand that it reads where it walks both alike; a hand-written kernel may not. Views that
    interleave have bytes between the same bounds in common, but no elements.
    """
    writes = [step.operands[i] for i in step.writes]
    reads = [u for u, written in step.uses() if not written]
    walks = {id(u): layout for u, layout in _laid(step)}
    by_hand = getattr(step.call, "origin", ())[:1] == ("kernel",)
    for k, w in enumerate(writes):
        if any(_meet(w, other) and w.key() == other.key() for other in writes[:k]) and not _listed_twice(step, w):
            return f"writes {w!r} twice"
        for r in (r for r in reads if _meet(w, r)):
            if id(w) in walks and id(r) in walks:
                clash = not _alike(w, walks[id(w)], r, walks[id(r)]) and _share_elements(w, walks[id(w)], r, walks[id(r)])
            else:
                clash = by_hand and r.key() == w.key()
            if clash:
                return f"writes {w!r} over {r!r}, which it reads"
    return ""


def _alike(a: Use, walk_a: Layout, b: Use, walk_b: Layout) -> bool:
    return a.offset == b.offset and a.dtype == b.dtype and walk_a.shape == walk_b.shape and walk_a.strides == walk_b.strides


def _share_elements(a: Use, walk_a: Layout, b: Use, walk_b: Layout) -> bool:
    memory = np.zeros(a.buffer.nbytes, bool)
    for use, layout, mark in ((a, walk_a, True), (b, walk_b, False)):
        item = use.dtype.itemsize
        strides = (*[s * item for s in layout.strides], 1)
        bytes_ = np.lib.stride_tricks.as_strided(memory[use.offset :], (*layout.shape, item), strides)
        if mark:
            bytes_[...] = True
        elif bytes_.any():
            return True
    return False


def _meet(a: Use, b: Use) -> bool:
    return a.buffer is b.buffer and a.offset < b.end and b.offset < a.end


def _compare(steps: Sequence[Step], before: Outline, place: str) -> None:
    """Check the rules about what a pass must keep."""
    lost = before.user_memory - {u.buffer.number for s in steps for u in written(s)}
    if lost:
        raise InvalidProgram(f"{place}nothing writes the user's memory {sorted(lost)} any more")
    checks = [s.check for s in steps if s.check is not None]
    if any(c not in checks for c in before.checks):
        raise InvalidProgram(f"{place}a check of values is lost")
    names = {id(s): f"step {i} ({s.name})" for i, s in enumerate(steps)}
    for number, mine in _order(steps).items():
        then = before.order.get(number, {})
        places = {step: k for k, step in enumerate(then)}
        last_use = last_write = -1
        for step, writes in mine.items():
            at = places.get(step, -1)
            if at < 0 or then[step] is not writes:
                continue
            if at < (last_use if writes else last_write):
                raise InvalidProgram(f"{place}{names[step]} comes after one that waited for it to use buffer {number}")
            last_use = max(last_use, at)
            last_write = max(last_write, at) if writes else last_write
