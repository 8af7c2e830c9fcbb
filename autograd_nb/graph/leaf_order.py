"""The order in which leaves take their gradients where one node completes those of several: their hooks see it.

PyTorch's engine takes what is ready from a heap, leaves before all nodes and younger nodes before older ones. Of two leaves that come at once
the first in the node's edges is taken first; of more it depends on where they stand in the heap.
"""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heappop, heappush
from math import inf
from typing import Any

from .node import Output


class _Ready:
    """A node or leaf in the heap; those of one rank stay where they stand, as in PyTorch's."""

    __slots__ = ("edge", "rank")

    def __init__(self, edge: Any):
        self.edge, self.rank = edge, -inf if edge.is_leaf_edge else -edge.seq

    def __lt__(self, other: _Ready) -> bool:
        return self.rank < other.rank  # type: ignore[no-any-return]


def _ends(edges: Sequence[Any]) -> list[Any]:
    """Return the nodes and leaves that edges lead to."""
    return [e.node if e.__class__ is Output else e for e in edges if e is not None]


def _taken(roots: Sequence[Any], nodes: Sequence[Any], last: dict[Any, Any]) -> dict[Any, int]:
    """Return the leaves of a pass -> their turns, by going through it as PyTorch's engine does."""
    missing: dict[Any, int] = dict.fromkeys((*nodes, *last), 0)
    for edges in (roots, *[node.edges for node in nodes]):
        for end in _ends(edges):
            if end in missing:
                missing[end] += 1
    ready: list[_Ready] = []
    turns: dict[Any, int] = {}
    edges = roots
    while True:
        for end in _ends(edges):
            if end in missing:
                missing[end] -= 1
                if not missing[end]:
                    heappush(ready, _Ready(end))
        if not ready:
            return turns
        now = heappop(ready).edge
        if now.is_leaf_edge:
            turns[now] = len(turns)
        edges = () if now.is_leaf_edge else now.edges


def arrange(finals: dict[Any, list[Any]], roots: Sequence[Any], nodes: Sequence[Any], last: dict[Any, Any]) -> None:
    """Bring the leaves that each node completes (None: the roots of the pass) into the order in which they take their gradients."""
    turns: dict[Any, int] = _taken(roots, nodes, last) if any(len(leaves) > 2 for leaves in finals.values()) else {}
    for node, leaves in finals.items():
        if len(leaves) > 1:
            # a leaf that has several of the edges is complete with the last of them
            places = turns or {end: k for k, end in enumerate(_ends(roots if node is None else node.edges))}
            leaves.sort(key=lambda leaf, places=places: places.get(leaf, len(places)))  # type: ignore[misc]
