"""Backward passes that recur: what one launches is noted once, and passes like it launch the same without asking any rule.

A training step is the same each time but for the numbers. Of small tensors most of its time goes into Python that finds out, rule by
rule, which kernels to launch. So the passes from each kind of root, and line that recorded it, are counted. Once there were a few, one
runs under an observer, as those that `compile` captures do, and becomes a `Replay`: the text of one function, which

- goes through the graph and compares it with the one that was noted: all that its launches may depend on, but for the numbers in
  memory. Those are how each node was recorded, its layouts, the numbers it keeps and where its edges lead, the order of the nodes'
  ages, the leaves' layouts and those of their gradients. It returns None where something differs, and a pass of the usual kind runs;
- launches the same kernels on the same places. Memory in between is its own, what leaves keep is new each time;
- lets the nodes be consumed.

It gives the same bits as the pass that it stands for. Passes that return the gradients of leaves (`autograd.grad`) are replayed as well
as those that accumulate them. What cannot be replayed is left alone: passes with hooks, other targets or ``create_graph``, nodes of
users' Functions or of compiled calls, transforms, observers, rules that look at values or draw random numbers, and large arrays, where
Python's time does not matter.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any

from ..config import settings, threads_changed
from ..overriding import Overrides
from . import ownership
from .modes import state
from .node import Node, Output, keeps
from .noted import Checks, Notes, Replays, Text, Unfit, observed

#: passes from one kind of root before one is noted (0: none is), and as many others before another; more where that was of no use
FIRST = int(os.environ.get("AUTOGRAD_NB_RECURRING", "20"))
CROWD = 3  #: graphs from one kind of root, after which those whose first nodes differ are told apart: one line may serve many programs
DEPTH = 4  #: of their nodes that are looked at
VARIANTS = 16  #: graphs from one kind of root that are kept at most, those that came last
TRIAL = 4 * FIRST  #: others that may come before one like what was noted last, which is dropped then: it never recurs, as draws do not
SELDOM = 16 * FIRST  #: passes before another is noted, however often that was of no use
LONGEST = 16 * SELDOM  #: the same where what is noted never recurs
NODES = 512  #: of a graph at most
KEPT, KEPT_BYTES = 2048, 1 << 26  #: kinds of roots, and memory in between of all of them, after which all is begun anew

_roots: dict[tuple[Any, ...], Root] = {}
tables: list[dict[Any, Any]] = []  #: what else is begun anew with them: what is known of calls
_held = 0


def forget() -> None:
    """Forget all that was noted."""
    global _held
    _roots.clear()
    for table in tables:
        table.clear()
    _held = 0


threads_changed.append(lambda number: forget())  # what one thread has launched is not shared


def room(held: int) -> bool:
    """Return whether there is room for so many bytes more; where not, all passes are begun anew."""
    global _held
    full = _held + held > KEPT_BYTES
    if full:
        forget()
    _held += held
    return not full


def kind(root: Any, g: Any, targets: Sequence[Any] | None = None) -> Root | None:
    """Return what is known of passes like the one from this root with the gradient ``g``; None where it is not replayed.

    ``targets``: the edges whose gradients it returns; None where all leaves accumulate theirs.
    """
    if root.is_leaf_edge:
        return None
    node = root.node if root.__class__ is Output else root
    alike = node.alike
    if alike is None or not FIRST or Overrides.standing or state.inference or state.passes or g.__class__ is not ownership.tensor:
        return None
    key = alike, g._layout, id(node.code), node.lasti, 0 if targets is None else len(targets)
    found = _roots.get(key) or _new(key, divisible=True)
    if found.crowded:
        key = *key, *_path(node)
        found = _roots.get(key) or _new(key, divisible=False)
    return found


def _new(key: tuple[Any, ...], divisible: bool) -> Root:
    if len(_roots) >= KEPT:
        forget()
    found = _roots[key] = Root(divisible)
    return found


def _path(node: Any) -> list[Any]:
    """Return what the next nodes along the first edges have in common with others like them."""
    found: list[Any] = []
    while len(found) < DEPTH and isinstance(node, Node) and node.alike is not None and node.edges:
        edge = node.edges[0]
        node = edge.node if edge.__class__ is Output else edge
        leaf = node is not None and node.is_leaf_edge
        found.append((node._layout, node._grad is None) if leaf else (node.__class__, getattr(node, "alike", None)))
    return found


class Root(Replays):
    """A root keeps what is known of the passes from one kind of root. ``divisible``: they may be told apart where they are many."""

    __slots__ = ("crowded", "divisible")
    crowded: bool
    divisible: bool

    def __init__(self, divisible: bool) -> None:
        super().__init__(FIRST)
        self.divisible = divisible
        self.crowded = False

    def run(self, root: Any, g: Any, consumer: Any, targets: Sequence[Any] | None) -> list[Any] | None:
        """Do what the pass would do, where one like it was noted, and return what it would: the gradients of the targets. None where it was not.

        It is not where another thread is at the gradients of leaves.
        """
        if not self.replays or not ownership.leaves.acquire(False):
            return None
        try:
            for i, replay in enumerate(() if ownership.programs else self.replays):
                found = replay(root, g, consumer, targets)
                if found is not None:
                    if replay is self.fresh:
                        self.fresh = None
                    if i:
                        self.replays.insert(0, self.replays.pop(i))
                    return found
            return None
        finally:
            ownership.leaves.release()

    def note(self, root: Any, g: Any, nodes: Sequence[Node], again: Callable[[], list[Any]], targets: Sequence[Any] | None) -> list[Any] | None:
        """Return ``again()``, a pass that runs under an observer, where it is time to, and keep what may stand for those like it; else None."""
        self.missed += 1
        if self.missed < (self.due if self.fresh is None else TRIAL) or not ownership.leaves.acquire(False):
            return None
        try:
            return None if ownership.programs else self._note(root, g, nodes, again, targets)
        finally:
            ownership.leaves.release()

    def _note(self, root: Any, g: Any, nodes: Sequence[Node], again: Callable[[], list[Any]], targets: Sequence[Any] | None) -> list[Any] | None:
        if self.dropped(LONGEST):
            return None
        try:
            graph = _Graph(root, g, nodes, targets)
            if sum([a.nbytes for a in graph.arrays]) > KEPT_BYTES:  # which notes keep to the end, where a pass gives back what is behind it
                raise Unfit("large arrays")
        except Unfit:
            self.due *= 2
            return None
        notes = Notes(graph.arrays)
        with observed(notes):
            found = again()
        try:
            self.keep(replay(graph, notes, found))
        except Unfit:  # large arrays, mostly: others that come to this line may be small
            self.due = max(self.due, min(2 * self.due, SELDOM))
        return found

    def keep(self, made: tuple[Callable[..., Any], int]) -> None:
        """Keep a replay, with the memory that it holds."""
        found, held = made
        room(held)
        self.replays.insert(0, found)
        self.fresh = found
        if self.divisible and len(self.replays) > CROWD:
            self.crowded = True
            self.replays.clear()
        elif len(self.replays) > VARIANTS:  # the program does ever new things, or goes round in many
            self.replays.pop()
            self.due *= 2


# ------------------------------------------------------------------------------------------------------ the graph


class _Graph(Checks):
    """The text that compares a graph with this one. ``arrays``: what a pass finds; ``leaves``, with their gradients ``before`` it.

    ``targets``: the leaves whose gradients are returned, or None.
    """

    def __init__(self, root: Any, g: Any, nodes: Sequence[Node], targets: Sequence[Any] | None = None):
        ours = g._version_[1] == ownership.OURS
        if len(nodes) > NODES or (ours and g._view is not None) or g.__class__ is not ownership.tensor:
            raise Unfit("a long graph, or a gradient of another kind")
        super().__init__()
        self.names["Output"] = Output
        self.leaves: list[Any] = []
        self.before: list[tuple[Any, Any]] = []
        self.count, self.targets = len(nodes), targets
        self._beside: list[Node] = []
        self._places = {id(node): i for i, node in enumerate(nodes)}
        self._met: set[int] = set()
        self.lines.append(f"if g.__class__ is not T or g._version_[1] {'!=' if ours else '=='} {ownership.OURS}: return None")
        if ours:
            self.lines.append("if g._view is not None: return None")
        self.array("g._data", g._data)
        self._edge("root", root)
        for i, node in enumerate(nodes):
            self._node(f"n{i}", node)
        for i, node in enumerate(self._beside, self.count):  # which grows as they are gone through
            self._edges(f"n{i}", node)
            if i > NODES:
                raise Unfit("a long graph")
        if len(nodes) > 1:
            self.lines.append(f"if not {' > '.join(f'n{i}.seq' for i in range(len(nodes)))}: return None")
        if targets is not None:
            places = {id(leaf): k for k, leaf in enumerate(self.leaves)}
            if not all(id(t) in places for t in targets):
                raise Unfit("targets that are not reached")
            for name, t in zip(self.unpack("targets", len(targets)), targets, strict=True):
                self.lines.append(f"if {name} is not t{places[id(t)]}: return None")
        if len(self.leaves) > 1:
            self.lines.append(f"if len({{{', '.join(f'id(t{k})' for k in range(len(self.leaves)))}}}) != {len(self.leaves)}: return None")

    def saved(self, n: str, value: Any) -> list[str]:
        """Return names for the parts of what the node ``n`` saved; Unfit where hooks have packed it."""
        if value.__class__ not in (tuple, list):
            raise Unfit("saved by hooks")
        self.lines.append(f"if {n}.saved.__class__ is not tuple and {n}.saved.__class__ is not list: return None")
        return self.unpack(f"{n}.saved", len(value))

    def _node(self, n: str, node: Node) -> None:
        if node.hooks is not None or node.alike is None:
            raise Unfit("hooks, or a node of users' code")
        self.differs(f"{n}.__class__", "is not", node.__class__)
        self.lines.append(f"if {n}.hooks is not None or {n}.consumed is not None: return None")
        count = len(node.counters())
        if count == 1:
            self.lines += [f"v = {n}.versions", "if v.__class__ is not list: (v,) = v", f"if v[0] != {n}.stamp: return None"]
        elif count:
            parts = self.unpack(f"{n}.versions", count)
            self.lines.append(f"if {' + '.join(f'{v}[0]' for v in parts)} != {n}.stamp: return None")
        node.tell(self, n)
        edges = node.edges
        if len(edges) == 1:
            self._edge(f"{n}.edges[0]" if not hasattr(node, "edge") else f"{n}.edge", edges[0])
        else:
            self._edges(n, node)

    def _edges(self, n: str, node: Node) -> None:
        for name, e in zip(self.unpack(f"{n}.edges", len(node.edges)), node.edges, strict=True):
            self._edge(name, e)

    def _edge(self, text: str, e: Any) -> None:
        if e is None:
            self.lines.append(f"if {text} is not None: return None")
            return
        if e.__class__ is Output:
            self.lines += [f"o = {text}", f"if o.__class__ is not Output or o.index != {e.index}: return None"]
            text, e = "o.node", e.node
        if e.is_leaf_edge:
            self._leaf(text, e)
            return
        if id(e) not in self._places:  # it leads to no target, and does not run
            self._places[id(e)] = self.count + len(self._beside)
            self._beside.append(e)
        n = f"n{self._places[id(e)]}"
        self.lines.append(f"if {text} is not {n}: return None" if id(e) in self._met else f"{n} = {text}")
        self._met.add(id(e))

    def _leaf(self, text: str, leaf: Any) -> None:
        for k, known in enumerate(self.leaves):
            if known is leaf:
                self.lines.append(f"if {text} is not t{k}: return None")
                return
        if leaf._leaf_hook_set is not None or not leaf._rg:
            raise Unfit("hooks of a leaf")
        t = f"t{len(self.leaves)}"
        self.leaves.append(leaf)
        self.lines.append(f"{t} = {text}")
        self.lines.append(f"if not {t}.is_leaf_edge: return None")
        self.differs(f"{t}._layout", "is not", leaf._layout)
        self.lines.append(f"if {t}._leaf_hook_set is not None or not {t}._rg: return None")
        self.lines.append(f"if ({t}._edge is not None or {t}._view is not None) and not {t}.is_leaf: return None")
        if self.targets is not None:
            return
        grad = leaf._grad
        self.before.append((grad, None if grad is None else grad._version_[0]))
        if grad is None:
            self.lines.append(f"if {t}._grad is not None: return None")
            return
        if grad._view is not None or grad._rg or grad.__class__ is not ownership.tensor:
            raise Unfit("a gradient of another kind")
        self.lines += [f"h = {t}._grad", "if h.__class__ is not T or h._view is not None or h._rg: return None"]
        self.differs("h._layout", "is not", grad._layout)
        self.array("h._data", grad._data)


# ----------------------------------------------------------------------------------------------------------- replays


def replay(graph: _Graph, notes: Notes, found: Sequence[Any] = ()) -> tuple[Callable[..., list[Any] | None], int]:
    """Return ``replay(root, g, consumer, targets)``, which does what a pass does, and how many bytes of memory it holds.

    ``found``: what the pass that was noted has returned, the gradients of its targets.
    """
    text = Text(graph, notes, {graph.slots[id(grad._data)] for grad, _ in graph.before if grad is not None})
    ends = _returned(text, found) if graph.targets is not None else _accumulated(text, graph)
    text.names["_consume"] = _consume
    nodes = ", ".join(f"n{i}" for i in range(graph.count))
    after = ["if consumer is not None:", f"    _consume(({nodes},), consumer)", "return found"]
    return text.function("replay", "root, g, consumer, targets", ends, after)


def _accumulated(text: Text, graph: _Graph) -> list[str]:
    """Return the lines by which leaves have their gradients after a pass."""
    ends = ["found = []"]
    for k, (leaf, (grad, version)) in enumerate(zip(graph.leaves, graph.before, strict=True)):
        now = leaf._grad
        if grad is not None:
            if now is not grad:
                raise Unfit("a gradient that is exchanged")
            ends.append(f"t{k}._grad._version_[0] += {grad._version_[0] - version}")
        elif now is not None:
            ends.append(f"t{k}._grad = {text.keep(now, k)}")
    return ends


def _returned(text: Text, found: Sequence[Any]) -> list[str]:
    """Return the lines that make the gradients which a pass returns: one tensor for each target, however often it was asked for."""
    places: dict[int, int] = {}
    ends = []
    for k, t in enumerate(found):
        if places.setdefault(id(t), k) == k:
            ends.append(f"g{k} = {'None' if t is None else text.keep(t, k)}")
    return [*ends, f"found = [{', '.join(f'g{places[id(t)]}' for t in found)}]"]


def _consume(nodes: Sequence[Node], consumer: Any) -> None:
    reuse = settings.reuse
    for node in nodes:
        if not reuse or keeps(node):
            node.consumed = consumer
            node.saved = None
