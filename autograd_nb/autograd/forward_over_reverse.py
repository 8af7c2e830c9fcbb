"""Tangents of gradients: `grad` of what has a tangent, inside a dual level.

A node keeps what it was given without tangents. So the derivative of a gradient g(p), in the direction t of the tensors p that were given
tangents, is found by two more passes: gᵀ's h(u) = Σ uᵢ dgᵢ/dp is linear in u, and Σ dh/du · t is what is wanted.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..ops.creation.create import new_full
from ..tensor import Tensor

__all__ = ["tangents_of_gradients"]

_UNKNOWN = (
    "grad(): the tangent of a gradient is not known where a tensor without requires_grad was given a tangent: let the tensors of make_dual "
    "require grad, or use func.jvp of func.grad."
)
_CHANGED = "grad(): the tangent of a gradient is not known where a tensor that was given a tangent has been changed in place since."


def tangents_of_gradients(
    grad: Callable[..., Any], roots: Sequence[Tensor], targets: Sequence[Any], seeds: Sequence[Any], leaves: Sequence[tuple[Tensor, Tensor, int]]
) -> list[Any] | None:
    """Return the tangents of the gradients of the ``roots``, or None where nothing is known to have any.

    ``roots`` and ``targets`` have no tangents of their own level; ``seeds`` are (primal, tangent) or None for each root; ``leaves`` (primal,
    tangent, version of the tangent) of what was given tangents.
    """
    given, directions, starts = [], [], []
    for seed in seeds:
        if seed is None or seed[1] is None:
            starts.append(seed and seed[0])
            continue
        start = seed[0] if seed[0].requires_grad else seed[0].detach().requires_grad_()
        given.append(start)
        directions.append(seed[1])
        starts.append(start)
    own = {id(seed[0]) for seed in seeds if seed is not None}
    known = [leaf for leaf in leaves if id(leaf[0]) not in own]
    if not given and not known:
        return None
    if not all(p.requires_grad for p, _, _ in known):
        raise NotImplementedError(_UNKNOWN)
    if any(t._version_[0] != version for _, t, version in known):
        raise NotImplementedError(_CHANGED)
    given += [p for p, _, _ in known]
    directions += [t for _, t, _ in known]
    options = {"create_graph": True, "allow_unused": True}
    found = grad(roots, targets, starts, **options)
    moving = [i for i, g in enumerate(found) if g is not None and g.requires_grad]
    factors = [new_full(found[i].shape, 0, found[i].dtype).requires_grad_() for i in moving]
    tangents: list[Any] = [None] * len(found)
    if not moving:
        return tangents
    pulled = grad([found[i] for i in moving], given, factors, **options)
    pairs = [(h, t) for h, t in zip(pulled, directions, strict=True) if h is not None and h.requires_grad]
    if pairs:
        for i, t in zip(moving, grad([h for h, _ in pairs], factors, [t for _, t in pairs], **options), strict=True):
            tangents[i] = t
    return tangents
