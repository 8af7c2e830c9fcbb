"""Transforms that go backwards, of tensors with tangents: a backward pass works on tensors without them.

So such a transform is differentiated as a whole where an argument has a tangent, by the passes over its own derivative, and gives its
results the tangents that come of that. `forward_ad` hands in how.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Any, ClassVar


class Carrier:
    """It holds what forward mode hands in: nothing before a program has used that."""

    call: ClassVar[Callable[..., Any] | None] = None  #: (function, args, kwargs) -> its result, with tangents where an argument has one
    among: ClassVar[Callable[[Iterable[Any]], bool]] = lambda values: False  #: whether a tensor among values has a tangent


def carrying(function: Callable[..., Any]) -> Callable[..., Any]:
    """Decorator of a transform's function of tensors and trees of them: tangents of its arguments come out as those of its results."""

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs) if Carrier.call is None else Carrier.call(function, args, kwargs)

    return call


def pulled_back(vjp: Callable[..., Any], func: Callable[..., Any], primals: tuple[Any, ...], has_aux: bool) -> tuple[Any, ...]:
    """Return what `vjp` does where a primal has a tangent: each pull is differentiated as a whole."""
    out = func(*primals)
    pull = carrying(lambda primals, cotangents: vjp(func, *primals, has_aux=has_aux)[1](*cotangents))

    def pulled(*cotangents: Any, retain_graph: bool = True, create_graph: bool | None = None) -> Any:
        return pull(primals, cotangents)

    return (out[0], pulled, out[1]) if has_aux else (out, pulled)


def refuse_captured(outputs: Iterable[Any], name: str) -> None:
    """Raise NotImplementedError where the function of a transform reads a tensor with a tangent that is no argument: it would be lost."""
    if Carrier.call is not None and Carrier.among(outputs):
        raise NotImplementedError(
            f"{name}: the function reads a tensor with a tangent that is not among its arguments, and the gradient would have no tangent by "
            "it. Make it an argument, and choose the others by argnums="
        )
