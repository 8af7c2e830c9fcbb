"""What arguments and state were before the run that is captured: what the run has changed is told by comparing with it."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import numpy as np

from .. import dtypes, launch
from ..errors import AutogradError
from ..graph import casting
from ..graph.modes import state
from ..graph.node import sequence
from ..ops.core.marked import MARKED
from ..shapes import Layout
from ..tensor import Tensor, edge
from .capture.recorder import Capture, Problem
from .guards.places import TooMuch
from .guards.reach import Reach
from .ir import address, root
from .nested import is_sparse
from .run.records import Argument, InitialGradient, hooks_on, seen_as

#: how an argument shares memory, as `Argument.shares` has it
Sharing = Tensor | tuple[int, int, bool] | None


@dataclass(frozen=True, slots=True, eq=False)
class Snapshot:
    """The arguments, the tensors that the function reaches and their gradients, as they are before a run. `snapshot` takes it."""

    leaves: list[Tensor]  #: the arguments
    shares: list[Sharing]  #: of each, whose memory it has
    reached: list[Tensor]  #: the function's state
    state_roots: set[int]  #: the ids of the arrays that own its memory
    gradients: dict[int, tuple[Tensor, Tensor | None]]  #: id of an argument or a tensor of the state -> (that tensor, its gradient)
    owners: list[tuple[str, str, Tensor]]  #: of memory that the run may use: (kind of buffer, path, tensor)
    edges: list[Any]  #: the arguments' places in the graph
    histories: list[Any]  #: and those of the function's state
    memories: list[tuple[np.ndarray, Layout, tuple[Any, ...]]]  #: (memory, layout, hooks) of each argument
    attributes: list[set[str]]  #: the names of each argument's own attributes
    mode: tuple[Any, Any, Any]  #: (grad mode, default dtype)
    began: int  #: the number of the next node
    versions: list[tuple[Tensor, list[int], int]]  #: (tensor, its counter, what it counted) of state and arguments
    gradient_versions: list[tuple[list[int], int]]  #: (counter, what it counted) of their gradients

    def capture(self) -> Capture:
        """Return a `Capture` that knows whose memory it meets, and may be asked for gradients."""
        capture = Capture(self.owners)
        capture.grads = {i: (t, g, 0 if g is None else g._version_[0]) for i, (t, g) in self.gradients.items()}
        return capture

    def check_arguments(self, changed: Collection[Tensor]) -> None:
        """Raise Problem where the run has made something else of an argument than other values; ``changed``: see `sections.Standing`."""
        for t, names, e, (data, layout, hooks) in zip(self.leaves, self.attributes, self.edges, self.memories, strict=True):
            if t.__dict__.keys() != names:
                raise Problem("it sets an attribute of an argument")
            if edge(t) is not e or any(t is c for c in changed):
                raise Problem("it changes an argument in place that requires grad")
            if t._data is not data or t._layout is not layout:
                raise Problem("it gives an argument other memory or another shape; return the new tensor")
            if hooks_on(t) != hooks:
                raise Problem("it registers a hook on an argument")
        if self.mode != (state.grad, dtypes.get_default_dtype(), casting.surroundings()):
            raise Problem("it leaves another grad mode, default dtype or autocast behind")

    def check_state(self) -> None:
        """Raise Problem where the run has given a tensor of the state another history: later calls would have to add to it."""
        for t, before in zip(self.reached, self.histories, strict=True):
            if _history(t) is not before:
                raise Problem("it changes a tensor in place that gets a history by it; return the new value, or change it under no_grad()")

    def argument(self, i: int, capture: Capture) -> Argument:
        """Return the record of an argument after the run."""
        t, shares = self.leaves[i], self.shares[i]
        return Argument(
            layout=t._layout,
            requires_grad=t.requires_grad,
            has_grad=self.gradients[id(t)][1] is not None,
            leaf=t._edge is None,
            inference=t._version_[0] < 0,
            buffer=None if isinstance(shares, Tensor) else capture.buffer_of(t._data).number,
            shift=address(t._data) - address(root(t._data)),
            written=next(counter[0] - before for s, counter, before in self.versions if s is t),
            view=seen_as(t),
            shares=shares,
        )

    def growing_versions(self, held: list[InitialGradient]) -> list[tuple[Any, int]]:
        """Return the counters that grow with each run, of other tensors than arguments and ``held`` gradients, and by how much."""
        known = {id(t._version_) for t in self.leaves}
        gradients = {id(h.leaf._grad._version_) for h in held if h.leaf._grad is not None}
        grown: dict[int, tuple[Any, int]] = {}
        for counter, before in [(counter, before) for _, counter, before in self.versions]:
            if counter[0] - before and id(counter) not in known:
                grown.setdefault(id(counter), (counter, counter[0] - before))
        for counter, before in self.gradient_versions:
            if counter[0] != before and id(counter) not in known | gradients:
                grown.setdefault(id(counter), (counter, counter[0] - before))
        return list(grown.values())


def snapshot(reach: Reach, leaves: list[Tensor]) -> Snapshot:
    """Take a snapshot of what a function may change that reaches this and is called with these tensors. TooMuch where it cannot be called."""
    reached = [t for _, t in reach.tensors.values()]
    gradients = {id(t): (t, t._grad) for t in [*reached, *leaves]}
    held = [g for _, g in gradients.values() if g is not None]
    if any(map(is_sparse, held)):
        raise TooMuch("it reaches a sparse gradient; make layers without sparse=True")
    owners = [("state", path, t) for path, t in reach.tensors.values()] + [("state", "a gradient", g) for g in held]
    shares = _shares(leaves, {id(t) for t in reached}, {id(root(t._data)) for _, _, t in owners})
    owners += [("state", "the order of a group's collectives", t) for t in launch.orders]
    owners += [("argument", f"argument {i}", t) for i, t in enumerate(leaves) if shares[i] is None]
    return Snapshot(
        leaves=leaves, shares=shares, reached=reached, state_roots={id(root(t._data)) for t in reached}, gradients=gradients, owners=owners,
        edges=[edge(t) for t in leaves], histories=[_history(t) for t in reached], memories=[(t._data, t._layout, hooks_on(t)) for t in leaves],
        attributes=[set(t.__dict__) for t in leaves], mode=(state.grad, dtypes.get_default_dtype(), casting.surroundings()), began=sequence(),
        versions=[(t, t._version_, t._version_[0]) for t in [*reached, *leaves]],
        gradient_versions=[(g._version_, g._version_[0]) for g in held],
    )  # fmt: skip


def _shares(leaves: list[Tensor], reached: set[int], fixed: set[int]) -> list[Sharing]:
    """Return whose memory each argument has; ``reached``: ids of the state's tensors, ``fixed``: of the arrays that own its memory."""
    first: dict[int, int] = {}  # id of an array that owns memory -> the first argument that lies in it
    shares: list[Sharing] = []
    for i, t in enumerate(leaves):
        if t.__class__ in MARKED:
            raise TooMuch(f"argument {i} is a view that shows conjugates or negatives; pass what it looks at, or resolve_conj().resolve_neg() of it")
        if is_sparse(t):
            raise TooMuch(f"argument {i} is a sparse tensor; pass its values, or make it dense (to_dense())")
        if t.__dict__ and id(t) not in reached:
            raise TooMuch(f"argument {i} has attributes of its own ({', '.join(t.__dict__)}); pass what they hold")
        owner = id(root(t._data))
        if owner in fixed:
            if id(t) not in reached:
                raise TooMuch(f"argument {i} shares memory with a tensor or gradient that the function reaches; pass a copy (clone())")
            shares.append(t)
            continue
        j = first.setdefault(owner, i)
        shares.append(None if j == i else (j, address(t._data) - address(leaves[j]._data), t is leaves[j]))
    return shares


def _history(t: Tensor) -> Any:
    """Return a tensor's place in the graph; None for one of several views of what was changed since, which has none."""
    try:
        return edge(t)
    except AutogradError:
        return None
