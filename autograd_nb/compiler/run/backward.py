"""The backward pass of a compiled call: the nodes that its results have in the user's graph, and the programs that these run.

The graph behind the results is divided into parts (see `sections`), and each part is one node. Most parts run a program. Those
of which the function itself has used up a node, by a backward pass or by changing what it had saved, are `Spent`: a pass that
needs them is refused as the eager one is.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ... import launch
from ...graph import engine
from ...graph.node import Node, Output, changed, here, sequence, set_edges
from ...graph.ownership import OURS, share
from ...ops.core.recording import tensor_type
from ...ops.creation.cast import dense
from ...ops.creation.create import new_full
from ...shapes import Layout
from ...tensor import Tensor, edge, make
from ..lower.executable import Executable
from .again import Before, Call
from .records import Memory


class Run:
    """A program that makes gradients of some incoming ones.

    ``seeds``: (slot, buffer, layout) of what comes in. ``gradients``, for each exit of the part: ("new", buffer, elements, dtype,
    offset, layout), ("seed", which), ("view", which, offset, layout) or None. ``saved``: what the forward pass leaves for it.
    """

    __slots__ = ("gradients", "program", "saved", "seeds")

    def __init__(self, seeds: list[tuple[int, int, Layout]], gradients: list[Any], saved: list[Memory], program: Executable):
        self.seeds, self.gradients, self.saved, self.program = seeds, gradients, saved, program

    def __call__(self, frame: Frame, numbers: Any, gs: Any) -> list[Any]:
        incoming = []
        for slot, _, layout in self.seeds:
            g = gs[slot]
            if g is None:  # then others reach every node of the part, see `sections`: nothing is added to what they bring
                g = new_full(layout.shape, 0, layout.dtype)
            incoming.append(dense(g if g.dtype is layout.dtype else g.to(layout.dtype)))
        made: dict[int, np.ndarray] = {}
        with self.program.alone() as program:
            for (_, buffer, _), g in zip(self.seeds, incoming, strict=True):
                program.bind(buffer, g._data if isinstance(g, Tensor) else g)
            for buffer, data, shift in frame.bound:
                program.bind(buffer, data, shift)
            for spec in self.gradients:
                if spec is not None and spec[0] == "new" and spec[1] not in made:
                    made[spec[1]] = launch.empty(spec[2], spec[3])
                    program.bind(spec[1], made[spec[1]])
            program.run(numbers)
        found: list[Any] = []
        taken = [spec[1] for spec in self.gradients if spec is not None and spec[0] == "new"]
        for spec in self.gradients:
            if spec is None:
                found.append(None)
            elif spec[0] == "seed":
                found.append(gs[self.seeds[spec[1]][0]])
            elif spec[0] == "view":
                found.append(make(incoming[spec[1]][spec[2] :], spec[3], [0, 0]))
            else:
                data = made[spec[1]]
                mine = OURS if taken.count(spec[1]) == 1 else 0
                found.append(make(data[spec[4] :] if spec[4] else data, spec[5], [0, mine]))
        return found


class Part:
    """A part of the graph behind the results, as one node: where its gradients go, and how they are computed.

    ``exits``: ("argument", index), ("state", tensor) or ("part", number, slot). ``spent``: instead of the rest, the class of
    the node of a part that cannot be run. ``single``: a run for each slot by itself, where a missing gradient is another answer
    than one of zeros.
    """

    def __init__(self, slots: int, exits: list[tuple[Any, ...]]):
        self.slots, self.exits = slots, exits
        self.spent: type[Spent] | None = None
        self.whole: Run
        self.single: list[Run | None] = []
        self.arguments: list[tuple[int, int, int]] = []  # (index, buffer, shift) of those whose memory it reads
        #: tensors, arguments and results that must not have changed when it runs
        self.state: list[Tensor] = []
        self.given: list[int] = []
        self.made: list[int] = []

    @property
    def runs(self) -> list[Run]:
        """Return all programs of the backward pass."""
        return [] if self.spent is not None else [self.whole, *[r for r in self.single if r is not None]]

    def run(self, frame: Frame, gs: Any) -> list[Any]:
        """The gradients at the exits for those of the slots, of which at least one is there."""
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
    """A frame is what a call leaves for the backward pass of one part. ``bound``: (buffer, memory, bytes before it) of all that
    it reads.
    """

    __slots__ = ("bound", "call", "numbers", "read")

    def __init__(self, call: Call, bound: list[tuple[Any, ...]], numbers: list[Any], read: list[Layout]):
        self.call, self.bound, self.numbers, self.read = call, bound, numbers, read


class CompiledFunctionBackward(Node):
    """A part of a compiled function in the graph."""

    __slots__ = ("outputs", "part")

    several = True
    part: Part

    def saved_arrays(self) -> list[tuple[Any, ...]]:
        read = [] if self.saved is None else self.saved.read
        return [(lay.shape, tensor_type(lay.dtype), None) for lay in read]

    def run(self, g: Any) -> tuple[Any, ...]:
        for value in g:  # it may be passed on, whole or in part, to several
            if value is not None:
                share(value)
        return tuple(self.part.run(self.saved, g))

    def run_graph(self, g: Any) -> tuple[Any, ...]:
        return self.saved.call.again(self.part, g)


class Spent(Node):
    """The node of a part that the function itself has used up. What it holds is held by its class, once for all calls."""

    __slots__ = ()

    described: tuple[Any, ...] = ()

    def saved_arrays(self) -> list[tuple[Any, ...]]:
        return list(self.described)


def spent_class(node: Node, edges: tuple[Any, ...]) -> type[Spent]:
    """The kind of a node that is consumed, or has saved what has changed since; ``edges``: those that all calls have."""
    consumed, versions, stamp = node.consumed, [0], 0
    described: tuple[Any, ...] = ()
    if consumed is None and node.versions:
        counters = node.counters()
        which, stamp = changed(counters, node.stamp)
        versions = [counters[which][0]]
        described = tuple((shape, kind, None) for shape, kind, _ in node.saved_arrays()[which : which + 1])
    what = {
        "consumed": consumed, "versions": versions, "stamp": stamp, "described": described, "edges": edges, "saved": None,
        "hooks": None, "plain": 1, "code": node.code, "lasti": node.lasti, "seq": sequence(), "__slots__": (),
    }  # fmt: skip
    return type(node.name(), (Spent,), what)


class Back:
    """The backward pass of a program's results. ``results``: (index of the result, part, slot)."""

    def __init__(self, parts: list[Part], results: list[tuple[int, int, int]], signature: list[Any]):
        self.parts, self.results, self.signature = parts, results, signature
        self.lives = any(p.spent is None for p in parts)  # whether any of it can be run
        self.observed = False  # whether another run makes this graph only where its launches are observed
        self.ends = {e[1] for p in parts for e in p.exits if e[0] == "argument"}
        #: tensors, and arguments, that the forward pass reads and whose changes do not make every backward pass an error
        self.reads: list[Tensor] = []
        self.reads_given: list[int] = []
        self.saved = list({s.buffer: s for p in parts for r in p.runs for s in r.saved}.values())
        self.live = [[r.program for r in p.runs] for p in parts]
        #: the class of the only result's node, where a call has nothing to add to it
        self.simple = parts[0].spent if len(parts) == len(results) == 1 and all(e[0] == "state" for e in parts[0].exits) else None

    def attach(
        self,
        variant: Any,
        leaves: list[Tensor],
        made: dict[int, np.ndarray],
        results: list[Tensor],
        drawn: list[Any] | None = None,
        before: Before | None = None,
    ) -> None:
        """Give the results of a call their place in the graph. ``made``: the memory that the run has left; the rest: see `Call`."""
        if self.simple is not None:
            t = results[self.results[0][0]]
            t._edge, t._rg = self.simple(), True
            return
        call = Call(variant, leaves, drawn, before) if self.lives else None
        code, lasti = here(3)
        nodes: list[list[Any]] = [[]] * len(self.parts)  # the edges to each one's slots: every consumer's is the same object
        for k in range(len(self.parts) - 1, -1, -1):
            part = self.parts[k]
            node: Any
            if part.spent is not None:
                node = part.spent()
                node.seq = sequence()
            else:
                node = CompiledFunctionBackward()
                node.seq, node.code, node.lasti, node.consumed, node.hooks = sequence(), code, lasti, None, None
                node.part, node.outputs = part, part.slots
                self._save(node, self.live[k], call, leaves, made, results)
            set_edges(node, tuple([self._edge(e, leaves, nodes) for e in part.exits]))
            nodes[k] = [node if part.spent is not None else Output(node, slot) for slot in range(part.slots)]
        for i, k, slot in self.results:
            results[i]._edge, results[i]._rg = nodes[k][slot], True

    def _edge(self, target: tuple[Any, ...], leaves: list[Tensor], nodes: list[list[Any]]) -> Any:
        kind, where, *slot = target
        if kind == "part":
            return nodes[where][slot[0]]
        return where if kind == "state" else edge(leaves[where])

    def _save(self, node: Any, programs: list, call: Any, leaves: list[Any], made: dict[Any, Any], results: list[Any]) -> None:
        part = node.part
        bound = [(n, made[n], 0) for n in {s[0]: None for r in part.runs for s in r.saved}]
        bound += [(buffer, leaves[i]._data, shift) for i, buffer, shift in part.arguments]
        read = [*part.state, *[leaves[i] for i in part.given], *[results[i] for i in part.made]]
        node.versions = tuple([t._version_ for t in read])
        node.stamp = sum([c[0] for c in node.versions])
        numbers = [p.numbers() if p._live else None for p in programs]
        node.saved = Frame(call, bound, numbers, [t._layout for t in read])
