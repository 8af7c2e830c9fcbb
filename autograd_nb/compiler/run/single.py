"""Kernels of a program that are called as eager calls do: a single one, without a table of records, addresses to be written or a lock; and
those that only Python can call, between the others."""

from __future__ import annotations

from typing import Any

import numpy as np

from ... import launch
from ..ir import Step, Use
from ..live_numbers import _Slot, plain_number
from ..lower import driver
from .records import Memory


def memory_lines(memories: list[Memory], names: dict[str, Any]) -> list[str]:
    """Return the lines that set ``o0``, ``o1``, …: the memory of new results; they use ``names``."""
    lines = []
    names |= {"empty": np.empty, "aligned": launch.empty}
    for k, m in enumerate(memories):
        names[f"carrier{k}"] = m.carrier
        lines.append(f"o{k} = {'empty' if m.size * m.carrier.itemsize < launch.BIG else 'aligned'}({m.size}, carrier{k})")
    return lines


def draw_lines(program: Any, names: dict[str, Any]) -> list[str]:
    """Return the lines that take the random numbers' places of a run; they use ``names``."""
    if len(program.draws) == 1:
        names |= dict(zip(("source", "now"), program.draws[0], strict=True))
        return ["now[0], now[1] = source._next()"]
    names["draws"] = program.draws
    return ["for source, now in draws:", "    now[0], now[1] = source._next()"] if program.draws else []


def single_lines(variant: Any, memories: list[Memory], names: dict[str, Any]) -> list[str] | None:
    """Return the lines that run the program of one kernel on the ``args`` of ``variant``, and add what they use to ``names``.

    None where there are several, temporaries, gradients, or lists of arrays, and where threads share its work. A program with these
    writes addresses where all its runs look for them, so that one has to wait for the other.
    """
    program = variant.program
    if len(program.steps) != 1 or program.arena_bytes or variant.initial.held or any(g.buffer is not None for g in variant.gradients):
        return None
    if program.shared or (variant.back is not None and variant.back.lives):
        return None
    call = call_lines(variant, program.steps[0], memories, names, "k")
    if call is None:
        return None
    return [*memory_lines(memories, names), *draw_lines(program, names), *call]


def call_lines(variant: Any, step: Step, memories: list[Memory], names: dict[str, Any], name: str) -> list[str] | None:
    """Return the lines that call a step's kernel by itself, and add what they use to ``names``, where all begins with ``name``.

    None where an argument is no array that Python has or can make beforehand, or a list of arrays, for a test of values, which has no kernel, and
    where none is compiled.
    """
    if step.check is not None or driver.compilation.disabled():
        return None
    program, entry = variant.program, step.call.entry
    foreign = getattr(entry, "foreign", False)
    kinds = [""] * len(step.operands) if foreign else driver.compilation.native(entry)[1]
    if len(kinds) != len(step.operands):
        return None
    given = {a.buffer: (i, a) for i, a in enumerate(variant.arguments) if a.buffer is not None}
    new = {m.buffer: (k, m) for k, m in enumerate(memories)}
    lines, texts, used = [], [], {name: entry}
    for n, (o, kind) in enumerate(zip(step.operands, kinds, strict=True)):
        text = f"{name}_{n}"
        texts.append(text)
        if isinstance(o, _Slot):
            used[text] = o.read
            texts[-1] = f"float({text}())" if kind == "float64" else f"{text}()"
        elif isinstance(o, tuple) and any(isinstance(v, _Slot) for v in o):
            return None
        elif not isinstance(o, Use):
            used[text] = plain_number(o)
        elif o.buffer.number in new:
            k, memory = new[o.buffer.number]
            if o.offset or o.size != memory.size or not _alike(o, memory.carrier, foreign):
                return None
            texts[-1] = f"o{k}"
        elif o.buffer.number in given:
            i, a = given[o.buffer.number]
            if o.offset != a.shift or not _alike(o, a.layout.dtype.carrier, foreign):
                return None
            lines += [f"{text} = args[{i}]._data", f"if {text}.size != {o.size}:  # memory may go on behind it", f"    {text} = {text}[:{o.size}]"]
        elif o.buffer.number in program.fixed:
            return None
        else:
            used[text] = program.view(o)
    names |= used
    return [*lines, f"{name}({', '.join(texts)})"]


def _alike(use: Use, carrier: np.dtype[Any], foreign: bool) -> bool:
    """Return whether a kernel may be given an array of this dtype; those that are compiled look only at where it lies."""
    return use.dtype == carrier if foreign else use.dtype.itemsize == carrier.itemsize
