"""Which pointwise steps and reductions may become one kernel.

A group loops over one shape. Besides pointwise members it may hold folds, all over the same dims of that shape, and *epilogue* members:
pointwise steps on what the folds have made, which run once for each of their results.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from ...codegen.templates.loops import CHUNK
from ...ops.core.reduction_kernel import LONG, NestedReduction, arranged
from ...shapes import Layout, contiguous_strides, numel
from ..ir import Use
from .pointwise_step import FoldMember, Member, reshaped, walk

MOST_STEPS = 48
MOST_ARRAYS = 24
WORTH = 1 << 13  #: elements from which it pays to compile a kernel for a fold and others whose kernels are there
ROW = {"kept": 64, "reduced": 128}  #: elements next to one another that a fold in a loop with others should find
#: elements of a row for which an instruction is as long as what it takes to be prepared for that row: a pointwise loop over
#: all elements prepares once, a fold does for each row anyway
PREPARED = 12


@dataclass
class Group:
    """Members that will be one kernel. Late ones walk ``ends``, in the shape ``kept``; the others ``walks``."""

    shape: tuple[int, ...]
    members: list[Member] = field(default_factory=list)
    walks: dict[int, set[Any]] = field(default_factory=dict)  # buffer -> the ways in which it is walked
    ends: dict[int, set[Any]] = field(default_factory=dict)
    written: set[int] = field(default_factory=set)
    axes: tuple[int, ...] = ()  # that are folded

    @property
    def kept(self) -> tuple[int, ...]:
        """Return the shape of what the folds make."""
        return tuple([1 if d in self.axes else n for d, n in enumerate(self.shape)])

    @property
    def compiled(self) -> bool:
        """Return whether its kernel is there already."""
        return len(self.members) == 1 and self.members[0].step.call.entry is not None

    @property
    def long(self) -> bool:
        """Return whether it may be a fold that is better made of blocks, as eager calls make it of so many elements."""
        return any(isinstance(m, FoldMember) and 2 * numel(m.whole) >= LONG for m in self.members)

    def join(self, m: Member) -> bool:
        """Take a member in, if it can be computed in the same loop: over the group's shape, or the group over the member's."""
        folds = self.axes or isinstance(m, FoldMember)
        if folds and numel(self.shape) < WORTH and self.compiled and m.step.call.entry is not None:
            return False
        if self._join_epilogue(m):
            return True
        for group, other in self._ways(m):
            if group._takes(other):
                self.__dict__.update(group.__dict__)
                self.add(other)
                return True
        return False

    def feeds(self, m: Member) -> bool:
        """Return whether the member reads what the group writes."""
        return any(o.buffer.number in self.written for o, _ in m.inputs if isinstance(o, Use))

    def add(self, m: Member) -> None:
        """Take a member into the group."""
        self.members.append(m)
        walks, shape = (self.ends, self.kept) if m.epilogue else (self.walks, self.shape)
        for use, layout in arrays(m):
            walks.setdefault(use.buffer.number, set()).add(walk(use, layout, shape))
        if isinstance(m, FoldMember):
            self.axes = m.axes
            self.ends.update((u.buffer.number, {walk(u, layout, self.kept)}) for u, layout, _ in m.outputs)
        self.written |= _writes(m)

    def _ways(self, m: Member) -> Iterator[tuple[Group, Member]]:
        """Yield the group and the member over one shape."""
        if m.shape == self.shape:
            yield self, m
        elif any(u.buffer.number in self.walks for u, _ in arrays(m)):
            other = reshaped(m, self.shape)
            if other is not None:
                yield self, other
                return
            turned = Group(m.shape)
            for n in self.members:
                other = None if self.axes else reshaped(n, m.shape)
                if other is None:
                    return
                turned.add(other)
            yield turned, m

    def _takes(self, m: Member) -> bool:
        """Return whether a member over the group's shape shares data with it, and walks what either writes as the other does."""
        if len(self.members) >= MOST_STEPS:
            return False
        shared = False
        mine = _writes(m)
        for use, layout in arrays(m):
            n = use.buffer.number
            if n in self.ends and (n in self.written or n in mine):
                return False
            if n in self.walks:
                shared = True
                if (n in self.written or n in mine) and self.walks[n] != {walk(use, layout, self.shape)}:
                    return False
        if isinstance(m, FoldMember) and (self.axes not in ((), m.axes) or mine & (self.walks.keys() | self.ends.keys())):
            return False
        return shared and len(self.walks) <= MOST_ARRAYS and self._suits_folds(m)

    def _suits_folds(self, m: Member) -> bool:
        """Return whether folds may be in one loop with the others: they share a whole array, and all walk memory in order."""
        axes = m.axes if isinstance(m, FoldMember) else self.axes
        if not axes:
            return True
        mine = {walk(u, layout, self.shape) for u, layout in arrays(m)}
        both = set().union(*self.walks.values())
        if not any(0 not in _spread(w, self.shape) for w in mine & both):
            return False
        strides = sorted([w[2] for w in mine | both], key=lambda s: s.count(0))
        kept = contiguous_strides([1 if d in axes else n for d, n in enumerate(self.shape)])
        try:
            rows = [*strides, [0 if d in axes else s for d, s in enumerate(kept)]]
            walked = arranged(self.shape, axes, list(zip(*rows, strict=True)), len(rows))
        except NestedReduction:
            return False
        row = walked.sizes[-1]
        if walked.outer[0] or (row < ROW[walked.inner] and row != numel(self.shape)):
            return False
        if row < CHUNK and row < PREPARED * sum(
            n.weight for n in [*self.members, m] if not n.epilogue and not isinstance(n, FoldMember)
        ):
            return False
        return all(t[-1] in (0, 1) for t in walked.steps[:-1])

    def _join_epilogue(self, m: Member) -> bool:
        """Take in what works on the results of folds alone."""
        if not any(o.buffer.number in self.ends and o.buffer.number in self.written for o, _ in m.inputs if isinstance(o, Use)):
            return False
        other = None if isinstance(m, FoldMember) else m if m.shape == self.kept else reshaped(m, self.kept)
        if other is None or len(self.members) >= MOST_STEPS:
            return False
        mine = _writes(m)
        for use, layout in arrays(other):
            n = use.buffer.number
            touched = n in self.written or n in mine
            if touched and (n in self.walks or self.ends.get(n, set()) - {walk(use, layout, self.kept)}):
                return False
        self.add(replace(other, epilogue=True))
        return True


def arrays(m: Member) -> list[tuple[Use, Layout]]:
    """Return the arrays that a member walks over its shape."""
    written = [] if isinstance(m, FoldMember) else [(u, layout) for u, layout, _ in m.outputs]
    return [(o, layout) for o, layout in m.inputs if isinstance(o, Use)] + written


def _writes(m: Member) -> set[int]:
    return {u.buffer.number for u, _, _ in m.outputs}


def _spread(walked: tuple[Any, ...], shape: tuple[int, ...]) -> list[int]:
    """Return a walk's strides along the dims that have more than one element."""
    return [s for s, n in zip(walked[2], shape, strict=True) if n != 1]
