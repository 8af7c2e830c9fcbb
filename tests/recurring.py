"""Every backward pass that can be replayed is, at once: its gradients must have the bits that the pass gave (see `graph.recurring`)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np

from autograd_nb import launch
from autograd_nb.graph import noted, recurring
from autograd_nb.graph.node import NODES, Node, Output
from autograd_nb.ops.core import known_calls
from autograd_nb.ops.core.repeated import Repeated
from autograd_nb.ops.random.generator import default_generator
from autograd_nb.tensor import Tensor


@contextmanager
def at_once() -> Iterator[list[Any]]:
    """Note the first pass of each kind within the context, so that the next is its replay. Yields what each replay was asked and answered."""
    answers: list[Any] = []
    note, run, first, variants = recurring.Root.note, recurring.Root.run, recurring.FIRST, recurring.VARIANTS

    def noted(self: Any, *args: Any) -> Any:
        self.due, self.fresh = 0, None
        return note(self, *args)

    def ran(self: Any, *args: Any) -> Any:
        found = run(self, *args)
        answers.append(found is not None)
        return found

    recurring.Root.note, recurring.Root.run, recurring.FIRST, recurring.VARIANTS = noted, ran, 1, 1 << 30
    recurring.forget()
    try:
        yield answers
    finally:
        recurring.Root.note, recurring.Root.run, recurring.FIRST, recurring.VARIANTS = note, run, first, variants
        recurring.forget()


@contextmanager
def verified() -> Iterator[list[Any]]:
    """Note the first pass of each kind within the context, and compare its replay with it. Yields the replays."""
    replays: list[Any] = []
    note, keep, first, variants = recurring.Root.note, recurring.Root.keep, recurring.FIRST, recurring.VARIANTS

    def noted(self: Any, root: Any, g: Any, nodes: Any, again: Any, targets: Any) -> Any:
        graph = None
        with suppress(recurring.Unfit):
            graph = recurring._Graph(root, g, nodes, targets)
        before = [a.copy() for a in graph.arrays] if graph else []
        found = len(replays)
        saved, given = [(node, node.saved) for node in nodes], list(g._version_)
        self.due, self.fresh = 0, None
        self.replays.clear()
        done = note(self, root, g, nodes, again, targets)
        if len(replays) == found:
            return done
        consumed = [node.consumed for node in nodes]
        for node, kept in saved:
            node.saved, node.consumed = kept, None

        def run() -> Any:
            now, g._version_[:] = list(g._version_), given
            found = replays[-1](root, g, None, targets)
            g._version_[:] = now
            return found

        (compare if targets is None else partial(compare_returned, wanted=done))(graph, before, run)
        for (node, kept), at in zip(saved, consumed, strict=True):
            node.saved, node.consumed = (None if at else kept), at
        return done

    def kept(self: Any, made: Any) -> None:
        keep(self, made)
        replays.append(made[0])

    recurring.Root.note, recurring.Root.keep, recurring.FIRST, recurring.VARIANTS = noted, kept, 1, 1 << 30
    recurring.forget()
    try:
        with verified_calls():
            yield replays
    finally:
        recurring.Root.note, recurring.Root.keep, recurring.FIRST, recurring.VARIANTS = note, keep, first, variants
        recurring.forget()


def compare_returned(graph: Any, before: list[Any], run: Callable[[], Any], wanted: Any) -> None:
    """Repeat by ``run()`` the pass over a graph that has just returned the gradients ``wanted``, and compare what it returns."""
    for _ in range(2):
        found = run()
        assert found is not None, "the graph is not known again"
        for t, want in zip(found, wanted, strict=True):
            assert t._layout is want._layout and t._data is not want._data
            assert t._data.tobytes() == want._data.tobytes(), "a replay gives other bits"
        places = [[[id(t) for t in tensors].index(id(t)) for t in tensors] for tensors in (found, wanted)]
        assert places[0] == places[1], "a tensor for each target"
    for a, b in zip(graph.arrays, before, strict=True):
        assert a.tobytes() == b.tobytes(), "a replay has written over what the graph saved"


def compare(graph: Any, before: list[Any], run: Callable[[], Any]) -> None:
    """Repeat by ``run()`` the pass over a graph that has just been run, and compare what it leaves."""
    leaves = graph.leaves
    found = [leaf._grad for leaf in leaves]
    wanted = [None if g is None else (g._layout, g._data.tobytes()) for g in found]
    counts = [None if g is None else g._version_[0] for g in found]
    for _ in range(2):
        for a, b in zip(graph.arrays, before, strict=True):
            a[:] = b
        for leaf, (grad, version) in zip(leaves, graph.before, strict=True):
            leaf._grad = grad
            if grad is not None:
                grad._version_[0] = version
        assert run() is not None, "the graph is not known again"
        for leaf, want, count in zip(leaves, wanted, counts, strict=True):
            g = leaf._grad
            assert (None if g is None else (g._layout, g._data.tobytes())) == want, "a replay gives other bits"
            assert g is None or g._version_[0] == count, "a replay counts other changes"
    added = [id(grad._data) for grad, _ in graph.before if grad is not None]
    for a, b in zip(graph.arrays, before, strict=True):
        assert id(a) in added or a.tobytes() == b.tobytes(), "a replay has written over what the graph saved"
    for leaf, g, count in zip(leaves, found, counts, strict=True):
        leaf._grad = g
        if g is not None:
            g._version_[0] = count


def same_node(a: Any, b: Any, pairs: dict[int, Any]) -> None:
    """Two edges lead to the same place, or to nodes that were recorded alike; ``pairs``: the nodes that were met, and the others in their places."""
    a, b = (e.node if e.__class__ is Output else e for e in same_output(a, b))
    if a is b or id(a) in pairs:
        assert a is b or pairs[id(a)] is b, "an edge to another node"
        return
    assert isinstance(a, Node) and a.__class__ is b.__class__ and b.consumed is None and b.hooks is None
    pairs[id(a)] = b
    kept = {name for cls in a.__class__.__mro__ for name in cls.__dict__.get("__slots__", ())}
    for name in kept - {"__dict__", "__weakref__", "code", "consumed", "edge", "edge_kind", "edges", "hooks", "lasti", "saved", "seq", "versions"}:
        assert getattr(a, name, None) == getattr(b, name, None), f"another {name} of {a.name()}"
    assert min(a.edge_kind, NODES) == min(b.edge_kind, NODES), "edges of another kind"
    assert [v[:] for v in a.counters()] == [v[:] for v in b.counters()] and a.versions.__class__ is b.versions.__class__
    assert [[v is w for w in a.counters()] for v in a.counters()] == [[v is w for w in b.counters()] for v in b.counters()]
    same_saved(a.saved, b.saved, a.name())
    assert len(a.edges) == len(b.edges)
    for e, f in zip(a.edges, b.edges, strict=True):
        same_node(e, f, pairs)
        below = f.node if f.__class__ is Output else f
        assert not isinstance(below, Node) or b.seq > below.seq, "a node that is older than what it leads to"


def same_output(a: Any, b: Any) -> tuple[Any, Any]:
    assert (a.__class__ is Output) == (b.__class__ is Output) and getattr(a, "index", 0) == getattr(b, "index", 0), "another output"
    return a, b


def same_saved(a: Any, b: Any, what: str) -> None:
    """What two nodes have saved is the same, element for element."""
    if isinstance(a, np.ndarray):
        assert a.dtype == b.dtype and (a is b or a.tobytes() == b.tobytes()), f"{what} saved other numbers"
    elif isinstance(a, (tuple, list)) and isinstance(b, (tuple, list)):
        assert len(a) == len(b)
        for x, y in zip(a, b, strict=True):
            same_saved(x, y, what)
    else:
        assert a is b or repr(a) == repr(b), f"{what} saved something else"


def same_result(t: Any, u: Any, whole: bool, operands: Sequence[Any] = ()) -> None:
    """A result of a replay is that of the call: bits, layout, place in the graph, base; memory of its own, or the same place in an operand's.

    ``whole``: and the counter, which an op's forward function may leave behind.
    """
    if t is None:
        assert u is None
        return
    assert (t.__class__, t._layout, t._rg) == (u.__class__, u._layout, u._rg)
    lent = any(launch.memory.root(t._data) is launch.memory.root(a._data) for a in operands)
    assert (t.data_ptr() == u.data_ptr()) if lent else (t._data is not u._data)
    assert not whole or t._version_ == u._version_
    used = t._layout.extent
    assert t._data[:used].tobytes() == u._data[:used].tobytes(), "a replay gives other bits"
    same_node(t._edge, u._edge, {})
    assert (t._view is None) == (u._view is None)
    if t._view is not None:
        assert (t._seen, t._view_kind) == (u._seen, u._view_kind) and u._version_ is u._view._version_
        if lent:
            assert u._view is t._view and u._version_ is t._version_, "a view of another tensor"
        else:
            same_result(t._view, u._view, whole, operands)


class Contents:
    """What the memory of the tensors among a call's arguments holds, and how often each counts as changed."""

    def __init__(self, arguments: tuple[Any, ...]):
        parts = [p for a in arguments for p in (a if isinstance(a, (tuple, list)) else [a])]
        self.tensors = [p for p in parts if isinstance(p, Tensor)]
        self.kept = [(t._data.tobytes(), list(t._version_), t._edge, t._rg, t._view is not None and t._seen) for t in self.tensors]

    def __eq__(self, other: Any) -> bool:
        return self.kept == other.kept

    def put_back(self) -> None:
        for t, (data, version, *_) in zip(self.tensors, self.kept, strict=True):
            if (data, version) != (t._data.tobytes(), t._version_):
                t._data[:], t._version_[:] = np.frombuffer(data, t._data.dtype), version


@contextmanager
def poisoned() -> Iterator[None]:
    """Fill new memory of replays, so that it shows what nobody writes."""

    def empty(size: int, dtype: Any) -> np.ndarray:
        made = np.empty(size, dtype)
        made.fill(12345.678 if made.dtype.kind in "fc" else 1)
        return made

    before, noted.np = noted.np, SimpleNamespace(ndarray=np.ndarray, empty=empty)
    try:
        yield
    finally:
        noted.np = before


@contextmanager
def verified_calls() -> Iterator[list[str]]:
    """Note each call of an op within the context, and compare its replays with it. Yields the names of the functions that were replayed."""
    note, miss, names = known_calls.Known.note, known_calls.Known.miss, []

    def missed(self: Any, forward: Any, args: Any, options: Any) -> Any:
        self.due, self.fresh = 1, None
        return miss(self, forward, args, options)

    def compared(self: Any, forward: Any, args: Any, options: Any) -> Any:
        before, given = default_generator._place, Contents((*args, *options.values()))
        out = note(self, forward, args, options)
        after, wanted = default_generator._place, Contents((*args, *options.values()))
        for replay in self.replays:
            for _ in range(2):
                default_generator._place = before
                given.put_back()
                again = replay(args, options)
                assert Contents((*args, *options.values())) == wanted, "an operand with other contents, or changed another number of times"
                assert default_generator._place == after, "another number of draws"
                assert again is not None, "the call is not known again"
                assert again.__class__ is out.__class__
                for t, u in zip(*[x if isinstance(x, (tuple, list)) else [x] for x in (out, again)], strict=True):
                    if not any(t is a for a in given.tensors):
                        same_result(t, u, isinstance(self, Repeated), given.tensors)
                    else:
                        assert u is t, "another tensor than the operand"
            names.append(forward.__name__)
        self.replays = []  # the next is noted anew
        return out

    known_calls.Known.note, known_calls.Known.miss = compared, missed
    recurring.forget()
    try:
        with poisoned():
            yield names
    finally:
        known_calls.Known.note, known_calls.Known.miss = note, miss
