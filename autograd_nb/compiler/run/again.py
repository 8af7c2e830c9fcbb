"""Derivatives of derivatives of compiled calls: the function runs again, from the state that the call began with."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from typing import Any
from weakref import ref

import numpy as np

from ... import launch, strides
from ...autograd.saved import unhooked
from ...dtypes import get_default_dtype
from ...graph import casting
from ...graph.modes import state
from ...graph.node import Output, sequence
from ...ops.creation.cast import relaid
from ...shapes import Layout
from ...tensor import Tensor, make
from ..capture.sections import gradients, graph_of, lead_to
from ..guards.carried_state import Kept
from ..guards.guard import Guard
from ..live_numbers import FloatSlot
from ..lower.executable import Executable
from ..nested import rebuild
from .restored import Launches, Restoring

SMALL = 16_384  #: bytes that are copied at each call, in case that another run needs them
MOST_TURNED = 16  #: orders of incoming gradients of which a captured call knows how those behind them lie


@dataclass(frozen=True, slots=True, eq=False)
class Changes:
    """Changes are what another run of a captured function begins from that may be otherwise by then, as the function or the
    user changes it; `changes_of` makes them."""

    memory: list[Tensor]  #: the tensors that it reaches whose values are kept,
    arguments: list[int]  #: and which of its arguments are
    others: list[Tensor]  #: what it reads and is not kept, as it is large
    other_arguments: list[int]
    counters: list[list[int]]  #: the version lists that grow
    held: list[Tensor]  #: leaves to whose gradients it adds
    left: list[Tensor]  #: all leaves whose gradient it sets or adds to, or that have none, which it has looked at
    some: list[Tensor]  #: leaves whose gradient it has looked at, not at the values
    places: list[Kept]  #: what is stored
    numbers: list[FloatSlot]  #: the live numbers that it reads
    launches: Launches  #: what it runs, and what of this the call leaves

    def whole(self) -> Changes:
        """Return the same call with large values kept too."""
        memory, arguments = self.memory + self.others, self.arguments + self.other_arguments
        return replace(self, memory=memory, arguments=arguments, others=[], other_arguments=[])


def changes_of(
    memory: list[Tensor], arguments: list[int], read: list[Tensor], read_arguments: list[tuple[int, Tensor]], counters: list[list[int]],
    held: list[Tensor], gradients: list[Tensor], some: list[Tensor], places: list[Kept], program: Executable, launches: Launches,
) -> Changes | None:  # fmt: skip
    """Return the changes of a function; None where there are none.

    ``memory``, ``arguments``: what it changes itself, ``read``, ``read_arguments``: what it reads and others may change. Of these small
    tensors are kept from the first call on.
    """
    known = {id(t) for t in memory}
    small, large, room = _by_size([(t, t) for t in read if id(t) not in known], SMALL)
    small_arguments, large_arguments, _ = _by_size([(i, t) for i, t in read_arguments if i not in arguments], room)
    left = list({id(leaf): leaf for leaf in (*gradients, *held)}.values())
    stored = list({k.place: k for k in places}.values())
    numbers = [slot for _, slot, _ in program._live if isinstance(slot, FloatSlot)]
    if not (known or arguments or small or large or small_arguments or large_arguments or counters or left or some or stored or numbers):
        return None
    return Changes(
        memory=memory + small, arguments=arguments + small_arguments, others=large, other_arguments=large_arguments,
        counters=counters, held=held, left=left, some=some, places=stored, numbers=numbers, launches=launches,
    )  # fmt: skip


def _by_size(tensors: list[tuple[Any, Tensor]], room: int) -> tuple[list[Any], list[Any], int]:
    """Return the names of those that go into ``room`` bytes, one after the other, of the rest, and the room that is left."""
    small, large = [], []
    for name, t in tensors:
        size = t._layout.extent * t._data.itemsize
        if size <= room:
            small.append(name)
            room -= size
        else:
            large.append(name)
    return small, large, room


class Before:
    """The state before a call, of all that the call changes, and of what it reads and others may change."""

    __slots__ = ("changes", "counters", "gradients", "memory", "numbers", "some")
    changes: Changes
    memory: list[tuple[np.ndarray, np.ndarray]]
    counters: list[tuple[list[int], int]]
    gradients: list[tuple[Tensor, Any, Any, Any]]
    numbers: list[Any]
    some: list[tuple[Tensor, Any]]

    def __init__(self, changes: Changes, leaves: list[Tensor]):
        kept = [*changes.memory, *[leaves[i] for i in changes.arguments]] if changes.arguments else changes.memory
        self.changes = changes
        self.memory = [_copied(t._data, t._layout.extent) for t in kept]
        self.counters = [(c, c[0]) for c in [*changes.counters, *[t._version_ for t in kept]]]
        self.gradients = [(t, t._grad._data.copy(), t._grad._layout, t._grad._version_[0]) for t in changes.held if t._grad is not None]
        self.some = [(t, t._grad) for t in changes.some]
        self.numbers = [slot.read() for slot in changes.numbers]

    def same_numbers(self) -> bool:
        """Return whether the live numbers are those of the call."""
        return self.numbers == [slot.read() for slot in self.changes.numbers]

    @contextmanager
    def again(self) -> Iterator[None]:
        """Let everything be as before the call within the context, and afterwards as it was."""
        leaves, places = self.changes.left, self.changes.places
        memory = [(data, data.copy()) for data, _ in self.memory]
        counters = [(c, c[0]) for c, _ in self.counters]
        grads = [(t, t._grad) for t in (*leaves, *self.changes.some)]
        left = [(k, k.get()) for k in places]
        try:
            for data, then in self.memory:
                data[...] = then
            for c, count in self.counters:
                c[0] = count
            for t in leaves:
                t._grad = None
            for t, data, layout, count in self.gradients:
                t._grad = make(data.copy(), layout, [count, 0])
            for t, g in self.some:
                t._grad = g
            yield
        finally:
            for data, now in memory:
                data[...] = now
            for c, count in counters:
                c[0] = count
            for t, g in grads:
                t._grad = g
            for k, value in left:
                k.set(value)


class Call:
    """One call of a compiled function, for derivatives of derivatives: these come of the function's own graph, made again."""

    __slots__ = ("before", "counts", "drawn", "graph", "large", "leaves", "left", "memory", "nodes", "variant")
    before: Before | None
    drawn: list[Any] | None
    variant: Any
    leaves: list[Tensor]
    counts: list[int]
    memory: list[np.ndarray]

    def __init__(self, variant: Any, leaves: list[Tensor], drawn: list[Any] | None, before: Before | None, made: dict[int, np.ndarray]):
        self.drawn, self.before = drawn, before  # where it found the random streams, and what it has changed
        self.variant = variant
        self.leaves = leaves if not variant.carried else [_apart(t, i, variant.back.ends) for i, t in enumerate(leaves)]
        self.large: list[Tensor] = []  # what it has read and not kept, and in which version
        self.left: dict[int, Any] = {}  # what it has left for its backward pass, as long as that holds it
        if before is not None and (before.changes.others or before.changes.other_arguments):
            self.large = [*before.changes.others, *[self.leaves[i] for i in before.changes.other_arguments]]
            self.left = {m.buffer: ref(made[m.buffer]) for m in variant.back.saved}
        self.counts = [t._version_[0] for t in self.large]
        self.memory = [t._data for t in leaves]
        self.graph: Any = None
        self.nodes: list[ref[Any]] = []  # of the parts, as `Back.attach` makes them

    def again(self, part: Any, gs: Any) -> tuple[Any, ...]:
        """Return the gradients at the exits of a part as functions of everything.

        What they read of results leads to the results' own nodes, so that a further pass meets the hooks there. RuntimeError for a function of
        which a second run would do something else than the first.
        """
        section, began = self._section(part, "create_graph=True", self.variant.guard), sequence()
        found = gradients(section, gs, create_graph=True)
        own = {key: Output(node, slot) for s, n in zip(self.graph, self.nodes, strict=True) if (node := n()) is not None for key, slot in s.slots.items()}
        lead_to(own, found, began, [n for s in self.graph for n in s.nodes])
        return found

    def by_rules(self, part: Any, gs: Any, others: Guard) -> tuple[Any, ...]:
        """Return the gradients at the exits of a part of which the user's rules have changed; ``others``: the guard of all other code.

        RuntimeError for a function of which a second run would do something else than the first, but for these rules.
        """
        return gradients(self._section(part, "a backward rule whose Python values have changed,", others), gs, create_graph=False)

    def _section(self, part: Any, what: str, guard: Guard) -> Any:
        """Return the graph behind a part, made again; ``what`` needs it."""
        if self.before is not None:  # others may follow
            self.variant.state.changes = self.before.changes.whole()
        if self.graph is None:
            self.graph = self._graph(what, guard)
        return self.graph[self.variant.back.parts.index(part)]

    def turned(self, part: Any, gs: Any, found: list[Any]) -> list[Any]:
        """Return the gradients that a part has ``found``, as they lie in memory in an eager pass.

        Of gradients that come in otherwise than the results lie; what becomes of that order is seen once, when the function runs again.
        """
        known = self.variant.state.turned
        key = (self.variant.back.parts.index(part), *[None if g is None else g._layout for g in gs])
        if key not in known:
            if len(known) == MOST_TURNED or self._refusal(self.variant.guard):
                return found
            try:
                graph = self._made(None)
                lying = None if graph is None else gradients(graph[key[0]], gs, create_graph=False)
            except Exception:  # it runs with values of now
                return found
            known[key] = None if lying is None else [None if g is None else strides.like(g._layout) for g in lying]
        layouts = known[key]
        if layouts is None:
            return found
        return [_relaid(g, layout) for g, layout in zip(found, layouts, strict=True)]

    def _refusal(self, guard: Guard) -> str:
        """Return why a second run would do something else; empty where it would not. ``guard``: of the values that it reads."""
        if self.drawn is None:
            return "that drew random numbers while another thread did"
        if any(t._data is not data for t, data in zip(self.leaves, self.memory, strict=True)):
            return "some of whose arguments have been given other memory since"
        if guard() >= 0 or (self.before is not None and not self.before.same_numbers()):
            return "that reads Python values which have changed since"
        return ""

    def _graph(self, what: str, guard: Guard) -> list[Any]:
        variant = self.variant
        why = self._refusal(guard)
        gone = [t for t, count in zip(self.large, self.counts, strict=True) if t._version_[0] != count]
        found = None
        if not why and variant.key[2][1] is get_default_dtype():
            if self.large and launch.observer() is None:
                found = self._restored(gone)
            if found is None and not gone:
                found = None if variant.state.observed else self._made(None)
                if found is None and launch.observer() is None:
                    found = self._made(launch.Alike())
                    variant.state.observed = True
        if found is None and gone:
            why = why or "some of whose tensors have been modified by an inplace operation since (the next call will keep their values)"
        if why:
            raise RuntimeError(
                f"{what} through a compiled function {why} is not supported; call the function itself, without compile()"
            )
        if found is None:
            raise RuntimeError(f"{what} through a compiled function whose graph is another the second time is not supported")
        return found

    def _restored(self, gone: list[Tensor]) -> list[Any] | None:
        """Return the graph with the values that the call has left, where some that it read are gone; None where more is needed."""
        assert self.before is not None
        memory = {buffer: data for buffer, weak in self.left.items() if (data := weak()) is not None}
        restoring = Restoring(self.before.changes.launches, memory, gone)
        found = self._made(restoring)
        for section, part in zip(found or (), self.variant.back.parts, strict=False):
            if section.alive and restoring.lacks(section, part.whole.seeds):
                if all(m.buffer in memory for r in part.runs for m in r.saved):
                    return None
                for node in section.nodes:  # a pass has gone through it
                    node.consumed = (None, 0)
        return found

    def _made(self, observer: Any) -> list[Any] | None:
        """Return the graph that another run makes (see `graph_of`), with all that runs change as it was before."""
        variant = self.variant
        previous, places = state.grad, [(source, source._place) for source, _ in self.drawn or ()]
        state.grad = variant.key[2][0]
        for source, place in self.drawn or ():
            source._place = place
        counts = [(t._version_, t._version_[0]) for t in self.large]
        since = [(t, t._grad) for t, a in zip(self.leaves, variant.arguments, strict=True) if not a.has_grad and t._grad is not None]
        for t, _ in since:  # the function finds no gradient that has come since
            t._grad = None
        for t, count in zip(self.large, self.counts, strict=True):
            t._version_[0] = count
        try:
            with unhooked(), casting.as_it_was(variant.key[2][2]), nullcontext() if self.before is None else self.before.again():
                leaves = iter(self.leaves[len(self.leaves) - variant.carried_leaves :])
                for k, value in variant.carried:
                    k.set(rebuild(value, leaves))
                return graph_of(variant, self.leaves, observer)
        finally:
            state.grad = previous
            for t, g in since:
                t._grad = g
            for source, place in places:
                source._place = place
            for counter, count in counts:
                counter[0] = count


def _relaid(g: Tensor | None, layout: Layout | None) -> Tensor | None:
    """Return a gradient in a layout of its shape and dtype."""
    if g is None or layout is None or g._layout is layout or (layout.contiguous and g._layout.contiguous):
        return g
    if layout.shape != g.shape or layout.dtype is not g.dtype:
        return g
    return relaid(g, layout)  # type: ignore[no-any-return]


def _copied(data: np.ndarray, extent: int) -> tuple[np.ndarray, np.ndarray]:
    """Return a tensor's memory, and a copy of it."""
    part = data if data.size == extent else data[:extent]
    return part, part.copy()


def _apart(t: Tensor, index: int, ends: set[int]) -> Tensor:
    """Return an argument that is kept for another run: without its graph, which would keep earlier calls alive, where no gradient goes there."""
    if t._edge is None or index in ends:
        return t
    other = make(t._data, t._layout, t._version_)
    other._rg = t.requires_grad
    return other
