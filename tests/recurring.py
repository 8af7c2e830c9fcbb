"""Every backward pass that can be replayed is, at once: its gradients must have the bits that the pass gave (see `graph.recurring`)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any

from autograd_nb.graph import recurring
from autograd_nb.ops.core import known_calls


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


#: results of forward functions, by number, that have parts which nobody writes or reads
UNWRITTEN = {("_ctc_loss", 1)}


@contextmanager
def verified_calls() -> Iterator[None]:
    """Note each call of an op's forward function within the context, and compare its replay with it."""
    note, run = known_calls.Known.note, known_calls.Known.run

    def ran(self: Any, forward: Any, args: Any) -> Any:
        self.replays.clear()
        self.due, self.fresh = 1, None
        return run(self, forward, args)

    def noted(self: Any, forward: Any, args: Any) -> Any:
        out = note(self, forward, args)
        for replay in self.replays:
            again = replay(args)
            assert again is not None, "the call is not known again"
            assert again.__class__ is out.__class__
            for k, (t, u) in enumerate(zip(*[x if isinstance(x, (tuple, list)) else [x] for x in (out, again)], strict=True)):
                assert t._layout is u._layout and t._data is not u._data
                if (forward.__name__, k) not in UNWRITTEN:
                    assert t._data.tobytes() == u._data.tobytes(), "a replay gives other bits"
        return out

    known_calls.Known.note, known_calls.Known.run = noted, ran
    try:
        yield
    finally:
        known_calls.Known.note, known_calls.Known.run = note, run
