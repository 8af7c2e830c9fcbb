"""The quick way to run a captured step: what `Variant.run` does, for the commonest kind, with everything looked up beforehand.

It serves programs that are one native segment and whose results are new memory, gradients or the user's own tensors. What is as
the last run left it is not done again: numbers that are read anew, gradients that nobody has taken. Results are new memory.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

import numpy as np

from ... import launch
from ...codegen.build import compilation
from ...tensor import make
from ..guards.memory_words import Watch, held_alone
from ..ir import address
from ..lower import driver
from ..lower.program import Refused


def _binder(types: list[str]) -> Callable[..., None]:
    """``bind(cells, places, shifts, array, …)`` puts the arrays' addresses, less the shifts, into the cells at the places."""
    names = [f"a{k}" for k in range(len(types))]
    lines = "".join(f"    cells[places[{k}]] = {a}.ctypes.data - shifts[{k}]\n" for k, a in enumerate(names))
    source = f"def kernel(cells, places, shifts, {', '.join(names)}):\n{lines}"
    return compilation.build(source, "kernel", ("int64[:]", "int64[:]", "int64[:]", *types))


class _Gradients:
    """The gradients that a run leaves: the tensors of the last one, unless somebody else has them."""

    def __init__(self, variant: Any):
        self._variant = variant
        self._held = [g for g in variant.gradients if g[2] is not None]
        self._watch: Watch | None = None
        self.mine: Callable[[], bool] = bool  # whether all surely are those of the last run, and nobody else's

    def take(self) -> None:
        """Let each be a tensor that nobody has."""
        found = [self._variant._fresh_gradient(g) and held_alone(g) for g in self._held]
        self._watch = Watch([], [r for records in found for r in records]) if all(found) else None
        self.mine = bool if self._watch is None else self._watch.same

    def leave(self) -> None:
        """Put them in their places."""
        for g in self._held:
            g[0]._grad = g[1]


def _settled(number: Any) -> bool:
    """Whether it, or a tuple of it, cannot change in place as a tensor or a list can."""
    return number.__class__ in (float, int) or (number.__class__ is tuple and all(_settled(n) for n in number))


def quick(variant: Any, live: Collection[tuple[int, str]]) -> Callable[[list], Any] | None:
    """A function of the argument tensors that runs the variant, or None where it is of another kind. ``live``: the entries of parameter groups
    (id of the group, name) that are read anew."""
    program = variant.program
    back = variant.back
    if (back is not None and back.lives) or len(program.segments) != 1 or program.segments[0].__class__ is not tuple:
        return None
    if (
        variant.held
        or variant.sharing
        or program.undone
        or sum(kind == "new" for kind, *_ in variant.outputs) != len({s[0] for kind, *s in variant.outputs if kind == "new"})
    ):
        return None
    new: dict[int, tuple] = {}  # buffer -> (elements, dtype) of a result
    for kind, *spec in variant.outputs:
        if kind == "new":
            if spec[1] * spec[2].itemsize >= launch.BIG or spec[0] not in program.cells:
                return None
            new[spec[0]] = (spec[1], spec[2])
        elif kind == "argument" and not spec[3]:
            return None
    positions = [i for i, a in enumerate(variant.arguments) if a.buffer is not None and a.buffer in program.cells]
    arguments = [variant.arguments[i] for i in positions]
    places = np.array([program.cells[b] for b in [*(a.buffer for a in arguments), *new]], np.int64)
    shifts = np.array([a.shift for a in arguments] + [0] * len(new), np.int64)
    types = [launch.argument_type(np.empty(0, c)) for c in [*(a.layout.dtype.carrier for a in arguments), *(c for _, c in new.values())]]
    bind = _binder(types) if types else None
    values, draws = program.values, program.draws
    start, words = program.segments[0]
    table = np.array([program._records_at + 8 * start, words, program._values_at], np.int64)
    drive = driver.runner(address(table))
    gradients, written = variant.gradients, [(i, a.written) for i, a in enumerate(variant.arguments) if a.written]
    cleared = [g[0] for g in gradients if g[2] is None]
    taken = _Gradients(variant) if any(g[2] is not None for g in gradients) else None
    versions = variant.versions
    order = {n: k for k, n in enumerate(new)}
    memories = list(new.values())
    recipe = []
    for kind, *spec in variant.outputs:
        if kind == "new":
            recipe.append((0, order[spec[0]], spec[3], spec[4], spec[5]))
        elif kind == "argument":
            recipe.append((1, spec[0], 0, None, 0))
        elif kind == "gradient":
            recipe.append((2, spec[0], 0, None, 0))
        else:
            recipe.append((3, spec[0], 0, None, 0))
    single = recipe[0][1:] if len(recipe) == 1 and recipe[0][0] == 0 and variant.plain else None
    kinds = [(cell, slot.read, argtype) for cell, slot, argtype in program._live]
    groups = [(g, name) for o in variant.reach.optimizers for g in o.param_groups for name in g if (id(g), name) in live]
    # (numbers of random streams, and those that are not seen to change, are read each time)
    always = bool(draws) or not all(variant.guard.sees(g) for g, _ in groups)
    doubles = values.view(np.float64)
    lock, busy, encode, empty = program.lock, program.busy, driver.encode, np.empty

    def read_numbers() -> None:
        # (another thread that has changed a number says so before it gets here: what it says must not be lost)
        variant.changed = not all(_settled(g.get(name)) for g, name in groups)
        try:
            for cell, read, argtype in kinds:
                if argtype == "float64":
                    doubles[cell] = read()
                else:
                    values[cell] = encode(read(), argtype)
        except BaseException:
            variant.changed = True
            raise

    def run(leaves: list) -> Any:
        mine = True
        with lock:
            if busy[0]:  # a signal handler has interrupted this very run
                raise Refused
            try:
                busy[0] = True
                if taken is not None and not taken.mine():
                    mine = False
                    taken.take()
                outs = [empty(size, carrier) for size, carrier in memories]
                if bind is not None:
                    bind(values, places, shifts, *[leaves[i]._data for i in positions], *outs)
                for source, now in draws:
                    now[0], now[1] = source._next()
                if always or variant.changed:
                    read_numbers()
                if drive():
                    program.drive(start, words)
            finally:
                busy[0] = False
        for counter, by in versions:
            counter[0] += by
        for i, by in written:
            leaves[i]._version_[0] += by
        for leaf in cleared:
            leaf._grad = None
        if not mine:
            taken.leave()
        if single is not None:
            data = outs[single[0]]
            result = make(data[single[1] :] if single[1] else data, single[2], [single[3], 0])
            if back is not None:
                back.attach(variant, leaves, {}, [result])
            return result
        results: list[Any] = []
        for kind, which, offset, layout, count in recipe:
            if kind == 0:
                data = outs[which]
                results.append(make(data[offset:] if offset else data, layout, [count, 0]))
            else:
                results.append(leaves[which] if kind == 1 else gradients[which][1] if kind == 2 else which)
        if back is not None:
            back.attach(variant, leaves, {}, results)
        return variant.rebuilt(results)

    run.table = table  # type: ignore[attr-defined]  # what `drive` reads lives as long
    return run
