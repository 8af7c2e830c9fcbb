"""How tangents lie in memory, and what they have to be like."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .. import launch
from ..ops.core.marked import MARKED, shows
from ..ops.core.recording import fresh
from ..ops.core.registry import OPS
from ..ops.creation.create import new_full
from ..shapes import overlaps_itself
from ..tensor import Tensor, _storage, refresh
from .interpreters import Wrapped

__all__ = ["lie_alike", "lying_as", "need_like"]


def lie_alike(primals: Sequence[Any], tangents: Sequence[Any]) -> bool:
    """Return whether all tangents that there are have their primals' strides."""
    return all(t is None or t._layout.strides == p._layout.strides for p, t in zip(primals, tangents, strict=True))


def lying_as(primal: Tensor, tangent: Tensor) -> Tensor:
    """Return a tangent as it is kept: if it does not lie in its storage as the primal does in its own, it is copied, in the primal's dtype."""
    if isinstance(primal, Wrapped) or isinstance(tangent, Wrapped):
        return tangent
    (whole, own), (other, at) = _storage(primal.of if primal.__class__ in MARKED else primal), _storage(tangent)  # type: ignore[attr-defined]
    if whole.size != primal._layout.extent or other.size != tangent._layout.extent:
        launch.escapes("forward mode with a part of a tensor")
    steps = zip(primal._layout.strides, tangent._layout.strides, primal.shape, strict=True)
    alike = all(shows(primal, mark) == shows(tangent, mark) for mark in ("conj", "neg"))
    alike = alike and whole.size == other.size and own == at and (not primal._layout.size or all(s == t for s, t, n in steps if n > 1))
    if alike or overlaps_itself(primal._layout):
        return tangent
    if tangent.dtype.is_complex and not primal.dtype.is_complex:
        tangent = tangent.real
    memory = new_full((whole.size,), 0, primal.dtype)
    out = OPS["as_strided"].call(memory, tuple(primal.shape), primal._layout.strides, own).copy_(tangent)
    refresh(out)
    return fresh(out)


def need_like(primals: Sequence[Any], tangents: Sequence[Any]) -> None:
    """Raise RuntimeError for a tangent that has not its primal's shape and dtype."""
    for k, (p, t) in enumerate(zip(primals, tangents, strict=True)):
        for what in ("shape", "dtype"):
            if getattr(t, what, None) != (wanted := getattr(p, what, None)):
                raise RuntimeError(
                    f"tangent:{k} with {what} {getattr(t, what, None)} in flattened pytree doesn't match the {what} {wanted} of the corresponding primal."
                )
