"""The engine: one backward pass over a recorded graph.

Collect what can be reached, check all of it (consumed nodes, changed arrays), and only then run, youngest node first.
Iterative throughout; arrays are freed as nodes are passed. Every node that ran is consumed, unless the graph is retained, or
the node saved nothing and `autograd.set_graph_reuse` lets such nodes run again.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import Any

from .. import launch
from ..config import settings
from ..overriding import overridable, whole
from . import detached, leaf_order, ownership, recurring
from .hooks import NodeHooks, fitted
from .modes import state
from .nested import DEEP, elsewhere
from .node import NODES, ONE_NODE, Node, Nowhere, Output, consumed_error, here, keeps, modified_error, written
from .ownership import handed, share

_by_age = attrgetter("seq")


def _unset(*_: Any) -> Any:
    raise RuntimeError("the ops have not been imported")


#: set by the ops: add(a, b) -> tensor, accumulated(grad, g) at a leaf, add_in_place(a, b); merge(a, b), which adds in the memory of one if a pass made that;
#: own(g, leaf, recorded): a gradient as the leaf may keep it, and (leaf=None) as a pass returns it: dense memory that nobody else has
add: Callable[[Any, Any], Any] = _unset
accumulated: Callable[[Any, Any], Any] = _unset
add_in_place: Callable[[Any, Any], None] = _unset
merge: Callable[[Any, Any], Any] = _unset
own: Callable[[Any, Any, bool], Any] = _unset
#: set by autograd.anomaly while it watches: called with (node, gradients) after each node
watch: Callable[[Any, tuple[Any, ...]], None] | None = None
#: set with it: called with a node whose rule failed
failed: Callable[[Any], None] | None = None


# in one piece: every pass would pay for the calls of its parts
def collect(roots: Sequence[Any], targets: set[Any] | None) -> tuple[list[Node], dict[Any, Any]]:  # noqa: C901
    """Return (nodes to run, youngest first; leaf -> the oldest node with an edge to it, after which its gradient is complete).

    All checks are made here. A leaf that is itself a root and nothing else stands with None.
    """
    seen: set[Any] = set()
    nodes: list[Node] = []
    last: dict[Any, Any] = {}
    stack: list[Any] = []
    for root in roots:
        if root.is_leaf_edge:
            last.setdefault(root, None)
        else:
            stack.append(root.node if root.__class__ is Output else root)
    push, pop, mark, keep = stack.append, stack.pop, seen.add, nodes.append
    while stack:
        node = pop()
        while node not in seen:
            mark(node)
            keep(node)
            kind = node.edge_kind
            if kind == ONE_NODE:  # straight on, without the stack
                node = node.edge
                continue
            if kind == NODES:
                for e in node.edges:
                    if e is not None:
                        push(e)
            else:
                for e in node.edges:
                    if e is None:
                        continue
                    if e.is_leaf_edge:
                        oldest = last.get(e)
                        if oldest is None or node.seq < oldest.seq:
                            last[e] = node
                    else:
                        push(e.node if e.__class__ is Output else e)
            break
    nodes.sort(key=_by_age, reverse=True)
    if targets is not None:
        nodes, last = _towards(nodes, targets, roots)
    for node in nodes:
        if node.consumed is not None:
            raise consumed_error(node)
        versions = node.versions
        if versions.__class__ is list:  # one counter stands by itself
            if versions[0] != node.stamp:
                _refuse(node)
        elif versions:
            total = 0
            for v in versions:
                total += v[0]
            if total != node.stamp:
                _refuse(node)
    if targets is None:
        for leaf in last:
            if leaf._edge is not None or leaf._view is not None:
                _check_leaf(leaf)
    return nodes, last


def _check_leaf(leaf: Any) -> None:
    """Raise RuntimeError where an op in place has made a leaf a result of others since it was read."""
    if not leaf.is_leaf:
        raise RuntimeError(
            f"leaf variable has been moved into the graph interior: a tensor of shape {tuple(leaf.shape)} was changed in place after what "
            "is differentiated was computed from it; change a copy"
        )


def _refuse(node: Node) -> None:
    """Raise RuntimeError for a node whose saved tensors were changed: not for one from which no gradient goes on, as none will be read."""
    if node.for_many or not all(e is None or e.__class__ is Nowhere for e in node.edges):
        if failed is not None:
            failed(node)
        raise modified_error(node)


def _unchanged(node: Node) -> None:
    """Check a node again that is about to run, as users' code has run since all were checked: RuntimeError as from `collect`."""
    if node.consumed is not None:
        raise consumed_error(node)
    if node.versions and sum(v[0] for v in node.counters()) != node.stamp:
        _refuse(node)


def _towards(nodes: list[Node], targets: set[Any], roots: Sequence[Any]) -> tuple[list[Node], dict[Any, Any]]:
    """Return only the nodes on a path to a target: what `grad` and ``backward(inputs=…)`` run and consume."""
    needed: set[Any] = set()
    kept: list[Node] = []
    last: dict[Any, Any] = {}
    wanted_nodes = {t.node if t.__class__ is Output else t for t in targets}
    for node in reversed(nodes):  # inputs before outputs
        wanted = False
        for e in node.edges:
            if e is None:
                continue
            inner = e.node if e.__class__ is Output else e
            if inner in wanted_nodes or inner in needed:
                wanted = True
                if e.is_leaf_edge:
                    last.setdefault(e, node)
        if wanted:
            needed.add(node)
            kept.append(node)
    for root in roots:
        if root.is_leaf_edge and root in targets:
            last.setdefault(root, None)
    kept.reverse()
    return kept, last


class Pass:
    """The state of one backward pass: gradients on their way (``pending``), and where they end."""

    __slots__ = (
        "accumulate", "captured", "create_graph", "finals", "fitting", "hooked", "inner", "last", "owned", "pending", "running", "several", "__weakref__",
    )  # fmt: skip
    accumulate: bool
    create_graph: bool
    last: dict[Any, Any]

    def __init__(self, last: dict[Any, Any], accumulate: bool, create_graph: bool, targets: Sequence[Any] | None):
        self.last, self.accumulate, self.create_graph = last, accumulate, create_graph
        self.pending: dict[Any, Any] = {}  # node or leaf -> gradient; a list of them for a node with several outputs
        self.owned: set[Any] = set()  # whose pending gradient is a sum of our own making, and so may be added to in place
        self.captured: dict[Any, Any] = {}
        self.finals: dict[Any, Any] = {}  # node -> leaves whose gradients are complete after it ran
        self.several = self.hooked = False  # whether one node completes several leaves, and whether leaves have hooks
        for leaf, node in last.items():
            if leaf._leaf_hook_set is not None:
                self.hooked = True
            if node in self.finals:
                self.finals[node].append(leaf)
                self.several = True
            else:
                self.finals[node] = [leaf]
        self.inner: dict[Any, Any] = {}  # node -> wanted output indices, for the targets that are not leaves
        for t in targets or ():
            if not t.is_leaf_edge:
                node, index = _place(t)
                self.inner.setdefault(node, set()).add(index)
        self.running: set[Any] | None = None
        self.fitting = False  # whether gradients have to fit what is expected of them, before other nodes run

    def arrive(self, e: Any, g: Any) -> None:
        """Add a gradient to those that wait for an edge."""
        if self.fitting and g is not None:
            g = _fitted(e, g)
        if e.__class__ is Output:
            node = e.node
            if self.running is not None and node not in self.running and node not in self.inner:
                return
            slots = self.pending.get(node)
            if slots is None:
                slots = self.pending[node] = [None] * node.outputs
            have = slots[e.index]
            slots[e.index] = g if have is None else add(have, g) if self.create_graph else merge(have, g)
        elif self.running is None or e in self.running or e in self.last or e in self.inner:
            self.add(e, g)

    def beside(self, root: Any, g: Any) -> None:
        """Run the hooks on the one tensor that a pass begins with, and retain its gradient, also where no target lies below it."""
        node, index = _place(root)
        hooks = node._leaf_hook_set if node.is_leaf_edge else node.hooks
        if hooks is not None and g is not None and not (node in self.inner or node in self.last or node in (self.running or ())):
            slots: list[Any] = [None] * (1 if node.is_leaf_edge else node.outputs)
            slots[index] = g
            hooks.beside(slots, self.create_graph)

    @overridable
    def add(self, e: Any, g: Any) -> None:
        pending = self.pending
        have = pending.get(e)
        if have is None or g is None:
            pending[e] = g if have is None else have
        elif e in self.owned:
            add_in_place(have, g)
        elif self.create_graph:
            pending[e] = add(have, g)
        else:
            pending[e] = merge(have, g)
            self.owned.add(e)

    def finish(self, leaf: Any) -> None:
        """Run the hooks of a leaf of which all gradients are there, and accumulate or capture the gradient."""
        g = self.pending.pop(leaf, None)
        hooks = leaf._leaf_hook_set
        if g is None and hooks is None:
            return
        if hooks is not None:
            # the node that accumulates does not run where the gradient is captured, nor do its own hooks
            (g,) = (hooks.grad_outputs if self.accumulate else hooks.beside)([g], self.create_graph)
            if hooks.post and g is not None:  # they will see it
                share(g)
        if not self.accumulate:
            self.captured[leaf] = g
            return
        if not leaf._rg:  # frozen or detached since; PyTorch calls the hooks all the same
            if hooks is not None:
                hooks.finished(leaf, g)
            return
        if g is not None:
            with ownership.leaves:
                if ownership.programs:
                    ownership.wait(frozenset((id(leaf),)))
                grad = leaf._grad
                if grad is None:
                    leaf._grad = own(g, leaf, self.create_graph)
                elif self.create_graph or (grad.__class__ is not g.__class__ and grad.is_sparse and not g.is_sparse):
                    leaf._grad = accumulated(grad, g)
                else:
                    add_in_place(grad, g)
        if hooks is not None:
            hooks.finished(leaf, g)

    def capture(self, node: Node, g: Any, further: bool) -> None:
        """Keep the gradients of a node's outputs that are targets. ``further``: the node will read them."""
        for index in self.inner.get(node, ()):
            value = g[index] if node.several and g is not None else g
            if value is not None:
                self.captured[node, index] = value
                if further:
                    share(value)

    def leave(self, consumer: Any) -> None:
        """Take the pending gradients of targets below which nothing had to run. Where gradients are accumulated such a node runs all the same, as in
        PyTorch: for its hooks, a user's backward, and to be consumed."""
        for inner in self.inner:
            if inner not in self.pending:
                continue
            g = self.pending.pop(inner)
            if self.accumulate:
                _unchanged(inner)
                self.run_node(inner, g)
                if consumer is not None and keeps(inner):
                    inner.consumed, inner.saved = consumer, None
                continue
            if inner.hooks is not None:
                grads = inner.hooks.beside(g if inner.several else [g], self.create_graph)
                g = grads if inner.several else grads[0]
            self.capture(inner, g, False)

    @overridable
    def run_node(self, node: Node, g: Any) -> None:
        """Run a node with hooks or special edges, or one in a pass that has targets, is recorded or is watched."""
        hooks = node.hooks
        several = node.several
        if self.inner and not self.accumulate:
            self.capture(node, g, True)  # as it arrived: hooks see and replace what the node is given
        if several and g is None:
            g = [None] * node.outputs
        if hooks is not None:
            whole = list(g) if several else [g]
            grads = hooks.grad_outputs(whole, self.create_graph, node.shown)
            if hooks.post:  # they will see it, as it is now
                grads = [handed(value, self.create_graph) for value in grads]
            g = grads if several else grads[0]
            _unchanged(node)
        if self.inner and self.accumulate:
            self.capture(node, g, True)
        if node.of_none or any(value is not None for value in g) if several else g is not None:
            try:
                result = node.run_graph(g) if self.create_graph else node.run(g)
            except Exception:
                if failed is not None:
                    failed(node)
                raise
        else:
            result = (None,) * len(node.edges)
        if watch is not None:
            watch(node, result)
        if hooks is not None and hooks.post:
            result = hooks.grad_inputs(tuple([handed(r, self.create_graph) for r in result]), g[: node.shown] if several else [g])
        del g
        for e, value in zip(node.edges, result, strict=True):
            if e is not None and value is not None:
                self.arrive(e, value)


def _deliver(e: str, value: str, wanted: str) -> list[str]:
    """Return the line that brings a gradient to an edge where it is ``wanted``."""
    lines = [f"if {e} in pending:", f"    add_to({e}, {value})", "else:", f"    pending[{e}] = {value}"]
    return [f"if {wanted}:", *["    " + line for line in lines]] if wanted else lines


def _walker(targeted: bool, reuse: bool) -> Callable[..., None]:
    """Return ``walk(work, nodes, fast, consumer, create_graph)``: run the ``nodes`` from the last to the first, which lets them go.

    ``fast``: nodes without hooks and special edges run at once. ``consumer``: where the user's line is that consumes them, or None.
    ``reuse``: nodes that saved nothing are not consumed.
    ``targeted``: one more argument, ``running``, has the edges that lead to targets; all others get nothing. It is text for what each
    node of each pass goes through: one frame for all of them.
    """

    def loop(wanted: str) -> list[str]:  # (strict would cost time; rules give as many as there are edges)
        return ["for e, value in zip(node.edges, result):", *["    " + line for line in _deliver("e", "value", wanted)], "value = None"]

    if targeted:
        deliveries = loop("e in running and value is not None")
    else:
        deliveries = [
            f"if kind == {ONE_NODE}:",
            "    e = node.edge",
            *["    " + line for line in _deliver("e", "result[0]", "")],
            "elif len(result) == 2:",  # the loop below, written out for the commonest
            "    e, f = node.edges",
            "    value, other = result",
            *["    " + line for line in _deliver("e", "value", "e is not None and value is not None")],
            "    value = None",
            *["    " + line for line in _deliver("f", "other", "f is not None and other is not None")],
            "    other = f = None",
            "else:",
            *["    " + line for line in loop("e is not None and value is not None")],
        ]
    consumed = [f"if consumer is not None{' and keeps(node)' if reuse else ''}:", "    node.consumed = consumer", "    node.saved = None"]
    lines = [
        "pending, finals, add_to = work.pending, work.finals, work.add",
        "take = pending.pop",
        "hooked = False",  # whether users' code has run, which may have changed what nodes saved
        "while nodes:",
        "    node = nodes.pop()",  # the list must not keep alive what was passed
        "    g = take(node, None)",
        "    if hooked:",
        "        unchanged(node)",
        "    if fast and g is not None and node.hooks is None and node.edge_kind:",
        "        result = node.run_graph(g) if create_graph else node.run(g)",
        "        g = None",
        "        kind = node.edge_kind",
        *["        " + line for line in deliveries],
        "        result = e = None",
        *["        " + line for line in consumed],
        f"        if kind >= {NODES}:",
        "            continue",  # no leaf can be complete now
        "    elif g is not None or node.hooks is not None or node.of_none:",
        "        work.run_node(node, g)",
        "        g = None",
        "        hooked = hooked or node.hooks is not None",
        *["    " + line for line in consumed],
        "    if node in finals:",
        "        for leaf in finals[node]:",
        "            work.finish(leaf)",
        "            hooked = hooked or leaf._leaf_hook_set is not None",
    ]
    parameters = "work, nodes, fast, consumer, create_graph" + (", running" if targeted else "")
    return written("walk", parameters, lines, __file__, unchanged=_unchanged, keeps=keeps)  # type: ignore[no-any-return]


#: (to leaves, to targets) by whether nodes that saved nothing stay as they are
_WALKS = tuple([(_walker(False, reuse), _walker(True, reuse)) for reuse in (False, True)])


@whole
def run(
    roots: Sequence[Any], gradients: Sequence[Any], *, targets: Sequence[Any] | None = None, accumulate: bool = True,
    retain_graph: bool = False, create_graph: bool = False, depth: int = 2, at: tuple[Any, ...] | None = None,
    check: Callable[[], None] = lambda: None,
) -> list[Any]:  # fmt: skip
    """Push ``gradients`` from the ``roots`` (edges) down the graph.

    ``targets``: edges whose gradients are wanted (None: all leaves). ``accumulate``: add to ``.grad`` of leaves; otherwise the
    gradients of the targets are returned, None where nothing arrived. The user's line is ``depth`` frames above, or ``at``.
    ``check()`` is called before anything runs, where no pass like this one was met, which had gone through it.
    """
    passes = state.passes
    if passes and passes % DEEP == 0 and not launch.observing():
        options: dict[str, Any] = {
            "targets": targets, "accumulate": accumulate, "retain_graph": retain_graph, "create_graph": create_graph, "check": check,
        }  # fmt: skip
        at = here(depth + 1)
        return elsewhere(lambda: run(roots, gradients, at=at, **options))
    consumer = None if retain_graph else at or here(depth + 1)
    collected = like = None
    if detached.noted:
        check()
        collected = collect(roots, None if targets is None else set(targets))
        detached.refuse(collected[0])
    if (targets is None or not accumulate) and not (create_graph or launch._observing) and len(roots) == 1 and watch is None:
        like = recurring.kind(roots[0], gradients[0], targets)
        if like is not None:
            found = like.run(roots[0], gradients[0], consumer, targets)
            if found is not None:
                return found
    if collected is None:
        check()
        collected = collect(roots, None if targets is None else set(targets))
    nodes, last = collected
    collected = None  # (what is passed is let go)
    if like is not None:
        options = {"targets": targets, "accumulate": accumulate, "retain_graph": retain_graph, "at": consumer}
        found = like.note(roots[0], gradients[0], nodes, lambda: run(roots, gradients, **options), targets)
        if found is not None:
            return found
    return push(roots, gradients, targets, accumulate, create_graph, consumer, nodes, last)


@whole
def push(
    roots: Sequence[Any], gradients: Sequence[Any], targets: Sequence[Any] | None, accumulate: bool, create_graph: bool, consumer: Any,
    nodes: list[Node], last: dict[Any, Any],
) -> list[Any]:  # fmt: skip
    """Do a pass over ``nodes``, which were checked; ``consumer``: where the user's line is that consumes them, or None."""
    work = Pass(last, accumulate, create_graph, targets)
    work.fitting = NodeHooks.fitting and any(node.hooks is not None and node.hooks.expected for node in nodes)
    if work.hooked and work.several:
        leaf_order.arrange(work.finals, roots, nodes, last)
    running = None
    if targets is not None:
        work.running = set(nodes)
        running = work.running.union(last)
    previous = state.grad, state.asked
    state.grad = create_graph and (state.grad or not state.inference)
    state.asked = create_graph
    try:
        if len(roots) == 1 and running is None and roots[0].__class__ is not Output and not work.fitting:
            work.pending[roots[0]] = gradients[0]
        else:
            for root, g in zip(roots, gradients, strict=True):
                work.arrive(root, g)
        if running is not None and len(roots) == 1:
            work.beside(roots[0], gradients[0])
        if None in work.finals:
            for leaf in work.finals[None]:
                work.finish(leaf)
        nodes.reverse()
        fast = watch is None and not work.inner and not work.fitting
        to_leaves, to_targets = _WALKS[settings.reuse]
        if running is None:
            to_leaves(work, nodes, fast, consumer, create_graph)
        else:
            to_targets(work, nodes, fast, consumer, create_graph, running)
            work.leave(consumer)
    except BaseException:
        if state.ending and not state.passes:
            state.ending = []
        raise
    finally:
        state.grad, state.asked = previous
    if state.ending and not state.passes:
        _end()
    return [] if targets is None else _results(work, targets)


def _results(work: Pass, targets: Sequence[Any]) -> list[Any]:
    """Return the gradients of the targets: one tensor for each, however often it was asked for."""
    places = [t if t.is_leaf_edge else _place(t) for t in targets]
    found = work.captured
    if not (work.create_graph or work.accumulate):
        found = {p: None if (g := found.get(p)) is None else own(g, None, False) for p in dict.fromkeys(places)}
    return [found.get(p) for p in places]


def queue_callback(callback: Callable[[], None]) -> None:
    """Call ``callback()`` when the pass that runs has ended, the outermost where passes begin others; callbacks may ask for more.

    RuntimeError outside of a pass.
    """
    if not (state.passes or state.closing):
        raise RuntimeError("Final callbacks can only be installed during backward pass.")
    state.ending = [*state.ending, callback]


def _end() -> None:
    """Call what was to be called at the end of the pass, which may add to it."""
    before, state.closing = state.closing, True
    try:
        while state.ending:
            calls, state.ending = state.ending, []
            for call in calls:
                call()
    finally:
        state.closing = before


#: frames that know of a pass
_FRAMES = {push.__code__, *(walk.__code__ for walks in _WALKS for walk in walks)}


def _running() -> dict[str, Any] | None:
    """Return the variables of the innermost pass of this thread; None outside of passes."""
    frame: Any = sys._getframe(2)
    while frame is not None and frame.f_code not in _FRAMES:
        frame = frame.f_back
    return None if frame is None else frame.f_locals


def innermost_pass() -> Pass | None:
    """Return the pass that reads what a node has saved, or calls a hook; None outside of passes."""
    found = _running()
    return None if found is None else found["work"]


def current_pass() -> tuple[Any, Callable[[Any], bool]] | None:
    """Return, in a hook, what stands for the pass that calls it, and which edges that pass has still to reach or is at; None
    outside.
    """
    found = _running()
    if found is None:
        return None
    work = found["work"]
    ahead = {*found["nodes"], found.get("node"), *work.inner}  # gradients that are asked for arrive where no node runs
    return work, lambda e: e in work.last if e.is_leaf_edge else (e.node if e.__class__ is Output else e) in ahead


def _fitted(edge: Any, g: Any) -> Any:
    """Return the gradient that comes to an edge as the result was when it was computed; RuntimeError where it cannot be of that."""
    node, index = _place(edge)
    if node.is_leaf_edge or node.hooks is None or index not in node.hooks.expected:
        return g
    return fitted(g, node.hooks.expected[index][0])


def _place(edge: Any) -> tuple[Any, int]:
    return (edge.node, edge.index) if edge.__class__ is Output else (edge, 0)
