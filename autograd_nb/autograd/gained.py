"""Plain tensors that are written over with one that has a tangent, inside a dual level: they, their base and all its views get one."""

from __future__ import annotations

import gc
from collections.abc import Callable

from ..ops.core.marked import MARKED, Marked, marked
from ..ops.core.registry import OPS
from ..ops.creation.create import new_full
from ..shapes import overlaps_itself
from ..tensor import Tensor, _new, offset_in

__all__ = ["KEPT", "gains", "restored"]

#: what a plain tensor consists of
KEPT = ("_data", "_layout", "_version_", "_rg", "_edge", "_grad", "_view", "_view_kind", "_seen", "_leaf_hook_set")


def gains(target: Tensor, become: Callable[[Tensor, Tensor, Tensor], None]) -> bool:
    """Give ``target`` a tangent of zeros, and the tensors that see the same memory views of it; whether that is possible.

    ``become(t, primal, tangent)`` makes of the tensor itself one that has them.
    """
    base = target._view if target._view is not None else target
    views = [t for t in gc.get_referrers(base) if isinstance(t, Tensor) and t._view is base]
    if any(t.__class__ is not Tensor or t._layout.dtype is not base._layout.dtype or t._version_[0] < 0 for t in (base, *views)):
        return False  # (a leaf of its own kind, an inference tensor, or the numbers of a complex one)
    if (base._rg and base._edge is None) or overlaps_itself(base._layout):
        return False  # (its gradient is kept by the tensor itself)
    memory = new_full((base._layout.extent,), 0, base._layout.dtype)
    places = [offset_in(t, base) for t in views]
    shown = [(m, view) for view in views for m in _that_show(view)]
    plain = _copied(base)
    plain.__dict__["stands_for"] = base
    become(base, plain, _seen(memory, plain, 0))
    for view, place in zip(views, places, strict=True):
        primal = _copied(view)
        primal._view = plain
        become(view, primal, _seen(memory, primal, place))
    for m, view in shown:
        mark = m.mark
        m.__dict__.clear()
        become(m, marked(view.held, mark), marked(view.tangent, mark))  # type: ignore[attr-defined]
    return True


def _that_show(view: Tensor) -> list[Marked]:
    """Return the tensors that show conjugates or negatives of a view."""
    holders = gc.get_referrers(view)
    dicts = [h for h in holders if h.__class__ is dict and h.get("of") is view]
    holders += [owner for d in dicts for owner in gc.get_referrers(d)]
    return [h for h in {id(h): h for h in holders}.values() if h.__class__ in MARKED and h.of is view]


def _copied(t: Tensor) -> Tensor:
    """Return a tensor that is what ``t`` is now."""
    out = _new(Tensor)
    for name in KEPT:
        if hasattr(t, name):
            setattr(out, name, getattr(t, name))
    return out


def _seen(memory: Tensor, primal: Tensor, place: int) -> Tensor:
    """Return the part of the tangents' memory that belongs to a tensor, lying as that does."""
    return OPS["as_strided"].call(memory, tuple(primal._layout.shape), primal._layout.strides, place)


def restored(primal: Tensor, t: Tensor) -> None:
    """Make ``t``, which had a tangent, what its primal is; a view's base is again the tensor that had gained a tangent."""
    t.__class__ = primal.__class__ if primal.__class__ in MARKED else Tensor  # type: ignore[assignment]
    if primal.__class__ in MARKED:
        t._layout, t._grad, t._leaf_hook_set = primal._layout, primal._grad, primal._leaf_hook_set
        t.__dict__.update(primal.__dict__)
        while primal.__class__ in MARKED:
            t = primal = primal.of  # type: ignore[attr-defined]
    for name in KEPT:
        if hasattr(primal, name):
            setattr(t, name, getattr(primal, name))
    if primal._view is not None:
        t._view = primal._view.__dict__.get("stands_for", primal._view)
