"""What programs' classes of tensors keep beside numbers: attributes, and what stands in ``__slots__``."""

from __future__ import annotations

import copyreg
from copy import deepcopy
from typing import Any

_PACKAGE = __name__.partition(".")[0]


def own_slots(cls: type) -> list[str]:
    """Return the names of the ``__slots__`` that a program's class adds to those of the library's classes that it is made of."""
    made_of = [c for c in cls.__mro__ if c.__module__.partition(".")[0] == _PACKAGE]
    if made_of and made_of[0] is cls:
        return []
    ours = {n for c in made_of for n in _names(c)}
    return [n for n in _names(cls) if n not in ours]


def _names(cls: type) -> list[str]:
    return copyreg._slotnames(cls)  # type: ignore[attr-defined, no-any-return]


def copy_attributes(source: Any, target: Any, memo: dict[Any, Any]) -> None:
    """Give a copy what the object has beside its numbers, copied too."""
    if source.__dict__:
        target.__dict__.update(deepcopy(source.__dict__, memo))
    for name in own_slots(type(source)):
        if hasattr(source, name):
            setattr(target, name, deepcopy(getattr(source, name), memo))
