"""What another run of a function makes of values that are gone, and what the call itself has kept of them.

Of large tensors that a call reads it keeps no copies. Where such a tensor has been changed since, another run computes with the new
values; but what the backward pass reads of the forward pass the call has left in memory, and `Restoring` puts it where the other run
makes it. So the graph has the values of the call, as far as a derivative can ask for them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ... import launch
from ...ops.creation.create import new_full
from ...shapes import Layout
from ...tensor import Tensor
from ..capture.sections import Section, gradients
from ..ir import Step, Use, root


@dataclass(frozen=True, slots=True)
class Launches:
    """The launches of a captured run. ``left``: for some of them, (operand, buffer) of what they wrote last and the call leaves."""

    kernels: list[tuple[str, tuple[Any, ...]]]  #: name and origin
    left: dict[int, list[tuple[int, int]]]


def launches_of(forward: list[Step], saved: Collection[int]) -> Launches:
    """Return the launches of a run's steps; ``saved``: the buffers that are left for the backward pass."""
    steps = [s for s in forward if s.check is None]
    last = {
        o.buffer.number: (k, i)
        for k, s in enumerate(steps) for i, o in enumerate(s.operands) if i in s.writes and isinstance(o, Use) and o.buffer.number in saved
    }  # fmt: skip
    left: dict[int, list[tuple[int, int]]] = {}
    for buffer, (k, i) in last.items():
        left.setdefault(k, []).append((i, buffer))
    return Launches([(s.call.name, s.call.origin) for s in steps], left)


class Restoring:
    """An observer of another run, which lets memory have the values that the call had there.

    ``memory``: what the call has left, by buffer. ``gone``: tensors whose values are not those of the call. What is computed of them
    and is not restored is not what it was (`lacks`).
    """

    draws: tuple[()] = ()

    def __init__(self, launches: Launches, memory: dict[int, np.ndarray], gone: list[Tensor]):
        self._launches, self._memory, self._count = launches, memory, 0
        self._gone = {id(r): r for r in (root(t._data) for t in gone)}
        self._other: dict[int, np.ndarray] = {}  # what was computed of these
        self._alike = True

    def __call__(self, call: Any, args: tuple[Any, ...]) -> None:
        call.entry(*args)
        k = self._count
        self._count += 1
        if k >= len(self._launches.kernels) or self._launches.kernels[k] != (call.name, call.origin):
            self._alike = False
        first = len(args) - call.outputs
        operands: list[tuple[Any, bool]] = []
        for i, a in enumerate(args):
            writes = i >= first or i == call.over
            operands += [(x, writes) for x in (a if isinstance(a, list) else [a])]
        arrays = [(root(x), writes) for x, writes in operands if isinstance(x, np.ndarray)]
        if any(self._differs(r) for r, _ in arrays):
            self._other.update({id(r): r for r, writes in arrays if writes})
        for i, buffer in self._launches.left.get(k, ()) if self._alike else ():
            there, then = root(operands[i][0]), self._memory.get(buffer)
            if then is not None and then.size == there.size and then.dtype == there.dtype:
                there[...] = then
                self._other.pop(id(there), None)

    def check(self, function: Callable[..., None], arrays: tuple[Any, ...], passes: tuple[Any, ...] = ()) -> None:
        """Let a test pass that finds values which are not those of the call."""
        if not any(isinstance(a, np.ndarray) and self._differs(root(a)) for a in arrays):
            function(*arrays)

    def _differs(self, r: np.ndarray) -> bool:
        return id(r) in self._other or id(r) in self._gone

    def lacks(self, section: Section, seeds: list[tuple[int, int, Layout]]) -> bool:
        """Return whether a pass through a section of the graph reads what is not as it was; ``seeds``: (slot, …, layout) of what comes in.

        What is gone itself is for the nodes' counters of versions to tell.
        """
        if not self._gone:
            return False
        if not self._alike or self._count != len(self._launches.kernels):
            return True
        if not any(self._lost(n.saved) or self._lost(n.__dict__) for n in section.nodes):
            return False
        given: list[Any] = [None] * len(section.slots)
        for slot, _, layout in seeds:
            given[slot] = new_full(layout.shape, 0, layout.dtype)
        trial = _Trial(self._other)
        try:
            with launch.observe(trial):
                gradients(section, given, create_graph=True)
        except Exception:
            return True
        return trial.reads

    def _lost(self, value: Any) -> bool:
        """Return whether what a node holds was computed of what is gone, as far as it can be told."""
        if isinstance(value, Tensor):
            value = value._data
        if isinstance(value, np.ndarray):
            return id(root(value)) in self._other
        if isinstance(value, dict):
            return any(self._lost(v) for v in value.values())
        if isinstance(value, (tuple, list)):
            return any(self._lost(v) for v in value)
        return isinstance(value, Sequence) and not isinstance(value, (str, bytes))  # that of a checkpoint is computed later


class _Trial:
    """An observer that notes whether launches read certain memory."""

    draws = ()

    def __init__(self, memory: dict[int, np.ndarray]):
        self._memory, self.reads = memory, False

    def __call__(self, call: Any, args: tuple[Any, ...]) -> None:
        for a in args:
            for x in a if isinstance(a, list) else [a]:
                self.reads |= isinstance(x, np.ndarray) and id(root(x)) in self._memory
        call.entry(*args)
