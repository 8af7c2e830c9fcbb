"""Tangents of gradients: `grad` of what has a tangent, inside a dual level.

The tangent of a result is recorded like its value: it is Σ dy/dx · t, computed from the same leaves. So the tangent of the gradient g(x) in the
direction t is the gradient of that sum, the tangents t held fixed: those that were given, and that of x itself where x was computed. Passes do
not go on behind them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from ..graph.node import Output
from ..ops.core.registry import OPS
from ..tensor import Tensor, edge

__all__ = ["tangents_of_gradients"]


def tangents_of_gradients(
    grad: Callable[..., Any], roots: Sequence[Any], targets: Sequence[Any], seeds: Sequence[Any], fixed: Sequence[Any]
) -> list[Any] | None:
    """Return the tangents of the gradients of the ``roots``, or None where nothing is known to have any.

    Roots, targets and seeds are (primal, tangent or None); a seed may be None itself. ``fixed`` are the edges of tangents that were given.
    """
    ways = []
    for (value, moved), seed in zip(roots, seeds, strict=True):
        start, direction = seed or (None, None)
        if moved is not None and moved.requires_grad:
            ways.append((moved, start))
        if direction is not None:
            ways.append((value, direction))
    if not ways:
        return None
    found: list[Any] = [None] * len(targets)
    cuts = [None if t is None else _computed(edge(t)) for _, t in targets]
    for group in [[i for i, cut in enumerate(cuts) if cut is None], *([i] for i, cut in enumerate(cuts) if cut is not None)]:
        if group:
            with _ending([*fixed, *(cuts[i] for i in group)]):
                parts = grad(
                    [r for r, _ in ways], [targets[i][0] for i in group], [s for _, s in ways], create_graph=True, retain_graph=True, allow_unused=True
                )
            for i, part in zip(group, parts, strict=True):
                found[i] = part
    return found


def _computed(e: Any) -> Any:
    """Return the edge of what was computed, None for that of a leaf or a constant."""
    return None if e is None or isinstance(e, Tensor) else e


@contextmanager
def _ending(edges: Sequence[Any]) -> Iterator[None]:
    """Let no gradient go on behind these edges."""
    handles = [_ended(*((e.node, e.index) if isinstance(e, Output) else (e, 0))) for e in edges if _computed(e) is not None]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def _ended(node: Any, index: int) -> Any:
    def zeros(gradients: Any) -> Any:
        return tuple([OPS["zeros_like"].call(g) if k == index and g is not None else g for k, g in enumerate(gradients)])

    return node.register_prehook(zeros)
