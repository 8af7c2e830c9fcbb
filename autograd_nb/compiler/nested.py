"""Values that hold tensors: lists, dicts, dataclasses, nested in one another."""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy
from enum import Enum
from typing import Any

import numpy as np

from .. import dtypes
from ..shapes import layout_of
from ..tensor import Tensor, make
from .live_numbers import _Slot, plain_number


def flatten(value: Any, leaves: list[Any], others: list[Any] | None = None) -> Any:
    """Put tensors of nested containers into ``leaves``; what remains, as a hashable key. ``others``: receives other objects."""
    if isinstance(value, Tensor):
        leaves.append(value)
        return value.__class__
    if isinstance(value, (list, tuple)):
        return (type(value), *[flatten(v, leaves, others) for v in value])
    if isinstance(value, dict):
        return (type(value), *[(_key(k, others), flatten(v, leaves, others)) for k, v in value.items()])
    if isinstance(value, (float, complex)) and is_plain(value):
        return (type(value), value if value and value == value else repr(value))  # −0.0 is not 0.0, nan is itself
    if isinstance(value, slice):
        return (slice, *[flatten(v, leaves, others) for v in (value.start, value.stop, value.step)])
    if value is None or is_plain(value) or isinstance(value, Enum):
        return (type(value), value)
    if _is_record(value):
        return (type(value), *[(k, flatten(v, leaves, others)) for k, v in vars(value).items()])
    if others is not None:
        others.append(value)
    return ("object", id(value))


def difference(now: Any, then: Any, path: str) -> str:
    """Say where two results of `flatten` differ, in words; empty where they do not. ``path``: what to call the value."""
    if now == then:
        return ""
    kind = now[0] if isinstance(now, tuple) else None
    if kind is None or not isinstance(then, tuple) or kind is not then[0] or len(now) != len(then) or _ends(now):
        return f"{path} is {_spelled(now)} and was {_spelled(then)}"
    named = not issubclass(kind, (list, tuple))
    for i, (a, b) in enumerate(zip(now[1:], then[1:], strict=True)):
        if named and a[0] != b[0]:
            return f"{path} has other keys"
        inner = path + (str(a[0] if named else i) if path.endswith(" ") else f"[{a[0] if named else i!r}]")
        found = difference(a[1], b[1], inner) if named else difference(a, b, inner)
        if found:
            return found
    return ""


def _ends(flat: tuple[Any, ...]) -> bool:
    """Return whether a flattened value is no container."""
    return flat[0] == "object" or not (issubclass(flat[0], (list, tuple, dict)) or hasattr(flat[0], "__dataclass_fields__"))


def _spelled(flat: Any) -> str:
    if not isinstance(flat, tuple):
        return "none" if flat is None else f"a {flat.__name__}"
    if flat[0] == "object":
        return "another object"
    if _ends(flat) and flat[0] is not slice:
        return str(flat[1]) if flat[0] is float else repr(flat[1])
    return f"a {flat[0].__name__} of {len(flat) - 1}"


_PLAIN = (int, float, str, bytes, complex, slice, range)


def is_plain(value: Any) -> bool:
    """Return whether it is a number, a text or the like, which cannot change; one of a subclass may have attributes that can."""
    return isinstance(value, _PLAIN) and not getattr(value, "__dict__", None)


def _key(key: Any, others: list[Any] | None) -> Any:
    """Return the key of a mapping: 1 and True are not the same here, and a tensor is itself."""
    if key.__class__ is str:
        return key
    tensors: list[Tensor] = []
    flat = flatten(key, tensors, others)
    if others is not None:
        others += tensors
    return (flat, *map(id, tensors))


def _is_record(value: Any) -> bool:
    """Return whether it is a dataclass instance with nothing but its fields."""
    fields = getattr(type(value), "__dataclass_fields__", None)
    return fields is not None and getattr(value, "__dict__", {}).keys() == fields.keys()


def rebuild(value: Any, leaves: Any) -> Any:
    """Return ``value`` with its tensors replaced, in order."""
    if isinstance(value, Tensor):
        return next(leaves)
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(rebuild(v, leaves) for v in value))
    if isinstance(value, (list, tuple)):
        return type(value)(rebuild(v, leaves) for v in value)
    if isinstance(value, dict):
        new = copy(value)
        for k, v in value.items():
            new[k] = rebuild(v, leaves)
        return new
    if _is_record(value):
        new = copy(value)
        for k, v in vars(value).items():
            object.__setattr__(new, k, rebuild(v, leaves))
        return new
    return plain_number(value)


def slots_in(value: Any, found: list[Any]) -> None:
    """Collect the live numbers in a value."""
    if isinstance(value, _Slot):
        found.append(value)
    elif isinstance(value, (list, tuple)):
        for v in value:
            slots_in(v, found)
    elif isinstance(value, dict) or _is_record(value):
        for v in (value if isinstance(value, dict) else vars(value)).values():
            slots_in(v, found)


def containers(value: Any) -> Iterator[Any]:
    """Yield the containers in a value that can change."""
    if isinstance(value, (list, dict)) or _is_record(value):
        yield value
    if isinstance(value, (list, tuple)):
        for v in value:
            yield from containers(v)
    elif isinstance(value, dict) or _is_record(value):
        for v in (value if isinstance(value, dict) else vars(value)).values():
            yield from containers(v)


def tensors_in(value: Any) -> list[Tensor]:
    leaves: list[Tensor] = []
    flatten(value, leaves)
    return leaves


def emptied(value: Any) -> Any:
    """Return the result's structure, holding no memory of the capture."""
    place = make(np.empty(0, np.float32), _EMPTY, [0, 0])
    leaves: list[Tensor] = []
    flatten(value, leaves)
    return rebuild(value, iter([place] * len(leaves)))


_EMPTY = layout_of((0,), None, dtypes.float32)


def is_sparse(t: Tensor) -> bool:
    """Return whether a tensor has no memory of its own in which its elements lie one by one."""
    return type(t)._data is not Tensor._data  # (a property of its class)
