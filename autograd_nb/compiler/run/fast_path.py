"""The fast path of a captured step: what `Variant.run` does, for the commonest kind, with everything looked up beforehand.

It serves programs that are one native segment and whose results are new memory, gradients or the user's own tensors. What is as
the last run left it is not done again: numbers that are read anew, gradients that nobody has taken. Results are new memory.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from enum import Enum
from typing import Any, NamedTuple

import numpy as np

from ... import launch
from ...codegen.build import compilation
from ...overriding import whole
from ...tensor import make
from ..guards.memory_words import Watch, held_alone
from ..ir import address
from ..lower import driver
from ..lower.executable import Refused
from .records import AnyResult, ArgumentResult, GradientResult, Memory, NewResult, be_view


class Source(Enum):
    """The kinds of source that a result has: a tensor in new memory, an argument, a gradient, or a tensor of the function's state."""

    NEW = 0
    ARGUMENT = 1
    GRADIENT = 2
    STATE = 3


NEW, ARGUMENT, GRADIENT, STATE = Source


class Result(NamedTuple):
    """A result, and how it is made. ``which``: the number of the memory, the argument or the gradient, or the tensor itself."""

    source: Source
    which: Any
    offset: int = 0  #: elements from the memory's beginning
    layout: Any = None
    version: int = 0
    view: tuple[Any, ...] = ()  #: how it is a view of what nobody else has, see `records.NewResult`


def build_fast_path(variant: Any, live: Collection[tuple[int, str]]) -> Callable[[Any, list[Any]], Any] | None:
    """Return a function of a variant and the argument tensors that runs that variant, or None where that is of another kind.

    It does not hold the variant, which holds it: so a function that is dropped is freed at once. ``live``: the entries of parameter
    groups (id of the group, name) that are read anew.
    """
    memories = _new_memories(variant) if _is_common(variant) else None
    if memories is None:
        return None
    results = [_result(output, memories) for output in variant.outputs]
    return _runner(variant, memories, results, _binding(variant, memories), _Numbers(variant, live))


def _is_common(variant: Any) -> bool:
    """Return whether a program is one native segment that needs no undoing, nor both reads a gradient and leaves another one for it."""
    program, begun = variant.program, {id(h.leaf) for h in variant.initial.held}
    if (variant.back is not None and variant.back.lives) or variant.sharing or program.undone:
        return False
    if any(id(g.leaf) in begun for g in variant.gradients):
        return False
    return len(program.segments) == 1 and program.segments[0].__class__ is tuple


def _new_memories(variant: Any) -> list[Memory] | None:
    """Return the memory of new results; None where some is shared, or a result is a view of an argument."""
    found: list[Memory] = []
    for output in variant.outputs:
        if isinstance(output, NewResult):
            if output.memory.buffer not in variant.program.cells or output.memory in found:
                return None
            found.append(output.memory)
        elif isinstance(output, ArgumentResult) and not output.whole:
            return None
    return found


def _result(output: AnyResult, memories: list[Memory]) -> Result:
    if isinstance(output, NewResult):
        return Result(NEW, memories.index(output.memory), output.offset, output.layout, output.version, (output.shared or ())[1:])
    if isinstance(output, ArgumentResult):
        return Result(ARGUMENT, output.argument)
    return Result(GRADIENT, output.number) if isinstance(output, GradientResult) else Result(STATE, output.tensor)


# ------------------------------------------------------------------------------------------------ what a run needs


class _Binding(NamedTuple):
    """A binding writes addresses into a program's cells: ``bind(values, cells, shifts, array, …)``, arguments' arrays first."""

    bind: Callable[..., None] | None
    arguments: list[int]
    cells: np.ndarray
    shifts: np.ndarray


def _binding(variant: Any, memories: list[Memory]) -> _Binding:
    cells = variant.program.cells
    read = [i for i, a in enumerate(variant.arguments) if a.buffer is not None and a.buffer in cells]
    arguments = [variant.arguments[i] for i in read]
    carriers = [*(a.layout.dtype.carrier for a in arguments), *(m.carrier for m in memories)]
    into = [cells[b] for b in [*(a.buffer for a in arguments), *(m.buffer for m in memories)]]
    shifts = [a.shift for a in arguments] + [0] * len(memories)
    bind = _binder([launch.argument_type(np.empty(0, c)) for c in carriers]) if carriers else None
    return _Binding(bind, read, np.array(into, np.int64), np.array(shifts, np.int64))


def _binder(types: list[str]) -> Callable[..., None]:
    """Return ``bind(values, cells, shifts, array, …)``, which puts the arrays' addresses, less the shifts, into cells of a table of values."""
    names = [f"a{k}" for k in range(len(types))]
    lines = "".join(f"    cells[places[{k}]] = {a}.ctypes.data - shifts[{k}]\n" for k, a in enumerate(names))
    source = f"def kernel(cells, places, shifts, {', '.join(names)}):\n{lines}"
    return compilation.build(source, "kernel", ("int64[:]", "int64[:]", "int64[:]", *types))


class _Gradients:
    """The gradients that a run leaves: the tensors of the last one, unless somebody else has them."""

    def __init__(self, variant: Any):
        self._held = [g for g in variant.gradients if g.buffer is not None]
        self._watch: Watch | None = None
        self.mine: Callable[[], bool] = bool  # whether all surely are those of the last run, and nobody else's

    def take(self, variant: Any) -> None:
        """Let each be a tensor that nobody has."""
        found = [variant._fresh_gradient(g) and held_alone(g) for g in self._held]
        self._watch = Watch([], [r for records in found for r in records]) if all(found) else None
        self.mine = bool if self._watch is None else self._watch.same

    def leave(self) -> None:
        """Put them in their places."""
        for g in self._held:
            g.leaf._grad = g.tensor


class _Numbers:
    """The numbers that a program reads anew. ``always``: whether at each run, as no guard sees all of their changes."""

    def __init__(self, variant: Any, live: Collection[tuple[int, str]]):
        program = variant.program
        self._values, self._doubles = program.values, program.values.view(np.float64)
        self._slots = [(cell, slot.read, argtype) for cell, slot, argtype in program._live]
        groups = [g for o in variant.reach.optimizers for g in o.param_groups]
        self._entries = [(g, name) for g in groups for name in g if (id(g), name) in live]
        self.always = bool(program.draws) or not all(variant.guard.sees(g) for g, _ in self._entries)

    def read(self, state: Any) -> None:
        """Write them, as they are now, into the program's cells; ``state``: see `variant.RunState`."""
        # (another thread that has changed a number says so before it gets here: what it says must not be lost)
        state.changed = not all(_settled(g.get(name)) for g, name in self._entries)
        try:
            for cell, read, argtype in self._slots:
                if argtype == "float64":
                    self._doubles[cell] = read()
                else:
                    self._values[cell] = driver.encode(read(), argtype)
        except BaseException:
            state.changed = True
            raise


def _settled(number: Any) -> bool:
    """Return whether it, or a tuple of it, cannot change in place as a tensor or a list can."""
    return number.__class__ in (float, int) or (number.__class__ is tuple and all(_settled(n) for n in number))


def _finisher(variant: Any, results: list[Result]) -> Callable[[Any, list[Any], list[Any]], Any]:
    """Return ``finish(variant, leaves, outs)``: what a run returns, of the argument tensors and the new memory."""
    back, gradients = variant.back, variant.gradients

    def finish(variant: Any, leaves: list[Any], outs: list[Any]) -> Any:
        found: list[Any] = []
        for source, which, offset, layout, version, view in results:
            if source is NEW:
                data = outs[which]
                t = make(data[offset:] if offset else data, layout, [version, 0])
                if view:
                    be_view(t, data, view)
                found.append(t)
            else:
                found.append(leaves[which] if source is ARGUMENT else gradients[which].tensor if source is GRADIENT else which)
        if back is not None:
            back.attach(variant, leaves, {}, found)
        return variant.rebuilt(found)

    return finish


# ------------------------------------------------------------------------------------------------ the run


def _runner(variant: Any, memories: list[Memory], results: list[Result], binding: _Binding, numbers: _Numbers) -> Callable[[Any, list], Any]:
    """Return the function of the variant and the argument tensors. What a run needs are its own variables."""
    program, back, finish = variant.program, variant.back, _finisher(variant, results)
    start, words = program.segments[0]
    table = np.array([program._records_at + 8 * start, words, program._values_at], np.int64)
    drive, resume, (bind, positions, cells, shifts) = driver.runner(address(table)), program.drive, binding
    values, draws, lock, busy = program.values, program.draws, program.lock, program.busy
    sizes = [(np.empty if m.size * m.carrier.itemsize < launch.BIG else launch.empty, m.size, m.carrier) for m in memories]
    taken = _Gradients(variant) if any(g.buffer is not None for g in variant.gradients) else None
    cleared = [g.leaf for g in variant.gradients if g.buffer is None]
    initial, grown = variant.initial, [(h.leaf, h.grows) for h in variant.initial.held if h.grows]
    begin = initial.binder(program.cells, values) if initial.held else None
    versions, written = variant.versions, [(i, a.written) for i, a in enumerate(variant.arguments) if a.written]
    always, read_numbers = numbers.always, numbers.read
    single = results[0] if len(results) == 1 and results[0].source is NEW and variant.single and not results[0].view else None
    _, which, offset, layout, version, _ = single or Result(NEW, 0)

    @whole
    def run(variant: Any, leaves: list[Any]) -> Any:
        mine = True
        with lock:
            if busy[0]:  # a signal handler has interrupted this very run
                raise Refused
            try:
                busy[0] = True
                if taken is not None and not taken.mine():
                    mine = False
                    taken.take(variant)
                if begin is not None:
                    begin()
                outs = [empty(size, carrier) for empty, size, carrier in sizes]
                if bind is not None:
                    bind(values, cells, shifts, *[leaves[i]._data for i in positions], *outs)
                for source, now in draws:
                    now[0], now[1] = source._next()
                if always or variant.state.changed:
                    read_numbers(variant.state)
                if drive():
                    resume(start, words)
            finally:
                busy[0] = False
        for counter, by in versions:
            counter[0] += by
        for i, by in written:
            leaves[i]._version_[0] += by
        for leaf, by in grown:
            leaf._grad._version_[0] += by
        for leaf in cleared:
            leaf._grad = None
        if not mine:
            taken.leave()
        if single is None:
            return finish(variant, leaves, outs)
        result = make(outs[which][offset:] if offset else outs[which], layout, [version, 0])  # (a call less)
        if back is not None:
            back.attach(variant, leaves, {}, [result])
        return result

    run.table = table  # type: ignore[attr-defined]  # what `drive` reads lives as long
    return run
