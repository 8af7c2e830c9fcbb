"""Results that were detached in place: a node that has saved one no longer knows its history, and is refused as in PyTorch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from weakref import WeakKeyDictionary

from .node import Node, Output

_NODES: WeakKeyDictionary[Node, dict[int, Any]] = WeakKeyDictionary()  # the nodes of such results -> output -> its counter of changes
#: the same as a plain dict, which costs a pass nothing where it is empty
noted = _NODES.data


def note(edge: Any, version: Any) -> Any:
    """Return the edge, after it was noted that the result behind it is detached in place; what a consumed node has made nobody will ask for."""
    node, index = (edge.node, edge.index) if edge.__class__ is Output else (edge, 0)
    if not node.is_leaf_edge and node.consumed is None:
        _NODES.setdefault(node, {})[index] = version
    return edge


def is_noted(edge: Any) -> bool:
    """Return whether the result behind an edge was detached in place."""
    node, index = (edge.node, edge.index) if edge.__class__ is Output else (edge, 0)
    return index in _NODES.get(node, ())


def refuse(nodes: Sequence[Node]) -> None:
    """Raise RuntimeError where one of the nodes that are to run has saved such a result as an operand."""
    for node in nodes:
        if node.takes_detached or not isinstance(node.saved, (list, tuple)):
            continue
        turned = {k for k, is_turned in node.shown_edges or () if is_turned}  # of these PyTorch has saved views, which remain results
        for k, e in enumerate(node.edges):
            if e is None or e.is_leaf_edge or k in turned or not is_noted(e):
                continue
            version = _NODES[e.node if e.__class__ is Output else e][e.index if e.__class__ is Output else 0]
            if any(counter is version for counter in node.counters()):
                raise RuntimeError(
                    "Trying to use a saved tensor that has been detached in-place, i.e. with .detach_(). This is not supported, please use "
                    f"out-of-place `.detach()` instead ({node.name()} saved it)"
                )
