"""Capturing the backward pass of a call's results: a program for each section of the graph behind them."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import strides
from ..graph.node import Output
from ..shapes import Layout
from ..tensor import Tensor, edge, make
from .capture.effects import watching
from .capture.recorder import Capture, Problem
from .capture.sections import Key, Section, behind, divide, gradients
from .capture.unasked import State, own_rules
from .guards.guard import build_guard
from .guards.places import TooMuch
from .guards.reach import Reach
from .ir import Buffer, Step, address, needed
from .lower.executable import Executable
from .passes.pipeline import optimize
from .run.backward import Back, Part, Rules, Run, SpentPart, back_of, spent_class
from .run.records import ArgumentExit, Exit, ExpandedGradient, Gradient, Memory, NewGradient, PartExit, SameGradient, StateExit

if TYPE_CHECKING:
    from .session import Session


class Derivatives:
    """This is what a `Session` knows of the backward pass of its results, while it is captured."""

    session: Session
    capture: Capture
    flat: list[Tensor]
    forward: list[Step]
    state: State
    made: set[int]

    def __init__(self, session: Session, flat: list[Tensor], forward: list[Step], ends: dict[int, int], state: State):
        self.session, self.capture, self.flat, self.forward, self.state = session, session.capture, flat, forward, state
        self.ends = ends  # ids of the nodes that stand before arguments with a graph of their own -> which argument
        self.made = {u.buffer.number for s in forward for u, writes in s.uses() if writes}
        self.incoming: dict[Key, Layout] = {}  # what gradients that come in look like
        self.places: dict[Key, tuple[int, int]] = {}  # the section and slot where they do
        self.read: dict[int, Buffer] = {}  # what the section at hand reads

    def back(self) -> Back | None:
        """Return the backward pass of those results that require grad and are no arguments or state; None if there are none."""
        session = self.session
        mine = {id(t) for t in (*session.before.reached, *session.leaves)}
        which = [i for i, t in enumerate(self.flat) if t._rg and id(t) not in mine]
        if not which:
            return None
        if any(self.flat[i]._edge is None for i in which):
            raise Problem("it makes a leaf that requires grad; call requires_grad_() on the result, outside")
        if any(edge(self.flat[i]) is None for i in which):
            raise Problem("its result is a view, made without recording, of what requires grad; return what it is a view of")
        roots: list[Key] = []
        for i in which:
            e = edge(self.flat[i])
            roots.append((e.node, e.index) if e.__class__ is Output else (e, 0))
            self.incoming[roots[-1]] = strides.like(self.flat[i]._layout)
        self.state.before(behind(roots, self.ends, session.before.began))
        with self._watching():
            sections = divide(roots, self.ends, session.before.began)
        self.places = {key: (k, slot) for k, s in enumerate(sections) for key, slot in s.slots.items()}
        before = [(t, t._grad) for t in (*session.before.reached, *session.leaves)]
        parts = [self._part(s) for s in sections]
        if any(t._grad is not g for t, g in before):
            raise Problem("the backward pass of its results sets gradients")
        live = [p for p in parts if isinstance(p, Part)]
        checked = [{id(t) for t in p.state} | {id(session.leaves[i]) for i in p.given} for p in live]
        known = set.intersection(*checked) if checked else set()  # a change of these is refused whichever part runs
        read = {u.buffer.number for s in self.forward for u, _ in s.uses() if u.buffer.kind in ("state", "argument")}
        reads = [t for t in session.before.reached if id(t) not in known and self.capture.buffer_of(t._data).number in read]
        known |= {id(t) for t in session.before.reached}
        given = [i for i, t in enumerate(session.leaves) if id(t) not in known and self.capture.buffer_of(t._data).number in read]
        results = [(i, *self.places[key]) for i, key in zip(which, roots, strict=True)]
        return back_of(parts, results, [s.signature() for s in sections], reads, given)

    def _part(self, section: Section) -> Part | SpentPart:
        exits = [self._target(key) for key in section.exits]
        if not section.alive:
            node = next((n for n in section.nodes if n.consumed is not None), section.nodes[0])
            return SpentPart(len(section.slots), exits, spent_class(node, tuple([e.tensor for e in exits if isinstance(e, StateExit)])))
        slots = list(section.slots)
        self.read = {}
        whole, found = self._run(section, slots)
        for key, g in zip(section.exits, found, strict=True):
            if g is not None and key in self.places:
                self.incoming.setdefault(key, strides.like(g._layout))
        single = [self._run(section, [key])[0] if key in self.incoming else None for key in slots] if section.uneven else []
        session, saved = self.session, {id(c) for n in section.nodes for c in n.counters()}
        watched, leaves = {id(t) for t in session.before.reached}, {id(t) for t in session.leaves}
        return Part(
            len(slots), exits, whole, single, self._arguments(),
            state=list({id(t._version_): t for t in session.before.reached if id(t._version_) in saved}.values()),
            given=[i for i, t in enumerate(session.leaves) if id(t._version_) in saved and id(t) not in watched],
            made=[i for i, t in enumerate(self.flat) if id(t._version_) in saved and id(t) not in watched | leaves],
            rules=self._rules(section),
        )  # fmt: skip

    def _rules(self, section: Section) -> Rules | None:
        """Return what tells whether the user's own rules in a section read what they read now; None where there are none."""
        own = own_rules(section.nodes)
        if not own:
            return None
        session = self.session
        read, others = Reach(), session.reach.anew()
        others.pass_by(own)
        try:
            for rule in own:
                read.function(rule)
            others.function(session.function)
        except TooMuch as error:
            raise Problem(f"the backward pass of its results calls a rule of which no guard can be made: {error}") from error
        return Rules(build_guard(read), build_guard(others))

    def _arguments(self) -> list[tuple[int, int, int]]:
        """Return (index, buffer, shift) of the arguments whose memory the section at hand reads."""
        found: dict[int, tuple[int, int, int]] = {}
        for i, t in enumerate(self.session.leaves):
            b = self.capture.buffer_of(t._data)
            if b.kind == "argument" and b.number in self.read:
                found.setdefault(b.number, (i, b.number, address(t._data) - address(b.array)))
        return list(found.values())

    def _target(self, key: Key) -> Exit:
        node, index = key
        if index >= 0:
            return ArgumentExit(self.ends[id(node)]) if id(node) in self.ends else PartExit(*self.places[key])
        number = next((i for i, a in enumerate(self.session.leaves) if a is node), None)
        if number is None and id(node) not in self.session.reach.tensors:
            raise Problem("its result depends on a tensor that requires grad and cannot be found from the function")
        return StateExit(node) if number is None else ArgumentExit(number)

    def _run(self, section: Section, given: Collection[Key]) -> tuple[Run, tuple[Any, ...]]:
        """Return the program for gradients that come in at some slots, and the gradients that it makes of ones."""
        capture = self.capture
        first = len(capture.steps)
        seeds: list[Tensor | None] = []
        into: list[tuple[int, int, Layout]] = []
        for slot, key in enumerate(section.slots):
            layout = self.incoming.get(key) if key in given else None
            if layout is None:
                seeds.append(None)
                continue
            seed = make(np.ones(max(layout.size, 1), layout.dtype.carrier), layout, [0, 0])
            seeds.append(seed)
            into.append((slot, capture.buffer_of(seed._data, "argument", "an incoming gradient").number, layout))
        with self._watching():
            found = gradients(section, seeds, create_graph=False)
        steps = capture.steps[first:]
        specs, fresh = self._specs(found, into, seeds)
        steps = needed(steps, fresh)
        mine = {u.buffer.number for s in steps for u, writes in s.uses() if writes}
        read = {u.buffer.number: u.buffer for s in steps for u, _ in s.uses()}
        saved = [b for n, b in read.items() if n in self.made and b.kind == "temporary"]
        if any(b.number in mine for b in saved) or any(b.kind == "temporary" and n not in mine | self.made for n, b in read.items()):
            raise Problem("the backward pass of its results works in memory of the forward pass")
        self.read |= read
        keep = [Memory(b.number, b.array.size, b.array.dtype) for b in saved]
        steps = optimize(steps, fresh, self.session.numbers)
        program = Executable(steps, [], fresh, {n for n, *_ in keep} | {n for _, n, _ in into})
        return Run(into, specs, keep, program), found

    @contextmanager
    def _watching(self) -> Iterator[None]:
        """Watch rules run. Problem where a program cannot do the same."""
        capture = self.capture
        try:
            with watching(capture, (), self.session.reach.codes):
                yield
        except Exception as error:
            if not capture.problems:
                raise Problem(f"the backward pass of its results raises {type(error).__name__}") from error
        if capture.problems:
            raise capture.problems[0]

    def _specs(self, found: tuple[Any, ...], into: list[tuple[Any, ...]], seeds: list[Tensor | None]) -> tuple[list[Gradient], set[int]]:
        """Return how a run tells of the gradients that it has made, and the buffers of those."""
        owner = {buffer: k for k, (_, buffer, _) in enumerate(into)}
        buffers = [None if g is None else self.capture.buffer_of(g._data) for g in found]
        numbers = [b.number for b in buffers if b is not None]
        specs: list[Gradient] = []
        for g, b in zip(found, buffers, strict=True):
            if g is None or b is None:
                specs.append(None)
                continue
            offset, alike = (address(g._data) - address(b.array)) // g._data.itemsize, b.array.dtype == g._data.dtype
            if b.number in owner and g._layout is into[owner[b.number]][2]:
                specs.append(SameGradient(owner[b.number]))
            elif b.number in owner and alike:
                specs.append(ExpandedGradient(owner[b.number], offset, g._layout))
            elif b.kind == "temporary" and alike and b.number not in self.made:
                memory = Memory(b.number, b.array.size, b.array.dtype)
                specs.append(NewGradient(memory, offset, g._layout, alone=numbers.count(b.number) == 1))
            else:
                raise Problem("a gradient shares memory with the function's state")
        return specs, {g.memory.buffer for g in specs if isinstance(g, NewGradient)}
