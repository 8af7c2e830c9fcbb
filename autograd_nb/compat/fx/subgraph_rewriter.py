"""Replacing parts of graphs. Source: https://docs.pytorch.org/docs/stable/fx.html#torch.fx.replace_pattern"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from ...nn import Module
from .graph import Graph
from .graph_module import GraphModule, _copy_attribute
from .node import Node, map_arg
from .tracer import symbolic_trace


class Match(NamedTuple):
    """The record of what was replaced: the last step of the place, and which step of the graph stood for which of the pattern."""

    anchor: Node
    nodes_map: dict[Node, Node]


def _graph_of(program: Any) -> Graph:
    if isinstance(program, Graph):
        return program
    return program.graph if isinstance(program, GraphModule) else symbolic_trace(program).graph


class _Matching:
    """One attempt to find a pattern that ends at a step."""

    def __init__(self, pattern: Graph, gm: GraphModule) -> None:
        self.pattern, self.gm = pattern, gm
        self.found: dict[Node, Any] = {}

    def same(self, p: Any, g: Any) -> bool:
        """Return whether an argument of the graph is that of the pattern."""
        if isinstance(p, Node):
            return isinstance(g, Node) and self.node(p, g) if p.op != "placeholder" else self.bound(p, g)
        if isinstance(p, (list, tuple)):
            return isinstance(g, (list, tuple)) and len(p) == len(g) and all(map(self.same, p, g))
        if isinstance(p, dict):
            return isinstance(g, dict) and p.keys() == g.keys() and all(self.same(p[k], g[k]) for k in p)
        if isinstance(p, slice):
            return isinstance(g, slice) and self.same((p.start, p.stop, p.step), (g.start, g.stop, g.step))
        return type(p) is type(g) and bool(p == g)

    def bound(self, p: Node, g: Any) -> bool:
        if p in self.found:
            return self.found[p] is g or (not isinstance(g, Node) and self.found[p] == g)
        self.found[p] = g
        return True

    def node(self, p: Node, g: Node) -> bool:
        """Return whether a step of the graph, with all before it, is that of the pattern."""
        if p in self.found:
            return self.found[p] is g
        if p.op != g.op or not self.same_target(p, g):
            return False
        self.found[p] = g
        return self.same(tuple(p.args), tuple(g.args)) and self.same(dict(p.kwargs), dict(g.kwargs))

    def same_target(self, p: Node, g: Node) -> bool:
        if p.op != "call_module" or p.target == g.target:
            return bool(p.target == g.target)
        owner = self.pattern.owning_module
        return owner is not None and type(owner.get_submodule(p.target)) is type(self.gm.get_submodule(g.target))

    def inner(self) -> Iterator[tuple[Node, Node]]:
        return ((p, g) for p, g in self.found.items() if p.op not in ("placeholder", "output"))

    def closed(self, results: list[Node]) -> bool:
        """Return whether nothing outside of the place uses what is computed within, but for its results."""
        within = {g for _, g in self.inner()}
        ends = {self.found[r] for r in results}
        return all(user in within for _, g in self.inner() if g.op != "get_attr" and g not in ends for user in g.users)


def _results(graph: Graph) -> list[Node]:
    found: list[Node] = []
    map_arg(graph.output_node().args[0], found.append)
    return found


def _matches(gm: GraphModule, pattern: Graph) -> list[_Matching]:
    results = _results(pattern)
    if len(results) != 1:
        raise NotImplementedError(f"replace_pattern(): the pattern must return one value, but returns {len(results)} (use patterns of one result)")
    taken: set[Node] = set()
    found = []
    for node in reversed(gm.graph.nodes):
        matching = _Matching(pattern, gm)
        if matching.node(results[0], node) and matching.closed(results) and not any(g in taken for _, g in matching.inner()):
            taken.update(g for _, g in matching.inner())
            found.append(matching)
    return found[::-1]


def replace_pattern(gm: GraphModule, pattern: Callable[..., Any] | GraphModule, replacement: Callable[..., Any] | GraphModule) -> list[Match]:
    """Replace every part of a module's graph that does what ``pattern`` does by ``replacement``, in place; what was found.

    Both are functions or modules of as many arguments, which stand for whatever the part is computed from. A part is found where its steps are
    those of the pattern and nothing else uses what is computed within. Parts do not overlap. RuntimeError where the arguments differ in number.

    >>> traced = torch.fx.symbolic_trace(lambda x: torch.neg(torch.relu(x)))
    >>> found = torch.fx.replace_pattern(traced, lambda x: torch.neg(torch.relu(x)), lambda x: x.clamp(max=0))
    >>> len(found), traced(torch.tensor(-3.))
    (1, tensor(-3.))
    """
    wanted, new = _graph_of(pattern), _graph_of(replacement)
    inputs, given = ([n for n in g.nodes if n.op == "placeholder"] for g in (wanted, new))
    if len(inputs) != len(given):
        raise RuntimeError(f"replace_pattern(): pattern takes {len(inputs)} arguments, replacement {len(given)}: they must be as many")
    done: list[Match] = []
    replaced: dict[Node, Node] = {}
    (result,) = _results(wanted)
    for matching in _matches(gm, wanted):
        end = matching.found[result]
        bound: list[Any] = [matching.found.get(p) for p in inputs]
        known = {n: replaced.get(g, g) for g, n in zip(bound, given, strict=True)}
        with gm.graph.inserting_before(end):
            value = gm.graph.graph_copy(new, dict(known))
        end.replace_all_uses_with(value)
        replaced[end] = value
        for _, g in sorted(matching.inner(), key=lambda pair: -list(gm.graph.nodes).index(pair[1])):
            if not g.users:
                gm.graph.erase_node(g)
        done.append(Match(end, dict(matching.found)))
    owner = replacement if isinstance(replacement, Module) else new.owning_module
    if isinstance(owner, Module):
        for node in new.nodes:
            if node.op in ("call_module", "get_attr") and not _has(gm, node.target):
                _copy_attribute(owner, gm, node.target)
    gm.recompile()
    return done


def _has(module: Any, target: str) -> bool:
    for part in target.split("."):
        if not hasattr(module, part):
            return False
        module = getattr(module, part)
    return True


__all__ = ["Match", "replace_pattern"]
