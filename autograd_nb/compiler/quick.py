"""The quick way to run a captured step: what `Variant.run` does, for the commonest kind, with everything looked up beforehand.

It serves programs that are one native segment and whose results are new memory, gradients or the user's own tensors. Addresses
of arguments and results are written by one small compiled function.
"""

from __future__ import annotations

from collections.abc import Callable
from sys import getrefcount
from typing import Any

import numpy as np

from .. import launch
from ..codegen import build
from ..tensor import make
from . import native


def _binder(types: list[str]) -> Callable[..., None]:
    """``bind(cells, places, shifts, array, …)`` puts the arrays' addresses, less the shifts, into the cells at the places."""
    names = [f"a{k}" for k in range(len(types))]
    lines = "".join(f"    cells[places[{k}]] = {a}.ctypes.data - shifts[{k}]\n" for k, a in enumerate(names))
    source = f"def kernel(cells, places, shifts, {', '.join(names)}):\n{lines}"
    return build.build(source, "kernel", ("int64[:]", "int64[:]", "int64[:]", *types))


def quick(variant: Any) -> Callable[[list], Any] | None:
    """A function of the argument tensors that runs the variant, or None where it is of another kind."""
    program = variant.program
    if variant.back is not None or len(program.segments) != 1 or program.segments[0].__class__ is not tuple:
        return None
    if (
        variant.held
        or variant.sharing
        or sum(kind == "new" for kind, *_ in variant.outputs) != len({s[0] for kind, *s in variant.outputs if kind == "new"})
    ):
        return None
    new: dict[int, tuple[int, Any]] = {}
    for kind, *spec in variant.outputs:
        if kind == "new":
            new.setdefault(spec[0], (spec[1], spec[2]))
            if spec[1] * spec[2].itemsize >= launch.BIG:
                return None
        elif kind == "argument" and not spec[3]:
            return None
    positions = [i for i, a in enumerate(variant.arguments) if a.buffer is not None and a.buffer in program.cells]
    fresh = [(n, size, carrier) for n, (size, carrier) in new.items() if n in program.cells]
    if len(fresh) != len(new):
        return None
    arguments = [variant.arguments[i] for i in positions]
    places = np.array([program.cells[a.buffer] for a in arguments] + [program.cells[n] for n, _, _ in fresh] or [0], np.int64)
    shifts = np.array([a.shift for a in arguments] + [0] * len(fresh) or [0], np.int64)
    types = [launch.argument_type(np.empty(0, a.layout.dtype.carrier)) for a in arguments]
    types += [launch.argument_type(np.empty(0, carrier)) for _, _, carrier in fresh]
    bind = _binder(types) if types else None
    values, draws, live = program.values, program.draws, program._live
    drive, records, values_at = program._drive, program._records_at, program._values_at
    start, words = program.segments[0]
    records += 8 * start
    gradients, written = variant.gradients, [(i, a.written) for i, a in enumerate(variant.arguments) if a.written]
    cleared = [g[0] for g in gradients if g[2] is None]
    held = [g for g in gradients if g[2] is not None]
    versions = variant.versions
    order = {n: k for k, (n, _, _) in enumerate(fresh)}
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
    sizes = [(size, carrier) for _, size, carrier in fresh]
    kinds = [(cell, slot.read, argtype) for cell, slot, argtype in live]
    doubles = values.view(np.float64)
    lock, empty, encode = program.lock, np.empty, native.encode

    def run(leaves: list) -> Any:
        with lock:
            for g in held:
                tensor = g[1]
                # references: the list, the leaf's slot, the local name, getrefcount's argument
                if (
                    tensor is None or getrefcount(tensor) > (4 if g[0]._grad is tensor else 3) or getrefcount(tensor._data) > 3
                ):  # (its slot, the program)
                    variant._fresh_gradient(g)
            outs = [empty(size, carrier) for size, carrier in sizes]
            if bind is not None:
                bind(values, places, shifts, *[leaves[i]._data for i in positions], *outs)
            for source, now in draws:
                now[0], now[1] = source._next()
            for cell, read, argtype in kinds:
                if argtype == "float64":
                    doubles[cell] = read()
                else:
                    values[cell] = encode(read(), argtype)
            if drive(records, words, values_at):
                for i, n in zip(positions, arguments, strict=True):
                    program.memory[n.buffer] = leaves[i]._data
                program.drive(start, words)
        for counter, by in versions:
            counter[0] += by
        for i, by in written:
            leaves[i]._version_[0] += by
        for leaf in cleared:
            leaf._grad = None
        for g in held:
            g[0]._grad = g[1]
        if single is not None:
            data = outs[single[0]]
            return make(data[single[1] :] if single[1] else data, single[2], [single[3], 0])
        results: list[Any] = []
        for kind, which, offset, layout, count in recipe:
            if kind == 0:
                data = outs[which]
                results.append(make(data[offset:] if offset else data, layout, [count, 0]))
            else:
                results.append(leaves[which] if kind == 1 else gradients[which][1] if kind == 2 else which)
        return variant.rebuilt(results)

    return run
