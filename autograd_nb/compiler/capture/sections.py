"""The graph behind the results of a captured call, divided into sections, and the programs of each section's backward pass.

A section is what the same results depend on, as far as no pass towards some inputs can run a part of it by itself. Whichever of
these results a backward pass starts from, it runs the whole section, so that one node can stand for it: the pass consumes what an
eager one would, meets the hooks of results on its way, and leaves None where nothing flows. Nodes that the function itself has used
up are sections apart, and so is what lies behind them.
"""

from __future__ import annotations

import copy
from collections.abc import Collection, Sequence
from contextlib import nullcontext
from typing import Any

from ... import launch
from ...graph import engine
from ...graph.modes import state
from ...graph.node import Node, Output, keeps, sequence, set_edges
from ...ops.core.history import LeafBackward0
from ...ops.creation.create import new_full
from ...tensor import Tensor, edge, fill_node
from ..nested import rebuild, tensors_in
from .recorder import Problem

MOST = 128  #: sections of one function

Key = tuple[Any, int]  #: what an edge leads to: (node, which of its outputs), or (leaf, -1)


class Section:
    """Nodes, youngest first. ``slots``: where gradients come in, ``exits``: where they go. ``alive``: whether it can be run."""

    def __init__(self, alive: bool):
        self.alive = alive
        self.nodes: list[Node] = []
        self.slots: dict[Key, int] = {}
        self.exits: dict[Key, int] = {}
        self.uneven = False  # whether two outputs of one of its nodes are reached from different results

    def signature(self) -> tuple[Any, ...]:
        """Return what tells the section from others, in words."""
        return self.alive, tuple(n.name() for n in self.nodes), len(self.slots), len(self.exits)


def _key(e: Any) -> Key:
    if e.__class__ is Output:
        return e.node, e.index
    return (e, -1) if e.is_leaf_edge else (e, 0)


def _used_up(node: Node) -> bool:
    """Return whether no backward pass can run it any more: one has, or what it had saved was changed, as by an optimizer's step."""
    return node.consumed is not None or bool(node.versions and sum(c[0] for c in node.counters()) != node.stamp)


def behind(roots: Sequence[Key], ends: Collection[int], began: int) -> list[Node]:
    """Return the nodes that the roots depend on, youngest first."""
    found: dict[int, Node] = {}
    stack = [node for node, _ in roots]
    while stack:
        node = stack.pop()
        if id(node) in found or id(node) in ends or node.is_leaf_edge:
            continue
        if node.seq < began:
            raise Problem("its result depends on a tensor with a graph of its own, made outside; pass it as an argument")
        hooks = node.hooks
        if hooks is not None and (hooks.pre or hooks.post or hooks.retained or hooks.expected or any(hooks.tensor.values())):
            raise Problem("hooks run in the backward pass of its results, or retain gradients there")
        found[id(node)] = node
        stack += [_key(e)[0] for e in node.edges if e is not None]
    return sorted(found.values(), key=lambda n: -n.seq)


def divide(roots: Sequence[Key], ends: Collection[int], began: int) -> list[Section]:
    """Return the sections behind some results, those that others depend on later. ``ends``: ids of nodes where the graph ends."""
    nodes = behind(roots, ends, began)
    inside = {id(n) for n in nodes}
    if any(id(node) not in inside for node, _ in roots):
        raise Problem("a result has an argument's place in the graph; return the argument itself")
    reached: dict[Key, int] = {}  # output -> the results that depend on it, as bits
    whole = dict.fromkeys(inside, 0)
    asked = dict.fromkeys(inside, False)  # whether a pass gets there by nodes that can be run
    level = dict.fromkeys(inside, 0)  # how often that changes on the way
    alive: dict[int, bool] = {}
    edges: dict[int, tuple[Any, ...]] = {}  # those that gradients can flow along
    for k, key in enumerate(roots):
        reached[key] = reached.get(key, 0) | 1 << k
        whole[id(key[0])] |= 1 << k
        asked[id(key[0])] = True
    for node in nodes:
        me = id(node)
        alive[me] = asked[me] and not _used_up(node)
        edges[me] = _flowing(node, reached) if len(roots) > 1 and alive[me] else node.edges
        for key in (_key(e) for e in edges[me] if e is not None):
            if id(key[0]) in inside:
                reached[key] = reached.get(key, 0) | whole[me]
                whole[id(key[0])] |= whole[me]
                asked[id(key[0])] = asked[id(key[0])] or alive[me]
    nodes = [node for node in nodes if whole[id(node)]]
    for node in nodes:
        for e in edges[id(node)]:
            if e is not None and id(to := _key(e)[0]) in inside:
                level[id(to)] = max(level[id(to)], level[id(node)] + (alive[id(node)] is not alive[id(to)]))
    together: dict[tuple[Any, ...], list[Node]] = {}
    for node in nodes:
        me = id(node)
        together.setdefault((whole[me].bit_count(), level[me], alive[me], whole[me]), []).append(node)
    pieces: list[list[Node]] = []
    goals = _goals(nodes, edges, roots) if len(roots) > 1 else {}
    for (results, _, live, _), members in together.items():
        pieces += _apart(members, goals) if results > 1 and live else [members]
    found = [Section(alive[id(piece[0])]) for piece in pieces]
    for section, piece in zip(found, pieces, strict=True):
        section.nodes = piece
    if len(found) > MOST:
        raise Problem(f"its results that require grad depend on one another in more than {MOST} ways")
    found = _in_order(found, edges)
    _join(found, edges, roots)
    for (node, _), bits in reached.items():
        if bits != whole[id(node)]:
            next(s for s in found if node in s.nodes).uneven = True
    return found


def _flowing(node: Node, reached: Collection[Key]) -> tuple[Any, ...]:
    """Return the edges of a node, None where no gradient comes of those of the outputs that results depend on.

    Attention gives its weights too: where only these are read, nothing flows to the values.
    """
    layouts = getattr(node, "out_layout", None)
    if not isinstance(layouts, tuple) or len(node.edges) == 1 or all((node, i) in reached for i in range(len(layouts))):
        return node.edges
    gs = [new_full(layout.shape, 1, layout.dtype) if (node, i) in reached else None for i, layout in enumerate(layouts)]
    previous = state.grad
    state.grad = False
    try:
        found = node.run(gs)
    except Problem:
        raise
    except Exception:  # the pass itself will tell
        return node.edges
    finally:
        state.grad = previous
    return tuple([None if g is None else e for e, g in zip(node.edges, found, strict=True)])


def _in_order(sections: list[Section], edges: dict[int, tuple[Any, ...]]) -> list[Section]:
    """Return the sections in the order in which passes come to them: what depends on others first, else the youngest as in an eager graph."""
    home = {id(n): k for k, s in enumerate(sections) for n in s.nodes}
    below = [
        {home[id(to)] for n in s.nodes for e in edges[id(n)] if e is not None and id(to := _key(e)[0]) in home} - {k}
        for k, s in enumerate(sections)
    ]
    above = [sum(k in others for others in below) for k in range(len(sections))]
    ready = [(-s.nodes[0].seq, k) for k, s in enumerate(sections) if not above[k]]
    found = []
    while ready:
        ready.sort()
        _, k = ready.pop(0)
        found.append(sections[k])
        for other in below[k]:
            above[other] -= 1
            if not above[other]:
                ready.append((-sections[other].nodes[0].seq, other))
    return found


def _goals(nodes: list[Node], edges: dict[int, tuple[Any, ...]], roots: Sequence[Key]) -> dict[int, int]:
    """Return, for each node, the ends of the graph and the results that it depends on, as bits: the inputs that passes may be
    asked for.
    """
    results = {id(node) for node, _ in roots}
    bits: dict[int, int] = {}
    found: dict[int, int] = {}
    for node in reversed(nodes):
        mine = 0
        for to in (_key(e)[0] for e in edges[id(node)] if e is not None):
            if id(to) not in found or id(to) in results:
                mine |= bits.setdefault(id(to), 1 << len(bits))
            mine |= found.get(id(to), 0)
        found[id(node)] = mine
    return found


def _apart(nodes: list[Node], goals: dict[int, int]) -> list[list[Node]]:
    """Return what of a section passes can run and consume by itself, later results first; ``nodes``: of the section, youngest
    first.

    A pass towards some inputs (`grad`) runs what depends on them, and another may run the rest after it. Mostly there is a node
    that depends on all inputs, which every pass needs. Else what has no input in common is apart, and failing that what has not
    the same inputs.
    """
    groups: list[tuple[int, list[Node]]] = []  # (all their goals, nodes) that have goals in common
    for node in nodes:
        mine, members = goals[id(node)], [node]
        for group in [g for g in groups if g[0] & mine]:
            groups.remove(group)
            mine, members = mine | group[0], group[1] + members
        groups.append((mine, members))
    found: list[list[Node]] = []
    for every, members in groups:
        members.sort(key=lambda n: -n.seq)
        kinds = {goals[id(n)] for n in members}
        if every in kinds or _always_meet(every, kinds):
            found.append(members)
        else:
            order = sorted(kinds, key=lambda kind: (-kind.bit_count(), kind))
            found += [[n for n in members if goals[id(n)] == kind] for kind in order]
    return found


def _always_meet(every: int, kinds: set[int]) -> bool:
    """Return whether for any two goals some node depends on both."""
    for k in range(every.bit_length()):
        met = 0
        for kind in kinds:
            met |= kind if kind >> k & 1 else 0
        if every >> k & 1 and met != every:
            return False
    return True


def _join(sections: list[Section], edges: dict[int, tuple[Any, ...]], roots: Sequence[Key]) -> None:
    """Note where gradients come in and go."""
    home = {id(n): s for s in sections for n in s.nodes}
    for key in roots:
        home[id(key[0])].slots.setdefault(key, len(home[id(key[0])].slots))
    for s in sections:
        for node in s.nodes:
            for key in (_key(e) for e in edges[id(node)] if e is not None):
                other = home.get(id(key[0]))
                if other is s:
                    continue
                s.exits.setdefault(key, len(s.exits))
                if other is not None:
                    other.slots.setdefault(key, len(other.slots))


def gradients(section: Section, gs: Sequence[Any], create_graph: bool) -> tuple[Any, ...]:
    """Return the gradients at the exits of a section for those of its slots."""
    work = engine.Pass({}, False, create_graph, None)
    previous = state.grad
    state.grad = create_graph
    try:
        for (node, index), g in zip(section.slots, gs, strict=True):
            if g is not None:
                work.arrive(Output(node, index) if node.several else node, g)
        for node in section.nodes:
            g = work.pending.pop(node, None)
            if g is not None:
                work.run_node(node, g)
    finally:
        state.grad = previous
    found = []
    for target, index in section.exits:
        g = work.pending.get(target)
        found.append(g[index] if g is not None and index >= 0 and target.several else g)
    return tuple(found)


def lead_to(own: dict[Key, Any], found: Sequence[Any], began: int, nodes: Sequence[Node]) -> None:
    """Let edges of what was recorded since ``began``, behind the tensors ``found``, that lead to a key of ``own`` lead to what it names.

    Where they lead to older ``nodes`` of which some lead there, they lead to copies of these that do: the nodes themselves are run again.
    """
    copies: dict[int, Node] = {}

    def led(e: Any) -> Any:
        if e is None:
            return None
        node, index = key = _key(e)
        twin = copies.get(id(node))
        return own[key] if key in own else e if twin is None else Output(twin, index) if node.several else twin

    for node in sorted(nodes, key=lambda n: n.seq):
        edges = tuple([led(e) for e in node.edges])
        if any(e is not old for e, old in zip(edges, node.edges, strict=True)):
            copies[id(node)] = twin = copy.copy(node)
            set_edges(twin, edges)
    stack = [_key(e)[0] for t in found if t is not None and (e := edge(t)) is not None]
    seen: set[int] = set()
    while stack:
        node = stack.pop()
        if id(node) in seen or node.is_leaf_edge or node.seq < began:
            continue
        seen.add(id(node))
        edges = tuple([led(e) for e in node.edges])
        stack += [_key(e)[0] for e, new in zip(node.edges, edges, strict=True) if e is not None and new is e]
        if any(e is not old for e, old in zip(edges, node.edges, strict=True)):
            set_edges(node, edges)


class _Before0(LeafBackward0):
    """Stands before what an argument depends on, and notes the pass that ends with it, as one towards the argument does: that has used up what is behind."""

    by: Any  #: where that pass began, or None
    consumed = property(lambda self: None, lambda self, by: setattr(self, "by", by), doc="What consumed it: nothing does.")  # type: ignore[assignment]

    def name(self) -> str:
        return "LeafBackward0"


class Standing:
    """While it is open, tensors with a graph have a node of their own before it: what is recorded meanwhile ends there.

    ``ends``: the nodes' ids -> which tensor. ``changed``: the tensors that were given another history, or hooks, meanwhile; that
    is not undone.
    """

    def __init__(self, tensors: Sequence[Tensor]):
        self._tensors = tensors
        self._held: dict[int, tuple[Tensor, Any, Node]] = {}
        self.ends: dict[int, int] = {}
        self.changed: list[Tensor] = []

    def __enter__(self) -> Standing:
        for i, t in enumerate(self._tensors):
            if id(t) not in self._held and t.requires_grad and t._edge is not None:
                node = fill_node(_Before0(), (t._edge,))
                node.saved = (t._edge,)
                self._held[id(t)] = t, t._edge, node
                self.ends[id(node)] = i
                t._edge = node
        return self

    def __exit__(self, *error: Any) -> None:
        for t, before, node in self._held.values():
            if t._edge is not node or node.hooks is not None:
                self.changed.append(t)
            if t._edge is node:
                t._edge = before
            _rehang(node, before)
            behind, _ = _key(before)
            if node.by is not None and behind.consumed is None and keeps(behind):
                behind.consumed, behind.saved = node.by, None


def _rehang(node: Node, before: Any) -> None:
    """Move the hooks that were put on a node that stood before a tensor's own there, and what its gradient must fit."""
    if node.hooks is None:
        return
    target, index = _key(before)
    mine, own = node.hooks, target._hooks()
    own.tensor.setdefault(index, mine.tensor.get(0, {})).update(mine.tensor.get(0, {}))
    own.pre.update(mine.pre)
    own.post.update(mine.post)
    if 0 in mine.retained:
        own.retained[index] = mine.retained[0]
    if 0 in mine.expected:
        own.expected.setdefault(index, mine.expected[0])
    node.hooks = None


def graph_of(variant: Any, leaves: list[Tensor], observer: Any) -> list[Section] | None:
    """Return the sections of a captured call, as running its function again makes them; None where they are others.

    ``observer``: is told of its launches, so that it goes the ways that a captured run goes; None for the usual ways.
    """
    args, kwargs = rebuild(variant.given, iter(leaves))
    began = sequence()
    with Standing(leaves) as standing:
        with nullcontext() if observer is None else launch.observe(observer):
            result = variant.function(*args, **kwargs)
        flat = list({id(t): t for t in tensors_in(result)}.values())
        try:
            roots = [_key(edge(flat[i])) for i, _, _ in variant.back.results]
            sections = divide(roots, standing.ends, began)
        except (Problem, IndexError, AttributeError):
            return None
    return sections if [s.signature() for s in sections] == variant.back.signature else None
