"""Places where a function leaves tensors: a layer's last loss, a hidden state that the next call goes on from."""

from __future__ import annotations

import types
from typing import Any

from ...tensor import Tensor
from ..nested import flatten

_GONE = object()


class Kept:
    """One place: an entry of a mapping or a sequence (``key``), or what the cell of a closure holds.

    ``read``: whether the function reads what it left there. Then that is an argument of its next call, like those it is given.
    """

    __slots__ = ("holder", "key", "path", "read")
    holder: Any
    key: Any
    path: str
    read: bool

    def __init__(self, holder: Any, key: Any, path: str):
        self.holder, self.key, self.path, self.read = holder, key, path, False

    @property
    def place(self) -> tuple[int, Any]:
        """Return what tells the place from others while it lives."""
        return id(self.holder), self.key

    def get(self) -> Any:
        """Return what is there now."""
        try:
            return self.holder.cell_contents if isinstance(self.holder, types.CellType) else self.holder[self.key]
        except (LookupError, ValueError):
            return _GONE

    def set(self, value: Any) -> None:
        """Leave a value there."""
        if isinstance(self.holder, types.CellType):
            self.holder.cell_contents = value
        else:
            self.holder[self.key] = value


def keepable(value: Any) -> bool:
    """Return whether a program can make it anew: a tensor, or tensors in containers, without objects of other kinds."""
    tensors: list[Tensor] = []
    others: list[Any] = []
    flatten(value, tensors, others)
    return bool(tensors) and not others and all(t.__class__ is Tensor for t in tensors)


def form(value: Any) -> tuple[Any, ...]:
    """Return what a function can tell of a value without reading its numbers."""
    tensors: list[Tensor] = []
    return flatten(value, tensors), [t._layout for t in tensors]
