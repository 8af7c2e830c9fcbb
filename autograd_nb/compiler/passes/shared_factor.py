"""What a backward pass computes from values of the forward pass alone is computed there, where it shares work.

The derivative of GELU takes the same distribution function as GELU itself. The step of the forward pass then writes the factor
too, and the one of the backward pass reads that in place of the activation's input: as much memory, and half the work.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...codegen.formula.symbols import FLOATS, Sym, Trace, closure
from ...shapes import layout_of
from ..ir import Buffer, Step, Use
from .pointwise_step import Member, member, pointwise, walk

SHARED = 12  #: instructions that are saved where one more array written and read pays


def share_factors(steps: list[Step], live_out: Collection[int], numbers: Iterator[int]) -> list[Step]:
    """Return the steps, where what the forward pass can compute of a derivative along with its own result is a step's second output."""
    steps = list(steps)
    members = [member(s) for s in steps]
    writes: dict[int, list[int]] = {}
    reads: dict[int, list[int]] = {}
    for i, step in enumerate(steps):
        for u, written in step.uses():
            (writes if written else reads).setdefault(u.buffer.number, []).append(i)
    for j, consumer in enumerate(members):
        if consumer is None or consumer.step.call.over is not None:
            continue
        for buffer in {o.buffer.number: o.buffer for o, _ in consumer.inputs if isinstance(o, Use)}.values():
            if buffer.kind != "temporary" or buffer.number in live_out or any(i > j for i in reads[buffer.number]):
                continue  # it would be there as well as the factor
            i = min(reads[buffer.number])
            producer = members[i]
            if producer is None or i == j or producer.step.call.over is not None or producer.shape != consumer.shape:
                continue
            if any(w >= i for w in writes.get(buffer.number, ())) or any(i < r < j for r in reads[buffer.number]):
                continue
            found = _factor(producer, consumer, buffer)
            if found is None:
                continue
            first, second = found.split(next(numbers))
            steps[i], steps[j] = first, second
            members[i], members[j] = member(first), None
            break
    return steps


@dataclass
class _Factor:
    """A value that ``consumer`` needs and ``producer`` can compute: what it is in terms of ``inputs`` of consumer."""

    producer: Member
    consumer: Member
    mine: list[int]  # inputs of consumer that producer has too
    place: list[int]  # which of producer's they are
    trace: Trace
    symbols: list[Sym]  # consumer's inputs
    results: list[Sym]
    factor: Sym

    def split(self, number: int) -> tuple[Step, Step]:
        """Return the two steps, with a buffer between them."""
        producer, consumer = self.producer, self.consumer
        shape, dtype = consumer.shape, self.factor.dtype
        layout = layout_of(shape, None, consumer.outputs[0][1].dtype)
        assert layout.dtype.name == dtype
        stand_in = np.lib.stride_tricks.as_strided(np.empty(1, dtype), (max(layout.size, 1),), (0,))
        between = Use(Buffer(number, stand_in, "temporary"), 0, layout.size, np.dtype(dtype))
        formula = producer.step.call.recipe.formula

        def first(*xs: Any) -> list[Any]:
            known = {
                self.symbols[k].name: xs[p].cast(self.symbols[k].dtype) for k, p in zip(self.mine, self.place, strict=True)
            }
            return [*formula(*xs), replay([self.factor], known, xs[0].trace)[0]]

        rest = [k for k in range(len(consumer.inputs)) if k not in self.mine]

        def second(*xs: Any) -> list[Any]:
            known = {self.symbols[k].name: x for k, x in zip(rest, xs, strict=False)}
            known[self.factor.name] = xs[-1]
            return replay(self.results, known, xs[0].trace)

        name = producer.step.name
        outputs = [*producer.outputs, (between, layout, dtype)]
        one = pointwise(name, first, producer.inputs, producer.compute, outputs, producer.step.line)
        inputs = [*(consumer.inputs[k] for k in rest), (between, layout)]
        compute = [*(consumer.compute[k] for k in rest), dtype]
        return one, pointwise(consumer.step.name, second, inputs, compute, consumer.outputs, consumer.step.line)


def _factor(producer: Member, consumer: Member, buffer: Buffer) -> _Factor | None:
    """Return what of ``consumer`` depends on ``buffer`` alone, if that is one value and shares enough with ``producer``."""
    touched = _arrays(producer) + _arrays(consumer)
    if any(layout.dtype.name not in FLOATS for _, layout in touched) or len(consumer.outputs) != 1:
        return None
    given = {walk(o, layout, producer.shape): p for p, (o, layout) in enumerate(producer.inputs) if isinstance(o, Use)}
    mine, place = [], []
    for k, (o, layout) in enumerate(consumer.inputs):
        if isinstance(o, Use) and o.buffer is buffer:
            w = walk(o, layout, consumer.shape)
            if w not in given:
                return None
            mine.append(k)
            place.append(given[w])
    if len(mine) == len(consumer.inputs) or any(producer.compute[p] != consumer.compute[k] for p, k in zip(place, mine, strict=True)):
        return None
    trace = Trace(next((c for c in consumer.compute if c != "bool"), "float32"))
    first = [trace.input(f"e{p}", c) for p, c in enumerate(producer.compute)]
    try:
        list(producer.step.call.recipe.formula(*first))
        before = len(trace.instructions)
        twins = dict(zip(mine, place, strict=True))
        symbols = [first[twins[k]] if k in twins else trace.input(f"l{k}", c) for k, c in enumerate(consumer.compute)]
        results = [trace.as_sym(v) for v in consumer.step.call.recipe.formula(*symbols)]
    except Exception:  # a formula that does not run on these symbols
        return None
    own = {symbols[k].name for k in mine}
    alone = _dependent(results, own)
    cut = {
        a.name: a for s in closure(results) if s.name not in alone for a in s.args if isinstance(a, Sym) and a.name in alone
    }
    shared = Counter(s.name in alone for s in trace.instructions[:before] if s.op not in ("input", "constant"))[True]
    if len(cut) != 1 or shared < SHARED:
        return None
    (factor,) = cut.values()
    if factor.dtype != consumer.outputs[0][2] or factor.op == "input":
        return None
    return _Factor(producer, consumer, mine, place, trace, symbols, results, factor)


def _arrays(m: Member) -> list[tuple[Any, Any]]:
    return [(o, layout) for o, layout in m.inputs if isinstance(o, Use)] + [(u, layout) for u, layout, _ in m.outputs]


def _dependent(results: Sequence[Sym], inputs: set[str]) -> set[str]:
    """Return the names of what depends on these inputs (at least one) and on no others."""
    found: set[str] = set()
    for s in closure(results):
        if s.op == "input":
            if s.name in inputs:
                found.add(s.name)
        elif s.op != "constant":
            known = [a for a in s.args if isinstance(a, Sym) and a.op != "constant"]
            if known and all(a.name in found for a in known):
                found.add(s.name)
    return found


def replay(results: Sequence[Sym], known: dict[str, Sym], trace: Trace) -> list[Sym]:
    """Return the results written once more, in another trace; ``known``: symbols there in place of some here, by name."""
    made = dict(known)
    tables = results[0].trace.tables

    def write(s: Sym) -> Sym:
        if s.op == "constant":
            return trace.constant(s.args[1], s.dtype)
        args = tuple([made[a.name] if isinstance(a, Sym) else a for a in s.args])
        if s.op == "gather":
            args = (trace.table(*tables[s.args[0]]), *args[1:])
        return trace._emit(s.op, args, s.dtype)

    for s in closure(results, known):
        if s.name not in made:
            made[s.name] = write(s)
    return [made[s.name] for s in results]
