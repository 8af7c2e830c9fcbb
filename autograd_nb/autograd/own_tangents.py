"""The tangents that a user's `Function` gives by its ``jvp``, and what PyTorch refuses of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..tensor import Tensor

__all__ = ["OTHER_SIZE", "changed_inputs", "moved_by", "tuple_of"]

OTHER_SIZE = (
    "Trying to set a forward gradient that has a different size than that of the original Tensor, this is not supported. "
    "Tensor is of size {} while the given forward gradient is of size {}."
)
_NOT_CHANGED = (
    "An inplace custom Function is not modifying the forward mode gradients inplace. If the forward is modifying an input inplace, then the "
    "jvp function must modify the corresponding gradient inplace."
)
_NOT_RETURNED = (
    "An inplace custom Function is not returning the forward mode gradients as-is. If the forward is modifying an input inplace, then the "
    "jvp function must modify the gradient inplace and return it as-is."
)
_NO_VIEW = "A custom Function's forward is returning a view (or an input as-is) but the jvp is not returning a view."
_OTHER_VIEW = "A custom Function is returning a view but the jvp is not returning a view of the {}given grad input."


def tuple_of(value: Any) -> tuple[Any, ...]:
    """Return what a function returned as a tuple."""
    return value if isinstance(value, tuple) else (value,)


def changed_inputs(ctx: Any, given: Sequence[Any]) -> list[int]:
    """Return the places of the inputs that forward marked as changed in place."""
    return [i for i, a in enumerate(given) if isinstance(a, Tensor) and any(a is t for t in ctx._dirty)]


def moved_by(jvp: Callable[..., Any], ctx: Any, tangents: Sequence[Any], given: Sequence[Any], found: Sequence[Any]) -> tuple[Any, ...]:
    """Return the tangents of the results ``found`` of the inputs ``given``, looked at."""
    before = [t._version_[0] if isinstance(t, Tensor) else 0 for t in tangents]
    moved = tuple_of(jvp(ctx, *tangents))
    changed = changed_inputs(ctx, given)
    for k, (out, m) in enumerate(zip(found, moved, strict=True)):
        place = next((i for i, a in enumerate(given) if isinstance(a, Tensor) and (out is a or (isinstance(out, Tensor) and out._view is a))), None)
        if not isinstance(m, Tensor):
            if place in changed and out is given[place]:
                raise RuntimeError(_NOT_CHANGED)
            continue
        _check(k, out, m, ctx)
        if place is None or tangents[place] is None:
            continue
        if place in changed and out is given[place]:
            if tangents[place]._version_[0] == before[place]:
                raise RuntimeError(_NOT_CHANGED)
            if m is not tangents[place]:
                raise RuntimeError(_NOT_RETURNED)
        elif m.__class__ is Tensor and tangents[place].__class__ is Tensor:
            _check_view(m, tangents[place])
    return moved


def _check(k: int, out: Any, moved: Tensor, ctx: Any) -> None:
    """Refuse a tangent that a user's jvp gives to a result which has none, or of another shape than the result."""
    if not isinstance(out, Tensor) or any(out is t for t in ctx._constant):
        raise RuntimeError(
            f"Function's jvp returned a gradient at position {k}, but the corresponding forward output is not a differentiable Tensor. You should "
            "return None at that position instead."
        )
    if out.shape != moved.shape:
        raise RuntimeError(OTHER_SIZE.format(list(out.shape), list(moved.shape)))


def _check_view(moved: Tensor, tangent: Tensor) -> None:
    """Refuse the tangent of a view of an input that is no view of that input's tangent."""
    if moved._view is None:
        raise RuntimeError(_NO_VIEW)
    if moved._view is not (tangent if tangent._view is None else tangent._view):
        raise RuntimeError(_OTHER_VIEW.format("" if tangent._view is None else "same base as the "))
