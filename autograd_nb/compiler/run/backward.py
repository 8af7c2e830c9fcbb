"""The backward pass of a compiled call: the nodes that its results have in the user's graph, and the programs that these run.

The graph behind the results is divided into parts (see `sections`), and each part is one node. Most parts run a program. Those
of which the function itself has used up a node, by a backward pass or by changing what it had saved, are `Spent`: a pass that
needs them is refused as the eager one is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple
from weakref import ref

import numpy as np

from ... import launch
from ...graph import engine
from ...graph.node import LEAVES, Node, Output, changed, here, sequence, set_edges
from ...graph.ownership import OURS, share
from ...ops.core.recording import tensor_type
from ...ops.creation.cast import relaid
from ...ops.creation.create import new_full
from ...shapes import Layout
from ...tensor import Tensor, edge, make
from ..addresses import writer
from ..guards.guard import Guard
from ..lower.executable import Executable
from .again import Before, Call
from .records import ArgumentExit, Exit, Gradient, Memory, NewGradient, PartExit, SameGradient, StateExit


@dataclass(frozen=True, slots=True)
class Run:
    """A program that makes gradients of some incoming ones."""

    seeds: list[tuple[int, int, Layout]]  #: (slot, buffer, layout) of what comes in
    gradients: list[Gradient]  #: for each exit of the part
    saved: list[Memory]  #: what the forward pass leaves for it
    program: Executable
    writers: dict[Any, Any] = field(default_factory=dict)  #: what writes where arrays begin, by the buffers and shifts that calls have left

    def __call__(self, frame: Frame, numbers: Any, gs: Any) -> list[Any]:
        incoming = []
        for slot, _, layout in self.seeds:
            g = gs[slot]
            if g is None:  # then others reach every node of the part, see `sections`: nothing is added to what they bring
                g = new_full(layout.shape, 0, layout.dtype)
            incoming.append(_lying(g, layout))
        made = {m.buffer: launch.empty(m.size, m.carrier) for m in self._memories()}
        with self.program.alone() as program:
            self._writer(program, frame.places)(*incoming, *frame.bound, *made.values())
            program.run(numbers)
        return [self._gradient(g, gs, incoming, made) for g in self.gradients]

    def _memories(self) -> Iterable[Memory]:
        """Return the new memory of a run."""
        return {g.memory.buffer: g.memory for g in self.gradients if isinstance(g, NewGradient)}.values()

    def _writer(self, program: Executable, places: tuple[tuple[int, int], ...]) -> Callable[..., Any]:
        """Return what writes where the arrays begin that come in, those that the call has left (buffer, shift) and new ones."""
        if program is self.program and places in self.writers:
            return self.writers[places]  # type: ignore[no-any-return]
        pairs = [*((buffer, 0) for _, buffer, _ in self.seeds), *places, *((m.buffer, 0) for m in self._memories())]
        found = writer(program.values, [program.cells.get(b, program.nowhere) for b, _ in pairs], [shift for _, shift in pairs])
        if program is self.program:
            self.writers[places] = found
        return found

    def _gradient(self, how: Gradient, gs: Any, incoming: list[Any], made: dict[int, np.ndarray]) -> Any:
        if isinstance(how, NewGradient):
            data = made[how.memory.buffer]
            return make(data[how.offset :] if how.offset else data, how.layout, [0, OURS if how.alone else 0])
        if isinstance(how, SameGradient):
            return gs[self.seeds[how.which][0]]
        return None if how is None else make(incoming[how.which][how.offset :], how.layout, [0, 0])


def _lying(g: Any, layout: Layout) -> np.ndarray:
    """Return the memory of an incoming gradient, in that layout; it has no gaps."""
    if g.dtype is not layout.dtype:
        g = g.to(layout.dtype)
    if g._layout is not layout and not (layout.contiguous and g._layout.contiguous):
        g = relaid(g, layout)
    return g._data[: layout.size]  # type: ignore[no-any-return]


def _turned(g: Any, layout: Layout) -> bool:
    """Return whether a gradient has its dims in another order in memory, without gaps."""
    return g is not None and g._layout is not layout and not (layout.contiguous and g._layout.contiguous) and g._layout.extent == layout.size


class Rules(NamedTuple):
    """Guards of what the user's own rules in a part read, and of what all other code of the function does."""

    read: Guard
    others: Guard


@dataclass(frozen=True, slots=True, eq=False)
class SpentPart:
    """A part of the graph behind the results that cannot be run, as the function itself has used up a node of it."""

    slots: int
    exits: list[Exit]
    node: type[Spent]  #: the class of its node

    runs: ClassVar[list[Run]] = []


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """A part of the graph behind the results, as one node: where its gradients go, and how they are computed."""

    slots: int
    exits: list[Exit]
    whole: Run
    single: list[Run | None]  #: a run for each slot by itself, where a missing gradient is another answer than one of zeros
    arguments: list[tuple[int, int, int]]  #: (index, buffer, shift) of those whose memory it reads

    # what must not have changed when it runs
    state: list[Tensor]
    given: list[int]  #: arguments
    made: list[int]  #: results

    rules: Rules | None  #: of the user's own, that it stands for

    left: list[int] = field(init=False)  #: the buffers that the call leaves for it
    places: tuple[tuple[int, int], ...] = field(init=False)  #: (buffer, shift) of those, and of the arguments that it reads

    def __post_init__(self) -> None:
        left = list({m.buffer: None for r in self.runs for m in r.saved})
        object.__setattr__(self, "left", left)
        object.__setattr__(self, "places", (*((buffer, 0) for buffer in left), *((buffer, shift) for _, buffer, shift in self.arguments)))

    @property
    def runs(self) -> list[Run]:
        """Return all its programs."""
        return [self.whole, *[r for r in self.single if r is not None]]

    def run(self, frame: Frame, gs: Any) -> list[Any]:
        """Return the gradients at the exits for those of the slots, of which at least one is there."""
        if not self.single or all(gs[slot] is not None for slot, _, _ in self.whole.seeds):
            return self.whole(frame, frame.numbers[0], gs)
        total: list[Any] = [None] * len(self.exits)
        for k, (run, g) in enumerate(zip(self.single, gs, strict=True)):
            if g is None or run is None:
                continue
            number = 1 + sum(r is not None for r in self.single[:k])
            for i, value in enumerate(run(frame, frame.numbers[number], gs)):
                if value is not None:
                    total[i] = value if total[i] is None else engine.merge(total[i], value)
        return total


class Frame:
    """A frame is what a call leaves for the backward pass of one part. ``bound``: the memory of all that it reads, for its `places`."""

    __slots__ = ("bound", "call", "numbers", "places", "read")
    call: Call
    bound: list[np.ndarray]
    numbers: list[Any]
    places: tuple[tuple[int, int], ...]
    read: list[Layout]

    def __init__(self, call: Call, bound: list[np.ndarray], places: tuple[tuple[int, int], ...], numbers: list[Any], read: list[Layout]):
        self.call, self.bound, self.places, self.numbers, self.read = call, bound, places, numbers, read


class CompiledFunctionBackward(Node):
    """A part of a compiled function in the graph."""

    __slots__ = ("outputs", "part")

    several = for_many = True
    part: Part

    def saved_arrays(self) -> list[tuple[Any, ...]]:
        read = [] if self.saved is None else self.saved.read
        return [(layout.shape, tensor_type(layout.dtype), None) for layout in read]

    def run(self, g: Any) -> tuple[Any, ...]:
        for value in g:  # it may be passed on, whole or in part, to several
            if value is not None:
                share(value)
        part, frame = self.part, self.saved
        if part.rules is not None and part.rules.read() >= 0:  # they would do something else by now
            return frame.call.by_rules(part, g, part.rules.others)  # type: ignore[no-any-return]
        found = part.run(frame, g)
        if any(_turned(g[slot], layout) for slot, _, layout in part.whole.seeds):
            found = frame.call.turned(part, g, found)
        return tuple(found)

    def run_graph(self, g: Any) -> tuple[Any, ...]:
        return self.saved.call.again(self.part, g)


class Spent(Node):
    """The node of a part that the function itself has used up. What it holds is held by its class, once for all calls."""

    __slots__ = ()

    described: tuple[Any, ...] = ()

    def saved_arrays(self) -> list[tuple[Any, ...]]:
        return list(self.described)


def spent_class(node: Node, edges: tuple[Any, ...]) -> type[Spent]:
    """Return the kind of a node that is consumed, or has saved what has changed since; ``edges``: those that all calls have."""
    consumed, versions, stamp = node.consumed, [0], 0
    described: tuple[Any, ...] = ()
    if consumed is None and node.versions:
        counters = node.counters()
        which, stamp = changed(counters, node.stamp)
        versions = [counters[which][0]]
        described = tuple((shape, kind, None) for shape, kind, _ in node.saved_arrays()[which : which + 1])
    what = {
        "consumed": consumed, "versions": versions, "stamp": stamp, "described": described, "edges": edges, "saved": None,
        "hooks": None, "edge_kind": LEAVES, "code": node.code, "lasti": node.lasti, "seq": sequence(), "__slots__": (),
    }  # fmt: skip
    return type(node.name(), (Spent,), what)


@dataclass(frozen=True, slots=True, eq=False)
class Back:
    """The backward pass of a program's results; `back_of` makes it."""

    parts: list[Part | SpentPart]
    results: list[tuple[int, int, int]]  #: (index of the result, part, slot)
    signature: list[Any]  #: tells whether another run makes the same graph

    # what the forward pass reads and whose changes do not make every backward pass an error
    reads: list[Tensor]
    reads_given: list[int]  #: arguments

    # what follows from these
    lives: bool  #: whether any of it can be run
    ends: set[int]  #: the arguments that get gradients
    saved: list[Memory]  #: what the forward pass leaves for all parts
    live: list[list[Executable]]  #: the programs of each part
    simple: type[Spent] | None  #: the class of the only result's node, where a call has nothing to add to it

    def attach(
        self, variant: Any, leaves: list[Tensor], made: dict[int, np.ndarray], results: list[Tensor],
        drawn: list[Any] | None = None, before: Before | None = None,
    ) -> None:  # fmt: skip
        """Give the results of a call their place in the graph. ``made``: the memory that the run has left; the rest: see `Call`."""
        if self.simple is not None:
            t = results[self.results[0][0]]
            t._edge, t._rg = self.simple(), True
            return
        call = Call(variant, leaves, drawn, before, made) if self.lives else None
        code, lasti = here(3)
        nodes: list[list[Any]] = [[]] * len(self.parts)  # the edges to each one's slots: every consumer's is the same object
        for k in range(len(self.parts) - 1, -1, -1):
            part = self.parts[k]
            node: Any
            if isinstance(part, SpentPart):
                node = part.node()
                node.seq = sequence()
            else:
                node = CompiledFunctionBackward()
                node.seq, node.code, node.lasti, node.consumed, node.hooks = sequence(), code, lasti, None, None
                node.part, node.outputs = part, part.slots
                self._save(node, self.live[k], call, leaves, made, results)
            set_edges(node, tuple([self._edge(e, leaves, nodes) for e in part.exits]))
            nodes[k] = [node if isinstance(part, SpentPart) else Output(node, slot) for slot in range(part.slots)]
            if call is not None:
                call.nodes.insert(0, ref(node))
        for i, k, slot in self.results:
            results[i]._edge, results[i]._rg = nodes[k][slot], True

    def _edge(self, target: Exit, leaves: list[Tensor], nodes: list[list[Any]]) -> Any:
        if isinstance(target, PartExit):
            return nodes[target.part][target.slot]
        return target.tensor if isinstance(target, StateExit) else edge(leaves[target.argument])

    def _save(self, node: Any, programs: list[Any], call: Any, leaves: list[Any], made: dict[Any, Any], results: list[Any]) -> None:
        part = node.part
        bound = [made[n] for n in part.left] + [leaves[i]._data for i, _, _ in part.arguments]
        read = [*part.state, *[leaves[i] for i in part.given], *[results[i] for i in part.made]]
        node.versions = tuple([t._version_ for t in read])
        node.stamp = sum([c[0] for c in node.versions])
        numbers = [p.numbers() if p._live else None for p in programs]
        node.saved = Frame(call, bound, part.places, numbers, [t._layout for t in read])


def back_of(
    parts: list[Part | SpentPart], results: list[tuple[int, int, int]], signature: list[Any], reads: list[Tensor], reads_given: list[int]
) -> Back:
    """Return the backward pass of results, of its parts."""
    first = parts[0]
    alone = isinstance(first, SpentPart) and len(parts) == len(results) == 1 and all(isinstance(e, StateExit) for e in first.exits)
    return Back(
        parts, results, signature, reads, reads_given,
        lives=any(isinstance(p, Part) for p in parts),
        ends={e.argument for p in parts for e in p.exits if isinstance(e, ArgumentExit)},
        saved=list({s.buffer: s for p in parts for r in p.runs for s in r.saved}.values()),
        live=[[r.program for r in p.runs] for p in parts],
        simple=first.node if alone else None,  # type: ignore[union-attr]
    )  # fmt: skip
