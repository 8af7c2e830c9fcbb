"""Whether Python's objects have changed, told by a few words of their memory: what a guard of a program costs when all is well.

Most of what guards compare stands at a fixed place in memory: the slots of a tensor, what a cell holds, the size of a
container. And each change of a dict is told by a word, its mark. So a `Watch` is a table of addresses and what is there while nothing
has changed, and one native function compares it all, a few hundred words in a tenth of a microsecond. A word that differs proves nothing;
Python then looks closer.
"""

from __future__ import annotations

from collections import OrderedDict, defaultdict, deque
from typing import Any

import numpy as np

from ...tensor import Tensor
from ..addresses import DATA
from ..ir import address
from .dict_marks import word
from .holders import KeptGradient
from .interpreter import CELL, CLASS, HAS_MANAGED, ITEMS, MANAGED, PARTS, SIZE, USED, known
from .watch import Record


def records(of: Any, part: str, values: list[Any]) -> list[Record] | None:
    """Return what to compare to see whether a part of an object is what it was; None where no words tell.

    ``part``: "entries" of a container, "cell" (what it holds), "class" and "attributes" (its dict) of an object, or the
    name of what a class, a function or a tensor has at a fixed place. ``values``: what is there, kept
    alive by the caller, as an address tells an object only while it lives. Dicts have marks, see `marked`.
    """
    offsets = known()
    kind = type(of)
    if not offsets:
        return None
    if part == "cell":
        return [(id(of) + CELL, 0, 1, id(values[0]))]
    if part in ("class", "attributes", *PARTS):
        return _pointer(of, part, values[0])
    if part != "entries":
        return [(id(of) + offsets[part], 0, 1, id(values[0]))] if getattr(kind, part) is getattr(Tensor, part) else None
    if kind is tuple or kind is frozenset:
        return []
    if kind is list and values:
        return [(id(of) + SIZE, 0, 1, len(values)), (id(of) + ITEMS, 1, len(values), *map(id, values))]
    if kind in (OrderedDict, list, deque) and not values:
        return [(id(of) + SIZE, 0, 1, 0)]
    return [(id(of) + USED, 0, 1, 0)] if kind is set and not of else None


def _pointer(of: Any, part: str, value: Any) -> list[Record] | None:
    kind = type(of)
    if part == "class":
        offset = CLASS
    elif part in PARTS:
        offset = known()[part]
    else:
        offset = MANAGED if kind.__flags__ & HAS_MANAGED else max(kind.__dictoffset__, 0)
    if not offset:
        return None
    there = word(id(of) + offset)
    return [(id(of) + offset, 0, 1, there)] if there == id(value) or (value is None and not there) else None  # (None is often no address)


def data_record(array: np.ndarray) -> list[Record] | None:
    """Return what to compare to see whether an array begins at the same place of memory."""
    return [(id(array) + DATA, 0, 1, address(array))] if known() and type(array) is np.ndarray else None


def marked(of: Any) -> bool:
    """Return whether it is a dict whose mark tells of each change."""
    return type(of) in (dict, defaultdict) and bool(known())


def held_alone(kept: KeptGradient) -> list[Record] | None:
    """Return what to compare to see whether a gradient is its leaf's and unchanged, nobody has it but these two, and nobody
    else its memory; None where no words tell.
    """
    offsets, leaf, gradient, data = known(), kept.leaf, kept.tensor, kept.memory
    if not offsets or gradient is None:
        return None
    return [
        (id(leaf) + offsets["_grad"], 0, 1, id(gradient)),
        (id(gradient), 0, 1, 2),
        (id(gradient) + offsets["_rg"], 0, 1, id(False)),
        (id(gradient) + offsets["_layout"], 0, 1, id(gradient._layout)),
        (id(gradient) + offsets["_data"], 0, 1, id(data)),
        (id(data), 0, 1, 2),
        (id(gradient) + offsets["_version_"], 0, 1, id(gradient._version_)),
        (id(gradient._version_) + ITEMS, 1, 1, id(gradient._version_[0])),
    ]
