"""The engine: one backward pass over a recorded graph.

Collect what can be reached, check all of it (consumed nodes, changed arrays), and only then run, youngest node first.
Iterative throughout; arrays are freed as nodes are passed. Every node that ran is consumed, unless the graph is retained.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import Any

from .modes import state
from .node import Node, Output, consumed_error, here, modified_error

_by_age = attrgetter("seq")

#: set by the ops: add(a, b) -> tensor, add_in_place(a, b), and own(g): a gradient that the leaf may keep
add: Callable[[Any, Any], Any]
add_in_place: Callable[[Any, Any], None]
own: Callable[[Any], Any]
#: set by autograd.anomaly while it watches: called with (node, gradients) after each node
watch: Callable[[Any, tuple], None] | None = None


def collect(roots: Sequence[Any], targets: set | None) -> tuple[list[Node], dict]:
    """(nodes to run, youngest first; for each leaf how many gradients will arrive). All checks are made here."""
    seen: set = set()
    nodes: list[Node] = []
    arrivals: dict = {}
    stack: list[Any] = []
    for root in roots:
        if root.is_leaf_edge:
            arrivals[root] = arrivals.get(root, 0) + 1
        else:
            stack.append(root.node if root.__class__ is Output else root)
    push, pop, mark = stack.append, stack.pop, seen.add
    while stack:
        node = pop()
        if node in seen:
            continue
        mark(node)
        nodes.append(node)
        for e in node.edges:
            if e is None:
                continue
            if e.is_leaf_edge:
                arrivals[e] = arrivals.get(e, 0) + 1
            elif e.__class__ is Output:
                push(e.node)
            else:
                push(e)
    nodes.sort(key=_by_age, reverse=True)
    if targets is not None:
        nodes, arrivals = _towards(nodes, targets, roots)
    for node in nodes:
        if node.consumed is not None:
            raise consumed_error(node)
        if node.versions:
            total = 0
            for v in node.versions:
                total += v[0]
            if total != node.stamp:
                raise modified_error(node)
    return nodes, arrivals


def _towards(nodes: list[Node], targets: set, roots: Sequence[Any]) -> tuple[list[Node], dict]:
    """Only the nodes on a path to a target: what `grad` and ``backward(inputs=…)`` run and consume."""
    needed: set = set()
    kept: list[Node] = []
    arrivals: dict = {}
    for node in reversed(nodes):  # inputs before outputs
        wanted = False
        for e in node.edges:
            if e is None:
                continue
            inner = e.node if e.__class__ is Output else e
            if e in targets or inner in targets or inner in needed:
                wanted = True
                if e.is_leaf_edge and e in targets:
                    arrivals[e] = arrivals.get(e, 0) + 1
        if wanted:
            needed.add(node)
            kept.append(node)
    for root in roots:
        if root.is_leaf_edge and root in targets:
            arrivals[root] = arrivals.get(root, 0) + 1
    kept.reverse()
    return kept, arrivals


def run(
    roots: Sequence[Any],
    gradients: Sequence[Any],
    *,
    targets: Sequence[Any] | None = None,
    accumulate: bool = True,
    retain_graph: bool = False,
    create_graph: bool = False,
    depth: int = 2,
) -> list[Any]:
    """Push ``gradients`` from the ``roots`` (edges) down the graph.

    ``targets``: edges whose gradients are wanted (None: all leaves). ``accumulate``: add to ``.grad`` of leaves (and of
    targets); otherwise the gradients of the targets are returned, None where nothing arrived.
    """
    wanted = None if targets is None else set(targets)
    nodes, arrivals = collect(roots, wanted)
    captured: dict = {}
    inner_targets = _inner(targets) if targets is not None else {}
    pending: dict = {}
    owned: set = set()
    consumer = None if retain_graph else here(depth + 1)
    previous = state.grad
    state.grad = create_graph
    try:
        for root, g in zip(roots, gradients, strict=True):
            _arrive(root, g, pending, owned, arrivals, captured, wanted, accumulate, create_graph)
        running = set(nodes) if targets is not None else None
        for node in nodes:
            g = pending.pop(node, None)
            hooks = node.hooks
            if g is None and hooks is None:
                for e in node.edges:  # nothing came this way, but leaves below must know that nothing more will
                    if e is not None and e.is_leaf_edge:
                        _arrive(e, None, pending, owned, arrivals, captured, wanted, accumulate, create_graph)
                if consumer is not None:
                    node.consumed = consumer
                    node.saved = None
                continue
            if hooks is not None:
                grads = hooks.grad_outputs(g if node.outputs > 1 and g is not None else [g])
                g = grads if node.outputs > 1 else grads[0]
            if inner_targets:
                _capture_inner(node, g, inner_targets, captured)
            result = node.run_graph(g) if create_graph else node.run(g)
            if watch is not None:
                watch(node, result)
            if hooks is not None and hooks.post:
                result = hooks.grad_inputs(result, g if node.outputs > 1 else [g])
            if consumer is not None:
                node.consumed = consumer
                node.saved = None
            g = None
            for e, value in zip(node.edges, result, strict=True):
                if e is None:
                    continue
                if e.is_leaf_edge:
                    _arrive(e, value, pending, owned, arrivals, captured, wanted, accumulate, create_graph)
                elif value is not None:
                    if e.__class__ is Output or e.outputs > 1:
                        inner = e.node if e.__class__ is Output else e
                        if running is not None and inner not in running:
                            if inner in inner_targets:
                                slots = pending.setdefault(inner, [None] * inner.outputs)
                                _add_slot(slots, e.index if e.__class__ is Output else 0, value)
                            continue
                        slots = pending.get(inner)
                        if slots is None:
                            slots = pending[inner] = [None] * inner.outputs
                        _add_slot(slots, e.index if e.__class__ is Output else 0, value)
                    else:
                        have = pending.get(e)
                        if have is None:
                            pending[e] = value
                        elif create_graph or e not in owned:
                            pending[e] = add(have, value)
                            owned.add(e)
                        else:
                            add_in_place(have, value)
            result = value = None
        # targets below which nothing had to run: their gradients are still pending
        for inner in inner_targets:
            if inner in pending:
                g = pending.pop(inner)
                hooks = inner.hooks
                if hooks is not None:
                    grads = hooks.grad_outputs(g if inner.outputs > 1 else [g])
                    g = grads if inner.outputs > 1 else grads[0]
                _capture_inner(inner, g, inner_targets, captured)
    finally:
        state.grad = previous
    if targets is None:
        return []
    out = [captured.get(_key(t)) for t in targets]
    return out


def _key(target: Any) -> Any:
    return (target.node, target.index) if target.__class__ is Output else target if target.is_leaf_edge else (target, 0)


def _inner(targets: Sequence[Any]) -> dict:
    """node -> wanted output indices, for the targets that are not leaves."""
    out: dict = {}
    for t in targets:
        if not t.is_leaf_edge:
            node, index = _key(t)
            out.setdefault(node, set()).add(index)
    return out


def _capture_inner(node: Node, g: Any, inner: dict, captured: dict) -> None:
    for index in inner.get(node, ()):
        value = g[index] if node.outputs > 1 and g is not None else g
        if value is not None:
            captured[node, index] = value


def _add_slot(slots: list, index: int, value: Any) -> None:
    slots[index] = value if slots[index] is None else add(slots[index], value)


def _arrive(edge, g, pending, owned, arrivals, captured, wanted, accumulate, create_graph) -> None:
    """A gradient reaches an edge from outside or a leaf; a leaf is finished when the last one has arrived."""
    if not edge.is_leaf_edge:
        if edge.__class__ is Output or edge.outputs > 1:
            node, index = _key(edge)
            _add_slot(pending.setdefault(node, [None] * node.outputs), index, g)
        else:
            pending[edge] = g if edge not in pending else add(pending[edge], g)
        return
    left = arrivals.get(edge)
    if left is None:
        return  # a leaf that nobody asked for
    arrivals[edge] = left - 1
    if g is not None:
        have = pending.get(edge)
        if have is None:
            pending[edge] = g
        elif create_graph or edge not in owned:
            pending[edge] = add(have, g)
            owned.add(edge)
        else:
            add_in_place(have, g)
    if left > 1:
        return
    g = pending.pop(edge, None)
    hooks = edge._leaf_hook_set
    if g is None:
        return
    if hooks is not None:
        (g,) = hooks.grad_outputs([g])
    if accumulate:
        if g is not None:
            _accumulate(edge, g, create_graph)
        if hooks is not None:
            for hook in list(hooks.accumulated.values()):
                hook(edge)
            for hook in list(hooks.post.values()):
                hook((), (g,))
    else:
        captured[edge] = g


def _accumulate(leaf: Any, g: Any, create_graph: bool) -> None:
    grad = leaf._grad
    if grad is None:
        leaf._grad = g if create_graph else own(g)
    elif create_graph:
        leaf._grad = add(grad, g)
    else:
        add_in_place(grad, g)
