"""Backward passes that recur: what one launches is noted once, and passes like it launch the same without asking any rule.

A training step is the same each time but for the numbers. Of small tensors most of its time goes into Python that finds out, rule by
rule, which kernels to launch. So the passes from each kind of root, and line that recorded it, are counted. Once there were a few, one
runs under an observer, as those that `compile` captures do, and becomes a `Replay`: the text of one function, which

- goes through the graph and compares it with the one that was noted: all that its launches may depend on, but for the numbers in
  memory. Those are how each node was recorded, its layouts, the numbers it keeps and where its edges lead, the order of the nodes'
  ages, the leaves' layouts and those of their gradients. It returns False where something differs, and a pass of the usual kind runs;
- launches the same kernels on the same places. Memory in between is its own, what leaves keep is new each time;
- lets the nodes be consumed.

It gives the same bits as the pass that it stands for. What cannot be replayed is left alone: passes with hooks, targets or
``create_graph``, nodes of users' Functions or of compiled calls, transforms, observers, rules that look at values or draw random
numbers, and large arrays, where Python's time does not matter.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .. import dtypes, launch
from ..config import settings
from ..overriding import Overrides
from ..shapes import Layout
from . import ownership
from .collector import living
from .modes import state
from .node import Node, Output, written

#: passes from one kind of root before one is noted (0: none is), and as many others before another; more where that was of no use
FIRST = int(os.environ.get("AUTOGRAD_NB_RECURRING", "20"))
VARIANTS = 16  #: graphs from one kind of root that are kept at most, those that came last
SELDOM = 16 * FIRST  #: passes before another is noted, however often that was of no use
NODES = 512  #: of a graph at most
ELEMENTS = 1 << 15  #: of an array at most: kernels of larger ones take longer than Python does, and may run on several threads
BYTES = 1 << 21  #: memory in between that one replay keeps
KEPT, KEPT_BYTES = 2048, 1 << 26  #: kinds of roots, and memory in between of all of them, after which all is begun anew

_roots: dict[tuple[Any, ...], Root] = {}
_held = 0


def make(*_: Any) -> Any:
    """Make a tensor of (data, layout, version); set by the ops."""
    raise RuntimeError("the ops have not been imported")


def place() -> Any:
    """Return the place of the random numbers that rules draw; set by the ops."""


def forget() -> None:
    """Forget all that was noted."""
    global _held
    _roots.clear()
    _held = 0


dtypes.default_changed.append(forget)


def kind(root: Any, g: Any) -> Root | None:
    """Return what is known of passes like the one from this root with the gradient ``g``; None where it is not replayed."""
    if root.is_leaf_edge:
        return None
    node = root.node if root.__class__ is Output else root
    alike = node.alike
    if alike is None or not FIRST or Overrides.standing or state.inference or state.passes:
        return None
    key = alike, g._layout, id(node.code), node.lasti
    found = _roots.get(key)
    if found is None:
        if len(_roots) >= KEPT:
            forget()
        found = _roots[key] = Root()
    return found


class Root:
    """A root keeps what is known of the passes from one kind of root."""

    __slots__ = ("due", "missed", "replays")

    def __init__(self) -> None:
        self.missed, self.due = 0, FIRST
        self.replays: list[Callable[..., bool]] = []

    def run(self, root: Any, g: Any, consumer: Any) -> bool:
        """Do what the pass would do, where one like it was noted, and return whether it was."""
        for i, replay in enumerate(self.replays):
            if replay(root, g, consumer):
                if i:
                    self.replays.insert(0, self.replays.pop(i))
                return True
        return False

    def note(self, root: Any, g: Any, nodes: Sequence[Node], again: Callable[[], Any]) -> bool:
        """Run a pass by ``again()`` under an observer, where it is time to, and keep what may stand for those like it."""
        self.missed += 1
        if self.missed < self.due:
            return False
        self.missed = 0
        try:
            graph = _Graph(root, g, nodes)
        except Unfit:
            self.due *= 2
            return False
        notes, drawn = _Notes(graph.arrays), place()
        with launch.observe(notes):
            again()
        if place() != drawn:
            notes.why = "random numbers"
        try:
            self.keep(replay(graph, notes))
        except Unfit:  # large arrays, mostly: others that come to this line may be small
            self.due = max(self.due, min(2 * self.due, SELDOM))
        return True

    def keep(self, made: tuple[Callable[..., bool], int]) -> None:
        """Keep a replay, with the memory that it holds."""
        global _held
        found, held = made
        if _held + held > KEPT_BYTES:
            forget()
        _held += held
        self.replays.insert(0, found)
        if len(self.replays) > VARIANTS:  # the program does ever new things, or goes round in many
            self.replays.pop()
            self.due *= 2


# ------------------------------------------------------------------------------------------------------ the graph


class _Graph:
    """The text that compares a graph with this one. ``arrays``: what a pass finds; ``leaves``, with their gradients ``before`` it."""

    def __init__(self, root: Any, g: Any, nodes: Sequence[Node]):
        ours = g._version_[1] == ownership.OURS
        if len(nodes) > NODES or (ours and g._view is not None) or g.__class__ is not ownership.tensor:
            raise Unfit("a long graph, or a gradient of another kind")
        self.lines: list[str] = []
        self.names: dict[str, Any] = {"Output": Output, "ndarray": np.ndarray, "told": told, "S": settings, "T": ownership.tensor}
        self.arrays: list[np.ndarray] = []
        self.slots: dict[int, str] = {}  # id of an array -> its name
        self.leaves: list[Any] = []
        self.before: list[tuple[Any, Any]] = []
        self.count, self._parts = len(nodes), 0
        self._places = {id(node): i for i, node in enumerate(nodes)}
        self._met: set[int] = set()
        self.differs("S.threads", "!=", settings.threads)
        self.differs("S.matmul_precision", "!=", settings.matmul_precision)
        self.lines.append(f"if g.__class__ is not T or g._version_[1] {'!=' if ours else '=='} {ownership.OURS}: return False")
        if ours:
            self.lines.append("if g._view is not None: return False")
        self.array("g._data", g._data)
        self._edge("root", root)
        for i, node in enumerate(nodes):
            self._node(f"n{i}", node)
        if len(nodes) > 1:
            self.lines.append(f"if not {' > '.join(f'n{i}.seq' for i in range(len(nodes)))}: return False")
        if len(self.leaves) > 1:
            self.lines.append(f"if len({{{', '.join(f'id(t{k})' for k in range(len(self.leaves)))}}}) != {len(self.leaves)}: return False")

    def name(self, value: Any) -> str:
        """Return a name by which the text finds a value."""
        found = f"c{len(self.names)}"
        self.names[found] = value
        return found

    def differs(self, text: str, how: str, value: Any) -> None:
        """Return False where the value of ``text`` ``how`` ("is not", "!=") this one."""
        self.lines.append(f"if {text} {how} {self.name(value)}: return False")

    def same(self, text: str, value: Any) -> None:
        """Return False where the value of ``text``, a number, a shape or the like, differs from this one. Unfit where that is not known."""
        kind = value.__class__
        if value is None or kind is bool or kind is Layout or kind is dtypes.DType:
            self.differs(text, "is not", value)
        elif kind is int or kind is str or (isinstance(value, tuple) and _INTEGERS.issuperset(map(type, value))):
            self.differs(f"{text}.__class__", "is not", kind)
            self.differs(text, "!=", value)
        else:
            self.differs(f"told({text})", "!=", told(value))

    def array(self, text: str, value: Any) -> None:
        """Return False where ``text`` is an array of another size than this, or another one than where this was met before."""
        if value.__class__ is not np.ndarray:
            raise Unfit("memory of another kind")
        slot = self.slots.get(id(value))
        if slot is not None:
            self.lines.append(f"if {text} is not {slot}: return False")
            return
        slot = self.slots[id(value)] = f"s{len(self.arrays)}"
        self.arrays.append(value)
        self.lines += [f"{slot} = {text}", f"if {slot}.__class__ is not ndarray or {slot}.size != {value.size}: return False"]

    def saved(self, n: str, value: Any) -> list[str]:
        """Return names for the parts of what the node ``n`` saved; Unfit where hooks have packed it."""
        if value.__class__ not in (tuple, list):
            raise Unfit("saved by hooks")
        self.lines.append(f"if {n}.saved.__class__ is not tuple and {n}.saved.__class__ is not list: return False")
        return self.unpack(f"{n}.saved", len(value))

    def unpack(self, text: str, count: int) -> list[str]:
        """Return names for the ``count`` parts of a tuple or list."""
        self._parts += count
        found = [f"p{i}" for i in range(self._parts - count, self._parts)]
        if found:
            self.lines.append(f"{', '.join(found)}, = {text}")
        return found

    def _node(self, n: str, node: Node) -> None:
        if node.hooks is not None or node.alike is None:
            raise Unfit("hooks, or a node of users' code")
        self.differs(f"{n}.__class__", "is not", node.__class__)
        self.lines.append(f"if {n}.hooks is not None or {n}.consumed is not None: return False")
        count = len(node.counters())
        if count == 1:
            self.lines += [f"v = {n}.versions", "if v.__class__ is not list: (v,) = v", f"if v[0] != {n}.stamp: return False"]
        elif count:
            parts = self.unpack(f"{n}.versions", count)
            self.lines.append(f"if {' + '.join(f'{v}[0]' for v in parts)} != {n}.stamp: return False")
        node.tell(self, n)
        edges = node.edges
        if len(edges) == 1:
            self._edge(f"{n}.edges[0]" if not hasattr(node, "edge") else f"{n}.edge", edges[0])
        else:
            for name, e in zip(self.unpack(f"{n}.edges", len(edges)), edges, strict=True):
                self._edge(name, e)

    def _edge(self, text: str, e: Any) -> None:
        if e is None:
            self.lines.append(f"if {text} is not None: return False")
            return
        if e.__class__ is Output:
            self.lines += [f"o = {text}", f"if o.__class__ is not Output or o.index != {e.index}: return False"]
            text, e = "o.node", e.node
        if e.is_leaf_edge:
            self._leaf(text, e)
            return
        n = f"n{self._places[id(e)]}"
        self.lines.append(f"if {text} is not {n}: return False" if id(e) in self._met else f"{n} = {text}")
        self._met.add(id(e))

    def _leaf(self, text: str, leaf: Any) -> None:
        for k, known in enumerate(self.leaves):
            if known is leaf:
                self.lines.append(f"if {text} is not t{k}: return False")
                return
        if leaf._leaf_hook_set is not None or not leaf._rg:
            raise Unfit("hooks of a leaf")
        t = f"t{len(self.leaves)}"
        self.leaves.append(leaf)
        self.lines.append(f"{t} = {text}")
        self.lines.append(f"if not {t}.is_leaf_edge: return False")
        self.differs(f"{t}._layout", "is not", leaf._layout)
        self.lines.append(f"if {t}._leaf_hook_set is not None or not {t}._rg: return False")
        grad = leaf._grad
        self.before.append((grad, None if grad is None else grad._version_[0]))
        if grad is None:
            self.lines.append(f"if {t}._grad is not None: return False")
            return
        if grad._view is not None or grad._rg or grad.__class__ is not ownership.tensor:
            raise Unfit("a gradient of another kind")
        self.lines += [f"h = {t}._grad", "if h.__class__ is not T or h._view is not None or h._rg: return False"]
        self.differs("h._layout", "is not", grad._layout)
        self.array("h._data", grad._data)


_INTEGERS = frozenset((int, type(None)))
#: what values that rules read may consist of: equal ones of one class make the same launches
_PLAIN = frozenset((int, bool, str, type(None), Layout, dtypes.DType))


def told(value: Any) -> Any:
    """Return what tells a number, a shape and the like from others. Unfit where it is not of such a kind."""
    kind = value.__class__
    if kind in _PLAIN:
        return kind, value
    if kind is float or kind is complex:
        return kind, repr(value)  # (0.0 and -0.0 are equal)
    if isinstance(value, (tuple, list)):
        return kind, [told(v) for v in value]
    raise Unfit("a rule that reads an object")


# ------------------------------------------------------------------------------------------------------------ notes


class Unfit(Exception):
    """Why a pass cannot be replayed."""


class _Notes:
    """The observer of a pass: its launches, with each array told as a slot (one that the pass found) or memory of the pass's own."""

    def __init__(self, arrays: Sequence[np.ndarray]):
        self.slots = {id(a): f"s{i}" for i, a in enumerate(arrays)}
        self.shared: dict[int, list[np.ndarray]] = {}  # the memory of slots -> which of them
        for a in arrays:
            self.shared.setdefault(id(_root(a)), []).append(a)
        self._foreign: set[int] | None = None
        self._arrays = arrays  # which keeps them, and so their ids
        self.own: dict[int, np.ndarray] = {}  # memory of the pass's own, by id
        self.lines: list[tuple[Any, list[Any]]] = []  # (entry point, arguments)
        self.written: set[int] = set()
        self.why = ""

    def __call__(self, call: Any, args: tuple[Any, ...]) -> None:
        call.entry(*args)
        if self.why:
            return
        try:
            first = len(args) - call.outputs
            self.lines.append((call.entry, [self._argument(a, i >= first or i == call.over) for i, a in enumerate(args)]))
            if call.parts is not None and len(call.parts(args)) > 1:
                raise Unfit("several threads share a launch")
        except Unfit as error:
            self.why = str(error)

    def _argument(self, a: Any, writes: bool) -> Any:
        if isinstance(a, list):
            return [self._argument(x, writes) for x in a]
        return self._place(a, writes) if isinstance(a, np.ndarray) else a

    def _place(self, a: np.ndarray, writes: bool) -> _Place:
        if a.size > ELEMENTS:
            raise Unfit("large arrays")
        slot = self.slots.get(id(a))
        if slot is not None:
            return _Place(slot, a, a, 0, writes)
        whole = _root(a)
        among = self.shared.get(id(whole))
        if among is not None:
            if len(among) > 1:
                raise Unfit("arrays that lie in the same memory")
            (found,) = among
            begin, rest = divmod(_address(a) - _address(found), a.itemsize)
            if rest or begin < 0 or a.dtype != found.dtype or begin + a.size > found.size:
                raise Unfit("memory that is read as another dtype")
            return _Place(self.slots[id(found)], found, a, begin, writes)
        if id(whole) not in self.own:
            if not writes and id(whole) in self._of_tensors():
                raise Unfit("a tensor that is no part of the graph")
            self.own[id(whole)] = whole
        if writes:
            self.written.add(id(whole))
        return _Place("", whole, a, (_address(a) - _address(whole)) // a.itemsize, writes)

    def _of_tensors(self) -> set[int]:
        """Return the memory of all tensors, which is asked for what is read but was never written."""
        if self._foreign is None:
            self._foreign = {id(_root(t._data)) for t in living(ownership.tensor) if t.__class__ is ownership.tensor}
        return self._foreign

    def unfit(self, *_: Any) -> Any:
        self.why = self.why or "values that Python looks at"

    escapes = constant = draw = problem = unfit

    def check(self, function: Callable[..., None], arrays: tuple[Any, ...], passes: Any = ()) -> None:
        self.unfit()
        function(*arrays)


class _Place:
    """An array argument: elements of ``whole``, which is one of the pass's arrays, named ``slot``, or memory of its own ("")."""

    __slots__ = ("array", "begin", "slot", "whole", "writes")

    def __init__(self, slot: str, whole: np.ndarray, array: np.ndarray, begin: int, writes: bool):
        self.slot, self.whole, self.array, self.begin, self.writes = slot, whole, array, begin, writes


def _root(array: np.ndarray) -> np.ndarray:
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array


def _address(array: np.ndarray) -> int:
    return int(array.__array_interface__["data"][0])


# ----------------------------------------------------------------------------------------------------------- replays


def replay(graph: _Graph, notes: _Notes) -> tuple[Callable[..., bool], int]:
    """Return ``replay(root, g, consumer)``, which tells whether it has done a pass, and how many bytes of memory it holds."""
    if notes.why:
        raise Unfit(notes.why)
    names = {**graph.names, "_make": make, "_empty": np.empty, "_busy": threading.Lock(), "_consume": _consume}
    fresh: dict[int, str] = {}  # memory that leaves keep -> its name
    begin, ends = [], []
    for k, (leaf, (grad, version)) in enumerate(zip(graph.leaves, graph.before, strict=True)):
        now = leaf._grad
        if grad is not None:
            if now is not grad:
                raise Unfit("a gradient that is exchanged")
            ends.append(f"t{k}._grad._version_[0] += {grad._version_[0] - version}")
        elif now is not None:
            data = now._data
            if id(data) not in notes.written or id(data) in fresh or now._view is not None or now._rg:
                raise Unfit("a gradient in memory of others")
            fresh[id(data)] = f"r{k}"
            names |= {f"l{k}": now._layout, f"d{k}": data.dtype}
            begin.append(f"r{k} = _empty({data.size}, d{k})")
            ends.append(f"t{k}._grad = _make(r{k}, l{k}, [0, 0])")
    writable = {graph.slots[id(grad._data)] for grad, _ in graph.before if grad is not None}
    lines = []
    for n, (entry, args) in enumerate(notes.lines):
        names[f"k{n}"] = entry
        texts = []
        for i, a in enumerate(args):
            if isinstance(a, list):
                texts.append(f"[{', '.join(_text(x, f'k{n}_{i}_{j}', names, fresh, writable) for j, x in enumerate(a))}]")
            else:
                texts.append(_text(a, f"k{n}_{i}", names, fresh, writable))
        lines.append(f"k{n}({', '.join(texts)})")
    held = sum(w.nbytes for i, w in notes.own.items() if i not in fresh)
    if held > BYTES:
        raise Unfit("much memory in between")
    nodes = ", ".join(f"n{i}" for i in range(graph.count))
    text = [
        "try:",
        *["    " + line for line in graph.lines],
        "except (AttributeError, LookupError, TypeError, ValueError, Unfit):",
        "    return False",
        "if not _busy.acquire(False):",  # its memory in between serves one pass at a time
        "    return False",
        "try:",
        *["    " + line for line in [*begin, *lines, *ends, "pass"]],
        "finally:",
        "    _busy.release()",
        "if consumer is not None:",
        f"    _consume(({nodes},), consumer)",
        "return True",
    ]
    return written("replay", "root, g, consumer", text, __file__, Unfit=Unfit, **names), held


def _consume(nodes: Sequence[Node], consumer: Any) -> None:
    reuse = settings.reuse
    for node in nodes:
        if not reuse or node.versions or node.saved:
            node.consumed = consumer
            node.saved = None


def _text(a: Any, name: str, names: dict[str, Any], fresh: dict[int, str], writable: set[str]) -> str:
    """Return how an argument of a launch is written; what does not change is kept by ``name``."""
    if not isinstance(a, _Place):
        names[name] = a
        return name
    of = a.slot
    if of and a.writes and of not in writable:
        raise Unfit("memory of the graph's that is written")
    if not of:
        of = fresh.get(id(a.whole), "")
        if not of:
            names[name] = a.array
            return name
        if a.array.dtype != a.whole.dtype:
            raise Unfit("a gradient that is written as another dtype")
    return of if a.array is a.whole else f"{of}[{a.begin}:{a.begin + a.array.size}]"
