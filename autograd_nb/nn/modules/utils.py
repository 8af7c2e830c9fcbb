"""Sizes given as one number or several: what programs with layers of their own take from here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .options import several

__all__: list[str] = []


def _ntuple(n: int, name: str = "parse") -> Callable[[Any], tuple[Any, ...]]:
    """Return a function that makes n numbers of one, and a tuple of several."""

    def parse(x: Any) -> tuple[Any, ...]:
        return several(x, n)

    parse.__name__ = name
    return parse


_single, _pair, _triple, _quadruple = (_ntuple(n, name) for n, name in enumerate(("_single", "_pair", "_triple", "_quadruple"), 1))


def _reverse_repeat_tuple(t: tuple[Any, ...], n: int) -> tuple[Any, ...]:
    """Return each element n times, the last element first: strides or paddings as `nn.functional.pad` takes them."""
    return tuple(x for x in reversed(t) for _ in range(n))
