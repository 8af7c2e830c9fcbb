"""What is known of a difference, and what explains one: a reason, and a test that is as narrow as the reason."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Case:
    """A difference at a statement: what was raised here and there (texts, empty where nothing was)."""

    kind: str
    statement: str
    mine: str
    theirs: str
    name: str = ""  #: of what differs
    before: str = ""  #: the statements before it
    known: dict[str, Any] = field(default_factory=dict)  #: what PyTorch's names stood for before it
    what: str = ""  #: the difference in words
    failed: str = ""  #: what stood in the steps before it that PyTorch refused, of functions that are called a few times
    error: str = ""  #: of a statement that raised here and there, and has left different values
    shared: tuple[str, ...] = ()  #: pairs of names that have memory in common there, of functions that are called a few times
    gained: bool = True  #: whether it has left gradients here, other than zeros, that were not there before
    here: dict[str, Any] = field(default_factory=dict)  #: what this library's names stood for before it
    marks: tuple = ((), ())  #: what differs: its marks here and there, after the statement

    @property
    def text(self) -> str:
        """The statement, behind those before it."""
        return f"{self.before}\n{self.statement}"

    @property
    def their_values(self) -> str:
        """The values that PyTorch has instead."""
        return self.what.partition(" instead of ")[2]

    @property
    def empty(self) -> bool:
        """Whether a tensor without elements takes part, by name or written out."""
        named = (self.known.get(n) for n in re.findall(r"v\d+", self.statement))
        return bool(re.search(r"\(0,|, 0[,)]|:0\]", self.statement)) or any(0 in getattr(s, "shape", ()) for s in named)

    @property
    def unbounded(self) -> bool:
        """Whether a tensor with infinities or nan takes part."""
        named = (getattr(self.known.get(n), "values", None) for n in re.findall(r"v\d+", self.statement))
        return any(v is not None and v.dtype.kind in "fc" and not np.isfinite(v).all() for v in named)

    @property
    def tied(self) -> bool:
        """Whether a tensor takes part of which two dims have one stride."""
        for found in (self.known.get(n) for n in re.findall(r"v\d+", self.statement)):
            strides = [s for s, n in zip(getattr(found, "strides", ()), getattr(found, "shape", ())) if n > 1]
            if len(set(strides)) < len(strides):
                return True
        return False

    @property
    def windows(self) -> bool:
        """Whether a tensor takes part of which several elements are the same memory, other than by a stride of 0."""
        for found in (self.known.get(n) for n in re.findall(r"v\d+", self.statement)):
            pairs = [(s, n) for s, n in zip(getattr(found, "strides", ()), getattr(found, "shape", ())) if s and n > 1]
            if math.prod(n for _, n in pairs) > 1 + sum(s * (n - 1) for s, n in pairs):
                return True
        return False

    def same(self, name: str, other: str) -> bool:
        """Whether two names stand for one tensor, as what a dropout of nothing returns."""
        a, b = self.known.get(name), self.known.get(other)
        return name == other or (a is not None and b is not None and a.leaf and b.leaf and a.requires_grad and b.requires_grad
                                 and a.values.shape == b.values.shape and a.values.tobytes() == b.values.tobytes())  # fmt: skip

    def array(self, name: str) -> Any:
        """Whether a name stands for an array of NumPy's."""
        seen = self.known.get(name)
        if getattr(seen, "shape", ()) == ():
            return re.search(rf"^{name} = .*\.numpy\(|^{name} = np\.asarray\(", self.before, re.M)
        return seen.strides == ()


@dataclass(frozen=True)
class Explained:
    name: str
    reason: str
    holds: Callable[[Case], Any]
