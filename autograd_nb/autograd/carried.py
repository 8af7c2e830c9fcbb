"""Tangents through transforms: a backward pass works on tensors without them.

A transform that goes backwards lets its function compute with tangents. The result's value and tangent are both recorded, so vᵀJ is a pass from
the value, and its tangent is the pass with the same v from the tangent, which is linear in v. That covers arguments and what the function
captures alike. A transform that goes forward is differentiated as a whole, by the passes over its own derivative, and gives its results the
tangents that come of that. `forward_ad` hands in how tensors are taken apart and put together.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from typing import Any, ClassVar

from ..graph.modes import lifted, state
from ..ops.creation.create import new_full


class Carrier:
    """It holds what forward mode hands in: nothing before a program has used that."""

    call: ClassVar[Callable[..., Any] | None] = None  #: (function, args, kwargs) -> its result, with tangents where an argument has one
    level: ClassVar[Callable[[Iterable[Any]], int | None]] = lambda values: None  #: the innermost level in which a tensor among values has a tangent
    split: ClassVar[Callable[[Any, int], tuple[Any, Any]]]  #: (tensor, level) -> its primal, and its tangent or None
    joined: ClassVar[Callable[[Any, Any, int], Any]]  #: (primal, tangent, level) -> the tensor that has both


def carrying(function: Callable[..., Any]) -> Callable[..., Any]:
    """Decorator of a transform's function of tensors and trees of them: tangents of its arguments come out as those of its results."""

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs) if Carrier.call is None else Carrier.call(function, args, kwargs)

    return ordinary(call)


def ordinary(function: Callable[..., Any]) -> Callable[..., Any]:
    """Decorator of a transform's function: what it makes in inference mode are ordinary tensors without a history."""

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        if not state.inference:
            return function(*args, **kwargs)
        with lifted():
            return function(*args, **kwargs)

    return call


def taken_off(t: Any) -> tuple[Any, Callable[[Any], Any]]:
    """Return (a tensor without its tangents, what gives them to one that takes its place)."""
    level = Carrier.level((t,))
    if level is None:
        return t, lambda new: new
    primal, tangent = Carrier.split(t, level)
    plain, put_on = taken_off(primal)
    return plain, lambda new: Carrier.joined(put_on(new), tangent, level)


def all_parts(t: Any) -> list[Any]:
    """Return a tensor's value and the tangents that it has: itself where it has none."""
    level = Carrier.level((t,))
    if level is None:
        return [t]
    return [part for whole in Carrier.split(t, level) if whole is not None for part in all_parts(whole)]


def detached(t: Any) -> Any:
    """Return a tensor outside the graph, with its tangents."""
    level = Carrier.level((t,))
    if level is None:
        return t.detach() if t.requires_grad else t
    primal, tangent = Carrier.split(t, level)
    return Carrier.joined(detached(primal), detached(tangent), level) if tangent is not None else detached(primal)


def pulled(pull: Callable[[list[Any], list[Any]], list[Any]], outputs: Sequence[Any], cotangents: Sequence[Any]) -> list[Any]:
    """Return what ``pull`` of outputs and their cotangents gives for each input, with tangents where an output or a cotangent has one.

    ``pull`` is linear in the cotangents, knows no tangents, and may give None.
    """
    level = Carrier.level((*outputs, *cotangents))
    if level is None:
        return pull(list(outputs), list(cotangents))
    split = [(*Carrier.split(o, level), *Carrier.split(c, level)) for o, c in zip(outputs, cotangents, strict=True)]
    found = pulled(pull, [value for value, _, _, _ in split], [c for _, _, c, _ in split])
    ways = [(t, c) for _, t, c, _ in split if t is not None] + [(value, moved) for value, _, _, moved in split if moved is not None]
    tangents = pulled(pull, [o for o, _ in ways], [c for _, c in ways])
    return [
        g if t is None else Carrier.joined(new_full(t.shape, 0, t.dtype) if g is None else g, t, level) for g, t in zip(found, tangents, strict=True)
    ]


def refuse_captured(outputs: Iterable[Any], name: str) -> None:
    """Raise RuntimeError where the function of a transform that goes forward reads a tensor with a tangent that is no argument."""
    if Carrier.level(outputs) is not None:
        raise RuntimeError(
            f"Nested forward mode AD is not supported at the moment ({name}: the function reads a tensor with a tangent that is not among its "
            "arguments: make it one, or use jacrev or vjp)"
        )
