"""The fast path of a captured step: what `Variant.run` does, for the commonest kind, with everything looked up beforehand.

It serves programs whose results are new memory, gradients or the user's own tensors, and whose kernels one thread runs. What is as
the last run left it is not done again: numbers that are read anew, gradients that nobody has taken. Results are new memory.
"""

from __future__ import annotations

import _thread
from collections.abc import Callable, Collection, Sequence
from enum import Enum
from typing import Any, NamedTuple

import numpy as np

from ... import launch
from ...graph.node import tensor_lines, written
from ...graph.ownership import alone
from ...overriding import whole
from ...tensor import Tensor, blank, make
from ..addresses import writer
from ..capture.recorder import places
from ..guards.memory_words import held_alone
from ..guards.watch import Watch
from ..ir import Step, address
from ..lower import driver
from ..lower.executable import Refused
from .again import Before
from .records import AnyResult, ArgumentResult, GradientResult, Memory, NewResult, be_view
from .serving import around_lines, test_lines
from .single import call_lines, draw_lines, memory_lines, single_lines

OTHER = object()  #: what ``call`` returns where the program does not serve


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


def build_fast_path(variant: Any, live: Collection[tuple[int, str]]) -> None:
    """Give a variant, if it is of that kind, functions of it and the arguments: ``fast_path`` runs it, ``call`` does so where it serves.

    They do not hold the variant, which holds them: so a function that is dropped is freed at once. ``live``: the entries of parameter
    groups (id of the group, name) that are read anew.
    """
    memories = _new_memories(variant) if _is_common(variant) else None
    if memories is None:
        return
    results = [_result(output, memories) for output in variant.outputs]
    found = _run_lines(variant, memories, results, _Numbers(variant, live))
    if found is None:
        return
    lines, names = found
    variant.state.fast_path = whole(written("run", "variant, args", lines, __file__, **names))
    count = len(variant.arguments)
    fits = [f"len(args) != {count}" if count else "args", *(f"args[{k}].__class__ is not Tensor" for k in range(count))]
    test, used = test_lines(variant, "return OTHER")
    around, thread = around_lines(variant, "return OTHER")
    head = [*around, f"if {' or '.join(fits)}:", "    return OTHER", *test]
    names = thread | used | names
    if variant.touched:  # where there are other threads, none of them adds to those gradients meanwhile
        head = ["if not held and _threads():", "    return _alone(_touched, variant.state.call, variant, args, True)", *head]
        names |= {"_threads": _thread._count, "_alone": alone, "_touched": variant.touched}
    variant.state.call = whole(written("call", "variant, args, held=False", head + lines, __file__, OTHER=OTHER, Tensor=Tensor, **names))


def _is_common(variant: Any) -> bool:
    """Return whether a program needs no undoing, and does not both read a gradient and leave another one for it."""
    program, begun = variant.program, {id(h.leaf) for h in variant.initial.held}
    if variant.sharing or not program.repeatable:
        return False
    if any(id(g.leaf) in begun for g in variant.gradients):
        return False
    return bool(program.segments) and all(s.__class__ is tuple or (s.__class__ is Step and s.check is None) for s in program.segments)


def _new_memories(variant: Any) -> list[Memory] | None:
    """Return the memory of new results, and what is left for a backward pass; None where results share some, or are views of an argument."""
    found: list[Memory] = []
    for output in variant.outputs:
        if isinstance(output, NewResult):
            if output.memory.buffer not in variant.program.cells or output.memory in found:
                return None
            found.append(output.memory)
        elif isinstance(output, ArgumentResult) and not output.whole:
            return None
    return found if variant.back is None else [*found, *(m for m in variant.back.saved if m not in found)]


def _result(output: AnyResult, memories: list[Memory]) -> Result:
    if isinstance(output, NewResult):
        return Result(NEW, memories.index(output.memory), output.offset, output.layout, output.version, (output.shared or ())[1:])
    if isinstance(output, ArgumentResult):
        return Result(ARGUMENT, output.argument)
    return Result(GRADIENT, output.number) if isinstance(output, GradientResult) else Result(STATE, output.tensor)


# ------------------------------------------------------------------------------------------------ what a run needs


class _Gradients:
    """The gradients that a run leaves: the tensors of the last one, unless somebody else has them."""

    def __init__(self, variant: Any):
        self._held = [g for g in variant.gradients if g.buffer is not None]
        self._watch: Watch | None = None
        self.mine: Callable[[], bool] = bool  # whether all surely are those of the last run, and nobody else's

    def take(self, variant: Any) -> None:
        """Let each be a tensor that nobody has."""
        self.mine = bool  # what was watched may be gone by the time that this is broken off
        found = [variant._fresh_gradient(g) and held_alone(g) for g in self._held]
        self._watch = Watch([], [r for records in found for r in records]) if all(found) else None
        self.mine = bool if self._watch is None else self._watch.same

    def leave(self) -> None:
        """Put them in their places."""
        for g in self._held:
            g.leaf._grad = g.tensor


class _Numbers:
    """The numbers that a program reads anew. ``always``: whether at each run, as no guard sees all of their changes; ``any``:
    whether there are any."""

    def __init__(self, variant: Any, live: Collection[tuple[int, str]]):
        program = variant.program
        self._values, self._doubles = program.values, program.values.view(np.float64)
        self._slots = [(cell, slot.read, argtype) for cell, slot, argtype in program._live]
        groups = [g for o in variant.reach.optimizers for g in o.param_groups]
        self._entries = [(g, name) for g in groups for name in g if (id(g), name) in live]
        self.always = bool(program.draws) or not all(variant.guard.sees(g) for g, _ in self._entries)
        self.any = bool(self._slots or self._entries)

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


def _maker(results: list[Result], gradients: list[Any]) -> Callable[[Sequence[Any], list[Any]], list[Any]]:
    """Return ``made(leaves, outs)``: the results of a run, of the argument tensors and the new memory."""

    def made(leaves: Sequence[Any], outs: list[Any]) -> list[Any]:
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
        return found

    return made


# ------------------------------------------------------------------------------------------------ the run


def _run_lines(variant: Any, memories: list[Memory], results: list[Result], numbers: _Numbers) -> tuple[list[str], dict[str, Any]] | None:
    """Return the lines that run a program with the ``args`` of ``variant``, and the names that they use, or None. What a run needs are its
    variables."""
    program = variant.program
    names: dict[str, Any] = {
        "program": program, "resume": program.drive, "Refused": Refused,
        "lock": program.lock, "busy": program.busy, "back": variant.back, "empty": np.empty, "aligned": launch.empty,
    }  # fmt: skip
    if variant.back is not None and variant.back.lives:
        names["Before"] = Before
    lines = single_lines(variant, memories, names)
    if lines is None:
        kernels = _kernel_lines(variant, memories, names)
        if kernels is None:
            return None
        inside = [*_before_lines(variant, memories, numbers, names), *kernels]
        lines = [
            *(["changes = variant.state.changes", "before = None if changes is None else Before(changes, args)"] if "Before" in names else []),
            "with lock:",
            "    if busy[0]:  # a signal handler has interrupted this very run",
            "        raise Refused",
            "    try:",
            "        busy[0] = True",
            *["        " + line for line in inside],
            "    finally:",
            "        busy[0] = False",
        ]
    lines += _after_lines(variant, names)
    single = results[0] if len(results) == 1 and results[0].source is NEW and variant.single and not results[0].view else None
    outs = [f"o{k}" for k in range(len(memories))]
    if single is None:
        names["made"] = _maker(results, variant.gradients)
        lines.append(f"found = made(args, [{', '.join(outs)}])")
    else:  # (a call less)
        names |= {"layout": single.layout, "_new": blank}
        memory = f"o{single.which}[{single.offset}:]" if single.offset else f"o{single.which}"
        lines += [f"data = {memory}", *tensor_lines("layout", f"[{single.version}, 0]")]
    if variant.back is not None:
        left = f"{{{', '.join(f'{m.buffer}: {o}' for m, o in zip(memories, outs, strict=True))}}}"
        found = "found" if single is None else "(t,)"
        lines.append(f"back.attach(variant, args, {left}, {found}{', drawn, before' if variant.back.lives else ''})")
    return [*lines, "return t" if single is not None else "return variant.rebuilt(found)"], names


def _kernel_lines(variant: Any, memories: list[Memory], names: dict[str, Any]) -> list[str] | None:
    """Return the lines that run the kernels; None where Python cannot have the arrays that it calls one with."""
    program, lines = variant.program, []
    for k, segment in enumerate(program.segments):
        if segment.__class__ is tuple:
            start, words = segment
            table = np.array([program._records_at + 8 * start, words, program._values_at], np.int64)
            names |= {f"drive{k}": driver.runner(address(table)), f"table{k}": table}
            lines += [f"if drive{k}():", f"    resume({start}, {words})"]
        else:
            call = call_lines(variant, segment, memories, names, f"k{k}")
            if call is None:
                return None
            lines += call
    return lines


def _before_lines(variant: Any, memories: list[Memory], numbers: _Numbers, names: dict[str, Any]) -> list[str]:
    """Return what is to be done before the kernels: gradients, new memory, addresses, random numbers, numbers that may have changed."""
    program, lines = variant.program, []
    if any(g.buffer is not None for g in variant.gradients):
        names["taken"] = _Gradients(variant)
        lines += ["mine = taken.mine()", "if not mine:", "    taken.take(variant)"]
    if variant.initial.held:
        names["begin"] = variant.initial.binder(program.cells, program.values)
        lines.append("begin()")
    lines += memory_lines(memories, names)
    cells = program.cells
    given = [(f"args[{i}]._data", cells[a.buffer], a.shift) for i, a in enumerate(variant.arguments) if a.buffer in cells]
    written_to = [*given, *((f"o{k}", cells[m.buffer], 0) for k, m in enumerate(memories) if m.buffer in cells)]
    if written_to:
        arrays, into, shifts = zip(*written_to, strict=True)
        names["bind"] = writer(program.values, into, shifts)
        lines.append(f"bind({', '.join(arrays)})")
    lines += draw_lines(program, names)
    if variant.back is not None and variant.back.lives:
        names |= {"draws": program.draws, "places": places}
        lines.append(f"drawn = {'places(draws)' if program.draws else '[]'}")
    names["read_numbers"] = numbers.read
    if numbers.always:
        lines.append("read_numbers(variant.state)")
    elif numbers.any:
        lines += ["if variant.state.changed:", "    read_numbers(variant.state)"]
    return lines


def _after_lines(variant: Any, names: dict[str, Any]) -> list[str]:
    """Return what is to be done after the kernels: versions grow, gradients are put in their places."""
    lines = []
    if variant.versions:
        names["versions"] = variant.versions
        lines += ["for counter, by in versions:", "    counter[0] += by"]
    lines += [f"args[{i}]._version_[0] += {a.written}" for i, a in enumerate(variant.arguments) if a.written]
    grown = [(h.leaf, h.grows) for h in variant.initial.held if h.grows]
    if grown:
        names["grown"] = grown
        lines += ["for leaf, by in grown:", "    leaf._grad._version_[0] += by"]
    cleared = [g.leaf for g in variant.gradients if g.buffer is None]
    if cleared:
        names["cleared"] = cleared
        lines += ["for leaf in cleared:", "    leaf._grad = None"]
    if "taken" in names:
        lines += ["if not mine:", "    taken.leave()"]
    return lines
